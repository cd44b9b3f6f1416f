//! What a simulation does with adapters that no client does to it.

use super::{Adapter, Ended, Shared};
use crate::lock::locked;

impl Shared {
    /// What the client broke.
    pub(crate) fn trouble(&self) -> Option<String> {
        let condition = locked(&self.condition);
        // Asked in each step of a run.
        if condition.broken { condition.reason.clone() } else { None }
    }

    /// Its client has gone, and what it broke with it.
    pub(crate) fn left(&self) {
        locked(&self.condition).leave(&Ended::Removed);
    }
}

impl Adapter {
    /// A simulated client connects, or leaves; whether it could.
    pub(crate) fn client(&self, comes: bool) -> bool {
        let connected = locked(&self.inner.condition).connected;
        if connected == comes || locked(&self.inner.attendance).removed {
            return false;
        }
        if comes {
            self.inner.take_next_form();
            locked(&self.inner.condition).come(None);
        } else {
            locked(&self.inner.condition).leave(&Ended::Removed);
        }
        true
    }
}
