//! The four steps by which one side of a ring tells the other that something is there.
//!
//! A split ring has two directions: the driver makes heads available to the device, the device
//! gives them back used. Each direction is one free-running 16-bit index that its *producer* alone
//! writes, and one word by which the *consumer* says when it wants to be woken: an event index
//! (`avail_event`, `used_event`; virtio 1.3, 2.7.10 and 2.7.7, with EVENT_IDX) or a flag
//! (`used.flags`, `avail.flags`, without). Both directions use the same functions, and so do the
//! loom models in `tests/loom.rs`: what the models prove is the code that runs.
//!
//! # Orderings
//!
//! | step | operation | pairs with |
//! |---|---|---|
//! | producer writes entries, then [`publish`] | Release store of the index | [`observe`] |
//! | consumer [`observe`]s, then reads entries | Acquire load of the index | [`publish`] |
//! | producer decides to wake: [`must_wake_event`], [`must_wake_flag`] | SeqCst fence between the store of the index and the load of the event | the fence of arming |
//! | consumer goes to sleep: [`arm_event`], [`arm_flag`] | SeqCst fence between the store of the event and the load of the index | the fence of the decision |
//!
//! The two fences are the store-buffer pattern: of the two loads behind them at least one sees the
//! other side's store. So either the producer sees the armed event and wakes, or the consumer sees
//! the new index and does not sleep. Acquire and Release alone allow both to miss.
//!
//! # The event formula
//!
//! The consumer writes the index of the entry that shall wake it. The producer moved its index
//! from `old` to `new`, so it filled the entries `old, old+1, …, new-1`, all modulo 2^16. It wakes
//! if `event` is one of them. Counting back from the last one, entry `new-1-k` has distance `k`;
//! the filled ones are those with `k < new-old`. The distance of `event` is `new-1-event`, hence
//!
//! ```text
//! wake  ⇔  (new - event - 1) mod 2^16  <  (new - old) mod 2^16
//! ```
//!
//! Every subtraction wraps, so an index that passes 65535 needs no case of its own. A stale event
//! (behind `old`) has a distance of at least `new-old` and wakes nobody: a consumer that polls
//! simply leaves its event where it is. `old` has to be the index at the *last decision*, or an
//! event in between is lost; both sides of this crate decide at each publication.

use std::sync::atomic::Ordering;

use crate::layout::RING_F_QUIET;

/// A 16-bit word that producer and consumer use at the same time.
///
/// The ring implements it on shared memory, the loom models on loom's atomics.
pub trait Word {
    /// Loads the value.
    fn load(&self, order: Ordering) -> u16;
    /// Stores a value.
    fn store(&self, value: u16, order: Ordering);
    /// A full fence (SeqCst).
    fn fence();
}

/// Producer: everything written before is visible to whoever observes `index`.
#[inline]
pub fn publish<W: Word>(word: &W, index: u16) {
    word.store(index, Ordering::Release);
}

/// Consumer: the producer's index; the entries before it may be read.
#[inline]
pub fn observe<W: Word>(word: &W) -> u16 {
    word.load(Ordering::Acquire)
}

/// Whether moving the index from `old` to `new` passed `event`; see the formula above.
#[inline]
pub fn passes(event: u16, new: u16, old: u16) -> bool {
    new.wrapping_sub(event).wrapping_sub(1) < new.wrapping_sub(old)
}

/// Producer, with EVENT_IDX: having published `new` after `old`, must the consumer be woken?
#[inline]
pub fn must_wake_event<W: Word>(event: &W, new: u16, old: u16) -> bool {
    W::fence();
    passes(event.load(Ordering::Relaxed), new, old)
}

/// Producer, without EVENT_IDX: having published, must the consumer be woken?
#[inline]
pub fn must_wake_flag<W: Word>(flags: &W) -> bool {
    W::fence();
    flags.load(Ordering::Relaxed) & RING_F_QUIET == 0
}

/// Consumer, with EVENT_IDX: asks to be woken for entry `next`, the first it has not seen.
/// True: something is there already, do not sleep.
#[inline]
pub fn arm_event<W: Word>(event: &W, index: &W, next: u16) -> bool {
    event.store(next, Ordering::Relaxed);
    W::fence();
    index.load(Ordering::Acquire) != next
}

/// Consumer, without EVENT_IDX: asks to be woken. True: something is there already.
#[inline]
pub fn arm_flag<W: Word>(flags: &W, index: &W, next: u16) -> bool {
    flags.store(0, Ordering::Relaxed);
    W::fence();
    index.load(Ordering::Acquire) != next
}

/// Consumer, without EVENT_IDX: waking is not needed. Only a hint; a wake may still come.
#[inline]
pub fn quiet_flag<W: Word>(flags: &W) {
    flags.store(RING_F_QUIET, Ordering::Relaxed);
}
