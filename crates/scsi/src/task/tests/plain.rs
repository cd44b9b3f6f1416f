//! The short way against the long one: random commands to units of all kinds, with buffers that fit and that do not.

use std::ops::Range;

use block::{IoError, OpKind};
use proptest::prelude::*;

use super::super::{BlockRequest, Input, Memory, Plain, Step};
use super::{BLOCK, World, begin_compare};
use crate::attention::Level;
use crate::conformance::Bench;
use crate::sim::{ROOM, Slot, unit};
use crate::unit::flag;
use crate::{Attention, Status, UnitSpec};

/// READ and WRITE of all lengths, and neighbours of theirs.
const OPCODES: [u8; 14] =
    [0x08, 0x28, 0xa8, 0x88, 0x0a, 0x2a, 0xaa, 0x8a, 0x00, 0x12, 0x2e, 0x2f, 0x35, 0xff];

/// What stands in the way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Free,
    Attention,
    Reserved,
    Standby,
    WriteProtected,
    NoMedium,
    Compared,
}

fn cdb() -> impl Strategy<Value = [u8; 16]> {
    let low = prop::collection::vec(prop_oneof![4 => Just(0_u8), 1 => 0_u8..20], 16);
    let bits = prop::option::weighted(0.3, (1_usize..16, any::<u8>()));
    (prop::sample::select(OPCODES.to_vec()), low, 0_u8..70, 0_u8..9, bits).prop_map(
        |(opcode, low, lba, blocks, bits)| {
            let mut cdb: [u8; 16] = low.try_into().expect("sixteen");
            let (lba_at, blocks_at): (usize, Range<usize>) = match opcode >> 5 {
                0 => (3, 4..5),
                5 => (5, 6..10),
                4 => (9, 10..14),
                _ => (5, 7..9),
            };
            cdb[0] = opcode;
            cdb[1..blocks_at.end].fill(0);
            (cdb[lba_at], cdb[blocks_at.end - 1]) = (lba, blocks);
            if let Some((at, value)) = bits {
                cdb[at] = value;
            }
            cdb
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]

    #[test]
    fn what_goes_the_short_way_is_what_the_task_does(
        cdb in cdb(),
        (out_blocks, in_blocks, odd) in (0_usize..9, 0_usize..9, prop_oneof![8 => Just(0_usize), 1 => 1_usize..BLOCK]),
        way in prop::sample::select(vec![Way::Free, Way::Free, Way::Free, Way::Attention, Way::Reserved, Way::Standby, Way::WriteProtected, Way::NoMedium, Way::Compared]),
        (volatile, wce, read_only) in (any::<bool>(), any::<bool>(), prop::bool::weighted(0.1)),
        fits in any::<bool>(),
    ) {
        let World { disk, .. } = World::new();
        let change = |spec: &mut UnitSpec| {
            (spec.geometry.write_cache, spec.read_only) = (volatile, read_only);
        };
        let unit = unit(&disk, change);
        let client = unit.attach(Bench::name(1), None);
        prop_assert_eq!(client.gate().take(), Some(Attention::PowerOn));
        unit.set_flag(flag::WCE, wce && volatile);
        let writers = [unit.writer(), unit.writer()];
        let world = World { disk, unit: unit.clone(), client, writers };
        match way {
            Way::Free => {}
            Way::Attention => unit.tell_all(Attention::ModeChanged),
            Way::Reserved => world.client.gate().set_level(Level::Read),
            Way::Standby => world.client.gate().set_way(crate::AccessState::Standby),
            Way::WriteProtected => drop(unit.set_flag(flag::SWP, true)),
            Way::NoMedium => drop(unit.set_flag(flag::NO_MEDIUM | flag::EMPTY, true)),
            Way::Compared if !read_only => {
                begin_compare(&world, &mut Slot::new(), 1, 4, (1, 2));
            }
            Way::Compared => {}
        }
        // Mostly just as long as it says, on the side that it says.
        let long = (0..9).map(|blocks| blocks * BLOCK).find(|bytes| {
            Plain::of(&world.client, &world.writers[0], &cdb, (0, *bytes as u64)).is_some_and(|plain| {
                plain.end(&world.writers[0]);
                true
            })
        });
        let (out, room) = match long {
            Some(bytes) if fits => (0, bytes),
            _ => (out_blocks * BLOCK + odd, in_blocks * BLOCK),
        };
        let (mut short, mut task) = (Slot::new(), Slot::new());
        let writer = &world.writers[0];
        short.prepare(&vec![7; out], room, ROOM);
        task.prepare(&vec![7; out], room, ROOM);
        let Some(plain) = Plain::of(&world.client, writer, &cdb, (out as u64, room as u64)) else {
            // Nothing of it is left: a comparison that has the block to itself waits for no write.
            prop_assert!(writer_is_quiet(&world));
            return Ok(());
        };
        let memory = if plain.reads() { Memory::DataIn(0) } else { Memory::DataOut(0) };
        let (op, offset, len) = (plain.op, plain.offset, plain.len);
        prop_assert_eq!(op == OpKind::Read, plain.reads());
        let step = task.begin(&world.client, writer, &cdb);
        let request = BlockRequest { op, offset, len, memory, passed: 0 };
        prop_assert_eq!(&step, &Step::Submit(request), "{:x?}", cdb);
        short.task.take_over(plain);
        if way != Way::Compared {
            // What was noted beside a comparison has a number.
            prop_assert_eq!(format!("{:?}", short.task), format!("{:?}", task.task));
        }
        for input in [Input::Block(Ok(())), Input::Block(Err(IoError::Io))] {
            let ends = [&mut short, &mut task].map(|slot| slot.resume(&world.client, writer, &step, input));
            prop_assert_eq!(&ends[0], &ends[1]);
            let Step::Done(done) = &ends[0] else { panic!("{:?}", ends) };
            if input == Input::Block(Ok(())) {
                prop_assert_eq!((done.status, done.wanted, done.moved), (Status::Good, len, len));
            }
            prop_assert!(short.task.is_idle() && task.task.is_idle());
            // Again, for the other answer.
            let again = Plain::of(&world.client, writer, &cdb, (out as u64, room as u64));
            short.task.take_over(again.expect("as before"));
            task.begin(&world.client, writer, &cdb);
        }
        for slot in [&mut short, &mut task] {
            slot.resume(&world.client, writer, &step, Input::Block(Ok(())));
        }
        prop_assert!(writer_is_quiet(&world));
    }
}

/// No write is under way: a comparison of the last blocks gets them at once.
fn writer_is_quiet(world: &World) -> bool {
    let Some(claim) = world.writers[1].claim(60 * BLOCK as u64..61 * BLOCK as u64) else {
        return false;
    };
    let quiet = world.writers[1].is_exclusive(claim);
    world.writers[1].give_back(claim);
    quiet
}

#[test]
fn ordinary_reads_and_writes_go_the_short_way() {
    let world = World::new();
    let writer = &world.writers[0];
    for opcode in [0x08, 0x28, 0xa8, 0x88, 0x0a, 0x2a, 0xaa, 0x8a] {
        let mut cdb = [0; 16];
        let blocks_at = [4, 8, 8, 0, 13, 9][usize::from(opcode >> 5)];
        (cdb[0], cdb[blocks_at]) = (opcode, 8);
        let bytes = 8 * BLOCK as u64;
        let bytes = if opcode & 0x0f == 0x08 { (0, bytes) } else { (bytes, 0) };
        let plain = Plain::of(&world.client, writer, &cdb, bytes).expect("nothing is in its way");
        assert_eq!((plain.offset, plain.len), (0, 8 * BLOCK as u64), "{opcode:x}");
        plain.end(writer);
        let both = (8 * BLOCK as u64, 8 * BLOCK as u64);
        assert!(Plain::of(&world.client, writer, &cdb, both).is_none());
    }
    assert!(writer_is_quiet(&world));
}
