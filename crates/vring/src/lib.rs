//! Guest memory and split rings, both sides: what a client and the server share.
//!
//! | module | what |
//! |---|---|
//! | [`mem`] | the client's memory as regions; addresses to buffers |
//! | [`split`] | the device side of a split ring |
//! | [`driver`] | the driver side: for tests, simulator and load generator |
//! | [`inflight`] | the vhost-user in-flight region, its writer and its recovery |
//! | [`dirty`] | the dirty log of a migrating client |
//! | [`handshake`] | publishing and waking, the same for both directions |
//!
//! Promises: nothing that a client writes into its memory makes this crate panic, loop without bound,
//! or touch memory that the client did not share. Leaves to others: what the requests mean (`device`), when to
//! poll and when to sleep (`channel`), the vhost-user messages (`dataplane`).
//!
//! Clauses are those of virtio 1.3.
#![allow(unsafe_code)] // UNSAFE: the rings are memory that others write at the same time, reached by address.

pub mod dirty;
pub mod driver;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
pub mod handshake;
pub mod inflight;
mod layout;
pub mod mem;
pub mod split;
#[cfg(test)]
mod testing;

pub use dirty::{DirtyLog, DirtyLogError};
pub use inflight::{InflightError, InflightQueue, InflightRegion};
pub use layout::QUEUE_SIZE_MAX;
pub use mem::{BadAddress, GuestAddr, MemError, MemTable, RegionInfo, RegionSpec, UserAddr};
pub use split::{Chain, ChainError, Head, Queue, QueueConfig, QueueError, RingPart, StartError};
