//! The client against qemu-storage-daemon: every request type, every way to wait, and failures that must be seen.

mod common;

use std::os::unix::fs::FileExt;
use std::time::Duration;

use common::StorageDaemon;
use partition::blk::{Done, Queue, Request, Slot, SlotPlan, Status};
use partition::config::feature;
use partition::load::{self, FailureKind, LoadError, LoadOptions, Order, Report, Stage, WaitMode};
use partition::session::{Session, SessionError, SessionOptions, StartPlan, protocol_feature};

fn run(daemon: &StorageDaemon, options: &LoadOptions) -> Report {
    load::run(&daemon.socket(), options, &mut |_| {}).expect("the run itself works")
}

fn short(operations: u64) -> LoadOptions {
    LoadOptions {
        operations: Some(operations),
        duration: Duration::from_secs(60),
        ..LoadOptions::default()
    }
}

fn plan(queues: u16, indirect: bool, data_segments: u16) -> StartPlan {
    let slots = SlotPlan { slots: 4, data_bytes: 8192, data_segments, indirect };
    StartPlan { queues, queue_size: 64, threads: 1, slots }
}

/// Submits one request and waits for it, polling.
fn one(queue: &mut Queue, slot: Slot, request: Request) -> Done {
    queue.submit(slot, request).expect("room in the ring");
    queue.publish().expect("kick");
    loop {
        if let Some(done) = queue.poll().expect("an honest server") {
            return done;
        }
        std::thread::yield_now();
    }
}

fn content(queue: &Queue, slot: Slot) -> Vec<u8> {
    let mut bytes = vec![0; queue.data(slot).len()];
    queue.data(slot).read(0, &mut bytes);
    bytes
}

#[test]
fn every_request_type_does_what_it_says() {
    let daemon = StorageDaemon::file(2, 16 << 20);
    for (indirect, segments) in [(false, 1), (false, 4), (true, 2)] {
        let mut session =
            Session::connect(&daemon.socket(), &SessionOptions::default()).expect("connect");
        let config = session.offer().config.clone();
        assert_eq!(config.capacity_bytes, 16 << 20);
        assert!(config.flush && config.discard.is_some() && config.write_zeroes.is_some());
        let mut queues = session.start(&plan(2, indirect, segments)).expect("start");
        let queue = &mut queues[1];
        let slot = queue.take().expect("free");
        queue.data(slot).fill(0xa5);
        let (offset, bytes) = (8192, 8192);
        assert_eq!(one(queue, slot, Request::Write { offset, bytes }).status, Status::Ok);
        assert_eq!(one(queue, slot, Request::Flush).status, Status::Ok);
        queue.data(slot).fill(0);
        let done = one(queue, slot, Request::Read { offset, bytes });
        assert_eq!((done.status, done.slot), (Status::Ok, slot));
        assert_eq!(content(queue, slot), [0xa5; 8192]);
        // A request smaller than the buffer, and its neighbours untouched.
        queue.data(slot).fill(0x11);
        assert_eq!(
            one(queue, slot, Request::Write { offset: 9216, bytes: 512 }).status,
            Status::Ok
        );
        let zeroes = Request::WriteZeroes { offset: 12288, bytes: 4096, unmap: true };
        assert_eq!(one(queue, slot, zeroes).status, Status::Ok);
        one(queue, slot, Request::Read { offset, bytes });
        let read = content(queue, slot);
        assert_eq!((read[1023], read[1024], read[1535], read[1536]), (0xa5, 0x11, 0x11, 0xa5));
        assert!(read[4096..].iter().all(|&byte| byte == 0) && read[4095] == 0xa5);
        assert_eq!(one(queue, slot, Request::Discard { offset, bytes: 8192 }).status, Status::Ok);
        assert_eq!(one(queue, slot, Request::GetId).status, Status::Ok);
        assert!(content(queue, slot).starts_with(b"vhost_user_blk"));
        let beyond = Request::Read { offset: 16 << 20, bytes };
        assert_eq!(one(queue, slot, beyond).status, Status::IoError);
        let index = queue.ring().avail_index();
        assert_eq!(session.stop().expect("stop"), [0, index]);
    }
}

#[test]
fn a_load_completes_every_request_in_both_ways_to_wait() {
    let daemon = StorageDaemon::null(2);
    for wait in [WaitMode::Poll, WaitMode::Sleep] {
        for threads in [None, Some(1)] {
            let options = LoadOptions {
                queues: 2,
                threads,
                wait,
                read_percent: 70,
                server_pid: Some(daemon.pid()),
                ..short(4001)
            };
            let report = run(&daemon, &options);
            assert!(report.passed(), "{:?}", report.failures);
            assert_eq!(report.operations, 4001);
            assert_eq!(report.latency.count, 4001);
            let [first, second] = &report.queues[..] else { panic!("two queues") };
            assert_eq!((first.reads + first.writes, second.reads + second.writes), (2001, 2000));
            assert!((2400..3200).contains(&report.read_latency.count), "{:?}", report.read_latency);
            assert!(report.latency.min_ns > 0 && report.latency.min_ns <= report.latency.p50_ns);
            assert!(report.iops > 0.0 && report.client.kicks > 0);
            assert!(report.server_cost.is_some_and(|cost| cost.cpu_ns > 0));
            // A server this quick may leave a sleeping client no time to sleep; a polling one never does.
            assert!(wait == WaitMode::Sleep || report.client.ios_per_wake_up.is_none());
        }
    }
}

#[test]
fn indirect_sequential_flushed_and_segmented_loads_work() {
    let daemon = StorageDaemon::null(1);
    let options = LoadOptions {
        indirect: true,
        data_segments: 8,
        block_bytes: 65536,
        order: Order::Sequential,
        read_percent: 0,
        flush_every: Some(10),
        ..short(1000)
    };
    let report = run(&daemon, &options);
    assert!(report.passed(), "{:?}", report.failures);
    assert!(report.queues[0].flushes >= 80, "{:?}", report.queues);
}

#[test]
fn a_timed_run_has_a_warm_up_and_reports_progress() {
    let daemon = StorageDaemon::null(1);
    let options = LoadOptions {
        warm_up: Duration::from_millis(300),
        duration: Duration::from_millis(700),
        wait: WaitMode::Poll,
        ..LoadOptions::default()
    };
    let mut stages = Vec::new();
    let report = load::run(&daemon.socket(), &options, &mut |progress| {
        stages.push((progress.stage, progress.operations));
    })
    .expect("run");
    assert!(report.passed(), "{:?}", report.failures);
    // How long it took is the machine's affair; that it is a measurement of its own is ours.
    assert!(report.seconds > 0.0 && report.operations > 0);
    assert!(stages.is_sorted_by_key(|&(_, operations)| operations), "{stages:?}");
    assert!(stages.iter().any(|&(stage, _)| stage == Stage::Measuring), "{stages:?}");
}

#[test]
fn verification_passes_on_an_honest_disk_and_reads_everything_back() {
    let daemon = StorageDaemon::file(2, 32 << 20);
    let options = LoadOptions {
        queues: 2,
        depth: 16,
        verify: true,
        read_percent: 50,
        block_bytes: 4096,
        ..short(30_000)
    };
    let report = run(&daemon, &options);
    assert!(report.passed(), "{:?}", report.failures);
    let verify = report.verify.expect("asked for");
    assert!(verify.blocks_read_back > 7000, "{verify:?}");
    assert!(verify.blocks_checked > verify.blocks_read_back && verify.blocks_corrupt == 0);
}

#[test]
fn verification_fails_when_the_image_is_corrupted_under_way() {
    let daemon = StorageDaemon::file(1, 1 << 20);
    let image = std::fs::OpenOptions::new().write(true).open(daemon.image()).expect("open");
    let options = LoadOptions {
        depth: 4,
        verify: true,
        read_percent: 100,
        duration: Duration::from_millis(900),
        ..LoadOptions::default()
    };
    // All blocks are written in the first moments, then only read: a byte changed at the first progress stays changed.
    let mut changed = false;
    let report = load::run(&daemon.socket(), &options, &mut |_| {
        if !std::mem::replace(&mut changed, true) {
            image.write_all_at(&[0xee], 77 * 4096 + 1000).expect("corrupt");
        }
    })
    .expect("run");
    assert!(changed && !report.passed());
    let corrupt = report.failures.iter().find(|f| f.kind == FailureKind::Corrupt).expect("seen");
    assert!(corrupt.message.contains("sector 617"), "{corrupt}");
    assert!(report.verify.expect("asked for").blocks_corrupt > 1);
}

#[test]
fn verification_fails_on_a_disk_that_forgets() {
    let daemon = StorageDaemon::null(1);
    let options =
        LoadOptions { verify: true, read_percent: 0, length: Some(1 << 20), ..short(2000) };
    let report = run(&daemon, &options);
    let verify = report.verify.as_ref().expect("asked for");
    assert_eq!(verify.blocks_corrupt, verify.blocks_read_back);
    assert_eq!(report.failure_count, verify.blocks_corrupt);
    assert!(report.failures[0].message.contains("no block of this run"), "{}", report.failures[0]);
}

#[test]
fn too_many_queues_are_refused_with_the_setting_that_mends_it() {
    let daemon = StorageDaemon::null(1);
    let options = LoadOptions { queues: 4, ..short(1) };
    let error = load::run(&daemon.socket(), &options, &mut |_| {}).expect_err("one queue only");
    assert_eq!(error.to_string(), "the server offers 1 queue, 4 asked: use --queues 1");
    let mut without_mq = options.clone();
    without_mq.session.mask_protocol = protocol_feature::MQ;
    let error = load::run(&daemon.socket(), &without_mq, &mut |_| {}).expect_err("no MQ");
    assert!(error.to_string().contains("protocol feature MQ"), "{error}");
}

#[test]
fn servers_that_offer_less_are_served() {
    let daemon = StorageDaemon::null(1);
    let masks = [
        (0, protocol_feature::MQ | protocol_feature::REPLY_ACK),
        (0, protocol_feature::CONFIGURE_MEM_SLOTS),
        (feature::EVENT_IDX, 0),
        (feature::INDIRECT_DESC | feature::MQ, protocol_feature::MQ),
    ];
    for (mask_features, mask_protocol) in masks {
        for wait in [WaitMode::Poll, WaitMode::Sleep] {
            let session =
                SessionOptions { mask_features, mask_protocol, ..SessionOptions::default() };
            let report = run(&daemon, &LoadOptions { session, wait, ..short(500) });
            assert!(report.passed(), "{mask_features:x} {mask_protocol:x}: {:?}", report.failures);
            assert_eq!(report.server.features_used & mask_features, 0);
        }
    }
}

#[test]
fn a_server_without_configuration_space_needs_the_size() {
    let daemon = StorageDaemon::null(1);
    let mut options = short(100);
    options.session.mask_protocol = protocol_feature::CONFIG;
    let error = load::run(&daemon.socket(), &options, &mut |_| {}).expect_err("no size");
    assert!(error.to_string().contains("--capacity"), "{error}");
    options.session.capacity_bytes = Some(1 << 30);
    assert!(run(&daemon, &options).passed());
}

#[test]
fn a_read_only_disk_refuses_writes_before_they_are_sent() {
    let daemon = StorageDaemon::read_only();
    assert!(run(&daemon, &short(100)).passed());
    let writes = LoadOptions { read_percent: 50, ..short(100) };
    let error = load::run(&daemon.socket(), &writes, &mut |_| {}).expect_err("read-only");
    assert!(matches!(error, LoadError::Options(ref text) if text.contains("read-only")), "{error}");
}

#[test]
fn a_server_that_dies_is_reported_not_waited_for() {
    for wait in [WaitMode::Poll, WaitMode::Sleep] {
        let mut daemon = StorageDaemon::null(1);
        let socket = daemon.socket();
        let options =
            LoadOptions { wait, duration: Duration::from_secs(60), ..LoadOptions::default() };
        let mut killed = false;
        let report = load::run(&socket, &options, &mut |_| {
            if !std::mem::replace(&mut killed, true) {
                daemon.kill();
            }
        })
        .expect("run");
        assert_eq!(report.failures.len(), 1, "{:?}", report.failures);
        assert_eq!(report.failures[0].kind, FailureKind::Server);
        assert!(report.seconds < 50.0);
    }
}

#[test]
fn a_socket_without_a_server_says_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("nobody");
    let error = Session::connect(&path, &SessionOptions::default()).err().expect("nobody there");
    assert!(matches!(error, SessionError::Connect { .. }), "{error}");
    assert!(error.to_string().contains("nobody"), "{error}");
}
