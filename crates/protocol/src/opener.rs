//! The opener: what a confined data plane cannot open, the control plane opens for it.
//!
//! ```text
//!  data plane                                      control plane
//!  Opener ── what it asks, and where to answer ──► serve: one thread a question
//!         ◄──────── descriptor, or why not ──────         │ only what is granted
//! ```
//!
//! A data plane that was taken over by a guest opens what the control plane has put there, and nothing else: which files and sockets these are
//! stands in [`Grants`], which the data plane cannot change, and each question is judged by it. Nothing that a data plane sends is
//! trusted; a question costs a thread for as long as it takes, and there are at most [`QUESTIONS_MAX`] of them, of which those about one folder's files,
//! whose disk may hang, leave as many to others as they are.
//!
//! Without a control plane nothing is opened. Running I/O needs nothing of this.
//!
//! Leases in etcd are kept for it likewise: [`Tokens`].
//!
//! Of each file that a data plane writes the control plane keeps an open file of its own, which outlives the data plane: [`Witnesses`].

mod interface;
mod testimony;
mod tokens;
mod witnesses;

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use rustix::fs::{AtFlags, Mode, OFlags, StatxFlags};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use spec::{AdapterSpec, PoolSpec, SocketRole, UplinkKind, UplinkSpec, VolumeSpec};

use crate::message::Request;
use crate::place::{Access, Place, listen, reach};
use crate::socket::{Connection, FrameError};
pub use interface::{Interface, open_links, open_uplink, open_xdp};
pub use testimony::Testimony;
pub use tokens::{Holds, NoTokens, Tokens, Wants};
pub use witnesses::{Passing, Witnesses};

/// From this [`crate::message::MINOR`] on a control plane enters network namespaces.
const KNOWS_NAMESPACES: u32 = 18;
/// Likewise opens AF_XDP sockets.
const KNOWS_XDP: u32 = 19;
/// Likewise opens sockets that hear of interfaces.
const KNOWS_LINKS: u32 = 26;
/// Questions of one data plane that are being answered; one more is refused with `EAGAIN`.
pub const QUESTIONS_MAX: usize = 256;
/// The most that is read of a file of the kernel's, in bytes.
const TEXT_BYTES_MAX: u64 = 1 << 20;
/// How a file may be opened; one that is made must not be there.
const FLAGS: OFlags = OFlags::RDWR
    .union(OFlags::WRONLY)
    .union(OFlags::CREATE)
    .union(OFlags::EXCL)
    .union(OFlags::NONBLOCK)
    .union(OFlags::CLOEXEC);
/// The mode of files that are made, less the umask.
const MODE: Mode = Mode::from_bits_retain(0o660);
/// What the kernel says of a block device under `/sys/dev/block/MAJOR:MINOR`, or of the disk that it is a partition of.
const DEVICE_TEXTS: [&str; 10] = [
    "queue/physical_block_size",
    "queue/write_zeroes_max_bytes",
    "queue/discard_max_bytes",
    "queue/optimal_io_size",
    "wwid",
    "device/wwid",
    "dm/uuid",
    "md/uuid",
    "serial",
    "partition",
];

/// What a data plane asks for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Question {
    /// A file, with these `open` flags.
    File { path: PathBuf, flags: u32 },
    /// Another open file of the file whose descriptor comes with this, to be read.
    Again,
    /// What a file of the kernel's says.
    Text { path: PathBuf },
    /// A file is no longer there.
    Remove { path: PathBuf },
    /// The folder of a file has reached its disk.
    SyncFolder { path: PathBuf },
    /// A socket that listens, with this mode.
    Listen { path: PathBuf, mode: u32 },
    /// A socket of the data plane's is for others than before: those that the control plane has granted it for.
    Permit { place: Place },
    /// A socket of the data plane's is no longer there.
    Leave { place: Place },
    /// A connection to who listens there.
    Connect { path: PathBuf },
    /// A descriptor of a TAP interface, for packets of so many bytes at most. From [`KNOWS_NAMESPACES`] on, as below, where it is.
    Tap {
        #[serde(flatten)]
        interface: Interface,
        mtu: u16,
    },
    /// A packet socket of an interface; the one whose descriptor comes with this gets a share of the frames, if one does, or `shared` is to have others.
    Packet {
        #[serde(flatten)]
        interface: Interface,
        shared: bool,
    },
    /// AF_XDP sockets of all queues of an interface: with the answer come two descriptors to be kept, and of each queue its socket and its memory.
    Xdp {
        #[serde(flatten)]
        interface: Interface,
    },
    /// Whether an interface has a carrier.
    Link {
        #[serde(flatten)]
        interface: Interface,
    },
    /// A socket that hears of the interfaces of a network namespace; none: that of the control plane.
    Links {
        #[serde(default, skip_serializing_if = "Option::is_none")]
        netns: Option<PathBuf>,
    },
    /// What the witness of the file whose descriptor comes with this has seen, and the witness, for the control plane that comes next.
    Witness { path: PathBuf },
    /// A witness that an earlier control plane kept comes with this, and what that one knew by it.
    BringBack { path: PathBuf, lost: bool },
    /// What was lost of the file is written again, or known to be missing.
    MadeUpFor { path: PathBuf },
    /// What a holder of leases wants, and what it has; the end of a socket comes with this, which hangs up when that holder ends.
    Tokens(Wants),
}

/// What it is answered. A descriptor comes with those that are for one.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Answer {
    Done,
    Text(String),
    Listens(Place),
    /// Whether it is up.
    Link(bool),
    /// Of AF_XDP sockets: whether the driver itself gives what comes.
    Xdp {
        by_driver: bool,
    },
    Witness {
        lost: bool,
    },
    Tokens(Holds),
    /// The system's number for the reason, or words.
    Failed {
        errno: Option<i32>,
        what: String,
    },
}

/// What a data plane may have opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Grants {
    /// Whether it may write them, too.
    files: BTreeMap<PathBuf, bool>,
    sockets: BTreeMap<PathBuf, SocketRole>,
    /// Who may use the sockets of adapters.
    access: BTreeMap<PathBuf, Access>,
    /// Interfaces of uplinks, and what they are to them.
    interfaces: BTreeMap<Interface, UplinkKind>,
    /// Interfaces whose carrier matters.
    links: BTreeSet<Interface>,
    /// Where leases stand for the right to bridge.
    leases: BTreeSet<String>,
}

impl Grants {
    /// The file of a volume.
    pub fn volume(&mut self, spec: &VolumeSpec) {
        if let Some(path) = spec.kind.path() {
            *self.files.entry(path.to_owned()).or_default() |= !spec.read_only;
        }
    }

    /// The socket of an adapter.
    pub fn adapter(&mut self, spec: &AdapterSpec) {
        self.sockets.insert(spec.socket.clone(), spec.socket_role);
        self.access.insert(spec.socket.clone(), Access::of(spec));
    }

    /// The interfaces of an uplink.
    pub fn uplink(&mut self, spec: &UplinkSpec) {
        for member in spec.members() {
            self.interfaces.insert(Interface::of(&member), member.kind);
            if spec.aggregate.is_some() {
                self.links.insert(Interface::of(&member));
            }
        }
        if let Some(failover) = &spec.failover {
            match failover.lease() {
                Some(place) => drop(self.leases.insert(place.to_owned())),
                None => drop(self.files.insert(failover.control.clone(), true)),
            }
            self.links.insert(Interface { name: failover.link.clone(), ..Interface::of(spec) });
        }
    }

    /// The PVs of a pool, and what it keeps in memory.
    pub fn pool(&mut self, spec: &PoolSpec) {
        let files = spec.pvs.iter().chain(&spec.leaving).chain([&spec.shadow]);
        self.files.extend(files.map(|path| (path.clone(), true)));
    }

    /// The data plane's own socket, which it removes when it ends.
    pub fn own_socket(&mut self, path: &Path) {
        self.sockets.insert(path.to_owned(), SocketRole::Server);
    }

    /// What a data plane needs to carry out a request.
    pub fn request(&mut self, request: &Request) {
        match request {
            Request::PutVolume(spec) => self.volume(spec),
            Request::PutAdapter(spec) => self.adapter(spec),
            Request::PutUplink(spec) => self.uplink(spec),
            Request::PutPool(spec) => self.pool(spec),
            _ => {}
        }
    }

    /// With what another set has.
    pub fn add(&mut self, other: &Grants) {
        for (path, write) in &other.files {
            *self.files.entry(path.clone()).or_default() |= write;
        }
        self.sockets.extend(other.sockets.iter().map(|(path, role)| (path.clone(), *role)));
        let access = other.access.iter().map(|(path, access)| (path.clone(), access.clone()));
        self.access.extend(access);
        self.interfaces.extend(other.interfaces.iter().map(|(name, kind)| (name.clone(), *kind)));
        self.links.extend(other.links.iter().cloned());
        self.leases.extend(other.leases.iter().cloned());
    }

    /// What of these is in another set, too, stays as it is there; the rest of these goes.
    pub fn take(&mut self, these: &Grants, stay: &Grants) {
        fn keep<K: Clone + Ord, V: Clone>(
            all: &mut BTreeMap<K, V>,
            these: &BTreeMap<K, V>,
            stay: &BTreeMap<K, V>,
        ) {
            for path in these.keys() {
                match stay.get(path) {
                    Some(value) => drop(all.insert(path.clone(), value.clone())),
                    None => drop(all.remove(path)),
                }
            }
        }
        keep(&mut self.files, &these.files, &stay.files);
        keep(&mut self.sockets, &these.sockets, &stay.sockets);
        keep(&mut self.access, &these.access, &stay.access);
        fn goes<K: Ord>(name: &K, these: &BTreeSet<K>, stay: &BTreeSet<K>) -> bool {
            these.contains(name) && !stay.contains(name)
        }
        keep(&mut self.interfaces, &these.interfaces, &stay.interfaces);
        self.links.retain(|name| !goes(name, &these.links, &stay.links));
        self.leases.retain(|place| !goes(place, &these.leases, &stay.leases));
    }

    /// Whether there is something.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Grants::default()
    }

    /// Whether a file is among these.
    #[must_use]
    pub fn has_file(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    /// Whether a socket is among these.
    #[must_use]
    pub fn has_socket(&self, path: &Path) -> bool {
        self.sockets.contains_key(path)
    }

    fn interface(&self, interface: &Interface, kind: UplinkKind) -> io::Result<()> {
        if self.interfaces.get(interface) == Some(&kind) {
            return Ok(());
        }
        Err(not_granted(Path::new(&interface.name)))
    }

    fn file(&self, path: &Path, write: bool) -> io::Result<()> {
        match self.files.get(path) {
            Some(may_write) if *may_write || !write => Ok(()),
            _ => Err(not_granted(path)),
        }
    }

    /// Whether it may write a file.
    #[must_use]
    pub fn writes(&self, path: &Path) -> bool {
        self.file(path, true).is_ok()
    }

    fn socket(&self, path: &Path, role: SocketRole) -> io::Result<()> {
        if self.sockets.get(path) == Some(&role) { Ok(()) } else { Err(not_granted(path)) }
    }

    /// Who may use a socket; of one that is no adapter's, by these permission bits.
    fn access(&self, path: &Path, mode: u32) -> Access {
        self.access.get(path).cloned().unwrap_or_else(|| Access::of_mode(mode))
    }

    fn text(path: &Path) -> io::Result<()> {
        let known = path.to_str().is_some_and(|path| match path.strip_prefix("/proc/") {
            Some("locks" | "sys/kernel/random/boot_id") => true,
            Some(process) => process.strip_suffix("/comm").is_some_and(is_number),
            None => path.strip_prefix("/sys/dev/block/").is_some_and(is_device_text),
        });
        if known { Ok(()) } else { Err(not_granted(path)) }
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

/// `MAJOR:MINOR/NAME`, or of the disk that it is a partition of, `MAJOR:MINOR/../NAME`.
fn is_device_text(path: &str) -> bool {
    let Some((device, name)) = path.split_once('/') else { return false };
    let Some((major, minor)) = device.split_once(':') else { return false };
    let name = name.strip_prefix("../").unwrap_or(name);
    is_number(major) && is_number(minor) && DEVICE_TEXTS.contains(&name)
}

fn not_granted(path: &Path) -> io::Error {
    let what = format!("{}: the data plane was not given it", path.display());
    io::Error::new(io::ErrorKind::PermissionDenied, what)
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // A set of paths is whole at any moment, and so is a connection between two frames.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Answers a data plane, on a thread of its own, until it hangs up. The descriptor is for the data plane: [`Request::Opener`].
///
/// # Errors
///
/// When the system has no socket or thread for it.
pub fn serve(
    grants: Arc<Mutex<Grants>>,
    witnesses: Arc<Witnesses>,
    tokens: Arc<dyn Tokens>,
) -> io::Result<OwnedFd> {
    let (ours, theirs) = UnixStream::pair()?;
    let under_way: Arc<Mutex<UnderWay>> = Arc::default();
    let answering = move || {
        let mut connection = Connection::new(ours);
        loop {
            let (question, mut fds) = match connection.receive::<Question>() {
                Ok(received) => received,
                // Of a later version, perhaps: whoever asked sees that nobody answers.
                Err(FrameError::Malformed(_)) => continue,
                Err(_) => return,
            };
            let Some(reply) = (!fds.is_empty()).then(|| fds.swap_remove(0)) else { continue };
            let mut reply = Connection::new(UnixStream::from(reply));
            let about = fds.pop();
            let Some(held) = UnderWay::begin(&under_way, question.folder(about.as_ref())) else {
                // Whoever asks and does not listen goes without.
                let _ = reply.send(&failed(&Errno::AGAIN.into()), &[]);
                continue;
            };
            let (grants, witnesses) = (Arc::clone(&grants), Arc::clone(&witnesses));
            let tokens = Arc::clone(&tokens);
            let one = move || {
                let kept = (&*witnesses, &*tokens);
                let (answer, fds) = match answer(&grants, kept, question, about) {
                    Ok(answered) => answered,
                    Err(error) => (failed(&error), Vec::new()),
                };
                let fds: Vec<BorrowedFd<'_>> = fds.iter().map(|fd| fd.as_fd()).collect();
                drop(held);
                let _ = reply.send(&answer, &fds);
            };
            // Without a thread the question is dropped with its way of answering, which the data plane sees.
            let _ = std::thread::Builder::new().name("opener-one".to_owned()).spawn(one);
        }
    };
    std::thread::Builder::new().name("opener".to_owned()).spawn(answering)?;
    Ok(theirs.into())
}

/// Questions that are being answered, by the folders that they are about.
#[derive(Debug, Default)]
struct UnderWay(BTreeMap<PathBuf, usize>);

/// One of them, until it is dropped.
struct Held {
    all: Arc<Mutex<UnderWay>>,
    folder: PathBuf,
}

impl UnderWay {
    /// None: those about this folder have as many threads as they leave to others.
    fn begin(all: &Arc<Mutex<UnderWay>>, folder: PathBuf) -> Option<Held> {
        let mut counts = locked(all);
        let left = QUESTIONS_MAX.saturating_sub(counts.0.values().sum());
        let here = counts.0.get(&folder).copied().unwrap_or(0);
        if here >= left {
            return None;
        }
        counts.0.insert(folder.clone(), here + 1);
        Some(Held { all: Arc::clone(all), folder })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        let mut counts = locked(&self.all);
        let left = counts.0.get(&self.folder).map_or(0, |count| count - 1);
        if left == 0 {
            counts.0.remove(&self.folder);
        } else {
            counts.0.insert(self.folder.clone(), left);
        }
    }
}

impl Question {
    /// Where that lies which it may have to wait for: a folder, or what stands for the file system of a file that is open.
    fn folder(&self, about: Option<&OwnedFd>) -> PathBuf {
        let path = match self {
            Question::File { path, .. }
            | Question::Text { path }
            | Question::Remove { path }
            | Question::SyncFolder { path }
            | Question::Listen { path, .. }
            | Question::Connect { path }
            | Question::Witness { path }
            | Question::BringBack { path, .. }
            | Question::MadeUpFor { path } => path,
            Question::Permit { place } | Question::Leave { place } => place.path(),
            Question::Tap { interface, .. }
            | Question::Packet { interface, .. }
            | Question::Xdp { interface }
            | Question::Link { interface } => interface.place(),
            Question::Links { netns } => return netns.clone().unwrap_or_default(),
            Question::Again => return file_system_of(about),
            Question::Tokens(wants) => return PathBuf::from(&wants.place),
        };
        path.parent().unwrap_or(path).to_owned()
    }
}

/// It asks no server of the file system.
fn file_system_of(file: Option<&OwnedFd>) -> PathBuf {
    let flags = AtFlags::EMPTY_PATH | AtFlags::STATX_DONT_SYNC;
    let found = file.and_then(|file| rustix::fs::statx(file, c"", flags, StatxFlags::TYPE).ok());
    found.map_or_else(PathBuf::new, |found| {
        PathBuf::from(format!("{}:{}", found.stx_dev_major, found.stx_dev_minor))
    })
}

fn failed(error: &io::Error) -> Answer {
    Answer::Failed { errno: error.raw_os_error(), what: error.to_string() }
}

type Answered = (Answer, Vec<Arc<OwnedFd>>);

/// Judges by the grants of this moment, which nobody waits for while something is opened.
fn answer(
    grants: &Mutex<Grants>,
    (witnesses, tokens): (&Witnesses, &dyn Tokens),
    question: Question,
    about: Option<OwnedFd>,
) -> io::Result<Answered> {
    let granted = || locked(grants);
    match question {
        Question::File { path, flags } => {
            let flags = OFlags::from_bits_retain(flags);
            let makes = flags.contains(OFlags::CREATE);
            let writes = makes || flags.intersects(OFlags::RDWR | OFlags::WRONLY);
            granted().file(&path, writes)?;
            if !FLAGS.contains(flags) || makes && !flags.contains(OFlags::EXCL) {
                return Err(Errno::INVAL.into());
            }
            let file = rustix::fs::open(&path, flags | OFlags::CLOEXEC, MODE)?;
            Ok((Answer::Done, vec![file.into()]))
        }
        Question::Again => Ok((Answer::Done, vec![again(&about.ok_or(Errno::BADF)?)?.into()])),
        Question::Text { path } => {
            Grants::text(&path)?;
            let mut text = String::new();
            File::open(&path)?.take(TEXT_BYTES_MAX).read_to_string(&mut text)?;
            Ok((Answer::Text(text), Vec::new()))
        }
        Question::Remove { path } => {
            granted().file(&path, true)?;
            std::fs::remove_file(path)?;
            Ok((Answer::Done, Vec::new()))
        }
        Question::SyncFolder { path } => {
            granted().file(&path, true)?;
            sync_folder_of(&path)?;
            Ok((Answer::Done, Vec::new()))
        }
        Question::Listen { path, mode } => {
            granted().socket(&path, SocketRole::Server)?;
            let access = granted().access(&path, mode);
            let (listener, place) = listen(&path, &access)?;
            Ok((Answer::Listens(place), vec![OwnedFd::from(listener).into()]))
        }
        Question::Permit { place } => {
            granted().socket(place.path(), SocketRole::Server)?;
            let access = granted().access.get(place.path()).cloned();
            place.permit(&access.ok_or_else(|| not_granted(place.path()))?)?;
            Ok((Answer::Done, Vec::new()))
        }
        Question::Leave { place } => {
            granted().socket(place.path(), SocketRole::Server)?;
            place.remove();
            Ok((Answer::Done, Vec::new()))
        }
        Question::Connect { path } => {
            granted().socket(&path, SocketRole::Client)?;
            Ok((Answer::Done, vec![OwnedFd::from(reach(&path)?).into()]))
        }
        Question::Tap { interface, mtu } => {
            granted().interface(&interface, UplinkKind::Tap)?;
            Ok((Answer::Done, vec![interface.tap(mtu)?.into()]))
        }
        Question::Packet { interface, shared } => {
            granted().interface(&interface, UplinkKind::Packet)?;
            let beside = about.as_ref().map(AsFd::as_fd);
            Ok((Answer::Done, vec![interface.packet(beside, shared)?.into()]))
        }
        Question::Xdp { interface } => {
            granted().interface(&interface, UplinkKind::Xdp)?;
            let memory::xdp::Opened { queues, keeps, by_driver } = interface.xdp()?;
            let of = |queue: memory::xdp::Queue| [queue.socket, queue.memory];
            let all = keeps.into_iter().chain(queues.into_iter().flat_map(of));
            Ok((Answer::Xdp { by_driver }, all.map(Arc::new).collect()))
        }
        Question::Link { interface } => {
            if !granted().links.contains(&interface) {
                return Err(not_granted(Path::new(&interface.name)));
            }
            Ok((Answer::Link(interface.is_up()?), Vec::new()))
        }
        Question::Links { netns } => {
            let matters = granted().links.iter().any(|link| link.netns == netns);
            if !matters {
                return Err(not_granted(Path::new("the interfaces of a network namespace")));
            }
            Ok((Answer::Done, vec![open_links(netns.as_deref())?.into()]))
        }
        Question::Witness { path } => {
            granted().file(&path, true)?;
            let (lost, witness) = witnesses.of(&path, &about.ok_or(Errno::BADF)?)?;
            Ok((Answer::Witness { lost }, vec![witness]))
        }
        Question::BringBack { path, lost } => {
            granted().file(&path, true)?;
            witnesses.take_back(&path, about.ok_or(Errno::BADF)?, lost)?;
            Ok((Answer::Done, Vec::new()))
        }
        Question::MadeUpFor { path } => {
            granted().file(&path, true)?;
            witnesses.told(&path);
            Ok((Answer::Done, Vec::new()))
        }
        Question::Tokens(wants) => {
            if !granted().leases.contains(&wants.place) {
                return Err(not_granted(Path::new(&wants.place)));
            }
            let holder = about.ok_or(Errno::BADF)?;
            Ok((Answer::Tokens(tokens.exchange(wants, holder)?), Vec::new()))
        }
    }
}

/// Another open file of a descriptor's.
fn again(file: &OwnedFd) -> io::Result<OwnedFd> {
    // A descriptor that names a file and does not give it would become one that does.
    if rustix::fs::fcntl_getfl(file)?.intersects(OFlags::PATH | OFlags::WRONLY) {
        return Err(Errno::BADF.into());
    }
    let path = format!("/proc/self/fd/{}", file.as_fd().as_raw_fd());
    Ok(rustix::fs::open(path, OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC, Mode::empty())?)
}

fn sync_folder_of(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
    File::open(folder.unwrap_or(Path::new(".")))?.sync_all()
}

/// The data plane's side: asks whichever control plane is there.
#[derive(Debug, Default)]
pub struct Opener {
    line: Mutex<Line>,
    /// Witnesses of files that are open, and what was known by them when they came.
    witnesses: Mutex<BTreeMap<PathBuf, (Weak<OwnedFd>, bool)>>,
}

/// The way to the control plane.
#[derive(Debug, Default)]
struct Line {
    connection: Option<Connection>,
    /// What it knows beyond the version.
    minor: u32,
    /// How many there have been.
    count: u64,
}

impl Opener {
    /// A control plane has come, which knows this [`crate::message::MINOR`]; the one before is not asked any more. It gets the witnesses that there are.
    pub fn attach(&self, fd: OwnedFd, minor: u32) {
        {
            let mut line = locked(&self.line);
            let connection = Some(Connection::new(UnixStream::from(fd)));
            *line = Line { connection, minor, count: line.count + 1 };
        }
        let all = locked(&self.witnesses).clone();
        for (path, (witness, lost)) in all {
            self.bring_back(&path, &witness, lost);
        }
    }

    fn ask(
        &self,
        question: &Question,
        about: Option<BorrowedFd<'_>>,
    ) -> io::Result<(Answer, Option<OwnedFd>)> {
        self.ask_for_all(question, about).map(|(answer, mut fds)| (answer, fds.pop()))
    }

    fn ask_for_all(
        &self,
        question: &Question,
        about: Option<BorrowedFd<'_>>,
    ) -> io::Result<(Answer, Vec<OwnedFd>)> {
        let away = || {
            let what =
                "only the control plane can open it, and there is none; start `trunkline serve`";
            io::Error::new(io::ErrorKind::NotConnected, what)
        };
        let (ours, theirs) = UnixStream::pair()?;
        {
            let mut line = locked(&self.line);
            let connection = line.connection.as_mut().ok_or_else(away)?;
            let fds: Vec<BorrowedFd<'_>> = [theirs.as_fd()].into_iter().chain(about).collect();
            if connection.send(question, &fds).is_err() {
                line.connection = None;
                return Err(away());
            }
        }
        // If that control plane goes, its end is the last.
        drop(theirs);
        let answered = Connection::new(ours).receive::<Answer>();
        let (answer, fds) = answered.map_err(|_| away())?;
        match answer {
            Answer::Failed { errno: Some(errno), .. } => Err(io::Error::from_raw_os_error(errno)),
            Answer::Failed { what, .. } => Err(io::Error::other(what)),
            answer => Ok((answer, fds)),
        }
    }

    fn descriptor(
        &self,
        question: &Question,
        about: Option<BorrowedFd<'_>>,
    ) -> io::Result<OwnedFd> {
        self.ask(question, about)?.1.ok_or_else(out_of_turn)
    }

    /// A file, with these flags; made with mode 0660 less the umask.
    ///
    /// # Errors
    ///
    /// As of `open`; and when it was not given to this data plane, or there is no control plane.
    pub fn file(&self, path: &Path, flags: OFlags) -> io::Result<File> {
        let question = Question::File { path: path.to_owned(), flags: flags.bits() };
        Ok(self.descriptor(&question, None)?.into())
    }

    /// Another open file of the file of a descriptor, to be read: the file itself, whatever has become of its path.
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn again(&self, file: BorrowedFd<'_>) -> io::Result<File> {
        Ok(self.descriptor(&Question::Again, Some(file))?.into())
    }

    /// What one of those files of the kernel's says that volumes are opened by.
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn text(&self, path: &Path) -> io::Result<String> {
        match self.ask(&Question::Text { path: path.to_owned() }, None)?.0 {
            Answer::Text(text) => Ok(text),
            _ => Err(out_of_turn()),
        }
    }

    /// Removes a file.
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn remove(&self, path: &Path) -> io::Result<()> {
        self.ask(&Question::Remove { path: path.to_owned() }, None).map(drop)
    }

    /// Brings the folder of a file to its disk.
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn sync_folder_of(&self, path: &Path) -> io::Result<()> {
        self.ask(&Question::SyncFolder { path: path.to_owned() }, None).map(drop)
    }

    /// As [`Place::permit`], with the access that the control plane has granted.
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn permit(&self, place: &Place) -> io::Result<()> {
        self.ask(&Question::Permit { place: place.clone() }, None).map(drop)
    }

    /// As [`listen`]; for an adapter's socket with the access that the control plane has granted.
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn listen(&self, path: &Path, mode: u32) -> io::Result<(UnixListener, Place)> {
        match self.ask(&Question::Listen { path: path.to_owned(), mode }, None)? {
            (Answer::Listens(place), Some(fd)) => Ok((UnixListener::from(fd), place)),
            _ => Err(out_of_turn()),
        }
    }

    /// As [`Place::remove`]. Without a control plane the socket's file stays; the next one to listen there replaces it.
    pub fn leave(&self, place: Place) {
        let _ = self.ask(&Question::Leave { place }, None);
    }

    /// As [`reach`].
    ///
    /// # Errors
    ///
    /// As for [`Opener::file`].
    pub fn connect(&self, path: &Path) -> io::Result<UnixStream> {
        let question = Question::Connect { path: path.to_owned() };
        Ok(UnixStream::from(self.descriptor(&question, None)?))
    }
}

fn out_of_turn() -> io::Error {
    io::Error::other("the control plane answered with something else")
}

#[cfg(test)]
mod tests;
