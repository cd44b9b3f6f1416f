//! `disk-algorithm`: a disk that uses one of its paths where another one like it uses all.
//!
//! `fail_over` is right where an array wants one path to be used, and where a disk is reserved; so it is told only beside a
//! disk of the same kind on the same system that is set otherwise.

use std::collections::BTreeSet;

use crate::advise::change::Change;
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::{Applicability, Object};
use crate::advise::view::View;
use crate::capture::{Attribute, PathState, Report};

const ALGORITHM: &str = "algorithm";
const ONE_PATH: &str = "fail_over";

pub(super) fn applies(view: &View<'_>, disk: &Object<'_>) -> Applicability {
    Applicability::where_that(view.attribute(disk.host, disk.device, ALGORITHM).is_some())
}

/// The Fibre Channel adapters that its usable paths lead over.
fn adapters<'a>(view: &View<'a>, host: usize, disk: &str) -> BTreeSet<&'a str> {
    let lists = view.of(host).filter_map(Report::disk_paths);
    let own = lists.flat_map(|list| &list.paths).filter(|path| path.disk == disk);
    let usable = own.filter(|path| path.state == PathState::Usable);
    usable
        .filter_map(|path| path.parent.as_deref())
        .filter(|parent| parent.starts_with("fscsi"))
        .collect()
}

/// Another disk of the same kind and array on this system that uses all of its paths.
fn sister<'a>(view: &View<'a>, disk: &Object<'_>) -> Option<(&'a str, &'a Attribute)> {
    let of = |device: &str, name: &str| {
        view.attribute(disk.host, device, name).map(|attribute| attribute.value.as_str())
    };
    let alike = |other: &str, name: &str| match (of(other, name), of(disk.device, name)) {
        (Some(one), Some(two)) => one == two,
        _ => name != "PCM",
    };
    let devices = view.devices(disk.host, "hdisk").into_iter();
    let mut others = devices
        .filter(|other| *other != disk.device && alike(other, "PCM") && alike(other, "node_name"));
    others.find_map(|other| {
        let attribute = view.attribute(disk.host, other, ALGORITHM)?;
        (attribute.value != ONE_PATH).then_some((other, attribute))
    })
}

pub(super) fn judge(view: &View<'_>, disk: &Object<'_>, out: &mut Out) {
    let Some(own) = view.attribute(disk.host, disk.device, ALGORITHM) else { return };
    let shared = view
        .attribute(disk.host, disk.device, "reserve_policy")
        .filter(|policy| matches!(policy.value.as_str(), "no_reserve" | "PR_shared"));
    let Some(policy) = shared.filter(|_| own.value == ONE_PATH) else { return };
    let over = adapters(view, disk.host, disk.device);
    let Some((other, wanted)) = sister(view, disk).filter(|_| over.len() > 1) else { return };
    let names: Vec<&str> = over.into_iter().collect();
    let change = Change::new(view, disk.host, disk.device).set(ALGORITHM, wanted.value.as_str());
    let title = format!("{} uses one of its paths, {other} beside it uses all", disk.device);
    out.push(
        Draft::new("disk-algorithm", disk.host, disk.label.clone(), Severity::Warning, title)
            .see([own.at, wanted.at, policy.at])
            .because(format!("algorithm is {ONE_PATH}: of the paths over {} one carries everything and the others wait. {other}, of the same kind, has {}.", names.join(" and "), wanted.value))
            .change(&change)
            .effect("Its I/O is spread over all paths that the array calls optimized. It takes effect when the disk is configured again, or at the next start.")
            .harm("An array that has a preferred path for the disk and no ALUA would move it to and fro: use what its vendor names.")
            .weigh(0.7, 0.8),
    );
}
