//! The shared storage pool: what lies on its PVs, and the state machine that works on it; no I/O, no thread, no clock.
//!
//! It is the ground on which the volume kind `lu` stands, whose I/O is in `pool_io`: `docs/adr/0018-the-pool-s-format-and-core.md` says what
//! is decided and what comes next, `docs/adr/0020-snapshots-are-layers.md` of snapshots, `docs/formats/pool.md` has every byte.
//!
//! - [`mod@format`]: superblocks, journal, pages, home records: typed, checked, bound to their places.
//! - [`choose()`]: which superblock is the pool's, and in which order the next one is written.
//! - [`make()`]: a new pool.
//! - [`rebalance`]: which chunks move when PVs are filled unevenly.
//! - [`Pool`]: a pool that is open: requests in, effects out. The rules of writing, and what the shell promises, stand there.
//!
//! # Promises
//!
//! - Nothing that a PV says makes this crate panic, and a single bit of what it reads does not change without notice.
//! - Whatever writes a crash leaves, the pool opens; nothing that was answered is lost by the death of the process, and nothing that was flushed by a power cut; no
//!   client ever reads what is another's (`tests.rs` tries it).
#![forbid(unsafe_code)]

mod bits;
mod choose;
pub mod format;
mod hash;
mod layers;
mod make;
mod pool;
pub mod rebalance;
mod sums;
mod tables;
#[cfg(test)]
mod tests;

pub use choose::{Chosen, NotChosen, choose};
pub use hash::Sum;
pub use layers::{PART_BYTES, PARTS, SECTOR, chunks_above, sectors, slot_place};
pub use make::{COPIES, NewPv, NotMade, Placed, make};
pub use pool::{
    Balance, Channels, Coalescing, Effect, Extent, Fault, Finding, FindingKind, Found, GROUP_MAX,
    Group, HeldCopy, Kept, KeptPart, Layout, Lookup, LuSpace, NotOpened, Outcome, Payload, Policy,
    Pool, PvSpace, ReadFailed, Reader, Removal, Reply, Request, Rescue, RescuedLu, Resync,
    ResyncBlocks, Scrubbing, Shadow, Shown, SnapshotOf, Source, TierSpace, Way, Words, rescue,
    superblocks,
};
pub use tables::{ChunkId, Contradiction, Entry, LEGS_MAX};
