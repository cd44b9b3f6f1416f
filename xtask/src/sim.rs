//! Builds and runs the simulator: the data path on a simulated kernel, and the control plane, one seed after the other.
//!
//! Its feature puts another kernel and another clock below the crates that it runs, so that these are built once more. Always the whole
//! workspace is named, with what tests ask of the libraries: so all else is what the tests have.

use std::process::Command;

use crate::run::{self, Context};
use anyhow::Result;

/// Seeds of a run of all tests, and how many a control may take at most.
const SEEDS: &str = "2000";
/// Those of the control plane, where a run takes longer.
const CONTROL_SEEDS: &str = "500";
/// Those of disks that are LUs of pools, likewise.
const POOL_SEEDS: &str = "100";

/// Lints it, and what it runs.
pub(crate) fn clippy(context: &Context) -> Result<()> {
    run::visible(cargo(context, "clippy").args(["--", "-D", "warnings"]))
}

/// Builds it with its tests.
pub(crate) fn build(context: &Context) -> Result<()> {
    run::visible(cargo(context, "test").arg("--no-run"))
}

/// Tests it, runs its seeds, and has every control found.
pub(crate) fn step(context: &Context) -> Result<()> {
    run::visible(&mut cargo(context, "test"))?;
    let program = context.target.join("debug/trunkline-sim");
    let run = |arguments: &[&str]| {
        run::visible(context.command(&program).args(arguments).args(["--jobs", "0"]))
    };
    run(&["--seeds", SEEDS])?;
    run(&["--seeds", SEEDS, "--control", "all"])?;
    run(&["--part", "pool", "--seeds", POOL_SEEDS])?;
    run(&["--part", "pool", "--seeds", SEEDS, "--control", "all"])?;
    run(&["--part", "control", "--seeds", CONTROL_SEEDS])?;
    run(&["--part", "control", "--seeds", SEEDS, "--control", "all"])
}

/// Runs it with these arguments, linked as one, which many seeds give back.
pub(crate) fn run(context: &Context, arguments: &[String]) -> Result<()> {
    let mut cargo = context.cargo(&["run", "--profile", "sim", "--quiet", "--locked"]);
    cargo.args(["-p", "trunkline-sim", "--features", "sim", "--bin", "trunkline-sim", "--"]);
    run::visible(cargo.args(arguments))
}

fn cargo(context: &Context, what: &str) -> Command {
    let mut cargo = context.cargo(&[what, "--workspace", "--locked"]);
    cargo.args([
        "--features",
        "trunkline-sim/sim",
        "--bin",
        "trunkline-sim",
        "--test",
        "simulator",
    ]);
    cargo
}
