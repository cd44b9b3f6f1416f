//! How volumes get at files: by themselves ([`Here`]), or, in a process that may open none, through one that may.

use std::fs::File;
use std::io::{self, Read as _};
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::path::Path;
use std::sync::Arc;

use rustix::fs::{Mode, OFlags};

/// A way to files.
pub trait Files: Send + Sync {
    /// A file, with these flags of `open`; one that is made has mode 0660 less the umask.
    ///
    /// # Errors
    ///
    /// The system's, here and below.
    fn open(&self, path: &Path, flags: OFlags) -> io::Result<File>;

    /// Opens a file another time, to be read: the file itself, whatever has become of its path.
    ///
    /// # Errors
    ///
    /// As above.
    fn again(&self, file: &File) -> io::Result<File>;

    /// What a file of the kernel's says.
    ///
    /// # Errors
    ///
    /// As above.
    fn text(&self, path: &Path) -> io::Result<String>;

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// As above.
    fn remove(&self, path: &Path) -> io::Result<()>;

    /// Brings the folder of a file to its disk.
    ///
    /// # Errors
    ///
    /// As above.
    fn sync_folder_of(&self, path: &Path) -> io::Result<()>;

    /// What somebody knows of a file who outlives this process, which opens the file at this path to write it. To be asked when all open
    /// files that are to learn of losses are there.
    ///
    /// # Errors
    ///
    /// As above.
    fn testimony(&self, path: &Path, file: &File) -> io::Result<Testimony>;

    /// What was lost of a file is made up for: nobody has to be told.
    ///
    /// # Errors
    ///
    /// As above.
    fn made_up_for(&self, path: &Path) -> io::Result<()>;
}

/// What is known of a file by an open file that is older than this process ([`Files::testimony`]).
#[derive(Debug, Default)]
pub struct Testimony {
    /// A write was lost, and not every client was told.
    pub lost: bool,
    /// That open file, to be kept as long as the volume is open: who comes after the one who keeps it gets it from here.
    pub witness: Option<Arc<OwnedFd>>,
}

/// This process opens what it needs.
#[derive(Debug, Clone, Copy, Default)]
pub struct Here;

impl Files for Here {
    fn open(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let mode = Mode::from_bits_retain(0o660);
        Ok(rustix::fs::open(path, flags | OFlags::CLOEXEC, mode)?.into())
    }

    fn again(&self, file: &File) -> io::Result<File> {
        File::open(format!("/proc/self/fd/{}", file.as_raw_fd()))
    }

    fn text(&self, path: &Path) -> io::Result<String> {
        // The kernel keeps such a file still within one read only, so that is a large one.
        let mut text = String::with_capacity(64 * 1024);
        File::open(path)?.read_to_string(&mut text)?;
        Ok(text)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
    }

    fn testimony(&self, _path: &Path, _file: &File) -> io::Result<Testimony> {
        Ok(Testimony::default())
    }

    fn made_up_for(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }
}
