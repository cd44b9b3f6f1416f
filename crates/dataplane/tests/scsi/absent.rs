//! Task management and queues that do not run: of a process that died, or disabled by the client. A function is answered when no command
//! of its scope is left, wherever it is.

use std::os::fd::AsFd;
use std::path::Path;
use std::time::Duration;

use crate::common::raw::{
    Front, INDIRECT, NEXT, PROTOCOL_FEATURES, Ring, TABLE, VERSION_1, WRITE, code, descriptor,
    words,
};
use crate::common::scsi::{adapter, target};
use crate::common::{Server, slow_by};
use partition::scsi::response;
use protocol::message::Request;
use protocol::stats::QueueCounter;
use vring::{InflightRegion, QueueConfig, UserAddr};

const SIZE: u16 = 64;
/// Four request queues, control and event.
const QUEUES: u16 = 6;
const CONTROL: u32 = 0;
const REQUESTS: u32 = 2;
const LUN_0: [u8; 8] = [1, 0, 0, 0, 0, 0, 0, 0];
/// Where the parts of command `n` lie in its ring's data buffer: `n` times this.
const STRIDE: u64 = 2048;
const WRITES: u16 = 4;

fn connect(socket: &Path) -> Front {
    let front = Front::with_features(socket, VERSION_1 | PROTOCOL_FEATURES | INDIRECT);
    front.share_memory();
    front
}

/// WRITE(10) of block `n`, in three descriptors.
fn add_write(ring: &Ring, n: u16, byte: u8) -> u16 {
    let at = STRIDE * u64::from(n);
    let buf = ring.data.buf.slice(at as usize, STRIDE as usize);
    let mut header = [0; 51];
    header[..8].copy_from_slice(&LUN_0);
    header[8] = n as u8;
    header[19..29].copy_from_slice(&[0x2a, 0, 0, 0, 0, n as u8, 0, 0, 1, 0]);
    buf.write(0, &header);
    buf.write(512, &[byte; 512]);
    buf.write(1024, &[0xee; 108]);
    let (head, guest) = (3 * n, ring.data.guest.0 + at);
    ring.set_desc(head, guest, 51, NEXT, head + 1);
    ring.set_desc(head + 1, guest + 512, 512, NEXT, head + 2);
    ring.set_desc(head + 2, guest + 1024, 108, WRITE, 0);
    head
}

fn response_of(ring: &Ring, n: u16) -> u8 {
    let mut byte = [0];
    ring.data.buf.read(STRIDE as usize * usize::from(n) + 1024 + 11, &mut byte);
    byte[0]
}

/// LOGICAL UNIT RESET.
fn reset(control: &Ring) {
    manage(control, 5, 0);
}

/// A task management function, for a command that it may name.
fn manage(control: &Ring, function: u8, id: u8) {
    let mut request = [0; 24];
    request[4] = function;
    request[8..16].copy_from_slice(&LUN_0);
    request[16] = id;
    control.data.buf.write(0, &request);
    control.data.buf.write(1024, &[0xee]);
    control.set_desc(0, control.data.guest.0, 24, NEXT, 1);
    control.set_desc(1, control.data.guest.0 + 1024, 1, WRITE, 0);
    control.offer(&[0]);
}

fn answer_of(control: &Ring) -> u8 {
    let mut byte = [0];
    control.data.buf.read(1024, &mut byte);
    byte[0]
}

/// Time for an answer that must not come: too little of it makes the test pass, never fail.
fn grace() {
    std::thread::sleep(Duration::from_millis(200));
}

/// A process takes what is available, and is gone.
fn take_and_die(front: &Front, ring: &Ring, region: &InflightRegion) {
    let user = |range: &vring::driver::DriverRange| UserAddr(range.buf.as_ptr().addr() as u64);
    let config = QueueConfig {
        size: SIZE,
        desc: user(&ring.desc),
        avail: user(&ring.avail),
        used: user(&ring.used),
        base: 0,
        at_used: false,
        event_idx: false,
        indirect: true,
        in_order: false,
        used_log: None,
        log: None,
        inflight: region.queue(ring.index as u16),
    };
    let table = std::sync::Arc::new(front.memory.table().unwrap());
    let mut queue = config.start(table).map_err(|(_, error)| error).unwrap();
    assert_eq!(queue.pending().unwrap(), WRITES);
    while queue.pop().unwrap().is_some() {}
}

#[test]
fn a_reset_ends_the_commands_of_a_dead_process_before_it_is_answered() {
    let server = Server::new(2);
    let socket = server.with_units(1, 8);
    for round in 1..=5_u8 {
        let front = connect(&socket);
        let (control, requests) =
            (Ring::new(&front.memory, CONTROL, SIZE), Ring::new(&front.memory, REQUESTS, SIZE));
        let heads: Vec<u16> = (0..WRITES).map(|n| add_write(&requests, n, round)).collect();
        requests.offer(&heads);
        let (file, region) = InflightRegion::create(QUEUES, SIZE).unwrap();
        take_and_die(&front, &requests, &region);
        let kept = words(&[
            InflightRegion::bytes(QUEUES, SIZE),
            0,
            u64::from(SIZE) << 16 | u64::from(QUEUES),
        ]);
        assert!(front.accepted(code::SET_INFLIGHT_FD, &kept, &[file.as_fd()]));
        reset(&control);
        front.run(&control);
        grace();
        assert_eq!(control.used_index(), 0, "answered while commands are in flight");
        front.run(&requests);
        control.wait();
        assert_eq!(answer_of(&control), response::OK);
        assert_eq!(requests.used_index(), WRITES, "commands are left");
        // The client uses its memory for something else.
        requests.data.buf.fill(0xbd);
        assert_eq!(front.stop(REQUESTS), u32::from(WRITES));
        assert!(server.in_file(0).iter().all(|byte| *byte <= round), "a write came late");
        drop(front);
        server.settled_named("vfchost0");
    }
}

#[test]
fn a_reset_covers_what_lies_in_the_ring_of_a_queue_that_does_not_run() {
    let server = Server::new(2);
    let socket = server.with_units(1, 8);
    let front = connect(&socket);
    let control = front.start(CONTROL, SIZE);
    let requests = front.start(REQUESTS, SIZE);
    assert!(front.state(code::SET_VRING_ENABLE, REQUESTS, 0));
    let heads: Vec<u16> = (0..WRITES).map(|n| add_write(&requests, n, 1)).collect();
    requests.offer(&heads);
    reset(&control);
    grace();
    assert_eq!(control.used_index(), 0, "answered while commands are in the ring");
    assert!(front.state(code::SET_VRING_ENABLE, REQUESTS, 1));
    control.wait();
    assert_eq!(answer_of(&control), response::OK);
    assert_eq!(requests.used_index(), WRITES, "commands are left");
    let ended = |n| matches!(response_of(&requests, n), response::OK | response::RESET);
    assert!((0..WRITES).all(ended));
}

#[test]
fn a_reset_that_waits_fails_when_the_control_queue_stops() {
    let server = Server::new(2);
    let socket = server.with_units(1, 8);
    let front = connect(&socket);
    let control = front.start(CONTROL, SIZE);
    let requests = front.start(REQUESTS, SIZE);
    assert!(front.state(code::SET_VRING_ENABLE, REQUESTS, 0));
    reset(&control);
    grace();
    assert_eq!(front.stop(CONTROL), 1);
    assert_eq!((control.used_index(), answer_of(&control)), (1, response::FAILURE));
    assert!(front.state(code::SET_VRING_ENABLE, REQUESTS, 1));
    assert_eq!(requests.used_index(), 0);
}

#[test]
fn a_queue_that_the_client_has_stopped_is_waited_for_by_nobody() {
    let server = Server::new(2);
    let socket = server.with_units(1, 8);
    let front = connect(&socket);
    let control = front.start(CONTROL, SIZE);
    front.start(REQUESTS, SIZE);
    assert!(front.state(code::SET_VRING_ENABLE, REQUESTS, 0));
    reset(&control);
    grace();
    assert_eq!(control.used_index(), 0);
    front.stop(REQUESTS);
    control.wait();
    assert_eq!(answer_of(&control), response::OK);
}

/// Nobody can know of its ring when the function comes: what is in it is ended when the queue comes.
#[test]
fn a_reset_covers_the_ring_of_a_queue_that_has_not_been_heard_of() {
    let server = Server::new(2);
    let socket = server.with_units(1, 8);
    let before = server.in_file(0);
    for round in 1..=5_u8 {
        let front = connect(&socket);
        let (control, requests) =
            (Ring::new(&front.memory, CONTROL, SIZE), Ring::new(&front.memory, REQUESTS, SIZE));
        let heads: Vec<u16> = (0..WRITES).map(|n| add_write(&requests, n, round)).collect();
        requests.offer(&heads);
        reset(&control);
        front.run(&control);
        control.wait();
        assert_eq!(answer_of(&control), response::OK);
        front.run(&requests);
        crate::common::raw::until("the commands end", || requests.used_index() == WRITES);
        assert!((0..WRITES).all(|n| response_of(&requests, n) == response::RESET));
        assert_eq!(server.in_file(0), before, "a write landed after its reset");
        // The next life of the queue owes nothing: the attentions of the client and of the reset, and then a write.
        let write = add_write(&requests, WRITES, 0);
        front.stop(REQUESTS);
        front.run(&requests);
        for _ in 0..3 {
            requests.offer(&[write]);
            requests.wait();
            assert_eq!(response_of(&requests, WRITES), response::OK);
        }
        drop(front);
        server.settled_named("vfchost0");
    }
}

/// The client has stopped it with commands in its ring, and starts it again.
#[test]
fn a_reset_covers_the_ring_of_a_queue_that_the_client_has_stopped() {
    let server = Server::new(2);
    let socket = server.with_units(1, 8);
    let before = server.in_file(0);
    let front = connect(&socket);
    let control = front.start(CONTROL, SIZE);
    let requests = front.start(REQUESTS, SIZE);
    front.stop(REQUESTS);
    let heads: Vec<u16> = (0..WRITES).map(|n| add_write(&requests, n, 1)).collect();
    requests.offer(&heads);
    reset(&control);
    control.wait();
    assert_eq!(answer_of(&control), response::OK);
    front.run(&requests);
    crate::common::raw::until("the commands end", || requests.used_index() == WRITES);
    assert!((0..WRITES).all(|n| response_of(&requests, n) == response::RESET));
    assert_eq!(server.in_file(0), before, "a write landed after its reset");
}

/// ABORT TASK means one command, and the others of the ring are done.
#[test]
fn an_abort_covers_one_command_of_a_queue_that_has_not_been_heard_of() {
    let server = Server::new(2);
    let socket = server.with_units(1, 8);
    let front = connect(&socket);
    let (control, requests) =
        (Ring::new(&front.memory, CONTROL, SIZE), Ring::new(&front.memory, REQUESTS, SIZE));
    let heads: Vec<u16> = (0..WRITES).map(|n| add_write(&requests, n, 7)).collect();
    requests.offer(&heads);
    manage(&control, 0, 2);
    front.run(&control);
    control.wait();
    assert_eq!(answer_of(&control), response::OK);
    front.run(&requests);
    crate::common::raw::until("the commands end", || requests.used_index() == WRITES);
    let answers: Vec<u8> = (0..WRITES).map(|n| response_of(&requests, n)).collect();
    assert_eq!(answers, [response::OK, response::OK, response::ABORTED, response::OK]);
    // The first one got the unit attention of a client that comes.
    assert_eq!(server.in_file(0)[2..4], [0, 7]);
}

/// However long the chains, and so however little a turn takes of them.
#[test]
fn a_reset_covers_a_ring_full_of_long_chains_that_nobody_was_told_of() {
    /// Header, response, and a segment for each byte.
    const SEGMENTS: u16 = 514;
    let server = Server::new(1);
    server.units(1, 8, |spec| slow_by(spec, 1_000_000));
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0")])]);
    let front = connect(&socket);
    let control = front.start(CONTROL, SIZE);
    let requests = front.start(REQUESTS, SIZE);
    // One after the other for the unit attention.
    requests.offer(&[add_write(&requests, 0, 0)]);
    requests.wait();
    let guest = requests.data.guest.0;
    let mut header = [0; 51];
    header[..8].copy_from_slice(&LUN_0);
    header[19..29].copy_from_slice(&[0x2a, 0, 0, 0, 0, 0, 0, 0, 1, 0]);
    requests.data.buf.write(0, &header);
    for n in 0..SEGMENTS {
        let (addr, len, flags) = match n {
            0 => (guest, 51, NEXT),
            n if n == SEGMENTS - 1 => (guest + 1024, 108, WRITE),
            _ => (guest + 2048, 1, NEXT),
        };
        let bytes = descriptor(addr, len, flags, n + 1);
        requests.data.buf.write(4096 + 16 * usize::from(n), &bytes);
    }
    let heads: Vec<u16> = (0..SIZE).collect();
    for head in &heads {
        // All have one table of descriptors, and one response.
        requests.set_desc(*head, guest + 4096, 16 * u32::from(SEGMENTS), TABLE, 0);
    }
    // The queue falls asleep.
    grace();
    requests.offer_silently(&heads);
    reset(&control);
    control.wait();
    assert_eq!(answer_of(&control), response::OK);
    assert_eq!(requests.used_index(), SIZE + 1, "commands are left");
}

/// What it has taken of its ring ends by and by; but not after the LUN was taken away.
#[test]
fn a_lun_that_is_taken_away_is_not_used_by_a_queue_that_was_disabled() {
    let server = Server::new(2);
    server.units(2, 8, |spec| slow_by(spec, 500_000));
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0"), (1, "lu1")])]);
    let front = connect(&socket);
    let requests = front.start(REQUESTS, SIZE);
    // The unit attention of a client that comes takes the first one.
    for (n, byte) in [(0, 0), (1, 1)] {
        requests.offer(&[add_write(&requests, n, byte)]);
        if n == 0 {
            requests.wait();
        }
    }
    crate::common::raw::until("the write is under way", || {
        server.count(QueueCounter::CommandsReceived) == 2
    });
    assert!(front.state(code::SET_VRING_ENABLE, REQUESTS, 0));
    let spec = adapter(server.dir.path(), 0, vec![target(0, &[(1, "lu1")])]);
    server.must(Request::PutAdapter(spec));
    let before = server.in_file(0);
    assert_eq!(front.stop(REQUESTS), 2);
    assert_eq!(server.in_file(0), before, "it wrote later");
}
