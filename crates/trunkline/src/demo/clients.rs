//! Two clients at the same time, each on a disk and a socket of its own, and what they cost the server.

use super::Plan;
use super::server::{Server, Side};
use crate::bench;
use crate::exit::Failure;
use control::statistics::{ChannelStatsView, StatsView};
use partition::load::{self, LoadOptions, Order, Progress, Report};
use serde::Serialize;
use std::ops::AddAssign;
use std::sync::mpsc;
use std::time::Duration;

/// Requests that write the disks are larger than those that are measured: the blocks in them are checked one by one all the same.
const FILL_BYTES: u32 = 64 << 10;
/// A disk that is too slow to be written in this time is verified as far as it got.
const FILL_TIME: Duration = Duration::from_secs(5);

/// What was verified.
#[derive(Debug, Default, Serialize)]
pub(super) struct Verified {
    disks: usize,
    /// Bytes that were written with checksums and read back.
    pub(super) bytes: u64,
    /// Blocks that were not what was written.
    pub(super) blocks_wrong: u64,
}

impl AddAssign for Verified {
    fn add_assign(&mut self, other: Verified) {
        self.disks += other.disks;
        self.bytes += other.bytes;
        self.blocks_wrong += other.blocks_wrong;
    }
}

/// A line of the table: both clients together.
#[derive(Debug, Serialize)]
pub(super) struct Row {
    /// Channels that did the work.
    pub(super) channels: usize,
    /// `read` or `write`.
    pub(super) operation: &'static str,
    /// Requests per second.
    pub(super) iops: f64,
    /// Latencies as the clients see them, of the client that had the higher one.
    pub(super) p50_ns: u64,
    pub(super) p99_ns: u64,
    pub(super) p999_ns: u64,
    /// CPU time of the data plane for each request.
    pub(super) server_cpu_ns_per_io: f64,
    /// Requests for each time that a channel was woken; none if none ever slept.
    pub(super) ios_per_wake_up: Option<f64>,
}

/// Writes both disks with checksummed blocks and reads everything back.
pub(super) fn verify(
    server: &Server<'_>,
    side: Side,
    plan: &Plan,
    file_bytes: u64,
    progress: impl FnMut(&Progress),
) -> Result<Verified, Failure> {
    let options = LoadOptions {
        queues: plan.queues,
        threads: Some(plan.threads),
        // Twice the depth must fit into the part of each queue.
        depth: plan.depth.min(4),
        read_percent: 0,
        order: Order::Sequential,
        block_bytes: FILL_BYTES,
        operations: Some(file_bytes / u64::from(FILL_BYTES)),
        duration: FILL_TIME,
        verify: true,
        ..LoadOptions::default()
    };
    let reports = both(server, side, &options, progress)?;
    let mut verified = Verified::default();
    for verify in reports.iter().filter_map(|report| report.verify.as_ref()) {
        verified += Verified {
            disks: 1,
            bytes: verify.blocks_read_back * u64::from(FILL_BYTES),
            blocks_wrong: verify.blocks_corrupt,
        };
    }
    if verified.bytes == 0 {
        return Err(Failure::other("nothing was read back"));
    }
    Ok(verified)
}

/// Measures one line of the table.
pub(super) fn measure(
    server: &Server<'_>,
    side: Side,
    options: &LoadOptions,
    progress: impl FnMut(&Progress),
) -> Result<Row, Failure> {
    let options = LoadOptions { server_pid: Some(server.dataplane_pid(side)?), ..options.clone() };
    let before = server.stats()?;
    let reports = both(server, side, &options, progress)?;
    let after = server.stats()?;
    let worst = |value: fn(&Report) -> u64| reports.iter().map(value).max().unwrap_or(0);
    let iops: f64 = reports.iter().map(|report| report.iops).sum();
    let work = work(side, &before, &after);
    Ok(Row {
        channels: work.channels,
        operation: if options.read_percent == 0 { "write" } else { "read" },
        iops,
        p50_ns: worst(|report| report.latency.p50_ns),
        p99_ns: worst(|report| report.latency.p99_ns),
        p999_ns: worst(|report| report.latency.p999_ns),
        server_cpu_ns_per_io: cpu_per_io(&reports, iops),
        ios_per_wake_up: (work.wake_ups > 0).then(|| work.commands as f64 / work.wake_ups as f64),
    })
}

/// Both clients saw the same process work for both of them, each over its own measurement: the mean of its share of a CPU,
/// over the rate of both.
fn cpu_per_io(reports: &[Report], iops: f64) -> f64 {
    let shares: Vec<f64> = reports
        .iter()
        .filter_map(|report| report.server_cost.as_ref())
        .map(|cost| cost.cpu_share)
        .collect();
    if shares.is_empty() || iops <= 0.0 {
        return 0.0;
    }
    shares.iter().sum::<f64>() / shares.len() as f64 * 1e9 / iops
}

/// What channels did between two looks at their counters.
#[derive(Debug, Default, PartialEq, Eq)]
struct Work {
    /// Channels that completed anything.
    channels: usize,
    commands: u64,
    wake_ups: u64,
}

fn work(side: Side, before: &StatsView, after: &StatsView) -> Work {
    let mut work = Work::default();
    for channel in after.channels.iter().filter(|channel| channel.dataplane == side.dataplane()) {
        let same = |earlier: &&ChannelStatsView| {
            earlier.dataplane == channel.dataplane && earlier.channel == channel.channel
        };
        let earlier = before.channels.iter().find(same);
        let grown = |counter: &str| {
            let value = |view: &ChannelStatsView| view.counters.get(counter).copied().unwrap_or(0);
            value(channel).saturating_sub(earlier.map_or(0, value))
        };
        let commands = grown("commands");
        work.channels += usize::from(commands > 0);
        work.commands += commands;
        work.wake_ups += grown("wakeups");
    }
    work
}

/// Runs the two clients of a side with the same load. `progress` is called with the rate of both.
fn both(
    server: &Server<'_>,
    side: Side,
    options: &LoadOptions,
    mut progress: impl FnMut(&Progress),
) -> Result<Vec<Report>, Failure> {
    let results = std::thread::scope(|scope| {
        let (sender, received) = mpsc::channel::<(usize, Progress)>();
        let clients: Vec<_> = side
            .disks()
            .enumerate()
            .map(|(index, disk)| {
                let (socket, sender) = (server.socket(disk), sender.clone());
                let options = LoadOptions { seed: options.seed + index as u64, ..options.clone() };
                let client = scope.spawn(move || {
                    load::run(&socket, &options, &mut |progress| {
                        // Nobody listens only when this whole function is being left.
                        let _ = sender.send((index, *progress));
                    })
                });
                (disk.adapter, client)
            })
            .collect();
        // What the threads hold are now the only senders, so that the loop ends with the clients.
        drop(sender);
        let mut rates = vec![0.0; clients.len()];
        for (index, from) in received {
            rates[index] = from.iops;
            progress(&Progress { iops: rates.iter().sum(), ..from });
        }
        clients.into_iter().map(|(adapter, client)| (adapter, client.join())).collect::<Vec<_>>()
    });
    results.into_iter().map(|(adapter, result)| judge(adapter, result)).collect()
}

fn judge(
    adapter: &str,
    result: std::thread::Result<Result<Report, load::LoadError>>,
) -> Result<Report, Failure> {
    let report =
        result.map_err(|_| Failure::other(format!("the client of {adapter} panicked")))?.map_err(
            |error| Failure::other(format!("the client of {adapter}: {}", bench::failure(&error))),
        )?;
    match report.failures.first() {
        Some(failure) => Err(Failure::other(format!("the client of {adapter}: {failure}"))),
        None => Ok(report),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(dataplane: &str, channel: u32, commands: u64, wakeups: u64) -> ChannelStatsView {
        let counters = [("commands".to_owned(), commands), ("wakeups".to_owned(), wakeups)];
        ChannelStatsView { dataplane: dataplane.to_owned(), channel, counters: counters.into() }
    }

    #[test]
    fn work_is_what_grew_on_this_side() {
        let before = StatsView {
            adapters: Vec::new(),
            ports: Vec::new(),
            channels: vec![channel("main", 0, 10, 5), channel("one", 0, 100, 100)],
        };
        let after = StatsView {
            adapters: Vec::new(),
            ports: Vec::new(),
            channels: vec![
                channel("main", 0, 30, 7),
                channel("main", 1, 4, 1),
                channel("main", 2, 0, 9),
                channel("one", 0, 500, 500),
            ],
        };
        let expected = Work { channels: 2, commands: 24, wake_ups: 12 };
        assert_eq!(work(Side::Several, &before, &after), expected);
    }
}
