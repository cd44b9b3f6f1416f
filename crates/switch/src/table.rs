//! The MAC table of one channel: which port a station was last seen behind.
//!
//! Open addressing over 16-byte keys and values in one block of memory; nothing is allocated after the start. Each channel has a table
//! of its own. What one learns it tells the others ([`crate::News`]), at most four times in an entry's life if nothing changes, so each
//! ages its entries by itself, and tables that missed nothing agree. A client's addresses fill no more than the client's
//! quota, whatever it sends; addresses beyond are not learned, and frames to them are flooded.

use crate::address::{Mac, Vid};
use crate::port::PortId;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Slot {
    /// 48 bits of address, 12 of VLAN; 0 is free, since no VLAN is 0.
    key: u64,
    port: PortId,
    generation: u16,
    seen_s: u32,
    told_s: u32,
}

const FREE: Slot = Slot { key: 0, port: PortId(0), generation: 0, seen_s: 0, told_s: 0 };

/// What came of learning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Learned {
    /// Nothing that others need to hear.
    Known,
    /// Something new, or old and to be said again.
    Tell,
    /// No room, or the port has its quota.
    Refused,
}

#[derive(Debug)]
pub(crate) struct MacTable {
    slots: Vec<Slot>,
    /// A bit for each slot that is taken: few enough to be at hand, so that an address that nobody has, as a rule, costs no look at the slots.
    taken: Vec<u64>,
    seed: u64,
    entries_max: usize,
    entries: usize,
    age_s: u32,
    ports: Vec<Owner>,
    sweep: usize,
    /// The last look-up and what it found: a run of frames to one station costs one.
    last: Option<(u64, u32, Option<PortId>)>,
    /// The last station that was heard: a run of frames of one costs one look-up, too.
    heard: Option<(u64, u32, PortId)>,
    /// Look-ups that went to the slots.
    pub(crate) probes: u64,
}

/// What the table knows of a port. Entries of another generation are void: a flush is one addition.
#[derive(Debug, Clone, Copy, Default)]
struct Owner {
    generation: u16,
    entries: usize,
}

fn key(mac: Mac, vid: Vid) -> u64 {
    mac.bits() << 12 | u64::from(vid.get())
}

impl MacTable {
    pub(crate) fn new(entries_max: usize, age_s: u32, seed: u64) -> MacTable {
        // Half full at most, so that probing stays short.
        let slots = vec![FREE; (entries_max.max(1) * 2).next_power_of_two()];
        let taken = vec![0; slots.len().div_ceil(64)];
        let ports = Vec::new();
        MacTable {
            slots,
            taken,
            seed,
            entries_max,
            entries: 0,
            age_s,
            ports,
            sweep: 0,
            last: None,
            heard: None,
            probes: 0,
        }
    }

    /// Makes room for what is known of a port.
    pub(crate) fn add_port(&mut self, port: PortId) {
        let wanted = usize::from(port.0) + 1;
        if self.ports.len() < wanted {
            self.ports.resize(wanted, Owner::default());
        }
    }

    /// Forgets all that was seen behind a port.
    pub(crate) fn flush(&mut self, port: PortId) {
        let owner = &mut self.ports[usize::from(port.0)];
        owner.entries = 0;
        owner.generation = owner.generation.wrapping_add(1);
        (self.last, self.heard) = (None, None);
        if owner.generation == 0 {
            // The numbers begin again: nothing of old may look like new.
            (0..self.slots.len()).for_each(|_| self.sweep_one(0, Some(port)));
        }
    }

    /// The port behind which the station is.
    #[inline]
    pub(crate) fn look_up(&mut self, now_s: u32, mac: Mac, vid: Vid) -> Option<PortId> {
        let key = key(mac, vid);
        if let Some((last, at, port)) = self.last
            && last == key
            && at == now_s
        {
            return port;
        }
        let (_, slot) = self.probe(key);
        let port = (slot.key != 0 && self.is_live(&slot, now_s)).then_some(slot.port);
        self.last = Some((key, now_s, port));
        port
    }

    /// A station was seen.
    pub(crate) fn learn(
        &mut self,
        now_s: u32,
        mac: Mac,
        vid: Vid,
        port: PortId,
        quota: usize,
    ) -> Learned {
        let key = key(mac, vid);
        if self.heard == Some((key, now_s, port)) {
            return Learned::Known;
        }
        let (at, slot) = self.probe(key);
        let live = slot.key != 0 && self.is_live(&slot, now_s);
        if live && slot.port == port {
            self.heard = Some((key, now_s, port));
            let slot = &mut self.slots[at];
            slot.seen_s = now_s;
            if now_s.wrapping_sub(slot.told_s) < (self.age_s / 4).max(1) {
                return Learned::Known;
            }
            slot.told_s = now_s;
            return Learned::Tell;
        }
        // A void entry of the same port counts for it no more, or is about to.
        let counted = slot.key != 0 && self.is_counted(&slot);
        let has =
            self.ports[usize::from(port.0)].entries - usize::from(counted && slot.port == port);
        if has >= quota || (slot.key == 0 && self.entries >= self.entries_max) {
            return Learned::Refused;
        }
        if counted {
            self.ports[usize::from(slot.port.0)].entries -= 1;
        }
        self.entries += usize::from(slot.key == 0);
        let owner = &mut self.ports[usize::from(port.0)];
        owner.entries += 1;
        let generation = owner.generation;
        self.slots[at] = Slot { key, port, generation, seen_s: now_s, told_s: now_s };
        self.taken[at / 64] |= 1 << (at % 64);
        (self.last, self.heard) = (None, Some((key, now_s, port)));
        Learned::Tell
    }

    /// Frees a part of what is void or too old; eight calls go through the whole table.
    pub(crate) fn age(&mut self, now_s: u32) {
        for _ in 0..self.slots.len().div_ceil(8) {
            self.sweep_one(now_s, None);
        }
    }

    /// Whether a station is known.
    pub(crate) fn knows(&self, now_s: u32, mac: Mac, vid: Vid) -> bool {
        let key = key(mac, vid);
        let (_, slot) = self.find(self.home(key), key);
        slot.key != 0 && self.is_live(&slot, now_s)
    }

    /// All stations that are known, and behind which port.
    pub(crate) fn stations(&self, now_s: u32) -> impl Iterator<Item = (Mac, Vid, PortId)> {
        let live = self.slots.iter().filter(move |slot| slot.key != 0 && self.is_live(slot, now_s));
        live.filter_map(|slot| {
            let [_, _, mac @ ..] = (slot.key >> 12).to_be_bytes();
            Some((Mac(mac), Vid::new((slot.key & 0xfff) as u16)?, slot.port))
        })
    }

    /// Entries of a port that are not void.
    pub(crate) fn entries(&self, port: PortId) -> usize {
        self.ports[usize::from(port.0)].entries
    }

    fn sweep_one(&mut self, now_s: u32, all_of: Option<PortId>) {
        self.sweep = (self.sweep + 1) & (self.slots.len() - 1);
        // What moves into the place of one that goes is looked at, too.
        loop {
            let slot = self.slots[self.sweep];
            // A place that is free names a port that may not be there.
            if slot.key == 0 {
                return;
            }
            let goes = match all_of {
                Some(port) => slot.port == port,
                None => !self.is_live(&slot, now_s),
            };
            if !goes {
                return;
            }
            self.remove(self.sweep);
        }
    }

    /// Takes an entry out, and closes the gap so that every probe still finds its own.
    fn remove(&mut self, mut gap: usize) {
        let slot = self.slots[gap];
        if self.is_counted(&slot) {
            self.ports[usize::from(slot.port.0)].entries -= 1;
        }
        self.entries -= 1;
        (self.last, self.heard) = (None, None);
        let mask = self.slots.len() - 1;
        let mut at = gap;
        loop {
            at = (at + 1) & mask;
            let slot = self.slots[at];
            if slot.key == 0 {
                break;
            }
            // It may move back if its home is not between the gap and its place.
            let distance = at.wrapping_sub(self.home(slot.key)) & mask;
            if distance >= at.wrapping_sub(gap) & mask {
                self.slots[gap] = slot;
                gap = at;
            }
        }
        self.slots[gap] = FREE;
        self.taken[gap / 64] &= !(1 << (gap % 64));
    }

    fn home(&self, key: u64) -> usize {
        // Both halves of the product (as wyhash folds): who does not know the seed cannot choose addresses that meet.
        let factor = 0x9e37_79b9_7f4a_7c15 ^ self.seed.rotate_left(32) | 1;
        let product = u128::from(key ^ self.seed) * u128::from(factor);
        ((product >> 64) as u64 ^ product as u64) as usize & (self.slots.len() - 1)
    }

    /// What [`MacTable::find`] says, which counts where it had to read a slot.
    fn probe(&mut self, key: u64) -> (usize, Slot) {
        let home = self.home(key);
        self.probes += u64::from(self.is_taken(home));
        self.find(home, key)
    }

    /// Its place and what stands there, or the free one where it would stand; looked for from its home on.
    fn find(&self, home: usize, key: u64) -> (usize, Slot) {
        let mut at = home;
        while self.is_taken(at) {
            let slot = self.slots[at];
            if slot.key == key {
                return (at, slot);
            }
            at = (at + 1) & (self.slots.len() - 1);
        }
        (at, FREE)
    }

    fn is_taken(&self, at: usize) -> bool {
        self.taken[at / 64] & 1 << (at % 64) != 0
    }

    /// Whether it is of its port's present generation, and so in the port's count.
    fn is_counted(&self, slot: &Slot) -> bool {
        self.ports[usize::from(slot.port.0)].generation == slot.generation
    }

    fn is_live(&self, slot: &Slot, now_s: u32) -> bool {
        self.is_counted(slot) && now_s.wrapping_sub(slot.seen_s) < self.age_s
    }
}
