//! The locks of this process.

use std::sync::{Mutex, MutexGuard};

/// A lock that only this process's own code holds: nobody panics with it, since a panic ends the process.
pub(crate) fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().expect("a panic ends the process")
}
