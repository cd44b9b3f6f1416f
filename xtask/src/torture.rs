//! `cargo xtask torture`: the long forms of tests whose short ones run with all others.

mod control;
mod kit;
mod pool;
mod server;

use std::process::Command;

use clap::{Args, Subcommand};

use crate::run::{self, Context};
use crate::steps::Server;
use anyhow::Result;

/// What is tortured.
#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(Subcommand)]
enum What {
    /// The data plane dies with everything in flight, on disks that are slow below the kernel. Needs root and FUSE.
    Data {
        /// How often.
        #[arg(long, default_value_t = 1000)]
        kills: u32,
        /// Have a disk do writes wrong, below the kernel: this has to fail.
        #[arg(long, value_parser = ["drop", "late", "twice", "twice-counted"])]
        sabotage: Option<String>,
    },
    /// A host shuts another one out of a LUN, over and over, while paths and the data plane fail. Needs root and FUSE.
    Fences {
        /// How often.
        #[arg(long, default_value_t = 1000)]
        rounds: u32,
    },
    /// The data plane dies under the traffic of DPDK's testpmd, which connects again by itself.
    Net {
        /// How often.
        #[arg(long, default_value_t = 100)]
        kills: u32,
    },
    /// Storage pools are filled under twenty writers, their data plane dies, they are extended, and all writers go on.
    Full {
        /// How often.
        #[arg(long, default_value_t = 500)]
        runs: u32,
    },
    /// The power goes under storage pools on disks with volatile caches, which lose and tear what was not flushed. Needs root and FUSE.
    Power {
        /// How often, of a plain pool and of a mirrored one each.
        #[arg(long, default_value_t = 200)]
        rounds: u32,
    },
    /// The control plane, and what it does to data planes and clients: random harm, against a model of what must be there.
    Control(control::Options),
    /// Storage pools, over all that comes and goes and dies: random harm, with clients that compare what they read. Loop devices and PVs that fail need root.
    Pool(pool::Options),
}

/// Runs it, with its output.
pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<()> {
    match &arguments.what {
        What::Data { kills, sabotage } => {
            let mut test = long(context, "torture", "as_many_deaths_as_are_asked_for");
            test.env("TRUNKLINE_TORTURE_KILLS", kills.to_string());
            test.envs(sabotage.iter().map(|fault| ("TRUNKLINE_TORTURE_SABOTAGE", fault)));
            run::visible(&mut test)
        }
        What::Fences { rounds } => {
            let mut test = long(context, "scsi", "failover::as_many_fences_as_are_asked_for");
            run::visible(test.env("TRUNKLINE_FENCE_ROUNDS", rounds.to_string()))
        }
        What::Net { kills } => {
            let mut test = long(context, "net", "testpmd::as_many_deaths_as_are_asked_for");
            run::visible(test.env("TRUNKLINE_NET_KILLS", kills.to_string()))
        }
        What::Full { runs } => {
            let mut test = long(context, "blk", "full::as_many_fills_as_are_asked_for");
            run::visible(test.env("TRUNKLINE_FULL_RUNS", runs.to_string()))
        }
        What::Power { rounds } => {
            let mut test = long(context, "blk", "power::as_many_cuts_as_are_asked_for");
            run::visible(test.env("TRUNKLINE_POWER_ROUNDS", rounds.to_string()))
        }
        What::Control(options) => control::run(&Server::Released.build(context)?, *options),
        What::Pool(options) => pool::run(&options.server(context)?, options),
    }
}

/// A test of the data plane that runs when it is asked for.
fn long(context: &Context, file: &str, test: &str) -> Command {
    let mut command = context.cargo(&["test", "--locked", "-p", "dataplane", "--test", file]);
    command.args(["--", "--exact", test, "--ignored", "--nocapture"]);
    command
}

/// What of it CI runs: a minute of harm to a server, with the control that must fail, and one to its pools.
pub(crate) fn step(context: &Context, server: Server) -> Result<()> {
    let server = server.build(context)?;
    control::step(&server)?;
    pool::step(&server)
}
