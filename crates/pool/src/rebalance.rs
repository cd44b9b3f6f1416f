//! Which chunks move when PVs of a tier are filled unevenly: a plan, made once from the map as it is.
//!
//! What each PV should have is its share of all that is used, by its size. A move goes from a PV that has more to one that has less, so that the sum of all distances falls by 2 with each move: the
//! plan ends, and has as many moves as there are chunks in the wrong place, which is the least that there can be. What is nearly even is left alone, and a plan that was carried out leaves nothing to plan:
//! nothing ever goes to and fro.
//!
//! Legs of mirrored chunks stay in their failure group: a *domain* is the PVs of a tier, or of a tier and failure group where the tier has mirrored LUs.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};

/// A PV of a domain, in chunks for LUs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Share {
    /// Its number.
    pub pv: u16,
    /// Those that it has room for.
    pub size: u32,
    /// Those that LUs have, at most `size`.
    pub used: u32,
}

/// A leg of a chunk of an LU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Held {
    /// The LU.
    pub lu: u32,
    /// Its chunk.
    pub vchunk: u32,
    /// The leg.
    pub leg: u8,
}

/// A leg that is to move.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Move {
    /// What.
    pub held: Held,
    /// The PV that it is on.
    pub from: u16,
    /// The PV that it goes to.
    pub to: u16,
}

/// What each PV should have: its share by size, rounded so that they are as many as are used.
pub fn quotas(shares: &[Share]) -> Vec<u32> {
    let size: u64 = shares.iter().map(|share| u64::from(share.size)).sum();
    let used: u64 = shares.iter().map(|share| u64::from(share.used)).sum();
    let whole = |share: &Share| used * u64::from(share.size) / size.max(1);
    let mut quotas: Vec<u32> = shares.iter().map(|share| whole(share) as u32).collect();
    // What rounding left goes to those that lost most by it.
    let left = used - quotas.iter().map(|quota| u64::from(*quota)).sum::<u64>();
    let mut lost: Vec<usize> = (0..shares.len()).collect();
    let rest = |index: &usize| used * u64::from(shares[*index].size) % size.max(1);
    lost.sort_by_key(|index| (Reverse(rest(index)), *index));
    lost.into_iter().take(left as usize).for_each(|index| quotas[index] += 1);
    quotas
}

/// How far a PV may be from its share before anything moves: 2 chunks, or one of a hundred.
pub fn deadband(quota: u32) -> u32 {
    (quota / 100).max(2)
}

/// The moves that make a domain even. `held` is asked for what is on a PV that has too much.
pub fn plan(shares: &[Share], mut held: impl FnMut(u16) -> Vec<Held>) -> Vec<Move> {
    let quotas = quotas(shares);
    let far = |(share, quota): (&Share, &u32)| share.used.abs_diff(*quota) > deadband(*quota);
    if !shares.iter().zip(&quotas).any(far) {
        return Vec::new();
    }
    let mut donors: BTreeSet<(u32, Reverse<u16>)> = BTreeSet::new();
    let mut takers: BTreeSet<(u32, Reverse<u16>)> = BTreeSet::new();
    let mut crowds: BTreeMap<u16, Crowd> = BTreeMap::new();
    for (share, quota) in shares.iter().zip(&quotas) {
        if share.used > *quota {
            donors.insert((share.used - quota, Reverse(share.pv)));
            crowds.insert(share.pv, Crowd::new(held(share.pv)));
        } else if share.used < *quota {
            takers.insert((quota - share.used, Reverse(share.pv)));
        }
    }
    let mut moves = Vec::new();
    while let (Some((more, Reverse(from))), Some((less, Reverse(to)))) =
        (donors.pop_last(), takers.pop_last())
    {
        let Some(held) = crowds.get_mut(&from).and_then(Crowd::pop) else {
            // It has less than was said: another one may still give.
            takers.insert((less, Reverse(to)));
            continue;
        };
        moves.push(Move { held, from, to });
        if more > 1 {
            donors.insert((more - 1, Reverse(from)));
        }
        if less > 1 {
            takers.insert((less - 1, Reverse(to)));
        }
    }
    moves
}

/// What is on a PV, by how much of it is of one LU: that of which there is most goes first, so that the chunks of an LU are on many PVs.
#[derive(Debug)]
struct Crowd {
    lus: BTreeMap<u32, Vec<Held>>,
    order: BTreeSet<(usize, Reverse<u32>)>,
}

impl Crowd {
    fn new(held: Vec<Held>) -> Crowd {
        let mut lus: BTreeMap<u32, Vec<Held>> = BTreeMap::new();
        for held in held {
            lus.entry(held.lu).or_default().push(held);
        }
        let order = lus.iter().map(|(lu, held)| (held.len(), Reverse(*lu))).collect();
        Crowd { lus, order }
    }

    fn pop(&mut self) -> Option<Held> {
        let (_, Reverse(lu)) = self.order.pop_last()?;
        let legs = self.lus.get_mut(&lu)?;
        let held = legs.pop()?;
        if !legs.is_empty() {
            self.order.insert((legs.len(), Reverse(lu)));
        }
        Some(held)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// PVs, and what is on each: chunks of six LUs.
    fn domain() -> impl Strategy<Value = Vec<(Share, Vec<Held>)>> {
        let pv = (1..400_u32)
            .prop_flat_map(|size| (Just(size), prop::collection::vec(1..7_u32, 0..=size as usize)));
        prop::collection::vec(pv, 1..7).prop_map(|pvs| {
            let mut vchunk = 0;
            let held = |lus: Vec<u32>, vchunk: &mut u32| -> Vec<Held> {
                let next = |lu| {
                    *vchunk += 1;
                    Held { lu, vchunk: *vchunk, leg: 0 }
                };
                lus.into_iter().map(next).collect()
            };
            let share = |pv, size, used| Share { pv, size, used };
            let pvs = (0..).zip(pvs);
            pvs.map(|(pv, (size, lus))| (share(pv, size, lus.len() as u32), held(lus, &mut vchunk)))
                .collect()
        })
    }

    fn distance(shares: &[Share], quotas: &[u32]) -> u64 {
        shares.iter().zip(quotas).map(|(share, quota)| u64::from(share.used.abs_diff(*quota))).sum()
    }

    proptest! {
        /// Each move brings it nearer by 2; the moves are as few as can be, and after them there is nothing to move, whoever asks.
        #[test]
        fn a_plan_falls_strictly_reaches_the_bound_and_ends(domain in domain()) {
            let mut shares: Vec<Share> = domain.iter().map(|(share, _)| *share).collect();
            let mut held: BTreeMap<u16, BTreeSet<Held>> =
                domain.into_iter().map(|(share, held)| (share.pv, held.into_iter().collect())).collect();
            let quotas = quotas(&shares);
            let sum = |of: &mut dyn Iterator<Item = u32>| of.map(u64::from).sum::<u64>();
            let used = sum(&mut shares.iter().map(|share| share.used));
            prop_assert_eq!(sum(&mut quotas.iter().copied()), used);
            for (share, quota) in shares.iter().zip(&quotas) {
                prop_assert!(*quota <= share.size);
            }
            let far = shares.iter().zip(&quotas).any(|(share, quota)| {
                share.used.abs_diff(*quota) > 2 && share.used.abs_diff(*quota) > quota / 100
            });
            let bound: u32 =
                shares.iter().zip(&quotas).map(|(share, quota)| share.used.saturating_sub(*quota)).sum();
            let moves = plan(&shares, |pv| held[&pv].iter().copied().collect());
            prop_assert_eq!(moves.len(), if far { bound as usize } else { 0 });
            let mut before = distance(&shares, &quotas);
            for Move { held: what, from, to } in moves {
                let most = held[&from].iter().map(|held| held.lu).fold(BTreeMap::new(), |mut all, lu| {
                    *all.entry(lu).or_insert(0) += 1;
                    all
                });
                prop_assert_eq!(most.get(&what.lu), most.values().max(), "not the most crowded");
                prop_assert!(held.get_mut(&from).unwrap().remove(&what));
                prop_assert!(held.get_mut(&to).unwrap().insert(what));
                shares[usize::from(from)].used -= 1;
                shares[usize::from(to)].used += 1;
                let now = distance(&shares, &quotas);
                prop_assert_eq!(now + 2, before);
                before = now;
            }
            prop_assert!(!far || before == 0);
            prop_assert_eq!(plan(&shares, |pv| held[&pv].iter().copied().collect()), []);
        }
    }

    #[test]
    fn what_is_nearly_even_is_left_alone() {
        let shares = |used: [u32; 2]| {
            (0..).zip(used).map(|(pv, used)| Share { pv, size: 1000, used }).collect::<Vec<_>>()
        };
        let held = |_| (0..1000).map(|vchunk| Held { lu: 1, vchunk, leg: 0 }).collect();
        assert_eq!(plan(&shares([12, 8]), held), []);
        assert_eq!(plan(&shares([14, 8]), held).len(), 3);
        // One of a hundred of 500 are 5.
        assert_eq!(plan(&shares([505, 495]), held), []);
        assert_eq!(plan(&shares([506, 494]), held).len(), 6);
    }
}
