//! Chunks on PVs of another tier than their LU's: those of an LU that goes to another tier.

use super::*;

impl Pool {
    /// An LU may have chunks that are astray.
    pub(in crate::pool) fn goes_astray(&mut self, lu: u32) {
        let known = self.tables.lus.get(&lu);
        if known.is_some_and(|known| self.tables.astray(known) > 0) {
            self.members.astray.insert(lu);
            self.members.is_uneven();
            self.members.stir();
        }
    }

    /// There is more space: chunks that had nowhere to go may have now.
    pub(in crate::pool) fn has_more_space(&mut self) {
        self.members.uneven |= std::mem::take(&mut self.members.crowded);
    }

    /// Chunks for which there has to be room in a tier since they are astray.
    pub(in crate::pool) fn set_aside_for_astray(&self, tier: u8) -> u64 {
        let lus = self.members.astray.iter().filter_map(|lu| self.tables.lus.get(lu));
        lus.filter(|lu| lu.tier == tier).map(|lu| u64::from(self.tables.astray(lu))).sum()
    }

    /// The moves of chunks that are astray, but for those of PVs that leave, which move anyway.
    pub(super) fn plan_astray(&mut self) -> VecDeque<Planned> {
        let lus = self.tables.lus.iter();
        let astray = lus.filter(|(_, lu)| self.tables.astray(lu) > 0);
        let astray: BTreeSet<u32> = astray.map(|(number, _)| *number).collect();
        let mut plan = VecDeque::new();
        let pvs = if astray.is_empty() { Vec::new() } else { self.pvs().collect() };
        let takes = |state| matches!(state, MemberState::In | MemberState::Returning);
        for pv in pvs.into_iter().filter(|pv| takes(pv.state)) {
            let legs = self.tables.legs_on(pv.pv).into_iter();
            let elsewhere = legs
                .filter(|((lu, _), _)| astray.contains(lu) && self.tables.lus[lu].tier != pv.tier);
            plan.extend(elsewhere.map(|((lu, vchunk), leg)| {
                let held = Held { lu, vchunk, leg };
                Planned { held, from: pv.pv, to: None }
            }));
        }
        self.members.astray = astray;
        self.members.crowded = false;
        plan
    }

    /// The plan from now on.
    pub(super) fn take_plan(&mut self, plan: VecDeque<Planned>) {
        self.members.balance = Balance { planned: plan.len() as u32, over: 0, failed: 0 };
        self.members.plan = plan;
    }
}
