//! Which flush an `fdatasync` serves: pure bookkeeping.
//!
//! An `fdatasync` covers the writes that were complete when it began. A flush that arrives while one runs may stand for a write
//! that completed after that beginning, so it must wait for the *next* one; all that arrive meanwhile share it. So there is
//! one group running and one group waiting, and at most two `fdatasync` stand between a flush and its answer.

use crate::Tag;
use crate::slab::IN_FLIGHT_MAX;

/// What the caller has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begin {
    /// Start an `fdatasync`, and tell [`FlushGroup::cancel`] if that was impossible.
    Sync,
    /// Nothing: the flush waits for the next one.
    Waits,
    /// There is no room; nothing was noted.
    Full,
}

/// The flushes of one lane.
#[derive(Debug)]
pub(super) struct FlushGroup {
    running: Vec<Tag>,
    waiting: Vec<Tag>,
}

impl FlushGroup {
    pub(super) fn new() -> FlushGroup {
        FlushGroup {
            running: Vec::with_capacity(IN_FLIGHT_MAX),
            waiting: Vec::with_capacity(IN_FLIGHT_MAX),
        }
    }

    /// A flush arrives.
    pub(super) fn begin(&mut self, tag: Tag) -> Begin {
        if self.running.is_empty() {
            self.running.push(tag);
            return Begin::Sync;
        }
        if self.waiting.len() == IN_FLIGHT_MAX {
            return Begin::Full;
        }
        self.waiting.push(tag);
        Begin::Waits
    }

    /// The `fdatasync` that [`FlushGroup::begin`] asked for could not be started.
    pub(super) fn cancel(&mut self) {
        debug_assert!(self.running.len() == 1 && self.waiting.is_empty());
        self.running.clear();
    }

    /// The running `fdatasync` is over. Calls `done` for each flush it served; true means that the next one is to be started.
    pub(super) fn finish(&mut self, done: impl FnMut(Tag)) -> bool {
        self.running.drain(..).for_each(done);
        std::mem::swap(&mut self.running, &mut self.waiting);
        !self.running.is_empty()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.running.is_empty() && self.waiting.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Against a log of events: each flush is answered by the end of an fdatasync that began after it arrived.
        #[test]
        fn a_flush_is_served_by_a_later_sync(arrivals in prop::collection::vec(any::<bool>(), 1..200)) {
            let mut group = FlushGroup::new();
            let (mut began, mut time, mut next) = (None, 0_u32, 0_u32);
            let mut arrived = Vec::new();
            let mut answered = Vec::new();
            let finish = |group: &mut FlushGroup, began: &mut Option<u32>, time: u32, arrived: &[u32], answered: &mut Vec<u32>| {
                let Some(start) = *began else { return };
                let again = group.finish(|tag| {
                    assert!(arrived[tag.0 as usize] <= start, "served by a sync that began before it");
                    answered.push(tag.0);
                });
                *began = again.then_some(time);
            };
            for arrives in arrivals {
                time += 1;
                if arrives {
                    arrived.push(time);
                    match group.begin(Tag(next)) {
                        Begin::Sync => {
                            prop_assert!(began.is_none());
                            began = Some(time);
                        }
                        Begin::Waits => prop_assert!(began.is_some()),
                        Begin::Full => prop_assert!(false, "full"),
                    }
                    next += 1;
                } else {
                    finish(&mut group, &mut began, time, &arrived, &mut answered);
                }
            }
            for _ in 0..2 {
                time += 1;
                finish(&mut group, &mut began, time, &arrived, &mut answered);
            }
            prop_assert!(group.is_empty(), "two more are enough for all");
            prop_assert_eq!(answered, (0..next).collect::<Vec<u32>>());
        }
    }
}
