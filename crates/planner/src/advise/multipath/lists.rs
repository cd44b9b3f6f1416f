//! What a list of paths shows: all of them, or as many as its command left; and what its disks are.

use crate::advise::view::View;
use crate::capture::{DiskPaths, PathState, Report};

/// Whether its command shows some of the paths: what is not listed may be there all the same.
pub(super) fn is_part(list: &DiskPaths) -> bool {
    const LISTS: [&str; 4] = ["lspath", "lsmpio", "pcmpath", "multipath"];
    // What sorts or shows page by page leaves nothing out.
    const WHOLE: [&str; 8] = ["sort", "more", "less", "pg", "cat", "tee", "nl", "column"];
    const ONLY: [&str; 7] = ["-s", "-p", "-w", "-i", "-status", "-pdev", "-conn"];
    let quotes = ['"', '\'', '(', ')'];
    let program =
        |word: &str| word.trim_matches(quotes).rsplit('/').next().unwrap_or_default().to_owned();
    let words =
        |text: &str| text.split_ascii_whitespace().map(str::to_owned).collect::<Vec<String>>();
    let lists = |word: &String| LISTS.contains(&program(word).as_str());
    let typed = list.head.command.as_ref().map_or("", |read| &read.value);
    let own = typed.split(';').flat_map(|part| part.split("&&"));
    let Some(own) =
        own.map(str::trim).find(|part| part.split('|').any(|of| words(of).iter().any(lists)))
    else {
        return false;
    };
    let mut parts = own.split('|');
    let asked = words(parts.next().unwrap_or_default());
    let flags = asked.iter().skip_while(|word| !lists(word));
    flags.map(String::as_str).any(|word| ONLY.contains(&word))
        || parts.filter_map(|filter| words(filter).into_iter().next()).any(|filter| {
            let filter = program(&filter);
            !WHOLE.contains(&filter.as_str()) && !LISTS.contains(&filter.as_str())
        })
}

/// Whether a disk is a drive of the machine and no LUN; `None` where nothing tells.
pub(in crate::advise) fn is_built_in(view: &View<'_>, host: usize, disk: &str) -> Option<bool> {
    let lists = view.of(host).filter_map(Report::disk_paths).flat_map(|list| &list.paths);
    let parents = lists.filter(|path| path.disk == disk).filter_map(|path| path.parent.as_deref());
    let known = |parent: &str| match parent.trim_end_matches(|c: char| c.is_ascii_digit()) {
        "sas" | "sissas" | "nvme" => Some(true),
        "fscsi" | "vscsi" | "iscsi" => Some(false),
        _ => None,
    };
    if let Some(told) = parents.filter_map(known).last() {
        return Some(told);
    }
    let told = view.of(host).filter_map(Report::lscfg).flat_map(|list| &list.devices);
    let told = told.filter(|device| device.name == disk).last()?;
    let word = |word: &str| told.description.split([' ', '-']).any(|other| other == word);
    match () {
        () if word("SAS") || word("NVMe") => Some(true),
        () if word("MPIO") || word("FC") || word("Virtual") => Some(false),
        () => None,
    }
}

fn known<'v, 'a>(
    view: &'v View<'a>,
    host: usize,
) -> impl Iterator<Item = &'a DiskPaths> + use<'v, 'a> {
    let lists = view.of(host).filter_map(Report::disk_paths);
    lists.filter(|list| list.paths.iter().any(|path| path.state != PathState::Other))
}

/// The last list of paths of a system, whole or not.
pub(super) fn paths<'a>(view: &View<'a>, host: usize) -> Option<&'a DiskPaths> {
    known(view, host).last()
}

/// The last list of all paths of a system.
pub(super) fn whole_paths<'a>(view: &View<'a>, host: usize) -> Option<&'a DiskPaths> {
    whole_lists(view, host).last()
}

/// The lists of all paths of a system, in the order of time.
pub(super) fn whole_lists<'v, 'a>(
    view: &'v View<'a>,
    host: usize,
) -> impl Iterator<Item = &'a DiskPaths> + use<'v, 'a> {
    known(view, host).filter(|list| !is_part(list))
}
