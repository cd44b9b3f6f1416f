//! How LUs lie on the PVs of pools.

use super::CHUNK;
use pool_io::{PoolError, PoolHandle};
use protocol::message::{LayoutStatus, OnPv};

/// How an LU lies; nothing if there is no such LU.
pub(super) fn layout(pool: &PoolHandle, lu: u32) -> Result<Option<LayoutStatus>, PoolError> {
    let Some(layout) = pool.layout(lu)? else { return Ok(None) };
    let pvs = pool.view().pvs;
    let on = |(number, chunks): (&u16, &u32)| {
        let pv = pvs.iter().find(|pv| pv.space.pv == *number)?;
        Some(OnPv { path: pv.path.clone(), group: pv.space.group, chunks: u64::from(*chunks) })
    };
    Ok(Some(LayoutStatus {
        chunk_bytes: CHUNK,
        legs: layout.legs,
        mapped: layout.mapped.into(),
        pvs: layout.pvs.iter().filter_map(on).collect(),
        whole: layout.whole.into(),
        half: layout.half.into(),
        differ: layout.differ.into(),
        mending: layout.mending.into(),
        moving: layout.moving.into(),
        astray: layout.astray.into(),
        active: layout.active.into(),
        paused: layout.paused.into(),
    }))
}
