//! [`LuVolume`]: an LU as a volume.

use std::sync::Arc;
use std::sync::atomic::Ordering::SeqCst;

use block::{Geometry, Lane, LaneId, Volume, VolumeError, VolumeSpec};
use pool::format::BLOCK_BYTES;
use uring::Ring;

use crate::lane::LuLane;
use crate::post::Inbox;
use crate::table::{Shared, Table};

/// See the module.
pub(crate) struct LuVolume {
    name: String,
    pub(crate) shared: Arc<Shared>,
    pub(crate) table: Arc<Table>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) bytes: u64,
    pub(crate) block_size: u32,
    pub(crate) read_only: bool,
    pub(crate) write_cache: bool,
}

impl LuVolume {
    pub(crate) fn new(
        spec: &VolumeSpec,
        shared: Arc<Shared>,
        table: Arc<Table>,
        inbox: Arc<Inbox>,
        bytes: u64,
    ) -> LuVolume {
        table.users.fetch_add(1, SeqCst);
        LuVolume {
            name: spec.name.clone(),
            shared,
            table,
            inbox,
            bytes,
            block_size: spec.block_size,
            read_only: spec.read_only,
            write_cache: !spec.write_through,
        }
    }
}

impl Drop for LuVolume {
    fn drop(&mut self) {
        self.table.users.fetch_sub(1, SeqCst);
    }
}

impl Volume for LuVolume {
    fn geometry(&self) -> Geometry {
        Geometry {
            bytes: self.bytes,
            block_size: self.block_size,
            physical_block_size: self.block_size.max(4096),
            // What a first write takes.
            optimal_io_size: BLOCK_BYTES as u32,
            discard: !self.read_only,
            write_zeroes: !self.read_only,
            read_only: self.read_only,
            write_cache: self.write_cache,
        }
    }

    fn trouble(&self) -> Option<String> {
        let trouble = self.shared.view().trouble;
        trouble.map(|trouble| format!("pool {}: {trouble}", self.shared.name))
    }

    fn lost(&self) -> bool {
        self.shared.pvs.iter().any(|pv| pv.lost())
    }

    fn lane(&self, ring: &mut Ring, id: LaneId) -> Result<Box<dyn Lane>, VolumeError> {
        let lane = LuLane::new(self, ring, id).map_err(|what| VolumeError {
            volume: self.name.clone(),
            what: format!("cannot be attached to another channel: {what}"),
            help: Some("use fewer adapters for each channel".to_owned()),
            source: None,
        })?;
        Ok(Box::new(lane))
    }

    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        if bytes == self.bytes {
            return Ok(());
        }
        Err(VolumeError {
            volume: self.name.clone(),
            what: format!("has {} bytes and cannot be resized: an LU keeps its size", self.bytes),
            help: Some("make another LU, and copy".to_owned()),
            source: None,
        })
    }
}
