//! A data plane in the test's own process, and clients for it.

#![allow(dead_code, unreachable_pub, reason = "each test uses a part")]

pub mod net;
pub mod process;
pub mod raw;
pub mod scsi;
pub mod segments;
pub mod testpmd;

use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use dataplane::{Options, Plane};
use partition::load::{LoadOptions, Report, run};
use protocol::message::{
    AdapterSpec, AdapterState, AdapterStatus, BlockSpec, DelaySpec, FailureCode, FileSpec,
    NullSpec, Placement, RamSpec, Reply, Request, Status, VolumeKind, VolumeSpec,
};
use protocol::stats::{QueueCounter, Snapshot, StatsReader};
use testkit::{Disk, is_root};

pub struct Server {
    pub plane: Plane,
    pub dir: tempfile::TempDir,
    /// Go when nobody has them open any more.
    disks: Mutex<Vec<Disk>>,
}

/// Tells those who go on until something has ended that it has; also when the test fails, which would wait for them else.
pub struct Ends<'a>(pub &'a AtomicBool);

impl Drop for Ends<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Release);
    }
}

impl Server {
    pub fn new(channels: u32) -> Server {
        let dir = tempfile::tempdir().unwrap();
        let options = Options {
            socket: dir.path().join("plane.sock"),
            cpus: Vec::new(),
            channels,
            poll_us_max: None,
            confine: None,
        };
        Server { plane: Plane::new(&options).unwrap(), dir, disks: Mutex::default() }
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    /// Asks until an opening is over, as the control plane does.
    pub fn ask(&self, request: Request) -> Reply {
        loop {
            match self.ask_once(request.clone()) {
                Reply::Error(failure) if failure.code == FailureCode::Opening => {
                    std::thread::sleep(Duration::from_millis(2));
                }
                reply => return reply,
            }
        }
    }

    pub fn ask_once(&self, request: Request) -> Reply {
        self.plane.handle(request, Vec::new()).0
    }

    #[track_caller]
    pub fn must(&self, request: Request) {
        let reply = self.ask(request.clone());
        assert_eq!(reply, Reply::Done, "{request:?}");
    }

    /// The marks of an adapter begin again, as soon as nobody changes its queues.
    pub fn reset_marks(&self, name: &str) {
        raw::until("its queues are changed by nobody", || {
            let reply = self.ask(Request::ResetMarks { name: name.to_owned() });
            if let Reply::Error(failure) = &reply {
                assert_eq!(failure.code, FailureCode::InUse, "{failure:?}");
            }
            reply == Reply::Done
        });
    }

    pub fn put_adapter(&self, change: impl FnOnce(&mut AdapterSpec)) -> PathBuf {
        let mut spec = self.adapter("vhost0");
        change(&mut spec);
        let socket = spec.socket.clone();
        self.must(Request::PutAdapter(spec));
        socket
    }

    pub fn adapter(&self, name: &str) -> AdapterSpec {
        let disk = BlockSpec { serial: "TL0001".into(), ..BlockSpec::on("v") };
        AdapterSpec {
            queues: 8,
            placement: Placement::Spread,
            ..AdapterSpec::new(name, self.path(&format!("{name}.sock")), disk)
        }
    }

    pub fn file(&self, mebibytes: u64) -> VolumeSpec {
        volume(FileSpec { create: true, ..FileSpec::new(self.path("disk.raw")) }, mebibytes)
    }

    /// Slow and out of order, inside the kernel.
    pub fn slow(&self, mebibytes: u64) -> VolumeSpec {
        let slow = SlowDisk::new(self.dir.path(), mebibytes);
        self.disks.lock().unwrap().extend(slow.disk);
        slow.volume
    }

    pub fn ram(&self, mebibytes: u64) -> VolumeSpec {
        let name = self.dir.path().file_name().unwrap().to_owned();
        volume(RamSpec::new(Path::new("/dev/shm").join(name)), mebibytes)
    }

    pub fn status(&self) -> Status {
        match self.ask(Request::Status) {
            Reply::Status(status) => status,
            other => panic!("{other:?}"),
        }
    }

    pub fn adapter_status(&self) -> AdapterStatus {
        self.status().adapters.remove(0)
    }

    /// The adapter's status once its last client is gone. The session's thread notices a moment after the client has left.
    pub fn settled(&self) -> AdapterStatus {
        for _ in 0..1000 {
            let status = self.adapter_status();
            if status.state == AdapterState::Listening {
                return status;
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the client's session did not end: {:?}", self.adapter_status());
    }

    /// Status of one adapter.
    #[track_caller]
    pub fn adapter_named(&self, name: &str) -> AdapterStatus {
        let adapters = self.status().adapters;
        adapters.into_iter().find(|adapter| adapter.spec.name == name).expect("it exists")
    }

    /// Waits until the client of an adapter is gone.
    #[track_caller]
    pub fn settled_named(&self, name: &str) {
        raw::until("the end of the client's session", || {
            self.adapter_named(name).state == AdapterState::Listening
        });
    }

    /// Sum of a counter over the queues of one adapter.
    pub fn count_of(&self, adapter: &str, counter: QueueCounter) -> u64 {
        let stats = self.stats();
        let queues = stats.queues.iter().filter(|queue| queue.adapter == adapter);
        queues.map(|queue| queue.get(counter)).sum()
    }

    pub fn stats(&self) -> Snapshot {
        let (reply, fd) = self.plane.handle(Request::Stats, Vec::new());
        assert_eq!(reply, Reply::Stats);
        let file = std::fs::File::from(fd.unwrap().try_clone_to_owned().unwrap());
        StatsReader::open(&file).unwrap().snapshot()
    }

    /// Sum of a counter over all queues.
    pub fn count(&self, counter: QueueCounter) -> u64 {
        self.stats().queues.iter().map(|queue| queue.get(counter)).sum()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let name = self.dir.path().file_name().unwrap().to_owned();
        let _ = std::fs::remove_file(Path::new("/dev/shm").join(name));
    }
}

pub fn volume(kind: impl Into<VolumeKind>, mebibytes: u64) -> VolumeSpec {
    VolumeSpec { bytes: Some(mebibytes << 20), ..VolumeSpec::new("v", kind) }
}

pub fn null(mebibytes: u64) -> VolumeSpec {
    volume(NullSpec::default(), mebibytes)
}

/// A disk that takes 1 to 30 ms for each read and write, which end out of order and are in the kernel meanwhile: so they are when their process dies, too.
/// Who is not root has one that is slow in front of the kernel.
pub struct SlowDisk {
    disk: Option<Disk>,
    pub volume: VolumeSpec,
}

impl SlowDisk {
    pub fn new(folder: &Path, mebibytes: u64) -> SlowDisk {
        if !is_root("a disk that is slow below the kernel (it is above instead)") {
            let file = FileSpec { create: true, ..FileSpec::new(folder.join("slow.raw")) };
            return SlowDisk { disk: None, volume: slow(volume(file, mebibytes)) };
        }
        let disk = Disk::new(mebibytes << 20);
        disk.slow(Duration::from_millis(1), Duration::from_millis(30));
        let volume = VolumeSpec::new("v", FileSpec::new(disk.path()));
        SlowDisk { disk: Some(disk), volume }
    }
}

pub fn slow(spec: VolumeSpec) -> VolumeSpec {
    let delay = DelaySpec { min_us: 1_000, max_us: 30_000, seed: 7, ..DelaySpec::default() };
    VolumeSpec { delay: Some(delay), ..spec }
}

/// A volume that takes its time, always the same.
pub fn slow_by(spec: VolumeSpec, us: u64) -> VolumeSpec {
    let delay = DelaySpec { min_us: us, max_us: us + 1, seed: 7, ..DelaySpec::default() };
    VolumeSpec { delay: Some(delay), ..spec }
}

pub fn short_load() -> LoadOptions {
    LoadOptions {
        duration: Duration::from_millis(500),
        read_percent: 50,
        verify: true,
        ..LoadOptions::default()
    }
}

#[track_caller]
pub fn load(socket: &Path, options: &LoadOptions) -> Report {
    let report = run(socket, options, &mut |_| ()).unwrap();
    assert_eq!(report.failures, [], "the run failed");
    report
}
