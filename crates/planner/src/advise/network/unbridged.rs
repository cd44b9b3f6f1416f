//! `net-vlan`: an adapter in a VLAN in which nobody is and that no shared adapter takes to the outside.

use std::collections::{BTreeMap, BTreeSet};

use super::Wire;
use super::vlans::on_same_switch;
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::{Applicability, Object};
use crate::advise::sea::{vlan_list, vlans};
use crate::advise::thresholds::UNHEARD_PACKETS;
use crate::advise::view::{Role, View, as_f64, shown};
use crate::capture::{HmcRow, Report};

const EFFECT: &str = "Add the VLAN to the trunk adapters of the shared adapter on both VIOS and to the switch ports, or put this adapter into the VLAN that was meant. That is done on the HMC (chhwres -r virtualio --rsubtype eth, and the profile).";
pub(super) const HARM: &str = "A VLAN that is added to a trunk reaches every client of it.";

/// An adapter that has sent and heard nothing, whose VLAN is on no trunk adapter of the machine.
pub(super) fn unheard(view: &View<'_>, wire: &Wire<'_>, out: &mut Out) {
    let last = wire.last();
    let (Some(sent), Some(heard)) = (last.transmitted.packets, last.received.packets) else {
        return;
    };
    let own = last.virtual_adapter.as_ref();
    let silent = heard.value == 0 && as_f64(sent.value) >= UNHEARD_PACKETS;
    let Some(own) = own.filter(|_| silent && view.role(wire.host) != Role::Vios) else { return };
    let mine = vlans(own);
    let mut bridged = BTreeMap::new();
    for bridge in view.bridges().iter().filter(|of| view.same_machine(of.host, wire.host)) {
        for (_, of) in bridge.trunks(view) {
            if on_same_switch(of, own) {
                bridged.extend(vlans(of));
            }
        }
    }
    if bridged.is_empty() || mine.is_empty() || mine.keys().any(|vlan| bridged.contains_key(vlan)) {
        return;
    }
    let vlan = vlan_list(mine.keys());
    let title = format!("no shared adapter of the machine bridges VLAN {vlan} of {}", wire.name);
    out.push(
        wire.draft(view, "net-vlan", Severity::Critical, title)
            .see(mine.values().copied())
            .see([sent.at, heard.at])
            .see(bridged.values().copied())
            .figure(shown("packets sent", as_f64(sent.value), "packets", sent.at))
            .because(format!("It has sent {} packets and received none.", sent.value))
            .because(format!(
                "The trunk adapters that were captured of its machine are in {}.",
                vlan_list(bridged.keys())
            ))
            .effect(EFFECT)
            .harm(HARM)
            .weigh(0.85, 1.1),
    );
}

/// The virtual Ethernet adapters of a machine by the HMC's list.
fn listed<'a>(view: &View<'a>, host: usize) -> BTreeMap<Option<&'a str>, Vec<&'a HmcRow>> {
    let mut machines: BTreeMap<Option<&str>, Vec<&HmcRow>> = BTreeMap::new();
    for list in view.of(host).filter_map(Report::hmc_list) {
        // A list of some of the partitions says nothing of who else is in a VLAN.
        let part =
            list.head.command.as_ref().is_some_and(|typed| {
                ["--filter", "|"].iter().any(|word| typed.value.contains(word))
            });
        let has = |row: &&HmcRow| {
            ["port_vlan_id", "is_trunk", "lpar_name"].iter().all(|name| row.field(name).is_some())
        };
        let rows: Vec<&HmcRow> = list.rows.iter().filter(has).collect();
        if !part && list.head.incomplete.is_none() && !rows.is_empty() {
            machines.insert(list.system.as_ref().map(|read| read.value.as_str()), rows);
        }
    }
    machines
}

pub(super) fn applies<'a>(view: &View<'a>, system: &Object<'a>) -> Applicability {
    Applicability::where_that(!listed(view, system.host).is_empty())
}

/// The VLANs of a row: its own, and those that it tags for.
fn of_row(row: &HmcRow) -> BTreeSet<u16> {
    let fields = ["port_vlan_id", "addl_vlan_ids"].into_iter().filter_map(|name| row.field(name));
    fields.flat_map(|text| text.split(',')).filter_map(|text| text.trim().parse().ok()).collect()
}

/// An adapter that is alone in its VLAN: no trunk adapter of the machine is in it, and no other adapter either.
pub(super) fn alone(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    for rows in listed(view, system.host).into_values() {
        let on = |row: &HmcRow| row.field("vswitch").unwrap_or_default().to_owned();
        let is_trunk = |row: &HmcRow| row.field("is_trunk") == Some("1");
        for row in rows.iter().filter(|row| !is_trunk(row)) {
            let mine = of_row(row);
            let place = |row: &HmcRow| {
                (
                    row.field("lpar_name").map(str::to_owned),
                    row.field("slot_num").map(str::to_owned),
                )
            };
            let beside: Vec<&&HmcRow> = rows
                .iter()
                .filter(|other| on(other) == on(row) && place(other) != place(row))
                .collect();
            let met = beside.iter().any(|other| !of_row(other).is_disjoint(&mine));
            let trunks: Vec<&&&HmcRow> = beside.iter().filter(|other| is_trunk(other)).collect();
            if met || mine.is_empty() || trunks.is_empty() {
                continue;
            }
            let name = row.field("lpar_name").unwrap_or_default().to_owned();
            let bridged: BTreeSet<u16> = trunks.iter().flat_map(|other| of_row(other)).collect();
            let title = format!(
                "VLAN {} of {name} is bridged by no trunk adapter, and nobody else is in it",
                vlan_list(&mine)
            );
            let slot =
                row.field("slot_num").map_or_else(String::new, |slot| format!(" in slot {slot}"));
            out.push(
                Draft::new("net-vlan", system.host, name, Severity::Warning, title)
                    .see([row.at])
                    .see(trunks.iter().map(|other| other.at))
                    .because(format!("The adapter{slot} is in VLAN {}; the trunk adapters of its virtual switch are in {}.", vlan_list(&mine), vlan_list(&bridged)))
                    .because("No other adapter of the machine is in that VLAN: what it sends reaches nobody.")
                    .effect(EFFECT)
                    .harm(HARM)
                    .weigh(0.8, 1.0),
            );
        }
    }
}
