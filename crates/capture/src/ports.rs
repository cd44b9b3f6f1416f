//! `lsnports`: the physical ports that can carry NPIV.

mod read;

pub(super) use read::report;

use serde::Serialize;

use super::{At, Head};

/// `lsnports`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lsnports {
    /// Where it came from.
    pub head: Head,
    /// In the order printed.
    pub ports: Vec<NpivPort>,
}

/// One port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NpivPort {
    /// The line.
    pub at: At,
    /// `fcsN`.
    pub name: String,
    /// Where it is.
    pub physloc: String,
    /// Whether the switch behind it supports NPIV.
    pub fabric: bool,
    /// NPIV ports in all.
    pub ports_total: u32,
    /// NPIV ports still free.
    pub ports_free: u32,
    /// Target port names supported.
    pub wwpns_total: u32,
    /// Target port names still free.
    pub wwpns_free: u32,
    /// The port's label, from VIOS 3.1.1 on.
    pub label: Option<String>,
}
