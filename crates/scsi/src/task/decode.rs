//! The fields of a CDB to the medium, checked (SBC-3, clause 5).

use crate::sense::{Sense, SenseKey, code};
use crate::unit::{LogicalUnit, flag};
use crate::wire::{be16, be24, be32, be64};

/// Logical blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) lba: u64,
    pub(super) blocks: u64,
    /// Byte of the CDB where the length is.
    pub(super) length_at: u16,
}

impl Extent {
    /// LBA and length of a CDB of any of the four lengths.
    #[inline]
    pub(super) fn of(cdb: &[u8; 16]) -> Extent {
        match cdb[0] >> 5 {
            0 => {
                let blocks = if cdb[4] == 0 { 256 } else { u64::from(cdb[4]) };
                Extent { lba: u64::from(be24(cdb, 1) & 0x1f_ffff), blocks, length_at: 4 }
            }
            1 | 2 => {
                let (lba, blocks) = (u64::from(be32(cdb, 2)), u64::from(be16(cdb, 7)));
                Extent { lba, blocks, length_at: 7 }
            }
            5 => {
                let (lba, blocks) = (u64::from(be32(cdb, 2)), u64::from(be32(cdb, 6)));
                Extent { lba, blocks, length_at: 6 }
            }
            _ => Extent { lba: be64(cdb, 2), blocks: u64::from(be32(cdb, 10)), length_at: 10 },
        }
    }

    /// Whether a transfer needs no second look: no protection information, all of it on the medium, not too long.
    #[inline]
    pub(super) fn is_plain(self, unit: &LogicalUnit, cdb: &[u8; 16]) -> bool {
        let end = self.lba.saturating_add(self.blocks);
        let protected = cdb[1] & 0xe0 != 0 && cdb[0] >> 5 != 0;
        end <= unit.blocks() && self.blocks <= u64::from(unit.transfer_blocks_max) && !protected
    }

    /// Fails unless all of it lies on the medium. No blocks right behind the end are inside.
    #[inline]
    pub(super) fn inside(self, unit: &LogicalUnit) -> Result<Extent, Sense> {
        let end = self.lba.checked_add(self.blocks);
        if end.is_some_and(|end| end <= unit.blocks()) { Ok(self) } else { Err(OUT_OF_RANGE) }
    }

    /// With a length of 0 meaning all up to the end.
    pub(super) fn to_the_end(self, unit: &LogicalUnit) -> Result<Extent, Sense> {
        if self.blocks != 0 {
            return self.inside(unit);
        }
        let blocks = unit.blocks().checked_sub(self.lba).ok_or(OUT_OF_RANGE)?;
        Ok(Extent { blocks, ..self })
    }

    /// Fails when there are more blocks than a transfer may have (MAXIMUM TRANSFER LENGTH).
    #[inline]
    pub(super) fn transferable(self, unit: &LogicalUnit) -> Result<Extent, Sense> {
        self.at_most(unit.transfer_blocks_max)
    }

    #[inline]
    pub(super) fn at_most(self, blocks: u32) -> Result<Extent, Sense> {
        if self.blocks <= u64::from(blocks) { Ok(self) } else { Err(Sense::cdb(self.length_at)) }
    }

    /// First byte, and number of bytes; it was checked to lie inside.
    #[inline]
    pub(super) fn bytes(self, unit: &LogicalUnit) -> (u64, u64) {
        (self.lba << unit.block_shift(), self.blocks << unit.block_shift())
    }
}

pub(super) const OUT_OF_RANGE: Sense = Sense::illegal(code::LBA_OUT_OF_RANGE);

/// RDPROTECT, WRPROTECT or VRPROTECT: there is no protection information (SBC-3, 5.7: then it has to be 0).
#[inline]
pub(super) fn unprotected(cdb: &[u8; 16]) -> Result<(), Sense> {
    // In six-byte CDBs the bits are reserved.
    if cdb[1] & 0xe0 != 0 && cdb[0] >> 5 != 0 { Err(Sense::cdb_bit(1, 7)) } else { Ok(()) }
}

/// FUA; in six-byte CDBs the bit belongs to the LBA.
#[inline]
pub(super) fn fua(cdb: &[u8; 16]) -> bool {
    cdb[1] & 0x08 != 0 && cdb[0] >> 5 != 0
}

/// Fails when the medium must not be written.
#[inline]
pub(super) fn writable(unit: &LogicalUnit) -> Result<(), Sense> {
    if unit.read_only {
        return Err(Sense::new(SenseKey::DataProtect, code::WRITE_PROTECTED));
    }
    if unit.flags() & flag::SWP != 0 {
        return Err(Sense::new(SenseKey::DataProtect, code::SOFTWARE_WRITE_PROTECTED));
    }
    Ok(())
}

/// Whether a write has to be durable before it is answered.
#[inline]
pub(super) fn durable(unit: &LogicalUnit, cdb: &[u8; 16]) -> bool {
    fua(cdb) || (unit.volatile_cache && unit.flags() & flag::WCE == 0)
}

/// What a verification compares with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compare {
    /// Nothing: the medium is only read.
    Nothing,
    /// All the data.
    All,
    /// One block, with each.
    OneBlock,
}

/// BYTCHK (SBC-3, table 110 and table 138).
pub(super) fn byte_check(cdb: &[u8; 16], one_block: bool) -> Result<Compare, Sense> {
    match cdb[1] >> 1 & 3 {
        0 => Ok(Compare::Nothing),
        1 => Ok(Compare::All),
        3 if one_block => Ok(Compare::OneBlock),
        _ => Err(Sense::cdb_bit(1, 2)),
    }
}
