//! A driver of a virtio SCSI host device: commands on its request queues, task management on its control queue, and what each answer means.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use memory::sim;
use vring::GuestAddr;
use vring::driver::{AddError, DriverConfig, DriverRange, Segment};

use crate::client::{Count, Rests, SECTOR, cut, fill, values};
use crate::front::{Can, Front};
use crate::oracle::{Disk, Stamp, Ticket};
use crate::unit::{Name, Unit};

const HEADER: usize = 51;
const RESPONSE: usize = 108;
/// The control queue, and the first of the request queues.
const CONTROL: u16 = 0;
const FIRST: u16 = 2;
/// LUN 0 of target 0.
pub const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];

/// How a driver behaves, drawn from the seed.
#[derive(Debug, Clone)]
pub struct Habits {
    pub size: u16,
    pub event_idx: bool,
    pub indirect: bool,
    /// Request queues.
    pub queues: u16,
    /// Commands at once, on each of them.
    pub depth: usize,
    pub sectors_max: u64,
    /// In parts of what is asked: reads, writes, COMPARE AND WRITE, SYNCHRONIZE CACHE, TEST UNIT READY.
    weights: [usize; 5],
    /// A write with FUA once in so many.
    fua_every: u64,
    /// A function once in so many steps of the control queue.
    function_every: u64,
    functions_max: usize,
}

impl Habits {
    pub fn draw() -> Habits {
        let size = 4 << sim::pick(5);
        let mut weights = [1 + sim::pick(8), 1 + sim::pick(8), 0, 0, 0];
        for weight in &mut weights[2..] {
            *weight = if sim::once_in(2) { sim::pick(4) } else { 0 };
        }
        Habits {
            size,
            event_idx: !sim::once_in(3),
            indirect: !sim::once_in(3),
            queues: 1 + sim::pick(3) as u16,
            depth: if sim::once_in(4) { 1 } else { 1 + sim::pick(usize::from(size).min(32)) },
            sectors_max: 1 << sim::pick(6),
            weights,
            fua_every: [0, 1, 4][sim::pick(3)],
            function_every: [0, 2, 10, 60][sim::pick(4)],
            functions_max: 1 + sim::pick(3),
        }
    }
}

enum Kind {
    Read(Ticket, std::ops::Range<u64>),
    Write(Ticket),
    /// What it compares with, and whether nothing of that was under way.
    Compare {
        read: Ticket,
        write: Ticket,
        at: u64,
        expected: Stamp,
        stamp: Stamp,
        settled: bool,
    },
    Flush(Ticket),
    Other,
}

struct Asked {
    kind: Kind,
    /// Deaths until then.
    deaths: u64,
    /// Sectors that it moves, for its place.
    place: (usize, usize),
}

/// A function that was sent.
struct Function {
    subtype: u32,
    /// Who was there when it was sent, as far as it means them: with the shifts of each then.
    scope: Vec<(Name, Option<Ticket>, u64)>,
    place: usize,
    /// The client's visit, if all of its queues had come by then.
    arrived: Option<u64>,
}

struct Place {
    out: DriverRange,
    inward: DriverRange,
    rests: Option<Rests>,
}

/// A client of a SCSI adapter.
pub struct ScsiClient {
    pub front: Front,
    number: usize,
    habits: Habits,
    disk: Rc<RefCell<Disk>>,
    unit: Rc<RefCell<Unit>>,
    sectors: u64,
    /// By request queue.
    places: Vec<Vec<Place>>,
    free: Vec<Vec<usize>>,
    controls: Vec<Place>,
    free_controls: Vec<usize>,
    sent: BTreeMap<u64, Asked>,
    functions: BTreeMap<u64, Function>,
    next: u64,
    stamps: Rc<RefCell<Stamp>>,
    /// What was read last, by sector.
    known: BTreeMap<u64, Stamp>,
    tally: Rc<Tally>,
    pub count: Count,
}

/// What there was of SCSI in all runs.
#[derive(Debug, Default)]
pub struct Tally {
    pub functions: Cell<u64>,
    pub ended: Cell<u64>,
    pub refused: Cell<u64>,
}

fn bump(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

/// What became of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    Done,
    /// It may have happened.
    Failed,
    /// It has not happened.
    Refused,
    /// What it compared with was something else.
    Differs,
}

/// What clients share.
pub struct Common {
    pub disk: Rc<RefCell<Disk>>,
    pub unit: Rc<RefCell<Unit>>,
    pub stamps: Rc<RefCell<Stamp>>,
    pub tally: Rc<Tally>,
    pub sectors: u64,
}

impl ScsiClient {
    pub fn new(number: usize, habits: Habits, common: &Common, left: u32) -> ScsiClient {
        let data = (habits.sectors_max.max(2) * SECTOR) as usize;
        let of_place = 2 * (data + 4096) + 4096;
        let all = usize::from(habits.queues) * habits.depth + habits.functions_max;
        let config = DriverConfig {
            size: habits.size,
            event_idx: habits.event_idx,
            indirect_max: if habits.indirect { 8 } else { 0 },
            in_order: false,
        };
        let numbers: Vec<u16> =
            std::iter::once(CONTROL).chain(FIRST..FIRST + habits.queues).collect();
        let bytes = (all * of_place) as u64 + (512 << 10);
        let front = Front::new(format!("scsi{number}"), bytes, config, &numbers);
        let place = |data: usize| {
            let alloc = |len| front.memory.alloc(len, 4096).expect("room");
            // Header and response in front of data, each on its own page.
            Place { out: alloc(4096 + data), inward: alloc(4096 + data), rests: None }
        };
        let places: Vec<Vec<Place>> =
            (0..habits.queues).map(|_| (0..habits.depth).map(|_| place(data)).collect()).collect();
        let controls: Vec<Place> = (0..habits.functions_max).map(|_| place(0)).collect();
        let Common { disk, unit, stamps, tally, sectors } = common;
        unit.borrow_mut().introduce(number);
        ScsiClient {
            front,
            number,
            disk: Rc::clone(disk),
            unit: Rc::clone(unit),
            sectors: *sectors,
            free: places.iter().map(|places| (0..places.len()).collect()).collect(),
            places,
            free_controls: (0..controls.len()).collect(),
            controls,
            sent: BTreeMap::new(),
            functions: BTreeMap::new(),
            next: 1,
            stamps: Rc::clone(stamps),
            known: BTreeMap::new(),
            tally: Rc::clone(tally),
            count: Count { left, ..Count::default() },
            habits,
        }
    }

    /// The same client after its host has lost its power.
    pub fn rebooted(&self) -> ScsiClient {
        let Count { left, answered, failed, .. } = self.count;
        let common = Common {
            disk: Rc::clone(&self.disk),
            unit: Rc::clone(&self.unit),
            stamps: Rc::clone(&self.stamps),
            tally: Rc::clone(&self.tally),
            sectors: self.sectors,
        };
        let mut client = ScsiClient::new(self.number, self.habits.clone(), &common, left);
        client.count = Count { left, answered, failed, wrong: None };
        client
    }

    pub fn queues(&self) -> u16 {
        self.habits.queues
    }

    /// At most one command of a queue is under way: it never waits for others' lists.
    pub fn is_modest(&self) -> bool {
        self.habits.depth == 1
    }

    pub fn under_way(&self) -> usize {
        self.sent.len() + self.functions.len()
    }

    /// Something, or nothing; whether it did something.
    pub fn step(&mut self) -> bool {
        if self.count.wrong.is_some() {
            return false;
        }
        let stepped = self.look_for_due().and_then(|()| self.go_on());
        stepped.unwrap_or_else(|wrong| {
            self.count.wrong = Some(format!("{}: {wrong}", self.front.name));
            true
        })
    }

    /// What must have ended has: its end is in the ring.
    fn look_for_due(&mut self) -> Result<(), String> {
        let mine: Vec<Name> = {
            let unit = self.unit.borrow();
            unit.due.range((self.number, 0)..=(self.number, u64::MAX)).copied().collect()
        };
        if mine.is_empty() {
            return Ok(());
        }
        for line in 1..self.front.lines.len() {
            while self.take_one(line)? {}
        }
        for name in mine {
            self.unit.borrow_mut().due.remove(&name);
            if self.sent.contains_key(&name.1) {
                return Err(format!(
                    "command {:#x} is under way, and a function that ends it was answered",
                    name.1
                ));
            }
        }
        Ok(())
    }

    fn go_on(&mut self) -> Result<bool, String> {
        let at = sim::pick(self.front.lines.len());
        match self.front.lines[at].begin_step(&self.front.name) {
            Can::Kicked => return Ok(true),
            Can::Sleeps => return Ok(false),
            Can::All => {}
        }
        match sim::pick(3) {
            0 => self.poll(at),
            1 if at > 0 && self.count.left > 0 && !self.free[at - 1].is_empty() => {
                let most = self.free[at - 1].len().min(self.count.left as usize);
                for _ in 0..=sim::pick(most) {
                    self.send(at);
                }
                self.front.lines[at].publish();
                Ok(true)
            }
            1 if at == 0
                && self.count.left > 0
                && !self.free_controls.is_empty()
                && sim::once_in(self.habits.function_every) =>
            {
                self.send_function();
                self.front.lines[0].publish();
                Ok(true)
            }
            _ => {
                let worked = self.poll(at)?;
                let waits =
                    if at == 0 { !self.functions.is_empty() } else { !self.sent.is_empty() };
                if !worked && waits {
                    self.front.lines[at].sleep();
                }
                Ok(worked)
            }
        }
    }

    fn poll(&mut self, at: usize) -> Result<bool, String> {
        let mut worked = false;
        for _ in 0..=sim::pick(8) {
            if !self.take_one(at)? {
                break;
            }
            worked = true;
        }
        Ok(worked)
    }

    fn take_one(&mut self, at: usize) -> Result<bool, String> {
        let Some(completion) = self.front.lines[at].poll()? else { return Ok(false) };
        if at == 0 {
            self.function_answered(completion.token)?;
        } else {
            self.judge(completion.token, completion.written)?;
        }
        Ok(true)
    }

    /// Sends a task management function.
    fn send_function(&mut self) {
        let Some(at) = self.free_controls.pop() else { return };
        let subtype = [0, 0, 0, 1, 3, 4, 5, 6][sim::pick(8)];
        let unit = self.unit.borrow();
        let mine = (self.number, 0)..=(self.number, u64::MAX);
        let own: Vec<(Name, Option<Ticket>)> =
            unit.sent.range(mine).map(|(name, ticket)| (*name, *ticket)).collect();
        let mut id = 0;
        let scope: Vec<(Name, Option<Ticket>)> = match subtype {
            0 | 6 if own.is_empty() => Vec::new(),
            0 | 6 => {
                let one = own[sim::pick(own.len())];
                id = one.0.1;
                if subtype == 0 { vec![one] } else { Vec::new() }
            }
            1 | 4 => own,
            _ => unit.sent.iter().map(|(name, ticket)| (*name, *ticket)).collect(),
        };
        let shifts = |(name, ticket): (Name, Option<Ticket>)| (name, ticket, unit.shifts[name.0]);
        let scope = scope.into_iter().map(shifts).collect();
        let arrived = unit.arrived[self.number].filter(|visit| *visit == unit.visits[self.number]);
        drop(unit);
        let place = &self.controls[at];
        let mut bytes = [0; 24];
        bytes[4..8].copy_from_slice(&u32::to_le_bytes(subtype));
        bytes[8..16].copy_from_slice(&LUN);
        bytes[16..].copy_from_slice(&id.to_le_bytes());
        place.out.buf.write(0, &bytes);
        place.inward.buf.slice(0, 1).fill(0xff);
        let token = self.next;
        let added = self.front.lines[0].driver.add(
            &[(place.out.guest, 24)],
            &[(place.inward.guest, 1)],
            token,
            false,
        );
        if added.is_err() {
            return self.free_controls.push(at);
        }
        self.next += 1;
        sim::tell(|| format!("{}: function {subtype} ({id:#x}) is {token:#x}", self.front.name));
        self.functions.insert(token, Function { subtype, scope, place: at, arrived });
    }

    /// A function was answered: nothing of what it means is left.
    fn function_answered(&mut self, token: u64) -> Result<(), String> {
        let function =
            self.functions.remove(&token).ok_or_else(|| format!("{token:#x} came back twice"))?;
        let Function { subtype, scope, place, arrived } = function;
        let mut response = [0];
        self.controls[place].inward.buf.read(0, &mut response);
        self.free_controls.push(place);
        sim::tell(|| {
            format!("{}: function {token:#x} is answered with {}", self.front.name, response[0])
        });
        sim::seen(token ^ u64::from(response[0]));
        bump(&self.tally.functions);
        match response[0] {
            0 => {}
            // FUNCTION SUCCEEDED: of a query.
            10 if subtype == 6 => return Ok(()),
            // RESET: it was taken by a process that died. FAILURE: its queue was stopped.
            4 | 9 => return Ok(()),
            other => return Err(format!("function {token:#x} has response {other}")),
        }
        if subtype == 6 {
            return Ok(());
        }
        for (name, ticket, shifts) in scope {
            let mut unit = self.unit.borrow_mut();
            // Of another client whose queues came or went meanwhile, nobody knows what had been taken.
            if name.0 != self.number && (shifts % 2 == 1 || unit.shifts[name.0] != shifts) {
                continue;
            }
            if unit.sent.contains_key(&name) {
                // What lies in the ring of a queue that has yet to come ends when it comes, without an effect.
                if arrived == Some(unit.visits[self.number]) {
                    unit.due.insert(name);
                }
                ticket.into_iter().for_each(|ticket| self.disk.borrow_mut().bar(ticket));
            }
        }
        self.look_for_due()
    }

    fn send(&mut self, line: usize) {
        if self.count.left == 0 {
            return;
        }
        let Some(at) = self.free[line - 1].pop() else { return };
        if let Some(Err(wrong)) = self.places[line - 1][at].rests.take().map(Rests::end) {
            self.count.wrong = Some(format!("{}: {wrong}", self.front.name));
            return;
        }
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
        let place = &self.places[line - 1][at];
        let token = self.next;
        let mut header = [0; HEADER];
        header[..8].copy_from_slice(&LUN);
        header[8..16].copy_from_slice(&token.to_le_bytes());
        let cdb = &mut header[19..];
        let data = |range: DriverRange, sectors: u64| -> Vec<Segment> {
            cut(GuestAddr(range.guest.0 + 4096), (sectors * SECTOR) as u32)
        };
        let mut readable: Vec<Segment> = vec![(place.out.guest, HEADER as u32)];
        let mut writable: Vec<Segment> = vec![(place.inward.guest, RESPONSE as u32)];
        let stamp = || {
            let mut stamps = self.stamps.borrow_mut();
            *stamps += 1;
            *stamps
        };
        let ten = |cdb: &mut [u8], code: u8| {
            cdb[0] = code;
            cdb[2..6].copy_from_slice(&(first as u32).to_be_bytes());
            cdb[7..9].copy_from_slice(&(count as u16).to_be_bytes());
        };
        let mut disk = self.disk.borrow_mut();
        let (kind, ticket) = match op {
            Some(0) => {
                ten(cdb, 0x28);
                place.inward.buf.slice(4096, (count * SECTOR) as usize).fill(0xee);
                writable.extend(data(place.inward, count));
                (Kind::Read(disk.read(sectors.clone()), sectors.clone()), None)
            }
            Some(1) => {
                ten(cdb, 0x2a);
                let stamp = stamp();
                fill(place.out.buf.slice(4096, (count * SECTOR) as usize), stamp);
                readable.extend(data(place.out, count));
                let ticket = disk.write(sectors.clone(), stamp, false);
                if sim::once_in(self.habits.fua_every) {
                    cdb[1] = 0x08;
                    disk.through(ticket);
                }
                sim::tell(|| {
                    format!("{}: asks to write {sectors:?} with {stamp}", self.front.name)
                });
                (Kind::Write(ticket), Some(ticket))
            }
            Some(2) => {
                cdb[0] = 0x89;
                cdb[2..10].copy_from_slice(&first.to_be_bytes());
                cdb[13] = 1;
                let (stamp, one) = (stamp(), SECTOR as usize);
                let expected = self.known.get(&first).copied().unwrap_or(0);
                fill(place.out.buf.slice(4096, one), expected);
                fill(place.out.buf.slice(4096 + one, one), stamp);
                readable.extend(data(place.out, 2));
                let settled = !disk.is_written(first, expected);
                let read = disk.read(first..first + 1);
                let write = disk.write(first..first + 1, stamp, false);
                sim::tell(|| {
                    format!(
                        "{}: asks to put {stamp} on {first} where {expected} is",
                        self.front.name
                    )
                });
                let kind = Kind::Compare { read, write, at: first, expected, stamp, settled };
                (kind, Some(write))
            }
            Some(3) => {
                cdb[0] = 0x35;
                sim::tell(|| format!("{}: asks to flush", self.front.name));
                (Kind::Flush(disk.flush()), None)
            }
            _ => (Kind::Other, None),
        };
        place.out.buf.write(0, &header);
        place.inward.buf.slice(0, RESPONSE).fill(0xff);
        let driver = &mut self.front.lines[line].driver;
        match driver.add(&readable, &writable, token, self.habits.indirect) {
            Ok(head) => {
                sim::tell(|| {
                    let name = &self.front.name;
                    format!(
                        "{name}: queue {} head {} is command {token:#x} on {sectors:?}",
                        self.front.lines[line].number, head.0
                    )
                });
                let mut unit = self.unit.borrow_mut();
                unit.sent.insert((self.number, token), ticket);
                let deaths = unit.deaths;
                self.sent.insert(token, Asked { kind, deaths, place: (line - 1, at) });
                self.next += 1;
                self.count.left -= 1;
            }
            Err(AddError::Full | AddError::TooLong) => {
                // It never was.
                match kind {
                    Kind::Read(ticket, _) | Kind::Flush(ticket) => {
                        disk.was_read(ticket, None).expect("no values");
                    }
                    Kind::Write(ticket) => disk.forget(ticket),
                    Kind::Compare { read, write, .. } => {
                        disk.was_read(read, None).expect("no values");
                        disk.forget(write);
                    }
                    Kind::Other => {}
                }
                self.free[line - 1].push(at);
            }
            Err(AddError::Empty) => unreachable!("a command has a header"),
        }
    }

    fn judge(&mut self, token: u64, written: u32) -> Result<(), String> {
        let asked =
            self.sent.remove(&token).ok_or_else(|| format!("{token:#x} came back twice"))?;
        let Asked { kind, deaths, place: (line, at) } = asked;
        let place = &self.places[line][at];
        let mut answer = [0; RESPONSE];
        place.inward.buf.read(0, &mut answer);
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
            unit.sent.remove(&(self.number, token));
            unit.due.remove(&(self.number, token));
            unit.deaths == deaths
        };
        let fate =
            fate(&answer, same_life).map_err(|wrong| format!("command {token:#x} {wrong}"))?;
        self.count.answered += 1;
        self.count.failed += u32::from(fate != Fate::Done);
        match fate {
            Fate::Done => {}
            Fate::Failed => bump(&self.tally.ended),
            Fate::Refused | Fate::Differs => bump(&self.tally.refused),
        }
        let mut disk = self.disk.borrow_mut();
        let read = match &kind {
            Kind::Read(_, sectors) => sectors.end - sectors.start,
            _ => 0,
        };
        match (kind, fate) {
            (Kind::Other, Fate::Differs) => return Err("nothing was compared".to_owned()),
            (Kind::Other, _) => {}
            (Kind::Flush(ticket), Fate::Done | Fate::Failed) => {
                // One that was ended early says nothing of a loss.
                let told = response == 0 && status == 2;
                match fate == Fate::Done || told {
                    true => disk.flushed(ticket, fate == Fate::Done),
                    false => disk.was_read(ticket, None)?,
                }
            }
            (Kind::Flush(ticket), _) => disk.was_read(ticket, None)?,
            (Kind::Write(ticket), Fate::Refused | Fate::Differs) => disk.refused(ticket)?,
            (Kind::Write(ticket), fate) => disk.written(ticket, fate == Fate::Done),
            (Kind::Read(ticket, sectors), Fate::Done) => {
                let count = (sectors.end - sectors.start) as usize;
                if written as usize != RESPONSE + count * SECTOR as usize {
                    return Err(format!("a read of {count} sectors wrote {written} bytes"));
                }
                let data = place.inward.buf.slice(4096, count * SECTOR as usize);
                let found = values(data)?;
                disk.was_read(ticket, Some(&found))?;
                self.known.extend(sectors.zip(found));
            }
            (Kind::Read(ticket, _), _) => disk.was_read(ticket, None)?,
            (Kind::Compare { read, write, at, expected, stamp, settled }, fate) => {
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
                    }
                    Fate::Failed => disk.written(write, false),
                    Fate::Refused => disk.refused(write)?,
                    Fate::Differs if differs => disk.refused(write)?,
                    Fate::Differs => {
                        return Err(format!("sector {at} is {expected}, and was found different"));
                    }
                }
            }
        }
        drop(disk);
        if read > 0 {
            let rests = Rests::new(place.inward.buf.slice(4096, (read * SECTOR) as usize));
            self.places[line][at].rests = Some(rests);
        }
        self.free[line].push(at);
        Ok(())
    }
}

/// What an answer means. In the life of the process that took it, a command that was refused has not begun.
fn fate(answer: &[u8; RESPONSE], same_life: bool) -> Result<Fate, String> {
    let (response, status, key) = (answer[11], answer[10], answer[14] & 0xf);
    let refused = if same_life { Fate::Refused } else { Fate::Failed };
    let code = u16::from_be_bytes([answer[24], answer[25]]);
    match (response, status) {
        (0, 0) => Ok(Fate::Done),
        // Unit attention.
        (0, 2) if key == 6 => Ok(refused),
        // MISCOMPARE.
        (0, 2) if key == 0xe => Ok(Fate::Differs),
        // DATA PROTECT.
        (0, 2) if key == 7 => Ok(Fate::Refused),
        // Of the medium.
        (0, 2) if key == 3 || key == 4 => Ok(Fate::Failed),
        // RESERVATION CONFLICT, BUSY, TASK SET FULL; busy.
        (0, 0x18 | 0x08 | 0x28) | (5, _) => Ok(refused),
        // TASK ABORTED, ABORTED, RESET.
        (0, 0x40) | (2 | 4, _) => Ok(Fate::Failed),
        _ => Err(format!("has response {response}, status {status:#x}, sense {key:x}/{code:04x}")),
    }
}
