//! A driver of a virtio block device: it sends, kicks, sleeps until it is notified, and judges every answer.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::sync::Arc;

use memory::{IoBuf, sim};
use rustix::event::EventfdFlags;
use vring::driver::{AddError, DriverConfig, DriverMemory, DriverQueue, DriverRange, Segment};
use vring::{GuestAddr, InflightRegion, MemTable, QueueConfig};

use crate::oracle::{Disk, Stamp, Ticket};

pub const SECTOR: u64 = 512;

/// How a driver behaves, drawn from the seed.
#[derive(Debug, Clone)]
pub struct Habits {
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
    pub fn draw() -> Habits {
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
            depth: 1 + sim::pick(usize::from(size)),
            sectors_max: 1 << sim::pick(6),
            weights,
        }
    }
}

enum Asked {
    Read(Ticket, std::ops::Range<u64>),
    Write(Ticket),
    Flush,
}

struct Place {
    /// Header, and what a range has.
    out: DriverRange,
    data: DriverRange,
    status: DriverRange,
}

/// A queue of a client.
pub struct Client {
    pub name: String,
    pub habits: Habits,
    pub disk: Rc<RefCell<Disk>>,
    pub sectors: u64,
    driver: DriverQueue,
    memory: Arc<DriverMemory>,
    pub region: InflightRegion,
    kick: OwnedFd,
    call: OwnedFd,
    places: Vec<Place>,
    free: Vec<usize>,
    sent: BTreeMap<u64, Asked>,
    next: u64,
    pub left: u32,
    pub answered: u32,
    pub failed: u32,
    owes_kick: bool,
    asleep: bool,
    /// How many bells had rung when it last looked.
    heard: u64,
    stamps: Rc<RefCell<Stamp>>,
    pub wrong: Option<String>,
}

fn eventfd() -> OwnedFd {
    rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK).expect("an eventfd")
}

impl Client {
    pub fn new(
        name: String,
        habits: Habits,
        disk: &Rc<RefCell<Disk>>,
        sectors: u64,
        stamps: &Rc<RefCell<Stamp>>,
        left: u32,
    ) -> Client {
        let data = (habits.sectors_max * SECTOR) as usize;
        let bytes = (habits.depth * (data + 8192)) as u64 + (256 << 10);
        let memory = Arc::new(DriverMemory::new(bytes).expect("memory"));
        let config = DriverConfig {
            size: habits.size,
            event_idx: habits.event_idx,
            indirect_max: if habits.indirect { 8 } else { 0 },
            in_order: habits.in_order,
        };
        let driver = DriverQueue::new(&memory, config).expect("a queue");
        let region = InflightRegion::create(1, habits.size).expect("a region").1;
        let place = |_| Place {
            out: memory.alloc(64, 64).expect("room"),
            data: memory.alloc(data, 4096).expect("room"),
            status: memory.alloc(1, 1).expect("room"),
        };
        let places: Vec<Place> = (0..habits.depth).map(place).collect();
        Client {
            name,
            disk: Rc::clone(disk),
            sectors,
            driver,
            region,
            kick: eventfd(),
            call: eventfd(),
            free: (0..places.len()).collect(),
            places,
            memory,
            sent: BTreeMap::new(),
            next: 0,
            left,
            answered: 0,
            failed: 0,
            owes_kick: false,
            asleep: false,
            heard: u64::MAX,
            stamps: Rc::clone(stamps),
            wrong: None,
            habits,
        }
    }

    pub fn under_way(&self) -> usize {
        self.sent.len()
    }

    /// What the front end tells a server.
    pub fn config(&self, with_region: bool) -> (QueueConfig, Arc<MemTable>) {
        let inflight = with_region.then(|| self.region.queue(0).expect("the first"));
        let table = Arc::new(self.memory.table().expect("a second mapping"));
        let config = QueueConfig { inflight, ..self.driver.device_config() };
        (config, table)
    }

    pub fn kick(&self) -> OwnedFd {
        self.kick.try_clone().expect("a descriptor")
    }

    pub fn call(&self) -> OwnedFd {
        self.call.try_clone().expect("a descriptor")
    }

    fn notified(&mut self) -> bool {
        let bells = sim::bells();
        if std::mem::replace(&mut self.heard, bells) == bells {
            return false;
        }
        let mut count = [0; 8];
        rustix::io::read(&self.call, &mut count).is_ok()
    }

    /// Something, or nothing; whether it did something.
    pub fn step(&mut self) -> bool {
        if self.wrong.is_some() {
            return false;
        }
        if self.owes_kick {
            self.owes_kick = false;
            sim::tell(|| format!("{}: kicks", self.name));
            sim::bell();
            let written = rustix::io::write(&self.kick, &1_u64.to_ne_bytes());
            assert!(written.is_ok(), "{written:?}");
            return true;
        }
        if self.asleep {
            if !self.notified() {
                return false;
            }
            self.asleep = false;
            self.driver.disable_interrupts();
        }
        match sim::pick(3) {
            0 => self.poll(),
            1 if self.left > 0 && !self.free.is_empty() => {
                let most = self.free.len().min(self.left as usize);
                for _ in 0..=sim::pick(most) {
                    self.send();
                }
                self.owes_kick = self.driver.publish();
                true
            }
            _ => {
                let worked = self.poll();
                if !worked && self.wrong.is_none() && !self.sent.is_empty() {
                    self.asleep = !self.driver.enable_interrupts();
                }
                worked
            }
        }
    }

    fn poll(&mut self) -> bool {
        let mut worked = false;
        for _ in 0..=sim::pick(8) {
            match self.driver.poll() {
                Ok(None) => break,
                Ok(Some(completion)) => {
                    worked = true;
                    if let Err(wrong) = self.judge(completion.token, completion.written) {
                        self.wrong = Some(format!("{}: {wrong}", self.name));
                        break;
                    }
                }
                Err(error) => {
                    self.wrong = Some(format!("{}: the used ring: {error}", self.name));
                    break;
                }
            }
        }
        worked
    }

    fn send(&mut self) {
        if self.left == 0 {
            return;
        }
        let Some(at) = self.free.pop() else { return };
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
                let added = self.driver.add(&[head], &writable, token, indirect);
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
                let added = self.driver.add(&readable, &[status], token, indirect);
                let ticket = disk.write(sectors.clone(), stamp, false);
                sim::tell(|| format!("{}: asks to write {sectors:?} with {stamp}", self.name));
                (added, Asked::Write(ticket))
            }
            Some(2) => {
                header(4, 0);
                (self.driver.add(&[head], &[status], token, indirect), Asked::Flush)
            }
            discard => {
                let discard = discard == Some(4);
                header(if discard { 11 } else { 13 }, 0);
                let mut range = [0; 16];
                range[..8].copy_from_slice(&first.to_le_bytes());
                range[8..12].copy_from_slice(&(count as u32).to_le_bytes());
                place.out.buf.write(16, &range);
                let range = (GuestAddr(place.out.guest.0 + 16), 16);
                let added = self.driver.add(&[head, range], &[status], token, indirect);
                let ticket = disk.write(sectors.clone(), 0, discard);
                (added, Asked::Write(ticket))
            }
        };
        match added {
            Ok(head) => {
                sim::tell(|| {
                    format!("{}: head {} is request {token:#x} on {sectors:?}", self.name, head.0)
                });
                self.sent.insert(token, asked);
                self.next += 1;
                self.left -= 1;
            }
            Err(AddError::Full | AddError::TooLong) => {
                // It never was.
                match asked {
                    Asked::Read(ticket, _) => disk.was_read(ticket, None).expect("no values"),
                    Asked::Write(ticket) => disk.forget(ticket),
                    Asked::Flush => {}
                }
                self.free.push(at);
            }
            Err(AddError::Empty) => unreachable!("a request has a header"),
        }
    }

    fn judge(&mut self, token: u64, written: u32) -> Result<(), String> {
        let asked =
            self.sent.remove(&token).ok_or_else(|| format!("{token:#x} came back twice"))?;
        let at = (token & 0xffff) as usize;
        let place = &self.places[at];
        let mut status = [0];
        place.status.buf.read(0, &mut status);
        sim::tell(|| format!("{}: request {token:#x} is answered with {}", self.name, status[0]));
        sim::seen(token ^ u64::from(status[0]));
        let done = match status[0] {
            0 => true,
            1 => false,
            2 => false,
            other => return Err(format!("request {token:#x} has status {other:#x}")),
        };
        self.answered += 1;
        self.failed += u32::from(!done);
        let mut disk = self.disk.borrow_mut();
        match asked {
            Asked::Flush => {}
            Asked::Write(ticket) => disk.written(ticket, done),
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
            }
        }
        drop(disk);
        self.free.push(at);
        Ok(())
    }
}

/// A buffer in up to three pieces.
fn cut(at: GuestAddr, len: u32) -> Vec<Segment> {
    let sectors = (len / SECTOR as u32) as usize;
    if sectors < 2 || sim::once_in(2) {
        return vec![(at, len)];
    }
    let first = (1 + sim::pick(sectors - 1)) as u32 * SECTOR as u32;
    vec![(at, first), (GuestAddr(at.0 + u64::from(first)), len - first)]
}

/// Every word of the buffer is the stamp.
fn fill(buf: IoBuf, stamp: Stamp) {
    let words: Vec<u8> = stamp.to_le_bytes().repeat(buf.len() / 8);
    buf.write(0, &words);
}

/// The stamp of each sector.
fn values(buf: IoBuf) -> Result<Vec<Stamp>, String> {
    let mut bytes = vec![0; buf.len()];
    buf.read(0, &mut bytes);
    stamps(&bytes)
}

/// The stamp of each sector.
pub fn stamps(bytes: &[u8]) -> Result<Vec<Stamp>, String> {
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
