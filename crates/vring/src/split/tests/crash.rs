//! The server is killed between any two stores, and started again on what it left.
//!
//! A script of pops, completions out of order and publications runs once for each crash point in it. After
//! each crash another device takes the same memory and region, resubmits and finishes. Then every request
//! must have come back to the driver exactly once, and no head may have been done again after its completion was visible.

use crate::driver::{DriverConfig, DriverMemory};
use crate::inflight::InflightRegion;
use crate::inflight::tests::dies_at;
use crate::split::{Head, Queue};
use crate::testing::{Pair, plain, pop_all};

const SIZE: u16 = 8;

/// What a run of the script leaves with the driver.
struct Life {
    pair: Pair,
    region: InflightRegion,
    /// How often each token's head was handed to a device.
    done: Vec<u64>,
}

impl Life {
    fn new(config: DriverConfig, first_index: u16) -> Life {
        let pair = Pair::with_memory(DriverMemory::new(1 << 20).unwrap(), config);
        // Queue 1 of 3, so that a store beside it would be seen.
        let region = InflightRegion::create(3, SIZE).unwrap().1;
        let mut life = Life { pair, region, done: Vec::new() };
        life.pair.driver.set_index(first_index);
        life
    }

    fn device(&self) -> Queue {
        self.pair.device_with(self.region.queue(1))
    }

    fn add(&mut self, tokens: std::ops::Range<u64>) {
        let buffer = self.pair.alloc(16);
        for token in tokens {
            self.pair.driver.add(&[], &[buffer], token, false).unwrap();
        }
        self.pair.driver.publish();
    }

    fn collect(&mut self) {
        while let Some(done) = self.pair.driver.poll().unwrap() {
            assert_eq!(done.written, 16);
            self.done.push(done.token);
        }
    }
}

fn put(device: &mut Queue, head: Head) {
    device.put_used(head, 16);
}

/// Six requests, finished out of order in two batches, then two more; the first two stay in flight
/// until the end.
fn script(life: &mut Life) {
    let mut device = life.device();
    life.add(0..6);
    let heads = pop_all(&mut device);
    put(&mut device, heads[4]);
    put(&mut device, heads[2]);
    put(&mut device, heads[5]);
    device.publish();
    life.collect();
    life.add(6..8);
    let more = pop_all(&mut device);
    put(&mut device, heads[3]);
    put(&mut device, more[1]);
    device.publish();
    life.collect();
    for head in [heads[1], more[0], heads[0]] {
        put(&mut device, head);
    }
    device.publish();
    life.collect();
    device.stop();
}

/// Serves what is there until the driver has everything back. Returns the heads resubmitted.
fn serve_the_rest(life: &mut Life) -> Vec<Head> {
    let mut device = life.device();
    let resubmitted: Vec<Head> = std::iter::from_fn(|| device.resubmit_next()).collect();
    // The driver has everything that was published, and nothing of that is done again.
    life.collect();
    let mut heads = resubmitted.clone();
    heads.extend(pop_all(&mut device));
    assert_eq!(heads.len(), usize::from(life.pair.driver.in_flight()), "each exactly once");
    for &head in heads.iter().rev() {
        device.chain(head, &mut super::Chain::new(&mut [super::IoBuf::EMPTY])).unwrap();
        put(&mut device, head);
    }
    device.publish();
    device.stop();
    life.collect();
    resubmitted
}

fn every_crash_point(config: DriverConfig, first_index: u16) {
    let mut most_resubmitted = 0;
    for at in 0.. {
        let mut life = Life::new(config, first_index);
        let died = dies_at(at, || script(&mut life));
        // A second crash while the next one recovers and serves, at another place each time.
        dies_at(at / 3, || drop(serve_the_rest(&mut life)));
        let resubmitted = serve_the_rest(&mut life);
        most_resubmitted = most_resubmitted.max(resubmitted.len());
        life.add(100..103);
        serve_the_rest(&mut life);
        // The script may have died before it added its last requests.
        life.done.sort_unstable();
        let before = life.done.iter().filter(|&&token| token < 100).count() as u64;
        let expected: Vec<u64> = (0..before).chain(100..103).collect();
        assert_eq!(life.done, expected, "killed at {at}");
        assert!([0, 6, 8].contains(&before), "killed at {at}");
        assert_eq!(life.pair.driver.in_flight(), 0);
        for neighbour in [0, 2] {
            let queue = life.region.queue(neighbour).unwrap();
            assert!(queue.recover(SIZE, 0).unwrap().fresh, "a store into another queue's part");
        }
        if !died {
            assert_eq!(before, 8);
            assert!(at > 40, "only {at} crash points");
            break;
        }
    }
    assert!(most_resubmitted > 0, "some crash left requests in flight");
}

#[test]
fn no_head_is_lost_or_done_twice_whenever_the_server_dies() {
    for first_index in [0, 65531, 65535] {
        every_crash_point(plain(SIZE), first_index);
        every_crash_point(DriverConfig { event_idx: true, ..plain(SIZE) }, first_index);
    }
}

#[test]
fn no_head_is_lost_in_order_whenever_the_server_dies() {
    for first_index in [0, 65533] {
        every_crash_point(DriverConfig { in_order: true, ..plain(SIZE) }, first_index);
    }
}

#[test]
fn what_was_left_comes_again_in_its_order_with_the_next_start() {
    for first_index in [0, 65533] {
        let mut life = Life::new(plain(SIZE), first_index);
        let mut device = life.device();
        life.add(0..5);
        let heads = pop_all(&mut device);
        put(&mut device, heads[3]);
        put(&mut device, heads[0]);
        device.publish();
        for head in [heads[4], heads[1], heads[2]] {
            device.leave(head);
        }
        assert_eq!(device.in_flight(), 0);
        device.stop();
        life.collect();
        assert_eq!(life.done, [3, 0]);
        assert_eq!(serve_the_rest(&mut life), [heads[1], heads[2], heads[4]]);
        assert_eq!(life.done[2..], [4, 2, 1], "they end the other way round");
        assert_eq!(life.pair.driver.in_flight(), 0);
    }
    assert!(!Pair::new(plain(SIZE)).device().may_leave(), "nothing would know of it");
}

#[test]
fn without_the_region_the_same_crashes_lose_requests() {
    let mut lost = 0;
    for at in 0..20 {
        let mut life = Life::new(plain(SIZE), 0);
        let region =
            std::mem::replace(&mut life.region, InflightRegion::create(3, SIZE).unwrap().1);
        dies_at(at, || {
            let mut device = life.pair.device_with(region.queue(1));
            life.add(0..4);
            let heads = pop_all(&mut device);
            put(&mut device, heads[3]);
            put(&mut device, heads[1]);
            device.publish();
        });
        // The next server knows only the used index: what completed first counts as done.
        let mut device = life.pair.device();
        let again = pop_all(&mut device);
        life.collect();
        let done: Vec<u64> = life.done.clone();
        let expected: Vec<u64> = (0..4).filter(|token| !done.contains(token)).collect();
        lost += u64::from(expected.iter().any(|&token| !again.contains(&Head(token as u16))));
    }
    assert!(lost > 0, "the control must fail, or the crash tests show nothing");
}

#[test]
fn resubmission_comes_first_and_in_the_order_of_the_driver() {
    let mut life = Life::new(plain(SIZE), 65534);
    life.add(0..3);
    let mut device = life.device();
    let taken = pop_all(&mut device);
    drop(device);
    life.add(3..5);
    let mut device = life.device();
    assert_eq!(device.pending(), Ok(0), "not before the old ones");
    assert!(device.enable_kicks(), "do not sleep");
    assert_eq!(device.resubmit_next(), Some(taken[0]));
    assert_eq!(device.in_flight(), 1);
    device.undo_pop(taken[0]);
    assert_eq!(device.in_flight(), 0);
    let again: Vec<Head> = std::iter::from_fn(|| device.resubmit_next()).collect();
    assert_eq!((&again, device.resubmit_next()), (&taken, None));
    assert_eq!(pop_all(&mut device).len(), 2);
    assert_eq!(device.in_flight(), 5);
}

#[test]
fn stop_before_resubmission_keeps_it_for_the_next_start() {
    let mut life = Life::new(plain(SIZE), 0);
    life.add(0..3);
    let mut device = life.device();
    assert_eq!(pop_all(&mut device).len(), 3);
    drop(device);
    let config = life.device().stop();
    assert_eq!(config.base, 3);
    let mut device = config.start(std::sync::Arc::clone(&life.pair.table)).unwrap();
    assert_eq!(std::iter::from_fn(|| device.resubmit_next()).count(), 3);
}
