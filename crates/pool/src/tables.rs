//! What the journal says: LUs, whose each chunk is, written bits. A record is applied here and nowhere else, when it is written and when it is replayed.

use std::collections::{BTreeMap, BTreeSet};

use crate::bits::Bits;
use crate::format::{
    Home, HomeState, Kind, MemberState, PAGE_RECORDS, Page, PageKind, Record, SUMS_IN_CHUNK,
    Superblock,
};
use crate::layers::Parts;

mod away;
mod grown;
mod layered;
#[cfg(test)]
mod tests;

/// Legs of a chunk at most.
pub const LEGS_MAX: u8 = 2;
/// Times that an LU can be larger than the pool.
const OVERCOMMIT_MAX: u64 = 1000;
const LEG_BIT: u32 = 1 << 31;
/// Whose a chunk of the pool itself is.
const SYSTEM: u32 = u32::MAX;

/// A chunk of a PV.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChunkId {
    /// Number of the PV among the members.
    pub pv: u16,
    /// Its chunk.
    pub chunk: u32,
}

/// A leg of a chunk of an LU, in 8 bytes: PV 12 bits, chunk 26, how often it was given out 16; the rest is 0. No address is in it, so that a table of these
/// may be in memory that several processes map. 0 is no leg, since chunk 0 of a PV is never anybody's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct Entry(u64);

impl Entry {
    pub(crate) fn new(id: ChunkId, generation: u16) -> Entry {
        let (pv, chunk) = (u64::from(id.pv), u64::from(id.chunk));
        Entry(pv << 52 | chunk << 26 | u64::from(generation) << 10)
    }

    /// Its chunk, if there is one.
    pub fn chunk(self) -> Option<ChunkId> {
        let id =
            ChunkId { pv: (self.0 >> 52) as u16, chunk: (self.0 >> 26) as u32 & ((1 << 26) - 1) };
        (self.0 != 0).then_some(id)
    }

    /// How often that chunk was given out.
    pub fn generation(self) -> u16 {
        (self.0 >> 10) as u16
    }
}

/// Something on the PVs contradicts what they say elsewhere.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the pool contradicts itself, {what}, in {record:?}")]
pub struct Contradiction {
    what: &'static str,
    record: Record,
}

/// What has a number as an LU has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    /// An LU.
    Lu,
    /// One that is not written to.
    Snapshot,
    /// What was written over something else.
    Layer,
    /// The space of an LU that is gone.
    Space,
    /// What has the checksums of an LU, its origin.
    Sums,
}

/// An LU, or a layer.
#[derive(Debug)]
pub(crate) struct Lu {
    pub(crate) chunks: u32,
    pub(crate) thick: bool,
    pub(crate) tier: u8,
    pub(crate) legs: u8,
    /// Where what it holds begins: a layer, or the space of another LU; 0 for its own space. Of a layer, what it lies over.
    pub(crate) beneath: u32,
    pub(crate) role: Role,
    /// The LU of which it is a snapshot, or has the checksums.
    pub(crate) origin: u32,
    /// What was said of who asked for it.
    pub(crate) asked: u64,
    /// Its chunks that are mapped.
    pub(crate) mapped: u32,
    /// How many of its legs are on each PV.
    pub(crate) pvs: BTreeMap<u16, u32>,
    /// The legs of each chunk, one after the other.
    map: Vec<Entry>,
}

impl Lu {
    /// The legs of a chunk.
    pub(crate) fn legs_of(&self, vchunk: u32) -> &[Entry] {
        let legs = usize::from(self.legs);
        &self.map[vchunk as usize * legs..][..legs]
    }

    /// It has so many chunks; their legs take as much memory as they need.
    fn resize(&mut self, chunks: u32) {
        let legs = chunks as usize * usize::from(self.legs);
        self.map.reserve_exact(legs.saturating_sub(self.map.len()));
        self.map.resize(legs, Entry::default());
        self.map.shrink_to_fit();
        self.chunks = chunks;
    }

    /// What its record says.
    fn record(&self, number: u32) -> Record {
        Record {
            lu: number,
            vchunk: self.chunks,
            flags: u8::from(self.thick) | self.role.flag(),
            leg: self.legs,
            chunk: self.beneath,
            aux: u32::from(self.tier) | self.origin << 8,
            epoch: self.asked,
            ..Record::of(Kind::LuCreate)
        }
    }
}

/// The chunks of a PV.
#[derive(Debug)]
pub(crate) struct Pv {
    pub(crate) tier: u8,
    pub(crate) group: u8,
    pub(crate) state: MemberState,
    /// Chunks that are nobody's.
    pub(crate) free: u32,
    /// LU, and chunk of the LU with the leg in the uppermost bit. LU 0 is nobody: of a chunk that no LU has, how often it was given out stands there, which of all others their LU has.
    whose: Vec<(u32, u32)>,
    /// So many of these at the end it is about to get, and has not yet.
    coming: u32,
    /// Where the search for a free chunk goes on.
    hand: u32,
}

impl Pv {
    /// One on which there is nothing but the pool's own blocks; one that is gone has nothing at all.
    fn new(superblock: &Superblock, pv: u16) -> Pv {
        let member = &superblock.members[usize::from(pv)];
        let chunks = if member.state == MemberState::Gone { 0 } else { member.chunks };
        let mut whose = vec![(0, 0); chunks as usize];
        let own = superblock.extents.iter().filter(|extent| extent.pv == pv);
        let own = own.map(|extent| (extent.chunk, extent.chunk + extent.count));
        for (first, end) in own.chain([(0, 1)]) {
            whose.get_mut(first as usize..end as usize).unwrap_or_default().fill((SYSTEM, 0));
        }
        Pv {
            tier: member.tier,
            group: member.group,
            state: member.state,
            free: whose.iter().filter(|(lu, _)| *lu == 0).count() as u32,
            whose,
            coming: 0,
            hand: 0,
        }
    }

    /// Its chunks.
    pub(crate) fn chunks(&self) -> u32 {
        self.whose.len() as u32 - self.coming
    }

    /// The next chunk that is free and not `taken`.
    pub(crate) fn peek(&self, pv: u16, taken: impl Fn(&ChunkId) -> bool) -> Option<ChunkId> {
        let count = self.chunks();
        let mut turn = (self.hand..count).chain(0..self.hand);
        let free = |chunk: &u32| {
            self.whose[*chunk as usize].0 == 0 && !taken(&ChunkId { pv, chunk: *chunk })
        };
        turn.find(free).map(|chunk| ChunkId { pv, chunk })
    }

    /// A chunk was given out: the search goes on behind it.
    pub(crate) fn turn_hand(&mut self, chunk: u32) {
        self.hand = (chunk + 1) % self.chunks();
    }
}

/// What has changed since the last checkpoint.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(crate) struct Changed {
    pub(crate) lus: BTreeSet<u32>,
    pub(crate) pages: BTreeSet<(u16, u32)>,
    pub(crate) homes: BTreeSet<ChunkId>,
    /// Containers of layers.
    pub(crate) slots: BTreeSet<(u32, u32)>,
}

impl Changed {
    /// And what else has.
    pub(crate) fn extend(&mut self, more: Changed) {
        self.lus.extend(more.lus);
        self.pages.extend(more.pages);
        self.homes.extend(more.homes);
        self.slots.extend(more.slots);
    }
}

/// The tables.
#[derive(Debug)]
pub(crate) struct Tables {
    pub(crate) lus: BTreeMap<u32, Lu>,
    /// The number of the next LU; none is ever given out twice.
    pub(crate) next_lu: u32,
    pub(crate) pvs: Vec<Pv>,
    /// The written bits of chunks of which they are known.
    pub(crate) bits: BTreeMap<ChunkId, Bits>,
    pub(crate) changed: Changed,
    /// What is in layers.
    pub(crate) parts: Parts,
    /// Containers of which it is not known what is in them.
    pub(crate) unread: BTreeSet<(u32, u32)>,
    /// What has the checksums of an LU.
    pub(crate) sums: BTreeMap<u32, u32>,
    /// Chunks of LUs with two legs that may differ, or of which one is not there.
    pub(crate) active: BTreeSet<(u32, u32)>,
    /// Chunks that became free since somebody looked; those that were containers are needed until the next root.
    pub(crate) freed: Vec<ChunkId>,
    pub(crate) freed_containers: Vec<ChunkId>,
}

impl Tables {
    /// Those of a pool in which there is nothing but its own blocks.
    pub(crate) fn new(superblock: &Superblock) -> Tables {
        let pvs = (0..superblock.members.len() as u16).map(|pv| Pv::new(superblock, pv)).collect();
        Tables {
            lus: BTreeMap::new(),
            next_lu: 1,
            pvs,
            bits: BTreeMap::new(),
            changed: Changed::default(),
            parts: Parts::default(),
            unread: BTreeSet::new(),
            sums: BTreeMap::new(),
            active: BTreeSet::new(),
            freed: Vec::new(),
            freed_containers: Vec::new(),
        }
    }

    /// A PV is new.
    pub(crate) fn add_pv(&mut self, superblock: &Superblock, pv: u16) {
        self.pvs.push(Pv::new(superblock, pv));
    }

    /// A PV is gone, on which nothing was of an LU.
    pub(crate) fn remove_pv(&mut self, pv: u16) {
        let gone = &mut self.pvs[usize::from(pv)];
        (gone.state, gone.free) = (MemberState::Gone, 0);
        self.changed.pages.retain(|(other, _)| *other != pv);
        self.changed.homes.retain(|id| id.pv != pv);
        self.bits.retain(|id, _| id.pv != pv);
    }

    /// A PV that was about to go or to change its state does not.
    pub(crate) fn keep_pv(&mut self, pv: u16, state: MemberState) {
        let kept = &mut self.pvs[usize::from(pv)];
        kept.free = kept.count_free(0);
        kept.state = state;
    }

    /// A chunk that was about to be the pool's own is not.
    pub(crate) fn give_own(&mut self, id: ChunkId) {
        if let Some(whose) = self.whose(id).filter(|whose| whose.0 == SYSTEM) {
            whose.0 = 0;
            self.pvs[usize::from(id.pv)].free += 1;
        }
    }

    /// A free chunk is the pool's own from now on.
    pub(crate) fn take_own(&mut self, id: ChunkId) {
        if let Some(whose) = self.whose(id) {
            whose.0 = SYSTEM;
            self.pvs[usize::from(id.pv)].free -= 1;
            self.changed.pages.insert((id.pv, id.chunk / PAGE_RECORDS as u32));
        }
    }

    /// Chunks of an LU that are on PVs of other tiers than its own.
    pub(crate) fn astray(&self, lu: &Lu) -> u32 {
        let elsewhere = lu.pvs.iter().filter(|(pv, _)| self.pvs[usize::from(**pv)].tier != lu.tier);
        elsewhere.map(|(_, legs)| legs).sum()
    }

    /// Chunks of LUs, with the leg, that a PV has.
    pub(crate) fn legs_on(&self, pv: u16) -> Vec<((u32, u32), u8)> {
        let whose = self.pvs[usize::from(pv)].whose.iter();
        let legs = whose.filter(|(lu, _)| (1..SYSTEM).contains(lu));
        legs.map(|(lu, vchunk)| ((*lu, vchunk & !LEG_BIT), u8::from(vchunk & LEG_BIT != 0)))
            .collect()
    }

    /// Whether a chunk is there and nobody's.
    pub(crate) fn is_free(&self, id: ChunkId) -> bool {
        let pv = self.pvs.get(usize::from(id.pv));
        pv.and_then(|pv| pv.whose.get(id.chunk as usize)).is_some_and(|(lu, _)| *lu == 0)
    }

    fn whose(&mut self, id: ChunkId) -> Option<&mut (u32, u32)> {
        self.pvs.get_mut(usize::from(id.pv))?.whose.get_mut(id.chunk as usize)
    }

    /// How often a chunk was given out.
    pub(crate) fn generation(&self, id: ChunkId) -> u16 {
        match self.pvs[usize::from(id.pv)].whose[id.chunk as usize] {
            (0 | SYSTEM, generation) => generation as u16,
            (lu, vchunk) => self.entry(lu, vchunk).generation(),
        }
    }

    /// The leg of an LU that a chunk of a PV is by what is known of it.
    fn entry(&self, lu: u32, vchunk: u32) -> Entry {
        let known = self.lus.get(&lu).filter(|lu| vchunk & !LEG_BIT < lu.chunks);
        let leg = usize::from(vchunk & LEG_BIT != 0);
        let entry = known.and_then(|lu| lu.legs_of(vchunk & !LEG_BIT).get(leg));
        entry.copied().unwrap_or_default()
    }

    /// … of one that is nobody's.
    pub(crate) fn set_generation(&mut self, id: ChunkId, generation: u16) {
        if let Some(whose) = self.whose(id).filter(|(lu, _)| *lu == 0) {
            whose.1 = generation.into();
        }
    }

    /// LU and chunk of the LU whose this is, if it was given out so often.
    pub(crate) fn owner(&self, id: ChunkId, generation: u16) -> Option<(u32, u32)> {
        let pv = self.pvs.get(usize::from(id.pv))?;
        let (lu, vchunk) = *pv.whose.get(id.chunk as usize)?;
        let same = (1..SYSTEM).contains(&lu) && self.generation(id) == generation;
        same.then_some((lu, vchunk & !LEG_BIT))
    }

    fn change_chunk(&mut self, id: ChunkId) {
        self.changed.pages.insert((id.pv, id.chunk / PAGE_RECORDS as u32));
        self.changed.homes.insert(id);
    }

    /// The chunk whose written bits have to be known before this record is applied.
    pub(crate) fn needs_bits(&self, record: &Record) -> Option<ChunkId> {
        let id = ChunkId { pv: record.pv, chunk: record.chunk };
        let about = matches!(record.kind, Kind::Written | Kind::Cleared);
        let there =
            self.pvs.get(usize::from(id.pv)).is_some_and(|pv| (id.chunk as usize) < pv.whose.len());
        (about && there && !self.is_away(id.pv) && !self.bits.contains_key(&id)).then_some(id)
    }

    /// Makes true what a record says.
    pub(crate) fn apply(&mut self, record: &Record) -> Result<(), Contradiction> {
        let wrong = |what| Err(Contradiction { what, record: *record });
        let id = ChunkId { pv: record.pv, chunk: record.chunk };
        match record.kind {
            Kind::Start => Ok(()),
            Kind::Activity => self.set_active(record),
            // Of a chunk that is away nothing is known but what the other leg says.
            Kind::Free | Kind::Written | Kind::Cleared if self.is_away(id.pv) => Ok(()),
            Kind::LuCreate => {
                self.add_lu(record)?;
                self.changed.lus.insert(record.lu / PAGE_RECORDS as u32);
                Ok(())
            }
            Kind::LuDelete => self.delete_lu(record),
            Kind::Head => self.set_head(record),
            Kind::Part => self.put_part(record),
            Kind::LuResize => self.resize_lu(record),
            Kind::Map => {
                let lu = self.lus.get(&record.lu).filter(|lu| record.vchunk < lu.chunks);
                let before = lu
                    .and_then(|lu| lu.legs_of(record.vchunk).get(usize::from(record.leg)).copied());
                if let Some((entry, id)) = before.and_then(|leg| Some((leg, leg.chunk()?))) {
                    self.clear_entry(record.lu, record.vchunk, record.leg, id.pv);
                    self.set_free(entry, self.is_layer(record.lu));
                }
                if self.is_away(id.pv) {
                    return self.set_active(record);
                }
                self.map_chunk(record)?;
                if self.lus.get(&record.lu).is_some_and(|lu| lu.legs > 1) {
                    self.set_active(record)?;
                }
                if self.is_layer(record.lu) {
                    self.changed.slots.insert((record.lu, record.vchunk));
                }
                self.bits.insert(id, Bits::NONE);
                self.change_chunk(id);
                Ok(())
            }
            Kind::Free => {
                let Some((lu, vchunk)) =
                    self.whose(id).copied().filter(|(lu, _)| (1..SYSTEM).contains(lu))
                else {
                    return wrong("a chunk that is nobody's becomes free");
                };
                if self.is_layer(lu) {
                    return wrong("a container becomes free alone");
                }
                let entry = self.entry(lu, vchunk);
                self.clear_entry(lu, vchunk & !LEG_BIT, u8::from(vchunk & LEG_BIT != 0), id.pv);
                self.set_free(entry, false);
                Ok(())
            }
            Kind::Written | Kind::Cleared => {
                if self.whose(id).is_none_or(|(lu, _)| !(1..SYSTEM).contains(lu))
                    || self.generation(id) != record.generation
                {
                    return wrong("written bits of a chunk that is nobody's");
                }
                let Some(word) = self
                    .bits
                    .get_mut(&id)
                    .and_then(|bits| bits.0.get_mut(usize::from(record.flags)))
                else {
                    return wrong("written bits of a chunk of which they are not known");
                };
                if record.kind == Kind::Written {
                    *word |= record.aux;
                } else {
                    *word &= !record.aux;
                }
                self.changed.homes.insert(id);
                Ok(())
            }
            _ => wrong("it says nothing in a journal"),
        }
    }

    /// What was a leg, and is none any more.
    fn set_free(&mut self, leg: Entry, container: bool) {
        let Some(id) = leg.chunk() else { return };
        if let Some(whose) = self.whose(id) {
            *whose = (0, leg.generation().into());
        }
        self.pvs[usize::from(id.pv)].free += 1;
        self.bits.remove(&id);
        if container {
            self.freed_containers.push(id);
        } else {
            self.freed.push(id);
        }
        self.change_chunk(id);
    }

    fn clear_entry(&mut self, number: u32, vchunk: u32, leg: u8, pv: u16) {
        let Some(lu) = self.lus.get_mut(&number) else { return };
        let legs = usize::from(lu.legs);
        lu.map[vchunk as usize * legs + usize::from(leg)] = Entry::default();
        let none = lu.legs_of(vchunk).iter().all(|entry| entry.chunk().is_none());
        lu.mapped -= u32::from(none);
        if none {
            self.active.remove(&(number, vchunk));
        }
        if let Some(count) = lu.pvs.get_mut(&pv) {
            *count -= 1;
        }
        lu.pvs.retain(|_, count| *count > 0);
    }

    /// Chunks that an LU has at most, so that what a PV says cannot ask for any amount of memory.
    pub(crate) fn lu_chunks_max(&self) -> u64 {
        let chunks: usize = self.pvs.iter().map(|pv| pv.whose.len()).sum();
        (chunks as u64).saturating_mul(OVERCOMMIT_MAX).min(u64::from(LEG_BIT) - 1)
    }

    fn add_lu(&mut self, record: &Record) -> Result<(), Contradiction> {
        let wrong = |what| Err(Contradiction { what, record: *record });
        if record.lu == 0 || record.lu == SYSTEM || self.lus.contains_key(&record.lu) {
            return wrong("an LU with that number");
        }
        if !(1..=LEGS_MAX).contains(&record.leg) || !(1..LEG_BIT).contains(&record.vchunk) {
            return wrong("an LU without chunks or legs");
        }
        // The containers of a layer waste a little.
        let times = if record.flags & 2 == 0 { 1 } else { 2 };
        if u64::from(record.vchunk) > times * self.lu_chunks_max() {
            return wrong("an LU that is far larger than the pool");
        }
        let Some(role) = Role::of(record.flags) else {
            return wrong("it is not said what it is");
        };
        // What is beneath a layer was there before it: so nothing is beneath itself.
        if role == Role::Layer && !(1..record.lu).contains(&record.chunk) {
            return wrong("a layer over nothing");
        }
        let lu = Lu {
            beneath: record.chunk,
            role,
            origin: record.aux >> 8,
            asked: if matches!(role, Role::Lu | Role::Snapshot) { record.epoch } else { 0 },
            chunks: record.vchunk,
            thick: record.flags & 1 == 1,
            tier: record.aux as u8,
            legs: record.leg,
            mapped: 0,
            pvs: BTreeMap::new(),
            map: vec![Entry::default(); record.vchunk as usize * usize::from(record.leg)],
        };
        if role == Role::Sums && self.sums.insert(lu.origin, record.lu).is_some() {
            return wrong("an LU with two places for its checksums");
        }
        self.lus.insert(record.lu, lu);
        self.next_lu = self.next_lu.max(record.lu + 1);
        Ok(())
    }

    fn resize_lu(&mut self, record: &Record) -> Result<(), Contradiction> {
        let wrong = |what| Err(Contradiction { what, record: *record });
        let most = self.lu_chunks_max();
        let Some(lu) = self.lus.get(&record.lu) else {
            return wrong("no such LU");
        };
        let (before, legs) = (lu.chunks, lu.legs);
        if lu.role != Role::Lu || lu.beneath != 0 && record.vchunk < before {
            return wrong("an LU that shares what it holds gets smaller");
        }
        if record.vchunk == 0 || u64::from(record.vchunk) > most.max(before.into()) {
            return wrong("an LU without chunks, or far larger than the pool");
        }
        match record.aux.checked_sub(1).map(u8::try_from) {
            Some(Err(_)) => return wrong("no such tier"),
            Some(Ok(tier)) => self.gather(record.lu, tier),
            None => {}
        }
        for vchunk in record.vchunk..before {
            for leg in 0..legs {
                let entry = self.lus.get(&record.lu).map(|lu| lu.legs_of(vchunk)[usize::from(leg)]);
                if let Some((entry, id)) = entry.and_then(|leg| Some((leg, leg.chunk()?))) {
                    self.clear_entry(record.lu, vchunk, leg, id.pv);
                    self.set_free(entry, false);
                }
            }
        }
        if let Some(lu) = self.lus.get_mut(&record.lu) {
            lu.resize(record.vchunk);
        }
        self.grow_sums(record.lu, record.vchunk);
        self.grow_layers(record.lu, record.vchunk);
        self.changed.lus.insert(record.lu / PAGE_RECORDS as u32);
        Ok(())
    }

    /// What has the checksums of an LU is never too short for them.
    fn grow_sums(&mut self, lu: u32, chunks: u32) {
        let space = self.sums.get(&lu).copied();
        let Some((space, sums)) = space.and_then(|space| Some((space, self.lus.get_mut(&space)?)))
        else {
            return;
        };
        let chunks = chunks.div_ceil(SUMS_IN_CHUNK);
        if chunks > sums.chunks {
            sums.resize(chunks);
            self.changed.lus.insert(space / PAGE_RECORDS as u32);
        }
    }

    pub(crate) fn map_chunk(&mut self, record: &Record) -> Result<(), Contradiction> {
        let wrong = |what| Err(Contradiction { what, record: *record });
        let id = ChunkId { pv: record.pv, chunk: record.chunk };
        match self.whose(id) {
            Some((0, _)) => {}
            Some(_) => return wrong("a chunk with two owners"),
            None => return wrong("a chunk that is not there"),
        }
        let Some(lu) = self.lus.get_mut(&record.lu) else {
            return wrong("no such LU");
        };
        if record.leg >= lu.legs || record.vchunk >= lu.chunks {
            return wrong("no such chunk of the LU");
        }
        let first = record.vchunk as usize * usize::from(lu.legs);
        lu.mapped += u32::from(lu.legs_of(record.vchunk).iter().all(|leg| leg.chunk().is_none()));
        let entry = &mut lu.map[first + usize::from(record.leg)];
        if entry.chunk().is_some() {
            return wrong("a leg with two chunks");
        }
        *entry = Entry::new(id, record.generation);
        *lu.pvs.entry(id.pv).or_default() += 1;
        let leg = if record.leg == 0 { 0 } else { LEG_BIT };
        if let Some(whose) = self.whose(id) {
            *whose = (record.lu, record.vchunk | leg);
        }
        self.pvs[usize::from(id.pv)].free -= 1;
        Ok(())
    }

    /// The records of a page of LUs.
    pub(crate) fn lu_page(&self, number: u32) -> Vec<Record> {
        let first = number * PAGE_RECORDS as u32;
        let record = |lu: u32| match self.lus.get(&lu) {
            Some(known) => known.record(lu),
            None => Record { lu, ..Record::of(Kind::LuDelete) },
        };
        (first..self.next_lu.min(first + PAGE_RECORDS as u32))
            .map(|lu| if lu == 0 { Record::of(Kind::None) } else { record(lu) })
            .collect()
    }

    /// What is said of a chunk.
    fn chunk_record(&self, id: ChunkId) -> Record {
        let generation = self.generation(id);
        let place = Record { pv: id.pv, chunk: id.chunk, generation, ..Record::of(Kind::None) };
        match self.pvs[usize::from(id.pv)].whose[id.chunk as usize] {
            (SYSTEM, _) => Record { kind: Kind::System, ..place },
            (0, _) if generation == 0 => Record::of(Kind::None),
            (0, _) => Record { kind: Kind::Free, ..place },
            (lu, vchunk) => Record {
                kind: Kind::Map,
                lu,
                vchunk: vchunk & !LEG_BIT,
                leg: u8::from(vchunk & LEG_BIT != 0),
                flags: self.active.contains(&(lu, vchunk & !LEG_BIT)).into(),
                ..place
            },
        }
    }

    /// The records of a map page.
    pub(crate) fn map_page(&self, pv: u16, number: u32) -> Vec<Record> {
        let first = number * PAGE_RECORDS as u32;
        let end = (self.pvs[usize::from(pv)].whose.len() as u32).min(first + PAGE_RECORDS as u32);
        (first..end).map(|chunk| self.chunk_record(ChunkId { pv, chunk })).collect()
    }

    /// The home record of a chunk, but for its place.
    pub(crate) fn home(&self, id: ChunkId, superblock: &Superblock, sequence: u64) -> Home {
        let record = self.chunk_record(id);
        let mapped = record.kind == Kind::Map;
        Home {
            pool: superblock.pool,
            pv: id.pv,
            chunk: id.chunk,
            copy: 0,
            sequence,
            epoch: superblock.epoch,
            generation: record.generation,
            state: if mapped { HomeState::Mapped } else { HomeState::Free },
            lu: record.lu,
            vchunk: record.vchunk,
            leg: record.leg,
            owner: record.owner,
            lu_epoch: record.epoch,
            activity: 0,
            written: self.bits.get(&id).copied().unwrap_or_default().0,
        }
    }

    /// Takes up a chunk by its home record, where there is no page that has it.
    pub(crate) fn load_home(&mut self, home: &Home) -> Result<(), Contradiction> {
        let id = ChunkId { pv: home.pv, chunk: home.chunk };
        let record = Record {
            lu: home.lu,
            vchunk: home.vchunk,
            leg: home.leg,
            pv: home.pv,
            chunk: home.chunk,
            generation: home.generation,
            ..Record::of(Kind::Map)
        };
        match home.state {
            HomeState::Mapped => {
                self.map_chunk(&record)?;
                // Home records do not say it.
                if self.lus.get(&record.lu).is_some_and(|lu| lu.legs > 1) {
                    self.active.insert((record.lu, record.vchunk));
                }
                Ok(())
            }
            HomeState::Free => {
                self.set_generation(id, home.generation);
                Ok(())
            }
        }
    }

    /// Takes up a page as a checkpoint left it.
    pub(crate) fn load(&mut self, page: &Page) -> Result<(), Contradiction> {
        for (index, record) in page.records.iter().enumerate() {
            let wrong = |what| Err(Contradiction { what, record: *record });
            let number = page.number * PAGE_RECORDS as u32 + index as u32;
            let placed = match page.kind {
                PageKind::Lus => record.lu == number,
                PageKind::Map => record.pv == page.pv && record.chunk == number,
                PageKind::Slots => false,
            };
            match (page.kind, record.kind) {
                (_, Kind::None) => continue,
                _ if !placed => return wrong("a record in another's place"),
                (PageKind::Lus, Kind::LuCreate) => self.add_lu(record)?,
                (PageKind::Lus, Kind::LuDelete) => self.next_lu = self.next_lu.max(number + 1),
                (PageKind::Map, Kind::Map) => {
                    self.map_chunk(record)?;
                    if record.flags & 1 == 1 {
                        self.active.insert((record.lu, record.vchunk));
                    }
                }
                (PageKind::Map, Kind::Free) => {
                    let id = ChunkId { pv: page.pv, chunk: number };
                    if self.whose(id).is_none_or(|(lu, _)| *lu != 0) {
                        return wrong("a chunk with two owners");
                    }
                    self.set_generation(id, record.generation);
                }
                (PageKind::Map, Kind::System) => {
                    let id = ChunkId { pv: page.pv, chunk: number };
                    if self.whose(id).is_none_or(|(lu, _)| *lu != SYSTEM) {
                        return wrong("the superblock does not know this chunk as the pool's own");
                    }
                }
                _ => return wrong("it says nothing in such a page"),
            }
        }
        Ok(())
    }
}
