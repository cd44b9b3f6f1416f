//! Two hosts with two paths each to one LUN, as `fence_scsi` and multipath use it: one shuts the other out with PREEMPT AND ABORT, over and over,
//! while paths and the data plane fail. The other one writes as fast as it can throughout, on both paths, and does not care what it is told.
//!
//! Behind the fence nothing of it lands:
//!
//! - no write that was sent behind the fence is answered GOOD;
//! - what the first host writes then stays: neither writes that were under way when the fence went up come late, nor those that lie in the
//!   rings and in-flight regions of paths that were away, nor those that a dead process left in the kernel.
//!
//! That this would be seen is tested with reservations that do not survive a death. A few rounds here; `cargo xtask torture fences` for many.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::SeqCst};
use std::time::{Duration, Instant};

use crate::common::process::Process;
use crate::common::scsi::{
    Client, PATIENCE, WRITE_EXCLUSIVE, action, adapter, conflicts, target, unit,
};
use memory::random::Random;
use partition::scsi::{Command, Reply, Slot, cdb};
use protocol::message::{AdapterSpec, FileSpec, Request, UnitSpec, VolumeSpec};
use testkit::{Disk, Loop, is_root};

const MIB: u64 = 1 << 20;
const LUN: [u8; 8] = [1, 0, 0x40, 0, 0, 0, 0, 0];
/// The blocks that both write.
const BLOCKS: u32 = 8;
/// Keys of the hosts.
const KEYS: [u64; 2] = [0x11, 0x22];
/// What the fenced host writes; the other one writes numbers below.
const INTRUDER: u8 = 0xbd;
/// Writes of the fenced host in flight on each path.
const DEPTH: usize = 6;
const SLOW: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(5));
/// How many rounds the long form is for.
const ROUNDS: &str = "TRUNKLINE_FENCE_ROUNDS";

#[test]
fn nothing_is_written_behind_a_fence_over_failing_paths_and_deaths() {
    if is_root("fences on a disk that is slow below the kernel") {
        assert_eq!(torture(100, true), 0, "writes behind the fence");
    }
}

#[test]
fn a_fence_that_dies_with_the_data_plane_is_noticed() {
    if is_root("a fence that is lost") {
        assert_ne!(torture(2, false), 0, "nobody saw that the fence was gone");
    }
}

#[test]
#[ignore = "long: cargo xtask torture fences"]
fn as_many_fences_as_are_asked_for() {
    let rounds = std::env::var(ROUNDS).expect("how many").parse().expect("a number");
    assert_eq!(torture(rounds, true), 0, "writes behind the fence");
}

/// What happens to the server in a round.
#[derive(Debug, Clone, Copy)]
enum Harm {
    /// The data plane dies, and comes back.
    Death,
    /// An adapter is removed, and comes back.
    Adapter,
    /// An adapter shows no LUN for a while.
    Mask,
    /// The disk is reached by another path.
    Disk,
}

const HARMS: [Harm; 4] = [Harm::Death, Harm::Adapter, Harm::Mask, Harm::Disk];

/// The data plane, as it is made again after each death.
struct Server {
    folder: tempfile::TempDir,
    disk: Disk,
    /// Two ways to it.
    ways: [Loop; 2],
    way: usize,
    process: Option<Process>,
}

impl Server {
    fn new() -> Server {
        let disk = Disk::new(16 * MIB);
        let ways = [(); 2].map(|()| Loop::direct(&disk.path(), 512));
        disk.slow(SLOW.0, SLOW.1);
        let folder = tempfile::tempdir().unwrap();
        let mut server = Server { folder, disk, ways, way: 0, process: None };
        server.start();
        server
    }

    fn start(&mut self) {
        self.process = Some(Process::start(self.folder.path(), &self.setup()));
    }

    fn setup(&self) -> Vec<Request> {
        let keep = Some(self.folder.path().join("lu0.pr"));
        let unit = Request::PutUnit(UnitSpec { keep, ..unit("lu0", "v0") });
        let adapters = (0..4).map(|number| Request::PutAdapter(self.adapter(number, true)));
        [self.volume(), unit].into_iter().chain(adapters).collect()
    }

    fn volume(&self) -> Request {
        Request::PutVolume(VolumeSpec::new("v0", FileSpec::new(self.ways[self.way].path())))
    }

    fn adapter(&self, number: u64, shows: bool) -> AdapterSpec {
        let luns: &[_] = if shows { &[(0, "lu0")] } else { &[] };
        adapter(self.folder.path(), number, vec![target(0, luns)])
    }

    fn socket(&self, path: usize) -> PathBuf {
        self.folder.path().join(format!("vfchost{path}.sock"))
    }

    fn must(&mut self, request: &Request) {
        self.process.as_mut().unwrap().must(request);
    }

    fn suffer(&mut self, harm: Harm, path: u64, pause: Duration) {
        match harm {
            Harm::Death => {
                self.process.take().unwrap().kill();
                std::thread::sleep(pause);
                self.start();
            }
            Harm::Adapter => {
                let name = format!("vfchost{path}");
                self.must(&Request::RemoveAdapter { name });
                std::thread::sleep(pause);
                self.must(&Request::PutAdapter(self.adapter(path, true)));
            }
            Harm::Mask => {
                self.must(&Request::PutAdapter(self.adapter(path, false)));
                std::thread::sleep(pause);
                self.must(&Request::PutAdapter(self.adapter(path, true)));
            }
            Harm::Disk => {
                self.way = 1 - self.way;
                self.must(&self.volume());
            }
        }
    }
}

/// One path of a host.
struct Route {
    client: Client,
}

impl Route {
    fn connect(socket: &Path) -> Route {
        Route { client: Client::connect(socket) }
    }

    fn begin(&mut self, cdb: &[u8], out: &[u8], data_in: u32) -> Slot {
        let queue = &mut self.client.requests[0];
        let slot = queue.take().unwrap();
        queue.data(slot).write(0, out);
        let (tag, data_out) = (u64::from(slot.0), u32::try_from(out.len()).unwrap());
        queue.submit(slot, &Command { lun: LUN, tag, cdb, data_out, data_in }).unwrap();
        queue.publish().unwrap();
        slot
    }

    /// What has ended, if something has. Connects again when the server is gone.
    fn ended(&mut self) -> Option<(Slot, Reply)> {
        let queue = &mut self.client.requests[0];
        if let Some(slot) = queue.poll().unwrap() {
            let reply = queue.reply(slot);
            return Some((slot, reply));
        }
        if self.client.session.closed_within(Duration::from_micros(100)).unwrap() {
            self.client.session.reconnect(PATIENCE).unwrap();
        }
        None
    }

    fn give_back(&mut self, slot: Slot) {
        self.client.requests[0].give_back(slot);
    }

    /// One command, whatever becomes of it. Nothing else is under way.
    fn once(&mut self, cdb: &[u8], out: &[u8], data_in: u32) -> Reply {
        let begun = Instant::now();
        let slot = self.begin(cdb, out, data_in);
        loop {
            assert!(begun.elapsed() < PATIENCE, "no end of {cdb:x?}");
            let Some((ended, mut reply)) = self.ended() else { continue };
            assert_eq!(ended, slot);
            reply.data = vec![0; data_in as usize];
            self.client.requests[0].data(slot).read(0, &mut reply.data);
            self.give_back(slot);
            return reply;
        }
    }
}

/// The host that shuts the other one out.
struct Holder {
    paths: [Route; 2],
    now: usize,
    aptpl: bool,
}

impl Holder {
    /// A command that has to be done, by whichever path does it; `None` when it conflicts with a reservation.
    fn must(&mut self, cdb: &[u8], out: &[u8], data_in: u32) -> Option<Vec<u8>> {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            let reply = self.paths[self.now].once(cdb, out, data_in);
            if reply.good() {
                return Some(reply.data);
            }
            if conflicts(&reply) {
                return None;
            }
            // A path without the LUN is one that failed. One attention is told after the other.
            if reply.sense_code().is_none_or(|(key, _)| key != 6) {
                self.now = 1 - self.now;
            }
        }
        panic!("nobody does {cdb:x?}")
    }

    fn reserve(&mut self, action: u8, key: u64, other: u64) -> Option<Vec<u8>> {
        let list = cdb::reserve_list(key, other, self.aptpl);
        self.must(&cdb::reserve_out(action, WRITE_EXCLUSIVE), &list, 0)
    }

    fn keys(&mut self) -> Vec<u64> {
        let data = self.must(&cdb::reserve_in(0, 256), &[], 256).unwrap();
        let bytes = u32::from_be_bytes(data[4..8].try_into().unwrap()) as usize;
        let keys = data[8..8 + bytes].chunks_exact(8);
        keys.map(|key| u64::from_be_bytes(key.try_into().unwrap())).collect()
    }

    /// Both paths are registered, and one of them holds the reservation.
    fn hold(&mut self) {
        let list = cdb::reserve_list(0, KEYS[0], self.aptpl);
        let register = cdb::reserve_out(action::REGISTER_AND_IGNORE, 0);
        for path in &mut self.paths {
            crate::common::raw::until("it is registered", || path.once(&register, &list, 0).good());
        }
        // Whoever of the two has it.
        self.reserve(action::RESERVE, KEYS[0], 0);
    }

    /// Shuts the other one out, as `fence_scsi` does: until its key is gone.
    fn fence(&mut self) {
        while self.keys().contains(&KEYS[1]) {
            let done = self.reserve(action::PREEMPT_AND_ABORT, KEYS[0], KEYS[1]);
            // One that was done, and whose answer was lost, finds no such key the next time.
            assert!(done.is_some() || !self.keys().contains(&KEYS[1]));
        }
    }

    fn write(&mut self, byte: u8) {
        let bytes = vec![byte; 512 * BLOCKS as usize];
        self.must(cdb::Transfer::new(true, 0, BLOCKS).cdb(), &bytes, 0).expect("it is registered");
    }

    /// What is in the blocks that is not this.
    fn other_than(&mut self, byte: u8) -> Option<u8> {
        let read = cdb::Transfer::new(false, 0, BLOCKS);
        let data = self.must(read.cdb(), &[], 512 * BLOCKS).expect("reads are allowed");
        data.into_iter().find(|found| *found != byte)
    }
}

/// What the hosts know of each other.
#[derive(Default)]
struct Shared {
    over: AtomicBool,
    /// Odd while the fence is up.
    fence: AtomicU64,
    /// How often the fenced host shall have registered, and has, by path.
    wanted: AtomicU64,
    registered: [AtomicU64; 2],
    refused: AtomicU64,
    written: AtomicU64,
    behind: AtomicU64,
}

/// Ends the writing, also when something was found.
struct Over<'a>(&'a Shared);

impl Drop for Over<'_> {
    fn drop(&mut self) {
        self.0.over.store(true, SeqCst);
    }
}

/// One path of the host that is shut out: writes all the time.
fn intrude(mut path: Route, number: usize, aptpl: bool, shared: &Shared) {
    let mut random = Random::new(number as u64);
    // What each slot is: a write with the fence as it was when it was sent, or the registration.
    let mut sent: HashMap<u16, Option<u64>> = HashMap::new();
    while !shared.over.load(SeqCst) || !sent.is_empty() {
        let wanted = shared.wanted.load(SeqCst);
        let registers = sent.values().any(Option::is_none);
        if shared.over.load(SeqCst) {
        } else if !registers && shared.registered[number].load(SeqCst) < wanted {
            let list = cdb::reserve_list(0, KEYS[1], aptpl);
            let slot = path.begin(&cdb::reserve_out(action::REGISTER_AND_IGNORE, 0), &list, 0);
            sent.insert(slot.0, None);
        } else if sent.len() < DEPTH {
            let lba = random.below(u64::from(BLOCKS));
            let fence = shared.fence.load(SeqCst);
            let slot = path.begin(cdb::Transfer::new(true, lba, 1).cdb(), &[INTRUDER; 512], 0);
            sent.insert(slot.0, Some(fence));
        }
        let Some((slot, reply)) = path.ended() else { continue };
        let what = sent.remove(&slot.0).expect("it was sent");
        path.give_back(slot);
        match what {
            None if reply.good() => shared.registered[number].store(wanted, SeqCst),
            None => {}
            Some(fence) => {
                let now = shared.fence.load(SeqCst);
                shared.refused.fetch_add(u64::from(conflicts(&reply)), SeqCst);
                shared.written.fetch_add(u64::from(reply.good()), SeqCst);
                let behind = reply.good() && fence % 2 == 1 && fence == now;
                shared.behind.fetch_add(u64::from(behind), SeqCst);
            }
        }
    }
}

/// So many fences; how much of the other host was found behind them.
fn torture(rounds: u64, aptpl: bool) -> u64 {
    let mut server = Server::new();
    let [first, second, third, fourth] =
        [0, 1, 2, 3].map(|path| Route::connect(&server.socket(path)));
    let mut holder = Holder { paths: [first, second], now: 0, aptpl };
    let shared = &Shared::default();
    let mut random = Random::new(rounds);
    let mut found = 0;
    std::thread::scope(|threads| {
        let end = Over(shared);
        for (number, path) in [third, fourth].into_iter().enumerate() {
            threads.spawn(move || intrude(path, number, aptpl, shared));
        }
        for round in 0..rounds {
            holder.hold();
            shared.wanted.fetch_add(1, SeqCst);
            crate::common::raw::until("both paths have registered", || {
                shared.registered.iter().all(|done| done.load(SeqCst) == round + 1)
            });
            let written = shared.written.load(SeqCst);
            crate::common::raw::until("writes", || shared.written.load(SeqCst) > written + 10);
            // The fence goes up while something fails, and is looked at while something else does.
            let first = HARMS[(round % 4) as usize];
            let second = HARMS[(round / 4 % 4) as usize];
            let byte = 1 + (round % 100) as u8;
            let holds = &mut holder;
            let (up, harm_ended) = (&AtomicBool::new(false), &AtomicBool::new(false));
            found += std::thread::scope(|threads| {
                let fencing = threads.spawn(move || {
                    holds.fence();
                    shared.fence.fetch_add(1, SeqCst);
                    up.store(true, SeqCst);
                    holds.write(byte);
                    let mut found = 0;
                    while !harm_ended.load(SeqCst) {
                        let other = holds.other_than(byte);
                        if let Some(other) = other {
                            eprintln!("round {round}: {other:#x} where {byte:#x} was");
                        }
                        found += u64::from(other.is_some());
                    }
                    found + u64::from(holds.other_than(byte).is_some())
                });
                std::thread::sleep(Duration::from_micros(random.below(6_000)));
                let mut suffer = |harm| {
                    let pause = Duration::from_micros(random.below(30_000));
                    server.suffer(harm, random.below(4), pause);
                };
                suffer(first);
                crate::common::raw::until("the fence is up", || {
                    up.load(SeqCst) || fencing.is_finished()
                });
                suffer(second);
                // The other one has tried all of it.
                let refused = shared.refused.load(SeqCst);
                crate::common::raw::until("the other one is refused", || {
                    let (refused_now, behind) =
                        (shared.refused.load(SeqCst), shared.behind.load(SeqCst));
                    refused_now > refused + 20 || behind > 0 || fencing.is_finished()
                });
                harm_ended.store(true, SeqCst);
                fencing.join().unwrap()
            });
            shared.fence.fetch_add(1, SeqCst);
            println!(
                "round {round}: {first:?} and {second:?}: {} refused, {} written before, {} behind, {found} found",
                shared.refused.load(SeqCst),
                shared.written.load(SeqCst),
                shared.behind.load(SeqCst),
            );
        }
        drop(end);
    });
    assert!(server.disk.served(testkit::Kind::Write) > 0);
    server.process.take().unwrap().shut_down();
    found + shared.behind.load(SeqCst)
}
