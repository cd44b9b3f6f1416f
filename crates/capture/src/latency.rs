//! `fcstat -l`: where the I/O commands of a port spend their time.
//!
//! Layout: the AIX 7.3 commands reference and an IBM Community article of January 2026 say what is printed (times in the
//! SAN, the adapter, the VIOS and the hypervisor; average and longest; reads, writes and errors apart) and show it in
//! pictures only. So columns are taken by their words, and a row that does not fit them is kept as not understood. A time
//! counts as one only where its unit is printed.

mod read;

pub(super) use read::report;

use serde::Serialize;

use super::{At, Head, Read};

/// `fcstat -l DURATION [INTERVAL] fcsN`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct FcLatency {
    /// Where it came from; the device is the command's.
    pub head: Head,
    /// In the order printed.
    pub rows: Vec<LatencyRow>,
}

/// One kind of completion in one interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct LatencyRow {
    /// The line.
    pub at: At,
    /// What the row is of, as printed: `Read`, `Write`, `Error`.
    pub completion: String,
    /// How many milliseconds the printed unit is; `None` where none is printed.
    pub unit_ms: Option<f64>,
    /// Commands.
    pub count: Option<Read<f64>>,
    /// The average of all, as printed.
    pub average: Option<Read<f64>>,
    /// The longest.
    pub longest: Option<Read<f64>>,
    /// In the SAN: fabric and storage.
    pub san: Option<Read<f64>>,
    /// In the adapter, physical or virtual.
    pub adapter: Option<Read<f64>>,
    /// In the VIOS.
    pub vios: Option<Read<f64>>,
    /// In the hypervisor.
    pub hypervisor: Option<Read<f64>>,
}
