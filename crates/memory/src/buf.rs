//! [`IoBuf`]: a piece of memory owned elsewhere.

use std::fmt;
use std::ptr;

/// A piece of memory that others may change at any time, laid out as the kernel's `iovec`.
///
/// It is a plain value: copying it does not copy memory and dropping it frees nothing. Since the bytes may change
/// between two reads, copy what must be judged first ([`read`](IoBuf::read)) and judge the copy.
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct IoBuf(libc::iovec);

// SAFETY: an IoBuf is an address and a length. The constructor's caller promises that the memory stays mapped for as long
// as any copy is used, on whichever thread, and all access goes through raw copies that create no references.
unsafe impl Send for IoBuf {}
// SAFETY: as for Send; there is no interior state.
unsafe impl Sync for IoBuf {}

impl IoBuf {
    /// No memory at all: length 0.
    pub const EMPTY: IoBuf =
        IoBuf(libc::iovec { iov_base: ptr::dangling_mut::<u8>().cast(), iov_len: 0 });

    /// Names `len` bytes from `ptr`.
    ///
    /// # Safety
    ///
    /// The range is mapped readable (and writable, if it will be written or given to a reading operation), and stays so until the
    /// last copy of this value has been used and every kernel operation that was given it has completed. No Rust
    /// reference to the range exists meanwhile.
    #[inline]
    #[must_use]
    pub unsafe fn new(ptr: *mut u8, len: usize) -> IoBuf {
        IoBuf(libc::iovec { iov_base: ptr.cast(), iov_len: len })
    }

    /// Start of the range.
    #[inline]
    #[must_use]
    pub fn as_ptr(self) -> *mut u8 {
        self.0.iov_base.cast()
    }

    /// Length in bytes.
    #[inline]
    #[must_use]
    pub fn len(self) -> usize {
        self.0.iov_len
    }

    /// Whether the length is 0.
    #[inline]
    #[must_use]
    pub fn is_empty(self) -> bool {
        self.0.iov_len == 0
    }

    /// The `len` bytes that begin at `offset` of this range.
    ///
    /// # Panics
    ///
    /// When they are not all inside: offsets are computed by us, so that is our own defect.
    #[inline]
    #[must_use]
    pub fn slice(self, offset: usize, len: usize) -> IoBuf {
        assert!(offset <= self.len() && len <= self.len() - offset, "slice outside of its IoBuf");
        // SAFETY: the result lies inside a range for which the constructor's promise holds.
        unsafe { IoBuf::new(self.as_ptr().wrapping_add(offset), len) }
    }

    /// Copies `dst.len()` bytes from `offset` into `dst`.
    ///
    /// # Panics
    ///
    /// When the range is not inside this buffer.
    #[inline]
    pub fn read(self, offset: usize, dst: &mut [u8]) {
        let src = self.slice(offset, dst.len());
        // SAFETY: `src` is mapped (constructor's promise) and `dst` is a Rust slice, which no IoBuf covers. A concurrent
        // writer can only make the copied bytes a mixture of old and new; callers judge the copy.
        unsafe { ptr::copy_nonoverlapping(src.as_ptr(), dst.as_mut_ptr(), dst.len()) }
    }

    /// Copies `src` to `offset` of this buffer.
    ///
    /// # Panics
    ///
    /// When the range is not inside this buffer.
    #[inline]
    pub fn write(self, offset: usize, src: &[u8]) {
        let dst = self.slice(offset, src.len());
        // SAFETY: as in `read`, the other way round.
        unsafe { ptr::copy_nonoverlapping(src.as_ptr(), dst.as_ptr(), src.len()) }
    }

    /// Copies the whole of `src` to the start of this buffer. The two may overlap.
    ///
    /// # Panics
    ///
    /// When `src` is longer than this buffer.
    #[inline]
    pub fn copy_from(self, src: IoBuf) {
        let dst = self.slice(0, src.len());
        // SAFETY: both ranges are mapped (constructor's promise); `copy` allows overlap.
        unsafe { ptr::copy(src.as_ptr(), dst.as_ptr(), src.len()) }
    }

    /// Asks the processor for so many lines of 64 bytes from its beginning on, which are read soon; of what follows a shorter one as well. A hint: it changes nothing, and comes to
    /// nothing where no memory is.
    #[inline]
    pub fn expect_reads<const LINES: usize>(self) {
        for line in 0..LINES {
            hint(self.as_ptr().wrapping_add(line * LINE_BYTES));
        }
    }

    /// Sets every byte.
    #[inline]
    pub fn fill(self, byte: u8) {
        // SAFETY: the range is mapped writable (constructor's promise).
        unsafe { ptr::write_bytes(self.as_ptr(), byte, self.len()) }
    }
}

/// Bytes of a line of the cache, where hints are given.
const LINE_BYTES: usize = 64;

#[inline]
fn hint(line: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a hint is of any address, and is no access to it.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(line.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = line;
}

impl fmt::Debug for IoBuf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IoBuf({:p}, {})", self.as_ptr(), self.len())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Lasting;

    #[test]
    fn a_hint_is_of_any_address() {
        IoBuf::EMPTY.expect_reads::<64>();
        // SAFETY: nothing of it is read or written.
        let nowhere = unsafe { IoBuf::new(ptr::without_provenance_mut(1), 100_000) };
        nowhere.expect_reads::<64>();
        let memory = Lasting::new(4096).unwrap();
        let buf = memory.buf(0, 4096).unwrap();
        buf.fill(7);
        buf.expect_reads::<2>();
        let mut bytes = [0; 200];
        buf.read(0, &mut bytes);
        assert_eq!(bytes, [7; 200]);
    }
}
