//! A queue at rest, and what it takes to start it.

use std::fmt;
use std::sync::Arc;

use thiserror::Error;

use super::{HeadSet, InOrder, Queue, Resubmit};
use crate::dirty::DirtyLog;
use crate::handshake::Word;
use crate::inflight::{InflightError, InflightQueue, Tracker};
use crate::layout::{self, QUEUE_SIZE_MAX, Rings};
use crate::mem::{GuestAddr, MemTable, Span, UserAddr};

/// What the client's messages say about a queue.
#[derive(Debug)]
pub struct QueueConfig {
    /// Descriptors: a power of two, at most 1024 (SET_VRING_NUM).
    pub size: u16,
    /// The descriptor table (SET_VRING_ADDR).
    pub desc: UserAddr,
    /// The available ring.
    pub avail: UserAddr,
    /// The used ring.
    pub used: UserAddr,
    /// The available index to go on from (SET_VRING_BASE). With an in-flight region that was in use
    /// before, the region decides instead.
    pub base: u16,
    /// The used index decides instead of `base`: of a device that gives heads back in the order in which it took them, and has none when it stops.
    /// Some front ends begin every connection with 0, also on a ring that was in use (DPDK's virtio-user).
    pub at_used: bool,
    /// VIRTIO_RING_F_EVENT_IDX was negotiated.
    pub event_idx: bool,
    /// VIRTIO_RING_F_INDIRECT_DESC was negotiated.
    pub indirect: bool,
    /// VIRTIO_F_IN_ORDER was negotiated.
    pub in_order: bool,
    /// Where the used ring is for the dirty log, if it is to be logged (VHOST_VRING_F_LOG).
    pub used_log: Option<GuestAddr>,
    /// The dirty log while the client migrates.
    pub log: Option<Arc<DirtyLog>>,
    /// The queue's part of the in-flight region.
    pub inflight: Option<InflightQueue>,
}

/// A part of the ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RingPart {
    /// The descriptor table.
    Descriptors,
    /// The available ring.
    Available,
    /// The used ring.
    Used,
}

impl fmt::Display for RingPart {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            RingPart::Descriptors => "descriptor table",
            RingPart::Available => "available ring",
            RingPart::Used => "used ring",
        })
    }
}

/// Why a queue cannot be started.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum StartError {
    #[error(
        "queue size {0}: a split ring has a power of two, at most {QUEUE_SIZE_MAX}; set \
         queue-size of the client's device accordingly"
    )]
    Size(u16),
    #[error("{part} at user {addr:#x} is not aligned to {align}; the client's front end is broken")]
    Misaligned { part: RingPart, addr: u64, align: usize },
    #[error(
        "{part} of {len} bytes at user {addr:#x} is not in one region of the client's memory; \
         share all of the guest's memory with the back end"
    )]
    NotMapped { part: RingPart, addr: u64, len: usize },
    #[error(
        "next available index {base} does not fit the used ring's {used}: a queue of {size} has \
         at most that many in flight; start the device afresh"
    )]
    Base { base: u16, used: u16, size: u16 },
    #[error(transparent)]
    Inflight(#[from] InflightError),
}

/// Where a started queue stands.
struct Position {
    next_avail: u16,
    used: u16,
    resubmit: Vec<u16>,
    tracker: Option<Tracker>,
}

impl QueueConfig {
    /// Starts the queue on this generation of the client's memory.
    ///
    /// The driver may have missed an interrupt while nobody served the ring; whoever starts a queue
    /// signals it once, and looks at the ring once without waiting for a kick.
    #[allow(clippy::result_large_err, reason = "once per start; gives the caller its own back")]
    pub fn start(mut self, mem: Arc<MemTable>) -> Result<Queue, (QueueConfig, StartError)> {
        let started = self.resolve(&mem).and_then(|rings| Ok((rings, self.position(&rings)?)));
        let (rings, position) = match started {
            Ok(started) => started,
            Err(error) => return Err((self, error)),
        };
        // 2.7.10.2: with EVENT_IDX the flags are 0; without, kicks are wanted until somebody says
        // otherwise.
        rings.used_flags().store(0, std::sync::atomic::Ordering::Relaxed);
        let mut taken = HeadSet::new();
        let mut in_order = self.in_order.then(|| Box::new(InOrder::new(self.size)));
        for &head in &position.resubmit {
            taken.insert(head);
            if let Some(in_order) = &mut in_order {
                in_order.take(head);
            }
        }
        let heads = position.resubmit;
        Ok(Queue {
            rings,
            next_avail: position.next_avail,
            avail_seen: position.next_avail,
            next_used: position.used,
            published: position.used,
            idle: position.next_avail.wrapping_sub(position.used),
            plain: position.tracker.is_none() && in_order.is_none(),
            event_idx: self.event_idx,
            indirect: self.indirect,
            hit: Span::NONE,
            tracker: position.tracker,
            in_order,
            log: self.log.take(),
            taken,
            resubmit: (!heads.is_empty()).then_some(Resubmit { heads, next: 0 }),
            mem,
            config: self,
        })
    }

    fn resolve(&self, mem: &MemTable) -> Result<Rings, StartError> {
        let size = self.size;
        if !size.is_power_of_two() || size > QUEUE_SIZE_MAX {
            return Err(StartError::Size(size));
        }
        let part = |part, UserAddr(addr), len: usize, align: usize| {
            // The cast fits: the largest part has 16 KiB.
            let buf = mem.user(UserAddr(addr), len as u32);
            let ptr = buf.ok_or(StartError::NotMapped { part, addr, len })?.as_ptr();
            if ptr.addr() % align != 0 {
                return Err(StartError::Misaligned { part, addr, align });
            }
            Ok(ptr)
        };
        // The alignments of 2.7.
        let desc = part(RingPart::Descriptors, self.desc, layout::desc_bytes(size), 16)?;
        let avail = part(RingPart::Available, self.avail, layout::avail_bytes(size), 2)?;
        let used = part(RingPart::Used, self.used, layout::used_bytes(size), 4)?;
        // SAFETY: just resolved with these sizes and alignments, in memory that `mem` keeps mapped;
        // the queue keeps `mem`.
        Ok(unsafe { Rings::new(desc, avail, used, size) })
    }

    /// Finds out where to go on.
    ///
    /// The used index comes from the used ring: nothing else has it after the process that wrote it is gone.
    /// A guest that forges it confuses its own driver only. With a region that was in use, the next available
    /// index is the used index plus what is in flight, because each head taken either came back or did
    /// not; the front end's number is of no use then, since after a crash it does not know how far the back
    /// end had read (QEMU sends the used index).
    fn position(&mut self, rings: &Rings) -> Result<Position, StartError> {
        let used = rings.used_idx().load(std::sync::atomic::Ordering::Acquire);
        let size = self.size;
        let mut next_avail = if self.at_used { used } else { self.base };
        let (mut resubmit, mut tracker) = (Vec::new(), None);
        if let Some(region) = &self.inflight {
            let found = region.recover(size, used)?;
            if !found.fresh {
                // The cast fits: at most `size` heads.
                next_avail = used.wrapping_add(found.heads.len() as u16);
            }
            resubmit = found.heads;
            tracker = Some(found.counter);
        }
        if next_avail.wrapping_sub(used) > size {
            return Err(StartError::Base { base: next_avail, used, size });
        }
        let tracker =
            tracker.and_then(|counter| Some(Tracker::new(self.inflight.take()?, size, counter)));
        Ok(Position { next_avail, used, resubmit, tracker })
    }
}
