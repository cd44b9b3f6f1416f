//! Rates, on the caller's time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A rate with what may come at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Frames or bytes in a second; 0 lets nothing through but the first burst.
    pub per_second: u64,
    /// So many at once.
    pub burst: u64,
}

/// A token bucket: one number, the instant at which it is full again. Clones are the same bucket, so that a port whose queues are on several channels
/// has its rate once.
#[derive(Debug, Clone)]
pub struct Meter(Arc<Bucket>);

#[derive(Debug)]
struct Bucket {
    rate: Rate,
    full_at: AtomicU64,
}

/// Meters are as their rates are, however full.
impl PartialEq for Meter {
    fn eq(&self, other: &Meter) -> bool {
        self.0.rate == other.0.rate
    }
}

impl Eq for Meter {}

impl Meter {
    /// A full bucket.
    #[must_use]
    pub fn new(rate: Rate) -> Meter {
        Meter(Arc::new(Bucket { rate, full_at: AtomicU64::new(0) }))
    }

    fn nanoseconds(&self, amount: u64) -> u64 {
        let ns = u128::from(amount) * 1_000_000_000 / u128::from(self.0.rate.per_second.max(1));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Takes `amount` if anything is left. The last may overdraw, and is paid for afterwards, so a frame larger than the burst
    /// passes and the rate holds.
    pub(crate) fn take(&self, now_ns: u64, amount: u64) -> bool {
        // A burst that is shorter than a nanosecond is one all the same, or nothing would ever pass.
        let (burst, cost) = (self.nanoseconds(self.0.rate.burst).max(1), self.nanoseconds(amount));
        let taken = |full_at: u64| {
            let full_at = full_at.max(now_ns);
            (full_at - now_ns < burst).then(|| full_at.saturating_add(cost))
        };
        // Relaxed: the number is all there is to it.
        self.0.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken).is_ok()
    }
}

/// What bounds the frames of a port in one direction. Clones share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limit(Arc<[Option<Meter>; 2]>);

impl Limit {
    /// Frames and bytes; none: no bound. Of a frame that is to be cut, both are counted as it is.
    #[must_use]
    pub fn new(frames: Option<Rate>, bytes: Option<Rate>) -> Option<Limit> {
        let meters = [frames.map(Meter::new), bytes.map(Meter::new)];
        meters.iter().any(Option::is_some).then(|| Limit(Arc::new(meters)))
    }

    /// Whether a frame of so many bytes passes.
    #[cold]
    pub(crate) fn passes(&self, now_ns: u64, bytes: usize) -> bool {
        let [frames, all] = &*self.0;
        frames.as_ref().is_none_or(|meter| meter.take(now_ns, 1))
            && all.as_ref().is_none_or(|meter| meter.take(now_ns, bytes as u64))
    }
}
