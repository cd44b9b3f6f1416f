//! `fcstat -l`: where the time of commands goes, interval by interval.

use super::fcstat::{self, LayerTimes};
use super::{Context, wrong};
use crate::exit::Failure;
use crate::output::put;
use control::statistics::StatsView;
use protocol::stats::{Histogram, Latency};
use std::collections::BTreeMap;
use std::time::Duration;

/// The longest that is watched: a day.
const LONGEST_S: u64 = 86_400;

/// Watches adapters together for so many seconds and prints every interval; without one, all at the end.
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
        put(&fcstat::long_running(device, from, to, &times(&now, &before)))?;
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

fn read(context: &Context<'_>, adapters: &[&str]) -> Result<Layers, Failure> {
    let stats: StatsView = context.client.get("/v1/stats?histograms=true")?;
    let mut layers = Layers::new();
    for adapter in stats.adapters.iter().filter(|one| adapters.contains(&one.adapter.as_str())) {
        for layer in Latency::ALL.map(Latency::as_str) {
            let view = adapter.total.latency.get(layer).and_then(|view| view.histogram.as_ref());
            let histogram = view.map(|view| view.read()).unwrap_or_default();
            layers.entry(layer).or_default().merge(&histogram);
        }
    }
    Ok(layers)
}

/// The original's layers, outermost last. What happens within the client nobody sees from here.
fn times(now: &Layers, before: &Layers) -> Vec<LayerTimes> {
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
    names.map(layer).into()
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
        insta::assert_snapshot!(fcstat::long_running("vfchost0", 5, 10, &times));
    }
}
