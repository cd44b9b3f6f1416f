//! The block device of an adapter.

use std::sync::{Arc, Mutex};

use block::{Geometry, Volume};
use device_blk::config::{self, CONFIG_BYTES, Offer, WRITEBACK_OFFSET, feature};
use device_blk::{Behind, Shape};
use protocol::message::{AdapterSpec, BlockSpec};

use super::Written;
use crate::session::locked;

pub(crate) struct BlockDevice {
    shape: Arc<Shape>,
    write_cache: bool,
    geometry: Mutex<Geometry>,
    /// None while it is being replaced.
    volume: Mutex<Option<Arc<dyn Volume>>>,
}

impl BlockDevice {
    pub(crate) fn new(spec: &BlockSpec, volume: Arc<dyn Volume>) -> BlockDevice {
        let geometry = volume.geometry();
        let shape = Shape::new(&geometry, &spec.serial, spec.read_only, spec.discard);
        shape.set_write_through(!spec.write_cache);
        BlockDevice {
            shape: Arc::new(shape),
            write_cache: spec.write_cache,
            geometry: Mutex::new(geometry),
            volume: Mutex::new(Some(volume)),
        }
    }

    fn offer(&self, spec: &AdapterSpec) -> Offer {
        Offer { queues: spec.queues, seg_max: spec.seg_max, write_cache: self.write_cache }
    }

    pub(super) fn features(&self, spec: &AdapterSpec) -> u64 {
        let features = config::features(&self.shape, &self.offer(spec));
        let withheld = spec.withhold.iter().any(|name| name == "mq");
        if withheld { features & !feature::MQ } else { features }
    }

    pub(super) fn config_space(&self, spec: &AdapterSpec) -> [u8; CONFIG_BYTES] {
        config::space(&self.shape, &locked(&self.geometry), &self.offer(spec))
    }

    pub(super) fn set_config(&self, offset: usize, bytes: &[u8], features: u64) -> Written {
        match (offset, bytes) {
            (WRITEBACK_OFFSET, [mode @ (0 | 1)]) if features & feature::CONFIG_WCE != 0 => {
                self.shape.set_write_through(*mode == 0);
                Written::Now
            }
            _ => Written::No,
        }
    }

    /// Sets the cache mode that the negotiated features ask for (virtio 1.3, 5.2.5.2 and 5.2.6.2).
    pub(super) fn negotiated(&self, features: u64) {
        self.shape.set_write_through(features & feature::FLUSH == 0);
    }

    pub(super) fn behind(&self) -> Option<Behind> {
        let volume = locked(&self.volume).clone()?;
        Some(Behind { shape: Arc::clone(&self.shape), volume })
    }

    pub(super) fn is_ready(&self) -> bool {
        locked(&self.volume).is_some()
    }

    /// Whether this is its volume already.
    pub(crate) fn is_on(&self, volume: Option<&Arc<dyn Volume>>) -> bool {
        match (&*locked(&self.volume), volume) {
            (Some(now), Some(volume)) => Arc::ptr_eq(now, volume),
            (now, volume) => now.is_none() && volume.is_none(),
        }
    }

    pub(super) fn set_volume(&self, volume: Option<Arc<dyn Volume>>) {
        *locked(&self.volume) = volume;
    }

    pub(super) fn resized(&self, geometry: Geometry) {
        self.shape.set_bytes(geometry.bytes);
        *locked(&self.geometry) = geometry;
    }
}
