//! What the conformance suite does not reach: opening, locking, resizing, and completions that do not go well.

use std::fs::File;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::time::Duration;

use memory::Lasting;
use rustix::fs::{FlockOperation, flock};
use uring::{Ring, RingConfig};

use super::lane::FileLane;
use super::*;
use crate::conformance::TestBench;
use crate::{
    Finish, IoError, OpKind, Outcome, Request, Submit, Tag, Wait, open, open_part, open_with,
};
use spec::{CacheMode, VolumeKind};

mod known;
mod locks;
mod passing;
mod poison;

const MIB: u64 = 1 << 20;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("folder"))
    }

    fn path(&self) -> PathBuf {
        self.0.path().join("disk")
    }

    fn make(&self, bytes: u64) -> PathBuf {
        let path = self.path();
        File::create(&path).and_then(|file| file.set_len(bytes)).expect("file");
        path
    }
}

fn spec(path: impl Into<PathBuf>, change: impl FnOnce(&mut FileSpec)) -> VolumeSpec {
    let mut file = FileSpec { lock_wait_ms: 60, ..FileSpec::new(path) };
    change(&mut file);
    VolumeSpec::new("disk", VolumeKind::File(file))
}

fn file_volume(spec: &VolumeSpec) -> FileVolume {
    let VolumeKind::File(file) = &spec.kind else { panic!("not a file") };
    let mut opening = Opening {
        files: &crate::Here,
        owner: None,
        event: &mut |_| {},
        slot: None,
        made_up_for: false,
    };
    FileVolume::open(spec, file, &mut opening).unwrap_or_else(|error| panic!("{error}"))
}

/// A file that another lane had a moment ago: a ring that is gone lets go of its files a little later.
fn patient(path: impl Into<PathBuf>, change: impl FnOnce(&mut FileSpec)) -> VolumeSpec {
    spec(path, |file| {
        file.lock_wait_ms = 60_000;
        change(file);
    })
}

/// The text of the error that opening gives.
fn refused(spec: &VolumeSpec) -> String {
    match open(spec) {
        Ok(_) => panic!("{spec:?} was opened"),
        Err(error) => error.to_string(),
    }
}

#[test]
fn what_cannot_be_opened_says_why_and_what_mends_it() {
    let place = Place::new();
    let absent = refused(&spec(place.path(), |_| {}));
    assert!(absent.contains("volume disk: opening"), "{absent}");
    assert!(absent.contains("set create and size"), "{absent}");
    let nowhere = VolumeSpec {
        bytes: Some(1 << 20),
        ..spec(place.0.path().join("none/disk"), |file| file.create = true)
    };
    let nowhere = refused(&nowhere);
    assert!(nowhere.contains("make its folder"), "{nowhere}");
    let folder = refused(&spec(place.0.path(), |_| {}));
    assert!(folder.contains("name a file in it"), "{folder}");
    let device = refused(&spec("/dev/null", |_| {}));
    assert!(device.contains("neither a regular file nor a block device"), "{device}");
    let empty = refused(&spec(place.make(0), |_| {}));
    assert!(empty.contains("has 0 bytes, less than one block"), "{empty}");
    let path = place.make(MIB);
    let size = VolumeSpec { bytes: Some(2 * MIB), ..spec(&path, |_| {}) };
    assert!(refused(&size).contains("has 1048576 bytes, but size says 2097152"));
    for (change, expected) in [
        (VolumeSpec { block_size: 1024, ..spec(&path, |_| {}) }, "use 512 or 4096"),
        (VolumeSpec { bytes: Some(1000), ..spec(&path, |_| {}) }, "multiple of block_size"),
        (VolumeSpec { bytes: Some(0), ..spec(&path, |_| {}) }, "multiple of block_size"),
        (spec(&path, |file| file.create = true), "size is not set"),
    ] {
        let text = refused(&change);
        assert!(text.contains(expected), "{text}");
    }
    // Nothing of this has left a lock or a file behind.
    assert!(open(&spec(&path, |_| {})).is_ok());
}

#[test]
fn a_file_of_no_whole_number_of_blocks_loses_its_end_with_a_note() {
    let place = Place::new();
    let spec = spec(place.make(MIB + 100), |_| {});
    let mut events = Vec::new();
    let volume = open_with(&spec, &mut |event| events.push(event)).expect("open");
    assert_eq!(volume.geometry().bytes, MIB);
    let [OpenEvent::Note(note), ..] = &events[..] else { panic!("{events:?}") };
    assert!(note.contains("the last 100 are not used"), "{note}");
}

#[test]
fn a_missing_file_is_made_sparse_or_whole_and_an_existing_one_is_left_alone() {
    for preallocate in [false, true] {
        let place = Place::new();
        let mut spec = spec(place.path(), |file| {
            (file.create, file.preallocate) = (true, preallocate);
        });
        spec.bytes = Some(MIB);
        let volume = open(&spec).expect("made");
        assert_eq!(volume.geometry().bytes, MIB);
        let meta = std::fs::metadata(place.path()).expect("stat");
        assert_eq!(meta.blocks() * 512 >= MIB, preallocate, "{} blocks", meta.blocks());
        let mut bench = TestBench::new(&*volume, 8192);
        bench.write(4096, b"still here".repeat(512)[..4096].as_ref()).expect("write");
        bench.close();
        drop(volume);
        let volume = open(&spec).expect("there already");
        let mut bench = TestBench::new(&*volume, 8192);
        assert!(bench.read(4096, 4096).expect("read").starts_with(b"still here"));
        bench.close();
    }
}

#[test]
fn the_cache_is_chosen_from_what_the_target_can() {
    let place = Place::new();
    let path = place.make(MIB);
    let large = VolumeSpec { block_size: 4096, ..spec(&path, |_| {}) };
    assert!(file_volume(&large).direct(), "a disk's file system does direct I/O by pages");
    assert!(!file_volume(&spec(&path, |file| file.cache = CacheMode::Buffered)).direct());
    let memory = tempfile::NamedTempFile::new_in("/dev/shm").expect("file");
    memory.as_file().set_len(MIB).expect("size");
    assert!(!file_volume(&spec(memory.path(), |_| {})).direct());
    let text = refused(&spec(memory.path(), |file| file.cache = CacheMode::Direct));
    assert!(text.contains("has no direct I/O; set cache to buffered or auto"), "{text}");
}

#[test]
fn a_file_shrinks_and_follows_its_size() {
    let place = Place::new();
    let path = place.make(4 * MIB);
    let volume = open(&spec(&path, |_| {})).expect("open");
    assert!(volume.resize(MIB + 1).is_err());
    assert_eq!(volume.geometry().bytes, 4 * MIB);
    let bench = TestBench::new(&*volume, 8192);
    let error = volume.resize(MIB).expect_err("a write could be under way");
    assert!(error.to_string().contains("stop its clients' queues first"), "{error}");
    assert_eq!(std::fs::metadata(&path).expect("stat").len(), 4 * MIB);
    bench.close();
    volume.resize(MIB).expect("shrink");
    let mut bench = TestBench::new(&*volume, 8192);
    assert_eq!(std::fs::metadata(&path).expect("stat").len(), MIB);
    assert_eq!(bench.read(2 * MIB, 4096), Err(IoError::OutOfRange));
    assert_eq!(bench.read(MIB - 4096, 4096).map(drop), Ok(()));
    // And follows what somebody else did to it.
    File::options().write(true).open(&path).and_then(|f| f.set_len(3 * MIB)).expect("set_len");
    volume.resize(0).expect("takes over");
    assert_eq!(volume.geometry().bytes, 3 * MIB);
    assert_eq!(bench.read(2 * MIB, 4096), Ok(vec![0; 4096]));
    bench.close();
}

#[test]
fn a_file_truncated_by_somebody_fails_reads_behind_its_end() {
    let place = Place::new();
    for (cache, block_size) in [(CacheMode::Auto, 4096), (CacheMode::Buffered, 512)] {
        let path = place.make(4 * MIB);
        let volume = open(&VolumeSpec { block_size, ..spec(&path, |f| f.cache = cache) });
        let volume = volume.expect("open");
        let mut bench = TestBench::new(&*volume, 64 * 1024);
        bench.write(0, &[7; 8192]).expect("write");
        let file = File::options().write(true).open(&path).expect("open");
        file.set_len(MIB + 4096 + 100).expect("truncate");
        assert_eq!(bench.read(2 * MIB, 4096), Err(IoError::Io));
        assert_eq!(bench.read(MIB, 32768), Err(IoError::Io), "partly there");
        assert_eq!(bench.read(0, 8192), Ok(vec![7; 8192]));
        // Removed from its folder it is still there for those who have it open.
        std::fs::remove_file(&path).expect("remove");
        bench.write(0, &[8; 8192]).expect("write");
        assert_eq!(bench.read(0, 8192), Ok(vec![8; 8192]));
        bench.close();
    }
}

#[test]
fn requests_wait_for_bounce_buffers_and_all_are_served() {
    let place = Place::new();
    let volume = file_volume(&VolumeSpec { block_size: 4096, ..spec(place.make(MIB), |_| {}) });
    assert!(volume.direct());
    let mut bench = TestBench::new(&volume, 2 << 20);
    for index in 0..200_usize {
        let buf = bench.buf(index * 5000 + 1, 4096);
        buf.fill(index as u8);
        bench.start(OpKind::Write { fua: false }, index as u64 * 4096, 4096, &[buf]);
    }
    while let Some((_, result)) = bench.finished() {
        assert_eq!(result, Ok(()));
    }
    assert!(bench.parks(Wait::NoDma) > 0, "200 requests cannot have had 16 buffers at once");
    for index in 0..200_usize {
        assert_eq!(bench.read(index as u64 * 4096, 4096), Ok(vec![index as u8; 4096]));
    }
    bench.close();
}

#[test]
fn nothing_is_copied_for_a_request_that_finds_no_thread() {
    let place = Place::new();
    let spec = VolumeSpec { block_size: 4096, ..spec(place.make(MIB), |_| {}) };
    let mut volume = file_volume(&spec);
    assert!(volume.direct());
    // The file system cannot say that it would have to wait.
    Arc::get_mut(&mut volume.shared).expect("no lane yet").target.nowait = false;
    let mut bench = TestBench::new(&volume, MIB as usize);
    for index in 0..40 {
        let buf = bench.buf(index * 5000 + 1, 4096);
        bench.start(WRITE, index as u64 * 4096, 4096, &[buf]);
    }
    while let Some((_, result)) = bench.finished() {
        assert_eq!(result, Ok(()));
    }
    // There are as many buffers as threads: who finds no thread does not even ask for one.
    assert!(bench.parks(Wait::BackEndFull) > 0);
    assert_eq!(bench.parks(Wait::NoDma), 0);
    bench.close();
}

#[test]
fn flushes_that_wait_together_share_one_fdatasync() {
    let place = Place::new();
    let volume = file_volume(&spec(place.make(MIB), |_| {}));
    let mut bench = TestBench::new(&volume, 8192);
    bench.write(0, &[1; 4096]).expect("write");
    let before = bench.completions();
    for _ in 0..100 {
        bench.start(OpKind::Flush, 0, 0, &[]);
    }
    let mut answers = 0;
    while let Some((_, result)) = bench.finished() {
        assert_eq!(result, Ok(()));
        answers += 1;
    }
    assert_eq!((answers, bench.completions() - before), (100, 2));
    bench.close();
}

/// A lane whose completions are the real ones with the result that a test wants.
struct Scripted {
    ring: Ring,
    lane: Box<dyn Lane>,
    memory: Lasting,
    out: Vec<Finish>,
}

impl Scripted {
    fn new(volume: &FileVolume) -> Scripted {
        let mut ring = Ring::new(&RingConfig::default()).expect("ring");
        let lane = volume.lane(&mut ring, LaneId(1)).expect("lane");
        let memory = Lasting::new(64 * 1024).expect("memory");
        Scripted { ring, lane, memory, out: Vec::new() }
    }

    fn submit(&mut self, op: OpKind, len: u64, done: u64) -> Submit {
        let data = matches!(op, OpKind::Read | OpKind::Write { .. });
        // The memory is as long as the longest transfer of these tests.
        let bufs = [self.memory.buf(0, if data { len as usize } else { 0 }).expect("inside")];
        let bufs = if data { &bufs[..] } else { &[] };
        let mut request = Request { op, offset: 0, len, bufs, tag: Tag(9), done, passed: 0 };
        self.lane.submit(&mut self.ring, &mut request)
    }

    /// Completes the one operation in flight with this result, or as it ends.
    fn complete(&mut self, result: Option<i32>) -> Option<Outcome> {
        self.ring.wait(Some(Duration::from_secs(60))).expect("wait");
        let completion = self.ring.next().expect("one is in flight");
        let (_, token) = LaneId::split(completion.user_data);
        let result = result.unwrap_or(completion.result);
        self.lane.complete(&mut self.ring, token, result, &mut self.out);
        assert!(self.out.iter().all(|finish| finish.tag == Tag(9)));
        self.out.pop().map(|finish| finish.outcome)
    }

    fn round(&mut self, op: OpKind, len: u64, done: u64, result: Option<i32>) -> Outcome {
        assert_eq!(self.submit(op, len, done), Submit::Pending);
        match self.complete(result).expect("finished") {
            // The file system had to wait for it, and said so.
            Outcome::Again { done: none } if result.is_none() && none == done => {
                assert_eq!(self.submit(op, len, done), Submit::Pending);
                self.complete(None).expect("finished")
            }
            outcome => outcome,
        }
    }
}

const WRITE: OpKind = OpKind::Write { fua: false };

#[test]
fn short_transfers_go_round_again_and_empty_ones_fail() {
    let place = Place::new();
    let path = place.make(MIB);
    for (block_size, cache) in [(4096, CacheMode::Direct), (512, CacheMode::Buffered)] {
        let spec = VolumeSpec { block_size, ..patient(&path, |file| file.cache = cache) };
        let mut lane = Scripted::new(&file_volume(&spec));
        for op in [OpKind::Read, WRITE] {
            assert_eq!(lane.round(op, 32768, 0, None), Outcome::Done(Ok(())));
            assert_eq!(lane.round(op, 32768, 0, Some(8192)), Outcome::Again { done: 8192 });
            assert_eq!(lane.round(op, 32768, 8192, Some(4096)), Outcome::Again { done: 12288 });
            assert_eq!(lane.round(op, 32768, 12288, None), Outcome::Done(Ok(())));
            assert_eq!(lane.round(op, 32768, 4096, Some(0)), Outcome::Done(Err(IoError::Io)));
            for (errno, error) in [
                (libc::EIO, IoError::Io),
                (libc::ENOSPC, IoError::NoSpace),
                (libc::EDQUOT, IoError::NoSpace),
                (libc::ESTALE, IoError::Gone),
                (libc::ENODEV, IoError::Gone),
                (libc::EBADE, IoError::Fenced),
                (libc::ESHUTDOWN, IoError::Fenced),
                (libc::EINVAL, IoError::Io),
            ] {
                let outcome = lane.round(op, 4096, 0, Some(-errno));
                assert_eq!(outcome, Outcome::Done(Err(error)), "errno {errno}");
            }
        }
        assert_eq!(lane.submit(OpKind::Read, 4096, 4096), Submit::Done(Ok(())));
        assert_eq!(lane.submit(OpKind::Read, 4096, u64::MAX), Submit::Done(Ok(())));
    }
    // Direct I/O goes on at a whole unit of the device, buffered where it stopped.
    let direct =
        VolumeSpec { block_size: 4096, ..patient(&path, |file| file.cache = CacheMode::Direct) };
    let volume = file_volume(&direct);
    let unit = i32::try_from(volume.shared.target.direct.expect("direct").offset).expect("small");
    let mut lane = Scripted::new(&volume);
    let outcome = lane.round(OpKind::Read, 32768, 0, Some(unit + 1));
    assert_eq!(outcome, Outcome::Again { done: unit as u64 });
    assert_eq!(lane.round(OpKind::Read, 32768, 0, Some(1)), Outcome::Done(Err(IoError::Io)));
}

#[test]
fn lanes_that_share_a_witness_flush_in_turn() {
    let place = Place::new();
    let mut volume = file_volume(&spec(place.make(MIB), |_| {}));
    let shared = Arc::get_mut(&mut volume.shared).expect("no lane yet");
    shared.witnesses = Arc::new(Witnesses::some(&shared.file, 1, &crate::Here).expect("open"));
    let (mut lane, mut other) = (Scripted::new(&volume), Scripted::new(&volume));
    // One has the next flush ready whenever one ends.
    assert_eq!(lane.submit(OpKind::Flush, 0, 0), Submit::Pending);
    assert_eq!(lane.submit(OpKind::Flush, 0, 0), Submit::Pending);
    assert_eq!(other.submit(OpKind::Flush, 0, 0), Submit::Pending);
    let done = Some(Outcome::Done(Ok(())));
    assert_eq!(lane.complete(None), done);
    assert_eq!(other.complete(None), None, "it has waited");
    assert_eq!(other.complete(None), done, "and it is its turn");
    assert_eq!(lane.complete(None), None);
    assert_eq!(lane.complete(None), done);
}

#[test]
fn zeroes_are_written_where_no_command_makes_them() {
    let place = Place::new();
    let path = place.make(4 * MIB);
    std::fs::write(&path, vec![0xaa; 4 * MIB as usize]).expect("content");
    let volume = file_volume(&spec(&path, |_| {}));
    let mut lane = Scripted::new(&volume);
    let unknown = Some(-libc::EOPNOTSUPP);
    let op = OpKind::WriteZeroes { unmap: true, fua: false };
    // The hole, then the command, then rounds of writes: each refusal is remembered.
    assert_eq!(lane.round(op, 3 * MIB, 0, unknown), Outcome::Again { done: 0 });
    assert!(volume.shared.no_punch.load(Ordering::Relaxed));
    assert_eq!(lane.round(op, 3 * MIB, 0, unknown), Outcome::Again { done: 0 });
    assert!(volume.shared.no_zero_range.load(Ordering::Relaxed));
    assert_eq!(lane.round(op, 3 * MIB, 0, None), Outcome::Again { done: MIB });
    assert_eq!(lane.round(op, 3 * MIB, MIB, None), Outcome::Again { done: 2 * MIB });
    assert_eq!(lane.round(op, 3 * MIB, 2 * MIB, None), Outcome::Done(Ok(())));
    let content = std::fs::read(&path).expect("read");
    let (zeroed, rest) = content.split_at(3 * MIB as usize);
    assert!(zeroed.iter().all(|byte| *byte == 0) && rest.iter().all(|byte| *byte == 0xaa));
    assert!(volume.geometry().discard);
    let outcome = lane.round(OpKind::Discard, MIB, 0, unknown);
    assert_eq!(outcome, Outcome::Done(Err(IoError::Unsupported)));
    assert!(!volume.geometry().discard);
    assert_eq!(lane.submit(OpKind::Discard, MIB, 0), Submit::Done(Err(IoError::Unsupported)));
}

#[test]
fn without_a_write_cache_everything_is_durable_when_it_is_answered() {
    let place = Place::new();
    let through = VolumeSpec { write_through: true, ..spec(place.make(MIB), |_| {}) };
    let mut lane = Scripted::new(&file_volume(&through));
    // A write-zeroes by command is followed by an fdatasync of its own.
    assert_eq!(
        lane.submit(OpKind::WriteZeroes { unmap: false, fua: false }, MIB, 0),
        Submit::Pending
    );
    assert_eq!(lane.complete(Some(0)), None);
    assert_eq!(lane.complete(None), Some(Outcome::Done(Ok(()))));
    drop(lane);
    for (write_cache, fua, durable) in
        [(true, false, false), (true, true, true), (false, false, true), (false, true, true)]
    {
        let volume = file_volume(&VolumeSpec {
            write_through: !write_cache,
            ..patient(place.path(), |_| {})
        });
        let mut ring = Ring::new(&RingConfig::default()).expect("ring");
        let files = Files::register(&volume.shared, &mut ring).expect("slots");
        let lane = FileLane::new(Arc::clone(&volume.shared), files, LaneId(0).into());
        let lane = lane.map_err(|(_, error)| error).expect("lane");
        assert_eq!(lane.durable(fua), durable, "cache {write_cache}, fua {fua}");
    }
}

/// A tmpfs of a given size, root's to mount.
struct SmallTmpfs(tempfile::TempDir);

impl SmallTmpfs {
    fn new(options: &str) -> Option<SmallTmpfs> {
        if !rustix::process::geteuid().is_root() {
            crate::conformance::not_tested("a full file system, because mounting one needs root");
            return None;
        }
        let folder = tempfile::tempdir().expect("folder");
        let mount = std::process::Command::new("mount")
            .args(["-t", "tmpfs", "-o", options, "tmpfs"])
            .arg(folder.path())
            .output()
            .expect("mount (package mount) is needed");
        assert!(mount.status.success(), "{}", String::from_utf8_lossy(&mount.stderr));
        Some(SmallTmpfs(folder))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for SmallTmpfs {
    fn drop(&mut self) {
        let done = std::process::Command::new("umount").arg("--lazy").arg(self.path()).status();
        assert!(std::thread::panicking() || done.is_ok_and(|status| status.success()));
    }
}

#[test]
fn a_full_file_system_fails_writes_and_nothing_else() {
    let Some(folder) = SmallTmpfs::new("size=1m") else { return };
    let mut spec = spec(folder.path().join("disk"), |file| file.create = true);
    spec.bytes = Some(4 * MIB);
    let volume = open(&spec).expect("sparse");
    let mut bench = TestBench::new(&*volume, 64 * 1024);
    let mut failed = 0;
    for index in 0..64_u64 {
        match bench.write(index * 65536, &[3; 65536]) {
            Ok(()) => {}
            Err(error) => {
                assert_eq!(error, IoError::NoSpace);
                failed += 1;
            }
        }
    }
    assert!((40..=60).contains(&failed), "{failed} of 64 in a quarter of the space");
    assert_eq!(bench.read(0, 65536), Ok(vec![3; 65536]));
    // What is given back can be had again.
    assert_eq!(bench.run(OpKind::Discard, 0, 512 * 1024, &[]), Ok(()));
    assert_eq!(bench.write(3 * MIB, &[4; 65536]), Ok(()));
    bench.close();
    drop(volume);
    let mut other = spec.clone();
    other.kind = VolumeKind::File(FileSpec {
        create: true,
        preallocate: true,
        ..FileSpec::new(folder.path().join("other"))
    });
    let text = refused(&other);
    assert!(text.contains("free some space"), "{text}");
    // A RAM volume over the same full file system.
    let ram = spec::RamSpec::new(folder.path().join("ram"));
    let ram = VolumeSpec { bytes: Some(4 * MIB), ..VolumeSpec::new("ram", VolumeKind::Ram(ram)) };
    let volume = open(&ram).expect("sparse");
    let mut bench = TestBench::new(&*volume, 64 * 1024);
    let results: Vec<_> = (0..64).map(|i| bench.write(i * 65536, &[5; 65536])).collect();
    assert!(results.iter().all(|result| matches!(result, Ok(()) | Err(IoError::NoSpace))));
    let first_bad = results.iter().position(Result::is_err).expect("it is full");
    for index in 0..first_bad as u64 {
        assert_eq!(bench.read(index * 65536, 65536), Ok(vec![5; 65536]), "{index} is lost");
    }
    std::fs::remove_file(folder.path().join("disk")).expect("make room");
    assert_eq!(bench.write(3 * MIB, &[6; 65536]), Ok(()), "room again");
    assert_eq!(bench.read(3 * MIB, 65536), Ok(vec![6; 65536]));
    bench.close();
}

#[test]
fn a_special_file_is_refused_without_being_opened() {
    let place = Place::new();
    let path = place.path();
    let made = Command::new("mkfifo").arg(&path).status().expect("mkfifo (coreutils)");
    assert!(made.success());
    for read_only in [false, true] {
        let fifo = VolumeSpec { read_only, ..spec(&path, |_| {}) };
        assert!(refused(&fifo).contains("neither a regular file nor a block device"));
    }
    let ram = VolumeSpec { bytes: Some(MIB), ..VolumeSpec::new("ram", spec::RamSpec::new(&path)) };
    assert!(refused(&ram).contains("neither a regular file nor a block device"));
    let folder = VolumeSpec { read_only: true, ..spec(place.0.path(), |_| {}) };
    assert!(refused(&folder).contains("neither a regular file nor a block device"));
}

#[test]
fn a_removed_file_is_noticed_while_the_volume_is_open() {
    let place = Place::new();
    let path = place.make(MIB);
    let volume = open(&VolumeSpec {
        limit: Some(spec::LimitSpec { iops: 1, ..Default::default() }),
        ..spec(&path, |_| {})
    })
    .expect("open");
    assert_eq!(volume.trouble(), None);
    std::fs::remove_file(&path).expect("remove");
    assert!(volume.trouble().expect("noticed").contains("its file was removed"));
    assert!(volume.removed());
}

#[test]
fn a_file_that_was_cut_is_noticed_while_the_volume_is_open() {
    let place = Place::new();
    let path = place.make(MIB);
    let volume = open(&spec(&path, |_| {})).expect("open");
    assert_eq!(volume.trouble(), None);
    let file = File::options().write(true).open(&path).expect("its file");
    file.set_len(4096).expect("cut");
    let told = volume.trouble().expect("noticed");
    assert!(told.contains("cut to 4096 bytes and had 1048576"), "{told}");
    assert!(!volume.removed());
    file.set_len(2 * MIB).expect("longer");
    assert_eq!(volume.trouble(), None);
}

#[test]
fn a_file_that_could_not_be_made_is_not_left_behind() {
    let place = Place::new();
    let path = place.path();
    let large = VolumeSpec {
        bytes: Some(1 << 62),
        ..spec(&path, |file| (file.create, file.preallocate) = (true, true))
    };
    refused(&large);
    assert!(!path.exists());
    let direct = VolumeSpec {
        bytes: Some(MIB),
        ..VolumeSpec::new(
            "shm",
            FileSpec {
                create: true,
                cache: CacheMode::Direct,
                ..FileSpec::new(format!("/dev/shm/trunkline-test-{}", std::process::id()))
            },
        )
    };
    assert!(refused(&direct).contains("has no direct I/O"));
    assert!(!direct.kind.path().expect("a path").exists());
}
