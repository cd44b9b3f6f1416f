//! What was lost is told to everybody who asks, on disks that lose pages which the kernel had answered.

use std::fs::File;

use block::conformance::TestBench;
use block::spec::{CacheMode, FileSpec, VolumeSpec};
use block::{IoError, LaneId, OpKind, Volume, open};
use testkit::{Disk, Kind, Loop, Options, Tmpfs, is_root};

const MIB: u64 = 1 << 20;
const FUA: OpKind = OpKind::Write { fua: true };

fn spec(path: impl Into<std::path::PathBuf>) -> VolumeSpec {
    let file = FileSpec { cache: CacheMode::Buffered, ..FileSpec::new(path) };
    VolumeSpec::new("disk", file)
}

fn forgetful() -> Disk {
    Disk::with(Options { bytes: MIB, write_back: true })
}

fn lanes<const N: usize>(volume: &dyn Volume) -> [TestBench; N] {
    std::array::from_fn(|index| TestBench::with_id(volume, 16384, LaneId(index as u16)))
}

fn durable(bench: &mut TestBench, offset: u64) -> Result<(), IoError> {
    let buf = bench.buf(8192, 4096);
    bench.run(FUA, offset, 4096, &[buf])
}

fn flush(bench: &mut TestBench) -> Result<(), IoError> {
    bench.run(OpKind::Flush, 0, 0, &[])
}

#[test]
fn a_durable_write_elsewhere_does_not_take_the_error_of_a_lost_write() {
    if !is_root("write-back that fails under two lanes") {
        return;
    }
    let disk = forgetful();
    let volume = open(&spec(disk.path())).expect("open");
    let [mut loser, mut other, mut third] = lanes(&*volume);
    loser.write(0, &[1; 4096]).expect("the cache takes it");
    disk.fail(Kind::Write, Some(libc::EIO));
    // Whichever pages it writes back: the error belongs to the file.
    assert_eq!(durable(&mut other, 0), Err(IoError::Io));
    disk.fail(Kind::Write, None);
    assert_eq!(flush(&mut loser), Err(IoError::Io), "the write of this lane is lost");
    assert_eq!(flush(&mut other), Err(IoError::Io));
    assert_eq!(durable(&mut third, 8192), Err(IoError::Io), "nothing is written any more");
    assert_eq!(third.write(8192, &[2; 4096]), Err(IoError::Io));
    [loser, other, third].into_iter().for_each(TestBench::close);
}

/// It needs no flush for that: who knows what else the disk had taken and not kept.
#[test]
fn a_durable_write_that_the_disk_refused_is_the_last_of_all_lanes() {
    if !is_root("durable writes that a disk refuses") {
        return;
    }
    for cache in [CacheMode::Buffered, CacheMode::Direct] {
        let disk = Disk::new(MIB);
        let file = FileSpec { cache, ..FileSpec::new(disk.path()) };
        let volume = open(&VolumeSpec::new("disk", file)).expect("open");
        let [mut refused, mut other] = lanes(&*volume);
        disk.fail(Kind::Write, Some(libc::EIO));
        assert_eq!(durable(&mut refused, 0), Err(IoError::Io), "{cache:?}");
        disk.fail(Kind::Write, None);
        assert_eq!(other.write(8192, &[2; 4096]), Err(IoError::Io), "{cache:?}");
        assert_eq!(flush(&mut other), Err(IoError::Io), "{cache:?}");
        [refused, other].into_iter().for_each(TestBench::close);
    }
}

#[test]
fn a_full_disk_found_by_a_durable_write_is_told_to_the_flush_that_lost() {
    if !is_root("write-back that finds no space") {
        return;
    }
    let disk = forgetful();
    let volume = open(&spec(disk.path())).expect("open");
    let [mut loser, mut other] = lanes(&*volume);
    loser.write(0, &[1; 4096]).expect("the cache takes it");
    disk.fail(Kind::Write, Some(libc::ENOSPC));
    // "No space" may be the write's own error, which harms nobody else, and may be that of a page long answered.
    assert_eq!(durable(&mut other, 0), Err(IoError::NoSpace));
    disk.fail(Kind::Write, None);
    assert!(flush(&mut loser).is_err(), "the write of this lane is lost");
    assert!(flush(&mut other).is_err());
    [loser, other].into_iter().for_each(TestBench::close);
}

#[test]
fn flushes_at_once_agree() {
    if !is_root("write-back that fails under flushes of several lanes") {
        return;
    }
    for round in 0..8 {
        let disk = forgetful();
        let volume = open(&spec(disk.path())).expect("open");
        // More than there are CPUs on a small machine.
        let mut lanes: [TestBench; 6] = lanes(&*volume);
        lanes[0].write(0, &[1; 4096]).expect("the cache takes it");
        disk.fail(Kind::Write, Some(libc::EIO));
        for lane in &mut lanes {
            lane.start(OpKind::Flush, 0, 0, &[]);
        }
        for (index, lane) in lanes.iter_mut().enumerate() {
            let (_, result) = lane.finished().expect("under way");
            assert_eq!(result, Err(IoError::Io), "round {round}, lane {index}");
        }
        lanes.into_iter().for_each(TestBench::close);
    }
}

#[test]
fn a_device_over_a_full_file_system_is_lost_for_all_lanes() {
    if !is_root("a device whose backing file has no space") {
        return;
    }
    let tmpfs = Tmpfs::new(MIB);
    let backing = tmpfs.path().join("disk");
    File::create(&backing).and_then(|file| file.set_len(8 * MIB)).expect("sparse");
    let device = Loop::new(&backing, 512);
    let volume = open(&spec(device.path())).expect("open");
    let mut loser = TestBench::with_id(&*volume, 4 << 20, LaneId(1));
    let [mut other] = lanes(&*volume);
    loser.write(0, &vec![1; 4 << 20]).expect("the cache takes it");
    assert_eq!(flush(&mut other), Err(IoError::Io));
    assert_eq!(flush(&mut loser), Err(IoError::Io));
    assert_eq!(loser.write(0, &[2; 4096]), Err(IoError::Io));
    [loser, other].into_iter().for_each(TestBench::close);
    drop(volume);
}

#[test]
fn a_full_disk_is_no_lost_write() {
    if !is_root("a file system that is full") {
        return;
    }
    let ext4 = testkit::Ext4::new(16 * MIB);
    let path = ext4.path().join("disk");
    File::create(&path).and_then(|file| file.set_len(64 * MIB)).expect("sparse");
    for cache in [CacheMode::Buffered, CacheMode::Auto] {
        let file = FileSpec { cache, ..FileSpec::new(&path) };
        let spec = VolumeSpec { write_through: true, ..VolumeSpec::new("thin", file) };
        let volume = open(&spec).expect("open");
        let mut bench = TestBench::new(&*volume, 1 << 20);
        let refused =
            (0..64).map(|index| bench.write(index * MIB, &[3; 1 << 20])).find(Result::is_err);
        assert_eq!(refused, Some(Err(IoError::NoSpace)), "{cache:?}");
        assert_eq!(bench.run(OpKind::Discard, 0, 64 * MIB, &[]), Ok(()), "{cache:?}");
        assert_eq!(bench.write(0, &[4; 4096]), Ok(()), "there is room again, {cache:?}");
        assert_eq!(flush(&mut bench), Ok(()), "{cache:?}");
        bench.close();
    }
}
