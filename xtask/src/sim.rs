//! Builds and runs the simulator: the data path on a simulated kernel, and the control plane, one seed after the other.
//!
//! It is a workspace of its own with a target folder of its own, since `--cfg sim` puts another kernel and another clock below the crates.

use std::process::Command;

use crate::run::{self, Context};
use anyhow::Result;

/// Seeds of a run of all tests, and how many a control may take at most.
const SEEDS: &str = "2000";
/// Those of the control plane, where a run takes longer.
const CONTROL_SEEDS: &str = "500";

/// Lints and tests it, runs its seeds, and has every control found.
pub(crate) fn step(context: &Context) -> Result<()> {
    run::visible(cargo(context, &["clippy"]).args(["--all-targets", "--", "-D", "warnings"]))?;
    run::visible(&mut cargo(context, &["test", "--release"]))?;
    // Linked as one it takes minutes longer to build, which so few seeds do not give back.
    let run = |arguments: &[&str]| {
        let arguments = arguments.iter().chain(&["--jobs", "0"]);
        run::visible(cargo(context, &["run", "--release", "--quiet"]).arg("--").args(arguments))
    };
    run(&["--seeds", SEEDS])?;
    run(&["--seeds", SEEDS, "--control", "all"])?;
    run(&["--part", "control", "--seeds", CONTROL_SEEDS])?;
    run(&["--part", "control", "--seeds", SEEDS, "--control", "all"])
}

/// Runs it with these arguments.
pub(crate) fn run(context: &Context, arguments: &[String]) -> Result<()> {
    run::visible(cargo(context, &["run", "--profile", "dist", "--quiet"]).arg("--").args(arguments))
}

fn cargo(context: &Context, arguments: &[&str]) -> Command {
    let mut cargo = context.cargo(arguments);
    cargo.args(["--locked", "--manifest-path"]).arg(context.root.join("sim/Cargo.toml"));
    cargo.arg("--target-dir").arg(context.target.join("sim")).env("RUSTFLAGS", "--cfg sim");
    cargo
}
