//! The thread: its loop, its messages, its sleep.

use std::collections::{BinaryHeap, VecDeque};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::{Duration, Instant};

use block::{Finish, LaneId, Tag};
use memory::clock;
use protocol::message::WaitMode;
use protocol::stats::{ChannelCounter, ChannelStats, FlightKind, QueueCounter};
use uring::{Completion, FileSlot, Op, Ring, RingError};
use vring::QueueError;

use crate::handle::{Activity, ChannelConfig, Drain, Inbox, Message};
use crate::lanes::Lanes;
use crate::lists::Lists;
use crate::mailbox::OneShot;
use crate::queue::{Active, Kind, Phase, QueueId, Seat, StopReason};
use crate::scratch::Scratches;
use crate::scsi::{Counted, Writers};
use crate::wait::{Awaited, Decision, Waiter};

mod io;
mod scsi;

use io::Timer;
use scsi::Abort;

/// How often in a row a hot queue is found empty before it is armed although the channel stays awake.
const EMPTY_TURNS_MAX: u32 = 256;
/// A channel that stays awake looks at least this often whether a client took its memory away.
const MEMORY_CHECK_TURNS: u32 = 1024;

/// Tokens of the channel's own operations: the mailbox, what needs no answer, and from `KICK`, `NOTIFY` and `ERROR` on the
/// queues' kicks, notifications and errors. A queue's place fits 16 bits.
mod token {
    pub(super) const MAILBOX: u64 = 0;
    pub(super) const IGNORED: u64 = 1;
    pub(super) const KICK: u64 = 1 << 16;
    pub(super) const NOTIFY: u64 = 2 << 16;
    pub(super) const ERROR: u64 = 3 << 16;
}

/// Why a queue could not be moved in.
#[derive(Debug, thiserror::Error)]
#[error("queue {} of {}: {what}", .seat.number, .seat.adapter.name)]
pub struct StartFailure {
    /// The queue comes back.
    pub seat: Box<Seat>,
    /// What is wrong, and what mends it.
    pub what: String,
}

/// Everything that belongs to the thread. `queues` is apart from `io`, so that a queue can be worked on with the rest at hand.
pub(crate) struct Worker {
    queues: Vec<Option<Box<Active>>>,
    /// Queues looked at in each turn.
    hot: Vec<u16>,
    io: Io,
    inbox: Arc<Inbox>,
    mailbox: FileSlot,
    waiter: Waiter,
    activity: Option<Arc<Activity>>,
    turns_until_check: u32,
    /// Who waits for commands that have to end.
    aborts: Vec<Abort>,
    /// Whether the previous turn found work.
    busy: bool,
    exit: bool,
}

/// What commands need on their way.
pub(crate) struct Io {
    pub(crate) ring: Ring,
    pub(crate) lanes: Lanes,
    pub(crate) lists: Lists,
    pub(crate) stats: ChannelStats,
    /// Commands that wait until a moment, earliest first.
    pub(crate) timers: BinaryHeap<Timer>,
    /// Commands that wait until something completes.
    pub(crate) waiting: VecDeque<Tag>,
    pub(crate) finishes: Vec<Finish>,
    /// Queues with unpublished completions.
    pub(crate) touched: Vec<u16>,
    /// A notification was submitted and its completion not looked for yet.
    pub(crate) notified: bool,
    /// The moment of this turn, in ticks.
    pub(crate) now: u64,
    /// Commands taken and not published.
    pub(crate) under_way: u64,
    /// Commands of all queues together: what the lists above have room for.
    pub(crate) capacity: usize,
    pub(crate) scratches: Scratches,
    pub(crate) writers: Writers,
    pub(crate) counted: Counted,
    /// Aborted commands that have ended in this turn.
    pub(crate) ended_early: Vec<Tag>,
    /// Where answers to errands are posted.
    pub(crate) inbox: Arc<Inbox>,
    /// The number of the latest errand.
    pub(crate) tickets: u64,
    /// Number of the channel.
    pub(crate) channel: u32,
}

impl Worker {
    pub(crate) fn new(
        mut ring: Ring,
        inbox: Arc<Inbox>,
        stats: ChannelStats,
        config: &ChannelConfig,
    ) -> Result<Worker, RingError> {
        let mailbox = ring.register(inbox.bell().0.as_fd())?;
        ring.push(Op::PollMulti { file: mailbox }, Lanes::OWN.user_data(token::MAILBOX))
            .expect("an empty ring has room");
        let now = clock::ticks();
        let io = Io {
            ring,
            lanes: Lanes::default(),
            lists: Lists::new(),
            stats,
            timers: BinaryHeap::new(),
            waiting: VecDeque::new(),
            finishes: Vec::new(),
            touched: Vec::new(),
            notified: false,
            now,
            under_way: 0,
            capacity: 0,
            scratches: Scratches::default(),
            writers: Writers::default(),
            counted: Counted::default(),
            ended_early: Vec::new(),
            inbox: Arc::clone(&inbox),
            tickets: 0,
            channel: config.index,
        };
        Ok(Worker {
            queues: Vec::new(),
            hot: Vec::new(),
            io,
            inbox,
            mailbox,
            waiter: Waiter::new(
                WaitMode::Interrupt,
                u64::from(config.poll_us_max) * 1000,
                clock::to_ns(now),
            ),
            activity: config.activity.clone(),
            turns_until_check: MEMORY_CHECK_TURNS,
            aborts: Vec::new(),
            busy: false,
            exit: false,
        })
    }

    /// Until [`Message::Exit`].
    pub(crate) fn run(&mut self) {
        while !self.exit {
            let begin = clock::ticks();
            self.io.now = begin;
            self.busy = self.turn();
            if self.busy {
                self.account_work(begin);
            } else {
                let now_ns = clock::to_ns(self.io.now);
                match self.waiter.idle(now_ns) {
                    Decision::Look => std::hint::spin_loop(),
                    Decision::Sleep => self.sleep(),
                }
            }
        }
    }

    /// A turn outside of [`Worker::run`]: it does not account for itself.
    pub(crate) fn one_turn(&mut self) -> bool {
        self.io.now = clock::ticks();
        self.busy = self.turn();
        self.busy
    }

    /// One turn; whether it found work.
    #[inline]
    fn turn(&mut self) -> bool {
        let mut worked = self.take_hot();
        if self.io.ring.submit().is_err() {
            self.ring_failed();
        }
        worked |= self.reap();
        worked |= self.retry();
        self.publish();
        if !self.aborts.is_empty() {
            self.settle_aborts();
        }
        if std::mem::take(&mut self.io.notified) {
            // Its completion is there already, as a rule, and must not end the next sleep.
            worked |= self.reap();
        }
        worked
    }

    #[cold]
    fn ring_failed(&self) -> ! {
        // Only a defect of this program makes io_uring_enter fail. The supervisor starts a new process, and the
        // in-flight regions bring everything back.
        panic!("io_uring_enter failed");
    }

    fn take_hot(&mut self) -> bool {
        let mut worked = false;
        let mut index = 0;
        while index < self.hot.len() {
            let id = self.hot[index];
            let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else {
                self.hot.swap_remove(index);
                continue;
            };
            match self.io.take(id, queue) {
                Ok(0) => {
                    queue.empty_turns += u32::from(self.busy);
                    if queue.empty_turns > EMPTY_TURNS_MAX && !queue.seat.ring.enable_kicks() {
                        queue.phase = Phase::Armed;
                        self.hot.swap_remove(index);
                        continue;
                    }
                }
                Ok(_) => {
                    queue.empty_turns = 0;
                    worked = true;
                }
                Err(error) => {
                    // It is off the list then.
                    self.ring_broke(id, error);
                    worked = true;
                    continue;
                }
            }
            index += 1;
        }
        worked
    }

    /// A ring makes no sense.
    fn ring_broke(&mut self, id: u16, error: QueueError) {
        let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else { return };
        self.io.event(FlightKind::Broken, queue.seat.stats.slot(), 0);
        // A ring whose pages were taken away reads as zeroes: say what happened, not what it looks like.
        let gone = queue.seat.ring.mem().damaged();
        queue.break_down(if gone { StopReason::Memory } else { error.into() });
        self.io.signal_error(id, queue);
        queue.phase = Phase::Draining;
        self.hot.retain(|hot| *hot != id);
    }

    /// Handles all visible completions; whether there were any.
    fn reap(&mut self) -> bool {
        let mut worked = false;
        while let Some(completion) = self.io.ring.next() {
            let (lane, token) = LaneId::split(completion.user_data);
            if lane == Lanes::OWN {
                worked |= self.own_completion(token, completion);
            } else {
                if !worked {
                    self.io.now = clock::ticks();
                    worked = true;
                }
                let Io { lanes, ring, finishes, .. } = &mut self.io;
                let lane = lanes.get(lane).expect("a lane is closed with nothing in flight");
                lane.complete(ring, token, completion.result, finishes);
                self.finish_all();
            }
        }
        worked
    }

    /// Ends the commands that a lane has finished.
    fn finish_all(&mut self) {
        while let Some(finish) = self.io.finishes.pop() {
            let id = io::queue_of(finish.tag);
            let queue = self.queues[usize::from(id)]
                .as_deref_mut()
                .expect("a queue stays until it is drained");
            self.io.finished(id, queue, finish);
            self.heat(id);
        }
    }

    /// Tries again what waited for a moment that has come or for a completion.
    fn retry(&mut self) -> bool {
        let mut worked = false;
        if !self.io.timers.is_empty() {
            let now = Instant::now();
            while self.io.timers.peek().is_some_and(|timer| timer.at <= now) {
                let tag = self.io.timers.pop().expect("peeked").tag;
                self.resubmit(tag);
                worked = true;
            }
        }
        worked
    }

    fn resubmit(&mut self, tag: Tag) {
        let id = io::queue_of(tag);
        let queue =
            self.queues[usize::from(id)].as_deref_mut().expect("a queue stays until it is drained");
        self.io.resubmit(id, queue, tag);
    }

    /// Publishes every touched queue, closes those that are drained.
    #[inline]
    fn publish(&mut self) {
        if self.io.touched.is_empty() {
            return;
        }
        // Something completed, so what waits for a resource may find one. Before publishing: no completion waits for
        // this, and what is refused again goes to the end of the line.
        for _ in 0..self.io.waiting.len() {
            let Some(tag) = self.io.waiting.pop_front() else { break };
            self.resubmit(tag);
        }
        while let Some(id) = self.io.touched.pop() {
            let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else { continue };
            queue.listed = false;
            self.io.take_held(id, queue);
            if queue.touched {
                self.io.publish(id, queue);
            }
            if queue.is_drained() {
                self.close(id);
            }
        }
    }

    fn account_work(&mut self, begin: u64) {
        // The last publication's moment will do; without one, nothing was read since the turn began.
        let end = if self.io.now == begin { clock::ticks() } else { self.io.now };
        let (begin_ns, end_ns) = (clock::to_ns(begin), clock::to_ns(end));
        let stats = self.io.stats;
        let spun = self.waiter.idle_ns(begin_ns);
        if spun > 0 {
            stats.add(ChannelCounter::Spin, spun);
            stats.add(ChannelCounter::SpinHits, 1);
        }
        stats.add(ChannelCounter::Turns, 1);
        stats.set(ChannelCounter::Enters, self.io.ring.enters());
        stats.add(ChannelCounter::Busy, end_ns.saturating_sub(begin_ns));
        self.waiter.found(begin_ns);
        let awaited = if self.io.under_way == 0 { Awaited::Client } else { Awaited::Device };
        self.waiter.worked(awaited, end_ns);
        if let Some(activity) = &self.activity {
            activity.note();
        }
        self.turns_until_check -= 1;
        if self.turns_until_check == 0 {
            self.check_memory();
        }
    }

    /// Arms every hot queue and sleeps until something happens.
    fn sleep(&mut self) {
        self.check_memory();
        while let Some(&id) = self.hot.last() {
            let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else {
                self.hot.pop();
                continue;
            };
            if queue.seat.ring.enable_kicks() {
                // Something came meanwhile: stay awake. Those armed before stay armed.
                queue.seat.ring.disable_kicks();
                return;
            }
            queue.phase = Phase::Armed;
            self.hot.pop();
        }
        let begin = clock::ticks();
        let spun = self.waiter.idle_ns(clock::to_ns(begin));
        let in_flight =
            self.queues.iter().flatten().map(|queue| u64::from(queue.seat.ring.in_flight())).sum();
        self.io.now = begin;
        self.io.event(FlightKind::Sleep, 0, in_flight);
        let timeout =
            self.io.timers.peek().map(|timer| timer.at.saturating_duration_since(Instant::now()));
        let wait = self.io.ring.wait(timeout.map(|time| time.max(Duration::from_nanos(1))));
        if wait.is_err() {
            self.ring_failed();
        }
        let end = clock::ticks();
        let slept = clock::to_ns(end.wrapping_sub(begin));
        self.io.now = end;
        self.io.event(FlightKind::Wake, 0, slept);
        let stats = self.io.stats;
        stats.set(ChannelCounter::SpinWindow, self.waiter.window_ns());
        self.waiter.woke(clock::to_ns(end));
        stats.add(ChannelCounter::Wakeups, 1);
        stats.add(ChannelCounter::Spin, spun);
        stats.add(ChannelCounter::Sleep, slept);
    }

    /// Makes a queue hot.
    fn heat(&mut self, id: u16) {
        let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else { return };
        if queue.phase == Phase::Armed {
            if matches!(queue.kind, Kind::Event(_)) {
                return self.buffer_came(id);
            }
            queue.phase = Phase::Hot;
            queue.empty_turns = 0;
            queue.seat.ring.disable_kicks();
            self.hot.push(id);
        }
    }

    /// A client that took its memory away gets its queues stopped; zero pages stand in for it meanwhile.
    fn check_memory(&mut self) {
        self.turns_until_check = MEMORY_CHECK_TURNS;
        for (id, queue) in self.queues.iter_mut().enumerate() {
            let Some(queue) = queue else { continue };
            if queue.broken || !queue.seat.ring.mem().damaged() {
                continue;
            }
            queue.break_down(StopReason::Memory);
            self.io.signal_error(id as u16, queue);
            if matches!(queue.phase, Phase::Hot | Phase::Armed) {
                queue.phase = Phase::Draining;
                self.hot.retain(|hot| usize::from(*hot) != id);
            }
        }
    }

    /// A completion of the channel's own operations; whether it is work.
    fn own_completion(&mut self, token: u64, completion: Completion) -> bool {
        match token {
            token::MAILBOX => {
                if !completion.more {
                    self.io.push(
                        Op::PollMulti { file: self.mailbox },
                        Lanes::OWN.user_data(token::MAILBOX),
                    );
                }
                for message in self.inbox.take() {
                    self.io.stats.add(ChannelCounter::Messages, 1);
                    self.message(message);
                }
            }
            token::IGNORED => return false,
            token::ERROR.. => {
                self.error_told(token as u16);
                return false;
            }
            token::NOTIFY.. => {
                self.notified(token as u16);
                return false;
            }
            _ => self.kicked(token as u16, completion),
        }
        true
    }

    fn error_told(&mut self, id: u16) {
        let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else { return };
        if let Some(file) = queue.error.take() {
            self.io.ring.unregister(file);
        }
        if queue.phase == Phase::Closing {
            self.give_back_if_quiet(id);
        }
    }

    /// A notification is over. If the queue has published since, its client is owed another one.
    fn notified(&mut self, id: u16) {
        let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else { return };
        queue.notifying = false;
        if queue.phase == Phase::Closing {
            self.give_back_if_quiet(id);
        } else if std::mem::take(&mut queue.notify_again) {
            self.io.notify(id, queue);
        }
    }

    fn kicked(&mut self, id: u16, completion: Completion) {
        let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else { return };
        queue.watched = completion.more;
        if queue.phase == Phase::Closing {
            self.give_back_if_quiet(id);
            return;
        }
        if !completion.more {
            // The kernel ends a multishot poll when completions overflow. Look once: a kick may have been lost with it.
            queue.watched = true;
            let operation = Op::PollMulti { file: queue.kick };
            self.io.push(operation, Lanes::OWN.user_data(token::KICK + u64::from(id)));
        }
        queue.count(QueueCounter::Kicks, 1);
        let slot = queue.seat.stats.slot();
        self.io.event(FlightKind::Kick, slot, 0);
        self.heat(id);
    }

    fn message(&mut self, message: Message) {
        match message {
            Message::Start(seat, answer) => answer.send(self.start(seat)),
            Message::Stop(id, drain, answer) => self.stop(id.0, drain, answer),
            Message::SetLog(id, log, used) => {
                if let Some(queue) = self.queues[usize::from(id.0)].as_deref_mut() {
                    queue.seat.ring.set_log(log, used);
                }
            }
            Message::SetLuns(id, luns, answer) => self.set_luns(id.0, luns, answer),
            Message::Abort(scope, answer) => self.abort(&scope, answer),
            Message::Query(scope, answer) => self.query(&scope, answer),
            Message::Event(id, event) => self.post_event(id.0, event),
            Message::Returned(returned) => self.returned(returned),
            Message::Refresh => self.refresh(),
            Message::Run(function) => function(),
            Message::Exit => self.exit = true,
        }
    }

    pub(crate) fn start(&mut self, seat: Box<Seat>) -> Result<QueueId, StartFailure> {
        let (kick, call, kind) = match self.register(&seat) {
            Ok(registered) => registered,
            Err(what) => return Err(StartFailure { seat, what }),
        };
        let index = self.queues.iter().position(Option::is_none).unwrap_or_else(|| {
            self.queues.push(None);
            self.queues.len() - 1
        });
        let id = index as u16;
        let events = matches!(kind, Kind::Event(_));
        let mut queue = Box::new(Active::new(*seat, kind, kick, call));
        queue.watched = true;
        self.io.reserve(usize::from(queue.seat.ring.size()), self.queues.len());
        self.hot.reserve(self.queues.len());
        self.io
            .push(Op::PollMulti { file: kick }, Lanes::OWN.user_data(token::KICK + u64::from(id)));
        queue.seat.ring.disable_kicks();
        queue.count(QueueCounter::Starts, 1);
        self.io.event(FlightKind::Start, queue.seat.stats.slot(), 0);
        self.io.notify(id, &mut queue);
        if events {
            // Its heads stay in the ring until there is something to tell.
            queue.phase = Phase::Armed;
        } else {
            self.hot.push(id);
        }
        self.queues[index] = Some(queue);
        self.refresh();
        Ok(QueueId(id))
    }

    /// Registers what a queue needs in the ring: its two descriptors and its lanes.
    fn register(&mut self, seat: &Seat) -> Result<(FileSlot, Option<FileSlot>, Kind), String> {
        let ring = &mut self.io.ring;
        let kick = ring.register(seat.kick.as_fd()).map_err(|error| error.to_string())?;
        let call = seat.call.as_ref().map(|call| ring.register(call.as_fd())).transpose();
        let call = call.map_err(|error| (None, error.to_string()));
        let kind = call.and_then(|call| {
            let kind = self.io.kind_of(seat).map_err(|what| (call, what))?;
            Ok((call, kind))
        });
        match kind {
            Ok((call, kind)) => Ok((kick, call, kind)),
            Err((call, what)) => {
                self.io.ring.unregister(kick);
                call.into_iter().for_each(|call| self.io.ring.unregister(call));
                Err(what)
            }
        }
    }

    fn stop(&mut self, id: u16, drain: Drain, answer: OneShot<Seat>) {
        if drain == Drain::SkipWaits {
            self.io.make_due(id);
        }
        let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else { return };
        assert!(queue.stop.is_none(), "a queue is stopped once");
        queue.stop = Some(answer);
        queue.phase = Phase::Draining;
        let (slot, in_flight) = (queue.seat.stats.slot(), queue.seat.ring.in_flight());
        self.io.event(FlightKind::Stop, slot, u64::from(in_flight));
        let drained = queue.is_drained();
        self.hot.retain(|hot| *hot != id);
        if drained {
            self.close(id);
        }
    }

    /// A drained queue: ends the poll on its kick. A broken queue stays drained until somebody asks for it.
    fn close(&mut self, id: u16) {
        let Some(queue) = self.queues[usize::from(id)].as_deref_mut() else { return };
        if queue.stop.is_none() {
            return;
        }
        if queue.touched {
            self.io.publish(id, queue);
        }
        queue.phase = Phase::Closing;
        let erring = queue.error.is_some();
        for (in_kernel, token) in
            [(queue.watched, token::KICK), (queue.notifying, token::NOTIFY), (erring, token::ERROR)]
        {
            if in_kernel {
                let user_data = Lanes::OWN.user_data(token + u64::from(id));
                self.io.push(Op::Cancel { user_data }, Lanes::OWN.user_data(token::IGNORED));
            }
        }
        self.give_back_if_quiet(id);
    }

    fn give_back_if_quiet(&mut self, id: u16) {
        let quiet = |queue: &Active| !queue.watched && !queue.notifying && queue.error.is_none();
        if self.queues[usize::from(id)].as_deref().is_some_and(quiet) {
            self.give_back(id);
        }
    }

    /// Nothing in the kernel knows the queue any more: answers with its seat.
    fn give_back(&mut self, id: u16) {
        let Some(mut queue) = self.queues[usize::from(id)].take() else { return };
        self.io.ring.unregister(queue.kick);
        if let Some(call) = queue.call {
            self.io.ring.unregister(call);
        }
        self.io.let_go(&mut queue.kind);
        self.io.release(usize::from(queue.seat.ring.size()));
        self.io.event(FlightKind::Stopped, queue.seat.stats.slot(), 0);
        queue.show_levels();
        self.refresh();
        if let Some(answer) = queue.stop.take() {
            answer.send(queue.seat);
        }
    }

    /// The channel polls if any of its queues wants that, is adaptive if any wants that, and else sleeps at once.
    fn refresh(&mut self) {
        let rank = |mode: &WaitMode| match mode {
            WaitMode::Interrupt => 0,
            WaitMode::Adaptive => 1,
            WaitMode::Poll => 2,
        };
        let queues = || self.queues.iter().flatten();
        let mode = queues().map(|queue| queue.seat.adapter.wait()).max_by_key(rank);
        self.waiter.set_mode(mode.unwrap_or(WaitMode::Interrupt));
        self.io.stats.set(ChannelCounter::Queues, queues().count() as u64);
    }
}
