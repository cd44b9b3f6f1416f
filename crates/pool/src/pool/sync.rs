//! Flushes: first the data, then the bits that say so.
//!
//! One at a time for each LU; those that come meanwhile are served together by the next. Two at once could say what they saw in another order than that in which they saw it, and a discard
//! that the later one made durable would be taken back by the earlier.

use super::*;
use crate::format::JOURNAL_BLOCK_RECORDS;

/// A flush of an LU, or of some of its chunks.
#[derive(Debug)]
pub(super) struct Sync {
    /// The requests that it is for.
    jobs: Vec<u64>,
    /// Chunks of the LU; none for all.
    scope: Option<BTreeSet<u32>>,
    /// What was live when the flush began and was not cleared since, by chunk, with the legs that it had.
    seen: BTreeMap<u32, (Vec<ChunkId>, Bits)>,
    /// Parts of a layer that were written when the flush began.
    parts: BTreeMap<u64, Placed>,
    left: usize,
    failed: bool,
}

/// A request that needs one, and which chunks of the LU; none for all.
pub(super) type Asked = (u64, Option<Vec<u32>>);

impl Sync {
    /// Blocks of a chunk are cleared: what was seen of them is not to be said any more.
    pub(super) fn cleared(&mut self, vchunk: u32, blocks: Bits) {
        if let Some((_, seen)) = self.seen.get_mut(&vchunk) {
            *seen = seen.without(blocks);
        }
    }

    /// The LU has so many chunks: of those behind them nothing is to be said any more.
    pub(super) fn cut(&mut self, chunks: u32) {
        self.seen.retain(|vchunk, _| *vchunk < chunks);
    }
}

impl Pool {
    pub(super) fn flush(&mut self, tag: u64, lu: u32) {
        if !self.serves(lu) {
            return self.answer(tag, Err(Fault::NoSuchLu));
        }
        self.flush_for(Asker::Tag(tag), lu);
    }

    /// Makes durable all that an LU has.
    pub(super) fn flush_for(&mut self, owner: Asker, lu: u32) {
        let job = self.begin_job(owner, lu, 0);
        self.begin_sync(job, self.space_of(lu), None);
    }

    /// Of what is known of chunks with which nobody works some is kept since no flush has said it: where that is much, all is flushed.
    pub(super) fn tell_untold(&mut self) {
        let untold = |slot: &Slot| slot.known && slot.legs.iter().any(|leg| leg.told != slot.live);
        let mut spaces: BTreeMap<u32, usize> = BTreeMap::new();
        for ((space, _), _) in self.slots.iter().filter(|(_, slot)| untold(slot)) {
            *spaces.entry(*space).or_default() += 1;
        }
        if self.telling > 0 || spaces.values().sum::<usize>() <= self.policy.untold {
            return;
        }
        for space in spaces.into_keys() {
            let job = self.begin_job(Asker::Untold, space, 0);
            self.telling += 1;
            self.begin_sync(job, space, None);
        }
    }

    /// Makes durable what a request needs so, alone or with others.
    pub(super) fn begin_sync(&mut self, job: u64, lu: u32, scope: Option<Vec<u32>>) {
        self.sync_queue.entry(lu).or_default().push((job, scope));
        if !self.syncs.contains_key(&lu) {
            self.start_sync(lu);
        }
    }

    /// Flushes the PVs on which the LU is, and then goes on.
    fn start_sync(&mut self, lu: u32) {
        let Some(queue) = self.sync_queue.remove(&lu) else { return };
        let mut jobs = Vec::new();
        let mut scope = Some(BTreeSet::new());
        for (job, chunks) in queue {
            jobs.push(job);
            scope = scope.zip(chunks).map(|(mut all, chunks)| {
                all.extend(chunks);
                all
            });
        }
        let Some(known) = self.tables.lus.get(&lu) else {
            return self.end_sync(&jobs, Some(Fault::NoSuchLu));
        };
        let mut pvs = BTreeSet::new();
        match &scope {
            None => pvs.extend(known.pvs.keys()),
            // Their PVs are flushed in any case: bits that an earlier flush has told of say nothing of a write that came after it.
            Some(scope) => {
                for vchunk in scope {
                    let slot = self.slot((lu, *vchunk));
                    pvs.extend(slot.into_iter().flat_map(|slot| slot.pvs()));
                }
            }
        }
        let mut seen = BTreeMap::new();
        for ((_, vchunk), slot) in self.slots.range((lu, 0)..(lu, self.chunks_of(lu))) {
            if !slot.known || scope.as_ref().is_some_and(|scope| !scope.contains(vchunk)) {
                continue;
            }
            pvs.extend(slot.pvs());
            if slot.legs.iter().any(|leg| leg.told != slot.live) {
                seen.insert(*vchunk, (slot.ids(), slot.live));
            }
        }
        let left = if self.keeps(Rule::BitsAfterData) { pvs.len() } else { 0 };
        let parts = self.parts_to_say(lu, scope.as_ref());
        self.syncs.insert(lu, Sync { jobs, scope, seen, parts, left, failed: false });
        if left == 0 {
            return self.say_bits(lu);
        }
        for pv in pvs {
            self.give_flush(Op::Sync { lu }, pv);
        }
    }

    pub(super) fn sync_flushed(&mut self, lu: u32, outcome: &Outcome) {
        let Some(sync) = self.syncs.get_mut(&lu) else { return };
        sync.left -= 1;
        sync.failed |= *outcome == Outcome::Failed;
        if sync.left == 0 {
            self.say_bits(lu);
        }
    }

    /// Ends requests, when the transactions are durable that they wait for.
    fn end_sync(&mut self, jobs: &[u64], fault: Option<Fault>) {
        for number in jobs {
            if let Some(job) = self.jobs.get_mut(number) {
                job.fault = job.fault.or(fault);
            }
            self.answer_when_durable(*number);
        }
    }

    /// The data is durable: what was live when the flush began is said, and what was not any more is taken back.
    fn say_bits(&mut self, lu: u32) {
        let Some(sync) = self.syncs.remove(&lu) else { return };
        let fault = if sync.failed { Some(Fault::Medium) } else { None };
        let fault = if self.has_space(lu) { fault } else { Some(Fault::NoSuchLu) };
        if fault.is_some() {
            self.end_sync(&sync.jobs, fault);
            return self.start_sync(lu);
        }
        let same = |(vchunk, (ids, _)): (&u32, &(Vec<ChunkId>, Bits))| {
            self.slots.get(&(lu, *vchunk)).is_some_and(|slot| slot.ids() == *ids)
        };
        // A chunk that is elsewhere by now was not flushed there, and one that is nowhere is zeros. The next round is of what there is then.
        if !sync.seen.iter().all(same) {
            let scope: Option<Vec<u32>> = sync.scope.map(|scope| scope.into_iter().collect());
            let again = sync.jobs.into_iter().map(|job| (job, scope.clone()));
            self.sync_queue.entry(lu).or_default().extend(again);
            return self.start_sync(lu);
        }
        let mut records = Vec::new();
        for (vchunk, (_, seen)) in &sync.seen {
            let Some(slot) = self.slots.get_mut(&(lu, *vchunk)) else { continue };
            for leg in &mut slot.legs {
                records.extend(leg.say(*seen, self.slot));
            }
        }
        // Behind the bits of the blocks in which they are.
        let parts = sync.parts.iter();
        records.extend(parts.map(|(part, placed)| Record {
            owner: self.slot,
            ..crate::layers::record(lu, *part, *placed)
        }));
        for records in records.chunks(JOURNAL_BLOCK_RECORDS) {
            self.log.append(records.to_vec());
        }
        // Also what was said before and is not durable yet: chunks that were given back, bits of an earlier flush.
        let txn = self.log.appended;
        for vchunk in sync.seen.keys() {
            if let Some(slot) = self.slots.get_mut(&(lu, *vchunk)) {
                slot.said = txn;
            }
        }
        let durable = self.keeps(Rule::FlushAfterBits);
        for job in &sync.jobs {
            if let Some(job) = self.jobs.get_mut(job) {
                job.txn = if durable { job.txn.max(txn) } else { 0 };
            }
        }
        self.end_sync(&sync.jobs, None);
        self.start_sync(lu);
    }
}
