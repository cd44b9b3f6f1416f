//! Checkpoints: what changed in the tables is written to its other place, made durable, and then a superblock says from which block on the journal counts. Superblocks of all kinds are written here.

use super::*;
use crate::choose::{MIRROR, mirrors};
use crate::format::{
    HOME_BYTES, Home, Member, PAGE_BYTES, Page, PageKind, Place, SUPERBLOCK_AT, SystemKind,
};
use crate::tables::Changed;
use members::{Draft, Reshape};
use places::Places;

/// A thing with two places.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Thing {
    /// A page of LUs on that PV.
    Lus(u16, u32),
    /// A map page of that PV.
    Map(u16, u32),
    /// A home record.
    Home(ChunkId),
    /// What is in the slots of a container.
    Slots(ChunkId),
}

impl Thing {
    pub(super) fn pv(&self) -> u16 {
        match self {
            Thing::Lus(pv, _) | Thing::Map(pv, _) => *pv,
            Thing::Home(id) | Thing::Slots(id) => id.pv,
        }
    }
}

#[derive(Debug, Default)]
pub(super) struct Checkpoint {
    /// Requests for one that has not begun.
    pub(super) asked: Vec<u64>,
    /// Requests for the one that is under way.
    tags: Vec<u64>,
    stage: Stage,
    /// The members from its root on, if they change with it. The log is held until then.
    pub(super) draft: Option<Draft>,
    /// In which place each thing is that counts; those that are not here have never been written, or it is not known.
    pub(super) places: Places,
    /// Home records whose place was looked for, and that have none that counts.
    pub(super) nowhere: BTreeSet<ChunkId>,
    /// What it writes, and what it ends, in case it fails on a PV that is lost.
    undo: (Changed, Vec<(u32, u32)>),
    failed: bool,
    /// It failed on the PV that was to be added, which is not tried again.
    refused: bool,
}

#[derive(Debug, Default)]
enum Stage {
    #[default]
    Idle,
    /// Looks in which place home records are that count. Those that cannot be read are written in the first.
    Learning {
        left: usize,
    },
    Writing {
        left: usize,
        root: Root,
        written: Vec<(Thing, u8)>,
        pvs: BTreeSet<u16>,
    },
    Flushing {
        left: usize,
        root: Root,
        written: Vec<(Thing, u8)>,
    },
    /// The superblock is being written.
    Root {
        written: Vec<(Thing, u8)>,
    },
}

impl Checkpoint {
    /// What is on a PV is not known any more.
    pub(super) fn forget_pv(&mut self, gone: u16) {
        self.places.forget_pv(gone);
        self.nowhere.retain(|id| id.pv != gone);
    }

    /// It failed on a PV without which it is made again.
    pub(super) fn fails(&mut self) {
        self.failed = true;
    }

    /// It failed on the PV that is to be added.
    pub(super) fn refuses(&mut self) {
        (self.failed, self.refused) = (true, true);
    }

    /// It failed on the PV that was to be added, which is told.
    pub(super) fn was_refused(&mut self) -> bool {
        std::mem::take(&mut self.refused)
    }

    /// Whether its superblock is being written: whatever fails then, it may count.
    pub(super) fn is_at_root(&self) -> bool {
        matches!(self.stage, Stage::Root { .. })
    }

    /// The requests for one, which nobody will make any more.
    pub(super) fn stop(&mut self) -> Vec<u64> {
        self.asked.append(&mut self.tags);
        let draft = self.draft.take();
        self.asked.extend(draft.and_then(|draft| draft.reshape.tag()));
        std::mem::take(&mut self.asked)
    }
}

impl Pool {
    pub(super) fn turn_checkpoint(&mut self) {
        self.turn_superblock();
        let due = !self.checkpoint.asked.is_empty()
            || !self.members.reshapes.is_empty()
            || self.log.next - 1 - self.chosen.superblock.root.sequence
                >= self.policy.checkpoint_blocks.clamp(1, self.log.ring / 2)
            || self.tables.changed.homes.len() >= self.policy.checkpoint_homes
            || self.wanted_features() != 0
            || self.wants_containers()
            || self.mends.want_root()
            || self.quiet_wants_root();
        // Between two blocks of the journal the tables are what it says, and all of it is durable.
        if !matches!(self.checkpoint.stage, Stage::Idle)
            || self.phase != Phase::Serving
            || !due
            || self.log.flight.is_some()
        {
            return;
        }
        // A change of members changes pages without a word in the journal: its checkpoint needs a number of its own, or pages of one that was cut off would count for the one before.
        if !self.members.reshapes.is_empty()
            && self.log.next - 1 == self.chosen.superblock.root.sequence
            && self.keeps(Rule::NewRoot)
        {
            if self.log.is_empty() {
                self.log.append(vec![Record { owner: self.slot, ..Record::of(Kind::Start) }]);
            }
            return;
        }
        self.log.held = true;
        self.checkpoint.tags = std::mem::take(&mut self.checkpoint.asked);
        let Checkpoint { places, nowhere, .. } = &self.checkpoint;
        let unknown =
            |id: &&ChunkId| places.get(&Thing::Home(**id)).is_none() && !nowhere.contains(id);
        let unknown: Vec<ChunkId> =
            self.tables.changed.homes.iter().filter(unknown).copied().collect();
        self.checkpoint.stage = Stage::Learning { left: unknown.len() };
        for id in &unknown {
            self.give_home_read(*id, None);
        }
        if unknown.is_empty() {
            self.write_checkpoint();
        }
    }

    /// Reads both places of a home record.
    pub(super) fn give_home_read(&mut self, id: ChunkId, key: Option<(u32, u32)>) {
        let Some(at) = home_place(&self.chosen.superblock, id) else {
            return self.stop(Fault::Stopped);
        };
        let bytes = 2 * HOME_BYTES as u64;
        let read = |op| Effect::Read { op, pv: id.pv, at, bytes, to: Reader::Pool };
        self.give(Op::Home { id, key }, read);
    }

    pub(super) fn home_read(&mut self, id: ChunkId, key: Option<(u32, u32)>, outcome: Outcome) {
        let superblock = &self.chosen.superblock;
        let away = self.tables.is_away(id.pv);
        let outcome = if away { Outcome::Failed } else { outcome };
        let home = match &outcome {
            Outcome::Bytes(bytes) => choose_home(superblock, id, bytes),
            Outcome::Done | Outcome::Failed => None,
        };
        // What was said since is in the tables, which then know the bits.
        if let Some(home) = &home {
            self.checkpoint.places.learn(Thing::Home(id), home.copy);
        } else if matches!(outcome, Outcome::Bytes(_)) {
            self.checkpoint.nowhere.insert(id);
        }
        match key {
            Some(key) => {
                let generation = self.tables.generation(id);
                let home = home.filter(|home| {
                    (home.lu, home.vchunk, home.generation) == (key.0, key.1, generation)
                });
                let bits = self.tables.bits.get(&id).copied().filter(|_| !away);
                let bits = bits.or(home.map(|home| Bits(home.written)));
                if let Some(bits) = bits {
                    self.tables.bits.insert(id, bits);
                }
                self.bits_known(key, id, bits);
            }
            // A place that cannot be read is not waited for. Whoever changed the bits alone has read it before: what has changed since the root is whose the chunk is. The journal says that, and what
            // is in the places is not needed any more. From the next root on, what is written now counts, since its number is higher, in whichever place it is.
            None => {
                if outcome == Outcome::Failed && !self.keeps(Rule::HomeUnread) {
                    self.tables.changed.homes.remove(&id);
                }
                let Stage::Learning { left } = &mut self.checkpoint.stage else { return };
                *left -= 1;
                if *left == 0 {
                    self.write_checkpoint();
                }
            }
        }
    }

    /// Writes what changed up to the last block of the journal.
    fn write_checkpoint(&mut self) {
        // A change of members drops some of it.
        let before = (!self.members.reshapes.is_empty()).then(|| self.tables.changed.clone());
        self.checkpoint.refused = false;
        self.checkpoint.draft = self.draft();
        let ended = self.end_activity();
        self.mends.begin_pages();
        let draft = self.checkpoint.draft.as_ref();
        self.log.held = draft.is_some();
        let more = draft.map(|draft| self.pages_of(draft)).unwrap_or_default();
        let root = Root { sequence: self.log.next - 1, checksum: self.log.previous };
        let changed = std::mem::take(&mut self.tables.changed);
        let mut undo = changed.clone();
        undo.extend(before.unwrap_or_default());
        (self.checkpoint.undo, self.checkpoint.failed) = ((undo, ended), false);
        let Changed { lus, pages, homes, slots } = changed;
        let superblock = self.next_superblock();
        let returns = self.returns_with(superblock);
        let there = |pv: &u16| Some(*pv) == returns || !self.tables.is_away(*pv);
        let members = (0..superblock.members.len() as u16).filter(there);
        let with_lus =
            members.filter(|pv| superblock.place_of(SystemKind::Lus, 0, *pv, 0).is_some());
        let lus = with_lus.flat_map(|pv| lus.iter().map(move |page| Thing::Lus(pv, *page)));
        let pages = pages.into_iter().map(|(pv, page)| Thing::Map(pv, page));
        let things: BTreeSet<Thing> = lus
            .chain(pages)
            .chain(homes.into_iter().map(Thing::Home))
            .chain(more)
            .chain(self.slot_pages(slots))
            .collect();
        let mut writes = Vec::new();
        let mut written = Vec::new();
        for thing in things {
            let copy = self.checkpoint.places.get(&thing).map_or(0, |place| 1 - place);
            let Some((pv, at, bytes)) = self.image(thing, copy, root.sequence) else {
                return self.stop(Fault::Stopped);
            };
            // What an owner before wrote in the second place must not count.
            if matches!(thing, Thing::Slots(_)) && self.checkpoint.places.get(&thing).is_none() {
                writes.push((pv, at + PAGE_BYTES as u64, vec![0; PAGE_BYTES]));
            }
            writes.push((pv, at, bytes));
            written.push((thing, copy));
        }
        let pvs = writes.iter().map(|(pv, ..)| *pv).collect();
        self.checkpoint.stage = Stage::Writing { left: writes.len(), root, written, pvs };
        for (pv, at, bytes) in writes {
            self.give_write(Op::Checkpoint, pv, at, Payload::Own(bytes), false);
        }
        self.turn_stage();
    }

    /// The superblock that counts, or the one whose members count from the root of the checkpoint on.
    pub(super) fn next_superblock(&self) -> &Superblock {
        let draft = self.checkpoint.draft.as_ref();
        draft.map_or(&self.chosen.superblock, |draft| &draft.superblock)
    }

    /// A thing as it is now, for one of its places.
    fn image(&self, thing: Thing, copy: u8, sequence: u64) -> Option<(u16, u64, Vec<u8>)> {
        let superblock = self.next_superblock();
        let page = |kind, pv, number, records| {
            let (pool, epoch) = (superblock.pool, superblock.epoch);
            let page = Page { pool, kind, pv, number, copy, sequence, epoch, records };
            let at =
                page_place(superblock, kind, pv, number)? + u64::from(copy) * PAGE_BYTES as u64;
            Some((pv, at, page.encode()))
        };
        match thing {
            Thing::Lus(pv, number) => page(PageKind::Lus, pv, number, self.tables.lu_page(number)),
            Thing::Map(pv, number) => {
                page(PageKind::Map, pv, number, self.tables.map_page(pv, number))
            }
            Thing::Slots(id) => {
                let (layer, container) = self.tables.container_of(id)?;
                let records = self.tables.parts.page(layer, container);
                let (pool, epoch) = (superblock.pool, superblock.epoch);
                let (pv, number, kind) = (id.pv, id.chunk, PageKind::Slots);
                let page = Page { pool, kind, pv, number, copy, sequence, epoch, records };
                let at = slots::byte_of(id, u64::from(copy) * PAGE_BYTES as u64);
                Some((pv, at, page.encode()))
            }
            Thing::Home(id) => {
                let home = Home { copy, ..self.tables.home(id, superblock, sequence) };
                let at = home_place(superblock, id)? + u64::from(copy) * HOME_BYTES as u64;
                Some((id.pv, at, home.encode()))
            }
        }
    }

    pub(super) fn checkpoint_done(&mut self) {
        if let Stage::Writing { left, .. } | Stage::Flushing { left, .. } =
            &mut self.checkpoint.stage
        {
            *left -= 1;
        }
        self.turn_stage();
    }

    /// The PV that returns with this superblock.
    fn returns_with(&self, superblock: &Superblock) -> Option<u16> {
        let mut pvs = 0..superblock.members.len() as u16;
        pvs.find(|pv| {
            let state = superblock.members[usize::from(*pv)].state;
            state == MemberState::Returning && self.tables.is_away(*pv)
        })
    }

    /// Chunks that are active until the checkpoint that is under way is over.
    pub fn ending_chunks(&self) -> usize {
        let (_, ended) = &self.checkpoint.undo;
        let ends = !matches!(self.checkpoint.stage, Stage::Idle);
        ended.iter().filter(|key| ends && !self.tables.active.contains(key)).count()
    }

    /// It is as if the checkpoint had not been begun.
    fn undo_checkpoint(&mut self) {
        let (changed, ended) = std::mem::take(&mut self.checkpoint.undo);
        let members = self.chosen.superblock.members.len();
        let there = |pv: u16| usize::from(pv) < members && !self.tables.is_away(pv);
        let pages: Vec<(u16, u32)> =
            changed.pages.into_iter().filter(|(pv, _)| there(*pv)).collect();
        let homes: Vec<ChunkId> = changed.homes.into_iter().filter(|id| there(id.pv)).collect();
        let now = &mut self.tables.changed;
        now.lus.extend(changed.lus);
        now.pages.extend(pages);
        now.homes.extend(homes);
        now.slots.extend(changed.slots);
        // What is gone is written by nobody.
        let lus = &self.tables.lus;
        now.slots.retain(|(layer, _)| lus.contains_key(layer));
        if self.keeps(Rule::ActivityGoesOn) {
            self.activity_goes_on(ended);
        }
        self.checkpoint.failed = false;
        self.mends.end_pages(false);
        let tags = std::mem::take(&mut self.checkpoint.tags);
        self.checkpoint.asked.extend(tags);
        if let Some(draft) = self.checkpoint.draft.take() {
            self.undo_reshape(draft);
        }
        self.log.held = false;
    }

    fn turn_stage(&mut self) {
        let flushes = self.keeps(Rule::RootAfterPages);
        if matches!(self.checkpoint.stage, Stage::Flushing { left: 0, .. })
            && self.ends_unsure(&self.checkpoint.undo.1)
        {
            self.checkpoint.failed = true;
        }
        if self.checkpoint.failed
            && let Stage::Writing { left: 0, .. } | Stage::Flushing { left: 0, .. } =
                self.checkpoint.stage
        {
            self.checkpoint.stage = Stage::Idle;
            return self.undo_checkpoint();
        }
        match std::mem::take(&mut self.checkpoint.stage) {
            Stage::Writing { left: 0, root, written, pvs } => {
                let mut pvs = if flushes { pvs } else { BTreeSet::new() };
                if !self.keeps(Rule::QuietAfterFlush) && !self.checkpoint.undo.1.is_empty() {
                    pvs.pop_last();
                }
                self.checkpoint.stage = Stage::Flushing { left: pvs.len(), root, written };
                pvs.into_iter().for_each(|pv| self.give_flush(Op::Checkpoint, pv));
                self.turn_stage();
            }
            Stage::Flushing { left: 0, root, written } => {
                self.checkpoint.stage = Stage::Root { written };
                self.changes.push_back(Change::Root(root));
                self.turn_superblock();
            }
            same => self.checkpoint.stage = same,
        }
    }

    /// Begins with the next superblock, when the one before it is durable.
    pub(super) fn turn_superblock(&mut self) {
        if self.update.is_some() {
            return;
        }
        let lost = (!self.losses.pending.is_empty()).then_some(Change::Lose);
        let Some(change) = self.changes.pop_front().or(lost) else { return };
        let now = &self.chosen.superblock;
        let mut next = now.clone();
        next.sequence = self.chosen.next;
        next.parent = now.fingerprint();
        next.features[0] |= self.wanted_features();
        match change {
            Change::Open => {
                next.epoch += 1;
                let owner = &mut next.owners[usize::from(self.slot)];
                owner.server = self.server;
                owner.epoch += 1;
            }
            Change::Root(root) => {
                if let Some(Draft { superblock, reshape, .. }) = &self.checkpoint.draft {
                    next.epoch = superblock.epoch.max(now.epoch + 1);
                    next.members.clone_from(&superblock.members);
                    // Of the others there may be news since the draft was made.
                    let others = (0..).zip(next.members.iter_mut().zip(&now.members));
                    for (_, (next, now)) in others.filter(|(pv, (_, now))| {
                        reshape.member() != Some(*pv) || reshape.yields_to(now.state)
                    }) {
                        *next = *now;
                    }
                    if let Reshape::Gone(pv) = reshape {
                        let (next, now) = (&mut next.members, &now.members[usize::from(*pv)]);
                        next[usize::from(*pv)] = Member { state: MemberState::Gone, ..*now };
                    }
                    if let Reshape::Grow(_, pv, _) = reshape {
                        let chunks = superblock.members[usize::from(*pv)].chunks;
                        next.members[usize::from(*pv)] =
                            Member { chunks, ..now.members[usize::from(*pv)] };
                    }
                    next.extents.clone_from(&superblock.extents);
                }
                next.root = root;
            }
            Change::Lose => next.epoch += 1,
            Change::Whole => {
                for pv in self.is_whole_again().unwrap_or_default() {
                    next.members[usize::from(pv)].state = MemberState::In;
                }
            }
        }
        let lost = self.mark_lost(&mut next, now.epoch);
        if !lost.is_empty() && next.epoch == now.epoch {
            next.epoch += 1;
        }
        self.seal(&mut next);
        let pairs = [self.chosen.first, self.chosen.then()].map(|pair| (pair.to_vec(), None));
        // A PV that is added has copies before others name it: without one it would not be known for what it is.
        let added = (now.members.len() < next.members.len()).then_some(now.members.len() as u16);
        let added =
            added.filter(|_| self.keeps(Rule::AddedFirst)).map(|pv| (vec![0, 1, 2, 3], Some(pv)));
        let then = added.into_iter().chain(pairs).collect();
        self.update = Some(Update { change, next, lost, then, left: 0, failed: false });
        self.write_copies();
    }

    /// What any superblock says, whatever it is for.
    fn seal(&self, next: &mut Superblock) {
        let epoch = next.epoch;
        let sees = !self.keeps(Rule::SeenBefore);
        let there = next.members.iter_mut().filter(|member| match member.state {
            MemberState::Gone => false,
            MemberState::Stale => sees,
            MemberState::Dismissed => false,
            _ => true,
        });
        there.for_each(|member| member.seen = epoch);
        if mirrors(&next.members) {
            next.features[0] |= MIRROR;
        }
    }

    /// A superblock could not be written on a PV that is away now: another follows it. What there is of it may count, on that PV, until the next does.
    fn write_without(&mut self) {
        let follows = self.keeps(Rule::FollowFailed);
        let Some(Update { change, next: before, .. }) = self.update.take() else { return };
        let mut next = before.clone();
        if follows {
            next.sequence += 1;
            next.parent = before.fingerprint();
        }
        next.epoch += 1;
        let lost = self.mark_lost(&mut next, before.epoch);
        self.seal(&mut next);
        let pairs = [self.chosen.first, self.chosen.then()].map(|pair| (pair.to_vec(), None));
        let then = pairs.into_iter().collect();
        self.update = Some(Update { change, next, lost, then, left: 0, failed: false });
        self.write_copies();
    }

    /// Writes the next copies of the next superblock; false if all of them are written.
    fn write_copies(&mut self) -> bool {
        let Some(update) = &mut self.update else { return true };
        let Some((which, only)) = update.then.pop_front() else { return false };
        let mut copies = Vec::new();
        for (number, member) in (0..).zip(&update.next.members) {
            if !member.state.is_there() || only.is_some_and(|only| only != number) {
                continue;
            }
            for &copy in &which {
                let place = Place { member: number, pv: member.pv, copy };
                let at = SUPERBLOCK_AT[usize::from(copy)];
                copies.push((number, at, update.next.encode(place)));
            }
        }
        update.left = copies.len() as u32;
        for (pv, at, bytes) in copies {
            self.give_write(Op::Superblock, pv, at, Payload::Own(bytes), true);
        }
        true
    }

    pub(super) fn superblock_done(&mut self, pv: u16, outcome: &Outcome) {
        if *outcome == Outcome::Failed {
            if !self.lose(pv) {
                return self.stop(Fault::Stopped);
            }
            self.loses_again(pv);
        }
        let Some(update) = &mut self.update else { return };
        update.left -= 1;
        update.failed |= *outcome == Outcome::Failed;
        if update.left > 0 {
            return;
        }
        if update.failed {
            return self.write_without();
        }
        if self.write_copies() {
            return;
        }
        let Some(Update { change, next, lost, .. }) = self.update.take() else { return };
        self.chosen.next = next.sequence + 1;
        self.chosen.superblock = next;
        self.count_own();
        self.lost_for_good(&lost);
        if !matches!(change, Change::Root(_)) || self.checkpoint.draft.is_some() {
            self.look_again();
        }
        match change {
            Change::Open => self.opening_done(),
            Change::Lose => {}
            Change::Whole => self.whole_again(),
            Change::Root(_) => {
                let stage = std::mem::take(&mut self.checkpoint.stage);
                if let Stage::Root { written } = stage {
                    // What was written to one that is away may be lost with it.
                    let members = &self.chosen.superblock.members;
                    let there = |pv: u16| members[usize::from(pv)].state.is_there();
                    let written = written.into_iter().filter(|(thing, _)| there(thing.pv()));
                    let places = &mut self.checkpoint.places;
                    written.for_each(|(thing, place)| places.insert(thing, place));
                }
                self.mends.end_pages(true);
                self.checkpoint.nowhere.clear();
                for tag in std::mem::take(&mut self.checkpoint.tags) {
                    self.answer(tag, Ok(Reply::Done));
                }
                self.forget();
                self.tell_untold();
                self.release_containers();
                if let Some(Draft { reshape, .. }) = self.checkpoint.draft.take() {
                    self.log.held = false;
                    self.reshaped(reshape);
                }
            }
        }
    }
}

/// Where the first place of a page is.
pub(super) fn page_place(
    superblock: &Superblock,
    kind: PageKind,
    pv: u16,
    number: u32,
) -> Option<u64> {
    let kind = match kind {
        PageKind::Map => SystemKind::Map,
        PageKind::Lus => SystemKind::Lus,
        PageKind::Slots => return None,
    };
    superblock.place_of(kind, 0, pv, 2 * PAGE_BYTES as u64 * u64::from(number))
}

/// Where the first place of a home record is.
pub(super) fn home_place(superblock: &Superblock, id: ChunkId) -> Option<u64> {
    superblock.place_of(SystemKind::Homes, 0, id.pv, 2 * HOME_BYTES as u64 * u64::from(id.chunk))
}

/// The one of both places of a home record that counts.
pub(super) fn choose_home(superblock: &Superblock, id: ChunkId, places: &[u8]) -> Option<Home> {
    let copies = places.chunks(HOME_BYTES).zip(0..);
    let whole = copies.filter_map(|(block, copy)| {
        Home::decode(block, superblock.pool, id.pv, id.chunk, copy).ok()
    });
    whole.filter(|home| home.sequence <= superblock.root.sequence).max_by_key(|home| home.sequence)
}
