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

use std::path::Path;
use std::time::{Duration, Instant};

use clap::Args;

use super::kit;
use anyhow::{Result, anyhow};
use model::World;

/// For how long, and how.
#[derive(Args, Clone, Copy)]
pub(super) struct Options {
    /// For how long: a number with `s`, `m` or `h`.
    #[arg(long = "for", value_name = "TIME", default_value = "1m", value_parser = kit::time)]
    time: Duration,
    /// What the steps follow from; drawn when it is left out.
    #[arg(long)]
    seed: Option<u64>,
    /// Prune without asking where the server must not: this has to fail.
    #[arg(long)]
    sabotage: bool,
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
    let seed = options.seed.unwrap_or_else(kit::drawn);
    println!("seed {seed}: the same steps with `cargo xtask torture control --seed {seed}`");
    let until = Instant::now() + options.time;
    let mut world = World::new(server.to_owned(), seed, options.sabotage)?;
    let outcome = world.run(until);
    let log = world.log();
    world.end();
    outcome
        .map_err(|why| anyhow!("{why:#}\n{}\nseed {seed}\n{log}", kit::last_steps(&world.steps)))?;
    println!("{} steps, {}", world.steps.len(), world.tally());
    Ok(())
}
