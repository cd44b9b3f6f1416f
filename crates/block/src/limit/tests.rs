//! Properties of the bucket, alone and shared by lanes that borrow.

use proptest::prelude::*;

use super::*;

/// A lane as [`crate::Limited`] runs it: the credit first, then the bucket.
#[derive(Default)]
struct Borrower {
    credit: u64,
}

impl Borrower {
    /// When `amount` may be used.
    fn pay(&mut self, bucket: &Bucket, now: u64, amount: u64) -> u64 {
        if amount <= self.credit {
            self.credit -= amount;
            return now;
        }
        let taken = bucket.take(now, amount - self.credit);
        self.credit = taken.extra;
        taken.at
    }
}

fn most(rate: Rate, span_ns: u64, slack: u64) -> u128 {
    let burst = if rate.burst == 0 { rate.per_second.div_ceil(10) } else { rate.burst };
    u128::from(rate.per_second) * u128::from(span_ns) / 1_000_000_000
        + u128::from(burst)
        + u128::from(slack)
        + 1
}

proptest! {
    #[test]
    fn no_schedule_gets_more_than_the_limit_and_nobody_starves(
        per_second in prop_oneof![1_u64..50, 1000_u64..2_000_000, 1_000_000_000_u64..20_000_000_000],
        burst in prop_oneof![Just(0_u64), 1_u64..100, 1000_u64..10_000_000],
        steps in prop::collection::vec((0_usize..4, 0_u64..3_000_000, 1_u64..200_000, any::<bool>()), 1..300),
    ) {
        let rate = Rate { per_second, burst };
        let bucket = Bucket::new(rate);
        let mut lanes: [Borrower; 4] = Default::default();
        let (mut now, mut asked, mut last) = (0_u64, 0_u128, 0_u64);
        let mut admitted: Vec<(u64, u64)> = Vec::new();
        for (lane, gap, amount, big) in steps {
            now += gap;
            let amount = if big { amount } else { amount % 8 + 1 };
            let at = lanes[lane].pay(&bucket, now, amount);
            prop_assert!(at >= now);
            asked += u128::from(amount);
            admitted.push((at, amount));
            // Nobody starves: there is a time, and it is no later than when the rate has brought everything ever asked
            // for and lent, each with a nanosecond of rounding.
            let lent = 4 * u128::from(bucket.batch());
            let longest = (asked + lent) * 1_000_000_000 / u128::from(per_second)
                + 2 * admitted.len() as u128 + 2;
            prop_assert!(u128::from(at) <= u128::from(now) + longest, "{at} > {now} + {longest}");
            // Whoever asks later and has to wait does not overtake.
            if at > now {
                prop_assert!(at >= last, "{at} after {last}");
                last = at;
            }
        }
        // At every instant, all that was admitted since the beginning.
        admitted.sort_unstable();
        let mut total = 0_u128;
        for (at, amount) in admitted {
            total += u128::from(amount);
            prop_assert!(total <= most(rate, at, 0), "{total} by {at} ns");
        }
        // And no lane holds more than a batch.
        prop_assert!(lanes.iter().all(|lane| lane.credit <= bucket.batch()));
    }

    #[test]
    fn over_any_span_at_most_the_lanes_batches_come_on_top(
        per_second in 10_000_u64..1_000_000,
        gaps in prop::collection::vec((0_usize..3, 0_u64..30_000), 50..400),
        from in 0_usize..50,
    ) {
        let rate = Rate { per_second, burst: per_second / 20 };
        let bucket = Bucket::new(rate);
        let mut lanes: [Borrower; 3] = Default::default();
        let mut now = 0;
        let mut admitted: Vec<u64> = Vec::new();
        for (lane, gap) in gaps {
            now += gap;
            admitted.push(lanes[lane].pay(&bucket, now, 1));
        }
        admitted.sort_unstable();
        let start = admitted[from];
        for (count, at) in admitted[from..].iter().enumerate() {
            let bound = most(rate, at - start, 3 * bucket.batch());
            prop_assert!(count as u128 <= bound, "{count} in {} ns", at - start);
        }
    }
}

#[test]
fn a_steady_load_gets_its_rate() {
    let bucket = Bucket::new(Rate { per_second: 1000, burst: 10 });
    let mut lane = Borrower::default();
    let mut last = 0;
    for _ in 0..2010 {
        last = lane.pay(&bucket, 0, 1).max(last);
    }
    // 2010 requests at 1000 a second, of which ten come at once.
    assert_eq!(last, 2_000_000_000);
}

#[test]
fn after_a_pause_there_is_one_burst_and_no_more() {
    let bucket = Bucket::new(Rate { per_second: 1000, burst: 100 });
    let day = 86_400_000_000_000;
    let at_once = (0..1000).filter(|_| bucket.take(day, 1).at == day).count();
    // Batches are lent as well, so fewer takes empty it, but what they stand for is the burst.
    let batch = usize::try_from(bucket.batch()).expect("small");
    assert_eq!(at_once * (1 + batch), 100);
}

#[test]
fn a_request_larger_than_the_burst_waits_until_it_is_paid() {
    let bucket = Bucket::new(Rate { per_second: 1_000_000, burst: 1000 });
    assert_eq!(bucket.take(0, 1_000_000), Taken { at: 999_000_000, extra: 0 });
    // And small ones queue up behind it instead of passing it.
    assert!(bucket.take(10, 1).at >= 999_000_000);
}

#[test]
fn what_is_given_back_can_be_had_again() {
    let bucket = Bucket::new(Rate { per_second: 1_000_000, burst: 100_000 });
    let taken = bucket.take(0, 1000);
    assert_eq!(taken, Taken { at: 0, extra: 1000 });
    bucket.give_back(taken.extra);
    let rest: u64 = std::iter::repeat_with(|| bucket.take(0, 1))
        .take_while(|taken| taken.at == 0)
        .map(|taken| 1 + taken.extra)
        .sum();
    // All of the burst but the thousand that was used, to within a last batch that did not fit.
    assert!((99_000 - 1001..=99_000).contains(&rest), "{rest}");
}

#[test]
fn extreme_rates_neither_overflow_nor_divide_by_zero() {
    for per_second in [1, u64::MAX] {
        for burst in [0, 1, u64::MAX] {
            let bucket = Bucket::new(Rate { per_second, burst });
            for amount in [0, 1, u64::MAX / 4] {
                assert!(bucket.take(5, amount).at >= 5);
            }
            bucket.give_back(u64::MAX);
        }
    }
}
