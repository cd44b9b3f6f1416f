//! Holding completions back until they can be given in the order the heads were taken
//! (VIRTIO_F_IN_ORDER; virtio 1.3, 2.7.9).
//!
//! Each head gets an element of its own. The clause lets one element stand for several heads, and drivers may be written for devices that
//! make no use of that: DPDK's reads the length of each buffer from the element at its place.

use crate::layout::QUEUE_SIZE_MAX;

/// The heads in flight in the order they were taken.
pub(super) struct InOrder {
    /// Positions run freely, as the indices of the ring do.
    order: [u16; QUEUE_SIZE_MAX as usize],
    first: u16,
    end: u16,
    /// Finished and not gone back.
    held: u16,
    /// By head: what was written of one that is held.
    written: Box<[Option<u32>]>,
}

fn at(position: u16) -> usize {
    usize::from(position % QUEUE_SIZE_MAX)
}

impl InOrder {
    pub(super) fn new(size: u16) -> InOrder {
        let written = vec![None; usize::from(size)].into();
        InOrder { order: [0; QUEUE_SIZE_MAX as usize], first: 0, end: 0, held: 0, written }
    }

    /// Heads that are finished and wait for one before them.
    pub(super) fn held(&self) -> u16 {
        self.held
    }

    #[inline]
    pub(super) fn take(&mut self, head: u16) {
        self.order[at(self.end)] = head;
        self.end = self.end.wrapping_add(1);
    }

    pub(super) fn undo(&mut self, head: u16) {
        self.end = self.end.wrapping_sub(1);
        assert_eq!(self.order[at(self.end)], head, "not the latest");
    }

    /// A head is finished; whether it goes back now, as the oldest. Else it is held.
    #[inline]
    pub(super) fn finish(&mut self, head: u16, written: u32) -> bool {
        // One that is in flight has a place, so there is an oldest.
        if self.order[at(self.first)] == head {
            self.first = self.first.wrapping_add(1);
            return true;
        }
        self.hold(head, written);
        false
    }

    #[cold]
    fn hold(&mut self, head: u16, written: u32) {
        self.written[usize::from(head)] = Some(written);
        self.held += 1;
    }

    /// The oldest, if it is held: it goes back now, with what was written.
    pub(super) fn next(&mut self) -> Option<(u16, u32)> {
        if self.held == 0 {
            return None;
        }
        let head = self.order[at(self.first)];
        let written = self.written[usize::from(head)].take()?;
        self.first = self.first.wrapping_add(1);
        self.held -= 1;
        Some((head, written))
    }
}
