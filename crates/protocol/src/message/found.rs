//! What is read from every leg of a pool's chunks, and what was found.

use super::ProgressStatus;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// All that is written in a pool is read from every leg.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubSpec {
    /// The name of the pool.
    pub pool: String,
    /// A number that no other has: what became of it is told to who asks again with the same.
    pub id: u64,
    /// It is to end.
    #[serde(default)]
    pub stop: bool,
}

/// How far a scrub is, or what became of it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ScrubStatus {
    /// How far it is.
    pub progress: ProgressStatus,
    /// Nothing more is read.
    #[serde(default)]
    pub over: bool,
    /// It was ended before it had read all.
    #[serde(default)]
    pub stopped: bool,
    /// What was found meanwhile.
    pub found: FoundStatus,
}

/// What was found, of 4 KiB each.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundStatus {
    /// How often legs differed.
    pub differs: u64,
    /// How often one could not be read, and can be since it was written again.
    pub repaired: u64,
    /// How often one could not be read, and still cannot.
    pub unreadable: u64,
    /// How often no leg could be read.
    pub lost: u64,
    /// The last of all these, in the order in which they were found.
    #[serde(default)]
    pub last: Vec<FoundBlock>,
}

impl FoundStatus {
    /// How many there were.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.differs + self.repaired + self.unreadable + self.lost
    }
}

/// Something that was found.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct FoundBlock {
    /// What.
    pub kind: FoundKind,
    /// The number of the LU, or of the snapshot, that holds it.
    pub lu: u32,
    /// Byte of the LU.
    pub at: u64,
    /// The PV on which it is; of legs that differ or cannot be read both.
    pub pvs: Vec<PathBuf>,
}

/// What may be found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FoundKind {
    /// The legs differ.
    Differs,
    /// It could not be read on that PV, and was written there again.
    Repaired,
    /// It cannot be read on that PV, also after it was written again.
    Unreadable,
    /// No leg can be read.
    Lost,
}
