//! The clock as the owner of a ring last saw it, for whoever is called with the ring.

use crate::Ring;

impl Ring {
    /// What its owner last saw of the clock, in ticks; 0 before it looked. So an operation need not look.
    #[inline]
    #[must_use]
    pub fn now(&self) -> u64 {
        self.now
    }

    /// The owner has looked at the clock.
    #[inline]
    pub fn set_now(&mut self, ticks: u64) {
        self.now = ticks;
    }
}
