//! PVs that are older copies of themselves: somebody restored an image that was made of one while the pool was at work, or gave a copy of it that had been put aside.
//!
//! What its superblocks, pages and journal say was true once, and so nothing in it is damaged. But a PV that has a place in the pool has every superblock that was completed while it had it, and one that was away has the
//! last before it went. One without is older: nothing that it says is believed, and what it has is made anew from the others; where it cannot be done without, the pool is not opened.
//!
//! A copy that is from after the last superblock needs no such care: what was changed since is [active](super::activity) on two legs. On one leg nobody knows.

use super::*;
use crate::format::Place;

/// PVs that count and whose superblocks are all older than the one that counts, of which it is known that they had it: a PV has three copies of it, so that it is in the second pair, which is written when the first
/// is on all. One that is just being added has all its copies first.
pub(super) fn older(
    superblock: &Superblock,
    found: &[(u16, (Superblock, Place))],
) -> BTreeSet<u16> {
    const MORE_THAN_A_PAIR: usize = 3;
    let members = (0..).zip(&superblock.members);
    let there: Vec<(u16, Uuid)> = members
        .filter(|(_, member)| member.state.is_there())
        .map(|(pv, its)| (pv, its.pv))
        .collect();
    let copies = |pv: u16, uuid: Uuid| {
        let its = found.iter().filter(move |(of, (_, place))| *of == pv && place.pv == uuid);
        its.map(|(_, (copy, _))| copy)
    };
    let whole = |pv: u16, uuid: Uuid| {
        copies(pv, uuid).filter(|copy| *copy == superblock).count() >= MORE_THAN_A_PAIR
    };
    let whole: BTreeSet<u16> =
        there.iter().filter(|(pv, uuid)| whole(*pv, *uuid)).map(|(pv, _)| *pv).collect();
    let is_older = |(pv, uuid): &(u16, Uuid)| {
        let newest = copies(*pv, *uuid).max_by_key(|copy| copy.sequence)?;
        let added = superblock.members.len() - 1;
        let adds = newest.members.len() == added && superblock.parent == newest.fingerprint();
        let known = whole.iter().any(|other| !(adds && usize::from(*other) == added));
        (newest.sequence < superblock.sequence && known).then_some(*pv)
    };
    there.iter().filter_map(is_older).collect()
}

impl Pool {
    /// The number of a superblock that a PV has which is away from now on, or was.
    pub(super) fn had(&self, pv: u16) -> u64 {
        let superblock = &self.chosen.superblock;
        match superblock.members.get(usize::from(pv)) {
            Some(member) if member.state.is_there() => superblock.sequence,
            Some(member) => member.had,
            None => 0,
        }
    }

    /// Whether a PV that was away is older than when it went, by the newest superblock that it has.
    pub(super) fn is_older(&self, pv: u16, newest: &Superblock) -> bool {
        newest.sequence < self.had(pv)
    }
}
