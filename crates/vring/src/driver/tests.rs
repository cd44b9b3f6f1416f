//! The driver side: its limits, and a device that misbehaves.

use super::*;
use crate::testing::{Pair, plain, pop_all, walk};

fn force_used(pair: &Pair, slot: usize, id: u32, written: u32, index: u16) {
    let at = 2 + slot * 4;
    pair.used_word(at).write(0, &(id as u16).to_le_bytes());
    pair.used_word(at + 1).write(0, &((id >> 16) as u16).to_le_bytes());
    pair.used_word(at + 2).write(0, &(written as u16).to_le_bytes());
    pair.used_word(at + 3).write(0, &((written >> 16) as u16).to_le_bytes());
    pair.used_word(1).write(0, &index.to_le_bytes());
}

#[test]
fn limits_of_a_queue() {
    let memory = Arc::new(DriverMemory::new(1 << 20).unwrap());
    let make = |config| DriverQueue::new(&memory, config).map(|_| ());
    assert_eq!(make(plain(3)), Err(DriverError::Size(3)));
    assert_eq!(make(plain(0)), Err(DriverError::Size(0)));
    assert_eq!(make(plain(2048)), Err(DriverError::Size(2048)));
    let config = DriverConfig { indirect_max: 1025, ..plain(8) };
    assert_eq!(make(config), Err(DriverError::Indirect(1025)));
    let config = DriverConfig { indirect_max: 1024, ..plain(1024) };
    assert_eq!(make(config), Err(DriverError::NoMemory));
    assert_eq!(make(plain(1024)), Ok(()));
}

#[test]
fn limits_of_a_chain() {
    let mut pair = Pair::new(DriverConfig { indirect_max: 16, ..plain(4) });
    let a = pair.alloc(16);
    assert_eq!(pair.driver.add(&[], &[], 0, false), Err(AddError::Empty));
    assert_eq!(pair.driver.add(&[a; 5], &[], 0, false), Err(AddError::TooLong));
    assert_eq!(pair.driver.add(&[a; 9], &[a; 8], 0, true), Err(AddError::TooLong));
    pair.driver.add(&[a; 9], &[a; 7], 0, true).unwrap();
    pair.driver.add(&[a; 2], &[], 1, false).unwrap();
    assert_eq!(pair.driver.free(), 1);
    assert_eq!(pair.driver.add(&[a; 2], &[], 2, false), Err(AddError::Full));
    pair.driver.publish();
    let mut device = pair.device();
    let heads = pop_all(&mut device);
    let walked = walk(&mut device, heads[0]);
    assert_eq!((walked.bufs.len(), walked.readable, walked.error), (16, 9, None));
    for head in heads.into_iter().rev() {
        device.put_used(head, 0);
    }
    device.publish();
    assert_eq!(pair.driver.poll().unwrap().map(|done| done.token), Some(1));
    assert_eq!(pair.driver.poll().unwrap().map(|done| done.token), Some(0));
    assert_eq!((pair.driver.free(), pair.driver.in_flight()), (4, 0));
}

#[test]
fn used_ring_that_makes_no_sense_is_an_error() {
    let fresh = || {
        let mut pair = Pair::new(plain(8));
        let a = pair.alloc(16);
        pair.driver.add(&[a], &[a], 0, false).unwrap();
        pair.driver.publish();
        pair
    };
    let mut pair = fresh();
    force_used(&pair, 0, 0, 16, 2);
    let jump = UsedError::IndexJump { from: 0, to: 2, in_flight: 1 };
    assert_eq!(pair.driver.poll(), Err(jump));
    let mut pair = fresh();
    force_used(&pair, 0, 0, 16, 65535);
    assert!(matches!(pair.driver.poll(), Err(UsedError::IndexJump { .. })));
    for id in [1, 7, 8, 0x1_0000, u32::MAX] {
        let mut pair = fresh();
        force_used(&pair, 0, id, 16, 1);
        assert_eq!(pair.driver.poll(), Err(UsedError::NotInFlight { id }), "{id}");
    }
    let mut pair = fresh();
    force_used(&pair, 0, 0, 17, 1);
    let long = UsedError::TooLong { id: 0, written: 17, writable: 16 };
    assert_eq!(pair.driver.poll(), Err(long));
    let mut pair = fresh();
    force_used(&pair, 0, 0, 16, 1);
    assert!(pair.driver.poll().unwrap().is_some());
    let a = pair.alloc(16);
    pair.driver.add(&[a], &[], 1, false).unwrap();
    pair.driver.add(&[a], &[], 2, false).unwrap();
    // Not published: the device cannot know of them.
    force_used(&pair, 1, 0, 0, 2);
    assert!(matches!(pair.driver.poll(), Err(UsedError::IndexJump { .. })));
}

#[test]
fn order_that_was_promised_is_checked() {
    let mut pair = Pair::new(DriverConfig { in_order: true, ..plain(8) });
    let a = pair.alloc(16);
    for token in 0..4 {
        assert_eq!(pair.driver.add(&[a], &[], token, false), Ok(Head(token as u16)));
    }
    pair.driver.publish();
    force_used(&pair, 0, 2, 0, 2);
    assert_eq!(pair.driver.poll(), Err(UsedError::NotInFlight { id: 2 }), "one index too far");
    force_used(&pair, 0, 2, 0, 3);
    for token in 0..3 {
        assert_eq!(pair.driver.poll().unwrap().map(|done| done.token), Some(token));
    }
    assert_eq!(pair.driver.poll(), Ok(None));
}

#[test]
fn memory_is_given_out_once_and_aligned() {
    let regions = [(GuestAddr(0x1000), 0x1000), (GuestAddr(0x8000), 0x2000)];
    let memory = DriverMemory::with_regions(&regions).unwrap();
    let a = memory.alloc(10, 16).unwrap();
    let b = memory.alloc(0x1800, 4096).unwrap();
    let c = memory.alloc(16, 64).unwrap();
    assert_eq!([a, b, c].map(|range| range.guest.0), [0x1000, 0x8000, 0x1040]);
    assert!(memory.alloc(0x1000, 1).is_none());
    b.buf.write(0x17ff, &[7]);
    let table = memory.table().unwrap();
    let mut byte = [0];
    table.resolve_one(GuestAddr(0x97ff), 1).unwrap().read(0, &mut byte);
    assert_eq!(byte, [7]);
    assert!(memory.buf(GuestAddr(0x1fff), 2).is_none());
    assert!(DriverMemory::with_regions(&[(GuestAddr(8), 0x1000)]).is_err());
    assert!(DriverMemory::new(0).is_err());
}
