//! [`Faulty`]: another volume that fails as disks do, by seed.

use std::sync::Arc;
use std::time::Duration;

use memory::{IoBuf, clock};
use spec::FaultSpec;
use uring::{Op, Ring};

use crate::fail::walk;
use crate::request::DEPTH_MAX;
use crate::{
    Finish, Geometry, IoError, Lane, LaneId, OpKind, Outcome, Request, Submit, Tag, Volume,
    VolumeError, Wait,
};
use memory::random::Random;

/// Spoils requests to another volume. A fault is drawn once for each request, whether it parks or needs several rounds.
#[derive(Debug)]
pub struct Faulty<V: ?Sized> {
    spec: Arc<FaultSpec>,
    depth: u8,
    inner: Arc<V>,
}

/// Writes being torn at one time in a lane; further ones are left whole meanwhile.
const TORN_MAX: usize = 64;

impl<V: Volume + ?Sized> Faulty<V> {
    /// Puts faults before `inner`. `depth` is the wrapper's place in the stack, below 7: its bit of
    /// [`Request::passed`].
    ///
    /// # Panics
    ///
    /// When `depth` is 7 or more.
    #[must_use]
    pub fn new(inner: Arc<V>, spec: &FaultSpec, depth: u8) -> Faulty<V> {
        assert!(depth < DEPTH_MAX, "a stack of more than seven wrappers");
        Faulty { spec: Arc::new(spec.clone()), depth, inner }
    }
}

impl<V: Volume + ?Sized> Volume for Faulty<V> {
    fn geometry(&self) -> Geometry {
        self.inner.geometry()
    }

    fn trouble(&self) -> Option<String> {
        self.inner.trouble()
    }

    fn lost(&self) -> bool {
        self.inner.lost()
    }

    fn removed(&self) -> bool {
        self.inner.removed()
    }

    fn lane(&self, ring: &mut Ring, id: LaneId) -> Result<Box<dyn Lane>, VolumeError> {
        Ok(Box::new(FaultyLane {
            random: Random::new(self.spec.seed ^ (u64::from(id.0) << 32)),
            spec: self.spec.clone(),
            bit: 1 << self.depth,
            block_size: u64::from(self.inner.geometry().block_size),
            torn: Vec::with_capacity(TORN_MAX),
            scratch: Vec::with_capacity(Op::MAX_BUFS),
            inner: self.inner.lane(ring, id)?,
        }))
    }

    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        self.inner.resize(bytes)
    }
}

/// What happens to a request.
enum Fate {
    Whole,
    Fails,
    Torn { bytes: u64 },
    Late,
}

struct FaultyLane {
    spec: Arc<FaultSpec>,
    random: Random,
    bit: u8,
    block_size: u64,
    /// Shortened writes under way, with what they are shortened to: they are to fail whatever becomes of them.
    torn: Vec<(Tag, u64)>,
    scratch: Vec<IoBuf>,
    inner: Box<dyn Lane>,
}

impl FaultyLane {
    fn find_torn(&self, tag: Tag) -> Option<usize> {
        self.torn.iter().position(|(torn, _)| *torn == tag)
    }

    fn draw(&mut self, request: &Request<'_>) -> Fate {
        let end = request.offset.saturating_add(request.len);
        let touches =
            |(start, len): (u64, u64)| request.offset < start.saturating_add(len) && start < end;
        if self.spec.bad_range.is_some_and(touches) {
            return Fate::Fails;
        }
        let spec = &self.spec;
        let (error, torn) = match request.op {
            OpKind::Read => (spec.read_error_ppm, 0),
            OpKind::Write { .. } => (spec.write_error_ppm, spec.torn_write_ppm),
            OpKind::Flush => (spec.flush_error_ppm, 0),
            OpKind::Discard | OpKind::WriteZeroes { .. } => (spec.write_error_ppm, 0),
        };
        let late = spec.slow_ppm;
        if self.random.chance(error) {
            return Fate::Fails;
        }
        let room = self.torn.len() < TORN_MAX && request.bufs.len() <= self.scratch.capacity();
        if self.random.chance(torn) && room {
            let blocks = (request.len / self.block_size).max(1);
            return Fate::Torn { bytes: self.random.below(blocks) * self.block_size };
        }
        if self.random.chance(late) { Fate::Late } else { Fate::Whole }
    }

    /// Writes the first `bytes` only. Whatever the inner volume answers, the client hears of an error.
    fn tear(&mut self, ring: &mut Ring, request: &mut Request<'_>, bytes: u64) -> Submit {
        self.scratch.clear();
        let scratch = &mut self.scratch;
        walk(request.bufs, 0, bytes, |piece| {
            scratch.push(piece);
            true
        });
        let bufs = &self.scratch;
        let mut cut = Request { len: bytes, bufs, ..*request };
        let answer = self.inner.submit(ring, &mut cut);
        request.passed = cut.passed;
        match answer {
            Submit::Pending | Submit::Held { .. } => {
                self.torn.push((request.tag, bytes));
                answer
            }
            Submit::Done(_) => Submit::Done(Err(IoError::Io)),
            // Then nothing is written at all, which is also a way to fail.
            Submit::Park { .. } => Submit::Done(Err(IoError::Io)),
        }
    }
}

impl Lane for FaultyLane {
    fn submit(&mut self, ring: &mut Ring, request: &mut Request<'_>) -> Submit {
        if request.passed & self.bit == 0 {
            request.passed |= self.bit;
            match self.draw(request) {
                Fate::Whole => {}
                Fate::Fails => return Submit::Done(Err(IoError::Io)),
                Fate::Torn { bytes } => return self.tear(ring, request, bytes),
                Fate::Late => {
                    let until = Some(clock::instant() + Duration::from_micros(self.spec.slow_us));
                    return Submit::Park { reason: Wait::Delay, until };
                }
            }
        } else if let Some(index) = self.find_torn(request.tag) {
            // Another round of it.
            let (_, bytes) = self.torn.swap_remove(index);
            return self.tear(ring, request, bytes);
        }
        self.inner.submit(ring, request)
    }

    fn complete(&mut self, ring: &mut Ring, token: u64, result: i32, out: &mut Vec<Finish>) {
        let first = out.len();
        self.inner.complete(ring, token, result, out);
        if self.torn.is_empty() {
            return;
        }
        for finish in &mut out[first..] {
            if let (Outcome::Done(_), Some(index)) = (finish.outcome, self.find_torn(finish.tag)) {
                self.torn.swap_remove(index);
                finish.outcome = Outcome::Done(Err(IoError::Io));
            }
        }
    }

    fn detach(&mut self, ring: &mut Ring) {
        self.inner.detach(ring);
    }
}

#[cfg(test)]
mod tests;
