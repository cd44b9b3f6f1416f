//! A pool at work on such PVs, with clients; each step is one effect that is carried out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

mod holding;
mod taking;

use super::disk::{Disks, Image, Pages, SECTOR, Write};
pub(super) use super::opened::{Found, judge, read_all};
use super::opened::{READ, refuse_strangers};
use super::oracle::{Death, Oracle, stamp};
use crate::format::{BLOCK_BYTES, MemberState, Uuid};
use crate::pool::{
    Effect, Extent, Fault, Lookup, NotOpened, Outcome, Payload, Policy, Pool, Reader, Reply,
    Request, Rule, Source,
};

pub(super) const SERVER: Uuid = Uuid(*b"the only server.");
/// Checkpoints come by themselves, if rarely.
pub(super) const POLICY: Policy = Policy {
    checkpoint_blocks: 9,
    checkpoint_homes: 4096,
    untold: 2048,
    layers: true,
    held_parts: 1,
    mends: 2,
    paced: true,
    alone: false,
};

/// A generator of numbers that is the same everywhere.
#[derive(Clone, Copy)]
pub(super) struct Random(pub(super) u64);

impl Random {
    /// A number below `end`.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 =
            self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) % end.max(1) as u64) as usize
    }
}

/// In which order effects are carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Schedule {
    First,
    Last,
    Any,
}

/// Something under way.
enum Flying {
    Effect(Effect, u64),
    /// A channel writes without asking the pool: its request, and what it writes.
    Channel(u64, Write),
}

pub(super) struct World {
    pub(super) pool: Pool,
    pub(super) disks: Disks,
    pub(super) oracle: Oracle,
    flying: VecDeque<Flying>,
    /// Drains with the requests of channels that were under way when they began.
    requests: BTreeMap<u64, (u32, u64)>,
    tag: u64,
    pub(super) random: Random,
    pub(super) schedule: Schedule,
    /// Steps so far.
    steps: u64,
    /// Requests that were refused.
    pub(super) faults: BTreeMap<u64, Fault>,
    /// Something changed that a crash could show.
    pub(super) changed: bool,
    /// Copies from this PV fail.
    pub(super) unreadable: Option<u16>,
    /// So does whatever the pool reads of its own there.
    pub(super) own_unreadable: Option<u16>,
    /// So does whatever clients read there.
    pub(super) clients_unreadable: Option<u16>,
    /// Pages of PVs that cannot be read until they are written again; or also then.
    pub(super) bad: BTreeSet<(u16, u64)>,
    pub(super) stays_bad: bool,
    /// Nothing can be done on this PV.
    pub(super) lost: Option<u16>,
    /// Another server has this PV, which refuses everything.
    pub(super) taken_over: Option<u16>,
    /// PVs that were lost, now or before.
    pub(super) had_lost: BTreeSet<u16>,
    /// Requests of channels that failed on a leg.
    failed: BTreeSet<u64>,
    /// Blocks that were copied to each PV.
    pub(super) copied: BTreeMap<u16, u64>,
    /// What is being read.
    reads: BTreeMap<u64, (u32, u64, Vec<u8>)>,
    pub(super) taking: taking::Taking,
}

impl World {
    pub(super) fn open(
        pages: Pages,
        oracle: Oracle,
        broken: Option<Rule>,
    ) -> Result<World, NotOpened> {
        World::open_without(pages, oracle, broken, None, POLICY)
    }

    pub(super) fn open_without(
        pages: Pages,
        mut oracle: Oracle,
        broken: Option<Rule>,
        lost: Option<u16>,
        policy: Policy,
    ) -> Result<World, NotOpened> {
        oracle.power_failed();
        let mut source = Image::new(&pages).without(lost);
        let mut pool = Pool::open(&mut source, SERVER, None, policy)?;
        pool.broken = broken;
        let mut world = World {
            pool,
            disks: Disks::new(pages),
            oracle,
            flying: VecDeque::new(),
            requests: BTreeMap::new(),
            tag: 1 << 20,
            random: Random(1),
            schedule: Schedule::First,
            steps: 0,
            faults: BTreeMap::new(),
            changed: true,
            unreadable: None,
            own_unreadable: None,
            clients_unreadable: None,
            bad: BTreeSet::new(),
            stays_bad: false,
            lost,
            taken_over: None,
            had_lost: lost.into_iter().collect(),
            failed: BTreeSet::new(),
            copied: BTreeMap::new(),
            reads: BTreeMap::new(),
            taking: taking::Taking::default(),
        };
        let lacks = |state| {
            use MemberState::{Dismissed, Returning, Stale};
            matches!(state, Stale | Returning | Dismissed)
        };
        let members = (0..).zip(&world.pool.superblock().members);
        let lacking = members.filter(|(_, member)| lacks(member.state)).map(|(pv, _)| pv);
        world.had_lost.extend(lacking);
        world.start();
        Ok(world)
    }

    pub(super) fn tag(&mut self) -> u64 {
        self.tag += 1;
        self.tag
    }

    /// Tags from here on.
    pub(super) fn tags_from(&mut self, tag: u64) {
        self.tag = tag;
    }

    /// Begins a request, which the oracle knows by the same tag.
    pub(super) fn submit(&mut self, request: Request) -> u64 {
        let tag = self.tag();
        self.tell();
        match request {
            // One that is there already, perhaps.
            Request::Create { asked: 1.., .. } => self.oracle.other(tag),
            Request::Create { chunks, .. } | Request::CreateSummed { chunks, .. } => {
                self.oracle.create(tag, chunks);
            }
            Request::Delete { lu } => self.oracle.delete(tag, lu),
            Request::Write { extent: Extent { lu, at, bytes }, durable } => {
                self.oracle.write(tag, lu, at, bytes, durable);
                self.requests.insert(tag, (lu, at));
            }
            Request::Zeroes(Extent { lu, at, bytes }) => self.oracle.zeroes(tag, lu, at, bytes),
            Request::Discard(Extent { lu, at, bytes }) => self.oracle.discard(tag, lu, at, bytes),
            Request::Flush { lu } => self.oracle.flush(tag, lu),
            Request::Resize { lu, chunks } => self.oracle.resize(tag, lu, chunks),
            Request::Snapshot { lus, .. } => self.oracle.snapshot(tag, lus.iter().collect()),
            Request::Clone { snapshot, .. } => self.oracle.clone_of(tag, snapshot),
            Request::Rollback { lus, snapshots } => {
                self.oracle.rollback(tag, lus.iter().zip(snapshots.iter()).collect());
            }
            Request::Move { .. }
            | Request::AddPv(_)
            | Request::GrowPv { .. }
            | Request::RemovePv { .. }
            | Request::SetTier { .. }
            | Request::KeepPv { .. }
            | Request::ReturnPv { .. }
            | Request::Detach { .. }
            | Request::StopDetach { .. }
            | Request::Coalesce
            | Request::Checkpoint
            | Request::Scrub
            | Request::StopScrub
            | Request::FindSnapshot { .. } => self.oracle.other(tag),
            Request::Read(Extent { lu, at, bytes }) => {
                self.oracle.other(tag);
                self.reads.insert(tag, (lu, at, vec![0x77; bytes as usize]));
            }
        }
        self.changed = true;
        // A channel looks first; what it can do alone it does, unless another server has the pool.
        let fenced = self.pool.stopped() == Some(Fault::Fenced);
        if !fenced
            && let Request::Write { extent, durable: false } = request
            && let Lookup::There { legs, count } = self.pool.lookup(extent)
            // What has two legs the pool writes, which knows what either misses.
            && self.pool.lu_spaces().any(|lu| lu.lu == extent.lu && lu.legs == 1)
        {
            for (pv, at) in legs.into_iter().take(count) {
                let sectors = extent.bytes as usize / SECTOR;
                let bytes = Rc::new(stamp(extent.lu, tag).repeat(sectors));
                self.flying.push_back(Flying::Channel(tag, Write { pv, at, bytes }));
            }
            return tag;
        }
        if fenced || !self.takes(tag, &request) {
            self.pool.submit(tag, request);
            self.collect();
        }
        tag
    }

    fn collect(&mut self) {
        self.take_effects();
        // Copies wait for leave, now short, now long.
        let soon = self.schedule != Schedule::Any || self.steps.is_multiple_of(3);
        while (soon || self.flying.is_empty()) && self.pool.has_held_copies() {
            for held in self.pool.held_copies() {
                // Where there is one leg, that alone is read.
                assert!(held.from != held.to || self.pool.scrubbing().is_some());
                self.pool.let_copy(held);
            }
            self.take_effects();
        }
    }

    fn take_effects(&mut self) {
        for effect in self.pool.effects() {
            match effect {
                // The shell holds it.
                Effect::Answer { tag, result: Err(fault @ Fault::Fenced) } => {
                    self.faults.insert(tag, fault);
                }
                Effect::Answer { tag, result } => {
                    let created = match result {
                        Ok(Reply::Created(lu)) => Some(lu),
                        _ => None,
                    };
                    match result {
                        Ok(Reply::Snapshots(made)) => self.oracle.made(tag, made.iter().collect()),
                        Ok(Reply::Created(made)) => self.oracle.made(tag, vec![made]),
                        _ => {}
                    }
                    self.oracle.over(tag, result.is_ok(), created);
                    self.faults.extend(result.err().map(|fault| (tag, fault)));
                    self.changed = true;
                }
                Effect::Zero { tag, from, bytes } => {
                    if let Some((.., buffer)) = self.reads.get_mut(&tag) {
                        buffer[from as usize..][..bytes as usize].fill(0);
                    }
                }
                Effect::Give { tag, from, bytes } => {
                    if let Some((.., buffer)) = self.reads.get_mut(&tag) {
                        buffer[from as usize..][..bytes.len()].copy_from_slice(&bytes);
                    }
                }
                other => {
                    refuse_strangers(&self.pool, &other);
                    let mark = self.disks.mark();
                    self.changed |= matches!(other, Effect::Write { .. } | Effect::Copy { .. });
                    self.flying.push_back(Flying::Effect(other, mark));
                }
            }
        }
    }

    fn write_of(&self, pv: u16, at: u64, what: &Payload) -> Write {
        let bytes = match what {
            Payload::Own(bytes) => bytes.clone(),
            Payload::Zeros(bytes) => vec![0; *bytes as usize],
            Payload::Client { tag, bytes, before, after, .. } => {
                let (lu, _) = self.requests[tag];
                let mut all = vec![0; *before as usize];
                all.extend(stamp(lu, *tag).repeat(*bytes as usize / SECTOR));
                all.resize(all.len() + *after as usize, 0);
                all
            }
        };
        Write { pv, at, bytes: Rc::new(bytes) }
    }

    fn copy_of(&self, from: (u16, u64), (pv, at): (u16, u64), bytes: u64) -> Write {
        let found = Image::new(self.disks.now()).read(from.0, from.1, bytes as usize).unwrap();
        Write { pv, at, bytes: Rc::new(found) }
    }

    /// A PV fails from now on; of what was under way there some was done.
    pub(super) fn lose(&mut self, pv: u16) {
        let members = &self.pool.superblock().members;
        // One that is no member any more is nobody's concern.
        let lost = self.lost.filter(|lost| members[usize::from(*lost)].state != MemberState::Gone);
        if lost.is_some() || usize::from(pv) >= members.len() {
            return;
        }
        self.changed = true;
        self.lost = Some(pv);
        self.had_lost.insert(pv);
        for write in self.flying().into_iter().filter(|write| write.pv == pv) {
            match self.random.below(4) {
                0 => self.disks.write(write, false),
                1 => {
                    let half = write.bytes.len() / SECTOR / 2 * SECTOR;
                    let bytes = Rc::new(write.bytes[..half].to_vec());
                    self.disks.write(Write { bytes, ..write }, false);
                }
                _ => {}
            }
        }
    }

    /// It is there again, and the pool is told.
    pub(super) fn bring_back(&mut self) -> Option<u64> {
        let pv = self.lost?;
        // What was given out for it ends first.
        let needs = |flying: &Flying| match flying {
            Flying::Effect(effect, _) => effect.pvs().contains(&Some(pv)),
            Flying::Channel(_, write) => write.pv == pv,
        };
        while let Some(at) = self.flying.iter().position(needs) {
            self.carry_out(at);
        }
        self.lost = None;
        if self.pool.is_away(pv) {
            let mut random = self.random;
            self.disks.lose_cache(pv, || random.below(2) == 0);
            self.random = random;
        }
        Some(self.submit(Request::ReturnPv { pv }))
    }

    /// Reads all LUs as they are, from both legs if there are two, when nothing is under way.
    pub(super) fn judge_now(&mut self) -> Result<(), String> {
        self.rest();
        for last in [false, true] {
            self.pool.last_leg = last;
            let lus: Vec<(u32, u32)> = self.pool.lus().collect();
            let parts =
                lus.iter().flat_map(|(lu, chunks)| (0..*chunks).map(move |chunk| (*lu, chunk)));
            for (lu, chunk) in parts.collect::<Vec<_>>() {
                for (at, bytes) in READ {
                    let at = u64::from(chunk) * crate::format::CHUNK_BYTES + at;
                    let tag = self.submit(Request::Read(Extent { lu, at, bytes }));
                    self.rest();
                    if self.oracle.is_open(tag) {
                        return Err(format!("LU {lu} cannot be read"));
                    }
                    let (.., bytes) = self.reads.remove(&tag).unwrap();
                    if let Some(fault) = self.faults.remove(&tag) {
                        return Err(format!("LU {lu} cannot be read: {fault}"));
                    }
                    let judged = self.oracle.judge(Death::Process, lu, at, &bytes);
                    judged.map_err(|wrong| format!("{wrong}\n  at work, last leg: {last}"))?;
                }
            }
        }
        self.pool.last_leg = false;
        Ok(())
    }

    /// What a read has found.
    pub(super) fn found(&mut self, tag: u64) -> Vec<u8> {
        self.reads.remove(&tag).unwrap().2
    }

    /// Time goes by.
    pub(super) fn look(&mut self, idle: bool) {
        self.pool.look_at_activity(idle);
        self.collect();
    }

    /// What could not be copied is tried again.
    pub(super) fn move_again(&mut self) {
        self.pool.move_again();
        self.collect();
    }

    /// Calls back the request that has waited longest for space.
    pub(super) fn cancel_first(&mut self) {
        if let Some(tag) = self.pool.paused_requests().into_keys().next() {
            assert!(self.cancel(tag));
        }
    }

    /// Calls a request back, if it waits for space.
    pub(super) fn cancel(&mut self, tag: u64) -> bool {
        let waited = self.pool.cancel(tag);
        self.collect();
        waited
    }

    /// Tells the pool something that is no request, and lets it come to rest.
    pub(super) fn change<T>(&mut self, what: impl FnOnce(&mut Pool) -> T) -> T {
        let told = what(&mut self.pool);
        self.collect();
        self.rest();
        told
    }

    /// Carries out one thing that is under way; false if there is none.
    pub(super) fn step(&mut self) -> bool {
        let channels = |flying: &VecDeque<Flying>| {
            flying.iter().position(|flying| matches!(flying, Flying::Channel(..)))
        };
        let drains = |flying: &Flying| matches!(flying, Flying::Effect(Effect::Drain { .. }, _));
        // A drain is over when what channels had begun before it is.
        let before = channels(&self.flying);
        let ready: Vec<usize> = (0..self.flying.len())
            .filter(|index| {
                !drains(&self.flying[*index]) || before.is_none_or(|before| before > *index)
            })
            .collect();
        if ready.is_empty() {
            return false;
        }
        self.steps += 1;
        let at = match self.schedule {
            Schedule::First => ready[0],
            // However late, everything is carried out some time: what waits for it asks again meanwhile.
            Schedule::Last if self.steps.is_multiple_of(64) => ready[0],
            Schedule::Last => ready[ready.len() - 1],
            Schedule::Any => ready[self.random.below(ready.len())],
        };
        self.carry_out(at);
        true
    }

    /// What could not be read can be again, or not.
    fn is_written(&mut self, Write { pv, at, bytes }: &Write) {
        if !self.stays_bad {
            let (first, end) = (at.div_ceil(4096), (at + bytes.len() as u64) / 4096);
            self.bad.retain(|(of, page)| of != pv || !(first..end).contains(page));
        }
    }

    /// What a channel writes is not answered: another server has its PV, or the pool is known to be taken over, and then it may be there or not.
    fn is_refused(&mut self, write: &Write) -> bool {
        if self.taken_over == Some(write.pv) {
            return true;
        }
        let fenced = self.pool.stopped() == Some(Fault::Fenced);
        if fenced {
            self.disks.write(write.clone(), false);
        }
        fenced
    }

    fn carry_out(&mut self, at: usize) {
        let Some(flying) = self.flying.remove(at) else { return };
        let (op, outcome) = match flying {
            Flying::Channel(tag, write) if self.is_refused(&write) => {
                self.has_taken(tag, false);
                self.changed = true;
                self.pool.fence();
                return self.collect();
            }
            Flying::Channel(tag, write) => {
                if self.lost == Some(write.pv) {
                    self.failed.insert(tag);
                } else {
                    self.is_written(&write);
                    self.disks.write(write.clone(), false);
                }
                let more =
                    |flying: &Flying| matches!(flying, Flying::Channel(other, _) if *other == tag);
                if !self.flying.iter().any(more) {
                    self.has_taken(tag, !self.failed.contains(&tag));
                    if self.failed.remove(&tag) {
                        // A channel leaves to the pool what it cannot do.
                        let (lu, at) = self.requests[&tag];
                        let bytes = write.bytes.len() as u64;
                        let extent = Extent { lu, at, bytes };
                        self.pool.submit(tag, Request::Write { extent, durable: false });
                        self.collect();
                    } else {
                        self.oracle.over(tag, true, None);
                    }
                }
                self.changed = true;
                return;
            }
            Flying::Effect(effect, _)
                if self.taken_over.is_some() && effect.pvs().contains(&self.taken_over) =>
            {
                self.pool.refused(effect.op());
                return self.collect();
            }
            Flying::Effect(effect, _)
                if self.lost.is_some() && effect.pvs().contains(&self.lost) =>
            {
                self.changed = true;
                (effect.op(), Outcome::Failed)
            }
            Flying::Effect(Effect::Write { op, pv, at, what, durable }, _) => {
                let write = self.write_of(pv, at, &what);
                self.is_written(&write);
                self.disks.write(write, durable);
                self.changed = true;
                (op, Outcome::Done)
            }
            Flying::Effect(
                Effect::Read {
                    op,
                    pv,
                    at,
                    bytes,
                    to: Reader::Check | Reader::Verified | Reader::Client { .. },
                },
                _,
            ) if self
                .bad
                .range((pv, at / 4096)..(pv, (at + bytes).div_ceil(4096)))
                .next()
                .is_some() =>
            {
                (op, Outcome::Failed)
            }
            Flying::Effect(Effect::Read { op, pv, to: Reader::Pool, .. }, _)
                if self.own_unreadable == Some(pv) =>
            {
                (op, Outcome::Failed)
            }
            Flying::Effect(
                Effect::Read { op, pv, to: Reader::Verified | Reader::Client { .. }, .. },
                _,
            ) if self.clients_unreadable == Some(pv) => (op, Outcome::Failed),
            Flying::Effect(Effect::Read { op, pv, at, bytes, to }, _) => {
                let mut now = Image::new(self.disks.now());
                let bytes = now.read(pv, at, bytes as usize).unwrap();
                if let Reader::Client { tag, from } = to
                    && let Some((.., buffer)) = self.reads.get_mut(&tag)
                {
                    buffer[from as usize..][..bytes.len()].copy_from_slice(&bytes);
                }
                let own = matches!(to, Reader::Pool | Reader::Check | Reader::Verified);
                (op, if own { Outcome::Bytes(bytes) } else { Outcome::Done })
            }
            Flying::Effect(Effect::Copy { op, from, .. }, _) if self.unreadable == Some(from.0) => {
                (op, Outcome::Failed)
            }
            Flying::Effect(Effect::Copy { op, from, to, bytes }, _) => {
                let write = self.copy_of(from, to, bytes);
                *self.copied.entry(to.0).or_default() += bytes / BLOCK_BYTES;
                self.disks.write(write, false);
                self.changed = true;
                (op, Outcome::Done)
            }
            Flying::Effect(Effect::Flush { op, pv }, mark) => {
                self.disks.flush(pv, mark);
                self.changed = true;
                (op, Outcome::Done)
            }
            Flying::Effect(Effect::Drain { op }, _) => {
                if !self.taking.is_late {
                    self.tell();
                }
                (op, Outcome::Done)
            }
            Flying::Effect(
                Effect::Answer { .. } | Effect::Zero { .. } | Effect::Give { .. },
                _,
            ) => unreachable!(),
        };
        self.pool.done(op, outcome);
        self.collect();
    }

    /// Of the first copy that was given out: its operation, from where, and what it has read and has yet to write.
    pub(super) fn begin_copy(&mut self) -> Option<(u64, u16, Write)> {
        let copy = |(at, flying): (usize, &Flying)| match flying {
            Flying::Effect(Effect::Copy { op, from, to, bytes }, _) => {
                Some((at, *op, *from, self.copy_of(*from, *to, *bytes)))
            }
            _ => None,
        };
        let (at, op, from, write) = self.flying.iter().enumerate().find_map(copy)?;
        self.flying.remove(at);
        Some((op, from.0, write))
    }

    /// Until nothing is under way.
    pub(super) fn rest(&mut self) {
        for count in 0.. {
            if count > 100_000
                && let Some(Flying::Effect(effect, _)) = self.flying.front()
            {
                println!("{effect:?}");
            }
            if !self.step() {
                return;
            }
            assert!(count < 100_060, "it does not come to rest");
        }
    }

    /// Writes that were given out and are not done.
    pub(super) fn flying(&self) -> Vec<Write> {
        let write = |flying: &Flying| match flying {
            Flying::Channel(_, write) => Some(write.clone()),
            Flying::Effect(Effect::Write { pv, at, what, .. }, _) => {
                Some(self.write_of(*pv, *at, what))
            }
            Flying::Effect(Effect::Copy { from, to, bytes, .. }, _) => {
                Some(self.copy_of(*from, *to, *bytes))
            }
            Flying::Effect(..) => None,
        };
        self.flying.iter().filter_map(write).collect()
    }

    /// The process dies, and another takes over; of what was under way some was done.
    pub(super) fn kill(&mut self) -> Result<(), NotOpened> {
        let some = self.random.below(3);
        for write in self.flying() {
            if self.lost == Some(write.pv) {
                continue;
            }
            if some == 1 || some == 2 && self.random.below(2) == 0 {
                self.disks.write(write, false);
            }
        }
        self.flying.clear();
        self.failed.clear();
        self.own_unreadable = None;
        self.oracle.died();
        let (shadow, broken) = (self.shadow(), self.pool.broken);
        let mut source = Image::new(self.disks.now()).without(self.lost);
        let mut opened = Pool::open(&mut source, SERVER, Some(&shadow), POLICY);
        let needed =
            |error: &NotOpened| matches!(error, NotOpened::Missing(_) | NotOpened::Undecided(_));
        if self.lost.is_some() && opened.as_ref().is_err_and(needed) {
            // It has to be there again first.
            self.lost = None;
            let mut source = Image::new(self.disks.now());
            opened = Pool::open(&mut source, SERVER, Some(&shadow), POLICY);
        }
        self.pool = opened?;
        self.pool.broken = broken;
        self.start();
        Ok(())
    }
}
