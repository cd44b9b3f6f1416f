//! The process dies again and again with everything in flight at once, on disks that are slow below the kernel: direct and buffered reads and
//! writes, flushes, SCSI commands, COMPARE AND WRITE, task management. Nothing may be lost, come late, or be done twice:
//!
//! - *lost*: what was acknowledged is read back by three verified loads, and the counter never goes back;
//! - *late*: what was written after an abort was answered stays; and what is read into memory that was given to something else is
//!   found by the loads, which use their buffers again at once;
//! - *twice*: COMPARE AND WRITE counts, and a second execution does not find what it compares with.
//!
//! A few deaths here; `cargo xtask torture data --kills 1000` for many. That these would be seen is tested too: a disk drops writes, does them
//! late, or twice, and the torture has to fail (`--sabotage`).

mod common;

use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use common::process::{self, Process};
use common::scsi::{Client, PATIENCE, adapter, on, target, unit};
use partition::load::{LoadOptions, run};
use partition::scsi::control::Function;
use partition::scsi::{Command as Sent, Reply, Slot, cdb, response};
use protocol::message::{
    AdapterSpec, BlockSpec, CacheMode, FileSpec, Placement, Request, VolumeSpec,
};
use testkit::{Disk, Fault, Loop, Options, is_root};

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
/// The times that reads and writes take in the kernel.
const SLOW: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(6));
/// How long a process lives: this, and up to as much again.
const LIFE: Duration = Duration::from_millis(60);
/// Before the end of a measurement no process dies: the loads stop their queues in order then.
const CALM: Duration = Duration::from_millis(800);

/// Not a test: the process that is killed.
#[test]
#[ignore = "started by the tests of this file"]
fn data_plane() {
    process::data_plane();
}

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
        let output = start(name).wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "{name}: nobody saw it");
        assert!(words.iter().any(|words| said.contains(words)), "{name}: {said}");
    }
}

/// What is slow, in the order in which it can go.
struct Disks {
    loops: [Loop; 3],
    direct: [Disk; 3],
    buffered: Disk,
}

impl Disks {
    fn new() -> Disks {
        let direct = [(); 3].map(|()| Disk::new(16 * MIB));
        let buffered = Disk::with(Options { bytes: 16 * MIB, write_back: true });
        let loops = direct.each_ref().map(|disk| Loop::direct(&disk.path(), 512));
        direct.iter().chain([&buffered]).for_each(|disk| disk.slow(SLOW.0, SLOW.1));
        Disks { loops, direct, buffered }
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
        let buffered =
            FileSpec { cache: CacheMode::Buffered, ..FileSpec::new(self.buffered.path()) };
        vec![
            Request::PutVolume(on("direct", 0)),
            Request::PutVolume(VolumeSpec::new("buffered", buffered)),
            Request::PutVolume(on("v0", 1)),
            Request::PutVolume(on("v1", 2)),
            Request::PutUnit(unit("lu0", "v0")),
            Request::PutUnit(unit("lu1", "v1")),
            Request::PutAdapter(block("direct", "direct")),
            Request::PutAdapter(block("buffered", "buffered")),
            Request::PutAdapter(adapter(folder, 0, vec![target(0, &[(0, "lu0")])])),
            Request::PutAdapter(adapter(folder, 1, vec![target(0, &[(0, "lu1")])])),
        ]
    }
}

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
    let mut process = Some(Process::start(folder.path(), &setup));
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
            let loads = [("direct", false), ("buffered", false), ("vfchost0", true)];
            let loads = loads.map(|(name, scsi)| {
                let socket = folder.path().join(format!("{name}.sock"));
                let options = options.clone();
                let options = if scsi { on(0, 0, options) } else { options };
                let operations = &operations;
                threads.spawn(move || {
                    let report = run(&socket, &options, &mut |_| ()).unwrap();
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
            let mut life = u32::try_from(rounds).unwrap();
            while deaths < kills && begun.elapsed() + CALM < measure {
                life = life.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                std::thread::sleep(LIFE + LIFE.mul_f64(f64::from(life >> 8) / f64::from(1 << 24)));
                process.take().unwrap().kill();
                deaths += 1;
                process = Some(Process::start(folder.path(), &setup));
            }
            loads.into_iter().for_each(|load| load.join().unwrap());
            drop(end);
            let (count, aborts) = abuser.join().unwrap();
            (counted, aborted) = (counted + count, aborted + aborts);
        });
        println!(
            "round {rounds}: {deaths} deaths, {} reads and writes verified, {counted} counted, {aborted} aborted and written over",
            operations.load(Relaxed)
        );
    }
    process.take().unwrap().shut_down();
    assert!(counted > 0 && aborted > 0);
}

/// Ends the abuse.
struct Over<'a>(&'a AtomicBool);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// A client that counts with COMPARE AND WRITE, and has its writes aborted and writes over them.
struct Abuser {
    client: Client,
    /// What block 0 counts.
    count: u64,
    /// What is in the blocks from 8 on.
    byte: u8,
}

/// Blocks whose writes are aborted: from the first one, so many.
const ABORTED: (u32, u32) = (8, 6);

impl Abuser {
    fn new(client: Client) -> Abuser {
        let mut abuser = Abuser { client, count: 0, byte: 0 };
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

    /// Until it holds; over the deaths of the server.
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

    /// One command that may be done as often as need be.
    fn must(&mut self, cdb: &[u8], out: &[u8], data_in: u32) -> Vec<u8> {
        loop {
            let reply = self.once(cdb, out, data_in);
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
        let reply = self.once(&cdb::compare_and_write(0, 1), &blocks, 0);
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
        let queue = &mut self.client.requests[1];
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
            self.client.control.begin(function, LUN, 103).unwrap();
            let mut answered = None;
            self.wait("the answer to an abort", |client| {
                answered = client.control.poll().unwrap().map(|(_, bytes, _)| bytes[0]);
                answered.is_some()
            });
            answer = answered.unwrap();
        }
        assert_eq!(answer, response::OK, "{function:?}");
        self.wait("the ends of what was aborted", |client| {
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
