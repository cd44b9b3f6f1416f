//! Descriptors through which a volume learns of writes that were lost.
//!
//! The kernel tells of a page that it could not write back once to each *open file*, whoever asks first: a durable write, or another lane's
//! flush. So everything that writes goes through one open file, which holds the lock, and flushes go through others, opened with the volume and
//! kept as long as it: each is told of every loss since then, and only a flush takes that answer. No two flushes use one of them at
//! the same time, so whoever gets it next knows already what the one before it was told. Lanes that share one stand in line for it, and
//! look again whether it is their turn: a thread of another channel cannot be told.

use std::collections::VecDeque;
use std::fs::File;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::files::Files;

/// The most of them. Lanes beyond that share, and their flushes wait for each other.
const COUNT_MAX: usize = 16;
/// Until a lane that stands in line looks again: this at first, then a quarter longer each time, as long as the last one at most. So it comes late by no
/// more than the first and a quarter of what it has waited, and a disk that hangs costs those who wait for it little.
const LOOK_AGAIN: (Duration, Duration) = (Duration::from_micros(200), Duration::from_millis(10));

#[derive(Debug)]
pub(super) struct Witnesses {
    all: Vec<Witness>,
    /// The name of the next seat.
    next: AtomicU32,
}

#[derive(Debug)]
struct Witness {
    file: File,
    /// Lanes that have it for theirs.
    users: AtomicU32,
    line: Mutex<Line>,
}

/// Who flushes, and who wants to.
#[derive(Debug, Default)]
struct Line {
    /// The first one's flush has begun.
    busy: bool,
    seats: VecDeque<u32>,
}

/// A lane's share in a witness.
#[derive(Debug)]
pub(super) struct Seat {
    witnesses: Arc<Witnesses>,
    index: usize,
    name: u32,
    look_again: Duration,
}

impl Witnesses {
    /// One for each CPU, which is one for each channel mostly.
    pub(super) fn open(file: &File, files: &dyn Files) -> std::io::Result<Witnesses> {
        // A simulation is the same on every machine.
        let cpus = || std::thread::available_parallelism().map_or(1, usize::from);
        let count = if cfg!(feature = "sim") { 2 } else { cpus().min(COUNT_MAX) };
        Witnesses::some(file, count, files)
    }

    pub(super) fn some(file: &File, count: usize, files: &dyn Files) -> std::io::Result<Witnesses> {
        let open = |_| {
            let file = files.again(file)?;
            Ok(Witness { file, users: AtomicU32::new(0), line: Mutex::default() })
        };
        let all = (0..count).map(open).collect::<std::io::Result<_>>()?;
        Ok(Witnesses { all, next: AtomicU32::new(0) })
    }

    /// For a volume that loses nothing.
    pub(super) fn none() -> Witnesses {
        Witnesses { all: Vec::new(), next: AtomicU32::new(0) }
    }

    /// For a new lane, at the witness that the fewest have.
    pub(super) fn seat(self: &Arc<Witnesses>) -> Option<Seat> {
        let users = |index: &usize| self.all[*index].users.load(Ordering::Relaxed);
        let index = loop {
            let index = (0..self.all.len()).min_by_key(users)?;
            let (witness, now) = (&self.all[index].users, users(&index));
            // Another channel's lane may come at the same time.
            let (order, failed) = (Ordering::Relaxed, Ordering::Relaxed);
            if witness.compare_exchange(now, now + 1, order, failed).is_ok() {
                break index;
            }
        };
        let name = self.next.fetch_add(1, Ordering::Relaxed);
        let seat = Seat { witnesses: self.clone(), index, name, look_again: LOOK_AGAIN.0 };
        // Standing in line allocates nothing.
        let users = users(&index) as usize;
        seat.line().seats.reserve(users);
        Some(seat)
    }
}

impl Seat {
    fn witness(&self) -> &Witness {
        &self.witnesses.all[self.index]
    }

    /// Held for a few instructions at a time. What a flush has found out (poison) is seen by the one behind it.
    fn line(&self) -> MutexGuard<'_, Line> {
        self.witness().line.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn file(&self) -> BorrowedFd<'_> {
        self.witness().file.as_fd()
    }

    /// Takes the witness for a flush, or stands in line for it.
    ///
    /// # Errors
    ///
    /// After how long to ask again, where it is not this lane's turn.
    pub(super) fn take(&mut self) -> Result<(), Duration> {
        let mut line = self.line();
        if !line.seats.contains(&self.name) {
            line.seats.push_back(self.name);
        }
        let first = line.seats.front() == Some(&self.name);
        line.busy |= first;
        drop(line);
        let after = self.look_again;
        self.look_again = if first { LOOK_AGAIN.0 } else { (after * 5 / 4).min(LOOK_AGAIN.1) };
        if first { Ok(()) } else { Err(after) }
    }

    /// The flush is over and its result known to the volume, or it does not begin: this lane leaves the line.
    pub(super) fn give_back(&mut self) {
        let mut line = self.line();
        if line.seats.front() == Some(&self.name) {
            line.busy = false;
        }
        line.seats.retain(|name| *name != self.name);
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        // The answer to a flush that is under way would be lost with its lane: nobody trusts this witness any more.
        let line = self.line();
        if line.busy && line.seats.front() == Some(&self.name) {
            return;
        }
        drop(line);
        self.give_back();
        self.witness().users.fetch_sub(1, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats<const N: usize>(count: usize) -> (Arc<Witnesses>, [Seat; N]) {
        let file = tempfile::tempfile().expect("file");
        let witnesses = Arc::new(Witnesses::some(&file, count, &crate::Here).expect("open"));
        let seats = std::array::from_fn(|_| witnesses.seat().expect("there are some"));
        (witnesses, seats)
    }

    #[test]
    fn a_new_lane_gets_the_witness_that_the_fewest_have() {
        let (witnesses, [a, b, c]) = seats(2);
        assert_eq!([a.index, b.index, c.index], [0, 1, 0]);
        drop([a, c]);
        let next: [Seat; 2] = std::array::from_fn(|_| witnesses.seat().expect("one"));
        assert_eq!(next.each_ref().map(|seat| seat.index), [0, 0]);
        assert!(Arc::new(Witnesses::none()).seat().is_none());
    }

    #[test]
    fn lanes_that_share_take_turns() {
        let (_, [mut a, mut b, mut c]) = seats(1);
        assert!(a.take().is_ok() && b.take().is_err() && c.take().is_err());
        a.give_back();
        assert!(a.take().is_err(), "two stand in line before it");
        assert!(c.take().is_err() && b.take().is_ok());
        drop(c);
        b.give_back();
        assert!(a.take().is_ok(), "who is gone does not stand in line");
    }

    #[test]
    fn who_waits_long_looks_less_often_and_is_late_by_a_part_of_that() {
        let (_, [mut a, mut b]) = seats(1);
        assert!(a.take().is_ok());
        let pauses: Vec<Duration> = (0..24).map(|_| b.take().expect_err("taken")).collect();
        assert_eq!((pauses[0], pauses[23]), LOOK_AGAIN);
        let mut waited = Duration::ZERO;
        for pause in pauses {
            assert!(pause <= LOOK_AGAIN.0 + waited / 4, "{pause:?} after {waited:?}");
            waited += pause;
        }
        a.give_back();
        assert!(b.take().is_ok());
        assert_eq!(a.take(), Err(LOOK_AGAIN.0));
    }
}
