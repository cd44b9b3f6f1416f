//! How storage pools are shown.

use super::events::time;
use super::filter::{self, Filter};
use super::lu_layout::{layout_text, waits_text};
use super::objects::path;
use super::tiers::tier_table;
use crate::cli::Global;
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{or_dash, print, table};
use control::api::ItemList;
use control::error::{ApiError, Code};
use control::server::{
    FailgrpView, LuView, MovesView, ObjectView, PoolExplanation, PoolView, PvView,
};
use fabric::attribute::Object;
use fabric::units::{format_days, format_size};
use serde::Serialize;
use serde_json::{Value, json};

/// Pools, a line each.
pub(super) fn pool_table(pools: &[ObjectView]) -> String {
    // Where none is mirrored, nobody misses the column.
    let mirrored = |pool: &ObjectView| pool.space.as_ref().is_some_and(|it| it.failgrps.len() > 1);
    let with_groups = pools.iter().any(mirrored);
    let mut heading =
        vec!["POOL", "STATE", "SIZE", "USED", "ALLOCATED", "FREE", "OVERCOMMIT", "PVS", "LUS"];
    heading.extend(with_groups.then_some("FAILGRPS"));
    let rows = pools.iter().map(|pool| {
        let space = pool.space.as_ref();
        let size = |of: fn(&PoolView) -> u64| or_dash(space.map(|space| format_size(of(space))));
        let count = |of: fn(&PoolView) -> usize| or_dash(space.map(|space| of(space).to_string()));
        let mut row = vec![
            pool.name.clone(),
            or_dash(pool.state.as_ref()),
            size(|space| space.size_bytes),
            size(|space| space.used_bytes),
            size(|space| space.allocated_bytes),
            size(|space| space.free_bytes),
            size(|space| space.overcommit_bytes),
            count(|space| space.pvs.len()),
            count(|space| space.lus.len()),
        ];
        let groups = || space.map(|space| space.failgrps.iter().map(group_state));
        let groups = groups().map(|groups| groups.collect::<Vec<_>>().join(", "));
        row.extend(with_groups.then(|| or_dash(groups)));
        row
    });
    table(&heading, &[2, 3, 4, 5, 6, 7, 8], rows.collect())
}

/// What stands below the attributes of one: the arithmetic, its PVs and its LUs.
pub(super) fn space(space: &PoolView) -> String {
    let overcommit = match space.overcommit_bytes {
        0 => "its LUs can all be written in full".to_owned(),
        beyond => format!("its LUs can take {} more than there is", format_size(beyond)),
    };
    let sums = format!(
        "{} in all = {} used + {} not used, of which {} are free and the rest is set aside\n\
         {} allocated to LUs: {overcommit}\n\
         {} writes wait for space now, {} did since the pool was opened",
        format_size(space.size_bytes),
        format_size(space.used_bytes),
        format_size(space.size_bytes - space.used_bytes.min(space.size_bytes)),
        format_size(space.free_bytes),
        format_size(space.allocated_bytes),
        space.paused,
        space.pauses,
    );
    let moves = space.balance.as_ref().map(|moves| {
        let (moved, planned) = (format_size(moves.moved_bytes), format_size(moves.planned_bytes));
        format!(
            "\n{moved} of {planned} have moved to where less is, or to their tier: {}",
            moves.text()
        )
    });
    let mut page = sums + &moves.unwrap_or_default();
    if let Some(left) = space.full_in_s {
        page += &format!(
            "\nat the pace of the last day or week, whichever is faster, it is full in {}",
            format_days(left)
        );
    }
    space.alerts.iter().for_each(|alert| page += &format!("\nalert: {}", alert.message));
    if let Some(moves) = &space.resync {
        let (moved, planned) = (format_size(moves.moved_bytes), format_size(moves.planned_bytes));
        page += &format!("\n{moved} of {planned} that were missed are copied: {}", moves.text());
    }
    if let Some(changed) = space.after_crash_bytes.filter(|_| space.failgrps.len() > 1) {
        let changed = format_size(changed);
        page += &format!(
            "\n{changed} were changed lately, and would be copied between failure groups after a crash"
        );
    }
    if let Some(found) = space.checks.text() {
        page += &format!("\nfound where PVs were read, since the pool was opened: {found}");
    }
    if let Some(last) = &space.checks.last_scrub {
        let read = format_size(last.read_bytes);
        let at = super::events::time(last.ended_ms);
        page += &format!("\nlast scrub: over {at}, {read} read: {}", last.text());
        if last.skipped_bytes > 0 {
            page += &format!("; {} not to its end", format_size(last.skipped_bytes));
        }
    }
    space.notes.iter().for_each(|note| page += &format!("\nnote: {note}"));
    let tiers = space.tiers.len() > 1;
    if tiers {
        page += &format!("\n\n{}", tier_table(&space.tiers));
    }
    if space.failgrps.len() > 1 {
        page += &format!("\n\n{}", group_table(&space.failgrps));
    }
    let columns = (space.failgrps.len() > 1, tiers);
    page += &format!("\n\n{}", pv_table(&space.pvs, space.resync.as_ref(), columns));
    if !space.lus.is_empty() {
        page += &format!("\n\n{}", lu_table(&space.lus, tiers));
    }
    if !space.snapshots.is_empty() {
        let rows = space.snapshots.iter().map(|it| {
            let used = or_dash(it.used_bytes.map(format_size));
            let (name, lu) = (it.snapshot.clone(), it.volume.clone());
            vec![name, lu, it.number.to_string(), format_size(it.size_bytes), used]
        });
        let heading = ["SNAPSHOT", "LU", "NUMBER", "SIZE", "USED"];
        page += &format!("\n\n{}", table(&heading, &[2, 3, 4], rows.collect()));
    }
    page
}

/// LUs of one pool, where that has several tiers with theirs.
pub(super) fn lu_table(lus: &[LuView], with_tiers: bool) -> String {
    let rows = lus.iter().map(|lu| {
        let [size, used] = [lu.size_bytes, lu.used_bytes].map(format_size);
        let kind = if lu.thick { "thick" } else { "thin" };
        let kind = if lu.checksums { format!("{kind}, checksums") } else { kind.to_owned() };
        let kind = match &lu.detaching {
            Some(moves) => format!("{kind}, being detached: {}", moves.text()),
            None if lu.astray_bytes > 0 => {
                format!("{kind}, {} still elsewhere", format_size(lu.astray_bytes))
            }
            None if lu.shares => format!("{kind}, shares"),
            None => kind,
        };
        let volume = lu.volume.clone().unwrap_or_else(|| "nobody's".to_owned());
        let mut row = vec![volume, lu.number.to_string(), size, used];
        row.extend(with_tiers.then(|| lu.tier.clone()));
        row.push(kind);
        row
    });
    let mut heading = vec!["LU", "NUMBER", "SIZE", "USED"];
    heading.extend(with_tiers.then_some("TIER"));
    heading.push("KIND");
    table(&heading, &[1, 2, 3], rows.collect())
}

fn group_state(group: &FailgrpView) -> String {
    format!("{} {}", group.name, group.state)
}

fn group_table(groups: &[FailgrpView]) -> String {
    let rows = groups.iter().map(|group| {
        let [size, free] = [group.size_bytes, group.free_bytes].map(format_size);
        vec![group.name.clone(), group.state.clone(), size, free, group.pvs.to_string()]
    });
    table(&["FAILGRP", "STATE", "SIZE", "FREE", "PVS"], &[2, 3, 4], rows.collect())
}

/// PVs of one pool; where it has several of them, with their failure groups and their tiers.
pub(super) fn pv_table(
    pvs: &[PvView],
    resync: Option<&MovesView>,
    (with_groups, with_tiers): (bool, bool),
) -> String {
    let rows = pvs.iter().map(|pv| {
        let [size, free] = [pv.size_bytes, pv.free_bytes].map(format_size);
        let mut row = vec![pv.path.clone(), state(pv, resync), size, free];
        row.extend(with_tiers.then(|| pv.tier.clone()));
        row.extend(with_groups.then(|| pv.failgrp.clone()));
        row.push(pv.uuid.clone());
        row
    });
    let mut heading = vec!["PV", "STATE", "SIZE", "FREE"];
    heading.extend(with_tiers.then_some("TIER"));
    heading.extend(with_groups.then_some("FAILGRP"));
    heading.push("UUID");
    table(&heading, &[2, 3], rows.collect())
}

/// Whether a PV is used, and how far it is if it leaves, or its pool is where it gets what it missed.
pub(super) fn state(pv: &PvView, resync: Option<&MovesView>) -> String {
    let cannot = if pv.state == "away" { "copied" } else { "read" };
    let leaving = pv.leaving.as_ref().map(|moves| {
        let failed = match moves.failed_bytes {
            0 => String::new(),
            bytes => format!(", {} cannot be {cannot}", format_size(bytes)),
        };
        format!("leaving: {}{failed}", moves.text())
    });
    match (pv.state.as_str(), leaving) {
        ("away", leaving) => {
            let since = pv.since_ms.map(|since| format!(" since {}", time(since)));
            let leaving = leaving.map(|leaving| format!(", {leaving}"));
            format!("away{}{}", since.unwrap_or_default(), leaving.unwrap_or_default())
        }
        (_, Some(leaving)) => leaving,
        ("resyncing", None) => {
            format!(
                "resyncing{}",
                resync.map(|moves| format!(": {}", moves.text())).unwrap_or_default()
            )
        }
        _ => "in".to_owned(),
    }
}

/// Storage pools of which filters hold.
pub(super) fn those(global: &Global, filters: &[Filter]) -> Result<Vec<ObjectView>, Failure> {
    let path = format!("/v1/{}", Object::Pool.collection());
    let pools: ItemList<Value> = Client::new(global)?.get(&path)?;
    let pools = filter::those(Object::Pool, pools.items, filters)?.into_iter();
    let pools: Result<_, _> = pools.map(serde_json::from_value).collect();
    pools.map_err(Failure::other)
}

/// `trunkline pv list`
pub(super) fn pvs(global: &Global, filters: &[Filter]) -> Result<(), Failure> {
    let pools = those(global, filters)?;
    let mut pvs = Vec::new();
    for pool in &pools {
        let resync = pool.space.as_ref().and_then(|space| space.resync.as_ref());
        for pv in pool.space.iter().flat_map(|space| &space.pvs) {
            let mut one = serde_json::to_value(pv).map_err(Failure::other)?;
            one["pool"] = json!(pool.name);
            one["state"] = json!(state(pv, resync));
            pvs.push(one);
        }
    }
    print(global, &pvs, |pvs| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let size = |value: &Value| format_size(value.as_u64().unwrap_or_default());
        let row = |pv: &Value| {
            vec![
                text(&pv["path"]),
                text(&pv["pool"]),
                text(&pv["tier"]),
                text(&pv["failgrp"]),
                text(&pv["state"]),
                size(&pv["size_bytes"]),
                size(&pv["free_bytes"]),
                text(&pv["uuid"]),
            ]
        };
        let heading = ["PV", "POOL", "TIER", "FAILGRP", "STATE", "SIZE", "FREE", "UUID"];
        table(&heading, &[5, 6], pvs.iter().map(row).collect())
    })
}

/// A failure group, with its pool.
#[derive(Debug, Serialize)]
struct Group<'a> {
    pool: &'a str,
    #[serde(flatten)]
    group: &'a FailgrpView,
    /// While PVs of the pool get what they missed.
    #[serde(skip_serializing_if = "Option::is_none")]
    resync: Option<&'a MovesView>,
}

/// `trunkline failgrp list`
pub(super) fn failgrps(global: &Global, filters: &[Filter]) -> Result<(), Failure> {
    let pools = those(global, filters)?;
    let groups = pools.iter().flat_map(|pool| {
        let space = pool.space.as_ref();
        space.into_iter().flat_map(|space| {
            let group = |group| Group { pool: &pool.name, group, resync: space.resync.as_ref() };
            space.failgrps.iter().map(group)
        })
    });
    print(global, &groups.collect::<Vec<_>>(), |groups| {
        let row = |one: &Group<'_>| {
            let [size, free] = [one.group.size_bytes, one.group.free_bytes].map(format_size);
            let far = one.resync.filter(|_| one.group.state == "resyncing");
            let far = far.map(|moves| format!(": {}", moves.text())).unwrap_or_default();
            let state = format!("{}{far}", one.group.state);
            vec![
                one.group.name.clone(),
                one.pool.to_owned(),
                state,
                size,
                free,
                one.group.pvs.to_string(),
            ]
        };
        let heading = ["FAILGRP", "POOL", "STATE", "SIZE", "FREE", "PVS"];
        table(&heading, &[3, 4, 5], groups.iter().map(row).collect())
    })
}

/// What a pool has, which is known while it is open.
pub(super) fn space_of(global: &Global, pool: &str) -> Result<PoolView, Failure> {
    let view: ObjectView = Client::new(global)?.get(&path(Object::Pool, pool)?)?;
    view.space.ok_or_else(|| {
        let help = format!("see `trunkline pool show {pool}`");
        ApiError::new(Code::Unavailable, format!("pool `{pool}` is not open")).help(help).into()
    })
}

/// The one of this name, of what a pool has.
pub(super) fn named<'a, T>(
    pool: &str,
    (noun, name): (&str, &str),
    all: &'a [T],
    of: impl Fn(&T) -> &str,
) -> Result<&'a T, Failure> {
    all.iter().find(|one| of(one) == name).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(&of).collect();
        let what = format!("pool `{pool}` has no {noun} `{name}`");
        ApiError::new(Code::NotFound, what).help(format!("it has {}", names.join(", "))).into()
    })
}

/// `trunkline failgrp show`
pub(super) fn failgrp(global: &Global, pool: &str, name: &str) -> Result<(), Failure> {
    let space = &space_of(global, pool)?;
    let group = named(pool, ("failure group", name), &space.failgrps, |group| &group.name)?;
    let pvs: Vec<&PvView> = space.pvs.iter().filter(|pv| pv.failgrp == name).collect();
    let all = json!({ "pool": pool, "failgrp": group, "pvs": pvs, "resync": space.resync });
    print(global, &all, |_| {
        let pvs: Vec<PvView> = pvs.iter().map(|pv| (*pv).clone()).collect();
        format!(
            "{}\n\n{}",
            group_table(std::slice::from_ref(group)),
            pv_table(&pvs, space.resync.as_ref(), (false, space.tiers.len() > 1))
        )
    })
}

/// `trunkline pool explain`, and of a PV of it
pub(super) fn explain(global: &Global, pool: &str, pv: Option<&str>) -> Result<(), Failure> {
    let to = format!("{}/explain", path(Object::Pool, pool)?);
    let client = Client::new(global)?;
    let mut told: PoolExplanation = client.get(&to)?;
    if let Some(pv) = pv {
        let view: ObjectView = client.get(&path(Object::Pool, pool)?)?;
        let mut pvs = view.space.iter().flat_map(|space| &space.pvs);
        if pvs.all(|one| one.path != pv) {
            let what = format!("pool `{pool}` has no PV `{pv}`");
            let help = "`trunkline pv list` lists them, where their pool is open";
            return Err(ApiError::new(Code::NotFound, what).help(help).into());
        }
        told.findings.retain(|finding| finding.pv.as_deref() == Some(pv));
    }
    print(global, &told, |told| explanation(told, pv))
}

/// `trunkline lu explain`
pub(super) fn explain_lu(global: &Global, name: &str) -> Result<(), Failure> {
    let to = format!("{}/explain", path(Object::Volume, name)?);
    let told: PoolExplanation = Client::new(global)?.get(&to)?;
    print(global, &told, |told| explanation(told, None))
}

pub(super) fn explanation(told: &PoolExplanation, pv: Option<&str>) -> String {
    let pool = format!("pool {}", told.pool);
    let of = match (&told.lu, pv) {
        (Some(lu), _) => format!("LU {lu}, in {pool}, which is {}", told.state),
        (None, Some(pv)) => format!("PV {pv} of {pool}, which is {}", told.state),
        (None, None) => format!("{pool} is {}", told.state),
    };
    let copies = match told.copies {
        2 => {
            "; while nothing is away there are two copies of what is written, one in each failure group"
        }
        _ => "; it is not mirrored: there is one copy of what is written",
    };
    let mut page = format!("{of}{copies}");
    if let Some(layout) = &told.layout {
        page += &format!("\n\n{}", layout_text(layout));
    }
    for waits in &told.waits {
        page += &format!("\n{}", waits_text(waits));
    }
    if told.findings.is_empty() {
        page += "\n\nnothing is wrong with it";
    }
    for finding in &told.findings {
        let since = finding.since_ms.map(|since| format!(", since {}", time(since)));
        page += &format!(
            "\n\n{}{}\n  what it means: {}\n  what to do: {}",
            finding.what,
            since.unwrap_or_default(),
            finding.effect,
            finding.remedy
        );
    }
    page
}

#[cfg(test)]
mod tests {
    use super::*;
    use control::server::{ChecksView, PoolFinding, TierView};

    fn pv(path: &str, failgrp: &str, state: &str, since_ms: Option<u64>) -> PvView {
        PvView {
            path: path.to_owned(),
            uuid: "0a".repeat(16),
            failgrp: failgrp.to_owned(),
            tier: "SYSTEM".to_owned(),
            state: state.to_owned(),
            since_ms,
            reason: None,
            size_bytes: 1 << 30,
            free_bytes: 1 << 29,
            leaving: None,
            traffic: None,
        }
    }

    fn space() -> PoolView {
        let group = |name: &str, state: &str| FailgrpView {
            name: name.to_owned(),
            state: state.to_owned(),
            size_bytes: 1 << 30,
            free_bytes: 1 << 29,
            pvs: 1,
        };
        let moves = MovesView {
            planned_bytes: 1 << 28,
            moved_bytes: 1 << 27,
            failed_bytes: 0,
            percent: 50,
            left_s: Some(61),
        };
        PoolView {
            pvs: vec![
                pv("/srv/a", "Default", "resyncing", None),
                pv("/srv/c", "Mirror", "away", Some(951_782_399_000)),
            ],
            failgrps: vec![group("Default", "resyncing"), group("Mirror", "away")],
            tiers: Vec::new(),
            lus: Vec::new(),
            snapshots: Vec::new(),
            size_bytes: 1 << 30,
            used_bytes: 1 << 29,
            allocated_bytes: 1 << 29,
            free_bytes: 1 << 29,
            overcommit_bytes: 0,
            paused: 0,
            pauses: 0,
            balance: None,
            resync: Some(moves),
            after_crash_bytes: Some(3 << 26),
            checks: ChecksView::default(),
            full_in_s: None,
            alerts: Vec::new(),
            warning: None,
            notes: vec!["failure group `Default` has less".to_owned()],
        }
    }

    #[test]
    fn a_mirrored_pool_shows_its_groups_and_how_far_a_copy_is() {
        insta::assert_snapshot!("mirrored_pool", super::space(&space()));
        let one = PoolView { failgrps: Vec::new(), resync: None, notes: Vec::new(), ..space() };
        assert!(!super::space(&one).contains("FAILGRP"), "it has no groups to speak of");
        // One of an earlier version does not say it, which is not nothing.
        let silent = PoolView { after_crash_bytes: None, ..space() };
        assert!(!super::space(&silent).contains("changed lately"));
    }

    #[test]
    fn a_pool_of_several_tiers_shows_what_is_in_which() {
        let tier = |name: &str| TierView {
            name: name.to_owned(),
            size_bytes: 1 << 30,
            used_bytes: 1 << 28,
            allocated_bytes: 1 << 30,
            free_bytes: 3 << 28,
            full_in_s: None,
            paused: 0,
            slowed: 0,
            slows: false,
            pvs: 1,
            lus: 1,
        };
        let lu = LuView {
            number: 7,
            volume: Some("log".to_owned()),
            size_bytes: 1 << 30,
            used_bytes: 1 << 28,
            thick: true,
            checksums: false,
            tier: "fast".to_owned(),
            astray_bytes: 1 << 27,
            shares: false,
            detaching: None,
            paused: 0,
            traffic: None,
        };
        let nvme = PvView { tier: "fast".to_owned(), ..pv("/dev/nvme0n1", "Default", "in", None) };
        let pool = PoolView {
            pvs: vec![pv("/srv/a", "Default", "in", None), nvme],
            failgrps: Vec::new(),
            tiers: vec![tier("SYSTEM"), tier("fast")],
            lus: vec![lu],
            resync: None,
            notes: Vec::new(),
            ..space()
        };
        insta::assert_snapshot!("tiers", super::space(&pool));
        let one = PoolView { tiers: vec![tier("SYSTEM")], ..pool };
        assert!(
            !super::space(&one).contains("TIER"),
            "it has one tier, of which nothing is to be said"
        );
    }

    #[test]
    fn an_explanation_says_what_is_away_since_when_and_what_to_do() {
        let finding = PoolFinding {
            what: "PV /srv/c of failure group `Mirror` is away".to_owned(),
            pv: Some("/srv/c".to_owned()),
            since_ms: Some(951_782_399_000),
            effect: "Clients go on.".to_owned(),
            remedy: "Look at the disk.".to_owned(),
        };
        let told = PoolExplanation {
            pool: "p0".to_owned(),
            lu: None,
            state: "degraded".to_owned(),
            copies: 2,
            failgrps: Vec::new(),
            findings: vec![finding],
            layout: None,
            waits: Vec::new(),
        };
        insta::assert_snapshot!("pool_explained", explanation(&told, None));
        let of_lu = PoolExplanation { lu: Some("lu0".to_owned()), findings: Vec::new(), ..told };
        let text = explanation(&of_lu, None);
        assert!(text.starts_with("LU lu0, in pool p0, which is degraded;"), "{text}");
        assert!(text.ends_with("nothing is wrong with it"), "{text}");
    }
}
