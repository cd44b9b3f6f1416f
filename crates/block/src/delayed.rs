//! [`Delayed`]: another volume behind the service times of a slow disk.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use memory::clock;
use spec::DelaySpec;
use uring::Ring;

use crate::request::DEPTH_MAX;
use crate::spindle::Spindle;
use crate::{Finish, Geometry, Lane, LaneId, Request, Submit, Volume, VolumeError, Wait};

/// Lets each request wait as [`Spindle`] says, and only then go on to the inner volume.
///
/// The wait comes first on purpose: a server that dies meanwhile has not written yet, so a test sees whether the
/// request is done again. The model belongs to the volume and stands behind a mutex that every request takes: this
/// wrapper is there to make things slow.
#[derive(Debug)]
pub struct Delayed<V: ?Sized> {
    model: Arc<Model>,
    depth: u8,
    inner: Arc<V>,
}

#[derive(Debug)]
struct Model {
    epoch: Instant,
    spindle: Mutex<Spindle>,
}

impl<V: Volume + ?Sized> Delayed<V> {
    /// Puts `inner` behind the model. `depth` is the wrapper's place in the stack, below 7: its bit of
    /// [`Request::passed`].
    ///
    /// # Panics
    ///
    /// When `depth` is 7 or more.
    #[must_use]
    pub fn new(inner: Arc<V>, spec: &DelaySpec, depth: u8) -> Delayed<V> {
        assert!(depth < DEPTH_MAX, "a stack of more than seven wrappers");
        let model = Model { epoch: clock::instant(), spindle: Mutex::new(Spindle::new(spec)) };
        Delayed { model: Arc::new(model), depth, inner }
    }
}

impl<V: Volume + ?Sized> Volume for Delayed<V> {
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
        let inner = self.inner.lane(ring, id)?;
        Ok(Box::new(DelayedLane { model: self.model.clone(), bit: 1 << self.depth, inner }))
    }

    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        self.inner.resize(bytes)
    }
}

struct DelayedLane {
    model: Arc<Model>,
    bit: u8,
    inner: Box<dyn Lane>,
}

impl Lane for DelayedLane {
    fn submit(&mut self, ring: &mut Ring, request: &mut Request<'_>) -> Submit {
        if request.passed & self.bit != 0 {
            return self.inner.submit(ring, request);
        }
        request.passed |= self.bit;
        let epoch = self.model.epoch;
        let now =
            u64::try_from(clock::instant().duration_since(epoch).as_nanos()).unwrap_or(u64::MAX);
        // A model left half-way by a panic elsewhere is still a model.
        let mut spindle = self.model.spindle.lock().unwrap_or_else(PoisonError::into_inner);
        let service = spindle.arrive(now);
        let reason = if service.starts > now { Wait::BackEndFull } else { Wait::Delay };
        Submit::Park { reason, until: Some(epoch + Duration::from_nanos(service.ends)) }
    }

    fn complete(&mut self, ring: &mut Ring, token: u64, result: i32, out: &mut Vec<Finish>) {
        self.inner.complete(ring, token, result, out);
    }

    fn detach(&mut self, ring: &mut Ring) {
        self.inner.detach(ring);
    }
}

#[cfg(test)]
mod tests;
