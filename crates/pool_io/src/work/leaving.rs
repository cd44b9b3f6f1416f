//! Removals of PVs: who waits for their beginning, those that cannot go on, and those that wait for room to begin.
//!
//! A removal without room is refused. One that was promised before the pool was opened is not: it is *due*, shown as one that goes on
//! with nothing moved, told as a trouble, and tried again by itself.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use memory::clock;
use pool::{Fault, Reply, Request};

use super::{Asker, Work};
use crate::post::ReplyTo;

/// How long after it was refused it is tried again; twice as long each time, up to the last.
const AGAIN: (Duration, Duration) = (Duration::from_secs(2), Duration::from_secs(60));

#[derive(Debug)]
pub(super) struct Removals {
    /// Requests for removals that were just made.
    beginning: Vec<u64>,
    /// Those that cannot go on, or begin, and why.
    pub(super) stuck: BTreeMap<u16, Fault>,
    /// PVs whose removal begins when there is room.
    due: BTreeSet<u16>,
    again: Option<Instant>,
    again_in: Duration,
}

impl Default for Removals {
    fn default() -> Removals {
        let (beginning, stuck, due) = (Vec::new(), BTreeMap::new(), BTreeSet::new());
        Removals { beginning, stuck, due, again: None, again_in: AGAIN.0 }
    }
}

impl Removals {
    /// When it is tried again.
    pub(super) fn next(&self) -> Option<Instant> {
        self.again.filter(|_| !self.due.is_empty())
    }

    /// PVs whose removal has not begun, for want of room.
    pub(super) fn due(&self) -> impl Iterator<Item = u16> {
        self.due.iter().copied().filter(|pv| self.stuck.contains_key(pv))
    }

    /// There may be room now.
    pub(super) fn stir(&mut self) {
        (self.again, self.again_in) = (Some(clock::instant()), AGAIN.0);
    }
}

impl Work {
    /// Begins to remove a PV; one that was promised waits for room.
    pub(crate) fn leave(&mut self, pv: u16, promised: bool, reply: ReplyTo<Result<(), Fault>>) {
        self.removals.stuck.remove(&pv);
        if promised {
            self.removals.due.insert(pv);
            self.removals.stir();
        }
        self.begin_leave(pv, Some(reply));
    }

    fn begin_leave(&mut self, pv: u16, reply: Option<ReplyTo<Result<(), Fault>>>) {
        self.submit(Asker::Leave(pv, reply), Request::RemovePv { pv });
        self.removals.beginning.push(self.next);
    }

    /// Those that are due are tried, now and then.
    pub(super) fn leave_again(&mut self) {
        let now = clock::instant();
        if self.removals.next().is_some_and(|again| again <= now) {
            self.removals.again = Some(now + self.removals.again_in);
            self.removals.again_in = (self.removals.again_in * 2).min(AGAIN.1);
            let due: Vec<u16> = self.removals.due().collect();
            due.into_iter().for_each(|pv| self.begin_leave(pv, None));
        }
    }

    /// Removals that were not refused at once have begun.
    pub(super) fn begun(&mut self) {
        for tag in std::mem::take(&mut self.removals.beginning) {
            let Some(Asker::Leave(pv, reply)) = self.asks.get_mut(&tag) else { continue };
            if let Some(reply) = reply.take() {
                let _ = reply.send(Ok(()));
            }
            if self.removals.due.remove(pv) {
                self.removals.stuck.remove(pv);
                self.stale = true;
            }
        }
    }

    /// A removal is over, or was refused.
    pub(super) fn left(
        &mut self,
        pv: u16,
        reply: Option<ReplyTo<Result<(), Fault>>>,
        result: Result<Reply, Fault>,
    ) {
        self.stale = true;
        let waits = result == Err(Fault::NoSpace) && self.removals.due.contains(&pv);
        if waits {
            self.removals.stuck.insert(pv, Fault::NoSpace);
            self.tell();
        } else {
            self.removals.due.remove(&pv);
        }
        match (reply, result) {
            (Some(reply), _) if waits => drop(reply.send(Ok(()))),
            (Some(reply), result) => drop(reply.send(result.map(drop))),
            (None, Err(fault)) if fault != Fault::Cancelled => {
                self.removals.stuck.insert(pv, fault);
            }
            (None, _) => {}
        }
    }

    /// A PV whose removal is due stays: whether it was one.
    pub(super) fn stays(&mut self, pv: u16) -> bool {
        self.removals.stuck.remove(&pv);
        self.stale = true;
        self.removals.due.remove(&pv)
    }
}
