//! The event queue inside its channel. Its buffers stay in the ring until there is something to tell.

use channel::{Io, NO_PART, RunningQueue};
use memory::IoBuf;
use protocol::stats::QueueCounter;
use vring::{Chain, Head, QueueError};

use crate::event::{self, EVENT_BYTES};
use crate::scatter;

/// Buffers of an event that are looked at; it has sixteen bytes.
const EVENT_BUFS: usize = EVENT_BYTES;

/// An event queue.
#[derive(Debug, Default)]
pub(super) struct EventQueue {
    /// Events were lost for want of buffers, and the client does not know yet.
    missed: bool,
}

impl EventQueue {
    /// Tells the client something; or, when a buffer came, what it is owed.
    pub(super) fn tell(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        event: Option<[u8; EVENT_BYTES]>,
    ) -> Result<(), QueueError> {
        if !queue.takes_heads() || (event.is_none() && !self.missed) {
            return Ok(());
        }
        let event = event.unwrap_or(event::none());
        loop {
            if self.put(io, queue, event)? {
                queue.disarm();
                return Ok(());
            }
            self.missed = true;
            // From now on a kick says that there is a buffer. If one came before that, it is used now.
            if !io.arm(queue) {
                return Ok(());
            }
        }
    }

    /// Puts an event, or that some were lost, into the oldest buffer that the client has left; whether there was one.
    fn put(
        &mut self,
        io: &mut Io,
        queue: &mut RunningQueue,
        event: [u8; EVENT_BYTES],
    ) -> Result<bool, QueueError> {
        while let Some(head) = next_buffer(queue)? {
            io.note_taken(queue, head);
            let mut bufs = [IoBuf::EMPTY; EVENT_BUFS];
            let mut chain = Chain::new(&mut bufs);
            let fits = queue.resources.ring.chain(head, &mut chain).is_ok()
                && chain.readable == 0
                && chain.writable_bytes >= EVENT_BYTES as u64;
            let total = chain.total;
            if !fits {
                // Smaller than the configuration space says (clause 5.6.6.3): of no use for anything.
                queue.count(QueueCounter::BadChains, 1);
                io.settle(queue, head, NO_PART, 0);
                continue;
            }
            let lost = std::mem::take(&mut self.missed);
            let event = if lost { event::missed(event) } else { event };
            scatter(&event, &bufs[..total]);
            bufs[..total].iter().for_each(|buf| queue.resources.ring.mark_written(*buf));
            io.settle(queue, head, NO_PART, EVENT_BYTES as u32);
            return Ok(true);
        }
        Ok(false)
    }
}

/// The oldest buffer: one that an earlier process had taken, or the next of the ring.
fn next_buffer(queue: &mut RunningQueue) -> Result<Option<Head>, QueueError> {
    if let Some(head) = queue.resources.ring.resubmit_next() {
        return Ok(Some(head));
    }
    queue.resources.ring.pending()?;
    queue.resources.ring.pop()
}
