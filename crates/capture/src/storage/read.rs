//! Reads `lssp` and `lu -list`: tables with a heading, and blocks of `KEY: value`.

use super::{LogicalUnit, Lssp, LuList, Pool};
use crate::page::{Page, put};
use crate::recognise::{self, Kind};
use crate::text::{Line, Lines};
use crate::{At, Read, Report};

const DOUBT: &str = "the value is not understood";

pub(crate) fn lssp(page: &mut Page<'_>) -> Option<Report> {
    let mut pools: Vec<Pool> = Vec::new();
    let mut table: Option<Vec<&str>> = None;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if table.is_none() && pools.is_empty() && page.filter.is_some() {
            table = columns_of_row(text);
        }
        if let Some(columns) = pool_columns(text) {
            if table.is_some() {
                break;
            }
            table = Some(columns);
            page.take();
            continue;
        }
        let done = match &table {
            Some(columns) => pool_row(page, &mut pools, columns, line),
            None => pool_field(page, &mut pools, line) || pool_formatted(page, &mut pools, line),
        };
        if !done && !page.goes_on(line) {
            break;
        }
    }
    if pools.is_empty() && table.is_none() {
        return None;
    }
    if pools.last().is_none_or(|pool| pool.free_mb.is_none()) {
        page.incomplete("a pool has no free space");
    }
    Some(Report::Lssp(Lssp { head: page.close(), pools }))
}

fn pool(name: &str, at: At) -> Pool {
    Pool {
        at,
        name: name.to_owned(),
        size_mb: None,
        free_mb: None,
        lu_total_mb: None,
        overcommit_mb: None,
        lus: None,
        kind: None,
        id: None,
        alloc_mb: None,
        backing_devices: None,
    }
}

/// The columns of `Pool  Size(mb)  Free(mb)  …`, by one word each.
fn pool_columns(text: &str) -> Option<Vec<&'static str>> {
    let rest = text.strip_prefix("Pool ")?;
    if !rest.trim_start().starts_with("Size(mb)") {
        return None;
    }
    let mut columns = vec!["POOL_NAME"];
    let rest = rest.replace("Alloc Size(mb)", "Alloc").replace("TotalLUSize(mb)", "LuSize");
    columns.extend(rest.split_ascii_whitespace().map(|word| match word {
        "Size(mb)" => "POOL_SIZE",
        "Free(mb)" => "FREE_SPACE",
        "Alloc" => "ALLOC",
        "BDs" => "BDS",
        "LuSize" => "TOTAL_LU_SIZE",
        "LUs" => "TOTAL_LUS",
        "Type" => "POOL_TYPE",
        "PoolID" => "POOL_ID",
        _ => "",
    }));
    Some(columns)
}

/// The columns of a row whose heading a filter took away, by how many there are and the word for its kind.
fn columns_of_row(text: &str) -> Option<Vec<&'static str>> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    match words[..] {
        [_, _, _, _, _, "LVPOOL" | "FBPOOL"] => {
            Some(vec!["POOL_NAME", "POOL_SIZE", "FREE_SPACE", "ALLOC", "BDS", "POOL_TYPE"])
        }
        [_, _, _, _, _, "CLPOOL", _] => Some(vec![
            "POOL_NAME",
            "POOL_SIZE",
            "FREE_SPACE",
            "TOTAL_LU_SIZE",
            "TOTAL_LUS",
            "POOL_TYPE",
            "POOL_ID",
        ]),
        _ => None,
    }
}

fn pool_row(page: &mut Page<'_>, pools: &mut Vec<Pool>, columns: &[&str], line: Line<'_>) -> bool {
    let fields = row(line, page.ahead(), columns.len());
    let Some((fields, lines)) = fields else { return false };
    page.take_lines(lines);
    let mut found = pool(&fields[0], line.at);
    let fits: Vec<bool> = columns
        .iter()
        .zip(&fields)
        .skip(1)
        .map(|(key, value)| set_pool(&mut found, key, value, line.at))
        .collect();
    if fits.contains(&false) {
        page.doubt(line, DOUBT);
    }
    pools.push(found);
    true
}

/// The fields of a row that a terminal may have cut in two; the first must be a name, the second a number. The last column
/// is an id, of which a part may stand alone on the next line.
fn row(line: Line<'_>, mut ahead: Lines<'_>, columns: usize) -> Option<(Vec<String>, usize)> {
    let split = |text: &str| -> Option<Vec<String>> {
        let words: Vec<String> = text.split_ascii_whitespace().map(str::to_owned).collect();
        let second = words.get(1)?.starts_with(|c: char| c.is_ascii_digit());
        (words.len() == columns && second).then_some(words)
    };
    ahead.next();
    let next = ahead.next().filter(|next| !next.is_blank());
    if let Some(mut words) = split(line.text) {
        let id = |text: &str| text.len() > 4 && text.bytes().all(|byte| byte.is_ascii_hexdigit());
        let rest =
            next.filter(|next| line.width >= 72 && line.width == line.text.len() && id(next.text));
        let (Some(rest), Some(last)) = (rest, words.last_mut()) else { return Some((words, 1)) };
        if !id(last) {
            return Some((words, 1));
        }
        last.push_str(rest.text);
        return Some((words, 2));
    }
    let next = next?;
    if line.width < 60 {
        return None;
    }
    let cut = format!("{}{}{}", line.text, " ".repeat(line.width - line.text.len()), next.text);
    let spaced = format!("{} {}", line.text, next.text);
    split(&cut).or_else(|| split(&spaced)).map(|words| (words, 2))
}

/// `POOL_SIZE:         1048576`
fn pool_field(page: &mut Page<'_>, pools: &mut Vec<Pool>, line: Line<'_>) -> bool {
    let Some((key, value)) = line.trimmed().split_once(':') else { return false };
    // `POOL_SIZE(mb)`, as some levels print it.
    let key = key.trim_end().trim_end_matches("(mb)").trim_end_matches("(MB)");
    let value = value.trim();
    if key == "POOL_NAME" {
        page.take();
        pools.push(pool(value, line.at));
        return true;
    }
    let keys = [
        "POOL_SIZE",
        "FREE_SPACE",
        "TOTAL_LU_SIZE",
        "OVERCOMMIT_SPACE",
        "OVERCOMMIT_SIZE",
        "TOTAL_LUS",
        "POOL_TYPE",
        "POOL_ID",
    ];
    if !keys.contains(&key) {
        return false;
    }
    // A cluster has one pool: where a filter took its name away, it is known by the cluster.
    if pools.is_empty()
        && let Some(cluster) = page.asked.clone().filter(|_| page.filter.is_some())
    {
        pools.push(self::pool(&format!("of {cluster}"), line.at));
    }
    let Some(pool) = pools.last_mut() else { return false };
    page.take();
    if !set_pool(pool, key, value, line.at) {
        page.doubt(line, DOUBT);
    }
    true
}

fn set_pool(pool: &mut Pool, key: &str, value: &str, at: At) -> bool {
    let count =
        |place: &mut Option<Read<u64>>| value.parse().is_ok_and(|value| put(place, value, at));
    match key {
        "POOL_SIZE" => count(&mut pool.size_mb),
        "FREE_SPACE" => count(&mut pool.free_mb),
        "TOTAL_LU_SIZE" => count(&mut pool.lu_total_mb),
        "OVERCOMMIT_SPACE" | "OVERCOMMIT_SIZE" => count(&mut pool.overcommit_mb),
        "TOTAL_LUS" => count(&mut pool.lus),
        "ALLOC" => count(&mut pool.alloc_mb),
        "BDS" => count(&mut pool.backing_devices),
        "POOL_TYPE" => put(&mut pool.kind, value.to_owned(), at),
        "POOL_ID" => put(&mut pool.id, value.to_owned(), at),
        _ => false,
    }
}

/// `-field pool size free total overcommit lus type id -fmt :`, the order in which all fields come.
fn pool_formatted(page: &mut Page<'_>, pools: &mut Vec<Pool>, line: Line<'_>) -> bool {
    let Some(delimiter) = page.delimiter else { return false };
    let fields: Vec<&str> = line.trimmed().split(delimiter).map(str::trim).collect();
    let keys = [
        "POOL_SIZE",
        "FREE_SPACE",
        "TOTAL_LU_SIZE",
        "OVERCOMMIT_SPACE",
        "TOTAL_LUS",
        "POOL_TYPE",
        "POOL_ID",
    ];
    if fields.len() != keys.len() + 1 {
        return false;
    }
    let mut found = pool(fields[0], line.at);
    let fits =
        keys.iter().zip(&fields[1..]).all(|(key, value)| set_pool(&mut found, key, value, line.at));
    if fits {
        page.take();
        pools.push(found);
    }
    fits
}

/// Where a LU is, from the lines above the table.
#[derive(Default)]
struct Place {
    pool: Option<Read<String>>,
    tier: Option<Read<String>>,
}

pub(crate) fn lu_list(page: &mut Page<'_>) -> Option<Report> {
    let mut lus: Vec<LogicalUnit> = Vec::new();
    let mut place = Place::default();
    let mut table: Option<Vec<&str>> = None;
    let mut snapshots = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if let Some(columns) = lu_columns(text) {
            table = Some(columns);
            snapshots = false;
            page.take();
            continue;
        }
        if text.starts_with("POOL_NAME")
            && table.is_some()
            && place.pool.is_some()
            && !lus.is_empty()
        {
            // The same command lists the tiers one after the other, each with its pool.
            table = None;
        }
        let rule = text.bytes().all(|byte| matches!(byte, b'-' | b' '));
        let done = (rule && page.take().is_some())
            || snapshot(page, text, &mut snapshots)
            || lu_place(page, &mut place, line)
            || table.as_ref().is_some_and(|columns| lu_row(page, &mut lus, &place, columns, line))
            || lu_field(page, &mut lus, &place, line);
        if !done && !page.goes_on(line) {
            break;
        }
    }
    if lus.is_empty() && table.is_none() {
        return None;
    }
    if lus.last().is_some_and(|lu| lu.size_mb.is_none()) {
        page.incomplete("the last LU has no size");
    }
    Some(Report::LuList(LuList { head: page.close(), lus }))
}

/// The old list prints the snapshots of a LU below it; they are not LUs.
fn snapshot(page: &mut Page<'_>, text: &str, inside: &mut bool) -> bool {
    if matches!(text, "SNAPSHOTS" | "Snapshot" | "Snapshots") {
        *inside = true;
        return page.take().is_some();
    }
    *inside && !text.contains(char::is_whitespace) && !text.contains(':') && page.take().is_some()
}

fn lu_place(page: &mut Page<'_>, place: &mut Place, line: Line<'_>) -> bool {
    let Some((key, value)) = line.trimmed().split_once(':') else { return false };
    let target = match key.trim_end() {
        "POOL_NAME" => &mut place.pool,
        "TIER_NAME" => &mut place.tier,
        _ => return false,
    };
    // Other reports of the pool begin with the same lines.
    if recognise::heading(line, page.ahead()).is_some_and(|kind| kind != Kind::LuList) {
        return false;
    }
    *target = Some(Read { value: value.trim().to_owned(), at: line.at });
    page.take();
    true
}

/// The columns of either table, by one word each.
fn lu_columns(text: &str) -> Option<Vec<&'static str>> {
    let upper = text.to_ascii_uppercase();
    let rest = upper.strip_prefix("LU NAME").or_else(|| upper.strip_prefix("LU_NAME "))?;
    if !rest.contains("SIZE(MB)") {
        return None;
    }
    let mut columns = vec!["LU_NAME"];
    columns.extend(
        rest.replace("LU UDID", "UDID").replace("LU_UDID", "UDID").split_ascii_whitespace().map(
            |word| match word {
                "SIZE(MB)" => "SIZE",
                "UNUSED(MB)" => "UNUSED",
                "%USED" | "USED%" => "USED",
                "PROVISIONTYPE" | "PROVISION_TYPE" | "TYPE" => "TYPE",
                "UDID" => "UDID",
                "TIER" | "TIER_NAME" => "TIER",
                _ => "",
            },
        ),
    );
    Some(columns)
}

fn lu(name: &str, place: &Place, at: At) -> LogicalUnit {
    LogicalUnit {
        at,
        name: name.to_owned(),
        pool: place.pool.clone(),
        tier: place.tier.clone(),
        size_mb: None,
        thin: None,
        used_percent: None,
        unused_mb: None,
        udid: None,
    }
}

fn lu_row(
    page: &mut Page<'_>,
    lus: &mut Vec<LogicalUnit>,
    place: &Place,
    columns: &[&str],
    line: Line<'_>,
) -> bool {
    let Some((fields, lines)) = row(line, page.ahead(), columns.len()) else { return false };
    page.take_lines(lines);
    let mut found = lu(&fields[0], place, line.at);
    let fits: Vec<bool> = columns
        .iter()
        .zip(&fields)
        .skip(1)
        .map(|(key, value)| set_lu(&mut found, key, value, line.at))
        .collect();
    if fits.contains(&false) {
        page.doubt(line, DOUBT);
    }
    lus.push(found);
    true
}

fn set_lu(lu: &mut LogicalUnit, key: &str, value: &str, at: At) -> bool {
    let count = |text: &str, place: &mut Option<Read<u64>>| {
        text.parse().is_ok_and(|value| put(place, value, at))
    };
    match key {
        "SIZE" => count(value, &mut lu.size_mb),
        "UNUSED" => count(value, &mut lu.unused_mb),
        "USED" => count(value.trim_end_matches('%'), &mut lu.used_percent),
        "TYPE" => thin(value).is_some_and(|thin| put(&mut lu.thin, thin, at)),
        "UDID" => put(&mut lu.udid, value.to_owned(), at),
        "TIER" => {
            lu.tier = Some(Read { value: value.to_owned(), at });
            true
        }
        _ => false,
    }
}

fn thin(text: &str) -> Option<bool> {
    match text.to_ascii_uppercase().as_str() {
        "THIN" => Some(true),
        "THICK" => Some(false),
        _ => None,
    }
}

/// One line of the block that `-verbose` prints for each LU.
fn lu_field(
    page: &mut Page<'_>,
    lus: &mut Vec<LogicalUnit>,
    place: &Place,
    line: Line<'_>,
) -> bool {
    let Some((key, value)) = line.trimmed().split_once(':') else { return false };
    let (key, value) = (key.trim_end(), value.trim());
    if key == "LU_NAME" {
        page.take();
        lus.push(lu(value, place, line.at));
        return true;
    }
    let key = match key {
        "LU_SIZE" | "LU_SIZE(MB)" | "SIZE(MB)" => "SIZE",
        "LU_UNUSED" | "LU_UNUSED_SPACE" | "UNUSED(MB)" => "UNUSED",
        "LU_USED_PERCENT" => "USED",
        "LU_PROVISION_TYPE" | "PROVISION_TYPE" => "TYPE",
        "LU_UDID" | "UDID" => "UDID",
        _ => return false,
    };
    let Some(lu) = lus.last_mut() else { return false };
    page.take();
    if !set_lu(lu, key, value, line.at) {
        page.doubt(line, DOUBT);
    }
    true
}
