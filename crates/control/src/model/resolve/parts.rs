//! What specifications of volumes, adapters and units have in common.

use crate::paths::Paths;
use fabric::attribute::words;
use fabric::attribute::{Attributes, Object, attr};
use spec::LimitSpec;
use std::path::PathBuf;

/// The file under a volume, if it has one.
pub fn volume_path(name: &str, set: &Attributes, paths: &Paths) -> Option<PathBuf> {
    let given =
        attr::volume::PATH.of(set).filter(|_| attr::volume::PATH.applies(Object::Volume, set));
    given.map(|path| paths.absolute(path)).or_else(|| own_file(name, set, paths))
}

/// The file under a volume where the server chose its place, so that it goes with the volume.
pub fn own_file(name: &str, set: &Attributes, paths: &Paths) -> Option<PathBuf> {
    let ours = attr::volume::KIND.of(set) == Some(words::VolumeKind::Ram)
        && !attr::volume::PATH.is_set(set);
    ours.then(|| paths.ram(name))
}

/// The burst of a rate. One of zero would let nothing pass.
pub(super) fn burst(set: Option<u64>, rate: u64) -> u64 {
    if rate == 0 { 0 } else { set.unwrap_or(rate / 10).max(1) }
}

/// Limits of a volume, or of an adapter, which has the same attributes.
pub(super) fn limit(set: &Attributes) -> Option<LimitSpec> {
    use attr::volume::{LIMIT_BYTES_BURST, LIMIT_BYTES_PER_S, LIMIT_IOPS, LIMIT_IOPS_BURST};
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
