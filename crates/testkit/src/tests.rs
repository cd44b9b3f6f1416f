//! That the kit does what the tests that use it believe.

use std::fs::File;
use std::io::Write as _;
use std::os::unix::fs::FileExt as _;
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::sync::mpsc;
use std::time::Duration;

use super::*;

const MIB: u64 = 1 << 20;

fn open(disk: &Disk) -> File {
    File::options().read(true).write(true).open(disk.path()).expect("open")
}

#[test]
fn a_disk_keeps_what_is_written_and_changes_its_size() {
    if !is_root("a disk below the kernel") {
        return;
    }
    let disk = Disk::new(MIB);
    let file = open(&disk);
    file.write_all_at(&[7; 8192], 4096).expect("write");
    assert_eq!(disk.content(4096, 8192), vec![7; 8192]);
    assert_eq!(disk.content(0, 4096), vec![0; 4096]);
    let mut found = [0; 8192];
    file.read_exact_at(&mut found, 4096).expect("read");
    assert_eq!(found, [7; 8192]);
    file.set_len(2 * MIB).expect("longer");
    assert_eq!((disk.bytes(), file.metadata().expect("stat").len()), (2 * MIB, 2 * MIB));
    file.sync_all().expect("fsync");
    assert_eq!(disk.served(Kind::Flush), 1);
}

#[test]
fn who_is_bound_does_not_listen_yet() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("a socket");
    assert!(!listens(&path));
    let bound = UnixDatagram::bind(&path).expect("bind");
    assert!(path.exists() && !listens(&path));
    drop(bound);
    std::fs::remove_file(&path).expect("remove");
    let listener = UnixListener::bind(&path).expect("bind and listen");
    assert!(listens(&path) && !listens(folder.path()));
    drop(listener);
    assert!(!listens(&path));
}

#[test]
fn held_requests_are_in_the_kernel_until_they_are_let_go() {
    if !is_root("requests held below the kernel") {
        return;
    }
    let disk = Disk::new(MIB);
    let file = open(&disk);
    disk.hold(Kind::Write);
    let (done, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || done.send(file.write_all_at(&[3; 4096], 0)).expect("the test listens"));
        disk.wait_held(Kind::Write, 1);
        assert_eq!(disk.content(0, 4096), vec![0; 4096]);
        assert!(ended.try_recv().is_err());
        disk.release(Kind::Write);
        ended.recv().expect("answered").expect("written");
    });
    assert_eq!((disk.held(Kind::Write), disk.content(0, 4096)), (0, vec![3; 4096]));
}

/// However many it is given at once: no time is too short for what is one after the other.
#[test]
fn a_disk_with_one_head_works_on_one_request_at_a_time() {
    if !is_root("a disk with one head below the kernel") {
        return;
    }
    let disk = Disk::new(MIB);
    let file = open(&disk);
    let takes = Duration::from_millis(10);
    disk.depth(1);
    disk.slow(takes, takes);
    let begun = std::time::Instant::now();
    std::thread::scope(|scope| {
        for at in 0..4 {
            let file = &file;
            scope.spawn(move || file.write_all_at(&[1; 4096], at * 4096).expect("write"));
        }
    });
    assert!(begun.elapsed() >= 4 * takes);
    assert_eq!(disk.content(0, 4 * 4096), vec![1; 4 * 4096]);
}

#[test]
fn requests_that_are_slow_end_out_of_order_and_all_end() {
    if !is_root("a disk that is slow below the kernel") {
        return;
    }
    let disk = Disk::new(MIB);
    disk.slow(Duration::from_millis(1), Duration::from_millis(20));
    let (done, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        for index in 0..16_u8 {
            let (done, file) = (done.clone(), open(&disk));
            scope.spawn(move || {
                file.write_all_at(&[index; 4096], u64::from(index) * 4096).expect("write");
                done.send(index).expect("the test listens");
            });
        }
        let mut order: Vec<u8> = ended.iter().take(16).collect();
        order.sort_unstable();
        assert_eq!(order, (0..16).collect::<Vec<u8>>());
    });
    assert_eq!(disk.content(15 * 4096, 4096), vec![15; 4096]);
}

#[test]
fn a_failing_write_back_is_told_to_each_open_file_once() {
    if !is_root("a write-back that fails") {
        return;
    }
    let disk = Disk::with(Options { bytes: MIB, write_back: true });
    let (a, b) = (open(&disk), open(&disk));
    disk.fail(Kind::Write, Some(libc::EIO));
    a.write_all_at(&[1; 4096], 0).expect("the cache takes it");
    assert_eq!(disk.served(Kind::Write), 0, "not before it is written back");
    assert_eq!(a.sync_data().expect_err("lost").raw_os_error(), Some(libc::EIO));
    disk.fail(Kind::Write, None);
    a.sync_data().expect("told once");
    assert_eq!(b.sync_data().expect_err("lost").raw_os_error(), Some(libc::EIO));
    b.sync_data().expect("told once");
}

#[test]
fn a_loop_device_over_a_full_tmpfs_loses_what_it_took() {
    if !is_root("a device whose backing is full") {
        return;
    }
    let tmpfs = Tmpfs::new(MIB);
    let backing = tmpfs.path().join("disk");
    File::create(&backing).and_then(|file| file.set_len(4 * MIB)).expect("sparse");
    let device = Loop::new(&backing, 512);
    let file = File::options().read(true).write(true).open(device.path()).expect("open");
    file.write_all_at(&vec![1; 3 << 20], 0).expect("the cache takes it");
    assert_eq!(file.sync_data().expect_err("no room").raw_os_error(), Some(libc::EIO));
}

#[test]
fn a_frozen_file_system_holds_writes_and_no_reads() {
    if !is_root("a frozen file system") {
        return;
    }
    let ext4 = Ext4::new(16 * MIB);
    let path = ext4.path().join("file");
    let mut file = File::create_new(&path).expect("create");
    file.write_all(&[5; 4096]).expect("write");
    file.sync_all().expect("fsync");
    ext4.freeze();
    let (done, ended) = mpsc::channel();
    std::thread::scope(|scope| {
        scope.spawn(move || done.send(file.write_all_at(&[6; 4096], 0)).expect("the test listens"));
        assert_eq!(std::fs::read(&path).expect("read"), vec![5; 4096]);
        assert!(ended.recv_timeout(Duration::from_millis(50)).is_err());
        ext4.thaw();
        ended.recv().expect("answered").expect("written");
    });
    assert_eq!(std::fs::read(&path).expect("read"), vec![6; 4096]);
}
