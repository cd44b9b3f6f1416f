use proptest::prelude::*;

use super::*;

const MAX: u64 = 64_000;

/// Waits `ns` for the next work and returns (time looked at, whether it slept).
fn wait(waiter: &mut Waiter, now: &mut u64, awaited: Awaited, ns: u64) -> (u64, bool) {
    waiter.worked(awaited, *now);
    let begin = *now;
    while *now < begin + ns {
        if waiter.idle(*now) == Decision::Sleep {
            let looked = *now - begin;
            *now = begin + ns;
            waiter.woke(*now);
            waiter.found(*now);
            return (looked, true);
        }
        *now += 100;
    }
    waiter.found(*now);
    (ns, false)
}

/// What `waits` cost in nanoseconds of looking, a sleep at its price.
fn cost(waiter: &mut Waiter, waits: impl IntoIterator<Item = (Awaited, u64)>) -> u64 {
    let mut now = 0;
    let price = |(looked, slept)| looked + u64::from(slept) * MAX;
    waits.into_iter().map(|(awaited, ns)| price(wait(waiter, &mut now, awaited, ns))).sum()
}

fn adaptive() -> Waiter {
    Waiter::new(WaitMode::Adaptive, MAX, 0)
}

#[test]
fn waits_that_end_soon_are_looked_at_and_never_slept_through() {
    let (mut waiter, mut now) = (adaptive(), 0);
    for _ in 0..1000 {
        assert_eq!(wait(&mut waiter, &mut now, Awaited::Client, 10_000), (10_000, false));
    }
    assert_eq!(wait(&mut waiter, &mut now, Awaited::Client, 1_000_000), (MAX, true));
    waiter.worked(Awaited::Client, now);
    assert_eq!(waiter.window_ns(), 12_000, "the part in which they end, and no longer");
}

#[test]
fn long_waits_are_slept_through_but_for_a_trial_now_and_then() {
    let (mut waiter, mut now) = (adaptive(), 0);
    let looks = (0..3300).map(|_| wait(&mut waiter, &mut now, Awaited::Client, 1_000_000)).filter(
        |&(looked, slept)| {
            assert!(slept);
            looked > 0
        },
    );
    assert_eq!(looks.count(), 100, "one in 33");
}

#[test]
fn what_is_waited_for_is_told_apart() {
    let mut waiter = adaptive();
    let waits = (0..2000).flat_map(|_| [(Awaited::Client, 20_000), (Awaited::Device, 400_000)]);
    let both = cost(&mut waiter, waits);
    // The client's waits are looked at, the device's are slept through: 20 and 64 µs, and a trial in 33.
    assert!(both < 2000 * (20_000 + MAX + MAX / 33 + 500), "{both}");
}

#[test]
fn a_client_that_got_faster_is_noticed_soon() {
    let mut waiter = adaptive();
    cost(&mut waiter, (0..1000).map(|_| (Awaited::Client, 500_000)));
    let mut now = 0;
    let sleeps =
        (0..1000).filter(|_| wait(&mut waiter, &mut now, Awaited::Client, 30_000).1).count();
    assert!(sleeps <= usize::from(SLEEPS_PER_TRIAL) + 1, "{sleeps} sleeps");
    let slow =
        (0..1000).filter(|_| wait(&mut waiter, &mut now, Awaited::Client, 500_000).0 > 0).count();
    assert!(slow < usize::from(REMEMBERED) + 1000 / usize::from(SLEEPS_PER_TRIAL), "{slow} looks");
}

#[test]
fn modes_at_the_ends() {
    let (mut poll, mut interrupt) =
        (Waiter::new(WaitMode::Poll, 0, 0), Waiter::new(WaitMode::Interrupt, 32_000, 0));
    assert_eq!(poll.idle(u64::MAX), Decision::Look);
    assert_eq!(wait(&mut interrupt, &mut 0, Awaited::Client, 5_000), (0, true));
    assert_eq!(wait(&mut interrupt, &mut 5_000, Awaited::Device, 5_000), (0, true));
    poll.set_mode(WaitMode::Interrupt);
    assert_eq!(poll.idle(0), Decision::Sleep);
}

proptest! {
    #[test]
    fn a_wait_never_burns_more_than_the_longest_window(
        max in 0_u64..100_000, waits in prop::collection::vec((any::<bool>(), 1_u64..200_000), 1..200)
    ) {
        let (mut waiter, mut now) = (Waiter::new(WaitMode::Adaptive, max, 0), 0);
        for (device, ns) in waits {
            let awaited = if device { Awaited::Device } else { Awaited::Client };
            let (looked, _) = wait(&mut waiter, &mut now, awaited, ns);
            prop_assert!(looked <= max.max(1) + 100);
        }
    }

    /// Against every fixed window, over waits of a mixture: hardly more than the best of them, all of which know the future.
    #[test]
    fn it_costs_little_more_than_the_best_fixed_window(
        kinds in prop::collection::vec(500_u64..300_000, 1..4), choices in prop::collection::vec(any::<u8>(), 4000)
    ) {
        let waits: Vec<u64> = choices.iter().map(|&choice| kinds[usize::from(choice) % kinds.len()]).collect();
        let fixed = |window: u64| -> u64 {
            waits.iter().map(|&ns| if ns <= window { ns } else { window + MAX }).sum()
        };
        let best = (0..=64).map(|step| fixed(step * 1000)).min().unwrap();
        let ours = cost(&mut adaptive(), waits.iter().map(|&ns| (Awaited::Client, ns)));
        // A part of the window for not knowing better, a trial in 33, and the noise of 64 waits.
        prop_assert!(ours as f64 <= best as f64 * 1.25 + 64.0 * MAX as f64, "{ours} against {best}");
    }
}
