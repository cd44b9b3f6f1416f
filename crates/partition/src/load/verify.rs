//! What a queue knows about its own blocks: which generation of each was last acknowledged, and what is under way.
//!
//! Every block belongs to one queue, so that this knowledge is exact and needs no sharing. A block has at most one write
//! under way and no read during it: virtio-blk promises nothing about overlapping requests, so that a mixture would prove nothing.

use super::options::Holds;
use crate::pattern::{self, Mismatch, SECTOR};

#[derive(Clone, Copy, Default)]
struct Block {
    /// The last generation acknowledged; 0: never.
    low: u32,
    /// The last generation submitted. Above `low` while a write is under way and after one that failed.
    high: u32,
    readers: u16,
    writing: bool,
}

/// A block that does not hold what it must.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("sector {sector}: {mismatch}")]
pub struct Corruption {
    /// The first sector that is wrong.
    pub sector: u64,
    /// How.
    pub mismatch: Mismatch,
}

/// The blocks of one queue.
pub(super) struct Verifier {
    seed: u64,
    /// Blocks that nobody wrote are zeros.
    zeros: bool,
    first_sector: u64,
    block_bytes: usize,
    blocks: Box<[Block]>,
    scratch: Box<[u8]>,
    pub(super) checked: u64,
}

impl Verifier {
    pub(super) fn new(
        (seed, holds): (u64, Holds),
        first_byte: u64,
        blocks: u64,
        block_bytes: u32,
    ) -> Self {
        let blocks = usize::try_from(blocks).expect("the plan limits the number of blocks");
        let written = u32::from(holds == Holds::Written);
        let begins = Block { low: written, high: written, ..Block::default() };
        Self {
            seed,
            zeros: holds == Holds::Zeros,
            first_sector: first_byte / SECTOR as u64,
            block_bytes: block_bytes as usize,
            blocks: vec![begins; blocks].into_boxed_slice(),
            scratch: vec![0; block_bytes as usize].into_boxed_slice(),
            checked: 0,
        }
    }

    fn sector(&self, block: u64) -> u64 {
        self.first_sector + block * (self.block_bytes / SECTOR) as u64
    }

    // Blocks are below `blocks.len()`: callers choose them from the plan's range.
    fn at(&mut self, block: u64) -> &mut Block {
        &mut self.blocks[block as usize]
    }

    /// Whether it is known what the block holds, as far as its header can say.
    pub(super) fn known(&self, block: u64) -> bool {
        self.zeros || self.blocks[block as usize].high > 0
    }

    /// Takes the block for a write and returns what to write; none if it is busy.
    pub(super) fn begin_write(&mut self, block: u64) -> Option<&[u8]> {
        let (seed, sector) = (self.seed, self.sector(block));
        let state = self.at(block);
        if state.writing || state.readers > 0 {
            return None;
        }
        state.writing = true;
        state.high += 1;
        let generation = u64::from(state.high);
        pattern::fill(&mut self.scratch, seed, sector, generation);
        Some(&self.scratch)
    }

    /// The write ended. A failed one may or may not have changed the block.
    pub(super) fn end_write(&mut self, block: u64, good: bool) {
        let state = self.at(block);
        debug_assert!(state.writing);
        state.writing = false;
        if good {
            state.low = state.high;
        }
    }

    /// Takes the block for a read; false if it is being written.
    pub(super) fn begin_read(&mut self, block: u64) -> bool {
        let state = self.at(block);
        let free = !state.writing;
        state.readers += u16::from(free);
        free
    }

    /// The read ended; when `good`, `load` puts what it read into the slice that it is given.
    pub(super) fn end_read(
        &mut self,
        block: u64,
        good: bool,
        load: impl FnOnce(&mut [u8]),
    ) -> Result<(), Corruption> {
        let state = self.at(block);
        debug_assert!(state.readers > 0);
        state.readers -= 1;
        let (low, high) = (u64::from(state.low), u64::from(state.high));
        let untouched = self.zeros && high == 0;
        if !good || (low == 0 && !untouched) {
            // Never acknowledged: it may hold anything.
            return Ok(());
        }
        load(&mut self.scratch);
        self.checked += 1;
        if untouched {
            return self.check_zeros(block);
        }
        pattern::check(&self.scratch, self.seed, self.sector(block), low, high)
            .map_err(|(sector, mismatch)| Corruption { sector, mismatch })
    }

    fn check_zeros(&self, block: u64) -> Result<(), Corruption> {
        let Some(at) = self.scratch.iter().position(|byte| *byte != 0) else { return Ok(()) };
        let sector = self.sector(block) + (at / SECTOR) as u64;
        Err(Corruption { sector, mismatch: Mismatch::NotZero })
    }

    /// Blocks in all.
    pub(super) fn len(&self) -> u64 {
        self.blocks.len() as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(verifier: &mut Verifier, block: u64) -> Vec<u8> {
        let bytes = verifier.begin_write(block).expect("free").to_vec();
        verifier.end_write(block, true);
        bytes
    }

    fn read(verifier: &mut Verifier, block: u64, bytes: &[u8]) -> Result<(), Corruption> {
        assert!(verifier.begin_read(block));
        verifier.end_read(block, true, |scratch| scratch.copy_from_slice(bytes))
    }

    #[test]
    fn the_last_acknowledged_write_is_the_only_one_accepted() {
        let mut verifier = Verifier::new((1, Holds::Anything), 1 << 20, 8, 4096);
        let first = written(&mut verifier, 3);
        assert_eq!(read(&mut verifier, 3, &first), Ok(()));
        let second = written(&mut verifier, 3);
        assert_eq!(read(&mut verifier, 3, &second), Ok(()));
        let error = read(&mut verifier, 3, &first).expect_err("an undone write passed");
        assert_eq!(error.sector, 2048 + 24);
        assert!(matches!(error.mismatch, Mismatch::Generation { found: 1, low: 2, high: 2 }));
        assert_eq!(verifier.checked, 3);
    }

    #[test]
    fn after_a_failed_write_both_outcomes_are_accepted() {
        let mut verifier = Verifier::new((1, Holds::Anything), 0, 8, 4096);
        let first = written(&mut verifier, 0);
        let second = verifier.begin_write(0).expect("free").to_vec();
        verifier.end_write(0, false);
        assert_eq!(read(&mut verifier, 0, &first), Ok(()));
        assert_eq!(read(&mut verifier, 0, &second), Ok(()));
    }

    #[test]
    fn reads_and_writes_of_a_block_exclude_each_other() {
        let mut verifier = Verifier::new((1, Holds::Anything), 0, 2, 512);
        assert!(verifier.begin_write(0).is_some());
        assert!(!verifier.begin_read(0) && verifier.begin_write(0).is_none());
        verifier.end_write(0, true);
        assert!(verifier.begin_read(0) && verifier.begin_read(0));
        assert!(verifier.begin_write(0).is_none());
        assert!(verifier.known(0) && !verifier.known(1));
    }

    #[test]
    fn what_nobody_wrote_is_zeros_where_that_is_known() {
        let mut verifier = Verifier::new((1, Holds::Zeros), 0, 4, 4096);
        assert!(verifier.known(2));
        assert_eq!(read(&mut verifier, 2, &[0; 4096]), Ok(()));
        let mut foreign = [0; 4096];
        foreign[1500] = 1;
        let error = read(&mut verifier, 2, &foreign).expect_err("another's data passed");
        assert_eq!((error.sector, error.mismatch), (16 + 2, Mismatch::NotZero));
        let own = written(&mut verifier, 2);
        assert_eq!(read(&mut verifier, 2, &own), Ok(()));
        assert!(read(&mut verifier, 2, &[0; 4096]).is_err(), "it was written");
        // A failed write may have been done or not.
        assert!(verifier.begin_write(0).is_some());
        verifier.end_write(0, false);
        assert_eq!(read(&mut verifier, 0, &[0; 4096]), Ok(()));
        assert_eq!(verifier.checked, 4);
    }

    #[test]
    fn what_an_earlier_run_wrote_once_is_known() {
        let first = written(&mut Verifier::new((7, Holds::Anything), 0, 4, 4096), 1);
        let mut verifier = Verifier::new((7, Holds::Written), 0, 4, 4096);
        assert_eq!(read(&mut verifier, 1, &first), Ok(()));
        assert!(read(&mut verifier, 0, &[0; 4096]).is_err(), "it holds nothing");
        assert_ne!(written(&mut verifier, 1), first, "a new generation");
        assert!(read(&mut verifier, 1, &first).is_err());
    }
}
