//! What there is to judge, by kind.

use std::collections::{BTreeMap, BTreeSet};

use super::disk_nmon;
use super::rule::{Kind, Object};
use super::ssp;
use super::view::{Role, View, is_numbered};
use crate::capture::Report;

/// Every object of a kind, in a fixed order.
pub(super) fn of<'a>(view: &View<'a>, kind: Kind) -> Vec<Object<'a>> {
    let devices = |prefix: &str| -> Vec<Object<'a>> {
        let on = |host| view.devices(host, prefix).into_iter().map(move |device| (host, device));
        view.hosts()
            .flat_map(on)
            .map(|(host, device)| object(view, kind, host, device, 0))
            .collect()
    };
    match kind {
        Kind::System => {
            let system = |host| Object {
                label: view.spoken(host).to_owned(),
                ..object(view, kind, host, "", 0)
            };
            // What a Trunkline server prints of its host is nothing that rules on partitions judge by.
            view.hosts().filter(|host| view.role(*host) != Role::Trunkline).map(system).collect()
        }
        Kind::Served => {
            let readings =
                view.reports().filter_map(|(host, report)| Some((host, report.server()?)));
            let named = readings
                .flat_map(|(host, reading)| reading.adapters.iter().map(move |one| (host, one)));
            let names: BTreeSet<(usize, &'a str)> =
                named.map(|(host, served)| (host, served.name.as_str())).collect();
            names.into_iter().map(|(host, name)| object(view, kind, host, name, 0)).collect()
        }
        Kind::Port => ports(view),
        Kind::Protocol => devices("fscsi"),
        Kind::Server => servers(view),
        Kind::Path => {
            let paths = view.paths().iter().enumerate();
            paths.map(|(at, path)| object(view, kind, path.vios, path.device, at)).collect()
        }
        Kind::Client => {
            let clients = view.on_fabric().iter().enumerate();
            let of = |(index, client): (usize, &super::logins::OnFabric<'a>)| Object {
                kind,
                label: format!("client {}", client.spoken()),
                host: client.host(),
                device: "",
                index,
            };
            clients.map(of).collect()
        }
        Kind::Disk => disks(view),
        Kind::Vhost => {
            let vhosts = view.vhosts().iter().enumerate();
            vhosts.map(|(at, (host, vhost))| object(view, kind, *host, &vhost.name, at)).collect()
        }
        Kind::Bridge => {
            let bridges = view.bridges().iter().enumerate();
            bridges.map(|(at, bridge)| object(view, kind, bridge.host, bridge.name, at)).collect()
        }
        Kind::Ethernet => {
            let wires = view.wires().iter().enumerate();
            wires.map(|(at, wire)| object(view, kind, wire.host, wire.name, at)).collect()
        }
        Kind::Pool => {
            let pool = |(device, host): (&'a str, usize)| Object {
                kind,
                label: format!("pool {device}"),
                host,
                device,
                index: 0,
            };
            ssp::names(view).into_iter().map(pool).collect()
        }
    }
}

fn object<'a>(
    view: &View<'_>,
    kind: Kind,
    host: usize,
    device: &'a str,
    index: usize,
) -> Object<'a> {
    Object { kind, label: view.object(host, device), host, device, index }
}

/// Ports with counters; those of which attributes alone were captured; those that a mapping names.
fn ports<'a>(view: &View<'a>) -> Vec<Object<'a>> {
    let usages = view.usages();
    let with_counters = usages.iter().enumerate();
    let mut all: BTreeMap<(usize, &'a str), usize> =
        with_counters.map(|(index, usage)| ((usage.host, usage.device), index)).collect();
    for host in view.hosts() {
        for device in view.devices(host, "fcs") {
            all.entry((host, device)).or_insert(usages.len());
        }
        for report in view.of(host).filter_map(Report::fc_latency) {
            if let Some(device) = &report.head.device {
                all.entry((host, device.value.as_str())).or_insert(usages.len());
            }
        }
        for port in view.of(host).filter_map(Report::lsnports).flat_map(|list| &list.ports) {
            all.entry((host, port.name.as_str())).or_insert(usages.len());
        }
    }
    for map in view.npiv() {
        if let Some(port) = map.port() {
            all.entry((map.vios, port)).or_insert(usages.len());
        }
    }
    let port = |((host, device), index)| object(view, Kind::Port, host, device, index);
    all.into_iter().map(port).collect()
}

/// `vfchostN`: by its attributes, its statistics or its mapping.
fn servers<'a>(view: &View<'a>) -> Vec<Object<'a>> {
    let mut all: BTreeSet<(usize, &'a str)> = BTreeSet::new();
    for host in view.hosts() {
        all.extend(view.devices(host, "vfchost").into_iter().map(|device| (host, device)));
    }
    all.extend(view.npiv().iter().map(|map| (map.vios, map.map.name.as_str())));
    for (host, report) in view.reports() {
        let device = report.vfc_stats().and_then(|stats| stats.head.device.as_ref());
        all.extend(device.map(|device| (host, device.value.as_str())));
    }
    all.into_iter().map(|(host, device)| object(view, Kind::Server, host, device, 0)).collect()
}

/// `hdiskN`: by its attributes, its paths, its service, its errors or as what stands behind a client's disk.
fn disks<'a>(view: &View<'a>) -> Vec<Object<'a>> {
    let mut all: BTreeSet<(usize, &'a str)> = view.backing().clone();
    for host in view.hosts() {
        all.extend(view.devices(host, "hdisk").into_iter().map(|device| (host, device)));
        let with_paths = view.ways(host).disks().filter(|name| is_numbered(name, "hdisk"));
        all.extend(with_paths.map(|device| (host, device)));
        all.extend(view.disk_samples(host).keys().map(|device| (host, *device)));
        all.extend(disk_nmon::names(view, host).map(|device| (host, device)));
        let logged = view.of(host).filter_map(Report::errpt).flat_map(|log| &log.entries);
        let names = logged.map(|entry| entry.resource.as_str());
        all.extend(names.filter(|name| is_numbered(name, "hdisk")).map(|name| (host, name)));
    }
    all.into_iter().map(|(host, device)| object(view, Kind::Disk, host, device, 0)).collect()
}
