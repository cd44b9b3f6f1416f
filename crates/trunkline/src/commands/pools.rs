//! How storage pools are shown.

use super::filter::{self, Filter};
use crate::cli::Global;
use crate::client::Client;
use crate::exit::Failure;
use crate::output::{or_dash, print, table};
use control::api::ItemList;
use control::server::{ObjectView, PoolView, PvView};
use fabric::attribute::Object;
use fabric::units::format_size;
use serde_json::{Value, json};

/// Pools, a line each.
pub(super) fn pool_table(pools: &[ObjectView]) -> String {
    let heading =
        ["POOL", "STATE", "SIZE", "USED", "ALLOCATED", "FREE", "OVERCOMMIT", "PVS", "LUS"];
    let rows = pools.iter().map(|pool| {
        let space = pool.space.as_ref();
        let size = |of: fn(&PoolView) -> u64| or_dash(space.map(|space| format_size(of(space))));
        let count = |of: fn(&PoolView) -> usize| or_dash(space.map(|space| of(space).to_string()));
        vec![
            pool.name.clone(),
            or_dash(pool.state.as_ref()),
            size(|space| space.size_bytes),
            size(|space| space.used_bytes),
            size(|space| space.allocated_bytes),
            size(|space| space.free_bytes),
            size(|space| space.overcommit_bytes),
            count(|space| space.pvs.len()),
            count(|space| space.lus.len()),
        ]
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
        format!("\n{moved} of {planned} have moved to where less is: {}", moves.text())
    });
    let pvs = space.pvs.iter().map(|pv| {
        let [size, free] = [pv.size_bytes, pv.free_bytes].map(format_size);
        vec![pv.path.clone(), state(pv), size, free, pv.uuid.clone()]
    });
    let heading = ["PV", "STATE", "SIZE", "FREE", "UUID"];
    let pvs = table(&heading, &[2, 3], pvs.collect());
    let mut page = format!("{sums}{}\n\n{pvs}", moves.unwrap_or_default());
    if !space.lus.is_empty() {
        let lus = space.lus.iter().map(|lu| {
            let [size, used] = [lu.size_bytes, lu.used_bytes].map(format_size);
            let kind = if lu.thick { "thick" } else { "thin" };
            let kind = match &lu.detaching {
                Some(moves) => format!("{kind}, being detached: {}", moves.text()),
                None if lu.shares => format!("{kind}, shares"),
                None => kind.to_owned(),
            };
            let volume = lu.volume.clone().unwrap_or_else(|| "nobody's".to_owned());
            vec![volume, lu.number.to_string(), size, used, kind]
        });
        let heading = ["LU", "NUMBER", "SIZE", "USED", "KIND"];
        page += &format!("\n\n{}", table(&heading, &[1, 2, 3], lus.collect()));
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

/// Whether a PV stays, and how far it is if not.
fn state(pv: &PvView) -> String {
    let leaving = pv.leaving.as_ref().map(|moves| {
        let failed = match moves.failed_bytes {
            0 => String::new(),
            bytes => format!(", {} cannot be read", format_size(bytes)),
        };
        format!("leaving: {}{failed}", moves.text())
    });
    leaving.unwrap_or_else(|| "in".to_owned())
}

/// `trunkline pv list`
pub(super) fn pvs(global: &Global, filters: &[Filter]) -> Result<(), Failure> {
    let path = format!("/v1/{}", Object::Pool.collection());
    let pools: ItemList<Value> = Client::new(global)?.get(&path)?;
    let pools = filter::those(Object::Pool, pools.items, filters)?.into_iter();
    let pools: Result<Vec<ObjectView>, _> = pools.map(serde_json::from_value).collect();
    let mut pvs = Vec::new();
    for pool in pools.map_err(Failure::other)? {
        for pv in pool.space.iter().flat_map(|space| &space.pvs) {
            pvs.push(json!({
                "path": pv.path, "pool": pool.name, "state": state(pv), "leaving": pv.leaving,
                "size_bytes": pv.size_bytes, "free_bytes": pv.free_bytes, "uuid": pv.uuid,
            }));
        }
    }
    print(global, &pvs, |pvs| {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let size = |value: &Value| format_size(value.as_u64().unwrap_or_default());
        let row = |pv: &Value| {
            vec![
                text(&pv["path"]),
                text(&pv["pool"]),
                text(&pv["state"]),
                size(&pv["size_bytes"]),
                size(&pv["free_bytes"]),
                text(&pv["uuid"]),
            ]
        };
        let heading = ["PV", "POOL", "STATE", "SIZE", "FREE", "UUID"];
        table(&heading, &[3, 4], pvs.iter().map(row).collect())
    })
}
