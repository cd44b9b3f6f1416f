//! `lssp` and `lu`: storage pools, local and shared, and the logical units in them.

mod read;

pub(super) use read::{lssp, lu_list};

use serde::Serialize;

use super::{At, Head, Read};

/// `lssp`, with `-clustername` or without.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lssp {
    /// Where it came from.
    pub head: Head,
    /// In the order printed.
    pub pools: Vec<Pool>,
}

/// One pool. Sizes are in MB, as printed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Pool {
    /// The line of its name.
    pub at: At,
    /// Its name.
    pub name: String,
    /// Size.
    pub size_mb: Option<Read<u64>>,
    /// Free.
    pub free_mb: Option<Read<u64>>,
    /// What its LUs would need if they were full.
    pub lu_total_mb: Option<Read<u64>>,
    /// What the LUs could need beyond its size.
    pub overcommit_mb: Option<Read<u64>>,
    /// Its LUs.
    pub lus: Option<Read<u64>>,
    /// `CLPOOL`, `LVPOOL`, `FBPOOL`.
    pub kind: Option<Read<String>>,
    /// Its id.
    pub id: Option<Read<String>>,
    /// Least part of it that one allocation takes, of local pools.
    pub alloc_mb: Option<Read<u64>>,
    /// Backing devices, of local pools.
    pub backing_devices: Option<Read<u64>>,
}

/// `lu -list`, and `lssp -clustername C -sp P -bd`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LuList {
    /// Where it came from.
    pub head: Head,
    /// In the order printed.
    pub lus: Vec<LogicalUnit>,
}

/// One logical unit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LogicalUnit {
    /// The line of its name.
    pub at: At,
    /// Its name.
    pub name: String,
    /// The pool, from the heading.
    pub pool: Option<Read<String>>,
    /// The tier, from the heading.
    pub tier: Option<Read<String>>,
    /// Size.
    pub size_mb: Option<Read<u64>>,
    /// Whether it is thin.
    pub thin: Option<Read<bool>>,
    /// Used, percent.
    pub used_percent: Option<Read<u64>>,
    /// Not yet used of its size.
    pub unused_mb: Option<Read<u64>>,
    /// Its id.
    pub udid: Option<Read<String>>,
}
