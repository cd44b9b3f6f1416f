//! The SCSI host device of an adapter: its LUN map, its command pool, what its driver has set.

use std::sync::{Arc, Mutex, OnceLock, Weak};

use block::{DEPTH_CLIENT, Limited, Limiter, Volume};
use device_scsi::config::{self, CDB_SIZE_OFFSET, CONFIG_BYTES, Offer, SENSE_SIZE_OFFSET, feature};
use device_scsi::{Behind, CommandPool, LunMap, ScsiLimits, ScsiRole, Services, Sizes, event};
use protocol::message::{AdapterSpec, CommandSpec, LimitSpec, ScsiSpec};
use scsi::{Attention, LogicalUnit, Lun, Nexus, NexusId};

use super::{Event, NewLuns, Written};
use crate::adapter::Means;
use crate::luns::{Change, Place, Units, View};
use crate::session::locked;
use crate::units::Medium;

/// CAPACITY DATA HAS CHANGED.
const CAPACITY_CHANGED: u16 = 0x2a09;

pub(crate) struct ScsiDevice {
    queues: u16,
    /// How the channels know it.
    adapter: OnceLock<Weak<channel::Adapter>>,
    services: Arc<Services>,
    state: Mutex<State>,
}

struct State {
    terms: Terms,
    view: View,
    /// None while a unit waits for another volume.
    map: Option<Arc<LunMap>>,
    sizes: Sizes,
    features: u64,
}

/// What the client's commands may take.
#[derive(Clone)]
struct Terms {
    commands: CommandSpec,
    limit: Option<LimitSpec>,
    /// The client's limits, all its units together.
    limiter: Option<Limiter>,
    pool: Arc<CommandPool>,
}

impl Terms {
    fn new(scsi: &ScsiSpec, queues: u16) -> Terms {
        let limiter = scsi.limit.filter(|limit| !limit.is_none()).as_ref().map(Limiter::new);
        let pool = Arc::new(CommandPool::new(divide(&scsi.commands, queues).shared));
        Terms { commands: scsi.commands, limit: scsi.limit, limiter, pool }
    }

    fn limited(&self, volume: &Arc<dyn Volume>) -> Arc<dyn Volume> {
        match &self.limiter {
            None => Arc::clone(volume),
            Some(limiter) => Arc::new(Limited::sharing(Arc::clone(volume), limiter, DEPTH_CLIENT)),
        }
    }
}

impl ScsiDevice {
    pub(super) fn new(
        spec: &AdapterSpec,
        scsi: &ScsiSpec,
        units: &Units,
        means: &Means,
    ) -> Result<Arc<ScsiDevice>, String> {
        let services = |device: &Weak<ScsiDevice>| Services {
            off_path: means.steward.errands(device.clone()),
            region: Some(Arc::clone(&means.stats)),
        };
        let device = Arc::new_cyclic(|device| ScsiDevice {
            queues: spec.queues,
            adapter: OnceLock::new(),
            services: Arc::new(services(device)),
            state: Mutex::new(State {
                terms: Terms::new(scsi, spec.queues),
                view: View::default(),
                map: None,
                sizes: Sizes::default(),
                features: 0,
            }),
        });
        device.set_units(scsi, units)?;
        Ok(device)
    }

    /// How the channels know it, once they do.
    pub(crate) fn known_as(&self, adapter: &Arc<channel::Adapter>) {
        let known = self.adapter.set(Arc::downgrade(adapter));
        debug_assert!(known.is_ok(), "a device has one adapter");
    }

    pub(crate) fn adapter(&self) -> Option<Arc<channel::Adapter>> {
        self.adapter.get()?.upgrade()
    }

    /// Whether a specification has other bounds or limits for the client's commands.
    pub(crate) fn has_other_terms(&self, spec: &ScsiSpec) -> bool {
        let state = locked(&self.state);
        (state.terms.commands, state.terms.limit) != (spec.commands, spec.limit)
    }

    /// Takes over bounds and limits, with no queue running.
    pub(crate) fn set_terms(&self, spec: &ScsiSpec) -> Result<Vec<Event>, String> {
        let mut state = locked(&self.state);
        let now = Terms::new(spec, self.queues);
        let State { terms, view, map, .. } = &mut *state;
        if now.limit == terms.limit {
            // What was taken from the limits stays taken.
            *terms = Terms { limiter: terms.limiter.take(), ..now };
        } else {
            *terms = now;
            view.limit_anew(|volume| terms.limited(volume));
        }
        if map.is_some() {
            *map = Some(Arc::new(view.map()?));
        }
        Ok(Vec::new())
    }

    /// Takes over units, with no queue running; lets go of the volumes of those that wait for another. Which events the client gets.
    pub(crate) fn set_units(&self, spec: &ScsiSpec, units: &Units) -> Result<Vec<Event>, String> {
        if units.values().any(|unit| matches!(unit.medium, Medium::Awaited)) {
            let mut state = locked(&self.state);
            state.map = None;
            state.view.let_go(units);
            return Ok(Vec::new());
        }
        let luns = self.new_luns(spec, units)?;
        self.set_luns(&luns);
        Ok(self.announce(&luns.change))
    }

    /// What other targets or media mean, for a client that goes on.
    pub(crate) fn new_luns(&self, spec: &ScsiSpec, units: &Units) -> Result<NewLuns, String> {
        let (terms, before) = {
            let state = locked(&self.state);
            (state.terms.clone(), state.view.clone())
        };
        let view = View::new(spec, units, &before, |volume| terms.limited(volume))?;
        let map = Arc::new(view.map()?);
        let change = before.change(&view);
        Ok(NewLuns { map, view, change })
    }

    /// The map that queues have or start with.
    pub(crate) fn map(&self) -> Option<Arc<LunMap>> {
        locked(&self.state).map.clone()
    }

    /// The channels have the new map.
    pub(crate) fn set_luns(&self, luns: &NewLuns) {
        let mut state = locked(&self.state);
        state.map = Some(Arc::clone(&luns.map));
        state.view = luns.view.clone();
    }

    /// Tells the units that stay of a change of the others, and says which events the client gets (virtio 1.3, 5.6.6.3).
    pub(crate) fn announce(&self, change: &Change) -> Vec<Event> {
        change.told.iter().for_each(|nexus| nexus.tell(Attention::LunsChanged));
        if locked(&self.state).features & feature::HOTPLUG == 0 {
            return Vec::new();
        }
        let of = |places: &[Place], reason| -> Vec<Event> {
            let lun = |place: &Place| Some((place.0, Lun::new(place.1)?));
            places
                .iter()
                .filter_map(lun)
                .map(|(target, lun)| event::reset(target, lun, reason))
                .collect()
        };
        let gone = of(&change.gone, event::Reset::Removed);
        gone.into_iter().chain(of(&change.come, event::Reset::Rescan)).collect()
    }

    pub(super) fn capacity_events(&self, units: &[String]) -> Vec<Event> {
        let state = locked(&self.state);
        if state.features & feature::CHANGE == 0 {
            return Vec::new();
        }
        let places = units.iter().flat_map(|unit| state.view.places_of(unit));
        let event =
            |(target, lun): Place| Some(event::changed(target, Lun::new(lun)?, CAPACITY_CHANGED));
        places.filter_map(event).collect()
    }

    pub(super) fn config_space(&self, spec: &AdapterSpec) -> [u8; CONFIG_BYTES] {
        let commands = locked(&self.state).terms.commands;
        let sectors = commands.max_xfer_bytes / 512;
        let offer = Offer {
            queues: self.queues,
            seg_max: spec.seg_max,
            max_sectors: u32::try_from(sectors).unwrap_or(u32::MAX).max(8),
            cmd_per_lun: u32::from(commands.queue_depth).max(1),
            // A target may come later, under any number.
            max_target: u8::MAX,
            max_lun: Lun::MAX,
        };
        config::space(&offer, &locked(&self.state).sizes)
    }

    pub(super) fn set_config(&self, offset: usize, bytes: &[u8]) -> Written {
        let Ok(word) = bytes.try_into().map(u32::from_le_bytes) else { return Written::No };
        let mut state = locked(&self.state);
        let (cdb, sense) = (u32::from(state.sizes.cdb()), u32::from(state.sizes.sense()));
        let sizes = match offset {
            SENSE_SIZE_OFFSET => Sizes::new(cdb, word),
            CDB_SIZE_OFFSET => Sizes::new(word, sense),
            _ => None,
        };
        let Some(sizes) = sizes else { return Written::No };
        state.sizes = sizes;
        Written::WithNewQueues
    }

    pub(super) fn negotiated(&self, features: u64) {
        locked(&self.state).features = features;
    }

    pub(super) fn feature_names(&self) -> Vec<&'static str> {
        let features = locked(&self.state).features;
        let named = [(feature::HOTPLUG, "hotplug"), (feature::CHANGE, "change")];
        named.into_iter().filter(|(bit, _)| features & bit != 0).map(|(_, name)| name).collect()
    }

    /// The I_T nexuses are lost (SAM-5, 6.3.4), as when a host bus adapter is reset; the sizes are the usual ones.
    pub(super) fn reset(&self) {
        let mut state = locked(&self.state);
        state.sizes = Sizes::default();
        state.view.entries.values().for_each(|seen| seen.nexus.lost());
    }

    pub(super) fn is_ready(&self) -> bool {
        locked(&self.state).map.is_some()
    }

    pub(super) fn behind(&self, index: u16, features: u64) -> Option<Behind> {
        let state = locked(&self.state);
        let role = match index {
            0 => ScsiRole::Control,
            1 => ScsiRole::Event,
            _ => ScsiRole::Request,
        };
        let Terms { commands: spec, pool, .. } = &state.terms;
        let Division { local, commands, .. } = divide(spec, self.queues);
        let limits = ScsiLimits {
            commands,
            local,
            buffers: u16::try_from(spec.bufs_per_cmd).unwrap_or(u16::MAX),
            functions: u16::try_from(spec.num_sp_cmd_elem).unwrap_or(u16::MAX),
            inout: features & feature::INOUT != 0,
            sizes: state.sizes,
        };
        let luns = Arc::clone(state.map.as_ref()?);
        let (pool, services) = (Arc::clone(pool), Arc::clone(&self.services));
        Some(Behind { role, luns, pool, limits, services })
    }

    /// The nexus at a LUN.
    pub(crate) fn nexus(&self, target: u8, lun: Lun) -> Option<Arc<Nexus>> {
        let state = locked(&self.state);
        state.view.entries.get(&(target, lun.number())).map(|seen| Arc::clone(&seen.nexus))
    }

    /// The nexuses at a target.
    pub(crate) fn nexuses(&self, target: u8) -> Vec<Arc<Nexus>> {
        let state = locked(&self.state);
        let of_target = state.view.entries.range((target, 0)..=(target, u16::MAX));
        of_target.map(|(_, seen)| Arc::clone(&seen.nexus)).collect()
    }

    /// Who this client is to a unit.
    pub(crate) fn ids_with(&self, unit: &Arc<LogicalUnit>) -> Vec<NexusId> {
        let state = locked(&self.state);
        let seen = state.view.entries.values().filter(|seen| Arc::ptr_eq(seen.unit(), unit));
        seen.map(|seen| seen.nexus.id()).collect()
    }
}

/// How the commands of an adapter are divided: so that all queues together never have more than `num_cmd_elems` active, and one queue
/// alone can have its own and all that are shared.
struct Division {
    /// A queue's own.
    local: u16,
    /// Shared by all.
    shared: u32,
    /// The most of a queue.
    commands: u16,
}

fn divide(spec: &CommandSpec, queues: u16) -> Division {
    let queues = u32::from(queues.max(1));
    let clip = |number: u32| u16::try_from(number).unwrap_or(u16::MAX);
    let local = clip(spec.num_local_cmds.min(spec.num_cmd_elems / queues)).max(1);
    let shared = spec.num_cmd_elems.saturating_sub(queues.saturating_mul(u32::from(local)));
    let commands = clip(shared.saturating_add(u32::from(local)));
    Division { local, shared, commands }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_commands_of_an_adapter_are_divided_over_its_queues() {
        let spec = |all, local| CommandSpec {
            num_cmd_elems: all,
            num_local_cmds: local,
            bufs_per_cmd: 1,
            ..CommandSpec::default()
        };
        for (all, local, queues, expected) in [
            (200, 32, 4, (32, 72, 104)),
            (200, 64, 4, (50, 0, 50)),
            (200, 64, 1, (64, 136, 200)),
            (2, 64, 4, (1, 0, 1)),
            (1 << 20, 1 << 20, 1, (u16::MAX, (1 << 20) - 65535, u16::MAX)),
        ] {
            let Division { local, shared, commands } = divide(&spec(all, local), queues);
            assert_eq!((local, shared, commands), expected);
        }
    }
}
