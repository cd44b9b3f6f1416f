//! `fcstat -l`: where the time of commands goes, interval by interval.

use super::fcstat::{self, LayerTimes, LunTimes, WayTimes};
use super::{Context, wrong};
use crate::exit::Failure;
use crate::output::put;
use control::statistics::{Counters, Measures, StatsView};
use protocol::stats::{Histogram, Latency};
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest that is watched: a day.
const LONGEST_S: u64 = 86_400;

/// Watches adapters together for so many seconds and prints every interval; without one, all at the end. Of one adapter, also each of its LUNs.
pub(super) fn layers(
    context: &Context<'_>,
    device: &str,
    adapters: &[&str],
    duration: &str,
    interval: Option<&str>,
) -> Result<(), Failure> {
    let duration = seconds(duration)?;
    let interval = interval.map_or(Ok(duration), seconds)?.min(duration);
    let mut before = read(context, adapters)?;
    let mut from = 0;
    while from < duration {
        let to = (from + interval).min(duration);
        std::thread::sleep(Duration::from_secs(to - from));
        let now = read(context, adapters)?;
        let layers = times(&now.layers, &before.layers);
        let (ways, luns) = (ways(&now, &before), lun_times(&now, &before));
        put(&fcstat::long_running(device, from, to, &ways, &layers, &luns))?;
        (before, from) = (now, to);
    }
    Ok(())
}

fn seconds(text: &str) -> Result<u64, Failure> {
    let number = text.parse().ok().filter(|seconds| (1..=LONGEST_S).contains(seconds));
    number.ok_or_else(|| {
        let help = format!("give seconds, from 1 to {LONGEST_S}: `fcstat -l 20 5 DEVICE`");
        wrong(format!("`{text}` is no time to watch"), &help)
    })
}

type Layers = BTreeMap<&'static str, Histogram>;

/// What is counted at one moment.
#[derive(Default)]
struct Moment {
    layers: Layers,
    counters: Counters,
    /// By target and LUN, where one adapter is watched.
    luns: BTreeMap<(u32, u32), Moment>,
}

impl Moment {
    fn add(&mut self, measures: &Measures) {
        for layer in Latency::ALL.map(Latency::as_str) {
            let view = measures.latency.get(layer).and_then(|view| view.histogram.as_ref());
            let histogram = view.map(|view| view.read()).unwrap_or_default();
            self.layers.entry(layer).or_default().merge(&histogram);
        }
        for (name, value) in &measures.counters {
            *self.counters.entry(name.clone()).or_default() += value;
        }
    }
}

fn read(context: &Context<'_>, adapters: &[&str]) -> Result<Moment, Failure> {
    let stats: StatsView = context.client.get("/v1/stats?histograms=true")?;
    let mut moment = Moment::default();
    for adapter in stats.adapters.iter().filter(|one| adapters.contains(&one.adapter.as_str())) {
        moment.add(&adapter.total);
        if adapters.len() == 1 {
            for lun in &adapter.luns {
                moment.luns.entry((lun.target, lun.lun)).or_default().add(&lun.measures);
            }
        }
    }
    Ok(moment)
}

/// The LUNs that were read or written.
fn lun_times(now: &Moment, before: &Moment) -> Vec<LunTimes> {
    let none = Moment::default();
    let of_lun = |((target, lun), now): (&(u32, u32), &Moment)| {
        let ways = ways(now, before.luns.get(&(*target, *lun)).unwrap_or(&none));
        let used = ways.into_iter().filter(|way| way.commands > 0);
        used.map(|way| LunTimes { target: *target, lun: *lun, way }).collect::<Vec<_>>()
    };
    now.luns.iter().flat_map(of_lun).collect()
}

/// Reads and writes apart. What a volume answers at once is timed with what is taken and answered together with it, whichever way it goes: all of that
/// has one mean, and no time with the volume.
fn ways(now: &Moment, before: &Moment) -> Vec<WayTimes> {
    let since = |name: &str| {
        let value = |moment: &Moment| moment.counters.get(name).copied().unwrap_or(0);
        value(now).saturating_sub(value(before))
    };
    let layers = times(&now.layers, &before.layers);
    let [_, server, ring] = &layers;
    let timed = since("timed_reads") + since("timed_writes");
    let timed_ns = since("read_server_ns") + since("write_server_ns");
    let of_all_ns = server.mean_ns.saturating_mul(server.commands);
    let at_once_ns = of_all_ns.saturating_sub(timed_ns);
    let at_once_ns = at_once_ns.checked_div(server.commands.saturating_sub(timed)).unwrap_or(0);
    let way = |(completion, done, timed, of): (&'static str, &str, &str, &str)| {
        let (timed, done) = (since(timed), since(done));
        let at_once = done.saturating_sub(timed);
        let commands = timed + at_once;
        let mean = |ns: u64| ns.checked_div(commands).unwrap_or(0);
        WayTimes {
            completion,
            commands,
            san_ns: mean(since(&format!("{of}_device_ns"))),
            vios_ns: mean(since(&format!("{of}_server_ns")) + at_once * at_once_ns),
            hypervisor_ns: if commands == 0 { 0 } else { ring.mean_ns },
        }
    };
    [("Read", "reads", "timed_reads", "read"), ("Write", "writes", "timed_writes", "write")]
        .map(way)
        .into()
}

/// The original's layers, outermost last. What happens within the client nobody sees from here.
fn times(now: &Layers, before: &Layers) -> [LayerTimes; 3] {
    let names = [
        ("SAN (the volume)", Latency::Device),
        ("VIOS (the server)", Latency::Server),
        ("Hypervisor (the ring)", Latency::Ring),
    ];
    let empty = Histogram::default();
    let layer = |(layer, latency): (&'static str, Latency)| {
        let name = latency.as_str();
        let now = now.get(name).unwrap_or(&empty);
        let since = now.since(before.get(name).unwrap_or(&empty));
        LayerTimes {
            layer,
            commands: since.count(),
            mean_ns: since.mean_ns(),
            p50_ns: since.quantile_ns(0.5),
            p99_ns: since.quantile_ns(0.99),
            p999_ns: since.quantile_ns(0.999),
            max_ns: since.quantile_ns(1.0),
        }
    };
    names.map(layer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_interval_counts() {
        let mut before = Histogram::default();
        before.buckets[protocol::stats::bucket_of(1_000_000)] = 5;
        before.sum_ns = 5_000_000;
        let mut now = before.clone();
        now.buckets[protocol::stats::bucket_of(2_000)] = 3;
        now.sum_ns += 6_000;
        let times = times(&Layers::from([("device", now)]), &Layers::from([("device", before)]));
        let device = &times[0];
        assert_eq!((device.commands, device.mean_ns), (3, 2_000));
        assert!((2_000..2_300).contains(&device.max_ns), "{device:?}");
        assert_eq!(times[1].commands, 0);
        let way = |completion, commands, san_ns| WayTimes {
            completion,
            commands,
            san_ns,
            vios_ns: 1_500,
            hypervisor_ns: 400,
        };
        let ways = [way("Read", 3, 2_000), way("Write", 7_000_000, 1_234_567_890)];
        let luns = [(0, 0), (0, 12)].map(|(target, lun)| LunTimes {
            target,
            lun,
            way: way(if lun == 0 { "Read" } else { "Write" }, 2, 2_000),
        });
        let text = fcstat::long_running("vfchost0", 5, 10, &ways, &times, &luns);
        let captures = crate::ioscli::tests::read("fcstat -l 10 5 vfchost0", &text);
        let rows = &captures.reports[0].fc_latency().unwrap().rows;
        assert_eq!(rows.len(), 2);
        for (row, way) in rows.iter().zip(&ways) {
            assert_eq!((row.completion.as_str(), row.unit_ms), (way.completion, Some(0.001)));
            assert_eq!(row.count.unwrap().value, way.commands as f64);
            let us = [row.san, row.vios, row.hypervisor, row.average].map(|us| us.unwrap().value);
            let ns = [way.san_ns, way.vios_ns, way.hypervisor_ns];
            let wanted = [ns[0], ns[1], ns[2], ns.iter().sum()].map(|ns| (ns / 100) as f64 / 10.0);
            assert_eq!(us, wanted);
        }
        insta::assert_snapshot!(text);
    }

    /// A LUN has its own times, also where its first command came in the interval; one without any is left out.
    #[test]
    fn luns_have_times_of_their_own() {
        let moment = |luns: &[(u32, u64, u64)]| {
            let counted = |reads: u64, device: u64| {
                let counters =
                    [("reads", reads), ("timed_reads", reads), ("read_device_ns", device)];
                let counters = counters.map(|(name, n)| (name.to_owned(), n));
                Moment { counters: counters.into(), ..Moment::default() }
            };
            let luns = luns.iter().map(|(lun, reads, ns)| ((3, *lun), counted(*reads, *ns)));
            Moment { luns: luns.collect(), ..Moment::default() }
        };
        let before = moment(&[(0, 10, 5_000), (1, 4, 4_000)]);
        let now = moment(&[(0, 12, 45_000), (1, 4, 4_000), (7, 1, 900)]);
        let found = lun_times(&now, &before);
        let found = found.iter().map(|lun| {
            let LunTimes { target, lun, way } = lun;
            (*target, *lun, way.completion, way.commands, way.san_ns)
        });
        let wanted = [(3, 0, "Read", 2, 20_000), (3, 7, "Read", 1, 900)];
        assert_eq!(found.collect::<Vec<_>>(), wanted);
    }

    #[test]
    fn reads_and_writes_are_apart_and_of_the_interval() {
        let moment = |counters: &[(&str, u64)]| Moment {
            counters: counters.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect(),
            ..Moment::default()
        };
        let before = moment(&[("timed_reads", 10), ("read_device_ns", 1_000_000)]);
        let now = moment(&[
            ("timed_reads", 14),
            ("read_device_ns", 1_008_000),
            ("read_server_ns", 400),
            ("timed_writes", 1),
            ("write_device_ns", 77),
        ]);
        let [read, write] = &ways(&now, &before)[..] else { panic!() };
        assert_eq!((read.commands, read.san_ns, read.vios_ns), (4, 2_000, 100));
        assert_eq!((write.commands, write.san_ns, write.vios_ns), (1, 77, 0));
    }

    /// Six reads and three writes that a volume answered at once, beside two reads of a slow one and a command of another kind.
    #[test]
    fn what_is_answered_at_once_is_in_the_server_alone() {
        let counters = [
            ("reads", 8),
            ("timed_reads", 2),
            ("read_server_ns", 100),
            ("read_device_ns", 80_000),
            ("writes", 3),
        ];
        let counters = counters.iter().map(|(name, n)| ((*name).to_owned(), *n)).collect();
        let mut server = Histogram::default();
        server.buckets[protocol::stats::bucket_of(500)] = 12;
        server.sum_ns = 100 + 10 * 590;
        let now =
            Moment { counters, layers: Layers::from([("server", server)]), ..Moment::default() };
        let [read, write] = &ways(&now, &Moment::default())[..] else { panic!() };
        assert_eq!((read.commands, read.san_ns), (8, 10_000));
        assert_eq!(read.vios_ns, (100 + 6 * 590) / 8);
        assert_eq!((write.commands, write.san_ns, write.vios_ns), (3, 0, 590));
    }
}
