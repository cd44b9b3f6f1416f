//! Volumes: what they are kept in, and what is put around them.

use serde::{Deserialize, Serialize};

use crate::{NullSpec, VolumeKind, is_default};

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
    /// Whether what it is kept in is as large as it was known to be, `found` bytes, or has begun to grow from that, so that another size is one to
    /// come: it was given while nobody was there to resize it.
    #[must_use]
    pub fn is_to_be_resized(&self, found: u64) -> bool {
        let grows = |known: u64| self.bytes.is_some_and(|bytes| (known..bytes).contains(&found));
        self.kind.identity().is_some_and(|known| known.bytes() == found || grows(known.bytes()))
    }

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
