//! From attributes to the specifications that a data plane gets.
//!
//! Called only with states that [`super::validate`] let pass: each value is of its kind and within
//! bounds, so that the narrowing conversions here cannot lose anything (and saturate if they did).

mod commands;
mod npiv;
mod scsi;

pub use commands::granted;
pub use npiv::{channels, npiv_terms, source};
pub(crate) use scsi::local_naa;
pub use scsi::{MEDIUM_UNIT, naa, unit_of_vtd, unit_serial};

use super::{AdapterKind, Desired, MAIN, adapter_kind, files, is_on, number, text};
use crate::paths::Paths;
use fabric::attribute::{Attributes, Object, Value};
use fabric::units;
use protocol::message::Status;
use serde::{Deserialize, Serialize};
use spec::{
    AdapterSpec, BlockSpec, CacheMode, DelaySpec, DeviceSpec, FaultSpec, FileSpec, LimitSpec,
    NullSpec, Placement, RamSpec, ScsiSpec, SocketRole, UnitSpec, VolumeKind, VolumeSpec, WaitMode,
};
use std::collections::BTreeMap;

/// What one data plane shall have.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wanted {
    /// Volumes by name.
    pub volumes: BTreeMap<String, VolumeSpec>,
    /// SCSI logical units by name.
    pub units: BTreeMap<String, UnitSpec>,
    /// Adapters by name.
    pub adapters: BTreeMap<String, AdapterSpec>,
}

/// With what a data plane is started.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataPlaneSpec {
    /// Its name.
    pub name: String,
    /// CPU list; empty is every CPU that the process may use.
    pub cpus: String,
    /// Channels; 0 is one per CPU.
    pub channels: u32,
    /// Longest adaptive spin.
    pub poll_us_max: u32,
}

/// The part of the desired state that belongs to one data plane.
pub fn wanted(desired: &Desired, dataplane: &str, paths: &Paths) -> Wanted {
    let homes = desired.homes();
    let volumes = desired.volumes.iter().filter(|(name, _)| {
        let first = homes.get(*name).and_then(|homes| homes.first());
        first.map_or(MAIN, |(_, _, home)| home) == dataplane
    });
    let volumes = volumes.map(|(name, set)| {
        let mut spec = volume(name, set, paths);
        files::say(desired.given.files.get(name), &mut spec);
        (name.clone(), spec)
    });
    let adapters =
        desired.adapters.iter().filter(|(name, _)| desired.dataplane_of_adapter(name) == dataplane);
    let fabric = super::san::san(desired);
    let fabric = fabric.expand();
    let budgets = commands::budgets(desired);
    let adapters = adapters.map(|(name, set)| {
        let device = match adapter_kind(set) {
            AdapterKind::Block => DeviceSpec::Block(block(desired, set)),
            AdapterKind::Fc => DeviceSpec::Scsi(scsi::fc(desired, name, set, &fabric, &budgets)),
            AdapterKind::Scsi => DeviceSpec::Scsi(scsi::virtual_scsi(desired, name, set)),
        };
        (name.clone(), adapter(desired, name, set, paths, device))
    });
    Wanted {
        volumes: volumes
            .chain(scsi::media(desired, dataplane, paths))
            .chain(scsi::found(desired, dataplane))
            .collect(),
        units: scsi::units(desired, dataplane, paths),
        adapters: adapters.collect(),
    }
}

impl Wanted {
    /// What is open was made: whatever becomes of the data plane, the same files are meant.
    pub fn settle(&mut self, status: &Status) {
        for open in &status.volumes {
            let spec = self.volumes.get_mut(&open.spec.name);
            if let Some(spec) = spec.filter(|spec| spec.kind.path() == open.spec.kind.path()) {
                spec.kind.settle(open.identity.clone());
            }
        }
    }

    /// Lets go of units whose volume is not here, of LUNs whose unit is not, and of block adapters whose volume is not.
    pub fn drop_dangling(&mut self) {
        let Wanted { volumes, units, adapters } = self;
        units.retain(|_, unit| unit.volume.as_ref().is_none_or(|name| volumes.contains_key(name)));
        adapters.retain(|_, spec| {
            if let DeviceSpec::Scsi(ScsiSpec { targets, .. }) = &mut spec.device {
                for target in targets {
                    target.luns.retain(|_, unit| units.contains_key(unit));
                }
            }
            spec.block().is_none_or(|block| volumes.contains_key(&block.volume))
        });
    }
}

/// The file under a volume, if it has one.
pub fn volume_path(name: &str, set: &Attributes, paths: &Paths) -> Option<std::path::PathBuf> {
    match (text(set, "kind"), text(set, "path")) {
        (Some("null"), _) => None,
        (_, Some(path)) => Some(paths.absolute(path)),
        (Some("ram"), None) => Some(paths.ram(name)),
        _ => None,
    }
}

/// An adapter's socket.
pub fn adapter_socket(name: &str, set: &Attributes, paths: &Paths) -> std::path::PathBuf {
    text(set, "socket").map_or_else(|| paths.adapter(name), |path| paths.absolute(path))
}

/// An adapter's serial number: what was set, else the start of its volume's name.
pub fn adapter_serial(set: &Attributes) -> String {
    let given = text(set, "serial").or_else(|| text(set, "volume")).unwrap_or_default();
    given.chars().take(20).collect()
}

/// The specification of a volume.
pub fn volume(name: &str, set: &Attributes, paths: &Paths) -> VolumeSpec {
    let path = volume_path(name, set, paths).unwrap_or_default();
    let kind = match text(set, "kind") {
        Some("ram") => RamSpec::new(path).into(),
        Some("null") => NullSpec { zero_fill: is_on(set, "zero_fill") }.into(),
        _ => VolumeKind::File(FileSpec {
            cache: match text(set, "cache") {
                Some("direct") => CacheMode::Direct,
                Some("buffered") => CacheMode::Buffered,
                _ => CacheMode::Auto,
            },
            create: is_on(set, "create"),
            preallocate: is_on(set, "preallocate"),
            ..FileSpec::new(path)
        }),
    };
    VolumeSpec {
        bytes: number(set, "size"),
        block_size: narrow32(defaulted(Object::Volume, set, "block_size")),
        read_only: is_on(set, "read_only"),
        limit: limit(set),
        delay: delay(set),
        fault: fault(set),
        ..VolumeSpec::new(name, kind)
    }
}

fn limit(set: &Attributes) -> Option<LimitSpec> {
    let get = |name| number(set, name).unwrap_or(0);
    // A burst of zero would let nothing pass.
    let burst = |name, rate: u64| {
        if rate == 0 { 0 } else { number(set, name).unwrap_or(rate / 10).max(1) }
    };
    let (iops, bytes_per_s) = (get("limit_iops"), get("limit_bytes_per_s"));
    (iops != 0 || bytes_per_s != 0).then(|| LimitSpec {
        iops,
        iops_burst: burst("limit_iops_burst", iops),
        bytes_per_s,
        bytes_burst: burst("limit_bytes_burst", bytes_per_s),
        ..LimitSpec::default()
    })
}

fn delay(set: &Attributes) -> Option<DelaySpec> {
    let get = |name| number(set, name).unwrap_or(0);
    let max_us = get("delay_us_max");
    (max_us != 0).then(|| DelaySpec {
        min_us: get("delay_us_min"),
        max_us,
        depth: narrow32(get("delay_depth")),
        seed: get("delay_seed"),
        ..DelaySpec::default()
    })
}

fn fault(set: &Attributes) -> Option<FaultSpec> {
    let get = |name| number(set, name).unwrap_or(0);
    let bad_length = get("fault_bad_length");
    let spec = FaultSpec {
        read_error_ppm: narrow32(get("fault_read_error_ppm")),
        write_error_ppm: narrow32(get("fault_write_error_ppm")),
        torn_write_ppm: narrow32(get("fault_torn_write_ppm")),
        slow_ppm: narrow32(get("fault_slow_ppm")),
        slow_us: get("fault_slow_us"),
        bad_range: (bad_length != 0).then(|| (get("fault_bad_offset"), bad_length)),
        seed: get("fault_seed"),
        ..FaultSpec::default()
    };
    (spec != FaultSpec { slow_us: spec.slow_us, seed: spec.seed, ..FaultSpec::default() })
        .then_some(spec)
}

/// The disk of a block adapter.
fn block(desired: &Desired, set: &Attributes) -> BlockSpec {
    let switch = |name| {
        let value = desired.effective(Object::Adapter, set, name);
        value.and_then(|value| value.as_switch()).unwrap_or(false)
    };
    let volume = text(set, "volume").unwrap_or_default();
    let volume_read_only = desired.volumes.get(volume).is_some_and(|set| is_on(set, "read_only"));
    BlockSpec {
        volume: volume.to_owned(),
        serial: adapter_serial(set),
        read_only: switch("read_only") || volume_read_only,
        write_cache: switch("write_cache"),
        discard: switch("discard"),
    }
}

/// The specification of an adapter.
fn adapter(
    desired: &Desired,
    name: &str,
    set: &Attributes,
    paths: &Paths,
    device: DeviceSpec,
) -> AdapterSpec {
    let get = |name| desired.effective(Object::Adapter, set, name);
    let number = |name| get(name).and_then(|value| value.as_number()).unwrap_or(0);
    let word = |name| get(name).map(|value| value.to_string()).unwrap_or_default();
    AdapterSpec {
        name: name.to_owned(),
        socket: adapter_socket(name, set, paths),
        socket_role: match word("socket_role").as_str() {
            "client" => SocketRole::Client,
            _ => SocketRole::Server,
        },
        socket_mode: units::parse_mode(&word("mode")).unwrap_or(0o660),
        queues: narrow16(number("queues")),
        channels: match adapter_kind(set) {
            AdapterKind::Fc => npiv::channels(desired, name, set),
            _ => narrow16(number("channels")),
        },
        queue_size: narrow16(number("queue_size")),
        seg_max: narrow16(number("seg_max")),
        wait: wait(&word("wait")),
        placement: match word("placement").as_str() {
            "spread" => Placement::Spread,
            _ => Placement::Adaptive,
        },
        withhold: word("withhold")
            .split(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
            .map(str::to_owned)
            .collect(),
        device,
    }
}

/// With what a data plane is started.
pub fn dataplane(desired: &Desired, name: &str) -> DataPlaneSpec {
    let empty = Attributes::new();
    let set = desired.dataplanes.get(name).unwrap_or(&empty);
    let get = |name| desired.effective(Object::DataPlane, set, name);
    let number = |name| narrow32(get(name).and_then(|value| value.as_number()).unwrap_or(0));
    let word = |name| get(name).map(|value| value.to_string()).unwrap_or_default();
    DataPlaneSpec {
        name: name.to_owned(),
        cpus: word("cpus"),
        channels: number("channels"),
        poll_us_max: number("poll_us_max"),
    }
}

fn wait(word: &str) -> WaitMode {
    match word {
        "poll" => WaitMode::Poll,
        "interrupt" => WaitMode::Interrupt,
        _ => WaitMode::Adaptive,
    }
}

/// A number that was set, or its fixed default.
fn defaulted(object: Object, set: &Attributes, name: &str) -> u64 {
    let attribute = object.attribute(name);
    let value = attribute.and_then(|a| fabric::attribute::effective(a, set, &|_| None));
    value.as_ref().and_then(Value::as_number).unwrap_or(0)
}

pub(crate) fn narrow32(n: u64) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

pub(crate) fn narrow16(n: u64) -> u16 {
    u16::try_from(n).unwrap_or(u16::MAX)
}

#[cfg(test)]
mod effects;
