//! Shared storage pools at work: what the pure core ([`pool`]) decides is carried out here.
//!
//! ```text
//!  channels                                          thread `pools`
//!  LuLane ── looks up ──► Table, Shadow ◄── shows ── Work ── Request, done ──► pool::Pool
//!    │  └─── asks ──────► Inbox ───────────────────►  │  ◄──── Effect ──────────┘
//!    │  ◄─── answers ──── LaneBox ◄────────────────── │
//!    └── reads, writes ──► PVs ◄── journal, first touches, flushes ── Engine
//! ```
//!
//! - [`Pools`]: the thread. It has the only further io_uring of a data plane, made before the process gives up making any, and serves all pools of it. Whatever takes
//!   the core is done there: first writes, zeroes, discards, flushes, and the pool's own blocks.
//! - [`PoolHandle`]: a pool that is open. An LU of it ([`PoolHandle::open_lu`]) is a [`block::Volume`].
//! - `Table` (`table.rs`): where each chunk of an LU is, as atomics that the thread writes and all channels read without a lock. A read or write of blocks that are written goes to the PV at once.
//! - `Chain` (`chain.rs`): of an LU that shares what it holds, the layers and the space in which channels look, from above. What they find in the uppermost they overwrite there.
//! - `Shadow` (`shadow.rs`): which blocks of each chunk are written, in a file of a tmpfs, which the next process finds. The thread writes it before anybody is answered, so that
//!   the death of the process loses nothing that was answered.
//! - `Begun` (`table.rs`): what channels have begun, by epoch. A chunk is given out again when all that was begun before the chunk was let go is over.
//! - [`PoolHandle::begin_copy`]: a whole LU comes from a file or goes into one, by a thread of its own (`copier.rs`), which asks as lanes do.
//!
//! # A PV
//!
//! Each PV is a [`block::FileVolume`], opened as a part of the pool: its lock keeps two processes apart, its lanes know about direct I/O, short transfers and disks that hang. A channel's lane
//! of an LU has a lane of each PV; their tokens carry the PV's number ([`block::Seat`]). One that is added gets its lanes when channels first need them. When one is gone, the thread has let go of it, and
//! lanes do when they are made anew.
//!
//! # What waits
//!
//! Nobody waits on the thread: an operation is begun there, and what follows from its end goes on when it has come. A pool is read on the thread of whoever opens it (`remote.rs`), and operations on a PV
//! have so many buffers and no more. So a PV that hangs delays what needs it, and no other pool.
//!
//! A request that the thread has is [`block::Submit::Held`], counted as [`block::Wait::Pool`], or as [`block::Wait::PoolFull`] where it needs space and others wait for that already. The
//! answer lies in the lane's box, whose eventfd the channel's ring reads: a lane that waits always has something in flight. The thread reads and writes the client's own memory, when the time has come, and
//! keeps no copy of it: what waits for space costs some hundred bytes, however large it is.
#![forbid(unsafe_code)]

mod away;
mod chain;
mod copier;
mod copies;
mod engine;
mod findings;
mod lane;
mod open;
mod pace;
mod parts;
mod post;
mod pvs;
mod remote;
mod rescue;
mod seen;
mod shadow;
mod signature;
mod still;
mod table;
mod thread;
mod traffic;
mod turns;
mod volume;
mod work;

#[cfg(test)]
mod tests;

pub use copies::{CopyEnd, CopyJob, CopyView, CopyWay};
pub use findings::{ChecksView, ScrubView};
pub use rescue::{Rescued, rescue};
pub use still::still;
pub use table::{PoolView, Progress, PvView, TierView};
pub use thread::{At, PoolHandle, Pools};

/// Why a pool is not made, opened or changed.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{what}{}", .help.as_ref().map(|help| format!("; {help}")).unwrap_or_default())]
pub struct PoolError {
    /// What is wrong.
    pub what: String,
    /// What mends it.
    pub help: Option<String>,
}

impl PoolError {
    fn new(what: impl Into<String>, help: impl Into<String>) -> PoolError {
        PoolError { what: what.into(), help: Some(help.into()) }
    }
}
