//! `iostat -D`: service times and queue of each disk.
//!
//! The first sample of a run is the average since boot unless the command says otherwise; times are in milliseconds,
//! sizes in bytes, whatever suffix was printed.

mod read;

pub(super) use read::report;

use serde::Serialize;

use super::{At, Head, Read};

/// `iostat -D`, also with `-l`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct IostatD {
    /// Where it came from.
    pub head: Head,
    /// Logical processors.
    pub lcpu: Option<Read<u64>>,
    /// Disks.
    pub drives: Option<Read<u64>>,
    /// Paths.
    pub paths: Option<Read<u64>>,
    /// Virtual disks.
    pub vdisks: Option<Read<u64>>,
    /// In the order printed; a disk comes once per sample.
    pub disks: Vec<DiskSample>,
}

/// One disk in one interval.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct DiskSample {
    /// The line of its name.
    pub at: At,
    /// `hdiskN`.
    pub name: String,
    /// Which time this disk is printed in this report; from 1.
    pub sample: u32,
    /// `%tm_act`.
    pub active_percent: Option<Read<f64>>,
    /// `bps`: bytes/s.
    pub bytes_per_second: Option<Read<f64>>,
    /// `tps`: transfers/s.
    pub transfers_per_second: Option<Read<f64>>,
    /// `bread`: bytes/s.
    pub read_bytes_per_second: Option<Read<f64>>,
    /// `bwrtn`: bytes/s.
    pub written_bytes_per_second: Option<Read<f64>>,
    /// The reads.
    pub read: Service,
    /// The writes.
    pub write: Service,
    /// The wait queue and the service queue.
    pub queue: DiskQueue,
}

/// How the device served one direction.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Service {
    /// `rps`, `wps`.
    pub per_second: Option<Read<f64>>,
    /// `avgserv`, ms.
    pub average_ms: Option<Read<f64>>,
    /// `minserv`, ms.
    pub min_ms: Option<Read<f64>>,
    /// `maxserv`, ms.
    pub max_ms: Option<Read<f64>>,
    /// `timeouts`.
    pub timeouts: Option<Read<f64>>,
    /// `fails`.
    pub fails: Option<Read<f64>>,
}

/// The queue in front of a disk.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct DiskQueue {
    /// `avgtime`: wait, ms.
    pub average_ms: Option<Read<f64>>,
    /// `mintime`, ms.
    pub min_ms: Option<Read<f64>>,
    /// `maxtime`, ms.
    pub max_ms: Option<Read<f64>>,
    /// `avgwqsz`: requests waiting.
    pub waiting: Option<Read<f64>>,
    /// `avgsqsz`: requests at the device.
    pub in_service: Option<Read<f64>>,
    /// `sqfull`: times per second that a request found the device's queue full.
    pub full_per_second: Option<Read<f64>>,
}
