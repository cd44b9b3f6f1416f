//! Features and the configuration space (virtio 1.3, clauses 5.2.3 and 5.2.4).

use block::Geometry;

use super::{RANGE_SECTORS_MAX, SECTOR, Shape};

/// Device features (clause 5.2.3).
pub mod feature {
    /// `seg_max` is valid.
    pub const SEG_MAX: u64 = 1 << 2;
    /// The disk is read-only.
    pub const RO: u64 = 1 << 5;
    /// `blk_size` is valid.
    pub const BLK_SIZE: u64 = 1 << 6;
    /// FLUSH is served.
    pub const FLUSH: u64 = 1 << 9;
    /// The topology is valid.
    pub const TOPOLOGY: u64 = 1 << 10;
    /// The client may switch the write cache.
    pub const CONFIG_WCE: u64 = 1 << 11;
    /// More than one queue.
    pub const MQ: u64 = 1 << 12;
    /// DISCARD is served.
    pub const DISCARD: u64 = 1 << 13;
    /// WRITE_ZEROES is served.
    pub const WRITE_ZEROES: u64 = 1 << 14;
}

/// Bytes of the configuration space up to and including the write-zeroes fields; what lies beyond reads as zero.
pub const CONFIG_BYTES: usize = 60;
/// Where `writeback` is: the only field that a driver may write.
pub const WRITEBACK_OFFSET: usize = 32;

/// What an adapter offers beyond its disk's shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Most virtqueues.
    pub queues: u16,
    /// Most data segments in one request.
    pub seg_max: u16,
    /// Whether the client sees a write cache, flushes it and may switch it off. Without, every write is durable when it is
    /// answered and the client needs no flush.
    pub write_cache: bool,
}

/// The device features that an adapter offers.
#[must_use]
pub fn features(shape: &Shape, offer: &Offer) -> u64 {
    let mut features = feature::SEG_MAX | feature::BLK_SIZE | feature::TOPOLOGY | feature::MQ;
    let mut add = |condition: bool, bit: u64| features |= if condition { bit } else { 0 };
    add(shape.read_only, feature::RO);
    add(offer.write_cache, feature::FLUSH | feature::CONFIG_WCE);
    add(shape.discard, feature::DISCARD);
    add(shape.write_zeroes, feature::WRITE_ZEROES);
    features
}

/// The configuration space now.
#[must_use]
pub fn space(shape: &Shape, geometry: &Geometry, offer: &Offer) -> [u8; CONFIG_BYTES] {
    let mut space = [0; CONFIG_BYTES];
    let mut put =
        |offset: usize, bytes: &[u8]| space[offset..offset + bytes.len()].copy_from_slice(bytes);
    let block = u64::from(shape.block_size);
    let physical = geometry.physical_block_size.max(shape.block_size) / shape.block_size;
    let optimal = u32::try_from(u64::from(geometry.optimal_io_size) / block).unwrap_or(0);
    let alignment_sectors = u32::try_from(block / SECTOR).unwrap_or(1);

    put(0, &(shape.bytes() / SECTOR).to_le_bytes());
    put(12, &u32::from(offer.seg_max).to_le_bytes());
    put(20, &shape.block_size.to_le_bytes());
    // Topology (clause 5.2.4): log2 of logical blocks per physical block, then offset, minimum and optimum in logical blocks.
    put(24, &[physical.max(1).ilog2() as u8, 0]);
    put(26, &u16::try_from(physical.max(1)).unwrap_or(1).to_le_bytes());
    put(28, &optimal.to_le_bytes());
    put(WRITEBACK_OFFSET, &[u8::from(!shape.write_through())]);
    put(34, &offer.queues.to_le_bytes());
    if shape.discard {
        put(36, &RANGE_SECTORS_MAX.to_le_bytes());
        put(40, &1_u32.to_le_bytes());
        put(44, &alignment_sectors.to_le_bytes());
    }
    if shape.write_zeroes {
        put(48, &RANGE_SECTORS_MAX.to_le_bytes());
        put(52, &1_u32.to_le_bytes());
        put(56, &[1]);
    }
    space
}

#[cfg(test)]
mod tests;
