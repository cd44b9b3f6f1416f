//! Chunks of LUs with two legs become whole: legs that may differ are made the same, and one that is missing is added.
//!
//! - *Legs may differ* of chunks that were active when the pool was opened: a crash may have left a write on one of them. The first is copied over the second. Until a block is copied nobody reads it: what was read
//!   stays, whichever PV is lost later.
//! - *One leg* has a chunk that was changed while the PV of the other was away. When that has returned, the other is made anew there or elsewhere, as a leg that moves.
//!
//! Either way the legs are the same then, and if nobody has changed the chunk since, the next root says so ([`activity`]).

use std::ops::RangeInclusive;

use super::*;

/// So many begin at once: for each its home record may have to be read, beside clients.
const BEGINNING_MAX: usize = 16;

/// What is being made whole.
#[derive(Debug, Default)]
pub(super) struct Mends {
    /// Both legs are there, and may differ.
    differ: BTreeSet<(u32, u32)>,
    /// Both legs are the same, and nobody has changed the chunk since ([`activity`]).
    pub(super) quiet: BTreeSet<(u32, u32)>,
    todo: BTreeSet<(u32, u32)>,
    going: BTreeSet<(u32, u32)>,
    /// Those whose writes do not go to both legs so far.
    beginning: BTreeSet<(u32, u32)>,
    failed: BTreeSet<(u32, u32)>,
    /// Containers of which a leg was made whose page is written by the next checkpoint, and by the one that is under way: on which PV, if it is one alone.
    pages: BTreeMap<(u32, u32), Option<u16>>,
    paging: BTreeMap<(u32, u32), Option<u16>>,
    planned: u32,
    over: u32,
    /// The same in blocks, and those of each chunk that is not whole so far, as it was when it was planned.
    planned_blocks: u64,
    over_blocks: u64,
    blocks: BTreeMap<(u32, u32), u32>,
    /// Something has changed that may let a PV be whole.
    stirred: bool,
    /// A PV would be whole but for pages.
    wants_root: bool,
}

/// How far it is that legs get what they missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Resync {
    /// Chunks of LUs, since there was last nothing to do.
    pub planned: u32,
    /// Those that are over, never more.
    pub over: u32,
    /// Those that could not be copied, or for which there is no space: [`Pool::move_again`] tries them again.
    pub failed: u32,
}

/// The same in blocks of 64 KiB: of chunks of which it is known what a leg missed, those alone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResyncBlocks {
    /// Those that are to be copied, since there was last nothing to do.
    pub planned: u64,
    /// Those that are, never more; also of chunks that are not over.
    pub copied: u64,
    /// Those of chunks that could not be copied.
    pub failed: u64,
}

impl Mends {
    /// Those of a pool that is being opened.
    pub(super) fn of(tables: &Tables) -> Mends {
        // Of containers that were mapped or moved since the root.
        let pairs = |key: &&(u32, u32)| tables.lus.get(&key.0).is_some_and(|lu| lu.legs > 1);
        let pages = tables.changed.slots.iter().filter(pairs).map(|key| (*key, None)).collect();
        Mends { differ: tables.active_pairs(), pages, ..Mends::default() }
    }

    pub(super) fn stir(&mut self) {
        self.stirred = true;
    }

    /// One leg is left of a chunk, or none.
    pub(super) fn is_half(&mut self, key: (u32, u32)) {
        self.differ.remove(&key);
        self.quiet.remove(&key);
    }

    /// The legs of a chunk may differ, and nothing is done about it now.
    pub(super) fn differs(&mut self, key: (u32, u32)) {
        self.quiet.remove(&key);
        self.differ.insert(key);
        self.failed.insert(key);
    }

    /// Whether channels may not use a chunk.
    pub(super) fn hides(&self, key: (u32, u32)) -> bool {
        self.differ.contains(&key) || self.quiet.contains(&key)
    }

    /// Of these chunks, how many may differ, and how many are being made whole or are to be.
    pub(super) fn count(&self, which: RangeInclusive<(u32, u32)>) -> (u32, u32) {
        let differ = self.differ.range(which.clone()).count() as u32;
        let all = [&self.todo, &self.going, &self.failed].map(|some| some.range(which.clone()));
        let mending: BTreeSet<_> = all.into_iter().flatten().collect();
        (differ, mending.len() as u32)
    }

    pub(super) fn may_differ(&self, key: (u32, u32)) -> bool {
        self.differ.contains(&key)
    }

    /// A container has a leg on that PV that has no page yet.
    pub(super) fn lacks_page(&mut self, key: (u32, u32), pv: u16) {
        let its = self.pages.entry(key).or_insert(Some(pv));
        *its = its.filter(|known| *known == pv);
    }

    /// A checkpoint writes all pages.
    pub(super) fn begin_pages(&mut self) {
        self.paging = std::mem::take(&mut self.pages);
    }

    /// It ended, well or not.
    pub(super) fn end_pages(&mut self, well: bool) {
        let paging = std::mem::take(&mut self.paging);
        if !well {
            self.pages.extend(paging);
        }
        self.stirred = true;
    }

    /// Whether nothing is being made whole.
    pub(super) fn is_idle(&self) -> bool {
        self.todo.is_empty() && self.going.is_empty()
    }

    /// Whether there are containers with a leg that has no page yet.
    pub(super) fn lacks_pages(&self) -> bool {
        !self.pages.is_empty() || !self.paging.is_empty()
    }

    /// Chunks that are not whole so far.
    pub(super) fn left(&self) -> u32 {
        (self.todo.len() + self.going.len() + self.failed.len()) as u32
    }

    /// Whether a checkpoint is needed before a PV that has returned can be whole.
    pub(super) fn want_root(&self) -> bool {
        self.wants_root && !self.pages.is_empty()
    }

    /// Somebody changes a chunk; whether it was the first.
    pub(super) fn is_changed(&mut self, key: (u32, u32)) -> bool {
        self.quiet.remove(&key)
    }

    /// Nothing is done about a chunk, and it could not be done.
    pub(super) fn is_given_up(&self, key: (u32, u32)) -> bool {
        self.failed.contains(&key) && !self.going.contains(&key)
    }
}

impl Pool {
    /// Chunks that are to be made whole.
    pub(super) fn plan_mends(&mut self) {
        let gone: Vec<(u32, u32)> =
            self.mends.differ.iter().filter(|key| !self.is_mapped(**key)).copied().collect();
        gone.into_iter().for_each(|key| self.mends.is_half(key));
        let halves = self.halves();
        let halves = halves.into_iter().filter(|key| !self.lacks(key.0));
        let todo: BTreeSet<(u32, u32)> = halves.chain(self.mends.differ.iter().copied()).collect();
        let mends = &mut self.mends;
        mends.failed.clear();
        if mends.going.is_empty() {
            (mends.planned, mends.over, mends.over_blocks) = (0, 0, 0);
        }
        let before = mends.todo.len();
        mends.todo = todo.difference(&mends.going).copied().collect();
        mends.planned = (mends.planned + mends.todo.len() as u32).saturating_sub(before as u32);
        mends.stirred = true;
        let todo = self.mends.todo.iter().map(|key| (*key, self.blocks_to_copy(*key)));
        let mut blocks: BTreeMap<(u32, u32), u32> = todo.collect();
        let mends = &mut self.mends;
        let going = mends.going.iter().filter_map(|key| Some((*key, *mends.blocks.get(key)?)));
        blocks.extend(going);
        let left: u64 = blocks.values().map(|blocks| u64::from(*blocks)).sum();
        (mends.blocks, mends.planned_blocks) = (blocks, mends.over_blocks + left);
    }

    /// Chunks that should have two legs and have one, or will have one when the journal is as far.
    pub(crate) fn halves(&self) -> BTreeSet<(u32, u32)> {
        let half = |slot: &Slot| slot.pair && slot.legs.len() == 1;
        let slots = self.slots.iter().filter(|(_, slot)| half(slot)).map(|(key, _)| *key);
        self.tables.halves().into_iter().chain(slots).collect()
    }

    fn is_mapped(&self, key: (u32, u32)) -> bool {
        let lu = self.tables.lus.get(&key.0).filter(|lu| key.1 < lu.chunks);
        lu.is_some_and(|lu| lu.legs_of(key.1).iter().any(|leg| leg.chunk().is_some()))
    }

    pub(super) fn lacks(&self, lu: u32) -> bool {
        self.tables.lus.get(&lu).is_none_or(|lu| self.tables.lacks_pvs(lu.tier))
    }

    /// Begins with as many as may be under way at once: what clients write to those that wait, their legs miss as well.
    pub(super) fn turn_mends(&mut self) {
        if self.phase != Phase::Serving {
            return;
        }
        while self.mends.going.len() < self.policy.mends
            && self.mends.beginning.len() < BEGINNING_MAX
        {
            let Some(key) = self.mends.todo.first().copied() else { break };
            self.mend(key);
        }
        let stirred = std::mem::take(&mut self.mends.stirred);
        if !stirred || !self.mends.is_idle() {
            return;
        }
        let (whole, parted) = (self.is_whole_again().is_some(), self.parted());
        if whole || !parted.is_empty() {
            let mends = &mut self.mends;
            mends.wants_root = mends.lacks_pages();
            if mends.wants_root {
                return;
            }
            if whole {
                self.changes.push_back(Change::Whole);
            }
            parted.into_iter().for_each(|pv| self.part_from(pv));
        }
        self.tell_dismissals();
    }

    fn mend(&mut self, key: (u32, u32)) {
        if !self.mends.todo.remove(&key) {
            let blocks = self.blocks_to_copy(key);
            self.mends.planned += 1;
            self.mends.planned_blocks += u64::from(blocks);
            self.mends.blocks.insert(key, blocks);
        }
        self.mends.failed.remove(&key);
        self.mends.going.insert(key);
        self.mends.beginning.insert(key);
        self.begin_own(Asker::Mend(key), key, PieceKind::Mend);
    }

    /// What is written to a chunk goes to both legs from now on: so many blocks are to be copied, and no more.
    pub(super) fn mend_began(&mut self, key: (u32, u32), blocks: u32) {
        let mends = &mut self.mends;
        if mends.beginning.remove(&key)
            && let Some(planned) = mends.blocks.get_mut(&key)
        {
            let others = mends.planned_blocks.saturating_sub(u64::from(*planned));
            mends.planned_blocks = others + u64::from(blocks);
            *planned = blocks;
        }
    }

    /// Somebody waits for a chunk whose legs may differ.
    pub(super) fn want_mended(&mut self, key: (u32, u32)) {
        if !self.mends.going.contains(&key) {
            self.mend(key);
        }
    }

    /// It is over with a chunk.
    pub(super) fn mended(&mut self, key: (u32, u32), fault: Option<Fault>) {
        self.touched.insert(key);
        self.mends.going.remove(&key);
        self.mends.beginning.remove(&key);
        self.mends.over += 1;
        let blocks = self.mends.blocks.get(&key).copied().unwrap_or_default();
        self.mends.over_blocks += u64::from(blocks);
        if fault.is_some() {
            self.mends.failed.insert(key);
        } else {
            self.mends.blocks.remove(&key);
        }
        self.mends.stirred = true;
        // Who waits to read it reads what there is.
        self.wake(key);
    }

    /// Both legs of a chunk are the same.
    pub(super) fn legs_are_same(&mut self, key: (u32, u32), changed: bool) {
        self.touched.insert(key);
        self.mends.differ.remove(&key);
        if changed {
            self.activity.goes_on(key);
        } else {
            self.becomes_quiet(key);
        }
        self.activity.stirs();
    }

    /// Whether of a container with a leg on that PV the other leg has no page yet.
    pub(super) fn has_only_page(&self, pv: u16) -> bool {
        let mut pages = self.mends.pages.iter().chain(&self.mends.paging);
        pages.any(|((layer, container), lacks)| {
            if *lacks == Some(pv) {
                return false;
            }
            let known = self.tables.lus.get(layer).filter(|known| *container < known.chunks);
            let mut legs = known.into_iter().flat_map(|known| known.legs_of(*container));
            legs.any(|leg| leg.chunk().is_some_and(|id| id.pv == pv))
        })
    }

    /// Tiers in which chunks have one leg that should have two.
    pub(super) fn half_tiers(&self) -> BTreeSet<u8> {
        let halves = self.halves();
        halves.iter().filter_map(|(lu, _)| Some(self.tables.lus.get(lu)?.tier)).collect()
    }

    /// PVs that have returned and have all that they should, if there are any.
    pub(super) fn is_whole_again(&self) -> Option<Vec<u16>> {
        let members = (0..).zip(&self.tables.pvs);
        let returning = members.filter(|(_, pv)| pv.state == MemberState::Returning);
        let returning: Vec<(u16, u8)> = returning.map(|(pv, table)| (pv, table.tier)).collect();
        if returning.is_empty() {
            return None;
        }
        let tiers = self.half_tiers();
        let lacks = |tier: u8| tiers.contains(&tier) || self.tables.lacks_pvs(tier);
        let whole = returning.into_iter().filter(|(_, tier)| !lacks(*tier));
        let whole: Vec<u16> = whole.map(|(pv, _)| pv).collect();
        (!whole.is_empty()).then_some(whole)
    }

    /// A superblock says so.
    pub(super) fn whole_again(&mut self) {
        let members = self.tables.pvs.iter_mut().zip(&self.chosen.superblock.members);
        for (table, member) in members {
            if table.state == MemberState::Returning && member.state == MemberState::In {
                table.state = MemberState::In;
                self.members.is_uneven();
            }
        }
        self.retry_full();
    }

    /// How far it is that legs get what they missed.
    pub fn resync(&self) -> Resync {
        let Mends { planned, over, .. } = self.mends;
        Resync { planned, over, failed: self.failed_mends() }
    }

    /// … in blocks.
    pub fn resync_blocks(&self) -> ResyncBlocks {
        let mends = &self.mends;
        let of = |key: &(u32, u32)| mends.blocks.get(key).copied().map_or(0, u64::from);
        let failed = mends.failed.iter().filter(|key| self.is_mapped(**key)).map(of).sum();
        let part = |key| of(key) * u64::from(self.copied_parts(std::iter::once(key))) / 1024;
        let copied = mends.over_blocks + mends.going.iter().map(part).sum::<u64>();
        let copied = copied.saturating_sub(failed);
        ResyncBlocks { planned: mends.planned_blocks, copied, failed }
    }

    /// Those that could not be made whole are tried again.
    pub(super) fn mend_again(&mut self) {
        if !self.mends.failed.is_empty() {
            self.plan_mends();
        }
    }

    pub(super) fn failed_mends(&self) -> u32 {
        self.mends.failed.iter().filter(|key| self.is_mapped(**key)).count() as u32
    }
}
