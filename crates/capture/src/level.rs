//! `ioslevel` on a VIOS, `oslevel -s` on AIX: which level runs.

mod read;

pub(super) use read::report;

use serde::Serialize;

use super::{Head, Read};

/// The level of one partition.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Level {
    /// Where it came from.
    pub head: Head,
    /// Which system's level it is.
    pub system: System,
    /// As printed: `3.1.4.21`, `7300-02-01-2346`.
    pub level: Read<String>,
}

/// A system that has levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum System {
    /// `oslevel -s`.
    Aix,
    /// `ioslevel`.
    Vios,
}
