//! From attributes to the specifications that a data plane gets.
//!
//! Called only with states that [`super::validate`] let pass: each value is of its kind and within
//! bounds, so that the narrowing conversions here cannot lose anything (and saturate if they did).

mod commands;
pub mod network;
mod npiv;
mod parts;
mod scsi;

pub use commands::{claim, granted};
pub use npiv::{channels, npiv_terms};
pub(crate) use parts::narrow32;
use parts::{limit, narrow16};
pub use parts::{own_file, volume_path};
pub use scsi::{MEDIUM_UNIT, NOT_KNOWN, naa, unit_of_vtd};

use super::map::SharedMap;
use super::{Desired, files, pools};
use crate::paths::Paths;
use fabric::attribute::words::{self, AdapterKind, Cache, Wait};
use fabric::attribute::{Attributes, Object, attr};
use fabric::units;
use protocol::message::{PoolStatus, VolumeStatus};
use serde::{Deserialize, Serialize};
use spec::{
    AdapterSpec, BlockSpec, CacheMode, DelaySpec, DeviceSpec, FaultSpec, FileSpec, LuSpec,
    NullSpec, Placement, PoolSpec, RamSpec, ScsiSpec, SocketRole, UnitSpec, UplinkSpec, VolumeKind,
    VolumeSpec, WaitMode,
};

/// What one data plane shall have. Copies share what they have in common, as states do.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Wanted {
    /// Volumes by name.
    pub volumes: SharedMap<VolumeSpec>,
    /// SCSI logical units by name.
    pub units: SharedMap<UnitSpec>,
    /// Adapters by name.
    pub adapters: SharedMap<AdapterSpec>,
    /// Uplinks by name.
    pub uplinks: SharedMap<UplinkSpec>,
    /// Storage pools by name.
    pub pools: SharedMap<PoolSpec>,
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
    pub poll_us_max: Option<u32>,
}

/// The part of the desired state that belongs to one data plane.
pub fn wanted(desired: &Desired, dataplane: &str, paths: &Paths) -> Wanted {
    let homes = desired.homes();
    let volumes = desired[Object::Volume]
        .iter()
        .filter(|(name, set)| desired.dataplane_among(&homes, name, set) == dataplane);
    let volumes = volumes.map(|(name, set)| {
        let mut spec = volume(name, set, paths);
        files::say(desired.allocations.files.get(name), &mut spec);
        made_of(desired, set, &mut spec);
        in_tier(desired, set, &mut spec);
        marked(desired, name, &mut spec);
        (name.clone(), spec)
    });
    let adapters = desired[Object::Adapter]
        .iter()
        .filter(|(name, _)| desired.dataplane_of_adapter(name) == dataplane);
    let fabric = super::san::san(desired);
    let fabric = fabric.expand();
    let vtds = scsi::vtds_of(desired);
    let adapters = adapters.map(|(name, set)| {
        let device = match attr::adapter::KIND.value(set) {
            AdapterKind::Block => DeviceSpec::Block(block(desired, set)),
            AdapterKind::Fc => DeviceSpec::Scsi(scsi::fc(desired, name, set, &fabric)),
            AdapterKind::Scsi => DeviceSpec::Scsi(scsi::virtual_scsi(desired, name, set, &vtds)),
            AdapterKind::Ethernet => DeviceSpec::Ethernet(network::card(desired, set)),
        };
        (name.clone(), adapter(desired, name, set, paths, device))
    });
    Wanted {
        volumes: volumes
            .chain(scsi::media(desired, dataplane, paths))
            .chain(scsi::found(desired, dataplane))
            .collect(),
        units: scsi::units(desired, dataplane, paths).into_iter().collect(),
        adapters: adapters.collect(),
        uplinks: network::uplinks(desired, dataplane).into_iter().collect(),
        pools: pools::wanted(desired, dataplane, paths),
    }
}

impl Wanted {
    /// What is open was made: whatever becomes of the data plane, the same file is meant.
    pub fn settle(&mut self, open: &VolumeStatus) {
        let spec = self.volumes.get_mut(&open.spec.name);
        if let Some(spec) = spec.filter(|spec| spec.kind.path() == open.spec.kind.path()) {
            spec.kind.settle(open.identity.clone());
            // The unit of a volume that is a disk has its name.
            if let Some(unit) = self.units.get_mut(&open.spec.name) {
                scsi::name_unit(unit, open.identity.as_ref());
            }
        }
    }

    /// A storage pool that is open is not made any more.
    pub fn settle_pool(&mut self, open: &PoolStatus) {
        if let Some(spec) = self.pools.get_mut(&open.spec.name) {
            spec.fresh = false;
            spec.snapshots.retain(|one| open.snapshots.iter().all(|made| made.id != one.id));
        }
    }

    /// Lets go of units whose volume is not here, of LUNs whose unit is not, and of block adapters whose volume is not.
    pub fn drop_dangling(&mut self) {
        let Wanted { volumes, units, adapters, .. } = self;
        units.retain(|_, unit| unit.volume.as_ref().is_none_or(|name| volumes.contains_key(name)));
        adapters
            .retain(|_, spec| spec.block().is_none_or(|block| volumes.contains_key(&block.volume)));
        let dangles = |spec: &AdapterSpec| {
            let targets = spec.scsi().into_iter().flat_map(|scsi| &scsi.targets);
            targets.flat_map(|target| target.luns.values()).any(|unit| !units.contains_key(unit))
        };
        let dangling = adapters.iter().filter(|(_, spec)| dangles(spec));
        let dangling: Vec<String> = dangling.map(|(name, _)| name.clone()).collect();
        for name in dangling {
            if let Some(AdapterSpec {
                device: DeviceSpec::Scsi(ScsiSpec { targets, .. }), ..
            }) = adapters.get_mut(&name)
            {
                for target in targets {
                    target.luns.retain(|_, unit| units.contains_key(unit));
                }
            }
        }
    }
}

/// An adapter's socket.
pub fn adapter_socket(name: &str, set: &Attributes, paths: &Paths) -> std::path::PathBuf {
    attr::adapter::SOCKET.of(set).map_or_else(|| paths.adapter(name), |path| paths.absolute(path))
}

/// An adapter's serial number: what was set, else the start of its volume's name.
pub fn adapter_serial(set: &Attributes) -> String {
    let given =
        attr::adapter::SERIAL.of(set).or_else(|| attr::adapter::VOLUME.of(set)).unwrap_or_default();
    given.chars().take(20).collect()
}

/// The specification of a volume.
pub fn volume(name: &str, set: &Attributes, paths: &Paths) -> VolumeSpec {
    let path = volume_path(name, set, paths).unwrap_or_default();
    let kind = match attr::volume::KIND.of(set) {
        Some(words::VolumeKind::Ram) => {
            RamSpec { named: attr::volume::PATH.is_set(set), ..RamSpec::new(path) }.into()
        }
        Some(words::VolumeKind::Lu) => LuSpec {
            thick: attr::volume::THICK.value(set),
            checksums: attr::volume::CHECKSUMS.value(set),
            ..LuSpec::of(attr::volume::POOL.of(set).unwrap_or_default())
        }
        .into(),
        Some(words::VolumeKind::Null) => {
            NullSpec { zero_fill: attr::volume::ZERO_FILL.value(set) }.into()
        }
        Some(words::VolumeKind::File) | None => VolumeKind::File(FileSpec {
            cache: match attr::volume::CACHE.value(set) {
                Cache::Direct => CacheMode::Direct,
                Cache::Buffered => CacheMode::Buffered,
                Cache::Auto => CacheMode::Auto,
            },
            create: attr::volume::CREATE.value(set),
            preallocate: attr::volume::PREALLOCATE.value(set),
            ..FileSpec::new(path)
        }),
    };
    VolumeSpec {
        bytes: attr::volume::SIZE.of(set),
        block_size: narrow32(attr::volume::BLOCK_SIZE.value(set)),
        read_only: attr::volume::READ_ONLY.value(set),
        limit: limit(set),
        delay: delay(set),
        fault: fault(set),
        ..VolumeSpec::new(name, kind)
    }
}

/// Says of an LU that is to be made of a snapshot which that is, and how large, if it is not to be larger than that. One that is not there, or not made yet, has number 0, which is none's.
fn made_of(desired: &Desired, set: &Attributes, spec: &mut VolumeSpec) {
    let (Some(text), VolumeKind::Lu(lu)) = (attr::volume::SNAPSHOT.of(set), &mut spec.kind) else {
        return;
    };
    if lu.fresh {
        let origin = desired.origin(&lu.pool, text);
        lu.snapshot = Some(origin.map_or(0, |origin| origin.number));
        spec.bytes = origin.map(|origin| origin.bytes.max(spec.bytes.unwrap_or(0)));
    }
}

/// Says with which mark an LU is asked for.
fn marked(desired: &Desired, name: &str, spec: &mut VolumeSpec) {
    if let VolumeKind::Lu(lu) = &mut spec.kind
        && lu.fresh
        && let Some(kept) = desired.allocations.pools.get(&lu.pool)
    {
        lu.asked = kept.making.get(name).copied().unwrap_or(0);
    }
}

/// Says in which tier of its pool an LU is to be made. One that is made of a snapshot is where that is.
fn in_tier(desired: &Desired, set: &Attributes, spec: &mut VolumeSpec) {
    if let VolumeKind::Lu(lu) = &mut spec.kind
        && lu.fresh
        && lu.snapshot.is_none()
    {
        lu.tier = pools::tiers::of_lu(desired, set);
    }
}

fn delay(set: &Attributes) -> Option<DelaySpec> {
    use attr::volume::{DELAY_DEPTH, DELAY_SEED, DELAY_US_MAX, DELAY_US_MIN};
    let max_us = DELAY_US_MAX.value(set);
    (max_us != 0).then(|| DelaySpec {
        min_us: DELAY_US_MIN.value(set),
        max_us,
        depth: narrow32(DELAY_DEPTH.value(set)),
        seed: DELAY_SEED.value(set),
        ..DelaySpec::default()
    })
}

fn fault(set: &Attributes) -> Option<FaultSpec> {
    use attr::volume as v;
    let bad_length = v::FAULT_BAD_LENGTH.value(set);
    let spec = FaultSpec {
        read_error_ppm: narrow32(v::FAULT_READ_ERROR_PPM.value(set)),
        write_error_ppm: narrow32(v::FAULT_WRITE_ERROR_PPM.value(set)),
        torn_write_ppm: narrow32(v::FAULT_TORN_WRITE_PPM.value(set)),
        slow_ppm: narrow32(v::FAULT_SLOW_PPM.value(set)),
        slow_us: v::FAULT_SLOW_US.value(set),
        bad_range: (bad_length != 0).then(|| (v::FAULT_BAD_OFFSET.value(set), bad_length)),
        seed: v::FAULT_SEED.value(set),
        ..FaultSpec::default()
    };
    (spec != FaultSpec { slow_us: spec.slow_us, seed: spec.seed, ..FaultSpec::default() })
        .then_some(spec)
}

/// The disk of a block adapter.
fn block(desired: &Desired, set: &Attributes) -> BlockSpec {
    let volume = attr::adapter::VOLUME.of(set).unwrap_or_default();
    let under = desired[Object::Volume].get(volume);
    BlockSpec {
        volume: volume.to_owned(),
        serial: adapter_serial(set),
        read_only: desired.inherited(attr::adapter::READ_ONLY, set)
            || under.is_some_and(|set| attr::volume::READ_ONLY.value(set)),
        write_cache: attr::adapter::WRITE_CACHE.value(set),
        discard: attr::adapter::DISCARD.value(set),
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
    use attr::adapter as a;
    AdapterSpec {
        name: name.to_owned(),
        socket: adapter_socket(name, set, paths),
        socket_role: match a::SOCKET_ROLE.value(set) {
            words::SocketRole::Client => SocketRole::Client,
            words::SocketRole::Server => SocketRole::Server,
        },
        // What cannot be read is for the owner alone.
        socket_mode: units::parse_mode(a::MODE.value(set)).unwrap_or(0o600),
        socket_owner: Some(a::OWNER.value(set)).filter(|name| !name.is_empty()).map(str::to_owned),
        socket_group: Some(a::GROUP.value(set)).filter(|name| !name.is_empty()).map(str::to_owned),
        queues: match a::KIND.value(set) {
            AdapterKind::Ethernet => narrow16(2 * a::QUEUES.value(set)),
            _ => narrow16(a::QUEUES.value(set)),
        },
        channels: match a::KIND.value(set) {
            AdapterKind::Fc => npiv::channels(desired, name, set),
            _ => narrow16(a::CHANNELS.value(set)),
        },
        queue_size: narrow16(a::QUEUE_SIZE.value(set)),
        seg_max: narrow16(a::SEG_MAX.value(set)),
        wait: match desired.inherited(a::WAIT, set) {
            Wait::Poll => WaitMode::Poll,
            Wait::Interrupt => WaitMode::Interrupt,
            Wait::Adaptive => WaitMode::Adaptive,
        },
        placement: match a::PLACEMENT.value(set) {
            words::Placement::Spread => Placement::Spread,
            words::Placement::Adaptive => Placement::Adaptive,
        },
        withhold: fabric::san::words(a::WITHHOLD.value(set)).map(str::to_owned).collect(),
        device,
    }
}

/// With what a data plane is started.
pub fn dataplane(desired: &Desired, name: &str) -> DataPlaneSpec {
    use attr::dataplane::{CHANNELS, CPUS, POLL_US_MAX};
    let set = desired.dataplane(name);
    DataPlaneSpec {
        name: name.to_owned(),
        cpus: CPUS.value(set).to_owned(),
        channels: narrow32(CHANNELS.value(set)),
        poll_us_max: POLL_US_MAX.value(set).map(narrow32),
    }
}

#[cfg(test)]
mod effects;
