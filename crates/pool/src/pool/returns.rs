//! A PV that was away returns.
//!
//! ```text
//! asked ── drained ──► flushed ──► its superblocks: is it that one, was it written to apart? ──► its map pages: what it claims ──► a checkpoint with all its pages, and the superblock that says *returning* ──► answered
//!       ──► chunks that lack a leg get one ──► a superblock says *in*
//! ```
//!
//! While it is *returning* it is used as others are, but for one thing: chunks may have their only leg in another failure group, and so no PV of another group can be done without.
//! A crash before the first superblock leaves it away, and nothing that is written on it by then counts.

use super::*;
use crate::choose::is_left_behind;
use crate::format::{
    PAGE_BYTES, PAGE_RECORDS, Page, PageKind, Place, SUPERBLOCK_AT, SUPERBLOCK_BYTES_MAX,
};
use checkpoint::{Thing, page_place};

/// A PV that returns.
#[derive(Debug)]
pub(super) struct Return {
    tag: u64,
    pv: u16,
    left: u32,
    failed: bool,
    copies: Vec<(Superblock, Place)>,
    pages: BTreeMap<u32, Page>,
    /// It is an older copy of itself ([`super::older`]).
    older: bool,
    /// What it claims and does not have, once that is known.
    wrong: Vec<ChunkId>,
}

impl Return {
    /// Which it is.
    pub(super) fn pv(&self) -> u16 {
        self.pv
    }

    /// Who waits for it.
    pub(super) fn tag(&self) -> u64 {
        self.tag
    }
}

/// What is read or done of it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Looked {
    Flushed,
    Superblock(u8),
    Page(u32),
}

impl Pool {
    pub(super) fn return_pv(&mut self, tag: u64, pv: u16) {
        let state = self.chosen.superblock.members.get(usize::from(pv)).map(|member| member.state);
        match state {
            None | Some(MemberState::Gone) => return self.answer(tag, Err(Fault::NoSuchPv)),
            _ if self.members.leaves(pv) && self.tables.is_away(pv) => {
                return self.answer(tag, Err(Fault::Dismissed));
            }
            Some(MemberState::Stale) => {}
            Some(_) if self.losses.pending.contains(&pv) => {
                return self.answer(tag, Err(Fault::Busy));
            }
            // It was not noticed that it was away, but for what could not be copied.
            Some(_) => {
                self.mend_again();
                return self.answer(tag, Ok(Reply::Done));
            }
        }
        // What was given out before it was lost could still change it.
        if self.returning.is_some() || self.works_on(pv) {
            return self.answer(tag, Err(Fault::Busy));
        }
        let (copies, pages, wrong) = (Vec::new(), BTreeMap::new(), Vec::new());
        let (failed, older) = (false, false);
        self.returning = Some(Return { tag, pv, left: 1, failed, copies, pages, older, wrong });
        self.give(Op::Drain { then: Drained::Return }, |op| Effect::Drain { op });
    }

    pub(super) fn return_drained(&mut self) {
        if let Some(pv) = self.returning.as_ref().map(|returning| returning.pv) {
            self.give_flush(Op::Look { what: Looked::Flushed }, pv);
        }
    }

    pub(super) fn looked(&mut self, what: Looked, outcome: &Outcome) {
        let superblock = &self.chosen.superblock;
        let Some(now) = &mut self.returning else { return };
        now.left -= 1;
        now.failed |= *outcome == Outcome::Failed;
        match (what, outcome) {
            (Looked::Superblock(copy), Outcome::Bytes(bytes)) => {
                let extent = bytes.get(..4096).and_then(Superblock::extent_of);
                let block = extent.and_then(|extent| bytes.get(..extent));
                now.copies.extend(block.and_then(|block| Superblock::decode(block, copy).ok()));
            }
            (Looked::Page(number), Outcome::Bytes(bytes)) => {
                let copies = bytes.chunks(PAGE_BYTES).zip(0..);
                let whole = copies.filter_map(|(block, copy)| {
                    let pool = superblock.pool;
                    Page::decode(block, pool, PageKind::Map, now.pv, number, copy).ok()
                });
                let old = whole.filter(|page| page.sequence <= superblock.root.sequence);
                let page = old.max_by_key(|page| page.sequence);
                now.pages.extend(page.map(|page| (number, page)));
            }
            _ => {}
        }
        if now.left > 0 {
            return;
        }
        if now.failed {
            return self.end_return(Err(Fault::Medium));
        }
        let pv = now.pv;
        match what {
            Looked::Flushed => {
                now.left = SUPERBLOCK_AT.len() as u32;
                for (copy, at) in (0..).zip(SUPERBLOCK_AT) {
                    self.look(Looked::Superblock(copy), pv, at, SUPERBLOCK_BYTES_MAX);
                }
            }
            Looked::Superblock(_) => match self.judge_return() {
                Ok(older) => {
                    if let Some(now) = &mut self.returning {
                        now.older = older;
                    }
                    self.look_at_pages(pv);
                }
                Err(fault) => self.end_return(Err(fault)),
            },
            Looked::Page(_) => {
                self.members.reshapes.push_back(members::Reshape::Return(pv));
            }
        }
    }

    fn look(&mut self, what: Looked, pv: u16, at: u64, bytes: usize) {
        let (bytes, to) = (bytes as u64, Reader::Pool);
        self.give(Op::Look { what }, |op| Effect::Read { op, pv, at, bytes, to });
    }

    /// Whether it is the PV that was away, and was only that; then whether it is an older copy.
    fn judge_return(&self) -> Result<bool, Fault> {
        let superblock = &self.chosen.superblock;
        let Some(now) = &self.returning else { return Err(Fault::Busy) };
        let member = &superblock.members[usize::from(now.pv)];
        let same = |(copy, place): &&(Superblock, Place)| {
            copy.pool == superblock.pool && place.pv == member.pv
        };
        let mut copies = now.copies.iter().filter(same).peekable();
        if copies.peek().is_none() {
            return Err(Fault::OtherPv);
        }
        let apart = |(copy, place): &(Superblock, Place)| {
            copy.epoch > member.seen && !is_left_behind(copy, &[*place], superblock)
        };
        if copies.clone().any(apart) {
            return Err(Fault::Forked);
        }
        let newest = copies.max_by_key(|(copy, _)| copy.sequence);
        Ok(newest.is_some_and(|(copy, _)| self.is_older(now.pv, copy)))
    }

    fn look_at_pages(&mut self, pv: u16) {
        let superblock = &self.chosen.superblock;
        let pages = superblock.members[usize::from(pv)].chunks.div_ceil(PAGE_RECORDS as u32);
        let place = |number| page_place(superblock, PageKind::Map, pv, number);
        let places: Vec<(u32, u64)> =
            (0..pages).filter_map(|number| Some((number, place(number)?))).collect();
        if let Some(now) = &mut self.returning {
            now.left = places.len() as u32;
        }
        for (number, at) in places {
            self.look(Looked::Page(number), pv, at, 2 * PAGE_BYTES);
        }
    }

    /// The members with it, and the tables with what it has.
    pub(super) fn draft_return(&mut self, superblock: &mut Superblock, pv: u16) {
        let trusts = !self.keeps(Rule::ClaimsOfQuiet);
        let Some(now) = &mut self.returning else { return };
        let member = &mut superblock.members[usize::from(pv)];
        (member.state, member.seen, member.had) = (MemberState::Returning, superblock.epoch, 0);
        let (slots, touched, durable) = (&mut self.slots, &mut self.touched, self.log.durable);
        let older = now.older;
        let mut may = |key: (u32, u32)| {
            if older {
                return false;
            }
            let Some(slot) = slots.get(&key) else { return true };
            // Nobody works with it: it is looked up anew, with this leg.
            let rests = slot.is_at_rest(durable) && slot.activity.is_none();
            if rests {
                slots.remove(&key);
                touched.insert(key);
            }
            rests
        };
        for (number, page) in &now.pages {
            self.checkpoint.places.insert(Thing::Map(pv, *number), page.copy);
            if trusts {
                self.tables.trust_claims(&page.records);
            }
            now.wrong.extend(self.tables.load_claims(pv, &page.records, &mut may));
        }
    }

    /// The superblock is durable.
    pub(super) fn returned(&mut self, pv: u16) {
        self.tables.pvs[usize::from(pv)].state = MemberState::Returning;
        self.load.forget(pv);
        if let Some(now) = &mut self.returning {
            self.tables.changed.homes.extend(now.wrong.drain(..));
            if now.older {
                self.missed.forget_pv(pv);
            }
        }
        self.end_return(Ok(Reply::Done));
        self.legs_return(pv);
        self.plan_mends();
        self.retry_full();
    }

    /// Its checkpoint failed: it is away as before.
    pub(super) fn undo_return(&mut self, pv: u16) {
        self.drop_pv(pv);
        self.end_return(Err(Fault::Medium));
    }

    fn end_return(&mut self, result: Result<Reply, Fault>) {
        if let Some(Return { tag, .. }) = self.returning.take() {
            self.answer(tag, result);
        }
    }
}
