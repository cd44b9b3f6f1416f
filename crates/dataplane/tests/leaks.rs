//! What comes and goes leaves nothing behind. One test, so that nobody else in the process opens or maps something meanwhile.

mod common;

use common::raw::Front;
use common::scsi::{Client, target, unit};
use common::{Server, null};
use partition::scsi::control::Function;
use protocol::message::{Request, VolumeSpec};
use protocol::stats::QueueCounter;

const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];

fn open_files() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

fn mappings() -> usize {
    std::fs::read_to_string("/proc/self/maps").unwrap().lines().count()
}

/// Private writable memory that the process has asked for, touched or not.
fn data_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

fn clients_and_queues_that_come_and_go_leave_nothing() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(64)));
    let socket = server.put_adapter(|_| ());
    let client = || {
        let front = Front::connect(&socket);
        front.share_memory();
        let rings: Vec<_> = (0..4).map(|index| front.start(index, 64)).collect();
        rings.iter().for_each(|ring| ring.works());
        drop((front, rings));
        server.settled();
    };
    client();
    let (files, maps) = (open_files(), mappings());
    (0..50).for_each(|_| client());
    assert_eq!(open_files(), files, "open files");
    assert!(mappings() <= maps + 20, "{} mappings, {maps} before", mappings());
    assert_eq!(server.stats().queues.len(), 4, "the counters of a queue are its adapter's");

    // A queue that stops and starts takes the room for its commands once.
    let front = Front::connect(&socket);
    front.share_memory();
    let ring = front.start(0, 1024);
    let cycle = || {
        front.stop(0);
        front.run(&ring);
    };
    (0..10).for_each(|_| cycle());
    let before = data_kib();
    (0..2000).for_each(|_| cycle());
    ring.works();
    let grown = data_kib().saturating_sub(before);
    assert!(grown < 16 << 10, "{grown} KiB more after 2000 starts");

    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    assert_eq!(server.count(QueueCounter::Starts), 0, "a removed adapter has no counters");
    assert!(server.stats().queues.is_empty());
}

fn clients_units_and_masks_that_come_and_go_leave_nothing() {
    let server = Server::new(2);
    for name in ["a", "b"] {
        server.must(Request::PutVolume(VolumeSpec { name: name.into(), ..null(64) }));
    }
    let round = || {
        for name in ["a", "b"] {
            server.must(Request::PutUnit(unit(name, name)));
        }
        let socket = server.put_scsi(0, vec![target(0, &[(0, "a")])]);
        let mut client = Client::connect(&socket);
        client.attentions(LUN);
        server.put_scsi(0, vec![target(0, &[(0, "b")]), target(1, &[(0, "a")])]);
        client.attentions(LUN);
        client.manage(Function::NexusReset, LUN, 0);
        server.must(Request::RemoveAdapter { name: "vfchost0".into() });
        for name in ["a", "b"] {
            server.must(Request::RemoveUnit { name: name.into() });
        }
    };
    (0..3).for_each(|_| round());
    let before = open_files();
    (0..30).for_each(|_| round());
    assert_eq!(open_files(), before, "open files");
    assert!(server.stats().queues.is_empty() && server.status().units.is_empty());
}

#[test]
fn what_comes_and_goes_leaves_nothing() {
    clients_and_queues_that_come_and_go_leave_nothing();
    clients_units_and_masks_that_come_and_go_leave_nothing();
}
