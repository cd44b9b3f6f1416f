//! virtio-blk requests over one queue (virtio 1.3, 5.2.6).
//!
//! A [`Queue`] has a fixed number of *slots*, each with a request header, a status byte and a data buffer in shared memory, all
//! made at the start: submitting allocates nothing. The life of a slot:
//!
//! ```text
//! take() ──► [data(slot) filled for a write] ──► submit(slot, …) ──► publish() ──► poll() ──► [data(slot) read] ──► give_back(slot)
//! ```
//!
//! One thread owns a queue. What the queue promises: a slot that was submitted is reported by `poll` exactly once, or a
//! [`UsedError`] says how the server broke the ring. What it leaves to others: when to wait, and what the data means.

use std::sync::Arc;

use memory::IoBuf;
use vmm_sys_util::eventfd::EventFd;
use vring::GuestAddr;
use vring::driver::{
    AddError, DriverError, DriverMemory, DriverQueue, DriverRange, Segment, UsedError,
};

use crate::config::feature;
pub use crate::ring::Slot;
use crate::ring::SlotRing;
use crate::session::{Offer, SessionError, StartPlan};

/// Request types (virtio 1.3, 5.2.6).
const TYPE_IN: u32 = 0;
const TYPE_OUT: u32 = 1;
const TYPE_FLUSH: u32 = 4;
const TYPE_GET_ID: u32 = 8;
const TYPE_DISCARD: u32 = 11;
const TYPE_WRITE_ZEROES: u32 = 13;

const SECTOR: u64 = 512;
/// Bytes of a serial number (virtio 1.3, 5.2.6.4).
pub const ID_BYTES: u32 = 20;

/// The control block of a slot is one cache line: header at 0, one discard segment at 16, the status byte at 32.
const CONTROL_BYTES: u32 = 64;
const HEADER_BYTES: u32 = 16;
const RANGE_AT: u32 = 16;
const RANGE_BYTES: u32 = 16;
const STATUS_AT: u32 = 32;
/// What stands in the status byte until the server writes it; none of virtio's values.
const STATUS_UNSET: u8 = 0xff;

/// Alignment of data buffers: a page, so that a server may use direct I/O on them.
const DATA_ALIGN: usize = 4096;

/// How a queue's requests look.
#[derive(Clone, Debug)]
pub struct SlotPlan {
    /// Requests outstanding at most.
    pub slots: u16,
    /// Bytes of data of the largest request.
    pub data_bytes: u32,
    /// Descriptors that the data of a request is spread over.
    pub data_segments: u16,
    /// Whether requests use an indirect table, where the server can.
    pub indirect: bool,
}

impl SlotPlan {
    /// Descriptors of a request in the ring itself.
    fn ring_entries(&self) -> u32 {
        if self.indirect { 1 } else { u32::from(self.data_segments) + 2 }
    }

    /// Entries of an indirect table.
    pub(crate) fn table_entries(&self) -> u16 {
        if self.indirect { self.data_segments.saturating_add(2) } else { 0 }
    }

    pub(crate) fn check(&self, queue_size: u16, offer: &Offer) -> Result<(), SessionError> {
        let plan = |text| Err(SessionError::Plan(text));
        let Self { slots, data_bytes, data_segments, .. } = *self;
        if slots == 0 || data_segments == 0 {
            return plan("a queue needs at least one request of one data segment".into());
        }
        if data_bytes == 0 || data_bytes % (512 * u32::from(data_segments)) != 0 {
            return plan(format!(
                "{data_bytes} bytes cannot be split into {data_segments} segments of whole sectors"
            ));
        }
        if let Some(max) = offer.config.seg_max.filter(|&max| u32::from(data_segments) > max) {
            return plan(format!("the server takes {max} data segments, {data_segments} asked"));
        }
        if self.indirect && !offer.has(feature::INDIRECT_DESC) {
            return plan("the server does not offer indirect descriptors: use direct ones".into());
        }
        let needed = self.ring_entries() * u32::from(slots);
        if needed > u32::from(queue_size) {
            return plan(format!(
                "{slots} requests need {needed} descriptors, the ring has {queue_size}: use a larger --queue-size, \
                 a smaller --depth or indirect descriptors"
            ));
        }
        Ok(())
    }
}

impl StartPlan {
    /// Guest memory for everything in the plan, generously.
    pub(crate) fn memory_bytes(&self) -> u64 {
        let slots = &self.slots;
        // Every allocation may waste up to a page to alignment: control block and data.
        let slot = u64::from(slots.data_bytes) + 3 * DATA_ALIGN as u64;
        let table = 16 * u64::from(slots.table_entries());
        let ring = (64 + table) * u64::from(self.queue_size) + 4 * DATA_ALIGN as u64;
        // The fixed queues of a SCSI device have slots of their own number.
        let queue = ring + slot * u64::from(slots.slots.max(crate::scsi::control::SLOTS));
        (queue * u64::from(self.queues)).next_multiple_of(2 << 20)
    }
}

/// What a request does. Offsets and lengths are bytes, multiples of 512.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Request {
    /// Disk to buffer.
    Read {
        /// Where on the disk.
        offset: u64,
        /// How much.
        bytes: u32,
    },
    /// Buffer to disk.
    Write {
        /// Where on the disk.
        offset: u64,
        /// How much.
        bytes: u32,
    },
    /// Make completed writes durable.
    Flush,
    /// The range's content is not needed any more.
    Discard {
        /// Where on the disk.
        offset: u64,
        /// How much.
        bytes: u64,
    },
    /// The range reads as zero.
    WriteZeroes {
        /// Where on the disk.
        offset: u64,
        /// How much.
        bytes: u64,
        /// Whether the space may be given back.
        unmap: bool,
    },
    /// The serial number, 20 bytes, into the buffer.
    GetId,
}

/// How a request ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Ok,
    /// The device could not do it.
    IoError,
    /// The device does not know such requests.
    Unsupported,
    /// The server gave the request back without a valid status.
    Invalid(u8),
}

impl From<u8> for Status {
    fn from(byte: u8) -> Self {
        match byte {
            0 => Self::Ok,
            1 => Self::IoError,
            2 => Self::Unsupported,
            other => Self::Invalid(other),
        }
    }
}

/// A request that came back.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    /// Its slot, the caller's until [`Queue::give_back`].
    pub slot: Slot,
    /// How it ended.
    pub status: Status,
    /// Bytes that the server says it wrote into the buffers, the status byte included.
    pub written: u32,
}

struct Buffers {
    control: IoBuf,
    data: IoBuf,
    /// Header, data segments, status: a read hands over the first as readable, a write all but the last.
    chain: Box<[Segment]>,
    range: Segment,
}

/// One virtio-blk queue; see the module.
pub struct Queue {
    ring: SlotRing,
    slots: Box<[Buffers]>,
    /// For requests that do not fill the buffer.
    scratch: Vec<Segment>,
    data_bytes: u32,
    segment_bytes: u32,
}

impl Queue {
    pub(crate) fn new(
        ring: DriverQueue,
        memory: &Arc<DriverMemory>,
        kick: Arc<EventFd>,
        plan: &SlotPlan,
    ) -> Result<Self, DriverError> {
        let segment_bytes = plan.data_bytes / u32::from(plan.data_segments);
        let slots = (0..plan.slots)
            .map(|_| Buffers::new(memory, plan, segment_bytes))
            .collect::<Result<Box<[_]>, _>>()?;
        Ok(Self {
            ring: SlotRing::new(ring, memory, kick, plan.slots, plan.indirect),
            slots,
            scratch: Vec::with_capacity(usize::from(plan.data_segments) + 2),
            data_bytes: plan.data_bytes,
            segment_bytes,
        })
    }

    /// Requests outstanding at most.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.ring.depth()
    }

    /// Slots taken.
    #[must_use]
    pub fn busy(&self) -> usize {
        self.ring.busy()
    }

    /// Kicks sent.
    #[must_use]
    pub fn kicks(&self) -> u64 {
        self.ring.kicks()
    }

    /// The ring, for what this wrapper does not know.
    #[must_use]
    pub fn ring(&self) -> &DriverQueue {
        self.ring.ring()
    }

    /// Takes a free slot.
    #[inline]
    pub fn take(&mut self) -> Option<Slot> {
        self.ring.take()
    }

    /// Gives a slot back that was taken or polled and is not outstanding.
    #[inline]
    pub fn give_back(&mut self, slot: Slot) {
        self.ring.give_back(slot);
    }

    /// The data buffer of a slot.
    #[inline]
    #[must_use]
    pub fn data(&self, slot: Slot) -> IoBuf {
        self.slots[usize::from(slot.0)].data
    }

    /// Puts a request into the ring; the server sees it after [`publish`](Self::publish).
    ///
    /// # Errors
    /// The ring is full, which a queue whose plan was checked never is.
    #[inline]
    pub fn submit(&mut self, slot: Slot, request: Request) -> Result<(), AddError> {
        let buffers = &self.slots[usize::from(slot.0)];
        let (kind, offset) = match request {
            Request::Read { offset, .. } => (TYPE_IN, offset),
            Request::Write { offset, .. } => (TYPE_OUT, offset),
            Request::Flush => (TYPE_FLUSH, 0),
            Request::GetId => (TYPE_GET_ID, 0),
            Request::Discard { .. } => (TYPE_DISCARD, 0),
            Request::WriteZeroes { .. } => (TYPE_WRITE_ZEROES, 0),
        };
        buffers.set_header(kind, offset / SECTOR);
        let last = buffers.chain.len() - 1;
        let (chain, readable) = match request {
            Request::Read { bytes, .. } if bytes == self.data_bytes => (&*buffers.chain, 1),
            Request::Write { bytes, .. } if bytes == self.data_bytes => (&*buffers.chain, last),
            other => {
                let readable = buffers.uncommon_chain(other, self.segment_bytes, &mut self.scratch);
                (&*self.scratch, readable)
            }
        };
        self.ring.add(slot, chain, readable)
    }

    /// Shows submitted requests to the server and kicks it if it asks for that.
    ///
    /// # Errors
    /// The kick could not be written.
    #[inline]
    pub fn publish(&mut self) -> std::io::Result<()> {
        self.ring.publish()
    }

    /// A request that came back, if there is one.
    ///
    /// # Errors
    /// The server broke the ring: it returned something that was not outstanding.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Done>, UsedError> {
        let Some((slot, written)) = self.ring.poll()? else { return Ok(None) };
        let status = self.slots[usize::from(slot.0)].status();
        Ok(Some(Done { slot, status, written }))
    }

    /// How the request of a slot that came back ended.
    #[must_use]
    pub fn status(&self, slot: Slot) -> Status {
        self.slots[usize::from(slot.0)].status()
    }

    /// Asks for an interrupt at the next completion; true when something completed meanwhile and no interrupt will come for it.
    #[inline]
    pub fn enable_interrupts(&mut self) -> bool {
        self.ring.enable_interrupts()
    }

    /// Asks for no interrupts.
    pub fn disable_interrupts(&mut self) {
        self.ring.disable_interrupts();
    }
}

fn at(range: &DriverRange, offset: u32) -> GuestAddr {
    GuestAddr(range.guest.0 + u64::from(offset))
}

impl Buffers {
    fn new(memory: &DriverMemory, plan: &SlotPlan, segment: u32) -> Result<Self, DriverError> {
        let alloc =
            |len: u32, align: usize| memory.alloc(len as usize, align).ok_or(DriverError::NoMemory);
        let control = alloc(CONTROL_BYTES, 64)?;
        let data = alloc(plan.data_bytes, DATA_ALIGN)?;
        let mut chain = vec![(control.guest, HEADER_BYTES)];
        for index in 0..u32::from(plan.data_segments) {
            chain.push((at(&data, index * segment), segment));
        }
        chain.push((at(&control, STATUS_AT), 1));
        Ok(Self {
            control: control.buf,
            data: data.buf,
            chain: chain.into_boxed_slice(),
            range: (at(&control, RANGE_AT), RANGE_BYTES),
        })
    }

    #[inline]
    fn set_header(&self, kind: u32, sector: u64) {
        let mut header = [0; HEADER_BYTES as usize];
        header[..4].copy_from_slice(&kind.to_le_bytes());
        header[8..].copy_from_slice(&sector.to_le_bytes());
        self.control.write(0, &header);
        self.control.write(STATUS_AT as usize, &[STATUS_UNSET]);
    }

    #[inline]
    fn status(&self) -> Status {
        let mut status = [STATUS_UNSET];
        self.control.read(STATUS_AT as usize, &mut status);
        Status::from(status[0])
    }

    /// The chain of a request that is not a read or write of the whole buffer, into `out`; returns how many segments are readable.
    fn uncommon_chain(
        &self,
        request: Request,
        segment_bytes: u32,
        out: &mut Vec<Segment>,
    ) -> usize {
        let last = self.chain.len() - 1;
        out.clear();
        out.push(self.chain[0]);
        let readable = match request {
            Request::Read { bytes, .. } => {
                self.push_data(bytes, segment_bytes, out);
                1
            }
            Request::Write { bytes, .. } => {
                self.push_data(bytes, segment_bytes, out);
                out.len()
            }
            Request::Flush => 1,
            Request::GetId => {
                self.push_data(ID_BYTES, segment_bytes, out);
                1
            }
            Request::Discard { offset, bytes } => {
                self.set_range(offset, bytes, false);
                out.push(self.range);
                2
            }
            Request::WriteZeroes { offset, bytes, unmap } => {
                self.set_range(offset, bytes, unmap);
                out.push(self.range);
                2
            }
        };
        out.push(self.chain[last]);
        readable
    }

    fn push_data(&self, bytes: u32, segment_bytes: u32, out: &mut Vec<Segment>) {
        assert!(bytes as usize <= self.data.len(), "a request larger than its buffer");
        let mut left = bytes;
        for segment in &self.chain[1..self.chain.len() - 1] {
            if left == 0 {
                break;
            }
            let len = left.min(segment_bytes);
            out.push((segment.0, len));
            left -= len;
        }
    }

    /// `struct virtio_blk_discard_write_zeroes` (virtio 1.3, 5.2.6).
    fn set_range(&self, offset: u64, bytes: u64, unmap: bool) {
        let sectors = u32::try_from(bytes / SECTOR).unwrap_or(u32::MAX);
        let mut range = [0; RANGE_BYTES as usize];
        range[..8].copy_from_slice(&(offset / SECTOR).to_le_bytes());
        range[8..12].copy_from_slice(&sectors.to_le_bytes());
        range[12..].copy_from_slice(&u32::from(unmap).to_le_bytes());
        self.control.write(RANGE_AT as usize, &range);
    }
}

#[cfg(test)]
mod tests;
