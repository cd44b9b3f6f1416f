//! Guests that break the rules of the ring and of the requests in it. Each hurts itself alone, and is counted.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::common::raw::{Front, NEXT, Ring, TABLE, UNSET, WRITE, code, descriptor, until};
use crate::common::{Server, null, slow};
use protocol::message::{AdapterState, Request, VolumeSpec};
use protocol::stats::QueueCounter;

/// Two adapters on one channel: the first one's client misbehaves, the second one's must not notice.
struct Stage {
    server: Server,
    front: Front,
    ring: Ring,
    _neighbour: Front,
    neighbour: Ring,
}

impl Stage {
    fn new(volume: impl FnOnce(&Server) -> VolumeSpec) -> Stage {
        let server = Server::new(1);
        server.must(Request::PutVolume(volume(&server)));
        let socket = server.put_adapter(|_| ());
        let other = server.put_adapter(|spec| *spec = server.adapter("vhost1"));
        let (front, ring) = Front::ready(&socket);
        let (their_front, neighbour) = Front::ready(&other);
        Stage { server, front, ring, _neighbour: their_front, neighbour }
    }

    fn count(&self, counter: QueueCounter) -> u64 {
        self.server.count_of("vhost0", counter)
    }

    /// The queue goes on, and so does the neighbour.
    #[track_caller]
    fn goes_on(&self) {
        self.ring.works();
        self.neighbour.works();
        let status = self.server.adapter_named("vhost0");
        assert_eq!((status.state, status.reason), (AdapterState::Running, None));
        assert_eq!(self.count(QueueCounter::RingErrors), 0);
        assert_eq!(self.count(QueueCounter::Active), 0);
    }

    /// The queue has stopped for this reason, the neighbour and another queue of the adapter go on, and a reset mends it.
    #[track_caller]
    fn has_stopped(&self, why: &str) {
        until("the adapter says that it is broken", || {
            self.server.adapter_named("vhost0").state == AdapterState::Broken
        });
        let reason = self.server.adapter_named("vhost0").reason.unwrap_or_default();
        assert!(reason.contains(why) && reason.starts_with("queue 0"), "{reason}");
        assert_eq!(self.count(QueueCounter::RingErrors), 1);
        until("the client is told", || self.ring.error_signalled());
        self.neighbour.works();
        self.front.start(1, 64).works();
        assert!(self.front.accepted(code::RESET_DEVICE, &[], &[]));
        assert_ne!(self.server.adapter_named("vhost0").state, AdapterState::Broken);
        self.front.start(0, 64).works();
        assert_eq!(self.server.adapter_named("vhost0").state, AdapterState::Running);
        assert_eq!(self.server.count_of("vhost1", QueueCounter::Errors), 0);
    }
}

const IN: u32 = 0;
const OUT: u32 = 1;
/// No guest memory there.
const NOWHERE: u64 = 0xdead_0000_0000;

/// Spoils a request at head 0: its status afterwards, and the counter that has gone up.
struct Case {
    name: &'static str,
    spoil: fn(&Ring),
    status: u8,
    counter: QueueCounter,
}

fn data(ring: &Ring, flags: u16) -> (u64, u32, u16) {
    (ring.data.guest.0, 512, flags)
}

/// Puts an indirect table into the data buffer and names it in descriptor 0.
fn indirect(ring: &Ring, len: u32, entries: &[Vec<u8>]) {
    ring.set_header(0, IN, 0);
    ring.data.buf.write(0, &entries.concat());
    ring.set_desc(0, ring.data.guest.0, len, TABLE, 0);
}

const BROKEN_CHAINS: &[Case] = &[
    Case {
        name: "data outside of memory",
        spoil: |ring| ring.request(0, IN, 0, (NOWHERE, 512, WRITE)),
        status: 1,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "data that ends outside of memory",
        spoil: |ring| ring.request(0, IN, 0, (ring.data.guest.0, !511, WRITE)),
        status: 1,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "an address that wraps",
        spoil: |ring| ring.request(0, IN, 0, (u64::MAX - 100, 512, WRITE)),
        status: 1,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "a header outside of memory",
        spoil: |ring| {
            ring.read(0, 0);
            ring.set_desc(0, NOWHERE, 16, NEXT, 1);
        },
        status: 1,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "a status outside of memory",
        spoil: |ring| {
            ring.read(0, 0);
            ring.set_desc(2, NOWHERE, 1, WRITE, 0);
        },
        status: UNSET,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "a loop",
        spoil: |ring| {
            ring.read(0, 0);
            ring.set_desc(1, ring.data.guest.0, 512, NEXT | WRITE, 0);
        },
        status: UNSET,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "a next descriptor beyond the ring",
        spoil: |ring| {
            ring.read(0, 0);
            ring.set_desc(1, ring.data.guest.0, 512, NEXT | WRITE, ring.size);
        },
        status: UNSET,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "a header too short",
        spoil: |ring| {
            ring.read(0, 0);
            ring.set_desc(0, ring.header_at(0), 15, NEXT, 1);
        },
        status: 1,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "a chain of no bytes",
        spoil: |ring| {
            ring.read(0, 0);
            ring.set_desc(0, ring.header_at(0), 0, 0, 0);
        },
        status: UNSET,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "no status",
        spoil: |ring| {
            ring.request(0, OUT, 0, data(ring, 0));
            ring.set_desc(1, ring.data.guest.0, 512, 0, 0);
        },
        status: UNSET,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "a read into a buffer that may only be read",
        spoil: |ring| ring.request(0, IN, 0, data(ring, 0)),
        status: 1,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "a write from a buffer that may only be written",
        spoil: |ring| ring.request(0, OUT, 0, data(ring, WRITE)),
        status: 1,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "readable after writable",
        spoil: |ring| {
            ring.read(0, 0);
            ring.set_desc(2, ring.data.guest.0, 512, NEXT, 3);
            ring.set_desc(3, ring.status_at(0), 1, WRITE, 0);
        },
        status: 1,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "an indirect table inside an indirect table",
        spoil: |ring| {
            let inner = descriptor(ring.data.guest.0 + 4096, 32, TABLE, 0);
            indirect(ring, 16, &[inner]);
        },
        status: UNSET,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "an indirect table that goes in circles",
        spoil: |ring| {
            let entry = |next| descriptor(ring.data.guest.0 + 4096, 16, NEXT, next);
            indirect(ring, 32, &[entry(1), entry(0)]);
        },
        status: UNSET,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "an indirect table that is no whole number of descriptors",
        spoil: |ring| indirect(ring, 33, &[]),
        status: UNSET,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "an indirect table of nothing",
        spoil: |ring| indirect(ring, 0, &[]),
        status: UNSET,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "an indirect table outside of memory",
        spoil: |ring| ring.set_desc(0, NOWHERE, 48, TABLE, 0),
        status: UNSET,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "an indirect table of more entries than are accepted",
        spoil: |ring| indirect(ring, 1025 * 16, &[]),
        status: UNSET,
        counter: QueueCounter::BadChains,
    },
];

const BAD_REQUESTS: &[Case] = &[
    Case {
        name: "beyond the end",
        spoil: |ring| ring.read(0, (64 << 20) / 512),
        status: 1,
        counter: QueueCounter::OutOfRange,
    },
    Case {
        name: "over the end",
        spoil: |ring| {
            ring.request(0, IN, (64 << 20) / 512 - 1, (ring.data.guest.0, 1024, WRITE));
        },
        status: 1,
        counter: QueueCounter::OutOfRange,
    },
    Case {
        name: "a sector that wraps",
        spoil: |ring| ring.read(0, u64::MAX),
        status: 1,
        counter: QueueCounter::OutOfRange,
    },
    Case {
        name: "half a block",
        spoil: |ring| ring.request(0, OUT, 0, (ring.data.guest.0, 511, 0)),
        status: 1,
        counter: QueueCounter::OutOfRange,
    },
    Case {
        name: "an unknown type",
        spoil: |ring| ring.request(0, 99, 0, data(ring, WRITE)),
        status: 2,
        counter: QueueCounter::Unsupported,
    },
    Case {
        name: "a serial number into too small a buffer",
        spoil: |ring| ring.request(0, 8, 0, (ring.data.guest.0, 19, WRITE)),
        status: 1,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "half a discard",
        spoil: |ring| ring.request(0, 11, 0, (ring.data.guest.0, 15, 0)),
        status: 1,
        counter: QueueCounter::BadChains,
    },
    Case {
        name: "more discards in one than are served",
        spoil: |ring| ring.request(0, 11, 0, (ring.data.guest.0, 32, 0)),
        status: 2,
        counter: QueueCounter::Unsupported,
    },
    Case {
        name: "a discard of more than the disk has",
        spoil: |ring| {
            ring.data.buf.write(0, &[0; 16]);
            ring.data.buf.write(8, &u32::MAX.to_le_bytes());
            ring.request(0, 11, 0, (ring.data.guest.0, 16, 0));
        },
        status: 1,
        counter: QueueCounter::OutOfRange,
    },
    Case {
        name: "zeroes with an unknown flag",
        spoil: |ring| {
            ring.data.buf.write(0, &[0; 16]);
            ring.data.buf.write(12, &[0xff; 4]);
            ring.request(0, 13, 0, (ring.data.guest.0, 16, 0));
        },
        status: 2,
        counter: QueueCounter::Unsupported,
    },
];

#[test]
fn a_bad_request_fails_alone() {
    let stage = Stage::new(|server| server.ram(64));
    let mut errors = 0;
    for case in BROKEN_CHAINS.iter().chain(BAD_REQUESTS) {
        let before = stage.count(case.counter);
        // A status that is missing still comes back as used.
        (case.spoil)(&stage.ring);
        assert_eq!(stage.ring.status_after(0), case.status, "{}", case.name);
        let (head, written) = stage.ring.used_element(0);
        assert_eq!(head, 0, "{}", case.name);
        assert_eq!(written, u32::from(case.status != UNSET), "{}: what was written", case.name);
        until("the counter goes up", || stage.count(case.counter) == before + 1);
        errors += 1;
        assert_eq!(stage.count(QueueCounter::Errors), errors, "{}", case.name);
        stage.goes_on();
    }
}

/// A request without data is odd and harmless; every kind of volume must live with it.
#[test]
fn requests_of_no_data_end() {
    let volumes: [fn(&Server) -> VolumeSpec; 3] =
        [|server| server.ram(64), |server| server.file(64), |_| null(64)];
    for volume in volumes {
        let stage = Stage::new(volume);
        for kind in [IN, OUT] {
            stage.ring.set_header(0, kind, 0);
            stage.ring.set_desc(0, stage.ring.header_at(0), 16, NEXT, 1);
            stage.ring.set_desc(1, stage.ring.status_at(0), 1, WRITE, 0);
            assert_eq!(stage.ring.status_after(0), 0);
            stage.goes_on();
        }
    }
}

/// The longest indirect table there is: more buffers than one transfer takes.
#[test]
fn a_chain_of_a_thousand_pieces_is_served() {
    let volumes: [fn(&Server) -> VolumeSpec; 3] =
        [|server| server.ram(64), |server| server.file(64), |_| null(64)];
    for volume in volumes {
        let stage = Stage::new(volume);
        let (ring, pieces) = (&stage.ring, 1022_u16);
        ring.set_header(0, IN, 0);
        let mut table = vec![descriptor(ring.header_at(0), 16, NEXT, 1)];
        // 1022 pieces in 8 blocks: 4 bytes each, the last one has the rest.
        for piece in 0..pieces {
            let at = ring.data.guest.0 + 32768 + 4 * u64::from(piece);
            let len = if piece + 1 == pieces { 4096 - 4 * (u32::from(pieces) - 1) } else { 4 };
            table.push(descriptor(at, len, NEXT | WRITE, piece + 2));
        }
        table.push(descriptor(ring.status_at(0), 1, WRITE, 0));
        indirect(ring, 16 * 1024, &table);
        assert_eq!(ring.status_after(0), 0);
        assert_eq!(ring.used_element(0), (0, 4097));
        stage.goes_on();
    }
}

#[test]
fn a_write_to_a_read_only_disk_fails() {
    let server = Server::new(1);
    server.must(Request::PutVolume(server.ram(64)));
    let socket = server.put_adapter(|spec| spec.block_mut().unwrap().read_only = true);
    let features = crate::common::raw::VERSION_1 | crate::common::raw::PROTOCOL_FEATURES;
    let front = Front::with_features(&socket, features);
    front.share_memory();
    let ring = front.start(0, 64);
    ring.request(0, OUT, 0, data(&ring, 0));
    assert_eq!(ring.status_after(0), 1);
    assert_eq!(server.count(QueueCounter::Errors), 1);
    assert_eq!(server.count(QueueCounter::Writes), 0);
    ring.works();
}

#[test]
fn an_index_that_jumps_stops_the_queue() {
    for jump in [65, 1000, 0x8000, 0xffff] {
        let stage = Stage::new(|_| null(64));
        stage.ring.works();
        stage.ring.set_avail_index(1_u16.wrapping_add(jump));
        stage.ring.kick();
        stage.has_stopped("available index jumped");
    }
}

#[test]
fn a_head_that_the_ring_does_not_have_stops_the_queue() {
    for head in [64, 0x7fff, 0xffff] {
        let stage = Stage::new(|_| null(64));
        stage.ring.offer(&[head]);
        stage.has_stopped("names head");
    }
}

#[test]
fn a_head_that_is_in_flight_stops_the_queue_and_what_was_taken_ends() {
    let stage = Stage::new(|_| slow(null(64)));
    stage.ring.read(0, 0);
    stage.ring.read(8, 0);
    stage.ring.offer(&[0, 8, 0]);
    stage.has_stopped("in flight already");
    // Both were done before the reset was acknowledged; the third one never.
    assert_eq!(stage.ring.used_index(), 2);
    assert_eq!((stage.ring.status_of(0), stage.ring.status_of(8)), (0, 0));
}

/// Descriptors, headers, rings: everything changes all the time. Whatever becomes of the client, the neighbour does not notice.
#[test]
fn a_guest_that_scribbles_over_its_rings_hurts_itself_alone() {
    let stage = Stage::new(|server| server.ram(64));
    let scribbling = Arc::new(AtomicBool::new(true));
    let areas = [stage.ring.desc, stage.ring.header, stage.ring.avail];
    let spoilt = [QueueCounter::BadChains, QueueCounter::OutOfRange, QueueCounter::RingErrors];
    let is_spoilt = || spoilt.iter().any(|counter| stage.count(*counter) > 0);
    std::thread::scope(|scope| {
        let go_on = Arc::clone(&scribbling);
        scope.spawn(move || {
            let mut random = memory::random::Random::new(4711);
            while go_on.load(Ordering::Relaxed) {
                // Mostly descriptors; the index of the available ring seldom, since that ends the queue.
                let area = areas[[0, 0, 1, 0, 1, 0, 1, 2][random.below(8) as usize]];
                let at = random.below(area.buf.len() as u64 - 1) as usize;
                area.buf.write(at, &[random.next() as u8]);
            }
        });
        // On a busy machine the other thread has its turn late.
        for round in (0..40_000).take_while(|round| *round < 400 || !is_spoilt()) {
            let heads: Vec<u16> = (0..8).map(|head| head * 4).collect();
            heads.iter().for_each(|head| stage.ring.read(*head, 0));
            stage.ring.offer(&heads);
            stage.neighbour.works();
            if round % 20 == 19 {
                assert!(stage.front.accepted(code::RESET_DEVICE, &[], &[]));
                stage.ring.set_avail_index(stage.ring.used_index());
                stage.front.run(&stage.ring);
            }
        }
        scribbling.store(false, Ordering::Relaxed);
    });
    assert!(stage.front.accepted(code::RESET_DEVICE, &[], &[]));
    stage.front.start(0, 64).works();
    assert_eq!(stage.count(QueueCounter::Active), 0);
    assert!(is_spoilt(), "nothing was spoilt");
    assert_eq!(stage.server.count_of("vhost1", QueueCounter::Errors), 0);
}
