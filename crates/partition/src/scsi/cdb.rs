//! CDBs (SPC-4, clause 6; SBC-3, clause 5).

/// TEST UNIT READY.
pub const TEST_UNIT_READY: [u8; 6] = [0; 6];
/// SYNCHRONIZE CACHE(10) of everything.
pub const SYNCHRONIZE_CACHE: [u8; 10] = [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0];

/// INQUIRY; `page`: a vital product data page instead of the standard data.
#[must_use]
pub fn inquiry(page: Option<u8>, bytes: u16) -> [u8; 6] {
    let [high, low] = bytes.to_be_bytes();
    [0x12, u8::from(page.is_some()), page.unwrap_or(0), high, low, 0]
}

/// REPORT LUNS.
#[must_use]
pub fn report_luns(bytes: u32) -> [u8; 12] {
    let [a, b, c, d] = bytes.to_be_bytes();
    [0xa0, 0, 0, 0, 0, 0, a, b, c, d, 0, 0]
}

/// READ CAPACITY(16): 32 bytes.
#[must_use]
pub fn read_capacity() -> [u8; 16] {
    [0x9e, 0x10, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 32, 0, 0]
}

/// MODE SENSE(6) of the header alone: four bytes, in the third of which bit 7 says write-protected.
#[must_use]
pub fn mode_sense() -> [u8; 6] {
    [0x1a, 0x08, 0x3f, 0, 4, 0]
}

/// READ or WRITE: the form with 10 bytes, or with 16 where that does not reach, as Linux does.
#[derive(Clone, Copy, Debug)]
pub struct Transfer {
    bytes: [u8; 16],
    len: usize,
}

impl Transfer {
    /// Of `blocks` blocks from `lba`.
    #[inline]
    #[must_use]
    pub fn new(write: bool, lba: u64, blocks: u32) -> Transfer {
        let mut bytes = [0; 16];
        let low = 2 * u8::from(write);
        if let (Ok(lba), Ok(blocks)) = (u32::try_from(lba), u16::try_from(blocks)) {
            bytes[0] = 0x28 + low;
            bytes[2..6].copy_from_slice(&lba.to_be_bytes());
            bytes[7..9].copy_from_slice(&blocks.to_be_bytes());
            return Transfer { bytes, len: 10 };
        }
        bytes[0] = 0x88 + low;
        bytes[2..10].copy_from_slice(&lba.to_be_bytes());
        bytes[10..14].copy_from_slice(&blocks.to_be_bytes());
        Transfer { bytes, len: 16 }
    }

    /// The CDB.
    #[inline]
    #[must_use]
    pub fn cdb(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// WRITE(10) with FUA: durable when it is answered.
#[must_use]
pub fn durable_write(lba: u32, blocks: u16) -> [u8; 10] {
    let ([a, b, c, d], [high, low]) = (lba.to_be_bytes(), blocks.to_be_bytes());
    [0x2a, 0x08, a, b, c, d, 0, high, low, 0]
}

/// COMPARE AND WRITE of one block or more; the data is what is compared and then what is written.
#[must_use]
pub fn compare_and_write(lba: u64, blocks: u8) -> [u8; 16] {
    let mut cdb = [0; 16];
    cdb[0] = 0x89;
    cdb[2..10].copy_from_slice(&lba.to_be_bytes());
    cdb[13] = blocks;
    cdb
}

/// UNMAP with so many bytes of parameters; see [`unmap_list`].
#[must_use]
pub fn unmap(bytes: u16) -> [u8; 10] {
    let [high, low] = bytes.to_be_bytes();
    [0x42, 0, 0, 0, 0, 0, 0, high, low, 0]
}

/// The parameters of an UNMAP of one range.
#[must_use]
pub fn unmap_list(lba: u64, blocks: u32) -> [u8; 24] {
    let mut list = [0; 24];
    (list[1], list[3]) = (22, 16);
    list[8..16].copy_from_slice(&lba.to_be_bytes());
    list[16..20].copy_from_slice(&blocks.to_be_bytes());
    list
}

/// PERSISTENT RESERVE OUT with its 24 bytes of parameters; see [`reserve_list`].
#[must_use]
pub fn reserve_out(action: u8, kind: u8) -> [u8; 10] {
    [0x5f, action, kind, 0, 0, 0, 0, 0, 24, 0]
}

/// The parameters of PERSISTENT RESERVE OUT.
#[must_use]
pub fn reserve_list(key: u64, action_key: u64, aptpl: bool) -> [u8; 24] {
    let mut list = [0; 24];
    list[..8].copy_from_slice(&key.to_be_bytes());
    list[8..16].copy_from_slice(&action_key.to_be_bytes());
    list[20] = u8::from(aptpl);
    list
}

/// PERSISTENT RESERVE IN.
#[must_use]
pub fn reserve_in(action: u8, bytes: u16) -> [u8; 10] {
    let [high, low] = bytes.to_be_bytes();
    [0x5e, action, 0, 0, 0, 0, 0, high, low, 0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_transfer_has_the_shortest_form_that_reaches() {
        let short = Transfer::new(true, 0x0102_0304, 8);
        assert_eq!(short.cdb(), [0x2a, 0, 1, 2, 3, 4, 0, 0, 8, 0]);
        for (lba, blocks) in [(1 << 32, 8), (0, 1 << 16)] {
            let long = Transfer::new(false, lba, blocks);
            assert_eq!((long.cdb().len(), long.cdb()[0]), (16, 0x88));
            assert_eq!(long.cdb()[2..10], lba.to_be_bytes());
            assert_eq!(long.cdb()[10..14], blocks.to_be_bytes());
        }
    }
}
