//! Queues move between channels under verified load: by hand, and by themselves as the load rises and falls.

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use crate::common::raw::GUARD;
use crate::common::{Server, load};
use memory::random::Random;
use partition::blk::{self, Queue, SlotPlan, Status};
use partition::load::{LoadOptions, Report};
use partition::session::{Session, SessionOptions, StartPlan};
use protocol::message::{AdapterSpec, Placement, Request};
use protocol::stats::QueueCounter;

fn verified(duration: Duration) -> LoadOptions {
    LoadOptions {
        queues: 4,
        threads: Some(2),
        depth: 16,
        read_percent: 50,
        verify: true,
        flush_every: Some(64),
        duration,
        ..LoadOptions::default()
    }
}

/// Changes the adapter again and again while a client verifies.
fn changed_under(server: &Server, socket: &Path, changes: &[AdapterSpec]) -> Report {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let report = load(socket, &verified(Duration::from_secs(2)));
            over.store(true, Ordering::Relaxed);
            report
        });
        while !over.load(Ordering::Relaxed) {
            for spec in changes {
                server.must(Request::PutAdapter(spec.clone()));
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        client.join().unwrap()
    })
}

#[test]
fn moved_queues_lose_nothing() {
    for delayed in [false, true] {
        let server = Server::new(3);
        let volume = server.file(64);
        server.must(Request::PutVolume(if delayed { server.slow(64) } else { volume }));
        let socket = server.put_adapter(|_| ());
        let with =
            |channels, placement| AdapterSpec { channels, placement, ..server.adapter("vhost0") };
        let changes = [
            with(1, Placement::Spread),
            with(3, Placement::Spread),
            with(2, Placement::Adaptive),
            with(0, Placement::Spread),
        ];
        let report = changed_under(&server, &socket, &changes);
        assert!(report.verify.unwrap().blocks_checked > 0);
        let moves = server.count(QueueCounter::Moves);
        assert!(moves >= 4, "{moves} moves");
        assert_eq!(server.settled().reason, None);
        assert_eq!(server.count(QueueCounter::Errors), 0);
        assert_eq!(server.count(QueueCounter::Active), 0);
    }
}

/// How many channels the client's queues are on.
fn used(server: &Server) -> usize {
    let mut channels = server.adapter_status().channel_of_queue;
    channels.sort_unstable();
    channels.dedup();
    channels.len()
}

/// How a client with two queues behaves.
#[derive(Clone, Copy, PartialEq)]
enum Pace {
    /// All slots of both queues, all the time.
    Full,
    /// A request now and then.
    Hardly,
}

/// One step of the client: what ended is judged, what may be is submitted.
fn step(queues: &mut [Queue], pace: Pace, random: &mut Random) {
    for queue in queues {
        while let Some(done) = queue.poll().unwrap() {
            assert_eq!(done.status, Status::Ok);
            queue.give_back(done.slot);
        }
        while (pace == Pace::Full || queue.busy() == 0)
            && let Some(slot) = queue.take()
        {
            let offset = random.below(128) * u64::from(BYTES);
            queue.submit(slot, blk::Request::Read { offset, bytes: BYTES }).unwrap();
        }
        queue.publish().unwrap();
    }
    std::thread::sleep(match pace {
        Pace::Full => Duration::from_micros(50),
        Pace::Hardly => Duration::from_millis(20),
    });
}

/// Large reads: the server copies, the client does next to nothing.
const BYTES: u32 = 256 << 10;

#[test]
fn adaptive_queues_spread_under_load_and_fold_when_it_has_gone() {
    let server = Server::new(2);
    server.must(Request::PutVolume(server.ram(32)));
    let socket = server.put_adapter(|spec| spec.placement = Placement::Adaptive);
    let mut session = Session::connect(&socket, &SessionOptions::default()).unwrap();
    let slots = SlotPlan { slots: 16, data_bytes: BYTES, data_segments: 1, indirect: false };
    let plan = StartPlan { queues: 2, queue_size: 64, threads: 1, slots };
    let mut queues = session.start(&plan).unwrap();
    assert_eq!(used(&server), 1, "they begin together");
    let mut random = Random::new(5);
    for (pace, channels) in [(Pace::Full, 2), (Pace::Hardly, 1), (Pace::Full, 2), (Pace::Hardly, 1)]
    {
        let end = Instant::now() + 3 * GUARD;
        while used(&server) != channels {
            (0..10).for_each(|_| step(&mut queues, pace, &mut random));
            assert!(
                Instant::now() < end,
                "not on {channels} channels: {:?}",
                server.stats().channels
            );
        }
    }
    assert!(server.count(QueueCounter::Moves) >= 4);
    session.stop().unwrap();
    assert_eq!(server.count(QueueCounter::Errors), 0);
    drop(session);
    server.settled();
    load(&socket, &verified(Duration::from_millis(300)));
}
