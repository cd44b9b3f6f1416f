//! Writes the `newc` archives that the kernel unpacks as its initramfs.
//!
//! The kernel accepts several archives one after the other, so the large part (tools, modules) is made once and
//! cached, and each run appends a small one with its script. Every path is relative to the root, without a leading
//! slash; parents must be added before their children.

/// An archive under construction, in memory.
#[derive(Default)]
pub(crate) struct Archive {
    bytes: Vec<u8>,
    inode: u32,
}

/// File type bits of `mode`, as in `stat(2)`.
const DIRECTORY: u32 = 0o040_000;
const REGULAR: u32 = 0o100_000;
const SYMLINK: u32 = 0o120_000;

impl Archive {
    /// Adds a directory that everybody may enter.
    pub(crate) fn directory(&mut self, path: &str) {
        self.entry(path, DIRECTORY | 0o755, &[]);
    }

    /// Adds a file; `executable` decides between 0755 and 0644.
    pub(crate) fn file(&mut self, path: &str, contents: &[u8], executable: bool) {
        let permissions = if executable { 0o755 } else { 0o644 };
        self.entry(path, REGULAR | permissions, contents);
    }

    /// Adds a symbolic link.
    pub(crate) fn symlink(&mut self, path: &str, target: &str) {
        self.entry(path, SYMLINK | 0o777, target.as_bytes());
    }

    /// Ends the archive. It is padded to 512 bytes, so that another may follow.
    pub(crate) fn finish(mut self) -> Vec<u8> {
        self.entry("TRAILER!!!", 0, &[]);
        self.pad(512);
        self.bytes
    }

    fn entry(&mut self, path: &str, mode: u32, contents: &[u8]) {
        assert!(!path.starts_with('/'), "{path} must be relative to the guest's root");
        let size = u32::try_from(contents.len()).expect("a file in the archive is below 4 GiB");
        let name_size = u32::try_from(path.len() + 1).expect("a path is short");
        self.inode += 1;
        self.bytes.extend_from_slice(b"070701");
        // ino, mode, uid, gid, nlink, mtime, filesize, devmajor, devminor, rdevmajor, rdevminor, namesize, check.
        for field in [self.inode, mode, 0, 0, 1, 0, size, 0, 0, 0, 0, name_size, 0] {
            self.bytes.extend_from_slice(format!("{field:08x}").as_bytes());
        }
        self.bytes.extend_from_slice(path.as_bytes());
        self.bytes.push(0);
        self.pad(4);
        self.bytes.extend_from_slice(contents);
        self.pad(4);
    }

    fn pad(&mut self, to: usize) {
        self.bytes.resize(self.bytes.len().next_multiple_of(to), 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_aligned_and_named() {
        let mut archive = Archive::default();
        archive.directory("dev");
        archive.file("init", b"#!/bin/sh\n", true);
        archive.symlink("bin", "usr/bin");
        let bytes = archive.finish();
        assert_eq!(bytes.len() % 512, 0);
        let headers: Vec<usize> =
            (0..bytes.len() - 6).filter(|&at| &bytes[at..at + 6] == b"070701").collect();
        assert_eq!(headers.len(), 4);
        assert!(headers.iter().all(|at| at % 4 == 0), "headers at {headers:?}");
        let field = |at: usize, n: usize| {
            let text = std::str::from_utf8(&bytes[at + 6 + 8 * n..at + 14 + 8 * n]).unwrap();
            u32::from_str_radix(text, 16).unwrap()
        };
        assert_eq!(field(headers[1], 1), 0o100_755);
        assert_eq!(field(headers[1], 6), 10);
        assert_eq!(&bytes[headers[1] + 110..headers[1] + 114], b"init");
        assert_eq!(field(headers[2], 1), 0o120_777);
    }
}
