//! Snapshots, clones and rollbacks: what an LU holds is parted from what is written to it from then on.
//!
//! ```text
//! snapshot: writes of the LUs held ─► drained ─► nothing under way ─► all of it flushed ─► one transaction ─► durable: answered, writes go on, above
//! rollback: requests of the LU held ─► drained ─► nothing under way ──────────────────────► one transaction ─► …
//! clone:                                                                                    one transaction ─► …
//! ```
//!
//! Without the drain a write that a channel has begun would land in what the snapshot has; without the flush, what was answered before would be in it and gone after a power cut. Writes that wait for space do
//! not hold a snapshot up: they begin again after it. One after the other; deletions and changes of size wait meanwhile.

use super::*;
use crate::choose::LAYERS;
use crate::format::PAGE_RECORDS;
use crate::layers::containers;

/// LUs of which snapshots are made together, at most.
pub const GROUP_MAX: usize = 16;

/// Numbers of LUs; 0 is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Group(pub [u32; GROUP_MAX]);

impl Group {
    /// These, at most [`GROUP_MAX`].
    pub fn of(lus: &[u32]) -> Group {
        let mut group = Group::default();
        group.0.iter_mut().zip(lus).for_each(|(place, lu)| *place = *lu);
        group
    }

    /// Their numbers.
    pub fn iter(&self) -> impl Iterator<Item = u32> {
        self.0.into_iter().filter(|lu| *lu != 0)
    }
}

/// A snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SnapshotOf {
    /// Its number.
    pub snapshot: u32,
    /// The LU of which it is, which may be gone.
    pub lu: u32,
    /// Its chunks.
    pub chunks: u32,
}

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Cut {
    Snapshot(Group, u64),
    /// What came of such a snapshot.
    Find(Group, u64),
    Clone {
        snapshot: u32,
        asked: u64,
    },
    Rollback(Group, Group),
    /// A new head for an LU, above what it holds.
    Head(u32),
    /// What is written to an LU goes to its own space, when that has all that is above it.
    Settle(u32),
}

impl Cut {
    /// The LUs that nobody writes to meanwhile.
    fn lus(self) -> Vec<u32> {
        match self {
            Cut::Snapshot(lus, _) | Cut::Rollback(lus, _) => lus.iter().collect(),
            Cut::Head(lu) | Cut::Settle(lu) => vec![lu],
            Cut::Find(..) | Cut::Clone { .. } => Vec::new(),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// Until the superblock says that there are such things.
    Feature,
    Draining,
    /// Nothing new comes, and what was begun is not over.
    Quieting,
    Flushing,
    /// The last of what is above the LU's own space is copied there.
    Settling,
    Committing,
}

/// One under way.
#[derive(Debug)]
struct Now {
    /// Who has asked for it; nobody for what is coalesced.
    tag: Option<u64>,
    what: Cut,
    lus: Vec<u32>,
    stage: Stage,
    /// Flushes that are not over.
    left: usize,
    fault: Option<Fault>,
    reply: Reply,
    /// What waits until it is over.
    parts: Vec<Part>,
    requests: Vec<(u64, Request)>,
}

/// Snapshots, clones and rollbacks that were asked for.
#[derive(Debug, Default)]
pub(super) struct Cuts {
    now: Option<Now>,
    queue: VecDeque<(Option<u64>, Cut)>,
}

impl Cuts {
    /// Whether a snapshot of the LU is being made, or it is being rolled back.
    pub(super) fn is_of(&self, lu: u32) -> bool {
        self.now.as_ref().is_some_and(|now| now.lus.contains(&lu))
    }

    /// Whether one is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.now.is_some()
    }

    /// Whether a request waits until that is over.
    pub(super) fn holds(&self, request: Request) -> bool {
        let Some(now) = &self.now else { return false };
        let rolls = matches!(now.what, Cut::Rollback(..));
        let settles = matches!(now.what, Cut::Settle(_));
        match request {
            Request::Write { extent, .. } | Request::Zeroes(extent) | Request::Discard(extent) => {
                self.is_of(extent.lu)
            }
            Request::Read(extent) => rolls && self.is_of(extent.lu),
            Request::Flush { lu } => (rolls || settles) && self.is_of(lu),
            Request::Delete { .. } | Request::Resize { .. } | Request::SetTier { .. } => true,
            _ => false,
        }
    }

    pub(super) fn hold(&mut self, tag: u64, request: Request) {
        if let Some(now) = &mut self.now {
            now.requests.push((tag, request));
        }
    }

    /// The bit of `REFUSE` that is waited for.
    pub(super) fn wanted_feature(&self) -> u64 {
        let waits = self.now.as_ref().is_some_and(|now| now.stage == Stage::Feature);
        if waits { LAYERS } else { 0 }
    }

    /// The requests that nobody will carry out any more.
    pub(super) fn stop(&mut self) -> Vec<u64> {
        let now = self.now.take();
        let queue = self.queue.drain(..).filter_map(|(tag, _)| tag);
        let held = now.into_iter().flat_map(|now| {
            let requests = now.requests.into_iter().map(|(tag, _)| tag);
            requests.chain(now.tag).collect::<Vec<_>>()
        });
        queue.chain(held).collect()
    }
}

impl Pool {
    /// Each snapshot.
    pub fn snapshots(&self) -> impl Iterator<Item = SnapshotOf> {
        let lus = self.tables.lus.iter().filter(|(lu, _)| self.serves(**lu));
        let snapshots = lus.filter(|(_, lu)| lu.role == Role::Snapshot);
        snapshots.map(|(number, lu)| SnapshotOf {
            snapshot: *number,
            lu: lu.origin,
            chunks: lu.chunks,
        })
    }

    /// Layer, container and chunk of each leg of all containers.
    #[cfg(test)]
    pub(crate) fn containers(&self) -> Vec<(u32, u32, ChunkId)> {
        let all = self.tables.containers().into_iter();
        let legs = |(layer, container, legs): (u32, u32, Vec<ChunkId>)| {
            legs.into_iter().map(move |id| (layer, container, id))
        };
        all.flat_map(legs).collect()
    }

    pub(super) fn begin_cut(&mut self, tag: u64, what: Cut) {
        self.cuts.queue.push_back((Some(tag), what));
    }

    /// One that is needed to coalesce what an LU has.
    pub(super) fn begin_own_cut(&mut self, what: Cut) {
        self.cuts.queue.push_back((None, what));
    }

    /// What the records of snapshots have of who asked for them: of this server and its number.
    fn mark(&self, asked: u64) -> u64 {
        let sum = crate::hash::sum(self.server.0, &asked.to_le_bytes());
        let mark = u64::from_le_bytes(std::array::from_fn(|index| sum[index]));
        if asked == 0 { 0 } else { mark.max(1) }
    }

    /// The snapshots that were made when this was asked for before.
    fn made_before(&self, what: Cut) -> Option<Group> {
        let (Cut::Snapshot(lus, asked) | Cut::Find(lus, asked)) = what else { return None };
        let mark = self.mark(asked);
        let of = |lu: u32| {
            let mut snapshots = self.tables.lus.iter().filter(|(number, made)| {
                made.role == Role::Snapshot && made.origin == lu && self.serves(**number)
            });
            snapshots.find(|(_, made)| made.asked == mark).map(|(number, _)| *number)
        };
        let made: Option<Vec<u32>> = lus.iter().map(of).collect();
        made.filter(|made| mark != 0 && !made.is_empty()).map(|made| Group::of(&made))
    }

    /// Whether it can be done at all.
    fn judge_cut(&self, what: Cut) -> Result<(), Fault> {
        let snapshot = |number: u32| {
            let known = self.tables.lus.get(&number).filter(|_| self.serves(number));
            known.filter(|known| known.role == Role::Snapshot).ok_or(Fault::NoSnapshot)
        };
        let lus = what.lus();
        for (index, lu) in lus.iter().enumerate() {
            let known = self.tables.lus.get(lu).filter(|_| self.serves(*lu));
            match known {
                None => return Err(Fault::NoSuchLu),
                Some(known) if known.role != Role::Lu => return Err(Fault::Frozen),
                Some(_) if self.has_sums(*lu) => return Err(Fault::HasSums),
                Some(_) if lus[..index].contains(lu) => return Err(Fault::Busy),
                Some(_) => {}
            }
        }
        match what {
            _ if !self.policy.layers => return Err(Fault::NoSnapshot),
            Cut::Snapshot(..) if lus.is_empty() => return Err(Fault::NoSuchLu),
            Cut::Snapshot(..) | Cut::Find(..) | Cut::Head(_) | Cut::Settle(_) => {}
            Cut::Clone { snapshot: number, .. } => _ = snapshot(number)?,
            Cut::Rollback(_, snapshots) => {
                let snapshots: Vec<u32> = snapshots.iter().collect();
                if lus.is_empty() || lus.len() != snapshots.len() {
                    return Err(Fault::NoSnapshot);
                }
                for (lu, number) in lus.iter().zip(snapshots) {
                    let has = snapshot(number)?;
                    if has.origin != *lu {
                        return Err(Fault::NoSnapshot);
                    }
                    // What is beneath an LU ends where it ends: so it can grow.
                    if has.chunks > self.chunks_in(*lu) {
                        return Err(Fault::Smaller);
                    }
                }
            }
        }
        let numbers = self.next_lu + 2 * lus.len().max(1) as u32;
        let room = (self.chosen.superblock.lu_pages() * PAGE_RECORDS as u32).min(1 << 24);
        if numbers > room { Err(Fault::NoSpace) } else { Ok(()) }
    }

    /// Whether an LU that it is about is given another size or tier: what it makes is to have that.
    fn is_resized(&self, what: Cut) -> bool {
        let resized = |lu: &u32| self.resizing.contains_key(lu);
        match what {
            Cut::Clone { snapshot, .. } => self.tables.kin(snapshot).iter().any(resized),
            what => what.lus().iter().any(resized),
        }
    }

    /// Goes on with the one that is under way, or begins with the next.
    pub(super) fn turn_cut(&mut self) {
        while self.phase == Phase::Serving {
            let Some(now) = &mut self.cuts.now else {
                let next = self.cuts.queue.front().map(|(_, what)| *what);
                if !self.resizing.is_empty() && next.is_some_and(|what| self.is_resized(what)) {
                    return;
                }
                let Some((tag, what)) = self.cuts.queue.pop_front() else { return };
                if let (Some(tag), Cut::Clone { asked, .. }) = (tag, what)
                    && let Some(made) = self.lu_asked(asked)
                {
                    self.answer(tag, Ok(Reply::Created(made)));
                    continue;
                }
                let made = self.made_before(what);
                if let Some(tag) = tag
                    && (made.is_some() || matches!(what, Cut::Find(..)))
                {
                    self.answer(tag, Ok(Reply::Snapshots(made.unwrap_or_default())));
                    continue;
                }
                if let Err(fault) = self.judge_cut(what) {
                    match tag {
                        Some(tag) => self.answer(tag, Err(fault)),
                        None => self.merge_cut(Err(fault)),
                    }
                    continue;
                }
                self.cuts.now = Some(Now {
                    tag,
                    what,
                    lus: what.lus(),
                    stage: Stage::Feature,
                    left: 0,
                    fault: None,
                    reply: Reply::Done,
                    parts: Vec::new(),
                    requests: Vec::new(),
                });
                self.touch_cut();
                continue;
            };
            let (stage, what, left, fault) = (now.stage, now.what, now.left, now.fault);
            // What this is to lie over may be gone as soon as that is durable.
            let waits = self.merges.commits();
            match stage {
                Stage::Feature if self.chosen.superblock.features[0] & LAYERS == 0 => return,
                Stage::Feature if matches!(what, Cut::Clone { .. }) => match waits {
                    true => return,
                    false => self.commit_cut(),
                },
                Stage::Feature => {
                    now.stage = Stage::Draining;
                    if self.waits_for_drain(what) {
                        let then = Drained::Cut;
                        self.give(Op::Drain { then }, |op| Effect::Drain { op });
                    } else {
                        self.cut_drained();
                    }
                }
                Stage::Quieting if self.is_quiet() => self.flush_cut(),
                Stage::Flushing if left == 0 => match fault {
                    Some(fault) => self.end_cut(Err(fault)),
                    None if matches!(what, Cut::Settle(_)) => {
                        self.set_cut_stage(Stage::Settling);
                        self.merge_cut(Ok(()));
                    }
                    None if waits => return,
                    None => self.commit_cut(),
                },
                Stage::Draining | Stage::Quieting => {
                    if !self.take_paused() {
                        return;
                    }
                }
                Stage::Flushing | Stage::Settling | Stage::Committing => return,
            }
        }
    }

    fn set_cut_stage(&mut self, stage: Stage) {
        if let Some(now) = &mut self.cuts.now {
            now.stage = stage;
        }
    }

    fn waits_for_drain(&self, what: Cut) -> bool {
        let settles = matches!(what, Cut::Settle(_));
        self.keeps(Rule::CutAfterDrain) && (!settles || self.keeps(Rule::CoalesceHeld))
    }

    /// Channels have to know that they may write to these LUs by themselves no more, or again.
    fn touch_cut(&mut self) {
        let Some(now) = &self.cuts.now else { return };
        self.layered.changed.extend(&now.lus);
        for lu in now.lus.clone() {
            self.touched.extend((0..self.chunks_of(lu)).map(|vchunk| (lu, vchunk)));
        }
    }

    /// The spaces in which nothing may be under way.
    fn spaces_of_cut(&self) -> BTreeSet<u32> {
        let Some(now) = &self.cuts.now else { return BTreeSet::new() };
        match now.what {
            Cut::Rollback(lus, _) => lus.iter().flat_map(|lu| self.tables.chain(lu)).collect(),
            _ => now.lus.iter().map(|lu| self.space_of(*lu)).collect(),
        }
    }

    /// Takes writes of these LUs that wait for space out of the line; false if there are none.
    fn take_paused(&mut self) -> bool {
        let spaces = self.spaces_of_cut();
        let pieces = self.full.take(|piece| spaces.contains(&piece.key.0));
        let parts: Vec<Part> = pieces.iter().flat_map(|piece| self.back_to_parts(piece)).collect();
        let some = !parts.is_empty();
        if let Some(now) = &mut self.cuts.now {
            now.parts.extend(parts);
        }
        some
    }

    /// What channels had begun is over, and what the pool itself had.
    pub(super) fn cut_drained(&mut self) {
        if let Some(now) = &mut self.cuts.now {
            now.stage = Stage::Quieting;
        }
    }

    fn is_quiet(&self) -> bool {
        let spaces = self.spaces_of_cut();
        let what = self.cuts.now.as_ref().map(|now| now.what);
        // Who flushes what will be gone would be told that it is.
        let flushed = matches!(what, Some(Cut::Rollback(..) | Cut::Settle(_)));
        let waits = |space: &u32| {
            let mut slots = self.slots.range((*space, 0)..=(*space, u32::MAX));
            slots.any(|(_, slot)| slot.is_waited_for())
                || self.full_of(*space)
                || flushed
                    && (self.syncs.contains_key(space) || self.sync_queue.contains_key(space))
        };
        let writes = self.writes.values().any(|write| spaces.contains(&write.space()));
        !what.is_some_and(|what| self.waits_for_drain(what)) || !writes && !spaces.iter().any(waits)
    }

    /// What the snapshot will have is made durable, and said.
    fn flush_cut(&mut self) {
        let flushes = self.keeps(Rule::CutAfterFlush);
        let Some(now) = &mut self.cuts.now else { return };
        now.stage = Stage::Flushing;
        let lus = match now.what {
            Cut::Snapshot(..) | Cut::Head(_) | Cut::Settle(_) if flushes => now.lus.clone(),
            _ => Vec::new(),
        };
        now.left = lus.len();
        for lu in lus {
            self.flush_for(Asker::Cut, lu);
        }
    }

    pub(super) fn cut_flushed(&mut self, fault: Option<Fault>) {
        if let Some(now) = &mut self.cuts.now {
            now.left -= 1;
            now.fault = now.fault.or(fault);
        }
    }

    /// What the layers of these records will have set aside, if there is room for it: of an LU with a reserve, what it has not set aside now.
    fn promise(&mut self, records: &[Record]) -> Option<Vec<Promised>> {
        let mut promised: Vec<Promised> = Vec::new();
        let mut fits = true;
        for layer in records.iter().filter(|record| record.flags & 2 != 0) {
            let is_head = |record: &&Record| record.kind == Kind::Head && record.chunk == layer.lu;
            let chunks = match layer.flags & 1 {
                1 => layer.vchunk,
                _ => records.iter().find(is_head).map_or(0, |head| {
                    let left = self.left_in(self.space_of(head.lu));
                    self.reserve_of(head.lu).min(layer.vchunk).saturating_sub(left)
                }),
            };
            if chunks == 0 {
                continue;
            }
            let more = Promised { tier: layer.aux as u8, legs: layer.leg, chunks };
            self.promised.insert(u64::MAX, promised.clone());
            fits &= self.has_room(more);
            promised.push(more);
        }
        self.promised.remove(&u64::MAX);
        fits.then_some(promised)
    }

    pub(super) fn commit_cut(&mut self) {
        let Some(now) = &mut self.cuts.now else { return };
        now.stage = Stage::Committing;
        let what = now.what;
        let first = self.next_lu;
        let mut next = first;
        let mut number = || {
            next += 1;
            next - 1
        };
        let owner = self.slot;
        let head = |lu: u32, chunk: u32| Record { lu, chunk, owner, ..Record::of(Kind::Head) };
        let mut records = Vec::new();
        let reply = match what {
            Cut::Snapshot(group, asked) => {
                let mark = self.mark(asked);
                let mut made = Vec::new();
                for lu in group.iter() {
                    let (snapshot, layer) = (number(), number());
                    let Some(frozen) = self.frozen(lu, snapshot) else { continue };
                    let frozen = Record { epoch: mark, ..frozen };
                    records.extend([frozen, self.layer(lu, layer, self.space_of(lu))]);
                    records.push(head(lu, layer));
                    made.push(snapshot);
                }
                Reply::Snapshots(Group::of(&made))
            }
            Cut::Find(..) => Reply::Done,
            Cut::Head(lu) => {
                let layer = number();
                records.push(self.layer(lu, layer, self.space_of(lu)));
                records.push(head(lu, layer));
                Reply::Done
            }
            Cut::Settle(lu) => {
                records.push(head(lu, 0));
                Reply::Done
            }
            Cut::Clone { snapshot, asked } => {
                let (layer, clone) = (number(), number());
                records.push(self.layer(snapshot, layer, self.space_of(snapshot)));
                let frozen = self.frozen(snapshot, clone);
                records.extend(frozen.map(|frozen| Record {
                    flags: 0,
                    chunk: layer,
                    aux: frozen.aux & 0xff,
                    epoch: asked,
                    ..frozen
                }));
                Reply::Created(clone)
            }
            Cut::Rollback(lus, snapshots) => {
                for (lu, snapshot) in lus.iter().zip(snapshots.iter()) {
                    let layer = number();
                    records.push(self.layer(lu, layer, self.space_of(snapshot)));
                    records.push(head(lu, layer));
                }
                Reply::Done
            }
        };
        let Some(promised) = self.promise(&records) else {
            return self.end_cut(Err(Fault::NoSpace));
        };
        self.next_lu = next;
        if let Cut::Rollback(lus, snapshots) = what {
            let begins = snapshots.iter().map(|snapshot| self.space_of(snapshot));
            let elsewhere: BTreeMap<u32, u32> = lus.iter().zip(begins).collect();
            for space in self.tables.unneeded(&self.dying, &elsewhere) {
                self.let_space_go(space);
            }
        }
        let txn = self.log.append(records);
        self.promised.insert(txn, promised);
        self.waiters.entry(txn).or_default().push(Waiter::Cut);
        if let Some(now) = &mut self.cuts.now {
            now.reply = reply;
        }
    }

    /// The record of a snapshot.
    fn frozen(&self, lu: u32, number: u32) -> Option<Record> {
        let known = self.tables.lus.get(&lu)?;
        Some(Record {
            lu: number,
            vchunk: known.chunks,
            flags: 4,
            leg: known.legs,
            owner: self.slot,
            chunk: self.space_of(lu),
            aux: u32::from(known.tier) | lu << 8,
            ..Record::of(Kind::LuCreate)
        })
    }

    /// The record of a layer for an LU, over something.
    fn layer(&self, lu: u32, number: u32, over: u32) -> Record {
        let known = self.tables.lus.get(&lu);
        Record {
            lu: number,
            vchunk: known.map_or(1, |known| containers(known.chunks)),
            flags: 2 | known.map_or(0, |known| known.thick.into()),
            leg: known.map_or(1, |known| known.legs),
            owner: self.slot,
            chunk: over,
            aux: known.map_or(0, |known| known.tier.into()),
            ..Record::of(Kind::LuCreate)
        }
    }

    /// It is durable, or was not done: what waited goes on.
    pub(super) fn end_cut(&mut self, result: Result<(), Fault>) {
        self.touch_cut();
        let Some(now) = self.cuts.now.take() else { return };
        match now.tag {
            Some(tag) => self.answer(tag, result.map(|()| now.reply)),
            None => self.merge_cut(result),
        }
        self.forget_spaces();
        if let Cut::Rollback(lus, _) = now.what {
            lus.iter().for_each(|lu| self.empty_own(lu));
        }
        for part in now.parts {
            self.advance_part(part);
        }
        for (tag, request) in now.requests {
            self.begin(tag, request);
        }
    }
}
