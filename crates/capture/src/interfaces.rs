//! `netstat -i` of AIX and of Linux, `ip -s link` and `ethtool` of Linux: the interfaces of a system, their MTU and what they lost.
//!
//! Layouts: the AIX commands reference for `netstat` (flags `-i` and `-n`), the manual of iproute2 for `ip`, that of
//! net-tools for `netstat` of Linux. An interface of AIX has a row for each of its addresses; the counters are the same in
//! all of them.

mod read;

pub(super) use read::{ethtool, is_ip_row, report};

use serde::Serialize;

use super::{Head, Read};

/// `netstat -in`, `ip -s link`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Interfaces {
    /// Where it came from.
    pub head: Head,
    /// Each once, in the order printed.
    pub interfaces: Vec<Interface>,
}

impl Interfaces {
    /// Whether a system with Linux printed it.
    pub(crate) fn is_of_linux(&self) -> bool {
        self.interfaces.iter().any(|one| one.up.is_some() || one.received.dropped.is_some())
    }
}

/// One interface.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Interface {
    /// `en0`, `eth0`.
    pub name: Read<String>,
    /// Bytes of a packet at most.
    pub mtu: Option<Read<u64>>,
    /// Its MAC address, in small letters with colons.
    pub mac: Option<Read<String>>,
    /// The networks that it is in, as printed: `10.41.0`.
    pub networks: Vec<String>,
    /// Whether it has a link, where that is said.
    pub up: Option<Read<bool>>,
    /// What came in.
    pub received: Packets,
    /// What went out.
    pub sent: Packets,
}

/// The counters of one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Packets {
    /// Packets.
    pub packets: Option<Read<u64>>,
    /// Errors.
    pub errors: Option<Read<u64>>,
    /// Packets that were dropped for want of room.
    pub dropped: Option<Read<u64>>,
}
