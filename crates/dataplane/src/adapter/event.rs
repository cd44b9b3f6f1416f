//! What an adapter's thread waits for while there is a client.
//!
//! Somebody else who knocks meanwhile is refused, but not at once: a client that comes back as soon as it has left may find that its earlier
//! connection is still open. A process that it forked has a copy of the descriptor until it executes another program, and the kernel closes
//! those of a process that was killed after it has taken its memory away. So the one who knocks is given [`PATIENCE`], for the
//! client before to hang up. It waits in the socket's backlog: the client that is there notices nothing, and no thread stands still.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::Inner;
use crate::lock::locked;

/// How long somebody waits who knocks while a client is there. From a fork to the next program takes some milliseconds on a busy host, the end of
/// a large virtual machine tenths of a second; a second client that waits this long for its refusal is no worse off.
const PATIENCE: Duration = Duration::from_millis(500);

pub(super) enum Event {
    /// The adapter is removed.
    Stop,
    /// Somebody else knocks, and the client stays.
    SecondClient,
    /// The client has said something, or hung up.
    Message,
}

/// Waits for what comes next.
pub(super) struct Watch<'a> {
    inner: &'a Inner,
    stream: &'a UnixStream,
    wake: &'a OwnedFd,
    /// Since when somebody else knocks.
    knocked: Option<Instant>,
}

impl<'a> Watch<'a> {
    /// `wake`: written to when something has changed that the thread has to look at.
    pub(super) fn new(inner: &'a Inner, stream: &'a UnixStream, wake: &'a OwnedFd) -> Watch<'a> {
        Watch { inner, stream, wake, knocked: None }
    }

    pub(super) fn next(&mut self) -> Event {
        loop {
            if locked(&self.inner.attendance).removed {
                return Event::Stop;
            }
            let left = self.knocked.map(|since| PATIENCE.saturating_sub(since.elapsed()));
            if left.is_some_and(|left| left.is_zero()) {
                self.knocked = None;
                return Event::SecondClient;
            }
            // A knock that is known would end each wait at once.
            let listener = self.inner.entry.endpoint.listener().filter(|_| left.is_none());
            let mut fds = vec![
                PollFd::new(self.wake, PollFlags::IN),
                PollFd::new(self.stream, PollFlags::IN),
            ];
            fds.extend(listener.iter().map(|listener| PollFd::new(&**listener, PollFlags::IN)));
            let timeout = left.and_then(|left| Timespec::try_from(left).ok());
            if rustix::event::poll(&mut fds, timeout.as_ref()).is_err() {
                continue;
            }
            let ready = |index: usize| fds.get(index).is_some_and(|fd| !fd.revents().is_empty());
            match (ready(0), ready(1), ready(2)) {
                (true, ..) => drop(rustix::io::read(self.wake, &mut [0; 8])),
                (_, true, _) => return Event::Message,
                (_, _, true) => self.knocked = Some(Instant::now()),
                _ => {}
            }
        }
    }
}
