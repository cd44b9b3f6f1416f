//! Reads `pv -list` and `lspv -clustername`: a table below each pool, tier and failure group, or a block for each LUN.

use super::{PoolLun, PvList};
use crate::page::{Page, put};
use crate::recognise::{self, Kind};
use crate::text::{Line, Lines};
use crate::{At, Read, Report};

const DOUBT: &str = "the value is not understood";

/// Where a LUN is, from the lines above it.
#[derive(Default)]
struct Place {
    pool: Option<Read<String>>,
    tier: Option<Read<String>>,
    group: Option<Read<String>>,
}

pub(crate) fn pv_list(page: &mut Page<'_>) -> Option<Report> {
    let mut luns: Vec<PoolLun> = Vec::new();
    let asked = page.asked.clone().zip(page.typed_at());
    let mut place = Place { pool: asked.map(|(value, at)| Read { value, at }), ..Place::default() };
    let mut table: Option<Vec<&str>> = None;
    let mut placed = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if let Some(columns) = columns(text) {
            // A second table in the same place is of another command; `-capable` lists disks that are in no pool.
            if !placed && (table.is_some() || page.command_has("-capable")) {
                break;
            }
            placed = false;
            table = Some(columns);
            page.take();
            continue;
        }
        let rule = text.bytes().all(|byte| matches!(byte, b'-' | b' '));
        let done = (rule && page.take().is_some())
            || placing(page, &mut place, &mut placed, line)
            || table.as_ref().is_some_and(|columns| row(page, &mut luns, &place, columns, line))
            || field(page, &mut luns, &place, line);
        if !done && !page.goes_on(line) {
            break;
        }
    }
    if luns.is_empty() && table.is_none() {
        return None;
    }
    match luns.last() {
        None => page.incomplete("no LUN follows the heading"),
        Some(lun) if lun.size_mb.is_none() => page.incomplete("the last LUN has no size"),
        Some(_) => {}
    }
    Some(Report::PvList(PvList { head: page.close(), luns }))
}

/// The columns of the table, by one word each.
fn columns(text: &str) -> Option<Vec<&'static str>> {
    let rest = text.strip_prefix("PV_NAME ").or_else(|| text.strip_prefix("PV NAME "))?;
    if !rest.contains("SIZE(MB)") {
        return None;
    }
    let mut columns = vec!["NAME"];
    columns.extend(rest.split_ascii_whitespace().map(|word| key(word).unwrap_or("")));
    Some(columns)
}

/// The fields of a LUN under the names that tables and blocks give them.
fn key(name: &str) -> Option<&'static str> {
    Some(match name {
        "SIZE(MB)" | "PV_SIZE" | "PV_SIZE(MB)" => "SIZE",
        "STATE" | "PV_STATE" => "STATE",
        "UDID" | "PVUDID" | "PV_UDID" => "UDID",
        "TIER" | "TIER_NAME" => "TIER",
        "FG_NAME" => "GROUP",
        _ => return None,
    })
}

/// Takes `POOL_NAME: x` and the like; not where another report begins with it.
fn placing(page: &mut Page<'_>, place: &mut Place, placed: &mut bool, line: Line<'_>) -> bool {
    let Some((name, value)) = line.trimmed().split_once(':') else { return false };
    let read = Some(Read { value: value.trim().to_owned(), at: line.at });
    match name.trim_end() {
        "POOL_NAME" | "TIER_NAME" if !ahead_are_luns(line, page.ahead()) => return false,
        "POOL_NAME" => *place = Place { pool: read, ..Place::default() },
        "TIER_NAME" => (place.tier, place.group) = (read, None),
        "FG_NAME" => place.group = read,
        _ => return false,
    }
    *placed = true;
    page.take();
    true
}

fn ahead_are_luns(line: Line<'_>, ahead: Lines<'_>) -> bool {
    recognise::heading(line, ahead) == Some(Kind::PvList)
}

fn lun(name: &str, place: &Place, at: At) -> PoolLun {
    PoolLun {
        at,
        name: name.to_owned(),
        pool: place.pool.clone(),
        tier: place.tier.clone(),
        failure_group: place.group.clone(),
        size_mb: None,
        state: None,
        udid: None,
    }
}

fn row(
    page: &mut Page<'_>,
    luns: &mut Vec<PoolLun>,
    place: &Place,
    columns: &[&str],
    line: Line<'_>,
) -> bool {
    let Some(words) = words(line.trimmed(), columns) else { return false };
    let tail = tail(line, page.ahead());
    page.take_lines(1 + usize::from(tail.is_some()));
    let mut found = lun(words[0], place, line.at);
    let last = words.len() - 1;
    let mut fits = true;
    for (index, (key, word)) in columns.iter().zip(&words).enumerate().skip(1) {
        let tail = tail.filter(|_| index == last).unwrap_or("");
        fits &= set(&mut found, key, &format!("{word}{tail}"), line.at);
    }
    if !fits {
        page.doubt(line, DOUBT);
    }
    luns.push(found);
    true
}

/// The fields of a row; the second must be a number. An id in the last column may have spaces in it.
fn words<'t>(text: &'t str, columns: &[&str]) -> Option<Vec<&'t str>> {
    let mut words = Vec::with_capacity(columns.len());
    let mut rest = text;
    for _ in 1..columns.len() {
        let (word, after) = rest.split_once(|c: char| c.is_ascii_whitespace())?;
        words.push(word);
        rest = after.trim_start();
    }
    words.push(rest);
    let is_size = words.get(1)?.bytes().all(|byte| byte.is_ascii_digit());
    let fits = columns.last() == Some(&"UDID") || !rest.contains(|c: char| c.is_ascii_whitespace());
    (is_size && fits && !rest.is_empty()).then_some(words)
}

/// The end of an id that a terminal has put on the next line: one word below a line that fills the terminal.
fn tail<'t>(line: Line<'t>, mut ahead: Lines<'t>) -> Option<&'t str> {
    ahead.next();
    let next = ahead.next()?;
    let full = line.width >= 72 && line.width == line.text.len();
    let word = !next.is_blank() && next.text.bytes().all(|byte| byte.is_ascii_alphanumeric());
    let longer = next.text.len() > line.text.len();
    (full && word && !longer && !recognise::is_boundary(next, ahead)).then_some(next.text)
}

fn set(lun: &mut PoolLun, key: &str, value: &str, at: At) -> bool {
    let own = || value.to_owned();
    match key {
        "SIZE" => value.parse().is_ok_and(|value| put(&mut lun.size_mb, value, at)),
        "STATE" => put(&mut lun.state, own(), at),
        "UDID" => put(&mut lun.udid, own(), at),
        "TIER" => {
            lun.tier = Some(Read { value: own(), at });
            true
        }
        "GROUP" => {
            lun.failure_group = Some(Read { value: own(), at });
            true
        }
        _ => false,
    }
}

/// One line of the block that `-verbose` prints for each LUN.
fn field(page: &mut Page<'_>, luns: &mut Vec<PoolLun>, place: &Place, line: Line<'_>) -> bool {
    let Some((name, value)) = line.trimmed().split_once(':') else { return false };
    let (name, value) = (name.trim_end(), value.trim());
    if name == "PV_NAME" {
        page.take();
        luns.push(lun(value, place, line.at));
        return true;
    }
    let (Some(key), Some(lun)) = (key(name), luns.last_mut()) else { return false };
    page.take();
    // A number that ends with the file may be cut.
    if (key == "SIZE" && !line.ended) || !set(lun, key, value, line.at) {
        page.doubt(line, DOUBT);
    }
    true
}
