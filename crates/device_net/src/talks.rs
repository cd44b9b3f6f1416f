//! Who sends to whom: what the balancer needs, to bring those together who talk.
//!
//! A pair that sends keeps a table of those to whom it sends most, with how many frames each got: the *space saving* of Metwally and others (2005), so whoever
//! gets more than one of [`TALKS`] frames is in it, and who is new takes the place of the one that got least of late. Only the channel of the sending queue writes to
//! it, and by plain stores; the balancer reads it now and then, and takes no harm from a table that changes meanwhile.

use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

use switch::PortId;

/// So many receivers have a place.
const TALKS: usize = 8;
/// After so many frames what was before counts half.
const HALF_LIFE: u32 = 4096;

/// The table of a pair. On lines of its own: others write to the rest of the pair.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(crate) struct Talks([Slot; TALKS]);

#[derive(Debug, Default)]
struct Slot {
    /// One more than the port, and in the low 16 bits the number of the pair. 0: nobody.
    whom: AtomicU64,
    /// How many it got since it has the place.
    frames: AtomicU64,
}

fn key(port: PortId, pair: u16) -> u64 {
    (u64::from(port.0) + 1) << 16 | u64::from(pair)
}

impl Talks {
    /// Those to whom it sends most: port, number of the pair, and frames since they have their place.
    pub(crate) fn each(&self) -> impl Iterator<Item = (PortId, u16, u64)> + '_ {
        self.0.iter().filter_map(|slot| {
            let whom = slot.whom.load(Acquire);
            let frames = slot.frames.load(Acquire);
            // Else it may be the number of somebody else.
            let stayed = whom != 0 && slot.whom.load(Relaxed) == whom;
            stayed.then(|| (PortId((whom >> 16) as u16 - 1), whom as u16, frames))
        })
    }
}

/// Who keeps the table of a pair: its sending queue, where it is.
#[derive(Debug, Default)]
pub(crate) struct Teller {
    /// How much each place has got of late.
    weights: [u32; TALKS],
    noted: u32,
    /// The place of before.
    last: usize,
}

impl Teller {
    /// A frame goes to that pair.
    #[inline]
    pub(crate) fn note(&mut self, talks: &Talks, port: PortId, pair: u16) {
        let key = key(port, pair);
        if talks.0[self.last].whom.load(Relaxed) != key {
            self.last = self.find(talks, key);
        }
        let frames = &talks.0[self.last].frames;
        // One writer.
        frames.store(frames.load(Relaxed) + 1, Relaxed);
        self.weights[self.last] += 1;
        self.noted += 1;
        if self.noted == HALF_LIFE {
            self.noted = 0;
            self.weights.iter_mut().for_each(|weight| *weight /= 2);
        }
    }

    /// The place of a receiver, which is given to it if it has none.
    #[cold]
    fn find(&self, talks: &Talks, key: u64) -> usize {
        let known = talks.0.iter().position(|slot| slot.whom.load(Relaxed) == key);
        known.unwrap_or_else(|| {
            let least = (0..TALKS).min_by_key(|at| self.weights[*at]).expect("there are some");
            let slot = &talks.0[least];
            slot.frames.store(0, Release);
            slot.whom.store(key, Release);
            least
        })
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        /// Nobody has got more than the table says, whoever gets much is in it, and all is there while there are few.
        #[test]
        fn who_gets_much_is_in_the_table(
            few in any::<bool>(),
            frames in prop::collection::vec((0..20_u16, 0..3_u16, 1..40_usize), 1..200),
        ) {
            let (talks, mut teller) = (Talks::default(), Teller::default());
            let mut got = BTreeMap::new();
            for (port, pair, run) in frames {
                let whom = if few { (port % 4, pair % 2) } else { (port, pair) };
                for _ in 0..run {
                    teller.note(&talks, PortId(whom.0), whom.1);
                    *got.entry(whom).or_insert(0_u64) += 1;
                }
            }
            let all: u64 = got.values().sum();
            let said: BTreeMap<_, _> =
                talks.each().map(|(port, pair, frames)| ((port.0, pair), frames)).collect();
            for (whom, frames) in &said {
                prop_assert!(*frames <= got[whom] && *frames > 0);
            }
            if few {
                prop_assert_eq!(&said, &got);
            } else if all < u64::from(HALF_LIFE) {
                for (whom, _) in got.iter().filter(|(_, frames)| **frames > all / TALKS as u64) {
                    prop_assert!(said.contains_key(whom), "{:?} of {:?}", whom, got);
                }
            }
        }
    }

    #[test]
    fn who_talked_long_ago_makes_room() {
        let (talks, mut teller) = (Talks::default(), Teller::default());
        for port in 0..TALKS as u16 {
            (0..100_000).for_each(|_| teller.note(&talks, PortId(port), 0));
        }
        // Two that take turns would take each other's place for ever.
        for _ in 0..10 * HALF_LIFE {
            teller.note(&talks, PortId(100), 0);
            teller.note(&talks, PortId(101), 1);
        }
        let new: Vec<_> = talks.each().filter(|(port, ..)| port.0 >= 100).collect();
        assert_eq!(new.len(), 2);
        assert!(new.iter().all(|(.., frames)| *frames > u64::from(HALF_LIFE)), "{new:?}");
    }
}
