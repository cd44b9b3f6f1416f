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
use crate::Tag;
use crate::slab::IN_FLIGHT_MAX;

/// Operations of a lane that may occupy a thread each, at once.
pub(super) const WORKERS: u32 = 16;
/// Threads that a lane needs: those, one for its flushes, one for the buffered writes that the kernel does one by one.
pub(super) const THREADS: u32 = WORKERS + 2;

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
    /// Requests whose last round was refused, until they have begun again; with the moment before which they must not.
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
        Workers { busy: 0, reads, writes, refused: Vec::with_capacity(IN_FLIGHT_MAX) }
    }

    /// How the next round of a read or write goes.
    #[inline]
    pub(super) fn leave(&self, tag: Tag, read: bool) -> Leave {
        let manner = if read { self.reads } else { self.writes };
        match manner {
            Manner::Free => Leave { nowait: false, worker: false },
            Manner::Asks if self.refused.is_empty() || self.find(tag).is_none() => {
                Leave { nowait: true, worker: false }
            }
            Manner::Asks | Manner::Waits => Leave::WORKER,
        }
    }

    fn find(&self, tag: Tag) -> Option<usize> {
        self.refused.iter().position(|(refused, _)| *refused == tag)
    }

    /// Whether there is room for one more that may occupy a thread.
    pub(super) fn has_room(&self) -> bool {
        self.busy < WORKERS
    }

    /// An operation has begun.
    #[inline]
    pub(super) fn begun(&mut self, tag: Tag, leave: Leave) {
        self.busy += u32::from(leave.worker);
        if !self.refused.is_empty()
            && let Some(index) = self.find(tag)
        {
            self.refused.swap_remove(index);
        }
    }

    /// An operation has ended.
    #[inline]
    pub(super) fn ended(&mut self, leave: Leave) {
        self.busy -= u32::from(leave.worker);
    }

    /// An operation was refused; its request is tried again with a thread, and not before a moment.
    pub(super) fn refuse(&mut self, tag: Tag, until: Option<Instant>) {
        // Full only of requests that were taken back while they waited here; forgetting one costs it a question.
        if self.refused.len() == IN_FLIGHT_MAX {
            self.refused.swap_remove(0);
        }
        self.refused.push((tag, until));
    }

    /// The file system cannot say after all.
    pub(super) fn never_ask(&mut self) {
        (self.reads, self.writes) = (Manner::Waits, Manner::Waits);
    }

    /// Until when a request must not be tried again.
    #[inline]
    pub(super) fn pause(&self, tag: Tag) -> Option<Instant> {
        if self.refused.is_empty() {
            return None;
        }
        let (_, until) = self.refused[self.find(tag)?];
        until.filter(|until| *until > Instant::now())
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

    #[test]
    fn only_what_may_occupy_a_thread_is_counted() {
        let (free, asks) =
            (Leave { nowait: false, worker: false }, Leave { nowait: true, worker: false });
        for (target, read, write) in [
            (target(false, true, true), asks, asks),
            (target(true, true, true), asks, asks),
            (target(false, false, true), free, free),
            (target(true, false, true), free, Leave::WORKER),
            (target(false, false, false), Leave::WORKER, Leave::WORKER),
            (target(false, true, false), Leave::WORKER, Leave::WORKER),
        ] {
            let workers = Workers::new(&target);
            let found = (workers.leave(Tag(1), true), workers.leave(Tag(1), false));
            assert_eq!(found, (read, write), "{target:?}");
        }
    }

    #[test]
    fn a_refused_request_goes_with_a_thread_once_and_others_still_ask() {
        let mut workers = Workers::new(&target(false, true, true));
        workers.refuse(Tag(1), None);
        assert!(workers.leave(Tag(2), true).nowait);
        assert_eq!(workers.leave(Tag(1), true), Leave::WORKER);
        assert_eq!(workers.pause(Tag(1)), None);
        workers.begun(Tag(1), Leave::WORKER);
        assert!(workers.leave(Tag(1), true).nowait, "its next round asks again");
        for tag in 2..=WORKERS {
            assert!(workers.has_room());
            workers.begun(Tag(tag), Leave::WORKER);
        }
        assert!(!workers.has_room());
        workers.ended(Leave::WORKER);
        assert!(workers.has_room());
        let later = Instant::now() + std::time::Duration::from_secs(60);
        workers.refuse(Tag(1), Some(later));
        assert_eq!(workers.pause(Tag(1)), Some(later));
        assert_eq!(workers.pause(Tag(2)), None);
    }
}
