//! Frames on the queues of virtio-net (virtio 1.3, 5.1): one pair of queues with plain buffers.
//!
//! A frame is sent as two buffers, its header and the rest, and received in as many as it takes. Both queues give buffers back in the order of the
//! ring or the server has broken it: [`NetError::Order`].

use std::collections::VecDeque;
use std::sync::Arc;

use memory::IoBuf;
use thiserror::Error;
use vmm_sys_util::eventfd::EventFd;
use vring::GuestAddr;
use vring::driver::{AddError, DriverError, DriverMemory, DriverQueue, Segment, UsedError};

use crate::blk::SlotPlan;
use crate::ring::{Slot, SlotRing};

/// Feature bits (virtio 1.3, 5.1.3).
pub mod feature {
    use crate::config::feature;

    /// Frames may be sent with their checksum left out.
    pub const CSUM: u64 = 1;
    /// Frames may come so.
    pub const GUEST_CSUM: u64 = 1 << 1;
    /// The MTU is in the configuration space.
    pub const MTU: u64 = 1 << 3;
    /// The MAC address is.
    pub const MAC: u64 = 1 << 5;
    /// TCP over IPv4 may come uncut.
    pub const GUEST_TSO4: u64 = 1 << 7;
    /// TCP over IPv6 may.
    pub const GUEST_TSO6: u64 = 1 << 8;
    /// TCP over IPv4 may be sent uncut.
    pub const HOST_TSO4: u64 = 1 << 11;
    /// TCP over IPv6 may.
    pub const HOST_TSO6: u64 = 1 << 12;
    /// A frame may come in several buffers.
    pub const MRG_RXBUF: u64 = 1 << 15;
    /// TCP with ECN may come uncut, where TCP without may.
    pub const GUEST_ECN: u64 = 1 << 9;
    /// It may be sent uncut.
    pub const HOST_ECN: u64 = 1 << 13;
    /// More than one pair of queues.
    pub const MQ: u64 = 1 << 22;

    /// UDP over IPv4 may come uncut.
    pub const GUEST_USO4: u64 = 1 << 54;
    /// UDP over IPv6 may.
    pub const GUEST_USO6: u64 = 1 << 55;
    /// UDP may be sent uncut.
    pub const HOST_USO: u64 = 1 << 56;

    /// Everything that this client can use.
    pub const KNOWN: u64 = CSUM
        | GUEST_USO4
        | GUEST_USO6
        | HOST_USO
        | GUEST_CSUM
        | MTU
        | MAC
        | GUEST_TSO4
        | GUEST_TSO6
        | HOST_TSO4
        | HOST_TSO6
        | GUEST_ECN
        | HOST_ECN
        | MRG_RXBUF
        | MQ
        | feature::IN_ORDER
        | feature::INDIRECT_DESC
        | feature::EVENT_IDX
        | feature::PROTOCOL_FEATURES
        | feature::VERSION_1;
}

/// Bytes of the header before each frame (virtio 1.3, 5.1.6).
pub const HEADER_BYTES: usize = 12;
/// Where the number of buffers stands in it.
const NUM_BUFFERS: usize = 10;

/// What can go wrong on a queue.
#[derive(Debug, Error)]
pub enum NetError {
    /// No room.
    #[error("cannot add a buffer: {0}")]
    Add(#[from] AddError),
    /// The server broke the ring.
    #[error("the server broke a ring: {0}")]
    Used(#[from] UsedError),
    /// Buffers came back in another order than the ring's.
    #[error("buffer {came} came back before buffer {wanted}")]
    Order {
        /// Which came.
        came: u16,
        /// Which was first.
        wanted: u16,
    },
    /// What came is no frame.
    #[error("the server wrote {written} bytes and says that they are in {buffers} buffers")]
    Frame {
        /// Bytes.
        written: u32,
        /// Buffers.
        buffers: u16,
    },
    /// The kick could not be written.
    #[error("cannot kick: {0}")]
    Kick(#[from] std::io::Error),
}

/// A frame that came.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Its header.
    pub header: [u8; HEADER_BYTES],
    /// The frame.
    pub frame: Vec<u8>,
}

/// The two queues of a pair.
pub struct Pair {
    /// Frames from the server.
    pub rx: Rx,
    /// Frames to the server.
    pub tx: Tx,
}

/// A ring with a buffer for each slot.
struct Buffers {
    ring: SlotRing,
    bufs: Vec<(IoBuf, GuestAddr)>,
    /// With the server, oldest first.
    out: VecDeque<u16>,
}

impl Buffers {
    fn new(
        ring: DriverQueue,
        memory: &Arc<DriverMemory>,
        kick: Arc<EventFd>,
        plan: &SlotPlan,
    ) -> Result<Self, DriverError> {
        let block = |_| {
            let range = memory.alloc(plan.data_bytes as usize, 64);
            range.map(|range| (range.buf, range.guest)).ok_or(DriverError::NoMemory)
        };
        let bufs = (0..plan.slots).map(block).collect::<Result<_, _>>()?;
        let ring = SlotRing::new(ring, memory, kick, plan.slots, false);
        Ok(Self { ring, bufs, out: VecDeque::new() })
    }

    /// The next that came back, and how many bytes the server wrote.
    fn poll(&mut self) -> Result<Option<(Slot, u32)>, NetError> {
        let Some((slot, written)) = self.ring.poll()? else { return Ok(None) };
        match self.out.pop_front() {
            Some(wanted) if wanted != slot.0 => Err(NetError::Order { came: slot.0, wanted }),
            _ => Ok(Some((slot, written))),
        }
    }
}

/// Sends frames.
pub struct Tx(Buffers);

impl Tx {
    pub(crate) fn new(
        ring: DriverQueue,
        memory: &Arc<DriverMemory>,
        kick: Arc<EventFd>,
        plan: &SlotPlan,
    ) -> Result<Self, DriverError> {
        Buffers::new(ring, memory, kick, plan).map(Self)
    }

    /// Adds a frame, if a buffer is free; the server sees it after [`publish`](Self::publish).
    ///
    /// # Errors
    /// No descriptors.
    ///
    /// # Panics
    /// When it is longer than a buffer.
    pub fn add(&mut self, header: &[u8], frame: &[u8]) -> Result<bool, NetError> {
        let Some(slot) = self.0.ring.take() else { return Ok(false) };
        let (buf, guest) = self.0.bufs[usize::from(slot.0)];
        buf.write(0, header);
        buf.write(header.len(), frame);
        let second = GuestAddr(guest.0 + header.len() as u64);
        let length = |bytes: &[u8]| u32::try_from(bytes.len()).expect("it fits a buffer");
        let chain = [(guest, length(header)), (second, length(frame))];
        let used = if frame.is_empty() { 1 } else { 2 };
        self.0.ring.add(slot, &chain[..used], used)?;
        self.0.out.push_back(slot.0);
        Ok(true)
    }

    /// Adds a frame of so many bytes that begins with `head`, in one buffer with its header, if one is free. What follows the head is whatever the
    /// buffer holds: for who measures and does not look.
    ///
    /// # Errors
    /// No descriptors.
    ///
    /// # Panics
    /// When it is longer than a buffer.
    pub fn add_head(
        &mut self,
        header: &[u8; HEADER_BYTES],
        head: &[u8],
        bytes: u32,
    ) -> Result<bool, NetError> {
        let Some(slot) = self.0.ring.take() else { return Ok(false) };
        let (buf, guest) = self.0.bufs[usize::from(slot.0)];
        let bytes = HEADER_BYTES as u32 + bytes;
        assert!(bytes as usize <= buf.len(), "longer than a buffer");
        buf.write(0, header);
        buf.write(HEADER_BYTES, head);
        self.0.ring.add(slot, &[(guest, bytes)], 1)?;
        self.0.out.push_back(slot.0);
        Ok(true)
    }

    /// Adds a frame in so many buffers, which share what is in a slot's; if one is free and there are descriptors.
    ///
    /// # Errors
    /// More buffers than the ring has descriptors.
    ///
    /// # Panics
    /// When it is longer than a slot's buffer, or shorter than its pieces are many.
    pub fn add_pieces(&mut self, bytes: &[u8], pieces: u32) -> Result<bool, NetError> {
        let Some((slot, chain)) = self.cut(bytes, pieces) else { return Ok(false) };
        match self.0.ring.add(slot, &chain, chain.len()) {
            Ok(()) => self.0.out.push_back(slot.0),
            Err(AddError::Full) => {
                self.0.ring.give_back(slot);
                return Ok(false);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// The same with a chain that goes round and has no end, as a broken driver makes it.
    ///
    /// # Errors
    /// No descriptors.
    ///
    /// # Panics
    /// As [`add_pieces`](Self::add_pieces).
    pub fn add_endless(&mut self, bytes: &[u8], pieces: u32) -> Result<bool, NetError> {
        let Some((slot, chain)) = self.cut(bytes, pieces) else { return Ok(false) };
        self.0.ring.add_endless(slot, &chain, chain.len())?;
        self.0.out.push_back(slot.0);
        Ok(true)
    }

    /// A free slot with these bytes, and the chain of its pieces.
    fn cut(&mut self, bytes: &[u8], pieces: u32) -> Option<(Slot, Vec<Segment>)> {
        let slot = self.0.ring.take()?;
        let (buf, guest) = self.0.bufs[usize::from(slot.0)];
        buf.write(0, bytes);
        let each = bytes.len().div_ceil(pieces as usize);
        let chain = bytes.chunks(each).enumerate();
        let segment = |(at, piece): (usize, &[u8])| {
            (GuestAddr(guest.0 + (at * each) as u64), piece.len() as u32)
        };
        Some((slot, chain.map(segment).collect()))
    }

    /// Shows what was added.
    ///
    /// # Errors
    /// The kick could not be written.
    pub fn publish(&mut self) -> Result<(), NetError> {
        Ok(self.0.ring.publish()?)
    }

    /// Kicks for nothing.
    ///
    /// # Errors
    /// The kick could not be written.
    pub fn kick(&self) -> Result<(), NetError> {
        Ok(self.0.ring.kick()?)
    }

    /// Takes back what was sent; how many frames.
    ///
    /// # Errors
    /// The server broke the ring or its order.
    pub fn reap(&mut self) -> Result<usize, NetError> {
        let mut count = 0;
        while let Some((slot, _)) = self.0.poll()? {
            self.0.ring.give_back(slot);
            count += 1;
        }
        Ok(count)
    }

    /// Frames that the server has.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.0.out.len()
    }
}

/// Receives frames.
pub struct Rx {
    buffers: Buffers,
    mergeable: bool,
}

impl Rx {
    pub(crate) fn new(
        ring: DriverQueue,
        memory: &Arc<DriverMemory>,
        kick: Arc<EventFd>,
        plan: &SlotPlan,
        mergeable: bool,
    ) -> Result<Self, DriverError> {
        Ok(Self { buffers: Buffers::new(ring, memory, kick, plan)?, mergeable })
    }

    /// Offers up to so many buffers of so many bytes; how many.
    ///
    /// # Errors
    /// The kick could not be written.
    pub fn post(&mut self, most: usize, bytes: u32) -> Result<usize, NetError> {
        let mut count = 0;
        while count < most
            && let Some(slot) = self.buffers.ring.take()
        {
            let (_, guest) = self.buffers.bufs[usize::from(slot.0)];
            self.buffers.ring.add(slot, &[(guest, bytes)], 0)?;
            self.buffers.out.push_back(slot.0);
            count += 1;
        }
        self.buffers.ring.publish()?;
        Ok(count)
    }

    /// Offers all free buffers in chains that go round and have no end, as a broken driver does.
    ///
    /// # Errors
    /// The kick could not be written.
    pub fn post_endless(&mut self, bytes: u32) -> Result<(), NetError> {
        while let Some(slot) = self.buffers.ring.take() {
            let (_, guest) = self.buffers.bufs[usize::from(slot.0)];
            self.buffers.ring.add_endless(slot, &[(guest, bytes)], 0)?;
            self.buffers.out.push_back(slot.0);
        }
        Ok(self.buffers.ring.publish()?)
    }

    /// Kicks for nothing.
    ///
    /// # Errors
    /// The kick could not be written.
    pub fn kick(&self) -> Result<(), NetError> {
        Ok(self.buffers.ring.kick()?)
    }

    /// The next frame that came.
    ///
    /// # Errors
    /// The server broke the ring or its order, or what it wrote is no frame.
    pub fn receive(&mut self) -> Result<Option<Received>, NetError> {
        let (slot, written) = loop {
            match self.buffers.poll()? {
                None => return Ok(None),
                // Whoever had it has died, and its successor knows nothing of it.
                Some((slot, 0)) => self.buffers.ring.give_back(slot),
                Some(came) => break came,
            }
        };
        let mut bytes = self.take(slot, written);
        if bytes.len() < HEADER_BYTES {
            return Err(NetError::Frame { written, buffers: 0 });
        }
        let number = u16::from_le_bytes([bytes[NUM_BUFFERS], bytes[NUM_BUFFERS + 1]]);
        if number == 0 || (number > 1 && !self.mergeable) {
            return Err(NetError::Frame { written, buffers: number });
        }
        for _ in 1..number {
            // All of a frame are shown at once.
            let next = self.buffers.poll()?;
            let (slot, written) = next.ok_or(NetError::Frame { written, buffers: number })?;
            let more = self.take(slot, written);
            bytes.extend(more);
        }
        let frame = bytes.split_off(HEADER_BYTES);
        let header = bytes.try_into().expect("what is left is the header");
        Ok(Some(Received { header, frame }))
    }

    /// How long the next frame that came is; its header is read, and nothing else of it.
    ///
    /// # Errors
    /// The server broke the ring or its order, or what it wrote is no frame.
    pub fn skim(&mut self) -> Result<Option<u32>, NetError> {
        let (slot, written) = loop {
            match self.buffers.poll()? {
                None => return Ok(None),
                Some((slot, 0)) => self.buffers.ring.give_back(slot),
                Some(came) => break came,
            }
        };
        let mut header = [0; HEADER_BYTES];
        self.buffers.bufs[usize::from(slot.0)].0.read(0, &mut header);
        self.buffers.ring.give_back(slot);
        let number = u16::from_le_bytes([header[NUM_BUFFERS], header[NUM_BUFFERS + 1]]);
        let broken = NetError::Frame { written, buffers: number };
        if (written as usize) < HEADER_BYTES || number == 0 || (number > 1 && !self.mergeable) {
            return Err(broken);
        }
        let mut bytes = written - HEADER_BYTES as u32;
        for _ in 1..number {
            let Some((slot, more)) = self.buffers.poll()? else { return Err(broken) };
            self.buffers.ring.give_back(slot);
            bytes = bytes.saturating_add(more);
        }
        Ok(Some(bytes))
    }

    fn take(&mut self, slot: Slot, written: u32) -> Vec<u8> {
        let mut bytes = vec![0; written as usize];
        self.buffers.bufs[usize::from(slot.0)].0.read(0, &mut bytes);
        self.buffers.ring.give_back(slot);
        bytes
    }

    /// Says that so many buffers were added which are not there, as a broken driver does: more than the ring has break it. None may be with the server.
    ///
    /// # Errors
    /// The kick could not be written.
    pub fn lie(&mut self, by: u16) -> Result<(), NetError> {
        Ok(self.buffers.ring.lie(by)?)
    }

    /// Buffers that the server has.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.buffers.out.len()
    }
}
