//! Reads `failgrp -list`, `tier -list` and `alert -list`: a table each, that of failure groups below the pool and its tiers.

use super::{Alert, AlertList, FailureGroup, FailureGroupList, Tier, TierList};
use crate::page::Page;
use crate::recognise::{self, Kind, words};
use crate::{At, Read, Report};

/// The headings.
pub(crate) const GROUPS: [&str; 3] = ["FG_NAME", "FG_SIZE(MB)", "FG_STATE"];
pub(crate) const TIERS: [&str; 5] =
    ["TIER_NAME", "SIZE(MB)", "FREE_SPACE(MB)", "MIRROR_STATE", "POOL_NAME"];
const ALERTS: [&[&str]; 3] = [
    &["PoolName", "Threshold%", "Overcommit%"],
    &["PoolName", "Threshold%"],
    &["PoolName", "Overcommit%"],
];

/// Where a table is, from the lines above it.
#[derive(Default)]
struct Place {
    pool: Option<Read<String>>,
    tier: Option<Read<String>>,
}

/// Whether a line is the heading of alerts.
pub(crate) fn is_alerts(text: &str) -> bool {
    // Looked at in many a line.
    text.starts_with("PoolName ") && ALERTS.iter().any(|heading| words(text, heading))
}

pub(crate) fn groups(page: &mut Page<'_>) -> Option<Report> {
    let row = |place: &Place, row: Row<'_>| {
        Some(FailureGroup {
            at: row.at,
            name: row.word("FG_NAME")?.to_owned(),
            pool: place.pool.clone(),
            tier: place.tier.clone(),
            size_mb: row.number("FG_SIZE(MB)")?,
            state: row.text("FG_STATE")?,
        })
    };
    let groups = table(page, &[&GROUPS], Kind::FailureGroupList, row)?;
    Some(Report::FailureGroupList(FailureGroupList { head: page.close(), groups }))
}

pub(crate) fn tiers(page: &mut Page<'_>) -> Option<Report> {
    let row = |_: &Place, row: Row<'_>| {
        Some(Tier {
            at: row.at,
            name: row.word("TIER_NAME")?.to_owned(),
            pool: row.text("POOL_NAME")?,
            size_mb: row.number("SIZE(MB)")?,
            free_mb: row.number("FREE_SPACE(MB)")?,
            mirror_state: row.text("MIRROR_STATE")?,
        })
    };
    let tiers = table(page, &[&TIERS], Kind::TierList, row)?;
    Some(Report::TierList(TierList { head: page.close(), tiers }))
}

pub(crate) fn alerts(page: &mut Page<'_>) -> Option<Report> {
    let row = |_: &Place, row: Row<'_>| {
        // Of one that is not set there is no number.
        let percent = |column: &str| match row.word(column) {
            None | Some("-") => Some(None),
            Some(_) => row.number(column).map(Some),
        };
        Some(Alert {
            at: row.at,
            pool: row.word("PoolName")?.to_owned(),
            free_percent: percent("Threshold%")?,
            overcommit_percent: percent("Overcommit%")?,
        })
    };
    let alerts = table(page, &ALERTS, Kind::AlertList, row)?;
    Some(Report::AlertList(AlertList { head: page.close(), alerts }))
}

/// The words of a line below a heading.
struct Row<'a> {
    at: At,
    heading: &'a [&'a str],
    words: Vec<&'a str>,
}

impl<'a> Row<'a> {
    fn word(&self, column: &str) -> Option<&'a str> {
        let at = self.heading.iter().position(|name| *name == column)?;
        self.words.get(at).copied()
    }

    fn text(&self, column: &str) -> Option<Read<String>> {
        Some(text(self.word(column)?, self.at))
    }

    fn number(&self, column: &str) -> Option<Read<u64>> {
        Some(Read { value: self.word(column)?.parse().ok()?, at: self.at })
    }
}

/// The rows below one of these headings, the longest first.
fn table<R>(
    page: &mut Page<'_>,
    headings: &[&[&str]],
    kind: Kind,
    row: impl Fn(&Place, Row<'_>) -> Option<R>,
) -> Option<Vec<R>> {
    let (mut rows, mut place, mut below) = (Vec::new(), Place::default(), None);
    while let Some(line) = page.peek() {
        let found = |heading: &&[&str]| {
            let words: Vec<&str> = line.trimmed().split_ascii_whitespace().collect();
            let fits = words.len() == heading.len();
            fits.then(|| row(&place, Row { at: line.at, heading, words })).flatten()
        };
        if let Some(heading) = headings.iter().find(|heading| words(line.trimmed(), heading)) {
            below = Some(*heading);
        } else if recognise::heading(line, page.ahead()) == Some(kind) {
            placing(&mut place, line.trimmed(), line.at);
        } else if let Some(found) = below.as_ref().and_then(found) {
            rows.push(found);
            // A number that ends with the file may be cut.
            if !line.ended {
                page.incomplete("the last line may be cut");
            }
        } else if page.goes_on(line) {
            continue;
        } else {
            break;
        }
        page.take();
    }
    if rows.is_empty() {
        page.incomplete("nothing follows the heading");
    }
    below.map(|_| rows)
}

/// `POOL_NAME:p0`, and the tiers of that pool.
fn placing(place: &mut Place, line: &str, at: At) {
    match line.split_once(':').map(|(key, value)| (key.trim_end(), value.trim())) {
        Some(("POOL_NAME", pool)) => *place = Place { pool: Some(text(pool, at)), tier: None },
        Some(("TIER_NAME", tier)) => place.tier = Some(text(tier, at)),
        _ => {}
    }
}

fn text(value: &str, at: At) -> Read<String> {
    Read { value: value.to_owned(), at }
}
