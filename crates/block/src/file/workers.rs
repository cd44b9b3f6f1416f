//! Which operations may occupy a thread of the kernel, and how many of a lane do so at once: bookkeeping without I/O.
//!
//! What io_uring cannot do without waiting it gives to threads that all lanes of a channel share. A file system that hangs keeps
//! every thread that it gets, and if it gets all, nothing that needs one goes on anywhere: no flush of a healthy volume. So a lane has at most
//! [`WORKERS`] such operations under way, its ring has threads for all its lanes together ([`uring::Ring::add_workers`]), and the rest waits in
//! the channel.
//!
//! | operation | threads |
//! |---|---|
//! | direct I/O | none, unless the file system has to wait: it is asked to say so instead (`RWF_NOWAIT`), and the operation is done again, counted |
//! | buffered reads | none: the kernel waits for a page without a thread |
//! | buffered writes to a regular file | one for the file: the kernel does them one after the other |
//! | where the file system cannot say; buffered writes to a device; `fallocate` | one each, counted |
//! | flushes | one for the lane |
//!
//! Left: the kernel keeps the buffered writes, and the `fallocate`s, of regular files apart by one of 64 numbers that it makes of the file. Two
//! files of a channel that have the same number wait for each other, also when one hangs. Direct writes do not.

use std::time::Instant;

use super::target::Target;
use crate::request::DEPTH_MAX;
use crate::{OpKind, Request, Tag};

/// Operations of a lane that may occupy a thread each, at once.
pub(super) const WORKERS: u32 = 16;
/// Threads that a lane needs: those, one for its flushes, one for the buffered writes that the kernel does one by one.
pub(super) const THREADS: u32 = WORKERS + 2;

/// The mark of a request whose last round was refused ([`Request::passed`]): it waits with it, and loses it when it begins.
pub(super) const REFUSED: u8 = 1 << DEPTH_MAX;
/// Refusals whose requests have not come again, at most.
const REFUSED_MAX: usize = 64;

/// How operations of one kind go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Manner {
    /// They need no thread of their own.
    Free,
    /// They are asked to say whether they do.
    Asks,
    /// They may.
    Waits,
}

/// How an operation goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Leave {
    /// It refuses to wait.
    pub(super) nowait: bool,
    /// It may occupy a thread, and is counted.
    pub(super) worker: bool,
}

impl Leave {
    /// An operation that a thread does.
    pub(super) const WORKER: Leave = Leave { nowait: false, worker: true };
}

/// The state of a lane.
#[derive(Debug)]
pub(super) struct Workers {
    busy: u32,
    reads: Manner,
    writes: Manner,
    /// Requests whose last round was refused, until they come again, which is at once mostly; with the moment before which they must not begin.
    refused: Vec<(Tag, Option<Instant>)>,
}

impl Workers {
    pub(super) fn new(target: &Target) -> Workers {
        let (reads, writes) = match (target.nowait, target.direct.is_some()) {
            (true, true) => (Manner::Asks, Manner::Asks),
            (true, false) if target.block_device => (Manner::Free, Manner::Waits),
            (true, false) => (Manner::Free, Manner::Free),
            (false, _) => (Manner::Waits, Manner::Waits),
        };
        Workers { busy: 0, reads, writes, refused: Vec::with_capacity(REFUSED_MAX) }
    }

    /// How the next round of a read or write goes.
    #[inline]
    pub(super) fn leave(&self, request: &Request<'_>) -> Leave {
        let manner = if request.op == OpKind::Read { self.reads } else { self.writes };
        match manner {
            Manner::Free => Leave { nowait: false, worker: false },
            Manner::Asks if request.passed & REFUSED == 0 => Leave { nowait: true, worker: false },
            Manner::Asks | Manner::Waits => Leave::WORKER,
        }
    }

    /// Whether there is room for one more that goes like this.
    #[inline]
    pub(super) fn has_room(&self, leave: Leave) -> bool {
        !leave.worker || self.busy < WORKERS
    }

    /// An operation has begun.
    #[inline]
    pub(super) fn begun(&mut self, leave: Leave) {
        self.busy += u32::from(leave.worker);
    }

    /// An operation has ended.
    #[inline]
    pub(super) fn ended(&mut self, leave: Leave) {
        self.busy -= u32::from(leave.worker);
    }

    /// An operation was refused; its request is tried again with a thread, and not before a moment.
    pub(super) fn refuse(&mut self, tag: Tag, until: Option<Instant>) {
        // Full only of requests that were taken back before they came again; forgetting one costs it a question.
        if self.refused.len() == REFUSED_MAX {
            self.refused.remove(0);
        }
        self.refused.push((tag, until));
    }

    /// The file system cannot say after all.
    pub(super) fn never_ask(&mut self) {
        (self.reads, self.writes) = (Manner::Waits, Manner::Waits);
    }

    /// A request comes, again perhaps: if it was refused it carries the mark from now on. Until when it must not be tried.
    #[inline]
    pub(super) fn pause(&mut self, request: &mut Request<'_>) -> Option<Instant> {
        if self.refused.is_empty() {
            return None;
        }
        let index = self.refused.iter().position(|(refused, _)| *refused == request.tag)?;
        let (_, until) = self.refused.swap_remove(index);
        request.passed |= REFUSED;
        until.filter(|until| *until > memory::clock::instant())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::file::target::Direct;

    fn target(block_device: bool, direct: bool, nowait: bool) -> Target {
        Target {
            block_device,
            direct: direct.then_some(Direct { memory: 512, offset: 512 }),
            nowait,
            ..Target::plain()
        }
    }

    fn request(op: OpKind, tag: u32) -> Request<'static> {
        Request { op, offset: 0, len: 512, bufs: &[], tag: Tag(tag), done: 0, passed: 0 }
    }

    fn read(tag: u32) -> Request<'static> {
        request(OpKind::Read, tag)
    }

    #[test]
    fn only_what_may_occupy_a_thread_is_counted() {
        let (free, asks) =
            (Leave { nowait: false, worker: false }, Leave { nowait: true, worker: false });
        for (target, reads, writes) in [
            (target(false, true, true), asks, asks),
            (target(true, true, true), asks, asks),
            (target(false, false, true), free, free),
            (target(true, false, true), free, Leave::WORKER),
            (target(false, false, false), Leave::WORKER, Leave::WORKER),
            (target(false, true, false), Leave::WORKER, Leave::WORKER),
        ] {
            let mut workers = Workers::new(&target);
            let write = request(OpKind::Write { fua: false }, 1);
            let found = (workers.leave(&read(1)), workers.leave(&write));
            assert_eq!(found, (reads, writes), "{target:?}");
            for _ in 0..WORKERS {
                assert!(workers.has_room(Leave::WORKER));
                workers.begun(Leave::WORKER);
            }
            assert!(!workers.has_room(Leave::WORKER) && workers.has_room(asks));
            workers.ended(Leave::WORKER);
            assert!(workers.has_room(Leave::WORKER));
        }
    }

    #[test]
    fn a_refused_request_goes_with_a_thread_and_others_still_ask() {
        let mut workers = Workers::new(&target(false, true, true));
        let (mut refused, mut other) = (read(1), read(2));
        workers.refuse(refused.tag, None);
        assert_eq!((workers.pause(&mut other), workers.pause(&mut refused)), (None, None));
        assert!(workers.leave(&other).nowait);
        assert_eq!(workers.leave(&refused), Leave::WORKER);
        assert!(workers.refused.is_empty(), "nobody looks for it while it waits");
        assert_eq!(workers.leave(&refused), Leave::WORKER, "however often it comes");
        let later = Instant::now() + std::time::Duration::from_secs(60);
        workers.refuse(other.tag, Some(later));
        assert_eq!(workers.pause(&mut other), Some(later));
        assert_eq!(workers.pause(&mut other), None, "it comes when it was told to");
    }

    #[test]
    fn refusals_of_requests_that_never_come_again_are_forgotten() {
        let mut workers = Workers::new(&target(false, true, true));
        for tag in 0..=REFUSED_MAX as u32 {
            workers.refuse(Tag(tag), None);
        }
        let (mut first, mut last) = (read(0), read(REFUSED_MAX as u32));
        assert_eq!((workers.pause(&mut first), workers.pause(&mut last)), (None, None));
        assert_eq!((first.passed, last.passed), (0, REFUSED));
    }
}
