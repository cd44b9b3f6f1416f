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
#[cfg(test)]
mod guide;
mod ioscli;
mod output;
mod plan;
mod progress;
mod scratch;

use clap::{CommandFactory, Parser};
use clap_complete::CompleteEnv;
use cli::{Cli, Command};
use exit::Failure;
use std::process::ExitCode;

fn main() -> ExitCode {
    // A shell that asks what may come next is answered, and nothing else is done.
    CompleteEnv::with_factory(|| cli::objects::with_names(Cli::command(), None)).complete();
    let cli = Cli::parse();
    let format = cli.global.output;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(format),
    }
}

fn run(cli: Cli) -> Result<(), Failure> {
    let global = cli.global;
    if global.no_headers {
        output::without_headings();
    }
    match cli.command {
        Command::Serve(args) => commands::serve::run(&global, args),
        Command::Object(command) => commands::objects::run(&global, command),
        Command::Apply(args) => commands::state::apply(&global, &args),
        Command::Export(args) => commands::state::export(&global, &args),
        Command::Status(args) => commands::state::status(&global, &args),
        Command::Events(args) => commands::events::run(&global, &args),
        Command::Operation { command } => commands::operation::run(&global, &command),
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
            let mut script = Vec::new();
            let (me, shells) = ("trunkline", clap_complete::env::Shells::builtins());
            let shell = shell.to_string();
            let shell = shells.completer(&shell).expect("each shell has its completer");
            shell
                .write_registration("COMPLETE", me, me, me, &mut script)
                .map_err(Failure::other)?;
            output::put(String::from_utf8_lossy(&script).trim_end())
        }
    }
}
