//! `disk-paths-failed`, of paths that nobody lists any more: an earlier capture has them in use, the last one has not.

use std::collections::{BTreeMap, BTreeSet};

use super::lists::whole_lists;
use crate::advise::finding::{Draft, Severity};
use crate::advise::measure::is_earlier;
use crate::advise::out::Out;
use crate::advise::rule::Object;
use crate::advise::view::View;
use crate::capture::{DiskPath, DiskPaths, PathState};

/// A path as two lists can tell it: its disk, its adapter and where it leads.
type Way<'a> = (&'a str, &'a str, Option<&'a str>);

fn by_disk(list: &DiskPaths) -> BTreeMap<&str, Vec<&DiskPath>> {
    let mut of: BTreeMap<&str, Vec<&DiskPath>> = BTreeMap::new();
    for path in list.paths.iter().filter(|path| path.parent.is_some()) {
        of.entry(&path.disk).or_default().push(path);
    }
    of
}

fn way(path: &DiskPath) -> Way<'_> {
    (&path.disk, path.parent.as_deref().unwrap_or(""), path.storage_port())
}

/// The paths in use of the earlier list to disks that have fewer paths now, and that are not listed in any state.
fn lost<'a>(earlier: &'a DiskPaths, now: &'a DiskPaths) -> Vec<&'a DiskPath> {
    let (then, now) = (by_disk(earlier), by_disk(now));
    let mut lost = Vec::new();
    for (disk, paths) in then {
        // A disk that is gone as a whole was taken away, as far as this tells.
        let Some(left) = now.get(disk) else { continue };
        let used: Vec<&DiskPath> =
            paths.into_iter().filter(|path| path.state == PathState::Usable).collect();
        if used.len() <= left.len() {
            continue;
        }
        let mut still: BTreeMap<Way<'_>, usize> = BTreeMap::new();
        for path in left {
            *still.entry(way(path)).or_default() += 1;
        }
        for path in used {
            match still.get_mut(&way(path)).filter(|count| **count > 0) {
                Some(count) => *count -= 1,
                None => lost.push(path),
            }
        }
    }
    lost
}

/// What all of these have in common and nothing that is left has.
fn common<'a>(
    lost: &[&'a DiskPath],
    now: &'a DiskPaths,
    pick: fn(&DiskPath) -> Option<&str>,
) -> BTreeSet<&'a str> {
    let of: BTreeSet<&str> = lost.iter().filter_map(|path| pick(path)).collect();
    let known = lost.iter().all(|path| pick(path).is_some());
    let left = now.paths.iter().filter_map(pick).any(|still| of.contains(still));
    if known && !left { of } else { BTreeSet::new() }
}

fn words(all: &BTreeSet<&str>) -> String {
    all.iter().copied().collect::<Vec<_>>().join(", ")
}

pub(super) fn judge(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let Some(now) = whole_lists(view, system.host).last() else { return };
    let sure = whole_lists(view, system.host)
        .filter(|list| is_earlier(view, &list.head, &now.head) == Some(true));
    let with = sure.map(|list| (list, lost(list, now))).filter(|(_, lost)| !lost.is_empty());
    let Some((earlier, lost)) = with.last() else { return };
    let spoken = view.spoken(system.host).to_owned();
    let parents = common(&lost, now, |path| path.parent.as_deref());
    let of_all = format!("{} of {} paths of {spoken}", lost.len(), earlier.paths.len());
    let title = match parents.is_empty() {
        true => format!("{of_all} are gone since an earlier capture"),
        false => {
            format!(
                "{of_all}, all those over {}, are gone since an earlier capture",
                words(&parents)
            )
        }
    };
    let disks: BTreeSet<&str> = lost.iter().map(|path| path.disk.as_str()).collect();
    let left = now.paths.iter().filter(|path| disks.contains(path.disk.as_str()));
    let mut draft = Draft::new("disk-paths-failed", system.host, spoken, Severity::Warning, title)
        .see(lost.iter().take(8).map(|path| path.at))
        .see(left.take(4).map(|path| path.at))
        .because(format!("{} disks have fewer paths than before; the list has them in no state at all, so the system does not look for them any more.", disks.len()));
    let ports = common(&lost, now, DiskPath::storage_port);
    if parents.is_empty() && !ports.is_empty() {
        draft = draft.because(format!(
            "They are all those to the storage ports {}: look at that node or controller of the array, and at the zones.",
            words(&ports)
        ));
    }
    out.push(
        draft
            .effect("Find out whether they were taken away on purpose. If not, mend what they have in common (adapter, zone, mapping in the array, VIOS), then run cfgmgr (cfgdev as padmin), which finds them again, and compare lspath.")
            .harm("Until then the other paths carry everything, and nothing is behind them.")
            .weigh(0.85, 0.9),
    );
}
