//! Seeded random numbers for load, models, injected faults and tests; not for secrets.
//!
//! SplitMix64 (Steele, Lea, Flood 2014): eight lines, the same sequence on every machine for ever, which is what a seed in a report
//! is worth.

/// A sequence of numbers that its seed alone determines.
#[derive(Debug, Clone)]
pub struct Random(u64);

/// Mixes a number into one that looks random; a bijection.
#[inline]
#[must_use]
pub fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Random {
    /// The sequence of a seed.
    #[must_use]
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    /// The next 64 bits.
    #[inline]
    #[expect(clippy::should_implement_trait)] // An endless sequence, not an iterator.
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// A number below `bound`, which is not 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        // The upper half of the product; the bias of 2^-64 * bound is of no interest here.
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    /// True in `ppm` of a million cases.
    pub fn chance(&mut self, ppm: u32) -> bool {
        ppm > 0 && self.below(1_000_000) < u64::from(ppm)
    }
}

#[cfg(test)]
mod tests {
    use super::Random;

    #[test]
    fn the_sequence_of_a_seed_never_changes() {
        let mut random = Random::new(1234567);
        // The first values of SplitMix64 for this seed, as published with the algorithm.
        assert_eq!(random.next(), 6457827717110365317);
        assert_eq!(random.next(), 3203168211198807973);
    }

    #[test]
    fn bounds_and_chances_hold() {
        let mut random = Random::new(7);
        assert!((0..10_000).all(|_| random.below(3) < 3));
        let hits = (0..100_000).filter(|_| random.chance(10_000)).count();
        assert!((800..1200).contains(&hits), "{hits} of 100000 at one per cent");
        assert!(!random.chance(0));
        assert!(random.chance(1_000_000));
    }
}
