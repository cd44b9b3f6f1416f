//! `trunkline bench scale`: what more channels bring on this machine.
//!
//! Needs nothing but this program: each measurement starts a data plane of its own as a child process, with as many
//! channels as are measured, one volume, and one adapter with as many queues as channels. The server has one half of the
//! CPUs, the clients the other; each queue has a thread and a CPU of its own on both sides. Rounds go over all numbers of
//! channels in turn, so that a machine that becomes slower meanwhile does so for all of them; the median of the rounds counts.

mod plane;
mod table;

use super::args::{CpuList, Wait, block_size, cpu_list, time};
use super::cpus::{self, Side};
use crate::cli::Global;
use crate::exit::Failure;
use crate::output::print;
use crate::progress::Bar;
use crate::scratch::Scratch;
use clap::{Args, ValueEnum};
use control::error::ApiError;
use partition::load::{self, LoadOptions, Report};
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
With two CPUs only one channel can be measured: the client needs the other one.

Examples:
  trunkline bench scale
  trunkline bench scale --volume ram --mix 70 --depth 64
  trunkline bench scale --channels 1,2,4,8,16 --server-cpus 0-15 --client-cpus 16-31 -o json";

/// What holds the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum Volume {
    /// Nothing: what the way to the volume costs
    Null,
    /// Memory: each request moves its data
    Ram,
}

/// How channels wait.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
enum ServerWait {
    /// Always looking
    Poll,
    /// Looking while that pays, then asleep
    Adaptive,
    /// Asleep whenever there is nothing to do
    Interrupt,
}

/// `trunkline bench scale`
#[derive(Debug, Args)]
pub(super) struct ScaleArgs {
    /// Numbers of channels to measure
    #[arg(long, value_delimiter = ',', default_value = "1,2,4,8", value_name = "LIST",
        value_parser = clap::value_parser!(u16).range(1..=256))]
    channels: Vec<u16>,
    /// What holds the data
    #[arg(long, value_enum, default_value = "null", value_name = "KIND")]
    volume: Volume,
    /// How long to measure each number in each round
    #[arg(long, default_value = "2s", value_name = "TIME", value_parser = time)]
    time: Duration,
    /// How long to run before measuring
    #[arg(long, default_value = "300ms", value_name = "TIME", value_parser = time)]
    warm_up: Duration,
    /// How often to go over all numbers; the median counts
    #[arg(long, default_value_t = 3, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: u16,
    /// Requests outstanding in each queue
    #[arg(long, default_value_t = 32, value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=1024))]
    depth: u16,
    /// Size of one request
    #[arg(long, default_value = "4KiB", value_name = "SIZE", value_parser = block_size)]
    size: u32,
    /// Percent of the requests that are reads; the others are writes
    #[arg(long, default_value_t = 100, value_name = "PERCENT",
        value_parser = clap::value_parser!(u8).range(0..=100))]
    mix: u8,
    /// How clients wait for completions; sleeping ones also cost the server the notifications
    #[arg(long, value_enum, default_value = "poll", value_name = "MODE")]
    wait: Wait,
    /// How channels wait for requests
    #[arg(long, value_enum, default_value = "adaptive", value_name = "MODE")]
    server_wait: ServerWait,
    /// CPUs of the server, such as `0-7` [default: one half of the cores]
    #[arg(long, value_name = "CPUS", value_parser = cpu_list, requires = "client_cpus")]
    server_cpus: Option<CpuList>,
    /// CPUs of the clients [default: the other half]
    #[arg(long, value_name = "CPUS", value_parser = cpu_list, requires = "server_cpus")]
    client_cpus: Option<CpuList>,
    /// Measure numbers too for which there are too few CPUs: several threads then share one
    #[arg(long)]
    oversubscribe: bool,
}

/// What was found out.
#[derive(Debug, Serialize)]
struct Scaling {
    version: &'static str,
    /// Model of the processor, where the system tells.
    processor: Option<String>,
    server_cpus: Vec<usize>,
    client_cpus: Vec<usize>,
    volume: Volume,
    server_wait: ServerWait,
    rounds: u16,
    options: LoadOptions,
    points: Vec<Point>,
    not_measured: Vec<Missing>,
}

/// One number of channels: medians over the rounds.
#[derive(Debug, Serialize)]
struct Point {
    channels: u16,
    iops: f64,
    iops_min: f64,
    iops_max: f64,
    /// Against the smallest number of channels that was measured: 1 is linear.
    efficiency: f64,
    server_cpu_ns_per_io: f64,
    client_cpu_ns_per_io: f64,
    p50_ns: u64,
    p99_ns: u64,
    /// Whether channels or clients had to share a core or a CPU.
    shares_cores: bool,
}

/// A number of channels for which there are too few CPUs.
#[derive(Debug, Serialize)]
struct Missing {
    channels: u16,
    reason: String,
}

/// Runs it.
pub(super) fn run(global: &Global, args: &ScaleArgs) -> Result<(), Failure> {
    let (server, clients) = sides(args)?;
    let (wanted, not_measured) = choose(args, &server, &clients);
    if wanted.is_empty() {
        let reasons: Vec<String> =
            not_measured.iter().map(|m| format!("{} channels: {}", m.channels, m.reason)).collect();
        let refusal = ApiError::invalid(format!("nothing to measure; {}", reasons.join("; ")));
        return Err(refusal.help("--oversubscribe measures them with what there is").into());
    }
    let parent = global.dir.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = Scratch::new(&parent, "scale")?;
    let mut runs: BTreeMap<u16, Vec<Report>> = BTreeMap::new();
    let mut bar = Bar::new(wanted.len() * usize::from(args.rounds));
    for round in 1..=args.rounds {
        for &channels in &wanted {
            let what = format!("round {round} of {}, channels {channels}", args.rounds);
            bar.begin(&what);
            let report = measure(args, channels, (&server, &clients), &scratch, |progress| {
                bar.show(&what, progress);
            })
            .map_err(|error| Failure::other(format!("{what}: {error}{}", scratch.keep_logs())))?;
            runs.entry(channels).or_default().push(report);
            bar.done();
        }
    }
    drop(bar);
    let scaling = Scaling {
        version: env!("CARGO_PKG_VERSION"),
        processor: processor(),
        volume: args.volume,
        server_wait: args.server_wait,
        rounds: args.rounds,
        options: options(args, 1, &clients, None),
        points: points(&runs, &server, &clients),
        not_measured,
        server_cpus: server.cpus,
        client_cpus: clients.cpus,
    };
    print(global, &scaling, table::page)
}

fn sides(args: &ScaleArgs) -> Result<(Side, Side), Failure> {
    let (Some(server), Some(clients)) = (&args.server_cpus, &args.client_cpus) else {
        return Ok(cpus::halves());
    };
    let allowed = cpus::allowed();
    for cpu in server.0.iter().chain(&clients.0) {
        if !allowed.contains(cpu) {
            let text = format!("--server-cpus, --client-cpus: CPU {cpu} cannot be used");
            return Err(ApiError::invalid(text).into());
        }
    }
    Ok((Side::chosen(server.0.clone()), Side::chosen(clients.0.clone())))
}

/// The numbers for which there are CPUs, ascending, and why the others are left out.
fn choose(args: &ScaleArgs, server: &Side, clients: &Side) -> (Vec<u16>, Vec<Missing>) {
    let room = server.cpus.len().min(clients.cpus.len());
    let mut wanted = args.channels.clone();
    wanted.sort_unstable();
    wanted.dedup();
    let fits = |channels: &u16| args.oversubscribe || usize::from(*channels) <= room;
    let (fitting, others): (Vec<u16>, Vec<u16>) = wanted.into_iter().partition(fits);
    let missing = others.into_iter().map(|channels| Missing {
        channels,
        reason: format!(
            "needs {channels} CPUs for the server and as many for the clients; they have {} and {}",
            server.cpus.len(),
            clients.cpus.len()
        ),
    });
    (fitting, missing.collect())
}

fn options(args: &ScaleArgs, channels: u16, clients: &Side, pid: Option<u32>) -> LoadOptions {
    LoadOptions {
        queues: channels,
        depth: args.depth,
        read_percent: args.mix,
        block_bytes: args.size,
        duration: args.time,
        warm_up: args.warm_up,
        wait: args.wait.into(),
        cpus: clients.cpus.clone(),
        server_pid: pid,
        ..LoadOptions::default()
    }
}

fn measure(
    args: &ScaleArgs,
    channels: u16,
    (server, clients): (&Side, &Side),
    scratch: &Scratch,
    mut progress: impl FnMut(&load::Progress),
) -> Result<Report, Failure> {
    let plane = plane::Plane::start(scratch, args, channels, server)?;
    let options = options(args, channels, clients, Some(plane.pid));
    let report = load::run(&plane.socket, &options, &mut progress);
    plane.end();
    let report = report.map_err(|error| super::failure(&error))?;
    match report.failures.first() {
        Some(failure) => Err(Failure::other(failure)),
        None => Ok(report),
    }
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    match values.len() {
        0 => 0.0,
        n if n % 2 == 1 => values[n / 2],
        n => (values[n / 2 - 1] + values[n / 2]) / 2.0,
    }
}

fn points(runs: &BTreeMap<u16, Vec<Report>>, server: &Side, clients: &Side) -> Vec<Point> {
    let over = |reports: &[Report], value: fn(&Report) -> f64| {
        median(reports.iter().map(value).collect::<Vec<f64>>())
    };
    let iops = |reports: &[Report]| over(reports, |report| report.iops);
    let each_of_fewest =
        runs.first_key_value().map_or(0.0, |(fewest, runs)| iops(runs) / f64::from(*fewest));
    let point = |(&channels, reports): (&u16, &Vec<Report>)| {
        let all = reports.iter().map(|report| report.iops);
        let linear = each_of_fewest * f64::from(channels);
        Point {
            channels,
            iops: iops(reports),
            iops_min: all.clone().fold(f64::INFINITY, f64::min),
            iops_max: all.fold(0.0, f64::max),
            efficiency: if linear > 0.0 { iops(reports) / linear } else { 0.0 },
            server_cpu_ns_per_io: over(reports, |report| {
                report.server_cost.as_ref().map_or(0.0, |cost| cost.cpu_ns_per_io)
            }),
            client_cpu_ns_per_io: over(reports, |report| report.client.cpu_ns_per_io),
            // Nanoseconds are far below 2^53.
            p50_ns: over(reports, |report| report.latency.p50_ns as f64) as u64,
            p99_ns: over(reports, |report| report.latency.p99_ns as f64) as u64,
            shares_cores: usize::from(channels) > server.cores.min(clients.cores)
                || server.cpus.iter().any(|cpu| clients.cpus.contains(cpu)),
        }
    };
    runs.iter().map(point).collect()
}

/// The processor's name.
fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    Some(line.split_once(':')?.1.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn medians() {
        assert_eq!(median(vec![]), 0.0);
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0]), 2.5);
    }
}
