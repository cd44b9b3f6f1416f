//! A change of members that is not made: there is no room for it any more, or it fails on some PV.
//!
//! Until the superblock is begun that ends it nobody knows of it: it is undone, and tried again when the superblock says that the PV is away. One that is to be added and fails is not. While the superblock is being written it may count whatever
//! fails, and so another follows it that says who is away by then ([`checkpoint`]).

use super::members::{Draft, Reshape};
use super::*;

impl Reshape {
    /// Who waits for it.
    pub(super) fn tag(&self) -> Option<u64> {
        match self {
            Reshape::Add(tag, _)
            | Reshape::Grow(tag, ..)
            | Reshape::Leave(tag, _)
            | Reshape::Stay(tag, _) => Some(*tag),
            Reshape::Gone(_) | Reshape::Return(_) | Reshape::Dismiss(_) => None,
        }
    }

    /// Whether what has become of its member meanwhile is what counts.
    pub(super) fn yields_to(&self, state: MemberState) -> bool {
        state.is_away() && matches!(self, Reshape::Leave(..) | Reshape::Stay(..))
    }
}

impl Pool {
    /// Whether a PV is just being added.
    fn joins_as(&self, pv: u16) -> bool {
        usize::from(pv) == self.chosen.superblock.members.len()
            && (self.joins() || self.ops.values().any(|(op, _)| matches!(op, Op::Join { .. })))
    }

    /// Whether members are just changing, other than by one that returns.
    pub(super) fn changes_members(&self) -> bool {
        let draft = self.checkpoint.draft.as_ref();
        draft.is_some_and(|draft| !matches!(draft.reshape, Reshape::Return(_)))
    }

    /// Whether a PV is being added of which no superblock says anything so far: it is not, if it fails.
    pub(super) fn may_give_up(&self, pv: u16) -> bool {
        self.joins_as(pv) && !self.checkpoint.is_at_root()
    }

    /// Whether a PV has nothing, since the change of members adds it or takes it out.
    pub(super) fn comes_or_goes(&self, pv: u16) -> bool {
        let state = self.tables.pvs.get(usize::from(pv)).map(|table| table.state);
        let goes = |member: &crate::format::Member| {
            member.state != MemberState::Gone && state == Some(MemberState::Gone)
        };
        let member = self.chosen.superblock.members.get(usize::from(pv));
        self.joins_as(pv) || member.is_some_and(goes)
    }

    /// The next change of members that can be made.
    pub(super) fn next_reshape(&mut self) -> Option<Reshape> {
        loop {
            match self.members.reshapes.pop_front()? {
                // Another one that was asked for at the same time takes the room that was there for it.
                Reshape::Leave(tag, pv) if !self.has_room_without(pv) => {
                    self.answer(tag, Err(Fault::NoSpace));
                }
                Reshape::Grow(tag, pv, chunks) if !self.may_grow(tag, pv, chunks) => {}
                reshape => return Some(reshape),
            }
        }
    }

    /// A change of members was not made: the tables are as before it, and it is made again.
    pub(super) fn undo_reshape(&mut self, draft: Draft) {
        let Draft { superblock, reshape, .. } = draft;
        let refused = self.checkpoint.was_refused();
        match reshape {
            Reshape::Return(pv) => return self.undo_return(pv),
            Reshape::Add(tag, _) => {
                let number = self.chosen.superblock.members.len();
                self.tables.pvs.truncate(number);
                self.checkpoint.forget_pv(number as u16);
                if refused {
                    return self.answer(tag, Err(Fault::Medium));
                }
            }
            Reshape::Grow(_, pv, _) => self.tables.keep_size(pv),
            Reshape::Leave(_, pv) | Reshape::Stay(_, pv) => self.keep_as_before(pv),
            Reshape::Dismiss(pv) => self.keep_as_before(pv),
            Reshape::Gone(pv) => {
                self.keep_as_before(pv);
                let before = self.chosen.superblock.extents.clone();
                for own in superblock.extents.iter().filter(|own| !before.contains(own)) {
                    self.tables.give_own(ChunkId { pv: own.pv, chunk: own.chunk });
                }
            }
        }
        self.members.reshapes.push_front(reshape);
        for pv in self.losses.pending.clone() {
            self.leaves_while_away(pv);
        }
    }

    fn keep_as_before(&mut self, pv: u16) {
        let lost = self.losses.pending.contains(&pv);
        let state = self.chosen.superblock.members[usize::from(pv)].state;
        self.tables.keep_pv(pv, if lost { MemberState::Stale } else { state });
    }
}
