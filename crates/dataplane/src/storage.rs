//! What can stand behind adapters: open volumes and logical units, by name.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use block::{Geometry, Volume, VolumeError};
use device_scsi::{Medium, Unit, Units};
use protocol::message::{AdapterSpec, DeviceSpec};
use scsi::LogicalUnit;
use spec::{FileIdentity, VolumeSpec};

/// What can stand behind adapters, by name.
#[derive(Default)]
pub(crate) struct Storage {
    pub(crate) volumes: BTreeMap<String, OpenVolume>,
    /// The volumes on each file.
    on_file: BTreeMap<Identity, BTreeSet<String>>,
    pub(crate) units: BTreeMap<String, Unit>,
    /// The units on each volume.
    on_volume: BTreeMap<String, BTreeSet<String>>,
    /// Units that were removed while clients were registered with them, by name: whoever was shut out shall not find the door open when such
    /// a unit is made again, on another path to its disk or with another mask. Until their volume goes for good.
    pub(crate) left: BTreeMap<String, Left>,
}

/// What is kept of a unit that was removed.
pub(crate) struct Left {
    pub(crate) unit: Arc<LogicalUnit>,
    pub(crate) volume: Option<String>,
}

/// An open volume.
pub(crate) struct OpenVolume {
    pub(crate) spec: VolumeSpec,
    pub(crate) volume: Arc<dyn Volume>,
    pub(crate) notes: Vec<String>,
    pub(crate) identity: Option<Identity>,
    /// What its file is known by after the next start, too.
    pub(crate) known: Option<FileIdentity>,
}

impl OpenVolume {
    /// Whether this size cuts something off. A write that was judged by the old one must not make the file longer again: nothing may be under way
    /// then.
    pub(crate) fn is_cut_by(&self, bytes: u64) -> bool {
        bytes < self.volume.geometry().bytes
    }

    pub(crate) fn resize(&mut self, bytes: u64) -> Result<(), VolumeError> {
        self.volume.resize(bytes)?;
        self.has_size(bytes);
        Ok(())
    }

    /// Its volume was given this size.
    pub(crate) fn has_size(&mut self, bytes: u64) {
        self.spec.bytes = Some(bytes);
        if let Some(known) = &mut self.known {
            known.set_bytes(self.volume.geometry().bytes);
        }
    }
}

/// Device and inode: what a path must still lead to when a volume is opened again under its clients.
pub(crate) type Identity = (u64, u64);

impl Storage {
    /// What a block device has behind it.
    pub(crate) fn block(&self, spec: &AdapterSpec) -> Option<Arc<dyn Volume>> {
        let DeviceSpec::Block(block) = &spec.device else { return None };
        self.volumes.get(&block.volume).map(|open| Arc::clone(&open.volume))
    }

    /// What a SCSI device has behind it.
    pub(crate) fn scsi(&self, spec: &AdapterSpec) -> Units {
        let targets = spec.scsi().into_iter().flat_map(|scsi| &scsi.targets);
        let unit = |name: &String| Some((name.clone(), self.units.get(name)?.clone()));
        targets.flat_map(|target| target.luns.values()).filter_map(unit).collect()
    }

    /// A network card has no storage behind it.
    pub(crate) fn ethernet(&self, _: &AdapterSpec) {}

    /// The names of the units on a volume.
    pub(crate) fn units_on(&self, volume: &str) -> impl Iterator<Item = &String> + use<'_> {
        self.on_volume.get(volume).into_iter().flatten()
    }

    /// Puts a unit in, in place of the one of its name.
    pub(crate) fn put_unit(&mut self, unit: Unit) {
        self.take_unit(&unit.spec.name);
        let name = unit.spec.name.clone();
        if let Some(volume) = &unit.spec.volume {
            self.on_volume.entry(volume.clone()).or_default().insert(name.clone());
        }
        self.units.insert(name, unit);
    }

    /// Takes a volume out, also from under the units on it: they wait for another one of its name.
    pub(crate) fn take_out(&mut self, name: &str) -> Option<OpenVolume> {
        let old = self.take_volume(name)?;
        let units: Vec<String> = self.units_on(name).cloned().collect();
        for unit in units {
            if let Some(unit) = self.units.get_mut(&unit) {
                unit.medium = Medium::Awaited;
            }
        }
        Some(old)
    }

    /// Puts an open volume in its place, and under the units on it; what was there before.
    pub(crate) fn put_in(&mut self, open: OpenVolume) -> Option<OpenVolume> {
        let (name, bytes) = (open.spec.name.clone(), open.volume.geometry().bytes);
        let units: Vec<String> = self.units_on(&name).cloned().collect();
        for unit in units {
            if let Some(unit) = self.units.get_mut(&unit) {
                unit.medium = Medium::Volume(Arc::clone(&open.volume));
                unit.set_bytes(bytes);
            }
        }
        self.put_volume(open)
    }

    /// What clients are to be told of a volume whose size has changed: the units on it know it already.
    pub(crate) fn resized(&self, name: &str) -> (Geometry, Vec<String>) {
        let geometry = self.volumes[name].volume.geometry();
        let units: Vec<String> = self.units_on(name).cloned().collect();
        for unit in units.iter().filter_map(|unit| self.units.get(unit)) {
            unit.set_bytes(geometry.bytes);
        }
        (geometry, units)
    }

    pub(crate) fn take_unit(&mut self, name: &str) -> Option<Unit> {
        let unit = self.units.remove(name)?;
        if let Some(volume) = &unit.spec.volume {
            forget(&mut self.on_volume, volume, name);
        }
        Some(unit)
    }

    /// The volumes on a file.
    pub(crate) fn volumes_on(&self, file: Identity) -> impl Iterator<Item = &OpenVolume> {
        self.on_file.get(&file).into_iter().flatten().filter_map(|name| self.volumes.get(name))
    }

    /// Puts a volume in, in place of the one of its name, which it gives.
    pub(crate) fn put_volume(&mut self, open: OpenVolume) -> Option<OpenVolume> {
        let name = open.spec.name.clone();
        let before = self.take_volume(&name);
        if let Some(file) = open.identity {
            self.on_file.entry(file).or_default().insert(name.clone());
        }
        self.volumes.insert(name, open);
        before
    }

    pub(crate) fn take_volume(&mut self, name: &str) -> Option<OpenVolume> {
        let open = self.volumes.remove(name)?;
        if let Some(file) = open.identity {
            forget(&mut self.on_file, &file, name);
        }
        Some(open)
    }
}

/// Takes a name out of those that are noted for a key.
pub(crate) fn forget<K: Ord>(noted: &mut BTreeMap<K, BTreeSet<String>>, key: &K, name: &str) {
    if let Some(names) = noted.get_mut(key) {
        names.remove(name);
        if names.is_empty() {
            noted.remove(key);
        }
    }
}
