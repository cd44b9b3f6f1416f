//! A write that the kernel's cache lost is told to the clients of the file, whichever processes die in between.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;

use crate::common::process::Process;
use crate::common::raw::{Front, NEXT, Ring, WRITE};
use crate::common::scsi::unit;
use protocol::message::{AdapterSpec, BlockSpec, Request};
use protocol::opener::Witnesses;
use spec::{CacheMode, FileSpec, VolumeSpec};
use testkit::{Disk, Kind, Options, is_root};

const MIB: u64 = 1 << 20;
const GOOD: u8 = 0;
const FAILED: u8 = 1;

/// A volume on a disk whose write-back can fail, and what a control plane keeps of it.
struct Bench {
    folder: tempfile::TempDir,
    disk: Disk,
    cache: CacheMode,
    witnesses: Arc<Witnesses>,
}

impl Bench {
    fn new() -> Bench {
        Bench {
            folder: tempfile::tempdir().unwrap(),
            disk: Disk::with(Options { bytes: MIB, write_back: true }),
            cache: CacheMode::Buffered,
            witnesses: Arc::default(),
        }
    }

    fn volume(&self) -> VolumeSpec {
        let file = FileSpec { cache: self.cache, ..FileSpec::new(self.disk.path()) };
        VolumeSpec::new("v", file)
    }

    fn direct() -> Bench {
        Bench { cache: CacheMode::Direct, ..Bench::new() }
    }

    fn start(&self) -> (Process, Front, Ring) {
        let socket = self.folder.path().join("vhost0.sock");
        let adapter = AdapterSpec::new("vhost0", &socket, BlockSpec::on("v"));
        let setup = [Request::PutVolume(self.volume()), Request::PutAdapter(adapter)];
        let process = Process::start_after(self.folder.path(), &setup, &self.witnesses);
        let (front, ring) = Front::ready(&socket);
        (process, front, ring)
    }

    fn lost(&self, process: &mut Process) -> bool {
        process.status().volumes[0].lost
    }

    /// The data of a process is written back, in vain, and not by it. That may begin at any time: whoever closes the file begins it, be it the child of
    /// another test that closes what it inherited.
    fn lose(&self, process: Process, ring: &Ring) {
        let other = File::open(self.disk.path()).unwrap();
        self.fail(Some(eio()));
        ring.request(0, 1, 8, (ring.data.guest.0, 4096, 0));
        assert_eq!(ring.status_after(0), GOOD, "the cache takes it");
        process.kill();
        // Somebody is told, so that who comes later is not.
        assert!(other.sync_data().is_err());
        self.fail(None);
    }

    fn fail(&self, errno: Option<i32>) {
        self.disk.fail(Kind::Write, errno);
    }
}

fn eio() -> i32 {
    rustix::io::Errno::IO.raw_os_error()
}

fn flush(ring: &Ring) -> u8 {
    ring.set_header(0, 4, 0);
    ring.set_desc(0, ring.header_at(0), 16, NEXT, 1);
    ring.set_desc(1, ring.status_at(0), 1, WRITE, 0);
    ring.status_after(0)
}

fn write(ring: &Ring) -> u8 {
    ring.request(0, 1, 0, (ring.data.guest.0, 4096, 0));
    ring.status_after(0)
}

#[test]
fn a_write_that_was_lost_between_two_processes_is_told_until_one_ended_in_good_order() {
    if !is_root("a write-back that fails after the death of a data plane") {
        return;
    }
    let bench = Bench::new();
    let (process, _front, ring) = bench.start();
    bench.lose(process, &ring);
    let (mut process, _front, ring) = bench.start();
    assert!(bench.lost(&mut process));
    assert_eq!(flush(&ring), FAILED, "the data of before is gone");
    assert_eq!(write(&ring), FAILED, "and stays so");
    ring.works();
    // It died before it could tell all clients, for what anybody knows.
    process.kill();
    let (mut process, _front, ring) = bench.start();
    assert_eq!((flush(&ring), bench.lost(&mut process)), (FAILED, true));
    // This one has told them.
    process.shut_down();
    bench.witnesses.told(&bench.disk.path());
    let (mut process, _front, ring) = bench.start();
    assert_eq!((write(&ring), flush(&ring)), (GOOD, GOOD));
    assert!(!bench.lost(&mut process));
    // And then it happens again.
    bench.lose(process, &ring);
    let (process, _front, ring) = bench.start();
    assert_eq!(flush(&ring), FAILED);
    process.shut_down();
}

#[test]
fn what_a_process_was_told_and_could_not_pass_on_is_known_to_the_next() {
    if !is_root("a write-back that fails under a data plane") {
        return;
    }
    let bench = Bench::new();
    let (mut process, _front, ring) = bench.start();
    bench.fail(Some(eio()));
    assert_eq!(write(&ring), GOOD);
    assert_eq!(flush(&ring), FAILED);
    bench.fail(None);
    assert!(bench.lost(&mut process));
    process.kill();
    let (process, _front, ring) = bench.start();
    assert_eq!(flush(&ring), FAILED);
    process.shut_down();
}

/// The kernel tells nobody else of such a flush, and the next one succeeds.
#[test]
fn a_flush_that_the_disk_failed_is_known_to_the_next_process() {
    if !is_root("a flush that the disk fails") {
        return;
    }
    let bench = Bench::direct();
    let (process, _front, ring) = bench.start();
    assert_eq!(write(&ring), GOOD);
    bench.disk.fail(Kind::Flush, Some(eio()));
    assert_eq!(flush(&ring), FAILED);
    bench.disk.fail(Kind::Flush, None);
    process.kill();
    let (mut process, _front, ring) = bench.start();
    assert_eq!((write(&ring), flush(&ring), bench.lost(&mut process)), (FAILED, FAILED, true));
    process.shut_down();
    bench.witnesses.told(&bench.disk.path());
    let (process, _front, ring) = bench.start();
    assert_eq!((write(&ring), flush(&ring)), (GOOD, GOOD));
    process.shut_down();
}

/// The control plane dies, too, but not at the same time.
#[test]
fn a_witness_is_brought_to_the_next_control_plane() {
    if !is_root("a write-back that fails after the death of both processes") {
        return;
    }
    let mut bench = Bench::new();
    let (mut process, _front, ring) = bench.start();
    bench.witnesses = Arc::default();
    process.adopt(&bench.witnesses);
    bench.lose(process, &ring);
    // What the one before has found out goes with it.
    let (mut process, _front, ring) = bench.start();
    assert_eq!(flush(&ring), FAILED);
    bench.witnesses = Arc::default();
    process.adopt(&bench.witnesses);
    process.kill();
    let (process, _front, ring) = bench.start();
    assert_eq!(flush(&ring), FAILED);
    process.shut_down();
}

/// Another path to the disk under a logical unit.
#[test]
fn each_path_of_a_volume_has_a_witness_of_its_own() {
    if !is_root("disks below the kernel") {
        return;
    }
    let (here, there) = (Bench::new(), Bench::new());
    let setup = |bench: &Bench| {
        let unit = unit("lu0", "v");
        vec![Request::PutVolume(bench.volume()), Request::PutUnit(unit)]
    };
    let witnesses = Arc::default();
    let folder = here.folder.path();
    let mut process = Process::start_after(folder, &setup(&here), &witnesses);
    process.must(&Request::PutVolume(there.volume()));
    let other = |path: &Path| path != here.disk.path();
    assert_eq!(witnesses.keep(other).len(), 1, "of the path of before, which nobody writes now");
    let mut file = File::options().write(true).open(there.disk.path()).unwrap();
    there.fail(Some(eio()));
    file.write_all(&[1; 4096]).unwrap();
    process.kill();
    file.sync_data().unwrap_err();
    there.fail(None);
    let mut process = Process::start_after(folder, &setup(&there), &witnesses);
    assert!(there.lost(&mut process));
    assert_eq!(witnesses.keep(|_| false).len(), 1);
    process.shut_down();
}

#[test]
fn a_control_plane_of_an_earlier_version_is_not_asked_for_what_it_does_not_know() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("disk");
    File::create_new(&path).and_then(|file| file.set_len(MIB)).unwrap();
    let witnesses: Arc<Witnesses> = Arc::default();
    let mut process = Process::start_after(folder.path(), &[], &witnesses);
    process.adopt_as(&witnesses, 2);
    process.must(&Request::PutVolume(VolumeSpec::new("v", FileSpec::new(&path))));
    assert!(witnesses.keep(|_| false).is_empty());
    process.must(&Request::RemoveVolume { name: "v".into(), forget: false });
    process.adopt(&witnesses);
    process.must(&Request::PutVolume(VolumeSpec::new("v", FileSpec::new(&path))));
    assert_eq!(witnesses.keep(|kept| kept != Path::new(&path)).len(), 1);
    process.shut_down();
}
