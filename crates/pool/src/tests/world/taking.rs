//! Channels that take slots of layers by themselves.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard};

use super::super::disk::{SECTOR, Write};
use super::super::oracle::stamp;
use super::{Flying, World};
use crate::format::{BLOCK_BYTES, CHUNK_BYTES};
use crate::layers::{PART_BYTES, PARTS, sectors, slot_place};
use crate::pool::{Channels, Extent, KeptPart, Request, Shadow, Way};

/// What channels and the pool's shell have in common.
#[derive(Debug, Default)]
struct Words {
    offered: BTreeMap<u32, Range<u32>>,
    /// By layer and part: the slot that a channel has taken, and the sectors that are present.
    taken: BTreeMap<(u32, u64), (u32, u64)>,
    closed: BTreeSet<(u32, u64)>,
}

#[derive(Clone, Debug, Default)]
struct Common(Arc<Mutex<Words>>);

impl Common {
    fn words(&self) -> MutexGuard<'_, Words> {
        self.0.lock().unwrap()
    }
}

impl Channels for Common {
    fn close(&self, layer: u32, part: u64) -> Option<u32> {
        let mut words = self.words();
        let taken = words.taken.get(&(layer, part)).map(|(slot, _)| *slot);
        if taken.is_none() {
            words.closed.insert((layer, part));
        }
        taken
    }

    fn withdraw(&self, layer: u32) -> Range<u32> {
        self.words().offered.remove(&layer).unwrap_or_default()
    }
}

#[derive(Default)]
pub(in super::super) struct Taking {
    common: Common,
    /// What they write, by request.
    writes: BTreeMap<u64, Vec<KeptPart>>,
    /// What they have written, of which the pool was not told.
    untold: Vec<KeptPart>,
    /// It is not told before a drain is over.
    pub(in super::super) is_late: bool,
    /// How often they have taken one, and written in one.
    pub(in super::super) taken: u32,
    pub(in super::super) written: u32,
}

impl World {
    /// Whether a channel does a request by itself that writes to a slot in the head of an LU, which it takes if there is none.
    pub(super) fn takes(&mut self, tag: u64, request: &Request) -> bool {
        let Request::Write { extent, durable: false } = request else { return false };
        let Some((pv, at)) = self.take(tag, extent) else { return false };
        let bytes = Rc::new(stamp(extent.lu, tag).repeat(extent.bytes as usize / SECTOR));
        self.flying.push_back(Flying::Channel(tag, Write { pv, at, bytes }));
        true
    }

    fn take(&mut self, tag: u64, extent: &Extent) -> Option<(u16, u64)> {
        let Extent { lu, at, bytes } = *extent;
        let (part, within) = (at / PART_BYTES, at % PART_BYTES);
        let count = (within + bytes).div_ceil(PART_BYTES);
        // Now and then the pool does it.
        if tag.is_multiple_of(2) || bytes == 0 || at % CHUNK_BYTES + bytes > CHUNK_BYTES {
            return None;
        }
        let layer = *self.pool.beneath(lu)?.first()?;
        let mut words = self.taking.common.words();
        let known = self.pool.kept_parts(layer, (part / PARTS) as u32);
        let slot_of = |words: &Words, part| {
            let known = known.iter().find(|kept| kept.part == part).map(|kept| kept.slot);
            known.or(words.taken.get(&(layer, part)).map(|(slot, _)| *slot))
        };
        let slot = match slot_of(&words, part) {
            Some(slot) if count == 1 => slot,
            _ => {
                let nowhere = |part| {
                    slot_of(&words, part).is_none() && !words.closed.contains(&(layer, part))
                };
                if !(part..part + count).all(nowhere) {
                    return None;
                }
                let offered = words.offered.entry(layer).or_default();
                if offered.len() < count as usize {
                    self.pool.withdraw(layer, std::mem::take(offered));
                    *offered = self.pool.offer(lu, 5)?.1;
                }
                let slot = offered.start;
                if offered.len() < count as usize {
                    return None;
                }
                offered.start += count as u32;
                self.taking.taken += count as u32;
                slot
            }
        };
        for (part, slot) in (part..part + count).zip(slot..) {
            words.taken.entry((layer, part)).or_insert((slot, 0));
        }
        let (container, first) = slot_place(slot);
        let shown = self.pool.shown(layer, container);
        let Way::There(id) = shown.beneath else { return None };
        let (_, _, bits) = shown.kept.into_iter().find(|(kept, ..)| *kept == id)?;
        let blocks = (first + within) / BLOCK_BYTES..(first + within + bytes).div_ceil(BLOCK_BYTES);
        let mut blocks = blocks.map(|block| block as usize);
        if !blocks.all(|block| bits[block / 32] >> (block % 32) & 1 == 1) {
            return None;
        }
        let kept = |(part, slot): (u64, u32)| {
            let from = at.max(part * PART_BYTES);
            let end = (at + bytes).min((part + 1) * PART_BYTES);
            KeptPart { layer, part, slot, present: sectors(from % PART_BYTES, end - from) }
        };
        let all = (part..part + count).zip(slot..).map(kept).collect();
        self.taking.writes.insert(tag, all);
        Some((id.pv, CHUNK_BYTES * u64::from(id.chunk) + first + within))
    }

    /// A channel has written something; or could not.
    pub(super) fn has_taken(&mut self, tag: u64, done: bool) {
        let Some(all) = self.taking.writes.remove(&tag).filter(|_| done) else { return };
        let mut words = self.taking.common.words();
        for kept in &all {
            words.taken.get_mut(&(kept.layer, kept.part)).unwrap().1 |= kept.present;
        }
        self.taking.untold.extend(all);
        self.taking.written += 1;
    }

    /// The pool is told.
    pub(super) fn tell(&mut self) {
        self.taking.untold.drain(..).for_each(|kept| self.pool.took(&kept));
    }

    /// What a successor finds, with what channels have left.
    pub(in super::super) fn shadow(&self) -> Shadow {
        let words = self.taking.common.words();
        let taken = words.taken.iter().filter(|(_, (_, present))| *present != 0);
        self.pool.shadow().with_parts(taken.map(|((layer, part), (slot, present))| KeptPart {
            layer: *layer,
            part: *part,
            slot: *slot,
            present: *present,
        }))
    }

    /// The pool begins to serve, and channels know of nothing.
    pub(super) fn start(&mut self) {
        let Taking { is_late, taken, written, .. } = self.taking;
        self.taking = Taking { is_late, taken, written, ..Taking::default() };
        self.pool.set_channels(Box::new(self.taking.common.clone()));
        self.pool.start();
        self.changed = true;
        self.collect();
    }

    /// Whether a channel writes in a slot.
    pub(in super::super) fn is_taking(&self) -> bool {
        !self.taking.writes.is_empty()
    }

    /// That is offered now.
    pub(in super::super) fn offered(&self, layer: u32, slots: Range<u32>) {
        self.taking.common.words().offered.insert(layer, slots);
    }

    /// Channels give back what they have not taken.
    pub(in super::super) fn withdraw(&mut self) {
        let offered = std::mem::take(&mut self.taking.common.words().offered);
        offered.into_iter().for_each(|(layer, slots)| self.pool.withdraw(layer, slots));
    }
}
