//! The place of a socket in the file system: listening there without harm to what is there, and reaching who listens.
//!
//! [`listen`] replaces a socket that a process left behind and nobody listens on, and nothing else: no file, no link, no socket in
//! use. The new socket has its permissions before anybody can connect, and shows under its path only when it listens. A [`Claim`] says
//! who lives behind a socket, also when its file is gone.

mod access;

pub use access::Access;

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io::{Error, ErrorKind, Read, Result, Seek, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rustix::fs::{FlockOperation, Mode, OFlags, RenameFlags, flock, renameat_with};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use serde::{Deserialize, Serialize};

/// Clients that may wait to be accepted.
const BACKLOG: i32 = 128;
/// The longest path that fits a socket's address (`sun_path` less its final zero).
const ADDRESS_BYTES_MAX: usize = 107;
/// How much of a socket's name goes into that of its draft.
const DRAFT_BYTES_MAX: usize = 64;
/// How long a claim is tried.
const CLAIM_PATIENCE: Duration = Duration::from_secs(1);

/// Where a socket is that was made here.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    path: PathBuf,
    /// Device and inode.
    id: (u64, u64),
}

impl Place {
    /// The socket's path.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether the socket is at its path still.
    #[must_use]
    pub fn is_there(&self) -> bool {
        std::fs::symlink_metadata(&self.path).is_ok_and(|file| id(&file) == self.id)
    }

    /// Changes who may use the socket, unless something else is there by now. Who is connected stays so.
    ///
    /// # Errors
    ///
    /// When it is not there, or the system refuses.
    pub fn permit(&self, access: &Access) -> Result<()> {
        let explain =
            |error: Error| Error::new(error.kind(), format!("{}: {error}", self.path.display()));
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = rustix::fs::open(&self.path, flags, Mode::empty()).map(File::from);
        let file = file.map_err(|error| explain(error.into()))?;
        let metadata = file.metadata().map_err(explain)?;
        if id(&metadata) != self.id {
            return Err(explain(Error::new(
                ErrorKind::NotFound,
                "the socket is not there any more",
            )));
        }
        access.give(&file, Some((metadata.uid(), metadata.gid()))).map_err(explain)
    }

    /// Removes the socket, unless something else is there by now.
    pub fn remove(self) {
        if self.is_there() {
            // What is left is a socket that nobody listens on, which the next one replaces.
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// What is at a path.
enum Occupant {
    Nothing,
    /// A socket that nobody listens on.
    Stale((u64, u64)),
}

/// Listens on a path, for those who may use it and nobody else from the first moment.
///
/// # Errors
///
/// When something is there that is no socket, when somebody listens there, or when the system refuses.
pub fn listen(path: &Path, access: &Access) -> Result<(UnixListener, Place)> {
    let explain = |error: Error| Error::new(error.kind(), format!("{}: {error}", path.display()));
    let occupant = occupant(path).map_err(explain)?;
    let name = path.file_name().ok_or_else(|| explain(ErrorKind::InvalidInput.into()))?;
    let folder = match path.parent() {
        Some(folder) if !folder.as_os_str().is_empty() => folder,
        _ => Path::new("."),
    };
    let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
    let folder_fd =
        rustix::fs::open(folder, flags, Mode::empty()).map_err(|error| explain(error.into()))?;
    let draft = draft(name);
    let made = make(folder, &folder_fd, &draft, access)
        .and_then(|made| put(&folder_fd, &draft, Path::new(name), &occupant).map(|()| made));
    match made {
        Ok((listener, id)) => Ok((listener, Place { path: path.to_owned(), id })),
        Err(error) => Err(explain(error)),
    }
}

/// Connects without waiting: a process that is stopped, with a full backlog, holds nobody up.
///
/// # Errors
///
/// [`ErrorKind::NotFound`] and [`ErrorKind::ConnectionRefused`] say that nobody listens there; every other error leaves it open.
pub fn reach(path: &Path) -> Result<UnixStream> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
    let stream = UnixStream::from(socket);
    stream.set_nonblocking(false)?;
    Ok(stream)
}

/// That this process is the only one of its kind behind a socket, for as long as it lives: even when the socket's file is removed.
#[derive(Debug)]
pub struct Claim {
    _lock: File,
}

/// Where the claim on a socket is.
fn claim_path(socket: &Path) -> PathBuf {
    socket.with_extension("lock")
}

/// Claims a socket for this process.
///
/// # Errors
///
/// [`ErrorKind::AddrInUse`] when another process has it, or when the system refuses.
pub fn claim(socket: &Path) -> Result<Claim> {
    let path = claim_path(socket);
    let explain = |error: Error| Error::new(error.kind(), format!("{}: {error}", path.display()));
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    options.custom_flags(OFlags::NOFOLLOW.bits() as i32);
    let mut file = options.open(&path).map_err(explain)?;
    let deadline = Instant::now() + CLAIM_PATIENCE;
    while let Err(error) = flock(&file, FlockOperation::NonBlockingLockExclusive) {
        if error != Errno::WOULDBLOCK {
            return Err(explain(error.into()));
        }
        // Somebody may just be looking who has it.
        if Instant::now() > deadline {
            let pid = pid_in(&mut file);
            let what = format!("process {pid} has it");
            return Err(explain(Error::new(ErrorKind::AddrInUse, what)));
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    file.set_len(0).map_err(explain)?;
    write!(file, "{}", std::process::id()).map_err(explain)?;
    Ok(Claim { _lock: file })
}

/// The process that has claimed a socket and lives; 0 when it has not said which it is.
///
/// # Errors
///
/// When the system refuses to say.
pub fn claimant(socket: &Path) -> Result<Option<u32>> {
    let mut file = match File::open(claim_path(socket)) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        file => file?,
    };
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => Ok(None),
        Err(Errno::WOULDBLOCK) => Ok(Some(pid_in(&mut file))),
        Err(error) => Err(error.into()),
    }
}

fn pid_in(file: &mut File) -> u32 {
    let mut text = String::new();
    let read = file.rewind().and_then(|()| file.read_to_string(&mut text));
    read.ok().and_then(|_| text.trim().parse().ok()).unwrap_or(0)
}

fn id(file: &std::fs::Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

fn occupant(path: &Path) -> Result<Occupant> {
    let file = match std::fs::symlink_metadata(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Occupant::Nothing),
        file => file?,
    };
    if !file.file_type().is_socket() {
        let what = "there is something that is no socket, which is not replaced; remove it, or choose another path";
        return Err(Error::new(ErrorKind::AlreadyExists, what));
    }
    match reach(path) {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {
            Ok(Occupant::Stale(id(&file)))
        }
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Occupant::Nothing),
        // It listens, with a full backlog.
        Ok(_) => Err(Error::new(ErrorKind::AddrInUse, "another process listens there")),
        Err(error) if error.kind() == ErrorKind::WouldBlock => {
            Err(Error::new(ErrorKind::AddrInUse, "another process listens there"))
        }
        Err(error) => Err(error),
    }
}

/// The file name under which a socket is made, and by which the kernel goes on knowing it; short enough for the address of a long
/// one, too.
#[must_use]
pub fn draft(name: &OsStr) -> PathBuf {
    let bytes = name.as_bytes();
    let mut draft = OsString::from(".");
    draft.push(OsStr::from_bytes(&bytes[..bytes.len().min(DRAFT_BYTES_MAX)]));
    if bytes.len() > DRAFT_BYTES_MAX {
        // Two that begin alike may be made at once, by two processes. FNV-1a.
        let sum = bytes.iter().fold(0xcbf2_9ce4_8422_2325, |sum: u64, byte| {
            (sum ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3)
        });
        draft.push(format!("~{sum:016x}"));
    }
    draft.push(".new");
    draft.into()
}

/// A socket that listens, under another name.
fn make(
    folder: &Path,
    folder_fd: &OwnedFd,
    draft: &Path,
    access: &Access,
) -> Result<(UnixListener, (u64, u64))> {
    let mut at = folder.join(draft);
    if at.as_os_str().as_bytes().len() > ADDRESS_BYTES_MAX {
        at = Path::new("/proc/self/fd").join(folder_fd.as_raw_fd().to_string()).join(draft);
    }
    if let Occupant::Stale(_) = occupant(&at)? {
        rustix::fs::unlinkat(folder_fd, draft, rustix::fs::AtFlags::empty())?;
    }
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(&at)?)?;
    let made = (|| {
        // The very file, and no link that was put in its place. Nobody can connect before `listen`.
        let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        let file = File::from(rustix::fs::openat(folder_fd, draft, flags, Mode::empty())?);
        let metadata = file.metadata()?;
        if !metadata.file_type().is_socket() {
            return Err(Error::other("something else was put in the place of the new socket"));
        }
        access.give(&file, None)?;
        rustix::net::listen(&socket, BACKLOG)?;
        Ok(id(&metadata))
    })();
    match made {
        Ok(id) => Ok((UnixListener::from(socket), id)),
        Err(error) => {
            let _ = rustix::fs::unlinkat(folder_fd, draft, rustix::fs::AtFlags::empty());
            Err(error)
        }
    }
}

/// Gives the socket its name, in place of what was found there and of nothing else.
fn put(folder: &OwnedFd, draft: &Path, name: &Path, found: &Occupant) -> Result<()> {
    let rename = |flags| renameat_with(folder, draft, folder, name, flags);
    let discard = || {
        let _ = rustix::fs::unlinkat(folder, draft, rustix::fs::AtFlags::empty());
    };
    let done = match found {
        Occupant::Nothing => rename(RenameFlags::NOREPLACE),
        Occupant::Stale(_) => rename(RenameFlags::EXCHANGE),
    };
    let stale = match (done, found) {
        (Ok(()), Occupant::Nothing) => return Ok(()),
        (Ok(()), Occupant::Stale(id)) => id,
        // A file system without these flags: what was found a moment ago has to do.
        (Err(Errno::INVAL | Errno::NOSYS), _) => return Ok(rename(RenameFlags::empty())?),
        (Err(error), _) => {
            discard();
            return Err(error.into());
        }
    };
    let swapped = rustix::fs::statat(folder, draft, rustix::fs::AtFlags::SYMLINK_NOFOLLOW)?;
    if (swapped.st_dev, swapped.st_ino) != *stale {
        rename(RenameFlags::EXCHANGE)?;
        discard();
        return Err(Error::new(
            ErrorKind::AlreadyExists,
            "something else appeared there meanwhile",
        ));
    }
    discard();
    Ok(())
}

#[cfg(test)]
mod tests;
