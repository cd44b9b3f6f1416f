//! A small seeded generator for block numbers and patterns: SplitMix64 (Steele, Lea, Flood 2014).
//!
//! Not for secrets. The same seed gives the same sequence on every machine, so that a failed run can be repeated.

/// The state of one sequence.
#[derive(Clone, Debug)]
pub struct Rng(u64);

/// Mixes a number into one that looks random; a bijection.
#[inline]
#[must_use]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Rng {
    /// A sequence that depends on the seed alone.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(mix(seed))
    }

    /// The next 64 bits.
    #[inline]
    #[expect(clippy::should_implement_trait)] // An endless sequence, not an iterator.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound` (not 0), by multiplication instead of division; the bias is below `bound` / 2^64.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        // The high half of a 128-bit product is below `bound`: no truncation.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_seed_gives_the_same_sequence_and_another_does_not() {
        let take = |seed| {
            let mut rng = Rng::new(seed);
            (0..8).map(|_| rng.next()).collect::<Vec<_>>()
        };
        assert_eq!(take(1), take(1));
        assert_ne!(take(1), take(2));
    }

    #[test]
    fn below_reaches_everything_and_nothing_else() {
        let mut rng = Rng::new(3);
        let mut seen = [0u32; 7];
        for _ in 0..7_000 {
            seen[usize::try_from(rng.below(7)).unwrap()] += 1;
        }
        assert!(seen.iter().all(|&count| count > 700), "{seen:?}");
    }
}
