//! What is made with the system's programs: loop devices, file systems on them, small tmpfs.

use std::path::{Path, PathBuf};
use std::process::Command;

use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

/// Runs a program that must succeed; its output.
fn must(program: &str, command: impl FnOnce(&mut Command) -> &mut Command) -> String {
    let output = command(&mut Command::new(program)).output().unwrap_or_else(|error| {
        panic!("{program} is needed (cargo xtask test names its package): {error}")
    });
    assert!(output.status.success(), "{program}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// A loop device over a file, given back on drop.
#[derive(Debug)]
pub struct Loop {
    device: PathBuf,
}

impl Loop {
    /// Over a file that exists.
    ///
    /// # Panics
    ///
    /// When there is none to be had.
    #[must_use]
    pub fn new(file: &Path, sector: u32) -> Loop {
        Loop::with(file, sector, &[])
    }

    /// Over a file that it reads and writes directly, so that a request which the file holds up does not hold up the others.
    ///
    /// # Panics
    ///
    /// As [`Loop::new`].
    #[must_use]
    pub fn direct(file: &Path, sector: u32) -> Loop {
        Loop::with(file, sector, &["--direct-io=on"])
    }

    fn with(file: &Path, sector: u32, more: &[&str]) -> Loop {
        let device = must("losetup", |command| {
            command.args(["--find", "--show", "--sector-size", &sector.to_string()]);
            command.args(more).arg(file)
        });
        Loop { device: device.into() }
    }

    /// The device.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.device
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let done = Command::new("losetup").arg("--detach").arg(&self.device).status();
        assert!(std::thread::panicking() || done.is_ok_and(|status| status.success()));
    }
}

/// A tmpfs of its own, unmounted on drop.
#[derive(Debug)]
pub struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    /// With so many bytes and no more.
    ///
    /// # Panics
    ///
    /// When it cannot be mounted.
    #[must_use]
    pub fn new(bytes: u64) -> Tmpfs {
        let folder = tempfile::tempdir().expect("folder");
        let data = format!("size={bytes}\0");
        let data = std::ffi::CStr::from_bytes_with_nul(data.as_bytes()).expect("one zero");
        mount("tmpfs", folder.path(), "tmpfs", MountFlags::empty(), Some(data))
            .expect("mounting a tmpfs");
        Tmpfs(folder)
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let done = unmount(self.path(), UnmountFlags::DETACH);
        assert!(std::thread::panicking() || done.is_ok(), "unmounting a tmpfs: {done:?}");
    }
}

/// An ext4 on a loop device over a file of its own, unmounted on drop. While it is frozen, every write to it hangs in the kernel.
#[derive(Debug)]
pub struct Ext4 {
    mounted: tempfile::TempDir,
    /// In the order in which they can go.
    _device: Loop,
    _backing: tempfile::NamedTempFile,
}

impl Ext4 {
    /// One with so many bytes.
    ///
    /// # Panics
    ///
    /// When it cannot be made.
    #[must_use]
    pub fn new(bytes: u64) -> Ext4 {
        let backing = tempfile::NamedTempFile::new().expect("file");
        backing.as_file().set_len(bytes).expect("size");
        must("mkfs.ext4", |command| command.args(["-q", "-F"]).arg(backing.path()));
        let device = Loop::new(backing.path(), 512);
        let mounted = tempfile::tempdir().expect("folder");
        mount(device.path(), mounted.path(), "ext4", MountFlags::empty(), None)
            .expect("mounting an ext4");
        Ext4 { mounted, _device: device, _backing: backing }
    }

    /// Where it is.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.mounted.path()
    }

    /// Until [`Ext4::thaw`] all writes hang.
    ///
    /// # Panics
    ///
    /// When it cannot be frozen.
    pub fn freeze(&self) {
        must("fsfreeze", |command| command.arg("--freeze").arg(self.path()));
    }

    /// Lets them go.
    ///
    /// # Panics
    ///
    /// When it is not frozen.
    pub fn thaw(&self) {
        must("fsfreeze", |command| command.arg("--unfreeze").arg(self.path()));
    }
}

impl Drop for Ext4 {
    fn drop(&mut self) {
        // A test that failed may have left it frozen, and then nothing of it could ever end.
        let _ = Command::new("fsfreeze").arg("--unfreeze").arg(self.path()).output();
        let done = unmount(self.path(), UnmountFlags::DETACH);
        assert!(std::thread::panicking() || done.is_ok(), "unmounting an ext4: {done:?}");
    }
}
