//! A channel's way to a file: what is pushed, what is in flight, what a completion means.

use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use memory::{IoBuf, MapError, Mapping};
use uring::{FileSlot, Full, Op, Ring, WriteFlags};

use super::Shared;
use super::bounce::{Bounce, BouncePool};
use super::flush::{Begin, FlushGroup};
use super::zero::Way;
use crate::fail::{check, io_error, walk};
use crate::slab::Slab;
use crate::{Finish, IoError, Lane, LaneId, OpKind, Outcome, Request, Submit, Tag, Wait};

/// Bytes in one operation at most: below the kernel's own bound, and a multiple of every block size.
const TRANSFER_MAX: u64 = 1 << 30;
/// Bytes of zeroes in one write, where writing is the only way.
const ZEROES: usize = 1 << 20;
/// When to try again after the kernel would not even take what was queued.
const KERNEL_BUSY: Duration = Duration::from_millis(1);
/// The token of the lane's one `fdatasync`; beyond all places of the slab.
const FLUSH: u64 = LaneId::TOKEN_MASK;

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
    slot: FileSlot,
    id: LaneId,
    jobs: Slab<Job>,
    flushes: FlushGroup,
    /// Pieces of a request that cannot be handed on as it is.
    scratch: Vec<IoBuf>,
    zeroes: Mapping,
    /// Only with direct I/O.
    bounces: Option<BouncePool>,
    /// What memory and lengths must be a multiple of, less one; 0 when buffered.
    memory_mask: usize,
    length_mask: usize,
}

impl FileLane {
    pub(super) fn new(
        shared: Arc<Shared>,
        slot: FileSlot,
        id: LaneId,
    ) -> Result<FileLane, MapError> {
        let direct = shared.target.direct;
        Ok(FileLane {
            slot,
            id,
            jobs: Slab::new(),
            flushes: FlushGroup::new(),
            scratch: Vec::with_capacity(Op::MAX_BUFS),
            zeroes: Mapping::anonymous(ZEROES)?,
            bounces: direct.map(|_| BouncePool::new()).transpose()?,
            memory_mask: direct.map_or(0, |direct| direct.memory as usize - 1),
            length_mask: direct.map_or(0, |direct| direct.offset as usize - 1),
            shared,
        })
    }

    /// Adds an operation; when the ring is full, hands over what is queued first.
    #[inline]
    fn push(&self, ring: &mut Ring, op: Op<'_>, token: u64) -> Result<(), Full> {
        let user_data = self.id.user_data(token);
        ring.push(op, user_data).or_else(|Full| {
            // Entries that the kernel does not take now stay queued; the push then fails again.
            let _ = ring.submit();
            ring.push(op, user_data)
        })
    }

    /// Notes a job and pushes its operation. Nothing has happened when this answers [`Submit::Park`].
    #[inline]
    fn start(&mut self, ring: &mut Ring, job: Job, op: Op<'_>) -> Submit {
        let Some(token) = self.jobs.insert(job) else {
            return Submit::Park { reason: Wait::BackEndFull, until: None };
        };
        match self.push(ring, op, u64::from(token)) {
            Ok(()) => Submit::Pending,
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

    fn transfer_op<'a>(&self, request: &Request<'_>, bufs: &'a [IoBuf]) -> Op<'a> {
        let (file, offset) = (self.slot, request.offset + request.done);
        match request.op {
            OpKind::Read => Op::Read { file, bufs, offset },
            OpKind::Write { fua } => Op::Write { file, bufs, offset, flags: self.durability(fua) },
            _ => unreachable!("only reads and writes have data"),
        }
    }

    pub(super) fn durability(&self, fua: bool) -> WriteFlags {
        WriteFlags { dsync: fua || !self.shared.write_cache }
    }

    #[inline]
    fn transfer(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        if request.done >= request.len {
            return Submit::Done(Ok(()));
        }
        if self.shared.target.inline {
            return Submit::Done(self.transfer_inline(request));
        }
        if request.done == 0 && self.suits(request.bufs, request.len) {
            let op = self.transfer_op(request, request.bufs);
            return self.start(ring, job(request, Kind::Transfer, request.len), op);
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
            let op = self.transfer_op(request, &scratch);
            self.start(ring, job(request, Kind::Transfer, bytes), op)
        } else {
            self.bounce(ring, request)
        };
        self.scratch = scratch;
        answer
    }

    /// All of a request, at once. Each round moves something, or ends it.
    fn transfer_inline(&mut self, request: &Request<'_>) -> Result<(), IoError> {
        let mut done = request.done;
        let mut bufs = request.bufs;
        while done < request.len {
            if done > 0 || !self.suits(bufs, request.len) {
                self.scratch.clear();
                let scratch = &mut self.scratch;
                walk(request.bufs, done, request.len - done, |piece| {
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
        let op = self.transfer_op(request, &bufs);
        let answer = self.start(ring, job(request, kind, buffer.len() as u64), op);
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
        if self.shared.target.inline {
            return Submit::Done(Ok(()));
        }
        match self.flushes.begin(request.tag) {
            Begin::Waits => Submit::Pending,
            Begin::Full => Submit::Park { reason: Wait::BackEndFull, until: None },
            Begin::Sync => match self.push(ring, Op::DataSync { file: self.slot }, FLUSH) {
                Ok(()) => Submit::Pending,
                Err(Full) => {
                    self.flushes.cancel();
                    busy()
                }
            },
        }
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
        let (file, len) = (self.slot, end - offset);
        let op = Op::Fallocate { file, mode, offset, len };
        self.start(ring, job(request, Kind::Discard, request.len), op)
    }

    fn zero(&mut self, ring: &mut Ring, request: &Request<'_>, unmap: bool, fua: bool) -> Submit {
        if request.done >= request.len {
            return Submit::Done(Ok(()));
        }
        let shared = &self.shared;
        let (file, offset, rest) =
            (self.slot, request.offset + request.done, request.len - request.done);
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
        let op = Op::Write { file, bufs: &bufs, offset, flags: self.durability(fua) };
        self.start(ring, job(request, Kind::Zero(way, Durable(fua)), bytes), op)
    }

    /// The end of a read or write operation.
    fn transferred(&mut self, job: Job, result: i32) -> Outcome {
        let Ok(moved) = u64::try_from(result) else {
            return Outcome::Done(Err(io_error(result)));
        };
        if moved >= job.bytes {
            return advance(&job, job.bytes);
        }
        // Cut short: by a signal, by the end of a file that became shorter, by a full disk. The next round tells which.
        let whole = moved & !(self.length_mask as u64);
        if whole == 0 { Outcome::Done(Err(IoError::Io)) } else { advance(&job, whole) }
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
            return Some(Outcome::Done(Err(io_error(result))));
        }
        if let Kind::Zero(_, Durable(fua)) = job.kind
            && (fua || !shared.write_cache)
        {
            let sync = Job { kind: Kind::ZeroSync, ..job };
            let op = Op::DataSync { file: self.slot };
            return match self.start(ring, sync, op) {
                Submit::Pending => None,
                // Not known to be durable, so not done; doing it again is harmless.
                _ => Some(Outcome::Again { done: job.base }),
            };
        }
        Some(advance(&job, job.bytes))
    }

    fn flushed(&mut self, ring: &mut Ring, result: i32, out: &mut Vec<Finish>) {
        if result < 0 {
            self.shared.poisoned.store(true, Ordering::SeqCst);
        }
        let mut outcome = match result {
            0.. => Outcome::Done(Ok(())),
            _ => Outcome::Done(Err(io_error(result))),
        };
        while self.flushes.finish(|tag| out.push(Finish { tag, outcome })) {
            let healthy = !self.shared.poisoned.load(Ordering::Relaxed);
            if healthy && self.push(ring, Op::DataSync { file: self.slot }, FLUSH).is_ok() {
                return;
            }
            outcome = Outcome::Done(Err(IoError::Io));
        }
    }
}

fn busy() -> Submit {
    Submit::Park { reason: Wait::BackEndFull, until: Some(Instant::now() + KERNEL_BUSY) }
}

#[inline]
fn job(request: &Request<'_>, kind: Kind, bytes: u64) -> Job {
    Job { tag: request.tag, kind, base: request.done, bytes, len: request.len }
}

/// `bytes` more of a request are done.
#[inline]
fn advance(job: &Job, bytes: u64) -> Outcome {
    let done = job.base + bytes;
    if done >= job.len { Outcome::Done(Ok(())) } else { Outcome::Again { done } }
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
        match request.op {
            OpKind::Read | OpKind::Write { .. } => self.transfer(ring, request),
            OpKind::Flush => self.flush(ring, request),
            OpKind::Discard => self.discard(ring, request),
            OpKind::WriteZeroes { unmap, fua } => self.zero(ring, request, unmap, fua),
        }
    }

    #[inline]
    fn complete(&mut self, ring: &mut Ring, token: u64, result: i32, out: &mut Vec<Finish>) {
        if token == FLUSH {
            return self.flushed(ring, result, out);
        }
        let Some(job) = self.jobs.remove(token) else {
            debug_assert!(false, "{token} completed, but is not in flight");
            return;
        };
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
            Kind::ZeroSync if result < 0 => {
                self.shared.poisoned.store(true, Ordering::SeqCst);
                Outcome::Done(Err(io_error(result)))
            }
            Kind::ZeroSync => advance(&job, job.bytes),
        };
        out.push(Finish { tag: job.tag, outcome });
    }

    fn detach(&mut self, ring: &mut Ring) {
        debug_assert!(
            self.jobs.is_empty() && self.flushes.is_empty(),
            "detached with I/O in flight"
        );
        ring.unregister(self.slot);
    }
}
