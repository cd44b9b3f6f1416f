//! Slots that channels take by themselves, so that what is written above a snapshot for the first time does not wait for the pool.
//!
//! ```text
//! pool                                       channel
//! offer: slots behind all that are used ───► takes one for a part, writes there, has the sectors present
//! took ◄──────────────────────────────────── … and says so before it answers
//! close, before a part is placed ──────────► takes none for that part from now on; or has taken one, and that is its slot
//! withdraw ◄──────────────────────────────── what no channel has taken, and none will
//! ```
//!
//! What is offered lies in one container that is there for good, and its blocks count as written from then on: only what is present in a slot is ever read, so it does no harm that nothing was written there yet.
//!
//! A layer has no more slots than it may need. So before the pool begins another container it withdraws what is offered and not taken; and where all slots behind those in use are given out, those are used
//! that a process before this one had given out in vain.

use std::ops::Range;

use super::*;
use crate::layers::{PART_BYTES, SLOTS, slot_place};

/// What says which slots channels have taken.
pub trait Channels: std::fmt::Debug + Send {
    /// No channel takes a slot for this part of a layer from now on; the slot that one has taken for it.
    fn close(&self, layer: u32, part: u64) -> Option<u32>;

    /// The slots of a layer that are offered and that no channel has taken, and none will. Those that are taken are those of parts.
    fn withdraw(&self, layer: u32) -> Range<u32>;
}

/// Slots of a layer that nobody has.
#[derive(Debug, Default)]
pub(super) struct Free {
    /// All from this one on.
    next: u32,
    /// All of which nothing is known, below this one; 0: there are none.
    before: u32,
    /// Others.
    others: Vec<Range<u32>>,
}

impl Free {
    pub(super) fn behind(end: u32) -> Free {
        Free { next: end, before: end, others: Vec::new() }
    }

    /// Takes one, of a layer that has so many; none is left only if each part has one. `offered` are those that come back, `gaps` those below a slot that are not in use.
    fn take(
        &mut self,
        count: u32,
        offered: impl FnOnce() -> Range<u32>,
        gaps: impl FnOnce(u32) -> Vec<Range<u32>>,
    ) -> Option<u32> {
        if self.others.is_empty() && self.next.is_multiple_of(SLOTS) {
            self.give_back(offered());
        }
        if self.others.is_empty() && self.next >= count && self.before > 0 {
            self.others = gaps(std::mem::take(&mut self.before));
        }
        if let Some(range) = self.others.last_mut() {
            let slot = range.start;
            range.start += 1;
            if range.start == range.end {
                self.others.pop();
            }
            return Some(slot);
        }
        let slot = self.next;
        self.next += u32::from(slot < count);
        (slot < count).then_some(slot)
    }

    fn give_back(&mut self, slots: Range<u32>) {
        if slots.is_empty() {
        } else if slots.end == self.next {
            self.next = slots.start;
        } else {
            self.others.push(slots);
        }
    }
}

impl Pool {
    /// Who is asked before a part of a layer is placed. Nobody: channels take no slots.
    pub fn set_channels(&mut self, channels: Box<dyn Channels>) {
        self.layered.channels = Some(channels);
    }

    /// Slots that channels may take that write to an LU by themselves, `most` at most: of which layer, and their numbers. The shell shows what was touched before it says so to any channel.
    pub fn offer(&mut self, lu: u32, most: u32) -> Option<(u32, Range<u32>)> {
        let head = *self.beneath(lu)?.first()?;
        let count = self.chunks_in(head);
        let first = self.free(head).next;
        let (container, at) = slot_place(first);
        let key = (head, container);
        if container >= count || !matches!(self.shown(head, container).beneath, Way::There(_)) {
            return None;
        }
        let end = first.saturating_add(most).min((container + 1) * SLOTS);
        let bytes = u64::from(end - first) * PART_BYTES;
        let blocks = (at / BLOCK_BYTES) as usize..(at + bytes).div_ceil(BLOCK_BYTES) as usize;
        self.free(head).next = end;
        let slot = self.slots.get_mut(&key)?;
        slot.live = slot.live.or(Bits::range(blocks.start, blocks.end));
        self.touched.insert(key);
        Some((head, first..end))
    }

    /// No channel has taken these, and none will.
    pub fn withdraw(&mut self, layer: u32, slots: Range<u32>) {
        if self.tables.is_layer(layer) {
            self.free(layer).give_back(slots);
        }
    }

    /// What a channel has written by itself is present. Of a layer that is gone nothing is known any more.
    pub fn took(&mut self, kept: &KeptPart) {
        let KeptPart { layer, part, slot, present } = *kept;
        let placed = self.placed(layer, part).unwrap_or(Placed { slot, present: 0 });
        debug_assert_eq!(placed.slot, slot, "part {part} of layer {layer} is in two slots");
        if self.has_space(layer) && placed.slot == slot {
            let present = placed.present | present;
            self.layered.live.insert((layer, part), Placed { slot, present });
        }
    }

    /// Where a part is in a layer, or will be: in the slot that a channel has taken for it, or in the next.
    pub(super) fn place(&mut self, layer: u32, part: u64) -> Placed {
        if let Some(placed) = self.placed(layer, part) {
            return placed;
        }
        let asks = self.keeps(Rule::PlaceAfterClose);
        let channels = self.layered.channels.as_ref().filter(|_| asks);
        let taken = channels.and_then(|channels| channels.close(layer, part));
        let slot = taken.or_else(|| self.next_slot(layer));
        debug_assert!(slot.is_some(), "layer {layer} has no slot for part {part}");
        // One that is not there is refused, and tried for again.
        let none = self.chunks_in(layer).saturating_mul(SLOTS);
        let placed = Placed { slot: slot.unwrap_or(none), present: 0 };
        if slot.is_some() {
            self.layered.live.insert((layer, part), placed);
        }
        placed
    }

    fn next_slot(&mut self, layer: u32) -> Option<u32> {
        let count = self.chunks_in(layer).saturating_mul(SLOTS);
        let mut free = std::mem::take(self.free(layer));
        let channels = self.layered.channels.as_ref();
        let offered = || channels.map_or(0..0, |channels| channels.withdraw(layer));
        let slot = free.take(count, offered, |end| self.gaps(layer, end));
        *self.free(layer) = free;
        slot
    }

    fn free(&mut self, layer: u32) -> &mut Free {
        let Layered { free, live, .. } = &mut self.layered;
        free.entry(layer).or_insert_with(|| {
            let live = live.range((layer, 0)..=(layer, u64::MAX));
            let end = live.map(|(_, placed)| placed.slot + 1).max().unwrap_or(0);
            Free::behind(end.max(self.tables.parts.end(layer)))
        })
    }

    /// The slots of a layer below one that no part has.
    fn gaps(&self, layer: u32, end: u32) -> Vec<Range<u32>> {
        let live = self.layered.live.range((layer, 0)..=(layer, u64::MAX));
        let live = live.map(|(_, placed)| placed.slot);
        let used: BTreeSet<u32> = live.chain(self.tables.parts.slots(layer)).collect();
        let ends = used.range(..end).copied().chain([end]);
        let mut next = 0;
        let gaps = ends.filter_map(|slot| {
            let gap = next..slot;
            next = slot + 1;
            (!gap.is_empty()).then_some(gap)
        });
        gaps.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_slot_is_taken_once_whatever_was_withdrawn_or_given_out_in_vain() {
        const COUNT: u32 = 2 * SLOTS;
        let gaps = |end| if end == SLOTS - 2 { vec![1..2, 4..5] } else { panic!("{end}") };
        let mut free = Free::behind(SLOTS - 2);
        let none = || panic!("in the middle of a container");
        let mut taken = vec![free.take(COUNT, none, gaps)];
        // The last of the container is offered, and comes back before another is begun.
        free.next = SLOTS;
        taken.push(free.take(COUNT, || SLOTS - 1..SLOTS, gaps));
        taken.push(free.take(COUNT, || 0..0, gaps));
        // Of four that are offered two come back, and others are behind them.
        free.next = COUNT - 2;
        free.give_back(COUNT - 5..COUNT - 3);
        taken.extend((0..4).map(|_| free.take(COUNT, none, gaps)));
        // All of them are given out: those are left that were given out in vain, and then none, however often it is asked for.
        taken.extend((0..3).map(|_| free.take(COUNT, || 0..0, gaps)));
        taken.push(free.take(COUNT, || 0..0, |_| panic!("once")));
        let expected = [
            [SLOTS - 2, SLOTS - 1, SLOTS, COUNT - 5].map(Some),
            [COUNT - 4, COUNT - 2, COUNT - 1, 4].map(Some),
        ];
        assert_eq!(taken[..8], expected.concat());
        assert_eq!(taken[8..], [Some(1), None, None]);
    }
}
