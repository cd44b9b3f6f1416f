//! A thread of the load generator: some queues, one loop.
//!
//! ```text
//!  warm up ──► measure ──► drain ──► read back ──► drained
//!                            │  (verification only)   ▲
//!                            └────────────────────────┘
//! ```
//!
//! A turn takes what came back of every queue, submits anew and publishes once for each queue. The hot part allocates
//! nothing and takes no lock; in poll mode it makes no system call but the kicks that the server asks for. Everything that
//! happens rarely (phases, requests that got lost, the end) is looked at every [`CHECK_NS`].

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use super::sleeper::Sleeper;
use memory::clock;

use super::lane::{Feed, Lane};
use super::options::WaitMode;
use super::report::FailureKind;
use crate::cpu;
use crate::session::NUDGE;

/// How often a thread looks at what happens rarely.
const CHECK_NS: u64 = 20_000_000;

/// Turns without a completion in poll mode before the clock is read again.
const SPINS: u32 = 64;

/// What the supervisor tells the threads.
#[derive(Default)]
pub(super) struct Shared {
    /// Give up.
    pub(super) abort: AtomicBool,
    /// End the measurement.
    pub(super) over: AtomicBool,
    /// There is no server at the moment: nothing can come back.
    pub(super) disconnected: AtomicBool,
    /// When the last server took over, in ticks.
    pub(super) connected_at: AtomicU64,
}

/// When what happens, in ticks.
#[derive(Clone, Copy)]
pub(super) struct Schedule {
    pub(super) measure_at: u64,
    pub(super) end_at: u64,
    pub(super) stuck_after: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Phase {
    WarmUp,
    Measure,
    Drain,
    ReadBack,
    Finished,
}

/// What a thread measured besides its queues.
#[derive(Clone, Copy, Default)]
pub(super) struct ThreadCost {
    pub(super) ticks: u64,
    pub(super) cpu_ns: u64,
    pub(super) wake_ups: u64,
    pub(super) interrupts: u64,
}

pub(super) struct Worker {
    pub(super) lanes: Vec<Lane>,
    pub(super) cost: ThreadCost,
    /// The measurement as it stood at its end; what comes later does not count.
    pub(super) measured: Vec<super::lane::Measured>,
    call: Sleeper,
    wait: WaitMode,
    schedule: Schedule,
    budgeted: bool,
    phase: Phase,
    feed: Feed,
    now: u64,
    check_at: u64,
    spins: u32,
    wake_ups: u64,
    interrupts: u64,
    begin: ThreadCost,
}

impl Worker {
    pub(super) fn new(
        lanes: Vec<Lane>,
        call: Sleeper,
        wait: WaitMode,
        schedule: Schedule,
        budgeted: bool,
    ) -> Self {
        Self {
            lanes,
            cost: ThreadCost::default(),
            measured: Vec::new(),
            call,
            wait,
            schedule,
            budgeted,
            phase: Phase::WarmUp,
            feed: Feed::Mix,
            now: 0,
            check_at: 0,
            spins: 0,
            wake_ups: 0,
            interrupts: 0,
            begin: ThreadCost::default(),
        }
    }

    /// Runs until everything is done, or something makes going on pointless, which then stands in a lane's failures.
    pub(super) fn run(&mut self, shared: &Shared) {
        if self.wait == WaitMode::Poll {
            self.lanes.iter_mut().for_each(|lane| lane.queue.disable_interrupts());
        }
        self.now = clock::ticks();
        while self.phase != Phase::Finished {
            if self.now >= self.check_at && !self.check(shared) {
                break;
            }
            let done = self.turn();
            if done == Some(0) {
                self.rest();
            } else if done.is_none() {
                break;
            }
        }
        if self.measured.is_empty() {
            self.end_measurement();
        }
    }

    /// One turn over all queues; how many requests came back, none when a ring is broken.
    #[inline]
    fn turn(&mut self) -> Option<u32> {
        let mut done = 0;
        for lane in &mut self.lanes {
            match lane.reap(&mut self.now) {
                Ok(count) => done += count,
                Err(error) => {
                    lane.fail(FailureKind::Ring, || format!("the server broke the ring: {error}"));
                    return None;
                }
            }
            if let Err(message) = lane.refill(self.feed, self.now) {
                lane.fail(FailureKind::Ring, || message);
                return None;
            }
        }
        if (self.budgeted || self.feed != Feed::Mix) && self.lanes.iter().all(Lane::idle) {
            self.check_at = 0;
        }
        Some(done)
    }

    /// Nothing came back: look again, or sleep until something does.
    #[inline]
    fn rest(&mut self) {
        if self.wait == WaitMode::Poll {
            std::hint::spin_loop();
            self.spins += 1;
            if self.spins >= SPINS {
                self.spins = 0;
                self.now = clock::ticks();
            }
            return;
        }
        if self.check_at == 0 {
            return;
        }
        let mut more = false;
        for lane in &mut self.lanes {
            more |= lane.queue.enable_interrupts();
        }
        if !more {
            // The supervisor writes to it now and then. An error reads as nothing and is seen again in the next turn.
            let count = self.call.sleep();
            let interrupts = count % NUDGE;
            self.wake_ups += u64::from(interrupts > 0);
            self.interrupts += interrupts;
            self.now = clock::ticks();
            if count >= NUDGE {
                self.check_at = 0;
            }
        }
    }

    /// Looks at everything that happens rarely; false to give up.
    #[cold]
    fn check(&mut self, shared: &Shared) -> bool {
        self.check_at = self.now + clock::from_ns(CHECK_NS);
        if shared.abort.load(Ordering::Acquire) {
            return false;
        }
        if !shared.disconnected.load(Ordering::Acquire) {
            let since = shared.connected_at.load(Ordering::Acquire);
            let (now, limit) = (self.now, self.schedule.stuck_after);
            let stuck = self
                .lanes
                .iter_mut()
                .filter_map(|lane| lane.find_stuck(now, since, limit).then_some(()))
                .count();
            if stuck > 0 {
                return false;
            }
        }
        self.advance(shared.over.load(Ordering::Acquire));
        true
    }

    /// Goes to the next phase when its time has come, or the measurement is to be over.
    fn advance(&mut self, over: bool) {
        let idle = self.lanes.iter().all(Lane::idle);
        match self.phase {
            Phase::WarmUp if over || self.now >= self.schedule.measure_at => {
                self.begin_measurement()
            }
            Phase::Measure => {
                let spent = self.budgeted && idle && self.lanes.iter().all(|lane| lane.budget == 0);
                if spent || over || self.now >= self.schedule.end_at {
                    self.end_measurement();
                    (self.phase, self.feed) = (Phase::Drain, Feed::Nothing);
                }
            }
            Phase::Drain if idle => {
                if self.lanes.iter().any(|lane| lane.verifier.is_some()) {
                    self.lanes.iter_mut().for_each(Lane::begin_read_back);
                    (self.phase, self.feed) = (Phase::ReadBack, Feed::ReadBack);
                } else {
                    self.phase = Phase::Finished;
                }
            }
            // The turn before this submitted what there was: idle means that nothing is left.
            Phase::ReadBack if idle => self.phase = Phase::Finished,
            _ => {}
        }
        let next = match self.phase {
            Phase::WarmUp => self.schedule.measure_at,
            Phase::Measure => self.schedule.end_at,
            _ => u64::MAX,
        };
        self.check_at = self.check_at.min(next);
    }

    fn begin_measurement(&mut self) {
        self.phase = Phase::Measure;
        self.lanes.iter_mut().for_each(Lane::begin_measurement);
        self.begin = self.counters();
    }

    fn counters(&self) -> ThreadCost {
        ThreadCost {
            ticks: self.now,
            cpu_ns: cpu::thread_ns(),
            wake_ups: self.wake_ups,
            interrupts: self.interrupts,
        }
    }

    fn end_measurement(&mut self) {
        let (begin, end) = (self.begin, self.counters());
        let measuring = self.phase == Phase::Measure;
        self.cost = ThreadCost {
            ticks: if measuring { end.ticks.saturating_sub(begin.ticks) } else { 0 },
            cpu_ns: end.cpu_ns - begin.cpu_ns,
            wake_ups: end.wake_ups - begin.wake_ups,
            interrupts: end.interrupts - begin.interrupts,
        };
        let snapshot = |lane: &Lane| {
            let mut measured = lane.measured.clone();
            measured.kicks = lane.queue.kicks() - measured.kicks;
            measured
        };
        self.measured = self.lanes.iter().map(snapshot).collect();
    }
}
