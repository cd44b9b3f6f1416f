//! The page cache of each file and what is behind it: what a power failure leaves, and whose `fdatasync` is told of a write-back that failed.
//!
//! The file has what its cache has. What the platter has instead is kept here, sector by sector, until it is written back. An error belongs to the
//! file, and each open file hears of it once, as the kernel's `errseq_t` has it; one that nobody has heard of, whoever opens the file next hears.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, OwnedFd};
use std::rc::{Rc, Weak};

use memory::sim;
use rustix::fs::{FileType, Mode, OFlags, SeekFrom};

const SECTOR: u64 = 512;

type Sector = [u8; SECTOR as usize];
/// Device and number.
pub(super) type Inode = (u64, u64);

#[derive(Default)]
pub(super) struct Caches {
    files: BTreeMap<Inode, Cache>,
    /// Open files that have a name so far.
    named: u64,
    /// Those that some ring's table has.
    registered: BTreeMap<Open, Weak<OwnedFd>>,
}

struct Cache {
    file: OwnedFd,
    /// What the platter has where the cache has something else.
    dirty: BTreeMap<u64, Sector>,
    /// The same, of sectors whose write-back failed: the kernel takes them for clean.
    lost: BTreeMap<u64, Sector>,
    errors: u64,
    /// Somebody has heard of the last error.
    told: bool,
    /// Errors that each open file has heard of.
    heard: BTreeMap<u64, u64>,
}

/// An open file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Open {
    inode: Inode,
    name: u64,
    direct: bool,
}

impl Open {
    pub(super) fn inode(self) -> Inode {
        self.inode
    }

    pub(super) fn is_direct(self) -> bool {
        self.direct
    }
}

impl Cache {
    fn hears(&mut self, open: Open) -> bool {
        let heard = self.heard.entry(open.name).or_insert(self.errors);
        let news = *heard != self.errors;
        if news {
            (*heard, self.told) = (self.errors, true);
        }
        news
    }
}

impl Caches {
    /// Who a descriptor is of, if it is one of a regular file. Duplicates are of the same open file: nobody here uses its position, so that has
    /// its name.
    pub(super) fn open(&mut self, file: BorrowedFd<'_>) -> Option<Open> {
        let found = rustix::fs::fstat(file).ok()?;
        if FileType::from_raw_mode(found.st_mode) != FileType::RegularFile {
            return None;
        }
        let inode = (found.st_dev, found.st_ino);
        let direct = rustix::fs::fcntl_getfl(file).ok()?.contains(OFlags::DIRECT);
        let mut name = rustix::fs::seek(file, SeekFrom::Current(0)).ok()?;
        if name == 0 {
            self.named += 1;
            name = self.named;
            rustix::fs::seek(file, SeekFrom::Start(name)).ok()?;
        }
        if let Entry::Vacant(place) = self.files.entry(inode) {
            // Another open file: locks of a process that has died are not held here.
            let path = format!("/proc/self/fd/{}", file.as_raw_fd());
            let file =
                rustix::fs::open(path, OFlags::RDWR | OFlags::CLOEXEC, Mode::empty()).ok()?;
            let (dirty, lost, heard) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
            place.insert(Cache { file, dirty, lost, errors: 0, told: true, heard });
        }
        let cache = self.files.get_mut(&inode)?;
        let heard = if cache.told { cache.errors } else { cache.errors - 1 };
        cache.heard.entry(name).or_insert(heard);
        Some(Open { inode, name, direct })
    }

    /// Keeps a file open, whatever becomes of the descriptor: by the one that another table has of the same open file, if any has.
    pub(super) fn keep(&mut self, fd: BorrowedFd<'_>) -> io::Result<(Rc<OwnedFd>, Option<Open>)> {
        let open = self.open(fd);
        let known = open.and_then(|open| self.registered.get(&open)?.upgrade());
        let file = match known {
            Some(file) => file,
            None => Rc::new(fd.try_clone_to_owned()?),
        };
        if let Some(open) = open {
            self.registered.retain(|_, file| file.strong_count() > 0);
            self.registered.insert(open, Rc::downgrade(&file));
        }
        Ok((file, open))
    }

    /// A part of the file is about to be written.
    pub(super) fn touch(&mut self, open: Open, offset: u64, len: u64) {
        let Some(Cache { file, dirty, lost, .. }) = self.files.get_mut(&open.inode) else { return };
        for at in sectors(offset, len) {
            if dirty.contains_key(&at) {
                continue;
            }
            let old = lost.remove(&at).unwrap_or_else(|| {
                let mut old = [0; SECTOR as usize];
                // Behind the end there are zeroes.
                let _ = rustix::io::pread(file.as_fd(), &mut old[..], at * SECTOR);
                old
            });
            dirty.insert(at, old);
        }
    }

    /// A part of the file, or all of it, is written back; or that fails. What whoever asked for it is told.
    pub(super) fn sync(&mut self, open: Open, part: Option<(u64, u64)>, fails: u64) -> i32 {
        let Some(cache) = self.files.get_mut(&open.inode) else { return 0 };
        let all: Vec<u64> = match part {
            None => cache.dirty.keys().copied().collect(),
            Some((offset, len)) => {
                sectors(offset, len).filter(|at| cache.dirty.contains_key(at)).collect()
            }
        };
        // Direct writes have told of their errors themselves.
        let fails = !open.direct && !all.is_empty() && super::fails("write-back fails", fails);
        for at in all {
            let old = cache.dirty.remove(&at).expect("it is dirty");
            if fails && sim::once_in(2) {
                cache.lost.insert(at, old);
            }
        }
        if fails {
            (cache.errors, cache.told) = (cache.errors + 1, false);
        }
        if cache.hears(open) { -libc::EIO } else { 0 }
    }

    /// A file was made to end here.
    pub(super) fn truncated(&mut self, file: BorrowedFd<'_>, bytes: u64) {
        let Some(open) = self.open(file) else { return };
        if let Some(Cache { dirty, lost, .. }) = self.files.get_mut(&open.inode) {
            let end = bytes.div_ceil(SECTOR);
            drop(dirty.split_off(&end));
            drop(lost.split_off(&end));
        }
    }

    /// Whether this open file is to be told of an error, and is now.
    pub(super) fn has_lost(&mut self, file: BorrowedFd<'_>) -> bool {
        let Some(open) = self.open(file) else { return false };
        self.files.get_mut(&open.inode).is_some_and(|cache| cache.hears(open))
    }

    /// The host loses its power: of what was not written back each sector is there or not, of what was lost none.
    pub(super) fn lose_power(&mut self) {
        for Cache { file, dirty, lost, errors, told, heard } in self.files.values_mut() {
            let put = |at: u64, old: &Sector| {
                let back = rustix::io::pwrite(file.as_fd(), old, at * SECTOR);
                debug_assert!(back.is_ok(), "{back:?}");
            };
            for (at, old) in std::mem::take(dirty) {
                if sim::once_in(2) {
                    put(at, &old);
                }
            }
            std::mem::take(lost).iter().for_each(|(at, old)| put(*at, old));
            (*errors, *told) = (0, true);
            heard.clear();
        }
    }
}

fn sectors(offset: u64, len: u64) -> Range<u64> {
    offset / SECTOR..(offset + len).div_ceil(SECTOR)
}
