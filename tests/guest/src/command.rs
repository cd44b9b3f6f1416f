//! Running host programs to their end.

use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, anyhow};

/// Runs a program and returns what it wrote to stdout; a failure carries its stderr.
pub(crate) fn output(command: &mut Command) -> Result<Vec<u8>> {
    let name = format!("{command:?}");
    let done =
        command.stdin(Stdio::null()).output().with_context(|| format!("cannot run {name}"))?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    let stderr = String::from_utf8_lossy(&done.stderr);
    Err(anyhow!("{name} failed with {}\n{}", done.status, stderr.trim_end()))
}

/// As [`output`], for programs that print text.
pub(crate) fn text(command: &mut Command) -> Result<String> {
    Ok(String::from_utf8_lossy(&output(command)?).into_owned())
}

/// A command that dies with the thread that starts it, so that an interrupted run leaves no guest and no server
/// behind. The process keeps the child's id: `setpriv` replaces itself.
pub(crate) fn bound(program: impl AsRef<std::ffi::OsStr>) -> Command {
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "--"]).arg(program);
    command
}
