//! Two data planes, each a process, with a shared Ethernet adapter to one bridge of the kernel; a guest with a card on each. In a network namespace of the
//! test's own.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use crate::common::Server;
use crate::common::net::{
    Client, How, PLAIN, arp_announcement, card, in_vlan, ip, mac, quiet, wait,
};
use crate::common::process::Process;
use protocol::message::{Request, UplinkSpec};
use spec::{Failback, FailoverMode, FailoverSpec, UplinkKind};

const GUEST: u8 = 1;
const OUTSIDE: u8 = 9;

/// One of the two servers. Its guest may send what comes from elsewhere, as a bridge does.
struct Side {
    interface: &'static str,
    priority: u8,
    folder: tempfile::TempDir,
    control: std::path::PathBuf,
    kind: UplinkKind,
    netaddr: Option<std::net::Ipv4Addr>,
    failback: Failback,
    mode: FailoverMode,
    /// VLANs beside that of frames without a tag.
    vids: Vec<u16>,
    leaves: Vec<u16>,
}

impl Side {
    fn new(interface: &'static str, priority: u8, control: &Path) -> Side {
        let folder = tempfile::tempdir().unwrap();
        let (control, kind) = (control.to_owned(), UplinkKind::Tap);
        let (failback, mode) = (Failback::AtOnce, FailoverMode::Auto);
        let (netaddr, vids, leaves) = (None, Vec::new(), Vec::new());
        Side { interface, priority, folder, control, kind, netaddr, failback, mode, vids, leaves }
    }

    fn uplink(&self, mode: FailoverMode) -> Request {
        let failover = FailoverSpec {
            sea: "ent6".to_owned(),
            mode,
            priority: self.priority,
            control: self.control.clone(),
            link: self.interface.to_owned(),
            leaves: self.leaves.clone(),
            netaddr: self.netaddr,
            failback: self.failback,
        };
        // One of the two has a channel of its own.
        let (failover, kind, thread) = (Some(failover), self.kind, self.priority.is_multiple_of(2));
        let uplink =
            UplinkSpec { vids: self.vids.clone(), ..UplinkSpec::on("net", self.interface) };
        Request::PutUplink(UplinkSpec { failover, kind, thread, ..uplink })
    }

    /// A data plane with the uplink, on the kernel's bridge, and the guest's card.
    fn start(&self) -> (Process, Client) {
        let started = self.start_alone();
        ip(&format!("link set {} master br0", self.interface));
        started
    }

    fn start_alone(&self) -> (Process, Client) {
        let card = card(self.folder.path(), GUEST, |card| {
            card.any_mac = true;
            card.vids.clone_from(&self.vids);
        });
        let socket = card.socket.clone();
        let setup = [Request::PutAdapter(card), self.uplink(self.mode)];
        let process = Process::start(self.folder.path(), &setup);
        let guest = Client::connect(&socket, GUEST, How::default());
        (process, guest)
    }
}

#[track_caller]
fn until(process: &mut Process, state: &str) {
    wait(&format!("the state {state}"), || {
        let uplinks = process.status().uplinks;
        let failover = uplinks.first()?.failover.clone()?;
        (failover.state == state).then_some(())
    });
}

/// The number in a frame of the tests.
fn number(frame: &[u8]) -> Option<u32> {
    let own = frame[12..14] == [0x88, 0xb5];
    own.then(|| u32::from_be_bytes(frame[14..18].try_into().unwrap()))
}

/// The world outside, and the numbers of its frames.
struct World {
    client: Client,
    next: u32,
}

impl World {
    /// Sends broadcasts until one comes to the guest by this card: its number. The bridge of the kernel forwards once its ports do.
    #[track_caller]
    fn until_it_comes_by(&mut self, card: &mut Client) -> u32 {
        wait("a frame of the world outside", || {
            self.next += 1;
            let frame = self.client.frame([0xff; 6], self.next, 60);
            self.client.send(&PLAIN, &frame);
            let received = card.receive_within(Duration::from_millis(20))?;
            number(&received.frame)
        })
    }

    /// Everything that comes to the guest by a card until the last frame that was sent, each once.
    #[track_caller]
    fn rest(&mut self, card: &mut Client, mut last: u32) {
        while last < self.next {
            let Some(number) = number(&card.receive().frame) else { continue };
            assert!(number > last, "{number} came after {last}");
            last = number;
        }
    }

    /// What the guest sends by a card comes here, and nothing that was sent from here.
    #[track_caller]
    fn hears(&mut self, card: &mut Client, number_: u32) {
        let frame = card.frame([0xff; 6], number_, 60);
        card.send(&PLAIN, &frame);
        loop {
            let received = self.client.receive();
            assert_ne!(received.frame[6..12], mac(OUTSIDE), "its own frame: a loop");
            if number(&received.frame) == Some(number_) {
                return assert_eq!(received.frame, frame);
            }
            // What was forwarded before somebody else bridges, and announcements.
            let announces =
                [[0x80, 0x35], [8, 6]].contains(&[received.frame[12], received.frame[13]]);
            assert!(announces, "{:?}", number(&received.frame));
        }
    }
}

#[test]
#[ignore = "in a namespace"]
fn who_is_left_takes_over_inside() {
    quiet();
    ip("link add br0 type bridge mcast_snooping 0");
    ip("link set br0 up");
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("net");
    let (first, second) = (Side::new("up1", 1, &control), Side::new("up2", 2, &control));
    let outside = Server::new(1);
    outside.must(Request::PutUplink(UplinkSpec::on("net", "up9")));
    ip("link set up9 master br0");
    let mut world = World { client: outside.client(OUTSIDE, How::default(), |_| ()), next: 0 };

    let (mut one, mut card) = first.start();
    let (mut other, mut spare) = second.start();
    until(&mut one, "PRIMARY");
    until(&mut other, "BACKUP");
    let came = world.until_it_comes_by(&mut card);
    world.rest(&mut card, came);
    // The guest joins both cards. If both sides bridged, that would be a loop.
    let echo = world.client.frame([0xff; 6], 1, 60);
    spare.send(&PLAIN, &echo);
    let lost = spare.frame([0xff; 6], 700, 60);
    spare.send(&PLAIN, &lost);
    // The side that stands by hears which addresses the guest has, and of one that it has no longer.
    let address = |last| arp_announcement(mac(GUEST), [10, 0, 0, last]);
    spare.send(&PLAIN, &address(7));
    spare.send(&PLAIN, &address(8));
    spare.sent();
    world.hears(&mut card, 701);
    let elsewhere = arp_announcement(mac(OUTSIDE), [10, 0, 0, 8]);
    world.client.send(&PLAIN, &elsewhere);
    world.client.sent();
    // Not before that has gone by at the side that stands by, which says nothing of it.
    wait("what the world says", || {
        let frame = card.receive().frame;
        (frame == elsewhere).then_some(())
    });
    std::thread::sleep(Duration::from_millis(200));

    one.kill();
    until(&mut other, "PRIMARY");
    // The world outside is told where the guest is now, and with which address.
    let mut next = || {
        wait("an announcement", || {
            let frame = world.client.receive().frame;
            (number(&frame).is_none() && frame[6..12] == mac(GUEST)).then_some(frame)
        })
    };
    assert_eq!(next()[12..14], [0x80, 0x35]);
    assert_eq!(next(), address(7));
    world.client.has_nothing();
    let before = world.next;
    let came = world.until_it_comes_by(&mut spare);
    assert!(came > before, "{came} came by both");
    world.rest(&mut spare, came);
    world.hears(&mut spare, 702);

    // It comes back, and is the better one.
    drop(card);
    let (mut one, mut card) = first.start();
    until(&mut one, "PRIMARY");
    until(&mut other, "BACKUP");
    let before = world.next;
    let came = world.until_it_comes_by(&mut card);
    assert!(came > before);
    world.rest(&mut card, came);
    world.hears(&mut card, 703);
    // Told to yield, it does, and takes it again.
    one.must(&first.uplink(FailoverMode::Standby));
    until(&mut one, "STANDBY");
    until(&mut other, "PRIMARY");
    one.must(&first.uplink(FailoverMode::Auto));
    until(&mut one, "PRIMARY");
    // So it is with a link that goes and comes.
    ip("link set up1 down");
    until(&mut one, "LIMBO");
    until(&mut other, "PRIMARY");
    let before = world.next;
    let came = world.until_it_comes_by(&mut spare);
    assert!(came > before);
    world.rest(&mut spare, came);
    ip("link set up1 up");
    until(&mut one, "PRIMARY");
    until(&mut other, "BACKUP");
    // One that ends in order leaves nothing behind.
    one.shut_down();
    until(&mut other, "PRIMARY");
    other.shut_down();
}

#[test]
fn who_is_left_takes_over() {
    testkit::in_network_namespace("failover::who_is_left_takes_over_inside");
}

/// Two sides that ask for an address of the kernel's, which answers at an interface or does not.
fn who_is_answered_bridges(kind: UplinkKind, answer_at: [&str; 2]) {
    ip("link set lo up");
    ip("address add 10.0.0.1/32 dev lo");
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("net");
    let side = |interface, priority| {
        let netaddr = Some([10, 0, 0, 1].into());
        Side { kind, netaddr, ..Side::new(interface, priority, &control) }
    };
    let (first, second) = (side("up1", 1), side("up2", 2));
    let (mut one, card) = first.start_alone();
    let (mut other, _spare) = second.start_alone();
    let answers = |side: usize, yes: bool| {
        let path = format!("/proc/sys/net/ipv4/conf/{}/arp_ignore", answer_at[side]);
        std::fs::write(path, if yes { "0" } else { "8" }).expect("a setting of the kernel");
    };
    let status =
        |process: &mut Process| process.status().uplinks.remove(0).failover.expect("it takes part");
    until(&mut one, "PRIMARY");
    until(&mut other, "BACKUP");
    answers(0, false);
    until(&mut other, "PRIMARY");
    until(&mut one, "BACKUP");
    assert_eq!((status(&mut one).answers, status(&mut other).answers), (Some(false), Some(true)));
    assert!(status(&mut one).reason.contains("netaddr does not answer"), "{:?}", status(&mut one));
    // One that comes back does not take the bridge to find that out.
    one.kill();
    drop(card);
    let (mut one, mut card) = first.start_alone();
    answers(0, false);
    std::thread::sleep(Duration::from_millis(2_500));
    let now = status(&mut one);
    assert_eq!((now.state.as_str(), now.takeovers, now.answers), ("BACKUP", 0, Some(false)));
    // If neither is answered it is as without an address.
    answers(1, false);
    until(&mut one, "PRIMARY");
    until(&mut other, "BACKUP");
    assert_eq!((status(&mut one).answers, status(&mut other).answers), (Some(false), Some(false)));
    answers(1, true);
    until(&mut other, "PRIMARY");
    answers(0, true);
    until(&mut one, "PRIMARY");
    assert_eq!(status(&mut one).answers, Some(true));
    // Nobody asks any more.
    answers(0, false);
    one.must(&Side { kind, ..Side::new("up1", 1, &control) }.uplink(FailoverMode::Auto));
    wait("nobody to ask", || status(&mut one).answers.is_none().then_some(()));
    until(&mut one, "PRIMARY");
    // The guest was told nothing of all that.
    while let Some(received) = card.receive_within(Duration::from_millis(10)) {
        let frame = received.frame;
        let is_answer = frame[12..14] == [8, 6] && frame[28..32] == [10, 0, 0, 1];
        assert!(!is_answer, "{frame:02x?}");
    }
    one.shut_down();
    other.shut_down();
}

#[test]
#[ignore = "in a namespace"]
fn who_is_answered_bridges_by_taps_inside() {
    quiet();
    who_is_answered_bridges(UplinkKind::Tap, ["up1", "up2"]);
}

#[test]
fn who_is_answered_bridges_by_taps() {
    testkit::in_network_namespace("failover::who_is_answered_bridges_by_taps_inside");
}

#[test]
#[ignore = "in a namespace"]
fn who_is_answered_bridges_by_packet_sockets_inside() {
    quiet();
    for number in 1..=2 {
        ip(&format!("link add up{number} type veth peer name out{number}"));
        ip(&format!("link set up{number} up"));
        ip(&format!("link set out{number} up"));
    }
    who_is_answered_bridges(UplinkKind::Packet, ["out1", "out2"]);
}

#[test]
fn who_is_answered_bridges_by_packet_sockets() {
    testkit::in_network_namespace("failover::who_is_answered_bridges_by_packet_sockets_inside");
}

#[test]
#[ignore = "in a namespace"]
fn who_comes_back_waits_inside() {
    quiet();
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("net");
    let side = |interface, priority| Side {
        failback: Failback::Never,
        ..Side::new(interface, priority, &control)
    };
    let (mut first, second) = (side("up1", 1), side("up2", 2));
    let (mut one, card) = first.start_alone();
    until(&mut one, "PRIMARY");
    let (mut other, _spare) = second.start_alone();
    until(&mut other, "BACKUP");
    let status =
        |process: &mut Process| process.status().uplinks.remove(0).failover.expect("it takes part");
    one.kill();
    drop(card);
    until(&mut other, "PRIMARY");
    let (mut one, card) = first.start_alone();
    let reason = |process: &mut Process, part: &str| {
        wait(part, || status(process).reason.contains(part).then_some(()));
    };
    reason(&mut one, "noauto_failback");
    reason(&mut other, "does not take the bridge back yet");
    std::thread::sleep(Duration::from_millis(1_500));
    let now = status(&mut one);
    assert_eq!((now.state.as_str(), now.takeovers), ("BACKUP", 0));
    // A time that it has waited already is over at once, one that it has not is waited for.
    first.failback = Failback::After(3600);
    one.must(&first.uplink(FailoverMode::Auto));
    reason(&mut one, "fb_delay");
    assert_eq!(status(&mut one).state, "BACKUP");
    first.failback = Failback::After(2);
    one.must(&first.uplink(FailoverMode::Auto));
    until(&mut one, "PRIMARY");
    until(&mut other, "BACKUP");
    // It comes back from limbo, and waits; the partner that bridges dies, which is none of its returns.
    first.failback = Failback::After(3600);
    one.must(&first.uplink(FailoverMode::Auto));
    ip("link set up1 down");
    until(&mut other, "PRIMARY");
    ip("link set up1 up");
    reason(&mut one, "fb_delay");
    other.kill();
    until(&mut one, "PRIMARY");
    drop(card);
    one.shut_down();
}

#[test]
fn who_comes_back_waits() {
    testkit::in_network_namespace("failover::who_comes_back_waits_inside");
}

/// The VLANs of two sides that share: of frames without a tag, and of frames with one.
const SHARED: [u16; 2] = [1, 10];

/// VLAN and number of a frame of the tests.
fn vlan_and_number(frame: &[u8]) -> Option<(u16, u32)> {
    match frame.strip_prefix(&frame[..12])? {
        [0x81, 0, tag @ ..] => {
            let (tag, rest) = tag.split_first_chunk()?;
            let whole = [&frame[..12], rest].concat();
            Some((u16::from_be_bytes(*tag), number(&whole)?))
        }
        _ => Some((1, number(frame)?)),
    }
}

/// What has come to the guest by each of its cards.
#[derive(Default)]
struct Seen([BTreeSet<(u16, u32)>; 2]);

impl Seen {
    fn take(&mut self, side: usize, card: &mut Client) {
        while let Some(received) = card.receive_within(Duration::ZERO) {
            self.0[side].extend(vlan_and_number(&received.frame));
        }
    }

    /// The world outside sends broadcasts in all VLANs until those of each come by the side that bridges it, and by no other.
    #[track_caller]
    fn until_shared(&mut self, world: &mut World, cards: [&mut Client; 2], bridges: [usize; 2]) {
        let first = world.next + 1;
        let [one, other] = cards;
        wait("frames of all VLANs", || {
            world.next += 1;
            for vid in SHARED {
                let frame = in_vlan(world.client.frame([0xff; 6], world.next, 60), vid);
                world.client.send(&PLAIN, &frame);
            }
            self.take(0, one);
            self.take(1, other);
            let came = |(vid, side): (&u16, &usize)| {
                let mut since = self.0[*side].range((*vid, first)..=(*vid, u32::MAX));
                since.next().is_some()
            };
            SHARED.iter().zip(&bridges).all(came).then_some(())
        });
        for (vid, side) in SHARED.into_iter().zip(bridges) {
            let mut wrong = self.0[1 - side].range((vid, first)..=(vid, u32::MAX));
            assert_eq!(wrong.next(), None, "by the side that does not bridge it");
        }
    }

    /// Nothing has ever come by both.
    #[track_caller]
    fn never_twice(&self) {
        let [one, other] = &self.0;
        assert!(one.is_disjoint(other), "{:?}", one.intersection(other).collect::<Vec<_>>());
    }
}

#[track_caller]
fn bridges(process: &mut Process, wanted: &[u16]) {
    wait("what it bridges", || {
        let failover = process.status().uplinks.remove(0).failover?;
        (failover.bridges == wanted).then_some(())
    });
}

#[test]
#[ignore = "in a namespace"]
fn two_that_share_carry_a_part_each_and_who_is_left_carries_all_inside() {
    quiet();
    ip("link add br0 type bridge mcast_snooping 0");
    ip("link set br0 up");
    let folder = tempfile::tempdir().unwrap();
    let control = folder.path().join("net");
    // The second trunk adapter has the frames without a tag.
    let side = |interface, priority| Side {
        mode: FailoverMode::Sharing,
        vids: vec![10],
        leaves: vec![1],
        ..Side::new(interface, priority, &control)
    };
    let (first, second) = (side("up1", 1), side("up2", 2));
    let outside = Server::new(1);
    outside.must(Request::PutUplink(UplinkSpec { vids: vec![10], ..UplinkSpec::on("net", "up9") }));
    ip("link set up9 master br0");
    let client = outside.client(OUTSIDE, How::default(), |card| card.vids = vec![10]);
    let (mut world, mut seen) = (World { client, next: 0 }, Seen::default());

    let (mut one, mut card) = first.start();
    let (mut other, mut spare) = second.start();
    let shared = |one: &mut Process, other: &mut Process| {
        until(one, "PRIMARY_SH");
        until(other, "BACKUP_SH");
        bridges(one, &[10]);
        bridges(other, &[1]);
    };
    shared(&mut one, &mut other);
    seen.until_shared(&mut world, [&mut card, &mut spare], [1, 0]);
    // What the guest sends goes out by one of them: what is not bridged before what is.
    for (card, all) in [(&mut card, [(1, 701), (10, 702)]), (&mut spare, [(10, 703), (1, 704)])] {
        for (vid, number) in all {
            let frame = in_vlan(card.frame([0xff; 6], number, 60), vid);
            card.send(&PLAIN, &frame);
        }
    }
    let mut came = BTreeSet::new();
    wait("what the guest has sent", || {
        came.extend(vlan_and_number(&world.client.receive().frame));
        came.is_superset(&[(10, 702), (1, 704)].into()).then_some(())
    });
    assert_eq!(came, [(10, 702), (1, 704)].into());

    one.kill();
    until(&mut other, "PRIMARY");
    seen.until_shared(&mut world, [&mut card, &mut spare], [1, 1]);
    drop(card);
    let (mut one, mut card) = first.start();
    shared(&mut one, &mut other);
    seen.until_shared(&mut world, [&mut card, &mut spare], [1, 0]);
    // It takes two to share.
    other.must(&second.uplink(FailoverMode::Auto));
    until(&mut one, "PRIMARY");
    until(&mut other, "BACKUP");
    seen.until_shared(&mut world, [&mut card, &mut spare], [0, 0]);
    other.must(&second.uplink(FailoverMode::Sharing));
    shared(&mut one, &mut other);
    seen.until_shared(&mut world, [&mut card, &mut spare], [1, 0]);
    // The other half goes to the one that is left as well.
    other.kill();
    until(&mut one, "PRIMARY");
    seen.until_shared(&mut world, [&mut card, &mut spare], [0, 0]);
    seen.never_twice();
    one.shut_down();
}

#[test]
fn two_that_share_carry_a_part_each_and_who_is_left_carries_all() {
    testkit::in_network_namespace(
        "failover::two_that_share_carry_a_part_each_and_who_is_left_carries_all_inside",
    );
}
