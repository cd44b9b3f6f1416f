//! An LU of a pool that nobody serves: all of it is there, so that its lanes need nobody. What they cost is counted by it (`examples/lu_cost.rs`) where the pools' thread could not run.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use block::{FileVolume, Volume, VolumeSpec};
use pool::format::{BLOCKS, CHUNK_BYTES, Uuid};
use pool::{ChunkId, KeptPart, PARTS, Way, chunks_above};

use crate::chain::{Chain, Space};
use crate::post::{Bell, Inbox};
use crate::shadow::Shadow;
use crate::table::{OpenPv, Shared, Table};
use crate::volume::LuVolume;

/// An LU of so many chunks, each of them written on a PV that has as many; `above` a snapshot it has one chunk fewer, of which each part has a slot. `memory` is a file for what a successor would map.
///
/// # Errors
///
/// There is no memory, or no eventfd.
pub fn still(
    pv: Arc<FileVolume>,
    memory: File,
    chunks: u32,
    above: bool,
) -> Result<Arc<dyn Volume>, String> {
    let (pool, pv_uuid) = (Uuid([1; 16]), Uuid([2; 16]));
    let shadow = Shadow::map(memory, &[((pv_uuid, chunks), true)])?;
    let there = |chunk| Way::There(ChunkId { pv: 0, chunk });
    for chunk in 0..chunks {
        shadow.keep(&(ChunkId { pv: 0, chunk }, 1, [u32::MAX; BLOCKS / 32]));
    }
    let open = OpenPv::new(pv, "pv");
    let shared = Shared::new("still", (pool, false), (vec![Some(open)], Vec::new()), shadow);
    let count = if above { chunks_above(chunks) } else { chunks };
    let of = |chunk| if above { Way::Ask } else { there(chunk) };
    let table = Table::new(1, (0..count).map(of));
    if above {
        let space = Space::new(1, (0..count).map(|_| Way::Zeros), false);
        let head = Space::new(2, (0..chunks).map(there), true);
        for vchunk in 0..count {
            let parts = (0..PARTS).map(|part| {
                let part = u64::from(vchunk) * PARTS + part;
                KeptPart { layer: 2, part, slot: part as u32, present: u64::MAX }
            });
            let parts: Vec<KeptPart> = parts.collect();
            let block = shared.shadow.parts.keep_all((2, vchunk), &parts)?;
            head.reveal(vchunk, Some(block));
        }
        let chain = Chain::of([Arc::new(head), Arc::new(space)].into_iter());
        table.show_chain(Some(Arc::new(chain)));
        table.shares.store(true, Relaxed);
    }
    let bell = Bell::new().map_err(|error| error.to_string())?;
    let inbox = Arc::new(Inbox::new(Arc::new(bell)));
    let spec = VolumeSpec::new("still", spec::LuSpec::of("still"));
    let bytes = u64::from(count) * CHUNK_BYTES;
    Ok(Arc::new(LuVolume::new(&spec, Arc::new(shared), Arc::new(table), inbox, bytes)))
}
