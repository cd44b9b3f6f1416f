//! Volumes: what they are kept in, and what is put around them.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::{FileIdentity, is_default};

/// A volume.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct VolumeSpec {
    /// Its name.
    pub name: String,
    /// What it is kept in.
    pub kind: VolumeKind,
    /// Capacity in bytes. `None`: what the file or device has. Needed to make something and for a null volume; for what exists it must agree.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Smallest unit of a request in bytes: 512 or 4096.
    pub block_size: u32,
    /// Whether writes are refused.
    #[serde(default)]
    pub read_only: bool,
    /// Whether every write is durable when it is answered (write-through). Otherwise a flush makes it so. Of no meaning for RAM and null.
    #[serde(default, skip_serializing_if = "is_default")]
    pub write_through: bool,
    /// Limits on its rate.
    #[serde(default)]
    pub limit: Option<LimitSpec>,
    /// A modelled service time.
    #[serde(default)]
    pub delay: Option<DelaySpec>,
    /// Faults to be injected, for tests.
    #[serde(default)]
    pub fault: Option<FaultSpec>,
}

impl VolumeSpec {
    /// A volume with blocks of 512 bytes, as large as what it is kept in, and nothing around it.
    #[must_use]
    pub fn new(name: impl Into<String>, kind: impl Into<VolumeKind>) -> VolumeSpec {
        VolumeSpec {
            name: name.into(),
            kind: kind.into(),
            bytes: None,
            block_size: 512,
            read_only: false,
            write_through: false,
            limit: None,
            delay: None,
            fault: None,
        }
    }
}

impl Default for VolumeSpec {
    /// A null volume without a name.
    fn default() -> VolumeSpec {
        VolumeSpec::new("", NullSpec::default())
    }
}

/// What a volume is kept in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeKind {
    /// A regular file or a block device.
    File(FileSpec),
    /// Memory: a file in a tmpfs, mapped, so that it outlives the data plane (not the host).
    Ram(RamSpec),
    /// Nothing: writes vanish, reads return at once.
    Null(NullSpec),
}

impl VolumeKind {
    /// The file under it, if it has one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            VolumeKind::File(file) => Some(&file.path),
            VolumeKind::Ram(ram) => Some(&ram.path),
            VolumeKind::Null(_) => None,
        }
    }

    /// From now on it is what was opened, and nothing is made for it any more.
    pub fn settle(&mut self, found: Option<FileIdentity>) {
        match self {
            VolumeKind::File(file) => {
                (file.create, file.fresh, file.identity) = (false, false, found);
            }
            VolumeKind::Ram(ram) => (ram.fresh, ram.identity) = (false, found),
            VolumeKind::Null(_) => {}
        }
    }
}

/// A regular file or a block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSpec {
    /// Where it is.
    pub path: PathBuf,
    /// Through the page cache or not.
    pub cache: CacheMode,
    /// Make the file, with the volume's size, if there is none and `identity` is not known.
    pub create: bool,
    /// Give a file that is made all of its space at once.
    pub preallocate: bool,
    /// How long to wait for another process that has the file locked, in milliseconds.
    #[serde(default = "lock_wait_ms", skip_serializing_if = "is_lock_wait_ms")]
    pub lock_wait_ms: u64,
    /// The file is to be made by this opening: one that is there is left alone, and the volume is not opened.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fresh: bool,
    /// What was there when it was opened first: nothing else is taken for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub identity: Option<FileIdentity>,
}

impl FileSpec {
    /// What is there already, with the defaults.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> FileSpec {
        FileSpec {
            path: path.into(),
            cache: CacheMode::Auto,
            create: false,
            preallocate: false,
            lock_wait_ms: LOCK_WAIT_MS,
            fresh: false,
            identity: None,
        }
    }
}

/// A file in a tmpfs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RamSpec {
    /// Where it is; the folder must be on a tmpfs, such as /dev/shm. Made, with the volume's size, if there is none and `identity` is
    /// not known, or is of another boot of the host.
    pub path: PathBuf,
    /// Take all the memory at once. Without, a write can fail for want of space later, and discards give memory back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preallocate: bool,
    /// How long to wait for another process that has the file locked, in milliseconds.
    #[serde(default = "lock_wait_ms", skip_serializing_if = "is_lock_wait_ms")]
    pub lock_wait_ms: u64,
    /// The volume is new: what another has left at its place goes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fresh: bool,
    /// What was there when it was opened first: nothing else is taken for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub identity: Option<FileIdentity>,
}

impl RamSpec {
    /// A file that is made if there is none.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> RamSpec {
        let path = path.into();
        let (lock_wait_ms, fresh, identity) = (LOCK_WAIT_MS, false, None);
        RamSpec { path, preallocate: false, lock_wait_ms, fresh, identity }
    }
}

/// Nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NullSpec {
    /// Whether reads fill the buffers with zeroes; else they leave them as they are.
    pub zero_fill: bool,
}

impl From<FileSpec> for VolumeKind {
    fn from(file: FileSpec) -> VolumeKind {
        VolumeKind::File(file)
    }
}

impl From<RamSpec> for VolumeKind {
    fn from(ram: RamSpec) -> VolumeKind {
        VolumeKind::Ram(ram)
    }
}

impl From<NullSpec> for VolumeKind {
    fn from(null: NullSpec) -> VolumeKind {
        VolumeKind::Null(null)
    }
}

/// How long a server waits for another one to let go of a file, unless said otherwise.
const LOCK_WAIT_MS: u64 = 30_000;

fn lock_wait_ms() -> u64 {
    LOCK_WAIT_MS
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
fn is_lock_wait_ms(wait: &u64) -> bool {
    *wait == LOCK_WAIT_MS
}

/// Whether a file is read and written through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMode {
    /// Direct where the target can do it in units of the volume's block size or less, buffered otherwise.
    #[default]
    Auto,
    /// Past the page cache (`O_DIRECT`), or an error.
    Direct,
    /// Through the page cache.
    Buffered,
}

/// Limits on a rate. A rate of 0 is no limit; a burst, what may be served at once after a quiet time, of 0 stands for a tenth of a
/// second's worth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitSpec {
    /// Requests per second, read and write together.
    pub iops: u64,
    /// Requests at once.
    pub iops_burst: u64,
    /// Bytes per second, read and written together.
    pub bytes_per_s: u64,
    /// Bytes at once.
    pub bytes_burst: u64,
    /// Read requests per second.
    #[serde(skip_serializing_if = "is_default")]
    pub read_iops: u64,
    /// Read requests at once.
    #[serde(skip_serializing_if = "is_default")]
    pub read_iops_burst: u64,
    /// Write requests per second, with flushes, discards and write-zeroes.
    #[serde(skip_serializing_if = "is_default")]
    pub write_iops: u64,
    /// Write requests at once.
    #[serde(skip_serializing_if = "is_default")]
    pub write_iops_burst: u64,
    /// Bytes read per second.
    #[serde(skip_serializing_if = "is_default")]
    pub read_bytes_per_s: u64,
    /// Bytes read at once.
    #[serde(skip_serializing_if = "is_default")]
    pub read_bytes_burst: u64,
    /// Bytes written per second.
    #[serde(skip_serializing_if = "is_default")]
    pub write_bytes_per_s: u64,
    /// Bytes written at once.
    #[serde(skip_serializing_if = "is_default")]
    pub write_bytes_burst: u64,
}

impl LimitSpec {
    /// Whether it limits nothing.
    #[must_use]
    pub fn is_none(&self) -> bool {
        let all = [self.iops, self.read_iops, self.write_iops];
        let bytes = [self.bytes_per_s, self.read_bytes_per_s, self.write_bytes_per_s];
        all.into_iter().chain(bytes).all(|rate| rate == 0)
    }
}

/// A modelled service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DelaySpec {
    /// Shortest service time.
    pub min_us: u64,
    /// Longest service time, not below `min_us`; requests overtake each other.
    pub max_us: u64,
    /// How many requests are served at the same time; 0: any number.
    pub depth: u32,
    /// Seed of the choice.
    pub seed: u64,
    /// Spread between the two.
    #[serde(skip_serializing_if = "is_default")]
    pub jitter: Jitter,
}

/// How service times are spread between the shortest and the longest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Jitter {
    /// All equally likely.
    #[default]
    Uniform,
    /// Bell-shaped around the middle (the sum of four uniform parts).
    Normal,
}

/// Faults to be injected. Shares are in parts per million of the requests of that kind.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultSpec {
    /// Reads that fail.
    pub read_error_ppm: u32,
    /// Writes, discards and write-zeroes that fail without having done anything.
    pub write_error_ppm: u32,
    /// Writes of which only a part reaches the medium, in whole blocks, and which then fail.
    pub torn_write_ppm: u32,
    /// Requests that take `slow_us` longer.
    pub slow_ppm: u32,
    /// How much longer.
    pub slow_us: u64,
    /// First byte and length of a range in which every read and write fails.
    pub bad_range: Option<(u64, u64)>,
    /// Determines all faults of a lane, together with the lane's number.
    pub seed: u64,
    /// Flushes that fail.
    #[serde(skip_serializing_if = "is_default")]
    pub flush_error_ppm: u32,
}
