//! `vnic-backing-device`: a backing device of a vNIC that could carry nothing, by the VIOS or by the HMC.
//!
//! A vNIC has up to six backing devices, of which one carries; that a spare is out of order shows only when it is needed.

use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::view::View;
use crate::capture::{At, HmcRow, Report, VnicMap};

const RULE: &str = "vnic-backing-device";

pub(super) const RULES: &[Rule] = &[Rule {
    name: RULE,
    about: "a backing device of a vNIC is out of order",
    on: Kind::System,
    evidence: "lsmap -all -vnic on each VIOS, lshwres -r virtualio --rsubtype vnicbkdev on the HMC",
    weight: 1.1,
    applies: |view, system| {
        let shown = maps(view, system.host).next().is_some();
        Applicability::where_that(shown || rows(view, system.host).next().is_some())
    },
    judge: |view, system, out| {
        of_server(view, system, out);
        of_console(view, system, out);
    },
}];

/// The adapters of a VIOS, as they were mapped last.
fn maps<'a>(view: &View<'a>, host: usize) -> impl Iterator<Item = &'a VnicMap> {
    let last = view.of(host).filter_map(Report::lsmap_vnic).last();
    last.into_iter().flat_map(|list| &list.adapters)
}

/// The HMC's rows of backing devices.
fn rows<'a>(view: &View<'a>, host: usize) -> impl Iterator<Item = &'a HmcRow> {
    let has = |row: &&HmcRow| {
        ["vios_lpar_name", "failover_priority", "status"]
            .iter()
            .all(|name| row.field(name).is_some())
    };
    let lists: Vec<_> = view.of(host).filter_map(Report::hmc_list).collect();
    lists.into_iter().flat_map(|list| &list.rows).filter(has)
}

/// The line that says that the adapter's backing device is out of order.
fn is_down(map: &VnicMap) -> Option<At> {
    map.backing.as_ref()?;
    let status = map.status.as_ref()?;
    (!status.value.eq_ignore_ascii_case("available")).then_some(status.at)
}

fn is_out_of_order(row: &HmcRow) -> bool {
    row.field("status").is_some_and(|status| !status.eq_ignore_ascii_case("operational"))
}

/// Whether the row is about this client on this VIOS.
fn is_about(row: &HmcRow, vios: Option<&str>, map: &VnicMap) -> bool {
    let client = map.client_name.as_ref().map(|read| read.value.as_str());
    let same = |field: &str, name: Option<&str>| {
        name.is_some_and(|name| {
            row.field(field).is_some_and(|told| told.eq_ignore_ascii_case(name))
        })
    };
    same("vios_lpar_name", vios) && same("lpar_name", client)
}

fn severity(row: Option<&HmcRow>) -> Severity {
    let active = row.and_then(|row| row.field("is_active"));
    if active == Some("1") { Severity::Critical } else { Severity::Warning }
}

const EFFECT: &str = "Look at the port behind it: the cable, the transceiver, the port of the switch, and the state of the SR-IOV adapter on the HMC (lshwres -r sriov --rsubtype physport). When its link is back it is ready again by itself.";

fn of_server(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    for map in maps(view, system.host) {
        let (Some(at), Some(backing)) = (is_down(map), &map.backing) else { continue };
        let told = view
            .hosts()
            .flat_map(|host| rows(view, host))
            .find(|row| is_out_of_order(row) && is_about(row, view.name(system.host), map));
        let client = map.client_name.as_ref().map_or("the client", |read| &read.value);
        let title =
            format!("{}, which stands behind a vNIC of {client}, is out of order", backing.value);
        let draft = Draft::new(
            RULE,
            system.host,
            view.object(system.host, &map.name),
            severity(told),
            title,
        )
        .see([map.at, at])
        .see(told.map(|row| row.at));
        out.push(finish(draft, told));
    }
}

/// What the HMC alone tells.
fn of_console(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    for row in rows(view, system.host).filter(|row| is_out_of_order(row)) {
        let said = view.hosts().any(|host| {
            maps(view, host)
                .any(|map| is_down(map).is_some() && is_about(row, view.name(host), map))
        });
        let (Some(client), Some(vios)) = (row.field("lpar_name"), row.field("vios_lpar_name"))
        else {
            continue;
        };
        if !said {
            let object = format!("vNIC of {client} over {vios}");
            let title = format!("a backing device of {client} on {vios} is out of order");
            let draft =
                Draft::new(RULE, system.host, object, severity(Some(row)), title).see([row.at]);
            out.push(finish(draft, Some(row)));
        }
    }
}

fn finish(draft: Draft, row: Option<&HmcRow>) -> Draft {
    let draft = match row.and_then(|row| row.field("status")) {
        Some(status) => draft.because(format!("The HMC says: {status}.")),
        None => draft,
    };
    draft
        .because("A vNIC moves to another of its backing devices when the one in use fails; it cannot move to this one.")
        .effect(EFFECT)
        .harm("None by looking.")
        .weigh(0.9, 1.0)
}
