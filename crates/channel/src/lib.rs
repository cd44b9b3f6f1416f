//! The channel: one thread that owns a set of queues from the client's ring to the device.
//!
//! # A turn
//!
//! ```text
//! take    every hot queue: up to 32 heads, each to its queue's handler, which may submit it to a lane
//! submit  one system call hands all of it to the kernel
//! reap    completions finish commands, bring kicks, messages and timers
//! publish every touched queue: one store, at most one notification
//! copy    one lane's round of long copies, if one has any
//! ```
//!
//! A turn that found nothing is followed by another look or by sleep, as [`wait`] decides; what a sleep costs here, [`price`] learns. The thread sleeps in one place, its
//! io_uring, which also watches the kick eventfds and the mailbox.
//!
//! # Who waits for whose work
//!
//! What costs the thread much is done in pieces, and everybody else is served between two of them: a queue is taken from for some eight
//! microseconds or 512 segments of long chains at most, a chain without an end being as long as any; a device can add what else a head costs ([`RunningQueue::charge`]). One that had more in its ring than that is *heavy*, until it is found with
//! less. In each turn come first all queues that are not, then one heavy one, in the order in which they were served; then everything is
//! published, and then one lane copies a round of its long requests ([`block::LaneId::TICK`]). So what a client with little to ask waits for on
//! account of others is a piece of a heavy queue and a round, not their sum over all of them.
//!
//! # What a device is
//!
//! Whatever implements [`Handler`], for channels (see there for the picture), and [`device::Device`], for the session of its client. The
//! channel knows no device; it is made for one type of handler.
//!
//! # Ownership
//!
//! A queue is *moved* into its channel as [`QueueResources`] and moved back when it is stopped: nobody else can touch it meanwhile, and no
//! lock is taken for it. What several threads see is written rarely or by one of them alone (statistics). A stop is answered when nothing of
//! the queue is in flight any more; that is what lets a session change memory, rings or volume.
//!
//! # Hot and armed queues
//!
//! A *hot* queue is looked at in every turn and its client is asked not to kick. An *armed* queue costs nothing until its client kicks. A
//! queue becomes hot by a kick or a completion, and armed when it was found empty many times or before the thread sleeps. To a client that kicks for nothing nobody
//! listens while its queue is not armed (`kicks.rs`).
//!
//! # Limits
//!
//! Everything is sized when a queue starts; nothing is allocated on the I/O path. A command that lacks something (a
//! long segment list, a bounce buffer, a token of a rate limit) is parked here, counted by its reason, and tried again.
#![deny(unsafe_code)]

mod attendant;
mod command;
pub mod device;
pub mod elements;
mod handle;
mod handler;
mod io;
mod kicks;
mod lanes;
mod lists;
pub mod mailbox;
mod off_path;
pub mod price;
mod queue;
pub mod room;
pub mod single;
mod sync;
pub mod wait;
mod worker;

pub use attendant::{Attendant, Desk};
pub use command::{Command, INLINE, State};
pub use handle::{Activity, Channel, ChannelConfig, ChannelError, Drain};
pub use handler::{After, BadChain, Handler, Never, Opened, Peers, Sweep, Walked};
pub use io::{Io, Read};
pub use lanes::Lanes;
pub use lists::{LIST_SEGMENTS, Lists};
pub use off_path::{Answer, Reply};
pub use queue::{Adapter, CommandRef, NO_PART, QueueId, QueueResources, RunningQueue, StopReason};
pub use worker::StartFailure;

/// Most heads that are taken from one queue in one turn, so that a busy client does not keep the others waiting.
pub const BATCH: u16 = 32;
