//! How what an LU has lies on the PVs, for whoever asks why it is as it is.

use std::ops::RangeInclusive;

use super::*;

/// See [`Pool::layout`]. All counts are of chunks, where nothing else is said.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// How often each is to be kept.
    pub legs: u8,
    /// Those that have space: its own, and those that it shares with snapshots or clones.
    pub mapped: u32,
    /// How many legs of them each PV has, by number of the member. Of a PV that is away it is not known.
    pub pvs: BTreeMap<u16, u32>,
    /// Those that have all their legs.
    pub whole: u32,
    /// Those of which a leg is missing, since its PV is away or has not got what it missed.
    pub half: u32,
    /// Of those that have all their legs, those of which the second may lack what the first has, since the host died.
    pub differ: u32,
    /// Those that are being copied to a leg that is missing or may differ, or will be as soon as it can be.
    pub mending: u32,
    /// Those that are on their way to another PV now.
    pub moving: u32,
    /// Legs that are on PVs of other tiers than its own.
    pub astray: u32,
    /// Those that were changed lately: after a crash the first leg is copied to the second.
    pub active: u32,
    /// Requests that wait for space.
    pub paused: u32,
}

/// The chunks of an LU or a layer.
fn chunks_of(space: u32) -> RangeInclusive<(u32, u32)> {
    (space, 0)..=(space, u32::MAX)
}

impl Pool {
    /// How what an LU or a snapshot has lies; nothing if there is none. What this costs does not depend on its size, but on what is being done with it.
    pub fn layout(&self, lu: u32) -> Option<Layout> {
        let known = self.tables.lus.get(&lu).filter(|_| self.serves(lu))?;
        let mut all = Layout { legs: known.legs, ..Layout::default() };
        let mut legs = 0;
        for space in self.tables.all_of(lu).collect::<BTreeSet<u32>>() {
            let Some(of) = self.tables.lus.get(&space) else { continue };
            all.mapped += of.mapped;
            all.astray += self.tables.astray(of);
            for (pv, count) in &of.pvs {
                *all.pvs.entry(*pv).or_default() += count;
                legs += count;
            }
            let moves = self.slots.range(chunks_of(space)).filter_map(|(_, slot)| {
                let moving = slot.moving.as_deref()?;
                matches!(moving.goal, moves::Goal::Move(_)).then_some(())
            });
            all.moving += moves.count() as u32;
            all.active += self.tables.active.range(chunks_of(space)).count() as u32;
            let (differ, mending) = self.mends.count(chunks_of(space));
            all.differ += differ;
            all.mending += mending;
        }
        // A chunk that is mapped has a leg at least, and two at most.
        all.half = match all.legs {
            2 => (2 * all.mapped).saturating_sub(legs),
            _ => 0,
        };
        all.whole = all.mapped - all.half.min(all.mapped);
        all.paused = self.paused_requests().into_values().filter(|of| *of == lu).count() as u32;
        Some(all)
    }
}
