//! `trunkline plan trends`

use super::read::{self, WithReading};
use super::show::{AnswerArgs, FactsArgs};
use crate::cli::Global;
use crate::exit::Failure;
use clap::Args;
use planner::report::trends::trends;
use std::path::PathBuf;

pub(super) const HELP: &str = "\
Captures of the same things are put in the order of their times, and each counter becomes a rate \
between two of them. A counter that was reset is told, not reckoned through. Attributes that changed \
are marked, and what the last of them brought is told: the means before and after, the difference, and the \
noise that it is held against.

The time of a capture is that of a line that `date` printed in it, else a date in its file's name, \
else when the file was last written; the answer says which.

Examples:
  trunkline plan trends captures/
  trunkline plan trends before.txt after.txt
  trunkline plan trends captures/ --html trends.html";

/// Options of `plan trends`.
#[derive(Debug, Args)]
pub(crate) struct TrendsArgs {
    /// Captures: files, folders of them
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    facts: FactsArgs,
}

/// Reads, compares, prints.
pub(super) fn run(global: &Global, args: &TrendsArgs) -> Result<(), Failure> {
    let reading = read::read(&args.paths)?;
    let found = trends(&reading.captures, &args.facts.read()?);
    let all = args.answer.explain();
    let shown = WithReading { answer: &found, reading: &reading, all };
    args.answer.show(global, &shown, &shown, Some(("inputs", reading.as_json()?)))
}
