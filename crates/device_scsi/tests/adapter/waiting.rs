//! Commands that wait for room at their volume.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::*;
use block::spec::LimitSpec;
use block::{
    Finish, Geometry, Lane, LaneId, Limited, Request as Asked, Submit, Volume, VolumeError, Wait,
};
use channel::Drain;
use device_scsi::{LunEntry, ScsiRole};
use protocol::stats::QueueCounter;
use uring::Ring;

/// Takes nothing until it is opened.
struct Gate {
    inner: Arc<dyn Volume>,
    door: Arc<Door>,
}

#[derive(Debug, Default)]
struct Door {
    open: AtomicBool,
    refused: AtomicU64,
}

impl Volume for Gate {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    fn lane(&self, ring: &mut Ring, id: LaneId) -> Result<Box<dyn Lane>, VolumeError> {
        let inner = self.inner.lane(ring, id)?;
        Ok(Box::new(GateLane { inner, door: Arc::clone(&self.door) }))
    }

    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        self.inner.resize(bytes)
    }
}

struct GateLane {
    inner: Box<dyn Lane>,
    door: Arc<Door>,
}

impl Lane for GateLane {
    fn submit(&mut self, ring: &mut Ring, request: &mut Asked<'_>) -> Submit {
        if self.door.open.load(SeqCst) {
            return self.inner.submit(ring, request);
        }
        self.door.refused.fetch_add(1, SeqCst);
        Submit::Park { reason: Wait::BackEndFull, until: None }
    }

    fn complete(&mut self, ring: &mut Ring, token: u64, result: i32, out: &mut Vec<Finish>) {
        self.inner.complete(ring, token, result, out);
    }

    fn detach(&mut self, ring: &mut Ring) {
        self.inner.detach(ring);
    }
}

/// A client that is limited to one write a second, and another one on the same unit and channel.
#[test]
fn what_a_limit_holds_back_is_in_nobodys_way_and_is_paid_for_once() {
    const WRITES: u32 = 40;
    const COMPARES: u32 = 20;
    let client = Client::new(1);
    let disk = ram(1 << 20);
    let unit = unit_of(&disk);
    let limit = LimitSpec { write_iops: 1, write_iops_burst: 1, ..LimitSpec::default() };
    let limited: Arc<dyn Volume> = Arc::new(Limited::new(Arc::clone(&disk), &limit, 0));
    let [slow, quick] = [(1, limited), (2, disk)].map(|(initiator, volume)| {
        let entry = LunEntry { nexus: attach(&unit, initiator), volume: Some(volume) };
        map(&[(0, 0, &entry)])
    });
    let mut slow = client.queue(ScsiRole::Request, &Setup::new(&slow), 0);
    let mut quick = client.queue(ScsiRole::Request, &Setup::new(&quick), 0);
    slow.ready(0, 0);
    quick.ready(0, 0);
    for at in 0..WRITES {
        slow.add(&Request::write(0, 0, 100 + at, vec![at as u8; 512]));
    }
    // The same block again and again, a pattern over many blocks, and what has to be read back: all need scratch memory.
    for at in 0..COMPARES {
        slow.add(&compare_and_write(at / 2, 0, 7));
        let same = Request::new(0, 0, &cdb10(0x41, 200 + 2 * at, 2));
        slow.add(&Request { out: vec![at as u8 + 1; 512], ..same });
        let verified = Request::new(0, 0, &cdb10(0x2e, 300 + at, 1));
        slow.add(&Request { out: vec![at as u8 + 1; 512], ..verified });
    }
    slow.kick();
    let all = u64::from(WRITES + 3 * COMPARES);
    let end = Instant::now() + Duration::from_secs(20);
    while slow.count(QueueCounter::WaitThrottled) < all - 1 {
        assert!(Instant::now() < end, "some wait for what others hold");
        std::thread::yield_now();
    }
    // Between them, and where they want to write, too.
    quick.ask(&compare_and_write(1000, 0, 8)).good();
    quick.ask(&compare_and_write(0, 0, 8)).good();
    quick.ask(&Request::write(0, 0, 101, vec![9; 512])).good();
    slow.stop(Drain::SkipWaits);
    assert_eq!(slow.count(QueueCounter::WaitThrottled), all - 1);
    // The first write was let through at once; what was held back comes after the other's.
    let mut different = 0;
    for _ in 0..all {
        let answer = slow.poll().expect("a queue is given back with everything answered");
        if answer.status == 2 {
            // Block 0 is the other's, and of two for one block the second finds what the first has written.
            assert_eq!(answer.check().0, 0x0e, "MISCOMPARE: {answer:x?}");
            different += 1;
        } else {
            answer.good();
        }
    }
    assert_eq!(different, COMPARES / 2 + 1);
    let mut block = |at: u32| quick.ask(&Request::read(0, 0, at, 1)).good()[0];
    assert_eq!((block(0), block(9), block(10), block(1000)), (8, 7, 0, 8));
    for at in 0..COMPARES {
        let same = (block(200 + 2 * at), block(201 + 2 * at));
        assert_eq!((same, block(300 + at)), ((at as u8 + 1, at as u8 + 1), at as u8 + 1));
    }
    (0..WRITES).for_each(|at| assert_eq!(block(100 + at), at as u8));
}

/// Of one block, from what it is filled with to something else.
fn compare_and_write(lba: u32, from: u8, to: u8) -> Request {
    let mut cdb = vec![0x89, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0];
    cdb[6..10].copy_from_slice(&lba.to_be_bytes());
    let out = [[from; 512], [to; 512]].concat();
    Request { out, ..Request::new(0, 0, &cdb) }
}

#[test]
fn a_full_lane_is_asked_once_for_all_that_wait_for_it_and_each_of_them_is_counted_once() {
    const WAITING: u64 = 40;
    const OTHERS: u64 = 200;
    let client = Client::new(1);
    let door = Arc::new(Door::default());
    let gate: Arc<dyn Volume> = Arc::new(Gate { inner: ram(1 << 20), door: Arc::clone(&door) });
    let (shut, other) = (entry(&gate), entry(&ram(1 << 20)));
    let luns = map(&[(0, 0, &shut), (0, 1, &other)]);
    let mut rig = client.queue(ScsiRole::Request, &Setup::new(&luns), 0);
    (0..2).for_each(|lun| rig.ready(0, lun));
    for at in 0..WAITING {
        rig.add(&Request::write(0, 0, at as u32, vec![at as u8; 512]));
    }
    rig.kick();
    while rig.count(QueueCounter::WaitBackEndFull) < WAITING {
        std::thread::yield_now();
    }
    // Each of these ends in a publication.
    (0..OTHERS).for_each(|_| drop(rig.ask(&Request::read(0, 1, 0, 1)).good()));
    let refused = door.refused.load(SeqCst);
    assert!((WAITING + 1..=WAITING + 2 * OTHERS).contains(&refused), "{refused} times");
    assert_eq!(rig.count(QueueCounter::WaitBackEndFull), WAITING);
    assert_eq!(rig.count(QueueCounter::Waiting), WAITING);
    door.open.store(true, SeqCst);
    rig.add(&Request::read(0, 1, 0, 1));
    rig.kick();
    (0..=WAITING).for_each(|_| drop(rig.wait().good()));
    for at in 0..WAITING {
        assert_eq!(rig.ask(&Request::read(0, 0, at as u32, 1)).good(), vec![at as u8; 512]);
    }
}
