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
//! | `adapter` | an adapter: its client, its state | its own |
//! | `journal` | what the log says of an adapter | any; of what channels see, its own |
//! | `door` | its socket: clients connect to it, or it connects to them | the adapter's |
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

mod adapter;
mod balance;
pub mod devices;
mod door;
#[cfg(any(fuzzing, test))]
pub mod fuzz;
mod journal;
mod placement;
mod plane;
mod queues;
mod server;
mod session;
mod shares;

use std::path::PathBuf;

pub use plane::{Plane, PlaneError};
pub use server::{ServeError, serve};

/// How a data plane is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where the control plane connects.
    pub socket: PathBuf,
    /// The CPUs that the process may use; one channel is bound to each. Empty: all, and nothing is bound.
    pub cpus: Vec<u32>,
    /// How many channels; 0: one for each CPU.
    pub channels: u32,
    /// Longest time that a channel looks for work before it sleeps, for adapters that wait adaptively.
    pub poll_us_max: u32,
}

/// Runs a data plane until it is told to shut down.
///
/// # Errors
///
/// When a channel or the socket cannot be made.
pub fn run(options: &Options) -> Result<(), ServeError> {
    abort_on_panic();
    raise_file_limit();
    let plane = Plane::new(options)?;
    serve(plane, &options.socket)
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
