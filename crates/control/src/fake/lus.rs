//! What is asked of LUs: they come from files and go into them, where nothing is copied, and lie somewhere.

use super::{Books, failure};
use protocol::message::{
    CopyAct, CopySpec, CopyStatus, FailureCode, LayoutSpec, LayoutStatus, LuStatus, OnPv, PvStatus,
    Reply, VolumeKind, VolumeSpec,
};
use spec::FileIdentity;

impl Books {
    /// The LU of a pool that is meant, or was asked for with the same mark, or else is made.
    pub(super) fn find_lu(&mut self, spec: &VolumeSpec) -> Option<FileIdentity> {
        let VolumeKind::Lu(wanted) = &spec.kind else { return None };
        let pool = self.status.pools.iter_mut().find(|pool| pool.spec.name == wanted.pool)?;
        if wanted.identity.is_some() {
            return wanted.identity.clone();
        }
        let known = |lu: &&LuStatus| wanted.asked != 0 && lu.asked == wanted.asked;
        if self.makes_lus && !pool.lus.iter().any(|lu| known(&lu)) {
            let number = pool.lus.iter().map(|lu| lu.number + 1).max().unwrap_or(1);
            let (bytes, asked) = (spec.bytes.unwrap_or(1 << 30), wanted.asked);
            pool.lus.push(LuStatus { number, bytes, asked, ..LuStatus::default() });
        }
        let lu = pool.lus.iter().find(known)?;
        Some(FileIdentity::Lu { pool: pool.spec.uuid.clone(), number: lu.number, bytes: lu.bytes })
    }

    pub(super) fn copy(&mut self, spec: &CopySpec) -> Reply {
        let over = !self.holds_copies;
        if matches!(spec.act, CopyAct::Import { .. } | CopyAct::Export { .. }) {
            let copied_bytes = if over { 1 << 20 } else { 1 << 10 };
            let begun =
                CopyStatus { planned_bytes: 1 << 20, copied_bytes, over, ..CopyStatus::default() };
            self.copies.entry(spec.id).or_insert(begun);
        }
        let Some(now) = self.copies.get_mut(&spec.id) else {
            return failure(FailureCode::NotFound, format!("no copy `{}`", spec.id));
        };
        if spec.act == CopyAct::Stop && !now.over {
            (now.over, now.stopped) = (true, true);
        }
        Reply::Copy(Box::new(now.clone()))
    }

    /// All of an LU is on the first PV.
    pub(super) fn layout(&self, of: &LayoutSpec) -> Reply {
        let pool = self.status.pools.iter().find(|pool| pool.spec.name == of.pool);
        let lu = pool.and_then(|pool| pool.lus.iter().find(|lu| lu.number == of.lu));
        let Some((pool, lu)) = pool.zip(lu) else {
            return failure(FailureCode::NotFound, format!("no LU {}", of.lu));
        };
        let mapped = lu.mapped_bytes / (64 << 20);
        let on = |pv: &PvStatus| OnPv { path: pv.path.clone(), group: pv.group, chunks: mapped };
        let (pvs, paused) = (pool.pvs.first().map(on).into_iter().collect(), pool.paused);
        let layout = LayoutStatus { pvs, mapped, whole: mapped, paused, ..LayoutStatus::default() };
        Reply::Layout(Box::new(layout))
    }
}
