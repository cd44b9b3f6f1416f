//! What the service manager and the kernel have to do with it: passed sockets, readiness, modes.

use protocol::inherited;
use std::collections::BTreeMap;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixListener};

/// The name of the API's socket in `LISTEN_FDNAMES`; every other name is an adapter's.
const API_NAME: &str = "api";
/// Passed descriptors begin here (sd_listen_fds(3)).
const FIRST_PASSED: i32 = 3;

/// Sockets that a service manager passed in.
#[derive(Debug, Default)]
pub struct Passed {
    /// For the API.
    pub api: Option<UnixListener>,
    /// For adapters, by name.
    pub adapters: BTreeMap<String, OwnedFd>,
}

/// Takes the sockets of systemd's socket activation: `LISTEN_PID`, `LISTEN_FDS`, `LISTEN_FDNAMES`. Data planes do not inherit them.
pub fn passed_sockets() -> io::Result<Passed> {
    let variable = |name: &str| std::env::var(name).unwrap_or_default();
    if variable("LISTEN_PID").parse() != Ok(std::process::id()) {
        return Ok(Passed::default());
    }
    let count: i32 = variable("LISTEN_FDS").parse().unwrap_or(0);
    let names = variable("LISTEN_FDNAMES");
    let names: Vec<&str> = names.split(':').collect();
    let mut passed = Passed::default();
    for (index, fd) in (FIRST_PASSED..FIRST_PASSED.saturating_add(count)).enumerate() {
        let Some(name) = names.get(index).filter(|name| !name.is_empty()) else {
            return Err(io::Error::other(format!(
                "descriptor {fd} has no name; set FileDescriptorName= in the socket unit to the \
                 adapter's name, or to `{API_NAME}`"
            )));
        };
        let socket = inherited::take(fd)?;
        if *name == API_NAME {
            let listener = UnixListener::from(socket);
            listener.set_nonblocking(true)?;
            passed.api = Some(listener);
        } else {
            passed.adapters.insert((*name).to_owned(), socket);
        }
    }
    Ok(passed)
}

/// Tells the service manager that the server is up (sd_notify(3)); nothing happens without one.
pub(super) fn notify_ready() {
    use std::os::linux::net::SocketAddrExt;
    let Ok(path) = std::env::var("NOTIFY_SOCKET") else { return };
    let send = || -> io::Result<usize> {
        let socket = UnixDatagram::unbound()?;
        match path.strip_prefix('@') {
            Some(name) => {
                let address = std::os::unix::net::SocketAddr::from_abstract_name(name)?;
                socket.send_to_addr(b"READY=1", &address)
            }
            None => socket.send_to(b"READY=1", &path),
        }
    };
    if let Err(error) = send() {
        tracing::warn!(%error, "the service manager could not be told that the server is ready");
    }
}
