//! Adapters: their sockets, queues, and devices.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{EthernetSpec, ScsiSpec};

/// An adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AdapterSpec {
    /// Its name, `vhostN`, `vfchostN` or `entN`.
    pub name: String,
    /// Where its client connects, or listens.
    pub socket: PathBuf,
    /// Who of the two listens.
    #[serde(default)]
    pub socket_role: SocketRole,
    /// Permission bits of the socket.
    pub socket_mode: u32,
    /// The user that the socket is given to, by name or number; none: who makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_owner: Option<String>,
    /// Its group, by name or number; none: that of who makes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub socket_group: Option<String>,
    /// Most virtqueues for I/O that the client is offered. A SCSI device has two more, for control and events; of a network
    /// card these are all, two for each pair.
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceSpec {
    /// One disk.
    Block(BlockSpec),
    /// SCSI targets with logical units.
    Scsi(ScsiSpec),
    /// A network card.
    Ethernet(EthernetSpec),
}

/// A block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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
    /// Whether a feature of that name is not to be offered to its client.
    #[must_use]
    pub fn withholds(&self, feature: &str) -> bool {
        self.withhold.iter().any(|name| name == feature)
    }

    /// An adapter with what an adapter has that nobody set.
    #[must_use]
    pub fn new(
        name: impl Into<String>,
        socket: impl Into<PathBuf>,
        device: impl Into<DeviceSpec>,
    ) -> AdapterSpec {
        AdapterSpec {
            name: name.into(),
            socket: socket.into(),
            socket_role: SocketRole::Server,
            socket_mode: 0o660,
            socket_owner: None,
            socket_group: None,
            queues: 64,
            channels: 0,
            queue_size: 1024,
            seg_max: 254,
            wait: WaitMode::Adaptive,
            placement: Placement::Adaptive,
            withhold: Vec::new(),
            device: device.into(),
        }
    }

    /// Its block device, if it is one.
    #[must_use]
    pub fn block(&self) -> Option<&BlockSpec> {
        match &self.device {
            DeviceSpec::Block(block) => Some(block),
            DeviceSpec::Scsi(_) | DeviceSpec::Ethernet(_) => None,
        }
    }

    /// Its block device, to change.
    pub fn block_mut(&mut self) -> Option<&mut BlockSpec> {
        match &mut self.device {
            DeviceSpec::Block(block) => Some(block),
            DeviceSpec::Scsi(_) | DeviceSpec::Ethernet(_) => None,
        }
    }

    /// Its SCSI device, if it is one.
    #[must_use]
    pub fn scsi(&self) -> Option<&ScsiSpec> {
        match &self.device {
            DeviceSpec::Scsi(scsi) => Some(scsi),
            DeviceSpec::Block(_) | DeviceSpec::Ethernet(_) => None,
        }
    }

    /// Whether it is a block device on this volume. SCSI devices have logical units instead.
    #[must_use]
    pub fn uses_volume(&self, volume: &str) -> bool {
        self.block().is_some_and(|block| block.volume == volume)
    }
}

impl From<BlockSpec> for DeviceSpec {
    fn from(block: BlockSpec) -> DeviceSpec {
        DeviceSpec::Block(block)
    }
}

impl From<ScsiSpec> for DeviceSpec {
    fn from(scsi: ScsiSpec) -> DeviceSpec {
        DeviceSpec::Scsi(scsi)
    }
}

impl From<EthernetSpec> for DeviceSpec {
    fn from(ethernet: EthernetSpec) -> DeviceSpec {
        DeviceSpec::Ethernet(ethernet)
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
