//! The benchmarks: Trunkline, its peers and native I/O in one run, judged by `bench/bars.toml`.
//!
//! `cargo xtask bench` builds the server and this program and runs it. Every case starts its servers on one CPU and its client
//! on another, runs the contestants in turn for several rounds, and compares medians.
//!
//! | module | what |
//! |---|---|
//! | `cases` | who takes part in what |
//! | `stage` | servers, rounds, and what one round of a load measures |
//! | `ours`, `peer`, `native` | the data plane, qemu-storage-daemon, fio |
//! | `served` | the server with its control plane |
//! | `pools` | LUs of storage pools |
//! | `npiv`, `chart` | virtual Fibre Channel: one queue and many; plots |
//! | `neighbours` | a client that behaves, beside one that does not |
//! | `net` | frames between two clients, beside OVS on DPDK |
//! | `net_neighbours` | two clients that exchange frames, beside one that does not behave |
//! | `net_gso` | a stream of uncut frames, beside a bridge of the kernel |
//! | `idle`, `ring` | cases without a load |
//! | `sizing` | what `size calibrate` measures, and what it says of other loads |
//! | `control` | the control plane with a large state |
//! | `figure`, `bars` | figures, and judging them |
//! | `machine`, `report` | conditions, and what is written |
//!
//! The client is the load generator of the crate `partition`, for all servers the same; of `net` DPDK's testpmd. A control plane runs in `control` and `pools` only.

mod bars;
mod cases;
mod chart;
mod control;
mod figure;
mod idle;
mod machine;
mod native;
mod neighbours;
mod net;
mod net_gso;
mod net_neighbours;
mod npiv;
mod ours;
mod peer;
mod pools;
mod process;
mod report;
mod ring;
mod served;
mod sizing;
mod stage;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use rustix::thread::CpuSet;

use anyhow::{Context as _, Result, anyhow};
use bars::Judgement;
use report::{Played, Report};
use stage::Settled;

/// How long to look whether others use the machine.
const LOOK: Duration = Duration::from_millis(500);

/// Measure Trunkline, qemu-storage-daemon and fio in turn, and judge by bench/bars.toml
#[derive(Parser)]
#[command(name = "cargo xtask bench", max_term_width = 100)]
struct Arguments {
    /// Cases whose names begin like this; all of them when left out
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Print the names of the cases
    #[arg(long)]
    list: bool,
    /// Rounds of each contestant
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Length of a round's measurement
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    seconds: f64,
    /// Rounds of one second, three of them: to try things out, not to quote
    #[arg(long)]
    quick: bool,
    /// Write everything that was measured
    #[arg(long, value_name = "FILE")]
    json: Option<PathBuf>,
    /// Write the tables, between the marks of a document that has them
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// Write the tables of virtual Fibre Channel between their marks of a document, and their plots beside it
    #[arg(long, value_name = "FILE")]
    npiv: Option<PathBuf>,
    /// CPU of the client
    #[arg(long, default_value_t = 0, value_name = "CPU")]
    client_cpu: usize,
    /// CPU of the servers, and of fio
    #[arg(long, default_value_t = 1, value_name = "CPU")]
    server_cpu: usize,
    /// A folder in a tmpfs with 1 GiB free
    #[arg(long, default_value = "/dev/shm", value_name = "DIR")]
    tmpfs: PathBuf,
    /// A folder on a disk with 1 GiB free; a file stays there for the next run
    #[arg(long, default_value = "target/bench", value_name = "DIR")]
    disk: PathBuf,
    /// The server's program
    #[arg(long, default_value = "target/dist/trunkline", value_name = "FILE")]
    server: PathBuf,
    /// Play the client of a bridge for so many seconds, after a tenth of that; what `net-gso` runs in a network namespace
    #[arg(long, hide = true, value_name = "SECONDS")]
    bridge: Option<f64>,
    /// The bars
    #[arg(long, default_value = "bench/bars.toml", value_name = "FILE")]
    bars: PathBuf,
}

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        // Missed bars are a result, told apart from a run that failed.
        Ok(false) => ExitCode::from(2),
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &Arguments) -> Result<bool> {
    let cases = cases::select(&arguments.cases)?;
    if arguments.list {
        cases.iter().for_each(|case| println!("{:<22} {}", case.name, case.title));
        return Ok(true);
    }
    if let Some(seconds) = arguments.bridge {
        return net_gso::play_bridge(Duration::from_secs_f64(seconds)).map(|()| true);
    }
    let bars = bars::read(&arguments.bars)?;
    let settled = settle(arguments)?;
    let mut report = Report {
        command: command(),
        rounds: settled.rounds,
        seconds_per_round: settled.duration.as_secs_f64(),
        machine: machine::Machine::describe(&settled),
        note: npiv::note(&settled),
        cpus: (settled.server_cpus.len(), settled.client_cpus.len()),
        cases: Vec::new(),
    };
    for case in cases {
        let others_percent = machine::others_percent(LOOK)?;
        println!("{}: {}", case.name, case.title);
        if others_percent > report::QUIET_PERCENT {
            println!("  others use {others_percent:.0} % of a CPU: figures are indicative only");
        }
        let series = case.run(&settled)?;
        let verdicts = bars::judge(&bars, &case.name, &series);
        let (name, title) = (case.name, case.title);
        let played = Played { name, title, others_percent, series, verdicts };
        print!("{}", report::summary(&played));
        report.cases.push(played);
        // After every case, so that a run that is stopped leaves what it has.
        write(arguments, &report)?;
    }
    let tables = npiv::tables(&report.cases);
    if !tables.is_empty() {
        println!("{tables}\n{}", npiv::note(&settled));
    }
    let count = |judgement| {
        let verdicts = report.cases.iter().flat_map(|case| &case.verdicts);
        verdicts.filter(|verdict| verdict.judgement == judgement).count()
    };
    let [met, missed, unsteady, unmeasured] =
        [Judgement::Met, Judgement::Missed, Judgement::Unsteady, Judgement::Unmeasured].map(count);
    println!(
        "{met} bars met, {missed} missed, {unsteady} not judged because rounds differ too much, {unmeasured} not judged because nothing was measured"
    );
    Ok(missed + unsteady + unmeasured == 0)
}

fn write(arguments: &Arguments, report: &Report) -> Result<()> {
    if let Some(path) = &arguments.json {
        report.write_json(path)?;
    }
    if let Some(path) = &arguments.markdown {
        report.write_markdown(path)?;
    }
    if let Some(path) = &arguments.npiv {
        report.write_npiv(path)?;
    }
    Ok(())
}

fn settle(arguments: &Arguments) -> Result<Settled> {
    let seconds = |value: f64| {
        Duration::try_from_secs_f64(value).with_context(|| format!("--seconds {value}"))
    };
    std::fs::create_dir_all(&arguments.disk)
        .with_context(|| format!("cannot make {}", arguments.disk.display()))?;
    if !arguments.server.exists() {
        let path = arguments.server.display();
        return Err(anyhow!("{path} is missing: cargo build --profile dist -p trunkline"));
    }
    let (client_cpus, server_cpus) = halves(arguments)?;
    pin(arguments.client_cpu)?;
    Ok(Settled {
        server: std::path::absolute(&arguments.server).context("--server")?,
        client_cpu: arguments.client_cpu,
        server_cpu: arguments.server_cpu,
        client_cpus,
        server_cpus,
        rounds: if arguments.quick { 3 } else { usize::from(arguments.rounds) },
        warm_up: Duration::from_millis(if arguments.quick { 200 } else { 500 }),
        duration: if arguments.quick { seconds(1.0)? } else { seconds(arguments.seconds)? },
        idle: Duration::from_secs(if arguments.quick { 5 } else { 20 }),
        tmpfs: arguments.tmpfs.clone(),
        disk: std::path::absolute(&arguments.disk).context("--disk")?,
    })
}

/// CPUs for clients and for the server where a case can use several: half of them each, one each on a machine with two.
fn halves(arguments: &Arguments) -> Result<(Vec<usize>, Vec<usize>)> {
    let allowed = rustix::thread::sched_getaffinity(None).context("cannot ask for the CPUs")?;
    let named = [arguments.client_cpu, arguments.server_cpu];
    let free = |cpu: &usize| allowed.is_set(*cpu) && !named.contains(cpu);
    let others: Vec<usize> = (0..CpuSet::MAX_CPU).filter(free).collect();
    let (clients, servers) = others.split_at(others.len() / 2);
    let with = |first, rest: &[usize]| [&[first], rest].concat();
    Ok((with(arguments.client_cpu, clients), with(arguments.server_cpu, &servers[..clients.len()])))
}

/// This process supervises the client and stays off the server's CPU.
fn pin(cpu: usize) -> Result<()> {
    let mut set = CpuSet::new();
    if cpu >= CpuSet::MAX_CPU {
        return Err(anyhow!("--client-cpu {cpu}: there is no such CPU"));
    }
    set.set(cpu);
    rustix::thread::sched_setaffinity(None, &set)
        .with_context(|| format!("cannot run on CPU {cpu} (--client-cpu)"))
}

/// What the user typed; paths of the build that `cargo xtask` adds are left out.
fn command() -> String {
    let mut words = vec!["cargo xtask bench".to_owned()];
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        if ["--server", "--bars", "--disk"].contains(&argument.as_str()) {
            arguments.next();
        } else {
            words.push(argument);
        }
    }
    words.join(" ")
}
