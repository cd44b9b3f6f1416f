//! `trunkline pool top`: what goes on in storage pools, and what each of their PVs and LUs does per second.

use super::objects::path;
use super::pools::state;
use super::top::{per_second, watch};
use crate::cli::Global;
use crate::cli::objects::PoolTopArgs;
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{bytes, duration, or_dash, table};
use control::api::{ItemList, OperationView};
use control::operation::{Kind, Step};
use control::server::{
    FrozenLuView, LuTrafficView, LuView, ObjectView, PoolView, PvTrafficView, PvView, TierView,
};
use fabric::attribute::Object;
use fabric::units::{format_days, format_size, percent};
use serde::Serialize;

/// What is looked at each time.
struct Seen {
    pools: Vec<ObjectView>,
    operations: Vec<OperationView>,
}

/// A pool in an interval.
#[derive(Debug, Clone, Serialize)]
struct PoolTop {
    pool: String,
    /// `open`, `degraded`, `failed` or `pending`.
    state: String,
    /// What is wrong with it.
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
    size_bytes: u64,
    used_bytes: u64,
    free_bytes: u64,
    /// Writes that wait for space now.
    paused: u64,
    /// What is going on besides what clients do, a sentence each.
    going: Vec<String>,
    tiers: Vec<TierView>,
    pvs: Vec<PvTop>,
    lus: Vec<LuTop>,
    snapshots: Vec<FrozenLuView>,
}

/// A PV in an interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct PvTop {
    pv: String,
    tier: String,
    failgrp: String,
    /// As `pv list` has it.
    state: String,
    size_bytes: u64,
    used_bytes: u64,
    /// What it did, where its data plane says so.
    #[serde(flatten)]
    does: Option<PvDoes>,
}

/// What a PV did.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
struct PvDoes {
    #[serde(flatten)]
    rates: Rates,
    /// Operations that are under way now.
    in_flight: u64,
    /// Operations that were under way on the average, in thousandths.
    depth_per_mille: u64,
    /// How long an operation took on the average; 0 where none was over.
    latency_ns: u64,
    errors_per_s: u64,
}

/// An LU in an interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct LuTop {
    /// Its volume; nothing where it is nobody's.
    lu: Option<String>,
    number: u32,
    tier: String,
    size_bytes: u64,
    used_bytes: u64,
    /// Requests of it that wait for space now.
    paused: u64,
    /// What its clients did.
    #[serde(flatten)]
    rates: Rates,
    /// How long the pool had a command of them on the average; 0 where it had none.
    latency_ns: u64,
}

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
struct Rates {
    reads_per_s: u64,
    writes_per_s: u64,
    read_bytes_per_s: u64,
    written_bytes_per_s: u64,
}

impl Rates {
    /// Of reads, writes, bytes read and written, now and before.
    fn of(now: [u64; 4], before: [u64; 4], seconds: f64) -> Rates {
        let rate = |which: usize| per_second(now[which], before[which], seconds);
        let [reads_per_s, writes_per_s, read_bytes_per_s, written_bytes_per_s] =
            [0, 1, 2, 3].map(rate);
        Rates { reads_per_s, writes_per_s, read_bytes_per_s, written_bytes_per_s }
    }

    fn cells(&self) -> Vec<String> {
        let counts = [self.reads_per_s, self.writes_per_s].map(|count| count.to_string());
        let sizes = [self.read_bytes_per_s, self.written_bytes_per_s].map(bytes);
        counts.into_iter().chain(sizes).collect()
    }
}

/// `trunkline pool top`
pub(super) fn top(global: &Global, args: &PoolTopArgs) -> Result<(), Failure> {
    let client = Client::new(global)?;
    let look = || {
        let names = match &args.pool {
            Some(name) => vec![name.clone()],
            None => {
                let all = format!("/v1/{}", Object::Pool.collection());
                let all: ItemList<ObjectView> = client.get(&all)?;
                all.items.into_iter().map(|pool| pool.name).collect()
            }
        };
        // What LUs do is said of one pool at a time.
        let pools = names.iter().map(|name| client.get(&path(Object::Pool, name)?));
        let pools: Result<Vec<ObjectView>, Failure> = pools.collect();
        let operations: ItemList<OperationView> = client.get("/v1/operations")?;
        Ok(Seen { pools: pools?, operations: operations.items })
    };
    let judge = |before: &Seen, now: &Seen, seconds| Ok(judged(before, now, seconds));
    watch(global, &args.rounds, look, judge, |pools| page(pools))
}

fn judged(before: &Seen, now: &Seen, seconds: f64) -> Vec<PoolTop> {
    let pool = |pool: &ObjectView| {
        let earlier = before.pools.iter().find(|one| one.name == pool.name);
        let earlier = earlier.and_then(|one| one.space.as_ref());
        let space = pool.space.as_ref();
        PoolTop {
            pool: pool.name.clone(),
            state: pool.state.clone().unwrap_or_default(),
            reason: pool.reason.clone(),
            size_bytes: space.map_or(0, |space| space.size_bytes),
            used_bytes: space.map_or(0, |space| space.used_bytes),
            free_bytes: space.map_or(0, |space| space.free_bytes),
            paused: space.map_or(0, |space| space.paused),
            going: space.map(|space| going(&pool.name, space, &now.operations)).unwrap_or_default(),
            tiers: space.map(|space| space.tiers.clone()).unwrap_or_default(),
            pvs: space.map(|space| pvs(space, earlier, seconds)).unwrap_or_default(),
            lus: space.map(|space| lus(space, earlier, seconds)).unwrap_or_default(),
            snapshots: space.map(|space| space.snapshots.clone()).unwrap_or_default(),
        }
    };
    now.pools.iter().map(pool).collect()
}

fn pvs(now: &PoolView, before: Option<&PoolView>, seconds: f64) -> Vec<PvTop> {
    let earlier = |pv: &PvView| {
        let mut all = before.into_iter().flat_map(|pool| &pool.pvs);
        all.find(|one| one.uuid == pv.uuid).and_then(|one| one.traffic).unwrap_or_default()
    };
    let pv = |pv: &PvView| PvTop {
        pv: pv.path.clone(),
        tier: pv.tier.clone(),
        failgrp: pv.failgrp.clone(),
        state: state(pv, now.resync.as_ref()),
        size_bytes: pv.size_bytes,
        used_bytes: pv.used_bytes(),
        does: pv.traffic.map(|traffic| does(&traffic, &earlier(pv), seconds)),
    };
    now.pvs.iter().map(pv).collect()
}

/// What a PV did between two looks. One that was opened anew meanwhile began to count anew.
#[allow(clippy::cast_precision_loss, clippy::cast_possible_truncation, clippy::cast_sign_loss)]
fn does(now: &PvTrafficView, before: &PvTrafficView, seconds: f64) -> PvDoes {
    let none = PvTrafficView::default();
    let before = if now.over() < before.over() { &none } else { before };
    let of = |it: &PvTrafficView| [it.reads, it.writes, it.read_bytes, it.written_bytes];
    let took = now.took_ns.saturating_sub(before.took_ns);
    PvDoes {
        rates: Rates::of(of(now), of(before), seconds),
        in_flight: now.in_flight,
        depth_per_mille: (took as f64 / (seconds * 1_000_000.0)).round() as u64,
        latency_ns: took.checked_div(now.over() - before.over()).unwrap_or(0),
        errors_per_s: per_second(now.errors, before.errors, seconds),
    }
}

fn lus(now: &PoolView, before: Option<&PoolView>, seconds: f64) -> Vec<LuTop> {
    let earlier = |lu: &LuView| {
        let mut all = before.into_iter().flat_map(|pool| &pool.lus);
        all.find(|one| one.number == lu.number).and_then(|one| one.traffic)
    };
    let of = |it: &LuTrafficView| [it.reads, it.writes, it.read_bytes, it.written_bytes];
    let lu = |lu: &LuView| {
        let now = lu.traffic.unwrap_or_default();
        // Where it was not seen before, nothing is known of what it did since.
        let before = earlier(lu).unwrap_or(now);
        let begins_anew = now.timed < before.timed;
        let before = if begins_anew { LuTrafficView::default() } else { before };
        let took = now.took_ns.saturating_sub(before.took_ns);
        LuTop {
            lu: lu.volume.clone(),
            number: lu.number,
            tier: lu.tier.clone(),
            size_bytes: lu.size_bytes,
            used_bytes: lu.used_bytes,
            paused: lu.paused,
            rates: Rates::of(of(&now), of(&before), seconds),
            latency_ns: took.checked_div(now.timed - before.timed).unwrap_or(0),
        }
    };
    now.lus.iter().map(lu).collect()
}

/// The name of an LU, or its number where it is nobody's.
fn name(lu: &LuView) -> String {
    lu.volume.clone().unwrap_or_else(|| format!("{} (nobody's)", lu.number))
}

/// What goes on in a pool besides what clients do.
fn going(pool: &str, space: &PoolView, operations: &[OperationView]) -> Vec<String> {
    let mut all = Vec::new();
    if space.paused > 0 {
        let those = space.lus.iter().filter(|lu| lu.paused > 0);
        let those: Vec<String> = those.map(|lu| format!("{} of {}", lu.paused, name(lu))).collect();
        let of = if those.is_empty() { String::new() } else { format!(": {}", those.join(", ")) };
        all.push(format!("{} writes wait for space{of}", space.paused));
    }
    all.extend(space.balance.as_ref().map(|moves| format!("rebalancing: {}", moves.text())));
    all.extend(space.resync.as_ref().map(|moves| format!("resyncing: {}", moves.text())));
    let leaving = space.pvs.iter().filter_map(|pv| Some((pv, pv.leaving.as_ref()?)));
    all.extend(leaving.map(|(pv, moves)| format!("PV {} leaves: {}", pv.path, moves.text())));
    let detached = space.lus.iter().filter_map(|lu| Some((lu, lu.detaching.as_ref()?)));
    let detached =
        detached.map(|(lu, moves)| format!("LU {} is detached: {}", name(lu), moves.text()));
    all.extend(detached);
    let subject = format!("{} {pool}", Object::Pool);
    let scrubs = operations.iter().filter(|it| {
        it.kind == Kind::Scrub && it.step == Step::Scrubbing && it.subjects.contains(&subject)
    });
    all.extend(
        scrubs.map(|it| format!("scrubbing: {} %", percent(it.progress.done, it.progress.total))),
    );
    all
}

fn page(pools: &[PoolTop]) -> String {
    if pools.is_empty() {
        return "there is no storage pool; `trunkline pool create NAME --pvs PATH,…` makes one"
            .to_owned();
    }
    pools.iter().map(pool_page).collect::<Vec<_>>().join("\n\n")
}

fn pool_page(pool: &PoolTop) -> String {
    let reason = pool.reason.as_ref().map(|reason| format!(": {reason}")).unwrap_or_default();
    if pool.pvs.is_empty() {
        return format!("pool {}: {}{reason}", pool.pool, pool.state);
    }
    let mut page = format!(
        "pool {}: {}, {} of {} used, {} free{reason}\nnow: {}",
        pool.pool,
        pool.state,
        format_size(pool.used_bytes),
        format_size(pool.size_bytes),
        format_size(pool.free_bytes),
        if pool.going.is_empty() { "clients alone".to_owned() } else { pool.going.join("; ") },
    );
    let tiers = pool.tiers.iter().map(|tier| {
        let sizes = [tier.size_bytes, tier.used_bytes, tier.free_bytes].map(format_size);
        let full = or_dash(tier.full_in_s.map(format_days));
        let mut row = vec![tier.name.clone()];
        row.extend(sizes);
        row.extend([full, tier.paused.to_string()]);
        row
    });
    let heading = ["TIER", "SIZE", "USED", "FREE", "FULL IN", "PAUSED"];
    page += &format!("\n\n{}", table(&heading, &[1, 2, 3, 4, 5], tiers.collect()));
    page += &format!("\n\n{}", pv_rows(&pool.pvs));
    if !pool.lus.is_empty() {
        page += &format!("\n\n{}", lu_rows(&pool.lus));
    }
    if !pool.snapshots.is_empty() {
        let rows = pool.snapshots.iter().map(|it| {
            let used = or_dash(it.used_bytes.map(format_size));
            vec![it.snapshot.clone(), it.volume.clone(), used]
        });
        let heading = ["SNAPSHOT", "LU", "USED"];
        page += &format!("\n\n{}", table(&heading, &[2], rows.collect()));
    }
    page
}

const RATES: [&str; 4] = ["READS/s", "WRITES/s", "READ/s", "WRITTEN/s"];

fn pv_rows(pvs: &[PvTop]) -> String {
    let rows = pvs.iter().map(|pv| {
        let mut row = vec![pv.pv.clone(), pv.state.clone()];
        row.extend([pv.size_bytes, pv.used_bytes].map(format_size));
        match &pv.does {
            Some(does) => {
                row.extend(does.rates.cells());
                let tenths = (does.depth_per_mille + 50) / 100;
                row.push(does.in_flight.to_string());
                row.push(format!("{}.{}", tenths / 10, tenths % 10));
                row.push(duration(does.latency_ns));
            }
            None => row.extend(vec!["-".to_owned(); 7]),
        }
        row
    });
    let mut heading = vec!["PV", "STATE", "SIZE", "USED"];
    heading.extend(RATES);
    heading.extend(["IN FLIGHT", "DEPTH", "LATENCY"]);
    table(&heading, &[2, 3, 4, 5, 6, 7, 8, 9, 10], rows.collect())
}

fn lu_rows(lus: &[LuTop]) -> String {
    let rows = lus.iter().map(|lu| {
        let mut row = vec![lu.lu.clone().unwrap_or_else(|| "nobody's".to_owned())];
        row.extend([lu.number.to_string(), lu.tier.clone()]);
        row.extend([lu.size_bytes, lu.used_bytes].map(format_size));
        row.extend(lu.rates.cells());
        row.push(duration(lu.latency_ns));
        row.push(if lu.paused > 0 { lu.paused.to_string() } else { "-".to_owned() });
        row
    });
    let mut heading = vec!["LU", "NUMBER", "TIER", "SIZE", "USED"];
    heading.extend(RATES);
    heading.extend(["LATENCY", "PAUSED"]);
    table(&heading, &[1, 3, 4, 5, 6, 7, 8, 9, 10], rows.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    const BEFORE: PvTrafficView = PvTrafficView {
        in_flight: 1,
        reads: 100,
        writes: 10,
        others: 5,
        read_bytes: 409_600,
        written_bytes: 40_960,
        took_ns: 1_000_000_000,
        errors: 0,
    };

    /// Depth and latency follow from how long all operations took, and how many they were.
    #[test]
    fn what_a_pv_does_is_of_the_interval() {
        let now = PvTrafficView {
            in_flight: 7,
            reads: 300,
            writes: 50,
            others: 15,
            took_ns: 2_000_000_000,
            read_bytes: 409_600 + 200 * 4096,
            errors: 4,
            ..BEFORE
        };
        let did = does(&now, &BEFORE, 2.0);
        assert_eq!((did.rates.reads_per_s, did.rates.writes_per_s), (100, 20));
        assert_eq!((did.rates.read_bytes_per_s, did.rates.written_bytes_per_s), (409_600, 0));
        assert_eq!((did.in_flight, did.depth_per_mille, did.errors_per_s), (7, 500, 2));
        assert_eq!(did.latency_ns, 1_000_000_000 / 250);
        // It was opened anew: all that it has counted is of this interval.
        let anew = PvTrafficView { reads: 4, took_ns: 8000, ..PvTrafficView::default() };
        let did = does(&anew, &BEFORE, 2.0);
        assert_eq!((did.rates.reads_per_s, did.latency_ns, did.errors_per_s), (2, 2000, 0));
        let idle = does(&now, &now, 2.0);
        assert_eq!((idle.latency_ns, idle.depth_per_mille), (0, 0));
    }

    #[test]
    fn a_pool_is_shown_with_all_that_goes_on_in_it() {
        let pv = |path: &str, state: &str, does| PvTop {
            pv: path.to_owned(),
            tier: "SYSTEM".to_owned(),
            failgrp: "Default".to_owned(),
            state: state.to_owned(),
            size_bytes: 1 << 40,
            used_bytes: 1 << 39,
            does,
        };
        let rates = Rates {
            reads_per_s: 1200,
            writes_per_s: 340,
            read_bytes_per_s: 1200 << 12,
            written_bytes_per_s: 340 << 12,
        };
        let does = PvDoes {
            rates,
            in_flight: 5,
            depth_per_mille: 4370,
            latency_ns: 2_830_000,
            errors_per_s: 0,
        };
        let lu = |name: Option<&str>, paused| LuTop {
            lu: name.map(str::to_owned),
            number: 7,
            tier: "SYSTEM".to_owned(),
            size_bytes: 1 << 40,
            used_bytes: 1 << 38,
            paused,
            rates,
            latency_ns: 3_100_000,
        };
        let snapshot = FrozenLuView {
            snapshot: "nightly".to_owned(),
            volume: "db".to_owned(),
            number: 9,
            size_bytes: 1 << 40,
            used_bytes: Some(3 << 30),
        };
        let tier = TierView {
            name: "SYSTEM".to_owned(),
            size_bytes: 2 << 40,
            used_bytes: 1 << 40,
            allocated_bytes: 2 << 40,
            free_bytes: 1 << 40,
            full_in_s: Some(12 * 86_400),
            paused: 2,
            slowed: 0,
            slows: false,
            pvs: 2,
            lus: 2,
        };
        let pool = PoolTop {
            pool: "p0".to_owned(),
            state: "open".to_owned(),
            reason: None,
            size_bytes: 2 << 40,
            used_bytes: 1 << 40,
            free_bytes: 1 << 40,
            paused: 2,
            going: vec![
                "2 writes wait for space: 2 of db".to_owned(),
                "rebalancing: 40 %, 2 min left".to_owned(),
            ],
            tiers: vec![tier],
            pvs: vec![pv("/dev/sdb", "in", Some(does)), pv("/dev/sdc", "away", None)],
            lus: vec![lu(Some("db"), 2), lu(None, 0)],
            snapshots: vec![snapshot],
        };
        let closed = PoolTop {
            pool: "p1".to_owned(),
            state: "failed".to_owned(),
            reason: Some("PV /dev/sdz is not there".to_owned()),
            pvs: Vec::new(),
            ..pool.clone()
        };
        insta::assert_snapshot!("pool_top", page(&[pool, closed]));
    }
}
