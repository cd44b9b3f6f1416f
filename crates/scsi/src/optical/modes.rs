//! Mode pages of optical drives (MMC-6, 7.2): read/write error recovery (01), CD audio control (0E), power condition (1A), timeouts
//! (1D), and capabilities and mechanical status (2A). Clients look at them and change nothing.

use crate::unit::LogicalUnit;
use crate::wire::put;

const ERROR_RECOVERY: u8 = 0x01;
const AUDIO: u8 = 0x0e;
const POWER: u8 = 0x1a;
const TIMEOUTS: u8 = 0x1d;
const CAPABILITIES: u8 = 0x2a;

/// The pages, ascending.
pub(crate) const MODE_PAGES: [u8; 5] = [ERROR_RECOVERY, AUDIO, POWER, TIMEOUTS, CAPABILITIES];
/// All of them together.
pub(crate) const MODE_BYTES: usize = 12 + 16 + 12 + 12 + 32;

/// Kilobytes a second of a CD and of a DVD at their first drives' speed, times what is usual. Nothing depends on it.
const SPEED: u16 = 50 * 176;

/// A page with its header.
pub(crate) fn mode_page(unit: &LogicalUnit, page: u8, changeable: bool) -> Vec<u8> {
    let len: u8 = match page {
        AUDIO => 16,
        CAPABILITIES => 32,
        _ => 12,
    };
    let mut bytes = vec![0; len.into()];
    put(&mut bytes, 0, &[page, len - 2]);
    if changeable {
        return bytes;
    }
    match page {
        AUDIO => {
            // IMMED; two channels at full volume, if there were sound.
            bytes[2] = 0x04;
            put(&mut bytes, 8, &[0x01, 0xff, 0x02, 0xff]);
        }
        CAPABILITIES => {
            // Reads CD-R, CD-RW and DVD-ROM, and writes nothing.
            bytes[2] = 0x0b;
            // A tray, ejects, no jumper, can be locked, is locked.
            bytes[6] = 0x2d | u8::from(unit.removal_prevented()) << 1;
            put(&mut bytes, 8, &SPEED.to_be_bytes());
            put(&mut bytes, 14, &SPEED.to_be_bytes());
        }
        _ => {}
    }
    bytes
}
