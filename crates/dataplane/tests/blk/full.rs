//! A thin LU of a pool that is full, under twenty writers and over a death: those that need space wait, nothing else does, and all of them go on by
//! themselves when the pool is extended.
//!
//! A few times here; `cargo xtask torture full --runs 500` for many.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::mirror::pool_of;
use crate::common::process::Process;
use crate::common::raw::until;
use memory::random::Random;
use partition::blk::{self, Done, Queue, Slot, SlotPlan, Status};

use partition::session::{Session, SessionOptions, StartPlan};
use protocol::message::{AdapterSpec, BlockSpec, FileIdentity, Placement, PoolSpec, Request};
use spec::{LuSpec, VolumeSpec};

const CHUNK: u64 = 64 << 20;
const BLOCK: u32 = 4096;
const WRITERS: usize = 20;
/// Chunks that each writes to first, one after the other.
const EACH: usize = 3;
/// Chunks that are there from the beginning, written to before the pool is full; after those of the writers.
const OLD: usize = 2;
const CHUNKS: usize = WRITERS * EACH + OLD;
/// How long something may take that waits for nobody.
const PATIENCE: Duration = Duration::from_secs(30);
/// How many runs the long form is for.
const RUNS: &str = "TRUNKLINE_FULL_RUNS";

#[test]
fn writers_of_a_full_pool_go_on_when_it_is_extended_and_nobody_else_waits() {
    fills(2);
}

#[test]
#[ignore = "long: cargo xtask torture full"]
fn as_many_fills_as_are_asked_for() {
    fills(std::env::var(RUNS).expect("how many").parse().expect("a number"));
}

fn fills(runs: u64) {
    let began = Instant::now();
    let mut waited = 0;
    for run in 0..runs {
        waited += fill(run);
        if (run + 1) % 50 == 0 || run + 1 == runs {
            println!(
                "{} runs in {} s: {waited} writes waited for space, and all went on",
                run + 1,
                began.elapsed().as_secs()
            );
        }
    }
}

/// What the data plane is told, before and after its death.
struct Setup {
    pool: PoolSpec,
    volume: VolumeSpec,
    adapter: AdapterSpec,
}

impl Setup {
    fn requests(&self) -> Vec<Request> {
        vec![
            Request::PutPool(self.pool.clone()),
            Request::PutVolume(self.volume.clone()),
            Request::PutAdapter(self.adapter.clone()),
        ]
    }
}

/// A client with two queues: one of writers, and one of those that need no space.
struct Client {
    session: Session,
    writers: Queue,
    others: Queue,
}

/// What a writer does next.
#[derive(Clone, Copy)]
struct Writer {
    slot: Slot,
    /// Blocks that are written.
    done: usize,
}

/// Fills a pool, has its data plane die, extends it, and compares; how many writes waited.
fn fill(run: u64) -> u64 {
    let mut random = Random::new(run + 1);
    let folder = tempfile::tempdir().unwrap();
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let pv = |name: &str, chunks: u64| {
        let path = folder.path().join(name);
        std::fs::File::create_new(&path).unwrap().set_len(chunks * CHUNK).unwrap();
        path
    };
    let mut setup = setup(folder.path(), pv("first", 12), memory.path().join("shadow"));
    let mut process = Process::start(folder.path(), &setup.requests());
    let known = process.status().volumes.remove(0).identity;
    setup.pool.fresh = false;
    setup.volume = volume(known);
    let mut client = Client::connect(&setup.adapter.socket);
    let old = (CHUNKS - OLD) as u64 * CHUNK;
    for chunk in 0..OLD as u64 {
        let status = client.other(
            |offset, bytes| blk::Request::Write { offset, bytes },
            old + chunk * CHUNK,
            7,
        );
        assert_eq!(status, Status::Ok);
    }

    // Full.
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|_| Writer { slot: client.writers.take().expect("a slot for each"), done: 0 })
        .collect();
    (0..WRITERS).for_each(|number| client.write(run, number, writers[number]));
    client.writers.publish().unwrap();
    let waits = |process: &mut Process, client: &mut Client, writers: &mut Vec<Writer>| {
        until("all writers wait", || {
            client.go_on(run, writers);
            process.status().pools[0].paused == WRITERS as u64
        });
        process.status().pools[0].pauses
    };
    let mut waited = waits(&mut process, &mut client, &mut writers);
    client.nobody_else_waits(&mut random, old);
    assert_eq!(process.status().pools[0].paused, WRITERS as u64, "and the writers still wait");

    // The process dies under them.
    process.kill();
    let mut process = Process::start(folder.path(), &setup.requests());
    client.session.reconnect(PATIENCE).unwrap();
    waited += waits(&mut process, &mut client, &mut writers);
    client.nobody_else_waits(&mut random, old);

    // A whole chunk is given back: as many go on as have room in it.
    let before = writers.iter().map(|writer| writer.done).sum::<usize>();
    client.discard(old, CHUNK);
    until("one goes on with what was given back", || {
        client.go_on(run, &mut writers);
        writers.iter().map(|writer| writer.done).sum::<usize>() > before
    });

    // Space comes, and nobody says a word to those who wait.
    let more = pv("second", CHUNKS as u64 + 8);
    setup.pool.pvs.push(more.clone());
    setup.pool.joining = vec![more];
    process.must(&Request::PutPool(setup.pool.clone()));
    until("all writers are done", || {
        client.go_on(run, &mut writers);
        writers.iter().all(|writer| writer.done == EACH)
    });
    assert_eq!(process.status().pools[0].paused, 0);
    client.compare(run, old);
    client.session.stop().unwrap();
    process.shut_down();
    waited
}

fn setup(folder: &Path, pv: PathBuf, shadow: PathBuf) -> Setup {
    let adapter = AdapterSpec {
        queues: 2,
        placement: Placement::Spread,
        ..AdapterSpec::new("vhost0", folder.join("vhost0.sock"), BlockSpec::on("v"))
    };
    Setup { pool: pool_of(&[pv], shadow), volume: volume(None), adapter }
}

/// The LU, new or known.
fn volume(identity: Option<FileIdentity>) -> VolumeSpec {
    let fresh = identity.is_none();
    let mut volume = VolumeSpec::new("v", LuSpec { fresh, identity, ..LuSpec::of("p0") });
    volume.bytes = Some(CHUNKS as u64 * CHUNK);
    volume
}

/// Where a writer writes its `done`th block.
fn place(number: usize, done: usize) -> u64 {
    (done * WRITERS + number) as u64 * CHUNK + (number as u64) * u64::from(BLOCK)
}

/// What it writes there.
fn content(run: u64, number: usize, done: usize) -> Vec<u8> {
    let word = (run << 16 | (number * EACH + done) as u64 | 1 << 63).to_le_bytes();
    word.repeat(BLOCK as usize / word.len())
}

impl Client {
    fn connect(socket: &Path) -> Client {
        let slots = SlotPlan { slots: 24, data_bytes: BLOCK, data_segments: 1, indirect: true };
        let plan = StartPlan { queues: 2, queue_size: 128, threads: 1, slots };
        let mut session = Session::connect(socket, &SessionOptions::default()).unwrap();
        let mut queues = session.start(&plan).unwrap();
        let others = queues.pop().unwrap();
        Client { session, writers: queues.pop().unwrap(), others }
    }

    fn write(&mut self, run: u64, number: usize, Writer { slot, done }: Writer) {
        self.writers.data(slot).write(0, &content(run, number, done));
        let request = blk::Request::Write { offset: place(number, done), bytes: BLOCK };
        self.writers.submit(slot, request).unwrap();
    }

    /// Writers whose write is done begin with the next one.
    fn go_on(&mut self, run: u64, writers: &mut [Writer]) {
        while let Some(Done { slot, status, .. }) = self.writers.poll().unwrap() {
            assert_eq!(status, Status::Ok);
            let number = writers.iter().position(|writer| writer.slot == slot).unwrap();
            writers[number].done += 1;
            if writers[number].done < EACH {
                self.write(run, number, writers[number]);
            }
        }
        self.writers.publish().unwrap();
    }

    /// One request beside the writers, on a buffer full of `byte`.
    #[track_caller]
    fn other(
        &mut self,
        request: impl Fn(u64, u32) -> blk::Request,
        offset: u64,
        byte: u8,
    ) -> Status {
        let slot = self.others.take().unwrap();
        self.others.data(slot).fill(byte);
        self.others.submit(slot, request(offset, BLOCK)).unwrap();
        self.others.publish().unwrap();
        let deadline = Instant::now() + PATIENCE;
        let done = loop {
            match self.others.poll().unwrap() {
                Some(done) => break done,
                None if Instant::now() > deadline => {
                    panic!("it waits: {:?}", request(offset, BLOCK))
                }
                None => std::thread::sleep(Duration::from_micros(50)),
            }
        };
        self.others.give_back(slot);
        done.status
    }

    /// What the LU holds at a place.
    fn read(&mut self, offset: u64) -> Vec<u8> {
        let status = self.other(|offset, bytes| blk::Request::Read { offset, bytes }, offset, 0xee);
        assert_eq!(status, Status::Ok);
        // The slot is free, and nobody has it.
        let slot = self.others.take().unwrap();
        let mut held = vec![0; BLOCK as usize];
        self.others.data(slot).read(0, &mut held);
        self.others.give_back(slot);
        held
    }

    fn discard(&mut self, offset: u64, bytes: u64) {
        let status = self.other(|offset, _| blk::Request::Discard { offset, bytes }, offset, 0);
        assert_eq!(status, Status::Ok);
    }

    /// Reads of what is there and what is not, overwrites, flushes, discards and write-zeroes of parts, in any order.
    fn nobody_else_waits(&mut self, random: &mut Random, old: u64) {
        let in_old = |random: &mut Random| old + random.below(OLD as u64 * 16) * (CHUNK / 16);
        let first = old + (OLD as u64 - 1) * CHUNK;
        for _ in 0..24 {
            let at = in_old(random);
            let status = match random.below(6) {
                0 => self.other(|offset, bytes| blk::Request::Read { offset, bytes }, at, 0),
                1 => {
                    // Nobody has written there.
                    let at = (WRITERS * EACH - 1) as u64 * CHUNK + CHUNK / 2;
                    assert_eq!(self.read(at), vec![0; BLOCK as usize]);
                    Status::Ok
                }
                2 => self.other(|offset, bytes| blk::Request::Write { offset, bytes }, at, 9),
                3 => self.other(|_, _| blk::Request::Flush, at, 0),
                4 => {
                    let bytes = u64::from(BLOCK) * (1 + random.below(8));
                    self.other(
                        |offset, _| blk::Request::Discard { offset, bytes },
                        first + CHUNK / 2,
                        0,
                    )
                }
                _ => {
                    let bytes = u64::from(BLOCK) * (1 + random.below(8));
                    let zeroes =
                        |offset, _| blk::Request::WriteZeroes { offset, bytes, unmap: false };
                    self.other(zeroes, first + CHUNK / 2, 0)
                }
            };
            assert_eq!(status, Status::Ok);
        }
        let last = self.other(|offset, bytes| blk::Request::Write { offset, bytes }, first, 5);
        assert_eq!((last, self.read(first)), (Status::Ok, vec![5; BLOCK as usize]));
    }

    /// All that was written is there, and what was given back is zeros.
    fn compare(&mut self, run: u64, old: u64) {
        for number in 0..WRITERS {
            for done in 0..EACH {
                let held = self.read(place(number, done));
                assert!(held == content(run, number, done), "writer {number}, block {done}");
            }
        }
        assert_eq!(self.read(old), vec![0; BLOCK as usize], "it was discarded");
    }
}
