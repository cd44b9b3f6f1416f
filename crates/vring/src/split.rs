//! The device side of a split ring (virtio 1.3, 2.7).
//!
//! A [`QueueConfig`] is a queue at rest: plain values, as the client's messages give them. Starting
//! it checks them against the client's memory, resolves the ring's three parts once, freezes them with the size, and
//! makes a [`Queue`]; stopping gives the configuration back, with the index to go on from. A queue
//! is `Send` and not `Sync`: it is moved into the channel that serves it and moved back, so it
//! never has two owners.
//!
//! # A batch
//!
//! ```text
//! pending() ─► pop() ─► chain() ─► … the request … ─► put_used() ─► publish() ─► interrupt?
//!  one load     per head                                per head       once
//! ```
//!
//! Before the first batch, [`resubmit_next`](Queue::resubmit_next) gives the heads that an earlier
//! process took and did not finish; until it has returned `None`, `pending` reports nothing new.
//! Before sleeping, [`enable_kicks`](Queue::enable_kicks); it is true if it is not time to sleep.
//!
//! # What the guest can do
//!
//! It owns the rings and the memory and may change both at any moment. So each field it writes is read
//! once, by volatile or atomic loads, and then judged: the available index by its distance from what was
//! published (a driver that has `size` descriptors cannot have more heads out than that), a head by its range
//! and by the set of taken ones, a descriptor by its address, flags and place in the chain. What this
//! side wrote (used index, its place in the rings) is never read back. A [`QueueError`] means that the ring
//! itself makes no sense and the queue has to stop; a [`ChainError`] fails one request.
//!
//! # Order of memory operations
//!
//! | operation | order | why |
//! |---|---|---|
//! | load `avail.idx` in `pending` | Acquire | entries and descriptors before it were written before (2.7.13.3) |
//! | load entry, descriptor | volatile | once; ordered behind by the Acquire |
//! | store used element | volatile | made visible by the Release below |
//! | in-flight region | volatile, compiler fences | see [`inflight`](crate::inflight) |
//! | store `used.idx` in `publish` | Release | data and elements first (2.7.8.2) |
//! | load `used_event` or `avail.flags` | behind a SeqCst fence | see [`handshake`] |
//! | store `avail_event` or `used.flags`, load `avail.idx` | SeqCst fence between | see [`handshake`] |
//!
//! IN_ORDER (2.7.9) is a setting of the queue: requests may still be completed in any order, and
//! are held back until those before them are. Packed rings are not here; they would be `packed.rs`
//! with the same methods.

use std::sync::Arc;

use memory::IoBuf;
use thiserror::Error;

use crate::dirty::DirtyLog;
use crate::handshake;
use crate::inflight::{Tracker, crash_point};
use crate::layout::{QUEUE_SIZE_MAX, Rings};
use crate::mem::{GuestAddr, MemTable, Span};

mod chain;
mod config;
mod in_order;
#[cfg(test)]
mod tests;

pub use chain::{Chain, ChainError, INDIRECT_MAX};
pub use config::{QueueConfig, RingPart, StartError};
use in_order::InOrder;

/// The index of a chain's first descriptor: the name of a request while it is in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Head(pub u16);

/// What the client wrote into a running ring that no driver may. The queue cannot go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum QueueError {
    #[error(
        "available index jumped to {index}: {published} is published and the queue has {size} \
         descriptors; the client's driver is broken or its memory overwritten, reset the device"
    )]
    AvailJump { index: u16, published: u16, size: u16 },
    #[error("available ring names head {head}, the queue has {size}; reset the device")]
    HeadOutOfRange { head: u16, size: u16 },
    #[error("available ring names head {head}, which is in flight already; reset the device")]
    HeadInFlight { head: u16 },
}

/// Which heads are taken. A byte each: tested and set in fewer instructions than a bit, and the heads
/// of a deep queue still fit in a few cache lines.
#[derive(Debug)]
struct HeadSet([bool; QUEUE_SIZE_MAX as usize]);

impl HeadSet {
    fn new() -> HeadSet {
        HeadSet([false; QUEUE_SIZE_MAX as usize])
    }

    /// The mask changes nothing, for heads are below the queue's size. It saves a comparison.
    #[inline]
    fn place(&mut self, head: u16) -> &mut bool {
        &mut self.0[usize::from(head % QUEUE_SIZE_MAX)]
    }

    /// False: it was in already.
    #[inline]
    fn insert(&mut self, head: u16) -> bool {
        !std::mem::replace(self.place(head), true)
    }

    #[inline]
    fn remove(&mut self, head: u16) {
        *self.place(head) = false;
    }

    #[inline]
    fn has(&self, head: u16) -> bool {
        self.0[usize::from(head % QUEUE_SIZE_MAX)]
    }
}

/// Heads to be done again after a restart.
#[derive(Debug)]
struct Resubmit {
    heads: Vec<u16>,
    next: usize,
}

/// A running queue, device side.
///
/// All indices run freely modulo 2^16 and are only compared by wrapping subtraction:
/// `published` ≤ `next_used` ≤ `next_avail` ≤ `avail_seen`, all within `size` of `published`.
pub struct Queue {
    rings: Rings,
    /// Next entry of the available ring to take.
    next_avail: u16,
    /// The driver's index when it was last loaded.
    avail_seen: u16,
    /// Next used element to write.
    next_used: u16,
    /// The used index the driver sees.
    published: u16,
    /// Heads between `next_used` and `next_avail` that nobody works on: still to be resubmitted, or
    /// taken by an earlier process that left no record of them.
    idle: u16,
    /// Neither `tracker` nor `in_order`: one test on the path instead of two.
    plain: bool,
    event_idx: bool,
    indirect: bool,
    /// The region that the last descriptor was in: most are in one.
    hit: Span,
    tracker: Option<Tracker>,
    in_order: Option<Box<InOrder>>,
    log: Option<Arc<DirtyLog>>,
    taken: HeadSet,
    resubmit: Option<Resubmit>,
    mem: Arc<MemTable>,
    /// What `stop` gives back; its `base` and `inflight` are out of date while the queue runs.
    config: QueueConfig,
}

// SAFETY: the pointers in `rings` and `hit` name memory that `mem` keeps mapped and that any thread may
// use; the queue has no state outside of itself and that memory.
unsafe impl Send for Queue {}

impl Queue {
    /// Descriptors of the ring.
    #[inline]
    pub fn size(&self) -> u16 {
        self.rings.size()
    }

    /// The memory that the queue was started with.
    #[inline]
    pub fn mem(&self) -> &Arc<MemTable> {
        &self.mem
    }

    /// Heads popped (or resubmitted) and not put.
    #[inline]
    pub fn in_flight(&self) -> u16 {
        let held = self.in_order.as_ref().map_or(0, |in_order| in_order.held());
        self.next_avail.wrapping_sub(self.next_used) - self.idle - held
    }

    /// How many heads are available and not popped. One load; what it saw is what `pop` goes by.
    #[inline]
    pub fn pending(&mut self) -> Result<u16, QueueError> {
        if self.resubmit.is_some() {
            return Ok(0);
        }
        let index = handshake::observe(self.rings.avail_idx());
        if index.wrapping_sub(self.published) > self.size()
            || index.wrapping_sub(self.next_avail) > self.size()
        {
            return Err(self.avail_jump(index));
        }
        self.avail_seen = index;
        Ok(index.wrapping_sub(self.next_avail))
    }

    #[cold]
    fn avail_jump(&self, index: u16) -> QueueError {
        QueueError::AvailJump { index, published: self.published, size: self.size() }
    }

    /// Takes the next head of those that `pending` saw. From then on it is in flight: exactly one
    /// `put_used` (or, right away, `undo_pop`) has to follow.
    ///
    /// After an error the ring stands where it was, and the next call fails the same way.
    #[inline(always)] // Heads are taken at two places, one of them rare: a call would cost the other.
    pub fn pop(&mut self) -> Result<Option<Head>, QueueError> {
        if self.next_avail == self.avail_seen {
            return Ok(None);
        }
        let head = self.rings.avail_entry(self.next_avail);
        if head >= self.size() {
            return Err(self.head_out_of_range(head));
        }
        if !self.taken.insert(head) {
            return Err(head_in_flight(head));
        }
        self.next_avail = self.next_avail.wrapping_add(1);
        if !self.plain {
            self.record_pop(head);
        }
        Ok(Some(Head(head)))
    }

    #[inline]
    fn record_pop(&mut self, head: u16) {
        if let Some(tracker) = &mut self.tracker {
            tracker.take(head);
        }
        if let Some(in_order) = &mut self.in_order {
            in_order.take(head);
        }
    }

    #[cold]
    fn head_out_of_range(&self, head: u16) -> QueueError {
        QueueError::HeadOutOfRange { head, size: self.size() }
    }

    /// Puts the head of the latest `pop` (or `resubmit_next`) back; the next call gives it again.
    pub fn undo_pop(&mut self, head: Head) {
        assert!(self.in_flight() > 0 && self.taken.has(head.0), "{head:?} is not in flight");
        if let Some(resubmit) = &mut self.resubmit {
            // Still recorded as in flight: an earlier process took it.
            resubmit.next -= 1;
            self.idle += 1;
            assert_eq!(resubmit.heads[resubmit.next], head.0, "not the latest");
            return;
        }
        if let Some(tracker) = &mut self.tracker {
            tracker.undo(head.0);
        }
        if let Some(in_order) = &mut self.in_order {
            in_order.undo(head.0);
        }
        self.next_avail = self.next_avail.wrapping_sub(1);
        self.taken.remove(head.0);
    }

    /// After a start with an in-flight region: the next head that an earlier process took and did not
    /// finish, oldest first, to be treated as popped. `None` from the end of the list on.
    pub fn resubmit_next(&mut self) -> Option<Head> {
        let resubmit = self.resubmit.as_mut()?;
        let Some(&head) = resubmit.heads.get(resubmit.next) else {
            self.resubmit = None;
            return None;
        };
        resubmit.next += 1;
        self.idle -= 1;
        Some(Head(head))
    }

    /// Whether heads may be left ([`Queue::leave`]): what is in flight is recorded.
    #[must_use]
    pub fn may_leave(&self) -> bool {
        self.tracker.is_some() && self.in_order.is_none()
    }

    /// Lets go of a head that is in flight and has had no effect: it stays recorded, and comes again with the next start. Nothing is popped
    /// any more before that.
    pub fn leave(&mut self, head: Head) {
        assert!(self.may_leave() && self.taken.has(head.0), "{head:?} cannot be left");
        self.idle += 1;
    }

    /// Whether [`Queue::resubmit_next`] has not returned `None` yet.
    #[inline]
    #[must_use]
    pub fn resubmits(&self) -> bool {
        self.resubmit.is_some()
    }

    /// Collects the buffers of a head that is in flight. May be called again for the same head.
    ///
    /// See [`ChainError`] for what `out` has after an error.
    #[inline]
    pub fn chain(&mut self, head: Head, out: &mut Chain<'_>) -> Result<(), ChainError> {
        debug_assert!(self.taken.has(head.0), "{head:?} is not in flight");
        chain::walk(&self.rings, &self.mem, &mut self.hit, self.indirect, head.0, out)
    }

    /// Gives a head back, of whose buffers the first `written` writable bytes were written. The
    /// driver sees it after the next `publish`.
    #[inline(always)] // At two places in a channel: a call would cost what it does.
    pub fn put_used(&mut self, head: Head, written: u32) {
        debug_assert!(self.taken.has(head.0), "{head:?} is not in flight");
        debug_assert!(self.in_flight() > 0);
        if !self.plain
            && let Some(in_order) = &mut self.in_order
            && !in_order.finish(head.0, written)
        {
            return;
        }
        self.element(head.0, written);
        self.give_back(head.0);
    }

    /// Writes the used element at `next_used`.
    #[inline]
    fn element(&mut self, head: u16, written: u32) {
        self.rings.set_used_entry(self.next_used, u32::from(head), written);
        crash_point();
    }

    /// Accounts for one head of the open batch.
    #[inline]
    fn give_back(&mut self, head: u16) {
        self.taken.remove(head);
        self.next_used = self.next_used.wrapping_add(1);
        if !self.plain
            && let Some(tracker) = &mut self.tracker
        {
            tracker.give_back(head);
        }
    }

    /// Moves what was held back, in the order it was taken, to the open batch, as far as nothing before it is missing.
    fn release_held(&mut self) {
        while let Some((head, written)) = self.in_order.as_mut().and_then(|it| it.next()) {
            self.element(head, written);
            self.give_back(head);
        }
    }

    /// Makes all that was put visible to the driver, and says whether it wants an interrupt.
    /// Nothing new, nothing done.
    #[inline]
    pub fn publish(&mut self) -> bool {
        if !self.plain {
            self.release_held();
        }
        let (old, new) = (self.published, self.next_used);
        if old == new {
            return false;
        }
        self.published = new;
        if let Some(tracker) = &mut self.tracker {
            if memory::planted("inflight-early") {
                tracker.after_publish(new);
            }
            tracker.before_publish();
            handshake::publish(self.rings.used_idx(), new);
            crash_point();
            tracker.after_publish(new);
        } else {
            handshake::publish(self.rings.used_idx(), new);
        }
        if self.log.is_some() {
            self.log_used(old, new);
        }
        if self.event_idx {
            handshake::must_wake_event(self.rings.used_event(), new, old)
        } else {
            handshake::must_wake_flag(self.rings.avail_flags())
        }
    }

    /// Marks the used elements from `old` to `new` and the index in the dirty log.
    #[cold]
    fn log_used(&self, old: u16, new: u16) {
        let (Some(log), Some(used)) = (&self.log, self.config.used_log) else { return };
        let at = |offset: usize| GuestAddr(used.0.saturating_add(offset as u64));
        log.mark(used, 4);
        let mask = self.size() - 1;
        let first = usize::from(old & mask);
        let count = usize::from(new.wrapping_sub(old));
        let until_end = count.min(usize::from(self.size()) - first);
        log.mark(at(4 + 8 * first), 8 * until_end);
        log.mark(at(4), 8 * (count - until_end));
    }

    /// Asks the driver for a kick when it makes the next head available. True: it has done so
    /// already, or heads wait to be resubmitted, and the caller must not sleep.
    pub fn enable_kicks(&mut self) -> bool {
        self.arm(self.next_avail) || self.resubmit.is_some()
    }

    /// As [`enable_kicks`](Queue::enable_kicks), when what is there is too little: asks for a kick beyond the heads that `pending` saw.
    pub fn enable_kicks_for_more(&mut self) -> bool {
        self.arm(self.avail_seen)
    }

    /// Asks for a kick when there are more heads than these; whether there are already.
    #[inline]
    fn arm(&mut self, heads: u16) -> bool {
        let index = self.rings.avail_idx();
        // Between the last look at the ring and this the driver may have gone on.
        crash_point();
        let more = if self.event_idx {
            handshake::arm_event(self.rings.avail_event(), index, heads)
        } else {
            handshake::arm_flag(self.rings.used_flags(), index, heads)
        };
        self.log_kick_word();
        more
    }

    /// Kicks are not needed for now: the caller looks by itself. With EVENT_IDX the event simply
    /// stays behind, and the driver passes it at most once in 65536 heads.
    pub fn disable_kicks(&mut self) {
        if !self.event_idx {
            handshake::quiet_flag(self.rings.used_flags());
            self.log_kick_word();
        }
    }

    fn log_kick_word(&self) {
        if let (Some(log), Some(used)) = (&self.log, self.config.used_log) {
            let event = 4 + 8 * u64::from(self.size());
            let offset = if self.event_idx { event } else { 0 };
            log.mark(GuestAddr(used.0.saturating_add(offset)), 2);
        }
    }

    /// Whether what the device writes is recorded.
    #[inline]
    pub fn is_logged(&self) -> bool {
        self.log.is_some()
    }

    /// Records that the device wrote into `buf`, a buffer of a chain of this queue. To be called
    /// after the data has landed and before `publish`.
    #[inline]
    pub fn mark_written(&mut self, buf: IoBuf) {
        if self.log.is_some() {
            self.log_data(buf);
        }
    }

    #[cold]
    fn log_data(&self, buf: IoBuf) {
        if let (Some(log), Some(addr)) = (&self.log, self.mem.guest_of(buf)) {
            log.mark(addr, buf.len());
        }
    }

    /// Switches the dirty log on or off while the queue runs (SET_LOG_BASE, SET_VRING_ADDR and
    /// SET_FEATURES may come at any time).
    pub fn set_log(&mut self, log: Option<Arc<DirtyLog>>, used_log: Option<GuestAddr>) {
        self.config.used_log = used_log;
        self.log = log;
    }

    /// Ends the run. All that was popped must have been put and published, or left. Heads that were left or still to
    /// be resubmitted stay recorded in the in-flight region, and come again with the next start.
    pub fn stop(self) -> QueueConfig {
        assert_eq!(self.in_flight(), 0, "stopped with heads in flight");
        assert_eq!(self.next_used, self.published, "stopped before the last publish");
        let mut config = self.config;
        config.base = self.next_avail;
        config.inflight = self.tracker.map(Tracker::into_region);
        config.log = self.log;
        config
    }
}

#[cold]
fn head_in_flight(head: u16) -> QueueError {
    QueueError::HeadInFlight { head }
}

impl std::fmt::Debug for Queue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Queue")
            .field("size", &self.size())
            .field("next_avail", &self.next_avail)
            .field("published", &self.published)
            .field("in_flight", &self.in_flight())
            .finish_non_exhaustive()
    }
}
