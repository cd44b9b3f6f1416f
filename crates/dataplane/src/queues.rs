//! The virtqueues of one client: what its messages said, and which of them run where.
//!
//! A virtqueue runs while it is *started* (a kick descriptor came, SET_VRING_KICK) and *enabled* (SET_VRING_ENABLE, or at
//! once where VHOST_USER_F_PROTOCOL_FEATURES was not negotiated). To run means that its ring is moved into a channel. Every change that a
//! running queue must not see (memory, descriptors, volume) is made by moving it out, which waits until nothing of it is in
//! flight, and in again. Only the LUN map of a SCSI device changes while its queues run.
//!
//! All methods may wait for channels; none is called on a channel's thread.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use channel::device::Presence;
use channel::mailbox::Pending;
use channel::{Command, Drain, QueueId, QueueResources};
use protocol::stats::{QueueCounter, QueueStats, StatsRegion};
use vring::{
    DirtyLog, GuestAddr, InflightRegion, MemError, MemTable, QueueConfig, RegionSpec, UserAddr,
};

use crate::devices::{AnyDevice, Channel, Message};
use crate::journal::Journal;
use crate::shares::{Share, check_bytes};

/// virtio and vhost features that concern rings.
pub(crate) mod feature {
    pub(crate) const LOG_ALL: u64 = 1 << 26;
    pub(crate) const INDIRECT_DESC: u64 = 1 << 28;
    pub(crate) const EVENT_IDX: u64 = 1 << 29;
    pub(crate) const PROTOCOL_FEATURES: u64 = 1 << 30;
    pub(crate) const VERSION_1: u64 = 1 << 32;
    pub(crate) const IN_ORDER: u64 = 1 << 35;
}

/// Where a ring is (SET_VRING_ADDR).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RingAddress {
    pub(crate) desc: UserAddr,
    pub(crate) used: UserAddr,
    pub(crate) avail: UserAddr,
    /// Where the used ring is for the dirty log.
    pub(crate) used_log: Option<GuestAddr>,
}

#[derive(Debug, Clone, Copy)]
struct Running {
    channel: usize,
    id: QueueId,
}

/// A queue on its way back.
#[derive(Debug)]
struct Draining {
    from: Running,
    pending: Pending<QueueResources>,
}

/// One virtqueue.
#[derive(Debug, Default)]
struct Virtqueue {
    size: u16,
    address: Option<RingAddress>,
    base: u16,
    kick: Option<OwnedFd>,
    call: Option<OwnedFd>,
    error: Option<OwnedFd>,
    started: bool,
    enabled: bool,
    /// Some message was about it: the client's device has it.
    named: bool,
    running: Option<Running>,
    /// It was disabled, and is on its way back.
    draining: Option<Draining>,
}

impl Virtqueue {
    /// No channel has it.
    fn is_here(&self) -> bool {
        self.running.is_none() && self.draining.is_none()
    }
}

/// Takes the number of a queue that could not be started, and why.
type OnFailure = dyn Fn(u16, &str) + Send + Sync;

/// What the queues of an adapter have in common for as long as it exists.
pub(crate) struct AdapterContext {
    pub(crate) channels: Arc<Vec<Channel>>,
    /// How the channels know it.
    pub(crate) known_as: Arc<channel::Adapter>,
    pub(crate) device: Arc<AnyDevice>,
    pub(crate) stats: Arc<StatsRegion>,
    pub(crate) journal: Arc<Journal>,
    /// Says why a queue could not be started.
    pub(crate) on_failure: Box<OnFailure>,
}

/// The virtqueues of one adapter.
pub(crate) struct Queues {
    adapter: AdapterContext,
    mem: Arc<MemTable>,
    share: Share,
    queues: Vec<Virtqueue>,
    /// A queue's counters belong to the adapter and outlive its clients.
    stats: Vec<Option<QueueStats>>,
    features: u64,
    log: Option<Arc<DirtyLog>>,
    inflight: Option<InflightRegion>,
    /// Channel of each queue: see [`crate::placement`].
    place: Vec<usize>,
}

impl Queues {
    /// `stats`: counters that the adapter had before; those beyond `count` are given back.
    pub(crate) fn new(
        adapter: AdapterContext,
        count: u16,
        mut stats: Vec<Option<QueueStats>>,
    ) -> Queues {
        for surplus in stats.drain(usize::from(count).min(stats.len())..).flatten() {
            adapter.stats.release(surplus);
        }
        stats.resize(usize::from(count), None);
        let mut queues = Queues {
            adapter,
            mem: Arc::new(MemTable::empty()),
            share: Share::default(),
            queues: Vec::new(),
            stats,
            features: 0,
            log: None,
            inflight: None,
            place: vec![0; usize::from(count)],
        };
        queues.clear();
        queues
    }

    /// Forgets everything that a client said. Nothing runs.
    fn clear(&mut self) {
        assert!(self.queues.iter().all(Virtqueue::is_here));
        self.queues = std::iter::repeat_with(Virtqueue::default).take(self.stats.len()).collect();
        self.mem = Arc::new(MemTable::empty());
        self.share = Share::default();
        self.features = 0;
        self.log = None;
        self.inflight = None;
        (0..self.queues.len()).for_each(|index| self.note_presence(index));
    }

    /// Ends a client's session: stops all queues and forgets what it said.
    pub(crate) fn end_session(&mut self, drain: Drain) {
        self.stop_all(drain);
        self.clear();
    }

    /// RESET_OWNER and RESET_DEVICE: queues stop; memory, in-flight region and what was negotiated stay.
    pub(crate) fn reset(&mut self) {
        self.stop_all(Drain::Ordinary);
        for queue in &mut self.queues {
            let Virtqueue { size, named, .. } = *queue;
            *queue = Virtqueue { size, named, ..Virtqueue::default() };
        }
        self.log = None;
        (0..self.queues.len()).for_each(|index| self.note_presence(index));
    }

    pub(crate) fn count(&self) -> usize {
        self.queues.len()
    }

    /// The queues for I/O.
    fn of_io(&self) -> &[Virtqueue] {
        &self.queues[usize::from(self.adapter.device.fixed_queues())..]
    }

    /// How many queues for I/O the client uses.
    pub(crate) fn started(&self) -> u16 {
        self.of_io().iter().filter(|queue| queue.started).count() as u16
    }

    /// How many queues for I/O the client has. A front end such as QEMU speaks of all of its device, also of those that the driver does
    /// not use.
    pub(crate) fn named(&self) -> u16 {
        self.of_io().iter().filter(|queue| queue.named).count() as u16
    }

    /// A message is about a queue.
    pub(crate) fn name(&mut self, index: usize) {
        self.queues[index].named = true;
    }

    /// Channel of each queue for I/O that the client uses, by its number.
    pub(crate) fn channels_of_queues(&self) -> Vec<u32> {
        let channel =
            |queue: &Virtqueue| queue.running.as_ref().map(|running| running.channel as u32);
        self.of_io().iter().filter(|queue| queue.started).filter_map(channel).collect()
    }

    pub(crate) fn features(&self) -> u64 {
        self.features
    }

    /// SET_FEATURES. Only logging may change while queues run.
    pub(crate) fn set_features(&mut self, features: u64) {
        let before = std::mem::replace(&mut self.features, features);
        if (before ^ features) & !feature::LOG_ALL != 0 {
            self.with_all_stopped(Drain::Ordinary, |_| ());
        } else {
            self.update_log();
        }
        if features & feature::LOG_ALL == 0 {
            self.log = None;
        }
    }

    /// Swaps the memory with nothing in flight. `sizes`: of the regions that it has then.
    fn change_memory(
        &mut self,
        sizes: &[u64],
        change: impl FnOnce(&MemTable) -> Result<MemTable, MemError>,
    ) -> Result<(), String> {
        self.share.change(sizes)?;
        let mem = change(&self.mem).map_err(|error| {
            // What it has had was not too much.
            let _ = self.share.change(&self.sizes());
            error.to_string()
        })?;
        self.with_all_stopped(Drain::Ordinary, |queues| queues.mem = Arc::new(mem));
        Ok(())
    }

    fn sizes(&self) -> Vec<u64> {
        self.mem.regions().map(|region| region.size).collect()
    }

    /// SET_MEM_TABLE.
    pub(crate) fn set_memory(&mut self, regions: Vec<RegionSpec>) -> Result<(), String> {
        let sizes: Vec<u64> = regions.iter().map(|region| region.size).collect();
        self.change_memory(&sizes, |_| MemTable::new(regions))
    }

    /// ADD_MEM_REG.
    pub(crate) fn add_region(&mut self, region: RegionSpec) -> Result<(), String> {
        let sizes = [self.sizes(), vec![region.size]].concat();
        self.change_memory(&sizes, |mem| mem.with_region(region))
    }

    /// REM_MEM_REG.
    pub(crate) fn remove_region(
        &mut self,
        guest: GuestAddr,
        user: UserAddr,
        size: u64,
    ) -> Result<(), String> {
        let mut sizes = self.sizes();
        if let Some(at) = sizes.iter().position(|each| *each == size) {
            sizes.swap_remove(at);
        }
        self.change_memory(&sizes, |mem| mem.without_region(guest, user, size))
    }

    pub(crate) fn regions(&self) -> usize {
        self.mem.regions().count()
    }

    /// Changes what is behind the device, with no queue running. What is ready to run afterwards runs.
    pub(crate) fn change_device(&mut self, change: &mut dyn FnMut()) {
        self.with_all_stopped(Drain::Change, |_| change());
    }

    /// Stops all queues and starts them: what the driver has set takes effect.
    pub(crate) fn restart(&mut self) {
        self.with_all_stopped(Drain::Move, |_| ());
    }

    /// Waits for those that were disabled: no message reaches them on their way back.
    pub(crate) fn end_all_draining(&mut self, drain: Drain) {
        let indices = 0..self.queues.len();
        let take = |index| Some((index, self.take_draining(index, drain)?));
        let all: Vec<_> = indices.filter_map(take).collect();
        for (index, draining) in all {
            self.end_stop(index, draining);
        }
    }

    /// Sends each queue that runs the message that `message` makes for its number.
    pub(crate) fn tell(&self, message: &mut dyn FnMut(u16) -> Option<Message>) {
        for (number, queue) in (0..).zip(&self.queues) {
            if let Some(Running { channel, id }) = &queue.running
                && let Some(message) = message(number)
            {
                self.adapter.channels[*channel].tell(*id, message);
            }
        }
    }

    /// High-water marks begin again, by whoever has the queue.
    pub(crate) fn reset_marks(&self) {
        for (queue, stats) in self.queues.iter().zip(&self.stats) {
            match queue.running {
                Some(Running { channel, id }) => self.adapter.channels[channel].reset_marks(id),
                None => stats.iter().for_each(|stats| stats.reset_marks()),
            }
        }
    }

    pub(crate) fn set_size(&mut self, index: usize, size: u16) {
        self.with_stopped(index, |queue| queue.size = size);
    }

    pub(crate) fn set_base(&mut self, index: usize, base: u16) {
        self.with_stopped(index, |queue| queue.base = base);
    }

    pub(crate) fn set_address(&mut self, index: usize, address: RingAddress) {
        let before = self.queues[index].address;
        // A client that begins or ends to log says the addresses again while the queue runs.
        if before
            .is_some_and(|before| RingAddress { used_log: address.used_log, ..before } == address)
        {
            self.queues[index].address = Some(address);
            self.update_log();
        } else {
            self.with_stopped(index, |queue| queue.address = Some(address));
        }
    }

    pub(crate) fn set_kick(&mut self, index: usize, kick: Option<OwnedFd>) {
        self.with_stopped(index, |queue| {
            queue.started = kick.is_some();
            queue.kick = kick;
        });
    }

    pub(crate) fn set_call(&mut self, index: usize, call: Option<OwnedFd>) {
        self.with_stopped(index, |queue| queue.call = call);
    }

    pub(crate) fn set_error(&mut self, index: usize, error: Option<OwnedFd>) {
        self.with_stopped(index, |queue| queue.error = error);
    }

    /// SET_VRING_ENABLE. A ring that is disabled is fetched from no more; what is in flight ends by and by.
    pub(crate) fn set_enabled(&mut self, index: usize, enabled: bool) {
        self.queues[index].enabled = enabled;
        if self.is_enabled(index) {
            return self.update(index);
        }
        if self.queues[index].running.is_some() {
            self.queues[index].draining = self.begin_stop(index, Drain::Ordinary);
        }
        self.note_presence(index);
    }

    /// GET_VRING_BASE: stops the queue, with nothing in flight, and says where it stands.
    pub(crate) fn stop(&mut self, index: usize) -> u16 {
        self.queues[index].started = false;
        self.end_draining(index);
        self.update(index);
        self.queues[index].kick = None;
        self.queues[index].base
    }

    pub(crate) fn has_inflight(&self) -> bool {
        self.inflight.is_some()
    }

    pub(crate) fn set_inflight(&mut self, region: InflightRegion) {
        self.adapter.device.kept_memory(&region);
        self.with_all_stopped(Drain::Ordinary, |queues| queues.inflight = Some(region));
    }

    pub(crate) fn set_log(&mut self, log: DirtyLog) {
        self.log = Some(Arc::new(log));
        self.update_log();
    }

    /// Sets the channel of each [unit](crate::placement), and for the queues before those for I/O that of the first; those that run elsewhere are moved.
    pub(crate) fn set_places(&mut self, units: &[usize]) {
        let fixed = self.units().0;
        (0..fixed).for_each(|index| self.place_one(index, units.first().copied().unwrap_or(0)));
        for (unit, channel) in units.iter().enumerate() {
            self.place_unit(unit, *channel);
        }
    }

    /// How many units the adapter has.
    pub(crate) fn count_units(&self) -> usize {
        let (fixed, together) = self.units();
        (self.count() - fixed).div_ceil(together)
    }

    /// Sets the channel of one queue; if it runs elsewhere it is moved.
    pub(crate) fn place_one(&mut self, index: usize, channel: usize) {
        let Some(place) = self.place.get_mut(index) else { return };
        *place = channel;
        if self.queues[index].running.as_ref().is_none_or(|running| running.channel == channel) {
            return;
        }
        if let Some(pending) = self.begin_stop(index, Drain::Move) {
            self.end_stop(index, pending);
        }
        self.update(index);
        if let Some(stats) = self.stats[index] {
            stats.add(QueueCounter::Moves, 1);
        }
    }

    /// Sets the channel of one [unit](crate::placement).
    pub(crate) fn place_unit(&mut self, unit: usize, channel: usize) {
        let (fixed, together) = self.units();
        let first = fixed + unit * together;
        (first..first + together).for_each(|index| self.place_one(index, channel));
    }

    /// Queues before those for I/O, and how many of these are a unit.
    fn units(&self) -> (usize, usize) {
        let device = &self.adapter.device;
        (usize::from(device.fixed_queues()), usize::from(device.together()))
    }

    /// Queues for I/O that run, with their unit, the channel that they are on, and the slots of their counters: for the balancer.
    pub(crate) fn running(&self) -> impl Iterator<Item = (usize, usize, QueueStats)> + '_ {
        let (fixed, together) = self.units();
        self.queues.iter().enumerate().skip(fixed).filter_map(move |(index, queue)| {
            let unit = (index - fixed) / together;
            Some((unit, queue.running.as_ref()?.channel, self.stats[index]?))
        })
    }

    /// Takes the counters out, for the adapter's next form. Nothing runs.
    pub(crate) fn take_stats(&mut self) -> Vec<Option<QueueStats>> {
        std::mem::take(&mut self.stats)
    }

    /// Gives the counters back. The adapter is going.
    pub(crate) fn release_stats(&mut self) {
        for stats in self.take_stats().into_iter().flatten() {
            self.adapter.stats.release(stats);
        }
    }

    /// Has every queue log, or not. When this returns, nothing is written that the log does not have.
    fn update_log(&mut self) {
        // What is in flight on these may still be written.
        self.end_all_draining(Drain::Ordinary);
        let logging = self.features & feature::LOG_ALL != 0;
        let set = |queue: &Virtqueue| {
            let Running { channel, id } = queue.running.as_ref()?;
            let log = if logging { self.log.clone() } else { None };
            let used = queue.address.and_then(|address| address.used_log);
            Some(self.adapter.channels[*channel].set_log(*id, log, used))
        };
        let pending: Vec<_> = self.queues.iter().filter_map(set).collect();
        for pending in pending {
            pending.wait().expect("a channel answers until it is dropped");
        }
    }

    fn with_stopped(&mut self, index: usize, change: impl FnOnce(&mut Virtqueue)) {
        if let Some(pending) = self.begin_stop(index, Drain::Ordinary) {
            self.end_stop(index, pending);
        }
        change(&mut self.queues[index]);
        self.update(index);
    }

    fn with_all_stopped(&mut self, drain: Drain, change: impl FnOnce(&mut Queues)) {
        self.stop_all(drain);
        change(self);
        for index in 0..self.queues.len() {
            self.update(index);
        }
    }

    /// Stops every running queue; those for I/O drain at the same time, after the others: what these have under way may wait for them.
    fn stop_all(&mut self, drain: Drain) {
        let fixed = usize::from(self.adapter.device.fixed_queues()).min(self.queues.len());
        for part in [0..fixed, fixed..self.queues.len()] {
            let pending: Vec<_> =
                part.filter_map(|index| Some((index, self.begin_stop(index, drain)?))).collect();
            for (index, pending) in pending {
                self.end_stop(index, pending);
            }
        }
    }

    /// Starts or stops a queue, as its state demands.
    fn update(&mut self, index: usize) {
        let queue = &self.queues[index];
        let should_run = queue.started
            && self.is_enabled(index)
            && queue.address.is_some()
            && self.adapter.device.is_ready();
        match (should_run, queue.running.is_some()) {
            (true, false) => {
                self.end_draining(index);
                self.start(index);
            }
            (false, true) => {
                let pending = self.begin_stop(index, Drain::Ordinary).expect("it runs");
                self.end_stop(index, pending);
            }
            _ => {}
        }
        self.note_presence(index);
    }

    fn is_enabled(&self, index: usize) -> bool {
        self.queues[index].enabled || self.features & feature::PROTOCOL_FEATURES == 0
    }

    /// Tells the device where a queue is.
    fn note_presence(&self, index: usize) {
        let queue = &self.queues[index];
        let is_held_up = !self.is_enabled(index) || !self.adapter.device.is_ready();
        let left = || self.inflight.as_ref()?.queue(index as u16).map(|part| part.has_heads());
        let presence = match (&queue.running, queue.started) {
            (Some(_), _) => Presence::Runs,
            (None, true) if queue.address.is_some() && is_held_up => Presence::Awaited,
            (None, false) if left() == Some(true) => Presence::Awaited,
            _ => Presence::Absent,
        };
        self.adapter.device.presence(index as u16, presence);
    }

    fn begin_stop(&mut self, index: usize, drain: Drain) -> Option<Draining> {
        if let Some(draining) = self.take_draining(index, drain) {
            return Some(draining);
        }
        let from = self.queues[index].running.take()?;
        self.adapter.device.presence(index as u16, Presence::Awaited);
        let pending = self.adapter.channels[from.channel].stop_queue(from.id, drain);
        Some(Draining { from, pending })
    }

    /// A queue that was disabled, and that somebody waits for now.
    fn take_draining(&mut self, index: usize, drain: Drain) -> Option<Draining> {
        let draining = self.queues[index].draining.take()?;
        if drain.skips_waits() {
            let Running { channel, id } = draining.from;
            let adapter = &self.adapter.known_as;
            self.adapter.channels[channel].skip_waits(id, adapter, index as u16);
        }
        Some(draining)
    }

    /// A queue that was disabled comes back.
    fn end_draining(&mut self, index: usize) {
        if let Some(draining) = self.take_draining(index, Drain::Ordinary) {
            self.end_stop(index, draining);
        }
    }

    fn end_stop(&mut self, index: usize, draining: Draining) {
        let resources = draining.pending.wait().expect("a channel answers until it is dropped");
        self.adapter.journal.queue_stops(index as u16, draining.from.channel);
        self.take_back(index, resources);
    }

    fn take_back(&mut self, index: usize, resources: QueueResources) {
        let queue = &mut self.queues[index];
        queue.base = resources.ring.stop().base;
        queue.kick = Some(resources.kick);
        queue.call = resources.call;
        queue.error = resources.error;
    }

    fn start(&mut self, index: usize) {
        if let Err(what) = self.try_start(index) {
            self.adapter.journal.queue_failed(index as u16, &what);
            (self.adapter.on_failure)(index as u16, &what);
        }
    }

    fn try_start(&mut self, index: usize) -> Result<(), String> {
        let stats = self
            .stats(index)
            .ok_or("the statistics have no room for another queue; run another data plane")?;
        let config = self.config(index);
        // What is behind a queue tells what happened while it was not here; nothing more does from now on.
        self.adapter.device.presence(index as u16, Presence::Starts);
        let device = self.adapter.device.behind(index as u16, self.features);
        let device = device.ok_or("its volume is being replaced")?;
        let queue = &mut self.queues[index];
        let size = config.size;
        let ring = config.start(Arc::clone(&self.mem)).map_err(|(_, error)| error.to_string())?;
        let recovered = ring.in_flight();
        let kick = queue.kick.take().ok_or("the client sent no kick descriptor")?;
        let resources = QueueResources {
            ring,
            number: index as u16,
            adapter: Arc::clone(&self.adapter.known_as),
            kick,
            call: queue.call.take(),
            error: queue.error.take(),
            commands: Command::pool(size),
            stats,
        };
        let channel = self.place[index];
        stats.set_channel(channel as u32);
        match self.adapter.channels[channel].start_queue(resources, device) {
            Ok(id) => {
                self.queues[index].running = Some(Running { channel, id });
                self.adapter.journal.queue_starts(index as u16, channel, recovered);
                Ok(())
            }
            Err(failure) => {
                self.take_back(index, *failure.queue);
                Err(failure.what)
            }
        }
    }

    /// What was counted for a queue.
    #[cfg(feature = "sim")]
    pub(crate) fn counted(&self, index: usize) -> Option<QueueStats> {
        self.stats[index]
    }

    fn stats(&mut self, index: usize) -> Option<QueueStats> {
        if self.stats[index].is_none() {
            self.stats[index] = self.adapter.stats.queue(&self.adapter.known_as.name, index as u16);
        }
        self.stats[index]
    }

    fn config(&self, index: usize) -> QueueConfig {
        let queue = &self.queues[index];
        let address = queue.address.expect("a queue without addresses is not started");
        let has = |bit: u64| self.features & bit != 0;
        QueueConfig {
            size: queue.size,
            desc: address.desc,
            avail: address.avail,
            used: address.used,
            base: queue.base,
            at_used: self.adapter.device.in_ring_order(),
            event_idx: has(feature::EVENT_IDX),
            indirect: has(feature::INDIRECT_DESC),
            // Disks do not offer it: their completions overtake each other, and each would wait for the slowest before it.
            in_order: has(feature::IN_ORDER),
            used_log: address.used_log,
            log: if has(feature::LOG_ALL) { self.log.clone() } else { None },
            inflight: self.inflight.as_ref().and_then(|region| region.queue(index as u16)),
        }
    }
}

/// Opens the dirty log that came with SET_LOG_BASE.
pub(crate) fn open_log(file: &File, offset: u64, size: u64) -> Result<DirtyLog, String> {
    check_bytes("log", size)?;
    DirtyLog::open(file, offset, size).map_err(|error| error.to_string())
}
