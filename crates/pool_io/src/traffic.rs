//! What goes on at a PV: counted by each thread on a line of its own, summed by whoever asks.
//!
//! A channel's lanes, of whatever LUs, have one [`Meter`] of each PV, and the pools' thread has one. Only that thread writes it, without a lock or an atomic addition: so an operation costs a few
//! additions to a line that is in its cache. When it began and ended is what the ring's owner last saw of the clock ([`uring::Ring::now`]), which is read once for many.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::ThreadId;

use block::OpKind;
use memory::clock;
use spec::Traffic;

use crate::table::locked;

/// What is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Read,
    Write,
    Other,
}

impl Kind {
    #[inline]
    pub(crate) fn of(op: OpKind) -> Kind {
        match op {
            OpKind::Read => Kind::Read,
            OpKind::Write { .. } => Kind::Write,
            OpKind::Flush | OpKind::Discard | OpKind::WriteZeroes { .. } => Kind::Other,
        }
    }
}

/// What one thread has done on a PV. It alone writes it.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Meter {
    begun: AtomicU64,
    /// By [`Kind`].
    over: [AtomicU64; 3],
    bytes: [AtomicU64; 3],
    ticks: AtomicU64,
    errors: AtomicU64,
}

#[inline]
fn add(count: &AtomicU64, more: u64) {
    count.store(count.load(Relaxed).wrapping_add(more), Relaxed);
}

impl Meter {
    /// An operation begins.
    #[inline]
    pub(crate) fn begins(&self) {
        add(&self.begun, 1);
    }

    /// One of so many bytes is over, after so many ticks.
    #[inline]
    pub(crate) fn ends(&self, kind: Kind, bytes: u64, ticks: u64) {
        add(&self.over[kind as usize], 1);
        add(&self.bytes[kind as usize], bytes);
        add(&self.ticks, ticks);
    }

    /// One is not over, and begins again: it is one operation.
    #[cold]
    pub(crate) fn goes_on(&self) {
        self.begun.store(self.begun.load(Relaxed).wrapping_sub(1), Relaxed);
    }

    /// … and has failed.
    #[cold]
    pub(crate) fn fails(&self) {
        add(&self.errors, 1);
    }
}

/// The meters of a PV that is open.
#[derive(Debug, Default)]
pub(crate) struct Meters(Mutex<Vec<(ThreadId, Arc<Meter>)>>);

impl Meters {
    /// That of the calling thread. Whoever has it writes it on that thread alone.
    pub(crate) fn mine(&self) -> Arc<Meter> {
        let me = std::thread::current().id();
        let mut all = locked(&self.0);
        if let Some((_, meter)) = all.iter().find(|(whose, _)| *whose == me) {
            return Arc::clone(meter);
        }
        let meter = Arc::new(Meter::default());
        all.push((me, Arc::clone(&meter)));
        meter
    }

    /// All that threads have done. What is under way is right to a few operations while some begin and end.
    pub(crate) fn sum(&self) -> Traffic {
        let mut sum = Traffic::default();
        let (mut begun, mut ticks) = (0_u64, 0_u64);
        for (_, meter) in &*locked(&self.0) {
            // First what is over: so no more is than was begun.
            let [reads, writes, others] = meter.over.each_ref().map(|count| count.load(Acquire));
            let [read, written, _] = meter.bytes.each_ref().map(|count| count.load(Relaxed));
            (sum.reads, sum.writes) = (sum.reads + reads, sum.writes + writes);
            (sum.read_bytes, sum.written_bytes) =
                (sum.read_bytes + read, sum.written_bytes + written);
            sum.others += others;
            sum.errors += meter.errors.load(Relaxed);
            begun += meter.begun.load(Relaxed);
            ticks = ticks.wrapping_add(meter.ticks.load(Relaxed));
        }
        sum.in_flight = begun.saturating_sub(sum.reads + sum.writes + sum.others);
        sum.took_ns = clock::to_ns(ticks);
        sum
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_thread_counts_for_itself_and_all_are_summed() {
        let meters = Meters::default();
        let mine = meters.mine();
        assert!(Arc::ptr_eq(&mine, &meters.mine()), "lanes of one thread share it");
        (0..3).for_each(|_| mine.begins());
        mine.ends(Kind::Write, 512, clock::from_ns(3_000_000));
        mine.ends(Kind::Other, 0, 0);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let theirs = meters.mine();
                assert!(!Arc::ptr_eq(&mine, &theirs));
                (0..5).for_each(|_| theirs.begins());
                theirs.ends(Kind::Read, 8192, clock::from_ns(1_000_000));
                theirs.fails();
            });
        });
        let sum = meters.sum();
        let took_ms = (sum.took_ns + 500_000) / 1_000_000;
        assert_eq!((sum.in_flight, took_ms, sum.errors), (5, 4, 1));
        assert_eq!((sum.reads, sum.writes, sum.others), (1, 1, 1));
        assert_eq!((sum.read_bytes, sum.written_bytes), (8192, 512));
    }
}
