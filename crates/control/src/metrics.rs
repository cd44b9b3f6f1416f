//! `/metrics` for Prometheus: the shared counters, read when they are asked for.
//!
//! Names and help come from the registry in `protocol::stats`; units are base units (seconds,
//! bytes). Labels are few: `adapter` for what queues count, `dataplane` and `channel` for what
//! channels count, `adapter`, `target` and `lun` for the few counters of LUNs, `port` and `dataplane` for those of ports,
//! `pool` with `pv` or `lu` for what storage pools have. Queues of an adapter are summed; `/v1/stats` has them one by one.

use crate::operation::Step;
use crate::server::{LinkView, Server, StatusView};
use crate::statistics::{by_adapter, by_lun, own, sum, sum_of_adapter, totals};
use crate::supervisor::View;
use crate::trail;
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use protocol::stats::Unit as Counted;
use protocol::stats::{
    ChannelCounter, CounterInfo, Histogram, Kind, Latency, QueueCounter, Snapshot, bucket_upper_ns,
};
use std::collections::BTreeMap;
use std::fmt;

mod pools;

/// The type of the document.
pub const CONTENT_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Adapters, or data planes and channels, with their values.
type Series = Vec<(Vec<(&'static str, String)>, Vec<u64>)>;
/// Name, help and value of something that is counted of data planes.
type OfPlane = (&'static str, &'static str, fn(&View) -> u64);
/// The same of links.
type OfLink = (&'static str, &'static str, fn(&LinkView) -> u64);
/// Histograms of an adapter and a stage.
type Stages = Vec<([(&'static str, String); 2], Histogram)>;

/// What is counted of LUNs here: there may be many of them.
const OF_LUN: [QueueCounter; 12] = [
    QueueCounter::Reads,
    QueueCounter::Writes,
    QueueCounter::ReadBytes,
    QueueCounter::WrittenBytes,
    QueueCounter::ControlRequests,
    QueueCounter::Errors,
    QueueCounter::TimedReads,
    QueueCounter::ReadServer,
    QueueCounter::ReadDevice,
    QueueCounter::TimedWrites,
    QueueCounter::WriteServer,
    QueueCounter::WriteDevice,
];

/// What is counted of ports, whichever adapters are on them.
const OF_PORT: [QueueCounter; 10] = [
    QueueCounter::CommandsReceived,
    QueueCounter::Reads,
    QueueCounter::Writes,
    QueueCounter::ReadBytes,
    QueueCounter::WrittenBytes,
    QueueCounter::ControlRequests,
    QueueCounter::Errors,
    QueueCounter::WaitNoDma,
    QueueCounter::WaitNoCommand,
    QueueCounter::WaitNoElement,
];

/// Of adapters that share a port.
const HOLDS_UP: CounterInfo = CounterInfo {
    name: "holds_up",
    kind: Kind::Counter,
    unit: Counted::Count,
    help: "Times that a command of another adapter found no element of their port while this one had most beyond its part.",
};

/// One scrape.
#[derive(Debug)]
struct Scrape {
    planes: BTreeMap<String, View>,
    status: StatusView,
    events: BTreeMap<trail::Kind, u64>,
    operations: BTreeMap<Step, u64>,
    /// Of ports.
    links: BTreeMap<String, LinkView>,
    adapters: Series,
    holds_up: Series,
    luns: Series,
    ports: Series,
    latencies: Stages,
    channels: Series,
}

/// The document.
pub async fn text(server: &Server) -> Result<String, fmt::Error> {
    let status = server.status().await;
    let planes = server.supervisor_views();
    let mut registry = Registry::with_prefix("trunkline");
    let mut scrape = scrape(planes, status, server.trail().counts(), &server.snapshots());
    scrape.operations = server.operation_counts();
    scrape.links = server.port_links();
    registry.register_collector(Box::new(scrape));
    let mut text = String::new();
    prometheus_client::encoding::text::encode(&mut text, &registry)?;
    Ok(text)
}

fn scrape(
    planes: BTreeMap<String, View>,
    status: StatusView,
    events: BTreeMap<trail::Kind, u64>,
    snapshots: &BTreeMap<String, Snapshot>,
) -> Scrape {
    let mut scrape = Scrape {
        planes,
        status,
        events,
        operations: BTreeMap::new(),
        links: BTreeMap::new(),
        adapters: Vec::new(),
        holds_up: Vec::new(),
        luns: Vec::new(),
        ports: Vec::new(),
        latencies: Vec::new(),
        channels: Vec::new(),
    };
    for (dataplane, snapshot) in snapshots {
        for (adapter, queues) in by_adapter(snapshot) {
            let total = sum_of_adapter(snapshot, adapter, &queues);
            let label = ("adapter", adapter.to_owned());
            scrape.adapters.push((vec![label.clone()], total.counters.to_vec()));
            if let Some(own) = own(snapshot, adapter) {
                scrape.holds_up.push((vec![label.clone()], vec![own.holds_up]));
            }
            for (stage, histogram) in Latency::ALL.into_iter().zip(total.latency) {
                let labels = [label.clone(), ("stage", stage.as_str().to_owned())];
                scrape.latencies.push((labels, histogram));
            }
        }
        for ((adapter, target, lun), counted) in by_lun(snapshot) {
            let labels = vec![
                ("adapter", adapter.to_owned()),
                ("target", target.to_string()),
                ("lun", lun.to_string()),
            ];
            scrape.luns.push((labels, sum(counted).counters.to_vec()));
        }
        for port in totals(snapshot) {
            let name = port.total.adapter.clone();
            let labels = vec![("port", name), ("dataplane", dataplane.clone())];
            scrape.ports.push((labels, sum([&port.total]).counters.to_vec()));
        }
        for channel in &snapshot.channels {
            let labels =
                vec![("dataplane", dataplane.clone()), ("channel", channel.index.to_string())];
            let values = ChannelCounter::ALL.iter().map(|counter| channel.get(*counter));
            scrape.channels.push((labels, values.collect()));
        }
    }
    scrape
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        self.encode_server(&mut encoder)?;
        self.encode_up(&mut encoder)?;
        self.encode_states(&mut encoder)?;
        self.encode_pools(&mut encoder)?;
        for counter in QueueCounter::ALL {
            encode(&mut encoder, "adapter", counter.info(), *counter as usize, &self.adapters)?;
        }
        encode(&mut encoder, "adapter", HOLDS_UP, 0, &self.holds_up)?;
        for counter in OF_PORT {
            encode(&mut encoder, "port", counter.info(), counter as usize, &self.ports)?;
        }
        for counter in OF_LUN {
            encode(&mut encoder, "lun", counter.info(), counter as usize, &self.luns)?;
        }
        for counter in ChannelCounter::ALL {
            encode(&mut encoder, "channel", counter.info(), *counter as usize, &self.channels)?;
        }
        self.encode_latencies(&mut encoder)
    }
}

impl Scrape {
    fn encode_server(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Version of the control plane";
        let mut metric = encoder.encode_descriptor("build", help, None, MetricType::Info)?;
        metric.encode_info(&[("version", self.status.version.as_str())])?;
        let help = "What happened since the control plane started";
        let mut metric = encoder.encode_descriptor("events", help, None, MetricType::Counter)?;
        for (kind, count) in &self.events {
            let labels = [("kind", kind.as_str())];
            metric.encode_family(&labels)?.encode_counter::<NoLabelSet, _, u64>(count, None)?;
        }
        let help = "Operations that go on, and of late those that have ended, by how far they are";
        let mut metric = encoder.encode_descriptor("operations", help, None, MetricType::Gauge)?;
        for (step, count) in &self.operations {
            let count = i64::try_from(*count).unwrap_or(i64::MAX);
            metric.encode_family(&[("state", step.as_str())])?.encode_gauge(&count)?;
        }
        Ok(())
    }

    /// The state that each object has: 1 with its name.
    fn encode_states(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let StatusView { dataplanes, volumes, adapters, uplinks, pools, .. } = &self.status;
        let dataplanes = dataplanes.iter().map(|one| (one.name.as_str(), one.state.as_str()));
        let volumes = volumes.iter().map(|one| (one.name.as_str(), one.state.as_str()));
        let states = adapters.iter().map(|one| (one.name.as_str(), one.state.as_str()));
        let [uplinks, pools] = [uplinks, pools].map(|objects| {
            let objects = objects.iter();
            objects.map(|one| (one.name.as_str(), one.state.as_deref().unwrap_or_default()))
        });
        let all: [(_, _, Vec<(&str, &str)>); 5] = [
            ("dataplane", "State of the data plane", dataplanes.collect()),
            ("volume", "State of the volume", volumes.collect()),
            ("adapter", "State of the adapter, and so of its client", states.collect()),
            ("uplink", "State of the uplink", uplinks.collect()),
            ("pool", "State of the storage pool", pools.collect()),
        ];
        for (noun, help, states) in all {
            let name = format!("{noun}_state");
            let mut metric = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
            for (name, state) in states {
                metric.encode_family(&[(noun, name), ("state", state)])?.encode_gauge(&1i64)?;
            }
        }
        let help = "Queues that the adapter offers, those that its client has and those that it uses, channels negotiated for them, channels that run them, CPUs of these";
        let mut metric =
            encoder.encode_descriptor("adapter_queues", help, None, MetricType::Gauge)?;
        for adapter in adapters {
            for (of, count) in adapter.queue_numbers() {
                let labels = [("adapter", adapter.name.as_str()), ("of", of)];
                metric.encode_family(&labels)?.encode_gauge(&count.cast_signed())?;
            }
        }
        self.encode_links(encoder)?;
        self.encode_failover(encoder)?;
        let help = "Clients that have connected since the data plane has the adapter";
        let mut metric =
            encoder.encode_descriptor("adapter_connections", help, None, MetricType::Counter)?;
        for adapter in adapters {
            let labels = [("adapter", adapter.name.as_str())];
            let mut metric = metric.encode_family(&labels)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&adapter.connections, None)?;
        }
        Ok(())
    }

    /// Shared Ethernet adapters that take part in failover.
    fn encode_failover(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let seas = || self.status.uplinks.iter().filter_map(|uplink| uplink.failover.as_ref());
        let help = "What the shared Ethernet adapter is to its partner";
        let mut metric = encoder.encode_descriptor("sea_state", help, None, MetricType::Gauge)?;
        for sea in seas() {
            let labels = [("sea", sea.sea.as_str()), ("state", sea.state.as_str())];
            metric.encode_family(&labels)?.encode_gauge(&1i64)?;
        }
        let help = "VLANs that the shared Ethernet adapter bridges now";
        let mut metric = encoder.encode_descriptor("sea_vlans", help, None, MetricType::Gauge)?;
        for sea in seas() {
            let vlans = i64::try_from(sea.vlans.len()).unwrap_or(i64::MAX);
            metric.encode_family(&[("sea", sea.sea.as_str())])?.encode_gauge(&vlans)?;
        }
        let help =
            "Times that the shared Ethernet adapter began to bridge since its uplink was connected";
        let mut metric =
            encoder.encode_descriptor("sea_takeovers", help, None, MetricType::Counter)?;
        for sea in seas() {
            let labels = [("sea", sea.sea.as_str())];
            let mut metric = metric.encode_family(&labels)?;
            metric.encode_counter::<NoLabelSet, _, u64>(&sea.takeovers, None)?;
        }
        let help = "Whether the address that the shared Ethernet adapter asks for answers";
        let kind = MetricType::Gauge;
        let mut metric = encoder.encode_descriptor("sea_netaddr_answers", help, None, kind)?;
        for (sea, answers) in seas().filter_map(|sea| Some((sea.sea.as_str(), sea.answers?))) {
            metric.encode_family(&[("sea", sea)])?.encode_gauge(&i64::from(answers))?;
        }
        Ok(())
    }

    /// Links of ports and adapters: whether they are up, and what became of them.
    fn encode_links(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let adapters = self.status.adapters.iter();
        let adapters = adapters.filter_map(|one| Some((one.name.as_str(), one.link.as_ref()?)));
        let ports = self.links.iter().map(|(port, link)| (port.as_str(), link));
        let all: [(_, Vec<(&str, &LinkView)>); 2] =
            [("port", ports.collect()), ("adapter", adapters.collect())];
        let counted: [OfLink; 3] = [
            ("link_failures", "Times that the link went down", |link| link.counts.failures),
            ("link_recoveries", "Times that the link was there again", |link| {
                link.counts.recoveries
            }),
            ("remaps", "Adapters that went from one port to another", |link| link.counts.remaps),
        ];
        for (noun, links) in all {
            let help = "Whether the link is up";
            let name = format!("{noun}_link_up");
            let mut metric = encoder.encode_descriptor(&name, help, None, MetricType::Gauge)?;
            for (name, link) in &links {
                let up = i64::from(link.is_up());
                metric.encode_family(&[(noun, *name)])?.encode_gauge(&up)?;
            }
            for (name, help, count) in counted {
                let name = format!("{noun}_{name}");
                let mut metric =
                    encoder.encode_descriptor(&name, help, None, MetricType::Counter)?;
                for (name, link) in &links {
                    let labels = [(noun, *name)];
                    let mut metric = metric.encode_family(&labels)?;
                    metric.encode_counter::<NoLabelSet, _, u64>(&count(link), None)?;
                }
            }
        }
        Ok(())
    }

    fn encode_up(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Whether the data plane answers";
        let mut metric =
            encoder.encode_descriptor("dataplane_up", help, None, MetricType::Gauge)?;
        for (name, view) in &self.planes {
            let up = view.pid.is_some() && view.silent.is_none();
            metric.encode_family(&[("dataplane", name.as_str())])?.encode_gauge(&i64::from(up))?;
        }
        let counted: [OfPlane; 2] = [
            ("dataplane_restarts", "Times the data plane was started again after it died", |v| {
                v.restarts
            }),
            ("dataplane_silences", "Times the data plane ceased to answer", |v| v.silences),
        ];
        for (name, help, count) in counted {
            let mut metric = encoder.encode_descriptor(name, help, None, MetricType::Counter)?;
            for (plane, view) in &self.planes {
                let labels = [("dataplane", plane.as_str())];
                let mut metric = metric.encode_family(&labels)?;
                metric.encode_counter::<NoLabelSet, _, u64>(&count(view), None)?;
            }
        }
        Ok(())
    }

    fn encode_latencies(&self, encoder: &mut DescriptorEncoder<'_>) -> Result<(), fmt::Error> {
        let help = "Time of commands by stage: in the ring, in the server, in the device";
        let unit = Unit::Seconds;
        let mut metric =
            encoder.encode_descriptor("latency", help, Some(&unit), MetricType::Histogram)?;
        for (labels, histogram) in &self.latencies {
            metric.encode_family(labels)?.encode_histogram::<NoLabelSet>(
                seconds(histogram.sum_ns),
                histogram.count(),
                &buckets(histogram),
                None,
            )?;
        }
        Ok(())
    }
}

/// One number of the registry, for all series.
fn encode(
    encoder: &mut DescriptorEncoder<'_>,
    prefix: &str,
    info: CounterInfo,
    index: usize,
    series: &Series,
) -> Result<(), fmt::Error> {
    // Prometheus appends the unit itself: read_bytes is `read` in bytes.
    let (suffix, unit) = match info.unit {
        Counted::Count => ("", None),
        Counted::Bytes => ("_bytes", Some(Unit::Bytes)),
        Counted::Nanoseconds => ("_ns", Some(Unit::Seconds)),
    };
    let name = format!("{prefix}_{}", info.name.trim_end_matches(suffix));
    let kind = if info.kind == Kind::Counter { MetricType::Counter } else { MetricType::Gauge };
    let help = info.help.trim_end_matches('.');
    let mut metric = encoder.encode_descriptor(&name, help, unit.as_ref(), kind)?;
    for (labels, values) in series {
        let value = values[index];
        if value == 0 && info.is_left_out() {
            continue;
        }
        let mut metric = metric.encode_family(labels)?;
        match (info.kind, info.unit) {
            (Kind::Counter, Counted::Nanoseconds) => {
                metric.encode_counter::<NoLabelSet, _, u64>(&seconds(value), None)?;
            }
            (Kind::Counter, _) => metric.encode_counter::<NoLabelSet, _, u64>(&value, None)?,
            (_, Counted::Nanoseconds) => metric.encode_gauge(&seconds(value))?,
            _ => metric.encode_gauge(&i64::try_from(value).unwrap_or(i64::MAX))?,
        }
    }
    Ok(())
}

/// Precise enough: a double has 53 bits.
#[allow(clippy::cast_precision_loss)]
fn seconds(ns: u64) -> f64 {
    ns as f64 / 1e9
}

/// One bucket for each power of four from 1 µs to 17 s, and the rest: the histogram has eight to
/// each power of two, more than a time series needs.
fn buckets(histogram: &Histogram) -> Vec<(f64, u64)> {
    let bounds = (10..=34).step_by(2).map(|bit| 1u64 << bit);
    let mut counts = histogram.buckets.iter().enumerate().peekable();
    let mut buckets = Vec::new();
    for bound in bounds {
        let mut count = 0;
        while let Some((_, n)) = counts.next_if(|(index, _)| bucket_upper_ns(*index) <= bound) {
            count += n;
        }
        buckets.push((seconds(bound), count));
    }
    buckets.push((f64::INFINITY, counts.map(|(_, n)| n).sum()));
    buckets
}

#[cfg(test)]
pub(crate) mod strict;
