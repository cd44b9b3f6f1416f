//! What is seen of the inside of a storage pool: what goes on at its PVs, and how its LUs lie on them.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};

/// Asks how what an LU has lies on the PVs of its pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayoutSpec {
    /// The name of the pool.
    pub pool: String,
    /// The number of the LU.
    pub lu: u32,
}

/// How what an LU has lies on the PVs of its pool. Counts are of chunks, where nothing else is said.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct LayoutStatus {
    /// Bytes of a chunk.
    pub chunk_bytes: u64,
    /// How often each is to be kept.
    pub legs: u8,
    /// Those that have space: its own, and those that it shares with snapshots or clones.
    pub mapped: u64,
    /// How many legs of them each PV has that is there.
    pub pvs: Vec<OnPv>,
    /// Those that have all their legs.
    pub whole: u64,
    /// Those of which a leg is missing.
    pub half: u64,
    /// Of those that have all their legs, those of which the second may lack what the first has.
    pub differ: u64,
    /// Those that are being copied to a leg that is missing or may differ, or are to be.
    pub mending: u64,
    /// Those that are on their way to another PV now.
    pub moving: u64,
    /// Legs that are on PVs of other tiers than its own.
    pub astray: u64,
    /// Those that were changed lately: after a crash the first leg is copied to the second.
    pub active: u64,
    /// Requests of the LU that wait for space.
    pub paused: u64,
}

/// How much of an LU is on a PV.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OnPv {
    /// Where the PV is.
    pub path: PathBuf,
    /// Its failure group: 0, or 1 if it is of the mirror.
    pub group: u8,
    /// Chunks of the LU that are there.
    pub chunks: u64,
}
