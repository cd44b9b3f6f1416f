//! Chunks that the tables have as free and that are not to be given out: just given out, or somebody may still write to them. How many a PV has is asked for each chunk that is given out, and so it is counted.

use super::{BTreeMap, BTreeSet, ChunkId};

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Taken {
    chunks: BTreeSet<ChunkId>,
    counts: BTreeMap<u16, u32>,
}

impl Taken {
    pub(super) fn insert(&mut self, id: ChunkId) {
        if self.chunks.insert(id) {
            *self.counts.entry(id.pv).or_default() += 1;
        }
    }

    pub(super) fn extend(&mut self, ids: &[ChunkId]) {
        ids.iter().for_each(|id| self.insert(*id));
    }

    pub(super) fn remove(&mut self, id: &ChunkId) {
        if self.chunks.remove(id) {
            self.counts.entry(id.pv).and_modify(|count| *count -= 1);
        }
    }

    pub(super) fn contains(&self, id: &ChunkId) -> bool {
        self.chunks.contains(id)
    }

    /// How many are of a PV.
    pub(super) fn of(&self, pv: u16) -> u32 {
        self.counts.get(&pv).copied().unwrap_or_default()
    }
}
