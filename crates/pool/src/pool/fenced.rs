//! A pool that another server has taken over: its PVs answer this one with an error of their own, such as a conflict of reservations.
//!
//! What this server knows of the pool may not hold any more, and whatever it wrote could be on top of what the other one writes. So that error says nothing of the PV on which it came, and everything of the
//! pool: nothing is begun any more, no record says that a PV is away, and who waits is told [`Fault::Fenced`]. A client is not even told that: its request is held, and begins again where the pool is opened next.

use super::*;

impl Pool {
    /// An effect was refused, since another server has its PV: nothing of it was done. So all of the pool is [fenced](Pool::fence), unless the PV is not the pool's now: what is to be added, has left or is away
    /// may be somebody else's, and what is wanted there has failed.
    pub fn refused(&mut self, op: u64) {
        let Some((what, pvs)) = self.ops.get(&op) else { return };
        let comes_or_goes = matches!(what, Op::Join { .. } | Op::Erase { .. });
        if comes_or_goes || pvs.iter().flatten().all(|pv| self.tables.is_away(*pv)) {
            return self.done(op, Outcome::Failed);
        }
        self.fence();
    }

    /// Another server has the pool: this one does nothing any more.
    pub fn fence(&mut self) {
        self.stop(Fault::Fenced);
        // Neither what came up and was not asked for so far.
        self.effects.retain(|effect| effect.number().is_none());
    }
}
