//! The control plane's socket. Several connections may be open at once, so that a new control plane is served while an old one still
//! holds its connection; messages are carried out one at a time.

use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc;

use protocol::message::{Account, Failure, FailureCode, Reply, Request};
use protocol::place::{Access, Claim, Place, claim, listen};
use protocol::socket::{Connection, FrameError};

use crate::acceptor::PAUSE;
use crate::adapter::PlaneContext;
use crate::endpoint::Endpoint;
use crate::plane::{Plane, PlaneError};

/// Why a data plane ended.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It could not be made.
    #[error(transparent)]
    Plane(#[from] PlaneError),
    /// Its socket could not be made.
    #[error("cannot listen for the control plane at {}: {source}", path.display())]
    Socket {
        /// Where.
        path: PathBuf,
        /// The reason.
        source: std::io::Error,
    },
}

/// Permission bits of the socket.
const MODE: u32 = 0o600;

/// Where control planes connect.
pub struct Entrance {
    listener: UnixListener,
    place: Place,
    /// Until the end: no other data plane is started in place of this one while it lives.
    _claim: Claim,
}

impl Entrance {
    /// Claims the path, and listens there.
    ///
    /// # Errors
    ///
    /// When another process has it, or the socket cannot be made.
    pub fn open(path: &Path) -> Result<Entrance, ServeError> {
        let failed = |source: std::io::Error| ServeError::Socket { path: path.to_owned(), source };
        let claim = claim(path).map_err(failed)?;
        let (listener, place) = listen(path, &Access::of_mode(MODE)).map_err(failed)?;
        Ok(Entrance { listener, place, _claim: claim })
    }
}

/// Serves the control plane until it says [`Request::Shutdown`].
///
/// # Errors
///
/// When the system refuses what that takes.
pub fn serve(plane: Plane, entrance: Entrance) -> Result<(), ServeError> {
    let Entrance { listener, place, _claim } = entrance;
    let path = place.path().to_owned();
    let plane = Arc::new(plane);
    let PlaneContext { outside, acceptor, .. } = plane.context();
    let endpoint =
        Endpoint::listening(outside, path.clone(), Access::of_mode(MODE), listener, Some(place))
            .map_err(|source| ServeError::Socket { path, source })?;
    let (ended, end) = mpsc::channel();
    let its = Arc::downgrade(&plane);
    let entry = acceptor.enter(endpoint, move || {
        let Some(plane) = its.upgrade() else { return };
        let Some(entry) = plane.entrance.get().cloned() else { return };
        let Some(stream) = entry.accept() else { return };
        let ended = ended.clone();
        let talk = move || {
            if converse(&plane, stream) {
                // The receiver is gone only when another connection has ended everything.
                let _ = ended.send(());
            }
        };
        // Without a thread the connection closes, and the control plane tries again.
        let begun = std::thread::Builder::new().name("messages".into()).spawn(talk);
        if begun.is_ok() { entry.expect() } else { entry.call_after(PAUSE) }
    });
    let entry = plane.entrance.get_or_init(|| Arc::new(entry));
    entry.expect();
    let _ = end.recv();
    entry.close();
    Ok(())
}

/// Serves one connection; `true` when the data plane is to end.
fn converse(plane: &Plane, stream: UnixStream) -> bool {
    let mut connection = Connection::new(stream);
    let mut told = Account::default();
    let mut knows = 0;
    loop {
        let (request, fds) = match connection.receive::<Request>() {
            Ok(received) => received,
            Err(FrameError::Malformed(what)) => {
                let failure = Failure { code: FailureCode::BadMessage, message: what, help: None };
                if connection.send(&Reply::Error(failure), &[]).is_err() {
                    return false;
                }
                continue;
            }
            Err(_) => return false,
        };
        let last = request == Request::Shutdown;
        let of = match &request {
            Request::ChangesOf(of) => Some(of.clone()),
            _ => None,
        };
        let changes = request == Request::Changes || of.is_some();
        if let Request::Hello { minor, .. } = request {
            knows = minor;
            if minor >= 1 {
                connection.allow_parts();
            }
        }
        let (reply, fd) = match request {
            Request::Opener => {
                plane.lend(fds, knows);
                (Reply::Done, None)
            }
            other => plane.handle(other, fds),
        };
        let reply = match (reply, of) {
            (Reply::Status(now), Some(of)) => told.tell_of(of, now),
            (Reply::Status(now), None) if changes => told.tell(now),
            (other, _) => other,
        };
        let fds: Vec<_> = fd.into_iter().collect();
        let sent = match connection.send(&reply, &fds) {
            // Of changes the other side would not know what they are changes of: it begins anew.
            Err(error @ FrameError::TooLong { .. }) if !changes => {
                let help = Some("use a control plane that is not older, or fewer adapters".into());
                let message = format!("the answer cannot be sent: {error}");
                let failure = Failure { code: FailureCode::System, message, help };
                connection.send(&Reply::Error(failure), &[])
            }
            sent => sent,
        };
        if sent.is_err() || last {
            return last;
        }
    }
}
