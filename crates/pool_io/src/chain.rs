//! What channels look up of an LU that shares what it holds.
//!
//! Such an LU has a [`Chain`]: the layer that it writes to, its *head*, what that lies over, and so on down to the space of an LU. A channel takes each sector from the uppermost [`Space`] that has it. What it
//! finds in the head is the LU's own, and is overwritten there. Where nothing was written so far, a channel writes to the slot of the part, or takes slots for parts that have none, of those that the
//! pool [offers](Space::offer) ([`Shared::take`]): for several parts one behind the other, so that it is one write. The pool is told of what was written ([`Shared::took`]) before the client is. For whatever else is written the pool is asked, which makes room
//! in the head.
//!
//! Which parts of a layer are written is in the memory that is kept for a successor ([`Parts`]), where a channel finds them by the block of their chunk. The thread shows a chunk of a layer when it is first
//! asked for one of the LUs above: from then on every part of it is known, or known not to be there.
//!
//! The chain of an LU changes when a snapshot of it is made, or it is rolled back, or gone. It is taken away before that begins, and what channels had begun by it is over before anything follows, as with the
//! words of a [`Table`](crate::table::Table).

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};

use pool::format::CHUNK_BYTES;
use pool::{KeptPart, PART_BYTES, PARTS, SECTOR, Way, chunks_above, sectors, slot_place};

use crate::parts::{At, Parts};
use crate::table::{Found, Shared, locked, there, word};

/// A request is done by the channel if it is in no more places than that, one after the other; else by the pool, all of them at once.
const PLACES_MAX: u32 = 4;

/// When so few slots are left that channels may take, the pool is told.
pub(crate) const OFFERED_FEW: u32 = 128;

/// When so much was written of which the pool does not know, it is told.
const UNLEARNT_MANY: usize = 1024;

/// Parts that a channel takes slots for at once.
const TAKEN_MAX: u64 = 64;

/// Slots that are there to be taken, as a word.
fn range_word(slots: &Range<u32>) -> u64 {
    u64::from(slots.start) << 32 | u64::from(slots.end)
}

fn range_of(word: u64) -> Range<u32> {
    (word >> 32) as u32..word as u32
}

/// Of a chunk of a layer: it is not shown, or nothing is in it; else 2 more than the number of its block.
const UNKNOWN: u64 = 0;
const NOTHING: u64 = 1;

/// A layer, or the space of an LU beneath layers.
#[derive(Debug)]
pub(crate) struct Space {
    pub(crate) number: u32,
    /// Where its chunks are: of a layer, its containers.
    chunks: Box<[AtomicU64]>,
    /// Of a layer, by chunk of the LUs above it; of a space there are none.
    blocks: Option<Box<[AtomicU64]>>,
    /// Of a head, slots that are there to be taken: the first and the end.
    offered: AtomicU64,
}

/// Where a channel writes that nothing was written to.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Taken {
    layer: u32,
    /// The first part and its slot; those of others follow.
    part: u64,
    slot: u32,
    /// The block that they have.
    block: usize,
    /// The first byte, from the beginning of the part.
    within: u64,
}

/// Where what an LU holds is, from its head down.
#[derive(Debug)]
pub(crate) struct Chain(Box<[Arc<Space>]>);

impl Space {
    /// One whose chunks are there; it may be a layer.
    pub(crate) fn new(number: u32, ways: impl Iterator<Item = Way>, is_layer: bool) -> Space {
        let chunks: Box<[AtomicU64]> = ways.map(|way| AtomicU64::new(word(way))).collect();
        let above = if is_layer { chunks_above(chunks.len() as u32) } else { 0 };
        let unknown = (0..above).map(|_| AtomicU64::new(UNKNOWN)).collect();
        Space { number, chunks, blocks: is_layer.then_some(unknown), offered: AtomicU64::new(0) }
    }

    /// Channels may take these slots from now on, in place of any before.
    pub(crate) fn offer(&self, slots: Range<u32>) {
        self.offered.store(range_word(&slots), Release);
    }

    /// What no channel has taken, and none will.
    pub(crate) fn withdraw(&self) -> Range<u32> {
        range_of(self.offered.swap(0, AcqRel))
    }

    /// How many are there to be taken.
    pub(crate) fn offered(&self) -> u32 {
        let Range { start, end } = range_of(self.offered.load(Relaxed));
        end - start
    }

    /// The first of the next of them, and how many are left.
    fn next_slots(&self, count: u32) -> Option<(u32, u32)> {
        let after = |word| {
            let Range { start, end } = range_of(word);
            (end - start >= count).then(|| range_word(&(start + count..end)))
        };
        let word = self.offered.fetch_update(AcqRel, Acquire, after).ok()?;
        let Range { start, end } = range_of(word);
        Some((start, end - start - count))
    }

    /// How many chunks it has.
    pub(crate) fn chunks(&self) -> u32 {
        self.chunks.len() as u32
    }

    pub(crate) fn show(&self, chunk: u32, way: Way) {
        if let Some(place) = self.chunks.get(chunk as usize) {
            place.store(word(way), Release);
        }
    }

    /// The word of a chunk of the LUs above.
    #[inline]
    fn block(&self, vchunk: u64) -> Option<&AtomicU64> {
        self.blocks.as_deref()?.get(vchunk as usize)
    }

    /// Whether a chunk of the LUs above is not shown.
    pub(crate) fn is_hidden(&self, vchunk: u32) -> bool {
        self.block(vchunk.into()).is_some_and(|block| block.load(Relaxed) == UNKNOWN)
    }

    /// What it has of a chunk is in that block from now on; nothing.
    pub(crate) fn reveal(&self, vchunk: u32, block: Option<usize>) {
        if let Some(place) = self.block(vchunk.into()) {
            place.store(block.map_or(NOTHING, |block| 2 + block as u64), Release);
        }
    }

    /// Something was written in a chunk: if it had nothing, that is not so any more.
    pub(crate) fn written(&self, vchunk: u32) {
        if let Some(place) = self.block(vchunk.into())
            && place.load(Relaxed) == NOTHING
        {
            place.store(UNKNOWN, Release);
        }
    }

    /// Whether there is a block for a chunk of the LUs above.
    pub(crate) fn has_block(&self, vchunk: u32) -> bool {
        self.block(vchunk.into()).is_some_and(|block| block.load(Relaxed) > NOTHING)
    }

    /// Where a part is in a layer. None: the pool has to be asked.
    fn part(&self, parts: &Parts, number: u64) -> Option<At> {
        let block = self.block(number / PARTS)?.load(Acquire);
        match block {
            UNKNOWN => None,
            NOTHING => Some(At::Nowhere),
            block => parts.at((block - 2) as usize, number % PARTS),
        }
    }

    /// The slots of so many parts of a head, if they lie one behind the other there: the first. They are taken where none of the parts has one. With their block, and whether the pool should offer more.
    fn slots(&self, parts: &Parts, first: u64, count: u32) -> Option<(u32, usize, bool)> {
        let block = self.block(first / PARTS)?.load(Acquire);
        // Where there is no block there is no word to take one by.
        let block = block.checked_sub(2)? as usize;
        let first = first % PARTS;
        let mut others = (first + 1..).zip(1..count);
        if let At::Slot { slot, .. } = parts.at(block, first)? {
            let follows =
                |at, number| matches!(at, Some(At::Slot { slot: has, .. }) if has == slot + number);
            let all = others.all(|(part, number)| follows(parts.at(block, part), number));
            return all.then_some((slot, block, false));
        }
        // Whoever holds them all has slots for all of them or for none: what is taken is some part's.
        let held = (first..).take(count as usize).take_while(|part| parts.hold(block, *part));
        let held = held.count() as u32;
        let taken = if held == count { self.next_slots(count) } else { None };
        for (part, number) in (first..).zip(0..held) {
            parts.let_go(block, part, taken.map(|(slot, _)| slot + number));
        }
        let (slot, left) = taken?;
        Some((slot, block, left < OFFERED_FEW && left + count >= OFFERED_FEW))
    }
}

impl Chain {
    pub(crate) fn of(spaces: impl Iterator<Item = Arc<Space>>) -> Chain {
        Chain(spaces.collect())
    }

    pub(crate) fn spaces(&self) -> &[Arc<Space>] {
        &self.0
    }

    /// What the LU writes to.
    pub(crate) fn head(&self) -> Option<&Arc<Space>> {
        self.0.first()
    }
}

impl Shared {
    /// Where a range of an LU begins that lies in one chunk, and how much of it follows there. All of it is asked for if some is, or if it lies in many places. To be asked as [`Shared::look`].
    pub(crate) fn look_through(
        &self,
        chain: &Chain,
        (at, bytes): (u64, u64),
        writes: bool,
    ) -> (Found, u64) {
        let (first, run) = self.look_at_place(chain, (at, bytes), writes);
        let (mut end, mut places) = (run, 1);
        while end < bytes && first != Found::Ask {
            let (next, more) = self.look_at_place(chain, (at + end, bytes - end), writes);
            if next == Found::Ask || places == PLACES_MAX {
                return (Found::Ask, 0);
            }
            (end, places) = (end + more, places + 1);
        }
        (first, run)
    }

    /// … and goes on with what is beside it.
    fn look_at_place(&self, chain: &Chain, (at, bytes): (u64, u64), writes: bool) -> (Found, u64) {
        let (first, mut run) = self.look_at_part(chain, (at, bytes), writes);
        while run < bytes && first != Found::Ask {
            let (next, more) = self.look_at_part(chain, (at + run, bytes - run), writes);
            let goes_on = match (first, next) {
                (Found::Zeros, Found::Zeros) => true,
                (Found::There(pv, place), Found::There(other, next)) => {
                    pv == other && place + run == next
                }
                _ => false,
            };
            if !goes_on {
                break;
            }
            run += more;
        }
        (first, run)
    }

    /// … of which all is in one part of the LU.
    fn look_at_part(&self, chain: &Chain, (at, bytes): (u64, u64), writes: bool) -> (Found, u64) {
        const ASK: (Found, u64) = (Found::Ask, 0);
        let (number, within) = (at / PART_BYTES, at % PART_BYTES);
        let mut bytes = bytes.min(PART_BYTES - within);
        let first = within / SECTOR;
        for space in &*chain.0 {
            if space.blocks.is_none() {
                let found = self.look_in(space, at / CHUNK_BYTES, (at % CHUNK_BYTES, bytes));
                return if writes { ASK } else { (found, bytes) };
            }
            let present = match space.part(&self.shadow.parts, number) {
                None => return ASK,
                Some(At::Nowhere) if writes => return ASK,
                Some(At::Nowhere) => continue,
                Some(At::Slot { slot, present }) if present >> first & 1 == 1 => {
                    let run = u64::from((present >> first).trailing_ones()) * SECTOR;
                    let bytes = bytes.min(run);
                    let (container, place) = slot_place(slot);
                    let range = (place + within, bytes);
                    return (self.look_in(space, u64::from(container), range), bytes);
                }
                Some(At::Slot { present, .. }) => present >> first,
            };
            if writes {
                return ASK;
            }
            // As far as this layer has nothing, it is what is beneath.
            if present != 0 {
                bytes = bytes.min(u64::from(present.trailing_zeros()) * SECTOR);
            }
        }
        ASK
    }

    /// Where a channel may write a range of an LU in which it has found nothing, all of it in one place; and whether the pool should offer more slots. To be asked as [`Shared::look`].
    pub(crate) fn take(
        &self,
        chain: &Chain,
        (at, bytes): (u64, u64),
    ) -> Option<(Taken, (u16, u64), bool)> {
        let (part, within) = (at / PART_BYTES, at % PART_BYTES);
        let count = (within + bytes).div_ceil(PART_BYTES);
        if count > TAKEN_MAX || at % CHUNK_BYTES + bytes > CHUNK_BYTES {
            return None;
        }
        let head = chain.head()?;
        let (slot, block, few) = head.slots(&self.shadow.parts, part, count as u32)?;
        let (container, place) = slot_place(slot);
        let range = (place + within, bytes);
        let together = slot_place(slot + count as u32 - 1).0 == container;
        let Found::There(pv, place) = self.look_in(head, u64::from(container), range) else {
            return None;
        };
        together.then_some((
            Taken { layer: head.number, part, slot, block, within },
            (pv, place),
            few,
        ))
    }

    /// So many bytes were written there; whether the pool should learn of it soon. None: it is known nowhere, and must not be answered. Until then what was begun is not over.
    pub(crate) fn took(&self, taken: &Taken, bytes: u64) -> Option<bool> {
        let Taken { layer, part, slot, block, mut within } = *taken;
        let mut rest = bytes / SECTOR * SECTOR;
        let mut all = locked(&self.taken);
        let before = all.len();
        for (part, slot) in (part..).zip(slot..) {
            let here = rest.min(PART_BYTES - within);
            if here == 0 {
                break;
            }
            let present = sectors(within, here);
            if !self.shadow.parts.add(block, part % PARTS, present) {
                return None;
            }
            all.push(KeptPart { layer, part, slot, present });
            (within, rest) = (0, rest - here);
        }
        Some(before < UNLEARNT_MANY && all.len() >= UNLEARNT_MANY)
    }

    /// Where a part of a chunk of a layer or a space is.
    fn look_in(&self, space: &Space, chunk: u64, (within, bytes): (u64, u64)) -> Found {
        let Some(word) = space.chunks.get(chunk as usize) else {
            // The LU has grown since there was that space.
            return if space.blocks.is_none() { Found::Zeros } else { Found::Ask };
        };
        there(&self.shadow, word.load(Acquire), within, bytes)
    }
}
