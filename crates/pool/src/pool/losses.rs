//! PVs that are lost while the pool is at work, or were when it was opened.
//!
//! ```text
//! something fails on a PV ──► its legs are dropped, nothing is given out for it any more ──► a superblock of a new epoch says *stale* ──► what failed, and all answers meanwhile, go on without it
//! ```
//!
//! What is written goes to the legs that are there. Of which chunks the PV missed something follows without a further word: before a chunk of an LU with two legs is changed, its record `Activity` is durable, or it is
//! mapped anew, and only a root that all PVs of the tier have ends that. So when the PV returns, what it has of a chunk counts only if that is not *active* ([tables](crate::tables)).
//!
//! # What may be lost
//!
//! Never the last good leg: while a PV is away, or is there again and has not got what it missed, those of other failure groups of its tier stay; what fails there is told to whoever asked for it, as it is where LUs have one leg.
//! Never all copies of the journal. If members are changing when a PV is lost, that is [undone](undo) and tried again, unless the superblock that ends it is being written: then another follows.
//!
//! A PV may be there again before a superblock says that it was lost, without what was in its cache. So whoever takes over from a process that dies then is told by its [`Shadow`], and does without that PV as well.
//!
//! A pool is opened without a PV under the same conditions, and if of the copies of the journal that its superblock counts more than half are there, and of each failure group that had everything at least one PV: who is
//! left cannot know otherwise whether the others went on, for which one copy of the journal is enough. A group that is lost while the pool is at work is another matter: a superblock says so.

use super::*;
use crate::choose::MIRROR;
use crate::format::SystemKind;
use crate::make::COPIES;

/// PVs that are away of which no superblock says so yet, and what waits for that.
#[derive(Debug, Default)]
pub(super) struct Losses {
    pub(super) pending: BTreeSet<u16>,
    held: Vec<Held>,
}

/// What goes on when a superblock says that a PV is away.
#[derive(Clone, Copy, Debug)]
pub(super) enum Held {
    /// A leg of a write.
    Data(u64),
    /// A flush for a client's flush.
    Sync(u32),
    /// A copy of a block of the journal.
    Journal,
    /// The answer of a job.
    Answer(u64),
}

impl Losses {
    /// PVs on which something has failed, and no superblock says so yet.
    pub(super) fn unsaid(&self) -> BTreeSet<u16> {
        self.pending.clone()
    }
}

impl Pool {
    /// PVs that have copies of the journal and are there.
    pub(crate) fn journals(superblock: &Superblock) -> BTreeSet<u16> {
        let extents = superblock.extents.iter();
        let journals = extents.filter(|extent| extent.kind == SystemKind::Journal);
        let there = |pv: &u16| superblock.members[usize::from(*pv)].state.is_there();
        journals.map(|extent| extent.pv).filter(there).collect()
    }

    /// Whether all that was on a PV of LUs is elsewhere as well, so that they go on without it.
    pub(super) fn is_spare(tables: &Tables, superblock: &Superblock, pv: u16) -> bool {
        let Some(table) = tables.pvs.get(usize::from(pv)) else { return false };
        let others = || {
            let all = (0..).zip(&tables.pvs);
            let others = all.filter(|(number, other)| *number != pv && other.tier == table.tier);
            others.map(|(_, other)| other).filter(|other| other.state != MemberState::Gone)
        };
        superblock.features[0] & MIRROR != 0
            && table.state != MemberState::Gone
            && tables.has_pairs_alone(table.tier)
            && others().any(|other| other.group != table.group)
            && others().filter(|other| other.state.lacks()).all(|other| other.group == table.group)
    }

    fn may_lose(&self, pv: u16) -> bool {
        // Of both superblocks either may count, while members change.
        let has_another = |superblock| {
            let journals = Pool::journals(superblock);
            debug_assert!(journals.len() <= COPIES + 2);
            journals.iter().any(|other| *other != pv && !self.tables.is_away(*other))
        };
        let superblock = &self.chosen.superblock;
        self.phase == Phase::Serving
            && has_another(superblock)
            && has_another(self.next_superblock())
            && !self.has_only_page(pv)
            && (Pool::is_spare(&self.tables, superblock, pv)
                || superblock.mirrors() && self.comes_or_goes(pv))
    }

    /// Whether the pool does without a PV, or would if that failed now: what does not come back from there may be told as failed.
    pub fn does_without(&self, pv: u16) -> bool {
        self.tables.is_away(pv) || self.may_give_up(pv) || self.may_lose(pv)
    }

    /// A PV does not answer: it is away from now on. False if it [cannot be done without](Pool::does_without).
    pub fn give_up_pv(&mut self, pv: u16) -> bool {
        let lost = self.lose(pv);
        self.turn();
        lost
    }

    /// PVs that were lost of which no superblock says so yet: whoever takes over from this process has to know.
    pub fn unsaid_losses(&self) -> BTreeSet<u16> {
        self.losses.unsaid()
    }

    /// Something failed on a PV. Whether that is its loss: then what it is for goes on when that is durable.
    pub(super) fn is_lost(&mut self, pv: u16, held: Held) -> bool {
        if !self.lose(pv) {
            return false;
        }
        if self.losses.pending.is_empty() || !self.keeps(Rule::AnswerAfterStale) {
            self.go_on(held);
        } else {
            self.losses.held.push(held);
        }
        true
    }

    /// Whether a PV is away: what was there of LUs is elsewhere, and it may [return](Request::ReturnPv).
    pub fn is_away(&self, pv: u16) -> bool {
        self.tables.is_away(pv)
    }

    /// Whether a PV was removed while it was away.
    pub fn has_left_while_away(&self, pv: u16) -> bool {
        let member = self.chosen.superblock.members.get(usize::from(pv));
        member.is_some_and(crate::format::Member::left_while_away)
    }

    /// Answers wait while it is not durable that a PV is away.
    pub(super) fn holds_answer(&mut self, job: u64) -> bool {
        let holds = !self.losses.pending.is_empty() && self.keeps(Rule::AnswerAfterStale);
        if holds {
            self.losses.held.push(Held::Answer(job));
        }
        holds
    }

    /// Whether something is under way on a PV, or is to be.
    pub fn works_on(&self, pv: u16) -> bool {
        self.ops.values().any(|(_, pvs)| pvs.contains(&Some(pv)))
    }

    fn go_on(&mut self, held: Held) {
        match held {
            Held::Data(write) => self.data_done(write, &Outcome::Done),
            Held::Sync(lu) => self.sync_flushed(lu, &Outcome::Done),
            Held::Journal => self.journal_done(),
            Held::Answer(job) => self.answer_when_durable(job),
        }
    }

    /// From now on nothing is known of what is on a PV. False if it cannot be done without.
    pub(super) fn lose(&mut self, pv: u16) -> bool {
        if self.tables.is_away(pv) {
            return true;
        }
        if self.may_give_up(pv) {
            if self.joins() {
                self.checkpoint.refuses();
            }
            return true;
        }
        if !self.may_lose(pv) {
            return false;
        }
        self.losses.pending.insert(pv);
        // It may be the one that gets something by a change of members.
        if self.changes_members() && !self.checkpoint.is_at_root() {
            self.checkpoint.fails();
        }
        self.drop_pv(pv);
        self.leaves_while_away(pv);
        true
    }

    /// A superblock by which a PV returns could not be written there: it has to be taken back.
    pub(super) fn loses_again(&mut self, pv: u16) {
        let next = self.update.as_ref().map(|update| &update.next);
        let member = next.and_then(|next| next.members.get(usize::from(pv)));
        if member.is_some_and(|member| !member.state.is_away()) {
            self.losses.pending.insert(pv);
        }
    }

    /// What the tables and the slots have of a PV is dropped.
    pub(super) fn drop_pv(&mut self, pv: u16) {
        // What its own blocks are is said by the superblock that will count.
        let at_root = self.checkpoint.is_at_root();
        let superblock = if at_root { self.next_superblock() } else { &self.chosen.superblock };
        let superblock = superblock.clone();
        self.remember_legs(pv);
        self.tables.unload_pv(&superblock, pv);
        self.checkpoint.forget_pv(pv);
        let works = |slot: &Slot| slot.pvs().any(|other| other == pv);
        let slots = self.slots.iter().filter(|(_, slot)| works(slot));
        let keys: Vec<(u32, u32)> = slots.map(|(key, _)| *key).collect();
        for key in &keys {
            self.drop_leg(*key, pv);
        }
        keys.into_iter().for_each(|key| self.wake(key));
        self.mends.stir();
    }

    fn drop_leg(&mut self, key: (u32, u32), pv: u16) {
        self.touched.insert(key);
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let had = slot.legs.len();
        if slot.moving.as_ref().is_some_and(|moving| moving.works_on(&slot.legs, pv)) {
            self.give_up_move(key, Some(Fault::Medium));
        }
        let Some(slot) = self.slots.get_mut(&key) else { return };
        slot.legs.retain(|leg| leg.id.pv != pv);
        slot.also.retain(|leg| leg.id.pv != pv);
        slot.load_again();
        if slot.legs.len() < had {
            self.mends.is_half(key);
        }
    }

    /// Makes a superblock say which PVs are away.
    pub(super) fn mark_lost(&self, next: &mut Superblock, before: u64) -> BTreeSet<u16> {
        let lost = self.losses.pending.clone();
        for pv in &lost {
            if let Some(member) = next.members.get_mut(usize::from(*pv)) {
                // One that has just left was lost at the end of that.
                if member.state != MemberState::Gone {
                    member.state = MemberState::Stale;
                }
                member.sync_until = before;
                member.had = self.had(*pv);
            }
        }
        lost
    }

    /// A superblock that says that these are away is durable.
    pub(super) fn lost_for_good(&mut self, lost: &BTreeSet<u16>) {
        self.losses.pending.retain(|pv| !lost.contains(pv));
        if self.losses.pending.is_empty() {
            for held in std::mem::take(&mut self.losses.held) {
                self.go_on(held);
            }
        }
    }
}
