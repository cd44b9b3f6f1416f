//! MODE SENSE and MODE SELECT (SPC-4, 6.13, 6.14 and 7.5; SBC-3, 6.5): the pages caching (08), control (0A) and informational
//! exceptions control (1C). Nothing is saved.

use crate::data::Data;
use crate::optical;
use crate::sense::{FieldPointer, Sense, code};
use crate::unit::{LogicalUnit, UnitKind, flag};
use crate::wire::{be16, clip16, clip32, put};

const CACHING: u8 = 0x08;
const CONTROL: u8 = 0x0a;
const EXCEPTIONS: u8 = 0x1c;
const PAGES: [u8; 3] = [CACHING, CONTROL, EXCEPTIONS];

/// The pages that there are, ascending.
fn pages(unit: &LogicalUnit) -> &'static [u8] {
    match unit.kind {
        UnitKind::Disk => &PAGES,
        UnitKind::Optical => &optical::MODE_PAGES,
    }
}

const ALL: u8 = 0x3f;

/// PAGE CONTROL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Values {
    Current,
    Changeable,
    Default,
}

/// Which bits a client may change: of byte 2 of caching WCE, of bytes 2 and 4 of control D_SENSE and SWP.
const WCE_BIT: u8 = 0x04;
const D_SENSE_BIT: u8 = 0x04;
const SWP_BIT: u8 = 0x08;

fn bit(on: bool, bit: u8) -> u8 {
    if on { bit } else { 0 }
}

/// A page with its header.
fn page(unit: &LogicalUnit, page: u8, values: Values) -> Vec<u8> {
    let flags = unit.flags();
    let changeable = values == Values::Changeable;
    if unit.kind == UnitKind::Optical {
        return optical::mode_page(unit, page, changeable);
    }
    let on = |flag: u32| match values {
        Values::Current => flags & flag != 0,
        Values::Changeable => true,
        Values::Default => false,
    };
    match page {
        CACHING => {
            let mut bytes = vec![0; 20];
            put(&mut bytes, 0, &[CACHING, 18]);
            let wce = unit.volatile_cache && (on(flag::WCE) || values == Values::Default);
            bytes[2] = bit(wce, WCE_BIT);
            bytes
        }
        CONTROL => {
            let mut bytes = vec![0; 12];
            put(&mut bytes, 0, &[CONTROL, 10]);
            bytes[2] = bit(on(flag::D_SENSE), D_SENSE_BIT);
            // QUEUE ALGORITHM MODIFIER 1: commands may be reordered.
            bytes[3] = bit(!changeable, 0x10);
            bytes[4] = bit(on(flag::SWP), SWP_BIT);
            // TAS: a command that another I_T nexus aborted ends with TASK ABORTED.
            bytes[5] = bit(!changeable, 0x40);
            // BUSY TIMEOUT PERIOD: thirty seconds.
            put(&mut bytes, 8, &if changeable { 0_u16 } else { 300 }.to_be_bytes());
            bytes
        }
        _ => {
            let mut bytes = vec![0; 12];
            put(&mut bytes, 0, &[EXCEPTIONS, 10]);
            // DEXCPT: there are none to report.
            bytes[2] = bit(!changeable, 0x08);
            bytes
        }
    }
}

/// The whole answer to MODE SENSE.
pub(crate) fn sense(unit: &LogicalUnit, cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let long = cdb[0] == 0x5a;
    let values = match cdb[2] >> 6 {
        0 => Values::Current,
        1 => Values::Changeable,
        2 => Values::Default,
        _ => return Err(Sense::illegal(code::SAVING_NOT_SUPPORTED)),
    };
    let (code, subpage) = (cdb[2] & 0x3f, cdb[3]);
    let known = pages(unit);
    let pages: Vec<u8> = match (code, subpage) {
        (ALL, 0 | 0xff) => known.iter().flat_map(|each| page(unit, *each, values)).collect(),
        (ALL, _) => return Err(Sense::cdb(3)),
        (code, 0 | 0xff) if known.contains(&code) => page(unit, code, values),
        (code, _) if known.contains(&code) => return Err(Sense::cdb(3)),
        _ => return Err(Sense::cdb_bit(2, 5)),
    };
    let protected = unit.read_only || unit.flags() & flag::SWP != 0;
    // WP, DPOFUA.
    let optical = unit.kind == UnitKind::Optical;
    // Optical drives have neither a device-specific parameter nor block descriptors (MMC-6, 7.2).
    let specific = if optical { 0 } else { bit(protected, 0x80) | 0x10 };
    let descriptor = match (cdb[1] & 0x08 != 0 || optical, long && cdb[1] & 0x10 != 0) {
        (true, _) => Vec::new(),
        (false, true) => long_descriptor(unit).to_vec(),
        (false, false) => short_descriptor(unit).to_vec(),
    };
    let rest = descriptor.len() + pages.len();
    let mut bytes = if long {
        let [high, low] = clip16(rest as u64 + 6).to_be_bytes();
        let [longer, of] = clip16(descriptor.len() as u64).to_be_bytes();
        vec![high, low, 0, specific, u8::from(descriptor.len() == 16), 0, longer, of]
    } else {
        // All pages with a descriptor are at most 84 bytes.
        vec![(rest + 3) as u8, 0, specific, descriptor.len() as u8]
    };
    bytes.extend(descriptor);
    bytes.extend(pages);
    Ok(bytes)
}

/// SBC-3, 6.5.2.2: a number of blocks that does not fit is shown as all ones.
fn short_descriptor(unit: &LogicalUnit) -> [u8; 8] {
    let mut bytes = [0; 8];
    put(&mut bytes, 0, &clip32(unit.blocks()).to_be_bytes());
    put(&mut bytes, 4, &unit.block_size().to_be_bytes());
    bytes
}

/// SBC-3, 6.5.2.3.
fn long_descriptor(unit: &LogicalUnit) -> [u8; 16] {
    let mut bytes = [0; 16];
    put(&mut bytes, 0, &unit.blocks().to_be_bytes());
    put(&mut bytes, 12, &unit.block_size().to_be_bytes());
    bytes
}

/// Longer than any list that makes sense: the long header, the long descriptor, all pages of either kind.
const LIST_BYTES_MAX: usize = 8 + 16 + optical::MODE_BYTES;

const TOO_SHORT: Sense = Sense::illegal(code::PARAMETER_LIST_LENGTH);

/// What a MODE SELECT sets: some of the flags, each on or off.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Wish {
    mask: u32,
    on: u32,
}

impl Wish {
    fn set(&mut self, flag: u32, on: bool) {
        self.mask |= flag;
        self.on = if on { self.on | flag } else { self.on & !flag };
    }
}

/// MODE SELECT. All is judged before anything is changed. Returns the bytes that were taken, and whether something changed.
pub(crate) fn select(
    unit: &LogicalUnit,
    cdb: &[u8; 16],
    data: &Data<'_>,
) -> Result<(u64, bool), Sense> {
    let long = cdb[0] == 0x55;
    if cdb[1] & 0x01 != 0 {
        // SP: nothing can be saved.
        return Err(Sense::cdb_bit(1, 0));
    }
    let length = if long { usize::from(be16(cdb, 7)) } else { usize::from(cdb[4]) };
    if length == 0 {
        return Ok((0, false));
    }
    if cdb[1] & 0x10 == 0 {
        // PF: pages in a vendor's own format are not known here.
        return Err(Sense::cdb_bit(1, 4));
    }
    let mut list = [0; LIST_BYTES_MAX];
    if length > LIST_BYTES_MAX || data.read(0, &mut list[..length]) < length {
        return Err(TOO_SHORT);
    }
    let list = &list[..length];
    let mut at = skip_header(unit, list, long)?;
    let mut wish = Wish::default();
    while at < length {
        at += judge(unit, list, at, &mut wish)?;
    }
    let before = unit.flags();
    for each in [flag::WCE, flag::SWP, flag::D_SENSE] {
        if wish.mask & each != 0 {
            unit.set_flag(each, wish.on & each != 0);
        }
    }
    Ok((length as u64, unit.flags() != before))
}

/// Where the pages begin. A block descriptor may be there if it changes nothing.
fn skip_header(unit: &LogicalUnit, list: &[u8], long: bool) -> Result<usize, Sense> {
    let header = if long { 8 } else { 4 };
    if list.len() < header {
        return Err(TOO_SHORT);
    }
    let (descriptor, at) =
        if long { (usize::from(be16(list, 6)), 6) } else { (usize::from(list[3]), 3) };
    let rest = &list[header..];
    match descriptor {
        0 => {}
        8 | 16 if rest.len() < descriptor => return Err(TOO_SHORT),
        8 => {
            let ours = short_descriptor(unit);
            // A number of 0 means that it stays (SBC-3, 6.5.2.2).
            let same = rest[..4] == ours[..4] || rest[..4] == [0; 4];
            if !same || rest[5..8] != ours[5..8] {
                return Err(Sense::parameter(header as u16));
            }
        }
        16 if long && list[4] & 1 != 0 => {
            let ours = long_descriptor(unit);
            let same = rest[..8] == ours[..8] || rest[..8] == [0; 8];
            if !same || rest[12..16] != ours[12..16] {
                return Err(Sense::parameter(header as u16));
            }
        }
        _ => return Err(Sense::parameter(at)),
    }
    Ok(header + descriptor)
}

/// Judges the page at `at` and notes what it sets; returns its length.
fn judge(unit: &LogicalUnit, list: &[u8], at: usize, wish: &mut Wish) -> Result<usize, Sense> {
    let rest = &list[at..];
    // At most LIST_BYTES_MAX.
    let pointer = |byte: usize| Sense::parameter((at + byte) as u16);
    let code = rest[0] & 0x3f;
    // SPF: a page with subpages, of which there are none. PS is reserved in MODE SELECT and may be left as MODE SENSE gave it.
    if rest[0] & 0x40 != 0 || !pages(unit).contains(&code) {
        return Err(pointer(0));
    }
    let current = page(unit, code, Values::Current);
    let changeable = page(unit, code, Values::Changeable);
    if rest.len() < 2 {
        return Err(TOO_SHORT);
    }
    if usize::from(rest[1]) != current.len() - 2 {
        return Err(pointer(1));
    }
    if rest.len() < current.len() {
        return Err(TOO_SHORT);
    }
    for byte in 2..current.len() {
        let wrong = (rest[byte] ^ current[byte]) & !changeable[byte];
        if wrong != 0 {
            let bit = Some(wrong.ilog2() as u8);
            // As above.
            let field = FieldPointer { in_cdb: false, byte: (at + byte) as u16, bit };
            return Err(Sense::illegal(code::INVALID_FIELD_IN_PARAMETERS).at(field));
        }
    }
    match code {
        CACHING if unit.volatile_cache => wish.set(flag::WCE, rest[2] & WCE_BIT != 0),
        CONTROL => {
            wish.set(flag::D_SENSE, rest[2] & D_SENSE_BIT != 0);
            wish.set(flag::SWP, rest[4] & SWP_BIT != 0);
        }
        _ => {}
    }
    Ok(current.len())
}
