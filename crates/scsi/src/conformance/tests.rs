//! The suite over volumes of several kinds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use block::spec::{FileSpec, RamSpec, VolumeKind, VolumeSpec};
use block::{Volume, open};

use super::{run, run_optical};
use crate::UnitSpec;

const SIZE: u64 = 2 << 20;

/// A folder and fresh volumes in it.
struct Folder {
    folder: tempfile::TempDir,
    count: AtomicU32,
}

impl Folder {
    fn new(on_disk: bool) -> Folder {
        let folder = if on_disk { tempfile::tempdir() } else { tempfile::tempdir_in("/dev/shm") };
        Folder { folder: folder.expect("folder"), count: AtomicU32::new(0) }
    }

    fn path(&self) -> std::path::PathBuf {
        let count = self.count.fetch_add(1, Ordering::Relaxed);
        self.folder.path().join(format!("volume{count}"))
    }

    fn volume(&self, kind: VolumeKind, block_size: u32) -> Arc<dyn Volume> {
        let spec = VolumeSpec { bytes: Some(SIZE), block_size, ..VolumeSpec::new("disk", kind) };
        open(&spec).unwrap_or_else(|error| panic!("{error}"))
    }

    fn ram(&self, block_size: u32, preallocate: bool) -> Arc<dyn Volume> {
        let ram = RamSpec { preallocate, ..RamSpec::new(self.path()) };
        self.volume(VolumeKind::Ram(ram), block_size)
    }

    fn file(&self, block_size: u32) -> Arc<dyn Volume> {
        let file = FileSpec { create: true, ..FileSpec::new(self.path()) };
        self.volume(VolumeKind::File(file), block_size)
    }
}

fn nothing(_: &mut UnitSpec) {}

#[test]
fn disks_in_ram() {
    let folder = Folder::new(false);
    run(&|| folder.ram(512, false), &nothing);
    run(&|| folder.ram(4096, false), &nothing);
    run(&|| folder.ram(512, true), &|spec| spec.transfer_bytes_max = 512 * 512);
}

#[test]
fn disks_in_files() {
    let folder = Folder::new(true);
    run(&|| folder.file(512), &nothing);
    run(&|| folder.file(4096), &nothing);
}

#[test]
fn optical_drives() {
    let folder = Folder::new(false);
    run_optical(&|| folder.ram(512, false));
    let folder = Folder::new(true);
    run_optical(&|| folder.file(512));
}

#[test]
fn removable_and_read_only_disks() {
    let folder = Folder::new(false);
    run(&|| folder.ram(512, false), &|spec| spec.removable = true);
    run(&|| folder.ram(512, false), &|spec| spec.read_only = true);
    run(&|| folder.ram(512, false), &|spec| spec.thin = false);
}
