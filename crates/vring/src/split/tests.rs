//! The device side by clause. Indirect tables: `indirect.rs`; against an oracle: `oracle.rs`; killed half
//! way: `crash.rs`.

use std::sync::Arc;

use memory::IoBuf;

use super::*;
use crate::mem::{BadAddress, UserAddr};
use crate::testing::{Pair, get16, plain, pop_all, walk};

mod crash;
mod indirect;
mod oracle;

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

fn start_error(config: QueueConfig, mem: &Arc<MemTable>) -> StartError {
    config.start(Arc::clone(mem)).map(|_| ()).unwrap_err().1
}

/// Pops the one head that was forced and walks it.
fn walk_forced(pair: &Pair, head: u16) -> crate::testing::Walked {
    let mut device = pair.device();
    pair.force_avail(0, &[head]);
    assert_eq!(device.pending(), Ok(1));
    let popped = device.pop().unwrap().unwrap();
    walk(&mut device, popped)
}

#[test]
fn clause_2_7_queue_size_is_a_power_of_two() {
    for size in 0..=u16::MAX {
        let pair_size = if size.is_power_of_two() && size <= 1024 { size } else { 4 };
        if pair_size != size && size > 2050 && size % 4099 != 0 && !size.is_power_of_two() {
            continue;
        }
        let pair = Pair::new(plain(pair_size));
        let config = QueueConfig { size, ..pair.driver.device_config() };
        if pair_size == size {
            assert_eq!(config.start(Arc::clone(&pair.table)).unwrap().size(), size);
        } else {
            assert_eq!(start_error(config, &pair.table), StartError::Size(size));
        }
    }
}

#[test]
fn clause_2_7_parts_are_aligned_and_mapped() {
    let pair = Pair::new(plain(8));
    let good = || pair.driver.device_config();
    let off = |addr: UserAddr, by: u64| UserAddr(addr.0 + by);
    let bad = QueueConfig { desc: off(good().desc, 8), ..good() };
    let error = start_error(bad, &pair.table);
    assert!(matches!(error, StartError::Misaligned { part: RingPart::Descriptors, .. }));
    let bad = QueueConfig { avail: off(good().avail, 1), ..good() };
    let error = start_error(bad, &pair.table);
    assert!(matches!(error, StartError::Misaligned { part: RingPart::Available, .. }));
    let bad = QueueConfig { used: off(good().used, 2), ..good() };
    let error = start_error(bad, &pair.table);
    assert!(matches!(error, StartError::Misaligned { part: RingPart::Used, .. }));
    let bad = QueueConfig { used: UserAddr(16), ..good() };
    let error = start_error(bad, &pair.table);
    assert!(matches!(error, StartError::NotMapped { part: RingPart::Used, len: 70, .. }));
    // The last byte has to be in, too.
    let info = pair.table.regions().next().unwrap();
    let last = UserAddr(info.user.0 + info.size - 64);
    let bad = QueueConfig { used: last, ..good() };
    assert!(matches!(start_error(bad, &pair.table), StartError::NotMapped { .. }));
}

#[test]
fn start_gives_the_configuration_back_on_error() {
    let pair = Pair::new(plain(8));
    let config = QueueConfig { size: 7, base: 5, ..pair.driver.device_config() };
    let (config, _) = config.start(Arc::clone(&pair.table)).map(|_| ()).unwrap_err();
    assert_eq!((config.size, config.base), (7, 5));
}

#[test]
fn base_that_does_not_fit_the_used_ring_is_refused() {
    let pair = Pair::new(plain(8));
    let config = QueueConfig { base: 9, ..pair.driver.device_config() };
    let error = start_error(config, &pair.table);
    assert_eq!(error, StartError::Base { base: 9, used: 0, size: 8 });
}

#[test]
fn a_device_in_ring_order_begins_at_the_used_index_whatever_the_base() {
    // 0 is what DPDK says of every ring; it even seems to fit where the used index is about to wrap.
    for (used, base) in [(1000, 0), (65533, 0), (65535, 7), (0, 0), (3, 5)] {
        let mut pair = Pair::new(plain(8));
        pair.driver.set_index(used);
        let heads: Vec<_> = (0..8)
            .map(|token| pair.driver.add(&[], &[pair.alloc(16)], token, false).unwrap())
            .collect();
        pair.driver.publish();
        let config = QueueConfig { base, at_used: true, ..pair.driver.device_config() };
        let mut device = config.start(Arc::clone(&pair.table)).unwrap();
        assert_eq!(pop_all(&mut device), heads, "all that the driver made available: {used}");
        heads.iter().for_each(|head| device.put_used(*head, 0));
        device.publish();
        assert_eq!(device.stop().base, used.wrapping_add(8));
    }
}

#[test]
fn clause_2_7_5_chain_gives_readable_then_writable() {
    let mut pair = Pair::new(plain(8));
    let (a, b, c) = (pair.alloc(16), pair.alloc(4096), pair.alloc(1));
    let head = pair.driver.add(&[a], &[b, c], 7, false).unwrap();
    let mut device = pair.device();
    assert_eq!(device.pending(), Ok(0), "nothing is visible before publish");
    assert!(pair.driver.publish(), "the device wants kicks when it starts");
    assert_eq!(pop_all(&mut device), [head]);
    let walked = walk(&mut device, head);
    assert_eq!(walked.bufs, [(a.0.0, 16), (b.0.0, 4096), (c.0.0, 1)]);
    assert_eq!((walked.readable, walked.readable_bytes, walked.writable_bytes), (1, 16, 4097));
    assert_eq!(walked.error, None);
    assert_eq!(walk(&mut device, head), walked, "a head can be walked again");
    device.put_used(head, 4097);
    assert_eq!(pair.driver.poll(), Ok(None), "nothing is visible before publish");
    assert!(device.publish());
    let done = pair.driver.poll().unwrap().unwrap();
    assert_eq!((done.token, done.written, done.head), (7, 4097, head));
    assert_eq!(device.in_flight(), 0);
    assert_eq!(device.stop().base, 1);
}

#[test]
fn clause_2_7_5_zero_length_descriptor_adds_nothing() {
    let pair = Pair::new(plain(8));
    let a = pair.alloc(64);
    pair.set_desc(0, 0, 0, NEXT, 1);
    pair.set_desc(1, a.0.0, 64, NEXT, 2);
    pair.set_desc(2, u64::MAX, 0, NEXT | WRITE, 3);
    pair.set_desc(3, a.0.0, 8, 0, 0);
    let walked = walk_forced(&pair, 0);
    assert_eq!(walked.bufs, [(a.0.0, 64), (a.0.0, 8)]);
    assert_eq!((walked.readable, walked.error), (2, None));
}

#[test]
fn chain_without_bytes_is_an_error() {
    let pair = Pair::new(plain(8));
    pair.set_desc(0, 0, 0, 0, 0);
    assert_eq!(walk_forced(&pair, 0).error, Some(ChainError::Empty));
}

#[test]
fn clause_2_7_5_2_loop_ends() {
    let pair = Pair::new(plain(4));
    let a = pair.alloc(16);
    for i in 0..4 {
        pair.set_desc(i, a.0.0, 16, NEXT, (i + 1) % 4);
    }
    let walked = walk_forced(&pair, 2);
    assert_eq!((walked.error, walked.bufs.len()), (Some(ChainError::Loop), 0));
    pair.set_desc(2, a.0.0, 16, NEXT, 2);
    let mut device = pair.device();
    pair.force_avail(0, &[3]);
    let head = pop_all(&mut device)[0];
    assert_eq!(walk(&mut device, head).error, Some(ChainError::Loop));
}

#[test]
fn clause_2_7_5_chain_as_long_as_the_ring_is_no_loop() {
    let mut pair = Pair::new(plain(8));
    let a = pair.alloc(16);
    let head = pair.driver.add(&[a; 5], &[a; 3], 0, false).unwrap();
    pair.driver.publish();
    let mut device = pair.device();
    assert_eq!(pop_all(&mut device), [head]);
    let walked = walk(&mut device, head);
    assert_eq!((walked.bufs.len(), walked.readable, walked.error), (8, 5, None));
}

#[test]
fn next_beyond_the_table_is_an_error() {
    let pair = Pair::new(plain(4));
    let a = pair.alloc(16);
    pair.set_desc(0, a.0.0, 16, NEXT, 4);
    let error = Some(ChainError::NextOutOfRange { next: 4, size: 4 });
    assert_eq!(walk_forced(&pair, 0).error, error);
}

#[test]
fn clause_2_7_5_2_more_than_4_gib_is_an_error() {
    // One large region, touched nowhere.
    let memory = crate::driver::DriverMemory::new(3 << 30).unwrap();
    let pair = Pair::with_memory(memory, plain(4));
    pair.set_desc(0, 0x1_0000, 2 << 30, NEXT, 1);
    pair.set_desc(1, 0x1_0000, 2 << 30, 0, 0);
    assert_eq!(walk_forced(&pair, 0).error, None, "2^32 are allowed");
    pair.set_desc(1, 0x1_0000, (2 << 30) + 1, 0, 0);
    let mut device = pair.device();
    let head = pop_all(&mut device)[0];
    let walked = walk(&mut device, head);
    assert_eq!((walked.error, walked.bufs.len()), (Some(ChainError::LengthOverflow), 2));
}

#[test]
fn clause_2_7_4_2_readable_after_writable_is_an_error() {
    let pair = Pair::new(plain(4));
    let a = pair.alloc(16);
    pair.set_desc(0, a.0.0, 16, NEXT | WRITE, 1);
    pair.set_desc(1, a.0.0, 16, NEXT, 2);
    pair.set_desc(2, a.0.0, 1, WRITE, 0);
    let walked = walk_forced(&pair, 0);
    assert_eq!(walked.error, Some(ChainError::WritableThenReadable));
    assert_eq!(walked.bufs[2], (a.0.0, 1), "the status can still be written");
}

#[test]
fn bad_address_leaves_the_other_buffers() {
    let pair = Pair::new(plain(4));
    let a = pair.alloc(16);
    for bad in [0, 0x1_0000 + (4 << 20) - 15, u64::MAX - 15, u64::MAX] {
        pair.set_desc(0, a.0.0, 16, NEXT, 1);
        pair.set_desc(1, bad, 16, NEXT | WRITE, 2);
        pair.set_desc(2, a.0.0, 1, WRITE, 0);
        let walked = walk_forced(&pair, 0);
        let error = BadAddress { addr: GuestAddr(bad), len: 16 };
        assert_eq!(walked.error, Some(ChainError::BadAddress(error)));
        assert!(walked.error.unwrap().has_buffers());
        assert_eq!((walked.readable, *walked.bufs.last().unwrap()), (1, (a.0.0, 1)));
    }
}

#[test]
fn buffer_over_the_border_of_regions_is_split() {
    let regions = [(GuestAddr(0x10_0000), 0x10_0000), (GuestAddr(0x20_0000), 0x10_0000)];
    let memory = crate::driver::DriverMemory::with_regions(&regions).unwrap();
    let pair = Pair::with_memory(memory, plain(4));
    pair.set_desc(0, 0x1f_fff0, 32, NEXT, 1);
    pair.set_desc(1, 0x1f_ffff, 2, WRITE, 0);
    let walked = walk_forced(&pair, 0);
    let bufs = [(0x1f_fff0, 16), (0x20_0000, 16), (0x1f_ffff, 1), (0x20_0000, 1)];
    assert_eq!((&walked.bufs[..], walked.readable), (&bufs[..], 2));
    assert_eq!((walked.readable_bytes, walked.writable_bytes), (32, 2));
}

#[test]
fn too_long_says_how_much_is_needed_and_can_be_retried() {
    let mut pair = Pair::new(plain(8));
    let a = pair.alloc(16);
    let head = pair.driver.add(&[a; 2], &[a; 4], 0, false).unwrap();
    pair.driver.publish();
    let mut device = pair.device();
    pop_all(&mut device);
    let mut small = [IoBuf::EMPTY; 5];
    let error = device.chain(head, &mut Chain::new(&mut small));
    assert_eq!(error, Err(ChainError::TooLong { needed: 6 }));
    let mut large = [IoBuf::EMPTY; 6];
    let mut chain = Chain::new(&mut large);
    assert_eq!(device.chain(head, &mut chain), Ok(()));
    assert_eq!((chain.total, chain.readable), (6, 2));
}

#[test]
fn head_beyond_the_ring_stops_the_queue() {
    let pair = Pair::new(plain(4));
    let mut device = pair.device();
    pair.force_avail(0, &[4]);
    assert_eq!(device.pending(), Ok(1));
    let error = Err(QueueError::HeadOutOfRange { head: 4, size: 4 });
    assert_eq!(device.pop(), error);
    assert_eq!(device.pop(), error, "it stays so");
}

#[test]
fn head_in_flight_stops_the_queue() {
    let pair = Pair::new(plain(4));
    let mut device = pair.device();
    pair.force_avail(0, &[1, 1]);
    assert_eq!(device.pending(), Ok(2));
    assert_eq!(device.pop(), Ok(Some(Head(1))));
    assert_eq!(device.pop(), Err(QueueError::HeadInFlight { head: 1 }));
    device.put_used(Head(1), 0);
    device.publish();
    assert_eq!(device.pop(), Ok(Some(Head(1))), "free again");
}

#[test]
fn available_index_that_jumps_stops_the_queue() {
    for base in [0, 65530, 65535] {
        let mut pair = Pair::new(plain(8));
        pair.driver.set_index(base);
        let mut device = pair.device();
        pair.force_avail(base, &[0, 1, 2]);
        assert_eq!(pop_all(&mut device).len(), 3);
        for jump in [9u16, 10, 1000, 32768, 65535] {
            let index = base.wrapping_add(jump);
            pair.avail_word(1).write(0, &index.to_le_bytes());
            let error = QueueError::AvailJump { index, published: base, size: 8 };
            assert_eq!(device.pending(), Err(error), "by {jump}");
            assert_eq!(device.pop(), Ok(None));
        }
        // Three are in flight: more than five others cannot be, even if the ring has the room.
        pair.avail_word(1).write(0, &base.wrapping_add(8).to_le_bytes());
        assert_eq!(device.pending(), Ok(5));
        // Backwards: an index behind what was taken.
        pair.avail_word(1).write(0, &base.wrapping_add(2).to_le_bytes());
        assert!(device.pending().is_err());
    }
}

#[test]
fn clause_2_7_13_3_indices_wrap_at_65535() {
    for size in [1, 2, 8, 1024] {
        let mut pair = Pair::new(crate::driver::DriverConfig { event_idx: true, ..plain(size) });
        pair.driver.set_index(65530);
        let a = pair.alloc(16);
        let mut device = pair.device();
        for token in 0..100 {
            pair.driver.add(&[a], &[], token, false).unwrap();
            pair.driver.publish();
            let heads = pop_all(&mut device);
            assert_eq!(heads.len(), 1, "request {token}");
            device.put_used(heads[0], 0);
            device.publish();
            assert_eq!(pair.driver.poll().unwrap().unwrap().token, token);
        }
        assert_eq!(device.stop().base, 65530u16.wrapping_add(100));
    }
}

#[test]
fn undo_pop_gives_the_head_again() {
    let pair = Pair::new(plain(4));
    let mut device = pair.device();
    pair.force_avail(0, &[2, 3]);
    device.pending().unwrap();
    assert_eq!(device.pop(), Ok(Some(Head(2))));
    device.undo_pop(Head(2));
    assert_eq!((device.in_flight(), device.pending()), (0, Ok(2)));
    assert_eq!(device.pop(), Ok(Some(Head(2))));
    assert_eq!(device.pop(), Ok(Some(Head(3))));
}

#[test]
fn size_written_by_the_guest_after_the_start_changes_nothing() {
    let mut pair = Pair::new(plain(4));
    let a = pair.alloc(16);
    let mut device = pair.device();
    // Every word of the rings that the driver owns, but the index: whatever it says, the device goes by
    // the size it was started with.
    pair.set_desc(3, u64::MAX, u32::MAX, u16::MAX, u16::MAX);
    pair.avail_word(6).write(0, &[0xff; 2]);
    let head = pair.driver.add(&[a], &[], 0, false).unwrap();
    pair.driver.publish();
    assert_eq!(pop_all(&mut device), [head]);
    assert_eq!((device.size(), walk(&mut device, head).error), (4, None));
}

#[test]
fn clause_2_7_7_interrupt_flag_is_obeyed() {
    let mut pair = Pair::new(plain(4));
    let mut device = pair.device();
    pair.force_avail(0, &[0, 1]);
    let heads = pop_all(&mut device);
    assert!(!device.publish(), "nothing to tell");
    pair.driver.disable_interrupts();
    device.put_used(heads[0], 0);
    assert!(!device.publish());
    pair.driver.enable_interrupts();
    device.put_used(heads[1], 0);
    assert!(device.publish());
}

#[test]
fn clause_2_7_7_2_used_event_is_obeyed() {
    let mut pair = Pair::new(crate::driver::DriverConfig { event_idx: true, ..plain(8) });
    pair.driver.set_index(65534);
    let mut device = pair.device();
    pair.force_avail(65534, &[0, 1, 2, 3, 4]);
    let heads = pop_all(&mut device);
    // Interrupt me when element 0 (the third one) is there.
    pair.avail_word(2 + 8).write(0, &0u16.to_le_bytes());
    let told: Vec<bool> = heads
        .into_iter()
        .map(|head| {
            device.put_used(head, 0);
            device.publish()
        })
        .collect();
    assert_eq!(told, [false, false, true, false, false]);
}

#[test]
fn clause_2_7_10_kicks_are_asked_for_and_declined() {
    let mut pair = Pair::new(plain(8));
    let a = pair.alloc(16);
    let mut device = pair.device();
    device.disable_kicks();
    assert_eq!(get16(pair.used_word(0)), 1);
    pair.driver.add(&[a], &[], 0, false).unwrap();
    assert!(!pair.driver.publish());
    assert!(device.enable_kicks(), "one came meanwhile");
    assert_eq!(pop_all(&mut device).len(), 1);
    assert!(!device.enable_kicks());
    pair.driver.add(&[a], &[], 0, false).unwrap();
    assert!(pair.driver.publish());
}

#[test]
fn clause_2_7_10_2_avail_event_is_armed_and_flags_stay_0() {
    let mut pair = Pair::new(crate::driver::DriverConfig { event_idx: true, ..plain(8) });
    pair.driver.set_index(65535);
    let a = pair.alloc(16);
    pair.used_word(0).write(0, &[1, 0]);
    let mut device = pair.device();
    assert_eq!(get16(pair.used_word(0)), 0);
    assert!(!device.enable_kicks());
    assert_eq!(get16(pair.used_word(2 + 4 * 8)), 65535);
    pair.driver.add(&[a], &[], 0, false).unwrap();
    assert!(pair.driver.publish());
    assert_eq!(pop_all(&mut device).len(), 1);
    device.disable_kicks();
    assert_eq!(get16(pair.used_word(0)), 0);
    pair.driver.add(&[a], &[], 0, false).unwrap();
    assert!(!pair.driver.publish(), "the event stayed behind");
    assert!(device.enable_kicks());
}

#[test]
fn clause_2_7_9_in_order_holds_completions_back() {
    let config = crate::driver::DriverConfig { in_order: true, ..plain(8) };
    let mut pair = Pair::new(config);
    let (r, w) = (pair.alloc(16), pair.alloc(32));
    let mut device = pair.device();
    for round in 0..50u64 {
        for token in 0..4 {
            pair.driver.add(&[r], &[w], round * 4 + token, false).unwrap();
        }
        pair.driver.publish();
        let heads = pop_all(&mut device);
        for &head in &heads {
            walk(&mut device, head);
        }
        device.put_used(heads[2], 32);
        device.put_used(heads[1], 5);
        assert!(!device.publish(), "the first is missing");
        device.put_used(heads[0], 32);
        device.publish();
        let mut done = |written| {
            let completion = pair.driver.poll().unwrap().unwrap();
            assert_eq!(completion.written, written);
            completion.token
        };
        assert_eq!([done(32), done(5), done(32)], [0, 1, 2].map(|t| round * 4 + t));
        assert_eq!(pair.driver.poll(), Ok(None));
        device.put_used(heads[3], 0);
        device.publish();
        assert_eq!(pair.driver.poll().unwrap().unwrap().written, 0);
    }
    assert_eq!(device.stop().base, 200);
}

#[test]
fn clause_2_7_9_each_head_has_an_element_of_its_own() {
    let mut pair = Pair::new(crate::driver::DriverConfig { in_order: true, ..plain(8) });
    let w = pair.alloc(32);
    let mut device = pair.device();
    for token in 0..4 {
        pair.driver.add(&[], &[w], token, false).unwrap();
    }
    pair.driver.publish();
    // The last two first: they are held back until those before them are finished.
    let heads = pop_all(&mut device);
    for index in [2, 3, 0, 1] {
        walk(&mut device, heads[index]);
        device.put_used(heads[index], 32 - index as u32);
    }
    device.publish();
    // A driver that looks at the element at a head's place, and not at an earlier one for several, finds its length there.
    let elements = [2, 4, 6, 8, 10, 12, 14, 16].map(|at| get16(pair.used_word(at)));
    assert_eq!(elements, [0, 32, 1, 31, 2, 30, 3, 29]);
    let tokens: Vec<u64> =
        std::iter::from_fn(|| pair.driver.poll().unwrap()).map(|done| done.token).collect();
    assert_eq!(tokens, [0, 1, 2, 3]);
}

#[test]
fn dirty_log_has_the_data_and_the_used_ring() {
    let pair = Pair::new(plain(1024));
    let file = rustix::fs::memfd_create("log", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    rustix::fs::ftruncate(&file, 4096).unwrap();
    let log = Arc::new(DirtyLog::open(&std::fs::File::from(file), 0, 4096).unwrap());
    let data = pair.memory.alloc(3 * 4096, 4096).unwrap();
    let used = pair.driver.addresses().used_guest;
    let config = pair.driver.device_config();
    let config = QueueConfig { log: Some(Arc::clone(&log)), used_log: Some(used), ..config };
    let mut device = config.start(Arc::clone(&pair.table)).unwrap();
    let dirty = |addr: GuestAddr| log.is_marked(addr);
    pair.set_desc(0, data.guest.0 + 4000, 200, WRITE, 0);
    pair.force_avail(0, &[0]);
    let head = pop_all(&mut device)[0];
    let mut bufs = [IoBuf::EMPTY; 1];
    device.chain(head, &mut Chain::new(&mut bufs)).unwrap();
    device.mark_written(bufs[0]);
    let page = |n: u64| GuestAddr(data.guest.0 + n * 4096);
    assert_eq!([0, 1, 2].map(|n| dirty(page(n))), [true, true, false]);
    assert!(!dirty(used));
    device.put_used(head, 200);
    device.publish();
    assert!(dirty(used) && dirty(GuestAddr(used.0 + 4)));
    device.set_log(None, None);
    device.mark_written(pair.memory.buf(page(2), 1).unwrap());
    assert!(!dirty(page(2)), "off");
    assert!(device.stop().log.is_none());
}

#[test]
fn queue_moves_between_threads_and_back() {
    let mut pair = Pair::new(plain(8));
    let a = pair.alloc(16);
    let mut device = pair.device();
    for round in 0..3 {
        pair.driver.add(&[a], &[], round, false).unwrap();
        pair.driver.publish();
        let config = std::thread::spawn(move || {
            for head in pop_all(&mut device) {
                device.put_used(head, 0);
            }
            device.publish();
            device.stop()
        })
        .join()
        .unwrap();
        assert_eq!(pair.driver.poll().unwrap().unwrap().token, round);
        device = config.start(Arc::clone(&pair.table)).unwrap();
    }
}
