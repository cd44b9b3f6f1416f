//! Disks that misbehave below the kernel, under a running data plane.

mod common;

use std::time::{Duration, Instant};

use common::Server;
use common::raw::Front;
use protocol::message::Request;
use protocol::stats::QueueCounter;
use spec::{FileSpec, LimitSpec, VolumeSpec};
use testkit::{Disk, Kind, is_root};

const MIB: u64 = 1 << 20;

#[test]
fn a_file_that_is_cut_under_writes_never_grows_again() {
    if !is_root("writes in the kernel while a file is cut") {
        return;
    }
    let disk = Disk::new(8 * MIB);
    let server = Server::new(1);
    let file = FileSpec::new(disk.path());
    server.must(Request::PutVolume(VolumeSpec::new("v", file)));
    let socket = server.put_adapter(|_| ());
    let (_front, ring) = Front::ready(&socket);
    disk.hold_from(Kind::Write, 4 * MIB);
    let heads: Vec<u16> = (0..8).map(|head| head * 4).collect();
    for head in &heads {
        let sector = 7 * MIB / 512 + u64::from(*head) * 8;
        ring.request(*head, 1, sector, (ring.data.guest.0, 4096, 0));
    }
    ring.offer(&heads);
    disk.wait_held(Kind::Write, 1);
    let cut = Request::ResizeVolume { name: "v".into(), bytes: 4 * MIB, shrink: true };
    std::thread::scope(|scope| {
        let resize = scope.spawn(|| server.must(cut));
        // Time to do it wrong.
        let enough = Instant::now() + Duration::from_millis(200);
        while disk.bytes() != 4 * MIB && Instant::now() < enough {
            std::thread::yield_now();
        }
        disk.release(Kind::Write);
        resize.join().unwrap();
    });
    ring.wait();
    assert_eq!(disk.bytes(), 4 * MIB);
    ring.works();
    // As after a restart: with the size that is stored for it.
    server.must(Request::RemoveAdapter { name: "vhost0".into() });
    server.must(Request::RemoveVolume { name: "v".into(), forget: false });
    let stored =
        VolumeSpec { bytes: Some(4 * MIB), ..VolumeSpec::new("v", FileSpec::new(disk.path())) };
    server.must(Request::PutVolume(stored));
}

#[test]
fn a_request_of_many_rounds_is_paid_for_once() {
    let server = Server::new(1);
    let limit = LimitSpec { iops: 1, iops_burst: 1, ..LimitSpec::default() };
    server.must(Request::PutVolume(VolumeSpec { limit: Some(limit), ..server.ram(16) }));
    let socket = server.put_adapter(|_| ());
    let (_front, ring) = Front::ready(&socket);
    // Zeroes without unmapping, 8 MiB: a round for each.
    let (sector, sectors) = (0_u64, (8 * MIB / 512) as u32);
    ring.data.buf.write(0, &sector.to_le_bytes());
    ring.data.buf.write(8, &sectors.to_le_bytes());
    ring.data.buf.write(12, &0_u32.to_le_bytes());
    ring.request(0, 13, 0, (ring.data.guest.0, 16, 0));
    assert_eq!(ring.status_after(0), 0);
    assert!(server.count(QueueCounter::Rounds) > 1);
    assert_eq!(server.count(QueueCounter::WaitThrottled), 0);
}
