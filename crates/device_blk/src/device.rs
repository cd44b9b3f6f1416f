//! The block device of an adapter: what it is for the session of its client.

use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard};

use block::{Geometry, Volume};
use channel::Never;
use channel::device::{AskChannels, Device, Making, Queues, Resized, Tell, Written};
use protocol::message::{AdapterSpec, DeviceSpec};
use vring::InflightRegion;

use crate::config::{self, Offer, WRITEBACK_OFFSET, feature};
use crate::{Behind, BlkHandler, Shape};

/// The block device of an adapter.
pub struct BlkDevice {
    shape: Arc<Shape>,
    write_cache: bool,
    geometry: Mutex<Geometry>,
    /// None while it is being replaced.
    volume: Mutex<Option<Arc<dyn Volume>>>,
    /// Memory that the client keeps: the cache mode that its driver chose stands there, since it is not said again to the next process.
    kept: Mutex<Option<InflightRegion>>,
    /// The driver has said which one it wants.
    said: AtomicBool,
}

impl std::fmt::Debug for BlkDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("BlkDevice").field("shape", &self.shape).finish_non_exhaustive()
    }
}

impl BlkDevice {
    fn volume(&self) -> MutexGuard<'_, Option<Arc<dyn Volume>>> {
        self.volume.lock().expect("a panic ends the process")
    }

    fn geometry(&self) -> MutexGuard<'_, Geometry> {
        self.geometry.lock().expect("a panic ends the process")
    }

    fn kept(&self) -> MutexGuard<'_, Option<InflightRegion>> {
        self.kept.lock().expect("a panic ends the process")
    }

    fn offer(&self, spec: &AdapterSpec) -> Offer {
        Offer { queues: spec.queues, seg_max: spec.seg_max, write_cache: self.write_cache }
    }

    /// Whether this is its volume already.
    fn is_on(&self, volume: Option<&Arc<dyn Volume>>) -> bool {
        match (&*self.volume(), volume) {
            (Some(now), Some(volume)) => Arc::ptr_eq(now, volume),
            (now, volume) => now.is_none() && volume.is_none(),
        }
    }
}

impl Device for BlkDevice {
    type Handler = BlkHandler;
    /// Its volume; none while that is being replaced.
    type Backing = Option<Arc<dyn Volume>>;
    type Service = ();

    fn service(_: AskChannels<Never>) -> std::io::Result<()> {
        Ok(())
    }

    fn new(
        spec: &AdapterSpec,
        volume: &Option<Arc<dyn Volume>>,
        _: &Making<'_, ()>,
    ) -> Result<Arc<BlkDevice>, String> {
        let DeviceSpec::Block(spec) = &spec.device else {
            return Err("it is no block device".to_owned());
        };
        let volume = volume.as_ref().ok_or("its volume is being replaced")?;
        let geometry = volume.geometry();
        let shape = Shape::new(&geometry, &spec.serial, spec.read_only, spec.discard);
        shape.set_write_through(!spec.write_cache);
        Ok(Arc::new(BlkDevice {
            shape: Arc::new(shape),
            write_cache: spec.write_cache,
            geometry: Mutex::new(geometry),
            volume: Mutex::new(Some(Arc::clone(volume))),
            kept: Mutex::new(None),
            said: AtomicBool::new(false),
        }))
    }

    fn is_whole(volume: &Option<Arc<dyn Volume>>) -> bool {
        volume.is_some()
    }

    fn features(&self, spec: &AdapterSpec) -> u64 {
        let features = config::features(&self.shape, &self.offer(spec));
        if spec.withholds("mq") { features & !feature::MQ } else { features }
    }

    fn config_space(&self, spec: &AdapterSpec) -> Vec<u8> {
        config::space(&self.shape, &self.geometry(), &self.offer(spec)).to_vec()
    }

    fn set_config(&self, offset: usize, bytes: &[u8], features: u64) -> Written {
        match (offset, bytes) {
            (WRITEBACK_OFFSET, [mode @ (0 | 1)]) if features & feature::CONFIG_WCE != 0 => {
                self.said.store(true, Relaxed);
                self.shape.set_write_through(*mode == 0);
                if let Some(kept) = &*self.kept() {
                    kept.set_mark(*mode == 0);
                }
                Written::Now
            }
            _ => Written::No,
        }
    }

    /// Sets the cache mode that the negotiated features ask for (virtio 1.3, 5.2.5.2 and 5.2.6.2). It stays as the last client had it
    /// until the next one negotiates.
    fn negotiated(&self, features: u64) {
        self.said.store(false, Relaxed);
        self.shape.set_write_through(features & feature::FLUSH == 0);
    }

    /// A driver whose life goes on has the cache mode that it chose; one that begins, what it negotiated.
    fn kept_memory(&self, region: &InflightRegion) {
        if region.is_used() {
            self.shape.set_write_through(self.shape.write_through() || region.mark());
        } else {
            region.set_mark(self.shape.write_through());
        }
        *self.kept() = Some(region.clone());
    }

    fn client_lost(&self) {
        *self.kept() = None;
        self.said.store(false, Relaxed);
    }

    /// A driver that may choose, and whose machine keeps nothing, may have chosen write-through with an earlier process and says nothing now: it has
    /// that until it says otherwise.
    fn behind(&self, _: u16, features: u64) -> Option<Behind> {
        let volume = self.volume().clone()?;
        if features & feature::CONFIG_WCE != 0 && self.kept().is_none() && !self.said.load(Relaxed)
        {
            self.shape.set_write_through(true);
        }
        Some(Behind { shape: Arc::clone(&self.shape), volume })
    }

    fn is_ready(&self) -> bool {
        self.volume().is_some()
    }

    fn set_backing(
        &self,
        _: &AdapterSpec,
        volume: &Option<Arc<dyn Volume>>,
        queues: &mut dyn Queues<Never>,
    ) -> Result<(), String> {
        if !self.is_on(volume.as_ref()) {
            queues.with_all_stopped(&mut || self.volume().clone_from(volume));
        }
        Ok(())
    }

    fn resized(&self, spec: &AdapterSpec, resized: &Resized<'_>) -> Tell<Never> {
        // Its next form may be on that volume.
        if !spec.uses_volume(resized.volume) {
            return Tell::Nothing;
        }
        self.shape.set_bytes(resized.geometry.bytes);
        *self.geometry() = *resized.geometry;
        Tell::Config
    }
}
