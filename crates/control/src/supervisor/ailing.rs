//! Adapters whose requests fail, by the counters of their queues.

use protocol::stats::QueueCounter;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// What is counted: all errors, and of these the ones for want of space and for want of the file or device.
pub(super) const ERRORS: [QueueCounter; 3] =
    [QueueCounter::Errors, QueueCounter::ErrorsNoSpace, QueueCounter::ErrorsGone];
/// How long an adapter is said to be ailing after its last error.
const AILING_FOR: Duration = Duration::from_secs(60);
/// How often the errors of one adapter become an event.
const EVENT_EVERY: Duration = Duration::from_secs(600);

/// Why an adapter's requests fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ailment {
    /// The file system under the volume is full.
    NoSpace,
    /// The volume's file or device is gone.
    Gone,
    /// Something else.
    Errors,
}

impl Ailment {
    /// In words.
    pub fn as_str(self) -> &'static str {
        match self {
            Ailment::NoSpace => {
                "writes fail because the file system under the volume is full: free some space there"
            }
            Ailment::Gone => "requests fail because the volume's file or device is gone",
            Ailment::Errors => {
                "requests were answered with an error; `trunkline stats` has the numbers"
            }
        }
    }
}

/// What is remembered of the counters.
#[derive(Debug, Default)]
pub(super) struct Errors {
    adapters: BTreeMap<String, Of>,
    /// Whether anybody has looked at the counters.
    begun: bool,
}

#[derive(Debug)]
struct Of {
    counted: [u64; 3],
    /// What failed last, and when.
    last: Option<(Ailment, Instant)>,
    /// When it became an event.
    told: Option<Instant>,
    now: Instant,
}

impl Of {
    fn is_remembered(&self) -> bool {
        let since = |at: Option<Instant>| at.map(|at| self.now.duration_since(at));
        let last = since(self.last.map(|(_, at)| at)).is_some_and(|age| age < AILING_FOR);
        last || since(self.told).is_some_and(|age| age < EVENT_EVERY)
    }
}

impl Errors {
    /// Takes what is counted now, by adapters with a client; gives the events that come of it.
    pub(super) fn take(
        &mut self,
        counted: &BTreeMap<String, [u64; 3]>,
        now: Instant,
    ) -> Vec<(String, String)> {
        // The counters go with the client, and begin anew with the next one; what failed for it is said for a while.
        for (name, of) in &mut self.adapters {
            of.now = now;
            if !counted.contains_key(name) {
                of.counted = [0; 3];
            }
        }
        self.adapters.retain(|name, of| counted.contains_key(name) || of.is_remembered());
        // What was counted before anybody looked is history.
        let begun = std::mem::replace(&mut self.begun, true);
        let mut events = Vec::new();
        for (name, &counted) in counted {
            let first = if begun { [0; 3] } else { counted };
            let new = || Of { counted: first, last: None, told: None, now };
            let of = self.adapters.entry(name.clone()).or_insert_with(new);
            if counted[0] < of.counted[0] {
                of.counted = [0; 3];
            }
            let more = |which: usize| counted[which] > of.counted[which];
            let ailment = match (more(1), more(2), more(0)) {
                (true, _, _) => Some(Ailment::NoSpace),
                (_, true, _) => Some(Ailment::Gone),
                (_, _, true) => Some(Ailment::Errors),
                _ => None,
            };
            let count = counted[0].saturating_sub(of.counted[0]);
            of.counted = counted;
            let Some(ailment) = ailment else { continue };
            let another = of.last.is_none_or(|(last, _)| last != ailment);
            of.last = Some((ailment, now));
            if another || of.told.is_none_or(|told| now.duration_since(told) >= EVENT_EVERY) {
                of.told = Some(now);
                let message = format!("{}; {count} since the last look", ailment.as_str());
                events.push((name.clone(), message));
            }
        }
        events
    }

    /// The adapters whose requests failed of late.
    pub(super) fn ailing(&self) -> BTreeMap<String, Ailment> {
        let ailing = self.adapters.iter().filter_map(|(name, of)| {
            let (ailment, at) = of.last?;
            (of.now.duration_since(at) < AILING_FOR).then(|| (name.clone(), ailment))
        });
        ailing.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_become_one_event_and_are_forgotten_after_a_while() {
        let mut errors = Errors::default();
        let start = Instant::now();
        let mut take = |seconds, counted: [u64; 3]| {
            let now = start + Duration::from_secs(seconds);
            let events = errors.take(&BTreeMap::from([("a".to_owned(), counted)]), now);
            (events.len(), errors.ailing().get("a").copied())
        };
        assert_eq!(take(0, [7, 7, 0]), (0, None), "of before");
        assert_eq!(take(5, [7, 7, 0]), (0, None));
        assert_eq!(take(10, [9, 9, 0]), (1, Some(Ailment::NoSpace)));
        assert_eq!(take(15, [20, 20, 0]), (0, Some(Ailment::NoSpace)), "no flood");
        assert_eq!(take(20, [21, 20, 1]), (1, Some(Ailment::Gone)));
        assert_eq!(take(75, [21, 20, 1]), (0, Some(Ailment::Gone)));
        assert_eq!(take(80, [21, 20, 1]), (0, None));
        assert_eq!(take(700, [22, 20, 2]), (1, Some(Ailment::Gone)));
    }

    #[test]
    fn what_fails_before_an_adapter_s_client_was_looked_at_is_told_and_outlives_the_client() {
        let mut errors = Errors::default();
        let start = Instant::now();
        let mut take = |seconds, counted: Option<u64>| {
            let now = start + Duration::from_secs(seconds);
            let counted = counted.map(|count| ("a".to_owned(), [count, 0, 0]));
            let events = errors.take(&counted.into_iter().collect(), now);
            (events.len(), errors.ailing().get("a").copied())
        };
        assert_eq!(take(0, None), (0, None), "no client yet");
        assert_eq!(take(5, Some(9000)), (1, Some(Ailment::Errors)));
        assert_eq!(take(10, None), (0, Some(Ailment::Errors)), "it has left");
        assert_eq!(take(15, Some(3)), (0, Some(Ailment::Errors)), "the next one, and no flood");
        assert_eq!(take(20, Some(3)), (0, Some(Ailment::Errors)));
        assert_eq!(take(76, Some(3)), (0, None));
        assert_eq!(take(80, Some(1)), (0, Some(Ailment::Errors)), "another after that");
        assert_eq!(take(700, Some(2)), (1, Some(Ailment::Errors)));
        assert_eq!(take(1400, None), (0, None));
        assert!(errors.adapters.is_empty(), "nothing is kept for good");
    }
}
