//! Who leaves what to others, from each kind of port to each: clients of all sets of offloads, a TAP, packet sockets, AF_XDP sockets.
//!
//! ```text
//!   15 clients ── network ─┬─ TAP up0 ────────────── bridge ── TAP of the test
//!                          ├─ packet sockets of p0 ══ p1 ── bridge ── TAP of the test
//!                          └─ AF_XDP sockets of x0 ══ x1 ── AF_XDP socket of the test
//! ```
//!
//! Each pair exchanges packets with no tag, with one and with two. What etherparse made is what etherparse must find: each packet that arrives is right, has
//! nothing left out that its receiver did not offer to do, and all of them together say what was sent. The same is tried without ports, for more ways of
//! changing tags, in `crates/switch/src/edit/tests.rs`.

use std::time::Duration;

use crate::common::Server;
use crate::common::net::{Client, How, PLAIN, frame, ip, mac, quiet, wait};
use crate::common::segments::{MSS, filled, pattern, sum};
use crate::{packet, xdp};
use etherparse::{NetSlice, PacketBuilder, SlicedPacket, TransportSlice};
use partition::net::{HEADER_BYTES, feature};
use protocol::message::{Request, UplinkKind, UplinkSpec};

/// What one of the two sides of a queue may leave to the other.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Offloads {
    sum: bool,
    tso4: bool,
    tso6: bool,
    ecn: bool,
    uso: bool,
}

/// All that a driver may negotiate: nothing without checksums, ECN only with some TCP (virtio 1.3, 5.1.3.1).
fn sets() -> Vec<Offloads> {
    let bits = |number: u8| [0, 1, 2, 3, 4].map(|bit| number >> bit & 1 != 0);
    let all =
        (0..32).map(bits).map(|[sum, tso4, tso6, ecn, uso]| Offloads { sum, tso4, tso6, ecn, uso });
    all.filter(|it| it.sum || !(it.tso4 || it.tso6 || it.ecn || it.uso))
        .filter(|it| !it.ecn || it.tso4 || it.tso6)
        .collect()
}

impl Offloads {
    /// Features that a client of this set does not use.
    fn without(self) -> u64 {
        [
            (self.sum, feature::CSUM | feature::GUEST_CSUM),
            (self.tso4, feature::GUEST_TSO4 | feature::HOST_TSO4),
            (self.tso6, feature::GUEST_TSO6 | feature::HOST_TSO6),
            (self.ecn, feature::GUEST_ECN | feature::HOST_ECN),
            (self.uso, feature::GUEST_USO4 | feature::GUEST_USO6 | feature::HOST_USO),
        ]
        .iter()
        .filter(|(has, _)| !has)
        .fold(0, |all, (_, features)| all | features)
    }
}

/// A packet to be sent.
#[derive(Clone, Copy, PartialEq, Debug)]
struct Kind {
    v4: bool,
    tcp: bool,
    /// The window was reduced, which only the first segment says.
    cwr: bool,
    /// It is for who receives it to cut.
    uncut: bool,
    /// Its checksum is left out.
    left_out: bool,
}

/// Of who may leave that much out.
fn kinds(may: Offloads) -> Vec<Kind> {
    let bits = |number: u8| [0, 1, 2, 3, 4].map(|bit| number >> bit & 1 != 0);
    let all = (0..32).map(bits).map(|[v4, tcp, cwr, uncut, left_out]| Kind {
        v4,
        tcp,
        cwr,
        uncut,
        left_out,
    });
    all.filter(|kind| !kind.cwr || kind.tcp && kind.uncut)
        .filter(|kind| !kind.uncut || kind.left_out)
        .filter(|kind| !kind.left_out || may.sum)
        .filter(|kind| !kind.uncut || takes(may, *kind))
        .collect()
}

/// Whether one of this kind may go uncut.
fn takes(set: Offloads, kind: Kind) -> bool {
    match (kind.tcp, kind.v4) {
        (false, _) => set.uso,
        (true, true) => set.tso4 && (set.ecn || !kind.cwr),
        (true, false) => set.tso6 && (set.ecn || !kind.cwr),
    }
}

const SEQUENCE: u32 = u32::MAX - 2500;

/// One that is made by etherparse, with these tags, and its net header.
fn made(kind: Kind, (from, to): (u8, u8), tags: &[[u8; 4]]) -> ([u8; HEADER_BYTES], Vec<u8>) {
    let ethernet = PacketBuilder::ethernet2(mac(from), mac(to));
    let network = match kind.v4 {
        true => ethernet.ipv4([10, 0, 0, from], [10, 0, 0, to], 64),
        false => {
            let address = |number| [0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, number];
            ethernet.ipv6(address(from), address(to), 64)
        }
    };
    let payload = payload(kind);
    let mut bytes = Vec::new();
    let (field, upper) = match kind.tcp {
        true => {
            let tcp = network.tcp(7, 9, SEQUENCE, 1000).psh().ack(1);
            let tcp = if kind.cwr { tcp.cwr() } else { tcp };
            tcp.write(&mut bytes, &payload).unwrap();
            (16, 20)
        }
        false => {
            network.udp(7, 9).write(&mut bytes, &payload).unwrap();
            (6, 8)
        }
    };
    let l4 = if kind.v4 { 34 } else { 54 };
    let mut header = PLAIN;
    let start = l4 + 4 * tags.len();
    if kind.left_out {
        let pseudo = pseudo(&bytes, kind);
        bytes[l4 + field..l4 + field + 2].copy_from_slice(&(!sum(&pseudo)).to_be_bytes());
        header[0] = 1;
        header[6..8].copy_from_slice(&(start as u16).to_le_bytes());
        header[8] = field as u8;
    }
    if kind.uncut {
        header[1] = match (kind.tcp, kind.v4) {
            (false, _) => 5,
            (true, true) => 1,
            (true, false) => 4,
        } | if kind.cwr { 0x80 } else { 0 };
        header[2..4].copy_from_slice(&((start + upper) as u16).to_le_bytes());
        header[4..6].copy_from_slice(&(MSS as u16).to_le_bytes());
    }
    bytes.splice(12..12, tags.concat());
    (header, bytes)
}

/// An odd number of bytes, and the last segment is shorter than the others.
fn payload(kind: Kind) -> Vec<u8> {
    pattern(if kind.uncut { 3 * MSS + 333 } else { 777 })
}

/// The pseudo header of a frame without tags.
fn pseudo(frame: &[u8], kind: Kind) -> Vec<u8> {
    let (addresses, l4) = if kind.v4 { (26..34, 34) } else { (22..54, 54) };
    let length = ((frame.len() - l4) as u32).to_be_bytes();
    [&frame[addresses], &length, &[0, 0, 0, if kind.tcp { 6 } else { 17 }]].concat()
}

/// Who is at a port.
enum Station {
    Client(Box<Client>),
    /// Behind a bridge of the host.
    Bridge(packet::World),
    Wire(Box<xdp::World>),
}

struct Port {
    number: u8,
    station: Station,
    /// What this station may leave to others, and has offered to do for them.
    offloads: Offloads,
}

const ALL: Offloads = Offloads { sum: true, tso4: true, tso6: true, ecn: true, uso: true };
const NONE: Offloads = Offloads { sum: false, tso4: false, tso6: false, ecn: false, uso: false };

impl Port {
    fn send(&mut self, header: &[u8; HEADER_BYTES], frame: &[u8]) {
        match &mut self.station {
            Station::Client(client) => client.send(header, frame),
            Station::Bridge(world) => world.send(header, frame),
            Station::Wire(world) => world.send(frame),
        }
    }

    fn receive_within(&mut self, time: Duration) -> Option<([u8; HEADER_BYTES], Vec<u8>)> {
        match &mut self.station {
            Station::Client(client) => client.receive_within(time).map(|it| (it.header, it.frame)),
            Station::Wire(world) => world.receive_within(time).map(|frame| (PLAIN, frame)),
            Station::Bridge(world) => world.receive_within(time),
        }
    }

    fn is_client(&self) -> bool {
        matches!(self.station, Station::Client(_))
    }

    /// What came says what was sent, uncut if it has to be.
    fn check(&mut self, kind: Kind, from: u8, tags: &[[u8; 4]], must_be_uncut: bool) {
        let (sent, expected) = (made(kind, (from, self.number), tags).1, payload(kind));
        let mut whole: Vec<u8> = Vec::new();
        while whole.len() < expected.len() {
            let (header, mut frame) =
                self.receive_within(Duration::from_secs(20)).expect("a packet");
            let headers = sent.len() - expected.len();
            let l2 = 14 + 4 * tags.len();
            assert_eq!(frame[..l2], sent[..l2], "addresses and tags");
            if header[0] & 1 != 0 {
                assert!(self.offloads.sum, "it takes none without its checksum");
                let field: u16 = if kind.tcp { 16 } else { 6 };
                assert_eq!(header[8..10], field.to_le_bytes(), "where it is");
            }
            let l4 = if kind.v4 { 34 } else { 54 };
            frame = filled(&header, frame, l4 + 4 * tags.len());
            frame.drain(12..12 + 4 * tags.len());
            if header[1] == 0 {
                assert!(!must_be_uncut, "it was cut for who takes it as it is");
                assert!(frame.len() - (headers - 4 * tags.len()) <= MSS);
            } else {
                assert!(
                    header[0] & 1 != 0 && takes(self.offloads, kind) && kind.uncut,
                    "it takes none uncut"
                );
                assert_eq!(header[4..6], (MSS as u16).to_le_bytes(), "bytes of each segment");
            }
            let (sequence, [psh, cwr], part) = right(&frame, kind);
            let last = whole.len() + part.len() == expected.len();
            if kind.tcp {
                assert_eq!(sequence, SEQUENCE.wrapping_add(whole.len() as u32));
                assert_eq!([psh, cwr], [last, kind.cwr && whole.is_empty()]);
            }
            whole.extend(part);
        }
        assert!(whole == expected, "other bytes");
    }
}

/// What etherparse says of a frame without tags: its lengths and checksums are right. Its sequence number, whether it pushes and says that a window was
/// reduced, and its payload.
#[track_caller]
fn right(frame: &[u8], kind: Kind) -> (u32, [bool; 2], Vec<u8>) {
    let packet = SlicedPacket::from_ethernet(frame).unwrap();
    match packet.net.as_ref().unwrap() {
        NetSlice::Ipv4(ip) => {
            let header = ip.header();
            let found = header.header_checksum();
            assert_eq!(header.to_header().calc_header_checksum(), found, "of the packet");
            assert!(kind.v4);
        }
        NetSlice::Ipv6(_) => assert!(!kind.v4),
        NetSlice::Arp(_) => panic!("ARP"),
    }
    let l4 = if kind.v4 { 34 } else { 54 };
    match packet.transport.unwrap() {
        TransportSlice::Tcp(tcp) => {
            let checksum = match packet.net.as_ref().unwrap() {
                NetSlice::Ipv4(ip) => {
                    let ip = ip.header();
                    tcp.calc_checksum_ipv4(ip.source(), ip.destination())
                }
                NetSlice::Ipv6(ip) => {
                    let ip = ip.header();
                    tcp.calc_checksum_ipv6(ip.source(), ip.destination())
                }
                NetSlice::Arp(_) => panic!("ARP"),
            };
            assert_eq!(checksum.unwrap(), tcp.checksum(), "of TCP");
            (tcp.sequence_number(), [tcp.psh(), tcp.cwr()], tcp.payload().to_vec())
        }
        TransportSlice::Udp(udp) => {
            assert_eq!(usize::from(udp.length()), frame.len() - l4);
            let all = [&pseudo(frame, kind)[..], &frame[l4..]].concat();
            assert_eq!(sum(&all), 0, "of UDP");
            assert_ne!(udp.checksum(), 0, "it has one");
            (0, [false; 2], udp.payload().to_vec())
        }
        other => panic!("{other:?}"),
    }
}

/// No tag; one of a VLAN that all carry; another one inside of that, and one of a provider that is none of anybody's here.
const TAGS: [&[[u8; 4]]; 4] = [
    &[],
    &[[0x81, 0, 0x60, 20]],
    &[[0x81, 0, 0x60, 20], [0x81, 0, 0, 5]],
    &[[0x88, 0xa8, 0, 7], [0x81, 0, 0, 5]],
];

#[test]
#[ignore = "in a namespace"]
fn what_one_leaves_out_the_other_does_or_gets_inside() {
    quiet();
    for pair in ["p", "x"] {
        ip(&format!("link add {pair}0 mtu 9000 type veth peer name {pair}1 mtu 9000"));
        ["0", "1"].iter().for_each(|end| ip(&format!("link set {pair}{end} up")));
    }
    for (channels, thread) in [(1, false), (2, false), (2, true)] {
        let server = Server::new(channels);
        let mut ports: Vec<Port> = Vec::new();
        for (number, offloads) in (1..).zip(sets()) {
            let how = How { without: offloads.without(), ..How::default() };
            let client =
                server.client(number, how, |card| (card.vids, card.mtu) = (vec![20], 9000));
            let station = Station::Client(Box::new(client));
            ports.push(Port { number, station, offloads });
        }
        for (kind, name) in
            [(UplinkKind::Tap, "up0"), (UplinkKind::Packet, "p0"), (UplinkKind::Xdp, "x0")]
        {
            let spec = UplinkSpec {
                kind,
                thread,
                mtu: 9000,
                vids: vec![20],
                ..UplinkSpec::on("net", name)
            };
            server.must(Request::PutUplink(spec));
        }
        let stations = [
            (Station::Bridge(packet::World::behind("br0", "up0", "t0", 9000)), ALL),
            (Station::Bridge(packet::World::behind("br1", "p1", "t1", 9000)), ALL),
            (Station::Wire(Box::new(xdp::World::at("x1"))), NONE),
        ];
        for (number, (station, offloads)) in (101..).zip(stations) {
            ports.push(Port { number, station, offloads });
        }
        greet(&mut ports);
        for from in 0..ports.len() {
            for to in (0..ports.len()).filter(|to| *to != from) {
                for tags in TAGS {
                    for kind in kinds(ports[from].offloads) {
                        let (number, target) = (ports[from].number, ports[to].number);
                        let (header, frame) = made(kind, (number, target), tags);
                        println!("{number} to {target}: {kind:?} {tags:?}");
                        ports[from].send(&header, &frame);
                        let clients = ports[from].is_client() && ports[to].is_client();
                        let uncut = clients && kind.uncut && takes(ports[to].offloads, kind);
                        ports[to].check(kind, number, tags, uncut);
                    }
                }
            }
        }
        for port in &mut ports {
            assert_eq!(port.receive_within(Duration::from_millis(1)), None, "at {}", port.number);
        }
        for name in ["up0", "p0", "x0"] {
            server.must(Request::RemoveUplink { name: name.to_owned() });
        }
        drop(ports);
        for interface in ["br0", "br1", "up0"] {
            ip(&format!("link del {interface}"));
        }
    }
}

/// Until everybody is heard by everybody, with each VLAN.
fn greet(ports: &mut [Port]) {
    for from in 0..ports.len() {
        let number = ports[from].number;
        for tags in &TAGS[..2] {
            let mut hello = frame(mac(number), [0xff; 6], u32::from(number), 60);
            hello.splice(12..12, tags.concat());
            let mut left: Vec<usize> = (0..ports.len()).filter(|to| *to != from).collect();
            wait("all to hear", || {
                ports[from].send(&PLAIN, &hello);
                left.retain(|to| {
                    let came = ports[*to].receive_within(Duration::from_millis(5));
                    came.is_none_or(|(_, frame)| frame != hello)
                });
                left.is_empty().then_some(())
            });
        }
    }
    for port in ports {
        while port.receive_within(Duration::from_millis(30)).is_some() {}
    }
}

#[test]
fn what_one_leaves_out_the_other_does_or_gets() {
    testkit::in_network_namespace("pairs::what_one_leaves_out_the_other_does_or_gets_inside");
}
