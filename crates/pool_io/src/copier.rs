//! One copy of a whole LU from a file or into one, on a thread of its own.
//!
//! ```text
//! file ── data ──► slots ── writes ───► thread `pools`
//!      ── holes, zeros ──── zeroes ───►
//! file ◄─ data ─── slots ◄── reads ──── thread `pools`
//!      ◄─ holes ── zeros, and what has no space
//! ```
//!
//! It waits for the disk of the file, which may be long, and asks the pool's thread as lanes do, for which it needs no ring. At most [`SLOTS`] requests of [`ASK_MAX`] are under way. Its memory is never
//! unmapped ([`Lasting`]), so that whatever becomes of the thread, nobody reads or writes what is not its.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::time::Duration;

use block::{IoError, OpKind, Tag};
use memory::{IoBuf, Lasting};
use pool::format::{BLOCK_BYTES, CHUNK_BYTES};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::SeekFrom;
use rustix::io::Errno;

use crate::copies::{Copy, CopyEnd, CopyJob, CopyWay};
use crate::lane::ASK_MAX;
use crate::post::{Answered, Ask, Inbox, LaneBox, Message, OfCopy};
use crate::table::{Begun, Found, Shared, Table};
use crate::thread::ask;
use crate::{PoolError, PoolHandle};

/// Requests under way.
pub(crate) const SLOTS: usize = 4;
/// What is zeros or not as a whole.
const GRAIN: u64 = BLOCK_BYTES;
/// Zeros that are asked for at once.
const ZEROES_MAX: u64 = 16 * CHUNK_BYTES;
/// How often it is looked whether somebody wants it to end, while it waits.
const LOOK: Duration = Duration::from_millis(100);

/// What a slot is used for: an operation on this part of the LU.
#[derive(Clone, Copy, Debug)]
struct Part {
    op: OpKind,
    at: u64,
    bytes: u64,
}

/// See the module.
pub(crate) struct Copier {
    shared: Arc<Shared>,
    inbox: Arc<Inbox>,
    /// Of an LU, and none of a snapshot.
    table: Option<Arc<Table>>,
    /// Where it is counted that it looks there.
    begun: Arc<Begun>,
    job: CopyJob,
    file: File,
    copy: Arc<Copy>,
    answers: Arc<LaneBox>,
    memory: Lasting,
    parts: [Option<Part>; SLOTS],
    /// Slots that were read to, and are to be written to the file.
    read: Vec<usize>,
    under_way: usize,
    failed: Option<(Part, IoError)>,
    scratch: Vec<u8>,
}

impl Copier {
    pub(crate) fn new(
        pool: &PoolHandle,
        table: Option<Arc<Table>>,
        (job, file): (CopyJob, File),
        copy: Arc<Copy>,
    ) -> Result<Copier, PoolError> {
        let refused = |error: String| PoolError::new(error, "free some memory, and try again");
        let answers = LaneBox::new().map_err(|error| refused(error.to_string()))?;
        let memory = Lasting::new(SLOTS * ASK_MAX as usize);
        let memory = memory.map_err(|error| refused(error.to_string()))?;
        Ok(Copier {
            shared: Arc::clone(&pool.shared),
            inbox: Arc::clone(&pool.inbox),
            begun: pool.shared.join(),
            table,
            job,
            file,
            copy,
            answers: Arc::new(answers),
            memory,
            parts: [None; SLOTS],
            read: Vec::new(),
            under_way: 0,
            failed: None,
            scratch: vec![0; ASK_MAX as usize],
        })
    }

    /// To its end, after which nothing of it is under way.
    pub(crate) fn run(mut self) -> Result<(), CopyEnd> {
        let copied = match self.job.way {
            CopyWay::Import => self.import(),
            CopyWay::Export { bytes } => self.export(bytes),
        };
        if copied.is_err() {
            self.drain();
        }
        copied
    }

    fn import(&mut self) -> Result<(), CopyEnd> {
        let (size, end) = (self.file_size()?, self.copy.planned);
        if size > end {
            let what = format!("the LU has {end} bytes, and the file {size}");
            return Err(failed(what, "make it as large first: `trunkline lu resize`"));
        }
        let (mut at, mut zeros) = (0, 0..0);
        while at < end {
            self.goes_on()?;
            let data = if at < size { self.next_data(at, size)? } else { None };
            let data = data.map_or(end, |data| (data - data % GRAIN).max(at));
            if data > at {
                self.zero(&mut zeros, at..data)?;
                at = data;
                continue;
            }
            let bytes = (ASK_MAX - at % ASK_MAX).min(end - at);
            let mut scratch = std::mem::take(&mut self.scratch);
            let there = bytes.min(size - at) as usize;
            let read = self.file.read_exact_at(&mut scratch[..there], at);
            read.map_err(|error| self.of_file("reading", at, &error))?;
            scratch[there..bytes as usize].fill(0);
            for (is_zeros, from, to) in runs(&scratch[..bytes as usize]) {
                let (first, last) = (at + from as u64, at + to as u64);
                if is_zeros {
                    self.zero(&mut zeros, first..last)?;
                    continue;
                }
                let slot = self.slot()?;
                let part =
                    Part { op: OpKind::Write { fua: false }, at: first, bytes: last - first };
                self.buf(slot, part.bytes).write(0, &scratch[from..to]);
                self.ask(slot, part);
            }
            self.scratch = scratch;
            at += bytes;
        }
        self.zero_now(zeros)?;
        self.finish()?;
        let slot = self.slot()?;
        self.ask(slot, Part { op: OpKind::Flush, at: 0, bytes: 0 });
        self.finish()
    }

    fn export(&mut self, bytes: u64) -> Result<(), CopyEnd> {
        let sized = self.file.set_len(bytes);
        sized.map_err(|error| self.of_file("making", bytes, &error))?;
        let mut at = 0;
        while at < bytes {
            self.goes_on()?;
            let held = self.next_held(at, bytes)?;
            if held > at {
                self.copy.done.fetch_add(held - at, Relaxed);
                at = held;
                continue;
            }
            let part =
                Part { op: OpKind::Read, at, bytes: (ASK_MAX - at % ASK_MAX).min(bytes - at) };
            at += part.bytes;
            if self.is_zeros(&part) {
                self.copy.done.fetch_add(part.bytes, Relaxed);
                continue;
            }
            let slot = self.slot()?;
            self.ask(slot, part);
        }
        self.finish()?;
        self.file.sync_all().map_err(|error| self.of_file("syncing", 0, &error))
    }

    /// Whether it goes on: nobody wants it to end, and no client has come.
    fn goes_on(&self) -> Result<(), CopyEnd> {
        if self.copy.is_to_stop() {
            return Err(CopyEnd::Stopped);
        }
        let clients = self.table.as_ref().map_or(0, |table| table.lanes.load(SeqCst));
        if clients > 0 && !self.job.under_clients {
            let what = "a client has begun to use the LU meanwhile";
            return Err(failed(what, "stop its clients, and begin again"));
        }
        Ok(())
    }

    fn file_size(&self) -> Result<u64, CopyEnd> {
        let found = self.file.metadata().map_err(|error| self.of_file("looking at", 0, &error))?;
        if !found.is_file() {
            return Err(failed("it is no regular file", "name a file"));
        }
        Ok(found.len())
    }

    /// Where the file has data next. One whose file system does not say has it everywhere.
    fn next_data(&self, at: u64, size: u64) -> Result<Option<u64>, CopyEnd> {
        match rustix::fs::seek(&self.file, SeekFrom::Data(at)) {
            Ok(data) => Ok(Some(data).filter(|data| *data < size)),
            Err(Errno::NXIO) => Ok(None),
            Err(Errno::INVAL | Errno::OPNOTSUPP) => Ok(Some(at)),
            Err(error) => Err(self.of_file("looking into", at, &error.into())),
        }
    }

    /// Where something may be from there on, before this end; of the middle of a chunk that is not asked.
    fn next_held(&self, at: u64, end: u64) -> Result<u64, CopyEnd> {
        if !at.is_multiple_of(CHUNK_BYTES) {
            return Ok(at);
        }
        let (shared, first) = (Arc::clone(&self.shared), (at / CHUNK_BYTES) as u32);
        let which = (self.job.lu, first);
        let held = ask(&self.inbox, |reply| Message::OfCopy(shared, OfCopy::Holds(which, reply)));
        let held = held.map_err(|_| closed())?;
        Ok((u64::from(held) * CHUNK_BYTES).min(end))
    }

    /// Whether a part of the LU is zeros without any look at PVs.
    fn is_zeros(&self, part: &Part) -> bool {
        let Some(table) = &self.table else { return false };
        let parity = self.shared.begin(&self.begun);
        let found = match (table.shares.load(Relaxed), table.chain().1) {
            (false, _) => (self.shared.look(table, part.at, part.bytes), part.bytes),
            (true, Some(chain)) => self.shared.look_through(&chain, (part.at, part.bytes), false),
            (true, None) => (Found::Ask, 0),
        };
        self.begun.end(parity);
        found == (Found::Zeros, part.bytes)
    }

    /// Zeros that follow those that are to be asked for.
    fn zero(
        &mut self,
        all: &mut std::ops::Range<u64>,
        more: std::ops::Range<u64>,
    ) -> Result<(), CopyEnd> {
        if all.end == more.start && !all.is_empty() {
            all.end = more.end;
            return Ok(());
        }
        self.zero_now(std::mem::replace(all, more))
    }

    /// A part of the LU reads as zeros, and what had space for it is given back.
    fn zero_now(&mut self, all: std::ops::Range<u64>) -> Result<(), CopyEnd> {
        let mut at = all.start;
        while at < all.end {
            self.goes_on()?;
            // Zeros above a snapshot are written, part by part, where nothing says that there are some.
            let shares = self.table.as_ref().is_some_and(|table| table.shares.load(Relaxed));
            if shares {
                let held = self.next_held(at, all.end)?;
                self.copy.done.fetch_add(held - at, Relaxed);
                at = held;
                if at == all.end {
                    break;
                }
            }
            let most = if shares { ASK_MAX } else { ZEROES_MAX };
            let op = OpKind::WriteZeroes { unmap: true, fua: false };
            let part = Part { op, at, bytes: (all.end - at).min(most) };
            at += part.bytes;
            if shares && self.is_zeros(&part) {
                self.copy.done.fetch_add(part.bytes, Relaxed);
                continue;
            }
            let slot = self.slot()?;
            self.ask(slot, part);
        }
        Ok(())
    }

    fn buf(&self, slot: usize, bytes: u64) -> IoBuf {
        let buf = self.memory.buf(slot * ASK_MAX as usize, bytes as usize);
        buf.expect("a slot has room for what is asked for at once")
    }

    /// A slot that is free, once there is one.
    fn slot(&mut self) -> Result<usize, CopyEnd> {
        loop {
            self.write_file()?;
            if let Some(slot) = self.parts.iter().position(Option::is_none) {
                return Ok(slot);
            }
            self.wait()?;
        }
    }

    /// Until nothing is under way.
    fn finish(&mut self) -> Result<(), CopyEnd> {
        loop {
            self.write_file()?;
            if self.under_way == 0 {
                return Ok(());
            }
            self.wait()?;
        }
    }

    fn ask(&mut self, slot: usize, part: Part) {
        let Part { op, at, bytes } = part;
        let bufs: Box<[IoBuf]> = match op {
            OpKind::Read | OpKind::Write { .. } => Box::new([self.buf(slot, bytes)]),
            OpKind::Flush | OpKind::Discard | OpKind::WriteZeroes { .. } => Box::default(),
        };
        self.parts[slot] = Some(part);
        self.under_way += 1;
        let (from, tag, lu) = (Arc::clone(&self.answers), Tag(slot as u32), self.job.lu);
        let ask = Ask { from, tag, op, lu, at, bytes, bufs };
        self.inbox.post(Message::Ask(Arc::clone(&self.shared), ask));
    }

    /// Waits for an answer, or for somebody who wants it to end.
    fn wait(&mut self) -> Result<(), CopyEnd> {
        let heard = self.hear();
        if let Some((part, error)) = self.failed.take() {
            return Err(of_lu(part, error));
        }
        match heard {
            true => self.copy.waits.store(false, Relaxed),
            false if self.is_left() => {
                return Err(closed());
            }
            false => self.copy.waits.store(self.shared.full.load(Relaxed), Relaxed),
        }
        // What waits for space waits for long: whoever wants the end of that does not.
        self.goes_on()
    }

    /// Takes answers that came within [`LOOK`]; whether there were any.
    fn hear(&mut self) -> bool {
        let timeout = Timespec { tv_sec: 0, tv_nsec: i64::from(LOOK.subsec_nanos()) };
        let bell = &self.answers.bell.0;
        let rung = poll(&mut [PollFd::new(bell, PollFlags::IN)], Some(&timeout));
        if rung.is_ok_and(|count| count > 0) {
            let _ = rustix::io::read(bell, &mut [0; 8]);
        }
        let answers = self.answers.take();
        let heard = !answers.is_empty();
        for Answered { tag, result } in answers {
            let slot = tag.0 as usize;
            let Some(part) = self.parts.get(slot).copied().flatten() else { continue };
            self.under_way -= 1;
            match (result, part.op) {
                (Ok(()), OpKind::Read) => self.read.push(slot),
                (Ok(()), _) => {
                    self.copy.done.fetch_add(part.bytes, Relaxed);
                    self.parts[slot] = None;
                }
                (Err(error), _) => {
                    self.failed.get_or_insert((part, error));
                    self.parts[slot] = None;
                }
            }
        }
        heard
    }

    /// Whether nobody will ever answer: whoever would holds the box.
    fn is_left(&mut self) -> bool {
        self.under_way > 0 && Arc::strong_count(&self.answers) == 1 && !self.hear()
    }

    /// What was read goes into the file, but for zeros.
    fn write_file(&mut self) -> Result<(), CopyEnd> {
        while let Some(slot) = self.read.pop() {
            let Some(part) = self.parts[slot].take() else { continue };
            let mut scratch = std::mem::take(&mut self.scratch);
            let bytes = &mut scratch[..part.bytes as usize];
            self.buf(slot, part.bytes).read(0, bytes);
            for (_, from, to) in runs(bytes).into_iter().filter(|(is_zeros, ..)| !is_zeros) {
                let at = part.at + from as u64;
                let written = self.file.write_all_at(&bytes[from..to], at);
                written.map_err(|error| self.of_file("writing", at, &error))?;
            }
            self.scratch = scratch;
            self.copy.done.fetch_add(part.bytes, Relaxed);
        }
        Ok(())
    }

    /// Waits until nothing is under way, whatever becomes of it; what waits for space is called back.
    fn drain(&mut self) {
        while self.under_way > 0 && !self.is_left() {
            let (shared, answers) = (Arc::clone(&self.shared), Arc::clone(&self.answers));
            self.inbox.post(Message::OfCopy(shared, OfCopy::CallBack(answers)));
            self.hear();
        }
    }

    fn of_file(&self, what: &str, at: u64, error: &io::Error) -> CopyEnd {
        let help = match self.job.way {
            CopyWay::Import => "see whether the file can be read, and begin again",
            CopyWay::Export { .. } => "see whether there is room for the file, and begin again",
        };
        failed(format!("{what} the file, at byte {at}: {error}"), help)
    }
}

impl Drop for Copier {
    fn drop(&mut self) {
        self.shared.leave(&self.begun);
    }
}

fn closed() -> CopyEnd {
    failed("the pool was closed", "open it, and begin again")
}

fn failed(what: impl Into<String>, help: &str) -> CopyEnd {
    CopyEnd::Failed(PoolError::new(what, help))
}

/// What went wrong with a part of the LU.
fn of_lu(part: Part, error: IoError) -> CopyEnd {
    let Part { op, at, .. } = part;
    match error {
        IoError::NoSpace => {
            failed("there is no space left in the pool", "add a PV, or remove what is not needed")
        }
        IoError::Gone => failed("the LU or snapshot is gone", "see `trunkline lu list`"),
        IoError::OutOfRange => failed("the LU became smaller", "begin again"),
        error if op == OpKind::Flush => {
            failed(format!("flushing the LU: {error}"), "see `trunkline pool explain`")
        }
        error => failed(format!("at byte {at} of the LU: {error}"), "see `trunkline pool explain`"),
    }
}

/// Runs of zeros and of others: whether they are zeros, and from where to where.
fn runs(bytes: &[u8]) -> Vec<(bool, usize, usize)> {
    let mut runs: Vec<(bool, usize, usize)> = Vec::new();
    let mut at = 0;
    for grain in bytes.chunks(GRAIN as usize) {
        let is_zeros = grain.iter().all(|byte| *byte == 0);
        match runs.last_mut() {
            Some((same, _, end)) if *same == is_zeros => *end = at + grain.len(),
            _ => runs.push((is_zeros, at, at + grain.len())),
        }
        at += grain.len();
    }
    runs
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_whole_and_alternate() {
        let grain = GRAIN as usize;
        let mut bytes = vec![0; 3 * grain + 512];
        assert_eq!(runs(&bytes), [(true, 0, bytes.len())]);
        bytes[2 * grain - 1] = 1;
        let end = bytes.len();
        assert_eq!(
            runs(&bytes),
            [(true, 0, grain), (false, grain, 2 * grain), (true, 2 * grain, end)]
        );
        assert_eq!(runs(&[]), []);
    }
}
