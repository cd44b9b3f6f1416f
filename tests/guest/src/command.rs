//! Running host programs to their end.

use std::process::Command;

use anyhow::{Error, Result};

/// Runs a program and returns what it wrote to stdout; a failure carries its stderr.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    tools::command::output(command).map_err(Error::msg)
}

/// As [`output`], for programs that print text.
pub(crate) fn text(command: &mut Command) -> Result<String> {
    tools::command::text(command).map_err(Error::msg)
}

/// A command that dies with the thread that starts it, so that an interrupted run leaves no guest and no server
/// behind. The process keeps the child's id: `setpriv` replaces itself.
pub(crate) fn bound(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}
