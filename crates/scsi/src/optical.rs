//! Optical drives (MMC-6): what a CD-ROM or DVD-ROM drive tells of itself and of its medium.
//!
//! A medium is one data track in one complete session; there is no sound, no subchannel, and nothing around the user data of a sector.
//! Up to [`CD_BLOCKS_MAX`] blocks it is a CD-ROM, above a DVD-ROM.

mod modes;

pub(crate) use modes::{MODE_BYTES, MODE_PAGES, mode_page};

use crate::sense::{Sense, code};
use crate::unit::{LogicalUnit, Nexus};
use crate::wire::{be16, be24, be32, clip16, clip32, len32, put};

/// What a CD of 80 minutes holds, at 75 sectors a second.
const CD_BLOCKS_MAX: u64 = 80 * 60 * 75;
/// Sectors of the lead-in, which addresses in minutes, seconds and frames count (MMC-6, 4.2.3.3).
const LEAD_IN: u64 = 150;
/// Where the user data of a DVD begins.
const DVD_FIRST_SECTOR: u32 = 0x03_0000;
/// ADR 1, and CONTROL of a data track that was written in one go.
const DATA_TRACK: u8 = 0x14;
/// The track number of the lead-out.
const LEAD_OUT: u8 = 0xaa;

/// Profiles (MMC-6, 5.3.1).
const CD_ROM: u16 = 0x0008;
const DVD_ROM: u16 = 0x0010;

/// The profile of the medium; `None` if there is none.
fn profile(unit: &LogicalUnit) -> Option<u16> {
    let cd = unit.blocks() <= CD_BLOCKS_MAX;
    unit.medium_loaded().then_some(if cd { CD_ROM } else { DVD_ROM })
}

/// A block's address in four bytes: a number, or minute, second and frame. What does not fit the latter is shown as the last that
/// does.
fn address(block: u64, msf: bool) -> [u8; 4] {
    if !msf {
        return clip32(block).to_be_bytes();
    }
    let frames = block + LEAD_IN;
    match u8::try_from(frames / (60 * 75)) {
        // Below 60 and below 75.
        Ok(minute) => [0, minute, (frames / 75 % 60) as u8, (frames % 75) as u8],
        Err(_) => [0, 0xff, 59, 74],
    }
}

/// With the length of what follows in front, in two bytes.
fn counted(body: &[u8]) -> Vec<u8> {
    let mut bytes = clip16(body.len() as u64).to_be_bytes().to_vec();
    bytes.extend(body);
    bytes
}

/// READ TOC/PMA/ATIP (MMC-6, 6.25).
pub(crate) fn toc(unit: &LogicalUnit, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let msf = cdb[1] & 0x02 != 0;
    // Before MMC the format stood in the control byte; Linux still asks for the sessions that way.
    let format = if cdb[2] & 0x0f == 0 { cdb[9] >> 6 } else { cdb[2] & 0x0f };
    let track = cdb[6];
    let end = unit.blocks();
    let entry = |number: u8, block: u64| {
        let [a, b, c, d] = address(block, msf);
        [0, DATA_TRACK, number, 0, a, b, c, d]
    };
    match format {
        0 => {
            let mut body = vec![1, 1];
            match track {
                0 | 1 => body.extend([entry(1, 0), entry(LEAD_OUT, end)].concat()),
                LEAD_OUT => body.extend(entry(LEAD_OUT, end)),
                _ => return Err(Sense::cdb(6)),
            }
            Ok(counted(&body))
        }
        1 => Ok(counted(&[&[1, 1], &entry(1, 0)[..]].concat())),
        2 if track <= 1 => Ok(counted(&full_toc(end))),
        2 => Err(Sense::cdb(6)),
        _ => Err(Sense::cdb_bit(2, 3)),
    }
}

/// The table as it stands in the lead-in (MMC-6, 6.25.3.4): points A0, A1 and A2, then the track.
fn full_toc(end: u64) -> Vec<u8> {
    let [_, m, s, f] = address(end, true);
    let [_, first_m, first_s, first_f] = address(0, true);
    let mut body = vec![1, 1];
    for (point, at) in [
        (0xa0, [1, 0, 0]),
        (0xa1, [1, 0, 0]),
        (0xa2, [m, s, f]),
        (0x01, [first_m, first_s, first_f]),
    ] {
        body.extend([1, DATA_TRACK, 0, point, 0, 0, 0, 0]);
        body.extend(at);
    }
    body
}

/// A feature descriptor (MMC-6, 5.2.2).
fn feature(code: u16, version: u8, persistent: bool, current: bool, data: &[u8]) -> Vec<u8> {
    let mut bytes = code.to_be_bytes().to_vec();
    let flags = version << 2 | u8::from(persistent) << 1 | u8::from(current);
    // At most eight.
    bytes.extend([flags, data.len() as u8]);
    bytes.extend(data);
    bytes
}

/// Number, whether it is current, and descriptor of each feature, ascending: what both profiles ask for (MMC-6, 5.4.3 and 5.4.8).
fn features(current: Option<u16>) -> Vec<(u16, bool, Vec<u8>)> {
    let (cd, dvd) = (current == Some(CD_ROM), current == Some(DVD_ROM));
    let profiles = [DVD_ROM, CD_ROM].map(|each| {
        let [high, low] = each.to_be_bytes();
        [high, low, u8::from(current == Some(each)), 0]
    });
    let readable = [0, 0, 0x08, 0, 0, if dvd { 0x10 } else { 1 }, 0x01, 0];
    [
        // Profile list.
        (0x0000, 0, true, true, &profiles.concat()[..]),
        // Core: the SCSI family of interfaces; DBE.
        (0x0001, 2, true, true, &[0, 0, 0, 1, 0x01, 0, 0, 0]),
        // Morphing: asked for, not notified.
        (0x0002, 1, true, true, &[0, 0, 0, 0]),
        // Removable medium: a tray that loads and ejects, no jumper, a lock.
        (0x0003, 2, true, true, &[0x3d, 0, 0, 0]),
        // Random readable: bytes of a block, blocks of an error correction block, mode page 01.
        (0x0010, 0, false, cd || dvd, &readable),
        // CD read: no C2, no CD-Text.
        (0x001e, 2, false, cd, &[0, 0, 0, 0]),
        // DVD read.
        (0x001f, 1, false, dvd, &[0, 0, 0, 0]),
        // Power management, timeouts.
        (0x0100, 0, true, true, &[]),
        (0x0105, 0, true, true, &[]),
    ]
    .into_iter()
    .map(|(code, version, persistent, is_current, data)| {
        (code, is_current, feature(code, version, persistent, is_current, data))
    })
    .collect()
}

/// GET CONFIGURATION (MMC-6, 6.5).
pub(crate) fn configuration(unit: &LogicalUnit, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let (kind, start) = (cdb[1] & 0x03, be16(cdb, 2));
    let current = profile(unit);
    let wanted = |code: u16, is_current: bool| match kind {
        0 => code >= start,
        1 => code >= start && is_current,
        _ => code == start,
    };
    if kind == 3 {
        return Err(Sense::cdb_bit(1, 1));
    }
    let chosen = features(current).into_iter().filter(|(code, is, _)| wanted(*code, *is));
    let list: Vec<u8> = chosen.flat_map(|(_, _, descriptor)| descriptor).collect();
    // Data length, without itself.
    let mut bytes = len32(4 + list.len()).to_be_bytes().to_vec();
    bytes.extend([0, 0]);
    bytes.extend(current.unwrap_or(0).to_be_bytes());
    bytes.extend(list);
    Ok(bytes)
}

/// Notification classes (MMC-6, table 280).
const OPERATIONAL_CHANGE: u8 = 1;
const POWER: u8 = 2;
const MEDIA: u8 = 4;
const BUSY: u8 = 6;
const CLASSES: u8 = 1 << OPERATIONAL_CHANGE | 1 << POWER | 1 << MEDIA | 1 << BUSY;

/// GET EVENT STATUS NOTIFICATION (MMC-6, 6.6). An event that there was no room for is not lost.
pub(crate) fn event_status(nexus: &Nexus, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    if cdb[1] & 0x01 == 0 {
        // Asynchronous operation.
        return Err(Sense::cdb_bit(1, 0));
    }
    let asked = cdb[4] & CLASSES;
    if asked == 0 {
        // NEA: nothing of what was asked for.
        return Ok(vec![0, 2, 0x80, CLASSES]);
    }
    let has_room = be16(cdb, 7) > 4;
    let unit = nexus.unit();
    let event = if asked & 1 << MEDIA != 0 && has_room { nexus.take_media_event() } else { None };
    // The first class in which something happened, or the first that was asked for.
    let class = if event.is_some() { MEDIA } else { asked.trailing_zeros() as u8 };
    let descriptor = match class {
        // The drive is awake.
        POWER => [0, 1, 0, 0],
        MEDIA => {
            let (present, open) = (unit.medium_loaded(), unit.tray_open());
            let code = event.map_or(0, |event| event as u8);
            [code, u8::from(present) << 1 | u8::from(open), 0, 0]
        }
        _ => [0; 4],
    };
    Ok(counted(&[&[class, CLASSES], &descriptor[..]].concat()))
}

/// READ DISC INFORMATION (MMC-6, 6.21): a complete medium with one session and one track.
pub(crate) fn disc_information(cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    if cdb[1] & 0x07 != 0 {
        // Track resources and pseudo-overwrite resources are for media that are written.
        return Err(Sense::cdb_bit(1, 2));
    }
    let mut bytes = vec![0; 34];
    put(&mut bytes, 0, &32_u16.to_be_bytes());
    // Last session complete, disc finalised; first track, sessions, first and last track of the last session; URU.
    put(&mut bytes, 2, &[0x0e, 1, 1, 1, 1, 0x20]);
    // No lead-in to come, no lead-out to come.
    put(&mut bytes, 16, &[0xff; 8]);
    Ok(bytes)
}

/// READ TRACK INFORMATION (MMC-6, 6.26).
pub(crate) fn track_information(unit: &LogicalUnit, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let at = u64::from(be32(cdb, 2));
    let known = match cdb[1] & 0x03 {
        0 => at < unit.blocks(),
        1 | 2 => at == 1,
        _ => return Err(Sense::cdb_bit(1, 1)),
    };
    if !known {
        return Err(Sense::cdb(2));
    }
    let mut bytes = vec![0; 36];
    let blocks = clip32(unit.blocks());
    put(&mut bytes, 0, &34_u16.to_be_bytes());
    // Track and session; a data track, in mode 1.
    put(&mut bytes, 2, &[1, 1, 0, DATA_TRACK & 0x0f, 1]);
    put(&mut bytes, 24, &blocks.to_be_bytes());
    put(&mut bytes, 28, &blocks.saturating_sub(1).to_be_bytes());
    Ok(bytes)
}

/// READ DVD STRUCTURE (MMC-6, 6.22): what follows from the capacity. The rest is written on a disc, and here is none.
pub(crate) fn dvd_structure(unit: &LogicalUnit, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    const PHYSICAL: u8 = 0x00;
    const COPYRIGHT: u8 = 0x01;
    const LIST: u8 = 0xff;
    if cdb[1] & 0x0f != 0 {
        // Blu-ray.
        return Err(Sense::cdb_bit(1, 3));
    }
    let format = cdb[7];
    if profile(unit) != Some(DVD_ROM) && format != LIST {
        return Err(Sense::illegal(code::INCOMPATIBLE_FORMAT));
    }
    if matches!(format, PHYSICAL | COPYRIGHT) && cdb[6] != 0 {
        // LAYER: there is one.
        return Err(Sense::cdb(6));
    }
    let body = match format {
        PHYSICAL => {
            let mut body = vec![0; 2 + 2048];
            let last = clip32(unit.blocks().saturating_sub(1)).saturating_add(DVD_FIRST_SECTOR);
            // DVD-ROM of version 1; 120 mm, rate not specified; one layer, embossed.
            put(&mut body, 2, &[0x01, 0x0f, 0x01]);
            put(&mut body, 6, &DVD_FIRST_SECTOR.to_be_bytes());
            put(&mut body, 10, &last.to_be_bytes());
            body
        }
        // No protection, all regions.
        COPYRIGHT => vec![0; 2 + 4],
        // RDS: each can be read.
        LIST => {
            let mut body = vec![0; 2];
            for (format, len) in [(PHYSICAL, 2052_u16), (COPYRIGHT, 8), (LIST, 16)] {
                body.extend([format, 0x40]);
                body.extend(len.to_be_bytes());
            }
            body
        }
        _ => return Err(Sense::cdb(7)),
    };
    Ok(counted(&body))
}

/// MECHANISM STATUS (MMC-6, 6.8): no changer.
pub(crate) fn mechanism(unit: &LogicalUnit) -> Vec<u8> {
    vec![0, u8::from(unit.tray_open()) << 4, 0, 0, 0, 0, 0, 0]
}

/// What a READ CD asks for: first block and number of blocks.
pub(crate) fn read_cd(unit: &LogicalUnit, cdb: &[u8; 16]) -> Result<(u32, u32), Sense> {
    const USER_DATA: u8 = 0x10;
    let (sector, main) = (cdb[1] >> 2 & 7, cdb[9] & 0xfe);
    if profile(unit) != Some(CD_ROM) || !matches!(sector, 0 | 2) {
        // Only a CD has other data than a sector's 2048 bytes, and all of its sectors are of mode 1.
        return Err(Sense::illegal(code::ILLEGAL_MODE_FOR_TRACK));
    }
    if main & !USER_DATA != 0 {
        return Err(Sense::cdb(9));
    }
    if cdb[10] & 0x07 != 0 {
        return Err(Sense::cdb_bit(10, 2));
    }
    // Without user data nothing is transferred.
    let blocks = if main == 0 { 0 } else { be24(cdb, 6) };
    Ok((be32(cdb, 2), blocks))
}

#[cfg(test)]
mod tests;
