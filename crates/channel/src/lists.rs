//! Segment lists: for the commands whose chain does not fit their slot.
//!
//! A queue has one of the longest of its own, so that it gets on whatever others do, and may have shorter ones for chains of moderate length
//! ([`crate::Opened`]). What these do not hold goes into those that all queues of the channel share. Of them a queue may have as many as it
//! leaves to others: half of them beside queues that want none, a third beside one that does as it does. So whoever keeps its lists for
//! long, since its volume is slow or held back, never has the last one.

use memory::IoBuf;

/// How many the queues of a channel share. More such commands at once wait, counted as "no DMA resource". In a simulation they are to run out.
const COUNT: usize = if cfg!(feature = "sim") { 4 } else { 128 };
/// Segments of the longest chain: [`uring::Op::MAX_BUFS`] of data, header, status, and a few that a region border splits.
pub const LIST_SEGMENTS: usize = 1024 + 8;

/// Names one list: below [`COUNT`] a shared one, else a queue's own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ListId(u16);

/// All lists of a channel.
#[derive(Debug)]
pub struct Lists {
    store: Vec<IoBuf>,
    free: Vec<u16>,
    own: Vec<Option<Box<[IoBuf]>>>,
}

/// The lists of one queue.
#[derive(Debug, Default)]
pub(crate) struct OwnLists {
    /// The long one, and whether it is free.
    long: Option<ListId>,
    long_is_free: bool,
    /// Those of the shorter ones that are free.
    short: Vec<ListId>,
    /// How many shorter ones there are, and for how many segments each.
    shorts: usize,
    length: usize,
    /// Shared ones that it has.
    borrowed: usize,
}

impl OwnLists {
    /// Whether it has shorter ones.
    pub(crate) fn has_short(&self) -> bool {
        self.shorts > 0
    }

    /// Segments that its shorter ones hold.
    pub(crate) fn short_length(&self) -> usize {
        self.length
    }

    /// Whether a list is one of its shorter ones.
    pub(crate) fn is_short(&self, list: ListId) -> bool {
        list.is_own() && self.long != Some(list)
    }
}

impl Lists {
    pub(crate) fn new() -> Lists {
        Lists {
            store: vec![IoBuf::EMPTY; COUNT * LIST_SEGMENTS],
            free: (0..COUNT as u16).collect(),
            own: Vec::new(),
        }
    }

    /// Makes the lists of a queue: a long one, and `count` shorter ones, each for `length` segments. Fewer, when the channel has no more
    /// numbers for them.
    pub(crate) fn open(&mut self, count: u16, length: usize) -> OwnLists {
        let long = self.add(LIST_SEGMENTS);
        let length = length.min(LIST_SEGMENTS);
        let short: Vec<ListId> = (0..count).map_while(|_| self.add(length)).collect();
        let shorts = short.len();
        OwnLists { long, long_is_free: long.is_some(), short, shorts, length, borrowed: 0 }
    }

    fn add(&mut self, length: usize) -> Option<ListId> {
        let place = self.own.iter().position(Option::is_none).unwrap_or(self.own.len());
        let id = u16::try_from(COUNT + place).ok()?;
        if place == self.own.len() {
            self.own.push(None);
        }
        self.own[place] = Some(vec![IoBuf::EMPTY; length].into());
        Some(ListId(id))
    }

    /// Takes back what [`Lists::open`] made. None of them is in use.
    pub(crate) fn close(&mut self, own: OwnLists) {
        debug_assert!(own.borrowed == 0 && own.short.len() == own.shorts, "in use: {own:?}");
        for id in own.short.into_iter().chain(own.long) {
            self.own[usize::from(id.0) - COUNT] = None;
        }
    }

    /// Whether a queue gets a list now, one of the longest if it wants that.
    pub(crate) fn has_for(&self, own: &OwnLists, long: bool) -> bool {
        if memory::planted("one-pool") {
            return !self.free.is_empty();
        }
        (!long && !own.short.is_empty()) || own.long_is_free || own.borrowed < self.free.len()
    }

    /// A list for a command of a queue, one of the longest if it wants that.
    pub(crate) fn take(&mut self, own: &mut OwnLists, long: bool) -> Option<ListId> {
        if memory::planted("one-pool") {
            let list = self.free.pop().map(ListId);
            own.borrowed += usize::from(list.is_some());
            return list;
        }
        if !long && let Some(list) = own.short.pop() {
            return Some(list);
        }
        if std::mem::take(&mut own.long_is_free) {
            return own.long;
        }
        if own.borrowed >= self.free.len() {
            return None;
        }
        own.borrowed += 1;
        self.free.pop().map(ListId)
    }

    /// A command of the queue no longer needs its list.
    #[cold]
    pub(crate) fn give_back(&mut self, own: &mut OwnLists, list: ListId) {
        if !list.is_own() {
            debug_assert!(!self.free.contains(&list.0), "{list:?} is free already");
            self.free.push(list.0);
            own.borrowed -= 1;
        } else if own.long == Some(list) {
            own.long_is_free = true;
        } else {
            own.short.push(list);
        }
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
    fn is_own(self) -> bool {
        usize::from(self.0) >= COUNT
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn own_lists_have_their_length_and_their_numbers_are_used_again() {
        let mut lists = Lists::new();
        let (mut a, mut b) = (lists.open(3, 12), lists.open(2, 5000));
        let (one, other) = (lists.take(&mut a, false).unwrap(), lists.take(&mut b, false).unwrap());
        assert_eq!((lists.get(one).len(), lists.get(other).len()), (12, LIST_SEGMENTS));
        assert!(a.is_short(one) && b.is_short(other));
        let long = lists.take(&mut a, true).unwrap();
        assert!(lists.get(long).len() == LIST_SEGMENTS && !a.is_short(long));
        lists.give_back(&mut a, one);
        lists.give_back(&mut a, long);
        let before = lists.own.len();
        lists.close(a);
        let mut c = lists.open(3, 7);
        let seven = lists.take(&mut c, false).unwrap();
        assert_eq!((lists.own.len(), lists.get(seven).len()), (before, 7));
        assert_eq!(lists.get(other).len(), LIST_SEGMENTS);
        let all = lists.open(u16::MAX, 1);
        assert_eq!(all.shorts, usize::from(u16::MAX) + 1 - COUNT - 4 - 3 - 1);
    }

    /// However many queues keep all that they get, the next one gets some, too.
    #[test]
    fn a_queue_takes_as_many_of_the_shared_lists_as_it_leaves_to_others() {
        let mut lists = Lists::new();
        let all_of = |lists: &mut Lists| {
            let mut own = lists.open(0, 0);
            let taken = std::iter::from_fn(|| lists.take(&mut own, true)).collect::<Vec<_>>();
            assert!(!lists.has_for(&own, true));
            (own, taken)
        };
        let (mut first, taken) = all_of(&mut lists);
        assert_eq!(taken.len(), 1 + COUNT / 2);
        let others: Vec<_> = (0..200).map(|_| all_of(&mut lists)).collect();
        assert_eq!(others[0].1.len(), 1 + COUNT / 4);
        assert!(others.iter().all(|(_, taken)| !taken.is_empty()), "each has one of its own");
        // What comes back is the others', until all have alike.
        taken.into_iter().for_each(|list| lists.give_back(&mut first, list));
        assert!(others.iter().filter(|(own, _)| lists.has_for(own, true)).count() > 100);
        lists.close(first);
    }
}
