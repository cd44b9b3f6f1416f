//! What to tell a data plane so that it becomes what it shall be.
//!
//! [`reconcile`] is pure: the wanted objects and the data plane's own account of itself go in, the
//! actions come out in an order in which each is allowed when its turn comes:
//!
//! 1. adapters go that are not wanted, or that stand in the way of a change;
//! 2. clients lose LUNs, and optical drives media, that are to go or to be made anew;
//! 3. units, then volumes, go that are not wanted, or that must be made anew;
//! 4. storage pools go, come, lose LUs, or get and lose PVs; volumes come, change their limits, change their size, or, of disks behind an HBA, their path;
//! 5. units come; drives get other media;
//! 6. uplinks go, come or change: they depend on nothing;
//! 7. adapters come or change.
//!
//! Promises, which the tests hold it to: carrying out all actions reaches the wanted objects; then
//! there are no more actions; and an adapter that is as wanted, on volumes and units that are as wanted, is
//! not touched. So adopting a running data plane interrupts nothing.
//!
//! [`reconcile_of`] is the same for what has changed since.

mod inventory;

pub use inventory::{Inventory, Names, differences, reconcile_of, selection};

use crate::model::discovered::naa_of_unit;
use crate::model::resolve::Wanted;
use protocol::message::{
    AdapterSpec, AdapterState, AdapterStatus, DeviceSpec, PoolSpec, PoolStatus, Request, Status,
    UnitSpec, UplinkSpec, UplinkStatus, VolumeSpec, VolumeStatus,
};
use spec::{Change, change};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// One message to the data plane, and whom it is about.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Disconnect and remove an adapter.
    RemoveAdapter(String),
    /// Remove a logical unit.
    RemoveUnit(String),
    /// Close a volume.
    RemoveVolume {
        /// Which.
        name: String,
        /// It does not come again, and neither do the registrations of clients with it as a logical unit.
        forget: bool,
    },
    /// Open a volume, or change its limits.
    PutVolume(VolumeSpec),
    /// Change a volume's capacity.
    ResizeVolume {
        /// Which.
        name: String,
        /// The new capacity.
        bytes: u64,
        /// It becomes smaller; the user allowed that when the size was accepted.
        shrink: bool,
    },
    /// Make a logical unit, or change its medium.
    PutUnit(UnitSpec),
    /// Make an adapter, or change it.
    PutAdapter(AdapterSpec),
    /// Disconnect an uplink.
    RemoveUplink(String),
    /// Connect an uplink, or change it.
    PutUplink(UplinkSpec),
    /// Close a storage pool.
    RemovePool(String),
    /// Open a storage pool, or say which LUs go and which PVs it has.
    PutPool(PoolSpec),
}

impl Action {
    /// The message.
    pub fn request(&self) -> Request {
        match self.clone() {
            Action::RemoveAdapter(name) => Request::RemoveAdapter { name },
            Action::RemoveUnit(name) => Request::RemoveUnit { name },
            Action::PutUnit(spec) => Request::PutUnit(spec),
            Action::RemoveVolume { name, forget } => Request::RemoveVolume { name, forget },
            Action::PutVolume(spec) => Request::PutVolume(spec),
            Action::ResizeVolume { name, bytes, shrink } => {
                Request::ResizeVolume { name, bytes, shrink }
            }
            Action::PutAdapter(spec) => Request::PutAdapter(spec),
            Action::RemoveUplink(name) => Request::RemoveUplink { name },
            Action::PutUplink(spec) => Request::PutUplink(spec),
            Action::RemovePool(name) => Request::RemovePool { name },
            Action::PutPool(spec) => Request::PutPool(spec),
        }
    }

    /// What it is about.
    pub fn subject(&self) -> Subject {
        match self {
            Action::RemoveAdapter(name) => Subject::Adapter(name.clone()),
            Action::RemoveVolume { name, .. } | Action::ResizeVolume { name, .. } => {
                Subject::Volume(name.clone())
            }
            Action::PutVolume(spec) => Subject::Volume(spec.name.clone()),
            Action::RemoveUnit(name) => Subject::Unit(name.clone()),
            Action::PutUnit(spec) => Subject::Unit(spec.name.clone()),
            Action::PutAdapter(spec) => Subject::Adapter(spec.name.clone()),
            Action::RemoveUplink(name) => Subject::Uplink(name.clone()),
            Action::PutUplink(spec) => Subject::Uplink(spec.name.clone()),
            Action::RemovePool(name) => Subject::Pool(name.clone()),
            Action::PutPool(spec) => Subject::Pool(spec.name.clone()),
        }
    }
}

/// A volume, a unit, an adapter or an uplink by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Subject {
    /// A storage pool.
    Pool(String),
    /// A volume.
    Volume(String),
    /// A logical unit.
    Unit(String),
    /// An adapter.
    Adapter(String),
    /// A port, which a data plane knows by its adapters.
    Port(String),
    /// An uplink.
    Uplink(String),
}

/// What is there, by name.
struct Actual<'a> {
    volumes: BTreeMap<&'a str, &'a VolumeStatus>,
    units: BTreeMap<&'a str, &'a UnitSpec>,
    adapters: BTreeMap<&'a str, &'a AdapterStatus>,
    /// Volumes that are being opened.
    opening: BTreeSet<&'a str>,
}

/// What of it goes, to stay away or to be made anew.
struct Going<'a> {
    volumes: BTreeSet<&'a str>,
    units: BTreeSet<&'a str>,
    adapters: BTreeSet<&'a str>,
}

impl<'a> Actual<'a> {
    fn of(status: &'a Status) -> Actual<'a> {
        let adapters = status.adapters.iter().map(|status| (status.spec.name.as_str(), status));
        Actual {
            volumes: status.volumes.iter().map(|v| (v.spec.name.as_str(), v)).collect(),
            units: status.units.iter().map(|u| (u.spec.name.as_str(), &u.spec)).collect(),
            adapters: adapters.collect(),
            opening: status.opening.iter().map(|opening| opening.name.as_str()).collect(),
        }
    }

    fn going(&self, wanted: &Wanted) -> Going<'a> {
        let volumes = self.volumes.iter().filter(|(name, status)| {
            wanted.volumes.get(name).is_none_or(|spec| must_reopen(&status.spec, spec))
        });
        let given_up =
            self.opening.iter().copied().filter(|name| !wanted.volumes.contains_key(name));
        let volumes: BTreeSet<&str> = volumes.map(|(name, _)| *name).chain(given_up).collect();
        let units = self.units.iter().filter(|(name, unit)| {
            wanted.units.get(name).is_none_or(|spec| must_renew(spec, unit, &volumes))
        });
        let units = units.map(|(name, _)| *name).collect();
        let adapters = self.adapters.iter().filter(|(name, status)| {
            wanted
                .adapters
                .get(name)
                .is_none_or(|spec| change::adapter(&status.spec, spec) == Change::Recreate)
                || stands_on(&status.spec, &volumes)
                || status.state == AdapterState::Failed
        });
        let adapters = adapters.map(|(name, _)| *name).collect();
        Going { volumes, units, adapters }
    }
}

/// The actions that make `actual` what is `wanted`.
pub fn reconcile(wanted: &Wanted, actual: &Status) -> Vec<Action> {
    let (uplinks_now, pools_now) = (&actual.uplinks, &actual.pools);
    let actual = Actual::of(actual);
    let Going { volumes: reopened, units: renewed, adapters: remade } = actual.going(wanted);
    let Actual { volumes, units, adapters, .. } = actual;
    let mut actions: Vec<Action> = Vec::new();
    actions.extend(remade.iter().map(|name| Action::RemoveAdapter((*name).to_owned())));
    let mut specs: BTreeMap<&str, Cow<'_, AdapterSpec>> = BTreeMap::new();
    for (name, status) in adapters.iter().filter(|(name, _)| !remade.contains(**name)) {
        let spec = if shows(&status.spec, &renewed) {
            let spec = without(&status.spec, &renewed);
            actions.push(Action::PutAdapter(spec.clone()));
            Cow::Owned(spec)
        } else {
            Cow::Borrowed(&*status.spec)
        };
        specs.insert(name, spec);
    }
    let mut kept: BTreeMap<&str, UnitSpec> = BTreeMap::new();
    for (name, unit) in units.iter().filter(|(name, _)| !renewed.contains(**name)) {
        let mut unit = (*unit).clone();
        if unit.volume.as_deref().is_some_and(|volume| reopened.contains(volume)) {
            unit.volume = None;
            actions.push(Action::PutUnit(unit.clone()));
        }
        kept.insert(name, unit);
    }
    actions.extend(renewed.iter().map(|name| Action::RemoveUnit((*name).to_owned())));
    actions.extend(reopened.iter().map(|name| {
        // A disk that an HBA has lost may come again, and those who were shut out of it with it.
        let forget = !wanted.volumes.contains_key(name) && naa_of_unit(name).is_none();
        Action::RemoveVolume { name: (*name).to_owned(), forget }
    }));
    actions.extend(pools(wanted, pools_now));
    for (name, spec) in &wanted.volumes {
        match volumes.get(name.as_str()).filter(|_| !reopened.contains(name.as_str())) {
            None => {
                actions.push(Action::PutVolume(spec.clone()));
                actions.extend(resized_since(spec));
            }
            Some(status) => actions.extend(change_volume(spec, status)),
        }
    }
    let unit_changes =
        wanted.units.iter().filter(|(name, spec)| kept.get(name.as_str()) != Some(spec));
    actions.extend(unit_changes.map(|(_, spec)| Action::PutUnit(spec.clone())));
    actions.extend(uplinks(wanted, uplinks_now));
    // One that is as it shall be may be about to become what it was to be before.
    let becoming = |name: &str| adapters.get(name).is_some_and(|status| status.becoming);
    let changes = wanted.adapters.iter().filter(|(name, spec)| {
        specs.get(name.as_str()).map(|now| &**now) != Some(*spec) || becoming(name)
    });
    actions.extend(changes.map(|(_, spec)| Action::PutAdapter(spec.clone())));
    actions
}

/// Which storage pools go and come, and which LUs and PVs go and come of those that stay.
fn pools(wanted: &Wanted, actual: &[PoolStatus]) -> Vec<Action> {
    let now: BTreeMap<&str, &PoolSpec> =
        actual.iter().map(|status| (status.spec.name.as_str(), &status.spec)).collect();
    // What is told of an opening says nothing about a pool that is open.
    let same = |now: &PoolSpec, then: &PoolSpec| {
        // What was asked for was made, or is being made.
        let asked = then.snapshots.iter().all(|one| now.snapshots.contains(one));
        let snapshots = if asked { &now.snapshots } else { &then.snapshots }.clone();
        PoolSpec { fresh: now.fresh, joining: now.joining.clone(), snapshots, ..then.clone() }
            == *now
    };
    let other = |now: &PoolSpec, then: &PoolSpec| {
        let PoolSpec { pvs, mirror, tiers, placed, leaving, doomed, snapshots, .. } = now.clone();
        let full = now.full.clone();
        let then = PoolSpec { pvs, mirror, tiers, placed, full, ..then.clone() };
        !same(now, &PoolSpec { leaving, doomed, snapshots, ..then })
    };
    let goes =
        now.iter().filter(|(name, now)| wanted.pools.get(name).is_none_or(|then| other(now, then)));
    let go = goes.map(|(name, _)| Action::RemovePool((*name).to_owned()));
    let comes = wanted
        .pools
        .values()
        .filter(|then| now.get(then.name.as_str()).is_none_or(|now| !same(now, then)));
    go.chain(comes.map(|then| Action::PutPool(then.clone()))).collect()
}

/// What of the uplinks goes, for good or to be made anew, and what comes or changes.
fn uplinks(wanted: &Wanted, actual: &[UplinkStatus]) -> Vec<Action> {
    let recreates = |now: &UplinkSpec| {
        let then = wanted.uplinks.get(&now.name);
        then.is_none_or(|then| change::uplink(now, then) == Change::Recreate)
    };
    let specs = actual.iter().map(|status| &status.spec);
    let (going, staying): (Vec<_>, Vec<_>) = specs.partition(|now| recreates(now));
    let go = going.into_iter().map(|now| Action::RemoveUplink(now.name.clone()));
    let others = wanted.uplinks.values().filter(|then| !staying.contains(then));
    go.chain(others.map(|then| Action::PutUplink(then.clone()))).collect()
}

/// Whether a volume must be closed and opened again. The disk of an HBA is told by its name, so that another path leads to the same one, and
/// its clients stay where they are.
fn must_reopen(now: &VolumeSpec, then: &VolumeSpec) -> bool {
    let same_disk = naa_of_unit(&now.name).is_some() && change::moves(now, then);
    change::volume(now, then) >= Change::Reopen && !same_disk
}

/// Whether a unit must be made again: it is another one, or the volume of a disk is opened anew.
fn must_renew(wanted: &UnitSpec, actual: &UnitSpec, reopened: &BTreeSet<&str>) -> bool {
    // A drive gives its medium away; a disk has got its volume once.
    let empty = UnitSpec { volume: None, ..actual.clone() };
    let gives_away = change::unit(actual, &empty) <= Change::Live;
    let opened_anew = actual.volume.as_deref().is_some_and(|volume| reopened.contains(volume));
    change::unit(actual, wanted) == Change::Recreate || opened_anew && !gives_away
}

/// Whether an adapter's disk is one of these volumes.
fn stands_on(spec: &AdapterSpec, volumes: &BTreeSet<&str>) -> bool {
    spec.block().is_some_and(|block| volumes.contains(block.volume.as_str()))
}

/// Whether an adapter's client sees one of these units.
fn shows(spec: &AdapterSpec, units: &BTreeSet<&str>) -> bool {
    let targets =
        spec.scsi().filter(|_| !units.is_empty()).into_iter().flat_map(|scsi| &scsi.targets);
    targets.flat_map(|target| target.luns.values()).any(|unit| units.contains(unit.as_str()))
}

/// An adapter whose client does not see these units.
pub(crate) fn without(spec: &AdapterSpec, units: &BTreeSet<&str>) -> AdapterSpec {
    let mut spec = spec.clone();
    if let DeviceSpec::Scsi(scsi) = &mut spec.device {
        for target in &mut scsi.targets {
            target.luns.retain(|_, unit| !units.contains(unit.as_str()));
        }
    }
    spec
}

/// A volume that was given another size while no data plane had it is opened with the one that it has, and then resized.
fn resized_since(spec: &VolumeSpec) -> Option<Action> {
    let (bytes, before) = (spec.bytes?, spec.kind.identity()?.bytes());
    (bytes != before).then(|| Action::ResizeVolume {
        name: spec.name.clone(),
        bytes,
        shrink: bytes < before,
    })
}

/// What changes of a volume that stays open: how it behaves, then its size.
fn change_volume(wanted: &VolumeSpec, actual: &VolumeStatus) -> Vec<Action> {
    let mut actions = Vec::new();
    // The size goes its own way: with it, this would be a change that needs the volume closed.
    let spec = VolumeSpec { bytes: actual.spec.bytes, ..wanted.clone() };
    if change::volume(&actual.spec, &spec) != Change::Same {
        actions.push(Action::PutVolume(spec));
    }
    if let Some(bytes) = wanted.bytes.filter(|bytes| *bytes != actual.bytes) {
        let shrink = bytes < actual.bytes;
        actions.push(Action::ResizeVolume { name: wanted.name.clone(), bytes, shrink });
    }
    actions
}

#[cfg(test)]
mod tests;
