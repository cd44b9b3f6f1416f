//! PVs that are away: looked for by whoever has the pool, and used again when they are there.

use std::sync::Arc;
use std::time::Duration;

use block::{Files, OpenEvent};

use crate::PoolError;
use crate::open::{chunks_of, lane_of};
use crate::post::Message;
use crate::table::PvView;
use crate::thread::{PoolHandle, ask, open_pv};

impl PoolHandle {
    /// Whether its chunks have two legs.
    #[must_use]
    pub fn mirrors(&self) -> bool {
        self.shared.mirrors
    }

    /// Waits as long as that, and then until a PV is away; false if the pool closes.
    #[must_use]
    pub fn wait_for_away(&self, least: Duration) -> bool {
        self.shared.wait_for_away(least)
    }

    /// Looks for PVs that are away: those that are there again are used again, and get what they missed. How many are still away.
    pub fn look_for_away(
        &self,
        files: &dyn Files,
        server: Option<&str>,
        event: &mut dyn FnMut(OpenEvent),
    ) -> usize {
        let pvs = self.shared.view().pvs.into_iter();
        let away = pvs.filter(PvView::may_return);
        let tried = away.map(|pv| {
            let error = self.return_pv(files, server, &pv, event).err();
            let still = error.is_some();
            self.shared.still_away(pv.space.pv, error.map(|error| error.to_string()));
            usize::from(still)
        });
        tried.sum()
    }

    /// A PV is opened anew: it may be another device by now that is at its path.
    fn return_pv(
        &self,
        files: &dyn Files,
        server: Option<&str>,
        pv: &PvView,
        event: &mut dyn FnMut(OpenEvent),
    ) -> Result<(), PoolError> {
        let number = pv.space.pv;
        let path = pv.path.display();
        let shared = Arc::clone(&self.shared);
        if !ask(&self.inbox, |reply| Message::LetGo(shared, number, reply))? {
            let what = format!("PV {path}: operations on it have not come back so far");
            return Err(PoolError::new(what, "see whether the device is in order"));
        }
        let open = open_pv(files, server, &self.shared.name, &pv.path, event)?;
        let chunks = chunks_of(&open.volume);
        if chunks < pv.space.chunks {
            let what =
                format!("PV {path} has {chunks} chunks of 64 MiB, and had {}", pv.space.chunks);
            return Err(PoolError::new(what, "correct the path, or put the device back"));
        }
        let mut lane = lane_of(&self.inbox, &open)?;
        let shared = Arc::clone(&self.shared);
        let Some(lane) = lane.keep() else { return Ok(()) };
        ask(&self.inbox, |reply| Message::Return(shared, number, (open, lane), reply))?
    }
}
