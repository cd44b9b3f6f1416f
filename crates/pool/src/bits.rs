//! The written bits of a chunk.

use crate::format::BLOCKS;

/// One bit for each of the 1,024 blocks of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) struct Bits(pub(crate) [u32; BLOCKS / 32]);

impl Bits {
    /// No block.
    pub(crate) const NONE: Bits = Bits([0; BLOCKS / 32]);

    /// The blocks from `first` up to before `end`.
    pub(crate) fn range(first: usize, end: usize) -> Bits {
        let mut bits = Bits::NONE;
        if first < end {
            let (one, last) = (first / 32, (end - 1) / 32);
            bits.0[one..=last].fill(u32::MAX);
            bits.0[one] &= u32::MAX << (first % 32);
            bits.0[last] &= u32::MAX >> (31 - (end - 1) % 32);
        }
        bits
    }

    /// Whether a block is in it.
    pub(crate) fn has(&self, block: usize) -> bool {
        self.0[block / 32] >> (block % 32) & 1 == 1
    }

    /// Whether no block is in it.
    pub(crate) fn is_empty(&self) -> bool {
        self.0 == [0; BLOCKS / 32]
    }

    /// How many blocks are in it.
    pub(crate) fn count(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    /// The first block.
    pub(crate) fn first(&self) -> Option<usize> {
        self.words()
            .next()
            .map(|(word, bits)| 32 * usize::from(word) + bits.trailing_zeros() as usize)
    }

    /// Those in either.
    pub(crate) fn or(self, other: Bits) -> Bits {
        Bits(std::array::from_fn(|index| self.0[index] | other.0[index]))
    }

    /// Those in both.
    pub(crate) fn and(self, other: Bits) -> Bits {
        Bits(std::array::from_fn(|index| self.0[index] & other.0[index]))
    }

    /// Those in this and not in the other.
    pub(crate) fn without(self, other: Bits) -> Bits {
        Bits(std::array::from_fn(|index| self.0[index] & !other.0[index]))
    }

    /// The words that are not 0, with their numbers.
    pub(crate) fn words(&self) -> impl Iterator<Item = (u8, u32)> {
        let words = self.0.iter().enumerate();
        words.filter(|(_, word)| **word != 0).map(|(index, word)| (index as u8, *word))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_has_its_blocks_and_no_others() {
        for (first, end) in [(0, 0), (0, 1), (31, 33), (5, 700), (1000, 1024), (0, 1024), (9, 9)] {
            let bits = Bits::range(first, end);
            for block in 0..BLOCKS {
                assert_eq!(bits.has(block), (first..end).contains(&block), "{first}..{end}");
            }
            assert_eq!(bits.is_empty(), first == end);
            assert_eq!(bits.first(), (first < end).then_some(first));
        }
    }

    #[test]
    fn sets_are_sets() {
        let (one, two) = (Bits::range(3, 40), Bits::range(38, 90));
        assert!(one.or(two) == Bits::range(3, 90));
        assert!(one.and(two) == Bits::range(38, 40));
        assert!(one.without(two) == Bits::range(3, 38));
        assert_eq!(one.words().collect::<Vec<_>>(), [(0, !7), (1, 0xff)]);
    }
}
