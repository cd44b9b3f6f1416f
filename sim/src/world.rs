//! One simulation: a data plane's channels and volumes, their clients, deaths, and the end, when everything must be answered.

use std::cell::RefCell;
use std::os::unix::fs::FileExt as _;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use block::spec::{CacheMode, DelaySpec, FileSpec, LimitSpec, VolumeSpec};
use block::{Here, Volume};
use channel::{
    Adapter, Channel, ChannelConfig, Command, Drain, QueueId, QueueResources, StopReason,
};
use device_blk::{Behind, BlkHandler, Shape};
use memory::sim::{self, Died, Story};
use protocol::message::WaitMode;
use protocol::stats::{QueueStats, StatsRegion};
use uring::sim::{self as kernel, Faults};

use crate::client::{Client, Habits, SECTOR, stamps};
use crate::oracle::{Disk, Stamp};

/// A fault that is put in on purpose, and that a run has to find.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Control {
    /// How it is called on the command line, and by whoever has it.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
}

/// The controls.
pub const CONTROLS: [Control; 6] = [
    Control { name: "no-inflight", what: "a queue starts again without its in-flight region" },
    Control {
        name: "inflight-early",
        what: "the in-flight region is cleared before the used index moves",
    },
    Control { name: "notification-lost", what: "one notification in forty does not arrive" },
    Control { name: "arm-blindly", what: "a queue is armed without a second look at its ring" },
    Control {
        name: "no-lock",
        what: "a volume is opened while an earlier process's writes are under way",
    },
    Control { name: "short-is-whole", what: "a transfer that was cut short counts as done" },
];

/// What a run is to be.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// Says everything.
    pub seed: u64,
    /// A control.
    pub control: Option<Control>,
    /// How many lines of the story are kept.
    pub story_lines: usize,
}

/// What a run was.
#[derive(Debug)]
pub struct Outcome {
    /// What was wrong.
    pub finding: Option<String>,
    /// Its story.
    pub story: Story,
    /// What it went through.
    pub counts: Counts,
}

/// What a run went through.
#[derive(Debug, Default, Clone, Copy)]
pub struct Counts {
    /// Requests that were answered.
    pub answered: u64,
    /// Those of them that failed.
    pub failed: u64,
    /// Deaths of the process, those between two stores among them.
    pub deaths: u64,
    /// Queues that moved to another channel.
    pub moves: u64,
    /// Operations of the kernel.
    pub operations: u64,
    /// Operations that were under way when their process died.
    pub orphans: u64,
}

impl Counts {
    /// Adds another run's.
    pub fn add(&mut self, other: &Counts) {
        self.answered += other.answered;
        self.failed += other.failed;
        self.deaths += other.deaths;
        self.moves += other.moves;
        self.operations += other.operations;
        self.orphans += other.orphans;
    }
}

/// What the seed drew for the whole run.
struct Drawn {
    channels: u32,
    wait: WaitMode,
    poll_us_max: Option<u32>,
    sectors: u64,
    spec: VolumeSpec,
    faults: Faults,
    /// A death once in so many steps.
    death_every: u64,
    move_every: u64,
}

fn seldom(often: u64, rare: u64) -> u64 {
    match sim::pick(3) {
        0 => 0,
        1 => often,
        _ => rare,
    }
}

impl Drawn {
    fn draw(path: &Path) -> Drawn {
        let sectors = 8 << sim::pick(5);
        let cache = if sim::once_in(2) { CacheMode::Direct } else { CacheMode::Buffered };
        let file = FileSpec { cache, create: true, ..FileSpec::new(path) };
        let mut spec =
            VolumeSpec { bytes: Some(sectors * SECTOR), ..VolumeSpec::new("disk", file) };
        spec.write_through = sim::once_in(4);
        if sim::once_in(4) {
            spec.limit = Some(LimitSpec { iops: 10_000 << sim::pick(5), ..LimitSpec::default() });
        }
        if sim::once_in(4) {
            let delay = DelaySpec { min_us: 5, max_us: 200, seed: 7, ..DelaySpec::default() };
            spec.delay = Some(delay);
        }
        Drawn {
            channels: 1 + sim::pick(CHANNELS_MAX) as u32,
            wait: [WaitMode::Poll, WaitMode::Adaptive, WaitMode::Interrupt][sim::pick(3)],
            poll_us_max: [Some(1), Some(4), Some(8), Some(16), Some(32), None][sim::pick(6)],
            sectors,
            spec,
            faults: Faults {
                short: seldom(3, 30),
                read_error: seldom(20, 200),
                write_error: seldom(20, 200),
                passing: seldom(4, 40),
                takes_nothing: seldom(8, 80),
                poll_ends: seldom(4, 40),
                notify_lost: 0,
            },
            death_every: seldom(150, 1_500),
            move_every: seldom(100, 1_000),
        }
    }
}

/// Where is counted: one memory for all runs, since its mapping stays for ever.
struct Stats {
    region: StatsRegion,
    queues: Vec<QueueStats>,
}

const CHANNELS_MAX: usize = 3;
const CLIENTS_MAX: usize = 3;

thread_local! {
    static STATS: Stats = {
        let region = StatsRegion::create(CHANNELS_MAX).expect("memory for statistics");
        let queue = |index| region.queue(&format!("client{index}"), 0).expect("room");
        let queues = (0..CLIENTS_MAX).map(queue).collect();
        Stats { region, queues }
    };
}

/// The simulated process, while it lives.
struct Process {
    channels: Vec<Channel<BlkHandler>>,
    volume: Arc<dyn Volume>,
    shape: Arc<Shape>,
    /// Where each client's queue is.
    places: Vec<Option<(usize, QueueId)>>,
}

type Clients = Rc<Vec<RefCell<Client>>>;

/// Each run has a folder of its own.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Runs a seed.
pub fn run(plan: &Plan) -> Outcome {
    sim::begin(plan.seed, plan.story_lines);
    kernel::boot(Faults::default());
    let folder = PathBuf::from(format!(
        "/dev/shm/trunkline-sim-{}-{}",
        std::process::id(),
        RUNS.fetch_add(1, Ordering::Relaxed)
    ));
    let made = std::fs::create_dir_all(&folder);
    assert!(made.is_ok(), "{}: {made:?}", folder.display());
    let path = folder.join("disk");
    let mut counts = Counts::default();
    let mut process = None;
    let result = catch_unwind(AssertUnwindSafe(|| {
        if let Some(control) = plan.control {
            sim::plant(control.name);
        }
        live(&path, &mut process, &mut counts)
    }));
    let finding = match result {
        Ok(result) => result.err(),
        Err(panic) => Some(format!("the program panicked: {}", words(&*panic))),
    };
    // Whatever is left is dropped as of a dead process.
    sim::set_dead(true);
    sim::set_beside(None);
    drop(process);
    counts.operations = kernel::landed();
    let outcome = Outcome { finding, story: sim::end(), counts };
    kernel::boot(Faults::default());
    let _ = std::fs::remove_dir_all(&folder);
    outcome
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()))
        .unwrap_or_else(|| "without words".to_owned())
}

/// How often whose turn it is, drawn from the seed.
#[derive(Debug, Clone, Copy)]
struct Pace {
    threads: usize,
    kernel: usize,
    clients: usize,
    time: usize,
}

impl Pace {
    fn draw() -> Pace {
        let weight = || 1 << sim::pick(6);
        Pace { threads: weight(), kernel: weight(), clients: weight(), time: 1 + sim::pick(4) }
    }
}

/// Somebody has a turn: a thread of the process, the kernel, a client, or time.
fn beside(clients: &Clients, pace: Pace) {
    let threads = sim::threads();
    let of_threads = if threads > 0 { pace.threads } else { 0 };
    let Pace { kernel, clients: of_clients, time, .. } = pace;
    let picked = sim::pick(of_threads + kernel + of_clients + time);
    if picked < of_threads {
        sim::thread(sim::pick(threads));
    } else if picked < of_threads + kernel {
        kernel::land();
    } else if picked < of_threads + kernel + of_clients {
        // One that is in the middle of a step has none.
        if let Ok(mut client) = clients[sim::pick(clients.len())].try_borrow_mut() {
            client.step();
        }
    } else if threads > 0 || !pass_to_next() {
        sim::pass(1 << sim::pick(14));
    }
}

/// No thread is awake: time goes on to the next moment, if there is one, or some of the way.
fn pass_to_next() -> bool {
    let moments = [kernel::next_moment(), sim::next_waking()];
    let Some(at) = moments.into_iter().flatten().min() else { return false };
    sim::pass(at.saturating_sub(sim::now_ns()) + 1);
    true
}

/// Steps until everything must be answered after the last fault: far more than the slowest run takes.
const STALL: u64 = 400_000;
/// After so many steps no more is asked: a run of nothing but deaths would never end.
const LONG: u64 = 100_000;

fn live(path: &Path, process: &mut Option<Process>, counts: &mut Counts) -> Result<(), String> {
    let mut drawn = Drawn::draw(path);
    if sim::planted("notification-lost") {
        drawn.faults.notify_lost = 40;
    }
    let stamp = Rc::new(RefCell::new(0 as Stamp));
    let disk = Rc::new(RefCell::new(Disk::new(drawn.sectors)));
    let count = 1 + sim::pick(CLIENTS_MAX);
    let requests = 200 / count as u32;
    let client = |index| {
        let name = format!("client{index}");
        RefCell::new(Client::new(name, Habits::draw(), &disk, drawn.sectors, &stamp, requests))
    };
    let clients: Clients = Rc::new((0..count).map(client).collect());
    let others = Rc::clone(&clients);
    let pace = Pace::draw();
    let turn: Rc<dyn Fn()> = Rc::new(move || beside(&others, pace));
    let settle = |turn: &Rc<dyn Fn()>| {
        let turn = Rc::clone(turn);
        sim::set_beside(Some(Box::new(move || turn())));
    };
    settle(&turn);
    kernel::set_faults(drawn.faults);
    sim::nest([0, 1, 3, 17, 101][sim::pick(5)]);

    let (mut steps, mut steps_left) = (0_u64, STALL);
    let mut calm = false;
    loop {
        for client in clients.iter() {
            if let Some(wrong) = client.borrow_mut().wrong.take() {
                return Err(wrong);
            }
        }
        let left: u32 = clients.iter().map(|client| client.borrow().left).sum();
        let under_way: usize = clients.iter().map(|client| client.borrow().under_way()).sum();
        steps += 1;
        if (left == 0 || steps == LONG) && !calm {
            // The last faults are over: from here on everything has to be answered.
            calm = true;
            for client in clients.iter() {
                client.borrow_mut().left = 0;
            }
            kernel::set_faults(Faults {
                notify_lost: drawn.faults.notify_lost,
                ..Faults::default()
            });
            sim::die_at(None);
            sim::tell(|| "the faults are over".into());
        }
        if calm && under_way == 0 && process.is_some() {
            break;
        }
        if calm {
            steps_left -= 1;
            if steps_left == 0 {
                return Err(format!("{under_way} requests are never answered"));
            }
        }
        let alive = process.is_some();
        let step = catch_unwind(AssertUnwindSafe(|| -> Result<(), String> {
            match process {
                None => {
                    *process = Some(begin(&drawn, &clients, calm)?);
                    Ok(())
                }
                Some(process) => {
                    if !calm && sim::once_in(drawn.death_every) {
                        // Somewhere in what follows, or at once.
                        sim::die_at(Some(sim::pick(60) as u64));
                    }
                    if !calm && sim::once_in(drawn.move_every) {
                        move_one(process, &clients, counts)?;
                    }
                    beside(&clients, pace);
                    Ok(())
                }
            }
        }));
        match step {
            Ok(result) => result?,
            Err(panic) if panic.is::<Died>() => {
                counts.deaths += 1;
                counts.orphans += kernel::under_way() as u64;
                sim::tell(|| {
                    format!("the process dies with {} operations under way", kernel::under_way())
                });
                sim::set_dead(true);
                *process = None;
                sim::set_dead(false);
                settle(&turn);
                debug_assert!(alive || sim::threads() == 0, "{:?}", sim::names());
            }
            Err(panic) => resume_unwind(panic),
        }
    }
    finish(process.take(), path, &disk, drawn.sectors, &clients, counts)
}

/// A process begins: opens the volume, which waits for what an earlier one has under way, and takes up the clients.
fn begin(drawn: &Drawn, clients: &Clients, calm: bool) -> Result<Process, String> {
    if !calm && drawn.death_every > 0 && sim::once_in(4) {
        sim::die_at(Some(sim::pick(400) as u64));
    }
    let channel = |index| {
        let (cpu, files_max, poll_us_max) = (None, 64, drawn.poll_us_max);
        let config = ChannelConfig { index, cpu, files_max, poll_us_max, activity: None };
        Channel::start(config, STATS.with(|stats| stats.region.channel(index as usize)))
            .map_err(|error| error.to_string())
    };
    let channels: Vec<Channel<BlkHandler>> =
        (0..drawn.channels).map(channel).collect::<Result<_, _>>()?;
    let volume = block::open_for(&Here, Some("sim"), &drawn.spec, &mut |_| {})
        .map_err(|error| format!("the volume is not opened: {error}"))?;
    let shape = Arc::new(Shape::new(&volume.geometry(), "sim", false, true));
    let places = clients.iter().map(|_| None).collect();
    let mut process = Process { channels, volume, shape, places };
    sim::tell(|| format!("a process begins with {} channels", drawn.channels));
    for index in 0..clients.len() {
        let with_region = !sim::planted("no-inflight");
        let (config, table) = clients[index].borrow().config(with_region);
        let ring = config.start(table).map_err(|(_, error)| error.to_string())?;
        let client = clients[index].borrow();
        let name = client.name.clone();
        let whose = name.clone();
        let on_stop =
            move |_: u16, reason: StopReason| panic!("the queue of {whose} stops: {reason}");
        let adapter = Adapter::new(&name, Box::new(on_stop));
        adapter.set_wait(drawn.wait);
        let resources = QueueResources {
            ring,
            number: 0,
            adapter: Arc::new(adapter),
            kick: client.kick(),
            call: Some(client.call()),
            error: None,
            commands: Command::pool(client.habits.size),
            stats: STATS.with(|stats| stats.queues[index]),
        };
        drop(client);
        let at = sim::pick(process.channels.len());
        process.place(index, at, resources)?;
    }
    Ok(process)
}

impl Process {
    fn place(&mut self, index: usize, at: usize, resources: QueueResources) -> Result<(), String> {
        let behind = Behind { shape: Arc::clone(&self.shape), volume: Arc::clone(&self.volume) };
        let started = self.channels[at].start_queue(resources, behind);
        let id = started.map_err(|failure| failure.to_string())?;
        self.places[index] = Some((at, id));
        Ok(())
    }

    fn take(&mut self, index: usize) -> QueueResources {
        let (at, id) = self.places[index].take().expect("it was placed");
        let drain = if sim::once_in(2) { Drain::Ordinary } else { Drain::SkipWaits };
        let pending = self.channels[at].stop_queue(id, drain);
        pending.wait().expect("a channel answers")
    }
}

/// A queue goes to another channel, as the balancer does it.
fn move_one(process: &mut Process, clients: &Clients, counts: &mut Counts) -> Result<(), String> {
    let index = sim::pick(clients.len());
    let resources = process.take(index);
    let QueueResources { ring, number, adapter, kick, call, error, commands, stats } = resources;
    let base = ring.stop().base;
    let (mut config, table) = clients[index].borrow().config(true);
    config.base = base;
    let ring = config.start(table).map_err(|(_, error)| error.to_string())?;
    let resources = QueueResources { ring, number, adapter, kick, call, error, commands, stats };
    let at = sim::pick(process.channels.len());
    sim::tell(|| format!("the queue of client{index} moves to channel {at}"));
    process.place(index, at, resources)?;
    counts.moves += 1;
    Ok(())
}

/// All is answered: the process ends in order, nothing of it is left, and the medium has what it must have.
fn finish(
    process: Option<Process>,
    path: &Path,
    disk: &Rc<RefCell<Disk>>,
    sectors: u64,
    clients: &Clients,
    counts: &mut Counts,
) -> Result<(), String> {
    let mut process = process.expect("it lives");
    for index in 0..clients.len() {
        let resources = process.take(index);
        if resources.ring.in_flight() > 0 {
            return Err(format!("client{index}: the queue comes back with heads in flight"));
        }
        let client = clients[index].borrow();
        counts.answered += u64::from(client.answered);
        counts.failed += u64::from(client.failed);
    }
    drop(process);
    for _ in 0..10_000 {
        if !kernel::land() {
            break;
        }
    }
    if kernel::under_way() > 0 {
        return Err(format!("{} operations are left in the kernel", kernel::under_way()));
    }
    let file = std::fs::File::open(path).map_err(|error| error.to_string())?;
    let mut bytes = vec![0; (sectors * SECTOR) as usize];
    file.read_exact_at(&mut bytes, 0).map_err(|error| error.to_string())?;
    for (at, value) in stamps(&bytes)?.into_iter().enumerate() {
        disk.borrow().rests(at as u64, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_one_story() {
        for seed in 1..=20 {
            let plan = Plan { seed, control: None, story_lines: 50 };
            let (first, second) = (run(&plan), run(&plan));
            assert_eq!(first.finding, None, "seed {seed}\n{}", first.story);
            assert_eq!(first.story, second.story, "seed {seed}");
        }
    }

    #[test]
    fn runs_meet_what_they_are_for() {
        let mut counts = Counts::default();
        for seed in 1..=40 {
            counts.add(&run(&Plan { seed, control: None, story_lines: 0 }).counts);
        }
        let Counts { answered, failed, deaths, moves, orphans, .. } = counts;
        assert!(answered > 5_000, "{counts:?}");
        for count in [failed, deaths, moves, orphans] {
            assert!(count > 20, "{counts:?}");
        }
    }
}
