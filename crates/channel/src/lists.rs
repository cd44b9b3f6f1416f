//! Long segment lists: for the commands whose chain does not fit their slot.
//!
//! A queue may have some of its own, for chains of moderate length ([`crate::Opened`]); what they do not hold, and everything of a queue
//! without any, goes into those that all queues of the channel share.

use memory::IoBuf;

/// How many of them a channel has. More such commands at once wait, counted as "no DMA resource".
const COUNT: usize = 64;
/// Segments of the longest chain: [`uring::Op::MAX_BUFS`] of data, header, status, and a few that a region border splits.
pub const LIST_SEGMENTS: usize = 1024 + 8;

/// Names one list: below [`COUNT`] a shared one, else a queue's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListId(u16);

/// A fixed pool of long segment lists.
#[derive(Debug)]
pub struct Lists {
    store: Vec<IoBuf>,
    free: Vec<u16>,
    own: Vec<Option<Box<[IoBuf]>>>,
}

impl Lists {
    pub(crate) fn new() -> Lists {
        Lists {
            store: vec![IoBuf::EMPTY; COUNT * LIST_SEGMENTS],
            free: (0..COUNT as u16).collect(),
            own: Vec::new(),
        }
    }

    pub(crate) fn take(&mut self) -> Option<ListId> {
        self.free.pop().map(ListId)
    }

    /// Makes `count` lists for a queue of its own, each for `length` segments and no longer than the shared ones. Fewer, when the channel
    /// has no more numbers for them.
    pub(crate) fn add_own(&mut self, count: u16, length: usize) -> Vec<ListId> {
        let mut ids = Vec::with_capacity(usize::from(count));
        let mut place = 0;
        while ids.len() < usize::from(count) {
            while self.own.get(place).is_some_and(Option::is_some) {
                place += 1;
            }
            let Ok(id) = u16::try_from(COUNT + place) else { break };
            if place == self.own.len() {
                self.own.push(None);
            }
            self.own[place] = Some(vec![IoBuf::EMPTY; length.min(LIST_SEGMENTS)].into());
            ids.push(ListId(id));
        }
        ids
    }

    /// Takes back what [`Lists::add_own`] made. None of them is in use.
    pub(crate) fn remove_own(&mut self, ids: Vec<ListId>) {
        for id in ids {
            self.own[usize::from(id.0) - COUNT] = None;
        }
    }

    pub(crate) fn give_back(&mut self, list: ListId) {
        debug_assert!(!list.is_own(), "{list:?} is a queue's");
        debug_assert!(!self.free.contains(&list.0), "{list:?} is free already");
        self.free.push(list.0);
    }

    pub(crate) fn get(&mut self, list: ListId) -> &mut [IoBuf] {
        let place = usize::from(list.0);
        match place.checked_sub(COUNT) {
            None => &mut self.store[place * LIST_SEGMENTS..][..LIST_SEGMENTS],
            Some(own) => self.own[own].as_deref_mut().expect("a list stays while it is in use"),
        }
    }
}

impl ListId {
    /// Whether it is a queue's own.
    pub(crate) fn is_own(self) -> bool {
        usize::from(self.0) >= COUNT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_lists_have_their_length_and_their_numbers_are_used_again() {
        let mut lists = Lists::new();
        let (a, b) = (lists.add_own(3, 12), lists.add_own(2, 5000));
        assert!(a.iter().chain(&b).all(|id| id.is_own()));
        assert_eq!((lists.get(a[0]).len(), lists.get(b[1]).len()), (12, LIST_SEGMENTS));
        let before = lists.own.len();
        lists.remove_own(a);
        let c = lists.add_own(3, 7);
        assert_eq!((lists.own.len(), lists.get(c[2]).len()), (before, 7));
        assert_eq!(lists.get(b[0]).len(), LIST_SEGMENTS);
        let shared = lists.take().unwrap();
        assert!(!shared.is_own());
        lists.give_back(shared);
        assert_eq!(lists.add_own(u16::MAX, 1).len(), usize::from(u16::MAX) + 1 - COUNT - 5);
    }
}
