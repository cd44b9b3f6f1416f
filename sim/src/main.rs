//! The simulator: the data path of a data plane on a simulated kernel, with every choice made by a seed. See `docs/simulator.md`.

mod atlas;
mod changes;
mod client;
mod clients;
mod control;
mod controls;
mod counts;
mod drawn;
mod fence;
mod files;
mod front;
mod less;
mod liar;
mod options;
mod oracle;
mod plan;
mod pooled;
mod scsi;
mod tally;
mod unit;
mod world;

use std::process::ExitCode;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Instant;

use atlas::Atlas;
use controls::Control;
use counts::Counts;
use less::shrink;
use options::{HELP, Options};
use plan::{Outcome, Plan};

/// A seed allocates without end.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let options = match Options::read(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => {
            print!("{HELP}");
            return ExitCode::SUCCESS;
        }
        Err(what) => {
            eprintln!("error: {what}");
            return ExitCode::from(2);
        }
    };
    // A death is no news.
    if std::env::var_os("SIM_PANICS").is_none() {
        std::panic::set_hook(Box::new(|_| {}));
    }
    let mut good = true;
    for control in &options.controls {
        good &= match options.seed {
            Some(seed) => one(seed, *control, &options),
            None => many(&options, *control),
        };
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one seed and tells its story; whether nothing was found.
fn one(seed: u64, control: Option<Control>, options: &Options) -> bool {
    let story_lines = if options.trace { 0 } else { options.lines };
    let less = options.less.clone();
    let (part, trace) = (options.part, options.trace);
    let plan = Plan { part, seed, control, story_lines, trace, less };
    let outcome = plan.run();
    match (&outcome.finding, options.shrink) {
        (Some(finding), true) => tell_smallest(&plan, finding),
        _ => tell(&plan, &outcome),
    }
    outcome.finding.is_none()
}

fn tell(plan: &Plan, outcome: &Outcome) {
    print!("{}", outcome.story);
    println!("{}; story {:#x} of {} ns", outcome.counts, outcome.story.hash, outcome.story.ns);
    let (part, seed, less) = (plan.part, plan.seed, &plan.less);
    let finding = outcome.finding.as_deref().unwrap_or("nothing was found");
    println!("{part}--seed {seed}{less}: {finding}");
}

/// Makes a failing run small and tells its story.
fn tell_smallest(plan: &Plan, finding: &str) {
    let quiet = Plan { trace: false, ..plan.clone() };
    let (smallest, outcome) = shrink(&quiet, finding);
    tell(&smallest, &outcome);
    println!("the whole run: {}--seed {}{}: {finding}", plan.part, plan.seed, plan.less);
}

/// What all threads have together.
struct Common<'a> {
    options: &'a Options,
    control: Option<Control>,
    begun: Instant,
    /// Seeds that were given out, and that have been run.
    given: AtomicU64,
    done: AtomicU64,
    stop: AtomicBool,
    sum: Mutex<(Counts, Atlas)>,
    /// The seed that failed, the first if there are several.
    found: Mutex<Option<(u64, String)>>,
}

impl Common<'_> {
    fn next(&self) -> Option<u64> {
        let more = match self.options.time {
            Some(time) => self.begun.elapsed() < time,
            None => self.given.load(Ordering::Relaxed) < self.options.seeds,
        };
        if !more || self.stop.load(Ordering::Relaxed) {
            return None;
        }
        let at = self.given.fetch_add(1, Ordering::Relaxed);
        let ends = self.options.time.is_none() && at >= self.options.seeds;
        (!ends).then_some(self.options.from + at)
    }

    /// Seeds until there are no more, or one fails.
    fn work(&self) {
        while let Some(seed) = self.next() {
            let (less, twice) = (self.options.less.clone(), self.options.twice);
            let story_lines = if twice { self.options.lines } else { 0 };
            let (part, control) = (self.options.part, self.control);
            let plan = Plan { part, seed, control, less, story_lines, ..Plan::default() };
            let mut outcome = plan.run();
            if twice && let Some(other) = outcome.story.differs(&plan.run().story) {
                outcome.finding = Some(format!("it is not the same story each time:\n{other}"));
            }
            self.done.fetch_add(1, Ordering::Relaxed);
            let mut sum = self.sum.lock().expect("no panic is left");
            sum.0.add(&outcome.counts);
            sum.1.add(&outcome.story.met);
            drop(sum);
            if let Some(finding) = outcome.finding {
                self.stop.store(true, Ordering::Relaxed);
                let mut found = self.found.lock().expect("no panic is left");
                if found.as_ref().is_none_or(|(other, _)| seed < *other) {
                    *found = Some((seed, finding));
                }
            }
        }
    }
}

/// Runs seeds until something is found; whether that is as it should be.
fn many(options: &Options, control: Option<Control>) -> bool {
    let common = Common {
        options,
        control,
        begun: Instant::now(),
        given: AtomicU64::new(0),
        done: AtomicU64::new(0),
        stop: AtomicBool::new(false),
        sum: Mutex::default(),
        found: Mutex::default(),
    };
    let jobs = match options.jobs {
        0 => std::thread::available_parallelism().map_or(1, usize::from),
        jobs => jobs,
    };
    std::thread::scope(|threads| {
        (1..jobs).for_each(|_| drop(threads.spawn(|| common.work())));
        common.work();
    });
    let Common { begun, done, sum, found, .. } = common;
    let (seeds, (counts, atlas)) = (done.into_inner(), sum.into_inner().expect("no panic is left"));
    match (found.into_inner().expect("no panic is left"), control) {
        (Some((seed, finding)), Some(control)) => {
            let after = seed - options.from + 1;
            println!("{}: found after {after} seeds, by seed {seed}: {finding}", control.name);
            true
        }
        (Some((seed, finding)), None) => {
            let (story_lines, less) = (options.lines, options.less.clone());
            let part = options.part;
            let plan = Plan { part, seed, story_lines, less, ..Plan::default() };
            tell_smallest(&plan, &finding);
            false
        }
        (None, Some(control)) => {
            println!("{}: NOT FOUND in {seeds} seeds ({})", control.name, control.what);
            false
        }
        (None, None) => {
            let seconds = begun.elapsed().as_secs_f64();
            let rate = seeds as f64 / seconds;
            println!("{seeds} seeds in {seconds:.1} s ({rate:.0} a second): nothing was found");
            println!("{counts}\n\n{atlas}");
            true
        }
    }
}
