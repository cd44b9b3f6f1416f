//! What is written above snapshots by channels, in slots that they take.

use std::ops::Range;
use std::sync::Arc;

use block::OpKind;
use pool::Channels;

use super::Work;
use crate::chain::{OFFERED_FEW, Space};
use crate::post::Ask;
use crate::table::{Shared, locked};

/// Slots that an LU offers at once. A process that dies leaves as many unused.
const OFFERED: u32 = 2 * OFFERED_FEW;

/// The words by which channels take slots.
#[derive(Debug)]
struct Words(Arc<Shared>);

impl Channels for Words {
    fn close(&self, layer: u32, part: u64) -> Option<u32> {
        self.0.shadow.parts.close(layer, part)
    }

    fn withdraw(&self, layer: u32) -> Range<u32> {
        locked(&self.0.spaces).get(&layer).map_or(0..0, |space| space.withdraw())
    }
}

pub(super) fn channels(shared: &Arc<Shared>) -> Box<dyn Channels> {
    Box::new(Words(Arc::clone(shared)))
}

impl Work {
    /// Shows what channels need to do the next such request by themselves.
    pub(super) fn prepare(&mut self, ask: &Ask) {
        let writes = matches!(ask.op, OpKind::Write { .. }) && !self.shared.mirrors;
        self.reveal(ask.lu, (ask.at, ask.bytes), writes);
        if writes && self.head(ask.lu).is_some_and(|head| head.offered() < OFFERED_FEW) {
            self.offer(ask.lu);
        }
    }

    /// The layer that an LU writes to, if channels may look there.
    fn head(&self, lu: u32) -> Option<Arc<Space>> {
        let (_, chain) = self.tables.get(&lu)?.chain();
        chain?.head().cloned()
    }

    /// Offers slots anew, with those that were not taken.
    pub(crate) fn offer(&mut self, lu: u32) {
        let Some(head) = self.head(lu) else { return };
        self.withdraw(&head);
        if let Some((layer, slots)) = self.core.offer(lu, OFFERED) {
            // First their blocks, of which channels see that they are written.
            self.show();
            if let Some(head) = locked(&self.shared.spaces).get(&layer) {
                head.offer(slots);
            }
        }
    }

    pub(super) fn withdraw(&mut self, space: &Space) {
        self.core.withdraw(space.number, space.withdraw());
    }

    /// The core learns what channels have written in slots that they took.
    pub(crate) fn learn_taken(&mut self) {
        // Channels go on with the memory of those before.
        let mut taken = std::mem::take(&mut self.learnt);
        std::mem::swap(&mut taken, &mut *locked(&self.shared.taken));
        taken.drain(..).for_each(|kept| self.core.took(&kept));
        self.learnt = taken;
    }
}
