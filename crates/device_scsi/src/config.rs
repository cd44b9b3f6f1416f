//! Features and the configuration space (virtio 1.3, clauses 5.6.3 and 5.6.4).

use super::Sizes;
use super::event::EVENT_BYTES;

/// Device features (clause 5.6.3).
pub mod feature {
    /// A request may have data in both directions.
    pub const INOUT: u64 = 1 << 0;
    /// Logical units that come and go are told as events.
    pub const HOTPLUG: u64 = 1 << 1;
    /// Changed parameters of a logical unit are told as events.
    pub const CHANGE: u64 = 1 << 2;
    /// All that are offered.
    pub const OFFERED: u64 = INOUT | HOTPLUG | CHANGE;
}

/// Bytes of the configuration space.
pub const CONFIG_BYTES: usize = 36;
/// Where `sense_size` is, four bytes; a driver may write it.
pub const SENSE_SIZE_OFFSET: usize = 20;
/// Where `cdb_size` is, four bytes; a driver may write it.
pub const CDB_SIZE_OFFSET: usize = 24;
/// Virtqueues besides the request queues: control and event.
pub const OTHER_QUEUES: u16 = 2;

/// What an adapter offers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offer {
    /// Request queues.
    pub queues: u16,
    /// Most data segments of one command, in each direction.
    pub seg_max: u16,
    /// Longest transfer of a command that is recommended, in sectors of 512 bytes.
    pub max_sectors: u32,
    /// Most commands at one logical unit at once.
    pub cmd_per_lun: u32,
    /// Highest target that a driver looks for.
    pub max_target: u8,
    /// Highest logical unit number that a driver looks for.
    pub max_lun: u16,
}

/// The configuration space now.
#[must_use]
pub fn space(offer: &Offer, sizes: &Sizes) -> [u8; CONFIG_BYTES] {
    let mut space = [0; CONFIG_BYTES];
    let words = [
        u32::from(offer.queues),
        u32::from(offer.seg_max),
        offer.max_sectors,
        offer.cmd_per_lun,
        EVENT_BYTES as u32,
        u32::from(sizes.sense()),
        u32::from(sizes.cdb()),
        // max_channel is 0 and shares its word with max_target.
        u32::from(offer.max_target) << 16,
        u32::from(offer.max_lun),
    ];
    for (place, word) in space.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    space
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clause_5_6_4_layout() {
        let offer = Offer {
            queues: 8,
            seg_max: 254,
            max_sectors: 8192,
            cmd_per_lun: 64,
            max_target: 255,
            max_lun: 16383,
        };
        let space = space(&offer, &Sizes::default());
        let word = |at: usize| u32::from_le_bytes(space[at..at + 4].try_into().unwrap());
        assert_eq!([word(0), word(4), word(8), word(12), word(16)], [8, 254, 8192, 64, 16]);
        assert_eq!((word(SENSE_SIZE_OFFSET), word(CDB_SIZE_OFFSET)), (96, 32));
        assert_eq!((space[28..32].to_vec(), word(32)), (vec![0, 0, 255, 0], 16383));
    }
}
