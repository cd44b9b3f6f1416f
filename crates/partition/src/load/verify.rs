//! What a queue knows about its own blocks: which generation of each was last acknowledged, and what is under way.
//!
//! Every block belongs to one queue, so that this knowledge is exact and needs no sharing. A block has at most one write
//! under way and no read during it: virtio-blk promises nothing about overlapping requests, so that a mixture would prove nothing.

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
    first_sector: u64,
    block_bytes: usize,
    blocks: Box<[Block]>,
    scratch: Box<[u8]>,
    pub(super) checked: u64,
}

impl Verifier {
    pub(super) fn new(seed: u64, first_byte: u64, blocks: u64, block_bytes: u32) -> Self {
        let blocks = usize::try_from(blocks).expect("the plan limits the number of blocks");
        Self {
            seed,
            first_sector: first_byte / SECTOR as u64,
            block_bytes: block_bytes as usize,
            blocks: vec![Block::default(); blocks].into_boxed_slice(),
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

    /// Whether the block has ever been written, as far as its header can say.
    pub(super) fn known(&self, block: u64) -> bool {
        self.blocks[block as usize].high > 0
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
        if !good || low == 0 {
            // Never acknowledged: it may hold anything.
            return Ok(());
        }
        load(&mut self.scratch);
        self.checked += 1;
        pattern::check(&self.scratch, self.seed, self.sector(block), low, high)
            .map_err(|(sector, mismatch)| Corruption { sector, mismatch })
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
        let mut verifier = Verifier::new(1, 1 << 20, 8, 4096);
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
        let mut verifier = Verifier::new(1, 0, 8, 4096);
        let first = written(&mut verifier, 0);
        let second = verifier.begin_write(0).expect("free").to_vec();
        verifier.end_write(0, false);
        assert_eq!(read(&mut verifier, 0, &first), Ok(()));
        assert_eq!(read(&mut verifier, 0, &second), Ok(()));
    }

    #[test]
    fn reads_and_writes_of_a_block_exclude_each_other() {
        let mut verifier = Verifier::new(1, 0, 2, 512);
        assert!(verifier.begin_write(0).is_some());
        assert!(!verifier.begin_read(0) && verifier.begin_write(0).is_none());
        verifier.end_write(0, true);
        assert!(verifier.begin_read(0) && verifier.begin_read(0));
        assert!(verifier.begin_write(0).is_none());
        assert!(verifier.known(0) && !verifier.known(1));
    }
}
