//! The checksums of the data of a chunk of an LU, which are in a chunk of the space that the LU has for them.

use super::{BLOCK_BYTES, Form, Refused, Uuid, get, layout, put, up_to_sector};

layout! {
    /// The checksums of a chunk.
    SUMS:
    SUMS_LU 48 + 4 "number of the LU";
    SUMS_VCHUNK 52 + 4 "chunk of the LU";
    SUMS_RESERVED 56 + 8 "0";
    SUM 64 + 4 "first of 16,384 numbers of 4 bytes: the CRC32C of each 4 KiB of the chunk, of blocks that are written";
}
const FORM: Form = Form { magic: *b"TLPOOLCS", what: "record of checksums" };
/// What one checksum is of.
pub const SUM_OF_BYTES: u64 = 4096;
/// Checksums of a chunk.
pub const SUMS_OF_CHUNK: usize = (super::CHUNK_BYTES / SUM_OF_BYTES) as usize;
const LENGTH: usize = SUM.at + SUM.size * SUMS_OF_CHUNK;
/// What those of a chunk take.
pub const SUMS_BYTES: usize = LENGTH.next_multiple_of(super::SECTOR_BYTES);
/// How far those of one chunk are from those of the next.
pub const SUMS_APART: u64 = 2 * BLOCK_BYTES;
/// Chunks of an LU of which a chunk has the checksums.
pub const SUMS_IN_CHUNK: u32 = (super::CHUNK_BYTES / SUMS_APART) as u32;

/// The record of the checksums of a chunk of an LU.
pub fn encode_sums(pool: Uuid, (lu, vchunk): (u32, u32), sums: &[u32]) -> Vec<u8> {
    let mut block = vec![0; up_to_sector(LENGTH)];
    put(&mut block, SUMS_LU, lu.into());
    put(&mut block, SUMS_VCHUNK, vchunk.into());
    for (place, sum) in block[SUM.at..LENGTH].chunks_exact_mut(SUM.size).zip(sums) {
        place.copy_from_slice(&sum.to_le_bytes());
    }
    FORM.seal(&mut block, pool, LENGTH);
    block
}

/// The checksums of that chunk, if that is their record.
///
/// # Errors
///
/// It is damaged, or something else.
pub fn decode_sums(
    block: &[u8],
    pool: Uuid,
    (lu, vchunk): (u32, u32),
) -> Result<Vec<u32>, Refused> {
    let block = FORM.open(block, LENGTH, Some(pool))?;
    FORM.placed(block, SUMS_LU, lu.into())?;
    FORM.placed(block, SUMS_VCHUNK, vchunk.into())?;
    if block.len() != LENGTH {
        return Err(Refused::Damaged(FORM.what));
    }
    if get(block, SUMS_RESERVED) != 0 {
        return FORM.value(SUMS_RESERVED, get(block, SUMS_RESERVED));
    }
    let sum = |place: &[u8]| Some(u32::from_le_bytes(place.try_into().ok()?));
    Ok(block[SUM.at..].chunks_exact(SUM.size).filter_map(sum).collect())
}
