//! Which superblock is the pool's, of all the copies that are found.

use std::collections::BTreeMap;

use crate::format::{Member, MemberState, Place, Superblock, Uuid};

/// Copies that have to agree.
const QUORUM: usize = 2;
const LOWER: [u8; 2] = [0, 1];
const UPPER: [u8; 2] = [2, 3];
/// The bits of each feature word that this program knows: refuse, read only, compatible.
const KNOWN: [u64; 3] = [LAYERS | MIRROR | SUMS | GROWN | GATHERED, 0, 0];
/// Bit of `REFUSE`: there are snapshots or clones, or were.
pub(crate) const LAYERS: u64 = 1;
/// Bit of `REFUSE`: a tier has PVs of several failure groups, or had.
pub(crate) const MIRROR: u64 = 2;
/// There are LUs whose data has checksums, or were.
pub(crate) const SUMS: u64 = 16;
/// An LU that shares what it holds has grown.
pub(crate) const GROWN: u64 = 32;
/// An LU has gone to another tier with what belongs to it.
pub(crate) const GATHERED: u64 = 64;

/// Whether chunks of some tier may have two legs.
pub(crate) fn mirrors(members: &[Member]) -> bool {
    let there = || members.iter().filter(|member| member.state != MemberState::Gone);
    there().any(|one| there().any(|two| one.tier == two.tier && one.group != two.group))
}

/// Whether the older superblock, found there, is one that the younger one's side left behind: that side has these PVs as stale or gone, and the older one counts some PV of that side. That does not have it, so it
/// was never more than begun, or was true before these PVs were away.
pub(crate) fn is_left_behind(older: &Superblock, others: &[Place], younger: &Superblock) -> bool {
    let state = |of: &Superblock, pv: Uuid| {
        let mut members = of.members.iter();
        members.find(|member| member.pv == pv).map(|member| member.state)
    };
    let without = |place: &Place| state(younger, place.pv).is_some_and(|it| !it.is_there());
    let mut side = younger.members.iter().filter(|member| member.state.is_there());
    let counts = |member: &Member| state(older, member.pv).is_some_and(MemberState::is_there);
    others.iter().all(without) && side.any(counts)
}

/// The superblock that counts, and where the next one begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// The superblock.
    pub superblock: Superblock,
    /// The number of the next one: above all that were seen, agreed upon or not, so that no number is ever given out twice.
    pub next: u64,
    /// The copies that are written first, and made durable on all PVs before the other two: the pair without which this superblock still counts. An update
    /// that was cut off may have left only one pair whole, and a fixed order would begin with it.
    pub first: [u8; 2],
    /// The pool has features that this program does not know and that forbid it to write, by their bits; 0 if it may.
    pub read_only: u64,
}

impl Chosen {
    /// The copies that are written when the [first](Chosen::first) are durable.
    pub fn then(&self) -> [u8; 2] {
        if self.first == LOWER { UPPER } else { LOWER }
    }
}

/// Why no superblock counts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotChosen {
    /// Copies of several pools.
    #[error("PV {pv} is of pool {second}, others are of pool {first}: name those of one")]
    Pools {
        /// One of the pools.
        first: Uuid,
        /// Another.
        second: Uuid,
        /// A PV of the other.
        pv: Uuid,
    },
    /// No two copies agree.
    #[error(
        "of {found} valid copies of the superblock no two agree: look whether all PVs of the pool are there"
    )]
    NoQuorum {
        /// Valid copies.
        found: usize,
    },
    /// Two servers wrote to the pool and did not see each other.
    #[error(
        "the pool was written to on two sides apart from each other, superblock {sequence} by PVs {first:?} and by PVs {second:?}: leave out the PVs of the side whose changes are to be given up"
    )]
    Fork {
        /// The number that both gave out.
        sequence: u64,
        /// The PVs of one side.
        first: Vec<Uuid>,
        /// The PVs of the other.
        second: Vec<Uuid>,
    },
    /// The pool has features that this program does not know.
    #[error(
        "the pool has features that this program does not know, bits {unknown:#x} of REFUSE: use the program that made it, or a later one"
    )]
    Features {
        /// Their bits.
        unknown: u64,
    },
}

/// Chooses among all valid copies of all PVs: the highest number of which two copies agree.
///
/// A fork is told where both sides gave out the same number, where the older one has the number before and is not what the younger one follows,
/// and, however far the sides are apart, where a PV has a superblock of a later epoch than the chosen one's side ever saw it have
/// ([`Member::seen`](crate::format::Member::seen)): a PV that was only away has none. It is none where one side has the PVs of the other as stale, and the other does not have all of this side so: a side
/// goes on alone only after it has said that.
pub fn choose(copies: &[(Superblock, Place)]) -> Result<Chosen, NotChosen> {
    if let [(first, _), rest @ ..] = copies
        && let Some((second, place)) = rest.iter().find(|(copy, _)| copy.pool != first.pool)
    {
        let (first, second) = (first.pool, second.pool);
        return Err(NotChosen::Pools { first, second, pv: place.pv });
    }
    // Copies that agree, by number; the same place counts once.
    let mut sides: BTreeMap<u64, Vec<(&Superblock, Vec<Place>)>> = BTreeMap::new();
    for (copy, place) in copies {
        let same = sides.entry(copy.sequence).or_default();
        match same.iter_mut().find(|(other, _)| *other == copy) {
            Some((_, places)) if places.contains(place) => {}
            Some((_, places)) => places.push(*place),
            None => same.push((copy, vec![*place])),
        }
    }
    let highest = sides.keys().next_back().copied().unwrap_or_default();
    for same in sides.values_mut() {
        same.retain(|(_, places)| places.len() >= QUORUM);
    }
    sides.retain(|_, same| !same.is_empty());
    let fork = |sequence, first: &[Place], second: &[Place]| {
        let pvs = |places: &[Place]| {
            let mut pvs: Vec<Uuid> = places.iter().map(|place| place.pv).collect();
            pvs.sort_unstable();
            pvs.dedup();
            pvs
        };
        NotChosen::Fork { sequence, first: pvs(first), second: pvs(second) }
    };
    for (sequence, same) in &mut sides {
        let all = same.clone();
        same.retain(|(one, places)| {
            !all.iter().any(|(other, _)| other != one && is_left_behind(one, places, other))
        });
        if let [(_, first), (_, second), ..] = &same[..] {
            return Err(fork(*sequence, first, second));
        }
    }
    let mut latest = sides.values().rev().filter_map(|same| same.first());
    let Some((superblock, places)) = latest.next() else {
        return Err(NotChosen::NoQuorum { found: copies.len() });
    };
    if let Some((before, others)) = latest.clone().next()
        && before.sequence + 1 == superblock.sequence
        && superblock.parent != before.fingerprint()
        && !is_left_behind(before, others, superblock)
    {
        return Err(fork(superblock.sequence, places, others));
    }
    for (older, others) in latest {
        let apart = |place: &&Place| {
            let mut members = superblock.members.iter();
            let seen = members.find(|member| member.pv == place.pv).map(|member| member.seen);
            seen.is_some_and(|seen| older.epoch > seen)
        };
        let others: Vec<Place> = others.iter().filter(apart).copied().collect();
        if !others.is_empty() && !is_left_behind(older, &others, superblock) {
            return Err(fork(older.sequence, places, &others));
        }
    }
    let [refuse, read_only, _] = superblock.features;
    if refuse & !KNOWN[0] != 0 {
        return Err(NotChosen::Features { unknown: refuse & !KNOWN[0] });
    }
    let lower = places.iter().filter(|place| LOWER.contains(&place.copy)).count();
    let first = if lower >= QUORUM { UPPER } else { LOWER };
    let (superblock, next) = ((*superblock).clone(), highest.saturating_add(1));
    Ok(Chosen { superblock, next, first, read_only: read_only & !KNOWN[1] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{Member, MemberState, OWNERS, Owner, Root};

    const PVS: u8 = 2;

    fn superblock(sequence: u64, parent: Option<&Superblock>) -> Superblock {
        let member = |index: u8| Member {
            pv: Uuid([index; 16]),
            chunks: 16,
            tier: 0,
            group: index,
            state: MemberState::In,
            sync_until: 0,
            had: 0,
            seen: sequence,
        };
        Superblock {
            pool: Uuid([9; 16]),
            sequence,
            epoch: sequence,
            parent: parent.map_or([0; 16], Superblock::fingerprint),
            features: [0; 3],
            root: Root::default(),
            owners: [Owner::default(); OWNERS],
            members: (0..PVS).map(member).collect(),
            extents: Vec::new(),
        }
    }

    fn place(pv: u8, copy: u8) -> Place {
        Place { member: pv.into(), pv: Uuid([pv; 16]), copy }
    }

    /// What is at each of the eight places: a copy, or nothing that is valid.
    type Disks = [Option<Superblock>; 4 * PVS as usize];

    fn found(disks: &Disks) -> Vec<(Superblock, Place)> {
        let at = |index: usize| place((index / 4) as u8, (index % 4) as u8);
        let copies = disks.iter().enumerate();
        copies.filter_map(|(index, copy)| Some((copy.clone()?, at(index)))).collect()
    }

    /// All images that a power cut leaves of an update: each write of a phase was not made, was torn, or was made; the first phase is durable before the
    /// second begins. `phases` are the copies that each writes.
    fn images(before: &Disks, new: &Superblock, phases: &[&[u8]]) -> Vec<Disks> {
        let mut images = Vec::new();
        let mut durable = before.clone();
        for phase in phases {
            let writes: Vec<usize> =
                (0..durable.len()).filter(|index| phase.contains(&((index % 4) as u8))).collect();
            for outcome in 0..3_usize.pow(writes.len() as u32) {
                let mut disks = durable.clone();
                let mut outcome = outcome;
                for &index in &writes {
                    match outcome % 3 {
                        0 => {}
                        1 => disks[index] = None,
                        _ => disks[index] = Some(new.clone()),
                    }
                    outcome /= 3;
                }
                images.push(disks);
            }
            writes.iter().for_each(|&index| durable[index] = Some(new.clone()));
        }
        images
    }

    /// Each image of an update and, on each, of the next update that the one who finds it makes, in an order of its own or always in the same; how many
    /// there are, and of how many no superblock counts.
    fn lost(fixed: bool) -> (usize, usize) {
        let old = superblock(1, None);
        let new = superblock(2, Some(&old));
        let (mut images_seen, mut lost) = (0, 0);
        let before: Disks = std::array::from_fn(|_| Some(old.clone()));
        let start = choose(&found(&before)).unwrap();
        let order = |chosen: &Chosen| {
            if fixed { [start.first, start.then()] } else { [chosen.first, chosen.then()] }
        };
        let [first, then] = order(&start);
        for disks in images(&before, &new, &[&first, &then]) {
            images_seen += 1;
            let Ok(chosen) = choose(&found(&disks)) else {
                lost += 1;
                continue;
            };
            assert!([&old, &new].contains(&&chosen.superblock));
            // In the recovery, the power fails again.
            let mut again = superblock(chosen.next, Some(&chosen.superblock));
            again.epoch += 7;
            again.members.iter_mut().for_each(|member| member.seen += 7);
            let [first, then] = order(&chosen);
            for disks in images(&disks, &again, &[&first, &then]) {
                images_seen += 1;
                match choose(&found(&disks)) {
                    Ok(second) => {
                        let back = ![&chosen.superblock, &again].contains(&&second.superblock);
                        lost += usize::from(back);
                    }
                    Err(_) => lost += 1,
                }
            }
        }
        (images_seen, lost)
    }

    /// One pair of copies, then the other: whatever the power leaves, also of the recovery, is the superblock before or the one after.
    #[test]
    fn no_power_cut_leaves_a_pool_without_a_superblock() {
        let (images, lost) = lost(false);
        assert!(images > 10_000, "{images} images");
        assert_eq!(lost, 0, "of {images} images");
    }

    /// What the choice of the first pair is for: a recovery that begins with the pair that is whole can lose both.
    #[test]
    fn always_the_same_pair_first_loses_pools() {
        assert!(lost(true).1 > 0);
    }

    /// What the phases are for.
    #[test]
    fn all_copies_at_once_can_be_lost() {
        let old = superblock(1, None);
        let new = superblock(2, Some(&old));
        let before: Disks = std::array::from_fn(|_| Some(old.clone()));
        let images = images(&before, &new, &[&[0, 1, 2, 3]]);
        assert!(images.iter().any(|disks| choose(&found(disks)).is_err()));
    }

    #[test]
    fn two_copies_of_eight_are_enough() {
        let only = superblock(4, None);
        for (first, second) in
            (0..8).flat_map(|first| (0..first).map(move |second| (first, second)))
        {
            let mut disks: Disks = Default::default();
            disks[first] = Some(only.clone());
            assert_eq!(choose(&found(&disks)), Err(NotChosen::NoQuorum { found: 1 }));
            disks[second] = Some(only.clone());
            let chosen = choose(&found(&disks)).unwrap();
            assert_eq!((&chosen.superblock, chosen.next), (&only, 5));
        }
        assert_eq!(choose(&[]), Err(NotChosen::NoQuorum { found: 0 }));
        let twice = vec![(only.clone(), place(0, 0)); 2];
        assert_eq!(choose(&twice), Err(NotChosen::NoQuorum { found: 2 }));
    }

    #[test]
    fn a_fork_is_refused_and_both_sides_named() {
        let old = superblock(1, None);
        let mut other = superblock(2, Some(&old));
        other.epoch = 77;
        let sides = |first: &Superblock, second: &Superblock| {
            let disks: Disks = std::array::from_fn(|index| {
                Some(if index < 4 { first.clone() } else { second.clone() })
            });
            choose(&found(&disks))
        };
        let [one, two] = [0, 1].map(|pv| vec![Uuid([pv; 16])]);
        let same_number = sides(&superblock(2, Some(&old)), &other);
        let fork = NotChosen::Fork { sequence: 2, first: one.clone(), second: two.clone() };
        assert_eq!(same_number, Err(fork));
        // One side went on by one more: it follows something else.
        let ahead = superblock(3, Some(&superblock(2, Some(&old))));
        let fork = NotChosen::Fork { sequence: 3, first: one, second: two };
        assert_eq!(sides(&ahead, &other), Err(fork));
        // And a PV that was away for one superblock is no fork.
        let mut later = superblock(3, Some(&other));
        later.members.iter_mut().for_each(|member| member.seen = other.epoch);
        let followed = sides(&later, &other).unwrap();
        assert_eq!((followed.superblock.sequence, followed.next), (3, 4));
    }

    /// Both sides went on, one of them by many: the numbers alone look like a PV that was away.
    #[test]
    fn sides_that_are_far_apart_are_told() {
        let old = superblock(1, None);
        let mut side = superblock(3, Some(&superblock(2, Some(&old))));
        side.members[0].seen = 1;
        let mut ahead = superblock(9, Some(&superblock(8, None)));
        ahead.members[1].seen = 1;
        let found = |second: &Superblock| {
            let disks: Disks = std::array::from_fn(|index| {
                Some(if index < 4 { ahead.clone() } else { second.clone() })
            });
            choose(&found(&disks))
        };
        let [one, two] = [0, 1].map(|pv| vec![Uuid([pv; 16])]);
        let fork = NotChosen::Fork { sequence: 3, first: one, second: two };
        assert_eq!(found(&side), Err(fork));
        // The second was away, and nothing else.
        assert_eq!(found(&old).unwrap().superblock, ahead);
    }

    #[test]
    fn unknown_features_are_acted_on() {
        let with = |features| {
            let only = Superblock { features, ..superblock(1, None) };
            choose(&[(only.clone(), place(0, 0)), (only, place(0, 1))])
        };
        assert_eq!(with([1 << 40, 0, 0]), Err(NotChosen::Features { unknown: 1 << 40 }));
        assert_eq!(with([0, 6, 0]).unwrap().read_only, 6);
        assert_eq!(with([0, 0, 1]).unwrap().read_only, 0);
    }

    #[test]
    fn pvs_of_several_pools_are_refused() {
        let mut stranger = superblock(9, None);
        stranger.pool = Uuid([8; 16]);
        let copies = [(superblock(1, None), place(0, 0)), (stranger, place(1, 0))];
        let pools =
            NotChosen::Pools { first: Uuid([9; 16]), second: Uuid([8; 16]), pv: place(1, 0).pv };
        assert_eq!(choose(&copies), Err(pools));
    }
}
