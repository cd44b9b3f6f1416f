//! Random commands to the medium, against blocks in a vector that follow the standard's sentences.

use proptest::prelude::*;

use super::{BLOCK, World};
use crate::sim::Slot;
use crate::{Residual, Status, code};

const BLOCKS: u64 = 64;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum What {
    Read,
    Write,
    Verify(u8),
    WriteAndVerify(u8),
    Same { unmap: bool, no_data: bool },
    Compare,
    Unmap,
}

#[derive(Debug, Clone)]
struct Order {
    what: What,
    /// Which of the lengths of CDBs: 6, 10, 12, 16.
    width: u8,
    lba: u64,
    blocks: u64,
    /// Bytes of the buffer that are missing, or more than needed.
    less: usize,
    more: usize,
    seed: u8,
    /// For those that compare: which byte is wrong.
    wrong: Option<usize>,
    piece: usize,
}

fn opcode(what: What, width: u8) -> Option<u8> {
    let [six, ten, twelve, sixteen] = match what {
        What::Read => [0x08, 0x28, 0xa8, 0x88],
        What::Write => [0x0a, 0x2a, 0xaa, 0x8a],
        What::Verify(_) => [0, 0x2f, 0xaf, 0x8f],
        What::WriteAndVerify(_) => [0, 0x2e, 0xae, 0x8e],
        What::Same { no_data: false, .. } => [0, 0x41, 0, 0x93],
        What::Same { no_data: true, .. } => [0, 0, 0, 0x93],
        What::Compare => [0, 0, 0, 0x89],
        What::Unmap => [0, 0x42, 0, 0],
    };
    Some([six, ten, twelve, sixteen][usize::from(width)]).filter(|opcode| *opcode != 0)
}

fn cdb(order: &Order, opcode: u8) -> Vec<u8> {
    let flags = match order.what {
        What::Verify(check) | What::WriteAndVerify(check) => check << 1,
        What::Same { unmap, no_data } => u8::from(unmap) << 3 | u8::from(no_data),
        _ => 0,
    };
    let (lba, blocks) = (order.lba.to_be_bytes(), order.blocks.to_be_bytes());
    match (order.what, order.width) {
        (What::Unmap, _) => vec![0x42, 0, 0, 0, 0, 0, 0, 0, 24, 0],
        (What::Compare, _) => [&[opcode, 0], &lba[..], &[0, 0, 0, blocks[7], 0, 0]].concat(),
        (_, 0) => vec![opcode, lba[5], lba[6], lba[7], blocks[7], 0],
        (_, 1) => [&[opcode, flags], &lba[4..], &[0, blocks[6], blocks[7], 0]].concat(),
        (_, 2) => [&[opcode, flags], &lba[4..], &blocks[4..], &[0, 0]].concat(),
        _ => [&[opcode, flags], &lba[..], &blocks[4..], &[0, 0]].concat(),
    }
}

fn fill(seed: u8, len: usize) -> Vec<u8> {
    // Seed 0 is zeroes, which the core treats in a way of its own.
    (0..len).map(|at| if seed == 0 { 0 } else { (at / 5 + at / BLOCK) as u8 ^ seed }).collect()
}

/// What should come of an order.
struct Expected {
    status: Status,
    code: Option<u16>,
    disk: Vec<u8>,
    data: Vec<u8>,
    residual: Residual,
}

fn residual(wanted: usize, buffer: usize) -> Residual {
    match wanted.abs_diff(buffer) as u64 {
        0 => Residual::Exact,
        bytes if wanted > buffer => Residual::Over(bytes),
        bytes => Residual::Under(bytes),
    }
}

/// The standard's sentences. `out` is what the client sends, `room` what it has room for.
fn expect(order: &Order, disk: &[u8], out: &[u8], room: usize) -> Expected {
    let fail = |code: u16| Expected {
        status: Status::CheckCondition,
        code: Some(code),
        disk: disk.to_vec(),
        data: vec![],
        residual: residual(0, out.len().max(room)),
    };
    let mut blocks = order.blocks;
    if order.width == 0 && blocks == 0 {
        blocks = 256;
    }
    let same = matches!(order.what, What::Same { .. });
    if order.what == What::Compare && blocks > 128 {
        return fail(code::INVALID_FIELD_IN_CDB);
    }
    if same && !matches!(order.what, What::Same { no_data: true, .. }) && order.lba > BLOCKS {
        // Either error is right; the core looks at the range first.
        return fail(code::LBA_OUT_OF_RANGE);
    }
    if order.what == What::Unmap && out.len() < 24 {
        return fail(code::PARAMETER_LIST_LENGTH);
    }
    if order.lba + blocks > BLOCKS {
        return fail(code::LBA_OUT_OF_RANGE);
    }
    if same && blocks == 0 {
        blocks = BLOCKS - order.lba;
    }
    let range = order.lba as usize * BLOCK..(order.lba + blocks) as usize * BLOCK;
    let len = range.len();
    let whole_blocks = |bytes: usize| bytes / BLOCK * BLOCK;
    let mut after = disk.to_vec();
    let mut data = vec![];
    let wanted = match order.what {
        What::Read => {
            data = disk[range][..len.min(room)].to_vec();
            len
        }
        What::Write | What::WriteAndVerify(_) => {
            let given = whole_blocks(len.min(out.len()));
            after[range][..given].copy_from_slice(&out[..given]);
            len
        }
        What::Verify(0) => 0,
        What::Verify(1) => {
            let given = whole_blocks(len.min(out.len()));
            if disk[range][..given] != out[..given] {
                return fail(code::MISCOMPARE);
            }
            len
        }
        What::Verify(_) => {
            let block = BLOCK.min(len);
            if out.len() >= block && disk[range].chunks(BLOCK).any(|each| *each != out[..block]) {
                return fail(code::MISCOMPARE);
            }
            block
        }
        What::Same { no_data: true, .. } => {
            after[range].fill(0);
            0
        }
        What::Same { .. } => {
            if out.len() != BLOCK {
                return fail(code::INVALID_FIELD_IN_CDB);
            }
            after[range].chunks_mut(BLOCK).for_each(|each| each.copy_from_slice(out));
            BLOCK
        }
        What::Compare => {
            if out.len() != 2 * len {
                return fail(code::INVALID_FIELD_IN_CDB);
            }
            if disk[range.clone()] != out[..len] {
                return fail(code::MISCOMPARE);
            }
            after[range].copy_from_slice(&out[len..]);
            2 * len
        }
        What::Unmap => {
            after[range].fill(0);
            24
        }
    };
    let buffer = if room > 0 { room } else { out.len() };
    let residual = residual(wanted, buffer);
    Expected { status: Status::Good, code: None, disk: after, data, residual }
}

/// What a client would send: what is on the disk where that is compared, with at most one byte wrong.
fn client_data(order: &Order, disk: &[u8]) -> Vec<u8> {
    let blocks = order.blocks as usize;
    let from = (order.lba as usize * BLOCK).min(disk.len());
    let to = (from + blocks * BLOCK).min(disk.len());
    let mut out = match order.what {
        What::Read => return vec![],
        What::Write | What::WriteAndVerify(_) => fill(order.seed, blocks * BLOCK),
        What::Verify(3) => disk[from..(from + BLOCK).min(disk.len())].to_vec(),
        What::Verify(_) => disk[from..to].to_vec(),
        What::Same { no_data: true, .. } => return vec![],
        What::Same { .. } => fill(order.seed, BLOCK),
        What::Compare => [&disk[from..to], &fill(order.seed, blocks * BLOCK)].concat(),
        What::Unmap => {
            let mut list = vec![0, 22, 0, 16, 0, 0, 0, 0];
            list.extend(order.lba.to_be_bytes());
            list.extend((order.blocks as u32).to_be_bytes());
            list.extend([0; 4]);
            list
        }
    };
    let compares = matches!(order.what, What::Verify(_) | What::Compare);
    if let (true, Some(at)) = (compares && !out.is_empty(), order.wrong) {
        let at = at % out.len();
        out[at] ^= 0x80;
    }
    out.truncate(out.len() - order.less.min(out.len()));
    if order.what != What::Unmap || order.less == 0 {
        // In place of descriptors it would be other descriptors.
        out.resize(out.len() + order.more, 0x77);
    }
    out
}

fn orders() -> impl Strategy<Value = Order> {
    let what = prop_oneof![
        3 => Just(What::Read),
        4 => Just(What::Write),
        1 => prop::sample::select(vec![0_u8, 1, 3]).prop_map(What::Verify),
        1 => (0..2_u8).prop_map(What::WriteAndVerify),
        1 => any::<(bool, bool)>().prop_map(|(unmap, no_data)| What::Same { unmap, no_data }),
        2 => Just(What::Compare),
        1 => Just(What::Unmap),
    ];
    let length = prop_oneof![4 => 0..6_u64, 1 => 0..70_u64];
    let cut = || prop_oneof![6 => Just(0), 1 => 1..1200_usize];
    let wrong = prop::option::weighted(0.3, 0..100_000_usize);
    let piece = prop::sample::select(vec![1 << 16, 512, 333]);
    (what, 0..4_u8, 0..68_u64, length, (cut(), cut()), 0..6_u8, wrong, piece).prop_map(
        |(what, width, lba, blocks, (less, more), seed, wrong, piece)| Order {
            what,
            width,
            lba,
            blocks,
            less,
            more,
            seed,
            wrong,
            piece,
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn the_disk_is_what_the_sentences_of_sbc3_say(orders in prop::collection::vec(orders(), 1..40)) {
        let mut world = World::new();
        let mut slot = Slot::new();
        for order in orders {
            let Some(opcode) = opcode(order.what, order.width) else { continue };
            let out = client_data(&order, &world.disk.bytes);
            let reading = order.what == What::Read;
            let len = order.blocks as usize * BLOCK;
            let room = if reading { len - order.less.min(len) + order.more } else { 0 };
            let room = room.min(crate::sim::ROOM);
            let out = &out[..out.len().min(crate::sim::ROOM)];
            let expected = expect(&order, &world.disk.bytes, out, room);
            slot.prepare(out, room, order.piece);
            let World { disk, client, writers, .. } = &mut world;
            let done = slot.run(disk, client, &writers[0], &cdb(&order, opcode));
            prop_assert_eq!(done.status, expected.status, "{:?}: {:?}", order, done);
            prop_assert_eq!(done.sense.map(|sense| sense.code), expected.code, "{:?}", order);
            prop_assert!(world.disk.bytes == expected.disk, "{order:?}");
            if done.status == Status::Good {
                let buffer = if room > 0 { room } else { out.len() };
                prop_assert_eq!(done.residual(buffer as u64), expected.residual, "{:?}", order);
            }
            if reading {
                prop_assert!(slot.read(expected.data.len()) == expected.data, "{order:?}");
            }
        }
    }
}
