//! Network cards: UDP that is left uncut, guests that do not take what they negotiated, and what only front ends of cards say.

use crate::common::net::{
    Client, How, OFFLOADS, PLAIN, arp_announcement, card, mac, neighbour_advertisement,
};
use crate::common::raw::{Front, PROTOCOL_FEATURES, VERSION_1, words};
use crate::common::{Server, null, raw};
use partition::net::{HEADER_BYTES, feature};
use protocol::message::Request;

const USO: u64 = feature::GUEST_USO4 | feature::GUEST_USO6 | feature::HOST_USO;
const NET_SET_MTU: u32 = 20;
const SEND_RARP: u32 = 19;
/// Protocol features: MQ, RARP, REPLY_ACK and MTU.
const PROTOCOL: u64 = 1 | 1 << 2 | 1 << 3 | 1 << 4;

fn sum(parts: &[&[u8]]) -> u16 {
    let bytes = parts.concat();
    let words =
        bytes.chunks(2).map(|two| u32::from(two[0]) << 8 | u32::from(*two.get(1).unwrap_or(&0)));
    let mut total: u32 = words.sum();
    while total > 0xffff {
        total = (total & 0xffff) + (total >> 16);
    }
    !(total as u16)
}

/// UDP over IPv4 in one piece of 1000 bytes after the other, with its header.
fn uncut(from: &Client, to: u8, payload: &[u8]) -> ([u8; HEADER_BYTES], Vec<u8>) {
    let mut frame = [&mac(to)[..], &from.mac(), &[8, 0, 0x45, 0]].concat();
    frame.extend((28 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 1, 0, 0, 64, 17, 0, 0, 10, 0, 0, from.number, 10, 0, 0, to]);
    let header = sum(&[&frame[14..34]]);
    frame[24..26].copy_from_slice(&header.to_be_bytes());
    frame.extend([0x30, 0x39, 0, 53]);
    frame.extend((8 + payload.len() as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend(payload);
    let mut header = [0; HEADER_BYTES];
    (header[0], header[1]) = (1, 5);
    header[2..4].copy_from_slice(&42_u16.to_le_bytes());
    header[4..6].copy_from_slice(&1000_u16.to_le_bytes());
    header[6..8].copy_from_slice(&34_u16.to_le_bytes());
    header[8..10].copy_from_slice(&6_u16.to_le_bytes());
    (header, frame)
}

/// Each piece comes as a datagram of its own, with both checksums.
#[track_caller]
fn comes_cut(client: &mut Client, payload: &[u8]) {
    for part in payload.chunks(1000) {
        let received = client.receive();
        assert_eq!(received.header[..2], [0, 0]);
        let frame = received.frame;
        assert_eq!(&frame[42..], part);
        assert_eq!(sum(&[&frame[14..34]]), 0, "the header's");
        let length = (frame.len() - 34) as u16;
        assert_eq!(frame[38..40], length.to_be_bytes());
        let pseudo = [&frame[26..34], &[0, 17], &length.to_be_bytes()].concat();
        assert_eq!(sum(&[&pseudo, &frame[34..]]), 0, "the payload's");
    }
}

/// It comes as it was sent, but for the sum of the pseudo header, which stands where the checksum is to be.
#[track_caller]
fn comes_uncut(client: &mut Client, frame: &[u8]) {
    let received = client.receive();
    assert_eq!((received.header[0], received.header[1]), (1, 5));
    assert!(received.frame[..40] == frame[..40] && received.frame[42..] == frame[42..]);
}

#[test]
fn udp_is_left_uncut_to_who_takes_it_so() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut a = server.client(1, How::default(), |_| ());
        let mut plain = server.client(2, How { without: USO | OFFLOADS, ..How::default() }, |_| ());
        let mut c = server.client(3, How::default(), |_| ());
        let payload: Vec<u8> = (0..30_500_u32).map(|at| (at * 7 + at / 251) as u8).collect();
        let (header, frame) = uncut(&a, 2, &payload);
        a.send(&header, &frame);
        comes_cut(&mut plain, &payload);
        // Nobody knew where its receiver is.
        comes_uncut(&mut c, &frame);
        c.send(&PLAIN, &c.frame(mac(1), 1, 60));
        assert_eq!(a.receive().frame, c.frame(mac(1), 1, 60));
        let (header, frame) = uncut(&a, 3, &payload);
        a.send(&header, &frame);
        comes_uncut(&mut c, &frame);
        // A guest that switched it off while it runs, of which nobody is told.
        let off = card(server.dir.path(), 3, |spec| spec.guest_offloads = false);
        server.must(Request::PutAdapter(off));
        a.send(&header, &frame);
        comes_cut(&mut c, &payload);
    }
}

#[test]
fn a_front_end_says_the_mtu_and_where_its_guest_is() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut b = server.client(2, How::default(), |_| ());
        let mut other = server.client(3, How::default(), |spec| spec.pvid = 5);
        let spec = card(server.dir.path(), 1, |_| ());
        let socket = spec.socket.clone();
        server.must(Request::PutAdapter(spec));
        let front = Front::with_protocol(&socket, VERSION_1 | PROTOCOL_FEATURES, PROTOCOL);
        assert!(front.accepted(NET_SET_MTU, &words(&[1400]), &[]));
        for wrong in [67, 1501, 1 << 40] {
            assert!(!front.accepted(NET_SET_MTU, &words(&[wrong]), &[]));
        }
        raw::until("the reason to be told", || {
            server.adapter_named("ent1").reason.is_some_and(|why| why.contains("host_mtu"))
        });
        assert!(front.accepted(NET_SET_MTU, &words(&[1500]), &[]));
        let station = [2, 0, 0, 0, 0, 9];
        let body = [&station[..], &[0, 0]].concat();
        assert!(front.accepted(SEND_RARP, &body, &[]));
        let frame = b.receive().frame;
        assert_eq!((&frame[..6], &frame[6..12]), (&[0xff; 6][..], &station[..]));
        assert_eq!(frame[12..14], [0x80, 0x35]);
        // Of another VLAN.
        other.has_nothing();
        // Everybody knows where it is: what is for it goes nowhere else.
        b.send(&PLAIN, &b.frame(station, 1, 100));
        b.sent();
        other.has_nothing();
    }
}

#[test]
fn a_guest_that_has_come_is_announced_with_the_addresses_that_it_had() {
    for channels in [1, 2] {
        let server = Server::new(channels);
        let mut near = server.client(2, How::default(), |_| ());
        let mut tagged = server.client(3, How::default(), |spec| spec.vids = vec![20]);
        // Behind this one the guest was before: with two addresses, and one on a VLAN.
        let mut before = server.client(4, How::default(), |spec| {
            (spec.any_mac, spec.vids) = (true, vec![20]);
        });
        let station = [2, 0, 0, 0, 0, 9];
        let tag = |frame: &[u8]| [&frame[..12], &[0x81, 0, 0, 20], &frame[12..]].concat();
        let v6 = [0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9];
        let said = arp_announcement(station, [10, 0, 0, 9]);
        let neighbour = neighbour_advertisement(station, v6);
        let on_vlan = tag(&arp_announcement(station, [10, 0, 20, 9]));
        for frame in [&said, &neighbour, &on_vlan] {
            before.send(&PLAIN, frame);
        }
        before.sent();
        let others = [near.receive().frame, near.receive().frame];
        assert_eq!(others, [said.clone(), neighbour.clone()]);
        (0..3).for_each(|_| drop(tagged.receive()));
        let spec = card(server.dir.path(), 1, |spec| (spec.any_mac, spec.vids) = (true, vec![20]));
        let socket = spec.socket.clone();
        server.must(Request::PutAdapter(spec));
        let front = Front::with_protocol(&socket, VERSION_1 | PROTOCOL_FEATURES, PROTOCOL);
        assert!(front.accepted(SEND_RARP, &[&station[..], &[0, 0]].concat(), &[]));
        assert_eq!(near.receive().frame[12..14], [0x80, 0x35]);
        assert_eq!([near.receive().frame, near.receive().frame], [said.clone(), neighbour.clone()]);
        near.has_nothing();
        assert_eq!(tagged.receive().frame[12..14], [0x80, 0x35]);
        let all = [(); 3].map(|()| tagged.receive().frame);
        assert_eq!(all, [said, neighbour, on_vlan]);
        // What is for it there goes to its new place.
        let to = [&station[..], &tagged.mac(), &[0x81, 0, 0, 20, 0x88, 0xb5], &[1; 60]].concat();
        tagged.send(&PLAIN, &to);
        tagged.sent();
        while before.receive_within(std::time::Duration::from_millis(20)).is_some_and(|it| {
            assert!(it.frame[..6] != station, "it went to the old place");
            true
        }) {}
    }
}

#[test]
fn a_disk_has_no_mtu() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(64)));
    let socket = server.put_adapter(|_| ());
    let front = Front::connect(&socket);
    assert!(!front.accepted(NET_SET_MTU, &words(&[1500]), &[]));
}
