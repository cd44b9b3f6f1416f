//! Nothing is allocated on the path of a request. A counting allocator watches the channel's thread while requests of all kinds run.
//!
//! One test: the allocator is the whole process's.

#![allow(unsafe_code)] // UNSAFE: a global allocator is; it only counts and passes on.

mod common;

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicI32, AtomicU64, Ordering::SeqCst};
use std::time::Instant;

use common::raw::{Front, GUARD};
use common::scsi::{Client, target, unit};
use common::{Server, null};
use memory::random::Random;
use partition::blk::{self, Queue, SlotPlan, Status};
use partition::scsi::{self, Command, address, cdb};
use partition::session::{Session, SessionOptions, StartPlan};
use protocol::message::{
    CacheMode, DelaySpec, FaultSpec, LimitSpec, PoolSpec, Request, SnapshotSpec,
};
use protocol::message::{FileSpec, LuSpec, VolumeSpec};
use protocol::stats::QueueCounter;

/// Whether allocations of the watched thread are counted.
static SEALED: AtomicBool = AtomicBool::new(false);
static WATCHED: AtomicI32 = AtomicI32::new(0);
static ALLOCATIONS: AtomicU64 = AtomicU64::new(0);
/// Size of the latest one counted, as a hint for whoever looks for it.
static BYTES: AtomicU64 = AtomicU64::new(0);

struct Counting;

fn note(layout: Layout) {
    if SEALED.load(SeqCst)
        && rustix::thread::gettid().as_raw_nonzero().get() == WATCHED.load(SeqCst)
    {
        ALLOCATIONS.fetch_add(1, SeqCst);
        BYTES.store(layout.size() as u64, SeqCst);
    }
}

// SAFETY: every call goes to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(layout);
        // SAFETY: the caller's promise is passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(ptr, layout) }
    }

    unsafe fn realloc(&self, ptr: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(layout);
        // SAFETY: as above.
        unsafe { System.realloc(ptr, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The thread of the only channel. One that was joined may be in the list for a moment still.
fn channel_thread() -> i32 {
    let is_channel = |path: &std::path::Path| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("channel-"))
    };
    let mut found = Vec::new();
    for _ in 0..1000 {
        // One that ends while it is looked at is none.
        let tasks = std::fs::read_dir("/proc/self/task").unwrap().flatten();
        found = tasks.filter(|task| is_channel(&task.path())).collect();
        if found.len() == 1 {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    assert_eq!(found.len(), 1, "one channel at a time");
    found[0].file_name().to_str().unwrap().parse().unwrap()
}

/// Counts what `work` makes the channel allocate.
fn allocations(work: impl FnOnce()) -> u64 {
    WATCHED.store(channel_thread(), SeqCst);
    ALLOCATIONS.store(0, SeqCst);
    SEALED.store(true, SeqCst);
    work();
    SEALED.store(false, SeqCst);
    ALLOCATIONS.load(SeqCst)
}

const BYTES_MAX: u32 = 64 << 10;

fn choose(random: &mut Random, blocks: u64) -> blk::Request {
    let bytes = [512, 4096, BYTES_MAX][random.below(3) as usize];
    let offset = random.below(blocks - u64::from(bytes) / 512) * 512;
    match random.below(64) {
        0 => blk::Request::Flush,
        1 => blk::Request::GetId,
        2 => blk::Request::Discard { offset, bytes: u64::from(bytes) },
        3 => blk::Request::WriteZeroes { offset, bytes: u64::from(bytes), unmap: true },
        4..32 => blk::Request::Write { offset, bytes },
        _ => blk::Request::Read { offset, bytes },
    }
}

/// Requests of all kinds, as many at once as the queue takes; how many failed.
fn drive(queue: &mut Queue, count: u32, random: &mut Random) -> u32 {
    drive_with(queue, count, &mut || choose(random, (16 << 20) / 512))
}

/// The same with these requests.
fn drive_with(queue: &mut Queue, count: u32, choose: &mut dyn FnMut() -> blk::Request) -> u32 {
    let (mut submitted, mut done, mut failed) = (0, 0, 0);
    let end = Instant::now() + 3 * GUARD;
    while done < count {
        while submitted < count
            && let Some(slot) = queue.take()
        {
            queue.submit(slot, choose()).unwrap();
            submitted += 1;
        }
        queue.publish().unwrap();
        while let Some(finished) = queue.poll().unwrap() {
            failed += u32::from(finished.status != Status::Ok);
            queue.give_back(finished.slot);
            done += 1;
        }
        assert!(Instant::now() < end, "{done} of {count} requests ended");
        std::thread::yield_now();
    }
    failed
}

fn plan(indirect: bool, data_segments: u16) -> StartPlan {
    let slots = SlotPlan { slots: 48, data_bytes: BYTES_MAX, data_segments, indirect };
    StartPlan { queues: 2, queue_size: 256, threads: 1, slots }
}

fn run(name: &str, spec: VolumeSpec, plan: &StartPlan, failures: bool) {
    let server = Server::new(1);
    server.must(Request::PutVolume(spec));
    let socket = server.put_adapter(|_| ());
    let mut session = Session::connect(&socket, &SessionOptions::default()).unwrap();
    let mut queues = session.start(plan).unwrap();
    let mut random = Random::new(7);
    for queue in &mut queues {
        drive(queue, 400, &mut random);
    }
    let mut failed = 0;
    let count = allocations(|| {
        for queue in &mut queues {
            failed += drive(queue, 1000, &mut random);
        }
    });
    assert_eq!(count, 0, "{name}: the last one of {} bytes", BYTES.load(SeqCst));
    assert_eq!(failed > 0, failures, "{name}: {failed} requests failed");
    assert!(server.count(QueueCounter::CommandsReceived) >= 2800);
    session.stop().unwrap();
}

/// An LU whose blocks are written is read and written by the channel alone, also above a snapshot.
fn run_lu(shares: bool) {
    let server = Server::new(1);
    let folder = tempfile::tempdir().unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let pv = folder.path().join("pv");
    std::fs::File::create(&pv).unwrap().set_len(10 * (64 << 20)).unwrap();
    let pool = PoolSpec {
        name: "p0".to_owned(),
        uuid: "a1".repeat(16),
        server: "b2".repeat(16),
        pvs: vec![pv],
        shadow: memory.path().join("shadow"),
        fresh: true,
        ..PoolSpec::default()
    };
    server.must(Request::PutPool(pool.clone()));
    let mut spec = VolumeSpec::new("v", LuSpec { fresh: true, ..LuSpec::of("p0") });
    spec.bytes = Some(16 << 20);
    server.must(Request::PutVolume(spec));
    let socket = server.put_adapter(|_| ());
    let mut session = Session::connect(&socket, &SessionOptions::default()).unwrap();
    let mut queues = session.start(&plan(true, 2)).unwrap();
    let mut next = 0u32;
    let blocks = (16 << 20) / BYTES_MAX;
    let mut first = || {
        next += 1;
        blk::Request::Write { offset: u64::from(next - 1) * u64::from(BYTES_MAX), bytes: BYTES_MAX }
    };
    assert_eq!(drive_with(&mut queues[0], blocks, &mut first), 0);
    if shares {
        let snapshots = vec![SnapshotSpec { id: 1, lus: vec![1], given_up: false }];
        server.must(Request::PutPool(PoolSpec { fresh: false, snapshots, ..pool }));
        let mut again = 0u32;
        let mut first = || {
            again += 1;
            let offset = u64::from(again - 1) * u64::from(BYTES_MAX);
            blk::Request::Write { offset, bytes: BYTES_MAX }
        };
        let before = server.count(QueueCounter::WaitPool);
        assert_eq!(drive_with(&mut queues[0], blocks, &mut first), 0);
        let asked = server.count(QueueCounter::WaitPool) - before;
        assert!((1..u64::from(blocks) / 2).contains(&asked), "{asked} of {blocks}");
    }
    // The first look makes known what is there.
    drive_with(&mut queues[0], 1, &mut || blk::Request::Read { offset: 0, bytes: 4096 });
    let waited = server.count(QueueCounter::WaitPool);
    assert!(waited >= u64::from(blocks), "{waited}");
    let mut random = Random::new(7);
    let mut any = || {
        let bytes = [512, 4096, BYTES_MAX][random.below(3) as usize];
        let offset = random.below((16 << 20) / 512 - u64::from(bytes) / 512) * 512;
        match random.below(2) {
            0 => blk::Request::Write { offset, bytes },
            _ => blk::Request::Read { offset, bytes },
        }
    };
    drive_with(&mut queues[0], 400, &mut any);
    let count = allocations(|| {
        drive_with(&mut queues[0], 1000, &mut any);
    });
    assert_eq!(count, 0, "an LU, shares {shares}: the last one of {} bytes", BYTES.load(SeqCst));
    assert_eq!(server.count(QueueCounter::WaitPool), waited, "nobody was asked");
    session.stop().unwrap();
}

/// A command of those that go to the volume, with the length of what it sends and of what comes back.
fn choose_scsi(random: &mut Random, blocks: u64) -> (Vec<u8>, u32, u32) {
    let bytes = [512, 4096, BYTES_MAX][random.below(3) as usize];
    let lba = random.below(blocks - u64::from(bytes) / 512);
    let transfer = |write, lba| cdb::Transfer::new(write, lba, bytes / 512).cdb().to_vec();
    match random.below(64) {
        0 => (cdb::SYNCHRONIZE_CACHE.to_vec(), 0, 0),
        1 => (cdb::TEST_UNIT_READY.to_vec(), 0, 0),
        2 => (cdb::unmap(24).to_vec(), 24, 0),
        3 => (cdb::compare_and_write(lba, 1).to_vec(), 1024, 0),
        // WRITE SAME(10) of 16 blocks, VERIFY(10) of eight with BYTCHK, WRITE AND VERIFY(10) of one.
        4 => (vec![0x41, 0, 0, 0, 0, lba as u8, 0, 0, 16, 0], 512, 0),
        5 => (vec![0x2f, 2, 0, 0, 0, lba as u8, 0, 0, 8, 0], 4096, 0),
        6 => (vec![0x2e, 0, 0, 0, 0, lba as u8, 0, 0, 1, 0], 512, 0),
        7..32 => (transfer(true, lba), bytes, 0),
        // One that is refused, too.
        32 => (transfer(false, blocks), 0, bytes),
        _ => (transfer(false, lba), 0, bytes),
    }
}

/// As [`drive`], of a LUN. What the client allocates is not counted.
fn drive_scsi(queue: &mut scsi::Queue, count: u32, random: &mut Random) -> u32 {
    let (mut submitted, mut done, mut failed) = (0, 0, 0);
    let end = Instant::now() + 3 * GUARD;
    while done < count {
        while submitted < count
            && let Some(slot) = queue.take()
        {
            let (cdb, data_out, data_in) = choose_scsi(random, (16 << 20) / 512);
            let lun = address(0, random.below(2) as u16);
            queue.data(slot).write(0, &cdb::unmap_list(8, 8));
            let command = Command { lun, tag: 1, cdb: &cdb, data_out, data_in };
            queue.submit(slot, &command).unwrap();
            submitted += 1;
        }
        queue.publish().unwrap();
        while let Some(slot) = queue.poll().unwrap() {
            failed += u32::from(!queue.good(slot));
            queue.give_back(slot);
            done += 1;
        }
        assert!(Instant::now() < end, "{done} of {count} commands ended");
        std::thread::yield_now();
    }
    failed
}

fn run_scsi(name: &str, spec: VolumeSpec) {
    let server = Server::new(1);
    // As slow and as faulty.
    let other = VolumeSpec { name: "w".to_owned(), kind: null(16).kind, ..spec.clone() };
    server.must(Request::PutVolume(spec));
    server.must(Request::PutVolume(other));
    for (lun, volume) in [("lu0", "v"), ("lu1", "w")] {
        server.must(Request::PutUnit(unit(lun, volume)));
    }
    let socket = server.put_scsi(0, vec![target(0, &[(0, "lu0"), (1, "lu1")])]);
    // Twice as many as a queue's own commands.
    let mut client = Client::with(&socket, 2, 80, |_| ());
    let mut random = Random::new(11);
    for queue in &mut client.requests {
        drive_scsi(queue, 400, &mut random);
    }
    let mut failed = 0;
    let count = allocations(|| {
        for queue in &mut client.requests {
            failed += drive_scsi(queue, 1500, &mut random);
        }
    });
    assert_eq!(count, 0, "SCSI on {name}: the last one of {} bytes", BYTES.load(SeqCst));
    assert!((20..1500).contains(&failed), "{name}: {failed} commands failed");
    if name == "delayed" {
        assert!(server.count(QueueCounter::GlobalCommands) > 0, "{name}");
    }
}

/// The control: what starts a queue allocates, and that is seen.
fn starting_a_queue_is_seen() {
    let server = Server::new(1);
    server.must(Request::PutVolume(null(16)));
    let socket = server.put_adapter(|_| ());
    let count = allocations(|| {
        let (_front, ring) = Front::ready(&socket);
        ring.works();
    });
    assert!(count > 0, "the counter does not count");
}

#[test]
fn no_request_makes_a_channel_allocate() {
    starting_a_queue_is_seen();
    run_lu(false);
    run_lu(true);
    let server = Server::new(1);
    let (ram, file) = (server.ram(16), server.file(16));
    drop(server);
    let folder = tempfile::tempdir().unwrap();
    let file = |cache: CacheMode| {
        let path = folder.path().join("disk");
        VolumeSpec {
            kind: FileSpec { cache, create: true, ..FileSpec::new(path) }.into(),
            ..file.clone()
        }
    };
    let delay =
        Some(DelaySpec { min_us: 50, max_us: 400, depth: 8, seed: 1, ..Default::default() });
    let limit = Some(LimitSpec { iops: 4000, iops_burst: 10, ..LimitSpec::default() });
    let fault =
        FaultSpec { read_error_ppm: 100_000, write_error_ppm: 100_000, ..Default::default() };
    let torn = FaultSpec { torn_write_ppm: 200_000, slow_ppm: 100_000, slow_us: 100, ..fault };
    let volumes = [
        ("null", null(16), false),
        ("ram", ram.clone(), false),
        ("file", file(CacheMode::Auto), false),
        ("buffered file", file(CacheMode::Buffered), false),
        ("delayed", VolumeSpec { delay, ..file(CacheMode::Auto) }, false),
        ("limited", VolumeSpec { limit, ..ram.clone() }, false),
        ("faulty", VolumeSpec { fault: Some(torn), ..ram }, true),
    ];
    for (name, spec, failures) in volumes {
        if !failures {
            run_scsi(name, spec.clone());
        }
        for plan in [plan(false, 1), plan(true, 128)] {
            run(name, spec.clone(), &plan, failures);
        }
    }
}
