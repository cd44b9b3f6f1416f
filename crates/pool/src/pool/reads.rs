//! Clients read: from whichever leg may be read and likely [answers first](super::load), and from the other where that fails.

use std::sync::Arc;

use super::slots::byte_of;
use super::*;
use crate::sums::Sums;

/// A run of blocks that is being read for a piece.
#[derive(Debug)]
pub(super) struct Fetch {
    piece: Piece,
    /// First byte, from the beginning of the chunk.
    at: u64,
    bytes: u64,
    /// Legs that were tried, a bit each.
    tried: u8,
    /// What it is held against.
    sums: Option<Arc<Sums>>,
}

impl Fetch {
    /// What is read: of what is held against checksums whole ones.
    fn read(&self) -> (u64, u64) {
        let (at, end) = (self.at, self.at + self.bytes);
        if self.sums.is_none() {
            return (at, self.bytes);
        }
        let at = at / CHECKED * CHECKED;
        (at, end.next_multiple_of(CHECKED) - at)
    }
}

impl Pool {
    pub(super) fn read_zeros(&mut self, piece: &Piece) {
        let Piece { tag, from, bytes, .. } = *piece;
        self.effects.push(Effect::Zero { tag, from, bytes });
        self.piece_done(piece, None);
    }

    /// Runs of blocks that are written are read, the others are zeros.
    pub(super) fn read(&mut self, piece: &Piece) {
        let trusts = self.keeps(Rule::NoBitNoData);
        let differs = self.mends.may_differ(piece.key) && self.keeps(Rule::ReadAfterMend);
        let waits = differs && !self.mends.is_given_up(piece.key);
        let Some(slot) = self.slots.get_mut(&piece.key) else { return };
        if waits && slot.wants(piece.blocks().0) {
            slot.wait(piece.clone());
            self.want_mended(piece.key);
            return self.go_on_moving(piece.key);
        }
        let live = slot.live;
        let verifies = self.sums_hold(piece.key)
            && !piece.blocks().0.and(live).is_empty()
            && self.keeps(Rule::ReadsVerified);
        let sums = if verifies { self.known_sums(piece.key) } else { None };
        if verifies && sums.is_none() {
            return self.wait_for_sums(piece.clone());
        }
        let (mut at, end) = (piece.at, piece.at + piece.bytes);
        let mut runs: Vec<(bool, u64, u64)> = Vec::new();
        while at < end {
            let next = (at / BLOCK_BYTES * BLOCK_BYTES + BLOCK_BYTES).min(end);
            let written = live.has((at / BLOCK_BYTES) as usize) || !trusts;
            match runs.last_mut() {
                Some((same, _, end)) if *same == written && !(written && verifies) => *end = next,
                _ => runs.push((written, at, next)),
            }
            at = next;
        }
        let reads = runs.iter().filter(|(written, ..)| *written).count() as u32;
        if let Some(job) = self.jobs.get_mut(&piece.job) {
            job.left += reads;
        }
        for (written, first, next) in runs {
            let (from, bytes) = (piece.from + first - piece.at, next - first);
            let tag = piece.tag;
            if written {
                let (piece, sums) = (piece.clone(), sums.clone());
                self.fetch(Fetch { piece, at: first, bytes, tried: 0, sums });
            } else {
                self.effects.push(Effect::Zero { tag, from, bytes });
            }
        }
        self.piece_done(piece, None);
    }

    /// Reads from a leg that was not tried, of those that may be read: that which likely answers first.
    fn fetch(&mut self, fetch: Fetch) {
        let last = self.reads_last();
        // It may have been forgotten while another leg was read.
        let key = fetch.piece.key;
        if self.slot(key).is_none() {
            return self.piece_done(&fetch.piece, Some(Fault::Medium));
        }
        let slot = &self.slots[&key];
        let end = (fetch.at + fetch.bytes).div_ceil(BLOCK_BYTES) as usize;
        let blocks = Bits::range((fetch.at / BLOCK_BYTES) as usize, end);
        let same = slot.moving.as_ref().is_some_and(|moving| moving.has(blocks));
        let first_alone = self.mends.may_differ(key) && !same;
        let legs = slot.legs.iter().take(if first_alone { 1 } else { slot.legs.len() });
        let legs = legs.filter(|leg| fetch.tried >> leg.number & 1 == 0);
        let but = if last { legs.clone().count().saturating_sub(1) } else { 0 };
        let mut legs = legs.skip(but);
        let pv = self.load.read(legs.clone().map(|leg| leg.id.pv));
        let Some(leg) = legs.find(|leg| Some(leg.id.pv) == pv) else {
            let some = fetch.tried.count_ones() > 1 || fetch.sums.is_some();
            if some && fetch.read().1 > CHECKED {
                return self.fetch_parts(&fetch);
            }
            if fetch.sums.is_some() {
                self.no_leg_holds(key, fetch.at);
            }
            return self.piece_done(&fetch.piece, Some(Fault::Medium));
        };
        let (first, bytes) = fetch.read();
        let (pv, at) = (leg.id.pv, byte_of(leg.id, first));
        let Piece { tag, from, at: begin, .. } = fetch.piece;
        let to = match fetch.sums {
            Some(_) => Reader::Verified,
            None => Reader::Client { tag, from: from + fetch.at - begin },
        };
        let tried = fetch.tried | 1 << leg.number;
        let op = Op::Fetch { fetch: Fetch { tried, ..fetch } };
        self.give(op, |op| Effect::Read { op, pv, at, bytes, to });
    }

    /// What a client reads was read, or is read from another leg.
    pub(super) fn fetched(&mut self, fetch: Fetch, outcome: Outcome) {
        let (first, _) = fetch.read();
        // What is changed meanwhile has none that hold.
        let holds = fetch.sums.is_some() && self.sums_hold(fetch.piece.key);
        let outcome = match (outcome, &fetch.sums) {
            (Outcome::Bytes(bytes), Some(sums)) if holds && !sums.hold(first, &bytes) => {
                Outcome::Failed
            }
            (Outcome::Bytes(mut bytes), Some(_)) => {
                let Piece { tag, from, at, .. } = fetch.piece;
                bytes.drain(..(fetch.at - first) as usize);
                bytes.truncate(fetch.bytes as usize);
                self.effects.push(Effect::Give { tag, from: from + fetch.at - at, bytes });
                Outcome::Done
            }
            (other, _) => other,
        };
        match outcome {
            Outcome::Failed => self.fetch(fetch),
            Outcome::Done | Outcome::Bytes(_) => {
                if fetch.tried.count_ones() > 1 {
                    self.want_repair(fetch.piece.key, (fetch.at, fetch.bytes));
                }
                self.piece_done(&fetch.piece, None);
            }
        }
    }

    /// Each leg has something that cannot be read, perhaps not the same.
    fn fetch_parts(&mut self, fetch: &Fetch) {
        let (mut at, end) = (fetch.at, fetch.at + fetch.bytes);
        while at < end {
            let next = (at / CHECKED * CHECKED + CHECKED).min(end);
            if let Some(job) = self.jobs.get_mut(&fetch.piece.job) {
                job.left += 1;
            }
            let (piece, sums) = (fetch.piece.clone(), fetch.sums.clone());
            self.fetch(Fetch { piece, at, bytes: next - at, tried: 0, sums });
            at = next;
        }
        self.piece_done(&fetch.piece, None);
    }
}
