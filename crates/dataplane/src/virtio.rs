//! [`Device`]: the virtio device that an adapter is for its client, as far as block and SCSI differ.
//!
//! What they have in common, the vhost-user part, is in [`crate::session`] and [`crate::queues`]. Locks here are held for moments and
//! never while somebody waits for a channel: the steward takes them too.

mod block;
mod scsi;

use std::sync::Arc;

use ::block::{Geometry, Volume};
use protocol::message::{AdapterSpec, DeviceSpec};

pub(crate) use self::block::BlockDevice;
pub(crate) use self::scsi::ScsiDevice;
use crate::adapter::Means;
use crate::devices::Behind;
use crate::luns::{Change, Units};
use crate::units::Medium;

/// What an adapter's specification leads to: everything behind its device.
#[derive(Clone)]
pub(crate) enum Backing {
    /// The volume of a block device; none while it is being replaced.
    Block(Option<Arc<dyn Volume>>),
    /// The units of a SCSI device.
    Scsi(Units),
}

impl Backing {
    /// Whether queues can run on it.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Backing::Block(volume) => volume.is_some(),
            Backing::Scsi(units) => {
                !units.values().any(|unit| matches!(unit.medium, Medium::Awaited))
            }
        }
    }
}

/// The device of an adapter.
pub(crate) enum Device {
    Block(BlockDevice),
    Scsi(Arc<ScsiDevice>),
}

/// What a client is told after a resize.
pub(crate) enum Resized {
    /// The configuration space has changed.
    Config,
    /// Events.
    Events(Vec<Event>),
}

/// An entry of the event queue.
pub(crate) type Event = [u8; device_scsi::event::EVENT_BYTES];

/// How a write to the configuration space takes effect.
pub(crate) enum Written {
    /// At once.
    Now,
    /// When the queues start again.
    WithNewQueues,
    /// It is refused.
    No,
}

impl Device {
    /// # Errors
    ///
    /// When specification and backing do not fit.
    pub(crate) fn new(
        spec: &AdapterSpec,
        backing: &Backing,
        means: &Means,
    ) -> Result<Device, String> {
        match (&spec.device, backing) {
            (DeviceSpec::Block(block), Backing::Block(Some(volume))) => {
                Ok(Device::Block(BlockDevice::new(block, Arc::clone(volume))))
            }
            (DeviceSpec::Scsi(scsi), Backing::Scsi(units)) => {
                Ok(Device::Scsi(ScsiDevice::new(spec, scsi, units, means)?))
            }
            _ => Err("its volume is being replaced".to_owned()),
        }
    }

    /// The SCSI device, if it is one.
    pub(crate) fn scsi(&self) -> Option<&Arc<ScsiDevice>> {
        match self {
            Device::Block(_) => None,
            Device::Scsi(scsi) => Some(scsi),
        }
    }

    /// Virtqueues before those for I/O.
    pub(crate) fn fixed_queues(&self) -> u16 {
        match self {
            Device::Block(_) => 0,
            Device::Scsi(_) => device_scsi::config::OTHER_QUEUES,
        }
    }

    /// Features of the device itself.
    pub(crate) fn features(&self, spec: &AdapterSpec) -> u64 {
        match self {
            Device::Block(block) => block.features(spec),
            Device::Scsi(_) => device_scsi::config::feature::OFFERED,
        }
    }

    pub(crate) fn config_space(&self, spec: &AdapterSpec) -> Vec<u8> {
        match self {
            Device::Block(block) => block.config_space(spec).to_vec(),
            Device::Scsi(scsi) => scsi.config_space(spec).to_vec(),
        }
    }

    /// The client writes to the configuration space.
    pub(crate) fn set_config(&self, offset: usize, bytes: &[u8], features: u64) -> Written {
        match self {
            Device::Block(block) => block.set_config(offset, bytes, features),
            Device::Scsi(scsi) => scsi.set_config(offset, bytes),
        }
    }

    /// The client has negotiated these.
    pub(crate) fn negotiated(&self, features: u64) {
        match self {
            Device::Block(block) => block.negotiated(features),
            Device::Scsi(scsi) => scsi.negotiated(features),
        }
    }

    /// Names of negotiated features that matter to an administrator.
    pub(crate) fn feature_names(&self) -> Vec<&'static str> {
        match self {
            Device::Block(_) => Vec::new(),
            Device::Scsi(scsi) => scsi.feature_names(),
        }
    }

    /// The driver has reset the device, and nothing of it is in flight. What was negotiated stays until it negotiates again.
    pub(crate) fn reset(&self) {
        match self {
            Device::Block(_) => {}
            Device::Scsi(scsi) => scsi.reset(),
        }
    }

    /// The client is gone, and nothing of it is in flight.
    pub(crate) fn client_lost(&self) {
        self.reset();
        self.forget_features();
    }

    fn forget_features(&self) {
        match self {
            // The cache mode stays as the last client had it, until the next one negotiates.
            Device::Block(_) => {}
            Device::Scsi(scsi) => scsi.negotiated(0),
        }
    }

    /// What virtqueue `index` gets; none while something behind the device is being replaced.
    pub(crate) fn behind(&self, index: u16, features: u64) -> Option<Behind> {
        match self {
            Device::Block(block) => block.behind().map(Behind::Block),
            Device::Scsi(scsi) => scsi.behind(index, features).map(Behind::Scsi),
        }
    }

    /// Whether queues have something to run on.
    pub(crate) fn is_ready(&self) -> bool {
        match self {
            Device::Block(block) => block.is_ready(),
            Device::Scsi(scsi) => scsi.is_ready(),
        }
    }

    /// Puts something else behind the device, or lets go of what is to be replaced. No queue runs. What the client is to be told.
    pub(crate) fn set_backing(
        &self,
        spec: &AdapterSpec,
        backing: &Backing,
    ) -> Result<Vec<Event>, String> {
        match (self, backing, spec.scsi()) {
            (Device::Block(block), Backing::Block(volume), None) => {
                block.set_volume(volume.clone());
                Ok(Vec::new())
            }
            (Device::Scsi(scsi), Backing::Scsi(units), Some(spec)) => scsi.set_units(spec, units),
            _ => Err("it is another device".to_owned()),
        }
    }

    /// `volume`, behind `units`, has another size.
    pub(crate) fn resized(&self, geometry: &Geometry, units: &[String]) -> Resized {
        match self {
            Device::Block(block) => {
                block.resized(*geometry);
                Resized::Config
            }
            Device::Scsi(scsi) => Resized::Events(scsi.capacity_events(units)),
        }
    }
}

/// A change of the LUN map that the channels have yet to hear of.
pub(crate) struct NewLuns {
    pub(crate) map: Arc<device_scsi::LunMap>,
    pub(crate) view: crate::luns::View,
    pub(crate) change: Change,
}
