//!
pub(crate) fn maybe_crash() {}
