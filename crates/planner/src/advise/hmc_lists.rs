//! What lists of an HMC say of both sides of a thing: the trunk adapters of two VIOS, a client's adapter and the server
//! adapter that it names, the weight of one VIOS and of the other.

use std::collections::{BTreeMap, BTreeSet};

use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::sea::vlan_list;
use super::view::{Role, View};
use crate::capture::{HmcList, HmcRow, Report};

const PARTNER: &str = "client-adapter-partner";

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "sea-priority",
        about: "trunk adapters of two VIOS on one virtual switch have the same priority",
        on: Kind::System,
        evidence: "lshwres -r virtualio --rsubtype eth --level lpar -m MACHINE on the HMC",
        weight: 1.0,
        applies: |view, system| where_listed(view, system.host, &TRUNK),
        judge: priorities,
    },
    Rule {
        name: "sea-vlan",
        about: "the trunk adapters of one VIOS carry a VLAN that those of the other do not",
        on: Kind::System,
        evidence: "lshwres -r virtualio --rsubtype eth --level lpar -m MACHINE on the HMC",
        weight: 1.0,
        applies: |view, system| where_listed(view, system.host, &TRUNK),
        judge: vlans,
    },
    Rule {
        name: PARTNER,
        about: "a client's virtual adapter names a server adapter that is not there, or that is another client's",
        on: Kind::System,
        evidence: "lshwres -r virtualio --rsubtype fc --level lpar (and scsi) of the machine on the HMC",
        weight: 1.0,
        applies: |view, system| where_listed(view, system.host, &SERVED),
        judge: partners,
    },
    Rule {
        name: "vios-cpu",
        about: "a VIOS may borrow no processors where the other one may",
        on: Kind::System,
        evidence: "lshwres -r proc --level lpar -m MACHINE on the HMC",
        weight: 0.9,
        applies: |view, system| where_listed(view, system.host, &["lpar_name"]),
        judge: weights,
    },
];

const TRUNK: [&str; 4] = ["lpar_name", "is_trunk", "trunk_priority", "port_vlan_id"];
const SERVED: [&str; 3] = ["adapter_type", "remote_slot_num", "slot_num"];

/// The newest rows with these fields, for each machine and kind of resource; of lists that their command has not cut.
fn newest<'a>(
    view: &View<'a>,
    host: usize,
    fields: &[&str],
) -> BTreeMap<(Option<&'a str>, String), Vec<&'a HmcRow>> {
    let whole = |list: &&HmcList| {
        let cut = |typed: &str| ["--filter", "|"].iter().any(|word| typed.contains(word));
        list.head.incomplete.is_none()
            && !list.head.command.as_ref().is_some_and(|typed| cut(&typed.value))
    };
    let mut found = BTreeMap::new();
    for list in view.of(host).filter_map(Report::hmc_list).filter(whole) {
        let has = |row: &&HmcRow| fields.iter().all(|name| row.field(name).is_some());
        if list.rows.iter().any(|row| has(&row)) {
            let machine = list.system.as_ref().map(|read| read.value.as_str());
            found.insert((machine, list.resource()), list.rows.iter().collect());
        }
    }
    found
}

fn where_listed(view: &View<'_>, host: usize, fields: &[&str]) -> Applicability {
    Applicability::where_that(!newest(view, host, fields).is_empty())
}

/// The VLANs of a row: its own, and those that it tags for.
fn of_row(row: &HmcRow) -> BTreeSet<u16> {
    let fields = ["port_vlan_id", "addl_vlan_ids"].into_iter().filter_map(|name| row.field(name));
    fields.flat_map(|text| text.split(',')).filter_map(|text| text.trim().parse().ok()).collect()
}

fn switch(row: &HmcRow) -> &str {
    row.field("vswitch").unwrap_or_default()
}

fn is_trunk(row: &HmcRow) -> bool {
    row.field("is_trunk") == Some("1")
}

fn name(row: &HmcRow) -> &str {
    row.field("lpar_name").unwrap_or_default()
}

/// Whether the bridges themselves were captured in pairs, which tell more.
fn bridges_tell(view: &View<'_>) -> bool {
    !view.pairs().is_empty()
}

fn priorities(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    if bridges_tell(view) {
        return;
    }
    for rows in newest(view, system.host, &TRUNK).into_values() {
        let mut first: BTreeMap<(&str, &str, u16), &HmcRow> = BTreeMap::new();
        let mut told = BTreeSet::new();
        let trunks = rows.into_iter().filter(|row| is_trunk(row));
        let each = trunks.flat_map(|row| of_row(row).into_iter().map(move |vlan| (vlan, row)));
        for (vlan, two) in each {
            let Some(priority) = two.field("trunk_priority") else { continue };
            let one = *first.entry((switch(two), priority, vlan)).or_insert(two);
            if name(one) == name(two) || !told.insert((name(one), name(two), switch(one))) {
                continue;
            }
            let common: BTreeSet<u16> = of_row(one).intersection(&of_row(two)).copied().collect();
            out.push(
                Draft::new(
                    "sea-priority",
                    system.host,
                    format!("{} and {}", name(one), name(two)),
                    Severity::Critical,
                    format!("trunk adapters of both have priority {priority}"),
                )
                .see([one.at, two.at])
                .because(format!("Both are on the virtual switch {} in VLAN {}.", switch(one), vlan_list(&common)))
                .because("The lower trunk priority is primary. With the same one on both nothing decides, and both may bridge.")
                .effect("Give the trunk adapters of one VIOS another priority (1 for the primary, 2 for the backup) on the HMC, in the profile, too.")
                .harm("The adapter has to be removed and added, or the VIOS restarted, for its priority to change: do it on the backup.")
                .weigh(0.9, 1.0),
            );
        }
    }
}

fn vlans(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    if bridges_tell(view) {
        return;
    }
    for rows in newest(view, system.host, &TRUNK).into_values() {
        let mut by_switch: BTreeMap<&str, Vec<&HmcRow>> = BTreeMap::new();
        for row in rows {
            by_switch.entry(switch(row)).or_default().push(row);
        }
        for rows in by_switch.into_values() {
            let mut of: BTreeMap<&str, (BTreeSet<u16>, &HmcRow)> = BTreeMap::new();
            for row in rows.iter().filter(|row| is_trunk(row)) {
                let entry = of.entry(name(row)).or_insert((BTreeSet::new(), *row));
                entry.0.extend(of_row(row));
            }
            let mut own = of.iter();
            let (Some(one), Some(two), None) = (own.next(), own.next(), own.next()) else {
                continue;
            };
            // Two that share no VLAN are no pair.
            if one.1.0.is_disjoint(&two.1.0) {
                continue;
            }
            for (has, lacks) in [(one, two), (two, one)] {
                let missing: BTreeSet<u16> = has.1.0.difference(&lacks.1.0).copied().collect();
                let clients: Vec<&&HmcRow> = rows
                    .iter()
                    .filter(|row| !is_trunk(row) && !of.contains_key(name(row)))
                    .filter(|row| !of_row(row).is_disjoint(&missing))
                    .collect();
                if missing.is_empty() {
                    continue;
                }
                let names: BTreeSet<&str> = clients.iter().map(|row| name(row)).collect();
                let list = vlan_list(&missing);
                let (has, lacks) = ((*has.0, has.1.1), (*lacks.0, lacks.1.1));
                let title = format!("VLAN {list} is on {} and not on {}", has.0, lacks.0);
                let object = format!("{} and {}", has.0, lacks.0);
                let mut draft =
                    Draft::new("sea-vlan", system.host, object, Severity::Warning, title)
                        .see([has.1.at, lacks.1.at])
                        .see(clients.iter().take(6).map(|row| row.at));
                draft = match names.is_empty() {
                    true => draft.only_noted("No client of the list is in it."),
                    false => draft.because(format!(
                        "{} lose their network when {} takes over.",
                        names.iter().copied().collect::<Vec<_>>().join(", "),
                        lacks.0
                    )),
                };
                out.push(
                    draft
                        .effect(format!("Add the VLAN to a trunk adapter of {} on the HMC (chhwres -r virtualio --rsubtype eth, and the profile), and to its switch ports.", lacks.0))
                        .harm("A VLAN that is added to a trunk reaches every client of it.")
                        .weigh(0.9, 1.0),
                );
            }
        }
    }
}

/// A client's adapter whose server adapter is not among those of its VIOS, or is made for another.
fn partners(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    for rows in newest(view, system.host, &SERVED).into_values() {
        let kind = |row: &HmcRow, kind: &str| row.field("adapter_type") == Some(kind);
        let is_of = |row: &HmcRow, of: &HmcRow| {
            let same =
                |own: &str, far: &str| row.field(own).is_some() && row.field(own) == of.field(far);
            same("lpar_name", "remote_lpar_name") || same("lpar_id", "remote_lpar_id")
        };
        let mut servers: BTreeMap<(&str, &str), BTreeMap<&str, &HmcRow>> = BTreeMap::new();
        for row in rows.iter().copied().filter(|row| kind(row, "server")) {
            let Some(slot) = row.field("slot_num") else { continue };
            for own in ["lpar_name", "lpar_id"] {
                if let Some(of) = row.field(own) {
                    servers.entry((own, of)).or_default().insert(slot, row);
                }
            }
        }
        for client in rows.iter().filter(|row| kind(row, "client")) {
            let Some(slot) = client.field("remote_slot_num").filter(|slot| *slot != "any") else {
                continue;
            };
            // Server adapters of that VIOS may not be in the list at all.
            let of_it = |own: &'static str, far: &str| servers.get(&(own, client.field(far)?));
            let of_it =
                of_it("lpar_name", "remote_lpar_name").or(of_it("lpar_id", "remote_lpar_id"));
            let Some(servers) = of_it else { continue };
            let Some(first) = servers.values().next() else { continue };
            let there = servers.get(slot);
            let points_back = |row: &HmcRow| {
                row.field("remote_slot_num")
                    .is_none_or(|slot| slot == "any" || Some(slot) == client.field("slot_num"))
                    && (is_of(client, row)
                        || row
                            .field("remote_lpar_name")
                            .or(row.field("remote_lpar_id"))
                            .is_none_or(|of| of == "any"))
            };
            let far = client
                .field("remote_lpar_name")
                .or(client.field("remote_lpar_id"))
                .unwrap_or("the VIOS");
            let own = client.field("slot_num").unwrap_or_default();
            let who = client.field("lpar_name").or(client.field("lpar_id")).unwrap_or_default();
            let (title, at) = match there {
                None => (
                    format!(
                        "the adapter in slot {own} of {who} names slot {slot} of {far}, where no server adapter is"
                    ),
                    first.at,
                ),
                Some(row) if !points_back(row) => (
                    format!(
                        "the adapter in slot {own} of {who} names slot {slot} of {far}, which is made for another"
                    ),
                    row.at,
                ),
                Some(_) => continue,
            };
            out.push(
                Draft::new(PARTNER, system.host, format!("slot {own} of {who}"), Severity::Warning, title)
                    .see([client.at, at])
                    .because("The two sides of a virtual adapter name each other's slots; where they do not, the client has nothing behind this one.")
                    .effect(format!("Make the server adapter on {far} (chhwres -r virtualio --rsubtype fc or scsi, and the profile) with slot {slot} for slot {own} of {who}, or set the client's adapter to the one that is meant, and map it there."))
                    .harm("The client's adapter has to be removed and added for its partner to change: only one that carries nothing.")
                    .weigh(0.85, 1.0),
            );
        }
    }
}

/// The names of the VIOS, as lists and captures tell them.
fn servers<'v>(view: &'v View<'_>, host: usize) -> BTreeSet<&'v str> {
    let rows = view.of(host).filter_map(Report::hmc_list).flat_map(|list| &list.rows);
    let mut names = BTreeSet::new();
    for row in rows {
        let own = row.field("lpar_name").or(row.field("name"));
        if row.field("lpar_env") == Some("vioserver")
            || row.field("adapter_type") == Some("server")
            || is_trunk(row)
        {
            names.extend(own);
        }
        names.extend(row.field("vios_lpar_name"));
        names.extend(
            row.field("remote_lpar_name").filter(|_| row.field("adapter_type") == Some("client")),
        );
    }
    let captured = view.hosts().filter(|host| view.role(*host) == Role::Vios);
    names.extend(captured.filter_map(|host| view.name(host)));
    names
}

/// A VIOS that may borrow nothing: capped, or uncapped with a weight of 0, where the other one may.
fn weights(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let known = servers(view, system.host);
    let either = |row: &HmcRow, names: [&'static str; 2]| {
        names.into_iter().find_map(|name| row.field(name).map(str::to_owned))
    };
    for rows in newest(view, system.host, &["lpar_name"]).into_values() {
        // What is capped borrows nothing, whatever its weight.
        let weight = |row: &HmcRow| {
            let mode = either(row, ["curr_sharing_mode", "sharing_mode"])?;
            let weight = either(row, ["curr_uncap_weight", "uncap_weight"]);
            let weight = weight.and_then(|text| text.parse::<u32>().ok());
            match mode.as_str() {
                "uncap" => weight,
                "cap" => Some(0),
                _ => None,
            }
        };
        let is_vios = |row: &HmcRow| {
            known.contains(name(row)) || name(row).to_ascii_lowercase().contains("vio")
        };
        let own: Vec<(&HmcRow, u32)> = rows
            .into_iter()
            .filter(|row| is_vios(row))
            .filter_map(|row| Some((row, weight(row)?)))
            .collect();
        let Some((other, more)) = own.iter().find(|(_, weight)| *weight > 0) else { continue };
        for (row, _) in own.iter().filter(|(_, weight)| *weight == 0) {
            let capped =
                either(row, ["curr_sharing_mode", "sharing_mode"]).as_deref() == Some("cap");
            let title = match capped {
                true => format!("{} is capped", name(row)),
                false => format!("{} is uncapped with a weight of 0", name(row)),
            };
            out.push(
                Draft::new("vios-cpu", system.host, name(row).to_owned(), Severity::Warning, title)
                    .see([row.at, other.at])
                    .because(format!("{} is uncapped with {more}. As it is, {} gets nothing beyond its entitlement, whatever the pool has left.", name(other), name(row)))
                    .effect(format!("Give it what the other has: chhwres -r proc -m MACHINE -o s -p {} -a \"sharing_mode=uncap,uncap_weight={more}\" on the HMC, and the same in the profile.", name(row)))
                    .harm("It may take processors that other partitions would borrow.")
                    .weigh(0.8, 0.9),
            );
        }
    }
}
