//! One simulation of the control plane: a server with its store and its supervisor, the message handler of a data plane, callers, and what goes wrong
//! between them; then the end, when everything must be as it was asked for. See `docs/simulator.md`.

mod again;
mod asks;
mod disk;
mod files;
mod judge;
mod kept;
mod planes;

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::rc::Rc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use control::model::Desired;
use control::model::resolve;
use control::paths::Paths;
use control::reconcile::{Action, reconcile};
use control::server::Server;
use control::store::RedbStore;
use control::turns::simulated as turns;
use fabric::attribute::Object;
use memory::random::mix;
use memory::sim;
use tokio::runtime::Runtime;
use tokio::task::JoinHandle;
use uring::sim::{self as kernel, Faults};

use crate::counts::Counts;
use crate::plan::{Outcome, Plan};
use crate::world::words;
use again::Again;
use asks::{Asked, End};

thread_local! {
    /// Which life of the server it is, and whether it lives.
    static LIFE: Cell<(u64, bool)> = const { Cell::new((0, false)) };
    static RUNTIME: RefCell<Option<Rc<Runtime>>> = const { RefCell::new(None) };
    /// Somebody is in it.
    static WITHIN: Cell<bool> = const { Cell::new(false) };
    /// Up to when its clock has gone.
    static CLOCK: Cell<u64> = const { Cell::new(0) };
    /// The folders of the run, which no story names.
    static FOLDERS: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
}

/// Whether the server lives its so-many-th life.
pub(crate) fn lives(life: u64) -> bool {
    LIFE.get() == (life, true)
}

/// It dies: nothing of it has an effect from now on. It is dropped before the next step.
pub(crate) fn die(life: u64, within: &str) {
    if lives(life) {
        LIFE.set((life, false));
        sim::met("the server dies");
        sim::tell(|| format!("the server dies in {within}"));
    }
}

/// Without the folders of the run.
pub(crate) fn clean(text: &str) -> String {
    FOLDERS.with_borrow(|folders| {
        let process = format!("process {}", std::process::id());
        let text = text.replace(&process, "a process");
        folders.iter().fold(text, |text, folder| text.replace(folder.as_str(), "DIR"))
    })
}

/// A state in a line.
pub(crate) fn short(state: &Desired) -> String {
    let mut text = String::new();
    for object in Object::ALL {
        for (name, set) in state[object].iter() {
            text += &format!(" {name}");
            if let Some(mark) = asks::mark_of(object, set) {
                text += &format!(":{mark}");
            }
        }
    }
    format!("[{}]", text.trim())
}

static RUNS: AtomicU64 = AtomicU64::new(0);

/// Runs a seed.
pub(crate) fn run(plan: &Plan) -> Outcome {
    sim::begin(plan.seed, plan.story_lines);
    if plan.trace {
        sim::trace();
    }
    kernel::boot(Faults::default());
    let number = RUNS.fetch_add(1, Ordering::Relaxed);
    let folder = format!("/dev/shm/trunkline-simc-{}-{number}", std::process::id());
    let paths = Paths::in_one(&folder);
    let memory = paths.ram("x").parent().map(PathBuf::from);
    let made = std::fs::create_dir_all(&folder);
    // Where the memory of volumes is; an opener makes it otherwise.
    memory.iter().for_each(|memory| drop(std::fs::create_dir_all(memory)));
    assert!(made.is_ok(), "{folder}: {made:?}");
    let names = memory.iter().map(|memory| memory.display().to_string());
    FOLDERS.set(names.chain([folder.clone()]).collect());
    if let Some(control) = plan.control {
        sim::plant(control.name);
    }
    disk::new();
    kept::new();
    asks::new();
    asks::begin_marks();
    judge::new();
    dataplane::sim::hold(0);
    planes::new(PathBuf::from(&folder).join("dataplane-main.sock"));
    // One that is not whole is not in its place.
    LIFE.set((0, true));
    disk::begin(0);
    let made = RedbStore::on(disk::Medium { life: 0 }).map(drop);
    assert!(made.is_ok(), "{made:?}");
    LIFE.set((0, false));
    CLOCK.set(sim::now_ns());
    let mut counts = Counts::default();
    let mut world = World::draw(plan, paths, folder.clone());
    // What was drawn stays, and everything else is another choice.
    if plan.less.salt > 0 {
        sim::reseed(mix(plan.seed ^ mix(plan.less.salt)));
    }
    let result = catch_unwind(AssertUnwindSafe(|| world.live(&mut counts)));
    let finding = match result {
        Ok(result) => result.err(),
        Err(panic) => Some(format!("the program panicked: {}", words(&*panic))),
    };
    WITHIN.set(false);
    LIFE.set((LIFE.get().0, false));
    world.bury();
    sim::set_beside(None);
    planes::die();
    sim::set_dead(true);
    let outcome = Outcome { finding: finding.map(|it| clean(&it)), story: sim::end(), counts };
    kernel::boot(Faults::default());
    let _ = std::fs::remove_dir_all(&folder);
    memory.map(std::fs::remove_dir_all);
    outcome
}

/// How often what happens; once in so many steps, 0: never.
#[derive(Debug)]
struct Drawn {
    rounds: usize,
    asks: usize,
    callers: usize,
    asks_every: u64,
    crash_every: u64,
    /// Of deaths, those of the host.
    power_every: u64,
    disk_errors: u64,
    plane_dies_every: u64,
    silent_every: u64,
    cuts: u64,
    refuses: u64,
    fails: u64,
    late: u64,
    files_every: u64,
    leaves_every: u64,
    clients_every: u64,
    /// What a data plane that dies has under way holds its files for a while.
    holds: bool,
    /// Everything that there can be is asked for first.
    whole: bool,
}

fn rarely(share: u64, every: usize) -> u64 {
    if sim::once_in(share) { 1 << (every + sim::pick(4)) } else { 0 }
}

/// A run.
struct World {
    drawn: Drawn,
    paths: Paths,
    folder: String,
    server: Arc<Mutex<Option<Arc<Server>>>>,
    /// Who waits for an answer.
    callers: BTreeMap<u64, JoinHandle<()>>,
    asked: u64,
    /// What a caller has read.
    known: Desired,
    locked: BTreeMap<String, File>,
    away: Vec<String>,
    again: Again,
    steps: u64,
    round: u64,
}

/// Everybody's turn: a thread, the tasks, or time.
fn beside() {
    let threads = sim::threads();
    let tasks = if WITHIN.get() { 0 } else { 8 };
    match sim::pick(threads.min(4) * 4 + tasks + 1) {
        picked if picked < threads.min(4) * 4 => sim::thread(sim::pick(threads)),
        picked if picked < threads.min(4) * 4 + tasks => slice(),
        _ if threads == 0 => {
            let most = 1 << (16 + sim::pick(14));
            let next = sim::next_waking().map_or(most, |at| at.saturating_sub(sim::now_ns()) + 1);
            sim::pass(most.min(next));
        }
        _ => sim::pass(1 << sim::pick(16)),
    }
}

/// Tasks of the server have some turns.
fn slice() {
    let Some(runtime) = RUNTIME.with_borrow(|runtime| runtime.clone()) else { return };
    WITHIN.set(true);
    let turns = 1 + sim::pick(8);
    let ms = (sim::now_ns() - CLOCK.get()) / 1_000_000;
    CLOCK.set(CLOCK.get() + ms * 1_000_000);
    runtime.block_on(async move {
        if ms > 0 {
            tokio::time::advance(Duration::from_millis(ms)).await;
        }
        for _ in 0..turns {
            tokio::task::yield_now().await;
        }
    });
    WITHIN.set(false);
    turns::wake_all();
}

/// Steps and time until everything must be as it was asked for, after the last fault.
const STALL_STEPS: u64 = 60_000;
const STALL_NS: u64 = 1_000_000_000_000;

impl World {
    fn draw(plan: &Plan, paths: Paths, folder: String) -> World {
        let less = &plan.less;
        let part = |part: &str, value: u64| if less.has(part) { value } else { 0 };
        let mut drawn = Drawn {
            rounds: 1 + part("rounds", sim::pick(3) as u64) as usize,
            asks: less.requests(2 + sim::pick(12) as u32) as usize,
            callers: less.clients(1 + sim::pick(3)),
            asks_every: 1 << (2 + sim::pick(5)),
            crash_every: part("crashes", rarely(2, 6)),
            power_every: part("power", 1 + sim::pick(3) as u64),
            disk_errors: part("disk", rarely(4, 4)),
            plane_dies_every: part("planes", rarely(3, 7)),
            silent_every: part("silence", rarely(4, 7)),
            cuts: part("lines", rarely(4, 3)),
            refuses: part("refusals", rarely(3, 1)),
            fails: part("starts", rarely(4, 1)),
            late: part("late", rarely(2, 1)),
            files_every: part("files", rarely(3, 5)),
            leaves_every: part("leaves", rarely(3, 6)),
            clients_every: part("clients", rarely(2, 2)),
            holds: sim::once_in(2) && less.has("holds"),
            whole: false,
        };
        drawn.single_out(plan.seed, less);
        World {
            drawn,
            paths,
            folder,
            server: Arc::default(),
            callers: BTreeMap::new(),
            asked: 0,
            known: Desired::default(),
            locked: BTreeMap::new(),
            away: Vec::new(),
            again: Again::default(),
            steps: 0,
            round: 0,
        }
    }

    fn live(&mut self, counts: &mut Counts) -> Result<(), String> {
        sim::tell(|| format!("{:?}", self.drawn));
        sim::set_beside(Some(Box::new(beside)));
        for round in 0..self.drawn.rounds {
            self.round = round as u64;
            self.faults(true);
            let until = self.asked + self.drawn.asks as u64;
            let begun = self.steps;
            while (self.asked < until || !self.callers.is_empty()) && self.steps - begun < 20_000 {
                self.step(counts)?;
                self.goes_wrong(counts);
                let may = self.asked < until && self.callers.len() < self.drawn.callers;
                if may && sim::once_in(self.drawn.asks_every) {
                    self.ask();
                }
            }
            self.heal();
            self.settle(counts)?;
        }
        Ok(())
    }

    /// What goes wrong by itself begins, or ends.
    fn faults(&mut self, on: bool) {
        let Drawn { disk_errors, cuts, refuses, fails, late, .. } = self.drawn;
        let of = |every: u64| if on { every } else { 0 };
        disk::fails(of(disk_errors));
        planes::with(|plane| {
            (plane.cuts, plane.refuses) = (of(cuts), of(refuses));
            (plane.fails, plane.late) = (of(fails), of(late));
        });
    }

    /// Somebody has a turn. Who is dead goes, and the server comes again.
    fn step(&mut self, counts: &mut Counts) -> Result<(), String> {
        self.steps += 1;
        sim::others();
        if let Some(finding) = kept::finding() {
            return Err(finding);
        }
        if planes::is_doomed() {
            self.part();
            planes::die();
            self.hold();
        }
        self.come_again()?;
        if !LIFE.get().1 {
            if LIFE.get().0 > 0 {
                counts.deaths += 1;
                self.bury();
                if sim::once_in(self.drawn.power_every) {
                    counts.power += 1;
                    sim::met("the power fails");
                    sim::tell(|| "the host loses its power".to_owned());
                    disk::lose_power();
                    planes::die();
                    self.forget_memory();
                    self.again = Again::default();
                    dataplane::sim::hold(0);
                }
            }
            self.begin();
        }
        self.callers.retain(|number, caller| {
            let over = caller.is_finished();
            if over {
                counts.answered += 1;
                asks::with(|asked| {
                    let ask = asked.iter_mut().find(|it| it.number == *number);
                    ask.into_iter().for_each(|it| it.waits = false);
                });
            }
            !over
        });
        Ok(())
    }

    /// The server starts.
    fn begin(&mut self) {
        let life = LIFE.get().0 + 1;
        LIFE.set((life, true));
        disk::begin(life);
        self.server = Arc::default();
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .start_paused(true)
            .build()
            .expect("a runtime");
        CLOCK.set(sim::now_ns());
        let (paths, slot) = (self.paths.clone(), Arc::clone(&self.server));
        sim::tell(|| format!("the server starts for the {life}. time"));
        runtime.spawn(async move {
            let store = match RedbStore::on(disk::Medium { life }) {
                Ok(store) => store,
                Err(error) => {
                    sim::tell(|| clean(&format!("server: {error}")));
                    return die(life, "opening its store");
                }
            };
            let store = Box::new(kept::Kept { store, life });
            let launcher = Box::new(move |_: &str| -> Box<dyn control::supervisor::Launcher> {
                Box::new(planes::Hand { life })
            });
            match Server::start(paths, store, launcher, BTreeMap::new()).await {
                Ok(server) => {
                    sim::tell(|| "server: is up".to_owned());
                    *slot.lock().expect("no panic") = Some(server);
                }
                Err(error) => {
                    sim::tell(|| clean(&format!("server: {error}")));
                    die(life, "its start");
                }
            }
        });
        RUNTIME.set(Some(Rc::new(runtime)));
    }

    /// The server is dead, with all that it had.
    fn bury(&mut self) {
        turns::end_all();
        self.callers.clear();
        *self.server.lock().expect("no panic") = None;
        self.server = Arc::default();
        drop(RUNTIME.take());
        asks::with(|asked| asked.iter_mut().for_each(|it| it.waits = false));
    }

    fn server(&self) -> Option<Arc<Server>> {
        self.server.lock().expect("no panic").clone()
    }

    /// A caller asks something.
    fn ask(&mut self) {
        let Some(server) = self.server() else { return };
        // What he read is a while ago, for some.
        if !sim::once_in(3) {
            self.known = server.desired();
        }
        self.asked += 1;
        let asked = match self.drawn.whole && self.asked == 1 {
            true => judge::apply(1, asks::whole(&self.folder)),
            false => asks::draw(self.asked, &self.known, &self.folder),
        };
        self.send(&server, asked);
    }

    fn send(&mut self, server: &Arc<Server>, asked: Asked) {
        sim::tell(|| clean(&asked.tell()));
        let (number, ask, options) = (asked.number, asked.ask.clone(), asked.options);
        asks::with(|all| all.push(asked));
        let server = Arc::clone(server);
        let life = LIFE.get().0;
        let caller = async move {
            let answer = asks::carry_out(&server, ask, options).await;
            let end = judge::end_of(&server, &answer, options.dry_run, life, number).await;
            if lives(life) {
                asks::with(|asked| {
                    let ask = asked.iter_mut().find(|it| it.number == number);
                    ask.into_iter().for_each(|it| {
                        it.end = end;
                        it.unsure = answer.as_ref().is_err_and(kept::is_of_the_store);
                        it.to = (end != End::Unknown).then(sim::now_ns);
                    });
                });
            }
        };
        let runtime = RUNTIME.with_borrow(|runtime| runtime.clone());
        if let Some(runtime) = runtime {
            self.callers.insert(number, runtime.spawn(caller));
        }
    }

    /// Something may go wrong.
    fn goes_wrong(&mut self, counts: &mut Counts) {
        let Drawn { crash_every, plane_dies_every, silent_every, .. } = self.drawn;
        let Drawn { files_every, leaves_every, clients_every, .. } = self.drawn;
        if sim::once_in(crash_every) {
            if sim::once_in(3) {
                die(LIFE.get().0, "the middle of anything");
            } else {
                disk::dies_in(Some(1 + sim::pick(24) as u64));
            }
        }
        if sim::once_in(plane_dies_every) {
            planes::doom();
        }
        if sim::once_in(silent_every) {
            let silent = !planes::is_silent();
            sim::tell(|| {
                format!("the data plane {}", if silent { "is silent" } else { "answers again" })
            });
            planes::be_silent(silent);
        }
        if sim::once_in(files_every) {
            self.change_file();
        }
        if sim::once_in(leaves_every)
            && let Some((number, caller)) = self.callers.pop_first()
        {
            sim::tell(|| format!("caller {number} leaves"));
            caller.abort();
            asks::with(|asked| {
                let ask = asked.iter_mut().find(|it| it.number == number);
                ask.into_iter().for_each(|it| it.waits = false);
            });
        }
        if sim::once_in(clients_every) {
            self.change_client();
            counts.moves += 1;
        }
    }

    /// A client comes or goes.
    fn change_client(&mut self) {
        if planes::is_silent() || planes::is_doomed() {
            return;
        }
        let Some(handler) = planes::handler() else { return };
        let (has, has_none) = planes::adapters();
        let comes = !sim::once_in(3);
        let of = if comes { has_none } else { has };
        if of.is_empty() {
            return;
        }
        let Some(name) = of.iter().nth(sim::pick(of.len())) else { return };
        if handler.client(name, comes) {
            sim::tell(|| {
                format!("adapter {name}: a client {}", if comes { "comes" } else { "leaves" })
            });
            planes::with(|plane| match comes {
                true => drop(plane.clients.insert(name.clone(), sim::now_ns())),
                false => drop(plane.clients.remove(name)),
            });
        }
    }

    /// Nothing goes wrong any more.
    fn heal(&mut self) {
        sim::tell(|| "nothing goes wrong any more".to_owned());
        self.faults(false);
        disk::dies_in(None);
        planes::be_silent(false);
        self.locked.clear();
        dataplane::sim::hold(0);
        for name in std::mem::take(&mut self.away) {
            files::bring_back(&format!("{}/{name}", self.folder), &name);
        }
    }

    /// Everything becomes as it was asked for, within a bounded time; then it is looked at.
    fn settle(&mut self, counts: &mut Counts) -> Result<(), String> {
        let (begun, from) = (self.steps, sim::now_ns());
        loop {
            let mut why = self.unsettled();
            if why.is_none() {
                // What was learned is written down.
                for _ in 0..200 {
                    self.step(counts)?;
                }
                why = self.unsettled();
            }
            let Some(what) = why else { break };
            if self.steps - begun > STALL_STEPS || sim::now_ns() - from > STALL_NS {
                return Err(format!("it does not come to rest: {what}"));
            }
            for _ in 0..16 {
                self.step(counts)?;
            }
            self.correct_files();
            if self.callers.is_empty()
                && let Some(server) = self.server()
                && let Some(asked) = judge::correction(self.asked + 1, &server.desired())
            {
                self.asked += 1;
                self.send(&server, asked);
            }
            // Everybody has his turn before time goes on: who waits for time has nothing else to do.
            if sim::threads() == 0 && sim::once_in(4) {
                sim::pass(1 << (20 + sim::pick(10)));
            }
        }
        sim::tell(|| "everything is as it was asked for".to_owned());
        let server = self.server().ok_or("no server")?;
        judge::look(&server, &self.folder, &self.paths)?;
        self.idle_apply(&server, counts)
    }

    /// Why it is not at rest.
    fn unsettled(&self) -> Option<String> {
        let Some(server) = self.server().filter(|_| LIFE.get().1) else {
            return Some("the server does not start".to_owned());
        };
        if let Some((number, _)) = self.callers.first_key_value() {
            return Some(format!("caller {number} has no answer"));
        }
        let operations = server.operations();
        if let Some(running) = operations.iter().find(|it| !it.operation.step.has_ended()) {
            let step = running.operation.step.as_str();
            return Some(format!("operation {} is {step}", running.operation.id));
        }
        let Some(status) = planes::status() else {
            return Some("there is no data plane".to_owned());
        };
        let desired = server.desired();
        let wanted = resolve::wanted(&desired, "main", &self.paths);
        let actions = reconcile(&wanted, &status);
        self.next_forms(&actions);
        if let Some(action) = actions.first() {
            let views = server.supervisor_views();
            let failures: Vec<String> = views
                .values()
                .flat_map(|view| view.failures.values().chain(view.opening.values()))
                .map(ToString::to_string)
                .collect();
            let trouble: Vec<_> = views.values().filter_map(|view| view.trouble.clone()).collect();
            return Some(format!(
                "the data plane is to {:?}; {}; {}",
                action.subject(),
                failures.join("; "),
                trouble.join("; ")
            ));
        }
        let kept = kept::certain();
        let differs = Object::ALL.into_iter().find(|object| kept[*object] != desired[*object]);
        differs.map(|object| format!("of {object} something else is kept than is said"))
    }

    /// What the next client is to find is found by a client that comes.
    fn next_forms(&self, actions: &[Action]) {
        let Some(handler) = planes::handler() else { return };
        for action in actions {
            let Action::PutAdapter(spec) = action else { continue };
            let name = &spec.name;
            if handler.client(name, false) {
                planes::with(|plane| plane.clients.remove(name));
            }
            if handler.client(name, true) {
                let _ = handler.client(name, false);
            }
        }
    }

    /// What is there already is asked for again: nothing happens.
    fn idle_apply(&mut self, server: &Arc<Server>, counts: &mut Counts) -> Result<(), String> {
        let (before, commits) = (server.desired(), kept::commits() + u64::from(kept::lags()));
        let messages = planes::with(|plane| plane.messages);
        self.asked += 1;
        let asked = judge::idle(self.asked, &before);
        self.send(server, asked);
        let begun = self.steps;
        while !self.callers.is_empty() {
            if self.steps - begun > STALL_STEPS {
                return Err("an apply that changes nothing has no answer".to_owned());
            }
            self.step(counts)?;
        }
        let end = asks::with(|asked| asked.last().map(|it| it.end));
        if end != Some(End::Done) {
            return Err("an apply of what is there is refused".to_owned());
        }
        let same = Object::ALL.into_iter().all(|object| before[object] == server.desired()[object]);
        if !same || commits < kept::commits() {
            return Err("an apply of what is there has changed something".to_owned());
        }
        if messages != planes::with(|plane| plane.messages) {
            return Err("an apply of what is there has told the data plane something".to_owned());
        }
        Ok(())
    }
}
