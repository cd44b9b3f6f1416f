//! When to start a data plane again that died.

use std::time::{Duration, Instant};

/// The first wait after a second failure in a row.
const FIRST: Duration = Duration::from_millis(100);
/// The longest wait.
const LONGEST: Duration = Duration::from_secs(10);
/// A data plane that ran this long is in good health: its death is the first of a new row.
const HEALTHY: Duration = Duration::from_secs(30);

/// Doubles the wait from failure to failure. The first one is answered at once: clients are waiting.
#[derive(Debug, Clone)]
pub struct Backoff {
    failures: u32,
    started: Option<Instant>,
}

impl Backoff {
    /// No failures yet.
    pub fn new() -> Backoff {
        Backoff { failures: 0, started: None }
    }

    /// A start is being made.
    pub fn started(&mut self, now: Instant) {
        self.started = Some(now);
    }

    /// It failed or died: how long to wait before the next start.
    pub fn next(&mut self, now: Instant) -> Duration {
        if self.started.is_none_or(|at| now.saturating_duration_since(at) >= HEALTHY) {
            self.failures = 0;
        }
        let wait = match self.failures {
            0 => Duration::ZERO,
            n => FIRST.saturating_mul(1 << (n - 1).min(16)).min(LONGEST),
        };
        self.failures = self.failures.saturating_add(1);
        wait
    }
}

impl Default for Backoff {
    fn default() -> Backoff {
        Backoff::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_death_is_answered_at_once_and_a_row_of_them_ever_later() {
        let start = Instant::now();
        let mut backoff = Backoff::new();
        backoff.started(start);
        let waits: Vec<u128> =
            (0..10).map(|n| backoff.next(start + Duration::from_secs(n)).as_millis()).collect();
        assert_eq!(waits, [0, 100, 200, 400, 800, 1600, 3200, 6400, 10_000, 10_000]);
    }

    #[test]
    fn a_long_life_forgives() {
        let start = Instant::now();
        let mut backoff = Backoff::new();
        backoff.started(start);
        backoff.next(start);
        assert!(!backoff.next(start).is_zero());
        assert!(backoff.next(start + HEALTHY).is_zero());
    }
}
