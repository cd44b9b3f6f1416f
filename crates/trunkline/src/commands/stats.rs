//! `trunkline stats` and `trunkline flight`.

use crate::cli::{FlightArgs, Format, Global, StatsArgs};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{bytes, duration, end_when_unread, print, redraw, table};
use control::error::Code;
use control::server::AdapterView;
use control::statistics::{
    AdapterStatsView, ChannelStatsView, Counters, FlightView, LatencyView, LunStatsView, Measures,
    QueueStatsView, StatsView,
};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// `trunkline stats`
pub(crate) fn stats(global: &Global, args: &StatsArgs) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let path = match &args.adapter {
        Some(adapter) => {
            fabric::attribute::check_name(adapter).map_err(control::error::ApiError::invalid)?;
            format!("/v1/stats?adapter={adapter}")
        }
        None => "/v1/stats".to_owned(),
    };
    // What happened between two readings needs whole histograms; programs ask the API for them.
    let path = match args.watch {
        Some(_) if global.output == Format::Table => whole(&path),
        _ => path,
    };
    let mut before: StatsView = client.get(&path)?;
    let one = args.adapter.is_some();
    let Some(interval) = args.watch else {
        let numbers = match &args.adapter {
            Some(name) if global.output == Format::Table => {
                match client.get(&format!("/v1/adapters/{name}")) {
                    Ok(adapter) => queue_numbers(&adapter) + "\n\n",
                    // The server knows the name: what is no adapter is an uplink, which has no client.
                    Err(Failure::Refused(error)) if error.code == Code::NotFound => String::new(),
                    Err(error) => return Err(error),
                }
            }
            _ => String::new(),
        };
        return print(global, &before, |stats| numbers + &page(stats, one, None));
    };
    end_when_unread();
    let mut printed = 0;
    let mut at = Instant::now();
    while args.count.is_none_or(|count| printed < count) {
        std::thread::sleep(Duration::from_secs_f64(interval));
        let now: StatsView = client.get(&path)?;
        let seconds = at.elapsed().as_secs_f64();
        at = Instant::now();
        // Programs get the counters and subtract for themselves.
        match global.output {
            Format::Table => redraw(&page(&now, one, Some((&before, seconds))))?,
            _ => print(global, &now, |_| String::new())?,
        }
        before = now;
        printed += 1;
    }
    Ok(())
}

/// From what is offered to what runs.
fn queue_numbers(adapter: &AdapterView) -> String {
    let [offered, has, used, negotiated, running, cpus] = adapter.queue_numbers().map(|(_, n)| n);
    format!(
        "{offered} queues offered, {has} of the client, {used} used by it; {negotiated} channels negotiated, {running} running, bound to {cpus} CPUs"
    )
}

/// The path with whole histograms.
fn whole(path: &str) -> String {
    let sign = if path.contains('?') { '&' } else { '?' };
    format!("{path}{sign}histograms=true")
}

/// Numbers since the start, or per second since an earlier reading.
type Since<'a> = Option<(&'a StatsView, f64)>;

fn page(stats: &StatsView, queue_by_queue: bool, since: Since<'_>) -> String {
    if stats.adapters.is_empty() {
        let channels = channel_table(&stats.channels, since);
        return format!("no adapter has had a client yet\n\n{channels}");
    }
    let mut parts = vec![adapter_table(&stats.adapters, since)];
    parts.extend(frame_tables(&stats.adapters, since));
    if queue_by_queue {
        parts.extend(stats.adapters.iter().map(|adapter| queue_table(adapter, since)));
        parts.extend(stats.adapters.iter().map(|adapter| latency_table(adapter, since)));
        let with_luns = stats.adapters.iter().filter(|adapter| !adapter.luns.is_empty());
        parts.extend(with_luns.map(|adapter| lun_table(adapter, since)));
    }
    parts.extend(stats.adapters.iter().filter_map(waits));
    parts.push(channel_table(&stats.channels, since));
    parts.join("\n\n")
}

fn get(counters: &Counters, name: &str) -> u64 {
    counters.get(name).copied().unwrap_or(0)
}

/// A counter, or its rate.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn number(now: &Counters, before: Option<(&Counters, f64)>, name: &str) -> u64 {
    let value = get(now, name);
    match before {
        None => value,
        // A rate is shown rounded; a counter that began anew counts from zero.
        Some((before, seconds)) => {
            let before = get(before, name);
            let delta = if value >= before { value - before } else { value };
            (delta as f64 / seconds).round() as u64
        }
    }
}

const COLUMNS: [&str; 8] =
    ["READS", "WRITES", "READ", "WRITTEN", "ERRORS", "ACTIVE", "MAX", "PENDING"];

fn cells(now: &Counters, before: Option<(&Counters, f64)>) -> Vec<String> {
    let shown = |name: &str| number(now, before, name);
    vec![
        shown("reads").to_string(),
        shown("writes").to_string(),
        bytes(shown("read_bytes")),
        bytes(shown("written_bytes")),
        get(now, "errors").to_string(),
        get(now, "commands_active").to_string(),
        get(now, "commands_active_max").to_string(),
        get(now, "commands_pending").to_string(),
    ]
}

fn heading<'a>(first: &[&'a str], since: Since<'_>, own: &'a [String]) -> Vec<&'a str> {
    let columns = COLUMNS.iter().copied();
    let columns: Vec<&str> = match since {
        None => columns.collect(),
        Some(_) => own.iter().map(String::as_str).chain(columns.skip(own.len())).collect(),
    };
    first.iter().copied().chain(columns).collect()
}

/// The first columns are rates while watching.
fn rates() -> Vec<String> {
    COLUMNS[..4].iter().map(|name| format!("{name}/s")).collect()
}

/// What an adapter had counted before, and how many seconds ago that was.
fn before<'a>(adapter: &AdapterStatsView, since: Since<'a>) -> Option<(&'a AdapterStatsView, f64)> {
    let (stats, seconds) = since?;
    let same = stats.adapters.iter().find(|other| other.adapter == adapter.adapter)?;
    Some((same, seconds))
}

fn adapter_table(adapters: &[AdapterStatsView], since: Since<'_>) -> String {
    let rows = adapters.iter().map(|adapter| {
        let before = before(adapter, since).map(|(it, seconds)| (&it.total.counters, seconds));
        let mut row = vec![adapter.adapter.clone(), adapter.queues.len().to_string()];
        row.extend(cells(&adapter.total.counters, before));
        row
    });
    let rates = rates();
    let heading = heading(&["ADAPTER", "QUEUES"], since, &rates);
    table(&heading, &[1, 2, 3, 4, 5, 6, 7, 8, 9], rows.collect())
}

/// Frames of network cards and uplinks, and those that were lost by the names of their counters.
fn frame_tables(adapters: &[AdapterStatsView], since: Since<'_>) -> Vec<String> {
    let (mut frames, mut lost) = (Vec::new(), Vec::new());
    for adapter in adapters {
        let now = &adapter.total.counters;
        let before = before(adapter, since).map(|(it, seconds)| (&it.total.counters, seconds));
        let drops = now.iter().filter(|(name, count)| name.starts_with("drop_") && **count > 0);
        let drops: Vec<_> = drops.map(|(name, count)| (name.to_string(), *count)).collect();
        if get(now, "tx_frames") + get(now, "rx_frames") == 0 && drops.is_empty() {
            continue;
        }
        let shown = |name: &str| number(now, before, name);
        let all: u64 = drops.iter().map(|(_, count)| count).sum();
        frames.push(vec![
            adapter.adapter.clone(),
            shown("tx_frames").to_string(),
            shown("rx_frames").to_string(),
            bytes(shown("tx_bytes")),
            bytes(shown("rx_bytes")),
            all.to_string(),
        ]);
        let row =
            |(name, count): (String, u64)| vec![adapter.adapter.clone(), name, count.to_string()];
        lost.extend(drops.into_iter().map(row));
    }
    let rate = if since.is_some() { "/s" } else { "" };
    let columns = ["TX FRAMES", "RX FRAMES", "TX", "RX"].map(|name| format!("{name}{rate}"));
    let mut heading = vec!["ADAPTER"];
    heading.extend(columns.iter().map(String::as_str));
    heading.push("LOST");
    let lost_heading = ["ADAPTER", "LOST FRAMES", "COUNT"];
    let mut tables = Vec::new();
    if !frames.is_empty() {
        tables.push(table(&heading, &[1, 2, 3, 4, 5], frames));
    }
    if !lost.is_empty() {
        tables.push(table(&lost_heading, &[2], lost));
    }
    tables
}

fn queue_table(adapter: &AdapterStatsView, since: Since<'_>) -> String {
    let rows = adapter.queues.iter().map(|queue| {
        let before = before(adapter, since).and_then(|(same, seconds)| {
            let same = same.queues.iter().find(|other| other.queue == queue.queue)?;
            Some((&same.measures.counters, seconds))
        });
        let mut row = vec![shown_as(queue), queue.channel.to_string()];
        row.extend(cells(&queue.measures.counters, before));
        row
    });
    let rates = rates();
    let heading = heading(&["QUEUE", "CHANNEL"], since, &rates);
    table(&heading, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9], rows.collect())
}

/// Where the time went, for all queues together and for each that had a command.
fn latency_table(adapter: &AdapterStatsView, since: Since<'_>) -> String {
    let before = before(adapter, since).map(|(same, _)| same);
    let mut rows = latency_rows("all", &adapter.total, before.map(|before| &before.total));
    for queue in &adapter.queues {
        let same = before.and_then(|before| before.queues.iter().find(|q| q.queue == queue.queue));
        let same = same.map(|queue| &queue.measures);
        let more = latency_rows(&shown_as(queue), &queue.measures, same);
        rows.extend(more.into_iter().filter(|row| row[2] != "0"));
    }
    let heading = ["QUEUE", "TIME IN", "COMMANDS", "MEAN", "P50", "P99", "P99.9"];
    table(&heading, &[0, 2, 3, 4, 5, 6], rows)
}

fn latency_rows(queue: &str, now: &Measures, before: Option<&Measures>) -> Vec<Vec<String>> {
    let row = |stage: &str| {
        let latency = now.latency.get(stage)?;
        let before = before.and_then(|before| before.latency.get(stage));
        let latency = between(latency, before);
        Some(vec![
            queue.to_owned(),
            stage.to_owned(),
            latency.count.to_string(),
            duration(latency.mean_ns),
            duration(latency.p50_ns),
            duration(latency.p99_ns),
            duration(latency.p999_ns),
        ])
    };
    ["ring", "server", "device"].into_iter().filter_map(row).collect()
}

/// A queue by its name. A server of an earlier version gives none.
fn shown_as(queue: &QueueStatsView) -> String {
    match queue.name.as_str() {
        "" => queue.queue.to_string(),
        name => name.to_owned(),
    }
}

/// What each LUN was asked for, and how long it took.
fn lun_table(adapter: &AdapterStatsView, since: Since<'_>) -> String {
    let rows = adapter.luns.iter().map(|lun| {
        let before = since.and_then(|(stats, seconds)| {
            let before = stats.adapters.iter().find(|other| other.adapter == adapter.adapter)?;
            let same = |other: &&LunStatsView| (other.target, other.lun) == (lun.target, lun.lun);
            Some((before.luns.iter().find(same)?, seconds))
        });
        lun_row(lun, before)
    });
    let rates = ["READS", "WRITES", "READ", "WRITTEN", "OTHERS"]
        .map(|name| if since.is_some() { format!("{name}/s") } else { name.to_owned() });
    let mut heading = vec!["TARGET", "LUN"];
    heading.extend(rates.iter().map(String::as_str));
    heading.extend(["ERRORS", "SERVER P50", "SERVER P99", "DEVICE P50", "DEVICE P99"]);
    table(&heading, &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11], rows.collect())
}

fn lun_row(lun: &LunStatsView, before: Option<(&LunStatsView, f64)>) -> Vec<String> {
    let counters = &lun.measures.counters;
    let earlier = before.map(|(lun, seconds)| (&lun.measures.counters, seconds));
    let shown = |name: &str| number(counters, earlier, name);
    let latency = |stage: &str| {
        let earlier = before.and_then(|(lun, _)| lun.measures.latency.get(stage));
        lun.measures.latency.get(stage).map(|now| between(now, earlier)).unwrap_or_default()
    };
    let [server, device] = ["server", "device"].map(latency);
    vec![
        lun.target.to_string(),
        lun.lun.to_string(),
        shown("reads").to_string(),
        shown("writes").to_string(),
        bytes(shown("read_bytes")),
        bytes(shown("written_bytes")),
        shown("control_requests").to_string(),
        get(counters, "errors").to_string(),
        duration(server.p50_ns),
        duration(server.p99_ns),
        duration(device.p50_ns),
        duration(device.p99_ns),
    ]
}

/// The latencies since an earlier reading, where both have their histograms.
fn between(now: &LatencyView, before: Option<&LatencyView>) -> LatencyView {
    let before = before.and_then(|before| before.histogram.as_ref());
    match (&now.histogram, before) {
        (Some(now), Some(before)) => LatencyView::of(&now.read().since(&before.read()), false),
        _ => now.clone(),
    }
}

/// What went wrong or had to wait, of an adapter; nothing when nothing did.
fn waits(adapter: &AdapterStatsView) -> Option<String> {
    let telling = |name: &str| {
        name.starts_with("wait_")
            || matches!(
                name,
                "errors_no_space"
                    | "errors_gone"
                    | "unsupported"
                    | "out_of_range"
                    | "bad_chains"
                    | "ring_errors"
                    | "resubmitted"
                    | "moves"
            )
    };
    let found: BTreeMap<&String, &u64> =
        adapter.total.counters.iter().filter(|(name, n)| telling(name) && **n > 0).collect();
    if found.is_empty() {
        return None;
    }
    let words: Vec<String> = found.into_iter().map(|(name, n)| format!("{name} {n}")).collect();
    Some(format!("{}: {}", adapter.adapter, words.join(", ")))
}

fn channel_table(channels: &[ChannelStatsView], since: Since<'_>) -> String {
    let rows = channels.iter().map(|channel| {
        let before = since.and_then(|(stats, seconds)| {
            let same = |c: &&ChannelStatsView| {
                (&c.dataplane, c.channel) == (&channel.dataplane, channel.channel)
            };
            Some((&stats.channels.iter().find(same)?.counters, seconds))
        });
        let shown = |name: &str| number(&channel.counters, before, name);
        let (commands, wakeups) = (shown("commands"), shown("wakeups"));
        vec![
            format!("{}/{}", channel.dataplane, channel.channel),
            get(&channel.counters, "queues").to_string(),
            commands.to_string(),
            wakeups.to_string(),
            per(commands, wakeups),
            duration(shown("busy_ns")),
            duration(shown("spin_ns")),
            duration(shown("sleep_ns")),
        ]
    });
    let heading: [&str; 8] = match since {
        None => {
            ["CHANNEL", "QUEUES", "COMMANDS", "WAKEUPS", "COMMANDS/WAKEUP", "BUSY", "SPIN", "SLEEP"]
        }
        Some(_) => [
            "CHANNEL",
            "QUEUES",
            "COMMANDS/s",
            "WAKEUPS/s",
            "COMMANDS/WAKEUP",
            "BUSY/s",
            "SPIN/s",
            "SLEEP/s",
        ],
    };
    table(&heading, &[1, 2, 3, 4, 5, 6, 7], rows.collect())
}

/// A share with one digit behind the point, by whole numbers.
fn per(these: u64, those: u64) -> String {
    (u128::from(these) * 10)
        .checked_div(u128::from(those))
        .map_or_else(|| "-".to_owned(), |tenths| format!("{}.{}", tenths / 10, tenths % 10))
}

/// `trunkline flight`
pub(crate) fn flight(global: &Global, args: &FlightArgs) -> Result<(), Failure> {
    let mut path = "/v1/flight?".to_owned();
    if let Some(channel) = args.channel {
        path += &format!("channel={channel}&");
    }
    if let Some(dataplane) = &args.dataplane {
        fabric::attribute::check_name(dataplane).map_err(control::error::ApiError::invalid)?;
        path += &format!("dataplane={dataplane}");
    }
    let all: Vec<FlightView> = Client::new(global)?.get(&path)?;
    let mut by_channel: BTreeMap<(String, u32), Vec<FlightView>> = BTreeMap::new();
    for event in all {
        by_channel.entry((event.dataplane.clone(), event.channel)).or_default().push(event);
    }
    let last = |events: Vec<FlightView>| {
        let skip = events.len().saturating_sub(args.last);
        events.into_iter().skip(skip)
    };
    let events: Vec<FlightView> = by_channel.into_values().flat_map(last).collect();
    print(global, &events, |events| {
        let rows = events.iter().map(|event| {
            vec![
                format!("{}/{}", event.dataplane, event.channel),
                duration(event.ns_ago),
                event.event.clone(),
                event.subject.clone(),
                event.value.to_string(),
            ]
        });
        table(&["CHANNEL", "AGO", "EVENT", "SUBJECT", "VALUE"], &[1, 4], rows.collect())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_have_a_digit_behind_the_point() {
        let shown = [per(108, 126), per(2000, 100), per(7, 0), per(u64::MAX, 1)];
        assert_eq!(shown, ["0.8", "20.0", "-", "18446744073709551615.0"]);
    }
}
