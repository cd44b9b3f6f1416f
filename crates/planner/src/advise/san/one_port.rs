//! `vfchost-one-port`: a client whose adapters all hang on one port of the VIOS.

use std::collections::{BTreeMap, BTreeSet};

use super::virtual_adapters;
use crate::advise::finding::{Draft, Severity};
use crate::advise::mapping::Npiv;
use crate::advise::out::Out;
use crate::advise::rule::{Applicability, Object};
use crate::advise::view::View;
use crate::capture::{At, NpivPort, Report};

fn map_of<'v, 'a>(view: &'v View<'a>, server: &Object<'_>) -> Option<&'v Npiv<'a>> {
    view.npiv().iter().find(|map| map.vios == server.host && map.map.name == server.device)
}

pub(super) fn applies<'a>(view: &View<'a>, server: &Object<'a>) -> Applicability {
    Applicability::where_that(map_of(view, server).is_some_and(|map| map.client_key().is_some()))
}

/// The mappings of the same client on the same VIOS, this one among them.
fn of_client<'v, 'a>(view: &'v View<'a>, map: &Npiv<'a>) -> Vec<&'v Npiv<'a>> {
    let same = |other: &&Npiv<'a>| {
        other.vios == map.vios
            && other.map.client_id.map(|read| read.value)
                == map.map.client_id.map(|read| read.value)
    };
    view.npiv().iter().filter(same).collect()
}

pub(super) fn judge<'a>(view: &View<'a>, server: &Object<'a>, out: &mut Out) {
    let Some(map) = map_of(view, server) else { return };
    let own = of_client(view, map);
    // One finding for the client: on its last adapter.
    let last = own.iter().map(|map| map.map.name.as_str()).max_by_key(|name| (name.len(), *name));
    let ports: BTreeSet<&str> = own.iter().filter_map(|map| map.port()).collect();
    if own.len() < 2
        || ports.len() != 1
        || last != Some(server.device)
        || own.iter().any(|map| map.port().is_none())
    {
        return;
    }
    let port = ports.first().copied().unwrap_or("one port");
    let why = match split(view, map) {
        0 => no_other(view, map, &own, port),
        others => Some((
            format!("other clients of this VIOS ({others}) are spread over two"),
            Vec::new(),
            String::new(),
        )),
    };
    let Some((why, lines, free)) = why else { return };
    let places = own.iter().filter_map(|map| map.map.port.as_ref().map(|port| port.at));
    let names: Vec<&str> = own.iter().map(|map| map.map.name.as_str()).collect();
    let title = format!("all adapters of {} hang on {port}", map.client_spoken());
    out.push(
        Draft::new("vfchost-one-port", server.host, view.object(server.host, server.device), Severity::Warning, title)
            .see(places)
            .see(lines)
            .because(format!("{} are mapped to {port}; {why}.", names.join(" and ")))
            .because(free)
            .because("When that port or its fabric goes, the client loses its disks on this VIOS.")
            .effect("Map one of them to a port of the other fabric, after zoning its port names there. Which port that is, is not known from this.")
            .harm("The path over the adapter that is mapped anew is gone until it is logged in again.")
            .weigh(0.85, 0.9),
    );
}

/// How many clients of the VIOS are spread over several ports.
fn split(view: &View<'_>, map: &Npiv<'_>) -> usize {
    let mut by_client: BTreeMap<Option<u32>, BTreeSet<&str>> = BTreeMap::new();
    for other in view.npiv().iter().filter(|other| other.vios == map.vios) {
        let id = other.map.client_id.map(|read| read.value);
        by_client.entry(id).or_default().extend(other.port());
    }
    by_client.values().filter(|ports| ports.len() > 1).count()
}

/// That these are all adapters that the client has, by its own paths or by the HMC's list, and that another port of the VIOS
/// has a fabric; with the lines, and which port that is.
fn no_other<'a>(
    view: &View<'a>,
    map: &Npiv<'a>,
    own: &[&Npiv<'a>],
    port: &str,
) -> Option<(String, Vec<At>, String)> {
    let lists = view.of(map.vios).filter_map(Report::lsnports);
    let with_room = |other: &&NpivPort| other.name != port && other.fabric && other.ports_free > 0;
    let free = lists.last()?.ports.iter().find(with_room)?;
    let (why, mut lines) = by_paths(view, map, own).or_else(|| by_hmc(view, map, own))?;
    lines.push(free.at);
    Some((why, lines, format!("{} of the same VIOS has a fabric and room.", free.name)))
}

fn by_paths(view: &View<'_>, map: &Npiv<'_>, own: &[&Npiv<'_>]) -> Option<(String, Vec<At>)> {
    let client = map.client?;
    let adapters = view.ways(client).adapters();
    let of_map: BTreeSet<String> = own.iter().filter_map(|map| map.client_protocol()).collect();
    let all = adapters.len() > 1 && adapters.keys().all(|name| of_map.contains(*name));
    let names: Vec<&str> = adapters.keys().copied().collect();
    all.then(|| {
        let why = format!(
            "{} has paths over {} and no other adapter",
            map.client_spoken(),
            names.join(" and ")
        );
        (why, adapters.values().copied().collect())
    })
}

fn by_hmc(view: &View<'_>, map: &Npiv<'_>, own: &[&Npiv<'_>]) -> Option<(String, Vec<At>)> {
    let client = map.client?;
    let all = view.hosts().flat_map(|host| virtual_adapters(view, host));
    let rows: BTreeMap<&str, At> = all
        .filter(|of| view.model.named_at(of.row.at) == Some(client))
        .filter_map(|of| Some((of.row.field("slot_num")?, of.row.at)))
        .collect();
    (rows.len() == own.len()).then(|| {
        let why = format!("the HMC lists no other adapter of {}", map.client_spoken());
        (why, rows.into_values().collect())
    })
}
