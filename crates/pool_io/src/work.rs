//! One open pool on the thread: requests go into the core, its effects are carried out, what it knows is shown.

mod activity;
mod chains;
mod checks;
mod copies;
mod effects;
mod fenced;
mod full;
mod leaving;
mod mirror;
mod offers;
mod order;
mod pacing;
mod parting;
mod view;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::time::{Duration, Instant};

use block::{IoError, OpKind};
use memory::clock;
use pool::format::{MemberState, Superblock};
use pool::{Balance, Effect, Extent, Fault, KeptPart, NewPv, Outcome, Pool, Reply, Request};

use effects::{Purse, Todo, is_same};
pub(crate) use fenced::taken_over;
pub(crate) use mirror::DEADLINE;
use pacing::Whose;

use crate::PoolError;
use crate::engine::{Arrived, Engine};
use crate::pace::Left;
use crate::post::{Answered, Ask, LaneBox, ReplyTo, Served, Wanted};
use crate::shadow::Owner;
use crate::table::{OpenPv, Shared, Table, locked};

/// How long after its failure it is tried again to move chunks; twice as long each time, up to the last.
const AGAIN: (Duration, Duration) = (Duration::from_secs(5), Duration::from_secs(300));

/// What an operation is for.
#[derive(Debug)]
pub(crate) enum For {
    /// Nobody.
    Nobody,
    /// Somebody waits for it, on another thread; where the bytes go that are read.
    Caller(Vec<u8>, ReplyTo<(Result<(), IoError>, Vec<u8>)>),
    /// An effect of a pool, by the pool's number and the effect's, on a PV.
    Effect { pool: u32, op: u64, pv: u16, then: Then, paced: pacing::Paced },
    /// Nobody any more: the PV is away, and the pool was told that it failed. Its memory is the kernel's until it is over.
    Late { pool: u32, pv: u16 },
}

/// What follows.
#[derive(Debug)]
pub(crate) enum Then {
    /// It is told as done.
    Done,
    /// The bytes are told.
    Bytes,
    /// The bytes go into a request, from this byte of it on.
    Client { ask: u64, from: u64 },
    /// The bytes are written there: number of the PV, and byte of it.
    Copy { pv: u16, at: u64 },
}

/// Who waits for the end of a request.
enum Asker {
    Lane(Ask),
    Core(ReplyTo<Result<Reply, Fault>>),
    /// A new LU.
    New(ReplyTo<Result<Arc<Table>, Fault>>),
    /// Another size of an LU.
    Resize(u32, ReplyTo<Result<Reply, Fault>>),
    /// A PV that is added.
    Join(OpenPv, ReplyTo<Result<(), PoolError>>),
    /// A PV that is removed; who waits for the beginning of that.
    Leave(u16, Option<ReplyTo<Result<(), Fault>>>),
    /// A flush of all before it closes, and then a checkpoint.
    Last,
    /// A PV that returns.
    Return(u16, ReplyTo<Result<(), PoolError>>),
    /// An LU is detached.
    Part(u32),
    /// What nobody needs apart is coalesced.
    Coalesce,
    /// A scrub.
    Scrub,
    /// It goes on the last LU's own, and then nobody is told.
    Nobody,
}

/// See the module.
pub(crate) struct Work {
    pub(crate) number: u32,
    owner: Owner,
    pub(crate) shared: Arc<Shared>,
    core: Pool,
    /// The engine's lane of each member, but for those that are gone.
    pub(crate) lanes: Vec<Option<u16>>,
    /// Lanes to give up when nothing is under way on them.
    retired: Vec<u16>,
    /// The epoch of the pool for which the shadow holds.
    epoch: u64,
    removals: leaving::Removals,
    /// When what could not be copied is tried again, and after which time.
    again: Option<Instant>,
    again_in: Duration,
    /// How long it takes that chunks move off a PV, to where less is, or get their other leg.
    left: BTreeMap<view::Of, Left>,
    pacing: pacing::Pacing,
    partings: parting::Partings,
    checks: checks::Checks,
    mirror: mirror::Mirror,
    activity: activity::Activity,
    asks: BTreeMap<u64, Asker>,
    /// Lanes with answers of which they do not know.
    rings: Vec<Arc<LaneBox>>,
    /// What channels had written, for the memory.
    learnt: Vec<KeptPart>,
    next: u64,
    /// Effects that wait for a buffer, by the PV whose operations have too many.
    todo: BTreeMap<u16, VecDeque<Todo>>,
    /// Buffers that operations on each PV have.
    purses: BTreeMap<u16, Purse>,
    tables: BTreeMap<u32, Arc<Table>>,
    /// Layers that are gone and at which channels may still look: those that the drain is for that is under way, and later ones.
    gone: (BTreeSet<u32>, BTreeSet<u32>),
    /// Chunks to be shown again when the journal has got further, and how far it was.
    unsettled: BTreeSet<(u32, u32)>,
    durable: u64,
    /// Parts of layers that a successor has to know, and for which there was no memory so far.
    unkept: BTreeSet<(u32, u64)>,
    /// Why there was none.
    short: Option<String>,
    /// The parity of the epoch whose end is waited for, and for what; and those that wait for the next.
    draining: Option<(u8, Vec<u64>)>,
    drains: Vec<u64>,
    full: full::Full,
    /// Operations that the engine has.
    flying: usize,
    /// Another server has it, and channels know.
    held: bool,
    /// Who waits until it serves.
    pub(crate) opening: Option<ReplyTo<Served>>,
    pub(crate) closing: Option<ReplyTo<()>>,
    /// Flushes that are not over before it closes.
    last: usize,
    /// Writes that wait for space, and those that are slowed, as the account has it.
    paused: (u64, u64),
    /// The account is to be made anew, at once, or when that takes no large part of the time.
    stale: bool,
    changed: bool,
    /// When it may be made anew.
    account: Option<Instant>,
}

impl Work {
    pub(crate) fn new(
        number: u32,
        owner: Owner,
        shared: Arc<Shared>,
        mut core: Pool,
        lanes: Vec<Option<u16>>,
    ) -> Work {
        core.set_channels(offers::channels(&shared));
        Work {
            number,
            owner,
            shared,
            lanes,
            retired: Vec::new(),
            epoch: core.superblock().epoch,
            core,
            removals: leaving::Removals::default(),
            again: None,
            again_in: AGAIN.0,
            left: BTreeMap::new(),
            pacing: pacing::Pacing::default(),
            partings: parting::Partings::default(),
            checks: checks::Checks::default(),
            mirror: mirror::Mirror::default(),
            activity: activity::Activity::default(),
            asks: BTreeMap::new(),
            rings: Vec::new(),
            learnt: Vec::new(),
            next: 0,
            todo: BTreeMap::new(),
            purses: BTreeMap::new(),
            tables: BTreeMap::new(),
            gone: Default::default(),
            unsettled: BTreeSet::new(),
            durable: 0,
            unkept: BTreeSet::new(),
            short: None,
            draining: None,
            drains: Vec::new(),
            full: full::Full::default(),
            flying: 0,
            held: false,
            opening: None,
            closing: None,
            last: 0,
            paused: (0, 0),
            stale: true,
            changed: false,
            account: None,
        }
    }

    fn submit(&mut self, asker: Asker, request: Request) {
        self.next += 1;
        self.asks.insert(self.next, asker);
        self.core.submit(self.next, request);
    }

    /// A request of a lane.
    pub(crate) fn ask(&mut self, ask: Ask) {
        match self.shared.mirrors {
            true => self.ask_in_order(ask),
            false => self.begin_ask(ask),
        }
    }

    fn begin_ask(&mut self, ask: Ask) {
        if ask.bytes > 0 {
            self.prepare(&ask);
        }
        let extent = Extent { lu: ask.lu, at: ask.at, bytes: ask.bytes };
        let request = match ask.op {
            OpKind::Read => Request::Read(extent),
            OpKind::Write { fua } => Request::Write { extent, durable: fua },
            OpKind::Flush => Request::Flush { lu: ask.lu },
            OpKind::Discard => Request::Discard(extent),
            OpKind::WriteZeroes { .. } => Request::Zeroes(extent),
        };
        self.submit(Asker::Lane(ask), request);
    }

    /// A request of somebody else.
    pub(crate) fn core(&mut self, request: Request, reply: ReplyTo<Result<Reply, Fault>>) {
        if let Request::Delete { lu } = request
            && let Some(table) = self.tables.remove(&lu)
        {
            table.go();
        }
        if let Request::Resize { lu, chunks } = request {
            if let Some(table) = self.tables.get(&lu) {
                table.cut(chunks);
            }
            return self.submit(Asker::Resize(lu, reply), request);
        }
        if let Request::KeepPv { pv } = request
            && self.stays(pv)
        {
            self.tell();
            let _ = reply.send(Ok(Reply::Done));
            return;
        }
        self.submit(Asker::Core(reply), request);
    }

    /// Shows the chunks that an LU has, after a change of their number or one that was refused.
    fn show_size(&self, lu: u32) {
        let known = self.core.lus().find(|(number, _)| *number == lu);
        if let (Some(table), Some((_, chunks))) = (self.tables.get(&lu), known) {
            table.resize(chunks, |vchunk| self.core.shown(lu, vchunk).way);
        }
    }

    /// An LU that is there, or a new one.
    pub(crate) fn lu(&mut self, wanted: Wanted, reply: ReplyTo<Result<Arc<Table>, Fault>>) {
        match wanted {
            Wanted::New { chunks, thick, sums, tier, asked } => {
                let request = match sums {
                    true => Request::CreateSummed { chunks, thick, tier, asked },
                    false => Request::Create { chunks, thick, tier, asked },
                };
                self.submit(Asker::New(reply), request);
            }
            Wanted::Clone { snapshot, asked } => {
                self.submit(Asker::New(reply), Request::Clone { snapshot, asked });
            }
            Wanted::Number(number) => {
                let _ = reply.send(self.table(number).ok_or(Fault::NoSuchLu));
            }
        }
    }

    fn table(&mut self, number: u32) -> Option<Arc<Table>> {
        if let Some(table) = self.tables.get(&number) {
            return Some(Arc::clone(table));
        }
        let (_, chunks) = self.core.lus().find(|(lu, _)| *lu == number)?;
        let ways = (0..chunks).map(|vchunk| self.core.shown(number, vchunk).way);
        let table = Arc::new(Table::new(number, ways));
        self.tables.insert(number, Arc::clone(&table));
        self.show_chain(number);
        Some(table)
    }

    /// An operation of the engine is over.
    pub(crate) fn arrived(
        &mut self,
        engine: &mut Engine<For>,
        (op, pv, then, paced): (u64, u16, Then, pacing::Paced),
        arrived: Arrived<For>,
    ) {
        let Arrived { result, buffer, buf, .. } = arrived;
        self.flying -= 1;
        let took = self.pacing.ends(pv, paced);
        if let (Some(took), Then::Client { .. } | Then::Bytes, Ok(())) = (took, &then, &result) {
            self.core.read_took(pv, buf.len() as u64, took.as_nanos() as u64);
        }
        if let Some(buffer) = &buffer {
            self.pay(pv, buffer, false);
        }
        self.answers(pv, result.is_ok());
        let outcome = match (result, then) {
            (Err(IoError::Fenced), _) => {
                buffer.into_iter().for_each(|buffer| engine.give_back(buffer));
                return self.core.refused(op);
            }
            (Err(_), _) => {
                self.fails(pv);
                Outcome::Failed
            }
            (Ok(()), Then::Bytes) => {
                let mut bytes = vec![0; buf.len()];
                buf.read(0, &mut bytes);
                Outcome::Bytes(bytes)
            }
            (Ok(()), Then::Client { ask, from }) => {
                if let Some(Asker::Lane(ask)) = self.asks.get(&ask) {
                    ask.put(from, buf);
                }
                Outcome::Done
            }
            (Ok(()), Then::Copy { pv, at }) if self.core.stopped().is_none() => {
                let bytes = buf.len() as u64;
                let write = OpKind::Write { fua: false };
                let what = (op, Then::Done, Whose::Copy);
                return self.begin(engine, pv, write, (at, bytes), buffer, what);
            }
            (Ok(()), Then::Done | Then::Copy { .. }) => Outcome::Done,
        };
        if let Some(buffer) = buffer {
            engine.give_back(buffer);
        }
        self.core.done(op, outcome);
    }

    /// It is to close: what was answered is made durable first, as far as the PVs can. Chunks that move do so when it is opened again.
    pub(crate) fn close(&mut self, reply: ReplyTo<()>) {
        self.closing = Some(reply);
        let lus: Vec<u32> = self.core.lus().map(|(lu, _)| lu).collect();
        self.last = lus.len();
        lus.into_iter().for_each(|lu| self.submit(Asker::Last, Request::Flush { lu }));
    }

    /// It does nothing more: what is under way comes to its end.
    fn is_closed(&self) -> bool {
        self.closing.is_some() && self.last == 0
    }

    /// The superblock that counts.
    pub(crate) fn superblock(&self) -> Superblock {
        self.core.superblock().clone()
    }

    /// Adds a PV to which there is a lane: there is room for it in the shadow before the pool knows of it.
    pub(crate) fn join(
        &mut self,
        engine: &mut Engine<For>,
        (pv, lane, new): (OpenPv, u16, NewPv),
        reply: ReplyTo<Result<(), PoolError>>,
    ) {
        let before = self.core.superblock().members.iter().map(|member| member.chunks);
        let begun = if before.len() == self.lanes.len() {
            self.shared.shadow.add(before, (new.pv, new.chunks)).map_err(|what| {
                let help = "enlarge the file system of its data plane's run directory";
                PoolError::new(format!("PV {}: {what}", pv.path.display()), help)
            })
        } else {
            Err(PoolError::new("another PV is just being added", "try again when that is done"))
        };
        match begun {
            Ok(()) => {
                self.lanes.push(Some(lane));
                self.shared.add_pv(Some(pv.clone()));
                self.submit(Asker::Join(pv, reply), Request::AddPv(new));
            }
            Err(error) => {
                engine.leave(lane);
                drop(reply.send(Err(error)));
            }
        }
    }

    /// Lets go of PVs that are gone, when they are erased and nothing is under way on them.
    fn let_go(&mut self, engine: &mut Engine<For>) {
        for (pv, member) in (0..).zip(&self.core.superblock().members) {
            let mut todo = self.todo.values().flatten();
            let waits = todo.any(|todo| todo.pvs().any(|other| other == pv));
            if member.state == MemberState::Gone
                && !waits
                && let Some(place) = self.lanes.get_mut(usize::from(pv))
                && place.is_some_and(|lane| engine.is_idle(lane))
            {
                self.retired.extend(place.take());
                let chunks = self.core.superblock().members.iter().map(|member| member.chunks);
                self.shared.shadow.drop_pv(pv, chunks);
                self.shared.drop_pv(pv);
                self.stale = true;
            }
        }
        engine.leave_idle(&mut self.retired);
    }

    fn has_gone(&self) -> bool {
        let members = self.core.superblock().members.iter().zip(&self.lanes);
        let mut gone = members.filter(|(member, _)| member.state == MemberState::Gone);
        !self.retired.is_empty() || gone.any(|(_, lane)| lane.is_some())
    }

    /// Goes on as far as it can.
    pub(crate) fn pump(&mut self, engine: &mut Engine<For>) {
        self.hold_if_fenced();
        self.try_moves_again();
        self.leave_again();
        self.give_up_hung(engine);
        self.look_at_activity();
        self.coalesce();
        loop {
            if self.is_closed() {
                break;
            }
            if let Some((parity, _)) = self.draining
                && self.shared.is_over(parity)
                && let Some((_, ops)) = self.draining.take()
            {
                self.learn_taken();
                ops.into_iter().for_each(|op| self.core.done(op, Outcome::Done));
                // Nobody looks at them any more.
                let gone = std::mem::take(&mut self.gone.0);
                self.shared.shadow.parts.retain(|layer| !gone.contains(&layer));
                // Chunks may be free by that.
                self.stale = true;
            }
            self.show();
            self.take_findings();
            self.let_copies();
            let effects = self.core.effects();
            let mut todo: Option<Todo> = None;
            let mut added = false;
            for effect in effects {
                match effect {
                    Effect::Answer { tag, result } => self.answer(tag, result),
                    Effect::Zero { tag, from, bytes } => self.zero(tag, from, bytes),
                    Effect::Give { tag, from, bytes } => self.bring(tag, from, &bytes),
                    Effect::Drain { op } => self.drains.push(op),
                    other => {
                        added = true;
                        match &mut todo {
                            Some(todo) if is_same(&todo.effect, &other) => todo.also.push(other),
                            last => {
                                let next = Todo { effect: other, also: Vec::new() };
                                let last = last.replace(next);
                                last.into_iter().for_each(|todo| self.put(engine, todo));
                            }
                        }
                    }
                }
            }
            todo.into_iter().for_each(|todo| self.put(engine, todo));
            // What is answered together is taken together.
            self.rings.drain(..).for_each(|lane| lane.bell.ring());
            self.next_asks();
            let drains = !self.drains.is_empty() || !self.gone.1.is_empty();
            if self.draining.is_none() && drains {
                let parity = self.shared.next_epoch();
                self.gone.0 = std::mem::take(&mut self.gone.1);
                self.draining = Some((parity, std::mem::take(&mut self.drains)));
                continue;
            }
            self.go_on(engine);
            self.look_at_the_full();
            // An answer may have led to another request.
            if !added && !self.core.has_effects() {
                break;
            }
        }
        self.begun();
        self.let_go_of_refused(engine);
        if self.has_gone() {
            self.let_go(engine);
        }
        self.tell();
    }

    /// Chunks that could not be copied are given time, and are moved then.
    fn try_moves_again(&mut self) {
        let failed = self.core.failed_moves() > 0;
        let Balance { planned, over, .. } = self.core.balance();
        match self.again {
            Some(due) if due <= clock::instant() => {
                self.again = None;
                self.core.move_again();
                self.stale = true;
            }
            None if failed => {
                self.again = Some(clock::instant() + self.again_in);
                self.again_in = (self.again_in * 2).min(AGAIN.1);
                self.stale = true;
            }
            // Not while it is being tried.
            None if over == planned && self.core.removals().all(|it| it.failed == 0) => {
                self.again_in = AGAIN.0;
            }
            _ => {}
        }
    }

    /// When somebody has to look, although nothing happens.
    pub(crate) fn due(&self) -> Option<Instant> {
        let due = self.again.into_iter().chain(self.partings.due()).chain(self.pacing.due());
        let due = due.chain(self.removals.next()).chain(self.activity.due());
        let due = due.chain(self.full.due()).min();
        let due = due.filter(|_| self.closing.is_none());
        let account = self.account.filter(|_| self.changed);
        due.into_iter().chain(self.next_look()).chain(account).min()
    }

    /// Shows what may have changed, before anything follows from it.
    fn show(&mut self) {
        // It is the present one's and the next's: before another change of members begins, it moves on.
        let epoch = self.core.superblock().epoch;
        if self.epoch != epoch {
            self.epoch = epoch;
            self.shared.shadow.holds_for(self.owner, epoch);
            self.stale = true;
        }
        if self.shared.mirrors {
            self.show_away();
        }
        let mut keys = self.core.touched();
        self.changed |= !keys.is_empty();
        if self.durable != self.core.durable() {
            self.durable = self.core.durable();
            // A chunk counts once its record is in a block of the journal, which may be long after it was touched.
            self.changed = true;
            keys.append(&mut self.unsettled);
        }
        for (lu, vchunk) in keys {
            let shown = self.core.shown(lu, vchunk);
            let table = self.tables.get(&lu).map(|table| &**table);
            let space = locked(&self.shared.spaces).get(&lu).cloned();
            self.shared.show((table, space.as_deref()), vchunk, &shown);
            if shown.unsettled {
                self.unsettled.insert((lu, vchunk));
            }
        }
        self.show_parts();
        for lu in self.core.touched_lus() {
            self.show_chain(lu);
        }
    }

    fn answer(&mut self, tag: u64, result: Result<Reply, Fault>) {
        match self.asks.remove(&tag) {
            // What waits for it to be over waits as well.
            Some(Asker::Lane(_)) if result == Err(Fault::Fenced) => {}
            Some(Asker::Lane(mut ask)) => {
                self.is_over(&ask);
                if result.is_ok() && matches!(ask.op, OpKind::WriteZeroes { fua: true, .. }) {
                    ask.op = OpKind::Flush;
                    return self.begin_ask(ask);
                }
                // A shadow without memory behind it keeps nothing for a successor: better no answer than one that may be taken back.
                let result = match result {
                    Ok(_) if self.shared.shadow.damaged() => Err(IoError::Io),
                    Ok(_) if ask.op.writes() && self.short.is_some() => Err(IoError::Io),
                    Ok(_) => Ok(()),
                    Err(fault) => Err(error_of(fault)),
                };
                if ask.from.post(Answered { tag: ask.tag, result }) {
                    self.rings.push(ask.from);
                }
            }
            // Whoever asked may have left.
            Some(Asker::Core(reply)) => {
                self.partings.stir();
                self.removals.stir();
                // Whoever asked may look at once.
                self.stale = true;
                self.tell();
                let _ = reply.send(result);
            }
            Some(Asker::New(reply)) => {
                self.stale = true;
                self.tell();
                let made = match result {
                    Ok(Reply::Created(number)) => self.table(number).ok_or(Fault::NoSuchLu),
                    Ok(_) => Err(Fault::NoSuchLu),
                    Err(fault) => Err(fault),
                };
                if let Err(std::sync::mpsc::SendError(Ok(table))) = reply.send(made) {
                    // Nobody will ever know its number.
                    self.tables.remove(&table.number);
                    self.submit(Asker::Nobody, Request::Delete { lu: table.number });
                }
            }
            Some(Asker::Resize(lu, reply)) => {
                self.show_size(lu);
                self.stale = true;
                self.tell();
                let _ = reply.send(result);
            }
            Some(Asker::Join(pv, reply)) => {
                let joined = result.map(drop).map_err(|fault| {
                    // It is the last, and nobody knows of it.
                    self.retired.extend(self.lanes.pop().flatten());
                    self.shared.add_pv(None);
                    let path = pv.path.display();
                    let what = match fault {
                        Fault::Medium => format!("PV {path} cannot be written"),
                        fault => format!("PV {path} cannot be added: {fault}"),
                    };
                    PoolError::new(what, "see whether the device is in order")
                });
                self.stale = true;
                self.tell();
                let _ = reply.send(joined);
            }
            Some(Asker::Leave(pv, reply)) => self.left(pv, reply, result),
            Some(Asker::Return(pv, reply)) => {
                self.stale = true;
                self.tell();
                let Err(fault) = result else { return drop(reply.send(Ok(()))) };
                let help = match fault {
                    Fault::OtherPv | Fault::Forked => "correct the path, or put the device back",
                    _ => "see whether the device is in order",
                };
                self.refuses(pv, reply, PoolError::new(fault.to_string(), help));
            }
            Some(Asker::Part(lu)) => self.parted(lu, result.map(drop)),
            Some(Asker::Coalesce) => self.coalesced(),
            Some(Asker::Scrub) => self.scrubbed(result.map(drop)),
            Some(Asker::Last) => {
                let is_last = self.last == 1;
                self.last = self.last.saturating_sub(1);
                self.last += usize::from(is_last && self.ends_activity());
            }
            Some(Asker::Nobody) | None => {}
        }
    }

    /// Tells who waits for it that it serves; or that it never will: false.
    pub(crate) fn opened(&mut self) -> Option<bool> {
        self.opening.as_ref()?;
        if self.core.is_serving() {
            let _ = self.opening.take()?.send(Ok(Arc::clone(&self.shared)));
            return Some(true);
        }
        (self.flying == 0 && self.todo.is_empty() && self.draining.is_none()).then_some(false)
    }

    /// Whether somebody has to look soon, although nothing happens on this thread.
    pub(crate) fn waits_for_channels(&self) -> bool {
        self.draining.is_some()
    }

    /// Whether nothing of it is under way. Writes that wait for space are not.
    pub(crate) fn rests(&self) -> bool {
        self.flying == 0 && (self.is_closed() || self.todo.is_empty() && self.draining.is_none())
    }
}

fn error_of(fault: Fault) -> IoError {
    match fault {
        Fault::NoSuchLu => IoError::Gone,
        Fault::Range => IoError::OutOfRange,
        Fault::NoSpace => IoError::NoSpace,
        Fault::Frozen => IoError::ReadOnly,
        Fault::Medium | Fault::Stopped | Fault::Fenced => IoError::Io,
        // Nobody calls a client's request back here but where it waits for space and is not to.
        Fault::Cancelled => IoError::NoSpace,
        // No client's request is about a PV.
        Fault::Busy
        | Fault::Away
        | Fault::Dismissed
        | Fault::OtherPv
        | Fault::Forked
        | Fault::NoSuchPv
        | Fault::PvKnown
        | Fault::PvUnfit
        | Fault::NoSnapshot
        | Fault::Needed
        | Fault::Shares
        | Fault::Smaller
        | Fault::SharesTier
        | Fault::MirrorTier
        | Fault::NoLegs
        | Fault::HasSums => IoError::Io,
    }
}
