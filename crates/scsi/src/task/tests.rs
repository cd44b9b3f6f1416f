//! Tasks that overlap, wait, fail and are aborted, on a disk whose requests end when the test says so.

mod oracle;
mod plain;
mod schedule;

use block::{IoError, OpKind};

use super::*;
use crate::Attention;
use crate::conformance::Bench;
use crate::sim::{Disk, ROOM, Slot, unit};

const BLOCK: usize = 512;

struct World {
    disk: Disk,
    unit: std::sync::Arc<LogicalUnit>,
    client: Nexus,
    writers: [Writer; 2],
}

impl World {
    fn new() -> World {
        let disk = Disk::new(64, 512);
        let unit = unit(&disk, |_| {});
        let client = unit.attach(Bench::name(1), None);
        assert_eq!(client.gate().take(), Some(Attention::PowerOn));
        let writers = [unit.writer(), unit.writer()];
        World { disk, unit, client, writers }
    }

    fn begin(&self, slot: &mut Slot, channel: usize, cdb: &[u8], out: &[u8]) -> Step {
        slot.prepare(out, ROOM, ROOM);
        slot.begin(&self.client, &self.writers[channel], cdb)
    }

    fn resume(&self, slot: &mut Slot, channel: usize, after: &Step, input: Input) -> Step {
        slot.resume(&self.client, &self.writers[channel], after, input)
    }

    /// Carries out what a step asks the volume for, and goes on.
    fn carry_out(&mut self, slot: &mut Slot, channel: usize, step: &Step) -> Step {
        let Step::Submit(request) = step else { panic!("{step:?}") };
        let result = self.disk.carry_out(request, slot, slot.scratch());
        self.resume(slot, channel, step, Input::Block(result))
    }
}

fn write(lba: u8, blocks: u8) -> Vec<u8> {
    vec![0x2a, 0, 0, 0, 0, lba, 0, 0, blocks, 0]
}

fn compare(lba: u8, blocks: u8) -> Vec<u8> {
    vec![0x89, 0, 0, 0, 0, 0, 0, 0, 0, lba, 0, 0, 0, blocks, 0, 0]
}

fn good(step: &Step) {
    assert!(matches!(step, Step::Done(done) if done.status == Status::Good), "{step:?}");
}

/// Brings COMPARE AND WRITE as far as its first request.
fn begin_compare(world: &World, slot: &mut Slot, channel: usize, lba: u8, bytes: (u8, u8)) -> Step {
    let data = [[bytes.0; BLOCK], [bytes.1; BLOCK]].concat();
    let step = world.begin(slot, channel, &compare(lba, 1), &data);
    assert_eq!(step, Step::Scratch);
    world.resume(slot, channel, &step, Input::Ready)
}

#[test]
fn compare_and_write_waits_for_writes_in_flight_and_holds_new_ones_off() {
    let mut world = World::new();
    let (mut writes, mut late, mut beside, mut compares) =
        (Slot::new(), Slot::new(), Slot::new(), Slot::new());
    let early = world.begin(&mut writes, 0, &write(4, 1), &[1; BLOCK]);
    let waits = begin_compare(&world, &mut compares, 1, 4, (1, 2));
    assert_eq!(waits, Step::Wait, "a write is in flight");
    let held = world.begin(&mut late, 0, &write(4, 1), &[9; BLOCK]);
    assert_eq!(held, Step::Wait);
    let other = world.begin(&mut beside, 0, &write(20, 1), &[5; BLOCK]);
    good(&world.carry_out(&mut beside, 0, &other));
    good(&world.carry_out(&mut writes, 0, &early));
    let reads = world.resume(&mut compares, 1, &waits, Input::Ready);
    let writes_now = world.carry_out(&mut compares, 1, &reads);
    assert_eq!(world.resume(&mut late, 0, &held, Input::Ready), Step::Wait, "between the two");
    good(&world.carry_out(&mut compares, 1, &writes_now));
    assert_eq!(world.disk.bytes[4 * BLOCK..5 * BLOCK], [2; BLOCK]);
    let after = world.resume(&mut late, 0, &held, Input::Ready);
    good(&world.carry_out(&mut late, 0, &after));
    assert_eq!(world.disk.bytes[4 * BLOCK..5 * BLOCK], [9; BLOCK]);
}

#[test]
fn two_compare_and_writes_of_one_block_take_turns() {
    let mut world = World::new();
    let (mut first, mut second) = (Slot::new(), Slot::new());
    let reads = begin_compare(&world, &mut first, 0, 0, (0, 1));
    let waits = begin_compare(&world, &mut second, 1, 0, (0, 2));
    assert_eq!(waits, Step::Wait);
    let writes = world.carry_out(&mut first, 0, &reads);
    assert_eq!(world.resume(&mut second, 1, &waits, Input::Ready), Step::Wait);
    good(&world.carry_out(&mut first, 0, &writes));
    let reads = world.resume(&mut second, 1, &waits, Input::Ready);
    let Step::Done(done) = world.carry_out(&mut second, 1, &reads) else { panic!("it differs") };
    assert_eq!(done.sense.map(|sense| sense.key), Some(SenseKey::Miscompare));
    assert_eq!(world.disk.bytes[0], 1);
}

#[test]
fn an_aborted_write_happened_or_did_not_and_never_happens_later() {
    let mut world = World::new();
    let mut slot = Slot::new();
    // Out at the volume: it ends with the volume's answer.
    let step = world.begin(&mut slot, 0, &write(0, 1), &[1; BLOCK]);
    assert_eq!(slot.abort(&world.client, &world.writers[0]), Aborted::Later);
    let end = world.carry_out(&mut slot, 0, &step);
    assert_eq!(end, Step::Done(Done::status(Status::TaskAborted)));
    assert!(slot.task.is_idle());
    // Between the read and the write of COMPARE AND WRITE: not written.
    let reads = begin_compare(&world, &mut slot, 0, 1, (0, 7));
    assert_eq!(slot.abort(&world.client, &world.writers[0]), Aborted::Later);
    let end = world.carry_out(&mut slot, 0, &reads);
    assert_eq!(end, Step::Done(Done::status(Status::TaskAborted)));
    assert_eq!(world.disk.bytes[BLOCK], 0);
    // Waiting for memory, or for another command: at once.
    let step = world.begin(&mut slot, 0, &compare(2, 1), &[0; 2 * BLOCK]);
    assert_eq!(step, Step::Scratch);
    assert_eq!(slot.abort(&world.client, &world.writers[0]), Aborted::Now);
    let mut other = Slot::new();
    let reads = begin_compare(&world, &mut other, 1, 2, (0, 7));
    let step = world.begin(&mut slot, 0, &write(2, 1), &[3; BLOCK]);
    assert_eq!(step, Step::Wait);
    assert_eq!(slot.abort(&world.client, &world.writers[0]), Aborted::Now);
    let waits = begin_compare(&world, &mut slot, 0, 2, (0, 8));
    assert_eq!(waits, Step::Wait);
    assert_eq!(slot.abort(&world.client, &world.writers[0]), Aborted::Now);
    assert_eq!(slot.abort(&world.client, &world.writers[0]), Aborted::Now, "nothing to abort");
    // Nothing of all this is left to wait for.
    let writes = world.carry_out(&mut other, 1, &reads);
    good(&world.carry_out(&mut other, 1, &writes));
    let reads = begin_compare(&world, &mut slot, 0, 2, (7, 8));
    let writes = world.carry_out(&mut slot, 0, &reads);
    good(&world.carry_out(&mut slot, 0, &writes));
}

#[test]
fn a_long_command_asks_for_nothing_after_it_was_aborted() {
    let mut world = World::new();
    let mut slot = Slot::new();
    let list = unmap_list(&[(0, 4), (8, 4), (16, 4)]);
    world.disk.bytes.fill(5);
    let len = u8::try_from(list.len()).expect("short");
    let step = world.begin(&mut slot, 0, &[0x42, 0, 0, 0, 0, 0, 0, 0, len, 0], &list);
    let second = world.carry_out(&mut slot, 0, &step);
    assert!(matches!(second, Step::Submit(_)));
    assert_eq!(slot.abort(&world.client, &world.writers[0]), Aborted::Later);
    let end = world.carry_out(&mut slot, 0, &second);
    assert_eq!(end, Step::Done(Done::status(Status::TaskAborted)));
    let zero = |block: usize| world.disk.bytes[block * BLOCK] == 0;
    assert!(zero(0) && zero(8) && !zero(16));
}

#[test]
fn errors_of_the_volume_become_sense_data_and_leave_nothing_behind() {
    let world = World::new();
    let mut slot = Slot::new();
    let read = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    for (cdb, error, key, code) in [
        (read.to_vec(), IoError::Io, SenseKey::MediumError, code::READ_ERROR),
        (write(0, 1), IoError::Io, SenseKey::MediumError, code::WRITE_ERROR),
        (write(0, 1), IoError::NoSpace, SenseKey::DataProtect, code::SPACE_ALLOCATION_FAILED),
        (write(0, 1), IoError::ReadOnly, SenseKey::DataProtect, code::WRITE_PROTECTED),
        (read.to_vec(), IoError::Gone, SenseKey::NotReady, code::MANUAL_INTERVENTION),
        (read.to_vec(), IoError::OutOfRange, SenseKey::IllegalRequest, code::LBA_OUT_OF_RANGE),
    ] {
        let step = world.begin(&mut slot, 0, &cdb, &[1; BLOCK]);
        let end = world.resume(&mut slot, 0, &step, Input::Block(Err(error)));
        assert_eq!(end, Step::Done(Done::check(Sense::new(key, code))), "{error}");
        let reads = begin_compare(&world, &mut slot, 1, 0, (0, 0));
        let end = world.resume(&mut slot, 1, &reads, Input::Block(Err(IoError::Io)));
        assert_eq!(
            end,
            Step::Done(Done::check(Sense::new(SenseKey::MediumError, code::READ_ERROR)))
        );
    }
}

#[test]
fn a_change_that_is_being_stored_is_alone_and_happens_when_it_is_stored() {
    let world = World::new();
    let (mut one, mut two) = (Slot::new(), Slot::new());
    let register = [0x5f, 6, 0, 0, 0, 0, 0, 0, 24, 0];
    let mut list = [0; 24];
    (list[15], list[20]) = (1, 1);
    let step = world.begin(&mut one, 0, &register, &list);
    assert!(matches!(step, Step::Store(_)));
    assert_eq!(world.unit.registrations().0, []);
    let busy = world.begin(&mut two, 1, &register, &list);
    assert_eq!(busy, Step::Done(Done::status(Status::Busy)));
    let reserve = world.begin(&mut two, 1, &[0x16, 0, 0, 0, 0, 0], &[]);
    assert_eq!(reserve, Step::Done(Done::status(Status::Busy)));
    // Aborted meanwhile: what is stored has happened all the same.
    assert_eq!(one.abort(&world.client, &world.writers[0]), Aborted::Later);
    let end = world.resume(&mut one, 0, &step, Input::Stored(true));
    assert_eq!(end, Step::Done(Done::status(Status::TaskAborted)));
    assert_eq!(world.unit.registrations().0.len(), 1);
    // And another can go on.
    (list[15], list[20]) = (2, 0);
    let step = world.begin(&mut two, 1, &register, &list);
    assert!(matches!(&step, Step::Store(state) if state.is_empty()));
    good(&world.resume(&mut two, 1, &step, Input::Stored(true)));
    assert_eq!(world.unit.registrations().0[0].key, 2);
}

#[test]
fn the_write_cache_decides_what_has_to_be_durable() {
    let world = World::new();
    let mut slot = Slot::new();
    let fua = |world: &World, slot: &mut Slot, cdb: &[u8]| {
        let step = world.begin(slot, 0, cdb, &[1; BLOCK]);
        let Step::Submit(request) = &step else { panic!("{step:?}") };
        let fua = request.op == OpKind::Write { fua: true };
        good(&world.resume(slot, 0, &step, Input::Block(Ok(()))));
        fua
    };
    assert!(!fua(&world, &mut slot, &write(0, 1)));
    assert!(fua(&world, &mut slot, &[0x2a, 0x08, 0, 0, 0, 0, 0, 0, 1, 0]));
    // In six-byte CDBs the bit is part of the LBA.
    assert!(!fua(&world, &mut slot, &[0x0a, 0, 0, 8, 1, 0]));
    let mut select = vec![0, 0, 0, 0, 0x08, 18];
    select.resize(24, 0);
    good(&world.begin(&mut slot, 0, &[0x15, 0x10, 0, 0, 24, 0], &select));
    assert!(fua(&world, &mut slot, &write(0, 1)), "WCE is off");
    // A forced read writes the cache out first.
    let step = world.begin(&mut slot, 0, &[0x28, 0x08, 0, 0, 0, 0, 0, 0, 1, 0], &[]);
    assert!(matches!(&step, Step::Submit(request) if request.op == OpKind::Flush));
    let next = world.resume(&mut slot, 0, &step, Input::Block(Ok(())));
    assert!(matches!(&next, Step::Submit(request) if request.op == OpKind::Read));
    good(&world.resume(&mut slot, 0, &next, Input::Block(Ok(()))));
}

#[test]
fn cdbs_of_every_length_are_answered() {
    let mut world = World::new();
    let mut slot = Slot::new();
    for opcode in 0..=255_u8 {
        for action in 0..32 {
            let mut whole = [0; 33];
            (whole[0], whole[1]) = (opcode, action);
            for len in 0..=33 {
                slot.prepare(&[], 512, 512);
                let done =
                    slot.run(&mut world.disk, &world.client, &world.writers[0], &whole[..len]);
                let needed = table::find(opcode, action).map(|spec| spec.usage.len());
                if len == 0 || needed.is_err() {
                    assert!(done.sense.is_some(), "{opcode:x}/{action:x} in {len} bytes");
                }
                if needed.is_ok_and(|needed| len < needed) {
                    let key = done.sense.map(|sense| sense.key);
                    assert_eq!(key, Some(SenseKey::IllegalRequest));
                }
            }
        }
    }
}

#[test]
fn limits_of_a_large_disk() {
    let world = World::new();
    world.unit.set_bytes(1 << 42);
    world.client.forget(Attention::CapacityChanged);
    let mut slot = Slot::new();
    let mut sense = |cdb: &[u8], out: &[u8]| match world.begin(&mut slot, 0, cdb, out) {
        Step::Done(done) => done.sense,
        step => {
            assert_eq!(slot.abort(&world.client, &world.writers[0]) == Aborted::Later, {
                matches!(step, Step::Submit(_))
            });
            if slot.task.is_idle() {
                return None;
            }
            world.resume(&mut slot, 0, &step, Input::Block(Err(IoError::Io)));
            None
        }
    };
    let sixteen = |opcode: u8, blocks: u32| {
        [&[opcode, 0, 0, 0, 0, 0, 0, 0, 0, 0], &blocks.to_be_bytes()[..], &[0, 0]].concat()
    };
    for opcode in [0x88, 0x8a, 0x8e, 0x8f] {
        assert_eq!(sense(&sixteen(opcode, 65_536), &[0; BLOCK]), None, "{opcode:x}");
        assert_eq!(sense(&sixteen(opcode, 65_537), &[0; BLOCK]), Some(Sense::cdb(10)));
        assert_eq!(sense(&sixteen(opcode, u32::MAX), &[0; BLOCK]), Some(Sense::cdb(10)));
    }
    assert_eq!(sense(&sixteen(0x93, 32_768), &[1; BLOCK]), None);
    for blocks in [0, 32_769, u32::MAX] {
        assert_eq!(sense(&sixteen(0x93, blocks), &[1; BLOCK]), Some(Sense::cdb(10)));
    }
    let unmap = |ranges: &[u32]| {
        let len = u8::try_from(16 * ranges.len()).expect("few");
        let mut list = vec![0, len + 6, 0, len, 0, 0, 0, 0];
        for blocks in ranges {
            list.extend([0; 8]);
            list.extend(blocks.to_be_bytes());
            list.extend([0; 4]);
        }
        list
    };
    let most = crate::unit::UNMAP_BLOCKS_MAX;
    for (ranges, wrong) in [
        (vec![most], None),
        (vec![most - 1, 1], None),
        (vec![most + 1], Some(16)),
        (vec![most, 1], Some(32)),
        (vec![1, most], Some(32)),
        (vec![u32::MAX; 8], Some(16)),
    ] {
        let list = unmap(&ranges);
        let len = u8::try_from(list.len()).expect("short");
        let found = sense(&[0x42, 0, 0, 0, 0, 0, 0, 0, len, 0], &list);
        assert_eq!(found, wrong.map(Sense::parameter), "{ranges:?}");
    }
    let capacity = slot_read(&world, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], 8);
    assert_eq!(capacity[..4], [0xff; 4], "READ CAPACITY(16) has to be asked");
    world.unit.set_bytes(1 << 40);
    world.client.forget(Attention::CapacityChanged);
    let capacity = slot_read(&world, &[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], 8);
    assert_eq!(capacity[..4], [0x7f, 0xff, 0xff, 0xff]);
}

fn slot_read(world: &World, cdb: &[u8], len: usize) -> Vec<u8> {
    let mut slot = Slot::new();
    good(&world.begin(&mut slot, 0, cdb, &[]));
    slot.read(len)
}

#[test]
fn addresses_without_a_logical_unit() {
    let mut slot = Slot::new();
    let luns = [0, 700].map(|number| Lun::new(number).expect("small"));
    let mut ask = |well_known: bool, cdb: &[u8]| {
        slot.prepare(&[], 256, 256);
        let done = unattached(well_known, &luns, &slot.data_in(), cdb);
        (done, slot.read(usize::try_from(done.moved).expect("small")))
    };
    let inquiry = [0x12, 0, 0, 0, 255, 0];
    assert_eq!(ask(false, &inquiry).1[0], 0x7f, "nothing can be there");
    assert_eq!(ask(true, &inquiry).1[0], 0x1e);
    let report = [0xa0, 0, 2, 0, 0, 0, 0, 0, 1, 0, 0, 0];
    for well_known in [false, true] {
        let (_, list) = ask(well_known, &report);
        assert_eq!(list[..8], [0, 0, 0, 24, 0, 0, 0, 0]);
        assert_eq!(list[16..], [0x42, 188, 0, 0, 0, 0, 0, 0, 0xc1, 1, 0, 0, 0, 0, 0, 0]);
        assert_eq!(ask(well_known, &[0x03, 0, 0, 0, 18, 0]).1.len(), 18);
    }
    let code = |done: Done| done.sense.map(|sense| sense.code);
    let read = [0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0];
    assert_eq!(code(ask(false, &read).0), Some(code::LUN_NOT_SUPPORTED));
    assert_eq!(code(ask(true, &read).0), Some(code::INVALID_OPCODE));
    assert_eq!(code(ask(false, &[0; 6]).0), Some(code::LUN_NOT_SUPPORTED));
    assert_eq!(ask(true, &[0; 6]).0.status, Status::Good);
    for len in 0..12 {
        assert!(ask(false, &report[..len]).0.sense.is_some());
    }
}

/// The parameter list of an UNMAP.
fn unmap_list(ranges: &[(u8, u8)]) -> Vec<u8> {
    let len = u8::try_from(16 * ranges.len()).expect("few");
    let mut list = vec![0, len + 6, 0, len, 0, 0, 0, 0];
    for (lba, blocks) in ranges {
        list.extend([0, 0, 0, 0, 0, 0, 0, *lba, 0, 0, 0, *blocks, 0, 0, 0, 0]);
    }
    list
}
