//! A driver of a virtio SCSI host device: commands on its request queues, task management on its control queue, and what each answer means.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use memory::sim;
use uring::sim::{self as kernel, Errors};
use vring::GuestAddr;
use vring::driver::{AddError, DriverConfig, DriverRange, Segment};

use crate::atlas::Phase;
use crate::client::{Count, Rests, SECTOR, cut, fill, values};
use crate::drawn::Ordering;
use crate::fence::{Act, Order};
use crate::front::{Can, Front};
use crate::less::Less;
use crate::oracle::{Disk, Stamp, Ticket, Touch};
use crate::unit::{Name, Presence, Unit};

mod answer;
mod send;

const HEADER: usize = 51;
const RESPONSE: usize = 108;
/// The control queue, and the first of the request queues.
const CONTROL: u16 = 0;
const FIRST: u16 = 2;
/// LUN 0 of target 0.
pub(crate) const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];

/// How a driver behaves, drawn from the seed.
#[derive(Debug, Clone)]
pub(crate) struct Habits {
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
    /// PERSISTENT RESERVE OUT and IN.
    orders: Option<Ordering>,
}

impl Habits {
    pub(crate) fn draw(orders: Option<Ordering>, less: &Less) -> Habits {
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
            function_every: [0, 2, 10, 60][sim::pick(4)] * u64::from(less.has("functions")),
            functions_max: 1 + sim::pick(3),
            orders,
        }
    }
}

enum Kind {
    Read(Ticket, std::ops::Range<u64>),
    /// And how many sectors.
    Write(Ticket, u64),
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
    /// PERSISTENT RESERVE OUT or IN.
    Order(Order, Act),
    Other,
}

impl Kind {
    /// Whom a failing medium concerns.
    fn touch(&self) -> Option<Touch> {
        match self {
            Kind::Read(..) => Some(Touch::Reads),
            Kind::Write(..) => Some(Touch::Writes),
            Kind::Compare { .. } => Some(Touch::Compares),
            Kind::Flush(_) => Some(Touch::Flushes),
            Kind::Order(..) | Kind::Other => None,
        }
    }

    fn phase(&self) -> usize {
        let phase = match self {
            Kind::Read(..) | Kind::Other => Phase::Read,
            Kind::Write(..) => Phase::Write,
            Kind::Compare { .. } => Phase::Compare,
            Kind::Flush(_) => Phase::Flush,
            Kind::Order(..) => Phase::Order,
        };
        phase as usize
    }
}

struct Asked {
    kind: Kind,
    /// Deaths until then.
    deaths: u64,
    /// Where `Unit::maps` stood.
    map: u64,
    /// Its queue, and its place there.
    place: (usize, usize),
    /// What had failed before.
    errors: Errors,
    /// What had been that ends commands of its client's, if nothing of that was under way.
    ends: Option<u64>,
}

/// A function that was sent.
struct Function {
    subtype: u32,
    /// Who was there when it was sent, as far as it means them, with the presence of each then.
    scope: Vec<(Name, Option<Ticket>, Presence)>,
    /// Where `Unit::maps` stood.
    map: u64,
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
pub(crate) struct ScsiClient {
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
    /// The key that it takes itself to be registered with.
    key: u64,
    tally: Rc<Tally>,
    /// Zeroes that may be written instead of what memory had that was taken away.
    zeroes: Vec<Ticket>,
    pub count: Count,
}

/// What there was of SCSI in all runs.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    pub functions: Cell<u64>,
    pub ended: Cell<u64>,
    pub refused: Cell<u64>,
}

fn bump(cell: &Cell<u64>) {
    cell.set(cell.get() + 1);
}

/// What clients share.
pub(crate) struct Common {
    pub disk: Rc<RefCell<Disk>>,
    pub unit: Rc<RefCell<Unit>>,
    pub stamps: Rc<RefCell<Stamp>>,
    pub tally: Rc<Tally>,
    pub sectors: u64,
}

impl ScsiClient {
    pub(crate) fn new(number: usize, habits: Habits, common: &Common, left: u32) -> ScsiClient {
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
            key: 0,
            tally: Rc::clone(tally),
            zeroes: Vec::new(),
            count: Count { left, ..Count::default() },
            habits,
        }
    }

    /// The same client after its host has lost its power.
    pub(crate) fn rebooted(&self) -> ScsiClient {
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

    pub(crate) fn queues(&self) -> u16 {
        self.habits.queues
    }

    /// Its memory is taken away under what it has asked; not where that would make something else of an order for reservations. Whether it is.
    pub(crate) fn loses_memory(&mut self) -> bool {
        if self.sent.values().any(|asked| matches!(asked.kind, Kind::Order(..))) {
            return false;
        }
        self.front.loses_memory();
        let mut disk = self.disk.borrow_mut();
        for asked in self.sent.values() {
            let sectors = match &asked.kind {
                Kind::Write(ticket, _) => disk.sectors_of(*ticket),
                Kind::Compare { at, .. } => *at..*at + 1,
                _ => continue,
            };
            self.zeroes.push(disk.write(sectors, 0, true));
        }
        true
    }

    /// Nothing of what it had asked is under way, and it starts again.
    pub(crate) fn started_again(&mut self) -> Result<ScsiClient, String> {
        let (mut disk, mut unit) = (self.disk.borrow_mut(), self.unit.borrow_mut());
        for (token, asked) in std::mem::take(&mut self.sent) {
            sim::leave(asked.kind.phase());
            let name = (self.number, token);
            unit.sent.remove(&name);
            unit.shut_out.remove(&name);
            unit.due.remove(&name);
            unit.fence.accessed(self.number, token, None)?;
            match asked.kind {
                Kind::Read(ticket, _) | Kind::Flush(ticket) => disk.was_read(ticket, None)?,
                Kind::Write(ticket, _) => disk.written(ticket, false),
                Kind::Compare { read, write, .. } => {
                    disk.was_read(read, None)?;
                    disk.written(write, false);
                }
                Kind::Order(..) => unreachable!("there is none: see where it loses its memory"),
                Kind::Other => {}
            }
        }
        for function in std::mem::take(&mut self.functions).into_values() {
            sim::leave(Phase::Function as usize);
            unit.function_ends(self.number, function.subtype);
        }
        self.zeroes.drain(..).for_each(|ticket| disk.written(ticket, false));
        drop((disk, unit));
        Ok(self.rebooted())
    }

    /// At most one command of a queue is under way: it never waits for others' lists.
    pub(crate) fn is_modest(&self) -> bool {
        self.habits.depth == 1
    }

    pub(crate) fn under_way(&self) -> usize {
        self.sent.len() + self.functions.len()
    }

    /// Something, or nothing; whether it did something.
    pub(crate) fn step(&mut self) -> bool {
        if self.count.wrong.is_some() || self.front.is_gone {
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
        let with_presence =
            |(name, ticket): (Name, Option<Ticket>)| (name, ticket, unit.presence(name.0));
        let scope = scope.into_iter().map(with_presence).collect();
        let map = unit.maps[self.number];
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
        self.unit.borrow_mut().function_begins(self.number, subtype);
        sim::tell(|| format!("{}: function {subtype} ({id:#x}) is {token:#x}", self.front.name));
        sim::enter(Phase::Function as usize);
        self.functions.insert(token, Function { subtype, scope, map, place: at, arrived });
    }

    /// A function was answered: nothing of what it means is left.
    fn function_answered(&mut self, token: u64) -> Result<(), String> {
        let function =
            self.functions.remove(&token).ok_or_else(|| format!("{token:#x} came back twice"))?;
        sim::leave(Phase::Function as usize);
        let Function { subtype, scope, map, place, arrived } = function;
        self.unit.borrow_mut().function_ends(self.number, subtype);
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
            // BAD TARGET, INCORRECT LUN: the unit is, or was, taken.
            3 | 12 if !self.has_unit_since(map) => return Ok(()),
            other => return Err(format!("function {token:#x} has response {other}")),
        }
        if subtype == 6 || !self.has_unit_since(map) {
            return Ok(());
        }
        for (name, ticket, presence) in scope {
            let mut unit = self.unit.borrow_mut();
            // Of another client whose queues or whose unit came or went meanwhile, nobody knows what had been taken.
            let there = presence.is_some() && unit.presence(name.0) == presence;
            if name.0 != self.number && !there {
                continue;
            }
            if unit.sent.contains_key(&name) {
                // What lies in the ring of a queue that has yet to come ends when it comes, without an effect.
                if arrived == Some(unit.visits[self.number]) {
                    unit.due.insert(name);
                }
                ticket.into_iter().for_each(|ticket| self.disk.borrow_mut().bar(ticket));
                unit.shut_out.remove(&name);
                if let Some(order) = unit.orders.get(&name).copied() {
                    unit.fence.bar(order);
                }
            }
        }
        self.look_for_due()
    }

    /// The unit was there all the time since `map`.
    fn has_unit_since(&self, map: u64) -> bool {
        map % 4 == Unit::THERE && self.unit.borrow().maps[self.number] == map
    }
}
