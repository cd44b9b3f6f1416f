//! `lssp`, `lu`, `pv`, `failgrp`, `tier`, `alert` and `cluster -status`: storage pools, local and shared, the logical units in them and
//! the LUNs below them.

mod luns;
mod nodes;
mod read;
mod shape;

pub(super) use luns::pv_list;
pub(super) use nodes::{is_block, status};
pub(super) use read::{lssp, lu_list};
pub(super) use shape::{GROUPS, TIERS, alerts, groups, is_alerts, tiers};

use serde::Serialize;

use super::{At, Head, Read};

/// `cluster -status -clustername C`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ClusterStatus {
    /// Where it came from.
    pub head: Head,
    /// Each cluster's name and state.
    pub clusters: Vec<(String, Read<String>)>,
    /// Its nodes, in the order printed.
    pub nodes: Vec<Node>,
}

/// One VIOS of a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Node {
    /// The line.
    pub at: At,
    /// Its name.
    pub name: String,
    /// `OK`, `DOWN`.
    pub state: String,
    /// That of its pool, where it is printed.
    pub pool_state: Option<String>,
}

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

/// `pv -list`, and `lspv -clustername C -sp P`: the LUNs of which a shared pool is made.
///
/// The disk that holds the cluster's repository is none of them, and no command read here lists it among them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PvList {
    /// Where it came from.
    pub head: Head,
    /// In the order printed.
    pub luns: Vec<PoolLun>,
}

/// One LUN of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PoolLun {
    /// The line of its name.
    pub at: At,
    /// Its name on the server that was asked, `hdiskN`; another server of the cluster may name it differently.
    pub name: String,
    /// The pool, from the heading or else from the command.
    pub pool: Option<Read<String>>,
    /// The tier, from the heading.
    pub tier: Option<Read<String>>,
    /// The failure group, from the heading.
    pub failure_group: Option<Read<String>>,
    /// Size.
    pub size_mb: Option<Read<u64>>,
    /// State as printed: `ONLINE`.
    pub state: Option<Read<String>>,
    /// Its id, the same on every server.
    pub udid: Option<Read<String>>,
}

/// `failgrp -list`: the failure groups of a shared pool.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FailureGroupList {
    /// Where it came from.
    pub head: Head,
    /// In the order printed.
    pub groups: Vec<FailureGroup>,
}

/// One failure group.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FailureGroup {
    /// The line of its name.
    pub at: At,
    /// Its name.
    pub name: String,
    /// The pool, from the heading.
    pub pool: Option<Read<String>>,
    /// Its tier, from the heading; several with commas between them where it is one of the whole pool.
    pub tier: Option<Read<String>>,
    /// Size.
    pub size_mb: Read<u64>,
    /// State as printed: `ONLINE`.
    pub state: Read<String>,
}

/// `tier -list`: the tiers of shared pools.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TierList {
    /// Where it came from.
    pub head: Head,
    /// In the order printed.
    pub tiers: Vec<Tier>,
}

/// One tier.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Tier {
    /// The line of its name.
    pub at: At,
    /// Its name.
    pub name: String,
    /// The pool that it is of.
    pub pool: Read<String>,
    /// Size.
    pub size_mb: Read<u64>,
    /// Free.
    pub free_mb: Read<u64>,
    /// Whether it is mirrored, as printed: `NOT_MIRRORED`.
    pub mirror_state: Read<String>,
}

/// `alert -list`: at which free space a pool warns.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct AlertList {
    /// Where it came from.
    pub head: Head,
    /// In the order printed.
    pub alerts: Vec<Alert>,
}

/// The alert of one pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Alert {
    /// The line of its pool.
    pub at: At,
    /// The pool.
    pub pool: String,
    /// So much of the pool is free when it warns, percent.
    pub free_percent: Option<Read<u64>>,
    /// So much of the pool's size its LUs could take beyond it when it warns, percent.
    pub overcommit_percent: Option<Read<u64>>,
}
