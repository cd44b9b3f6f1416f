//! The lanes of a channel: one for each volume that any of its queues uses.

use std::collections::VecDeque;
use std::sync::Arc;

use block::{Lane, LaneId, Volume, VolumeError};
use uring::Ring;

struct Entry {
    volume: Arc<dyn Volume>,
    lane: Box<dyn Lane>,
    queues: usize,
}

/// The table of lanes: one for each volume that any queue of the channel uses. The highest id is the channel's own and never given out.
#[derive(Default)]
pub struct Lanes {
    entries: Vec<Option<Entry>>,
    /// Those whose round of long copies is due, once each.
    due: VecDeque<LaneId>,
}

impl Lanes {
    /// User data of the channel's own operations: an id that no lane has.
    pub(crate) const OWN: LaneId = LaneId(u16::MAX);

    /// The lane to `volume`, made if there is none. Each call is paired with one of [`Lanes::release`].
    ///
    /// # Errors
    ///
    /// When the volume gives no lane.
    pub fn acquire(
        &mut self,
        volume: &Arc<dyn Volume>,
        ring: &mut Ring,
    ) -> Result<LaneId, VolumeError> {
        let same =
            |entry: &Option<Entry>| entry.as_ref().is_some_and(|e| Arc::ptr_eq(&e.volume, volume));
        if let Some(index) = self.entries.iter().position(same) {
            self.entries[index].as_mut().expect("found above").queues += 1;
            return Ok(LaneId(index as u16));
        }
        let index = self.entries.iter().position(Option::is_none).unwrap_or(self.entries.len());
        // A data plane has at most 16384 queues, so an index fits and stays below OWN.
        let id = LaneId(index as u16);
        let lane = volume.lane(ring, id)?;
        let entry = Some(Entry { volume: Arc::clone(volume), lane, queues: 1 });
        if index == self.entries.len() {
            self.entries.push(entry);
            self.due.reserve(self.entries.len());
            // A tick of each: [`LaneId::TICK`].
            ring.reserve_notes(self.entries.len());
        } else {
            self.entries[index] = entry;
        }
        Ok(id)
    }

    /// A queue no longer uses the lane. The last one closes it; nothing is in flight then.
    pub fn release(&mut self, id: LaneId, ring: &mut Ring) {
        let slot = &mut self.entries[usize::from(id.0)];
        let entry = slot.as_mut().expect("released as often as acquired");
        entry.queues -= 1;
        if entry.queues == 0 {
            entry.lane.detach(ring);
            *slot = None;
        }
    }

    /// A lane has a round to copy.
    pub(crate) fn round_due(&mut self, id: LaneId) {
        debug_assert!(!self.due.contains(&id), "{id:?} has had no turn yet");
        self.due.push_back(id);
    }

    /// Whose turn it is to copy a round.
    #[inline]
    pub(crate) fn next_round(&mut self) -> Option<LaneId> {
        self.due.pop_front()
    }

    /// A lane.
    #[inline]
    pub fn get(&mut self, id: LaneId) -> Option<&mut (dyn Lane + 'static)> {
        self.entries.get_mut(usize::from(id.0))?.as_mut().map(|entry| &mut *entry.lane)
    }
}
