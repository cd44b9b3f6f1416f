//! The statistics as the API shows them: copies of the shared counters, per queue, adapter and
//! channel, under the names of the registry in `protocol::stats`.

use crate::error::{ApiError, Code};
use crate::model::MAIN;
use crate::server::shared::Server;
use fabric::attribute::Object;
use protocol::now_ms;
use protocol::stats::{
    AdapterSnapshot, ChannelCounter, FlightEvent, FlightKind, Histogram, Latency, LunSnapshot,
    QueueCounter, QueueSnapshot, Snapshot, bucket_of, bucket_upper_ns,
};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::ToSchema;

mod file;
mod ports;

pub use file::{AdapterFile, MORE};
pub(crate) use ports::totals;
pub use ports::{PortPartView, PortStatsView};

/// Counters by name.
pub type Counters = BTreeMap<String, u64>;

/// A latency in nanoseconds. Quantiles are at most 12.5 % too high, never too low.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct LatencyView {
    /// Commands measured.
    pub count: u64,
    /// Mean.
    pub mean_ns: u64,
    /// Half of the commands took no longer.
    pub p50_ns: u64,
    /// 99 of 100 took no longer.
    pub p99_ns: u64,
    /// 999 of 1000 took no longer.
    pub p999_ns: u64,
    /// The whole histogram, if it was asked for: two of them, one after the other, give the time between.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<HistogramView>,
}

/// A histogram of nanoseconds.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct HistogramView {
    /// Sum of all values.
    pub sum_ns: u64,
    /// Buckets that are not empty, in ascending order.
    pub buckets: Vec<BucketView>,
}

/// A bucket of a histogram.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct BucketView {
    /// Its values are below this one, and not below that of the bucket before it.
    pub below_ns: u64,
    /// How many there are.
    pub count: u64,
}

impl HistogramView {
    fn of(histogram: &Histogram) -> HistogramView {
        let buckets = histogram.buckets.iter().enumerate().filter(|(_, count)| **count > 0);
        let view = |(bucket, count): (usize, &u64)| BucketView {
            below_ns: bucket_upper_ns(bucket),
            count: *count,
        };
        HistogramView { sum_ns: histogram.sum_ns, buckets: buckets.map(view).collect() }
    }

    /// To reckon with.
    pub fn read(&self) -> Histogram {
        let mut histogram = Histogram { sum_ns: self.sum_ns, ..Histogram::default() };
        for bucket in &self.buckets {
            histogram.buckets[bucket_of(bucket.below_ns.saturating_sub(1))] += bucket.count;
        }
        histogram
    }
}

impl LatencyView {
    /// Of a histogram, which goes along when `whole` is true.
    pub fn of(histogram: &Histogram, whole: bool) -> LatencyView {
        LatencyView {
            count: histogram.count(),
            mean_ns: histogram.mean_ns(),
            p50_ns: histogram.quantile_ns(0.5),
            p99_ns: histogram.quantile_ns(0.99),
            p999_ns: histogram.quantile_ns(0.999),
            histogram: whole.then(|| HistogramView::of(histogram)),
        }
    }
}

/// Counters and latencies of a queue, or of all queues of an adapter.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct Measures {
    /// Counters, gauges and high-water marks by name.
    pub counters: BTreeMap<String, u64>,
    /// Latencies by stage: `ring`, `server`, `device`.
    pub latency: BTreeMap<String, LatencyView>,
}

/// One queue.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct QueueStatsView {
    /// Its number.
    pub queue: u32,
    /// As it is shown: its number, and of a SCSI adapter `control`, `event`, and from 0 those for I/O.
    #[serde(default)]
    pub name: String,
    /// The channel that owns it, or owned it last.
    pub channel: u32,
    /// Its slot, by which the flight recorder names it.
    pub slot: u32,
    /// What was measured.
    #[serde(flatten)]
    pub measures: Measures,
}

/// One adapter: the sum of its queues, and each.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct AdapterStatsView {
    /// Its name.
    pub adapter: String,
    /// Its data plane.
    pub dataplane: String,
    /// All queues together; of high-water marks the highest, but those of active, pending and waiting commands of a SCSI adapter are of all queues at once.
    pub total: Measures,
    /// When that one was reached, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_max_at_ms: Option<u64>,
    /// Since when commands wait for its port, which is short of elements, in milliseconds since 1970.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub short_since_ms: Option<u64>,
    /// Times that a command of another adapter found no element of their port while this one had most beyond its part.
    #[serde(default)]
    pub holds_up: u64,
    /// Each queue.
    pub queues: Vec<QueueStatsView>,
    /// Each LUN that the client saw, of a SCSI adapter.
    #[serde(default)]
    pub luns: Vec<LunStatsView>,
}

/// One LUN of an adapter, all channels together.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct LunStatsView {
    /// The target, as the client numbers it.
    pub target: u32,
    /// The logical unit number.
    pub lun: u32,
    /// The channels that serve it, or have done so.
    pub channels: Vec<u32>,
    /// What was measured. A LUN has only the counters of its commands, and no latency in the ring.
    #[serde(flatten)]
    pub measures: Measures,
}

/// One channel.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct ChannelStatsView {
    /// Its data plane.
    pub dataplane: String,
    /// Its number.
    pub channel: u32,
    /// Counters and gauges by name.
    pub counters: BTreeMap<String, u64>,
}

/// Everything that is counted.
#[derive(Debug, Clone, Default, Serialize, Deserialize, ToSchema)]
pub struct StatsView {
    /// Adapters by name.
    pub adapters: Vec<AdapterStatsView>,
    /// Ports by name, with what adapters did on them that are elsewhere now, or gone.
    #[serde(default)]
    pub ports: Vec<PortStatsView>,
    /// Channels by data plane and number.
    pub channels: Vec<ChannelStatsView>,
}

/// An event of the flight recorder.
#[derive(Debug, Clone, Serialize, Deserialize, ToSchema)]
pub struct FlightView {
    /// Data plane.
    pub dataplane: String,
    /// Channel.
    pub channel: u32,
    /// Nanoseconds before the channel's newest event.
    pub ns_ago: u64,
    /// What happened.
    pub event: String,
    /// The queue, as `adapter/queue`, or the number of its slot; `-` for what is about the whole channel.
    pub subject: String,
    /// A number that belongs to the event.
    pub value: u64,
}

/// The sum of queues.
pub(crate) struct Sum {
    pub(crate) counters: [u64; QueueCounter::COUNT],
    pub(crate) latency: [Histogram; Latency::COUNT],
}

/// Sums queues: counters and gauges add up, of high-water marks and of longest times the highest counts, of shortest ones the lowest.
pub(crate) fn sum<'a>(queues: impl IntoIterator<Item = &'a QueueSnapshot>) -> Sum {
    let mut sum = Sum { counters: [0; QueueCounter::COUNT], latency: Default::default() };
    for queue in queues {
        for counter in QueueCounter::ALL {
            let (total, value) = (&mut sum.counters[*counter as usize], queue.get(*counter));
            let both = counter.info().kind.of_both(*total, value);
            *total = both.unwrap_or_else(|| total.saturating_add(value));
        }
        for latency in Latency::ALL {
            sum.latency[latency as usize].merge(queue.latency(latency));
        }
    }
    sum
}

/// What is one figure for all queues of an adapter.
pub(crate) fn own<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a AdapterSnapshot> {
    snapshot.adapters.iter().find(|adapter| adapter.adapter == name)
}

/// The high-water mark of an adapter, of all its queues at once.
fn mark<'a>(snapshot: &'a Snapshot, name: &str) -> Option<&'a AdapterSnapshot> {
    own(snapshot, name).filter(|adapter| adapter.active_max > 0)
}

/// The queues of an adapter together. A high-water mark of its own stands in for the highest of its queues'.
pub(crate) fn sum_of_adapter(snapshot: &Snapshot, name: &str, queues: &[&QueueSnapshot]) -> Sum {
    let mut sum = sum(queues.iter().copied());
    if let Some(mark) = mark(snapshot, name) {
        sum.counters[QueueCounter::ActiveMax as usize] = mark.active_max;
        // A data plane of an earlier program has none.
        let pending = &mut sum.counters[QueueCounter::PendingMax as usize];
        *pending = mark.pending_max.max(*pending);
        let waiting = &mut sum.counters[QueueCounter::WaitingMax as usize];
        *waiting = mark.waiting_max.max(*waiting);
    }
    sum
}

pub(crate) fn measures(sum: &Sum, histograms: bool) -> Measures {
    let counter = |c: &QueueCounter| (c.info().name.to_owned(), sum.counters[*c as usize]);
    let shown = QueueCounter::ALL
        .iter()
        .filter(|counter| sum.counters[**counter as usize] > 0 || !counter.info().is_left_out());
    let latency = |l: &Latency| {
        (l.as_str().to_owned(), LatencyView::of(&sum.latency[*l as usize], histograms))
    };
    Measures {
        counters: shown.map(counter).collect(),
        latency: Latency::ALL.iter().map(latency).collect(),
    }
}

/// Queues by adapter.
pub(crate) fn by_adapter(snapshot: &Snapshot) -> BTreeMap<&str, Vec<&QueueSnapshot>> {
    let mut adapters: BTreeMap<&str, Vec<&QueueSnapshot>> = BTreeMap::new();
    for queue in &snapshot.queues {
        adapters.entry(&queue.adapter).or_default().push(queue);
    }
    for queues in adapters.values_mut() {
        queues.sort_by_key(|queue| queue.queue);
    }
    adapters
}

/// An adapter, target and LUN.
pub(crate) type LunPlace<'a> = (&'a str, u8, u16);

/// What the channels have counted of each LUN.
pub(crate) fn by_lun(snapshot: &Snapshot) -> BTreeMap<LunPlace<'_>, Vec<&QueueSnapshot>> {
    let mut luns: BTreeMap<_, Vec<&QueueSnapshot>> = BTreeMap::new();
    for LunSnapshot { target, lun, counted } in &snapshot.luns {
        luns.entry((counted.adapter.as_str(), *target, *lun)).or_default().push(counted);
    }
    luns
}

fn lun_view((_, target, lun): LunPlace<'_>, of: &[&QueueSnapshot], whole: bool) -> LunStatsView {
    let mut measures = measures(&sum(of.iter().copied()), whole);
    let counted = |name: &str| QueueCounter::OF_LUN.iter().any(|c| c.info().name == name);
    measures.counters.retain(|name, _| counted(name));
    measures.latency.remove(Latency::Ring.as_str());
    let mut channels: Vec<u32> = of.iter().map(|each| each.channel).collect();
    channels.sort_unstable();
    LunStatsView { target: target.into(), lun: lun.into(), channels, measures }
}

/// A queue as it is shown. The first two of a SCSI adapter carry no I/O (virtio 1.3, clause 5.6.2).
fn queue_name(is_scsi: bool, queue: u16) -> String {
    match queue {
        0 if is_scsi => "control".to_owned(),
        1 if is_scsi => "event".to_owned(),
        _ if is_scsi => (queue - 2).to_string(),
        _ => queue.to_string(),
    }
}

impl Server {
    /// A copy of the statistics of each data plane that answers.
    pub fn snapshots(&self) -> BTreeMap<String, Snapshot> {
        let views = self.supervisor_views().into_iter();
        views.filter_map(|(name, view)| Some((name, view.stats?.snapshot()))).collect()
    }

    /// The statistics, of one adapter and the channels of its data plane, or of all; an uplink is as an adapter here. An adapter that never had a
    /// client has none. With `histograms`, latencies come with their whole histograms.
    pub fn stats(&self, adapter: Option<&str>, histograms: bool) -> Result<StatsView, ApiError> {
        let desired = self.desired();
        let home = match adapter {
            None => None,
            Some(name) if desired[Object::Adapter].contains_key(name) => {
                Some(desired.dataplane_of_adapter(name).to_owned())
            }
            Some(name) if desired[Object::Uplink].contains_key(name) => {
                Some(desired.dataplane_of_uplink(name).unwrap_or(MAIN).to_owned())
            }
            Some(name) => return Err(self.not_found(Object::Adapter, name)),
        };
        let mut all = StatsView::default();
        for (dataplane, snapshot) in self.snapshots() {
            if home.as_ref().is_some_and(|home| *home != dataplane) {
                continue;
            }
            let mut luns: BTreeMap<&str, Vec<LunStatsView>> = BTreeMap::new();
            for (place, counted) in by_lun(&snapshot) {
                if adapter.is_none_or(|only| only == place.0) {
                    luns.entry(place.0).or_default().push(lun_view(place, &counted, histograms));
                }
            }
            for (name, queues) in by_adapter(&snapshot) {
                if adapter.is_some_and(|only| only != name) {
                    continue;
                }
                let is_scsi = self.is_scsi(name);
                let own = own(&snapshot, name);
                all.adapters.push(AdapterStatsView {
                    adapter: name.to_owned(),
                    dataplane: dataplane.clone(),
                    total: measures(&sum_of_adapter(&snapshot, name, &queues), histograms),
                    active_max_at_ms: mark(&snapshot, name).map(|mark| mark.active_max_at_ms),
                    short_since_ms: own.and_then(|own| own.short_since_ms(now_ms())),
                    holds_up: own.map_or(0, |own| own.holds_up),
                    queues: queues.iter().map(|q| queue_view(q, is_scsi, histograms)).collect(),
                    luns: luns.remove(name).unwrap_or_default(),
                });
            }
            let ports = totals(&snapshot).into_iter();
            let ports = ports.map(|port| PortStatsView::of(&port, &dataplane, adapter, histograms));
            all.ports.extend(ports.filter(|port| adapter.is_none() || !port.adapters.is_empty()));
            all.channels.extend(snapshot.channels.iter().map(|channel| {
                ChannelStatsView {
                    dataplane: dataplane.clone(),
                    channel: channel.index,
                    counters: ChannelCounter::ALL
                        .iter()
                        .map(|c| (c.info().name.to_owned(), channel.get(*c)))
                        .collect(),
                }
            }));
        }
        all.adapters.sort_by(|a, b| a.adapter.cmp(&b.adapter));
        all.ports.sort_by(|a, b| (&a.port, &a.dataplane).cmp(&(&b.port, &b.dataplane)));
        Ok(all)
    }

    /// The flight recorder, of one channel or of all, oldest event first; one that is named has to be there.
    pub fn flight(
        &self,
        dataplane: Option<&str>,
        channel: Option<u32>,
    ) -> Result<Vec<FlightView>, ApiError> {
        let views = self.supervisor_views();
        if let Some(name) = dataplane.filter(|name| !views.contains_key(*name)) {
            return Err(self.not_found(Object::DataPlane, name));
        }
        let (mut events, mut channels) = (Vec::new(), Vec::new());
        for (name, view) in views {
            let Some(reader) = view.stats.filter(|_| dataplane.is_none_or(|only| only == name))
            else {
                continue;
            };
            let snapshot = reader.snapshot();
            let subjects: BTreeMap<u32, String> = snapshot
                .queues
                .iter()
                .map(|queue| {
                    let name = queue_name(self.is_scsi(&queue.adapter), queue.queue);
                    (queue.slot, format!("{}/{name}", queue.adapter))
                })
                .collect();
            for index in snapshot.channels.iter().map(|c| c.index) {
                channels.push(index);
                if channel.is_some_and(|only| only != index) {
                    continue;
                }
                let ring = reader.flight(index as usize).unwrap_or_default();
                let newest = ring.last().map_or(0, |event| event.ticks);
                events.extend(ring.iter().map(|event| FlightView {
                    dataplane: name.clone(),
                    channel: index,
                    ns_ago: to_ns(newest.saturating_sub(event.ticks), snapshot.ticks_per_second),
                    event: event.kind.as_str().to_owned(),
                    subject: subject(event, &subjects),
                    value: event.value,
                }));
            }
        }
        // Where no data plane answers nothing is known of its channels.
        match channel {
            Some(channel) if !channels.is_empty() && !channels.contains(&channel) => {
                channels.sort_unstable();
                channels.dedup();
                let there: Vec<String> = channels.iter().map(u32::to_string).collect();
                let problem = format!("there is no channel {channel}");
                Err(ApiError::new(Code::NotFound, problem)
                    .help(format!("there is: {}", there.join(", "))))
            }
            _ => Ok(events),
        }
    }
}

/// What an event is about: a queue, by its slot, or the channel as a whole.
fn subject(event: &FlightEvent, queues: &BTreeMap<u32, String>) -> String {
    match event.kind {
        FlightKind::Sleep | FlightKind::Wake => "-".to_owned(),
        _ => queues.get(&event.subject).cloned().unwrap_or_else(|| event.subject.to_string()),
    }
}

fn queue_view(queue: &QueueSnapshot, is_scsi: bool, histograms: bool) -> QueueStatsView {
    QueueStatsView {
        queue: queue.queue.into(),
        name: queue_name(is_scsi, queue.queue),
        channel: queue.channel,
        slot: queue.slot,
        measures: measures(&sum([queue]), histograms),
    }
}

fn to_ns(ticks: u64, ticks_per_second: u64) -> u64 {
    let ns = u128::from(ticks) * 1_000_000_000 / u128::from(ticks_per_second.max(1));
    u64::try_from(ns).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_comes_back_as_it_was() {
        let mut histogram = Histogram { sum_ns: 77, ..Histogram::default() };
        for (count, index) in histogram.buckets.iter_mut().zip(0..) {
            *count = index % 3;
        }
        assert_eq!(HistogramView::of(&histogram).read(), histogram);
    }

    #[test]
    fn a_bucket_that_no_server_sends_is_no_panic() {
        let odd = |below_ns| BucketView { below_ns, count: 1 };
        let view = HistogramView { sum_ns: 0, buckets: vec![odd(0), odd(u64::MAX)] };
        assert_eq!(view.read().count(), 2);
    }
}
