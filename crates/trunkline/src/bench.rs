//! `trunkline bench`: the load generator, against any server or against a data plane of its own.
//!
//! | module | what |
//! |---|---|
//! | [`args`] | the options of a run, as people write them |
//! | [`run`] | `bench run`: one run against a socket |
//! | [`report`] | the report of a run as a table |
//! | [`scale`] | `bench scale`: what more channels bring on this machine |
//! | [`cpus`] | which CPUs the two sides of `bench scale` get |
//! | [`owner`] | which process listens on a socket |
//!
//! The load itself is `partition::load`.

pub(crate) mod args;
pub(crate) mod cpus;
mod owner;
pub(crate) mod report;
mod run;
mod scale;

use crate::cli::Global;
use crate::exit::Failure;
use clap::{Args, Subcommand};
use control::error::{ApiError, Code};
use partition::load::LoadError;
use partition::session::SessionError;
use std::path::PathBuf;

/// `trunkline bench`
#[derive(Debug, Args)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    command: Option<BenchCommand>,
    #[command(flatten)]
    run: args::RunArgs,
    // In the place of the general option of this name, with a text of its own.
    /// For `scale`: put its files into a folder of their own in this one [default: the folder for temporary files]
    #[arg(long, global = true, env = "TRUNKLINE_DIR", hide_env_values = true, value_name = "DIR")]
    dir: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
enum BenchCommand {
    /// Load a vhost-user-blk or vhost-user-scsi server and measure it; `bench SOCKET` is the same
    #[command(after_help = EXAMPLES)]
    Run(Box<args::RunArgs>),
    /// Measure what more channels bring on this machine, with a data plane of its own
    #[command(after_help = scale::EXAMPLES)]
    Scale(scale::ScaleArgs),
}

pub(crate) const EXAMPLES: &str = "\
Writes destroy what is on the disk; without --mix there are only reads.

Examples:
  trunkline bench /run/trunkline/vhost0.sock
  trunkline bench run vhost0.sock --queues 4 --depth 64 --mix 70 --time 30s
  trunkline bench run vhost0.sock --depth 1 --wait poll --cpus 2
  trunkline bench run vfchost0.sock --scsi --target 0 --lun 1 --queues 4
  trunkline bench run vhost0.sock --mix 50 --verify --length 256MiB --reconnect 10s
  trunkline bench scale --volume ram";

/// Runs it.
pub(crate) fn main(global: &Global, args: BenchArgs) -> Result<(), Failure> {
    match args.command {
        None => run::run(global, &args.run),
        Some(BenchCommand::Run(run)) => run::run(global, &run),
        Some(BenchCommand::Scale(scale)) => scale::run(global, &scale),
    }
}

/// Why a run could not be done, with the exit code that fits.
pub(crate) fn failure(error: &LoadError) -> Failure {
    let text = error.to_string();
    match error {
        LoadError::Options(_) => ApiError::invalid(text).into(),
        LoadError::Session(SessionError::Connect { .. } | SessionError::NoServer { .. }) => {
            ApiError::new(Code::Unavailable, text)
                .help("`trunkline adapter list` shows the sockets of a Trunkline server")
                .into()
        }
        LoadError::Session(SessionError::Plan(_) | SessionError::Queues { .. }) => {
            ApiError::invalid(text).into()
        }
        _ => Failure::other(text),
    }
}
