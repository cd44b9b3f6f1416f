//! What specifications of volumes, adapters and units have in common.

use crate::paths::Paths;
use fabric::attribute::words;
use fabric::attribute::{Attributes, attr};
use spec::LimitSpec;

/// The file under a volume, if it has one.
pub fn volume_path(name: &str, set: &Attributes, paths: &Paths) -> Option<std::path::PathBuf> {
    match (attr::volume::KIND.of(set), attr::volume::PATH.of(set)) {
        (Some(words::VolumeKind::Null), _) => None,
        (_, Some(path)) => Some(paths.absolute(path)),
        (Some(words::VolumeKind::Ram), None) => Some(paths.ram(name)),
        _ => None,
    }
}

/// Limits of a volume, or of an adapter, which has the same attributes.
pub(super) fn limit(set: &Attributes) -> Option<LimitSpec> {
    use attr::volume::{LIMIT_BYTES_BURST, LIMIT_BYTES_PER_S, LIMIT_IOPS, LIMIT_IOPS_BURST};
    // A burst of zero would let nothing pass.
    let burst = |set: Option<u64>, rate: u64| {
        if rate == 0 { 0 } else { set.unwrap_or(rate / 10).max(1) }
    };
    let (iops, bytes_per_s) = (LIMIT_IOPS.value(set), LIMIT_BYTES_PER_S.value(set));
    (iops != 0 || bytes_per_s != 0).then(|| LimitSpec {
        iops,
        iops_burst: burst(LIMIT_IOPS_BURST.of(set), iops),
        bytes_per_s,
        bytes_burst: burst(LIMIT_BYTES_BURST.of(set), bytes_per_s),
        ..LimitSpec::default()
    })
}

pub(crate) fn narrow32(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

pub(crate) fn narrow16(n: u64) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}
