//! Holding completions back until they can be given in the order the heads were taken
//! (VIRTIO_F_IN_ORDER; virtio 1.3, 2.7.9).

use crate::layout::QUEUE_SIZE_MAX;

/// What is known of a head in flight.
#[derive(Clone, Copy)]
struct Slot {
    /// Writable bytes of its chain, if the chain was sound.
    writable: Option<u64>,
    written: u32,
    done: bool,
}

const NOTHING: Slot = Slot { writable: None, written: 0, done: false };

/// Heads that go back together, by one used element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) last: u16,
    pub(super) written: u32,
    len: u16,
}

/// The heads in flight in the order they were taken.
pub(super) struct InOrder {
    /// Positions run freely, as the indices of the ring do.
    order: [u16; QUEUE_SIZE_MAX as usize],
    first: u16,
    end: u16,
    /// Finished and not gone back.
    held: u16,
    slots: Box<[Slot]>,
}

fn at(position: u16) -> usize {
    usize::from(position % QUEUE_SIZE_MAX)
}

impl InOrder {
    pub(super) fn new(size: u16) -> InOrder {
        let slots = vec![NOTHING; usize::from(size)].into();
        InOrder { order: [0; QUEUE_SIZE_MAX as usize], first: 0, end: 0, held: 0, slots }
    }

    /// Heads that are finished and wait for one before them.
    pub(super) fn held(&self) -> u16 {
        self.held
    }

    pub(super) fn take(&mut self, head: u16) {
        self.order[at(self.end)] = head;
        self.end = self.end.wrapping_add(1);
        self.slots[usize::from(head)] = NOTHING;
    }

    pub(super) fn undo(&mut self, head: u16) {
        self.end = self.end.wrapping_sub(1);
        assert_eq!(self.order[at(self.end)], head, "not the latest");
    }

    pub(super) fn set_writable(&mut self, head: u16, writable: Option<u64>) {
        self.slots[usize::from(head)].writable = writable;
    }

    pub(super) fn finish(&mut self, head: u16, written: u32) {
        let slot = &mut self.slots[usize::from(head)];
        slot.written = written;
        slot.done = true;
        self.held += 1;
    }

    /// The longest run that can go back now.
    pub(super) fn next_run(&self) -> Option<Run> {
        let mut run = None;
        let mut position = self.first;
        while position != self.end {
            let head = self.order[at(position)];
            let slot = self.slots[usize::from(head)];
            if !slot.done {
                break;
            }
            position = position.wrapping_add(1);
            let len = position.wrapping_sub(self.first);
            run = Some(Run { last: head, written: slot.written, len });
            if slot.writable != Some(u64::from(slot.written)) {
                // Skipped heads count as written to the end; this one was not, so it may only be
                // a last one.
                break;
            }
        }
        run
    }

    /// Takes the heads of a run out, oldest first.
    pub(super) fn pop_run(&mut self, run: Run) -> impl Iterator<Item = u16> + use<'_> {
        let first = self.first;
        self.first = first.wrapping_add(run.len);
        self.held -= run.len;
        (0..run.len).map(move |i| self.order[at(first.wrapping_add(i))])
    }
}
