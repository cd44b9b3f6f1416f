//! A latency histogram whose recording costs a few instructions.
//!
//! Log-linear: every power of two is cut into `SUB` equal steps, so that a value is known to 1/64 of itself (1.6 %) from
//! one tick to the full range of `u64`. (That of the statistics, `protocol::stats::Histogram`, lies in shared memory: small, and to an eighth.) Values are ticks of [`memory::clock`]; they become nanoseconds only in a
//! [`Latency`] summary. One thread owns a histogram and records without locks or allocation; merging is for after the run.

use memory::clock;
use serde::Serialize;

/// log2 of the steps in each power of two.
const SUB_BITS: u32 = 6;
/// Steps in each power of two.
const SUB: usize = 1 << SUB_BITS;
/// Values below `SUB` have a bucket each; each of the remaining powers of two has `SUB`.
const BUCKETS: usize = SUB * (64 - SUB_BITS as usize + 1);

/// Counts of values by log-linear bucket, with the exact minimum, maximum and sum.
#[derive(Clone)]
pub struct Histogram {
    counts: Box<[u64]>,
    count: u64,
    sum: u64,
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Self {
        Self::new()
    }
}

#[inline]
fn bucket_of(value: u64) -> usize {
    // A value v with its highest bit at position e >= SUB_BITS lies in power e - SUB_BITS + 1; the SUB_BITS bits below the highest
    // choose the step. Smaller values are their own bucket, which is the same formula with power 0.
    let power = (64 - (value | (SUB as u64 - 1)).leading_zeros()) - SUB_BITS;
    // Below 2 * SUB after the shift, and power <= 58: no truncation.
    (power as usize * SUB) + (value >> power.saturating_sub(1)) as usize
        - if power == 0 { 0 } else { SUB }
}

/// The largest value that falls into a bucket.
fn upper_bound(bucket: usize) -> u64 {
    if bucket < SUB {
        return bucket as u64;
    }
    let power = bucket / SUB - 1;
    let step = (bucket % SUB + SUB) as u64;
    // step < 2^7 and power <= 57: the shift keeps every bit; the last bucket ends at u64::MAX.
    ((step << power) - 1).wrapping_add(1 << power)
}

impl Histogram {
    /// An empty histogram; 30 KiB.
    #[must_use]
    pub fn new() -> Self {
        Self {
            counts: vec![0; BUCKETS].into_boxed_slice(),
            count: 0,
            sum: 0,
            min: u64::MAX,
            max: 0,
        }
    }

    /// Counts one value.
    #[inline]
    pub fn record(&mut self, value: u64) {
        self.counts[bucket_of(value)] += 1;
        self.count += 1;
        self.sum = self.sum.wrapping_add(value);
        self.min = self.min.min(value);
        self.max = self.max.max(value);
    }

    /// Adds another histogram's counts.
    pub fn merge(&mut self, other: &Histogram) {
        for (mine, theirs) in self.counts.iter_mut().zip(&other.counts) {
            *mine += theirs;
        }
        self.count += other.count;
        self.sum = self.sum.wrapping_add(other.sum);
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.counts.fill(0);
        (self.count, self.sum, self.min, self.max) = (0, 0, u64::MAX, 0);
    }

    /// How many values were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The value that a fraction `p` (0 to 1) of all values do not exceed, to 1.6 %; 0 when empty.
    #[must_use]
    pub fn quantile(&self, p: f64) -> u64 {
        if self.count == 0 {
            return 0;
        }
        // Counts stay far below 2^53, where f64 is exact.
        let rank = ((self.count as f64 * p).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        for (bucket, count) in self.counts.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return upper_bound(bucket).clamp(self.min, self.max);
            }
        }
        self.max
    }

    /// The summary in nanoseconds.
    #[must_use]
    pub fn summary(&self) -> Latency {
        if self.count == 0 {
            return Latency::default();
        }
        Latency {
            count: self.count,
            min_ns: clock::to_ns(self.min),
            mean_ns: clock::to_ns(self.sum) as f64 / self.count as f64,
            p50_ns: clock::to_ns(self.quantile(0.5)),
            p90_ns: clock::to_ns(self.quantile(0.9)),
            p99_ns: clock::to_ns(self.quantile(0.99)),
            p999_ns: clock::to_ns(self.quantile(0.999)),
            max_ns: clock::to_ns(self.max),
        }
    }
}

/// What a histogram says, in nanoseconds. All zero when nothing was recorded.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Latency {
    /// Values recorded.
    pub count: u64,
    /// Smallest, exact.
    pub min_ns: u64,
    /// Arithmetic mean, exact.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 90 % are at most this.
    pub p90_ns: u64,
    /// 99 % are at most this.
    pub p99_ns: u64,
    /// 99.9 % are at most this.
    pub p999_ns: u64,
    /// Largest, exact.
    pub max_ns: u64,
}

#[cfg(test)]
mod tests;
