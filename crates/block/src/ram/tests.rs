//! Opening, coming back, and a file that somebody cuts.

use std::fs::File;

use crate::conformance::TestBench;
use crate::{IoError, LaneId, OpKind, open};
use spec::{RamSpec, VolumeKind, VolumeSpec};

const MIB: u64 = 1 << 20;

fn spec(path: impl Into<std::path::PathBuf>, size: Option<u64>) -> VolumeSpec {
    let ram = RamSpec { lock_wait_ms: 50, ..RamSpec::new(path) };
    VolumeSpec { bytes: size, ..VolumeSpec::new("ram", VolumeKind::Ram(ram)) }
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").expect("folder in /dev/shm")
}

#[test]
fn what_was_written_is_there_for_the_next_server() {
    let folder = folder();
    let path = folder.path().join("ram");
    let volume = open(&spec(&path, Some(MIB))).expect("made");
    let mut bench = TestBench::new(&*volume, 8192);
    bench.write(4096, &[9; 4096]).expect("write");
    let locked = open(&spec(&path, None)).map(drop).expect_err("another server has it");
    assert!(locked.to_string().contains("is still locked by process"), "{locked}");
    drop(bench);
    drop(volume);
    // The ring's table lets go of its files a moment after the ring is gone.
    let mut again = spec(&path, Some(MIB));
    again.kind = VolumeKind::Ram(RamSpec::new(&path));
    let volume = open(&again).expect("there");
    let mut bench = TestBench::new(&*volume, 8192);
    assert_eq!(bench.read(4096, 4096), Ok(vec![9; 4096]));
    bench.close();
}

#[test]
fn wrong_places_and_sizes_are_refused() {
    let (memory, disk) = (folder(), tempfile::tempdir().expect("folder"));
    let text = |spec| match open(&spec) {
        Ok(_) => panic!("opened"),
        Err(error) => error.to_string(),
    };
    let on_disk = text(spec(disk.path().join("ram"), Some(MIB)));
    assert!(on_disk.contains("is not in a tmpfs"), "{on_disk}");
    let no_size = text(spec(memory.path().join("ram"), None));
    assert!(no_size.contains("has 0 bytes"), "{no_size}");
    let path = memory.path().join("odd");
    File::create(&path).and_then(|file| file.set_len(1000)).expect("file");
    assert!(text(spec(&path, None)).contains("has 1000 bytes"));
    let other = text(VolumeSpec { bytes: Some(512), ..spec(&path, None) });
    assert!(other.contains("has 1000 bytes"), "{other}");
    let volume = open(&spec(memory.path().join("good"), Some(MIB))).expect("open");
    let error = volume.resize(MIB / 2).expect_err("shrinks");
    assert!(error.to_string().contains("can only grow"), "{error}");
}

#[test]
fn a_file_that_somebody_cuts_fails_requests_and_harms_nobody() {
    let folder = folder();
    let path = folder.path().join("ram");
    let volume = open(&spec(&path, Some(4 * MIB))).expect("made");
    let mut bench = TestBench::new(&*volume, 8192);
    bench.write(0, &[1; 4096]).expect("write");
    let file = File::options().write(true).open(&path).expect("open");
    file.set_len(MIB).expect("cut");
    assert_eq!(bench.write(2 * MIB, &[2; 4096]), Err(IoError::Gone));
    assert_eq!(bench.read(2 * MIB, 4096), Err(IoError::Gone));
    // Long enough again, it is mapped again by the first request that finds that out.
    file.set_len(4 * MIB).expect("extend");
    assert_eq!(bench.read(2 * MIB, 4096), Ok(vec![0; 4096]));
    assert_eq!(bench.read(0, 4096), Ok(vec![1; 4096]));
    bench.write(2 * MIB, &[3; 4096]).expect("write");
    let mut other = TestBench::with_id(&*volume, 8192, LaneId(2));
    assert_eq!(other.read(2 * MIB, 4096), Ok(vec![3; 4096]));
    other.close();
    bench.close();
}

#[test]
fn long_zeroes_go_in_rounds_and_discards_give_memory_back() {
    use std::os::unix::fs::MetadataExt as _;
    let folder = folder();
    let path = folder.path().join("ram");
    let volume = open(&spec(&path, Some(8 * MIB))).expect("made");
    let mut bench = TestBench::new(&*volume, 8 << 20);
    bench.write(0, &vec![5; 8 << 20]).expect("write");
    let blocks = || std::fs::metadata(&path).expect("stat").blocks() * 512;
    assert_eq!(blocks(), 8 * MIB);
    let before = bench.completions();
    let zeroes = OpKind::WriteZeroes { unmap: false, fua: false };
    assert_eq!(bench.run(zeroes, 0, 8 * MIB, &[]), Ok(()));
    let rounds = bench.completions() - before;
    assert!(rounds >= 8, "{rounds} rounds, of 1 MiB at most, after a write that left none");
    assert_eq!(blocks(), 8 * MIB, "not given back");
    assert_eq!(bench.run(OpKind::Discard, MIB, 4 * MIB, &[]), Ok(()));
    assert_eq!(blocks(), 4 * MIB);
    let unmap = OpKind::WriteZeroes { unmap: true, fua: false };
    assert_eq!(bench.run(unmap, 0, 8 * MIB, &[]), Ok(()));
    assert_eq!(blocks(), 0);
    assert_eq!(bench.read(0, 8 << 20), Ok(vec![0; 8 << 20]));
    bench.close();
}

#[test]
fn a_new_volume_never_takes_over_what_it_finds() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("folder");
    let path = folder.path().join("ram");
    std::fs::write(&path, vec![7; 1 << 20]).expect("another tenant's");
    let mut new = VolumeSpec {
        bytes: Some(1 << 20),
        ..VolumeSpec::new("ram", RamSpec { fresh: true, ..RamSpec::new(&path) })
    };
    let mut identity = None;
    let mut note = |event| {
        if let crate::OpenEvent::Identity(found) = event {
            identity = Some(found);
        }
    };
    let volume = crate::open_with(&new, &mut note).expect("open");
    let mut bench = TestBench::new(&*volume, 4096);
    assert_eq!(bench.read(0, 4096), Ok(vec![0; 4096]));
    bench.write(0, &[5; 4096]).expect("write");
    // Nor does it go where somebody chose the place.
    let there = folder.path().join("chosen");
    std::fs::write(&there, b"kept").expect("somebody's");
    let named = RamSpec { fresh: true, named: true, ..RamSpec::new(&there) };
    let mut named = VolumeSpec { kind: named.into(), ..new.clone() };
    let error = open(&named).err().expect("refused");
    assert!(error.to_string().contains("is there already"), "{error}");
    assert_eq!(std::fs::read(&there).expect("as it was"), b"kept");
    named.kind.anew();
    drop(open(&named).expect("as somebody wanted"));
    assert_eq!(std::fs::metadata(&there).expect("made").len(), 1 << 20);
    // Somebody has it: nobody else's new volume takes its place.
    let other = RamSpec { fresh: true, lock_wait_ms: 10, ..RamSpec::new(&path) };
    let error = open(&VolumeSpec { kind: other.into(), ..new.clone() }).err().expect("refused");
    assert!(error.to_string().contains("locked"), "{error}");
    bench.close();
    drop(volume);
    // The next process finds it again.
    new.kind.settle(identity.clone());
    let volume = open(&new).expect("open");
    let mut bench = TestBench::new(&*volume, 4096);
    assert_eq!(bench.read(0, 4096), Ok(vec![5; 4096]));
    bench.close();
    drop(volume);
    // It was to become larger while nobody had it: it is opened as it is, for whoever resizes it then.
    let larger = VolumeSpec { bytes: Some(2 << 20), ..new.clone() };
    let volume = open(&larger).expect("open");
    assert_eq!(volume.geometry().bytes, 1 << 20);
    drop(volume);
    // Lost while the host ran: no zeroes in its place.
    std::fs::remove_file(&path).expect("remove");
    let error = open(&new).err().expect("lost");
    assert!(error.to_string().contains("its memory is lost"), "{error}");
    assert!(!path.exists());
    // The host was started again: that is what a RAM volume does not survive.
    let Some(spec::FileIdentity::Memory { boot, .. }) = &mut identity else { panic!("memory") };
    *boot = "an earlier one".to_owned();
    std::fs::write(&path, vec![7; 1 << 20]).expect("left over");
    new.kind.settle(identity);
    let volume = open(&new).expect("made anew");
    let mut bench = TestBench::new(&*volume, 4096);
    assert_eq!(bench.read(0, 4096), Ok(vec![0; 4096]));
    bench.close();
}

#[test]
fn what_could_not_be_made_is_not_left_behind() {
    let folder = tempfile::tempdir_in("/dev/shm").expect("folder");
    let path = folder.path().join("ram");
    for fresh in [true, false] {
        let ram = RamSpec { fresh, preallocate: true, ..RamSpec::new(&path) };
        let large = VolumeSpec { bytes: Some(200 << 40), ..VolumeSpec::new("ram", ram) };
        assert!(open(&large).is_err());
        assert!(!path.exists());
    }
}
