//! Reads `failgrp -list`, `tier -list` and `alert -list`: a table each, that of failure groups below the pool and its tiers.

use super::{Alert, AlertList, FailureGroup, FailureGroupList, Tier, TierList};
use crate::page::Page;
use crate::recognise::{self, Kind, words};
use crate::{At, Read, Report};

/// The headings.
pub(crate) const GROUPS: [&str; 3] = ["FG_NAME", "FG_SIZE(MB)", "FG_STATE"];
pub(crate) const TIERS: [&str; 5] =
    ["TIER_NAME", "SIZE(MB)", "FREE_SPACE(MB)", "MIRROR_STATE", "POOL_NAME"];
pub(crate) const ALERTS: [&str; 2] = ["PoolName", "Threshold%"];

/// Where a table is, from the lines above it.
#[derive(Default)]
struct Place {
    pool: Option<Read<String>>,
    tier: Option<Read<String>>,
}

pub(crate) fn groups(page: &mut Page<'_>) -> Option<Report> {
    let groups = table(page, &GROUPS, Kind::FailureGroupList, |place, [name, size, state], at| {
        Some(FailureGroup {
            at,
            name: name.to_owned(),
            pool: place.pool.clone(),
            tier: place.tier.clone(),
            size_mb: number(size, at)?,
            state: text(state, at),
        })
    })?;
    Some(Report::FailureGroupList(FailureGroupList { head: page.close(), groups }))
}

pub(crate) fn tiers(page: &mut Page<'_>) -> Option<Report> {
    let row = |_: &Place, [name, size, free, state, pool]: [&str; 5], at| {
        Some(Tier {
            at,
            name: name.to_owned(),
            pool: text(pool, at),
            size_mb: number(size, at)?,
            free_mb: number(free, at)?,
            mirror_state: text(state, at),
        })
    };
    let tiers = table(page, &TIERS, Kind::TierList, row)?;
    Some(Report::TierList(TierList { head: page.close(), tiers }))
}

pub(crate) fn alerts(page: &mut Page<'_>) -> Option<Report> {
    let alerts = table(page, &ALERTS, Kind::AlertList, |_, [pool, percent], at| {
        Some(Alert { at, pool: pool.to_owned(), free_percent: number(percent, at)? })
    })?;
    Some(Report::AlertList(AlertList { head: page.close(), alerts }))
}

/// The rows below a heading, also below another one of the same.
fn table<const N: usize, R>(
    page: &mut Page<'_>,
    heading: &[&str; N],
    kind: Kind,
    row: impl Fn(&Place, [&str; N], At) -> Option<R>,
) -> Option<Vec<R>> {
    let (mut rows, mut place, mut headed) = (Vec::new(), Place::default(), false);
    while let Some(line) = page.peek() {
        let split = line.trimmed().split_ascii_whitespace().collect::<Vec<_>>();
        if words(line.trimmed(), heading) {
            headed = true;
        } else if recognise::heading(line, page.ahead()) == Some(kind) {
            placing(&mut place, line.trimmed(), line.at);
        } else if let Some(found) =
            split.try_into().ok().filter(|_| headed).and_then(|split| row(&place, split, line.at))
        {
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
    headed.then_some(rows)
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

fn number(value: &str, at: At) -> Option<Read<u64>> {
    Some(Read { value: value.parse().ok()?, at })
}
