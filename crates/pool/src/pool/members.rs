//! PVs come and go.
//!
//! ```text
//! add:     label ──► a checkpoint with all its pages, and the superblock that names it ──► answered
//! keep:    the superblock says *in* again ──► answered, and who waits for its removal is told that
//! grow:    a checkpoint with its further map pages, and the superblock that says how many chunks it has ──► answered
//! remove:  the superblock says *leaving*, nothing new goes there ──► its legs move to other PVs ──► a checkpoint, and the superblock that says *gone* ──► label and superblocks erased ──► answered
//! ```
//!
//! One that is [away](dismissals) leaves without being there.
//!
//! Each change of members is the end of a checkpoint during which no block of the journal is written: a copy of the journal that a PV gets begins with the block after the checkpoint's, and lacks
//! nothing. A crash leaves the members before or those after. One that leaves goes on leaving when the pool is opened again.
//!
//! When PVs have come or gone, or the pool was opened, chunks move to where less is: a [plan](crate::rebalance) is made once and carried out. What is not where the plan has it any more is left out.
//! Before that those move that are on PVs of another tier than their LU's. What they need in its tier is [set aside](Pool::set_aside) until they are there.

mod astray;

use super::*;
use crate::format::{
    Extent as Own, Label, MARKS_AT, MEMBERS_MAX, Member, PAGE_RECORDS, SystemKind,
};
use crate::make::{COPIES, NewPv, layout};
use crate::rebalance::{self, Held, Move, Share};

/// Legs that move away from PVs at once.
const MOVES_AT_ONCE: usize = 4;

/// A change of members.
#[derive(Clone, Debug)]
pub(super) enum Reshape {
    Add(u64, NewPv),
    /// One has so many chunks.
    Grow(u64, u16, u32),
    Leave(u64, u16),
    /// One that was to leave does not.
    Stay(u64, u16),
    Gone(u16),
    /// One that was away is there again.
    Return(u16),
    /// One that is away does not return.
    Dismiss(u16),
}

impl Reshape {
    /// The member that it changes, if it was one before.
    pub(super) fn member(&self) -> Option<u16> {
        match self {
            Reshape::Add(..) => None,
            Reshape::Leave(_, pv) | Reshape::Stay(_, pv) | Reshape::Grow(_, pv, _) => Some(*pv),
            Reshape::Gone(pv) | Reshape::Return(pv) | Reshape::Dismiss(pv) => Some(*pv),
        }
    }
}

/// The members after a change, and what a checkpoint has to write besides what changed.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) superblock: Superblock,
    pub(super) reshape: Reshape,
    /// The PV of which all map pages are new from this one on.
    pub(super) maps: Option<(u16, u32)>,
    /// The PV that gets copies of the journal and of all pages of LUs.
    pub(super) copies: Option<u16>,
}

/// A PV whose chunks move away.
#[derive(Debug, Default)]
pub(super) struct Leaving {
    pub(super) tags: Vec<u64>,
    pub(super) planned: u32,
    pub(super) moving: BTreeSet<(u32, u32)>,
    /// Those that could not be copied, and those of them that are tried again.
    failed: BTreeSet<(u32, u32)>,
    again: BTreeSet<(u32, u32)>,
    /// Its removal is the next change of members; of one that is away, that it does not return.
    pub(super) last: bool,
}

impl Leaving {
    /// One that has just begun; who waits for it.
    pub(super) fn of(tags: Vec<u64>) -> Leaving {
        Leaving { tags, ..Leaving::default() }
    }
}

/// PVs that leave, and changes of members that wait for each other.
#[derive(Debug, Default)]
pub(super) struct Members {
    pub(super) reshapes: VecDeque<Reshape>,
    pub(super) leaving: BTreeMap<u16, Leaving>,
    /// Something has changed since legs were last looked for that can move.
    stirred: bool,
    /// Members have changed since a plan was made.
    uneven: bool,
    plan: VecDeque<Planned>,
    /// The plan is of chunks that are astray.
    gathers: bool,
    /// LUs and layers that may have some.
    astray: BTreeSet<u32>,
    /// Some had nowhere to go.
    crowded: bool,
    pub(super) balancing: BTreeSet<(u32, u32)>,
    balance: Balance,
    /// Writes that erase a PV that is gone, and who waits for it.
    erasing: BTreeMap<u16, (u32, Vec<u64>)>,
}

/// A move of the plan; without a goal, to where most is free in the LU's tier.
#[derive(Clone, Copy, Debug)]
struct Planned {
    held: Held,
    from: u16,
    to: Option<u16>,
}

/// How far the removal of a PV is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Removal {
    /// The PV.
    pub pv: u16,
    /// Chunks that it had when the removal began, or the pool was opened.
    pub planned: u32,
    /// Those of them that are elsewhere by now, never more.
    pub moved: u32,
    /// Those that could not be copied so far: [`Pool::move_again`] tries them again.
    pub failed: u32,
}

/// How far the last plan is by which chunks move to where less is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Balance {
    /// Its moves.
    pub planned: u32,
    /// Those that are over, never more.
    pub over: u32,
    /// Those of them that could not be copied: [`Pool::move_again`] makes another plan.
    pub failed: u32,
}

impl Members {
    /// Takes up PVs that were leaving when the pool was opened.
    pub(super) fn of(superblock: &Superblock, used: impl Fn(u16) -> u32) -> Members {
        let members = (0..).zip(&superblock.members);
        let leaves = |state| matches!(state, MemberState::Leaving | MemberState::Dismissed);
        let leaving = members.filter(|(_, member)| leaves(member.state));
        let leaving = leaving
            .map(|(pv, _)| (pv, Leaving { planned: used(pv), ..Leaving::default() }))
            .collect();
        Members { leaving, stirred: true, uneven: true, ..Members::default() }
    }

    /// The requests that nobody will carry out any more.
    pub(super) fn stop(&mut self) -> Vec<u64> {
        let waiting: Vec<u64> =
            self.reshapes.drain(..).filter_map(|reshape| reshape.tag()).collect();
        let leaving = std::mem::take(&mut self.leaving).into_values();
        let erasing = std::mem::take(&mut self.erasing).into_values();
        let leaving = leaving.flat_map(|leaving| leaving.tags);
        waiting.into_iter().chain(leaving).chain(erasing.flat_map(|(_, tags)| tags)).collect()
    }

    pub(super) fn stir(&mut self) {
        self.stirred = true;
    }

    /// Whether a PV leaves and nothing is on its way from it.
    pub(super) fn waits_for_nothing(&self, pv: u16) -> bool {
        self.leaving.get(&pv).is_some_and(|leaving| !leaving.last && leaving.moving.is_empty())
    }

    /// Members have changed: a plan is made.
    pub(super) fn is_uneven(&mut self) {
        self.uneven = true;
    }

    /// Whether a PV leaves.
    pub(super) fn leaves(&self, pv: u16) -> bool {
        self.leaving.contains_key(&pv)
    }

    /// A PV is away, and does not leave as others do: who waits for that, if it was to leave, and who wants it to stay.
    pub(super) fn lost(&mut self, pv: u16) -> (Option<Vec<u64>>, Vec<u64>) {
        let mut leaves = self.leaving.remove(&pv).map(|leaving| leaving.tags);
        let mut stays = Vec::new();
        self.reshapes.retain(|reshape| match reshape {
            Reshape::Leave(tag, other) if *other == pv => {
                leaves.get_or_insert_default().push(*tag);
                false
            }
            Reshape::Stay(tag, other) if *other == pv => {
                stays.push(*tag);
                false
            }
            Reshape::Gone(other) => *other != pv,
            _ => true,
        });
        self.stirred = true;
        (leaves, stays)
    }
}

impl Pool {
    pub(super) fn add_pv(&mut self, tag: u64, new: NewPv) {
        let superblock = &self.chosen.superblock;
        if superblock.members.iter().any(|member| member.pv == new.pv) {
            return self.answer(tag, Err(Fault::PvKnown));
        }
        let adds = self.members.reshapes.iter().any(|other| matches!(other, Reshape::Add(..)));
        if adds || self.ops.values().any(|(op, _)| matches!(op, Op::Join { .. })) || self.joins() {
            return self.answer(tag, Err(Fault::Busy));
        }
        let number = superblock.members.len() as u16;
        if superblock.members.len() >= MEMBERS_MAX || layout(number, new.chunks, true).is_err() {
            return self.answer(tag, Err(Fault::PvUnfit));
        }
        // Whoever cannot write even this would stop the pool later.
        let label = Label { pool: superblock.pool, pv: new.pv }.encode();
        self.give_write(Op::Join { tag, new }, number, 0, Payload::Own(label), true);
    }

    pub(super) fn joins(&self) -> bool {
        let draft = self.checkpoint.draft.as_ref();
        draft.is_some_and(|draft| matches!(draft.reshape, Reshape::Add(..)))
    }

    pub(super) fn label_written(&mut self, tag: u64, new: NewPv, outcome: &Outcome) {
        match outcome {
            Outcome::Failed => self.answer(tag, Err(Fault::Medium)),
            _ => self.members.reshapes.push_back(Reshape::Add(tag, new)),
        }
    }

    pub(super) fn remove_pv(&mut self, tag: u64, pv: u16) {
        let state = self.chosen.superblock.members.get(usize::from(pv)).map(|member| member.state);
        if let Some(leaving) = self.members.leaving.get_mut(&pv) {
            leaving.tags.push(tag);
            leaving.again.append(&mut leaving.failed);
            self.mend_again();
            return self.members.stir();
        }
        match state {
            None | Some(MemberState::Gone) => return self.answer(tag, Err(Fault::NoSuchPv)),
            Some(_) if self.tables.is_away(pv) => return self.dismiss(tag, pv),
            Some(MemberState::In) => {}
            Some(_) => return self.answer(tag, Err(Fault::Away)),
        }
        if !self.has_room_without(pv) {
            return self.answer(tag, Err(Fault::NoSpace));
        }
        self.members.reshapes.push_back(Reshape::Leave(tag, pv));
    }

    pub(super) fn keep_pv(&mut self, tag: u64, pv: u16) {
        let state = self.chosen.superblock.members.get(usize::from(pv)).map(|member| member.state);
        let draft = self.checkpoint.draft.as_ref().map(|draft| &draft.reshape);
        let leaves = self.members.reshapes.iter().chain(draft).any(|other| match other {
            Reshape::Leave(_, other) => *other == pv,
            _ => false,
        });
        match state {
            None | Some(MemberState::Gone) => self.answer(tag, Err(Fault::NoSuchPv)),
            _ if self.tables.is_away(pv) && self.members.leaves(pv) => {
                self.answer(tag, Err(Fault::Dismissed));
            }
            _ if self.members.leaving.get(&pv).is_some_and(|leaving| leaving.last) => {
                self.answer(tag, Err(Fault::Busy));
            }
            Some(MemberState::Leaving) => self.members.reshapes.push_back(Reshape::Stay(tag, pv)),
            Some(_) if leaves => self.members.reshapes.push_back(Reshape::Stay(tag, pv)),
            Some(_) => self.answer(tag, Ok(Reply::Done)),
        }
    }

    /// Whether somebody wants it to stay.
    fn stays(&self, pv: u16) -> bool {
        let stay = |other: &Reshape| matches!(other, Reshape::Stay(_, other) if *other == pv);
        self.members.reshapes.iter().any(stay)
            || self.checkpoint.draft.as_ref().is_some_and(|draft| stay(&draft.reshape))
    }

    /// The members after the next change, if there is one to be made; the tables are as after it.
    pub(super) fn draft(&mut self) -> Option<Draft> {
        let reshape = self.next_reshape()?;
        let mut superblock = self.chosen.superblock.clone();
        superblock.epoch += 1;
        let (mut maps, mut copies) = (None, None);
        match &reshape {
            Reshape::Add(_, new) => {
                let number = superblock.members.len() as u16;
                let (holders, groups) = self.holders(&superblock, None);
                let gets = holders.len() < COPIES
                    || holders.len() == COPIES && !groups.contains(&new.group);
                superblock.extents.extend(layout(number, new.chunks, gets).ok()?);
                superblock.members.push(Member { seen: superblock.epoch, ..new.member() });
                self.tables.add_pv(&superblock, number);
                maps = Some((number, 0));
                copies = gets.then_some(number);
            }
            Reshape::Grow(_, pv, chunks) => {
                maps = Some((*pv, self.draft_growth(&mut superblock, *pv, *chunks)?));
            }
            Reshape::Leave(_, pv) => {
                superblock.members[usize::from(*pv)].state = MemberState::Leaving;
                self.tables.pvs[usize::from(*pv)].state = MemberState::Leaving;
            }
            Reshape::Stay(_, pv) => {
                superblock.members[usize::from(*pv)].state = MemberState::In;
                self.tables.pvs[usize::from(*pv)].state = MemberState::In;
            }
            Reshape::Return(pv) => {
                self.draft_return(&mut superblock, *pv);
                maps = Some((*pv, 0));
                let holds = superblock.place_of(SystemKind::Journal, self.slot, *pv, 0).is_some();
                copies = holds.then_some(*pv);
            }
            Reshape::Dismiss(pv) => {
                superblock.members[usize::from(*pv)].state = MemberState::Dismissed;
                self.tables.pvs[usize::from(*pv)].state = MemberState::Dismissed;
            }
            Reshape::Gone(pv) => {
                if self.tables.is_away(*pv) && !self.is_parted_from(*pv) {
                    self.members.leaving.entry(*pv).or_default().last = false;
                    self.mends.stir();
                    return None;
                }
                let (holders, groups) = self.holders(&superblock, None);
                let its = superblock.members[usize::from(*pv)];
                let held = superblock.place_of(SystemKind::Journal, self.slot, *pv, 0).is_some();
                // Of one that was away others may have taken them over.
                let lacks = holders.len() < COPIES || !groups.contains(&its.group);
                superblock.extents.retain(|extent| extent.pv != *pv);
                superblock.members[usize::from(*pv)].state = MemberState::Gone;
                self.tables.remove_pv(*pv);
                if holders.contains(pv) || held && lacks {
                    copies = self.heir(&superblock, *pv);
                }
                for kind in copies.map_or(&[][..], |_| &[SystemKind::Journal, SystemKind::Lus]) {
                    let heir = copies?;
                    let id = self.free_chunk(heir)?;
                    self.missed.is_taken(id);
                    self.tables.take_own(id);
                    superblock.extents.push(Own {
                        kind: *kind,
                        slot: if *kind == SystemKind::Journal { self.slot } else { 0 },
                        pv: heir,
                        chunk: id.chunk,
                        count: 1,
                    });
                }
            }
        }
        Some(Draft { superblock, reshape, maps, copies })
    }

    /// PVs that have copies of the journal, but for one, and their failure groups.
    pub(super) fn holders(
        &self,
        superblock: &Superblock,
        but: Option<u16>,
    ) -> (BTreeSet<u16>, BTreeSet<u8>) {
        let extents = superblock.extents.iter();
        let away = |pv: u16| superblock.members[usize::from(pv)].state.is_away();
        let journals =
            extents.filter(|extent| extent.kind == SystemKind::Journal && !away(extent.pv));
        let holders: BTreeSet<u16> =
            journals.map(|extent| extent.pv).filter(|pv| Some(*pv) != but).collect();
        let groups = holders.iter().map(|pv| superblock.members[usize::from(*pv)].group).collect();
        (holders, groups)
    }

    /// The PV that gets the copies of one that goes: of a failure group without, if there is one, that with most space.
    fn heir(&self, superblock: &Superblock, pv: u16) -> Option<u16> {
        let (holders, groups) = self.holders(superblock, Some(pv));
        let members = (0..).zip(&superblock.members);
        let fit = members.filter(|(number, member)| {
            member.state == MemberState::In
                && !self.tables.is_away(*number)
                && !holders.contains(number)
                && self.free_of(*number) >= 2
        });
        let best = fit.max_by_key(|(number, member)| {
            (!groups.contains(&member.group), self.free_of(*number), std::cmp::Reverse(*number))
        });
        best.map(|(number, _)| number)
    }

    /// The pages that a checkpoint writes because of a change of members.
    pub(super) fn pages_of(&self, draft: &Draft) -> Vec<checkpoint::Thing> {
        let pages = self.next_lu.div_ceil(PAGE_RECORDS as u32).max(1);
        let lus = draft
            .copies
            .into_iter()
            .flat_map(|pv| (0..pages).map(move |page| checkpoint::Thing::Lus(pv, page)));
        let maps = draft.maps.into_iter().flat_map(|(pv, first)| {
            let chunks = draft.superblock.members[usize::from(pv)].chunks;
            let pages = chunks.div_ceil(PAGE_RECORDS as u32);
            (first..pages).map(move |page| checkpoint::Thing::Map(pv, page))
        });
        lus.chain(maps).collect()
    }

    /// The superblock that says it is durable.
    pub(super) fn reshaped(&mut self, reshape: Reshape) {
        match reshape {
            Reshape::Add(tag, new) => {
                let members = &self.chosen.superblock.members;
                let number = members.iter().position(|member| member.pv == new.pv);
                self.answer(tag, Ok(Reply::Added(number.unwrap_or_default() as u16)));
                self.members.uneven = true;
                self.mend_again();
                self.retry_full();
            }
            Reshape::Grow(tag, pv, _) => self.has_grown(tag, pv),
            Reshape::Return(pv) => {
                // It was lost again when this superblock was written.
                let state = self.chosen.superblock.members[usize::from(pv)].state;
                if state.is_away() { self.undo_return(pv) } else { self.returned(pv) }
            }
            Reshape::Leave(tag, pv) => {
                let planned = self.used_of(pv);
                let leaving = self.members.leaving.entry(pv).or_default();
                leaving.planned = leaving.planned.max(planned);
                leaving.tags.push(tag);
            }
            Reshape::Stay(tag, pv) => {
                let tags = self.members.leaving.remove(&pv).map(|leaving| leaving.tags);
                for tag in tags.unwrap_or_default() {
                    self.answer(tag, Err(Fault::Cancelled));
                }
                self.answer(tag, Ok(Reply::Done));
                self.members.uneven = true;
                self.retry_full();
            }
            Reshape::Dismiss(pv) => self.dismissed(pv),
            Reshape::Gone(pv) => {
                self.members.uneven = true;
                self.tables.remove_pv(pv);
                let tags = self.members.leaving.remove(&pv).map(|leaving| leaving.tags);
                // Nothing is written to what is not there, and may be another device by now.
                if self.chosen.superblock.members[usize::from(pv)].left_while_away() {
                    let tags = tags.unwrap_or_default();
                    tags.into_iter().for_each(|tag| self.answer(tag, Ok(Reply::Done)));
                    return self.members.stir();
                }
                let erasing = (MARKS_AT.len() as u32, tags.unwrap_or_default());
                self.members.erasing.insert(pv, erasing);
                let what = || Payload::Zeros(crate::format::SECTOR_BYTES as u64);
                MARKS_AT
                    .into_iter()
                    .for_each(|at| self.give_write(Op::Erase { pv }, pv, at, what(), true));
            }
        }
        self.members.stir();
    }

    /// It is gone whether that could be written or not.
    pub(super) fn erased(&mut self, pv: u16) {
        let Some((left, _)) = self.members.erasing.get_mut(&pv) else { return };
        *left -= 1;
        if *left == 0 {
            let erased = self.members.erasing.remove(&pv);
            for tag in erased.map(|(_, tags)| tags).unwrap_or_default() {
                self.answer(tag, Ok(Reply::Done));
            }
        }
    }

    /// Begins to move legs away from PVs that leave, as many as may move at once.
    pub(super) fn turn_members(&mut self) {
        if self.phase != Phase::Serving || !std::mem::take(&mut self.members.stirred) {
            return;
        }
        for pv in self.members.leaving.keys().copied().collect::<Vec<_>>() {
            if self.tables.is_away(pv) {
                self.turn_dismissal(pv);
                continue;
            }
            if self.stays(pv) {
                continue;
            }
            let legs = self.tables.legs_on(pv);
            if let Some(leaving) = self.members.leaving.get_mut(&pv)
                && !(leaving.failed.is_empty() && leaving.again.is_empty())
            {
                // What went otherwise has not failed.
                let there: BTreeSet<(u32, u32)> = legs.iter().map(|(key, _)| *key).collect();
                leaving.failed.retain(|key| there.contains(key));
                leaving.again.retain(|key| there.contains(key));
            }
            for (key, leg) in legs {
                let Some(leaving) = self.members.leaving.get_mut(&pv) else { return };
                if leaving.moving.len() >= MOVES_AT_ONCE {
                    break;
                }
                let known = leaving.moving.contains(&key) || leaving.failed.contains(&key);
                let stays = self.has_space(key.0) && !self.merges.is_going(key.0);
                if known || !stays || key.1 >= self.chunks_of(key.0) {
                    continue;
                }
                let Some(target) = self.target(key, pv) else { continue };
                self.move_away(pv, key, leg, target);
            }
            self.end_leaving(pv);
        }
        self.turn_balance();
    }

    /// Begins with moves of the plan; makes one when members have changed and the moves of the last are over.
    fn turn_balance(&mut self) {
        if self.members.uneven {
            self.members.balance.over += self.members.plan.len() as u32;
            self.members.plan.clear();
            if !self.members.balancing.is_empty() {
                return;
            }
            self.members.uneven = false;
            let astray = self.plan_astray();
            self.members.gathers = !astray.is_empty();
            let plan = if astray.is_empty() { self.plan() } else { astray };
            self.take_plan(plan);
        }
        while self.members.balancing.len() < MOVES_AT_ONCE {
            let Some(Planned { held, from, to }) = self.members.plan.pop_front() else {
                let members = &self.members;
                // What could not be copied goes first when it is tried again.
                let done = members.balancing.is_empty() && members.balance.failed == 0;
                if !done || !members.gathers {
                    return;
                }
                let before = members.balance.planned as usize;
                let left = self.plan_astray();
                self.members.crowded = !left.is_empty();
                // Each time fewer, so that it ends.
                self.members.gathers = !left.is_empty() && left.len() < before;
                let plan = if self.members.gathers { left } else { self.plan() };
                if plan.is_empty() {
                    return;
                }
                self.take_plan(plan);
                continue;
            };
            let key = (held.lu, held.vchunk);
            if self.members.balancing.contains(&key) {
                // Its other leg is on its way.
                self.members.plan.push_front(Planned { held, from, to });
                return;
            }
            let lu = self.tables.lus.get(&held.lu).filter(|_| self.has_space(held.lu));
            let lu = lu.filter(|_| held.vchunk < self.chunks_of(held.lu));
            let entry =
                lu.and_then(|lu| lu.legs_of(held.vchunk).get(usize::from(held.leg)).copied());
            let there = entry.and_then(|entry| entry.chunk()).is_some_and(|id| id.pv == from);
            let fits = |to: &u16| {
                self.tables.pvs[usize::from(*to)].state == MemberState::In && self.free_of(*to) > 0
            };
            let to = to.filter(fits).or_else(|| self.target(key, from).filter(|_| to.is_none()));
            let Some(to) = to.filter(|_| there) else {
                self.members.balance.over += 1;
                continue;
            };
            self.members.balancing.insert(key);
            self.begin_own_move(Asker::Balance(key), key, held.leg, to);
        }
    }

    /// The moves that make all tiers even. Where LUs have two legs, each failure group for itself.
    fn plan(&self) -> VecDeque<Planned> {
        let mut domains: BTreeMap<(u8, Option<u8>), Vec<Share>> = BTreeMap::new();
        for pv in self.pvs().filter(|pv| pv.state == MemberState::In) {
            let mut lus = self.tables.lus.values();
            let pairs = lus.any(|lu| lu.tier == pv.tier && lu.legs > 1);
            let astray = self.members.astray.iter().filter_map(|lu| self.tables.lus.get(lu));
            let astray = astray.filter(|lu| lu.tier != pv.tier);
            let astray: u32 = astray.filter_map(|lu| lu.pvs.get(&pv.pv)).sum();
            let size = (pv.chunks - pv.own).saturating_sub(astray);
            let share = Share { pv: pv.pv, size, used: pv.used.saturating_sub(astray) };
            domains.entry((pv.tier, pairs.then_some(pv.group))).or_default().push(share);
        }
        let held = |pv: u16| {
            let tier = self.tables.pvs[usize::from(pv)].tier;
            let legs = self.tables.legs_on(pv).into_iter();
            let legs = legs
                .filter(|((lu, _), _)| self.tables.lus.get(lu).is_none_or(|lu| lu.tier == tier));
            legs.map(|((lu, vchunk), leg)| Held { lu, vchunk, leg }).collect()
        };
        let moves = domains.values().flat_map(|shares| rebalance::plan(shares, held));
        moves.map(|Move { held, from, to }| Planned { held, from, to: Some(to) }).collect()
    }

    /// A move of the plan is over.
    pub(super) fn balanced(&mut self, key: (u32, u32), fault: Option<Fault>) {
        self.members.balancing.remove(&key);
        self.members.balance.over += 1;
        self.members.balance.failed += u32::from(fault == Some(Fault::Medium));
        self.members.stir();
    }

    /// How far the last plan is.
    pub fn balance(&self) -> Balance {
        self.members.balance
    }

    /// Where a leg goes that has to leave a PV: where most is free, in a failure group that has no other leg of the chunk.
    pub(super) fn target(&self, key: (u32, u32), from: u16) -> Option<u16> {
        let lu = self.tables.lus.get(&key.0)?;
        let legs = lu.legs_of(key.1).iter().filter_map(|entry| entry.chunk());
        let others: BTreeSet<u8> = legs
            .filter(|id| id.pv != from)
            .map(|id| self.tables.pvs[usize::from(id.pv)].group)
            .collect();
        let pvs = self.usable(lu.tier).filter(|pv| {
            !others.contains(&self.tables.pvs[usize::from(*pv)].group) && self.free_of(*pv) > 0
        });
        pvs.max_by_key(|pv| (self.free_of(*pv), std::cmp::Reverse(*pv)))
    }

    fn move_away(&mut self, pv: u16, key: (u32, u32), leg: u8, target: u16) {
        if let Some(leaving) = self.members.leaving.get_mut(&pv) {
            leaving.moving.insert(key);
        }
        self.begin_own_move(Asker::Leaving(pv, key), key, leg, target);
    }

    /// A move that nobody has asked for.
    fn begin_own_move(&mut self, owner: Asker, key: (u32, u32), leg: u8, target: u16) {
        self.begin_own(owner, key, PieceKind::Move { leg, pv: target });
    }

    /// Something is done with a chunk that nobody has asked for.
    pub(super) fn begin_own(&mut self, owner: Asker, key: (u32, u32), kind: PieceKind) {
        let job = self.begin_job(owner, key.0, 1);
        self.advance(Piece {
            job,
            tag: 0,
            key,
            at: 0,
            bytes: CHUNK_BYTES,
            from: 0,
            kind,
            part: None,
        });
    }

    /// A leg is elsewhere, or could not be moved.
    pub(super) fn moved_away(&mut self, pv: u16, key: (u32, u32), fault: Option<Fault>) {
        if let Some(leaving) = self.members.leaving.get_mut(&pv) {
            leaving.moving.remove(&key);
            if fault == Some(Fault::Medium) {
                leaving.again.remove(&key);
                leaving.failed.insert(key);
            }
        } else {
            // It stays after all, and a plan that was made since did not know of this.
            self.members.uneven = true;
        }
        self.members.stir();
    }

    /// Nothing of LUs is on it any more, or what is left cannot be moved.
    fn end_leaving(&mut self, pv: u16) {
        let used = self.used_of(pv);
        let waits = self.keeps(Rule::EmptyBeforeGone);
        let Some(leaving) = self.members.leaving.get_mut(&pv) else { return };
        if leaving.last || waits && !leaving.moving.is_empty() {
            return;
        }
        if used > 0 && used as usize == leaving.failed.len() {
            let tags = std::mem::take(&mut leaving.tags);
            return tags.into_iter().for_each(|tag| self.answer(tag, Err(Fault::Medium)));
        }
        let works = |slot: &Slot| slot.pvs().any(|other| other == pv);
        let empty = used == 0 && self.taken.of(pv) == 0 && !self.slots.values().any(works);
        if !empty && waits {
            return;
        }
        let superblock = &self.chosen.superblock;
        let alone = self.holders(superblock, Some(pv)).0.is_empty();
        let heir = self.heir(superblock, pv);
        let Some(leaving) = self.members.leaving.get_mut(&pv) else { return };
        if alone && heir.is_none() {
            let tags = std::mem::take(&mut leaving.tags);
            return tags.into_iter().for_each(|tag| self.answer(tag, Err(Fault::NoSpace)));
        }
        leaving.last = true;
        self.members.reshapes.push_back(Reshape::Gone(pv));
    }

    /// Chunks that could not be copied, and that nobody tries to.
    pub fn failed_moves(&self) -> u32 {
        let leaving = self.members.leaving.values().map(|leaving| leaving.failed.len() as u32);
        leaving.sum::<u32>() + self.members.balance.failed + self.failed_mends()
    }

    /// Tries them again: those of PVs that leave, and, when all of the last plan is over, another plan. There is no clock here; whoever calls it gives disks time.
    pub fn move_again(&mut self) {
        for leaving in self.members.leaving.values_mut() {
            leaving.again.append(&mut leaving.failed);
        }
        let members = &mut self.members;
        let over = members.plan.is_empty() && members.balancing.is_empty();
        members.uneven |= over && members.balance.failed > 0;
        members.stir();
        self.mend_again();
        self.turn();
    }

    /// PVs that leave, and how far that is.
    pub fn removals(&self) -> impl Iterator<Item = Removal> {
        self.members.leaving.iter().map(|(pv, leaving)| match self.tables.is_away(*pv) {
            true => self.dismissal(*pv, leaving),
            false => Removal {
                pv: *pv,
                planned: leaving.planned,
                moved: leaving.planned.saturating_sub(self.used_of(*pv)),
                failed: (leaving.failed.len() + leaving.again.len()) as u32,
            },
        })
    }
}
