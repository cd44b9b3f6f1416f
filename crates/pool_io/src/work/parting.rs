//! LUs that are detached, and layers that need not be there: asked for when somebody wants it, or when something has gone.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use memory::clock;
use pool::{Fault, Request};

use super::{Asker, Work};
use crate::post::Parting;
use crate::table::Progress;

use super::view::{Of, in_blocks};

/// How long after it could not be done it is tried again.
const AGAIN: Duration = Duration::from_secs(300);

#[derive(Debug)]
pub(super) struct Partings {
    /// LUs that are detached: under which number that was asked for, and what went wrong.
    lus: BTreeMap<u32, (u64, Option<Fault>)>,
    /// Something may have become possible.
    stirred: bool,
    /// It is looked for what can be coalesced.
    looks: bool,
    again: Option<Instant>,
}

impl Default for Partings {
    /// When a pool is opened it is looked what a process before this one has left.
    fn default() -> Partings {
        Partings { lus: BTreeMap::new(), stirred: true, looks: false, again: None }
    }
}

impl Partings {
    pub(super) fn stir(&mut self) {
        self.stirred = true;
    }

    pub(super) fn due(&self) -> Option<Instant> {
        self.again
    }
}

impl Work {
    /// See [`PoolHandle::detach`](crate::PoolHandle::detach).
    pub(crate) fn part(&mut self, parting: Parting) -> Result<Option<Progress>, Fault> {
        let Parting { lu, id, stops } = parting;
        let there = self.core.lus().any(|(number, _)| number == lu);
        let known = self.partings.lus.get(&lu).copied();
        let goes_on = matches!(known, Some((_, None))) || self.core.coalescing_of(lu).is_some();
        if stops {
            if !(goes_on || self.core.has_idle_space(lu)) || !there {
                return Ok(None);
            }
            self.submit(Asker::Nobody, Request::StopDetach { lu });
            return Ok(Some(self.parting_of(lu)));
        }
        match known {
            Some((asked, Some(fault))) if asked == id => return Err(fault),
            Some((_, None)) => {}
            _ if !self.core.judge_detach(lu)? => return Ok(None),
            _ => {
                self.partings.lus.insert(lu, (id, None));
                self.submit(Asker::Part(lu), Request::Detach { lu });
                self.stale = true;
            }
        }
        Ok(Some(self.parting_of(lu)))
    }

    /// How far it is.
    fn parting_of(&mut self, lu: u32) -> Progress {
        let now = self.core.coalescing_of(lu);
        let (planned, moved) = now.map_or((0, 0), |now| (now.planned, now.over));
        self.paced(Of::Lu(lu), in_blocks(planned, (moved, 0), 0))
    }

    /// LUs that are being detached, with how far that is.
    pub(super) fn all_partings(&mut self) -> BTreeMap<u32, Progress> {
        let lus: Vec<u32> = self.core.coalescing().into_iter().filter_map(|one| one.lu).collect();
        lus.into_iter().map(|lu| (lu, self.parting_of(lu))).collect()
    }

    /// One is over.
    pub(super) fn parted(&mut self, lu: u32, result: Result<(), Fault>) {
        self.stale = true;
        match result {
            // What stopped it is known to who did.
            Ok(()) | Err(Fault::Cancelled | Fault::NoSuchLu) => _ = self.partings.lus.remove(&lu),
            Err(fault) => {
                if let Some((_, wrong)) = self.partings.lus.get_mut(&lu) {
                    *wrong = Some(fault);
                }
            }
        }
        // Nobody may look any more.
        if self.partings.lus.len() > 1000 {
            self.partings.lus.retain(|_, (_, wrong)| wrong.is_none());
        }
    }

    /// Looks for what can be coalesced, one search after the other.
    pub(super) fn coalesce(&mut self) {
        if self.partings.again.is_some_and(|due| due <= clock::instant()) {
            (self.partings.again, self.partings.stirred) = (None, true);
        }
        let may = self.core.is_serving() && self.closing.is_none() && !self.partings.looks;
        if may && std::mem::take(&mut self.partings.stirred) {
            self.partings.looks = true;
            self.submit(Asker::Coalesce, Request::Coalesce);
        }
    }

    /// There is nothing more, or nothing more that can be done now.
    pub(super) fn coalesced(&mut self) {
        self.stale = true;
        self.partings.looks = false;
        if self.core.has_idle_layers() {
            self.partings.again = Some(clock::instant() + AGAIN);
        }
    }
}
