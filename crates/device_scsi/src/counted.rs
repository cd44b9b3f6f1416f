//! Which LUNs a channel counts: a slot of the statistics for each that any of its queues leads to. The queues of a channel share it, so
//! each of its words has one writer.

use std::collections::BTreeMap;
use std::sync::Arc;

use channel::Adapter;
use protocol::stats::{LunStats, StatsRegion};

/// Address of the adapter, target, LUN.
type Key = (usize, u8, u16);

/// The slots of a channel.
#[derive(Debug, Default)]
pub(crate) struct Counted(BTreeMap<Key, Entry>);

#[derive(Debug)]
struct Entry {
    /// Keeps its address its own.
    adapter: Arc<Adapter>,
    stats: LunStats,
    /// Bindings that have it.
    users: usize,
}

impl Counted {
    /// The slot of a LUN, for one more binding; `None` when LUNs have no slot left.
    pub(crate) fn acquire(
        &mut self,
        adapter: &Arc<Adapter>,
        region: &StatsRegion,
        (target, lun): (u8, u16),
        channel: u32,
    ) -> Option<LunStats> {
        let key = (Arc::as_ptr(adapter).addr(), target, lun);
        if let Some(entry) = self.0.get_mut(&key) {
            entry.users += 1;
            return Some(entry.stats);
        }
        let stats = region.lun(&adapter.name, target, lun, channel)?;
        self.0.insert(key, Entry { adapter: Arc::clone(adapter), stats, users: 1 });
        Some(stats)
    }

    /// A binding that has the slot of a LUN lets go of it. After the last one, the slot is given back if the LUN is gone, and rests
    /// if only the queue is.
    pub(crate) fn release(
        &mut self,
        adapter: &Arc<Adapter>,
        region: &StatsRegion,
        (target, lun): (u8, u16),
        channel: u32,
        gone: bool,
    ) {
        let key = (Arc::as_ptr(adapter).addr(), target, lun);
        let entry = self.0.get_mut(&key).expect("what was acquired is here");
        entry.users -= 1;
        if entry.users > 0 {
            return;
        }
        let Entry { adapter, stats, .. } = self.0.remove(&key).expect("found above");
        match gone {
            true => region.release_lun(stats),
            false => region.rest_lun(&adapter.name, target, lun, channel, stats),
        }
    }
}
