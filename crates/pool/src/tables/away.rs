//! PVs that are away, and what one that returns has.
//!
//! Of a PV that is away the tables have nothing: the legs that were there are gone from the LUs, whatever the journal says of them is passed over, and so the tables are the same whether the pool was open when the PV
//! went or was opened without it. What a PV says that returns is a *claim*: that a leg of a chunk of an LU is there. It is true where the other leg is there and that chunk is not *active*, since all that changes a
//! chunk, its place or its data makes it active first, and only a root that both PVs have ends that. What is claimed otherwise is nobody's.

use super::{
    BTreeSet, ChunkId, Contradiction, Entry, Kind, MemberState, PAGE_RECORDS, Record, SYSTEM,
    Superblock, Tables,
};

impl Tables {
    /// Whether nothing is known of what is on a PV.
    pub(crate) fn is_away(&self, pv: u16) -> bool {
        self.pvs.get(usize::from(pv)).is_some_and(|pv| pv.state.is_away())
    }

    /// Whether a PV of a tier is away that may return.
    pub(crate) fn lacks_pvs(&self, tier: u8) -> bool {
        self.pvs.iter().any(|pv| pv.tier == tier && pv.state == MemberState::Stale)
    }

    /// Legs of a chunk may differ from now on.
    pub(super) fn set_active(&mut self, record: &Record) -> Result<(), Contradiction> {
        let key = (record.lu, record.vchunk);
        let lu = self.lus.get(&record.lu).filter(|lu| record.vchunk < lu.chunks);
        let Some(lu) = lu.filter(|lu| lu.legs > 1) else {
            let what = "no such chunk with two legs";
            return Err(Contradiction { what, record: *record });
        };
        // One that has no leg left, since those are away, is not there until they return.
        if lu.legs_of(record.vchunk).iter().any(|entry| entry.chunk().is_some()) {
            self.active.insert(key);
            self.change_legs(key);
        }
        Ok(())
    }

    /// What the pages say of the legs of a chunk changes.
    fn change_legs(&mut self, key: (u32, u32)) {
        let Some(lu) = self.lus.get(&key.0) else { return };
        let ids: Vec<ChunkId> =
            lu.legs_of(key.1).iter().filter_map(|entry| entry.chunk()).collect();
        let pages = ids.into_iter().map(|id| (id.pv, id.chunk / PAGE_RECORDS as u32));
        self.changed.pages.extend(pages);
    }

    /// The legs of a chunk are the same.
    pub(crate) fn set_quiet(&mut self, key: (u32, u32)) {
        if self.active.remove(&key) {
            self.change_legs(key);
        }
    }

    /// … which did not become durable.
    pub(crate) fn unset_quiet(&mut self, key: (u32, u32)) {
        let there = self.lus.get(&key.0).filter(|lu| key.1 < lu.chunks);
        if there.is_some_and(|lu| lu.legs_of(key.1).iter().any(|leg| leg.chunk().is_some())) {
            self.active.insert(key);
            self.change_legs(key);
        }
    }

    /// A PV is away.
    pub(crate) fn unload_pv(&mut self, superblock: &Superblock, pv: u16) {
        for ((lu, vchunk), leg) in self.legs_on(pv) {
            self.clear_entry(lu, vchunk, leg, pv);
        }
        let table = &mut self.pvs[usize::from(pv)];
        let (tier, group) = (table.tier, table.group);
        *table = super::Pv::new(superblock, pv);
        (table.tier, table.group, table.state) = (tier, group, MemberState::Stale);
        self.changed.pages.retain(|(other, _)| *other != pv);
        self.changed.homes.retain(|id| id.pv != pv);
        self.bits.retain(|id, _| id.pv != pv);
        self.freed.retain(|id| id.pv != pv);
        self.freed_containers.retain(|id| id.pv != pv);
    }

    /// Takes up what a PV says that returns: records of its map pages, by chunk, and of which chunks of LUs it may be true besides. What is claimed and not true: these chunks are free.
    pub(crate) fn load_claims(
        &mut self,
        pv: u16,
        records: &[Record],
        mut may: impl FnMut((u32, u32)) -> bool,
    ) -> Vec<ChunkId> {
        let mut wrong = Vec::new();
        for record in records {
            let id = ChunkId { pv, chunk: record.chunk };
            if record.pv != pv || self.whose(id).is_none_or(|(lu, _)| *lu == SYSTEM) {
                continue;
            }
            let key = (record.lu, record.vchunk);
            match record.kind {
                Kind::Map if self.is_true(record) && may(key) => {
                    let mapped = self.map_chunk(record).is_ok();
                    // What is in its slots may have been said anew without a change of the chunk.
                    let container = mapped && self.is_layer(record.lu);
                    self.changed.slots.extend(container.then_some(key));
                }
                Kind::Map => {
                    self.set_generation(id, record.generation);
                    wrong.push(id);
                }
                Kind::Free => self.set_generation(id, record.generation),
                _ => {}
            }
        }
        wrong
    }

    /// Forgets which of the chunks are active that are claimed: only to see that this is found.
    pub(crate) fn trust_claims(&mut self, records: &[Record]) {
        for record in records.iter().filter(|record| record.kind == Kind::Map) {
            self.active.remove(&(record.lu, record.vchunk));
        }
    }

    fn is_true(&self, record: &Record) -> bool {
        let key = (record.lu, record.vchunk);
        let lu = self.lus.get(&record.lu).filter(|lu| record.vchunk < lu.chunks);
        let Some(lu) = lu.filter(|lu| lu.legs == 2 && record.leg < 2) else { return false };
        let legs = lu.legs_of(record.vchunk);
        let leg = usize::from(record.leg);
        legs[leg] == Entry::default()
            && legs[1 - leg].chunk().is_some()
            && !self.active.contains(&key)
    }

    /// Chunks of LUs that should have two legs and have one.
    pub(crate) fn halves(&self) -> BTreeSet<(u32, u32)> {
        let pairs = self.lus.iter().filter(|(_, lu)| lu.legs == 2 && lu.mapped > 0);
        let halves = pairs.flat_map(|(number, lu)| {
            let half = |vchunk: &u32| {
                lu.legs_of(*vchunk).iter().filter(|leg| leg.chunk().is_some()).count() == 1
            };
            (0..lu.chunks).filter(half).map(move |vchunk| (*number, vchunk))
        });
        halves.collect()
    }

    /// Active chunks that have both legs.
    pub(crate) fn active_pairs(&self) -> BTreeSet<(u32, u32)> {
        let both = |key: &&(u32, u32)| {
            let lu = self.lus.get(&key.0);
            lu.is_some_and(|lu| lu.legs_of(key.1).iter().all(|leg| leg.chunk().is_some()))
        };
        self.active.iter().filter(both).copied().collect()
    }

    /// Whether all LUs and layers of a tier have two legs.
    pub(crate) fn has_pairs_alone(&self, tier: u8) -> bool {
        self.lus.values().all(|lu| lu.tier != tier || lu.legs == 2)
    }
}
