//! Runs the loom models: every hand-over between threads, under all interleavings.
//!
//! A crate takes part by depending on `loom`. Its models are unit tests whose path contains `loom`, or integration tests
//! in `tests/loom*.rs`. They are built with `--cfg loom`, which swaps the crate's atomics, so they have a target folder of
//! their own; and with optimisation, since a model runs many thousand times.

use std::path::Path;
use std::process::Command;

use crate::run::{self, Context};
use anyhow::{Result, anyhow};

/// Runs the models of every crate that has some.
pub(crate) fn run(context: &Context) -> Result<()> {
    let crates: Vec<_> = context
        .metadata
        .members()
        .filter(|member| member.dependencies.iter().any(|needed| needed.name == "loom"))
        .collect();
    if crates.is_empty() {
        return Err(anyhow!(
            "no crate depends on loom: the hand-overs between threads have no models"
        ));
    }
    for member in crates {
        let folder = member.manifest_path.parent().unwrap_or(&context.root);
        let mut models = 0;
        if folder.join("src/lib.rs").exists() {
            models +=
                count(&run::captured(command(context, &member.name, &["--lib"]).arg("loom"))?);
        }
        for test in loom_tests(folder) {
            models +=
                count(&run::captured(&mut command(context, &member.name, &["--test", &test]))?);
        }
        if models == 0 {
            return Err(anyhow!("{} depends on loom and has no model", member.name));
        }
        println!("{}: {models} models hold", member.name);
    }
    Ok(())
}

fn command(context: &Context, package: &str, target: &[&str]) -> Command {
    let mut cargo = context.cargo(&["test", "-p", package]);
    cargo.args(target).arg("--target-dir").arg(context.target.join("loom")).arg("--");
    cargo.env("RUSTFLAGS", "--cfg loom").env("CARGO_PROFILE_DEV_OPT_LEVEL", "3");
    cargo
}

fn loom_tests(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder.join("tests")).into_iter().flatten().flatten();
    let stems = entries.filter_map(|entry| Some(entry.path().file_stem()?.to_str()?.to_owned()));
    stems.filter(|stem| stem.starts_with("loom")).collect()
}

/// Sums the tests that passed, from the harness's own lines "test result: ok. 3 passed; ...".
fn count(output: &str) -> usize {
    output
        .lines()
        .filter_map(|line| {
            line.strip_prefix("test result: ok. ")?.split(' ').next()?.parse::<usize>().ok()
        })
        .sum()
}

#[cfg(test)]
mod tests {
    #[test]
    fn passed_tests_are_counted() {
        let output = "running 2 tests\ntest result: ok. 2 passed; 0 failed;\n\ntest result: ok. 1 passed; 0 failed;";
        assert_eq!(super::count(output), 3);
        assert_eq!(super::count("test result: FAILED. 2 passed; 1 failed"), 0);
    }
}
