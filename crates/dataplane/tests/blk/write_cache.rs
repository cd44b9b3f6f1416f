//! The cache mode that a guest chose outlives connections and processes.

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::Arc;

use crate::common::Server;
use crate::common::raw::{
    FLUSH, Front, INDIRECT, PROTOCOL_FEATURES, Ring, VERSION_1, WRITEBACK, code, words,
};
use protocol::message::Request;
use vring::InflightRegion;
use vring::driver::DriverMemory;

const SIZE: u16 = 64;

/// A guest: its memory, its ring, and what its machine keeps for the server.
struct Guest {
    memory: Arc<DriverMemory>,
    ring: Option<Ring>,
    kept: File,
}

impl Guest {
    fn new() -> Guest {
        let (kept, _) = InflightRegion::create(8, SIZE).unwrap();
        Guest { memory: Arc::new(DriverMemory::new(8 << 20).unwrap()), ring: None, kept }
    }

    /// Its machine connects, for the first time or again: then the driver says nothing.
    fn connect(&mut self, server: &Server) -> Front {
        let front = Front::connect(&server.path("vhost0.sock"));
        self.start(&front);
        front
    }

    fn start(&mut self, front: &Front) {
        let regions = self.memory.regions().unwrap();
        let regions: Vec<_> =
            regions.iter().map(|r| [r.guest.0, r.size, r.user.0, r.offset]).collect();
        assert!(front.set_mem_table(&regions, self.memory.file()));
        let body = words(&[InflightRegion::bytes(8, SIZE), 0, u64::from(SIZE) << 16 | 8]);
        assert!(front.accepted(code::SET_INFLIGHT_FD, &body, &[self.kept.as_fd()]));
        let ring = self.ring.get_or_insert_with(|| Ring::new(&self.memory, 0, SIZE));
        front.run(ring);
        ring.works();
    }
}

fn server() -> Server {
    let server = Server::new(1);
    server.must(Request::PutVolume(server.file(8)));
    server.put_adapter(|_| ());
    server
}

#[test]
fn write_through_is_kept_over_connections_and_processes() {
    let first = server();
    let mut guest = Guest::new();
    let front = guest.connect(&first);
    assert_eq!(front.config(WRITEBACK, 1), [1], "with a cache at first");
    assert!(front.set_config(WRITEBACK, &[0]));
    assert_eq!(front.config(WRITEBACK, 1), [0]);
    drop(front);
    first.settled();
    let front = guest.connect(&first);
    assert_eq!(front.config(WRITEBACK, 1), [0], "forgotten over a connection");
    drop(front);
    drop(first);
    let second = server();
    let front = guest.connect(&second);
    assert_eq!(front.config(WRITEBACK, 1), [0], "forgotten over a process");
    assert!(front.set_config(WRITEBACK, &[1]));
    drop(front);
    second.settled();
    let front = guest.connect(&second);
    assert_eq!(front.config(WRITEBACK, 1), [1]);
    assert!(front.set_config(WRITEBACK, &[0]));
    drop(front);
    second.settled();
    // Chosen before there was anything to keep.
    let mut early = Guest::new();
    let front = Front::connect(&second.path("vhost0.sock"));
    assert!(front.set_config(WRITEBACK, &[0]));
    early.start(&front);
    drop(front);
    second.settled();
    let front = early.connect(&second);
    assert_eq!(front.config(WRITEBACK, 1), [0], "forgotten since it was early");
    drop(front);
    second.settled();
    // Another guest chooses for itself.
    let front = Guest::new().connect(&second);
    assert_eq!(front.config(WRITEBACK, 1), [1]);
}

/// A machine that keeps no memory for the server connects again, and its driver says nothing.
#[test]
fn who_keeps_nothing_has_write_through_until_it_says_otherwise() {
    let connect = |server: &Server| {
        let front = Front::connect(&server.path("vhost0.sock"));
        front.share_memory();
        let ring = front.start(0, SIZE);
        ring.works();
        (front, ring)
    };
    let first = server();
    let (front, _ring) = connect(&first);
    assert!(front.set_config(WRITEBACK, &[0]));
    drop(front);
    first.settled();
    let (front, _ring) = connect(&first);
    assert_eq!(front.config(WRITEBACK, 1), [0], "forgotten over a connection");
    drop(front);
    drop(first);
    let second = server();
    let (front, ring) = connect(&second);
    assert_eq!(front.config(WRITEBACK, 1), [0], "forgotten over a process");
    // It says otherwise, and a queue that stops and starts says nothing new.
    assert!(front.set_config(WRITEBACK, &[1]));
    front.stop(0);
    front.run(&ring);
    ring.works();
    assert_eq!(front.config(WRITEBACK, 1), [1]);
    drop(front);
    second.settled();
    // Who cannot choose has what it negotiated.
    let front = Front::with_features(
        &second.path("vhost0.sock"),
        VERSION_1 | PROTOCOL_FEATURES | INDIRECT | FLUSH,
    );
    front.share_memory();
    front.start(0, SIZE).works();
    assert_eq!(front.config(WRITEBACK, 1), [1]);
}
