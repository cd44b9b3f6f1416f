use std::sync::atomic::{AtomicU64, AtomicUsize};
use std::thread;

use super::*;

#[test]
fn a_claim_waits_for_writes_in_flight_and_keeps_new_ones_out() {
    let exclusion = Arc::new(Exclusion::default());
    let (a, b) = (exclusion.writer(), exclusion.writer());
    let early = a.enter(0..512).expect("nothing is exclusive");
    assert_eq!(early, Permit::Quick);
    let claim = b.claim(0..4096).expect("free");
    assert!(!b.is_exclusive(claim), "a write is in flight");
    assert_eq!(a.enter(512..1024), None, "overlaps");
    let beside = a.enter(4096..8192).expect("does not overlap");
    assert!(matches!(beside, Permit::Noted(_)));
    a.leave(early);
    assert!(b.is_exclusive(claim));
    assert_eq!(a.claim(4095..4097), None, "overlaps");
    let other = a.claim(4096..5000).expect("does not overlap");
    assert!(!a.is_exclusive(other), "the write beside is in flight");
    a.leave(beside);
    assert!(a.is_exclusive(other) && b.is_exclusive(claim));
    b.give_back(claim);
    assert_eq!(a.enter(0..512).map(|permit| a.leave(permit)), Some(()));
    a.give_back(other);
    a.give_back(other);
    assert_eq!(a.enter(0..512), Some(Permit::Quick));
    a.leave(Permit::Quick);
}

#[test]
fn a_writer_that_is_gone_is_not_waited_for() {
    let exclusion = Arc::new(Exclusion::default());
    let (a, b) = (exclusion.writer(), exclusion.writer());
    drop(a);
    let claim = b.claim(0..1).expect("free");
    assert!(b.is_exclusive(claim));
    b.give_back(claim);
    assert_eq!(exclusion.table().counts.len(), 1);
}

/// Threads that write and compare-and-write one cell in two steps each. Without the exclusion increments get lost.
#[test]
fn a_series_of_actions_is_not_interrupted() {
    const ROUNDS: u64 = 3000;
    let exclusion = Arc::new(Exclusion::default());
    let (cell, shadow) = (AtomicU64::new(0), AtomicU64::new(0));
    let inside = AtomicUsize::new(0);
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| {
                let writer = exclusion.writer();
                for _ in 0..ROUNDS {
                    let permit = loop {
                        match writer.enter(0..8) {
                            Some(permit) => break permit,
                            None => thread::yield_now(),
                        }
                    };
                    assert_eq!(inside.load(Ordering::Relaxed), 0, "within an exclusive series");
                    cell.fetch_add(1, Ordering::Relaxed);
                    shadow.fetch_add(1, Ordering::Relaxed);
                    writer.leave(permit);
                }
            });
            scope.spawn(|| {
                let writer = exclusion.writer();
                for _ in 0..ROUNDS {
                    let claim = loop {
                        match writer.claim(0..8) {
                            Some(claim) => break claim,
                            None => thread::yield_now(),
                        }
                    };
                    while !writer.is_exclusive(claim) {
                        thread::yield_now();
                    }
                    assert_eq!(inside.fetch_add(1, Ordering::Relaxed), 0);
                    let read = cell.load(Ordering::Relaxed);
                    thread::yield_now();
                    cell.store(read + 1, Ordering::Relaxed);
                    shadow.fetch_add(1, Ordering::Relaxed);
                    inside.fetch_sub(1, Ordering::Relaxed);
                    writer.give_back(claim);
                }
            });
        }
    });
    assert_eq!(cell.into_inner(), shadow.into_inner());
}

/// Channels make their writers one after the other, and the allocator puts them side by side.
#[test]
fn no_two_channels_count_their_writes_in_one_line() {
    const LINE: usize = 128;
    let units: Vec<Arc<Exclusion>> = (0..8).map(|_| Arc::new(Exclusion::default())).collect();
    let writers: Vec<Writer> = (0..64).map(|channel| units[channel % 8].writer()).collect();
    let mut lines: Vec<usize> =
        writers.iter().map(|writer| (&raw const *writer.count).addr() / LINE).collect();
    lines.extend(units.iter().map(|unit| (&raw const unit.held).addr() / LINE));
    lines.sort_unstable();
    let count = lines.len();
    lines.dedup();
    assert_eq!(lines.len(), count);
}
