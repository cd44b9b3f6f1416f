//! Persistent reservations once more, from the tables and sentences of the standards, against the core.
//!
//! Written without the core at hand: SPC-4 (PERSISTENT RESERVE OUT: the table of service actions that reservations allow, the table of
//! what REGISTER does, the clauses on preempting and on removing registrations; PERSISTENT RESERVE IN: PRGENERATION), SPC-2 for
//! RESERVE and RELEASE, SAM-5 for resets. A rule is a row or a few lines. Two to eight I_T nexuses of four initiator ports and three target
//! ports come, go and send anything; compared after each step are status and sense code, PERSISTENT RESERVE IN, whose commands are
//! aborted, what each one is told, and what a command from the table of allowed commands meets.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;

use super::{TABLE, World};
use crate::attention::Attention;
use crate::sense::code;
use crate::wire::{be16, be32, be64};
use crate::{Attention as Told, InitiatorId, NexusId, Status, Step};

/// Initiator port and target port.
type Nexus = (u8, u16);

/// Service actions of PERSISTENT RESERVE OUT, by their codes.
const REGISTER: u8 = 0;
const RESERVE: u8 = 1;
const RELEASE: u8 = 2;
const CLEAR: u8 = 3;
const PREEMPT: u8 = 4;
const PREEMPT_AND_ABORT: u8 = 5;
const IGNORE: u8 = 6;
const MOVE: u8 = 7;

/// Types: code, whether others may read, whether the registered have full access, whether all of them hold it.
const TYPES: [(u8, bool, bool, bool); 6] = [
    (0x1, true, false, false),
    (0x3, false, false, false),
    (0x5, true, true, false),
    (0x6, false, true, false),
    (0x7, true, true, true),
    (0x8, false, true, true),
];

/// "Service actions that are allowed in the presence of various reservations", as far as it does not depend on more than this: what the
/// registered and the others get. `?`: the action's own rules say.
const ALLOWED: [(u8, char, char); 8] = [
    (REGISTER, '?', '?'),
    (RESERVE, '?', 'C'),
    (RELEASE, '?', 'C'),
    (CLEAR, '?', 'C'),
    (PREEMPT, '?', 'C'),
    (PREEMPT_AND_ABORT, '?', 'C'),
    (IGNORE, '?', '?'),
    (MOVE, '?', 'C'),
];

/// Of these PRGENERATION counts the successful ones.
const COUNTED: [u8; 6] = [REGISTER, IGNORE, MOVE, CLEAR, PREEMPT, PREEMPT_AND_ABORT];

#[derive(Debug, Clone)]
struct Order {
    action: u8,
    /// SCOPE and TYPE.
    kind: u8,
    key: u64,
    action_key: u64,
    aptpl: bool,
    all_ports: bool,
    /// SPEC_I_PT.
    also: Option<Vec<u8>>,
    /// REGISTER AND MOVE: whereto, and UNREG.
    to: Nexus,
    unregister: bool,
}

#[derive(Debug, Clone)]
enum Op {
    /// Somebody comes, if he is not there.
    Come(Nexus),
    /// The one of this number leaves, if two remain.
    Go(usize),
    /// From the one of this number; `honest`: with the key that he has.
    Out(usize, Order, bool),
    /// RESERVE(6) or RELEASE(6).
    Old(usize, bool),
    Reset(usize),
    PowerLoss,
}

/// What a command ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Good,
    Conflict,
    Check(u16),
}

/// The device server, as the standards speak of it.
#[derive(Debug, Clone, Default)]
struct Device {
    keys: BTreeMap<Nexus, u64>,
    /// Initiator ports that are registered for all target ports, those that come later among them.
    everywhere: BTreeSet<u8>,
    /// The type, and the holder, who is nobody in particular when all hold it.
    held: Option<(u8, Option<Nexus>)>,
    generation: u32,
    aptpl: bool,
    /// RESERVE.
    reserved: Option<Nexus>,
    told: BTreeSet<(Nexus, Told)>,
    aborted: BTreeSet<Nexus>,
}

fn row(kind: u8) -> Option<&'static (u8, bool, bool, bool)> {
    // SCOPE is 0, the logical unit.
    TYPES.iter().find(|row| row.0 == kind)
}

impl Device {
    fn holds(&self, nexus: Nexus) -> bool {
        match self.held {
            Some((_, None)) => self.keys.contains_key(&nexus),
            Some((_, holder)) => holder == Some(nexus),
            None => false,
        }
    }

    fn tell(&mut self, but: Nexus, what: Told) {
        let others = self.keys.keys().filter(|each| **each != but);
        self.told.extend(others.map(|each| (*each, what)));
    }

    /// Who holds the reservation after registrations went: nobody, if the holder is not registered, or of all holders none is left.
    /// "RESERVATIONS RELEASED" goes to the registered, if its type is one for registrants.
    fn release_if_orphaned(&mut self, by: Nexus) {
        let Some((kind, holder)) = self.held else { return };
        let orphaned = match holder {
            Some(holder) => !self.keys.contains_key(&holder),
            None => self.keys.is_empty(),
        };
        if orphaned {
            self.held = None;
            if row(kind).is_some_and(|row| row.2) {
                self.tell(by, Attention::ReservationsReleased);
            }
        }
    }

    fn out(&mut self, from: Nexus, ports: &BTreeSet<u16>, order: &Order) -> End {
        if order.also.is_some() && order.action != REGISTER && order.action != MOVE {
            return End::Check(code::INVALID_FIELD_IN_PARAMETERS);
        }
        if self.reserved.is_some() {
            return End::Conflict;
        }
        let registered = self.keys.contains_key(&from);
        let row = ALLOWED.iter().find(|row| row.0 == order.action).expect("all are there");
        if (if registered { row.1 } else { row.2 }) == 'C' {
            return End::Conflict;
        }
        // Whoever is registered says so by his key; REGISTER of somebody who is not has key 0; one does not care.
        let right = self.keys.get(&from).copied().unwrap_or(0) == order.key;
        if order.action != IGNORE && !right {
            return End::Conflict;
        }
        let end = match order.action {
            REGISTER | IGNORE => match self.register(from, ports, order) {
                Ok(nothing) if nothing => return End::Good,
                Ok(_) => End::Good,
                Err(end) => end,
            },
            RESERVE => self.reserve(from, order.kind),
            RELEASE => self.release(from, order.kind),
            CLEAR => {
                self.tell(from, Attention::ReservationsPreempted);
                self.keys.clear();
                self.held = None;
                End::Good
            }
            MOVE => self.hand_over(from, ports, order),
            _ => self.preempt(from, order),
        };
        if end == End::Good && COUNTED.contains(&order.action) {
            self.generation += 1;
        }
        end
    }

    /// The table of REGISTER. `Ok(true)`: "do nothing except return GOOD status".
    fn register(&mut self, from: Nexus, ports: &BTreeSet<u16>, order: &Order) -> Result<bool, End> {
        let registered = self.keys.contains_key(&from);
        if registered && order.also.is_some() {
            return Err(End::Check(code::INVALID_FIELD_IN_CDB));
        }
        if !registered && order.action_key == 0 {
            return Ok(true);
        }
        // "As if the same request had been received through each target port": those that would conflict spoil all, those
        // that would do nothing are left out.
        let mut whom = BTreeSet::from([from]);
        for port in ports.iter().filter(|_| order.all_ports) {
            let there = (from.0, *port);
            let key = self.keys.get(&there).copied();
            match (order.action, key) {
                (IGNORE, _) => drop(whom.insert(there)),
                (_, Some(key)) if key == order.key => drop(whom.insert(there)),
                (_, None) if order.key == 0 => drop(whom.insert(there)),
                (_, None) => {}
                (_, Some(_)) if there == from => {}
                (_, Some(_)) => return Err(End::Conflict),
            }
        }
        let mut initiators = BTreeSet::from([from.0]);
        for initiator in order.also.iter().flatten().filter(|each| **each != from.0) {
            initiators.insert(*initiator);
            let there = if order.all_ports { ports.clone() } else { BTreeSet::from([from.1]) };
            for port in there {
                if self.keys.contains_key(&(*initiator, port)) {
                    return Err(End::Check(code::INVALID_FIELD_IN_PARAMETERS));
                }
                whom.insert((*initiator, port));
            }
        }
        self.aptpl = order.aptpl;
        for nexus in &whom {
            match order.action_key {
                0 => drop(self.keys.remove(nexus)),
                key => drop(self.keys.insert(*nexus, key)),
            }
        }
        for initiator in initiators {
            let all = ports
                .iter()
                .all(|port| self.keys.get(&(initiator, *port)) == Some(&order.action_key));
            match order.all_ports && all {
                true => self.everywhere.insert(initiator),
                false => self.everywhere.remove(&initiator),
            };
        }
        self.release_if_orphaned(from);
        Ok(false)
    }

    fn reserve(&mut self, from: Nexus, kind: u8) -> End {
        let Some((_, _, _, all)) = row(kind) else { return End::Check(code::INVALID_FIELD_IN_CDB) };
        match self.held {
            None => self.held = Some((kind, (!all).then_some(from))),
            Some((now, _)) if now == kind && self.holds(from) => {}
            Some(_) => return End::Conflict,
        }
        End::Good
    }

    fn release(&mut self, from: Nexus, kind: u8) -> End {
        if !self.holds(from) {
            return End::Good;
        }
        let Some((now, _)) = self.held else { return End::Good };
        if now != kind {
            return End::Check(code::INVALID_RELEASE);
        }
        self.held = None;
        if row(kind).is_some_and(|row| row.2) {
            self.tell(from, Attention::ReservationsReleased);
        }
        End::Good
    }

    /// "Preempting", when the key is the holder's, or 0 and all hold it; otherwise "removing registrations", where SCOPE and TYPE are
    /// ignored.
    fn preempt(&mut self, from: Nexus, order: &Order) -> End {
        let victims = order.action_key;
        let holders_key = match self.held {
            Some((_, None)) => Some(0),
            Some((_, Some(holder))) => self.keys.get(&holder).copied(),
            None => None,
        };
        if victims == 0 && holders_key != Some(0) {
            return End::Check(code::INVALID_FIELD_IN_PARAMETERS);
        }
        let named = |key: u64| key == victims || victims == 0;
        let gone: BTreeSet<Nexus> = if holders_key == Some(victims) {
            let Some((_, _, _, all)) = row(order.kind) else {
                return End::Check(code::INVALID_FIELD_IN_CDB);
            };
            let gone = self.keys.iter().filter(|(nexus, key)| **nexus != from && named(**key));
            let gone = gone.map(|(nexus, _)| *nexus).collect();
            self.remove(&gone);
            let before = self.held.replace((order.kind, (!all).then_some(from)));
            if before.map(|(kind, _)| kind) != Some(order.kind) {
                self.tell(from, Attention::ReservationsReleased);
            }
            gone
        } else {
            let gone: BTreeSet<Nexus> =
                self.keys.iter().filter(|(_, key)| named(**key)).map(|(nexus, _)| *nexus).collect();
            if gone.is_empty() {
                return End::Conflict;
            }
            self.remove(&gone);
            self.release_if_orphaned(from);
            gone
        };
        let others: Vec<Nexus> = gone.into_iter().filter(|nexus| *nexus != from).collect();
        self.told.extend(others.iter().map(|each| (*each, Attention::RegistrationsPreempted)));
        if order.action == PREEMPT_AND_ABORT {
            self.aborted.extend(others);
        }
        End::Good
    }

    fn remove(&mut self, gone: &BTreeSet<Nexus>) {
        for nexus in gone {
            self.keys.remove(nexus);
            self.everywhere.remove(&nexus.0);
        }
    }

    fn hand_over(&mut self, from: Nexus, ports: &BTreeSet<u16>, order: &Order) -> End {
        let Some((kind, Some(holder))) = self.held else { return End::Conflict };
        if holder != from {
            return End::Conflict;
        }
        let nowhere = !ports.contains(&order.to.1);
        if order.action_key == 0 || order.to == from || nowhere {
            return End::Check(code::INVALID_FIELD_IN_PARAMETERS);
        }
        self.aptpl = order.aptpl;
        if self.keys.insert(order.to, order.action_key) != Some(order.action_key) {
            self.everywhere.remove(&order.to.0);
        }
        self.held = Some((kind, Some(order.to)));
        if order.unregister {
            self.remove(&BTreeSet::from([from]));
        }
        End::Good
    }

    /// RESERVE and RELEASE of SPC-2, with the exceptions that CRH announces.
    fn old(&mut self, from: Nexus, reserve: bool) -> End {
        if !self.keys.is_empty() {
            return if self.held.is_some() && self.full(from) { End::Good } else { End::Conflict };
        }
        match (reserve, self.reserved) {
            (true, Some(other)) if other != from => return End::Conflict,
            (true, _) => self.reserved = Some(from),
            (false, Some(own)) if own == from => self.reserved = None,
            (false, _) => {}
        }
        End::Good
    }

    fn full(&self, nexus: Nexus) -> bool {
        let Some((kind, _)) = self.held else { return true };
        let member = row(kind).is_some_and(|row| row.2) && self.keys.contains_key(&nexus);
        member || self.holds(nexus)
    }

    /// Column of the table of allowed commands; `None`: all of them.
    fn column(&self, nexus: Nexus) -> Option<usize> {
        let (kind, _) = self.held.filter(|_| !self.full(nexus))?;
        let (_, read, registrants, _) = row(kind)?;
        Some(match (registrants, read) {
            (false, true) => 0,
            (false, false) => 1,
            (true, true) => 3,
            (true, false) => 4,
        })
    }

    fn come(&mut self, nexus: Nexus) {
        if self.everywhere.contains(&nexus.0)
            && let Some(key) = self.keys.iter().find(|(each, _)| each.0 == nexus.0).map(|it| *it.1)
        {
            self.keys.entry(nexus).or_insert(key);
        }
    }

    fn power_loss(&mut self) {
        *self = match self.aptpl {
            true => Device { generation: 0, reserved: None, ..self.clone() },
            false => Device::default(),
        };
    }
}

fn name((initiator, port): Nexus) -> NexusId {
    NexusId { initiator: InitiatorId::Fc(initiator.into()), port }
}

fn list(order: &Order) -> Vec<u8> {
    let mut list = [order.key.to_be_bytes(), order.action_key.to_be_bytes()].concat();
    if order.action == MOVE {
        list.extend([0, u8::from(order.unregister) << 1 | u8::from(order.aptpl)]);
        list.extend(order.to.1.to_be_bytes());
        list.extend(24_u32.to_be_bytes());
        list.extend(name(order.to).initiator.encode());
        return list;
    }
    let spec = u8::from(order.also.is_some()) << 3;
    let flags = spec | u8::from(order.all_ports) << 2 | u8::from(order.aptpl);
    list.extend([0, 0, 0, 0, flags, 0, 0, 0]);
    if let Some(also) = order.also.as_ref().filter(|_| order.action == REGISTER) {
        list.extend((24 * also.len() as u32).to_be_bytes());
        list.extend(also.iter().flat_map(|each| name((*each, 0)).initiator.encode()));
    }
    list
}

/// The core, and who is there.
struct Bench {
    world: World,
    there: Vec<Nexus>,
    kept: crate::Persistent,
}

impl Bench {
    fn new(there: Vec<Nexus>) -> Bench {
        let world = World::of(there.iter().map(|each| name(*each)), |spec| spec.removable = true);
        Bench { world, there, kept: crate::Persistent::default() }
    }

    fn ports(&self) -> BTreeSet<u16> {
        self.there.iter().map(|nexus| nexus.1).collect()
    }

    /// Sends a command; how it ended, and whose commands it had aborted.
    fn send(&mut self, client: usize, cdb: &[u8], out: &[u8]) -> (End, BTreeSet<Nexus>) {
        let World { slot, clients, writer, disk, .. } = &mut self.world;
        slot.prepare(out, 4096, 4096);
        let mut aborted = BTreeSet::new();
        let mut step = slot.begin(&clients[client], writer, cdb);
        loop {
            let input = match &step {
                Step::Done(done) => {
                    let end = match done.status {
                        Status::Good => End::Good,
                        Status::ReservationConflict => End::Conflict,
                        _ => End::Check(done.sense.map_or(0, |sense| sense.code)),
                    };
                    return (end, aborted);
                }
                Step::Store(kept) => {
                    self.kept = (**kept).clone();
                    crate::Input::Stored(true)
                }
                Step::Abort(whose) => {
                    let of = |id: &NexusId| {
                        let InitiatorId::Fc(initiator) = id.initiator else { panic!("{id:?}") };
                        (initiator as u8, id.port)
                    };
                    aborted.extend(whose.iter().map(of));
                    crate::Input::Ready
                }
                Step::Submit(request) => {
                    crate::Input::Block(disk.carry_out(request, slot, slot.scratch()))
                }
                Step::Scratch => crate::Input::Ready,
                Step::Wait => panic!("nobody is in the way"),
            };
            step = slot.resume(&clients[client], writer, &step, input);
        }
    }

    fn apply(&mut self, device: &mut Device, op: Op) {
        device.told.clear();
        device.aborted.clear();
        match op {
            Op::Come(nexus) if !self.there.contains(&nexus) && self.there.len() < 8 => {
                let client = self.world.unit.attach(name(nexus), None);
                assert_eq!(client.gate().take(), Some(Attention::PowerOn));
                self.world.clients.push(client);
                self.there.push(nexus);
                device.come(nexus);
            }
            Op::Go(client) if self.there.len() > 2 => {
                let client = client % self.there.len();
                self.world.clients.remove(client);
                let nexus = self.there.remove(client);
                device.reserved = device.reserved.filter(|holder| *holder != nexus);
            }
            Op::Come(_) | Op::Go(_) => {}
            Op::Out(client, mut order, honest) => {
                let client = client % self.there.len();
                let from = self.there[client];
                if honest {
                    order.key = device.keys.get(&from).copied().unwrap_or(0);
                }
                let before = format!("{device:?}");
                let expected = device.out(from, &self.ports(), &order);
                let list = list(&order);
                let kind = order.kind;
                let cdb = [0x5f, order.action, kind, 0, 0, 0, 0, 0, list.len() as u8, 0];
                let (end, aborted) = self.send(client, &cdb, &list);
                assert_eq!(end, expected, "{order:?} from {from:?} with {before}");
                assert_eq!(aborted, device.aborted, "{order:?} from {from:?} with {before}");
            }
            Op::Old(client, reserve) => {
                let client = client % self.there.len();
                let expected = device.old(self.there[client], reserve);
                let opcode = if reserve { 0x16 } else { 0x17 };
                assert_eq!(self.send(client, &[opcode, 0, 0, 0, 0, 0], &[]).0, expected);
            }
            Op::Reset(client) => {
                let client = client % self.there.len();
                device.reserved = None;
                crate::management::Function::LogicalUnitReset.finish(&self.world.clients[client]);
                let told = |nexus: &Nexus| (*nexus, Attention::UnitReset);
                device.told.extend(self.there.iter().map(told));
            }
            Op::PowerLoss => {
                device.power_loss();
                let mut again = Bench::new(Vec::new());
                let kept = crate::Persistent::decode(&self.kept.encode()).expect("whole");
                again.world.unit.restore(kept.clone());
                for nexus in &self.there {
                    let client = again.world.unit.attach(name(*nexus), None);
                    assert_eq!(client.gate().take(), Some(Attention::PowerOn));
                    again.world.clients.push(client);
                    device.come(*nexus);
                }
                *self = Bench { there: self.there.clone(), kept, ..again };
            }
        }
    }

    /// PERSISTENT RESERVE IN.
    fn ask(&mut self, action: u8) -> Option<Vec<u8>> {
        let (end, _) = self.send(0, &[0x5e, action, 0, 0, 0, 0, 0, 16, 0, 0], &[]);
        (end == End::Good).then(|| {
            let head = self.world.slot.read(8);
            self.world.slot.read(8 + be32(&head, 4) as usize)
        })
    }

    fn check(&mut self, device: &Device, row: usize) {
        let mut told = BTreeSet::new();
        for (nexus, client) in self.there.iter().zip(&self.world.clients) {
            told.extend(std::iter::from_fn(|| client.gate().take()).map(|what| (*nexus, what)));
        }
        let here = |(nexus, _): &&(Nexus, Told)| self.there.contains(nexus);
        assert_eq!(told, device.told.iter().filter(here).copied().collect(), "{device:?}");
        let Some(keys) = self.ask(0) else {
            assert!(device.reserved.is_some(), "{device:?}");
            return self.check_access(device, row);
        };
        assert_eq!(device.reserved, None);
        assert_eq!(be32(&keys, 0), device.generation, "{device:?}");
        let mut found: Vec<u64> = keys[8..].chunks(8).map(|key| be64(key, 0)).collect();
        found.sort_unstable();
        let mut expected: Vec<u64> = device.keys.values().copied().collect();
        expected.sort_unstable();
        assert_eq!(found, expected, "{device:?}");
        let held = self.ask(1).expect("as READ KEYS");
        let found = (held.len() > 8).then(|| (be64(&held, 8), held[21]));
        let key = |holder: Option<Nexus>| holder.map_or(0, |holder| device.keys[&holder]);
        assert_eq!(found, device.held.map(|(kind, holder)| (key(holder), kind)), "{device:?}");
        assert_eq!(self.full_status(), self.expected_status(device), "{device:?}");
        self.check_access(device, row);
    }

    /// By nexus: key, whether it holds the reservation, and its type.
    fn full_status(&mut self) -> BTreeMap<Nexus, (u64, bool, u8)> {
        let status = self.ask(3).expect("as READ KEYS");
        let each = |entry: &[u8]| {
            let nexus = (be64(entry, 32) as u8, be16(entry, 18));
            (nexus, (be64(entry, 0), entry[12] & 1 != 0, entry[13]))
        };
        status[8..].chunks(48).map(each).collect()
    }

    fn expected_status(&self, device: &Device) -> BTreeMap<Nexus, (u64, bool, u8)> {
        let each = |(nexus, key): (&Nexus, &u64)| {
            let holds = device.holds(*nexus);
            (*nexus, (*key, holds, device.held.filter(|_| holds).map_or(0, |held| held.0)))
        };
        device.keys.iter().map(each).collect()
    }

    /// One command of the table from everybody.
    fn check_access(&mut self, device: &Device, row: usize) {
        let (cdb, verdicts) = TABLE[row % TABLE.len()];
        // PERSISTENT RESERVE IN and old reservations go their own ways.
        if device.reserved.is_some() {
            return;
        }
        for client in 0..self.there.len() {
            let allowed = self.send(client, cdb, &[0; 512]).0 != End::Conflict;
            let column = device.column(self.there[client]);
            let expected = column.is_none_or(|at| verdicts.as_bytes()[at] == b'A');
            assert_eq!(allowed, expected, "{cdb:x?} from {:?} with {device:?}", self.there[client]);
        }
        self.world.hush();
    }
}

fn nexuses() -> impl Strategy<Value = Nexus> {
    (0..4_u8, 1..4_u16)
}

fn orders() -> impl Strategy<Value = Order> {
    let kinds = prop_oneof![
        8 => prop::sample::select(TYPES.map(|row| row.0).to_vec()),
        1 => Just(0_u8),
        1 => any::<u8>(),
    ];
    let actions = prop_oneof![
        4 => Just(REGISTER), 3 => Just(RESERVE), 1 => Just(RELEASE), 1 => Just(CLEAR),
        2 => Just(PREEMPT), 2 => Just(PREEMPT_AND_ABORT), 2 => Just(IGNORE), 1 => Just(MOVE),
    ];
    let also = prop::option::weighted(0.1, prop::collection::vec(0..4_u8, 0..3));
    let to = (0..4_u8, prop_oneof![8 => 1..4_u16, 1 => Just(0_u16), 1 => Just(999_u16)]);
    let flags = (prop::bool::weighted(0.3), prop::bool::weighted(0.3), any::<bool>());
    (actions, kinds, (0..4_u64, 0..4_u64), flags, also, to).prop_map(
        |(action, kind, (key, action_key), (aptpl, all_ports, unregister), also, to)| Order {
            action,
            kind,
            key,
            action_key,
            aptpl,
            all_ports,
            also: also.filter(|_| action != MOVE),
            to,
            unregister,
        },
    )
}

fn ops() -> impl Strategy<Value = Op> {
    prop_oneof![
        30 => (0..8_usize, orders(), prop::bool::weighted(0.9))
            .prop_map(|(client, order, honest)| Op::Out(client, order, honest)),
        3 => nexuses().prop_map(Op::Come),
        2 => (0..8_usize).prop_map(Op::Go),
        2 => (0..8_usize, any::<bool>()).prop_map(|(client, reserve)| Op::Old(client, reserve)),
        1 => (0..8_usize).prop_map(Op::Reset),
        1 => Just(Op::PowerLoss),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn reservations_are_as_the_tables_of_the_standards_say(
        there in prop::collection::btree_set(nexuses(), 2..=8),
        ops in prop::collection::vec((ops(), 0..TABLE.len()), 1..60),
    ) {
        let mut device = Device::default();
        let mut bench = Bench::new(there.into_iter().collect());
        for (op, row) in ops {
            bench.apply(&mut device, op);
            bench.check(&device, row);
        }
    }
}
