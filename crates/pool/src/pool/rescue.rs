//! The map of a pool is made again from what its chunks say themselves, where the pool does not open any more.
//!
//! ```text
//! superblock, pages that are there, home records, journal ──► what is there, what is lost ──► pages that are written anew ──► the pool opens as ever
//! ```
//!
//! Nothing is written but pages of LUs that are in no place, and map pages that are in no place or contradict another; and where the journal contradicts what is left, its first block, so that it ends before that.
//! They say what held at the last checkpoint, as those do that are there. Whatever has been written to chunks stays untouched.
//!
//! Home records have of a chunk its LU, its place in it, its leg and its written bits. What only pages of LUs had is lost with them: sizes beyond the last chunk that is mapped, whether an LU is thick, what is a snapshot of
//! what, and which layer lies over which. So LUs are as large as what they have; one that had snapshots or was a clone has what was in its own space; and a layer becomes an LU of its own, in which containers lie as they are:
//! nobody can say what of them is whose, and so that they are not given out again.

use super::checkpoint::{choose_home, home_place, page_place};
use super::log::journal_places;
use super::open::{judge_members, not_there, read_page, replay};
use super::*;
use crate::choose::choose;
use crate::format::{
    HOME_BYTES, Home, HomeState, JOURNAL_BLOCK_BYTES, JournalBlock, PAGE_BYTES, PAGE_RECORDS, Page,
    PageKind, SystemKind,
};
use crate::make::Placed;

/// Numbers of LUs that are left out where it is not known which were given out: none is ever given out twice.
const LEFT_OUT: u32 = 1000;

/// What a rescue has found out, and what it would write.
#[derive(Clone, Debug)]
pub struct Rescue {
    /// The superblock that counts.
    pub superblock: Superblock,
    /// The LUs, layers and spaces that there are then.
    pub lus: Vec<RescuedLu>,
    /// What was lost, and what is not as it should be.
    pub found: Vec<Found>,
    /// What is to be written; without any of it the pool opens as it is.
    pub writes: Vec<Placed>,
}

/// An LU that is there after a rescue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RescuedLu {
    /// Its number.
    pub lu: u32,
    /// Its size, in chunks.
    pub chunks: u32,
    /// Those that it has.
    pub mapped: u32,
    /// Nothing but its chunks is known of it: it may have been larger, or thick.
    pub guessed: bool,
    /// … and it was a layer: what it has are containers.
    pub layer: bool,
}

/// Something that a rescue has found.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Found {
    /// The journal goes on after the checkpoint.
    #[error(
        "the journal has {0} blocks after the checkpoint, and is taken up when the pool is opened"
    )]
    Journal(u64),
    /// There is none.
    #[error(
        "the journal is not there: the pool is as at its last checkpoint. What was written for the first time since reads as zeros, what was made or removed since was not, and a chunk that was given to another LU since has that one's data"
    )]
    NoJournal,
    /// It says what cannot be.
    #[error(
        "the journal contradicts what is left, after {0} of its records, and is given up: the pool is as at its last checkpoint"
    )]
    JournalGivenUp(usize),
    /// A page of LUs is in no place.
    #[error(
        "page {0} of the LUs is lost: of those that were on it only chunks are known, not sizes, snapshots, nor which was thick"
    )]
    NoLus(u32),
    /// A map page is in no place.
    #[error(
        "map page {number} of PV {pv} is lost, and made again from home records; {without} of its chunks have none, as those have that were never used"
    )]
    NoMap {
        /// The PV, by number.
        pv: u16,
        /// The page.
        number: u32,
        /// Its chunks without a home record.
        without: u32,
    },
    /// A home record is damaged in its places, and no page has the chunk.
    #[error("of chunk {} of PV {} nothing is known: what it had is lost", .0.chunk, .0.pv)]
    Unknown(ChunkId),
    /// Two chunks say that they are the same leg of the same chunk of an LU.
    #[error("chunks {} of PV {} and {} of PV {} both say to be chunk {vchunk} of LU {lu}: what the first has counts, which was said later", kept.chunk, kept.pv, left.chunk, left.pv)]
    Twice {
        /// The LU.
        lu: u32,
        /// Its chunk.
        vchunk: u32,
        /// The one that counts.
        kept: ChunkId,
        /// The other, which is nobody's then.
        left: ChunkId,
    },
    /// A chunk is of an LU that is not there, or has no such chunk.
    #[error("chunk {} of PV {} says to be of LU {lu}, which is not there or smaller: it is nobody's", id.chunk, id.pv)]
    Nobodys {
        /// The chunk.
        id: ChunkId,
        /// The LU.
        lu: u32,
    },
}

/// What a chunk says of itself.
#[derive(Clone, Copy, Debug)]
struct Fact {
    record: Record,
    /// By which journal block.
    sequence: u64,
}

/// What there is, as far as it can be read.
struct Facts {
    superblock: Superblock,
    there: Vec<u16>,
    lu_pages: BTreeMap<u32, Page>,
    chunks: Vec<Fact>,
    free: Vec<Record>,
    /// Map pages that are in no place, with how many of their chunks have no home record.
    no_map: BTreeMap<(u16, u32), u32>,
    unknown: Vec<ChunkId>,
    /// LUs of which a chunk is a container.
    layers: BTreeSet<u32>,
    journal: Vec<Record>,
    blocks: u64,
    /// Not even the checkpoint's block is there.
    no_journal: bool,
}

fn id_of(record: &Record) -> ChunkId {
    ChunkId { pv: record.pv, chunk: record.chunk }
}

/// Says what a pool would be after a rescue. Reads all pages and home records; `source` knows PVs by the numbers of members, and all that count have to be there.
pub fn rescue(source: &mut dyn Source) -> Result<Rescue, NotOpened> {
    let facts = Facts::read(source)?;
    let mut found: Vec<Found> = Vec::new();
    let lost = facts.lost_lu_pages();
    found.extend(lost.iter().map(|number| Found::NoLus(*number)));
    found.extend(facts.no_map.iter().map(|((pv, number), without)| {
        let (pv, number, without) = (*pv, *number, *without);
        Found::NoMap { pv, number, without }
    }));
    found.extend(facts.unknown.iter().map(|id| Found::Unknown(*id)));
    // What the journal says is tried on a map of its own.
    let mut tried = facts.tables(false)?.0;
    let given_up = facts.journal.iter().position(|record| {
        if let Some(id) = tried.needs_bits(record) {
            tried.bits.insert(id, Bits::NONE);
        }
        tried.apply(record).is_err()
    });
    let given_up = given_up.or((tried.judge_layers().is_err()).then_some(facts.journal.len()));
    found.extend(match (given_up, facts.no_journal) {
        (Some(applied), _) => Some(Found::JournalGivenUp(applied)),
        (None, true) => Some(Found::NoJournal),
        (None, false) => (facts.blocks > 0).then_some(Found::Journal(facts.blocks)),
    });
    // Which legs were being written nobody knows then.
    let no_journal = given_up.is_some() || facts.no_journal;
    let (tables, wrong) = facts.tables(no_journal)?;
    tables.judge_layers()?;
    let superblock = &facts.superblock;
    let mut maps: BTreeSet<(u16, u32)> = facts.no_map.keys().copied().collect();
    for one in &wrong {
        let (Found::Twice { left: id, .. } | Found::Nobodys { id, .. }) = one else { continue };
        maps.insert((id.pv, id.chunk / PAGE_RECORDS as u32));
    }
    found.extend(wrong);
    if no_journal {
        let pairs = tables.active.iter().flat_map(|(lu, vchunk)| tables.lus[lu].legs_of(*vchunk));
        let ids = pairs.filter_map(|entry| entry.chunk());
        maps.extend(ids.map(|id| (id.pv, id.chunk / PAGE_RECORDS as u32)));
    }
    let mut writes: Vec<Placed> = Vec::new();
    let mut page = |kind, pv, number, records: Vec<Record>| {
        let Some(at) = page_place(superblock, kind, pv, number) else { return };
        let (pool, epoch, sequence) = (superblock.pool, superblock.epoch, superblock.root.sequence);
        for copy in [0, 1] {
            let records = records.clone();
            let page = Page { pool, kind, pv, number, copy, sequence, epoch, records };
            writes.push((pv, at + u64::from(copy) * PAGE_BYTES as u64, page.encode()));
        }
    };
    for number in &lost {
        for pv in &facts.there {
            page(PageKind::Lus, *pv, *number, tables.lu_page(*number));
        }
    }
    for (pv, number) in maps {
        page(PageKind::Map, pv, number, tables.map_page(pv, number));
    }
    if given_up.is_some() {
        let next = superblock.root.sequence + 1;
        let ring = superblock.blocks_of(SystemKind::Journal, 0, JOURNAL_BLOCK_BYTES as u64);
        let places = journal_places(superblock, 0, next, ring);
        writes.extend(places.into_iter().map(|(pv, at)| (pv, at, vec![0; JOURNAL_BLOCK_BYTES])));
    }
    let lus = tables.lus.iter().map(|(number, lu)| {
        let guessed = lost.contains(&(number / PAGE_RECORDS as u32));
        let layer = guessed && facts.layers.contains(number);
        RescuedLu { lu: *number, chunks: lu.chunks, mapped: lu.mapped, guessed, layer }
    });
    let lus = lus.collect();
    Ok(Rescue { superblock: facts.superblock, lus, found, writes })
}

impl Facts {
    fn read(source: &mut dyn Source) -> Result<Facts, NotOpened> {
        let mut found = Vec::new();
        let (mut pv, mut members) = (0, 0);
        while pv < members || found.is_empty() && usize::from(pv) < crate::format::MEMBERS_MAX {
            if source.is_there(pv) {
                found.extend(superblocks(source, pv)?.into_iter().map(|copy| (pv, copy)));
            }
            let copies = found.iter();
            members = copies.map(|(_, (copy, _))| copy.members.len() as u16).max().unwrap_or(0);
            pv += 1;
        }
        let copies: Vec<_> = found.iter().map(|(_, copy)| copy.clone()).collect();
        let superblock = choose(&copies)?.superblock;
        let missing = judge_members(&superblock, &found)?;
        if !missing.is_empty() {
            return Err(not_there(&superblock, &missing));
        }
        let counts = |pv: &u16| superblock.members[usize::from(*pv)].state.is_there();
        let there: Vec<u16> = (0..superblock.members.len() as u16).filter(counts).collect();
        let mut facts = Facts {
            superblock,
            there,
            lu_pages: BTreeMap::new(),
            chunks: Vec::new(),
            free: Vec::new(),
            no_map: BTreeMap::new(),
            unknown: Vec::new(),
            layers: BTreeSet::new(),
            journal: Vec::new(),
            blocks: 0,
            no_journal: false,
        };
        facts.read_lus(source)?;
        for pv in facts.there.clone() {
            facts.read_map(source, pv)?;
        }
        facts.read_layers(source)?;
        facts.read_journal(source)?;
        Ok(facts)
    }

    fn read_lus(&mut self, source: &mut dyn Source) -> Result<(), NotOpened> {
        for number in 0..self.superblock.lu_pages() {
            let mut newest: Option<Page> = None;
            for pv in &self.there {
                let page = read_page(source, &self.superblock, PageKind::Lus, *pv, number)?;
                let newer =
                    |page: &Page| newest.as_ref().is_none_or(|it| page.sequence > it.sequence);
                if let Some(page) = page.filter(newer) {
                    newest = Some(page);
                }
            }
            newest.into_iter().for_each(|page| _ = self.lu_pages.insert(number, page));
        }
        Ok(())
    }

    fn read_map(&mut self, source: &mut dyn Source, pv: u16) -> Result<(), NotOpened> {
        let chunks = self.superblock.members[usize::from(pv)].chunks;
        for number in 0..chunks.div_ceil(PAGE_RECORDS as u32) {
            if let Some(page) = read_page(source, &self.superblock, PageKind::Map, pv, number)? {
                let sequence = page.sequence;
                let records = page.records.into_iter();
                let (mapped, others): (Vec<_>, Vec<_>) =
                    records.partition(|record| record.kind == Kind::Map);
                self.chunks.extend(mapped.into_iter().map(|record| Fact { record, sequence }));
                self.free.extend(others.into_iter().filter(|record| record.kind == Kind::Free));
                continue;
            }
            self.no_map.insert((pv, number), 0);
            let first = number * PAGE_RECORDS as u32;
            for chunk in first..chunks.min(first + PAGE_RECORDS as u32) {
                self.read_home(source, ChunkId { pv, chunk })?;
            }
        }
        Ok(())
    }

    fn read_home(&mut self, source: &mut dyn Source, id: ChunkId) -> Result<(), NotOpened> {
        let Some(at) = home_place(&self.superblock, id) else { return Ok(()) };
        let places = source.read(id.pv, at, 2 * HOME_BYTES)?;
        let Some(home) = choose_home(&self.superblock, id, &places) else {
            // One that never was anybody's has none, and there may be anything.
            let is_home = |place: &[u8]| Home::is_marked(place);
            if places.chunks(HOME_BYTES).any(is_home) {
                self.unknown.push(id);
            } else if let Some(without) =
                self.no_map.get_mut(&(id.pv, id.chunk / PAGE_RECORDS as u32))
            {
                *without += 1;
            }
            return Ok(());
        };
        let place = Record {
            pv: id.pv,
            chunk: id.chunk,
            generation: home.generation,
            ..Record::of(Kind::Free)
        };
        match home.state {
            HomeState::Free => self.free.push(place),
            HomeState::Mapped => {
                let (lu, vchunk, leg) = (home.lu, home.vchunk, home.leg);
                let record = Record { kind: Kind::Map, lu, vchunk, leg, flags: 1, ..place };
                self.chunks.push(Fact { record, sequence: home.sequence });
            }
        }
        Ok(())
    }

    /// Which of the LUs that no page has were layers.
    fn read_layers(&mut self, source: &mut dyn Source) -> Result<(), NotOpened> {
        for Fact { record, .. } in &self.chunks {
            let page = record.lu / PAGE_RECORDS as u32;
            if self.lu_pages.contains_key(&page) || self.layers.contains(&record.lu) {
                continue;
            }
            let id = id_of(record);
            let places = source.read(id.pv, slots::byte_of(id, 0), 2 * PAGE_BYTES)?;
            let mut pages = places.chunks(PAGE_BYTES).zip(0..).filter_map(|(block, copy)| {
                let (pool, kind) = (self.superblock.pool, PageKind::Slots);
                Page::decode(block, pool, kind, id.pv, id.chunk, copy).ok()
            });
            let is_part =
                |of: &Record| of.lu == record.lu && matches!(of.kind, Kind::Part | Kind::None);
            if pages.any(|page| page.records.iter().all(|of| of.kind == Kind::None || is_part(of)))
            {
                self.layers.insert(record.lu);
            }
        }
        Ok(())
    }

    fn read_journal(&mut self, source: &mut dyn Source) -> Result<(), NotOpened> {
        let (slot, root) = (0, self.superblock.root);
        let ring = self.superblock.blocks_of(SystemKind::Journal, slot, JOURNAL_BLOCK_BYTES as u64);
        if ring < 2 {
            return Err(NotOpened::NoJournal(slot));
        }
        let replayed = replay(source, &self.superblock, &BTreeSet::new(), (slot, ring))?;
        self.journal = replayed.records;
        self.blocks = replayed.next - root.sequence - 1;
        let mut has_root = root.sequence == 0 || self.blocks > 0;
        for (pv, at) in journal_places(&self.superblock, slot, root.sequence, ring) {
            let bytes = source.read(pv, at, JOURNAL_BLOCK_BYTES)?;
            let block = JournalBlock::decode(&bytes, self.superblock.pool, slot, root.sequence);
            has_root |= block.is_ok() && JournalBlock::checksum(&bytes) == root.checksum;
        }
        self.no_journal = !has_root;
        Ok(())
    }

    /// Pages of LUs that are in no place and had some: the first was always there.
    fn lost_lu_pages(&self) -> BTreeSet<u32> {
        let had = self.chunks.iter().map(|fact| fact.record.lu / PAGE_RECORDS as u32);
        had.chain([0]).filter(|number| !self.lu_pages.contains_key(number)).collect()
    }

    /// The map at the checkpoint, and what cannot be in it. `active`: the legs of all chunks may differ.
    fn tables(&self, active: bool) -> Result<(Tables, Vec<Found>), NotOpened> {
        let mut tables = Tables::new(&self.superblock);
        for page in self.lu_pages.values() {
            tables.load(page)?;
        }
        for record in self.guessed() {
            tables.apply(&record)?;
        }
        if !self.lost_lu_pages().is_empty() {
            tables.next_lu += LEFT_OUT;
        }
        for record in &self.free {
            tables.set_generation(id_of(record), record.generation);
        }
        let mut wrong = Vec::new();
        let mut facts: Vec<&Fact> = self.chunks.iter().collect();
        facts.sort_by_key(|fact| (std::cmp::Reverse(fact.sequence), id_of(&fact.record)));
        for Fact { record, .. } in facts {
            let (lu, vchunk, id) = (record.lu, record.vchunk, id_of(record));
            let known = tables.lus.get(&lu).filter(|known| vchunk < known.chunks);
            let leg = known.and_then(|known| known.legs_of(vchunk).get(usize::from(record.leg)));
            let taken = leg.map(|entry| entry.chunk());
            if let Some(Some(kept)) = taken {
                wrong.push(Found::Twice { lu, vchunk, kept, left: id });
            } else if taken.is_none() || tables.map_chunk(record).is_err() {
                wrong.push(Found::Nobodys { id, lu });
            } else if (active || record.flags & 1 == 1) && tables.lus[&lu].legs > 1 {
                tables.active.insert((lu, vchunk));
            }
        }
        Ok((tables, wrong))
    }

    /// The LUs that were on pages that are lost, by their chunks: those that are mapped, and those that the journal maps.
    fn guessed(&self) -> Vec<Record> {
        let lost = self.lost_lu_pages();
        let made = self.journal.iter().filter(|record| record.kind == Kind::LuCreate);
        let made: BTreeSet<u32> = made.map(|record| record.lu).collect();
        let later = self.journal.iter().filter(|record| record.kind == Kind::Map);
        let all = self.chunks.iter().map(|fact| &fact.record).chain(later);
        let mut guessed: BTreeMap<u32, Record> = BTreeMap::new();
        for record in all {
            if !lost.contains(&(record.lu / PAGE_RECORDS as u32)) || made.contains(&record.lu) {
                continue;
            }
            let members = &self.superblock.members;
            let Some(pv) = members.get(usize::from(record.pv)) else { continue };
            let pairs = members.iter().any(|other| {
                other.tier == pv.tier && other.group != pv.group && other.state != MemberState::Gone
            });
            let lu = guessed.entry(record.lu).or_insert(Record {
                lu: record.lu,
                leg: if pairs { 2 } else { 1 },
                aux: pv.tier.into(),
                ..Record::of(Kind::LuCreate)
            });
            lu.vchunk = lu.vchunk.max(record.vchunk.saturating_add(1));
        }
        guessed.into_values().collect()
    }
}
