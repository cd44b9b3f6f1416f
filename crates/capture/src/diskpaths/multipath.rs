//! Reads `multipath -ll` of Linux: the paths of each map, with the SCSI host as the adapter.

use super::{DiskPath, DiskPaths, PathState};
use crate::page::Page;
use crate::{At, Report};

/// `mpatha (3600507680c80810e50000000000a201) dm-0 IBM,2145`; without names of its own the id alone.
fn map(text: &str) -> Option<&str> {
    let (before, _) = text.split_once(" dm-")?;
    let name = before.split_ascii_whitespace().next()?;
    let free = !name.starts_with(['|', '`', '-']) && !before.contains(':');
    (free && before.split_ascii_whitespace().count() <= 2).then_some(name)
}

/// `| |- 3:0:0:0 sdc 8:32 failed faulty offline`
fn path(text: &str, disk: &str, at: At) -> Option<DiskPath> {
    let row = text.trim_start_matches(['|', '`', '-', '+', '\\', '_', ' ']);
    let mut found = row.split_ascii_whitespace();
    let (place, _, _) = (found.next()?, found.next()?, found.next()?);
    let numbers: Vec<u32> = place.split(':').filter_map(|text| text.parse().ok()).collect();
    let [host, ..] = numbers[..] else { return None };
    let states: Vec<&str> = found.collect();
    if numbers.len() != 4 || states.len() < 2 {
        return None;
    }
    // The kernel's word, the checker's, and that of the device below.
    let state = match (states[0], states[1]) {
        ("failed", _) | (_, "faulty" | "shaky") => PathState::Failed,
        ("active", "ready" | "ghost" | "i/o") => PathState::Usable,
        _ => PathState::Other,
    };
    Some(DiskPath {
        at,
        disk: disk.to_owned(),
        state,
        status: states.join(" ").into(),
        detail: None,
        id: None,
        parent: Some(format!("host{host}")),
        connection: None,
        serial: None,
        selected: None,
        errors: None,
    })
}

/// Lines of a map that are no path.
fn is_furniture(text: &str) -> bool {
    text.starts_with("size=") || text.contains("policy=") || text.contains("features=")
}

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut paths: Vec<DiskPath> = Vec::new();
    let mut disk: Option<&str> = None;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if let Some(name) = map(text) {
            page.take();
            disk = Some(name);
        } else if let Some(one) = disk.and_then(|disk| path(text, disk, line.at)) {
            page.take();
            paths.push(one);
        } else if disk.is_some() && is_furniture(text) {
            page.take();
        } else if !page.goes_on(line) {
            break;
        }
    }
    (!paths.is_empty()).then(|| Report::DiskPaths(DiskPaths { head: page.close(), paths }))
}
