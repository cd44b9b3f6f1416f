//! One simulation: a data plane's channels and volumes, their clients, deaths, and the end, when everything must be answered.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use channel::ChannelConfig;
use dataplane::sim::{House, Session};
use memory::random::mix;
use memory::sim::{self, Died};
use protocol::stats::{QueueCounter, StatsRegion};
use spec::{UnitSpec, VolumeSpec};
use uring::sim::{self as kernel, Faults};

use crate::atlas::{self, Phase, Under};
use crate::changes::{bring, change_liar, change_one, come_liar, move_one};
use crate::client::{self, Client, SECTOR, stamps};
use crate::clients::{Any, Clients};
use crate::counts::Counts;
use crate::drawn::{Drawn, LIAR};
use crate::files::{Keeper, medium, sectors};
use crate::front::Line;
use crate::liar::{self, Liar};
use crate::oracle::{Disk, Stamp};
use crate::plan::{Outcome, Plan};
use crate::pooled::{self, Known, Opener, Pool, at_rest};
use crate::scsi::{self, Common, ScsiClient, Tally};
use crate::tally::look_at_counters;
use crate::unit::Unit;

/// Channels of a process, at most.
pub(crate) const CHANNELS_MAX: usize = 3;
/// Clients of a run, at most.
pub(crate) const CLIENTS_MAX: usize = 3;

thread_local! {
    /// Where is counted: one memory for all runs, since its mapping stays for ever.
    pub static STATS: Arc<StatsRegion> =
        Arc::new(StatsRegion::create(CHANNELS_MAX).expect("memory for statistics"));
}

/// The simulated process, while it lives.
pub(crate) struct Process {
    pub sessions: Vec<Session>,
    /// Of the client that lies, if it is there.
    pub liar: Option<Session>,
    pub house: House,
    pub pool: Option<Pool>,
}

/// What a run is about.
pub(crate) struct Scene {
    pub drawn: Drawn,
    pub clients: Clients,
    pub liar: Option<Rc<RefCell<Liar>>>,
    pub unit: Rc<RefCell<Unit>>,
    keeper: RefCell<Keeper>,
    folder: PathBuf,
    pub known: Known,
    pub idle: Rc<Idle>,
    /// The volume's size in sectors now.
    pub size: Cell<u64>,
    /// An adapter was removed, or a unit taken from a client, since the process began: what was counted of it is gone.
    pub removed: Cell<bool>,
    pub disk: Rc<RefCell<Disk>>,
}

impl Scene {
    /// Where the volume is.
    pub(crate) fn path(&self) -> PathBuf {
        self.folder.join("disk")
    }

    pub(crate) fn opener(&self) -> Opener<'_> {
        let Scene { known, keeper, folder, drawn, .. } = self;
        Opener { known, keeper, folder, drawn }
    }

    /// Where that of the client that lies is.
    pub(crate) fn path_of_liar(&self) -> PathBuf {
        self.folder.join(LIAR)
    }
}

/// Each run has a folder of its own.
static RUNS: AtomicU64 = AtomicU64::new(0);

/// Runs a seed.
pub(crate) fn run(plan: &Plan) -> Outcome {
    sim::begin(plan.seed, plan.story_lines);
    if plan.trace {
        sim::trace();
    }
    kernel::boot(Faults::default());
    let folder = PathBuf::from(format!(
        "/dev/shm/trunkline-sim-{}-{}",
        std::process::id(),
        RUNS.fetch_add(1, Ordering::Relaxed)
    ));
    let made = std::fs::create_dir_all(&folder);
    assert!(made.is_ok(), "{}: {made:?}", folder.display());
    let mut counts = Counts::default();
    let mut process = None;
    let result = catch_unwind(AssertUnwindSafe(|| {
        if let Some(control) = plan.control {
            sim::plant(control.name);
        }
        live(plan, &folder, &mut process, &mut counts)
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

pub(crate) fn words(panic: &(dyn std::any::Any + Send)) -> String {
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
    /// No more time passes at once while somebody has something to do: others wait for seconds.
    most_ns: u64,
}

impl Pace {
    fn draw(pooled: bool) -> Pace {
        let weight = || 1 << sim::pick(6);
        let most_ns = if pooled { 1_000_000 } else { u64::MAX };
        Pace {
            threads: weight(),
            kernel: weight(),
            clients: weight(),
            time: 1 + sim::pick(4),
            most_ns,
        }
    }
}

/// For how long, in ns, there has been nothing to do but to wait for time to pass, in all: what is late because the kernel or a thread had no turn is none of it.
pub(crate) type Idle = Cell<u64>;

/// Somebody has a turn: a thread of the process, the kernel, a client, or time.
fn beside(clients: &Clients, liar: Option<&RefCell<Liar>>, pace: Pace, idle: &Idle) {
    let threads = sim::threads();
    let of_threads = if threads > 0 { pace.threads } else { 0 };
    let Pace { kernel, clients: of_clients, time, most_ns, .. } = pace;
    let picked = sim::pick(of_threads + kernel + of_clients + time);
    if picked < of_threads {
        sim::thread(sim::pick(threads));
    } else if picked < of_threads + kernel {
        kernel::land();
    } else if picked < of_threads + kernel + of_clients {
        // One that is in the middle of a step has none.
        match clients.get(sim::pick(clients.len() + usize::from(liar.is_some()))) {
            Some(client) => {
                if let Ok(mut client) = client.try_borrow_mut() {
                    client.step();
                }
            }
            None => liar.iter().for_each(|liar| liar.borrow_mut().step()),
        }
    } else if threads > 0 && !sim::sleeps() || !pass_to_next(clients, idle, most_ns) {
        sim::pass(1 << sim::pick(14));
    }
}

/// No thread is awake, or somebody waits for time to pass: it goes on to the next moment, if there is one, or some of the way.
fn pass_to_next(clients: &Clients, idle: &Idle, most_ns: u64) -> bool {
    let moments = [kernel::next_moment(), sim::next_waking()];
    let Some(at) = moments.into_iter().flatten().min() else { return false };
    let now = sim::now_ns();
    let mut passes = at.saturating_sub(now) + 1;
    if passes > most_ns && (sim::threads() > 0 || !kernel::is_quiet()) {
        passes = most_ns;
    }
    if sim::all_sleep() && kernel::is_quiet() {
        // Whom the kernel has refused everything waits for it until then, and is not forgotten.
        let waits = (now + passes).saturating_sub(kernel::refused_at() + REFUSED_NS);
        let late = passes.min(waits);
        idle.set(idle.get() + late);
        // Moment by moment: between two looks of this module's there may be a whole change, in which clients go on.
        for client in clients.iter() {
            // One that is in the middle of a step has not kicked yet.
            let Ok(mut client) = client.try_borrow_mut() else { continue };
            let front = client.front_mut();
            if !front.is_gone {
                front.lines.iter_mut().for_each(|line| line.idles(late));
            }
        }
    }
    sim::pass(passes);
    true
}

/// What the kernel has not taken, for want of memory, is tried again after so long.
const REFUSED_NS: u64 = 1_000_000;

/// Steps until everything must be answered after the last fault: far more than the slowest run takes.
const STALL: u64 = 400_000;
/// Then so much time passes at least, once in so many steps: in all more than the lowest limit wants.
const CALM_NS: u64 = 100_000;
const CALM_STEPS: u64 = 64;
/// Requests of a run.
pub(crate) const REQUESTS: u32 = 200;
/// After so many steps no more is asked: a run of nothing but deaths would never end.
const LONG: u64 = 100_000;

fn live(
    plan: &Plan,
    folder: &Path,
    process: &mut Option<Process>,
    counts: &mut Counts,
) -> Result<(), String> {
    let path = &folder.join("disk");
    let mut drawn = Drawn::draw(path, plan.part, plan.seed);
    drawn.reduce(&plan.less);
    // Each run has another folder.
    sim::tell(|| format!("{drawn:?}").replace(&folder.display().to_string(), ""));
    if sim::planted("notification-lost") {
        drawn.faults.notify_lost = 40;
    }
    let stamps = Rc::new(RefCell::new(0 as Stamp));
    let disk =
        Rc::new(RefCell::new(Disk::new(drawn.sectors, medium(path), drawn.spec.write_through)));
    disk.borrow_mut().pool = drawn.pool.map(|pool| pool.mirrored);
    if drawn.spec.read_only {
        // Each sector with a value of its own, so that what is read from another one is seen.
        let values = (1..=drawn.sectors).map(|at| at << 32);
        let bytes: Vec<u8> = values
            .clone()
            .flat_map(|value| value.to_le_bytes().repeat(SECTOR as usize / 8))
            .collect();
        std::fs::write(path, bytes).map_err(|error| error.to_string())?;
        disk.borrow_mut().holds(values);
    }
    let count = plan.less.clients(1 + sim::pick(CLIENTS_MAX));
    let requests = plan.less.requests(REQUESTS) / count as u32;
    let (unit, tally) = (Rc::new(RefCell::new(Unit::default())), Rc::new(Tally::default()));
    let common = Common {
        disk: Rc::clone(&disk),
        unit: Rc::clone(&unit),
        stamps: Rc::clone(&stamps),
        tally: Rc::clone(&tally),
        sectors: drawn.sectors,
    };
    let orders = drawn.orders;
    let client = |index| {
        RefCell::new(match drawn.scsi {
            None => {
                let habits = client::Habits::draw();
                let name = format!("client{index}");
                Any::Block(Client::new(name, habits, &disk, drawn.sectors, &stamps, requests))
            }
            Some(_) => Any::Scsi(ScsiClient::new(
                index,
                scsi::Habits::draw(orders, &plan.less),
                &common,
                requests,
            )),
        })
    };
    let clients: Clients = Rc::new((0..count).map(client).collect());
    let others = Rc::clone(&clients);
    let pace = Pace::draw(drawn.pool.is_some());
    let idle: Rc<Idle> = Rc::default();
    let time = Rc::clone(&idle);
    let liar =
        drawn.liar.as_ref().map(|lying| Rc::new(RefCell::new(Liar::new(lying.scsi, liar::STEPS))));
    let lies = liar.clone();
    let turn: Rc<dyn Fn()> = Rc::new(move || beside(&others, lies.as_deref(), pace, &time));
    let settle = |turn: &Rc<dyn Fn()>| {
        let turn = Rc::clone(turn);
        sim::set_beside(Some(Box::new(move || turn())));
    };
    settle(&turn);
    kernel::set_faults(drawn.faults);
    sim::folder::begin(folder, drawn.keep_fails, drawn.keep_dies);
    let (keeper, folder) = (RefCell::default(), folder.to_owned());
    let (size, disk_of_scene) = (Cell::new(drawn.sectors), Rc::clone(&disk));
    let removed = Cell::new(false);
    let scene = Scene {
        drawn,
        clients,
        liar,
        unit,
        keeper,
        folder,
        known: Known::default(),
        idle,
        size,
        removed,
        disk: disk_of_scene,
    };
    let Scene { drawn, clients, unit, .. } = &scene;
    let nested_every = [0, 1, 3, 17, 101][sim::pick(5)];
    sim::nest(if plan.less.has("nesting") { nested_every } else { 0 });
    // What was drawn stays, and everything else is another choice.
    if plan.less.salt > 0 {
        sim::reseed(mix(plan.seed ^ mix(plan.less.salt)));
    }

    let (mut steps, mut steps_left) = (0_u64, STALL);
    let mut calm = false;
    loop {
        for client in clients.iter() {
            if let Some(wrong) = client.borrow_mut().count().wrong.take() {
                return Err(wrong);
            }
        }
        let left: u32 = clients.iter().map(|client| client.borrow_mut().count().left).sum();
        let under_way: usize = clients.iter().map(|client| client.borrow().under_way()).sum();
        steps += 1;
        sim::step();
        if (left == 0 || steps == LONG) && !calm {
            // The last faults are over: from here on everything has to be answered.
            calm = true;
            for client in clients.iter() {
                client.borrow_mut().count().left = 0;
            }
            kernel::set_faults(Faults {
                notify_lost: drawn.faults.notify_lost,
                workers: drawn.faults.workers,
                ..Faults::default()
            });
            sim::folder::heal();
            sim::die_at(None);
            sim::tell(|| "the faults are over".into());
        }
        if calm && under_way == 0 && process.is_some() {
            break;
        }
        if calm {
            steps_left -= 1;
            if steps_left % CALM_STEPS == 0 {
                // Threads that poll would have it pass slowly, for those whose limits make them wait.
                sim::pass(CALM_NS);
            }
            if steps_left == 0 {
                let laments = |client: &RefCell<Any>| client.borrow_mut().front_mut().laments();
                let laments: String = clients.iter().map(laments).collect();
                return Err(format!("{under_way} requests are never answered{laments}"));
            }
        }
        let alive = process.is_some();
        let step = catch_unwind(AssertUnwindSafe(|| -> Result<(), String> {
            match process {
                None => {
                    *process = Some(begin(&scene, calm)?);
                    // While there was none, nobody was served.
                    let anew =
                        |client: &RefCell<Any>| client.borrow_mut().front_mut().is_served_anew();
                    clients.iter().for_each(anew);
                    Ok(())
                }
                Some(process) => {
                    if !calm && sim::once_in(drawn.death_every) {
                        // Somewhere in what follows, or at once.
                        sim::die_at(Some(sim::pick(60) as u64));
                    }
                    if !calm && sim::once_in(drawn.move_every) {
                        move_one(process, &scene, counts);
                    }
                    if !calm && sim::once_in(drawn.change_every) {
                        change_one(process, &scene, counts)?;
                    }
                    if let Some(pool) = &process.pool {
                        pool.look_for_pvs(&scene.keeper.borrow());
                        if !calm && sim::once_in(pool.snapshots_every) {
                            pool.change_snapshots(&scene)?;
                        }
                    }
                    change_liar(process, &scene)?;
                    look_at_unlimited(process, &scene)?;
                    if let Some(trouble) = process.sessions.iter().find_map(Session::trouble) {
                        return Err(trouble);
                    }
                    beside(clients, scene.liar.as_deref(), pace, &scene.idle);
                    Ok(())
                }
            }
        }));
        match step {
            Ok(result) => result?,
            Err(panic) if panic.is::<Died>() => {
                counts.deaths += 1;
                unit.borrow_mut().die(&disk.borrow())?;
                counts.orphans += kernel::under_way() as u64;
                sim::tell(|| {
                    format!("the process dies with {} operations under way", kernel::under_way())
                });
                if let Some(process) = process {
                    look_at_modest(process, clients)?;
                }
                sim::set_dead(true);
                *process = None;
                sim::set_dead(false);
                if sim::once_in(drawn.power_every) {
                    counts.power += 1;
                    sim::met("the power fails");
                    atlas::nothing_is_asked();
                    sim::tell(|| "the host loses its power".into());
                    kernel::lose_power();
                    sim::folder::lose_power();
                    pooled::lose_power(&scene.folder);
                    scene.keeper.take();
                    disk.borrow_mut().lose_power();
                    unit.borrow_mut().lose_power();
                    clients.iter().for_each(|client| client.borrow_mut().reboot());
                }
                settle(&turn);
                debug_assert!(alive || sim::threads() == 0, "{:?}", sim::names());
            }
            Err(panic) => resume_unwind(panic),
        }
    }
    let cell = |cell: &Cell<u64>| cell.get();
    counts.functions = cell(&tally.functions);
    (counts.ended, counts.refused) = (cell(&tally.ended), cell(&tally.refused));
    let (orders, shut) = (unit.borrow().fence.orders, unit.borrow().fence.shut);
    (counts.orders, counts.shut) = (orders, shut);
    finish(process.take(), path, &disk, &scene, counts)
}

/// Whoever has no more than one request under way has waited for nobody's lists.
fn look_at_modest(process: &Process, clients: &Clients) -> Result<(), String> {
    for (session, client) in process.sessions.iter().zip(clients.iter()) {
        let client = client.borrow();
        let waits = |line: &Line| session.counted(line.number, QueueCounter::WaitNoDma) > 0;
        if client.is_modest() && client.front().lines.iter().any(waits) {
            return Err(format!("{} waited for the lists of others", client.front().name));
        }
    }
    Ok(())
}

/// A COMPARE AND WRITE that meets another one looks again after a quarter of this.
pub(crate) const WAITS_NS: u64 = 400_000;

/// While there is nothing to do but to wait for time to pass, those wait whose limits want it, and nobody else for long.
fn look_at_unlimited(process: &Process, scene: &Scene) -> Result<(), String> {
    let Drawn { spec, scsi, faults, .. } = &scene.drawn;
    // What failed in passing is tried again after some time.
    let all_wait = spec.limit.is_some() || spec.delay.is_some() || faults.passing > 0;
    // Elements of a port are lent to those who wait for their limits.
    let port = scsi.as_ref().is_some_and(|(_, port)| port.is_some());
    if all_wait || port || scene.drawn.pool.is_some() {
        return Ok(());
    }
    // A flush that waits for another lane's looks again after a part of what it has waited.
    let may_wait = WAITS_NS + sim::entered_for(Phase::Flush as usize) / 4;
    for (session, client) in process.sessions.iter().zip(scene.clients.iter()) {
        let spec = session.spec();
        let limited = spec.scsi().is_some_and(|scsi| scsi.limit.is_some());
        let client = client.borrow();
        let front = client.front();
        for line in &front.lines {
            let waits = line.has_idled();
            if !limited && waits > may_wait {
                let (name, queue) = (&front.name, line.number);
                return Err(format!("queue {queue} of {name} has no limit, and waits {waits} ns"));
            }
        }
    }
    Ok(())
}

/// The volume's file is as long as it was made.
pub(crate) fn look_at_size(scene: &Scene) -> Result<(), String> {
    if scene.drawn.pool.is_some() {
        return Ok(());
    }
    let (found, size) = (sectors(&scene.path())?, scene.size.get());
    match found == size {
        true => Ok(()),
        false => Err(format!("the file has {found} sectors, and the volume {size}")),
    }
}

/// A process begins: opens the volume, which waits for what an earlier one has under way, and takes up the clients.
fn begin(scene: &Scene, calm: bool) -> Result<Process, String> {
    let _beginning = Under::new(Phase::Beginning);
    let Scene { drawn, clients, unit, keeper, folder, .. } = scene;
    if !calm && drawn.death_every > 0 && sim::once_in(4) {
        sim::die_at(Some(sim::pick(400) as u64));
    }
    let channel = |index| {
        let (cpu, files_max, poll_us_max) = (None, 64, drawn.poll_us_max);
        ChannelConfig { index, cpu, files_max, poll_us_max, activity: None }
    };
    scene.removed.set(false);
    for client in clients.iter() {
        client.borrow_mut().front_mut().is_counted_anew();
    }
    let stats = STATS.with(Arc::clone);
    let mut house = House::start((0..drawn.channels).map(channel), &stats)?;
    let spec = VolumeSpec { bytes: Some(scene.size.get() * SECTOR), ..drawn.spec.clone() };
    let (volume, pool) = match drawn.pool {
        Some(pooled) => {
            let pool = scene.opener().open(pooled)?;
            (Arc::clone(&pool.volume), Some(pool))
        }
        None => {
            let volume = block::open_for(&*keeper.borrow(), Some("sim"), &spec, &mut |_| {});
            (volume.map_err(|error| format!("the volume is not opened: {error}"))?, None)
        }
    };
    house.put_volume(spec, volume);
    for client in clients.iter().filter(|client| client.borrow().front().is_gone) {
        // The process died under one that was about to start again, and nothing of that is under way.
        client.borrow_mut().starts_again()?;
        client.borrow_mut().front_mut().is_counted_anew();
    }
    if drawn.scsi.is_some() {
        let keep = Some(folder.join("disk.pr"));
        let read_only = drawn.spec.read_only;
        let spec = UnitSpec::disk("disk", 0x3000_0000_0000_0001);
        house.put_unit(UnitSpec { keep, read_only, ..spec })?;
    }
    if let Some(lying) = &drawn.liar {
        let (_, spec) = drawn.of_liar(lying, 1, &scene.path_of_liar());
        open_for_liar(&mut house, spec, lying.scsi)?;
    }
    let mut process = Process { sessions: Vec::new(), liar: None, house, pool };
    sim::tell(|| format!("a process begins with {} channels", drawn.channels));
    for (number, client) in clients.iter().enumerate() {
        let (said, queues) = {
            let client = client.borrow();
            (client.front().says(!sim::planted("no-inflight"), drawn.in_bytes), client.queues())
        };
        let session = process.house.connect(drawn.adapter(number, queues), said)?;
        process.sessions.push(session);
        bring(&mut process.sessions[number], client, scene)?;
        unit.borrow_mut().arrive(number);
    }
    come_liar(&mut process, scene);
    Ok(process)
}

/// The disk of the client that lies.
fn open_for_liar(house: &mut House, spec: VolumeSpec, scsi: bool) -> Result<(), String> {
    let volume = block::open_for(&Keeper::default(), Some("sim"), &spec, &mut |_| {})
        .map_err(|error| format!("the liar's volume is not opened: {error}"))?;
    house.put_volume(spec, volume);
    match scsi {
        true => house.put_unit(UnitSpec::disk(LIAR, 0x3000_0000_0000_0002)),
        false => Ok(()),
    }
}

/// All is answered: the process ends in order, nothing of it is left, and the medium has what it must have.
fn finish(
    process: Option<Process>,
    path: &Path,
    disk: &Rc<RefCell<Disk>>,
    scene: &Scene,
    counts: &mut Counts,
) -> Result<(), String> {
    let process = process.expect("it lives");
    look_at_modest(&process, &scene.clients)?;
    look_at_counters(&process, scene)?;
    let Process { sessions, liar, house, pool } = process;
    liar.into_iter().for_each(|mut session| session.leave(false));
    sessions.into_iter().for_each(|mut session| session.leave(false));
    for client in scene.clients.iter() {
        let mut client = client.borrow_mut();
        if !client.front().is_idle() {
            let name = &client.front().name;
            return Err(format!("{name}: its queues came back with heads in flight"));
        }
        counts.answered += u64::from(client.count().answered);
        counts.failed += u64::from(client.count().failed);
    }
    drop(house);
    let at_rest = pool.zip(scene.drawn.pool).map(|(pool, pooled)| at_rest(pool, pooled, scene));
    for _ in 0..10_000 {
        if !kernel::land() {
            // What a process that died has asked of a file that does not answer is still to come.
            let Some(at) = kernel::next_moment() else { break };
            sim::pass(at.saturating_sub(sim::moment()) + 1);
        }
    }
    if kernel::under_way() > 0 {
        return Err(format!("{} operations are left in the kernel", kernel::under_way()));
    }
    look_at_size(scene)?;
    if scene.liar.is_some() && sectors(&scene.path_of_liar())? != liar::SECTORS {
        return Err("the liar's disk has another size".to_owned());
    }
    let bytes = match at_rest {
        Some(bytes) => bytes?,
        None => std::fs::read(path).map_err(|error| error.to_string())?,
    };
    for (at, value) in stamps(&bytes)?.into_iter().enumerate() {
        disk.borrow().rests(at as u64, value)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::atlas::Atlas;

    #[test]
    fn a_seed_is_one_story() {
        let run = |seed| run(&Plan { seed, story_lines: 50, ..Plan::default() });
        let first: Vec<Outcome> = (1..=20).map(run).collect();
        // In another order: what runs before have left of memory, files and descriptors says nothing.
        for (seed, first) in (1..=20).rev().zip(first.into_iter().rev()) {
            assert_eq!(first.finding, None, "seed {seed}\n{}", first.story);
            assert_eq!(first.story.differs(&run(seed).story), None, "seed {seed}");
        }
    }

    #[test]
    fn runs_meet_what_they_are_for() {
        let (mut counts, mut atlas) = (Counts::default(), Atlas::default());
        for seed in 1..=40 {
            let outcome = run(&Plan { seed, ..Plan::default() });
            counts.add(&outcome.counts);
            atlas.add(&outcome.story.met);
        }
        let Counts { answered, failed, deaths, moves, orphans, .. } = counts;
        assert!(answered > 5_000, "{counts:?}");
        let Counts { functions, ended, refused, .. } = counts;
        for count in [failed, deaths, moves, orphans, functions, ended, refused, counts.orders] {
            assert!(count > 20, "{counts:?}");
        }
        for count in [counts.power, counts.maps, counts.sizes, counts.shut] {
            assert!(count > 0, "{counts:?}");
        }
        for phase in [Phase::Write, Phase::Order, Phase::Function, Phase::Changing] {
            assert!(atlas.times("the process dies", phase) > 0, "{phase:?}\n{atlas}");
        }
    }
}
