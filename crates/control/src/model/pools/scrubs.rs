//! The last scrub of a pool: what is kept of it.

use crate::model::Desired;
use crate::model::files::Made;
use crate::model::pools::Kept;
use protocol::message::{FoundBlock, FoundKind, FoundStatus, ScrubStatus};
use serde::{Deserialize, Serialize};
use spec::FileIdentity;
use utoipa::ToSchema;

/// What a scrub has found that came to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LastScrub {
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it was over.
    pub ended_ms: u64,
    /// What was read from every leg, in whole chunks.
    pub read_bytes: u64,
    /// What could not be read to its end, since a PV was lost meanwhile.
    pub skipped_bytes: u64,
    /// Blocks of 4 KiB in which legs differed.
    pub differs: u64,
    /// Those that could not be read on one PV, and were written there again.
    pub repaired: u64,
    /// Those that could not be read on one PV, also after that.
    pub unreadable: u64,
    /// Those that no PV has.
    pub lost: u64,
    /// Where they are: the last of them, if there are many.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<FoundPlace>,
}

/// Where something was found, in 4 KiB.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct FoundPlace {
    /// `differs`, `repaired`, `unreadable` or `lost`.
    pub what: String,
    /// The volume, or the snapshot, that holds it, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub volume: Option<String>,
    /// Its number in the pool.
    pub lu: u32,
    /// Byte of the LU.
    pub at: u64,
    /// The PV on which it is; of what differs, or no PV has, both.
    pub pvs: Vec<String>,
}

impl FoundPlace {
    /// In words.
    #[must_use]
    pub fn text(&self) -> String {
        let holder = self.volume.clone().unwrap_or_else(|| format!("LU {}", self.lu));
        format!("{holder} at byte {} (PV {})", self.at, self.pvs.join(", "))
    }
}

/// The word for it.
pub fn word(kind: FoundKind) -> &'static str {
    match kind {
        FoundKind::Differs => "differs",
        FoundKind::Repaired => "repaired",
        FoundKind::Unreadable => "unreadable",
        FoundKind::Lost => "lost",
    }
}

/// How much of what was found, in words; nothing of what was not.
#[must_use]
pub fn counts([differs, repaired, unreadable, lost]: [u64; 4]) -> String {
    let all = [
        (differs, "differ between the failure groups"),
        (lost, "cannot be read on any PV, or are not what was written"),
        (unreadable, "cannot be read on one PV, also after they were written there again"),
        (
            repaired,
            "could not be read on one PV, or were not what was written, and were written there again",
        ),
    ];
    let some = all.iter().filter(|(count, _)| *count > 0);
    let some: Vec<String> = some.map(|(count, what)| format!("{count} {what}")).collect();
    match some.is_empty() {
        true => "nothing is wrong".to_owned(),
        false => format!("of blocks of 4 KiB {}", some.join("; ")),
    }
}

impl LastScrub {
    /// As a data plane tells of it.
    pub fn of(
        desired: &Desired,
        pool: &str,
        status: &ScrubStatus,
        (started_ms, ended_ms): (u64, u64),
    ) -> LastScrub {
        let ScrubStatus { progress, found, .. } = status;
        let FoundStatus { differs, repaired, unreadable, lost, last } = found;
        let kept = desired.allocations.pools.get(pool);
        let place = |block: &FoundBlock| FoundPlace {
            what: word(block.kind).to_owned(),
            volume: holder(desired, pool, kept, block.lu),
            lu: block.lu,
            at: block.at,
            pvs: block.pvs.iter().map(|pv| pv.display().to_string()).collect(),
        };
        let mut places: Vec<FoundPlace> = last.iter().map(place).collect();
        places.sort();
        LastScrub {
            started_ms,
            ended_ms,
            read_bytes: progress.moved_bytes,
            skipped_bytes: progress.failed_bytes,
            differs: *differs,
            repaired: *repaired,
            unreadable: *unreadable,
            lost: *lost,
            places,
        }
    }

    /// What was found, in words.
    #[must_use]
    pub fn text(&self) -> String {
        counts([self.differs, self.repaired, self.unreadable, self.lost])
    }
}

/// The volume of an LU, or the snapshot that a number is of.
fn holder(desired: &Desired, pool: &str, kept: Option<&Kept>, lu: u32) -> Option<String> {
    let mut volumes = super::lus_in(desired, pool);
    let is = |name: &str| {
        let made = desired.allocations.files.get(name);
        matches!(made, Some(Made::Is(FileIdentity::Lu { number, .. })) if *number == lu)
    };
    let volume = volumes.find(|(name, _)| is(name)).map(|(name, _)| name.clone());
    let snapshot = || {
        let mut all = kept?.snapshots.iter();
        let has = |frozen: &super::Frozen| frozen.lus.values().any(|one| one.number == lu);
        all.find(|(_, frozen)| has(frozen)).map(|(name, _)| format!("snapshot {name}"))
    };
    volume.or_else(snapshot)
}
