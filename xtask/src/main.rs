//! Developer tasks. `cargo xtask test` is the one command that passes everything; the others are its parts.

mod bench;
mod cost;
mod deny;
mod fuzz;
mod layers;
mod loom;
mod metadata;
mod run;
mod sim;
mod spdx;
mod stall;
mod steps;
mod tidy;
mod tools;
mod torture;

use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Trunkline's developer tasks.
#[derive(Parser)]
#[command(name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Run all tests, from formatting to Linux guests; stops at the first step that fails.
    Test(steps::Selection),
    /// Measure the server, its peers and native I/O in one run; `bench --help` has the options.
    Bench(bench::Arguments),
    /// Count the instructions of hot paths against bench/budgets.toml.
    Cost {
        /// Print what was counted as JSON, and judge nothing.
        #[arg(long)]
        json: bool,
    },
    /// Check who depends on whom, and where unsafe code may stand.
    Layers,
    /// Compile the pure crates for a browser (wasm32-unknown-unknown); rustup adds the target if it is not there.
    Wasm,
    /// Check licences and sources of all dependencies, and what the data path must not depend on.
    Deny,
    /// Check file sizes and that paths named in the documents exist.
    Tidy,
    /// Run one fuzz target for a while.
    Fuzz {
        /// As in fuzz/Cargo.toml; all of them when left out.
        target: Option<String>,
        /// For how long each.
        #[arg(long, default_value_t = 60)]
        seconds: u32,
    },
    /// Run the simulator; `cargo xtask sim --help` has its options.
    #[command(disable_help_flag = true)]
    Sim {
        /// As the simulator takes them.
        #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
        arguments: Vec<String>,
    },
    /// Run the long form of a test.
    Torture(torture::Arguments),
    /// Build the server and run guest scenarios whose names contain one of these words.
    Guest {
        /// Words; none runs all scenarios.
        filters: Vec<String>,
    },
}

fn main() -> ExitCode {
    let outcome = run::Context::discover().and_then(|context| match Arguments::parse().task {
        Task::Test(selection) => steps::run(&context, &selection),
        Task::Bench(arguments) => bench::run(&context, &arguments),
        Task::Cost { json: true } => cost::print_json(&context),
        Task::Cost { json: false } => cost::check(&context),
        Task::Layers => layers::check(&context),
        Task::Wasm => layers::wasm(&context),
        Task::Deny => deny::check(&context),
        Task::Tidy => tidy::check(&context),
        Task::Fuzz { target, seconds } => {
            let targets = target.as_deref().map_or(fuzz::Targets::All, fuzz::Targets::One);
            fuzz::run(&context, targets, seconds)
        }
        Task::Torture(arguments) => torture::run(&context, &arguments),
        Task::Sim { arguments } => sim::run(&context, &arguments),
        Task::Guest { filters } => steps::guest(&context, steps::Server::Released, true, &filters),
    });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}
