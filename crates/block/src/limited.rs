//! [`Limited`]: IOPS and bandwidth limits around another volume.

use std::sync::Arc;
use std::time::{Duration, Instant};

use memory::clock;
use spec::LimitSpec;
use uring::Ring;

use crate::file::ZEROES;
use crate::limit::{Bucket, Rate};
use crate::request::DEPTH_MAX;
use crate::{Finish, Geometry, Lane, LaneId, OpKind, Request, Submit, Volume, VolumeError, Wait};

/// Holds requests back so that a volume gets no more than its limits.
///
/// Each request counts as one, whatever its size: all but reads as writes, flushes as well. A write-zeroes counts as one for each MiB that it names,
/// since the volume may have to write them. What reads, writes and write-zeroes name counts as
/// bytes; discards, which move none, do not. The limits are those of the volume: its lanes share the buckets, but each borrows ahead
/// ([`crate::limit`]), so that at high rates the shared line is touched rarely. A lane gives back what it has borrowed when it
/// is detached; what it holds while idle is at most a millisecond's worth.
#[derive(Debug)]
pub struct Limited<V: ?Sized> {
    gates: Arc<Gates>,
    depth: u8,
    inner: Arc<V>,
}

#[derive(Debug)]
struct Gates {
    epoch: Instant,
    gates: Vec<Gate>,
}

/// One bucket and what it counts.
#[derive(Debug)]
struct Gate {
    reads: bool,
    writes: bool,
    bytes: bool,
    bucket: Bucket,
}

impl Gate {
    /// How much of this bucket a request needs.
    #[inline]
    fn amount(&self, request: &Request<'_>) -> u64 {
        let counted = match request.op {
            OpKind::Read => self.reads,
            // The volume may have to write them one by one.
            OpKind::Write { .. } | OpKind::WriteZeroes { .. } => self.writes,
            OpKind::Flush | OpKind::Discard => self.writes && !self.bytes,
        };
        match (counted, self.bytes) {
            (false, _) => 0,
            (true, false) => match request.op {
                OpKind::WriteZeroes { .. } => request.len.div_ceil(ZEROES as u64).max(1),
                _ => 1,
            },
            (true, true) => request.len,
        }
    }
}

/// Limits that several volumes have together.
#[derive(Debug, Clone)]
pub struct Limiter(Arc<Gates>);

impl Limiter {
    /// Such limits.
    #[must_use]
    pub fn new(limits: &LimitSpec) -> Limiter {
        let mut gates = Vec::new();
        let mut gate = |per_second: u64, burst, reads, writes, bytes| {
            let rate = (per_second > 0).then_some(Rate { per_second, burst });
            gates.extend(rate.map(|rate| Gate { reads, writes, bytes, bucket: Bucket::new(rate) }));
        };
        let all = limits;
        gate(all.iops, all.iops_burst, true, true, false);
        gate(all.read_iops, all.read_iops_burst, true, false, false);
        gate(all.write_iops, all.write_iops_burst, false, true, false);
        gate(all.bytes_per_s, all.bytes_burst, true, true, true);
        gate(all.read_bytes_per_s, all.read_bytes_burst, true, false, true);
        gate(all.write_bytes_per_s, all.write_bytes_burst, false, true, true);
        Limiter(Arc::new(Gates { epoch: clock::instant(), gates }))
    }
}

impl<V: Volume + ?Sized> Limited<V> {
    /// Puts limits around `inner`. `depth` is the wrapper's place in the stack, below 7: its bit of
    /// [`Request::passed`].
    ///
    /// # Panics
    ///
    /// When `depth` is 7 or more.
    #[must_use]
    pub fn new(inner: Arc<V>, limits: &LimitSpec, depth: u8) -> Limited<V> {
        Limited::sharing(inner, &Limiter::new(limits), depth)
    }

    /// As [`Limited::new`], with limits that other volumes share.
    ///
    /// # Panics
    ///
    /// When `depth` is 7 or more.
    #[must_use]
    pub fn sharing(inner: Arc<V>, limiter: &Limiter, depth: u8) -> Limited<V> {
        assert!(depth < DEPTH_MAX, "a stack of more than seven wrappers");
        Limited { gates: limiter.0.clone(), depth, inner }
    }
}

impl<V: Volume + ?Sized> Volume for Limited<V> {
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
        Ok(Box::new(LimitedLane {
            credits: vec![0; self.gates.gates.len()],
            gates: self.gates.clone(),
            bit: 1 << self.depth,
            inner: self.inner.lane(ring, id)?,
        }))
    }

    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        self.inner.resize(bytes)
    }
}

struct LimitedLane {
    gates: Arc<Gates>,
    /// What is left of the borrowed, by gate.
    credits: Vec<u64>,
    bit: u8,
    inner: Box<dyn Lane>,
}

impl LimitedLane {
    /// Pays for a request out of what was borrowed, if that is enough in every gate.
    #[inline]
    fn pay_from_credit(&mut self, request: &Request<'_>) -> bool {
        let gates = &self.gates.gates;
        if gates.iter().zip(&self.credits).any(|(gate, credit)| gate.amount(request) > *credit) {
            return false;
        }
        for (gate, credit) in gates.iter().zip(&mut self.credits) {
            *credit -= gate.amount(request);
        }
        true
    }

    /// Pays for a request from the shared buckets as well. Returns when it may go on, if not now.
    fn pay_from_buckets(&mut self, request: &Request<'_>) -> Option<Instant> {
        let epoch = self.gates.epoch;
        let now =
            u64::try_from(clock::instant().duration_since(epoch).as_nanos()).unwrap_or(u64::MAX);
        let mut at = now;
        for (gate, credit) in self.gates.gates.iter().zip(&mut self.credits) {
            let amount = gate.amount(request);
            if amount <= *credit {
                *credit -= amount;
                continue;
            }
            let taken = gate.bucket.take(now, amount - *credit);
            *credit = taken.extra;
            at = at.max(taken.at);
        }
        (at > now).then(|| epoch + Duration::from_nanos(at))
    }
}

impl Lane for LimitedLane {
    #[inline]
    fn submit(&mut self, ring: &mut Ring, request: &mut Request<'_>) -> Submit {
        if request.passed & self.bit == 0 {
            // Paid once: also when the inner volume parks the request, or needs several rounds.
            request.passed |= self.bit;
            if !self.pay_from_credit(request)
                && let Some(until) = self.pay_from_buckets(request)
            {
                return Submit::Park { reason: Wait::Throttled, until: Some(until) };
            }
        }
        self.inner.submit(ring, request)
    }

    #[inline]
    fn complete(&mut self, ring: &mut Ring, token: u64, result: i32, out: &mut Vec<Finish>) {
        self.inner.complete(ring, token, result, out);
    }

    fn detach(&mut self, ring: &mut Ring) {
        for (gate, credit) in self.gates.gates.iter().zip(&mut self.credits) {
            gate.bucket.give_back(std::mem::take(credit));
        }
        self.inner.detach(ring);
    }
}

#[cfg(test)]
mod tests;
