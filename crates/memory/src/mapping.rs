//! [`Mapping`]: one mmap, unmapped on drop, guarded against truncation of its file.

use std::fs::File;
use std::marker::PhantomData;
use std::os::fd::AsFd;
use std::ptr::{self, NonNull};
use std::sync::atomic::AtomicU64;

use rustix::mm::{MapFlags, ProtFlags};

use crate::IoBuf;
use crate::guard::{self, Slot};

/// What a mapping may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Reading and writing.
    ReadWrite,
    /// Reading only; a write raises SIGSEGV, so never hand such a mapping's buffers to a reading operation.
    ReadOnly,
}

/// Why a range could not be mapped.
#[derive(Debug, thiserror::Error)]
pub enum MapError {
    /// Length 0, or offset plus length beyond what the file has.
    #[error("the file has {file_len} bytes, but {len} bytes at offset {offset} were to be mapped")]
    OutOfFile {
        /// First byte asked for.
        offset: u64,
        /// Number of bytes asked for.
        len: usize,
        /// Size of the file.
        file_len: u64,
    },
    /// The guard's table is full.
    #[error(
        "more than {0} files are mapped in this process; remove adapters or run another data plane"
    )]
    TooMany(usize),
    /// The kernel refused.
    #[error("mmap of {len} bytes at offset {offset}: {source}")]
    Kernel {
        /// First byte asked for.
        offset: u64,
        /// Number of bytes asked for.
        len: usize,
        /// The kernel's reason.
        source: std::io::Error,
    },
}

/// A mapped range of memory. See the crate's documentation.
#[derive(Debug)]
pub struct Mapping {
    ptr: NonNull<u8>,
    len: usize,
    slot: Option<Slot>,
}

// SAFETY: the mapping is memory of the process, valid on every thread until it is dropped; access goes through IoBuf.
unsafe impl Send for Mapping {}
// SAFETY: as for Send.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps `len` bytes of `file` from `offset`, shared with everybody who maps the same file.
    ///
    /// # Errors
    ///
    /// When the file is shorter than that, the offset is not a multiple of the page size, or the kernel refuses.
    pub fn file(file: &File, offset: u64, len: usize, access: Access) -> Result<Mapping, MapError> {
        let protection = match access {
            Access::ReadWrite => ProtFlags::READ | ProtFlags::WRITE,
            Access::ReadOnly => ProtFlags::READ,
        };
        let (ptr, slot) = map(file, offset, len, protection)?;
        Ok(Mapping { ptr, len, slot: Some(slot) })
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Never: a mapping has at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Start of the mapping.
    #[must_use]
    pub fn as_ptr(&self) -> *mut u8 {
        self.ptr.as_ptr()
    }

    /// Whether the file was truncated under the mapping and somebody touched the missing part. From then on the
    /// mapping is private zero pages: what is written to it is seen by nobody.
    #[must_use]
    pub fn damaged(&self) -> bool {
        self.slot.as_ref().is_some_and(Slot::damaged)
    }

    /// The mapping as 64-bit words for counters and rings that several processes share. A trailing part of a word is left
    /// out. On a read-only mapping only loads are allowed: a store raises SIGSEGV.
    #[must_use]
    pub fn words(&self) -> &[AtomicU64] {
        let count = self.len / size_of::<AtomicU64>();
        // SAFETY: mappings begin at a page, so the words are aligned; any bit pattern is a valid AtomicU64; the memory stays
        // mapped while `self` is borrowed; others change it by atomic stores or not at all.
        unsafe { std::slice::from_raw_parts(self.as_ptr().cast::<AtomicU64>(), count) }
    }

    /// The `len` bytes from `offset`, or `None` when they are not all inside. Of a mapping that is never dropped, so that the buffer is good for
    /// ever; [`Mapping::view`] is for the others. What outlives its memory does not compile:
    ///
    /// ```
    /// # use memory::{Access, Mapping};
    /// # fn f(file: &std::fs::File) {
    /// let mapping = Mapping::file(file, 0, 4096, Access::ReadWrite).unwrap();
    /// let mapping: &'static Mapping = Box::leak(Box::new(mapping));
    /// mapping.buf(0, 512).unwrap().fill(0);
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0597
    /// # use memory::{Access, Mapping};
    /// # fn f(file: &std::fs::File) {
    /// let mapping = Mapping::file(file, 0, 4096, Access::ReadWrite).unwrap();
    /// mapping.buf(0, 512).unwrap().fill(0);
    /// # }
    /// ```
    ///
    /// ```compile_fail,E0505
    /// # use memory::{Access, Mapping};
    /// # fn f(file: &std::fs::File) {
    /// let mapping = Mapping::file(file, 0, 4096, Access::ReadWrite).unwrap();
    /// let view = mapping.view(0, 512).unwrap();
    /// drop(mapping);
    /// view.fill(0);
    /// # }
    /// ```
    #[must_use]
    pub fn buf(&'static self, offset: usize, len: usize) -> Option<IoBuf> {
        self.view(offset, len).map(|view| view.buf)
    }

    /// The `len` bytes from `offset`, or `None` when they are not all inside: to be copied from and to while the mapping is borrowed.
    #[inline]
    #[must_use]
    pub fn view(&self, offset: usize, len: usize) -> Option<View<'_>> {
        let end = offset.checked_add(len)?;
        if end > self.len {
            return None;
        }
        // SAFETY: inside the mapping, which is borrowed for as long as the view lives; a view gives no copy of its buffer away but
        // for a mapping that is borrowed for ever.
        let buf = unsafe { IoBuf::new(self.as_ptr().wrapping_add(offset), len) };
        Some(View { buf, _of: PhantomData })
    }
}

/// A part of a mapping that may go: what an [`IoBuf`] is, for as long as the mapping is borrowed.
#[derive(Debug, Clone, Copy)]
pub struct View<'a> {
    buf: IoBuf,
    _of: PhantomData<&'a Mapping>,
}

impl View<'_> {
    /// The `len` bytes that begin at `offset` of this part. Panics as [`IoBuf::slice`].
    #[inline]
    #[must_use]
    pub fn slice(self, offset: usize, len: usize) -> Self {
        View { buf: self.buf.slice(offset, len), ..self }
    }

    /// Copies `dst.len()` bytes from `offset` into `dst`. Panics as [`IoBuf::read`].
    #[inline]
    pub fn read(self, offset: usize, dst: &mut [u8]) {
        self.buf.read(offset, dst);
    }

    /// Copies `src` to `offset`. Panics as [`IoBuf::write`].
    #[inline]
    pub fn write(self, offset: usize, src: &[u8]) {
        self.buf.write(offset, src);
    }

    /// Copies the whole of `src` to the start. Panics as [`IoBuf::copy_from`].
    #[inline]
    pub fn copy_from(self, src: IoBuf) {
        self.buf.copy_from(src);
    }

    /// Copies all of it to the start of `dst`. Panics as [`IoBuf::copy_from`].
    #[inline]
    pub fn copy_to(self, dst: IoBuf) {
        dst.copy_from(self.buf);
    }

    /// Sets every byte.
    #[inline]
    pub fn fill(self, byte: u8) {
        self.buf.fill(byte);
    }
}

/// A part of a file, at an address of the kernel's choice, guarded; errors as of [`Mapping::file`].
pub(crate) fn map(
    file: &File,
    offset: u64,
    len: usize,
    protection: ProtFlags,
) -> Result<(NonNull<u8>, Slot), MapError> {
    let kernel = |source: std::io::Error| MapError::Kernel { offset, len, source };
    let file_len = file.metadata().map_err(kernel)?.len();
    if len == 0 || offset.checked_add(len as u64).is_none_or(|end| end > file_len) {
        return Err(MapError::OutOfFile { offset, len, file_len });
    }
    let slot = guard::reserve()?;
    let (anywhere, file) = (ptr::null_mut(), file.as_fd());
    // SAFETY: a new mapping at an address of the kernel's choice touches no memory of ours.
    let mapped =
        unsafe { rustix::mm::mmap(anywhere, len, protection, MapFlags::SHARED, file, offset) };
    let ptr = mapped.map_err(|error| kernel(error.into()))?;
    let ptr = NonNull::new(ptr.cast::<u8>()).expect("mmap returned a null pointer");
    slot.arm(ptr.as_ptr().expose_provenance(), len);
    Ok((ptr, slot))
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // The slot first: once the range is unmapped the kernel may give the addresses to another mapping.
        self.slot = None;
        let (start, len) = (self.ptr.as_ptr().expose_provenance(), self.len);
        // SAFETY: the range was mapped by the constructor and no view of it lives: they borrow it. Whoever
        // made an IoBuf of its address has promised that it is not used any more.
        let unmap = move || unsafe {
            let result = rustix::mm::munmap(ptr::with_exposed_provenance_mut(start), len);
            debug_assert!(result.is_ok(), "munmap: {result:?}");
        };
        #[cfg(feature = "sim")]
        if crate::sim::bury(unmap) {
            return;
        }
        unmap();
    }
}

#[cfg(test)]
mod tests;
