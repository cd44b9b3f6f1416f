//! The arithmetic of a rate limit: a token bucket as a pure function of the time.
//!
//! A bucket is one number, [`full_at`](admit): the instant at which it would be full again if nothing more was taken. Taking
//! an amount moves that instant on by the time in which the rate brings the amount. What is taken may be used as soon as the
//! bucket is no further from full than its burst is long:
//!
//! ```text
//!                     now                    full_at
//! ────────────────────┼───────────────────────┼──────▶ time
//!                     │◀──── empty part ─────▶│            usable when  new full_at - burst <= now
//! ```
//!
//! A request that does not fit is not turned away to try again, which would let small requests overtake a large one for ever. It
//! takes its amount at once, as a debt, and gets the instant at which that is paid. So requests are admitted in the order in
//! which they asked, each has a definite time, and over any span `t` from the start at most `rate * t + burst` is admitted.

use std::sync::atomic::{AtomicU64, Ordering};

/// A rate with the amount that may come at once after a pause.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rate {
    /// Units (requests or bytes) in a second; not 0.
    pub per_second: u64,
    /// Units at once; 0 stands for a tenth of a second's worth.
    pub burst: u64,
}

/// A lane borrows at most what the rate brings in this time, so that with few requests in a second each asks the shared
/// bucket (exact), and with many only one in some hundreds does (cheap). What a lane that falls idle has left over is at most this, too.
const BORROW_NS: u64 = 1_000_000;

/// Takes `cost_ns` worth from a bucket. Returns the new `full_at` and when the taken may be used, `now` at the earliest.
#[must_use]
pub fn admit(full_at: u64, now: u64, cost_ns: u64, burst_ns: u64) -> (u64, u64) {
    let full_at = full_at.max(now).saturating_add(cost_ns);
    (full_at, full_at.saturating_sub(burst_ns).max(now))
}

/// What a lane got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Taken {
    /// When the asked-for amount may be used, in nanoseconds of the bucket's clock.
    pub at: u64,
    /// How much more was lent, to be used without asking.
    pub extra: u64,
}

/// A bucket that the lanes of a volume share.
#[derive(Debug)]
pub struct Bucket {
    full_at: AtomicU64,
    per_second: u64,
    burst_ns: u64,
    batch: u64,
}

impl Bucket {
    /// A full bucket whose clock stands at 0.
    ///
    /// # Panics
    ///
    /// When the rate is 0.
    #[must_use]
    pub fn new(rate: Rate) -> Bucket {
        assert!(rate.per_second > 0, "a rate of 0 admits nothing");
        let per_second = rate.per_second;
        let burst = if rate.burst == 0 { per_second.div_ceil(10) } else { rate.burst };
        let batch = scale(per_second, BORROW_NS, 1_000_000_000).min(burst / 4);
        Bucket {
            full_at: AtomicU64::new(0),
            per_second,
            burst_ns: scale(burst, 1_000_000_000, per_second),
            batch,
        }
    }

    /// The most that is lent beyond what was asked for.
    #[must_use]
    pub fn batch(&self) -> u64 {
        self.batch
    }

    /// How long the rate takes to bring `amount`, rounded up, so that rounding never admits more.
    #[must_use]
    pub fn cost_ns(&self, amount: u64) -> u64 {
        let ns = (u128::from(amount) * 1_000_000_000).div_ceil(u128::from(self.per_second));
        u64::try_from(ns).unwrap_or(u64::MAX)
    }

    /// Takes `amount` at `now`, and a batch more if that is to be had at once.
    pub fn take(&self, now: u64, amount: u64) -> Taken {
        let (exact, more) = (self.cost_ns(amount), self.cost_ns(amount.saturating_add(self.batch)));
        let mut full_at = self.full_at.load(Ordering::Relaxed);
        loop {
            let (mut next, mut at) = admit(full_at, now, more, self.burst_ns);
            let mut extra = self.batch;
            if at > now {
                (next, at) = admit(full_at, now, exact, self.burst_ns);
                extra = 0;
            }
            // Relaxed: the number is all there is to it, no other memory depends on it.
            match self.full_at.compare_exchange_weak(
                full_at,
                next,
                Ordering::Relaxed,
                Ordering::Relaxed,
            ) {
                Ok(_) => return Taken { at, extra },
                Err(current) => full_at = current,
            }
        }
    }

    /// Puts back what was lent and not used.
    pub fn give_back(&self, amount: u64) {
        // Rounded down: what comes back is never more than what was taken.
        let ns = scale(amount, 1_000_000_000, self.per_second);
        let less = |full_at: u64| Some(full_at.saturating_sub(ns));
        let result = self.full_at.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less);
        debug_assert!(result.is_ok());
    }
}

/// `value * numerator / denominator`, rounded down, saturating.
fn scale(value: u64, numerator: u64, denominator: u64) -> u64 {
    let product = u128::from(value) * u128::from(numerator) / u128::from(denominator);
    u64::try_from(product).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
