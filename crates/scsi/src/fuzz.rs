//! A structured target for fuzzing: sequences of commands of several clients, mostly valid, then spoilt.

use crate::conformance::Bench;
use crate::sim::{Disk, ROOM, Slot, unit};
use crate::table::{COMMANDS, Needs, Spec, Verb};
use crate::{
    AccessState, Done, Identity, LogicalUnit, Naa, Nexus, NexusId, Persistent, PortGroup, Residual,
    Status, UnitKind, UnitSpec,
};

const BLOCKS: u64 = 64;
const BLOCK: u32 = 512;

/// Bytes of the fuzzer; zeroes when they are used up.
struct Input<'a>(std::slice::Iter<'a, u8>);

impl Input<'_> {
    fn byte(&mut self) -> u8 {
        self.0.next().copied().unwrap_or(0)
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::from(u16::from_le_bytes([self.byte(), self.byte()])) % bound.max(1)
    }

    fn is_over(&self) -> bool {
        self.0.len() == 0
    }
}

/// Runs a sequence of commands and checks what must hold after each.
///
/// # Panics
///
/// When the core breaks its contract, or a command changed what it must not: that is the defect that fuzzing looks for.
pub fn fuzz_commands(data: &[u8]) {
    let mut input = Input(data.iter());
    let mut disk = Disk::new(BLOCKS as usize, BLOCK);
    let setup = input.byte();
    let unit = unit(&disk, |spec| {
        spec.read_only = setup & 7 == 7;
        spec.thin = setup & 8 == 0;
        spec.removable = setup & 16 != 0;
        if setup & 64 != 0 {
            let bytes = (setup & 16 == 0).then_some(spec.geometry.bytes);
            *spec = UnitSpec::optical(Identity::optical("sim", Naa::local(7)), bytes);
        }
    });
    let clients: Vec<Nexus> = (0..3).map(|id| unit.attach(name(id), None)).collect();
    let writer = unit.writer();
    let mut slot = Slot::new();
    for _ in 0..24 {
        if input.is_over() {
            break;
        }
        happen(&mut input, &unit, disk.bytes.len() as u64);
        let client = &clients[input.below(clients.len())];
        let cdb = command(&mut input);
        let out = parameters(&mut input, &cdb);
        let room = [0, 8, 36, 512, 4096, ROOM][input.below(6)];
        slot.prepare(&out, room, [ROOM, 512, 7][input.below(3)]);
        slot.data_in().bufs.iter().for_each(|buf| buf.fill(0xee));
        let before = State::of(&unit, &disk);
        let done = slot.run(&mut disk, client, &writer, &cdb);
        check_answer(&slot, &done, room, out.len());
        check_way(&before, client, &cdb, &done);
        check_change(&before, &State::of(&unit, &disk), &cdb, &done);
    }
    let luns = [];
    slot.prepare(&[], 64, 64);
    let done = crate::unattached(setup & 32 != 0, &luns, &slot.data_in(), data);
    check_answer(&slot, &done, 64, 0);
}

/// The third client comes through another target port.
fn name(id: u64) -> NexusId {
    NexusId { port: 1 + u16::from(id == 2), ..Bench::name(id) }
}

/// Sometimes the server does something: the medium comes or goes, or ways change.
fn happen(input: &mut Input<'_>, unit: &LogicalUnit, bytes: u64) {
    use AccessState as S;
    const STATES: [AccessState; 6] = [
        S::ActiveOptimized,
        S::ActiveNonOptimized,
        S::Standby,
        S::Unavailable,
        S::Offline,
        S::Transitioning,
    ];
    let removable = unit.removable;
    match input.byte() {
        230..=234 if removable => unit.set_medium(None),
        235..=242 if removable => unit.set_medium(Some(bytes)),
        243..=245 if removable => drop(unit.remove_medium()),
        246.. => {
            let mut group = |id: u16| PortGroup {
                id,
                state: STATES[input.below(STATES.len())],
                preferred: false,
                ports: vec![id],
            };
            unit.set_port_groups(vec![group(1), group(2)]);
        }
        _ => {}
    }
}

/// A command of the table with plausible fields; some are spoilt, some are noise.
fn command(input: &mut Input<'_>) -> Vec<u8> {
    let choice = input.byte();
    if choice < 8 {
        let len = input.below(33);
        return (0..len).map(|_| input.byte()).collect();
    }
    let spec: &Spec = &COMMANDS[input.below(COMMANDS.len())];
    let mut cdb = vec![0; spec.usage.len()];
    (cdb[0], cdb[1]) = (spec.opcode, spec.action.unwrap_or(0));
    let small = input.byte();
    match (spec.verb, spec.usage.len()) {
        (Verb::ReservationsOut, _) => {
            cdb[2] = input.byte() % 10;
            cdb[8] = match cdb[1] {
                7 => 48,
                // SPEC_I_PT, with up to three TransportIDs.
                0 if small & 3 == 0 => 28 + 24 * (small >> 2 & 3),
                _ => 24,
            };
        }
        _ if cdb[0] == 0x4d || (spec.needs.met(Needs::DISK) && !spec.needs.met(Needs::OPTICAL)) => {
            for (byte, used) in cdb.iter_mut().zip(spec.usage).skip(1) {
                *byte = input.byte() & used;
            }
        }
        (Verb::CompareAndWrite, _) => (cdb[9], cdb[13]) = (small % 66, input.byte() % 5),
        (Verb::Inquiry | Verb::ModeSense | Verb::ModeSelect, 6) => {
            (cdb[2], cdb[4]) = (input.byte(), small);
        }
        (_, 6) => (cdb[3], cdb[4]) = (small % 66, input.byte()),
        (_, 10) => (cdb[5], cdb[8]) = (small % 66, input.byte()),
        (_, 12) => (cdb[5], cdb[9]) = (small % 66, input.byte()),
        _ => (cdb[9], cdb[13]) = (small % 66, input.byte()),
    }
    if spec.action.is_none() && choice & 1 == 1 {
        cdb[1] |= input.byte() & spec.usage[1] & 0x1f;
    }
    if choice > 200 {
        let at = input.below(cdb.len());
        cdb[at] ^= input.byte();
    }
    if choice > 250 {
        cdb.truncate(input.below(17));
    }
    cdb
}

/// Data for a command: the right amount of blocks or a parameter list, some of it spoilt.
fn parameters(input: &mut Input<'_>, cdb: &[u8]) -> Vec<u8> {
    let mut list = match cdb.first() {
        Some(0x5f) => {
            let mut list = vec![0; if cdb.get(1).is_some_and(|b| b & 31 == 7) { 48 } else { 24 }];
            (list[7], list[15]) = (input.byte() % 4, input.byte() % 4);
            let last = list.len() - 1;
            list[20] = input.byte() & 5;
            let ids = cdb.get(8).map_or(0, |len| len.saturating_sub(28) / 24);
            if cdb.get(1) == Some(&0) && cdb.get(8).is_some_and(|len| *len >= 28) {
                list[20] |= 8;
                list.extend((u32::from(ids) * 24).to_be_bytes());
                let id = |_| name(u64::from(input.byte() % 4)).initiator.encode();
                list.extend((0..ids).flat_map(id));
                return list;
            }
            if last > 24 {
                let to = Bench::name(u64::from(input.byte() % 4));
                list[20..24].copy_from_slice(&24_u32.to_be_bytes());
                (list[17], list[19]) = (input.byte() & 3, 1);
                list[24..].copy_from_slice(&to.initiator.encode());
            }
            list
        }
        Some(0x42) => {
            let count = input.below(5);
            let mut list = vec![0; 8 + 16 * count];
            list[3] = (16 * count) as u8;
            for at in (8..list.len()).step_by(16) {
                (list[at + 7], list[at + 11]) = (input.byte() % 66, input.byte() % 20);
            }
            list
        }
        Some(0x15 | 0x55) => {
            let header = if cdb[0] == 0x15 { 4 } else { 8 };
            let mut list = vec![0; header];
            if input.byte() & 1 == 0 {
                list.extend([0x08, 18, input.byte() & 4]);
                list.resize(header + 20, 0);
            } else {
                list.extend([0x0a, 10, input.byte() & 4, 0x10, input.byte() & 8]);
                list.extend([0, 0, 0, 1, 0x2c, 0, 0]);
            }
            list
        }
        Some(0x41 | 0x93) => vec![input.byte() % 2; BLOCK as usize],
        Some(0x89) => {
            let len = usize::from(cdb.get(13).copied().unwrap_or(0)) * BLOCK as usize;
            let (old, new) = (input.byte() % 2, input.byte() % 2);
            [vec![old; len], vec![new; len]].concat()
        }
        _ => vec![input.byte() % 2; input.below(40) * BLOCK as usize],
    };
    match input.byte() {
        spoil @ 200..240 if !list.is_empty() => {
            let at = input.below(list.len());
            list[at] ^= spoil;
        }
        240.. => list.truncate(input.below(list.len() + 1)),
        _ => {}
    }
    list.truncate(ROOM);
    list
}

/// Everything that commands can change, as seen from outside.
#[derive(Debug, PartialEq)]
struct State {
    disk: Disk,
    flags: u32,
    kept: Persistent,
    bytes: u64,
    optical: bool,
    loaded: bool,
}

impl State {
    fn of(unit: &crate::LogicalUnit, disk: &Disk) -> State {
        let (registrations, reservation) = unit.registrations();
        State {
            disk: disk.clone(),
            flags: unit.flags(),
            kept: Persistent { registrations, reservation },
            bytes: unit.bytes(),
            optical: unit.kind == UnitKind::Optical,
            loaded: unit.medium_loaded(),
        }
    }
}

fn check_answer(slot: &Slot, done: &Done, room: usize, out: usize) {
    assert!(slot.task.is_idle());
    assert_eq!(done.sense.is_some(), done.status == Status::CheckCondition);
    assert!(done.moved <= done.wanted);
    assert!(done.moved <= room.max(out).max(32) as u64);
    match done.residual(room as u64) {
        Residual::Exact => {}
        Residual::Under(bytes) => assert!(bytes > 0 && bytes <= room as u64),
        Residual::Over(bytes) => assert!(bytes > 0),
    }
}

/// What reaches the medium does so by an active way, and when there is a medium.
fn check_way(before: &State, client: &Nexus, cdb: &[u8], done: &Done) {
    let medium = [0x00, 0x08, 0x0a, 0x28, 0x2a, 0x42, 0x43, 0x88, 0x89, 0x8a, 0x93, 0xa8, 0xbe];
    let touches = cdb.first().is_some_and(|opcode| medium.contains(opcode));
    if touches && (client.gate().way().is_some() || !before.loaded) {
        assert_ne!(done.status, Status::Good, "{cdb:x?}");
        assert_eq!(done.moved, 0);
    }
}

/// Which blocks a command may write, parsed once more and differently.
fn writes(cdb: &[u8]) -> Option<std::ops::Range<u64>> {
    let number = |from: usize, to: usize| {
        cdb[from..to].iter().fold(0_u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let (lba, mut blocks) = match cdb[0] {
        0x0a => (number(1, 4) & 0x1f_ffff, if cdb[4] == 0 { 256 } else { number(4, 5) }),
        0x2a | 0x2e | 0x41 => (number(2, 6), number(7, 9)),
        0xaa | 0xae => (number(2, 6), number(6, 10)),
        0x8a | 0x8e | 0x93 => (number(2, 10), number(10, 14)),
        0x89 => (number(2, 10), number(13, 14)),
        // UNMAP: its list says where.
        0x42 => (0, BLOCKS),
        _ => return None,
    };
    if matches!(cdb[0], 0x41 | 0x93) && blocks == 0 {
        blocks = BLOCKS - lba;
    }
    Some(lba..lba + blocks)
}

fn check_change(before: &State, after: &State, cdb: &[u8], done: &Done) {
    assert_eq!(before.bytes, after.bytes);
    assert!(!before.optical || before.disk == after.disk, "{cdb:x?} wrote to an optical medium");
    if done.status != Status::Good {
        assert!(before == after, "{cdb:x?} failed, {done:?}, and changed something");
        return;
    }
    if before.disk != after.disk {
        let range = writes(cdb).unwrap_or_else(|| panic!("{cdb:x?} wrote"));
        assert!(range.end <= BLOCKS);
        let inside = range.start as usize * BLOCK as usize..range.end as usize * BLOCK as usize;
        let same = |part: std::ops::Range<usize>| {
            before.disk.bytes[part.clone()] == after.disk.bytes[part]
        };
        assert!(same(0..inside.start) && same(inside.end..before.disk.bytes.len()), "{cdb:x?}");
    }
    if before.kept != after.kept {
        assert_eq!(cdb[0], 0x5f, "only PERSISTENT RESERVE OUT changes registrations");
        assert!(after.kept.is_sane(), "{:?}", after.kept);
        assert_eq!(Persistent::decode(&after.kept.encode()).as_ref(), Ok(&after.kept));
    }
    if before.flags != after.flags {
        assert!(!before.optical || cdb[0] == 0x1b, "{cdb:x?}");
        assert!(matches!(cdb[0], 0x15 | 0x55 | 0x1b), "{cdb:x?} changed modes");
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn commands_keep_the_contract(data in proptest::collection::vec(any::<u8>(), 0..600)) {
            super::fuzz_commands(&data);
        }
    }
}
