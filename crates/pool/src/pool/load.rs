//! What each PV has to do, and how soon it has answered what clients read: so a read goes to the leg that likely answers first.
//!
//! A leg costs its operations, with the one that is to come, times the average of what a read took there lately. Where that is not known of each, operations alone count. What is known of a leg that is not read
//! grows old: it counts half after every 128 reads that went to another, until it is read again. So one that was slow is found when it is quick, and of reads that are under way one at a time, less than one in a hundred
//! finds it slow still.

use std::collections::BTreeMap;

use super::{BLOCK_BYTES, Pool};

/// After so many reads that went to another leg less is known of one.
const PASSED: u32 = 128;
/// A read is one of so many of the average.
const OF: u64 = 8;

#[derive(Clone, Copy, Debug, Default)]
struct Load {
    /// Operations that it has.
    ops: u32,
    /// Those of them that are clients' reads.
    reads: u32,
    /// What such a read took lately, in nanoseconds; 0 if that is not known.
    took: u64,
    /// Reads that went to other legs since it had one.
    passed: u32,
}

impl Load {
    fn cost(&self, known: bool) -> u64 {
        let ops = u64::from(self.ops) + 1;
        match self.took {
            0 if self.passed == PASSED => 0,
            took if known => took.saturating_mul(ops),
            _ => ops,
        }
    }

    /// A read goes to another leg.
    fn passes(&mut self) {
        // How long it takes is about to be known.
        if self.reads > 0 {
            return;
        }
        self.passed = (self.passed + 1).min(PASSED);
        if self.passed == PASSED && self.took > 0 {
            (self.passed, self.took) = (0, self.took / 2);
        }
    }
}

/// Those of all PVs.
#[derive(Debug, Default)]
pub(super) struct Loads(BTreeMap<u16, Load>);

impl Loads {
    fn of(&mut self, pv: u16) -> &mut Load {
        self.0.entry(pv).or_default()
    }

    /// An operation is given out.
    pub(super) fn begins(&mut self, pv: u16) {
        self.of(pv).ops += 1;
    }

    /// It is over.
    pub(super) fn ends(&mut self, pv: u16) {
        self.of(pv).ops -= 1;
    }

    /// Of these PVs, each of which has a leg, that which a client is to read, and is read from now on.
    pub(super) fn read(&mut self, pvs: impl Iterator<Item = u16> + Clone) -> Option<u16> {
        let load = |pv: u16| self.0.get(&pv).copied().unwrap_or_default();
        let known = pvs.clone().all(|pv| load(pv).took > 0);
        let read = pvs.clone().min_by_key(|pv| load(*pv).cost(known))?;
        pvs.filter(|pv| *pv != read).for_each(|pv| self.of(pv).passes());
        let its = self.of(read);
        (its.reads, its.passed) = (its.reads + 1, 0);
        Some(read)
    }

    /// … and not any more.
    pub(super) fn was_read(&mut self, pv: u16) {
        self.of(pv).reads -= 1;
    }

    /// It is another device, perhaps.
    pub(super) fn forget(&mut self, pv: u16) {
        self.of(pv).took = 0;
    }
}

impl Pool {
    /// A read of a client's took so long on a PV, from when it was given out to its end. There is no clock here; who tells nothing has reads go where fewer operations are.
    pub fn read_took(&mut self, pv: u16, bytes: u64, nanoseconds: u64) {
        // Of a long one a part, or whoever has just had it would look slow.
        let part = (nanoseconds / (1 + bytes / BLOCK_BYTES)).max(1);
        let took = &mut self.load.of(pv).took;
        *took = if *took == 0 { part } else { (*took * (OF - 1) + part) / OF };
    }
}
