//! LUs that come from files and go into them.

use super::Failure;
use serde::{Deserialize, Serialize};

/// A whole LU comes from a file or goes into one. The descriptor of the file comes with what begins it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CopySpec {
    /// The name of the pool.
    pub pool: String,
    /// The number of the LU, or for an export of a snapshot.
    pub lu: u32,
    /// A number that no other has: what became of it is told to who asks again with the same.
    pub id: u64,
    /// What is wanted.
    pub act: CopyAct,
}

/// What is wanted of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CopyAct {
    /// The LU is to hold what the file holds, which can be read, and zeros behind that.
    Import {
        /// Also while clients use it.
        force: bool,
    },
    /// The file, which is empty and can be read and written, is to hold what the LU holds.
    Export {
        /// The size of the LU.
        bytes: u64,
        /// Also while clients use it.
        force: bool,
    },
    /// How far it is; not found where nobody has begun it.
    Look,
    /// It is to end; the same.
    Stop,
}

/// How far a copy is, or what became of it. Sizes are in bytes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CopyStatus {
    /// The size of the LU.
    pub planned_bytes: u64,
    /// What is copied of it, or was found to be zeros.
    pub copied_bytes: u64,
    /// It waits for space in the pool.
    pub waits: bool,
    /// Nothing more is copied.
    pub over: bool,
    /// It was ended before it had copied all.
    pub stopped: bool,
    /// Why it is over, where that is not the end of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failed: Option<Failure>,
}
