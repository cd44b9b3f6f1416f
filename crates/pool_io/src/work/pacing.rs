//! Copies begin when the clients of both PVs bear it ([`pace`](crate::pace)). Clients whose channels read and write by themselves are not seen here, so pools of one failure group copy as fast as they can.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use memory::clock;
use pool::Effect;

use super::Work;
use crate::pace::{Mark, Pace};

/// For whom an operation on a PV is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    Pool,
    Client,
    Copy,
}

/// An operation under way, as the pace of its PV knows it.
#[derive(Debug)]
pub(crate) enum Paced {
    Pool,
    Client(Mark),
    Copy,
}

#[derive(Debug)]
pub(super) struct Pacing {
    origin: Instant,
    pvs: BTreeMap<u16, Pace>,
    /// When a copy may begin that has to wait.
    due: Option<Duration>,
}

impl Default for Pacing {
    fn default() -> Pacing {
        Pacing { origin: clock::instant(), pvs: BTreeMap::new(), due: None }
    }
}

impl Pacing {
    /// The time, as paces have it.
    pub(super) fn now(&self) -> Duration {
        clock::instant().saturating_duration_since(self.origin)
    }

    /// When it is looked again; none while no copy waits.
    pub(super) fn due(&self) -> Option<Instant> {
        Some(self.origin + self.due?)
    }

    /// An operation begins.
    pub(super) fn begins(&mut self, pv: u16, whose: Whose, bytes: u64) -> Paced {
        let now = if whose == Whose::Pool { return Paced::Pool } else { self.now() };
        let pace = self.pvs.entry(pv).or_default();
        if whose == Whose::Client {
            return Paced::Client(pace.client_begins(now));
        }
        pace.copy_begins(now, bytes);
        Paced::Copy
    }

    /// It is over, or nobody waits for it any more; how long a client's took.
    pub(super) fn ends(&mut self, pv: u16, paced: Paced) -> Option<Duration> {
        let now = if let Paced::Pool = paced { return None } else { self.now() };
        let pace = self.pvs.entry(pv).or_default();
        match paced {
            Paced::Client(mark) => {
                pace.client_ends(now, mark);
                Some(mark.took(now))
            }
            Paced::Copy | Paced::Pool => {
                pace.copy_ends(now);
                None
            }
        }
    }
}

impl Work {
    /// Lets copies begin, as far as they may.
    pub(super) fn let_copies(&mut self) {
        self.pacing.due = None;
        if !self.core.has_held_copies() {
            return;
        }
        let now = self.pacing.now();
        for held in self.core.held_copies() {
            let pvs = [held.from, held.to];
            let full = |pv| self.pacing.pvs.get(pv).is_some_and(|pace| pace.is_full(now));
            if pvs.iter().any(|pv| full(pv) || self.has_copy_in_line(*pv)) {
                continue;
            }
            let mut ask = |pv| self.pacing.pvs.entry(pv).or_default().leave(now).err();
            match ask(held.from).max(ask(held.to)) {
                None => self.core.let_copy(held),
                Some(due) => {
                    let soonest = self.pacing.due.map_or(due, |other| other.min(due));
                    self.pacing.due = Some(soonest);
                }
            }
        }
    }

    /// Whether a copy waits for a buffer there, behind clients' requests: it is counted when it has one.
    fn has_copy_in_line(&self, pv: u16) -> bool {
        let mut line = self.todo.get(&pv).into_iter().flatten();
        line.any(|todo| matches!(todo.effect, Effect::Copy { .. }))
    }
}
