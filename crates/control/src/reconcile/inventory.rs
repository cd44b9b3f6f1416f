//! What a data plane has, by name: kept up with what it says, so that a change is compared with what it has to do with and not with all
//! there is.
//!
//! ```text
//!  Changes ──► Inventory::hear ──► names that changed ┐
//!  Wanted, another Wanted ──► differences ────────────┼──► reconcile_of ──► actions
//!  what was told, or failed, the last time ───────────┘
//! ```
//!
//! What is as it shall be stays so until either side changes. So whoever compares everything once, and from then on what has changed on
//! either side, what was told since and what could not be done, comes to the same actions as [`reconcile`] does, which the tests hold it to.
//! Where nobody else changes what the data plane has, it is asked for just that ([`selection`]).

use super::{Action, Actual, Going, Subject, reconcile, shows, stands_on};
use crate::model::map::SharedMap;
use crate::model::resolve::Wanted;
use protocol::message::{
    AdapterStatus, Changes, Delta, Named, OpeningStatus, PoolStatus, Selection, Status, UnitStatus,
    UplinkStatus, VolumeStatus,
};
use spec::VolumeKind;
use std::collections::{BTreeMap, BTreeSet};

/// Names of what there is to compare.
pub type Names = BTreeSet<Subject>;

/// What a data plane has, as it said.
#[derive(Debug, Clone, Default)]
pub struct Inventory {
    volumes: BTreeMap<String, VolumeStatus>,
    units: BTreeMap<String, UnitStatus>,
    adapters: BTreeMap<String, AdapterStatus>,
    uplinks: BTreeMap<String, UplinkStatus>,
    pools: BTreeMap<String, PoolStatus>,
    opening: Vec<OpeningStatus>,
}

impl Inventory {
    /// What has changed by what a data plane said of itself. Volumes that are being opened are among it.
    pub fn hear(&mut self, changes: Changes) -> Names {
        let mut names = Names::new();
        take(&mut self.volumes, changes.volumes, Subject::Volume, &mut names);
        take(&mut self.units, changes.units, Subject::Unit, &mut names);
        take(&mut self.adapters, changes.adapters, Subject::Adapter, &mut names);
        take(&mut self.uplinks, changes.uplinks, Subject::Uplink, &mut names);
        take(&mut self.pools, changes.pools, Subject::Pool, &mut names);
        let before = std::mem::replace(&mut self.opening, changes.opening);
        let opening = before.iter().chain(&self.opening);
        names.extend(opening.map(|opening| Subject::Volume(opening.name.clone())));
        names
    }

    /// A volume that is open.
    pub fn volume(&self, name: &str) -> Option<&VolumeStatus> {
        self.volumes.get(name)
    }

    /// All volumes that are open.
    pub fn volumes(&self) -> impl Iterator<Item = &VolumeStatus> {
        self.volumes.values()
    }

    /// A logical unit.
    pub fn unit(&self, name: &str) -> Option<&UnitStatus> {
        self.units.get(name)
    }

    /// An adapter.
    pub fn adapter(&self, name: &str) -> Option<&AdapterStatus> {
        self.adapters.get(name)
    }

    /// An uplink.
    pub fn uplink(&self, name: &str) -> Option<&UplinkStatus> {
        self.uplinks.get(name)
    }

    /// A storage pool that is open.
    pub fn pool(&self, name: &str) -> Option<&PoolStatus> {
        self.pools.get(name)
    }

    /// What of it has these names.
    fn part(&self, about: &Names) -> Status {
        let mut part = Status::default();
        for subject in about {
            match subject {
                Subject::Volume(name) => part.volumes.extend(self.volumes.get(name).cloned()),
                Subject::Unit(name) => part.units.extend(self.units.get(name).cloned()),
                Subject::Adapter(name) => part.adapters.extend(self.adapters.get(name).cloned()),
                Subject::Uplink(name) => part.uplinks.extend(self.uplinks.get(name).cloned()),
                Subject::Pool(name) => part.pools.extend(self.pools.get(name).cloned()),
                Subject::Port(_) => {}
            }
        }
        let named =
            |opening: &&OpeningStatus| about.contains(&Subject::Volume(opening.name.clone()));
        part.opening = self.opening.iter().filter(named).cloned().collect();
        part
    }

    /// What stands on volumes that are closed, or shows units that go: all of it is looked at, which only what goes for good or is made
    /// anew costs.
    fn above(&self, going: &Going<'_>, about: &mut Names) {
        let on = |unit: &&UnitStatus| {
            let volume = unit.spec.volume.as_deref();
            volume.is_some_and(|volume| going.volumes.contains(volume))
        };
        if !going.volumes.is_empty() {
            let units = self.units.values().filter(on);
            about.extend(units.map(|unit| Subject::Unit(unit.spec.name.clone())));
        }
        if !going.volumes.is_empty() || !going.units.is_empty() {
            let adapters = self.adapters.values().filter(|adapter| {
                stands_on(&adapter.spec, &going.volumes) || shows(&adapter.spec, &going.units)
            });
            about.extend(adapters.map(|adapter| Subject::Adapter(adapter.spec.name.clone())));
        }
    }
}

/// Takes one list of what changed.
fn take<T: Named>(
    all: &mut BTreeMap<String, T>,
    delta: Delta<T>,
    subject: fn(String) -> Subject,
    names: &mut Names,
) {
    for name in delta.gone {
        all.remove(&name);
        names.insert(subject(name));
    }
    for one in delta.now {
        names.insert(subject(one.name().to_owned()));
        all.insert(one.name().to_owned(), one);
    }
}

/// What of it has these names.
fn part_of(wanted: &Wanted, about: &Names) -> Wanted {
    let mut part = Wanted::default();
    for subject in about {
        match subject {
            Subject::Volume(name) => part.volumes.extend(entry(&wanted.volumes, name)),
            Subject::Unit(name) => part.units.extend(entry(&wanted.units, name)),
            Subject::Adapter(name) => part.adapters.extend(entry(&wanted.adapters, name)),
            Subject::Uplink(name) => part.uplinks.extend(entry(&wanted.uplinks, name)),
            Subject::Pool(name) => part.pools.extend(entry(&wanted.pools, name)),
            Subject::Port(_) => {}
        }
    }
    part
}

fn entry<T: Clone>(all: &SharedMap<T>, name: &str) -> Option<(String, T)> {
    all.get_key_value(name).map(|(name, one)| (name.clone(), one.clone()))
}

/// What two of them differ in. What they share is not looked at.
pub fn differences(before: &Wanted, after: &Wanted) -> Names {
    let mut names = Names::new();
    differ(&before.volumes, &after.volumes, Subject::Volume, &mut names);
    differ(&before.units, &after.units, Subject::Unit, &mut names);
    differ(&before.adapters, &after.adapters, Subject::Adapter, &mut names);
    differ(&before.uplinks, &after.uplinks, Subject::Uplink, &mut names);
    differ(&before.pools, &after.pools, Subject::Pool, &mut names);
    names
}

fn differ<T: Clone + PartialEq>(
    before: &SharedMap<T>,
    after: &SharedMap<T>,
    subject: fn(String) -> Subject,
    names: &mut Names,
) {
    let differences = before.differences(after).into_iter();
    names.extend(differences.map(|difference| subject(difference.name().to_owned())));
}

/// What is asked for to compare these. With an LU goes its pool; a pool that a PV leaves is looked at until that is gone.
pub fn selection(about: &Names, wanted: &Wanted) -> Selection {
    let mut of = Selection::default();
    let leaving = wanted.pools.iter().filter(|(_, pool)| !pool.leaving.is_empty());
    let mut pools: BTreeSet<String> = leaving.map(|(name, _)| name.clone()).collect();
    for subject in about {
        match subject {
            Subject::Volume(name) => {
                if let Some(VolumeKind::Lu(lu)) = wanted.volumes.get(name).map(|spec| &spec.kind) {
                    pools.insert(lu.pool.clone());
                }
                of.volumes.push(name.clone());
            }
            Subject::Unit(name) => of.units.push(name.clone()),
            Subject::Adapter(name) => of.adapters.push(name.clone()),
            Subject::Uplink(name) => of.uplinks.push(name.clone()),
            Subject::Pool(name) => drop(pools.insert(name.clone())),
            Subject::Port(_) => {}
        }
    }
    Selection { pools: pools.into_iter().collect(), ..of }
}

/// As [`reconcile`], where everything but what is named is as it shall be.
pub fn reconcile_of(wanted: &Wanted, has: &Inventory, about: &Names) -> Vec<Action> {
    let mut about = about.clone();
    // Units follow the volumes that they are on, and clients the units that they see.
    for _ in 0..2 {
        let (part, status) = (part_of(wanted, &about), has.part(&about));
        let mut above = Names::new();
        has.above(&Actual::of(&status).going(&part), &mut above);
        about.extend(above);
    }
    reconcile(&part_of(wanted, &about), &has.part(&about))
}

#[cfg(test)]
mod tests;
