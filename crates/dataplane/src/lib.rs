//! The I/O process.
//!
//! ```text
//!  control plane ──messages──► server ──► plane: volumes, adapters, channels, statistics
//!  client ──vhost-user──► session (one thread for each adapter) ──► queues ──seats──► channels
//! ```
//!
//! | module | what | thread |
//! |---|---|---|
//! | `server` | the socket of the control plane | one for each connection |
//! | `plane` | what exists: [`Plane::handle`] carries out one message | the caller's, one message at a time |
//! | `storage` | open volumes and logical units, by name | under the lock of `plane` |
//! | `acceptor` | waits for clients and control planes | its own |
//! | `adapter` | an adapter: its client, its state | its own, while it has a client |
//! | `journal` | what the log says of an adapter | any; of what channels see, its own |
//! | `endpoint` | its socket: clients connect to it, or it connects to them | acceptor, adapter |
//! | `outside` | who opens files and sockets: this process, or the control plane for it | whoever needs one |
//! | `session` | vhost-user messages of one client | the adapter's |
//! | `devices` | the list of devices, and what is called of them: their rooms are `device_blk` and `device_scsi` | session, plane, channels |
//! | `shares` | what a client may have mapped | adapters |
//! | `queues` | the virtqueues of one client: what the messages said, and which of them run where | session, balancer |
//! | `placement` | which channel serves which queue: pure | |
//! | `balance` | folds queues onto few channels at low load and spreads them at high load | its own, asleep while nothing moves |
//!
//! The I/O itself is done by `channel`. No thread here is on its path; no lock here is taken there.
//!
//! A defect of this program (a panic on any thread) ends the process: the control plane starts another one, clients connect
//! again, and their in-flight regions tell what has to be done again. Carrying on with half a state could lose a write.
#![deny(unsafe_code)]

mod acceptor;
mod adapter;
mod balance;
mod carrier;
pub mod devices;
mod endpoint;
mod failover;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
mod journal;
mod lock;
mod outside;
mod placement;
mod plane;
mod queues;
mod server;
mod session;
mod shares;
#[cfg(feature = "sim")]
pub mod sim;
mod storage;
mod turns;

use std::io::Write as _;
use std::path::PathBuf;

use protocol::message::CONFINED;

pub use plane::{Plane, PlaneError};

/// Whether the kernel below this is the simulator's, which keeps nothing of what it is given.
pub const SIMULATED: bool = cfg!(feature = "sim");

pub use pool::RescuedLu;
pub use pool::format::Uuid;
pub use pool_io::{Rescued, rescue};
pub use server::{Entrance, ServeError, serve};

/// How a data plane is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the control plane connects.
    pub socket: PathBuf,
    /// The CPUs that the process may use; one channel is bound to each. Empty: all, and nothing is bound.
    pub cpus: Vec<u32>,
    /// How many channels; 0: one for each CPU.
    pub channels: u32,
    /// What a sleep is worth in time of looking, and the longest look, for adapters that wait adaptively. None: what it costs here is measured.
    pub poll_us_max: Option<u32>,
    /// Gives up what it does not need once it runs: it opens nothing by itself but files of this folder, that of the kept reservations, and is
    /// given the rest by the control plane ([`protocol::opener`]). None: for tests and measurements within a process.
    pub confine: Option<PathBuf>,
}

impl Options {
    /// How many channels that makes on this machine.
    #[must_use]
    pub fn channel_count(&self) -> u32 {
        let available =
            || std::thread::available_parallelism().map_or(1, |count| count.get() as u32);
        match (self.channels, self.cpus.len() as u32) {
            (0, 0) => available(),
            (0, bound) => bound,
            (count, _) => count,
        }
    }
}

/// Runs a data plane until it is told to shut down.
///
/// # Errors
///
/// When a channel or the socket cannot be made.
pub fn run(options: &Options) -> Result<(), ServeError> {
    abort_on_panic();
    raise_file_limit();
    uring::thread::behind();
    let Some(folder) = &options.confine else {
        return serve(Plane::new(options)?, Entrance::open(&options.socket)?);
    };
    // While files of the kernel's can be read.
    let _ = shares::host_bytes();
    let options = Options { channels: options.channel_count(), ..options.clone() };
    // Landlock and capabilities bind a thread and those that it starts. The plane's are started by one that is bound; this one is when it has its socket.
    let bind = || confine::files(folder).and_then(|()| confine::interfaces());
    let make = || {
        let files = bind();
        Plane::new(&options).map(|plane| (plane, files))
    };
    let (plane, files) = std::thread::scope(|threads| threads.spawn(make).join())
        .expect("a panic ends the process")?;
    let entrance = Entrance::open(&options.socket)?;
    let files = files.and_then(|()| bind());
    // Behind the last ring: it is among what is given up.
    let calls = confine::data_plane();
    let confinement = match (files, calls) {
        (Ok(()), Ok(())) => CONFINED.to_owned(),
        (Ok(()), Err(calls)) => format!("Landlock; system calls are not: {calls}"),
        (Err(files), Ok(())) => format!("seccomp; files are not: {files}"),
        (Err(files), Err(calls)) => format!("none: {files}; {calls}"),
    };
    if confinement != CONFINED {
        // The log may be full, or on a file system that is: that is no reason to serve nobody.
        let _ = writeln!(std::io::stderr(), "not fully confined: {confinement}");
    }
    let _ = plane.confinement.set(confinement);
    serve(plane, entrance)
}

fn abort_on_panic() {
    let report = std::panic::take_hook();
    std::panic::set_hook(Box::new(move |info| {
        report(info);
        std::process::abort();
    }));
}

/// Each queue has up to three descriptors and each adapter a few: the usual soft limit of 1024 is soon reached.
fn raise_file_limit() {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    // Refused only if the hard limit is above the system's; then the soft one stays.
    let _ = setrlimit(Resource::Nofile, raised);
}
