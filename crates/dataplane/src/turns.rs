//! Threads that do one thing each, and waiting for them. In a simulation each is a turn-taker.

use std::io;
use std::sync::mpsc::Receiver;
use std::time::Duration;

/// A thread that was begun.
#[cfg(not(feature = "sim"))]
pub(crate) type Thread = std::thread::JoinHandle<()>;

/// Does something on a thread of its own.
#[cfg(not(feature = "sim"))]
pub(crate) fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<Thread> {
    std::thread::Builder::new().name(name.into()).spawn(work)
}

/// What comes within so much time.
#[cfg(not(feature = "sim"))]
pub(crate) fn wait<T>(over: &Receiver<T>, time: Duration) -> Option<T> {
    over.recv_timeout(time).ok()
}

#[cfg(feature = "sim")]
pub(crate) use simulated::{Thread, spawn, wait};

#[cfg(feature = "sim")]
mod simulated {
    use super::{Duration, Receiver, io};
    use memory::sim;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

    /// A turn-taker with one turn.
    #[derive(Debug)]
    pub(crate) struct Thread {
        over: Arc<AtomicBool>,
    }

    impl Thread {
        pub(crate) fn join(self) -> Result<(), ()> {
            while !self.over.load(Relaxed) && !sim::dead() {
                sim::others();
            }
            Ok(())
        }
    }

    pub(crate) fn spawn(name: &str, work: impl FnOnce() + 'static) -> io::Result<Thread> {
        let over = Arc::<AtomicBool>::default();
        let (its, mut work) = (Arc::clone(&over), Some(work));
        let opens = name == "opening";
        let turn = move || {
            let held = crate::sim::held();
            if opens && held > sim::moment() {
                sim::fall_asleep(Some(held));
                return;
            }
            if let Some(work) = work.take() {
                work();
                its.store(true, Relaxed);
            }
            sim::end_own_thread();
        };
        crate::sim::belongs(sim::spawn(name, Box::new(turn)));
        Ok(Thread { over })
    }

    pub(crate) fn wait<T>(over: &Receiver<T>, time: Duration) -> Option<T> {
        let mut came = None;
        sim::wait(time, || {
            came = over.try_recv().ok();
            came.is_some()
        });
        came
    }
}
