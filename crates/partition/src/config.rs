//! What a virtio-blk device says about itself: feature bits and configuration space (virtio 1.3, 5.2.3 and 5.2.4).
//!
//! Fields that belong to a feature which was not offered are `None`, whatever bytes stand there.

use serde::Serialize;

/// Feature bits (virtio 1.3, 5.2.3 and 6; vhost-user for bits 26 and 30).
pub mod feature {
    /// `seg_max` is valid.
    pub const SEG_MAX: u64 = 1 << 2;
    /// The disk cannot be written.
    pub const RO: u64 = 1 << 5;
    /// `blk_size` is valid.
    pub const BLK_SIZE: u64 = 1 << 6;
    /// Flush requests are served.
    pub const FLUSH: u64 = 1 << 9;
    /// Topology fields are valid.
    pub const TOPOLOGY: u64 = 1 << 10;
    /// The cache mode can be changed.
    pub const CONFIG_WCE: u64 = 1 << 11;
    /// More than one queue.
    pub const MQ: u64 = 1 << 12;
    /// Discard requests are served.
    pub const DISCARD: u64 = 1 << 13;
    /// Write-zeroes requests are served.
    pub const WRITE_ZEROES: u64 = 1 << 14;
    /// Indirect descriptors.
    pub const INDIRECT_DESC: u64 = 1 << 28;
    /// `used_event` and `avail_event`.
    pub const EVENT_IDX: u64 = 1 << 29;
    /// vhost-user protocol features can be negotiated.
    pub const PROTOCOL_FEATURES: u64 = 1 << 30;
    /// Virtio 1.0 or later.
    pub const VERSION_1: u64 = 1 << 32;
    /// Buffers are used in the order in which they were made available.
    pub const IN_ORDER: u64 = 1 << 35;

    /// Everything that this client can use. IN_ORDER is not here: descriptors are given back as they complete.
    pub const KNOWN: u64 = SEG_MAX
        | RO
        | BLK_SIZE
        | FLUSH
        | TOPOLOGY
        | CONFIG_WCE
        | MQ
        | DISCARD
        | WRITE_ZEROES
        | INDIRECT_DESC
        | EVENT_IDX
        | PROTOCOL_FEATURES
        | VERSION_1;
}

/// Bytes of configuration space asked for: up to `write_zeroes_may_unmap` and its padding. Servers of all ages answer this
/// length; longer ones are refused by older servers.
pub const CONFIG_BYTES: usize = 60;

/// Limits of discard or write-zeroes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct RangeLimits {
    /// Sectors in one segment.
    pub max_sectors: u32,
    /// Segments in one request.
    pub max_segments: u32,
}

/// The device as its configuration space describes it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BlkConfig {
    /// Size in bytes.
    pub capacity_bytes: u64,
    /// The unit in which the device wants to be addressed; 512 when it does not say.
    pub block_size: u32,
    /// Data segments in one request, if limited.
    pub seg_max: Option<u32>,
    /// Queues, 1 without the MQ feature.
    pub queues: u16,
    /// Whether writes fail.
    pub read_only: bool,
    /// Whether flush requests are served.
    pub flush: bool,
    /// Optimal I/O size in bytes, if known.
    pub optimal_io_size: Option<u64>,
    /// Discard, if served.
    pub discard: Option<RangeLimits>,
    /// Write zeroes, if served.
    pub write_zeroes: Option<RangeLimits>,
}

impl BlkConfig {
    /// Reads `bytes` of configuration space as far as `features` vouch for them. Missing bytes read as zero.
    #[must_use]
    pub fn parse(bytes: &[u8], features: u64) -> Self {
        let has = |bit: u64| features & bit != 0;
        let blk_size = u32_at(bytes, 20);
        let block_size = if has(feature::BLK_SIZE) && blk_size > 0 { blk_size } else { 512 };
        let limits = |bit, at| {
            has(bit).then(|| RangeLimits {
                max_sectors: u32_at(bytes, at),
                max_segments: u32_at(bytes, at + 4),
            })
        };
        let optimal = u64::from(u32_at(bytes, 28)) * u64::from(block_size);
        Self {
            capacity_bytes: u64::from_le_bytes(array_at(bytes, 0)).saturating_mul(512),
            block_size,
            seg_max: has(feature::SEG_MAX).then(|| u32_at(bytes, 12)),
            queues: if has(feature::MQ) {
                u16::from_le_bytes(array_at(bytes, 34)).max(1)
            } else {
                1
            },
            read_only: has(feature::RO),
            flush: has(feature::FLUSH),
            optimal_io_size: (has(feature::TOPOLOGY) && optimal > 0).then_some(optimal),
            discard: limits(feature::DISCARD, 36),
            write_zeroes: limits(feature::WRITE_ZEROES, 48),
        }
    }
}

fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    if let Some(found) = bytes.get(at..at + N) {
        out.copy_from_slice(found);
    }
    out
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_count_only_with_their_feature() {
        let mut bytes = [0u8; CONFIG_BYTES];
        bytes[..8].copy_from_slice(&2048u64.to_le_bytes());
        bytes[12..16].copy_from_slice(&254u32.to_le_bytes());
        bytes[20..24].copy_from_slice(&4096u32.to_le_bytes());
        bytes[34..36].copy_from_slice(&4u16.to_le_bytes());
        bytes[36..40].copy_from_slice(&100u32.to_le_bytes());
        bytes[40..44].copy_from_slice(&3u32.to_le_bytes());
        let bare = BlkConfig::parse(&bytes, 0);
        assert_eq!((bare.capacity_bytes, bare.block_size, bare.queues), (1 << 20, 512, 1));
        assert_eq!((bare.seg_max, bare.discard), (None, None));
        let all = BlkConfig::parse(&bytes, feature::KNOWN);
        assert_eq!((all.block_size, all.queues, all.seg_max), (4096, 4, Some(254)));
        assert_eq!(all.discard, Some(RangeLimits { max_sectors: 100, max_segments: 3 }));
        assert!(all.read_only && all.flush);
    }

    #[test]
    fn a_short_configuration_space_reads_as_zero() {
        let config = BlkConfig::parse(&[8, 0, 0, 0, 0, 0, 0, 0], feature::KNOWN);
        assert_eq!((config.capacity_bytes, config.queues, config.block_size), (4096, 1, 512));
    }
}
