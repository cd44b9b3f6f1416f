//! The shared storage pool: what lies on its PVs; no I/O, no thread, no clock.
//!
//! **No program uses it yet**, and there is the format and the choice of the superblock only: no journal is replayed, no chunk given out. It is the ground on which the volume kind `pool` will stand: `docs/adr/0018-the-pool-s-format-and-core.md` says what
//! is decided and what comes next, `docs/formats/pool.md` has every byte.
//!
//! - [`mod@format`]: superblocks, journal, pages, home records: typed, checked, bound to their places.
//! - [`choose()`]: which superblock is the pool's, and in which order the next one is written.
//!
//! # Promises
//!
//! - Nothing that a PV says makes this crate panic, and a single bit of what it reads does not change without notice.
#![forbid(unsafe_code)]

mod choose;
pub mod format;
mod hash;

pub use choose::{Chosen, NotChosen, choose};
pub use hash::Sum;
