//! `cargo xtask bench`: builds the server and the benchmarks with optimisation and runs them.
//!
//! The benchmarks are a program of their own (`bench/`), so that the tasks here are built without the crates of the data path.

use std::process::Stdio;

use clap::Args;

use crate::run::{self, Context};
use anyhow::{Context as _, Result, anyhow};

/// Everything is the benchmarks' own affair, `--help` too.
#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    /// Cases and options; `--help` prints them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, value_name = "ARGUMENTS")]
    arguments: Vec<String>,
}

/// Builds and runs. Missed bars are told by an exit status of their own, which counts as a failure here.
pub(crate) fn run(context: &Context, arguments: &Arguments) -> Result<()> {
    run::visible(&mut context.cargo(&[
        "build",
        "--profile",
        "dist",
        "--locked",
        "-p",
        "trunkline",
        "-p",
        "bench",
    ]))?;
    let mut bench = context.command(context.target.join("dist/bench"));
    // First, so that what the user says comes later and holds.
    bench.arg("--server").arg(context.target.join("dist/trunkline"));
    bench.arg("--bars").arg(context.root.join("bench/bars.toml"));
    bench.arg("--disk").arg(context.target.join("bench"));
    bench.args(&arguments.arguments).stdin(Stdio::null());
    let status = bench.status().context("cannot run the benchmarks")?;
    match status.code() {
        Some(0) => Ok(()),
        Some(2) => Err(anyhow!("bars were missed, or could not be judged")),
        _ => Err(anyhow!("the benchmarks ended with {status}")),
    }
}
