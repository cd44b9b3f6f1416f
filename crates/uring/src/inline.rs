//! Reads and writes on the calling thread, for files where the ring gains nothing.
//!
//! A tmpfs cannot be asked not to block, so io_uring hands each of its operations to a worker thread, which costs more than the
//! copy itself. Nothing there waits for a device, so the thread may as well make the copy.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};

use memory::IoBuf;

use crate::Op;

/// Reads from `offset` on into `bufs`; returns how many bytes there were.
///
/// # Errors
///
/// The kernel's.
///
/// # Panics
///
/// When there are more than [`Op::MAX_BUFS`] pieces.
pub fn read_at(file: BorrowedFd<'_>, bufs: &[IoBuf], offset: u64) -> io::Result<usize> {
    let (fd, offset, count) = arguments(file, bufs, offset)?;
    if let [buf] = bufs {
        // SAFETY: the memory is mapped (IoBuf's constructor).
        return result(unsafe { libc::pread(fd, buf.as_ptr().cast(), buf.len(), offset) });
    }
    // SAFETY: IoBuf is an iovec (repr(transparent)), the array lives through the call, and the memory it names is mapped
    // (IoBuf's constructor).
    result(unsafe { libc::preadv(fd, bufs.as_ptr().cast(), count, offset) })
}

/// Writes `bufs` from `offset` on; returns how many bytes were taken.
///
/// # Errors
///
/// The kernel's.
///
/// # Panics
///
/// When there are more than [`Op::MAX_BUFS`] pieces.
pub fn write_at(file: BorrowedFd<'_>, bufs: &[IoBuf], offset: u64) -> io::Result<usize> {
    let (fd, offset, count) = arguments(file, bufs, offset)?;
    if let [buf] = bufs {
        // SAFETY: as in `read_at`; the kernel only reads the memory.
        return result(unsafe { libc::pwrite(fd, buf.as_ptr().cast(), buf.len(), offset) });
    }
    // SAFETY: as in `read_at`; the kernel only reads the memory.
    result(unsafe { libc::pwritev(fd, bufs.as_ptr().cast(), count, offset) })
}

fn arguments(
    file: BorrowedFd<'_>,
    bufs: &[IoBuf],
    offset: u64,
) -> io::Result<(libc::c_int, libc::off_t, libc::c_int)> {
    assert!(bufs.len() <= Op::MAX_BUFS, "a transfer of {} pieces", bufs.len());
    let offset =
        libc::off_t::try_from(offset).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))?;
    // At most MAX_BUFS.
    Ok((file.as_raw_fd(), offset, bufs.len() as libc::c_int))
}

fn result(moved: libc::ssize_t) -> io::Result<usize> {
    usize::try_from(moved).map_err(|_| io::Error::last_os_error())
}
