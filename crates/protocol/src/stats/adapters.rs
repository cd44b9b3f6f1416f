//! Slots of adapters: what is one figure for all queues of a client, and no sum of theirs.

use super::{QueueCounter, QueueStats, StatsRegion, bump, slot};
use std::sync::atomic::Ordering::Relaxed;

/// A shortage of elements that comes again within so many milliseconds has gone on.
pub const SHORT_MS: u64 = 1000;
/// When a shortage ended that has not.
pub const SHORT_STILL: u64 = u64::MAX;

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

    /// Most commands that waited for an element at once, on all queues together.
    #[must_use]
    pub fn pending_max(self) -> u64 {
        self.0.get(QueueCounter::PendingMax)
    }

    /// Sets it.
    pub fn set_pending_max(self, commands: u64) {
        self.0.set(QueueCounter::PendingMax, commands);
    }

    /// Most active commands that waited in the server at once, on all queues together.
    #[must_use]
    pub fn waiting_max(self) -> u64 {
        self.0.get(QueueCounter::WaitingMax)
    }

    /// Sets it.
    pub fn set_waiting_max(self, commands: u64) {
        self.0.set(QueueCounter::WaitingMax, commands);
    }

    /// When its port began to be short of elements for it, and when that ended ([`SHORT_STILL`]), both in milliseconds since 1970; 0 for never.
    #[must_use]
    pub fn short(self) -> (u64, u64) {
        let word = |word: usize| self.0.words[word].load(Relaxed);
        (word(slot::SHORT_SINCE), word(slot::SHORT_END))
    }

    /// Its port is short of elements for it, or was until then.
    pub fn set_short(self, since_ms: u64, end_ms: u64) {
        self.0.words[slot::SHORT_SINCE].store(since_ms, Relaxed);
        self.0.words[slot::SHORT_END].store(end_ms, Relaxed);
    }

    /// Another adapter found no element while this one had most beyond its part.
    pub fn holds_up(self) {
        bump(&self.0.words[slot::HOLDS_UP], 1);
    }

    pub(super) fn slot(self) -> QueueStats {
        self.0
    }
}

impl StatsRegion {
    /// The slot of an adapter, all figures 0 where it had none; `None` when all are taken.
    ///
    /// # Panics
    ///
    /// When the name is longer than [`super::NAME_BYTES_MAX`].
    #[must_use]
    pub fn adapter(&self, adapter: &str) -> Option<AdapterStats> {
        self.find(slot::OF_ADAPTER, adapter)
            .or_else(|| self.take(adapter, slot::OF_ADAPTER, 0))
            .map(AdapterStats)
    }

    /// Gives an adapter's slot back, after those of its queues. Nobody may write to it any more. What it did stays with its ports.
    pub fn release_adapter(&self, adapter: AdapterStats) {
        self.bequeath(adapter);
        self.release(adapter.0);
    }
}
