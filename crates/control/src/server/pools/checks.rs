//! What was found where legs of a pool were read: by clients since it was opened, and by the last scrub.

use super::{PoolFinding, PoolView};
use crate::model::pools::Kept;
use crate::model::pools::scrubs::{FoundPlace, LastScrub, counts};
use protocol::message::{FoundStatus, PoolStatus};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// How many places are named.
const NAMED: usize = 8;

/// What was found, of 4 KiB each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ChecksView {
    /// How often failure groups were found to differ, since the data plane opened the pool; here and below.
    pub differs: u64,
    /// How often something could not be read on one PV, and was written there again.
    pub repaired: u64,
    /// How often something could not be read on one PV, also after that.
    pub unreadable: u64,
    /// How often something could not be read on any PV.
    pub lost: u64,
    /// The last scrub that was over.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_scrub: Option<LastScrub>,
}

impl ChecksView {
    pub(super) fn of(status: &PoolStatus, kept: &Kept) -> ChecksView {
        let FoundStatus { differs, repaired, unreadable, lost, .. } = status.found;
        ChecksView { differs, repaired, unreadable, lost, last_scrub: kept.scrub.clone() }
    }

    /// What was found since it was opened, if there was anything.
    #[must_use]
    pub fn text(&self) -> Option<String> {
        let all = [self.differs, self.repaired, self.unreadable, self.lost];
        (all != [0; 4]).then(|| counts(all))
    }
}

const REMEDY: &str = "Which of two copies is right cannot be said: there are no checksums, and nothing was changed. Compare with what the client knows (its file system's check, a backup); what it writes there anew is the same in both failure groups. If one PV is found to be wrong in many places, `trunkline pv replace` it: its copies are made anew from the other failure group.";

impl PoolView {
    /// What is wrong by what was read; of one volume alone, if that is said.
    pub(super) fn found(&self, pool: &str, volume: Option<&str>) -> Vec<PoolFinding> {
        let mut all = Vec::new();
        let places = |last: &LastScrub, what: &str| -> Vec<FoundPlace> {
            let wrong = last.places.iter().filter(|place| place.what == what);
            let its = |place: &&FoundPlace| volume.is_none() || place.volume.as_deref() == volume;
            wrong.filter(its).cloned().collect()
        };
        if let Some(last) = &self.checks.last_scrub {
            for (what, count, text, effect, remedy) in [
                (
                    "lost",
                    last.lost,
                    "cannot be read on any PV, or are not what was written",
                    "Whoever reads them gets an error.",
                    "What is written there anew can be read again, if the disks can write it. Restore it from a backup, and look at the disks.",
                ),
                (
                    "differs",
                    last.differs,
                    "differ between the failure groups",
                    "Whoever reads them gets what the one or the other has.",
                    REMEDY,
                ),
                (
                    "unreadable",
                    last.unreadable,
                    "cannot be read on one PV, also after they were written there again",
                    "They have one copy, which clients get.",
                    "Replace the disk (`trunkline pv replace`).",
                ),
            ] {
                let places = places(last, what);
                let count = if volume.is_some() { places.len() as u64 } else { count };
                if count == 0 {
                    continue;
                }
                let mut named: Vec<String> =
                    places.iter().take(NAMED).map(FoundPlace::text).collect();
                if count > named.len() as u64 {
                    named.push("…".to_owned());
                }
                all.push(PoolFinding {
                    what: format!(
                        "the last scrub found {count} blocks of 4 KiB that {text}: {}",
                        named.join("; ")
                    ),
                    pv: None,
                    since_ms: Some(last.ended_ms),
                    effect: effect.to_owned(),
                    remedy: format!("{remedy} Then scrub again: `trunkline pool scrub {pool}`."),
                });
            }
        }
        all
    }
}
