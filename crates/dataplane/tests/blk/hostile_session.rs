//! Clients that break the rules of the vhost-user protocol, or stop in the middle of it.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};

use crate::common::Server;
use crate::common::raw::{
    CONFIG_WCE, FLUSH, Front, GUARD, PROTOCOL_FEATURES, Region, Ring, VERSION_1, code, eventfd,
    halves, until, words,
};
use protocol::message::{AdapterState, Request};
use protocol::stats::QueueCounter;

/// An adapter to be tried out, and another one on the same channel whose client must not notice.
struct Stage {
    server: Server,
    socket: PathBuf,
    _neighbour: Front,
    neighbour: Ring,
}

fn stage() -> Stage {
    let server = Server::new(1);
    server.must(Request::PutVolume(server.file(64)));
    let socket = server.put_adapter(|_| ());
    let other = server.put_adapter(|spec| *spec = server.adapter("vhost1"));
    let (front, neighbour) = Front::ready(&other);
    Stage { server, socket, _neighbour: front, neighbour }
}

impl Stage {
    /// The session has ended for this reason; the neighbour and the next client are served.
    #[track_caller]
    fn has_ended(&self, front: &Front, why: &str) {
        assert!(front.hung_up());
        until("the session's end", || {
            self.server.adapter_named("vhost0").state == AdapterState::Listening
        });
        let reason = self.server.adapter_named("vhost0").reason.unwrap_or_default();
        assert!(reason.contains(why), "{reason:?} instead of {why:?}");
        self.goes_on();
    }

    #[track_caller]
    fn goes_on(&self) {
        self.neighbour.works();
        let (_front, ring) = Front::ready(&self.socket);
        ring.works();
    }
}

fn pipe() -> OwnedFd {
    rustix::pipe::pipe().unwrap().1
}

fn on_disk(folder: &Path) -> File {
    // Not in a tmpfs: what the checkout lies on is a disk, or at least no memory.
    let _ = folder;
    let file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).unwrap();
    file.set_len(8 << 20).unwrap();
    file
}

#[test]
fn descriptors_that_are_no_eventfds_are_refused() {
    let stage = stage();
    let file = on_disk(stage.server.dir.path());
    for message in [code::SET_VRING_CALL, code::SET_VRING_KICK, code::SET_VRING_ERR] {
        for fd in [pipe().as_fd(), file.as_fd()] {
            let front = Front::connect(&stage.socket);
            assert!(!front.set_fd(message, 0, fd));
            stage.has_ended(&front, "must be eventfds");
        }
    }
}

#[test]
fn a_queue_without_a_kick_is_refused() {
    let stage = stage();
    let front = Front::connect(&stage.socket);
    assert!(!front.accepted(code::SET_VRING_KICK, &words(&[1 << 8]), &[]));
    stage.has_ended(&front, "without a kick");
}

#[test]
fn memory_that_makes_no_sense_is_refused() {
    let stage = stage();
    let page = 4096;
    // Where a table and a single region are judged by different parsers, both say their own.
    let cases: &[(&[Region], &str)] = &[
        (&[[0, 0, 0x10_0000, 0]], "me"),
        (&[[0, page, 0x10_0000, 0], [page / 2, page, 0x20_0000, 0]], "overlaps"),
        (&[[0, page, 0x10_0000, 0], [0x10_0000, page, 0x10_0800, 0]], "overlaps"),
        (&[[0, page, 0x10_0000, 8 << 20]], "cannot map"),
        (&[[0, 16 << 20, 0x10_0000, 0]], "cannot map"),
        (&[[0, 1 << 60, 0x10_0000, 0]], "this host has"),
        (&[[u64::MAX - 100, page, 0x10_0000, 0]], "me"),
        (&[[0, page, u64::MAX - 100, 0]], "me"),
        (&[[0, page, 0x10_0000, u64::MAX - 100]], "me"),
    ];
    for (regions, why) in cases {
        let front = Front::connect(&stage.socket);
        assert!(!front.set_mem_table(regions, front.memory.file()), "{regions:x?}");
        stage.has_ended(&front, why);
        let last = regions.last().unwrap();
        let front = Front::connect(&stage.socket);
        if regions.len() == 2 {
            assert!(front.add_region(&regions[0], front.memory.file()));
        }
        assert!(!front.add_region(last, front.memory.file()), "{last:x?}");
        stage.has_ended(&front, why);
    }
    // More regions than descriptors.
    let front = Front::connect(&stage.socket);
    let body = [halves(&[2, 0]), words(&[0, page, 0x10_0000, 0, page, page, 0x20_0000, 0])];
    let fds = [front.memory.file().as_fd()];
    assert!(!front.accepted(code::SET_MEM_TABLE, &body.concat(), &fds));
    stage.has_ended(&front, "message");
    let front = Front::connect(&stage.socket);
    front.share_memory();
    assert!(!front.remove_region(&[0, page, 0, 0]));
    stage.has_ended(&front, "to remove");
}

/// A page fault in such a file may wait for a disk or, on FUSE, for another process; the whole channel would wait with it.
#[test]
fn shared_memory_on_a_disk_is_refused_wherever_it_comes() {
    let stage = stage();
    let file = on_disk(stage.server.dir.path());
    let why = "must be a memfd";
    let front = Front::connect(&stage.socket);
    assert!(!front.set_mem_table(&[[0, 4096, 0x10_0000, 0]], &file));
    stage.has_ended(&front, why);
    let front = Front::connect(&stage.socket);
    assert!(!front.add_region(&[0, 4096, 0x10_0000, 0], &file));
    stage.has_ended(&front, why);
    let front = Front::connect(&stage.socket);
    let (queues, size) = (1_u16, 64_u16);
    let shape = [queues.to_le_bytes(), size.to_le_bytes()].concat();
    let kept = [words(&[1 << 20, 0]), shape, vec![0; 4]].concat();
    assert!(!front.accepted(code::SET_INFLIGHT_FD, &kept, &[file.as_fd()]));
    stage.has_ended(&front, why);
    let front = Front::connect(&stage.socket);
    front.send(code::SET_LOG_BASE, &words(&[1 << 20, 0]), &[file.as_fd()]);
    stage.has_ended(&front, why);
}

#[test]
fn a_ring_that_is_not_in_memory_breaks_the_adapter_and_says_which_part() {
    let stage = stage();
    let front = Front::connect(&stage.socket);
    front.share_memory();
    let [_, _, user, _] = front.regions()[0];
    let sane = [user, user + 0x1000, user + 0x2000];
    let cases = [
        (0, user + 8, "descriptor table"),
        (0, 0x1000, "descriptor table"),
        (0, user + (8 << 20) - 16, "descriptor table"),
        (1, user + 2, "used ring"),
        (1, u64::MAX - 2, "used ring"),
        (2, user + 1, "available ring"),
        (2, user + (8 << 20), "available ring"),
    ];
    let kick = eventfd();
    for (part, address, why) in cases {
        let mut spoilt = sane;
        spoilt[part] = address;
        assert!(front.state(code::SET_VRING_NUM, 0, 64));
        // The `vhost` crate refuses what is not aligned before the session sees it.
        if !front.set_addresses(0, spoilt[0], spoilt[1], spoilt[2]) {
            stage.has_ended(&front, "message");
            return a_ring_that_is_misaligned_ends_the_session(&stage);
        }
        assert!(front.set_fd(code::SET_VRING_KICK, 0, kick.as_fd()));
        assert!(front.state(code::SET_VRING_ENABLE, 0, 1));
        let status = stage.server.adapter_named("vhost0");
        assert_eq!(status.state, AdapterState::Broken, "{why} at {address:#x}");
        let reason = status.reason.unwrap_or_default();
        assert!(reason.contains(why), "{reason}");
        assert!(front.accepted(code::RESET_DEVICE, &[], &[]));
    }
    front.start(0, 64).works();
    assert_eq!(stage.server.adapter_named("vhost0").state, AdapterState::Running);
    stage.neighbour.works();
}

fn a_ring_that_is_misaligned_ends_the_session(stage: &Stage) {
    let front = Front::connect(&stage.socket);
    front.share_memory();
    let [_, _, user, _] = front.regions()[0];
    let kick = eventfd();
    for (desc, why) in [(0x1000, "descriptor table"), (user + (8 << 20) - 16, "descriptor table")] {
        assert!(front.state(code::SET_VRING_NUM, 0, 64));
        assert!(front.set_addresses(0, desc, user + 0x1000, user + 0x2000));
        assert!(front.set_fd(code::SET_VRING_KICK, 0, kick.as_fd()));
        assert!(front.state(code::SET_VRING_ENABLE, 0, 1));
        let reason = stage.server.adapter_named("vhost0").reason.unwrap_or_default();
        assert!(reason.contains(why), "{reason}");
        assert!(front.accepted(code::RESET_DEVICE, &[], &[]));
    }
    front.start(0, 64).works();
    stage.neighbour.works();
}

#[test]
fn a_queue_that_the_adapter_does_not_have_ends_the_session() {
    let stage = stage();
    let states =
        [code::SET_VRING_NUM, code::SET_VRING_BASE, code::GET_VRING_BASE, code::SET_VRING_ENABLE];
    for message in states {
        for index in [8, 255, u32::MAX] {
            let front = Front::connect(&stage.socket);
            assert!(!front.state(message, index, 1), "{message} {index}");
            stage.has_ended(&front, "message");
        }
    }
    for message in [code::SET_VRING_CALL, code::SET_VRING_KICK, code::SET_VRING_ERR] {
        let front = Front::connect(&stage.socket);
        assert!(!front.set_fd(message, 8, eventfd().as_fd()));
        stage.has_ended(&front, "message");
    }
    let front = Front::connect(&stage.socket);
    assert!(!front.set_addresses(8, 0x1000, 0x2000, 0x3000));
    stage.has_ended(&front, "message");
}

#[test]
fn a_queue_size_that_is_not_accepted_is_named() {
    let stage = stage();
    for size in [0, 3, 2048, 65536, u32::MAX] {
        let front = Front::connect(&stage.socket);
        assert!(!front.state(code::SET_VRING_NUM, 0, size));
        stage.has_ended(&front, &format!("a queue of {size};"));
    }
    // A base that no ring has.
    let front = Front::connect(&stage.socket);
    assert!(!front.state(code::SET_VRING_BASE, 0, 65536));
    stage.has_ended(&front, "message");
}

/// A driver cannot change its ring's size while it runs; a front end can, and gets the queue anew.
#[test]
fn a_size_that_changes_under_way_takes_effect_between_two_requests() {
    let stage = stage();
    let (front, ring) = Front::ready(&stage.socket);
    ring.works();
    assert!(front.state(code::SET_VRING_NUM, 0, 32));
    let smaller = ring.resized(32);
    smaller.works();
    assert_eq!(front.stop(0), 2);
    stage.neighbour.works();
}

#[test]
fn features_that_were_not_offered_end_the_session() {
    let stage = stage();
    for bit in [35, 63] {
        let front = Front::connect(&stage.socket);
        assert!(!front.accepted(code::SET_FEATURES, &words(&[VERSION_1 | 1 << bit]), &[]));
        stage.has_ended(&front, "features that were not offered");
    }
    let front = Front::connect(&stage.socket);
    assert!(!front.accepted(code::SET_PROTOCOL_FEATURES, &words(&[1 << 3 | 1 << 40]), &[]));
    stage.has_ended(&front, "protocol features that were not offered");
}

#[test]
fn the_configuration_space_is_read_at_any_offset() {
    let stage = stage();
    let front = Front::connect(&stage.socket);
    let whole = front.config(0, 256);
    assert_eq!(whole.len(), 256);
    assert_eq!(whole[..8], ((64 << 20) / 512_u64).to_le_bytes());
    assert!(whole[60..].iter().all(|byte| *byte == 0));
    for (offset, size) in [(1, 3), (0, 1), (7, 2), (59, 2), (33, 17), (255, 1), (100, 150)] {
        let (from, to) = (offset as usize, (offset + size) as usize);
        assert_eq!(front.config(offset, size), whole[from..to], "{size} at {offset}");
    }
    let front = Front::connect_second(front, &stage.socket);
    // Refused, by the session with an empty answer or by the parser with the end of the session.
    let body = [halves(&[250, 7, 0]), vec![0; 7]].concat();
    front.send(code::GET_CONFIG, &body, &[]);
    let mut header = [0; 12];
    if (&front.stream).read_exact(&mut header).is_ok() {
        assert_eq!(header[8..], 12_u32.to_le_bytes(), "an answer without bytes");
    }
    drop(front);
    stage.goes_on();
}

impl Front {
    /// The next client, once the one before it has gone.
    fn connect_second(first: Front, socket: &Path) -> Front {
        drop(first);
        Front::connect(socket)
    }
}

#[test]
fn only_the_write_cache_can_be_written() {
    let stage = stage();
    let wrong: [(u32, &[u8]); 5] =
        [(0, &[0; 8]), (31, &[1]), (32, &[2]), (32, &[0, 0]), (33, &[0])];
    for (offset, bytes) in wrong {
        let front = Front::connect(&stage.socket);
        assert!(!front.set_config(offset, bytes), "{bytes:?} at {offset}");
        let why = format!("wrote {} bytes at {offset}", bytes.len());
        stage.has_ended(&front, &why);
    }
    // Not without the feature either.
    let front = Front::with_features(&stage.socket, VERSION_1 | PROTOCOL_FEATURES | FLUSH);
    assert!(!front.set_config(32, &[0]));
    stage.has_ended(&front, "wrote 1 bytes at 32");
}

#[test]
fn the_write_cache_is_switched_while_requests_run() {
    let stage = stage();
    let (front, ring) = Front::ready(&stage.socket);
    for round in 0..20_u8 {
        let on = round % 2;
        let heads: Vec<u16> = (0..8).map(|head| head * 4).collect();
        for head in &heads {
            ring.request(*head, 1, 8, (ring.data.guest.0, 4096, 0));
        }
        ring.offer(&heads);
        assert!(front.set_config(32, &[on]));
        assert_eq!(front.config(32, 1), [on]);
        ring.wait();
        assert!(heads.iter().all(|head| ring.status_of(*head) == 0));
    }
    // Without FLUSH a client cannot ask for durability, so it has it always.
    let features = VERSION_1 | PROTOCOL_FEATURES | CONFIG_WCE;
    assert!(front.accepted(code::SET_FEATURES, &words(&[features]), &[]));
    assert_eq!(front.config(32, 1), [0]);
    ring.works();
}

#[test]
fn a_client_that_falls_silent_holds_up_nobody() {
    let messages: [&[u8]; 4] = [
        &[code::SET_FEATURES as u8],
        &[1, 0, 0, 0, 1, 0],
        // A whole header that promises a body, which never comes.
        &[5, 0, 0, 0, 1, 0, 0, 0, 0, 8, 0, 0],
        &[2, 0, 0, 0, 1, 0, 0, 0, 8, 0, 0, 0, 1, 2, 3],
    ];
    for message in messages {
        let stage = stage();
        let mut silent = UnixStream::connect(&stage.socket).unwrap();
        silent.write_all(message).unwrap();
        stage.neighbour.works();
        // Statistics, states and changes of the adapter do not wait for the client.
        assert_eq!(stage.server.status().adapters.len(), 2);
        stage.server.must(Request::PutAdapter(stage.server.adapter("vhost0")));
        stage.server.must(Request::RemoveAdapter { name: "vhost0".into() });
        assert!(!stage.socket.exists());
        stage.neighbour.works();
    }
}

/// Also one that asks and asks and never reads an answer.
#[test]
fn a_client_that_does_not_read_holds_up_nobody() {
    let stage = stage();
    let deaf = Front::connect(&stage.socket);
    deaf.stream.set_nonblocking(true).unwrap();
    let message = [halves(&[code::GET_CONFIG, 1, 12 + 256, 0, 256, 0]), vec![0; 256]].concat();
    let mut stream = &deaf.stream;
    // Until neither socket takes more: then the session's thread waits for its reader.
    let mut refused = 0;
    while refused < 50 {
        match stream.write(&message) {
            // A part of a message would be the end of the conversation.
            Ok(count) if count == message.len() => {}
            Ok(_) => break,
            Err(_) => {
                refused += 1;
                std::thread::sleep(std::time::Duration::from_millis(2));
            }
        }
    }
    stage.neighbour.works();
    assert_eq!(stage.server.status().adapters.len(), 2);
    stage.server.must(Request::RemoveAdapter { name: "vhost0".into() });
    stage.neighbour.works();
}

#[test]
fn a_second_client_is_refused_and_the_first_goes_on() {
    let stage = stage();
    let (front, ring) = Front::ready(&stage.socket);
    for _ in 0..3 {
        let second = UnixStream::connect(&stage.socket).unwrap();
        second.set_read_timeout(Some(GUARD)).unwrap();
        // While it waits for its refusal, the first is attended to.
        ring.works();
        assert_eq!(front.config(0, 8).len(), 8);
        let answer = (&second).read(&mut [0; 1]);
        let closed = matches!(&answer, Ok(0))
            || answer.as_ref().is_err_and(|e| e.kind() == std::io::ErrorKind::ConnectionReset);
        assert!(closed, "{answer:?}");
        ring.works();
    }
    let status = stage.server.adapter_named("vhost0");
    assert_eq!((status.state, status.connections), (AdapterState::Running, 1));
    assert!(status.reason.unwrap().contains("a second client was refused"));
    assert_eq!(front.config(0, 8).len(), 8);
}

/// As a process leaves that is killed while a program is being started from it: the fork has its descriptors a little longer.
#[test]
fn a_client_that_comes_back_before_its_earlier_connection_is_closed_is_let_in() {
    let stage = stage();
    let (front, _) = Front::ready(&stage.socket);
    let forked = front.stream.try_clone().unwrap();
    drop(front);
    let closing = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(100));
        drop(forked);
    });
    let (_front, ring) = Front::ready(&stage.socket);
    ring.works();
    let status = stage.server.adapter_named("vhost0");
    assert_eq!((status.state, status.connections), (AdapterState::Running, 2));
    assert_eq!(status.reason, None);
    closing.join().unwrap();
}

#[test]
fn a_client_is_told_of_a_new_size() {
    let stage = stage();
    let (front, ring) = Front::ready(&stage.socket);
    let (ours, theirs) = UnixStream::pair().unwrap();
    ours.set_read_timeout(Some(GUARD)).unwrap();
    assert!(front.accepted(code::SET_BACKEND_REQ_FD, &[], &[theirs.as_fd()]));
    drop(theirs);
    let sector = (64 << 20) / 512;
    ring.read(0, sector);
    assert_eq!(ring.status_after(0), 1);
    let resize = |bytes, shrink| Request::ResizeVolume { name: "v".into(), bytes, shrink };
    for (bytes, shrink) in [(128 << 20, false), (32 << 20, true), (128 << 20, false)] {
        stage.server.must(resize(bytes, shrink));
        let mut message = [0; 12];
        (&ours).read_exact(&mut message).unwrap();
        assert_eq!(message[..4], 2_u32.to_le_bytes(), "a change of the configuration");
        assert_eq!(front.config(0, 8), (bytes / 512).to_le_bytes());
        ring.read(0, bytes / 512 - 1);
        assert_eq!(ring.status_after(0), 0, "the last block of {bytes}");
        ring.read(0, bytes / 512);
        assert_eq!(ring.status_after(0), 1, "the block behind {bytes}");
    }
    assert!(stage.server.count_of("vhost0", QueueCounter::OutOfRange) >= 4);
    // A client that does not listen for it misses nothing else.
    drop(ours);
    stage.server.must(resize(64 << 20, true));
    ring.works();
}

/// Addresses are the whole process's. A file without pages can be as large as its maker likes.
#[test]
fn more_memory_than_the_host_has_is_refused() {
    let stage = stage();
    let front = Front::connect(&stage.socket);
    let huge = 1 << 46;
    let file = rustix::fs::memfd_create("huge", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(file);
    file.set_len(huge).unwrap();
    assert!(!front.add_region(&[0, huge, 0, 0], &file));
    stage.has_ended(&front, "this host has");
    let front = Front::connect(&stage.socket);
    assert!(!front.accepted(code::SET_LOG_BASE, &words(&[huge, 0]), &[file.as_fd()]));
    stage.has_ended(&front, "this host has");
}

/// Each client alone keeps to what it is told it may have.
#[test]
fn clients_with_very_many_regions_leave_some_to_others() {
    const PAGE: u64 = 4096;
    let server = Server::new(1);
    server.must(Request::PutVolume(server.file(64)));
    let file = rustix::fs::memfd_create("pages", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
    let file = File::from(file);
    file.set_len(PAGE).unwrap();
    let mut all = 0;
    let greedy: Vec<Front> = (0..18)
        .map(|number| {
            let name = format!("vhost{number}");
            let front = Front::connect(&server.put_adapter(|spec| *spec = server.adapter(&name)));
            let region = |at: u64| [at * 2 * PAGE, PAGE, at * 2 * PAGE, 0];
            all += (0..509).take_while(|at| front.add_region(&region(*at), &file)).count();
            front
        })
        .collect();
    assert!(all > 4000, "{all}");
    let modest = server.put_adapter(|spec| *spec = server.adapter("modest"));
    let (_front, ring) = Front::ready(&modest);
    ring.works();
    drop(greedy);
}
