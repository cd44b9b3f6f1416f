//! A typed io_uring: fixed files, one wait, restrictions.
//!
//! # What it is for
//!
//! A channel (an I/O thread of the server) submits all its I/O through one [`Ring`] and sleeps
//! nowhere else: kick eventfds, the mailbox and timeouts are operations of the same ring. This
//! crate turns the raw interface into a handful of typed operations on *registered* files, so
//! that no other crate of the data path needs `unsafe` to do I/O.
//!
//! # What it promises
//!
//! - One system call per turn: [`Ring::push`] only writes a submission entry, [`Ring::submit`]
//!   hands all of them over and reaps in the same call, and does nothing when there is nothing to
//!   do. [`Ring::ready`] and [`Ring::next`] never enter the kernel.
//! - No completion is lost: `IORING_FEAT_NODROP` is required, and when the completion queue
//!   overflows, [`Ring::ready`] stays true and the next [`Ring::submit`] or [`Ring::wait`] makes
//!   the kernel flush what it kept.
//! - No allocation after [`Ring::new`], but by [`Ring::reserve_notes`].
//! - With [`RingConfig::restrict`] the kernel refuses every operation that [`Op`] does not have
//!   and every operation on a descriptor that is not registered, so that a corrupted submission
//!   entry cannot reach a file that the channel was not given.
//!
//! # What it leaves to others
//!
//! - Lengths and offsets: the kernel checks them against the file, the caller against the volume.
//! - Short transfers: a completion says how many bytes were moved, the caller goes on from there.
//! - Memory: whoever makes an [`memory::IoBuf`] promises that it outlives the operation. Dropping
//!   a ring with operations in flight does not wait for them.
//!
//! # Threads
//!
//! A ring is made, used and dropped on one thread (`IORING_SETUP_SINGLE_ISSUER`); the type is
//! neither `Send` nor `Sync`.
//!
//! # Kernel
//!
//! The flags are tried from the newest to the oldest set, see [`Rung`]; the oldest kernel that
//! works is 5.19 (sparse tables of registered files). Restrictions (5.10) are combined with
//! everything else that is used here: the ring starts disabled, is set up, is restricted, and is
//! enabled by the thread that uses it. The timeout of [`Ring::wait`] (`IORING_ENTER_EXT_ARG`) is
//! an argument of the system call and not an operation, so restrictions do not touch it; updating
//! the table of files and giving back the registered ring are register operations and are on the
//! list of allowed ones. The one thing that cannot be combined is `IORING_SETUP_R_DISABLED` with
//! a ring that is enabled on another thread: with `SINGLE_ISSUER` the enabling thread is the owner.
#![allow(unsafe_code)] // UNSAFE: submission entries carry raw pointers; this crate is their only writer.

pub mod claim;
mod error;
mod files;
pub mod inline;
#[cfg_attr(
    feature = "sim",
    allow(dead_code, reason = "the simulated kernel takes operations as they are")
)]
pub mod message;
mod now;
#[cfg_attr(
    feature = "sim",
    allow(dead_code, reason = "the simulated kernel takes operations as they are")
)]
mod op;
#[cfg(not(feature = "sim"))]
mod ring;
#[cfg_attr(feature = "sim", allow(dead_code, reason = "the simulated kernel needs no flags"))]
mod setup;
#[cfg(feature = "sim")]
pub mod sim;

pub mod thread;

pub use error::{Full, RingError};
pub use files::FileSlot;
pub use op::{Op, WriteFlags};
#[cfg(not(feature = "sim"))]
pub use ring::{Completion, Ring};
pub use setup::{RingConfig, Rung};
#[cfg(feature = "sim")]
pub use sim::{Completion, Ring};

#[cfg(all(test, not(feature = "sim")))]
mod tests;
