//! Who waits for room: senders on several channels, for one receiver that takes what they have put somewhere.
//!
//! ```text
//!   sender                                  receiver
//!   finds no room                           takes something: there is room
//!   Waiters::wait      ── a bit ──►         Waiters::wake
//!   looks once more, and then sleeps        wakes those whose bits are set
//! ```
//!
//! Both do first what the other one looks at, and look then, with a fence in between (SeqCst). So at least one of them sees the other: a sender that sleeps is
//! woken, and there is no lock and nothing to wait for. A receiver for whom nobody waits reads one word that nobody writes to.
//!
//! What waits has a *place*, one of [`PLACES`]. Several may share one: then all of them are woken and look for themselves.
//!
//! `tests/loom_room.rs` checks it in all interleavings.

use std::sync::atomic::Ordering::{Relaxed, SeqCst};

use crate::sync::{AtomicU64, fence};

/// Places of those that wait.
pub const PLACES: u32 = u64::BITS;

/// Those that wait for room at one receiver.
#[derive(Debug)]
pub struct Waiters(AtomicU64);

impl Default for Waiters {
    fn default() -> Waiters {
        Waiters::new()
    }
}

impl Waiters {
    /// Nobody waits.
    #[must_use]
    pub fn new() -> Waiters {
        Waiters(AtomicU64::new(0))
    }

    /// Who has that place waits from now on. It is to look for room once more before it sleeps.
    pub fn wait(&self, place: u32) {
        self.0.fetch_or(1 << (place % PLACES), Relaxed);
        fence(SeqCst);
    }

    /// There is room, or a reason to look again: the places of all that wait. They wait no more.
    #[inline]
    pub fn wake(&self, each: impl FnMut(u32)) {
        fence(SeqCst);
        if self.0.load(Relaxed) != 0 {
            self.wake_all(each);
        }
    }

    #[cold]
    fn wake_all(&self, each: impl FnMut(u32)) {
        let waiting = self.0.swap(0, Relaxed);
        (0..PLACES).filter(|place| waiting >> place & 1 != 0).for_each(each);
    }
}
