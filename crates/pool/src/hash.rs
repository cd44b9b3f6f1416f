//! SipHash-2-4 with 128 bits: the checksum of every block of metadata.
//!
//! Keyed by the pool's UUID and the kind of the block, so that no block of another pool and none of another kind is ever taken for valid, even
//! where both have the same bytes. One journal block is hashed in a few microseconds, which is little beside the write that follows.

use std::hash::Hasher;

use siphasher::sip128::{Hasher128, SipHasher24};

/// A checksum of 128 bits.
pub type Sum = [u8; 16];

/// The checksum of `bytes` under a key.
pub(crate) fn sum(key: [u8; 16], bytes: &[u8]) -> Sum {
    let mut hasher = SipHasher24::new_with_key(&key);
    hasher.write(bytes);
    hasher.finish128().as_bytes()
}

#[cfg(test)]
mod tests {
    use super::sum;

    /// The first of the vectors that the authors publish (`vectors_sip128`): key 00 01 … 0f, message of the bytes 00 01 … and that length.
    #[test]
    fn it_is_the_published_function() {
        let key = std::array::from_fn(|index| index as u8);
        let published = ["a3817f04ba25a8e66df67214c7550293", "da87c1d86b99af44347659119b22fc45"];
        for (length, expected) in published.into_iter().enumerate() {
            let message: Vec<u8> = (0..length as u8).collect();
            let found: String =
                sum(key, &message).iter().map(|byte| format!("{byte:02x}")).collect();
            assert_eq!(found, expected, "a message of {length} bytes");
        }
    }
}
