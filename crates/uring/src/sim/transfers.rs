//! What becomes of transfers: cut short, written back, of a file that is out of order.

use std::io;
use std::os::fd::BorrowedFd;

use memory::{IoBuf, sim};

use super::cache::Open;
use super::faults::fails;
use super::kernel;

/// Writes back.
pub(super) fn sync(open: Option<Open>, part: Option<(u64, u64)>, fails: u64) -> i32 {
    open.map_or(0, |open| {
        kernel(|kernel| {
            let result = kernel.caches.sync(open, part, fails);
            kernel.errors.writes += u64::from(result < 0);
            result
        })
    })
}

pub(super) fn moved(result: io::Result<usize>) -> i32 {
    match result {
        // At most what one operation moves.
        Ok(bytes) => bytes as i32,
        Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
    }
}

/// The pieces up to somewhere in them, once in so many times.
pub(super) fn cut(bufs: &[IoBuf], once_in: u64) -> Vec<IoBuf> {
    let all: usize = bufs.iter().map(|buf| buf.len()).sum();
    // In sectors: what direct I/O can move.
    let sectors = all / 512;
    if sectors < 2 || !fails("a transfer is cut short", once_in) {
        return bufs.to_vec();
    }
    let mut left = 512 * (1 + sim::pick(sectors - 1));
    let mut part = Vec::new();
    for buf in bufs {
        let len = buf.len().min(left);
        if len > 0 {
            part.push(buf.slice(0, len));
        }
        left -= len;
    }
    part
}

/// Errors that do not pass are those of these files alone.
pub fn only_on(files: &[BorrowedFd<'_>]) {
    kernel(|kernel| {
        let opens = files.iter().filter_map(|file| kernel.caches.open(*file));
        kernel.sick = Some(opens.map(Open::inode).collect());
    });
}
