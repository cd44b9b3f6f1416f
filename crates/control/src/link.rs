//! The way to a data plane: one call, one answer.
//!
//! [`Link`] is what the keeper ([`crate::keeper`]) needs; [`SocketLink`] is the real one over a Unix
//! socket. Calls block, on the keeper's own thread.

use protocol::message::{Failure, Reply, Request, VERSION};
use protocol::socket::{Connection, FrameError};
use std::os::fd::{BorrowedFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

/// How long a data plane may take for one answer. Opening a volume may have to wait until the writes
/// of a data plane that died have landed, which took seconds where it was measured; preallocating a
/// large file takes longer still.
pub const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// A connection to a data plane.
pub trait Link: Send {
    /// Sends a request with descriptors and waits for its answer. [`Reply::Error`] is an answer.
    ///
    /// After a [`LinkError`] the link is of no more use.
    fn call(
        &mut self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Reply, Vec<OwnedFd>), LinkError>;

    /// A stream that hangs up when the data plane goes away, for a thread that waits for just that.
    fn watch(&self) -> Option<UnixStream>;
}

/// Why a data plane did not answer.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The connection failed.
    #[error("the data plane does not answer: {0}")]
    Frame(#[from] FrameError),
    /// The two programs have no message version in common.
    #[error("the data plane speaks another version of the messages: {}; restart it", .0.message)]
    Version(Failure),
    /// It answered with something else than what was asked for.
    #[error("the data plane answered with `{0}` out of turn")]
    OutOfTurn(String),
}

/// A [`Link`] over a Unix socket.
pub struct SocketLink {
    connection: Connection,
    /// Of the data plane's process.
    pid: u32,
}

impl SocketLink {
    /// Connects and greets.
    pub fn connect(path: &Path) -> Result<SocketLink, LinkError> {
        let stream = UnixStream::connect(path).map_err(FrameError::Io)?;
        stream.set_read_timeout(Some(CALL_TIMEOUT)).map_err(FrameError::Io)?;
        stream.set_write_timeout(Some(CALL_TIMEOUT)).map_err(FrameError::Io)?;
        let mut link = SocketLink { connection: Connection::new(stream), pid: 0 };
        match link.call(&Request::Hello { version: VERSION }, &[])?.0 {
            Reply::Hello { pid, .. } => link.pid = pid,
            Reply::Error(failure) => return Err(LinkError::Version(failure)),
            other => return Err(LinkError::OutOfTurn(format!("{other:?}"))),
        }
        Ok(link)
    }

    /// The data plane's process id.
    pub fn pid(&self) -> u32 {
        self.pid
    }
}

impl Link for SocketLink {
    fn call(
        &mut self,
        request: &Request,
        fds: &[BorrowedFd<'_>],
    ) -> Result<(Reply, Vec<OwnedFd>), LinkError> {
        self.connection.send(request, fds)?;
        Ok(self.connection.receive()?)
    }

    fn watch(&self) -> Option<UnixStream> {
        self.connection.stream().try_clone().ok()
    }
}
