//! What the demo prints.

use super::Shown;
use crate::bench::report::{count, cpu_us, rate};
use crate::output::{bytes, duration, table};

/// The table, with what was measured above it and how to read it below.
pub(super) fn page(shown: &Shown) -> String {
    let plan = &shown.plan;
    let wrong = match shown.verified.blocks_wrong {
        0 => "none wrong".to_owned(),
        wrong => count(wrong, "block") + " wrong",
    };
    // The data plane has more to tell than that a file is a file when it is not accessed directly.
    let access = match shown.access.as_str() {
        "" | "file" => String::new(),
        access => format!(" ({access})"),
    };
    let head = format!(
        "4 files of {} in {}{access}\n\
         verified: {} written with checksums and read back, {wrong}\n\
         2 clients at the same time, each with {} of depth {}; 4KiB random; {}",
        bytes(shown.file_bytes),
        shown.folder.display(),
        bytes(shown.verified.bytes),
        count(plan.queues, "queue"),
        plan.depth,
        count(plan.cpus as u64, "CPU"),
    );
    [head, rows(shown), foot(shown)].join("\n\n")
}

fn rows(shown: &Shown) -> String {
    let rows = shown.rows.iter().map(|row| {
        vec![
            row.channels.to_string(),
            row.operation.to_owned(),
            rate(row.iops),
            duration(row.p50_ns),
            duration(row.p99_ns),
            duration(row.p999_ns),
            cpu_us(row.server_cpu_ns_per_io),
            row.ios_per_wake_up.map_or_else(|| "-".to_owned(), |ios| format!("{ios:.1}")),
        ]
    });
    let heading = [
        "CHANNELS",
        "4KIB RANDOM",
        "IOPS",
        "P50",
        "P99",
        "P99.9",
        "SERVER CPU-µS PER I/O",
        "I/OS PER WAKE-UP",
    ];
    table(&heading, &[0, 2, 3, 4, 5, 6, 7], rows.collect())
}

fn foot(shown: &Shown) -> String {
    let plan = &shown.plan;
    let mut text =
        "IOPS are of both clients together, latencies of the client that had the higher \
                    ones, as it sees them."
            .to_owned();
    let threads = plan.channels() + 2 * plan.threads;
    if usize::from(threads) > plan.cpus {
        text += &format!(
            "\nServer and clients share {}: here several channels show that they work, not what \
             they bring.",
            count(plan.cpus as u64, "CPU")
        );
    }
    text
}
