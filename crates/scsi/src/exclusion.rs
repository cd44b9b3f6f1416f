//! [`Exclusion`]: a range of blocks that one command alone may change, for COMPARE AND WRITE.
//!
//! SBC-3, 5.2: read, compare and write are one uninterrupted series of actions. So between the read and the end of the write no other
//! write to these blocks may begin *or end*, whichever channel or adapter it came by. Reads are not kept out: to them it is a write
//! like any other.
//!
//! # Why a write pays almost nothing
//!
//! Each channel has a [`Writer`] with a count of its writes in flight, in a cache line that only this channel writes. The logical
//! unit has `held`, the number of exclusive ranges, in a line that is written by COMPARE AND WRITE only.
//!
//! ```text
//! write:     count += 1 ; fence ; if held != 0 { count -= 1; slow way }
//! exclusive: held += 1  ; fence ; wait until every count is 0
//! ```
//!
//! Both store, then fence (SeqCst), then load the other's word, so at least one of the two sees the other. A write that
//! sees `held` goes the slow way: under the lock it is refused if it overlaps a range, else noted by its range. Since nobody
//! takes the quick way while `held` is not 0, the counts fall to 0 by themselves and stay there; the wait ends when the writes
//! end that were in flight when it began. Nothing here blocks: whoever must wait is told so and asks again.

use std::ops::Range;
use std::sync::atomic::{AtomicU32, Ordering, fence};
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a volume.
pub(crate) type Bytes = Range<u64>;

fn overlap(a: &Bytes, b: &Bytes) -> bool {
    a.start < b.end && b.start < a.end
}

/// Room for so many ranges from the first exclusive one on.
const NOTED: usize = 256;

#[derive(Debug, Default)]
#[repr(align(128))]
struct Line(AtomicU32);

/// The exclusive ranges of a logical unit.
#[derive(Debug, Default)]
pub(crate) struct Exclusion {
    held: Line,
    table: Mutex<Table>,
}

#[derive(Debug, Default)]
struct Table {
    counts: Vec<Arc<Line>>,
    exclusive: Vec<Entry>,
    /// Writes that are in flight and went the slow way.
    writes: Vec<Entry>,
    next: u64,
}

#[derive(Debug)]
struct Entry {
    id: u64,
    range: Bytes,
}

/// One channel's way to write to a logical unit. It is used on the channel's thread alone.
#[derive(Debug)]
pub struct Writer {
    exclusion: Arc<Exclusion>,
    count: Arc<Line>,
}

/// A write that may go on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Permit {
    Quick,
    Noted(u64),
}

/// A range that is, or will be, exclusive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Claim(u64);

impl Exclusion {
    fn table(&self) -> std::sync::MutexGuard<'_, Table> {
        self.table.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn writer(self: &Arc<Exclusion>) -> Writer {
        let count = Arc::new(Line::default());
        self.table().counts.push(count.clone());
        Writer { exclusion: self.clone(), count }
    }
}

impl Writer {
    /// Whether this is a way to that logical unit.
    pub(crate) fn leads_to(&self, exclusion: &Arc<Exclusion>) -> bool {
        Arc::ptr_eq(&self.exclusion, exclusion)
    }

    /// Begins a write. `None`: an exclusive range is in the way; ask again.
    #[inline(always)] // Of each write.
    pub(crate) fn enter(&self, range: Bytes) -> Option<Permit> {
        // One writer: load and store need not be one operation.
        let count = self.count.0.load(Ordering::Relaxed);
        self.count.0.store(count + 1, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        if self.exclusion.held.0.load(Ordering::Relaxed) == 0 {
            return Some(Permit::Quick);
        }
        self.count.0.store(count, Ordering::Release);
        self.enter_slowly(range)
    }

    #[cold]
    fn enter_slowly(&self, range: Bytes) -> Option<Permit> {
        let mut table = self.exclusion.table();
        if table.exclusive.iter().any(|each| overlap(&each.range, &range)) {
            return None;
        }
        let id = table.next;
        table.next += 1;
        table.writes.push(Entry { id, range });
        Some(Permit::Noted(id))
    }

    /// Ends a write. It is on the medium, or will never be.
    #[inline]
    pub(crate) fn leave(&self, permit: Permit) {
        match permit {
            Permit::Quick => {
                let count = self.count.0.load(Ordering::Relaxed);
                debug_assert!(count > 0);
                // Release: who sees 0 also sees what the write did.
                self.count.0.store(count - 1, Ordering::Release);
            }
            Permit::Noted(id) => self.exclusion.table().writes.retain(|each| each.id != id),
        }
    }

    /// Announces that a range will be exclusive: no write to it begins any more. `None`: it overlaps one that is; ask again.
    pub(crate) fn claim(&self, range: Bytes) -> Option<Claim> {
        let mut table = self.exclusion.table();
        if table.exclusive.iter().any(|each| overlap(&each.range, &range)) {
            return None;
        }
        if table.writes.capacity() == 0 {
            // Once, so that no write has to; beyond that the lists grow by doubling.
            table.writes.reserve(NOTED);
            table.exclusive.reserve(NOTED);
        }
        let id = table.next;
        table.next += 1;
        table.exclusive.push(Entry { id, range });
        self.exclusion.held.0.fetch_add(1, Ordering::SeqCst);
        Some(Claim(id))
    }

    /// Whether the writes that were in flight when the range was claimed have ended.
    pub(crate) fn is_exclusive(&self, claim: Claim) -> bool {
        fence(Ordering::SeqCst);
        let table = self.exclusion.table();
        let Some(mine) = table.exclusive.iter().find(|each| each.id == claim.0) else {
            return false;
        };
        let quick = table.counts.iter().any(|count| count.0.load(Ordering::Acquire) != 0);
        !quick && !table.writes.iter().any(|each| overlap(&each.range, &mine.range))
    }

    /// Gives a range back.
    pub(crate) fn give_back(&self, claim: Claim) {
        let mut table = self.exclusion.table();
        let before = table.exclusive.len();
        table.exclusive.retain(|each| each.id != claim.0);
        if table.exclusive.len() < before {
            self.exclusion.held.0.fetch_sub(1, Ordering::SeqCst);
        }
    }
}

impl Drop for Writer {
    fn drop(&mut self) {
        let idle = self.count.0.load(Ordering::Relaxed) == 0;
        debug_assert!(idle || memory::is_ending(), "a write is in flight");
        let count = &self.count;
        self.exclusion.table().counts.retain(|each| !Arc::ptr_eq(each, count));
    }
}

#[cfg(test)]
mod tests;
