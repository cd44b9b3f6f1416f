//! Debian's packages, fetched and unpacked without being installed.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::command::{output, text};

/// The version of a package that apt would fetch.
///
/// # Errors
///
/// apt knows none.
pub fn candidate_version(package: &str) -> Result<String, String> {
    let policy = text(Command::new("apt-cache").args(["policy", package]))?;
    let candidate = policy.lines().find_map(|line| line.trim().strip_prefix("Candidate: "));
    let known = candidate.filter(|version| *version != "(none)").map(str::to_owned);
    known.ok_or_else(|| format!("apt knows no version of {package}; run apt-get update"))
}

/// Unpacks all packages of a folder into another, and removes them.
///
/// # Errors
///
/// What could not be read, unpacked or removed.
pub fn unpack_all(home: &Path, root: &Path) -> Result<(), String> {
    let entries =
        fs::read_dir(home).map_err(|error| format!("cannot list the packages: {error}"))?;
    for entry in entries {
        let path = entry.map_err(|error| format!("cannot list the packages: {error}"))?.path();
        if path.extension().is_some_and(|it| it == "deb") {
            output(Command::new("dpkg-deb").arg("-x").arg(&path).arg(root))?;
            fs::remove_file(&path)
                .map_err(|error| format!("cannot remove an unpacked package: {error}"))?;
        }
    }
    Ok(())
}
