//! The process dies under load and another one takes over, on a disk that is slow inside the kernel and completes out of order: the client loses a moment
//! and nothing else. The control, without the in-flight region, has to lose something.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::common::SlowDisk;
use crate::common::process::{self, Process};
use crate::common::raw::until;
use partition::load::{FailureKind, LoadOptions, Report, Stage, run};
use protocol::message::{AdapterSpec, BlockSpec, Placement, Request, SocketRole};

fn setup(
    folder: &Path,
    disk: &SlowDisk,
    socket_role: SocketRole,
    withhold: &[&str],
) -> Vec<Request> {
    let adapter = AdapterSpec {
        socket_role,
        queues: 4,
        queue_size: 256,
        placement: Placement::Spread,
        withhold: withhold.iter().map(|name| (*name).to_owned()).collect(),
        ..AdapterSpec::new("vhost0", folder.join("vhost0.sock"), BlockSpec::on("v"))
    };
    vec![Request::PutVolume(disk.volume.clone()), Request::PutAdapter(adapter)]
}

/// A verified load over as many deaths as are asked for; how many there were.
fn over_deaths(options: &LoadOptions, deaths: usize, withhold: &[&str]) -> (Report, usize) {
    let folder = tempfile::tempdir().unwrap();
    let listens = options.session.listen.is_some();
    let role = if listens { SocketRole::Client } else { SocketRole::Server };
    let disk = SlowDisk::new(folder.path(), 32);
    let setup = setup(folder.path(), &disk, role, withhold);
    process::over_deaths(folder.path(), &setup, "vhost0.sock", options, deaths)
}

fn verifying() -> LoadOptions {
    LoadOptions {
        queues: 4,
        threads: Some(2),
        depth: 24,
        read_percent: 40,
        verify: true,
        flush_every: Some(50),
        duration: Duration::from_secs(5),
        reconnect: Some(Duration::from_secs(60)),
        stuck_after: Duration::from_secs(10),
        ..LoadOptions::default()
    }
}

#[test]
fn killed_again_and_again_nothing_is_lost() {
    let (report, died) = over_deaths(&verifying(), 5, &[]);
    assert!(report.passed(), "{:?}", report.failures);
    assert!(report.server.tracks_inflight);
    assert!(died >= 2, "{died} deaths");
    assert_eq!(report.restarts.len(), died);
    let verify = report.verify.unwrap();
    assert!(verify.blocks_checked > 500 && verify.blocks_corrupt == 0, "{verify:?}");
}

#[test]
fn a_client_that_listens_loses_nothing_either() {
    let mut options = LoadOptions { duration: Duration::from_secs(3), ..verifying() };
    options.session.listen = Some(Duration::from_secs(60));
    let (report, died) = over_deaths(&options, 2, &[]);
    assert!(report.passed(), "{:?}", report.failures);
    assert!(died >= 1 && report.restarts.len() == died, "{died} deaths, {:?}", report.restarts);
    assert!(report.verify.unwrap().blocks_checked > 200);
}

/// It serves the client that it has; for another one it says what is missing, and calls it as soon as there is a control plane again.
#[test]
fn who_connects_goes_on_connecting_when_a_control_plane_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let disk = SlowDisk::new(folder.path(), 32);
    let setup = setup(folder.path(), &disk, SocketRole::Client, &[]);
    let socket = folder.path().join("vhost0.sock");
    let mut options = LoadOptions { duration: Duration::from_millis(300), ..verifying() };
    options.session.listen = Some(Duration::from_secs(60));
    let mut process = Process::start(folder.path(), &setup);
    let served = |report: Report| assert!(report.passed(), "{:?}", report.failures);
    let mut abandoned = false;
    served(
        run(&socket, &options, &mut |progress| {
            if progress.stage == Stage::Measuring && !abandoned {
                process.abandon();
                abandoned = true;
            }
        })
        .unwrap(),
    );
    assert!(abandoned);
    for _ in 0..2 {
        std::thread::scope(|scope| {
            let client = scope.spawn(|| run(&socket, &options, &mut |_| ()).unwrap());
            until("it says what is missing", || {
                let reason = process.status().adapters[0].reason.clone();
                reason.is_some_and(|reason| reason.contains("start `trunkline serve`"))
            });
            assert!(!client.is_finished());
            process.adopt(&Arc::default());
            served(client.join().unwrap());
        });
        process.abandon();
    }
    process.shut_down();
}

#[test]
fn without_the_in_flight_region_the_same_deaths_lose_requests() {
    let mut options = LoadOptions { stuck_after: Duration::from_secs(2), ..verifying() };
    options.session.timeout = Duration::from_secs(5);
    let (report, died) = over_deaths(&options, 5, &["inflight"]);
    assert!(!report.server.tracks_inflight);
    assert!(died >= 1);
    assert!(!report.passed(), "{died} deaths went unnoticed");
    let kinds = [FailureKind::Stuck, FailureKind::Ring, FailureKind::Corrupt, FailureKind::Server];
    assert!(kinds.contains(&report.failures[0].kind), "{:?}", report.failures);
}
