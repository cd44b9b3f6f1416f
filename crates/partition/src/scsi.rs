//! virtio-scsi commands over one queue (virtio 1.3, 5.6.6), and the device's two other queues.
//!
//! | module | what |
//! |---|---|
//! | [`cdb`] | the CDBs that a client of a disk sends |
//! | [`control`] | task management, and the queue on which a device says what changed |
//!
//! A request [`Queue`] has slots as [`crate::blk::Queue`] has: everything in shared memory is made at the start, and submitting
//! allocates nothing. [`Queue::execute`] is for those who want one answer and nothing else: it waits.
//!
//! Promises: a slot that was submitted is reported once, or a [`UsedError`] says how the server broke the ring. Left to others:
//! what a status means for the one who asked, and sending again.

pub mod cdb;
pub mod control;

use std::sync::Arc;
use std::time::{Duration, Instant};

use memory::IoBuf;
use vmm_sys_util::eventfd::EventFd;
use vring::driver::{AddError, DriverError, DriverMemory, DriverQueue, Segment, UsedError};

use crate::blk::SlotPlan;
pub use crate::ring::Slot;
use crate::ring::SlotRing;

/// The control block of a slot: the request at 0, the response behind it, each in lines of its own.
const CONTROL_BYTES: u32 = 256;
/// `struct virtio_scsi_req_cmd`, the part that the device reads: lun, tag, task attribute, priority, CRN, CDB.
const REQUEST_BYTES: u32 = 51;
const CDB_BYTES: usize = 32;
const RESPONSE_AT: u32 = 64;
/// Its other part: sense length, residual, status qualifier, status, response, sense data.
const RESPONSE_BYTES: u32 = 12 + SENSE_BYTES;
const SENSE_BYTES: u32 = 96;
/// What stands in the response until the server writes it; none of virtio's values.
const RESPONSE_UNSET: u8 = 0xff;
/// Alignment of data buffers: a page, so that a server may use direct I/O on them.
const DATA_ALIGN: usize = 4096;

/// Feature bits of virtio-scsi (virtio 1.3, 5.6.3); those of rings stand in [`crate::config::feature`].
pub mod feature {
    /// A request may have data in both directions.
    pub const INOUT: u64 = 1;
    /// The device tells of targets and LUNs that come and go.
    pub const HOTPLUG: u64 = 1 << 1;
    /// The device tells of LUNs whose parameters changed.
    pub const CHANGE: u64 = 1 << 2;

    /// Everything that this client can use.
    pub const KNOWN: u64 = INOUT
        | HOTPLUG
        | CHANGE
        | crate::config::feature::INDIRECT_DESC
        | crate::config::feature::EVENT_IDX
        | crate::config::feature::PROTOCOL_FEATURES
        | crate::config::feature::VERSION_1;
}

/// The device as its configuration space describes it (virtio 1.3, 5.6.4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScsiConfig {
    /// Request queues.
    pub num_queues: u32,
    /// Data segments in one request.
    pub seg_max: u32,
    /// Sectors of 512 bytes in one request.
    pub max_sectors: u32,
    /// Commands to one LUN that the device wants to have at once.
    pub cmd_per_lun: u32,
    /// Bytes of an event.
    pub event_info_size: u32,
    /// Bytes of sense data.
    pub sense_size: u32,
    /// Bytes of a CDB.
    pub cdb_size: u32,
    /// Largest channel.
    pub max_channel: u16,
    /// Largest target.
    pub max_target: u16,
    /// Largest LUN.
    pub max_lun: u32,
}

/// Bytes of configuration space.
pub const CONFIG_BYTES: usize = 36;

impl ScsiConfig {
    /// Reads the configuration space. Missing bytes read as zero.
    #[must_use]
    pub fn parse(bytes: &[u8]) -> Self {
        let mut all = [0; CONFIG_BYTES];
        let known = bytes.len().min(CONFIG_BYTES);
        all[..known].copy_from_slice(&bytes[..known]);
        let long = |at: usize| u32::from_le_bytes(all[at..at + 4].try_into().expect("four"));
        let short = |at: usize| u16::from_le_bytes(all[at..at + 2].try_into().expect("two"));
        Self {
            num_queues: long(0),
            seg_max: long(4),
            max_sectors: long(8),
            cmd_per_lun: long(12),
            event_info_size: long(16),
            sense_size: long(20),
            cdb_size: long(24),
            max_channel: short(28),
            max_target: short(30),
            max_lun: long(32),
        }
    }
}

/// A LUN of a target, as eight bytes (virtio 1.3, 5.6.6.1): 1, the target, and a single-level LUN with flat space addressing.
#[must_use]
pub fn address(target: u8, lun: u16) -> [u8; 8] {
    let [high, low] = (0x4000 | lun & 0x3fff).to_be_bytes();
    [1, target, high, low, 0, 0, 0, 0]
}

/// Response codes (virtio 1.3, 5.6.6.1 and 5.6.6.2).
pub mod response {
    /// Done; the SCSI status counts.
    pub const OK: u8 = 0;
    /// More data than the buffers hold.
    pub const OVERRUN: u8 = 1;
    /// The command was aborted.
    pub const ABORTED: u8 = 2;
    /// No such target or LUN.
    pub const BAD_TARGET: u8 = 3;
    /// A reset came before the command was done.
    pub const RESET: u8 = 4;
    /// Try again.
    pub const BUSY: u8 = 5;
    /// The request makes no sense.
    pub const FAILURE: u8 = 9;
    /// The way to the target is gone.
    pub const TRANSPORT_FAILURE: u8 = 6;
    /// A task management function was carried out.
    pub const FUNCTION_SUCCEEDED: u8 = 10;
    /// It is not known.
    pub const FUNCTION_REJECTED: u8 = 11;
    /// No such LUN, for a task management function.
    pub const INCORRECT_LUN: u8 = 12;
}

/// SCSI statuses (SAM-5, 5.3.1).
pub mod status {
    /// Done.
    pub const GOOD: u8 = 0x00;
    /// See the sense data.
    pub const CHECK_CONDITION: u8 = 0x02;
    /// Try again.
    pub const BUSY: u8 = 0x08;
    /// Somebody else holds a reservation.
    pub const RESERVATION_CONFLICT: u8 = 0x18;
    /// Too many commands.
    pub const TASK_SET_FULL: u8 = 0x28;
    /// Another I_T nexus aborted it.
    pub const TASK_ABORTED: u8 = 0x40;
}

/// A command to be sent.
#[derive(Clone, Copy, Debug)]
pub struct Command<'a> {
    /// Where to: [`address`].
    pub lun: [u8; 8],
    /// What task management functions call it by.
    pub tag: u64,
    /// What to do; at most 32 bytes count.
    pub cdb: &'a [u8],
    /// Bytes of the slot's data buffer that the device reads.
    pub data_out: u32,
    /// Bytes of the slot's data buffer, from its beginning, that the device writes.
    pub data_in: u32,
}

/// How a command ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// One of [`response`].
    pub response: u8,
    /// One of [`status`].
    pub status: u8,
    /// The sense data, as long as the device says.
    pub sense: Vec<u8>,
    /// Bytes of the data buffers that were not used.
    pub residual: u32,
    /// What came into the data-in buffer; [`Queue::execute`] fills it.
    pub data: Vec<u8>,
}

impl Reply {
    /// Whether it was done without remark.
    #[must_use]
    pub fn good(&self) -> bool {
        (self.response, self.status) == (response::OK, status::GOOD)
    }

    /// Sense key and additional sense code with its qualifier, of fixed or descriptor format.
    #[must_use]
    pub fn sense_code(&self) -> Option<(u8, u16)> {
        let at = |index: usize| self.sense.get(index).copied();
        let (key, asc, ascq) = match at(0)? & 0x7f {
            0x70 | 0x71 => (at(2)?, at(12)?, at(13)?),
            0x72 | 0x73 => (at(1)?, at(2)?, at(3)?),
            _ => return None,
        };
        Some((key & 0x0f, u16::from_be_bytes([asc, ascq])))
    }

    /// Whether the logical unit is in process of becoming ready: the command is to be sent again a little later.
    #[must_use]
    pub fn becoming_ready(&self) -> bool {
        let told = (self.response, self.status) == (response::OK, status::CHECK_CONDITION);
        told && self.sense_code() == Some((0x02, 0x0401))
    }

    /// Whether the same command, sent again, may well be done: a unit attention was told, somebody aborted it, or the device is busy or becoming
    /// ready.
    #[must_use]
    pub fn try_again(&self) -> bool {
        match (self.response, self.status) {
            (response::ABORTED | response::RESET | response::BUSY, _)
            | (response::OK, status::BUSY | status::TASK_SET_FULL | status::TASK_ABORTED) => true,
            (response::OK, status::CHECK_CONDITION) => {
                self.becoming_ready() || matches!(self.sense_code(), Some((0x06 | 0x0b, _)))
            }
            _ => false,
        }
    }
}

/// After how long a unit that is becoming ready is asked again.
pub(crate) const READY_IN: Duration = Duration::from_millis(3);

/// Why a command could not be carried out at all.
#[derive(Debug, thiserror::Error)]
pub enum ScsiError {
    /// The server broke the ring.
    #[error("the server broke the ring: {0}")]
    Ring(#[from] UsedError),
    /// The ring or the slots are full.
    #[error("the queue is full: {0}")]
    Full(#[from] AddError),
    /// The kick.
    #[error("cannot kick the server: {0}")]
    Kick(#[from] std::io::Error),
    /// No answer in time.
    #[error("no answer within {0} s")]
    Late(f64),
    /// The command was refused.
    #[error("{what} was answered with response {response}, status {status:#04x}, sense {sense:x?}")]
    Refused {
        /// Which command.
        what: &'static str,
        /// See [`response`].
        response: u8,
        /// See [`status`].
        status: u8,
        /// Sense key and code.
        sense: Option<(u8, u16)>,
    },
}

struct Buffers {
    control: IoBuf,
    request: Segment,
    response: Segment,
    data: IoBuf,
    /// Where the data is for the device.
    segments: Box<[Segment]>,
}

/// One request queue; see the module.
pub struct Queue {
    ring: SlotRing,
    slots: Box<[Buffers]>,
    scratch: Vec<Segment>,
}

impl Queue {
    pub(crate) fn new(
        ring: DriverQueue,
        memory: &Arc<DriverMemory>,
        kick: Arc<EventFd>,
        plan: &SlotPlan,
    ) -> Result<Self, DriverError> {
        let slots =
            (0..plan.slots).map(|_| Buffers::new(memory, plan)).collect::<Result<Box<[_]>, _>>()?;
        Ok(Self {
            ring: SlotRing::new(ring, memory, kick, plan.slots, plan.indirect),
            slots,
            scratch: Vec::with_capacity(2 * usize::from(plan.data_segments) + 2),
        })
    }

    /// Commands outstanding at most.
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

    /// The data buffer of a slot, for both directions.
    #[inline]
    #[must_use]
    pub fn data(&self, slot: Slot) -> IoBuf {
        self.slots[usize::from(slot.0)].data
    }

    /// Puts a command into the ring; the server sees it after [`publish`](Self::publish).
    ///
    /// # Errors
    /// The ring is full, which a queue whose plan was checked never is.
    ///
    /// # Panics
    /// When the data is longer than the slot's buffer.
    #[inline]
    pub fn submit(&mut self, slot: Slot, command: &Command<'_>) -> Result<(), AddError> {
        let buffers = &self.slots[usize::from(slot.0)];
        buffers.set_request(command);
        self.scratch.clear();
        self.scratch.push(buffers.request);
        buffers.push_data(command.data_out, &mut self.scratch);
        let readable = self.scratch.len();
        self.scratch.push(buffers.response);
        buffers.push_data(command.data_in, &mut self.scratch);
        self.ring.add(slot, &self.scratch, readable)
    }

    /// Shows submitted commands to the server and kicks it if it asks for that.
    ///
    /// # Errors
    /// The kick could not be written.
    #[inline]
    pub fn publish(&mut self) -> std::io::Result<()> {
        self.ring.publish()
    }

    /// The slot of a command that came back, if there is one. It is the caller's until [`give_back`](Self::give_back).
    ///
    /// # Errors
    /// The server broke the ring: it returned something that was not outstanding.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Slot>, UsedError> {
        Ok(self.ring.poll()?.map(|(slot, _)| slot))
    }

    /// Whether the command of a slot that came back was done without remark.
    #[inline]
    #[must_use]
    pub fn good(&self, slot: Slot) -> bool {
        let mut codes = [RESPONSE_UNSET; 2];
        self.slots[usize::from(slot.0)].control.read(RESPONSE_AT as usize + 10, &mut codes);
        codes == [status::GOOD, response::OK]
    }

    /// How the command of a slot that came back ended; without its data.
    #[must_use]
    pub fn reply(&self, slot: Slot) -> Reply {
        let mut bytes = [0; RESPONSE_BYTES as usize];
        self.slots[usize::from(slot.0)].control.read(RESPONSE_AT as usize, &mut bytes);
        let long = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let sense = (long(0) as usize).min(SENSE_BYTES as usize);
        Reply {
            response: bytes[11],
            status: bytes[10],
            sense: bytes[12..12 + sense].to_vec(),
            residual: long(4),
            data: Vec::new(),
        }
    }

    /// Sends one command and waits for its answer. Nothing else is outstanding in this queue.
    ///
    /// # Errors
    /// A full or broken ring, or no answer within `patience`.
    ///
    /// # Panics
    /// When the data is longer than the slot's buffer.
    pub fn execute(
        &mut self,
        lun: [u8; 8],
        cdb: &[u8],
        data_out: &[u8],
        data_in: u32,
        patience: Duration,
    ) -> Result<Reply, ScsiError> {
        let slot = self.take().ok_or(AddError::Full)?;
        if !data_out.is_empty() {
            self.data(slot).write(0, data_out);
        }
        let data_out = u32::try_from(data_out.len()).expect("it fits the slot");
        self.submit(slot, &Command { lun, tag: u64::from(slot.0), cdb, data_out, data_in })?;
        self.publish()?;
        let end = Instant::now() + patience;
        while self.poll()?.is_none() {
            if Instant::now() >= end {
                return Err(ScsiError::Late(patience.as_secs_f64()));
            }
            std::thread::sleep(Duration::from_micros(20));
        }
        let mut reply = self.reply(slot);
        reply.data = vec![0; data_in as usize];
        if data_in > 0 {
            self.data(slot).read(0, &mut reply.data);
        }
        self.give_back(slot);
        Ok(reply)
    }

    /// As [`execute`](Self::execute), again and again while the answer says that this may help: unit attentions above all.
    ///
    /// # Errors
    /// As there; or it was refused for good.
    pub fn insist(
        &mut self,
        what: &'static str,
        lun: [u8; 8],
        cdb: &[u8],
        data_in: u32,
        patience: Duration,
    ) -> Result<Reply, ScsiError> {
        let end = Instant::now() + patience;
        loop {
            let reply = self.execute(lun, cdb, &[], data_in, patience)?;
            if reply.good() {
                return Ok(reply);
            }
            if !reply.try_again() || Instant::now() >= end {
                let (response, status) = (reply.response, reply.status);
                return Err(ScsiError::Refused {
                    what,
                    response,
                    status,
                    sense: reply.sense_code(),
                });
            }
            if reply.becoming_ready() {
                std::thread::sleep(READY_IN);
            }
        }
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

impl Buffers {
    fn new(memory: &DriverMemory, plan: &SlotPlan) -> Result<Self, DriverError> {
        let alloc =
            |len: u32, align: usize| memory.alloc(len as usize, align).ok_or(DriverError::NoMemory);
        let control = alloc(CONTROL_BYTES, 64)?;
        let data = alloc(plan.data_bytes, DATA_ALIGN)?;
        let bytes = plan.data_bytes / u32::from(plan.data_segments);
        let at = |offset: u32| vring::GuestAddr(control.guest.0 + u64::from(offset));
        let segment = |index: u32| {
            (vring::GuestAddr(data.guest.0 + u64::from(index) * u64::from(bytes)), bytes)
        };
        Ok(Self {
            request: (at(0), REQUEST_BYTES),
            response: (at(RESPONSE_AT), RESPONSE_BYTES),
            control: control.buf,
            data: data.buf,
            segments: (0..u32::from(plan.data_segments)).map(segment).collect(),
        })
    }

    #[inline]
    fn set_request(&self, command: &Command<'_>) {
        let mut request = [0; REQUEST_BYTES as usize];
        request[..8].copy_from_slice(&command.lun);
        request[8..16].copy_from_slice(&command.tag.to_le_bytes());
        let cdb = &command.cdb[..command.cdb.len().min(CDB_BYTES)];
        request[19..19 + cdb.len()].copy_from_slice(cdb);
        self.control.write(0, &request);
        self.control.write(RESPONSE_AT as usize + 10, &[0, RESPONSE_UNSET]);
    }

    #[inline]
    fn push_data(&self, bytes: u32, out: &mut Vec<Segment>) {
        assert!(bytes as usize <= self.data.len(), "a command larger than its buffer");
        let mut left = bytes;
        for (at, len) in &self.segments {
            if left == 0 {
                break;
            }
            out.push((*at, left.min(*len)));
            left -= left.min(*len);
        }
    }
}

#[cfg(test)]
mod tests;
