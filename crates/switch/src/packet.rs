//! ARP and IP headers in a frame, as far as the switch needs them.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::address::{CUSTOMER_TPID, Mac, SERVICE_TPID};
use crate::view::{View, be16};

/// IP protocol numbers.
pub(crate) mod protocol {
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const IGMP: u8 = 2;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const ICMPV6: u8 = 58;
    pub(crate) const PIM: u8 = 103;
}

/// What a frame carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Packet {
    /// ARP for IPv4 over Ethernet.
    Arp(Arp),
    /// IPv4 or IPv6, with a header chain that is known to its end.
    Ip(Ip),
    /// ARP or IP with headers that contradict themselves or go beyond what is known of the frame; or more tags than are looked behind.
    Unclear,
    /// Anything else.
    Other,
}

/// An ARP packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arp {
    /// 1 request, 2 reply.
    pub operation: u16,
    /// Who says that it speaks.
    pub sender: (Mac, Ipv4Addr),
    /// Whom it speaks of or to.
    pub target: (Mac, Ipv4Addr),
}

/// Where in its packet a fragment stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fragment {
    /// The packet is whole.
    Whole,
    /// The first of several: the upper header may be cut.
    First,
    /// A later one, without the upper header.
    Later,
}

/// IPv4 or IPv6 headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ip {
    /// Who says that it speaks.
    pub source: IpAddr,
    /// To whom.
    pub destination: IpAddr,
    /// The upper protocol, behind extension headers.
    pub protocol: u8,
    /// Where the upper header begins in the frame.
    pub l4: usize,
    /// Where the packet ends in the frame: what follows is padding.
    pub end: usize,
    /// Whether it is a fragment.
    pub fragment: Fragment,
}

impl Packet {
    /// Reads the headers behind the Ethernet header.
    #[must_use]
    pub fn of(view: &View<'_>) -> Packet {
        match view.ethertype() {
            0x0806 => arp(view).unwrap_or(Packet::Unclear),
            0x0800 => ipv4(view).map_or(Packet::Unclear, Packet::Ip),
            0x86dd => ipv6(view).map_or(Packet::Unclear, Packet::Ip),
            CUSTOMER_TPID | SERVICE_TPID => Packet::Unclear,
            _ => Packet::Other,
        }
    }
}

impl Ip {
    /// The upper header and what follows, as far as it is known and not padding; nothing in a later fragment.
    #[must_use]
    pub fn upper<'a>(&self, view: &View<'a>) -> &'a [u8] {
        let known = view.head().len().min(self.end);
        match self.fragment {
            Fragment::Later => &[],
            _ => view.head().get(self.l4..known).unwrap_or_default(),
        }
    }

    /// Source and destination port of TCP and UDP.
    #[must_use]
    pub fn ports(&self, view: &View<'_>) -> Option<(u16, u16)> {
        let upper = self.upper(view);
        let has_ports = matches!(self.protocol, protocol::TCP | protocol::UDP);
        has_ports.then(|| Some((be16(upper, 0)?, be16(upper, 2)?)))?
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<[u8; N]> {
    bytes.get(at..)?.first_chunk().copied()
}

/// None if it is broken.
fn arp(view: &View<'_>) -> Option<Packet> {
    let bytes = view.head().get(view.l3()..)?;
    if array(bytes, 0)? != [0, 1, 8, 0, 6, 4] {
        return (bytes.len() >= 8).then_some(Packet::Other);
    }
    Some(Packet::Arp(Arp {
        operation: be16(bytes, 6)?,
        sender: (Mac(array(bytes, 8)?), array::<4>(bytes, 14)?.into()),
        target: (Mac(array(bytes, 18)?), array::<4>(bytes, 24)?.into()),
    }))
}

fn ipv4(view: &View<'_>) -> Option<Ip> {
    let (l3, bytes) = (view.l3(), view.head().get(view.l3()..)?);
    let header = usize::from(bytes.first()? & 15) * 4;
    let total = usize::from(be16(bytes, 2)?);
    // A length of 0 is filled in when a frame is segmented (Windows writes it so).
    let end = if total == 0 { view.len() } else { l3 + total };
    if bytes[0] >> 4 != 4 || header < 20 || bytes.len() < header || end > view.len() {
        return None;
    }
    if end < l3 + header {
        return None;
    }
    let place = be16(bytes, 6)?;
    let fragment = match (place & 0x1fff, place & 0x2000) {
        (0, 0) => Fragment::Whole,
        (0, _) => Fragment::First,
        _ => Fragment::Later,
    };
    Some(Ip {
        source: Ipv4Addr::from(array::<4>(bytes, 12)?).into(),
        destination: Ipv4Addr::from(array::<4>(bytes, 16)?).into(),
        protocol: bytes[9],
        l4: l3 + header,
        end,
        fragment,
    })
}

fn ipv6(view: &View<'_>) -> Option<Ip> {
    let l3 = view.l3();
    let head = view.head();
    let fixed: [u8; 40] = array(head, l3)?;
    let payload = usize::from(be16(&fixed, 4)?);
    let end = if payload == 0 { view.len() } else { l3 + 40 + payload };
    if fixed[0] >> 4 != 6 || end > view.len() {
        return None;
    }
    let (mut protocol, mut l4, mut fragment) = (fixed[6], l3 + 40, Fragment::Whole);
    // Each extension header is at least eight bytes, so this ends with the known bytes.
    while fragment != Fragment::Later {
        let [next, length, ..] = match protocol {
            // Hop-by-hop, routing, fragment, authentication, destination, mobility, HIP, shim6.
            0 | 43 | 44 | 51 | 60 | 135 | 139 | 140 => array::<8>(head, l4)?,
            _ => break,
        };
        let length = match protocol {
            44 => {
                let place = be16(head, l4 + 2)?;
                fragment = match (place >> 3, place & 1) {
                    (0, 0) => fragment,
                    (0, _) => Fragment::First,
                    _ => Fragment::Later,
                };
                8
            }
            51 => (usize::from(length) + 2) * 4,
            _ => (usize::from(length) + 1) * 8,
        };
        (protocol, l4) = (next, l4 + length);
    }
    let source = Ipv6Addr::from(array::<16>(&fixed, 8)?).into();
    let destination = Ipv6Addr::from(array::<16>(&fixed, 24)?).into();
    (l4 <= end).then_some(Ip { source, destination, protocol, l4, end, fragment })
}

#[cfg(test)]
mod tests;
