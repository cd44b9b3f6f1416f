//! Space: what is free, what is set aside, who waits for it.
//!
//! A write that needs a chunk and finds none waits, in the order in which it came among those of its tier; nothing else waits behind it. It goes on when chunks are given back, an LU that had
//! space set aside goes or shrinks, or a PV is added; or it is [called back](Pool::cancel). The legs of a chunk are in different failure groups, so that what can be given out depends on how the free chunks lie
//! in them; they are taken from the groups that have most, which never makes it less than it has to be.
//! What is given out while one of two groups is away has room there when it returns.
//!
//! For thick LUs all is set aside that they do not have, which is never more than there is. A *reserve* sets aside some of an LU: told from outside, kept nowhere on the PVs, and where it came
//! to be more than there is (PVs are away, or it was told again when the pool was opened) it is what comes first. Both go past those who wait.
//! A tier that is nearly full may be told how many chunks it gives out until it is told again ([`Pool::allow`]): writes beyond that are *slowed*, and wait as if there were none.

use super::slots::Leg;
use super::*;
use crate::format::SystemKind;
use crate::rebalance::{Share, deadband};
use crate::tables::Lu;

/// Chunks of an LU for which there has to be space.
#[derive(Clone, Copy, Debug)]
pub(super) struct Promised {
    pub(super) tier: u8,
    pub(super) legs: u8,
    pub(super) chunks: u32,
}

/// Writes that wait for space, by tier, in the order in which they came.
#[derive(Debug, Default)]
pub(super) struct Full {
    tiers: BTreeMap<u8, VecDeque<Piece>>,
}

impl Full {
    fn push(&mut self, tier: u8, piece: Piece) {
        self.tiers.entry(tier).or_default().push_back(piece);
    }

    fn waits(&self, tier: u8) -> bool {
        self.tiers.contains_key(&tier)
    }

    /// Of the tiers for which that holds.
    fn pieces(&self, of: impl Fn(u8) -> bool) -> impl Iterator<Item = &Piece> {
        let tiers = self.tiers.iter().filter(move |(tier, _)| of(**tier));
        tiers.flat_map(|(_, queue)| queue)
    }

    /// Those that wait no longer.
    pub(super) fn take(&mut self, which: impl Fn(&Piece) -> bool) -> Vec<Piece> {
        let mut taken = Vec::new();
        for queue in self.tiers.values_mut() {
            let (those, others): (VecDeque<Piece>, _) = queue.drain(..).partition(&which);
            *queue = others;
            taken.extend(those);
        }
        self.tiers.retain(|_, queue| !queue.is_empty());
        taken
    }
}

/// What a PV has, in chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PvSpace {
    /// Its number among the members.
    pub pv: u16,
    /// Its UUID.
    pub uuid: Uuid,
    /// Its tier.
    pub tier: u8,
    /// Its failure group.
    pub group: u8,
    /// How far it can be relied on.
    pub state: MemberState,
    /// All its chunks.
    pub chunks: u32,
    /// Those of the pool's own blocks, with that of its header.
    pub own: u32,
    /// Those that LUs have.
    pub used: u32,
    /// Those that can be given out now. What is missing to `chunks` is on its way from one owner to none or to the next.
    pub free: u32,
}

/// What a tier has, in chunks of PVs: a chunk of an LU counts once for each leg.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TierSpace {
    /// Its number.
    pub tier: u8,
    /// Chunks for LUs.
    pub chunks: u64,
    /// Those that LUs have.
    pub used: u64,
    /// Those that can be given out now, with those that are set aside.
    pub free: u64,
    /// Set aside for thick LUs and reserves that do not have them yet.
    pub set_aside: u64,
    /// What all LUs would have if all of them were written: more than `chunks` is overcommitted.
    pub promised: u64,
    /// Parts of requests that wait for space, because there is none.
    pub waiting: usize,
    /// Parts of requests that wait although there is some ([`Pool::allow`]).
    pub slowed: usize,
}

/// What an LU has, in chunks of its own: each is kept as often as it has legs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LuSpace {
    /// Its number.
    pub lu: u32,
    /// Its size.
    pub chunks: u32,
    /// Those that have space; the others are zeros.
    pub allocated: u32,
    /// How often each is kept.
    pub legs: u8,
    /// Its tier.
    pub tier: u8,
    /// What it does not have yet is set aside for it.
    pub thick: bool,
    /// What it holds has checksums.
    pub sums: bool,
    /// Those of these that are not in its tier yet, and move there.
    pub astray: u32,
    /// It is a snapshot of this LU, which may be gone.
    pub origin: Option<u32>,
    /// It shares what it holds with a snapshot or a clone, or did: its size stays.
    pub shares: bool,
    /// Of an LU: the mark with which it was asked for ([`Request::Create`]); 0 for none.
    pub asked: u64,
}

/// Whether so many chunks of two legs and of one have room, by the free chunks of each failure group.
fn fits(groups: impl Iterator<Item = u32>, pairs: u64, singles: u64) -> bool {
    let (mut sum, mut most) = (0, 0);
    for free in groups.map(u64::from) {
        sum += free;
        most = most.max(free);
    }
    pairs <= sum - most && 2 * pairs + singles <= sum
}

/// Chunks of two legs and of one, with more of so many legs.
fn in_all(first: (u64, u64), more: impl Iterator<Item = (u8, u32)>) -> (u64, u64) {
    more.fold(first, |(pairs, singles), (legs, chunks)| {
        let chunks = u64::from(chunks);
        if legs > 1 { (pairs + chunks, singles) } else { (pairs, singles + chunks) }
    })
}

impl Pool {
    /// Gives chunks to a slot that has none, if there are any. What is no client's is not `slowed`, and waits for none of those that are.
    pub(super) fn allocate(&mut self, key: (u32, u32), slowed: bool) -> bool {
        let Some(lu) = self.tables.lus.get(&key.0) else { return false };
        let (legs, tier) = (lu.legs, lu.tier);
        let one = Promised { tier, legs, chunks: 1 };
        // What is set aside for it is its own, that of a reserve as far as thick LUs do not need it.
        let own = self.sets_aside(key.0, lu)
            || self.left_in(key.0) > 0 && self.has_room_beside(self.set_aside_for_good(tier), one);
        // Who comes later waits behind those who wait, and all behind what is set aside.
        let waits = match slowed {
            true => self.full.waits(tier) || self.allowed(tier) == Some(0),
            false => self.full.waits(tier) && !self.slows(tier),
        };
        if !own && (waits || !self.has_room(one)) {
            return false;
        }
        let legs = if self.is_short(tier) { 1 } else { legs };
        let Some(ids) = self.pick(key, tier, legs) else { return false };
        if let Some(left) = self.allowed.get_mut(&tier).filter(|_| slowed && !own) {
            *left = left.saturating_sub(1);
        }
        self.missed.forget(key);
        let mut records = Vec::new();
        let mut slot_legs = Vec::with_capacity(ids.len());
        for (leg, id) in ids.into_iter().enumerate() {
            self.take(id);
            self.tables.pvs[usize::from(id.pv)].turn_hand(id.chunk);
            // 0 is a chunk that never was anybody's.
            let generation = self.tables.generation(id).checked_add(1).unwrap_or(1);
            records.push(Record {
                lu: key.0,
                vchunk: key.1,
                leg: leg as u8,
                owner: self.slot,
                pv: id.pv,
                chunk: id.chunk,
                generation,
                ..Record::of(Kind::Map)
            });
            slot_legs.push(Leg::new(leg as u8, id, generation));
        }
        let txn = self.log.append(records);
        let Some(slot) = self.slots.get_mut(&key) else { return false };
        slot.legs = slot_legs;
        slot.known = true;
        slot.live = Bits::NONE;
        slot.settled = txn;
        // The record says that its legs may differ, and without it there is no such chunk.
        slot.activity = slot.pair.then_some(0);
        true
    }

    /// What a chunk of an LU gets: of the groups that have most.
    fn pick(&self, key: (u32, u32), tier: u8, legs: u8) -> Option<Vec<ChunkId>> {
        let mut groups: Vec<(u32, u8)> =
            self.free_by_group(tier).into_iter().map(|(group, free)| (free, group)).collect();
        groups.sort_by_key(|(free, group)| (std::cmp::Reverse(*free), *group));
        let of_group = |(_, group): &(u32, u8)| {
            let pv = self.pv_for(key, tier, *group)?;
            self.free_chunk(pv)
        };
        let picked: Option<Vec<ChunkId>> = groups.iter().take(legs.into()).map(of_group).collect();
        picked.filter(|picked| picked.len() == usize::from(legs))
    }

    /// The PV of a group that gets a chunk of an LU. PVs are filled alike, by their size; among those that are as full as the others, or nearly so, the chunks of an LU take turns, so that
    /// neighbours are on different ones and all of them work for it.
    fn pv_for(&self, (lu, vchunk): (u32, u32), tier: u8, group: u8) -> Option<u16> {
        let of_group =
            self.usable(tier).filter(|pv| self.tables.pvs[usize::from(*pv)].group == group);
        let share = |pv| {
            let size = self.tables.pvs[usize::from(pv)].chunks().saturating_sub(self.own_of(pv));
            Share { pv, size, used: size.saturating_sub(self.free_of(pv)) }
        };
        let shares: Vec<Share> = of_group.map(share).filter(|pv| pv.used < pv.size).collect();
        // As if all were as full as the emptiest.
        let fill = |pv: &Share| (u64::from(pv.used) << 32) / u64::from(pv.size);
        let least = shares.iter().map(fill).min()?;
        let near = |pv: &&Share| {
            let alike = ((least * u64::from(pv.size)) >> 32) as u32;
            pv.used <= alike + deadband(alike)
        };
        let near: Vec<&Share> = shares.iter().filter(near).collect();
        // LUs are numbered from 1 on.
        Some(near[(lu as usize - 1 + vchunk as usize) % near.len()].pv)
    }

    /// PVs of a tier on which chunks are given out.
    pub(super) fn usable(&self, tier: u8) -> impl Iterator<Item = u16> {
        // One that is being added may come to nothing.
        let pvs = (0..).zip(&self.tables.pvs).take(self.chosen.superblock.members.len());
        let takes = |state| matches!(state, MemberState::In | MemberState::Returning);
        pvs.filter(move |(_, pv)| pv.tier == tier && takes(pv.state)).map(|(pv, _)| pv)
    }

    /// Chunks get one leg now that should have two: of all others the PVs are away.
    fn is_short(&self, tier: u8) -> bool {
        self.tables.lacks_pvs(tier) && self.free_by_group(tier).len() < 2
    }

    /// Chunks of a PV that can be given out now.
    pub(super) fn free_of(&self, pv: u16) -> u32 {
        self.tables.pvs[usize::from(pv)].free.saturating_sub(self.taken.of(pv))
    }

    /// Chunks that the pool's own blocks take on a PV.
    fn own_of(&self, pv: u16) -> u32 {
        // One that is no member yet has its header.
        self.own.get(usize::from(pv)).copied().unwrap_or(1)
    }

    /// Counts them, of a superblock that counts from now on.
    pub(super) fn count_own(&mut self) {
        let superblock = &self.chosen.superblock;
        self.own = vec![1; superblock.members.len()];
        for extent in &superblock.extents {
            self.own[usize::from(extent.pv)] += extent.count;
        }
    }

    /// Chunks of a PV that LUs have.
    pub(super) fn used_of(&self, pv: u16) -> u32 {
        let table = &self.tables.pvs[usize::from(pv)];
        if table.state == MemberState::Gone {
            return 0;
        }
        table.chunks().saturating_sub(self.own_of(pv)).saturating_sub(table.free)
    }

    /// Whether what a PV has, and what is set aside, has room on the others of its tier.
    pub(super) fn has_room_without(&self, pv: u16) -> bool {
        let Some(table) = self.tables.pvs.get(usize::from(pv)) else { return false };
        let mut groups = self.free_by_group(table.tier);
        let own = groups.entry(table.group).or_default();
        *own = own.saturating_sub(self.free_of(pv));
        let here = self.used_of(pv).min(*own);
        *own -= here;
        let mut left = self.used_of(pv) - here;
        let pairs = self.tables.lus.values().any(|lu| lu.tier == table.tier && lu.legs > 1);
        // Who has nothing so far has somewhere to write to.
        let lus = self.tables.lus.values().any(|lu| lu.tier == table.tier);
        let alike = |other: &u16| self.tables.pvs[usize::from(*other)].group == table.group;
        if lus && !self.usable(table.tier).any(|other| other != pv && alike(&other)) {
            return false;
        }
        // A leg goes to another group only where no other leg of its chunk is.
        if left > 0 && pairs && groups.len() < 3 {
            return false;
        }
        for free in groups.values_mut() {
            let here = left.min(*free);
            *free -= here;
            left -= here;
        }
        let (pairs, singles) = self.set_aside(table.tier);
        let others = self.tables.pvs.iter().filter(|other| other.state == MemberState::In).count();
        others > 1 && left == 0 && fits(groups.into_values(), pairs, singles)
    }

    /// Each PV that is not gone.
    pub fn pvs(&self) -> impl Iterator<Item = PvSpace> {
        let members = (0..).zip(&self.superblock().members);
        let there = members.filter(|(_, member)| member.state != MemberState::Gone);
        there.map(|(pv, member)| PvSpace {
            pv,
            uuid: member.pv,
            tier: member.tier,
            group: member.group,
            state: member.state,
            chunks: member.chunks,
            own: self.own_of(pv),
            used: self.used_of(pv),
            free: self.free_of(pv),
        })
    }

    /// Each tier.
    pub fn tiers(&self) -> Vec<TierSpace> {
        let mut tiers: BTreeMap<u8, TierSpace> = BTreeMap::new();
        for pv in self.pvs() {
            let tier =
                tiers.entry(pv.tier).or_insert(TierSpace { tier: pv.tier, ..TierSpace::default() });
            if pv.state != MemberState::Dismissed {
                tier.chunks += u64::from(pv.chunks - pv.own);
            }
            tier.used += u64::from(pv.used);
            if pv.state == MemberState::In {
                tier.free += u64::from(pv.free);
            }
        }
        for (number, tier) in &mut tiers {
            let (pairs, singles) = self.set_aside(*number);
            tier.set_aside = 2 * pairs + singles;
            let lus = self.tables.lus.values().filter(|lu| lu.tier == *number);
            tier.promised = lus.map(|lu| u64::from(lu.chunks) * u64::from(lu.legs)).sum();
            let waits = self.full.tiers.get(number).map_or(0, VecDeque::len);
            *(if self.slows(*number) { &mut tier.slowed } else { &mut tier.waiting }) = waits;
        }
        tiers.into_values().collect()
    }

    /// Chunks that LUs can get in a tier besides what is set aside: each once, however many legs it gets.
    pub fn room(&self, tier: u8) -> u64 {
        let legs = self.legs_of_tier(tier);
        let has = |chunks: u64| {
            let chunks = u32::try_from(chunks).unwrap_or(u32::MAX);
            self.has_room(Promised { tier, legs, chunks })
        };
        let (mut some, mut more) =
            (0, 1 + self.free_by_group(tier).into_values().map(u64::from).sum::<u64>());
        // There is room for `some`, and none for `more`.
        while more - some > 1 {
            let middle = some.midpoint(more);
            *(if has(middle) { &mut some } else { &mut more }) = middle;
        }
        some
    }

    /// Whether an LU shares what it holds with a snapshot or a clone, or did.
    pub fn shares(&self, lu: u32) -> bool {
        self.tables.lus.get(&lu).is_some_and(|lu| lu.beneath != 0)
    }

    /// Each LU, with snapshots. What several share is counted with the first of the LUs that need it, and with a snapshot only where no LU does: that is what its removal gives back.
    pub fn lu_spaces(&self) -> impl Iterator<Item = LuSpace> {
        let mut counted: BTreeMap<u32, u32> = BTreeMap::new();
        let served = || self.tables.lus.iter().filter(|(lu, _)| self.serves(**lu));
        for role in [Role::Lu, Role::Snapshot] {
            for (number, _) in served().filter(|(_, lu)| lu.role == role) {
                for space in self.tables.all_of(*number) {
                    counted.entry(space).or_insert(*number);
                }
            }
        }
        // What each has, and what of that is astray.
        let mut has: BTreeMap<u32, (u32, u32)> = BTreeMap::new();
        for (space, number) in counted {
            let Some(space) = self.tables.lus.get(&space) else { continue };
            let (allocated, astray) = has.entry(number).or_default();
            *allocated += space.mapped;
            *astray += self.tables.astray(space);
        }
        served().map(move |(number, lu)| LuSpace {
            lu: *number,
            chunks: lu.chunks,
            allocated: has.get(number).map_or(0, |has| has.0),
            legs: lu.legs,
            tier: lu.tier,
            thick: lu.thick,
            sums: self.has_sums(*number),
            astray: has.get(number).map_or(0, |has| has.1),
            origin: (lu.role == Role::Snapshot).then_some(lu.origin),
            shares: lu.beneath != 0,
            asked: if lu.role == Role::Lu { lu.asked } else { 0 },
        })
    }

    /// An LU or a snapshot of which something is in another tier, by what is said of it.
    #[cfg(test)]
    pub(crate) fn torn(&self) -> Option<u32> {
        let tier = |number: &u32| self.tables.lus.get(number).map(|lu| lu.tier);
        let lus = self.tables.lus.iter().filter(|(_, lu)| lu.is_lu());
        let mut torn = lus.filter(|(number, lu)| {
            self.tables.kin(**number).iter().any(|space| tier(space) != Some(lu.tier))
        });
        torn.next().map(|(number, _)| *number)
    }

    fn free_by_group(&self, tier: u8) -> BTreeMap<u8, u32> {
        let mut groups = BTreeMap::new();
        for pv in self.usable(tier) {
            *groups.entry(self.tables.pvs[usize::from(pv)].group).or_default() += self.free_of(pv);
        }
        groups
    }

    /// Chunks of two legs and of one that are set aside in a tier.
    pub(super) fn set_aside(&self, tier: u8) -> (u64, u64) {
        let reserved = self.reserved().filter(|(_, lu, _)| lu.tier == tier);
        let reserved = reserved.map(|(_, lu, chunks)| (lu.legs, chunks));
        in_all(self.set_aside_for_good(tier), reserved)
    }

    /// Of these what is never more than there is: what thick LUs were promised and do not have, and what is to come from other tiers.
    fn set_aside_for_good(&self, tier: u8) -> (u64, u64) {
        let thick = self.tables.lus.iter().filter(|(_, lu)| lu.thick && lu.tier == tier);
        let thick = thick.filter(|(number, lu)| self.sets_aside(**number, lu));
        let thick = thick.map(|(_, lu)| (lu.legs, lu.chunks - lu.mapped));
        let astray = (0, self.set_aside_for_astray(tier));
        let promised = self.promised.values().flatten().filter(|promised| promised.tier == tier);
        let promised = promised.map(|promised| (promised.legs, promised.chunks));
        in_all(astray, thick.chain(promised))
    }

    /// Spaces to which LUs with a reserve are written, which do not have all of it yet: what is set aside for each, in chunks.
    fn reserved(&self) -> impl Iterator<Item = (u32, &Lu, u32)> {
        self.reserves.iter().filter_map(|(lu, chunks)| {
            let space = self.tables.lus.contains_key(lu).then(|| self.space_of(*lu))?;
            let known =
                self.tables.lus.get(&space).filter(|known| !self.sets_aside(space, known))?;
            let left = known.chunks.min(*chunks).saturating_sub(known.mapped);
            (left > 0).then_some((space, known, left))
        })
    }

    /// The reserve of an LU, in chunks.
    pub(super) fn reserve_of(&self, lu: u32) -> u32 {
        self.reserves.get(&lu).copied().unwrap_or(0)
    }

    /// What of a reserve is set aside now for what is written to this space.
    pub(super) fn left_in(&self, space: u32) -> u32 {
        self.reserved().find(|(of, ..)| *of == space).map_or(0, |(_, _, left)| left)
    }

    /// Sets so many chunks aside for each of these LUs, and for no others, of what is written to them: all that an LU has, or since its last snapshot. What it has is of that. Those that get no more
    /// than they had, since there is no room: none if it is `forced`, as where they had that before the pool was opened.
    pub fn set_reserves(&mut self, reserves: BTreeMap<u32, u32>, forced: bool) -> Vec<u32> {
        let mut refused = Vec::new();
        if self.reserves == reserves {
            return refused;
        }
        let less = reserves.iter().map(|(lu, chunks)| (*lu, (*chunks).min(self.reserve_of(*lu))));
        self.reserves = less.collect();
        for (lu, chunks) in reserves {
            let before = self.reserves.insert(lu, chunks);
            let short = self.tables.lus.get(&lu).is_some_and(|known| {
                let (tier, legs) = (known.tier, known.legs);
                !self.has_room(Promised { tier, legs, chunks: 0 })
            });
            if short && !forced && before != Some(chunks) {
                self.reserves.insert(lu, before.unwrap_or(0));
                refused.push(lu);
            }
        }
        self.retry_full();
        self.turn();
        refused
    }

    /// A tier gives out so many chunks and no more, of those that are set aside for nobody, until it is told again; none: as many as there are.
    pub fn allow(&mut self, tier: u8, chunks: Option<u32>) {
        let before = match chunks {
            Some(chunks) => self.allowed.insert(tier, chunks),
            None => self.allowed.remove(&tier),
        };
        if before == Some(0) && chunks != before && self.full.waits(tier) {
            self.retry_full();
            self.turn();
        }
    }

    /// How many chunks of what it was [allowed](Pool::allow) a tier still has.
    #[must_use]
    pub fn allowed(&self, tier: u8) -> Option<u32> {
        self.allowed.get(&tier).copied()
    }

    /// Whether what waits in a tier does so although there is space.
    fn slows(&self, tier: u8) -> bool {
        let one = Promised { tier, legs: self.legs_of_tier(tier), chunks: 1 };
        self.allowed(tier) == Some(0) && self.has_room(one)
    }

    /// Whether what a thick LU or layer does not have yet is set aside: what is written to an LU that shares goes to its layer, unless it gets all that in its own space.
    pub(super) fn sets_aside(&self, number: u32, lu: &Lu) -> bool {
        let own = lu.beneath == 0 || lu.role == Role::Layer || self.merges.lu() == Some(number);
        lu.thick && own
    }

    /// Whether there is space for it besides what is set aside.
    pub(super) fn has_room(&self, more: Promised) -> bool {
        self.has_room_beside(self.set_aside(more.tier), more)
    }

    fn has_room_beside(&self, aside: (u64, u64), more: Promised) -> bool {
        let (mut pairs, mut singles) = in_all(aside, [(more.legs, more.chunks)].into_iter());
        if !self.has_room_to_return(more.tier, pairs) {
            return false;
        }
        if self.is_short(more.tier) {
            (pairs, singles) = (0, pairs + singles);
        }
        fits(self.free_by_group(more.tier).into_values(), pairs, singles)
    }

    /// Whether all chunks, with so many more, get their other leg when PVs of one of two failure groups return or have returned: each chunk has one leg in each group then.
    fn has_room_to_return(&self, tier: u8, pairs: u64) -> bool {
        let of_tier = || (0..).zip(&self.tables.pvs).filter(|(_, pv)| pv.tier == tier);
        if !of_tier().any(|(_, pv)| pv.state.lacks()) {
            return true;
        }
        let mut groups: BTreeMap<u8, (u64, u64, bool)> = BTreeMap::new();
        for (pv, table) in of_tier().filter(|(_, pv)| pv.state != MemberState::Gone) {
            let size = table.chunks().saturating_sub(self.own_of(pv));
            let dismissed = table.state.is_away() && self.members.leaves(pv);
            let takes = table.state.lacks() && !dismissed || table.state == MemberState::In;
            let (room, used, lacking) = groups.entry(table.group).or_default();
            *room += if takes { u64::from(size) } else { 0 };
            *used += u64::from(size.saturating_sub(self.free_of(pv)));
            *lacking |= table.state.lacks();
        }
        let groups: Vec<(u64, u64, bool)> = groups.into_values().collect();
        match groups[..] {
            [(room, _, true), (_, used, false)] | [(_, used, false), (room, _, true)] => {
                used + pairs <= room
            }
            _ => true,
        }
    }

    /// Whether all chunks, and what is set aside, have room for their other leg in the failure group of a PV that is away, on the PVs of it that are there.
    pub(super) fn has_room_when_dismissed(&self, pv: u16) -> bool {
        let Some(away) = self.tables.pvs.get(usize::from(pv)) else { return false };
        let (mut room, mut used, mut others) = (0, 0, false);
        for (number, table) in (0..).zip(&self.tables.pvs).filter(|(_, pv)| pv.tier == away.tier) {
            let size = u64::from(table.chunks().saturating_sub(self.own_of(number)));
            if table.group != away.group {
                used += size.saturating_sub(u64::from(self.free_of(number)));
            } else if matches!(table.state, MemberState::In | MemberState::Returning) {
                (room, others) = (room + size, true);
            }
        }
        // Another gets its copies of the journal and of the pages of LUs, if no other PV of the group has some.
        let holds =
            |pv| self.superblock().place_of(SystemKind::Journal, self.slot, pv, 0).is_some();
        let (_, groups) = self.holders(self.superblock(), Some(pv));
        let copies = if holds(pv) && !groups.contains(&away.group) { 2 } else { 0 };
        let (pairs, _) = self.set_aside(away.tier);
        others && used + pairs + copies <= room
    }

    /// Whether it needs space for what a client writes.
    pub(super) fn is_client_s(&self, piece: &Piece) -> bool {
        !matches!(piece.kind, PieceKind::WriteSums { .. }) && !self.is_of_merge(piece)
    }

    pub(super) fn wait_for_space(&mut self, piece: Piece) {
        let Some(lu) = self.tables.lus.get(&piece.key.0) else { return };
        self.full.push(lu.tier, piece);
    }

    /// Writes that wait for space, in the order in which they came, as long as there is some.
    pub(super) fn retry_full(&mut self) {
        self.members.stir();
        self.has_more_space();
        for piece in std::mem::take(&mut self.full).take(|_| true) {
            self.advance(piece);
        }
    }

    /// Calls back a request that waits for space, because its client is gone or wants it no longer. Parts of it that had space are written. False if it does not wait for space: then it is
    /// answered as ever, and nothing has changed.
    pub fn cancel(&mut self, tag: u64) -> bool {
        let pieces = self.full.take(|piece| piece.tag == tag);
        let waited = !pieces.is_empty();
        for piece in pieces {
            self.piece_done(&piece, Some(Fault::Cancelled));
        }
        if waited {
            // Who waited behind it may need less.
            self.retry_full();
            self.turn();
        }
        waited
    }

    /// Requests that wait for space, because there is none, with their LUs; the number of parts of them that do is [`Pool::paused`].
    pub fn paused_requests(&self) -> BTreeMap<u64, u32> {
        let lu = |piece: &Piece| self.jobs.get(&piece.job).map_or(piece.key.0, |job| job.lu);
        let pieces = self.full.pieces(|tier| !self.slows(tier));
        pieces.map(|piece| (piece.tag, lu(piece))).collect()
    }

    /// Requests that wait, because there is no space or although there is.
    pub fn waiting_requests(&self) -> BTreeSet<u64> {
        self.full.pieces(|_| true).map(|piece| piece.tag).collect()
    }

    /// Whether something waits for space in an LU or a layer.
    pub(super) fn full_of(&self, space: u32) -> bool {
        self.full.pieces(|_| true).any(|piece| piece.key.0 == space)
    }

    /// Parts of requests that wait for space, because there is none.
    pub fn paused(&self) -> usize {
        self.full.pieces(|tier| !self.slows(tier)).count()
    }

    /// Parts of requests that wait although there is space ([`Pool::allow`]).
    pub fn slowed(&self) -> usize {
        self.full.pieces(|tier| self.slows(tier)).count()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::fits;

    /// Whether there is room, found by trying.
    fn tried(groups: &mut [u32], pairs: u64, singles: u64) -> bool {
        if pairs == 0 {
            return groups.iter().copied().map(u64::from).sum::<u64>() >= singles;
        }
        for first in 0..groups.len() {
            for second in 0..first {
                if groups[first] > 0 && groups[second] > 0 {
                    groups[first] -= 1;
                    groups[second] -= 1;
                    let fits = tried(groups, pairs - 1, singles);
                    groups[first] += 1;
                    groups[second] += 1;
                    if fits {
                        return true;
                    }
                }
            }
        }
        false
    }

    proptest! {
        /// What is said to fit does, and taking from the groups that have most keeps it so.
        #[test]
        fn what_fits_is_what_can_be_placed(
            groups in prop::collection::vec(0..4_u32, 1..4),
            (pairs, singles) in (0..5_u64, 0..5_u64),
        ) {
            let mut groups = groups;
            let mut fit = fits(groups.iter().copied(), pairs, singles);
            prop_assert_eq!(fit, tried(&mut groups, pairs, singles));
            let legs = [vec![2; pairs as usize], vec![1; singles as usize]].concat();
            // In any order: singles first is the worst.
            let (mut pairs, mut singles) = (pairs, singles);
            for legs in legs.into_iter().rev() {
                if !fit {
                    break;
                }
                groups.sort_unstable_by(|one, two| two.cmp(one));
                groups[..legs].iter_mut().for_each(|free| *free -= 1);
                if legs == 2 { pairs -= 1 } else { singles -= 1 }
                fit = fits(groups.iter().copied(), pairs, singles);
                prop_assert!(fit, "{:?} {} {}", groups, pairs, singles);
            }
        }
    }
}
