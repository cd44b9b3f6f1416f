//! Addresses and structures, against figures that were worked out by hand.

use super::*;
use crate::sim::{Disk, unit};
use crate::{Identity, Naa, UnitSpec};

fn drive(blocks: u64) -> std::sync::Arc<LogicalUnit> {
    let disk = Disk::new(1, 512);
    let identity = Identity::optical("drive", Naa::local(1));
    unit(&disk, |spec| *spec = UnitSpec::optical(identity, Some(blocks * 2048)))
}

#[test]
fn addresses_as_numbers_and_as_minutes() {
    assert_eq!(address(0, true), [0, 0, 2, 0]);
    assert_eq!(address(74, true), [0, 0, 2, 74]);
    assert_eq!(address(75, true), [0, 0, 3, 0]);
    assert_eq!(address(359_999, true), [0, 80, 1, 74]);
    assert_eq!(address(u64::from(u32::MAX), true), [0, 0xff, 59, 74]);
    assert_eq!(address(0x0102_0304, false), [1, 2, 3, 4]);
    assert_eq!(address(1 << 40, false), [0xff; 4]);
}

#[test]
fn the_profile_follows_the_capacity() {
    for (blocks, expected) in [(1, CD_ROM), (360_000, CD_ROM), (360_001, DVD_ROM)] {
        assert_eq!(profile(&drive(blocks)), Some(expected));
    }
    let unit = drive(5);
    unit.set_medium(None);
    assert_eq!(profile(&unit), None);
    unit.set_medium(Some(400_000 * 2048));
    assert_eq!(profile(&unit), Some(DVD_ROM));
}

#[test]
fn the_full_table_of_contents() {
    let mut cdb = [0; 16];
    (cdb[0], cdb[2]) = (0x43, 2);
    let bytes = toc(&drive(4500 - 150), &cdb).expect("format 2");
    assert_eq!(bytes[..4], [0, 46, 1, 1]);
    assert_eq!(bytes[4..15], [1, 0x14, 0, 0xa0, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(bytes[26..37], [1, 0x14, 0, 0xa2, 0, 0, 0, 0, 1, 0, 0]);
    assert_eq!(bytes[37..], [1, 0x14, 0, 1, 0, 0, 0, 0, 0, 2, 0]);
}

#[test]
fn the_physical_format_of_a_dvd() {
    let mut cdb = [0; 16];
    cdb[0] = 0xad;
    let bytes = dvd_structure(&drive(0x10_0000), &cdb).expect("format 0");
    assert_eq!((bytes.len(), be16(&bytes, 0)), (2052, 2050));
    assert_eq!(bytes[4..16], [1, 0x0f, 1, 0, 0, 3, 0, 0, 0, 0x12, 0xff, 0xff]);
    let refused = |blocks: u64, at: usize, value: u8| {
        let mut cdb = cdb;
        cdb[at] = value;
        dvd_structure(&drive(blocks), &cdb).expect_err("refused")
    };
    assert_eq!(refused(5, 7, 0).code, code::INCOMPATIBLE_FORMAT, "a CD");
    assert_eq!(refused(0x10_0000, 1, 1), Sense::cdb_bit(1, 3), "Blu-ray");
    assert_eq!(refused(0x10_0000, 6, 1), Sense::cdb(6), "a second layer");
    for format in [2, 3, 4, 5, 0x0c, 0x10, 0xc0] {
        assert_eq!(refused(0x10_0000, 7, format), Sense::cdb(7));
    }
}
