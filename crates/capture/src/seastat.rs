//! `seastat`: what each client sends through a shared Ethernet adapter; needs `accounting=enabled` on it.

mod read;

pub(super) use read::report;

use serde::Serialize;

use super::{At, Head, Read};

/// `seastat -d entN`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Seastat {
    /// Where it came from; the device is that of the heading.
    pub head: Head,
    /// In the order printed.
    pub clients: Vec<SeaClient>,
}

/// One address behind the SEA.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SeaClient {
    /// The line of its address.
    pub at: At,
    /// Its MAC address, as printed.
    pub mac: String,
    /// Its VLAN; `None` also for untagged.
    pub vlan: Option<Read<u16>>,
    /// `VLAN Priority`; `None` also for none.
    pub vlan_priority: Option<Read<u16>>,
    /// Its host name, when it could be resolved.
    pub hostname: Option<Read<String>>,
    /// Its IP address.
    pub ip: Option<Read<String>>,
    /// Packets that the SEA sent to it or for it, by the heading `Transmit Statistics`.
    pub transmitted_packets: Option<Read<u64>>,
    /// Bytes, likewise.
    pub transmitted_bytes: Option<Read<u64>>,
    /// Packets under `Receive Statistics`.
    pub received_packets: Option<Read<u64>>,
    /// Bytes, likewise.
    pub received_bytes: Option<Read<u64>>,
}
