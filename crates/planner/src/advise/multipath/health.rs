//! `disk-health-check`: failed paths that nobody tries again.

use super::paths;
use crate::advise::change::Change;
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::Object;
use crate::advise::view::View;
use crate::capture::{DiskPath, PathState};

pub(super) fn judge(view: &View<'_>, disk: &Object<'_>, out: &mut Out) {
    let Some(attribute) = view.attribute(disk.host, disk.device, "hcheck_interval") else { return };
    let Some(list) = paths(view, disk.host).filter(|_| attribute.value == "0") else { return };
    let own: Vec<&DiskPath> = list.paths.iter().filter(|path| path.disk == disk.device).collect();
    if own.len() < 2 {
        return;
    }
    // No health check brings a path back that is missing.
    let failed = |path: &&&DiskPath| path.state == PathState::Failed;
    let down: Vec<&&DiskPath> = own.iter().filter(failed).collect();
    let severity = if down.is_empty() { Severity::Warning } else { Severity::Critical };
    let title = match down.is_empty() {
        true => format!("paths of {} that fail stay failed", disk.device),
        false => format!("a failed path of {} is never tried again", disk.device),
    };
    let draft = Draft::new(
        "disk-health-check",
        disk.host,
        view.object(disk.host, disk.device),
        severity,
        title,
    )
    .see([attribute.at])
    .see(down.iter().map(|path| path.at))
    .because("hcheck_interval is 0: nobody tries a path that has failed.");
    let change = Change::new(view, disk.host, disk.device).set("hcheck_interval", "60");
    out.push(
        draft
            .change(&change)
            .effect(format!("Failed paths are tried every minute. Paths that are down now come back with chpath -l {} -p PARENT -s enable.", disk.device))
            .harm("One small command per path and minute.")
            .weigh(if down.is_empty() { 0.6 } else { 0.95 }, if down.is_empty() { 0.8 } else { 1.0 }),
    );
}
