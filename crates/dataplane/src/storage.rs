//! What can stand behind adapters: open volumes and logical units, by name.

use std::collections::BTreeMap;
use std::sync::Arc;

use block::Volume;
use device_scsi::{Unit, Units};
use protocol::message::{AdapterSpec, DeviceSpec};
use scsi::LogicalUnit;
use spec::{FileIdentity, VolumeSpec};

/// What can stand behind adapters, by name.
#[derive(Default)]
pub(crate) struct Storage {
    pub(crate) volumes: BTreeMap<String, OpenVolume>,
    pub(crate) units: BTreeMap<String, Unit>,
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

    /// The units on a volume.
    pub(crate) fn units_on(&self, volume: &str) -> Vec<String> {
        let on = |unit: &&Unit| unit.spec.volume.as_deref() == Some(volume);
        self.units.values().filter(on).map(|unit| unit.spec.name.clone()).collect()
    }
}
