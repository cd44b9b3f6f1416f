//! Uplinks of the kind `xdp`: frames of a client and of the world outside byte by byte, in a network namespace of the test's own.
//!
//! ```text
//!   client ── network ── AF_XDP sockets of v0 ══ v1 ── AF_XDP socket of the test
//! ```
//!
//! What the test has is what is on the wire, tags and all; what it sends is whole, as what comes from a wire is.

use std::os::fd::AsFd as _;
use std::time::{Duration, Instant};

use crate::common::Server;
use crate::common::net::{Client, How, OFFLOADS, PLAIN, frame, ip, mac, quiet, wait};
use crate::common::segments::{MSS, filled, pattern, payload, tagged, tcp, udp, udp_uncut};
use memory::xdp::{self, CHUNK_BYTES, Received, Rings};
use partition::net::feature;
use protocol::message::{Request, UplinkKind, UplinkSpec};
use protocol::stats::QueueCounter;
use testkit::Elsewhere;

const OUTSIDE: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn uplink() -> UplinkSpec {
    let kind = UplinkKind::Xdp;
    UplinkSpec { kind, mtu: 9000, vids: vec![20], ..UplinkSpec::on("net", "v0") }
}

/// The world outside.
pub(super) struct World {
    opened: xdp::Opened,
    rings: Rings,
    came: Vec<Vec<u8>>,
}

impl World {
    /// At the other end of a pair of interfaces.
    fn new() -> World {
        quiet();
        ip("link add v0 mtu 9000 type veth peer name v1 mtu 9000");
        for name in ["v0", "v1"] {
            ip(&format!("link set {name} up"));
        }
        World::at("v1")
    }

    pub(super) fn at(interface: &str) -> World {
        let opened = xdp::open(interface).unwrap();
        let queue = &opened.queues[0];
        let rings = Rings::new(queue.socket.as_fd(), &queue.memory).unwrap();
        World { opened, rings, came: Vec::new() }
    }

    pub(super) fn send(&mut self, frame: &[u8]) {
        wait("room", || {
            self.tell();
            let room = self.rings.room(frame.len())?;
            frame.chunks(CHUNK_BYTES).zip(room).for_each(|(piece, room)| room.write(0, piece));
            self.rings.push(0, frame.len());
            Some(())
        });
        wait("the kernel", || {
            self.tell();
            (self.rings.left() == 0).then_some(())
        });
    }

    fn tell(&self) {
        let flags = rustix::net::SendFlags::DONTWAIT;
        let _ = rustix::net::send(&self.opened.queues[0].socket, &[0], flags);
    }

    /// The next frame, if one comes in this time.
    pub(super) fn receive_within(&mut self, time: Duration) -> Option<Vec<u8>> {
        let end = Instant::now() + time;
        while self.came.is_empty() {
            let mut received = Received::default();
            self.rings.receive(64, 0, &mut received);
            for number in (0..received.len()).rev() {
                let mut frame = Vec::new();
                for piece in received.frame(number).unwrap().0 {
                    let mut bytes = vec![0; piece.len()];
                    piece.read(0, &mut bytes);
                    frame.extend(bytes);
                }
                self.came.push(frame);
            }
            let none = received.is_empty();
            self.rings.give_back(&mut received);
            if none {
                if Instant::now() > end {
                    return None;
                }
                std::thread::sleep(Duration::from_micros(100));
            }
        }
        self.came.pop()
    }

    #[track_caller]
    fn receive(&mut self) -> Vec<u8> {
        self.receive_within(Duration::from_secs(60)).expect("a frame")
    }

    /// Until what the client sends comes: interfaces that were set up just now may lose frames.
    #[track_caller]
    fn greet(&mut self, client: &mut Client) {
        let hello = client.frame([0xff; 6], 0, 60);
        wait("a first frame", || {
            client.send(&PLAIN, &hello);
            self.receive_within(Duration::from_millis(50)).filter(|came| came[12..] == hello[12..])
        });
        while self.receive_within(Duration::from_millis(100)).is_some() {}
        // And where the world outside is.
        let back = frame(OUTSIDE, [0xff; 6], 0, 60);
        wait("a first answer", || {
            self.send(&back);
            client.receive_within(Duration::from_millis(50))
        });
        while client.receive_within(Duration::from_millis(100)).is_some() {}
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
        let channel = u32::from(thread);
        assert_eq!(status.uplinks[0].channel_of_queue, [channel], "one queue of the card");
        assert_eq!(status.uplinks[0].way.as_deref(), Some("AF_XDP by its driver, copied, 1 queue"));
        let mut client = server.client(1, How::default(), |card| card.mtu = 9000);
        let mut on_vlan =
            server.client(2, How::default(), |card| (card.pvid, card.mtu) = (20, 9000));
        let mut trunk =
            server.client(3, How::default(), |card| (card.vids, card.mtu) = (vec![20], 9000));
        world.greet(&mut client);
        drop(trunk.receive());
        while trunk.receive_within(Duration::from_millis(20)).is_some() {}
        let before = server.count_of("v0", QueueCounter::RxFrames);
        let lengths = [60, 61, 255, 256, 257, 1000, 1514, 4084, 4085, 4096, 8180, 8181, 9014];
        for (number, len) in (1..).zip(lengths) {
            let sent = client.frame(OUTSIDE, number, len);
            client.send(&PLAIN, &sent);
            assert_eq!(world.receive(), sent);
            let back = frame(OUTSIDE, mac(1), number, len);
            world.send(&back);
            assert_eq!(client.receive().frame, back);
            let sent = on_vlan.frame([0xff; 6], number, len);
            on_vlan.send(&PLAIN, &sent);
            assert_eq!(world.receive(), tagged(&sent, [0x81, 0, 0, 20]));
            assert_eq!(trunk.receive().frame, tagged(&sent, [0x81, 0, 0, 20]));
            let back = frame(OUTSIDE, [0xff; 6], number, len);
            world.send(&tagged(&back, [0x81, 0, 0x60, 20]));
            assert_eq!(on_vlan.receive().frame, back);
            assert_eq!(trunk.receive().frame, tagged(&back, [0x81, 0, 0x60, 20]));
            // A provider's tag is none of the port's: it passes as it is, with whatever is behind it.
            let double = tagged(&tagged(&back[..len - 4], [0x81, 0, 0, 5]), [0x88, 0xa8, 0, 7]);
            let to_client = [&mac(1)[..], &double[6..]].concat();
            world.send(&to_client);
            assert_eq!(client.receive().frame, to_client);
        }
        // Of a VLAN that the uplink does not carry nothing comes.
        world.send(&tagged(&frame(OUTSIDE, [0xff; 6], 1, 60), [0x81, 0, 0, 21]));
        wait("the frame to be refused", || {
            (server.count_of("v0", QueueCounter::DropVlanFilter) == 1).then_some(())
        });
        client.has_nothing();
        let received = server.count_of("v0", QueueCounter::RxFrames) - before;
        assert_eq!(received, 3 * lengths.len() as u64, "its own do not come back");
        server.must(Request::RemoveUplink { name: "v0".to_owned() });
        // What comes is the host's again.
        let host = memory::packet::open("v0", None, false).unwrap();
        let sent = frame(OUTSIDE, [0xff; 6], 1, 60);
        let mut room = [0; 2048];
        wait("the host to hear", || {
            world.send(&sent);
            let bytes = rustix::io::read(&host, &mut room).ok()?;
            (room[PLAIN.len()..bytes] == sent[..]).then_some(())
        });
    }
}

#[test]
fn frames_pass_as_they_are() {
    testkit::in_network_namespace("xdp::frames_pass_as_they_are_inside");
}

#[test]
#[ignore = "in a namespace"]
fn what_is_left_out_is_done_before_inside() {
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
        let hello = on_wire(&client.frame([0xff; 6], 0, 60));
        wait("a first frame", || {
            client.send(&PLAIN, &client.frame([0xff; 6], 0, 60));
            world.receive_within(Duration::from_millis(50)).filter(|came| *came == hello)
        });
        while world.receive_within(Duration::from_millis(100)).is_some() {}
        world.send(&on_wire(&frame(OUTSIDE, [0xff; 6], 0, 60)));
        drop(client.receive());

        let (there, back) = ((mac(1), OUTSIDE), (OUTSIDE, mac(1)));
        for bytes in [0, 1, 18, 500, 1472] {
            let (header, frame) = udp(there, &pattern(bytes));
            let whole = filled(&header, frame.clone(), 34);
            match without {
                0 => client.send(&header, &frame),
                _ => client.send(&PLAIN, &whole),
            }
            assert_eq!(world.receive(), on_wire(&whole), "{bytes} bytes");
            let (header, frame) = udp(back, &pattern(bytes));
            let whole = filled(&header, frame, 34);
            world.send(&on_wire(&whole));
            let came = client.receive();
            assert_eq!((&came.header[..10], came.frame), (&[0; 10][..], whole), "{bytes} bytes");
        }
        // What is to be cut is cut.
        let stream = pattern(30_500);
        if without == 0 {
            for (upper, (header, frame)) in
                [(20, tcp(there, &stream)), (8, udp_uncut(there, &stream))]
            {
                client.send(&header, &frame);
                let mut all = Vec::new();
                while all.len() < stream.len() {
                    let came = world.receive();
                    assert_eq!(came[..l3 - 2], on_wire(&frame)[..l3 - 2]);
                    let part = payload(&came, l3, upper);
                    assert!(part.len() <= MSS);
                    all.extend(part);
                }
                assert!(all == stream);
            }
        }
        client.has_nothing();
        assert_eq!(world.receive_within(Duration::from_millis(20)), None);
        server.must(Request::RemoveUplink { name: "v0".to_owned() });
    }
}

#[test]
fn what_is_left_out_is_done_before() {
    testkit::in_network_namespace("xdp::what_is_left_out_is_done_before_inside");
}

#[test]
#[ignore = "in a namespace"]
fn an_interface_goes_down_and_comes_back_inside() {
    let mut world = World::new();
    let server = Server::new(2);
    server.must(Request::PutUplink(uplink()));
    let mut client = server.client(1, How::default(), |_| ());
    world.greet(&mut client);
    let count = |counter| server.count_of("v0", counter);
    let (sent, lost) = (count(QueueCounter::TxFrames), count(QueueCounter::DropFailure));
    ip("link set v0 down");
    // More than are put into the ring of one that is down.
    const LOST: u64 = 100;
    let old = client.frame(OUTSIDE, 1, 100);
    for number in 1..=LOST {
        client.send(&PLAIN, &old);
        wait("the failure", || (count(QueueCounter::DropFailure) == lost + number).then_some(()));
    }
    assert_eq!(count(QueueCounter::TxFrames), sent);
    ip("link set v0 up");
    // Nothing of it is sent later; one more frame may be lost until it is seen that it is up.
    let new = client.frame(OUTSIDE, 2, 100);
    let mut tries = 0;
    wait("a frame", || {
        tries += 1;
        client.send(&PLAIN, &new);
        while let Some(came) = world.receive_within(Duration::from_millis(50)) {
            assert_ne!(came, old, "it left when the interface was up again");
            if came == new {
                return Some(());
            }
        }
        None
    });
    wait("all to be counted", || {
        let of = |counter, before| count(counter) - before;
        let counted = of(QueueCounter::TxFrames, sent) + of(QueueCounter::DropFailure, lost);
        (counted == LOST + tries).then_some(())
    });
    world.greet(&mut client);
    // Nobody looks while there is nothing.
    let failures = count(QueueCounter::DropFailure);
    std::thread::sleep(Duration::from_millis(200));
    assert_eq!(count(QueueCounter::DropFailure), failures);
    // It is gone for good: what is sent is counted, nothing else happens, and it is let go of.
    ip("link del v0");
    for number in 1..=LOST {
        client.send(&PLAIN, &old);
        wait("the failure", || {
            (count(QueueCounter::DropFailure) == failures + number).then_some(())
        });
    }
    server.must(Request::RemoveUplink { name: "v0".to_owned() });
    drop(world);
    let mut world = World::new();
    server.must(Request::PutUplink(uplink()));
    world.greet(&mut client);
}

#[test]
fn an_interface_goes_down_and_comes_back() {
    testkit::in_network_namespace("xdp::an_interface_goes_down_and_comes_back_inside");
}

#[test]
#[ignore = "in a namespace"]
fn each_frame_of_a_storm_is_delivered_or_counted_inside() {
    let mut world = World::new();
    for channels in [1, 2] {
        let server = Server::new(channels);
        server.must(Request::PutUplink(uplink()));
        let mut client = server.client(1, How::default(), |_| ());
        world.greet(&mut client);
        let count = |counter| server.count_of("v0", counter);
        let counts = || {
            [QueueCounter::RxFrames, QueueCounter::DropFullRing, QueueCounter::DropRxNoBuffer]
                .map(count)
        };
        let before = counts();
        // More than all rings have, for a client that takes nothing meanwhile.
        const FRAMES: u64 = 20_000;
        let sent = frame(OUTSIDE, mac(1), 1, 1000);
        for _ in 0..FRAMES {
            world.send(&sent);
        }
        // Each came in or was lost by the kernel for want of chunks; what came in and found no buffers is counted beside.
        wait("all to be counted", || {
            let now = counts();
            let came = now[0] - before[0];
            let lost = now[1] - before[1];
            world.send(&sent);
            (came + lost >= FRAMES).then_some(())
        });
        // And it goes on.
        client.empty();
        let back = frame(OUTSIDE, mac(1), 7, 100);
        wait("a frame", || {
            world.send(&back);
            client.empty();
            client.receive_within(Duration::from_millis(50)).filter(|came| came.frame == back)
        });
        // As many the other way, of which the world takes what it has chunks for.
        while world.receive_within(Duration::from_millis(50)).is_some() {}
        // Those that are lost on their way to the uplink's channel are counted at their sender.
        let counted = || {
            let lost = ["v0", "ent1"].map(|name| server.count_of(name, QueueCounter::DropFullRing));
            count(QueueCounter::TxFrames) + lost[0] + lost[1]
        };
        let before = counted();
        for number in 0..5_000 {
            let frame = client.frame(OUTSIDE, number, 1000);
            client.send(&PLAIN, &frame);
        }
        client.sent();
        wait("all to be counted", || (counted() - before == 5_000).then_some(()));
        while world.receive_within(Duration::from_millis(100)).is_some() {}
        server.must(Request::RemoveUplink { name: "v0".to_owned() });
    }
}

#[test]
fn each_frame_of_a_storm_is_delivered_or_counted() {
    testkit::in_network_namespace("xdp::each_frame_of_a_storm_is_delivered_or_counted_inside");
}

#[test]
#[ignore = "in a namespace"]
fn what_cannot_be_opened_is_told_inside() {
    quiet();
    ip("link add v0 type veth peer name v1");
    let server = Server::new(2);
    server.refuses_what_is_no_card(&uplink());
    ip("link set v0 up");
    // Somebody has its queue.
    let other = xdp::open("v0").unwrap();
    let busy = server.refusal(uplink());
    assert!(busy.contains("busy") && busy.contains("ip -d link show v0"), "{busy}");
    drop(other);
    server.must(Request::PutUplink(uplink()));
    let failure = server.refused(UplinkSpec { kind: UplinkKind::Packet, ..uplink() });
    assert!(failure.message.contains("in use"), "{failure:?}");
    // And the uplink has it now.
    assert!(xdp::open("v0").is_err());
    server.must(Request::RemoveUplink { name: "v0".to_owned() });
    wait("the queue", || xdp::open("v0").ok());
}

#[test]
fn what_cannot_be_opened_is_told() {
    testkit::in_network_namespace("xdp::what_cannot_be_opened_is_told_inside");
}

#[test]
#[ignore = "in a namespace"]
fn a_confined_data_plane_is_killed_inside() {
    // Its interface is in another namespace, as well.
    quiet();
    let elsewhere = Elsewhere::new();
    ip("link add v1 mtu 9000 type veth peer name v0 mtu 9000");
    ip(&format!("link set v0 netns {}", elsewhere.id()));
    ip("link set v1 up");
    elsewhere.run("ip link set v0 up");
    let mut world = World::at("v1");
    let dir = tempfile::tempdir().unwrap();
    let spec = crate::common::net::card(dir.path(), 1, |card| card.mtu = 9000);
    let uplink = UplinkSpec { netns: Some(elsewhere.path()), ..uplink() };
    let setup = [Request::PutUplink(uplink), Request::PutAdapter(spec.clone())];
    let mut process = crate::common::process::Process::start(dir.path(), &setup);
    assert_eq!(process.status().confinement, protocol::message::CONFINED);
    let how = How {
        mask_protocol: partition::session::protocol_feature::INFLIGHT_SHMFD,
        ..How::default()
    };
    let mut client = Client::connect(&spec.socket, 1, how);
    world.greet(&mut client);
    let is_given = || elsewhere.run("ip -o -d link show v0").contains("xdp");
    assert!(is_given());
    for round in 1..4 {
        process.kill();
        // The program went with it: what comes is the host's.
        wait("the end of the program", || (!is_given()).then_some(()));
        process = crate::common::process::Process::start(dir.path(), &setup);
        client.session.reconnect(Duration::from_secs(60)).unwrap();
        for (number, len) in (round * 10..).zip([60, 700, 9014]) {
            let frame = client.frame(OUTSIDE, number, len);
            client.send(&PLAIN, &frame);
            assert_eq!(world.receive(), frame);
            let back = crate::common::net::frame(OUTSIDE, mac(1), number, len);
            world.send(&back);
            assert_eq!(client.receive().frame, back);
        }
        // Without a control plane it goes on.
        process.abandon();
        let frame = client.frame(OUTSIDE, round, 80);
        client.send(&PLAIN, &frame);
        assert_eq!(world.receive(), frame);
        // Else the next one may send it again, which cannot know that it has left.
        client.sent();
    }
    process.shut_down();
    wait("the end of the program", || (!is_given()).then_some(()));
}

#[test]
fn a_confined_data_plane_is_killed() {
    testkit::in_network_namespace("xdp::a_confined_data_plane_is_killed_inside");
}
