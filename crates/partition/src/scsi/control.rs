//! The control queue and the event queue of virtio-scsi (virtio 1.3, 5.6.6.2 and 5.6.6.3).

use std::sync::Arc;
use std::time::{Duration, Instant};

use memory::IoBuf;
use vmm_sys_util::eventfd::EventFd;
use vring::GuestAddr;
use vring::driver::{AddError, DriverError, DriverMemory, DriverQueue, Segment, UsedError};

use super::ScsiError;
pub use crate::ring::Slot;
use crate::ring::SlotRing;

/// Requests outstanding at most in a control queue, and buffers in an event queue.
pub(crate) const SLOTS: u16 = 16;
const REQUEST_BYTES: usize = 64;
const RESPONSE_BYTES: usize = 64;
/// Bytes of `struct virtio_scsi_event`.
const EVENT_BYTES: u32 = 16;

/// Task management functions (virtio 1.3, 5.6.6.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Function {
    /// One command, by its tag.
    AbortTask = 0,
    /// All of this client's commands to the LUN.
    AbortTaskSet = 1,
    /// Not supported by anybody.
    ClearAca = 2,
    /// Everybody's commands to the LUN.
    ClearTaskSet = 3,
    /// All of this client's commands to the target.
    NexusReset = 4,
    /// The LUN.
    LogicalUnitReset = 5,
    /// Is the command there?
    QueryTask = 6,
    /// Is any command of this client there?
    QueryTaskSet = 7,
}

/// A queue of one of both kinds.
struct Plain {
    ring: SlotRing,
    slots: Box<[(IoBuf, GuestAddr)]>,
}

impl Plain {
    fn new(
        ring: DriverQueue,
        memory: &Arc<DriverMemory>,
        kick: Arc<EventFd>,
    ) -> Result<Self, DriverError> {
        let block = || {
            let range = memory.alloc(REQUEST_BYTES + RESPONSE_BYTES, 64);
            range.map(|range| (range.buf, range.guest)).ok_or(DriverError::NoMemory)
        };
        let slots = (0..SLOTS).map(|_| block()).collect::<Result<_, _>>()?;
        Ok(Self { ring: SlotRing::new(ring, memory, kick, SLOTS, false), slots })
    }

    fn at(&self, slot: Slot) -> (IoBuf, GuestAddr) {
        self.slots[usize::from(slot.0)]
    }
}

/// The control queue.
pub struct Control(Plain);

impl Control {
    pub(crate) fn new(
        ring: DriverQueue,
        memory: &Arc<DriverMemory>,
        kick: Arc<EventFd>,
    ) -> Result<Self, DriverError> {
        Plain::new(ring, memory, kick).map(Self)
    }

    /// The ring.
    #[must_use]
    pub fn ring(&self) -> &DriverQueue {
        self.0.ring.ring()
    }

    /// Sends any bytes, at most 64, with room for any number of answered bytes, at most 64.
    ///
    /// # Errors
    /// Too many requests are outstanding, or the kick could not be written.
    ///
    /// # Panics
    /// When there are more bytes than that.
    pub fn submit(&mut self, request: &[u8], answer: u32) -> Result<Slot, ScsiError> {
        assert!(request.len() <= REQUEST_BYTES && answer as usize <= RESPONSE_BYTES, "too long");
        let slot = self.0.ring.take().ok_or(AddError::Full)?;
        let (block, guest) = self.0.at(slot);
        block.write(0, request);
        block.write(REQUEST_BYTES, &[0xff; RESPONSE_BYTES]);
        let mut chain: Vec<Segment> = Vec::new();
        if !request.is_empty() {
            chain.push((guest, u32::try_from(request.len()).expect("at most 64")));
        }
        let readable = chain.len();
        if answer > 0 {
            chain.push((GuestAddr(guest.0 + REQUEST_BYTES as u64), answer));
        }
        self.0.ring.add(slot, &chain, readable)?;
        self.0.ring.publish()?;
        Ok(slot)
    }

    /// An answer that came: its slot, its bytes, and how many of them the server says it wrote.
    ///
    /// # Errors
    /// The server broke the ring.
    pub fn poll(&mut self) -> Result<Option<(Slot, Vec<u8>, u32)>, UsedError> {
        let Some((slot, written)) = self.0.ring.poll()? else { return Ok(None) };
        let mut bytes = vec![0; RESPONSE_BYTES];
        self.0.at(slot).0.read(REQUEST_BYTES, &mut bytes);
        self.0.ring.give_back(slot);
        Ok(Some((slot, bytes, written)))
    }

    /// Begins a task management function; its answer comes with [`poll`](Self::poll), in the first byte.
    ///
    /// # Errors
    /// As [`submit`](Self::submit).
    pub fn begin(&mut self, function: Function, lun: [u8; 8], tag: u64) -> Result<Slot, ScsiError> {
        let mut request = [0; 24];
        request[4..8].copy_from_slice(&(function as u32).to_le_bytes());
        request[8..16].copy_from_slice(&lun);
        request[16..].copy_from_slice(&tag.to_le_bytes());
        self.submit(&request, 1)
    }

    /// Carries out a task management function and waits; one of [`super::response`]. Nothing else is outstanding here.
    ///
    /// # Errors
    /// A broken ring, or no answer within `patience`.
    pub fn manage(
        &mut self,
        function: Function,
        lun: [u8; 8],
        tag: u64,
        patience: Duration,
    ) -> Result<u8, ScsiError> {
        self.begin(function, lun, tag)?;
        let end = Instant::now() + patience;
        loop {
            if let Some((_, bytes, _)) = self.poll()? {
                return Ok(bytes[0]);
            }
            if Instant::now() >= end {
                return Err(ScsiError::Late(patience.as_secs_f64()));
            }
            std::thread::sleep(Duration::from_micros(20));
        }
    }
}

/// What a device says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Kind, and in bit 31 whether others were missed.
    pub event: u32,
    /// Which LUN.
    pub lun: [u8; 8],
    /// Why.
    pub reason: u32,
}

/// Values of [`Event`].
pub mod event {
    /// Others were missed.
    pub const MISSED: u32 = 0x8000_0000;
    /// Nothing in particular: comes with [`MISSED`].
    pub const NO_EVENT: u32 = 0;
    /// A LUN came or went.
    pub const TRANSPORT_RESET: u32 = 1;
    /// Parameters changed: the reason has ASC in its low byte and ASCQ in the next.
    pub const PARAM_CHANGE: u32 = 3;
    /// Reason of [`TRANSPORT_RESET`]: look again.
    pub const RESCAN: u32 = 1;
    /// Reason of [`TRANSPORT_RESET`]: it is gone.
    pub const REMOVED: u32 = 2;
}

/// The event queue. It always has all its buffers with the device.
pub struct Events(Plain);

impl Events {
    pub(crate) fn new(
        ring: DriverQueue,
        memory: &Arc<DriverMemory>,
        kick: Arc<EventFd>,
    ) -> Result<Self, DriverError> {
        Plain::new(ring, memory, kick).map(Self)
    }

    /// Gives the device `buffers` buffers, or all that are left.
    ///
    /// # Errors
    /// The kick could not be written.
    pub fn offer(&mut self, buffers: usize) -> Result<(), ScsiError> {
        for _ in 0..buffers {
            let Some(slot) = self.0.ring.take() else { break };
            self.offer_slot(slot)?;
        }
        Ok(self.0.ring.publish()?)
    }

    fn offer_slot(&mut self, slot: Slot) -> Result<(), AddError> {
        let (block, guest) = self.0.at(slot);
        block.write(0, &[0xff; EVENT_BYTES as usize]);
        self.0.ring.add(slot, &[(guest, EVENT_BYTES)], 0)
    }

    /// An event, if one came; its buffer stays here until [`offer`](Self::offer).
    ///
    /// # Errors
    /// The server broke the ring.
    pub fn poll(&mut self) -> Result<Option<Event>, UsedError> {
        let Some((slot, _)) = self.0.ring.poll()? else { return Ok(None) };
        let mut bytes = [0; EVENT_BYTES as usize];
        self.0.at(slot).0.read(0, &mut bytes);
        self.0.ring.give_back(slot);
        let long = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().expect("four"));
        let lun = bytes[4..12].try_into().expect("eight");
        Ok(Some(Event { event: long(0), lun, reason: long(12) }))
    }

    /// The next event, and its buffer goes back to the device.
    ///
    /// # Errors
    /// The server broke the ring, or nothing came within `patience`.
    pub fn next_within(&mut self, patience: Duration) -> Result<Event, ScsiError> {
        let end = Instant::now() + patience;
        loop {
            if let Some(event) = self.poll()? {
                self.offer(1)?;
                return Ok(event);
            }
            if Instant::now() >= end {
                return Err(ScsiError::Late(patience.as_secs_f64()));
            }
            std::thread::sleep(Duration::from_micros(50));
        }
    }
}
