//! Which of two legs clients read.

use std::collections::BTreeMap;

use super::mirror::world_of;
use super::*;
use crate::pool::{Effect, Outcome, Pool, Reader};

/// A pool of which one LU is read, on PVs each of which answers in a time of its own.
struct Timed {
    pool: Pool,
    now: u64,
    tag: u64,
    /// When each is over, with its operation, its PV, and when it began.
    under_way: BTreeMap<(u64, u64), (u16, u64)>,
}

impl Timed {
    fn new() -> Timed {
        let mut world = world_of("quiet");
        ask(&mut world, Step::Ask(Request::Read(part(A, 0, 4 * KIB))));
        Timed { pool: world.pool, now: 0, tag: 1 << 30, under_way: BTreeMap::new() }
    }

    /// The PVs of the legs.
    fn legs(&mut self) -> [u16; 2] {
        let legs: Vec<u16> = self.read(&|_| 1, 2, 300).into_keys().collect();
        legs.try_into().expect("each is read")
    }

    fn begin(&mut self, takes: &dyn Fn(u16) -> u64) {
        self.tag += 1;
        self.pool.submit(self.tag, Request::Read(part(A, 0, 4 * KIB)));
        self.take(takes);
    }

    fn take(&mut self, takes: &dyn Fn(u16) -> u64) {
        for effect in self.pool.effects() {
            match effect {
                Effect::Read { op, pv, to: Reader::Client { .. }, .. } => {
                    self.under_way.insert((self.now + takes(pv), op), (pv, self.now));
                }
                Effect::Answer { result, .. } => _ = result.unwrap(),
                other => panic!("{other:?}"),
            }
        }
    }

    /// So many reads, of which so many are under way at once: how many each PV had.
    fn read(&mut self, takes: &dyn Fn(u16) -> u64, depth: usize, reads: u32) -> BTreeMap<u16, u32> {
        let mut had = BTreeMap::new();
        for _ in 0..reads {
            while self.under_way.len() < depth {
                self.begin(takes);
            }
            *had.entry(self.end(takes)).or_default() += 1;
        }
        had
    }

    /// The first of those that are under way is over; which PV had it.
    fn end(&mut self, takes: &dyn Fn(u16) -> u64) -> u16 {
        let ((end, op), (pv, began)) = self.under_way.pop_first().unwrap();
        self.now = end;
        self.pool.read_took(pv, 4 * KIB, end - began);
        self.pool.done(op, Outcome::Done);
        self.take(takes);
        pv
    }
}

const QUICK: u64 = 100_000;

#[test]
fn most_reads_go_to_the_quick_leg_however_many_are_under_way() {
    for (depth, slower, most) in [(1, 20, 10), (1, 1000, 10), (4, 20, 10), (32, 20, 20), (8, 4, 80)]
    {
        for slow in [0, 1] {
            let mut timed = Timed::new();
            let slow = timed.legs()[slow];
            let takes = |pv| if pv == slow { slower * QUICK } else { QUICK };
            // What it has before anybody knows that it is slow.
            timed.read(&takes, depth, 1000);
            let had = timed.read(&takes, depth, 1000);
            let had = had.get(&slow).copied().unwrap_or_default();
            assert!((1..=most).contains(&had), "{had} of 1000, of {depth} under way");
        }
    }
}

#[test]
fn legs_that_are_equally_quick_are_read_as_often() {
    for depth in [2, 3, 8, 33] {
        let mut timed = Timed::new();
        let had = timed.read(&|_| QUICK, depth, 1000);
        assert!(had.len() == 2 && had.values().all(|had| (300..=700).contains(had)), "{had:?}");
    }
}

#[test]
fn a_leg_that_was_slow_and_is_quick_again_is_read_again() {
    for depth in [1, 2, 8] {
        let mut timed = Timed::new();
        let legs = timed.legs();
        for slow in [legs[0], legs[1], legs[0]] {
            let takes = |pv| if pv == slow { 1000 * QUICK } else { QUICK };
            timed.read(&takes, depth, 4000);
            while !timed.under_way.is_empty() {
                timed.end(&takes);
            }
            // Seven times half until it is found.
            let takes = |pv| if pv == slow { QUICK / 2 } else { QUICK };
            timed.read(&takes, depth, 8 * 128 + 100);
            let had = timed.read(&takes, depth, 1000);
            assert!(had[&slow] > 500, "{had:?}, of {depth} under way");
        }
    }
}

/// A long read tells what a short one would have taken.
#[test]
fn a_leg_that_has_just_had_long_reads_is_not_slow() {
    let mut timed = Timed::new();
    let [one, other] = timed.legs();
    timed.read(&|_| QUICK, 2, 100);
    for _ in 0..20 {
        timed.pool.read_took(one, 1 << 20, 10 * QUICK);
    }
    let had = timed.read(&|_| QUICK, 2, 100);
    assert!(had.get(&one) >= Some(&30) && had.get(&other) >= Some(&30), "{had:?}");
}
