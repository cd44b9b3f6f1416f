//! Virtual SCSI. `vscsi-elements`: how many disks one client adapter carries at their queue depths. What a server does not
//! give any more, and a client that would wait for it, stand in [`targets`] and [`recovery`].
//!
//! An adapter has 512 command elements, keeps two for itself, and gives each disk its queue depth and three more, so
//! that INT(510 ÷ (depth + 3)) disks of one depth fit. The numbers are facts of the data files, there marked
//! unconfirmed.

mod recovery;
mod shared;
pub(super) mod targets;

use std::collections::BTreeMap;

use super::change::Change;
use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Rule, always};
use super::view::{Role, Value, View, count, rounded};
use crate::capture::{At, Report, ScsiMap, Vtd};
use crate::facts::id::{VSCSI_ELEMENTS, VSCSI_ELEMENTS_PER_DISK, VSCSI_ELEMENTS_RESERVED};
use crate::trace::{Figure, Term, number};

const RULE: &str = "vscsi-elements";

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: RULE,
        about: "more disks on a virtual SCSI adapter than its command elements carry",
        on: Kind::Vhost,
        evidence: "lsmap -all on the VIOS, and lsattr -El hdiskN of the client's disks",
        weight: 1.0,
        applies: always,
        judge: |view, vhost, out| {
            if let Some((host, adapter)) = view.vhosts().get(vhost.index) {
                judge(view, *host, adapter, out);
            }
        },
    },
    Rule {
        name: "vscsi-target-down",
        about: "a virtual target device that is not available: its client has lost the disk over this server",
        on: Kind::Vhost,
        evidence: "lsmap -all on each VIOS",
        weight: 1.25,
        applies: |view, vhost| {
            let told = |target: &Vtd| target.status.is_some();
            let adapter = view.vhosts().get(vhost.index);
            Applicability::where_that(
                adapter.is_some_and(|(_, adapter)| adapter.devices.iter().any(told)),
            )
        },
        judge: targets::judge,
    },
    Rule {
        name: "vscsi-shared-backing",
        about: "one disk is given to two clients",
        on: Kind::System,
        evidence: "lsmap -all, and lsdev -dev hdiskN -attr of the mapped disks, on each VIOS",
        weight: 1.2,
        applies: shared::applies,
        judge: shared::judge,
    },
    Rule {
        name: "vscsi-error-recovery",
        about: "a client with two servers waits without end for one that hangs",
        on: Kind::System,
        evidence: "lspath, and lsattr -El vscsiN of each virtual SCSI adapter, on each client",
        weight: 0.9,
        applies: recovery::applies,
        judge: recovery::judge,
    },
];

/// Every virtual SCSI server adapter, as it was mapped last.
pub(super) fn vhosts<'a>(view: &View<'a>) -> Vec<(usize, &'a ScsiMap)> {
    let mut adapters: BTreeMap<(usize, &str), &ScsiMap> = BTreeMap::new();
    for (host, report) in view.reports() {
        let Report::LsmapScsi(lsmap) = report else { continue };
        adapters
            .extend(lsmap.adapters.iter().map(|adapter| ((host, adapter.name.as_str()), adapter)));
    }
    adapters.into_iter().map(|((host, _), adapter)| (host, adapter)).collect()
}

/// The depths of a client's disks, greatest first.
fn depths(view: &View<'_>, host: usize) -> Vec<Value> {
    let disks = view.devices(host, "hdisk").into_iter();
    let mut depths: Vec<Value> =
        disks.filter_map(|disk| view.number(host, disk, "queue_depth")).collect();
    depths.sort_by(|one, two| two.0.total_cmp(&one.0).then(one.1.cmp(&two.1)));
    depths
}

/// The client of an adapter, and whether it may be another one: without its machine's serial number only its own number
/// speaks for it, where no other system beside the server has that number.
fn client(view: &View<'_>, vios: usize, adapter: &ScsiMap) -> Option<(usize, bool)> {
    let named = view.model.named_at(adapter.at);
    if let Some(host) = named.filter(|host| !depths(view, *host).is_empty()) {
        return Some((host, false));
    }
    let id = adapter.client_partition?.value;
    let beside = view.folders(vios);
    let fits = |host: &usize| {
        let system = view.system(*host);
        view.role(*host) != Role::Vios
            && system.is_some_and(|of| of.partition_id == Some(id) && of.machine.is_none())
            && !view.folders(*host).is_disjoint(&beside)
    };
    let mut all = view.hosts().filter(fits);
    let only = all.next().filter(|host| !depths(view, *host).is_empty())?;
    all.next().is_none().then_some((only, true))
}

/// The lines of an adapter's targets that are disks.
pub(super) fn disks_behind(adapter: &ScsiMap) -> Vec<At> {
    let is_disk = |name: &str| {
        !["cd", "rmt", "usb"].iter().any(|other| name.starts_with(other)) && !name.contains(".iso")
    };
    adapter
        .devices
        .iter()
        .filter(|device| device.backing.as_ref().is_some_and(|read| is_disk(&read.value)))
        .map(|device| device.at)
        .collect()
}

/// What there is, what the disks need, how many fit, and the depth at which all fit.
fn element_figures(view: &View<'_>, disks: Term, average: Term) -> [Figure; 4] {
    let (total, reserved, each) = (
        view.facts.term(VSCSI_ELEMENTS, "elements"),
        view.facts.term(VSCSI_ELEMENTS_RESERVED, "reserved"),
        view.facts.term(VSCSI_ELEMENTS_PER_DISK, "per disk"),
    );
    let needed = Figure::new(
        "elements needed",
        "elements",
        "reserved + disks × (queue_depth + per disk)",
        vec![reserved.clone(), disks.clone(), average.clone(), each.clone()],
    );
    let fits = Figure::new(
        "disks that fit",
        "disks",
        "round_down((elements − reserved) ÷ (queue_depth + per disk), 1)",
        vec![total.clone(), reserved.clone(), average, each.clone()],
    );
    let depth = Figure::new(
        "depth at which all fit",
        "commands",
        "round_down((elements − reserved) ÷ disks − per disk, 1)",
        vec![total.clone(), reserved, disks, each],
    );
    [Figure::plain(total), needed, fits, depth]
}

fn judge(view: &View<'_>, host: usize, adapter: &ScsiMap, out: &mut Out) {
    let disks = disks_behind(adapter);
    // Fewer disks than this fit even at the greatest depth that a client's disk has by default.
    if disks.len() < 2 {
        return;
    }
    let Some((client, unsure)) = client(view, host, adapter) else {
        if disks.len() >= 10 {
            out.lack(
                "",
                format!(
                    "lsattr -El hdiskN of the disks of the client behind {} on {}",
                    adapter.name,
                    view.spoken(host)
                ),
            );
        }
        return;
    };
    let depths = depths(view, client);
    // The disks whose depth was captured stand for the others; the deepest are counted where more were captured.
    let known = depths.len().min(disks.len());
    let Some((sum, at)) =
        depths.iter().take(known).copied().reduce(|one, two| (one.0 + two.0, one.1))
    else {
        return;
    };
    let average = Term::read("queue_depth", sum / count(known), "commands", at);
    let disk_count = Term::read("disks", count(disks.len()), "disks", adapter.at);
    let [total, needed, fits, depth] = element_figures(view, disk_count, average);
    if needed.low <= total.low {
        return;
    }
    let draft = Draft::new(RULE, host, view.object(host, &adapter.name), Severity::Warning, format!("{} disks need more command elements than the adapter has", disks.len()))
        .see([adapter.at])
        .see(disks.iter().copied())
        .see(depths.iter().take(known).map(|(_, at)| *at))
        .because(format!("The adapter has {} command elements; the disks of the client need {} at their queue depth. Disks beyond that are not configured, or wait.", number(total.low), number(needed.low)))
        .figure(needed)
        .figure(total)
        .figure(fits)
        .figure(depth.clone())
        .harm("A lower depth lets each disk have fewer commands at a time. A second virtual SCSI adapter for half of the disks keeps the depth instead.")
        .weigh(if unsure { 0.7 } else { 0.85 }, 1.0);
    let draft = lower_depth(view, client, &depths, &depth, draft);
    out.push(match unsure {
        true => draft
            .because(format!(
                "{} has the number that the mapping names, and no other system here has; the machine it is on was not captured.",
                view.spoken(client)
            ))
            .in_doubt(format!("whether it is on this machine: uname -uM on {}", view.spoken(client))),
        false => draft,
    });
}

/// The command that lowers the depth of the deepest disk to one at which all fit.
fn lower_depth(
    view: &View<'_>,
    client: usize,
    depths: &[Value],
    depth: &Figure,
    draft: Draft,
) -> Draft {
    let deepest = view.devices(client, "hdisk").into_iter().find(|disk| {
        view.number(client, disk, "queue_depth").map(|(value, _)| value)
            == depths.first().map(|(value, _)| *value)
    });
    match (deepest, rounded(depth.low).filter(|depth| *depth >= 1)) {
        (Some(disk), Some(fit)) => {
            let change = Change::new(view, client, disk).lowering().set("queue_depth", fit.to_string());
            draft.change(&change).effect("With that depth on every disk of the adapter all of them fit; run it for each. Or add a second virtual SCSI adapter and move half of the disks.")
        }
        _ => draft.effect("No depth makes that many disks fit. Next step: add virtual SCSI adapters and spread the disks over them."),
    }
}
