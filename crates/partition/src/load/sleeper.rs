//! Sleeping until an interrupt.
//!
//! A descriptor that was passed is the same open file on both sides, and servers make their end of the call eventfd non-blocking, so that their
//! writes never wait. A plain read would then return at once, and the client would spin without knowing. So it waits in `poll` and reads
//! what is there, as an event loop does.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use rustix::event::{PollFd, PollFlags};
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use vmm_sys_util::eventfd::EventFd;

/// A handle of a call eventfd.
pub(super) struct Sleeper(OwnedFd);

impl Sleeper {
    /// Another descriptor of the same eventfd, without trusting a number.
    pub(super) fn new(event: &EventFd) -> io::Result<Sleeper> {
        let own = pidfd_open(getpid(), PidfdFlags::empty())?;
        Ok(Sleeper(pidfd_getfd(own, event.as_raw_fd(), PidfdGetfdFlags::empty())?))
    }

    /// Waits until the eventfd was written to and takes its count. 0 when there was nothing after all.
    pub(super) fn sleep(&self) -> u64 {
        let mut fds = [PollFd::new(&self.0, PollFlags::IN)];
        let mut count = [0; 8];
        match rustix::event::poll(&mut fds, None) {
            // Somebody else may have made it blocking and taken the count; nobody does both.
            Ok(_) if rustix::io::read(&self.0, &mut count).is_ok() => u64::from_ne_bytes(count),
            _ => 0,
        }
    }
}
