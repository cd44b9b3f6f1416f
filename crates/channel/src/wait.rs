//! When to look again and when to sleep.
//!
//! Looking costs CPU, sleeping costs the client a wake-up. The rule is QEMU's (`aio_poll`): look for a window of time; a wait that ended
//! within the longest window, but after the present one, would have been caught by a longer window, so it doubles; a wait that was longer than
//! the longest window would have been looked at in vain, so the window closes. A pure state machine over ticks.

use protocol::message::WaitMode;

/// The first window after none.
pub const WINDOW_NS_FIRST: u64 = 4_000;

/// What to do after a turn that found nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Decision {
    /// Look again.
    Look,
    /// Arm the queues and sleep.
    Sleep,
}

/// The state of one channel's waiting. Times are in nanoseconds of one monotonic clock.
#[derive(Debug)]
pub struct Waiter {
    mode: WaitMode,
    window_ns: u64,
    window_ns_max: u64,
    /// When the last turn with work ended.
    idle_since_ns: u64,
}

impl Waiter {
    /// Begins awake at `now_ns`.
    #[must_use]
    pub fn new(mode: WaitMode, window_ns_max: u64, now_ns: u64) -> Waiter {
        Waiter { mode, window_ns: 0, window_ns_max, idle_since_ns: now_ns }
    }

    /// Changes the mode; the window begins anew.
    pub fn set_mode(&mut self, mode: WaitMode) {
        if mode != self.mode {
            (self.mode, self.window_ns) = (mode, 0);
        }
    }

    /// A turn with work has ended.
    #[inline]
    pub fn worked(&mut self, now_ns: u64) {
        self.idle_since_ns = now_ns;
    }

    /// A turn found nothing.
    #[inline]
    #[must_use]
    pub fn idle(&self, now_ns: u64) -> Decision {
        let window_ns = match self.mode {
            WaitMode::Poll => return Decision::Look,
            WaitMode::Adaptive => self.window_ns,
            WaitMode::Interrupt => 0,
        };
        if now_ns.saturating_sub(self.idle_since_ns) < window_ns {
            Decision::Look
        } else {
            Decision::Sleep
        }
    }

    /// The sleep is over. Adjusts the window by how long the whole wait was.
    pub fn woke(&mut self, now_ns: u64) {
        let waited_ns = now_ns.saturating_sub(self.idle_since_ns);
        self.idle_since_ns = now_ns;
        if self.mode != WaitMode::Adaptive || waited_ns <= self.window_ns {
            return;
        }
        self.window_ns = if waited_ns > self.window_ns_max {
            0
        } else {
            (self.window_ns * 2).max(WINDOW_NS_FIRST).min(self.window_ns_max)
        };
    }

    /// Nanoseconds since the last work, or since the last wake-up.
    #[must_use]
    pub fn idle_ns(&self, now_ns: u64) -> u64 {
        now_ns.saturating_sub(self.idle_since_ns)
    }

    /// The window now.
    #[must_use]
    pub fn window_ns(&self) -> u64 {
        self.window_ns
    }
}

#[cfg(test)]
mod tests;
