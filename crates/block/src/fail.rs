//! What every volume needs to say no: errors of the set-up, `errno` of the I/O path, and the check of a request.

use std::io;

use memory::IoBuf;

use crate::{IoError, Request, VolumeError};

/// The first half of a [`VolumeError`]; [`Failure::help`] and [`Failure::because`] make it whole.
pub(crate) fn fail(volume: &str, what: impl Into<String>) -> VolumeError {
    VolumeError { volume: volume.to_owned(), what: what.into(), help: None, source: None }
}

/// Adding to a [`VolumeError`].
pub(crate) trait Failure {
    /// What mends it.
    fn help(self, help: impl Into<String>) -> Self;
    /// The kernel's reason.
    fn because(self, source: impl Into<io::Error>) -> Self;
}

impl Failure for VolumeError {
    fn help(mut self, help: impl Into<String>) -> VolumeError {
        self.help = Some(help.into());
        self
    }

    fn because(mut self, source: impl Into<io::Error>) -> VolumeError {
        self.source = Some(source.into());
        self
    }
}

/// What a negative result of an operation means to a client.
pub(crate) fn io_error(result: i32) -> IoError {
    match -result {
        libc::ENOSPC | libc::EDQUOT | libc::EFBIG => IoError::NoSpace,
        libc::ESTALE | libc::ENODEV | libc::ENXIO | libc::EBADF | libc::ENOENT => IoError::Gone,
        libc::EOPNOTSUPP => IoError::Unsupported,
        libc::EROFS | libc::EPERM => IoError::ReadOnly,
        // A persistent reservation that this host is not part of, and a host on Ceph's blocklist.
        libc::EBADE | libc::ESHUTDOWN => IoError::Fenced,
        _ => IoError::Io,
    }
}

impl VolumeError {
    /// Whether another host has taken the device over.
    #[must_use]
    pub fn is_fenced(&self) -> bool {
        let errno = self.source.as_ref().and_then(io::Error::raw_os_error);
        errno.is_some_and(|errno| io_error(-errno) == IoError::Fenced)
    }
}

/// An answer that says nothing about the medium: the same again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Passing {
    /// At once: a signal came in between.
    Now,
    /// A little later: something was short.
    Soon,
}

/// Whether the result of an operation says only that it should be repeated. The kernel's own numbers for "begin the system call again" (512
/// to 514 and 516) are not meant for us, and reach us from some file systems all the same.
pub(crate) fn passing(result: i32) -> Option<Passing> {
    match -result {
        libc::EINTR | 512..=514 | 516 => Some(Passing::Now),
        libc::EAGAIN => Some(Passing::Soon),
        _ => None,
    }
}

/// Whether a request lies inside a volume and on its blocks. Callers promise it; a lane that
/// believed them would only need one mistake elsewhere to write where it must not.
#[inline]
pub(crate) fn check(
    request: &Request<'_>,
    bytes: u64,
    block_size: u32,
    read_only: bool,
) -> Result<(), IoError> {
    if read_only && request.op.writes() {
        return Err(IoError::ReadOnly);
    }
    let end = request.offset.checked_add(request.len).ok_or(IoError::OutOfRange)?;
    if end > bytes {
        return Err(IoError::OutOfRange);
    }
    // Block sizes are powers of two (checked when the volume is opened).
    if (request.offset | request.len) & u64::from(block_size - 1) != 0 {
        return Err(IoError::Io);
    }
    Ok(())
}

/// Calls `each` with the parts of `bufs` that hold the bytes from `skip` on, `limit` bytes at the most, until it answers
/// false; returns how many bytes it saw. Empty pieces are left out.
pub(crate) fn walk(
    bufs: &[IoBuf],
    skip: u64,
    limit: u64,
    mut each: impl FnMut(IoBuf) -> bool,
) -> u64 {
    let (mut skip, mut seen) = (skip, 0);
    for buf in bufs {
        if seen == limit {
            break;
        }
        let len = buf.len() as u64;
        if skip >= len {
            skip -= len;
            continue;
        }
        let take = (len - skip).min(limit - seen);
        // Both are at most `buf.len()`, a usize.
        if !each(buf.slice(skip as usize, take as usize)) {
            break;
        }
        skip = 0;
        seen += take;
    }
    seen
}
