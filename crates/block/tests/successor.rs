//! What a server that was killed has under way in the kernel, and the server that comes after it.

use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command};
use std::sync::Arc;
use std::time::Duration;

use block::spec::{FileSpec, VolumeSpec};
use block::{Here, LaneId, OpKind, Request, Submit, Tag, Volume, VolumeError, open_for};
use memory::{Access, Mapping};
use testkit::{Disk, Kind, Loop, is_root};
use uring::{Ring, RingConfig};

const MIB: u64 = 1 << 20;
/// Where the server reads; what opening looks at, and what the kernel reads ahead then, lies far before.
const PLACE: u64 = 12 * MIB;
const VOLUME: &str = "TRUNKLINE_TEST_VOLUME";
const MEMORY: &str = "TRUNKLINE_TEST_MEMORY";
const BYTES: usize = 64 * 1024;

type Opened = Result<Arc<dyn Volume>, VolumeError>;

fn within(lock_wait_ms: u64, path: &Path, owner: &str, read_only: bool) -> Opened {
    let file = FileSpec { lock_wait_ms, ..FileSpec::new(path) };
    let spec = VolumeSpec { read_only, block_size: 4096, ..VolumeSpec::new("disk", file) };
    open_for(&Here, Some(owner), &spec, &mut |_| {})
}

fn at_once(path: &Path, owner: &str, read_only: bool) -> Opened {
    within(0, path, owner, read_only)
}

/// The server that will be killed: this program started again. It reads into memory that outlives it.
#[test]
#[ignore = "a process of its own, started by the others"]
fn server() {
    let path = PathBuf::from(std::env::var(VOLUME).expect("started by a test"));
    let volume = within(30_000, &path, "plane", true).expect("open");
    let mut ring = Ring::new(&RingConfig::default()).expect("ring");
    let mut lane = volume.lane(&mut ring, LaneId(1)).expect("lane");
    let memory = File::options().read(true).write(true).open(std::env::var(MEMORY).expect("set"));
    let memory = memory.expect("the client's memory");
    let memory = Mapping::file(&memory, 0, BYTES, Access::ReadWrite).expect("mapped");
    // As long as the process, which is killed with the read under way.
    let memory: &'static Mapping = Box::leak(Box::new(memory));
    let bufs = [memory.buf(0, BYTES).expect("inside")];
    let (offset, len) = (PLACE, BYTES as u64);
    let mut request =
        Request { op: OpKind::Read, offset, len, bufs: &bufs, tag: Tag(0), done: 0, passed: 0 };
    assert_eq!(lane.submit(&mut ring, &mut request), Submit::Pending);
    let mut out = Vec::new();
    loop {
        ring.wait(None).expect("wait");
        while let Some(completion) = ring.next() {
            let (_, token) = LaneId::split(completion.user_data);
            lane.complete(&mut ring, token, completion.result, &mut out);
        }
        if out.pop().is_some() {
            // Asked to refuse to wait, it has to be told to.
            assert_eq!(lane.submit(&mut ring, &mut request), Submit::Pending);
        }
    }
}

fn start(volume: &Path, memory: &Path) -> Child {
    Command::new(std::env::current_exe().expect("this program"))
        .args(["--exact", "server", "--ignored", "--nocapture"])
        .env(VOLUME, volume)
        .env(MEMORY, memory)
        .stdout(std::process::Stdio::null())
        .spawn()
        .expect("started")
}

/// Kills a server while the disk holds a read of it, and looks when another one can have the volume.
fn reads_are_waited_for(disk: &Disk, volume: &Path) {
    let memory = tempfile::NamedTempFile::new_in("/dev/shm").expect("memory");
    memory.as_file().set_len(BYTES as u64).expect("size");
    let arrived = || std::fs::read(memory.path()).expect("memory").contains(&0xab);
    disk.fill(PLACE, &[0xab; BYTES]);
    disk.hold_from(Kind::Read, PLACE);
    let mut first = start(volume, memory.path());
    while at_once(volume, "plane", false).is_ok() {
        std::thread::yield_now();
    }
    disk.wait_held(Kind::Read, 1);
    first.kill().expect("kill");
    assert_eq!(first.wait().expect("reaped").signal(), Some(9));
    assert!(!arrived(), "its read is in the kernel");
    let others = at_once(volume, "another", true).expect("others may read it meanwhile");
    let error = at_once(volume, "plane", true).map(drop).expect_err("its successor must not");
    assert!(error.to_string().contains("whose last reads have not ended"), "{error}");
    std::thread::scope(|scope| {
        let next = scope.spawn(|| within(30_000, volume, "plane", true));
        disk.release(Kind::Read);
        let next = next.join().expect("thread").expect("after the read");
        let before = arrived();
        std::thread::sleep(Duration::from_millis(20));
        assert_eq!(arrived(), before, "nothing arrives once the successor has begun");
        let twice = at_once(volume, "plane", true).map(drop).expect_err("one life at a time");
        assert!(twice.to_string().contains("still locked"), "{twice}");
        drop(next);
    });
    drop(others);
}

#[test]
fn reads_of_a_file_are_waited_for() {
    if !is_root("reads in the kernel at the death of a process") {
        return;
    }
    let disk = Disk::new(16 * MIB);
    let path = disk.path();
    reads_are_waited_for(&disk, &path);
}

#[test]
fn reads_of_a_device_are_waited_for() {
    if !is_root("reads of a device in the kernel at the death of a process") {
        return;
    }
    let disk = Disk::new(16 * MIB);
    let device = Loop::direct(&disk.path(), 512);
    reads_are_waited_for(&disk, device.path());
}
