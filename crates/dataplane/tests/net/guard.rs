//! Network cards whose clients are held to what they may say of themselves.

use crate::common::Server;
use crate::common::net::{
    Client, How, PLAIN, arp_announcement, mac, neighbour_advertisement, wait,
};
use protocol::message::PrefixSpec;
use protocol::stats::QueueCounter;

const OWN: [u8; 16] = [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];
const LOCAL: [u8; 16] = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 5];

/// UDP over IPv4, to everybody.
fn udp(source: [u8; 4], ports: (u16, u16)) -> Vec<u8> {
    let mut frame = [&[0xff; 6][..], &mac(1), &[8, 0]].concat();
    frame.extend([0x45, 0, 0, 40, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend(source);
    frame.extend([255; 4]);
    frame.extend(ports.0.to_be_bytes());
    frame.extend(ports.1.to_be_bytes());
    frame.extend([0, 20, 0, 0]);
    frame.resize(60, 7);
    frame
}

/// A router's advertisement.
fn router_advertisement() -> Vec<u8> {
    let mut frame = neighbour_advertisement(mac(1), LOCAL);
    frame[54] = 134;
    // Its fields are shorter, and options follow.
    let option = [&[1, 1][..], &mac(1)].concat();
    frame[70..78].copy_from_slice(&option);
    frame[78..86].copy_from_slice(&option);
    frame
}

/// What the first client sends reaches the others, or is lost for that reason.
#[track_caller]
fn try_all(
    server: &Server,
    [a, b]: [&mut Client; 2],
    frames: &[(&str, Vec<u8>, Option<QueueCounter>)],
) {
    for (what, frame, lost) in frames {
        let before = lost.map(|reason| server.count_of("ent1", reason));
        a.send(&PLAIN, frame);
        a.sent();
        match lost.zip(before) {
            None => assert_eq!(b.receive().frame, *frame, "{what}"),
            Some((reason, before)) => {
                assert_eq!(server.count_of("ent1", reason), before + 1, "{what}");
            }
        }
    }
    // Nothing of what was lost is still to come.
    let last = a.frame(b.mac(), 7, 60);
    a.send(&PLAIN, &last);
    assert_eq!(b.receive().frame, last);
}

#[test]
fn a_client_is_held_to_its_ip_addresses_and_let_go_while_it_runs() {
    use QueueCounter::{DropSpoofArp, DropSpoofIp, DropSpoofNd};
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |_| ());
        let mut b = server.client(2, How::default(), |_| ());
        let stranger = [&OWN[..15], &[6]].concat().try_into().unwrap();
        let cases = |held: bool| {
            let lost = |reason| held.then_some(reason);
            [
                ("its own address", arp_announcement(mac(1), [10, 0, 0, 5]), None),
                ("another", arp_announcement(mac(1), [10, 0, 0, 6]), lost(DropSpoofArp)),
                ("its own for IPv6", neighbour_advertisement(mac(1), OWN), None),
                // The source is another one as well, which is looked at first.
                ("another for IPv6", neighbour_advertisement(mac(1), stranger), lost(DropSpoofIp)),
                ("one of the link", neighbour_advertisement(mac(1), LOCAL), None),
                ("from its own", udp([10, 0, 0, 5], (9, 9)), None),
                ("from another", udp([10, 0, 0, 6], (9, 9)), lost(DropSpoofIp)),
                ("from none, to a DHCP server", udp([0; 4], (68, 67)), None),
                ("from none, to somebody", udp([0; 4], (68, 9)), lost(DropSpoofIp)),
                ("in the name of another for IPv6", claimed(stranger), lost(DropSpoofNd)),
            ]
        };
        let address = |address: std::net::IpAddr| PrefixSpec {
            address,
            bits: if address.is_ipv4() { 32 } else { 128 },
        };
        let addresses = vec![address([10, 0, 0, 5].into()), address(OWN.into())];
        try_all(&server, [&mut a, &mut b], &cases(false));
        server.change(1, |card| card.guard.addresses = addresses);
        try_all(&server, [&mut a, &mut b], &cases(true));
        server.change(1, |_| ());
        try_all(&server, [&mut a, &mut b], &cases(false));
        // Others are not held to anything.
        let frame = arp_announcement(mac(2), [10, 0, 0, 5]);
        b.send(&PLAIN, &frame);
        assert_eq!(a.receive().frame, frame);
    }
}

/// From its own address, that another one is its own.
fn claimed(address: [u8; 16]) -> Vec<u8> {
    let mut frame = neighbour_advertisement(mac(1), OWN);
    frame[62..78].copy_from_slice(&address);
    frame
}

#[test]
fn a_client_that_may_not_be_a_server_or_a_router_is_none() {
    use QueueCounter::{DropDhcpServer, DropHeaderChain, DropRouterAdvert};
    for channels in [1, 2] {
        let server = Server::new(channels);
        let how = How { queues: 2, ..How::default() };
        let mut a = server.client(1, how, |_| ());
        let mut b = server.client(2, how, |_| ());
        let cases = |dhcp: bool, router: bool| {
            let (dhcp, any) = ((!dhcp).then_some(DropDhcpServer), !dhcp || !router);
            [
                ("an offer", udp([10, 0, 0, 5], (67, 68)), dhcp),
                ("an offer from another port", udp([10, 0, 0, 5], (99, 68)), dhcp),
                ("a question", udp([0; 4], (68, 67)), None),
                ("a router", router_advertisement(), (!router).then_some(DropRouterAdvert)),
                ("a neighbour", neighbour_advertisement(mac(1), LOCAL), None),
                ("what hides it", hidden(), any.then_some(DropHeaderChain)),
            ]
        };
        for (dhcp, router) in [(true, true), (false, true), (true, false), (false, false)] {
            server.change(1, |card| {
                (card.guard.dhcp_server, card.guard.router) = (dhcp, router);
            });
            try_all(&server, [&mut a, &mut b], &cases(dhcp, router));
        }
    }
}

/// A packet in an LLC header, which some stations read.
fn hidden() -> Vec<u8> {
    let inner = udp([10, 0, 0, 5], (67, 68));
    let mut frame = [&inner[..12], &[0, 54, 0xaa, 0xaa, 3, 0, 0, 0], &inner[12..]].concat();
    frame.resize(68, 0);
    frame
}

#[test]
fn who_is_held_hears_its_network_as_before() {
    let server = Server::new(2);
    let mut a = server.client(1, How::default(), |card| {
        card.guard.addresses = vec![PrefixSpec { address: [10, 0, 0, 5].into(), bits: 32 }];
        (card.guard.dhcp_server, card.guard.router, card.any_mac) = (false, false, false);
    });
    let mut b = server.client(2, How::default(), |_| ());
    let mut offer = udp([10, 0, 0, 1], (67, 68));
    offer[6..12].copy_from_slice(&mac(2));
    let mut advertisement = router_advertisement();
    advertisement[6..12].copy_from_slice(&mac(2));
    for frame in [offer, advertisement, b.frame(mac(1), 1, 200)] {
        b.send(&PLAIN, &frame);
        assert_eq!(a.receive().frame, frame);
    }
    wait("all to be counted", || {
        (server.count_of("ent1", QueueCounter::RxFrames) == 3).then_some(())
    });
}
