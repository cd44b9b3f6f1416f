//! Slots of LUNs: one for each channel that serves one, while it does. A LUN whose queues move to another channel, or whose client goes,
//! keeps what was counted: its slot rests until the channel serves it again.

use std::collections::BTreeMap;

use super::{Latency, QueueCounter, QueueStats, Slots, Span, StatsRegion, Timed, slot};

/// Slots that rest, by adapter, then target, LUN and channel.
pub(super) type Resting = BTreeMap<String, BTreeMap<Place, QueueStats>>;
/// Target, LUN and channel.
pub(super) type Place = (u8, u16, u32);

/// The counters of one LUN of an adapter on one channel, which alone writes them.
#[derive(Debug, Clone, Copy)]
pub struct LunStats(QueueStats);

impl LunStats {
    /// Adds to a counter.
    #[inline]
    pub fn add(self, counter: QueueCounter, by: u64) {
        self.0.add(counter, by);
    }

    /// The value now.
    #[inline]
    #[must_use]
    pub fn get(self, counter: QueueCounter) -> u64 {
        self.0.get(counter)
    }

    /// Counts reads, or writes, that the volume was asked for, and their times.
    #[inline]
    pub fn record_timed(self, timed: &Timed) {
        self.0.record_timed(timed);
    }

    /// The shortest and the longest times begin again. For whoever writes to the slot.
    pub fn reset_extremes(self) {
        self.0.reset_extremes();
    }

    /// Records `count` commands that took `ns` each.
    #[inline]
    pub fn record(self, which: Latency, ns: u64, count: u64) {
        self.0.record(which, ns, count);
    }

    /// As [`LunStats::record`], for a time whose place in the histograms is known.
    #[inline]
    pub fn record_at(self, which: Latency, span: Span, count: u64) {
        self.0.record_at(which, span, count);
    }
}

impl StatsRegion {
    /// Takes a slot for a LUN that an adapter's client sees, as one channel serves it: each channel has its own, and
    /// is the only one that writes to it. If one rests, its counters go on. Another LUN's resting slot is taken when there is no other;
    /// `None` when all that LUNs may have are in use: the LUN is served all the same, and not counted.
    ///
    /// # Panics
    ///
    /// When the name is longer than [`super::NAME_BYTES_MAX`].
    #[must_use]
    pub fn lun(&self, adapter: &str, target: u8, lun: u16, channel: u32) -> Option<LunStats> {
        if let Some(found) = self.slots().wake(adapter, (target, lun, channel)) {
            return Some(LunStats(found));
        }
        let number = u64::from(target) << 16 | u64::from(lun);
        let stats = self.take(adapter, slot::OF_LUN, number).or_else(|| {
            let any = self.slots().wake_any()?;
            self.release(any);
            self.take(adapter, slot::OF_LUN, number)
        })?;
        stats.set_channel(channel);
        Some(LunStats(stats))
    }

    /// A channel has let go of a LUN that may come back. Nobody may write to the slot any more; it can still be read.
    pub fn rest_lun(&self, adapter: &str, target: u8, lun: u16, channel: u32, stats: LunStats) {
        let mut slots = self.slots();
        let places = slots.resting.entry(adapter.to_owned()).or_default();
        let before = places.insert((target, lun, channel), stats.0);
        drop(slots);
        if let Some(before) = before {
            self.release(before);
        }
    }

    /// The shortest and the longest times of an adapter's LUNs begin again, as far as no channel serves these now.
    pub fn reset_resting_extremes(&self, adapter: &str) {
        if let Some(places) = self.slots().resting.get(adapter) {
            places.values().for_each(|stats| stats.reset_extremes());
        }
    }

    /// Gives the slot of a LUN back that is gone. Nobody may write to it any more.
    pub fn release_lun(&self, lun: LunStats) {
        self.release(lun.0);
    }

    /// Gives the resting slots of an adapter's LUNs back, except of those that stay.
    pub fn keep_luns(&self, adapter: &str, stays: impl Fn(u8, u16) -> bool) {
        let mut gone = Vec::new();
        let mut slots = self.slots();
        if let Some(places) = slots.resting.get_mut(adapter) {
            places.retain(|(target, lun, _), stats| {
                let stays = stays(*target, *lun);
                if !stays {
                    gone.push(*stats);
                }
                stays
            });
            if places.is_empty() {
                slots.resting.remove(adapter);
            }
        }
        drop(slots);
        gone.into_iter().for_each(|stats| self.release(stats));
    }
}

impl Slots {
    fn wake(&mut self, adapter: &str, place: Place) -> Option<QueueStats> {
        self.resting.get_mut(adapter)?.remove(&place)
    }

    fn wake_any(&mut self) -> Option<QueueStats> {
        let places = self.resting.values_mut().find(|places| !places.is_empty())?;
        places.pop_first().map(|(_, stats)| stats)
    }
}
