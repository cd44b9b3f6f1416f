//! What stands on a device that somebody wants to be a PV: a table of the marks of file systems and the like. Who finds one refuses the device by its name.

/// So many bytes from the front are looked at.
pub(crate) const FRONT: usize = 128 << 10;

struct Mark {
    what: &'static str,
    at: usize,
    magic: &'static [u8],
}

const fn mark(what: &'static str, at: usize, magic: &'static [u8]) -> Mark {
    Mark { what, at, magic }
}

/// From the documentation of each format. What is more telling comes first: the boot sector's 0x55 0xAA is also at the front of FAT and NTFS.
const MARKS: &[Mark] = &[
    mark("an LVM physical volume", 512, b"LABELONE"),
    mark("an LVM physical volume", 0, b"LABELONE"),
    mark("an LVM physical volume", 1024, b"LABELONE"),
    mark("an LVM physical volume", 1536, b"LABELONE"),
    mark("a member of a RAID (md)", 0, &[0xfc, 0x4e, 0x2b, 0xa9]),
    mark("a member of a RAID (md)", 4096, &[0xfc, 0x4e, 0x2b, 0xa9]),
    mark("an XFS file system", 0, b"XFSB"),
    mark("an ext file system", 1024 + 56, &[0x53, 0xef]),
    mark("a btrfs file system", 65536 + 64, b"_BHRfS_M"),
    mark("a bcache device", 4096 + 24, &[0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca]),
    mark("a LUKS device", 0, b"LUKS\xba\xbe"),
    mark("a swap area", 4096 - 10, b"SWAPSPACE2"),
    mark("a swap area", 65536 - 10, b"SWAPSPACE2"),
    mark("an ISO 9660 image", 32768 + 1, b"CD001"),
    mark("a squashfs file system", 0, b"hsqs"),
    mark("an EROFS file system", 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    mark("an f2fs file system", 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    mark("a qcow2 image", 0, b"QFI\xfb"),
    mark("an AIX volume group", 3584, b"_LVM"),
    mark("an AIX volume group", 0, &[0xc9, 0xc2, 0xd4, 0xc1]),
    mark("a GPT partition table", 512, b"EFI PART"),
    mark("a GPT partition table", 4096, b"EFI PART"),
    mark("a file system or partition table with a boot sector", 510, &[0x55, 0xaa]),
];

/// What is there, if something is.
pub(crate) fn found(front: &[u8]) -> Option<&'static str> {
    let there = |mark: &&Mark| front.get(mark.at..mark.at + mark.magic.len()) == Some(mark.magic);
    MARKS.iter().find(there).map(|mark| mark.what)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_mark_is_found_at_its_place_and_nothing_on_an_empty_device() {
        assert_eq!(found(&[0; FRONT]), None);
        assert_eq!(found(&[]), None);
        for mark in MARKS {
            let mut front = vec![0; FRONT];
            front[mark.at..mark.at + mark.magic.len()].copy_from_slice(mark.magic);
            assert_eq!(found(&front), Some(mark.what));
            front[mark.at] ^= 1;
            assert_eq!(found(&front), None, "{}", mark.what);
        }
    }
}
