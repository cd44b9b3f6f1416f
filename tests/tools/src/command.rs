//! Running host programs to their end.

use std::process::{Command, Stdio};

/// Runs a program and returns what it wrote to stdout.
///
/// # Errors
///
/// It cannot be run, or fails: then with its stderr.
pub fn output(command: &mut Command) -> Result<Vec<u8>, String> {
    let name = format!("{command:?}");
    let done = command
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("cannot run {name}: {error}"))?;
    if done.status.success() {
        return Ok(done.stdout);
    }
    let stderr = String::from_utf8_lossy(&done.stderr);
    Err(format!("{name} failed with {}\n{}", done.status, stderr.trim_end()))
}

/// As [`output`], for programs that print text.
///
/// # Errors
///
/// As there.
pub fn text(command: &mut Command) -> Result<String, String> {
    Ok(String::from_utf8_lossy(&output(command)?).into_owned())
}
