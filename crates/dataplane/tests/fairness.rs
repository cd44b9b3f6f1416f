//! A busy client does not starve another one on the same channel.

mod common;

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use common::{Server, load, null, slow};
use partition::load::{LoadOptions, WaitMode};
use protocol::message::{Request, VolumeSpec};
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
fn compete(volume: VolumeSpec, wanted: u64) -> u64 {
    let server = Server::new(1);
    server.must(Request::PutVolume(volume));
    let busy = server.put_adapter(|_| ());
    let modest = server.put_adapter(|spec| *spec = server.adapter("vhost1"));
    let over = AtomicBool::new(false);
    let received = || server.count_of("vhost0", QueueCounter::CommandsReceived);
    std::thread::scope(|scope| {
        let (socket, over) = (&busy, &over);
        scope.spawn(move || greedy(socket, over));
        common::raw::until("the busy client is under way", || received() > 1000);
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
    let during = compete(null(64), wanted);
    // A turn takes at most 32 of one queue, and the modest client needs a few turns for each of its own: to kick, to wake up. Without
    // turns there would be no bound at all.
    assert!(during < 4000 * wanted, "{during} against {wanted}");
}

/// On a disk that takes its time, the depth of one must not become the latency of the other.
#[test]
fn a_deep_queue_on_a_slow_disk_leaves_room_for_a_shallow_one() {
    let server = Server::new(1);
    let volume = slow(server.file(64));
    drop(server);
    let folder = tempfile::tempdir().unwrap();
    let mut volume = volume;
    if let protocol::message::VolumeKind::File(file) = &mut volume.kind {
        file.path = folder.path().join("disk");
    }
    let wanted = 30;
    let during = compete(volume, wanted);
    // Both wait 1 to 30 ms for each request: 256 at once make at most some hundred times as many.
    assert!(during < 256 * 20 * wanted, "{during} against {wanted}");
}
