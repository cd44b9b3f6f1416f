//! The thread: its loop, its messages, its sleep.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::time::Duration;

use block::LaneId;
use memory::clock;
use protocol::message::WaitMode;
use protocol::stats::{ChannelCounter, FlightKind, QueueCounter};
use uring::{Completion, FileSlot, Op, Ring, RingError};
use vring::QueueError;

use crate::BATCH;
use crate::handle::{Activity, ChannelConfig, Drain, Inbox, Message};
use crate::handler::{Handler, Opened, Peers};
use crate::io::{Io, head_of, queue_of, token};
use crate::lanes::Lanes;
use crate::mailbox::OneShot;
use crate::off_path::Returns;
use crate::price::ASSUMED_NS;
use crate::queue::{Phase, QueueId, QueueResources, RunningQueue, StopReason};
use crate::wait::{Awaited, Decision, Waiter};

mod control;
mod learn;
mod serve;

use control::{EFFORT, Ending};
use learn::Learner;
use serve::{SEGMENTS_MAX, Served};

/// How often in a row a hot queue is found empty before it is armed although the channel stays awake.
const EMPTY_TURNS_MAX: u32 = 256;
/// A channel that stays awake looks at least this often whether a client took its memory away.
const MEMORY_CHECK_TURNS: u32 = 1024;

/// Why a queue could not be moved in.
#[derive(Debug, thiserror::Error)]
#[error("queue {} of {}: {what}", .queue.number, .queue.adapter.name)]
pub struct StartFailure {
    /// The queue comes back.
    pub queue: Box<QueueResources>,
    /// What is wrong, and what mends it.
    pub what: String,
}

/// Everything that belongs to the thread. `queues` is apart from `io`, so that a queue can be worked on with the rest at hand.
pub(crate) struct Worker<H: Handler> {
    queues: Vec<Option<Box<Served<H>>>>,
    /// Queues looked at in each turn.
    hot: Vec<u16>,
    io: Io,
    shared: H::Shared,
    inbox: Arc<Inbox<H>>,
    mailbox: FileSlot,
    waiter: Waiter,
    /// None where the price of a sleep was told.
    learner: Option<Learner>,
    activity: Option<Arc<Activity>>,
    turns_until_check: u32,
    /// Who waits for commands that have to end.
    endings: Vec<Ending<H>>,
    /// How much may be looked at in this turn to find them.
    effort: usize,
    /// Whether the previous turn found work.
    busy: bool,
    exit: bool,
}

/// The queues of a channel but for one, which works with them.
struct Others<'a, H> {
    queues: &'a mut [Option<Box<Served<H>>>],
    broken: Vec<(QueueId, QueueError)>,
}

impl<H> Peers<H> for Others<'_, H> {
    fn get(&mut self, id: QueueId) -> Option<(&mut H, &mut RunningQueue)> {
        let Served { queue, handler } = self.queues.get_mut(usize::from(id.0))?.as_deref_mut()?;
        queue.takes_heads().then_some((handler, queue))
    }

    fn is_leaving(&self, id: QueueId) -> bool {
        let served = self.queues.get(usize::from(id.0)).and_then(|served| served.as_deref());
        served.is_some_and(|served| served.queue.stop.is_some())
    }

    fn ring_broke(&mut self, id: QueueId, error: QueueError) {
        if !self.broken.iter().any(|(broken, _)| *broken == id) {
            self.broken.push((id, error));
        }
    }
}

impl<H: Handler> Worker<H> {
    pub(crate) fn new(
        mut ring: Ring,
        inbox: Arc<Inbox<H>>,
        stats: protocol::stats::ChannelStats,
        config: &ChannelConfig,
    ) -> Result<Worker<H>, RingError> {
        let mailbox = ring.register(inbox.bell().0.as_fd())?;
        ring.push(Op::PollMulti { file: mailbox }, Lanes::OWN.user_data(token::MAILBOX))
            .expect("an empty ring has room");
        let now = clock::ticks();
        let returns: Arc<dyn Returns> = inbox.clone();
        let price_ns = config.poll_us_max.map_or(ASSUMED_NS, |told| u64::from(told) * 1000);
        stats.set(ChannelCounter::SleepPrice, price_ns);
        Ok(Worker {
            queues: Vec::new(),
            hot: Vec::new(),
            io: Io::new(ring, stats, returns, config.index, now),
            shared: H::Shared::default(),
            inbox,
            mailbox,
            waiter: Waiter::new(WaitMode::Interrupt, price_ns, clock::to_ns(now)),
            learner: config.poll_us_max.is_none().then(Learner::default),
            activity: config.activity.clone(),
            turns_until_check: MEMORY_CHECK_TURNS,
            endings: Vec::new(),
            effort: EFFORT,
            busy: false,
            exit: false,
        })
    }

    /// From now on time ends no queue's stretch.
    pub(crate) fn without_clock(&mut self) {
        self.io.stretch = u64::MAX;
    }

    /// A queue that something of the channel's own leads to: it stays until nothing does any more.
    fn served(&mut self, id: u16) -> &mut Served<H> {
        self.queues[usize::from(id)].as_deref_mut().expect("a queue stays until it is given back")
    }

    /// Until [`Message::Exit`].
    #[cfg(not(feature = "sim"))]
    pub(crate) fn run(&mut self) {
        while self.step() {}
    }

    /// A turn, and what follows it; whether another one may follow. In a simulation, where a sleep returns at once, this is all that the thread does
    /// before another one has its turn.
    #[inline]
    pub(crate) fn step(&mut self) -> bool {
        let begin = clock::ticks();
        self.io.set_now(begin);
        self.busy = self.turn();
        if self.busy {
            self.account_work(begin);
        } else {
            let now_ns = clock::to_ns(self.io.now);
            match self.waiter.idle(now_ns) {
                // In a simulation, others have their turn at once.
                Decision::Look if cfg!(feature = "sim") => {}
                Decision::Look => std::hint::spin_loop(),
                Decision::Sleep => self.sleep(),
            }
        }
        !self.exit
    }

    /// A turn outside of [`Worker::run`]: it does not account for itself.
    pub(crate) fn one_turn(&mut self) -> bool {
        self.io.set_now(clock::ticks());
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
        if let Some(lane) = self.io.lanes.next_round() {
            self.round(lane);
            worked = true;
        }
        if !self.endings.is_empty() {
            worked |= self.end_early();
        }
        if std::mem::take(&mut self.io.notified) {
            // Its completion is there already, as a rule, and must not end the next sleep.
            worked |= self.reap();
        }
        worked || !self.io.touched.is_empty()
    }

    #[cold]
    fn ring_failed(&self) -> ! {
        // Only a defect of this program makes io_uring_enter fail. The supervisor starts a new process, and the
        // in-flight regions bring everything back.
        panic!("io_uring_enter failed");
    }

    /// Takes from every hot queue that has no more than a turn's work, and then from one of the others.
    #[inline]
    fn take_hot(&mut self) -> bool {
        let (mut worked, mut heavy, mut last) = (false, u64::MAX, false);
        let mut index = 0;
        loop {
            let Some(&id) = self.hot.get(index) else {
                if heavy == u64::MAX {
                    return worked;
                }
                (worked, last) = (true, true);
                index = self.place_of_heavy(heavy);
                heavy = u64::MAX;
                continue;
            };
            let Some(served) = self.queues[usize::from(id)].as_deref_mut() else {
                unreachable!("a queue leaves the list before the channel");
            };
            if served.queue.heavy != 0 && !last {
                heavy = heavy.min(served.queue.heavy);
                index += 1;
                continue;
            }
            match served.take(&mut self.io) {
                Ok(None) => {
                    // Without kicks: what is in the ring stays there until the queue is woken.
                    served.queue.phase = Phase::Armed;
                    self.hot.swap_remove(index);
                }
                Ok(Some(0)) => {
                    let queue = &mut served.queue;
                    queue.empty_turns += u32::from(self.busy);
                    if queue.empty_turns > EMPTY_TURNS_MAX && !self.io.arm(queue) {
                        queue.phase = Phase::Armed;
                        self.hot.swap_remove(index);
                    } else {
                        index += 1;
                    }
                }
                Ok(_) => {
                    served.queue.empty_turns = 0;
                    worked = true;
                    index += 1;
                }
                Err(error) => {
                    // It is off the list then.
                    self.ring_broke(id, error);
                    worked = true;
                }
            }
            if last {
                return worked;
            }
        }
    }

    /// Where the heavy queue stands that was served longest ago; behind the list, if it has left it meanwhile.
    #[cold]
    fn place_of_heavy(&self, since: u64) -> usize {
        let is_it = |id: &u16| {
            self.queues[usize::from(*id)].as_deref().is_some_and(|it| it.queue.heavy == since)
        };
        self.hot.iter().position(is_it).unwrap_or(self.hot.len())
    }

    /// One lane's round of long copies, when everybody else had their turn. What it finishes is published with it.
    #[cold]
    fn round(&mut self, id: LaneId) {
        let begun = clock::ticks();
        self.io.set_now(begun);
        let Io { lanes, ring, finishes, .. } = &mut self.io;
        let lane = lanes.get(id).expect("a lane is closed with nothing in flight");
        lane.complete(ring, LaneId::TICK, 0, finishes);
        self.finish_all();
        self.publish();
        if self.io.now == begun {
            // Nothing was published, and copying was work all the same.
            self.io.set_now(clock::ticks());
        }
    }

    /// A ring makes no sense.
    fn ring_broke(&mut self, id: u16, error: QueueError) {
        // A ring whose pages were taken away reads as zeroes: say what happened, not what it looks like.
        let gone = self.served(id).queue.resources.ring.mem().damaged();
        self.break_down(id, if gone { StopReason::Memory } else { error.into() });
    }

    /// A queue stops by itself.
    fn break_down(&mut self, id: u16, reason: StopReason) {
        let Worker { queues, io, .. } = self;
        let Some(Served { queue, .. }) = queues[usize::from(id)].as_deref_mut() else {
            unreachable!("a queue that broke is here");
        };
        if queue.phase == Phase::Closing {
            // It is on its way back with nothing in flight; what is sent to its client now would not be called back.
            return;
        }
        io.event(FlightKind::Broken, queue, 0);
        queue.break_down(reason);
        io.signal_error(queue);
        if matches!(queue.phase, Phase::Hot | Phase::Armed) {
            queue.phase = Phase::Draining;
            self.hot.retain(|hot| *hot != id);
        }
    }

    /// Handles all visible completions; whether there were any.
    fn reap(&mut self) -> bool {
        let (mut worked, mut timed) = (false, false);
        while let Some(completion) = self.io.ring.next() {
            let (lane, token) = LaneId::split(completion.user_data);
            if lane == Lanes::OWN {
                worked |= self.own_completion(token, completion);
            } else if token == LaneId::TICK {
                self.io.lanes.round_due(lane);
                worked = true;
            } else {
                if !timed {
                    self.io.set_now(clock::ticks());
                    (worked, timed) = (true, true);
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
            let id = queue_of(finish.tag);
            let Some(Served { queue, handler }) = self.queues[usize::from(id)].as_deref_mut()
            else {
                unreachable!("a queue stays until it is drained");
            };
            handler.completed(&mut self.io, queue, head_of(finish.tag), finish.outcome);
            self.start_polling(id);
        }
    }

    /// Tries again what waited for a moment that has come: [`BATCH`] of them, fewer if their chains are long, and the others in the next turns.
    fn retry(&mut self) -> bool {
        let mut worked = false;
        if !self.io.timers.is_empty() {
            let now = clock::instant();
            self.io.followed = 0;
            for _ in 0..BATCH {
                if self.io.followed > SEGMENTS_MAX
                    || self.io.timers.peek().is_none_or(|timer| timer.at > now)
                {
                    break;
                }
                let tag = self.io.timers.pop().expect("peeked").tag;
                self.resubmit(tag);
                worked = true;
            }
        }
        worked
    }

    fn resubmit(&mut self, tag: block::Tag) {
        let Some(served) = self.queues[usize::from(queue_of(tag))].as_deref_mut() else {
            unreachable!("a queue stays until it is drained");
        };
        served.resubmit(&mut self.io, head_of(tag));
    }

    /// Publishes every touched queue, closes those that are drained.
    #[inline]
    fn publish(&mut self) {
        if self.io.touched.is_empty() && !self.io.stirred && !self.io.untried {
            return;
        }
        // Something completed, so what waits for a resource may find one. Before publishing: no completion waits for this.
        if !self.io.wanting.is_empty() {
            self.retry_waiting();
        }
        loop {
            if !self.io.relays.is_empty() {
                self.relay();
            }
            let Some(id) = self.io.touched.pop() else { break };
            let Some(served) = self.queues[usize::from(id)].as_deref_mut() else {
                unreachable!("a queue is published before it is given back");
            };
            served.queue.listed = false;
            // What was taken up and answered at once has listed it again.
            if !self.io.held_over.contains(&id) && served.take_held(&mut self.io) {
                self.io.held_over.push(id);
            }
            if served.queue.touched {
                served.publish(&mut self.io);
            }
            served.handler.rest(&served.queue, self.io.now);
            if served.queue.is_drained() {
                self.close(id);
            }
        }
        while let Some(id) = self.io.held_over.pop() {
            if let Some(served) = self.queues[usize::from(id)].as_deref_mut() {
                self.io.list(&mut served.queue);
            }
        }
    }

    /// Queues that have asked for it go on with the others at hand; they and those that they touch are published.
    #[cold]
    fn relay(&mut self) {
        while let Some(id) = self.io.relays.pop() {
            // Out of the list, so that it and a peer can be worked on at once.
            let taken = self.queues[usize::from(id)].take();
            let mut served = taken.expect("a queue with commands under way is here");
            served.queue.relays = false;
            let mut others = Others { queues: &mut self.queues, broken: Vec::new() };
            served.handler.relay(&mut self.io, &mut served.queue, &mut others);
            let broken = others.broken;
            self.queues[usize::from(id)] = Some(served);
            for (QueueId(id), error) in broken {
                self.ring_broke(id, error);
            }
        }
    }

    /// Tries those that wait again, in their order; what is refused goes to the end of its queue's line. There may be thousands, while the
    /// neighbours of their channel publish all the time: [`BATCH`] of a queue have their try in one turn and the others in the next ones, fewer
    /// if their chains are long; what a lane has refused is not asked of it again in the same turn, and no chain is followed without a list for it.
    #[cold]
    fn retry_waiting(&mut self) {
        let Worker { queues, io, .. } = self;
        let anew = std::mem::take(&mut io.stirred) || !io.touched.is_empty();
        io.refusals.clear();
        io.untried = false;
        let mut index = 0;
        while let Some(&id) = io.wanting.get(index) {
            let Some(served) = queues[usize::from(id)].as_deref_mut() else {
                unreachable!("a queue leaves the list before the channel");
            };
            if anew {
                served.queue.untried = served.queue.waiting.len();
            }
            served.queue.segments = 0;
            for _ in 0..BATCH {
                if served.queue.untried == 0 || served.queue.segments > SEGMENTS_MAX {
                    break;
                }
                served.queue.untried -= 1;
                served.retry_next(io);
            }
            io.untried |= served.queue.untried > 0;
            if served.queue.waiting.is_empty() {
                io.wanting.swap_remove(index);
            } else {
                index += 1;
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
        if self.io.stirred || self.io.untried || self.measures() {
            return;
        }
        self.check_memory();
        while let Some(&id) = self.hot.last() {
            let Worker { queues, io, .. } = self;
            let Some(Served { queue, .. }) = queues[usize::from(id)].as_deref_mut() else {
                unreachable!("a queue leaves the list before the channel");
            };
            if io.arm(queue) && !memory::planted("arm-blindly") {
                // Something came meanwhile: stay awake. Those armed before stay armed.
                queue.disarm();
                return;
            }
            queue.phase = Phase::Armed;
            self.hot.pop();
        }
        let begin = clock::ticks();
        let spun = self.waiter.idle_ns(clock::to_ns(begin));
        let rings = self.queues.iter().flatten().map(|served| &served.queue.resources.ring);
        let in_flight = rings.map(|ring| u64::from(ring.in_flight())).sum();
        self.io.set_now(begin);
        self.io.record(FlightKind::Sleep, 0, in_flight);
        let timeout =
            self.io.timers.peek().map(|timer| timer.at.saturating_duration_since(clock::instant()));
        self.before_sleep(clock::to_ns(begin));
        let wait = self.io.ring.wait(timeout.map(|time| time.max(Duration::from_nanos(1))));
        if wait.is_err() {
            self.ring_failed();
        }
        let end = clock::ticks();
        let slept = clock::to_ns(end.wrapping_sub(begin));
        self.io.set_now(end);
        self.io.record(FlightKind::Wake, 0, slept);
        self.slept(clock::to_ns(begin), clock::to_ns(end));
        let stats = self.io.stats;
        stats.set(ChannelCounter::SpinWindow, self.waiter.window_ns());
        self.waiter.woke(clock::to_ns(end));
        stats.add(ChannelCounter::Wakeups, 1);
        stats.add(ChannelCounter::Spin, spun);
        stats.add(ChannelCounter::Sleep, slept);
    }

    /// Looks at an armed queue in each turn from now on; one that pulls is offered its buffers.
    fn start_polling(&mut self, id: u16) {
        let Some(Served { queue, handler }) = self.queues[usize::from(id)].as_deref_mut() else {
            unreachable!("a queue of which something is heard is here");
        };
        if queue.phase != Phase::Armed {
            return;
        }
        if queue.pulls {
            if let Err(error) = handler.buffers_came(&mut self.io, queue) {
                self.ring_broke(id, error);
            }
            return;
        }
        queue.phase = Phase::Hot;
        queue.empty_turns = 0;
        queue.disarm();
        self.hot.push(id);
    }

    /// A client that took its memory away gets its queues stopped; zero pages stand in for it meanwhile.
    fn check_memory(&mut self) {
        self.turns_until_check = MEMORY_CHECK_TURNS;
        for id in 0..self.queues.len() {
            let Some(Served { queue, .. }) = self.queues[id].as_deref() else { continue };
            if !queue.broken && queue.resources.ring.mem().damaged() {
                self.break_down(id as u16, StopReason::Memory);
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
            token::PROBE | token::PROBE_AWAKE => {
                self.probe_over(token);
                return false;
            }
            token::OPERATION.. => self.operated(token, completion.result),
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

    /// An operation of a queue's own is over.
    #[cold]
    fn operated(&mut self, token: u64, result: i32) {
        let Worker { queues, io, .. } = self;
        let id = usize::from((token >> 16) as u16);
        let Some(Served { queue, handler }) = queues[id].as_deref_mut() else {
            unreachable!("a queue stays until its operations are over");
        };
        queue.operations -= 1;
        handler.operated(io, queue, token as u16, result);
        // It may have waited for just this to be drained.
        io.list(queue);
    }

    fn error_told(&mut self, id: u16) {
        let Some(Served { queue, .. }) = self.queues[usize::from(id)].as_deref_mut() else {
            unreachable!("a queue stays until its client was told");
        };
        if let Some(file) = queue.error.take() {
            self.io.ring.unregister(file);
        }
        if queue.phase == Phase::Closing {
            self.give_back_if_quiet(id);
        }
    }

    /// A notification is over. If the queue has published since, its client is owed another one.
    fn notified(&mut self, id: u16) {
        let Some(Served { queue, .. }) = self.queues[usize::from(id)].as_deref_mut() else {
            unreachable!("a queue stays until its client was notified");
        };
        queue.notifying = false;
        if queue.phase == Phase::Closing {
            self.give_back_if_quiet(id);
        } else if std::mem::take(&mut queue.notify_again) {
            self.io.notify(queue);
        }
    }

    fn kicked(&mut self, id: u16, completion: Completion) {
        let Some(Served { queue, .. }) = self.queues[usize::from(id)].as_deref_mut() else {
            unreachable!("a queue stays until its poll has ended");
        };
        queue.watched = completion.more;
        if queue.phase == Phase::Closing {
            self.give_back_if_quiet(id);
            return;
        }
        if !completion.more && !queue.deaf {
            // The kernel ends a multishot poll when completions overflow. Look once: a kick may have been lost with it.
            self.io.watch(queue);
        }
        self.io.was_kicked(queue);
        queue.count(QueueCounter::Kicks, 1);
        self.io.event(FlightKind::Kick, queue, 0);
        self.start_polling(id);
    }
}
