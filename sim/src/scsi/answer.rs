//! What the answers of commands mean.

use std::ops::Range;

use memory::sim;

use super::*;
use crate::fence::{Act, Order, Outcome};

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    /// It may have happened.
    Failed,
    /// It has not happened.
    Refused,
    /// The same, for somebody's reservation.
    Conflict,
    /// The same: it makes no sense.
    Illegal,
    /// The same: there is no such logical unit.
    NoUnit,
    /// The same: the medium ends before.
    NoMedium,
    /// It has not happened, in no life: nobody may write.
    Protected,
    /// What it compared with was something else.
    Differs,
    /// It has not happened, since it could not be kept.
    Unkept,
}

type Answer = [u8; RESPONSE];

/// REGISTRATIONS PREEMPTED.
const PREEMPTED: [u8; 2] = [0x2a, 0x05];

impl ScsiClient {
    pub(super) fn judge(&mut self, token: u64, written: u32) -> Result<(), String> {
        let asked =
            self.sent.remove(&token).ok_or_else(|| format!("{token:#x} came back twice"))?;
        let Asked { kind, deaths, map, place: (line, at), errors, ends } = asked;
        sim::leave(kind.phase());
        let mut answer = [0; RESPONSE];
        self.places[line][at].inward.buf.read(0, &mut answer);
        let (response, status) = (answer[11], answer[10]);
        sim::tell(|| {
            format!(
                "{}: command {token:#x} is answered with {response}, status {status:#x}, sense {:#x}",
                self.front.name, answer[14]
            )
        });
        sim::seen(token ^ u64::from(response) << 8 ^ u64::from(status));
        let same_life = {
            let mut unit = self.unit.borrow_mut();
            let name = (self.number, token);
            unit.sent.remove(&name);
            unit.shut_out.remove(&name);
            unit.due.remove(&name);
            unit.orders.remove(&name);
            if let Kind::Order(_, Act::Preempt { abort: true, .. }) = &kind {
                unit.abort_ends();
            }
            unit.deaths == deaths
        };
        let fate = fate(&answer).map_err(|wrong| format!("command {token:#x} {wrong}"))?;
        self.look_at_map(token, fate, map)?;
        if matches!(answer[14] & 0xf, 3 | 4) && fate == Fate::Failed && (response, status) == (0, 2)
        {
            let touch = kind.touch().ok_or_else(|| {
                format!("command {token:#x} is none of the medium's, which fails")
            })?;
            let excused = self.disk.borrow().may_fail(touch, errors);
            excused.map_err(|wrong| format!("command {token:#x}: {wrong}"))?;
        }
        let ended = matches!(response, 2 | 4) || (response, status) == (0, 0x40);
        if ended && ends.is_some() && self.unit.borrow().ends_of(self.number) == ends {
            return Err(format!("command {token:#x} was ended, and nobody has asked for that"));
        }
        let lets = match fate {
            Fate::Done | Fate::Differs => Some(true),
            Fate::Conflict => Some(false),
            _ => None,
        };
        self.unit.borrow_mut().fence.accessed(self.number, token, lets)?;
        // A node that learns that it was shut out comes back.
        let told = answer[14] & 0xf == 6 && answer[24..26] == PREEMPTED;
        if fate == Fate::Conflict || told {
            self.key = 0;
        }
        self.count.answered += 1;
        self.count.failed += u32::from(fate != Fate::Done);
        match fate {
            Fate::Done => {}
            Fate::Failed => bump(&self.tally.ended),
            _ => bump(&self.tally.refused),
        }
        let read = match &kind {
            Kind::Read(_, sectors) => sectors.end - sectors.start,
            _ => 0,
        };
        let sense = (status == 2).then_some(answer[14] & 0xf);
        self.front.lines[line + 1].see(|seen| {
            match &kind {
                _ if fate != Fate::Done => {}
                Kind::Read(..) => seen.read(read * SECTOR),
                Kind::Write(_, sectors) => seen.wrote(*sectors * SECTOR),
                Kind::Compare { .. } => seen.wrote(SECTOR),
                Kind::Flush(_) => seen.flushes += 1,
                Kind::Order(..) | Kind::Other => {}
            }
            seen.aborted += u64::from(matches!(response, 2 | 4) || status == 0x40);
            seen.conflicts += u64::from(status == 0x18);
            seen.checks += sense.map_or(0, |key| 1 + u64::from(key == 6));
            seen.errors += u64::from(matches!(sense, Some(3 | 4)) || response == 5);
        });
        // In the life of the process that took it, a command that was refused has not begun.
        let order = matches!(kind, Kind::Order(..));
        let fate = match fate {
            Fate::Illegal if !order => return Err(format!("command {token:#x} is illegal")),
            Fate::Done | Fate::Failed | Fate::Differs => fate,
            Fate::Protected => Fate::Refused,
            _ if !same_life => Fate::Failed,
            Fate::Conflict | Fate::Illegal if order => fate,
            Fate::Unkept if !order => Fate::Failed,
            _ => Fate::Refused,
        };
        match kind {
            Kind::Other if fate == Fate::Differs => return Err("nothing was compared".to_owned()),
            Kind::Other => {}
            Kind::Flush(ticket) => self.flushed(ticket, fate, (response, status) == (0, 2))?,
            Kind::Write(ticket, _) => {
                let mut disk = self.disk.borrow_mut();
                match fate {
                    Fate::Refused | Fate::Differs => disk.refused(ticket)?,
                    _ => disk.written(ticket, fate == Fate::Done),
                }
            }
            Kind::Read(ticket, sectors) => {
                self.was_read(ticket, sectors, fate, (line, at), written)?
            }
            Kind::Compare { .. } => self.compared(kind, fate)?,
            Kind::Order(order, act) => self.ordered(order, act, fate, (line, at))?,
        }
        if read > 0 {
            let place = &mut self.places[line][at];
            let rests = Rests::new(place.inward.buf.slice(4096, (read * SECTOR) as usize));
            place.rests = Some(rests);
        }
        self.free[line].push(at);
        Ok(())
    }

    /// A logical unit answers while it is there, and only then.
    fn look_at_map(&self, token: u64, fate: Fate, map: u64) -> Result<(), String> {
        let unit = self.unit.borrow();
        let surely = (unit.maps[self.number] == map).then_some(map % 4);
        match (fate, surely) {
            (Fate::NoUnit, Some(Unit::THERE)) => {
                Err(format!("command {token:#x} is told that there is no such unit"))
            }
            (Fate::Done | Fate::Differs | Fate::Conflict, Some(Unit::AWAY)) => {
                Err(format!("command {token:#x} is carried out by a unit that is taken away"))
            }
            (Fate::NoMedium, _) if !unit.was_cut => {
                Err(format!("command {token:#x} is told that it lies behind the end"))
            }
            _ => Ok(()),
        }
    }

    /// `told`: that something was lost. A flush that was ended early says nothing of it.
    fn flushed(&mut self, ticket: Ticket, fate: Fate, told: bool) -> Result<(), String> {
        let mut disk = self.disk.borrow_mut();
        match fate {
            Fate::Done => disk.flushed(ticket, true),
            Fate::Failed if told => disk.flushed(ticket, false),
            _ => disk.was_read(ticket, None)?,
        }
        Ok(())
    }

    fn was_read(
        &mut self,
        ticket: Ticket,
        sectors: Range<u64>,
        fate: Fate,
        (line, at): (usize, usize),
        written: u32,
    ) -> Result<(), String> {
        let mut disk = self.disk.borrow_mut();
        if fate != Fate::Done {
            return disk.was_read(ticket, None);
        }
        let count = (sectors.end - sectors.start) as usize;
        if written as usize != RESPONSE + count * SECTOR as usize {
            return Err(format!("a read of {count} sectors wrote {written} bytes"));
        }
        let data = self.places[line][at].inward.buf.slice(4096, count * SECTOR as usize);
        let found = values(data)?;
        disk.was_read(ticket, Some(&found))?;
        self.known.extend(sectors.zip(found));
        Ok(())
    }

    fn compared(&mut self, kind: Kind, fate: Fate) -> Result<(), String> {
        let Kind::Compare { read, write, at, expected, stamp, settled } = kind else {
            unreachable!("another kind");
        };
        let mut disk = self.disk.borrow_mut();
        let differs = disk.may_differ(read, [expected, stamp]);
        disk.was_read(read, (fate == Fate::Done).then_some(&[expected][..]))?;
        match fate {
            Fate::Done => {
                disk.written(write, true);
                self.known.insert(at, stamp);
                // A write that is under way may be done again after a death.
                let settled = settled && expected != 0;
                if settled && !self.unit.borrow_mut().won.insert((at, expected)) {
                    return Err(format!("{expected} on sector {at} was replaced twice"));
                }
                Ok(())
            }
            Fate::Differs if !differs => {
                Err(format!("sector {at} is {expected}, and was found different"))
            }
            Fate::Refused | Fate::Differs => disk.refused(write),
            _ => {
                disk.written(write, false);
                Ok(())
            }
        }
    }

    /// An order was answered. Whoever is shut out by it has nothing under way from now on that has an effect.
    fn ordered(
        &mut self,
        order: Order,
        act: Act,
        fate: Fate,
        (line, at): (usize, usize),
    ) -> Result<(), String> {
        let mut unit = self.unit.borrow_mut();
        let outcome = match fate {
            Fate::Refused => return unit.fence.refused(order),
            Fate::Done => Some(told(act, &self.places[line][at])?),
            Fate::Conflict => Some(Outcome::Conflict),
            Fate::Illegal => Some(Outcome::Illegal),
            _ => None,
        };
        match (act, &outcome) {
            (Act::Register { next, .. }, Some(Outcome::Good)) => {
                self.key = next;
                if next != 0 {
                    unit.let_in(self.number, &mut self.disk.borrow_mut());
                }
            }
            (Act::Clear { .. }, Some(Outcome::Good)) | (_, Some(Outcome::Conflict)) => self.key = 0,
            _ => {}
        }
        let shut = unit.fence.answered(order, outcome.as_ref())?;
        let mut disk = self.disk.borrow_mut();
        for who in shut {
            sim::tell(|| format!("client {who} is shut out"));
            let theirs = unit.sent.range((who, 0)..=(who, u64::MAX));
            let theirs: Vec<_> = theirs.filter_map(|(name, it)| Some((*name, (*it)?))).collect();
            theirs.iter().for_each(|(_, ticket)| disk.bar(*ticket));
            unit.shut_out.extend(theirs.iter().map(|(name, _)| *name));
        }
        Ok(())
    }
}

/// What an order was told.
fn told(act: Act, place: &Place) -> Result<Outcome, String> {
    let mut bytes = [0; send::TOLD_BYTES as usize];
    place.inward.buf.read(4096, &mut bytes);
    let word = |at: usize| u32::from_be_bytes(bytes[at..at + 4].try_into().expect("4 bytes"));
    let long = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().expect("8 bytes"));
    let len = word(4) as usize;
    match act {
        Act::ReadKeys if len.is_multiple_of(8) && len + 8 <= bytes.len() => {
            let mut keys: Vec<u64> = (8..8 + len).step_by(8).map(long).collect();
            keys.sort_unstable();
            Ok(Outcome::Keys(word(0), keys))
        }
        Act::ReadReservation if len == 0 => Ok(Outcome::Held(word(0), None)),
        Act::ReadReservation if len == 16 => {
            Ok(Outcome::Held(word(0), Some((long(8), bytes[21] & 0xf))))
        }
        Act::ReadKeys | Act::ReadReservation => Err(format!("{act:?} tells of {len} bytes")),
        _ => Ok(Outcome::Good),
    }
}

fn fate(answer: &Answer) -> Result<Fate, String> {
    let (response, status, key) = (answer[11], answer[10], answer[14] & 0xf);
    let code = u16::from_be_bytes([answer[24], answer[25]]);
    match (response, status) {
        (0, 0) => Ok(Fate::Done),
        // Unit attention.
        (0, 2) if key == 6 => Ok(Fate::Refused),
        // MISCOMPARE.
        (0, 2) if key == 0xe => Ok(Fate::Differs),
        // DATA PROTECT.
        (0, 2) if key == 7 => Ok(Fate::Protected),
        // INTERNAL TARGET FAILURE.
        (0, 2) if key == 4 && code == 0x4400 => Ok(Fate::Unkept),
        // Of the medium.
        (0, 2) if key == 3 || key == 4 => Ok(Fate::Failed),
        (0, 2) if key == 5 => Ok(match code {
            0x2500 => Fate::NoUnit,
            0x2100 => Fate::NoMedium,
            _ => Fate::Illegal,
        }),
        (0, 0x18) => Ok(Fate::Conflict),
        // BUSY, TASK SET FULL; busy.
        (0, 0x08 | 0x28) | (5, _) => Ok(Fate::Refused),
        // No such target.
        (3, _) => Ok(Fate::NoUnit),
        // TASK ABORTED, ABORTED, RESET.
        (0, 0x40) | (2 | 4, _) => Ok(Fate::Failed),
        _ => Err(format!("has response {response}, status {status:#x}, sense {key:x}/{code:04x}")),
    }
}
