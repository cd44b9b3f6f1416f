//! One queue under load: chooses requests, submits them, and judges what comes back.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use memory::clock;
use vring::driver::UsedError;

use super::options::{LoadOptions, Order, Part};
use super::port::{Done, Port, Request};
use super::report::{Failure, FailureKind};
use super::verify::Verifier;
use crate::blk::Slot;
use crate::hist::Histogram;
use memory::random::Random;

/// Failures that a queue keeps the text of; the others are counted.
const FAILURES_KEPT: usize = 16;

/// Random blocks tried before a verifying queue waits for one that is not busy.
const TRIES: u32 = 8;

/// A counter that one thread writes and the supervisor reads, alone on its pair of cache lines.
#[repr(align(128))]
#[derive(Default)]
pub(super) struct Published(AtomicU64);

impl Published {
    pub(super) fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// What to submit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Feed {
    /// The mix that was asked for.
    Mix,
    /// A read of every block that was written.
    ReadBack,
    /// Nothing more.
    Nothing,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Idle,
    Read,
    Write,
    Flush,
}

#[derive(Clone, Copy)]
struct InFlight {
    kind: Kind,
    block: u64,
    submitted: u64,
}

/// What was measured, from the end of the warm-up.
#[derive(Clone, Default)]
pub(super) struct Measured {
    pub(super) reads: Histogram,
    pub(super) writes: Histogram,
    pub(super) flushes: u64,
    pub(super) errors: u64,
    pub(super) kicks: u64,
}

pub(super) struct Lane {
    pub(super) index: u16,
    pub(super) queue: Port,
    pub(super) measured: Measured,
    pub(super) failures: Vec<Failure>,
    pub(super) failure_count: u64,
    pub(super) corrupt: u64,
    pub(super) read_back: u64,
    pub(super) verifier: Option<Verifier>,
    /// Requests that may still be submitted.
    pub(super) budget: u64,
    /// What the budget becomes when the warm-up is over.
    share: u64,
    published: Arc<Published>,
    completed: u64,
    slots: Box<[InFlight]>,
    rng: Random,
    /// Below this number of 2^64, a random number means a read.
    read_below: u64,
    only_reads: bool,
    order: Order,
    part: Part,
    block_bytes: u32,
    /// Bytes from one block to the next.
    step: u64,
    cursor: u64,
    reading_back: bool,
    flush_every: u32,
    writes_since_flush: u32,
}

/// Requests that are made available together. A guest's driver publishes each request or a few of them at a time.
const PUBLISH_EVERY: u32 = 8;

impl Lane {
    pub(super) fn new(
        index: u16,
        queue: Port,
        part: Part,
        options: &LoadOptions,
        published: Arc<Published>,
    ) -> Self {
        let idle = InFlight { kind: Kind::Idle, block: 0, submitted: 0 };
        let seed = options.seed.wrapping_add(u64::from(index).wrapping_mul(0x9e37_79b9));
        let queues = u64::from(options.queues);
        let share = |all: u64| all / queues + u64::from(u64::from(index) < all % queues);
        let mut lane = Self {
            index,
            slots: vec![idle; queue.depth()].into_boxed_slice(),
            queue,
            measured: Measured::default(),
            failures: Vec::with_capacity(FAILURES_KEPT),
            failure_count: 0,
            corrupt: 0,
            read_back: 0,
            verifier: options.verify.then(|| {
                let begins = (options.seed, options.holds);
                Verifier::new(begins, part.first_byte, part.blocks, options.block_bytes)
            }),
            budget: u64::MAX,
            share: options.operations.map_or(u64::MAX, share),
            published,
            completed: 0,
            rng: Random::new(seed),
            read_below: (u64::MAX / 100).saturating_mul(u64::from(options.read_percent)),
            only_reads: options.read_percent == 100,
            order: options.order,
            part,
            block_bytes: options.block_bytes,
            step: options.step(),
            cursor: 0,
            reading_back: false,
            flush_every: options.flush_every.unwrap_or(0),
            writes_since_flush: 0,
        };
        lane.fill_buffers();
        lane
    }

    /// Data that does not compress, once; verified writes overwrite it.
    fn fill_buffers(&mut self) {
        let mut taken = Vec::new();
        while let Some(slot) = self.queue.take() {
            let data = self.queue.data(slot);
            for at in (0..data.len()).step_by(8) {
                data.write(at, &self.rng.next().to_le_bytes());
            }
            taken.push(slot);
        }
        taken.into_iter().rev().for_each(|slot| self.queue.give_back(slot));
    }

    /// Forgets the warm-up. What it left outstanding counts as the first requests of the measurement.
    pub(super) fn begin_measurement(&mut self) {
        self.budget = self.share.saturating_sub(self.queue.busy() as u64);
        self.measured.reads.clear();
        self.measured.writes.clear();
        (self.measured.flushes, self.measured.errors) = (0, 0);
        self.measured.kicks = self.queue.kicks();
    }

    /// Takes everything that came back. `now` is set when there is something; returns how much.
    #[inline]
    pub(super) fn reap(&mut self, now: &mut u64) -> Result<u32, UsedError> {
        let mut count = 0;
        // One call site, so that it is compiled into the loop.
        while let Some(done) = self.queue.poll()? {
            if count == 0 {
                *now = clock::ticks();
            }
            self.finish(done, *now);
            count += 1;
        }
        if count == 0 {
            return Ok(0);
        }
        self.completed += u64::from(count);
        self.published.0.store(self.completed, Ordering::Relaxed);
        Ok(count)
    }

    #[inline]
    fn finish(&mut self, done: Done, now: u64) {
        let slot = &mut self.slots[usize::from(done.slot.0)];
        let was = *slot;
        slot.kind = Kind::Idle;
        match was.kind {
            Kind::Read => self.measured.reads.record(now.saturating_sub(was.submitted)),
            Kind::Write => self.measured.writes.record(now.saturating_sub(was.submitted)),
            Kind::Flush => self.measured.flushes += 1,
            // The ring reports a slot once, and only what was submitted.
            Kind::Idle => debug_assert!(false, "an idle slot came back"),
        }
        if !done.good {
            self.request_failed(was, done.slot);
        }
        if self.verifier.is_some() {
            self.verify(was, done);
        }
        self.queue.give_back(done.slot);
    }

    #[cold]
    fn request_failed(&mut self, was: InFlight, slot: Slot) {
        self.measured.errors += 1;
        let (what, how) = (self.describe(was), self.queue.describe(slot));
        self.fail(FailureKind::Io, || format!("{what} ended with {how}"));
    }

    fn verify(&mut self, was: InFlight, done: Done) {
        let Some(verifier) = &mut self.verifier else { return };
        let good = done.good;
        match was.kind {
            Kind::Write => verifier.end_write(was.block, good),
            Kind::Read => {
                let data = self.queue.data(done.slot);
                let result = verifier.end_read(was.block, good, |scratch| data.read(0, scratch));
                self.read_back += u64::from(self.reading_back);
                if let Err(corruption) = result {
                    self.corrupt += 1;
                    let what = self.describe(was);
                    self.fail(FailureKind::Corrupt, || format!("{what}: {corruption}"));
                }
            }
            Kind::Flush | Kind::Idle => {}
        }
    }

    fn describe(&self, was: InFlight) -> String {
        let (bytes, at) = (self.block_bytes, self.offset(was.block));
        match was.kind {
            Kind::Read => format!("read of {bytes} bytes at {at}"),
            Kind::Write => format!("write of {bytes} bytes at {at}"),
            Kind::Flush => "flush".into(),
            Kind::Idle => "nothing".into(),
        }
    }

    #[cold]
    pub(super) fn fail(&mut self, kind: FailureKind, message: impl FnOnce() -> String) {
        self.failure_count += 1;
        if self.failures.len() < FAILURES_KEPT {
            self.failures.push(Failure { kind, queue: Some(self.index), message: message() });
        }
    }

    fn offset(&self, block: u64) -> u64 {
        self.part.first_byte + block * self.step
    }

    /// Submits until the queue is full or nothing is to be done, and publishes: as a guest's driver does, long before the last one
    /// is there, so that both sides work at the same time.
    #[inline]
    pub(super) fn refill(&mut self, feed: Feed, now: u64) -> Result<(), String> {
        let mut added = 0_u32;
        while self.budget > 0 {
            let Some(slot) = self.queue.take() else { break };
            let Some((kind, block)) = self.choose(feed, slot) else {
                self.queue.give_back(slot);
                break;
            };
            let (offset, bytes) = (self.offset(block), self.block_bytes);
            let request = match kind {
                Kind::Read => Request::Read { offset, bytes },
                Kind::Write => Request::Write { offset, bytes },
                Kind::Flush | Kind::Idle => Request::Flush,
            };
            self.queue.submit(slot, request).map_err(|error| error.to_string())?;
            self.slots[usize::from(slot.0)] = InFlight { kind, block, submitted: now };
            self.budget -= 1;
            added += 1;
            if added.is_multiple_of(PUBLISH_EVERY) {
                self.publish()?;
            }
        }
        if !added.is_multiple_of(PUBLISH_EVERY) { self.publish() } else { Ok(()) }
    }

    #[inline]
    fn publish(&mut self) -> Result<(), String> {
        self.queue.publish().map_err(|error| format!("cannot kick the server: {error}"))
    }

    #[inline]
    fn choose(&mut self, feed: Feed, slot: Slot) -> Option<(Kind, u64)> {
        match feed {
            Feed::Mix if self.flush_every > 0 && self.writes_since_flush >= self.flush_every => {
                self.writes_since_flush = 0;
                Some((Kind::Flush, 0))
            }
            Feed::Mix if self.verifier.is_some() => self.choose_verified(slot),
            Feed::Mix => {
                let kind = self.next_kind();
                self.writes_since_flush += u32::from(kind == Kind::Write);
                Some((kind, self.next_block()))
            }
            Feed::ReadBack => self.choose_read_back(),
            Feed::Nothing => None,
        }
    }

    #[inline]
    fn next_kind(&mut self) -> Kind {
        if self.only_reads || self.rng.next() < self.read_below { Kind::Read } else { Kind::Write }
    }

    #[inline]
    fn next_block(&mut self) -> u64 {
        match self.order {
            Order::Random => self.rng.below(self.part.blocks),
            Order::Sequential => {
                let block = self.cursor;
                self.cursor = if block + 1 == self.part.blocks { 0 } else { block + 1 };
                block
            }
        }
    }

    fn choose_verified(&mut self, slot: Slot) -> Option<(Kind, u64)> {
        let kind = self.next_kind();
        for _ in 0..TRIES {
            let block = self.next_block();
            let data = self.queue.data(slot);
            let verifier = self.verifier.as_mut()?;
            // Of which nothing is known, that cannot be checked: write it.
            if kind == Kind::Read && verifier.known(block) {
                if verifier.begin_read(block) {
                    return Some((Kind::Read, block));
                }
            } else if let Some(bytes) = verifier.begin_write(block) {
                data.write(0, bytes);
                self.writes_since_flush += 1;
                return Some((Kind::Write, block));
            }
        }
        None
    }

    /// Goes back to the first block and no longer counts against the budget.
    pub(super) fn begin_read_back(&mut self) {
        self.cursor = 0;
        self.reading_back = true;
        self.budget = u64::MAX;
    }

    fn choose_read_back(&mut self) -> Option<(Kind, u64)> {
        let verifier = self.verifier.as_mut()?;
        while self.cursor < verifier.len() {
            let block = self.cursor;
            self.cursor += 1;
            if verifier.known(block) {
                let free = verifier.begin_read(block);
                debug_assert!(free, "writes have ended before the read-back");
                return Some((Kind::Read, block));
            }
        }
        None
    }

    /// Reports requests submitted more than `limit` ticks before `now`, none of it before `since`. True if there is one.
    pub(super) fn find_stuck(&mut self, now: u64, since: u64, limit: u64) -> bool {
        let late = |slot: &&InFlight| {
            slot.kind != Kind::Idle && now.saturating_sub(slot.submitted.max(since)) > limit
        };
        let stuck: Vec<InFlight> = self.slots.iter().filter(late).copied().collect();
        for was in &stuck {
            let what = self.describe(*was);
            let seconds = clock::to_ns(now.saturating_sub(was.submitted)) as f64 / 1e9;
            self.fail(FailureKind::Stuck, || {
                format!("lost: {what} has not come back within {seconds:.1} s")
            });
        }
        !stuck.is_empty()
    }

    /// Whether nothing is outstanding.
    pub(super) fn idle(&self) -> bool {
        self.queue.busy() == 0
    }
}
