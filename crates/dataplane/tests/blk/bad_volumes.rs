//! Volumes that fail, vanish, fill up or change under their clients.

use std::path::Path;

use crate::common::raw::{Front, Ring, until};
use crate::common::{Server, load, null, short_load, volume};
use partition::load::{FailureKind, LoadOptions, run};
use protocol::message::{
    AdapterState, BlockSpec, CacheMode, DeviceSpec, Failure, FailureCode, FaultSpec, FileSpec,
    LimitSpec, RamSpec, Reply, Request, VolumeKind, VolumeSpec,
};
use protocol::stats::QueueCounter;

fn refused(server: &Server, request: Request) -> Failure {
    match server.ask(request.clone()) {
        Reply::Error(failure) => failure,
        other => panic!("{request:?}: {other:?}"),
    }
}

fn limited(spec: VolumeSpec, iops: u64) -> VolumeSpec {
    let limit = LimitSpec { iops, ..LimitSpec::default() };
    VolumeSpec { limit: Some(limit), ..spec }
}

fn write(ring: &Ring, sector: u64, byte: u8) -> u8 {
    ring.data.buf.slice(0, 4096).fill(byte);
    ring.request(0, 1, sector, (ring.data.guest.0, 4096, 0));
    ring.status_after(0)
}

fn read(ring: &Ring, sector: u64) -> (u8, u8) {
    ring.data.buf.slice(0, 4096).fill(0xff);
    ring.request(0, 0, sector, (ring.data.guest.0, 4096, crate::common::raw::WRITE));
    let status = ring.status_after(0);
    let mut byte = [0];
    ring.data.buf.read(4095, &mut byte);
    (status, byte[0])
}

#[test]
fn a_file_that_is_cut_under_load_gives_errors_that_are_counted() {
    for cache in [CacheMode::Auto, CacheMode::Buffered] {
        let server = Server::new(1);
        let mut spec = server.file(64);
        let VolumeKind::File(file) = &mut spec.kind else { unreachable!() };
        file.cache = cache;
        let path = file.path.clone();
        server.must(Request::PutVolume(spec));
        let good = VolumeSpec { name: "w".into(), ..null(64) };
        server.must(Request::PutVolume(good));
        let socket = server.put_adapter(|_| ());
        let other = server.put_adapter(|spec| {
            *spec = server.adapter("vhost1");
            spec.device = DeviceSpec::Block(BlockSpec::on("w"));
        });
        let (_front, neighbour) = Front::ready(&other);
        let file = std::fs::OpenOptions::new().write(true).open(&path).unwrap();
        let mut cut = false;
        let options = LoadOptions { read_percent: 100, ..short_load() };
        let options = LoadOptions { verify: false, ..options };
        let report = run(&socket, &options, &mut |_| {
            neighbour.works();
            if !std::mem::replace(&mut cut, true) {
                file.set_len(4096).unwrap();
            }
        })
        .unwrap();
        assert!(report.failure_count > 0, "{cache:?}: nobody noticed");
        assert!(report.failures.iter().all(|f| f.kind == FailureKind::Io), "{:?}", report.failures);
        let errors = server.count_of("vhost0", QueueCounter::Errors);
        assert!(errors >= report.failure_count, "{errors} {}", report.failure_count);
        assert_eq!(server.count_of("vhost1", QueueCounter::Errors), 0);
        // Who mends the file mends the disk.
        file.set_len(64 << 20).unwrap();
        server.settled_named("vhost0");
        load(&socket, &short_load());
    }
}

#[test]
fn a_file_that_vanished_is_served_on_and_never_replaced_by_an_empty_one() {
    let server = Server::new(1);
    let spec = server.file(16);
    server.must(Request::PutVolume(spec.clone()));
    let socket = server.put_adapter(|_| ());
    let (_front, ring) = Front::ready(&socket);
    assert_eq!(write(&ring, 0, 7), 0);
    let path = server.path("disk.raw");
    std::fs::rename(&path, server.path("elsewhere")).unwrap();
    // The descriptor is still the file.
    assert_eq!(read(&ring, 0), (0, 7));
    let failure = refused(&server, Request::PutVolume(limited(spec.clone(), 1000)));
    assert!(failure.message.contains("removed or replaced"), "{failure:?}");
    assert!(failure.help.is_some());
    assert!(!path.exists(), "an empty disk was put in its place");
    assert_eq!(read(&ring, 0), (0, 7));
    // Another file of the same name is not the disk either.
    std::fs::File::create(&path).unwrap().set_len(16 << 20).unwrap();
    let failure = refused(&server, Request::PutVolume(limited(spec.clone(), 1000)));
    assert!(failure.message.contains("removed or replaced"), "{failure:?}");
    assert_eq!(read(&ring, 0), (0, 7));
    std::fs::rename(server.path("elsewhere"), &path).unwrap();
    server.must(Request::PutVolume(limited(spec, 1000)));
    assert_eq!(read(&ring, 0), (0, 7));
    assert_eq!(server.adapter_status().state, AdapterState::Running);
}

#[test]
fn a_volume_that_cannot_be_opened_says_why_and_what_mends_it() {
    let server = Server::new(1);
    let file = |path: &Path, create| volume(FileSpec { create, ..FileSpec::new(path) }, 16);
    std::fs::write(server.path("short"), [0; 4096]).unwrap();
    let cases = [
        (file(&server.path("none"), false), "none"),
        (file(&server.path("no/such/folder/disk"), true), "no/such/folder"),
        (file(server.dir.path(), false), "volume v"),
        (file(&server.path("short"), true), "4096"),
        (VolumeSpec { block_size: 513, ..null(16) }, "block_size"),
        (VolumeSpec { bytes: Some(0), ..null(16) }, "size"),
        (VolumeSpec { bytes: None, ..null(16) }, "size"),
    ];
    for (spec, what) in cases {
        let failure = refused(&server, Request::PutVolume(spec.clone()));
        assert!(failure.message.contains(what), "{failure:?}");
        assert!(failure.help.is_some(), "{failure:?}");
        assert!(server.status().volumes.is_empty());
    }
}

#[test]
fn injected_faults_reach_the_client_and_the_counters() {
    let server = Server::new(1);
    let with = |fault| VolumeSpec { fault: Some(fault), ..server.ram(16) };
    let reads = FaultSpec { read_error_ppm: 1_000_000, ..FaultSpec::default() };
    server.must(Request::PutVolume(with(reads)));
    let socket = server.put_adapter(|_| ());
    let (_front, ring) = Front::ready(&socket);
    assert_eq!(read(&ring, 0).0, 1);
    assert_eq!(write(&ring, 0, 1), 0);
    assert_eq!(server.count(QueueCounter::Errors), 1);
    // Faults are switched under a running client.
    let writes = FaultSpec { write_error_ppm: 1_000_000, ..FaultSpec::default() };
    server.must(Request::PutVolume(with(writes)));
    assert_eq!(read(&ring, 0), (0, 1));
    assert_eq!(write(&ring, 0, 2), 1);
    assert_eq!(read(&ring, 0), (0, 1));
    let range = FaultSpec { bad_range: Some((1 << 20, 4096)), ..FaultSpec::default() };
    server.must(Request::PutVolume(with(range)));
    assert_eq!(write(&ring, 2048, 3), 1);
    assert_eq!(write(&ring, 2056, 3), 0);
    assert_eq!(write(&ring, 2040, 3), 0);
    let late = FaultSpec { slow_ppm: 500_000, slow_us: 3000, seed: 3, ..FaultSpec::default() };
    server.must(Request::PutVolume(with(late)));
    assert_eq!(server.count(QueueCounter::Errors), 3);
    drop((_front, ring));
    server.settled();
    load(&socket, &short_load());
    server.must(Request::PutVolume(server.ram(16)));
    load(&socket, &short_load());
}

/// An adapter that is to change its volume has two of them: what is said of one must not reach the other.
#[test]
fn a_pending_change_of_volume_keeps_both_volumes_apart() {
    let server = Server::new(1);
    let named = |name: &str, mebibytes| VolumeSpec {
        name: name.into(),
        kind: FileSpec { create: true, ..FileSpec::new(server.path(name)) }.into(),
        ..null(mebibytes)
    };
    server.must(Request::PutVolume(named("v", 16)));
    server.must(Request::PutVolume(named("w", 32)));
    let socket = server.put_adapter(|_| ());
    let (front, ring) = Front::ready(&socket);
    assert_eq!(write(&ring, 0, 1), 0);
    let mut changed = server.adapter("vhost0");
    changed.device = DeviceSpec::Block(BlockSpec::on("w"));
    server.must(Request::PutAdapter(changed));
    // The one to come: opened anew, resized.
    server.must(Request::PutVolume(limited(named("w", 32), 100_000)));
    assert_eq!(read(&ring, 0), (0, 1), "the client still has its disk");
    server.must(Request::ResizeVolume { name: "w".into(), bytes: 64 << 20, shrink: false });
    assert_eq!(front.config(0, 8), ((16 << 20) / 512_u64).to_le_bytes());
    assert_eq!(read(&ring, (16 << 20) / 512).0, 1, "behind the end of its disk");
    // The present one.
    server.must(Request::PutVolume(limited(named("v", 16), 100_000)));
    assert_eq!(read(&ring, 0), (0, 1));
    for name in ["v", "w"] {
        assert!(
            refused(&server, Request::RemoveVolume { name: name.into(), forget: false })
                .help
                .is_some()
        );
    }
    drop((front, ring));
    server.settled();
    let (front, ring) = Front::ready(&socket);
    assert_eq!(front.config(0, 8), ((64 << 20) / 512_u64).to_le_bytes());
    assert_eq!(read(&ring, 0), (0, 0), "the other disk");
    assert_eq!(write(&ring, 0, 2), 0);
    server.must(Request::RemoveVolume { name: "v".into(), forget: false });
    assert_eq!(std::fs::read(server.path("v")).unwrap()[..4096], [1; 4096]);
}

/// The same volume in both forms, which is what a changed number of queues comes to.
#[test]
fn a_volume_is_opened_anew_while_its_adapter_waits_for_its_next_client() {
    let server = Server::new(1);
    server.must(Request::PutVolume(server.file(16)));
    let socket = server.put_adapter(|_| ());
    let (front, ring) = Front::ready(&socket);
    assert_eq!(write(&ring, 0, 1), 0);
    server.must(Request::PutAdapter(protocol::message::AdapterSpec {
        queues: 2,
        ..server.adapter("vhost0")
    }));
    assert!(server.adapter_status().becoming);
    server.must(Request::PutVolume(limited(server.file(16), 100_000)));
    assert_eq!(read(&ring, 0), (0, 1));
    // It is to stay as it is, and then is not.
    server.must(Request::PutAdapter(server.adapter("vhost0")));
    assert!(!server.adapter_status().becoming);
    server.must(Request::PutAdapter(protocol::message::AdapterSpec {
        queues: 2,
        ..server.adapter("vhost0")
    }));
    drop((front, ring));
    server.settled();
    let (_front, ring) = Front::ready(&socket);
    assert_eq!(read(&ring, 0), (0, 1));
    let status = server.adapter_status();
    assert_eq!((status.spec.queues, status.becoming), (2, false));
}

/// Runs in a mount namespace of its own, with a small tmpfs in the folder that the variable names.
#[test]
#[ignore = "run by a_full_file_system_is_told_and_counted"]
fn inside_a_small_file_system() {
    let folder = std::env::var("TRUNKLINE_SMALL_FILE_SYSTEM").unwrap();
    let server = Server::new(1);
    let path = Path::new(&folder).join("disk.raw");
    let file = FileSpec { create: true, ..FileSpec::new(path) };
    server.must(Request::PutVolume(volume(file, 64)));
    let socket = server.put_adapter(|_| ());
    let (_front, ring) = Front::ready(&socket);
    let mut written = 0;
    while write(&ring, 8 * written, 5) == 0 {
        written += 1;
        assert!(written < 4096, "8 MiB were to be full");
    }
    assert!(written > 0);
    assert_eq!(server.count(QueueCounter::ErrorsNoSpace), 1);
    assert_eq!(server.count(QueueCounter::Errors), 1);
    assert_eq!(write(&ring, 8 * (written + 1), 5), 1);
    assert_eq!(server.count(QueueCounter::ErrorsNoSpace), 2);
    // What was written is there, and can be written again; given back, it makes room.
    assert_eq!(read(&ring, 8 * (written - 1)), (0, 5));
    assert_eq!(write(&ring, 0, 6), 0);
    ring.data.buf.write(0, &[0; 16]);
    ring.data.buf.write(8, &1024_u32.to_le_bytes());
    ring.request(0, 11, 0, (ring.data.guest.0, 16, 0));
    assert_eq!(ring.status_after(0), 0, "a discard");
    assert_eq!(write(&ring, 8 * (written + 1), 7), 0);
    assert_eq!(server.adapter_status().state, AdapterState::Running);
}

#[test]
fn a_full_file_system_is_told_and_counted() {
    let test = "bad_volumes::inside_a_small_file_system";
    testkit::in_small_file_system("TRUNKLINE_SMALL_FILE_SYSTEM", 8, test);
}

#[test]
fn a_hard_limit_does_not_hold_up_who_has_none() {
    let server = Server::new(1);
    server.must(Request::PutVolume(limited(server.ram(16), 5)));
    server.must(Request::PutVolume(VolumeSpec { name: "w".into(), ..null(64) }));
    let socket = server.put_adapter(|_| ());
    let other = server.put_adapter(|spec| {
        *spec = server.adapter("vhost1");
        spec.device = DeviceSpec::Block(BlockSpec::on("w"));
    });
    let (_front, ring) = Front::ready(&socket);
    let (_other, neighbour) = Front::ready(&other);
    let heads: Vec<u16> = (0..12).map(|head| head * 4).collect();
    heads.iter().for_each(|head| ring.read(*head, 0));
    ring.offer(&heads);
    until("some wait", || server.count_of("vhost0", QueueCounter::Waiting) > 0);
    (0..20).for_each(|_| neighbour.works());
    assert!(server.count_of("vhost0", QueueCounter::WaitThrottled) > 0);
    assert!(ring.used_index() < 12, "the limit let everything through");
    ring.wait();
    assert!(heads.iter().all(|head| ring.status_of(*head) == 0));
    until("nothing waits", || server.count_of("vhost0", QueueCounter::Waiting) == 0);
}

/// A volume as the control plane puts it after it was opened once.
fn settled(server: &Server, spec: &VolumeSpec) -> VolumeSpec {
    let status = server.status().volumes.into_iter().find(|open| open.spec.name == spec.name);
    let mut spec = spec.clone();
    spec.kind.settle(status.expect("it is open").identity);
    spec
}

#[test]
fn a_lost_file_never_becomes_an_empty_disk() {
    let server = Server::new(1);
    let spec = server.file(16);
    server.must(Request::PutVolume(spec.clone()));
    let socket = server.put_adapter(|_| ());
    let (front, ring) = Front::ready(&socket);
    assert_eq!(write(&ring, 0, 7), 0);
    let known = settled(&server, &spec);
    // It is the same volume, and knowing it disturbs nobody.
    server.must(Request::PutVolume(known.clone()));
    assert_eq!(server.status().volumes[0].spec, spec);
    assert_eq!(server.status().volumes[0].trouble, None);
    std::fs::rename(server.path("disk.raw"), server.path("aside")).unwrap();
    std::fs::remove_file(server.path("aside")).unwrap();
    let trouble = server.status().volumes[0].trouble.clone();
    assert!(trouble.unwrap().contains("its file was removed"));
    assert_eq!(read(&ring, 0), (0, 7), "the client still has its disk");
    drop((front, ring));
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    server.must(Request::RemoveVolume { name: "v".into(), forget: false });
    // The next data plane would be told the same.
    let failure = refused(&server, Request::PutVolume(known.clone()));
    assert!(failure.help.unwrap().contains("volume recreate"));
    assert!(!server.path("disk.raw").exists());
    std::fs::write(server.path("disk.raw"), vec![1; 16 << 20]).unwrap();
    let failure = refused(&server, Request::PutVolume(known));
    assert!(failure.message.contains("another file is there now"), "{}", failure.message);
}

#[test]
fn a_changed_limit_opens_the_file_that_is_known() {
    let server = Server::new(1);
    let fresh = |spec: VolumeSpec| {
        let VolumeKind::Ram(ram) = spec.kind else { unreachable!() };
        VolumeSpec { kind: RamSpec { fresh: true, ..ram }.into(), ..spec }
    };
    let spec = fresh(server.ram(16));
    server.must(Request::PutVolume(spec.clone()));
    let socket = server.put_adapter(|_| ());
    let (_front, ring) = Front::ready(&socket);
    assert_eq!(write(&ring, 0, 7), 0);
    server.must(Request::PutVolume(limited(spec, 100_000)));
    assert_eq!(read(&ring, 0), (0, 7));
}

#[test]
fn a_locked_file_is_waited_for_by_its_volume_alone() {
    let server = Server::new(1);
    let spec = server.file(16);
    std::fs::write(server.path("disk.raw"), vec![0; 16 << 20]).unwrap();
    let holder = std::fs::File::open(server.path("disk.raw")).unwrap();
    holder.lock().unwrap();
    let opening = |server: &Server| match server.ask_once(Request::PutVolume(spec.clone())) {
        Reply::Error(failure) if failure.code == FailureCode::Opening => failure.message,
        other => panic!("{other:?}"),
    };
    opening(&server);
    let message = opening(&server);
    let me = format!("waits for process {}", std::process::id());
    assert!(message.contains(&me), "{message}");
    assert_eq!(server.status().opening[0].name, "v");
    // Others are made meanwhile, and it can be given up and begun again.
    server.must(Request::PutVolume(VolumeSpec { name: "w".into(), ..null(16) }));
    server.must(Request::RemoveVolume { name: "v".into(), forget: true });
    assert_eq!(server.status().opening, []);
    opening(&server);
    drop(holder);
    until("the volume is open", || server.status().volumes.len() == 2);
    assert_eq!(server.status().opening, []);
    server.must(Request::PutVolume(spec.clone()));
}

#[test]
fn why_an_opening_failed_is_told_once_and_then_it_begins_anew() {
    let server = Server::new(1);
    std::fs::write(server.path("disk.raw"), vec![0; 16 << 20]).unwrap();
    let holder = std::fs::File::open(server.path("disk.raw")).unwrap();
    holder.lock().unwrap();
    let mut spec = server.file(16);
    let VolumeKind::File(file) = &mut spec.kind else { unreachable!() };
    file.lock_wait_ms = 400;
    let put = || match server.ask_once(Request::PutVolume(spec.clone())) {
        Reply::Error(failure) => failure.code,
        other => panic!("{other:?}"),
    };
    assert_eq!(put(), FailureCode::Opening);
    let failure = refused(&server, Request::PutVolume(spec.clone()));
    assert!(failure.message.contains("is still locked by process"), "{}", failure.message);
    assert_eq!(put(), FailureCode::Opening, "again");
}
