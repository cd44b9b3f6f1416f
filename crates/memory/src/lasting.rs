//! [`Lasting`]: memory of the program's own that stays mapped.

use std::ptr::{self, NonNull};
use std::sync::{Mutex, PoisonError};

use rustix::mm::{Advice, MapFlags, ProtFlags};

use crate::{IoBuf, MapError};

/// What was dropped, and waits for the next that wants as much.
static LEFT: Mutex<Vec<Piece>> = Mutex::new(Vec::new());

#[derive(Debug, Clone, Copy)]
struct Piece {
    ptr: NonNull<u8>,
    len: usize,
}

// SAFETY: an address and a length of memory that is never unmapped; access goes through IoBuf.
unsafe impl Send for Piece {}
// SAFETY: as for Send.
unsafe impl Sync for Piece {}

/// Zeroes that take memory only where they are touched, for buffers that a kernel operation may still use when their owner is gone: what
/// is dropped is given to the next that asks for as much, and never unmapped. So a buffer of it never leads to memory of another kind.
#[derive(Debug)]
pub struct Lasting(Piece);

impl Lasting {
    /// Takes `len` bytes: what another has left, or new ones.
    ///
    /// # Errors
    ///
    /// When the kernel refuses.
    pub fn new(len: usize) -> Result<Lasting, MapError> {
        let mut left = LEFT.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = left.iter().position(|piece| piece.len == len) {
            return Ok(Lasting(left.swap_remove(at)));
        }
        drop(left);
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
        let ptr = unsafe {
            rustix::mm::mmap_anonymous(
                ptr::null_mut(),
                len,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::PRIVATE | MapFlags::NORESERVE,
            )
        }
        .map_err(|error| MapError::Kernel { offset: 0, len, source: error.into() })?;
        let ptr = NonNull::new(ptr.cast::<u8>()).expect("mmap returned a null pointer");
        Ok(Lasting(Piece { ptr, len }))
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.0.len
    }

    /// Never: there is at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    pub(crate) fn start(&self) -> *mut u8 {
        self.0.ptr.as_ptr()
    }

    /// The `len` bytes from `offset`, or `None` when they are not all inside.
    #[must_use]
    pub fn buf(&self, offset: usize, len: usize) -> Option<IoBuf> {
        let end = offset.checked_add(len)?;
        if end > self.0.len {
            return None;
        }
        // SAFETY: inside a mapping that is never unmapped, and that nobody has a reference to.
        Some(unsafe { IoBuf::new(self.0.ptr.as_ptr().wrapping_add(offset), len) })
    }
}

impl Drop for Lasting {
    fn drop(&mut self) {
        let piece = self.0;
        let leave = move || {
            // SAFETY: a private mapping of our own: its pages read as zeroes afterwards, and it stays mapped.
            let given = unsafe {
                rustix::mm::madvise(piece.ptr.as_ptr().cast(), piece.len, Advice::LinuxDontNeed)
            };
            if given.is_ok() {
                LEFT.lock().unwrap_or_else(PoisonError::into_inner).push(piece);
            }
        };
        #[cfg(feature = "sim")]
        if crate::sim::bury(leave) {
            return;
        }
        leave();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// So much at once is nobody else's in this process.
    const LEN: usize = 5 << 12;

    #[test]
    fn what_was_dropped_stays_mapped_and_is_given_out_again_as_zeroes() {
        let first = Lasting::new(LEN).unwrap();
        let buf = first.buf(4096, 8).unwrap();
        buf.fill(7);
        drop(first);
        // An operation that ends late does no harm.
        buf.fill(9);
        let second = Lasting::new(LEN + 4096).unwrap();
        assert_ne!(second.buf(4096, 8).unwrap().as_ptr(), buf.as_ptr());
        let third = Lasting::new(LEN).unwrap();
        assert_eq!(third.buf(4096, 8).unwrap().as_ptr(), buf.as_ptr());
        drop(third);
        let mut bytes = [1; 8];
        Lasting::new(LEN).unwrap().buf(4096, 8).unwrap().read(0, &mut bytes);
        assert_eq!(bytes, [0; 8]);
    }

    #[test]
    fn buf_checks_its_bounds() {
        let lasting = Lasting::new(4096).unwrap();
        assert!(lasting.buf(0, 4096).is_some());
        assert!(lasting.buf(4096, 0).is_some());
        assert!(lasting.buf(1, 4096).is_none());
        assert!(lasting.buf(usize::MAX, 2).is_none());
    }
}
