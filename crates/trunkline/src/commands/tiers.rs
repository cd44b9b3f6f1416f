//! How the tiers of storage pools are shown.

use super::filter::Filter;
use super::objects::path;
use super::pools::{lu_table, pv_table, those};
use crate::cli::Global;
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{print, table};
use control::error::{ApiError, Code};
use control::server::{LuView, ObjectView, PvView, TierView};
use fabric::attribute::Object;
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
    let view: ObjectView = Client::new(global)?.get(&path(Object::Pool, pool)?)?;
    let Some(space) = &view.space else {
        let what = format!("pool `{pool}` is not open");
        let help = format!("see `trunkline pool show {pool}`");
        return Err(ApiError::new(Code::Unavailable, what).help(help).into());
    };
    let Some(tier) = space.tiers.iter().find(|tier| tier.name == name) else {
        let what = format!("pool `{pool}` has no tier `{name}`");
        let names: Vec<&str> = space.tiers.iter().map(|tier| tier.name.as_str()).collect();
        let help = format!("it has {}", names.join(", "));
        return Err(ApiError::new(Code::NotFound, what).help(help).into());
    };
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
