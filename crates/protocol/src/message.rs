//! Requests, replies and specifications.

mod scsi;

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

pub use scsi::{
    CommandSpec, Initiator, RegistrationStatus, ReservationStatus, ScsiSpec, TargetSpec, UnitKind,
    UnitSpec, UnitStatus,
};

/// The version of these messages. Peers with different versions part at [`Request::Hello`].
pub const VERSION: u32 = 2;

/// What the control plane asks. Each request gets one [`Reply`], in order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// First on every connection.
    Hello {
        /// The asker's [`VERSION`].
        version: u32,
    },
    /// Opens a volume. One with the same name and specification is left alone; a changed limit takes effect; anything else
    /// that differs is refused while an adapter uses it.
    PutVolume(VolumeSpec),
    /// Changes a volume's capacity; connected clients are told.
    ResizeVolume {
        /// Name of the volume.
        name: String,
        /// New capacity.
        bytes: u64,
        /// Whether it may become smaller, which loses what lies beyond.
        shrink: bool,
    },
    /// Closes a volume that no adapter uses.
    RemoveVolume {
        /// Name of the volume.
        name: String,
    },
    /// Makes a SCSI logical unit, or changes it: another medium in an optical drive takes effect at once; anything else that differs
    /// is refused while an adapter's client sees the unit.
    PutUnit(UnitSpec),
    /// Removes a logical unit that no adapter's client sees.
    RemoveUnit {
        /// Name of the unit.
        name: String,
    },
    /// Creates an adapter and listens for its client; with a descriptor in the message, listens on that. The same
    /// specification again is left alone; a different one takes effect as each attribute says.
    PutAdapter(AdapterSpec),
    /// Disconnects the client, after what is in flight is done, and removes the adapter.
    RemoveAdapter {
        /// Name of the adapter.
        name: String,
    },
    /// Asks for [`Reply::Status`].
    Status,
    /// Asks for the descriptor of the statistics ([`crate::stats`]).
    Stats,
    /// Finishes what is in flight and exits.
    Shutdown,
}

/// What the data plane answers.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reply {
    /// To [`Request::Hello`].
    Hello {
        /// The answerer's [`VERSION`].
        version: u32,
        /// Its process id.
        pid: u32,
    },
    /// It is done.
    Done,
    /// To [`Request::Status`].
    Status(Status),
    /// To [`Request::Stats`]; one descriptor comes with it.
    Stats,
    /// It is not done.
    Error(Failure),
}

/// Why a request was not carried out.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Failure {
    /// What kind of failure.
    pub code: FailureCode,
    /// What is wrong, for a person.
    pub message: String,
    /// What mends it.
    #[serde(default)]
    pub help: Option<String>,
}

/// Kinds of failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureCode {
    /// The peer speaks another version.
    Version,
    /// The message was not understood.
    BadMessage,
    /// There is no such volume, unit or adapter.
    NotFound,
    /// Something uses it.
    InUse,
    /// A value is outside of what is possible.
    Invalid,
    /// The system refused.
    System,
}

/// A volume.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VolumeSpec {
    /// Its name.
    pub name: String,
    /// What it is made of.
    pub kind: VolumeKind,
    /// Capacity in bytes. `None`: what the file or device has.
    #[serde(default)]
    pub bytes: Option<u64>,
    /// Smallest unit of a request in bytes: 512 or 4096.
    pub block_size: u32,
    /// Whether writes are refused.
    #[serde(default)]
    pub read_only: bool,
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

/// What a volume is made of.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeKind {
    /// A regular file or a block device.
    File {
        /// Where it is.
        path: PathBuf,
        /// Through the page cache or not.
        cache: CacheMode,
        /// Make it, with `bytes` of size, if it is not there.
        create: bool,
        /// Reserve its space when it is made.
        preallocate: bool,
    },
    /// Memory: a file in a tmpfs, mapped, so that it outlives the data plane (not the host).
    Ram {
        /// The file in the tmpfs; made if it is not there.
        path: PathBuf,
    },
    /// Nothing: writes vanish, reads return at once.
    Null {
        /// Whether reads fill the buffer with zeroes; else they leave it as it is.
        zero_fill: bool,
    },
}

/// Whether a file is read and written through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMode {
    /// Direct where the target supports it for the volume's block size.
    #[default]
    Auto,
    /// Direct, or an error.
    Direct,
    /// Through the page cache.
    Buffered,
}

/// Limits on a volume's rate. 0: no limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct LimitSpec {
    /// Requests per second.
    pub iops: u64,
    /// Requests that may be served at once after a quiet time.
    pub iops_burst: u64,
    /// Bytes per second.
    pub bytes_per_s: u64,
    /// Bytes that may be served at once after a quiet time.
    pub bytes_burst: u64,
}

/// A modelled service time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct DelaySpec {
    /// Shortest service time.
    pub min_us: u64,
    /// Longest service time; requests overtake each other.
    pub max_us: u64,
    /// How many requests are served at the same time; 0: any number.
    pub depth: u32,
    /// Seed of the choice.
    pub seed: u64,
}

/// Faults to be injected.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FaultSpec {
    /// Share of the reads that fail, in parts per million.
    pub read_error_ppm: u32,
    /// Share of the writes that fail, in parts per million.
    pub write_error_ppm: u32,
    /// Share of the writes that fail after a part was written, in parts per million.
    pub torn_write_ppm: u32,
    /// Share of the requests that take `slow_us` longer, in parts per million.
    pub slow_ppm: u32,
    /// How much longer.
    pub slow_us: u64,
    /// First byte and length of a range in which every request fails.
    pub bad_range: Option<(u64, u64)>,
    /// Seed of the choice.
    pub seed: u64,
}

/// An adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdapterSpec {
    /// Its name, `vhostN` or `vfchostN`.
    pub name: String,
    /// Where its client connects, or listens.
    pub socket: PathBuf,
    /// Who of the two listens.
    #[serde(default)]
    pub socket_role: SocketRole,
    /// Permission bits of the socket.
    pub socket_mode: u32,
    /// Most virtqueues for I/O that the client is offered. A SCSI device has two more, for control and events.
    pub queues: u16,
    /// Most channels that serve them; 0: as many as the data plane has.
    pub channels: u16,
    /// Largest virtqueue that is accepted.
    pub queue_size: u16,
    /// Most data buffers in one request.
    pub seg_max: u16,
    /// How its queues are waited for.
    pub wait: WaitMode,
    /// Where its queues go.
    pub placement: Placement,
    /// vhost-user protocol features and virtio features that are not offered, by name: `inflight`, `event_idx`, `indirect`, `mq`, `log`, `mem_slots`.
    #[serde(default)]
    pub withhold: Vec<String>,
    /// What the client sees.
    pub device: DeviceSpec,
}

/// The device of an adapter.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceSpec {
    /// One disk.
    Block(BlockSpec),
    /// SCSI targets with logical units.
    Scsi(ScsiSpec),
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BlockSpec {
    /// The volume behind it.
    pub volume: String,
    /// What GET_ID answers; at most 20 bytes.
    pub serial: String,
    /// Whether the client is told that the disk is read-only.
    pub read_only: bool,
    /// Whether the client sees a volatile write cache (WCE) and may turn it off.
    pub write_cache: bool,
    /// Whether DISCARD is offered.
    pub discard: bool,
}

impl BlockSpec {
    /// A disk on a volume with everything that the volume can do, and its name for a serial number.
    #[must_use]
    pub fn on(volume: &str) -> BlockSpec {
        let serial = volume.chars().take(20).collect();
        let volume = volume.to_owned();
        BlockSpec { volume, serial, read_only: false, write_cache: true, discard: true }
    }
}

impl AdapterSpec {
    /// Its block device, if it is one.
    #[must_use]
    pub fn block(&self) -> Option<&BlockSpec> {
        match &self.device {
            DeviceSpec::Block(block) => Some(block),
            DeviceSpec::Scsi(_) => None,
        }
    }

    /// Its block device, to change.
    pub fn block_mut(&mut self) -> Option<&mut BlockSpec> {
        match &mut self.device {
            DeviceSpec::Block(block) => Some(block),
            DeviceSpec::Scsi(_) => None,
        }
    }

    /// Its SCSI device, if it is one.
    #[must_use]
    pub fn scsi(&self) -> Option<&ScsiSpec> {
        match &self.device {
            DeviceSpec::Block(_) => None,
            DeviceSpec::Scsi(scsi) => Some(scsi),
        }
    }

    /// Whether it is a block device on this volume. SCSI devices have logical units instead.
    #[must_use]
    pub fn uses_volume(&self, volume: &str) -> bool {
        self.block().is_some_and(|block| block.volume == volume)
    }
}

/// What an adapter is at its socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SocketRole {
    /// It listens and its client connects.
    #[default]
    Server,
    /// Its client listens and it connects.
    Client,
}

/// How a channel waits for work.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WaitMode {
    /// Always looking: lowest latency, one core per channel.
    Poll,
    /// Looking while that pays, then asleep.
    #[default]
    Adaptive,
    /// Asleep whenever there is nothing to do.
    Interrupt,
}

/// Where an adapter's queues go.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Placement {
    /// On one channel at low load, spread as the load grows.
    #[default]
    Adaptive,
    /// Always spread over all channels that the adapter has.
    Spread,
}

/// The data plane as it is now.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Status {
    /// Process id.
    pub pid: u32,
    /// Version of the program.
    pub version: String,
    /// Seconds since it was started.
    pub uptime_s: u64,
    /// Its channels.
    pub channels: Vec<ChannelStatus>,
    /// Its volumes.
    pub volumes: Vec<VolumeStatus>,
    /// Its SCSI logical units.
    pub units: Vec<UnitStatus>,
    /// Its adapters.
    pub adapters: Vec<AdapterStatus>,
}

/// A channel.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ChannelStatus {
    /// Its number, also in the statistics.
    pub index: u32,
    /// The CPU that it runs on, if it is bound to one.
    pub cpu: Option<u32>,
    /// How many queues it owns.
    pub queues: u32,
}

/// A volume that is open.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct VolumeStatus {
    /// Its specification.
    pub spec: VolumeSpec,
    /// Capacity in bytes.
    pub bytes: u64,
    /// How it is accessed (`direct`, `buffered`, `memory`, `none`), or what was noted when it was opened.
    pub access: String,
}

/// An adapter that exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AdapterStatus {
    /// Its specification.
    pub spec: AdapterSpec,
    /// What it is doing.
    pub state: AdapterState,
    /// Why it is broken, or why the last client was disconnected.
    #[serde(default)]
    pub reason: Option<String>,
    /// Virtqueues for I/O that the client uses now.
    pub client_queues: u16,
    /// Channel of each of them.
    pub channel_of_queue: Vec<u32>,
    /// How many clients have connected since it was created.
    pub connections: u64,
    /// Names of the negotiated features that matter to an administrator.
    pub features: Vec<String>,
}

/// What an adapter is doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AdapterState {
    /// No client is connected.
    Listening,
    /// The client does not listen yet; it is tried again and again.
    Connecting,
    /// A client is connected and none of its queues runs.
    Connected,
    /// Queues run.
    Running,
    /// The client broke a rule; its queues are stopped until it connects again or resets the device.
    Broken,
    /// The socket could not be made.
    Failed,
}

impl AdapterState {
    /// As it is printed.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            AdapterState::Listening => "listening",
            AdapterState::Connecting => "connecting",
            AdapterState::Connected => "connected",
            AdapterState::Running => "running",
            AdapterState::Broken => "broken",
            AdapterState::Failed => "failed",
        }
    }
}
