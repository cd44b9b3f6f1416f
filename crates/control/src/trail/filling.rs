//! How storage pools filled: what was taken of each tier, hour by hour, from which follows when it will be full.

use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, VecDeque};

const HOUR: u64 = 3_600_000;
const DAY: u64 = 24 * HOUR;
const WEEK: u64 = 7 * DAY;

/// What was taken of each tier at one moment, in bytes.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Sample {
    at_ms: u64,
    taken: BTreeMap<String, u64>,
}

/// The samples of pools, by UUID, oldest first.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub(super) struct Filling(BTreeMap<String, VecDeque<Sample>>);

impl Filling {
    /// What is taken of a pool now. Whether that is kept: once in an hour, for a week.
    pub(super) fn sample(&mut self, pool: &str, at_ms: u64, taken: BTreeMap<String, u64>) -> bool {
        let samples = self.0.entry(pool.to_owned()).or_default();
        // The clock was set back.
        samples.retain(|sample| sample.at_ms <= at_ms);
        if samples.back().is_some_and(|last| at_ms - last.at_ms < HOUR) {
            return false;
        }
        samples.retain(|sample| at_ms - sample.at_ms <= WEEK + HOUR);
        samples.push_back(Sample { at_ms, taken });
        true
    }

    /// Pools that are gone are forgotten. Whether there was one.
    pub(super) fn retain(&mut self, is_there: impl Fn(&str) -> bool) -> bool {
        let before = self.0.len();
        self.0.retain(|pool, _| is_there(pool));
        self.0.len() < before
    }

    /// Seconds until a tier is full, at the pace of the last day or of the last week, whichever is faster. Nothing where it was not seen for a day, or
    /// has not grown.
    pub(super) fn left_s(
        &self,
        (pool, tier): (&str, &str),
        at_ms: u64,
        (taken, free): (u64, u64),
    ) -> Option<u64> {
        let samples = self.0.get(pool)?;
        let left = |window: u64| {
            let seen = samples.iter().filter_map(|sample| {
                Some((at_ms.checked_sub(sample.at_ms)?, *sample.taken.get(tier)?))
            });
            let (age, then) = seen.into_iter().find(|(age, _)| *age <= window + HOUR / 2)?;
            let grown = taken.checked_sub(then).filter(|grown| *grown > 0 && age >= DAY - HOUR)?;
            let left = u128::from(free) * u128::from(age) / u128::from(grown) / 1000;
            Some(u64::try_from(left).unwrap_or(u64::MAX))
        };
        left(DAY).into_iter().chain(left(WEEK)).min()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One pool of one tier, of which so much was taken, hour by hour.
    fn filled(hours: impl IntoIterator<Item = (u64, u64)>) -> Filling {
        let mut filling = Filling::default();
        for (hour, taken) in hours {
            filling.sample("p", hour * HOUR, [("SYSTEM".to_owned(), taken)].into());
        }
        filling
    }

    #[test]
    fn when_a_tier_is_full_follows_from_the_faster_of_a_day_and_a_week() {
        let left = |filling: &Filling, hour: u64, taken, free| {
            filling.left_s(("p", "SYSTEM"), hour * HOUR, (taken, free))
        };
        let even = filled((0..=240).map(|hour| (hour, 10 * hour)));
        assert_eq!(left(&even, 240, 2400, 1200), Some(120 * 3600));
        assert_eq!(left(&even, 240, 2400, 0), Some(0));
        // A day on which ten times as much came.
        let late =
            filled((0..=168).map(|hour| {
                (hour, if hour <= 144 { 10 * hour } else { 1440 + 100 * (hour - 144) })
            }));
        assert_eq!(left(&late, 168, 3840, 1200), Some(12 * 3600));
        // A quiet day behind a week of growth.
        let quiet = filled((0..=168).map(|hour| (hour, 10 * hour.min(144))));
        assert_eq!(left(&quiet, 168, 1440, 1440), Some(168 * 3600));
        for (filling, hour, taken) in [
            (filled((0..20).map(|hour| (hour, hour))), 20, 20),
            (filled((0..100).map(|hour| (hour, 500))), 100, 500),
            (filled((0..100).map(|hour| (hour, 500 - hour))), 100, 400),
            (filled([(0, 10)]), 400, 900),
        ] {
            assert_eq!(left(&filling, hour, taken, 1000), None, "{hour}");
        }
        assert_eq!(even.left_s(("p", "fast"), 240 * HOUR, (1, 1)), None);
        assert_eq!(even.left_s(("q", "SYSTEM"), 240 * HOUR, (1, 1)), None);
    }

    #[test]
    fn a_week_is_kept_and_a_clock_that_is_set_back_takes_its_future_along() {
        let mut filling = filled((0..1000).map(|hour| (hour, hour)));
        assert_eq!(filling.0["p"].len(), 170);
        let taken = || BTreeMap::from([("SYSTEM".to_owned(), 7)]);
        assert!(!filling.sample("p", 999 * HOUR + HOUR / 2, taken()));
        assert!(!filling.sample("p", 900 * HOUR - 1, taken()));
        assert_eq!(filling.0["p"].back().map(|sample| sample.at_ms), Some(899 * HOUR));
        assert!(filling.sample("q", 5, taken()));
        assert!(filling.retain(|pool| pool == "q") && !filling.retain(|pool| pool == "q"));
    }
}
