//! A volume whose disk hangs, or whose client asks for much at once, beside one that behaves, on one channel.

use std::sync::Arc;

use block::conformance::TestBench;
use block::spec::{CacheMode, FileSpec, RamSpec, VolumeSpec};
use block::{OpKind, Tag, Volume, open};
use testkit::{Disk, Ext4, Kind, Loop, is_root};

const MIB: u64 = 1 << 20;
const WRITE: OpKind = OpKind::Write { fua: false };

fn file(path: impl Into<std::path::PathBuf>, cache: CacheMode) -> Arc<dyn Volume> {
    let file = FileSpec { cache, ..FileSpec::new(path) };
    let spec = VolumeSpec { block_size: 4096, ..VolumeSpec::new("disk", file) };
    open(&spec).expect("open")
}

/// A write, a read and a flush of a volume that behaves are answered while others hang.
fn behaves(bench: &mut TestBench, lane: usize, hung: usize) {
    let buf = bench.buf(0, 4096);
    let read = [buf];
    let kinds =
        [(WRITE, 4096, &read[..]), (OpKind::Read, 4096, &read[..]), (OpKind::Flush, 0, &[])];
    for (op, len, bufs) in kinds {
        let tag = bench.start_on(lane, op, 0, len, bufs);
        let (answered, result) = bench.finished().expect("under way");
        assert_eq!((answered, result), (tag, Ok(())), "{op:?}");
        assert_eq!(bench.in_flight(), hung, "{op:?}");
    }
}

#[test]
fn a_frozen_file_system_leaves_threads_for_a_healthy_one() {
    if !is_root("a frozen file system beside a healthy one") {
        return;
    }
    let frozen = Ext4::new(64 * MIB);
    let healthy = tempfile::NamedTempFile::new().expect("file");
    healthy.as_file().set_len(MIB).expect("size");
    for (cache, op) in [
        (CacheMode::Direct, WRITE),
        (CacheMode::Buffered, WRITE),
        (CacheMode::Buffered, OpKind::Write { fua: true }),
        (CacheMode::Buffered, OpKind::WriteZeroes { unmap: true, fua: false }),
    ] {
        let path = frozen.path().join("disk");
        std::fs::write(&path, vec![1; MIB as usize]).expect("content");
        let volumes = (file(&path, cache), file(healthy.path(), CacheMode::Direct));
        let mut bench = TestBench::new(&*volumes.0, MIB as usize);
        let lane = bench.add(&*volumes.1);
        frozen.freeze();
        let mut waiting: Vec<Tag> = (0..40)
            .map(|index| {
                let buf = bench.buf(index * 4096, 4096);
                let bufs = [buf];
                let data = if matches!(op, OpKind::Write { .. }) { &bufs[..] } else { &[] };
                bench.start(op, index as u64 * 4096, 4096, data)
            })
            .collect();
        behaves(&mut bench, lane, 40);
        frozen.thaw();
        while let Some((tag, result)) = bench.finished() {
            assert_eq!(result, Ok(()), "{cache:?} {op:?}");
            waiting.retain(|waits| *waits != tag);
        }
        assert!(waiting.is_empty());
        bench.close();
    }
}

#[test]
fn a_hung_disk_that_cannot_say_so_leaves_threads_for_a_healthy_one() {
    if !is_root("a disk that hangs below the kernel beside a healthy one") {
        return;
    }
    let healthy = tempfile::NamedTempFile::new().expect("file");
    healthy.as_file().set_len(MIB).expect("size");
    for cache in [CacheMode::Direct, CacheMode::Buffered] {
        let disk = Disk::new(MIB);
        let volumes = (file(disk.path(), cache), file(healthy.path(), CacheMode::Direct));
        let mut bench = TestBench::new(&*volumes.0, MIB as usize);
        let lane = bench.add(&*volumes.1);
        disk.hold(Kind::Read);
        for index in 0..40 {
            let buf = bench.buf(index * 4096, 4096);
            // Behind what opening has read.
            bench.start(OpKind::Read, (index as u64 + 64) * 4096, 4096, &[buf]);
        }
        behaves(&mut bench, lane, 40);
        disk.release(Kind::Read);
        while let Some((_, result)) = bench.finished() {
            assert_eq!(result, Ok(()), "{cache:?}");
        }
        bench.close();
    }
}

/// The kernel has to read a page before it takes a part of it, and waits for that in a thread each: it is never asked whether it would.
#[test]
fn parts_of_pages_of_a_device_that_hangs_leave_threads_for_a_healthy_one() {
    if !is_root("a device that hangs below the kernel beside a healthy one") {
        return;
    }
    let healthy = tempfile::NamedTempFile::new().expect("file");
    healthy.as_file().set_len(MIB).expect("size");
    let disk = Disk::new(MIB);
    let device = Loop::new(&disk.path(), 512);
    let buffered = FileSpec { cache: CacheMode::Buffered, ..FileSpec::new(device.path()) };
    let hung = open(&VolumeSpec { block_size: 512, ..VolumeSpec::new("hung", buffered) });
    let volumes = (hung.expect("open"), file(healthy.path(), CacheMode::Direct));
    let mut bench = TestBench::new(&*volumes.0, MIB as usize);
    let lane = bench.add(&*volumes.1);
    disk.hold(Kind::Read);
    for index in 0..40 {
        let buf = bench.buf(index * 512, 512);
        // Behind what opening has read, and far enough from each other for one read not to bring the next one's page.
        bench.start(WRITE, (index as u64 + 64) * 8192, 512, &[buf]);
    }
    behaves(&mut bench, lane, 40);
    disk.release(Kind::Read);
    while let Some((_, result)) = bench.finished() {
        assert_eq!(result, Ok(()));
    }
    bench.close();
}

#[test]
fn a_new_file_is_filled_although_every_write_has_to_wait() {
    let sparse = tempfile::NamedTempFile::new().expect("file");
    sparse.as_file().set_len(4 * MIB).expect("size");
    let volume = file(sparse.path(), CacheMode::Auto);
    let mut bench = TestBench::new(&*volume, 4 << 20);
    for index in 0..1024_usize {
        let buf = bench.buf(index * 4096, 4096);
        buf.fill(index as u8 | 1);
        bench.start(WRITE, index as u64 * 4096, 4096, &[buf]);
    }
    while let Some((_, result)) = bench.finished() {
        assert_eq!(result, Ok(()));
    }
    bench.close();
    let content = std::fs::read(sparse.path()).expect("read");
    for (index, block) in content.chunks(4096).enumerate() {
        assert!(block.iter().all(|byte| *byte == index as u8 | 1), "block {index}");
    }
}

#[test]
fn long_copies_let_others_pass() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("folder in /dev/shm");
    let ram = RamSpec::new(folder.path().join("ram"));
    let made = FileSpec { create: true, ..FileSpec::new(folder.path().join("file")) };
    let specs = [VolumeSpec::new("ram", ram), VolumeSpec::new("file", made)];
    for spec in specs.map(|spec| VolumeSpec { bytes: Some(16 * MIB), ..spec }) {
        let volume = open(&spec).expect("open");
        let mut bench = TestBench::new(&*volume, 17 << 20);
        let neighbour = bench.add(&*volume);
        bench.write(0, &vec![7; 16 << 20]).expect("write");
        let all = bench.buf(0, 16 << 20);
        all.fill(0);
        for op in [OpKind::Read, WRITE] {
            let long: Vec<Tag> = (0..4).map(|_| bench.start(op, 0, 16 * MIB, &[all])).collect();
            let small = [bench.buf(16 << 20, 4096)];
            for lane in [neighbour, 0] {
                let tag = bench.start_on(lane, OpKind::Read, 0, 4096, &small);
                assert_eq!(bench.finished(), Some((tag, Ok(()))), "{} {op:?}", spec.name);
                assert_eq!(bench.in_flight(), long.len());
            }
            let before = bench.completions();
            let mut ended = Vec::new();
            while let Some((tag, result)) = bench.finished() {
                assert_eq!(result, Ok(()));
                ended.push((tag, bench.completions() - before));
            }
            assert!(long.iter().all(|tag| ended.iter().any(|(one, _)| one == tag)), "{ended:?}");
            let (first, rounds) = (ended[0].1, ended[3].1);
            assert!(rounds >= 56, "a round for each MiB at least");
            // One after the other, the first would end after a quarter.
            assert!(first > rounds / 2, "they take turns: {ended:?}");
            assert_eq!(bench.bytes(0, 16 << 20), vec![7; 16 << 20], "{} {op:?}", spec.name);
        }
        bench.close();
    }
}
