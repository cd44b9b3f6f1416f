//! Frames that say where a station is: switches learn it, and neighbours learn the addresses that go with it; nobody answers.

use core::net::IpAddr;

use crate::address::{Mac, Vid};
use crate::checksum::Sum;
use crate::claim::Claim;

/// Bytes of the longest announcement.
pub const ANNOUNCEMENT_BYTES: usize = 86;
/// The shortest frame, without its checksum.
const SHORTEST: usize = 60;

/// What is said of a station.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Announcement {
    /// Who it is.
    pub station: Mac,
    /// In which VLAN.
    pub vid: Vid,
    /// An address that it has; none: only that it is there.
    pub claim: Option<Claim>,
}

impl Announcement {
    /// The frame, without a tag:
    ///
    /// - of the station alone, a reverse ARP request for itself (RFC 903), as QEMU sends it for its guests after a migration;
    /// - of an IPv4 address, an ARP announcement (RFC 5227 clause 3), which is a request;
    /// - of an IPv6 address, an unsolicited neighbour advertisement (RFC 4861 clause 7.2.6).
    #[must_use]
    pub fn frame<'a>(&self, room: &'a mut [u8; ANNOUNCEMENT_BYTES]) -> &'a [u8] {
        *room = [0; ANNOUNCEMENT_BYTES];
        let station = self.station.0;
        let len = match self.claim.map(|claim| (claim.address, claim.router)) {
            None => arp(room, station, [0x80, 0x35, 3], [[0; 4]; 2], station),
            Some((IpAddr::V4(address), _)) => {
                arp(room, station, [0x08, 0x06, 1], [address.octets(); 2], [0; 6])
            }
            Some((IpAddr::V6(address), router)) => {
                neighbour(room, station, address.octets(), router)
            }
        };
        &room[..len]
    }
}

fn put(room: &mut [u8], parts: &[&[u8]]) -> usize {
    let mut at = 0;
    for part in parts {
        room[at..at + part.len()].copy_from_slice(part);
        at += part.len();
    }
    at
}

/// To everybody: the type and the operation, the addresses of both sides, and the station that is meant.
pub(crate) fn arp(
    room: &mut [u8],
    station: [u8; 6],
    [high, low, operation]: [u8; 3],
    [sender, asked]: [[u8; 4]; 2],
    target: [u8; 6],
) -> usize {
    // Ethernet, IPv4, and the lengths of their addresses.
    let fixed = [high, low, 0, 1, 0x08, 0x00, 6, 4, 0, operation];
    let parts: [&[u8]; 7] =
        [&Mac::BROADCAST.0, &station, &fixed, &station, &sender, &target, &asked];
    put(room, &parts).max(SHORTEST)
}

/// To all nodes of the link.
fn neighbour(room: &mut [u8], station: [u8; 6], address: [u8; 16], router: bool) -> usize {
    const NEXT: u8 = 58;
    const LENGTH: u8 = 32;
    let nodes = [0xff, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1];
    // It overrides what was known; nobody asked for it.
    let flags = if router { 0xa0 } else { 0x20 };
    let mut message = [0; LENGTH as usize];
    put(&mut message, &[&[136, 0, 0, 0, flags, 0, 0, 0], &address, &[2, 1], &station]);
    let mut sum = Sum::default();
    for part in [&address[..], &nodes, &[0, 0, 0, LENGTH, 0, 0, 0, NEXT], &message] {
        sum.add(part);
    }
    message[2..4].copy_from_slice(&sum.checksum(false).to_be_bytes());
    let ip = [0x60, 0, 0, 0, 0, LENGTH, NEXT, 255];
    let link = [0x33, 0x33, 0, 0, 0, 1];
    put(room, &[&link, &station, &[0x86, 0xdd], &ip, &address, &nodes, &message])
}

#[cfg(test)]
mod tests {
    use etherparse::{LinkSlice, SlicedPacket, TransportSlice};

    use super::*;
    use crate::view::View;

    const STATION: [u8; 6] = [2, 0, 0, 0, 0, 7];

    fn frame(claim: Option<(IpAddr, bool)>) -> Vec<u8> {
        let claim = claim.map(|(address, router)| Claim { address, router });
        let vid = Vid::new(1).unwrap();
        let mut room = [7; ANNOUNCEMENT_BYTES];
        Announcement { station: Mac(STATION), vid, claim }.frame(&mut room).to_vec()
    }

    #[track_caller]
    fn link(frame: &[u8]) -> ([u8; 6], [u8; 6], u16) {
        let read = SlicedPacket::from_ethernet(frame).expect("a frame");
        let Some(LinkSlice::Ethernet2(link)) = read.link else { panic!("{read:?}") };
        (link.destination(), link.source(), link.ether_type().0)
    }

    #[test]
    fn a_station_is_a_reverse_arp_request_to_everybody() {
        let frame = frame(None);
        assert_eq!(link(&frame), ([0xff; 6], STATION, 0x8035));
        assert_eq!(frame[14..22], [0, 1, 8, 0, 6, 4, 0, 3]);
        assert_eq!((&frame[22..28], &frame[32..38]), (&STATION[..], &STATION[..]));
        assert_eq!(frame[42..], [0; 18]);
    }

    #[test]
    fn an_ipv4_address_is_an_arp_announcement() {
        let address = [10, 1, 2, 3];
        let frame = frame(Some((address.into(), false)));
        assert_eq!(link(&frame), ([0xff; 6], STATION, 0x0806));
        let read = etherparse::ArpPacketSlice::from_slice(&frame[14..]).expect("ARP");
        assert_eq!(read.operation().0, 1);
        assert_eq!((read.sender_hw_addr(), read.target_hw_addr()), (&STATION[..], &[0; 6][..]));
        assert_eq!(
            (read.sender_protocol_addr(), read.target_protocol_addr()),
            (&address[..], &address[..])
        );
        assert_eq!(frame.len(), 60);
    }

    #[test]
    fn an_ipv6_address_is_an_advertisement_that_nobody_asked_for() {
        let address: core::net::Ipv6Addr = "2001:db8::7".parse().unwrap();
        for (router, flags) in [(false, 0x20), (true, 0xa0)] {
            let frame = frame(Some((address.into(), router)));
            assert_eq!(link(&frame), ([0x33, 0x33, 0, 0, 0, 1], STATION, 0x86dd));
            let read = SlicedPacket::from_ethernet(&frame).expect("a frame");
            let Some(etherparse::NetSlice::Ipv6(ip)) = &read.net else { panic!("{read:?}") };
            let header = ip.header();
            assert_eq!(header.source_addr(), address);
            assert_eq!(
                header.destination_addr(),
                "ff02::1".parse::<core::net::Ipv6Addr>().unwrap()
            );
            assert_eq!(header.hop_limit(), 255, "else nobody takes it");
            let Some(TransportSlice::Icmpv6(icmp)) = &read.transport else { panic!("{read:?}") };
            assert!(icmp.is_checksum_valid(header.source(), header.destination()));
            assert_eq!((icmp.type_u8(), icmp.code_u8(), icmp.bytes5to8()[0]), (136, 0, flags));
            assert_eq!(icmp.payload(), [&address.octets()[..], &[2, 1], &STATION].concat());
        }
    }

    #[test]
    fn what_is_announced_is_what_the_station_said() {
        for (address, router) in [
            (IpAddr::from([10, 1, 2, 3]), false),
            ("2001:db8::7".parse().unwrap(), false),
            ("fe80::7".parse().unwrap(), true),
        ] {
            let frame = frame(Some((address, router)));
            let view = View::new(&frame, frame.len()).unwrap();
            assert_eq!(Claim::of(&view), Some(Claim { address, router }));
        }
    }
}
