//! Where an adapter's client comes from: it connects to the adapter's socket, or it listens and the adapter connects to it.
//!
//! vhost-user calls the two roles of a back end server and client of the socket. A client that listens outlives the data plane just
//! as one that connects again: the in-flight region comes back with either.

use std::io::{Error, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;

use protocol::message::{AdapterSpec, SocketRole};
use protocol::place::Place;
use rustix::event::{PollFd, PollFlags, Timespec};

use crate::outside::Outside;

/// Milliseconds from one attempt to connect to the next: the first and the longest pause; it doubles in between.
const PAUSE_MS: (u64, u64) = (100, 1000);

/// The way in for clients. Owned by the adapter's thread.
pub(crate) enum Endpoint {
    /// They connect here.
    Listens(UnixListener),
    /// The client listens there.
    Connects(Arc<Outside>, PathBuf),
}

impl Endpoint {
    /// Opens it. `listener`: a socket that somebody else has made; then no file is ours to remove.
    pub(crate) fn open(
        outside: &Arc<Outside>,
        spec: &AdapterSpec,
        listener: Option<OwnedFd>,
    ) -> std::io::Result<(Endpoint, Option<Place>)> {
        match (spec.socket_role, listener) {
            (SocketRole::Server, Some(fd)) => Ok((Endpoint::Listens(UnixListener::from(fd)), None)),
            (SocketRole::Server, None) => {
                let (listener, place) = outside.listen(&spec.socket, spec.socket_mode)?;
                Ok((Endpoint::Listens(listener), Some(place)))
            }
            (SocketRole::Client, None) => {
                Ok((Endpoint::Connects(Arc::clone(outside), spec.socket.clone()), None))
            }
            (SocketRole::Client, Some(_)) => {
                let what = "a listening socket was passed in, and `socket_role` is `client`";
                Err(Error::new(ErrorKind::InvalidInput, what))
            }
        }
    }

    /// The socket where clients knock, if there is one.
    pub(crate) fn listener(&self) -> Option<&UnixListener> {
        match self {
            Endpoint::Listens(listener) => Some(listener),
            Endpoint::Connects(..) => None,
        }
    }

    /// Waits for the next client; `None` when `stop` can be read. `note` is told why none can be had so far.
    pub(crate) fn next_client(&self, stop: &OwnedFd, note: impl Fn(String)) -> Option<UnixStream> {
        let mut pause_ms = PAUSE_MS.0;
        loop {
            match self {
                Endpoint::Listens(listener) => {
                    if wait(&[listener], stop, None) {
                        return None;
                    }
                    if let Ok((stream, _)) = listener.accept() {
                        return Some(stream);
                    }
                }
                Endpoint::Connects(outside, path) => {
                    // Before each attempt: a client that hangs up at once is not called in a loop without end.
                    if wait(&[], stop, Some(pause_ms)) {
                        return None;
                    }
                    pause_ms = (2 * pause_ms).min(PAUSE_MS.1);
                    match outside.connect(path) {
                        Ok(stream) => return Some(stream),
                        Err(error) => note(format!(
                            "cannot connect to {}: {error}; it is tried again: start the client, it has to listen there",
                            path.display()
                        )),
                    }
                }
            }
        }
    }
}

/// Waits for one of `sockets`, or for the time to pass; true when it is time to stop.
fn wait(sockets: &[&UnixListener], stop: &OwnedFd, ms: Option<u64>) -> bool {
    let timeout = ms.map(|ms| Timespec {
        tv_sec: i64::try_from(ms / 1000).unwrap_or(i64::MAX),
        tv_nsec: i64::try_from(ms % 1000).unwrap_or(0) * 1_000_000,
    });
    let mut fds = vec![PollFd::new(stop, PollFlags::IN)];
    fds.extend(sockets.iter().map(|socket| PollFd::new(*socket, PollFlags::IN)));
    // Interrupted: whoever calls looks again.
    let _ = rustix::event::poll(&mut fds, timeout.as_ref());
    !fds[0].revents().is_empty()
}
