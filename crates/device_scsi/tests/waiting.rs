//! Commands that wait for room at their volume.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};

use block::{Finish, Geometry, Lane, LaneId, Request as Asked, Submit, Volume, VolumeError, Wait};
use common::*;
use device_scsi::ScsiRole;
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
    assert_eq!(rig.count(QueueCounter::Pending), WAITING);
    door.open.store(true, SeqCst);
    rig.add(&Request::read(0, 1, 0, 1));
    rig.kick();
    (0..=WAITING).for_each(|_| drop(rig.wait().good()));
    for at in 0..WAITING {
        assert_eq!(rig.ask(&Request::read(0, 0, at as u32, 1)).good(), vec![at as u8; 512]);
    }
}
