//! Scratch memory: for the SCSI commands that compare or repeat.

use memory::{IoBuf, MapError, Mapping};
use scsi::SCRATCH_BYTES;

/// How many pieces a channel has. More such commands at once wait, counted as "no DMA resource".
const COUNT: usize = 8;

/// Names one piece.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ScratchId(u8);

/// A fixed pool of pieces, aligned to pages; made when the first SCSI queue comes.
#[derive(Debug, Default)]
pub(crate) struct Scratches {
    memory: Option<Mapping>,
    free: Vec<u8>,
}

impl Scratches {
    /// Makes the pool, if there is none yet.
    pub(crate) fn provide(&mut self) -> Result<(), MapError> {
        if self.memory.is_none() {
            self.memory = Some(Mapping::anonymous(COUNT * SCRATCH_BYTES)?);
            self.free = (0..COUNT as u8).collect();
        }
        Ok(())
    }

    pub(crate) fn take(&mut self) -> Option<ScratchId> {
        self.free.pop().map(ScratchId)
    }

    pub(crate) fn give_back(&mut self, scratch: ScratchId) {
        debug_assert!(!self.free.contains(&scratch.0), "{scratch:?} is free already");
        self.free.push(scratch.0);
    }

    /// Its memory.
    pub(crate) fn get(&self, scratch: ScratchId) -> IoBuf {
        let memory = self.memory.as_ref().expect("it was made before a piece was taken");
        let piece = memory.buf(usize::from(scratch.0) * SCRATCH_BYTES, SCRATCH_BYTES);
        piece.expect("pieces lie inside")
    }
}
