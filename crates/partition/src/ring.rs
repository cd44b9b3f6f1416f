//! What the queues of every device have in common: a ring, the kick, and numbered slots.
//!
//! The life of a slot, which no submission allocates for:
//!
//! ```text
//! take() ──► add(slot, …) ──► publish() ──► poll() ──► give_back(slot)
//! ```

use std::sync::Arc;

use vmm_sys_util::eventfd::EventFd;
use vring::Head;
use vring::driver::{AddError, DriverMemory, DriverQueue, Segment, UsedError};

/// A slot of a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Slot(pub u16);

/// A ring whose chains are known by their slots.
pub(crate) struct SlotRing {
    ring: DriverQueue,
    kick: Arc<EventFd>,
    slots: u16,
    free: Vec<u16>,
    indirect: bool,
    kicks: u64,
    _memory: Arc<DriverMemory>,
}

impl SlotRing {
    pub(crate) fn new(
        ring: DriverQueue,
        memory: &Arc<DriverMemory>,
        kick: Arc<EventFd>,
        slots: u16,
        indirect: bool,
    ) -> Self {
        let free = (0..slots).rev().collect();
        Self { ring, kick, slots, free, indirect, kicks: 0, _memory: Arc::clone(memory) }
    }

    pub(crate) fn depth(&self) -> usize {
        usize::from(self.slots)
    }

    pub(crate) fn busy(&self) -> usize {
        self.depth() - self.free.len()
    }

    pub(crate) fn kicks(&self) -> u64 {
        self.kicks
    }

    pub(crate) fn ring(&self) -> &DriverQueue {
        &self.ring
    }

    #[inline]
    pub(crate) fn take(&mut self) -> Option<Slot> {
        self.free.pop().map(Slot)
    }

    #[inline]
    pub(crate) fn give_back(&mut self, slot: Slot) {
        debug_assert!(!self.free.contains(&slot.0));
        self.free.push(slot.0);
    }

    /// The first `readable` segments of the chain are the device's to read, the others its to write.
    #[inline]
    pub(crate) fn add(
        &mut self,
        slot: Slot,
        chain: &[Segment],
        readable: usize,
    ) -> Result<(), AddError> {
        self.add_to_ring(slot, chain, readable, self.indirect).map(drop)
    }

    /// The same with a chain that has no end.
    pub(crate) fn add_endless(
        &mut self,
        slot: Slot,
        chain: &[Segment],
        readable: usize,
    ) -> Result<(), AddError> {
        let head = self.add_to_ring(slot, chain, readable, false)?;
        self.ring.make_endless(head);
        Ok(())
    }

    #[inline]
    fn add_to_ring(
        &mut self,
        slot: Slot,
        chain: &[Segment],
        readable: usize,
        indirect: bool,
    ) -> Result<Head, AddError> {
        let (readable, writable) = chain.split_at(readable);
        self.ring.add(readable, writable, u64::from(slot.0), indirect)
    }

    #[inline]
    pub(crate) fn publish(&mut self) -> std::io::Result<()> {
        if self.ring.publish() {
            self.kicks += 1;
            return self.kick.write(1);
        }
        Ok(())
    }

    /// Kicks for nothing.
    pub(crate) fn kick(&self) -> std::io::Result<()> {
        self.kick.write(1)
    }

    /// Moves the indices of an idle ring without telling what is there.
    pub(crate) fn lie(&mut self, by: u16) -> std::io::Result<()> {
        self.ring.set_index(self.ring.avail_index().wrapping_add(by));
        self.kick.write(1)
    }

    /// A slot that came back, and the bytes that the server says it wrote.
    #[inline]
    pub(crate) fn poll(&mut self) -> Result<Option<(Slot, u32)>, UsedError> {
        let Some(completion) = self.ring.poll()? else { return Ok(None) };
        // Tokens are slots: what `add` gave comes back.
        Ok(Some((Slot(completion.token as u16), completion.written)))
    }

    #[inline]
    pub(crate) fn enable_interrupts(&mut self) -> bool {
        self.ring.enable_interrupts()
    }

    pub(crate) fn disable_interrupts(&mut self) {
        self.ring.disable_interrupts();
    }
}
