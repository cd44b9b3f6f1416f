//! `disk-paths-disabled`: paths that somebody took out of use and that nobody will try again.

use std::collections::BTreeSet;

use super::{is_down, parents, paths};
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::Object;
use crate::advise::view::{Role, View};
use crate::capture::{DiskPath, PathState};
use crate::report::clean::is_word;

pub(super) fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let Some(list) = paths(view, system.host) else { return };
    let off: Vec<&DiskPath> =
        list.paths.iter().filter(|path| path.state == PathState::Disabled).collect();
    if off.is_empty() {
        return;
    }
    let spoken = view.spoken(system.host).to_owned();
    let disks: BTreeSet<&str> = off.iter().map(|path| path.disk.as_str()).collect();
    let over = parents(&off);
    let title = format!("{} of {} paths of {spoken} are disabled", off.len(), list.paths.len());
    let mut draft =
        Draft::new("disk-paths-disabled", system.host, spoken.clone(), Severity::Warning, title)
            .see(off.iter().take(8).map(|path| path.at))
            .because("A disabled path is not chosen and not tried, whatever hcheck_interval says: it stays so until somebody enables it, also over a restart of the server behind it.");
    if !over.is_empty() {
        let over: Vec<&str> = over.into_iter().collect();
        draft = draft.because(format!("They lead over {}.", over.join(", ")));
    }
    let left = |disk: &&&str| {
        let mut own = list.paths.iter().filter(|path| path.disk == ***disk);
        own.any(|path| path.state == PathState::Usable)
    };
    let (some, none): (Vec<&&str>, Vec<&&str>) = disks.iter().partition(left);
    if !none.is_empty() {
        let none: Vec<&str> = none.into_iter().copied().collect();
        draft = draft.because(format!("No path is left to {}.", none.join(", ")));
    } else if !some.is_empty() {
        draft = draft.because("What carries the disks now has nothing behind it: when that side is restarted, they are gone.");
    }
    if list.paths.iter().any(is_down) {
        draft = draft.because("Other paths are down: mend those first.");
    }
    let ways = ways(view, system.host, &off);
    let each = match ways.as_deref() {
        Some([(disk, parent)]) => {
            let command = |state: &str| format!("chpath -l {disk} -p {parent} -s {state}");
            let place = format!("as root on {spoken}");
            draft = draft.run(command("enable"), &place, command("disable"));
            String::new()
        }
        Some([(disk, parent), ..]) => {
            let list: Vec<&str> = disks.iter().copied().collect();
            format!("For each of {}: chpath -l {disk} -p {parent} -s enable. ", list.join(", "))
        }
        _ => "Enable each: chpath -l hdiskN -p PARENT -s enable on AIX, chpath -dev hdiskN -pdev PARENT -op enable on a VIOS. ".to_owned(),
    };
    out.push(
        draft
            .effect(format!("{each}The paths are used again; lspath shows them as Enabled."))
            .harm("If they were disabled because of errors on that side (timeout_policy=disable_path does it, too), these come back: see first that its fabric and its server are in order.")
            .weigh(0.9, 0.95),
    );
}

/// Disk and adapter of each path, where a client is known by name. A VIOS has another `chpath`, and multipath software of an
/// array its own command.
fn ways<'p>(view: &View<'_>, host: usize, off: &[&'p DiskPath]) -> Option<Vec<(&'p str, &'p str)>> {
    // Virtual SCSI has clients only.
    let over_scsi =
        |path: &&DiskPath| path.parent.as_ref().is_some_and(|parent| parent.starts_with("vscsi"));
    let client = view.role(host) == Role::Client || off.iter().all(over_scsi);
    let named = client && view.name(host).is_some();
    let way = |path: &&'p DiskPath| {
        let (disk, parent) = (path.disk.as_str(), path.parent.as_deref()?);
        let plain = path.status.eq_ignore_ascii_case("disabled");
        (plain && is_word(disk) && is_word(parent)).then_some((disk, parent))
    };
    let ways: Option<BTreeSet<(&str, &str)>> = off.iter().map(way).collect();
    ways.filter(|_| named).map(|ways| ways.into_iter().collect())
}
