//! The simulator: the data path of a data plane on a simulated kernel, with every choice made by a seed. See `docs/simulator.md`.

mod changes;
mod client;
mod controls;
mod drawn;
mod front;
mod oracle;
mod scsi;
mod unit;
mod world;

use std::process::ExitCode;
use std::time::{Duration, Instant};

use controls::{CONTROLS, Control};
use world::{Counts, Plan, run};

const HELP: &str = "\
Runs the data path on a simulated kernel and clock, and judges what its clients see.

Usage: trunkline-sim [OPTIONS]

Options:
      --seeds <COUNT>     Run so many seeds [default: 2000]
      --from <SEED>       The first of them [default: 1]
      --for <SECONDS>     Run seeds for so long instead
      --seed <SEED>       Run this one and print the end of its story
      --lines <COUNT>     So many lines of it [default: 400]
      --control <NAME>    Put a fault in; it has to be found within the seeds. `all`: each of them
  -h, --help              Print this

Exit code: 0 when nothing was found, or every control was; 1 otherwise; 2 for a wrong option.
";

struct Options {
    seeds: u64,
    from: u64,
    time: Option<Duration>,
    seed: Option<u64>,
    lines: usize,
    control: Option<String>,
}

fn options() -> Result<Option<Options>, String> {
    let mut options =
        Options { seeds: 2000, from: 1, time: None, seed: None, lines: 400, control: None };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        if word == "-h" || word == "--help" {
            return Ok(None);
        }
        let value = words.next().ok_or_else(|| format!("{word} needs a value"))?;
        let number = || value.parse::<u64>().map_err(|_| format!("{word}: {value} is no number"));
        match word.as_str() {
            "--seeds" => options.seeds = number()?,
            "--from" => options.from = number()?,
            "--for" => options.time = Some(Duration::from_secs(number()?)),
            "--seed" => options.seed = Some(number()?),
            "--lines" => options.lines = number()? as usize,
            "--control" => options.control = Some(value),
            _ => return Err(format!("there is no {word}; see --help")),
        }
    }
    Ok(Some(options))
}

fn main() -> ExitCode {
    let options = match options() {
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
    let controls: Vec<Option<Control>> = match options.control.as_deref() {
        None => vec![None],
        Some("all") => CONTROLS.into_iter().map(Some).collect(),
        Some(name) => match CONTROLS.into_iter().find(|control| control.name == name) {
            Some(control) => vec![Some(control)],
            None => {
                let names: Vec<_> = CONTROLS.iter().map(|control| control.name).collect();
                eprintln!("error: there is no control {name}; there are {}", names.join(", "));
                return ExitCode::from(2);
            }
        },
    };
    let mut good = true;
    for control in controls {
        good &= match options.seed {
            Some(seed) => one(seed, control, options.lines),
            None => many(&options, control),
        };
    }
    if good { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs one seed and tells its story; whether nothing was found.
fn one(seed: u64, control: Option<Control>, story_lines: usize) -> bool {
    let outcome = run(&Plan { seed, control, story_lines });
    print!("{}", outcome.story);
    println!("{:?}; story {:#x} of {} ns", outcome.counts, outcome.story.hash, outcome.story.ns);
    match outcome.finding {
        None => println!("seed {seed}: nothing was found"),
        Some(ref finding) => println!("seed {seed}: {finding}"),
    }
    outcome.finding.is_none()
}

/// Runs seeds until something is found; whether that is as it should be.
fn many(options: &Options, control: Option<Control>) -> bool {
    let begun = Instant::now();
    let mut counts = Counts::default();
    let mut seeds = 0;
    let mut seed = options.from;
    let more = |seeds| match options.time {
        Some(time) => begun.elapsed() < time,
        None => seeds < options.seeds,
    };
    while more(seeds) {
        let outcome = run(&Plan { seed, control, story_lines: 0 });
        seeds += 1;
        counts.add(&outcome.counts);
        if let Some(finding) = outcome.finding {
            if let Some(control) = control {
                println!("{}: found after {seeds} seeds, by seed {seed}: {finding}", control.name);
                return true;
            }
            one(seed, None, options.lines);
            println!("run it again with --seed {seed}");
            return false;
        }
        seed += 1;
    }
    if let Some(control) = control {
        println!("{}: NOT FOUND in {seeds} seeds ({})", control.name, control.what);
        return false;
    }
    let seconds = begun.elapsed().as_secs_f64();
    println!(
        "{seeds} seeds in {seconds:.1} s ({:.0} a second): nothing was found",
        seeds as f64 / seconds
    );
    let Counts { answered, failed, deaths, power, moves, operations, orphans, .. } = counts;
    println!(
        "{answered} requests answered, {failed} of them with an error; {deaths} deaths with {orphans} operations under way, {power} of them of the host; {moves} moves; {operations} operations"
    );
    let Counts { functions, ended, refused, .. } = counts;
    println!(
        "of SCSI: {functions} functions answered, {ended} commands ended early, {refused} refused"
    );
    true
}
