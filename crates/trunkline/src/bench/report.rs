//! The report of a run for people.

use crate::output::{bytes, duration, table};
use partition::hist::Latency;
use partition::load::{Order, Report, WaitMode};

/// Queues that get a line of their own; `-o json` has them all.
const QUEUES_MAX: usize = 32;

/// Everything below each other.
pub(super) fn page(socket: &str, report: &Report) -> String {
    let mut parts = vec![head(socket, report), totals(report)];
    if report.queues.len() > 1 {
        parts.push(queues(report));
    }
    parts.push(costs(report));
    if let Some(text) = checks(report) {
        parts.push(text);
    }
    parts.join("\n\n")
}

/// `1 queue`, `2 queues`.
pub(crate) fn count(number: impl Into<u64>, noun: &str) -> String {
    let number = number.into();
    let end = if number == 1 { "" } else { "s" };
    format!("{number} {noun}{end}")
}

/// A rate, in whole numbers.
pub(crate) fn rate(rate: f64) -> String {
    format!("{rate:.0}")
}

/// Nanoseconds of CPU for one request, in µs.
pub(crate) fn cpu_us(ns_per_io: f64) -> String {
    format!("{:.2}", ns_per_io / 1000.0)
}

fn head(socket: &str, report: &Report) -> String {
    let (server, options) = (&report.server, &report.options);
    let tracked = if server.tracks_inflight { "are" } else { "are not" };
    let order = match options.order {
        Order::Random => "random",
        Order::Sequential => "sequential",
    };
    let what = match options.read_percent {
        100 => "reads".to_owned(),
        0 => "writes".to_owned(),
        percent => format!("reads and writes, {percent} % reads"),
    };
    let client = match options.wait {
        WaitMode::Poll => "polls",
        WaitMode::Sleep => "sleeps",
    };
    format!(
        "{socket}: {}, blocks of {}, {} offered, requests in flight {tracked} tracked\n\
         {} {order} {what}, {} with depth {}, {:.1} s, the client {client}",
        bytes(server.capacity_bytes),
        bytes(server.block_size.into()),
        count(server.queues, "queue"),
        bytes(options.block_bytes.into()),
        count(options.queues, "queue"),
        options.depth,
        report.seconds,
    )
}

fn latencies(latency: &Latency) -> Vec<String> {
    // Whole nanoseconds are enough.
    let mean = latency.mean_ns.round() as u64;
    [mean, latency.p50_ns, latency.p99_ns, latency.p999_ns, latency.max_ns]
        .into_iter()
        .map(duration)
        .collect()
}

fn totals(report: &Report) -> String {
    let per_second = |count: u64| {
        if report.operations == 0 {
            return 0.0;
        }
        report.iops * count as f64 / report.operations as f64
    };
    let row = |name: &str, latency: &Latency| {
        let iops = per_second(latency.count);
        let mib = iops * f64::from(report.options.block_bytes) / f64::from(1 << 20);
        let mut row = vec![name.to_owned(), rate(iops), format!("{mib:.1}")];
        row.extend(latencies(latency));
        row
    };
    let mut rows = Vec::new();
    if report.read_latency.count > 0 {
        rows.push(row("reads", &report.read_latency));
    }
    if report.write_latency.count > 0 {
        rows.push(row("writes", &report.write_latency));
    }
    if rows.len() != 1 {
        rows.push(row("both", &report.latency));
    }
    let heading = ["", "IOPS", "MIB/S", "MEAN", "P50", "P99", "P99.9", "MAX"];
    table(&heading, &[1, 2, 3, 4, 5, 6, 7], rows)
}

fn queues(report: &Report) -> String {
    let rows = report.queues.iter().take(QUEUES_MAX).map(|queue| {
        let mut row = vec![queue.queue.to_string(), rate(queue.iops)];
        row.extend(latencies(&queue.latency));
        row.push(queue.errors.to_string());
        row
    });
    let heading = ["QUEUE", "IOPS", "MEAN", "P50", "P99", "P99.9", "MAX", "ERRORS"];
    let mut text = table(&heading, &[0, 1, 2, 3, 4, 5, 6, 7], rows.collect());
    if report.queues.len() > QUEUES_MAX {
        text += &format!("\nand {} more", report.queues.len() - QUEUES_MAX);
    }
    text
}

fn costs(report: &Report) -> String {
    let client = &report.client;
    let client_share = client.cpu_ns as f64 / 1e9 / report.seconds.max(1e-9);
    let wake_ups = client.ios_per_wake_up.map_or_else(|| "-".to_owned(), |ios| format!("{ios:.1}"));
    let mut rows = vec![vec![
        "client".to_owned(),
        cpu_us(client.cpu_ns_per_io),
        format!("{client_share:.2}"),
        wake_ups,
        client.kicks.to_string(),
    ]];
    match (&report.server_cost, report.options.server_pid) {
        (Some(cost), Some(pid)) => rows.push(vec![
            format!("server, process {pid}"),
            cpu_us(cost.cpu_ns_per_io),
            format!("{:.2}", cost.cpu_share),
            "-".to_owned(),
            "-".to_owned(),
        ]),
        _ => rows.push(vec!["server: not known, see --server-pid".to_owned()]),
    }
    table(&["CPU", "µS PER I/O", "CPUS", "I/OS PER WAKE-UP", "KICKS"], &[1, 2, 3, 4], rows)
}

fn checks(report: &Report) -> Option<String> {
    let mut lines = Vec::new();
    if let Some(verify) = &report.verify {
        lines.push(format!(
            "verified: {} compared, {} of them read back at the end, {} wrong",
            count(verify.blocks_checked, "block"),
            verify.blocks_read_back,
            verify.blocks_corrupt
        ));
    }
    for restart in &report.restarts {
        lines.push(format!(
            "the server was gone after {:.1} s, for {:.2} s",
            restart.at_seconds, restart.pause_seconds
        ));
    }
    for failure in &report.failures {
        lines.push(format!("failure: {failure}"));
    }
    (!lines.is_empty()).then(|| lines.join("\n"))
}
