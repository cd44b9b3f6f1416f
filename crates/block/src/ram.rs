//! [`RamVolume`]: memory that outlives the server's process.
//!
//! The volume is a file in a tmpfs, mapped into the server. Reads and writes are copies on the channel's thread and are
//! answered at once, long ones in rounds ([`crate::turns`]). A file that disappears from its folder keeps its memory as long as the server has it open.
//!
//! # A tmpfs that is full
//!
//! A page that was never written has no memory yet, and a copy into it when the tmpfs is full raises SIGBUS. The guard of
//! [`memory::Mapping`] then marks the mapping damaged and replaces it by private zeroes. Whoever copied meanwhile sees the mark
//! *after* the copy, has the file mapped again, in which nothing is lost, and does the request once more. So a full tmpfs costs
//! those requests an error that needed memory, and nobody else. Mapping again allocates; it is the one place on the I/O path
//! that does. With `preallocate` none of this can happen, and discards do nothing, since what they give back could not be had again.
//!
//! # Size
//!
//! A RAM volume can grow and not shrink: other channels may be copying behind the new end without asking anybody.

mod place;

use std::fs::File;
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use memory::{Access, Mapping, View};
use rustix::fs::FallocateFlags;
use spec::{RamSpec, VolumeSpec};
use uring::{FileSlot, Op, Ring};

use crate::fail::{Failure, check, fail, io_error, passing, walk};
use crate::file::{memory, removed, trouble};
use crate::kinds::{Kind, OpenEvent, Opening};
use crate::slab::Slab;
use crate::turns::{Turn, Turns};
use crate::{
    Finish, Geometry, IoError, Lane, LaneId, OpKind, Outcome, Request, Submit, Tag, Volume,
    VolumeError, Wait,
};

/// A range this long is given back rather than filled, if it may be.
const PUNCH_MIN: u64 = 64 * 1024;

/// A file in a tmpfs, mapped. See the module.
#[derive(Debug)]
pub struct RamVolume {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    name: String,
    file: File,
    block_size: u32,
    read_only: bool,
    preallocate: bool,
    /// Changes when `current` does; lanes look at it with each request.
    generation: AtomicU64,
    /// Channels take it, so it is held for moments only.
    current: Mutex<Arc<Mapping>>,
    /// One change of the size at a time.
    resizing: Mutex<()>,
}

impl Shared {
    fn current(&self) -> Arc<Mapping> {
        self.current.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Maps the file again after a damage, once for all lanes.
    fn repair(&self) {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        if !current.damaged() {
            return;
        }
        // When that fails, because the file itself became shorter, the damaged one stays and all requests fail.
        if let Ok(mapping) = Mapping::file(&self.file, 0, current.len(), access(self.read_only)) {
            *current = Arc::new(mapping);
            self.generation.fetch_add(1, Ordering::Release);
        }
    }
}

fn access(read_only: bool) -> Access {
    if read_only { Access::ReadOnly } else { Access::ReadWrite }
}

impl Kind for RamSpec {
    fn check(&self, _: &VolumeSpec) -> Result<(), VolumeError> {
        Ok(())
    }

    fn open(
        &self,
        spec: &VolumeSpec,
        opening: &mut Opening<'_>,
    ) -> Result<Arc<dyn Volume>, VolumeError> {
        let volume = RamVolume::open(spec, self, opening)?;
        (opening.event)(OpenEvent::Access("memory"));
        Ok(Arc::new(volume))
    }
}

impl RamVolume {
    /// Opens, or makes, the file and maps it.
    ///
    /// # Errors
    ///
    /// When the path is not on a tmpfs, the size is wrong, memory is short, or another process has the file locked.
    pub(crate) fn open(
        spec: &VolumeSpec,
        ram: &RamSpec,
        opening: &mut Opening<'_>,
    ) -> Result<RamVolume, VolumeError> {
        let name = &spec.name;
        let (file, new) = place::open(spec, ram, opening)?;
        let bytes = size(spec, ram, &file)?;
        let mapping = map(name, &file, bytes, spec.read_only)?;
        let known = memory(&file, opening.files)
            .map_err(|e| fail(name, "looking at its file").because(e))?;
        new.keep(name, &file)?;
        (opening.event)(OpenEvent::Identity(known));
        Ok(RamVolume {
            shared: Arc::new(Shared {
                name: name.clone(),
                file,
                block_size: spec.block_size,
                read_only: spec.read_only,
                preallocate: ram.preallocate,
                generation: AtomicU64::new(0),
                current: Mutex::new(Arc::new(mapping)),
                resizing: Mutex::new(()),
            }),
        })
    }
}

fn map(name: &str, file: &File, bytes: u64, read_only: bool) -> Result<Mapping, VolumeError> {
    let len = usize::try_from(bytes)
        .map_err(|_| fail(name, format!("{bytes} bytes are more than an address space")))?;
    Mapping::file(file, 0, len, access(read_only))
        .map_err(|error| fail(name, error.to_string()).help("choose a smaller size"))
}

/// Gives a new file its size, and says what size there is.
fn size(spec: &VolumeSpec, ram: &RamSpec, file: &File) -> Result<u64, VolumeError> {
    let (name, path) = (&spec.name, ram.path.display());
    let len = || file.metadata().map(|meta| meta.len());
    let mut found = len().map_err(|e| fail(name, format!("looking at {path}")).because(e))?;
    if let (0, true, Some(size)) = (found, !spec.read_only, spec.bytes) {
        file.set_len(size).map_err(|error| {
            fail(name, format!("giving {path} its {size} bytes")).because(error)
        })?;
        found = size;
    }
    if found == 0 || !found.is_multiple_of(u64::from(spec.block_size)) {
        let what = format!("{path} has {found} bytes");
        let help =
            format!("set size, or truncate it to a multiple of block_size, {}", spec.block_size);
        return Err(fail(name, what).help(help));
    }
    if let Some(size) = spec.bytes
        && size != found
        && !spec.is_to_be_resized(found)
    {
        let what = format!("{path} has {found} bytes, but size says {size}");
        return Err(fail(name, what).help("leave size out, correct it, or resize the volume"));
    }
    if ram.preallocate && !spec.read_only {
        allocate(name, file, 0, found)?;
    }
    Ok(found)
}

fn allocate(name: &str, file: &File, offset: u64, len: u64) -> Result<(), VolumeError> {
    rustix::fs::fallocate(file, FallocateFlags::empty(), offset, len).map_err(|error| {
        fail(name, format!("preallocating {len} bytes"))
            .because(error)
            .help("enlarge the tmpfs (mount -o remount,size=…), or choose a smaller size")
    })
}

impl Volume for RamVolume {
    fn geometry(&self) -> Geometry {
        let shared = &self.shared;
        Geometry {
            bytes: shared.current().len() as u64,
            block_size: shared.block_size,
            physical_block_size: shared.block_size.max(4096),
            optimal_io_size: 0,
            discard: !shared.read_only && !shared.preallocate,
            write_zeroes: !shared.read_only,
            read_only: shared.read_only,
            write_cache: false,
        }
    }

    fn trouble(&self) -> Option<String> {
        trouble(&self.shared.file, None)
    }

    fn removed(&self) -> bool {
        removed(&self.shared.file)
    }

    fn lane(&self, ring: &mut Ring, id: LaneId) -> Result<Box<dyn Lane>, VolumeError> {
        let shared = self.shared.clone();
        let slot = ring.register(shared.file.as_fd()).map_err(|error| {
            let what = format!("cannot be attached to another channel: {error}");
            fail(&shared.name, what).help("use fewer adapters for each channel")
        })?;
        Ok(Box::new(RamLane {
            generation: shared.generation.load(Ordering::Acquire),
            mapping: shared.current(),
            slot,
            id,
            jobs: Slab::new(),
            turns: Turns::new(),
            shared,
        }))
    }

    fn resize(&self, bytes: u64) -> Result<(), VolumeError> {
        let shared = &self.shared;
        let name = &shared.name;
        let _alone = shared.resizing.lock().unwrap_or_else(PoisonError::into_inner);
        let now = shared.current().len() as u64;
        if bytes == now {
            return Ok(());
        }
        if shared.read_only || bytes < now {
            let what = format!("has {now} bytes of RAM and cannot be resized to {bytes}");
            let help = "a RAM volume can only grow, and only when it is writable; make a new one";
            return Err(fail(name, what).help(help));
        }
        if !bytes.is_multiple_of(u64::from(shared.block_size)) {
            let what = format!("cannot be resized to {bytes} bytes");
            let help = format!("choose a multiple of its block_size, {}", shared.block_size);
            return Err(fail(name, what).help(help));
        }
        let file = &shared.file;
        file.set_len(bytes)
            .map_err(|error| fail(name, format!("growing to {bytes} bytes")).because(error))?;
        let grown =
            if shared.preallocate { allocate(name, file, now, bytes - now) } else { Ok(()) };
        match grown.and_then(|()| map(name, file, bytes, false)) {
            Ok(mapping) => {
                *shared.current.lock().unwrap_or_else(PoisonError::into_inner) = Arc::new(mapping);
                shared.generation.fetch_add(1, Ordering::Release);
                Ok(())
            }
            Err(error) => {
                // Nobody has seen the new part. If it stays, the next opening reports the size.
                let _ = file.set_len(now);
                Err(error)
            }
        }
    }
}

/// An operation of the ring on behalf of a request.
#[derive(Debug, Clone, Copy)]
struct Job {
    tag: Tag,
    /// What is done of the request when it completes well.
    done: u64,
    len: u64,
}

struct RamLane {
    shared: Arc<Shared>,
    generation: u64,
    mapping: Arc<Mapping>,
    slot: FileSlot,
    id: LaneId,
    jobs: Slab<Job>,
    turns: Turns,
}

/// Adds an operation, handing over what is queued when there is no room; whether it could.
fn push(ring: &mut Ring, op: Op<'_>, user_data: u64) -> bool {
    let pushed = ring.push(op, user_data).or_else(|full| {
        ring.submit().map_err(|_| full)?;
        ring.push(op, user_data)
    });
    pushed.is_ok()
}

impl RamLane {
    #[cold]
    fn reload(&mut self) {
        self.generation = self.shared.generation.load(Ordering::Acquire);
        self.mapping = self.shared.current();
    }

    /// Once more, on a fresh mapping, after a damage that may have been somebody else's.
    #[cold]
    fn retry(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        self.shared.repair();
        self.reload();
        if !self.mapping.damaged() {
            let answer = self.serve(ring, request);
            if !self.mapping.damaged() {
                return answer;
            }
            // It was this request: it needs memory that is not to be had.
            self.shared.repair();
            self.reload();
        }
        let gone = self.mapping.damaged();
        Submit::Done(Err(if gone { IoError::Gone } else { IoError::NoSpace }))
    }

    /// The bytes of the volume that a request names; it was checked.
    #[inline]
    fn range(&self, offset: u64, len: u64) -> Option<View<'_>> {
        self.mapping.view(usize::try_from(offset).ok()?, usize::try_from(len).ok()?)
    }

    /// Copies a request, or a round of it.
    #[inline]
    fn transfer(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        let limit = match self.turns.ask(request) {
            Turn::Copy(limit) => limit.min(request.len.saturating_sub(request.done)),
            turn => return self.wait(ring, turn),
        };
        let Some(medium) = self.range(request.offset + request.len.min(request.done), limit) else {
            return Submit::Done(Err(IoError::OutOfRange));
        };
        let mut at = 0;
        let moved = walk(request.bufs, request.done, limit, |piece| {
            let part = medium.slice(at, piece.len());
            if request.op == OpKind::Read {
                part.copy_to(piece);
            } else {
                part.copy_from(piece);
            }
            at += piece.len();
            true
        });
        if moved < limit {
            return Submit::Done(Err(IoError::Io));
        }
        self.copied(ring, request, limit)
    }

    /// A round has been copied.
    #[inline]
    fn copied(&mut self, ring: &mut Ring, request: &Request<'_>, bytes: u64) -> Submit {
        // What went astray is done again before anything else: see `submit`.
        if self.mapping.damaged() {
            return Submit::Done(Err(IoError::NoSpace));
        }
        match self.turns.copied(request, request.done + bytes) {
            None => Submit::Done(Ok(())),
            Some(turn) => self.wait(ring, turn),
        }
    }

    #[cold]
    fn wait(&mut self, ring: &mut Ring, turn: Turn) -> Submit {
        let tick = self.id.user_data(LaneId::TICK);
        Turns::answer(turn, || ring.note(tick))
    }

    fn start(&mut self, ring: &mut Ring, job: Job, op: Op<'_>) -> Submit {
        let Some(token) = self.jobs.insert(job) else {
            return Submit::Park { reason: Wait::BackEndFull, until: None };
        };
        if push(ring, op, self.id.user_data(u64::from(token))) {
            return Submit::Pending;
        }
        self.jobs.remove(u64::from(token));
        let until = memory::clock::instant() + std::time::Duration::from_millis(1);
        Submit::Park { reason: Wait::BackEndFull, until: Some(until) }
    }

    /// Gives a range back to the tmpfs; it reads as zeroes afterwards.
    fn punch(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        let job = Job { tag: request.tag, done: request.len, len: request.len };
        let (file, offset, len) = (self.slot, request.offset, request.len);
        let mode = libc::FALLOC_FL_PUNCH_HOLE | libc::FALLOC_FL_KEEP_SIZE;
        self.start(ring, job, Op::Fallocate { file, mode, offset, len })
    }

    /// Fills a range with zeroes, a bounded part at a time.
    fn fill(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        let rest = request.len.saturating_sub(request.done);
        let bytes = match self.turns.ask(request) {
            Turn::Copy(limit) => limit.min(rest),
            turn => return self.wait(ring, turn),
        };
        match self.range(request.offset + request.len - rest, bytes) {
            Some(part) => part.fill(0),
            None => return Submit::Done(Err(IoError::OutOfRange)),
        }
        self.copied(ring, request, bytes)
    }

    fn zero(&mut self, ring: &mut Ring, request: &Request<'_>, unmap: bool) -> Submit {
        if unmap && !self.shared.preallocate && request.len >= PUNCH_MIN {
            self.punch(ring, request)
        } else {
            self.fill(ring, request)
        }
    }
}

impl RamLane {
    #[inline]
    fn serve(&mut self, ring: &mut Ring, request: &Request<'_>) -> Submit {
        let (bytes, shared) = (self.mapping.len() as u64, &self.shared);
        if let Err(error) = check(request, bytes, shared.block_size, shared.read_only) {
            return Submit::Done(Err(error));
        }
        match request.op {
            OpKind::Read | OpKind::Write { .. } => self.transfer(ring, request),
            OpKind::Flush => Submit::Done(Ok(())),
            OpKind::Discard if shared.preallocate => Submit::Done(Err(IoError::Unsupported)),
            OpKind::Discard if request.len == 0 => Submit::Done(Ok(())),
            OpKind::Discard => self.punch(ring, request),
            OpKind::WriteZeroes { unmap, .. } => self.zero(ring, request, unmap),
        }
    }
}

impl Lane for RamLane {
    #[inline]
    fn submit(&mut self, ring: &mut Ring, request: &mut Request<'_>) -> Submit {
        if self.shared.generation.load(Ordering::Acquire) != self.generation {
            self.reload();
        }
        let answer = self.serve(ring, request);
        // After the copy: the mark is set before the memory is replaced, so a copy that went astray is seen here.
        if self.mapping.damaged() && matches!(answer, Submit::Done(_)) {
            return self.retry(ring, request);
        }
        answer
    }

    fn complete(&mut self, ring: &mut Ring, token: u64, result: i32, out: &mut Vec<Finish>) {
        if token == LaneId::TICK {
            if self.turns.tick(out) {
                ring.note(self.id.user_data(LaneId::TICK));
            }
            return;
        }
        let Some(job) = self.jobs.remove(token) else {
            debug_assert!(false, "{token} completed, but is not in flight");
            return;
        };
        let outcome = match result {
            _ if passing(result).is_some() => Outcome::Again { done: 0 },
            ..0 => Outcome::Done(Err(io_error(result))),
            _ if job.done >= job.len => Outcome::Done(Ok(())),
            _ => Outcome::Again { done: job.done },
        };
        out.push(Finish { tag: job.tag, outcome });
    }

    fn detach(&mut self, ring: &mut Ring) {
        debug_assert!(self.jobs.is_empty() && self.turns.is_empty(), "detached with I/O in flight");
        ring.unregister(self.slot);
    }
}

#[cfg(test)]
mod tests;
