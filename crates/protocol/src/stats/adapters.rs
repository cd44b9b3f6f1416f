//! Slots of adapters: what is one figure for all queues of a client, and no sum of theirs.

use super::{QueueCounter, QueueStats, StatsRegion, slot};
use std::sync::atomic::Ordering::Relaxed;

/// The figures of one adapter. Written under the lock of whoever keeps them.
#[derive(Debug, Clone, Copy)]
pub struct AdapterStats(QueueStats);

impl AdapterStats {
    /// Most commands that were active at once, on all queues together.
    #[must_use]
    pub fn active_max(self) -> u64 {
        self.0.get(QueueCounter::ActiveMax)
    }

    /// Sets it, and when that was, in milliseconds since 1970.
    pub fn set_active_max(self, commands: u64, at_ms: u64) {
        self.0.words[slot::QUEUE].store(at_ms, Relaxed);
        self.0.set(QueueCounter::ActiveMax, commands);
    }
}

impl StatsRegion {
    /// Takes a slot for an adapter, all figures 0; `None` when all are taken.
    ///
    /// # Panics
    ///
    /// When the name is longer than [`super::NAME_BYTES_MAX`].
    #[must_use]
    pub fn adapter(&self, adapter: &str) -> Option<AdapterStats> {
        self.take(adapter, slot::OF_ADAPTER, 0).map(AdapterStats)
    }

    /// Gives an adapter's slot back. Nobody may write to it any more.
    pub fn release_adapter(&self, adapter: AdapterStats) {
        self.release(adapter.0);
    }
}
