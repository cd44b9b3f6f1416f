//! Features and the configuration space (virtio 1.3, clauses 5.1.3 and 5.1.4).
//!
//! What filters frames by address or VLAN and what switches offloads while the driver runs stays with the front end: the control queue is its. So
//! CTRL_VQ and what depends on it is not offered here (docs/adr/0030-no-control-queue-is-offered.md).

use spec::EthernetSpec;
use switch::Offloads;

/// Device features (clause 5.1.3).
pub mod feature {
    /// Frames of the driver may have their checksum left out.
    pub const CSUM: u64 = 1;
    /// Frames to the driver may.
    pub const GUEST_CSUM: u64 = 1 << 1;
    /// `mtu` is valid.
    pub const MTU: u64 = 1 << 3;
    /// `mac` is valid.
    pub const MAC: u64 = 1 << 5;
    /// The driver takes TCP over IPv4 uncut.
    pub const GUEST_TSO4: u64 = 1 << 7;
    /// The driver takes TCP over IPv6 uncut.
    pub const GUEST_TSO6: u64 = 1 << 8;
    /// So with ECN.
    pub const GUEST_ECN: u64 = 1 << 9;
    /// The driver may send TCP over IPv4 uncut.
    pub const HOST_TSO4: u64 = 1 << 11;
    /// The driver may send TCP over IPv6 uncut.
    pub const HOST_TSO6: u64 = 1 << 12;
    /// So with ECN.
    pub const HOST_ECN: u64 = 1 << 13;
    /// A received frame may lie in several buffers.
    pub const MRG_RXBUF: u64 = 1 << 15;
    /// `status` is valid.
    pub const STATUS: u64 = 1 << 16;
    /// More than one pair of queues.
    pub const MQ: u64 = 1 << 22;
    /// The driver takes UDP over IPv4 uncut.
    pub const GUEST_USO4: u64 = 1 << 54;
    /// The driver takes UDP over IPv6 uncut.
    pub const GUEST_USO6: u64 = 1 << 55;
    /// The driver may send UDP uncut.
    pub const HOST_USO: u64 = 1 << 56;
    /// Virtio 1.0 or later.
    pub const VERSION_1: u64 = 1 << 32;
    /// Buffers are given back in the order in which they were made available (clause 6).
    pub const IN_ORDER: u64 = 1 << 35;
}

/// Bytes of the configuration space up to and including `mtu`; what lies beyond reads as zero.
pub const CONFIG_BYTES: usize = 12;

/// The features that an adapter with so many virtqueues offers.
#[must_use]
pub fn features(queues: u16) -> u64 {
    let all = feature::CSUM
        | feature::GUEST_CSUM
        | feature::MTU
        | feature::MAC
        | feature::GUEST_TSO4
        | feature::GUEST_TSO6
        | feature::GUEST_ECN
        | feature::HOST_TSO4
        | feature::HOST_TSO6
        | feature::HOST_ECN
        | feature::GUEST_USO4
        | feature::GUEST_USO6
        | feature::HOST_USO
        | feature::MRG_RXBUF
        | feature::STATUS
        | feature::IN_ORDER;
    if queues > 2 { all | feature::MQ } else { all }
}

/// The configuration space.
#[must_use]
pub fn space(spec: &EthernetSpec, queues: u16) -> [u8; CONFIG_BYTES] {
    const LINK_UP: u16 = 1;
    let mut space = [0; CONFIG_BYTES];
    space[..6].copy_from_slice(&spec.mac);
    space[6..8].copy_from_slice(&LINK_UP.to_le_bytes());
    space[8..10].copy_from_slice(&(queues / 2).to_le_bytes());
    space[10..].copy_from_slice(&spec.mtu.to_le_bytes());
    space
}

/// Which tags of a port's frames the switch looks at.
pub(crate) fn tagging(spec: spec::Tagging) -> switch::Tagging {
    match spec {
        spec::Tagging::Dot1q => switch::Tagging::Customer,
        spec::Tagging::Dot1ad => switch::Tagging::Service,
        spec::Tagging::Tunnel => switch::Tagging::None,
    }
}

/// What the driver may leave to us.
#[must_use]
pub fn may(features: u64) -> Offloads {
    let bits = [
        (feature::CSUM, Offloads::CSUM),
        (feature::HOST_TSO4, Offloads::TSO4),
        (feature::HOST_TSO6, Offloads::TSO6),
        (feature::HOST_ECN, Offloads::ECN),
        (feature::HOST_USO, Offloads::USO4.with(Offloads::USO6)),
    ];
    of(features, &bits)
}

/// What may be left to the driver.
#[must_use]
pub fn takes(features: u64) -> Offloads {
    let bits = [
        (feature::GUEST_CSUM, Offloads::CSUM),
        (feature::GUEST_TSO4, Offloads::TSO4),
        (feature::GUEST_TSO6, Offloads::TSO6),
        (feature::GUEST_ECN, Offloads::ECN),
        (feature::GUEST_USO4, Offloads::USO4),
        (feature::GUEST_USO6, Offloads::USO6),
    ];
    of(features, &bits)
}

fn of(features: u64, bits: &[(u64, Offloads)]) -> Offloads {
    let negotiated = bits.iter().filter(|(bit, _)| features & bit != 0);
    negotiated.fold(Offloads::NONE, |all, (_, offload)| all.with(*offload)).consistent()
}

/// Bytes of the header before each frame (clause 5.1.6): two shorter for a legacy driver without mergeable buffers.
#[must_use]
pub fn header_bytes(features: u64) -> usize {
    if features & (feature::VERSION_1 | feature::MRG_RXBUF) == 0 { 10 } else { 12 }
}
