//! Uplinks with a channel of their own (`thread`): what passes them is handed over, clients' queues leave their channel, and all of it changes under traffic. In a
//! network namespace of the test's own.
//!
//! ```text
//!   client ── network ── uplink by TAP up0 ── packet socket of the test
//!                        or by v0 ══ v1 ───── packet socket of the test
//! ```

use std::fs::File;
use std::io::{ErrorKind, Read as _, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::net::{Client, How, PLAIN, frame, ip, mac, quiet, wait};
use crate::common::{Ends, Server, load};
use partition::blk::{self, SlotPlan, Status};
use partition::load::LoadOptions;
use partition::net::HEADER_BYTES;
use partition::session::{Session, SessionOptions, StartPlan};
use protocol::message::{
    AdapterSpec, BlockSpec, FileSpec, Placement, Request, UplinkKind, UplinkSpec, VolumeSpec,
};
use protocol::stats::QueueCounter;
use testkit::{Disk, is_root};

const OUTSIDE: [u8; 6] = [2, 0, 0, 0, 0, 9];
const KINDS: [UplinkKind; 3] = [UplinkKind::Tap, UplinkKind::Packet, UplinkKind::Xdp];
/// Frames on their way at once in each direction: fewer than an inbox has room for.
const WINDOW: u32 = 32;

fn uplink(kind: UplinkKind, thread: bool) -> UplinkSpec {
    let name = if kind == UplinkKind::Tap { "up0" } else { "v0" };
    UplinkSpec { kind, thread, ..UplinkSpec::on("net", name) }
}

/// The interfaces of an uplink that is no TAP.
fn make_interfaces(kind: UplinkKind) {
    if kind != UplinkKind::Tap {
        ip("link add v0 type veth peer name v1");
        ["v0", "v1"].iter().for_each(|name| ip(&format!("link set {name} up")));
    }
}

fn remove_interfaces(kind: UplinkKind) {
    ip(&format!("link del {}", uplink(kind, false).name));
}

/// The world outside.
struct World(File);

impl World {
    /// Of an uplink that is connected.
    fn behind(kind: UplinkKind) -> World {
        let interface = if kind == UplinkKind::Tap { "up0" } else { "v1" };
        World(File::from(memory::packet::open(interface, None, false).unwrap()))
    }

    fn send(&mut self, frame: &[u8]) {
        let all = [&PLAIN, frame].concat();
        wait("room", || match self.0.write(&all) {
            Ok(bytes) => {
                assert_eq!(bytes, all.len());
                Some(())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            // While the interface is down it is told so once.
            Err(error) if error.raw_os_error() == Some(100) => None,
            Err(error) => panic!("{error}"),
        });
    }

    /// A frame that has come.
    fn take(&mut self) -> Option<Vec<u8>> {
        let mut room = vec![0; 70_000];
        match self.0.read(&mut room) {
            Ok(bytes) => Some(room[HEADER_BYTES..bytes].to_vec()),
            Err(error) if error.kind() == ErrorKind::WouldBlock => None,
            Err(error) if error.raw_os_error() == Some(100) => None,
            Err(error) => panic!("{error}"),
        }
    }

    /// Until frames pass both ways, and both sides know where the other one is.
    #[track_caller]
    fn greet(&mut self, client: &mut Client) {
        let hello = client.frame(OUTSIDE, 0, 60);
        wait("a first frame", || {
            client.send(&PLAIN, &hello);
            std::thread::sleep(Duration::from_millis(5));
            self.take().filter(|came| *came == hello)
        });
        let back = frame(OUTSIDE, mac(client.number), 0, 60);
        wait("a first answer", || {
            self.send(&back);
            let came = client.receive_within(Duration::from_millis(50));
            came.filter(|came| came.frame == back)
        });
        // What was sent in vain at first.
        client.sent();
        while client.receive_within(Duration::from_millis(200)).is_some() {}
        while self.take().is_some() {}
    }
}

/// The number in a frame to that station that is one of [`exchange`]'s.
fn number(frame: &[u8], to: [u8; 6]) -> Option<u32> {
    let is_one = frame.len() > 18 && frame[..6] == to && frame[12..14] == [0x88, 0xb5];
    let number = is_one.then(|| u32::from_be_bytes(frame[14..18].try_into().unwrap()));
    number.filter(|number| *number > 0)
}

/// Both sides send each other frames of all lengths, from that number on, until it is over and all have come: each as it was sent, once, in order. Where it ends.
#[track_caller]
fn exchange(
    client: &mut Client,
    world: &mut World,
    first: u32,
    over: &AtomicBool,
    most: u32,
) -> u32 {
    let len = |number: u32| 60 + (number as usize * 97) % 1400;
    let (mut out, mut back) = ((first, first), (first, first));
    wait("all frames, both ways", || {
        let ends = over.load(Ordering::Acquire);
        for _ in 0..64 {
            if !ends && out.0 - first < most && out.0 - out.1 < WINDOW {
                let sent = client.frame(OUTSIDE, out.0, len(out.0));
                client.send(&PLAIN, &sent);
                out.0 += 1;
            }
            if !ends && back.0 - first < most && back.0 - back.1 < WINDOW {
                world.send(&frame(OUTSIDE, mac(client.number), back.0, len(back.0)));
                back.0 += 1;
            }
            while let Some(came) = world.take() {
                let Some(number) = number(&came, OUTSIDE) else { continue };
                assert_eq!(number, out.1, "of the client's, up to {}", out.0);
                assert!(came == client.frame(OUTSIDE, out.1, len(out.1)));
                out.1 += 1;
            }
            while let Some(came) = client.receive_within(Duration::ZERO) {
                let own = mac(client.number);
                let Some(number) = number(&came.frame, own) else { continue };
                assert_eq!(number, back.1, "of the world's, up to {}", back.0);
                assert!(came.frame == frame(OUTSIDE, own, back.1, len(back.1)));
                back.1 += 1;
            }
        }
        let all = out.0 - first == most && back.0 - first == most || ends;
        (all && out.0 == out.1 && back.0 == back.1).then_some(())
    });
    client.sent();
    out.0.max(back.0)
}

/// Channels of what runs of an adapter or an uplink, by its queues' numbers.
fn channels_of(server: &Server, name: &str) -> Vec<u32> {
    let status = server.status();
    let of_adapter = status.adapters.iter().find(|it| it.spec.name == name);
    let of_uplink = status.uplinks.iter().find(|it| it.spec.name == name);
    let of_adapter = of_adapter.map(|it| it.channel_of_queue.clone());
    of_adapter.or(of_uplink.map(|it| it.channel_of_queue.clone())).expect("it is there")
}

#[test]
#[ignore = "in a namespace"]
fn what_passes_is_handed_over_and_arrives_as_it_was_sent_inside() {
    quiet();
    for kind in KINDS {
        make_interfaces(kind);
        for channels in [1, 2, 3] {
            let server = Server::new(channels);
            server.must(Request::PutUplink(uplink(kind, true)));
            let name = uplink(kind, true).name;
            let all = channels_of(&server, &name);
            assert!(!all.is_empty() && all.iter().all(|it| *it == channels - 1), "{all:?}");
            let mut world = World::behind(kind);
            if kind == UplinkKind::Tap {
                ip("link set up0 up");
            }
            let mut client = server.client(1, How::default(), |_| ());
            assert_eq!(channels_of(&server, "ent1"), [0, 0]);
            world.greet(&mut client);
            let counts = || {
                let handed = |name: &str| server.count_of(name, QueueCounter::HandedOver);
                let frames = |name: &str| server.count_of(name, QueueCounter::TxFrames);
                (handed("ent1"), frames("ent1"), handed(&name))
            };
            let before = counts();
            let frames = exchange(&mut client, &mut world, 1, &AtomicBool::new(false), 300) - 1;
            let after = counts();
            let sent = after.1 - before.1;
            assert_eq!(sent, u64::from(frames));
            // With one channel there is nothing to be handed over.
            let handed = if channels == 1 { (0, 0) } else { (sent, u64::from(frames)) };
            assert_eq!((after.0 - before.0, after.2 - before.2), handed, "{kind:?}, {channels}");
            // And back: each channel bridges for the queues that it has.
            server.must(Request::PutUplink(uplink(kind, false)));
            let descriptors = channels_of(&server, &name).len() as u32;
            let in_turn: Vec<u32> = (0..descriptors).collect();
            assert_eq!(channels_of(&server, &name), in_turn, "{kind:?}");
            let before = counts();
            exchange(&mut client, &mut world, 1, &AtomicBool::new(false), 300);
            assert_eq!(counts().0 - before.0, 0, "the client's channel bridges for it");
            server.must(Request::RemoveUplink { name });
        }
        remove_interfaces(kind);
    }
}

#[test]
fn what_passes_is_handed_over_and_arrives_as_it_was_sent() {
    testkit::in_network_namespace(
        "thread::what_passes_is_handed_over_and_arrives_as_it_was_sent_inside",
    );
}

/// A frame of IPv4 to a group, padded.
fn to_group(source: u8, protocol: u8, to: [u8; 4], body: &[u8]) -> Vec<u8> {
    let link = [1, 0, 0x5e, to[1] & 0x7f, to[2], to[3], 2, 0, 0, 0, 0, source, 8, 0];
    let ip = [0x45, 0, 0, 28, 0, 0, 0, 0, 1, protocol, 0, 0, 10, 0, 0, source];
    let mut frame = [&link[..], &ip, &to, body].concat();
    frame.resize(60, 0);
    frame
}

#[test]
#[ignore = "in a namespace"]
fn a_group_comes_to_who_asked_for_it_on_another_channel_inside() {
    quiet();
    for (channels, thread) in [(1, true), (2, true), (3, true), (2, false)] {
        let server = Server::new(channels);
        server.must(Request::PutUplink(uplink(UplinkKind::Tap, thread)));
        let mut world = World::behind(UplinkKind::Tap);
        ip("link set up0 up");
        let mut client = server.client(1, How::default(), |_| ());
        world.greet(&mut client);
        let query = to_group(9, 2, [224, 0, 0, 1], &[0x11, 100, 0, 0, 0, 0, 0, 0]);
        world.send(&query);
        assert_eq!(client.receive().frame, query);
        let report = to_group(1, 2, [239, 1, 2, 3], &[0x16, 0, 0, 0, 239, 1, 2, 3]);
        client.send(&PLAIN, &report);
        wait("the report", || world.take().filter(|came| *came == report));
        for number in 0..100 {
            let data = to_group(9, 17, [239, 1, 2, 3], &[0, 9, 0, 9, 0, 8, 0, number]);
            world.send(&data);
            assert_eq!(client.receive().frame, data, "{channels} {thread}");
        }
        remove_interfaces(UplinkKind::Tap);
    }
}

#[test]
fn a_group_comes_to_who_asked_for_it_on_another_channel() {
    testkit::in_network_namespace(
        "thread::a_group_comes_to_who_asked_for_it_on_another_channel_inside",
    );
}

#[test]
#[ignore = "in a namespace"]
fn it_changes_under_traffic_and_nothing_is_lost_or_doubled_inside() {
    quiet();
    for kind in KINDS {
        make_interfaces(kind);
        let server = Server::new(2);
        server.must(Request::PutUplink(uplink(kind, false)));
        let mut world = World::behind(kind);
        if kind == UplinkKind::Tap {
            ip("link set up0 up");
        }
        let mut client = server.client(1, How::default(), |_| ());
        world.greet(&mut client);
        let over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let changes = scope.spawn(|| {
                let _ends = Ends(&over);
                for round in 0..200 {
                    server.must(Request::PutUplink(uplink(kind, round % 2 == 0)));
                    // Some frames pass between, however slow the machine is.
                    let passed = || server.count_of("ent1", QueueCounter::TxFrames);
                    let before = passed();
                    wait("frames", || (passed() >= before + 3).then_some(()));
                }
            });
            exchange(&mut client, &mut world, 1, &over, u32::MAX / 2);
            changes.join().unwrap();
        });
        let moves = server.count_of(&uplink(kind, false).name, QueueCounter::Moves);
        assert_eq!(moves, 200, "{kind:?}: one descriptor of two, or the only one");
        let drops = QueueCounter::ALL.iter().filter(|it| it.info().name.starts_with("drop_"));
        let dropped: Vec<_> = drops.filter(|it| server.count(**it) > 0).collect();
        assert_eq!(dropped, [] as [&QueueCounter; 0], "{kind:?}");
        server.must(Request::RemoveUplink { name: uplink(kind, false).name });
        remove_interfaces(kind);
    }
}

#[test]
fn it_changes_under_traffic_and_nothing_is_lost_or_doubled() {
    testkit::in_network_namespace(
        "thread::it_changes_under_traffic_and_nothing_is_lost_or_doubled_inside",
    );
}

#[test]
#[ignore = "in a namespace"]
fn disks_keep_off_the_channel_of_the_uplink_inside() {
    quiet();
    let server = Server::new(3);
    server.must(Request::PutVolume(server.file(16)));
    let base = server.adapter("vhost0");
    let disk = |name: &str, placement| AdapterSpec {
        socket: server.path(&format!("{name}.sock")),
        placement,
        ..AdapterSpec { name: name.to_owned(), ..base.clone() }
    };
    let (spread, adaptive) =
        (disk("vhost0", Placement::Spread), disk("vhost1", Placement::Adaptive));
    server.must(Request::PutAdapter(spread.clone()));
    server.must(Request::PutAdapter(adaptive.clone()));
    server.must(Request::PutUplink(uplink(UplinkKind::Tap, false)));
    let over = AtomicBool::new(false);
    let options = |verify| LoadOptions {
        queues: 4,
        threads: Some(1),
        depth: 4,
        read_percent: if verify { 50 } else { 100 },
        verify,
        duration: Duration::from_millis(500),
        ..LoadOptions::default()
    };
    std::thread::scope(|scope| {
        let (spread, adaptive, over) = (&spread.socket, &adaptive.socket, &over);
        let _loads = [(spread, true), (adaptive, false)].map(|(socket, verify)| {
            scope.spawn(move || {
                while !over.load(Ordering::Acquire) {
                    load(socket, &options(verify));
                }
            })
        });
        let _ends = Ends(over);
        // Whoever connects meanwhile as well: the clients do so all the time.
        let runs_on = |wanted: &[u32]| {
            wait("where the disks' queues are to be", || {
                let on = ["vhost0", "vhost1"].map(|name| channels_of(&server, name));
                let all_run = on.iter().all(|queues| queues.len() == 4);
                let mut seen = on.concat();
                seen.sort_unstable();
                seen.dedup();
                (all_run && seen == wanted).then_some(())
            });
        };
        for _ in 0..3 {
            runs_on(&[0, 1, 2]);
            server.must(Request::PutUplink(uplink(UplinkKind::Tap, true)));
            assert_eq!(channels_of(&server, "up0"), [2, 2, 2]);
            runs_on(&[0, 1]);
            // They stay off it.
            let end = Instant::now() + Duration::from_millis(700);
            while Instant::now() < end {
                let on = ["vhost0", "vhost1"].map(|name| channels_of(&server, name)).concat();
                assert!(!on.contains(&2), "{on:?}");
                std::thread::sleep(Duration::from_millis(1));
            }
            server.must(Request::PutUplink(uplink(UplinkKind::Tap, false)));
            assert_eq!(channels_of(&server, "up0"), [0, 1, 2]);
        }
        // With two uplinks it is kept until the last of them gives it up.
        let other = UplinkSpec { thread: true, ..UplinkSpec::on("net1", "up1") };
        server.must(Request::PutUplink(uplink(UplinkKind::Tap, true)));
        server.must(Request::PutUplink(other));
        assert_eq!(channels_of(&server, "up1"), [2, 2, 2]);
        server.must(Request::RemoveUplink { name: "up0".to_owned() });
        runs_on(&[0, 1]);
        server.must(Request::RemoveUplink { name: "up1".to_owned() });
        runs_on(&[0, 1, 2]);
    });
}

#[test]
fn disks_keep_off_the_channel_of_the_uplink() {
    testkit::in_network_namespace("thread::disks_keep_off_the_channel_of_the_uplink_inside");
}

#[test]
#[ignore = "in a namespace"]
fn it_changes_while_the_interface_is_down_or_gone_inside() {
    quiet();
    for kind in KINDS {
        make_interfaces(kind);
        let server = Server::new(2);
        server.must(Request::PutUplink(uplink(kind, false)));
        let name = uplink(kind, false).name;
        let mut world = World::behind(kind);
        let mut client = server.client(1, How::default(), |_| ());
        ip(&format!("link set {name} up"));
        world.greet(&mut client);
        ip(&format!("link set {name} down"));
        let (failures, mut sent) = (|| server.count_of(&name, QueueCounter::DropFailure), 0);
        let before = failures();
        for round in 0..6 {
            server.must(Request::PutUplink(uplink(kind, round % 2 == 0)));
            for number in 0..10 {
                client.send(&PLAIN, &client.frame(OUTSIDE, number, 100));
                sent += 1;
            }
            wait("the failures", || (failures() == before + sent).then_some(()));
        }
        server.must(Request::PutUplink(uplink(kind, true)));
        ip(&format!("link set {name} up"));
        world.greet(&mut client);
        exchange(&mut client, &mut world, 1, &AtomicBool::new(false), 100);
        // It is gone for good.
        ip(&format!("link del {name}"));
        for thread in [false, true, false] {
            server.must(Request::PutUplink(uplink(kind, thread)));
            client.send(&PLAIN, &client.frame(OUTSIDE, 1, 100));
            client.sent();
        }
        server.must(Request::RemoveUplink { name });
    }
}

#[test]
fn it_changes_while_the_interface_is_down_or_gone() {
    testkit::in_network_namespace("thread::it_changes_while_the_interface_is_down_or_gone_inside");
}

/// A client of a disk that does not answer.
fn hang(server: &Server, disk: &Disk) -> (Session, blk::Queue) {
    server.must(Request::PutVolume(VolumeSpec::new("hung", FileSpec::new(disk.path()))));
    let socket = server.path("hung.sock");
    let spec = AdapterSpec::new("hung", &socket, BlockSpec::on("hung"));
    server.must(Request::PutAdapter(AdapterSpec { placement: Placement::Adaptive, ..spec }));
    let mut session = Session::connect(&socket, &SessionOptions::default()).unwrap();
    let slots = SlotPlan { slots: 4, data_bytes: 4096, data_segments: 1, indirect: false };
    let plan = StartPlan { queues: 1, queue_size: 64, threads: 1, slots };
    disk.hold(testkit::Kind::Read);
    let mut queue = session.start(&plan).unwrap().remove(0);
    let slot = queue.take().unwrap();
    queue.submit(slot, blk::Request::Read { offset: 0, bytes: 4096 }).unwrap();
    queue.publish().unwrap();
    disk.wait_held(testkit::Kind::Read, 1);
    (session, queue)
}

#[test]
#[ignore = "in a namespace"]
fn a_disk_that_hangs_holds_up_its_own_queue_and_nobody_else_inside() {
    quiet();
    let server = Server::new(2);
    server.must(Request::PutUplink(uplink(UplinkKind::Tap, false)));
    let mut world = World::behind(UplinkKind::Tap);
    ip("link set up0 up");
    let mut client = server.client(1, How::default(), |_| ());
    world.greet(&mut client);
    let disk = Disk::new(1 << 20);
    let (mut session, mut queue) = hang(&server, &disk);
    assert_eq!(channels_of(&server, "hung"), [1], "the client's card is on the other one");
    for thread in [true, false, true] {
        server.must(Request::PutUplink(uplink(UplinkKind::Tap, thread)));
        // To the kernel all these frames are one flow, which comes by the descriptor by which somebody sent last: another client.
        world.greet(&mut client);
        exchange(&mut client, &mut world, 1, &AtomicBool::new(false), 100);
        // Others come and go.
        let mut other = server.client(2, How::default(), |_| ());
        world.greet(&mut other);
        server.must(Request::RemoveAdapter { name: "ent2".to_owned() });
    }
    disk.release(testkit::Kind::Read);
    let done = wait("the answer", || queue.poll().unwrap());
    assert_eq!(done.status, Status::Ok);
    wait("its queue to leave", || (channels_of(&server, "hung") == [0]).then_some(()));
    session.stop().unwrap();
    exchange(&mut client, &mut world, 1, &AtomicBool::new(false), 100);
}

#[test]
fn a_disk_that_hangs_holds_up_its_own_queue_and_nobody_else() {
    if is_root("a disk that hangs in the kernel") {
        testkit::in_network_namespace(
            "thread::a_disk_that_hangs_holds_up_its_own_queue_and_nobody_else_inside",
        );
    }
}
