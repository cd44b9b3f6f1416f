//! Long segment lists: for the commands whose chain does not fit their slot.

use memory::IoBuf;

/// How many of them a channel has. More such commands at once wait, counted as "no DMA resource".
const COUNT: usize = 64;
/// Segments of the longest chain: [`uring::Op::MAX_BUFS`] of data, header, status, and a few that a region border splits.
pub(crate) const LENGTH: usize = 1024 + 8;

/// Names one list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListId(u16);

/// A fixed pool of long segment lists.
#[derive(Debug)]
pub(crate) struct Lists {
    store: Vec<IoBuf>,
    free: Vec<u16>,
}

impl Lists {
    pub(crate) fn new() -> Lists {
        Lists { store: vec![IoBuf::EMPTY; COUNT * LENGTH], free: (0..COUNT as u16).collect() }
    }

    pub(crate) fn take(&mut self) -> Option<ListId> {
        self.free.pop().map(ListId)
    }

    pub(crate) fn give_back(&mut self, list: ListId) {
        debug_assert!(!self.free.contains(&list.0), "{list:?} is free already");
        self.free.push(list.0);
    }

    pub(crate) fn get(&mut self, list: ListId) -> &mut [IoBuf] {
        &mut self.store[usize::from(list.0) * LENGTH..][..LENGTH]
    }
}
