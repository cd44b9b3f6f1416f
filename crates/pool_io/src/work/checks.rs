//! Legs that are read: what was found, and scrubs, which whoever wants one asks for until it is over.

use pool::{Fault, Request};

use super::view::{Of, in_blocks};
use super::{Asker, Work};
use crate::findings::{ChecksView, LAST, OF_SCRUB, ScrubView};
use crate::post::Scrubs;
use crate::table::Progress;

#[derive(Debug, Default)]
pub(super) struct Checks {
    found: ChecksView,
    /// The scrub that goes on, or the last: its number.
    scrub: Option<(u64, ScrubView)>,
}

impl Checks {
    pub(super) fn view(&self) -> ChecksView {
        self.found.clone()
    }
}

impl Work {
    /// Takes what was found.
    pub(super) fn take_findings(&mut self) {
        for finding in self.core.findings() {
            self.checks.found.add(finding, LAST);
            if let Some((_, scrub)) = self.checks.scrub.as_mut().filter(|(_, it)| it.end.is_none())
            {
                scrub.found.add(finding, OF_SCRUB);
            }
            self.stale = true;
        }
    }

    /// See [`PoolHandle::scrub`](crate::PoolHandle::scrub).
    pub(crate) fn scrub(&mut self, Scrubs { id, stops }: Scrubs) -> Result<ScrubView, Fault> {
        self.take_findings();
        let known = self.checks.scrub.as_ref().map(|(of, scrub)| (*of == id, scrub.end.is_some()));
        match (known, stops) {
            (Some((true, over)), stops) => {
                if stops && !over {
                    self.submit(Asker::Nobody, Request::StopScrub);
                }
            }
            (_, true) => return Err(Fault::Cancelled),
            (Some((false, false)), false) => return Err(Fault::Busy),
            (None | Some((false, true)), false) => {
                let (progress, found) = (Progress::default(), ChecksView::default());
                self.checks.scrub = Some((id, ScrubView { progress, end: None, found }));
                self.submit(Asker::Scrub, Request::Scrub);
            }
        }
        let now = self.core.scrubbing().map(|now| {
            let (planned, moved) = (now.planned, now.over - now.skipped.min(now.over));
            self.paced(Of::Scrub, in_blocks(planned, (moved, now.parts), now.skipped))
        });
        let Some((_, scrub)) = &mut self.checks.scrub else { return Err(Fault::Cancelled) };
        if let Some(now) = now.filter(|_| scrub.end.is_none()) {
            scrub.progress = now;
        }
        Ok(scrub.clone())
    }

    /// It is over.
    pub(super) fn scrubbed(&mut self, result: Result<(), Fault>) {
        self.take_findings();
        if let Some((_, scrub)) = &mut self.checks.scrub {
            let pool::Scrubbing { planned, over, skipped, .. } = self.core.last_scrub();
            let moved = over - skipped.min(over);
            scrub.progress = in_blocks(planned, (moved, 0), skipped);
            scrub.end = Some(result);
        }
    }
}
