//! Checksums of what LUs hold that ask for them: where they are, when they hold, and who makes them.
//!
//! ```text
//! a chunk is quiet ──► both legs are read and are the same: *made* ──► written, flushed, said: *durable* ──► a root ends its activity: they *hold*
//!      ▲                                 somebody changes the chunk: they hold no longer, before it is changed                     │
//!      └───────────────────────────────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! They are in a space of their own, whose chunks are given out, mirrored, moved, flushed and made the same as all chunks are. Whether they hold is what is said of the *activity* of their chunk ([`activity`]):
//! so a change costs nothing for them, and what a crash leaves of a record of a chunk that is active is never looked at. Where there is no space for them, a chunk stays active.
//!
//! What they do not hold for on a leg is taken for what cannot be read there ([`reads`], [`checks`]).

use std::sync::Arc;

use super::moves::Goal;
use super::slots::{Leg, byte_of};
use super::*;
use crate::choose::SUMS;
use crate::format::{SUMS_APART, SUMS_BYTES, SUMS_IN_CHUNK};
use crate::sums::Sums;

/// Chunks of which the checksums are kept in memory, 64 KiB each.
const KNOWN_MAX: usize = 1024;
/// Chunks of which they are made at once.
const MAKING_MAX: usize = 2;

/// What is done with the checksums of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Its legs are read.
    Make,
    /// They are written, and made durable.
    Write,
    /// They are read.
    Read,
}

/// What a chunk's legs are read for.
#[derive(Debug, Default)]
pub(super) enum Reading {
    /// To see whether they are the same.
    #[default]
    Compare,
    /// … and whether they are what they should be.
    Verify(Arc<Sums>),
    /// To make checksums, unless that is not possible.
    Make { sums: Box<Sums>, unfit: Option<Unfit> },
}

/// Why no checksums are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Unfit {
    /// A leg could not be read, and was written again.
    Unread,
    /// The legs are not the same.
    Differs,
}

/// Those that are being written, and whether nobody has changed their chunk since they were made.
#[derive(Debug)]
struct Written {
    sums: Arc<Sums>,
    holds: bool,
    /// The PV on which they were damaged.
    damaged: Option<u16>,
}

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Summing {
    /// Quiet chunks that have none.
    todo: BTreeSet<(u32, u32)>,
    making: BTreeSet<(u32, u32)>,
    writing: BTreeMap<(u32, u32), Written>,
    /// Chunks whose activity may end.
    durable: BTreeSet<(u32, u32)>,
    /// Those that were used last, and when.
    known: BTreeMap<(u32, u32), (u64, Arc<Sums>)>,
    /// Those that are being read, and whether nobody has changed their chunk since that began.
    reading: BTreeMap<(u32, u32), bool>,
    /// Those whose legs differ: one is damaged.
    differ: BTreeSet<(u32, u32)>,
}

impl Summing {
    /// Somebody changes a chunk.
    pub(super) fn is_changed(&mut self, key: (u32, u32)) {
        self.todo.remove(&key);
        self.durable.remove(&key);
        self.known.remove(&key);
        if let Some(written) = self.writing.get_mut(&key) {
            written.holds = false;
        }
        if let Some(holds) = self.reading.get_mut(&key) {
            *holds = false;
        }
    }

    /// Whether the activity of a chunk may end.
    pub(super) fn is_durable(&self, key: (u32, u32)) -> bool {
        self.durable.contains(&key)
    }

    /// It has ended.
    pub(super) fn ends(&mut self, key: (u32, u32)) {
        self.durable.remove(&key);
    }

    /// A chunk is quiet.
    fn wants(&mut self, key: (u32, u32)) {
        if !self.durable.contains(&key) {
            self.todo.insert(key);
        }
    }

    fn keep(&mut self, key: (u32, u32), now: u64, sums: Arc<Sums>) {
        self.known.insert(key, (now, sums));
        if self.known.len() > KNOWN_MAX {
            let oldest = self.known.iter().min_by_key(|(_, (at, _))| *at).map(|(key, _)| *key);
            oldest.into_iter().for_each(|key| _ = self.known.remove(&key));
        }
    }
}

impl Pool {
    /// Whether what an LU holds has checksums.
    pub(super) fn has_sums(&self, lu: u32) -> bool {
        self.tables.sums.contains_key(&lu)
    }

    /// Makes an LU that has some, when older programs know that they must not open the pool.
    pub(super) fn create_summed(&mut self, tag: u64, request: Request) {
        let Request::CreateSummed { chunks, thick, tier, asked } = request else { return };
        // Older programs open the pool no more from then on: not for one that cannot be made.
        if self.chosen.superblock.features[0] & SUMS == 0
            && self.lu_asked(asked).is_none()
            && let Err(fault) = self.may_create((chunks, thick, tier), true)
        {
            return self.answer(tag, Err(fault));
        }
        if self.waits_for_feature(SUMS, tag, request) {
            return;
        }
        self.create_lu(tag, (chunks, thick, tier), asked, true);
    }

    /// Where the checksums of a chunk are.
    fn sums_place(&self, (lu, vchunk): (u32, u32)) -> Option<((u32, u32), u64)> {
        let space = self.tables.sums.get(&lu)?;
        let at = u64::from(vchunk % SUMS_IN_CHUNK) * SUMS_APART;
        Some(((*space, vchunk / SUMS_IN_CHUNK), at))
    }

    /// Whether the checksums of a chunk hold: it is quiet since a root.
    pub(super) fn sums_hold(&self, key: (u32, u32)) -> bool {
        // Nobody has a slot with which nobody works: what the tables say holds.
        let quiet = match self.slots.get(&key) {
            Some(slot) => slot.activity.is_none() && !slot.legs.is_empty(),
            None => !self.tables.active.contains(&key),
        };
        self.has_sums(key.0) && quiet && !self.mends.may_differ(key)
    }

    /// They hold, and are in memory.
    pub(super) fn known_sums(&mut self, key: (u32, u32)) -> Option<Arc<Sums>> {
        let now = self.number;
        let (at, sums) = self.sums.known.get_mut(&key)?;
        *at = now;
        Some(Arc::clone(sums))
    }

    /// Whoever needs them waits until they are read, or do not hold.
    pub(super) fn wait_for_sums(&mut self, piece: Piece) {
        let key = piece.key;
        if let Some(slot) = self.slots.get_mut(&key) {
            slot.wait(piece);
        }
        let under_way = self.sums.reading.contains_key(&key);
        self.sums.reading.entry(key).or_insert(true);
        if !under_way {
            self.begin_on_sums(key, Step::Read, PieceKind::ReadSums { of: key });
        }
    }

    /// Legs of what has checksums differ there, or cannot be read: which is damaged each of them says, if they hold.
    pub(super) fn sums_differ(&mut self, (space, vchunk): (u32, u32), at: u64) {
        let origin = self.tables.lus.get(&space).map_or(0, |space| space.origin);
        let key = (origin, vchunk * SUMS_IN_CHUNK + (at / SUMS_APART) as u32);
        if key.1 < self.chunks_of(origin) && self.slot(key).is_some() && self.sums_hold(key) {
            self.sums.differ.insert(key);
            let under_way = self.sums.reading.contains_key(&key);
            self.sums.reading.entry(key).or_insert(true);
            if !under_way {
                self.begin_on_sums(key, Step::Read, PieceKind::ReadSums { of: key });
            }
        }
    }

    fn begin_on_sums(&mut self, of: (u32, u32), step: Step, kind: PieceKind) {
        let Some((key, at)) = self.sums_place(of) else { return };
        let job = self.begin_job(Asker::Sums(of, step), key.0, 1);
        if step == Step::Write
            && self.keeps(Rule::SumsDurable)
            && let Some(job) = self.jobs.get_mut(&job)
        {
            job.then_sync.push(key);
        }
        let bytes = SUMS_BYTES as u64;
        self.advance(Piece { job, tag: 0, key, at, bytes, from: 0, kind, part: None });
    }

    /// Reads a record of checksums, from a leg that was not tried.
    pub(super) fn read_sums(&mut self, piece: Piece, tried: u8) {
        let key = piece.key;
        let waits = self.mends.may_differ(key) && !self.mends.is_given_up(key);
        let blocks = piece.blocks().0;
        let Some(slot) = self.slot(key) else {
            return self.piece_done(&piece, Some(Fault::Medium));
        };
        if waits && slot.wants(blocks) {
            slot.wait(piece);
            self.want_mended(key);
            return self.go_on_moving(key);
        }
        let written = slot.known && blocks.without(slot.live).is_empty();
        let leg = slot.legs.iter().find(|leg| written && tried >> leg.number & 1 == 0);
        let Some((number, id)) = leg.map(|leg| (leg.number, leg.id)) else {
            return self.piece_done(&piece, Some(Fault::Medium));
        };
        let (pv, at, bytes) = (id.pv, byte_of(id, piece.at), piece.bytes);
        let op = Op::Sums { piece, tried: tried | 1 << number };
        self.give(op, |op| Effect::Read { op, pv, at, bytes, to: Reader::Pool });
    }

    pub(super) fn sums_read(&mut self, piece: Piece, tried: u8, outcome: &Outcome) {
        let PieceKind::ReadSums { of } = piece.kind else { return };
        let pool = self.chosen.superblock.pool;
        let sums = match outcome {
            Outcome::Bytes(bytes) => Sums::decode(bytes, pool, of).ok(),
            Outcome::Done | Outcome::Failed => None,
        };
        let Some(sums) = sums else { return self.read_sums(piece, tried) };
        let sums = Arc::new(sums);
        // What was read before a change is of what was there then.
        if self.sums.reading.get(&of) == Some(&true) && self.sums_hold(of) {
            let now = self.number;
            self.sums.keep(of, now, Arc::clone(&sums));
            // What is damaged on one leg is written again.
            let differ = self.sums.differ.remove(&of);
            if (tried.count_ones() > 1 || differ) && !self.sums.writing.contains_key(&of) {
                let damaged = self.slots.get(&piece.key).and_then(|slot| {
                    // The last that was tried is the one that is not.
                    let is_it =
                        |leg: &&Leg| (tried.count_ones() > 1) == (tried >> leg.number & 1 == 1);
                    slot.legs.iter().find(is_it).map(|leg| leg.id.pv)
                });
                self.write_sums(of, sums, damaged);
            }
        }
        self.piece_done(&piece, None);
    }

    /// Makes the checksums of what is quiet.
    pub(super) fn turn_sums(&mut self) {
        if self.phase != Phase::Serving {
            return;
        }
        while self.sums.making.len() < MAKING_MAX {
            let Some(key) = self.next_to_make() else { break };
            self.sums.todo.remove(&key);
            if self.mends.quiet.contains(&key) {
                self.sums.making.insert(key);
                self.begin_own(Asker::Sums(key, Step::Make), key, PieceKind::MakeSums);
            }
        }
    }

    /// The next chunk whose checksums can be made. Thousands may wait for a PV that is away: they are passed over by LU, since this is asked with all that happens.
    fn next_to_make(&self) -> Option<(u32, u32)> {
        let Summing { todo, making, writing, .. } = &self.sums;
        let mut from = (0, 0);
        loop {
            let key = *todo.range(from..).next()?;
            from = match self.lacks(key.0) {
                true => (key.0 + 1, 0),
                false if writing.contains_key(&key) || making.contains(&key) => (key.0, key.1 + 1),
                false => return Some(key),
            };
        }
    }

    /// Both legs of a chunk are the same, and nobody has changed it for a while.
    pub(super) fn becomes_quiet(&mut self, key: (u32, u32)) {
        self.mends.quiet.insert(key);
        if self.has_sums(key.0) {
            self.sums.wants(key);
        }
    }

    /// Begins to read both legs of a chunk whose bits are known.
    pub(super) fn begin_sums(&mut self, piece: Piece) {
        let key = piece.key;
        let fit = self.mends.quiet.contains(&key) && !self.mends.may_differ(key);
        let Some(slot) = self.slots.get_mut(&key) else { return };
        if slot.moving.is_some() || !slot.also.is_empty() {
            return slot.wait(piece);
        }
        let Some(target) = slot.legs.get(1).filter(|_| fit).cloned() else {
            return self.piece_done(&piece, Some(Fault::Cancelled));
        };
        self.begin_copy(piece, Goal::Check, target, Bits::NONE);
        let sums = Box::new(Sums::none());
        self.reads_for(key, Reading::Make { sums, unfit: None });
    }

    /// Says what the legs of a chunk are read for.
    pub(super) fn reads_for(&mut self, key: (u32, u32), reading: Reading) {
        if let Some(moving) = self.slots.get_mut(&key).and_then(|slot| slot.moving.as_mut()) {
            moving.reading = reading;
        }
    }

    /// What was read from a byte of the chunk on: what is not what it should be is as if it could not be read.
    pub(super) fn verify(
        &mut self,
        key: (u32, u32),
        at: u64,
        read: &mut [(ChunkId, Option<Vec<u8>>)],
    ) {
        let holds = self.sums_hold(key);
        let Some(slot) = self.slots.get_mut(&key) else { return };
        match slot.moving.as_mut().map(|moving| &mut moving.reading) {
            Some(Reading::Verify(sums)) if holds => {
                for (_, bytes) in read {
                    *bytes = bytes.take().filter(|bytes| sums.hold(at, bytes));
                }
            }
            Some(Reading::Make { sums, unfit }) => match read {
                [(_, Some(one)), (_, Some(other))] if one == other => sums.put(at, one),
                [(_, Some(_)), (_, Some(_))] => *unfit = Some(Unfit::Differs),
                _ => *unfit = (*unfit).max(Some(Unfit::Unread)),
            },
            _ => {}
        }
    }

    /// Both legs of a chunk were read to their end.
    pub(super) fn legs_were_read(&mut self, key: (u32, u32), reading: Reading, changed: bool) {
        let changed = changed && self.keeps(Rule::SumsOfUnchanged);
        let Reading::Make { sums, unfit } = reading else { return };
        if changed || !self.mends.quiet.contains(&key) && self.keeps(Rule::SumsOfUnchanged) {
            return;
        }
        if let Some(unfit) = unfit {
            self.mends.quiet.remove(&key);
            // What could not be read and was written again is read anew; what differs is told, and stays active until it is changed or made the same.
            let ids = self.slots.get(&key).map(Slot::ids).unwrap_or_default();
            if unfit == Unfit::Unread && !ids.into_iter().any(|id| self.checks.is_hopeless(id)) {
                self.activity.goes_on(key);
                self.activity.stirs();
            }
            return;
        }
        self.write_sums(key, Arc::new(*sums), None);
    }

    fn write_sums(&mut self, key: (u32, u32), sums: Arc<Sums>, damaged: Option<u16>) {
        self.sums.writing.insert(key, Written { sums, holds: true, damaged });
        self.begin_on_sums(key, Step::Write, PieceKind::WriteSums { of: key });
    }

    /// The bytes of checksums that are being written, and what comes behind them in their last block.
    pub(super) fn sums_to_write(&self, of: (u32, u32), after: u64) -> Payload {
        let sums = self.sums.writing.get(&of).map(|written| Arc::clone(&written.sums));
        let mut bytes = sums.map_or_else(
            || vec![0; SUMS_BYTES],
            |sums| sums.encode(self.chosen.superblock.pool, of),
        );
        bytes.resize(bytes.len() + after as usize, 0);
        Payload::Own(bytes)
    }

    /// It is over with the checksums of a chunk.
    pub(super) fn sums_over(&mut self, key: (u32, u32), step: Step, fault: Option<Fault>) {
        match step {
            Step::Make => {
                self.sums.making.remove(&key);
                // A PV was lost, or the chunk goes elsewhere: later.
                if fault.is_some() && self.mends.quiet.remove(&key) {
                    self.activity.goes_on(key);
                }
            }
            Step::Write => {
                let written = self.sums.writing.remove(&key);
                let holds = |written: &Written| written.holds || !self.keeps(Rule::SumsOfUnchanged);
                let written = written.filter(holds);
                match (written, fault) {
                    (Some(Written { sums, damaged, .. }), None) => {
                        let now = self.number;
                        damaged.into_iter().for_each(|pv| self.checks.found_sums(key, pv));
                        self.sums.keep(key, now, sums);
                        self.sums_are_durable(key);
                    }
                    // There is no space: it stays active until it is changed.
                    (Some(_), Some(_)) => _ = self.mends.quiet.remove(&key),
                    (None, _) => {}
                }
            }
            Step::Read => {
                self.sums.reading.remove(&key);
                self.sums.differ.remove(&key);
                // What is about to go does not change any more.
                let stays = self.has_space(key.0) && key.1 < self.chunks_of(key.0);
                if fault.is_some() && stays && self.sums_hold(key) {
                    // There are none, or both legs are damaged: they are made anew.
                    self.activity.stirs();
                    self.activity.goes_on(key);
                    self.activate(key);
                }
            }
        }
        self.wake(key);
    }

    /// The activity of a quiet chunk may end.
    fn sums_are_durable(&mut self, key: (u32, u32)) {
        if self.mends.quiet.contains(&key) {
            self.sums.todo.remove(&key);
            self.sums.durable.insert(key);
            self.activity.wants_a_root();
        }
    }

    /// A leg of a quiet chunk is elsewhere, and what it holds is the same.
    pub(super) fn sums_stay(&mut self, key: (u32, u32)) {
        self.mends.quiet.insert(key);
        self.sums_are_durable(key);
        self.activity.stirs();
    }
}
