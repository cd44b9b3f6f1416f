//! A client that has, or could have, its Fibre Channel disks over two servers, and hangs on one: `client-one-vios` by the
//! mappings, and `client-paths-one-vios` by the paths that are there.

use std::collections::{BTreeMap, BTreeSet};

use super::virtual_adapters;
use crate::advise::finding::{Draft, Severity};
use crate::advise::mapping::Npiv;
use crate::advise::out::Out;
use crate::advise::rule::{Applicability, Object};
use crate::advise::thresholds::ONE_SERVER_OTHERS_FIBRE;
use crate::advise::view::{View, count};
use crate::capture::{At, DiskPath, Head, Report};

/// Whether something stands behind a report in its file: a list at the end of a file may go on where that was cut off.
pub(super) fn is_followed(view: &View<'_>, head: &Head) -> bool {
    let after = |report: &Report| {
        let first = report.head().first;
        first.file == head.first.file && first.line > head.last
    };
    view.reports().any(|(_, report)| after(report))
}

/// Whether a list of paths ends where the command's did: something follows it, or all of its disks, of which each has its
/// paths together, have as many over several adapters.
fn is_whole(view: &View<'_>, host: usize) -> bool {
    let Some(list) = view.of(host).filter_map(Report::disk_paths).last() else { return false };
    let runs: Vec<&[DiskPath]> = list.paths.chunk_by(|one, two| one.disk == two.disk).collect();
    let disks: BTreeSet<&str> = list.paths.iter().map(|path| path.disk.as_str()).collect();
    let alike = runs.windows(2).all(|two| over(two[0]) == over(two[1]));
    let together = runs.len() == disks.len() && runs.len() > 1;
    let several = runs.first().is_some_and(|run| over(run).len() > 1);
    is_followed(view, &list.head) || (together && alike && several)
}

fn over(run: &[DiskPath]) -> BTreeSet<&str> {
    run.iter().filter_map(|path| path.parent.as_deref()).collect()
}

/// The other servers of the machine whose mappings of Fibre Channel were captured whole, where this one's were, too.
fn beside(view: &View<'_>, host: usize) -> BTreeSet<usize> {
    let whole = |host: usize| {
        let lists = view.of(host).filter_map(|report| match report {
            Report::LsmapNpiv(list) => Some(list),
            _ => None,
        });
        let mut lists = lists.peekable();
        lists.peek().is_some()
            && lists.all(|list| list.head.incomplete.is_none() && is_followed(view, &list.head))
    };
    if !whole(host) {
        return BTreeSet::new();
    }
    let others = view.hosts().filter(|other| *other != host && view.same_machine(*other, host));
    others.filter(|other| whole(*other)).collect()
}

pub(super) fn has_beside(view: &View<'_>, host: usize) -> bool {
    !beside(view, host).is_empty()
}

/// `client-one-vios`: its adapters are mapped on this server alone, where other clients have theirs on both.
pub(super) fn mapped(view: &View<'_>, host: usize, out: &mut Out) {
    let beside = beside(view, host);
    if beside.is_empty() {
        return;
    }
    let mut clients: BTreeMap<u32, Vec<&Npiv<'_>>> = BTreeMap::new();
    for map in view.npiv().iter().filter(|map| map.vios == host || beside.contains(&map.vios)) {
        if let Some(id) = map.map.client_id.map(|read| read.value).filter(|id| *id != 0) {
            clients.entry(id).or_default().push(map);
        }
    }
    let servers = |maps: &[&Npiv<'_>]| maps.iter().map(|map| map.vios).collect::<BTreeSet<usize>>();
    let (both, alone): (Vec<_>, Vec<_>) =
        clients.iter().partition(|(_, maps)| servers(maps).len() > 1);
    // What the HMC lists, it tells itself. What comes by virtual SCSI from another server is another way.
    let listed = |name: &str| {
        let rows = view.hosts().flat_map(|host| virtual_adapters(view, host));
        rows.filter(|of| of.fibre).any(|of| of.row.field("lpar_name") == Some(name))
    };
    let scsi = |id: u32| {
        view.vhosts().iter().any(|(server, adapter)| {
            let own = adapter.client_partition.is_some_and(|read| read.value == id);
            own && beside.contains(server) && !adapter.devices.is_empty()
        })
    };
    let alone: Vec<_> = alone
        .into_iter()
        .filter(|(id, maps)| {
            let used = maps.iter().any(|map| map.logged_in());
            used && !scsi(**id) && !maps.iter().any(|map| listed(&map.client_spoken()))
        })
        .collect();
    if count(both.len()) < ONE_SERVER_OTHERS_FIBRE * count(alone.len()) {
        return;
    }
    let server = view.spoken(host);
    for (_, maps) in alone.into_iter().filter(|(_, maps)| servers(maps).contains(&host)) {
        let Some(first) = maps.first() else { continue };
        let client = first.client_spoken();
        let names: Vec<&str> = maps.iter().map(|map| map.map.name.as_str()).collect();
        let title = format!("all Fibre Channel adapters of {client} lead to {server}");
        out.push(
            Draft::new("client-one-vios", host, client, Severity::Warning, title)
                .see(maps.iter().map(|map| map.map.at))
                .because(format!("{} on {server} are all that it has on the servers of the machine; {} other clients have adapters on two of them.", names.join(" and "), both.len()))
                .because("It has no redundancy: its paths look well until that server is restarted, then all of them are gone.")
                .effect("Give it an adapter to another VIOS, mapped and zoned there, see with lspath on the client that its paths are usable, and take one of these away afterwards.")
                .harm("None by adding one; write it into the profile, too.")
                .weigh(0.85, 0.95),
        );
    }
}

/// The server behind each protocol device of a client that is logged in.
pub(in crate::advise) fn behind<'a>(
    view: &View<'a>,
    client: usize,
) -> BTreeMap<String, (usize, At)> {
    let maps = view.npiv().iter().filter(|map| map.client == Some(client) && map.logged_in());
    maps.filter_map(|map| Some((map.client_protocol()?, (map.vios, map.map.at)))).collect()
}

pub(super) fn applies<'a>(view: &View<'a>, system: &Object<'a>) -> Applicability {
    let servers: BTreeSet<usize> =
        behind(view, system.host).into_values().map(|(vios, _)| vios).collect();
    Applicability::where_that(servers.len() > 1 && view.ways(system.host).disks().next().is_some())
}

/// `client-paths-one-vios`.
pub(super) fn reached(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let behind = behind(view, system.host);
    let used = view.ways(system.host).adapters();
    // An adapter of which it is not known where it leads may be the other way.
    let known: Option<BTreeSet<usize>> =
        used.keys().map(|name| Some(behind.get(*name)?.0)).collect();
    let Some(server) =
        known.filter(|known| known.len() == 1).and_then(|known| known.first().copied())
    else {
        return;
    };
    if !is_whole(view, system.host) {
        let capture = format!("lspath on {}, and a command after it", view.spoken(system.host));
        return out.lack("whether the list of paths is whole", capture);
    }
    let idle: Vec<(&String, &(usize, At))> =
        behind.iter().filter(|(_, (vios, _))| *vios != server).collect();
    let others: BTreeSet<&str> = idle.iter().map(|(_, (vios, _))| view.spoken(*vios)).collect();
    let (client, server) = (view.spoken(system.host).to_owned(), view.spoken(server));
    let names = |all: Vec<&str>| all.join(" and ");
    let over = names(used.keys().copied().collect());
    let idle_names = names(idle.iter().map(|(name, _)| name.as_str()).collect());
    let others = others.into_iter().collect::<Vec<_>>().join(" and ");
    let title = format!("all disks of {client} are reached over {server} alone");
    out.push(
        Draft::new("client-paths-one-vios", system.host, client, Severity::Warning, title)
            .see(used.values().copied())
            .see(idle.iter().map(|(_, (_, at))| *at))
            .because(format!("Its paths lead over {over}, which are of {server}. {idle_names} of {others} are logged in, and no path leads over them."))
            .because(format!("A restart of {server} takes all of its disks away."))
            .effect(format!("See that the array maps the LUNs to the port names of {idle_names}, and that their zones have its ports (lsmap -all -npiv shows how many they are logged in to); then run cfgmgr on the client and look at lspath."))
            .harm("None by looking. Before work on that server look again.")
            .weigh(0.9, 1.0),
    );
}
