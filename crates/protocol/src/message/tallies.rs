//! What passes an uplink, counted by station and VLAN.

use std::net::IpAddr;
use std::ops::AddAssign;

use serde::{Deserialize, Serialize};

/// Whose counts are asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TallySpec {
    /// Name of the uplink.
    pub uplink: String,
    /// They begin anew, with nothing.
    #[serde(default)]
    pub clear: bool,
}

/// What has passed an uplink since its `accounting` began, or they were cleared.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TallyReport {
    /// By VLAN, and then by station; the VLAN as a whole is before them.
    pub tallies: Vec<Tally>,
}

/// What has passed of one station in a VLAN, or of the VLAN.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// The MAC address of the station; none: of the VLAN as a whole, with what is for groups.
    pub station: Option<[u8; 6]>,
    /// Its VLAN.
    pub vlan: u16,
    /// That of the last frame of the station with a tag.
    #[serde(default)]
    pub priority: u8,
    /// An IP address that the station said to be its own.
    #[serde(default)]
    pub address: Option<IpAddr>,
    /// To the world outside.
    pub sent: Passed,
    /// From there.
    pub received: Passed,
}

/// Frames, and their bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Passed {
    /// Frames.
    pub frames: u64,
    /// Bytes of them.
    pub bytes: u64,
}

impl AddAssign for Passed {
    fn add_assign(&mut self, other: Passed) {
        self.frames += other.frames;
        self.bytes += other.bytes;
    }
}
