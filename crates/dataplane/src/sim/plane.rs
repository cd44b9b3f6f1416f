//! The message handler of a data plane, for a simulated control plane. Clients come and go as the adapters count them; what they read and write is
//! not here.

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::sync::Arc;

use memory::sim;
use protocol::message::{Reply, Request, Status};
use protocol::stats::StatsRegion;

use crate::plane::Plane;
use crate::{Options, PlaneError};

thread_local! {
    /// One memory for all runs, since its mapping stays for ever.
    static STATS: Arc<StatsRegion> = Arc::new(StatsRegion::create(1).expect("memory for statistics"));
    /// The threads of the process, but its channels'.
    static THREADS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    /// Until when files are held by what a process that has died has under way.
    static HELD: Cell<u64> = const { Cell::new(0) };
}

/// Files are held by what a process that has died has under way, until this moment: who opens one waits so long.
pub fn hold(until: u64) {
    HELD.set(until);
}

pub(crate) fn held() -> u64 {
    HELD.get()
}

pub(crate) fn stats() -> Arc<StatsRegion> {
    STATS.with(|stats| {
        stats.renew();
        Arc::clone(stats)
    })
}

/// A thread of the process.
pub(crate) fn belongs(thread: u64) {
    THREADS.with_borrow_mut(|threads| threads.push(thread));
}

/// The process is dead, and its threads with it.
pub fn end_threads() {
    THREADS.take().into_iter().for_each(sim::end_thread);
}

/// A data plane that is told by messages what to be.
pub struct Handler(Plane);

impl Handler {
    /// Starts it, with one channel.
    ///
    /// # Errors
    ///
    /// When the system refuses.
    pub fn start(socket: &Path) -> Result<Handler, PlaneError> {
        let socket = socket.to_owned();
        let (cpus, confine) = (Vec::new(), None);
        Plane::new(&Options { socket, cpus, channels: 1, poll_us_max: Some(0), confine })
            .map(Handler)
    }

    /// Carries out a message.
    #[must_use]
    pub fn handle(&self, request: Request) -> Reply {
        self.0.handle(request, Vec::new()).0
    }

    /// Its account of itself.
    ///
    /// # Panics
    ///
    /// When it gives none.
    #[must_use]
    pub fn status(&self) -> Status {
        match self.handle(Request::Status) {
            Reply::Status(status) => status,
            other => panic!("no account: {other:?}"),
        }
    }

    /// A client connects to an adapter, or leaves it; whether there is one, and it could.
    #[must_use]
    pub fn client(&self, adapter: &str, comes: bool) -> bool {
        self.0.adapter(adapter).is_some_and(|adapter| adapter.client(comes))
    }
}
