//! `hostname`, `uname`, `prtconf` and `uptime`: which partition of which machine it is, and for how long it runs.
//!
//! Layouts: the AIX commands reference. `uname -m`, and the last word of `uname -a`, is `xxyyyyyymmss`: the machine's id
//! is in the six digits `yyyyyy`.

mod read;

pub(super) use read::{is_uptime, line, prtconf, uptime};

use serde::Serialize;

use super::{Head, Read};

/// What a partition says of itself.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct About {
    /// The host's name: `hostname`, `uname -n`, `Host Name`.
    pub hostname: Option<Read<String>>,
    /// The system: `AIX`, `Linux`.
    pub system: Option<Read<String>>,
    /// Version and release, `7.3`.
    pub version: Option<Read<String>>,
    /// `uname -m`, the last word of `uname -a`.
    pub machine_id: Option<Read<String>>,
    /// Type and model: `9009-42A`.
    pub machine_model: Option<Read<String>>,
    /// The machine's serial number.
    pub machine_serial: Option<Read<String>>,
    /// The partition's number.
    pub partition_id: Option<Read<u32>>,
    /// The partition's name.
    pub partition_name: Option<Read<String>>,
    /// The platform's firmware: `VL950_092`, `FW950.30 (VL950_092)`.
    pub firmware: Option<Read<String>>,
    /// `Number Of Processors`.
    pub processors: Option<Read<u64>>,
    /// `Processor Clock Speed`, MHz.
    pub clock_mhz: Option<Read<u64>>,
    /// `Memory Size`, MB.
    pub memory_mb: Option<Read<u64>>,
    /// Since its start, by `uptime`: as old are the counters that say no age of their own.
    pub up_seconds: Option<Read<u64>>,
}

/// The report of one of the commands.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Host {
    /// Where it came from.
    pub head: Head,
    /// What it says.
    pub about: About,
}
