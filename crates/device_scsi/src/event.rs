//! Events (virtio 1.3, clause 5.6.6.3).

use scsi::Lun;

use super::Place;

/// Bytes of an event.
pub const EVENT_BYTES: usize = 16;
/// Set in the first word when events were lost for want of buffers.
const MISSED: u32 = 0x8000_0000;

/// What happened to a logical unit as a whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u32)]
pub enum Reset {
    /// It was reset and is still there.
    Hard = 0,
    /// It has appeared. Only with HOTPLUG.
    Rescan = 1,
    /// It is gone. Only with HOTPLUG.
    Removed = 2,
}

fn event(kind: u32, address: [u8; 8], reason: u32) -> [u8; EVENT_BYTES] {
    let mut bytes = [0; EVENT_BYTES];
    bytes[..4].copy_from_slice(&kind.to_le_bytes());
    bytes[4..12].copy_from_slice(&address);
    bytes[12..].copy_from_slice(&reason.to_le_bytes());
    bytes
}

/// Nothing has happened: with [`missed`], that something was lost.
#[must_use]
pub fn none() -> [u8; EVENT_BYTES] {
    event(0, [0; 8], 0)
}

/// TRANSPORT_RESET.
#[must_use]
pub fn reset(target: u8, lun: Lun, reason: Reset) -> [u8; EVENT_BYTES] {
    event(1, Place::encode(target, lun), reason as u32)
}

/// PARAM_CHANGE, with an additional sense code and its qualifier as one number: 0x2a09 is CAPACITY DATA HAS CHANGED. Not for
/// optical drives.
#[must_use]
pub fn changed(target: u8, lun: Lun, code: u16) -> [u8; EVENT_BYTES] {
    event(3, Place::encode(target, lun), u32::from(code.swap_bytes()))
}

/// The event, saying that others before it were lost.
#[must_use]
pub fn missed(mut event: [u8; EVENT_BYTES]) -> [u8; EVENT_BYTES] {
    event[3] |= MISSED.to_le_bytes()[3];
    event
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clause_5_6_6_3_events() {
        let lun = Lun::new(0x102).unwrap();
        let bytes = reset(7, lun, Reset::Removed);
        assert_eq!(bytes, [1, 0, 0, 0, 1, 7, 0x41, 2, 0, 0, 0, 0, 2, 0, 0, 0]);
        // ASC in bits 0 to 7, the qualifier in bits 8 to 15.
        let bytes = changed(7, Lun::new(1).unwrap(), 0x2a09);
        assert_eq!(bytes, [3, 0, 0, 0, 1, 7, 0, 1, 0, 0, 0, 0, 0x2a, 9, 0, 0]);
        assert_eq!(missed(none()), [0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        assert_eq!(missed(bytes)[..4], [3, 0, 0, 0x80]);
    }
}
