//! [`Shown`]: a file at addresses that stay mapped.

use std::fs::File;
use std::mem::ManuallyDrop;
use std::os::fd::AsFd;

use rustix::mm::{MapFlags, ProtFlags};

use crate::guard::{self, Slot};
use crate::{IoBuf, Lasting, MapError};

/// A file, mapped and shared with everybody who maps it, in place of the pages of [`Lasting`] memory. When it is dropped, its addresses are zeroes of
/// nobody's again: a buffer of it that is used too late harms nobody.
#[derive(Debug)]
pub struct Shown {
    place: ManuallyDrop<Lasting>,
    slot: Option<Slot>,
}

impl Shown {
    /// Maps the first `len` bytes of a file.
    ///
    /// # Errors
    ///
    /// When the file is shorter than that, or the kernel refuses.
    pub fn file(file: &File, len: usize) -> Result<Shown, MapError> {
        let kernel = |source: std::io::Error| MapError::Kernel { offset: 0, len, source };
        let file_len = file.metadata().map_err(kernel)?.len();
        if len == 0 || len as u64 > file_len {
            return Err(MapError::OutOfFile { offset: 0, len, file_len });
        }
        let slot = guard::reserve()?;
        let place = Lasting::new(len)?;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::FIXED;
        // SAFETY: the range is that of memory which is ours alone and is never unmapped, and to which nobody has a reference: what
        // may be left of buffers from an earlier owner finds other bytes.
        let mapped = unsafe {
            rustix::mm::mmap(place.start().cast(), len, protection, flags, file.as_fd(), 0)
        };
        mapped.map_err(|error| kernel(error.into()))?;
        slot.arm(place.start().addr(), len);
        Ok(Shown { place: ManuallyDrop::new(place), slot: Some(slot) })
    }

    /// Length in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.place.len()
    }

    /// Never: there is at least one byte.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Where it begins.
    #[must_use]
    pub fn start(&self) -> *mut u8 {
        self.place.start()
    }

    /// The `len` bytes from `offset`, or `None` when they are not all inside.
    #[must_use]
    pub fn buf(&self, offset: usize, len: usize) -> Option<IoBuf> {
        self.place.buf(offset, len)
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        self.slot = None;
        let protection = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::PRIVATE | MapFlags::NORESERVE | MapFlags::FIXED;
        // SAFETY: as when the file came: the range stays mapped, and nobody has a reference to it.
        let gone = unsafe {
            rustix::mm::mmap_anonymous(self.start().cast(), self.len(), protection, flags)
        };
        if gone.is_ok() {
            // SAFETY: it is not used after this. Where the file is still mapped, the place is given to nobody else.
            unsafe { ManuallyDrop::drop(&mut self.place) };
        }
    }
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, ftruncate, memfd_create};

    use super::*;

    /// So much at once is nobody else's in this process.
    const LEN: usize = 7 << 12;

    fn file() -> File {
        let fd = memfd_create("shown", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&fd, LEN as u64).unwrap();
        File::from(fd)
    }

    #[test]
    fn a_buffer_that_outlives_its_file_is_memory_of_nobodys() {
        use std::os::unix::fs::FileExt as _;
        let (first, second) = (file(), file());
        let shown = Shown::file(&first, LEN).unwrap();
        let buf = shown.buf(4096, 8).unwrap();
        buf.write(0, b"to all  ");
        let mut found = [0; 8];
        first.read_exact_at(&mut found, 4096).unwrap();
        assert_eq!(&found, b"to all  ");
        drop(shown);
        buf.read(0, &mut found);
        assert_eq!(found, [0; 8]);
        buf.write(0, b"too late");
        first.read_exact_at(&mut found, 4096).unwrap();
        assert_eq!(&found, b"to all  ");
        // The next one finds its own file there.
        let shown = Shown::file(&second, LEN).unwrap();
        assert_eq!(shown.buf(4096, 8).unwrap().as_ptr(), buf.as_ptr());
        shown.buf(4096, 8).unwrap().read(0, &mut found);
        assert_eq!(found, [0; 8]);
        assert!(shown.buf(LEN, 1).is_none() && Shown::file(&second, LEN + 1).is_err());
    }
}
