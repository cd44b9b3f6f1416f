//! The driver side of a split ring: what a guest does, in user space.
//!
//! Serves tests, the simulator, the user-space client and the load generator. [`DriverMemory`] is the "guest's"
//! memory on a memfd; [`DriverQueue`] adds chains, publishes them and polls for completions, without allocating
//! after it is made. It does not trust the device: a used index that jumps, an id that is not in
//! flight, a length beyond the buffers or an order that was promised and not kept is a [`UsedError`],
//! and its own bookkeeping is never read back from shared memory.
//!
//! One thread uses a queue; memory is shared between the threads of a client.

use std::collections::VecDeque;
use std::sync::Arc;

use memory::IoBuf;
use thiserror::Error;

use crate::handshake;
use crate::layout::{
    self, DESC_BYTES, DESC_F_INDIRECT, DESC_F_NEXT, DESC_F_WRITE, Desc, QUEUE_SIZE_MAX, Rings,
};
use crate::mem::{GuestAddr, UserAddr};
use crate::split::{Head, INDIRECT_MAX, QueueConfig};

mod memory_file;
#[cfg(test)]
mod tests;

pub use memory_file::{DriverMemory, DriverMemoryError, DriverRange};

/// How a queue is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverConfig {
    /// Descriptors: a power of two, at most 1024.
    pub size: u16,
    /// Use event indices in both directions.
    pub event_idx: bool,
    /// Entries of the indirect table that each head has; 0 for none.
    pub indirect_max: u16,
    /// Use descriptors in ring order and accept batched used elements.
    pub in_order: bool,
}

/// Where the queue's parts are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DriverAddresses {
    /// For SET_VRING_ADDR.
    pub desc: UserAddr,
    /// For SET_VRING_ADDR.
    pub avail: UserAddr,
    /// For SET_VRING_ADDR.
    pub used: UserAddr,
    /// The used ring as the guest sees it, for the dirty log.
    pub used_guest: GuestAddr,
}

/// Why a queue cannot be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DriverError {
    /// See the message.
    #[error("queue size {0}: a split ring has a power of two, at most {QUEUE_SIZE_MAX}")]
    Size(u16),
    /// See the message.
    #[error("indirect tables of {0} entries; at most {INDIRECT_MAX} are accepted")]
    Indirect(u16),
    /// See the message.
    #[error("the client's memory has no room for the queue; make it larger")]
    NoMemory,
}

/// Why a chain was not added.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum AddError {
    /// Poll first.
    #[error("not enough free descriptors")]
    Full,
    /// It never fits.
    #[error("the chain has more buffers than the queue or its indirect tables take")]
    TooLong,
    /// A chain has at least one buffer.
    #[error("the chain has no buffers")]
    Empty,
}

/// What the device wrote into the used ring that no device may.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum UsedError {
    #[error("used index jumped from {from} to {to} with {in_flight} requests in flight")]
    IndexJump { from: u16, to: u16, in_flight: u16 },
    #[error("used element names {id}, which is not in flight")]
    NotInFlight { id: u32 },
    #[error("used element of {id} says {written} bytes written of {writable}")]
    TooLong { id: u32, written: u32, writable: u64 },
}

/// A request that came back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Completion {
    /// What the caller gave with the chain.
    pub token: u64,
    /// Bytes written, as the device says. For a head that a batched element skips: all of them.
    pub written: u32,
    /// The chain's name.
    pub head: Head,
}

/// What the driver remembers of a head; private, so that the device cannot change it.
#[derive(Clone, Copy, Default)]
struct Slot {
    token: u64,
    writable: u64,
    /// Descriptors of the ring that the chain takes; 0: not in flight.
    descs: u16,
    /// The next descriptor of the chain, of whichever chain this one is in.
    next: u16,
}

/// A queue, driver side.
pub struct DriverQueue {
    rings: Rings,
    config: DriverConfig,
    addresses: DriverAddresses,
    /// Next available entry to fill.
    next_avail: u16,
    /// What the device sees.
    published: u16,
    /// Next used element to read.
    next_used: u16,
    /// In order: completions that a batched element still stands for, and the last one's head.
    batch: Option<(u16, u32)>,
    in_flight: u16,
    /// Last in, first out, unless the ring's order is asked for.
    free: VecDeque<u16>,
    slots: Box<[Slot]>,
    /// In order: heads as they were added.
    order: VecDeque<u16>,
    /// The first table; those of the heads follow each other.
    tables: Option<(GuestAddr, IoBuf)>,
    memory: Arc<DriverMemory>,
}

// SAFETY: the pointers name memory that `memory` keeps mapped and that any thread may use.
unsafe impl Send for DriverQueue {}

/// A buffer of a chain.
pub type Segment = (GuestAddr, u32);

impl DriverQueue {
    /// Makes an empty queue in `memory`.
    pub fn new(memory: &Arc<DriverMemory>, config: DriverConfig) -> Result<Self, DriverError> {
        let size = config.size;
        if !size.is_power_of_two() || size > QUEUE_SIZE_MAX {
            return Err(DriverError::Size(size));
        }
        if u32::from(config.indirect_max) > INDIRECT_MAX {
            return Err(DriverError::Indirect(config.indirect_max));
        }
        let alloc = |len: usize, align| memory.alloc(len, align).ok_or(DriverError::NoMemory);
        // Each part on its own cache lines.
        let desc = alloc(layout::desc_bytes(size), 64)?;
        let avail = alloc(layout::avail_bytes(size), 64)?;
        let used = alloc(layout::used_bytes(size), 64)?;
        let table_bytes = usize::from(config.indirect_max) * DESC_BYTES * usize::from(size);
        let tables = match table_bytes {
            0 => None,
            bytes => Some(alloc(bytes, 64)?).map(|range| (range.guest, range.buf)),
        };
        for range in [&desc, &avail, &used] {
            range.buf.fill(0);
        }
        let [d, a, u] = [&desc, &avail, &used].map(|range| range.buf.as_ptr());
        // SAFETY: allocated with these sizes and alignments; `memory` keeps them mapped and the
        // queue keeps `memory`.
        let rings = unsafe { Rings::new(d, a, u, size) };
        Ok(DriverQueue {
            rings,
            config,
            addresses: DriverAddresses {
                desc: desc.user,
                avail: avail.user,
                used: used.user,
                used_guest: used.guest,
            },
            next_avail: 0,
            published: 0,
            next_used: 0,
            batch: None,
            in_flight: 0,
            free: if config.in_order { (0..size).collect() } else { (0..size).rev().collect() },
            slots: vec![Slot::default(); usize::from(size)].into(),
            order: VecDeque::with_capacity(usize::from(size)),
            tables,
            memory: Arc::clone(memory),
        })
    }

    /// How the queue was made.
    pub fn config(&self) -> DriverConfig {
        self.config
    }

    /// Where its parts are.
    pub fn addresses(&self) -> DriverAddresses {
        self.addresses
    }

    /// What its client tells a server that begins where the used ring stands: without a dirty log and without an in-flight region.
    pub fn device_config(&self) -> QueueConfig {
        let DriverAddresses { desc, avail, used, .. } = self.addresses;
        let DriverConfig { size, event_idx, indirect_max, in_order } = self.config;
        QueueConfig {
            size,
            desc,
            avail,
            used,
            base: self.used_index(),
            at_used: false,
            event_idx,
            indirect: indirect_max > 0,
            in_order,
            used_log: None,
            log: None,
            inflight: None,
        }
    }

    /// The memory it lives in.
    pub fn memory(&self) -> &Arc<DriverMemory> {
        &self.memory
    }

    /// Requests added and not polled.
    pub fn in_flight(&self) -> u16 {
        self.in_flight
    }

    /// Free descriptors.
    pub fn free(&self) -> usize {
        self.free.len()
    }

    /// The available index that the device sees.
    pub fn avail_index(&self) -> u16 {
        self.published
    }

    /// The used index in the ring: SET_VRING_BASE for a device that starts now. If the one before died
    /// and left no base, everything from here on is not done (or is in the in-flight region).
    pub fn used_index(&self) -> u16 {
        handshake::observe(self.rings.used_idx())
    }

    /// Moves an idle queue to another index, in both rings: as if so many requests had passed.
    /// Lets tests begin near the wrap at 65535.
    pub fn set_index(&mut self, index: u16) {
        assert_eq!(self.in_flight, 0, "the queue is not idle");
        (self.next_avail, self.published, self.next_used) = (index, index, index);
        handshake::publish(self.rings.avail_idx(), index);
        handshake::publish(self.rings.used_idx(), index);
    }

    /// Adds a chain: the buffers the device reads, then those it writes. `indirect` puts it into
    /// the head's own table, so that it takes one descriptor of the ring. The device sees it after the
    /// next `publish`; `token` comes back with its completion.
    #[inline]
    pub fn add(
        &mut self,
        readable: &[Segment],
        writable: &[Segment],
        token: u64,
        indirect: bool,
    ) -> Result<Head, AddError> {
        let count = readable.len() + writable.len();
        let room = if indirect { self.config.indirect_max } else { self.config.size };
        if count == 0 {
            return Err(AddError::Empty);
        }
        if count > usize::from(room) {
            return Err(AddError::TooLong);
        }
        let needed = if indirect { 1 } else { count };
        if needed > self.free.len() {
            return Err(AddError::Full);
        }
        let head = if indirect {
            self.add_indirect(readable, writable)
        } else {
            self.add_direct(readable, writable)
        };
        // The cast fits: at most `size`.
        let descs = needed as u16;
        let slot = &mut self.slots[usize::from(head)];
        slot.token = token;
        slot.descs = descs;
        slot.writable = writable.iter().map(|&(_, len)| u64::from(len)).sum();
        if self.config.in_order {
            self.order.push_back(head);
        }
        self.rings.set_avail_entry(self.next_avail, head);
        self.next_avail = self.next_avail.wrapping_add(1);
        self.in_flight += 1;
        Ok(Head(head))
    }

    #[inline]
    fn take_free(&mut self) -> u16 {
        let index = if self.config.in_order { self.free.pop_front() } else { self.free.pop_back() };
        index.expect("the caller counted")
    }

    #[inline]
    fn add_direct(&mut self, readable: &[Segment], writable: &[Segment]) -> u16 {
        let head = self.take_free();
        let mut index = head;
        let mut left = readable.len() + writable.len();
        for (segment, flags) in segments(readable, writable) {
            left -= 1;
            if left == 0 {
                self.rings.set_desc(index, desc(segment, flags, 0));
            } else {
                let next = self.take_free();
                self.slots[usize::from(index)].next = next;
                self.rings.set_desc(index, desc(segment, flags | DESC_F_NEXT, next));
                index = next;
            }
        }
        head
    }

    #[inline]
    fn add_indirect(&mut self, readable: &[Segment], writable: &[Segment]) -> u16 {
        let head = self.take_free();
        let (guest, tables) = self.tables.expect("indirect_max is not 0");
        let bytes = usize::from(self.config.indirect_max) * DESC_BYTES;
        let table = tables.slice(usize::from(head) * bytes, bytes);
        let count = readable.len() + writable.len();
        for (i, (segment, flags)) in segments(readable, writable).enumerate() {
            let last = i + 1 == count;
            // The cast fits: at most `indirect_max`.
            let entry = match last {
                true => desc(segment, flags, 0),
                false => desc(segment, flags | DESC_F_NEXT, i as u16 + 1),
            };
            // SAFETY: `i` is below `indirect_max`, which the table has; tables are aligned to 16.
            unsafe { entry.write(table.as_ptr().cast(), i) };
        }
        let addr = guest.0 + (usize::from(head) * bytes) as u64;
        // The cast fits: at most INDIRECT_MAX entries.
        let len = (count * DESC_BYTES) as u32;
        self.rings.set_desc(head, desc((GuestAddr(addr), len), DESC_F_INDIRECT, 0));
        head
    }

    /// Makes a chain that was added, and is not published, go round for ever, as a broken driver does: its last descriptor names its first.
    pub fn make_endless(&mut self, Head(head): Head) {
        let slot = self.slots[usize::from(head)];
        let last = (1..slot.descs).fold(head, |at, _| self.slots[usize::from(at)].next);
        let Desc { addr, len, flags, .. } = self.rings.desc(last);
        self.rings.set_desc(last, Desc { addr, len, flags: flags | DESC_F_NEXT, next: head });
    }

    /// Makes what was added visible, and says whether the device wants a kick.
    #[inline]
    pub fn publish(&mut self) -> bool {
        let (old, new) = (self.published, self.next_avail);
        if old == new {
            return false;
        }
        self.published = new;
        handshake::publish(self.rings.avail_idx(), new);
        if self.config.event_idx {
            handshake::must_wake_event(self.rings.avail_event(), new, old)
        } else {
            handshake::must_wake_flag(self.rings.used_flags())
        }
    }

    /// The next request that came back. After an error the queue is of no more use.
    #[inline]
    pub fn poll(&mut self) -> Result<Option<Completion>, UsedError> {
        if self.batch.is_some() {
            return self.poll_batch();
        }
        let index = handshake::observe(self.rings.used_idx());
        let ready = index.wrapping_sub(self.next_used);
        if ready == 0 {
            return Ok(None);
        }
        if ready > self.in_flight || ready > self.published.wrapping_sub(self.next_used) {
            let (from, in_flight) = (self.next_used, self.in_flight);
            return Err(UsedError::IndexJump { from, to: index, in_flight });
        }
        let (id, written) = self.rings.used_entry(self.next_used);
        if self.config.in_order {
            return self.start_batch(id, written, ready);
        }
        self.complete(id, written).map(Some)
    }

    /// In order: the element is for all heads up to `id`, at most `ready` of them.
    fn start_batch(
        &mut self,
        id: u32,
        written: u32,
        ready: u16,
    ) -> Result<Option<Completion>, UsedError> {
        let place = self.order.iter().take(usize::from(ready)).position(|&h| u32::from(h) == id);
        let Some(skipped) = place else {
            return Err(UsedError::NotInFlight { id });
        };
        // The cast fits: below `ready`.
        self.batch = Some((skipped as u16, written));
        self.poll_batch()
    }

    fn poll_batch(&mut self) -> Result<Option<Completion>, UsedError> {
        let (skipped, written) = self.batch.take().expect("the caller looked");
        let head = self.order.pop_front().expect("a batch is no longer than the order");
        if skipped == 0 {
            return self.complete(u32::from(head), written).map(Some);
        }
        self.batch = Some((skipped - 1, written));
        // 2.7.9: what is skipped was used to the end.
        let all = u32::try_from(self.slots[usize::from(head)].writable).unwrap_or(u32::MAX);
        self.complete(u32::from(head), all).map(Some)
    }

    /// Judges a used element and frees the chain.
    #[inline]
    fn complete(&mut self, id: u32, written: u32) -> Result<Completion, UsedError> {
        let head = u16::try_from(id).ok().filter(|&head| head < self.config.size);
        let slot = head.map(|head| self.slots[usize::from(head)]).filter(|slot| slot.descs != 0);
        let (Some(head), Some(slot)) = (head, slot) else {
            return Err(UsedError::NotInFlight { id });
        };
        if u64::from(written) > slot.writable {
            return Err(UsedError::TooLong { id, written, writable: slot.writable });
        }
        self.slots[usize::from(head)].descs = 0;
        let mut index = head;
        for left in (0..slot.descs).rev() {
            self.free.push_back(index);
            if left > 0 {
                index = self.slots[usize::from(index)].next;
            }
        }
        self.in_flight -= 1;
        self.next_used = self.next_used.wrapping_add(1);
        Ok(Completion { token: slot.token, written, head: Head(head) })
    }

    /// Asks for an interrupt at the next completion. True: something came back meanwhile, do not
    /// sleep.
    pub fn enable_interrupts(&mut self) -> bool {
        let index = self.rings.used_idx();
        if self.config.event_idx {
            handshake::arm_event(self.rings.used_event(), index, self.next_used)
        } else {
            handshake::arm_flag(self.rings.avail_flags(), index, self.next_used)
        }
    }

    /// Interrupts are not needed for now: the caller polls.
    pub fn disable_interrupts(&mut self) {
        if !self.config.event_idx {
            handshake::quiet_flag(self.rings.avail_flags());
        }
    }
}

#[inline]
fn desc((addr, len): Segment, flags: u16, next: u16) -> Desc {
    Desc { addr: addr.0, len, flags, next }
}

#[inline]
fn segments<'s>(
    readable: &'s [Segment],
    writable: &'s [Segment],
) -> impl Iterator<Item = (Segment, u16)> + use<'s> {
    let readable = readable.iter().map(|&segment| (segment, 0));
    readable.chain(writable.iter().map(|&segment| (segment, DESC_F_WRITE)))
}
