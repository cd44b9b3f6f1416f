//! Opening a file and finding out what it can do.

use std::fs::{File, Metadata};
use std::io::{self, ErrorKind, Seek as _, SeekFrom};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::time::Duration;

use memory::clock;
use rustix::fs::{AtFlags, FallocateFlags, OFlags, StatxFlags};
use rustix::io::Errno;
use spec::{CacheMode, FileSpec};

use super::identity::identity;
use super::lock::{holder, lock};
use crate::fail::{Failure, fail};
use crate::files::Files;
use crate::kinds::Opening;
use crate::{VolumeError, VolumeSpec};

/// How direct I/O must lie. Both are powers of two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Direct {
    /// Of memory.
    pub(super) memory: u32,
    /// Of positions and lengths.
    pub(super) offset: u32,
}

/// What is under a volume.
#[derive(Debug)]
pub(super) struct Target {
    pub(super) block_device: bool,
    /// The page cache is bypassed.
    pub(super) direct: Option<Direct>,
    /// In a tmpfs: transfers are made on the channel's thread ([`uring::inline`]), and there is nothing to flush.
    pub(super) inline: bool,
    /// What a range given to `fallocate` must be a multiple of; a power of two.
    pub(super) sector: u32,
    pub(super) physical_block_size: u32,
    pub(super) optimal_io_size: u32,
    pub(super) discard: bool,
    /// The file system can say that it would have to wait (`RWF_NOWAIT`).
    pub(super) nowait: bool,
    /// `FALLOC_FL_PUNCH_HOLE` may work.
    pub(super) punch: bool,
    pub(super) preallocate: bool,
}

#[cfg(test)]
impl Target {
    /// A regular file through the page cache that can do nothing special.
    pub(super) fn plain() -> Target {
        Target {
            block_device: false,
            direct: None,
            inline: false,
            nowait: false,
            sector: 1,
            physical_block_size: 4096,
            optimal_io_size: 0,
            discard: false,
            punch: false,
            preallocate: false,
        }
    }
}

/// Opens and locks the file of a volume, making it first where that is wanted. It is the one that is known, or the volume is not opened.
pub(super) fn open<'a>(
    spec: &VolumeSpec,
    file_spec: &FileSpec,
    opening: &mut Opening<'a>,
) -> Result<(File, Target, NewFile<'a>), VolumeError> {
    let path = &file_spec.path;
    let (file, made) = open_file(spec, file_spec, opening.files)?;
    let meta = file.metadata().map_err(|e| fail(&spec.name, stat(path)).because(e))?;
    not_special(&spec.name, path, &meta)?;
    let block_device = meta.file_type().is_block_device();
    set_blocking(&file).map_err(|e| fail(&spec.name, stat(path)).because(e))?;
    lock(spec, path, &file, Duration::from_millis(file_spec.lock_wait_ms), opening)?;
    // Only behind the lock: two servers that start together must not both give it a size, nor one take it from the other.
    let new = NewFile::new(opening.files, made.then_some(path));
    // One that is known was made before: empty, it has lost its data.
    let makes = (file_spec.create || file_spec.fresh) && file_spec.identity.is_none();
    if !block_device && makes {
        give_size(spec, file_spec, &file)?;
    }
    if let Some(known) = &file_spec.identity {
        let found =
            identity(&file, opening.files).map_err(|e| fail(&spec.name, stat(path)).because(e))?;
        if let Some(how) = known.differs(&found, spec.bytes) {
            let help = "put its own one back, mount its file system, or take what is there: `trunkline volume accept`";
            return Err(fail(&spec.name, format!("{}: {how}", path.display())).help(help));
        }
    }
    let direct = choose(spec, file_spec, &file, block_device)?;
    let target = if block_device {
        device(&file, direct, opening.files)
    } else {
        let punch = !spec.read_only && can_punch(&file);
        Target {
            block_device,
            direct,
            // A simulation keeps its files there, as if on a disk.
            inline: cfg!(not(feature = "sim")) && on_tmpfs(&file),
            nowait: can_say(&file),
            sector: 1,
            physical_block_size: 4096,
            optimal_io_size: 0,
            discard: punch,
            punch,
            preallocate: file_spec.preallocate,
        }
    };
    Ok((file, target, new))
}

fn stat(path: &Path) -> String {
    format!("looking at {}", path.display())
}

/// A file that this opening has made: it goes again unless the volume is opened.
pub(crate) struct NewFile<'a> {
    files: &'a dyn Files,
    path: Option<PathBuf>,
}

impl<'a> NewFile<'a> {
    pub(crate) fn new(files: &'a dyn Files, path: Option<&PathBuf>) -> NewFile<'a> {
        NewFile { files, path: path.cloned() }
    }

    /// It stays, also over a power failure: nobody makes it a second time.
    pub(crate) fn keep(mut self, volume: &str, file: &File) -> Result<(), VolumeError> {
        let Some(path) = &self.path else { return Ok(()) };
        let synced = file.sync_all().and_then(|()| self.files.sync_folder_of(path));
        synced
            .map_err(|error| fail(volume, format!("making {}", path.display())).because(error))?;
        self.path = None;
        Ok(())
    }
}

impl Drop for NewFile<'_> {
    fn drop(&mut self) {
        // The error that is told is the one that led here.
        let _ = self.path.take().map(|path| self.files.remove(&path));
    }
}

/// Opening a FIFO or a terminal can wait for ever, or do something: they are told by their type alone.
pub(crate) fn not_special(volume: &str, path: &Path, meta: &Metadata) -> Result<(), VolumeError> {
    let kind = meta.file_type();
    if kind.is_block_device() || kind.is_file() {
        return Ok(());
    }
    let what = format!("{} is neither a regular file nor a block device", path.display());
    Err(fail(volume, what).help("name one of those"))
}

/// Takes back what kept the opening from waiting: an io_uring would take it for its requests.
pub(crate) fn set_blocking(file: &File) -> rustix::io::Result<()> {
    let flags = rustix::fs::fcntl_getfl(file)?;
    rustix::fs::fcntl_setfl(file, flags - OFlags::NONBLOCK)
}

/// Opens the file, and says whether it was made.
fn open_file(
    spec: &VolumeSpec,
    file_spec: &FileSpec,
    files: &dyn Files,
) -> Result<(File, bool), VolumeError> {
    let path = &file_spec.path;
    let existing = std::fs::metadata(path);
    // What took the place meanwhile is not waited for.
    let mut flags = OFlags::NONBLOCK;
    let create = (file_spec.create || file_spec.fresh) && file_spec.identity.is_none();
    let mut made = false;
    match &existing {
        Ok(meta) if meta.file_type().is_block_device() => {
            // A device that is mounted, or used by another driver, refuses an exclusive open.
            flags = if spec.read_only { OFlags::empty() } else { OFlags::EXCL };
        }
        Ok(_) if file_spec.fresh && create => {
            let what = format!("{} is there already", path.display());
            let help = "move it away, or take it as it is: `trunkline volume accept`";
            return Err(fail(&spec.name, what).help(help));
        }
        // A folder cannot be opened for writing, which says it better.
        Ok(meta) if meta.is_dir() => {}
        Ok(meta) => not_special(&spec.name, path, meta)?,
        Err(error) if error.kind() == ErrorKind::NotFound && create => {
            flags |= OFlags::CREATE | OFlags::EXCL;
            made = true;
        }
        Err(_) => {}
    }
    flags |= if spec.read_only { OFlags::RDONLY } else { OFlags::RDWR };
    let deadline = clock::instant() + Duration::from_millis(file_spec.lock_wait_ms);
    loop {
        match files.open(path, flags) {
            Ok(file) => return Ok((file, made)),
            // A predecessor's last operation keeps the device as well as the lock.
            Err(error)
                if error.kind() == ErrorKind::ResourceBusy && clock::instant() < deadline =>
            {
                clock::sleep(Duration::from_millis(20));
            }
            Err(error) => return Err(cannot_open(spec, file_spec, files, error)),
        }
    }
}

fn cannot_open(
    spec: &VolumeSpec,
    file_spec: &FileSpec,
    files: &dyn Files,
    error: io::Error,
) -> VolumeError {
    let path = &file_spec.path;
    let what = format!("opening {}", path.display());
    if error.kind() == ErrorKind::ResourceBusy
        && let Some(holder) =
            files.open(path, OFlags::RDONLY).ok().and_then(|file| holder(&file, files))
    {
        let what = format!("{} is still locked by {holder}", path.display());
        return fail(&spec.name, what)
            .help("end that process, name another device, or raise lock_wait");
    }
    let help = match error.kind() {
        ErrorKind::NotFound if file_spec.identity.is_some() => {
            "put it back or mount its file system; `trunkline volume recreate` makes an empty one"
                .to_owned()
        }
        ErrorKind::NotFound if file_spec.create && spec.bytes.is_some() => {
            "make its folder, or correct the path".to_owned()
        }
        ErrorKind::NotFound => "correct the path, or set create and size".to_owned(),
        ErrorKind::PermissionDenied => {
            let mode = if spec.read_only { "read" } else { "read and write" };
            format!("let the server's user {mode} it, or set read_only")
        }
        ErrorKind::IsADirectory => "name a file in it".to_owned(),
        ErrorKind::ReadOnlyFilesystem => "set read_only, or mount it for writing".to_owned(),
        ErrorKind::ResourceBusy => {
            "the device is mounted or in use by the kernel: unmount it, or name another".to_owned()
        }
        _ => "see whether the file system is in order".to_owned(),
    };
    fail(&spec.name, what).because(error).help(help)
}

/// Gives a file that is empty, because it was just made, the volume's size.
fn give_size(spec: &VolumeSpec, file_spec: &FileSpec, file: &File) -> Result<(), VolumeError> {
    let empty = size(file).map_err(|e| fail(&spec.name, stat(&file_spec.path)).because(e))? == 0;
    let (Some(bytes), true) = (spec.bytes, empty) else {
        return Ok(());
    };
    let failed = |error: io::Error| {
        let what = format!("giving {} its {bytes} bytes", file_spec.path.display());
        fail(&spec.name, what).because(error).help("free some space, or choose a smaller size")
    };
    file.set_len(bytes).map_err(failed)?;
    if file_spec.preallocate {
        rustix::fs::fallocate(file, FallocateFlags::empty(), 0, bytes).map_err(|error| {
            // Empty again, so that the next attempt begins anew. The first error is the one to tell.
            let _ = file.set_len(0);
            failed(error.into())
        })?;
    }
    Ok(())
}

/// Direct or not: what the specification wants against what the target can.
fn choose(
    spec: &VolumeSpec,
    file_spec: &FileSpec,
    file: &File,
    block_device: bool,
) -> Result<Option<Direct>, VolumeError> {
    if file_spec.cache == CacheMode::Buffered {
        return Ok(None);
    }
    let path = file_spec.path.display();
    let found = direct_alignment(file, block_device);
    let usable = found.filter(|direct| direct.offset <= spec.block_size);
    if file_spec.cache == CacheMode::Direct && usable.is_none() {
        let error = match found {
            Some(direct) => fail(
                &spec.name,
                format!(
                    "cache is direct, but {path} takes direct I/O only in units of {} bytes",
                    direct.offset
                ),
            )
            .help(format!("set block_size to {}, or cache to buffered or auto", direct.offset)),
            None => fail(&spec.name, format!("cache is direct, but {path} has no direct I/O"))
                .help("set cache to buffered or auto"),
        };
        return Err(error);
    }
    if usable.is_some() && set_direct(file, true).is_err() {
        if file_spec.cache == CacheMode::Direct {
            let what = format!("cache is direct, but {path} refuses O_DIRECT");
            return Err(fail(&spec.name, what).help("set cache to buffered or auto"));
        }
        return Ok(None);
    }
    Ok(usable)
}

fn set_direct(file: &File, on: bool) -> rustix::io::Result<()> {
    if cfg!(feature = "sim") {
        // A simulation's files are in a tmpfs, and the rules of direct I/O are kept by its kernel.
        return Ok(());
    }
    let mut flags = rustix::fs::fcntl_getfl(file)?;
    flags.set(OFlags::DIRECT, on);
    rustix::fs::fcntl_setfl(file, flags)
}

const TMPFS_MAGIC: i64 = 0x0102_1994;

/// Whether a file lies in a tmpfs.
pub(crate) fn on_tmpfs(file: &File) -> bool {
    // The type's width and sign differ between architectures.
    #[allow(clippy::unnecessary_cast)]
    rustix::fs::fstatfs(file).is_ok_and(|fs| fs.f_type as i64 == TMPFS_MAGIC)
}

/// How direct I/O must lie, or `None` when there is none. The kernel says so since Linux 6.1 (`STATX_DIOALIGN`); before,
/// and where a file system does not answer, a device is asked for its sector size and a file is tried.
fn direct_alignment(file: &File, block_device: bool) -> Option<Direct> {
    if cfg!(feature = "sim") {
        return Some(Direct { memory: 512, offset: 512 });
    }
    // A tmpfs accepts the flag and ignores it.
    if on_tmpfs(file) && !block_device {
        return None;
    }
    let wanted = StatxFlags::DIOALIGN;
    if let Ok(found) = rustix::fs::statx(file, c"", AtFlags::EMPTY_PATH, wanted)
        && found.stx_mask & wanted.bits() != 0
    {
        let (memory, offset) = (found.stx_dio_mem_align, found.stx_dio_offset_align);
        let sane = memory.is_power_of_two() && offset.is_power_of_two();
        return sane.then_some(Direct { memory, offset });
    }
    if block_device {
        let sector = rustix::fs::ioctl_blksszget(file).ok().filter(|s| s.is_power_of_two())?;
        return Some(Direct { memory: sector, offset: sector });
    }
    set_direct(file, true).ok()?;
    let mut probe = Aligned::new();
    let works = [512, 4096].into_iter().find(|unit| {
        // Memory at an odd multiple of the unit, so that a larger need shows.
        let place = &mut probe.block(8192)[*unit as usize..2 * *unit as usize];
        file.read_at(place, u64::from(*unit)).is_ok()
    });
    set_direct(file, false).ok()?;
    works.map(|unit| Direct { memory: unit, offset: unit })
}

/// Capacity of a file or block device.
pub(super) fn size(file: &File) -> io::Result<u64> {
    let mut file = file;
    file.seek(SeekFrom::End(0))
}

/// Whether holes can be punched, tried behind the end, where there is nothing to lose.
fn can_punch(file: &File) -> bool {
    let Ok(end) = size(file) else { return false };
    let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    rustix::fs::fallocate(file, flags, end.next_multiple_of(4096), 4096).is_ok()
}

/// Whether a read can be told not to wait.
fn can_say(file: &File) -> bool {
    let mut probe = Aligned::new();
    let mut place = [io::IoSliceMut::new(probe.block(4096))];
    let flags = rustix::io::ReadWriteFlags::NOWAIT;
    let found = rustix::io::preadv2(file, &mut place, 0, flags);
    !matches!(found, Err(Errno::OPNOTSUPP | Errno::INVAL | Errno::NOSYS))
}

/// What sysfs says about a block device.
fn device(file: &File, direct: Option<Direct>, files: &dyn Files) -> Target {
    let number = |name: &str| -> Option<u64> {
        let text = files.text(&queue_folder(file)?.join(name)).ok()?;
        text.trim().parse().ok()
    };
    let small = |name| number(name).and_then(|value| u32::try_from(value).ok());
    let physical = small("physical_block_size").filter(|size| size.is_power_of_two());
    // Holes are punched in a device by its write-zeroes command with unmapping.
    let zeroes = number("write_zeroes_max_bytes").is_some_and(|max| max > 0);
    let discard = zeroes && number("discard_max_bytes").is_some_and(|max| max > 0);
    Target {
        block_device: true,
        direct,
        inline: false,
        nowait: can_say(file),
        sector: rustix::fs::ioctl_blksszget(file)
            .ok()
            .filter(|s| s.is_power_of_two())
            .unwrap_or(4096),
        physical_block_size: physical.unwrap_or(512).min(1 << 20),
        optimal_io_size: small("optimal_io_size").unwrap_or(0),
        discard,
        punch: discard,
        preallocate: false,
    }
}

/// `/sys/…/queue` of a disk, or of the disk that a partition is on.
fn queue_folder(file: &File) -> Option<PathBuf> {
    let device = file.metadata().ok()?.rdev();
    let (major, minor) = (rustix::fs::major(device), rustix::fs::minor(device));
    let folder = PathBuf::from(format!("/sys/dev/block/{major}:{minor}"));
    let own = folder.join("queue");
    if own.is_dir() {
        return Some(own);
    }
    // Through the link: the folder of the disk.
    Some(folder.join("../queue"))
}

/// A little memory that begins at a multiple of 4096, for reads before there is a ring.
pub(super) struct Aligned(Vec<u8>);

impl Aligned {
    pub(super) fn new() -> Aligned {
        Aligned(vec![0; 3 * 4096])
    }

    /// The first `len` bytes, 8192 at most.
    pub(super) fn block(&mut self, len: u64) -> &mut [u8] {
        let start = self.0.as_ptr().align_offset(4096);
        // At most two of the three pages, whatever the allocator gave.
        &mut self.0[start..start + len.min(8192) as usize]
    }
}
