//! One open pool on the thread: requests go into the core, its effects are carried out, what it knows is shown.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use block::{IoError, OpKind};
use pool::format::CHUNK_BYTES;
use pool::{Effect, Extent, Fault, Outcome, Payload, Pool, Reader, Reply, Request};

use crate::engine::{Arrived, Buffer, Engine};
use crate::post::{Answered, Ask, ReplyTo, Wanted};
use crate::table::{PvView, Shared, Table};

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
    /// It goes on the last LU's own, and then nobody is told.
    Nobody,
}

/// See the module.
pub(crate) struct Work {
    number: u32,
    pub(crate) shared: Arc<Shared>,
    core: Pool,
    /// The engine's lane of each member.
    pub(crate) lanes: Vec<u16>,
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
    paused: u64,
    stale: bool,
}

impl Work {
    pub(crate) fn new(number: u32, shared: Arc<Shared>, core: Pool, lanes: Vec<u16>) -> Work {
        Work {
            number,
            shared,
            core,
            lanes,
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
        self.submit(Asker::Core(reply), request);
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
        let lane = self.lanes.get(usize::from(pv)).copied().unwrap_or(0);
        engine.begin(lane, op, at, bytes, buffer, what_for);
    }

    /// It is to close: what was answered is made durable first, as far as the PVs can.
    pub(crate) fn close(&mut self, reply: ReplyTo<()>) {
        self.closing = Some(reply);
        let lus: Vec<u32> = self.core.lus().map(|(lu, _)| lu).collect();
        lus.into_iter().for_each(|lu| self.submit(Asker::Nobody, Request::Flush { lu }));
    }

    /// Goes on as far as it can.
    pub(crate) fn pump(&mut self, engine: &mut Engine<For>) {
        loop {
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
        self.tell();
    }

    /// Shows what may have changed, before anything follows from it.
    fn show(&mut self) {
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
                    Ok(Reply::Done | Reply::Added(_)) => Err(Fault::NoSuchLu),
                    Err(fault) => Err(fault),
                };
                if let Err(std::sync::mpsc::SendError(Ok(table))) = reply.send(made) {
                    // Nobody will ever know its number.
                    self.tables.remove(&table.number);
                    self.submit(Asker::Nobody, Request::Delete { lu: table.number });
                }
            }
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
        let mut view = self.shared.view();
        let pv = |space: pool::PvSpace| {
            let path = self.shared.paths.get(usize::from(space.pv))?;
            Some(PvView { path: path.clone(), space })
        };
        view.pvs = self.core.pvs().filter_map(pv).collect();
        view.lus = self.core.lu_spaces().collect();
        let free = |tier: pool::TierSpace| tier.free.saturating_sub(tier.set_aside);
        view.free = self.core.tiers().into_iter().map(free).sum();
        view.pauses += paused.saturating_sub(view.paused);
        view.paused = paused;
        view.trouble = self.core.is_stopped().then(|| {
            "its own blocks could not be written, and nothing is written any more until its data plane is restarted (`trunkline dataplane restart`): look for the PV that failed".to_owned()
        });
        self.shared.set_view(view);
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
        self.flying == 0 && self.todo.is_empty() && self.draining.is_none()
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
