//! From the messages' specifications to those of `block`.

use std::time::Duration;

use block::limit::Rate;
use block::spec::{Cache, FileSpec, LimitSpec, NullSpec, RamSpec, VolumeKind, VolumeSpec};
use protocol::message;

fn rate(per_second: u64, burst: u64) -> Option<Rate> {
    (per_second > 0).then_some(Rate { per_second, burst })
}

fn kind(kind: &message::VolumeKind) -> VolumeKind {
    match kind {
        message::VolumeKind::File { path, cache, create, preallocate } => {
            let cache = match cache {
                message::CacheMode::Auto => Cache::Auto,
                message::CacheMode::Direct => Cache::Direct,
                message::CacheMode::Buffered => Cache::Buffered,
            };
            VolumeKind::File(FileSpec {
                cache,
                create: *create,
                preallocate: *preallocate,
                // Asked for message by message: see ResizeVolume.
                allow_shrink: true,
                ..FileSpec::new(path)
            })
        }
        message::VolumeKind::Ram { path } => VolumeKind::Ram(RamSpec::new(path)),
        message::VolumeKind::Null { zero_fill } => {
            VolumeKind::Null(NullSpec { zero_reads: *zero_fill })
        }
    }
}

/// Limits, if there are any.
pub(crate) fn limits(spec: &message::LimitSpec) -> Option<LimitSpec> {
    let limits = limits_of(spec);
    (limits.iops.is_some() || limits.bytes_per_second.is_some()).then_some(limits)
}

fn limits_of(limit: &message::LimitSpec) -> LimitSpec {
    LimitSpec {
        iops: rate(limit.iops, limit.iops_burst),
        bytes_per_second: rate(limit.bytes_per_s, limit.bytes_burst),
        ..LimitSpec::default()
    }
}

/// The volume that a message describes.
pub(crate) fn volume(spec: &message::VolumeSpec) -> VolumeSpec {
    VolumeSpec {
        size: spec.bytes,
        block_size: spec.block_size,
        read_only: spec.read_only,
        limits: limits_of(&spec.limit.unwrap_or_default()),
        delay: spec.delay.map(|delay| block::spindle::DelaySpec {
            min: Duration::from_micros(delay.min_us),
            max: Duration::from_micros(delay.max_us),
            queue_depth: delay.depth,
            seed: delay.seed,
            ..block::spindle::DelaySpec::default()
        }),
        faults: spec.fault.as_ref().map(|fault| block::FaultSpec {
            seed: fault.seed,
            read_error_ppm: fault.read_error_ppm,
            write_error_ppm: fault.write_error_ppm,
            torn_write_ppm: fault.torn_write_ppm,
            late_ppm: fault.slow_ppm,
            late: Duration::from_micros(fault.slow_us),
            bad: fault
                .bad_range
                .iter()
                .map(|(start, len)| *start..start.saturating_add(*len))
                .collect(),
            ..block::FaultSpec::default()
        }),
        ..VolumeSpec::new(&spec.name, kind(&spec.kind))
    }
}
