//! What handlers use of their channel: lanes and lists, waits, answers, the end of a command.

use std::cmp::{Ordering, Reverse};
use std::collections::{BinaryHeap, HashSet};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use block::{Finish, IoError, Lane, LaneId, OpKind, Request, Submit, Tag, Wait};
use memory::{IoBuf, clock};
use protocol::stats::{ChannelCounter, ChannelStats, FlightKind, QueueCounter};
use uring::{Op, Ring};
use vring::{Chain, ChainError, Head};

use crate::command::State;
use crate::elements::Wake;
use crate::handler::{BadChain, Handler, Walked};
use crate::lanes::Lanes;
use crate::lists::Lists;
use crate::off_path::{Answer, Reply, Returns};
use crate::queue::{CommandRef, QueueId, RunningQueue};

/// Tokens of the channel's own operations: the mailbox, what needs no answer, the timers of [`crate::price`], and from `KICK`, `NOTIFY`, `ERROR` and `OPERATION` on the
/// queues' kicks, notifications, errors and operations of their own. A queue's place fits 16 bits.
pub(crate) mod token {
    pub(crate) const MAILBOX: u64 = 0;
    pub(crate) const IGNORED: u64 = 1;
    pub(crate) const PROBE: u64 = 2;
    pub(crate) const PROBE_AWAKE: u64 = 3;
    pub(crate) const KICK: u64 = 1 << 16;
    pub(crate) const NOTIFY: u64 = 2 << 16;
    pub(crate) const ERROR: u64 = 3 << 16;
    /// From here on a queue's own operations ([`super::Io::operate`]): its place, and 16 bits of the handler's.
    pub(crate) const OPERATION: u64 = 1 << 40;
}

/// How long a queue is served at a stretch.
const STRETCH_NS: u64 = 8000;
/// When to try again after the kernel would not even take what was queued.
const KERNEL_BUSY: Duration = Duration::from_millis(1);

/// A command that waits until a moment.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Timer {
    pub(crate) at: Instant,
    pub(crate) tag: Tag,
}

impl Ord for Timer {
    /// The earliest is the greatest: the heap gives the greatest first.
    fn cmp(&self, other: &Timer) -> Ordering {
        Reverse((self.at, self.tag)).cmp(&Reverse((other.at, other.tag)))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

/// A command that waits until something completes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Waiting {
    pub(crate) tag: Tag,
    pub(crate) what: Lacking,
}

/// What it lacks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Lacking {
    /// Its lane refused it.
    Lane(Wait),
    /// A segment list; one of the longest, if `long`.
    List { long: bool },
    /// Memory of its handler.
    Memory,
}

/// All that a lane's answer to a request depends on while the lane is full.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) lane: LaneId,
    pub(crate) reason: Wait,
    pub(crate) op: OpKind,
    pub(crate) passed: u8,
}

/// What became of reading a chain.
#[derive(Debug)]
pub enum Read {
    /// It is in the command's slot or list.
    Whole(Walked),
    /// It breaks the rules.
    Bad(BadChain),
    /// There is no list for it. The command waits, and begins again when there is one.
    Waits,
}

/// A channel, as its handlers use it. Apart from the queues, so that one can be worked on with the rest at hand.
pub struct Io {
    /// The thread's io_uring, for lanes.
    pub ring: Ring,
    /// The ways to volumes.
    pub lanes: Lanes,
    /// Long segment lists.
    pub lists: Lists,
    pub(crate) stats: ChannelStats,
    /// Commands that wait until a moment, earliest first.
    pub(crate) timers: BinaryHeap<Timer>,
    /// Queues with commands that wait until something completes ([`RunningQueue::waiting`]).
    pub(crate) wanting: Vec<u16>,
    /// There is a reason to try all of them again, or some of them have not had their try yet.
    pub(crate) stirred: bool,
    pub(crate) untried: bool,
    /// The command that is tried again at the moment: what it waits for was counted.
    pub(crate) tried: Option<Waiting>,
    /// Segments of chains that were read anew in this turn, since the moment came for which their commands had waited.
    pub(crate) followed: usize,
    /// What was refused among those that are tried in this turn.
    pub(crate) refusals: Vec<Refusal>,
    pub(crate) finishes: Vec<Finish>,
    /// Queues with unpublished completions.
    pub(crate) touched: Vec<u16>,
    /// Queues that go on with others at hand ([`Handler::relay`]).
    pub(crate) relays: Vec<u16>,
    /// Queues that are looked at when the next turn ends: more of their held commands may be active.
    pub(crate) held_over: Vec<u16>,
    /// What of a queue's work is done at a stretch, in ticks.
    pub(crate) stretch: u64,
    /// A notification was submitted and its completion not looked for yet.
    pub(crate) notified: bool,
    /// The moment of this turn, in ticks.
    pub(crate) now: u64,
    /// Commands taken and not published.
    pub(crate) under_way: u64,
    /// Commands of all queues together: what the lists above have room for.
    capacity: usize,
    /// Commands that have ended early in this turn.
    pub(crate) ended_early: Vec<Tag>,
    /// Where answers to off-path requests are posted.
    returns: Arc<dyn Returns>,
    /// The number of the latest off-path request.
    tickets: u64,
    /// Number of the channel.
    channel: u32,
    /// The queue that is being moved in.
    pub(crate) opening: QueueId,
}

impl std::fmt::Debug for Io {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Io").field("channel", &self.channel).finish_non_exhaustive()
    }
}

pub(crate) fn queue_of(tag: Tag) -> u16 {
    (tag.0 >> 16) as u16
}

/// The counter of a reason to wait.
fn counter_of(reason: Wait) -> QueueCounter {
    match reason {
        Wait::Throttled => QueueCounter::WaitThrottled,
        Wait::NoDma => QueueCounter::WaitNoDma,
        Wait::BackEndFull => QueueCounter::WaitBackEndFull,
        Wait::Delay => QueueCounter::WaitDelay,
        Wait::Pool => QueueCounter::WaitPool,
        Wait::PoolFull => QueueCounter::WaitPoolFull,
    }
}

pub(crate) fn head_of(tag: Tag) -> Head {
    Head(tag.0 as u16)
}

impl Io {
    pub(crate) fn new(
        ring: Ring,
        stats: ChannelStats,
        returns: Arc<dyn Returns>,
        channel: u32,
        now: u64,
    ) -> Io {
        Io {
            ring,
            lanes: Lanes::default(),
            lists: Lists::new(),
            stats,
            timers: BinaryHeap::new(),
            wanting: Vec::new(),
            stirred: false,
            untried: false,
            tried: None,
            followed: 0,
            refusals: Vec::new(),
            finishes: Vec::new(),
            touched: Vec::new(),
            relays: Vec::new(),
            held_over: Vec::new(),
            stretch: clock::from_ns(STRETCH_NS),
            notified: false,
            now,
            under_way: 0,
            capacity: 0,
            ended_early: Vec::new(),
            returns,
            tickets: 0,
            channel,
            opening: QueueId(0),
        }
    }

    /// Number of the channel.
    #[must_use]
    pub fn channel(&self) -> u32 {
        self.channel
    }

    /// In [`Handler::open`]: the name that the queue will have.
    #[must_use]
    pub fn opening(&self) -> QueueId {
        self.opening
    }

    /// In [`Handler::open`]: what wakes the queue when it waits for command elements, or for something else of other threads; [`Handler::woken`] follows. A queue that is gone by
    /// then is none, and one that has its place looks for nothing.
    #[must_use]
    pub fn wake(&self) -> Wake {
        let (returns, queue) = (Arc::clone(&self.returns), self.opening);
        Box::new(move || returns.post_elements(queue))
    }

    /// Notes something of a queue in the flight recorder.
    #[inline]
    pub fn event(&self, kind: FlightKind, queue: &RunningQueue, value: u64) {
        self.record(kind, queue.resources.stats.slot(), value);
    }

    pub(crate) fn record(&self, kind: FlightKind, slot: usize, value: u64) {
        self.stats.event(self.now, kind, slot as u32, value);
    }

    /// Makes room for the commands of another queue, so that nothing is allocated later.
    pub(crate) fn reserve(&mut self, commands: usize, queues: usize) {
        self.capacity += commands;
        let room = |len: usize| self.capacity.saturating_sub(len);
        self.timers.reserve(room(self.timers.len()));
        self.wanting.reserve(queues);
        self.refusals.reserve(room(self.refusals.len()));
        self.finishes.reserve(room(self.finishes.len()));
        self.touched.reserve(queues);
        self.relays.reserve(queues);
        self.held_over.reserve(queues);
    }

    /// Takes back what [`Io::reserve`] counted. The room stays; the next queue that comes finds it.
    pub(crate) fn release(&mut self, commands: usize) {
        self.capacity -= commands;
    }

    /// Makes the commands of a queue that wait for a moment due. What they took from a limit stays taken.
    pub(crate) fn make_due(&mut self, id: QueueId) {
        let mut timers = std::mem::take(&mut self.timers).into_vec();
        let now = clock::instant();
        for timer in timers.iter_mut().filter(|timer| queue_of(timer.tag) == id.0) {
            timer.at = timer.at.min(now);
        }
        self.timers = timers.into();
    }

    /// Adds an operation of the channel's own. The kernel gets it with one of the next submissions, however little it takes now.
    pub(crate) fn push(&mut self, operation: Op<'_>, user_data: u64) {
        self.ring.push_own(operation, user_data);
    }

    /// A head was taken from the ring. The channel does it for those that it takes itself.
    #[inline]
    pub fn note_taken(&mut self, queue: &mut RunningQueue, head: Head) {
        let now = self.now;
        let command = queue.command(head);
        debug_assert!(command.state == State::Free);
        command.state = State::Unread;
        command.taken = now;
        command.done = 0;
        command.passed = 0;
        command.list = None;
        self.under_way += 1;
    }

    /// Reads a chain that does not fit where its command has it so far, and has `needed` segments at least: into one of the queue's own
    /// lists, or into a shared one. `None`: it is in one of the longest.
    #[cold]
    pub fn read_longer(
        &mut self,
        queue: &mut RunningQueue,
        head: Head,
        needed: usize,
    ) -> Option<Read> {
        let mut long = needed > queue.lists.short_length();
        if let Some(list) = queue.command(head).list {
            if !queue.lists.is_short(list) {
                return None;
            }
            self.give_back_list(queue, head);
            long = true;
        }
        loop {
            let Some(list) = self.lists.take(&mut queue.lists, long) else {
                queue.command(head).state = State::Unread;
                self.wait_for(queue, head, Lacking::List { long });
                return Some(Read::Waits);
            };
            queue.command(head).list = Some(list);
            let mut chain = Chain::new(self.lists.get(list));
            let read = match queue.resources.ring.chain(head, &mut chain) {
                Ok(()) => Read::Whole(Walked::of(&chain)),
                // Too long for a shorter one.
                Err(ChainError::TooLong { .. }) if queue.lists.is_short(list) => {
                    self.give_back_list(queue, head);
                    long = true;
                    continue;
                }
                Err(error) => Read::Bad(BadChain::of(&chain, error)),
            };
            if queue.lists.has_short() && !queue.lists.is_short(list) {
                queue.count(QueueCounter::GlobalBuffers, 1);
            }
            return Some(read);
        }
    }

    /// A command no longer needs its list.
    #[inline]
    fn give_back_list(&mut self, queue: &mut RunningQueue, head: Head) {
        if let Some(list) = queue.command(head).list.take() {
            self.lists.give_back(&mut queue.lists, list);
        }
    }

    /// Hands the request in a command's slot to a lane, on its data segments or on `memory`. The answer, if it is there at once; else
    /// [`Handler::completed`] or [`Handler::try_again`] follows.
    #[inline]
    pub fn submit(
        &mut self,
        queue: &mut RunningQueue,
        head: Head,
        lane: LaneId,
        memory: Option<&IoBuf>,
    ) -> Option<Result<(), IoError>> {
        if self.ring.space() < <dyn Lane>::SQES && !self.makes_room() {
            let until = Some(clock::instant() + KERNEL_BUSY);
            let passed = queue.command(head).passed;
            let submit = Submit::Park { reason: Wait::BackEndFull, until };
            return self.submitted(queue, head, submit, passed);
        }
        let tag = queue.tag(head);
        let Io { ring, lanes, lists, .. } = self;
        let lane = lanes.get(lane).expect("a handler's lane lives as long as the handler uses it");
        let command = &queue.resources.commands[usize::from(head.0)];
        let bufs = match memory {
            None => command.data(lists),
            Some(memory) => std::slice::from_ref(memory),
        };
        let mut request = Request {
            op: command.op,
            offset: command.offset,
            len: command.len,
            bufs,
            tag,
            done: u64::from(command.done),
            passed: command.passed,
        };
        let submit = lane.submit(ring, &mut request);
        let passed = request.passed;
        self.submitted(queue, head, submit, passed)
    }

    /// Hands over what is queued; whether a lane has room then. The kernel takes nothing while it is short of memory.
    #[cold]
    fn makes_room(&mut self) -> bool {
        self.ring.submit().expect("io_uring_enter fails by a defect of this program alone");
        self.ring.space() >= <dyn Lane>::SQES
    }

    /// Notes what a lane said to a request of a command. The answer, if that is it. (Always inline: a call costs a request ten instructions.)
    #[inline(always)]
    pub fn submitted(
        &mut self,
        queue: &mut RunningQueue,
        head: Head,
        submit: Submit,
        passed: u8,
    ) -> Option<Result<(), IoError>> {
        match submit {
            Submit::Done(result) => return Some(result),
            Submit::Pending => {
                let command = &mut queue.resources.commands[usize::from(head.0)];
                // It may come back for another round, which is not paid for again.
                command.passed = passed;
                command.state = State::Submitted;
                command.submitted = self.now;
            }
            Submit::Held { reason } => self.held(queue, head, passed, reason),
            Submit::Park { reason, until } => self.park(queue, head, passed, reason, until),
        }
        None
    }

    /// It is begun by somebody else, which may take long.
    #[cold]
    fn held(&mut self, queue: &mut RunningQueue, head: Head, passed: u8, reason: Wait) {
        queue.count(counter_of(reason), 1);
        let command = &mut queue.resources.commands[usize::from(head.0)];
        command.passed = passed;
        command.state = State::Submitted;
        command.submitted = self.now;
    }

    #[cold]
    fn park(
        &mut self,
        queue: &mut RunningQueue,
        head: Head,
        passed: u8,
        reason: Wait,
        until: Option<Instant>,
    ) {
        let tag = queue.tag(head);
        let waiting = Waiting { tag, what: Lacking::Lane(reason) };
        if self.tried != Some(waiting) {
            let counter = counter_of(reason);
            queue.count(counter, 1);
            self.event(FlightKind::Park, queue, reason as u64);
        }
        queue.parked += 1;
        queue.show_levels();
        let skips = queue.skips_waits;
        let command = queue.command(head);
        // What has noted that the request passed lets it through whenever it comes again; anything else says when it has room.
        let until =
            until.map(|at| if skips && command.passed != passed { clock::instant() } else { at });
        command.passed = passed;
        command.state = State::Parked;
        let Some(at) = until else { return self.line_up(queue, waiting) };
        self.timers.push(Timer { at, tag });
        let rereads = queue.rereads;
        let command = queue.command(head);
        if rereads && command.list.is_some() && command.done == 0 {
            command.state = State::Unread;
            self.give_back_list(queue, head);
            // Somebody may have waited for just this.
            self.room_came();
        }
    }

    /// A command is paused until a moment; then [`Handler::try_again`] is called.
    pub fn pause_until(&mut self, queue: &mut RunningQueue, head: Head, at: Instant) {
        queue.command(head).state = State::Paused;
        queue.parked += 1;
        self.timers.push(Timer { at, tag: queue.tag(head) });
    }

    /// A command is paused until something has completed and there may be memory for it; then [`Handler::try_again`] is called.
    pub fn pause_for_room(&mut self, queue: &mut RunningQueue, head: Head) {
        queue.command(head).state = State::Paused;
        self.wait_for(queue, head, Lacking::Memory);
    }

    fn wait_for(&mut self, queue: &mut RunningQueue, head: Head, what: Lacking) {
        let waiting = Waiting { tag: queue.tag(head), what };
        if self.tried != Some(waiting) {
            queue.count(QueueCounter::WaitNoDma, 1);
        }
        queue.parked += 1;
        self.line_up(queue, waiting);
    }

    fn line_up(&mut self, queue: &mut RunningQueue, waiting: Waiting) {
        if queue.waiting.is_empty() && !self.wanting.contains(&queue.id.0) {
            self.wanting.push(queue.id.0);
        }
        queue.waiting.push_back(waiting);
    }

    /// A handler has memory again for which commands may wait, although none has ended. One that is tried again gives back no more than it
    /// has just taken.
    pub fn room_came(&mut self) {
        // Where nobody waits, nobody would take note of it either, and the channel would never sleep again.
        self.stirred |= self.tried.is_none() && !self.wanting.is_empty();
    }

    /// A command is paused until somebody on another thread has answered; then [`Handler::answered`] is called.
    #[must_use]
    pub fn off_path<T: Reply>(&mut self, queue: &mut RunningQueue, head: Head) -> Answer<T> {
        self.tickets += 1;
        queue.tickets[usize::from(head.0)] = self.tickets;
        queue.answers_due += 1;
        queue.command(head).state = State::Paused;
        Answer::new(Arc::clone(&self.returns), queue.id, head.0, self.tickets)
    }

    /// Takes commands off the lists on which they wait, if they do. What is out, at a lane or for an answer, stays out. Each list is gone through
    /// once for all of them: thousands may wait.
    pub fn stop_waiting(&mut self, queue: &mut RunningQueue, heads: impl Iterator<Item = Head>) {
        let (mut held, mut waiting, mut timed) = (HashSet::new(), HashSet::new(), false);
        for head in heads {
            let at = usize::from(head.0);
            match queue.state(head) {
                State::Held => drop(held.insert(head.0)),
                State::Paused if queue.tickets[at] != 0 => continue,
                State::Unread | State::Parked | State::Paused => {
                    timed = true;
                    waiting.insert(queue.tag(head));
                }
                State::Free | State::Submitted => continue,
            }
            queue.parked -= 1;
        }
        if !held.is_empty() {
            let first_kept = queue.held.len() - queue.kept;
            let kept = queue.held.range(first_kept..).filter(|head| held.contains(head)).count();
            queue.kept -= kept;
            queue.held.retain(|head| !held.contains(head));
        }
        if !waiting.is_empty() {
            queue.waiting.retain(|it| !waiting.contains(&it.tag));
        }
        if timed {
            self.timers.retain(|timer| !waiting.contains(&timer.tag));
        }
    }

    /// A command that was to end early has ended, or is about to be settled in this very call.
    pub fn ended_early(&mut self, queue: &RunningQueue, head: Head) {
        self.ended_early.push(queue.tag(head));
    }

    /// Names a command for others.
    #[must_use]
    pub fn name_of(&self, queue: &RunningQueue, head: Head) -> CommandRef {
        CommandRef { channel: self.channel, queue: queue.id, head: head.0 }
    }

    /// The end of every command: gives its head back, with its answer written, and puts its queue on the list of those to be published.
    /// `written` bytes of the writable part are. Its latency counts for its queue, and for a part of the device ([`Handler::record`]).
    #[inline]
    pub fn settle(&mut self, queue: &mut RunningQueue, head: Head, part: u16, written: u32) {
        self.list(queue);
        let list = queue.settle(head, part, written, self.now);
        if let Some(list) = list {
            self.lists.give_back(&mut queue.lists, list);
        }
    }

    /// The same for a head that the handler of a queue that pulls has taken from the ring itself, and that ends in this turn.
    #[inline]
    pub fn settle_taken(&mut self, queue: &mut RunningQueue, head: Head, written: u32) {
        self.under_way += 1;
        self.list(queue);
        queue.settle_taken(head, written, self.now);
    }

    /// Puts a queue on the list of those that are looked at when the turn ends.
    #[inline]
    pub(crate) fn list(&mut self, queue: &mut RunningQueue) {
        if !queue.listed {
            queue.listed = true;
            self.touched.push(queue.id.0);
        }
    }

    /// [`Handler::relay`] is called for a queue before the turn's ends are published. To be asked for once until then.
    #[cold]
    pub fn relay(&mut self, queue: &mut RunningQueue) {
        self.relays.push(queue.id.0);
        queue.relays = true;
        self.list(queue);
    }

    /// Hands the kernel an operation of a queue's own, which does not wait: [`Handler::operated`] follows, with `mark`. Until then the queue stays,
    /// and so must what the operation is on. `false`: the kernel takes nothing now, for it is short of memory.
    pub fn operate(&mut self, queue: &mut RunningQueue, operation: Op<'_>, mark: u16) -> bool {
        let token = token::OPERATION | u64::from(queue.id.0) << 16 | u64::from(mark);
        let user_data = Lanes::OWN.user_data(token);
        let pushed = self.ring.push(operation, user_data).is_ok()
            || self.makes_room() && self.ring.push(operation, user_data).is_ok();
        queue.operations += u32::from(pushed);
        pushed
    }

    /// The moment of this turn, in ticks.
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// It is that moment now, for lanes as well.
    #[inline]
    pub(crate) fn set_now(&mut self, ticks: u64) {
        self.now = ticks;
        self.ring.set_now(ticks);
    }

    /// Makes a queue's completions visible and notifies its client if it wants that; then accounts for them.
    #[inline]
    pub(crate) fn publish(&mut self, queue: &mut RunningQueue, handler: &impl Handler) {
        if queue.publish() {
            self.notify(queue);
        } else {
            queue.count(QueueCounter::NotificationsSpared, 1);
        }
        self.set_now(clock::ticks());
        let count = queue.account(handler, self.now);
        self.under_way -= count;
        self.stats.add(ChannelCounter::Commands, count);
        self.event(FlightKind::Publish, queue, count);
    }

    /// Tells a client that its queue has stopped by itself; as [`Io::notify`], for the same reason.
    #[cold]
    pub(crate) fn signal_error(&mut self, queue: &mut RunningQueue) {
        let Some(error) = &queue.resources.error else { return };
        // Without room in the table the client is not told; its adapter's state is.
        let Ok(file) = self.ring.register(error.as_fd()) else { return };
        queue.error = Some(file);
        let user_data = Lanes::OWN.user_data(token::ERROR + u64::from(queue.id.0));
        self.push(Op::Notify { file }, user_data);
    }

    /// Notifies a queue's client. The eventfd is the client's too: a write of ours could wait for as long as the client likes, so the kernel
    /// does it for the ring, at most one for a queue at a time.
    pub(crate) fn notify(&mut self, queue: &mut RunningQueue) {
        let Some(file) = queue.call else { return };
        queue.count(QueueCounter::Notifications, 1);
        self.event(FlightKind::Notify, queue, 0);
        if queue.notifying {
            queue.notify_again = true;
            return;
        }
        queue.notifying = true;
        self.notified = true;
        let user_data = Lanes::OWN.user_data(token::NOTIFY + u64::from(queue.id.0));
        self.push(Op::Notify { file }, user_data);
        // At once: the client waits.
        self.ring.submit().expect("io_uring_enter fails by a defect of this program alone");
    }
}
