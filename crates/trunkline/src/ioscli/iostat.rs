//! `iostat -D` and `viostat -extdisk`: how adapters, or their LUNs, were served, reads and writes apart.

use super::system::System;
use super::words::Words;
use super::{Context, wrong};
use crate::exit::Failure;
use crate::output::put;
use control::statistics::{AdapterStatsView, Counters, Measures, StatsView};
use protocol::stats::{Histogram, Latency, QueueCounter};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// The longest that is watched: a day.
const LONGEST_S: u64 = 86_400;

/// What is counted of an adapter, or of a LUN, at one moment.
#[derive(Debug, Clone, Default)]
struct Reading {
    counters: Counters,
    /// The times in the server and with the volume, of all commands.
    server: Histogram,
    device: Histogram,
}

impl Reading {
    fn of(measures: &Measures) -> Reading {
        let histogram = |latency: Latency| {
            let view = measures.latency.get(latency.as_str());
            view.and_then(|view| view.histogram.as_ref()).map(|view| view.read())
        };
        Reading {
            counters: measures.counters.clone(),
            server: histogram(Latency::Server).unwrap_or_default(),
            device: histogram(Latency::Device).unwrap_or_default(),
        }
    }
}

/// What has a row: an adapter, or its LUN behind a target.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Row {
    adapter: String,
    lun: Option<(u32, u32)>,
}

impl Row {
    /// Of what was typed: `vfchost0`, or `vfchost0/0/1` for target 0 and LUN 1.
    fn read(text: &str) -> Row {
        let lun = || {
            let (rest, lun) = text.rsplit_once('/')?;
            let (adapter, target) = rest.rsplit_once('/')?;
            let lun = Some((target.parse().ok()?, lun.parse().ok()?));
            Some(Row { adapter: adapter.to_owned(), lun })
        };
        lun().unwrap_or_else(|| Row { adapter: text.to_owned(), lun: None })
    }

    fn name(&self) -> String {
        match self.lun {
            None => self.adapter.clone(),
            Some((target, lun)) => format!("{}/{target}/{lun}", self.adapter),
        }
    }
}

/// What was asked for.
struct Asked {
    /// Nothing: all adapters.
    rows: Vec<Row>,
    /// Of adapters the LUNs.
    luns: bool,
}

impl Asked {
    /// Of an adapter: what of it is wanted.
    fn readings(&self, adapter: &AdapterStatsView) -> Vec<(Row, Reading)> {
        let row = |lun| Row { adapter: adapter.adapter.clone(), lun };
        let whole = self.rows.is_empty() || self.rows.contains(&row(None));
        let in_luns = whole && self.luns && !adapter.luns.is_empty();
        let mut found = Vec::new();
        if whole && !in_luns {
            found.push((row(None), Reading::of(&adapter.total)));
        }
        for lun in &adapter.luns {
            let row = row(Some((lun.target, lun.lun)));
            if in_luns || self.rows.contains(&row) {
                found.push((row, Reading::of(&lun.measures)));
            }
        }
        found
    }
}

/// One direction in an interval; times in nanoseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Service {
    pub(super) per_second: f64,
    pub(super) average_ns: u64,
    pub(super) shortest_ns: u64,
    pub(super) longest_ns: u64,
    pub(super) fails: u64,
}

/// One adapter in an interval.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Sample {
    pub(super) device: String,
    pub(super) active_percent: f64,
    pub(super) read_bytes: f64,
    pub(super) written_bytes: f64,
    pub(super) transfers: f64,
    pub(super) read: Service,
    pub(super) write: Service,
    /// Mean, shortest and longest time in the server.
    pub(super) queue_ns: [u64; 3],
    /// Commands in the server, and with the volume, on average.
    pub(super) waiting: f64,
    pub(super) in_service: f64,
    pub(super) full: f64,
}

/// `iostat`, `viostat`
pub(super) fn run(context: &Context<'_>, words: &Words) -> Result<String, Failure> {
    if !words.has("-D") && !words.has("-extdisk") {
        let help = "`iostat -D [DEVICE …] [INTERVAL [COUNT]]`, or `viostat -extdisk …`";
        return Err(wrong("only -D, or -extdisk of viostat, is here", help));
    }
    let numbers = words.plain.iter().rev().take(2).take_while(|word| seconds(word).is_some());
    let numbers = numbers.count();
    let (names, times) = words.plain.split_at(words.plain.len() - numbers);
    let system = System::load(context)?;
    let rows = names.iter().map(|name| Row::read(name)).collect();
    let asked = Asked { rows, luns: words.has("-lun") };
    for (name, row) in names.iter().zip(&asked.rows) {
        if system.adapter(&row.adapter).is_none() {
            return Err(super::system::not_found(name));
        }
    }
    let interval = times.first().and_then(|word| seconds(word));
    let count = times.get(1).and_then(|word| seconds(word));
    let up = |name: &str| {
        let adapter = system.adapter(name);
        adapter.map_or(0, |adapter| system.seconds(&adapter.dataplane, None))
    };
    let mut before: BTreeMap<Row, Reading> = BTreeMap::new();
    let mut then: Option<Instant> = None;
    let mut done = 0;
    loop {
        let stats: StatsView = context.client.get("/v1/stats?histograms=true")?;
        let at = Instant::now();
        let now: BTreeMap<Row, Reading> =
            stats.adapters.iter().flat_map(|adapter| asked.readings(adapter)).collect();
        if let Some(row) = asked.rows.iter().find(|one| one.lun.is_some() && !now.contains_key(one))
        {
            return Err(super::system::not_found(&row.name()));
        }
        let none = Reading::default();
        let samples = now.iter().map(|(row, now)| {
            // The first report is since the data plane began, as that of the original is since the start of the system.
            let elapsed =
                then.map_or_else(|| up(&row.adapter) as f64, |then| (at - then).as_secs_f64());
            sample(&row.name(), before.get(row).unwrap_or(&none), now, elapsed)
        });
        put(report(&samples.collect::<Vec<_>>()).trim_end())?;
        done += 1;
        let Some(interval) = interval.filter(|_| count.is_none_or(|count| done < count)) else {
            return Ok(String::new());
        };
        (before, then) = (now, Some(at));
        std::thread::sleep(Duration::from_secs(interval));
    }
}

fn seconds(word: &str) -> Option<u64> {
    word.parse().ok().filter(|seconds| (1..=LONGEST_S).contains(seconds))
}

/// What happened between two readings.
fn sample(device: &str, before: &Reading, now: &Reading, elapsed: f64) -> Sample {
    use QueueCounter as Q;
    let value = |reading: &Reading, counter: Q| {
        reading.counters.get(counter.info().name).copied().unwrap_or(0)
    };
    // Less than before: the data plane was started again. Of a LUN nobody counts what was received.
    let fewer = |counter| value(now, counter) < value(before, counter);
    let again = [Q::CommandsReceived, Q::Reads, Q::Writes].into_iter().any(fewer);
    let none = Reading::default();
    let before = if again { &none } else { before };
    let since = |counter: Q| value(now, counter).saturating_sub(value(before, counter));
    let rate = |count: u64| if elapsed > 0.0 { count as f64 / elapsed } else { 0.0 };
    let service = |[done, timed, device, shortest, longest]: [Q; 5]| {
        let timed = since(timed);
        let of_any = |counter| if timed > 0 { value(now, counter) } else { 0 };
        Service {
            per_second: rate(since(done)),
            // What was answered at once is not timed, and was in the server only.
            average_ns: since(device).checked_div(timed.max(since(done))).unwrap_or(0),
            shortest_ns: of_any(shortest),
            longest_ns: of_any(longest),
            fails: timed.saturating_sub(since(done)),
        }
    };
    let server = now.server.since(&before.server);
    let (server_ns, device_ns) = (server.sum_ns, now.device.since(&before.device).sum_ns);
    let full = [Q::WaitNoCommand, Q::WaitNoElement, Q::WaitBackEndFull].map(since);
    let busy = rate(server_ns + device_ns) / 1e9;
    Sample {
        device: device.to_owned(),
        active_percent: (busy * 100.0).min(100.0),
        read_bytes: rate(since(Q::ReadBytes)),
        written_bytes: rate(since(Q::WrittenBytes)),
        transfers: rate(since(Q::Reads) + since(Q::Writes)),
        read: service([Q::Reads, Q::TimedReads, Q::ReadDevice, Q::ReadShortest, Q::ReadLongest]),
        write: service([
            Q::Writes,
            Q::TimedWrites,
            Q::WriteDevice,
            Q::WriteShortest,
            Q::WriteLongest,
        ]),
        queue_ns: [server.mean_ns(), server.quantile_ns(0.0), server.quantile_ns(1.0)],
        waiting: rate(server_ns) / 1e9,
        in_service: rate(device_ns) / 1e9,
        full: rate(full.iter().sum()),
    }
}

/// As the original prints them.
pub(super) fn report(samples: &[Sample]) -> String {
    let cpus = std::thread::available_parallelism().map_or(1, usize::from);
    let count = samples.len();
    let mut text = format!(
        "\nSystem configuration: lcpu={cpus} drives={count} paths={count} vdisks={count}\n\n"
    );
    for sample in samples {
        text.push_str(&block(sample));
        text.push_str(&format!("{}\n", "-".repeat(80)));
    }
    text
}

fn block(sample: &Sample) -> String {
    let row = |cells: [&str; 6]| {
        let [a, b, c, d, e, f] = cells;
        format!("{:21}{a:>8} {b:>8} {c:>8} {d:>8} {e:>10} {f:>10}", "").trim_end().to_owned() + "\n"
    };
    let head = |name: &str, group: &str, cells: [&str; 6]| {
        let [a, b, c, d, e, f] = cells;
        let name = format!("{name:<14} {group:>6}");
        let name = if name.len() > 21 { format!("{name} ") } else { name };
        format!("{name:21}{a:>8} {b:>8} {c:>8} {d:>8} {e:>10} {f:>10}").trim_end().to_owned() + "\n"
    };
    let number = |value: f64| format!("{value:.1}");
    let ms = |ns: u64| format!("{:.1}", ns as f64 / 1e6);
    let size = |bytes: f64| match bytes {
        bytes if bytes >= 1e10 => format!("{:.1}G", bytes / 1e9),
        bytes if bytes >= 1e6 => format!("{:.1}M", bytes / 1e6),
        bytes if bytes >= 1e4 => format!("{:.1}K", bytes / 1e3),
        bytes => format!("{bytes:.1}"),
    };
    let Sample { read, write, queue_ns: [mean, least, most], .. } = sample;
    let serve = |service: &Service| {
        [
            number(service.per_second),
            ms(service.average_ns),
            ms(service.shortest_ns),
            ms(service.longest_ns),
            "0".to_owned(),
            service.fails.to_string(),
        ]
    };
    let cells = |cells: [String; 6]| row(cells.each_ref().map(String::as_str));
    let xfer = ["%tm_act", "bps", "tps", "bread", "bwrtn", ""];
    let served = ["avgserv", "minserv", "maxserv", "timeouts", "fails"];
    let of = |first| [first, served[0], served[1], served[2], served[3], served[4]];
    let queue = ["avgtime", "mintime", "maxtime", "avgwqsz", "avgsqsz", "sqfull"];
    [
        head(&sample.device, "xfer:", xfer),
        cells([
            number(sample.active_percent),
            size(sample.read_bytes + sample.written_bytes),
            number(sample.transfers),
            size(sample.read_bytes),
            size(sample.written_bytes),
            String::new(),
        ]),
        head("", "read:", of("rps")),
        cells(serve(read)),
        head("", "write:", of("wps")),
        cells(serve(write)),
        head("", "queue:", queue),
        cells([
            ms(*mean),
            ms(*least),
            ms(*most),
            number(sample.waiting),
            number(sample.in_service),
            number(sample.full),
        ]),
    ]
    .concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Times<'a> = &'a [(u64, u64)];

    fn reading(counters: &[(QueueCounter, u64)], [server, device]: [Times<'_>; 2]) -> Reading {
        let histogram = |times: Times<'_>| {
            let mut histogram = Histogram::default();
            for (ns, count) in times {
                histogram.buckets[protocol::stats::bucket_of(*ns)] += count;
                histogram.sum_ns += ns * count;
            }
            histogram
        };
        let counters = counters.iter().map(|(counter, n)| (counter.info().name.to_owned(), *n));
        Reading {
            counters: counters.collect(),
            server: histogram(server),
            device: histogram(device),
        }
    }

    /// 10 seconds: 1,000 reads of 4 ms, one of which failed, and 500 writes of 8 ms, which waited 1 ms in the server.
    fn ten_seconds() -> Sample {
        use QueueCounter as Q;
        let before = [(Q::Reads, 7), (Q::TimedReads, 7), (Q::ReadDevice, 7_000)];
        let before = reading(&before, [&[], &[]]);
        let now = reading(
            &[
                (Q::Reads, 1_006),
                (Q::TimedReads, 1_007),
                (Q::ReadDevice, 7_000 + 4_000_000_000),
                (Q::ReadShortest, 900_000),
                (Q::ReadLongest, 171_200_000),
                (Q::ReadBytes, 40_960_000),
                (Q::Writes, 500),
                (Q::TimedWrites, 500),
                (Q::WriteDevice, 4_000_000_000),
                (Q::WriteShortest, 1_000_000),
                (Q::WriteLongest, 104_900_000),
                (Q::WrittenBytes, 2_048_000),
                (Q::WaitNoCommand, 20),
                (Q::WaitNoElement, 5),
            ],
            [&[(0, 1_000), (3_000_000, 500)], &[(4_000_000, 1_000), (8_000_000, 500)]],
        );
        sample("vfchost0", &before, &now, 10.0)
    }

    #[test]
    fn reads_and_writes_have_figures_of_their_own() {
        let sample = ten_seconds();
        let read = sample.read;
        assert_eq!((read.per_second, read.average_ns, read.fails), (99.9, 4_000_000, 1));
        assert_eq!((read.shortest_ns, read.longest_ns), (900_000, 171_200_000));
        assert_eq!((sample.write.per_second, sample.write.average_ns), (50.0, 8_000_000));
        assert_eq!(sample.queue_ns[0], 1_000_000);
        assert_eq!((sample.waiting, sample.in_service, sample.full), (0.15, 0.8, 2.5));
        assert_eq!(sample.active_percent, 95.0);
        // As many more that were answered at once: without a time with the volume.
        let now = [(QueueCounter::Reads, 20), (QueueCounter::TimedReads, 10)];
        let now = [now.to_vec(), vec![(QueueCounter::ReadDevice, 10_000_000)]].concat();
        let now = reading(&now, [&[], &[]]);
        assert_eq!(super::sample("a", &Reading::default(), &now, 1.0).read.average_ns, 500_000);
        // A data plane that was started again counts from its beginning.
        let received = |n| {
            reading(&[(QueueCounter::CommandsReceived, n), (QueueCounter::Reads, n)], [&[], &[]])
        };
        assert_eq!(super::sample("a", &received(900), &received(30), 1.0).read.per_second, 30.0);
    }

    #[test]
    fn iostat_is_read_again() {
        let idle = Sample { device: "a-device-with-a-long-name".to_owned(), ..Sample::default() };
        let text = report(&[ten_seconds(), idle]);
        let captures = crate::ioscli::tests::read("iostat -D", &text);
        let disks = &captures.reports[0].iostat_d().unwrap().disks;
        assert_eq!(disks.len(), 2);
        let disk = &disks[0];
        let value =
            |read: &Option<planner::capture::Read<f64>>| read.map(|read| read.value).unwrap();
        assert_eq!(disk.name, "vfchost0");
        assert_eq!(value(&disk.active_percent), 95.0);
        assert_eq!(value(&disk.read.per_second), 99.9);
        assert_eq!(value(&disk.read.average_ms), 4.0);
        assert_eq!((value(&disk.read.min_ms), value(&disk.read.max_ms)), (0.9, 171.2));
        assert_eq!((value(&disk.read.timeouts), value(&disk.read.fails)), (0.0, 1.0));
        assert_eq!((value(&disk.write.per_second), value(&disk.write.average_ms)), (50.0, 8.0));
        assert_eq!(value(&disk.queue.full_per_second), 2.5);
        assert_eq!(value(&disk.queue.in_service), 0.8);
        assert_eq!(disks[1].name, "a-device-with-a-long-name");
        insta::assert_snapshot!(text.replace(
            &format!("lcpu={}", std::thread::available_parallelism().map_or(1, usize::from)),
            "lcpu=2"
        ));
    }
}
