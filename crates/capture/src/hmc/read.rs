//! Reads the lists of an HMC.

use std::sync::Arc;

use super::{HmcList, HmcRow};
use crate::logins;
use crate::packed::Packed;
use crate::page::Page;
use crate::{At, Read, Report, recognise};

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
pub(crate) fn is_row(text: &str) -> bool {
    if !begins(text) {
        return false;
    }
    let mut fields = 0;
    logins::fields(text).all(|field| {
        fields += usize::from(field.is_some());
        field.is_some()
    }) && fields >= 3
}

fn begins(text: &str) -> bool {
    FIRST.iter().any(|start| text.starts_with(start))
        && memchr::memchr(b',', text.as_bytes()).is_some()
}

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let system = page.asked.clone().zip(page.typed_at()).map(|(value, at)| Read { value, at });
    let names = page.format.clone();
    let header = names.join(",");
    let mut rows: Vec<HmcRow> = Vec::new();
    let mut fields = Vec::with_capacity(24);
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        let own = |row: &HmcRow| match names.is_empty() {
            true => begins(text) && row.names.len() >= 3,
            false => is_row(text),
        };
        let ends = |row: &HmcRow| !own(row) && recognise::is_boundary(line, page.ahead());
        if !names.is_empty() && header == text {
            // `--header`
            page.take();
        } else if cut(text, &names, &mut fields).is_some()
            && let Some(row) = Some(row(&fields, line.at, rows.last())).filter(|row| !ends(row))
        {
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

/// The fields of a row, with the names that the command has asked for or that stand in it; `None` when it is none.
fn cut<'t>(text: &'t str, names: &'t [String], fields: &mut Vec<(&'t str, &'t str)>) -> Option<()> {
    fields.clear();
    if names.is_empty() {
        for field in logins::fields(text) {
            fields.push(field?);
        }
        return Some(());
    }
    fields.extend(names.iter().map(String::as_str).zip(values(text)));
    (values(text).count() == names.len()).then_some(())
}

/// A row; its names are those of the row before it where they are the same.
fn row(fields: &[(&str, &str)], at: At, before: Option<&HmcRow>) -> HmcRow {
    let names = || fields.iter().map(|(name, _)| *name);
    let same = before.filter(|row| row.names.len() == fields.len() && row.names.iter().eq(names()));
    let names = same.map_or_else(|| Arc::new(Packed::of(names())), |row| Arc::clone(&row.names));
    HmcRow { at, names, values: Packed::of(fields.iter().map(|(_, value)| *value)) }
}

/// Values with commas between; one with a comma in it stands in quotes.
fn values(text: &str) -> impl Iterator<Item = &str> {
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let quoted = text.strip_prefix('"').and_then(logins::quoted_part);
        let (value, after) = match quoted {
            Some((value, after)) => (value, after.strip_prefix(',')),
            None => match text.split_once(',') {
                Some((value, after)) => (value, Some(after)),
                None => (text, None),
            },
        };
        rest = after;
        Some(value)
    })
}
