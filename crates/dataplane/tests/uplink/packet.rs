//! Uplinks of the kind `packet`: frames of a client and of the world outside byte by byte, in a network namespace of the test's own.
//!
//! ```text
//!   client ── network ── packet sockets of v0 ══ v1 ── bridge ── TAP of the test
//! ```
//!
//! A TAP shows a frame with its tag and its net header as the kernel has them, by another way than packet sockets.

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::time::{Duration, Instant};

use crate::common::Server;
use crate::common::net::{Client, How, OFFLOADS, PLAIN, ip, mac, quiet, wait};
use crate::common::segments::{MSS, filled, pattern, payload, tagged, tcp, udp, udp_uncut};
use partition::net::{HEADER_BYTES, feature};
use protocol::message::{Request, UplinkKind, UplinkSpec};
use protocol::stats::QueueCounter;

const OUTSIDE: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn uplink() -> UplinkSpec {
    let kind = UplinkKind::Packet;
    UplinkSpec { kind, mtu: 1500, vids: vec![20], ..UplinkSpec::on("net", "v0") }
}

/// The world outside.
pub(super) struct World(File);

impl World {
    /// At the other end of a pair of interfaces.
    fn new() -> World {
        quiet();
        ip("link add v0 type veth peer name v1");
        ip("link set v0 up");
        World::behind("br0", "v1", "t0", 1500)
    }

    /// Behind a bridge that knows no VLANs, whose other port is that interface.
    pub(super) fn behind(bridge: &str, port: &str, tap: &str, mtu: u16) -> World {
        let file = File::from(memory::tap::open(tap, mtu).unwrap());
        ip(&format!("link add {bridge} mtu {mtu} type bridge mcast_snooping 0"));
        for interface in [port, tap] {
            ip(&format!("link set {interface} master {bridge}"));
        }
        for interface in [port, tap, bridge] {
            ip(&format!("link set {interface} up"));
        }
        World(file)
    }

    pub(super) fn send(&mut self, header: &[u8], frame: &[u8]) {
        let all = [header, frame].concat();
        assert_eq!(self.0.write(&all).unwrap(), all.len());
    }

    /// The next frame and its net header, if one comes in this time.
    pub(super) fn receive_within(
        &mut self,
        time: Duration,
    ) -> Option<([u8; HEADER_BYTES], Vec<u8>)> {
        let end = Instant::now() + time;
        let mut room = vec![0; 70_000];
        loop {
            match self.0.read(&mut room) {
                Ok(bytes) => {
                    let (header, frame) = room[..bytes].split_first_chunk().unwrap();
                    return Some((*header, frame.to_vec()));
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    if Instant::now() > end {
                        return None;
                    }
                    std::thread::sleep(Duration::from_micros(100));
                }
                Err(error) => panic!("{error}"),
            }
        }
    }

    #[track_caller]
    pub(super) fn receive(&mut self) -> ([u8; HEADER_BYTES], Vec<u8>) {
        self.receive_within(Duration::from_secs(60)).expect("a frame")
    }

    /// Until what the client sends comes: interfaces that were set up just now may lose frames.
    #[track_caller]
    pub(super) fn greet(&mut self, client: &mut Client) {
        let hello = client.frame([0xff; 6], 0, 60);
        wait("a first frame", || {
            client.send(&PLAIN, &hello);
            self.receive_within(Duration::from_millis(50))
        });
        while self.receive_within(Duration::from_millis(100)).is_some() {}
        // And where the world outside is.
        let hello = crate::common::net::frame(OUTSIDE, [0xff; 6], 0, 60);
        self.send(&PLAIN, &hello);
        // A bridge may have said something of its own before.
        while client.receive().frame != hello {}
    }
}

#[test]
#[ignore = "in a namespace"]
fn frames_pass_as_they_are_inside() {
    let mut world = World::new();
    for (channels, thread) in [(1, false), (2, false), (2, true)] {
        let server = Server::new(channels);
        server.must(Request::PutUplink(UplinkSpec { thread, ..uplink() }));
        let status = server.status();
        let on = |number| if thread { channels - 1 } else { number };
        assert_eq!(status.uplinks[0].channel_of_queue, (0..channels).map(on).collect::<Vec<_>>());
        let mut client = server.client(1, How::default(), |_| ());
        let mut on_vlan = server.client(2, How::default(), |card| card.pvid = 20);
        let mut trunk = server.client(3, How::default(), |card| card.vids = vec![20]);
        world.greet(&mut client);
        drop(trunk.receive());
        while trunk.receive_within(Duration::from_millis(20)).is_some() {}
        for (number, len) in (1..).zip([60, 61, 255, 256, 257, 1000, 1514]) {
            let frame = client.frame(OUTSIDE, number, len);
            client.send(&PLAIN, &frame);
            assert_eq!(world.receive().1, frame);
            let back = crate::common::net::frame(OUTSIDE, mac(1), number, len);
            world.send(&PLAIN, &back);
            assert_eq!(client.receive().frame, back);
            // With a tag, which the kernel keeps beside the frame.
            let frame = on_vlan.frame([0xff; 6], number, len);
            on_vlan.send(&PLAIN, &frame);
            assert_eq!(world.receive().1, tagged(&frame, [0x81, 0, 0, 20]));
            assert_eq!(trunk.receive().frame, tagged(&frame, [0x81, 0, 0, 20]));
            let back = crate::common::net::frame(OUTSIDE, [0xff; 6], number, len);
            world.send(&PLAIN, &tagged(&back, [0x81, 0, 0x60, 20]));
            assert_eq!(on_vlan.receive().frame, back);
            assert_eq!(trunk.receive().frame, tagged(&back, [0x81, 0, 0x60, 20]));
            // A provider's tag is none of the port's: it passes as it is, with whatever is behind it.
            let double = tagged(&tagged(&back[..len - 4], [0x81, 0, 0, 5]), [0x88, 0xa8, 0, 7]);
            let to_client = [&mac(1)[..], &double[6..]].concat();
            world.send(&PLAIN, &to_client);
            assert_eq!(client.receive().frame, to_client);
        }
        // Of a VLAN that the uplink does not carry nothing comes.
        world.send(
            &PLAIN,
            &tagged(&crate::common::net::frame(OUTSIDE, [0xff; 6], 1, 60), [0x81, 0, 0, 21]),
        );
        wait("the frame to be refused", || {
            (server.count_of("v0", QueueCounter::DropVlanFilter) == 1).then_some(())
        });
        // What the host itself sends there is none of its business.
        let mut host = File::from(memory::packet::open("v0", None, false).unwrap());
        let frame = crate::common::net::frame([2, 0, 0, 0, 0, 8], [0xff; 6], 1, 60);
        host.write_all(&[&PLAIN[..], &frame].concat()).unwrap();
        assert_eq!(world.receive().1, frame);
        // Its own frames do not come back: only what the world sent was received.
        client.has_nothing();
        let sent = 1 + 7 * 3;
        assert_eq!(server.count_of("v0", QueueCounter::RxFrames), sent);
        server.must(Request::RemoveUplink { name: "v0".to_owned() });
    }
}

#[test]
fn frames_pass_as_they_are() {
    testkit::in_network_namespace("packet::frames_pass_as_they_are_inside");
}

#[test]
#[ignore = "in a namespace"]
fn what_is_left_out_is_done_by_who_must_inside() {
    let mut world = World::new();
    const USO: u64 = feature::GUEST_USO4 | feature::GUEST_USO6 | feature::HOST_USO;
    for (channels, without, pvid, thread) in [
        (1, 0, 1, false),
        (2, 0, 20, false),
        (2, 0, 20, true),
        (1, OFFLOADS | USO, 1, false),
        (2, OFFLOADS | USO, 20, false),
        (2, OFFLOADS | USO, 20, true),
    ] {
        let server = Server::new(channels);
        server.must(Request::PutUplink(UplinkSpec { thread, ..uplink() }));
        let how = How { without, ..How::default() };
        let mut client = server.client(1, how, |card| card.pvid = pvid);
        let (l3, tag) = if pvid == 1 { (14, &[][..]) } else { (18, &[0x81, 0, 0, 20][..]) };
        let on_wire = |frame: &[u8]| [&frame[..12], tag, &frame[12..]].concat();
        // The world outside hears it, and is heard.
        let hello = client.frame([0xff; 6], 0, 60);
        wait("a first frame", || {
            client.send(&PLAIN, &hello);
            world.receive_within(Duration::from_millis(50))
        });
        while world.receive_within(Duration::from_millis(100)).is_some() {}
        world.send(&PLAIN, &on_wire(&crate::common::net::frame(OUTSIDE, [0xff; 6], 0, 60)));
        drop(client.receive());

        let (there, back) = ((mac(1), OUTSIDE), (OUTSIDE, mac(1)));
        for bytes in [0, 1, 18, 500, 1472] {
            let (header, frame) = udp(there, &pattern(bytes));
            let whole = filled(&header, frame.clone(), 34);
            match without {
                0 => client.send(&header, &frame),
                _ => client.send(&PLAIN, &whole),
            }
            let (header, came) = world.receive();
            assert_eq!(filled(&header, came, l3 + 20), on_wire(&whole), "{bytes} bytes");
            let (mut header, frame) = udp(back, &pattern(bytes));
            let whole = filled(&header, frame.clone(), 34);
            header[6] = l3 as u8 + 20;
            world.send(&header, &on_wire(&frame));
            let came = client.receive();
            assert!(without == 0 || came.header[..10] == [0; 10], "nothing is left to it");
            assert_eq!(filled(&came.header, came.frame, 34), whole, "{bytes} bytes");
        }
        // What is to be cut goes uncut as far as it can.
        let stream = pattern(30_500);
        if without == 0 {
            let (header, frame) = tcp(there, &stream);
            client.send(&header, &frame);
            let (came, bytes) = world.receive();
            assert_eq!((came[1], &came[4..6]), (1, &header[4..6]), "it was not cut");
            assert_eq!(usize::from(came[6]), l3 + 20);
            assert_eq!(bytes, on_wire(&frame));
            let (header, frame) = udp_uncut(there, &stream);
            client.send(&header, &frame);
            let (came, bytes) = world.receive();
            assert_eq!((came[1], &came[4..6]), (5, &header[4..6]), "it was not cut");
            assert_eq!(usize::from(came[6]), l3 + 20);
            assert_eq!(bytes, on_wire(&frame));
        }
        let (mut header, frame) = udp_uncut(back, &stream);
        header[6] = l3 as u8 + 20;
        header[2] += l3 as u8 - 14;
        world.send(&header, &on_wire(&frame));
        let mut all = Vec::new();
        while all.len() < stream.len() {
            let came = client.receive();
            if without == 0 {
                assert_eq!((came.header[1], &came.frame), (5, &frame), "it was cut");
                all.extend(&came.frame[42..]);
                continue;
            }
            let part = payload(&came.frame, 14, 8);
            assert!(part.len() <= MSS);
            all.extend(part);
        }
        assert!(all == stream);
        let (mut header, frame) = tcp(back, &stream);
        header[6] = l3 as u8 + 20;
        header[2] += l3 as u8 - 14;
        world.send(&header, &on_wire(&frame));
        let mut all = Vec::new();
        while all.len() < stream.len() {
            let came = client.receive();
            if without == 0 {
                assert_eq!((came.header[1], came.frame.len()), (1, frame.len()), "it was cut");
                assert_eq!(came.frame, frame);
                all.extend(&came.frame[54..]);
                continue;
            }
            assert_eq!(came.header[..10], [0; 10], "nothing is left to it");
            let part = payload(&came.frame, 14, 20);
            assert!(part.len() <= MSS);
            all.extend(part);
        }
        assert!(all == stream);
        client.has_nothing();
        server.must(Request::RemoveUplink { name: "v0".to_owned() });
    }
}

#[test]
fn what_is_left_out_is_done_by_who_must() {
    testkit::in_network_namespace("packet::what_is_left_out_is_done_by_who_must_inside");
}

#[test]
#[ignore = "in a namespace"]
fn an_interface_goes_down_and_comes_back_inside() {
    let mut world = World::new();
    let server = Server::new(2);
    server.must(Request::PutUplink(uplink()));
    let mut client = server.client(1, How::default(), |_| ());
    world.greet(&mut client);
    ip("link set v0 down");
    let frame = client.frame(OUTSIDE, 1, 100);
    client.send(&PLAIN, &frame);
    wait("the failure", || (server.count_of("v0", QueueCounter::DropFailure) == 1).then_some(()));
    ip("link set v0 up");
    world.greet(&mut client);
    client.send(&PLAIN, &frame);
    assert_eq!(world.receive().1, frame);
    // Nobody looks while there is nothing.
    let failures = server.count_of("v0", QueueCounter::DropFailure);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(server.count_of("v0", QueueCounter::DropFailure), failures);
    // Many flows over both descriptors: each frame comes once, and in the order of its flow.
    const FLOWS: u8 = 40;
    let mut came: Vec<Vec<u8>> = vec![Vec::new(); usize::from(FLOWS)];
    let mut take = |client: &mut Client, time| {
        let Some(received) = client.receive_within(time) else { return false };
        came[usize::from(received.frame[35])].push(received.frame[42]);
        true
    };
    for number in 0..20 {
        for flow in 0..FLOWS {
            let (_, mut frame) = udp((OUTSIDE, mac(1)), &[number; 20]);
            // Its ports; no checksum, as UDP may have it.
            (frame[35], frame[37]) = (flow, flow);
            frame[40..42].copy_from_slice(&[0, 0]);
            world.send(&PLAIN, &frame);
        }
        // No more at once than fit the inbox of a receiver on another channel.
        (0..FLOWS).for_each(|_| assert!(take(&mut client, Duration::from_secs(60))));
    }
    assert!(!take(&mut client, Duration::from_millis(50)), "one came twice");
    assert!(came.iter().all(|flow| *flow == (0..20).collect::<Vec<u8>>()), "{came:?}");
    let stats = server.stats();
    let of = |queue: &protocol::stats::QueueSnapshot| queue.get(QueueCounter::RxFrames);
    let shares: Vec<u64> = stats.queues.iter().filter(|it| it.adapter == "v0").map(of).collect();
    assert!(shares.iter().all(|share| *share > 0), "{shares:?}");
}

#[test]
fn an_interface_goes_down_and_comes_back() {
    testkit::in_network_namespace("packet::an_interface_goes_down_and_comes_back_inside");
}

#[test]
#[ignore = "in a namespace"]
fn what_cannot_be_opened_is_told_inside() {
    quiet();
    ip("link add v0 type veth peer name v1");
    let server = Server::new(2);
    server.refuses_what_is_no_card(&uplink());
    ip("link set v0 up");
    server.must(Request::PutUplink(uplink()));
    let failure = server.refused(UplinkSpec { kind: UplinkKind::Tap, ..uplink() });
    assert!(failure.message.contains("in use"), "{failure:?}");
}

#[test]
fn what_cannot_be_opened_is_told() {
    testkit::in_network_namespace("packet::what_cannot_be_opened_is_told_inside");
}

#[test]
#[ignore = "in a namespace"]
fn a_confined_data_plane_is_killed_inside() {
    let mut world = World::new();
    let dir = tempfile::tempdir().unwrap();
    let spec = crate::common::net::card(dir.path(), 1, |_| ());
    let setup = [Request::PutUplink(uplink()), Request::PutAdapter(spec.clone())];
    let mut process = crate::common::process::Process::start(dir.path(), &setup);
    assert_eq!(process.status().confinement, protocol::message::CONFINED);
    let how = How {
        mask_protocol: partition::session::protocol_feature::INFLIGHT_SHMFD,
        ..How::default()
    };
    let mut client = Client::connect(&spec.socket, 1, how);
    world.greet(&mut client);
    for round in 1..4 {
        process.kill();
        process = crate::common::process::Process::start(dir.path(), &setup);
        client.session.reconnect(Duration::from_secs(60)).unwrap();
        let frame = client.frame(OUTSIDE, round, 700);
        client.send(&PLAIN, &frame);
        assert_eq!(world.receive().1, frame);
        let back = crate::common::net::frame(OUTSIDE, mac(1), round, 700);
        world.send(&PLAIN, &back);
        assert_eq!(client.receive().frame, back);
    }
    process.shut_down();
}

#[test]
fn a_confined_data_plane_is_killed() {
    testkit::in_network_namespace("packet::a_confined_data_plane_is_killed_inside");
}
