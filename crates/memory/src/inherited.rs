//! Descriptors that a process was started with, known by their numbers alone (`sd_listen_fds(3)`).
//!
//! Here since nothing safe tells whose a number is, and no crate above may say so.

use std::io;
use std::os::fd::{FromRawFd as _, OwnedFd, RawFd};

/// A copy of the descriptor with this number, which no process that this one starts inherits; nor does one inherit the descriptor itself from now on.
///
/// # Errors
///
/// EBADF: there is none.
pub fn take(number: RawFd) -> io::Result<OwnedFd> {
    let result = |got: libc::c_int| if got < 0 { Err(io::Error::last_os_error()) } else { Ok(got) };
    // SAFETY: numbers. Whoever owns the descriptor, if anybody does, goes on owning it; only what is started later is told apart by it.
    let copy = unsafe {
        result(libc::fcntl(number, libc::F_SETFD, libc::FD_CLOEXEC))?;
        result(libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 3))?
    };
    // SAFETY: it was made just now, and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(copy) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::os::fd::AsRawFd as _;

    #[test]
    fn a_copy_is_of_the_same_and_a_number_that_is_none_is_an_error() {
        let (mut reader, writer) = io::pipe().unwrap();
        let copy = take(writer.as_raw_fd()).unwrap();
        drop(writer);
        std::fs::File::from(copy).write_all(b"x").unwrap();
        let mut read = Vec::new();
        reader.read_to_end(&mut read).unwrap();
        assert_eq!(read, b"x");
        assert_eq!(take(-1).unwrap_err().raw_os_error(), Some(libc::EBADF));
    }
}
