//! End-to-end tests: real Linux guests under QEMU (software emulation, so that they run anywhere) with disks served
//! over vhost-user.
//!
//! `cargo xtask test --only guest` builds the server and runs the usual scenarios, with `--long` all; `cargo run -p guest -- --all --list` names them.
//! As many scenarios run at a time as there are CPUs, since a guest mostly waits; each has its own temporary folder and its own
//! server, and none leaves a process behind. A scenario that fails prints what the guest and the server said.

mod bios;
mod command;
mod conformance;
mod cpio;
mod kernel;
mod kit;
mod machine;
mod packages;
mod qemu;
mod qmp;
mod scenario;
mod server;
mod trunkline;

use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Mutex;
use std::thread;
use std::time::Instant;

use clap::Parser;

/// Boots Linux guests on a Trunkline server and checks what they see.
#[derive(Parser)]
struct Arguments {
    /// The server's binary.
    #[arg(long, default_value = "target/release/trunkline")]
    server: PathBuf,
    /// Where the kernel and the initramfs are kept between runs.
    #[arg(long, default_value = "target/guest")]
    cache: PathBuf,
    /// Those as well that take long and are like others.
    #[arg(long)]
    all: bool,
    /// Name the scenarios and end.
    #[arg(long)]
    list: bool,
    /// Scenarios that run at a time; as many as there are CPUs if it is not given.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Run only scenarios whose name contains one of these, of all that there are.
    filters: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let named = !arguments.filters.is_empty();
    let wanted = |name: &str| !named || arguments.filters.iter().any(|part| name.contains(part));
    let more = if arguments.all || named { scenario::MORE } else { &[] };
    let all = scenario::USUAL.iter().chain(more);
    let chosen: Vec<_> = all.filter(|scenario| wanted(scenario.name)).collect();
    if arguments.list {
        for scenario in chosen {
            println!("{:<24} {}", scenario.name, scenario.about);
        }
        return ExitCode::SUCCESS;
    }
    if chosen.is_empty() {
        eprintln!("no scenario is named like {:?}; --list names them", arguments.filters);
        return ExitCode::FAILURE;
    }
    let started = Instant::now();
    let kit = match kit::Kit::prepare(&arguments.cache) {
        Ok(kit) => kit,
        Err(error) => {
            eprintln!("cannot prepare the guest: {error:#}");
            return ExitCode::FAILURE;
        }
    };
    println!("kernel and initramfs ready in {:.1} s", started.elapsed().as_secs_f64());
    let world = scenario::World { kit, server: arguments.server };
    let jobs = arguments
        .jobs
        .map_or_else(|| thread::available_parallelism().map_or(1, usize::from), usize::from);
    let left = Mutex::new(chosen.iter());
    let failed = Mutex::new(Vec::new());
    let work = || {
        loop {
            // A statement of its own, so that the lock is not held while the scenario runs.
            let next = left.lock().expect("no thread panics while it holds this").next();
            let Some(scenario) = next else { break };
            if !passes(scenario, &world) {
                failed.lock().expect("no thread panics while it holds this").push(scenario.name);
            }
        }
    };
    thread::scope(|scope| {
        for _ in 0..jobs {
            scope.spawn(work);
        }
    });
    let failed = failed.into_inner().expect("every thread ended by itself");
    println!(
        "{} guest scenarios passed, {} failed {failed:?}",
        chosen.len() - failed.len(),
        failed.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs it and prints at its end, in one piece, what it was and how it went.
fn passes(scenario: &scenario::Scenario, world: &scenario::World) -> bool {
    let started = Instant::now();
    let outcome = (scenario.run)(world);
    let seconds = started.elapsed().as_secs_f64();
    let said = match &outcome {
        Ok(()) => format!("passed in {seconds:.1} s"),
        Err(error) => format!("FAILED after {seconds:.1} s\n{error:#}"),
    };
    println!("{:<24} {}\n{:<24} {said}", scenario.name, scenario.about, "");
    outcome.is_ok()
}
