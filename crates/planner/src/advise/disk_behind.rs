//! A client's disk over virtual SCSI and the disk behind it: which is which, and whose queue is deeper.

use std::collections::BTreeSet;

use super::change::Change;
use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::Object;
use super::ssp_luns;
use super::thresholds::fact;
use super::view::{Role, View};
use crate::capture::Report;
use crate::facts::id::{VSCSI_ELEMENTS, VSCSI_ELEMENTS_PER_DISK, VSCSI_ELEMENTS_RESERVED};
use crate::trace::{Figure, Term, number};

/// `disk-depth-chain`: a client's disk over virtual SCSI with a deeper queue than the disk behind it.
pub(super) fn depth_chain(view: &View<'_>, backing: &Object<'_>, out: &mut Out) {
    const RULE: &str = "disk-depth-chain";
    let (vios, disk) = (backing.host, backing.device);
    let Some((depth, at)) = view.number(vios, disk, "queue_depth") else {
        return out.lack("queue_depth", view.show_attributes(vios, disk));
    };
    let clients: Vec<usize> = view.hosts().filter(|host| view.role(*host) != Role::Vios).collect();
    let mut found = false;
    for client in &clients {
        for of_client in view.devices(*client, "hdisk") {
            let Some((client_depth, client_at)) = view.number(*client, of_client, "queue_depth")
            else {
                continue;
            };
            let Some(sure) = same_disk(view, (vios, disk), (*client, of_client)) else {
                continue;
            };
            found = true;
            if client_depth <= depth {
                continue;
            }
            let terms = vec![
                Term::read("client's depth", client_depth, "commands", client_at),
                Term::read("backing depth", depth, "commands", at),
            ];
            let change =
                Change::new(view, vios, disk).set("queue_depth", format!("{client_depth:.0}"));
            out.push(
                Draft::new(RULE, vios, backing.label.clone(), Severity::Warning, format!("{of_client} on {} has a deeper queue than the disk behind it", view.spoken(*client)))
                    .see([client_at, at])
                    .because("Over virtual SCSI the client's queue_depth should not be larger than that of the backing disk: what exceeds it waits in the VIOS, where no client's iostat shows it.")
                    .figure(Figure::new("commands that wait in the VIOS, at most", "commands", "client's depth − backing depth", terms))
                    .change(&change)
                    .effect("Both ends take the same number of commands. It takes effect when the VIOS disk is configured again.")
                    .harm("More commands reach the storage at a time. Where it is busy already, lower the client's depth instead.")
                    .weigh(sure, 1.0),
            );
        }
    }
    if !found {
        out.lack(
            "the client's disk that stands for it",
            "lsattr -El hdiskN of each disk (pvid and queue_depth) on the client",
        );
    }
}

/// The disks that stand behind virtual SCSI targets.
pub(super) fn backing_disks<'a>(view: &View<'a>) -> BTreeSet<(usize, &'a str)> {
    let mut disks = BTreeSet::new();
    for (host, report) in view.reports() {
        let Report::LsmapScsi(lsmap) = report else { continue };
        let targets = lsmap.adapters.iter().flat_map(|adapter| &adapter.devices);
        let backing = targets.filter_map(|target| Some(target.backing.as_ref()?.value.as_str()));
        disks.extend(
            backing.filter(|name| super::view::is_numbered(name, "hdisk")).map(|name| (host, name)),
        );
    }
    disks
}

/// How sure it is that a client's disk is the one behind it; `None` when it is not or cannot be told.
fn same_disk(view: &View<'_>, vios: (usize, &str), client: (usize, &str)) -> Option<f64> {
    let pvid = |(host, disk)| {
        let value = view.attribute(host, disk, "pvid")?.value.trim_end_matches('0').to_owned();
        (!value.is_empty() && value != "none").then_some(value)
    };
    if let (Some(one), Some(two)) = (pvid(vios), pvid(client)) {
        return (one == two).then_some(0.92);
    }
    let lun = lun_of(view, client)?;
    let adapters = view.vhosts().iter().filter(|(host, _)| *host == vios.0);
    let of_client =
        adapters.filter(|(_, adapter)| view.model.named_at(adapter.at) == Some(client.0));
    let mut targets = of_client.flat_map(|(_, adapter)| &adapter.devices);
    let same = |target: &crate::capture::Vtd| {
        let backing = target.backing.as_ref().is_some_and(|read| read.value == vios.1);
        backing && target.lun.is_some_and(|read| read.value == lun)
    };
    targets.any(same).then_some(0.95)
}

/// The LUN of a virtual disk, by its location code: `U9009.42A.78A1B2C-V5-C2-T1-L8100000000000000`.
fn lun_of(view: &View<'_>, (host, disk): (usize, &str)) -> Option<u64> {
    let lists = view.of(host).filter_map(Report::lscfg);
    let device =
        lists.flat_map(|list| &list.devices).filter(|device| device.name == disk).last()?;
    let (place, lun) = device.location.as_deref()?.rsplit_once("-L")?;
    place.contains("-V").then_some(())?;
    u64::from_str_radix(lun, 16).ok()
}

/// The client's disk in front of a backing device, where it is known to be the one.
pub(super) fn in_front_of<'a>(
    view: &View<'a>,
    backing: (usize, &str),
    client: usize,
) -> Option<&'a str> {
    let mut disks = view.devices(client, "hdisk").into_iter();
    disks.find(|disk| same_disk(view, backing, (client, disk)).is_some())
}

/// What has to be known before a virtual SCSI disk is given this depth: the disk behind it must take as many, and the
/// adapter must have the elements. `None` where that is known, and for disks of another kind.
pub(super) fn over_scsi(
    view: &View<'_>,
    (client, disk): (usize, &str),
    depth: f64,
) -> Option<Vec<String>> {
    let module = view.attribute(client, disk, "PCM");
    module.filter(|module| module.value.contains("vscsi"))?;
    let behind = view
        .backing()
        .iter()
        .find(|(vios, backing)| in_front_of(view, (*vios, backing), client) == Some(disk));
    let deep = behind
        .and_then(|(vios, backing)| view.number(*vios, backing, "queue_depth"))
        .is_some_and(|(backing, _)| backing >= depth);
    let adapter = behind.and_then(|(vios, backing)| {
        view.vhosts().iter().find(|(host, adapter)| {
            let of = |target: &crate::capture::Vtd| {
                target.backing.as_ref().is_some_and(|read| read.value == *backing)
            };
            host == vios && adapter.devices.iter().any(of)
        })
    });
    let each = depth + fact(view.facts, VSCSI_ELEMENTS_PER_DISK);
    let total = fact(view.facts, VSCSI_ELEMENTS) - fact(view.facts, VSCSI_ELEMENTS_RESERVED);
    let fits = adapter
        .is_some_and(|(_, adapter)| super::view::count(adapter.devices.len()) * each <= total);
    (!(deep && fits)).then(|| {
        vec![
            format!(
                "the depth of the disk behind it, which must be {} at least: lsmap -all and lsdev -dev hdiskN -attr queue_depth on the VIOS",
                number(depth)
            ),
            format!(
                "how many disks the adapter carries: at that depth {} fit",
                number((total / each).floor())
            ),
        ]
    })
}

/// What has to be known before a disk of a VIOS is given a depth: that of the client's disk in front of it, which it has to
/// reach, and whether there is one. `None` where that is known, and for disks that are given to nobody.
pub(super) fn under_scsi(view: &View<'_>, (vios, disk): (usize, &str)) -> Option<Vec<String>> {
    if view.role(vios) != Role::Vios {
        return None;
    }
    if !view.backs(vios, disk) {
        let mapped = view.of(vios).any(|report| report.lsmap_scsi().is_some());
        let of_pool = ssp_luns::on_host(view, vios)
            .is_some_and(|list| list.luns.iter().any(|lun| lun.name == disk));
        let on = view.spoken(vios);
        let what = format!(
            "whether {disk} is given to a client, whose depth it has to reach: lsmap -all on {on}"
        );
        return (!mapped && !of_pool).then(|| vec![what]);
    }
    let known = view.clients_of(vios).into_iter().any(|client| {
        let front = in_front_of(view, (vios, disk), client);
        front.is_some_and(|front| view.number(client, front, "queue_depth").is_some())
    });
    (!known).then(|| {
        vec![
            "the depth of the client's disk in front of it, which it has to reach: lscfg -vpl hdiskN and lsattr -El hdiskN on the client"
                .to_owned(),
        ]
    })
}
