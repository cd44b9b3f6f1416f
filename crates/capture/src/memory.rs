//! `vmstat`, `svmon -G` and `lsps`: memory, paging space and processors of a partition.
//!
//! Layouts: the AIX commands reference. `vmstat` counts memory in frames of 4 KiB, `svmon -G` too unless the command asks
//! for another unit, which is then printed.

mod read;

pub(super) use read::{lsps, svmon, vmstat};

use serde::Serialize;

use super::{At, Head, Read};

/// `vmstat`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Vmstat {
    /// Where it came from.
    pub head: Head,
    /// Logical processors.
    pub lcpu: Option<Read<u64>>,
    /// Memory, MB.
    pub memory_mb: Option<Read<u64>>,
    /// Entitled processors.
    pub entitlement: Option<Read<f64>>,
    /// One for each interval; the first is the average since the start unless an interval was given.
    pub samples: Vec<VmSample>,
}

/// One interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VmSample {
    /// The line.
    pub at: At,
    /// `r`: threads ready to run.
    pub ready: Option<f64>,
    /// `b`: threads that wait for I/O or memory.
    pub blocked: Option<f64>,
    /// `avm`: frames of computational memory in use.
    pub active_frames: Option<f64>,
    /// `fre`: free frames.
    pub free_frames: Option<f64>,
    /// `pi`: frames read from paging space a second.
    pub paged_in: Option<f64>,
    /// `po`: frames written to paging space a second.
    pub paged_out: Option<f64>,
    /// `us`, percent.
    pub user: Option<f64>,
    /// The second `sy`, percent.
    pub system: Option<f64>,
    /// `id`, percent.
    pub idle: Option<f64>,
    /// `wa`, percent.
    pub wait: Option<f64>,
    /// `pc`: processors used.
    pub physical: Option<f64>,
    /// `ec`: of the entitlement, percent.
    pub entitlement_percent: Option<f64>,
}

/// `lsps -a`, `lsps -s`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lsps {
    /// Where it came from.
    pub head: Head,
    /// Each space; of `lsps -s` the one row of all.
    pub spaces: Vec<PagingSpace>,
}

/// One paging space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PagingSpace {
    /// The line.
    pub at: At,
    /// Its logical volume; empty for the sum of all.
    pub name: String,
    /// MB.
    pub size_mb: u64,
    /// How much of it is in use.
    pub used_percent: u64,
    /// Whether it is in use now; the sum is.
    pub active: bool,
}

/// `svmon -G`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Svmon {
    /// Where it came from.
    pub head: Head,
    /// `Unit`; `None` is frames of 4 KiB.
    pub unit: Option<Read<String>>,
    /// Memory.
    pub size: Option<Read<f64>>,
    /// In use.
    pub in_use: Option<Read<f64>>,
    /// Free.
    pub free: Option<Read<f64>>,
    /// Pinned.
    pub pinned: Option<Read<f64>>,
    /// Computational memory in use, `virtual`.
    pub computational: Option<Read<f64>>,
    /// Paging space.
    pub paging_size: Option<Read<f64>>,
    /// In use of it.
    pub paging_in_use: Option<Read<f64>>,
}
