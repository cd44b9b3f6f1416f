//! `lsvg` and `df`: the volume groups and the file systems of a system.
//!
//! Layouts: the AIX commands reference for `lsvg`, with `-p` and `-l` and as a VIOS prints it with `-pv` and `-lv`, and for
//! `df`. A list of disks or logical volumes has the group's name on the line before it.

mod read;

pub(super) use read::{df, is_df, lsvg};

use serde::Serialize;

use super::{At, Head, Read};

/// `lsvg NAME`, `lsvg -p NAME`, `lsvg -l NAME`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lsvg {
    /// Where it came from.
    pub head: Head,
    /// In the order printed.
    pub groups: Vec<VolumeGroup>,
}

/// One volume group, as much as one list says of it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct VolumeGroup {
    /// Its name, where it stands there.
    pub name: Option<String>,
    /// `STALE PVs`.
    pub stale_pvs: Option<Read<u64>>,
    /// `STALE PPs`.
    pub stale_pps: Option<Read<u64>>,
    /// Its disks with their states: `active`, `missing`, `removed`.
    pub disks: Vec<Member>,
    /// Its logical volumes with their states: `open/syncd`, `closed/stale`.
    pub volumes: Vec<Member>,
}

/// A disk or a logical volume of a group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Member {
    /// The line.
    pub at: At,
    /// `hdisk1`, `hd9var`.
    pub name: String,
    /// As printed.
    pub state: String,
}

/// `df`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Df {
    /// Where it came from.
    pub head: Head,
    /// Those with blocks of their own, in the order printed.
    pub systems: Vec<FileSystem>,
}

/// One file system.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FileSystem {
    /// The line.
    pub at: At,
    /// `/dev/hd9var`.
    pub device: String,
    /// Percent of its blocks.
    pub used_percent: u64,
    /// Where it is mounted.
    pub mounted: String,
}
