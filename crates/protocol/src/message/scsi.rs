//! Of SCSI: logical units, and what a client sees of them.
//!
//! A *unit* exists once in a data plane, whoever sees it. Which client sees it, behind which target port and under which number, stands in
//! its adapter's [`ScsiSpec`]: the data plane knows no zones and no masks, so what is masked does not exist for a client.

use std::collections::BTreeMap;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::LimitSpec;

/// A SCSI logical unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitSpec {
    /// Its name.
    pub name: String,
    /// The volume behind it; none: an optical drive without a medium.
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
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
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
}

/// The name of an initiator port.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
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
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
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

/// A logical unit that exists.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct UnitStatus {
    /// Its specification.
    pub spec: UnitSpec,
    /// Capacity in bytes; 0 without a medium.
    pub bytes: u64,
    /// Whether a medium is loaded; a client may have ejected it.
    pub medium: bool,
    /// Who is registered for persistent reservations.
    #[serde(default)]
    pub registrations: Vec<RegistrationStatus>,
    /// The persistent reservation, if there is one.
    #[serde(default)]
    pub reservation: Option<ReservationStatus>,
}

/// A registered I_T nexus.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegistrationStatus {
    /// The initiator port.
    pub initiator: Initiator,
    /// The target port's relative identifier.
    pub port: u16,
    /// Its reservation key.
    pub key: u64,
}

/// A persistent reservation.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReservationStatus {
    /// Its type as SPC-4, table 64, names it.
    pub kind: String,
    /// The initiator port that holds it; none with the types that all registrants hold.
    #[serde(default)]
    pub holder: Option<Initiator>,
    /// Whether it survives a loss of power (APTPL).
    pub aptpl: bool,
}
