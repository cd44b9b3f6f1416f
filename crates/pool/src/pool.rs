//! The pool at work: a state machine without I/O, clock or thread, which a shell drives.
//!
//! ```text
//!            Request ─ submit ──► ┌────────────────────────────────┐ ──► Write, Read, Flush   to PVs
//!                                 │ Pool                           │ ──► Zero, Answer         to the client
//!   what became of an effect ───► │  slots ── log ── tables        │ ──► Drain                to the channels
//!            done                 │            └── checkpoint      │
//!                                 └────────────────────────────────┘
//! ```
//!
//! A *slot* is a chunk of an LU that somebody works with: its legs, which of its blocks are written (*live*), which are being touched for the first time (*busy*). What is to be durable is
//! appended to the *log* as records; when a block of the journal is written, its records are applied to the [tables](crate::tables), which therefore are what a replay of the journal up to
//! that block gives. A checkpoint writes what changed in them.
//!
//! # The rules
//!
//! 1. A write is answered when the record that maps its chunk is on all copies of the journal and its blocks are live. Live bits are in the [`Shadow`], which survives the process.
//! 2. A flush is answered when the PVs have made durable what was live when it began, and then the records that say so are on all copies of the journal. A bit that is durable has durable data, or is of slots that channels
//!    may take: of these only what is present is read, and that is said behind it.
//! 3. Blocks without a bit are zeros. The first write to a part of a block writes all of it, with zeros around.
//! 4. A chunk is given out again when the record that frees it is durable *and* nothing that was begun before is still under way: the channels have said so ([`Effect::Drain`]), and the pool's
//!    own reads and writes are over.
//! 5. A chunk that was copied is mapped after the PV of the copy made it durable.
//! 6. A chunk with two legs is changed after it is durable that these may differ; and while a PV fails, nothing is answered before it is durable that this one is away.
//!
//! # What the shell promises
//!
//! - What fails on a PV it tells as failed, also what does not come back: a PV without which LUs go on is away then, and is asked for nothing until it is said that it [returns](Request::ReturnPv). Then nothing that was
//!   given out for it before is under way.
//! - It carries out effects in any order, each as soon as it likes, and tells what became of each that has an `op` exactly once. Between two effects nothing is ordered but by what was told.
//! - A durable write is told as done when it is on stable storage; a flush, when all is that was told as done before the flush was given out.
//! - No write of a process before this one is still under way when it opens the pool.
//! - What channels have written in slots that they took it tells ([`Pool::took`]) before a request that was made after they had answered, and before it says that a drain is over.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::bits::Bits;
use crate::choose::Chosen;
use crate::format::{BLOCK_BYTES, CHUNK_BYTES, Kind, MemberState, Record, Root, Superblock, Uuid};
use crate::layers::Placed;
use crate::make::NewPv;
use crate::tables::{ChunkId, Role, Tables};

mod activity;
mod answers;
mod checkpoint;
mod checks;
mod coalesce;
mod cuts;
mod dismissals;
mod effects;
mod fault;
mod features;
mod fenced;
mod grows;
mod layered;
mod layout;
mod load;
mod log;
mod lookup;
mod losses;
mod lus;
mod members;
mod mends;
mod missed;
mod moves;
mod offers;
mod older;
mod open;
mod paced;
mod places;
mod policy;
mod reads;
mod rescue;
mod returns;
mod shown;
mod slots;
mod space;
mod sums;
mod sync;
mod taken;
mod undo;

use activity::Activity;
use checkpoint::Checkpoint;
use checks::{CHECKED, Check, Checks};
pub use checks::{Finding, FindingKind, Scrubbing};
pub use coalesce::Coalescing;
use coalesce::{Merges, Step};
use cuts::{Cut, Cuts};
pub use cuts::{GROUP_MAX, Group, SnapshotOf};
pub use effects::{Effect, Outcome, Payload, Reader, Reply};
pub use fault::Fault;
pub(crate) use fault::Rule;
use features::Features;
use layered::{Layered, Part};
pub use layout::Layout;
use load::Loads;
use log::Log;
pub use lookup::Lookup;
use losses::{Held, Losses};
use members::Members;
pub use members::{Balance, Removal};
use mends::Mends;
pub use mends::{Resync, ResyncBlocks};
use missed::Missed;
pub use offers::Channels;
pub use open::{NotOpened, ReadFailed, Source, superblocks};
use paced::HeldCopies;
pub use paced::HeldCopy;
pub use policy::Policy;
pub use rescue::{Found, Rescue, RescuedLu, rescue};
use returns::{Looked, Return};
pub use shown::{Kept, KeptPart, Shadow, Shown, Way, Words};
use slots::{Piece, PieceKind, Slot};
use space::{Full, Promised};
pub use space::{LuSpace, PvSpace, TierSpace};
use sums::Summing;
use sync::Sync;
use taken::Taken;

/// What is asked of the pool. Offsets and lengths are in bytes, multiples of 512, and within the LU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// A new LU; answered with its number.
    Create {
        /// Its chunks, at least 1.
        chunks: u32,
        /// Space for all of it is set aside.
        thick: bool,
        /// Where its chunks come from.
        tier: u8,
        /// A mark that the asker has drawn. Who asks again with it is told of the LU that was made then, as long as that is there, also after the pool was opened again; 0: one is made each time.
        asked: u64,
    },
    /// The same, and its data has checksums: of what nobody has changed for a while, what is read is what was written, or an error. Only where LUs have two legs; there are no snapshots of it.
    CreateSummed {
        /// As above.
        chunks: u32,
        /// As above.
        thick: bool,
        /// As above.
        tier: u8,
        /// As above.
        asked: u64,
    },
    /// No such LU any more.
    Delete {
        /// The LU.
        lu: u32,
    },
    /// The LU has so many chunks, at least 1: what is behind them is gone, and what is new is zeros.
    Resize {
        /// The LU.
        lu: u32,
        /// Its chunks from now on.
        chunks: u32,
    },
    /// The LU is in this tier: what it gets from now on comes from there, and what it has elsewhere moves there by itself afterwards ([`Pool::balance`]), also after the pool was opened again.
    /// Not one that shares what it holds, and not where it has no room.
    SetTier {
        /// The LU.
        lu: u32,
        /// Its tier from now on.
        tier: u8,
    },
    /// Read.
    Read(Extent),
    /// Write; with `durable`, as if a flush of it followed.
    Write {
        /// Where.
        extent: Extent,
        /// It is on stable storage when it is answered.
        durable: bool,
    },
    /// Zeros from now on. Gives back what is zeros altogether.
    Zeroes(Extent),
    /// What it holds does not matter any more. Of this, whole blocks are zeros from now on; the rest is as it was. Of an LU that shares what it holds with a snapshot all is as it was.
    Discard(Extent),
    /// What was answered before is on stable storage when this is answered.
    Flush {
        /// The LU.
        lu: u32,
    },
    /// A leg of a chunk of an LU, or of a layer, is on that PV when this is answered.
    Move {
        /// The LU, or the layer.
        lu: u32,
        /// Its chunk.
        vchunk: u32,
        /// The leg.
        leg: u8,
        /// Where it goes: a PV of the same tier that has no other leg of the chunk.
        pv: u16,
    },
    /// A new PV, which effects know by the number of members that there were so far ([`Pool::superblock`]); answered with that number. It is written to; if that fails at once, nothing has changed.
    AddPv(NewPv),
    /// A PV has so many chunks from now on, not fewer than it had; answered when that is durable.
    GrowPv {
        /// Its number.
        pv: u16,
        /// Its chunks, with that of its header.
        chunks: u32,
    },
    /// A PV is no member any more when this is answered; what it has goes to others of its tier first ([`Pool::removals`]). What was begun goes on after the pool was opened again.
    RemovePv {
        /// Its number.
        pv: u16,
    },
    /// A PV that is to leave stays: who waits for its removal is told [`Fault::Cancelled`]. What has moved may come back ([`Pool::balance`]).
    KeepPv {
        /// Its number.
        pv: u16,
    },
    /// A PV that was away is there again: when this is answered it is used, and chunks that changed meanwhile get what it missed ([`Pool::resync`]).
    ReturnPv {
        /// Its number.
        pv: u16,
    },
    /// A snapshot of each of these LUs, all of one moment: what was answered before is in them and on stable storage when this is answered with their numbers.
    Snapshot {
        /// The LUs.
        lus: Group,
        /// A number of the asker's own. Who asks again with it, on the same server, is told of those that were made then, also after the pool was opened again; 0: they are made each time.
        asked: u64,
    },
    /// The snapshot of an LU that was made when that was asked for under this number; answered with it, or with none.
    FindSnapshot {
        /// The LU, which may be gone.
        lu: u32,
        /// As in [`Request::Snapshot`].
        asked: u64,
    },
    /// A new LU that holds what a snapshot holds; answered with its number.
    Clone {
        /// The snapshot.
        snapshot: u32,
        /// As in [`Request::Create`].
        asked: u64,
    },
    /// Each of these LUs holds what its snapshot holds, all from the same moment on, and what was written since is gone.
    Rollback {
        /// The LUs.
        lus: Group,
        /// A snapshot of each.
        snapshots: Group,
    },
    /// All that the LU holds is in its own space when this is answered, and it shares nothing. What it holds, and what others do, stays as it is.
    Detach {
        /// The LU.
        lu: u32,
    },
    /// An LU that is being detached goes on sharing, unless that is over.
    StopDetach {
        /// The LU.
        lu: u32,
    },
    /// Layers that need not be there are coalesced, and detaching goes on that a process before this one had begun; answered when there is no more of it, or when what is left cannot be done now.
    Coalesce,
    /// All that is written is read from every leg, which are compared, and what cannot be read on one is written there again ([`Pool::findings`], [`Pool::scrubbing`]); answered when it is over. One at a time.
    Scrub,
    /// A scrub that goes on ends: who asked for it is told [`Fault::Cancelled`].
    StopScrub,
    /// A checkpoint now.
    Checkpoint,
}

/// A part of an LU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The LU.
    pub lu: u32,
    /// Its first byte.
    pub at: u64,
    /// Bytes, at least 1.
    pub bytes: u64,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Phase {
    /// Until then requests wait.
    Opening,
    Serving,
    /// It does nothing any more, for that reason.
    Stopped(Fault),
}

/// What an effect that was given out is for.
#[derive(Debug)]
enum Op {
    /// A leg of the write with this number.
    Data { write: u64 },
    /// A client reads.
    Fetch { fetch: reads::Fetch },
    /// Both places of the home record of a chunk, for the slot if there is one.
    Home { id: ChunkId, key: Option<(u32, u32)> },
    /// A block of the journal.
    Journal,
    /// A flush for a client's flush.
    Sync { lu: u32 },
    /// A write of a checkpoint, or a flush of one.
    Checkpoint,
    /// A copy of a superblock.
    Superblock,
    /// A drain, and what comes after it.
    Drain { then: Drained },
    /// A block of a chunk that moves.
    Copy { key: (u32, u32), id: ChunkId, block: usize },
    /// The flush of a copy.
    MoveFlush { key: (u32, u32), id: ChunkId },
    /// A flush, or a block of the journal, of the opening.
    Opening,
    /// The label of a PV that is being added.
    Join { tag: u64, new: NewPv },
    /// A part of a PV that is gone is erased.
    Erase { pv: u16 },
    /// A flush that only tells whether the PV is there.
    Probe,
    /// A PV that returns is looked at.
    Look { what: Looked },
    /// A leg is read to see whether it can be, and is the same.
    Check { key: (u32, u32), step: u64, leg: ChunkId },
    /// The checksums of a chunk are read.
    Sums { piece: Piece, tried: u8 },
    /// What could not be read on a leg is written there again.
    Rewrite { key: (u32, u32), leg: ChunkId, block: usize },
}

/// What may be done when nothing that was begun before is under way.
#[derive(Debug)]
enum Drained {
    /// Give these chunks out again.
    Free(Vec<ChunkId>),
    /// Copy this slot to that chunk.
    Move((u32, u32), ChunkId),
    /// Make the snapshots.
    Cut,
    /// Look at the PV that returns.
    Return,
}

/// Who wants something.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Asker {
    /// A client, or whoever has this tag.
    Tag(u64),
    /// A PV that this chunk of an LU is to leave.
    Leaving(u16, (u32, u32)),
    /// A chunk of an LU of which a leg goes where less is.
    Balance((u32, u32)),
    /// The snapshots that are being made.
    Cut,
    /// What is being coalesced.
    Merge(Step),
    /// A chunk of an LU that is made whole.
    Mend((u32, u32)),
    /// A chunk of an LU of which all legs are read, for a scrub or since a client could not read one.
    Check((u32, u32), bool),
    /// The checksums of a chunk.
    Sums((u32, u32), sums::Step),
    /// Chunks that are quiet.
    Quiet,
    /// What was written and nobody flushes.
    Untold,
}

/// A request under way.
#[derive(Debug)]
struct Job {
    owner: Asker,
    lu: u32,
    /// Parts that are not over.
    left: u32,
    /// The transaction that must be durable before the answer.
    txn: u64,
    fault: Option<Fault>,
    /// Chunks to make durable before the answer.
    then_sync: Vec<(u32, u32)>,
}

/// Who waits for a transaction.
#[derive(Debug)]
enum Waiter {
    Job(u64),
    Created(u64, u32),
    Deleted(u64, u32),
    Resized(u64, u32),
    Moved((u32, u32), u16),
    Active((u32, u32)),
    Cut,
    Merged,
    Opened,
}

/// A change of the superblock.
#[derive(Clone, Copy, Debug)]
enum Change {
    Open,
    Root(Root),
    /// PVs are away.
    Lose,
    /// PVs that have returned have all that they should.
    Whole,
}

/// A superblock that is being written.
#[derive(Debug)]
struct Update {
    change: Change,
    next: Superblock,
    /// PVs of which it says that they are away.
    lost: BTreeSet<u16>,
    /// It could not be written on a PV that is away now.
    failed: bool,
    /// The copies that are written after those that are being written, and the one PV on which they are.
    then: VecDeque<(Vec<u8>, Option<u16>)>,
    left: u32,
}

/// A pool that is open.
#[derive(Debug)]
pub struct Pool {
    pub(crate) policy: Policy,
    server: Uuid,
    slot: u8,
    phase: Phase,
    chosen: Chosen,
    tables: Tables,
    log: Log,
    checkpoint: Checkpoint,
    members: Members,
    losses: Losses,
    returning: Option<Return>,
    mends: Mends,
    activity: Activity,
    missed: Missed,
    checks: Checks,
    sums: Summing,
    features: Features,
    /// Chunks whose next block waits for leave to be copied.
    held: HeldCopies,
    /// Chunks that are copied, of which nobody was told so far.
    settling: BTreeSet<(u32, u32)>,
    slots: BTreeMap<(u32, u32), Slot>,
    /// The number of the next LU, with those that are not in the tables yet.
    next_lu: u32,
    /// LUs whose deletion has begun, and what goes with them.
    dying: BTreeSet<u32>,
    layered: Layered,
    cuts: Cuts,
    merges: Merges,
    /// LUs that are being resized, and the chunks of each that are there before and after.
    resizing: BTreeMap<u32, u32>,
    taken: Taken,
    /// How many chunks the pool's own blocks take on each member, as the superblock that counts has it.
    own: Vec<u32>,
    /// Drains that are over while operations of the pool that are older are not.
    drained: Vec<(u64, Drained)>,
    /// Writes that wait for space.
    full: Full,
    /// Chunks that are set aside for LUs that are not thick.
    reserves: BTreeMap<u32, u32>,
    /// Chunks that tiers may give out, of those that do not give out all they have.
    allowed: BTreeMap<u8, u32>,
    /// What thick LUs will have set aside that are not in the tables yet: by transaction.
    promised: BTreeMap<u64, Vec<Promised>>,
    /// LUs that were asked for with a mark and are not durable yet, by that mark: their transaction, and their number.
    making: BTreeMap<u64, (u64, u32)>,
    /// With the PVs that they need.
    ops: BTreeMap<u64, (Op, [Option<u16>; 2])>,
    /// How many of them each PV has, and more.
    load: Loads,
    writes: BTreeMap<u64, slots::Writing>,
    jobs: BTreeMap<u64, Job>,
    /// Flushes under way, by LU, and those that come after them.
    syncs: BTreeMap<u32, Sync>,
    sync_queue: BTreeMap<u32, Vec<sync::Asked>>,
    /// Those of them that nobody has asked for.
    telling: usize,
    waiters: BTreeMap<u64, Vec<Waiter>>,
    changes: VecDeque<Change>,
    update: Option<Update>,
    opening: open::Opening,
    early: Vec<(u64, Request)>,
    /// Chunks of LUs of which something may have changed.
    touched: BTreeSet<(u32, u32)>,
    /// The last number that was given out, of whatever is numbered here.
    number: u64,
    effects: Vec<Effect>,
    #[cfg(test)]
    pub(crate) broken: Option<Rule>,
    /// Clients read from the last leg, not from the first.
    #[cfg(test)]
    pub(crate) last_leg: bool,
}

impl Pool {
    #[cfg(test)]
    fn keeps(&self, rule: Rule) -> bool {
        self.broken != Some(rule)
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    fn keeps(&self, _: Rule) -> bool {
        true
    }

    #[cfg(test)]
    fn reads_last(&self) -> bool {
        self.last_leg
    }

    #[cfg(not(test))]
    #[allow(clippy::unused_self)]
    fn reads_last(&self) -> bool {
        false
    }

    fn number(&mut self) -> u64 {
        self.number += 1;
        self.number
    }

    /// Begins with a request of so many parts; its number.
    fn begin_job(&mut self, owner: Asker, lu: u32, left: u32) -> u64 {
        let job = self.number();
        self.jobs.insert(job, Job { owner, lu, left, txn: 0, fault: None, then_sync: Vec::new() });
        job
    }

    fn give(&mut self, op: Op, effect: impl FnOnce(u64) -> Effect) {
        let number = self.number();
        let effect = effect(number);
        effect.pvs().into_iter().flatten().for_each(|pv| self.load.begins(pv));
        self.ops.insert(number, (op, effect.pvs()));
        self.effects.push(effect);
    }

    fn give_write(&mut self, op: Op, pv: u16, at: u64, what: Payload, durable: bool) {
        self.give(op, |op| Effect::Write { op, pv, at, what, durable });
    }

    fn give_flush(&mut self, op: Op, pv: u16) {
        self.missed.flushes(pv, self.number + 1);
        self.give(op, |op| Effect::Flush { op, pv });
    }

    fn answer(&mut self, tag: u64, result: Result<Reply, Fault>) {
        self.effects.push(Effect::Answer { tag, result });
    }

    /// What is to be done since this was last asked, in the order in which it came up.
    pub fn effects(&mut self) -> Vec<Effect> {
        std::mem::take(&mut self.effects)
    }

    /// Takes a request; its end is an [`Effect::Answer`] with this tag, which is the caller's and must be free.
    pub fn submit(&mut self, tag: u64, request: Request) {
        match self.phase {
            Phase::Opening => self.early.push((tag, request)),
            Phase::Stopped(why) => self.answer(tag, Err(why)),
            Phase::Serving => self.begin(tag, request),
        }
        self.turn();
    }

    /// Takes what became of an effect. A number that is not under way is ignored.
    pub fn done(&mut self, op: u64, outcome: Outcome) {
        let Some((what, pvs)) = self.ops.remove(&op) else { return };
        pvs.into_iter().flatten().for_each(|pv| self.load.ends(pv));
        if let (Op::Fetch { .. }, [Some(pv), _]) = (&what, pvs) {
            self.load.was_read(pv);
        }
        if self.stopped().is_some() {
            return;
        }
        // What failed on one PV, and may be the loss of it.
        let failed = match pvs {
            [Some(pv), None] if outcome == Outcome::Failed => Some(pv),
            _ => None,
        };
        if let [Some(pv), None] = pvs {
            self.missed.is_over(pv, op, outcome != Outcome::Failed);
        }
        let mut lost = |held| failed.is_some_and(|pv| self.is_lost(pv, held));
        match what {
            Op::Data { write } if lost(Held::Data(write)) => {}
            Op::Sync { lu } if lost(Held::Sync(lu)) => {}
            Op::Journal if lost(Held::Journal) => {}
            Op::Data { write } => self.data_done(write, &outcome),
            Op::Fetch { fetch } => self.fetched(fetch, outcome),
            Op::Look { what } => self.looked(what, &outcome),
            Op::Check { key, step, leg } => self.leg_read(key, step, leg, outcome),
            Op::Sums { piece, tried } => self.sums_read(piece, tried, &outcome),
            Op::Rewrite { key, leg, block } => {
                _ = failed.is_some_and(|pv| self.lose(pv));
                self.rewritten(key, leg, block, &outcome);
            }
            Op::Probe => _ = failed.is_some_and(|pv| self.lose(pv)),
            Op::Superblock => self.superblock_done(pvs[0].unwrap_or_default(), &outcome),
            Op::Checkpoint if failed.is_some_and(|pv| self.lose(pv)) => {
                self.checkpoint.fails();
                self.checkpoint_done();
            }
            Op::Home { id, key } => self.home_read(id, key, outcome),
            Op::Sync { lu } => self.sync_flushed(lu, &outcome),
            Op::Drain { then } => self.drained.push((op, then)),
            Op::Join { tag, new } => self.label_written(tag, new, &outcome),
            Op::Erase { pv } => self.erased(pv),
            Op::Copy { key, id, block } => self.copied(key, id, block, &outcome),
            Op::MoveFlush { key, id } => self.move_flushed(key, id, &outcome),
            _ if outcome == Outcome::Failed => self.stop(Fault::Stopped),
            Op::Journal => self.journal_done(),
            Op::Checkpoint => self.checkpoint_done(),
            Op::Opening => self.opening_done(),
        }
        self.release();
        self.turn();
    }

    /// What may have become possible.
    fn turn(&mut self) {
        if self.stopped().is_none() {
            self.turn_members();
            self.turn_mends();
            self.turn_checks();
            self.turn_features();
            self.turn_sums();
            self.turn_cut();
            self.turn_merge();
            self.turn_checkpoint();
            self.turn_log();
        }
    }

    /// Nothing can be made durable any more: everybody is told why.
    fn stop(&mut self, why: Fault) {
        self.phase = Phase::Stopped(why);
        let tags: BTreeSet<u64> = self
            .jobs
            .values()
            .filter_map(|job| match job.owner {
                Asker::Tag(tag) => Some(tag),
                Asker::Leaving(..)
                | Asker::Balance(_)
                | Asker::Cut
                | Asker::Merge(_)
                | Asker::Mend(_)
                | Asker::Check(..)
                | Asker::Sums(..)
                | Asker::Quiet
                | Asker::Untold => None,
            })
            .collect();
        let waiters = std::mem::take(&mut self.waiters).into_values().flatten();
        let others = waiters.filter_map(|waiter| match waiter {
            Waiter::Created(tag, _) | Waiter::Deleted(tag, _) | Waiter::Resized(tag, _) => {
                Some(tag)
            }
            Waiter::Job(_)
            | Waiter::Moved(..)
            | Waiter::Active(_)
            | Waiter::Cut
            | Waiter::Merged
            | Waiter::Opened => None,
        });
        let early = self.early.drain(..).map(|(tag, _)| tag);
        let mut checkpoints = self.checkpoint.stop();
        checkpoints.extend(self.members.stop());
        checkpoints.extend(self.cuts.stop());
        checkpoints.extend(self.merges.stop());
        checkpoints.extend(self.checks.stop());
        checkpoints.extend(self.features.stop());
        checkpoints.extend(self.returning.take().map(|returning| returning.tag()));
        for tag in
            tags.into_iter().chain(others).chain(early).chain(checkpoints).collect::<Vec<_>>()
        {
            self.answer(tag, Err(why));
        }
        self.jobs.clear();
        self.full = Full::default();
        self.held = HeldCopies::default();
    }

    fn begin(&mut self, tag: u64, request: Request) {
        if self.cuts.holds(request) {
            return self.cuts.hold(tag, request);
        }
        match request {
            Request::Create { chunks, thick, tier, asked } => {
                self.create(tag, (chunks, thick, tier), asked);
            }
            Request::CreateSummed { .. } => self.create_summed(tag, request),
            Request::Delete { lu } => self.delete(tag, lu),
            Request::Resize { lu, chunks } => self.resize(tag, lu, chunks),
            Request::SetTier { lu, tier } => self.set_tier(tag, lu, tier),
            Request::Read(extent) => self.begin_pieces(tag, extent, PieceKind::Read),
            Request::Write { extent, durable } => {
                self.begin_pieces(tag, extent, PieceKind::Write { durable });
            }
            Request::Zeroes(extent) => self.begin_pieces(tag, extent, PieceKind::Zeroes),
            Request::Discard(extent) => self.begin_pieces(tag, extent, PieceKind::Discard),
            Request::Flush { lu } => self.flush(tag, lu),
            Request::Move { lu, vchunk, leg, pv } => {
                let extent = Extent { lu, at: u64::from(vchunk) * CHUNK_BYTES, bytes: CHUNK_BYTES };
                self.begin_pieces(tag, extent, PieceKind::Move { leg, pv });
            }
            Request::AddPv(new) => self.add_pv(tag, new),
            Request::GrowPv { pv, chunks } => self.grow_pv(tag, pv, chunks),
            Request::RemovePv { pv } => self.remove_pv(tag, pv),
            Request::KeepPv { pv } => self.keep_pv(tag, pv),
            Request::ReturnPv { pv } => self.return_pv(tag, pv),
            Request::Snapshot { lus, asked } => self.begin_cut(tag, Cut::Snapshot(lus, asked)),
            Request::FindSnapshot { lu, asked } => {
                self.begin_cut(tag, Cut::Find(Group::of(&[lu]), asked));
            }
            Request::Clone { snapshot, asked } => {
                self.begin_cut(tag, Cut::Clone { snapshot, asked });
            }
            Request::Rollback { lus, snapshots } => {
                self.begin_cut(tag, Cut::Rollback(lus, snapshots));
            }
            Request::Detach { .. } | Request::StopDetach { .. } | Request::Coalesce => {
                self.ask_merge(tag, request);
            }
            Request::Scrub => self.scrub(tag),
            Request::StopScrub => self.stop_scrub(tag),
            Request::Checkpoint => self.checkpoint.asked.push(tag),
        }
    }

    /// Whether there is such an LU, also for requests that come now.
    fn serves(&self, lu: u32) -> bool {
        self.tables.lus.get(&lu).is_some_and(|lu| lu.is_lu()) && !self.dying.contains(&lu)
    }

    /// Whether there is an LU, a layer, or the space of an LU with this number, and nobody is about to let it go.
    fn has_space(&self, space: u32) -> bool {
        self.tables.lus.contains_key(&space) && !self.layered.dying.contains(&space)
    }

    /// The chunks of an LU that somebody may work with.
    fn chunks_of(&self, lu: u32) -> u32 {
        let known = self.tables.lus.get(&lu).map_or(0, |lu| lu.chunks);
        self.resizing.get(&lu).map_or(known, |chunks| known.min(*chunks))
    }

    fn begin_pieces(&mut self, tag: u64, extent: Extent, kind: PieceKind) {
        let Extent { lu, at, bytes } = extent;
        // Containers of layers move as well.
        let moves = matches!(kind, PieceKind::Move { .. });
        let there = self.serves(lu) || moves && self.has_space(lu);
        if !there {
            return self.answer(tag, Err(Fault::NoSuchLu));
        }
        let size = u64::from(self.chunks_of(lu)) * CHUNK_BYTES;
        if bytes == 0
            || (at | bytes) % 512 != 0
            || at.checked_add(bytes).is_none_or(|end| end > size)
        {
            return self.answer(tag, Err(Fault::Range));
        }
        if !moves {
            let known = self.tables.lus.get(&lu);
            if kind != PieceKind::Read && known.is_some_and(|lu| lu.role == Role::Snapshot) {
                return self.answer(tag, Err(Fault::Frozen));
            }
            if known.is_some_and(|lu| lu.beneath != 0) {
                return self.begin_parts(tag, extent, kind);
            }
        }
        let (first, last) = (at / CHUNK_BYTES, (at + bytes - 1) / CHUNK_BYTES);
        let job = self.begin_job(Asker::Tag(tag), lu, (last - first + 1) as u32);
        for vchunk in first..=last {
            let from = at.max(vchunk * CHUNK_BYTES);
            let end = (at + bytes).min((vchunk + 1) * CHUNK_BYTES);
            self.advance(Piece {
                job,
                tag,
                key: (lu, vchunk as u32),
                at: from - vchunk * CHUNK_BYTES,
                bytes: end - from,
                from: from - at,
                kind,
                part: None,
            });
        }
    }

    /// The superblock that counts.
    pub fn superblock(&self) -> &Superblock {
        &self.chosen.superblock
    }

    /// Numbers and chunks of all LUs, with snapshots.
    pub fn lus(&self) -> impl Iterator<Item = (u32, u32)> {
        let lus = self.tables.lus.iter().filter(|(lu, _)| self.serves(**lu));
        lus.map(|(number, lu)| (*number, lu.chunks))
    }

    /// Whether it takes requests without delay.
    pub fn is_serving(&self) -> bool {
        self.phase == Phase::Serving
    }
}
