//! A port that has lost the fabric, and an adapter that was never given a port.
//!
//! When every client of a port is logged out, the port is the finding and not the zoning of each client: one cable or one
//! switch port is the cause of all of them. Clients that are down are logged out everywhere; so a client counts only
//! where another adapter of it is logged in, or where the port itself says that it has no link.

use std::collections::BTreeSet;

use super::finding::{Draft, NoCommand, Severity};
use super::mapping::Npiv;
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::view::{Role, View};
use crate::capture::{At, HmcRow, NpivPort, Report};
use crate::report::clean::is_word;

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "fc-port-logged-out",
        about: "no client of a port is logged in to the fabric",
        on: Kind::Port,
        evidence: "lsmap -all -npiv and lsnports on each VIOS, fcstat fcsN of the port",
        weight: 1.3,
        applies: |view, port| {
            let served = view.role(port.host) == Role::Vios && mapped(view, port).next().is_some();
            Applicability::where_that(served)
        },
        judge: logged_out,
    },
    Rule {
        name: "fc-adapter-unmapped",
        about: "a virtual Fibre Channel adapter has no port where its siblings have one",
        on: Kind::Server,
        evidence: "lsmap -all -npiv on each VIOS",
        weight: 1.0,
        applies: |view, server| match of(view, server) {
            None => Applicability::Elsewhere,
            // A record that was cut off, or that a filter took lines from, has no port either.
            Some(map) if map.port().is_none() && map.map.flags.is_none() => {
                Applicability::Lacking {
                    why: "neither its port nor its flags were captured".to_owned(),
                    capture: format!("lsmap -all -npiv on {}", view.spoken(map.vios)),
                }
            }
            Some(_) => Applicability::Judged,
        },
        judge: unmapped,
    },
];

/// The adapters on a port.
fn mapped<'v, 'a>(
    view: &'v View<'a>,
    port: &Object<'a>,
) -> impl Iterator<Item = &'v Npiv<'a>> + use<'v, 'a> {
    let (host, device) = (port.host, port.device);
    view.npiv().iter().filter(move |map| map.vios == host && map.port() == Some(device))
}

/// The mapping of an adapter.
fn of<'v, 'a>(view: &'v View<'a>, server: &Object<'a>) -> Option<&'v Npiv<'a>> {
    view.npiv().iter().find(|map| map.vios == server.host && map.map.name == server.device)
}

/// What `lsnports` says of a port last.
fn npiv_port<'a>(view: &View<'a>, port: &Object<'a>) -> Option<&'a NpivPort> {
    let lists = view.of(port.host).filter_map(Report::lsnports);
    lists.flat_map(|list| &list.ports).filter(|listed| listed.name == port.device).last()
}

/// The lines that say that the port has no link or no fabric.
fn without_link<'a>(view: &View<'a>, port: &Object<'a>) -> Vec<(At, &'static str)> {
    let mut lines = Vec::new();
    if let Some(listed) = npiv_port(view, port).filter(|listed| !listed.fabric) {
        lines.push((listed.at, "lsnports shows it without a fabric."));
    }
    let last = view.fcstats(port.host, port.device).last();
    let attention = last.and_then(|fcstat| fcstat.attention_type.as_ref());
    if let Some(down) = attention.filter(|read| read.value.eq_ignore_ascii_case("link down")) {
        lines.push((down.at, "Its fcstat says Link Down."));
    }
    lines
}

/// `fc-port-logged-out`.
fn logged_out<'a>(view: &View<'a>, port: &Object<'a>, out: &mut Out) {
    let here: Vec<&Npiv<'_>> = mapped(view, port).collect();
    if here.iter().any(|map| map.logged_in()) {
        return;
    }
    // A client that is up is logged in over another port.
    let up = |map: &&Npiv<'_>| {
        let same = |other: &Npiv<'_>| other.client == map.client && other.port() != map.port();
        map.client.is_some() && view.npiv().iter().any(|other| same(other) && other.logged_in())
    };
    let spoken = |map: &Npiv<'_>| {
        let name = map.client.and_then(|client| view.name(client));
        name.map_or_else(|| map.client_spoken(), str::to_owned)
    };
    let clients: BTreeSet<String> = here.iter().copied().filter(up).map(spoken).collect();
    let down = without_link(view, port);
    if clients.is_empty() && down.is_empty() || clients.len() < 2 && down.is_empty() {
        return;
    }
    let names: Vec<String> = clients.into_iter().collect();
    let state = |map: &Npiv<'_>| map.map.status.as_ref().map_or(map.map.at, |read| read.at);
    let mut draft = Draft::new(
        "fc-port-logged-out",
        port.host,
        port.label.clone(),
        Severity::Critical,
        "no client of the port is logged in to the fabric".to_owned(),
    )
    .see(down.iter().map(|(at, _)| *at))
    .see(here.iter().map(|map| state(map)));
    for (_, why) in &down {
        draft = draft.because(*why);
    }
    if !names.is_empty() {
        draft = draft.because(format!(
            "{} run and are logged in over another port, so they are not down: what they share here is the port.",
            names.join(", ")
        ));
    }
    let sure = if down.is_empty() { 0.85 } else { 0.95 };
    out.push(
        draft
            .because("One port without its fabric explains every client on it; zones and masks are each client's own and do not fail together.")
            .effect("No command mends a link. Look at the cable, the transceiver and the switch port (is it enabled, does it allow NPIV, in which fabric is it), then take lsnports and lsmap -all -npiv again: the clients log in by themselves. Their failed paths come back with the health check, or after a scan on the client.")
            .harm("The clients run on one path until then: touch nothing on the other one.")
            .weigh(sure, 1.0),
    );
}

/// The only adapter of a client has no port: an HMC that says that the client runs tells that it is no slot for later.
fn alone<'a>(view: &View<'a>, server: &Object<'a>, map: &Npiv<'a>, client: usize, out: &mut Out) {
    let lists = view.reports().filter_map(|(_, report)| report.hmc_list());
    let runs = |row: &&HmcRow| {
        view.model.named_at(row.at) == Some(client) && row.field("state") == Some("Running")
    };
    let Some(row) = lists.flat_map(|list| &list.rows).find(runs) else { return };
    let spoken = map.client_spoken();
    let flags = map.map.flags.map_or(map.map.at, |read| read.at);
    out.push(
        Draft::new(
            "fc-adapter-unmapped",
            map.vios,
            server.label.clone(),
            Severity::Warning,
            format!("the adapter of {spoken} has no port"),
        )
        .see([map.map.at, flags, row.at])
        .because(format!("{} serves {spoken} and is mapped to no port, and {spoken} runs: it sees nothing through this adapter.", map.map.name))
        .unknown(NoCommand {
            look_up: vec![format!(
                "a port with a fabric and free NPIV ports: lsnports on {}; then vfcmap -vadapter {} -fcp with it",
                view.spoken(map.vios),
                map.map.name
            )],
            ..NoCommand::default()
        })
        .effect("The client gets the path once it looks for it: run cfgmgr there, and check the paths of its disks. Its WWPNs must be zoned and masked on that fabric.")
        .harm("None to others.")
        .weigh(0.75, 0.9),
    );
}

/// `fc-adapter-unmapped`.
fn unmapped<'a>(view: &View<'a>, server: &Object<'a>, out: &mut Out) {
    let Some(map) = of(view, server).filter(|map| map.port().is_none() && !map.logged_in()) else {
        return;
    };
    // Slots are kept for clients that are yet to come; this one serves a client that has others.
    let Some(client) = map.client else { return };
    let here = || view.npiv().iter().filter(|other| other.vios == map.vios);
    let siblings: Vec<&Npiv<'_>> = view
        .npiv()
        .iter()
        .filter(|other| other.client == Some(client) && other.port().is_some())
        .collect();
    let Some(sibling) = siblings.first() else { return alone(view, server, map, client, out) };
    let used: BTreeSet<&str> = siblings
        .iter()
        .filter(|other| other.vios == map.vios)
        .filter_map(|other| other.port())
        .collect();
    let others: BTreeSet<&str> = here().filter_map(Npiv::port).collect();
    let free: Vec<&str> = others.difference(&used).copied().collect();
    let flags = map.map.flags.map_or(map.map.at, |read| read.at);
    let spoken = map.client_spoken();
    let draft = Draft::new(
        "fc-adapter-unmapped",
        map.vios,
        server.label.clone(),
        Severity::Warning,
        format!("the adapter of {spoken} has no port"),
    )
    .see([map.map.at, flags, sibling.map.at])
    .because(format!("{} serves {spoken} and is mapped to no port, while {} of the same client is.", map.map.name, sibling.map.name))
    .because("The client has one path fewer than it was given adapters for.")
    .effect("The client gets the path once it looks for it: run cfgmgr there, and check the paths of its disks. Its WWPNs must be zoned and masked on that fabric.")
    .harm("None to others. On the wrong port the client would have two paths over one fabric; compare with how its siblings are laid out.")
    .weigh(0.85, 1.0);
    let named = view.name(map.vios).is_some() && is_word(&map.map.name);
    out.push(match free[..] {
        // Only one port is left that other clients of this VIOS use and this one does not.
        [port] if named && is_word(port) => draft.run(
            format!("vfcmap -vadapter {} -fcp {port}", map.map.name),
            &format!("as padmin on {}", view.spoken(map.vios)),
            format!("vfcmap -vadapter {} -fcp", map.map.name),
        ),
        _ => draft.unknown(NoCommand {
            look_up: vec![format!(
                "the port that leads to the fabric which the client's other adapters do not use: lsnports and lsmap -all -npiv on {}",
                view.spoken(map.vios)
            )],
            ..NoCommand::default()
        }),
    });
}
