//! A server that dies under load and comes back, on a disk that is slow and completes out of order; and requests that get lost.

#[path = "common/server.rs"]
mod server;

use std::sync::Mutex;
use std::time::Duration;

use partition::load::{self, FailureKind, LoadOptions, Report, Stage, WaitMode};
use partition::session::protocol_feature;
use server::{Manners, SlowServer};

fn verifying(wait: WaitMode) -> LoadOptions {
    LoadOptions {
        queues: 2,
        depth: 24,
        read_percent: 50,
        wait,
        verify: true,
        duration: Duration::from_millis(2500),
        reconnect: Some(Duration::from_secs(20)),
        stuck_after: Duration::from_secs(3),
        ..LoadOptions::default()
    }
}

/// Runs a load and crashes the server at every second progress report, up to three times; how often it did.
fn run_with_crashes(options: &LoadOptions) -> (Report, usize) {
    let folder = tempfile::tempdir().expect("a folder");
    let manners = Manners { queues: 2, delay: Duration::from_millis(15), ..Manners::default() };
    let mut server = SlowServer::new(folder.path(), 8 << 20, manners);
    server.start();
    let socket = server.socket().to_owned();
    let server = Mutex::new(server);
    let (mut calls, mut crashes) = (0, 0);
    let report = load::run(&socket, options, &mut |progress| {
        calls += 1;
        let mut server = server.lock().expect("alone");
        if progress.stage == Stage::Reconnecting {
            server.start();
        } else if crashes < 3 && calls % 2 == 0 {
            crashes += 1;
            server.crash();
        }
    })
    .expect("the run itself works");
    (report, crashes)
}

#[test]
fn restarts_of_a_slow_server_lose_nothing() {
    for wait in [WaitMode::Sleep, WaitMode::Poll] {
        let (report, crashes) = run_with_crashes(&verifying(wait));
        assert!(report.passed(), "{:?}", report.failures);
        assert!(report.server.tracks_inflight);
        assert!(crashes > 0);
        assert_eq!(report.restarts.len(), crashes, "{:?}", report.restarts);
        assert!(report.restarts.iter().all(|restart| restart.pause_seconds > 0.0));
        assert!(report.latency.max_ns > 100_000_000, "the pause shows: {:?}", report.latency);
        let sleeps = wait == WaitMode::Sleep;
        assert_eq!(report.client.ios_per_wake_up.is_some(), sleeps, "{:?}", report.client);
        assert_eq!(report.client.interrupts > 0, sleeps);
        let verify = report.verify.expect("asked for");
        assert!(verify.blocks_checked > 500 && verify.blocks_corrupt == 0, "{verify:?}");
    }
}

/// The control: the same without the in-flight region loses requests, or gets some twice, and the run says so.
#[test]
fn without_the_in_flight_region_the_same_restarts_are_seen_to_lose() {
    let mut options = verifying(WaitMode::Sleep);
    options.session.mask_protocol = protocol_feature::INFLIGHT_SHMFD;
    options.session.timeout = Duration::from_secs(1);
    options.stuck_after = Duration::from_secs(1);
    options.reconnect = Some(Duration::from_secs(4));
    let (report, _) = run_with_crashes(&options);
    assert!(!report.server.tracks_inflight);
    assert!(!report.passed(), "{} restarts went unnoticed", report.restarts.len());
    let kinds = [FailureKind::Stuck, FailureKind::Ring, FailureKind::Corrupt, FailureKind::Server];
    assert!(kinds.contains(&report.failures[0].kind), "{:?}", report.failures);
}

#[test]
fn a_request_that_never_comes_back_is_reported_with_what_it_was() {
    for wait in [WaitMode::Sleep, WaitMode::Poll] {
        let folder = tempfile::tempdir().expect("a folder");
        let manners = Manners { queues: 1, swallow: Some(100), ..Manners::default() };
        let mut server = SlowServer::new(folder.path(), 8 << 20, manners);
        server.start();
        let mut options = LoadOptions {
            depth: 4,
            wait,
            duration: Duration::from_secs(60),
            stuck_after: Duration::from_millis(500),
            ..LoadOptions::default()
        };
        options.session.timeout = Duration::from_millis(500);
        let report = load::run(server.socket(), &options, &mut |_| {}).expect("run");
        let lost = report.failures.iter().find(|f| f.kind == FailureKind::Stuck).expect("seen");
        assert!(lost.message.starts_with("lost: read of 4096 bytes at "), "{lost}");
        // A server with a request in flight cannot answer GET_VRING_BASE, and that is said too.
        let stop = report.failures.iter().find(|f| f.kind == FailureKind::Server).expect("seen");
        assert!(stop.message.contains("stopping the rings: no answer"), "{stop}");
    }
}

#[test]
fn a_server_that_dies_after_the_last_answer_is_no_failure_for_who_waits_for_successors() {
    for reconnect in [Some(Duration::from_secs(5)), None] {
        let folder = tempfile::tempdir().expect("a folder");
        let manners = Manners { queues: 1, hangs_up_at_the_end: true, ..Manners::default() };
        let mut server = SlowServer::new(folder.path(), 8 << 20, manners);
        server.start();
        let options = LoadOptions {
            depth: 4,
            duration: Duration::from_millis(200),
            reconnect,
            ..LoadOptions::default()
        };
        let report = load::run(server.socket(), &options, &mut |_| {}).expect("run");
        assert_eq!(report.failures.is_empty(), reconnect.is_some(), "{:?}", report.failures);
    }
}

#[test]
fn a_server_that_does_not_come_back_ends_the_run() {
    let folder = tempfile::tempdir().expect("a folder");
    let manners = Manners { queues: 1, ..Manners::default() };
    let mut server = SlowServer::new(folder.path(), 8 << 20, manners);
    server.start();
    let socket = server.socket().to_owned();
    let options = LoadOptions {
        duration: Duration::from_secs(60),
        reconnect: Some(Duration::from_millis(500)),
        ..LoadOptions::default()
    };
    let mut reconnecting = false;
    let report = load::run(&socket, &options, &mut |progress| {
        reconnecting |= progress.stage == Stage::Reconnecting;
        server.crash();
    })
    .expect("run");
    assert!(reconnecting && report.restarts.is_empty());
    assert_eq!(report.failures.len(), 1, "{:?}", report.failures);
    assert!(report.failures[0].message.contains("no server again after"), "{}", report.failures[0]);
}
