//! LUs come and go.

use super::*;
use crate::choose::{GATHERED, GROWN};
use crate::format::{PAGE_RECORDS, SUMS_IN_CHUNK};
use crate::layers::containers;
use crate::tables::{LEGS_MAX, Lu};

impl Pool {
    /// How often a chunk of a tier is kept: once for each failure group.
    #[must_use]
    pub fn legs_of_tier(&self, tier: u8) -> u8 {
        let pvs = self.tables.pvs.iter();
        let in_it = pvs.filter(|pv| pv.tier == tier && pv.state != MemberState::Gone);
        let groups: BTreeSet<u8> = in_it.map(|pv| pv.group).collect();
        (groups.len() as u8).min(LEGS_MAX)
    }

    pub(super) fn create(&mut self, tag: u64, of: (u32, bool, u8), asked: u64) {
        self.create_lu(tag, of, asked, false);
    }

    /// Makes an LU; `sums`: what it holds has checksums.
    pub(super) fn create_lu(
        &mut self,
        tag: u64,
        (chunks, thick, tier): (u32, bool, u8),
        asked: u64,
        sums: bool,
    ) {
        if let Some((txn, number)) = self.making.get(&asked) {
            return self.waiters.entry(*txn).or_default().push(Waiter::Created(tag, *number));
        }
        if let Some(number) = self.lu_asked(asked) {
            return self.answer(tag, Ok(Reply::Created(number)));
        }
        let (promised, of_sums) = match self.may_create((chunks, thick, tier), sums) {
            Ok(may) => may,
            Err(fault) => return self.answer(tag, Err(fault)),
        };
        let (number, legs) = (self.next_lu, promised.legs);
        self.next_lu += 1 + u32::from(sums);
        let record = Record {
            lu: number,
            vchunk: chunks,
            flags: thick.into(),
            leg: legs,
            owner: self.slot,
            aux: tier.into(),
            epoch: asked,
            ..Record::of(Kind::LuCreate)
        };
        // In one transaction.
        let sums = sums.then_some(Record {
            lu: number + 1,
            vchunk: of_sums,
            flags: record.flags | 16,
            aux: record.aux | number << 8,
            epoch: 0,
            ..record
        });
        let txn = self.log.append([record].into_iter().chain(sums).collect());
        if asked != 0 {
            self.making.insert(asked, (txn, number));
        }
        self.promised.insert(txn, vec![promised]);
        self.waiters.entry(txn).or_default().push(Waiter::Created(tag, number));
    }

    /// What is set aside for a new LU, and the chunks of what has its checksums, if it can be made.
    pub(super) fn may_create(
        &self,
        (chunks, thick, tier): (u32, bool, u8),
        sums: bool,
    ) -> Result<(Promised, u32), Fault> {
        let legs = self.legs_of_tier(tier);
        let pages = self.chosen.superblock.lu_pages();
        // Its PVs of the other failure groups are about to come.
        let incomplete = self.tables.pvs.iter().any(|pv| self.legs_of_tier(pv.tier) > legs);
        let none = incomplete
            || chunks == 0
            || legs == 0
            || (self.next_lu + u32::from(sums)) / PAGE_RECORDS as u32 >= pages;
        if sums && legs < 2 && !incomplete {
            return Err(Fault::NoLegs);
        }
        let of_sums = if sums { chunks.div_ceil(SUMS_IN_CHUNK) } else { 0 };
        let promised = Promised { tier, legs, chunks: if thick { chunks + of_sums } else { 0 } };
        let short = thick && !self.has_room(promised);
        if none || short || u64::from(chunks) > self.tables.lu_chunks_max() {
            return Err(Fault::NoSpace);
        }
        Ok((promised, of_sums))
    }

    /// The LU that was made when somebody asked for it with this mark. It is durable, if it is not [being made](Pool::making).
    pub(super) fn lu_asked(&self, asked: u64) -> Option<u32> {
        let mut lus = self.tables.lus.iter().filter(|_| asked != 0);
        let made = |(number, lu): &(&u32, &Lu)| {
            lu.role == Role::Lu && lu.asked == asked && self.serves(**number)
        };
        lus.find(made).map(|(number, _)| *number)
    }

    /// It is durable that there is such an LU.
    pub(super) fn created(&mut self, tag: u64, lu: u32) {
        self.making.retain(|_, (_, number)| *number != lu);
        self.answer(tag, Ok(Reply::Created(lu)));
    }

    pub(super) fn delete(&mut self, tag: u64, lu: u32) {
        if !self.serves(lu) {
            return self.answer(tag, Err(Fault::NoSuchLu));
        }
        self.dying.insert(lu);
        self.layered.changed.insert(lu);
        for space in self.tables.unneeded(&self.dying, &BTreeMap::new()) {
            self.let_space_go(space);
        }
        let record = Record { lu, owner: self.slot, ..Record::of(Kind::LuDelete) };
        let txn = self.log.append(vec![record]);
        self.waiters.entry(txn).or_default().push(Waiter::Deleted(tag, lu));
    }

    /// Ends what waits to work with the chunks of an LU from one on, or moves them.
    pub(super) fn let_go(&mut self, lu: u32, from: u32, fault: Fault) {
        let keys = self.slots.range((lu, from)..=(lu, u32::MAX)).map(|(key, _)| *key);
        for key in keys.collect::<Vec<_>>() {
            self.give_up_move(key, Some(fault));
        }
        let slots = self.slots.range_mut((lu, from)..=(lu, u32::MAX));
        let mut pieces: Vec<Piece> = slots.flat_map(|(_, slot)| slot.give_up()).collect();
        pieces.extend(self.full.take(|piece| piece.key.0 == lu && piece.key.1 >= from));
        for piece in pieces {
            self.piece_done(&piece, Some(fault));
        }
    }

    /// Until the record is durable there are the chunks that are there before and after.
    pub(super) fn resize(&mut self, tag: u64, lu: u32, chunks: u32) {
        let Some(known) = self.tables.lus.get(&lu).filter(|_| self.serves(lu)) else {
            return self.answer(tag, Err(Fault::NoSuchLu));
        };
        let shares = known.beneath != 0;
        // What is beneath may have what would be cut off; what it has not is zeros.
        if known.role != Role::Lu || shares && chunks < known.chunks {
            return self.answer(tag, Err(Fault::Shares));
        }
        if self.resizing.contains_key(&lu) {
            return self.answer(tag, Err(Fault::Busy));
        }
        let grows = chunks.saturating_sub(known.chunks);
        let mut more = match known.thick {
            // What it writes to has to have room for all of it, and its own space if it gets all that.
            true if shares => {
                let layer = containers(chunks).saturating_sub(self.chunks_in(known.beneath));
                layer + if self.merges.lu() == Some(lu) { grows } else { 0 }
            }
            true => grows,
            false => 0,
        };
        if let Some(sums) = self.tables.sums.get(&lu).and_then(|sums| self.tables.lus.get(sums)) {
            let grows = chunks.div_ceil(SUMS_IN_CHUNK).saturating_sub(sums.chunks);
            more += if known.thick { grows } else { 0 };
        }
        let promised = Promised { tier: known.tier, legs: known.legs, chunks: more };
        let before = known.chunks;
        let large = grows > 0 && u64::from(chunks) > self.tables.lu_chunks_max();
        if chunks == 0 || large || more > 0 && !self.has_room(promised) {
            return self.answer(tag, Err(Fault::NoSpace));
        }
        let request = Request::Resize { lu, chunks };
        if shares && self.waits_for_feature(GROWN, tag, request) {
            return;
        }
        self.resizing.insert(lu, before.min(chunks));
        self.let_go(lu, chunks, Fault::Range);
        if let Some(sync) = self.syncs.get_mut(&lu) {
            sync.cut(chunks);
        }
        let record = Record { lu, vchunk: chunks, owner: self.slot, ..Record::of(Kind::LuResize) };
        let txn = self.log.append(vec![record]);
        self.promised.insert(txn, vec![promised]);
        self.waiters.entry(txn).or_default().push(Waiter::Resized(tag, lu));
    }

    /// Moves an LU with its snapshots to another tier: from the record on, what is elsewhere is [astray](crate::tables::Tables::astray).
    pub(super) fn set_tier(&mut self, tag: u64, lu: u32, tier: u8) {
        let Some(known) = self.tables.lus.get(&lu).filter(|_| self.serves(lu)) else {
            return self.answer(tag, Err(Fault::NoSuchLu));
        };
        if self.resizing.contains_key(&lu) {
            return self.answer(tag, Err(Fault::Busy));
        }
        if known.tier == tier {
            return self.answer(tag, Ok(Reply::Done));
        }
        // A leg of a chunk on its way could be in either tier, and what is judged of PVs that are away is judged by tier.
        if known.legs > 1 {
            return self.answer(tag, Err(Fault::MirrorTier));
        }
        // Its snapshots go with it. So would another LU that shares something.
        let kin = self.tables.kin(lu);
        let is_lu =
            |number: &u32| self.tables.lus.get(number).is_some_and(|it| it.role == Role::Lu);
        if known.role != Role::Lu || kin.iter().any(|number| *number != lu && is_lu(number)) {
            return self.answer(tag, Err(Fault::SharesTier));
        }
        let needs = |number: &u32| {
            let space = self.tables.lus.get(number)?;
            let all = if self.sets_aside(*number, space) { space.chunks } else { space.mapped };
            // What it has there from a move before this needs no room.
            let there = space.pvs.iter();
            let there = there.filter(|(pv, _)| self.tables.pvs[usize::from(**pv)].tier == tier);
            Some(all.saturating_sub(there.map(|(_, legs)| legs).sum()))
        };
        let chunks = kin.iter().filter_map(needs).sum();
        let promised = Promised { tier, legs: known.legs, chunks };
        if self.legs_of_tier(tier) != known.legs || !self.has_room(promised) {
            return self.answer(tag, Err(Fault::NoSpace));
        }
        let chunks = known.chunks;
        if kin.len() > 1 && self.waits_for_feature(GATHERED, tag, Request::SetTier { lu, tier }) {
            return;
        }
        self.resizing.insert(lu, chunks);
        let aux = u32::from(tier) + 1;
        let record =
            Record { lu, vchunk: chunks, aux, owner: self.slot, ..Record::of(Kind::LuResize) };
        let txn = self.log.append(vec![record]);
        self.promised.insert(txn, vec![promised]);
        self.waiters.entry(txn).or_default().push(Waiter::Resized(tag, lu));
    }

    pub(super) fn resized(&mut self, tag: u64, lu: u32) {
        let before = self.resizing.remove(&lu).unwrap_or_default();
        let kin = if self.shares(lu) { self.tables.kin(lu) } else { BTreeSet::from([lu]) };
        kin.into_iter().for_each(|space| self.goes_astray(space));
        let chunks = self.chunks_of(lu);
        // Until now nothing could be said of those that are new, also not of its space beneath layers.
        if self.shares(lu) {
            self.touched.extend((before..chunks).map(|vchunk| (lu, vchunk)));
        }
        self.slots.retain(|key, _| key.0 != lu || key.1 < chunks);
        self.answer(tag, Ok(Reply::Done));
        // What was set aside for it is there for others.
        self.retry_full();
    }

    pub(super) fn deleted(&mut self, tag: u64, lu: u32) {
        self.dying.remove(&lu);
        self.forget_spaces();
        self.answer(tag, Ok(Reply::Done));
        // What was set aside for it is there for others.
        self.retry_full();
    }
}
