//! Where an adapter's client comes from: it connects to the adapter's socket, or it listens and the adapter connects to it.
//!
//! vhost-user calls the two roles of a back end server and client of the socket. A client that listens outlives the data plane just
//! as one that connects again: the in-flight region comes back with either.
//!
//! A socket whose file was removed is made again ([`Endpoint::renew`]): who is connected does not notice, and who comes finds it.

use std::io::{Error, ErrorKind};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use protocol::message::{AdapterSpec, SocketRole};
use protocol::place::{Access, Place};

use crate::lock::locked;
use crate::outside::Outside;

/// The way in for clients.
pub(crate) struct Endpoint {
    outside: Arc<Outside>,
    path: PathBuf,
    access: Mutex<Access>,
    /// `None`: the client listens, and is connected to.
    listening: Option<Mutex<Listening>>,
}

/// A socket that listens. It never waits in `accept`: several may look whether somebody is there.
struct Listening {
    listener: Arc<UnixListener>,
    /// Its file, if that is ours to remove and to make again.
    place: Option<Place>,
    /// Why a lost file is not there again.
    trouble: Option<String>,
}

impl Endpoint {
    /// Opens that of an adapter. `listener`: a socket that somebody else has made; then no file is ours to remove.
    pub(crate) fn open(
        outside: &Arc<Outside>,
        spec: &AdapterSpec,
        listener: Option<OwnedFd>,
    ) -> std::io::Result<Endpoint> {
        let (path, access) = (spec.socket.clone(), Access::of(spec));
        let (listener, place) = match (spec.socket_role, listener) {
            (SocketRole::Server, Some(fd)) => (UnixListener::from(fd), None),
            (SocketRole::Server, None) => {
                let (listener, place) = outside.listen(&path, &access)?;
                (listener, Some(place))
            }
            (SocketRole::Client, None) => {
                let (outside, access) = (Arc::clone(outside), Mutex::new(access));
                return Ok(Endpoint { outside, path, access, listening: None });
            }
            (SocketRole::Client, Some(_)) => {
                let what = "a listening socket was passed in, and `socket_role` is `client`";
                return Err(Error::new(ErrorKind::InvalidInput, what));
            }
        };
        Endpoint::listening(outside, path, access, listener, place)
    }

    /// Of a socket that listens already.
    pub(crate) fn listening(
        outside: &Arc<Outside>,
        path: PathBuf,
        access: Access,
        listener: UnixListener,
        place: Option<Place>,
    ) -> std::io::Result<Endpoint> {
        listener.set_nonblocking(true)?;
        let listening = Listening { listener: Arc::new(listener), place, trouble: None };
        let (outside, listening) = (Arc::clone(outside), Some(Mutex::new(listening)));
        Ok(Endpoint { outside, path, access: Mutex::new(access), listening })
    }

    /// Others may use the socket from now on, if its file is ours. Who is connected stays so.
    pub(crate) fn permit(&self, access: Access) -> std::io::Result<()> {
        let place = self.listening.as_ref().and_then(|listening| locked(listening).place.clone());
        if let Some(place) = place.filter(|_| *locked(&self.access) != access) {
            self.outside.permit(&place, &access)?;
        }
        *locked(&self.access) = access;
        Ok(())
    }

    /// The socket where clients knock, if there is one.
    pub(crate) fn listener(&self) -> Option<Arc<UnixListener>> {
        self.listening.as_ref().map(|listening| Arc::clone(&locked(listening).listener))
    }

    /// Connects to a client that listens.
    ///
    /// # Errors
    ///
    /// What to do about it.
    pub(crate) fn connect(&self) -> Result<UnixStream, String> {
        self.outside.connect(&self.path).map_err(|error| {
            let path = self.path.display();
            format!(
                "cannot connect to {path}: {error}; it is tried again: start the client, it has to listen there"
            )
        })
    }

    /// Whether the socket's file was removed, or replaced.
    fn is_lost(&self) -> bool {
        self.listening.as_ref().is_some_and(|listening| {
            locked(listening).place.as_ref().is_some_and(|place| !place.is_there())
        })
    }

    /// Makes a lost file again, with a socket that takes the place of the earlier one. To be called by one thread at a time; whether there is one.
    pub(crate) fn renew(&self) -> bool {
        let Some(listening) = self.listening.as_ref().filter(|_| self.is_lost()) else {
            return false;
        };
        let access = locked(&self.access).clone();
        let made = self.outside.listen(&self.path, &access).and_then(|(listener, place)| {
            listener.set_nonblocking(true)?;
            Ok((Arc::new(listener), place))
        });
        let mut listening = locked(listening);
        match made {
            // Left meanwhile.
            Ok((_, place)) if listening.place.is_none() => {
                drop(listening);
                self.outside.leave(place);
                false
            }
            Ok((listener, place)) => {
                *listening = Listening { listener, place: Some(place), trouble: None };
                true
            }
            Err(error) => {
                let what = "the socket was removed, and cannot be made again";
                listening.trouble = Some(format!("{what}: {error}"));
                false
            }
        }
    }

    /// Why nobody finds the socket.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.listening.as_ref().and_then(|listening| locked(listening).trouble.clone())
    }

    /// Removes the socket's file, if it is ours to remove.
    pub(crate) fn leave(&self) {
        let place = self.listening.as_ref().and_then(|listening| locked(listening).place.take());
        if let Some(place) = place {
            self.outside.leave(place);
        }
    }
}
