//! The ring against the real kernel.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::FileExt as _;
use std::time::Duration;

use io_uring::squeue::Flags;
use io_uring::{opcode, types};
use memory::{IoBuf, Lasting};
use rustix::event::{EventfdFlags, eventfd};

use crate::{Completion, FileSlot, Op, Ring, RingConfig, RingError, Rung, WriteFlags};

const LONG: Duration = Duration::from_secs(20);

fn small(restrict: bool) -> RingConfig {
    RingConfig { entries: 8, cq_entries: 16, fixed_files: 4, restrict }
}

fn ring() -> Ring {
    Ring::new(&small(true)).expect("ring")
}

/// Waits for `count` completions.
fn reap(ring: &mut Ring, count: usize) -> Vec<Completion> {
    let mut found = Vec::new();
    while found.len() < count {
        ring.wait(Some(LONG)).expect("wait");
        let before = found.len();
        while let Some(completion) = ring.next() {
            found.push(completion);
        }
        assert!(found.len() > before, "no completion within {LONG:?}; so far {found:?}");
    }
    found
}

fn one(ring: &mut Ring, op: Op<'_>) -> i32 {
    ring.push(op, 77).expect("room");
    let found = reap(ring, 1);
    assert_eq!(found.len(), 1);
    assert_eq!(found[0].user_data, 77);
    found[0].result
}

fn file(bytes: usize) -> File {
    let mut file = tempfile::tempfile().expect("tempfile");
    let content: Vec<u8> = (0..bytes).map(|i| (i % 251) as u8).collect();
    file.write_all(&content).expect("write");
    file
}

#[test]
fn the_newest_flags_are_taken_and_each_older_set_works() {
    for rung in Rung::ALL {
        for restrict in [false, true] {
            let mut ring = Ring::from_rung(&small(restrict), rung).expect("ring");
            assert!(ring.rung() >= rung);
            assert_eq!(one(&mut ring, Op::Nop), 0);
            let file = file(100);
            let slot = ring.register(file.as_fd()).expect("register");
            let memory = Lasting::new(4096).expect("memory");
            let bufs = [memory.buf(0, 100).expect("inside")];
            assert_eq!(
                one(&mut ring, Op::Read { file: slot, bufs: &bufs, offset: 0, nowait: false }),
                100
            );
            ring.unregister(slot);
        }
    }
}

#[test]
fn reads_and_writes_single_and_scattered() {
    let mut ring = ring();
    let file = file(8192);
    let slot = ring.register(file.as_fd()).expect("register");
    let memory = Lasting::new(65536).expect("memory");
    let at = |offset, len| memory.buf(offset, len).expect("inside");

    assert_eq!(
        one(&mut ring, Op::Read { file: slot, bufs: &[at(0, 4096)], offset: 4096, nowait: false }),
        4096
    );
    let mut got = vec![0; 4096];
    at(0, 4096).read(0, &mut got);
    assert!(got.iter().enumerate().all(|(i, byte)| *byte == ((i + 4096) % 251) as u8));

    // Three pieces, written from scattered memory and read back in another cut.
    at(100, 5).fill(1);
    at(5000, 7).fill(2);
    at(9000, 1).fill(3);
    let pieces = [at(100, 5), at(5000, 7), at(9000, 1)];
    let flags = WriteFlags::DSYNC;
    let write = Op::Write { file: slot, bufs: &pieces, offset: 10, flags };
    assert_eq!(one(&mut ring, write), 13);
    let mut found = [0; 13];
    file.read_exact_at(&mut found, 10).expect("read");
    assert_eq!(found, [1, 1, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 3]);
    let cut = [at(20000, 6), at(30000, 7)];
    assert_eq!(one(&mut ring, Op::Read { file: slot, bufs: &cut, offset: 10, nowait: false }), 13);
    let mut found = [0; 6];
    at(20000, 6).read(0, &mut found);
    assert_eq!(found, [1, 1, 1, 1, 1, 2]);

    // At the end of the file a read is short and beyond it empty.
    assert_eq!(
        one(&mut ring, Op::Read { file: slot, bufs: &[at(0, 4096)], offset: 8000, nowait: false }),
        192
    );
    assert_eq!(
        one(&mut ring, Op::Read { file: slot, bufs: &[at(0, 4096)], offset: 9000, nowait: false }),
        0
    );
    assert_eq!(one(&mut ring, Op::Read { file: slot, bufs: &[], offset: 0, nowait: false }), 0);
    assert_eq!(one(&mut ring, Op::DataSync { file: slot }), 0);
    let punch = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
    assert_eq!(one(&mut ring, Op::Fallocate { file: slot, mode: punch, offset: 0, len: 4096 }), 0);
    assert_eq!(file.metadata().expect("stat").len(), 8192);
}

#[test]
fn pieces_need_to_live_only_until_the_submission() {
    let mut ring = ring();
    let file = file(8 * Op::MAX_BUFS);
    let slot = ring.register(file.as_fd()).expect("register");
    let memory = Lasting::new(8 * Op::MAX_BUFS).expect("memory");
    let mut expected = BTreeMap::new();
    // Four times the most pieces fit the area; the vectors are gone before the submission.
    for index in 0..4_u64 {
        let pieces: Vec<IoBuf> =
            (0..Op::MAX_BUFS).map(|i| memory.buf(i * 8, 1).expect("inside")).collect();
        let read = Op::Read { file: slot, bufs: &pieces, offset: index, nowait: false };
        ring.push(read, index).expect("room");
        expected.insert(index, Op::MAX_BUFS as i32);
    }
    let pieces = [memory.buf(0, 1).expect("inside"); 2];
    let read = Op::Read { file: slot, bufs: &pieces, offset: 0, nowait: false };
    assert!(ring.push(read, 9).is_err(), "the area is full");
    ring.submit().expect("submit");
    ring.push(read, 9).expect("room again");
    expected.insert(9, 2);
    let found = reap(&mut ring, 5);
    let found: BTreeMap<u64, i32> = found.iter().map(|c| (c.user_data, c.result)).collect();
    assert_eq!(found, expected);
}

#[test]
fn a_full_submission_queue_refuses_and_a_submit_makes_room() {
    let mut ring = ring();
    assert_eq!(ring.space(), 8);
    for index in 0..8 {
        ring.push(Op::Nop, index).expect("room");
    }
    assert_eq!(ring.space(), 0);
    assert!(ring.push(Op::Nop, 8).is_err());
    assert!(ring.push(Op::Timeout { after: LONG }, 8).is_err());
    ring.submit().expect("submit");
    assert_eq!(ring.space(), 8);
    ring.push(Op::Nop, 8).expect("room");
    let mut found: Vec<u64> = reap(&mut ring, 9).iter().map(|c| c.user_data).collect();
    found.sort_unstable();
    assert_eq!(found, (0..9).collect::<Vec<u64>>());
    assert!(!ring.ready());
    assert_eq!(ring.next(), None);
}

#[test]
fn a_completion_queue_that_overflows_loses_nothing() {
    let mut ring = ring();
    let total = 200;
    for index in 0..total {
        if ring.space() == 0 {
            ring.submit().expect("submit");
        }
        ring.push(Op::Nop, index).expect("room");
    }
    let mut seen = vec![0_u32; total as usize];
    let mut rounds = 0;
    while seen.iter().sum::<u32>() < total as u32 {
        ring.submit().expect("submit");
        assert!(ring.ready(), "completions are left, so the ring is ready");
        while let Some(completion) = ring.next() {
            seen[completion.user_data as usize] += 1;
        }
        rounds += 1;
    }
    assert!(rounds > 1, "16 entries cannot have held {total} completions at once");
    assert!(seen.iter().all(|count| *count == 1));
    assert!(!ring.ready());
}

#[test]
fn an_eventfd_polled_once_reports_every_write() {
    let mut ring = ring();
    let kick = eventfd(0, EventfdFlags::NONBLOCK).expect("eventfd");
    let slot = ring.register(kick.as_fd()).expect("register");
    ring.push(Op::PollMulti { file: slot }, 5).expect("room");
    ring.submit().expect("submit");
    assert_eq!(ring.next(), None);
    for _ in 0..3 {
        rustix::io::write(&kick, &1_u64.to_ne_bytes()).expect("kick");
        let found = reap(&mut ring, 1);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].user_data, found[0].more), (5, true));
        assert!(found[0].result & i32::from(libc::POLLIN) != 0);
    }
    // The same ring can also read it, which resets it.
    let memory = Lasting::new(4096).expect("memory");
    let bufs = [memory.buf(0, 8).expect("inside")];
    assert_eq!(one(&mut ring, Op::Read { file: slot, bufs: &bufs, offset: 0, nowait: false }), 8);
    let mut count = [0; 8];
    bufs[0].read(0, &mut count);
    assert_eq!(u64::from_ne_bytes(count), 3);

    ring.push(Op::Cancel { user_data: 5 }, 6).expect("room");
    let mut found = reap(&mut ring, 2);
    found.sort_by_key(|c| c.user_data);
    assert_eq!((found[0].user_data, found[0].result), (5, -libc::ECANCELED));
    assert!(!found[0].more);
    assert_eq!((found[1].user_data, found[1].result), (6, 0));
}

#[test]
fn a_kick_from_another_thread_ends_a_wait() {
    let mut ring = ring();
    let kick = eventfd(0, EventfdFlags::NONBLOCK).expect("eventfd");
    let slot = ring.register(kick.as_fd()).expect("register");
    ring.push(Op::PollMulti { file: slot }, 1).expect("room");
    std::thread::scope(|scope| {
        scope.spawn(|| {
            std::thread::sleep(Duration::from_millis(5));
            rustix::io::write(&kick, &1_u64.to_ne_bytes()).expect("kick");
        });
        assert_eq!(reap(&mut ring, 1)[0].user_data, 1);
    });
}

#[test]
fn timeouts_as_operation_and_as_argument_of_the_wait() {
    let mut ring = ring();
    assert_eq!(one(&mut ring, Op::Timeout { after: Duration::from_millis(2) }), -libc::ETIME);
    ring.push(Op::Timeout { after: LONG }, 1).expect("room");
    let before = std::time::Instant::now();
    ring.wait(Some(Duration::from_millis(3))).expect("a timeout is no error");
    assert!(before.elapsed() >= Duration::from_millis(3));
    assert_eq!(ring.next(), None);
    assert_eq!(one(&mut ring, Op::Cancel { user_data: 99 }), -libc::ENOENT);
    ring.push(Op::Cancel { user_data: 1 }, 2).expect("room");
    let mut found = reap(&mut ring, 2);
    found.sort_by_key(|c| c.user_data);
    assert_eq!((found[0].result, found[1].result), (-libc::ECANCELED, 0));
}

#[test]
fn the_table_of_files_fills_and_empties() {
    let mut ring = ring();
    let file = file(10);
    let slots: Vec<FileSlot> =
        (0..4).map(|_| ring.register(file.as_fd()).expect("register")).collect();
    let error = ring.register(file.as_fd()).expect_err("the table has four slots");
    assert!(matches!(error, RingError::FilesFull(4)), "{error}");
    assert!(error.to_string().contains("use more channels"));
    ring.unregister(slots[2]);
    let memory = Lasting::new(4096).expect("memory");
    let bufs = [memory.buf(0, 10).expect("inside")];
    let read = |file| Op::Read { file, bufs: &bufs, offset: 0, nowait: false };
    assert_eq!(one(&mut ring, read(slots[2])), -libc::EBADF);
    assert_eq!(one(&mut ring, read(slots[1])), 10);
    assert_eq!(ring.register(file.as_fd()).expect("register"), slots[2]);
    assert_eq!(one(&mut ring, read(slots[2])), 10);
}

#[test]
#[should_panic(expected = "given back twice")]
fn a_slot_is_given_back_once() {
    let mut ring = ring();
    let file = file(10);
    let slot = ring.register(file.as_fd()).expect("register");
    ring.unregister(slot);
    ring.unregister(slot);
}

#[test]
fn a_file_that_cannot_be_registered_takes_no_slot() {
    let mut ring = ring();
    for _ in 0..10 {
        // A ring cannot be registered with itself or another one of its kind under DEFER_TASKRUN;
        // an O_PATH descriptor never can.
        let path = rustix::fs::open("/", rustix::fs::OFlags::PATH, rustix::fs::Mode::empty());
        let error = ring.register(path.expect("open").as_fd()).expect_err("O_PATH");
        assert!(matches!(error, RingError::Register(_)), "{error}");
    }
    let file = file(10);
    ring.register(file.as_fd()).expect("register");
}

/// What an entry outside of the typed operations gets from a ring.
fn raw(ring: &mut Ring, entry: io_uring::squeue::Entry) -> i32 {
    ring.push_entry(&entry.user_data(3)).expect("room");
    reap(ring, 1)[0].result
}

#[test]
fn a_restricted_ring_refuses_other_operations_and_plain_descriptors() {
    let file = file(100);
    let memory = Lasting::new(4096).expect("memory");
    let buf = memory.buf(0, 100).expect("inside");
    let plain = || {
        let fd = types::Fd(file.as_raw_fd());
        opcode::Read::new(fd, buf.as_ptr(), 100).build()
    };
    let socket = || {
        let kind = opcode::Socket::new(libc::AF_UNIX, libc::SOCK_STREAM, 0).build();
        kind.flags(Flags::FIXED_FILE)
    };
    let linked = || opcode::Nop::new().build().flags(Flags::FIXED_FILE | Flags::IO_LINK);
    let mut open = Ring::new(&small(false)).expect("ring");
    assert_eq!(raw(&mut open, plain()), 100, "the control: an open ring does it");
    assert_eq!(raw(&mut open, linked()), 0);

    let mut ring = ring();
    assert_eq!(raw(&mut ring, plain()), -libc::EACCES);
    assert_eq!(raw(&mut ring, socket()), -libc::EACCES);
    assert_eq!(raw(&mut ring, linked()), -libc::EACCES);
    let openat = opcode::OpenAt::new(types::Fd(libc::AT_FDCWD), c"/etc/passwd".as_ptr()).build();
    assert_eq!(raw(&mut ring, openat), -libc::EACCES);
    // And goes on doing what it may.
    let slot = ring.register(file.as_fd()).expect("register");
    assert_eq!(
        one(&mut ring, Op::Read { file: slot, bufs: &[buf], offset: 0, nowait: false }),
        100
    );
}

/// Whatever is written into the ring's memory: nothing is opened, made, sent or connected by it that no system call may.
#[test]
fn a_restricted_ring_does_what_it_is_for_and_no_other_operation() {
    /// `IORING_OP_SOCKET`; the kernel may know later ones.
    const LATEST: u8 = 45;
    let mut ring = ring();
    for code in 0..=u8::MAX {
        if crate::op::OPCODES.contains(&code) {
            continue;
        }
        let mut entry = opcode::Nop::new().build().flags(Flags::FIXED_FILE);
        // SAFETY: an entry is the kernel's structure of numbers, which begins with the code; any number is one.
        unsafe { (&raw mut entry).cast::<u8>().write(code) };
        let result = raw(&mut ring, entry);
        let unknown = code > LATEST && result == -libc::EINVAL;
        assert!(result == -libc::EACCES || unknown, "{code}: {result}");
    }
}

#[test]
fn every_typed_operation_passes_the_restrictions() {
    let mut ring = ring();
    let file = file(4096);
    let slot = ring.register(file.as_fd()).expect("register");
    let memory = Lasting::new(4096).expect("memory");
    let buf = memory.buf(0, 16).expect("inside");
    let flags = WriteFlags::NONE;
    for op in [
        Op::Read { file: slot, bufs: &[buf], offset: 0, nowait: false },
        Op::Read { file: slot, bufs: &[buf, buf], offset: 0, nowait: false },
        Op::Write { file: slot, bufs: &[buf], offset: 0, flags },
        Op::Write { file: slot, bufs: &[buf, buf], offset: 0, flags },
        Op::DataSync { file: slot },
        Op::Fallocate { file: slot, mode: 0, offset: 0, len: 4096 },
        Op::Timeout { after: Duration::from_millis(1) },
        Op::Cancel { user_data: 12345 },
        Op::Nop,
    ] {
        assert_ne!(one(&mut ring, op), -libc::EACCES, "{op:?}");
    }
}

#[test]
fn submitting_nothing_is_nothing_and_an_interrupted_wait_returns() {
    let mut ring = ring();
    ring.submit().expect("nothing to do");
    ring.push(Op::Nop, 1).expect("room");
    ring.submit().expect("submit");
    // A completion is visible: no sleep even without a timeout.
    ring.wait(None).expect("wait");
    assert_eq!(ring.next().map(|c| c.user_data), Some(1));
}

#[test]
fn rings_come_and_go_without_leaving_descriptors_behind() {
    let count = || std::fs::read_dir("/proc/self/fd").expect("proc").count();
    let handle = std::thread::spawn(move || {
        drop(ring());
        let before = count();
        // More than the sixteen rings a thread may have registered at a time.
        for _ in 0..40 {
            let mut ring = ring();
            assert!(ring.ring_is_registered());
            assert_eq!(one(&mut ring, Op::Nop), 0);
        }
        // Other tests run in parallel, so allow for their descriptors, but not for forty.
        assert!(count() < before + 40);
    });
    handle.join().expect("thread");
}

#[test]
fn inline_transfers_move_what_there_is() {
    let file = file(100);
    let memory = Lasting::new(4096).expect("memory");
    let bufs = [memory.buf(0, 60).expect("inside"), memory.buf(1000, 60).expect("inside")];
    assert_eq!(crate::inline::read_at(file.as_fd(), &bufs, 10).expect("read"), 90);
    let mut found = [0; 30];
    bufs[1].read(0, &mut found);
    assert_eq!(found[0], 70);
    assert_eq!(crate::inline::write_at(file.as_fd(), &bufs, 0).expect("write"), 120);
    assert_eq!(file.metadata().expect("stat").len(), 120);
    assert!(crate::inline::read_at(file.as_fd(), &bufs, u64::MAX).is_err());
    assert_eq!(crate::inline::read_at(file.as_fd(), &[], 0).expect("nothing"), 0);
    let folder = File::open("/").expect("open");
    assert!(crate::inline::read_at(folder.as_fd(), &bufs, 0).is_err());
}

/// How a polling channel learns of a completion: no system call until there is something to fetch.
#[test]
fn deferred_work_makes_the_ring_ready_without_a_system_call() {
    for rung in Rung::ALL {
        let mut ring = Ring::from_rung(&small(true), rung).expect("ring");
        let kick = eventfd(0, EventfdFlags::NONBLOCK).expect("eventfd");
        let slot = ring.register(kick.as_fd()).expect("register");
        ring.push(Op::PollMulti { file: slot }, 3).expect("room");
        ring.submit().expect("submit");
        assert!(!ring.ready(), "{rung:?}: nothing has happened");
        rustix::io::write(&kick, &1_u64.to_ne_bytes()).expect("kick");
        let deadline = std::time::Instant::now() + LONG;
        while !ring.ready() {
            assert!(std::time::Instant::now() < deadline, "{rung:?}: never ready");
        }
        ring.submit().expect("submit");
        assert_eq!(ring.next().map(|completion| completion.user_data), Some(3), "{rung:?}");
        assert!(!ring.ready());
    }
}

/// As when it is short of memory.
/// What the program notes for itself comes behind what the kernel has completed, keeps the ring from sleeping, and costs no system call.
#[test]
fn a_note_comes_out_without_the_kernel() {
    let mut ring = ring();
    ring.reserve_notes(2);
    let enters = ring.enters();
    ring.note(7);
    ring.note(8);
    assert!(ring.ready() && ring.first() == Some(7));
    ring.wait(None).expect("no sleep");
    ring.submit().expect("nothing to hand over");
    assert_eq!(ring.enters(), enters);
    ring.push(Op::Nop, 6).expect("room");
    ring.wait(None).expect("it is handed over");
    assert_eq!(ring.enters(), enters + 1);
    let seen: Vec<_> =
        std::iter::from_fn(|| ring.next()).map(|it| (it.user_data, it.result)).collect();
    assert_eq!(seen, [(6, 0), (7, 0), (8, 0)]);
    assert!(!ring.ready() && ring.first().is_none());
}

#[test]
fn what_must_not_be_lost_waits_until_the_kernel_takes_it() {
    let mut ring = ring();
    let (first, second) = (eventfd(0, EventfdFlags::NONBLOCK), eventfd(0, EventfdFlags::NONBLOCK));
    let (first, second) = (first.expect("eventfd"), second.expect("eventfd"));
    let slots = [&first, &second].map(|event| ring.register(event.as_fd()).expect("register"));
    ring.takes_nothing = true;
    let room = ring.space() as u64;
    (0..room).for_each(|number| ring.push_own(Op::Nop, number));
    assert!(ring.push(Op::Nop, 0).is_err());
    for (number, file) in (room..).zip(slots) {
        ring.push_own(Op::Notify { file }, number);
        ring.submit().expect("it is no error");
        ring.wait(None).expect("it is no error");
    }
    // More than fit at once.
    (room + 2..4 * room).for_each(|number| ring.push_own(Op::Nop, number));
    ring.takes_nothing = false;
    let mut found = Vec::new();
    while (found.len() as u64) < 4 * room {
        let completions = reap(&mut ring, 1);
        found.extend(completions.iter().map(|completion| completion.user_data));
    }
    found.sort_unstable();
    assert_eq!(found, (0..4 * room).collect::<Vec<u64>>());
    for event in [first, second] {
        assert!(rustix::io::read(&event, &mut [0; 8]).is_ok(), "notified");
    }
}

#[test]
fn a_ring_that_is_dropped_lets_go_of_its_files_at_once() {
    use rustix::fs::{FlockOperation, flock};
    let file = tempfile::NamedTempFile::new().expect("a file");
    for _ in 0..50 {
        let locked = file.reopen().expect("open");
        flock(&locked, FlockOperation::NonBlockingLockExclusive).expect("nobody has it locked");
        let mut ring = ring();
        ring.register(locked.as_fd()).expect("register");
    }
}
