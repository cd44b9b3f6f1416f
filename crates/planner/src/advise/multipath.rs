//! Paths to disks, and what the error log says of disks: failed and missing paths, a single path where others have two,
//! health checks that are off, disk errors that go on; memory of a VIOS; LUNs of a pool that are offline.

mod adapter_log;
mod algorithm;
mod behind;
mod degraded;
mod disabled;
mod disk_log;
mod gone;
mod health;
mod lists;
mod log;
mod memory;
mod ways;

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Draft, Severity};
use super::hmc_state;
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::san;
use super::thresholds::{DISK_ERRORS_WITHIN_SECONDS, SIDE_ERRORS_LEAST, SIDE_ERRORS_SHARE};
use super::view::{DiskErrors, Role, View, as_f64, shown};
use super::vscsi::targets;
use crate::capture::{DiskPath, DiskPaths, LoggedError, PathState, Report};
use crate::trace::number;
use behind::behind_scsi;
use lists::{is_part, paths, whole_paths};
use ways::parents;

pub(super) use lists::is_built_in;
pub(super) use log::{RULES as OF_LOGS, turned};
pub(super) use ways::Ways;

const PATHS: &str = "lspath, or lsmpio, on each client and each VIOS; multipath -ll on Linux";

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "disk-paths-failed",
        about: "paths to disks have failed, are missing, or are gone since an earlier capture",
        on: Kind::System,
        evidence: PATHS,
        weight: 1.1,
        applies: |view, system| {
            Applicability::where_that(
                paths(view, system.host).is_some() || log_tells_of_paths(view, system.host),
            )
        },
        judge: failed,
    },
    Rule {
        name: "disk-paths-disabled",
        about: "paths to disks are disabled, and nobody tries them again",
        on: Kind::System,
        evidence: PATHS,
        weight: 1.05,
        applies: |view, system| has_paths(view, system.host),
        judge: disabled::judge,
    },
    Rule {
        name: "disk-paths-degraded",
        about: "paths to disks are degraded: commands on them have failed",
        on: Kind::System,
        evidence: "lsmpio on each client and each VIOS",
        weight: 1.0,
        applies: |view, system| {
            let list = paths(view, system.host);
            let told = |list: &DiskPaths| list.paths.iter().any(|path| path.detail.is_some());
            Applicability::where_that(list.is_some_and(told))
        },
        judge: degraded::judge,
    },
    Rule {
        name: "disk-paths-one-side",
        about: "the paths over one adapter have errors and the others none",
        on: Kind::System,
        evidence: "lsmpio -S, or pcmpath query device, on each client",
        weight: 1.3,
        applies: |view, system| {
            let counted = |list: &DiskPaths| list.paths.iter().any(|path| path.errors.is_some());
            let mut lists = view.of(system.host).filter_map(Report::disk_paths);
            Applicability::where_that(lists.any(counted))
        },
        judge: one_side,
    },
    Rule {
        name: "disk-single-path",
        about: "a disk has one path where others of the system have two",
        on: Kind::Disk,
        evidence: PATHS,
        weight: 1.0,
        applies: |view, disk| has_paths(view, disk.host),
        judge: single,
    },
    Rule {
        name: "disk-algorithm",
        about: "a disk uses one of its paths where another one like it uses all",
        on: Kind::Disk,
        evidence: "lsattr -El hdiskN of each disk, and lspath",
        weight: 0.9,
        applies: algorithm::applies,
        judge: algorithm::judge,
    },
    Rule {
        name: "disk-health-check",
        about: "failed paths are never tried again",
        on: Kind::Disk,
        evidence: "lspath, and lsattr -El hdiskN of each disk",
        weight: 1.15,
        applies: |view, disk| {
            let attribute = view.attribute(disk.host, disk.device, "hcheck_interval");
            match (attribute, paths(view, disk.host)) {
                (Some(_), Some(_)) => Applicability::Judged,
                _ => Applicability::Elsewhere,
            }
        },
        judge: health::judge,
    },
    Rule {
        name: "disk-errors",
        about: "the error log has errors of a disk that go on",
        on: Kind::Disk,
        evidence: "errpt and date on each client and each VIOS",
        weight: 1.2,
        applies: |view, disk| match disk_log::failed_requests(view, disk).is_empty() {
            true => has_log(view, disk),
            false => Applicability::Judged,
        },
        judge: |view, disk, out| {
            disk_log::errors(view, disk, out);
            if out.drafts.is_empty() {
                disk_log::failing(view, disk, out);
            }
        },
    },
    Rule {
        name: "adapter-errors",
        about: "the error log has errors of an adapter or its link that go on",
        on: Kind::System,
        evidence: "errpt -a and date on each client and each VIOS",
        weight: 0.7,
        applies: has_log,
        judge: adapter_log::errors,
    },
    Rule {
        name: "vios-memory",
        about: "a VIOS pages to and from its paging space, or has little of it left",
        on: Kind::System,
        evidence: "vmstat 5 4, svmon -G and lsps -a on each VIOS, or a file of nmon",
        weight: 1.1,
        applies: |view, system| {
            let measured = !memory::paging(view, system.host).is_empty()
                || view
                    .of(system.host)
                    .any(|report| report.lsps().is_some() || report.svmon().is_some());
            Applicability::where_that(measured && view.role(system.host) != Role::Client)
        },
        judge: |view, system, out| {
            memory::pages(view, system, out);
            if out.drafts.is_empty() {
                memory::paging_space(view, system, out);
            }
        },
    },
    Rule {
        name: "ssp-disk-offline",
        about: "a LUN of a shared pool is not online",
        on: Kind::System,
        evidence: "pv -list on one VIOS of the cluster",
        weight: 1.2,
        applies: |view, system| {
            let listed = view.of(system.host).filter_map(Report::pv_list).next().is_some();
            Applicability::where_that(listed)
        },
        judge: offline,
    },
];

/// Whether a system has one Fibre Channel adapter, and one path over it to each of its disks: nothing is there to fail over
/// to.
pub(super) fn has_single_paths(view: &View<'_>, host: usize) -> bool {
    let Some(list) = whole_paths(view, host) else { return false };
    let mut of_disk: BTreeMap<&str, usize> = BTreeMap::new();
    let mut adapters = BTreeSet::new();
    for path in &list.paths {
        *of_disk.entry(&path.disk).or_default() += 1;
        adapters.extend(path.parent.as_deref().filter(|parent| parent.starts_with("fscsi")));
    }
    adapters.len() == 1
        && view.devices(host, "fscsi").len() <= 1
        && of_disk.values().all(|count| *count == 1)
}

/// The ways to the disks of a host.
pub(super) fn ways_of<'a>(view: &View<'a>, host: usize) -> Ways<'a> {
    whole_paths(view, host).map(Ways::new).unwrap_or_default()
}

fn has_log(view: &View<'_>, object: &Object<'_>) -> Applicability {
    Applicability::where_that(view.of(object.host).filter_map(Report::errpt).next().is_some())
}

fn has_paths(view: &View<'_>, host: usize) -> Applicability {
    Applicability::where_that(paths(view, host).is_some())
}

fn is_down(path: &DiskPath) -> bool {
    matches!(path.state, PathState::Failed | PathState::Missing)
}

/// What the paths are of which something holds and of no other path does.
fn only(
    all: &[DiskPath],
    holds: fn(&DiskPath) -> bool,
    pick: fn(&DiskPath) -> Option<&str>,
) -> BTreeSet<&str> {
    let down: BTreeSet<&str> = all.iter().filter(|path| holds(path)).filter_map(pick).collect();
    let up: BTreeSet<&str> = all.iter().filter(|path| !holds(path)).filter_map(pick).collect();
    let apart = !up.is_empty() && down.is_disjoint(&up);
    if apart { down } else { BTreeSet::new() }
}

/// What such paths have in common, and the others have not.
fn common_of(all: &[DiskPath], holds: fn(&DiskPath) -> bool) -> Option<String> {
    let words = |set: BTreeSet<&str>| {
        (!set.is_empty()).then(|| set.into_iter().collect::<Vec<_>>().join(", "))
    };
    if let Some(parents) = words(only(all, holds, |path| path.parent.as_deref())) {
        return Some(format!(
            "They are all those over {parents}: look at that side (adapter, VIOS or fabric)."
        ));
    }
    words(only(all, holds, DiskPath::storage_port))
        .map(|targets| format!("They are all those to the storage ports {targets}, over every adapter: look at that node or controller of the array."))
}

/// The same of paths that are down.
fn common(all: &[DiskPath]) -> Option<String> {
    common_of(all, is_down)
}

/// The storage ports that only paths have that are down, where these are names of ports that every system has for them.
fn lost_ports(all: &[DiskPath]) -> BTreeSet<String> {
    let is_wwpn = |port: &&str| {
        let digits = port.trim_start_matches("0x");
        digits.len() == 16 && digits.bytes().all(|byte| byte.is_ascii_hexdigit())
    };
    only(all, is_down, DiskPath::storage_port)
        .into_iter()
        .filter(is_wwpn)
        .map(str::to_ascii_lowercase)
        .collect()
}

fn failed(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let Some(list) = paths(view, system.host) else {
        let capture = format!("lspath on {}", view.spoken(system.host));
        return out.lack("whether the paths that failed by the error log are up again", capture);
    };
    let down: Vec<&DiskPath> = list.paths.iter().filter(|path| is_down(path)).collect();
    if down.is_empty() {
        return gone::judge(view, system, out);
    }
    let disks: BTreeSet<&str> = down.iter().map(|path| path.disk.as_str()).collect();
    let all: BTreeSet<&str> = list.paths.iter().map(|path| path.disk.as_str()).collect();
    let part = is_part(list);
    // A disk that was only defined has lost nothing.
    let without: Vec<&str> = disks
        .iter()
        .filter(|disk| {
            !part
                && !list
                    .paths
                    .iter()
                    .any(|path| path.disk == **disk && path.state == PathState::Usable)
        })
        .copied()
        .collect();
    let spoken = view.spoken(system.host).to_owned();
    let of_all = format!("{} of {} paths of {spoken}", down.len(), list.paths.len());
    let parents = only(&list.paths, is_down, |path| path.parent.as_deref());
    let (title, concerned) = match part {
        false => (
            match (parents.first(), disks.first()) {
                (Some(one), _) if parents.len() == 1 => {
                    format!("{of_all}, all those over {one}, are down")
                }
                (_, Some(one)) if disks.len() == 1 && all.len() > 1 => {
                    format!("{of_all} are down, all of them of {one}")
                }
                _ => format!("{of_all} are down"),
            },
            format!("{} of {} disks are concerned.", disks.len(), all.len()),
        ),
        true => (
            format!("{} paths of {spoken} are down", down.len()),
            format!(
                "{} disks are concerned. The list was cut by its command: which other paths they have is not known.",
                disks.len()
            ),
        ),
    };
    if part {
        out.lack("which paths are left", format!("lspath on {spoken}, whole"));
    }
    let mut draft = Draft::new("disk-paths-failed", system.host, spoken, Severity::Critical, title)
        .see(down.iter().take(8).map(|path| path.at))
        .because_here(concerned);
    if !without.is_empty() {
        draft = draft.because(format!("No path is left to {}.", without.join(", ")));
    }
    if let Some(common) = common(&list.paths) {
        draft = draft.because_here(common);
    }
    let off = hmc_state::servers_off(view, system.host);
    if !off.is_empty() {
        let names: Vec<&str> = off.iter().map(|(name, _)| *name).collect();
        draft = draft.see(off.iter().map(|(_, at)| *at)).because(format!(
            "The HMC lists {} of its machine as Not Activated: paths over a VIOS that is off are down for that.",
            names.join(", ")
        ));
    }
    // The log's word on the same paths is evidence, and no finding of its own.
    let logged: Vec<&LoggedError> = view
        .of(system.host)
        .filter_map(Report::errpt)
        .flat_map(|log| &log.entries)
        .filter(|entry| is_error_of(entry, &down))
        .collect();
    if let Some(last) = logged.first() {
        draft = draft.see(logged.iter().take(4).map(|entry| entry.at)).because(format!(
            "The error log says so, too: {} on {}.",
            last.description.to_lowercase(),
            last.resource
        ));
    }
    out.push(
        draft
            .through(served_by(view, system.host, &down))
            .through(given_by(view, system.host, &down))
            .through(own_port(&down).map(|port| view.object(system.host, &port)))
            .may_follow(behind_scsi(view, system.host, &down))
            .may_follow(own_adapters(view, system.host, &down))
            .at_storage_ports(lost_ports(&list.paths))
            .effect(match down.iter().all(|path| path.state == PathState::Missing) {
                _ if list.is_of_linux() => "Find what they have in common and mend that: the SCSI host is an adapter of this system (ls -l /sys/class/fc_host for its port name, lsmap -all -npiv on the VIOS for what is behind it). multipathd takes paths back by itself once they answer.",
                false => "Find what they have in common and mend that; with health checks on, paths come back by themselves, else chpath -s enable brings each back.",
                true => "Missing paths were there at an earlier start. Find what they have in common and mend that; cfgmgr (cfgdev as padmin) finds them again. What is gone for good is taken out with rmpath -d.",
            })
            .harm("Until then the other paths carry everything, and nothing is behind them.")
            .weigh(0.95, if without.is_empty() { 0.9 } else { 1.2 }),
    );
}

/// The system's own port that all these paths lead over.
fn own_port(down: &[&DiskPath]) -> Option<String> {
    let all = parents(down);
    let only = all.first().filter(|_| all.len() == 1)?;
    Some(format!("fcs{}", only.strip_prefix("fscsi")?))
}

/// The Fibre Channel adapters of paths that are not configured: what keeps an adapter from being configured may be why.
fn own_adapters(view: &View<'_>, host: usize, down: &[&DiskPath]) -> Vec<String> {
    let lost = |path: &&DiskPath| matches!(path.state, PathState::Missing | PathState::Defined);
    let adapter = |parent: &str| Some(format!("fcs{}", parent.strip_prefix("fscsi")?));
    let adapters: Option<BTreeSet<String>> = parents(down).into_iter().map(adapter).collect();
    let adapters = adapters.filter(|_| down.iter().all(lost)).into_iter().flatten();
    adapters.map(|adapter| view.object(host, &adapter)).collect()
}

/// The server adapter and the port behind the one Fibre Channel adapter that all these paths lead over, as `lsmap` names
/// them.
fn served_by(view: &View<'_>, host: usize, down: &[&DiskPath]) -> Vec<String> {
    let maps = || view.npiv().iter().filter(|map| map.client == Some(host));
    let over = |adapter: &str| down.iter().all(|path| is_parent(&[path], adapter));
    let named = maps().find(|map| map.client_adapter().is_some_and(over));
    // One that is not in use has no name there, nor has any before its client has told it: it is the one out of use.
    let unnamed = || {
        let parents: BTreeSet<_> = down.iter().map(|path| path.parent.as_deref()).collect();
        let mut unnamed = maps().filter(|map| map.client_adapter().is_none() && !map.logged_in());
        let other =
            maps().any(|map| map.client_adapter().is_some_and(|adapter| is_parent(down, adapter)));
        let one = unnamed.next().filter(|_| unnamed.next().is_none());
        one.filter(|_| parents.len() == 1 && !other)
    };
    let map = named.or_else(unnamed);
    map.into_iter()
        .flat_map(|map| [Some(map.map.name.as_str()), map.port()].map(|name| (map.vios, name)))
        .filter_map(|(vios, name)| Some(view.object(vios, name?)))
        .collect()
}

/// The server adapters of a client that have lost targets, where these explain every one of its virtual SCSI paths that are
/// down: as many over one adapter as one server has lost.
fn given_by(view: &View<'_>, host: usize, down: &[&DiskPath]) -> Vec<String> {
    let over =
        |adapter: &str| down.iter().filter(|path| path.parent.as_deref() == Some(adapter)).count();
    let all = parents(down);
    let Some(parent) = all.first().copied().filter(|_| all.len() == 1) else { return Vec::new() };
    let of_client = view.vhosts().iter().filter(|(_, adapter)| {
        parent.starts_with("vscsi") && view.model.named_at(adapter.at) == Some(host)
    });
    of_client
        .filter(|(_, adapter)| targets::down(adapter).count() == over(parent))
        .map(|(vios, adapter)| view.object(*vios, &adapter.name))
        .collect()
}

/// Whether an entry of the error log is about one of these paths: its adapter or the adapter's protocol.
fn is_error_of(entry: &LoggedError, down: &[&DiskPath]) -> bool {
    adapter_log::is_of_adapter(entry) && is_parent(down, &entry.resource)
}

/// Whether an adapter is the one that these paths lead over: `fscsi1`, or the `fcs1` below it.
fn is_parent(paths: &[&DiskPath], adapter: &str) -> bool {
    let number = adapter.strip_prefix("fcs").filter(|rest| rest.parse::<u32>().is_ok());
    let protocol = number.map(|number| format!("fscsi{number}"));
    let is = |parent: &str| parent == adapter || Some(parent) == protocol.as_deref();
    paths.iter().filter_map(|path| path.parent.as_deref()).any(is)
}

/// Errors of paths, by the adapter that they lead over.
fn sides(list: &DiskPaths) -> BTreeMap<&str, (u64, &DiskPath)> {
    let mut sides: BTreeMap<&str, (u64, &DiskPath)> = BTreeMap::new();
    for path in &list.paths {
        if let (Some(parent), Some(errors)) = (path.parent.as_deref(), path.errors) {
            let side = sides.entry(parent).or_insert((0, path));
            side.0 = side.0.saturating_add(errors);
            if errors > side.1.errors.unwrap_or(0) {
                side.1 = path;
            }
        }
    }
    sides
}

fn one_side(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let lists = view.of(system.host).filter_map(Report::disk_paths);
    let Some(sides) = lists.map(sides).filter(|sides| !sides.is_empty()).last() else { return };
    let worst = sides.iter().max_by_key(|(_, (errors, _))| *errors);
    let Some((parent, (errors, path))) = worst.filter(|_| sides.len() > 1) else { return };
    let errors = as_f64(*errors);
    let others = sides.iter().filter(|(other, _)| *other != parent);
    let others = others.map(|(_, (errors, _))| *errors).fold(0, u64::saturating_add);
    if errors < SIDE_ERRORS_LEAST || as_f64(others) > errors * SIDE_ERRORS_SHARE {
        return;
    }
    // Paths that are down are told as such.
    let listed = paths(view, system.host).map_or(&[][..], |list| &list.paths);
    if listed.iter().any(|path| is_down(path) && path.parent.as_deref() == Some(parent)) {
        return;
    }
    let title = format!("the paths over {parent} have errors, those over the others have none");
    out.push(
        Draft::new("disk-paths-one-side", system.host, view.object(system.host, parent), Severity::Critical, title)
            .see([path.at])
            .figure(shown(&format!("errors on the paths over {parent}"), errors, "", path.at))
            .because(format!("On all other paths together there are {}.", number(as_f64(others))))
            .because("All disks are reached over both sides, so it is neither a disk nor the array: it is that adapter, its port or its fabric. Disks look slow because commands on that side time out and are sent again.")
            .effect("Look at the fabric behind that adapter: the links between its switches, ports without credits, a slow device. If the clients can spare it, take the path out of use until it is mended.")
            .harm("None by looking.")
            .weigh(0.93, 1.1),
    );
}

/// `disk-single-path`: half of the adapters that every other disk has, which are all those of one server where mappings tell.
fn half_of_the_ways(view: &View<'_>, disk: &Object<'_>, out: &mut Out) {
    let Some((own, lacks, example)) = view.ways(disk.host).part(disk.device) else { return };
    let behind = san::both_servers::behind(view, disk.host);
    let servers: Option<BTreeSet<usize>> =
        ways::parents(own).into_iter().map(|parent| Some(behind.get(parent)?.0)).collect();
    let server =
        servers.filter(|servers| servers.len() == 1).and_then(|servers| servers.first().copied());
    let other = |parent: &&str| behind.get(*parent).is_some_and(|(vios, _)| Some(*vios) != server);
    let server = server.filter(|_| lacks.iter().all(other));
    let names = lacks.iter().copied().collect::<Vec<_>>().join(" and ");
    let title = match server {
        Some(server) => format!("all paths of {} lead over {}", disk.device, view.spoken(server)),
        None => format!("{} has no path over {names}", disk.device),
    };
    let (severity, confidence) = match server {
        Some(_) => (Severity::Warning, 0.9),
        None => (Severity::Note, 0.5),
    };
    out.push(
        Draft::new("disk-single-path", disk.host, view.object(disk.host, disk.device), severity, title)
            .see(own.iter().map(|path| path.at).take(8))
            .see([example.at])
            .because(format!("Every other disk of its kind has paths over {names}, too; {} has none there.", disk.device))
            .because("A restart of the VIOS or a fault of the fabric behind the adapters that are left takes the disk away.")
            .effect(format!("Map the LUN to the port names of {names} in the array (their zones have its ports where other disks of the same array are reached), then run cfgmgr here."))
            .harm("None by adding paths.")
            .weigh(confidence, 1.0),
    );
}

fn single(view: &View<'_>, disk: &Object<'_>, out: &mut Out) {
    let Some((own, example)) = view.ways(disk.host).fewer(disk.device) else {
        return half_of_the_ways(view, disk, out);
    };
    let Some(only) = own.first() else { return };
    let over = only.parent.as_deref().unwrap_or("one adapter");
    let (title, others) = match own.len() {
        1 => (format!("{} has one path only", disk.device), "two paths and more".to_owned()),
        _ => (
            format!("all paths of {} lead over {over}", disk.device),
            "paths over two adapters".to_owned(),
        ),
    };
    out.push(
        Draft::new("disk-single-path", disk.host, view.object(disk.host, disk.device), Severity::Warning, title)
            .see(own.iter().map(|path| path.at))
            .see([example.at])
            .because(format!("It is reached over {over} alone; other disks of this system have {others}."))
            .because("A restart of the VIOS or a fault of the fabric behind that adapter takes the disk away.")
            .effect("Map the disk on the second VIOS as well (or zone the second port, and map the LUN to its name in the array), then run cfgmgr here.")
            .harm("A disk that two VIOS map must not be reserved by either: reserve_policy=no_reserve on both first.")
            .weigh(0.9, 1.0),
    );
}

/// The entries that are errors of the medium or of commands, by disk.
pub(super) fn disk_errors<'a>(view: &View<'a>) -> DiskErrors<'a> {
    let mut errors = DiskErrors::new();
    for (host, report) in view.reports() {
        for entry in report.errpt().into_iter().flat_map(|report| &report.entries) {
            let text = entry.description.to_ascii_uppercase();
            if text.contains("DISK OPERATION ERROR") || text.contains("DISK ERROR") {
                errors.entry((host, entry.resource.as_str())).or_default().push(entry);
            }
        }
    }
    errors
}

/// The entries of a disk, each once.
fn disk_entries<'a>(view: &View<'a>, host: usize, disk: &str) -> Vec<&'a LoggedError> {
    let mut seen = BTreeSet::new();
    let entries = view.disk_errors().get(&(host, disk)).into_iter().flatten().copied();
    let once = entries.filter(|entry| {
        let time = entry.logged.as_ref().map(|taken| taken.seconds / 60);
        let kind = entry.kind.get(..1).unwrap_or("").to_owned();
        seen.insert((time, entry.identifier.clone(), kind))
    });
    once.collect()
}

/// Whether the error log tells of paths that failed within the day before it was printed, and not that they came back.
fn log_tells_of_paths(view: &View<'_>, host: usize) -> bool {
    let now = LogTaken::of(view, host).filter(|now| now.printed);
    let mut last: BTreeMap<&str, (u64, bool)> = BTreeMap::new();
    for entry in view.of(host).filter_map(Report::errpt).flat_map(|report| &report.entries) {
        let text = entry.description.to_ascii_uppercase();
        let failed = text.contains("PATH HAS FAILED");
        if !failed && !text.contains("PATH HAS RECOVERED") {
            continue;
        }
        let Some(at) = entry.logged.as_ref().map(|taken| taken.seconds) else { continue };
        let told = last.entry(&entry.resource).or_insert((at, failed));
        // Where both are of one time, the path is up.
        *told = match at.cmp(&told.0) {
            Ordering::Greater => (at, failed),
            Ordering::Equal => (at, failed && told.1),
            Ordering::Less => *told,
        };
    }
    last.values().any(|(at, failed)| *failed && now.is_none_or(|now| now.within_a_day(*at)))
}

/// When the error log of a system was printed last.
#[derive(Clone, Copy)]
struct LogTaken {
    seconds: u64,
    /// By the system's own clock; else by the time of a file, which may be that of its copying.
    printed: bool,
}

impl LogTaken {
    /// The log's clock and that of `date` are the same, whatever the zone is called.
    fn of(view: &View<'_>, host: usize) -> Option<Self> {
        let dated = |report: &Report| {
            let taken = report.head().taken.as_ref().filter(|taken| taken.zone.is_some())?;
            Some(taken.seconds)
        };
        let logs = || view.of(host).filter(|report| report.errpt().is_some());
        if let Some(seconds) = logs().filter_map(dated).max() {
            return Some(Self { seconds, printed: true });
        }
        // What the system printed on another day than its log; the log is no older than what stands in it.
        if let Some(seconds) = view.of(host).filter_map(dated).max() {
            let entries = logs().filter_map(Report::errpt).flat_map(|log| &log.entries);
            let newest = entries.filter_map(|entry| Some(entry.logged.as_ref()?.seconds)).max();
            return Some(Self {
                seconds: newest.map_or(seconds, |at| at.max(seconds)),
                printed: true,
            });
        }
        let seconds = logs().filter_map(|log| Some(log.head().taken.as_ref()?.seconds)).max()?;
        Some(Self { seconds, printed: false })
    }

    /// Whether what was logged at that time is of the day before.
    fn within_a_day(self, logged: u64) -> bool {
        self.seconds.saturating_sub(logged) <= DISK_ERRORS_WITHIN_SECONDS
    }
}

fn offline(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let Some(list) = view.of(system.host).filter_map(Report::pv_list).last() else { return };
    for lun in &list.luns {
        let Some(state) = lun.state.as_ref() else { continue };
        let word = state.value.to_ascii_uppercase();
        if !(word.contains("OFFLINE")
            || word.contains("MISSING")
            || word.contains("FAILED")
            || word.contains("DEGRADED"))
        {
            continue;
        }
        let pool =
            lun.pool.as_ref().map_or(String::new(), |pool| format!(" of pool {}", pool.value));
        let mut draft = Draft::new(
            "ssp-disk-offline",
            system.host,
            format!("{}{pool}", lun.name),
            Severity::Critical,
            format!("{}{pool} is {}", lun.name, state.value),
        )
        .see([lun.at, state.at])
        .because("The pool does not reach this LUN.");
        if let Some(group) = &lun.failure_group {
            draft = draft.because(format!(
                "It is in the failure group {}: what lay on it has one copy less.",
                group.value
            ));
        }
        out.push(
            draft
                .effect("Look at the paths to it on every VIOS (lspath) and at the storage behind it. When it answers again the pool brings it up to date by itself; do not remove it meanwhile.")
                .harm("None by looking.")
                .weigh(0.95, 1.1),
        );
    }
}
