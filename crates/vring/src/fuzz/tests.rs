//! Some thousand runs with every build, so that the target itself is sound.

use super::*;
use memory::random::Random;

#[test]
fn pseudo_random_runs_hold() {
    let mut random = Random::new(0x9e37_79b9_7f4a_7c15);
    let mut all = Outcome::default();
    let (mut stopped, mut runs_to_the_end) = (0, 0);
    for _ in 0..10_000 {
        let len = 8 + random.below(400);
        let data: Vec<u8> = (0..len).map(|_| random.next().to_le_bytes()[3]).collect();
        let outcome = fuzz_ring(&data);
        all.sound += outcome.sound;
        all.refused += outcome.refused;
        all.resubmitted += outcome.resubmitted;
        stopped += u32::from(outcome.stopped);
        runs_to_the_end += u32::from(!outcome.stopped);
    }
    // The runs reach everything they are for.
    assert!(all.sound > 10_000 && all.refused > 2_000 && all.resubmitted > 1_000, "{all:?}");
    assert!(stopped > 1_000 && runs_to_the_end > 1_000, "{stopped} of 10000 runs stopped");
}

#[test]
fn no_bytes_are_a_run() {
    assert_eq!(fuzz_ring(&[]), Outcome::default());
}
