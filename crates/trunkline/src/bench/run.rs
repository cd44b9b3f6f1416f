//! `trunkline bench run`: one run against a socket.

use super::args::RunArgs;
use super::{failure, owner, report};
use crate::cli::Global;
use crate::exit::Failure;
use crate::output::print;
use crate::progress::Bar;
use partition::load::{self, Report};

/// Runs it. A run that found something wrong is printed, and is an error.
pub(super) fn run(global: &Global, args: &RunArgs) -> Result<(), Failure> {
    let socket = args.socket.clone().unwrap_or_default();
    let server_pid = args.server_pid.or_else(|| owner::listener(&socket));
    let options = args.options(server_pid)?;
    let name = socket.display().to_string();
    let mut bar = Bar::new(1);
    bar.begin(&name);
    let result = load::run(&socket, &options, &mut |progress| bar.show(&name, progress));
    bar.done();
    drop(bar);
    let done = result.map_err(|error| failure(&error))?;
    print(global, &done, |done| report::page(&name, done))?;
    judge(&done)
}

/// An error if anything went wrong.
fn judge(report: &Report) -> Result<(), Failure> {
    if report.passed() {
        return Ok(());
    }
    let first = report.failures.first().map(ToString::to_string).unwrap_or_default();
    Err(Failure::other(match report.failure_count {
        1 => format!("the run found a failure: {first}"),
        count => format!("the run found {count} failures; the first: {first}"),
    }))
}
