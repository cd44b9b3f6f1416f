//! A pool that another server has taken over: what channels and clients have is held, and nothing more goes to its PVs.

use std::sync::atomic::Ordering::SeqCst;

use pool::Fault;

use super::Work;
use crate::PoolError;

impl Work {
    /// A channel was told by a PV that another server has it.
    pub(crate) fn fence(&mut self) {
        self.core.fence();
    }

    /// What was not begun is not, and channels hold what they have.
    pub(super) fn hold_if_fenced(&mut self) {
        if self.core.stopped() == Some(Fault::Fenced) && !self.held {
            self.held = true;
            self.shared.fenced.store(true, SeqCst);
            self.todo.clear();
            self.drains.clear();
            self.draining = None;
            self.stale = true;
        }
    }

    /// Why it never served.
    pub(crate) fn not_served(&self) -> PoolError {
        match self.core.stopped() {
            Some(Fault::Fenced) => taken_over(),
            _ => PoolError::new(
                "its own blocks cannot be written",
                "see whether its PVs are in order",
            ),
        }
    }
}

/// The pool is not opened.
pub(crate) fn taken_over() -> PoolError {
    PoolError::new(
        "another server has taken the pool over: its PVs refuse this one",
        "see that no other server has it",
    )
}
