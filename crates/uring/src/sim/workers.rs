//! What waits because a file does not answer, or because a ring has no more of the kernel's workers (io-wq): what may block needs one, writes to one file
//! through the page cache one after the other, and of those a ring has as many as it has asked for.

use std::collections::BTreeSet;

use super::cache::{Inode, Open};
use super::{Flight, Kernel, Work};
use crate::setup::WORKERS_BOUNDED;

/// What an operation needs of the kernel's workers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Needs {
    Nothing,
    /// One.
    Worker,
    /// One, which does those of the file one after the other.
    OneOfFile,
}

impl Flight {
    fn needs(&self) -> Needs {
        let Some(open) = self.open else { return Needs::Nothing };
        match self.work {
            Work::Write { nowait: false, .. } if !open.is_direct() => Needs::OneOfFile,
            Work::Fallocate { .. } => Needs::OneOfFile,
            Work::Read { nowait: false, .. } | Work::Write { nowait: false, .. }
                if open.is_direct() =>
            {
                Needs::Worker
            }
            Work::DataSync => Needs::Worker,
            _ => Needs::Nothing,
        }
    }

    /// It says at once that it would have to wait.
    pub(super) fn refuses(&self) -> bool {
        matches!(self.work, Work::Read { nowait: true, .. } | Work::Write { nowait: true, .. })
    }
}

impl Kernel {
    /// Until when a file does not answer.
    pub(super) fn hangs(&self, open: Option<Open>, now: u64) -> bool {
        open.and_then(|open| self.hung.get(&open.inode())).is_some_and(|until| *until > now)
    }

    /// Operations that cannot go on now: those on files that do not answer, and those for which their ring has no worker, since earlier ones have them all.
    pub(super) fn held(&self, now: u64) -> BTreeSet<u64> {
        let mut held = BTreeSet::new();
        if !self.faults.workers && self.hung.is_empty() {
            return held;
        }
        let mut flights: Vec<&Flight> = self.flights.iter().collect();
        flights.sort_unstable_by_key(|flight| flight.order);
        // By ring: its busy workers, and files that have one. There are few of both.
        let mut busy: Vec<(u64, u32, Vec<Inode>)> = Vec::new();
        for flight in flights {
            if !flight.refuses() && self.hangs(flight.open, now) {
                held.insert(flight.order);
            }
            // Those of a process that has died end without being counted.
            let face = self.faces.iter().find(|face| face.id == flight.ring);
            let (Some(face), Some(open)) = (face.filter(|_| self.faults.workers), flight.open)
            else {
                continue;
            };
            let needs = flight.needs();
            if needs == Needs::Nothing {
                continue;
            }
            let known = busy.iter().position(|(ring, ..)| *ring == flight.ring);
            let at = known.unwrap_or_else(|| {
                busy.push((flight.ring, 0, Vec::new()));
                busy.len() - 1
            });
            let (_, workers, files) = &mut busy[at];
            let is_free = !files.contains(&open.inode());
            if needs == Needs::OneOfFile && is_free {
                files.push(open.inode());
            }
            let its_turn = needs == Needs::Worker || is_free;
            if its_turn && *workers < WORKERS_BOUNDED + face.workers {
                *workers += 1;
            } else {
                held.insert(flight.order);
            }
        }
        held
    }
}
