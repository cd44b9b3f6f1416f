//! A leg of a chunk moves to another PV while clients work with it.
//!
//! ```text
//! chosen ── drained ──► copying, block by block ──► PV of the copy flushed ──► mapped there ──► durable: the old chunk is given back
//! └──────────────────────── writes go to both ─────────────────────────────────────────────┘
//! ```
//!
//! Until the copy is flushed, a block that is being written is not copied and the other way round. From the choice on the channels ask the pool. A crash at any time before the record is durable
//! leaves the leg where it was, and the copy as a chunk that nobody has.

use super::*;
use slots::Leg;

/// A leg that moves.
#[derive(Debug)]
pub(super) struct Moving {
    piece: Piece,
    leg: usize,
    pub(super) target: Leg,
    /// Blocks that the target has.
    copied: Bits,
    stage: Stage,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
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

    /// Blocks were written for the first time, to both.
    pub(super) fn touched(&mut self, blocks: Bits) {
        self.copied = self.copied.or(blocks);
    }
}

impl Pool {
    /// Begins to move the leg of a slot whose bits are known.
    pub(super) fn begin_move(&mut self, piece: Piece, leg: u8, pv: u16) {
        let taken = &self.taken;
        let tier = self.tables.lus.get(&piece.key.0).map(|lu| lu.tier);
        let table = self.tables.pvs.get(usize::from(pv));
        let table =
            table.filter(|table| Some(table.tier) == tier && table.state == MemberState::In);
        let target = table.and_then(|table| table.peek(pv, taken));
        let Some(slot) = self.slots.get_mut(&piece.key) else { return };
        if slot.moving.is_some() || !slot.also.is_empty() {
            slot.wait(piece);
            return;
        }
        let elsewhere = slot.legs.iter().all(|leg| leg.id.pv != pv);
        let Some(id) = target.filter(|_| usize::from(leg) < slot.legs.len() && elsewhere) else {
            return self.piece_done(&piece, Some(Fault::NoSpace));
        };
        let generation = self.tables.generation(id).checked_add(1).unwrap_or(1);
        let target = Leg { id, generation, told: Bits::NONE };
        let (leg, key) = (usize::from(leg), piece.key);
        let moving = Moving { piece, leg, target, copied: Bits::NONE, stage: Stage::Draining };
        slot.moving = Some(moving);
        self.taken.insert(id);
        self.give(Op::Drain { then: Drained::Move(key, id) }, |op| Effect::Drain { op });
    }

    fn moving(&mut self, key: (u32, u32), id: ChunkId) -> Option<&mut Slot> {
        let slot = self.slots.get_mut(&key)?;
        let same = slot.moving.as_ref().is_some_and(|moving| moving.target.id == id);
        same.then_some(slot)
    }

    /// Nothing that was begun before the move is under way: what is written from now on goes to both.
    pub(super) fn move_drained(&mut self, key: (u32, u32), id: ChunkId) {
        if let Some(moving) = self.moving(key, id).and_then(|slot| slot.moving.as_mut()) {
            moving.stage = Stage::Copying(None);
            self.go_on_moving(key);
        }
    }

    /// Copies the next block that is not there and not being written; flushes when there is none.
    pub(super) fn go_on_moving(&mut self, key: (u32, u32)) {
        let Some(slot) = self.slots.get_mut(&key) else { return };
        let Some(moving) = &mut slot.moving else { return };
        if moving.stage != Stage::Copying(None) {
            return;
        }
        let left = slot.live.without(moving.copied);
        let from = slot.legs[moving.leg].id;
        let to = moving.target.id;
        if left.is_empty() {
            moving.stage = Stage::Flushing(slot.live);
            let op = Op::MoveFlush { key, id: to };
            if self.keeps(Rule::MapAfterCopy) {
                self.give_flush(op, to.pv);
            } else {
                self.move_flushed(key, to, &Outcome::Done);
            }
        } else if let Some(block) = left.without(slot.busy).first() {
            moving.stage = Stage::Copying(Some(block));
            slot.busy = slot.busy.or(Bits::range(block, block + 1));
            let offset = block as u64 * BLOCK_BYTES;
            let copy = |op| Effect::Copy {
                op,
                from: (from.pv, slots::byte_of(from, offset)),
                to: (to.pv, slots::byte_of(to, offset)),
                bytes: BLOCK_BYTES,
            };
            self.give(Op::Copy { key, id: to, block }, copy);
        }
    }

    pub(super) fn copied(&mut self, key: (u32, u32), id: ChunkId, block: usize, outcome: &Outcome) {
        self.touched.insert(key);
        let Some(slot) = self.moving(key, id) else { return };
        let one = Bits::range(block, block + 1);
        slot.busy = slot.busy.without(one);
        if let Some(moving) = &mut slot.moving {
            moving.copied = moving.copied.or(one);
            moving.stage = Stage::Copying(None);
        }
        if *outcome == Outcome::Failed {
            self.give_up_move(key, Some(Fault::Medium));
        }
        self.wake(key);
        self.go_on_moving(key);
    }

    /// The copy is durable: it is mapped, with the blocks that it has.
    pub(super) fn move_flushed(&mut self, key: (u32, u32), id: ChunkId, outcome: &Outcome) {
        self.touched.insert(key);
        if *outcome == Outcome::Failed && self.moving(key, id).is_some() {
            return self.give_up_move(key, Some(Fault::Medium));
        }
        let owner = self.slot;
        let Some(slot) = self.moving(key, id) else { return };
        if let Some(moving) = &mut slot.moving
            && let Stage::Flushing(seen) = moving.stage
            && !slot.legs[moving.leg].told.and(slot.live).without(seen).is_empty()
        {
            // A flush has promised blocks meanwhile of which it is not known that the copy has them.
            moving.stage = Stage::Copying(None);
            return self.go_on_moving(key);
        }
        let Some(Moving { piece, leg, mut target, stage, .. }) = slot.moving.take() else { return };
        let Stage::Flushing(seen) = stage else { return };
        let mut records = vec![Record {
            lu: key.0,
            vchunk: key.1,
            leg: leg as u8,
            owner,
            pv: id.pv,
            chunk: id.chunk,
            generation: target.generation,
            ..Record::of(Kind::Map)
        }];
        records.extend(target.say(seen, owner));
        // Until this is durable a process that takes over finds the old leg: writes go to both.
        let old = std::mem::replace(&mut slot.legs[leg], target);
        slot.also = vec![old];
        let txn = self.log.append(records);
        if let Some(slot) = self.slots.get_mut(&key) {
            (slot.settled, slot.said) = (txn, txn);
        }
        self.waiters.entry(txn).or_default().push(Waiter::Moved(key));
        self.piece_done(&piece, None);
    }

    /// The mapping is durable.
    pub(super) fn moved(&mut self, key: (u32, u32)) {
        self.touched.insert(key);
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.also.clear();
        }
        self.wake(key);
    }

    /// The leg stays where it is. Its copy is free when nobody writes to it any more.
    pub(super) fn give_up_move(&mut self, key: (u32, u32), fault: Option<Fault>) {
        self.touched.insert(key);
        let moving = self.slots.get_mut(&key).and_then(|slot| slot.moving.take());
        let Some(moving) = moving else { return };
        if let (Stage::Copying(Some(block)), Some(slot)) = (moving.stage, self.slots.get_mut(&key))
        {
            slot.busy = slot.busy.without(Bits::range(block, block + 1));
        }
        let then = Drained::Free(vec![moving.target.id]);
        self.give(Op::Drain { then }, |op| Effect::Drain { op });
        self.piece_done(&moving.piece, fault);
    }
}
