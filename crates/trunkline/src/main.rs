//! `trunkline`: the server, its data plane, and the command line that administers them.
//!
//! Every noun and verb is one call of the API (see `docs/openapi.json`); nothing here knows more than
//! the API does. `serve` and `dataplane` are the two processes themselves.

// A macro that prints panics where nobody reads: `output` does not.
#![deny(clippy::print_stderr, clippy::print_stdout)]

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
use control::error::ApiError;
use exit::Failure;
use std::io::ErrorKind;
use std::process::ExitCode;

const _: () = assert!(!dataplane::SIMULATED, "a server is built without the simulator's features");

fn main() -> ExitCode {
    // A shell that asks what may come next is answered, and nothing else is done.
    CompleteEnv::with_factory(|| cli::objects::with_names(Cli::command(), None)).complete();
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return usage(&error),
    };
    let format = cli.global.output;
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => failure.report(format),
    }
}

/// A command line that is none is an error like any other; help and version are what was asked for.
fn usage(error: &clap::Error) -> ExitCode {
    if !error.use_stderr() {
        return match error.print() {
            Err(error) if error.kind() != ErrorKind::BrokenPipe => {
                output::unwritten(&error).report(cli::Format::Table)
            }
            _ => ExitCode::SUCCESS,
        };
    }
    if !wants_json(std::env::args()) {
        error.exit();
    }
    let text = error.to_string();
    let (message, help) = text.trim().split_once("\n\n").unwrap_or((text.trim(), ""));
    let in_a_line = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let message = in_a_line(message.strip_prefix("error: ").unwrap_or(message));
    let (refusal, help) = (ApiError::invalid(message), in_a_line(help));
    let refusal = if help.is_empty() { refusal } else { refusal.help(help) };
    Failure::from(refusal).report(cli::Format::Json)
}

/// Whether a command line asks for JSON, as far as that can be seen in one that is wrong.
fn wants_json(words: impl Iterator<Item = String>) -> bool {
    let words: Vec<String> = words.take_while(|word| word != "--").collect();
    let alone = |word: &str| matches!(word, "-ojson" | "-o=json" | "--output=json");
    let pair = |two: &[String]| matches!(two[0].as_str(), "-o" | "--output") && two[1] == "json";
    words.iter().any(|word| alone(word)) || words.windows(2).any(pair)
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
