//! Where channels look for what LUs share.

use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

use pool::format::CHUNK_BYTES;
use pool::{PARTS, Request};

use super::{Asker, Work};
use crate::chain::{Chain, Space};
use crate::table::locked;

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
            locked(&self.shared.spaces).remove(&lu);
        }
    }

    /// A layer, or the space of an LU, as channels see it. One that has grown is made anew, and so are the chains of all that have it: the pool says of each that it has changed.
    fn space(&mut self, number: u32) -> Arc<Space> {
        let core = &self.core;
        let chunks = core.chunks_in(number);
        let known = locked(&self.shared.spaces).get(&number).cloned();
        if let Some(known) = known.filter(|space| space.chunks() == chunks) {
            return known;
        }
        let ways = (0..chunks).map(|chunk| core.shown(number, chunk).beneath);
        let space = Arc::new(Space::new(number, ways, core.is_layer(number)));
        let before = locked(&self.shared.spaces).insert(number, Arc::clone(&space));
        before.into_iter().for_each(|before| self.withdraw(&before));
        space
    }

    /// Shows what the layers of an LU have of chunks with which somebody works; who writes finds a block in the head. What there is no memory for stays the pool's alone.
    pub(super) fn reveal(&self, lu: u32, (at, bytes): (u64, u64), writes: bool) {
        let Some(table) = self.tables.get(&lu).filter(|table| table.shares.load(Relaxed)) else {
            return;
        };
        let Some(chain) = table.chain().1 else { return };
        // One that lies nowhere is refused.
        let end = at.saturating_add(bytes).div_ceil(CHUNK_BYTES).min(table.chunks().into());
        for vchunk in at / CHUNK_BYTES..end {
            let vchunk = vchunk as u32;
            for (depth, space) in chain.spaces().iter().enumerate() {
                let needs_block = writes && depth == 0 && !space.has_block(vchunk);
                if !needs_block && !space.is_hidden(vchunk) {
                    continue;
                }
                let kept = self.core.kept_parts(space.number, vchunk);
                if kept.is_empty() && !needs_block {
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

    /// Keeps for a successor which parts of layers are written, and forgets layers that are gone.
    pub(super) fn show_parts(&mut self) {
        let parts = &self.shared.shadow.parts;
        let mut touched = self.core.touched_parts();
        touched.append(&mut self.unkept);
        for (layer, part) in touched {
            if let Some(space) = locked(&self.shared.spaces).get(&layer) {
                space.written((part / PARTS) as u32);
            }
            let kept = self.core.kept_part(layer, part);
            if let Some(Err(error)) = kept.map(|kept| parts.keep(&kept)) {
                self.unkept.insert((layer, part));
                self.stale |= self.short.replace(error).is_none();
            }
        }
        if self.unkept.is_empty() {
            self.stale |= self.short.take().is_some();
        }
        let gone = self.core.gone_layers();
        if !gone.is_empty() {
            locked(&self.shared.spaces).retain(|space, _| !gone.contains(space));
            self.gone.1.extend(gone);
            self.partings.stir();
            // Chunks that were containers are given out again with the next root.
            self.submit(Asker::Nobody, Request::Checkpoint);
        }
    }
}
