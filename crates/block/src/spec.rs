//! What a volume is made from: plain values, and [`open`], which builds the stack.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::fail::{Failure, fail};
use crate::faulty::FaultSpec;
use crate::limit::Rate;
use crate::spindle::DelaySpec;
use crate::{Delayed, Faulty, FileVolume, Limited, NullVolume, RamVolume, Volume, VolumeError};

/// A volume to be opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VolumeSpec {
    /// Its name, for messages.
    pub name: String,
    /// What it is kept in.
    pub kind: VolumeKind,
    /// Capacity in bytes. Needed to create something and for a null volume; for what exists already it must agree.
    pub size: Option<u64>,
    /// Smallest unit of a request: 512 or 4096.
    pub block_size: u32,
    /// Writes are refused.
    pub read_only: bool,
    /// A write is answered before it is durable, and a flush makes it so (write-back). Without, every write is durable when it
    /// is answered (write-through). Of no meaning for RAM and null.
    pub write_cache: bool,
    /// Limits on requests and bytes.
    pub limits: LimitSpec,
    /// A slow disk.
    pub delay: Option<DelaySpec>,
    /// A bad disk.
    pub faults: Option<FaultSpec>,
}

/// What a volume is kept in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum VolumeKind {
    /// A regular file or a block device.
    File(FileSpec),
    /// A file in a tmpfs, mapped: it survives the server's process but not the machine.
    Ram(RamSpec),
    /// Nothing.
    Null(NullSpec),
}

/// Whether a file goes through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Cache {
    /// Direct where the target can do it in units of the volume's block size or less, buffered otherwise.
    #[default]
    Auto,
    /// Past the page cache (`O_DIRECT`), or an error.
    Direct,
    /// Through the page cache.
    Buffered,
}

/// How long a server waits for another one to let go of a file, unless said otherwise.
pub const LOCK_WAIT: Duration = Duration::from_secs(30);

/// A regular file or a block device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileSpec {
    /// Where it is.
    pub path: PathBuf,
    /// Page cache or not.
    pub cache: Cache,
    /// Make the file, with the volume's size, if there is none.
    pub create: bool,
    /// Give a file that is made all of its space at once.
    pub preallocate: bool,
    /// Let a resize make it smaller, which destroys what lies behind the new end.
    pub allow_shrink: bool,
    /// How long to wait for another process that has the file locked.
    pub lock_wait: Duration,
}

impl FileSpec {
    /// An existing file with the defaults.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> FileSpec {
        FileSpec {
            path: path.into(),
            cache: Cache::Auto,
            create: false,
            preallocate: false,
            allow_shrink: false,
            lock_wait: LOCK_WAIT,
        }
    }
}

/// A file in a tmpfs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RamSpec {
    /// Where it is; the directory must be on a tmpfs, `/dev/shm` for example.
    pub path: PathBuf,
    /// Make the file, with the volume's size, if there is none.
    pub create: bool,
    /// Take all the memory at once. Without, a write can fail for want of space later, and discards give memory back.
    pub preallocate: bool,
    /// How long to wait for another process that has the file locked.
    pub lock_wait: Duration,
}

impl RamSpec {
    /// A file that is made if there is none.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> RamSpec {
        RamSpec { path: path.into(), create: true, preallocate: false, lock_wait: LOCK_WAIT }
    }
}

/// Nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct NullSpec {
    /// Reads fill the buffers with zeroes instead of leaving them alone.
    pub zero_reads: bool,
}

/// Limits of a volume; `None` is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LimitSpec {
    /// Requests, read and write together.
    pub iops: Option<Rate>,
    /// Read requests.
    pub read_iops: Option<Rate>,
    /// Write requests, with discards and write-zeroes.
    pub write_iops: Option<Rate>,
    /// Bytes read and written together.
    pub bytes_per_second: Option<Rate>,
    /// Bytes read.
    pub read_bytes_per_second: Option<Rate>,
    /// Bytes written.
    pub write_bytes_per_second: Option<Rate>,
}

impl LimitSpec {
    fn all(&self) -> [(&'static str, Option<Rate>); 6] {
        [
            ("iops", self.iops),
            ("read_iops", self.read_iops),
            ("write_iops", self.write_iops),
            ("bytes_per_second", self.bytes_per_second),
            ("read_bytes_per_second", self.read_bytes_per_second),
            ("write_bytes_per_second", self.write_bytes_per_second),
        ]
    }
}

impl VolumeSpec {
    /// A volume with 512-byte blocks, a write cache, and nothing around it.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: VolumeKind) -> VolumeSpec {
        VolumeSpec {
            name: name.into(),
            kind,
            size: None,
            block_size: 512,
            read_only: false,
            write_cache: true,
            limits: LimitSpec::default(),
            delay: None,
            faults: None,
        }
    }

    /// The file under the volume, if it has one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.kind {
            VolumeKind::File(file) => Some(&file.path),
            VolumeKind::Ram(ram) => Some(&ram.path),
            VolumeKind::Null(_) => None,
        }
    }

    /// Whether the values fit together, as far as that can be said without looking at a file.
    ///
    /// # Errors
    ///
    /// Names the setting and what it should be.
    pub fn check(&self) -> Result<(), VolumeError> {
        let name = &self.name;
        if !matches!(self.block_size, 512 | 4096) {
            let what = format!("block_size is {}", self.block_size);
            return Err(fail(name, what).help("use 512 or 4096"));
        }
        if let Some(size) = self.size
            && (size == 0 || !size.is_multiple_of(u64::from(self.block_size)))
        {
            let what = format!("size is {size} bytes");
            let help = format!("use a multiple of block_size, {} bytes", self.block_size);
            return Err(fail(name, what).help(help));
        }
        let missing = match &self.kind {
            VolumeKind::Null(_) => Some("a null volume has no size of its own"),
            VolumeKind::File(file) if file.create => Some("create is set"),
            _ => None,
        };
        if let (Some(why), None) = (missing, self.size) {
            return Err(fail(name, format!("{why}, but size is not set")).help("set size"));
        }
        if let Some((limit, _)) =
            self.limits.all().iter().find(|(_, rate)| rate.is_some_and(|r| r.per_second == 0))
        {
            let what = format!("limit {limit} is 0, which admits nothing");
            return Err(fail(name, what).help("leave it out for no limit, or use a positive rate"));
        }
        if let Some(delay) = &self.delay
            && delay.min > delay.max
        {
            let what = format!("delay min {:?} is above max {:?}", delay.min, delay.max);
            return Err(fail(name, what).help("swap them"));
        }
        Ok(())
    }
}

/// What happens while a volume is being opened, for whoever shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OpenEvent {
    /// Another process has the file locked; its name, as far as it can be told. Comes once.
    WaitsForLock {
        /// The holder.
        holder: String,
    },
    /// How the file is read and written: `direct` or `buffered`. Comes once for a file.
    Access(&'static str),
    /// Something that a user should know and that stops nothing.
    Note(String),
}

/// The wrappers' places in the stack, innermost first.
const DEPTH_FAULTS: u8 = 0;
const DEPTH_DELAY: u8 = 1;
const DEPTH_LIMITS: u8 = 2;
/// For limits that are put around a whole volume afterwards: those of a client.
pub const DEPTH_CLIENT: u8 = 3;

/// Opens a volume with its wrappers.
///
/// # Errors
///
/// Names the setting or the file and what mends it.
pub fn open(spec: &VolumeSpec) -> Result<Arc<dyn Volume>, VolumeError> {
    open_with(spec, &mut |_| {})
}

/// [`open`], with a report of what it waits for and of notes.
///
/// # Errors
///
/// As for [`open`].
pub fn open_with(
    spec: &VolumeSpec,
    event: &mut dyn FnMut(OpenEvent),
) -> Result<Arc<dyn Volume>, VolumeError> {
    spec.check()?;
    let mut volume: Arc<dyn Volume> = match &spec.kind {
        VolumeKind::File(file) => {
            let volume = FileVolume::open(spec, file, event)?;
            event(OpenEvent::Access(if volume.direct() { "direct" } else { "buffered" }));
            Arc::new(volume)
        }
        VolumeKind::Ram(ram) => Arc::new(RamVolume::open(spec, ram, event)?),
        VolumeKind::Null(null) => {
            let size = spec.size.expect("checked");
            let (block_size, read_only) = (spec.block_size, spec.read_only);
            Arc::new(NullVolume::new(&spec.name, size, block_size, read_only, null.zero_reads))
        }
    };
    if let Some(faults) = &spec.faults {
        volume = Arc::new(Faulty::new(volume, faults, DEPTH_FAULTS));
    }
    if let Some(delay) = &spec.delay {
        volume = Arc::new(Delayed::new(volume, delay, DEPTH_DELAY));
    }
    if spec.limits.all().iter().any(|(_, rate)| rate.is_some()) {
        volume = Arc::new(Limited::new(volume, &spec.limits, DEPTH_LIMITS));
    }
    Ok(volume)
}
