use proptest::prelude::*;

use super::*;

/// Waits `ns` for the next work and returns (time looked at, whether it slept).
fn wait(waiter: &mut Waiter, now: &mut u64, ns: u64) -> (u64, bool) {
    waiter.worked(*now);
    let begin = *now;
    while *now < begin + ns {
        if waiter.idle(*now) == Decision::Sleep {
            let looked = *now - begin;
            *now = begin + ns;
            waiter.woke(*now);
            return (looked, true);
        }
        *now += 100;
    }
    (ns, false)
}

#[test]
fn short_waits_open_the_window_and_long_ones_close_it() {
    let (mut waiter, mut now) = (Waiter::new(WaitMode::Adaptive, 32_000, 0), 0);
    for _ in 0..4 {
        wait(&mut waiter, &mut now, 10_000);
    }
    assert_eq!(waiter.window_ns(), 16_000);
    assert_eq!(wait(&mut waiter, &mut now, 10_000), (10_000, false), "caught without sleep");
    assert!(wait(&mut waiter, &mut now, 1_000_000).1);
    assert_eq!(
        wait(&mut waiter, &mut now, 1_000_000),
        (0, true),
        "nothing burnt on the second long wait"
    );
}

#[test]
fn modes_at_the_ends() {
    let (mut poll, mut interrupt) =
        (Waiter::new(WaitMode::Poll, 0, 0), Waiter::new(WaitMode::Interrupt, 32_000, 0));
    assert_eq!(poll.idle(u64::MAX), Decision::Look);
    assert_eq!(wait(&mut interrupt, &mut 0, 5_000), (0, true));
    assert_eq!(wait(&mut interrupt, &mut 5_000, 5_000), (0, true));
    poll.set_mode(WaitMode::Interrupt);
    assert_eq!(poll.idle(0), Decision::Sleep);
}

proptest! {
    #[test]
    fn the_window_never_exceeds_its_limit_and_a_wait_never_burns_more_than_it(
        max in 0_u64..100_000, waits in prop::collection::vec(1_u64..200_000, 1..50)
    ) {
        let (mut waiter, mut now) = (Waiter::new(WaitMode::Adaptive, max, 0), 0);
        for ns in waits {
            let (looked, _) = wait(&mut waiter, &mut now, ns);
            prop_assert!(looked <= max.max(1) + 100);
            prop_assert!(waiter.window_ns() <= max);
        }
    }
}
