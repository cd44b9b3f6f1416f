//! Layers: what was written to an LU after a snapshot of it, packed, so that a small write takes little space and copies nothing.
//!
//! An LU has a *space* of its own, where byte n of the LU is byte n of the space. When a snapshot is made, that space is written to no more, and a new *layer* is laid over it: the LU's *head*. A layer has
//! *containers*, which are chunks like others, and what is written is appended to them in *slots* of 32 KiB, one for each such part of the LU that is touched. A slot says by bits which of its 64 sectors are *present*;
//! the others are looked for in what is beneath, down to the space of an LU. So a request of any size writes what it has and nothing else.
use std::collections::BTreeMap;

use crate::format::{CHUNK_BYTES, Kind, PAGE_BYTES, Record};

/// What a slot of a layer has room for: a part of an LU.
pub const PART_BYTES: u64 = 32 << 10;
/// What a bit of a slot is of.
pub const SECTOR: u64 = 512;
/// Parts in a chunk of an LU.
pub const PARTS: u64 = CHUNK_BYTES / PART_BYTES;
/// Slots of a container, behind the two places of the page that says what is in them.
pub(crate) const SLOTS: u32 = 2000;
const FIRST: u64 = 2 * PAGE_BYTES as u64;

/// Where a part of an LU is in a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Placed {
    /// Number of the slot in the layer.
    pub(crate) slot: u32,
    /// The sectors that are there.
    pub(crate) present: u64,
}

impl Placed {
    /// The container.
    pub(crate) fn container(self) -> u32 {
        self.slot / SLOTS
    }

    /// The first byte of the slot, from the beginning of its container.
    pub(crate) fn at(self) -> u64 {
        FIRST + u64::from(self.slot % SLOTS) * PART_BYTES
    }
}

/// Where a slot of a layer is: its container, and the first byte of it there.
#[must_use]
pub fn slot_place(slot: u32) -> (u32, u64) {
    let placed = Placed { slot, present: 0 };
    (placed.container(), placed.at())
}

/// The slot of a layer in which a byte of a container is, and which byte of the slot it is; none if it is in no slot.
pub(crate) fn slot_at(container: u32, at: u64) -> Option<(u32, u64)> {
    let slot = at.checked_sub(FIRST)? / PART_BYTES;
    let number = u64::from(container) * u64::from(SLOTS) + slot;
    (slot < SLOTS.into()).then_some((number as u32, (at - FIRST) % PART_BYTES))
}

/// The sectors from a byte of a part on, a bit each.
#[must_use]
pub fn sectors(at: u64, bytes: u64) -> u64 {
    let (first, end) = (at / SECTOR, (at + bytes).div_ceil(SECTOR));
    if end <= first {
        return 0;
    }
    (u64::MAX >> (64 - (end - first))) << first
}

/// Containers that a layer over so many chunks has at most.
pub(crate) fn containers(chunks: u32) -> u32 {
    (u64::from(chunks) * PARTS).div_ceil(u64::from(SLOTS)) as u32
}

/// Chunks of LUs above it for which a layer with so many containers has room.
#[must_use]
pub fn chunks_above(containers: u32) -> u32 {
    (u64::from(containers) * u64::from(SLOTS) / PARTS) as u32
}

/// What is in all layers, as the journal has it.
#[derive(Debug, Default)]
pub(crate) struct Parts {
    /// By layer and part of the LU.
    placed: BTreeMap<(u32, u64), Placed>,
    /// The part that a slot of a layer has.
    slots: BTreeMap<(u32, u32), u64>,
}

impl Parts {
    /// Where a part is.
    pub(crate) fn get(&self, layer: u32, part: u64) -> Option<Placed> {
        self.placed.get(&(layer, part)).copied()
    }

    /// The part that a slot has.
    pub(crate) fn in_slot(&self, layer: u32, slot: u32) -> Option<u64> {
        self.slots.get(&(layer, slot)).copied()
    }

    /// The slots of a layer that have something.
    pub(crate) fn slots(&self, layer: u32) -> impl Iterator<Item = u32> {
        self.slots.range((layer, 0)..=(layer, u32::MAX)).map(|((_, slot), _)| *slot)
    }

    /// Those of a range of layers and numbers.
    pub(crate) fn range(
        &self,
        range: std::ops::Range<(u32, u64)>,
    ) -> impl Iterator<Item = (&(u32, u64), &Placed)> {
        self.placed.range(range)
    }

    /// The first slot of a layer behind all that are used.
    pub(crate) fn end(&self, layer: u32) -> u32 {
        self.slots
            .range((layer, 0)..=(layer, u32::MAX))
            .next_back()
            .map_or(0, |((_, slot), _)| slot + 1)
    }

    /// A part is there; false if that contradicts what is known.
    pub(crate) fn put(&mut self, layer: u32, part: u64, placed: Placed) -> bool {
        let before = self.placed.get(&(layer, part));
        let there = self.slots.get(&(layer, placed.slot));
        if before.is_some_and(|before| before.slot != placed.slot)
            || there.is_some_and(|there| *there != part)
        {
            return false;
        }
        self.placed.insert((layer, part), placed);
        self.slots.insert((layer, placed.slot), part);
        true
    }

    /// A layer is no more.
    pub(crate) fn remove(&mut self, layer: u32) {
        let placed = self.placed.range((layer, 0)..=(layer, u64::MAX)).map(|(key, _)| *key);
        for key in placed.collect::<Vec<_>>() {
            self.placed.remove(&key);
        }
        let slots = self.slots.range((layer, 0)..=(layer, u32::MAX)).map(|(key, _)| *key);
        for key in slots.collect::<Vec<_>>() {
            self.slots.remove(&key);
        }
    }

    /// The records of the page of a container: record n is of its slot n.
    pub(crate) fn page(&self, layer: u32, container: u32) -> Vec<Record> {
        let first = container * SLOTS;
        let slots = self.slots.range((layer, first)..(layer, first + SLOTS));
        let mut records = Vec::new();
        for ((_, slot), part) in slots {
            records.resize((slot - first) as usize, Record::of(Kind::None));
            records.extend(self.get(layer, *part).map(|placed| record(layer, *part, placed)));
        }
        records
    }
}

/// What is said of a part.
pub(crate) fn record(layer: u32, part: u64, placed: Placed) -> Record {
    Record {
        lu: layer,
        vchunk: (part / PARTS) as u32,
        generation: (part % PARTS) as u16,
        chunk: placed.slot,
        epoch: placed.present,
        ..Record::of(Kind::Part)
    }
}

/// The part of which a record says something, and where it is.
pub(crate) fn part_of(record: &Record) -> (u64, Placed) {
    let part = u64::from(record.vchunk) * PARTS + u64::from(record.generation);
    (part, Placed { slot: record.chunk, present: record.epoch })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_has_all_of_a_part() {
        let placed = Placed { slot: 5 * SLOTS + 7, present: sectors(512, 4096) };
        let part = 9 * PARTS + 2047;
        assert_eq!(part_of(&record(3, part, placed)), (part, placed));
        assert_eq!((placed.container(), placed.present), (5, 0x1fe));
        assert_eq!(placed.at(), (128 << 10) + 7 * PART_BYTES);
        assert_eq!((sectors(0, PART_BYTES), sectors(0, 0)), (u64::MAX, 0));
    }

    #[test]
    fn containers_have_room_for_every_part_and_their_page() {
        assert!(FIRST + u64::from(SLOTS) * PART_BYTES <= CHUNK_BYTES);
        assert!(SLOTS as usize <= crate::format::PAGE_RECORDS);
        for chunks in [1, 2, 41, 42, 1000] {
            let most = u64::from(containers(chunks)) * u64::from(SLOTS);
            assert!(most >= u64::from(chunks) * PARTS);
            assert!(most - u64::from(chunks) * PARTS < SLOTS.into());
            assert!(chunks_above(containers(chunks)) >= chunks);
        }
        // A write of 4 KiB takes at most 16 times its space, with what a container wastes.
        assert!(CHUNK_BYTES.div_ceil(SLOTS.into()) <= 16 * 4096);
    }

    #[test]
    fn a_page_has_what_is_in_a_container() {
        let mut parts = Parts::default();
        let put = [(4, 0), (70_000, 2), (9, SLOTS + 1)];
        for (part, slot) in put {
            assert!(parts.put(3, part, Placed { slot, present: part + 1 }));
        }
        assert!(!parts.put(3, 4, Placed { slot: 1, present: 1 }), "in two slots");
        assert!(!parts.put(3, 5, Placed { slot: 0, present: 1 }), "two in a slot");
        assert_eq!((parts.end(3), parts.end(2)), (SLOTS + 2, 0));
        let mut again = Parts::default();
        for container in 0..2 {
            let page = parts.page(3, container);
            for (index, record) in (0..).zip(&page).filter(|(_, record)| record.kind == Kind::Part)
            {
                let (part, placed) = part_of(record);
                assert_eq!(placed.slot, container * SLOTS + index);
                assert!(again.put(3, part, placed));
            }
        }
        assert_eq!((&again.placed, &again.slots), (&parts.placed, &parts.slots));
        parts.remove(3);
        assert!(parts.placed.is_empty() && parts.slots.is_empty());
    }
}
