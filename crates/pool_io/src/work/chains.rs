//! Where channels look for what LUs share.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use pool::format::CHUNK_BYTES;

use super::Work;
use crate::chain::{Chain, Space};

impl Work {
    /// Shows where what an LU holds is, or that the pool has to be asked.
    pub(super) fn show_chain(&mut self, lu: u32) {
        let Some(table) = self.tables.get(&lu).map(Arc::clone) else { return };
        let spaces = self.core.beneath(lu).map(|spaces| {
            let all = spaces.into_iter().map(|space| self.space(space));
            Arc::new(Chain::of(all.collect::<Vec<_>>().into_iter()))
        });
        table.show_chain(spaces);
        let shares = self.core.shares(lu);
        table.shares.store(shares, Relaxed);
        // Nobody looks there as in what lies beneath others, and it may get another size.
        if !shares {
            self.spaces.remove(&lu);
        }
    }

    /// A layer, or the space of an LU, as channels see it. One that has grown is made anew, and so are the chains of all that have it: the pool says of each that it has changed.
    fn space(&mut self, number: u32) -> Arc<Space> {
        let core = &self.core;
        let chunks = core.chunks_in(number);
        if let Some(known) = self.spaces.get(&number).filter(|space| space.chunks() == chunks) {
            return Arc::clone(known);
        }
        let ways = (0..chunks).map(|chunk| core.shown(number, chunk).beneath);
        let space = Arc::new(Space::new(number, ways, core.is_layer(number)));
        self.spaces.insert(number, Arc::clone(&space));
        space
    }

    /// Shows what the layers of an LU have of chunks with which somebody works. What there is no memory for stays the pool's alone.
    pub(super) fn reveal(&self, lu: u32, (at, bytes): (u64, u64)) {
        let Some(table) = self.tables.get(&lu).filter(|table| table.shares.load(Relaxed)) else {
            return;
        };
        let Some(chain) = table.chain().1 else { return };
        // One that lies nowhere is refused.
        let end = at.saturating_add(bytes).div_ceil(CHUNK_BYTES).min(table.chunks().into());
        for vchunk in at / CHUNK_BYTES..end {
            let vchunk = vchunk as u32;
            for space in chain.spaces().iter().filter(|space| space.is_hidden(vchunk)) {
                let kept = self.core.kept_parts(space.number, vchunk);
                if kept.is_empty() {
                    space.reveal(vchunk, None);
                    continue;
                }
                let key = (space.number, vchunk);
                if let Ok(block) = self.shared.shadow.parts.keep_all(key, &kept) {
                    space.reveal(vchunk, Some(block));
                }
            }
        }
    }
}
