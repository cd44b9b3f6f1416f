//! A client that lies: rings that make no sense or change under the device, headers that are cut or mean nothing, memory that is taken away. It has a
//! disk of its own, and knows nothing of what it is answered; what it must not do is hurt anybody else.

use std::fs::File;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt as _;
use std::sync::Arc;

use dataplane::sim::{Front, Ring};
use memory::sim;
use vring::driver::{DriverAddresses, DriverConfig, DriverMemory, DriverRange};
use vring::{InflightRegion, RegionSpec, UserAddr};

use crate::client::SECTOR;
use crate::front::eventfd;

/// What its disk has.
pub(crate) const SECTORS: u64 = 16;
/// What it writes begins so, in each word: nobody else has such a value.
const MARK: u64 = 0xbad << 52;
/// Where its data lies, and room for it.
const DATA: usize = 8 << 10;
/// Steps of a run in which it does something.
pub(crate) const STEPS: u32 = 400;

/// Where it says that its memory is.
const PLACES: [UserAddr; 2] = [UserAddr(0x7e00_0000_0000), UserAddr(0x7e01_0000_0000)];

const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// How it lies, drawn for each of its visits.
#[derive(Debug, Clone, Copy)]
struct Habits {
    /// In parts of what it does: sensible requests, lies about chains, lies about the available ring, about the used ring, about what is in flight.
    weights: [usize; 5],
    /// Takes its memory away once in so many steps.
    truncates_every: u64,
    /// Sensible requests at once.
    burst: usize,
}

impl Habits {
    fn draw() -> Habits {
        let mut weights = [1 + sim::pick(8), 0, 0, 0, 0];
        for weight in &mut weights[1..] {
            *weight = if sim::once_in(2) { sim::pick(6) } else { 0 };
        }
        Habits { weights, truncates_every: [0, 0, 30, 200][sim::pick(4)], burst: 1 << sim::pick(7) }
    }
}

/// A ring as its driver has it: everything in it may be written at any time.
struct Loose {
    number: u16,
    size: u16,
    desc: DriverRange,
    avail: DriverRange,
    used: DriverRange,
    /// Headers, tables, and what is answered: a part of it for each head.
    room: DriverRange,
    kick: OwnedFd,
    call: OwnedFd,
    index: u16,
}

/// Bytes of room for each head.
const ROOM: usize = 512;

impl Loose {
    fn new(memory: &DriverMemory, number: u16, size: u16) -> Loose {
        let alloc = |len: usize| memory.alloc(len, 64).expect("room");
        let count = usize::from(size);
        let (desc, avail) = (alloc(16 * count), alloc(6 + 2 * count));
        let (used, room) = (alloc(6 + 8 * count), alloc(ROOM * count));
        let (kick, call) = (eventfd(), eventfd());
        Loose { number, size, desc, avail, used, room, kick, call, index: 0 }
    }

    fn says(&self) -> Ring {
        let mut index = [0; 2];
        self.used.buf.read(2, &mut index);
        Ring {
            number: self.number,
            size: self.size,
            addresses: DriverAddresses {
                desc: self.desc.user,
                avail: self.avail.user,
                used: self.used.user,
                used_guest: self.used.guest,
            },
            base: u16::from_le_bytes(index),
            kick: self.kick.try_clone().expect("a descriptor"),
            call: self.call.try_clone().expect("a descriptor"),
        }
    }

    fn describe(&self, at: u16, (addr, len): (u64, u32), flags: u16, next: u16) {
        let bytes = descriptor((addr, len), flags, next);
        self.desc.buf.write(16 * usize::from(at % self.size), &bytes);
    }

    /// What is written at a head's room, and where that is.
    fn put(&self, head: u16, at: usize, bytes: &[u8]) -> u64 {
        let at = ROOM * usize::from(head) + at;
        self.room.buf.write(at, bytes);
        self.room.guest.0 + at as u64
    }

    /// Makes a head available.
    fn offer(&mut self, head: u16) {
        let at = 4 + 2 * usize::from(self.index % self.size);
        self.avail.buf.write(at, &head.to_le_bytes());
        self.index = self.index.wrapping_add(1);
    }

    fn publish(&self) {
        self.avail.buf.write(2, &self.index.to_le_bytes());
        sim::bell();
        // Full when nobody has read it for ever.
        let _ = rustix::io::write(&self.kick, &1_u64.to_ne_bytes());
    }
}

fn descriptor((addr, len): (u64, u32), flags: u16, next: u16) -> [u8; 16] {
    let mut bytes = [0; 16];
    bytes[..8].copy_from_slice(&addr.to_le_bytes());
    bytes[8..12].copy_from_slice(&len.to_le_bytes());
    bytes[12..14].copy_from_slice(&flags.to_le_bytes());
    bytes[14..].copy_from_slice(&next.to_le_bytes());
    bytes
}

/// The client.
pub(crate) struct Liar {
    memory: Arc<DriverMemory>,
    bytes: u64,
    data: DriverRange,
    rings: Vec<Loose>,
    region: InflightRegion,
    kept: File,
    scsi: bool,
    habits: Habits,
    config: DriverConfig,
    /// What it has still to do.
    pub left: u32,
    stamps: u64,
}

impl Liar {
    pub(crate) fn new(scsi: bool, left: u32) -> Liar {
        let size = 1 << sim::pick(8);
        let bytes = (ROOM as u64 + 64) * 4 * size + (64 << 10);
        // Of two places, so that rings of an earlier life may lie in the memory of this one.
        let place = PLACES[sim::pick(PLACES.len())];
        let memory = Arc::new(DriverMemory::new(bytes).expect("memory").told_at(place));
        let data = memory.alloc(DATA, 512).expect("room");
        data.buf.write(0, &MARK.to_le_bytes().repeat(DATA / 8));
        let size = size as u16;
        let numbers = if scsi { vec![0, 2, 3] } else { vec![0] };
        let count = numbers.len() - if scsi { sim::pick(2) } else { 0 };
        let rings: Vec<Loose> =
            numbers[..count].iter().map(|number| Loose::new(&memory, *number, size)).collect();
        let last = numbers[count - 1];
        let (kept, region) = InflightRegion::create(last + 1, size).expect("a region");
        let (event_idx, indirect_max) = (sim::once_in(2), if sim::once_in(2) { 8 } else { 0 });
        let config = DriverConfig { size, event_idx, indirect_max, in_order: false };
        let (habits, stamps) = (Habits::draw(), 0);
        Liar { memory, bytes, data, rings, region, kept, scsi, habits, config, left, stamps }
    }

    /// Queues for I/O of its adapter.
    pub(crate) fn queues(&self) -> u16 {
        if self.scsi { 2 } else { 1 }
    }

    pub(crate) fn says(&self, in_bytes: bool) -> Front {
        let regions = self.memory.regions().expect("descriptors");
        let count = self.rings.iter().map(|ring| ring.number).max().expect("a ring") + 1;
        let kept = self.kept.try_clone().expect("a descriptor");
        let inflight =
            (!sim::once_in(4)).then(|| (self.region.clone(), kept, count, self.config.size));
        Front { config: self.config, regions, inflight, in_bytes }
    }

    pub(crate) fn rings(&self) -> Vec<Ring> {
        self.rings.iter().map(Loose::says).collect()
    }

    pub(crate) fn regions(&self) -> Vec<RegionSpec> {
        self.memory.regions().expect("descriptors")
    }

    pub(crate) fn a_queue(&self) -> u16 {
        self.rings[sim::pick(self.rings.len())].number
    }

    /// Something.
    pub(crate) fn step(&mut self) {
        if self.left == 0 {
            return;
        }
        self.left -= 1;
        if sim::once_in(self.habits.truncates_every) {
            return self.truncate();
        }
        let mut picked = sim::pick(self.habits.weights.iter().sum());
        let what = self.habits.weights.iter().position(|weight| {
            let here = picked < *weight;
            picked = picked.wrapping_sub(*weight);
            here
        });
        let ring = sim::pick(self.rings.len());
        match what {
            Some(0) => (0..=sim::pick(self.habits.burst)).for_each(|_| self.ask(ring)),
            Some(1) => self.chain(ring),
            Some(2) => self.available(ring),
            Some(3) => {
                // The device's part.
                let used = &self.rings[ring].used;
                let at = sim::pick(used.buf.len() - 2);
                used.buf.write(at, &(sim::pick(1 << 16) as u16).to_le_bytes());
            }
            _ => self.in_flight(),
        }
        if !sim::once_in(4) {
            self.rings[ring].publish();
        }
        if sim::once_in(4) {
            self.change();
        }
    }

    /// Its memory ends before.
    fn truncate(&mut self) {
        let bytes = sim::pick(1 + self.bytes as usize / 4096) as u64 * 4096;
        sim::tell(|| format!("liar: its memory has {bytes} bytes from now on"));
        sim::met("memory is truncated");
        self.memory.file().set_len(bytes).expect("a memfd");
    }

    /// A request such as others have, with a value of its own, mostly.
    fn ask(&mut self, ring: usize) {
        self.stamps += 1;
        let first = sim::pick(SECTORS as usize + 1) as u64;
        let count = 1 + sim::pick(4);
        let bytes = (count as u64 * SECTOR) as u32;
        let at = sim::pick(DATA / SECTOR as usize - count) as u64 * SECTOR;
        let data = (self.data.guest.0 + at, bytes);
        let scsi = self.scsi;
        let Loose { number, size, .. } = self.rings[ring];
        let ring = &mut self.rings[ring];
        let head = sim::pick(usize::from(size)) as u16;
        let rest = |steps: u16| (head + steps) % size;
        if scsi && number == 0 {
            let mut bytes = [0; 24];
            bytes[4] = sim::pick(8) as u8;
            bytes[8..16].copy_from_slice(&a_lun());
            bytes[16..].copy_from_slice(&(sim::pick(64) as u64).to_le_bytes());
            let out = ring.put(head, 0, &bytes);
            ring.describe(head, (out, cut(24)), NEXT, rest(1));
            ring.describe(rest(1), (out + 64, cut(1)), WRITE, 0);
        } else if scsi {
            let (cdb, write) = cdb(first, count);
            let mut header = [0; 51];
            header[..8].copy_from_slice(&a_lun());
            header[8..16].copy_from_slice(&(sim::pick(64) as u64).to_le_bytes());
            header[19..].copy_from_slice(&cdb);
            let out = ring.put(head, 0, &header);
            ring.describe(head, (out, cut(51)), NEXT, rest(1));
            let response = (out + 128, cut(108));
            if write {
                ring.describe(rest(1), data, NEXT, rest(2));
                ring.describe(rest(2), response, WRITE, 0);
            } else {
                ring.describe(rest(1), response, WRITE | NEXT, rest(2));
                ring.describe(rest(2), data, WRITE, 0);
            }
        } else {
            let kind = [0_u32, 1, 1, 1, 4, 8, 11, 13, 77][sim::pick(9)];
            let mut header = [0; 16];
            header[..4].copy_from_slice(&kind.to_le_bytes());
            header[8..].copy_from_slice(&odd(first).to_le_bytes());
            let out = ring.put(head, 0, &header);
            ring.describe(head, (out, cut(16)), NEXT, rest(1));
            let writes = if kind == 0 || kind == 8 { WRITE } else { 0 };
            ring.describe(rest(1), data, NEXT | writes, rest(2));
            ring.describe(rest(2), (out + 128, cut(1)), WRITE, 0);
        }
        ring.offer(head);
    }

    /// An address that is in its memory, at its edge, or nowhere.
    fn place(&self) -> u64 {
        let inside = 0x1_0000 + sim::pick(self.bytes as usize) as u64;
        match sim::pick(6) {
            0 => 0,
            1 => u64::MAX - sim::pick(4096) as u64,
            2 => 0x1_0000 + self.bytes - sim::pick(64) as u64,
            3 => 1 << sim::pick(64),
            _ => inside,
        }
    }

    fn length() -> u32 {
        [0, 1, 15, 16, 51, 512, 4096, 1 << 20, 1 << 31, u32::MAX][sim::pick(10)]
    }

    /// Descriptors that make no sense.
    fn chain(&mut self, at: usize) {
        let size = usize::from(self.rings[at].size);
        let head = sim::pick(size) as u16;
        for _ in 0..=sim::pick(6) {
            let near = (usize::from(head) + sim::pick(4)) % size;
            let flags = match sim::pick(8) {
                0 => INDIRECT,
                1 => sim::pick(1 << 16) as u16,
                _ => sim::pick(8) as u16,
            };
            // To itself, to one before, behind the end.
            let next = match sim::pick(4) {
                0 => near as u16,
                1 => sim::pick(1 << 16) as u16,
                _ => sim::pick(size) as u16,
            };
            let to = (self.place(), Liar::length());
            self.rings[at].describe(near as u16, to, flags, next);
        }
        if sim::once_in(3) {
            self.table(at, head);
        }
        self.rings[at].offer(head);
    }

    /// An indirect table that is wrong in some way: of an odd length, in itself, with a loop.
    fn table(&mut self, at: usize, head: u16) {
        let ring = &self.rings[at];
        let table = ring.put(head, 0, &[]);
        for entry in 0..8 {
            let to = if sim::once_in(3) { (table, 128) } else { (self.place(), Liar::length()) };
            let flags = if sim::once_in(4) { INDIRECT } else { sim::pick(4) as u16 };
            let next = if sim::once_in(3) { entry } else { sim::pick(12) as u16 };
            ring.put(head, 16 * usize::from(entry), &descriptor(to, flags, next));
        }
        let len = [0, 16, 17, 128, 128, 128, 4096, 1 << 24][sim::pick(8)];
        ring.describe(head, (table, len), INDIRECT | if sim::once_in(8) { NEXT } else { 0 }, head);
    }

    /// The available ring: heads that there are not, or that are under way, and an index that jumps.
    fn available(&mut self, at: usize) {
        let ring = &mut self.rings[at];
        match sim::pick(4) {
            0 => ring.offer(sim::pick(1 << 16) as u16),
            1 => ring.index = ring.index.wrapping_add(sim::pick(1 << 16) as u16),
            2 => (0..=sim::pick(2 * usize::from(ring.size))).for_each(|_| ring.offer(0)),
            _ => {
                let at = sim::pick(ring.avail.buf.len() - 2);
                ring.avail.buf.write(at, &(sim::pick(1 << 16) as u16).to_le_bytes());
            }
        }
    }

    /// What is in flight, as the server has written it.
    fn in_flight(&mut self) {
        let len = self.kept.metadata().expect("a memfd").len();
        let word = (sim::pick(1 << 16) as u64) << (8 * sim::pick(7));
        let at = sim::pick(len as usize - 8) as u64;
        self.kept.write_all_at(&word.to_le_bytes(), at).expect("a memfd");
    }

    /// What a device may be reading now becomes something else.
    fn change(&mut self) {
        let ring = &self.rings[sim::pick(self.rings.len())];
        let part = if sim::once_in(2) { &ring.desc } else { &ring.room };
        let at = sim::pick(part.buf.len() - 8);
        let word = if sim::once_in(2) { 0 } else { 1_u64 << sim::pick(64) };
        part.buf.write(at, &word.to_le_bytes());
    }
}

/// A length that is right, mostly.
fn cut(len: u32) -> u32 {
    if sim::once_in(16) { sim::pick(len as usize + 2) as u32 } else { len }
}

/// A place on its disk, mostly.
fn odd(first: u64) -> u64 {
    match sim::pick(12) {
        0 => u64::MAX - first,
        1 => 1 << sim::pick(64),
        _ => first,
    }
}

/// Its LUN, mostly.
fn a_lun() -> [u8; 8] {
    match sim::pick(8) {
        0 => [1, sim::pick(4) as u8, 0x40, sim::pick(4) as u8, 0, 0, 0, 0],
        1 => (sim::pick(1 << 30) as u64).to_le_bytes(),
        _ => crate::scsi::LUN,
    }
}

/// A command, and whether it writes.
fn cdb(first: u64, count: usize) -> ([u8; 32], bool) {
    let mut cdb = [0; 32];
    let ten = |cdb: &mut [u8; 32], code: u8| {
        cdb[0] = code;
        cdb[2..6].copy_from_slice(&(odd(first) as u32).to_be_bytes());
        cdb[8] = count as u8;
    };
    match sim::pick(6) {
        0 => ten(&mut cdb, 0x28),
        1 | 2 => ten(&mut cdb, 0x2a),
        3 => {
            // COMPARE AND WRITE, WRITE SAME, UNMAP, WRITE(16), PERSISTENT RESERVE OUT.
            cdb[0] = [0x89, 0x93, 0x42, 0x8a, 0x5f][sim::pick(5)];
            cdb[1..16].fill_with(|| if sim::once_in(3) { sim::pick(256) as u8 } else { 0 });
        }
        4 => cdb[0] = 0x35,
        _ => cdb.fill_with(|| sim::pick(256) as u8),
    }
    let write = matches!(cdb[0], 0x2a | 0x89 | 0x93 | 0x42 | 0x8a | 0x5f);
    (cdb, write != sim::once_in(16))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_its_memory_is_told_to_be_is_the_seeds_choice() {
        let liar = |seed| {
            sim::begin(seed, 0);
            let liar = Liar::new(true, 1);
            sim::end();
            liar
        };
        let told = |liar: &Liar| {
            let addresses = liar.rings()[0].addresses;
            (addresses.desc, addresses.avail, addresses.used, liar.regions()[0].user)
        };
        // All of them are there at the same time.
        let liars: Vec<(Liar, Liar)> = (0..32).map(|seed| (liar(seed), liar(seed))).collect();
        assert!(liars.iter().all(|(one, two)| told(one) == told(two)));
        // The next life's memory is where this one's is, or not.
        let ways = liars.windows(2).map(|two| told(&two[0].0).3 == told(&two[1].0).3);
        assert_eq!(ways.collect::<std::collections::BTreeSet<_>>().len(), 2);
    }
}
