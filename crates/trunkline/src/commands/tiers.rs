//! How the tiers of storage pools are shown.

use super::filter::Filter;
use super::pools::{lu_table, named, pv_table, space_of, those};
use crate::cli::Global;
use crate::exit::Failure;
use crate::output::{print, table};
use control::server::{LuView, PvView, TierView};
use fabric::units::format_size;
use serde::Serialize;
use serde_json::json;

/// A tier, with its pool.
#[derive(Debug, Serialize)]
struct Tier<'a> {
    pool: &'a str,
    #[serde(flatten)]
    tier: &'a TierView,
}

fn cells(tier: &TierView) -> Vec<String> {
    let sizes = [tier.size_bytes, tier.used_bytes, tier.allocated_bytes, tier.free_bytes];
    let counts = [u64::from(tier.pvs), u64::from(tier.lus)];
    let sizes = sizes.map(format_size).into_iter();
    sizes.chain(counts.map(|count| count.to_string())).collect()
}

/// Tiers of one pool.
pub(super) fn tier_table(tiers: &[TierView]) -> String {
    let rows = tiers.iter().map(|tier| [vec![tier.name.clone()], cells(tier)].concat());
    let heading = ["TIER", "SIZE", "USED", "ALLOCATED", "FREE", "PVS", "LUS"];
    table(&heading, &[1, 2, 3, 4, 5, 6], rows.collect())
}

/// `trunkline tier list`
pub(super) fn tiers(global: &Global, filters: &[Filter]) -> Result<(), Failure> {
    let pools = those(global, filters)?;
    let tiers = pools.iter().flat_map(|pool| {
        let tiers = pool.space.iter().flat_map(|space| &space.tiers);
        tiers.map(|tier| Tier { pool: &pool.name, tier })
    });
    print(global, &tiers.collect::<Vec<_>>(), |tiers| {
        let row = |one: &Tier<'_>| {
            [vec![one.tier.name.clone(), one.pool.to_owned()], cells(one.tier)].concat()
        };
        let heading = ["TIER", "POOL", "SIZE", "USED", "ALLOCATED", "FREE", "PVS", "LUS"];
        table(&heading, &[2, 3, 4, 5, 6, 7], tiers.iter().map(row).collect())
    })
}

/// `trunkline tier show`
pub(super) fn tier(global: &Global, pool: &str, name: &str) -> Result<(), Failure> {
    let space = space_of(global, pool)?;
    let tier = named(pool, ("tier", name), &space.tiers, |tier| &tier.name)?;
    let of = |tier: &str| tier == name;
    let pvs: Vec<PvView> = space.pvs.iter().filter(|pv| of(&pv.tier)).cloned().collect();
    let lus: Vec<LuView> = space.lus.iter().filter(|lu| of(&lu.tier)).cloned().collect();
    let all = json!({ "pool": pool, "tier": tier, "pvs": pvs, "lus": lus });
    print(global, &all, |_| {
        let groups = space.failgrps.len() > 1;
        let mut page = tier_table(std::slice::from_ref(tier));
        page += &format!("\n\n{}", pv_table(&pvs, space.resync.as_ref(), (groups, false)));
        if !lus.is_empty() {
            page += &format!("\n\n{}", lu_table(&lus, false));
        }
        page
    })
}
