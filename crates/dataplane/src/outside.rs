//! The way to files and sockets: this process's own, or, where it is confined, the control plane's ([`protocol::opener`]).

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use block::{Files, Here, Testimony};
use protocol::opener::{self, Holds, Interface, Opener, Wants};
use protocol::place::{Access, Place, listen, reach};
use rustix::fs::OFlags;
use spec::UplinkSpec;

/// Who opens.
#[derive(Debug)]
pub(crate) enum Outside {
    /// This process itself.
    Here,
    /// The control plane, for one that is confined.
    Opener(Opener),
}

impl Outside {
    pub(crate) fn of(confined: bool) -> Outside {
        if confined { Outside::Opener(Opener::default()) } else { Outside::Here }
    }

    /// A control plane that knows this much has come with a socket on which it is asked.
    pub(crate) fn attach(&self, fd: Option<OwnedFd>, minor: u32) {
        if let (Outside::Opener(opener), Some(fd)) = (self, fd) {
            opener.attach(fd, minor);
        }
    }

    pub(crate) fn listen(&self, path: &Path, access: &Access) -> io::Result<(UnixListener, Place)> {
        match self {
            Outside::Here => listen(path, access),
            Outside::Opener(opener) => opener.listen(path, access.mode),
        }
    }

    pub(crate) fn permit(&self, place: &Place, access: &Access) -> io::Result<()> {
        match self {
            Outside::Here => place.permit(access),
            Outside::Opener(opener) => opener.permit(place),
        }
    }

    pub(crate) fn leave(&self, place: Place) {
        match self {
            Outside::Here => place.remove(),
            Outside::Opener(opener) => opener.leave(place),
        }
    }

    /// A descriptor of an uplink, beside another one of it.
    pub(crate) fn uplink(
        &self,
        spec: &UplinkSpec,
        beside: Option<BorrowedFd<'_>>,
        shared: bool,
    ) -> io::Result<OwnedFd> {
        match self {
            Outside::Here => opener::open_uplink(spec, beside, shared),
            Outside::Opener(opener) => opener.uplink(spec, beside, shared),
        }
    }

    /// All queues of the interface of an uplink.
    pub(crate) fn xdp(&self, spec: &UplinkSpec) -> io::Result<memory::xdp::Opened> {
        match self {
            Outside::Here => opener::open_xdp(spec),
            Outside::Opener(opener) => opener.xdp(spec),
        }
    }

    pub(crate) fn link(&self, interface: Interface) -> io::Result<bool> {
        match self {
            Outside::Here => interface.is_up(),
            Outside::Opener(opener) => opener.link(interface),
        }
    }

    /// A socket that hears of the interfaces of a network namespace.
    pub(crate) fn links(&self, netns: Option<&Path>) -> io::Result<OwnedFd> {
        match self {
            Outside::Here => opener::open_links(netns),
            Outside::Opener(opener) => opener.links(netns),
        }
    }

    /// What the holder of leases has, which only a control plane keeps.
    pub(crate) fn tokens(&self, wants: Wants, holder: BorrowedFd<'_>) -> io::Result<Holds> {
        match self {
            Outside::Here => Err(io::Error::other("leases need `trunkline serve`")),
            Outside::Opener(opener) => opener.tokens(wants, holder),
        }
    }

    pub(crate) fn connect(&self, path: &Path) -> io::Result<UnixStream> {
        match self {
            Outside::Here => reach(path),
            Outside::Opener(opener) => opener.connect(path),
        }
    }
}

impl Files for Outside {
    fn open(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        match self {
            Outside::Here => Here.open(path, flags),
            Outside::Opener(opener) => opener.file(path, flags),
        }
    }

    fn again(&self, file: &File) -> io::Result<File> {
        match self {
            Outside::Here => Here.again(file),
            Outside::Opener(opener) => opener.again(file.as_fd()),
        }
    }

    fn text(&self, path: &Path) -> io::Result<String> {
        match self {
            Outside::Here => Here.text(path),
            Outside::Opener(opener) => opener.text(path),
        }
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        match self {
            Outside::Here => Here.remove(path),
            Outside::Opener(opener) => opener.remove(path),
        }
    }

    fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        match self {
            Outside::Here => Here.sync_folder_of(path),
            Outside::Opener(opener) => opener.sync_folder_of(path),
        }
    }

    fn testimony(&self, path: &Path, file: &File) -> io::Result<Testimony> {
        match self {
            Outside::Here => Here.testimony(path, file),
            Outside::Opener(opener) => {
                let opener::Testimony { lost, witness } = opener.testimony(path, file.as_fd())?;
                Ok(Testimony { lost, witness })
            }
        }
    }

    fn made_up_for(&self, path: &Path) -> io::Result<()> {
        match self {
            Outside::Here => Here.made_up_for(path),
            Outside::Opener(opener) => opener.made_up_for(path),
        }
    }
}
