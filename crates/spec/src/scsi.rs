//! Of SCSI: logical units, and what a client sees of them.
//!
//! A *unit* exists once in a data plane, whoever sees it. Which client sees it, behind which target port and under which number, stands in
//! its adapter's [`ScsiSpec`]: the data plane knows no zones and no masks, so what is masked does not exist for a client.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::{LimitSpec, is_default};

/// A SCSI logical unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitSpec {
    /// Its name.
    pub name: String,
    /// The volume behind it; none: an optical drive without a medium, or a disk whose volume is being opened, which says so to its clients.
    #[serde(default)]
    pub volume: Option<String>,
    /// What kind of device it is.
    #[serde(default)]
    pub kind: UnitKind,
    /// INQUIRY's T10 vendor identification; at most 8 bytes.
    pub vendor: String,
    /// INQUIRY's product identification; at most 16 bytes.
    pub product: String,
    /// INQUIRY's product revision level; at most 4 bytes.
    pub revision: String,
    /// The unit serial number (VPD page 80h).
    pub serial: String,
    /// The NAA designator (VPD page 83h).
    pub naa: u64,
    /// Whether writes are refused.
    #[serde(default)]
    pub read_only: bool,
    /// Whether UNMAP is offered where the volume can do it.
    #[serde(default)]
    pub thin: bool,
    /// The file in which persistent reservations with APTPL survive; none: they do not.
    #[serde(default)]
    pub keep: Option<PathBuf>,
    /// What becomes of reservations.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reservations: Reservations,
}

impl UnitSpec {
    /// A disk on a volume, by the volume's name.
    #[must_use]
    pub fn disk(volume: impl Into<String>, naa: u64) -> UnitSpec {
        let name = volume.into();
        UnitSpec { volume: Some(name.clone()), ..UnitSpec::new(name, UnitKind::Disk, naa) }
    }

    /// An optical drive without a medium.
    #[must_use]
    pub fn drive(name: impl Into<String>, naa: u64) -> UnitSpec {
        UnitSpec { read_only: true, ..UnitSpec::new(name.into(), UnitKind::Optical, naa) }
    }

    fn new(name: String, kind: UnitKind, naa: u64) -> UnitSpec {
        let product = match kind {
            UnitKind::Disk => "VIRTUAL DISK",
            UnitKind::Optical => "VIRTUAL DVD-ROM",
        };
        UnitSpec {
            name,
            volume: None,
            kind,
            vendor: "TRUNKLIN".to_owned(),
            product: product.to_owned(),
            revision: "0001".to_owned(),
            serial: format!("{naa:016x}"),
            naa,
            read_only: false,
            thin: kind == UnitKind::Disk,
            keep: None,
            reservations: Reservations::Local,
        }
    }
}

/// What a logical unit makes of PERSISTENT RESERVE and RESERVE.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Reservations {
    /// They hold between the clients of this data plane, who are all that there are.
    #[default]
    Local,
    /// The commands are refused: clients of other servers reach the same disk under the same name, and would not be held by them.
    Refuse,
}

/// Kinds of SCSI device.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum UnitKind {
    /// A disk (peripheral device type 0).
    #[default]
    Disk,
    /// An optical drive (peripheral device type 5), read-only, with a medium or none.
    Optical,
}

/// SCSI targets as one client sees them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScsiSpec {
    /// Who the client is to its targets.
    pub initiator: Initiator,
    /// The target ports that it sees, by ascending `id`.
    pub targets: Vec<TargetSpec>,
    /// What its commands may take.
    pub commands: CommandSpec,
    /// Limits on the client's rate, all its logical units together.
    #[serde(default)]
    pub limit: Option<LimitSpec>,
    /// The port on which its commands are; none: they are on no port.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<PortShare>,
    /// Whether its commands get to their targets.
    #[serde(default, skip_serializing_if = "is_default")]
    pub link: LinkSpec,
}

/// The link of a client's port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LinkSpec {
    /// It is up.
    #[default]
    Up,
    /// It is down. What the client saw before and `targets` do not name it finds again when the link is back, if it is there then.
    Down {
        /// For so long from the moment when it went down, commands wait; then they fail.
        hold_ms: u32,
    },
}

/// What a client has of a port. All adapters that name a port have it together; the latest says how large it is.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PortShare {
    /// Its name.
    pub name: String,
    /// Most commands of all its clients that are active at once.
    pub num_cmd_elems: u32,
    /// The client's weight among those whose commands wait for one that ends; 0 counts as 1.
    pub share: u32,
}

impl ScsiSpec {
    /// What an initiator sees, with bounds that an adapter has that nobody set, and no limits.
    #[must_use]
    pub fn new(initiator: Initiator, targets: Vec<TargetSpec>) -> ScsiSpec {
        ScsiSpec {
            initiator,
            targets,
            commands: CommandSpec::default(),
            limit: None,
            port: None,
            link: LinkSpec::Up,
        }
    }
}

/// The name of an initiator port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Initiator {
    /// Fibre Channel.
    Fc {
        /// The WWPN that is logged in.
        wwpn: u64,
    },
    /// SRP: virtual SCSI.
    Srp {
        /// The initiator port identifier.
        id: [u8; 16],
    },
}

/// A target port.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct TargetSpec {
    /// Its number in the client's SCSI domain; the client's name for it.
    pub id: u8,
    /// Its WWPN, if it is one of Fibre Channel.
    #[serde(default)]
    pub wwpn: Option<u64>,
    /// Its relative target port identifier, from 1.
    pub port: u16,
    /// Names of units by LUN, 0 to 16383.
    pub luns: BTreeMap<u16, String>,
}

/// What the commands of a client may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct CommandSpec {
    /// Most commands that are active at once; what is beyond waits, counted as "no command resource".
    pub num_cmd_elems: u32,
    /// Most task management functions that are under way at once, at least 1; what is beyond waits in order, counted as "no command
    /// resource" of the control queue.
    pub num_sp_cmd_elem: u32,
    /// Commands in each queue's own pool; what is beyond comes from a pool that the adapter's queues share, and is counted.
    pub num_local_cmds: u32,
    /// Segment lists in each queue's own pool for each of its commands; what is beyond comes from the channel's shared pool, and is counted.
    pub bufs_per_cmd: u32,
    /// Commands to one logical unit that the client is told to send at once (`cmd_per_lun`).
    pub queue_depth: u16,
    /// Longest transfer of a command in bytes that the client is told.
    pub max_xfer_bytes: u64,
}

impl Default for CommandSpec {
    /// What an adapter has that nobody set.
    fn default() -> CommandSpec {
        CommandSpec {
            num_cmd_elems: 1024,
            num_sp_cmd_elem: 512,
            num_local_cmds: 5,
            bufs_per_cmd: 10,
            queue_depth: 64,
            max_xfer_bytes: 1 << 20,
        }
    }
}
