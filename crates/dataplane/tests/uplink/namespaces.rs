//! Uplinks whose interface is in another network namespace than the control plane, which is the test here, and the data plane.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;

use crate::common::net::{Client, How, PLAIN, card, frame, ip, mac, quiet, wait};
use crate::common::process::Process;
use partition::net::HEADER_BYTES;
use protocol::message::{Reply, Request, UplinkKind, UplinkSpec};
use spec::{Failback, FailoverMode, FailoverSpec};
use testkit::Elsewhere;

const GUEST: u8 = 1;
const OUTSIDE: [u8; 6] = [2, 0, 0, 0, 0, 9];

fn uplink(kind: UplinkKind, interface: &str, netns: &Path) -> UplinkSpec {
    let netns = Some(netns.to_owned());
    UplinkSpec { kind, netns, ..UplinkSpec::on("net", interface) }
}

/// A data plane, confined, with an uplink and a guest.
fn start(folder: &Path, uplink: &UplinkSpec) -> (Process, Client) {
    let card = card(folder, GUEST, |card| card.any_mac = true);
    let socket = card.socket.clone();
    let setup = [Request::PutAdapter(card), Request::PutUplink(uplink.clone())];
    let process = Process::start(folder, &setup);
    (process, Client::connect(&socket, GUEST, How::default()))
}

/// Frames of the guest come by this socket, and of it to the guest.
fn exchange(guest: &mut Client, outside: &mut File) {
    let sent = guest.frame([0xff; 6], 7, 60);
    let mut room = [0; 2048];
    wait("a frame of the guest", || {
        guest.send(&PLAIN, &sent);
        let bytes = outside.read(&mut room).ok()?;
        (room[HEADER_BYTES..bytes] == sent[..]).then_some(())
    });
    let answer = frame(OUTSIDE, mac(GUEST), 8, 60);
    outside.write_all(&[&PLAIN[..], &answer].concat()).unwrap();
    wait("the answer", || (guest.receive().frame == answer).then_some(()));
}

#[test]
#[ignore = "in a namespace"]
fn a_tap_elsewhere_inside() {
    quiet();
    let elsewhere = Elsewhere::new();
    // One of that name here is somebody else's.
    ip("link add up1 type veth peer name peer1");
    ip("link set up1 up");
    ip("link set peer1 up");
    let folder = tempfile::tempdir().unwrap();
    let failover = FailoverSpec {
        sea: "ent6".to_owned(),
        mode: FailoverMode::Auto,
        priority: 1,
        control: folder.path().join("net"),
        link: "up1".to_owned(),
        leaves: Vec::new(),
        netaddr: None,
        failback: Failback::AtOnce,
    };
    let failover = Some(failover);
    let uplink = UplinkSpec { failover, ..uplink(UplinkKind::Tap, "up1", &elsewhere.path()) };
    let (mut process, mut guest) = start(folder.path(), &uplink);
    assert!(elsewhere.run("ip -o link show up1").contains("mtu 1500"));
    let mut until = |state: &str| {
        wait(state, || {
            let failover = process.status().uplinks.first()?.failover.clone()?;
            (failover.state == state).then_some(())
        });
    };
    until("PRIMARY");
    let path = elsewhere.path();
    let open = || memory::packet::open("up1", None, false);
    let mut host = File::from(memory::namespace::within(Some(&path), open).unwrap());
    exchange(&mut guest, &mut host);
    // Its link is that of the interface there.
    elsewhere.run("ip link set up1 down");
    until("LIMBO");
    elsewhere.run("ip link set up1 up");
    until("PRIMARY");
    // Without the namespace there is no link.
    drop(elsewhere);
    drop(host);
    until("LIMBO");
    process.shut_down();
}

#[test]
fn a_tap_elsewhere() {
    testkit::in_network_namespace("namespaces::a_tap_elsewhere_inside");
}

#[test]
#[ignore = "in a namespace"]
fn a_card_elsewhere_inside() {
    quiet();
    let (elsewhere, folder) = (Elsewhere::new(), tempfile::tempdir().unwrap());
    ip("link add v1 type veth peer name v0");
    ip(&format!("link set v0 netns {}", elsewhere.id()));
    ip("link set v1 up");
    elsewhere.run("ip link set v0 up");
    let spec = uplink(UplinkKind::Packet, "v0", &elsewhere.path());
    let (mut process, mut guest) = start(folder.path(), &spec);
    let mut wire = File::from(memory::packet::open("v1", None, false).unwrap());
    exchange(&mut guest, &mut wire);
    // What is not there is told with its place.
    process.must(&Request::RemoveUplink { name: "v0".to_owned() });
    let mut why = |spec: UplinkSpec| match process.ask(&Request::PutUplink(spec)) {
        Reply::Error(failure) => failure,
        other => panic!("{other:?}"),
    };
    let missing = why(uplink(UplinkKind::Packet, "v0", Path::new("/run/netns/no-such")));
    assert!(missing.message.contains("/run/netns/no-such"), "{missing:?}");
    let other = why(uplink(UplinkKind::Tap, "v9", Path::new("/dev/null")));
    assert!(other.message.contains("it is none"), "{other:?}");
    // Here it is not.
    let here = why(UplinkSpec { netns: None, ..spec.clone() });
    assert!(here.message.contains("No such device"), "{here:?}");
    process.must(&Request::PutUplink(spec));
    exchange(&mut guest, &mut wire);
    process.shut_down();
}

#[test]
fn a_card_elsewhere() {
    testkit::in_network_namespace("namespaces::a_card_elsewhere_inside");
}
