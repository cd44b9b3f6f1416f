//! `disk-paths-degraded`: paths that are usable and are avoided, since commands on them failed.

use super::{common_of, is_down, paths};
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::Object;
use crate::advise::view::View;
use crate::capture::{DiskPath, PathState};

/// `Deg` in the column `path_status` of `lsmpio`.
fn is_degraded(path: &DiskPath) -> bool {
    let detail = path.detail.as_deref().unwrap_or("");
    path.state == PathState::Usable && detail.split(',').any(|word| word.trim() == "Deg")
}

pub(super) fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let Some(list) = paths(view, system.host) else { return };
    let all: Vec<&DiskPath> = list.paths.iter().filter(|path| is_degraded(path)).collect();
    // Paths that are down are told as such; what goes over the same way is degraded before it fails.
    if all.is_empty() || list.paths.iter().any(is_down) {
        return;
    }
    let spoken = view.spoken(system.host).to_owned();
    let title = format!("{} of {} paths of {spoken} are degraded", all.len(), list.paths.len());
    let draft = Draft::new("disk-paths-degraded", system.host, spoken, Severity::Warning, title)
        .see(all.iter().take(8).map(|path| path.at))
        .because("lsmpio calls a path degraded (Deg) on which commands have failed: it is avoided while another one is left, and tried again later.");
    let draft = match common_of(&list.paths, is_degraded) {
        Some(common) => draft.because(common),
        None => draft,
    };
    out.push(
        draft
            .effect("Look at what they have in common: lsmpio -S counts the errors by path, fcstat of the port twice shows its link, errpt what failed.")
            .harm("None by looking.")
            .weigh(0.85, 0.95),
    );
}
