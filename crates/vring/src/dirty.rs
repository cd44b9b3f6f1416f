//! The dirty log: which pages of the guest's memory the back end wrote (vhost-user, LOG_SHMFD).
//!
//! While a client migrates, its front end shares a bitmap: one bit for each 4 KiB page of guest
//! physical memory, page `n` at bit `n % 8` of byte `n / 8`. The back end sets the bits of what
//! it writes, data and used ring; the front end takes and clears them while it copies pages.
//!
//! Order matters: a bit is set *after* the write it stands for has landed (for data that the kernel
//! moves: at completion, not at submission) and before the driver is told. Set before, the front end
//! could take the bit, copy the old page, and never look again. Each bit is set by an atomic OR
//! (other queues set their bits in the same bytes) even where it seems set already: a load that sees the
//! bit could pass a data write that is still on its way, just while the front end takes the bit.
//!
//! Used by channel threads, and only while a migration runs; off, it costs one branch.

use std::fs::File;
use std::sync::atomic::{AtomicU8, Ordering};

use memory::{Access, MapError, Mapping};
use thiserror::Error;

use crate::mem::GuestAddr;

#[cfg(test)]
mod tests;

/// log2 of the bytes that one bit stands for.
const PAGE_SHIFT: u32 = 12;

/// Why a log cannot be used.
#[derive(Debug, Error)]
pub enum DirtyLogError {
    /// SET_LOG_BASE named no bytes, or more than this machine can address.
    #[error("dirty log of {0} bytes; the front end must send 1 bit per 4 KiB of guest memory")]
    Size(u64),
    /// The offset and the size go beyond the end of the file, or mmap fails.
    #[error("cannot map the dirty log")]
    Map(#[from] MapError),
}

/// The shared bitmap.
#[derive(Debug)]
pub struct DirtyLog {
    mapping: Mapping,
    /// Bytes before the bitmap: the mapping starts at a page.
    before: usize,
    size: usize,
}

impl DirtyLog {
    /// Maps `size` bytes of bitmap at `offset` of the file that came with SET_LOG_BASE.
    pub fn open(file: &File, offset: u64, size: u64) -> Result<DirtyLog, DirtyLogError> {
        let page = rustix::param::page_size() as u64;
        let before = offset % page;
        let len = size.checked_add(before).and_then(|len| usize::try_from(len).ok());
        let (Some(len), Ok(bytes)) = (len.filter(|_| size > 0), usize::try_from(size)) else {
            return Err(DirtyLogError::Size(size));
        };
        let mapping = Mapping::file(file, offset - before, len, Access::ReadWrite)?;
        // The cast fits: less than a page.
        Ok(DirtyLog { mapping, before: before as usize, size: bytes })
    }

    fn byte(&self, index: usize) -> &AtomicU8 {
        assert!(index < self.size);
        // SAFETY: inside the mapping, which lives as long as `self`; bytes have no alignment, and
        // everybody uses them atomically.
        unsafe { AtomicU8::from_ptr(self.mapping.as_ptr().add(self.before + index)) }
    }

    /// Marks the pages that `len` bytes at `addr` touch. Pages beyond the log are not recorded:
    /// the front end sized it, so it does not have them.
    pub fn mark(&self, addr: GuestAddr, len: usize) {
        if len == 0 {
            return;
        }
        let first = addr.0 >> PAGE_SHIFT;
        let last = addr.0.saturating_add(len as u64 - 1) >> PAGE_SHIFT;
        let Some(end) = (self.size as u64).checked_mul(8).and_then(|pages| pages.checked_sub(1))
        else {
            return;
        };
        let (mut page, last) = (first, last.min(end));
        while page <= last {
            // All the bits of this byte at once. The casts fit: below 8, and below the size.
            let from = (page % 8) as u32;
            let to = ((last - page).min(u64::from(7 - from)) as u32) + from;
            let mask = (0xffu32 << from) & (0xffu32 >> (7 - to));
            self.byte((page / 8) as usize).fetch_or(mask as u8, Ordering::SeqCst);
            page += u64::from(to - from) + 1;
        }
    }

    /// Whether the page that has `addr` is marked.
    pub fn is_marked(&self, addr: GuestAddr) -> bool {
        let page = addr.0 >> PAGE_SHIFT;
        usize::try_from(page / 8)
            .ok()
            .filter(|&index| index < self.size)
            .is_some_and(|index| self.byte(index).load(Ordering::SeqCst) & (1 << (page % 8)) != 0)
    }
}
