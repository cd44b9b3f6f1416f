//! The process dies again and again with everything in flight at once, on disks that are slow, hang and fail below the kernel: direct and buffered reads and
//! writes, flushes, SCSI commands, COMPARE AND WRITE, task management. Nothing may be lost, come late, or be done twice:
//!
//! - *lost*: what was acknowledged is read back by three verified loads, and the counter never goes back;
//! - *late*: what was written after an abort was answered stays; and what is read into memory that was given to something else is
//!   found by the loads, which use their buffers again at once;
//! - *twice*: COMPARE AND WRITE counts, and a second execution does not find what it compares with;
//! - *unsaid*: of a disk whose write-back fails at times, what was written and flushed with success is there, on the disk, whichever processes did
//!   the two and whichever died in between, told or not.
//!
//! A few deaths here; `cargo xtask torture data --kills 1000` for many. That these would be seen is tested too: a disk drops writes, does them
//! late, or twice, and the torture has to fail (`--sabotage`).

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::process::Process;
use common::scsi::{Client, PATIENCE, adapter, on, target, unit};
use partition::load::{LoadOptions, run};
use partition::scsi::control::Function;
use partition::scsi::{Command as Sent, Reply, Slot, cdb, response};
use protocol::message::{
    AdapterSpec, BlockSpec, CacheMode, FileSpec, Placement, Request, VolumeSpec,
};
use protocol::opener::Witnesses;
use testkit::{Disk, Fault, Kind, Loop, Options, is_root};

const MIB: u64 = 1 << 20;
const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];
/// How many deaths the long form is for.
const KILLS: &str = "TRUNKLINE_TORTURE_KILLS";
/// What a disk does wrong in it, if anything: one of [`FAULTS`].
const SABOTAGE: &str = "TRUNKLINE_TORTURE_SABOTAGE";
/// By name: what is done wrong, on which of the direct disks, and what then has to be said, one of these. The buffered disk is none of them: what is spoilt
/// below the kernel's cache is not seen above it.
const FAULTS: [(&str, Fault, usize, &[&str]); 4] = [
    ("drop", Fault::Drop, 0, &["direct: "]),
    ("late", Fault::Late, 1, &["vfchost0: "]),
    ("twice", Fault::Twice, 1, &["vfchost0: "]),
    // By who looks at the counter, or by who counts on.
    ("twice-counted", Fault::Twice, 2, &[" became ", "done twice, or lost: "]),
];
/// So long, and up to three times that, one of the disks hangs, or fails what is written back to it; then it is another one's turn.
const SPELL: Duration = Duration::from_millis(30);
/// The times that reads and writes take in the kernel.
const SLOW: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(6));
/// How often each fault is planted, until somebody sees it.
const TRIES: usize = 5;
/// How long a process lives: this, and up to as much again.
const LIFE: Duration = Duration::from_millis(60);
/// Before the end of a measurement no process dies: the loads stop their queues in order then.
const CALM: Duration = Duration::from_millis(800);

#[test]
fn a_few_deaths_with_everything_in_flight() {
    torture(4, Duration::from_millis(1600));
}

#[test]
#[ignore = "long: cargo xtask torture data"]
fn as_many_deaths_as_are_asked_for() {
    let kills = std::env::var(KILLS).expect("how many").parse().expect("a number");
    // Of the first seconds a planted fault is seen.
    let measure = if std::env::var_os(SABOTAGE).is_some() { 2 } else { 15 };
    torture(kills, Duration::from_secs(measure));
}

/// Each fault in a process of its own, which has to find it.
#[test]
fn writes_that_are_lost_late_or_doubled_are_seen() {
    if !is_root("faults planted below the kernel") {
        return;
    }
    let start = |name: &str| {
        Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "as_many_deaths_as_are_asked_for", "--ignored", "--nocapture"])
            .envs([(KILLS, "2"), (SABOTAGE, name)])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    };
    for (name, _, _, words) in FAULTS {
        // What is planted meets a write that it spoils sooner or later: on a busy machine later.
        let outputs = (0..TRIES).map(|_| start(name).wait_with_output().unwrap());
        let output = outputs.into_iter().find(|output| !output.status.success());
        let output = output.unwrap_or_else(|| panic!("{name}: nobody saw it"));
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(words.iter().any(|words| said.contains(words)), "{name}: {said}");
    }
}

/// What is slow, in the order in which it can go.
struct Disks {
    loops: [Loop; 3],
    direct: [Disk; 3],
    buffered: Disk,
    /// It is not slow: what is written back to it fails at times.
    failing: Disk,
}

impl Disks {
    fn new() -> Disks {
        let direct = [(); 3].map(|()| Disk::new(16 * MIB));
        let [buffered, failing] =
            [(); 2].map(|()| Disk::with(Options { bytes: 16 * MIB, write_back: true }));
        let loops = direct.each_ref().map(|disk| Loop::direct(&disk.path(), 512));
        direct.iter().chain([&buffered]).for_each(|disk| disk.slow(SLOW.0, SLOW.1));
        Disks { loops, direct, buffered, failing }
    }

    /// They hang in turn, and one fails, until it is over.
    fn misbehave(&self, over: &AtomicBool) {
        let mut random = memory::random::Random::new(1);
        while !over.load(Relaxed) {
            let disk = &self.direct[random.below(3) as usize];
            let kind = [Kind::Read, Kind::Write][random.below(2) as usize];
            disk.hold(kind);
            if random.below(4) == 0 {
                self.failing.fail(Kind::Write, Some(rustix::io::Errno::IO.raw_os_error()));
            }
            std::thread::sleep(SPELL * (1 + random.below(3) as u32));
            self.failing.fail(Kind::Write, None);
            disk.release(kind);
            std::thread::sleep(SPELL * (1 + random.below(3) as u32));
        }
    }

    fn setup(&self, folder: &Path) -> Vec<Request> {
        let block = |name: &str, volume: &str| AdapterSpec {
            queues: 2,
            placement: Placement::Spread,
            ..AdapterSpec::new(name, folder.join(format!("{name}.sock")), BlockSpec::on(volume))
        };
        let on = |name: &str, index: usize| {
            VolumeSpec::new(name, FileSpec::new(self.loops[index].path()))
        };
        let through_the_cache =
            |disk: &Disk| FileSpec { cache: CacheMode::Buffered, ..FileSpec::new(disk.path()) };
        vec![
            Request::PutVolume(on("direct", 0)),
            Request::PutVolume(VolumeSpec::new("buffered", through_the_cache(&self.buffered))),
            Request::PutVolume(VolumeSpec::new("v2", through_the_cache(&self.failing))),
            Request::PutVolume(on("v0", 1)),
            Request::PutVolume(on("v1", 2)),
            Request::PutUnit(unit("lu0", "v0")),
            Request::PutUnit(unit("lu1", "v1")),
            Request::PutUnit(unit("lu2", "v2")),
            Request::PutAdapter(block("direct", "direct")),
            Request::PutAdapter(block("buffered", "buffered")),
            Request::PutAdapter(adapter(folder, 0, vec![target(0, &[(0, "lu0")])])),
            Request::PutAdapter(adapter(folder, 1, vec![target(0, &[(0, "lu1")])])),
            Request::PutAdapter(adapter(folder, 2, vec![target(0, &[(0, "lu2")])])),
        ]
    }
}

/// Adapters that are under load.
const NAMES: [&str; 3] = ["direct", "buffered", "vfchost0"];

/// Kills until it was done so often, over as many measurements of that length as that takes.
fn torture(kills: usize, measure: Duration) {
    if !is_root("deaths with everything in flight in the kernel") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let disks = Disks::new();
    let setup = disks.setup(folder.path());
    if let Ok(name) = std::env::var(SABOTAGE) {
        let (_, fault, disk, _) = FAULTS.iter().find(|fault| fault.0 == name).expect("a fault");
        disks.direct[*disk].spoil(*fault);
    }
    let (mut deaths, mut rounds) = (0, 0);
    let (mut counted, mut aborted, operations) = (0, 0, AtomicU64::new(0));
    let (mut flushed, mut told) = (0, 0);
    let witnesses: Arc<Witnesses> = Arc::default();
    let start = || Some(Process::start_after(folder.path(), &setup, &witnesses));
    let (mut process, mut mended) = (start(), 0_u64);
    while deaths < kills {
        rounds += 1;
        let over = AtomicBool::new(false);
        let begun = Instant::now();
        std::thread::scope(|threads| {
            let options = LoadOptions {
                queues: 2,
                threads: Some(1),
                depth: 12,
                read_percent: 40,
                verify: true,
                flush_every: Some(20),
                duration: measure,
                seed: rounds,
                reconnect: Some(PATIENCE),
                stuck_after: Duration::from_secs(30),
                ..LoadOptions::default()
            };
            let (under_way, they_are) = std::sync::mpsc::channel();
            let loads = NAMES.map(|name| {
                let socket = folder.path().join(format!("{name}.sock"));
                let options = options.clone();
                let scsi = name == "vfchost0";
                let options = if scsi { on(0, 0, options) } else { options };
                let (operations, under_way) = (&operations, under_way.clone());
                threads.spawn(move || {
                    let report = run(&socket, &options, &mut |_| {
                        // Who waited for it may be done with that.
                        let _ = under_way.send(name);
                    });
                    let report = report.unwrap();
                    assert!(report.passed(), "{name}: {:?}", report.failures);
                    let verify = report.verify.unwrap();
                    assert!(verify.blocks_checked > 0 && verify.blocks_corrupt == 0, "{verify:?}");
                    operations.fetch_add(report.operations, Relaxed);
                })
            });
            let client = Client::connect(&folder.path().join("vfchost1.sock"));
            let over = &over;
            // Also when something is found.
            let end = Over(over);
            let abuser = threads.spawn(move || Abuser::new(client).go_on_until(over));
            let client = Client::connect(&folder.path().join("vfchost2.sock"));
            let disks = &disks;
            let keeper = threads.spawn(move || keep(client, &disks.failing, over));
            threads.spawn(move || disks.misbehave(over));
            // A client that has not got to know its disk yet gives up when that goes.
            drop(under_way);
            let mut missing = std::collections::BTreeSet::from(NAMES);
            while !missing.is_empty() {
                missing.remove(they_are.recv_timeout(PATIENCE).expect("all loads begin"));
            }
            let mut life = u32::try_from(rounds).unwrap();
            while deaths < kills && begun.elapsed() + CALM < measure {
                life = life.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                std::thread::sleep(LIFE + LIFE.mul_f64(f64::from(life >> 8) / f64::from(1 << 24)));
                let mut old = process.take().unwrap();
                // A loss outlives deaths; it is over when one that has told of it is shut down.
                let lost =
                    |process: &mut Process| process.status().volumes.iter().any(|it| it.lost);
                if life >> 7 & 1 == 0 && lost(&mut old) {
                    old.shut_down();
                    witnesses.told(&disks.failing.path());
                    mended += 1;
                } else {
                    old.kill();
                    deaths += 1;
                }
                process = start();
            }
            loads.into_iter().for_each(|load| load.join().unwrap());
            drop(end);
            let (count, aborts) = abuser.join().unwrap();
            (counted, aborted) = (counted + count, aborted + aborts);
            let (well, badly) = keeper.join().unwrap();
            (flushed, told) = (flushed + well, told + badly);
        });
        println!(
            "round {rounds}: {deaths} deaths, {mended} restarts after a loss, {} reads and writes verified, {counted} counted, {aborted} aborted and written over, \
             {flushed} flushed and there, {told} losses told",
            operations.load(Relaxed)
        );
    }
    process.take().unwrap().shut_down();
    assert!(counted > 0 && aborted > 0);
}

/// A client that writes, flushes, and holds the disk to what it was told: how often all was well, and how often it was told of a loss, which
/// lasts until a process that has said so is shut down.
fn keep(client: Client, disk: &Disk, over: &AtomicBool) -> (u64, u64) {
    const BLOCKS: u32 = 16;
    /// SYNCHRONIZE CACHE of everything.
    const FLUSH: [u8; 10] = [0x35, 0, 0, 0, 0, 0, 0, 0, 0, 0];
    let (mut client, mut byte, mut well, mut told) = (Stubborn::new(client), 0_u8, 0, 0);
    while !over.load(Relaxed) {
        byte = byte.wrapping_add(1);
        let data = vec![byte; 512 * BLOCKS as usize];
        let write = cdb::Transfer::new(true, 0, BLOCKS);
        if client.answered(write.cdb(), &data).good() && client.answered(&FLUSH, &[]).good() {
            let there = disk.content(0, data.len());
            let wrong = there.iter().position(|found| *found != byte);
            assert_eq!(wrong.map(|at| there[at]), None, "{byte} was flushed and is not there");
            well += 1;
        } else {
            told += 1;
            std::thread::sleep(SPELL);
        }
    }
    (well, told)
}

/// Ends the abuse.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A client that goes on over the deaths of its server.
struct Stubborn {
    client: Client,
}

impl Stubborn {
    fn new(client: Client) -> Stubborn {
        Stubborn { client }
    }

    /// Until it holds.
    fn wait(&mut self, what: &str, mut holds: impl FnMut(&mut Client) -> bool) {
        let end = Instant::now() + PATIENCE;
        while !holds(&mut self.client) {
            assert!(Instant::now() < end, "in vain: {what}");
            if self.client.session.closed_within(Duration::from_micros(100)).unwrap() {
                self.client.session.reconnect(PATIENCE).unwrap();
            }
        }
    }

    /// One command, whatever becomes of it.
    fn once(&mut self, cdb: &[u8], out: &[u8], data_in: u32) -> Reply {
        let queue = &mut self.client.requests[0];
        let slot = queue.take().unwrap();
        queue.data(slot).write(0, out);
        let data_out = u32::try_from(out.len()).unwrap();
        queue.submit(slot, &Sent { lun: LUN, tag: 1, cdb, data_out, data_in }).unwrap();
        queue.publish().unwrap();
        let mut reply = None;
        self.wait("the end of a command", |client| {
            let queue = &mut client.requests[0];
            let ended = queue.poll().unwrap();
            if let Some(slot) = ended {
                let mut ended = queue.reply(slot);
                ended.data = vec![0; data_in as usize];
                queue.data(slot).read(0, &mut ended.data);
                queue.give_back(slot);
                reply = Some(ended);
            }
            reply.is_some()
        });
        reply.unwrap()
    }

    /// One command, until it is answered with more than that it should come again.
    fn answered(&mut self, cdb: &[u8], out: &[u8]) -> Reply {
        loop {
            let reply = self.once(cdb, out, 0);
            if !reply.try_again() {
                return reply;
            }
        }
    }
}

/// A client that counts with COMPARE AND WRITE, and has its writes aborted and writes over them.
struct Abuser {
    client: Stubborn,
    /// What block 0 counts.
    count: u64,
    /// What is in the blocks from 8 on.
    byte: u8,
}

/// Blocks whose writes are aborted: from the first one, so many.
const ABORTED: (u32, u32) = (8, 6);

impl Abuser {
    fn new(client: Client) -> Abuser {
        let mut abuser = Abuser { client: Stubborn::new(client), count: 0, byte: 0 };
        abuser.count = abuser.counter();
        abuser.overwrite(1);
        abuser
    }

    /// How often it counted, and how often it aborted.
    fn go_on_until(mut self, over: &AtomicBool) -> (u64, u64) {
        let (mut counted, mut aborted) = (0, 0);
        while !over.load(Relaxed) {
            for _ in 0..4 {
                counted += u64::from(self.count());
            }
            self.abort(aborted);
            aborted += 1;
        }
        (counted, aborted)
    }

    /// One command that may be done as often as need be.
    fn must(&mut self, cdb: &[u8], out: &[u8], data_in: u32) -> Vec<u8> {
        loop {
            let reply = self.client.once(cdb, out, data_in);
            if reply.good() {
                return reply.data;
            }
            assert!(reply.try_again(), "{cdb:x?}: {reply:?}");
        }
    }

    fn counter(&mut self) -> u64 {
        let block = self.must(cdb::Transfer::new(false, 0, 1).cdb(), &[], 512);
        assert!(block[8..].iter().all(|byte| *byte == 0), "the counter's block is torn");
        u64::from_le_bytes(block[..8].try_into().unwrap())
    }

    /// Whether it was acknowledged.
    fn count(&mut self) -> bool {
        let mut blocks = [0; 1024];
        blocks[..8].copy_from_slice(&self.count.to_le_bytes());
        blocks[512..520].copy_from_slice(&(self.count + 1).to_le_bytes());
        let reply = self.client.once(&cdb::compare_and_write(0, 1), &blocks, 0);
        if reply.good() {
            self.count += 1;
            return true;
        }
        assert!(reply.try_again(), "done twice, or lost: {} {reply:?}", self.count);
        let found = self.counter();
        assert!([self.count, self.count + 1].contains(&found), "{} became {found}", self.count);
        self.count = found;
        false
    }

    /// Begins writes, has them aborted, and writes other data when that is answered.
    fn abort(&mut self, round: u64) {
        self.unchanged();
        let byte = self.byte;
        let queue = &mut self.client.client.requests[1];
        let slots: Vec<Slot> = (0..ABORTED.1)
            .map(|index| {
                let slot = queue.take().unwrap();
                queue.data(slot).write(0, &[byte.wrapping_add(100); 512]);
                let cdb = &cdb::durable_write(ABORTED.0 + index, 1);
                let tag = 100 + u64::from(index);
                let command = Sent { lun: LUN, tag, cdb, data_out: 512, data_in: 0 };
                queue.submit(slot, &command).unwrap();
                slot
            })
            .collect();
        queue.publish().unwrap();
        let functions = [Function::AbortTaskSet, Function::LogicalUnitReset, Function::AbortTask];
        let function = functions[(round % 3) as usize];
        let mut ends = 0;
        let mut answer = response::RESET;
        // One that was under way when the server died is answered like that, and is to be sent again.
        while answer == response::RESET {
            self.client.client.control.begin(function, LUN, 103).unwrap();
            let mut answered = None;
            self.client.wait("the answer to an abort", |client| {
                answered = client.control.poll().unwrap().map(|(_, bytes, _)| bytes[0]);
                answered.is_some()
            });
            answer = answered.unwrap();
        }
        assert_eq!(answer, response::OK, "{function:?}");
        self.client.wait("the ends of what was aborted", |client| {
            while let Some(slot) = client.requests[1].poll().unwrap() {
                assert!(slots.contains(&slot));
                client.requests[1].give_back(slot);
                ends += 1;
            }
            ends == slots.len()
        });
        self.overwrite(byte.wrapping_add(1));
    }

    fn overwrite(&mut self, byte: u8) {
        let data = vec![byte; 512 * ABORTED.1 as usize];
        let write = cdb::durable_write(ABORTED.0, u16::try_from(ABORTED.1).unwrap());
        self.must(&write, &data, 0);
        self.byte = byte;
        self.unchanged();
    }

    /// What was aborted does not come later.
    fn unchanged(&mut self) {
        let bytes = 512 * ABORTED.1;
        let read = cdb::Transfer::new(false, u64::from(ABORTED.0), ABORTED.1);
        let data = self.must(read.cdb(), &[], bytes);
        let wrong = data.iter().position(|byte| *byte != self.byte);
        assert_eq!(wrong, None, "{} became {:?}", self.byte, wrong.map(|at| data[at]));
    }
}
