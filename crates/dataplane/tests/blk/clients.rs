//! Clients that behave, on every kind of volume.

use std::os::fd::AsFd;
use std::time::Duration;

use crate::common::raw::{Front, code, eventfd, words};
use crate::common::{Server, load, null, short_load, slow};
use partition::load::{LoadOptions, WaitMode};
use protocol::message::{
    BlockSpec, DeviceSpec, FailureCode, LimitSpec, Reply, Request, VISITS_MAX, VolumeSpec,
};
use protocol::stats::{Latency, QueueCounter};
use vring::InflightRegion;

#[test]
fn a_file_holds_what_was_written_through_several_queues_and_channels() {
    let server = Server::new(2);
    server.must(Request::PutVolume(server.file(64)));
    let socket = server.put_adapter(|_| ());
    let report = load(&socket, &LoadOptions { queues: 4, depth: 16, ..short_load() });
    assert!(report.verify.unwrap().blocks_read_back > 0);
    let stats = server.stats();
    assert_eq!(stats.queues.len(), 4, "one set of counters for each queue");
    for queue in &stats.queues {
        assert!(queue.get(QueueCounter::Reads) > 0 && queue.get(QueueCounter::Writes) > 0);
        assert_eq!(queue.get(QueueCounter::Active), 0, "nothing is left");
        assert!(queue.get(QueueCounter::ActiveMax) >= 1);
        assert!(queue.latency(Latency::Device).count() > 0);
        assert_eq!(queue.channel, u32::from(queue.queue) % 2);
    }
    assert_eq!(server.settled().reason, None);
}

#[test]
fn ram_holds_what_was_written_with_long_chains_and_indirect_tables() {
    let server = Server::new(1);
    server.must(Request::PutVolume(server.ram(64)));
    let socket = server.put_adapter(|_| ());
    for (indirect, data_segments) in [(false, 1), (true, 1), (false, 2), (true, 254)] {
        let options = LoadOptions {
            block_bytes: 254 << 9,
            depth: 4,
            indirect,
            data_segments,
            ..short_load()
        };
        load(&socket, &options);
    }
    assert_eq!(server.count(QueueCounter::BadChains), 0);
}

#[test]
fn a_slow_disk_that_completes_out_of_order_loses_nothing() {
    let server = Server::new(2);
    server.must(Request::PutVolume(slow(server.file(32))));
    let socket = server.put_adapter(|_| ());
    let options =
        LoadOptions { queues: 2, depth: 32, duration: Duration::from_secs(2), ..short_load() };
    load(&socket, &options);
    assert!(server.count(QueueCounter::WaitDelay) > 0);
    assert_eq!(server.count(QueueCounter::Pending), 0);
}

#[test]
fn every_wait_mode_of_both_sides_works() {
    for server_wait in [
        protocol::message::WaitMode::Poll,
        protocol::message::WaitMode::Adaptive,
        protocol::message::WaitMode::Interrupt,
    ] {
        for wait in [WaitMode::Poll, WaitMode::Sleep] {
            let server = Server::new(1);
            server.must(Request::PutVolume(null(64)));
            let socket = server.put_adapter(|spec| spec.wait = server_wait);
            for depth in [1, 32] {
                let duration = Duration::from_millis(200);
                let options = LoadOptions { wait, depth, duration, ..LoadOptions::default() };
                let report = load(&socket, &options);
                assert!(report.operations > 0, "{server_wait:?} {wait:?} {depth}");
            }
        }
    }
}

#[test]
fn a_limit_holds_and_can_be_changed_under_load() {
    let server = Server::new(1);
    let limited = |iops| {
        let limit = LimitSpec { iops, iops_burst: 10, ..LimitSpec::default() };
        VolumeSpec { limit: Some(limit), ..server.ram(16) }
    };
    server.must(Request::PutVolume(limited(500)));
    let socket = server.put_adapter(|_| ());
    let options = LoadOptions { duration: Duration::from_secs(1), ..LoadOptions::default() };
    let report = load(&socket, &options);
    assert!(report.operations <= 700, "{} of 500 a second", report.operations);
    assert!(server.count(QueueCounter::WaitThrottled) > 0);

    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            load(&socket, &LoadOptions { verify: true, read_percent: 50, ..options.clone() })
        });
        std::thread::sleep(Duration::from_millis(300));
        server.must(Request::PutVolume(limited(1_000_000)));
        assert!(client.join().unwrap().operations > 2000, "the new limit is in force at once");
    });
}

#[test]
fn what_is_in_use_stays() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(64)));
    server.put_adapter(|_| ());
    let refused = |request| match server.ask(request) {
        Reply::Error(failure) => failure.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(
        refused(Request::RemoveVolume { name: "v".into(), forget: false }),
        FailureCode::InUse
    );
    assert_eq!(
        refused(Request::PutVolume(VolumeSpec { block_size: 4096, ..null(64) })),
        FailureCode::InUse
    );
    assert_eq!(
        refused(Request::RemoveVolume { name: "w".into(), forget: false }),
        FailureCode::NotFound
    );
    assert_eq!(refused(Request::Hello { version: 0, minor: 0 }), FailureCode::Version);
    let mut elsewhere = server.adapter("vhost1");
    elsewhere.device = DeviceSpec::Block(BlockSpec::on("w"));
    assert_eq!(refused(Request::PutAdapter(elsewhere)), FailureCode::NotFound);
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    server.must(Request::RemoveVolume { name: "v".into(), forget: false });
    assert!(!server.path("vhost0.sock").exists());
}

/// As QEMU does: it speaks of all queues of its device, and the driver starts some of them.
#[test]
fn queues_that_the_client_has_are_told_apart_from_those_that_it_uses() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(8)));
    let socket = server.put_adapter(|_| ());
    let numbers = || {
        let status = server.adapter_status();
        (status.client_num_io_queues, status.client_queues)
    };
    assert_eq!(numbers(), (0, 0));
    let front = Front::connect(&socket);
    front.share_memory();
    for index in 0..6 {
        assert!(front.set_fd(code::SET_VRING_CALL, index, eventfd().as_fd()));
    }
    assert_eq!(numbers(), (6, 0), "before its driver begins");
    let rings = [front.start(0, 64), front.start(1, 64)];
    assert_eq!(numbers(), (6, 2));
    rings.iter().for_each(|ring| ring.works());
    front.stop(1);
    assert_eq!(numbers(), (6, 1));
    // Another driver: the device has as many queues as before.
    assert!(front.accepted(code::RESET_DEVICE, &[], &[]));
    front.start(0, 64);
    assert_eq!(numbers(), (6, 1));
    drop(front);
    let status = server.settled();
    assert_eq!((status.client_num_io_queues, status.client_queues), (0, 0));
}

#[test]
fn who_acknowledges_an_in_flight_region_and_has_none_keeps_none() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(8)));
    let socket = server.put_adapter(|_| ());
    let keeps = || server.adapter_status().features.iter().any(|feature| feature == "inflight");
    let (front, ring) = Front::ready(&socket);
    ring.works();
    assert!(!keeps());
    let (file, _) = InflightRegion::create(8, 64).unwrap();
    let body = words(&[InflightRegion::bytes(8, 64), 0, 64 << 16 | 8]);
    assert!(front.accepted(code::SET_INFLIGHT_FD, &body, &[file.as_fd()]));
    assert!(keeps());
    ring.works();
    drop(front);
    server.settled();
    // The next client is another one.
    let (_front, _ring) = Front::ready(&socket);
    assert!(!keeps());
}

#[test]
fn the_last_clients_are_remembered_with_their_times() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(8)));
    let socket = server.put_adapter(|_| ());
    let before = protocol::now_ms();
    for _ in 0..VISITS_MAX + 1 {
        drop(Front::connect(&socket));
        server.settled();
    }
    let _there = Front::connect(&socket);
    let visits = server.adapter_status().visits;
    let numbers: Vec<u64> = visits.iter().map(|visit| visit.connection).collect();
    let last = VISITS_MAX as u64 + 2;
    assert_eq!(numbers, (last - VISITS_MAX as u64 + 1..=last).collect::<Vec<_>>());
    let mut known = before;
    for visit in &visits {
        let left = visit.left_at_ms.unwrap_or_else(protocol::now_ms);
        assert!(known <= visit.came_at_ms && visit.came_at_ms <= left, "{visits:?}");
        assert_eq!(visit.left_at_ms.is_none(), visit.connection == last);
        assert_eq!(visit.client.unwrap().pid, std::process::id());
        assert_eq!(visit.reason, None);
        known = left;
    }
}
