//! A volume without a medium: what a server costs when storage costs nothing.

use std::sync::atomic::{AtomicU64, Ordering};

use spec::{NullSpec, VolumeSpec};
use uring::Ring;

use crate::fail::{Failure, check, fail, walk};
use crate::kinds::{Kind, OpenEvent, Opening, size_of};
use crate::turns::{Turn, Turns};
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

    fn lane(&self, _: &mut Ring, id: LaneId) -> Result<Box<dyn Lane>, VolumeError> {
        Ok(Box::new(NullLane {
            id,
            turns: Turns::new(),
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
    id: LaneId,
    turns: Turns,
    bytes: std::sync::Arc<AtomicU64>,
    block_size: u32,
    read_only: bool,
    zero_reads: bool,
}

impl NullLane {
    fn check(&self, request: &Request<'_>) -> Result<(), IoError> {
        check(request, self.bytes.load(Ordering::Relaxed), self.block_size, self.read_only)
    }

    /// Fills a part of the buffers of a read with zeroes, as much as its turn allows.
    #[cold]
    fn fill(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        let rest = request.len.saturating_sub(request.done);
        let turn = match self.turns.ask(request) {
            Turn::Copy(limit) => {
                let bytes = limit.min(rest);
                walk(request.bufs, request.done, bytes, |buf| {
                    buf.fill(0);
                    true
                });
                match self.turns.copied(request, request.done + bytes) {
                    None => return Submit::Done(Ok(())),
                    Some(turn) => turn,
                }
            }
            turn => turn,
        };
        let tick = self.id.user_data(LaneId::TICK);
        Turns::answer(turn, || ring.note(tick))
    }
}

impl Lane for NullLane {
    #[inline]
    fn submit(&mut self, ring: &mut Ring, request: &mut Request<'_>) -> Submit {
        let checked = self.check(request);
        if self.zero_reads && request.op == OpKind::Read && checked.is_ok() {
            return self.fill(ring, request);
        }
        Submit::Done(checked)
    }

    fn complete(&mut self, ring: &mut Ring, token: u64, _: i32, out: &mut Vec<Finish>) {
        debug_assert!(
            token == LaneId::TICK,
            "a null volume has nothing in flight, but {token} completed"
        );
        if self.turns.tick(out) {
            ring.note(self.id.user_data(LaneId::TICK));
        }
    }

    fn detach(&mut self, _: &mut Ring) {
        debug_assert!(self.turns.is_empty(), "detached with reads under way");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::TestBench;
    use crate::turns::ROUND;

    /// While it fills, nobody else on its channel gets anything.
    #[test]
    fn a_long_read_is_filled_in_rounds() {
        const LEN: usize = 4 * ROUND as usize;
        let volume = NullVolume::new("null", 64 << 20, 512, false, true);
        let mut bench = TestBench::new(&volume, LEN);
        let buf = bench.buf(0, LEN);
        buf.fill(1);
        bench.start(OpKind::Read, 0, LEN as u64, &[buf]);
        assert_eq!(bench.bytes(LEN - 1, 1), [1], "all at once");
        let (_, result) = bench.finished().expect("under way");
        assert_eq!(result, Ok(()));
        assert!(bench.bytes(0, LEN).iter().all(|byte| *byte == 0));
        assert!(bench.completions() >= 3);
        assert_eq!(bench.enters(), 0, "the kernel has nothing to do with it");
        bench.close();
    }
}
