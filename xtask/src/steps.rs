//! `cargo xtask test`: all steps in order, each with a heading, its time and that of the CPUs, ended by the first failure.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use clap::Args;

use crate::run::{self, Context};
use crate::{cost, deny, fuzz, layers, loom, sim, tidy, tools, torture};
use anyhow::{Result, anyhow};

/// Which steps to run, and how long.
#[derive(Args)]
pub(crate) struct Selection {
    /// Run only this step; may be given several times.
    #[arg(long, value_name = "STEP")]
    only: Vec<String>,
    /// Run this step and those after it.
    #[arg(long, value_name = "STEP", conflicts_with = "only")]
    from: Option<String>,
    /// Name the steps and end.
    #[arg(long)]
    list: bool,
    /// All that there is: the server as users get it (release), every guest, each fuzz target for ten minutes.
    #[arg(long)]
    long: bool,
}

impl Selection {
    fn server(&self) -> Server {
        if self.long { Server::Released } else { Server::Checked }
    }
}

struct Step {
    name: &'static str,
    about: &'static str,
    run: fn(&Context, &Selection) -> Result<()>,
}

/// Cheap checks first. Steps that compile share the target folder's check, debug and release parts; only fuzz needs its own, because its flags
/// change the code.
const STEPS: &[Step] = &[
    Step {
        name: TOOLS,
        about: "programs the tests need; installed if allowed",
        run: |c, _| tools::ensure(c),
    },
    Step { name: "fmt", about: "formatting", run: |c, _| cargo(c, &["fmt", "--all", "--check"]) },
    Step {
        name: "layers",
        about: "who depends on whom; where unsafe code stands",
        run: |c, _| layers::check(c),
    },
    Step { name: "tidy", about: "file sizes; paths in the documents", run: |c, _| tidy::check(c) },
    Step {
        name: "deny",
        about: "licences, sources and bans of dependencies",
        run: |c, _| deny::check(c),
    },
    Step {
        name: "clippy",
        about: "lints of all targets, warnings are errors",
        run: |c, _| clippy(c),
    },
    Step {
        name: "doc",
        about: "the crates' documentation, warnings are errors",
        run: |c, _| doc(c),
    },
    Step { name: "build", about: "the server, all tests, models and the simulator", run: build },
    Step {
        name: "loom",
        about: "models of the hand-overs between threads",
        run: |c, _| loom::run(c),
    },
    Step {
        name: "sim",
        about: "the data path on a simulated kernel, with seeds and planted faults",
        run: |c, _| sim::step(c),
    },
    Step {
        name: "cost",
        about: "instructions per request against bench/budgets.toml",
        run: |c, _| cost::check(c),
    },
    Step { name: "fuzz", about: "fuzz targets for a while", run: |c, s| fuzz(c, s.long) },
    Step {
        name: "unit",
        about: "unit, property and integration tests",
        run: |c, s| unit(c, s.long),
    },
    Step {
        name: "torture",
        about: "a minute each of harm to a running server and its pools, against models",
        run: |c, s| torture::step(c, s.server()),
    },
    Step {
        name: "guest",
        about: "Linux guests under QEMU on the server",
        run: |c, s| guest(c, s.server(), s.long, &[]),
    },
];

/// Steps that compute all the time, in parts of the target folder that are theirs. They run beside those after them, which wait for processes,
/// disks and clocks for much of theirs.
const COMPUTING: &[&str] = &["loom", "sim", "cost", "fuzz"];
/// Those beside which they run.
const WAITING: &[&str] = &["unit", "torture", "guest"];

/// The step that may use every program of the machine. Those after it find what the table has, so that a missing line fails everywhere.
const TOOLS: &str = "tools";

/// Runs what was selected.
pub(crate) fn run(context: &Context, selection: &Selection) -> Result<()> {
    let steps = select(selection)?;
    if selection.list {
        for step in steps {
            println!("{:<8} {}", step.name, step.about);
        }
        return Ok(());
    }
    let computes = |step: &Step| COMPUTING.contains(&step.name);
    let waits = |step: &Step| WAITING.contains(&step.name);
    let any_waits = steps.iter().any(|step| waits(step));
    let (beside, own): (Vec<&Step>, Vec<&Step>) =
        steps.iter().partition(|step| any_waits && computes(step));
    let mut others = None;
    let started = Moment::now();
    let mut done: Vec<(&str, Took)> = Vec::new();
    let mut failure = None;
    for step in &own {
        if !beside.is_empty() && others.is_none() && waits(step) {
            others = Some(start_beside(context, selection, &beside)?);
        }
        println!("\n=== {}: {}", step.name, step.about);
        let began = Moment::now();
        let ready = if step.name == TOOLS { Ok(()) } else { tools::confine(context) };
        let outcome = ready.and_then(|()| (step.run)(context, selection));
        let took = began.elapsed();
        if let Err(error) = outcome {
            println!("{error:#}\n=== {} FAILED after {}", step.name, seconds(took.wall));
            failure = Some((step.name, took));
            break;
        }
        println!("=== {} passed in {}", step.name, seconds(took.wall));
        done.push((step.name, took));
    }
    let beside = others.map_or(Ok(()), run::Beside::finish);
    summary(&own, &done, failure, started.elapsed());
    match failure {
        None => beside,
        Some((name, _)) => Err(anyhow!("step {name} failed; run it alone with --only {name}")),
    }
}

/// Starts these steps in a process of their own, since their output has to wait.
fn start_beside(context: &Context, selection: &Selection, steps: &[&Step]) -> Result<run::Beside> {
    // Both use one folder of programs, made once.
    tools::confine(context)?;
    let mut command = context.cargo(&["xtask", "test"]);
    command.args(selection.long.then_some("--long"));
    command.args(steps.iter().flat_map(|step| ["--only", step.name]));
    println!("\n=== beside what follows, and shown after it:");
    for step in steps {
        println!("{:<8} {}", step.name, step.about);
    }
    // They take what the others leave: a test that waits for a moment is to have the CPUs then.
    run::beside(command, 19)
}

fn select(selection: &Selection) -> Result<Vec<&'static Step>> {
    let index = |name: &String| {
        let names: Vec<&str> = STEPS.iter().map(|step| step.name).collect();
        names
            .iter()
            .position(|known| known == name)
            .ok_or_else(|| anyhow!("no step is named {name}; there are {}", names.join(", ")))
    };
    if !selection.only.is_empty() {
        let mut chosen = selection.only.iter().map(index).collect::<Result<Vec<usize>>>()?;
        chosen.sort_unstable();
        chosen.dedup();
        return Ok(chosen.into_iter().map(|at| &STEPS[at]).collect());
    }
    let first = selection.from.as_ref().map_or(Ok(0), index)?;
    Ok(STEPS[first..].iter().collect())
}

/// How long something took, and how much of the CPUs by all processes that have ended in it.
#[derive(Clone, Copy)]
struct Took {
    wall: Duration,
    cpu: Duration,
}

/// When something began.
struct Moment {
    at: Instant,
    cpu: Duration,
}

impl Moment {
    fn now() -> Moment {
        Moment { at: Instant::now(), cpu: used_by_children() }
    }

    fn elapsed(&self) -> Took {
        let cpu = used_by_children().saturating_sub(self.cpu);
        Took { wall: self.at.elapsed(), cpu }
    }
}

/// CPU time of the processes that this one has waited for, and of those that these have, from `/proc/self/stat` (proc(5): `cutime`, `cstime`).
fn used_by_children() -> Duration {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    let after = stat.rsplit(')').next().unwrap_or_default();
    let ticks: u64 = after
        .split_whitespace()
        .skip(13)
        .take(2)
        .filter_map(|field| field.parse::<u64>().ok())
        .sum();
    Duration::from_millis(ticks * 1000 / rustix::param::clock_ticks_per_second())
}

fn summary(steps: &[&Step], done: &[(&str, Took)], failure: Option<(&str, Took)>, total: Took) {
    println!("\nstep     result     time   of CPUs");
    let line = |name: &str, result: &str, took: Took| {
        println!("{name:<8} {result:<6} {:>9} {:>9}", seconds(took.wall), seconds(took.cpu));
    };
    for (name, took) in done {
        line(name, "passed", *took);
    }
    if let Some((name, took)) = failure {
        line(name, "FAILED", took);
    }
    for step in &steps[done.len() + usize::from(failure.is_some())..] {
        println!("{:<8} not run", step.name);
    }
    line("total", "", total);
    println!("{} passed, {} failed", done.len(), usize::from(failure.is_some()));
}

fn seconds(time: Duration) -> String {
    format!("{:.1} s", time.as_secs_f64())
}

fn fuzz(context: &Context, long: bool) -> Result<()> {
    let (targets, seconds) =
        if long { (fuzz::Targets::All, 600) } else { (fuzz::Targets::Quick, 10) };
    fuzz::run(context, targets, seconds)
}

fn cargo(context: &Context, arguments: &[&str]) -> Result<()> {
    run::visible(&mut context.cargo(arguments))
}

fn clippy(context: &Context) -> Result<()> {
    cargo(
        context,
        &["clippy", "--workspace", "--all-targets", "--locked", "--", "-D", "warnings"],
    )?;
    sim::clippy(context)
}

fn doc(context: &Context) -> Result<()> {
    let arguments = ["doc", "--workspace", "--no-deps", "--document-private-items", "--locked"];
    run::visible(context.cargo(&arguments).env("RUSTDOCFLAGS", "-D warnings"))
}

/// Not the examples: `clippy` checks them, and `cost` builds them in a profile of its own.
fn build(context: &Context, selection: &Selection) -> Result<()> {
    cargo(context, &["test", "--workspace", "--locked", "--no-run", "--lib", "--bins", "--tests"])?;
    sim::build(context)?;
    loom::build(context)?;
    // With the tests it is there already, unless it is the released one.
    selection.server().build(context).map(drop)
}

/// Two programs of tests at a time, and of each as many tests as there are CPUs: they wait for processes, disks and clocks for half of their
/// time. All of them are of the whole workspace, so that nothing is built anew for a part.
fn unit(context: &Context, all: bool) -> Result<()> {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from).to_string();
    let tests = |which: &[&str]| {
        let mut command = context.cargo(&["test", "--workspace", "--locked", "--no-fail-fast"]);
        command.args(which).env("RUST_TEST_THREADS", &cpus);
        // The planner's tests try each place of each capture then, the pools' look at ten times as many crashes, and those of failover at twelve times as many
        // orders of what can happen.
        if all {
            command.env("EVERY_LINE", "1").env("POOL_CRASH_IMAGES", "1000000");
            command.env("FAILOVER_WORLDS", "100000");
        }
        command
    };
    let first = &mut tests(&["--test", LONG_TESTS]);
    run::visible_beside(first, tests(&["--lib", "--bins", "--test", OTHER_TESTS]))?;
    run::visible(&mut tests(&["--doc"]))
}

/// Programs of tests by their names, which take about half of the time of all.
const LONG_TESTS: &str = "[b-dfns-z]*";
/// All others.
const OTHER_TESTS: &str = "[!b-dfns-z]*";

/// Which build of the server a step runs.
#[derive(Clone, Copy)]
pub(crate) enum Server {
    /// The one that is built with the tests: it costs nothing, and its assertions are on.
    Checked,
    /// As users get it.
    Released,
}

impl Server {
    /// Its program, once it is built from what is here.
    pub(crate) fn build(self, context: &Context) -> Result<PathBuf> {
        let (what, folder): (&[&str], _) = match self {
            // Its own tests run it. `cargo build` would build half of it again, without what only tests ask of the libraries.
            Server::Checked => (&["test", "--workspace", "--no-run", "--test", "cli"], "debug"),
            Server::Released => (&["build", "--release", "-p", "trunkline"], "release"),
        };
        run::visible(context.cargo(what).arg("--locked"))?;
        Ok(context.target.join(folder).join("trunkline"))
    }
}

/// Runs guest scenarios: those whose names contain one of the words, or without words the usual ones, or all of them.
pub(crate) fn guest(
    context: &Context,
    server: Server,
    all: bool,
    filters: &[String],
) -> Result<()> {
    let server = server.build(context)?;
    let mut command = context.cargo(&["run", "--quiet", "--locked", "-p", "guest", "--"]);
    command
        .arg("--server")
        .arg(server)
        .arg("--cache")
        .arg(context.target.join("guest"))
        .args(all.then_some("--all"))
        .args(filters);
    run::visible(&mut command)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(only: &[&str], from: Option<&str>) -> Result<Vec<&'static str>> {
        let selection = Selection {
            only: only.iter().map(|name| (*name).to_owned()).collect(),
            from: from.map(str::to_owned),
            list: false,
            long: false,
        };
        Ok(select(&selection)?.into_iter().map(|step| step.name).collect())
    }

    #[test]
    fn steps_are_selected_in_their_order() {
        assert_eq!(names(&[], None).unwrap().len(), STEPS.len());
        assert_eq!(names(&["unit", "fmt"], None).unwrap(), ["fmt", "unit"]);
        assert_eq!(names(&[], Some("fuzz")).unwrap(), ["fuzz", "unit", "torture", "guest"]);
        assert!(names(&["nothing"], None).is_err());
        assert!(names(&[], Some("nothing")).is_err());
    }
}
