//! What channels look up of an LU that shares what it holds.
//!
//! Such an LU has a [`Chain`]: the layer that it writes to, its *head*, what that lies over, and so on down to the space of an LU. A channel takes each sector from the uppermost [`Space`] that has it. What it
//! finds in the head is the LU's own, and is overwritten there; whatever else is written the pool is asked for, which makes room in the head.
//!
//! Which parts of a layer are written is in the memory that is kept for a successor ([`Parts`]), where a channel finds them by the block of their chunk. The thread shows a chunk of a layer when it is first
//! asked for one of the LUs above: from then on every part of it is known, or known not to be there.
//!
//! The chain of an LU changes when a snapshot of it is made, or it is rolled back, or gone. It is taken away before that begins, and what channels had begun by it is over before anything follows, as with the
//! words of a [`Table`](crate::table::Table).

use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use pool::format::CHUNK_BYTES;
use pool::{PART_BYTES, PARTS, Way, chunks_above, slot_place};

use crate::parts::{At, Parts};
use crate::table::{Found, Shared, there, word};

const SECTOR: u64 = 512;
/// A request is done by the channel if it is in no more places than that, one after the other; else by the pool, all of them at once.
const PLACES_MAX: u32 = 4;

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
        Space { number, chunks, blocks: is_layer.then_some(unknown) }
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

    /// Whether a chunk of the LUs above is not shown.
    pub(crate) fn is_hidden(&self, vchunk: u32) -> bool {
        let blocks = self.blocks.as_deref().unwrap_or_default();
        blocks.get(vchunk as usize).is_some_and(|block| block.load(Relaxed) == UNKNOWN)
    }

    /// What it has of a chunk is in that block from now on; nothing.
    pub(crate) fn reveal(&self, vchunk: u32, block: Option<usize>) {
        let blocks = self.blocks.as_deref().unwrap_or_default();
        if let Some(place) = blocks.get(vchunk as usize) {
            place.store(block.map_or(NOTHING, |block| 2 + block as u64), Release);
        }
    }

    /// Something was written in a chunk: if it had nothing, that is not so any more.
    pub(crate) fn written(&self, vchunk: u32) {
        let blocks = self.blocks.as_deref().unwrap_or_default();
        if let Some(place) = blocks.get(vchunk as usize)
            && place.load(Relaxed) == NOTHING
        {
            place.store(UNKNOWN, Release);
        }
    }

    /// Where a part is in a layer. None: the pool has to be asked.
    fn part(&self, parts: &Parts, number: u64) -> Option<At> {
        let block = self.blocks.as_deref()?.get((number / PARTS) as usize)?.load(Acquire);
        match block {
            UNKNOWN => None,
            NOTHING => Some(At::Nowhere),
            block => parts.at((block - 2) as usize, number % PARTS),
        }
    }
}

impl Chain {
    pub(crate) fn of(spaces: impl Iterator<Item = Arc<Space>>) -> Chain {
        Chain(spaces.collect())
    }

    pub(crate) fn spaces(&self) -> &[Arc<Space>] {
        &self.0
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

    /// Where a part of a chunk of a layer or a space is.
    fn look_in(&self, space: &Space, chunk: u64, (within, bytes): (u64, u64)) -> Found {
        let Some(word) = space.chunks.get(chunk as usize) else {
            // The LU has grown since there was that space.
            return if space.blocks.is_none() { Found::Zeros } else { Found::Ask };
        };
        there(&self.shadow, word.load(Acquire), within, bytes)
    }
}
