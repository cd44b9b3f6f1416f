//! The suite over every kind of volume and every wrapper.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use super::{Options, run};
use crate::{Volume, open};
use spec::{
    CacheMode, DelaySpec, FaultSpec, FileSpec, Jitter, LimitSpec, NullSpec, RamSpec, VolumeKind,
    VolumeSpec,
};

const SIZE: u64 = 8 << 20;

/// A folder and the names of files in it that were not there before.
struct Folder {
    folder: tempfile::TempDir,
    count: AtomicU32,
}

impl Folder {
    fn on_disk() -> Folder {
        Folder { folder: tempfile::tempdir().expect("folder"), count: AtomicU32::new(0) }
    }

    fn in_memory() -> Folder {
        let folder = tempfile::tempdir_in("/dev/shm").expect("folder in /dev/shm");
        Folder { folder, count: AtomicU32::new(0) }
    }

    fn name(&self) -> PathBuf {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        self.folder.path().join(format!("volume{count}"))
    }

    fn file(&self, cache: CacheMode, block_size: u32) -> VolumeSpec {
        let file = FileSpec { cache, create: true, ..FileSpec::new(self.name()) };
        let mut spec = VolumeSpec::new("test", VolumeKind::File(file));
        (spec.bytes, spec.block_size) = (Some(SIZE), block_size);
        spec
    }

    fn ram(&self, preallocate: bool) -> VolumeSpec {
        let ram = RamSpec { preallocate, ..RamSpec::new(self.name()) };
        let mut spec = VolumeSpec::new("test", VolumeKind::Ram(ram));
        spec.bytes = Some(SIZE);
        spec
    }
}

fn opened(spec: &VolumeSpec) -> Arc<dyn Volume> {
    open(spec).unwrap_or_else(|error| panic!("{error}"))
}

fn options() -> Options {
    Options { grow_to: Some(SIZE + 64 * 1024), ..Options::default() }
}

#[test]
fn files_on_disk() {
    let folder = Folder::on_disk();
    for cache in [CacheMode::Auto, CacheMode::Direct, CacheMode::Buffered] {
        run(&|| opened(&folder.file(cache, 4096)), &options());
    }
    for cache in [CacheMode::Auto, CacheMode::Buffered] {
        run(&|| opened(&folder.file(cache, 512)), &Options { seed: 2, ..options() });
    }
}

#[test]
fn files_in_a_tmpfs() {
    let folder = Folder::in_memory();
    for block_size in [512, 4096] {
        run(&|| opened(&folder.file(CacheMode::Auto, block_size)), &options());
    }
}

#[test]
fn files_written_through() {
    let folder = Folder::on_disk();
    let make = || {
        let spec = VolumeSpec { write_through: true, ..folder.file(CacheMode::Auto, 512) };
        opened(&spec)
    };
    assert!(!make().geometry().write_cache);
    run(&make, &Options { operations: 100, ..options() });
}

#[test]
fn read_only_files() {
    let folder = Folder::on_disk();
    let make = || {
        let mut spec = folder.file(CacheMode::Auto, 512);
        drop(opened(&spec));
        spec.read_only = true;
        opened(&spec)
    };
    assert!(make().geometry().read_only);
    run(&make, &options());
}

#[test]
fn ram() {
    let folder = Folder::in_memory();
    for preallocate in [false, true] {
        run(&|| opened(&folder.ram(preallocate)), &options());
    }
    let make = || {
        let mut spec = folder.ram(false);
        drop(opened(&spec));
        spec.read_only = true;
        opened(&spec)
    };
    run(&make, &options());
}

#[test]
fn null() {
    for zero_reads in [false, true] {
        for block_size in [512, 4096] {
            let kind = VolumeKind::Null(NullSpec { zero_fill: zero_reads });
            let spec =
                VolumeSpec { bytes: Some(SIZE), block_size, ..VolumeSpec::new("null", kind) };
            run(&|| opened(&spec), &Options { keeps_data: false, ..options() });
        }
    }
}

#[test]
fn wrapped_volumes() {
    let (disk, memory) = (Folder::on_disk(), Folder::in_memory());
    let limit = |mut spec: VolumeSpec| {
        spec.limit = Some(LimitSpec {
            iops: 20_000,
            iops_burst: 50,
            read_iops: 15_000,
            read_iops_burst: 50,
            write_bytes_per_s: 400 << 20,
            write_bytes_burst: 1 << 20,
            ..LimitSpec::default()
        });
        opened(&spec)
    };
    let few = Options { operations: 100, ..options() };
    run(&|| limit(disk.file(CacheMode::Auto, 4096)), &few);
    run(&|| limit(memory.ram(false)), &few);
    let delay = |mut spec: VolumeSpec, depth| {
        let jitter = if depth == 0 { Jitter::Normal } else { Jitter::Uniform };
        spec.delay = Some(DelaySpec { min_us: 20, max_us: 300, jitter, depth, seed: 3 });
        opened(&spec)
    };
    run(&|| delay(disk.file(CacheMode::Auto, 512), 0), &few);
    run(&|| delay(memory.ram(false), 8), &few);
    let late = |mut spec: VolumeSpec| {
        // Faults that cost nothing but time, so that the suite can hold; the others have tests of their own.
        let (slow_ppm, slow_us) = (50_000, 100);
        spec.fault = Some(FaultSpec { seed: 5, slow_ppm, slow_us, ..FaultSpec::default() });
        spec.limit = Some(LimitSpec { iops: 100_000, ..LimitSpec::default() });
        spec.delay = Some(DelaySpec { max_us: 50, ..DelaySpec::default() });
        opened(&spec)
    };
    run(&|| late(memory.ram(false)), &few);
    run(&|| late(disk.file(CacheMode::Auto, 4096)), &few);
}

/// A loop device over a file, given back on drop.
struct Loop {
    device: String,
}

impl Loop {
    fn new(folder: &Folder, sector: u32) -> Loop {
        let file = folder.name();
        std::fs::File::create(&file).and_then(|f| f.set_len(SIZE)).expect("backing file");
        let output = Command::new("losetup")
            .args(["--find", "--show", "--sector-size", &sector.to_string()])
            .arg(&file)
            .output()
            .expect("losetup (package util-linux, or mount on Debian) is needed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        Loop { device: String::from_utf8(output.stdout).expect("a name").trim().to_owned() }
    }

    fn spec(&self, block_size: u32) -> VolumeSpec {
        let kind = VolumeKind::File(FileSpec::new(&self.device));
        VolumeSpec { block_size, ..VolumeSpec::new("loop", kind) }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let done = Command::new("losetup").args(["--detach", &self.device]).status();
        assert!(std::thread::panicking() || done.is_ok_and(|status| status.success()));
    }
}

/// Loop devices are root's. Anybody else is told so.
fn may_make_devices() -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        super::not_tested("volumes on block devices, because loop devices need root");
    }
    root
}

#[test]
fn block_devices() {
    if !may_make_devices() {
        return;
    }
    let folder = Folder::on_disk();
    let few = Options { operations: 150, ..Options::default() };
    for (sector, block_size) in [(512, 512), (512, 4096), (4096, 4096), (4096, 512)] {
        let device = Loop::new(&folder, sector);
        let spec = device.spec(block_size);
        run(&|| opened(&spec), &few);
        // A device follows its own size.
        let volume = opened(&spec);
        assert_eq!(volume.geometry().bytes, SIZE);
        let error = volume.resize(SIZE * 2).expect_err("the device is smaller");
        assert!(error.to_string().contains("resize the device itself"), "{error}");
        volume.resize(0).expect("takes over the size");
        assert_eq!(volume.geometry().bytes, SIZE);
        let impatient = FileSpec { lock_wait_ms: 0, ..FileSpec::new(&device.device) };
        let second = VolumeSpec { kind: VolumeKind::File(impatient), ..spec.clone() };
        let error = open(&second).map(drop).expect_err("has it open");
        let me = format!("still locked by process {}", std::process::id());
        assert!(error.to_string().contains(&me), "{error}");
        drop(volume);
        if sector == 4096 && block_size == 512 {
            let mut direct = spec.clone();
            direct.kind = VolumeKind::File(FileSpec {
                cache: CacheMode::Direct,
                ..FileSpec::new(&device.device)
            });
            let error = open(&direct).map(drop).expect_err("4096-byte sectors");
            assert!(error.to_string().contains("set block_size to 4096"), "{error}");
        }
    }
}
