//! Where a part of an LU is, for who does not want to wait.

use super::*;
use crate::tables::LEGS_MAX;
use slots::byte_of;

/// What a channel finds that looks where a part of an LU is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// All of it is there, and it may be read, and written if the LU has one leg, without asking anybody: number of the PV and byte, of each leg.
    There {
        /// The legs; a read may use any.
        legs: [(u16, u64); LEGS_MAX as usize],
        /// How many there are.
        count: usize,
    },
    /// It is not mapped: it reads as zeros, and a write has to be asked for.
    Zeros,
    /// The pool has to be asked.
    Ask,
}

impl Pool {
    /// Where a part of one chunk of an LU is, for who does not want to wait: no allocation, nothing changes. Where an LU has one leg a write may go there by itself, and counts as something that a channel has begun,
    /// until it is over; where it has two the pool writes, which knows what each of them misses.
    pub fn lookup(&self, extent: Extent) -> Lookup {
        let Extent { lu, at, bytes } = extent;
        let alone = self.serves(lu) && !self.cuts.is_of(lu);
        let Some(known) = self.tables.lus.get(&lu).filter(|_| alone) else {
            return Lookup::Ask;
        };
        if known.beneath != 0 {
            // Of what is in no slot of its own yet the pool has to be asked.
            let in_head = self.in_head(lu, (at, bytes));
            let legs = in_head.and_then(|(key, at)| self.written_in(key, (at, bytes)));
            return legs.unwrap_or(Lookup::Ask);
        }
        let vchunk = at / CHUNK_BYTES;
        let end = at.checked_add(bytes);
        if vchunk >= u64::from(self.chunks_of(lu))
            || bytes == 0
            || end.is_none_or(|end| (end - 1) / CHUNK_BYTES != vchunk)
        {
            return Lookup::Ask;
        }
        let Some(slot) = self.slots.get(&(lu, vchunk as u32)) else {
            let mapped = known.legs_of(vchunk as u32).iter().any(|leg| leg.chunk().is_some());
            return if mapped { Lookup::Ask } else { Lookup::Zeros };
        };
        if slot.legs.is_empty() {
            return Lookup::Zeros;
        }
        let range = (at % CHUNK_BYTES, bytes);
        self.written_in((lu, vchunk as u32), range).unwrap_or(Lookup::Ask)
    }

    /// Where a part of a chunk is that is written and stays where it is.
    fn written_in(&self, key: (u32, u32), (at, bytes): (u64, u64)) -> Option<Lookup> {
        let slot = self.slots.get(&key).filter(|slot| !slot.legs.is_empty())?;
        let blocks =
            Bits::range((at / BLOCK_BYTES) as usize, (at + bytes).div_ceil(BLOCK_BYTES) as usize);
        let waits = !self.losses.pending.is_empty() || self.mends.hides(key);
        if !slot.known
            || slot.pair && (waits || slot.activity.is_none_or(|txn| txn > self.log.durable))
            || slot.moving.is_some()
            || slot.settled > self.log.durable
            || !blocks.without(slot.live).is_empty()
        {
            return None;
        }
        let mut legs = [(0, 0); LEGS_MAX as usize];
        for (place, leg) in legs.iter_mut().zip(&slot.legs) {
            *place = (leg.id.pv, byte_of(leg.id, at));
        }
        Some(Lookup::There { legs, count: slot.legs.len() })
    }
}
