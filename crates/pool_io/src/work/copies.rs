//! What copies of whole LUs ask for beside reads and writes.

use std::sync::Arc;

use super::{Asker, Work};
use crate::post::{LaneBox, OfCopy};

/// Chunks at which it is looked at once for who skips those that hold nothing.
const LOOKED_MAX: u32 = 1024;

impl Work {
    pub(crate) fn of_copy(&mut self, what: OfCopy) {
        match what {
            OfCopy::CallBack(from) => self.call_back(&from),
            // Whoever asked may have left.
            OfCopy::Holds((lu, first), reply) => drop(reply.send(self.next_held(lu, first))),
        }
    }

    /// The first chunk of an LU or a snapshot from this one on that may hold something.
    fn next_held(&self, lu: u32, first: u32) -> u32 {
        let end = first.saturating_add(LOOKED_MAX);
        (first..end).find(|vchunk| !self.core.has_nothing(lu, *vchunk)).unwrap_or(end)
    }

    /// Calls back what one lane has that waits for space: it is answered as if there were none.
    fn call_back(&mut self, from: &Arc<LaneBox>) {
        for tag in self.core.waiting_requests() {
            let theirs = matches!(self.asks.get(&tag), Some(Asker::Lane(ask)) if Arc::ptr_eq(&ask.from, from));
            if theirs {
                self.core.cancel(tag);
            }
        }
    }
}
