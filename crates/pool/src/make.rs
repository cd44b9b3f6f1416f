//! A new pool: where its own blocks go, and what is written on its PVs.

use std::collections::BTreeSet;

use crate::choose::{MIRROR, mirrors};
use crate::format::{
    CHUNK_BYTES, Extent, HOME_BYTES, Label, MEMBERS_MAX, Member, MemberState, OWNERS, Owner,
    PAGE_BYTES, PAGE_RECORDS, Page, PageKind, Place, Root, SUPERBLOCK_AT, Superblock, SystemKind,
    Uuid,
};
use crate::tables::Tables;

/// PVs that have a copy of the journal and of the LUs.
pub const COPIES: usize = 3;

/// A PV for a new pool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewPv {
    /// Its UUID, not yet used.
    pub pv: Uuid,
    /// Whole chunks of 64 MiB that it has room for.
    pub chunks: u32,
    /// Its tier.
    pub tier: u8,
    /// Its failure group.
    pub group: u8,
}

/// Why there is no such pool.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NotMade {
    /// No PV, or too many.
    #[error("a pool has 1 to {MEMBERS_MAX} PVs, not {0}")]
    Number(usize),
    /// Nothing is left of a PV for data.
    #[error("PV {pv} has {chunks} chunks of 64 MiB and needs more than {least}")]
    Small {
        /// The PV.
        pv: Uuid,
        /// Its chunks.
        chunks: u32,
        /// Those that the pool's own blocks take.
        least: u32,
    },
    /// Two have one UUID.
    #[error("two PVs have the UUID {0}")]
    Twice(Uuid),
}

/// Something to write: number of the PV, where, what.
pub type Placed = (u16, u64, Vec<u8>);

/// A new pool: its superblock, and what is to be written on its PVs. Each part is made durable before the next is begun; the labels come last, so that what was not finished is no pool.
pub fn make(pool: Uuid, pvs: &[NewPv]) -> Result<(Superblock, [Vec<Placed>; 3]), NotMade> {
    if !(1..=MEMBERS_MAX).contains(&pvs.len()) {
        return Err(NotMade::Number(pvs.len()));
    }
    let mut uuids = BTreeSet::new();
    if let Some(twice) = pvs.iter().find(|pv| !uuids.insert(pv.pv)) {
        return Err(NotMade::Twice(twice.pv));
    }
    let copies = with_copies(pvs);
    let mut extents = Vec::new();
    for (number, pv) in (0..).zip(pvs) {
        let own = layout(number, pv.chunks, copies.contains(&number));
        let small = |least| NotMade::Small { pv: pv.pv, chunks: pv.chunks, least };
        extents.extend(own.map_err(small)?);
    }
    let members: Vec<Member> = pvs.iter().map(NewPv::member).collect();
    let superblock = Superblock {
        pool,
        sequence: 1,
        epoch: 1,
        parent: [0; 16],
        features: [if mirrors(&members) { MIRROR } else { 0 }, 0, 0],
        root: Root::default(),
        owners: [Owner::default(); OWNERS],
        members,
        extents,
    };
    let writes = [pages(&superblock), superblocks(&superblock), labels(&superblock)];
    Ok((superblock, writes))
}

impl NewPv {
    /// What the superblock says of it.
    pub(crate) fn member(&self) -> Member {
        Member {
            pv: self.pv,
            chunks: self.chunks,
            tier: self.tier,
            group: self.group,
            state: MemberState::In,
            sync_until: 0,
            had: 0,
            seen: 1,
        }
    }
}

/// The pool's own chunks on a PV, from the second on; or how many chunks those take that it has too few beside.
pub(crate) fn layout(pv: u16, chunks: u32, copies: bool) -> Result<Vec<Extent>, u32> {
    let mut own = vec![(SystemKind::Map, maps_for(chunks)), (SystemKind::Homes, homes_for(chunks))];
    if copies {
        own.extend([(SystemKind::Journal, 1), (SystemKind::Lus, 1)]);
    }
    let mut chunk = 1;
    let mut extents = Vec::new();
    for (kind, count) in own {
        extents.push(Extent { kind, slot: 0, pv, chunk, count });
        chunk += count;
    }
    if chunk < chunks { Ok(extents) } else { Err(chunk) }
}

/// The chunks that the map pages of so many chunks take.
pub(crate) fn maps_for(chunks: u32) -> u32 {
    let pages = u64::from(chunks.div_ceil(PAGE_RECORDS as u32));
    (pages * 2 * PAGE_BYTES as u64).div_ceil(CHUNK_BYTES) as u32
}

/// … and their home records.
pub(crate) fn homes_for(chunks: u32) -> u32 {
    (u64::from(chunks) * 2 * HOME_BYTES as u64).div_ceil(CHUNK_BYTES) as u32
}

/// The PVs that get copies: of each failure group one, then further ones.
fn with_copies(pvs: &[NewPv]) -> Vec<u16> {
    let mut groups = BTreeSet::new();
    let (first, others): (Vec<u16>, Vec<u16>) =
        (0..pvs.len() as u16).partition(|pv| groups.insert(pvs[usize::from(*pv)].group));
    first.into_iter().chain(others).take(COPIES).collect()
}

fn pages(superblock: &Superblock) -> Vec<Placed> {
    let tables = Tables::new(superblock);
    let mut writes = Vec::new();
    for (pv, member) in (0..).zip(&superblock.members) {
        let maps = (0..member.chunks.div_ceil(PAGE_RECORDS as u32))
            .map(|number| (PageKind::Map, SystemKind::Map, number, tables.map_page(pv, number)));
        let lus = (PageKind::Lus, SystemKind::Lus, 0, tables.lu_page(0));
        for (kind, system, number, records) in maps.chain([lus]) {
            let offset = 2 * PAGE_BYTES as u64 * u64::from(number);
            let Some(at) = superblock.place_of(system, 0, pv, offset) else { continue };
            let (pool, epoch) = (superblock.pool, superblock.epoch);
            let page = Page { pool, kind, pv, number, copy: 0, sequence: 0, epoch, records };
            writes.push((pv, at, page.encode()));
        }
    }
    writes
}

fn superblocks(superblock: &Superblock) -> Vec<Placed> {
    let mut writes = Vec::new();
    for (pv, member) in (0..).zip(&superblock.members) {
        for (copy, at) in (0..).zip(SUPERBLOCK_AT) {
            let place = Place { member: pv, pv: member.pv, copy };
            writes.push((pv, at, superblock.encode(place)));
        }
    }
    writes
}

fn labels(superblock: &Superblock) -> Vec<Placed> {
    let label = |member: &Member| Label { pool: superblock.pool, pv: member.pv }.encode();
    let members = (0..).zip(&superblock.members);
    members.map(|(pv, member)| (pv, 0, label(member))).collect()
}
