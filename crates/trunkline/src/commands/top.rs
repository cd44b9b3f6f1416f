//! `trunkline port top`: which adapters use a port most, and who waits for whom. `trunkline port explain`. What all commands that watch have in common.

use super::objects::path;
use crate::cli::objects::{Rounds, TopArgs, TopBy};
use crate::cli::{Format, Global};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{bytes, duration, end_when_unread, or_dash, print, put, redraw, table};
use control::error::ApiError;
use control::server::{AdapterView, ElementsView, PortExplanation, StatusView};
use control::statistics::{AdapterStatsView, LatencyView, StatsView};
use fabric::attribute::Object;
use protocol::stats::Histogram;
use serde::Serialize;
use std::collections::BTreeMap;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// What an adapter did in an interval.
#[derive(Debug, Clone, Serialize)]
struct Talker {
    port: String,
    adapter: String,
    /// The WWPN that is logged in.
    wwpn: String,
    reads_per_s: u64,
    writes_per_s: u64,
    control_per_s: u64,
    read_bytes_per_s: u64,
    written_bytes_per_s: u64,
    /// Its part of what its port did, by the number that sorts, in thousandths.
    share_per_mille: u64,
    /// Times per second that a command had to wait for anything.
    waits_per_s: u64,
    /// Times per second that a command had to wait for an element of the port.
    no_adapter_elements_per_s: u64,
    /// Times per second that a command of another adapter found none while this one had most beyond its part.
    holds_up_per_s: u64,
    /// What it has of the port's command elements now.
    elements: Option<ElementsView>,
    /// Time in the server and in the volume.
    server: LatencyView,
    device: LatencyView,
}

impl Talker {
    fn weight(&self, by: TopBy) -> u64 {
        match by {
            TopBy::Bytes => self.read_bytes_per_s + self.written_bytes_per_s,
            TopBy::Commands => self.reads_per_s + self.writes_per_s + self.control_per_s,
            TopBy::Waits => self.waits_per_s,
        }
    }
}

/// What is printed each time: of JSON, the adapters alone.
#[derive(Debug, Serialize)]
#[serde(transparent)]
struct Page {
    talkers: Vec<Talker>,
    #[serde(skip)]
    ports: Vec<PortExplanation>,
}

/// `trunkline port top`
pub(crate) fn top(global: &Global, args: &TopArgs) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let look = || client.get::<StatsView>(PATH);
    let judge = |before: &StatsView, now: &StatsView, seconds| {
        let status: StatusView = client.get("/v1/status")?;
        check(args, &client)?;
        let mut talkers = talkers(&status, now, before, seconds, args);
        let ports = elements(&client, &mut talkers)?;
        Ok(Page { talkers, ports })
    };
    watch(global, &args.rounds, look, judge, |page| self::page(&page.talkers, &page.ports))
}

/// Prints what was between two looks, as long and as often as is asked for.
pub(super) fn watch<Look, Told: Serialize>(
    global: &Global,
    rounds: &Rounds,
    look: impl Fn() -> Result<Look, Failure>,
    judge: impl Fn(&Look, &Look, f64) -> Result<Told, Failure>,
    page: impl Fn(&Told) -> String,
) -> Result<(), Failure> {
    let (mut before, mut at) = (look()?, Instant::now());
    end_when_unread();
    let mut printed = 0;
    let count = rounds.count.or(rounds.watch.is_none().then_some(1));
    while count.is_none_or(|count| printed < count) {
        printed += 1;
        std::thread::sleep(Duration::from_secs_f64(rounds.watch.unwrap_or(rounds.seconds)));
        let now = look()?;
        let seconds = at.elapsed().as_secs_f64();
        at = Instant::now();
        let told = judge(&before, &now, seconds)?;
        match global.output {
            Format::Table if count == Some(1) => put(&page(&told))?,
            Format::Table => redraw(&page(&told))?,
            _ => print(global, &told, |_| String::new())?,
        }
        before = now;
    }
    Ok(())
}

/// `trunkline port explain`
pub(crate) fn explain(global: &Global, name: &str) -> Result<(), Failure> {
    let path = format!("{}/explain", path(Object::Port, name)?);
    print(global, &Client::new(global)?.get(&path)?, port_text)
}

/// The ports of the adapters, and what each adapter has of its one.
fn elements(client: &Client, talkers: &mut [Talker]) -> Result<Vec<PortExplanation>, Failure> {
    let mut ports: BTreeMap<String, PortExplanation> = BTreeMap::new();
    for talker in talkers {
        if !ports.contains_key(&talker.port) {
            let path = format!("/v1/ports/{}/explain", talker.port);
            ports.insert(talker.port.clone(), client.get(&path)?);
        }
        let mut adapters = ports[&talker.port].adapters.iter();
        talker.elements = adapters.find(|one| one.adapter == talker.adapter).cloned();
    }
    Ok(ports.into_values().collect())
}

/// Who has the elements of a port, and who waits.
pub(crate) fn port_text(port: &PortExplanation) -> String {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let ago = |since_ms: u64| now.saturating_sub(Duration::from_millis(since_ms)).as_secs();
    let rows = port.adapters.iter().map(|one| {
        vec![
            one.adapter.clone(),
            one.active.to_string(),
            one.part.to_string(),
            one.num_cmd_elems.to_string(),
            one.pending.to_string(),
            one.no_adapter_elements.to_string(),
            one.holds_up.to_string(),
            or_dash(one.short_since_ms.map(|since| format!("{} s", ago(since)))),
        ]
    });
    let heading =
        ["ADAPTER", "ACTIVE", "PART", "AT MOST", "PENDING", "NO ELEMENT", "HOLDS UP", "SHORT FOR"];
    let mut text = format!(
        "{}: {} of {} command elements in use; commands waited {} times for one (No Adapter Elements)\n\n{}",
        port.port,
        port.active,
        port.num_cmd_elems,
        port.no_adapter_elements,
        table(&heading, &[1, 2, 3, 4, 5, 6, 7], rows.collect())
    );
    if port.short_since_ms.is_some() {
        let waiting = port.adapters.iter().filter(|one| one.short_since_ms.is_some());
        let waiting: Vec<&str> = waiting.map(|one| one.adapter.as_str()).collect();
        let whom = port.adapters.iter().find(|one| Some(&one.adapter) == port.held_up_by.as_ref());
        let by = match whom {
            Some(one) => {
                format!("{}, which has {} where its part is {}", one.adapter, one.active, one.part)
            }
            None => "nobody: all have at most their part".to_owned(),
        };
        text += &format!(
            "\n\nwho waits: {}\nheld up by: {by}\nfor more: {}",
            waiting.join(", "),
            port.remedy
        );
    }
    text
}

const PATH: &str = "/v1/stats?histograms=true";

fn check(args: &TopArgs, client: &Client) -> Result<(), Failure> {
    let Some(port) = &args.port else { return Ok(()) };
    fabric::attribute::check_name(port).map_err(ApiError::invalid)?;
    client.get::<serde_json::Value>(&format!("/v1/ports/{port}")).map(drop)
}

fn talkers(
    status: &StatusView,
    now: &StatsView,
    before: &StatsView,
    seconds: f64,
    args: &TopArgs,
) -> Vec<Talker> {
    let find = |stats: &StatsView, name: &str| {
        stats.adapters.iter().find(|stats| stats.adapter == name).cloned()
    };
    let wanted = |port: &String| args.port.as_ref().is_none_or(|only| only == port);
    let mut talkers: Vec<Talker> = status
        .adapters
        .iter()
        .filter_map(|adapter| Some((adapter, adapter.port.clone().filter(wanted)?)))
        .map(|(adapter, port)| {
            talker(adapter, port, find(now, &adapter.name), find(before, &adapter.name), seconds)
        })
        .collect();
    let mut of_port: BTreeMap<String, u64> = BTreeMap::new();
    for talker in &talkers {
        *of_port.entry(talker.port.clone()).or_default() += talker.weight(args.by);
    }
    for talker in &mut talkers {
        let all = of_port[&talker.port];
        talker.share_per_mille = (talker.weight(args.by) * 1000).checked_div(all).unwrap_or(0);
    }
    talkers.sort_by(|a, b| {
        let weight = b.weight(args.by).cmp(&a.weight(args.by));
        a.port.cmp(&b.port).then(weight).then(a.adapter.cmp(&b.adapter))
    });
    talkers
}

fn talker(
    adapter: &AdapterView,
    port: String,
    now: Option<AdapterStatsView>,
    before: Option<AdapterStatsView>,
    seconds: f64,
) -> Talker {
    let value = |stats: &Option<AdapterStatsView>, name: &str| {
        stats.as_ref().and_then(|stats| stats.total.counters.get(name)).copied().unwrap_or(0)
    };
    let holds_up =
        |stats: &Option<AdapterStatsView>| stats.as_ref().map_or(0, |stats| stats.holds_up);
    let rate = |name: &str| per_second(value(&now, name), value(&before, name), seconds);
    let waits = now.iter().flat_map(|stats| stats.total.counters.keys());
    let waits = waits.filter(|name| name.starts_with("wait_")).map(|name| rate(name)).sum();
    let latency = |stage: &str| {
        let read = |stats: &Option<AdapterStatsView>| -> Histogram {
            let view = stats.as_ref().and_then(|stats| stats.total.latency.get(stage));
            view.and_then(|view| view.histogram.as_ref())
                .map(|view| view.read())
                .unwrap_or_default()
        };
        LatencyView::of(&read(&now).since(&read(&before)), false)
    };
    let control = ["control_requests", "flushes", "discards", "write_zeroes"].map(rate);
    Talker {
        port,
        adapter: adapter.name.clone(),
        wwpn: adapter.wwpns.first().cloned().unwrap_or_default(),
        reads_per_s: rate("reads"),
        writes_per_s: rate("writes"),
        control_per_s: control.iter().sum(),
        read_bytes_per_s: rate("read_bytes"),
        written_bytes_per_s: rate("written_bytes"),
        share_per_mille: 0,
        waits_per_s: waits,
        no_adapter_elements_per_s: rate("wait_no_adapter_element"),
        holds_up_per_s: per_second(holds_up(&now), holds_up(&before), seconds),
        elements: None,
        server: latency("server"),
        device: latency("device"),
    }
}

/// A rate, rounded; a counter that began anew counts from zero.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
pub(super) fn per_second(now: u64, before: u64, seconds: f64) -> u64 {
    (now.checked_sub(before).unwrap_or(now) as f64 / seconds).round() as u64
}

fn page(talkers: &[Talker], ports: &[PortExplanation]) -> String {
    if talkers.is_empty() {
        return "no adapter is mapped to a port; `trunkline port map ADAPTER PORT` maps one"
            .to_owned();
    }
    let rows = talkers.iter().map(|talker| {
        vec![
            talker.port.clone(),
            talker.adapter.clone(),
            format!("{}.{}%", talker.share_per_mille / 10, talker.share_per_mille % 10),
            talker.reads_per_s.to_string(),
            talker.writes_per_s.to_string(),
            talker.control_per_s.to_string(),
            bytes(talker.read_bytes_per_s),
            bytes(talker.written_bytes_per_s),
            talker.waits_per_s.to_string(),
            talker.no_adapter_elements_per_s.to_string(),
            talker.holds_up_per_s.to_string(),
            duration(talker.server.p99_ns),
            duration(talker.device.p50_ns),
            duration(talker.device.p99_ns),
        ]
    });
    let heading = [
        "PORT",
        "ADAPTER",
        "SHARE",
        "READS/s",
        "WRITES/s",
        "CONTROL/s",
        "READ/s",
        "WRITTEN/s",
        "WAITS/s",
        "NO ELEMENT/s",
        "HOLDS UP/s",
        "SERVER P99",
        "DEVICE P50",
        "DEVICE P99",
    ];
    let used = table(&heading, &[2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13], rows.collect());
    std::iter::once(used).chain(ports.iter().map(port_text)).collect::<Vec<_>>().join("\n\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_the_interval_and_begin_anew_with_the_counter() {
        assert_eq!([per_second(300, 100, 2.0), per_second(7, 100, 1.0)], [100, 7]);
    }
}
