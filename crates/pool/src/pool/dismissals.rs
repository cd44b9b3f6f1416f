//! A PV that is away leaves without being there.
//!
//! ```text
//! asked, or lost while it was leaving ──► a superblock says *stale* ──► a checkpoint, and the superblock that says *dismissed*: it does not return, nothing that it has counts any more
//!       ──► chunks that lack a leg get one on the PVs of its failure group ──► a checkpoint, and the superblock that says *gone* ──► answered
//! ```
//!
//! A PV that is away has what was not changed since, which a PV that returns claims. From *dismissed* on nothing waits for that: chunks lose their activity although it is away, and so it must never be asked again.
//! Until it is *gone* chunks may have their only leg in another failure group, of which no PV can be done without. Nothing is written to it, neither then nor later: whoever is at its path by then has a superblock of an older
//! epoch, and is no member.
//!
//! What is missing is not known by PV. So while another PV of the tier is away that may return, it is waited for.

use super::members::{Leaving, Reshape};
use super::*;

impl Pool {
    /// A PV that is away is to leave.
    pub(super) fn dismiss(&mut self, tag: u64, pv: u16) {
        if self.returning.as_ref().is_some_and(|returning| returning.pv() == pv) {
            return self.answer(tag, Err(Fault::Busy));
        }
        if !self.has_room_when_dismissed(pv) {
            return self.answer(tag, Err(Fault::NoSpace));
        }
        self.members.leaving.insert(pv, Leaving::of(vec![tag]));
        self.members.stir();
    }

    /// A PV is away that may have been leaving: it goes on leaving, if others have room for that.
    pub(super) fn leaves_while_away(&mut self, pv: u16) {
        let (leaves, stays) = self.members.lost(pv);
        let stay = !stays.is_empty();
        stays.into_iter().for_each(|tag| self.answer(tag, Ok(Reply::Done)));
        let Some(tags) = leaves else { return };
        if stay || !self.has_room_when_dismissed(pv) {
            let fault = if stay { Fault::Cancelled } else { Fault::Medium };
            return tags.into_iter().for_each(|tag| self.answer(tag, Err(fault)));
        }
        self.members.leaving.insert(pv, Leaving::of(tags));
    }

    /// Goes on with one as soon as a superblock says that it is away.
    pub(super) fn turn_dismissal(&mut self, pv: u16) {
        let stale = self.chosen.superblock.members[usize::from(pv)].state == MemberState::Stale;
        let Some(leaving) = self.members.leaving.get_mut(&pv).filter(|leaving| !leaving.last)
        else {
            return;
        };
        if stale {
            leaving.last = true;
            self.members.reshapes.push_back(Reshape::Dismiss(pv));
        }
    }

    /// A superblock says so.
    pub(super) fn dismissed(&mut self, pv: u16) {
        if let Some(leaving) = self.members.leaving.get_mut(&pv) {
            leaving.last = false;
        }
        self.missed.forget_pv(pv);
        self.plan_mends();
        self.plan_dismissal(pv);
        self.retry_full();
    }

    /// Counts what is to be made anew.
    pub(super) fn plan_dismissal(&mut self, pv: u16) {
        let planned = self.mends.left();
        if let Some(leaving) = self.members.leaving.get_mut(&pv) {
            leaving.planned = planned;
        }
    }

    /// PVs that do not return and because of which no chunk lacks a leg any more.
    pub(super) fn parted(&self) -> Vec<u16> {
        let leaving = self.members.leaving.iter().filter(|(_, leaving)| !leaving.last);
        let dismissed = leaving.map(|(pv, _)| *pv).filter(|pv| self.is_dismissed(*pv));
        let dismissed: Vec<u16> = dismissed.collect();
        if dismissed.is_empty() || !self.keeps(Rule::WholeBeforeGone) {
            return dismissed;
        }
        let tiers = self.half_tiers();
        let tier = |pv: u16| self.tables.pvs[usize::from(pv)].tier;
        dismissed.into_iter().filter(|pv| !tiers.contains(&tier(*pv))).collect()
    }

    fn is_dismissed(&self, pv: u16) -> bool {
        self.chosen.superblock.members[usize::from(pv)].state == MemberState::Dismissed
    }

    /// Whether it may be gone now.
    pub(super) fn is_parted_from(&self, pv: u16) -> bool {
        let tier = self.tables.pvs[usize::from(pv)].tier;
        let whole = !self.half_tiers().contains(&tier) || !self.keeps(Rule::WholeBeforeGone);
        self.mends.is_idle() && !self.mends.lacks_pages() && whole
    }

    /// It goes.
    pub(super) fn part_from(&mut self, pv: u16) {
        if let Some(leaving) = self.members.leaving.get_mut(&pv) {
            leaving.last = true;
            self.members.reshapes.push_back(Reshape::Gone(pv));
        }
    }

    /// Those are told who wait for what cannot be done so far.
    pub(super) fn tell_dismissals(&mut self) {
        if self.failed_mends() == 0 {
            return;
        }
        for pv in self.members.leaving.keys().copied().collect::<Vec<_>>() {
            let Some(leaving) = self.members.leaving.get_mut(&pv) else { continue };
            if self.tables.is_away(pv) {
                for tag in std::mem::take(&mut leaving.tags) {
                    self.answer(tag, Err(Fault::Medium));
                }
            }
        }
    }

    /// How far it is. Chunks that others lack are counted with it: it is not known of which PV they are.
    pub(super) fn dismissal(&self, pv: u16, leaving: &Leaving) -> members::Removal {
        let left = if self.is_dismissed(pv) { self.mends.left() } else { leaving.planned };
        let moved = leaving.planned.saturating_sub(left);
        members::Removal { pv, planned: leaving.planned, moved, failed: self.failed_mends() }
    }
}
