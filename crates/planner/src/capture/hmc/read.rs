//! Reads the lists of an HMC.

use super::{HmcList, HmcRow};
use crate::capture::logins;
use crate::capture::page::Page;
use crate::capture::{At, Info, Read, Report, recognise};

/// Fields with which rows begin, or which they all have.
const FIRST: [&str; 8] = [
    "name=",
    "lpar_name=",
    "lpar_id=",
    "type_model=",
    "slot_num=",
    "adapter_id=",
    "location_code=",
    "drc_",
];

/// `name=payroll,lpar_id=5,lpar_env=aixlinux,…`
pub(in crate::capture) fn is_row(text: &str) -> bool {
    begins(text) && logins::fields(text).is_some_and(|fields| fields.len() >= 3)
}

fn begins(text: &str) -> bool {
    FIRST.iter().any(|start| text.starts_with(start)) && text.contains(',')
}

pub(in crate::capture) fn report(page: &mut Page<'_>) -> Option<Report> {
    let system = page.asked.clone().zip(page.typed_at()).map(|(value, at)| Read { value, at });
    let names = page.format.clone();
    let header = names.join(",");
    let mut rows: Vec<HmcRow> = Vec::new();
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        let own = |row: &HmcRow| match names.is_empty() {
            true => begins(text) && row.fields.len() >= 3,
            false => is_row(text),
        };
        let ends = |row: &HmcRow| !own(row) && recognise::is_boundary(line, page.ahead());
        if !names.is_empty() && header == text {
            // `--header`
            page.take();
        } else if let Some(row) = row(text, &names, line.at, rows.last()).filter(|row| !ends(row)) {
            page.take();
            rows.push(row);
        } else if !page.goes_on(line) {
            break;
        }
    }
    if rows.is_empty() {
        return None;
    }
    page.of_no_partition();
    Some(Report::HmcList(HmcList { head: page.close(), system, rows }))
}

/// A row; its names are those of the row before it where they are the same.
fn row(text: &str, names: &[String], at: At, before: Option<&HmcRow>) -> Option<HmcRow> {
    let mut known = before.into_iter().flat_map(|row| &row.fields);
    let mut info = |name: &str, value: &str| {
        let same = known.next().filter(|field| *field.name == *name);
        let name = same.map_or_else(|| name.into(), |field| field.name.clone());
        Info { at, name, value: value.to_owned() }
    };
    let fields: Vec<Info> = if names.is_empty() {
        let fields = logins::fields(text)?;
        fields.into_iter().map(|(name, value)| info(name, value)).collect()
    } else {
        let values = values(text);
        if values.len() != names.len() {
            return None;
        }
        names.iter().zip(values).map(|(name, value)| info(name, value)).collect()
    };
    Some(HmcRow { at, fields })
}

/// Values with commas between; one with a comma in it stands in quotes.
fn values(text: &str) -> Vec<&str> {
    let mut values = Vec::new();
    let mut rest = Some(text);
    while let Some(text) = rest {
        let quoted = text.strip_prefix('"').and_then(|quoted| quoted.split_once('"'));
        let (value, after) = match quoted {
            Some((value, after)) => (value, after.strip_prefix(',')),
            None => match text.split_once(',') {
                Some((value, after)) => (value, Some(after)),
                None => (text, None),
            },
        };
        values.push(value);
        rest = after;
    }
    values
}
