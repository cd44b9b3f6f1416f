//! [`FileIdentity`]: which file a volume was made with, so that another one at its place is not taken for it.
//!
//! A path leads to another file when a file system is not mounted, when somebody replaced the file, or when the kernel numbered
//! its disks anew. So what was opened first is recorded, and every later opening is held against that.

use serde::{Deserialize, Serialize};

/// What is known of a file or device, and still holds after the host was started again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FileIdentity {
    /// A regular file.
    File {
        /// Its inode number, where its file system keeps these.
        inode: Option<u64>,
        /// When it was made, in nanoseconds since 1970, where its file system knows.
        born_ns: Option<u64>,
        /// How long it is.
        bytes: u64,
    },
    /// A block device.
    Device {
        /// Its own name for itself, such as its WWID, if it has one.
        id: Option<String>,
        /// How large it is.
        bytes: u64,
    },
    /// A file in a tmpfs that holds a RAM volume.
    Memory {
        /// The boot of the host, which it does not survive.
        boot: String,
        /// The tmpfs, by its device number, which it does not survive either.
        tmpfs: u64,
        /// Its inode number.
        inode: u64,
        /// How long it is.
        bytes: u64,
    },
    /// A logical unit of a pool.
    Lu {
        /// The UUID of the pool.
        pool: String,
        /// Its number, which the pool gives out once.
        number: u32,
        /// How large it is.
        bytes: u64,
    },
}

impl FileIdentity {
    /// How long or large it is.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        let (FileIdentity::File { bytes, .. }
        | FileIdentity::Device { bytes, .. }
        | FileIdentity::Memory { bytes, .. }
        | FileIdentity::Lu { bytes, .. }) = self;
        *bytes
    }

    /// Whether it is the LU of that number of a pool, by its UUID, which may be written with hyphens or without.
    #[must_use]
    pub fn is_lu(&self, uuid: &str, wanted: u32) -> bool {
        let digits = |text: &str| text.replace('-', "");
        matches!(self, FileIdentity::Lu { pool, number, .. }
            if *number == wanted && digits(pool) == digits(uuid))
    }

    /// It became larger or smaller on purpose.
    pub fn set_bytes(&mut self, now: u64) {
        let (FileIdentity::File { bytes, .. }
        | FileIdentity::Device { bytes, .. }
        | FileIdentity::Memory { bytes, .. }
        | FileIdentity::Lu { bytes, .. }) = self;
        *bytes = now;
    }

    /// Why `found` is not it, if it is not. `size` is what the volume shall have: it may have become smaller than it was on purpose.
    #[must_use]
    pub fn differs(&self, found: &FileIdentity, size: Option<u64>) -> Option<String> {
        use FileIdentity::{Device, File, Lu, Memory};
        let least = self.bytes().min(size.unwrap_or(u64::MAX));
        match (self, found) {
            (File { inode: a, born_ns: b, .. }, File { inode: c, born_ns: d, .. })
                if disagree(a, c) || disagree(b, d) =>
            {
                Some("another file is there now".to_owned())
            }
            (Device { id: a, .. }, Device { id: b, .. }) if disagree(a, b) => {
                let name = |id: &Option<String>| id.clone().unwrap_or_default();
                Some(format!("another device is there now ({}, not {})", name(b), name(a)))
            }
            (Memory { inode: a, tmpfs: b, .. }, Memory { inode: c, tmpfs: d, .. })
                if (a, b) != (c, d) =>
            {
                Some("another file is there now".to_owned())
            }
            (File { .. }, Device { .. }) => Some("a device is there now, not its file".to_owned()),
            (Device { .. }, File { .. }) => Some("a file is there now, not its device".to_owned()),
            (Lu { pool: a, number: b, .. }, Lu { pool: c, number: d, .. }) if (a, b) != (c, d) => {
                Some("another LU is there now".to_owned())
            }
            (File { .. } | Device { .. }, Memory { .. } | Lu { .. })
            | (Memory { .. }, File { .. } | Device { .. } | Lu { .. })
            | (Lu { .. }, File { .. } | Device { .. } | Memory { .. }) => {
                Some("it is kept in something else now".to_owned())
            }
            _ if found.bytes() < least => {
                Some(format!("it has {} bytes and had {}", found.bytes(), self.bytes()))
            }
            _ => None,
        }
    }
}

/// Whether both know something, and not the same.
fn disagree<T: PartialEq>(a: &Option<T>, b: &Option<T>) -> bool {
    matches!((a, b), (Some(a), Some(b)) if a != b)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(inode: Option<u64>, born_ns: Option<u64>, bytes: u64) -> FileIdentity {
        FileIdentity::File { inode, born_ns, bytes }
    }

    fn device(id: Option<&str>, bytes: u64) -> FileIdentity {
        FileIdentity::Device { id: id.map(str::to_owned), bytes }
    }

    #[test]
    fn a_file_is_told_from_another_by_all_that_both_know() {
        let known = file(Some(12), Some(7), 4096);
        assert_eq!(known.differs(&known, None), None);
        assert_eq!(known.differs(&file(Some(12), Some(7), 8192), None), None, "it grew");
        for other in [file(Some(13), Some(7), 4096), file(Some(12), Some(8), 4096)] {
            assert!(known.differs(&other, None).unwrap().contains("another file"));
        }
        // A file system without inode numbers that last, and one without times.
        assert_eq!(known.differs(&file(None, Some(7), 4096), None), None);
        assert_eq!(file(Some(12), None, 4096).differs(&known, None), None);
        assert!(known.differs(&device(None, 4096), None).is_some());
    }

    #[test]
    fn a_shorter_file_is_refused_unless_that_was_wanted() {
        let known = file(Some(12), None, 4096);
        let cut = file(Some(12), None, 512);
        assert!(known.differs(&cut, None).unwrap().contains("has 512 bytes and had 4096"));
        assert!(known.differs(&cut, Some(4096)).is_some());
        assert_eq!(known.differs(&cut, Some(512)), None);
        // One that shall grow, and has not yet.
        assert_eq!(known.differs(&known, Some(8192)), None);
    }

    #[test]
    fn an_lu_is_that_of_a_pool_however_its_uuid_is_written() {
        let pool = "1712e971-492c-4360-bfb1-5204ba4b76b6".to_owned();
        let lu = FileIdentity::Lu { pool, number: 7, bytes: 4096 };
        assert!(lu.is_lu("1712e971492c4360bfb15204ba4b76b6", 7));
        assert!(!lu.is_lu("1712e971492c4360bfb15204ba4b76b6", 8));
        assert!(!lu.is_lu("2712e971492c4360bfb15204ba4b76b6", 7));
        assert!(!device(None, 4096).is_lu("1712e971492c4360bfb15204ba4b76b6", 7));
    }

    #[test]
    fn a_device_is_known_by_its_own_name() {
        let known = device(Some("naa.5"), 4096);
        assert_eq!(known.differs(&known, None), None);
        assert!(known.differs(&device(Some("naa.6"), 4096), None).unwrap().contains("naa.6"));
        assert_eq!(known.differs(&device(None, 4096), None), None, "it says nothing");
        assert!(known.differs(&device(Some("naa.5"), 512), None).is_some());
    }
}
