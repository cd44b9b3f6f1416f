//! What passes an uplink is counted by station and VLAN, where that is asked for.

use crate::common::Server;
use crate::common::net::{
    Client, How, PLAIN, arp_announcement, frame, in_vlan, ip, mac, quiet, wait,
};
use protocol::message::{Passed, Reply, Request, Tally, TallySpec, UplinkSpec};

const OUTSIDE: u8 = 9;

fn uplink(name: &str, accounting: bool) -> Request {
    let vids = vec![10];
    Request::PutUplink(UplinkSpec { vids, accounting, ..UplinkSpec::on("net", name) })
}

#[track_caller]
fn tallies(server: &Server, clear: bool) -> Vec<Tally> {
    match server.ask(Request::Tallies(TallySpec { uplink: "up1".to_owned(), clear })) {
        Reply::Tallies(report) => report.tallies,
        reply => panic!("{reply:?}"),
    }
}

fn passed(frames: u64, bytes: u64) -> Passed {
    Passed { frames, bytes }
}

/// A frame goes from one to the other, as often as it takes to be the next one that comes.
#[track_caller]
fn until_it_comes(from: &mut Client, to: &mut Client, frame: &[u8]) {
    wait("a frame", || {
        from.send(&PLAIN, frame);
        let received = to.receive_within(std::time::Duration::from_millis(20))?;
        (received.frame == frame).then_some(())
    });
    while to.receive_within(std::time::Duration::from_millis(50)).is_some() {}
}

#[track_caller]
fn comes(from: &mut Client, to: &mut Client, frame: &[u8]) {
    from.send(&PLAIN, frame);
    assert_eq!(to.receive().frame, frame);
}

/// Channels hear of a change with their next turn: the world outside sends broadcasts until one is counted. How many were.
#[track_caller]
fn counted_from_now_on(server: &Server, world: &mut Client, one: &mut Client) -> Passed {
    wait("a count", || {
        comes(world, one, &frame(mac(OUTSIDE), [255; 6], 0, 60));
        Some(tallies(server, false).first()?.received)
    })
}

#[test]
#[ignore = "in a namespace"]
fn what_clients_send_and_get_is_counted_inside() {
    quiet();
    ip("link add br0 type bridge mcast_snooping 0");
    ip("link set br0 up");
    let (server, outside) = (Server::new(1), Server::new(1));
    server.must(uplink("up1", false));
    outside.must(uplink("up9", false));
    ["up1", "up9"].iter().for_each(|name| ip(&format!("link set {name} master br0")));
    let mut one = server.client(1, How::default(), |_| ());
    let mut other = server.client(2, How::default(), |card| card.vids = vec![10]);
    let mut world = outside.client(OUTSIDE, How::default(), |card| card.vids = vec![10]);
    // Everybody is known everywhere, and the bridge forwards.
    let hello = |number: u8, vid| in_vlan(frame(mac(number), [255; 6], 0, 60), vid);
    until_it_comes(&mut one, &mut world, &hello(1, 1));
    until_it_comes(&mut world, &mut one, &hello(OUTSIDE, 1));
    until_it_comes(&mut other, &mut world, &hello(2, 10));
    until_it_comes(&mut world, &mut other, &hello(OUTSIDE, 10));
    one.send(&PLAIN, &arp_announcement(mac(1), [10, 0, 0, 7]));
    world.receive();
    other.empty();
    assert_eq!(tallies(&server, false), []);

    server.must(uplink("up1", true));
    let mut all_received = counted_from_now_on(&server, &mut world, &mut one);
    all_received += passed(1, 300);
    other.empty();
    for number in 0..3 {
        comes(&mut one, &mut world, &frame(mac(1), mac(OUTSIDE), number, 100));
    }
    comes(&mut one, &mut world, &frame(mac(1), [255; 6], 7, 60));
    comes(&mut other, &mut one, &frame(mac(2), mac(1), 8, 60));
    other.empty();
    let mut prior = in_vlan(frame(mac(2), mac(OUTSIDE), 4, 200), 10);
    prior[14] = 0xa0;
    comes(&mut other, &mut world, &prior);
    comes(&mut world, &mut one, &frame(mac(OUTSIDE), mac(1), 5, 300));
    comes(&mut world, &mut other, &in_vlan(frame(mac(OUTSIDE), mac(2), 6, 400), 10));
    comes(&mut world, &mut other, &hello(OUTSIDE, 10));
    let all = tallies(&server, false);
    let vlan = |vlan, sent, received| Tally { vlan, sent, received, ..Tally::default() };
    let wanted = [
        vlan(1, passed(4, 360), all_received),
        Tally {
            station: Some(mac(1)),
            address: Some([10, 0, 0, 7].into()),
            ..vlan(1, passed(4, 360), passed(1, 300))
        },
        vlan(10, passed(1, 204), passed(2, 404 + 64)),
        Tally { station: Some(mac(2)), priority: 5, ..vlan(10, passed(1, 204), passed(1, 404)) },
    ];
    assert_eq!(all, wanted);
    // The same again is no change.
    server.must(uplink("up1", true));
    assert_eq!(tallies(&server, true), wanted);
    assert_eq!(tallies(&server, false), []);
    counted_from_now_on(&server, &mut world, &mut one);
    comes(&mut world, &mut one, &frame(mac(OUTSIDE), mac(1), 9, 70));
    assert_eq!(tallies(&server, false)[1].received, passed(1, 70));
    server.must(uplink("up1", false));
    comes(&mut world, &mut one, &frame(mac(OUTSIDE), mac(1), 10, 70));
    assert_eq!(tallies(&server, false), []);
}

#[test]
fn what_clients_send_and_get_is_counted() {
    testkit::in_network_namespace("tallies::what_clients_send_and_get_is_counted_inside");
}
