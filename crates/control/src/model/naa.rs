//! Identifiers that are reckoned, of units that have none of their own. They are stored nowhere, and must stay the same in every later version.

use spec::FileIdentity;

use crate::sum::fnv1a;

/// A locally assigned identifier (NAA 3) with a hash of both.
pub(crate) fn local_naa(system: u64, name: &str) -> u64 {
    naa(system.to_be_bytes().into_iter().chain(name.bytes()))
}

/// That of an LU, the same on every server that has its pool: with a hash of the pool's UUID, as 36 characters, and the LU's number, most significant byte first
/// (`docs/formats/pool.md`). `None` of what is no LU.
pub(crate) fn naa_of_lu(identity: &FileIdentity) -> Option<u64> {
    let FileIdentity::Lu { pool, number, .. } = identity else { return None };
    Some(naa(pool.bytes().chain(number.to_be_bytes())))
}

/// FNV-1a, then mixed so that every bit counts.
fn naa(bytes: impl Iterator<Item = u8>) -> u64 {
    let mut hash = fnv1a(bytes);
    for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    0x3 << 60 | (hash ^ (hash >> 33)) >> 4
}
