//! What is told of legs that were read: for a scrub, or since a client could not read one.

use std::collections::VecDeque;
use std::sync::Arc;

use pool::{Fault, Finding, FindingKind};

use crate::PoolError;
use crate::post::{Message, Scrubs};
use crate::table::Progress;
use crate::thread::{PoolHandle, ask};

/// Findings of which the places are kept, of a pool since it was opened.
pub(crate) const LAST: usize = 64;
/// … and of a scrub.
pub(crate) const OF_SCRUB: usize = 256;

/// What was found, of 4 KiB each.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChecksView {
    /// How often legs differed.
    pub differs: u64,
    /// How often one could not be read, and can be since it was written again.
    pub repaired: u64,
    /// How often one could not be read, and still cannot.
    pub unreadable: u64,
    /// How often no leg could be read.
    pub lost: u64,
    /// The last of all these.
    pub last: VecDeque<Finding>,
}

impl ChecksView {
    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.differs + self.repaired + self.unreadable + self.lost
    }

    /// One more; of so many the places are kept.
    pub(crate) fn add(&mut self, finding: Finding, most: usize) {
        let count = match finding.kind {
            FindingKind::Differs => &mut self.differs,
            FindingKind::Repaired => &mut self.repaired,
            FindingKind::Unreadable => &mut self.unreadable,
            FindingKind::Lost => &mut self.lost,
        };
        *count += 1;
        self.last.push_back(finding);
        if self.last.len() > most {
            self.last.pop_front();
        }
    }
}

/// A scrub, while it goes on and when it is over.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScrubView {
    /// How far it is.
    pub progress: Progress,
    /// What became of it; none while it goes on.
    pub end: Option<Result<(), Fault>>,
    /// What was found meanwhile.
    pub found: ChecksView,
}

impl PoolHandle {
    /// Begins to read all that is written from every leg, which are compared, and says how far that is; or what became of it, to who asks with the number under which it began. It goes on by itself.
    ///
    /// # Errors
    ///
    /// Another one goes on, or the pool can write nothing any more.
    pub fn scrub(&self, id: u64) -> Result<ScrubView, PoolError> {
        self.scrubs(Scrubs { id, stops: false })
    }

    /// Has the scrub of that number end, if it goes on.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn stop_scrub(&self, id: u64) -> Result<ScrubView, PoolError> {
        self.scrubs(Scrubs { id, stops: true })
    }

    fn scrubs(&self, scrubs: Scrubs) -> Result<ScrubView, PoolError> {
        let shared = Arc::clone(&self.shared);
        let done = ask(&self.inbox, |reply| Message::Scrub(shared, scrubs, reply))?;
        done.map_err(|fault| {
            let what = match fault {
                Fault::Busy => "it is being scrubbed".to_owned(),
                fault => format!("it is not scrubbed: {fault}"),
            };
            PoolError::new(what, "see `trunkline pool show`")
        })
    }
}
