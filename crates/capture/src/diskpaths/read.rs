//! Reads lists of paths.

use std::borrow::Cow;

use super::statistics::statistics;
use super::{DiskPath, DiskPaths, PathState};
use crate::page::Page;
use crate::recognise::is_attribute;
use crate::{At, Report};

/// The columns by the names that headings and `-F` give them.
const COLUMNS: [&str; 7] =
    ["status", "name", "path_id", "path_status", "parent", "connection", "device"];

/// What `lspath` prints without a format.
const USUAL: [&str; 3] = ["status", "name", "parent"];

/// Where the columns of a table stand.
#[derive(Default)]
struct Places {
    columns: usize,
    status: Option<usize>,
    name: Option<usize>,
    id: Option<usize>,
    detail: Option<usize>,
    parent: Option<usize>,
    connection: Option<usize>,
    /// It has no other columns than those of [`USUAL`]: the connection may follow.
    usual: bool,
}

impl Places {
    fn of(columns: &[&str]) -> Self {
        let place = |names: &[&str]| columns.iter().position(|column| names.contains(column));
        Self {
            columns: columns.len(),
            status: place(&["status"]),
            name: place(&["name", "device"]),
            id: place(&["path_id"]),
            detail: place(&["path_status"]),
            parent: place(&["parent"]),
            connection: place(&["connection"]),
            usual: columns == USUAL,
        }
    }
}

/// The words of a row, of which no more count.
const WORDS: usize = 16;

const STATES: [(&str, PathState); 6] = [
    ("Enabled", PathState::Usable),
    ("Failed", PathState::Failed),
    ("Missing", PathState::Missing),
    ("Disabled", PathState::Disabled),
    ("Defined", PathState::Defined),
    ("Detected", PathState::Other),
];

/// The columns of a heading; `None` when the line is none.
pub(crate) fn columns(text: &str) -> Option<Vec<&'static str>> {
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
pub(crate) fn is_row(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let status = words.next().is_some_and(|word| state(word).is_some());
    let aligned =
        status && words.next().is_some_and(is_device) && words.next().is_some_and(is_device);
    aligned || delimited(text).is_some() || by_words(text).is_some()
}

/// What a row says whose columns stand in whatever order: no field can be taken for another.
struct Delimited<'t> {
    status: &'t str,
    disk: &'t str,
    parent: &'t str,
    connection: Option<&'t str>,
}

fn delimited(text: &str) -> Option<Delimited<'_>> {
    // A row has one sign between its fields and no space; most lines have spaces.
    let spaced = memchr::memchr(b' ', text.as_bytes()).is_some();
    if text.len() > 160 || spaced || !text.contains("disk") {
        return None;
    }
    [':', ';', '|', ','].into_iter().find_map(|sign| of_fields(text.splitn(WORDS, sign).collect()))
}

/// The same with blanks between, as `lspath -F` and tools that turn columns print them: beside the path's own fields a few
/// words and numbers, and no sentence.
fn by_words(text: &str) -> Option<Delimited<'_>> {
    const MOST: usize = 7;
    // Most lines begin with something else.
    let may = matches!(text.as_bytes().first(), Some(b'h' | b'f' | b'v'))
        && ["hdisk", "fscsi", "vscsi"].iter().any(|kind| text.starts_with(kind));
    if !may || text.len() > 160 || text.ends_with(['.', ':', ';']) {
        return None;
    }
    let fields: Vec<&str> = text.split_ascii_whitespace().take(MOST + 1).collect();
    (fields.len() <= MOST).then(|| of_fields(fields)).flatten()
}

/// The fields of a path among those of a row.
fn of_fields(mut fields: Vec<&str>) -> Option<Delimited<'_>> {
    let numbered = |word: &str, kinds: &[&str]| {
        let number = kinds.iter().find_map(|kind| word.strip_prefix(kind));
        number.is_some_and(|number| {
            !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
        })
    };
    let mut take = |is: &dyn Fn(&str) -> bool| {
        let at = fields.iter().position(|field| is(field))?;
        Some(fields.remove(at))
    };
    let status = take(&|word| STATES.iter().any(|(name, _)| *name == word))?;
    let disk = take(&|word| numbered(word, &["hdisk"]))?;
    let parent =
        take(&|word| numbered(word, &["fscsi", "vscsi", "iscsi", "sas", "sissas", "nvme"]))?;
    let is_connection = |word: &str| {
        word.len() >= 4 && word.bytes().all(|byte| byte.is_ascii_hexdigit() || byte == b',')
    };
    Some(Delimited { status, disk, parent, connection: take(&is_connection) })
}

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    // A column that is not needed keeps its place.
    let asked: Vec<&str> =
        page.format.iter().map(|name| columns_one(name).unwrap_or_default()).collect();
    let mut places = Places::of(if asked.is_empty() { &USUAL } else { &asked });
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
            (places, headed) = (Places::of(&columns), true);
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
        } else if let Some(path) =
            pcm_path(text, disk.as_ref(), line.at).or_else(|| row(page, text, &places, line.at))
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
    let numbered = text.strip_prefix("DEV#:").or_else(|| text.strip_prefix("DEVICE#:"))?;
    let (_, rest) = numbered.split_once("DEVICE NAME:")?;
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
        status: Cow::Owned(format!("{state} {mode}")),
        detail: None,
        id: Some(id.trim_end_matches('*').parse().ok()?),
        parent: Some(parent.to_owned()),
        connection: None,
        serial: serial.clone(),
        selected: Some(selected.parse().ok()?),
        errors: Some(errors.parse().ok()?),
    })
}

/// The words of a row, and how many there are. With `-F` and signs between the columns, or `-fmt`, the sign is the one
/// that makes as many words as there are columns: a connection has a comma of its own.
fn cells<'t>(page: &Page<'_>, text: &'t str, places: &Places) -> ([&'t str; WORDS], usize) {
    let mut words = [""; WORDS];
    let mut count = 0;
    let put = |word| {
        if let Some(place) = words.get_mut(count) {
            *place = word;
            count += 1;
        }
    };
    let signs = || page.delimiter.into_iter().chain([':', ';', '|', ',']);
    let aligned = page.format.is_empty() && page.delimiter.is_none();
    if aligned || text.contains(' ') {
        text.split_ascii_whitespace().for_each(put);
    } else if let Some(sign) = signs().find(|sign| text.split(*sign).count() == places.columns) {
        text.split(sign).for_each(put);
    } else {
        text.split([':', ',', ';', '|']).for_each(put);
    }
    (words, count)
}

/// The words of a row by its columns; `path_status` may be empty, and what is behind the last column belongs to none.
fn row(page: &Page<'_>, text: &str, places: &Places, at: At) -> Option<DiskPath> {
    if page.format.is_empty()
        && let Some(Delimited { status, disk, parent, connection }) =
            delimited(text).or_else(|| by_words(text).filter(|_| places.usual))
    {
        return Some(DiskPath {
            at,
            disk: disk.to_owned(),
            state: state(status)?.of(disk),
            status: as_printed(status),
            detail: None,
            id: None,
            parent: Some(parent.to_owned()),
            connection: connection.map(str::to_owned),
            serial: None,
            selected: None,
            errors: None,
        });
    }
    let (words, count) = cells(page, text, places);
    // Columns behind one that is empty have moved.
    let empty = places.detail.filter(|_| count + 1 == places.columns);
    if count < places.columns && empty.is_none() {
        return None;
    }
    let field = |place: Option<usize>| {
        let place = place?;
        let word = match empty {
            Some(empty) if place == empty => "",
            Some(empty) if place > empty => words.get(place - 1)?,
            _ => *words.get(place)?,
        };
        (!word.is_empty()).then_some(word)
    };
    let own = |place| field(place).map(str::to_owned);
    let status = field(places.status)?;
    let known = state(status)?;
    let disk = field(places.name).or_else(|| page.device()).filter(|disk| is_device(disk))?;
    Some(DiskPath {
        at,
        disk: disk.to_owned(),
        state: known.of(disk),
        status: as_printed(status),
        detail: own(places.detail),
        id: field(places.id).and_then(|id| id.parse().ok()),
        parent: own(places.parent),
        connection: own(places.connection.or(places.usual.then_some(3))),
        serial: None,
        selected: None,
        errors: None,
    })
}

/// The status of a path as it stands there; a word of [`STATES`] is not copied.
fn as_printed(status: &str) -> Cow<'static, str> {
    let known = STATES.iter().find(|(name, _)| *name == status);
    known.map_or_else(|| Cow::Owned(status.to_owned()), |(name, _)| Cow::Borrowed(*name))
}
