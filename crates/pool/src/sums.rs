//! The checksums of the data of a chunk: CRC32C of each 4 KiB.

use crate::format::{Refused, SUM_OF_BYTES, SUMS_OF_CHUNK, Uuid, decode_sums, encode_sums};

/// Those of one chunk. Of blocks that are not written they say nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Sums(Vec<u32>);

impl Sums {
    /// Of a chunk in which nothing is written.
    pub(crate) fn none() -> Sums {
        Sums(vec![0; SUMS_OF_CHUNK])
    }

    /// What is in the chunk from a byte on, a multiple of 4 KiB.
    pub(crate) fn put(&mut self, at: u64, bytes: &[u8]) {
        for (sum, part) in self.0.iter_mut().skip(first(at)).zip(parts(bytes)) {
            *sum = crc32c::crc32c(part);
        }
    }

    /// Whether that is in the chunk from that byte on, a multiple of 4 KiB.
    pub(crate) fn hold(&self, at: u64, bytes: &[u8]) -> bool {
        let sums = self.0.get(first(at)..).unwrap_or_default();
        let whole =
            bytes.len().is_multiple_of(SUM_OF_BYTES as usize) && parts(bytes).len() <= sums.len();
        whole && sums.iter().zip(parts(bytes)).all(|(sum, part)| *sum == crc32c::crc32c(part))
    }

    pub(crate) fn encode(&self, pool: Uuid, key: (u32, u32)) -> Vec<u8> {
        encode_sums(pool, key, &self.0)
    }

    pub(crate) fn decode(block: &[u8], pool: Uuid, key: (u32, u32)) -> Result<Sums, Refused> {
        decode_sums(block, pool, key).map(Sums)
    }
}

fn first(at: u64) -> usize {
    (at / SUM_OF_BYTES) as usize
}

fn parts(bytes: &[u8]) -> std::slice::Chunks<'_, u8> {
    bytes.chunks(SUM_OF_BYTES as usize)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::CHUNK_BYTES;
    use proptest::prelude::*;

    const PAGE: usize = SUM_OF_BYTES as usize;

    /// Bit by bit, from the polynomial.
    fn naive(bytes: &[u8]) -> u32 {
        let mut sum = u32::MAX;
        for byte in bytes {
            sum ^= u32::from(*byte);
            for _ in 0..8 {
                sum = if sum & 1 == 1 { sum >> 1 ^ 0x82f6_3b78 } else { sum >> 1 };
            }
        }
        !sum
    }

    #[test]
    fn they_are_crc32c() {
        assert_eq!(naive(b"123456789"), 0xe306_9283);
        let bytes: Vec<u8> = (0..2 * PAGE).map(|at| (at * at / 7) as u8).collect();
        let mut sums = Sums::none();
        sums.put(3 * SUM_OF_BYTES, &bytes);
        let expected = [naive(&bytes[..PAGE]), naive(&bytes[PAGE..])];
        assert_eq!(sums.0[3..5], expected);
        assert!(sums.0[..3].iter().chain(&sums.0[5..]).all(|sum| *sum == 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]
        #[test]
        fn one_that_has_another_bit_is_not_it(
            at in 0..SUMS_OF_CHUNK - 4, count in 1_usize..4, byte in any::<u8>(), bit in 0..4 * PAGE * 8,
        ) {
            let bytes: Vec<u8> = (0..count * PAGE).map(|at| byte ^ at as u8).collect();
            let place = at as u64 * SUM_OF_BYTES;
            let mut sums = Sums::none();
            sums.put(place, &bytes);
            prop_assert!(sums.hold(place, &bytes));
            let mut other = bytes.clone();
            let bit = bit % (8 * bytes.len());
            other[bit / 8] ^= 1 << (bit % 8);
            prop_assert!(!sums.hold(place, &other));
            // Elsewhere it is not it either, nor beyond the end.
            prop_assert!(!sums.hold(place + SUM_OF_BYTES * count as u64, &bytes));
            prop_assert!(!sums.hold(CHUNK_BYTES, &bytes));
            prop_assert!(!sums.hold(place, &bytes[..bytes.len() - 512]));
        }
    }
}
