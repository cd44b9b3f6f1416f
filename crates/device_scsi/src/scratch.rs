//! Scratch memory: for the SCSI commands that compare or repeat.
//!
//! As with segment lists, a queue has a piece of its own, so that it gets on whatever others do, and takes as many of those that all queues of
//! the channel share as it leaves to others.

use memory::{IoBuf, Lasting, MapError};
use scsi::SCRATCH_BYTES;

/// How many pieces the queues of a channel share. More such commands at once wait, counted as "no DMA resource".
const COUNT: usize = 8;

/// Names one piece: below [`COUNT`] a shared one, else a queue's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScratchId(u16);

/// All pieces of a channel, aligned to pages. They take memory when they are first used.
#[derive(Debug, Default)]
pub(crate) struct Scratches {
    pieces: Vec<Option<Lasting>>,
    free: Vec<u16>,
}

/// Those of one queue.
#[derive(Debug, Default)]
pub(crate) struct OwnScratch {
    own: Option<ScratchId>,
    is_free: bool,
    borrowed: usize,
}

impl Scratches {
    /// Makes the piece of a queue, and for the first one those that are shared.
    pub(crate) fn open(&mut self) -> Result<OwnScratch, MapError> {
        while self.pieces.len() < COUNT {
            self.free.push(self.pieces.len() as u16);
            self.pieces.push(Some(Lasting::new(SCRATCH_BYTES)?));
        }
        let piece = Some(Lasting::new(SCRATCH_BYTES)?);
        let place = self.pieces.iter().position(Option::is_none).unwrap_or(self.pieces.len());
        if place == self.pieces.len() {
            self.pieces.push(None);
        }
        self.pieces[place] = piece;
        // A data plane has at most 16384 queues.
        Ok(OwnScratch { own: Some(ScratchId(place as u16)), is_free: true, borrowed: 0 })
    }

    /// Takes back what [`Scratches::open`] made. None of it is in use.
    pub(crate) fn close(&mut self, own: OwnScratch) {
        debug_assert!(own.borrowed == 0 && own.is_free == own.own.is_some(), "in use: {own:?}");
        if let Some(piece) = own.own {
            self.pieces[usize::from(piece.0)] = None;
        }
    }

    /// A piece for a command of a queue.
    pub(crate) fn take(&mut self, own: &mut OwnScratch) -> Option<ScratchId> {
        if std::mem::take(&mut own.is_free) {
            return own.own;
        }
        if own.borrowed >= self.free.len() {
            return None;
        }
        own.borrowed += 1;
        self.free.pop().map(ScratchId)
    }

    /// A command of the queue no longer needs it.
    pub(crate) fn give_back(&mut self, own: &mut OwnScratch, scratch: ScratchId) {
        if own.own == Some(scratch) {
            own.is_free = true;
            return;
        }
        debug_assert!(!self.free.contains(&scratch.0), "{scratch:?} is free already");
        self.free.push(scratch.0);
        own.borrowed -= 1;
    }

    /// Its memory.
    pub(crate) fn get(&self, scratch: ScratchId) -> IoBuf {
        let memory = self.pieces[usize::from(scratch.0)].as_ref();
        let memory = memory.expect("a piece stays while it is in use");
        memory.buf(0, SCRATCH_BYTES).expect("a piece has this length")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_takes_as_many_pieces_as_it_leaves_and_has_one_of_its_own() {
        let mut scratches = Scratches::default();
        let all_of = |scratches: &mut Scratches| {
            let mut own = scratches.open().unwrap();
            let taken = std::iter::from_fn(|| scratches.take(&mut own)).collect::<Vec<_>>();
            (own, taken)
        };
        let (mut first, pieces) = all_of(&mut scratches);
        assert_eq!(pieces.len(), 1 + COUNT / 2);
        let others: Vec<_> = (0..20).map(|_| all_of(&mut scratches)).collect();
        assert!(others.iter().all(|(_, taken)| !taken.is_empty()));
        let mut places: Vec<usize> = Vec::new();
        let taken = pieces.iter().chain(others.iter().flat_map(|(_, taken)| taken));
        places.extend(taken.map(|piece| scratches.get(*piece).as_ptr().addr()));
        places.sort_unstable();
        assert!(places.windows(2).all(|pair| pair[1] - pair[0] >= SCRATCH_BYTES));
        pieces.into_iter().for_each(|piece| scratches.give_back(&mut first, piece));
        scratches.close(first);
        assert_eq!(scratches.pieces.iter().filter(|piece| piece.is_none()).count(), 1);
    }
}
