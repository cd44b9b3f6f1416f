//! [`Attendant`]: a thread that does one thing after the other of what it is handed, and sleeps in between.
//!
//! In a simulation it is a turn-taker as a channel's thread is: one thing in each turn.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Mutex, PoisonError};

use crate::sync::Thread;

/// The thread's handle.
pub struct Attendant<W> {
    desk: Desk<W>,
    thread: Mutex<Option<Thread>>,
}

/// Where things are handed to it.
pub struct Desk<W> {
    to: Sender<W>,
    #[cfg(feature = "sim")]
    thread: std::sync::Arc<std::sync::atomic::AtomicU64>,
}

impl<W> Clone for Desk<W> {
    fn clone(&self) -> Desk<W> {
        Desk {
            to: self.to.clone(),
            #[cfg(feature = "sim")]
            thread: std::sync::Arc::clone(&self.thread),
        }
    }
}

impl<W> std::fmt::Debug for Attendant<W> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Attendant").finish_non_exhaustive()
    }
}

impl<W> Desk<W> {
    /// Hands something in, without waiting. After the end of the thread it is dropped.
    pub fn hand_in(&self, work: W) {
        let _ = self.to.send(work);
        #[cfg(feature = "sim")]
        memory::sim::wake(self.thread.load(std::sync::atomic::Ordering::Relaxed));
    }
}

impl<W: Send + 'static> Attendant<W> {
    /// Starts the thread. `make` gets its desk, and makes what does one thing and says whether another one may follow.
    ///
    /// # Errors
    ///
    /// When the system gives no thread.
    pub fn start<D>(name: &str, make: impl FnOnce(Desk<W>) -> D) -> std::io::Result<Attendant<W>>
    where
        D: FnMut(W) -> bool + Send + 'static,
    {
        let (to, inbox) = channel();
        let desk = Desk {
            to,
            #[cfg(feature = "sim")]
            thread: std::sync::Arc::default(),
        };
        let act = make(desk.clone());
        let thread = begin(name, &desk, inbox, act)?;
        Ok(Attendant { desk, thread: Mutex::new(Some(thread)) })
    }

    /// Where things are handed in.
    #[must_use]
    pub fn desk(&self) -> &Desk<W> {
        &self.desk
    }

    /// Waits until a thing has been done after which none may follow.
    pub fn join(&self) {
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            let joined = thread.join();
            debug_assert!(joined.is_ok(), "a panic ends the process");
        }
    }
}

#[cfg(not(feature = "sim"))]
fn begin<W: Send + 'static>(
    name: &str,
    _: &Desk<W>,
    inbox: Receiver<W>,
    mut act: impl FnMut(W) -> bool + Send + 'static,
) -> std::io::Result<Thread> {
    let run = move || while inbox.recv().is_ok_and(&mut act) {};
    std::thread::Builder::new().name(name.to_owned()).stack_size(256 << 10).spawn(run)
}

#[cfg(feature = "sim")]
fn begin<W: Send + 'static>(
    name: &str,
    desk: &Desk<W>,
    inbox: Receiver<W>,
    mut act: impl FnMut(W) -> bool + Send + 'static,
) -> std::io::Result<Thread> {
    use std::sync::mpsc::TryRecvError;
    let turn = move || match inbox.try_recv() {
        Ok(work) => act(work),
        Err(TryRecvError::Empty) => {
            memory::sim::fall_asleep(None);
            true
        }
        Err(TryRecvError::Disconnected) => false,
    };
    let thread = Thread::new(name, Box::new(turn));
    desk.thread.store(thread.id(), std::sync::atomic::Ordering::Relaxed);
    Ok(thread)
}
