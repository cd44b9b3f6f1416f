//! Writes to the same place come one after the other.
//!
//! ```text
//! comes ──► meets none that came before ──► goes ──► over ──► those behind it are looked at again
//!       └─► is behind the last that it meets ◄──────────────────────────┘
//! ```
//!
//! One that waits is behind one other, and looked at again when that is over: what the end of a write costs depends on how many wait for it, and not on how many wait.

use std::collections::BTreeMap;

/// A place: the LU, its first byte, and the byte behind it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Range {
    pub(super) lu: u32,
    pub(super) at: u64,
    pub(super) end: u64,
}

impl Range {
    fn meets(&self, other: &Range) -> bool {
        self.lu == other.lu && self.at < other.end && other.at < self.end
    }
}

/// One that is not over.
#[derive(Debug)]
struct Entry<T> {
    end: u64,
    /// Those that are looked at again when it is over, in the order in which they came.
    behind: Vec<(u64, Range, T)>,
}

/// All that are not over, by LU, first byte, and the order in which they came.
#[derive(Debug)]
pub(super) struct Order<T> {
    all: BTreeMap<(u32, u64, u64), Entry<T>>,
    /// The longest that each LU had since it last had none, and how many are not over.
    longest: BTreeMap<u32, (u64, usize)>,
    next: u64,
}

impl<T> Default for Order<T> {
    fn default() -> Order<T> {
        Order { all: BTreeMap::new(), longest: BTreeMap::new(), next: 0 }
    }
}

impl<T> Order<T> {
    /// Takes one that comes, which is not empty: it is given back if it goes at once, and by [`Order::over`] otherwise.
    pub(super) fn come(&mut self, range: Range, what: T) -> Option<T> {
        let number = self.next;
        self.next += 1;
        let (longest, count) = self.longest.entry(range.lu).or_default();
        (*longest, *count) = ((range.end - range.at).max(*longest), *count + 1);
        let entry = Entry { end: range.end, behind: Vec::new() };
        self.all.insert((range.lu, range.at, number), entry);
        self.line_up(number, range, what)
    }

    /// The one that goes at this place is over; those that go now, in the order in which they came.
    pub(super) fn over(&mut self, lu: u32, at: u64) -> Vec<T> {
        // Those that begin there meet, and so the first that came is the one that goes.
        let first = self.all.range((lu, at, 0)..=(lu, at, u64::MAX)).next().map(|(key, _)| *key);
        let Some(Entry { behind, .. }) = first.and_then(|key| self.all.remove(&key)) else {
            return Vec::new();
        };
        if let Some((_, count)) = self.longest.get_mut(&lu) {
            *count -= 1;
            if *count == 0 {
                self.longest.remove(&lu);
            }
        }
        let again = |(number, range, what)| self.line_up(number, range, what);
        behind.into_iter().filter_map(again).collect()
    }

    /// Puts one behind the last that came before and that it meets; it is given back if there is none.
    fn line_up(&mut self, number: u64, range: Range, what: T) -> Option<T> {
        let longest = self.longest.get(&range.lu).map_or(0, |(longest, _)| *longest);
        let first = range.at.saturating_sub(longest);
        let near = self.all.range((range.lu, first, 0)..(range.lu, range.end, 0));
        let meets = |((lu, at, before), entry): &(&(u32, u64, u64), &Entry<T>)| {
            *before < number && range.meets(&Range { lu: *lu, at: *at, end: entry.end })
        };
        let last = near.filter(meets).map(|(key, _)| *key).max_by_key(|(.., before)| *before);
        match last.and_then(|key| self.all.get_mut(&key)) {
            Some(entry) => {
                // One that was behind another may have come before some that are here.
                let at = entry.behind.partition_point(|(before, ..)| *before < number);
                entry.behind.insert(at, (number, range, what));
                None
            }
            None => Some(what),
        }
    }
}

#[cfg(test)]
mod tests {
    use memory::random::Random;

    use super::*;

    /// All that came, in order: whether it goes.
    #[derive(Default)]
    struct Naive(Vec<(u64, Range, bool)>);

    impl Naive {
        fn go(&mut self) -> Vec<u64> {
            let mut new = Vec::new();
            for index in 0..self.0.len() {
                let (number, range, goes) = self.0[index];
                if !goes && !self.0[..index].iter().any(|(_, before, _)| before.meets(&range)) {
                    self.0[index].2 = true;
                    new.push(number);
                }
            }
            new
        }
    }

    #[test]
    fn those_that_meet_go_in_the_order_in_which_they_came() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let (mut order, mut naive) = (Order::default(), Naive::default());
            let mut waited = 0;
            for number in 0..400 {
                let going: Vec<Range> =
                    naive.0.iter().filter(|one| one.2).map(|one| one.1).collect();
                if !going.is_empty() && random.below(9) < 4 {
                    let Range { lu, at, .. } = going[random.below(going.len() as u64) as usize];
                    naive.0.retain(|(_, range, goes)| !goes || (range.lu, range.at) != (lu, at));
                    let mut goes = order.over(lu, at);
                    goes.sort_unstable();
                    assert_eq!(goes, naive.go(), "seed {seed}");
                    continue;
                }
                let long = if random.below(20) == 0 { 60 } else { 5 };
                let (lu, at) = (random.below(2) as u32, random.below(40));
                let range = Range { lu, at, end: at + 1 + random.below(long) };
                naive.0.push((number, range, false));
                let goes: Vec<u64> = order.come(range, number).into_iter().collect();
                waited += usize::from(goes.is_empty());
                assert_eq!(goes, naive.go(), "seed {seed}");
            }
            assert!(waited > 50, "{waited}");
        }
    }

    /// However many wait, the end of one looks at those alone that wait for it.
    #[test]
    fn nobody_is_looked_at_who_waits_for_another() {
        let mut order = Order::default();
        let places = 1000;
        for number in 0..5 * places {
            let at = number % places * 8;
            let goes = order.come(Range { lu: 1, at, end: at + 8 }, number);
            assert_eq!(goes.is_some(), number < places);
        }
        for number in 0..5 * places {
            let at = number % places * 8;
            let behind = order.all.range((1, at, 0)..).next().unwrap().1.behind.len();
            assert!(behind <= 1, "each waits for the one before it");
            let goes = order.over(1, at);
            assert_eq!(goes, Vec::from_iter((number < 4 * places).then_some(number + places)));
        }
        assert!(order.all.is_empty() && order.longest.is_empty());
    }
}
