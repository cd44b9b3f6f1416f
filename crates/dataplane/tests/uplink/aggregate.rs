//! Uplinks of two interfaces: one is the other's backup, or both share flows. In a network namespace of the test's own.
//!
//! ```text
//!                        ┌ packet sockets of v0 ══ v1 ┐
//!   client ── network ───┤                            ├ bridge ── TAP of the test
//!                        └ packet sockets of w0 ══ w1 ┘
//! ```
//!
//! The bridge is no aggregate: what goes to many comes back by the other pair, and what comes from outside comes by both.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::common::Server;
use crate::common::net::{Client, How, PLAIN, frame, ip, mac, quiet, wait};
use crate::common::process::Process;
use crate::common::segments::sum;
use crate::packet::World;
use protocol::message::{
    AggregateMode, AggregateSpec, MemberSpec, MemberState, Reply, Request, Status, UplinkKind,
    UplinkSpec,
};
use protocol::stats::QueueCounter;
use spec::{Failback, FailoverMode, FailoverSpec};
use testkit::Elsewhere;

use MemberState::{Active, Backup, Down};

const ALL: [u8; 6] = [0xff; 6];
const OUTSIDE: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn uplink(mode: AggregateMode) -> UplinkSpec {
    let member = |interface: &str| MemberSpec {
        name: format!("{interface}-member"),
        kind: UplinkKind::Packet,
        interface: interface.to_owned(),
        netns: None,
    };
    let members = vec![member("v0"), member("w0")];
    let (kind, interface) = (UplinkKind::Packet, "v0".to_owned());
    let aggregate = Some(AggregateSpec { mode, members });
    UplinkSpec { kind, interface, aggregate, ..UplinkSpec::on("net", "up0") }
}

/// A pair of interfaces of which the bridge has one.
fn pair(one: &str, other: &str) {
    ip(&format!("link add {one} type veth peer name {other}"));
    ip(&format!("link set {other} master br0"));
    for interface in [one, other] {
        ip(&format!("link set {interface} up"));
    }
}

fn world() -> World {
    quiet();
    ip("link add v0 type veth peer name v1");
    ip("link set v0 up");
    let world = World::behind("br0", "v1", "t0", 1500);
    pair("w0", "w1");
    world
}

#[track_caller]
fn until(server: &Server, states: [MemberState; 2]) {
    until_of(|| server.status(), states);
}

#[track_caller]
fn until_of(mut status: impl FnMut() -> Status, states: [MemberState; 2]) {
    wait(&format!("{states:?}"), || {
        let members = status().uplinks.remove(0).members;
        assert!(members.iter().all(|it| it.reason.is_some() == (it.state == Down)), "{members:?}");
        let now: Vec<MemberState> = members.iter().map(|member| member.state).collect();
        (now == states).then_some(())
    });
}

fn counted(server: &Server, counter: QueueCounter) -> [u64; 2] {
    ["v0-member", "w0-member"].map(|name| server.count_of(name, counter))
}

/// Frames in both directions come once, and pass by that member alone.
#[track_caller]
fn pass_by(server: &Server, world: &mut World, client: &mut Client, member: usize) {
    let before = [QueueCounter::TxFrames, QueueCounter::RxFrames].map(|of| counted(server, of));
    for number in 0..50 {
        let out = client.frame(if number % 2 == 0 { ALL } else { OUTSIDE }, number, 60);
        client.send(&PLAIN, &out);
        assert_eq!(world.receive().1, out);
        let back = frame(OUTSIDE, if number % 2 == 0 { ALL } else { mac(1) }, number, 60);
        world.send(&PLAIN, &back);
        assert_eq!(client.receive().frame, back);
    }
    client.has_nothing();
    assert_eq!(world.receive_within(Duration::from_millis(20)), None);
    // A frame is counted behind its arrival.
    for (of, before) in [QueueCounter::TxFrames, QueueCounter::RxFrames].into_iter().zip(before) {
        wait("the counts", || {
            let after = counted(server, of);
            assert!(after[1 - member] < before[1 - member] + 25, "{before:?} {after:?}");
            (after[member] >= before[member] + 50).then_some(())
        });
    }
}

/// The world outside hears by itself where the client is now.
#[track_caller]
fn announced(world: &mut World) {
    wait("an announcement", || {
        let (_, frame) = world.receive_within(Duration::from_secs(10))?;
        (frame[6..14] == [&mac(1)[..], &[0x80, 0x35]].concat()).then_some(())
    });
    // It is said again for a second.
    while world.receive_within(Duration::from_millis(700)).is_some() {}
}

#[test]
#[ignore = "in a namespace"]
fn a_backup_takes_over_inside() {
    let mut world = world();
    for channels in [1, 2] {
        let server = Server::new(channels);
        server.must(Request::PutUplink(uplink(AggregateMode::ActiveBackup)));
        let mut client = server.client(1, How::default(), |_| ());
        until(&server, [Active, Backup]);
        world.greet(&mut client);
        let inactive = counted(&server, QueueCounter::DropInactive);
        pass_by(&server, &mut world, &mut client, 0);
        wait("what came by the other: all that went to many, of both sides", || {
            let after = counted(&server, QueueCounter::DropInactive);
            assert_eq!(after[0], inactive[0]);
            (after[1] >= inactive[1] + 50).then_some(())
        });
        // Its cable is pulled.
        ip("link set v1 down");
        announced(&mut world);
        until(&server, [Down, Active]);
        pass_by(&server, &mut world, &mut client, 1);
        ip("link set v1 up");
        announced(&mut world);
        until(&server, [Active, Backup]);
        pass_by(&server, &mut world, &mut client, 0);
        // Both at the last channel, where there are two.
        let thread = UplinkSpec { thread: true, ..uplink(AggregateMode::ActiveBackup) };
        server.must(Request::PutUplink(thread));
        pass_by(&server, &mut world, &mut client, 0);
        // It is taken out, and another one comes in its place.
        ip("link del v0");
        announced(&mut world);
        until(&server, [Down, Active]);
        pass_by(&server, &mut world, &mut client, 1);
        pair("v0", "v1");
        announced(&mut world);
        until(&server, [Active, Backup]);
        pass_by(&server, &mut world, &mut client, 0);
        // The other one is none that would be used.
        ip("link set w1 down");
        until(&server, [Active, Down]);
        pass_by(&server, &mut world, &mut client, 0);
        ip("link set v1 down");
        until(&server, [Down, Down]);
        let lost = server.count_of("ent1", QueueCounter::DropPortDown);
        client.send(&PLAIN, &client.frame(ALL, 1, 60));
        wait("a loss", || {
            (server.count_of("ent1", QueueCounter::DropPortDown) == lost + 1).then_some(())
        });
        for port in ["v1", "w1"] {
            ip(&format!("link set {port} up"));
        }
        until(&server, [Active, Backup]);
        announced(&mut world);
        world.greet(&mut client);
        pass_by(&server, &mut world, &mut client, 0);
    }
}

#[test]
fn a_backup_takes_over() {
    testkit::in_network_namespace("aggregate::a_backup_takes_over_inside");
}

#[test]
#[ignore = "in a namespace"]
fn an_uplink_begins_with_the_members_that_are_there_inside() {
    let mut world = world();
    ip("link set w0 down");
    let server = Server::new(2);
    server.must(Request::PutUplink(uplink(AggregateMode::ActiveBackup)));
    let mut client = server.client(1, How::default(), |_| ());
    until(&server, [Active, Down]);
    world.greet(&mut client);
    pass_by(&server, &mut world, &mut client, 0);
    ip("link set w0 up");
    until(&server, [Active, Backup]);
    ip("link set v1 down");
    announced(&mut world);
    pass_by(&server, &mut world, &mut client, 1);
    // Without any there is nothing to begin with, and that is tried again by others.
    server.must(Request::RemoveUplink { name: "up0".to_owned() });
    for interface in ["v0", "w0"] {
        ip(&format!("link set {interface} down"));
    }
    let refused = server.ask(Request::PutUplink(uplink(AggregateMode::ActiveBackup)));
    let Reply::Error(failure) = refused else { panic!("{refused:?}") };
    assert!(failure.message.contains("v0-member"), "{failure:?}");
}

#[test]
fn an_uplink_begins_with_the_members_that_are_there() {
    testkit::in_network_namespace(
        "aggregate::an_uplink_begins_with_the_members_that_are_there_inside",
    );
}

#[test]
#[ignore = "in a namespace"]
fn a_bridge_is_left_to_the_partner_when_all_members_are_down_inside() {
    let mut world = world();
    let (server, folder) = (Server::new(2), tempfile::tempdir().unwrap());
    let failover = FailoverSpec {
        sea: "ent6".to_owned(),
        mode: FailoverMode::Auto,
        priority: 1,
        control: folder.path().join("net"),
        link: String::new(),
        leaves: Vec::new(),
        netaddr: None,
        failback: Failback::AtOnce,
    };
    let failover = Some(failover);
    let spec = UplinkSpec { failover, ..uplink(AggregateMode::ActiveBackup) };
    server.must(Request::PutUplink(spec));
    let mut client = server.client(1, How::default(), |_| ());
    let is = |state: &str| {
        wait(state, || {
            let failover = server.status().uplinks.remove(0).failover?;
            (failover.state == state).then_some(())
        });
    };
    is("PRIMARY");
    world.greet(&mut client);
    pass_by(&server, &mut world, &mut client, 0);
    ip("link set v1 down");
    announced(&mut world);
    pass_by(&server, &mut world, &mut client, 1);
    is("PRIMARY");
    ip("link set w1 down");
    is("LIMBO");
    ip("link set v1 up");
    is("PRIMARY");
    announced(&mut world);
    pass_by(&server, &mut world, &mut client, 0);
}

#[test]
fn a_bridge_is_left_to_the_partner_when_all_members_are_down() {
    testkit::in_network_namespace(
        "aggregate::a_bridge_is_left_to_the_partner_when_all_members_are_down_inside",
    );
}

#[test]
#[ignore = "in a namespace"]
fn a_data_plane_that_opens_nothing_itself_gets_members_back_inside() {
    let world = world();
    let folder = tempfile::tempdir().unwrap();
    let setup = [Request::PutUplink(uplink(AggregateMode::ActiveBackup))];
    let mut process = Process::start(folder.path(), &setup);
    let mut until = |states| until_of(|| process.status(), states);
    until([Active, Backup]);
    ip("link set v1 down");
    until([Down, Active]);
    ip("link del v0");
    pair("v0", "v1");
    until([Active, Backup]);
    process.shut_down();
    drop(world);
}

#[test]
fn a_data_plane_that_opens_nothing_itself_gets_members_back() {
    testkit::in_network_namespace(
        "aggregate::a_data_plane_that_opens_nothing_itself_gets_members_back_inside",
    );
}

#[test]
#[ignore = "in a namespace"]
fn members_are_heard_of_while_nobody_answers_inside() {
    let world = world();
    let folder = tempfile::tempdir().unwrap();
    let setup = [Request::PutUplink(uplink(AggregateMode::ActiveBackup))];
    let mut process = Process::start(folder.path(), &setup);
    until_of(|| process.status(), [Active, Backup]);
    let pulled = |process: &mut Process| {
        ip("link set v1 down");
        until_of(|| process.status(), [Down, Active]);
        ip("link set v1 up");
        until_of(|| process.status(), [Active, Backup]);
    };
    // Then it has its socket.
    pulled(&mut process);
    // One thread for all members, and nobody asks.
    wait("a thread", || {
        let names = process.threads();
        let count = |name: &str| names.iter().filter(|its| *its == name).count();
        ((count("links"), count("link")) == (1, 0)).then_some(())
    });
    process.abandon();
    pulled(&mut process);
    process.shut_down();
    drop(world);
}

#[test]
fn members_are_heard_of_while_nobody_answers() {
    testkit::in_network_namespace("aggregate::members_are_heard_of_while_nobody_answers_inside");
}

#[test]
#[ignore = "in a namespace"]
fn a_tap_that_is_made_again_is_a_member_again_inside() {
    let (world, elsewhere, folder) = (world(), Elsewhere::new(), tempfile::tempdir().unwrap());
    let make = || {
        elsewhere.run("ip tuntap add m0 mode tap multi_queue vnet_hdr");
        elsewhere.run("ip link set m0 up");
    };
    make();
    let mut spec = uplink(AggregateMode::ActiveBackup);
    let first = &mut spec.aggregate.as_mut().unwrap().members[0];
    first.kind = UplinkKind::Tap;
    (first.interface, first.netns) = ("m0".to_owned(), Some(elsewhere.path()));
    let mut process = Process::start(folder.path(), &[Request::PutUplink(spec)]);
    let mut until = |states| until_of(|| process.status(), states);
    until([Active, Backup]);
    for _ in 0..3 {
        elsewhere.run("ip link del m0");
        until([Down, Active]);
        make();
        until([Active, Backup]);
    }
    // One that is not up is opened, and used when it is.
    elsewhere.run("ip link del m0");
    until([Down, Active]);
    elsewhere.run("ip tuntap add m0 mode tap multi_queue vnet_hdr");
    wait("what is wrong with it", || {
        let member = process.status().uplinks.remove(0).members.remove(0);
        assert_eq!(member.state, Down);
        (member.reason? == "it has no carrier").then_some(())
    });
    elsewhere.run("ip link set m0 up");
    until_of(|| process.status(), [Active, Backup]);
    // Its namespace goes, which nobody tells.
    drop(elsewhere);
    until_of(|| process.status(), [Down, Active]);
    process.shut_down();
    drop(world);
}

#[test]
fn a_tap_that_is_made_again_is_a_member_again() {
    testkit::in_network_namespace("aggregate::a_tap_that_is_made_again_is_a_member_again_inside");
}

/// A UDP packet of the client from a port, with a number.
fn udp(from: u16, number: u32) -> Vec<u8> {
    let mut packet = vec![0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
    let own = sum(&packet).to_be_bytes();
    packet[10..12].copy_from_slice(&own);
    let mut frame = [&OUTSIDE[..], &mac(1), &[8, 0], &packet].concat();
    frame.extend(from.to_be_bytes());
    frame.extend([0, 53, 0, 26, 0, 0]);
    frame.extend(number.to_be_bytes());
    frame.resize(60, 0);
    frame
}

#[test]
#[ignore = "in a namespace"]
fn flows_are_shared_inside() {
    let mut world = world();
    for port in ["v1", "w1"] {
        // Nothing goes from one to the other, as in an aggregate.
        ip(&format!("link set {port} type bridge_slave isolated on"));
    }
    for channels in [1, 2] {
        let server = Server::new(channels);
        server.must(Request::PutUplink(uplink(AggregateMode::Hash)));
        let mut client = server.client(1, How::default(), |_| ());
        until(&server, [Active, Active]);
        world.greet(&mut client);
        while client.receive_within(Duration::from_millis(20)).is_some() {}
        let share = |client: &mut Client, world: &mut World| {
            let before = counted(&server, QueueCounter::TxFrames);
            let mut numbers: BTreeMap<u16, BTreeSet<u32>> = BTreeMap::new();
            for number in 0..10 {
                for from in 0..20 {
                    client.send(&PLAIN, &udp(from, number));
                    let (_, came) = world.receive();
                    // Each flow is in order, and nothing comes twice.
                    let from = u16::from_be_bytes([came[34], came[35]]);
                    let number = u32::from_be_bytes(came[42..46].try_into().unwrap());
                    let its = numbers.entry(from).or_default();
                    assert!(its.last().is_none_or(|last| *last < number));
                    its.insert(number);
                }
            }
            assert_eq!(world.receive_within(Duration::from_millis(20)), None);
            assert!(numbers.values().all(|its| its.len() == 10) && numbers.len() == 20);
            let after = counted(&server, QueueCounter::TxFrames);
            [0, 1].map(|member| after[member] - before[member])
        };
        let [one, other] = share(&mut client, &mut world);
        assert!(one > 0 && other > 0 && one + other == 200, "{one} {other}");
        assert_eq!((one % 10, other % 10), (0, 0), "a flow has one of them");
        // Once, whoever it is for.
        let all = client.frame(ALL, 1, 60);
        client.send(&PLAIN, &all);
        assert_eq!(world.receive().1, all);
        assert_eq!(world.receive_within(Duration::from_millis(20)), None);
        // What comes is taken from either.
        for from in 0..20 {
            client.send(&PLAIN, &udp(from, 1));
            drop(world.receive());
            let back = frame(OUTSIDE, mac(1), from.into(), 60);
            world.send(&PLAIN, &back);
            assert_eq!(client.receive().frame, back);
        }
        assert!(counted(&server, QueueCounter::RxFrames).iter().all(|frames| *frames > 0));
        ip("link set w1 down");
        until(&server, [Active, Down]);
        assert_eq!(share(&mut client, &mut world), [200, 0]);
        ip("link set w1 up");
        until(&server, [Active, Active]);
    }
}

#[test]
fn flows_are_shared() {
    testkit::in_network_namespace("aggregate::flows_are_shared_inside");
}
