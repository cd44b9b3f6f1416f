//! The pools' thread, and waiting for it. In a simulation it is a turn-taker.

use std::io;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// The thread.
#[cfg(not(feature = "sim"))]
pub(crate) type Thread = std::thread::JoinHandle<()>;

/// Begins on a thread of its own, and has turns there until one says that it was the last.
#[cfg(not(feature = "sim"))]
pub(crate) fn spawn<T: 'static>(
    name: &str,
    begin: impl FnOnce() -> Result<T, String> + Send + 'static,
    turn: fn(&mut T) -> bool,
) -> io::Result<Thread> {
    let (ready, is_ready) = std::sync::mpsc::sync_channel(1);
    let run = move || match begin() {
        Ok(mut begun) => {
            uring::thread::first();
            let _ = ready.send(Ok(()));
            while turn(&mut begun) {}
        }
        Err(error) => drop(ready.send(Err(error))),
    };
    let thread = std::thread::Builder::new().name(name.into()).spawn(run)?;
    match is_ready.recv() {
        Ok(Ok(())) => Ok(thread),
        Ok(Err(error)) => Err(io::Error::other(error)),
        Err(_) => Err(io::Error::other(format!("the thread {name} ended"))),
    }
}

/// What comes; none: nobody is left to send it.
#[cfg(not(feature = "sim"))]
pub(crate) fn wait<T>(answer: &Receiver<T>) -> Option<T> {
    answer.recv().ok()
}

/// What comes within so much time.
#[cfg(not(feature = "sim"))]
pub(crate) fn wait_for<T>(answer: &Receiver<T>, most: Duration) -> Option<T> {
    answer.recv_timeout(most).ok()
}

/// A bell is about to be rung.
#[cfg(not(feature = "sim"))]
pub(crate) fn rings() {}

/// Stands between two stores to memory that survives the process: it may die there.
#[cfg(not(feature = "sim"))]
#[inline]
pub(crate) fn point() {}

/// A number that nobody else has drawn: by the standard library's seeds of hashes, which come from the system.
#[cfg(not(feature = "sim"))]
pub(crate) fn drawn() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}

#[cfg(feature = "sim")]
pub(crate) use memory::sim::point;
#[cfg(feature = "sim")]
pub(crate) use simulated::{Thread, drawn, rings, spawn, wait, wait_for};

#[cfg(feature = "sim")]
mod simulated {
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
    use std::sync::mpsc::TryRecvError;

    use super::{Duration, Receiver, io};
    use memory::{clock, sim};

    /// A turn-taker, until a turn says that it was the last.
    pub(crate) struct Thread {
        id: u64,
        over: Arc<AtomicBool>,
    }

    impl Thread {
        /// Waits for the last turn. A dead process's threads have had theirs.
        pub(crate) fn join(self) -> Result<(), ()> {
            while !self.over.load(Relaxed) && !sim::dead() {
                sim::others();
            }
            sim::end_thread(self.id);
            Ok(())
        }
    }

    pub(crate) fn spawn<T: 'static>(
        name: &str,
        begin: impl FnOnce() -> Result<T, String>,
        turn: fn(&mut T) -> bool,
    ) -> io::Result<Thread> {
        let mut begun = Some(begin().map_err(io::Error::other)?);
        let over = Arc::<AtomicBool>::default();
        let its = Arc::clone(&over);
        let turn = move || {
            if begun.as_mut().is_some_and(|begun| !turn(begun)) {
                // With the last turn goes what it had, as with a thread.
                begun = None;
                its.store(true, Relaxed);
            }
        };
        let id = sim::spawn(name, Box::new(turn));
        Ok(Thread { id, over })
    }

    pub(crate) fn wait<T>(answer: &Receiver<T>) -> Option<T> {
        loop {
            match answer.try_recv() {
                Ok(came) => return Some(came),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => sim::others(),
            }
        }
    }

    pub(crate) fn wait_for<T>(answer: &Receiver<T>, most: Duration) -> Option<T> {
        // Nobody sleeps so long while others have something to do: else each wait would be over before its answer.
        let end = clock::instant() + most;
        while clock::instant() < end {
            match answer.try_recv() {
                Ok(came) => return Some(came),
                Err(TryRecvError::Disconnected) => return None,
                Err(TryRecvError::Empty) => sim::others(),
            }
        }
        None
    }

    pub(crate) fn rings() {
        sim::bell();
    }

    pub(crate) fn drawn() -> u64 {
        (sim::pick(1 << 32) as u64) << 32 | sim::pick(1 << 32) as u64
    }
}
