//! The journal as it is written: transactions go to all its copies in blocks, one block at a time.

use super::*;
use crate::format::{JOURNAL_BLOCK_BYTES, JOURNAL_BLOCK_RECORDS, JournalBlock, SystemKind};
use crate::hash::Sum;

/// What is to be durable, and what is.
#[derive(Debug)]
pub(super) struct Log {
    /// The number of the next block, and the checksum that it names.
    pub(super) next: u64,
    pub(super) previous: Sum,
    /// Blocks that the journal has room for.
    pub(super) ring: u64,
    queue: VecDeque<(u64, Vec<Record>)>,
    /// The last transaction that was appended, and the last that is durable.
    pub(super) appended: u64,
    pub(super) durable: u64,
    pub(super) flight: Option<Flight>,
    /// No block is begun: a checkpoint is looking at the tables.
    pub(super) held: bool,
}

/// A block that is being written.
#[derive(Debug)]
pub(super) struct Flight {
    txn: u64,
    left: usize,
    freed: Vec<ChunkId>,
}

impl Log {
    pub(super) fn new(next: u64, previous: Sum, ring: u64) -> Log {
        Log {
            next,
            previous,
            ring,
            queue: VecDeque::new(),
            appended: 0,
            durable: 0,
            flight: None,
            held: false,
        }
    }

    /// Nothing waits to be written.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Appends a transaction of at most the records of a block, and gives its number.
    pub(super) fn append(&mut self, records: Vec<Record>) -> u64 {
        assert!(records.len() <= JOURNAL_BLOCK_RECORDS, "a transaction is in one block");
        self.appended += 1;
        self.queue.push_back((self.appended, records));
        self.appended
    }
}

impl Pool {
    /// Writes the next block, when the one before it is durable and there is something to say.
    pub(super) fn turn_log(&mut self) {
        let root = self.chosen.superblock.root.sequence;
        // The blocks since the root of the superblock that counts are never overwritten.
        let room = self.log.next <= root + self.log.ring;
        if self.log.flight.is_some() || self.log.held || self.log.queue.is_empty() || !room {
            return;
        }
        let (mut records, mut txn) = (Vec::new(), 0);
        while let Some((number, next)) = self.log.queue.front()
            && records.len() + next.len() <= JOURNAL_BLOCK_RECORDS
        {
            txn = *number;
            records.extend_from_slice(next);
            self.log.queue.pop_front();
        }
        for record in &records {
            if let Err(contradiction) = self.tables.apply(record) {
                // What this process says and what it knows do not agree: better no answer than a wrong one.
                debug_assert!(false, "{contradiction}");
                return self.stop(Fault::Stopped);
            }
            if record.kind == Kind::Map {
                let id = ChunkId { pv: record.pv, chunk: record.chunk };
                self.taken.remove(&id);
                // What was there before is of something else.
                self.checkpoint.places.forget_slots(id);
            }
            // With it, layers grew in which others look as well.
            if record.kind == Kind::LuResize && self.shares(record.lu) {
                self.change_chains();
            }
        }
        self.promised = self.promised.split_off(&(txn + 1));
        let mut freed = std::mem::take(&mut self.tables.freed);
        let containers = std::mem::take(&mut self.tables.freed_containers);
        if self.keeps(Rule::ContainersUntilRoot) {
            self.hold_containers(self.log.next, containers);
        } else {
            freed.extend(containers);
        }
        if self.keeps(Rule::ReuseAfterCommit) {
            self.taken.extend(&freed);
        }
        let superblock = &self.chosen.superblock;
        let block = JournalBlock {
            pool: superblock.pool,
            slot: self.slot,
            sequence: self.log.next,
            epoch: superblock.epoch,
            owner_epoch: superblock.owners[usize::from(self.slot)].epoch,
            previous: self.log.previous,
            more: false,
            records,
        };
        let bytes = block.encode();
        self.log.previous = JournalBlock::checksum(&bytes);
        let mut copies = journal_places(superblock, self.slot, self.log.next, self.log.ring);
        copies.retain(|(pv, _)| !self.tables.is_away(*pv));
        self.log.next += 1;
        self.log.flight = Some(Flight { txn, left: copies.len(), freed });
        for (pv, at) in copies {
            self.give_write(Op::Journal, pv, at, Payload::Own(bytes.clone()), true);
        }
        // What is mapped now counted twice before, as taken and as set aside.
        self.retry_full();
    }

    pub(super) fn journal_done(&mut self) {
        let Some(flight) = &mut self.log.flight else { return };
        flight.left -= 1;
        if flight.left > 0 {
            return;
        }
        let Some(Flight { txn, freed, .. }) = self.log.flight.take() else { return };
        self.log.durable = txn;
        self.forget_parts();
        let later = self.waiters.split_off(&(txn + 1));
        for waiter in std::mem::replace(&mut self.waiters, later).into_values().flatten() {
            match waiter {
                Waiter::Job(job) => self.answer_when_durable(job),
                Waiter::Created(tag, lu) => self.created(tag, lu),
                Waiter::Deleted(tag, lu) => self.deleted(tag, lu),
                Waiter::Resized(tag, lu) => self.resized(tag, lu),
                Waiter::Moved(key, pv) => self.moved(key, pv),
                Waiter::Cut => self.end_cut(Ok(())),
                Waiter::Merged => self.merged(),
                Waiter::Active(key) => self.wake(key),
                Waiter::Opened => self.opened(),
            }
        }
        if freed.is_empty() {
            return;
        }
        if self.keeps(Rule::ReuseAfterDrain) {
            let then = Drained::Free(freed);
            self.give(Op::Drain { then }, |op| Effect::Drain { op });
        } else {
            freed.iter().for_each(|id| self.taken.remove(id));
            self.retry_full();
        }
    }
}

/// Where the copies of a block of the journal are.
pub(super) fn journal_places(
    superblock: &Superblock,
    slot: u8,
    sequence: u64,
    ring: u64,
) -> Vec<(u16, u64)> {
    let offset = sequence % ring.max(1) * JOURNAL_BLOCK_BYTES as u64;
    let away = |pv: &u16| superblock.members[usize::from(*pv)].state.is_away();
    let pvs = (0..superblock.members.len() as u16).filter(|pv| !away(pv));
    let place = |pv| Some((pv, superblock.place_of(SystemKind::Journal, slot, pv, offset)?));
    pvs.filter_map(place).collect()
}
