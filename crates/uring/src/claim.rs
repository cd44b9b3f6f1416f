//! A mark on an open file that others can see, and that stays as long as the kernel has anything to do with it.
//!
//! It is a read lock on one byte that belongs to the open file and not to a process (`F_OFD_SETLK`): an operation in flight keeps its file
//! open, so the mark goes when the last of them has ended, whatever has become of the process. Unlike `flock` there are as many marks as a file
//! can have bytes, and a file that is open for reading alone can carry one.
//!
//! On NFS and SMB a `flock` is such a lock too, of the whole file: it is no mark. The kernel shows one lock only, so there a mark beside the `flock` of
//! another reader may stay unseen.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

fn lock(kind: i32, byte: u64) -> io::Result<libc::flock> {
    lock_of(kind, byte, 1)
}

fn lock_of(kind: i32, byte: u64, bytes: u16) -> io::Result<libc::flock> {
    let start = i64::try_from(byte).map_err(|_| io::Error::from_raw_os_error(libc::EOVERFLOW))?;
    // SAFETY: a plain structure of numbers, for which zero is a value.
    let mut lock: libc::flock = unsafe { std::mem::zeroed() };
    // The constants are small; their types differ between systems.
    (lock.l_type, lock.l_whence) = (kind as libc::c_short, libc::SEEK_SET as libc::c_short);
    (lock.l_start, lock.l_len) = (start, bytes.into());
    Ok(lock)
}

fn control(file: BorrowedFd<'_>, command: i32, lock: &mut libc::flock) -> io::Result<()> {
    // SAFETY: both commands take a pointer to such a structure, which lives through the call.
    let result = unsafe { libc::fcntl(file.as_raw_fd(), command, std::ptr::from_mut(lock)) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Marks a byte; it need not be inside the file.
///
/// # Errors
///
/// The kernel's: the file system has no locks, or somebody has locked the byte for writing.
pub fn mark(file: BorrowedFd<'_>, byte: u64) -> io::Result<()> {
    control(file, libc::F_OFD_SETLK, &mut lock(libc::F_RDLCK, byte)?)
}

/// Takes a byte for this open file alone, without waiting; false: another open file has it or has marked it. It is free again with [`free`], or when
/// the last descriptor of the open file is closed: with the death of its process.
///
/// # Errors
///
/// The kernel's: the file is not open for writing, or its file system has no locks.
pub fn take(file: BorrowedFd<'_>, byte: u64) -> io::Result<bool> {
    is_there(control(file, libc::F_OFD_SETLK, &mut lock(libc::F_WRLCK, byte)?))
}

/// Keeps others from taking any of so many bytes from this one on, beside whoever does the same; false: one of them is taken.
///
/// # Errors
///
/// The kernel's: the file is not open for reading, or its file system has no locks.
pub fn share(file: BorrowedFd<'_>, byte: u64, bytes: u16) -> io::Result<bool> {
    is_there(control(file, libc::F_OFD_SETLK, &mut lock_of(libc::F_RDLCK, byte, bytes)?))
}

fn is_there(result: io::Result<()>) -> io::Result<bool> {
    match result {
        Ok(()) => Ok(true),
        Err(error) if matches!(error.raw_os_error(), Some(libc::EAGAIN | libc::EACCES)) => {
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Gives a byte back that was taken or marked.
///
/// # Errors
///
/// The kernel's.
pub fn free(file: BorrowedFd<'_>, byte: u64) -> io::Result<()> {
    control(file, libc::F_OFD_SETLK, &mut lock(libc::F_UNLCK, byte)?)
}

/// Whether another open file of the same file has marked the byte.
///
/// # Errors
///
/// The kernel's.
pub fn marked_by_other(file: BorrowedFd<'_>, byte: u64) -> io::Result<bool> {
    // What would stand against a lock for writing.
    let mut found = lock(libc::F_WRLCK, byte)?;
    let start = found.l_start;
    control(file, libc::F_OFD_GETLK, &mut found)?;
    let mark = (found.l_start, found.l_len) == (start, 1);
    Ok(i32::from(found.l_type) != libc::F_UNLCK && mark)
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;

    use super::*;

    #[test]
    fn a_mark_is_seen_by_other_open_files_and_goes_with_its_own() {
        let file = tempfile::NamedTempFile::new().expect("file");
        let open = || File::open(file.path()).expect("open");
        let (a, b) = (open(), open());
        mark(a.as_fd(), 1 << 61).expect("mark");
        assert!(marked_by_other(b.as_fd(), 1 << 61).expect("ask"));
        assert!(!marked_by_other(b.as_fd(), 1).expect("ask"), "another byte");
        assert!(!marked_by_other(a.as_fd(), 1 << 61).expect("ask"), "its own");
        mark(b.as_fd(), 1 << 61).expect("both may");
        let duplicate = a.try_clone().expect("dup");
        drop(a);
        drop(b);
        let c = open();
        assert!(marked_by_other(c.as_fd(), 1 << 61).expect("ask"), "the same open file");
        drop(duplicate);
        assert!(!marked_by_other(c.as_fd(), 1 << 61).expect("ask"));
        assert!(mark(c.as_fd(), u64::MAX).is_err());
    }

    #[test]
    fn a_byte_is_taken_by_one_at_a_time() {
        let file = tempfile::NamedTempFile::new().expect("file");
        let open = || File::options().read(true).write(true).open(file.path()).expect("open");
        let (a, b) = (open(), open());
        assert!(take(a.as_fd(), 10).expect("ask"));
        assert!(take(a.as_fd(), 10).expect("ask"), "it has it");
        assert!(!take(b.as_fd(), 10).expect("ask"));
        assert!(marked_by_other(b.as_fd(), 10).expect("ask"));
        assert!(take(b.as_fd(), 11).expect("another byte"));
        free(a.as_fd(), 10).expect("free");
        assert!(take(b.as_fd(), 10).expect("ask"));
        drop(b);
        assert!(take(a.as_fd(), 11).expect("its holder is gone"));
    }

    #[test]
    fn a_lock_of_the_whole_file_is_no_mark() {
        let file = tempfile::NamedTempFile::new().expect("file");
        let open = || File::open(file.path()).expect("open");
        let (reader, asks) = (open(), open());
        // What a shared flock is on a network file system.
        let mut whole = lock(libc::F_RDLCK, 0).expect("small");
        whole.l_len = 0;
        control(reader.as_fd(), libc::F_OFD_SETLK, &mut whole).expect("lock");
        assert!(!marked_by_other(asks.as_fd(), 1 << 61).expect("ask"));
    }
}
