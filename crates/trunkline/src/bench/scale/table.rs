//! What `bench scale` found out, for people.

use super::{Point, Scaling, ServerWait, Volume};
use crate::bench::report::{cpu_us, rate};
use crate::output::{bytes, duration, table};
use partition::load::WaitMode;
use std::collections::BTreeSet;

/// Everything below each other.
pub(super) fn page(scaling: &Scaling) -> String {
    let mut lines = vec![head(scaling), String::new(), points(&scaling.points)];
    lines.push(String::new());
    if scaling.points.iter().any(|point| point.shares_cores) {
        lines.push("*  threads shared cores: less than linear is expected".to_owned());
    }
    lines.extend(scaling.not_measured.iter().map(|missing| {
        let end = if missing.channels == 1 { "" } else { "s" };
        format!("{} channel{end}: not measured, {}", missing.channels, missing.reason)
    }));
    if scaling.points.len() == 1 {
        lines.push("with one measurement there is nothing to compare".to_owned());
    }
    lines.join("\n")
}

fn head(scaling: &Scaling) -> String {
    let list = |cpus: &[usize]| {
        fabric::units::format_cpus(&cpus.iter().copied().collect::<BTreeSet<usize>>())
    };
    let options = &scaling.options;
    let volume = match scaling.volume {
        Volume::Null => "null",
        Volume::Ram => "RAM",
    };
    let server = match scaling.server_wait {
        ServerWait::Poll => "polls",
        ServerWait::Adaptive => "waits adaptively",
        ServerWait::Interrupt => "sleeps",
    };
    let client = match options.wait {
        WaitMode::Poll => "poll",
        WaitMode::Sleep => "sleep",
    };
    let processor = scaling.processor.as_deref().unwrap_or("unknown processor");
    format!(
        "trunkline {}, {processor}\n\
         server on CPUs {}, it {server}; clients on CPUs {}, they {client}\n\
         one adapter on a {volume} volume, a queue and a client thread for each channel, depth {}\n\
         {} random, {} % reads; medians of {} × {:.1} s",
        scaling.version,
        list(&scaling.server_cpus),
        list(&scaling.client_cpus),
        options.depth,
        bytes(options.block_bytes.into()),
        options.read_percent,
        scaling.rounds,
        options.duration.as_secs_f64(),
    )
}

fn points(points: &[Point]) -> String {
    let rows = points.iter().map(|point| {
        let mark = if point.shares_cores { "*" } else { "" };
        vec![
            format!("{}{mark}", point.channels),
            rate(point.iops),
            format!("{}..{}", rate(point.iops_min), rate(point.iops_max)),
            format!("{:.0} %", point.efficiency * 100.0),
            cpu_us(point.server_cpu_ns_per_io),
            cpu_us(point.client_cpu_ns_per_io),
            duration(point.p50_ns),
            duration(point.p99_ns),
        ]
    });
    let heading = [
        "CHANNELS",
        "IOPS",
        "LOWEST..HIGHEST",
        "OF LINEAR",
        "SERVER CPU-µS PER I/O",
        "CLIENT CPU-µS PER I/O",
        "P50",
        "P99",
    ];
    table(&heading, &[0, 1, 2, 3, 4, 5, 6, 7], rows.collect())
}
