//! Opening: the tables from the pages of the last checkpoint and the journal after it, and what must be written before anything else is.

use super::*;
use crate::choose::{LAYERS, NotChosen, choose};
use crate::format::{
    HOME_BYTES, JOURNAL_BLOCK_BYTES, JournalBlock, MEMBERS_MAX, PAGE_BYTES, PAGE_RECORDS, Page,
    PageKind, Place, SECTOR_BYTES, SUPERBLOCK_AT, SystemKind,
};
use crate::hash::Sum;
use crate::tables::Contradiction;
use checkpoint::{Thing, choose_home, home_place, page_place};
use log::journal_places;

/// A PV could not be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PV {pv} cannot be read at byte {at}")]
pub struct ReadFailed {
    /// Its number.
    pub pv: u16,
    /// Where.
    pub at: u64,
}

/// The PVs of a pool that is being opened.
pub trait Source {
    /// Bytes of a PV, exactly so many.
    fn read(&mut self, pv: u16, at: u64, bytes: usize) -> Result<Vec<u8>, ReadFailed>;

    /// Whether there is a PV with that number; one that was removed need not be.
    fn is_there(&mut self, pv: u16) -> bool {
        let _ = pv;
        true
    }
}

/// Why a pool was not opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotOpened {
    /// No superblock counts.
    #[error(transparent)]
    NotChosen(#[from] NotChosen),
    /// It may only be read.
    #[error(
        "the pool has features that this program does not know, bits {unknown:#x} of READ_ONLY, and must not be written to: use the program that made it, or a later one"
    )]
    ReadOnly {
        /// Their bits.
        unknown: u64,
    },
    /// PVs are not there, or have no whole copy of the superblock.
    #[error("of the PVs of the pool {0:?} are not there: look for the disks or their paths")]
    Missing(Vec<Uuid>),
    /// PVs are not there, and the others have all that is needed; but nobody who is there knows whether those went on alone ([`Policy::alone`]).
    #[error("the PVs {0:?} are not there, and may have gone on without those that are")]
    Undecided(Vec<Uuid>),
    /// PVs are older copies of themselves, and cannot be done without.
    #[error(
        "the PVs {0:?} are older copies of themselves, from before the pool was last written to: give them as they were, or restore all PVs as they were at one time"
    )]
    Older(Vec<Uuid>),
    /// Another PV stands where one should be.
    #[error("PV {found} was given where PV {expected}, number {number}, should be")]
    Misplaced {
        /// The number.
        number: u16,
        /// Which has it.
        expected: Uuid,
        /// Which was given.
        found: Uuid,
    },
    /// A PV could not be read.
    #[error(transparent)]
    Read(#[from] ReadFailed),
    /// What the PVs say cannot be.
    #[error(transparent)]
    Contradiction(#[from] Contradiction),
    /// The superblock has no journal for the slot.
    #[error("the pool has no journal for slot {0}")]
    NoJournal(u8),
    /// Pages of LUs cannot be read in any place.
    #[error("page {0} of the LUs is damaged on all PVs that have it")]
    NoLus(u32),
}

/// What is left to do of the opening.
#[derive(Debug, Default)]
pub(super) struct Opening {
    left: usize,
    /// Blocks of the journal that a copy lacks.
    lacking: Vec<(u16, u64, Vec<u8>)>,
    stage: u8,
}

/// The valid copies of the superblock of one PV, whatever pool it is of, for [`choose()`]; `pv` is the number by which `source` knows it.
pub fn superblocks(
    source: &mut dyn Source,
    pv: u16,
) -> Result<Vec<(Superblock, Place)>, ReadFailed> {
    let mut found = Vec::new();
    for (copy, at) in (0..).zip(SUPERBLOCK_AT) {
        let first = source.read(pv, at, SECTOR_BYTES)?;
        let Some(bytes) = Superblock::extent_of(&first) else { continue };
        let all = if bytes == first.len() { first } else { source.read(pv, at, bytes)? };
        found.extend(Superblock::decode(&all, copy));
    }
    Ok(found)
}

impl Pool {
    /// Opens a pool for a server. `source` knows its PVs by the numbers of members; they are those of [`superblocks`], or the pool is not this one. Requests may come at once: they wait until
    /// the effects of the opening are done ([`Pool::is_serving`]). `shadow` is what a process before this one left.
    pub fn open(
        source: &mut dyn Source,
        server: Uuid,
        shadow: Option<&Shadow>,
        policy: Policy,
    ) -> Result<Pool, NotOpened> {
        Pool::open_without(source, server, shadow, &BTreeSet::new(), policy)
    }

    /// The same without PVs that are there and cannot be used: of them only the superblocks are read, which tell that they did not go on without the others.
    pub fn open_without(
        source: &mut dyn Source,
        server: Uuid,
        shadow: Option<&Shadow>,
        without: &BTreeSet<u16>,
        policy: Policy,
    ) -> Result<Pool, NotOpened> {
        let mut found: Vec<(u16, (Superblock, Place))> = Vec::new();
        let (mut pv, mut members) = (0, 0);
        while pv < members || found.is_empty() && usize::from(pv) < MEMBERS_MAX {
            if source.is_there(pv) {
                found.extend(superblocks(source, pv)?.into_iter().map(|copy| (pv, copy)));
            }
            members =
                found.iter().map(|(_, (copy, _))| copy.members.len() as u16).max().unwrap_or(0);
            pv += 1;
        }
        let copies: Vec<(Superblock, Place)> = found.iter().map(|(_, copy)| copy.clone()).collect();
        let chosen = choose(&copies)?;
        if chosen.read_only != 0 {
            return Err(NotOpened::ReadOnly { unknown: chosen.read_only });
        }
        let superblock = &chosen.superblock;
        if superblock.features[0] & LAYERS != 0 && !policy.layers {
            return Err(NotChosen::Features { unknown: LAYERS }.into());
        }
        let slot = 0;
        let missing = judge_members(superblock, &found)?;
        let said = shadow.map(|shadow| shadow.lost_of(superblock, slot)).unwrap_or_default();
        let needed = |pv: &u16| {
            let member = superblock.members.get(usize::from(*pv));
            member.is_some_and(|it| it.state.is_there())
        };
        let older = older::older(superblock, &found);
        let unfit = without.iter().chain(&older).copied();
        let unfit = unfit.filter(|pv| needed(pv) && !missing.contains(pv));
        let unfit: BTreeSet<u16> = unfit.collect();
        let refused = || match older.is_empty() {
            true => not_there(superblock, &(&missing | &unfit)),
            false => NotOpened::Older(uuids(superblock, &older)),
        };
        let lost = &said | &unfit;
        let away = &missing | &lost;
        let mut tables = Tables::new(superblock);
        for pv in &away {
            tables.pvs[usize::from(*pv)].state = MemberState::Stale;
        }
        let mut checkpoint = Checkpoint::default();
        match load_lus(source, superblock, &mut tables, &mut checkpoint) {
            // They are on those.
            Err(NotOpened::NoLus(_)) if !(missing.is_empty() && unfit.is_empty()) => {
                return Err(refused());
            }
            loaded => loaded?,
        }
        let can = may_be_away(superblock, &tables, &away);
        // Of what was lost it is known that it did not go on alone.
        if !can || !policy.alone && may_be_ahead(superblock, &(&missing - &lost)) {
            return match shadow.filter(|_| missing.is_empty() && unfit.is_empty()) {
                // Members have changed since it was lost, and it cannot be done without.
                Some(shadow) => {
                    let shadow = shadow.with_all();
                    Pool::open_without(source, server, Some(&shadow), without, policy)
                }
                None if can && older.is_empty() => {
                    Err(NotOpened::Undecided(uuids(superblock, &missing)))
                }
                None => Err(refused()),
            };
        }
        for pv in 0..superblock.members.len() as u16 {
            let state = tables.pvs[usize::from(pv)].state;
            if state.is_there() {
                load_map(source, superblock, &mut tables, &mut checkpoint, pv)?;
            }
        }
        tables.judge_layers()?;
        load_slots(source, superblock, &mut tables, &mut checkpoint)?;
        let ring = superblock.blocks_of(SystemKind::Journal, slot, JOURNAL_BLOCK_BYTES as u64);
        if ring < 2 {
            return Err(NotOpened::NoJournal(slot));
        }
        let replayed = replay(source, superblock, &away, (slot, ring))?;
        for record in &replayed.records {
            if let Some(id) = tables.needs_bits(record) {
                let bits =
                    read_bits(source, superblock, &mut checkpoint, id, tables.generation(id))?;
                // Both places are damaged: what else was written is not known, and what is said here of some blocks would make zeros of the others. Whoever needs the chunk is told.
                let Some(bits) = bits else { continue };
                tables.bits.insert(id, bits);
            }
            tables.apply(record)?;
        }
        tables.judge_layers()?;
        tables.freed.clear();
        let containers = std::mem::take(&mut tables.freed_containers);
        let mut pool = Pool {
            policy,
            server,
            slot,
            phase: Phase::Opening,
            next_lu: tables.next_lu,
            tables,
            log: Log::new(replayed.next, replayed.previous, ring),
            checkpoint,
            members: Members::default(),
            losses: Losses::default(),
            returning: None,
            mends: Mends::default(),
            activity: Activity::default(),
            missed: Missed::default(),
            checks: Checks::default(),
            sums: Summing::default(),
            features: Features::default(),
            held: HeldCopies::default(),
            settling: BTreeSet::new(),
            slots: BTreeMap::new(),
            dying: BTreeSet::new(),
            layered: Layered::default(),
            cuts: Cuts::default(),
            merges: Merges::default(),
            resizing: BTreeMap::new(),
            taken: Taken::default(),
            own: Vec::new(),
            drained: Vec::new(),
            full: Full::default(),
            reserves: BTreeMap::new(),
            allowed: BTreeMap::new(),
            promised: BTreeMap::new(),
            making: BTreeMap::new(),
            ops: BTreeMap::new(),
            load: Loads::default(),
            writes: BTreeMap::new(),
            jobs: BTreeMap::new(),
            syncs: BTreeMap::new(),
            sync_queue: BTreeMap::new(),
            telling: 0,
            waiters: BTreeMap::new(),
            changes: VecDeque::new(),
            update: None,
            opening: Opening { lacking: replayed.lacking, ..Opening::default() },
            early: Vec::new(),
            touched: BTreeSet::new(),
            number: 0,
            effects: Vec::new(),
            chosen,
            #[cfg(test)]
            broken: None,
            #[cfg(test)]
            last_leg: false,
        };
        pool.count_own();
        pool.mends = Mends::of(&pool.tables);
        pool.hold_containers(pool.log.next - 1, containers);
        pool.members = Members::of(&pool.chosen.superblock, |pv| pool.used_of(pv));
        pool.losses.pending.clone_from(&away);
        away.into_iter().for_each(|pv| pool.leaves_while_away(pv));
        if let Some(shadow) = shadow {
            pool.take_over(source, shadow)?;
        }
        Ok(pool)
    }

    /// Begins: from now on it has effects.
    pub fn start(&mut self) {
        debug_assert!(self.opening.stage == 0 && self.ops.is_empty(), "it begins once");
        self.flush_first();
    }

    /// Takes up the bits that a process before this one knew, of chunks that are still what they were.
    fn take_over(&mut self, source: &mut dyn Source, shadow: &Shadow) -> Result<(), NotOpened> {
        if !shadow.holds_for(&self.chosen.superblock, self.slot) {
            return Ok(());
        }
        self.take_over_parts(shadow);
        let mut taken = Vec::new();
        for (id, generation, live) in &shadow.chunks {
            let Some(key) = self.tables.owner(*id, *generation) else { continue };
            if !self.tables.bits.contains_key(id) {
                let superblock = &self.chosen.superblock;
                let bits = read_bits(source, superblock, &mut self.checkpoint, *id, *generation)?;
                self.tables.bits.insert(*id, bits.unwrap_or_default());
            }
            taken.push((key, *live));
        }
        // When the bits of all legs are there: what is not known of a chunk is not kept for the next process.
        for (key, live) in taken {
            if let Some(slot) = self.slot(key) {
                slot.take_over(live);
            }
        }
        Ok(())
    }

    fn flush_first(&mut self) {
        // What a process before this one wrote may be in caches: nothing is built on it before it is durable.
        let pvs = self.pvs().map(|pv| pv.pv).filter(|pv| !self.tables.is_away(*pv));
        let pvs: Vec<u16> = pvs.collect();
        if self.keeps(Rule::FlushFirst) {
            self.opening.left = pvs.len();
            pvs.into_iter().for_each(|pv| self.give_flush(Op::Opening, pv));
        } else {
            self.opening.left = 1;
            self.opening_done();
        }
    }

    pub(super) fn opening_done(&mut self) {
        self.opening.left = self.opening.left.saturating_sub(1);
        if self.opening.left > 0 {
            return;
        }
        self.opening.stage += 1;
        match self.opening.stage {
            1 => {
                let lacking = std::mem::take(&mut self.opening.lacking);
                self.opening.left = lacking.len();
                for (pv, at, bytes) in lacking {
                    self.give_write(Op::Opening, pv, at, Payload::Own(bytes), true);
                }
                if self.opening.left == 0 {
                    self.opening_done();
                }
            }
            2 => {
                self.changes.push_back(Change::Open);
                self.turn_superblock();
            }
            _ => {
                let start = Record { owner: self.slot, ..Record::of(Kind::Start) };
                let txn = self.log.append(vec![start]);
                self.waiters.entry(txn).or_default().push(Waiter::Opened);
            }
        }
    }

    pub(super) fn opened(&mut self) {
        self.phase = Phase::Serving;
        self.plan_mends();
        for pv in 0..self.tables.pvs.len() as u16 {
            if self.tables.is_away(pv) {
                self.plan_dismissal(pv);
            }
        }
        for (tag, request) in std::mem::take(&mut self.early) {
            self.begin(tag, request);
        }
    }
}

/// All members are where they should be, but for those that are gone or away; those that are not there.
pub(super) fn judge_members(
    superblock: &Superblock,
    found: &[(u16, (Superblock, Place))],
) -> Result<BTreeSet<u16>, NotOpened> {
    let mut missing = BTreeSet::new();
    let there = (0..).zip(&superblock.members);
    for (number, member) in there.filter(|(_, member)| member.state.is_there()) {
        let mut here = found.iter().filter(|(pv, _)| *pv == number).map(|(_, (_, place))| place.pv);
        match (here.clone().next(), here.any(|pv| pv == member.pv)) {
            (_, true) => {}
            (Some(other), false) => {
                return Err(NotOpened::Misplaced { number, expected: member.pv, found: other });
            }
            (None, false) => _ = missing.insert(number),
        }
    }
    if missing.len() < superblock.members.len() {
        return Ok(missing);
    }
    Err(not_there(superblock, &missing))
}

pub(super) fn not_there(superblock: &Superblock, missing: &BTreeSet<u16>) -> NotOpened {
    NotOpened::Missing(uuids(superblock, missing))
}

fn uuids(superblock: &Superblock, pvs: &BTreeSet<u16>) -> Vec<Uuid> {
    pvs.iter().map(|pv| superblock.members[usize::from(*pv)].pv).collect()
}

/// Whether the pool can do without those that are away: all that LUs have there is elsewhere, and so is the journal.
fn may_be_away(superblock: &Superblock, tables: &Tables, away: &BTreeSet<u16>) -> bool {
    let spare = || away.iter().all(|pv| Pool::is_spare(tables, superblock, *pv));
    away.is_empty() || spare() && !Pool::journals(superblock).is_subset(away)
}

/// Whether those that are missing may have been enough for the pool to have gone on with them alone: half of the copies of the journal are there, or a whole failure group is.
fn may_be_ahead(superblock: &Superblock, missing: &BTreeSet<u16>) -> bool {
    let journals = Pool::journals(superblock);
    let there = journals.difference(missing).count();
    !missing.is_empty() && (2 * there <= journals.len() || was_enough(superblock, missing))
}

/// Whether a failure group is missing as a whole that may have lost all others since, and nobody who is there knows.
fn was_enough(superblock: &Superblock, missing: &BTreeSet<u16>) -> bool {
    let members = || (0..).zip(&superblock.members).filter(|(_, pv)| pv.state != MemberState::Gone);
    let groups: BTreeSet<(u8, u8)> = members().map(|(_, pv)| (pv.tier, pv.group)).collect();
    groups.into_iter().any(|group| {
        let mut its = members().filter(|(_, pv)| (pv.tier, pv.group) == group);
        its.all(|(number, pv)| missing.contains(&number) && !pv.state.lacks())
    })
}

/// A page in the place that counts.
pub(super) fn read_page(
    source: &mut dyn Source,
    superblock: &Superblock,
    kind: PageKind,
    pv: u16,
    number: u32,
) -> Result<Option<Page>, ReadFailed> {
    let Some(at) = page_place(superblock, kind, pv, number) else { return Ok(None) };
    let places = source.read(pv, at, 2 * PAGE_BYTES)?;
    let copies = places.chunks(PAGE_BYTES).zip(0..);
    let whole = copies.filter_map(|(block, copy)| {
        Page::decode(block, superblock.pool, kind, pv, number, copy).ok()
    });
    let old = whole.filter(|page| page.sequence <= superblock.root.sequence);
    Ok(old.max_by_key(|page| page.sequence))
}

/// The pages of LUs, which are used from the first on: each from the PV that has the newest.
fn load_lus(
    source: &mut dyn Source,
    superblock: &Superblock,
    tables: &mut Tables,
    checkpoint: &mut Checkpoint,
) -> Result<(), NotOpened> {
    for number in 0..superblock.lu_pages() {
        let mut newest: Option<Page> = None;
        for pv in (0..superblock.members.len() as u16).filter(|pv| !tables.is_away(*pv)) {
            let Some(page) = read_page(source, superblock, PageKind::Lus, pv, number)? else {
                continue;
            };
            checkpoint.places.insert(Thing::Lus(pv, number), page.copy);
            if newest.as_ref().is_none_or(|newest| page.sequence > newest.sequence) {
                newest = Some(page);
            }
        }
        let Some(page) = newest else {
            // The first is written when the pool is made; the others when there are as many LUs.
            return if number == 0 { Err(NotOpened::NoLus(0)) } else { Ok(()) };
        };
        tables.load(&page)?;
        if page.records.len() < PAGE_RECORDS {
            return Ok(());
        }
    }
    Ok(())
}

/// The map pages of a PV. One that is in neither place is made from the home records of its chunks.
fn load_map(
    source: &mut dyn Source,
    superblock: &Superblock,
    tables: &mut Tables,
    checkpoint: &mut Checkpoint,
    pv: u16,
) -> Result<(), NotOpened> {
    let chunks = superblock.members[usize::from(pv)].chunks;
    for number in 0..chunks.div_ceil(PAGE_RECORDS as u32) {
        if let Some(page) = read_page(source, superblock, PageKind::Map, pv, number)? {
            checkpoint.places.insert(Thing::Map(pv, number), page.copy);
            tables.load(&page)?;
            continue;
        }
        let first = number * PAGE_RECORDS as u32;
        for chunk in first..chunks.min(first + PAGE_RECORDS as u32) {
            let id = ChunkId { pv, chunk };
            let Some(at) = home_place(superblock, id) else { continue };
            let places = source.read(pv, at, 2 * HOME_BYTES)?;
            if let Some(home) = choose_home(superblock, id, &places) {
                tables.load_home(&home)?;
            }
        }
        tables.changed.pages.insert((pv, number));
    }
    Ok(())
}

/// What is in the containers of layers, each from the leg that has the newest page. One that cannot be read on any leg is noted: whoever needs it is told.
fn load_slots(
    source: &mut dyn Source,
    superblock: &Superblock,
    tables: &mut Tables,
    checkpoint: &mut Checkpoint,
) -> Result<(), NotOpened> {
    for (layer, container, legs) in tables.containers() {
        let mut newest: Option<Page> = None;
        let mut found = BTreeSet::new();
        for id in legs {
            let places = source.read(id.pv, slots::byte_of(id, 0), 2 * PAGE_BYTES)?;
            let copies = places.chunks(PAGE_BYTES).zip(0..);
            let whole = copies.filter_map(|(block, copy)| {
                let kind = PageKind::Slots;
                Page::decode(block, superblock.pool, kind, id.pv, id.chunk, copy).ok()
            });
            let old = whole.filter(|page| page.sequence <= superblock.root.sequence);
            let page = old.max_by_key(|page| page.sequence);
            found.insert(page.as_ref().map(|page| page.sequence));
            let Some(page) = page else { continue };
            checkpoint.places.insert(checkpoint::Thing::Slots(id), page.copy);
            if newest.as_ref().is_none_or(|newest| page.sequence > newest.sequence) {
                newest = Some(page);
            }
        }
        if !newest.is_some_and(|page| tables.load_slots(layer, container, &page)) {
            tables.unread.insert((layer, container));
        } else if found.len() > 1 {
            tables.changed.slots.insert((layer, container));
        }
    }
    Ok(())
}

/// The written bits of a chunk as the last checkpoint has them.
fn read_bits(
    source: &mut dyn Source,
    superblock: &Superblock,
    checkpoint: &mut Checkpoint,
    id: ChunkId,
    generation: u16,
) -> Result<Option<Bits>, ReadFailed> {
    let Some(at) = home_place(superblock, id) else { return Ok(None) };
    let places = source.read(id.pv, at, 2 * HOME_BYTES)?;
    let Some(home) = choose_home(superblock, id, &places) else { return Ok(None) };
    checkpoint.places.insert(Thing::Home(id), home.copy);
    Ok((home.generation == generation).then_some(Bits(home.written)))
}

/// What the journal says after the checkpoint.
pub(super) struct Replayed {
    /// Of transactions that are whole.
    pub(super) records: Vec<Record>,
    pub(super) next: u64,
    previous: Sum,
    /// Blocks that a copy lacks.
    lacking: Vec<(u16, u64, Vec<u8>)>,
}

/// Follows the chain from the checkpoint's block. At each step the block of the newest epoch counts; copies that have another, or none, lack what follows.
pub(super) fn replay(
    source: &mut dyn Source,
    superblock: &Superblock,
    missing: &BTreeSet<u16>,
    (slot, ring): (u8, u64),
) -> Result<Replayed, NotOpened> {
    let root = superblock.root;
    let (mut next, mut previous) = (root.sequence + 1, root.checksum);
    let (mut records, mut begun): (Vec<Record>, Vec<Record>) = (Vec::new(), Vec::new());
    let mut lacking = Vec::new();
    loop {
        let mut best: Option<(JournalBlock, Vec<u8>)> = None;
        let mut places = journal_places(superblock, slot, next, ring);
        places.retain(|(pv, _)| !missing.contains(pv));
        let mut found = Vec::new();
        for (pv, at) in &places {
            let bytes = source.read(*pv, *at, JOURNAL_BLOCK_BYTES)?;
            let block = JournalBlock::decode(&bytes, superblock.pool, slot, next);
            if let Ok(block) = block.map(|block| (block.previous == previous).then_some(block))
                && let Some(block) = block
                && best.as_ref().is_none_or(|(best, _)| block.epoch > best.epoch)
            {
                best = Some((block, bytes.clone()));
            }
            found.push(bytes);
        }
        let Some((block, bytes)) = best else { break };
        for ((pv, at), found) in places.into_iter().zip(found) {
            if found != bytes {
                lacking.push((pv, at, bytes.clone()));
            }
        }
        previous = JournalBlock::checksum(&bytes);
        next += 1;
        // A server that opens the pool ends what one before it had begun.
        if block.records.first().is_some_and(|record| record.kind == Kind::Start) {
            begun.clear();
        }
        begun.extend(block.records);
        if !block.more {
            records.append(&mut begun);
        }
        if next > root.sequence + ring {
            break;
        }
    }
    Ok(Replayed { records, next, previous, lacking })
}
