//! What a verified block holds: in every 512-byte sector a header that names the sector, the generation of the write
//! and the run, and a checksum over the whole sector.
//!
//! ```text
//! 0   u64  magic ^ seed of the run
//! 8   u64  sector number on the disk
//! 16  u64  generation: how many times this block has been written, from 1
//! 24  u64  checksum over bytes 0..24 and 32..512
//! 32       bytes that follow from seed, sector and generation
//! ```
//!
//! A header in each sector, not one per block, shows a torn write (a sector of an older generation) and names the sector that
//! is wrong. The payload is different in every sector and generation, so that a sector delivered to the wrong place
//! or an old one cannot pass.

use memory::random::mix;

/// Bytes of a sector; what virtio-blk counts in (virtio 1.3, 5.2.6).
pub const SECTOR: usize = 512;
const MAGIC: u64 = 0x5452_4b4c_4e45_0001;
const WORDS: usize = SECTOR / 8;
const HEADER_WORDS: usize = 4;

/// What was found in a sector that is not what was expected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Mismatch {
    /// No header of this program, or one of another run.
    #[error("no block of this run there (first bytes {found:016x})")]
    Foreign {
        /// The first eight bytes found.
        found: u64,
    },
    /// Something where nobody has written.
    #[error("not zeros, and nothing was written there")]
    NotZero,
    /// The header names another sector: data was written or read at the wrong place.
    #[error("holds the data of sector {found}")]
    WrongSector {
        /// The sector that the header names.
        found: u64,
    },
    /// The content does not fit the checksum.
    #[error("checksum wrong in generation {generation}")]
    Checksum {
        /// The generation that the header names.
        generation: u64,
    },
    /// A whole sector, of a generation that cannot be there: an acknowledged write was lost, or a later one undone.
    #[error("generation {found} where {low} to {high} was possible")]
    Generation {
        /// The generation found.
        found: u64,
        /// The last generation acknowledged.
        low: u64,
        /// The last generation submitted.
        high: u64,
    },
}

#[inline]
fn word(bytes: &[u8], index: usize) -> u64 {
    let mut out = [0; 8];
    out.copy_from_slice(&bytes[index * 8..index * 8 + 8]);
    u64::from_le_bytes(out)
}

/// Multiply-and-rotate over the words; every bit of the sector reaches every bit of the result through `mix`.
fn checksum(sector: &[u8]) -> u64 {
    let mut sum = 0x243f_6a88_85a3_08d3u64;
    for index in 0..WORDS {
        if index != 3 {
            sum = (sum ^ word(sector, index)).rotate_left(23).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        }
    }
    mix(sum)
}

/// Fills `block` (a multiple of 512 bytes) with the pattern of `generation`, beginning at `sector` on the disk.
pub fn fill(block: &mut [u8], seed: u64, sector: u64, generation: u64) {
    for (index, chunk) in block.chunks_exact_mut(SECTOR).enumerate() {
        let sector = sector + index as u64;
        let mut state = mix(seed ^ mix(sector ^ generation.rotate_left(32)));
        chunk[..8].copy_from_slice(&(MAGIC ^ seed).to_le_bytes());
        chunk[8..16].copy_from_slice(&sector.to_le_bytes());
        chunk[16..24].copy_from_slice(&generation.to_le_bytes());
        for index in HEADER_WORDS..WORDS {
            state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(0x1405_7b7e_f767_814f);
            chunk[index * 8..index * 8 + 8].copy_from_slice(&(state ^ (state >> 29)).to_le_bytes());
        }
        let sum = checksum(chunk);
        chunk[24..32].copy_from_slice(&sum.to_le_bytes());
    }
}

/// Checks a block read at `sector`: every sector whole, and all of one generation between `low` (the last acknowledged) and
/// `high` (the last submitted). Where a write failed or its outcome is unknown (`low < high`), sectors may differ: a failed
/// write may have changed any part of the block (virtio 1.3, 5.2.6.2 promises nothing about it).
///
/// # Errors
/// The first sector that is wrong, by its number, and how.
pub fn check(
    block: &[u8],
    seed: u64,
    sector: u64,
    low: u64,
    high: u64,
) -> Result<(), (u64, Mismatch)> {
    for (index, chunk) in block.chunks_exact(SECTOR).enumerate() {
        let sector = sector + index as u64;
        let generation = check_sector(chunk, seed, sector).map_err(|why| (sector, why))?;
        if generation < low || generation > high {
            return Err((sector, Mismatch::Generation { found: generation, low, high }));
        }
    }
    Ok(())
}

fn check_sector(chunk: &[u8], seed: u64, sector: u64) -> Result<u64, Mismatch> {
    if word(chunk, 0) != MAGIC ^ seed {
        return Err(Mismatch::Foreign { found: word(chunk, 0) });
    }
    let generation = word(chunk, 2);
    if word(chunk, 3) != checksum(chunk) {
        return Err(Mismatch::Checksum { generation });
    }
    if word(chunk, 1) != sector {
        return Err(Mismatch::WrongSector { found: word(chunk, 1) });
    }
    Ok(generation)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(sector: u64, generation: u64) -> Vec<u8> {
        let mut block = vec![0; 4096];
        fill(&mut block, 42, sector, generation);
        block
    }

    #[test]
    fn what_was_filled_is_accepted() {
        assert_eq!(check(&block(8, 3), 42, 8, 3, 3), Ok(()));
        assert_eq!(check(&block(8, 3), 42, 8, 2, 4), Ok(()));
    }

    #[test]
    fn every_single_flipped_bit_is_found() {
        let good = block(16, 1);
        for bit in (0..good.len() * 8).step_by(7) {
            let mut bad = good.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            let (sector, _) = check(&bad, 42, 16, 1, 1).expect_err("a flipped bit passed");
            assert_eq!(sector, 16 + (bit / 8 / SECTOR) as u64);
        }
    }

    #[test]
    fn old_foreign_misplaced_and_torn_blocks_are_told_apart() {
        assert!(matches!(
            check(&block(8, 2), 42, 8, 3, 3),
            Err((8, Mismatch::Generation { found: 2, .. }))
        ));
        assert!(matches!(check(&block(8, 2), 43, 8, 2, 2), Err((8, Mismatch::Foreign { .. }))));
        assert!(matches!(
            check(&vec![0; 4096], 42, 8, 2, 2),
            Err((8, Mismatch::Foreign { found: 0 }))
        ));
        assert!(matches!(
            check(&block(8, 2), 42, 16, 2, 2),
            Err((16, Mismatch::WrongSector { found: 8 }))
        ));
        let mut torn = block(8, 3);
        torn[2048..].copy_from_slice(&block(8, 2)[2048..]);
        assert!(matches!(
            check(&torn, 42, 8, 3, 3),
            Err((12, Mismatch::Generation { found: 2, .. }))
        ));
        assert_eq!(check(&torn, 42, 8, 2, 3), Ok(()));
    }
}
