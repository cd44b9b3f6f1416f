//! A channel's way to a file: what is pushed, what is in flight, what a completion means.

use std::os::fd::AsFd;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use memory::{IoBuf, Lasting, MapError, clock};
use uring::{FileSlot, Full, Op, Ring, RingError, WriteFlags};

use super::Shared;
use super::bounce::{Bounce, BouncePool};
use super::flush::{Begin, FlushGroup};
use super::witness;
use super::workers::{Leave, REFUSED, THREADS, Workers};
use super::zero::Way;
use crate::fail::{Passing, check, io_error, passing, walk};
use crate::slab::Slab;
use crate::turns::{Turn, Turns};
use crate::{Finish, IoError, Lane, LaneId, OpKind, Outcome, Request, Seat, Submit, Tag, Wait};

/// Bytes in one operation at most: below the kernel's own bound, and a multiple of every block size.
const TRANSFER_MAX: u64 = 1 << 30;
/// Bytes of zeroes in one write, where writing is the only way.
pub(crate) const ZEROES: usize = 1 << 20;
/// When to try again after the kernel would not even take what was queued.
const KERNEL_BUSY: Duration = Duration::from_millis(1);
/// The token of the lane's one `fdatasync`; beyond all places of the slab.
const FLUSH: u64 = Seat::MASK;
/// The token of the pause before the `fdatasync` is tried once more.
const PAUSE: u64 = FLUSH - 1;

/// The answer to a request for which there is no room in the lane.
const FULL: Submit = Submit::Park { reason: Wait::BackEndFull, until: None };

/// An operation in flight.
#[derive(Debug, Clone, Copy)]
struct Job {
    tag: Tag,
    kind: Kind,
    /// Bytes of the request that were done before.
    base: u64,
    /// Bytes of this round.
    bytes: u64,
    /// Bytes of the request.
    len: u64,
    /// A write that is to be durable when it completes.
    durable: bool,
    leave: Leave,
}

/// Whether the client asked for durability before the answer.
#[derive(Debug, Clone, Copy)]
struct Durable(bool);

#[derive(Debug, Clone, Copy)]
enum Kind {
    /// Between the file and the client's memory.
    Transfer,
    /// Into a bounce buffer, to be copied out.
    BounceRead(Bounce),
    /// Out of a bounce buffer.
    BounceWrite(Bounce),
    Discard,
    Zero(Way, Durable),
    /// The end of a write-zeroes that must be durable.
    ZeroSync,
}

/// See [`super::FileVolume`].
pub(super) struct FileLane {
    shared: Arc<Shared>,
    files: Files,
    id: Seat,
    jobs: Slab<Job>,
    workers: Workers,
    /// Of what is copied on this thread.
    turns: Turns,
    flushes: FlushGroup,
    /// Pieces of a request that cannot be handed on as it is.
    scratch: Vec<IoBuf>,
    zeroes: Lasting,
    /// Only with direct I/O.
    bounces: Option<BouncePool>,
    /// What memory and lengths must be a multiple of, less one; 0 when buffered.
    memory_mask: usize,
    length_mask: usize,
}

/// What a lane has registered with its ring.
#[derive(Debug)]
pub(super) struct Files {
    slot: FileSlot,
    /// Through which flushes go; none when there is nothing to lose.
    witness: Option<(witness::Seat, FileSlot)>,
}

impl Files {
    pub(super) fn register(shared: &Shared, ring: &mut Ring) -> Result<Files, RingError> {
        let slot = ring.register(shared.file.as_fd())?;
        let mut files = Files { slot, witness: None };
        let witness = shared.witnesses.seat().map(|seat| {
            let slot = ring.register(seat.file())?;
            Ok((seat, slot))
        });
        let witness = witness.transpose();
        let result = witness.and_then(|witness| {
            files.witness = witness;
            ring.add_workers(THREADS).map_err(RingError::Register)
        });
        match result {
            Ok(()) => Ok(files),
            Err(error) => {
                files.unregister(ring);
                Err(error)
            }
        }
    }

    fn unregister(&self, ring: &mut Ring) {
        ring.unregister(self.slot);
        if let Some((_, slot)) = &self.witness {
            ring.unregister(*slot);
        }
    }

    /// Gives everything back.
    pub(super) fn give_back(&self, ring: &mut Ring) {
        self.unregister(ring);
        ring.remove_workers(THREADS);
    }
}

impl FileLane {
    pub(super) fn new(
        shared: Arc<Shared>,
        files: Files,
        id: Seat,
    ) -> Result<FileLane, (Files, MapError)> {
        let direct = shared.target.direct;
        let memory = Lasting::new(ZEROES)
            .and_then(|zeroes| Ok((zeroes, direct.map(|_| BouncePool::new()).transpose()?)));
        let (zeroes, bounces) = match memory {
            Ok(memory) => memory,
            Err(error) => return Err((files, error)),
        };
        *shared.lanes.lock().unwrap_or_else(PoisonError::into_inner) += 1;
        Ok(FileLane {
            files,
            id,
            jobs: Slab::new(),
            workers: Workers::new(&shared.target),
            turns: Turns::new(),
            flushes: FlushGroup::new(),
            scratch: Vec::with_capacity(Op::MAX_BUFS),
            zeroes,
            bounces,
            memory_mask: direct.map_or(0, |direct| direct.memory as usize - 1),
            length_mask: direct.map_or(0, |direct| direct.offset as usize - 1),
            shared,
        })
    }

    #[inline]
    fn push(&self, ring: &mut Ring, op: Op<'_>, token: u64) -> Result<(), Full> {
        push(ring, op, self.id.user_data(token))
    }

    /// Notes a job and pushes its operation. Nothing has happened when this answers [`Submit::Park`].
    #[inline]
    fn start(&mut self, ring: &mut Ring, job: Job, op: Op<'_>) -> Submit {
        if !self.workers.has_room(job.leave) {
            return FULL;
        }
        let Some(token) = self.jobs.insert(job) else { return FULL };
        match self.push(ring, op, u64::from(token)) {
            Ok(()) => {
                self.workers.begun(job.leave);
                Submit::Pending
            }
            Err(Full) => {
                self.jobs.remove(u64::from(token));
                busy()
            }
        }
    }

    /// Whether the pieces can be handed to the kernel as they are: not too many, `len` bytes in all, and lying right.
    #[inline]
    fn suits(&self, bufs: &[IoBuf], len: u64) -> bool {
        if bufs.len() > Op::MAX_BUFS || len > TRANSFER_MAX {
            return false;
        }
        let (mut places, mut lengths, mut sum) = (0, 0, 0_u64);
        for buf in bufs {
            places |= buf.as_ptr() as usize;
            lengths |= buf.len();
            sum = sum.saturating_add(buf.len() as u64);
        }
        sum == len && places & self.memory_mask == 0 && lengths & self.length_mask == 0
    }

    fn transfer_op<'a>(&self, request: &Request<'_>, bufs: &'a [IoBuf], leave: Leave) -> Op<'a> {
        let (file, offset, nowait) = (self.files.slot, request.offset + request.done, leave.nowait);
        match request.op {
            OpKind::Read => Op::Read { file, bufs, offset, nowait },
            OpKind::Write { fua } => {
                let flags = WriteFlags { dsync: self.durable(fua), nowait };
                Op::Write { file, bufs, offset, flags }
            }
            _ => unreachable!("only reads and writes have data"),
        }
    }

    /// Whether a write must be durable before it is answered.
    pub(super) fn durable(&self, fua: bool) -> bool {
        fua || !self.shared.write_cache
    }

    /// The next round of a read or write.
    #[inline]
    fn round(&self, request: &Request<'_>, kind: Kind, bytes: u64) -> Job {
        let durable = matches!(request.op, OpKind::Write { fua } if self.durable(fua));
        Job { durable, leave: self.workers.leave(request), ..job(request, kind, bytes) }
    }

    #[inline]
    fn transfer(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        if request.done >= request.len {
            return Submit::Done(Ok(()));
        }
        if self.shared.target.inline {
            return self.transfer_inline(ring, request);
        }
        if request.done == 0 && self.suits(request.bufs, request.len) {
            let job = self.round(request, Kind::Transfer, request.len);
            let op = self.transfer_op(request, request.bufs, job.leave);
            return self.start(ring, job, op);
        }
        self.transfer_part(ring, request)
    }

    /// The rest of a request, or as much of it as goes into one operation.
    fn transfer_part(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        let mut scratch = std::mem::take(&mut self.scratch);
        scratch.clear();
        let limit = (request.len - request.done).min(TRANSFER_MAX);
        let mut bytes = walk(request.bufs, request.done, limit, |piece| {
            let room = scratch.len() < Op::MAX_BUFS;
            if room {
                scratch.push(piece);
            }
            room
        });
        // Up to a whole unit of the device; the rest comes in the next round.
        let mut excess = bytes & self.length_mask as u64;
        bytes -= excess;
        while excess > 0
            && let Some(last) = scratch.pop()
        {
            let cut = (last.len() as u64).min(excess);
            excess -= cut;
            if cut < last.len() as u64 {
                scratch.push(last.slice(0, last.len() - cut as usize));
            }
        }
        let answer = if bytes > 0 && self.suits(&scratch, bytes) {
            let job = self.round(request, Kind::Transfer, bytes);
            let op = self.transfer_op(request, &scratch, job.leave);
            self.start(ring, job, op)
        } else {
            self.bounce(ring, request)
        };
        self.scratch = scratch;
        answer
    }

    /// A request, or a round of a long one, at once.
    fn transfer_inline(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        let end = match self.turns.ask(request) {
            Turn::Copy(limit) => request.len.min(request.done.saturating_add(limit)),
            turn => return self.wait_turn(ring, turn),
        };
        if let Err(error) = self.copy_inline(request, end) {
            return Submit::Done(Err(error));
        }
        match self.turns.copied(request, end) {
            None => Submit::Done(Ok(())),
            Some(turn) => self.wait_turn(ring, turn),
        }
    }

    #[cold]
    fn wait_turn(&mut self, ring: &mut Ring, turn: Turn) -> Submit {
        let tick = self.id.user_data(LaneId::TICK);
        Turns::answer(turn, || ring.note(tick))
    }

    /// Up to `end`. Each step moves something, or ends it.
    fn copy_inline(&mut self, request: &Request<'_>, end: u64) -> Result<(), IoError> {
        let mut done = request.done;
        let mut bufs = request.bufs;
        while done < end {
            if done > 0 || end < request.len || !self.suits(bufs, request.len) {
                self.scratch.clear();
                let scratch = &mut self.scratch;
                walk(request.bufs, done, end - done, |piece| {
                    let room = scratch.len() < Op::MAX_BUFS;
                    if room {
                        scratch.push(piece);
                    }
                    room
                });
                bufs = &self.scratch;
            }
            let (file, offset) = (self.shared.file.as_fd(), request.offset + done);
            let moved = match request.op {
                OpKind::Read => uring::inline::read_at(file, bufs, offset),
                _ => uring::inline::write_at(file, bufs, offset),
            };
            match moved {
                // The file became shorter, or the memory does not hold what was to be moved.
                Ok(0) => return Err(IoError::Io),
                Ok(moved) => done += moved as u64,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => return Err(io_error(-error.raw_os_error().unwrap_or(libc::EIO))),
            }
        }
        Ok(())
    }

    /// A round through a bounce buffer.
    fn bounce(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        // Without direct I/O everything lies right, and what does not suit has too few bytes of memory.
        let Some(pool) = &mut self.bounces else {
            return Submit::Done(Err(IoError::Io));
        };
        // Before anything is copied for it.
        if self.jobs.is_full() || !self.workers.has_room(self.workers.leave(request)) {
            return FULL;
        }
        let Some(bounce) = pool.take() else {
            return Submit::Park { reason: Wait::NoDma, until: None };
        };
        // The mask comes from a u32.
        let unit = self.length_mask as u32 + 1;
        let limit = request.len - request.done;
        let buffer = pool.gather(bounce, request.bufs, request.done, limit, unit);
        if buffer.is_empty() {
            pool.give_back(bounce);
            return Submit::Done(Err(IoError::Io));
        }
        let kind = if request.op == OpKind::Read {
            Kind::BounceRead(bounce)
        } else {
            pool.fill(bounce, buffer.len());
            Kind::BounceWrite(bounce)
        };
        let bufs = [buffer];
        let job = self.round(request, kind, buffer.len() as u64);
        let op = self.transfer_op(request, &bufs, job.leave);
        let answer = self.start(ring, job, op);
        if answer != Submit::Pending {
            self.release(kind);
        }
        answer
    }

    fn release(&mut self, kind: Kind) {
        if let (Kind::BounceRead(bounce) | Kind::BounceWrite(bounce), Some(pool)) =
            (kind, &mut self.bounces)
        {
            pool.give_back(bounce);
        }
    }

    fn flush(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        if self.files.witness.is_none() || memory::planted("flush-early") {
            return Submit::Done(Ok(()));
        }
        match self.flushes.begin(request.tag) {
            Begin::Waits => Submit::Pending,
            Begin::Full => FULL,
            Begin::Sync => match self.sync(ring) {
                Ok(()) => Submit::Pending,
                Err(Full) => {
                    self.flushes.cancel();
                    busy()
                }
            },
        }
    }

    /// Starts the `fdatasync` for the flushes that wait, now or when it is this lane's turn with the witness.
    fn sync(&mut self, ring: &mut Ring) -> Result<(), Full> {
        let id = self.id;
        let Some((seat, file)) = &mut self.files.witness else { return Ok(()) };
        let file = if memory::planted("one-file") { &self.files.slot } else { &*file };
        let pushed = match seat.take() {
            Ok(()) => push(ring, Op::DataSync { file: *file }, id.user_data(FLUSH)),
            Err(after) => push(ring, Op::Timeout { after }, id.user_data(PAUSE)),
        };
        if pushed.is_err() {
            seat.give_back();
        }
        pushed
    }

    fn discard(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        if self.shared.no_discard.load(Ordering::Relaxed) {
            return Submit::Done(Err(IoError::Unsupported));
        }
        // A discard is a wish: sectors of the device that the range covers only in part stay.
        let sector = u64::from(self.shared.target.sector);
        let offset = request.offset.next_multiple_of(sector);
        let end = (request.offset + request.len) & !(sector - 1);
        if offset >= end {
            return Submit::Done(Ok(()));
        }
        let mode = Way::Punch.mode().expect("a hole is punched by fallocate");
        let (file, len) = (self.files.slot, end - offset);
        let op = Op::Fallocate { file, mode, offset, len };
        self.start(ring, job(request, Kind::Discard, request.len), op)
    }

    fn zero(&mut self, ring: &mut Ring, request: &Request<'_>, unmap: bool, fua: bool) -> Submit {
        if request.done >= request.len {
            return Submit::Done(Ok(()));
        }
        let shared = &self.shared;
        let (file, offset, rest) =
            (self.files.slot, request.offset + request.done, request.len - request.done);
        let whole = (offset | rest) & u64::from(shared.target.sector - 1) == 0;
        let no_punch = !whole || shared.no_punch.load(Ordering::Relaxed);
        let no_range = !whole || shared.no_zero_range.load(Ordering::Relaxed);
        let way = Way::choose(unmap, no_punch, no_range);
        if let Some(mode) = way.mode() {
            let op = Op::Fallocate { file, mode, offset, len: rest };
            return self.start(ring, job(request, Kind::Zero(way, Durable(fua)), rest), op);
        }
        // The client is not told how far it got before the end, so one flag on every round is enough for durability.
        let bytes = rest.min(ZEROES as u64);
        let bufs = [self.zeroes.buf(0, bytes as usize).expect("inside the zeroes")];
        let job = Job {
            durable: self.durable(fua),
            leave: self.workers.leave(request),
            ..job(request, Kind::Zero(way, Durable(fua)), bytes)
        };
        let flags = WriteFlags { dsync: job.durable, nowait: job.leave.nowait };
        self.start(ring, job, Op::Write { file, bufs: &bufs, offset, flags })
    }

    /// The end of a read or write operation.
    fn transferred(&mut self, job: Job, result: i32) -> Outcome {
        let Ok(moved) = u64::try_from(result) else { return self.failed(job, result) };
        if moved >= job.bytes || memory::planted("short-is-whole") {
            return advance(&job, job.bytes);
        }
        // Cut short: by a signal, by the end of a file that became shorter, by a full disk. The next round tells which.
        let whole = moved & !(self.length_mask as u64);
        if whole == 0 { Outcome::Done(Err(IoError::Io)) } else { advance(&job, whole) }
    }

    /// The end of an operation that did nothing, or not all that it was to do.
    #[cold]
    fn failed(&mut self, job: Job, result: i32) -> Outcome {
        let again = Outcome::Again { done: job.base };
        match -result {
            libc::EAGAIN if job.leave.nowait => {
                self.workers.refuse(job.tag, None);
                return again;
            }
            libc::EOPNOTSUPP if job.leave.nowait => {
                self.workers.never_ask();
                return again;
            }
            _ => {}
        }
        match passing(result) {
            _ if memory::planted("passing-fails") => {}
            Some(Passing::Now) => return again,
            Some(Passing::Soon) => {
                self.workers.refuse(job.tag, Some(clock::instant() + KERNEL_BUSY));
                return again;
            }
            None => {}
        }
        // A durable write that the medium refused: who knows what else the device had taken and not kept. One that found no space, or
        // that could not be done for reasons of its own, has harmed nobody; should it have taken somebody's error, the
        // witnesses still have it. Nor does the device lose anything by being somebody else's.
        if job.durable
            && !matches!(
                io_error(result),
                IoError::NoSpace | IoError::Unsupported | IoError::ReadOnly | IoError::Fenced
            )
            && !matches!(-result, libc::EFAULT | libc::EINVAL | libc::ENOMEM)
        {
            self.shared.poison();
        }
        Outcome::Done(Err(io_error(result)))
    }

    /// The end of an operation that zeroed or gave back a range. `None` when another one follows for the same job.
    fn cleared(&mut self, ring: &mut Ring, job: Job, result: i32) -> Option<Outcome> {
        let unknown = result == -libc::EOPNOTSUPP;
        let shared = &self.shared;
        match job.kind {
            Kind::Zero(Way::Write, _) => return Some(self.transferred(job, result)),
            Kind::Zero(way, _) if unknown => {
                let flag = if way == Way::Punch { &shared.no_punch } else { &shared.no_zero_range };
                flag.store(true, Ordering::Relaxed);
                return Some(Outcome::Again { done: job.base });
            }
            Kind::Discard if unknown => shared.no_discard.store(true, Ordering::Relaxed),
            _ => {}
        }
        if result < 0 {
            return Some(self.failed(job, result));
        }
        match job.kind {
            Kind::Zero(_, Durable(fua)) if self.durable(fua) => self.make_durable(ring, job),
            _ => Some(advance(&job, job.bytes)),
        }
    }

    /// Begins the last step of a write-zeroes that must be durable.
    fn make_durable(&mut self, ring: &mut Ring, job: Job) -> Option<Outcome> {
        let sync = Job { kind: Kind::ZeroSync, durable: true, ..job };
        match self.start(ring, sync, Op::DataSync { file: self.files.slot }) {
            Submit::Pending => None,
            // Not known to be durable, so not done; doing it again is harmless.
            _ => Some(Outcome::Again { done: job.base }),
        }
    }

    fn flushed(&mut self, ring: &mut Ring, result: i32, out: &mut Vec<Finish>) {
        let passing = passing(result);
        if result < 0 && passing.is_none() && io_error(result) != IoError::Fenced {
            self.shared.poison();
        }
        self.leave_line();
        let mut outcome = match result {
            _ if passing.is_some() => {
                let again = Op::Timeout { after: KERNEL_BUSY };
                if self.push(ring, again, PAUSE).is_ok() {
                    return;
                }
                Outcome::Again { done: 0 }
            }
            // Another lane may have learnt of a loss meanwhile.
            0.. if !self.poisoned() => Outcome::Done(Ok(())),
            0.. => Outcome::Done(Err(IoError::Io)),
            _ => Outcome::Done(Err(io_error(result))),
        };
        while self.flushes.finish(|tag| out.push(Finish { tag, outcome })) {
            outcome = match self.begin_sync(ring) {
                None => return,
                Some(outcome) => outcome,
            };
        }
    }

    /// Starts the `fdatasync` for flushes that have waited for it. If that cannot be, how they end: when the kernel takes nothing now, nothing
    /// is lost, and they are asked for again.
    fn begin_sync(&mut self, ring: &mut Ring) -> Option<Outcome> {
        if self.poisoned() {
            return Some(Outcome::Done(Err(IoError::Io)));
        }
        self.sync(ring).err().map(|Full| Outcome::Again { done: 0 })
    }

    /// A flush waited before its `fdatasync`.
    #[cold]
    fn paused(&mut self, ring: &mut Ring, out: &mut Vec<Finish>) {
        if let Some(outcome) = self.begin_sync(ring) {
            self.leave_line();
            while self.flushes.finish(|tag| out.push(Finish { tag, outcome })) {}
        }
    }

    fn leave_line(&mut self) {
        if let Some((seat, _)) = &mut self.files.witness {
            seat.give_back();
        }
    }

    fn poisoned(&self) -> bool {
        self.shared.poisoned.load(Ordering::SeqCst) && !memory::planted("one-file")
    }
}

/// Adds an operation; when the ring is full, hands over what is queued first.
#[inline]
fn push(ring: &mut Ring, op: Op<'_>, user_data: u64) -> Result<(), Full> {
    ring.push(op, user_data).or_else(|Full| {
        // Entries that the kernel does not take now stay queued; the push then fails again.
        let _ = ring.submit();
        ring.push(op, user_data)
    })
}

fn busy() -> Submit {
    Submit::Park { reason: Wait::BackEndFull, until: Some(clock::instant() + KERNEL_BUSY) }
}

#[inline]
fn job(request: &Request<'_>, kind: Kind, bytes: u64) -> Job {
    let (tag, base, len) = (request.tag, request.done, request.len);
    Job { tag, kind, base, bytes, len, durable: false, leave: Leave::WORKER }
}

/// `bytes` more of a request are done.
#[inline]
fn advance(job: &Job, bytes: u64) -> Outcome {
    let done = job.base + bytes;
    if done >= job.len { Outcome::Done(Ok(())) } else { Outcome::Again { done } }
}

impl Drop for FileLane {
    fn drop(&mut self) {
        *self.shared.lanes.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
    }
}

impl Lane for FileLane {
    #[inline]
    fn submit(&mut self, ring: &mut Ring, request: &mut Request<'_>) -> Submit {
        let shared = &self.shared;
        let bytes = shared.bytes.load(Ordering::Relaxed);
        if let Err(error) = check(request, bytes, shared.block_size, shared.read_only) {
            return Submit::Done(Err(error));
        }
        if request.op != OpKind::Read && shared.poisoned.load(Ordering::Relaxed) {
            return Submit::Done(Err(IoError::Io));
        }
        if let Some(until) = self.workers.pause(request) {
            return Submit::Park { reason: Wait::BackEndFull, until: Some(until) };
        }
        let answer = match request.op {
            OpKind::Read | OpKind::Write { .. } => self.transfer(ring, request),
            OpKind::Flush => self.flush(ring, request),
            OpKind::Discard => self.discard(ring, request),
            OpKind::WriteZeroes { unmap, fua } => self.zero(ring, request, unmap, fua),
        };
        if answer == Submit::Pending {
            // Its next round asks again.
            request.passed &= !REFUSED;
        }
        answer
    }

    #[inline]
    fn complete(&mut self, ring: &mut Ring, token: u64, result: i32, out: &mut Vec<Finish>) {
        match token {
            FLUSH => return self.flushed(ring, result, out),
            PAUSE => return self.paused(ring, out),
            LaneId::TICK => {
                if self.turns.tick(out) {
                    ring.note(self.id.user_data(LaneId::TICK));
                }
                return;
            }
            _ => {}
        }
        let Some(job) = self.jobs.remove(token) else {
            debug_assert!(false, "{token} completed, but is not in flight");
            return;
        };
        self.workers.ended(job.leave);
        let outcome = match job.kind {
            Kind::Transfer => self.transferred(job, result),
            Kind::BounceRead(bounce) => {
                if let (Ok(moved), Some(pool)) = (usize::try_from(result), &self.bounces) {
                    // The job's bytes are at most those of the buffer.
                    pool.drain(bounce, moved.min(job.bytes as usize));
                }
                self.release(job.kind);
                self.transferred(job, result)
            }
            Kind::BounceWrite(_) => {
                self.release(job.kind);
                self.transferred(job, result)
            }
            Kind::Discard | Kind::Zero(..) => match self.cleared(ring, job, result) {
                Some(outcome) => outcome,
                None => return,
            },
            Kind::ZeroSync if result < 0 => self.failed(job, result),
            Kind::ZeroSync => advance(&job, job.bytes),
        };
        out.push(Finish { tag: job.tag, outcome });
    }

    fn detach(&mut self, ring: &mut Ring) {
        debug_assert!(
            self.jobs.is_empty() && self.flushes.is_empty(),
            "detached with I/O in flight"
        );
        self.files.give_back(ring);
    }
}
