//! `vscsi-error-recovery`: what a client's virtual SCSI adapter does when its server does not answer.

use std::collections::{BTreeMap, BTreeSet};

use crate::advise::change::Change;
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::{Applicability, Object};
use crate::advise::view::{Role, View};
use crate::capture::{Attribute, Report};
use crate::facts::id::VSCSI_PATH_TIMEOUT;
use crate::trace::number;

/// The adapters of a system over which a disk has one of several ways: only there is somewhere to fail over to. `None` where
/// no paths were listed.
fn redundant<'a>(view: &View<'a>, host: usize) -> Option<BTreeSet<&'a str>> {
    let list = view.of(host).filter_map(Report::disk_paths).last()?;
    let mut of_disk: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for path in &list.paths {
        let parent = path.parent.as_deref().filter(|parent| parent.starts_with("vscsi"));
        of_disk.entry(&path.disk).or_default().extend(parent);
    }
    Some(of_disk.into_values().filter(|adapters| adapters.len() > 1).flatten().collect())
}

pub(super) fn applies(view: &View<'_>, system: &Object<'_>) -> Applicability {
    let adapters = view.devices(system.host, "vscsi");
    if adapters.is_empty() || view.role(system.host) == Role::Vios {
        return Applicability::Elsewhere;
    }
    match redundant(view, system.host) {
        Some(_) => Applicability::Judged,
        None => Applicability::Lacking {
            why: "the paths to its disks were not captured".to_owned(),
            capture: format!("lspath on {}", view.spoken(system.host)),
        },
    }
}

pub(super) fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let redundant = redundant(view, system.host).unwrap_or_default();
    for adapter in view.devices(system.host, "vscsi") {
        if redundant.contains(adapter) {
            one(view, system.host, adapter, out);
        }
    }
}

fn one(view: &View<'_>, host: usize, adapter: &str, out: &mut Out) {
    let value = |name| view.attribute(host, adapter, name);
    let delayed =
        value("vscsi_err_recov").filter(|attribute: &&Attribute| attribute.value == "delayed_fail");
    let endless = value("vscsi_path_to").filter(|attribute| attribute.value == "0");
    let timeout = number(view.facts.number(VSCSI_PATH_TIMEOUT).low);
    let mut change = Change::new(view, host, adapter);
    let title = "a server that hangs stops the client's I/O".to_owned();
    let mut draft = Draft::new(
        "vscsi-error-recovery",
        host,
        view.object(host, adapter),
        Severity::Warning,
        title,
    );
    if let Some(delayed) = delayed {
        change = change.set("vscsi_err_recov", "fast_fail");
        draft = draft.see([delayed.at]).because("vscsi_err_recov is delayed_fail: when the server reports that its link to the storage is lost, commands still wait before another path is tried.");
    }
    if let Some(endless) = endless {
        change = change.set("vscsi_path_to", timeout.clone());
        draft = draft.see([endless.at]).because("vscsi_path_to is 0: nobody notices a server that takes commands and does not answer them; they wait without end, though another server has the disk.");
    }
    if draft.evidence().is_empty() {
        return;
    }
    out.push(
        draft
            .change(&change)
            .effect(format!("After {timeout} seconds without an answer the adapter asks once more, then its commands go over the other server. It takes effect when the adapter is configured again or the client is restarted."))
            .harm("Where a disk has one path only, commands fail where they would have waited: set it on clients with two servers.")
            .weigh(if endless.is_some() { 0.85 } else { 0.7 }, 0.9),
    );
}
