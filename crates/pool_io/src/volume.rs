//! [`LuVolume`]: an LU as a volume.
//!
//! # Sizes
//!
//! An LU has whole chunks, and its volume ends somewhere in the last. What lies behind that end is zeros: it was never written, or is zeroed when the end comes nearer, before chunks are
//! given up; so a volume that grows again has nothing of what it was. A volume that grows shows its new end when the chunks are the LU's for good.

use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use block::{Geometry, Lane, LaneId, Volume, VolumeError, VolumeSpec};
use pool::format::{BLOCK_BYTES, CHUNK_BYTES};
use pool::{Extent, Request};
use spec::FileIdentity;
use uring::Ring;

use crate::lane::LuLane;
use crate::post::Inbox;
use crate::table::{Shared, Table};
use crate::thread::ask_core;

/// See the module.
pub(crate) struct LuVolume {
    name: String,
    pub(crate) shared: Arc<Shared>,
    pub(crate) table: Arc<Table>,
    pub(crate) inbox: Arc<Inbox>,
    pub(crate) block_size: u32,
    pub(crate) read_only: bool,
    pub(crate) write_cache: bool,
}

/// The size that an LU is opened with. Where it is another than wanted, since nobody was there to change it, that comes as a change: an LU grows, and is cut only by whoever knew how long it
/// was. One that is longer than anybody knows was made so by somebody else's word.
pub(crate) fn size(table: &Table, wanted: Option<u64>, known: Option<&FileIdentity>) -> u64 {
    let known = known.map(FileIdentity::bytes).filter(|known| chunks_for(*known) == table.chunks());
    match (wanted, known) {
        (Some(wanted), Some(known)) if known > wanted => known,
        (Some(wanted), _) => wanted.min(table.bytes()),
        (None, Some(known)) => known,
        (None, None) => table.bytes(),
    }
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
        table.size.store(bytes, Relaxed);
        LuVolume {
            name: spec.name.clone(),
            shared,
            table,
            inbox,
            block_size: spec.block_size,
            read_only: spec.read_only,
            write_cache: !spec.write_through,
        }
    }

    fn fail(&self, what: String, help: &str) -> VolumeError {
        let (volume, help) = (self.name.clone(), Some(help.to_owned()));
        VolumeError { volume, what, help, source: None }
    }

    /// Asks the pool, and waits.
    fn ask(&self, request: Request) -> Result<(), VolumeError> {
        let answer = ask_core(&self.inbox, &self.shared, request);
        let answer = answer.map_err(|error| self.fail(error.what, "restart the data plane"))?;
        answer.map(drop).map_err(|fault| {
            let what = format!("cannot be resized in pool {}: {fault}", self.shared.name);
            self.fail(what, "see `trunkline pool show`")
        })
    }

    /// Zeros behind the new end, and no chunks that lie behind it altogether.
    fn cut(&self, bytes: u64) -> Result<(), VolumeError> {
        let (lu, chunks) = (self.table.number, chunks_for(bytes));
        let end = u64::from(chunks) * CHUNK_BYTES;
        if bytes < end {
            self.ask(Request::Zeroes(Extent { lu, at: bytes, bytes: end - bytes }))?;
            self.ask(Request::Flush { lu })?;
        }
        if chunks < self.table.chunks() {
            self.ask(Request::Resize { lu, chunks })?;
        }
        Ok(())
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
            bytes: self.table.size.load(Relaxed),
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
        // Where chunks have two legs, such a PV is away, and nothing fails.
        !self.shared.mirrors && self.shared.pvs().iter().any(|(_, pv)| pv.volume.lost())
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
        let now = self.table.size.load(Relaxed);
        if bytes == now {
            return Ok(());
        }
        if bytes == 0 || !bytes.is_multiple_of(u64::from(self.block_size)) {
            let help = format!("choose a multiple of its block_size, {}", self.block_size);
            return Err(self.fail(format!("cannot be resized to {bytes} bytes"), &help));
        }
        if self.read_only {
            let what = "is read-only and cannot be resized".to_owned();
            return Err(self.fail(what, "set read_only to off first"));
        }
        // Before anything is cut off.
        let view = self.shared.view();
        let shares = view.lus.iter().any(|lu| lu.lu == self.table.number && lu.shares);
        if shares && bytes < now {
            let what =
                "shares what it holds with a snapshot, or is a clone, and cannot become smaller";
            let help = "remove its snapshots, or detach it, first";
            return Err(self.fail(what.to_owned(), help));
        }
        if bytes > now {
            let (lu, chunks) = (self.table.number, chunks_for(bytes));
            if chunks > self.table.chunks() {
                self.ask(Request::Resize { lu, chunks })?;
            }
            self.table.size.store(bytes, SeqCst);
            return Ok(());
        }
        let lanes = self.table.lanes.load(SeqCst);
        if lanes > 0 {
            let what = format!("is in use by {lanes} channels and cannot be made smaller");
            return Err(self.fail(what, "stop its clients' queues first"));
        }
        self.table.size.store(bytes, SeqCst);
        self.cut(bytes).inspect_err(|_| self.table.size.store(now, SeqCst))
    }
}

/// Chunks for so many bytes.
pub(crate) fn chunks_for(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(CHUNK_BYTES)).unwrap_or(u32::MAX)
}
