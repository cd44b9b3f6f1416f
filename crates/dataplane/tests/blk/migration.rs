//! What a client that migrates its machine relies on: an acknowledged dirty log is kept, and let go of; a disabled ring is quiet at once.

use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::time::Duration;

use crate::common::raw::{
    CONFIG_WCE, FLUSH, Front, INDIRECT, LOG_ALL, NEXT, PROTOCOL_FEATURES, Ring, VERSION_1, WRITE,
    code, halves, log_file, logged,
};
use crate::common::scsi::linked;
use crate::common::{Server, null, slow_by};
use partition::scsi::address;
use protocol::message::{FileSpec, LinkSpec, Request, VolumeSpec, WaitMode};
use protocol::stats::QueueCounter;
use testkit::{Disk, Kind, is_root};

const FEATURES: u64 = VERSION_1 | PROTOCOL_FEATURES | INDIRECT | FLUSH | CONFIG_WCE;
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
        front.set_log_base(&log);
        front.set_features(FEATURES | LOG_ALL);
        ring.works();
        assert!(logged(&log, ring.data.guest.0), "round {round}: a page is lost");
        front.set_features(FEATURES);
    }
}

/// The kernel writes it into the guest's memory at some moment between; the server marks the page behind that.
#[test]
fn what_is_in_the_kernel_when_the_log_is_acknowledged_is_logged() {
    if !is_root("a read in the kernel when a log begins") {
        return;
    }
    let server = Server::new(1);
    let (disk, front, ring) = read_in_the_kernel(&server);
    let log = log_file("log");
    front.set_log_base(&log);
    front.set_features(FEATURES | LOG_ALL);
    assert!(!logged(&log, ring.data.guest.0));
    disk.release(Kind::Read);
    ring.wait();
    assert_eq!(ring.status_of(0), 0);
    assert!(logged(&log, ring.data.guest.0), "its page is lost");
}

/// A read of head 0 that stays in the kernel.
fn read_in_the_kernel(server: &Server) -> (Disk, Front, Ring) {
    let disk = Disk::new(8 << 20);
    server.must(Request::PutVolume(VolumeSpec::new("v", FileSpec::new(disk.path()))));
    let (front, ring) = Front::ready(&server.put_adapter(|_| ()));
    disk.hold(Kind::Read);
    ring.read(0, 0);
    ring.offer(&[0]);
    disk.wait_held(Kind::Read, 1);
    (disk, front, ring)
}

#[test]
fn a_ring_with_a_read_in_the_kernel_is_disabled_at_once_and_stopped_behind_it() {
    if !is_root("a read in the kernel when its ring is disabled") {
        return;
    }
    let server = Server::new(1);
    let (disk, front, ring) = read_in_the_kernel(&server);
    assert!(front.state(code::SET_VRING_ENABLE, 0, 0));
    assert_eq!(ring.used_index(), 0, "it waited for the read");
    std::thread::scope(|scope| {
        let stop = scope.spawn(|| front.ask(code::GET_VRING_BASE, &halves(&[0, 0]), &[]));
        // Time to do it wrong.
        std::thread::sleep(Duration::from_millis(100));
        let early = stop.is_finished();
        disk.release(Kind::Read);
        assert_eq!(stop.join().unwrap()[4..], 1_u32.to_le_bytes());
        assert!(!early, "its read can still land");
    });
    assert_eq!((ring.used_index(), ring.status_of(0)), (1, 0));
}

#[test]
fn the_log_is_let_go_of() {
    let maps = |name: &str| std::fs::read_to_string("/proc/self/maps").unwrap().contains(name);
    let server = Server::new(1);
    server.must(Request::PutVolume(null(8)));
    let socket = server.put_adapter(|_| ());
    let (front, ring) = Front::ready(&socket);
    let log = log_file("log-that-ends");
    front.set_log_base(&log);
    front.set_features(FEATURES | LOG_ALL);
    ring.works();
    assert!(maps("log-that-ends"));
    front.set_features(FEATURES);
    assert!(!maps("log-that-ends"), "still mapped after logging has ended");
    front.set_log_base(&log);
    front.set_features(FEATURES | LOG_ALL);
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
    crate::common::raw::until("the read is under way", || {
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

/// Queues of a SCSI device before those for requests: control and event.
const REQUESTS: u32 = 2;
/// Where the parts of a command are, from the ring's data on, each in a page of its own; the response comes before the data.
const RESPONSE: u64 = 4096;
const DATA_IN: u64 = 2 * RESPONSE;

/// A SCSI command with 512 bytes of data-in, or none, in three descriptors from 0 on.
fn command(ring: &Ring, cdb: &[u8], reads: bool) {
    let data = &ring.data;
    data.buf.fill(0xee);
    data.buf.write(0, &[0; 51]);
    data.buf.write(0, &address(0, 0));
    data.buf.write(19, cdb);
    ring.set_desc(0, data.guest.0, 51, NEXT, 1);
    let more = if reads { NEXT } else { 0 };
    ring.set_desc(1, data.guest.0 + RESPONSE, 108, WRITE | more, 2);
    ring.set_desc(2, data.guest.0 + DATA_IN, 512, WRITE, 0);
}

/// SCSI status and virtio response of the command.
fn end_of(ring: &Ring) -> [u8; 2] {
    let mut bytes = [0; 2];
    ring.data.buf.read(RESPONSE as usize + 10, &mut bytes);
    bytes
}

/// What a migration relies on while the link is down: commands that wait write nothing, also when the queue stops; and what they write when the
/// link is back is logged. `taken`: the server has taken the command out of the ring to look at it; `before`: it is logged before the link goes.
fn a_held_queue_with_a_log(port: Option<&str>, taken: bool, before: bool) {
    let server = Server::new(2);
    server.units(1, 16, |spec| spec);
    let link = |port, link| server.must(Request::PutAdapter(linked(server.dir.path(), port, link)));
    let down = LinkSpec::Down { hold_ms: 300_000 };
    link(Some("fcs0"), LinkSpec::Up);
    let features = VERSION_1 | PROTOCOL_FEATURES | INDIRECT;
    let front = Front::with_features(&linked(server.dir.path(), None, down).socket, features);
    front.share_memory();
    let control = front.start(0, 64);
    let ring = front.start(REQUESTS, 64);
    // POWER ON is told with the first one.
    for status in [2, 0] {
        command(&ring, &[0; 6], false);
        ring.offer(&[0]);
        ring.wait();
        assert_eq!(end_of(&ring), [status, 0]);
    }
    let log = log_file("log");
    let begin_log = || {
        front.set_log_base(&log);
        front.set_features(features | LOG_ALL);
        front.log_ring(&ring);
    };
    if before {
        begin_log();
    }
    link(port, down);
    command(&ring, &[0x28, 0, 0, 0, 0, 0, 0, 0, 1, 0], true);
    ring.offer(&[0]);
    if taken {
        // ABORT TASK of another one, for which the ring is looked through.
        control.data.buf.write(0, &[vec![0; 8], address(0, 0).to_vec(), vec![9; 8]].concat());
        control.set_desc(0, control.data.guest.0, 24, NEXT, 1);
        control.set_desc(1, control.data.guest.0 + RESPONSE, 1, WRITE, 0);
        control.offer(&[0]);
        control.wait();
        assert_eq!(server.count(QueueCounter::Pending), 1);
    }
    if !before {
        begin_log();
    }
    let data = ring.data.guest.0;
    let seen = || {
        let pages = [data + RESPONSE, data + DATA_IN, ring.used.guest.0];
        (ring.used_index(), pages.map(|page| logged(&log, page)))
    };
    // Of the used ring the flags are written, which spare kicks.
    let waits = || matches!(seen(), (2, [false, false, _]));
    std::thread::sleep(Duration::from_millis(20));
    assert!(waits(), "{:?}", seen());
    if !taken {
        // The machine goes elsewhere: the command is still in its ring, and there it is done.
        assert_eq!(front.stop(REQUESTS), 2, "the next one is the one that waits");
        assert!(waits(), "{:?}", seen());
    }
    // The client has fetched what was logged so far.
    log.write_all_at(&[0; 4096], 0).unwrap();
    link(Some("fcs0"), LinkSpec::Up);
    if !taken {
        assert!(front.state(code::SET_VRING_BASE, REQUESTS, 2));
        assert!(front.set_fd(code::SET_VRING_KICK, REQUESTS.into(), ring.kick.as_fd()));
    }
    ring.wait();
    let back = end_of(&ring);
    if port.is_none() && taken && back != [0, 0] {
        // The queue has stopped for its targets to come: what was taken of it is not kept, and the client sends it again. Its answer is logged.
        assert_eq!((back[1], seen()), (6, (3, [true, false, true])));
        return;
    }
    assert_eq!((back, seen()), ([0, 0], (3, [true; 3])));
    let mut first = [0xee; 512];
    ring.data.buf.read(DATA_IN as usize, &mut first);
    assert_eq!(first, [0; 512], "the block is read");
}

#[test]
fn commands_that_wait_for_their_link_write_nothing_and_are_logged_when_it_is_back() {
    for port in [Some("fcs0"), None] {
        for (taken, before) in [(false, false), (false, true), (true, false), (true, true)] {
            a_held_queue_with_a_log(port, taken, before);
        }
    }
}
