//! A volume without a medium: what a server costs when storage costs nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use memory::IoBuf;
use spec::{NullSpec, VolumeSpec};
use uring::Ring;

use crate::fail::{Failure, check, fail};
use crate::kinds::{Kind, OpenEvent, Opening, size_of};
use crate::{
    Finish, Geometry, IoError, Lane, LaneId, OpKind, Request, Submit, Volume, VolumeError,
};

/// Writes vanish; reads leave the buffers as they are, or fill them with zeroes. All at once, on the caller's thread.
///
/// Without zeroes a client finds its own old memory in the buffers, never another client's: the server writes nothing.
#[derive(Debug)]
pub struct NullVolume {
    name: String,
    bytes: std::sync::Arc<AtomicU64>,
    block_size: u32,
    read_only: bool,
    zero_reads: bool,
}

impl Kind for NullSpec {
    fn check(&self, spec: &VolumeSpec) -> Result<(), VolumeError> {
        size_of(spec, "a null volume has no size of its own").map(drop)
    }

    fn open(
        &self,
        spec: &VolumeSpec,
        opening: &mut Opening<'_>,
    ) -> Result<std::sync::Arc<dyn Volume>, VolumeError> {
        let bytes = size_of(spec, "a null volume has no size of its own")?;
        (opening.event)(OpenEvent::Access("none"));
        let (block_size, read_only) = (spec.block_size, spec.read_only);
        let volume = NullVolume::new(&spec.name, bytes, block_size, read_only, self.zero_fill);
        Ok(std::sync::Arc::new(volume))
    }
}

impl NullVolume {
    /// A volume of `bytes` bytes, which must be a multiple of `block_size`, 512 or 4096.
    #[must_use]
    pub fn new(
        name: &str,
        bytes: u64,
        block_size: u32,
        read_only: bool,
        zero_reads: bool,
    ) -> NullVolume {
        NullVolume {
            name: name.to_owned(),
            bytes: std::sync::Arc::new(AtomicU64::new(bytes)),
            block_size,
            read_only,
            zero_reads,
        }
    }
}

impl Volume for NullVolume {
    fn geometry(&self) -> Geometry {
        Geometry {
            bytes: self.bytes.load(Ordering::Relaxed),
            block_size: self.block_size,
            physical_block_size: self.block_size.max(4096),
            optimal_io_size: 0,
            discard: true,
            write_zeroes: true,
            read_only: self.read_only,
            write_cache: false,
        }
    }

    fn trouble(&self) -> Option<String> {
        None
    }

    fn lane(&self, _: &mut Ring, _: LaneId) -> Result<Box<dyn Lane>, VolumeError> {
        Ok(Box::new(NullLane {
            bytes: self.bytes.clone(),
            block_size: self.block_size,
            read_only: self.read_only,
            zero_reads: self.zero_reads,
        }))
    }

    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        if bytes == 0 || !bytes.is_multiple_of(u64::from(self.block_size)) {
            let what = format!("cannot be resized to {bytes} bytes");
            let help = format!("choose a multiple of its block_size, {}", self.block_size);
            return Err(fail(&self.name, what).help(help));
        }
        self.bytes.store(bytes, Ordering::Relaxed);
        Ok(())
    }
}

struct NullLane {
    bytes: std::sync::Arc<AtomicU64>,
    block_size: u32,
    read_only: bool,
    zero_reads: bool,
}

impl NullLane {
    fn serve(&self, request: &Request<'_>) -> Result<(), IoError> {
        check(request, self.bytes.load(Ordering::Relaxed), self.block_size, self.read_only)?;
        if self.zero_reads && request.op == OpKind::Read {
            request.bufs.iter().copied().for_each(|buf: IoBuf| buf.fill(0));
        }
        Ok(())
    }
}

impl Lane for NullLane {
    #[inline]
    fn submit(&mut self, _: &mut Ring, request: &mut Request<'_>) -> Submit {
        Submit::Done(self.serve(request))
    }

    fn complete(&mut self, _: &mut Ring, token: u64, _: i32, _: &mut Vec<Finish>) {
        debug_assert!(false, "a null volume has nothing in flight, but {token} completed");
    }

    fn detach(&mut self, _: &mut Ring) {}
}
