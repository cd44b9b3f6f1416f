//! The operations that are kept: those that go on, and some that have ended.

use super::{Operation, Step};
use std::collections::BTreeMap;

/// Most operations that are kept after their end.
pub const ENDED_MAX: usize = 100;

/// Operations by number.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Journal {
    /// The highest number that was given out.
    pub last: u64,
    /// The operations.
    pub operations: BTreeMap<u64, Operation>,
}

impl Journal {
    /// Adds an operation, which gets a number.
    pub fn begin(&mut self, kind: super::Kind, step: Step, work: super::Work, at_ms: u64) -> u64 {
        self.last += 1;
        let id = self.last;
        let operation = Operation {
            id,
            kind,
            step,
            caller: None,
            started_ms: at_ms,
            ended_ms: None,
            cancelled: false,
            error: None,
            shown: false,
            lasting: false,
            work,
        };
        self.operations.insert(id, operation);
        id
    }

    /// Those that go on.
    pub fn running(&self) -> impl Iterator<Item = &Operation> {
        self.operations.values().filter(|operation| !operation.step.has_ended())
    }

    /// Forgets what nobody wants to see, and the oldest that have ended.
    pub fn prune(&mut self) {
        self.operations.retain(|_, operation| !operation.step.has_ended() || operation.shown);
        let ended = self.operations.values().filter(|operation| operation.step.has_ended());
        let mut ended: Vec<(u64, u64)> =
            ended.map(|operation| (operation.ended_ms.unwrap_or(0), operation.id)).collect();
        ended.sort_unstable();
        for (_, id) in ended.iter().rev().skip(ENDED_MAX) {
            self.operations.remove(id);
        }
    }
}
