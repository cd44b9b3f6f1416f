//! Reservations: the tables of the standards, command by command, and a naive oracle.

mod edges;
mod oracle;

use super::*;
use crate::conformance::Bench;
use crate::sim::{Disk, Slot, unit};
use crate::table::COMMANDS;
use crate::{InitiatorId, LogicalUnit, Nexus, Status, Writer};

/// What SPC-4, table 66, and SBC-3, table 13, say of a command of a nexus that does not hold the reservation: allowed or conflict, under
///
/// 1. write exclusive, from any other;
/// 2. exclusive access, from any other;
/// 3. registrants only or all registrants, from a registered one;
/// 4. write exclusive of these, from one that is not registered;
/// 5. exclusive access of these, from one that is not registered.
///
/// Written down from the tables, not from the code.
const TABLE: &[(&[u8], &str)] = &[
    (&[0x00, 0, 0, 0, 0, 0], "AAAAA"),             // TEST UNIT READY
    (&[0x03, 0, 0, 0, 18, 0], "AAAAA"),            // REQUEST SENSE
    (&[0x08, 0, 0, 0, 1, 0], "ACAAC"),             // READ(6)
    (&[0x0a, 0, 0, 0, 1, 0], "CCACC"),             // WRITE(6)
    (&[0x12, 0, 0, 0, 36, 0], "AAAAA"),            // INQUIRY
    (&[0x15, 0x10, 0, 0, 0, 0], "CCACC"),          // MODE SELECT(6)
    (&[0x1a, 0, 0x3f, 0, 36, 0], "ACAAC"),         // MODE SENSE(6)
    (&[0x1b, 0, 0, 0, 1, 0], "AAAAA"),             // START STOP UNIT, start
    (&[0x1b, 0, 0, 0, 0, 0], "CCACC"),             // START STOP UNIT, stop
    (&[0x1b, 0, 0, 0, 0x11, 0], "CCACC"),          // START STOP UNIT, a power condition
    (&[0x1d, 4, 0, 0, 0, 0], "CCACC"),             // SEND DIAGNOSTIC
    (&[0x1e, 0, 0, 0, 0, 0], "AAAAA"),             // PREVENT ALLOW, allow
    (&[0x1e, 0, 0, 0, 1, 0], "CCACC"),             // PREVENT ALLOW, prevent
    (&[0x25, 0, 0, 0, 0, 0, 0, 0, 0, 0], "AAAAA"), // READ CAPACITY(10)
    (&[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0], "ACAAC"), // READ(10)
    (&[0x37, 0, 0, 0, 0, 0, 0, 0, 8, 0], "ACAAC"), // READ DEFECT DATA(10)
    (&[0x4d, 0, 0, 0, 0, 0, 0, 0, 8, 0], "AAAAA"), // LOG SENSE
    (&[0xb7, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0], "ACAAC"), // READ DEFECT DATA(12)
    (&[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0], "CCACC"), // WRITE(10)
    (&[0x2e, 0, 0, 0, 0, 0, 0, 0, 1, 0], "CCACC"), // WRITE AND VERIFY(10)
    (&[0x2f, 0, 0, 0, 0, 0, 0, 0, 1, 0], "ACAAC"), // VERIFY(10)
    (&[0x34, 0, 0, 0, 0, 0, 0, 0, 1, 0], "ACAAC"), // PRE-FETCH(10)
    (&[0x35, 0, 0, 0, 0, 0, 0, 0, 1, 0], "CCACC"), // SYNCHRONIZE CACHE(10)
    (&[0x41, 0, 0, 0, 0, 0, 0, 0, 1, 0], "CCACC"), // WRITE SAME(10)
    (&[0x42, 0, 0, 0, 0, 0, 0, 0, 0, 0], "CCACC"), // UNMAP
    (&[0x55, 0x10, 0, 0, 0, 0, 0, 0, 0, 0], "CCACC"), // MODE SELECT(10)
    (&[0x5a, 0, 0x3f, 0, 0, 0, 0, 0, 36, 0], "ACAAC"), // MODE SENSE(10)
    (&[0x5e, 0, 0, 0, 0, 0, 0, 0, 8, 0], "AAAAA"), // READ KEYS
    (&[0x5e, 1, 0, 0, 0, 0, 0, 0, 8, 0], "AAAAA"), // READ RESERVATION
    (&[0x5e, 2, 0, 0, 0, 0, 0, 0, 8, 0], "AAAAA"), // REPORT CAPABILITIES
    (&[0x5e, 3, 0, 0, 0, 0, 0, 0, 8, 0], "AAAAA"), // READ FULL STATUS
    (&[0x88, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "ACAAC"), // READ(16)
    (&[0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "CCACC"), // COMPARE AND WRITE
    (&[0x8a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "CCACC"), // WRITE(16)
    (&[0x8e, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "CCACC"), // WRITE AND VERIFY(16)
    (&[0x8f, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "ACAAC"), // VERIFY(16)
    (&[0x90, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "ACAAC"), // PRE-FETCH(16)
    (&[0x91, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "CCACC"), // SYNCHRONIZE CACHE(16)
    (&[0x93, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "CCACC"), // WRITE SAME(16)
    (&[0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0], "AAAAA"), // READ CAPACITY(16)
    (&[0x9e, 0x12, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 24, 0, 0], "ACAAC"), // GET LBA STATUS
    (&[0xa0, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0], "AAAAA"), // REPORT LUNS
    (&[0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0], "AAAAA"), // REPORT TARGET PORT GROUPS
    (&[0xa3, 0x0c, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0], "ACAAC"), // REPORT SUPPORTED OPERATION CODES
    (&[0xa3, 0x0d, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0], "ACAAC"), // REPORT SUPPORTED TMF
    (&[0xa8, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "ACAAC"), // READ(12)
    (&[0xaa, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "CCACC"), // WRITE(12)
    (&[0xae, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "CCACC"), // WRITE AND VERIFY(12)
    (&[0xaf, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0], "ACAAC"), // VERIFY(12)
];

/// The same for what only optical drives have: what looks at the medium is a read, the rest is like INQUIRY.
const OPTICAL_TABLE: &[(&[u8], &str)] = &[
    (&[0x43, 0, 0, 0, 0, 0, 0, 0, 12, 0], "ACAAC"), // READ TOC/PMA/ATIP
    (&[0x46, 0, 0, 0, 0, 0, 0, 0, 8, 0], "AAAAA"),  // GET CONFIGURATION
    (&[0x4a, 1, 0, 0, 0x10, 0, 0, 0, 8, 0], "AAAAA"), // GET EVENT STATUS NOTIFICATION
    (&[0x51, 0, 0, 0, 0, 0, 0, 0, 34, 0], "ACAAC"), // READ DISC INFORMATION
    (&[0x52, 1, 0, 0, 0, 1, 0, 0, 36, 0], "ACAAC"), // READ TRACK INFORMATION
    (&[0xad, 0, 0, 0, 0, 0, 0, 0xff, 0, 8, 0, 0], "ACAAC"), // READ DVD STRUCTURE
    (&[0xbb, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0, 0, 0], "ACAAC"), // SET CD SPEED
    (&[0xbd, 0, 0, 0, 0, 0, 0, 0, 0, 8, 0, 0], "AAAAA"), // MECHANISM STATUS
    (&[0xbe, 0, 0, 0, 0, 0, 0, 0, 1, 0x10, 0, 0], "ACAAC"), // READ CD
];

/// SPC-4, table 67: PERSISTENT RESERVE OUT of one that does not hold the reservation, registered and not.
const OUT_TABLE: &[(u8, &str)] =
    &[(0, "AA"), (1, "CC"), (2, "AC"), (3, "AC"), (4, "AC"), (5, "AC"), (6, "AA"), (7, "CC")];

pub(super) struct World {
    pub(super) disk: Disk,
    pub(super) unit: std::sync::Arc<LogicalUnit>,
    pub(super) clients: Vec<Nexus>,
    pub(super) writer: Writer,
    pub(super) slot: Slot,
}

impl World {
    pub(super) fn new(count: u64) -> World {
        World::of((0..count).map(Bench::name), |spec| spec.removable = true)
    }

    pub(super) fn of(
        names: impl Iterator<Item = NexusId>,
        change: impl FnOnce(&mut crate::UnitSpec),
    ) -> World {
        let disk = Disk::new(8, 512);
        let unit = unit(&disk, change);
        let clients = names.map(|name| unit.attach(name, None)).collect();
        let writer = unit.writer();
        let world = World { disk, unit, clients, writer, slot: Slot::new() };
        world.hush();
        world
    }

    /// Forgets all unit attentions.
    pub(super) fn hush(&self) {
        self.clients.iter().for_each(|client| while client.gate().take().is_some() {});
    }

    pub(super) fn send(&mut self, client: usize, cdb: &[u8], out: &[u8]) -> crate::Done {
        self.slot.prepare(out, 512, 512);
        self.slot.run(&mut self.disk, &self.clients[client], &self.writer, cdb)
    }

    pub(super) fn out(&mut self, client: usize, action: u8, kind: u8, keys: (u64, u64)) -> Status {
        let list = [keys.0.to_be_bytes(), keys.1.to_be_bytes(), [0; 8]].concat();
        self.send(client, &[0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0], &list).status
    }
}

const HOLDER: usize = 0;
const REGISTERED: usize = 1;
const STRANGER: usize = 2;

/// A world in which client 0 holds a reservation, client 1 is registered, and client 2 is not.
fn reserved(kind: ReservationType) -> World {
    reserve(World::new(3), kind)
}

fn reserve(mut world: World, kind: ReservationType) -> World {
    for client in [HOLDER, REGISTERED] {
        assert_eq!(world.out(client, 0, 0, (0, client as u64 + 1)), Status::Good);
    }
    assert_eq!(world.out(HOLDER, 1, kind as u8, (1, 0)), Status::Good);
    world
}

/// The column of [`TABLE`] for somebody; `None` for a holder.
fn column(kind: ReservationType, who: usize) -> Option<usize> {
    use ReservationType as T;
    match (kind, who) {
        (_, HOLDER)
        | (T::WriteExclusiveAllRegistrants | T::ExclusiveAccessAllRegistrants, REGISTERED) => None,
        (T::WriteExclusive, _) => Some(0),
        (T::ExclusiveAccess, _) => Some(1),
        (_, REGISTERED) => Some(2),
        (T::WriteExclusiveRegistrantsOnly | T::WriteExclusiveAllRegistrants, _) => Some(3),
        _ => Some(4),
    }
}

#[test]
fn every_command_under_every_reservation_spc4_table_66() {
    let drive = || {
        let identity = crate::Identity::optical("drive", crate::Naa::local(3));
        let names = (0..3).map(Bench::name);
        World::of(names, |spec| *spec = crate::UnitSpec::optical(identity, Some(4096)))
    };
    for kind in ReservationType::ALL {
        check_table(reserved(kind), kind, TABLE);
        check_table(reserve(drive(), kind), kind, OPTICAL_TABLE);
    }
}

fn check_table(mut world: World, kind: ReservationType, table: &[(&[u8], &str)]) {
    for who in [HOLDER, REGISTERED, STRANGER] {
        for (cdb, verdicts) in table {
            let done = world.send(who, cdb, &[0; 512]);
            let allowed = done.status != Status::ReservationConflict;
            let expected = column(kind, who).is_none_or(|at| verdicts.as_bytes()[at] == b'A');
            assert_eq!(allowed, expected, "{kind:?}, client {who}, {cdb:x?}");
            // A change of modes or of removal would be in the way of what comes next.
            world.send(HOLDER, &[0x1e, 0, 0, 0, 0, 0], &[]);
            world.hush();
        }
    }
}

#[test]
fn the_table_has_every_command() {
    let own = [0x16, 0x17, 0x56, 0x57, 0x5f];
    for row in COMMANDS.iter().filter(|row| !own.contains(&row.opcode)) {
        let same =
            |cdb: &&[u8]| cdb[0] == row.opcode && row.action.is_none_or(|action| action == cdb[1]);
        let found = TABLE.iter().chain(OPTICAL_TABLE).map(|(cdb, _)| *cdb).find(same);
        assert_eq!(found.map(<[u8]>::len), Some(row.usage.len()), "{:x}", row.opcode);
    }
}

#[test]
fn every_service_action_under_every_reservation_spc4_table_67() {
    for kind in ReservationType::ALL {
        for (action, verdicts) in OUT_TABLE {
            for who in [REGISTERED, STRANGER] {
                let mut world = reserved(kind);
                let all = kind.all_registrants();
                if all && who == REGISTERED {
                    // That is a holder.
                    continue;
                }
                let key: u64 = if who == REGISTERED { 2 } else { 0 };
                let status = if *action == 7 {
                    let to = NexusId { initiator: InitiatorId::Fc(99), port: 1 };
                    let mut list = [key.to_be_bytes(), 5_u64.to_be_bytes()].concat();
                    list.extend([0, 0, 0, 1, 0, 0, 0, 24]);
                    list.extend(to.initiator.encode());
                    world.send(who, &[0x5f, 7, 0, 0, 0, 0, 0, 0, 48, 0], &list).status
                } else {
                    let victims = if matches!(action, 4 | 5) { 1 } else { 0 };
                    world.out(who, *action, kind as u8, (key, victims))
                };
                let column = usize::from(who == STRANGER);
                let expected = verdicts.as_bytes()[column] == b'A';
                assert_eq!(
                    status != Status::ReservationConflict,
                    expected,
                    "{kind:?}, client {who}, action {action}"
                );
            }
        }
    }
}

#[test]
fn reserve_and_release_beside_persistent_reservations_spc3_5_6_3() {
    for kind in ReservationType::ALL {
        for who in [HOLDER, REGISTERED, STRANGER] {
            for opcode in [0x16, 0x17] {
                let mut world = reserved(kind);
                let status = world.send(who, &[opcode, 0, 0, 0, 0, 0], &[]).status;
                let full = who == HOLDER || (who == REGISTERED && kind.registrants());
                let expected = if full { Status::Good } else { Status::ReservationConflict };
                assert_eq!(status, expected, "{kind:?}, client {who}");
                assert_eq!(world.unit.registrations().1.map(|held| held.kind), Some(kind));
            }
        }
    }
}

#[test]
fn registrations_are_bounded() {
    let full = Reservations {
        registrations: (0..REGISTRATIONS_MAX as u64)
            .map(|id| Registration { nexus: Bench::name(id), key: 1, all_ports: false })
            .collect(),
        ..Reservations::default()
    };
    let out = Out::Register(Register { ignore: false, all_ports: false, also: None });
    let order = Order { out, key: 0, action_key: 1, aptpl: false };
    let refused = full.apply(Bench::name(1 << 20), &[1], &order);
    let sense = Sense::illegal(code::NO_REGISTRATION_RESOURCES);
    assert_eq!(refused, Err(Refusal::Sense(sense)));
    let kept = Reservations { aptpl: true, ..full }.persistent();
    assert_eq!(Persistent::decode(&kept.encode()), Ok(kept));
}

#[test]
fn damaged_states_are_recognised() {
    let nexus = NexusId { initiator: InitiatorId::Srp(*b"an initiator por"), port: 3 };
    let registrations = vec![
        Registration { nexus: Bench::name(1), key: 5, all_ports: false },
        Registration { nexus, key: u64::MAX, all_ports: true },
    ];
    for reservation in
        [None, Some(Reservation { kind: ReservationType::ExclusiveAccess, holder: nexus })]
    {
        let state = Persistent { registrations: registrations.clone(), reservation };
        let bytes = state.encode();
        assert_eq!(Persistent::decode(&bytes).as_ref(), Ok(&state));
        for at in 0..bytes.len() {
            assert!(Persistent::decode(&bytes[..at]).is_err(), "cut at {at}");
            let mut changed = bytes.clone();
            changed[at] ^= 0x10;
            assert!(Persistent::decode(&changed).is_err(), "byte {at}");
        }
        let mut later = bytes.clone();
        later[4] = 2;
        assert_eq!(Persistent::decode(&later), Err(PersistentError::Version(2)));
    }
    let twice = Persistent {
        registrations: [registrations.clone(), registrations].concat(),
        reservation: None,
    };
    assert_eq!(Persistent::decode(&twice.encode()), Err(PersistentError::Damaged));
}

use crate::sense::{Sense, code};
use out::{Order, Out, Refusal, Register};

#[test]
fn a_registration_for_others_happens_for_all_or_for_nobody_spc4_6_16_3() {
    let id = |id: u64, port: u16| NexusId { port, ..Bench::name(id) };
    let mut world = World::of([id(1, 1), id(1, 2), id(2, 1)].into_iter(), |_| {});
    let mut register = |flags: u8, len: usize, ids: &[[u8; 24]]| {
        let mut list = [0_u64.to_be_bytes(), 7_u64.to_be_bytes(), [0; 8]].concat();
        list[20] = flags;
        list.extend((ids.len() as u32 * 24).to_be_bytes());
        list.extend(ids.concat());
        let [high, low] = (len as u16).to_be_bytes();
        let done =
            world.send(0, &[0x5f, 0, 0, 0, 0, 0, 0, high, low, 0], &list[..len.min(list.len())]);
        let registered = world.unit.registrations().0.into_iter().map(|each| each.nexus).collect();
        (done.sense, registered)
    };
    let nobody: Vec<NexusId> = Vec::new();
    let ids = [2, 3].map(|each| id(each, 1).initiator.encode());
    let short = Some(Sense::illegal(code::PARAMETER_LIST_LENGTH));
    for len in [0, 23, 24, 27, 28, 52, 75, 77, 100] {
        assert_eq!(register(0x08, len, &ids), (short, nobody.clone()), "{len} bytes");
    }
    let mut unknown = ids;
    unknown[1][0] = 0x05;
    assert_eq!(register(0x08, 76, &unknown), (Some(Sense::parameter(52)), nobody));
    let all = [id(1, 1), id(1, 2), id(2, 1), id(2, 2), id(3, 1), id(3, 2)];
    assert_eq!(register(0x0c, 76, &ids), (None, all.to_vec()));
    // Whoever is registered registers nobody else with it.
    let key = Some(Status::ReservationConflict);
    assert_eq!(key, Some(world.out(0, 0, 0, (0, 7))));
    let report = world.send(1, &[0x5e, 2, 0, 0, 0, 0, 0, 0, 8, 0], &[]);
    assert_eq!((report.moved, world.slot.read(8)[2]), (8, 0x1d), "CRH, SIP_C, ATP_C, PTPL_C");
}

#[test]
fn registrations_for_others_are_bounded_too() {
    let also = (10..10 + REGISTRATIONS_MAX as u64).map(|id| Bench::name(id).initiator);
    let register =
        |also| Out::Register(Register { ignore: false, all_ports: false, also: Some(also) });
    let order = |also| Order { out: register(also), key: 0, action_key: 1, aptpl: false };
    let sense = Sense::illegal(code::NO_REGISTRATION_RESOURCES);
    let none = Reservations::default();
    let refused = none.apply(Bench::name(1), &[1], &order(also.clone().collect()));
    assert_eq!(refused, Err(Refusal::Sense(sense)));
    let change = none.apply(Bench::name(1), &[1], &order(also.skip(1).collect())).expect("room");
    assert_eq!(change.next.registrations.len(), REGISTRATIONS_MAX);
}
