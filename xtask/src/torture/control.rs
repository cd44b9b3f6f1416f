//! `cargo xtask torture control`: random commands, applies, kills and stops of both processes, and files that are locked, missing, full or
//! read-only, against a model of what must be there and who must have it. Clients in user space write, read and compare all the while.
//!
//! What is done follows from the seed; when it happens does not, since clients and processes have their own time. A round that fails
//! prints its seed and its last steps.
//!
//! With `--sabotage` the applies that must take nothing away are sent with `--prune --force`: a server that prunes without asking looks like
//! that, and the model must notice it.

mod client;
mod model;
mod server;

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use clap::Args;

use anyhow::{Context as _, Result, anyhow};
use model::World;

/// For how long, and how.
#[derive(Args, Clone, Copy)]
pub(super) struct Options {
    /// For how long: a number with `s`, `m` or `h`.
    #[arg(long = "for", value_name = "TIME", default_value = "1m", value_parser = time)]
    time: Duration,
    /// What the steps follow from; drawn when it is left out.
    #[arg(long)]
    seed: Option<u64>,
    /// Prune without asking where the server must not: this has to fail.
    #[arg(long)]
    sabotage: bool,
}

fn time(text: &str) -> std::result::Result<Duration, String> {
    let wrong = || format!("`{text}` is no time; write a number and `s`, `m` or `h`");
    let (number, unit) = text.split_at_checked(text.len().saturating_sub(1)).ok_or_else(wrong)?;
    let number: u64 = number.parse().map_err(|_| wrong())?;
    let seconds = match unit {
        "s" => number,
        "m" => number * 60,
        "h" => number * 3600,
        _ => return Err(wrong()),
    };
    Ok(Duration::from_secs(seconds))
}

/// The part of CI: a minute, and the control that must fail.
pub(super) fn step(server: &Path) -> Result<()> {
    // One seed, so that what fails fails again; `cargo xtask torture control` takes new ones.
    let options = Options { time: Duration::from_secs(50), seed: Some(1), sabotage: false };
    run(server, options)?;
    // It ends with the first loss; the time is for machines on which that takes long.
    let spoilt = Options { time: Duration::from_secs(180), sabotage: true, ..options };
    match run(server, spoilt) {
        Err(why) if format!("{why:#}").contains(model::LOST) => Ok(()),
        Err(why) => Err(anyhow!("a server that prunes without asking fails otherwise: {why:#}")),
        Ok(()) => Err(anyhow!("a server that prunes without asking passes")),
    }
}

/// Runs for the time that was asked for.
pub(super) fn run(server: &Path, options: Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(|| {
        let now = std::time::UNIX_EPOCH.elapsed().unwrap_or_default();
        now.as_nanos() as u64 & 0xffff_ffff
    });
    println!("seed {seed}: the same steps with `cargo xtask torture control --seed {seed}`");
    let until = Instant::now() + options.time;
    let mut world = World::new(server.to_owned(), seed, options.sabotage)?;
    let outcome = world.run(until);
    let log = world.log();
    world.end();
    outcome.map_err(|why| {
        let steps = world.steps.iter().rev().take(30).rev();
        let steps: Vec<&str> = steps.map(String::as_str).collect();
        anyhow!("{why:#}\nlast steps:\n  {}\nseed {seed}\n{log}", steps.join("\n  "))
    })?;
    println!("{} steps, {}", world.steps.len(), world.tally());
    Ok(())
}

/// A command that talks to nobody.
fn quiet(command: &mut std::process::Command) -> &mut std::process::Command {
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped())
}

/// A folder of its own for one run, whose path is short enough for sockets.
fn folder() -> Result<PathBuf> {
    let path = std::env::temp_dir().join(format!("tltorture{}", std::process::id()));
    // One of an earlier process of that number.
    let _ = std::fs::remove_dir_all(&path);
    std::fs::create_dir_all(&path).with_context(|| format!("cannot make {}", path.display()))?;
    Ok(path)
}

/// Random numbers (xorshift64*): the same from the same seed.
struct Dice(u64);

impl Dice {
    fn new(seed: u64) -> Dice {
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Below `n`, which is not 0.
    fn below(&mut self, n: usize) -> usize {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 33) as usize % n
    }

    /// A pause of up to so many milliseconds.
    fn pause(&mut self, ms: usize) {
        std::thread::sleep(Duration::from_millis(self.below(ms + 1) as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_is_a_sequence_and_times_have_units() {
        let draw = |seed| {
            let mut dice = Dice::new(seed);
            [0; 20].map(|_: usize| dice.below(10))
        };
        assert_eq!(draw(7), draw(7));
        assert_ne!(draw(7), draw(8));
        assert_eq!(time("10m"), Ok(Duration::from_secs(600)));
        assert_eq!([time("m").is_err(), time("10").is_err(), time("").is_err()], [true; 3]);
    }
}
