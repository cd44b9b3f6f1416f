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

/// Where an adapter is: a partition and a slot.
type Place<'a> = (Option<&'a str>, Option<&'a str>);

fn place(row: &HmcRow) -> Place<'_> {
    (row.field("lpar_name"), row.field("slot_num"))
}

fn on(row: &HmcRow) -> &str {
    row.field("vswitch").unwrap_or_default()
}

fn is_trunk(row: &HmcRow) -> bool {
    row.field("is_trunk") == Some("1")
}

/// The trunk adapters of a virtual switch, and the VLANs that they are in.
#[derive(Default)]
struct Trunks<'a> {
    rows: Vec<&'a HmcRow>,
    vlans: BTreeSet<u16>,
}

/// An adapter that is alone in its VLAN: no trunk adapter of the machine is in it, and no other adapter either.
pub(super) fn alone(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    /// So many lines of trunk adapters are shown.
    const SHOWN: usize = 16;
    for rows in listed(view, system.host).into_values() {
        let mut switches: BTreeMap<&str, Trunks<'_>> = BTreeMap::new();
        // Who is in each VLAN: the first, and whether somebody else is, too.
        let mut within: BTreeMap<(&str, u16), (Place<'_>, bool)> = BTreeMap::new();
        for row in &rows {
            let vlans = of_row(row);
            for vlan in &vlans {
                let (first, more) = within.entry((on(row), *vlan)).or_insert((place(row), false));
                *more |= *first != place(row);
            }
            if is_trunk(row) {
                let trunks = switches.entry(on(row)).or_default();
                trunks.rows.push(row);
                trunks.vlans.extend(vlans);
            }
        }
        for row in rows.iter().filter(|row| !is_trunk(row)) {
            let mine = of_row(row);
            let is_met = |vlan: &u16| within.get(&(on(row), *vlan)).is_some_and(|(_, more)| *more);
            let Some(trunks) = switches.get(on(row)) else { continue };
            let others = trunks.rows.iter().any(|other| place(other) != place(row));
            if mine.is_empty() || !others || mine.iter().any(is_met) {
                continue;
            }
            let name = row.field("lpar_name").unwrap_or_default().to_owned();
            let title = format!(
                "VLAN {} of {name} is bridged by no trunk adapter, and nobody else is in it",
                vlan_list(&mine)
            );
            let slot =
                row.field("slot_num").map_or_else(String::new, |slot| format!(" in slot {slot}"));
            out.push(
                Draft::new("net-vlan", system.host, name, Severity::Warning, title)
                    .see([row.at])
                    .see(trunks.rows.iter().take(SHOWN).map(|other| other.at))
                    .because(format!("The adapter{slot} is in VLAN {}; the trunk adapters of its virtual switch are in {}.", vlan_list(&mine), vlan_list(&trunks.vlans)))
                    .because("No other adapter of the machine is in that VLAN: what it sends reaches nobody.")
                    .effect(EFFECT)
                    .harm(HARM)
                    .weigh(0.8, 1.0),
            );
        }
    }
}
