//! The primitives of the hand-overs, replaced by loom's in its models.

#[cfg(loom)]
pub(crate) use loom::sync::{Condvar, Mutex, atomic::AtomicU32};
#[cfg(not(loom))]
pub(crate) use std::sync::{Condvar, Mutex, atomic::AtomicU32};
