//! Crashes: tiny pools on which short sequences of requests run, and at each step everything that a crash can leave on the PVs is opened and read.
//!
//! A power cut leaves of what is in caches and under way any part, torn at 512 bytes; the death of the process leaves caches, and what was under way in part. What is found is held against
//! an oracle that knows what was answered and what was flushed.

mod activity;
mod alone;
mod asked;
mod checks;
mod coalesce;
mod differ;
mod disk;
mod dismissals;
mod every;
mod fenced;
mod full;
mod growing;
mod grows;
mod kept;
mod layers;
mod loads;
mod members;
mod mirror;
mod missed;
mod older;
mod opened;
mod oracle;
mod rescue;
mod sums;
mod taking;
mod tiers;
mod untold;
mod world;
mod zeroed;

use disk::{Image, Pages, Part, Write};
use oracle::Oracle;
use world::{Random, Schedule, World, judge};

use crate::format::{CHUNK_BYTES, MemberState, Uuid};
use crate::make::{NewPv, make};
use crate::pool::{Extent, Fault, Request, Rule, Shadow};

const KIB: u64 = 1 << 10;
/// Two LUs that are there from the beginning, and one that fills the pool.
const A: u32 = 1;
const B: u32 = 2;

/// A step of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    Ask(Request),
    /// The request that has waited longest for space is called back.
    Cancel,
    /// From now on the home records of a PV cannot be read, until the pool is opened again.
    Unreadable(u16),
    /// From now on nothing can be done on a PV, until it returns.
    Lose(u16),
    Return,
    /// It is looked which chunks are quiet, and nobody has changed any for a while.
    Look,
    Kill,
}

const fn part(lu: u32, at: u64, bytes: u64) -> Extent {
    Extent { lu, at, bytes }
}

const fn write(lu: u32, at: u64, bytes: u64) -> Step {
    Step::Ask(Request::Write { extent: part(lu, at, bytes), durable: false })
}

/// What sequences are made of.
fn alphabet() -> Vec<Step> {
    let ask = Step::Ask;
    vec![
        write(A, 0, 4 * KIB),
        write(A, 2 * KIB, 4 * KIB),
        write(A, 62 * KIB, 4 * KIB),
        write(A, CHUNK_BYTES - 4 * KIB, 8 * KIB),
        write(B, 0, 4 * KIB),
        write(B, CHUNK_BYTES, 4 * KIB),
        ask(Request::Write { extent: part(A, 4 * KIB, 4 * KIB), durable: true }),
        ask(Request::Flush { lu: A }),
        ask(Request::Flush { lu: B }),
        ask(Request::Discard(part(A, 0, CHUNK_BYTES))),
        ask(Request::Zeroes(part(A, 2 * KIB, 64 * KIB))),
        ask(Request::Create { chunks: 1, thick: false, tier: 0, asked: 0 }),
        ask(Request::Delete { lu: A }),
        resize(A, 1),
        resize(A, 3),
        resize(B, 1),
        ask(Request::Checkpoint),
        move_to(1),
        move_to(2),
        add_pv(),
        remove_pv(0),
        remove_pv(2),
        keep_pv(2),
        Step::Cancel,
        Step::Unreadable(0),
        Step::Unreadable(2),
        Step::Kill,
    ]
}

/// A fourth PV.
fn add_pv() -> Step {
    Step::Ask(Request::AddPv(NewPv { pv: Uuid([4; 16]), chunks: 7, tier: 0, group: 0 }))
}

fn remove_pv(pv: u16) -> Step {
    Step::Ask(Request::RemovePv { pv })
}

fn keep_pv(pv: u16) -> Step {
    Step::Ask(Request::KeepPv { pv })
}

fn resize(lu: u32, chunks: u32) -> Step {
    Step::Ask(Request::Resize { lu, chunks })
}

/// The first chunk of the first LU goes to another PV.
fn move_to(pv: u16) -> Step {
    Step::Ask(Request::Move { lu: A, vchunk: 0, leg: 0, pv })
}

/// Sequences that are tried first, each on the setup of that name.
type Known = Vec<(&'static str, Vec<Step>)>;

/// Sequences in which a rule matters and that chance finds late, with the setup that they begin from.
fn known() -> Known {
    let ask = Step::Ask;
    let flush = ask(Request::Flush { lu: A });
    let zeroes = ask(Request::Zeroes(part(A, 0, 64 * KIB)));
    let durable = ask(Request::Write { extent: part(A, 0, 4 * KIB), durable: true });
    let create = ask(Request::Create { chunks: 1, thick: false, tier: 0, asked: 0 });
    let delete = ask(Request::Delete { lu: A });
    let discard = ask(Request::Discard(part(A, 0, CHUNK_BYTES)));
    let into_space = write(B, CHUNK_BYTES, 4 * KIB);
    let flush_b = ask(Request::Flush { lu: B });
    // What a home record says of its chunk changes while it cannot be read.
    let unread = |pv| {
        let begin = [Step::Unreadable(pv), delete, ask(Request::Checkpoint), into_space, flush_b];
        let more = [ask(Request::Checkpoint), write(B, CHUNK_BYTES + 70 * KIB, 4 * KIB), flush_b];
        ("full", [&begin[..], &more].concat())
    };
    let all = vec![
        ("empty", vec![write(A, 0, 4 * KIB), flush]),
        ("written", vec![write(A, 70 * KIB, 4 * KIB), flush, ask(Request::Checkpoint)]),
        // What a process left in caches is what the next one goes on from.
        ("empty", vec![create, Step::Kill, create]),
        ("empty", vec![write(A, 0, 4 * KIB), Step::Kill, write(A, 0, 4 * KIB), flush]),
        // A chunk moves while it is written to, flushed, discarded.
        (
            "written",
            vec![move_to(1), write(A, 2 * KIB, 4 * KIB), write(A, 70 * KIB, 4 * KIB), flush],
        ),
        ("written", vec![write(A, 0, 4 * KIB), write(A, 4 * KIB, 4 * KIB), move_to(2), flush]),
        ("written", vec![move_to(1), discard, flush, write(A, 0, 4 * KIB)]),
        ("written", vec![move_to(1), write(A, 70 * KIB, 4 * KIB), flush]),
        // A flush takes back what was cleared, and a durable write comes before it has.
        ("written", vec![write(A, 70 * KIB, 4 * KIB), zeroes, flush, durable]),
        // What is deleted or discarded is what somebody else waits for.
        ("full", vec![delete, into_space]),
        // … while a channel, which found it there, writes to it.
        ("full", vec![write(A, 2 * KIB, 4 * KIB), write(A, 0, 4 * KIB), discard, into_space]),
        // An LU is cut off and grows again: nothing comes back.
        (
            "full",
            vec![resize(A, 1), into_space, resize(A, 2), write(A, CHUNK_BYTES + 70 * KIB, 4 * KIB)],
        ),
        ("full", vec![write(A, CHUNK_BYTES, 4 * KIB), resize(A, 1), flush, resize(A, 2), flush]),
        (
            "written",
            vec![
                write(A, CHUNK_BYTES, 4 * KIB),
                flush,
                resize(A, 1),
                resize(A, 2),
                ask(Request::Checkpoint),
            ],
        ),
        (
            "written",
            vec![resize(A, 3), write(A, 2 * CHUNK_BYTES, 4 * KIB), flush, resize(A, 2), Step::Kill],
        ),
        // PVs come and go, while others work.
        ("full", vec![into_space, add_pv(), flush, Step::Kill]),
        ("full", vec![add_pv(), remove_pv(0), write(A, 0, 4 * KIB), flush]),
        ("empty", vec![add_pv(), remove_pv(2), write(A, 62 * KIB, 4 * KIB)]),
        ("written", vec![remove_pv(0), write(A, 70 * KIB, 4 * KIB), flush, Step::Kill]),
        ("checkpointed", vec![remove_pv(1), remove_pv(2), discard, flush]),
        ("written", vec![remove_pv(0), keep_pv(0), write(A, 70 * KIB, 4 * KIB), flush]),
        // Who waits goes on, is called back, or dies with the process; others do what they like.
        ("full", vec![into_space, write(A, 2 * KIB, 4 * KIB), flush, delete]),
        ("full", vec![into_space, into_space, Step::Cancel, discard, flush]),
        ("full", vec![into_space, discard, Step::Kill, into_space]),
        ("empty", vec![write(A, 0, 4 * KIB), flush, ask(Request::Checkpoint), discard, flush]),
        // Two flushes at once, with a discard and a write between them.
        (
            "written",
            vec![write(A, 70 * KIB, 4 * KIB), flush, discard, flush, write(A, 70 * KIB, 4 * KIB)],
        ),
    ];
    (0..3).map(unread).chain(all).collect()
}

/// A pool from which sequences begin.
struct Setup {
    name: &'static str,
    pages: Pages,
    oracle: Oracle,
}

/// A new pool, opened and at rest.
fn fresh(pvs: &[NewPv]) -> World {
    let (_, parts) = make(Uuid([9; 16]), pvs).unwrap();
    let nothing = Pages::new();
    let mut image = Image::new(&nothing);
    for (pv, at, bytes) in parts.into_iter().flatten() {
        image.apply(&Write { pv, at, bytes: std::rc::Rc::new(bytes) }, Part::All);
    }
    let mut world = World::open(image.pages(), Oracle::default(), None).unwrap();
    world.tags_from(1);
    world.rest();
    world
}

fn setups() -> Vec<Setup> {
    let pv = |number: u8| NewPv { pv: Uuid([number; 16]), chunks: 7, tier: 0, group: 0 };
    let mut world = fresh(&[1, 2, 3].map(pv));
    let mut setups = Vec::new();
    let mut run = |name, steps: &[Step]| {
        for step in steps {
            match step {
                Step::Ask(request) => _ = world.submit(*request),
                Step::Cancel => world.cancel_first(),
                Step::Unreadable(pv) => world.own_unreadable = Some(*pv),
                Step::Lose(pv) => world.lose(*pv),
                Step::Return => _ = world.bring_back(),
                Step::Look => world.look(true),
                Step::Kill => world.kill().unwrap(),
            }
            world.rest();
        }
        // The power is off and on: nothing is in a cache.
        for pv in 0..3 {
            let mark = world.disks.mark();
            world.disks.flush(pv, mark);
        }
        setups.push(Setup { name, pages: world.disks.now().clone(), oracle: world.oracle.clone() });
    };
    let create = |chunks| Step::Ask(Request::Create { chunks, thick: false, tier: 0, asked: 0 });
    let flush = |lu| Step::Ask(Request::Flush { lu });
    run("empty", &[create(2), create(2)]);
    run("written", &[write(A, 0, 12 * KIB), flush(A)]);
    let both = [write(B, 0, 4 * KIB), flush(B), Step::Ask(Request::Checkpoint), Step::Kill];
    run("checkpointed", &both);
    // All but one of the six chunks have an owner.
    let fill =
        [create(3), write(3, 0, 512), write(3, CHUNK_BYTES, 512), write(3, 2 * CHUNK_BYTES, 512)];
    run("almost full", &fill);
    run("full", &[write(A, CHUNK_BYTES, 4 * KIB), flush(A)]);
    setups
}

/// A way to run a sequence.
#[derive(Clone, Copy, Debug)]
struct Run {
    schedule: Schedule,
    /// Bit n: the step after step n is begun while that is under way.
    overlap: u32,
    seed: u64,
}

/// How many images, and of how many kinds.
#[derive(Clone, Copy, Debug, Default)]
struct Count {
    images: u64,
    second: u64,
    /// Without a PV.
    without: u64,
    sequences: u64,
}

/// An exploration: what it looks at, what is broken on purpose.
struct Explorer {
    broken: Option<Rule>,
    count: Count,
    random: Random,
    /// Writes of which every subset is tried.
    subsets_max: usize,
    /// One of how many images is opened again with crashes on the way.
    second_every: u64,
    /// Of how many points of a sequence one is looked at.
    points_every: usize,
    /// See [`Policy`](crate::Policy).
    untold: usize,
    /// No images any more: as many as chance is to make, beside those of known sequences.
    images_max: u64,
}

impl Explorer {
    fn new(broken: Option<Rule>, images_max: u64) -> Explorer {
        let (random, count) = (Random(7), Count::default());
        Explorer {
            broken,
            count,
            random,
            subsets_max: 3,
            second_every: 1000,
            points_every: 1,
            untold: world::POLICY.untold,
            images_max,
        }
    }

    fn is_over(&self) -> bool {
        self.count.images >= self.images_max
    }

    /// One sequence from one setup; the first thing that is wrong.
    fn sequence(&mut self, setup: &Setup, steps: &[Step], run: Run) -> Result<(), String> {
        self.count.sequences += 1;
        let opened = World::open(setup.pages.clone(), setup.oracle.clone(), self.broken);
        let mut world = opened.map_err(|error| error.to_string())?;
        (world.schedule, world.random) = (Schedule::First, Random(run.seed));
        world.pool.policy.untold = self.untold;
        world.rest();
        world.schedule = run.schedule;
        for (index, step) in steps.iter().enumerate() {
            let asked = match step {
                Step::Ask(request) => Some(world.submit(*request)),
                Step::Return => world.bring_back(),
                _ => None,
            };
            match step {
                Step::Ask(_) | Step::Return => {
                    let mut left = 200_000_usize;
                    let tag = asked.unwrap_or(u64::MAX);
                    let overlaps = run.overlap >> index & 1 == 1;
                    let soon = world.random.below(2) * world.random.below(16);
                    let most = if overlaps { soon } else { usize::MAX };
                    for _ in 0..most {
                        left -= 1;
                        if left == 0 {
                            return Err("it is not answered and does not come to rest".to_string());
                        }
                        self.crashes(&mut world)?;
                        if !world.oracle.is_open(tag) || !world.step() {
                            break;
                        }
                    }
                }
                Step::Cancel => world.cancel_first(),
                Step::Unreadable(pv) => world.own_unreadable = Some(*pv),
                Step::Lose(pv) => world.lose(*pv),
                Step::Look => world.look(true),
                Step::Kill => world.kill().map_err(|error| error.to_string())?,
            }
            self.crashes(&mut world)?;
        }
        let mut left = 200_000;
        while !self.is_over() && world.step() {
            self.crashes(&mut world)?;
            left -= 1;
            if left == 0 {
                return Err("it does not come to rest".to_string());
            }
        }
        // At the end most is promised: that point is never left out.
        let every = std::mem::replace(&mut self.points_every, 1);
        world.changed = true;
        let last = self.crashes(&mut world);
        self.points_every = every;
        last?;
        if !world.had_lost.is_empty() && !self.is_over() && world.pool.is_serving() {
            world.judge_now()
        } else {
            Ok(())
        }
    }

    /// Everything that a crash now can leave.
    fn crashes(&mut self, world: &mut World) -> Result<(), String> {
        let looks = std::mem::take(&mut world.changed) && !self.is_over();
        if !looks || self.random.below(self.points_every) > 0 {
            return Ok(());
        }
        let flying = world.flying();
        let cached: Vec<(Write, bool)> =
            world.disks.cached().map(|(write, durable)| (write.clone(), durable)).collect();
        let free = cached.iter().filter(|(_, durable)| !durable).count();
        let writes: Vec<(Write, bool)> =
            cached.into_iter().chain(flying.iter().map(|write| (write.clone(), false))).collect();
        for parts in self.choices(free + flying.len()) {
            let mut image = Image::new(world.disks.stable());
            apply(&mut image, &writes, &parts);
            self.look_without(&image, None, world)?;
            self.look(image, None, &world.oracle).map_err(|wrong| {
                format!("{wrong}\n  of {} writes {parts:?} were done", writes.len())
            })?;
        }
        let shadow = world.shadow();
        let flying: Vec<(Write, bool)> = flying.into_iter().map(|write| (write, false)).collect();
        for parts in self.choices(flying.len()).into_iter().step_by(3) {
            let mut image = Image::new(world.disks.now());
            apply(&mut image, &flying, &parts);
            self.look_without(&image, Some(&shadow), world)?;
            self.look(image, Some(&shadow), &world.oracle).map_err(|wrong| {
                format!("{wrong}\n  of {} writes under way {parts:?} were done", flying.len())
            })?;
        }
        Ok(())
    }

    /// The same without a PV: the one that is lost, or now and then another.
    fn look_without(
        &mut self,
        image: &Image<'_>,
        shadow: Option<&Shadow>,
        world: &World,
    ) -> Result<(), String> {
        let superblock = world.pool.superblock();
        if superblock.features[0] & crate::choose::MIRROR == 0 {
            return Ok(());
        }
        let members = superblock.members.len();
        // One that has left is nobody's loss.
        let left = |pv: &u16| superblock.members[usize::from(*pv)].state == MemberState::Gone;
        let lost = world.lost.filter(|pv| usize::from(*pv) >= members || !left(pv));
        let gone = match lost {
            Some(lost) => lost,
            None if self.random.below(4) == 0 => self.random.below(members) as u16,
            None => return Ok(()),
        };
        self.count.images += 1;
        self.count.without += 1;
        let stale = !superblock.members[usize::from(gone)].state.is_there();
        let others = world.had_lost.iter().any(|pv| *pv != gone);
        let rests = lost.is_some() || world.had_lost.is_empty();
        let group = |pv: usize| (superblock.members[pv].tier, superblock.members[pv].group);
        // One that leaves and has nothing any more may be gone in the image already.
        let going = |pv: usize| {
            let mut leaving = world.pool.removals();
            leaving.any(|it| usize::from(it.pv) == pv && it.moved == it.planned)
        };
        let stays = |pv: &usize| superblock.members[*pv].state.is_there() && !going(*pv);
        let all: Vec<usize> = (0..members).filter(stays).collect();
        let group_is_there =
            all.iter().any(|pv| *pv != usize::from(gone) && group(*pv) == group(gone.into()));
        // A group that is not there at all may have gone on alone, unless this host knows that it was lost.
        let known = shadow.is_some() && world.pool.unsaid_losses().contains(&gone);
        let must = lost.is_some() && stale
            || all.len() > 2
                && !others
                && rests
                && world.pool.is_serving()
                && (group_is_there || known);
        let judged = judge(image.clone().without(Some(gone)), shadow, &world.oracle, self.broken);
        match judged {
            // There is no majority, or others lack what is on it.
            Err(wrong)
                if !must
                    && ["are not there", "no two agree"].iter().any(|it| wrong.contains(it)) =>
            {
                Ok(())
            }
            other => other.map_err(|wrong| format!("{wrong}\n  without PV {gone}")),
        }
    }

    fn look(
        &mut self,
        image: Image<'_>,
        shadow: Option<&Shadow>,
        oracle: &Oracle,
    ) -> Result<(), String> {
        self.count.images += 1;
        let again = self.count.images.is_multiple_of(self.second_every) && shadow.is_none();
        let pages = again.then(|| image.clone().pages());
        judge(image, shadow, oracle, self.broken)?;
        pages.map_or(Ok(()), |pages| self.second(pages, oracle))
    }

    /// The power fails again while what a crash left is opened.
    fn second(&mut self, pages: Pages, oracle: &Oracle) -> Result<(), String> {
        let opened = World::open(pages, oracle.clone(), self.broken);
        let mut world = opened.map_err(|error| error.to_string())?;
        let before = self.count.images;
        let every = std::mem::replace(&mut self.second_every, u64::MAX);
        let result = loop {
            let crashed = self.crashes(&mut world);
            if crashed.is_err() || !world.step() {
                break crashed;
            }
        };
        self.second_every = every;
        self.count.second += self.count.images - before;
        result.map_err(|wrong| format!("{wrong}\n  in the recovery of a crash"))
    }

    /// Which of so many writes are done, and how far: every subset of few, of many none, all, each alone, all but each, and some; one of each subset's is torn.
    fn choices(&mut self, writes: usize) -> Vec<Vec<Part>> {
        let mut choices: Vec<Vec<Part>> = Vec::new();
        let of = |bits: u64| -> Vec<Part> {
            // Of more than the bits of a word every 64th goes with the first.
            let part = |index| match bits >> (index % 64) & 1 {
                1 => Part::All,
                _ => Part::Nothing,
            };
            (0..writes).map(part).collect()
        };
        if writes <= self.subsets_max {
            choices.extend((0..1 << writes).map(of));
        } else {
            let all = (1_u64 << writes.min(63)) - 1;
            choices.extend([0, all].map(of));
            let index = self.random.below(writes.min(63));
            choices.extend([1 << index, all & !(1 << index)].map(of));
            for _ in 0..3 {
                let bits = self.random.below(1 << writes.min(30)) as u64;
                choices.push(of(bits));
            }
        }
        if writes > 0 {
            for index in 0..choices.len().min(4) {
                let mut torn = choices[index].clone();
                let sectors = 1 + self.random.below(9);
                let back = self.random.below(3) == 0;
                let at = self.random.below(writes);
                torn[at] = if back { Part::Back(sectors) } else { Part::Front(sectors) };
                choices.push(torn);
            }
        }
        choices
    }

    /// The sequences that are known to need care, each step begun while those before it are under way: all of them in one way before any in the next,
    /// and however many images that makes.
    fn known(
        &mut self,
        setups: &[Setup],
        known: Known,
        (points_every, overlaps): (usize, &[u32]),
    ) -> Result<(), String> {
        self.points_every = points_every;
        let by_chance = std::mem::replace(&mut self.images_max, u64::MAX);
        for overlap in overlaps.iter().copied() {
            for (schedule, seed) in
                [Schedule::First, Schedule::Last, Schedule::Any, Schedule::Any].into_iter().zip(1..)
            {
                for (setup, steps) in &known {
                    let setup = setups.iter().find(|has| has.name == *setup).unwrap();
                    self.run(setup, steps, Run { schedule, overlap, seed })?;
                }
            }
        }
        self.images_max = self.count.images + by_chance;
        Ok(())
    }

    /// First those that are known, then whatever comes.
    fn all(
        &mut self,
        setups: &[Setup],
        (known, points_every, overlaps): (Known, usize, &[u32]),
        (alphabet, longest): (&[Step], usize),
    ) -> Result<(), String> {
        self.known(setups, known, (points_every, overlaps))?;
        self.explore(setups, alphabet, longest)
    }

    /// Sequences up to so long, from all setups, in all ways, without favourites, until there are enough images.
    fn explore(
        &mut self,
        setups: &[Setup],
        alphabet: &[Step],
        longest: usize,
    ) -> Result<(), String> {
        self.points_every = 4;
        let mut random = Random(seed());
        while !self.is_over() {
            let length = 1 + random.below(longest);
            let steps: Vec<Step> =
                (0..length).map(|_| alphabet[random.below(alphabet.len())]).collect();
            let setup = &setups[random.below(setups.len())];
            let schedule = [Schedule::First, Schedule::Last, Schedule::Any][random.below(3)];
            let overlap = random.below(1 << length) as u32;
            self.run(setup, &steps, Run { schedule, overlap, seed: random.0 })?;
        }
        Ok(())
    }

    fn run(&mut self, setup: &Setup, steps: &[Step], run: Run) -> Result<(), String> {
        self.sequence(setup, steps, run)
            .map_err(|wrong| format!("{wrong}\n  from {:?}, {run:?}: {steps:?}", setup.name))
    }
}

fn apply(image: &mut Image<'_>, writes: &[(Write, bool)], parts: &[Part]) {
    let mut parts = parts.iter();
    for (write, durable) in writes {
        let part = if *durable { Part::All } else { *parts.next().unwrap() };
        image.apply(write, part);
    }
}

/// A number that the environment may give.
fn told(name: &str, otherwise: u64) -> u64 {
    let told = std::env::var(name).ok();
    told.map_or(otherwise, |told| told.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Images that chance makes in each exploration, beside those of all that is known: 10,000, or as `POOL_CRASH_IMAGES` says. All explorations
/// together look at several hundred thousand.
fn images_max() -> u64 {
    told("POOL_CRASH_IMAGES", 10_000)
}

/// What chance begins with, so that long runs can be shared out: 11, or as `POOL_CRASH_SEED` says.
fn seed() -> u64 {
    told("POOL_CRASH_SEED", 11)
}

#[test]
fn no_crash_loses_what_was_promised() {
    let setups = setups();
    let count = assert_keeps(images_max(), |explorer| explore(explorer, &setups));
    assert!(count.second > count.images / 50, "{count:?}");
}

fn explore(explorer: &mut Explorer, setups: &[Setup]) -> Result<(), String> {
    explorer.all(setups, (known(), 4, &[0, u32::MAX]), (&alphabet(), 3))
}

/// Whatever is run, and wherever a crash is, nothing is lost.
fn assert_keeps(images: u64, run: impl Fn(&mut Explorer) -> Result<(), String>) -> Count {
    let mut explorer = Explorer::new(None, images);
    if let Err(wrong) = run(&mut explorer) {
        panic!("{wrong}\n  after {:?}", explorer.count);
    }
    println!("{:?}", explorer.count);
    explorer.count
}

/// Each of these rules is broken alone, and that is found.
fn assert_found(rules: &[Rule], images: u64, run: impl Fn(&mut Explorer) -> Result<(), String>) {
    let mut missed = Vec::new();
    for rule in rules {
        let mut explorer = Explorer::new(Some(*rule), images);
        match run(&mut explorer) {
            Ok(()) => missed.push(*rule),
            Err(wrong) => println!("{rule:?} after {:?}: {wrong}\n", explorer.count),
        }
    }
    assert_eq!(missed, [], "broken, and not found");
}

/// The figures of the test above mean something: each rule is broken once on purpose, and found. Not among them is [`Rule::FlushFirst`], which no sequence here needs yet.
#[test]
fn each_broken_rule_is_found() {
    let setups = setups();
    let rules = [
        Rule::AnswerAfterMap,
        Rule::AnswerAfterLive,
        Rule::BitsAfterData,
        Rule::FlushAfterBits,
        Rule::NoBitNoData,
        Rule::ZerosAround,
        Rule::ReuseAfterCommit,
        Rule::ReuseAfterDrain,
        Rule::MapAfterCopy,
        Rule::RootAfterPages,
        Rule::EmptyBeforeGone,
        Rule::AddedFirst,
        Rule::NewRoot,
        Rule::HomeUnread,
    ];
    assert_found(&rules, 60_000, |explorer| explore(explorer, &setups));
}

/// A world on one of the setups, at rest.
fn world(name: &str) -> World {
    at_rest(setups(), name)
}

fn at_rest(setups: Vec<Setup>, name: &str) -> World {
    let setup = setups.into_iter().find(|setup| setup.name == name).unwrap();
    let mut world = World::open(setup.pages, setup.oracle, None).unwrap();
    world.rest();
    world
}

/// How it ends badly, if it does.
fn fault(world: &mut World, step: Step) -> Option<Fault> {
    let tag = ask(world, step);
    world.faults.get(&tag).copied()
}

fn ask(world: &mut World, step: Step) -> u64 {
    let Step::Ask(request) = step else { panic!("a request") };
    let tag = world.submit(request);
    world.rest();
    tag
}
