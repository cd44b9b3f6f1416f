//! Rates and shares, on the caller's time.

/// A rate with what may come at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Frames or bytes in a second; 0 lets nothing through but the first burst.
    pub per_second: u64,
    /// So many at once.
    pub burst: u64,
}

/// A token bucket: one number, the instant at which it is full again.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bucket {
    rate: Rate,
    full_at: u64,
}

impl Bucket {
    pub(crate) fn new(rate: Rate) -> Bucket {
        Bucket { rate, full_at: 0 }
    }

    fn nanoseconds(&self, amount: u64) -> u64 {
        amount.saturating_mul(1_000_000_000) / self.rate.per_second.max(1)
    }

    /// Takes `amount` if anything is left. The last may overdraw, and is paid for afterwards, so a frame larger than the burst
    /// passes and the rate holds.
    pub(crate) fn take(&mut self, now_ns: u64, amount: u64) -> bool {
        let full_at = self.full_at.max(now_ns);
        let passes = full_at - now_ns < self.nanoseconds(self.rate.burst);
        if passes {
            self.full_at = full_at.saturating_add(self.nanoseconds(amount));
        }
        passes
    }
}

/// One queue's share of its channel, by deficit round robin (Shreedhar and Varghese, 1995): over turns, queues that always have something to
/// send get bytes as their weights are, whatever the size of their frames.
#[derive(Debug, Clone, Copy)]
pub struct Share {
    weight: u32,
    left: i64,
}

impl Share {
    /// Bytes of one turn for a weight of 1.
    pub const QUANTUM_BYTES: i64 = 64 * 1024;

    /// A share of that weight, 1 or more.
    #[must_use]
    pub fn new(weight: u32) -> Share {
        Share { weight: weight.max(1), left: 0 }
    }

    /// A turn begins.
    pub fn begin(&mut self) {
        self.left = (self.left + i64::from(self.weight) * Share::QUANTUM_BYTES)
            .min(i64::from(self.weight) * Share::QUANTUM_BYTES);
    }

    /// Takes a frame's bytes if anything is left of the turn. What the last one overdraws is missing in the next turn.
    pub fn take(&mut self, bytes: usize) -> bool {
        let passes = self.left > 0;
        if passes {
            self.left -= bytes as i64;
        }
        passes
    }
}
