//! Reads `lsmpio -S`: counters of each path, disk by disk.

use std::borrow::Cow;

use super::{DiskPath, PathState};
use crate::page::Page;
use crate::text::{Lines, number};

/// `Disk: hdisk1`, with the counters of its paths below.
pub(crate) fn is_statistics(text: &str, ahead: Lines<'_>) -> bool {
    text.starts_with("Disk: ")
        && ahead.take(3).any(|line| line.text.contains("Path statistics since"))
}

/// Takes the counters of one disk, from its name on.
pub(super) fn statistics(page: &mut Page<'_>, paths: &mut Vec<DiskPath>) -> bool {
    let Some(first) = page.peek() else { return false };
    let Some(disk) = first.trimmed().strip_prefix("Disk: ") else { return false };
    if !is_statistics(first.trimmed(), page.ahead()) {
        return false;
    }
    let disk = disk.trim().to_owned();
    page.take();
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if text.starts_with("Disk: ") || !line.text.starts_with([' ', '\t']) {
            break;
        }
        if let Some((id, place)) = path(text) {
            let (parent, connection) = place.split_once(':').unwrap_or((place, ""));
            paths.push(DiskPath {
                at: line.at,
                disk: disk.clone(),
                state: PathState::Other,
                status: Cow::Borrowed(""),
                detail: None,
                id: Some(id),
                parent: Some(parent.to_owned()),
                connection: Some(connection.to_owned()).filter(|text| !text.is_empty()),
                serial: None,
                selected: None,
                errors: None,
            });
        } else if let (Some((key, value)), Some(last)) = (text.split_once(':'), paths.last_mut()) {
            let value = number(value.trim());
            match key {
                "Path Selections" => last.selected = value,
                "Adapter Errors" | "Command Timeouts" => {
                    let sum = last.errors.unwrap_or(0).saturating_add(value.unwrap_or(0));
                    last.errors = Some(sum);
                }
                _ => {}
            }
        }
        page.take();
    }
    true
}

/// `Path 0: (fscsi0:5005076810111a10,1000000000000)`
fn path(text: &str) -> Option<(u32, &str)> {
    let (id, place) = text.strip_prefix("Path ")?.split_once(':')?;
    let place = place.trim().strip_prefix('(')?.strip_suffix(')')?;
    Some((id.trim().parse().ok()?, place))
}
