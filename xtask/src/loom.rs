//! Runs the loom models: every hand-over between threads, under all interleavings.
//!
//! A crate takes part by a feature `loom`, which swaps its atomics and locks for loom's. Its models are integration tests in
//! `tests/loom*.rs`. As for the simulator, the whole workspace is named, so that all that the feature does not touch is what the tests have.

use std::process::Command;

use crate::run::{self, Context};
use anyhow::{Result, anyhow};

/// Builds the models of every crate that has some.
pub(crate) fn build(context: &Context) -> Result<()> {
    run::visible(command(context)?.arg("--no-run"))
}

/// Runs them.
pub(crate) fn run(context: &Context) -> Result<()> {
    let models = count(&run::captured(&mut command(context)?)?);
    if models == 0 {
        return Err(anyhow!("the crates with a feature `loom` have no model"));
    }
    println!("{models} models hold");
    Ok(())
}

fn command(context: &Context) -> Result<Command> {
    let features: Vec<String> = context
        .metadata
        .members()
        .filter(|member| member.dependencies.iter().any(|needed| needed.name == "loom"))
        .map(|member| format!("{}/loom", member.name))
        .collect();
    if features.is_empty() {
        return Err(anyhow!(
            "no crate depends on loom: the hand-overs between threads have no models"
        ));
    }
    let mut cargo = context.cargo(&["test", "--workspace", "--locked", "--test", "loom*"]);
    cargo.args(["--features", &features.join(",")]);
    Ok(cargo)
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
