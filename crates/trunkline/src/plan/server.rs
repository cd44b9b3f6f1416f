//! `trunkline plan advise --server`: a running Trunkline server, read twice, judged by the planner's rules.
//!
//! What the API gives becomes two reports among [`Captures`]; the rules on them, and their thresholds, are the planner's
//! (`advise/served.rs`, `facts/server.toml`).

use super::advise::AdviseArgs;
use crate::cli::Global;
use crate::client::Client;
use crate::exit::Failure;
use crate::output::tell;
use control::server::{AdapterView, PortExplanation, StatusView};
use control::statistics::{AdapterStatsView, Counters, StatsView};
use fabric::attribute::{Attribute, Kind, attr};
use planner::advise::advise;
use planner::capture::{AdapterReading, Captures, Elements, OnPort, Reading, Taken};
use planner::report::advice::AdviceReport;
use protocol::stats::QueueCounter;
use std::collections::BTreeMap;
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
        let mut ports = BTreeMap::new();
        for adapter in &status.adapters {
            let Some(port) = adapter.port.as_ref().filter(|port| !ports.contains_key(*port)) else {
                continue;
            };
            let explained: PortExplanation = client.get(&format!("/v1/ports/{port}/explain"))?;
            ports.insert(port.clone(), explained);
        }
        let reading = reading(&status, &stats, &ports, elapsed);
        served |= !reading.adapters.is_empty();
        lines.push(captures.take_server(name, now(), &reading));
    }
    if !served {
        tell("no adapter has had a client yet: run this again while clients work");
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
fn reading(
    status: &StatusView,
    stats: &StatsView,
    ports: &BTreeMap<String, PortExplanation>,
    seconds: f64,
) -> Reading {
    let adapter = |of: &AdapterStatsView| {
        let view = status.adapters.iter().find(|adapter| adapter.name == of.adapter)?;
        Some(adapter_reading(status, stats, ports, of, view))
    };
    Reading {
        host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
        seconds,
        adapters: stats.adapters.iter().filter_map(adapter).collect(),
    }
}

/// Elements by the attribute that bounds them, and by the marks among counters.
fn elements(bound: &'static Attribute, now: u64, counters: &Counters) -> Option<Elements<u64>> {
    let Kind::Number { max: most, .. } = bound.kind else { return None };
    let mark = |mark: QueueCounter| counters.get(mark.info().name).copied().unwrap_or(0);
    let [active_max, pending_max] = [QueueCounter::ActiveMax, QueueCounter::PendingMax].map(mark);
    Some(Elements { now, most, active_max, pending_max })
}

fn on_port(port: &PortExplanation, stats: &StatsView) -> Option<OnPort<u64>> {
    let bound = attr::port::NUM_CMD_ELEMS.line();
    let counted = stats.ports.iter().find(|other| other.port == port.port)?;
    Some(OnPort {
        name: port.port.clone(),
        elements: elements(bound, port.num_cmd_elems.into(), &counted.total.counters)?,
        held_up_by: port.held_up_by.clone(),
    })
}

fn adapter_reading(
    status: &StatusView,
    stats: &StatsView,
    ports: &BTreeMap<String, PortExplanation>,
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
        elements: attr::adapter::NUM_CMD_ELEMS
            .of(&view.effective)
            .and_then(|now| elements(attr::adapter::NUM_CMD_ELEMS.line(), now, &of.total.counters)),
        port: view.port.as_ref().and_then(|port| on_port(ports.get(port)?, stats)),
        limits: ["limit_iops", "limit_bytes_per_s"].into_iter().filter_map(limit).collect(),
        counters: of.total.counters.clone(),
        device: device
            .map(|latency| (latency.count, latency.count.saturating_mul(latency.mean_ns))),
        busy_ns: view.channel_of_queue.iter().filter_map(busy).collect(),
    }
}
