//! `trunkline size calibrate`: what a shared Ethernet adapter costs on this host.
//!
//! Two clients of our own exchange frames through data planes of our own: one with a channel for both clients (`thread=0`), and one with a channel for
//! each (`thread=1`). What they carried and what CPU time that took is handed to `planner::size::calibration`, which has the tables.
//!
//! | module | what |
//! |---|---|
//! | [`plane`] | a data plane with a network and two cards |
//! | [`meter`] | CPU time of its threads, and the clock |

mod meter;
mod plane;

use super::show::{AnswerArgs, FactsArgs, has_format};
use crate::bench::args::{CpuList, cpu_list, time};
use crate::bench::cpus;
use crate::cli::Global;
use crate::exit::Failure;
use crate::output::put;
use crate::progress::Bar;
use crate::scratch::Scratch;
use clap::Args;
use control::error::{ApiError, Code};
use meter::{Clock, Meter};
use partition::traffic::{self, Moment, Requests, Stream, Tally, TrafficError, TrafficOptions};
use plane::Plane;
use planner::facts::Facts;
use planner::size::calibration::{
    Between, Calibration, Case, Check, Cost, Counted, Host, Load, Mix, Seen,
};
use std::path::{Path, PathBuf};
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
A data plane of its own serves two clients of its own over vhost-user sockets, without a running server and without rights. Measured are cycles for \
each byte of a stream (one way and both ways, MTU 1500 and 9000) and for each transaction (64 and 1024 bytes), with thread=0 (one channel serves both \
clients) and thread=1 (each has a channel, and every frame is handed over). With --uplink one of the two is the host behind a TAP, which is what a shared \
Ethernet adapter is for; system calls for each frame then cost more than everything else.

Counted is CPU time of the data plane, so that others may use the machine meanwhile; but on a quiet one the numbers are steadier. A cycle is CPU time times the \
clock. Where the system does not tell the clock, as on some virtual machines, --clock-ghz does; processors of this host are the same whatever it is.

--check then measures mixes that are not in the tables, and prints what sizing says of them beside what they took.

Examples:
  trunkline size calibrate
  trunkline size calibrate --quick --costs -
  unshare -Urn trunkline size calibrate --uplink --costs uplink.toml
  trunkline size calibrate --check --costs host7.toml -o json
  trunkline size sea --streaming 200 --transactions 5000 --measured sea-costs.toml";

/// Frames of a burst.
const WINDOW: u16 = 40;

/// A packet that is not cut: 45 segments of an MTU of 1500, and headers.
const UNCUT: u32 = 45 * 1448 + traffic::HEADERS;

/// Less says nothing.
const TIME_LEAST: Duration = Duration::from_millis(10);

/// Options of `size calibrate`.
#[derive(Debug, Args)]
pub(super) struct CalibrateArgs {
    /// Write the costs into this file, for `size sea --measured`; `-` prints them instead of the tables
    #[arg(long, value_name = "FILE", default_value = "sea-costs.toml")]
    costs: PathBuf,
    /// Replace the file if there is one
    #[arg(long)]
    force: bool,
    /// Three short rounds: to try it, not to size by
    #[arg(long)]
    quick: bool,
    /// How often to go over all loads; the median counts [default: 5, with --quick 3]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=1000))]
    rounds: Option<u16>,
    /// How long to measure each load in each round [default: 1s, with --quick 200ms]
    #[arg(long, value_name = "TIME", value_parser = time)]
    time: Option<Duration>,
    /// Measure between a client and the host by an uplink, a TAP that is made for it, in place of two clients; needs CAP_NET_ADMIN and CAP_NET_RAW
    #[arg(long)]
    uplink: bool,
    /// Measure this value of the attribute `thread` only [default: both]
    #[arg(long, value_name = "0|1", value_parser = clap::value_parser!(u8).range(0..=1))]
    thread: Option<u8>,
    /// Measure mixes too that are not in the tables, and hold what sizing says against them
    #[arg(long)]
    check: bool,
    /// The processor's clock [default: as the system tells it]
    #[arg(long, value_name = "GHZ")]
    clock_ghz: Option<f64>,
    /// CPUs of the data plane; it uses two [default: one half of the cores, and no less than two]
    #[arg(long, value_name = "CPUS", value_parser = cpu_list)]
    server_cpus: Option<CpuList>,
    /// The CPU of the clients [default: one of the other half]
    #[arg(long, value_name = "CPU")]
    client_cpu: Option<usize>,
    #[command(flatten)]
    answer: AnswerArgs,
    #[command(flatten)]
    facts: FactsArgs,
}

/// What is measured.
#[derive(Debug, Clone, Copy)]
enum Job {
    Case(Case),
    Mix(Mix),
}

impl Job {
    fn title(&self) -> String {
        match self {
            Job::Case(case) => case.title(),
            Job::Mix(mix) => mix.title(),
        }
    }

    fn threaded(&self) -> bool {
        match self {
            Job::Case(case) => case.threaded,
            Job::Mix(mix) => mix.threaded,
        }
    }

    /// What the clients exchange.
    fn flows(&self) -> (Option<Stream>, Option<Requests>) {
        let stream = |mtu, duplex, window| Some(Stream { packet: mtu, mtu, duplex, window });
        match *self {
            Job::Case(Case { load: Load::Stream { mtu, duplex }, .. }) => {
                (stream(mtu, duplex, WINDOW), None)
            }
            Job::Case(Case { load: Load::Uncut { duplex }, .. }) => {
                let stream = Stream { packet: UNCUT, mtu: 1500, duplex, window: WINDOW };
                (Some(stream), None)
            }
            Job::Case(Case { load: Load::Transactions { bytes }, .. }) => {
                (None, Some(Requests { bytes, window: WINDOW }))
            }
            Job::Mix(Mix { mtu, duplex, transaction_bytes, stream_percent, .. }) => {
                let packets = WINDOW * u16::from(stream_percent) / 100;
                let requests = Requests { bytes: transaction_bytes, window: WINDOW - packets };
                (stream(mtu, duplex, packets), Some(requests))
            }
        }
    }
}

/// How and where to measure.
struct Settled {
    rounds: u16,
    time: Duration,
    server: Vec<usize>,
    client: usize,
}

/// Measures, writes the file and prints the tables.
pub(super) fn main(global: &Global, args: &CalibrateArgs) -> Result<(), Failure> {
    has_format(global)?;
    // Before what takes minutes.
    check_file(args)?;
    let published = args.facts.read()?;
    let settled = settle(args)?;
    let mut clock = Clock::new(args.clock_ghz, &settled.server)?;
    let parent = global.dir.clone().unwrap_or_else(std::env::temp_dir);
    let scratch = Scratch::new(&parent, "calibrate")?;
    let measured = measure(args, &settled, &scratch, &mut clock).map_err(|error| match error {
        Failure::Refused(_) => error,
        other => Failure::other(format!("{other}{}", scratch.keep_logs())),
    })?;
    let host = Host {
        processor: meter::processor().unwrap_or_else(|| "an unknown processor".to_owned()),
        clock_hz: clock.hz(),
        clock_by: clock.by(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        server_cpus: settled.server.len(),
        between: if args.uplink { Between::ClientAndTap } else { Between::Clients },
    };
    let (costs, mixes, left_out) = measured;
    let mut calibration = Calibration::new(host, costs, published.clone());
    calibration.notes = notes(args, &settled);
    if left_out > 0 {
        calibration.notes.push(format!("{left_out} rounds lost frames, and were left out."));
    }
    let text = calibration.facts();
    let mut facts = published;
    facts.extend(&text).map_err(|error| Failure::other(format!("the costs: {error}")))?;
    for (mix, rounds) in mixes {
        let check = Check::new(mix, rounds, &facts).map_err(Failure::other)?;
        calibration.checks.extend(check);
    }
    if args.costs.as_os_str() == "-" {
        return put(text.trim_end());
    }
    write(&args.costs, &text)?;
    calibration.file = Some(args.costs.display().to_string());
    args.answer.show(global, &calibration, &calibration, None)
}

fn check_file(args: &CalibrateArgs) -> Result<(), Failure> {
    if args.costs.as_os_str() == "-" {
        return Ok(());
    }
    let folder = args.costs.parent().filter(|folder| !folder.as_os_str().is_empty());
    if let Some(folder) = folder.filter(|folder| !folder.is_dir()) {
        let text =
            format!("--costs {}: there is no folder {}", args.costs.display(), folder.display());
        return Err(Failure::other(text));
    }
    if args.force || !args.costs.exists() {
        return Ok(());
    }
    let text = format!("--costs {}: the file is there already", args.costs.display());
    Err(ApiError::new(Code::Exists, text)
        .help("--force replaces it, with what was corrected in it; --costs names another")
        .into())
}

/// The file is there as a whole, or as it was.
fn write(path: &Path, text: &str) -> Result<(), Failure> {
    let failed = |error: std::io::Error| {
        Failure::other(format!(
            "--costs {}: {error}; `--costs -` prints the costs instead",
            path.display()
        ))
    };
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    std::fs::write(&unfinished, text).map_err(failed)?;
    std::fs::rename(&unfinished, path).map_err(failed)
}

fn settle(args: &CalibrateArgs) -> Result<Settled, Failure> {
    let allowed = cpus::allowed();
    let (server, clients) = cpus::halves();
    let client = args.client_cpu.or(clients.cpus.first().copied()).unwrap_or_default();
    let server = match &args.server_cpus {
        Some(list) => list.0.clone(),
        // Two channels on one CPU wait for each other; beside the clients they need not.
        None if server.cpus.len() < 2 => {
            let first = server.cpus.iter().copied();
            first.chain(clients.cpus.into_iter().filter(|cpu| !server.cpus.contains(cpu))).collect()
        }
        None => server.cpus,
    };
    for cpu in server.iter().chain([&client]) {
        if !allowed.contains(cpu) {
            let text = format!("--server-cpus, --client-cpu: CPU {cpu} cannot be used");
            return Err(ApiError::invalid(text).into());
        }
    }
    let (rounds, time) = match args.quick {
        true => (3, Duration::from_millis(200)),
        false => (5, Duration::from_secs(1)),
    };
    let (rounds, time) = (args.rounds.unwrap_or(rounds), args.time.unwrap_or(time));
    if time < TIME_LEAST {
        return Err(ApiError::invalid("--time: expected at least 10 ms")
            .help(
                "CPU time is counted in ticks of a few milliseconds; take 200ms or more to size by",
            )
            .into());
    }
    Ok(Settled { rounds, time, server, client })
}

fn notes(args: &CalibrateArgs, settled: &Settled) -> Vec<String> {
    let mut notes = Vec::new();
    if args.quick {
        notes.push("--quick: rounds were few and short; measure without it to size by.".to_owned());
    }
    if settled.server.len() < 2 {
        notes.push(
            "The data plane had one CPU: with thread=1 two channels shared it, which costs more than two CPUs do. --server-cpus gives it more."
                .to_owned(),
        );
    }
    if settled.server.contains(&settled.client) {
        notes.push("With thread=1 a channel shared its CPU with the clients: numbers are less steady, and higher than with three CPUs.".to_owned());
    }
    notes.push(
        "Streams of an MTU are of frames of that size, as clients without segmentation offload send them. Clients looked for frames all the time, as busy ones do."
            .to_owned(),
    );
    notes.push(match args.uplink {
        true => "What the kernel does with a frame behind the TAP is in these numbers as far as it does so at once; what a bridge and a network card take besides is not.",
        false => "What an uplink takes besides is not in these numbers; --uplink measures by one.",
    }.to_owned());
    notes
}

/// Each case, and each mix, with its rounds; how many rounds were left out because they lost frames.
type Measured = (Vec<Cost>, Vec<(Mix, Vec<Seen>)>, u32);

/// All loads once in each round, so that what others do on the machine meets all of them.
fn measure(
    args: &CalibrateArgs,
    settled: &Settled,
    scratch: &Scratch,
    clock: &mut Clock,
) -> Result<Measured, Failure> {
    let mut jobs: Vec<Job> = Case::all().into_iter().map(Job::Case).collect();
    if args.check {
        jobs.extend(Mix::all().into_iter().map(Job::Mix));
    }
    jobs.retain(|job| args.thread.is_none_or(|thread| (thread == 1) == job.threaded()));
    let mut planes = [
        Plane::start(scratch, "plain", 1, &settled.server, args.uplink)?,
        Plane::start(scratch, "threaded", 2, &settled.server, args.uplink)?,
    ];
    let mut rounds: Vec<Vec<(Tally, f64)>> = vec![Vec::new(); jobs.len()];
    let mut left_out = 0;
    let mut bar = Bar::new(jobs.len() * usize::from(settled.rounds));
    for round in 1..=settled.rounds {
        for (job, seen) in jobs.iter().zip(&mut rounds) {
            let what = format!("round {round} of {}: {}", settled.rounds, job.title());
            bar.begin(&what);
            let plane = &mut planes[usize::from(job.threaded())];
            let one = one_round(job, plane, settled, clock, &bar);
            match one.map_err(|error| Failure::other(format!("{what}: {error}")))? {
                Some(one) => seen.push(one),
                None => left_out += 1,
            }
            bar.done();
        }
    }
    if let Some((job, _)) = jobs.iter().zip(&rounds).find(|(_, seen)| seen.is_empty()) {
        return Err(Failure::other(format!(
            "{}: frames were lost in every round; others use the CPUs too much: try again, with more --rounds",
            job.title()
        )));
    }
    let (mut costs, mut mixes) = (Vec::new(), Vec::new());
    for (job, seen) in jobs.into_iter().zip(rounds) {
        match job {
            Job::Case(case) => {
                let rounds = seen.iter().map(|(tally, cpu)| counted(&case, tally, *cpu)).collect();
                costs.push(Cost { case, rounds });
            }
            Job::Mix(mix) => {
                let seen_of = |(tally, cpu_seconds): &(Tally, f64)| Seen {
                    bytes: tally.stream_bytes,
                    transactions: tally.transactions,
                    cpu_seconds: *cpu_seconds,
                    seconds: tally.elapsed.as_secs_f64(),
                };
                mixes.push((mix, seen.iter().map(seen_of).collect()));
            }
        }
    }
    Ok((costs, mixes, left_out))
}

fn counted(case: &Case, tally: &Tally, cpu_seconds: f64) -> Counted {
    let units = match case.load {
        Load::Stream { .. } | Load::Uncut { .. } => tally.stream_bytes,
        Load::Transactions { .. } => tally.transactions,
    };
    Counted { units, cpu_seconds, seconds: tally.elapsed.as_secs_f64() }
}

/// What was carried, and the CPU time in seconds that it took; none if frames were lost.
fn one_round(
    job: &Job,
    plane: &mut Plane<'_>,
    settled: &Settled,
    clock: &mut Clock,
    bar: &Bar,
) -> Result<Option<(Tally, f64)>, Failure> {
    let (stream, requests) = job.flows();
    let options = TrafficOptions {
        stream,
        requests,
        macs: plane::MACS,
        warm_up: settled.time / 4,
        duration: settled.time,
        cpu: Some(settled.client),
    };
    let mut meter = Meter::new(plane.pid, plane.stats()?);
    let places = plane.places().ok_or_else(|| Failure::other("the data plane has no cards"))?;
    let mut watch = |moment| match moment {
        Moment::Begin => meter.begin(),
        Moment::Part(part) => {
            clock.look();
            bar.part(part);
        }
        Moment::End => meter.end(),
    };
    let tally = match traffic::run(places, &options, &mut watch) {
        Err(TrafficError::Lost(_)) => return Ok(None),
        other => other.map_err(Failure::other)?,
    };
    clock.look();
    let cpu = meter.worked().map_err(|error| {
        Failure::other(format!("cannot read the data plane's CPU time in /proc: {error}"))
    })?;
    Ok(Some((tally, cpu.as_secs_f64())))
}

/// The built-in facts with those of a calibration in their place.
pub(super) fn measured(facts: &Facts, path: &Path) -> Result<Facts, Failure> {
    let mut measured = facts.clone();
    let what = format!("--measured {}", path.display());
    let text = std::fs::read_to_string(path).map_err(|error| {
        let error = ApiError::invalid(format!("{what}: {error}"));
        error.help("`trunkline size calibrate` measures this host and writes such a file")
    })?;
    measured.extend(&text).map_err(|error| ApiError::excerpt(&format!("{what}: {error}")))?;
    Ok(measured)
}
