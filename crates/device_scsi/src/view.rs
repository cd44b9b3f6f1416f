//! [`View`]: the targets and LUNs that one client sees, what changes between two of them, and the LUN map for the channels.
//!
//! An entry that stays keeps its nexus, and with it its reservations, its unit attentions and its commands. Entries are the same when
//! target, LUN, target port and unit are.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::Volume;
use protocol::message::ScsiSpec;
use scsi::{LogicalUnit, Lun, Nexus, NexusId};

use crate::units::{Medium, Unit, initiator_id};
use crate::{LunEntry, LunMap, Target};

/// A target and a LUN of it.
pub(crate) type Place = (u8, u16);

/// The units that a specification names.
pub type Units = BTreeMap<String, Unit>;

/// An entry of a view.
#[derive(Clone)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) nexus: Arc<Nexus>,
    /// The target port.
    port: (u16, Option<u64>),
    /// The unit's volume, as the registry has it, and with the client's limits around it.
    volume: Option<(Arc<dyn Volume>, Arc<dyn Volume>)>,
}

impl Seen {
    pub(crate) fn unit(&self) -> &Arc<LogicalUnit> {
        self.nexus.unit()
    }

    /// Whether it was becoming ready as what another one is.
    fn becomes(&self, other: &Seen) -> bool {
        self.unit().is_awaited() && (&self.name, self.port) == (&other.name, other.port)
    }

    fn is(&self, unit: &Unit, port: (u16, Option<u64>)) -> bool {
        Arc::ptr_eq(self.unit(), &unit.unit) && self.port == port
    }
}

/// What a client sees.
#[derive(Clone, Default)]
pub(crate) struct View {
    targets: Vec<u8>,
    pub(crate) entries: BTreeMap<Place, Seen>,
}

/// What another view is for the client.
#[derive(Default)]
pub(crate) struct Change {
    /// Places where nothing is any more, or something else.
    pub(crate) gone: Vec<Place>,
    /// Places where something new is.
    pub(crate) come: Vec<Place>,
    /// Places where a unit is ready that was becoming so. To the client it is the same one.
    pub(crate) ready: Vec<Place>,
    /// Entries that stay, at targets where something came or went.
    pub(crate) told: Vec<Arc<Nexus>>,
}

impl View {
    /// What a specification shows. `before`: what the client saw; `limited` puts its limits around a volume.
    ///
    /// # Errors
    ///
    /// When the specification names a unit that is not there, or a number that is none.
    pub(crate) fn new(
        spec: &ScsiSpec,
        units: &Units,
        before: &View,
        limited: impl Fn(&Arc<dyn Volume>) -> Arc<dyn Volume>,
    ) -> Result<View, String> {
        let mut view = View::default();
        for target in &spec.targets {
            if view.targets.contains(&target.id) {
                return Err(format!("target {} is named twice", target.id));
            }
            view.targets.push(target.id);
            let port = (target.port, target.wwpn);
            let id = NexusId { initiator: initiator_id(&spec.initiator), port: target.port };
            for (lun, name) in &target.luns {
                let unit = units.get(name).ok_or_else(|| format!("there is no unit {name}"))?;
                if Lun::new(*lun).is_none() {
                    return Err(format!("LUN {lun} is above {}", Lun::MAX));
                }
                let place = (target.id, *lun);
                let kept = before.entries.get(&place).filter(|seen| seen.is(unit, port));
                let nexus = kept.map_or_else(
                    || Arc::new(unit.unit.attach(id, target.wwpn)),
                    |seen| Arc::clone(&seen.nexus),
                );
                let volume = unit.medium.volume().map(|volume| {
                    let kept = kept.and_then(|seen| seen.volume.as_ref());
                    let same = kept.filter(|(base, _)| Arc::ptr_eq(base, volume));
                    same.cloned().unwrap_or_else(|| (Arc::clone(volume), limited(volume)))
                });
                let seen = Seen { name: name.clone(), nexus, port, volume };
                view.entries.insert(place, seen);
            }
        }
        Ok(view)
    }

    /// Keeps what the client saw before and does not see now, without its volumes: it may be there again when the link is back, and is the
    /// same then.
    pub(crate) fn remember(&mut self, before: &View) {
        for (place, seen) in &before.entries {
            self.entries.entry(*place).or_insert_with(|| Seen { volume: None, ..seen.clone() });
            if !self.targets.contains(&place.0) {
                self.targets.push(place.0);
            }
        }
        self.targets.sort_unstable();
    }

    /// Puts other limits around all volumes.
    pub(crate) fn limit_anew(&mut self, limited: impl Fn(&Arc<dyn Volume>) -> Arc<dyn Volume>) {
        for (volume, around) in self.entries.values_mut().filter_map(|seen| seen.volume.as_mut()) {
            *around = limited(volume);
        }
    }

    /// Lets go of the volumes of units that wait for another one.
    pub(crate) fn let_go(&mut self, units: &Units) {
        for seen in self.entries.values_mut() {
            if units.get(&seen.name).is_none_or(|unit| matches!(unit.medium, Medium::Awaited)) {
                seen.volume = None;
            }
        }
    }

    /// What becomes of this view for the client.
    pub(crate) fn change(&self, after: &View) -> Change {
        let pair = |place: &Place| self.entries.get(place).zip(after.entries.get(place));
        let is_ready = |place: &Place| {
            pair(place).is_some_and(|(a, b)| a.becomes(b) && !Arc::ptr_eq(&a.nexus, &b.nexus))
        };
        let stays = |place: &Place| {
            pair(place).is_some_and(|(a, b)| Arc::ptr_eq(&a.nexus, &b.nexus) || a.becomes(b))
        };
        let ready = after.entries.keys().filter(|place| is_ready(place)).copied().collect();
        let others = |view: &View| -> Vec<Place> {
            view.entries.keys().filter(|place| !stays(place)).copied().collect()
        };
        let (gone, come) = (others(self), others(after));
        let touched = |target: u8| gone.iter().chain(&come).any(|place| place.0 == target);
        let told = after
            .entries
            .iter()
            .filter(|(place, _)| stays(place) && touched(place.0))
            .map(|(_, seen)| Arc::clone(&seen.nexus))
            .collect();
        Change { gone, come, ready, told }
    }

    /// For the channels.
    pub(crate) fn map(&self) -> Result<LunMap, String> {
        let entry = |(place, seen): (&Place, &Seen)| {
            let volume = seen.volume.as_ref().map(|(_, limited)| Arc::clone(limited));
            let lun = Lun::new(place.1).expect("checked when the view was made");
            (lun, LunEntry { nexus: Arc::clone(&seen.nexus), volume })
        };
        let target = |id: &u8| Target {
            id: *id,
            luns: self.entries.range((*id, 0)..=(*id, u16::MAX)).map(entry).collect(),
        };
        LunMap::new(self.targets.iter().map(target).collect()).map_err(|error| error.to_string())
    }

    /// Where something is.
    pub(crate) fn places(&self) -> Vec<Place> {
        self.entries.keys().copied().collect()
    }

    /// Where a unit is seen.
    pub(crate) fn places_of<'a>(&'a self, unit: &'a str) -> impl Iterator<Item = Place> + 'a {
        self.entries.iter().filter(move |(_, seen)| seen.name == unit).map(|(place, _)| *place)
    }
}

#[cfg(test)]
mod tests;
