//! The SCSI host device of an adapter, as it is for the session of its client: its LUN map, its command pool, what its driver has set.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::Duration;

use block::{DEPTH_CLIENT, Limited, Limiter, Volume};
use channel::Adapter;
use channel::device::{AskChannels, Device, Making, Presence, Queues, Resized, Tell, Written};
use channel::elements::{Elements, Port};
use channel::mailbox::one_shot;
use protocol::message::{
    AdapterSpec, CommandSpec, DeviceSpec, LimitSpec, LinkSpec, PortShare, ScsiSpec,
};
use protocol::stats::{AdapterStats, StatsRegion};
use scsi::management::Function;
use scsi::{Attention, LogicalUnit, Lun, Nexus};

use crate::config::{self, CDB_SIZE_OFFSET, Offer, SENSE_SIZE_OFFSET, feature};
use crate::control::Management;
use crate::limits::Ports;
use crate::link::{Holds, Link, LinkState};
use crate::task_manager::TaskManager;
use crate::units::Medium;
use crate::view::{Change, Place, Units, View};
use crate::{
    AbortReason, Behind, LunMap, Message, OffPath, Question, ScsiHandler, ScsiLimits, ScsiRole,
    Services, Sizes, event,
};

/// CAPACITY DATA HAS CHANGED.
const CAPACITY_CHANGED: u16 = 0x2a09;

/// The number of the control queue.
const CONTROL_QUEUE: u16 = 0;
/// The number of the event queue.
const EVENT_QUEUE: u16 = 1;

/// What a data plane has once for all its SCSI devices.
#[derive(Debug)]
pub struct OfDataPlane {
    task_manager: TaskManager,
    ports: Arc<Ports>,
    holds: Arc<Holds>,
}

impl OfDataPlane {
    /// A unit that exists, and where its reservations are kept.
    pub fn add_unit(&self, unit: &Arc<LogicalUnit>, name: &str, keep: Option<PathBuf>) {
        self.task_manager.add_unit(unit, name, keep);
    }

    /// The high-water marks of a port begin again, at what is there now.
    pub fn reset_port_marks(&self, region: &StatsRegion, name: &str) {
        // Without an adapter it has no elements, and nothing that is active; its marks are there all the same.
        let port = self.ports.find(name).unwrap_or_else(|| Port::new(0));
        if let Some(mark) = region.port(name) {
            port.set_mark(mark);
            port.reset_mark();
        }
    }
}

/// The SCSI host device of an adapter.
pub struct ScsiDevice {
    queues: u16,
    ports: Arc<Ports>,
    /// How the channels know it.
    adapter: Arc<Adapter>,
    services: Arc<Services>,
    link: Arc<Link>,
    /// Where the adapter's high-water mark is, if there was a slot.
    mark: Option<AdapterStats>,
    state: Mutex<State>,
    attendance: Mutex<Attendance>,
}

/// Which of the client's queues are here. A task management function is answered when no command of its scope is left; so it waits for
/// queues that have some and do not run now.
#[derive(Debug, Default)]
pub(crate) struct Attendance {
    /// Request queues that will run.
    awaited: BTreeSet<u16>,
    /// Request queues that the client does not use, and the functions that were carried out without them.
    absent: BTreeMap<u16, Vec<Management>>,
    /// The control queue is here, and not about to stop: it waits for its functions then.
    control: bool,
    /// Functions that wait for the others.
    postponed: Vec<OffPath>,
}

/// Of one absent queue, so many functions are told apart; then they become resets of their targets.
const OWED_MAX: usize = 32;

impl Attendance {
    /// A function is carried out, and this is what it means for queues that are not here.
    pub(crate) fn owe(&mut self, function: Management) {
        if AbortReason::of(function.function).is_none() {
            return;
        }
        for owed in self.absent.values_mut() {
            if owed.contains(&function) {
                continue;
            }
            if owed.len() < OWED_MAX {
                owed.push(function);
                continue;
            }
            let of_target =
                Management { function: Function::NexusReset, lun: None, id: 0, ..function };
            owed.retain(|each| each.target != function.target);
            owed.push(of_target);
        }
    }
}

impl std::fmt::Debug for ScsiDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ScsiDevice").field("adapter", &self.adapter).finish_non_exhaustive()
    }
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
    port: Option<PortShare>,
    elements: Arc<Elements>,
}

impl Terms {
    fn new(scsi: &ScsiSpec, elements: Arc<Elements>) -> Terms {
        let limiter = scsi.limit.filter(|limit| !limit.is_none()).as_ref().map(Limiter::new);
        let (commands, limit, port) = (scsi.commands, scsi.limit, scsi.port.clone());
        Terms { commands, limit, limiter, port, elements }
    }

    fn limited(&self, volume: &Arc<dyn Volume>) -> Arc<dyn Volume> {
        match &self.limiter {
            None => Arc::clone(volume),
            Some(limiter) => Arc::new(Limited::sharing(Arc::clone(volume), limiter, DEPTH_CLIENT)),
        }
    }
}

/// An entry of the event queue.
type Event = [u8; event::EVENT_BYTES];

/// A change of the LUN map that the channels have yet to hear of.
struct NewLuns {
    map: Arc<LunMap>,
    view: View,
    change: Change,
}

/// The way to be handed in again.
pub(crate) struct Postpone<'a>(MutexGuard<'a, Attendance>);

impl Postpone<'_> {
    pub(crate) fn until_all_are_here(mut self, function: OffPath) {
        if self.0.control {
            self.0.postponed.push(function);
        }
    }
}

impl ScsiDevice {
    /// Keeps the client's queues where they are, while channels are asked: they are all here. If not, `Err`: the function has to wait, and
    /// is handed in again when they are. Without its control queue, nobody waits for it any more: then it has failed, and is gone.
    pub(crate) fn attend(&self) -> Result<MutexGuard<'_, Attendance>, Postpone<'_>> {
        let attendance = locked_attendance(&self.attendance);
        match attendance.awaited.is_empty() || memory::planted("manage-early") {
            true => Ok(attendance),
            false => Err(Postpone(attendance)),
        }
    }

    /// How the channels know it.
    pub(crate) fn adapter(&self) -> &Arc<Adapter> {
        &self.adapter
    }

    /// Whether a specification has other bounds or limits for the client's commands.
    fn has_other_terms(&self, spec: &ScsiSpec) -> bool {
        let Terms { commands, limit, port, .. } = &locked(&self.state).terms;
        (commands, limit, port) != (&spec.commands, &spec.limit, &spec.port)
    }

    /// Takes over how many command elements there are, if nothing else is different: queues may run meanwhile.
    fn set_elements(&self, spec: &ScsiSpec) {
        let Terms { commands, limit, port, elements, .. } = &mut locked(&self.state).terms;
        let num_cmd_elems = spec.commands.num_cmd_elems;
        let name = |port: &Option<PortShare>| port.as_ref().map(|port| port.name.clone());
        let others = CommandSpec { num_cmd_elems, ..*commands };
        if (others, *limit, name(port)) == (spec.commands, spec.limit, name(&spec.port)) {
            *commands = spec.commands;
            port.clone_from(&spec.port);
            *elements = self.elements(spec, Some(elements));
        }
    }

    fn elements(&self, spec: &ScsiSpec, before: Option<&Arc<Elements>>) -> Arc<Elements> {
        let elements = self.ports.elements(&spec.commands, spec.port.as_ref(), self.queues, before);
        if let (Some(region), Some(mark)) = (&self.services.region, self.mark) {
            count_for(region, mark, spec, &elements);
        }
        elements
    }

    /// Takes over bounds and limits, with no queue running.
    fn set_terms(&self, spec: &ScsiSpec) -> Result<(), String> {
        let mut state = locked(&self.state);
        let now = Terms::new(spec, self.elements(spec, Some(&state.terms.elements)));
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
        Ok(())
    }

    /// What other targets or media mean, for a client that goes on.
    fn new_luns(&self, spec: &ScsiSpec, units: &Units) -> Result<NewLuns, String> {
        let (terms, before) = {
            let state = locked(&self.state);
            (state.terms.clone(), state.view.clone())
        };
        let mut view = View::new(spec, units, &before, |volume| terms.limited(volume))?;
        if spec.link != LinkSpec::Up {
            view.remember(&before);
        }
        let map = Arc::new(view.map()?);
        let change = before.change(&view);
        Ok(NewLuns { map, view, change })
    }

    /// The map that queues have or start with.
    fn map(&self) -> Option<Arc<LunMap>> {
        locked(&self.state).map.clone()
    }

    /// The channels have the new map.
    fn set_luns(&self, luns: &NewLuns) {
        let mut state = locked(&self.state);
        state.map = Some(Arc::clone(&luns.map));
        state.view = luns.view.clone();
    }

    /// Takes the link down if a specification says so.
    fn link_down(&self, spec: &ScsiSpec) {
        if let LinkSpec::Down { hold_ms } = spec.link {
            self.link.down(Duration::from_millis(u64::from(hold_ms)));
        }
    }

    /// Whether a specification has the client on another port than it is on.
    fn is_remapped(&self, spec: &ScsiSpec) -> bool {
        let terms = &locked(&self.state).terms;
        match (&terms.port, &spec.port) {
            (Some(now), Some(then)) => now.name != then.name,
            _ => false,
        }
    }

    /// Puts it behind the device; what the client is to be told of that.
    fn set_behind(
        &self,
        spec: &ScsiSpec,
        units: &Units,
        queues: &mut dyn Queues<Message>,
    ) -> Result<Vec<Event>, String> {
        if !ScsiDevice::is_whole(units) {
            queues.with_all_stopped(&mut || {
                let mut state = locked(&self.state);
                state.map = None;
                state.view.let_go(units);
            });
            return Ok(Vec::new());
        }
        self.set_elements(spec);
        if self.has_other_terms(spec) {
            let mut set = Ok(());
            queues.with_all_stopped(&mut || set = self.set_terms(spec));
            set?;
        }
        let luns = self.new_luns(spec, units)?;
        match self.map() {
            Some(before) => {
                ScsiDevice::exchange_luns(queues, &luns.map, &before)?;
                self.set_luns(&luns);
            }
            None => queues.with_all_stopped(&mut || self.set_luns(&luns)),
        }
        // A client without a link is told when it is back: until then it keeps what it has.
        let events = match spec.link {
            LinkSpec::Up => self.announce(&luns.change, self.link.state() == LinkState::Down),
            LinkSpec::Down { .. } => Vec::new(),
        };
        self.forget_luns();
        Ok(events)
    }

    /// Tells the units that stay of a change of the others, and says which events the client gets (virtio 1.3, 5.6.6.3).
    /// A client whose commands failed for the want of a link is asked to look at all that it has.
    fn announce(&self, change: &Change, had_failed: bool) -> Vec<Event> {
        change.told.iter().for_each(|nexus| nexus.tell(Attention::LunsChanged));
        // A client that has looked at it has not learned its size.
        let ready = self.capacity_events(change.ready.iter().copied());
        if locked(&self.state).features & feature::HOTPLUG == 0 {
            return ready;
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
        let come = match had_failed {
            true => of(&locked(&self.state).view.places(), event::Reset::Rescan),
            false => of(&change.come, event::Reset::Rescan),
        };
        gone.into_iter().chain(come).chain(ready).collect()
    }

    fn capacity_events(&self, places: impl Iterator<Item = Place>) -> Vec<Event> {
        if locked(&self.state).features & feature::CHANGE == 0 {
            return Vec::new();
        }
        let event =
            |(target, lun): Place| Some(event::changed(target, Lun::new(lun)?, CAPACITY_CHANGED));
        places.filter_map(event).collect()
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

    /// Gives all queues another LUN map, and waits until nothing of what is gone is in flight. After an error they have `before` again.
    fn exchange_luns(
        queues: &mut dyn Queues<Message>,
        luns: &Arc<LunMap>,
        before: &Arc<LunMap>,
    ) -> Result<(), String> {
        tell_luns(queues, luns).inspect_err(|_| {
            // They had it a moment ago, so that its lanes can be had.
            let back = tell_luns(queues, before);
            debug_assert!(back.is_ok(), "{back:?}");
        })
    }

    /// Forgets what was counted of LUNs that the client does not see any more.
    fn forget_luns(&self) {
        let (Some(region), Some(map)) = (&self.services.region, self.map()) else { return };
        region.keep_luns(&self.adapter.name, |target, lun| {
            Lun::new(lun).is_some_and(|lun| map.find(target, lun).is_some())
        });
    }
}

/// Where the figures of an adapter go: to its slot, and to the port that it is on from now on.
fn count_for(region: &StatsRegion, mark: AdapterStats, spec: &ScsiSpec, elements: &Arc<Elements>) {
    elements.set_mark(mark);
    if let Some(port) = region.map_adapter(mark, spec.port.as_ref().map(|port| port.name.as_str()))
    {
        elements.port().set_mark(port);
    }
}

fn tell_luns(queues: &mut dyn Queues<Message>, luns: &Arc<LunMap>) -> Result<(), String> {
    let mut pending = Vec::new();
    queues.tell(&mut |_| {
        let (answer, told) = one_shot();
        pending.push(told);
        Some(Message::SetLuns(Arc::clone(luns), answer))
    });
    // All are waited for, whatever the first one says.
    let answers = pending
        .into_iter()
        .map(|pending| pending.wait().unwrap_or_else(|| Err("the channel has ended".to_owned())));
    answers.fold(Ok(()), Result::and)
}

impl Device for ScsiDevice {
    type Handler = ScsiHandler;
    /// The units that its specification names.
    type Backing = Units;
    type Service = OfDataPlane;

    const FIXED_QUEUES: u16 = config::OTHER_QUEUES;

    fn service(ask: AskChannels<Question>) -> std::io::Result<OfDataPlane> {
        Ok(OfDataPlane {
            task_manager: TaskManager::start(ask)?,
            ports: Arc::default(),
            holds: Arc::default(),
        })
    }

    fn end_service(service: &OfDataPlane) {
        service.task_manager.stop();
    }

    fn new(
        spec: &AdapterSpec,
        units: &Units,
        making: &Making<'_, OfDataPlane>,
    ) -> Result<Arc<ScsiDevice>, String> {
        let DeviceSpec::Scsi(scsi) = &spec.device else {
            return Err("it is no SCSI device".to_owned());
        };
        let services = |device: &Weak<ScsiDevice>| Services {
            off_path: making.service.task_manager.requests(device.clone()),
            region: Some(Arc::clone(making.stats)),
        };
        let ports = Arc::clone(&making.service.ports);
        let elements = ports.elements(&scsi.commands, scsi.port.as_ref(), spec.queues, None);
        let mark = making.stats.adapter(&making.adapter.name);
        if let Some(mark) = mark {
            count_for(making.stats, mark, scsi, &elements);
        }
        let state = State {
            terms: Terms::new(scsi, elements),
            view: View::default(),
            map: None,
            sizes: Sizes::default(),
            features: 0,
        };
        let device = Arc::new_cyclic(|device| ScsiDevice {
            queues: spec.queues,
            ports,
            adapter: Arc::clone(making.adapter),
            services: Arc::new(services(device)),
            link: Link::new(&making.service.holds),
            mark,
            state: Mutex::new(state),
            attendance: Mutex::default(),
        });
        if ScsiDevice::is_whole(units) {
            device.set_luns(&device.new_luns(scsi, units)?);
        }
        device.forget_luns();
        device.link_down(scsi);
        Ok(device)
    }

    fn is_whole(units: &Units) -> bool {
        !units.values().any(|unit| matches!(unit.medium, Medium::Awaited))
    }

    fn take_live_part(live: &mut AdapterSpec, next: &AdapterSpec) {
        let (DeviceSpec::Scsi(live), DeviceSpec::Scsi(next)) = (&mut live.device, &next.device)
        else {
            return;
        };
        live.targets.clone_from(&next.targets);
        live.limit = next.limit;
        live.port.clone_from(&next.port);
        live.link = next.link;
        // The client was told of the others.
        let CommandSpec { queue_depth, max_xfer_bytes, .. } = live.commands;
        live.commands = CommandSpec { queue_depth, max_xfer_bytes, ..next.commands };
    }

    fn features(&self, _: &AdapterSpec) -> u64 {
        feature::OFFERED
    }

    fn config_space(&self, spec: &AdapterSpec) -> Vec<u8> {
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
        config::space(&offer, &locked(&self.state).sizes).to_vec()
    }

    fn set_config(&self, offset: usize, bytes: &[u8], _: u64) -> Written {
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

    fn negotiated(&self, features: u64) {
        locked(&self.state).features = features;
    }

    fn feature_names(&self) -> Vec<&'static str> {
        let features = locked(&self.state).features;
        let named = [(feature::HOTPLUG, "hotplug"), (feature::CHANGE, "change")];
        named.into_iter().filter(|(bit, _)| features & bit != 0).map(|(_, name)| name).collect()
    }

    /// The I_T nexuses are lost (SAM-5, 6.3.4), as when a host bus adapter is reset; the sizes are the usual ones.
    fn reset(&self) {
        locked_attendance(&self.attendance).absent.values_mut().for_each(Vec::clear);
        let mut state = locked(&self.state);
        state.sizes = Sizes::default();
        state.view.entries.values().for_each(|seen| seen.nexus.lost());
    }

    fn client_lost(&self) {
        self.reset();
        self.negotiated(0);
    }

    fn reset_marks(&self) {
        locked(&self.state).terms.elements.reset_mark();
        // Those of LUNs that a channel serves begin again with its queues.
        if let Some(region) = &self.services.region {
            region.reset_resting_extremes(&self.adapter.name);
        }
    }

    fn removed(&self) {
        if let Some(region) = &self.services.region {
            region.keep_luns(&self.adapter.name, |_, _| false);
            if let Some(mark) = self.mark {
                region.release_adapter(mark);
            }
        }
    }

    fn presence(&self, queue: u16, presence: Presence) {
        let mut attendance = locked_attendance(&self.attendance);
        match (queue, presence) {
            (CONTROL_QUEUE, presence) => {
                attendance.control = matches!(presence, Presence::Starts | Presence::Runs);
            }
            (EVENT_QUEUE, _) => {}
            (queue, Presence::Awaited | Presence::Starts) => {
                attendance.awaited.insert(queue);
            }
            (queue, Presence::Runs) => {
                attendance.awaited.remove(&queue);
                attendance.absent.remove(&queue);
            }
            (queue, Presence::Absent) => {
                attendance.awaited.remove(&queue);
                attendance.absent.entry(queue).or_default();
            }
        }
        let postponed = match attendance.awaited.is_empty() || !attendance.control {
            true => std::mem::take(&mut attendance.postponed),
            false => Vec::new(),
        };
        let control = attendance.control;
        drop(attendance);
        // Those of a control queue that is about to stop end here: it waits for them, and the client is told that they failed.
        if control {
            postponed.into_iter().for_each(|function| (self.services.off_path)(function));
        }
    }

    fn behind(&self, index: u16, features: u64) -> Option<Behind> {
        // Not under the other lock, which is taken under this one.
        let owed = locked_attendance(&self.attendance).absent.get(&index).cloned();
        let owed = owed.unwrap_or_default();
        let state = locked(&self.state);
        let role = match index {
            CONTROL_QUEUE => ScsiRole::Control,
            EVENT_QUEUE => ScsiRole::Event,
            _ => ScsiRole::Request,
        };
        let Terms { commands: spec, elements, .. } = &state.terms;
        let limits = ScsiLimits {
            local: u16::try_from(spec.num_local_cmds).unwrap_or(u16::MAX),
            buffers: u16::try_from(spec.bufs_per_cmd).unwrap_or(u16::MAX),
            functions: u16::try_from(spec.num_sp_cmd_elem).unwrap_or(u16::MAX),
            inout: features & feature::INOUT != 0,
            sizes: state.sizes,
        };
        let luns = Arc::clone(state.map.as_ref()?);
        let place = index.saturating_sub(config::OTHER_QUEUES);
        let (elements, services) = (Arc::clone(elements), Arc::clone(&self.services));
        let link = Arc::clone(&self.link);
        Some(Behind { role, place, luns, elements, limits, link, services, owed })
    }

    fn is_ready(&self) -> bool {
        locked(&self.state).map.is_some()
    }

    /// Of queues that run, only what is another logical unit is disturbed.
    fn set_backing(
        &self,
        spec: &AdapterSpec,
        units: &Units,
        queues: &mut dyn Queues<Message>,
    ) -> Result<(), String> {
        let DeviceSpec::Scsi(spec) = &spec.device else {
            return Err("it is no SCSI device".to_owned());
        };
        // Before a queue stops for the change: what it has begun it ends, and what comes then waits.
        self.link_down(spec);
        let was_up = self.link.state() == LinkState::Up;
        if self.is_remapped(spec) {
            self.link.pause();
        }
        let told = self.set_behind(spec, units, queues);
        if spec.link == LinkSpec::Up && (told.is_ok() || was_up) {
            self.link.up();
        }
        // With the link there: what a client looks for then it finds.
        for event in told? {
            queues.tell(&mut |number| (number == EVENT_QUEUE).then_some(Message::Event(event)));
        }
        Ok(())
    }

    fn resized(&self, _: &AdapterSpec, resized: &Resized<'_>) -> Tell<Message> {
        let places: Vec<Place> = {
            let state = locked(&self.state);
            resized.units.iter().flat_map(|unit| state.view.places_of(unit)).collect()
        };
        let events = self.capacity_events(places.into_iter()).into_iter();
        Tell::Messages(events.map(|event| (EVENT_QUEUE, Message::Event(event))).collect())
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("a panic ends the process")
}

fn locked_attendance(attendance: &Mutex<Attendance>) -> MutexGuard<'_, Attendance> {
    attendance.lock().expect("a panic ends the process")
}
