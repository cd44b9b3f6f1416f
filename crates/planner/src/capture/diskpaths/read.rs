//! Reads lists of paths.

use super::statistics::statistics;
use super::{DiskPath, DiskPaths, PathState};
use crate::capture::page::Page;
use crate::capture::recognise::is_attribute;
use crate::capture::{At, Report};

/// The columns by the names that headings and `-F` give them.
const COLUMNS: [&str; 7] =
    ["status", "name", "path_id", "path_status", "parent", "connection", "device"];

/// What `lspath` prints without a format.
const USUAL: [&str; 3] = ["status", "name", "parent"];

const STATES: [(&str, PathState); 6] = [
    ("Enabled", PathState::Usable),
    ("Failed", PathState::Failed),
    ("Missing", PathState::Missing),
    ("Disabled", PathState::Disabled),
    ("Defined", PathState::Defined),
    ("Detected", PathState::Other),
];

/// The columns of a heading; `None` when the line is none.
pub(in crate::capture) fn columns(text: &str) -> Option<Vec<&'static str>> {
    let column = |word: &str| COLUMNS.into_iter().find(|column| word.eq_ignore_ascii_case(column));
    let columns: Option<Vec<_>> = text.split_ascii_whitespace().map(column).collect();
    columns.filter(|columns| columns.len() >= 3 && columns.contains(&"status"))
}

fn state(word: &str) -> Option<PathState> {
    STATES.iter().find(|(name, _)| word.eq_ignore_ascii_case(name)).map(|(_, state)| *state)
}

/// A device's name: letters and a number.
fn is_device(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_alphabetic())
        && word.ends_with(|c: char| c.is_ascii_digit())
        && word.bytes().all(|byte| byte.is_ascii_alphanumeric())
}

/// Whether the line can be nothing else than a row of `lspath`.
pub(in crate::capture) fn is_row(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let status = words.next().is_some_and(|word| state(word).is_some());
    status && words.next().is_some_and(is_device) && words.next().is_some_and(is_device)
}

pub(in crate::capture) fn report(page: &mut Page<'_>) -> Option<Report> {
    let asked: Vec<&str> = page.format.iter().filter_map(|name| columns_one(name)).collect();
    let mut columns_now = if asked.is_empty() { USUAL.to_vec() } else { asked };
    let mut paths: Vec<DiskPath> = Vec::new();
    let mut disk: Option<(String, Option<String>)> = None;
    let mut headed = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if text.starts_with("Disk: ") && statistics(page, &mut paths) {
            headed = true;
        } else if let Some(columns) = columns(text) {
            if headed && !paths.is_empty() {
                break;
            }
            (columns_now, headed) = (columns, true);
            page.take();
        } else if let Some(name) = pcm_device(text) {
            disk = Some((name.to_owned(), None));
            page.take();
        } else if let Some((_, serial)) = &mut disk
            && let Some(rest) = text.strip_prefix("SERIAL:")
        {
            *serial = rest.split_ascii_whitespace().next().map(str::to_owned);
            page.take();
        } else if is_furniture(text, disk.is_some()) {
            page.take();
        } else if let Some(path) = pcm_path(text, disk.as_ref(), line.at)
            .or_else(|| row(page, text, &columns_now, line.at))
        {
            page.take();
            paths.push(path);
        } else if is_attribute(line.text) || !page.goes_on(line) {
            // The rows of lsattr may follow without a heading.
            break;
        }
    }
    if paths.is_empty() && !headed {
        return None;
    }
    if paths.is_empty() {
        page.incomplete("no path follows the heading");
    }
    Some(Report::DiskPaths(DiskPaths { head: page.close(), paths }))
}

fn columns_one(name: &str) -> Option<&'static str> {
    COLUMNS.into_iter().find(|column| name.eq_ignore_ascii_case(column))
}

/// Rules, counts and headings of `pcmpath`.
fn is_furniture(text: &str, pcm: bool) -> bool {
    let rule = text.bytes().all(|byte| matches!(byte, b'-' | b'=' | b' '));
    rule || text.starts_with("Total ")
        || (pcm && (text.starts_with("Path#") || text.starts_with("LUN IDENTIFIER")))
}

/// `DEV#:   2  DEVICE NAME: hdisk2  TYPE: 2145  ALGORITHM:  Load Balance`
fn pcm_device(text: &str) -> Option<&str> {
    let (_, rest) = text.strip_prefix("DEV#:")?.split_once("DEVICE NAME:")?;
    rest.split_ascii_whitespace().next()
}

/// `    0           fscsi0/path0           OPEN   NORMAL      12345          0`
fn pcm_path(text: &str, disk: Option<&(String, Option<String>)>, at: At) -> Option<DiskPath> {
    let (disk, serial) = disk?;
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let [id, name, state, mode, selected, errors] = words[..] else { return None };
    let (parent, _) = name.split_once('/')?;
    let meaning = match (state, mode) {
        (_, "OFFLINE") => PathState::Disabled,
        ("OPEN", "NORMAL") => PathState::Usable,
        ("FAILED" | "CLOSE_FAILED" | "OPEN_FAILED" | "INVALID" | "DEAD", _) => PathState::Failed,
        _ => PathState::Other,
    };
    Some(DiskPath {
        at,
        disk: disk.clone(),
        state: meaning,
        status: format!("{state} {mode}"),
        detail: None,
        id: Some(id.trim_end_matches('*').parse().ok()?),
        parent: Some(parent.to_owned()),
        connection: None,
        serial: serial.clone(),
        selected: Some(selected.parse().ok()?),
        errors: Some(errors.parse().ok()?),
    })
}

/// The words of a row by its columns; `path_status` may be empty, and what is behind the last column belongs to none.
fn row(page: &Page<'_>, text: &str, columns: &[&str], at: At) -> Option<DiskPath> {
    let mut words: Vec<&str> = match page.format.is_empty() || text.contains(' ') {
        true => text.split_ascii_whitespace().collect(),
        false => text.split([':', ',', ';']).collect(),
    };
    if words.len() + 1 == columns.len()
        && let Some(index) = columns.iter().position(|column| *column == "path_status")
    {
        words.insert(index, "");
    }
    if words.len() < columns.len() {
        return None;
    }
    let field = |names: &[&str]| {
        let index = columns.iter().position(|column| names.contains(column))?;
        words.get(index).copied().filter(|word| !word.is_empty())
    };
    let status = field(&["status"])?;
    let disk = field(&["name", "device"])
        .map(str::to_owned)
        .or_else(|| page.device().map(str::to_owned))?;
    let own = |name| field(&[name]).map(str::to_owned);
    Some(DiskPath {
        at,
        disk: Some(disk).filter(|disk| is_device(disk))?,
        state: state(status)?,
        status: status.to_owned(),
        detail: own("path_status"),
        id: field(&["path_id"]).and_then(|id| id.parse().ok()),
        parent: own("parent"),
        connection: own("connection").or_else(|| {
            (columns == USUAL).then(|| words.get(3).map(|word| (*word).to_owned())).flatten()
        }),
        serial: None,
        selected: None,
        errors: None,
    })
}
