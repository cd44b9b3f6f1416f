//! Commands on their way out.

use std::ops::Range;

use memory::sim;

use super::*;
use crate::fence::{Act, KINDS};
use crate::world::CLIENTS_MAX;

/// Bytes of PERSISTENT RESERVE OUT's parameters, and room for what PERSISTENT RESERVE IN says.
const ORDER_BYTES: u32 = 24;
pub(super) const TOLD_BYTES: u32 = 256;

/// A command as it is to be sent, behind its header and its response.
struct Draft {
    cdb: [u8; 32],
    out: Vec<Segment>,
    inward: Vec<Segment>,
    kind: Kind,
    sectors: Range<u64>,
}

impl Draft {
    fn new(kind: Kind, sectors: Range<u64>) -> Draft {
        Draft { cdb: [0; 32], out: Vec::new(), inward: Vec::new(), kind, sectors }
    }

    /// READ(10) or WRITE(10).
    fn ten(kind: Kind, sectors: Range<u64>, code: u8) -> Draft {
        let mut draft = Draft::new(kind, sectors.clone());
        draft.cdb[0] = code;
        draft.cdb[2..6].copy_from_slice(&(sectors.start as u32).to_be_bytes());
        draft.cdb[7..9].copy_from_slice(&((sectors.end - sectors.start) as u16).to_be_bytes());
        draft
    }
}

/// What is behind a place's header or response.
fn data(range: DriverRange, sectors: u64) -> Vec<Segment> {
    cut(GuestAddr(range.guest.0 + 4096), (sectors * SECTOR) as u32)
}

impl Place {
    /// Fills what a command sends.
    fn fill(&self, first: u64, sectors: u64, stamp: Stamp) {
        let (at, bytes) = ((first * SECTOR) as usize, (sectors * SECTOR) as usize);
        fill(self.out.buf.slice(4096 + at, bytes), stamp);
    }
}

impl Kind {
    /// Which write it is, if it is one.
    fn ticket(&self) -> Option<Ticket> {
        match self {
            Kind::Write(ticket, _) | Kind::Compare { write: ticket, .. } => Some(*ticket),
            _ => None,
        }
    }

    /// What a reservation judges: whether it writes.
    fn access(&self) -> Option<bool> {
        match self {
            Kind::Read(..) => Some(false),
            Kind::Write(..) | Kind::Compare { .. } => Some(true),
            _ => None,
        }
    }
}

impl ScsiClient {
    pub(super) fn send(&mut self, line: usize) {
        if self.count.left == 0 {
            return;
        }
        let Some(at) = self.free[line - 1].pop() else { return };
        if let Some(Err(wrong)) = self.places[line - 1][at].rests.take().map(Rests::end) {
            self.count.wrong = Some(format!("{}: {wrong}", self.front.name));
            return;
        }
        let place = &self.places[line - 1][at];
        let orders = self
            .habits
            .orders
            .filter(|orders| sim::once_in(orders.every) && self.unit.borrow().fence.has_room());
        let draft = match orders {
            Some(orders) => self.order(place, orders),
            None => self.command(place),
        };
        let token = self.next;
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&LUN);
        header[8..16].copy_from_slice(&token.to_le_bytes());
        header[19..].copy_from_slice(&draft.cdb);
        place.out.buf.write(0, &header);
        place.inward.buf.slice(0, RESPONSE).fill(0xff);
        let mut readable: Vec<Segment> = vec![(place.out.guest, HEADER as u32)];
        let mut writable: Vec<Segment> = vec![(place.inward.guest, RESPONSE as u32)];
        readable.extend(&draft.out);
        writable.extend(&draft.inward);
        let driver = &mut self.front.lines[line].driver;
        match driver.add(&readable, &writable, token, self.habits.indirect) {
            Ok(head) => {
                sim::tell(|| {
                    let (name, sectors) = (&self.front.name, &draft.sectors);
                    let queue = self.front.lines[line].number;
                    format!(
                        "{name}: queue {queue} head {} is command {token:#x} on {sectors:?}",
                        head.0
                    )
                });
                self.was_sent(token, draft.kind, (line - 1, at));
            }
            Err(AddError::Full | AddError::TooLong) => {
                self.never_was(draft.kind);
                self.free[line - 1].push(at);
            }
            Err(AddError::Empty) => unreachable!("a command has a header"),
        }
    }

    fn was_sent(&mut self, token: u64, kind: Kind, place: (usize, usize)) {
        sim::enter(kind.phase());
        let mut unit = self.unit.borrow_mut();
        unit.sent.insert((self.number, token), kind.ticket());
        if let Kind::Order(order, _) = &kind {
            unit.orders.insert((self.number, token), *order);
        }
        if let Some(writes) = kind.access() {
            unit.fence.access(self.number, token, writes);
        }
        if let Kind::Order(_, Act::Preempt { abort: true, .. }) = &kind {
            unit.abort_begins();
        }
        let (deaths, map) = (unit.deaths, unit.maps[self.number]);
        let (errors, ends) = (kernel::errors(), unit.ends_of(self.number));
        self.sent.insert(token, Asked { kind, deaths, map, place, errors, ends });
        self.next += 1;
        self.count.left -= 1;
    }

    fn never_was(&self, kind: Kind) {
        let mut disk = self.disk.borrow_mut();
        match kind {
            Kind::Read(ticket, _) | Kind::Flush(ticket) => {
                disk.was_read(ticket, None).expect("no values");
            }
            Kind::Write(ticket, _) => disk.forget(ticket),
            Kind::Compare { read, write, .. } => {
                disk.was_read(read, None).expect("no values");
                disk.forget(write);
            }
            Kind::Order(order, _) => self.unit.borrow_mut().fence.forget(order),
            Kind::Other => {}
        }
    }

    fn stamp(&self) -> Stamp {
        let mut stamps = self.stamps.borrow_mut();
        *stamps += 1;
        *stamps
    }

    /// A command for the medium.
    fn command(&self, place: &Place) -> Draft {
        let mut picked = sim::pick(self.habits.weights.iter().sum());
        let op = self.habits.weights.iter().position(|weight| {
            let here = picked < *weight;
            picked = picked.wrapping_sub(*weight);
            here
        });
        let first = sim::pick(self.sectors as usize) as u64;
        let most = self.habits.sectors_max.min(self.sectors - first) as usize;
        let count = 1 + sim::pick(most) as u64;
        let sectors = first..first + count;
        let mut disk = self.disk.borrow_mut();
        match op {
            Some(0) => {
                place.inward.buf.slice(4096, (count * SECTOR) as usize).fill(0xee);
                let kind = Kind::Read(disk.read(sectors.clone()), sectors.clone());
                Draft { inward: data(place.inward, count), ..Draft::ten(kind, sectors, 0x28) }
            }
            Some(1) => {
                let stamp = self.stamp();
                place.fill(0, count, stamp);
                let ticket = disk.write(sectors.clone(), stamp, false);
                sim::tell(|| {
                    format!("{}: asks to write {sectors:?} with {stamp}", self.front.name)
                });
                let mut draft = Draft::ten(Kind::Write(ticket, count), sectors, 0x2a);
                draft.out = data(place.out, count);
                if sim::once_in(self.habits.fua_every) {
                    draft.cdb[1] = 0x08;
                    disk.through(ticket);
                }
                draft
            }
            Some(2) => {
                drop(disk);
                self.compare(place, first)
            }
            Some(3) => {
                sim::tell(|| format!("{}: asks to flush", self.front.name));
                let mut draft = Draft::new(Kind::Flush(disk.flush()), sectors);
                draft.cdb[0] = 0x35;
                draft
            }
            _ => Draft::new(Kind::Other, sectors),
        }
    }

    /// COMPARE AND WRITE.
    fn compare(&self, place: &Place, first: u64) -> Draft {
        let mut disk = self.disk.borrow_mut();
        let stamp = self.stamp();
        let expected = self.known.get(&first).copied().unwrap_or(0);
        place.fill(0, 1, expected);
        place.fill(1, 1, stamp);
        let settled = !disk.is_written(first, expected);
        let read = disk.read(first..first + 1);
        let write = disk.write(first..first + 1, stamp, false);
        sim::tell(|| {
            format!("{}: asks to put {stamp} on {first} where {expected} is", self.front.name)
        });
        let kind = Kind::Compare { read, write, at: first, expected, stamp, settled };
        let mut draft = Draft::new(kind, first..first + 1);
        draft.cdb[0] = 0x89;
        draft.cdb[2..10].copy_from_slice(&first.to_be_bytes());
        draft.cdb[13] = 1;
        draft.out = data(place.out, 2);
        draft
    }

    /// PERSISTENT RESERVE OUT or IN.
    fn order(&self, place: &Place, orders: Ordering) -> Draft {
        let act = self.act(orders);
        let order = self.unit.borrow_mut().fence.begin(self.number, act);
        sim::tell(|| format!("{}: asks for {act:?}", self.front.name));
        let mut draft = Draft::new(Kind::Order(order, act), 0..0);
        let (action, key, next, kind, aptpl) = match act {
            Act::ReadKeys | Act::ReadReservation => {
                draft.cdb[0] = 0x5e;
                draft.cdb[1] = u8::from(act == Act::ReadReservation);
                draft.cdb[7..9].copy_from_slice(&(TOLD_BYTES as u16).to_be_bytes());
                draft.inward = vec![(GuestAddr(place.inward.guest.0 + 4096), TOLD_BYTES)];
                return draft;
            }
            Act::Register { key, next, ignore, aptpl } => {
                (if ignore { 6 } else { 0 }, key, next, 0, aptpl)
            }
            Act::Reserve { key, kind } => (1, key, 0, kind, false),
            Act::Release { key, kind } => (2, key, 0, kind, false),
            Act::Clear { key } => (3, key, 0, 0, false),
            Act::Preempt { key, victim, kind, abort } => {
                (if abort { 5 } else { 4 }, key, victim, kind, false)
            }
        };
        let mut list = [0; ORDER_BYTES as usize];
        list[..8].copy_from_slice(&key.to_be_bytes());
        list[8..16].copy_from_slice(&next.to_be_bytes());
        list[20] = u8::from(aptpl);
        place.out.buf.write(4096, &list);
        draft.cdb[..3].copy_from_slice(&[0x5f, action, kind]);
        draft.cdb[5..9].copy_from_slice(&ORDER_BYTES.to_be_bytes());
        draft.out = vec![(GuestAddr(place.out.guest.0 + 4096), ORDER_BYTES)];
        draft
    }

    /// A key of its own that a client registers: there are two.
    fn a_key(who: usize) -> u64 {
        (who as u64 + 1) << 8 | (1 + sim::pick(2) as u64)
    }

    /// What a node of a cluster asks for, and now and then something that it should not.
    fn act(&self, orders: Ordering) -> Act {
        let odd = |often: u64| !orders.fences && sim::once_in(often);
        let own = || ScsiClient::a_key(self.number);
        let key = if odd(12) { own() } else { self.key };
        let kind = if odd(8) { KINDS[sim::pick(KINDS.len())] } else { orders.kind };
        let aptpl = if odd(8) { sim::once_in(2) } else { orders.aptpl };
        if self.key == 0 && !odd(6) {
            return Act::Register { key: 0, next: own(), ignore: sim::once_in(2), aptpl };
        }
        match sim::pick(if orders.fences { 9 } else { 16 }) {
            0..3 => Act::Reserve { key, kind },
            3..8 => self.preempt(key, kind, orders),
            8 => Act::ReadReservation,
            9 => {
                let next = if sim::once_in(2) { 0 } else { own() };
                Act::Register { key, next, ignore: sim::once_in(3), aptpl }
            }
            10 => Act::Reserve { key, kind },
            11 => Act::Release { key, kind },
            12 => Act::Clear { key },
            13 => Act::ReadReservation,
            _ => Act::ReadKeys,
        }
    }

    /// Another client is to be shut out, with the key that READ KEYS has told of, mostly.
    fn preempt(&self, key: u64, kind: u8, orders: Ordering) -> Act {
        let others = CLIENTS_MAX - 1;
        let victim = (self.number + 1 + sim::pick(others)) % (others + 1);
        let known = self.unit.borrow().fence.key_of(victim);
        let victim = match known {
            _ if !orders.fences && sim::once_in(8) => 0,
            Some(key) if orders.fences || !sim::once_in(8) => key,
            _ => ScsiClient::a_key(victim),
        };
        Act::Preempt { key, victim, kind, abort: orders.fences || !sim::once_in(3) }
    }
}
