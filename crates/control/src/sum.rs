//! Sums over contents: FNV-1a with 64 bits, in which every step can be undone, so that two contents that differ in one byte never
//! have the same sum. What is made of them is stored, or known to clients: they stay the same in every later version.

/// The hash of some bytes.
pub(crate) fn fnv1a(bytes: impl IntoIterator<Item = u8>) -> u64 {
    bytes.into_iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The sum of some pieces. Each ends with its length, so that nothing moves from one to the next unnoticed.
pub(crate) fn sum(pieces: &[&[u8]]) -> u64 {
    fnv1a(
        pieces
            .iter()
            .flat_map(|piece| piece.iter().copied().chain((piece.len() as u64).to_le_bytes())),
    )
}
