//! A client's memory: a memfd, mapped here and shared with the server.

use std::fs::File;
use std::sync::{Mutex, PoisonError};

use memory::{IoBuf, Shown};
use rustix::fs::MemfdFlags;
use thiserror::Error;

use crate::mem::{GuestAddr, MemTable, RegionSpec, UserAddr};

/// Why memory cannot be made.
#[derive(Debug, Error)]
#[error("cannot make {bytes} bytes of client memory: {reason}")]
pub struct DriverMemoryError {
    bytes: u64,
    reason: String,
}

/// A piece of a client's memory.
#[derive(Clone, Copy, Debug)]
pub struct DriverRange {
    /// Where the guest sees it.
    pub guest: GuestAddr,
    /// Where the server is told that we see it.
    pub user: UserAddr,
    /// Where we see it.
    pub buf: IoBuf,
}

struct Region {
    guest: u64,
    size: u64,
    /// In the file and in the mapping.
    offset: u64,
    /// The first byte that is not given out.
    next: u64,
}

/// A client's memory: one memfd, one or several regions of guest addresses in it, and an allocator
/// that only ever gives out.
pub struct DriverMemory {
    file: File,
    mapping: Shown,
    /// Where the server is told that the mapping begins.
    user: u64,
    regions: Mutex<Vec<Region>>,
}

impl DriverMemory {
    /// One region of `bytes`, from guest address 0x1_0000 on, so that a forgotten address is no memory.
    pub fn new(bytes: u64) -> Result<DriverMemory, DriverMemoryError> {
        DriverMemory::with_regions(&[(GuestAddr(0x1_0000), bytes)])
    }

    /// Regions at these guest addresses; sizes are rounded up to pages.
    pub fn with_regions(regions: &[(GuestAddr, u64)]) -> Result<DriverMemory, DriverMemoryError> {
        let bytes = regions.iter().map(|&(_, size)| size).fold(0, u64::saturating_add);
        let failed = |reason: String| DriverMemoryError { bytes, reason };
        let page = rustix::param::page_size() as u64;
        let mut offset = 0u64;
        let mut laid = Vec::new();
        for &(GuestAddr(guest), size) in regions {
            let size = size.checked_next_multiple_of(page).filter(|&s| s > 0);
            let end = size.and_then(|size| offset.checked_add(size));
            let (Some(size), Some(end)) = (size.filter(|_| guest % page == 0), end) else {
                let reason = "regions start at pages, and sizes are more than 0 and fit in 64 bits";
                return Err(failed(reason.into()));
            };
            laid.push(Region { guest, size, offset, next: 0 });
            offset = end;
        }
        let len = usize::try_from(offset).map_err(|e| failed(e.to_string()))?;
        let fd = rustix::fs::memfd_create("trunkline-client", MemfdFlags::CLOEXEC)
            .map_err(|e| failed(e.to_string()))?;
        rustix::fs::ftruncate(&fd, offset).map_err(|e| failed(e.to_string()))?;
        let file = File::from(fd);
        let mapping = Shown::file(&file, len).map_err(|e| failed(e.to_string()))?;
        let user = mapping.start().addr() as u64;
        Ok(DriverMemory { file, mapping, user, regions: Mutex::new(laid) })
    }

    /// Has the server told that it is mapped here, which is but a name for it: so what is told does not depend on what else is mapped.
    #[must_use]
    pub fn told_at(self, UserAddr(user): UserAddr) -> DriverMemory {
        DriverMemory { user, ..self }
    }

    /// The memory's file, to be sent with the regions.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Takes `len` bytes aligned to `align` (a power of two) out of the first region that has them.
    /// They are the client's as long as the memory, and nobody's afterwards.
    pub fn alloc(&self, len: usize, align: usize) -> Option<DriverRange> {
        assert!(align.is_power_of_two());
        let mut regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        regions.iter_mut().find_map(|region| {
            // Regions start at pages, so aligning within the region aligns the address.
            let at = region.next.checked_next_multiple_of(align as u64)?;
            let end = at.checked_add(len as u64).filter(|&end| end <= region.size)?;
            // The cast fits: inside the mapping.
            let buf = self.buf_at((region.offset + at) as usize, len);
            region.next = end;
            let user = UserAddr(self.user + region.offset + at);
            Some(DriverRange { guest: GuestAddr(region.guest + at), user, buf })
        })
    }

    /// The `len` bytes at a guest address, if one region has them all.
    pub fn buf(&self, GuestAddr(addr): GuestAddr, len: usize) -> Option<IoBuf> {
        let regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        regions.iter().find_map(|region| {
            let at = addr.checked_sub(region.guest)?;
            at.checked_add(len as u64).filter(|&end| end <= region.size)?;
            // The cast fits: inside the mapping.
            Some(self.buf_at((region.offset + at) as usize, len))
        })
    }

    fn buf_at(&self, offset: usize, len: usize) -> IoBuf {
        self.mapping.buf(offset, len).expect("a region is inside of its file")
    }

    /// The regions as the server is to be told of them, each with its own handle of the file.
    pub fn regions(&self) -> std::io::Result<Vec<RegionSpec>> {
        let regions = self.regions.lock().unwrap_or_else(PoisonError::into_inner);
        regions
            .iter()
            .map(|region| {
                Ok(RegionSpec {
                    guest: GuestAddr(region.guest),
                    user: UserAddr(self.user + region.offset),
                    size: region.size,
                    offset: region.offset,
                    file: self.file.try_clone()?,
                })
            })
            .collect()
    }

    /// The memory as a server in the same process sees it: mapped a second time.
    pub fn table(&self) -> Result<MemTable, DriverMemoryError> {
        let failed =
            |reason: String| DriverMemoryError { bytes: self.mapping.len() as u64, reason };
        let regions = self.regions().map_err(|e| failed(e.to_string()))?;
        MemTable::new(regions).map_err(|e| failed(e.to_string()))
    }
}

impl std::fmt::Debug for DriverMemory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("DriverMemory").field("bytes", &self.mapping.len()).finish_non_exhaustive()
    }
}
