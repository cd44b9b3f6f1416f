//! REPORT LUNS, REPORT SUPPORTED OPERATION CODES and REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS.

use crate::nexus::{Lun, REPORT_LUNS_LUN};
use crate::sense::Sense;
use crate::table::{COMMANDS, Spec, rows};
use crate::task::exists;
use crate::unit::LogicalUnit;
use crate::wire::{be16, clip16, len32};

/// The whole answer to REPORT LUNS (SPC-4, 6.33).
pub(crate) fn luns(select: u8, luns: &[Lun]) -> Result<Vec<u8>, Sense> {
    let (units, well_known) = match select {
        0 => (luns, false),
        1 => (&[][..], true),
        2 => (luns, true),
        _ => return Err(Sense::cdb(2)),
    };
    let count = units.len() + usize::from(well_known);
    let mut bytes = Vec::with_capacity(8 + 8 * count);
    bytes.extend(len32(8 * count).to_be_bytes());
    bytes.extend([0; 4]);
    bytes.extend(units.iter().flat_map(|lun| lun.encode()));
    if well_known {
        bytes.extend(REPORT_LUNS_LUN);
    }
    Ok(bytes)
}

/// A command timeouts descriptor (SPC-4, 6.34.4) that gives no time: how long a command takes is the volume's business.
const NO_TIMEOUT: [u8; 12] = [0, 0x0a, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// The whole answer to REPORT SUPPORTED OPERATION CODES (SPC-4, 6.34).
pub(crate) fn opcodes(unit: &LogicalUnit, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let timeouts = cdb[2] & 0x80 != 0;
    let (opcode, action) = (cdb[3], be16(cdb, 4));
    let found: Vec<&Spec> = rows(opcode).iter().filter(|row| exists(unit, row.needs)).collect();
    let has_actions = found.iter().any(|row| row.action.is_some());
    let with_action = || found.iter().find(|row| row.action.map(u16::from) == Some(action));
    match cdb[2] & 0x07 {
        0 => Ok(all(unit, timeouts)),
        1 if has_actions => Err(Sense::cdb_bit(2, 2)),
        1 => Ok(one(found.first().copied(), timeouts)),
        2 if !has_actions && !found.is_empty() => Err(Sense::cdb_bit(2, 2)),
        2 => Ok(one(with_action().copied(), timeouts)),
        3 if has_actions => Ok(one(with_action().copied(), timeouts)),
        3 => Ok(one(found.first().copied().filter(|_| action == 0), timeouts)),
        _ => Err(Sense::cdb_bit(2, 2)),
    }
}

/// All commands (6.34.2).
fn all(unit: &LogicalUnit, timeouts: bool) -> Vec<u8> {
    let mut list = Vec::new();
    for row in COMMANDS.iter().filter(|row| exists(unit, row.needs)) {
        // CTDP, SERVACTV.
        let flags = u8::from(timeouts) << 1 | u8::from(row.action.is_some());
        let [high, low] = clip16(row.usage.len() as u64).to_be_bytes();
        list.extend([row.opcode, 0, 0, row.action.unwrap_or(0), 0, flags, high, low]);
        if timeouts {
            list.extend(NO_TIMEOUT);
        }
    }
    let mut bytes = len32(list.len()).to_be_bytes().to_vec();
    bytes.extend(list);
    bytes
}

/// One command (6.34.3).
fn one(row: Option<&Spec>, timeouts: bool) -> Vec<u8> {
    let Some(row) = row else {
        // SUPPORT 001b: not supported.
        return vec![0, 0x01, 0, 0];
    };
    // CTDP; SUPPORT 011b: as a standard says.
    let flags = u8::from(timeouts) << 7 | 0x03;
    let [high, low] = clip16(row.usage.len() as u64).to_be_bytes();
    let mut bytes = vec![0, flags, high, low];
    bytes.extend(row.usage);
    if timeouts {
        bytes.extend(NO_TIMEOUT);
    }
    bytes
}

/// The whole answer to REPORT SUPPORTED TASK MANAGEMENT FUNCTIONS (SPC-4, 6.35): those of [`crate::management::Function`].
pub(crate) fn functions(extended: bool) -> Vec<u8> {
    // ATS, ATSS, CTSS, LURS, QTS, TRS; QTSS, ITNRS.
    let mut bytes = vec![0xde, 0x03, 0, 0];
    if extended {
        bytes.resize(16, 0);
        bytes[3] = 0x0c;
    }
    bytes
}
