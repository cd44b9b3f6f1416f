//! The model of a slow disk: who is served when. Pure: the time is an argument.

use spec::{DelaySpec, Jitter};

use memory::random::Random;

/// When a request is served, in nanoseconds of the model's clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Service {
    /// When it gets a place; later than now if all are taken.
    pub starts: u64,
    /// When it is over.
    pub ends: u64,
}

/// The state of the model.
#[derive(Debug, Clone)]
pub struct Spindle {
    min_ns: u64,
    span_ns: u64,
    jitter: Jitter,
    random: Random,
    /// When each place of the queue is free again; empty without a bound.
    free_at: Vec<u64>,
}

impl Spindle {
    /// A disk that has nothing to do.
    #[must_use]
    pub fn new(spec: &DelaySpec) -> Spindle {
        let ns = |us: u64| us.saturating_mul(1000);
        Spindle {
            min_ns: ns(spec.min_us),
            span_ns: ns(spec.max_us.saturating_sub(spec.min_us)),
            jitter: spec.jitter,
            random: Random::new(spec.seed),
            free_at: vec![0; spec.depth as usize],
        }
    }

    /// A request arrives at `now`.
    pub fn arrive(&mut self, now: u64) -> Service {
        let time = self.service_ns();
        match self.free_at.iter_mut().min() {
            None => Service { starts: now, ends: now.saturating_add(time) },
            Some(place) => {
                let starts = (*place).max(now);
                *place = starts.saturating_add(time);
                Service { starts, ends: *place }
            }
        }
    }

    fn service_ns(&mut self) -> u64 {
        let extra = match self.jitter {
            Jitter::Uniform => self.random.below(self.span_ns.saturating_add(1)),
            Jitter::Normal => {
                let part = self.span_ns / 4 + 1;
                (0..4).map(|_| self.random.below(part)).sum()
            }
        };
        self.min_ns.saturating_add(extra.min(self.span_ns))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn spec(depth: u32, jitter: Jitter, seed: u64) -> DelaySpec {
        DelaySpec { min_us: 1, max_us: 9, depth, seed, jitter }
    }

    proptest! {
        #[test]
        fn service_times_are_in_range_and_the_depth_is_never_exceeded(
            depth in 0_u32..6,
            normal: bool,
            seed: u64,
            gaps in prop::collection::vec(0_u64..4000, 1..200),
        ) {
            let jitter = if normal { Jitter::Normal } else { Jitter::Uniform };
            let mut spindle = Spindle::new(&spec(depth, jitter, seed));
            let (mut now, mut served) = (0, Vec::<Service>::new());
            for gap in gaps {
                now += gap;
                let service = spindle.arrive(now);
                prop_assert!(service.starts >= now);
                let time = service.ends - service.starts;
                prop_assert!((1000..=9000).contains(&time), "{time}");
                let together = served
                    .iter()
                    .filter(|s| s.starts <= service.starts && s.ends > service.starts)
                    .count();
                prop_assert!(depth == 0 || together < depth as usize);
                if depth == 0 {
                    prop_assert_eq!(service.starts, now);
                }
                served.push(service);
            }
        }

        #[test]
        fn a_seed_says_it_all(seed: u64) {
            let spec = spec(3, Jitter::Uniform, seed);
            let (mut a, mut b) = (Spindle::new(&spec), Spindle::new(&spec));
            for now in 0..50 {
                prop_assert_eq!(a.arrive(now * 700), b.arrive(now * 700));
            }
        }
    }

    #[test]
    fn requests_overtake_each_other() {
        let mut spindle = Spindle::new(&spec(0, Jitter::Uniform, 1));
        let ends: Vec<u64> = (0..100).map(|_| spindle.arrive(0).ends).collect();
        assert!(ends.windows(2).any(|pair| pair[1] < pair[0]));
    }
}
