//! Indirect tables (virtio 1.3, 2.7.5.3).

use std::sync::Arc;

use super::{INDIRECT, NEXT, WRITE, walk_forced};
use crate::driver::DriverConfig;
use crate::split::{ChainError, QueueConfig};
use crate::testing::{Pair, desc_bytes, plain, pop_all, walk};

/// Head 0 of a ring of 4 refers to `entries` at `at` of fresh memory.
fn indirect(entries: &[[u8; 16]], at: usize) -> Pair {
    let pair = Pair::new(indirect_config());
    let table = pair.memory.alloc(entries.len() * 16 + 16, 16).unwrap();
    table.buf.write(at, &entries.concat());
    let len = entries.len() as u32 * 16;
    pair.set_desc(0, table.guest.0 + at as u64, len, INDIRECT, 0);
    pair
}

fn indirect_config() -> DriverConfig {
    DriverConfig { indirect_max: 1, ..plain(4) }
}

#[test]
fn clause_2_7_5_3_indirect_table_longer_than_the_ring() {
    for at in [0, 1, 8] {
        let entry = |i: u16| {
            let flags = if i == 514 { WRITE } else { NEXT | if i > 0 { WRITE } else { 0 } };
            desc_bytes(0x1_0000 + u64::from(i), 1 + u32::from(i), flags, i + 1)
        };
        let entries: Vec<_> = (0..515).map(entry).collect();
        let walked = walk_forced(&indirect(&entries, at), 0);
        assert_eq!((walked.bufs.len(), walked.readable, walked.error), (515, 1, None));
        assert_eq!(walked.bufs[514], (0x1_0000 + 514, 515));
    }
}

#[test]
fn clause_2_7_5_3_2_direct_descriptors_may_come_before_the_table() {
    let pair = indirect(&[desc_bytes(0x1_0000, 8, WRITE, 0)], 0);
    pair.set_desc(3, 0x1_0000, 4, NEXT, 0);
    let walked = walk_forced(&pair, 3);
    assert_eq!((walked.bufs, walked.error), (vec![(0x1_0000, 4), (0x1_0000, 8)], None));
}

#[test]
fn clause_2_7_5_3_2_write_flag_of_the_table_is_ignored() {
    let pair = indirect(&[desc_bytes(0x1_0000, 8, 0, 0)], 0);
    let mut bytes = [0; 16];
    let at = pair.table.user(pair.driver.addresses().desc, 16).unwrap();
    at.read(0, &mut bytes);
    bytes[12..14].copy_from_slice(&(INDIRECT | WRITE).to_le_bytes());
    at.write(0, &bytes);
    let walked = walk_forced(&pair, 0);
    assert_eq!((walked.readable, walked.error), (1, None));
}

#[test]
fn clause_2_7_5_3_1_indirect_in_indirect_is_an_error() {
    let pair = indirect(&[desc_bytes(0x1_0000, 16, INDIRECT, 0)], 0);
    assert_eq!(walk_forced(&pair, 0).error, Some(ChainError::IndirectInIndirect));
}

#[test]
fn clause_2_7_5_3_1_indirect_with_next_is_an_error() {
    let pair = Pair::new(indirect_config());
    pair.set_desc(0, 0x1_0000, 16, INDIRECT | NEXT, 1);
    assert_eq!(walk_forced(&pair, 0).error, Some(ChainError::IndirectNext));
}

#[test]
fn clause_2_7_5_3_1_indirect_without_negotiation_is_an_error() {
    let pair = indirect(&[desc_bytes(0x1_0000, 8, 0, 0)], 0);
    assert_eq!(walk_forced(&pair, 0).error, None, "the table itself is sound");
    let config = pair.driver.device_config();
    let config = QueueConfig { indirect: false, ..config };
    let mut device = config.start(Arc::clone(&pair.table)).unwrap();
    let head = pop_all(&mut device)[0];
    let error = Some(ChainError::IndirectNotNegotiated);
    assert_eq!(walk(&mut device, head).error, error);
}

#[test]
fn indirect_table_of_a_wrong_length_is_an_error() {
    let pair = Pair::new(indirect_config());
    for len in [0, 1, 15, 17, 1025 * 16, !15] {
        pair.set_desc(0, 0x1_0000, len, INDIRECT, 0);
        assert_eq!(walk_forced(&pair, 0).error, Some(ChainError::IndirectLength { len }));
    }
    let table = pair.memory.alloc(1024 * 16, 16).unwrap();
    for i in 0..1024u16 {
        let flags = if i < 1023 { NEXT } else { 0 };
        table.buf.write(usize::from(i) * 16, &desc_bytes(0x1_0000, 1, flags, i + 1));
    }
    pair.set_desc(0, table.guest.0, 1024 * 16, INDIRECT, 0);
    let walked = walk_forced(&pair, 0);
    assert_eq!((walked.bufs.len(), walked.error), (1024, None));
}

#[test]
fn indirect_table_outside_of_memory_is_an_error() {
    let pair = Pair::new(indirect_config());
    for addr in [0, u64::MAX - 8, 0x1_0000 + (4 << 20) - 16] {
        pair.set_desc(0, addr, 32, INDIRECT, 0);
        let walked = walk_forced(&pair, 0);
        // The last one has its first entry in memory: zeroes, a chain that ends there.
        match walked.error {
            Some(ChainError::IndirectAddress(_)) => assert_ne!(addr, 0x1_0000 + (4 << 20) - 16),
            other => assert_eq!(other, Some(ChainError::Empty)),
        }
    }
}

#[test]
fn loop_inside_an_indirect_table_ends() {
    let entry = |next| desc_bytes(0x1_0000, 8, NEXT, next);
    let pair = indirect(&[entry(1), entry(2), entry(1)], 0);
    assert_eq!(walk_forced(&pair, 0).error, Some(ChainError::Loop));
    let pair = indirect(&[entry(1), entry(2), entry(3)], 0);
    let error = ChainError::NextOutOfRange { next: 3, size: 3 };
    assert_eq!(walk_forced(&pair, 0).error, Some(error));
}
