//! Log-linear histograms of nanoseconds: eight buckets in each power of two, so a value is known within 12.5 %.

/// Values below `1 << FIRST_BIT` ns share the first bucket.
const FIRST_BIT: u32 = 6;
/// Values of `1 << LAST_BIT` ns (68 s) and more share the last bucket.
const LAST_BIT: u32 = 36;
const SUB_BITS: u32 = 3;

/// Number of buckets.
pub const BUCKETS: usize = ((LAST_BIT - FIRST_BIT) << SUB_BITS) as usize;
/// In memory: the sum, then the buckets.
pub(crate) const WORDS: usize = 1 + BUCKETS;

/// The bucket that counts a value.
#[inline]
#[must_use]
pub fn bucket_of(ns: u64) -> usize {
    let value = ns.clamp(1 << FIRST_BIT, (1 << LAST_BIT) - 1);
    // Octave and the three bits below the leading one, which is a shift and a subtraction: the leading one itself adds
    // one octave, hence `FIRST_BIT + 1`.
    let bit = 63 - value.leading_zeros();
    (((bit - FIRST_BIT) << SUB_BITS) as usize) + ((value >> (bit - SUB_BITS)) as usize & 7)
}

/// The first value, in nanoseconds, that belongs to a later bucket.
#[must_use]
pub fn bucket_upper_ns(bucket: usize) -> u64 {
    let (octave, sub) = (bucket as u32 >> SUB_BITS, bucket as u64 & 7);
    (8 + sub + 1) << (octave + FIRST_BIT - SUB_BITS)
}

/// A copy of a histogram.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Histogram {
    /// Sum of all values, in nanoseconds.
    pub sum_ns: u64,
    /// Count of each bucket.
    pub buckets: Vec<u64>,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { sum_ns: 0, buckets: vec![0; BUCKETS] }
    }
}

impl Histogram {
    /// How many values were recorded.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().sum()
    }

    /// Mean in nanoseconds; 0 when empty.
    #[must_use]
    pub fn mean_ns(&self) -> u64 {
        self.sum_ns.checked_div(self.count()).unwrap_or(0)
    }

    /// The value, in nanoseconds, that the share `quantile` (0 to 1) of the values does not exceed: the upper end of its bucket, so never
    /// too low and at most 12.5 % too high. 0 when empty.
    #[must_use]
    pub fn quantile_ns(&self, quantile: f64) -> u64 {
        let count = self.count();
        let rank = ((quantile * count as f64).ceil() as u64).clamp(1, count.max(1));
        let mut seen = 0;
        for (bucket, &n) in self.buckets.iter().enumerate() {
            seen += n;
            if n > 0 && seen >= rank {
                return bucket_upper_ns(bucket) - 1;
            }
        }
        0
    }

    /// Adds another histogram.
    pub fn merge(&mut self, other: &Histogram) {
        self.sum_ns = self.sum_ns.wrapping_add(other.sum_ns);
        for (ours, theirs) in self.buckets.iter_mut().zip(&other.buckets) {
            *ours += theirs;
        }
    }

    /// What was recorded since `earlier`, a previous copy of the same histogram.
    #[must_use]
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let buckets =
            self.buckets.iter().zip(&earlier.buckets).map(|(now, then)| now.saturating_sub(*then));
        Histogram { sum_ns: self.sum_ns.wrapping_sub(earlier.sum_ns), buckets: buckets.collect() }
    }
}
