//! What a client that migrates its machine relies on: an acknowledged dirty log is kept, and let go of; a disabled ring is quiet at once.

mod common;

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use common::raw::{
    CONFIG_WCE, FLUSH, Front, INDIRECT, PROTOCOL_FEATURES, Ring, VERSION_1, code, halves, words,
};
use common::{Server, null, slow_by};
use protocol::message::{Request, WaitMode};
use protocol::stats::QueueCounter;

const FEATURES: u64 = VERSION_1 | PROTOCOL_FEATURES | INDIRECT | FLUSH | CONFIG_WCE;
const LOG_ALL: u64 = 1 << 26;
const LOG_BYTES: u64 = 1 << 20;

fn log_file(name: &str) -> File {
    let file = rustix::fs::memfd_create(name, rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(file);
    file.set_len(LOG_BYTES).unwrap();
    file
}

fn set_log_base(front: &Front, log: &File) {
    front.ask(code::SET_LOG_BASE, &words(&[LOG_BYTES, 0]), &[log.as_fd()]);
}

fn set_features(front: &Front, features: u64) {
    assert!(front.accepted(code::SET_FEATURES, &words(&[features]), &[]));
}

fn logged(log: &File, guest: u64) -> bool {
    let page = guest >> 12;
    let mut byte = [0];
    log.read_exact_at(&mut byte, page / 8).unwrap();
    byte[0] & 1 << (page % 8) != 0
}

#[test]
fn what_is_read_after_the_log_was_acknowledged_is_logged() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(8)));
    let socket = server.put_adapter(|spec| spec.wait = WaitMode::Poll);
    let (front, ring) = Front::ready(&socket);
    ring.works();
    let log = log_file("log");
    for round in 0..500 {
        log.write_all_at(&[0; 4096], 0).unwrap();
        set_log_base(&front, &log);
        set_features(&front, FEATURES | LOG_ALL);
        ring.works();
        assert!(logged(&log, ring.data.guest.0), "round {round}: a page is lost");
        set_features(&front, FEATURES);
    }
}

#[test]
fn the_log_is_let_go_of() {
    let maps = |name: &str| std::fs::read_to_string("/proc/self/maps").unwrap().contains(name);
    let server = Server::new(1);
    server.must(Request::PutVolume(null(8)));
    let socket = server.put_adapter(|_| ());
    let (front, ring) = Front::ready(&socket);
    let log = log_file("log-that-ends");
    set_log_base(&front, &log);
    set_features(&front, FEATURES | LOG_ALL);
    ring.works();
    assert!(maps("log-that-ends"));
    set_features(&front, FEATURES);
    assert!(!maps("log-that-ends"), "still mapped after logging has ended");
    set_log_base(&front, &log);
    set_features(&front, FEATURES | LOG_ALL);
    assert!(maps("log-that-ends"));
    assert!(front.accepted(code::RESET_DEVICE, &[], &[]));
    assert!(!maps("log-that-ends"), "still mapped after a reset");
}

/// A ring that was disabled while a read of so many microseconds is under way.
fn disabled_with_a_read(server: &Server, us: u64) -> (Front, Ring) {
    server.must(Request::PutVolume(slow_by(null(8), us)));
    let socket = server.put_adapter(|_| ());
    let (front, ring) = Front::ready(&socket);
    ring.read(0, 0);
    ring.offer(&[0]);
    common::raw::until("the read is under way", || {
        server.count(QueueCounter::CommandsReceived) == 1
    });
    assert!(front.state(code::SET_VRING_ENABLE, 0, 0));
    (front, ring)
}

#[test]
fn a_ring_is_disabled_without_waiting_and_stopped_with_nothing_in_flight() {
    let server = Server::new(1);
    let (front, ring) = disabled_with_a_read(&server, 3_000_000);
    assert_eq!(ring.used_index(), 0, "it waited for the read");
    ring.read(3, 0);
    ring.offer(&[3]);
    let base = front.ask(code::GET_VRING_BASE, &halves(&[0, 0]), &[]);
    assert_eq!(base[4..], 1_u32.to_le_bytes(), "a disabled ring was fetched from");
    assert_eq!((ring.used_index(), ring.status_of(0)), (1, 0));
    // It goes on where it stood.
    assert!(front.state(code::SET_VRING_BASE, 0, 1));
    assert!(front.set_fd(code::SET_VRING_KICK, 0, ring.kick.as_fd()));
    assert!(front.state(code::SET_VRING_ENABLE, 0, 1));
    ring.wait();
    assert_eq!(ring.status_of(3), 0);
}

#[test]
fn an_adapter_is_removed_at_once_although_a_disabled_ring_waits_for_its_delays() {
    let server = Server::new(1);
    let _client = disabled_with_a_read(&server, 100_000_000);
    let (removed, told) = std::sync::mpsc::channel();
    let name = server.adapter_status().spec.name.clone();
    std::thread::spawn(move || {
        server.must(Request::RemoveAdapter { name });
        removed.send(()).unwrap();
    });
    told.recv_timeout(Duration::from_secs(20)).expect("it waits for the read");
}

#[test]
fn a_ring_that_is_disabled_and_enabled_under_load_loses_nothing() {
    let server = Server::new(1);
    server.must(Request::PutVolume(slow_by(null(8), 2_000)));
    let socket = server.put_adapter(|_| ());
    let (front, ring) = Front::ready(&socket);
    for round in 0..50 {
        let heads: Vec<u16> = (0..8).map(|n| 3 * n).collect();
        heads.iter().for_each(|head| ring.read(*head, 0));
        ring.offer(&heads);
        assert!(front.state(code::SET_VRING_ENABLE, 0, 0));
        assert!(front.state(code::SET_VRING_ENABLE, 0, 1));
        ring.wait();
        assert!(heads.iter().all(|head| ring.status_of(*head) == 0), "round {round}");
    }
}
