//! LUs that come from files and go into them: nothing is copied.

use super::{Books, failure};
use protocol::message::{CopyAct, CopySpec, CopyStatus, FailureCode, Reply};

impl Books {
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
}
