//! A channel's way to an LU.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

use block::slab::Slab;
use block::{
    Finish, IoError, Lane, LaneId, OpKind, Outcome, Request, Seat, Submit, Tag, VolumeError, Wait,
};
use memory::{IoBuf, Lasting, clock};
use pool::format::CHUNK_BYTES;
use uring::{FileSlot, Op, Ring};

use crate::chain::{Chain, Taken};
use crate::post::{Answered, Ask, Inbox, LaneBox, Message, walk};
use crate::table::{Begun, Found, OpenPv, Shared, Table};
use crate::traffic::{Kind, Meter};
use crate::volume::LuVolume;

/// Bytes that the pool is asked for at once.
pub(crate) const ASK_MAX: u64 = 1 << 20;
/// Pieces of memory in which the pool is told of a round, and of one when its lane has many there already.
const PIECES_MAX: u32 = 256;
const PIECES_FEW: u32 = 16;
/// As many pieces are many.
const PIECES_MANY: u32 = 32 << 10;
/// Rounds of which even one block has more than that, at once.
const ODD_MAX: u32 = 16;
/// The lane's own operation: a read of its box's bell.
const BELL: u64 = 0;
/// When to try again after the kernel would not even take what was queued.
const KERNEL_BUSY: Duration = Duration::from_millis(1);

/// A round of a request in flight.
#[derive(Debug, Clone, Copy)]
struct Job {
    /// The request's.
    tag: Tag,
    /// Bytes of the request that were done before, of this round, and in all.
    base: u64,
    bytes: u64,
    len: u64,
    /// Where it is counted that it was begun; none: the pool has it.
    parity: Option<u8>,
    /// Pieces of memory of which the pool was told, and whether one block has very many.
    pieces: u32,
    odd: bool,
    /// It goes where nothing was written.
    takes: bool,
    kind: Kind,
    /// When it began, in ticks, on a PV.
    began: u64,
}

impl Job {
    /// What the end of its round means to the request.
    fn outcome(&self, outcome: Outcome) -> Outcome {
        match outcome {
            Outcome::Done(Ok(())) if self.base + self.bytes < self.len => {
                Outcome::Again { done: self.base + self.bytes }
            }
            Outcome::Done(result) => Outcome::Done(result),
            Outcome::Again { done } => Outcome::Again { done: self.base + done },
        }
    }
}

/// Tags are small numbers of our own.
#[derive(Default)]
struct OfTags(u64);

impl Hasher for OfTags {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.write_u32(u32::from(*byte)));
    }

    fn write_u32(&mut self, tag: u32) {
        self.0 = (self.0 ^ u64::from(tag)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    }
}

/// The way to a PV.
struct PvLane {
    lane: Box<dyn Lane>,
    /// What this channel does there.
    meter: Arc<Meter>,
}

impl PvLane {
    fn new(pv: &OpenPv, ring: &mut Ring, id: Seat) -> Result<PvLane, VolumeError> {
        Ok(PvLane { lane: pv.volume.lane_at(ring, id)?, meter: pv.meters.mine() })
    }
}

/// See the module.
pub(crate) struct LuLane {
    id: LaneId,
    shared: Arc<Shared>,
    table: Arc<Table>,
    inbox: Arc<Inbox>,
    begun: Arc<Begun>,
    /// Where what the LU holds is, if it shares that, as of so many changes.
    chain: Option<Arc<Chain>>,
    changes: u64,
    /// By number of the member. One that came since has none before it is needed.
    pvs: Vec<Option<PvLane>>,
    answers: Arc<LaneBox>,
    bell: FileSlot,
    /// Where a ring of the bell is read to.
    rung: Lasting,
    listens: bool,
    /// Requests that the pool has, with their pieces of memory, and how many of them have very many.
    asked: u32,
    pieces: u32,
    odd: u32,
    jobs: Slab<Job>,
    /// Where those go that go where nothing was written: of that the pool is told before they are answered.
    taken: HashMap<Tag, Taken, BuildHasherDefault<OfTags>>,
    /// Pieces of a request of which a round is a part.
    scratch: Vec<IoBuf>,
    block_size: u32,
    read_only: bool,
    write_cache: bool,
}

impl LuLane {
    pub(crate) fn new(volume: &LuVolume, ring: &mut Ring, id: LaneId) -> Result<LuLane, String> {
        let answers = Arc::new(LaneBox::new().map_err(|error| error.to_string())?);
        let rung = Lasting::new(4096).map_err(|error| error.to_string())?;
        let bell = ring.register(answers.bell.0.as_fd()).map_err(|error| error.to_string())?;
        let mut pvs: Vec<Option<PvLane>> = Vec::new();
        let theirs = if volume.shared.mirrors { Vec::new() } else { volume.shared.pvs() };
        for (number, pv) in theirs {
            pvs.resize_with(usize::from(number), || None);
            match PvLane::new(&pv, ring, Seat::part(id, 1 + number)) {
                Ok(lane) => pvs.push(Some(lane)),
                Err(error) => {
                    pvs.iter_mut().flatten().for_each(|pv| pv.lane.detach(ring));
                    ring.unregister(bell);
                    return Err(error.what);
                }
            }
        }
        volume.table.lanes.fetch_add(1, Relaxed);
        Ok(LuLane {
            id,
            begun: volume.shared.join(),
            shared: Arc::clone(&volume.shared),
            table: Arc::clone(&volume.table),
            chain: None,
            changes: 0,
            inbox: Arc::clone(&volume.inbox),
            pvs,
            answers,
            bell,
            rung,
            listens: false,
            asked: 0,
            pieces: 0,
            odd: 0,
            jobs: Slab::new(),
            taken: HashMap::default(),
            scratch: Vec::with_capacity(Op::MAX_BUFS),
            block_size: volume.block_size,
            read_only: volume.read_only,
            write_cache: volume.write_cache,
        })
    }

    fn check(&self, request: &Request<'_>) -> Result<(), IoError> {
        if self.read_only && request.op.writes() {
            return Err(IoError::ReadOnly);
        }
        let end = request.offset.checked_add(request.len).ok_or(IoError::OutOfRange)?;
        if end > self.table.size.load(Relaxed) {
            return Err(IoError::OutOfRange);
        }
        if (request.offset | request.len) & u64::from(self.block_size - 1) != 0 {
            return Err(IoError::Io);
        }
        Ok(())
    }

    /// A read or write: by itself as far as it can, one chunk after the other.
    #[inline]
    fn transfer(&mut self, ring: &mut Ring, request: &mut Request<'_>) -> Submit {
        let mut done = request.done;
        while done < request.len {
            // The part of the request that is in the chunk where it goes on.
            let chunk = (request.offset + done) / CHUNK_BYTES * CHUNK_BYTES;
            let first = chunk.max(request.offset) - request.offset;
            let bytes = (request.len - first).min(chunk + CHUNK_BYTES - request.offset - first);
            let parity = self.shared.begin(&self.begun);
            match self.shared.look(&self.table, request.offset + first, bytes) {
                Found::There(pv, place) => {
                    let place = (pv, place, None);
                    let answer = self.go(ring, request, (first, bytes, done), parity, place);
                    if answer != Submit::Done(Ok(())) {
                        return answer;
                    }
                    done = first + bytes;
                }
                Found::Zeros if request.op == OpKind::Read => {
                    let rest = first + bytes - done;
                    let filled = walk(request.bufs, done, rest, |piece| piece.fill(0));
                    self.begun.end(parity);
                    if filled < rest {
                        return Submit::Done(Err(IoError::Io));
                    }
                    done += rest;
                }
                Found::Ask if self.table.shares.load(Relaxed) => {
                    self.begun.end(parity);
                    return self.transfer_shared(ring, request, done);
                }
                Found::Zeros | Found::Ask => {
                    self.begun.end(parity);
                    // Whole blocks: a part of one that is done is done again.
                    return self.ask_for(ring, request, done - done % u64::from(self.block_size));
                }
            }
        }
        Submit::Done(Ok(()))
    }

    /// A read or write of an LU that shares what it holds, from there on: by itself as far as it can, one place after the other.
    #[inline(never)]
    fn transfer_shared(
        &mut self,
        ring: &mut Ring,
        request: &mut Request<'_>,
        mut done: u64,
    ) -> Submit {
        let block = u64::from(self.block_size);
        let reads = request.op == OpKind::Read;
        while done < request.len {
            // Whole blocks, in one chunk of the LU.
            let first = done - done % block;
            let at = request.offset + first;
            let bytes = (request.len - first).min(CHUNK_BYTES - at % CHUNK_BYTES);
            let parity = self.shared.begin(&self.begun);
            let (found, run) = self.look_through((at, bytes), !reads);
            let run = run - run % block;
            match found {
                Found::There(pv, place) if run > 0 => {
                    let place = (pv, place, None);
                    let answer = self.go(ring, request, (first, run, done), parity, place);
                    if answer != Submit::Done(Ok(())) {
                        return answer;
                    }
                    done = first + run;
                }
                Found::Zeros if reads && run > 0 => {
                    let rest = first + run - done;
                    let filled = walk(request.bufs, done, rest, |piece| piece.fill(0));
                    self.begun.end(parity);
                    if filled < rest {
                        return Submit::Done(Err(IoError::Io));
                    }
                    done += rest;
                }
                _ => {
                    let rest = request.len - first;
                    let taken = if reads { None } else { self.take((at, rest)) };
                    if let Some(place) = taken {
                        // Of a part of a block that is done already it is not said where.
                        return self.go(ring, request, (first, rest, first), parity, place);
                    }
                    self.begun.end(parity);
                    return self.ask_for(ring, request, first);
                }
            }
        }
        Submit::Done(Ok(()))
    }

    /// Looks in the chain of the LU, which is learned anew where it has changed.
    #[inline]
    fn look_through(&mut self, range: (u64, u64), writes: bool) -> (Found, u64) {
        if self.changes != self.table.changes() {
            (self.changes, self.chain) = self.table.chain();
        }
        match &self.chain {
            Some(chain) => self.shared.look_through(chain, range, writes),
            None => (Found::Ask, 0),
        }
    }

    /// Where a write may go that has found nothing there.
    fn take(&mut self, range: (u64, u64)) -> Option<(u16, u64, Option<Taken>)> {
        let chain = self.chain.as_deref()?;
        let (taken, (pv, place), few) = self.shared.take(chain, range)?;
        self.tell(few);
        Some((pv, place, Some(taken)))
    }

    /// So many bytes of it were written; whether that may be answered.
    fn took(&self, taken: &Taken, bytes: u64) -> bool {
        let many = self.shared.took(taken, bytes);
        self.tell(many == Some(true));
        many.is_some()
    }

    /// Tells the pool that it has something to learn, or to offer.
    fn tell(&self, now: bool) {
        if now {
            self.inbox.post(Message::Taken(Arc::clone(&self.shared), self.table.number));
        }
    }

    /// The part of a request from `first` on, of which it is done up to `done`, on a PV.
    #[inline]
    fn go(
        &mut self,
        ring: &mut Ring,
        request: &mut Request<'_>,
        (first, bytes, done): (u64, u64, u64),
        parity: u8,
        (pv_number, place, taken): (u16, u64, Option<Taken>),
    ) -> Submit {
        let bufs = if bytes == request.len {
            request.bufs
        } else {
            self.scratch.clear();
            let scratch = &mut self.scratch;
            walk(request.bufs, first, bytes, |piece| scratch.push(piece));
            &self.scratch
        };
        let (op, tag, passed) = (request.op, request.tag, request.passed);
        let Some(Some(pv)) = self.pvs.get_mut(usize::from(pv_number)) else {
            self.begun.end(parity);
            return self.join(ring, request, (pv_number, done));
        };
        let job = Job {
            tag,
            base: first,
            bytes,
            len: request.len,
            parity: Some(parity),
            pieces: 0,
            odd: false,
            takes: taken.is_some(),
            // Nothing else comes here.
            kind: if op == OpKind::Read { Kind::Read } else { Kind::Write },
            began: ring.now(),
        };
        let answer = match self.jobs.insert(job) {
            None => Submit::Park { reason: Wait::BackEndFull, until: None },
            Some(job) => {
                let (len, tag, done) = (bytes, Tag(job), done - first);
                let mut part = Request { op, offset: place, len, bufs, tag, done, passed };
                let answer = pv.lane.submit(ring, &mut part);
                request.passed = part.passed;
                if answer == Submit::Pending {
                    pv.meter.begins();
                    if let Some(taken) = taken {
                        self.taken.insert(request.tag, taken);
                    }
                    return answer;
                }
                self.jobs.remove(job.into());
                answer
            }
        };
        let told = match (answer, taken) {
            (Submit::Done(Ok(())), Some(taken)) => self.took(&taken, bytes),
            _ => true,
        };
        self.begun.end(parity);
        if told { answer } else { Submit::Done(Err(IoError::Io)) }
    }

    /// A read or write on a PV to which there is no way yet: by itself when there is one, else the pool does it.
    #[cold]
    fn join(
        &mut self,
        ring: &mut Ring,
        request: &mut Request<'_>,
        (number, done): (u16, u64),
    ) -> Submit {
        let pv = self.shared.pv(number);
        let lane = pv.map(|pv| PvLane::new(&pv, ring, Seat::part(self.id, 1 + number)));
        let Some(Ok(lane)) = lane else {
            return self.ask_for(ring, request, done - done % u64::from(self.block_size));
        };
        let place = usize::from(number);
        if self.pvs.len() <= place {
            self.pvs.resize_with(place + 1, || None);
        }
        self.pvs[place] = Some(lane);
        self.transfer(ring, request)
    }

    /// A round of a read or write that takes the pool. It is told where the client's memory is, and makes no copy: requests may wait long, and be many.
    #[cold]
    fn ask_for(&mut self, ring: &mut Ring, request: &Request<'_>, done: u64) -> Submit {
        let block = u64::from(self.block_size);
        let most = (request.len - done).min(ASK_MAX);
        let few = if self.pieces < PIECES_MANY { PIECES_MAX } else { PIECES_FEW };
        let (mut pieces, mut found) = (0, 0);
        let whole = walk(request.bufs, done, most, |piece| {
            pieces += 1;
            found += if pieces <= few { piece.len() as u64 } else { 0 };
        });
        if whole < most {
            return Submit::Done(Err(IoError::Io));
        }
        // Whole blocks, and one at least.
        let bytes = if found < most { (found - found % block).max(block.min(most)) } else { most };
        let mut bufs = Vec::with_capacity(pieces.min(few) as usize);
        walk(request.bufs, done, bytes, |piece| bufs.push(piece));
        let odd = bufs.len() > few as usize;
        if odd && self.odd >= ODD_MAX {
            // Whoever has such memory waits for others who have.
            return Submit::Park { reason: Wait::BackEndFull, until: None };
        }
        self.ask(ring, request, (done, bytes), (bufs.into(), odd))
    }

    /// Another server has the pool: what was refused is under way, and stays so, as at a PV that hangs.
    #[cold]
    #[inline(never)]
    fn withhold(&self, out: &mut Vec<Finish>, first: usize) {
        out.truncate(first);
        if !self.shared.fenced.swap(true, Relaxed) {
            self.inbox.post(Message::Fenced(Arc::clone(&self.shared)));
        }
    }

    /// … and so is what comes.
    #[cold]
    fn hold(&mut self, request: &Request<'_>) -> Submit {
        let job = Job {
            tag: request.tag,
            base: 0,
            bytes: 0,
            len: request.len,
            parity: None,
            pieces: 0,
            odd: false,
            takes: false,
            kind: Kind::Other,
            began: 0,
        };
        match self.jobs.insert(job) {
            Some(_) => Submit::Held { reason: Wait::Pool },
            None => Submit::Park { reason: Wait::BackEndFull, until: None },
        }
    }

    /// Hands the pool a request, or a round of it.
    fn ask(
        &mut self,
        ring: &mut Ring,
        request: &Request<'_>,
        (done, bytes): (u64, u64),
        (bufs, odd): (Box<[IoBuf]>, bool),
    ) -> Submit {
        if self.jobs.is_full() {
            return Submit::Park { reason: Wait::BackEndFull, until: None };
        }
        if !self.listen(ring) {
            let until = Some(clock::instant() + KERNEL_BUSY);
            return Submit::Park { reason: Wait::BackEndFull, until };
        }
        let op = match request.op {
            OpKind::Write { fua } => OpKind::Write { fua: fua || !self.write_cache },
            OpKind::WriteZeroes { unmap, fua } => {
                OpKind::WriteZeroes { unmap, fua: fua || !self.write_cache }
            }
            op => op,
        };
        let full = matches!(op, OpKind::Write { .. }) && self.shared.full.load(Relaxed);
        let pieces = bufs.len() as u32;
        let job = Job {
            tag: request.tag,
            base: done,
            bytes,
            len: request.len,
            parity: None,
            pieces,
            odd,
            takes: false,
            kind: Kind::Other,
            began: 0,
        };
        let Some(job) = self.jobs.insert(job) else {
            return Submit::Park { reason: Wait::BackEndFull, until: None };
        };
        self.asked += 1;
        self.pieces += pieces;
        self.odd += u32::from(odd);
        let (from, tag, lu) = (Arc::clone(&self.answers), Tag(job), self.table.number);
        let at = request.offset + done;
        let ask = Ask { from, tag, op, lu, at, bytes, bufs };
        self.inbox.post(Message::Ask(Arc::clone(&self.shared), ask));
        Submit::Held { reason: if full { Wait::PoolFull } else { Wait::Pool } }
    }

    /// Reads the bell, if nobody does yet; whether somebody does.
    fn listen(&mut self, ring: &mut Ring) -> bool {
        if !self.listens {
            let bufs = [self.rung.buf(0, 8).expect("8 bytes of a page")];
            let read = Op::Read { file: self.bell, bufs: &bufs, offset: 0, nowait: false };
            let user_data = Seat::part(self.id, 0).user_data(BELL);
            self.listens = ring.push(read, user_data).is_ok() || {
                // What the kernel does not take now stays queued.
                let _ = ring.submit();
                ring.push(read, user_data).is_ok()
            };
        }
        self.listens
    }

    /// The bell was rung.
    fn heard(&mut self, ring: &mut Ring, out: &mut Vec<Finish>) {
        self.listens = false;
        for Answered { tag, result } in self.answers.take() {
            let Some(job) = self.jobs.remove(tag.0.into()) else {
                debug_assert!(false, "{tag:?} was answered, and was not asked");
                continue;
            };
            self.asked -= 1;
            self.pieces -= job.pieces;
            self.odd -= u32::from(job.odd);
            out.push(Finish { tag: job.tag, outcome: job.outcome(Outcome::Done(result)) });
        }
        if self.asked > 0 && !self.listen(ring) {
            // Nobody would ever look: once more, by a completion of our own.
            ring.note(Seat::part(self.id, 0).user_data(BELL));
            self.listens = true;
        }
    }
}

impl Lane for LuLane {
    #[inline]
    fn submit(&mut self, ring: &mut Ring, request: &mut Request<'_>) -> Submit {
        if let Err(error) = self.check(request) {
            return Submit::Done(Err(error));
        }
        if self.shared.fenced.load(Relaxed) {
            return self.hold(request);
        }
        match request.op {
            OpKind::Read => self.transfer(ring, request),
            OpKind::Write { fua: false } if self.write_cache => self.transfer(ring, request),
            OpKind::Write { .. } if request.done < request.len => {
                self.ask_for(ring, request, request.done)
            }
            OpKind::Discard | OpKind::WriteZeroes { .. } if request.done < request.len => {
                let rest = request.len - request.done;
                // Zeros above a snapshot are written, part by part: no more at once than of a write.
                let most = if self.table.shares.load(Relaxed) { ASK_MAX } else { rest };
                let round = (request.done, rest.min(most));
                self.ask(ring, request, round, Default::default())
            }
            OpKind::Flush => self.ask(ring, request, (0, 0), Default::default()),
            OpKind::Write { .. } | OpKind::Discard | OpKind::WriteZeroes { .. } => {
                Submit::Done(Ok(()))
            }
        }
    }

    #[inline]
    fn complete(&mut self, ring: &mut Ring, token: u64, result: i32, out: &mut Vec<Finish>) {
        let (part, token) = Seat::of(token);
        if part == 0 {
            return self.heard(ring, out);
        }
        let first = out.len();
        let place = usize::from(part) - 1;
        let Some(Some(pv)) = self.pvs.get_mut(place) else { return };
        pv.lane.complete(ring, token, result, out);
        for finish in &mut out[first..] {
            let Some(job) = self.jobs.remove(finish.tag.0.into()) else {
                debug_assert!(false, "{finish:?} was not begun");
                continue;
            };
            finish.tag = job.tag;
            if let Some(Some(pv)) = self.pvs.get(place) {
                match finish.outcome {
                    Outcome::Again { .. } => pv.meter.goes_on(),
                    Outcome::Done(result) => {
                        let took = ring.now().wrapping_sub(job.began);
                        pv.meter.ends(job.kind, job.bytes, took);
                        if result.is_err() {
                            pv.meter.fails();
                            if result == Err(IoError::Fenced) {
                                return self.withhold(out, first);
                            }
                        }
                    }
                }
            }
            if job.takes
                && let Some(taken) = self.taken.remove(&finish.tag)
            {
                let done = match finish.outcome {
                    Outcome::Done(Ok(())) => job.bytes,
                    Outcome::Done(Err(_)) => 0,
                    Outcome::Again { done } => done,
                };
                if done > 0 && !self.took(&taken, done) {
                    finish.outcome = Outcome::Done(Err(IoError::Io));
                }
            }
            if let Some(parity) = job.parity {
                self.begun.end(parity);
            }
            finish.outcome = job.outcome(finish.outcome);
        }
    }

    fn detach(&mut self, ring: &mut Ring) {
        debug_assert!(self.jobs.is_empty() && !self.listens, "detached with I/O in flight");
        self.pvs.iter_mut().flatten().for_each(|pv| pv.lane.detach(ring));
        ring.unregister(self.bell);
        self.table.lanes.fetch_sub(1, Relaxed);
        self.shared.leave(&self.begun);
    }
}
