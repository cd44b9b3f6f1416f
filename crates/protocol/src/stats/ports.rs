//! What was done on a port, which stays with it when adapters go elsewhere.
//!
//! Queues count for their adapter, whichever port it is on. What an adapter did on the port where it is now is what its queues have counted,
//! less what it did on others: its *parts*. A part is written when the adapter leaves the port. When the adapter goes for good, the port
//! takes over its parts. So nothing is counted twice, no channel counts for a port, and a port's counters only grow.

use super::{AdapterStats, Kind, Latency, QUEUE_WORDS, QueueCounter, QueueStats, StatsRegion};
use super::{CHANNEL_WORDS, HEADER_WORDS, bump, header, histogram, name, slot};
use std::sync::atomic::{AtomicU64, Ordering, Ordering::Relaxed};

/// The words of a slot that only grow.
pub(super) fn growing() -> impl Iterator<Item = usize> {
    let counters = QueueCounter::ALL.iter().filter(|counter| counter.info().kind == Kind::Counter);
    let counters = counters.map(|counter| slot::COUNTERS + *counter as usize);
    counters.chain(slot::HISTOGRAMS..slot::HISTOGRAMS + Latency::COUNT * histogram::WORDS)
}

fn add(to: QueueStats, word: usize, by: u64) {
    if by > 0 {
        bump(&to.words[word], by);
    }
}

/// The figures of a port that are no sum of its adapters'. Written under the lock of whoever keeps them.
#[derive(Debug, Clone, Copy)]
pub struct PortStats(QueueStats);

impl PortStats {
    /// Most commands that were active at once, of all its adapters together.
    #[must_use]
    pub fn active_max(self) -> u64 {
        self.0.get(QueueCounter::ActiveMax)
    }

    /// When that was, or when its marks began, in milliseconds since 1970; 0: nobody keeps them.
    #[must_use]
    pub fn active_max_at_ms(self) -> u64 {
        self.0.words[slot::QUEUE].load(Relaxed)
    }

    /// Sets both.
    pub fn set_active_max(self, commands: u64, at_ms: u64) {
        self.0.words[slot::QUEUE].store(at_ms, Relaxed);
        self.0.set(QueueCounter::ActiveMax, commands);
    }

    /// Most commands that waited for an element at once, of all its adapters together.
    #[must_use]
    pub fn pending_max(self) -> u64 {
        self.0.get(QueueCounter::PendingMax)
    }

    /// Sets it.
    pub fn set_pending_max(self, commands: u64) {
        self.0.set(QueueCounter::PendingMax, commands);
    }

    /// Most active commands that waited in the server at once, of all its adapters together.
    #[must_use]
    pub fn waiting_max(self) -> u64 {
        self.0.get(QueueCounter::WaitingMax)
    }

    /// Sets it.
    pub fn set_waiting_max(self, commands: u64) {
        self.0.set(QueueCounter::WaitingMax, commands);
    }
}

impl StatsRegion {
    /// An adapter is on a port from now on, or on none. What it did so far stays with the one that it leaves. None of its queues runs.
    /// Without a free slot for that, it goes along. The figures of the port, if it is on one and there was a slot.
    ///
    /// # Panics
    ///
    /// When the name is longer than [`super::NAME_BYTES_MAX`].
    pub fn map_adapter(&self, adapter: AdapterStats, port: Option<&str>) -> Option<PortStats> {
        let place = &adapter.slot().words[slot::CHANNEL];
        let port = port.and_then(|port| {
            self.find(slot::OF_PORT, port).or_else(|| self.take(port, slot::OF_PORT, 0))
        });
        let next = port.map_or(0, |port| port.index as u64 + 1);
        if place.load(Relaxed) != next {
            self.in_one(|| {
                self.leave_port(adapter);
                place.store(next, Relaxed);
            });
        }
        port.map(PortStats)
    }

    /// The figures of a port; `None`: no adapter was ever mapped to it.
    #[must_use]
    pub fn port(&self, name: &str) -> Option<PortStats> {
        self.find(slot::OF_PORT, name).map(PortStats)
    }

    /// Writes down what an adapter did on the port where it is, or on none.
    fn leave_port(&self, adapter: AdapterStats) {
        let own = adapter.slot();
        let (known, port) = (name(own.words), own.words[slot::CHANNEL].load(Relaxed));
        let parts = self.all(slot::OF_PART, &known);
        let mut counted = self.all(slot::OF_QUEUE, &known);
        counted.push(own);
        let sum = |slots: &[QueueStats], word: usize| -> u64 {
            slots.iter().map(|slot| slot.words[word].load(Relaxed)).sum()
        };
        let did = |word| (word, sum(&counted, word).saturating_sub(sum(&parts, word)));
        let did: Vec<(usize, u64)> = growing().map(did).filter(|(_, count)| *count > 0).collect();
        if did.is_empty() {
            return;
        }
        let here = parts.iter().find(|part| part.words[slot::CHANNEL].load(Relaxed) == port);
        let Some(here) = here.copied().or_else(|| self.take(&known, slot::OF_PART, 0)) else {
            return;
        };
        here.words[slot::CHANNEL].store(port, Relaxed);
        did.into_iter().for_each(|(word, count)| bump(&here.words[word], count));
    }

    /// What a queue has counted that its adapter has no more.
    pub(super) fn retire(&self, queue: QueueStats) {
        self.in_one(|| {
            if let Some(adapter) = self.find(slot::OF_ADAPTER, &name(queue.words)) {
                growing().for_each(|word| add(adapter, word, queue.words[word].load(Relaxed)));
            }
            self.free(queue);
        });
    }

    /// The ports take over what an adapter did that goes, and has no queues any more.
    pub(super) fn bequeath(&self, adapter: AdapterStats) {
        self.in_one(|| {
            self.leave_port(adapter);
            for part in self.all(slot::OF_PART, &name(adapter.slot().words)) {
                let port = part.words[slot::CHANNEL].load(Relaxed);
                if let Some(port) = (port as usize).checked_sub(1) {
                    let port = QueueStats { words: self.words_of(port), index: port };
                    growing().for_each(|word| add(port, word, part.words[word].load(Relaxed)));
                }
                self.free(part);
            }
            let own = adapter.slot();
            growing().for_each(|word| own.words[word].store(0, Relaxed));
            own.words[slot::CHANNEL].store(0, Relaxed);
        });
    }

    /// Counts go from one slot to another: who reads meanwhile reads again.
    fn in_one(&self, work: impl FnOnce()) {
        let _moving = self.moving.lock().expect("no panic while the lock is held");
        let generation = &self.words[header::GENERATION];
        bump(generation, 1);
        std::sync::atomic::fence(Ordering::SeqCst);
        work();
        std::sync::atomic::fence(Ordering::SeqCst);
        bump(generation, 1);
    }

    pub(super) fn words_of(&self, index: usize) -> &'static [AtomicU64; QUEUE_WORDS] {
        let start = HEADER_WORDS + self.channels * CHANNEL_WORDS + index * QUEUE_WORDS;
        self.words[start..start + QUEUE_WORDS].try_into().expect("length is QUEUE_WORDS")
    }

    /// All slots of a kind, LUNs' excepted, that an adapter has.
    fn all(&self, kind: u64, adapter: &str) -> Vec<QueueStats> {
        self.slots().named.get(&(kind, adapter.to_owned())).cloned().unwrap_or_default()
    }

    /// The slot of an adapter or a port.
    pub(super) fn find(&self, kind: u64, known: &str) -> Option<QueueStats> {
        self.slots().named.get(&(kind, known.to_owned()))?.first().copied()
    }
}
