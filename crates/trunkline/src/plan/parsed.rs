//! `trunkline plan show`

use super::read;
use super::show::AnswerArgs;
use crate::cli::Global;
use crate::exit::Failure;
use clap::Args;
use planner::model::Model;
use planner::report::parsed::Parsed;
use std::path::PathBuf;

pub(super) const HELP: &str = "\
Every field that was read, with its value and the line it stood on; which system each report was given \
to, and by what that system is known; and what was not understood. Advice rests on nothing else.

Examples:
  trunkline plan show vios1.txt
  trunkline plan show captures/ | grep num_cmd_elems
  trunkline plan show captures/ -o json | jq '.answer.systems'";

/// Options of `plan show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArgs {
    /// Captures: files, folders of them, `-` for standard input
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    answer: AnswerArgs,
}

/// Reads, prints.
pub(super) fn run(global: &Global, args: &ShowArgs) -> Result<(), Failure> {
    let reading = read::read(&args.paths)?;
    let model = Model::of(&reading.captures);
    let parsed = Parsed { captures: &reading.captures, model: &model };
    args.answer.show(global, &parsed, &parsed, Some(("inputs", reading.as_json()?)))
}
