//! What this process leaves to the system besides files: threads that wait for messages, the time, and numbers that nobody else has drawn.
//!
//! In a simulation a thread is a turn-taker, time is the simulation's, and numbers are its seed's.

#[cfg(not(feature = "sim"))]
use rustix::event::Timespec;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};

/// What a thread does.
pub(crate) trait Attends: Send + 'static {
    /// What it is sent.
    type Message: Send + 'static;

    /// When it does something by itself.
    fn due(&self) -> Option<Instant>;

    /// A message has come, with others behind it perhaps, or it is time. Whether it goes on.
    fn attend(&mut self, message: Option<Self::Message>, inbox: &Receiver<Self::Message>) -> bool;
}

/// Starts a thread, which ends when it says so or when nobody can send it anything any more.
#[cfg(not(feature = "sim"))]
pub(crate) fn start<A: Attends>(
    name: String,
    inbox: Receiver<A::Message>,
    mut body: A,
) -> std::io::Result<()> {
    use std::sync::mpsc::RecvTimeoutError::{Disconnected, Timeout};
    let run = move || {
        loop {
            let message = match body.due() {
                None => inbox.recv().map_err(|_| Disconnected),
                Some(at) => inbox.recv_timeout(at.saturating_duration_since(now())),
            };
            let goes_on = match message {
                Ok(message) => body.attend(Some(message), &inbox),
                Err(Timeout) => body.attend(None, &inbox),
                Err(Disconnected) => false,
            };
            if !goes_on {
                return;
            }
        }
    };
    std::thread::Builder::new().name(name).spawn(run).map(drop)
}

/// Does something on a thread of its own, which nobody waits for.
#[cfg(not(feature = "sim"))]
pub(crate) fn apart(name: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
    std::thread::Builder::new().name(name.to_owned()).spawn(work).map(drop)
}

/// Does something on a thread of its own when something is so. `is_so` waits for it at most for so long; for ever if nothing is said.
#[cfg(not(feature = "sim"))]
pub(crate) fn when(
    name: &str,
    is_so: impl Fn(Option<&Timespec>) -> bool + Send + 'static,
    work: impl FnOnce() + Send + 'static,
) -> std::io::Result<()> {
    let wait = move || {
        while !is_so(None) {}
        work();
    };
    apart(name, wait)
}

/// The time.
#[cfg(not(feature = "sim"))]
pub(crate) fn now() -> Instant {
    Instant::now()
}

/// How long ago that was.
pub(crate) fn since(then: Instant) -> Duration {
    now().saturating_duration_since(then)
}

/// Does what waits for a disk, while other tasks go on.
#[cfg(not(feature = "sim"))]
pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
    tokio::task::block_in_place(work)
}

/// A number that no other server has drawn: the standard library's hashers begin with random keys of the system.
#[cfg(not(feature = "sim"))]
pub(crate) fn fresh_number() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    std::hash::RandomState::new().build_hasher().finish()
}

#[cfg(feature = "sim")]
pub(crate) use simulated::{apart, blocking, fresh_number, now, start, when};

/// The same in a simulation.
#[cfg(feature = "sim")]
pub mod simulated {
    use super::Attends;
    use protocol::sim;
    use rustix::event::Timespec;
    use std::cell::RefCell;
    use std::sync::mpsc::{Receiver, TryRecvError};
    use std::time::Instant;

    thread_local! {
        /// The threads of the process that was started last.
        static THREADS: RefCell<Vec<u64>> = const { RefCell::new(Vec::new()) };
    }

    /// Whoever may have been sent something looks.
    pub fn wake_all() {
        THREADS.with_borrow(|threads| threads.iter().for_each(|thread| sim::wake(*thread)));
    }

    /// The process is dead, and its threads with it.
    pub fn end_all() {
        THREADS.take().into_iter().for_each(sim::end_thread);
    }

    pub(crate) fn spawn(name: &str, turn: sim::Turn) {
        let id = sim::spawn(name, turn);
        THREADS.with_borrow_mut(|threads| threads.push(id));
    }

    pub(crate) fn start<A: Attends>(
        name: String,
        inbox: Receiver<A::Message>,
        body: A,
    ) -> std::io::Result<()> {
        let (mut body, base) = (Some(body), now_at());
        let turn = move || {
            let Some(it) = &mut body else { return };
            let due = it.due();
            let goes_on = match inbox.try_recv() {
                Ok(message) => it.attend(Some(message), &inbox),
                Err(TryRecvError::Disconnected) => false,
                Err(TryRecvError::Empty) if due.is_some_and(|at| at <= now()) => {
                    it.attend(None, &inbox)
                }
                Err(TryRecvError::Empty) => {
                    let ns = |at: Instant| at.saturating_duration_since(base.0).as_nanos() as u64;
                    sim::fall_asleep(due.map(|at| base.1 + ns(at)));
                    true
                }
            };
            if !goes_on {
                body = None;
                sim::end_own_thread();
            }
        };
        spawn(&name, Box::new(turn));
        Ok(())
    }

    /// A moment, and what the simulation calls it.
    fn now_at() -> (Instant, u64) {
        let ns = sim::now_ns();
        (sim::instant(), ns + 20)
    }

    pub(crate) fn apart(_: &str, work: impl FnOnce() + Send + 'static) -> std::io::Result<()> {
        work();
        Ok(())
    }

    pub(crate) fn when(
        name: &str,
        is_so: impl Fn(Option<&Timespec>) -> bool + 'static,
        work: impl FnOnce() + 'static,
    ) -> std::io::Result<()> {
        let (now, mut waits) = (Timespec { tv_sec: 0, tv_nsec: 0 }, Some((is_so, work)));
        let turn = move || {
            if let Some((_, work)) = waits.take_if(|(is_so, _)| is_so(Some(&now))) {
                sim::end_own_thread();
                return work();
            }
            sim::fall_asleep(None);
        };
        spawn(name, Box::new(turn));
        Ok(())
    }

    pub(crate) fn now() -> Instant {
        sim::instant()
    }

    pub(crate) fn blocking<T>(work: impl FnOnce() -> T) -> T {
        work()
    }

    pub(crate) fn fresh_number() -> u64 {
        sim::pick(1 << 48) as u64
    }
}
