//! The suite over volumes of several kinds.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use block::spec::{FileSpec, RamSpec, VolumeKind, VolumeSpec};
use block::{Volume, open};

use super::{Bench, run, run_optical};
use crate::{SenseKey, UnitSpec};

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

/// SPC-4, 6.6.1: it says who it is. Of all else it is not known yet whether it can do it: a driver that hears of an opcode that is none takes that
/// for an answer.
#[test]
fn a_disk_that_is_becoming_ready_says_so_to_all_that_is_not_about_itself() {
    let folder = Folder::new(false);
    let mut bench = Bench::new(&*folder.ram(512, false), &|spec| {
        *spec = UnitSpec::awaited(spec.identity.clone());
    });
    let client = bench.client(1);
    let about = [
        vec![0x12, 0, 0, 0, 255, 0],
        vec![0x12, 1, 0x83, 0, 255, 0],
        vec![0xa0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
        vec![0xa3, 0x0a, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0],
    ];
    for opcode in 0..=u8::MAX {
        for action in 0..32 {
            let len = if opcode < 0x20 { 6 } else { 16 };
            let mut cdb = vec![0; len];
            (cdb[0], cdb[1]) = (opcode, action);
            if about.iter().any(|one| one[0] == opcode) || opcode == 0x03 {
                continue;
            }
            let answer = bench.command(&client, &cdb, &[], 0);
            let sense = answer.sense.expect("a refusal");
            assert_eq!((sense.key, sense.code), (SenseKey::NotReady, 0x0401), "{cdb:x?}");
        }
    }
    assert_eq!(bench.requests(), 0);
    for cdb in about {
        assert!(!bench.command(&client, &cdb, &[], 255).good().is_empty(), "{cdb:x?}");
    }
    let sense = bench.command(&client, &[0x03, 0, 0, 0, 252, 0], &[], 252).good();
    assert_eq!((sense[2], sense[12], sense[13]), (2, 4, 1));
}
