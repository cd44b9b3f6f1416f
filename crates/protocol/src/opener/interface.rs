//! Interfaces of the host, which may be in another network namespace.

use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use memory::xdp;
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use spec::{UplinkKind, UplinkSpec};

use super::{
    Answer, KNOWS_LINKS, KNOWS_NAMESPACES, KNOWS_XDP, Opener, Question, locked, out_of_turn,
};

/// How long a queue of a card is waited for that somebody has.
const LETS_GO: Duration = Duration::from_secs(1);

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

    /// The sockets of one that has just gone keep its queues for a moment: the kernel lets go of what was in a ring behind the death of its process.
    pub(super) fn xdp(&self) -> io::Result<xdp::Opened> {
        let end = Instant::now() + LETS_GO;
        loop {
            let opened = self.within(|| xdp::open(&self.name));
            let busy = opened
                .as_ref()
                .is_err_and(|it| it.raw_os_error() == Some(Errno::BUSY.raw_os_error()));
            if !busy || Instant::now() > end {
                return opened;
            }
            std::thread::sleep(Duration::from_millis(5));
        }
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
        UplinkKind::Xdp => Err(Errno::INVAL.into()),
    }
}

/// All queues of the interface of an uplink by AF_XDP sockets.
///
/// # Errors
///
/// As of [`memory::xdp::open`] and [`memory::namespace::within`].
pub fn open_xdp(spec: &UplinkSpec) -> io::Result<xdp::Opened> {
    Interface::of(spec).xdp()
}

/// A socket that hears of the interfaces of a network namespace; none: that of the process.
///
/// # Errors
///
/// As of [`memory::links::open`] and [`memory::namespace::within`].
pub fn open_links(netns: Option<&Path>) -> io::Result<OwnedFd> {
    memory::namespace::within(netns, memory::links::open)
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
            UplinkKind::Xdp => Err(Errno::INVAL.into()),
        }
    }

    /// As [`open_xdp`].
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn xdp(&self, spec: &UplinkSpec) -> io::Result<xdp::Opened> {
        self.knows_since(KNOWS_XDP)?;
        let interface = Interface::of(spec);
        let (answer, fds) = self.ask_for_all(&Question::Xdp { interface }, None)?;
        let Answer::Xdp { by_driver } = answer else { return Err(out_of_turn()) };
        let mut fds = fds.into_iter();
        let (Some(link), Some(listens)) = (fds.next(), fds.next()) else {
            return Err(out_of_turn());
        };
        let mut queues = Vec::new();
        while let Some(socket) = fds.next() {
            let memory = fds.next().ok_or_else(out_of_turn)?;
            queues.push(xdp::Queue { socket, memory });
        }
        Ok(xdp::Opened { queues, keeps: [link, listens], by_driver })
    }

    /// One that does not know of namespaces would look into its own.
    fn knows(&self, interface: &Interface) -> io::Result<()> {
        if interface.netns.is_some() { self.knows_since(KNOWS_NAMESPACES) } else { Ok(()) }
    }

    fn knows_since(&self, minor: u32) -> io::Result<()> {
        let line = locked(&self.line);
        if line.connection.is_some() && line.minor < minor {
            return Err(io::Error::other("the control plane is of an earlier version"));
        }
        Ok(())
    }

    /// As [`open_links`].
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn links(&self, netns: Option<&Path>) -> io::Result<OwnedFd> {
        self.knows_since(KNOWS_LINKS)?;
        self.descriptor(&Question::Links { netns: netns.map(Path::to_owned) }, None)
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
