//! What goes wrong in the kernel.

use memory::sim;

/// What goes wrong, once in so many times; 0: never.
#[derive(Debug, Clone, Copy, Default)]
pub struct Faults {
    /// Transfers are cut short.
    pub short: u64,
    /// Reads fail with EIO.
    pub read_error: u64,
    /// Writes fail with EIO, having written a part.
    pub write_error: u64,
    /// Writing back what was written fails.
    pub sync_error: u64,
    /// Operations answer EAGAIN or EINTR.
    pub passing: u64,
    /// The kernel takes nothing of what is submitted.
    pub takes_nothing: u64,
    /// A poll ends.
    pub poll_ends: u64,
    /// A notification is lost. A control: no kernel does it.
    pub notify_lost: u64,
    /// What may block needs one of the ring's workers, of which there are as many as it has asked for.
    pub workers: bool,
}

/// How often something has gone wrong that no new try mends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Errors {
    /// Reads that failed.
    pub reads: u64,
    /// Writes and write-back that failed.
    pub writes: u64,
}

/// Something goes wrong once in so many times.
pub(super) fn fails(what: &'static str, times: u64) -> bool {
    sim::once_in(times) && {
        sim::met(what);
        sim::tell(|| what.to_owned());
        true
    }
}

/// Whether an operation is to be tried again, and its result then.
pub(super) fn passing(faults: Faults, nowait: bool) -> Option<i32> {
    if nowait && sim::once_in(4) {
        return Some(-libc::EAGAIN);
    }
    fails("it fails in passing", faults.passing)
        .then(|| if sim::once_in(2) { -libc::EINTR } else { -libc::EAGAIN })
}
