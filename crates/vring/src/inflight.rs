//! The in-flight region: which heads a queue has taken and not given back (vhost-user,
//! INFLIGHT_SHMFD, split virtqueue layout, version 1).
//!
//! The front end keeps this shared memory while the back end dies and comes back. A used ring alone
//! cannot tell which heads are missing when requests complete out of order; the region can.
//!
//! ```text
//! queue i at i * ALIGN64(16 + 16 * queue_size)
//!   0  features u64        0
//!   8  version u16         0: not initialised, 1: this layout
//!  10  desc_num u16        entries below
//!  12  last_batch_head u16 newest head of the list of the last published batch
//!  14  used_idx u16        the used index after the last batch that is wholly recorded
//!  16  desc[desc_num]      inflight u8, padding[5], next u16, counter u64
//! ```
//!
//! # Order of the stores
//!
//! Taking a head: `counter`, then `inflight = 1`. Giving back, for each head of a batch: the used
//! element and `next`, which makes the batch a list; then `last_batch_head` and `used.idx` once; then
//! `inflight = 0` for each head; then `used_idx`. A process that is killed between two of these
//! leaves one of three states:
//!
//! - `used.idx` not moved: the batch is not published, all its heads are still in flight, and are done
//!   again;
//! - `used.idx` moved and `used_idx` not: the difference is the length of the list at
//!   `last_batch_head`; these heads are finished, whatever their flags say;
//! - both agree: the flags are right.
//!
//! The reader is a later process on the same machine, after the writer has stopped. A stopped
//! process leaves its stores as a prefix of program order, so keeping the *compiler* from
//! reordering is enough: volatile stores, with a compiler fence where the used index, which is not
//! volatile but atomic, has to stay between them.
//!
//! # Trust
//!
//! The front end can write the region at any time. Only the recovery of a starting queue reads it, once
//! per start, and checks all it reads; a running queue only writes and works from its own memory.

use std::fs::File;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use memory::{Access, MapError, Mapping};
use rustix::fs::{MemfdFlags, SealFlags};
use thiserror::Error;

use crate::layout::QUEUE_SIZE_MAX;

#[cfg(test)]
pub(crate) mod tests;

const HEADER_BYTES: usize = 16;
const ENTRY_BYTES: usize = 16;
/// Queues start at multiples of this, as in other back ends.
const ALIGNMENT: usize = 64;
/// The only version of the layout.
const VERSION: u16 = 1;
const AT_FEATURES: usize = 0;
const AT_VERSION: usize = 8;
/// Highest word of the features: in the first queue's part it has a mark of the device's. No feature is defined.
const AT_MARK: usize = 6;
const MARK: u16 = 1 << 15;
const AT_DESC_NUM: usize = 10;
const AT_LAST_BATCH_HEAD: usize = 12;
const AT_USED_IDX: usize = 14;

/// Called between any two stores that a crash may separate. Tests count the calls and cut the
/// process's life short at each, and so does the simulator; otherwise it is nothing.
#[inline(always)]
pub(crate) fn crash_point() {
    #[cfg(test)]
    tests::maybe_crash();
    #[cfg(feature = "sim")]
    memory::sim::point();
}

/// Why an in-flight region cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum InflightError {
    #[error(
        "in-flight region for {queues} queues of {size}; supported are 1 to {QUEUE_SIZE_MAX} \
         entries and 1 to 1024 queues"
    )]
    Shape { queues: u16, size: u16 },
    #[error("in-flight region has {len} bytes where {needed} are needed")]
    TooShort { len: u64, needed: u64 },
    #[error("cannot create or map the in-flight region: {0}")]
    Map(String),
    #[error("in-flight region has version {0}; known are 0 (fresh) and 1")]
    Version(u16),
    #[error("in-flight region is for {desc_num} descriptors, the queue has {size}")]
    DescNum { desc_num: u16, size: u16 },
    #[error(
        "in-flight region says used index {recorded}, the used ring {ring}: not one batch apart; \
         the region belongs to another life of the queue"
    )]
    UsedIndex { recorded: u16, ring: u16 },
    #[error("in-flight region lists head {head}, the queue has {size}")]
    Head { head: u16, size: u16 },
}

impl From<MapError> for InflightError {
    fn from(error: MapError) -> InflightError {
        InflightError::Map(error.to_string())
    }
}

/// The mapped region of all queues of one client.
#[derive(Clone, Debug)]
pub struct InflightRegion {
    mapping: Arc<Mapping>,
    before: usize,
    queues: u16,
    size: u16,
}

/// Bytes of one queue's part.
fn stride(size: u16) -> usize {
    (HEADER_BYTES + ENTRY_BYTES * usize::from(size)).next_multiple_of(ALIGNMENT)
}

impl InflightRegion {
    /// Bytes that a region for this many queues of this size has.
    pub fn bytes(queues: u16, size: u16) -> u64 {
        // The product fits: 16 bits times less than 2^21.
        (usize::from(queues) * stride(size)) as u64
    }

    fn check_shape(queues: u16, size: u16) -> Result<(), InflightError> {
        if queues == 0 || queues > 1024 || size == 0 || size > QUEUE_SIZE_MAX {
            return Err(InflightError::Shape { queues, size });
        }
        Ok(())
    }

    /// Makes a fresh region (GET_INFLIGHT_FD). The file goes to the front end, which keeps it.
    pub fn create(queues: u16, size: u16) -> Result<(File, InflightRegion), InflightError> {
        InflightRegion::check_shape(queues, size)?;
        let failed = |e: rustix::io::Errno| InflightError::Map(e.to_string());
        let flags = MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING;
        let fd = rustix::fs::memfd_create("trunkline-inflight", flags).map_err(failed)?;
        let len = InflightRegion::bytes(queues, size);
        rustix::fs::ftruncate(&fd, len).map_err(failed)?;
        // The front end cannot take the memory away from under us.
        rustix::fs::fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)
            .map_err(failed)?;
        let file = File::from(fd);
        let region = InflightRegion::open(&file, 0, len, queues, size)?;
        Ok((file, region))
    }

    /// Takes a region that the front end kept (SET_INFLIGHT_FD): `len` bytes at `offset`.
    pub fn open(
        file: &File,
        offset: u64,
        len: u64,
        queues: u16,
        size: u16,
    ) -> Result<InflightRegion, InflightError> {
        InflightRegion::check_shape(queues, size)?;
        let needed = InflightRegion::bytes(queues, size);
        if len < needed {
            return Err(InflightError::TooShort { len, needed });
        }
        // The entries have 8-byte counters; nobody puts a region at an odd place on purpose.
        let page = rustix::param::page_size() as u64;
        let before = offset % page;
        if !before.is_multiple_of(8) {
            return Err(InflightError::Map(format!("offset {offset} is not a multiple of 8")));
        }
        // The casts fit: 1024 queues of 1024 entries are 16 MiB and a little.
        let bytes = (needed + before) as usize;
        let mapping = Mapping::file(file, offset - before, bytes, Access::ReadWrite)?;
        let mapping = Arc::new(mapping);
        Ok(InflightRegion { mapping, before: before as usize, queues, size })
    }

    /// Queues that the region has room for.
    pub fn queues(&self) -> u16 {
        self.queues
    }

    /// Whether a queue has used the region: the driver's life goes on with it.
    pub fn is_used(&self) -> bool {
        (0..self.queues)
            .filter_map(|index| self.queue(index))
            .any(|part| part.get16(AT_VERSION) != 0)
    }

    /// Leaves a mark for whoever takes the region over, or takes it back: what a device has to know of its driver over a death.
    pub fn set_mark(&self, mark: bool) {
        if let Some(part) = self.queue(0) {
            part.set16(AT_MARK, if mark { MARK } else { 0 });
        }
    }

    /// The mark.
    pub fn mark(&self) -> bool {
        self.queue(0).is_some_and(|part| part.get16(AT_MARK) & MARK != 0)
    }

    /// The part of queue `index`, if the region has it.
    pub fn queue(&self, index: u16) -> Option<InflightQueue> {
        if index >= self.queues {
            return None;
        }
        let at = self.before + usize::from(index) * stride(self.size);
        assert!(at + stride(self.size) <= self.mapping.len());
        // SAFETY: inside the mapping, just checked.
        let base = unsafe { self.mapping.as_ptr().add(at) };
        Some(InflightQueue { base, capacity: self.size, mapping: Arc::clone(&self.mapping) })
    }
}

/// One queue's part of the region.
#[derive(Clone, Debug)]
pub struct InflightQueue {
    base: *mut u8,
    capacity: u16,
    mapping: Arc<Mapping>,
}

// SAFETY: `base` points into the mapping that the value keeps alive; nothing in it is tied to a
// thread.
unsafe impl Send for InflightQueue {}

/// What [`InflightQueue::recover`] found.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Recovered {
    /// Heads taken and not given back, oldest first.
    pub(crate) heads: Vec<u16>,
    /// What the next taken head gets.
    pub(crate) counter: u64,
    /// A region that no queue has used before.
    pub(crate) fresh: bool,
}

impl InflightQueue {
    /// Whether the file of the region was truncated under us.
    pub fn damaged(&self) -> bool {
        self.mapping.damaged()
    }

    /// Whether an earlier life of the queue has left heads in flight, as far as can be told without its ring. The front end can write
    /// what it likes here; `InflightQueue::recover` judges it.
    pub fn has_heads(&self) -> bool {
        let heads = self.get16(AT_DESC_NUM).min(self.capacity);
        self.get16(AT_VERSION) == VERSION && (0..heads).any(|head| self.is_in_flight(head))
    }

    /// How many heads are in flight, and where the used index stood then, as far as can be told without the ring.
    #[cfg(feature = "sim")]
    pub fn recorded(&self) -> (u16, u16) {
        let heads = self.get16(AT_DESC_NUM).min(self.capacity);
        let heads = if self.get16(AT_VERSION) == VERSION { heads } else { 0 };
        let in_flight = (0..heads).filter(|head| self.is_in_flight(*head)).count();
        // No more than there are heads.
        (in_flight as u16, self.get16(AT_USED_IDX))
    }

    /// Writes anything anywhere, as a hostile front end would.
    #[cfg(any(fuzzing, test))]
    pub(crate) fn scribble(&self, at: usize, byte: u8) {
        let at = at % stride(self.capacity);
        // SAFETY: inside the part.
        unsafe { self.base.add(at).write_volatile(byte) }
    }

    #[inline]
    fn get16(&self, at: usize) -> u16 {
        debug_assert!(at.is_multiple_of(2) && at + 2 <= stride(self.capacity));
        // SAFETY: header fields and fields of entries below `capacity`, all inside the part and
        // aligned (the part starts at a multiple of 8).
        u16::from_le(unsafe { self.base.add(at).cast::<u16>().read_volatile() })
    }

    #[inline]
    fn set16(&self, at: usize, value: u16) {
        debug_assert!(at.is_multiple_of(2) && at + 2 <= stride(self.capacity));
        // SAFETY: as in `get16`.
        unsafe { self.base.add(at).cast::<u16>().write_volatile(value.to_le()) }
        crash_point();
    }

    /// Where the entry of `head` starts.
    #[inline]
    fn entry(&self, head: u16) -> usize {
        // The heads of a running queue were checked against its size, which is at most `capacity`.
        assert!(head < self.capacity);
        HEADER_BYTES + ENTRY_BYTES * usize::from(head)
    }

    fn is_in_flight(&self, head: u16) -> bool {
        // SAFETY: `entry` is inside the part.
        unsafe { self.base.add(self.entry(head)).read_volatile() != 0 }
    }

    #[inline]
    fn set_in_flight(&self, head: u16, value: bool) {
        // SAFETY: `entry` is inside the part.
        unsafe { self.base.add(self.entry(head)).write_volatile(u8::from(value)) }
        crash_point();
    }

    fn counter(&self, head: u16) -> u64 {
        // SAFETY: the counter is at 8 of the entry, aligned to 8.
        u64::from_le(unsafe { self.base.add(self.entry(head) + 8).cast::<u64>().read_volatile() })
    }

    #[inline]
    fn set_counter(&self, head: u16, counter: u64) {
        // SAFETY: as in `counter`.
        unsafe {
            self.base.add(self.entry(head) + 8).cast::<u64>().write_volatile(counter.to_le());
        }
        crash_point();
    }

    fn next(&self, head: u16) -> u16 {
        self.get16(self.entry(head) + 6)
    }

    /// Finishes what a killed process left, and says which heads have to be done again.
    ///
    /// `size` is the ring's, `ring_used` the used ring's index as it stands. A region whose last
    /// life ended with nothing in flight, and whose index does not fit, belonged to a ring that the
    /// driver has set up anew since: it is started afresh, there is nothing in it to lose.
    ///
    /// Being killed in here is harmless: every store is one that a second run would make too.
    pub(crate) fn recover(&self, size: u16, ring_used: u16) -> Result<Recovered, InflightError> {
        match self.get16(AT_VERSION) {
            0 => return self.start_afresh(size, ring_used),
            VERSION => {}
            other => return Err(InflightError::Version(other)),
        }
        let desc_num = self.get16(AT_DESC_NUM);
        if desc_num < size || desc_num > self.capacity {
            return Err(InflightError::DescNum { desc_num, size });
        }
        let recorded = self.get16(AT_USED_IDX);
        let last_batch = ring_used.wrapping_sub(recorded);
        if last_batch > size {
            if (0..desc_num).any(|head| self.is_in_flight(head)) {
                return Err(InflightError::UsedIndex { recorded, ring: ring_used });
            }
            return self.start_afresh(size, ring_used);
        }
        let mut head = self.get16(AT_LAST_BATCH_HEAD);
        for _ in 0..last_batch {
            if head >= size {
                return Err(InflightError::Head { head, size });
            }
            self.set_in_flight(head, false);
            head = self.next(head);
        }
        self.set16(AT_USED_IDX, ring_used);
        if let Some(head) = (size..desc_num).find(|&head| self.is_in_flight(head)) {
            return Err(InflightError::Head { head, size });
        }
        let mut taken: Vec<(u64, u16)> = (0..size)
            .filter(|&head| self.is_in_flight(head))
            .map(|head| (self.counter(head), head))
            .collect();
        taken.sort_unstable();
        let counter = taken.last().map_or(0, |&(counter, _)| counter.wrapping_add(1));
        let heads = taken.into_iter().map(|(_, head)| head).collect();
        Ok(Recovered { heads, counter, fresh: false })
    }

    fn start_afresh(&self, size: u16, ring_used: u16) -> Result<Recovered, InflightError> {
        if size > self.capacity {
            return Err(InflightError::DescNum { desc_num: self.capacity, size });
        }
        for head in 0..self.capacity {
            self.set_in_flight(head, false);
        }
        for word in (AT_FEATURES..AT_MARK).step_by(2) {
            self.set16(word, 0);
        }
        self.set16(AT_MARK, self.get16(AT_MARK) & MARK);
        self.set16(AT_DESC_NUM, self.capacity);
        self.set16(AT_LAST_BATCH_HEAD, 0);
        self.set16(AT_USED_IDX, ring_used);
        // Last: until here a killed process leaves a region that is still not initialised.
        self.set16(AT_VERSION, VERSION);
        Ok(Recovered { heads: Vec::new(), counter: 0, fresh: true })
    }
}

/// The region's writer for a running queue. Its own memory says what is in the open batch and
/// what the next counter is; the shared memory is never read.
#[derive(Debug)]
pub(crate) struct Tracker {
    region: InflightQueue,
    counter: u64,
    last_batch_head: u16,
    /// Heads given back since the last publication.
    batch: Box<[u16]>,
    batch_len: usize,
}

impl Tracker {
    pub(crate) fn new(region: InflightQueue, size: u16, counter: u64) -> Tracker {
        // What the region has is only a place to hang the next batch on; no reader follows the
        // list further back than the last batch.
        let last_batch_head = region.get16(AT_LAST_BATCH_HEAD);
        let batch = vec![0; usize::from(size)].into();
        Tracker { region, counter, last_batch_head, batch, batch_len: 0 }
    }

    pub(crate) fn into_region(self) -> InflightQueue {
        self.region
    }

    /// A head was taken from the available ring.
    #[inline]
    pub(crate) fn take(&mut self, head: u16) {
        self.region.set_counter(head, self.counter);
        self.counter = self.counter.wrapping_add(1);
        self.region.set_in_flight(head, true);
    }

    /// The head taken last goes back to the available ring.
    pub(crate) fn undo(&mut self, head: u16) {
        self.region.set_in_flight(head, false);
        self.counter = self.counter.wrapping_sub(1);
    }

    /// The used element of `head` is written, and not yet visible.
    #[inline]
    pub(crate) fn give_back(&mut self, head: u16) {
        self.region.set16(self.region.entry(head) + 6, self.last_batch_head);
        self.last_batch_head = head;
        self.batch[self.batch_len] = head;
        self.batch_len += 1;
    }

    /// To be called right before the used index is stored. The head of the list is stored once for
    /// the batch: until the used index moves, nobody follows it.
    #[inline]
    pub(crate) fn before_publish(&self) {
        self.region.set16(AT_LAST_BATCH_HEAD, self.last_batch_head);
        compiler_fence(Ordering::SeqCst);
    }

    /// The used index was stored as `used_idx`.
    #[inline]
    pub(crate) fn after_publish(&mut self, used_idx: u16) {
        compiler_fence(Ordering::SeqCst);
        for &head in &self.batch[..self.batch_len] {
            self.region.set_in_flight(head, false);
        }
        self.batch_len = 0;
        self.region.set16(AT_USED_IDX, used_idx);
    }
}
