//! The ring of a simulation: the same type, before a kernel whose every choice is the seed's. Only built with `--cfg sim`.
//!
//! Files are real, and so are their locks; what io_uring does with them is made here. An operation *lands* when [`land`] picks it: in any
//! order, cut short, with an error that passes or one that does not, or long after its process has died, as long as nobody has waited
//! for it. A landed operation has its effect and a completion that a later [`Ring::submit`] or [`Ring::wait`] shows. An eventfd that is written
//! completes its poll when the kernel gets to it. What is written is durable when it was written back: see [`cache`].

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::io;
use std::marker::PhantomData;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::rc::Rc;
use std::time::Duration;

use memory::{IoBuf, sim};
use rustix::event::epoll;

use crate::error::{Full, RingError};
use crate::files::{FileSlot, Slots};
use crate::inline;
use crate::op::{Op, WriteFlags};
use crate::setup::{RingConfig, Rung};
use cache::{Caches, Inode, Open};
use faults::{fails, passing};

mod cache;
mod faults;
mod hear;
mod transfers;
mod workers;

pub use faults::{Errors, Faults};
use hear::listen;
pub use transfers::only_on;
use transfers::{cut, moved, sync};

/// A finished operation, or one event of a [`Op::PollMulti`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Completion {
    /// What was given to [`Ring::push`].
    pub user_data: u64,
    /// As the system call of the same name, or a negative `errno`.
    pub result: i32,
    /// The same operation will complete again.
    pub more: bool,
}

#[derive(Debug)]
enum Work {
    Read {
        bufs: Vec<IoBuf>,
        offset: u64,
        nowait: bool,
    },
    Write {
        bufs: Vec<IoBuf>,
        offset: u64,
        nowait: bool,
        dsync: bool,
    },
    /// Of an eventfd, whose count goes there; whether it is known to have one.
    Hear {
        buf: IoBuf,
        rung: bool,
    },
    DataSync,
    Fallocate {
        mode: i32,
        offset: u64,
        len: u64,
    },
    Poll,
    Notify,
    Timeout {
        at_ns: u64,
    },
    Cancel {
        user_data: u64,
    },
    Nop,
}

#[derive(Debug)]
struct Flight {
    /// Which was handed over before which.
    order: u64,
    ring: u64,
    user_data: u64,
    file: Option<Rc<OwnedFd>>,
    open: Option<Open>,
    work: Work,
}

struct Face {
    id: u64,
    completions: VecDeque<Completion>,
    /// The thread that sleeps in it.
    sleeper: Option<u64>,
    /// As [`Ring::add_workers`] has added them up.
    workers: u32,
}

#[derive(Default)]
struct Kernel {
    next: u64,
    flights: Vec<Flight>,
    able: Vec<usize>,
    faces: Vec<Face>,
    /// Edges of eventfds; made with the first poll.
    edges: Option<OwnedFd>,
    /// Polls whose file was written and that have not completed.
    rung: Vec<u64>,
    next_poll: u64,
    polls: Vec<PollEntry>,
    faults: Faults,
    /// Files that errors are of; else all.
    sick: Option<BTreeSet<Inode>>,
    landed: u64,
    errors: Errors,
    handed: u64,
    /// Files that do not answer, until when.
    hung: BTreeMap<Inode, u64>,
    heard: u64,
    /// When it has last taken nothing.
    refused_at: u64,
    caches: Caches,
}

struct PollEntry {
    id: u64,
    ring: u64,
    user_data: u64,
    file: Rc<OwnedFd>,
}

thread_local! {
    static KERNEL: RefCell<Kernel> = RefCell::default();
}

fn kernel<T>(act: impl FnOnce(&mut Kernel) -> T) -> T {
    KERNEL.with_borrow_mut(act)
}

/// A kernel that has just been booted.
pub fn boot(faults: Faults) {
    kernel(|kernel| *kernel = Kernel { faults, ..Kernel::default() });
    sim::set_lost(|file| kernel(|kernel| kernel.caches.has_lost(file)));
}

/// From now on this goes wrong; what did so far.
pub fn set_faults(faults: Faults) -> Faults {
    kernel(|kernel| std::mem::replace(&mut kernel.faults, faults))
}

/// A file was opened: it hears of the losses from now on, and of those that nobody has heard of.
pub fn opened(file: BorrowedFd<'_>) {
    kernel(|kernel| kernel.caches.open(file));
}

/// A file was made to end here: what was to be written back behind that is not. Its length survives a power failure.
pub fn truncated(file: BorrowedFd<'_>, bytes: u64) {
    kernel(|kernel| kernel.caches.truncated(file, bytes));
}

/// A file does not answer for so many ns: what is asked of it takes as long, and keeps the workers it has.
pub fn hang(file: BorrowedFd<'_>, ns: u64) {
    kernel(|kernel| {
        if let Some(open) = kernel.caches.open(file) {
            kernel.hung.insert(open.inode(), sim::now_ns() + ns);
        }
    });
}

/// The host loses its power: no operation is under way any more, and files have what was written back.
pub fn lose_power() {
    kernel(|kernel| {
        kernel.flights.clear();
        kernel.hung.clear();
        kernel.caches.lose_power();
    });
}

/// Operations under way, those of dead processes among them.
#[must_use]
pub fn under_way() -> usize {
    kernel(|kernel| kernel.flights.len())
}

/// Operations that have landed.
#[must_use]
pub fn landed() -> u64 {
    kernel(|kernel| kernel.landed)
}

/// What has gone wrong for good.
#[must_use]
pub fn errors() -> Errors {
    kernel(|kernel| kernel.errors)
}

/// When the kernel has last taken nothing of what was submitted; 0: never.
#[must_use]
pub fn refused_at() -> u64 {
    kernel(|kernel| kernel.refused_at)
}

/// When the first timeout is over.
#[must_use]
pub fn next_moment() -> Option<u64> {
    kernel(|kernel| {
        let timeouts = kernel.flights.iter().filter_map(|flight| match flight.work {
            Work::Timeout { at_ns } => Some(at_ns),
            _ => None,
        });
        let hung = kernel.hung.iter().filter(|(inode, _)| {
            let on_it = |flight: &Flight| flight.open.is_some_and(|open| open.inode() == **inode);
            kernel.flights.iter().any(on_it)
        });
        timeouts.chain(hung.map(|(_, until)| *until)).min()
    })
}

/// What can be done now: how many operations, whose places are in `Kernel::able`, and how many polls can complete.
fn doable() -> (usize, usize) {
    listen();
    let now = sim::now_ns();
    kernel(|kernel| {
        // Used again: this is looked at more often than anything else.
        let mut able = std::mem::take(&mut kernel.able);
        able.clear();
        let held = kernel.held(now);
        let waits = |flight: &Flight| match flight.work {
            Work::Timeout { at_ns } => at_ns > now,
            Work::Hear { rung, .. } => !rung,
            _ => false,
        };
        for (at, flight) in kernel.flights.iter().enumerate() {
            if !waits(flight) && !held.contains(&flight.order) {
                able.push(at);
            }
        }
        kernel.able = able;
        (kernel.able.len(), kernel.rung.len())
    })
}

/// Whether the kernel has nothing to do before time passes.
#[must_use]
pub fn is_quiet() -> bool {
    let (able, rung) = doable();
    able + rung == 0
}

/// The kernel goes on with something that can be done now, if there is anything; whether there was.
pub fn land() -> bool {
    let (able, rung) = doable();
    if able + rung == 0 {
        return false;
    }
    let picked = sim::pick(able + rung);
    if picked < able {
        let flight = kernel(|kernel| kernel.flights.swap_remove(kernel.able[picked]));
        do_it(flight);
    } else {
        ring_out(picked - able);
    }
    true
}

fn ring_out(at: usize) {
    let ends = fails("a poll ends", kernel(|kernel| kernel.faults.poll_ends));
    kernel(|kernel| {
        let id = kernel.rung.remove(at);
        let Some(place) = kernel.polls.iter().position(|poll| poll.id == id) else { return };
        let (ring, user_data) = (kernel.polls[place].ring, kernel.polls[place].user_data);
        if ends {
            kernel.forget_poll(place);
        }
        kernel.complete(ring, user_data, 1, !ends);
    });
}

impl Kernel {
    fn complete(&mut self, ring: u64, user_data: u64, result: i32, more: bool) {
        // A dead process hears of nothing.
        if let Some(face) = self.faces.iter_mut().find(|face| face.id == ring) {
            face.completions.push_back(Completion { user_data, result, more });
            if let Some(sleeper) = face.sleeper.take() {
                sim::wake(sleeper);
            }
        }
    }

    fn forget_poll(&mut self, at: usize) {
        let poll = self.polls.swap_remove(at);
        if let Some(edges) = &self.edges {
            let gone = epoll::delete(edges, &poll.file);
            debug_assert!(gone.is_ok(), "a poll that was added: {gone:?}");
        }
        self.rung.retain(|id| *id != poll.id);
    }

    fn poll(&mut self, ring: u64, user_data: u64, file: &Rc<OwnedFd>) {
        let edges = self
            .edges
            .get_or_insert_with(|| epoll::create(epoll::CreateFlags::CLOEXEC).expect("an epoll"));
        let id = self.next_poll;
        self.next_poll += 1;
        let flags = epoll::EventFlags::IN | epoll::EventFlags::ET;
        let add = |file: &OwnedFd| epoll::add(&*edges, file, epoll::EventData::new_u64(id), flags);
        let mut file = Rc::clone(file);
        if add(&file).is_err() {
            // It is polled already: another one needs a descriptor of its own.
            file = Rc::new(file.try_clone().expect("a descriptor"));
            add(&file).expect("an eventfd can be polled");
        }
        self.heard = u64::MAX;
        self.polls.push(PollEntry { id, ring, user_data, file });
    }

    /// Cancels one operation.
    fn cancel(&mut self, ring: u64, user_data: u64) -> i32 {
        if let Some(at) =
            self.polls.iter().position(|poll| (poll.ring, poll.user_data) == (ring, user_data))
        {
            self.forget_poll(at);
            self.complete(ring, user_data, -libc::ECANCELED, false);
            return 0;
        }
        let found = self.flights.iter().position(|flight| {
            (flight.ring, flight.user_data) == (ring, user_data)
                && !matches!(flight.work, Work::Cancel { .. })
        });
        let Some(at) = found else { return -libc::ENOENT };
        match self.flights[at].work {
            Work::Timeout { .. } | Work::Notify | Work::Poll => {
                self.flights.swap_remove(at);
                self.complete(ring, user_data, -libc::ECANCELED, false);
                0
            }
            _ => -libc::EALREADY,
        }
    }
}

/// Carries an operation out.
fn do_it(flight: Flight) {
    let refuses = flight.refuses();
    let Flight { ring, user_data, file, open, work, .. } = flight;
    let (faults, hangs) = kernel(|kernel| {
        kernel.landed += 1;
        // A look at the time moves it on.
        let hangs = refuses && !kernel.hung.is_empty() && kernel.hangs(open, sim::now_ns());
        let is_sick =
            |sick: &BTreeSet<Inode>| open.is_some_and(|open| sick.contains(&open.inode()));
        let faults = match kernel.sick.as_ref().is_none_or(is_sick) {
            true => kernel.faults,
            false => Faults { read_error: 0, write_error: 0, sync_error: 0, ..kernel.faults },
        };
        (faults, hangs)
    });
    let fd = || file.as_ref().expect("an operation with a file").as_fd();
    let result = match work {
        Work::Read { bufs, offset, nowait } => {
            if hangs {
                -libc::EAGAIN
            } else if let Some(error) = passing(faults, nowait) {
                error
            } else if fails("a read fails", faults.read_error) {
                kernel(|kernel| kernel.errors.reads += 1);
                -libc::EIO
            } else {
                moved(inline::read_at(fd(), &cut(&bufs, faults.short), offset))
            }
        }
        Work::Write { bufs, offset, nowait, dsync } => {
            let len = bufs.iter().map(|buf| buf.len() as u64).sum();
            if let Some(open) = open {
                kernel(|kernel| kernel.caches.touch(open, offset, len));
            }
            if hangs {
                -libc::EAGAIN
            } else if let Some(error) = passing(faults, nowait) {
                error
            } else if fails("a write fails", faults.write_error) {
                kernel(|kernel| kernel.errors.writes += 1);
                // Of memory that its client has taken away there is no part.
                let _ = inline::write_at(fd(), &cut(&bufs, 1), offset);
                -libc::EIO
            } else {
                let moved = moved(inline::write_at(fd(), &cut(&bufs, faults.short), offset));
                let synced =
                    if dsync { sync(open, Some((offset, len)), faults.sync_error) } else { 0 };
                if synced < 0 { synced } else { moved }
            }
        }
        Work::Hear { buf, .. } => {
            let mut count = [0; 8];
            let read = rustix::io::read(fd(), &mut count);
            buf.write(0, &count);
            read.map_or_else(|error| -error.raw_os_error(), |bytes| bytes as i32)
        }
        Work::DataSync => {
            passing(faults, false).unwrap_or_else(|| sync(open, None, faults.sync_error))
        }
        Work::Fallocate { mode, offset, len } => match passing(faults, false) {
            Some(error) => error,
            None => {
                if let Some(open) = open {
                    kernel(|kernel| kernel.caches.touch(open, offset, len));
                }
                let mode = rustix::fs::FallocateFlags::from_bits_retain(mode as u32);
                let result = rustix::fs::fallocate(fd(), mode, offset, len);
                result.map_or_else(|error| -error.raw_os_error(), |()| 0)
            }
        },
        Work::Poll => {
            let file = file.as_ref().expect("a poll has a file");
            return kernel(|kernel| kernel.poll(ring, user_data, file));
        }
        Work::Notify if sim::once_in(faults.notify_lost) => 8,
        Work::Notify => {
            sim::notice();
            let written = rustix::io::write(fd(), &1_u64.to_ne_bytes());
            written.map_or_else(|error| -error.raw_os_error(), |bytes| bytes as i32)
        }
        Work::Timeout { .. } => -libc::ETIME,
        Work::Cancel { user_data } => kernel(|kernel| kernel.cancel(ring, user_data)),
        Work::Nop => 0,
    };
    drop(file);
    sim::tell(|| format!("kernel: ring {ring} operation {user_data:#x} ends with {result}"));
    kernel(|kernel| kernel.complete(ring, user_data, result, false));
}

/// One io_uring, for one thread. See the crate's page for what it promises.
#[derive(Debug)]
pub struct Ring {
    id: u64,
    room: usize,
    slots: Slots,
    files: Vec<Option<(Rc<OwnedFd>, Option<Open>)>>,
    pushed: Vec<Flight>,
    /// Operations that found no room, in their order: see [`Ring::push_own`].
    kept: VecDeque<Flight>,
    noted: VecDeque<u64>,
    enters: u64,
    pub(crate) now: u64,
    workers: u32,
    _not_send: PhantomData<*mut ()>,
}

impl Ring {
    /// Makes a ring for the calling thread.
    ///
    /// # Errors
    ///
    /// Never.
    pub fn new(config: &RingConfig) -> Result<Ring, RingError> {
        // Smaller than it is asked for, so that it is full now and then.
        let room = (config.entries as usize).min(8 << sim::pick(7));
        let id = kernel(|kernel| {
            let id = kernel.next;
            kernel.next += 1;
            let completions = VecDeque::new();
            kernel.faces.push(Face { id, completions, sleeper: None, workers: 0 });
            id
        });
        let slots = Slots::new(config.fixed_files);
        Ok(Ring {
            id,
            room,
            slots,
            files: Vec::new(),
            pushed: Vec::new(),
            kept: VecDeque::new(),
            noted: VecDeque::new(),
            enters: 0,
            now: 0,
            workers: 0,
            _not_send: PhantomData,
        })
    }

    /// How often the kernel was entered since the ring was made.
    #[must_use]
    pub fn enters(&self) -> u64 {
        self.enters
    }

    /// The newest.
    #[must_use]
    pub fn rung(&self) -> Rung {
        Rung::NoSqArray
    }

    /// Registers a file. The descriptor may be closed afterwards: the table keeps the file open.
    ///
    /// # Errors
    ///
    /// When the table is full.
    pub fn register(&mut self, fd: BorrowedFd<'_>) -> Result<FileSlot, RingError> {
        let slot = self.slots.take().ok_or(RingError::FilesFull(self.slots.count()))?;
        let at = slot as usize;
        if self.files.len() <= at {
            self.files.resize(at + 1, None);
        }
        let (file, open) = kernel(|kernel| kernel.caches.keep(fd)).map_err(RingError::Register)?;
        self.files[at] = Some((file, open));
        Ok(FileSlot(slot))
    }

    /// Takes a file out of the table. Operations in flight on it go on.
    ///
    /// # Panics
    ///
    /// When the slot is not in use.
    pub fn unregister(&mut self, slot: FileSlot) {
        self.slots.give_back(slot.0);
        self.files[slot.0 as usize] = None;
    }

    /// As of a kernel's ring.
    ///
    /// # Errors
    ///
    /// Never.
    pub fn add_workers(&mut self, count: u32) -> io::Result<()> {
        self.workers += count;
        self.tell_workers();
        Ok(())
    }

    /// Takes back what [`Ring::add_workers`] added.
    pub fn remove_workers(&mut self, count: u32) {
        self.workers = self.workers.saturating_sub(count);
        self.tell_workers();
    }

    fn tell_workers(&self) {
        kernel(|kernel| {
            let face = kernel.faces.iter_mut().find(|face| face.id == self.id);
            face.expect("a ring has its face").workers = self.workers;
        });
    }

    /// Free submission entries.
    #[must_use]
    pub fn space(&self) -> usize {
        self.room - self.pushed.len()
    }

    fn flight(&self, op: Op<'_>, user_data: u64) -> Flight {
        let (slot, work) = match op {
            Op::Read { file, bufs, offset, nowait } => {
                (Some(file), Work::Read { bufs: bufs.to_vec(), offset, nowait })
            }
            Op::Write { file, bufs, offset, flags } => {
                let WriteFlags { dsync, nowait } = flags;
                (Some(file), Work::Write { bufs: bufs.to_vec(), offset, nowait, dsync })
            }
            Op::Receive { .. } => unreachable!("the simulated kernel has no sockets with messages"),
            Op::DataSync { file } => (Some(file), Work::DataSync),
            Op::Fallocate { file, mode, offset, len } => {
                (Some(file), Work::Fallocate { mode, offset, len })
            }
            Op::PollMulti { file } => (Some(file), Work::Poll),
            Op::Notify { file } => (Some(file), Work::Notify),
            Op::Timeout { after } => {
                // A virtual century is enough.
                (None, Work::Timeout { at_ns: sim::now_ns() + after.as_nanos() as u64 })
            }
            Op::Cancel { user_data } => (None, Work::Cancel { user_data }),
            Op::Nop => (None, Work::Nop),
        };
        let file = slot.map(|slot| {
            let file = self.files.get(slot.0 as usize).cloned().flatten();
            file.expect("an operation names a registered file")
        });
        let (file, open) = file.map_or((None, None), |(file, open)| (Some(file), open));
        let work = match work {
            Work::Read { bufs, .. } if open.is_none() => Work::Hear { buf: bufs[0], rung: false },
            work => work,
        };
        Flight { order: 0, ring: self.id, user_data, file, open, work }
    }

    /// Adds an operation to what the next [`Ring::submit`] or [`Ring::wait`] hands to the kernel.
    ///
    /// # Errors
    ///
    /// [`Full`] when there is no room; nothing was added.
    ///
    /// # Panics
    ///
    /// When there are more than [`Op::MAX_BUFS`] pieces.
    pub fn push(&mut self, op: Op<'_>, user_data: u64) -> Result<(), Full> {
        if let Op::Read { bufs, .. } | Op::Write { bufs, .. } = op {
            assert!(bufs.len() <= Op::MAX_BUFS, "an operation of {} pieces", bufs.len());
        }
        if self.space() == 0 {
            return Err(Full);
        }
        let flight = self.flight(op, user_data);
        self.pushed.push(flight);
        Ok(())
    }

    /// As of a kernel's ring.
    pub fn note(&mut self, user_data: u64) {
        self.noted.push_back(user_data);
    }

    /// As of a kernel's ring.
    pub fn reserve_notes(&mut self, count: usize) {
        self.noted.reserve(count.saturating_sub(self.noted.len()));
    }

    /// As of a kernel's ring.
    pub fn push_own(&mut self, op: Op<'_>, user_data: u64) {
        let flight = self.flight(op, user_data);
        if self.kept.is_empty() && self.space() > 0 {
            self.pushed.push(flight);
        } else {
            self.kept.push_back(flight);
        }
    }

    fn enter(&mut self) {
        self.enters += 1;
        if fails("the kernel takes nothing", kernel(|kernel| kernel.faults.takes_nothing)) {
            return kernel(|kernel| kernel.refused_at = sim::moment());
        }
        self.hand_over();
        while self.space() > 0
            && let Some(flight) = self.kept.pop_front()
        {
            self.pushed.push(flight);
        }
        self.hand_over();
    }

    /// What was pushed is the kernel's, in its order. To cancel is done at once, as io_uring does it.
    fn hand_over(&mut self) {
        for flight in std::mem::take(&mut self.pushed) {
            match flight.work {
                Work::Cancel { .. } => do_it(flight),
                _ => kernel(|kernel| {
                    kernel.handed += 1;
                    if matches!(flight.work, Work::Hear { .. }) {
                        kernel.heard = u64::MAX;
                    }
                    kernel.flights.push(Flight { order: kernel.handed, ..flight });
                }),
            }
        }
    }

    /// Hands over what was pushed.
    ///
    /// # Errors
    ///
    /// Never.
    pub fn submit(&mut self) -> io::Result<()> {
        if !self.pushed.is_empty() || !self.kept.is_empty() {
            self.enter();
        }
        Ok(())
    }

    /// Hands over what was pushed, and returns as if a signal had come: its thread sleeps from now on, until it has another turn.
    ///
    /// # Errors
    ///
    /// Never.
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        if !self.pushed.is_empty() || !self.kept.is_empty() {
            self.enter();
        }
        // What the kernel did not take is tried again in the next turn.
        let busy = !self.pushed.is_empty() || !self.kept.is_empty();
        let at = timeout.map(|time| sim::now_ns() + time.as_nanos() as u64);
        if !busy && !self.ready() {
            let sleeper = sim::fall_asleep(at);
            kernel(|kernel| {
                let face = kernel.faces.iter_mut().find(|face| face.id == self.id);
                face.expect("a ring has its face").sleeper = sleeper;
            });
        }
        Ok(())
    }

    /// Whether [`Ring::next`] has something.
    #[must_use]
    pub fn ready(&self) -> bool {
        !self.noted.is_empty()
            || kernel(|kernel| {
                kernel.faces.iter().any(|face| face.id == self.id && !face.completions.is_empty())
            })
    }

    /// Whose completion [`Ring::next`] will take.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        let completed = kernel(|kernel| {
            let face = kernel.faces.iter().find(|face| face.id == self.id)?;
            face.completions.front().map(|completion| completion.user_data)
        });
        completed.or(self.noted.front().copied())
    }

    /// Takes one completion. Not an `Iterator`: the next one may appear after a `None`.
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Completion> {
        let completed = kernel(|kernel| {
            let face = kernel.faces.iter_mut().find(|face| face.id == self.id)?;
            face.completions.pop_front()
        });
        let noted = |user_data| Completion { user_data, result: 0, more: false };
        completed.or_else(|| self.noted.pop_front().map(noted))
    }
}

impl Drop for Ring {
    /// Polls and timeouts end with their ring; what is on its way to a file goes on.
    fn drop(&mut self) {
        let id = self.id;
        kernel(|kernel| {
            kernel.faces.retain(|face| face.id != id);
            while let Some(at) = kernel.polls.iter().position(|poll| poll.ring == id) {
                kernel.forget_poll(at);
            }
            kernel.flights.retain(|flight| {
                flight.ring != id
                    || matches!(
                        flight.work,
                        Work::Read { .. }
                            | Work::Write { .. }
                            | Work::DataSync
                            | Work::Fallocate { .. }
                    )
            });
        });
    }
}
