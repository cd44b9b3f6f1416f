//! `lsnportlogin` of an HMC: which WWPNs of client partitions are logged in to the fabric, and by whom.
//!
//! `wwpn_status` is 0 for a WWPN that is not activated, 1 for one that is, 2 where that is unknown. No capture of a real
//! HMC was at hand to check the layout; a line that does not fit is kept as not understood.

mod read;

pub(super) use read::{fields, quoted_part, report};

use serde::Serialize;

use super::{At, Head, Read, Wwn};

/// `lsnportlogin -m SYSTEM --filter …`.
///
/// [`Head::partition`] is `None`: every row names its own, and the prompt is that of the HMC.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lsnportlogin {
    /// Where it came from.
    pub head: Head,
    /// The managed system, from the command.
    pub system: Option<Read<String>>,
    /// In the order printed.
    pub wwpns: Vec<WwpnLogin>,
}

/// One WWPN of a virtual Fibre Channel adapter of a client; an adapter has two, on lines that follow each other.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WwpnLogin {
    /// The line.
    pub at: At,
    /// The WWPN; `None` when it was made unreadable, see [`Head::masked`].
    pub wwpn: Option<Wwn>,
    /// The partition's name.
    pub partition: Option<Read<String>>,
    /// The partition's number.
    pub partition_id: Option<Read<u32>>,
    /// The profile in which the adapter is configured, as printed.
    pub profile: Option<Read<String>>,
    /// The slot of the client's adapter.
    pub slot: Option<Read<u32>>,
    /// Whether it is active on the fabric.
    pub status: Option<Read<WwpnStatus>>,
    /// Who logged it in.
    pub logged_in: Option<Read<LoggedIn>>,
    /// Why the status is as it is, when the HMC says so.
    pub reason: Option<Read<String>>,
}

/// Whether a WWPN is active: `wwpn_status`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WwpnStatus {
    /// `0`.
    Inactive,
    /// `1`.
    Active,
    /// `2`: the HMC does not know.
    Unknown,
}

/// Who logged a WWPN in: `logged_in`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum LoggedIn {
    /// Nobody.
    None,
    /// The VIOS, for the HMC's login operation.
    Vios,
    /// The client partition.
    Client,
}
