//! `lsmap`: which virtual adapter of a VIOS stands for what, for virtual SCSI, NPIV and Ethernet.

mod read;
mod vnic;

pub(super) use read::{field_count, net, npiv, scsi};
pub(super) use vnic::vnic;

use serde::Serialize;

use super::{At, Head, Read};

/// `lsmap -all`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LsmapScsi {
    /// Where it came from.
    pub head: Head,
    /// Server adapters, in the order printed.
    pub adapters: Vec<ScsiMap>,
}

/// One virtual SCSI server adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ScsiMap {
    /// The line of its name.
    pub at: At,
    /// `vhostN`.
    pub name: String,
    /// Where its slot is.
    pub physloc: Option<Read<String>>,
    /// The client's partition id; 0 when none is connected.
    pub client_partition: Option<Read<u32>>,
    /// What it gives to its client; none for `NO VIRTUAL TARGET DEVICE FOUND`.
    pub devices: Vec<Vtd>,
}

/// One virtual target device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Vtd {
    /// The line of its name.
    pub at: At,
    /// `vtscsiN` or a name that an administrator chose.
    pub name: String,
    /// `Available`, `Defined`.
    pub status: Option<Read<String>>,
    /// The LUN.
    pub lun: Option<Read<u64>>,
    /// What is behind it: a disk, a logical volume, a file, or `LU.UDID` of a pool.
    pub backing: Option<Read<String>>,
    /// Where that is.
    pub physloc: Option<Read<String>>,
    /// `true`, `false`; `None` for `N/A` and where not printed.
    pub mirrored: Option<Read<bool>>,
}

/// `lsmap -all -npiv`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LsmapNpiv {
    /// Where it came from.
    pub head: Head,
    /// Server adapters, in the order printed.
    pub adapters: Vec<NpivMap>,
}

/// One virtual Fibre Channel server adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NpivMap {
    /// The line of its name.
    pub at: At,
    /// `vfchostN`.
    pub name: String,
    /// Where its slot is.
    pub physloc: Option<Read<String>>,
    /// The client's partition id.
    pub client_id: Option<Read<u32>>,
    /// The client's name, as the client told it.
    pub client_name: Option<Read<String>>,
    /// `AIX`, `Linux`, `IBM i`.
    pub client_os: Option<Read<String>>,
    /// `LOGGED_IN`, `NOT_LOGGED_IN`.
    pub status: Option<Read<String>>,
    /// The physical port, `fcsN`; `None` when not mapped.
    pub port: Option<Read<String>>,
    /// Where that is.
    pub port_physloc: Option<Read<String>>,
    /// How many target ports the client is logged in to.
    pub ports_logged_in: Option<Read<u32>>,
    /// The flags as a number.
    pub flags: Option<Read<u64>>,
    /// The flags by name, when printed.
    pub flag_names: Vec<String>,
    /// The client's adapter, `fcsN`.
    pub client_adapter: Option<Read<String>>,
    /// Its location code.
    pub client_drc: Option<Read<String>>,
}

/// `lsmap -all -net`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LsmapNet {
    /// Where it came from.
    pub head: Head,
    /// Virtual Ethernet adapters, in the order printed.
    pub adapters: Vec<NetMap>,
}

/// One virtual Ethernet adapter of the VIOS.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NetMap {
    /// The line of its name.
    pub at: At,
    /// `entN`.
    pub name: String,
    /// Where its slot is.
    pub physloc: Option<Read<String>>,
    /// The shared Ethernet adapter; `None` for `NO SHARED ETHERNET ADAPTER FOUND`.
    pub sea: Option<Read<String>>,
    /// The adapter to the outside.
    pub backing: Option<Read<String>>,
    /// `Available`.
    pub status: Option<Read<String>>,
    /// Where the backing adapter is.
    pub backing_physloc: Option<Read<String>>,
}

/// `lsmap -all -vnic`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LsmapVnic {
    /// Where it came from.
    pub head: Head,
    /// Server adapters, in the order printed.
    pub adapters: Vec<VnicMap>,
}

/// One vNIC server adapter.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VnicMap {
    /// The line of its name.
    pub at: At,
    /// `vnicserverN`.
    pub name: String,
    /// Where its slot is.
    pub physloc: Option<Read<String>>,
    /// The client's partition id.
    pub client_id: Option<Read<u32>>,
    /// The client's name, as the client told it.
    pub client_name: Option<Read<String>>,
    /// `AIX`, `Linux`, `IBM i`.
    pub client_os: Option<Read<String>>,
    /// The logical port of an SR-IOV adapter behind it, `entN`.
    pub backing: Option<Read<String>>,
    /// `Available`.
    pub status: Option<Read<String>>,
    /// Where the logical port is.
    pub backing_physloc: Option<Read<String>>,
    /// The client's adapter, `entN`.
    pub client_device: Option<Read<String>>,
    /// Where that is.
    pub client_physloc: Option<Read<String>>,
}
