//! The locks of this process.

use std::sync::{Mutex, MutexGuard};

/// A lock that only this process's own code holds: nobody panics with it, since a panic ends the process.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Whoever holds it is another turn-taker, in the middle of its turn.
    #[cfg(feature = "sim")]
    loop {
        match mutex.try_lock() {
            Err(std::sync::TryLockError::WouldBlock) => memory::sim::others(),
            held => return held.expect("a panic ends the process"),
        }
    }
    #[cfg(not(feature = "sim"))]
    mutex.lock().expect("a panic ends the process")
}
