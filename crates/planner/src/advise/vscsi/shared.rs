//! `vscsi-shared-backing`: one device behind the virtual SCSI adapters of two clients, each of which takes it for its own.

use std::collections::{BTreeMap, BTreeSet};

use crate::advise::disk::twins;
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::{Applicability, Object};
use crate::advise::view::{View, is_numbered};
use crate::capture::{At, Read, Report, ScsiMap, Vtd};

/// A client by its machine, as the adapter's location code has it, and its number there.
type Client<'a> = (Option<&'a str>, u32);

/// A target device of a client.
struct Use<'a> {
    client: Client<'a>,
    vios: usize,
    adapter: &'a ScsiMap,
    target: &'a Vtd,
}

/// What the disk's own attribute says of two users at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Policy {
    /// It was made for several.
    Shared,
    /// Nothing keeps a second one out, as between the two servers of one client.
    None,
    /// It keeps a second one out, or nothing is known.
    Other,
}

pub(super) fn applies<'a>(view: &View<'a>, system: &Object<'a>) -> Applicability {
    Applicability::where_that(view.of(system.host).filter_map(Report::lsmap_scsi).next().is_some())
}

/// `U9009.42A.78A1B2C` of a server adapter's place.
fn machine(adapter: &ScsiMap) -> Option<&str> {
    Some(adapter.physloc.as_ref()?.value.split_once("-V")?.0)
}

fn uses<'v, 'a>(view: &'v View<'a>) -> impl Iterator<Item = Use<'a>> + 'v {
    view.vhosts().iter().flat_map(|(vios, adapter)| {
        let disks = super::disks_behind(adapter);
        let id = adapter.client_partition.map_or(0, |read| read.value);
        // 0 is nobody, and this anybody.
        let of_one = id != 0 && id != 0xffff;
        let drive = |target: &Vtd| {
            let medium = |read: &Read<String>| read.value.contains("/VMLibrary/");
            ["vtopt", "vttape"].iter().any(|kind| target.name.starts_with(kind))
                || target.backing.as_ref().is_some_and(medium)
        };
        let own = adapter.devices.iter();
        own.filter(move |target| of_one && disks.contains(&target.at) && !drive(target))
            .map(move |target| Use { client: (machine(adapter), id), vios: *vios, adapter, target })
    })
}

fn backing<'a>(of: &Use<'a>) -> &'a str {
    of.target.backing.as_ref().map_or("", |read| &read.value)
}

fn policy(view: &View<'_>, host: usize, disk: &str) -> Policy {
    let set = view.attribute(host, disk, "reserve_policy").map(|set| set.value.as_str());
    match set {
        Some("PR_shared") => Policy::Shared,
        Some("no_reserve") => Policy::None,
        _ => Policy::Other,
    }
}

/// The uses of one thing, here or as the same LUN on another server.
fn of_thing<'u, 'a>(view: &View<'a>, all: &'u [Use<'a>], one: &Use<'a>) -> Vec<&'u Use<'a>> {
    let name = backing(one);
    let same = match is_numbered(name, "hdisk") {
        true => twins(view, (one.vios, name)),
        false => Vec::new(),
    };
    let is = |other: &&Use<'a>| {
        let place = (other.vios, backing(other));
        place == (one.vios, name) || same.iter().any(|(host, disk)| (*host, *disk) == place)
    };
    all.iter().filter(is).collect()
}

pub(super) fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let all: Vec<Use<'_>> = uses(view).collect();
    let mut told: BTreeSet<At> = BTreeSet::new();
    // Which clients have how many things together: those of a cluster have several.
    let mut together: BTreeMap<BTreeSet<Client<'_>>, Vec<Vec<&Use<'_>>>> = BTreeMap::new();
    for one in &all {
        let of = of_thing(view, &all, one);
        let clients: BTreeSet<Client<'_>> = of.iter().map(|one| one.client).collect();
        // What is on two servers is told by the first.
        let first = of.iter().map(|one| one.vios).min() == Some(system.host);
        if clients.len() < 2 || !first || told.contains(&one.target.at) {
            continue;
        }
        told.extend(of.iter().map(|one| one.target.at));
        together.entry(clients).or_default().push(of);
    }
    for (clients, things) in together {
        let several = things.len() > 1;
        for of in things {
            let Some(one) = of.first() else { continue };
            let name = backing(one).to_owned();
            let policies: Vec<Policy> =
                of.iter().map(|one| policy(view, one.vios, backing(one))).collect();
            if policies.contains(&Policy::Shared) {
                continue;
            }
            let open = policies.iter().all(|policy| *policy == Policy::None);
            let numbers: Vec<String> = clients.iter().map(|(_, id)| id.to_string()).collect();
            let numbers = numbers.join(" and ");
            let adapters: Vec<String> = of
                .iter()
                .map(|one| {
                    format!(
                        "{} ({}, partition {})",
                        view.object(one.vios, &one.adapter.name),
                        one.target.name,
                        one.client.1
                    )
                })
                .collect();
            let title = format!("{name} is given to two clients, partitions {numbers}");
            let draft = Draft::new(
                "vscsi-shared-backing",
                system.host,
                view.object(one.vios, &name),
                if open { Severity::Warning } else { Severity::Critical },
                title,
            )
            .see(of.iter().flat_map(|one| {
                let behind = one.target.backing.as_ref().map(|read| read.at);
                [Some(one.target.at), behind].into_iter().flatten()
            }))
            .because(format!("It stands behind {}.", adapters.join(" and ")))
            .because("Each client takes the disk for its own. Where both write, and no cluster software (PowerHA, Spectrum Scale, Oracle RAC, pureScale) orders that, the file systems on it are lost, without an error before.")
            .effect("Find out at once which client it is meant for, and that the other has not mounted it (lspv and lsvg -o on both). Then remove the wrong target device: rmvdev -vtd NAME on the server. Where it is a cluster's disk, set reserve_policy=no_reserve for it on each server, and on its clients, and leave it.")
            .harm("The client whose target device is removed loses the disk: take it out of use there first.")
            .weigh(if open { 0.7 } else { 0.9 }, 1.2);
            out.push(match open && several {
                true => draft.only_noted("The same clients have several disks together, and reserve_policy is no_reserve on each: that is what a cluster looks like."),
                false => draft,
            });
        }
    }
}
