//! PERSISTENT RESERVE OUT (SPC-4, 6.16 and 5.13).

use std::collections::BTreeSet;

use super::{Change, REGISTRATIONS_MAX, Registration, Reservation, ReservationType, Reservations};
use crate::attention::Attention;
use crate::data::Data;
use crate::nexus::{InitiatorId, NexusId, TRANSPORT_ID_BYTES};
use crate::sense::{Sense, code};
use crate::wire::{be16, be32, be64};

/// The basic parameter list; its length is exact (SPC-4, 6.16.3).
const BASIC_BYTES: usize = 24;
/// REGISTER AND MOVE: a header, and a TransportID of the only length there is.
const MOVE_BYTES: usize = 24 + TRANSPORT_ID_BYTES;
/// Where the TransportIDs of SPEC_I_PT begin, behind their length.
const IDS_AT: usize = 28;
/// Bits of byte 20 of the basic parameter list.
const APTPL: u8 = 0x01;
const ALL_TG_PT: u8 = 0x04;
const SPEC_I_PT: u8 = 0x08;

/// REGISTER, or REGISTER AND IGNORE EXISTING KEY.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Register {
    pub(super) ignore: bool,
    /// ALL_TG_PT.
    pub(super) all_ports: bool,
    /// SPEC_I_PT: for these initiator ports as well.
    pub(super) also: Option<Vec<InitiatorId>>,
}

/// SCOPE and TYPE, or what is wrong with them. They are judged where they mean something: somebody who removes registrations, or
/// releases what he does not hold, need not say any.
type Kind = Result<ReservationType, Sense>;

/// A service action with its parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Out {
    Register(Register),
    Reserve(Kind),
    Release(Kind),
    Clear,
    Preempt { kind: Kind, abort: bool },
    Move { unregister: bool, to: NexusId },
}

/// A service action that was understood.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Order {
    pub(crate) out: Out,
    /// RESERVATION KEY: who sends this says that it is registered with it.
    pub(crate) key: u64,
    /// SERVICE ACTION RESERVATION KEY.
    pub(crate) action_key: u64,
    pub(crate) aptpl: bool,
}

impl Order {
    /// Byte of the parameter list that asks for APTPL, where it is asked for: with other service actions the bit means nothing (SPC-4,
    /// 6.16.3).
    pub(crate) fn aptpl_at(&self) -> Option<u16> {
        let at = match self.out {
            Out::Register(_) => 20,
            Out::Move { .. } => 17,
            _ => return None,
        };
        self.aptpl.then_some(at)
    }
}

/// Why a service action was refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Refusal {
    Conflict,
    Sense(Sense),
}

impl From<Sense> for Refusal {
    fn from(sense: Sense) -> Refusal {
        Refusal::Sense(sense)
    }
}

/// Reads CDB and parameter list. The list is copied before it is judged.
pub(crate) fn parse(cdb: &[u8; 16], data: &Data<'_>) -> Result<Order, Sense> {
    let action = cdb[1] & 0x1f;
    let length = be32(cdb, 5) as usize;
    let mut list = [0; MOVE_BYTES];
    let enough = if action == 7 { MOVE_BYTES } else { BASIC_BYTES };
    if data.read(0, &mut list[..enough]) < enough {
        return Err(TOO_SHORT);
    }
    let specified = action == 0 && list[20] & SPEC_I_PT != 0;
    let right = if action == 7 || specified { length >= enough } else { length == enough };
    if !right {
        return Err(TOO_SHORT);
    }
    let key = be64(&list, 0);
    let action_key = be64(&list, 8);
    if action == 7 {
        return parse_move(cdb, &list, length).map(|out| Order {
            out,
            key,
            action_key,
            aptpl: list[17] & 1 != 0,
        });
    }
    let flags = list[20];
    if action != 0 && flags & SPEC_I_PT != 0 {
        return Err(Sense::parameter(20));
    }
    let all_ports = flags & ALL_TG_PT != 0;
    let out = match action {
        0 => {
            let also = if specified { Some(parse_ids(data, length)?) } else { None };
            Out::Register(Register { ignore: false, all_ports, also })
        }
        1 => Out::Reserve(kind(cdb)),
        2 => Out::Release(kind(cdb)),
        3 => Out::Clear,
        4 => Out::Preempt { kind: kind(cdb), abort: false },
        5 => Out::Preempt { kind: kind(cdb), abort: true },
        _ => Out::Register(Register { ignore: true, all_ports, also: None }),
    };
    Ok(Order { out, key, action_key, aptpl: flags & APTPL != 0 })
}

const NO_ROOM: Refusal = Refusal::Sense(Sense::illegal(code::NO_REGISTRATION_RESOURCES));
const TOO_SHORT: Sense = Sense::illegal(code::PARAMETER_LIST_LENGTH);

/// The TransportIDs behind the basic list (SPC-4, 6.16.3).
fn parse_ids(data: &Data<'_>, length: usize) -> Result<Vec<InitiatorId>, Sense> {
    let mut bytes = [0; 4];
    if length < IDS_AT || data.read(BASIC_BYTES as u64, &mut bytes) < 4 {
        return Err(TOO_SHORT);
    }
    let len = be32(&bytes, 0) as usize;
    if len != length - IDS_AT || !len.is_multiple_of(TRANSPORT_ID_BYTES) {
        return Err(TOO_SHORT);
    }
    if len / TRANSPORT_ID_BYTES > REGISTRATIONS_MAX {
        return Err(Sense::illegal(code::NO_REGISTRATION_RESOURCES));
    }
    let id = |at: usize| {
        let mut id = [0; TRANSPORT_ID_BYTES];
        if data.read(at as u64, &mut id) < TRANSPORT_ID_BYTES {
            return Err(TOO_SHORT);
        }
        InitiatorId::decode(&id).ok_or(Sense::parameter(id_at(at)))
    };
    (IDS_AT..length).step_by(TRANSPORT_ID_BYTES).map(id).collect()
}

/// An offset in the list as a field pointer: at most 28 + 512 * 24.
fn id_at(at: usize) -> u16 {
    u16::try_from(at).unwrap_or(u16::MAX)
}

fn kind(cdb: &[u8; 16]) -> Kind {
    if cdb[2] >> 4 != 0 {
        return Err(Sense::cdb_bit(2, 7));
    }
    ReservationType::decode(cdb[2] & 0x0f).ok_or(Sense::cdb_bit(2, 3))
}

/// SPC-4, 6.16.4.
fn parse_move(cdb: &[u8; 16], list: &[u8; MOVE_BYTES], length: usize) -> Result<Out, Sense> {
    let id_len = be32(list, 20) as usize;
    if id_len != TRANSPORT_ID_BYTES {
        return Err(Sense::parameter(20));
    }
    if length != MOVE_BYTES {
        return Err(Sense::illegal(code::PARAMETER_LIST_LENGTH));
    }
    debug_assert_eq!(cdb[1] & 0x1f, 7);
    let (_, id) = list.split_last_chunk::<TRANSPORT_ID_BYTES>().expect("longer than its end");
    let initiator = InitiatorId::decode(id).ok_or(Sense::parameter(24))?;
    let to = NexusId { initiator, port: be16(list, 18) };
    Ok(Out::Move { unregister: list[17] & 2 != 0, to })
}

impl Reservations {
    /// What a service action makes of this state. `ports`: the target ports that there are, with the one through which it came.
    pub(crate) fn apply(
        &self,
        from: NexusId,
        ports: &[u16],
        order: &Order,
    ) -> Result<Change, Refusal> {
        // SPC-2, 5.5.1: with a RESERVE in force the persistent commands conflict, whoever sends them.
        if self.reserve.is_some() {
            return Err(Refusal::Conflict);
        }
        // SPC-4, table 67: all but two are for the registered, with their key.
        if !matches!(order.out, Out::Register(_)) && self.key(from) != Some(order.key) {
            return Err(Refusal::Conflict);
        }
        let mut change = match &order.out {
            Out::Register(register) => self.register(from, ports, order, register),
            Out::Reserve(kind) => self.make(from, (*kind)?),
            Out::Release(kind) => self.let_go(from, *kind),
            Out::Clear => Ok(self.clear(from)),
            Out::Preempt { kind, abort } => self.preempt(from, order.action_key, *kind, *abort),
            Out::Move { unregister, to } => self.hand_over(from, ports, order, (*unregister, *to)),
        }?;
        change.next.narrow(self, from, ports, order);
        Ok(change)
    }

    /// Which registrations are for all target ports: those that one order made so, until one of them is changed alone.
    fn narrow(&mut self, before: &Reservations, from: NexusId, ports: &[u16], order: &Order) {
        let set = |state: &Reservations| -> BTreeSet<(NexusId, u64)> {
            state.registrations.iter().map(|each| (each.nexus, each.key)).collect()
        };
        let (old, new) = (set(before), set(self));
        let changed = old.symmetric_difference(&new).map(|(nexus, _)| nexus.initiator);
        let mut touched: BTreeSet<InitiatorId> = changed.collect();
        let mut asked = false;
        if let Out::Register(register) = &order.out {
            asked = register.all_ports;
            if self.generation != before.generation {
                touched.insert(from.initiator);
                touched.extend(register.also.iter().flatten());
            }
        }
        let wide = |initiator: InitiatorId| {
            let there =
                |port: &u16| new.contains(&(NexusId { initiator, port: *port }, order.action_key));
            asked && ports.iter().all(there)
        };
        for each in &mut self.registrations {
            if touched.contains(&each.nexus.initiator) {
                each.all_ports = wide(each.nexus.initiator);
            }
        }
    }

    fn next(&self) -> Reservations {
        let generation = self.generation.wrapping_add(1);
        Reservations { generation, ..self.clone() }
    }

    /// REGISTER and REGISTER AND IGNORE EXISTING KEY (SPC-4, 5.13.7). All that it asks for happens, or nothing.
    fn register(
        &self,
        from: NexusId,
        ports: &[u16],
        order: &Order,
        register: &Register,
    ) -> Result<Change, Refusal> {
        let known = self.key(from);
        if !register.ignore && known.unwrap_or(0) != order.key {
            return Err(Refusal::Conflict);
        }
        if register.also.is_some() && known.is_some() {
            // SPC-4, table 63: only who is not registered yet may register others with it.
            return Err(Refusal::Sense(Sense::illegal(code::INVALID_FIELD_IN_CDB)));
        }
        if known.is_none() && order.action_key == 0 {
            return Ok(Change::to(self.clone()));
        }
        let own = [from.port];
        let there = if register.all_ports { ports } else { &own };
        let whom = self.registrants(from, there, order, register)?;
        let mut change = Change::to(self.next());
        let next = &mut change.next;
        next.aptpl = order.aptpl;
        if order.action_key == 0 {
            next.registrations.retain(|each| !whom.contains(&each.nexus));
            change.tell_release(self, from);
            return Ok(change);
        }
        for nexus in whom {
            next.put(nexus, order.action_key)?;
        }
        Ok(change)
    }

    /// Whom a registration is for: the I_T nexus itself; its initiator port at the other target ports, as if it had been sent there; and
    /// the initiator ports that were specified, none of which may be registered.
    fn registrants(
        &self,
        from: NexusId,
        ports: &[u16],
        order: &Order,
        register: &Register,
    ) -> Result<Vec<NexusId>, Refusal> {
        let mut whom = vec![from];
        for port in ports.iter().copied().filter(|port| *port != from.port) {
            let nexus = NexusId { port, ..from };
            match self.key(nexus) {
                _ if register.ignore => whom.push(nexus),
                Some(key) if key != order.key => return Err(Refusal::Conflict),
                // It would have to be registered already.
                None if order.key != 0 => {}
                _ => whom.push(nexus),
            }
        }
        let also = register.also.iter().flatten().copied().enumerate();
        for (index, initiator) in also.filter(|(_, initiator)| *initiator != from.initiator) {
            let at = id_at(IDS_AT + index * TRANSPORT_ID_BYTES);
            for port in ports.iter().copied() {
                let nexus = NexusId { initiator, port };
                if self.key(nexus).is_some() {
                    return Err(Refusal::Sense(Sense::parameter(at)));
                }
                if whom.len() >= REGISTRATIONS_MAX {
                    return Err(NO_ROOM);
                }
                whom.push(nexus);
            }
        }
        Ok(whom)
    }

    /// Registers a key, in place of another if there is one.
    fn put(&mut self, nexus: NexusId, key: u64) -> Result<(), Refusal> {
        if let Some(theirs) = self.registrations.iter_mut().find(|each| each.nexus == nexus) {
            theirs.key = key;
            return Ok(());
        }
        if self.registrations.len() >= REGISTRATIONS_MAX {
            return Err(NO_ROOM);
        }
        self.registrations.push(Registration { nexus, key, all_ports: false });
        Ok(())
    }

    /// RESERVE (SPC-4, 5.13.9).
    fn make(&self, from: NexusId, kind: ReservationType) -> Result<Change, Refusal> {
        match self.reservation {
            Some(reservation) if !self.holds(from) || reservation.kind != kind => {
                Err(Refusal::Conflict)
            }
            Some(_) => Ok(Change::to(self.clone())),
            None => {
                let reservation = Some(Reservation { kind, holder: from });
                Ok(Change::to(Reservations { reservation, ..self.clone() }))
            }
        }
    }

    /// RELEASE (SPC-4, 5.13.11.2.2).
    fn let_go(&self, from: NexusId, kind: Kind) -> Result<Change, Refusal> {
        let Some(reservation) = self.reservation.filter(|_| self.holds(from)) else {
            return Ok(Change::to(self.clone()));
        };
        if kind != Ok(reservation.kind) {
            return Err(Refusal::Sense(Sense::illegal(code::INVALID_RELEASE)));
        }
        let mut change = Change::to(Reservations { reservation: None, ..self.clone() });
        if reservation.kind.registrants() {
            change.tell.extend(self.others(from).map(|n| (n, Attention::ReservationsReleased)));
        }
        Ok(change)
    }

    /// CLEAR (SPC-4, 5.13.11.2.6).
    fn clear(&self, from: NexusId) -> Change {
        let mut change = Change::to(self.next());
        change.next.registrations.clear();
        change.next.reservation = None;
        change.tell.extend(self.others(from).map(|n| (n, Attention::ReservationsPreempted)));
        change
    }

    /// PREEMPT and PREEMPT AND ABORT (SPC-4, 5.13.11.2.3 to 5). Where only registrations are removed, SCOPE and TYPE are ignored.
    fn preempt(
        &self,
        from: NexusId,
        victims: u64,
        kind: Kind,
        abort: bool,
    ) -> Result<Change, Refusal> {
        let all = self.reservation.is_some_and(|reservation| reservation.kind.all_registrants());
        let holder_key = self.reservation.and_then(|reservation| self.key(reservation.holder));
        // Whoever preempts the holder becomes it; with an all-registrants type, key 0 means everybody else.
        let takes_over = if all { victims == 0 } else { holder_key == Some(victims) };
        if victims == 0 && !all {
            return Err(Refusal::Sense(Sense::parameter(8)));
        }
        let goes = |each: &Registration| match (takes_over, all) {
            (true, true) => each.nexus != from,
            (true, false) => each.nexus != from && each.key == victims,
            (false, _) => each.key == victims,
        };
        let gone: Vec<NexusId> =
            self.registrations.iter().filter(|each| goes(each)).map(|each| each.nexus).collect();
        if !takes_over && gone.is_empty() {
            return Err(Refusal::Conflict);
        }
        let mut change = Change::to(self.next());
        change.next.registrations.retain(|each| !goes(each));
        let others = gone.iter().copied().filter(|nexus| *nexus != from);
        change.tell.extend(others.clone().map(|nexus| (nexus, Attention::RegistrationsPreempted)));
        if abort {
            change.abort.extend(others);
        }
        if takes_over {
            let kind = kind?;
            let before = self.reservation.map(|reservation| reservation.kind);
            change.next.reservation = Some(Reservation { kind, holder: from });
            if before != Some(kind) {
                let stay = change.next.others(from);
                let told: Vec<_> = stay.map(|n| (n, Attention::ReservationsReleased)).collect();
                change.tell.extend(told);
            }
        } else {
            change.tell_release(self, from);
        }
        Ok(change)
    }

    /// REGISTER AND MOVE (SPC-4, 5.13.8).
    fn hand_over(
        &self,
        from: NexusId,
        ports: &[u16],
        order: &Order,
        (unregister, to): (bool, NexusId),
    ) -> Result<Change, Refusal> {
        let Some(reservation) = self.reservation.filter(|reservation| {
            !reservation.kind.all_registrants() && reservation.holder == from
        }) else {
            return Err(Refusal::Conflict);
        };
        if order.action_key == 0 {
            return Err(Refusal::Sense(Sense::parameter(8)));
        }
        if !ports.contains(&to.port) {
            return Err(Refusal::Sense(Sense::parameter(18)));
        }
        if to == from {
            return Err(Refusal::Sense(Sense::parameter(24)));
        }
        let mut change = Change::to(self.next());
        let next = &mut change.next;
        next.aptpl = order.aptpl;
        next.put(to, order.action_key)?;
        next.reservation = Some(Reservation { holder: to, ..reservation });
        if unregister {
            next.registrations.retain(|each| each.nexus != from);
        }
        Ok(change)
    }
}

impl Change {
    /// Releases the reservation if those who held it are no longer registered (SPC-4, 5.13.11.2.1), and passes the name of an
    /// all-registrants reservation on to one who stays.
    fn tell_release(&mut self, before: &Reservations, from: NexusId) {
        let Some(reservation) = before.reservation else {
            return;
        };
        if self.next.key(reservation.holder).is_some() {
            return;
        }
        let heir = self.next.registrations.first().filter(|_| reservation.kind.all_registrants());
        self.next.reservation = heir.map(|heir| Reservation { holder: heir.nexus, ..reservation });
        if self.next.reservation.is_none() && reservation.kind.registrants() {
            let stay: Vec<NexusId> = self.next.others(from).collect();
            self.tell.extend(stay.into_iter().map(|n| (n, Attention::ReservationsReleased)));
        }
    }
}
