//! The data plane dies under SCSI load and under reservations: nothing is lost, and a fence that was to survive does.

use std::path::Path;
use std::time::Duration;

use crate::common::SlowDisk;
use crate::common::process::{self, Process};
use crate::common::scsi::{
    Client, PATIENCE, WRITE_EXCLUSIVE, action, adapter, conflicts, file, on, target, unit,
};
use partition::load::{LoadOptions, Report};
use partition::scsi::{Command, cdb, response};
use protocol::message::{DelaySpec, Request, UnitSpec, VolumeSpec};

const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];

/// A disk that takes so many microseconds, in front of the kernel.
fn setup(folder: &Path, adapters: u64, delay: (u64, u64)) -> Vec<Request> {
    let delay = DelaySpec { min_us: delay.0, max_us: delay.1, seed: 11, ..Default::default() };
    setup_on(folder, adapters, VolumeSpec { delay: Some(delay), ..file(folder, "v0", 32) })
}

fn setup_on(folder: &Path, adapters: u64, volume: VolumeSpec) -> Vec<Request> {
    let volume = VolumeSpec { name: "v0".into(), ..volume };
    let unit = UnitSpec { keep: Some(folder.join("lu0.pr")), ..unit("lu0", "v0") };
    let mut requests = vec![Request::PutVolume(volume), Request::PutUnit(unit)];
    let targets = || vec![target(0, &[(0, "lu0")])];
    requests.extend(
        (0..adapters).map(|number| Request::PutAdapter(adapter(folder, number, targets()))),
    );
    requests
}

/// A verified load over deaths; how many there were.
fn over_deaths(options: &LoadOptions, deaths: usize) -> (Report, usize) {
    let folder = tempfile::tempdir().unwrap();
    let disk = SlowDisk::new(folder.path(), 32);
    let setup = setup_on(folder.path(), 1, disk.volume.clone());
    process::over_deaths(folder.path(), &setup, "vfchost0.sock", options, deaths)
}

#[test]
fn killed_again_and_again_under_scsi_load_nothing_is_lost() {
    let options = LoadOptions {
        queues: 4,
        threads: Some(2),
        depth: 24,
        read_percent: 40,
        verify: true,
        flush_every: Some(50),
        duration: Duration::from_secs(5),
        reconnect: Some(PATIENCE),
        stuck_after: Duration::from_secs(10),
        ..LoadOptions::default()
    };
    let (report, died) = over_deaths(&on(0, 0, options), 5);
    assert!(report.passed(), "{:?}", report.failures);
    assert!(report.server.tracks_inflight);
    assert!(died >= 2 && report.restarts.len() == died, "{died} deaths");
    let verify = report.verify.unwrap();
    assert!(verify.blocks_checked > 500 && verify.blocks_corrupt == 0, "{verify:?}");
    assert!(report.client.sent_again > 0, "POWER ON was never told");
}

/// Two clients of a data plane that is killed: `aptpl` says whether the fence is there afterwards.
fn fence_after_a_death(aptpl: bool) {
    let folder = tempfile::tempdir().unwrap();
    let setup = setup(folder.path(), 2, (0, 0));
    let process = Process::start(folder.path(), &setup);
    let sockets = [0, 1].map(|number| folder.path().join(format!("vfchost{number}.sock")));
    let [mut holder, mut other] = sockets.each_ref().map(|socket| Client::connect(socket));
    holder.register(LUN, 0x11, aptpl);
    assert!(holder.reserve(LUN, action::RESERVE, WRITE_EXCLUSIVE, (0x11, 0), aptpl).good());
    assert!(conflicts(&other.write(LUN, 0, 2)));
    process.kill();
    let mut process = Process::start(folder.path(), &setup);
    other.session.reconnect(PATIENCE).unwrap();
    let reply = other.write(LUN, 0, 2);
    assert_eq!(conflicts(&reply), aptpl, "{reply:?}");
    let unit = process.status().units.remove(0);
    assert_eq!((unit.registrations.len(), unit.reservation.is_some()), (usize::from(aptpl), aptpl));
    holder.session.reconnect(PATIENCE).unwrap();
    assert!(holder.write(LUN, 0, 1).good());
    // And the holder can let go, so that nothing is kept.
    if aptpl {
        assert!(holder.reserve(LUN, action::RELEASE, WRITE_EXCLUSIVE, (0x11, 0), true).good());
        assert!(other.write(LUN, 0, 2).good());
        holder.register(LUN, 0, true);
        process.kill();
        let mut process = Process::start(folder.path(), &setup);
        assert!(process.status().units[0].registrations.is_empty());
        process.shut_down();
    } else {
        process.shut_down();
    }
}

#[test]
fn a_fence_with_aptpl_survives_the_death_of_the_data_plane() {
    fence_after_a_death(true);
}

#[test]
fn a_fence_without_aptpl_ends_with_the_data_plane() {
    fence_after_a_death(false);
}

/// What must not happen twice does not; a write may, and is done again.
#[test]
fn what_must_not_be_done_twice_is_answered_with_a_reset() {
    let folder = tempfile::tempdir().unwrap();
    // Slower than the test, so that everything is in flight when the data plane dies.
    let slow = setup(folder.path(), 1, (20_000_000, 30_000_000));
    let quick = setup(folder.path(), 1, (0, 0));
    let process = Process::start(folder.path(), &slow);
    let mut client = Client::connect(&folder.path().join("vfchost0.sock"));
    client.attentions(LUN);
    let queue = &mut client.requests[1];
    let (compare, write) = (cdb::compare_and_write(0, 1), cdb::Transfer::new(true, 8, 1));
    let slots: Vec<_> = [(&compare[..], 1024), (write.cdb(), 512)]
        .into_iter()
        .zip(1..)
        .map(|((cdb, data_out), tag)| {
            let slot = queue.take().unwrap();
            let half = if data_out == 1024 { [0; 512] } else { [7; 512] };
            queue.data(slot).write(0, &half);
            queue.data(slot).write(512, &[9; 512]);
            queue.submit(slot, &Command { lun: LUN, tag, cdb, data_out, data_in: 0 }).unwrap();
            slot
        })
        .collect();
    queue.publish().unwrap();
    // They are taken when another queue's commands have been answered; nothing else can be seen of them.
    std::thread::sleep(Duration::from_millis(300));
    process.kill();
    let process = Process::start(folder.path(), &quick);
    client.session.reconnect(PATIENCE).unwrap();
    let mut ends = vec![None; 2];
    let queue = &mut client.requests[1];
    crate::common::raw::until("both have ended", || {
        while let Some(slot) = queue.poll().unwrap() {
            let index = slots.iter().position(|each| *each == slot).unwrap();
            ends[index] = Some(queue.reply(slot));
            queue.give_back(slot);
        }
        ends.iter().all(Option::is_some)
    });
    let compare = ends[0].clone().unwrap();
    assert_eq!(compare.response, response::RESET, "COMPARE AND WRITE: {compare:?}");
    assert_eq!(client.read(LUN, 0), [0; 512], "it was neither done before nor after");
    let write = ends[1].clone().unwrap();
    let attention = matches!(write.sense_code(), Some((6, _)));
    assert!(write.good() || attention, "{write:?}");
    process.shut_down();
}
