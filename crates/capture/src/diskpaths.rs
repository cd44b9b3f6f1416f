//! `lspath`, `lsmpio`, also with `-S`, `pcmpath query device`, and `multipath -ll` of Linux: the paths to each disk.
//!
//! Layouts: the AIX commands reference for `lspath` and `lsmpio` (ibm.com/docs, AIX 7.3), also `lspath -F` with the columns
//! that the command asks for; for `pcmpath` the multipath guide of SDDPCM. What the VIOS prints as the heading of its own
//! `lspath` could not be confirmed: columns are taken by the names in the heading, whatever their order.

mod multipath;
mod read;
mod statistics;

pub(super) use multipath::report as multipath;
pub(super) use read::{columns, is_row, report};
pub(super) use statistics::is_statistics;

use std::borrow::Cow;

use serde::Serialize;

use super::{At, Head};

/// The paths that one command printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiskPaths {
    /// Where it came from.
    pub head: Head,
    /// In the order printed.
    pub paths: Vec<DiskPath>,
}

impl DiskPaths {
    /// Whether `multipath` of Linux printed it: its adapters are SCSI hosts.
    #[must_use]
    pub fn is_of_linux(&self) -> bool {
        let of_host = |path: &DiskPath| {
            path.parent.as_deref().is_some_and(|parent| parent.starts_with("host"))
        };
        self.paths.first().is_some_and(of_host)
    }
}

impl DiskPath {
    /// The storage port that it leads to, of `500507680c2120b5,1000000000000`: what stands before the LUN.
    #[must_use]
    pub fn storage_port(&self) -> Option<&str> {
        self.connection.as_deref()?.split(',').next()
    }
}

/// One path.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DiskPath {
    /// The line.
    pub at: At,
    /// `hdiskN`.
    pub disk: String,
    /// Whether it carries I/O.
    pub state: PathState,
    /// As printed: `Enabled`, `Failed`, `Missing`, `OPEN NORMAL` …
    pub status: Cow<'static, str>,
    /// `path_status` of `lsmpio`: `Opt,Sel`.
    pub detail: Option<String>,
    /// Its number.
    pub id: Option<u32>,
    /// The adapter: `fscsi0`, `vscsi1`, `sas0`.
    pub parent: Option<String>,
    /// Where it leads: the target's port name and the LUN, or the address of a virtual device.
    pub connection: Option<String>,
    /// The disk's serial number, from `pcmpath`.
    pub serial: Option<String>,
    /// Commands that took it, from `pcmpath` and `lsmpio -S`.
    pub selected: Option<u64>,
    /// Errors on it, from `pcmpath`; of `lsmpio -S` adapter errors and command timeouts together.
    pub errors: Option<u64>,
}

/// What a path's status means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PathState {
    /// It carries I/O when it is chosen.
    Usable,
    /// Errors took it out of use.
    Failed,
    /// It was there at an earlier start and is not now.
    Missing,
    /// Somebody took it out of use.
    Disabled,
    /// It is known and not configured.
    Defined,
    /// None of these.
    Other,
}

impl PathState {
    /// What it means for this device. The services of an enclosure, `sesN`, are no disk: their paths are missing on systems
    /// that nothing is wrong with.
    fn of(self, device: &str) -> Self {
        let enclosure = device.strip_prefix("ses").is_some_and(|rest| rest.parse::<u32>().is_ok());
        if enclosure { Self::Other } else { self }
    }
}
