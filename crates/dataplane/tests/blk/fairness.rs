//! A busy client does not starve another one on the same channel.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::raw::{Front, NEXT, Ring, TABLE, WRITE, descriptor, until};
use crate::common::{Server, load, null};
use partition::load::{LoadOptions, WaitMode};
use protocol::message::{BlockSpec, LimitSpec, Request, VolumeSpec};
use protocol::stats::QueueCounter;

/// A client with many requests, all the time, until the other one has what it wants.
fn greedy(socket: &Path, over: &AtomicBool) {
    while !over.load(Ordering::Relaxed) {
        let options = LoadOptions {
            depth: 256,
            queue_size: Some(1024),
            duration: Duration::from_millis(300),
            wait: WaitMode::Poll,
            ..LoadOptions::default()
        };
        load(socket, &options);
    }
}

/// Requests of the greedy client while the modest one gets `wanted`, one at a time.
fn compete(volume: impl FnOnce(&Server) -> VolumeSpec, wanted: u64) -> u64 {
    let server = Server::new(1);
    server.must(Request::PutVolume(volume(&server)));
    let busy = server.put_adapter(|_| ());
    let modest = server.put_adapter(|spec| *spec = server.adapter("vhost1"));
    let over = AtomicBool::new(false);
    let received = || server.count_of("vhost0", QueueCounter::CommandsReceived);
    std::thread::scope(|scope| {
        let (socket, over) = (&busy, &over);
        scope.spawn(move || greedy(socket, over));
        until("the busy client is under way", || received() > 1000);
        let before = received();
        let options = LoadOptions {
            depth: 1,
            operations: Some(wanted),
            duration: Duration::from_secs(60),
            stuck_after: Duration::from_secs(10),
            ..LoadOptions::default()
        };
        let report = load(&modest, &options);
        let during = received() - before;
        over.store(true, Ordering::Relaxed);
        assert_eq!(report.operations, wanted, "not done within a minute");
        during
    })
}

#[test]
fn one_request_at_a_time_gets_through_beside_hundreds() {
    let wanted = 2000;
    let during = compete(|_| null(64), wanted);
    // A turn takes at most 32 of one queue, and the modest client needs a few turns for each of its own: to kick, to wake up. Without
    // turns there would be no bound at all.
    assert!(during < 4000 * wanted, "{during} against {wanted}");
}

/// On a disk that takes its time, the depth of one must not become the latency of the other.
#[test]
fn a_deep_queue_on_a_slow_disk_leaves_room_for_a_shallow_one() {
    let wanted = 30;
    let during = compete(|server| server.slow(64), wanted);
    // Both wait 1 to 30 ms for each request: 256 at once make at most some hundred times as many.
    assert!(during < 256 * 20 * wanted, "{during} against {wanted}");
}

/// Reads of many pieces need segment lists. Those of a client that is held back keep theirs for long.
#[test]
fn reads_in_many_pieces_get_through_beside_those_that_a_limit_holds_back() {
    let server = Server::new(1);
    let limit = Some(LimitSpec { read_iops: 1, ..LimitSpec::default() });
    server.must(Request::PutVolume(VolumeSpec { limit, ..server.ram(16) }));
    let slow = server.put_adapter(|_| ());
    server.must(Request::PutVolume(VolumeSpec { name: "disk1".into(), ..null(16) }));
    let quick = server.put_adapter(|spec| {
        *spec = server.adapter("vhost1");
        spec.device = BlockSpec::on("disk1").into();
    });
    let [slow, quick] = [slow, quick].map(|socket| {
        let front = Front::connect(&socket);
        front.share_memory();
        let ring = front.start(0, 256);
        (0..200).for_each(|head| in_pieces(&front, &ring, head));
        (front, ring)
    });
    slow.1.offer(&(0..200).collect::<Vec<u16>>());
    let throttled = || server.count_of("vhost0", QueueCounter::WaitThrottled);
    until("some are held back", || throttled() > 0);
    for head in 0..200 {
        assert_eq!(quick.1.status_after(head), 0);
    }
    // All at once, too.
    quick.1.offer(&(0..200).collect::<Vec<u16>>());
    quick.1.wait();
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
}

/// A read of three blocks into three places, by an indirect table.
fn in_pieces(front: &Front, ring: &Ring, head: u16) {
    let table = front.memory.alloc(5 * 16, 16).unwrap();
    ring.set_header(head, 0, 0);
    let data = |piece: u64| (ring.data.guest.0 + 1024 * piece, 512, WRITE | NEXT);
    let status = (ring.status_at(head), 1, WRITE);
    let pieces = [(ring.header_at(head), 16, NEXT), data(0), data(1), data(2), status];
    for (at, (addr, len, flags)) in pieces.into_iter().enumerate() {
        table.buf.write(16 * at, &descriptor(addr, len, flags, at as u16 + 1));
    }
    ring.set_desc(head, table.guest.0, 5 * 16, TABLE, 0);
}
