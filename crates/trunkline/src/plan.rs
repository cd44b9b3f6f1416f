//! `trunkline plan` and `trunkline size`: the planner from the command line.
//!
//! | module | what |
//! |---|---|
//! | [`advise`] | `plan advise`: findings from captures |
//! | [`trends`] | `plan trends`: captures over time |
//! | [`parsed`] | `plan show`: what was read, field by field |
//! | [`lpm`] | `plan lpm`: the queues of a client that moves |
//! | [`size`] | `size`: processors and memory for a workload |
//! | [`calibrate`] | `size calibrate`: what a shared Ethernet adapter costs on this host |
//! | [`inputs`] | files, folders and standard input |
//! | [`server`] | `plan advise --server`: a running Trunkline server |
//! | [`read`] | captures out of them, and what was read |
//! | [`taken`] | times in the names of files |
//! | [`show`] | an answer on the terminal, as JSON and YAML, and as a page |
//!
//! The answers are those of the crate `planner`; none of these commands needs a server, except
//! `plan advise --server`; `size calibrate` starts data planes of its own.

mod advise;
mod calibrate;
mod inputs;
mod lpm;
mod parsed;
mod read;
mod server;
mod show;
pub(crate) mod size;
mod taken;
mod trends;

use crate::cli::Global;
use crate::exit::Failure;
use clap::Subcommand;

/// `trunkline plan`
#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Say what is wrong with a PowerVM system, from what its commands printed
    #[command(after_help = advise::HELP)]
    Advise(Box<advise::AdviseArgs>),
    /// Say what changed over several captures of the same systems, how fast, and what a change brought
    #[command(after_help = trends::HELP)]
    Trends(Box<trends::TrendsArgs>),
    /// Print what was read, field by field with its line, and which system each report belongs to
    #[command(after_help = parsed::HELP)]
    Show(Box<parsed::ShowArgs>),
    /// Say how many queues a client has after live partition mobility, why, and what brings them back
    #[command(after_help = lpm::HELP)]
    Lpm(Box<lpm::LpmArgs>),
}

/// Runs it.
pub(crate) fn main(global: &Global, command: PlanCommand) -> Result<(), Failure> {
    show::has_format(global)?;
    match command {
        PlanCommand::Advise(args) => advise::run(global, &args),
        PlanCommand::Trends(args) => trends::run(global, &args),
        PlanCommand::Show(args) => parsed::run(global, &args),
        PlanCommand::Lpm(args) => lpm::run(global, &args),
    }
}
