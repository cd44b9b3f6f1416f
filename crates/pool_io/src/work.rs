//! One open pool on the thread: requests go into the core, its effects are carried out, what it knows is shown.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use block::{IoError, OpKind};
use memory::clock;
use pool::format::{CHUNK_BYTES, MemberState};
use pool::{Effect, Extent, Fault, Outcome, Payload, Pool, Reader, Reply, Request};

use crate::PoolError;
use crate::engine::{Arrived, Buffer, Engine};
use crate::open::{may_join, of_pv};
use crate::post::{Answered, Ask, ReplyTo, Wanted};
use crate::shadow::Owner;
use crate::table::{OpenPv, Progress, PvView, Shared, Table};

/// What an operation is for.
#[derive(Debug)]
pub(crate) enum For {
    /// Something while a pool is made or opened.
    Opening,
    /// An effect of a pool, by the pool's number and the effect's.
    Effect { pool: u32, op: u64, then: Then },
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
    /// A flush of all before it closes.
    Last,
    /// It goes on the last LU's own, and then nobody is told.
    Nobody,
}

/// See the module.
pub(crate) struct Work {
    number: u32,
    owner: Owner,
    pub(crate) shared: Arc<Shared>,
    core: Pool,
    /// The engine's lane of each member, but for those that are gone.
    pub(crate) lanes: Vec<Option<u16>>,
    /// Lanes to give up when nothing is under way on them.
    retired: Vec<u16>,
    /// The epoch of the pool for which the shadow holds.
    epoch: u64,
    /// Requests for removals that were just made.
    beginning: Vec<u64>,
    /// Removals that cannot go on, and why.
    stuck: BTreeMap<u16, Fault>,
    /// Since when chunks move off a PV, or to where less is, and how many had by then.
    paces: BTreeMap<Option<u16>, (Instant, Progress)>,
    asks: BTreeMap<u64, Asker>,
    next: u64,
    /// Effects that wait for a buffer.
    todo: VecDeque<Effect>,
    tables: BTreeMap<u32, Arc<Table>>,
    /// Chunks to be shown again when the journal has got further, and how far it was.
    unsettled: BTreeSet<(u32, u32)>,
    durable: u64,
    /// The parity of the epoch whose end is waited for, and for what; and those that wait for the next.
    draining: Option<(u8, Vec<u64>)>,
    drains: Vec<u64>,
    /// Operations that the engine has.
    flying: usize,
    pub(crate) closing: Option<ReplyTo<()>>,
    /// Flushes that are not over before it closes.
    last: usize,
    paused: u64,
    stale: bool,
}

impl Work {
    pub(crate) fn new(
        number: u32,
        owner: Owner,
        shared: Arc<Shared>,
        core: Pool,
        lanes: Vec<Option<u16>>,
    ) -> Work {
        Work {
            number,
            owner,
            shared,
            lanes,
            retired: Vec::new(),
            epoch: core.superblock().epoch,
            core,
            beginning: Vec::new(),
            stuck: BTreeMap::new(),
            paces: BTreeMap::new(),
            asks: BTreeMap::new(),
            next: 0,
            todo: VecDeque::new(),
            tables: BTreeMap::new(),
            unsettled: BTreeSet::new(),
            durable: 0,
            draining: None,
            drains: Vec::new(),
            flying: 0,
            closing: None,
            last: 0,
            paused: 0,
            stale: true,
        }
    }

    fn submit(&mut self, asker: Asker, request: Request) {
        self.next += 1;
        self.asks.insert(self.next, asker);
        self.core.submit(self.next, request);
    }

    /// A request of a lane.
    pub(crate) fn ask(&mut self, mut ask: Ask) {
        let extent = Extent { lu: ask.lu, at: ask.at, bytes: ask.bytes };
        let request = match ask.op {
            OpKind::Read => {
                ask.data = vec![0; ask.bytes as usize];
                Request::Read(extent)
            }
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
            Wanted::New { chunks, thick } => {
                self.submit(Asker::New(reply), Request::Create { chunks, thick, tier: 0 });
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
        Some(table)
    }

    /// An operation of the engine is over.
    pub(crate) fn arrived(
        &mut self,
        engine: &mut Engine<For>,
        op: u64,
        then: Then,
        arrived: Arrived<For>,
    ) {
        let Arrived { result, buffer, buf, .. } = arrived;
        self.flying -= 1;
        let outcome = match (result, then) {
            (Err(_), _) => Outcome::Failed,
            (Ok(()), Then::Done) => Outcome::Done,
            (Ok(()), Then::Bytes) => {
                let mut bytes = vec![0; buf.len()];
                buf.read(0, &mut bytes);
                Outcome::Bytes(bytes)
            }
            (Ok(()), Then::Client { ask, from }) => {
                if let Some(Asker::Lane(ask)) = self.asks.get_mut(&ask)
                    && let Some(place) = ask.data.get_mut(from as usize..from as usize + buf.len())
                {
                    buf.read(0, place);
                }
                Outcome::Done
            }
            (Ok(()), Then::Copy { pv, at }) => {
                let bytes = buf.len() as u64;
                let write = OpKind::Write { fua: false };
                return self.begin(engine, pv, write, (at, bytes), buffer, op, Then::Done);
            }
        };
        if let Some(buffer) = buffer {
            engine.give_back(buffer);
        }
        self.core.done(op, outcome);
    }

    #[allow(clippy::too_many_arguments)] // What an operation is.
    fn begin(
        &mut self,
        engine: &mut Engine<For>,
        pv: u16,
        op: OpKind,
        (at, bytes): (u64, u64),
        buffer: Option<Buffer>,
        number: u64,
        then: Then,
    ) {
        self.flying += 1;
        let what_for = For::Effect { pool: self.number, op: number, then };
        let lane = self.lanes.get(usize::from(pv)).copied().flatten().unwrap_or(0);
        engine.begin(lane, op, at, bytes, buffer, what_for);
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

    /// Whether a PV could be added.
    pub(crate) fn look(&self, engine: &mut Engine<For>, pv: &OpenPv) -> Result<(), PoolError> {
        let lane = engine.join(&pv.volume).map_err(|error| of_pv(&pv.path, error))?;
        let fit = may_join(engine, self.core.superblock(), pv, lane);
        engine.leave(lane);
        fit.map(drop)
    }

    /// Adds a PV: there is a way to it, and room in the shadow, before the pool knows of it.
    pub(crate) fn join(
        &mut self,
        engine: &mut Engine<For>,
        pv: OpenPv,
        reply: ReplyTo<Result<(), PoolError>>,
    ) {
        let (members, lanes) = (&self.core.superblock().members, self.lanes.len());
        let begun = if members.len() == lanes {
            let lane = engine.join(&pv.volume).map_err(|error| of_pv(&pv.path, error));
            lane.and_then(|lane| {
                let new = may_join(engine, self.core.superblock(), &pv, lane).and_then(|new| {
                    let before = self.core.superblock().members.iter().map(|member| member.chunks);
                    let room = self.shared.shadow.add(before, (new.pv, new.chunks));
                    room.map(|()| new).map_err(|what| {
                        let help = "enlarge the file system of its data plane's run directory";
                        PoolError::new(format!("PV {}: {what}", pv.path.display()), help)
                    })
                });
                new.inspect_err(|_| engine.leave(lane)).map(|new| (lane, new))
            })
        } else {
            Err(PoolError::new("another PV is just being added", "try again when that is done"))
        };
        match begun {
            Ok((lane, new)) => {
                self.lanes.push(Some(lane));
                self.shared.add_pv(Some(pv.clone()));
                self.submit(Asker::Join(pv, reply), Request::AddPv(new));
            }
            Err(error) => drop(reply.send(Err(error))),
        }
    }

    /// Begins to remove a PV.
    pub(crate) fn leave(&mut self, pv: u16, reply: ReplyTo<Result<(), Fault>>) {
        self.stuck.remove(&pv);
        self.submit(Asker::Leave(pv, Some(reply)), Request::RemovePv { pv });
        self.beginning.push(self.next);
    }

    /// Removals that were not refused at once have begun.
    fn begun(&mut self) {
        for tag in std::mem::take(&mut self.beginning) {
            if let Some(Asker::Leave(_, reply)) = self.asks.get_mut(&tag)
                && let Some(reply) = reply.take()
            {
                let _ = reply.send(Ok(()));
            }
        }
    }

    /// Lets go of PVs that are gone, when they are erased and nothing is under way on them.
    fn let_go(&mut self, engine: &mut Engine<For>) {
        for (pv, member) in (0..).zip(&self.core.superblock().members) {
            let waits = self.todo.iter().any(|effect| of_effect(effect) == Some(pv));
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
        for lane in std::mem::take(&mut self.retired) {
            if engine.is_idle(lane) {
                engine.leave(lane);
            } else {
                self.retired.push(lane);
            }
        }
    }

    fn has_gone(&self) -> bool {
        let members = self.core.superblock().members.iter().zip(&self.lanes);
        let mut gone = members.filter(|(member, _)| member.state == MemberState::Gone);
        !self.retired.is_empty() || gone.any(|(_, lane)| lane.is_some())
    }

    /// Goes on as far as it can.
    pub(crate) fn pump(&mut self, engine: &mut Engine<For>) {
        loop {
            if self.is_closed() {
                break;
            }
            if let Some((parity, _)) = self.draining
                && self.shared.is_over(parity)
                && let Some((_, ops)) = self.draining.take()
            {
                ops.into_iter().for_each(|op| self.core.done(op, Outcome::Done));
            }
            self.show();
            let effects = self.core.effects();
            let before = self.todo.len();
            for effect in effects {
                match effect {
                    Effect::Answer { tag, result } => self.answer(tag, result),
                    Effect::Zero { tag, from, bytes } => self.zero(tag, from, bytes),
                    Effect::Drain { op } => self.drains.push(op),
                    other => self.todo.push_back(other),
                }
            }
            if self.draining.is_none() && !self.drains.is_empty() {
                let parity = self.shared.next_epoch();
                self.draining = Some((parity, std::mem::take(&mut self.drains)));
                continue;
            }
            let added = self.todo.len() > before;
            while let Some(effect) = self.todo.pop_front() {
                if let Some(effect) = self.carry_out(engine, effect) {
                    self.todo.push_front(effect);
                    break;
                }
            }
            // An answer may have led to another request.
            if !added && !self.core.has_effects() {
                break;
            }
        }
        self.begun();
        if self.has_gone() {
            self.let_go(engine);
        }
        self.tell();
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
        let mut keys = self.core.touched();
        self.stale |= !keys.is_empty();
        if self.durable != self.core.durable() {
            self.durable = self.core.durable();
            keys.append(&mut self.unsettled);
        }
        for (lu, vchunk) in keys {
            let shown = self.core.shown(lu, vchunk);
            self.shared.show(self.tables.get(&lu).map(|table| &**table), vchunk, &shown);
            if shown.unsettled {
                self.unsettled.insert((lu, vchunk));
            }
        }
    }

    /// Carries out an effect on a PV; gives it back where there is no memory for it now.
    fn carry_out(&mut self, engine: &mut Engine<For>, effect: Effect) -> Option<Effect> {
        let bytes = match &effect {
            Effect::Write { what, .. } => length(what),
            Effect::Read { bytes, .. } | Effect::Copy { bytes, .. } => *bytes,
            _ => 0,
        };
        let buffer = match bytes {
            0 => None,
            bytes => match engine.buffer(bytes as usize) {
                Some(buffer) => Some(buffer),
                None => return Some(effect),
            },
        };
        match effect {
            Effect::Write { op, pv, at, what, durable } => {
                if let Some(buffer) = &buffer {
                    self.fill(buffer, &what);
                }
                let write = OpKind::Write { fua: durable };
                self.begin(engine, pv, write, (at, bytes), buffer, op, Then::Done);
            }
            Effect::Read { op, pv, at, to, .. } => {
                let then = match to {
                    Reader::Pool => Then::Bytes,
                    Reader::Client { tag, from } => Then::Client { ask: tag, from },
                };
                self.begin(engine, pv, OpKind::Read, (at, bytes), buffer, op, then);
            }
            Effect::Copy { op, from, to: (pv, at), .. } => {
                let then = Then::Copy { pv, at };
                self.begin(engine, from.0, OpKind::Read, (from.1, bytes), buffer, op, then);
            }
            Effect::Flush { op, pv } => {
                self.begin(engine, pv, OpKind::Flush, (0, 0), None, op, Then::Done);
            }
            Effect::Zero { .. } | Effect::Drain { .. } | Effect::Answer { .. } => {}
        }
        None
    }

    /// What is written.
    fn fill(&self, buffer: &Buffer, what: &Payload) {
        match what {
            Payload::Own(bytes) => buffer.part(0, bytes.len()).write(0, bytes),
            Payload::Zeros(bytes) => buffer.part(0, *bytes as usize).fill(0),
            Payload::Client { tag, from, bytes, before, after } => {
                let (before, bytes) = (*before as usize, *bytes as usize);
                buffer.part(0, before).fill(0);
                if let Some(Asker::Lane(ask)) = self.asks.get(tag)
                    && let Some(data) = ask.data.get(*from as usize..*from as usize + bytes)
                {
                    buffer.part(before, bytes).write(0, data);
                }
                buffer.part(before + bytes, *after as usize).fill(0);
            }
        }
    }

    fn zero(&mut self, tag: u64, from: u64, bytes: u64) {
        if let Some(Asker::Lane(ask)) = self.asks.get_mut(&tag)
            && let Some(place) = ask.data.get_mut(from as usize..(from + bytes) as usize)
        {
            place.fill(0);
        }
    }

    fn answer(&mut self, tag: u64, result: Result<Reply, Fault>) {
        match self.asks.remove(&tag) {
            Some(Asker::Lane(mut ask)) => {
                if result.is_ok() && matches!(ask.op, OpKind::WriteZeroes { fua: true, .. }) {
                    ask.op = OpKind::Flush;
                    return self.ask(ask);
                }
                let Ask { from, tag, data, bufs, .. } = ask;
                // A shadow without memory behind it keeps nothing for a successor: better no answer than one that may be taken back.
                let result = match result {
                    Ok(_) if self.shared.shadow.damaged() => Err(IoError::Io),
                    Ok(_) => Ok(()),
                    Err(fault) => Err(error_of(fault)),
                };
                from.post(Answered { tag, result, data, bufs });
            }
            // Whoever asked may have left.
            Some(Asker::Core(reply)) => {
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
            Some(Asker::Leave(pv, reply)) => {
                self.stale = true;
                match (reply, result) {
                    (Some(reply), result) => drop(reply.send(result.map(drop))),
                    (None, Err(fault)) if fault != Fault::Cancelled => {
                        self.stuck.insert(pv, fault);
                    }
                    (None, _) => {}
                }
            }
            Some(Asker::Last) => self.last = self.last.saturating_sub(1),
            Some(Asker::Nobody) | None => {}
        }
    }

    /// Tells how it stands, for whoever asks.
    fn tell(&mut self) {
        let paused = self.core.paused() as u64;
        let was = self.shared.full.load(Relaxed);
        if !self.stale && (paused > 0) == was && self.paused == paused {
            return;
        }
        (self.stale, self.paused) = (false, paused);
        let removals: Vec<pool::Removal> = self.core.removals().collect();
        self.stuck.retain(|pv, _| removals.iter().any(|removal| removal.pv == *pv));
        let mut leaving: BTreeMap<u16, Progress> = BTreeMap::new();
        for pool::Removal { pv, planned, moved, failed } in removals {
            let now = Progress { planned, moved, failed, left_s: None };
            leaving.insert(pv, self.paced(Some(pv), now));
        }
        let pool::Balance { planned, over } = self.core.balance();
        let balance = Progress { planned, moved: over, ..Progress::default() };
        let balance = (over < planned).then(|| self.paced(None, balance));
        self.paces.retain(|of, _| match of {
            Some(pv) => leaving.contains_key(pv),
            None => balance.is_some(),
        });
        let mut view = self.shared.view();
        let pv = |space: pool::PvSpace| {
            let path = self.shared.pv(space.pv)?.path;
            Some(PvView { path, leaving: leaving.get(&space.pv).copied(), space })
        };
        view.pvs = self.core.pvs().filter_map(pv).collect();
        view.balance = balance;
        view.lus = self.core.lu_spaces().collect();
        let free = |tier: pool::TierSpace| tier.free.saturating_sub(tier.set_aside);
        view.free = self.core.tiers().into_iter().map(free).sum();
        view.pauses += paused.saturating_sub(view.paused);
        view.paused = paused;
        view.trouble = self.core.is_stopped().then(|| {
            "its own blocks could not be written, and nothing is written any more until its data plane is restarted (`trunkline dataplane restart`): look for the PV that failed".to_owned()
        });
        let stuck = self.stuck.iter().next().and_then(|(pv, fault)| {
            let path = self.shared.pv(*pv)?.path;
            Some(format!("PV {} cannot be removed so far: {fault}", path.display()))
        });
        view.trouble = view.trouble.or(stuck);
        self.shared.set_view(view);
    }

    /// With the time that it takes, if it goes on as it went since it began.
    fn paced(&mut self, of: Option<u16>, now: Progress) -> Progress {
        let (at, first) = *self.paces.entry(of).or_insert((clock::instant(), now));
        if now.planned != first.planned || now.moved < first.moved {
            self.paces.insert(of, (clock::instant(), now));
            return now;
        }
        let (moved, left) = (now.moved - first.moved, now.planned.saturating_sub(now.moved));
        let spent = clock::instant().saturating_duration_since(at).as_secs_f64();
        let left_s =
            (moved > 0).then(|| (spent / f64::from(moved) * f64::from(left)).ceil() as u64);
        Progress { left_s, ..now }
    }

    pub(crate) fn number(&self) -> u32 {
        self.number
    }

    pub(crate) fn serves(&self) -> bool {
        self.core.is_serving()
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

/// The PV of an effect.
fn of_effect(effect: &Effect) -> Option<u16> {
    match effect {
        Effect::Write { pv, .. } | Effect::Read { pv, .. } | Effect::Flush { pv, .. } => Some(*pv),
        Effect::Copy { from, .. } => Some(from.0),
        Effect::Zero { .. } | Effect::Drain { .. } | Effect::Answer { .. } => None,
    }
}

fn length(what: &Payload) -> u64 {
    match what {
        Payload::Own(bytes) => bytes.len() as u64,
        Payload::Zeros(bytes) => *bytes,
        Payload::Client { bytes, before, after, .. } => before + bytes + after,
    }
}

fn error_of(fault: Fault) -> IoError {
    match fault {
        Fault::NoSuchLu => IoError::Gone,
        Fault::Range => IoError::OutOfRange,
        Fault::NoSpace => IoError::NoSpace,
        Fault::Medium | Fault::Stopped => IoError::Io,
        // Nobody calls a request back here, and no client's request is about a PV.
        Fault::Cancelled | Fault::Busy | Fault::NoSuchPv | Fault::PvKnown | Fault::PvUnfit => {
            IoError::Io
        }
    }
}

/// Chunks for so many bytes.
pub(crate) fn chunks_for(bytes: u64) -> u32 {
    u32::try_from(bytes.div_ceil(CHUNK_BYTES)).unwrap_or(u32::MAX)
}
