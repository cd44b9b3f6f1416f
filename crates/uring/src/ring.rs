//! The ring itself: push, submit, wait, reap.

use std::collections::VecDeque;
use std::io;
use std::marker::PhantomData;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr::NonNull;
use std::time::Duration;

use io_uring::cqueue::{self, CompletionStatus};
use io_uring::squeue::Entry;
use io_uring::types::{SubmitArgs, Timespec};
use io_uring::{EnterFlags, IoUring, Submitter};
use memory::IoBuf;

use crate::error::{Full, RingError};
use crate::files::{FileSlot, Slots};
use crate::op::{self, Op, Vector};
use crate::setup::{self, RingConfig, Rung};

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

/// Room for scattered buffers between two submissions, per submission entry; see [`Ring::push`].
const PIECES_PER_ENTRY: usize = 32;

/// One io_uring, for one thread. See the crate's page for what it promises.
pub struct Ring {
    /// Refers to what `io` points to, and is dropped before it.
    submitter: ManuallyDrop<Submitter<'static>>,
    /// From `Box::into_raw`; only shared references are ever made from it until the drop.
    io: NonNull<IoUring>,
    status: CompletionStatus,
    rung: Rung,
    ring_registered: bool,
    slots: Slots,
    /// What [`Ring::add_workers`] has added up to.
    workers: u32,
    /// The pieces of the vectored operations that were pushed and not yet submitted. Never grows:
    /// the kernel is given addresses into it.
    pieces: Vec<IoBuf>,
    /// The same for timeouts.
    timespecs: Vec<Timespec>,
    /// Operations that found no room, in their order: see [`Ring::push_own`].
    kept: VecDeque<Entry>,
    /// What was noted for [`Ring::next`], oldest first: see [`Ring::note`].
    noted: VecDeque<u64>,
    enters: u64,
    /// See [`Ring::now`].
    pub(crate) now: u64,
    #[cfg(test)]
    pub(crate) takes_nothing: bool,
    /// One thread: the kernel enforces it (`SINGLE_ISSUER`), and so does the type.
    _not_send: PhantomData<*mut ()>,
}

impl Ring {
    /// Makes a ring for the calling thread.
    ///
    /// # Errors
    ///
    /// The kernel's io_uring is missing, forbidden or too old; a limit is exhausted.
    pub fn new(config: &RingConfig) -> Result<Ring, RingError> {
        Ring::from_rung(config, Rung::NoSqArray)
    }

    /// Like [`Ring::new`], but beginning with an older set of flags; for tests of the fallbacks.
    pub(crate) fn from_rung(config: &RingConfig, first: Rung) -> Result<Ring, RingError> {
        let (io, rung) = setup::build(config, first)?;
        setup::prepare(&io, config)?;
        let io = NonNull::from(Box::leak(Box::new(io)));
        // SAFETY: the box lives until `drop` takes it back, and until then nobody makes an
        // exclusive reference to it.
        let shared: &'static IoUring = unsafe { io.as_ref() };
        // SAFETY: no other completion queue exists; it is dropped at the end of the statement, and
        // the status is kept no longer than the ring.
        let status = unsafe { shared.completion_shared().status() };
        let entries = shared.params().sq_entries() as usize;
        let mut ring = Ring {
            submitter: ManuallyDrop::new(shared.submitter()),
            io,
            status,
            rung,
            ring_registered: false,
            slots: Slots::new(config.fixed_files),
            workers: 0,
            pieces: Vec::with_capacity((entries * PIECES_PER_ENTRY).max(4 * Op::MAX_BUFS)),
            timespecs: Vec::with_capacity(entries),
            kept: VecDeque::new(),
            noted: VecDeque::new(),
            enters: 0,
            now: 0,
            #[cfg(test)]
            takes_nothing: false,
            _not_send: PhantomData,
        };
        // Before the restrictions come into force, which would refuse it. Failing costs speed only:
        // every enter looks the descriptor up then.
        ring.ring_registered = ring.submitter.register_ring_fd().is_ok();
        if config.restrict {
            ring.submitter
                .register_enable_rings()
                .map_err(|source| RingError::Setup { step: "enabling the ring", source })?;
        }
        Ok(ring)
    }

    fn io(&self) -> &IoUring {
        // SAFETY: the box is alive, and only shared references to it exist.
        unsafe { self.io.as_ref() }
    }

    /// How often the kernel was entered since the ring was made.
    #[inline]
    #[must_use]
    pub fn enters(&self) -> u64 {
        self.enters
    }

    /// Which set of flags the kernel accepted.
    #[must_use]
    pub fn rung(&self) -> Rung {
        self.rung
    }

    #[cfg(test)]
    pub(crate) fn ring_is_registered(&self) -> bool {
        self.ring_registered
    }

    /// Registers a file. The descriptor may be closed afterwards: the table keeps the file open.
    ///
    /// # Errors
    ///
    /// When the table is full or the kernel refuses the file.
    pub fn register(&mut self, fd: BorrowedFd<'_>) -> Result<FileSlot, RingError> {
        let slot = self.slots.take().ok_or(RingError::FilesFull(self.slots.count()))?;
        match self.submitter.register_files_update(slot, &[fd.as_raw_fd()]) {
            Ok(_) => Ok(FileSlot(slot)),
            Err(source) => {
                self.slots.give_back(slot);
                Err(RingError::Register(source))
            }
        }
    }

    /// Takes a file out of the table. Operations in flight on it go on; the kernel closes the file
    /// behind the last of them. Operations that were pushed and not submitted must not name it.
    ///
    /// # Panics
    ///
    /// When the slot is not in use.
    pub fn unregister(&mut self, slot: FileSlot) {
        self.slots.give_back(slot.0);
        // Replacing an entry by "none" allocates nothing in the kernel that could be refused; if
        // it ever is, the file stays open until the slot is used again.
        let result = self.submitter.register_files_update(slot.0, &[-1]);
        debug_assert!(result.is_ok(), "unregistering {slot:?}: {result:?}");
    }

    /// Lets the kernel start so many more threads for operations that it cannot do without waiting. Whoever adds as many as it has such
    /// operations under way at once never waits for a thread that somebody else's operations occupy. Threads come when they are
    /// needed and go when they are not.
    ///
    /// # Errors
    ///
    /// What the kernel answers; nothing has changed then.
    pub fn add_workers(&mut self, count: u32) -> io::Result<()> {
        self.limit_workers(self.workers + count)
    }

    /// Takes back what [`Ring::add_workers`] added.
    pub fn remove_workers(&mut self, count: u32) {
        let result = self.limit_workers(self.workers.saturating_sub(count));
        debug_assert!(result.is_ok(), "fewer workers: {result:?}");
    }

    fn limit_workers(&mut self, workers: u32) -> io::Result<()> {
        let bounded = setup::WORKERS_BOUNDED + workers;
        self.submitter.register_iowq_max_workers(&mut [bounded, setup::WORKERS_UNBOUNDED])?;
        self.workers = workers;
        Ok(())
    }

    /// Free submission entries. A [`Ring::push`] of scattered buffers can be refused earlier.
    #[inline]
    #[must_use]
    pub fn space(&self) -> usize {
        // SAFETY: the only submission queue object, dropped at once.
        let queue = unsafe { self.io().submission_shared() };
        queue.capacity() - queue.len()
    }

    /// Adds an operation to what the next [`Ring::submit`] or [`Ring::wait`] hands to the kernel.
    ///
    /// Scattered buffers are copied to an area of the ring, because the kernel reads them only
    /// then; the area has room for 32 pieces per submission entry, and for four of
    /// [`Op::MAX_BUFS`] at least.
    ///
    /// # Errors
    ///
    /// [`Full`] when there is no room; nothing was added.
    ///
    /// # Panics
    ///
    /// When there are more than [`Op::MAX_BUFS`] pieces.
    #[inline]
    pub fn push(&mut self, op: Op<'_>, user_data: u64) -> Result<(), Full> {
        let (pieces, timespecs) = (self.pieces.len(), self.timespecs.len());
        let entry = match op {
            Op::Read { file, bufs, offset, nowait } => {
                op::read(file, bufs, self.stage(bufs)?, offset, nowait)
            }
            Op::Write { file, bufs, offset, flags } => {
                op::write(file, bufs, self.stage(bufs)?, offset, flags)
            }
            Op::Receive { file, bufs, envelope } => {
                op::receive(file, crate::message::seal(envelope, bufs))
            }
            Op::DataSync { file } => op::data_sync(file),
            Op::Fallocate { file, mode, offset, len } => op::fallocate(file, mode, offset, len),
            Op::PollMulti { file } => op::poll_multi(file),
            Op::Notify { file } => op::notify(file),
            Op::Timeout { after } => {
                if self.timespecs.len() == self.timespecs.capacity() {
                    return Err(Full);
                }
                self.timespecs.push(op::timespec(after));
                op::timeout(&raw const self.timespecs[self.timespecs.len() - 1])
            }
            Op::Cancel { user_data } => op::cancel(user_data),
            Op::Nop => op::nop(),
        };
        let pushed = self.push_entry(&entry.user_data(user_data));
        if pushed.is_err() {
            self.pieces.truncate(pieces);
            self.timespecs.truncate(timespecs);
        }
        pushed
    }

    /// Adds an operation that must not be lost, of whoever has nothing to try it again with. Without room it is kept, and goes to the kernel
    /// as soon as there is some, before all that is kept later.
    ///
    /// # Panics
    ///
    /// When it is none of those that name no memory: [`Op::PollMulti`], [`Op::Notify`], [`Op::Cancel`], [`Op::Nop`].
    pub fn push_own(&mut self, op: Op<'_>, user_data: u64) {
        let entry = match op {
            Op::PollMulti { file } => op::poll_multi(file),
            Op::Notify { file } => op::notify(file),
            Op::Cancel { user_data } => op::cancel(user_data),
            Op::Nop => op::nop(),
            _ => panic!("an operation with memory is not kept"),
        };
        let entry = entry.user_data(user_data);
        if !self.kept.is_empty() || self.push_entry(&entry).is_err() {
            self.kept.push_back(entry);
        }
    }

    /// Makes a completion of the program's own, of which the kernel learns nothing: [`Ring::next`] gives it behind those that are visible by then, and
    /// [`Ring::wait`] does not sleep while there is one.
    pub fn note(&mut self, user_data: u64) {
        self.noted.push_back(user_data);
    }

    /// Room for so many of these at once.
    pub fn reserve_notes(&mut self, count: usize) {
        self.noted.reserve(count.saturating_sub(self.noted.len()));
    }

    /// Moves what was kept to where the kernel finds it, as far as there is room; whether there was some.
    #[cold]
    fn push_kept(&mut self) -> bool {
        let before = self.kept.len();
        while let Some(entry) = self.kept.pop_front() {
            if self.push_entry(&entry).is_err() {
                self.kept.push_front(entry);
                break;
            }
        }
        self.kept.len() < before
    }

    /// Copies the pieces of a vectored operation to where they stay until the submission. `None`
    /// for a single piece, which fits the entry itself.
    #[inline]
    fn stage(&mut self, bufs: &[IoBuf]) -> Result<Option<Vector>, Full> {
        if bufs.len() <= 1 {
            return Ok(None);
        }
        assert!(bufs.len() <= Op::MAX_BUFS, "an operation of {} pieces", bufs.len());
        let start = self.pieces.len();
        if self.pieces.capacity() - start < bufs.len() {
            return Err(Full);
        }
        self.pieces.extend_from_slice(bufs);
        Ok(Some((self.pieces[start..].as_ptr(), bufs.len())))
    }

    #[inline]
    pub(crate) fn push_entry(&mut self, entry: &Entry) -> Result<(), Full> {
        // SAFETY: the only submission queue object, dropped at the end of the function.
        let mut queue = unsafe { self.io().submission_shared() };
        // SAFETY: what the entry points to is the client's memory, mapped until the completion
        // (IoBuf's constructor), or lies in `pieces` or `timespecs`, which are neither moved nor
        // cleared before the kernel has taken the entry.
        unsafe { queue.push(entry) }.map_err(|_| Full)
    }

    /// Hands over what was pushed and lets the kernel post what it has finished, in one system
    /// call; does nothing when there is neither.
    ///
    /// When the kernel is short of memory, or has too many completions that nobody reaped, entries
    /// stay queued and the next call tries again; that is no error.
    ///
    /// # Errors
    ///
    /// What `io_uring_enter` answers otherwise: a defect of this program.
    #[inline]
    pub fn submit(&mut self) -> io::Result<()> {
        let (queued, pending) = self.queued();
        if queued == 0 && !pending {
            return Ok(());
        }
        // GETEVENTS also runs the task work that arrives during the submission itself.
        self.enter(queued, 0, EnterFlags::GETEVENTS, None)
    }

    /// Hands over what was pushed and sleeps until there is a completion, or until the timeout. An
    /// interrupting signal ends the sleep as well.
    ///
    /// # Errors
    ///
    /// As for [`Ring::submit`].
    pub fn wait(&mut self, timeout: Option<Duration>) -> io::Result<()> {
        let (queued, _) = self.queued();
        if queued == 0 && !self.status.is_empty() {
            return Ok(());
        }
        if !self.noted.is_empty() {
            return self.submit();
        }
        // The kernel itself compares with what is visible already, after the submission.
        match timeout {
            None => self.enter(queued, 1, EnterFlags::GETEVENTS, None),
            Some(timeout) => {
                let spec = op::timespec(timeout);
                let args = SubmitArgs::new().timespec(&spec);
                self.enter(queued, 1, EnterFlags::GETEVENTS | EnterFlags::EXT_ARG, Some(&args))
            }
        }
    }

    /// Entries to submit, and whether the kernel asks for an enter (task work to run, or
    /// completions that did not fit).
    #[inline]
    fn queued(&self) -> (usize, bool) {
        // SAFETY: the only submission queue object, dropped at the end of the function.
        let queue = unsafe { self.io().submission_shared() };
        (queue.len(), queue.taskrun() || queue.cq_overflow())
    }

    fn enter(
        &mut self,
        queued: usize,
        want: u32,
        flags: EnterFlags,
        args: Option<&SubmitArgs<'_, '_>>,
    ) -> io::Result<()> {
        self.enters += 1;
        #[cfg(test)]
        if self.takes_nothing {
            return Ok(());
        }
        // The queue has at most 32768 entries.
        let queued = queued as u32;
        // SAFETY: without EXT_ARG the argument is null (no signal mask), with it a SubmitArgs whose
        // timespec lives in the caller's frame; the size is that of the type, as the kernel wants.
        let result = unsafe { self.submitter.enter(queued, want, flags.bits(), args) };
        if self.queued().0 == 0 {
            // The kernel has copied what the entries pointed to (IORING_FEAT_SUBMIT_STABLE).
            self.pieces.clear();
            self.timespecs.clear();
        }
        if let Err(error) = result {
            match error.raw_os_error() {
                Some(libc::EINTR | libc::ETIME | libc::EAGAIN | libc::EBUSY | libc::ENOMEM) => {}
                _ => return Err(error),
            }
        }
        if !self.kept.is_empty() && self.push_kept() {
            let (queued, _) = self.queued();
            return self.enter(queued, 0, EnterFlags::GETEVENTS, None);
        }
        Ok(())
    }

    /// Whether [`Ring::next`] has something, or [`Ring::submit`] would bring something. No system
    /// call: a few loads.
    #[inline]
    #[must_use]
    pub fn ready(&self) -> bool {
        !self.status.is_empty() || !self.noted.is_empty() || self.queued().1
    }

    /// Whose completion [`Ring::next`] will take, by its user data.
    #[must_use]
    pub fn first(&self) -> Option<u64> {
        if self.status.is_empty() {
            return self.noted.front().copied();
        }
        // SAFETY: the only completion queue object; its head is written where it is dropped, and so it is not.
        let mut queue = std::mem::ManuallyDrop::new(unsafe { self.io().completion_shared() });
        queue.next().map(|entry| entry.user_data())
    }

    /// Takes one completion. Not an `Iterator`: the next one may appear after a `None`.
    #[inline]
    #[allow(clippy::should_implement_trait)]
    pub fn next(&mut self) -> Option<Completion> {
        if self.status.is_empty() {
            let noted = |user_data| Completion { user_data, result: 0, more: false };
            return self.noted.pop_front().map(noted);
        }
        // SAFETY: the only completion queue object, dropped at the end of the function, which
        // gives the entry back to the kernel.
        let entry = unsafe { self.io().completion_shared() }.next()?;
        Some(Completion {
            user_data: entry.user_data(),
            result: entry.result(),
            more: cqueue::more(entry.flags()),
        })
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        // The kernel ends a ring some time after it is closed, seconds on a busy host. Its files, and locks on them, are let go of now.
        let none = vec![-1; self.slots.count() as usize];
        let result = self.submitter.register_files_update(0, &none);
        debug_assert!(result.is_ok(), "unregistering all files: {result:?}");
        if self.ring_registered {
            // The thread's table of rings would keep this one open for as long as the thread lives.
            let result = self.submitter.unregister_ring_fd();
            debug_assert!(result.is_ok(), "unregistering the ring: {result:?}");
        }
        // SAFETY: dropped once, here, and not used again.
        unsafe { ManuallyDrop::drop(&mut self.submitter) };
        // SAFETY: the pointer comes from `Box::leak` in `from_rung`, and the last reference into it was
        // the submitter; the status holds addresses that nobody uses any more.
        drop(unsafe { Box::from_raw(self.io.as_ptr()) });
    }
}

impl std::fmt::Debug for Ring {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ring").field("rung", &self.rung).field("slots", &self.slots).finish()
    }
}
