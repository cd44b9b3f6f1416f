//! `cargo xtask torture pool`: a storage pool of two tiers, a mirrored one, and one whose LUs have checksums, on files, loop devices and disks that fail, hang, are slow and turn bits, under random
//! changes, deaths of both processes, PVs that go and return, and clients that compare what they read with what was written.
//!
//! Of each LU one part is written whole, once, by a client whose seed is kept: what it holds is known from then on, in the LU, in its snapshots and in their
//! clones, and is compared by later clients. Another part has clients that write and read at random, and begins as zeros.
//!
//! What is done follows from the seed; when it happens does not. A round that fails prints its seed, its last steps, and the line that does them again.

mod client;
mod media;
mod model;
mod steps;
mod tally;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;

use super::kit;
use crate::run::Context;
use crate::steps::Server;
use anyhow::{Result, anyhow};
use model::World;

/// For how long.
#[derive(Args, Clone)]
pub(super) struct Options {
    /// For how long: a number with `s`, `m` or `h`. What was begun is brought to its end after that.
    #[arg(long = "for", value_name = "TIME", default_value = "1m", value_parser = kit::time)]
    time: Duration,
    /// What the steps follow from; drawn when it is left out.
    #[arg(long)]
    seed: Option<u64>,
    /// With the server of the tests, whose assertions are on.
    #[arg(long)]
    checked: bool,
    /// This program, which is built already.
    #[arg(long, value_name = "PATH", conflicts_with = "checked")]
    server: Option<PathBuf>,
    /// Print each step when it is done.
    #[arg(long)]
    verbose: bool,
    /// Compare with what was not written: this has to fail.
    #[arg(long)]
    sabotage: bool,
}

/// The part of CI: together with the end of what was begun it is about a minute.
pub(super) fn step(server: &Path) -> Result<()> {
    // One seed, so that what fails fails again; `cargo xtask torture pool` takes new ones. With this one a bit of everything is done.
    let options = Options {
        time: Duration::from_secs(30),
        seed: Some(3),
        checked: true,
        server: None,
        verbose: false,
        sabotage: false,
    };
    run(server, &options)?;
    let spoilt = Options { time: Duration::from_secs(1), sabotage: true, ..options };
    match run(server, &spoilt) {
        Err(why) if format!("{why:#}").contains("no block of this run there") => Ok(()),
        Err(why) => Err(anyhow!("what was not written is found otherwise: {why:#}")),
        Ok(()) => Err(anyhow!("what was not written is found")),
    }
}

impl Options {
    /// The server that is to run.
    pub(super) fn server(&self, context: &Context) -> Result<PathBuf> {
        match &self.server {
            Some(path) => Ok(path.clone()),
            None if self.checked => Server::Checked.build(context),
            None => Server::Released.build(context),
        }
    }
}

/// Runs for the time that was asked for, and to the end of what was begun.
pub(super) fn run(server: &Path, options: &Options) -> Result<()> {
    let seed = options.seed.unwrap_or_else(kit::drawn);
    let seconds = options.time.as_secs();
    let checked = if options.checked { " --checked" } else { "" };
    let again = format!("cargo xtask torture pool --for {seconds}s --seed {seed}{checked}");
    println!("seed {seed}: the same steps with `{again}`");
    let began = Instant::now();
    let mut world = World::new(server.to_owned(), seed, options)?;
    let outcome = world.run(began + options.time);
    let log = world.log();
    world.end();
    outcome.map_err(|why| {
        anyhow!("{why:#}\n{}\nagain: {again}\n{log}", kit::last_steps(&world.steps))
    })?;
    println!("{} steps in {} s\n{}", world.steps.len(), began.elapsed().as_secs(), world.tally);
    Ok(())
}
