//! Interfaces of the host, which may be in another network namespace.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use spec::{UplinkKind, UplinkSpec};

use super::{Answer, KNOWS_NAMESPACES, Opener, Question, locked, out_of_turn};

/// An interface of the host.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Interface {
    /// Its name.
    #[serde(rename = "interface")]
    pub name: String,
    /// The file of the network namespace that it is in; none: that of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub netns: Option<PathBuf>,
}

impl Interface {
    /// That of an uplink.
    #[must_use]
    pub fn of(spec: &UplinkSpec) -> Interface {
        Interface { name: spec.interface.clone(), netns: spec.netns.clone() }
    }

    /// As [`memory::interface::is_up`]. In a namespace that is not there is no interface.
    ///
    /// # Errors
    ///
    /// As there, and of [`memory::namespace::within`].
    pub fn is_up(&self) -> io::Result<bool> {
        let asked = self.within(|| memory::interface::is_up(&self.name));
        asked.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => Errno::NODEV.into(),
            _ => error,
        })
    }

    fn within<T: Send>(&self, work: impl FnOnce() -> io::Result<T> + Send) -> io::Result<T> {
        memory::namespace::within(self.netns.as_deref(), work)
    }

    pub(super) fn tap(&self, mtu: u16) -> io::Result<OwnedFd> {
        self.within(|| memory::tap::open(&self.name, mtu))
    }

    pub(super) fn packet(
        &self,
        beside: Option<BorrowedFd<'_>>,
        shared: bool,
    ) -> io::Result<OwnedFd> {
        self.within(|| memory::packet::open(&self.name, beside, shared))
    }

    /// Where that lies which opening it may have to wait for.
    pub(super) fn place(&self) -> &Path {
        self.netns.as_deref().unwrap_or(Path::new(&self.name))
    }
}

/// A descriptor of the interface of an uplink: one of several, if it is `shared`, of which `beside` is another one.
///
/// # Errors
///
/// As of [`memory::tap::open`], [`memory::packet::open`] and [`memory::namespace::within`].
pub fn open_uplink(
    spec: &UplinkSpec,
    beside: Option<BorrowedFd<'_>>,
    shared: bool,
) -> io::Result<OwnedFd> {
    match spec.kind {
        UplinkKind::Tap => Interface::of(spec).tap(spec.mtu),
        UplinkKind::Packet => Interface::of(spec).packet(beside, shared),
    }
}

impl Opener {
    /// As [`open_uplink`].
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn uplink(
        &self,
        spec: &UplinkSpec,
        beside: Option<BorrowedFd<'_>>,
        shared: bool,
    ) -> io::Result<OwnedFd> {
        let interface = Interface::of(spec);
        self.knows(&interface)?;
        match spec.kind {
            UplinkKind::Tap => self.descriptor(&Question::Tap { interface, mtu: spec.mtu }, None),
            UplinkKind::Packet => self.descriptor(&Question::Packet { interface, shared }, beside),
        }
    }

    /// One that does not know of namespaces would look into its own.
    fn knows(&self, interface: &Interface) -> io::Result<()> {
        let line = locked(&self.line);
        if interface.netns.is_some() && line.connection.is_some() && line.minor < KNOWS_NAMESPACES {
            return Err(io::Error::other("the control plane is of an earlier version"));
        }
        Ok(())
    }

    /// As [`Interface::is_up`].
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn link(&self, interface: Interface) -> io::Result<bool> {
        self.knows(&interface)?;
        match self.ask(&Question::Link { interface }, None)?.0 {
            Answer::Link(up) => Ok(up),
            _ => Err(out_of_turn()),
        }
    }
}
