use proptest::prelude::*;

use super::*;

fn learnt(late_ns: impl IntoIterator<Item = u64>) -> Price {
    let mut price = Price::default();
    late_ns.into_iter().for_each(|late| _ = price.learn(late));
    price
}

#[test]
fn a_few_timers_change_nothing() {
    assert_eq!(learnt([6_000; ENOUGH - 1]).ns(), ASSUMED_NS);
    assert_eq!(learnt([6_000; ENOUGH]).ns(), 6_000);
}

#[test]
fn what_a_busy_host_adds_now_and_then_does_not_move_it() {
    let late = (0..1000).map(|round| if round % 3 == 0 { 4_000_000 } else { 6_000 });
    assert_eq!(learnt(late).ns(), 6_000);
}

#[test]
fn a_machine_that_changes_is_noticed_within_what_is_remembered() {
    let mut price = learnt([6_000; 500]);
    let until = (1..).find(|_| price.learn(40_000)).unwrap();
    assert_eq!((until, price.ns()), (KEPT / 2 + 1, 40_000));
}

#[test]
fn small_changes_leave_what_was_learnt_of_waits() {
    let mut price = learnt([60_000; KEPT]);
    assert!((0..100).all(|round| !price.learn(60_000 - round % 2 * 14_000)));
    assert_eq!(price.ns(), 60_000);
}

#[test]
fn one_sleep_in_64_arms_a_timer() {
    let mut probe = Probe::default();
    let mut armed = 0;
    for sleep in 0..6400_u64 {
        let now = sleep * 200_000;
        if probe.before_sleep(now) {
            armed += 1;
            assert!(!probe.may_have_woken(now + PROBE_NS - 1));
            assert!(probe.may_have_woken(now + PROBE_NS));
            let woken = now + PROBE_NS + 20_000;
            assert!(probe.woken(now, woken));
            probe.over();
            assert!(probe.stays_awake(woken));
            assert_eq!(probe.awake_over(woken + AWAKE_NS + 15_000), Some(5_000));
            assert!(!probe.stays_awake(woken));
            // What follows is the rest of the same sleep.
            assert!(!probe.before_sleep(now + PROBE_NS + 46_000));
        }
    }
    assert_eq!(armed, 100);
}

#[test]
fn a_timer_that_finds_nobody_asleep_says_nothing() {
    let mut probe = Probe::default();
    let armed = (0..64).filter(|sleep| probe.before_sleep(sleep * 1000)).count();
    assert_eq!(armed, 1);
    let due = 63_000 + PROBE_NS;
    // It is in the ring: no second one.
    assert!((0..200).all(|_| !probe.before_sleep(70_000)));
    // The channel fell asleep just before.
    assert!(!probe.woken(due - ASLEEP_NS + 1, due + 5_000));
    assert!(!probe.stays_awake(due + 5_000) && probe.awake_over(due + 20_000).is_none());
    assert!(probe.woken(due - ASLEEP_NS, due + 5_000));
    probe.over();
    assert_eq!(probe.awake_over(due + 5_000 + AWAKE_NS), Some(5_000));
    assert!(!probe.may_have_woken(u64::MAX));
    assert!(!probe.before_sleep(due + 5_100), "the rest of what it ended");
    assert!(probe.before_sleep(due + 10_000));
}

#[test]
fn nobody_stays_awake_for_a_timer_that_does_not_come() {
    let mut probe = Probe::default();
    (0..64).for_each(|_| _ = probe.before_sleep(0));
    assert!(probe.woken(0, PROBE_NS + 9_000));
    probe.over();
    let due = PROBE_NS + 9_000 + AWAKE_NS;
    assert!(probe.stays_awake(due + PATIENCE_NS - 1) && !probe.stays_awake(due + PATIENCE_NS));
    // It is still in the ring.
    assert!((0..200).all(|_| !probe.before_sleep(due)));
    assert_eq!(probe.awake_over(due + PATIENCE_NS), None);
    assert!(probe.before_sleep(due));
}

proptest! {
    /// The price is one of what was seen, or a bound, or the assumption; and no further than a quarter from their median.
    #[test]
    fn the_price_is_near_the_median_of_the_last(late in prop::collection::vec(0_u64..300_000, ENOUGH..200)) {
        let price = learnt(late.iter().copied());
        let mut last = late[late.len().saturating_sub(KEPT)..].to_vec();
        last.sort_unstable();
        let median = last[last.len() / 2].clamp(LEAST_NS, MOST_NS);
        prop_assert!(price.ns().abs_diff(median) <= price.ns() / 4, "{} of {median}", price.ns());
        prop_assert!(price.ns() == ASSUMED_NS || (LEAST_NS..=MOST_NS).contains(&price.ns()));
        prop_assert_eq!(price.seen(), late.len() as u64);
    }

    /// Whatever happens: one timer at a time, and never more than one in so many sleeps of the client's.
    #[test]
    fn timers_are_few(sleeps in prop::collection::vec((1_u64..200_000, any::<bool>()), 1..2000)) {
        let (mut probe, mut now, mut armed, mut ended) = (Probe::default(), 0, 0_usize, 0);
        for (ns, first) in &sleeps {
            let begin = now;
            armed += usize::from(probe.before_sleep(begin));
            now += ns;
            if probe.may_have_woken(now) {
                if *first {
                    ended += 1;
                    if probe.woken(begin, now) {
                        prop_assert!(probe.awake_over(now + AWAKE_NS).unwrap() < *ns);
                    }
                }
                probe.over();
            }
        }
        prop_assert!(armed <= (sleeps.len() - ended) / usize::from(SLEEPS_PER_PROBE) + 1);
    }
}
