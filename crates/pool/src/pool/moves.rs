//! A leg of a chunk moves to another PV while clients work with it.
//!
//! ```text
//! chosen ── drained ──► copying, block by block ──► PV of the copy flushed ──► mapped there ──► durable: the old chunk is given back
//! └──────────────────────── writes go to both ─────────────────────────────────────────────┘
//! ```
//!
//! In the same way a leg is added that is missing, and legs that may differ are made the same ([`mends`]): then nothing is mapped. And in the same way blocks are read from all legs ([`checks`]).
//!
//! Until the copy is flushed, a block that is being written is not copied and the other way round. From the choice on the channels ask the pool. A crash at any time before the record is durable
//! leaves the leg where it was, and the copy as a chunk that nobody has.

use super::*;
use slots::Leg;
use sums::Reading;

/// A leg that moves, or is made.
#[derive(Debug)]
pub(super) struct Moving {
    piece: Piece,
    pub(super) goal: Goal,
    pub(super) target: Leg,
    /// Blocks that the target has, and had when it began.
    pub(super) copied: Bits,
    had: Bits,
    /// Blocks for which somebody waits.
    pub(super) wanted: Bits,
    /// Somebody has changed the chunk meanwhile.
    changed: bool,
    /// The block is copied the other way round: the first leg could not be read there.
    back: bool,
    /// How far the block is that is being read from all legs.
    pub(super) check: Check,
    pub(super) reading: Reading,
    pub(super) stage: Stage,
}

/// What is being made of the target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Goal {
    /// It takes the place of that leg, from which it is copied.
    Move(u8),
    /// It is the leg that is missing.
    Add,
    /// It is the second leg already, and has what the first has.
    Same,
    /// It is a leg, and all legs are read.
    Check,
}

impl Goal {
    /// Whether the target is no leg so far.
    fn maps(self) -> bool {
        matches!(self, Goal::Move(_) | Goal::Add)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Channels may still write to the old chunk alone.
    Draining,
    /// A block is being copied, or none because all that are left are being written.
    Copying(Option<usize>),
    /// Of these blocks the copy is being made durable.
    Flushing(Bits),
}

impl Moving {
    /// Blocks are cleared: what was flushed of them is not to be said any more.
    pub(super) fn cleared(&mut self, blocks: Bits) {
        if let Stage::Flushing(seen) = &mut self.stage {
            *seen = seen.without(blocks);
        }
    }

    /// Somebody changes the chunk.
    pub(super) fn is_changed(&mut self) {
        self.changed = true;
    }

    /// The target, if it is not a leg already.
    pub(super) fn elsewhere(&self) -> Option<&Leg> {
        self.goal.maps().then_some(&self.target)
    }

    /// Whether a PV is needed for it.
    pub(super) fn works_on(&self, legs: &[Leg], pv: u16) -> bool {
        self.target.id.pv == pv || self.source(legs).is_none_or(|leg| leg.id.pv == pv)
    }

    /// The PVs between which a block may be copied next.
    pub(super) fn waits_between(&self, legs: &[Leg]) -> Option<(u16, u16)> {
        let from = self.source(legs).filter(|_| self.stage == Stage::Copying(None))?;
        Some((from.id.pv, self.target.id.pv))
    }

    /// How much of the chunk is copied, in 1,024ths of what was to be.
    pub(super) fn part(&self, live: Bits) -> u32 {
        // It is not what others wait for.
        if self.goal == Goal::Check { 0 } else { self.share(live) }
    }

    /// How much of it is behind it.
    pub(super) fn share(&self, live: Bits) -> u32 {
        let live = live.without(self.had);
        let (copied, all) = (self.copied.and(live).count(), live.count().max(1));
        copied * 1024 / all
    }

    fn source<'a>(&self, legs: &'a [Leg]) -> Option<&'a Leg> {
        match self.goal {
            Goal::Move(number) => legs.iter().find(|leg| leg.number == number),
            Goal::Add | Goal::Same | Goal::Check => legs.first(),
        }
    }

    /// Whether the target lacks blocks; if so they are copied next.
    pub(super) fn wants(&mut self, blocks: Bits) -> bool {
        // What makes them the same comes after it.
        if self.goal == Goal::Check {
            return true;
        }
        self.wanted = self.wanted.or(blocks.without(self.copied));
        !blocks.without(self.copied).is_empty()
    }

    /// Whether the legs are the same in these blocks.
    pub(super) fn has(&self, blocks: Bits) -> bool {
        self.goal == Goal::Same && blocks.without(self.copied).is_empty()
    }

    /// A write failed somewhere: what is in these blocks is copied again.
    pub(super) fn lacks(&mut self, blocks: Bits) {
        self.copied = self.copied.without(blocks);
    }

    /// Blocks were written for the first time, to both.
    pub(super) fn touched(&mut self, blocks: Bits) {
        self.copied = self.copied.or(blocks);
    }
}

impl Pool {
    /// Begins to move the leg of a slot whose bits are known.
    pub(super) fn begin_move(&mut self, piece: Piece, leg: u8, pv: u16) {
        let tier = self.tables.lus.get(&piece.key.0).map(|lu| lu.tier);
        let known = usize::from(pv) < self.chosen.superblock.members.len();
        let table = self.tables.pvs.get(usize::from(pv)).filter(|_| known);
        let takes = |state| matches!(state, MemberState::In | MemberState::Returning);
        let table = table.filter(|table| Some(table.tier) == tier && takes(table.state));
        let differs = self.mends.may_differ(piece.key);
        let target = table.and_then(|_| self.free_chunk(pv));
        let Some(slot) = self.slots.get_mut(&piece.key) else { return };
        if slot.moving.is_some() || !slot.also.is_empty() {
            slot.wait(piece);
            return;
        }
        let elsewhere = slot.legs.iter().all(|leg| leg.id.pv != pv);
        let there = slot.legs.iter().any(|has| has.number == leg);
        let Some(id) = target.filter(|_| there && elsewhere) else {
            return self.piece_done(&piece, Some(Fault::NoSpace));
        };
        // Only what is the same on both legs moves.
        if differs {
            let key = piece.key;
            if self.mends.is_given_up(key) {
                return self.piece_done(&piece, Some(Fault::Medium));
            }
            slot.wait(piece);
            return self.want_mended(key);
        }
        let generation = self.tables.generation(id).checked_add(1).unwrap_or(1);
        let target = Leg::new(leg, id, generation);
        self.take(id);
        self.begin_copy(piece, Goal::Move(leg), target, Bits::NONE);
    }

    pub(super) fn begin_copy(&mut self, piece: Piece, goal: Goal, target: Leg, had: Bits) {
        let (key, id) = (piece.key, target.id);
        self.settling.remove(&key);
        let (copied, wanted, stage) = (had, Bits::NONE, Stage::Draining);
        if let Some(slot) = self.slots.get_mut(&key) {
            let (changed, back) = (false, false);
            let (check, reading) = (Check::default(), Reading::default());
            let moving = Moving {
                piece,
                goal,
                target,
                copied,
                had,
                wanted,
                changed,
                back,
                check,
                reading,
                stage,
            };
            slot.moving = Some(Box::new(moving));
        }
        self.touched.insert(key);
        self.give(Op::Drain { then: Drained::Move(key, id) }, |op| Effect::Drain { op });
    }

    /// Begins to make a chunk whole whose bits are known.
    pub(super) fn begin_mend(&mut self, piece: Piece) {
        let key = piece.key;
        let differs = self.mends.may_differ(key);
        let Some(slot) = self.slots.get_mut(&key) else { return };
        if slot.moving.is_some() || !slot.also.is_empty() {
            slot.wait(piece);
            return;
        }
        match &slot.legs[..] {
            [_, second] if differs => {
                let target = second.clone();
                self.begin_copy(piece, Goal::Same, target, Bits::NONE);
            }
            [one] if slot.pair => {
                let (number, one) = (1 - one.number, one.id);
                let lacks = self.tables.lus.get(&key.0).map(|lu| lu.tier);
                let lacks = lacks.is_none_or(|tier| self.tables.lacks_pvs(tier));
                let known = self.remembered(key, one).filter(|_| !lacks);
                let anew = || self.free_chunk(self.target(key, u16::MAX).filter(|_| !lacks)?);
                let Some(id) = known.map(|(id, _)| id).or_else(anew) else {
                    return self.piece_done(&piece, Some(Fault::NoSpace));
                };
                let had = match known {
                    Some((_, missed)) => Bits::range(0, crate::format::BLOCKS).without(missed),
                    None => Bits::NONE,
                };
                let generation = self.tables.generation(id).checked_add(1).unwrap_or(1);
                if known.is_some() {
                    self.taken.insert(id);
                } else {
                    self.take(id);
                }
                let target = Leg::new(number, id, generation);
                self.begin_copy(piece, Goal::Add, target, had);
            }
            _ => self.piece_done(&piece, None),
        }
    }

    fn moving(&mut self, key: (u32, u32), id: ChunkId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(&key)?;
        let same = slot.moving.as_ref().is_some_and(|moving| moving.target.id == id);
        same.then_some(slot)
    }

    /// Nothing that was begun before the move is under way: what is written from now on goes to both.
    pub(super) fn move_drained(&mut self, key: (u32, u32), id: ChunkId) {
        let Some(slot) = self.moving(key, id) else { return };
        let live = slot.live;
        if let Some(moving) = &mut slot.moving {
            moving.stage = Stage::Copying(None);
            let blocks = live.without(moving.copied).count();
            self.mend_began(key, blocks);
            self.go_on_moving(key);
        }
    }

    /// Copies the next block that is not there and not being written; flushes when there is none.
    pub(super) fn go_on_moving(&mut self, key: (u32, u32)) {
        self.copy_next_block(key, !self.policy.paced);
    }

    /// … if it may, or if somebody waits for that block.
    pub(super) fn copy_next_block(&mut self, key: (u32, u32), may: bool) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let Some(moving) = &mut slot.moving else { return };
        if moving.stage != Stage::Copying(None) {
            return;
        }
        let left = slot.live.without(moving.copied);
        let wanted = left.and(moving.wanted);
        let is_wanted = !wanted.without(slot.busy).is_empty();
        let left = if is_wanted { wanted } else { left };
        let Some(from) = moving.source(&slot.legs).map(|leg| leg.id) else { return };
        let to = moving.target.id;
        if left.is_empty() {
            moving.stage = Stage::Flushing(slot.live);
            let op = Op::MoveFlush { key, id: to };
            // What a checkpoint says of legs that are the same is behind a flush of both PVs.
            if moving.goal.maps() && self.keeps(Rule::MapAfterCopy) {
                self.give_flush(op, to.pv);
            } else {
                self.move_flushed(key, to, &Outcome::Done);
            }
        } else if let Some(block) = left.without(slot.busy).first() {
            if !may && !is_wanted {
                self.held.add((from.pv, to.pv), key);
                return;
            }
            moving.stage = Stage::Copying(Some(block));
            slot.busy = slot.busy.or(Bits::range(block, block + 1));
            if moving.goal == Goal::Check {
                return self.check_block(key, block);
            }
            self.give_copy(Op::Copy { key, id: to, block }, (from, to), block);
        }
    }

    fn give_copy(&mut self, op: Op, (from, to): (ChunkId, ChunkId), block: usize) {
        let offset = block as u64 * BLOCK_BYTES;
        let place = |id: ChunkId| (id.pv, slots::byte_of(id, offset));
        let (from, to, bytes) = (place(from), place(to), BLOCK_BYTES);
        self.give(op, |op| Effect::Copy { op, from, to, bytes });
    }

    pub(super) fn copied(&mut self, key: (u32, u32), id: ChunkId, block: usize, outcome: &Outcome) {
        self.touched.insert(key);
        let one = Bits::range(block, block + 1);
        let legs = self.slots.get(&key).map(Slot::ids).unwrap_or_default();
        self.is_cached(key, legs.into_iter().chain([id]).collect(), one);
        if self.was_orphan(key, id, block) {
            return;
        }
        let turns = self.keeps(Rule::EitherLeg);
        let failed = *outcome == Outcome::Failed;
        let Some(slot) = self.moving(key, id) else { return };
        // Nobody has read it on either leg since the pool was opened, so what the other has is as good.
        let first = slot.legs.first().map(|leg| leg.id).filter(|_| failed && turns);
        let moving = slot.moving.as_mut().filter(|moving| moving.goal == Goal::Same);
        if let Some((first, moving)) = first.zip(moving.filter(|moving| !moving.back)) {
            moving.back = true;
            self.probe_legs(key);
            return self.give_copy(Op::Copy { key, id, block }, (id, first), block);
        }
        slot.busy = slot.busy.without(one);
        if let Some(moving) = &mut slot.moving {
            moving.copied = moving.copied.or(one);
            (moving.stage, moving.back) = (Stage::Copying(None), false);
        }
        if failed {
            self.probe_legs(key);
            self.give_up_move(key, Some(Fault::Medium));
        }
        self.wake(key);
        self.go_on_moving(key);
    }

    /// A block was being written for what was given up meanwhile: whoever waits for it goes on.
    pub(super) fn was_orphan(&mut self, key: (u32, u32), id: ChunkId, block: usize) -> bool {
        let Some(slot) = self.slots.get_mut(&key) else { return false };
        let Some(at) = slot.orphans.iter().position(|orphan| *orphan == (id, block)) else {
            return false;
        };
        slot.orphans.swap_remove(at);
        slot.busy = slot.busy.without(Bits::range(block, block + 1));
        self.wake(key);
        true
    }

    /// Which of the two PVs of a copy failed is not known: one that is lost does not flush either.
    fn probe_legs(&mut self, key: (u32, u32)) {
        let slot = self.slots.get(&key).filter(|slot| slot.pair);
        let pvs: BTreeSet<u16> = slot.into_iter().flat_map(|slot| slot.pvs()).collect();
        pvs.into_iter().for_each(|pv| self.give_flush(Op::Probe, pv));
    }

    /// The copy is durable: it is mapped, with the blocks that it has.
    pub(super) fn move_flushed(&mut self, key: (u32, u32), id: ChunkId, outcome: &Outcome) {
        self.touched.insert(key);
        if *outcome == Outcome::Failed && self.moving(key, id).is_some() {
            return self.give_up_move(key, Some(Fault::Medium));
        }
        let owner = self.slot;
        let holds = self.sums_hold(key);
        let Some(slot) = self.moving(key, id) else { return };
        if let Some(moving) = slot.moving.as_mut()
            && !slot.live.without(moving.copied).is_empty()
        {
            // A write failed meanwhile.
            moving.stage = Stage::Copying(None);
            return self.go_on_moving(key);
        }
        if let Some(moving) = &mut slot.moving
            && let Stage::Flushing(seen) = moving.stage
            && let Some(source) = moving.source(&slot.legs)
            && !source.told.and(slot.live).without(seen).is_empty()
            && moving.goal.maps()
        {
            // A flush has promised blocks meanwhile of which it is not known that the copy has them.
            moving.stage = Stage::Copying(None);
            return self.go_on_moving(key);
        }
        let Some(moving) = slot.moving.take() else { return };
        let Moving { piece, goal, mut target, stage, changed, reading, .. } = *moving;
        let Stage::Flushing(seen) = stage else { return };
        if goal == Goal::Check {
            self.legs_were_read(key, reading, changed);
            return self.piece_done(&piece, None);
        }
        if goal == Goal::Same {
            self.legs_are_same(key, changed);
            return self.piece_done(&piece, None);
        }
        let mut records = vec![Record {
            lu: key.0,
            vchunk: key.1,
            leg: target.number,
            owner,
            pv: id.pv,
            chunk: id.chunk,
            generation: target.generation,
            ..Record::of(Kind::Map)
        }];
        // Of blocks that the other leg does not say to have it is not known whether they are durable there.
        let others = slot.legs.iter().filter(|leg| leg.number != target.number);
        let seen = others.fold(seen, |seen, leg| seen.and(leg.told));
        records.extend(target.say(seen, owner));
        let pv = target.id.pv;
        // Until this is durable a process that takes over finds the old leg: writes go to both.
        match goal {
            Goal::Move(number) => {
                let old = slot.legs.iter_mut().find(|leg| leg.number == number);
                slot.also.extend(old.map(|old| std::mem::replace(old, target)));
            }
            Goal::Add | Goal::Same | Goal::Check => {
                slot.legs.push(target);
                slot.legs.sort_by_key(|leg| leg.number);
                if !holds {
                    slot.activity = slot.activity.or(Some(0));
                }
            }
        }
        let txn = self.log.append(records);
        // Until its record is durable it counts as what it is: copied.
        self.settling.insert(key);
        if let Some(slot) = self.slots.get_mut(&key) {
            (slot.settled, slot.said) = (txn, txn);
        }
        self.waiters.entry(txn).or_default().push(Waiter::Moved(key, pv));
        self.note_page(key, pv);
        if goal == Goal::Add {
            self.missed.forget(key);
            self.legs_are_same(key, changed);
        }
        if holds {
            self.sums_stay(key);
        } else if goal != Goal::Add && self.slots.get(&key).is_some_and(|slot| slot.pair) {
            // By its record.
            self.activity.goes_on(key);
            self.activity.stirs();
        }
        self.piece_done(&piece, None);
    }

    /// The mapping is durable.
    pub(super) fn moved(&mut self, key: (u32, u32), pv: u16) {
        self.touched.insert(key);
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.also.clear();
        }
        self.note_page(key, pv);
        self.wake(key);
    }

    /// The page of a container is on its other leg alone, until the next checkpoint after this is in the tables.
    fn note_page(&mut self, key: (u32, u32), pv: u16) {
        if self.tables.is_layer(key.0) && self.slots.get(&key).is_some_and(|slot| slot.pair) {
            self.mends.lacks_page(key, pv);
        }
    }

    /// The leg stays where it is. Its copy is free when nobody writes to it any more.
    pub(super) fn give_up_move(&mut self, key: (u32, u32), fault: Option<Fault>) {
        self.touched.insert(key);
        let moving = self.slots.get_mut(&key).and_then(|slot| slot.moving.take());
        let Some(moving) = moving else { return };
        if let (Stage::Copying(Some(block)), Some(slot)) = (moving.stage, self.slots.get_mut(&key))
        {
            // The copy goes on, to a leg that may be the only one soon: who writes the block waits for it. One that nobody has is drained.
            let writes_to = match moving.goal {
                Goal::Same => Some(moving.target.id),
                Goal::Check => moving.check.writes_to(),
                Goal::Move(_) | Goal::Add => None,
            };
            match writes_to {
                Some(id) => slot.orphans.push((id, block)),
                None => slot.busy = slot.busy.without(Bits::range(block, block + 1)),
            }
        }
        if moving.goal.maps() {
            let then = Drained::Free(vec![moving.target.id]);
            self.give(Op::Drain { then }, |op| Effect::Drain { op });
        }
        self.piece_done(&moving.piece, fault);
    }
}
