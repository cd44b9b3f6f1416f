//! Identifiers that are reckoned, of units that have none of their own.

use crate::sum::fnv1a;

/// A locally assigned identifier (NAA 3) with a hash of both (FNV-1a, then mixed so that every bit counts). Stored nowhere: it
/// must stay the same in every later version.
pub(crate) fn local_naa(system: u64, name: &str) -> u64 {
    let bytes = system.to_be_bytes().into_iter().chain(name.bytes());
    let mut hash = fnv1a(bytes);
    for factor in [0xff51_afd7_ed55_8ccd_u64, 0xc4ce_b9fe_1a85_ec53] {
        hash = (hash ^ (hash >> 33)).wrapping_mul(factor);
    }
    0x3 << 60 | (hash ^ (hash >> 33)) >> 4
}
