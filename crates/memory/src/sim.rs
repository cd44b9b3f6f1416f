//! The world of a simulation, for one thread: its time, its choices, and who else may go on. Only built with `--cfg sim`.
//!
//! What a simulated process would leave to the system it leaves to this module then: [`crate::clock`] reads [`now_ns`], the simulated
//! kernel (`uring`) asks [`pick`] what happens next, whoever would wait for another thread calls [`others`] until that one has done it, and
//! between two stores that a crash may separate stands [`point`]. Everything is decided by the numbers of one seed, so a seed says what happens.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::random::{Random, mix};

pub mod folder;

/// What a process that dies unwinds with.
#[derive(Debug)]
pub struct Died;

/// A thread of the simulated process: called for each of its turns.
pub type Turn = Box<dyn FnMut()>;

struct Actor {
    id: u64,
    name: String,
    /// Not there while it has its turn.
    turn: Option<Turn>,
    /// Until it is woken, or until then.
    asleep: Option<Option<u64>>,
}

impl Actor {
    fn is_able(&self, now_ns: u64) -> bool {
        let awake = match self.asleep {
            None => true,
            Some(until) => until.is_some_and(|at| at <= now_ns),
        };
        self.turn.is_some() && awake
    }
}

struct World {
    random: Random,
    now_ns: u64,
    base: Instant,
    actors: Vec<Actor>,
    next_actor: u64,
    /// Whose turn it is.
    current: Option<u64>,
    /// When those that sleep in the middle of something wake, the innermost last.
    sleepers: Vec<u64>,
    /// Who may go on besides threads: the kernel, clients. Called with nothing borrowed.
    beside: Option<Turn>,
    /// Times that somebody in the middle of something has let others go on, since [`step`].
    waits: u64,
    points: u64,
    dies_at: Option<u64>,
    /// Points at which somebody else has a turn: one of so many, or none.
    nested_every: u64,
    nested: bool,
    dead: bool,
    /// How often the host has started again.
    boots: u64,
    buried: Vec<Box<dyn FnOnce()>>,
    faults: Vec<&'static str>,
    story: VecDeque<String>,
    told: u64,
    story_lines: usize,
    hash: u64,
    bells: u64,
    notices: u64,
    traces: bool,
    phases: [u32; PHASES],
    /// Since when something of each kind has been under way, where it is.
    since: [u64; PHASES],
    met: Met,
}

/// Kinds of things that may be under way, for [`enter`].
pub const PHASES: usize = 12;

/// How often each event came while each kind of thing was under way.
pub type Met = BTreeMap<&'static str, [u64; PHASES]>;

/// Says of an open file what [`crate::cache::has_lost`] asks.
pub type Lost = fn(BorrowedFd<'_>) -> bool;

thread_local! {
    static WORLD: RefCell<Option<World>> = const { RefCell::new(None) };
    static LOST: Cell<Option<Lost>> = const { Cell::new(None) };
}

/// Far more than the longest wait takes.
const WAITS_MAX: u64 = 5_000_000;

/// How far time goes on with each look at it, so that no two moments are the same.
const LOOK_NS: u64 = 20;

fn with<T>(act: impl FnOnce(&mut World) -> T) -> T {
    WORLD.with_borrow_mut(|world| {
        act(world.as_mut().expect("a simulation has begun on this thread"))
    })
}

/// Begins a simulation on this thread. `story_lines`: how many of the last lines of its story are kept.
pub fn begin(seed: u64, story_lines: usize) {
    let world = World {
        random: Random::new(seed),
        now_ns: 1_000_000_000,
        base: Instant::now(),
        actors: Vec::new(),
        next_actor: 0,
        current: None,
        sleepers: Vec::new(),
        beside: None,
        waits: 0,
        points: 0,
        dies_at: None,
        nested_every: 0,
        nested: false,
        dead: false,
        boots: 0,
        buried: Vec::new(),
        faults: Vec::new(),
        story: VecDeque::new(),
        told: 0,
        story_lines,
        hash: seed,
        bells: 0,
        notices: 0,
        traces: false,
        phases: [0; PHASES],
        since: [0; PHASES],
        met: Met::new(),
    };
    WORLD.with_borrow_mut(|old| assert!(old.replace(world).is_none(), "one simulation at a time"));
}

/// What a simulation was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Story {
    /// Its last lines.
    pub lines: Vec<String>,
    /// How many there were.
    pub told: u64,
    /// A number made of all choices and all lines: the same for the same story.
    pub hash: u64,
    /// How long it was, in virtual nanoseconds.
    pub ns: u64,
    /// What met what: see [`met`].
    pub met: Met,
}

impl Story {
    /// Where another one is not the same: the last lines that both have, and the first that differ.
    #[must_use]
    pub fn differs(&self, other: &Story) -> Option<String> {
        if self == other {
            return None;
        }
        let same = self.lines.iter().zip(&other.lines).take_while(|(one, two)| one == two).count();
        let first =
            |story: &Story| story.lines.get(same).cloned().unwrap_or_else(|| "(no more)".into());
        let before = self.lines[same.saturating_sub(12)..same].join("\n");
        Some(format!("{before}\n{}\nand\n{}", first(self), first(other)))
    }
}

/// Ends it. Nothing of the simulated process is left.
pub fn end() -> Story {
    let world = WORLD.with_borrow_mut(Option::take).expect("a simulation has begun");
    let World { buried, story, told, hash, now_ns, met, .. } = world;
    buried.into_iter().for_each(|end| end());
    Story { lines: story.into(), told, hash, ns: now_ns - 1_000_000_000, met }
}

/// From now on another number says what happens.
pub fn reseed(seed: u64) {
    with(|world| world.random = Random::new(seed));
}

/// Each line of the story is printed when it is told.
pub fn trace() {
    with(|world| world.traces = true);
}

/// Something of a kind below [`PHASES`] is under way from now on.
pub fn enter(phase: usize) {
    with(|world| {
        if world.phases[phase] == 0 {
            world.since[phase] = world.now_ns;
        }
        world.phases[phase] += 1;
    });
}

/// For how long something of this kind has been under way without a break; 0 where nothing is.
#[must_use]
pub fn entered_for(phase: usize) -> u64 {
    with(|world| if world.phases[phase] > 0 { world.now_ns - world.since[phase] } else { 0 })
}

/// Something of this kind is under way no more.
pub fn leave(phase: usize) {
    with(|world| world.phases[phase] = world.phases[phase].saturating_sub(1));
}

/// Nothing of this kind is under way any more.
pub fn leave_all(phase: usize) {
    with(|world| world.phases[phase] = 0);
}

/// Something goes wrong, or is changed: it is noted what is under way.
pub fn met(what: &'static str) {
    with(|world| world.note(what));
}

impl World {
    fn note(&mut self, what: &'static str) {
        let noted = self.met.entry(what).or_default();
        for (times, phase) in noted.iter_mut().zip(&self.phases) {
            *times += u64::from(*phase > 0);
        }
    }
}

/// Whether a simulation runs on this thread.
#[must_use]
pub fn runs() -> bool {
    WORLD.with_borrow(Option::is_some)
}

/// The time, which every look moves on a little.
#[must_use]
pub fn now_ns() -> u64 {
    WORLD.with_borrow_mut(|world| {
        // Tests of single crates that are built for a simulation have none.
        let Some(world) = world.as_mut() else { return 1_000_000_000 };
        world.now_ns += LOOK_NS;
        world.now_ns
    })
}

/// The time, which stays as it is.
#[must_use]
pub fn moment() -> u64 {
    with(|world| world.now_ns)
}

/// The time as others measure it.
#[must_use]
pub fn instant() -> Instant {
    let ns = now_ns();
    WORLD.with_borrow(|world| match world {
        Some(world) => world.base + Duration::from_nanos(ns),
        None => Instant::now(),
    })
}

/// Lets time pass.
pub fn pass(ns: u64) {
    with(|world| world.now_ns += ns);
}

/// A number below `count`: what happens next.
#[must_use]
pub fn pick(count: usize) -> usize {
    with(|world| {
        let picked = world.random.below(count as u64);
        world.hash = mix(world.hash ^ picked);
        // Below `count`.
        picked as usize
    })
}

/// Whether something happens that happens once in so many times; never for 0.
#[must_use]
pub fn once_in(times: u64) -> bool {
    times > 0 && pick(usize::try_from(times).expect("small")) == 0
}

/// Adds a line to the story. The line is only made if it is kept.
pub fn tell(line: impl FnOnce() -> String) {
    let (keeps, traces, at) = with(|world| {
        world.told += 1;
        (world.story_lines > 0, world.traces, world.now_ns)
    });
    if keeps || traces {
        let line = format!("{:>12.3} us  {}", (at - 1_000_000_000) as f64 / 1000.0, line());
        if traces {
            return println!("{line}");
        }
        with(|world| {
            if world.story.len() == world.story_lines {
                world.story.pop_front();
            }
            world.story.push_back(line);
        });
    }
}

/// Adds what was seen to the number that the story is known by.
pub fn seen(number: u64) {
    with(|world| world.hash = mix(world.hash ^ number));
}

/// A client's eventfd is about to be written, which nobody else looks at.
pub fn notice() {
    with(|world| world.notices += 1);
}

/// How often that was so.
#[must_use]
pub fn notices() -> u64 {
    with(|world| world.notices)
}

/// An eventfd is about to be written: whoever polls eventfds looks again.
pub fn bell() {
    WORLD.with_borrow_mut(|world| {
        if let Some(world) = world {
            world.bells += 1;
        }
    });
}

/// How often an eventfd was written.
#[must_use]
pub fn bells() -> u64 {
    with(|world| world.bells)
}

/// Switches a fault of the program on, for the run: a control, which has to be found.
pub fn plant(fault: &'static str) {
    with(|world| world.faults.push(fault));
}

/// Whether a fault was planted.
#[must_use]
pub fn planted(fault: &str) -> bool {
    WORLD.with_borrow(|world| world.as_ref().is_some_and(|world| world.faults.contains(&fault)))
}

/// A kernel of this thread's: who is asked of lost writes.
pub fn set_lost(lost: Lost) {
    LOST.set(Some(lost));
}

pub(crate) fn has_lost(file: BorrowedFd<'_>) -> Option<bool> {
    LOST.get().map(|lost| lost(file))
}

/// Starts a thread of the simulated process: it has a turn whenever it is picked.
pub fn spawn(name: &str, turn: Turn) -> u64 {
    with(|world| {
        let id = world.next_actor;
        world.next_actor += 1;
        world.actors.push(Actor { id, name: name.to_owned(), turn: Some(turn), asleep: None });
        id
    })
}

/// Ends a thread; what it had is dropped now. Of one that ends itself, what it has stays with its turn.
pub fn end_thread(id: u64) {
    let ended = with(|world| {
        let at = world.actors.iter().position(|actor| actor.id == id)?;
        Some(world.actors.swap_remove(at))
    });
    drop(ended);
}

/// The thread whose turn it is has no other one.
pub fn end_own_thread() {
    with(|world| {
        let current = world.current;
        world.actors.retain(|actor| Some(actor.id) != current);
    });
}

/// The thread whose turn it is sleeps from the end of its turn on, until it is woken or until a moment. Without a thread: nothing.
pub fn fall_asleep(until: Option<u64>) -> Option<u64> {
    with(|world| {
        let current = world.current?;
        let actor = world.actors.iter_mut().find(|actor| actor.id == current)?;
        actor.asleep = Some(until);
        Some(current)
    })
}

/// Wakes a thread, if it is still there and asleep.
pub fn wake(id: u64) {
    with(|world| {
        if let Some(actor) = world.actors.iter_mut().find(|actor| actor.id == id) {
            actor.asleep = None;
        }
    });
}

/// Sleeps in the middle of something, while the others go on.
pub fn sleep(time: Duration) {
    let end = with(|world| {
        let end = world.now_ns + u64::try_from(time.as_nanos()).expect("not for centuries");
        world.sleepers.push(end);
        end
    });
    while with(|world| world.now_ns) < end {
        others_or_time();
    }
    with(|world| world.sleepers.pop());
}

/// Somebody else goes on. Where that are threads alone and all of them sleep, time goes to the next moment.
fn others_or_time() {
    let asleep = with(|world| {
        let able = world.actors.iter().any(|actor| actor.is_able(world.now_ns));
        world.beside.is_none() && !able
    });
    match next_waking().filter(|_| asleep) {
        Some(at) => with(|world| world.now_ns = world.now_ns.max(at)),
        None => others(),
    }
}

/// Waits in the middle of something until something is so, for at most so long, while the others go on.
pub fn wait(time: Duration, mut so: impl FnMut() -> bool) {
    let end = with(|world| {
        let end = world.now_ns + u64::try_from(time.as_nanos()).expect("not for centuries");
        world.sleepers.push(end);
        end
    });
    while !so() && with(|world| world.now_ns) < end {
        others_or_time();
    }
    with(|world| world.sleepers.pop());
}

/// Whether somebody sleeps in the middle of something.
#[must_use]
pub fn sleeps() -> bool {
    with(|world| !world.sleepers.is_empty())
}

/// When the next one wakes by itself. Whose time is over already, and waits for those above it on the stack, does not count.
#[must_use]
pub fn next_waking() -> Option<u64> {
    with(|world| {
        let threads = world.actors.iter().filter_map(|actor| actor.asleep.flatten());
        let all = threads.chain(world.sleepers.iter().copied());
        all.filter(|at| *at > world.now_ns).min()
    })
}

/// How many threads can have a turn now: those that are neither asleep nor in a turn.
#[must_use]
pub fn threads() -> usize {
    with(|world| world.actors.iter().filter(|actor| actor.is_able(world.now_ns)).count())
}

/// Gives one of the threads a turn.
pub fn thread(index: usize) {
    let Some((id, mut turn, before)) = with(|world| {
        let now_ns = world.now_ns;
        let mut able = world.actors.iter_mut().filter(|actor| actor.is_able(now_ns));
        let actor = able.nth(index)?;
        actor.asleep = None;
        let (id, turn) = (actor.id, actor.turn.take().expect("just looked"));
        Some((id, turn, world.current.replace(id)))
    }) else {
        return;
    };
    turn();
    with(|world| {
        world.current = before;
        if let Some(actor) = world.actors.iter_mut().find(|actor| actor.id == id) {
            actor.turn = Some(turn);
        }
    });
}

/// Nobody is in the middle of anything, and all threads sleep: what goes on now goes on because time has passed.
#[must_use]
pub fn all_sleep() -> bool {
    with(|world| {
        let sleeps = |actor: &Actor| actor.turn.is_some() && !actor.is_able(world.now_ns);
        world.sleepers.is_empty() && world.actors.iter().all(sleeps)
    })
}

/// The names of all threads.
#[must_use]
pub fn names() -> Vec<String> {
    with(|world| world.actors.iter().map(|actor| actor.name.clone()).collect())
}

/// Who may go on besides threads.
pub fn set_beside(turn: Option<Turn>) {
    let old = with(|world| std::mem::replace(&mut world.beside, turn));
    // What it has may look at the world while it goes.
    drop(old);
}

/// Nobody is in the middle of anything: what follows is to end within a bounded number of turns.
pub fn step() {
    with(|world| world.waits = 0);
}

/// Somebody else goes on: what a thread that waits for another one calls until it has what it waits for.
pub fn others() {
    let waits = with(|world| {
        world.waits += 1;
        world.waits
    });
    assert!(waits < WAITS_MAX, "somebody waits for ever for others");
    let Some(mut beside) = with(|world| world.beside.take()) else {
        // The others are at it already, and one of them waits for a third: give threads their turns alone.
        let count = threads();
        if count == 0 {
            return pass(1_000);
        }
        return thread(pick(count));
    };
    beside();
    with(|world| {
        if world.beside.is_none() {
            world.beside = Some(beside);
        }
    });
}

/// The process dies at its so-many-th next [`point`].
pub fn die_at(points: Option<u64>) {
    with(|world| world.dies_at = points.map(|points| world.points + points));
}

/// One of so many points lets somebody else go on; 0: none.
pub fn nest(every: u64) {
    with(|world| world.nested_every = every);
}

/// Stands between two accesses to shared memory: here the process may die, or the others go on.
#[inline]
pub fn point() {
    if !runs() {
        return;
    }
    let nests = with(|world| {
        if world.dead {
            return false;
        }
        world.points += 1;
        if world.dies_at.is_some_and(|at| world.points >= at) {
            world.dies_at = None;
            world.dead = true;
            world.note("the process dies");
            std::panic::resume_unwind(Box::new(Died));
        }
        if world.nested_every == 0
            || world.nested
            || !world.points.is_multiple_of(world.nested_every)
        {
            return false;
        }
        world.nested = true;
        true
    });
    if nests {
        others();
        with(|world| world.nested = false);
    }
}

/// How often the host has started again.
#[must_use]
pub fn boots() -> u64 {
    with(|world| world.boots)
}

/// The host starts again.
pub fn boot_again() {
    with(|world| world.boots += 1);
}

/// The process is dead: what is dropped of it does nothing any more, and its memory stays for the kernel.
pub fn set_dead(dead: bool) {
    with(|world| {
        world.dead = dead;
        world.nested = false;
        world.current = None;
        world.sleepers.clear();
    });
}

/// Whether what is dropped now belongs to a dead process.
#[must_use]
pub fn dead() -> bool {
    WORLD.with_borrow(|world| world.as_ref().is_some_and(|world| world.dead))
}

/// Memory of a dead process is kept until the end of the simulation, since operations of its may be under way; whether it is one.
pub(crate) fn bury(end: impl FnOnce() + 'static) -> bool {
    dead() && {
        with(|world| world.buried.push(Box::new(end)));
        true
    }
}

/// Nothing of a dead process is under way any more: the memory that was kept for that goes.
pub fn exhume() {
    let buried = with(|world| std::mem::take(&mut world.buried));
    buried.into_iter().for_each(|end| end());
}

impl fmt::Display for Story {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let left_out = self.told - self.lines.len() as u64;
        if left_out > 0 {
            writeln!(f, "({left_out} lines before)")?;
        }
        self.lines.iter().try_for_each(|line| writeln!(f, "{line}"))
    }
}
