//! LOG SENSE (SPC-4, 6.8 and 7.3): the list of pages, which the standard asks for, and the page of informational exceptions, by which
//! clients judge a disk's health. There are no exceptions, and nobody measures a temperature.

use crate::sense::Sense;
use crate::wire::{be16, clip16};

const SUPPORTED: u8 = 0x00;
const EXCEPTIONS: u8 = 0x2f;
/// All pages, ascending.
const PAGES: [u8; 2] = [SUPPORTED, EXCEPTIONS];
/// All subpages, as a subpage code.
const SUBPAGES: u8 = 0xff;

/// The whole answer.
pub(crate) fn sense(cdb: &[u8; 16]) -> Result<Vec<u8>, Sense> {
    let (page, subpage, from) = (cdb[2] & 0x3f, cdb[3], be16(cdb, 5));
    if cdb[1] & 0x02 != 0 {
        // PPC of older standards: only what changed.
        return Err(Sense::cdb_bit(1, 1));
    }
    if cdb[1] & 0x01 != 0 {
        // SP: nothing can be saved.
        return Err(Sense::cdb_bit(1, 0));
    }
    let (header, body) = match (page, subpage) {
        (SUPPORTED, 0) => ([SUPPORTED, 0], PAGES.to_vec()),
        // SPF. The pages, and the lists of subpages.
        (SUPPORTED, SUBPAGES) => {
            let list = [SUPPORTED, 0, SUPPORTED, SUBPAGES, EXCEPTIONS, 0];
            ([SUPPORTED | 0x40, SUBPAGES], list.to_vec())
        }
        // DS: not saved. Parameter 0 is a binary list of four bytes: no code, no qualifier, and a temperature that is not known.
        (EXCEPTIONS, 0) => {
            ([EXCEPTIONS | 0x80, 0], vec![0x00, 0x00, 0x03, 0x04, 0x00, 0x00, 0xff, 0x00])
        }
        (page, _) if PAGES.contains(&page) => return Err(Sense::cdb(3)),
        _ => return Err(Sense::cdb_bit(2, 5)),
    };
    if from > 0 {
        // PARAMETER POINTER: there is no parameter behind 0.
        return Err(Sense::cdb(5));
    }
    let mut bytes = header.to_vec();
    bytes.extend(clip16(body.len() as u64).to_be_bytes());
    bytes.extend(body);
    Ok(bytes)
}
