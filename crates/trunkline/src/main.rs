//! `trunkline`: the server, its data plane, and the command line that administers them.
//!
//! Every noun and verb is one call of the API (see `docs/openapi.json`); nothing here knows more than
//! the API does. `serve` and `dataplane` are the two processes themselves.

mod bench;
mod cli;
mod client;
mod commands;
mod demo;
mod emit;
mod exit;
mod ioscli;
mod output;
mod plan;
mod progress;
mod scratch;

use clap::{CommandFactory, Parser};
use cli::{Cli, Command};
use commands::san::Noun;
use exit::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    let cli = Cli::parse();
    let format = cli.global.output;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(format),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let global = cli.global;
    match cli.command {
        Command::Serve(args) => commands::serve::run(&global, args),
        Command::Dataplane(args) => commands::dataplane::run(&global, args),
        Command::Volume { command } => commands::objects::volume(&global, command),
        Command::Adapter { command } => commands::objects::adapter(&global, command),
        Command::Port { command } => commands::san::run(&global, Noun::Port(command)),
        Command::Target { command } => commands::san::run(&global, Noun::Target(command)),
        Command::Zone { command } => commands::san::run(&global, Noun::Zone(command)),
        Command::Mask { command } => commands::san::run(&global, Noun::Mask(command)),
        Command::Vtd { command } => commands::san::run(&global, Noun::Vtd(command)),
        Command::Media { command } => commands::san::run(&global, Noun::Media(command)),
        Command::Apply(args) => commands::state::apply(&global, &args),
        Command::Export(args) => commands::state::export(&global, &args),
        Command::Status(args) => commands::state::status(&global, &args),
        Command::Events(args) => commands::events::run(&global, &args),
        Command::Stop(args) => commands::state::stop(&global, &args),
        Command::Emit(args) => emit::run(&global, &args),
        Command::Stats(args) => commands::stats::stats(&global, &args),
        Command::Bench(args) => bench::main(&global, *args),
        Command::Demo(args) => demo::run(&global, &args),
        Command::Plan { command } => plan::main(&global, command),
        Command::Size(args) => plan::size::main(&global, &args),
        Command::Flight(args) => commands::stats::flight(&global, &args),
        Command::Ioscli { words } => ioscli::main(&global, &words),
        Command::Attributes(args) => commands::state::attributes(&global, &args),
        Command::Completions { shell } => {
            let mut command = Cli::command();
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command, "trunkline", &mut script);
            output::put(String::from_utf8_lossy(&script).trim_end())
        }
    }
}
