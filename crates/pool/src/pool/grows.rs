//! PVs that grow: their devices have become larger.
//!
//! What a PV has at its end is nobody's, so nothing moves. Where its map pages or home records have no room for the further chunks, some of these are for them. The superblock that says how many chunks it has says that as well; whichever counts
//! after a crash, that before it or this one, what is behind the end that it knows is never looked at. The map page in which the old end lies is not written: of chunks that it does not have nobody ever had one, and what such a page says under the
//! superblock before would be wrong.

use super::*;
use crate::format::{PAGE_RECORDS, SUPERBLOCK_BYTES_MAX, SystemKind};
use crate::make::{homes_for, maps_for};
use members::Reshape;

impl Pool {
    pub(super) fn grow_pv(&mut self, tag: u64, pv: u16, chunks: u32) {
        if self.may_grow(tag, pv, chunks) {
            self.members.reshapes.push_back(Reshape::Grow(tag, pv, chunks));
        }
    }

    /// Whether it is to grow; if not, who waits for it is told.
    pub(super) fn may_grow(&mut self, tag: u64, pv: u16, chunks: u32) -> bool {
        let superblock = &self.chosen.superblock;
        let member = superblock.members.get(usize::from(pv));
        let member = member.filter(|member| member.state != MemberState::Gone);
        let result = match member {
            None => Err(Fault::NoSuchPv),
            Some(_) if self.tables.is_away(pv) => Err(Fault::Away),
            Some(member) if member.chunks == chunks => Ok(Reply::Done),
            Some(member) if member.chunks > chunks => Err(Fault::PvUnfit),
            Some(_) if grown(superblock, pv, chunks).is_none() => Err(Fault::PvUnfit),
            Some(_) => return true,
        };
        self.answer(tag, result);
        false
    }

    /// The superblock with it as large, and the tables; its first map page that is new.
    pub(super) fn draft_growth(
        &mut self,
        superblock: &mut Superblock,
        pv: u16,
        chunks: u32,
    ) -> Option<u32> {
        let before = superblock.members[usize::from(pv)].chunks;
        *superblock = grown(superblock, pv, chunks)?;
        self.tables.grow_pv(superblock, pv);
        Some(before.div_ceil(PAGE_RECORDS as u32))
    }

    /// The superblock that says so is durable.
    pub(super) fn has_grown(&mut self, tag: u64, pv: u16) {
        self.tables.has_grown(pv);
        self.answer(tag, Ok(Reply::Done));
        self.members.is_uneven();
        self.mend_again();
        self.retry_full();
    }
}

/// A superblock with a PV of more chunks; none where there is no room for what has to be known of them.
fn grown(superblock: &Superblock, pv: u16, chunks: u32) -> Option<Superblock> {
    let mut next = superblock.clone();
    let member = &mut next.members[usize::from(pv)];
    let mut end = std::mem::replace(&mut member.chunks, chunks);
    for (kind, needs) in
        [(SystemKind::Map, maps_for(chunks)), (SystemKind::Homes, homes_for(chunks))]
    {
        let its = |extent: &&crate::format::Extent| extent.kind == kind && extent.pv == pv;
        let has: u32 = next.extents.iter().filter(its).map(|extent| extent.count).sum();
        if let Some(count) = needs.checked_sub(has).filter(|count| *count > 0) {
            next.extents.push(crate::format::Extent { kind, slot: 0, pv, chunk: end, count });
            end = end.checked_add(count)?;
        }
    }
    (end <= chunks && next.used() <= SUPERBLOCK_BYTES_MAX).then_some(next)
}
