//! The primitives of the hand-overs, replaced by loom's in its models, and threads, each of which is a turn-taker in a simulation.

#[cfg(feature = "loom")]
pub(crate) use loom::sync::atomic::{AtomicU32, AtomicU64, fence};
#[cfg(feature = "loom")]
pub(crate) use loom::sync::{Condvar, Mutex};
#[cfg(feature = "sim")]
use std::sync::atomic::Ordering::Relaxed;
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::atomic::{AtomicU32, AtomicU64, fence};
#[cfg(not(feature = "loom"))]
pub(crate) use std::sync::{Condvar, Mutex};

/// A thread of a channel's or an attendant's.
#[cfg(not(feature = "sim"))]
pub(crate) type Thread = std::thread::JoinHandle<()>;

/// The same in a simulation: has a turn when it is picked, until a turn says that it was the last.
#[cfg(feature = "sim")]
pub(crate) struct Thread {
    id: u64,
    over: std::sync::Arc<std::sync::atomic::AtomicBool>,
}

#[cfg(feature = "sim")]
impl Thread {
    pub(crate) fn new(name: &str, mut turn: Box<dyn FnMut() -> bool>) -> Thread {
        let over = std::sync::Arc::<std::sync::atomic::AtomicBool>::default();
        let its = std::sync::Arc::clone(&over);
        let turn = move || {
            if !its.load(Relaxed) {
                its.store(!turn(), Relaxed);
            }
        };
        let id = memory::sim::spawn(name, Box::new(turn));
        Thread { id, over }
    }

    pub(crate) fn id(&self) -> u64 {
        self.id
    }

    /// Waits for the last turn. A dead process's threads have had theirs.
    pub(crate) fn join(self) -> Result<(), ()> {
        while !self.over.load(Relaxed) && !memory::sim::dead() {
            memory::sim::others();
        }
        memory::sim::end_thread(self.id);
        Ok(())
    }
}
