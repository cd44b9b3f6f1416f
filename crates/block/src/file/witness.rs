//! Descriptors through which a volume learns of writes that were lost.
//!
//! The kernel tells of a page that it could not write back once to each *open file*, whoever asks first: a durable write, or another lane's
//! flush. So everything that writes goes through one open file, which holds the lock, and flushes go through others, opened with the volume and
//! kept as long as it: each is told of every loss since then, and only a flush takes that answer. No two flushes use one of them at
//! the same time, so whoever gets it next knows already what the one before it was told.

use std::fs::File;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// The most of them. Lanes beyond that share, and their flushes wait for each other.
const COUNT_MAX: usize = 16;

#[derive(Debug)]
pub(super) struct Witnesses {
    all: Vec<Witness>,
    next: AtomicUsize,
}

#[derive(Debug)]
struct Witness {
    file: File,
    busy: AtomicBool,
}

/// The one that a lane uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct WitnessId(usize);

impl Witnesses {
    /// One for each CPU, which is one for each channel mostly.
    pub(super) fn open(file: &File) -> std::io::Result<Witnesses> {
        let count = std::thread::available_parallelism().map_or(1, usize::from).min(COUNT_MAX);
        Witnesses::some(file, count)
    }

    pub(super) fn some(file: &File, count: usize) -> std::io::Result<Witnesses> {
        // The file itself, whatever has become of its path meanwhile.
        let path = format!("/proc/self/fd/{}", file.as_raw_fd());
        let open = |_| Ok(Witness { file: File::open(&path)?, busy: AtomicBool::new(false) });
        let all = (0..count).map(open).collect::<std::io::Result<_>>()?;
        Ok(Witnesses { all, next: AtomicUsize::new(0) })
    }

    /// For a volume that loses nothing.
    pub(super) fn none() -> Witnesses {
        Witnesses { all: Vec::new(), next: AtomicUsize::new(0) }
    }

    /// One for a new lane.
    pub(super) fn choose(&self) -> Option<WitnessId> {
        let turn = self.next.fetch_add(1, Ordering::Relaxed);
        turn.checked_rem(self.all.len()).map(WitnessId)
    }

    pub(super) fn file(&self, id: WitnessId) -> BorrowedFd<'_> {
        self.all[id.0].file.as_fd()
    }

    /// Takes it for a flush; false while another lane has it.
    pub(super) fn take(&self, id: WitnessId) -> bool {
        // Acquire: what the flush before has found out (poison) is seen by the next one.
        !self.all[id.0].busy.swap(true, Ordering::Acquire)
    }

    /// The flush is over, and its result known to the volume.
    pub(super) fn give_back(&self, id: WitnessId) {
        self.all[id.0].busy.store(false, Ordering::Release);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lanes_beyond_their_number_share_and_exclude_each_other() {
        let file = tempfile::tempfile().expect("file");
        let witnesses = Witnesses::some(&file, 2).expect("open");
        let [a, b, c] = std::array::from_fn(|_| witnesses.choose().expect("there are two"));
        assert!(a != b && a == c);
        assert!(witnesses.take(a) && witnesses.take(b) && !witnesses.take(c));
        witnesses.give_back(a);
        assert!(witnesses.take(c));
        assert_eq!(Witnesses::none().choose(), None);
    }
}
