//! `trunkline plan advise`

use super::read::{self, WithReading};
use super::server;
use super::show::{AnswerArgs, FactsArgs};
use crate::cli::Global;
use crate::exit::Failure;
use clap::Args;
use planner::advise::advise;
use planner::report::advice::{AdviceReport, WithTrends};
use planner::report::trends::{Trends, trends};
use std::path::PathBuf;

pub(super) const HELP: &str = "\
A capture is whatever a terminal showed: prompts, several commands and text in between do no harm. \
Read are `fcstat` (also -D, -e and -client), `lsattr -El` and `-Rl`, `lsdev -dev NAME -attr`, `lsmap \
-all` (also -npiv and -net), `lsnports`, `iostat -D`, `entstat -all`, `seastat`, `lparstat`, `lssp`, \
`lu -list`, and /proc/sys/adapter/vfc/vfchostN/stats. What would be needed to judge more is said in \
the answer.

Files of gzip are unpacked, up to 100 times their size (16 MiB at least, 256 MiB at most). A file may have 256 MiB, all \
together 1024 MiB; of one file 250000 reports are read, of a longer one a report for each 100 bytes, of all together 1000000. \
What is left out by that is said.

Counters tell more in two captures with some minutes between them. The time of a capture is that of \
a line that `date` printed in it, else a date in its file's name, else when the file was last \
written; the answer says which.

--server judges a running Trunkline server by two readings of its own statistics instead.

The answer ends with its coverage: by object, of more than 16 objects by system; --coverage has every object, \
--explain every rule.

Every finding has the lines that it rests on, the one command to run, what it should bring, what it \
could harm, and how to undo it. Nothing is changed by this command.

Examples:
  trunkline plan advise vios1.txt
  trunkline plan advise vios1-0900.txt vios1-1000.txt aixdb1.txt
  trunkline plan advise captures/ --html advice.html
  ssh padmin@vios1 'ioscli fcstat -client; ioscli lsnports' | trunkline plan advise - --explain
  trunkline plan advise captures/ -o json | jq -r '.answer.findings[].command'
  trunkline plan advise captures/ --exit-code || echo look at it
  trunkline plan advise --server --seconds 60";

/// Options of `plan advise`.
#[derive(Debug, Args)]
pub(crate) struct AdviseArgs {
    /// Captures: files, folders of them, `-` for standard input
    #[arg(required_unless_present = "server", conflicts_with = "server", value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Judge the Trunkline server that runs here, not captures
    #[arg(long)]
    server: bool,
    /// With --server: seconds between its two readings
    #[arg(long, default_value_t = 10, value_name = "N", requires = "server",
        value_parser = clap::value_parser!(u64).range(1..=3600))]
    pub(super) seconds: u64,
    /// End with exit code 8 if there is a finding
    #[arg(long)]
    exit_code: bool,
    /// Print the coverage object by object, also where there are many
    #[arg(long)]
    pub(super) coverage: bool,
    #[command(flatten)]
    pub(super) answer: AnswerArgs,
    #[command(flatten)]
    pub(super) facts: FactsArgs,
}

/// Reads, judges, prints.
pub(super) fn run(global: &Global, args: &AdviseArgs) -> Result<(), Failure> {
    let found = match args.server {
        true => server::run(global, args)?,
        false => captures(global, args)?,
    };
    match args.exit_code && found {
        true => Err(Failure::Found),
        false => Ok(()),
    }
}

/// Says whether something was found.
fn captures(global: &Global, args: &AdviseArgs) -> Result<bool, Failure> {
    let facts = args.facts.read()?;
    let reading = read::read(&args.paths)?;
    let advice = advise(&reading.captures, &facts);
    let line = |at| reading.line(at);
    let report = AdviceReport {
        advice: &advice,
        captures: &reading.captures,
        line: Some(&line),
        every_object: args.coverage,
    };
    let over_time = match args.answer.wants_a_page() {
        true => trends(&reading.captures, &facts),
        false => Trends::default(),
    };
    let with_trends = WithTrends { report: &report, trends: &over_time };
    let page = WithReading { answer: &with_trends, reading: &reading, all: true };
    let text = WithReading { answer: &report, all: args.answer.explain(), ..page };
    args.answer.show(global, &text, &page, Some(("inputs", reading.as_json()?)))?;
    Ok(!advice.findings.is_empty())
}

#[cfg(test)]
mod tests {
    use super::HELP;
    use crate::plan::inputs;
    use planner::capture::limits;

    #[test]
    fn the_limits_in_the_help_are_those_of_the_program() {
        let mib = |bytes: usize| format!("{} MiB", bytes >> 20);
        for said in [
            format!("up to {} times their size", limits::UNPACKED_TIMES),
            format!(
                "({} at least, {} at most)",
                mib(limits::UNPACKED_FREE),
                mib(limits::UNPACKED_MAX)
            ),
            format!(
                "may have {}, all together {}",
                mib(inputs::FILE_BYTES_MAX),
                mib(inputs::BYTES_MAX)
            ),
            format!("of one file {} reports", limits::ENTRIES_PER_FILE),
            format!("a report for each {} bytes", limits::BYTES_PER_ENTRY),
            format!("of all together {}.", limits::ENTRIES),
        ] {
            assert!(HELP.contains(&said), "{said}");
        }
    }
}
