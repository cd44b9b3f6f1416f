//! What the kernel's page cache has lost, and notes of losses that outlive the process that found them.

use std::io;
use std::os::fd::{AsRawFd as _, BorrowedFd};

use rustix::fs::{OFlags, fcntl_getfl, fcntl_setfl};

/// Far behind the end of any file: nothing lies there, so nothing is waited for.
const NOWHERE: libc::off64_t = libc::off64_t::MAX - (1 << 16);

/// Whether something that was written to a file could not be brought to its disk, since this open file was made or was asked last.
///
/// The kernel counts such errors in the file, and keeps with each open file how far it has been told. This asks it to wait for what is being
/// written back in a range where nothing is: it compares the two, and touches no disk.
///
/// # Errors
///
/// What says nothing of the file: the kernel has no such call, or the descriptor cannot be asked.
pub fn has_lost(file: BorrowedFd<'_>) -> io::Result<bool> {
    #[cfg(feature = "sim")]
    if let Some(lost) = crate::sim::has_lost(file) {
        return Ok(lost);
    }
    let wait = libc::SYNC_FILE_RANGE_WAIT_BEFORE;
    // SAFETY: numbers alone; the descriptor is open through the call.
    let result = unsafe { libc::sync_file_range(file.as_raw_fd(), NOWHERE, 1, wait) };
    if result == 0 {
        return Ok(false);
    }
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EBADF | libc::EINVAL | libc::ENOSYS | libc::EPERM | libc::ESPIPE) => Err(error),
        _ => Ok(true),
    }
}

/// What stands for a note: it means nothing to an open file that is only read.
const NOTE: OFlags = OFlags::APPEND;

/// Notes with an open file that something was lost, or takes the note back. Whoever has a descriptor of the very open file, in whichever process, sees it
/// ([`is_loss_noted`]), also when the one who noted it has died. It waits for no disk.
///
/// The file has to be open for reading alone.
///
/// # Errors
///
/// When the kernel refuses; the note is as it was.
pub fn note_loss(file: BorrowedFd<'_>, lost: bool) -> io::Result<()> {
    let mut flags = fcntl_getfl(file)?;
    flags.set(NOTE, lost);
    Ok(fcntl_setfl(file, flags)?)
}

/// Whether there is a note of [`note_loss`].
///
/// # Errors
///
/// When the kernel refuses to say.
pub fn is_loss_noted(file: BorrowedFd<'_>) -> io::Result<bool> {
    Ok(fcntl_getfl(file)?.contains(NOTE))
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsFd as _;
    use std::os::unix::fs::FileExt as _;

    use testkit::{Disk, Kind, Options, is_root};

    use super::*;

    #[test]
    fn a_loss_is_told_once_to_each_open_file_that_was_there_before() {
        if !is_root("a write-back that fails") {
            return;
        }
        let disk = Disk::with(Options { bytes: 1 << 20, write_back: true });
        let open = || File::options().read(true).write(true).open(disk.path()).unwrap();
        let (writer, witness) = (open(), File::open(disk.path()).unwrap());
        let ask = |file: &File| has_lost(file.as_fd()).unwrap();
        writer.write_all_at(&[1; 4096], 0).unwrap();
        assert!(!ask(&witness));
        assert_eq!(disk.served(Kind::Write), 0, "nothing is written back for it");
        disk.fail(Kind::Write, Some(libc::EIO));
        writer.sync_data().unwrap_err();
        disk.fail(Kind::Write, None);
        assert!(ask(&witness));
        assert!(!ask(&witness), "since it was asked last");
        assert!(!ask(&open()), "somebody knows, so that it is no news to who comes later");
        writer.sync_data().unwrap();
    }

    #[test]
    fn a_note_is_seen_by_whoever_has_the_very_open_file() {
        let [noted, other] = [(); 2].map(|()| File::open("/proc/self/exe").unwrap());
        let shared = noted.try_clone().unwrap();
        let is_noted = |file: &File| is_loss_noted(file.as_fd()).unwrap();
        note_loss(noted.as_fd(), true).unwrap();
        drop(noted);
        assert!(is_noted(&shared) && !is_noted(&other));
        note_loss(shared.as_fd(), false).unwrap();
        assert!(!is_noted(&shared));
    }

    #[test]
    fn what_is_no_file_cannot_be_asked() {
        let (reader, _writer) = io::pipe().unwrap();
        assert_eq!(has_lost(reader.as_fd()).unwrap_err().raw_os_error(), Some(libc::ESPIPE));
    }
}
