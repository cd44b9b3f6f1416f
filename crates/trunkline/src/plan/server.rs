//! `trunkline plan advise --server`: a running Trunkline server, read twice, judged by the planner's rules.
//!
//! What the API gives becomes two reports among [`Captures`]; the rules on them, and their thresholds, are the planner's
//! (`advise/served.rs`, `facts/server.toml`).

use super::advise::AdviseArgs;
use crate::cli::Global;
use crate::client::Client;
use crate::exit::Failure;
use control::server::{AdapterView, StatusView};
use control::statistics::{AdapterStatsView, StatsView};
use planner::advise::advise;
use planner::capture::{AdapterReading, Captures, Reading, Taken};
use planner::report::advice::AdviceReport;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Reads twice, judges, prints; says whether something was found.
pub(super) fn run(global: &Global, args: &AdviseArgs) -> Result<bool, Failure> {
    let facts = args.facts.read()?;
    let client = Client::new(global)?;
    let mut captures = Captures::new();
    let mut lines = Vec::new();
    let since = Instant::now();
    let mut served = false;
    for name in ["first reading", "second reading"] {
        if !lines.is_empty() {
            std::thread::sleep(Duration::from_secs(args.seconds));
        }
        let stats: StatsView = client.get("/v1/stats")?;
        let elapsed = since.elapsed().as_secs_f64();
        let status: StatusView = client.get("/v1/status")?;
        let reading = reading(&status, &stats, elapsed);
        served |= !reading.adapters.is_empty();
        lines.push(captures.take_server(name, now(), &reading));
    }
    if !served {
        eprintln!("no adapter has had a client yet: run this again while clients work");
    }
    let advice = advise(&captures, &facts);
    let line = |at: planner::capture::At| {
        let of = lines.get(usize::try_from(at.file).ok()?)?;
        of.get(usize::try_from(at.line).ok()?.checked_sub(1)?).cloned()
    };
    let report = AdviceReport {
        advice: &advice,
        captures: &captures,
        line: Some(&line),
        every_object: args.coverage,
    };
    args.answer.show(global, &report, &report, None)?;
    Ok(!advice.findings.is_empty())
}

fn now() -> Option<Taken> {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).ok()?;
    Some(Taken::utc(since.as_secs()))
}

/// What the API gave, as the planner takes it.
fn reading(status: &StatusView, stats: &StatsView, seconds: f64) -> Reading {
    let adapter = |of: &AdapterStatsView| {
        let view = status.adapters.iter().find(|adapter| adapter.name == of.adapter)?;
        Some(adapter_reading(status, stats, of, view))
    };
    Reading {
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        seconds,
        adapters: stats.adapters.iter().filter_map(adapter).collect(),
    }
}

fn adapter_reading(
    status: &StatusView,
    stats: &StatsView,
    of: &AdapterStatsView,
    view: &AdapterView,
) -> AdapterReading {
    let volume = status.volumes.iter().find(|volume| volume.name == view.volume);
    let limit = |name: &str| Some((name.to_owned(), volume?.attributes.get(name)?.to_string()));
    let busy = |channel: &u32| {
        let same = stats
            .channels
            .iter()
            .find(|other| other.dataplane == view.dataplane && other.channel == *channel)?;
        Some((*channel, *same.counters.get("busy_ns")?))
    };
    let device = of.total.latency.get("device");
    AdapterReading {
        name: view.name.clone(),
        volume: view.volume.clone(),
        channels: view.channels,
        channels_max: view.channels_max,
        limited_by: view.limited_by.to_string(),
        remedy: view.limited_by.remedy().to_owned(),
        limits: ["limit_iops", "limit_bytes_per_s"].into_iter().filter_map(limit).collect(),
        counters: of.total.counters.clone(),
        device: device
            .map(|latency| (latency.count, latency.count.saturating_mul(latency.mean_ns))),
        busy_ns: view.channel_of_queue.iter().filter_map(busy).collect(),
    }
}
