//! What was looked at as a whole: the systems with their state, and the map of what hangs on what.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::finding::{Finding, Judged, Severity, State};
use super::view::{Role, View};
use crate::capture::{At, Report, Taken};

/// One system, by what was found on it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct SystemState {
    /// How it is called.
    pub name: String,
    /// What kind of system it is.
    pub role: Role,
    /// Type, model and serial number of its machine, as far as known.
    pub machine: Option<String>,
    /// Its number there.
    pub partition_id: Option<u32>,
    /// When it was captured first and last, where anything tells.
    pub captured: Option<(Taken, Taken)>,
    /// For how many seconds its oldest counters have been counting.
    pub counting_seconds: Option<u64>,
    /// Findings by severity.
    pub critical: usize,
    /// Likewise.
    pub warnings: usize,
    /// Likewise.
    pub notes: usize,
    /// Judgements that found nothing.
    pub healthy: usize,
    /// Judgements that could not be made.
    pub not_judged: usize,
}

/// What hangs on what, as mappings show it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Map {
    /// Client adapter, virtual adapter, port, fabric.
    pub fibre: Vec<FibreRow>,
    /// Client, virtual adapter, target, backing device.
    pub scsi: Vec<ScsiRow>,
    /// Virtual adapter, bridge, uplink.
    pub ethernet: Vec<EthernetRow>,
    /// Who sends most through a bridge.
    pub talkers: Vec<TalkerRow>,
}

/// One virtual Fibre Channel adapter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FibreRow {
    /// The client.
    pub client: String,
    /// Its adapter.
    pub adapter: String,
    /// The VIOS.
    pub vios: String,
    /// `vfchostN`.
    pub server: String,
    /// `fcsN`; empty where none is mapped.
    pub port: String,
    /// What the port's fabric is known to be.
    pub fabric: String,
    /// Whether the client is logged in.
    pub state: String,
    /// The line.
    pub at: At,
}

/// One target of virtual SCSI.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ScsiRow {
    /// The client.
    pub client: String,
    /// Its disk, where it is known to be the one.
    pub disk: String,
    /// The VIOS.
    pub vios: String,
    /// `vhostN`.
    pub server: String,
    /// The target device.
    pub target: String,
    /// What is behind it.
    pub backing: String,
    /// The line.
    pub at: At,
}

/// One virtual Ethernet adapter of a VIOS.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct EthernetRow {
    /// The VIOS.
    pub vios: String,
    /// `entN`.
    pub adapter: String,
    /// The shared Ethernet adapter; empty where there is none.
    pub bridge: String,
    /// The adapter to the outside.
    pub uplink: String,
    /// The line.
    pub at: At,
}

/// One of those that send most through a shared Ethernet adapter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TalkerRow {
    /// The VIOS.
    pub vios: String,
    /// The shared Ethernet adapter.
    pub bridge: String,
    /// The system, or what `seastat` calls it.
    pub client: String,
    /// Its MAC address, as printed.
    pub mac: String,
    /// Its VLAN.
    pub vlan: Option<u16>,
    /// Sent and received.
    pub bytes: f64,
    /// Of all bytes through the adapter, percent.
    pub percent: f64,
    /// Whether the bytes are those between two captures.
    pub between_captures: bool,
    /// The line.
    pub at: At,
}

/// The systems that have captures of their own, by name.
pub(super) fn systems(
    view: &View<'_>,
    findings: &[Finding],
    coverage: &[Judged],
) -> Vec<SystemState> {
    // A finding about two, `ent6 on vios1 and ent6 on vios2`, is one of each.
    let mut found: BTreeMap<(&str, Severity), usize> = BTreeMap::new();
    for finding in findings {
        for name in finding.systems() {
            *found.entry((name, finding.severity)).or_default() += 1;
        }
    }
    let mut judged: BTreeMap<(&str, State), usize> = BTreeMap::new();
    for one in coverage {
        *judged.entry((&one.system, one.state)).or_default() += 1;
    }
    let with_captures = view.hosts().filter(|host| view.of(*host).next().is_some());
    with_captures.map(|host| system(view, host, &found, &judged)).collect()
}

fn system(
    view: &View<'_>,
    host: usize,
    found: &BTreeMap<(&str, Severity), usize>,
    judged: &BTreeMap<(&str, State), usize>,
) -> SystemState {
    let name = view.spoken(host);
    let known = view.system(host);
    let of = |severity| found.get(&(name, severity)).copied().unwrap_or(0);
    let in_state = |state| judged.get(&(name, state)).copied().unwrap_or(0);
    SystemState {
        name: name.to_owned(),
        role: view.role(host),
        machine: known.and_then(|system| system.machine.clone()),
        partition_id: known.and_then(|system| system.partition_id),
        captured: captured(view, host),
        counting_seconds: counting(view, host),
        critical: of(Severity::Critical),
        warnings: of(Severity::Warning),
        notes: of(Severity::Note),
        healthy: in_state(State::Healthy),
        not_judged: in_state(State::NotJudged),
    }
}

/// The first and the last time, where all of them are of one clock.
fn captured(view: &View<'_>, host: usize) -> Option<(Taken, Taken)> {
    let times = || view.of(host).filter_map(|report| report.head().taken.as_ref());
    let zone = &times().next()?.zone;
    if times().any(|taken| taken.zone != *zone) {
        return None;
    }
    let first = times().min_by_key(|taken| taken.seconds)?;
    let last = times().max_by_key(|taken| taken.seconds)?;
    Some((first.clone(), last.clone()))
}

fn counting(view: &View<'_>, host: usize) -> Option<u64> {
    let age = |report: &Report| match report {
        Report::Fcstat(fcstat) => fcstat.seconds_since_reset.map(|read| read.value),
        Report::Entstat(entstat) => entstat
            .adapters
            .iter()
            .filter_map(|adapter| adapter.elapsed_seconds)
            .map(|read| read.value)
            .max(),
        Report::Host(host) => host.about.up_seconds.map(|read| read.value),
        _ => None,
    };
    view.of(host).filter_map(age).filter(|seconds| *seconds > 0).max()
}

/// What hangs on what.
pub(super) fn map(view: &View<'_>) -> Map {
    Map { fibre: fibre(view), scsi: scsi(view), ethernet: ethernet(view), talkers: talkers(view) }
}

/// Those that send most through each bridge.
fn talkers(view: &View<'_>) -> Vec<TalkerRow> {
    const EACH: usize = 5;
    let runs = view.reports().filter_map(|(host, report)| Some((host, report.seastat()?)));
    let bridges: BTreeSet<(usize, &str)> = runs
        .filter_map(|(host, run)| Some((host, run.head.device.as_ref()?.value.as_str())))
        .collect();
    let mut rows = Vec::new();
    for (host, bridge) in bridges {
        let Some(found) = super::talkers::of(view, host, bridge) else { continue };
        let between_captures = found.measured;
        rows.extend(found.all.into_iter().take(EACH).map(|talker| TalkerRow {
            vios: view.spoken(host).to_owned(),
            bridge: bridge.to_owned(),
            client: talker.who,
            mac: talker.mac,
            vlan: talker.vlan,
            bytes: talker.bytes,
            percent: talker.share,
            between_captures,
            at: talker.at,
        }));
    }
    rows
}

fn fibre(view: &View<'_>) -> Vec<FibreRow> {
    let fabric = |vios: usize, port: &str| {
        let lists = view.of(vios).filter_map(Report::lsnports);
        let listed = lists.flat_map(|list| &list.ports).filter(|listed| listed.name == port).last();
        listed.map_or("", |listed| if listed.fabric { "yes" } else { "none" })
    };
    let row = |map: &super::mapping::Npiv<'_>| FibreRow {
        client: map
            .client
            .map_or_else(|| map.client_spoken(), |client| view.spoken(client).to_owned()),
        adapter: map.client_adapter().unwrap_or_default().to_owned(),
        vios: view.spoken(map.vios).to_owned(),
        server: map.map.name.clone(),
        port: map.port().unwrap_or_default().to_owned(),
        fabric: map.port().map_or("", |port| fabric(map.vios, port)).to_owned(),
        state: map.map.status.as_ref().map_or_else(String::new, |read| read.value.clone()),
        at: map.map.at,
    };
    let mut rows: Vec<FibreRow> = view.npiv().iter().map(row).collect();
    rows.sort_by(|one, two| {
        (&one.client, &one.adapter, &one.vios).cmp(&(&two.client, &two.adapter, &two.vios))
    });
    rows
}

fn scsi(view: &View<'_>) -> Vec<ScsiRow> {
    let mut rows = Vec::new();
    for (vios, adapter) in view.vhosts() {
        let client = view.model.named_at(adapter.at);
        for target in &adapter.devices {
            let backing = target.backing.as_ref().map_or("", |read| read.value.as_str());
            let disk = client
                .and_then(|client| super::disk_behind::in_front_of(view, (*vios, backing), client));
            rows.push(ScsiRow {
                client: client.map_or_else(String::new, |client| view.spoken(client).to_owned()),
                disk: disk.unwrap_or_default().to_owned(),
                vios: view.spoken(*vios).to_owned(),
                server: adapter.name.clone(),
                target: target.name.clone(),
                backing: backing.to_owned(),
                at: target.at,
            });
        }
    }
    rows
}

/// By `lsmap -all -net`, and by what the statistics of a shared adapter list below it.
fn ethernet(view: &View<'_>) -> Vec<EthernetRow> {
    fn text(read: Option<&crate::capture::Read<String>>) -> &str {
        read.map_or("", |read| &read.value)
    }
    let mut rows: Vec<EthernetRow> = Vec::new();
    let mut place: BTreeMap<(usize, String), usize> = BTreeMap::new();
    let mut put = |host: usize, names: [&str; 3], at: At| {
        let [adapter, bridge, uplink] = names.map(str::to_owned);
        let place = *place.entry((host, adapter.clone())).or_insert(rows.len());
        let row = EthernetRow { vios: view.spoken(host).to_owned(), adapter, bridge, uplink, at };
        match rows.get_mut(place) {
            Some(known) => *known = row,
            None => rows.push(row),
        }
    };
    for (host, report) in view.reports() {
        let Some((run, sea)) = report.entstat().and_then(|run| Some((run, run.sea.as_ref()?)))
        else {
            continue;
        };
        let Some(name) = sea.name.as_ref().or(run.head.device.as_ref()) else { continue };
        let set = view.attribute(host, &name.value, "real_adapter").map(|set| &*set.value);
        let uplink = sea.real_adapter.as_ref().map(|read| &*read.value).or(set).unwrap_or("");
        let of_vlans = sea.vlans.iter().map(|trunk| (trunk.adapter.as_str(), trunk.at));
        let listed = sea.virtual_adapters.iter().map(|read| (read.value.as_str(), read.at));
        for (adapter, at) in of_vlans.chain(listed) {
            put(host, [adapter, &name.value, uplink], at);
        }
    }
    for (host, report) in view.reports() {
        let Report::LsmapNet(lsmap) = report else { continue };
        for map in &lsmap.adapters {
            put(host, [&map.name, text(map.sea.as_ref()), text(map.backing.as_ref())], map.at);
        }
    }
    rows
}
