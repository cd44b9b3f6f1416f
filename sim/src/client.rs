//! A driver of a virtio block device: it sends, kicks, sleeps until it is notified, and judges every answer.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use memory::{IoBuf, sim};
use uring::sim::{self as kernel, Errors};
use vring::GuestAddr;
use vring::driver::{AddError, DriverConfig, DriverRange, Segment};

use crate::atlas::Phase;
use crate::front::{Can, Front};
use crate::oracle::{Disk, Stamp, Ticket, Touch};

pub(crate) const SECTOR: u64 = 512;

/// How a driver behaves, drawn from the seed.
#[derive(Debug, Clone)]
pub(crate) struct Habits {
    pub size: u16,
    pub event_idx: bool,
    pub indirect: bool,
    pub in_order: bool,
    /// Requests at once.
    pub depth: usize,
    /// Longest request.
    pub sectors_max: u64,
    /// In parts of what is asked: reads, writes, flushes, zeroes, discards.
    pub weights: [usize; 5],
}

impl Habits {
    pub(crate) fn draw() -> Habits {
        // At least the four descriptors of one request.
        let size = 4 << sim::pick(5);
        let mut weights = [1 + sim::pick(8), 1 + sim::pick(8), 0, 0, 0];
        for weight in &mut weights[2..] {
            *weight = if sim::once_in(2) { sim::pick(4) } else { 0 };
        }
        Habits {
            size,
            event_idx: !sim::once_in(3),
            indirect: !sim::once_in(3),
            in_order: sim::once_in(4),
            depth: if sim::once_in(4) { 1 } else { 1 + sim::pick(usize::from(size)) },
            sectors_max: 1 << sim::pick(6),
            weights,
        }
    }
}

enum Asked {
    Read(Ticket, std::ops::Range<u64>),
    Write(Ticket, std::ops::Range<u64>),
    /// A discard, or zeroes.
    Discard(Ticket),
    Flush(Ticket),
}

impl Asked {
    fn touch(&self) -> Touch {
        match self {
            Asked::Read(..) => Touch::Reads,
            Asked::Write(..) | Asked::Discard(_) => Touch::Writes,
            Asked::Flush(_) => Touch::Flushes,
        }
    }

    fn phase(&self) -> usize {
        let phase = match self {
            Asked::Read(..) => Phase::Read,
            Asked::Write(..) => Phase::Write,
            Asked::Discard(_) => Phase::Discard,
            Asked::Flush(_) => Phase::Flush,
        };
        phase as usize
    }
}

struct Place {
    /// Header, and what a range has.
    out: DriverRange,
    data: DriverRange,
    status: DriverRange,
    rests: Option<Rests>,
}

/// A client with one queue.
pub(crate) struct Client {
    pub front: Front,
    habits: Habits,
    disk: Rc<RefCell<Disk>>,
    sectors: u64,
    places: Vec<Place>,
    free: Vec<usize>,
    /// With what had failed before.
    sent: BTreeMap<u64, (Asked, Errors)>,
    next: u64,
    stamps: Rc<RefCell<Stamp>>,
    /// Zeroes that may be written instead of what memory had that was taken away.
    zeroes: Vec<Ticket>,
    pub count: Count,
}

/// What a client has yet to ask, and what came of what it asked.
#[derive(Debug, Default)]
pub(crate) struct Count {
    pub left: u32,
    pub answered: u32,
    pub failed: u32,
    pub wrong: Option<String>,
}

impl Client {
    pub(crate) fn new(
        name: String,
        habits: Habits,
        disk: &Rc<RefCell<Disk>>,
        sectors: u64,
        stamps: &Rc<RefCell<Stamp>>,
        left: u32,
    ) -> Client {
        let data = (habits.sectors_max * SECTOR) as usize;
        let bytes = (habits.depth * (data + 8192)) as u64 + (256 << 10);
        let config = DriverConfig {
            size: habits.size,
            event_idx: habits.event_idx,
            indirect_max: if habits.indirect { 8 } else { 0 },
            in_order: habits.in_order,
        };
        let front = Front::new(name, bytes, config, &[0]);
        let alloc = |len, align| front.memory.alloc(len, align).expect("room");
        let place = |_| {
            let (out, status) = (alloc(64, 64), alloc(1, 1));
            Place { out, data: alloc(data, 4096), status, rests: None }
        };
        let places: Vec<Place> = (0..habits.depth).map(place).collect();
        Client {
            front,
            disk: Rc::clone(disk),
            sectors,
            free: (0..places.len()).collect(),
            places,
            sent: BTreeMap::new(),
            next: 0,
            stamps: Rc::clone(stamps),
            zeroes: Vec::new(),
            count: Count { left, ..Count::default() },
            habits,
        }
    }

    /// The same client after its host has lost its power.
    pub(crate) fn rebooted(&self) -> Client {
        let Client { habits, disk, sectors, stamps, .. } = self;
        let Count { left, answered, failed, .. } = self.count;
        let name = self.front.name.clone();
        let mut client = Client::new(name, habits.clone(), disk, *sectors, stamps, left);
        client.count = Count { left, answered, failed, wrong: None };
        client
    }

    /// Its memory is taken away under what it has asked.
    pub(crate) fn loses_memory(&mut self) {
        self.front.loses_memory();
        let mut disk = self.disk.borrow_mut();
        for (asked, _) in self.sent.values() {
            if let Asked::Write(_, sectors) = asked {
                self.zeroes.push(disk.write(sectors.clone(), 0, true));
            }
        }
    }

    /// Nothing of what it had asked is under way, and it starts again.
    pub(crate) fn started_again(&mut self) -> Client {
        let mut disk = self.disk.borrow_mut();
        for (asked, _) in std::mem::take(&mut self.sent).into_values() {
            sim::leave(asked.phase());
            match asked {
                Asked::Read(ticket, _) | Asked::Flush(ticket) => {
                    disk.was_read(ticket, None).expect("no values");
                }
                Asked::Write(ticket, _) | Asked::Discard(ticket) => disk.written(ticket, false),
            }
        }
        self.zeroes.drain(..).for_each(|ticket| disk.written(ticket, false));
        drop(disk);
        self.rebooted()
    }

    /// At most one request is under way: it never waits for others' lists.
    pub(crate) fn is_modest(&self) -> bool {
        self.habits.depth == 1
    }

    pub(crate) fn under_way(&self) -> usize {
        self.sent.len()
    }

    /// Something, or nothing; whether it did something.
    pub(crate) fn step(&mut self) -> bool {
        if self.count.wrong.is_some() || self.front.is_gone {
            return false;
        }
        match self.front.lines[0].begin_step(&self.front.name) {
            Can::Kicked => return true,
            Can::Sleeps => return false,
            Can::All => {}
        }
        match sim::pick(3) {
            0 => self.poll(),
            1 if self.count.left > 0 && !self.free.is_empty() => {
                let most = self.free.len().min(self.count.left as usize);
                for _ in 0..=sim::pick(most) {
                    self.send();
                }
                self.front.lines[0].publish();
                true
            }
            _ => {
                let worked = self.poll();
                if !worked && self.count.wrong.is_none() && !self.sent.is_empty() {
                    self.front.lines[0].sleep();
                }
                worked
            }
        }
    }

    fn poll(&mut self) -> bool {
        let mut worked = false;
        for _ in 0..=sim::pick(8) {
            let judged = match self.front.lines[0].poll() {
                Ok(None) => break,
                Ok(Some(completion)) => self.judge(completion.token, completion.written),
                Err(wrong) => Err(wrong),
            };
            worked = true;
            if let Err(wrong) = judged {
                self.count.wrong = Some(format!("{}: {wrong}", self.front.name));
                break;
            }
        }
        worked
    }

    fn send(&mut self) {
        if self.count.left == 0 {
            return;
        }
        let Some(at) = self.free.pop() else { return };
        if let Some(Err(wrong)) = self.places[at].rests.take().map(Rests::end) {
            self.count.wrong = Some(format!("{}: {wrong}", self.front.name));
            return;
        }
        let all: usize = self.habits.weights.iter().sum();
        let mut picked = sim::pick(all);
        let op = self.habits.weights.iter().position(|weight| {
            let here = picked < *weight;
            picked = picked.wrapping_sub(*weight);
            here
        });
        let first = sim::pick(self.sectors as usize) as u64;
        let count =
            1 + sim::pick(self.habits.sectors_max.min(self.sectors - first) as usize) as u64;
        let sectors = first..first + count;
        let place = &self.places[at];
        let status: Segment = (place.status.guest, 1);
        place.status.buf.fill(0xff);
        let header = |kind: u32, sector: u64| {
            let mut bytes = [0; 16];
            bytes[..4].copy_from_slice(&kind.to_le_bytes());
            bytes[8..].copy_from_slice(&sector.to_le_bytes());
            place.out.buf.write(0, &bytes);
        };
        let head: Segment = (place.out.guest, 16);
        let data = cut(place.data.guest, (count * SECTOR) as u32);
        let token = self.next << 16 | at as u64;
        let indirect = self.habits.indirect;
        let mut disk = self.disk.borrow_mut();
        let (added, asked) = match op {
            Some(0) => {
                header(0, first);
                place.data.buf.fill(0xee);
                let mut writable = data;
                writable.push(status);
                let added = self.front.lines[0].driver.add(&[head], &writable, token, indirect);
                (added, Asked::Read(disk.read(sectors.clone()), sectors.clone()))
            }
            Some(1) => {
                header(1, first);
                let stamp = {
                    let mut stamps = self.stamps.borrow_mut();
                    *stamps += 1;
                    *stamps
                };
                fill(place.data.buf.slice(0, (count * SECTOR) as usize), stamp);
                let mut readable = vec![head];
                readable.extend(data);
                let added = self.front.lines[0].driver.add(&readable, &[status], token, indirect);
                let ticket = disk.write(sectors.clone(), stamp, false);
                sim::tell(|| {
                    format!("{}: asks to write {sectors:?} with {stamp}", self.front.name)
                });
                (added, Asked::Write(ticket, sectors.clone()))
            }
            Some(2) => {
                header(4, 0);
                sim::tell(|| format!("{}: asks to flush", self.front.name));
                let added = self.front.lines[0].driver.add(&[head], &[status], token, indirect);
                (added, Asked::Flush(disk.flush()))
            }
            discard => {
                let discard = discard == Some(4);
                header(if discard { 11 } else { 13 }, 0);
                let mut range = [0; 16];
                range[..8].copy_from_slice(&first.to_le_bytes());
                range[8..12].copy_from_slice(&(count as u32).to_le_bytes());
                place.out.buf.write(16, &range);
                let range = (GuestAddr(place.out.guest.0 + 16), 16);
                let added =
                    self.front.lines[0].driver.add(&[head, range], &[status], token, indirect);
                let ticket = disk.write(sectors.clone(), 0, discard);
                (added, Asked::Discard(ticket))
            }
        };
        match added {
            Ok(head) => {
                sim::tell(|| {
                    format!(
                        "{}: head {} is request {token:#x} on {sectors:?}",
                        self.front.name, head.0
                    )
                });
                sim::enter(asked.phase());
                self.sent.insert(token, (asked, kernel::errors()));
                self.next += 1;
                self.count.left -= 1;
            }
            Err(AddError::Full | AddError::TooLong) => {
                // It never was.
                match asked {
                    Asked::Read(ticket, _) => disk.was_read(ticket, None).expect("no values"),
                    Asked::Write(ticket, _) | Asked::Discard(ticket) => disk.forget(ticket),
                    Asked::Flush(ticket) => disk.was_read(ticket, None).expect("no values"),
                }
                self.free.push(at);
            }
            Err(AddError::Empty) => unreachable!("a request has a header"),
        }
    }

    fn judge(&mut self, token: u64, written: u32) -> Result<(), String> {
        let (asked, failed_before) =
            self.sent.remove(&token).ok_or_else(|| format!("{token:#x} came back twice"))?;
        sim::leave(asked.phase());
        let at = (token & 0xffff) as usize;
        let place = &self.places[at];
        let mut status = [0];
        place.status.buf.read(0, &mut status);
        sim::tell(|| {
            format!("{}: request {token:#x} is answered with {}", self.front.name, status[0])
        });
        sim::seen(token ^ u64::from(status[0]));
        let done = match status[0] {
            0 => true,
            1 => false,
            2 => false,
            other => return Err(format!("request {token:#x} has status {other:#x}")),
        };
        self.count.answered += 1;
        self.count.failed += u32::from(!done);
        self.front.lines[0].see(|seen| match &asked {
            _ if !done => seen.errors += 1,
            Asked::Read(_, sectors) => seen.read((sectors.end - sectors.start) * SECTOR),
            Asked::Write(_, sectors) => seen.wrote((sectors.end - sectors.start) * SECTOR),
            Asked::Flush(_) => seen.flushes += 1,
            Asked::Discard(_) => seen.discards += 1,
        });
        let mut disk = self.disk.borrow_mut();
        if !done {
            let excused = disk.may_fail(asked.touch(), failed_before);
            excused.map_err(|wrong| format!("request {token:#x}: {wrong}"))?;
        }
        match asked {
            Asked::Flush(ticket) => disk.flushed(ticket, done),
            Asked::Write(ticket, _) | Asked::Discard(ticket) => disk.written(ticket, done),
            Asked::Read(ticket, sectors) => {
                let count = (sectors.end - sectors.start) as usize;
                if done && u64::from(written) != count as u64 * SECTOR + 1 {
                    return Err(format!("a read of {count} sectors wrote {written} bytes"));
                }
                let values = if done {
                    Some(values(place.data.buf.slice(0, count * SECTOR as usize))?)
                } else {
                    None
                };
                disk.was_read(ticket, values.as_deref())?;
                let rests = Rests::new(place.data.buf.slice(0, count * SECTOR as usize));
                self.places[at].rests = Some(rests);
            }
        }
        drop(disk);
        self.free.push(at);
        Ok(())
    }
}

/// A buffer in up to six pieces: more than a command has room for without a list.
pub(crate) fn cut(at: GuestAddr, len: u32) -> Vec<Segment> {
    let sectors = (len / SECTOR as u32) as usize;
    if sectors < 2 || sim::once_in(2) {
        return vec![(at, len)];
    }
    let cuts = 1 + sim::pick(5);
    let mut borders: BTreeSet<usize> = (0..cuts).map(|_| 1 + sim::pick(sectors - 1)).collect();
    borders.extend([0, sectors]);
    let borders: Vec<u32> =
        borders.into_iter().map(|sector| sector as u32 * SECTOR as u32).collect();
    let piece = |ends: &[u32]| (GuestAddr(at.0 + u64::from(ends[0])), ends[1] - ends[0]);
    borders.windows(2).map(piece).collect()
}

/// Memory of a read that was answered: nobody writes to it any more.
pub(crate) struct Rests(IoBuf);

impl Rests {
    const BYTE: u8 = 0xdd;

    pub(crate) fn new(buf: IoBuf) -> Rests {
        buf.fill(Rests::BYTE);
        Rests(buf)
    }

    /// It is to be used again.
    pub(crate) fn end(self) -> Result<(), String> {
        let mut bytes = vec![0; self.0.len()];
        self.0.read(0, &mut bytes);
        match bytes.iter().all(|byte| *byte == Rests::BYTE) {
            true => Ok(()),
            false => Err("the memory of a read was written to after its answer".to_owned()),
        }
    }
}

/// Every word of the buffer is the stamp.
pub(crate) fn fill(buf: IoBuf, stamp: Stamp) {
    let words: Vec<u8> = stamp.to_le_bytes().repeat(buf.len() / 8);
    buf.write(0, &words);
}

/// The stamp of each sector.
pub(crate) fn values(buf: IoBuf) -> Result<Vec<Stamp>, String> {
    let mut bytes = vec![0; buf.len()];
    buf.read(0, &mut bytes);
    stamps(&bytes)
}

/// The stamp of each sector.
pub(crate) fn stamps(bytes: &[u8]) -> Result<Vec<Stamp>, String> {
    let of = |sector: &[u8]| {
        let (words, _) = sector.as_chunks::<8>();
        let first = u64::from_le_bytes(words[0]);
        match words.iter().find(|word| u64::from_le_bytes(**word) != first) {
            None => Ok(first),
            Some(other) => {
                Err(format!("a sector has {first:#x} and {:#x} in it", u64::from_le_bytes(*other)))
            }
        }
    };
    bytes.chunks_exact(SECTOR as usize).map(of).collect()
}
