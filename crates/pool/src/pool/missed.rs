//! What a leg lacks that is away, by block: so that one that returns gets that, and not all of its chunk.
//!
//! ```text
//! a write is over ──► what it wrote is *cached* on the PVs of its legs ── a flush of the PV that was given out later ──► it is durable there
//! a PV is lost ──► of each chunk that had a leg there it is remembered where that was, and as missed what was cached or under way
//!      └─ what is written to these chunks is missed as well ── the PV returns ──► where a leg was it is made again ([`super::mends`]): of what is written, what was missed is copied
//! ```
//!
//! A leg that was remembered is made again as one that was never there: its chunk is free until a record maps it, after a flush of its PV. That it has most of what is to be copied is
//! nothing that a PV says. So all of this is in memory alone: who opens a pool remembers nothing, and copies whole chunks.
//!
//! What is remembered ends with the copy of that leg and not before: one that is lost again while it is copied lacks what it lacked, and what was written meanwhile. It ends as well when somebody else gets its place,
//! when the chunk is nowhere any more, and when legs that were lost may have differed ([`super::mends`]).

use super::*;
use crate::tables::Entry;

/// Legs that are remembered, at most: of 64 TiB. Others are made anew.
const LEGS_MAX: usize = 1 << 20;
/// Of so many it is known that they missed something, and what: 128 bytes each, and 4 TiB of chunks that were written to while a leg of them was away.
const BITS_MAX: usize = 1 << 16;
/// Chunks of a PV of which something is cached, before it is flushed for that.
const CACHED_MAX: usize = 1 << 14;

/// Blocks, by chunk of a PV.
type Blocks = BTreeMap<u32, Bits>;

/// What a PV would lose without power.
#[derive(Debug, Default)]
struct Cache {
    /// Written, and no flush was given out since.
    open: Blocks,
    /// … what flushes make durable that are under way, the oldest first.
    sealed: VecDeque<(u64, Blocks)>,
    /// … a flush of it failed, and nobody knows.
    unsure: Blocks,
}

/// A leg on a PV that is away, or is there again and the leg is not.
#[derive(Debug)]
struct Remembered {
    place: Entry,
    /// Blocks that it lacks, if there are any.
    missed: Option<Box<Bits>>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Missed {
    caches: BTreeMap<u16, Cache>,
    legs: BTreeMap<(u32, u32), Remembered>,
    /// How many of them lack something.
    lacking: usize,
    /// Where legs were whose PVs are there again: nobody has had these chunks since.
    kept: BTreeMap<ChunkId, (u32, u32)>,
}

fn add(all: &mut Blocks, chunk: u32, blocks: Bits) {
    let known = all.entry(chunk).or_default();
    *known = known.or(blocks);
}

impl Missed {
    /// Something was written. Whether there is much of it on a PV, and nobody flushes that.
    fn cache(&mut self, id: ChunkId, blocks: Bits) -> bool {
        let cache = self.caches.entry(id.pv).or_default();
        add(&mut cache.open, id.chunk, blocks);
        cache.open.len() > CACHED_MAX && cache.sealed.is_empty()
    }

    /// A flush of a PV is given out.
    pub(super) fn flushes(&mut self, pv: u16, op: u64) {
        let Some(cache) = self.caches.get_mut(&pv) else { return };
        if !(cache.open.is_empty() && cache.sealed.is_empty()) {
            cache.sealed.push_back((op, std::mem::take(&mut cache.open)));
        }
    }

    /// Something is over that was given out for a PV; if it is a flush, what was written before it is durable, or nobody knows.
    pub(super) fn is_over(&mut self, pv: u16, op: u64, well: bool) {
        let Some(cache) = self.caches.get_mut(&pv) else { return };
        let Ok(at) = cache.sealed.binary_search_by_key(&op, |(of, _)| *of) else { return };
        if well {
            cache.sealed.drain(..=at);
        } else if let Some((_, blocks)) = cache.sealed.remove(at) {
            blocks.into_iter().for_each(|(chunk, blocks)| add(&mut cache.unsure, chunk, blocks));
        }
    }

    /// Whether a flush has failed of what was written to a chunk of a PV.
    pub(super) fn is_unsure(&self, id: ChunkId) -> bool {
        self.caches.get(&id.pv).is_some_and(|cache| cache.unsure.contains_key(&id.chunk))
    }

    fn take_cache(&mut self, pv: u16) -> Blocks {
        let Cache { open: mut all, sealed, unsure } = self.caches.remove(&pv).unwrap_or_default();
        let more = sealed.into_iter().flat_map(|(_, blocks)| blocks).chain(unsure);
        more.for_each(|(chunk, blocks)| add(&mut all, chunk, blocks));
        all
    }

    /// A leg is away.
    fn remember(&mut self, key: (u32, u32), place: Entry) {
        if self.legs.get(&key).is_some_and(|known| known.place != place) {
            self.forget(key);
        }
        if self.legs.len() < LEGS_MAX {
            self.legs.entry(key).or_insert(Remembered { place, missed: None });
        }
    }

    /// Something is written to a chunk: if a leg of it is away, that misses it.
    pub(super) fn is_written(&mut self, key: (u32, u32), blocks: Bits) {
        let Some(leg) = self.legs.get_mut(&key).filter(|_| !blocks.is_empty()) else { return };
        match &mut leg.missed {
            Some(missed) => **missed = missed.or(blocks),
            None if self.lacking < BITS_MAX => {
                self.lacking += 1;
                leg.missed = Some(Box::new(blocks));
            }
            None => self.forget(key),
        }
    }

    /// Nothing is known of the leg that a chunk had.
    pub(super) fn forget(&mut self, key: (u32, u32)) {
        if let Some(leg) = self.legs.remove(&key) {
            self.lacking -= usize::from(leg.missed.is_some());
            if let Some(id) = leg.place.chunk() {
                self.kept.remove(&id);
            }
        }
    }

    /// Somebody gets a chunk: it is where a leg was no longer.
    pub(super) fn is_taken(&mut self, id: ChunkId) {
        if let Some(key) = self.kept.get(&id).copied() {
            self.forget(key);
        }
    }

    /// A PV does not return.
    pub(super) fn forget_pv(&mut self, pv: u16) {
        self.caches.remove(&pv);
        self.forget_legs(pv, |_, _| false);
    }

    fn forget_legs(&mut self, pv: u16, stays: impl Fn((u32, u32), ChunkId) -> bool) {
        let there = |(key, leg): (&(u32, u32), &Remembered)| {
            let id = leg.place.chunk()?;
            (id.pv == pv && !stays(*key, id)).then_some(*key)
        };
        let gone: Vec<(u32, u32)> = self.legs.iter().filter_map(there).collect();
        gone.into_iter().for_each(|key| self.forget(key));
    }
}

impl Pool {
    /// A chunk was written: it is in the caches of these PVs.
    pub(super) fn is_cached(&mut self, key: (u32, u32), ids: Vec<ChunkId>, blocks: Bits) {
        if self.slots.get(&key).is_none_or(|slot| !slot.pair) {
            return;
        }
        for id in ids {
            if self.missed.cache(id, blocks) {
                self.give_flush(Op::Probe, id.pv);
            }
        }
    }

    /// A PV is lost: what it has is remembered, before the tables drop it.
    pub(super) fn remember_legs(&mut self, pv: u16) {
        let cached = self.missed.take_cache(pv);
        let mut under_way: BTreeMap<(u32, u32), Bits> = BTreeMap::new();
        for (key, blocks) in self.writes.values().map(slots::Writing::place) {
            let all = under_way.entry(key).or_default();
            *all = all.or(blocks);
        }
        // As far as it is there again they wait until it is.
        self.missed.kept.retain(|id, _| id.pv != pv);
        let slots = self.slots.iter().filter(|(_, slot)| slot.pair).map(|(key, _)| *key);
        let said = self.tables.legs_on(pv).into_iter().map(|(key, _)| key);
        for key in slots.chain(said).collect::<BTreeSet<_>>() {
            let Some((place, id)) = self.leg_on(key, pv) else { continue };
            if self.mends.may_differ(key) {
                self.missed.forget(key);
                continue;
            }
            self.missed.remember(key, place);
            if let Some(blocks) = cached.get(&id.chunk).filter(|_| self.keeps(Rule::MissedCached)) {
                self.missed.is_written(key, *blocks);
            }
            if let Some(blocks) = under_way.get(&key).filter(|_| self.keeps(Rule::MissedUnderWay)) {
                self.missed.is_written(key, *blocks);
            }
        }
    }

    /// The leg of a chunk with two legs that is on a PV.
    fn leg_on(&self, key: (u32, u32), pv: u16) -> Option<(Entry, ChunkId)> {
        let legs: Vec<Entry> = match self.slots.get(&key) {
            Some(slot) => slot.legs.iter().map(|leg| Entry::new(leg.id, leg.generation)).collect(),
            None => {
                let lu = self.tables.lus.get(&key.0).filter(|lu| key.1 < lu.chunks)?;
                lu.legs_of(key.1).iter().copied().filter(|leg| leg.chunk().is_some()).collect()
            }
        };
        let there = legs.iter().find_map(|leg| Some((*leg, leg.chunk().filter(|id| id.pv == pv)?)));
        there.filter(|_| legs.len() == 2)
    }

    /// A PV is there again: of chunks that lack a leg, what was there is what is remembered, if nobody has it.
    pub(super) fn legs_return(&mut self, pv: u16) {
        let halves = self.halves();
        let free = |id: ChunkId| self.tables.is_free(id) && !self.taken.contains(&id);
        self.missed.forget_legs(pv, |key, id| halves.contains(&key) && free(id));
        let legs = self.missed.legs.iter();
        let places = legs.filter_map(|(key, leg)| Some((leg.place.chunk()?, *key)));
        self.missed.kept.extend(places.filter(|(id, _)| id.pv == pv));
    }

    /// Where the other leg of a chunk was, and which blocks it lacks, if it can be made there again.
    pub(super) fn remembered(&self, key: (u32, u32), other: ChunkId) -> Option<(ChunkId, Bits)> {
        let leg = self.missed.legs.get(&key)?;
        let id = leg.place.chunk().filter(|id| self.missed.kept.contains_key(id))?;
        let tier = self.tables.lus.get(&key.0)?.tier;
        let group = |pv: u16| self.tables.pvs[usize::from(pv)].group;
        let fits = self.usable(tier).any(|pv| pv == id.pv) && group(id.pv) != group(other.pv);
        let there = fits && self.tables.is_free(id) && !self.taken.contains(&id);
        there.then(|| (id, leg.missed.as_deref().copied().unwrap_or_default()))
    }

    /// A chunk of a PV that is nobody's: one where no leg was, if there is one.
    pub(super) fn free_chunk(&self, pv: u16) -> Option<ChunkId> {
        let table = self.tables.pvs.get(usize::from(pv))?;
        let taken = |id: &ChunkId| self.taken.contains(id);
        let kept = |id: &ChunkId| self.missed.kept.contains_key(id);
        let other = table.peek(pv, |id| taken(id) || kept(id));
        other.or_else(|| if self.missed.kept.is_empty() { None } else { table.peek(pv, taken) })
    }

    /// Somebody gets a chunk.
    pub(super) fn take(&mut self, id: ChunkId) {
        self.taken.insert(id);
        self.missed.is_taken(id);
    }

    /// Blocks of a chunk that have to be copied to make it whole, as far as that is known: at least 1.
    pub(super) fn blocks_to_copy(&self, key: (u32, u32)) -> u32 {
        let slot = self.slots.get(&key);
        let leg = match slot {
            Some(slot) => slot.legs.first().map(|leg| leg.id),
            None => self
                .tables
                .lus
                .get(&key.0)
                .filter(|lu| key.1 < lu.chunks)
                .and_then(|lu| lu.legs_of(key.1).iter().find_map(|leg| leg.chunk())),
        };
        let lacks = match leg.filter(|_| !self.mends.may_differ(key)) {
            Some(leg) => self.remembered(key, leg).map(|(_, missed)| missed),
            None => None,
        };
        let lacks = lacks.unwrap_or(Bits::range(0, crate::format::BLOCKS));
        let live = slot.filter(|slot| slot.known).map(|slot| lacks.and(slot.live));
        live.unwrap_or(lacks).count().max(1)
    }
}
