//! A queue on its way into or out of a channel, and inside it.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

use block::{IoError, OpKind, Tag};
use memory::clock;
use protocol::message::WaitMode;
use protocol::stats::{Latency, QueueCounter, QueueStats, Span, Timed, Way};
use uring::FileSlot;
use vring::{Head, Queue, QueueError};

use crate::command::{Command, State};
use crate::elements::Waits;
use crate::handler::Handler;
use crate::io::Waiting;
use crate::lists::{ListId, OwnLists};
use crate::mailbox::OneShot;

/// Why a queue stopped by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum StopReason {
    /// Its ring breaks the rules.
    #[error(transparent)]
    Ring(#[from] QueueError),
    /// The client took away memory that it had shared.
    #[error("the client truncated its shared memory; connect again")]
    Memory,
}

/// What the queues of one adapter share, and read only.
pub struct Adapter {
    /// Its name.
    pub name: String,
    wait: AtomicU8,
    on_stop: Box<dyn Fn(u16, StopReason) + Send + Sync>,
}

impl Adapter {
    /// `on_stop` is called on the channel's thread when a queue stops by itself, with its number. It may not block.
    pub fn new(name: &str, on_stop: Box<dyn Fn(u16, StopReason) + Send + Sync>) -> Adapter {
        let wait = AtomicU8::new(WaitMode::default() as u8);
        Adapter { name: name.to_owned(), wait, on_stop }
    }

    /// How its channels wait. They take it over when a queue starts or stops, or with [`crate::Channel::refresh`].
    pub fn set_wait(&self, mode: WaitMode) {
        self.wait.store(mode as u8, Relaxed);
    }

    pub(crate) fn wait(&self) -> WaitMode {
        let modes = [WaitMode::Poll, WaitMode::Adaptive, WaitMode::Interrupt];
        modes.into_iter().find(|mode| *mode as u8 == self.wait.load(Relaxed)).unwrap_or_default()
    }
}

impl std::fmt::Debug for Adapter {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Adapter").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A queue with all that it owns, on its way into or out of a channel. What is behind it travels beside it ([`Handler::Device`]).
pub struct QueueResources {
    /// The ring.
    pub ring: Queue,
    /// Its number in the adapter.
    pub number: u16,
    /// Its adapter.
    pub adapter: Arc<Adapter>,
    /// The client's notifications.
    pub kick: OwnedFd,
    /// Notifications to the client; none: it looks by itself.
    pub call: Option<OwnedFd>,
    /// Told once when the queue stops by itself.
    pub error: Option<OwnedFd>,
    /// Its command slots, one for each descriptor.
    pub commands: Box<[Command]>,
    /// Its counters.
    pub stats: QueueStats,
}

impl std::fmt::Debug for QueueResources {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("QueueResources")
            .field("adapter", &self.adapter.name)
            .field("number", &self.number)
            .finish_non_exhaustive()
    }
}

/// Names a queue of a channel while it is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct QueueId(pub(crate) u16);

/// Names a command that is under way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct CommandRef {
    pub(crate) channel: u32,
    pub(crate) queue: QueueId,
    pub(crate) head: u16,
}

/// What a queue is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Phase {
    /// Looked at in every turn.
    Hot,
    /// Waits for a kick.
    Armed,
    /// Takes nothing more; waits for what is in flight.
    Draining,
    /// Nothing is in flight; waits for the end of its poll and of its notification.
    Closing,
}

/// A queue that the channel owns, but for its handler. On cache lines of its own: its neighbours in memory may belong to another channel.
#[repr(align(128))]
pub struct RunningQueue {
    /// What it came with.
    pub resources: QueueResources,
    pub(crate) id: QueueId,
    pub(crate) kick: FileSlot,
    pub(crate) call: Option<FileSlot>,
    /// A notification is in the kernel. A client can keep it there; then the next ones are one.
    pub(crate) notifying: bool,
    /// The error descriptor, while an operation on it is in the kernel.
    pub(crate) error: Option<FileSlot>,
    pub(crate) notify_again: bool,
    pub(crate) phase: Phase,
    /// Heads are taken by its handler.
    pub(crate) pulls: bool,
    /// See [`crate::Opened::rereads`].
    pub(crate) rereads: bool,
    /// See [`crate::Opened::is_asked`].
    pub(crate) is_asked: bool,
    /// The poll operation on the kick is in the kernel.
    pub(crate) watched: bool,
    /// Its client was asked to kick.
    pub(crate) armed: bool,
    /// Kicks in a row that nobody had asked for.
    pub(crate) needless: u32,
    /// There were so many of them that nobody listens until it is armed again.
    pub(crate) deaf: bool,
    /// Who waits for the queue to stop.
    pub(crate) stop: Option<OneShot<QueueResources>>,
    /// Its commands do not wait for limits and modelled delays any more.
    pub(crate) skips_waits: bool,
    /// Whether it takes new heads: not after an error.
    pub(crate) broken: bool,
    /// Turns in a row in which it was found empty.
    pub(crate) empty_turns: u32,
    /// Completions were put and not yet published.
    pub(crate) touched: bool,
    /// It is on the channel's list of queues to be published at the end of the turn.
    pub(crate) listed: bool,
    pub(crate) parked: u32,
    /// Off-path requests that were not answered yet.
    pub(crate) answers_due: u32,
    /// Operations of its own that are in the kernel ([`crate::Io::operate`]).
    pub(crate) operations: u32,
    /// Its relay was asked for ([`crate::Io::relay`]).
    pub(crate) relays: bool,
    /// Which off-path request each head waits for; 0: none.
    pub(crate) tickets: Box<[u64]>,
    /// Heads that wait until fewer commands are active, oldest first; how many of the last were taken while the queue paused, and wait for
    /// that, too; and as what they are counted.
    pub(crate) held: VecDeque<u16>,
    pub(crate) kept: usize,
    pub(crate) held_for: QueueCounter,
    /// Commands that wait until something completes, in the order in which they are tried again; and how many of the first have not
    /// had their try yet.
    pub(crate) waiting: VecDeque<Waiting>,
    pub(crate) untried: usize,
    /// Segment lists of its own.
    pub(crate) lists: OwnLists,
    /// Segments of long chains that were followed for it in this turn.
    pub(crate) segments: usize,
    /// Not 0: there was more in its ring than one turn's work. When that was seen, in ticks.
    pub(crate) heavy: u64,
    /// Heads that were seen and not taken, and since when.
    pub(crate) backlog: u16,
    pub(crate) backlog_since: u64,
    /// Heads finished and not yet published: when taken, how long in the device (ticks). How many in a row are alike.
    finished: Vec<(Finished, u64)>,
}

impl std::fmt::Debug for RunningQueue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RunningQueue").field("id", &self.id).finish_non_exhaustive()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Finished {
    taken: u64,
    device: u64,
    /// Which part of its device the command was for, or [`NO_PART`]; above it, what a volume was asked. One number, which is
    /// compared for every command.
    part_and_way: u32,
}

impl Finished {
    fn new(taken: u64, device: u64, part: u16, way: Timing) -> Finished {
        Finished { taken, device, part_and_way: u32::from(part) | (way as u32) << 16 }
    }
}

/// What is timed apart, as a part of a number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Timing {
    Read,
    Write,
    Neither,
}

impl Timing {
    fn of(op: OpKind) -> Timing {
        match op {
            OpKind::Read => Timing::Read,
            OpKind::Write { .. } => Timing::Write,
            _ => Timing::Neither,
        }
    }
}

/// For [`crate::Io::settle`]: the command counts for its queue alone.
pub const NO_PART: u16 = u16::MAX;

impl RunningQueue {
    pub(crate) fn new(
        resources: QueueResources,
        id: QueueId,
        kick: FileSlot,
        call: Option<FileSlot>,
    ) -> RunningQueue {
        let size = usize::from(resources.ring.size());
        RunningQueue {
            resources,
            id,
            kick,
            call,
            notifying: false,
            error: None,
            notify_again: false,
            phase: Phase::Hot,
            pulls: false,
            rereads: false,
            is_asked: true,
            watched: false,
            armed: false,
            needless: 0,
            deaf: false,
            stop: None,
            skips_waits: false,
            broken: false,
            empty_turns: 0,
            touched: false,
            listed: false,
            parked: 0,
            answers_due: 0,
            operations: 0,
            relays: false,
            tickets: vec![0; size].into(),
            held: VecDeque::with_capacity(size),
            kept: 0,
            held_for: QueueCounter::WaitNoCommand,
            waiting: VecDeque::with_capacity(size),
            untried: 0,
            lists: OwnLists::default(),
            segments: 0,
            heavy: 0,
            backlog: 0,
            backlog_since: 0,
            finished: Vec::with_capacity(size),
        }
    }

    /// The command of a head.
    #[inline]
    #[must_use]
    pub fn command(&mut self, head: Head) -> &mut Command {
        &mut self.resources.commands[usize::from(head.0)]
    }

    /// Where the command of a head stands.
    #[inline]
    #[must_use]
    pub fn state(&self, head: Head) -> State {
        self.resources.commands[usize::from(head.0)].state
    }

    /// What a lane calls the command of a head: the queue's place in the channel, and the head.
    #[inline]
    #[must_use]
    pub fn tag(&self, head: Head) -> Tag {
        Tag(u32::from(self.id.0) << 16 | u32::from(head.0))
    }

    /// Whether it takes heads: it is neither broken nor being stopped.
    #[must_use]
    pub fn takes_heads(&self) -> bool {
        !self.broken && matches!(self.phase, Phase::Hot | Phase::Armed)
    }

    /// What was just taken is as much work as a chain of so many segments, beside its own: when that is much, a turn ends early.
    #[inline]
    pub fn charge(&mut self, segments: usize) {
        self.segments += segments;
    }

    /// Its name on its channel, while it is there.
    #[must_use]
    pub fn id(&self) -> QueueId {
        self.id
    }

    /// The file that its kicks come from, for operations of its own.
    #[must_use]
    pub fn file(&self) -> FileSlot {
        self.kick
    }

    /// Whether a command of its waits for a segment list. Those that were taken later can overtake it.
    #[inline]
    #[must_use]
    pub fn is_short_of_lists(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// How many commands are held.
    #[must_use]
    pub fn held(&self) -> usize {
        self.held.len()
    }

    /// What its commands wait for: an element, or something in the server.
    #[inline]
    #[must_use]
    pub fn waits(&self) -> Waits {
        let held = self.held.len();
        Waits { held, waiting: (self.parked as usize).saturating_sub(held) }
    }

    /// Off-path requests that were not answered yet.
    #[must_use]
    pub fn answers_due(&self) -> u32 {
        self.answers_due
    }

    /// Heads that were taken and are not settled. Off the path of an I/O; what may be much work for each of them goes by [`crate::Sweep`].
    #[must_use]
    pub fn under_way(&self) -> Vec<Head> {
        let commands = (0..).zip(self.resources.commands.iter());
        let taken = commands.filter(|(_, command)| command.state != State::Free);
        taken.map(|(head, _)| Head(head)).collect()
    }

    /// The command of a head no longer waits for the answer to its off-path request: it goes to nobody.
    pub fn forget_answer(&mut self, head: Head) {
        self.tickets[usize::from(head.0)] = 0;
    }

    /// Counts something of the queue.
    #[inline]
    pub fn count(&self, counter: QueueCounter, by: u64) {
        self.resources.stats.add(counter, by);
    }

    /// Counts why a volume could not do something.
    #[cold]
    pub fn count_failure(&self, error: IoError) {
        match error {
            IoError::NoSpace => self.count(QueueCounter::ErrorsNoSpace, 1),
            IoError::Gone => self.count(QueueCounter::ErrorsGone, 1),
            IoError::OutOfRange => self.count(QueueCounter::OutOfRange, 1),
            IoError::Unsupported => self.count(QueueCounter::Unsupported, 1),
            IoError::Io | IoError::ReadOnly | IoError::Fenced => {}
        }
    }

    /// Shows where the commands are that were taken and are not done, and the high-water marks of that.
    #[inline]
    pub(crate) fn show_levels(&self) {
        let held = self.held.len() as u64;
        let active = u64::from(self.resources.ring.in_flight()).saturating_sub(held);
        let waiting = u64::from(self.parked).saturating_sub(held);
        let stats = self.resources.stats;
        stats.set_with_high_water(QueueCounter::Active, QueueCounter::ActiveMax, active);
        stats.set_with_high_water(QueueCounter::Pending, QueueCounter::PendingMax, held);
        stats.set_with_high_water(QueueCounter::Waiting, QueueCounter::WaitingMax, waiting);
        let in_server = waiting + u64::from(self.answers_due);
        stats.set(QueueCounter::InDevice, active.saturating_sub(in_server));
    }

    /// A command waits until fewer are active.
    #[cold]
    pub(crate) fn hold(&mut self, head: Head) {
        self.count(self.held_for, 1);
        self.keep(head);
        // It does not pause.
        self.kept = 0;
    }

    /// A command waits until the queue does not pause any more.
    #[cold]
    pub(crate) fn keep(&mut self, head: Head) {
        self.held.push_back(head.0);
        self.kept += 1;
        self.command(head).state = State::Held;
        self.parked += 1;
        self.show_levels();
    }

    /// The queue is about to stop and comes back as it is: what was taken while it paused, and has not begun, is let go of, if it is recorded.
    #[cold]
    pub(crate) fn leave_kept(&mut self) {
        if !self.resources.ring.may_leave() {
            return;
        }
        for _ in 0..std::mem::take(&mut self.kept) {
            let head = Head(self.held.pop_back().expect("what is kept is held"));
            self.command(head).state = State::Free;
            self.parked -= 1;
            self.resources.ring.leave(head);
        }
        self.show_levels();
    }

    /// Gives a head back whose answer is written: `written` bytes of its writable part. The slot is free then, and so is its list, which is the
    /// caller's.
    #[inline]
    #[must_use]
    pub(crate) fn settle(
        &mut self,
        head: Head,
        part: u16,
        written: u32,
        now: u64,
    ) -> Option<ListId> {
        let command = &mut self.resources.commands[usize::from(head.0)];
        debug_assert!(command.state != State::Free);
        let (device, way) = match (command.state, command.op) {
            (State::Submitted, op) => (now.wrapping_sub(command.submitted), Timing::of(op)),
            _ => (0, Timing::Neither),
        };
        let finished = Finished::new(command.taken, device, part, way);
        command.state = State::Free;
        let list = command.list.take();
        self.give_back(head, written, finished);
        list
    }

    /// The same of a head that was taken at that moment, by who has no need of its slot.
    #[inline]
    pub(crate) fn settle_taken(&mut self, head: Head, written: u32, now: u64) {
        debug_assert!(self.state(head) == State::Free);
        self.give_back(head, written, Finished::new(now, 0, NO_PART, Timing::Neither));
    }

    #[inline(always)] // At two places: a call would cost what it does.
    fn give_back(&mut self, head: Head, written: u32, finished: Finished) {
        // Commands of one batch that were served inline are alike: one record for all of them.
        match self.finished.last_mut() {
            Some((last, count)) if *last == finished => *count += 1,
            _ => self.finished.push((finished, 1)),
        }
        self.resources.ring.put_used(head, written);
        self.touched = true;
    }

    /// Takes no more heads, and nothing of it is under way.
    pub(crate) fn is_drained(&self) -> bool {
        self.phase == Phase::Draining
            && self.resources.ring.in_flight() == 0
            && self.answers_due == 0
            && self.operations == 0
            && !self.relays
    }

    /// Makes completions visible. `true`: the client wants to be notified.
    #[inline]
    pub(crate) fn publish(&mut self) -> bool {
        self.touched = false;
        self.resources.ring.publish()
    }

    /// Records the latencies of what was published, and the levels; how many commands. Comes after the publication, so that no client
    /// waits for it.
    #[inline]
    pub(crate) fn account(&mut self, handler: &impl Handler, now: u64) -> u64 {
        let mut all = 0;
        for (finished, count) in &self.finished {
            self.record(handler, *finished, *count, now);
            all += count;
        }
        // One that was done at once was active by itself.
        self.resources.stats.raise(QueueCounter::ActiveMax, 1);
        self.finished.clear();
        self.show_levels();
        all
    }

    /// Reports an error of the whole queue, once.
    pub(crate) fn break_down(&mut self, reason: StopReason) {
        if !self.broken {
            self.broken = true;
            // Nothing follows from its kicks any more.
            self.armed = false;
            self.count(QueueCounter::RingErrors, 1);
            (self.resources.adapter.on_stop)(self.resources.number, reason);
        }
    }

    /// Records the latencies of commands that are alike, for the queue and for the part of the device that they were for.
    #[inline]
    fn record(&self, handler: &impl Handler, finished: Finished, count: u64, now: u64) {
        let Finished { taken, device, part_and_way } = finished;
        let (part, way) = (part_and_way as u16, part_and_way >> 16);
        let total = now.saturating_sub(taken);
        let stats = self.resources.stats;
        let in_server = clock::to_ns(total.saturating_sub(device));
        let in_device = clock::to_ns(device);
        let way = match way {
            way if way == Timing::Read as u32 => Some(Way::Read),
            way if way == Timing::Write as u32 => Some(Way::Write),
            _ => None,
        };
        if let Some(way) = way {
            let timed = Timed { way, count, server_ns: in_server, device_ns: in_device };
            self.record_timed(handler, part, &timed);
        }
        let server = Span::of(in_server);
        stats.record_at(Latency::Server, server, count);
        if part != NO_PART {
            handler.record(part, Latency::Server, server, count);
        }
        if device > 0 {
            let device = Span::of(in_device);
            stats.record_at(Latency::Device, device, count);
            if part != NO_PART {
                handler.record(part, Latency::Device, device, count);
            }
        }
    }

    /// Apart, so that what is answered at once does not pay for it.
    #[inline(never)]
    fn record_timed(&self, handler: &impl Handler, part: u16, timed: &Timed) {
        self.resources.stats.record_timed(timed);
        if part != NO_PART {
            handler.record_timed(part, timed);
        }
    }
}
