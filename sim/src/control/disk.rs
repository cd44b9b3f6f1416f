//! The disk of the store: what was written, and what of it a loss of power leaves.
//!
//! Writes are in a cache until they are synced. When the power is lost, each sector of what was not synced is there or not. A process that dies leaves
//! what it has written; of its last write a part.

use std::cell::RefCell;
use std::io;

use memory::sim;
use redb::StorageBackend;

const SECTOR: usize = 512;

#[derive(Default)]
struct Disk {
    cache: Vec<u8>,
    platter: Vec<u8>,
    /// Since the last sync: where, and how much.
    unsynced: Vec<(usize, usize)>,
    /// Writes and syncs of this life until the process dies in one.
    dies_in: Option<u64>,
    /// An error once in so many; 0: never.
    errors: u64,
    /// Whose writes are taken.
    life: u64,
}

thread_local! {
    static DISK: RefCell<Disk> = RefCell::default();
}

/// A new disk, with nothing on it.
pub(super) fn new() {
    DISK.set(Disk::default());
}

/// The process of this life begins.
pub(super) fn begin(life: u64) {
    DISK.with_borrow_mut(|disk| (disk.life, disk.dies_in) = (life, None));
}

/// It dies in its so-many-th write or sync from now on.
pub(super) fn dies_in(count: Option<u64>) {
    DISK.with_borrow_mut(|disk| disk.dies_in = count);
}

/// Writes and syncs fail, once in so many.
pub(super) fn fails(every: u64) {
    DISK.with_borrow_mut(|disk| disk.errors = every);
}

/// The power is lost: of what was not synced each sector is there or not.
pub(super) fn lose_power() {
    DISK.with_borrow_mut(|disk| {
        let len = if sim::once_in(2) { disk.platter.len() } else { disk.cache.len() };
        disk.platter.resize(len.max(disk.platter.len()), 0);
        for (at, len) in std::mem::take(&mut disk.unsynced) {
            let end = (at + len).min(disk.platter.len()).min(disk.cache.len());
            let mut from = at;
            while from < end {
                let to = (from / SECTOR * SECTOR + SECTOR).min(end);
                if sim::once_in(2) {
                    let (platter, cache) = (&mut disk.platter, &disk.cache);
                    platter[from..to].copy_from_slice(&cache[from..to]);
                }
                from = to;
            }
        }
        disk.cache = disk.platter.clone();
    });
}

/// Whose the disk is, in one life of its process.
#[derive(Debug, Clone)]
pub(super) struct Medium {
    pub life: u64,
}

enum Fate {
    Done,
    Fails,
    Dies,
}

impl Medium {
    fn with<T>(&self, act: impl FnOnce(&mut Disk) -> io::Result<T>) -> io::Result<T> {
        DISK.with_borrow_mut(|disk| {
            if disk.life != self.life || !super::lives(self.life) {
                return Err(io::Error::other("its process is dead"));
            }
            act(disk)
        })
    }

    fn fate(&self) -> io::Result<Fate> {
        self.with(|disk| {
            let errors = disk.errors;
            let dies = disk.dies_in.as_mut().is_some_and(|left| {
                *left = left.saturating_sub(1);
                *left == 0
            });
            Ok(match dies {
                true => Fate::Dies,
                false if sim::once_in(errors) => Fate::Fails,
                false => Fate::Done,
            })
        })
    }

    /// What becomes of it, after it was done or a part of it was.
    fn end(&self, fate: &Fate, what: &str) -> io::Result<()> {
        match fate {
            Fate::Done => Ok(()),
            Fate::Fails => {
                sim::met("the store's disk fails");
                sim::tell(|| format!("disk: {what} fails"));
                Err(io::Error::from_raw_os_error(5))
            }
            Fate::Dies => {
                super::die(self.life, what);
                Err(io::Error::other("its process is dead"))
            }
        }
    }
}

impl StorageBackend for Medium {
    fn len(&self) -> io::Result<u64> {
        self.with(|disk| Ok(disk.cache.len() as u64))
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
        self.with(|disk| {
            let from = offset as usize;
            let bytes = disk.cache.get(from..from + out.len());
            out.copy_from_slice(bytes.ok_or(io::ErrorKind::UnexpectedEof)?);
            Ok(())
        })
    }

    fn set_len(&self, len: u64) -> io::Result<()> {
        let fate = self.fate()?;
        if !matches!(fate, Fate::Fails) {
            self.with(|disk| {
                disk.cache.resize(len as usize, 0);
                Ok(())
            })?;
        }
        self.end(&fate, "a change of its size")
    }

    fn sync_data(&self) -> io::Result<()> {
        let fate = self.fate()?;
        if matches!(fate, Fate::Done) {
            self.with(|disk| {
                disk.platter.resize(disk.cache.len(), 0);
                for (at, len) in std::mem::take(&mut disk.unsynced) {
                    let end = (at + len).min(disk.cache.len());
                    let at = at.min(end);
                    disk.platter[at..end].copy_from_slice(&disk.cache[at..end]);
                }
                Ok(())
            })?;
        }
        self.end(&fate, "a sync")
    }

    fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
        let fate = self.fate()?;
        let sectors = data.len().div_ceil(SECTOR);
        let length = match fate {
            Fate::Done => data.len(),
            Fate::Fails | Fate::Dies => (sim::pick(sectors + 1) * SECTOR).min(data.len()),
        };
        self.with(|disk| {
            let at = offset as usize;
            disk.cache[at..at + length].copy_from_slice(&data[..length]);
            disk.unsynced.push((at, length));
            Ok(())
        })?;
        self.end(&fate, "a write")
    }
}
