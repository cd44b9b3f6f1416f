//! Requests whose records older programs do not know: they wait until a superblock says that such a program must not open the pool.

use super::*;

/// Those that wait.
#[derive(Debug, Default)]
pub(super) struct Features {
    /// By the bit of `REFUSE` that is to be there.
    waiting: Vec<(u64, u64, Request)>,
}

impl Features {
    /// The requests that nobody will carry out any more.
    pub(super) fn stop(&mut self) -> Vec<u64> {
        self.waiting.drain(..).map(|(_, tag, _)| tag).collect()
    }
}

impl Pool {
    /// Whether a request has to wait for a feature; if so it does, and is begun again then.
    pub(super) fn waits_for_feature(&mut self, bit: u64, tag: u64, request: Request) -> bool {
        let waits = self.chosen.superblock.features[0] & bit == 0;
        if waits {
            self.features.waiting.push((bit, tag, request));
        }
        waits
    }

    /// The bits of `REFUSE` that the next superblock gets besides those that it has.
    pub(super) fn wanted_features(&self) -> u64 {
        let there = self.chosen.superblock.features[0];
        let waiting = self.features.waiting.iter().map(|(bit, ..)| *bit);
        waiting.fold(self.cuts.wanted_feature(), |all, bit| all | bit) & !there
    }

    /// Begins with what has waited long enough.
    pub(super) fn turn_features(&mut self) {
        if self.phase != Phase::Serving {
            return;
        }
        let there = self.chosen.superblock.features[0];
        let ready = |waiting: &mut (u64, u64, Request)| there & waiting.0 != 0;
        for (_, tag, request) in self.features.waiting.extract_if(.., ready).collect::<Vec<_>>() {
            self.begin(tag, request);
        }
    }
}
