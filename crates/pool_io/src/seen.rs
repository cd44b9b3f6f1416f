//! What an open pool says of itself to whoever asks.

use std::sync::Arc;

use block::Volume as _;
use pool::Layout;

use crate::PoolError;
use crate::post::Message;
use crate::table::PoolView;
use crate::thread::{PoolHandle, ask};

impl PoolHandle {
    /// How what an LU has lies on the PVs; nothing if there is no such LU.
    ///
    /// # Errors
    ///
    /// The pools' thread has ended.
    pub fn layout(&self, lu: u32) -> Result<Option<Layout>, PoolError> {
        ask(&self.inbox, |reply| Message::Layout(Arc::clone(&self.shared), lu, reply))
    }

    /// How it stands.
    #[must_use]
    pub fn view(&self) -> PoolView {
        let mut view = self.shared.view();
        let lost = self.shared.pvs().into_iter().find_map(|(_, pv)| {
            Some(format!("PV {}: {}", pv.path.display(), pv.volume.trouble()?))
        });
        let mut away = view.pvs.iter().filter(|pv| pv.space.state.is_away());
        let away = away.next().map(|pv| {
            let why = self.shared.why_away(pv.space.pv).map(|why| format!(" ({why})"));
            let then = match pv.leaving {
                None => "it is used again by itself when it is in order",
                Some(_) => {
                    "it leaves, and what was on it gets its other copy on the other PVs of its own"
                }
            };
            format!(
                "PV {} is away{}: the other failure group serves; {then}",
                pv.path.display(),
                why.unwrap_or_default()
            )
        });
        view.trouble = view.trouble.or(away).or(lost);
        for pv in &mut view.pvs {
            let open = self.shared.pv(pv.space.pv);
            pv.traffic = open.map(|open| open.meters.sum()).unwrap_or_default();
        }
        view
    }
}
