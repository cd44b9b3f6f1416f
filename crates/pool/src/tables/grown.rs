//! PVs that get more chunks, which are not given out before a superblock has them.

use super::{Pv, Superblock, Tables};

impl Pv {
    /// How many of its chunks from there on are nobody's.
    pub(super) fn count_free(&self, first: u32) -> u32 {
        let whose = self.whose.get(first as usize..self.chunks() as usize).unwrap_or_default();
        whose.iter().filter(|(lu, _)| *lu == 0).count() as u32
    }
}

impl Tables {
    /// A PV is about to have more chunks, as the superblock has it; none of them is given out.
    pub(crate) fn grow_pv(&mut self, superblock: &Superblock, pv: u16) {
        let grown = Pv::new(superblock, pv);
        let now = &mut self.pvs[usize::from(pv)];
        let more = grown.whose.get(now.whose.len()..).unwrap_or_default();
        now.coming = more.len() as u32;
        now.whose.extend_from_slice(more);
    }

    /// … and has them.
    pub(crate) fn has_grown(&mut self, pv: u16) {
        let now = &mut self.pvs[usize::from(pv)];
        let before = now.chunks();
        now.coming = 0;
        now.free += now.count_free(before);
    }

    /// … and does not get them.
    pub(crate) fn keep_size(&mut self, pv: u16) {
        let kept = &mut self.pvs[usize::from(pv)];
        kept.whose.truncate(kept.chunks() as usize);
        kept.coming = 0;
    }
}
