//! Disks that misbehave below the kernel, under a running data plane.

use std::path::Path;
use std::time::{Duration, Instant};

use crate::common::Server;
use crate::common::process::{self, Process};
use crate::common::raw::{Front, GUARD, Ring};
use crate::common::scsi::{Client, target, unit};
use partition::load::LoadOptions;
use partition::scsi::address;
use protocol::message::{
    AdapterSpec, BlockSpec, CacheMode, Failure, FailureCode, Reply, Request, Status,
};
use protocol::stats::QueueCounter;
use spec::{FileSpec, LimitSpec, LuSpec, PoolSpec, VolumeSpec};
use testkit::{Disk, Kind, Loop, Options, is_root};

const MIB: u64 = 1 << 20;

fn setup(folder: &Path, device: &Loop, read_only: bool) -> Vec<Request> {
    let file = FileSpec::new(device.path());
    let volume = VolumeSpec { read_only, ..VolumeSpec::new("v", file) };
    let disk = BlockSpec::on("v");
    let adapter =
        AdapterSpec { queues: 2, ..AdapterSpec::new("vhost0", folder.join("vhost0.sock"), disk) };
    vec![Request::PutVolume(volume), Request::PutAdapter(adapter)]
}

#[test]
fn a_read_only_disk_is_served_again_when_the_last_read_of_a_dead_process_has_ended() {
    if !is_root("reads in the kernel at the death of a data plane") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(16 * MIB);
    let device = Loop::direct(&disk.path(), 512);
    let setup = setup(folder.path(), &device, true);
    let first = Process::start(folder.path(), &setup);
    let (_front, ring) = Front::ready(&folder.path().join("vhost0.sock"));
    disk.hold_from(Kind::Read, 12 * MIB);
    ring.read(0, 12 * MIB / 512);
    ring.offer(&[0]);
    disk.wait_held(Kind::Read, 1);
    first.kill();
    std::thread::scope(|scope| {
        let second = scope.spawn(|| Process::start(folder.path(), &setup));
        // Time to do it wrong.
        std::thread::sleep(Duration::from_millis(700));
        assert!(!second.is_finished(), "its read can still land");
        disk.release(Kind::Read);
        second.join().unwrap().shut_down();
    });
}

#[test]
fn killed_with_reads_and_writes_in_the_kernel_nothing_is_lost() {
    if !is_root("a disk that is slow below the kernel, under a data plane that dies") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(32 * MIB);
    let device = Loop::direct(&disk.path(), 512);
    disk.slow(Duration::from_millis(1), Duration::from_millis(20));
    let options = LoadOptions {
        queues: 2,
        depth: 16,
        read_percent: 40,
        verify: true,
        flush_every: Some(50),
        duration: Duration::from_secs(4),
        reconnect: Some(Duration::from_secs(60)),
        stuck_after: Duration::from_secs(20),
        ..LoadOptions::default()
    };
    let setup = setup(folder.path(), &device, false);
    let (report, died) = process::over_deaths(folder.path(), &setup, "vhost0.sock", &options, 4);
    assert!(report.passed(), "{:?}", report.failures);
    assert!(died >= 1, "{died} deaths");
}

#[test]
fn a_file_that_is_cut_under_writes_never_grows_again() {
    if !is_root("writes in the kernel while a file is cut") {
        return;
    }
    let disk = Disk::new(8 * MIB);
    let server = Server::new(1);
    let file = FileSpec::new(disk.path());
    server.must(Request::PutVolume(VolumeSpec::new("v", file)));
    let socket = server.put_adapter(|_| ());
    let (_front, ring) = Front::ready(&socket);
    disk.hold_from(Kind::Write, 4 * MIB);
    let heads: Vec<u16> = (0..8).map(|head| head * 4).collect();
    for head in &heads {
        let sector = 7 * MIB / 512 + u64::from(*head) * 8;
        ring.request(*head, 1, sector, (ring.data.guest.0, 4096, 0));
    }
    ring.offer(&heads);
    disk.wait_held(Kind::Write, 1);
    let cut = Request::ResizeVolume { name: "v".into(), bytes: 4 * MIB, shrink: true };
    std::thread::scope(|scope| {
        let resize = scope.spawn(|| server.must(cut));
        // Time to do it wrong.
        let enough = Instant::now() + Duration::from_millis(200);
        while disk.bytes() != 4 * MIB && Instant::now() < enough {
            std::thread::yield_now();
        }
        disk.release(Kind::Write);
        resize.join().unwrap();
    });
    ring.wait();
    assert_eq!(disk.bytes(), 4 * MIB);
    ring.works();
    // As after a restart: with the size that is stored for it.
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    server.must(Request::RemoveVolume { name: "v".into(), forget: false });
    let stored =
        VolumeSpec { bytes: Some(4 * MIB), ..VolumeSpec::new("v", FileSpec::new(disk.path())) };
    server.must(Request::PutVolume(stored));
}

/// Cut and grown again, by processes that die before, during and after: nothing from before the cut is in the new part.
#[test]
fn what_was_cut_off_does_not_come_back_over_deaths() {
    if !is_root("writes in the kernel at the death of a data plane") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(8 * MIB);
    disk.fill(4 * MIB, &[0xaa; 4096]);
    let setup = |bytes| {
        let file = FileSpec::new(disk.path());
        let volume = VolumeSpec { bytes: Some(bytes), ..VolumeSpec::new("v", file) };
        let spec =
            AdapterSpec::new("vhost0", folder.path().join("vhost0.sock"), BlockSpec::on("v"));
        vec![Request::PutVolume(volume), Request::PutAdapter(spec)]
    };
    let resize = |bytes| Request::ResizeVolume { name: "v".into(), bytes, shrink: true };
    let mut process = Process::start(folder.path(), &setup(8 * MIB));
    let (_front, ring) = Front::ready(&folder.path().join("vhost0.sock"));
    disk.hold_from(Kind::Write, 4 * MIB);
    ring.request(0, 1, 7 * MIB / 512, (ring.data.guest.0, 4096, 0));
    ring.data.buf.write(0, &[0xbb; 4096]);
    ring.offer(&[0]);
    disk.wait_held(Kind::Write, 1);
    process.kill();
    // Its write lands before the next one has the file, and so before the cut.
    process = std::thread::scope(|scope| {
        let next = scope.spawn(|| Process::start(folder.path(), &setup(8 * MIB)));
        // Time to do it wrong.
        std::thread::sleep(Duration::from_millis(300));
        assert!(!next.is_finished(), "a write of the dead can still land");
        disk.release(Kind::Write);
        next.join().unwrap()
    });
    assert_eq!(disk.content(7 * MIB, 4096), [0xbb; 4096]);
    process.must(&resize(4 * MIB));
    process.kill();
    process = Process::start(folder.path(), &setup(4 * MIB));
    assert_eq!(disk.bytes(), 4 * MIB);
    process.must(&resize(8 * MIB));
    process.kill();
    Process::start(folder.path(), &setup(8 * MIB)).shut_down();
    let rest = disk.content(4 * MIB, 4 << 20);
    assert!(rest.iter().all(|byte| *byte == 0), "what was cut off is there again");
}

#[test]
fn a_request_of_many_rounds_is_paid_for_once() {
    let server = Server::new(1);
    // As much as it is paid for: eight MiB of zeroes.
    let limit = LimitSpec { iops: 1, iops_burst: 8, ..LimitSpec::default() };
    server.must(Request::PutVolume(VolumeSpec { limit: Some(limit), ..server.ram(16) }));
    let socket = server.put_adapter(|_| ());
    let (_front, ring) = Front::ready(&socket);
    // Zeroes without unmapping, 8 MiB: a round for each.
    let (sector, sectors) = (0_u64, (8 * MIB / 512) as u32);
    ring.data.buf.write(0, &sector.to_le_bytes());
    ring.data.buf.write(8, &sectors.to_le_bytes());
    ring.data.buf.write(12, &0_u32.to_le_bytes());
    ring.request(0, 13, 0, (ring.data.guest.0, 16, 0));
    assert_eq!(ring.status_after(0), 0);
    assert!(server.count(QueueCounter::Rounds) > 1);
    assert_eq!(server.count(QueueCounter::WaitThrottled), 0);
}

/// What there is can be told while a change waits for a disk that hangs.
#[test]
fn the_state_is_told_while_a_change_waits_for_a_hung_disk() {
    if !is_root("writes in the kernel while their adapter changes") {
        return;
    }
    let disk = Disk::new(8 * MIB);
    let server = Server::new(1);
    server.must(Request::PutVolume(VolumeSpec::new("v", FileSpec::new(disk.path()))));
    let resize = || Request::ResizeVolume { name: "v".into(), bytes: 4 * MIB, shrink: true };
    for change in [resize(), Request::RemoveAdapter { name: "vhost0".into() }] {
        let _client = write_that_hangs(&server, &disk);
        told_meanwhile(&server, change, || disk.release(Kind::Write));
    }
    // Another path to a disk under a unit.
    server.must(Request::RemoveVolume { name: "v".into(), forget: false });
    server.must(Request::PutVolume(VolumeSpec::new("v0", FileSpec::new(disk.path()))));
    server.must(Request::PutUnit(unit("lu0", "v0")));
    let mut client = Client::connect(&server.put_scsi(0, vec![target(0, &[(0, "lu0")])]));
    client.attentions(address(0, 0));
    disk.hold(Kind::Write);
    std::thread::scope(|scope| {
        let write = scope.spawn(|| client.write(address(0, 0), 0, 1));
        disk.wait_held(Kind::Write, 1);
        let path = server.path("other");
        std::fs::File::create(&path).and_then(|file| file.set_len(disk.bytes())).unwrap();
        let other = Request::PutVolume(VolumeSpec::new("v0", FileSpec::new(path)));
        told_meanwhile(&server, other, || disk.release(Kind::Write));
        write.join().unwrap();
    });
}

/// Nor do those that only its own file takes part in: space that is set aside, and what a file that is closed has yet to bring to its disk.
#[test]
fn the_state_is_told_while_a_file_that_hangs_grows_or_is_closed() {
    if !is_root("a file that hangs while it grows or is closed") {
        return;
    }
    let server = Server::new(1);
    let disk = Disk::new(8 * MIB);
    let file = FileSpec { preallocate: true, ..FileSpec::new(disk.path()) };
    server.must(Request::PutVolume(VolumeSpec::new("v", file)));
    disk.hold(Kind::Allocate);
    let grow = Request::ResizeVolume { name: "v".into(), bytes: 16 * MIB, shrink: false };
    told_meanwhile(&server, grow, || disk.release(Kind::Allocate));
    assert_eq!((disk.bytes(), server.status().volumes[0].bytes), (16 * MIB, 16 * MIB));
    server.must(Request::RemoveVolume { name: "v".into(), forget: false });

    let disk = Disk::with(Options { bytes: 8 * MIB, write_back: true });
    let file = FileSpec { cache: CacheMode::Buffered, ..FileSpec::new(disk.path()) };
    server.must(Request::PutVolume(VolumeSpec::new("v", file)));
    let socket = server.put_adapter(|_| ());
    let (_front, ring) = Front::ready(&socket);
    disk.hold(Kind::Write);
    ring.request(0, 1, 0, (ring.data.guest.0, 4096, 0));
    assert_eq!(ring.status_after(0), 0, "it is in the cache");
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    let close = Request::RemoveVolume { name: "v".into(), forget: false };
    told_meanwhile(&server, close, || disk.release(Kind::Write));
    assert_eq!(server.status().volumes.len(), 0);
}

/// Whoever removes the adapter of a disk that hangs is told that it goes on, and everything else is changed meanwhile, but for what is on that disk.
#[test]
fn an_adapter_that_waits_for_a_hung_disk_leaves_and_others_are_changed() {
    if !is_root("a write in the kernel while its adapter is removed") {
        return;
    }
    let disk = Disk::new(8 * MIB);
    let server = Server::new(1);
    server.must(Request::PutVolume(VolumeSpec::new("v", FileSpec::new(disk.path()))));
    let client = write_that_hangs(&server, &disk);
    let goes_on = |request: &Request| match server.ask_once(request.clone()) {
        Reply::Error(Failure { code: FailureCode::Opening, message, .. }) => {
            assert!(message.starts_with("adapter vhost0: removed"), "{message}");
        }
        other => panic!("{request:?}: {other:?}"),
    };
    let remove = Request::RemoveAdapter { name: "vhost0".into() };
    let leave = Request::RemoveVolume { name: "v".into(), forget: false };
    let again = Request::PutAdapter(server.adapter("vhost0"));
    let cut = Request::ResizeVolume { name: "v".into(), bytes: 4 * MIB, shrink: true };
    (0..2).for_each(|_| goes_on(&remove));
    [&leave, &again, &cut].into_iter().for_each(goes_on);
    let status = server.status();
    assert!(status.adapters[0].reason.as_ref().is_some_and(|why| why.contains("removed")));
    // Somebody else's disk.
    server.must(Request::PutVolume(VolumeSpec { name: "disk1".into(), ..server.ram(16) }));
    let mut other = server.adapter("vhost1");
    other.device = BlockSpec::on("disk1").into();
    let other = server.put_adapter(|spec| *spec = other);
    let (_front, works) = Front::ready(&other);
    works.works();
    server.must(Request::RemoveAdapter { name: "vhost1".into() });
    disk.release(Kind::Write);
    server.must(remove.clone());
    assert_eq!((server.status().adapters.len(), disk.served(Kind::Write)), (0, 1));
    drop(client);
    server.must(leave);
    assert!(matches!(server.ask(remove), Reply::Error(it) if it.code == FailureCode::NotFound));
}

/// A process that ends while an adapter of its leaves waits for that.
#[test]
fn a_data_plane_that_ends_waits_for_adapters_that_leave() {
    if !is_root("a write in the kernel while its adapter is removed") {
        return;
    }
    let disk = Disk::new(8 * MIB);
    let server = Server::new(1);
    server.must(Request::PutVolume(VolumeSpec::new("v", FileSpec::new(disk.path()))));
    let _client = write_that_hangs(&server, &disk);
    let reply = server.ask_once(Request::RemoveAdapter { name: "vhost0".into() });
    assert!(matches!(reply, Reply::Error(it) if it.code == FailureCode::Opening));
    std::thread::scope(|scope| {
        let ends = scope.spawn(|| drop(server));
        // Time to do it wrong.
        std::thread::sleep(Duration::from_millis(200));
        assert!(!ends.is_finished(), "its write can still land");
        disk.release(Kind::Write);
        ends.join().unwrap();
    });
    assert_eq!(disk.served(Kind::Write), 1);
}

/// A pool whose PV hangs is opened, changed and closed by and by; other pools are meanwhile, and everything is told.
#[test]
fn a_pool_whose_pv_hangs_delays_no_change_of_another() {
    if !is_root("PVs that hang while their pool is opened, changed and closed") {
        return;
    }
    let server = Server::new(1);
    let disk = Disk::new(10 * 64 * MIB);
    let file = server.path("pv");
    std::fs::File::create(&file).and_then(|file| file.set_len(10 * 64 * MIB)).unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let pool = |name: &str, pv: &Path, fresh: bool| PoolSpec {
        name: name.to_owned(),
        uuid: name.repeat(16),
        server: "b2".repeat(16),
        pvs: vec![pv.to_owned()],
        shadow: memory.path().join(name),
        fresh,
        ..PoolSpec::default()
    };
    let lu = |name: &str, of: &str, bytes: u64| {
        let mut spec = VolumeSpec::new(name, LuSpec { fresh: true, ..LuSpec::of(of) });
        spec.bytes = Some(bytes);
        Request::PutVolume(spec)
    };
    let goes_on = |request: &Request, begins: &str| match server.ask_once(request.clone()) {
        Reply::Error(Failure { code: FailureCode::Opening, message, .. }) => {
            assert!(message.starts_with(begins), "{message}");
        }
        other => panic!("{request:?}: {other:?}"),
    };
    // All that can be done with another one, and with it again.
    let mut round = 0;
    let mut works = || {
        server.must(Request::PutPool(pool("bb", &file, round == 0)));
        let name = format!("free{round}");
        server.must(lu(&name, "bb", 64 * MIB));
        server.must(Request::ResizeVolume { name: name.clone(), bytes: 96 * MIB, shrink: false });
        server.must(Request::RemoveVolume { name, forget: false });
        server.must(Request::RemovePool { name: "bb".into() });
        round += 1;
    };
    disk.hold(Kind::Read);
    let put = Request::PutPool(pool("aa", &disk.path(), true));
    goes_on(&put, "pool aa: opening");
    disk.wait_held(Kind::Read, 1);
    goes_on(&put, "pool aa: opening");
    works();
    assert_eq!(server.status().pools.len(), 0);
    disk.release(Kind::Read);
    server.must(put);
    server.must(lu("v", "aa", 64 * MIB));
    // It grows.
    disk.hold(Kind::Write);
    let grow = Request::ResizeVolume { name: "v".into(), bytes: 128 * MIB, shrink: false };
    goes_on(&grow, "volume v: changes its size");
    let remove = Request::RemoveVolume { name: "v".into(), forget: false };
    goes_on(&remove, "volume v: changes its size");
    works();
    assert_eq!(server.status().volumes[0].bytes, 64 * MIB);
    disk.release(Kind::Write);
    server.must(grow);
    assert_eq!(server.status().volumes[0].bytes, 128 * MIB);
    server.must(remove);
    assert_eq!(server.status().pools[0].lus.len(), 1);
    // An LU is removed, and then it is closed.
    let doomed: Vec<u32> = server.status().pools[0].lus.iter().map(|lu| lu.number).collect();
    disk.hold(Kind::Write);
    let cut = PoolSpec { doomed, ..pool("aa", &disk.path(), true) };
    let cut = Request::PutPool(cut);
    goes_on(&cut, "pool aa: changing");
    works();
    disk.release(Kind::Write);
    server.must(cut);
    assert_eq!(server.status().pools[0].lus, []);
    server.must(lu("v", "aa", 64 * MIB));
    let (front, ring) = Front::ready(&server.put_adapter(|_| ()));
    ring.request(0, 1, 0, (ring.data.guest.0, 4096, 0));
    assert_eq!(ring.status_after(0), 0);
    drop((front, ring));
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    server.must(Request::RemoveVolume { name: "v".into(), forget: false });
    disk.hold(Kind::Flush);
    let close = Request::RemovePool { name: "aa".into() };
    goes_on(&close, "pool aa: closing");
    works();
    match server.ask_once(lu("x", "aa", 64 * MIB)) {
        Reply::Error(Failure { message, .. }) => {
            assert!(message.contains("its pool aa is not open"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.status().pools.len(), 1, "it is there until it is closed");
    disk.release(Kind::Flush);
    server.must(close);
    assert_eq!(server.status().pools.len(), 0);
    works();
}

/// A client of a new adapter `vhost0`, whose write that disk has begun and does not end.
fn write_that_hangs(server: &Server, disk: &Disk) -> (Front, Ring) {
    let (front, ring) = Front::ready(&server.put_adapter(|_| ()));
    disk.hold(Kind::Write);
    ring.request(0, 1, 0, (ring.data.guest.0, 4096, 0));
    ring.offer(&[0]);
    disk.wait_held(Kind::Write, 1);
    (front, ring)
}

/// Makes a change that waits for a disk, until `release`.
#[track_caller]
fn told_meanwhile(server: &Server, change: Request, release: impl FnOnce()) {
    let before = server.status();
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let change = scope.spawn(|| server.must(change));
        scope.spawn(move || {
            // Time to do it wrong.
            std::thread::sleep(Duration::from_millis(100));
            let _ = tell.send(server.status());
        });
        let answer = told.recv_timeout(GUARD);
        let waits = !change.is_finished();
        release();
        change.join().unwrap();
        let status = answer.expect("told while the change waits");
        assert!(waits, "for the disk");
        let names = |status: &Status| {
            let volumes: Vec<String> =
                status.volumes.iter().map(|it| it.spec.name.clone()).collect();
            (volumes, status.adapters.len(), status.units.len())
        };
        assert_eq!(names(&status), names(&before));
    });
}

/// Makes a change that waits for a disk, until `release`. Meanwhile everything else is changed.
#[track_caller]
fn others_change_meanwhile(server: &Server, change: &Request, release: impl FnOnce()) {
    let (tell, told) = std::sync::mpsc::channel();
    std::thread::scope(|scope| {
        let change = scope.spawn(|| server.must(change.clone()));
        scope.spawn(move || {
            // Time to do it wrong.
            std::thread::sleep(Duration::from_millis(100));
            let mut other = server.adapter("other");
            other.device = BlockSpec::on("other").into();
            let socket = other.socket.clone();
            let volume = VolumeSpec { name: "other".into(), ..server.ram(16) };
            server.must(Request::PutVolume(volume));
            server.must(Request::PutAdapter(other.clone()));
            let (front, works) = Front::ready(&socket);
            works.works();
            drop(front);
            other.queues = 2;
            server.must(Request::PutAdapter(other));
            let (name, bytes) = ("other".to_owned(), 32 * MIB);
            server.must(Request::ResizeVolume { name, bytes, shrink: false });
            server.must(Request::RemoveAdapter { name: "other".into() });
            server.must(Request::RemoveVolume { name: "other".into(), forget: true });
            server.ram(0).kind.path().map(std::fs::remove_file).unwrap().unwrap();
            let _ = tell.send(server.status());
        });
        let told = told.recv_timeout(GUARD);
        let waits = !change.is_finished();
        release();
        change.join().unwrap();
        told.expect("everything else is changed while the change waits");
        assert!(waits, "for the disk");
    });
}

#[test]
fn a_change_that_waits_for_a_hung_disk_delays_no_other() {
    if !is_root("writes in the kernel while their adapters and volumes change") {
        return;
    }
    let disk = Disk::new(8 * MIB);
    let server = Server::new(1);
    let v = VolumeSpec::new("v", FileSpec::new(disk.path()));
    server.must(Request::PutVolume(v.clone()));
    let cut = Request::ResizeVolume { name: "v".into(), bytes: 4 * MIB, shrink: true };
    // Another limit has it opened anew.
    let limit = LimitSpec { iops: 1000, ..LimitSpec::default() };
    let limited = VolumeSpec { limit: Some(limit), bytes: Some(4 * MIB), ..v };
    let closed = Request::RemoveAdapter { name: "vhost0".into() };
    for change in [&cut, &Request::PutVolume(limited)] {
        let client = write_that_hangs(&server, &disk);
        others_change_meanwhile(&server, change, || disk.release(Kind::Write));
        client.1.works();
        drop(client);
        server.must(closed.clone());
    }
    server.must(Request::RemoveVolume { name: "v".into(), forget: false });

    // A LUN that is taken from its client, and another path to a disk.
    let path = server.path("other.raw");
    std::fs::File::create(&path).and_then(|file| file.set_len(disk.bytes())).unwrap();
    let there = Request::PutVolume(VolumeSpec::new("v0", FileSpec::new(path)));
    server.must(Request::PutVolume(VolumeSpec::new("v0", FileSpec::new(disk.path()))));
    server.must(Request::PutUnit(unit("lu0", "v0")));
    let with = |luns: &[(u16, &str)]| {
        crate::common::scsi::adapter(server.dir.path(), 0, vec![target(0, luns)])
    };
    let mut client = Client::connect(&server.put_scsi(0, vec![target(0, &[(0, "lu0")])]));
    client.attentions(address(0, 0));
    for change in [Request::PutAdapter(with(&[])), there] {
        disk.hold(Kind::Write);
        std::thread::scope(|scope| {
            let write = scope.spawn(|| client.write(address(0, 0), 0, 1));
            disk.wait_held(Kind::Write, 1);
            others_change_meanwhile(&server, &change, || disk.release(Kind::Write));
            write.join().unwrap();
        });
        server.must(Request::PutAdapter(with(&[(0, "lu0")])));
        client.attentions(address(0, 0));
    }
    drop(client);

    // What a file that is closed has yet to bring to its disk.
    let disk = Disk::with(Options { bytes: 8 * MIB, write_back: true });
    let file = FileSpec { cache: CacheMode::Buffered, ..FileSpec::new(disk.path()) };
    server.must(Request::PutVolume(VolumeSpec::new("v", file)));
    let (_front, ring) = Front::ready(&server.put_adapter(|_| ()));
    disk.hold(Kind::Write);
    ring.request(0, 1, 0, (ring.data.guest.0, 4096, 0));
    assert_eq!(ring.status_after(0), 0, "it is in the cache");
    server.must(closed);
    let close = Request::RemoveVolume { name: "v".into(), forget: false };
    others_change_meanwhile(&server, &close, || disk.release(Kind::Write));
}

/// Where the path of a volume leads that is to change.
#[test]
fn a_path_that_does_not_answer_delays_no_other_change() {
    if !is_root("a file that hangs while it is looked at") {
        return;
    }
    let disk = Disk::new(8 * MIB);
    let server = Server::new(1);
    let v = VolumeSpec::new("v", FileSpec::new(disk.path()));
    server.must(Request::PutVolume(v.clone()));
    let limit = LimitSpec { iops: 1000, ..LimitSpec::default() };
    let limited = VolumeSpec { limit: Some(limit), ..v };
    disk.hold(Kind::Look);
    let change = Request::PutVolume(limited.clone());
    others_change_meanwhile(&server, &change, || disk.release(Kind::Look));
    assert_eq!(server.status().volumes[0].spec.limit, limited.limit);
}

/// What is built on something that waits for a hung disk waits with it, and is told so; nothing is refused that could be done when the disk answers.
#[test]
fn what_is_built_on_a_change_that_goes_on_is_told_to_wait() {
    if !is_root("a write in the kernel while its volume is cut") {
        return;
    }
    let disk = Disk::new(8 * MIB);
    let server = Server::new(1);
    server.must(Request::PutVolume(VolumeSpec::new("v", FileSpec::new(disk.path()))));
    let client = write_that_hangs(&server, &disk);
    let waits = |request: &Request, why: &str| match server.ask_once(request.clone()) {
        Reply::Error(Failure { code: FailureCode::Opening, message, .. }) => {
            assert!(message.starts_with(why), "{message}");
        }
        other => panic!("{request:?}: {other:?}"),
    };
    let cut = |bytes| Request::ResizeVolume { name: "v".into(), bytes, shrink: true };
    let another = AdapterSpec { name: "vhost1".into(), ..server.adapter("vhost1") };
    let limit = LimitSpec { iops: 1000, ..LimitSpec::default() };
    let file = VolumeSpec::new("v", FileSpec::new(disk.path()));
    let limited = VolumeSpec { limit: Some(limit), ..file };
    let built = [
        cut(4 * MIB),
        cut(4 * MIB),
        cut(2 * MIB),
        Request::PutUnit(unit("lu0", "v")),
        Request::PutAdapter(another.clone()),
        Request::PutVolume(limited),
        Request::RemoveVolume { name: "v".into(), forget: false },
    ];
    built
        .iter()
        .for_each(|request| waits(request, "volume v: changes its size, waits for its disk"));
    let status = server.status();
    assert_eq!((status.volumes.len(), status.volumes[0].bytes), (1, 8 * MIB), "as it was");
    // Whoever has the disk can be removed meanwhile.
    let remove = Request::RemoveAdapter { name: "vhost0".into() };
    waits(&remove, "adapter vhost0: removed, waits for what its disks have under way");
    assert_eq!(disk.bytes(), 8 * MIB, "something can still land behind the cut");
    disk.release(Kind::Write);
    server.must(remove);
    server.must(cut(4 * MIB));
    assert_eq!((disk.bytes(), disk.served(Kind::Write)), (4 * MIB, 1));
    drop(client);
    server.must(Request::PutAdapter(another));
    Front::ready(&server.path("vhost1.sock")).1.works();
}
