//! Where the server is: it listens and this side connects, or the other way round.

use std::io::{Error, ErrorKind};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec};

use super::{SessionError, SessionOptions};

/// Pause between two attempts to reach a server that is not there.
const RETRY_PAUSE: Duration = Duration::from_millis(20);

/// The way to a server and, when it died, to its successor.
pub(super) struct Endpoint {
    path: PathBuf,
    /// The socket, where this side listens; its file goes with it.
    listener: Option<UnixListener>,
}

impl Endpoint {
    pub(super) fn open(path: &Path, options: &SessionOptions) -> Result<Endpoint, SessionError> {
        let listener = options.listen.map(|_| listen(path)).transpose();
        let listener =
            listener.map_err(|source| SessionError::Listen { path: path.to_owned(), source })?;
        Ok(Endpoint { path: path.to_owned(), listener })
    }

    /// A connection, trying for `patience`.
    pub(super) fn pass(&self, patience: Duration) -> Result<UnixStream, SessionError> {
        match &self.listener {
            Some(listener) => self.accept(listener, patience),
            None => self.connect(patience),
        }
    }

    fn connect(&self, patience: Duration) -> Result<UnixStream, SessionError> {
        let end = Instant::now() + patience;
        loop {
            match UnixStream::connect(&self.path) {
                Ok(stream) => return Ok(stream),
                Err(_) if Instant::now() < end => std::thread::sleep(RETRY_PAUSE),
                Err(source) => {
                    return Err(SessionError::Connect { path: self.path.clone(), source });
                }
            }
        }
    }

    fn accept(
        &self,
        listener: &UnixListener,
        patience: Duration,
    ) -> Result<UnixStream, SessionError> {
        let fail = |source| SessionError::Socket { step: "accepting the server", source };
        let end = Instant::now() + patience;
        loop {
            match listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(fail)?;
                    return Ok(stream);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(fail(error)),
            }
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                let seconds = patience.as_secs_f64();
                return Err(SessionError::NoServer { path: self.path.clone(), seconds });
            }
            let timeout =
                Timespec::try_from(left).map_err(|_| fail(Error::other("the wait is too long")))?;
            // Interrupted: looks again.
            let _ =
                rustix::event::poll(&mut [PollFd::new(listener, PollFlags::IN)], Some(&timeout));
        }
    }
}

fn listen(path: &Path) -> std::io::Result<UnixListener> {
    let listener = UnixListener::bind(path)?;
    listener.set_nonblocking(true)?;
    Ok(listener)
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        if self.listener.is_some() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}
