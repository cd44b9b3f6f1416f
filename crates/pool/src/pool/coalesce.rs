//! Layers are coalesced: what is in one is copied into what is beneath it, when nobody else needs that, and then it is gone. An LU that is detached gets all that it shares in its own space.
//!
//! ```text
//! an LU: a new head ──► beneath it nobody writes ──► copied, block by block ──► flushed, and said ──► what the head lies over is its own space ──► …
//!        … and when little is left above: writes held ──► copied ──► flushed, and said ──► there is no head any more ──► writes go on
//! a layer between others:                           copied ──► flushed, and said ──► what lay over it lies over what is beneath
//! ```
//!
//! What is copied is not written to meanwhile, and where it goes nobody looks before the record is durable: an LU's own space that it does not use yet, or what is beneath the very layer in which everybody finds these
//! sectors first. So a crash leaves what was, or what is to be, and who begins again copies again. One after the other, a few blocks at a time.
//!
//! An LU of which the own space has something in it and is not beneath it was being detached: that goes on when the pool is opened again.

use super::slots::PieceKind;
use super::*;
use crate::layers::{PARTS, containers};

mod copy;

use copy::Begun;

/// Blocks that are copied at once.
const AT_ONCE: usize = 4;
/// New heads that an LU gets, at most, until little is left above.
const HEADS_MAX: u32 = 8;

/// What is over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// A block is copied, or the bits of a chunk are known.
    Block,
    /// A block is zeros: what is copied to a part of it follows. Its chunk, and the block of that.
    Blank(u32, u64),
    /// A space is empty.
    Emptied,
    /// What was copied is durable, and said.
    Said,
}

/// What is coalesced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    /// All that is above the own space of an LU.
    Lu(u32),
    /// A layer.
    Layer(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The own space of the LU is made empty, of what somebody began before.
    Emptying,
    Planning,
    /// A cut has been asked for.
    Cutting,
    Copying,
    Saying,
    /// Nobody has to look in the sources any more.
    Said,
    Committing,
}

/// One under way.
#[derive(Debug)]
struct Now {
    what: What,
    /// Who waits for it, and who for its end, however that comes.
    tags: Vec<u64>,
    stops: Vec<u64>,
    stopped: bool,
    into: u32,
    /// What is copied, from above.
    sources: Vec<u32>,
    /// What lies over them.
    head: u32,
    stage: Stage,
    /// Chunks of LUs that are not copied, and the next block of the first.
    todo: BTreeSet<u32>,
    block: u64,
    flying: usize,
    fault: Option<Fault>,
    heads: u32,
    /// It shares nothing with others any more: that is not taken back.
    apart: bool,
    /// Writes of the LU are held.
    settles: bool,
    planned: u32,
    /// It ends so when the own space is empty.
    ends: Option<Result<(), Fault>>,
}

impl Now {
    fn new(what: What, into: u32, stage: Stage) -> Now {
        Now {
            what,
            tags: Vec::new(),
            stops: Vec::new(),
            stopped: false,
            into,
            sources: Vec::new(),
            head: 0,
            stage,
            todo: BTreeSet::new(),
            block: 0,
            flying: 0,
            fault: None,
            heads: 0,
            apart: false,
            settles: false,
            planned: 0,
            ends: None,
        }
    }
}

/// What is coalesced, and what was asked for.
#[derive(Debug, Default)]
pub(super) struct Merges {
    now: Option<Now>,
    /// LUs to be detached.
    queue: VecDeque<(u64, u32)>,
    /// LUs whose own space is to be made empty, and who waits for it.
    empties: VecDeque<(Option<u64>, u32)>,
    /// Requests for whatever there is to do, and what of it could not be done.
    asked: Vec<u64>,
    failed: BTreeSet<u32>,
    /// Layers and spaces out of which everything is copied: soon nobody needs them.
    going: BTreeSet<u32>,
}

/// What is being coalesced, and how far it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Coalescing {
    /// The LU that is being detached, or loses its last layers; none for layers beneath several.
    pub lu: Option<u32>,
    /// Chunks of 64 MiB of the LU in which there was something to copy when it began.
    pub planned: u32,
    /// Those of them that are copied, never more.
    pub over: u32,
    /// Somebody has asked for it.
    pub asked: bool,
}

impl Merges {
    /// Whether it is being said that nobody has to look in the sources any more.
    pub(super) fn commits(&self) -> bool {
        !self.going.is_empty()
    }

    /// Whether nothing of a layer or a space is to be moved any more.
    pub(super) fn is_going(&self, space: u32) -> bool {
        self.going.contains(&space)
    }

    /// What is copied to.
    fn target(&self) -> Option<u32> {
        self.now.as_ref().map(|now| now.into)
    }

    /// The LU that gets all that it holds in its own space.
    pub(super) fn lu(&self) -> Option<u32> {
        match self.now.as_ref()?.what {
            What::Lu(lu) => Some(lu),
            What::Layer(_) => None,
        }
    }

    /// The requests that nobody will carry out any more.
    pub(super) fn stop(&mut self) -> Vec<u64> {
        let now = self.now.take();
        let now = now.into_iter().flat_map(|now| [now.tags, now.stops].concat());
        let queue = self.queue.drain(..).map(|(tag, _)| tag);
        let empties = self.empties.drain(..).filter_map(|(tag, _)| tag);
        now.chain(queue).chain(empties).chain(std::mem::take(&mut self.asked)).collect()
    }
}

impl Pool {
    /// What is being coalesced, and LUs that are to be detached after it.
    pub fn coalescing(&self) -> Vec<Coalescing> {
        let now = self.merges.now.iter().filter(|now| now.ends.is_none()).map(|now| Coalescing {
            lu: match now.what {
                What::Lu(lu) => Some(lu),
                What::Layer(_) => None,
            },
            planned: now.planned,
            // What was written since it began is not in the plan.
            over: if now.heads > 1 || now.settles {
                now.planned
            } else {
                now.planned.saturating_sub(now.todo.len() as u32)
            },
            asked: !now.tags.is_empty(),
        });
        let queue = self.merges.queue.iter().map(|(_, lu)| *lu);
        let queue = queue.map(|lu| Coalescing { lu: Some(lu), planned: 0, over: 0, asked: true });
        now.chain(queue).collect()
    }

    /// … of one LU.
    pub fn coalescing_of(&self, lu: u32) -> Option<Coalescing> {
        self.coalescing().into_iter().find(|one| one.lu == Some(lu))
    }

    /// Whether there is something to coalesce, or was at the last [`Request::Coalesce`] and could not be done.
    pub fn has_idle_layers(&self) -> bool {
        self.merges.now.is_some() || self.candidate().is_some()
    }

    pub(super) fn ask_merge(&mut self, tag: u64, request: Request) {
        match request {
            Request::Detach { lu } => match &mut self.merges.now {
                Some(now) if now.what == What::Lu(lu) && now.ends.is_none() && !now.stopped => {
                    now.tags.push(tag);
                }
                _ => self.merges.queue.push_back((tag, lu)),
            },
            Request::StopDetach { lu } => {
                let queue = std::mem::take(&mut self.merges.queue).into_iter();
                let (those, others): (VecDeque<_>, _) = queue.partition(|(_, other)| *other == lu);
                self.merges.queue = others;
                for (tag, _) in those {
                    self.answer(tag, Err(Fault::Cancelled));
                }
                match &mut self.merges.now {
                    Some(now) if now.what == What::Lu(lu) => {
                        now.stops.push(tag);
                        now.stopped = true;
                    }
                    // One that a process before this one had begun.
                    _ => self.merges.empties.push_back((Some(tag), lu)),
                }
            }
            _ => self.merges.asked.push(tag),
        }
    }

    /// What an LU has in its own space, and nobody needs, is to be given back.
    pub(super) fn empty_own(&mut self, lu: u32) {
        if self.has_idle_space(lu) {
            self.merges.empties.push_back((None, lu));
        }
    }

    /// Whether the own space of an LU has something and is not beneath it: somebody has begun to detach it.
    pub fn has_idle_space(&self, lu: u32) -> bool {
        let known = self.tables.lus.get(&lu).filter(|_| self.serves(lu));
        let has = |known: &crate::tables::Lu| known.role == Role::Lu && known.beneath != 0;
        known.is_some_and(|known| has(known) && known.mapped > 0 && self.is_unused(lu))
    }

    /// Whether nothing lies over a layer or a space.
    fn is_unused(&self, space: u32) -> bool {
        self.tables.lus.values().all(|known| known.beneath != space)
    }

    /// Whether each of these lies beneath the one before and beneath nothing else, the first beneath the LU.
    fn is_alone(above: &BTreeMap<u32, Vec<u32>>, lu: u32, chain: &[u32]) -> bool {
        let mut over = lu;
        chain.iter().all(|space| {
            let before = std::mem::replace(&mut over, *space);
            above.get(space).is_some_and(|above| above[..] == [before])
        })
    }

    /// What is above the own space of an LU that shares, and whether that lies beneath; or why that cannot be brought there.
    fn above_own(&self, lu: u32) -> Result<(Vec<u32>, bool), Fault> {
        let mut chain = self.tables.chain(lu);
        let beneath = chain.last() == Some(&lu);
        if beneath {
            chain.pop();
        }
        if self.is_unread(&chain) {
            return Err(Fault::Medium);
        }
        let alone = match beneath {
            true => Pool::is_alone(&self.tables.above(), lu, &[&chain[..], &[lu]].concat()),
            false => self.is_unused(lu),
        };
        if alone { Ok((chain, beneath)) } else { Err(Fault::Needed) }
    }

    /// Begins with the next; false if there is none.
    fn begin_merge(&mut self) -> bool {
        if let Some((tag, lu)) = self.merges.empties.pop_front() {
            if self.has_idle_space(lu) {
                let mut now = Now::new(What::Lu(lu), lu, Stage::Planning);
                (now.ends, now.stops) = (Some(Ok(())), tag.into_iter().collect());
                self.merges.now = Some(now);
                self.empty();
            } else if let Some(tag) = tag {
                self.answer(tag, Ok(Reply::Done));
            }
            return true;
        }
        if let Some((tag, lu)) = self.merges.queue.pop_front() {
            match self.judge_detach(lu) {
                Ok(true) => self.begin_merge_of(lu, Some(tag)),
                Ok(false) => self.answer(tag, Ok(Reply::Done)),
                Err(fault) => self.answer(tag, Err(fault)),
            }
            return true;
        }
        if self.merges.asked.is_empty() {
            return false;
        }
        match self.candidate() {
            Some(What::Lu(lu)) => self.begin_merge_of(lu, None),
            Some(What::Layer(layer)) => {
                let into = self.space_beneath(layer);
                self.merges.now = Some(Now::new(What::Layer(layer), into, Stage::Planning));
            }
            None => {
                self.merges.failed.clear();
                for tag in std::mem::take(&mut self.merges.asked) {
                    self.answer(tag, Ok(Reply::Done));
                }
                return false;
            }
        }
        true
    }

    fn space_beneath(&self, layer: u32) -> u32 {
        self.tables.lus.get(&layer).map_or(0, |known| known.beneath)
    }

    fn begin_merge_of(&mut self, lu: u32, tag: Option<u64>) {
        let mut now = Now::new(What::Lu(lu), lu, Stage::Planning);
        now.tags.extend(tag);
        self.merges.now = Some(now);
        if self.has_idle_space(lu) {
            self.empty();
        }
    }

    /// Whether an LU can be detached as things stand; false if it shares nothing.
    ///
    /// # Errors
    ///
    /// Why it cannot.
    pub fn judge_detach(&self, lu: u32) -> Result<bool, Fault> {
        let known = self.tables.lus.get(&lu).filter(|_| self.serves(lu));
        let known = known.ok_or(Fault::NoSuchLu)?;
        if known.role == Role::Snapshot {
            return Err(Fault::Frozen);
        }
        if known.beneath == 0 {
            return Ok(false);
        }
        self.above_own(lu)?;
        let left = known.chunks - known.mapped;
        let promised = Promised { tier: known.tier, legs: known.legs, chunks: left };
        if known.thick && !self.has_room(promised) { Err(Fault::NoSpace) } else { Ok(true) }
    }

    /// Something that need not be there.
    fn candidate(&self) -> Option<What> {
        let (failed, above) = (&self.merges.failed, self.tables.above());
        let mut all = self.tables.lus.iter().filter(|(number, _)| !failed.contains(number));
        let lu = all.clone().find(|(number, known)| {
            let number = **number;
            let shares = known.role == Role::Lu && known.beneath != 0 && self.serves(number);
            let chain = || self.tables.chain(number);
            let last =
                || chain().last() == Some(&number) && Pool::is_alone(&above, number, &chain());
            shares
                && (known.mapped > 0 && !above.contains_key(&number) || last())
                && self.judge_detach(number) == Ok(true)
        });
        if let Some((lu, _)) = lu {
            return Some(What::Lu(*lu));
        }
        let layer = all.find(|(number, known)| {
            known.role == Role::Layer && self.may_coalesce(&above, **number, known.beneath)
        });
        layer.map(|(layer, _)| What::Layer(*layer))
    }

    /// Whether what is in a layer may go into what is beneath it.
    fn may_coalesce(&self, above: &BTreeMap<u32, Vec<u32>>, layer: u32, beneath: u32) -> bool {
        let lus = &self.tables.lus;
        let is_head = |lu: &u32| lus.get(lu).is_some_and(|lu| lu.role == Role::Lu);
        // An LU without layers writes to its own space.
        let own = |lu: &crate::tables::Lu| lu.role == Role::Lu && lu.beneath == 0;
        // An LU above may have grown since there was that space.
        let room = lus.get(&beneath).map_or(0, |lu| match lu.role {
            Role::Layer => lu.chunks,
            _ => containers(lu.chunks),
        });
        self.has_space(layer)
            && self.has_space(beneath)
            && !lus.get(&beneath).is_some_and(own)
            && lus.get(&layer).is_some_and(|layer| layer.chunks <= room)
            && above.get(&beneath).is_some_and(|above| above[..] == [layer])
            && above.get(&layer).is_some_and(|above| !above.iter().any(is_head))
            && !self.is_unread(&[layer, beneath])
    }

    /// Gives back what is in the own space of the LU.
    fn empty(&mut self) {
        let Some(now) = &mut self.merges.now else { return };
        now.stage = Stage::Emptying;
        let lu = now.into;
        let mapped: Vec<u32> = match self.tables.lus.get(&lu) {
            Some(known) => (0..known.chunks)
                .filter(|vchunk| known.legs_of(*vchunk).iter().any(|leg| leg.chunk().is_some()))
                .collect(),
            None => Vec::new(),
        };
        now.flying = 1;
        let job = self.begin_job(Asker::Merge(Step::Emptied), lu, 1 + mapped.len() as u32);
        let piece = |vchunk, kind| Piece {
            job,
            tag: 0,
            key: (lu, vchunk),
            at: 0,
            bytes: CHUNK_BYTES,
            from: 0,
            kind,
            part: None,
        };
        for vchunk in mapped {
            self.advance(piece(vchunk, PieceKind::Discard));
        }
        self.piece_done(&piece(0, PieceKind::Probe), None);
    }

    /// Goes on with what is under way, or begins with the next.
    pub(super) fn turn_merge(&mut self) {
        while self.phase == Phase::Serving {
            let Some(now) = &self.merges.now else {
                if !self.begin_merge() {
                    return;
                }
                continue;
            };
            let (stage, flying, settles) = (now.stage, now.flying, now.settles);
            // While writes are held it is over sooner than it could be given up.
            let stops = now.stopped && !settles && !now.apart;
            let fault = now.fault.or(stops.then_some(Fault::Cancelled));
            // A rollback waits for all that is under way: nothing is begun meanwhile.
            let waits = self.cuts.is_busy() && !settles;
            match stage {
                Stage::Emptying if flying > 0 => return,
                Stage::Emptying => match now.ends {
                    Some(result) => self.end_merge(result),
                    None => self.set_stage(Stage::Planning),
                },
                Stage::Planning | Stage::Copying | Stage::Said if fault.is_some() => {
                    if flying > 0 {
                        return;
                    }
                    self.give_merge_up(fault.unwrap_or(Fault::Cancelled));
                }
                Stage::Planning | Stage::Copying if waits => return,
                Stage::Planning => self.plan_merge(),
                Stage::Copying if flying >= AT_ONCE => return,
                Stage::Copying => match self.copy_next() {
                    Begun::Something => {}
                    Begun::Waits => return,
                    Begun::Nothing if flying > 0 => return,
                    Begun::Nothing => self.say_merge(),
                },
                Stage::Said if waits || !self.commit_merge() => return,
                Stage::Said => {}
                Stage::Cutting | Stage::Saying | Stage::Committing => return,
            }
        }
    }

    fn set_stage(&mut self, stage: Stage) {
        if let Some(now) = &mut self.merges.now {
            now.stage = stage;
        }
    }

    /// What comes next for an LU: a new head if much is above its own space, else the end.
    fn plan_merge(&mut self) {
        let Some(now) = &self.merges.now else { return };
        let (what, heads) = (now.what, now.heads);
        let lu = match what {
            What::Layer(layer) if self.may_coalesce(&self.tables.above(), layer, now.into) => {
                return self.copy_from(vec![layer], 0);
            }
            What::Layer(_) => return self.end_merge(Err(Fault::Needed)),
            What::Lu(lu) => lu,
        };
        match self.judge_detach(lu) {
            Ok(true) => {}
            Ok(false) => return self.end_merge(Ok(())),
            // It shares with snapshots of its own that were made meanwhile, and with nobody else.
            Err(Fault::Needed) if heads > 0 && self.tables.chain(lu).last() == Some(&lu) => {
                return self.end_merge(Ok(()));
            }
            Err(fault) => return self.give_merge_up(fault),
        }
        let Ok((above, beneath)) = self.above_own(lu) else { return };
        // It was rolled back to what it shared before: nothing of what was copied may come up.
        if !beneath && self.has_idle_space(lu) {
            return self.empty();
        }
        if let Some(now) = &mut self.merges.now {
            now.apart &= beneath;
        }
        let parts = |space: &u32| match self.tables.lus.get(space) {
            Some(known) if known.role == Role::Layer => {
                let parts = self.tables.parts.range((*space, 0)..(*space + 1, 0));
                parts.take(self.policy.held_parts + 1).count()
            }
            Some(known) => known.mapped as usize * PARTS as usize,
            None => 0,
        };
        if above.iter().map(parts).sum::<usize>() <= self.policy.held_parts {
            self.set_stage(Stage::Cutting);
            if let Some(now) = &mut self.merges.now {
                now.settles = true;
            }
            self.begin_own_cut(Cut::Settle(lu));
        } else if heads < HEADS_MAX {
            self.set_stage(Stage::Cutting);
            if let Some(now) = &mut self.merges.now {
                now.heads += 1;
            }
            self.begin_own_cut(Cut::Head(lu));
        } else if beneath {
            // It is written to faster than it can be copied. It needs nothing of others any more, and its head goes when there is time for it.
            self.merges.failed.insert(lu);
            self.end_merge(Ok(()));
        } else {
            self.give_merge_up(Fault::Busy);
        }
        // Cuts have had their turn.
        self.turn_cut();
    }

    /// A cut that was asked for here is there, or not.
    pub(super) fn merge_cut(&mut self, result: Result<(), Fault>) {
        let Some(now) = &mut self.merges.now else { return };
        let What::Lu(lu) = now.what else { return };
        match (result, now.stage) {
            (Err(fault), _) => {
                (now.settles, now.stage) = (false, Stage::Planning);
                self.give_merge_up(fault);
            }
            (Ok(()), Stage::Committing) => {
                self.let_sources_go();
                self.end_merge(Ok(()));
            }
            (Ok(()), _) => {
                let settles = now.settles;
                let mut chain = self.tables.chain(lu);
                if chain.last() == Some(&lu) {
                    chain.pop();
                }
                let head = if settles { 0 } else { chain.remove(0) };
                self.copy_from(chain, head);
            }
        }
    }

    /// A step is over.
    pub(super) fn merge_went(&mut self, step: Step, fault: Option<Fault>) {
        let Some(now) = &mut self.merges.now else { return };
        now.fault = now.fault.or(fault);
        match step {
            Step::Block | Step::Emptied => now.flying -= 1,
            Step::Said => now.stage = Stage::Said,
            Step::Blank(vchunk, block) => match self.runs(vchunk, block) {
                Ok(runs) if fault.is_none() => self.copy_runs(vchunk, block, &runs),
                // Of some source it is not known any more what is written: it is copied as one that is not zeros.
                _ => {
                    if let Some(now) = &mut self.merges.now {
                        now.flying -= 1;
                        now.block = now.block.min(block);
                    }
                }
            },
        }
    }

    /// All is copied, durable and said: from now on nobody has to look in the sources. False if something has to be over before.
    fn commit_merge(&mut self) -> bool {
        let Some(now) = &self.merges.now else { return false };
        let (what, head, into, settles) = (now.what, now.head, now.into, now.settles);
        let sources = now.sources.clone();
        let flushed =
            |space: &u32| self.syncs.contains_key(space) || self.sync_queue.contains_key(space);
        if sources.iter().any(flushed) {
            return false;
        }
        // Who is about to let something go has said so and it is not in the tables yet.
        let unsaid = !self.dying.is_empty() || !self.layered.dying.is_empty();
        if unsaid && !settles {
            return false;
        }
        let over = self.tables.above();
        let above = match what {
            What::Layer(layer) if self.may_coalesce(&over, layer, into) => {
                over.get(&layer).cloned().unwrap_or_default()
            }
            What::Lu(_) if settles => Vec::new(),
            What::Lu(lu) if self.above_own(lu).is_ok() && self.lies_over(lu, head) => vec![head],
            // It was rolled back meanwhile, or a snapshot of it was made.
            What::Lu(_) => {
                self.set_stage(Stage::Planning);
                return true;
            }
            What::Layer(_) => {
                self.give_merge_up(Fault::Busy);
                return true;
            }
        };
        for source in &sources {
            let keys = self.slots.range((*source, 0)..=(*source, u32::MAX)).map(|(key, _)| *key);
            for key in keys.collect::<Vec<_>>() {
                self.give_up_move(key, Some(Fault::NoSuchLu));
            }
        }
        self.merges.going = sources.into_iter().collect();
        self.set_stage(Stage::Committing);
        if settles {
            self.commit_cut();
            return true;
        }
        let owner = self.slot;
        let head = |lu| Record { lu, chunk: into, owner, ..Record::of(Kind::Head) };
        let records: Vec<Record> = above.into_iter().map(head).collect();
        let mut txn = self.log.appended;
        for records in records.chunks(crate::format::JOURNAL_BLOCK_RECORDS) {
            txn = self.log.append(records.to_vec());
        }
        self.waiters.entry(txn).or_default().push(Waiter::Merged);
        true
    }

    /// Whether that layer is what an LU writes to, or lies beneath that.
    fn lies_over(&self, lu: u32, head: u32) -> bool {
        self.serves(lu) && self.has_space(head) && self.tables.chain(lu).contains(&head)
    }

    /// The record is durable.
    pub(super) fn merged(&mut self) {
        self.let_sources_go();
        self.forget_spaces();
        match self.merges.now.as_ref().map(|now| now.what) {
            Some(What::Lu(_)) => {
                if let Some(now) = &mut self.merges.now {
                    (now.stage, now.apart) = (Stage::Planning, true);
                }
            }
            _ => self.end_merge(Ok(())),
        }
    }

    /// Who waits to read in layers and spaces that are gone looks elsewhere.
    fn let_sources_go(&mut self) {
        let going = std::mem::take(&mut self.merges.going);
        let lus = &self.tables.lus;
        let gone: BTreeSet<u32> = going.into_iter().filter(|lu| !lus.contains_key(lu)).collect();
        let slots = self.slots.iter_mut().filter(|(key, _)| gone.contains(&key.0));
        let waiting: Vec<Piece> = slots.flat_map(|(_, slot)| slot.give_up()).collect();
        self.change_chains();
        self.layered.dying.extend(gone);
        waiting.into_iter().for_each(|piece| self.advance(piece));
        self.members.stir();
    }

    /// It is not gone on with. What was copied to a space that the LU does not use yet is given back first.
    fn give_merge_up(&mut self, fault: Fault) {
        let Some(now) = &mut self.merges.now else { return };
        if std::mem::take(&mut now.settles) {
            now.fault = None;
            return self.end_cut(Err(fault));
        }
        let what = now.what;
        match what {
            What::Lu(lu) if self.has_idle_space(lu) => {
                if let Some(now) = &mut self.merges.now {
                    now.ends = Some(Err(fault));
                }
                self.empty();
            }
            _ => self.end_merge(Err(fault)),
        }
    }

    fn end_merge(&mut self, result: Result<(), Fault>) {
        let Some(now) = self.merges.now.take() else { return };
        if result.is_err() {
            self.merges.failed.insert(match now.what {
                What::Lu(lu) => lu,
                What::Layer(layer) => layer,
            });
        }
        for tag in now.tags {
            self.answer(tag, result.map(|()| Reply::Done));
        }
        for tag in now.stops {
            self.answer(tag, Ok(Reply::Done));
        }
        // What it kept from others is there for them.
        self.retry_full();
    }

    /// Whether a piece is of what is coalesced.
    pub(super) fn is_of_merge(&self, piece: &Piece) -> bool {
        let job = self.jobs.get(&piece.job);
        job.is_some_and(|job| matches!(job.owner, Asker::Merge(_)))
    }
}
