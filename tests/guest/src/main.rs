//! End-to-end tests: real Linux guests under QEMU (software emulation, so that they run anywhere) with disks served
//! over vhost-user.
//!
//! `cargo xtask test --only guest` builds the server and runs every scenario; `cargo run -p guest -- --list` names them.
//! Scenarios run one after the other, each in its own temporary folder with its own server, and none leaves a process
//! behind. A scenario that fails prints what the guest and the server said.

mod bios;
mod command;
mod conformance;
mod cpio;
mod kernel;
mod kit;
mod machine;
mod packages;
mod qmp;
mod scenario;
mod server;
mod trunkline;

use std::path::PathBuf;
use std::process::ExitCode;
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
    /// Name the scenarios and end.
    #[arg(long)]
    list: bool,
    /// Run only scenarios whose name contains one of these.
    filters: Vec<String>,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let wanted = |name: &str| {
        arguments.filters.is_empty() || arguments.filters.iter().any(|part| name.contains(part))
    };
    let chosen: Vec<_> = scenario::ALL.iter().filter(|scenario| wanted(scenario.name)).collect();
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
    let mut failed = Vec::new();
    for scenario in &chosen {
        println!("{:<24} {}", scenario.name, scenario.about);
        let started = Instant::now();
        let outcome = (scenario.run)(&world);
        let seconds = started.elapsed().as_secs_f64();
        match outcome {
            Ok(()) => println!("{:<24} passed in {seconds:.1} s", ""),
            Err(error) => {
                println!("{:<24} FAILED after {seconds:.1} s\n{error:#}", "");
                failed.push(scenario.name);
            }
        }
    }
    println!(
        "{} guest scenarios passed, {} failed {failed:?}",
        chosen.len() - failed.len(),
        failed.len()
    );
    if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}
