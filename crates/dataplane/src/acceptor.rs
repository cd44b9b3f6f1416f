//! One thread waits for the clients of all adapters that have none, and for control planes: a thread is made for who has come.
//!
//! It waits for knocks with epoll, each of which is told once and then again only when somebody [expects](Entry::expect) it; and for the time
//! of the next attempt to connect to a client that listens. What it calls then must not wait for anything.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec};
use rustix::io::Errno;

use crate::endpoint::Endpoint;
use crate::lock::locked;

/// Attempts to connect that are made at once: one whose socket's file system hangs keeps no other from trying.
const ATTEMPTS_MAX: usize = 32;
/// How long nobody is let in after the system refused something.
pub(crate) const PAUSE: Duration = Duration::from_millis(100);
/// Entries that are called in a row.
const BATCH: usize = 64;
/// The number of the acceptor's own eventfd.
const WAKE: u64 = 0;

/// Called on the acceptor's thread when somebody knocks, or it is time.
type Come = Arc<dyn Fn() + Send + Sync>;

/// The thread.
#[derive(Clone)]
pub(crate) struct Acceptor {
    waiting: Arc<Waiting>,
    #[cfg_attr(feature = "sim", expect(dead_code, reason = "it is never stopped there"))]
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

struct Waiting {
    epoll: OwnedFd,
    wake: OwnedFd,
    entries: Mutex<Entries>,
    attempts: AtomicUsize,
}

#[derive(Default)]
struct Entries {
    last: u64,
    come: BTreeMap<u64, Come>,
    due: BTreeSet<(Instant, u64)>,
    ended: bool,
}

/// An endpoint at which the acceptor waits, when it is told to.
pub(crate) struct Entry {
    pub(crate) endpoint: Endpoint,
    number: u64,
    waiting: Arc<Waiting>,
}

/// One of the attempts that may be made at once.
pub(crate) struct Attempt(Arc<Waiting>);

impl Drop for Attempt {
    fn drop(&mut self) {
        self.0.attempts.fetch_sub(1, Relaxed);
    }
}

impl Acceptor {
    pub(crate) fn start() -> std::io::Result<Acceptor> {
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        let wake = rustix::event::eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        epoll::add(&epoll, &wake, EventData::new_u64(WAKE), EventFlags::IN)?;
        let (entries, attempts) = (Mutex::new(Entries { last: WAKE, ..Entries::default() }), 0);
        let waiting = Arc::new(Waiting { epoll, wake, entries, attempts: attempts.into() });
        let its = Arc::clone(&waiting);
        let thread = std::thread::Builder::new().name("acceptor".into());
        let thread = Arc::new(Mutex::new(Some(thread.spawn(move || its.run())?)));
        Ok(Acceptor { waiting, thread })
    }

    /// Takes an endpoint; nobody is let in there before it is [expected](Entry::expect).
    pub(crate) fn enter(
        &self,
        endpoint: Endpoint,
        come: impl Fn() + Send + Sync + 'static,
    ) -> Entry {
        let mut entries = locked(&self.waiting.entries);
        entries.last += 1;
        let number = entries.last;
        entries.come.insert(number, Arc::new(come));
        Entry { endpoint, number, waiting: Arc::clone(&self.waiting) }
    }

    /// Ends the thread.
    #[cfg(not(feature = "sim"))]
    pub(crate) fn stop(&self) {
        locked(&self.waiting.entries).ended = true;
        self.waiting.wake();
        let thread = locked(&self.thread).take();
        // It may itself be the last who had the plane.
        if let Some(thread) = thread.filter(|it| it.thread().id() != std::thread::current().id()) {
            let _ = thread.join();
        }
    }
}

impl Entry {
    /// Calls when the next one knocks at the socket.
    pub(crate) fn expect(&self) {
        let Some(listener) = self.endpoint.listener() else { return };
        let (epoll, number) = (&self.waiting.epoll, EventData::new_u64(self.number));
        let flags = EventFlags::IN | EventFlags::ONESHOT;
        let expected = match epoll::modify(epoll, &*listener, number, flags) {
            Err(Errno::NOENT) => epoll::add(epoll, &*listener, number, flags),
            modified => modified,
        };
        if expected.is_err() {
            // The system has no memory for it.
            self.call_after(PAUSE);
        }
    }

    /// Who has knocked; if it is nobody, or cannot be let in now, the next is expected.
    pub(crate) fn accept(&self) -> Option<UnixStream> {
        match self.endpoint.listener()?.accept() {
            Ok((stream, _)) => return Some(stream),
            Err(error) if error.kind() == ErrorKind::WouldBlock => self.expect(),
            // Out of descriptors, perhaps.
            Err(_) => self.call_after(PAUSE),
        }
        None
    }

    /// Calls after this time, whether or not somebody has knocked.
    pub(crate) fn call_after(&self, pause: Duration) {
        locked(&self.waiting.entries).due.insert((Instant::now() + pause, self.number));
        self.waiting.wake();
    }

    /// One more attempt to connect, unless there are too many.
    pub(crate) fn attempt(&self) -> Option<Attempt> {
        let attempt = Attempt(Arc::clone(&self.waiting));
        (self.waiting.attempts.fetch_add(1, Relaxed) < ATTEMPTS_MAX).then_some(attempt)
    }

    /// Waits no longer, and removes the socket's file. A call that has begun goes on.
    pub(crate) fn close(&self) {
        let mut entries = locked(&self.waiting.entries);
        entries.come.remove(&self.number);
        entries.due.retain(|(_, number)| *number != self.number);
        drop(entries);
        if let Some(listener) = self.endpoint.listener() {
            self.disregard(&listener);
        }
        self.endpoint.leave();
    }

    /// Makes a socket again whose file was removed; whether there is a new one. It is expected anew.
    pub(crate) fn renew(&self) -> bool {
        let before = self.endpoint.listener();
        let renewed = self.endpoint.renew();
        if renewed && let Some(before) = before {
            self.disregard(&before);
        }
        renewed
    }

    fn disregard(&self, listener: &UnixListener) {
        // It was not expected.
        let _ = epoll::delete(&self.waiting.epoll, listener);
    }
}

impl Waiting {
    fn wake(&self) {
        // It is full: the thread is awake.
        let _ = rustix::io::write(&self.wake, &1_u64.to_ne_bytes());
    }

    fn run(&self) {
        let mut events = Vec::with_capacity(BATCH);
        while let Some(pause) = self.call_those_due() {
            events.clear();
            let timeout = pause.and_then(|pause| Timespec::try_from(pause).ok());
            // Interrupted: there are no events.
            let _ = epoll::wait(
                &self.epoll,
                rustix::buffer::spare_capacity(&mut events),
                timeout.as_ref(),
            );
            for event in events.iter().copied() {
                match { event.data }.u64() {
                    WAKE => drop(rustix::io::read(&self.wake, &mut [0; 8])),
                    number => self.call(number),
                }
            }
        }
    }

    fn call(&self, number: u64) {
        let come = locked(&self.entries).come.get(&number).map(Arc::clone);
        if let Some(come) = come {
            come();
        }
    }

    /// How long it is until the next call; `None` at the end.
    fn call_those_due(&self) -> Option<Option<Duration>> {
        loop {
            let next = {
                let mut entries = locked(&self.entries);
                if entries.ended {
                    return None;
                }
                let now = Instant::now();
                match entries.due.first() {
                    None => return Some(None),
                    // Rounded up, since the kernel may count in milliseconds.
                    Some((due, _)) if *due > now => {
                        return Some(Some(*due - now + Duration::from_millis(1)));
                    }
                    Some((_, number)) => {
                        let number = *number;
                        entries.due.pop_first();
                        number
                    }
                }
            };
            self.call(next);
        }
    }
}
