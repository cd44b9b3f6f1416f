//! What can go wrong, and what mends it.

use std::io;

/// The submission queue, or the area for scattered buffers behind it, has no room left.
///
/// Not a failure: [`crate::Ring::submit`] makes room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the submission queue is full; submit, then push again")]
pub struct Full;

/// Why a ring could not be made, or a file not be registered.
#[derive(Debug, thiserror::Error)]
pub enum RingError {
    /// The kernel has no io_uring, or a policy forbids it.
    #[error(
        "io_uring cannot be used here ({0}): it needs Linux 5.19 or later, \
         sysctl kernel.io_uring_disabled=0, and a container profile that allows io_uring_setup"
    )]
    Forbidden(#[source] io::Error),
    /// The kernel knows io_uring, but none of the sets of flags that this crate can live with.
    #[error("this kernel's io_uring is too old ({0}): Linux 5.19 or later is needed")]
    TooOld(#[source] io::Error),
    /// A property without which the promises of this crate cannot be kept.
    #[error("this kernel's io_uring lacks {0}: Linux 5.19 or later is needed")]
    Lacks(&'static str),
    /// The locked-memory limit, or memory itself, is exhausted.
    #[error(
        "no memory for a ring of {entries} entries ({source}): \
         use fewer channels, or raise the locked-memory limit (ulimit -l, LimitMEMLOCK=)"
    )]
    Memory {
        /// The submission entries asked for.
        entries: u32,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// A step of the set-up failed.
    #[error("io_uring: {step}: {source}")]
    Setup {
        /// The step.
        step: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
    /// Every slot of the table of files is taken.
    #[error(
        "all {0} registered files of this ring are in use; use more channels, or another data plane"
    )]
    FilesFull(u32),
    /// The kernel would not take a file.
    #[error("io_uring: registering a file: {0}")]
    Register(#[source] io::Error),
}
