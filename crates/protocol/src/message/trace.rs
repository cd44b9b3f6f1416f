//! Frames of a network that somebody watches.

use serde::{Deserialize, Serialize};

/// What is watched. All that is set must fit.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceSpec {
    /// Name of the network.
    pub network: String,
    /// A number that nobody else has: one watches a network at a time, and goes on by it.
    pub id: u64,
    /// Frames from or to this address.
    pub mac: Option<[u8; 6]>,
    /// Frames that came by this adapter or uplink, or go there.
    pub port: Option<String>,
    /// Frames of this VLAN.
    pub vlan: Option<u16>,
    /// Lost frames alone.
    pub lost: bool,
    /// It is the last time.
    pub stop: bool,
}

/// What has happened since it was asked for last.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceReport {
    /// Oldest first; not all that there is, if there is much.
    pub records: Vec<TraceRecord>,
    /// Events that found no room since then.
    pub missed: u64,
}

/// What became of a frame at one place.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TraceRecord {
    /// When, in nanoseconds since 1970.
    pub at_ns: u64,
    /// The same in all that is told of one frame; 0 where that is not known.
    pub frame: u64,
    /// The adapter or uplink that it came by.
    pub from: String,
    /// Where it was to go; nothing of a frame that came in.
    pub to: Option<String>,
    /// Its VLAN, where that is known.
    pub vlan: Option<u16>,
    /// Its length.
    pub bytes: u64,
    /// `sent`, `waits`, `delivered` or `lost`.
    pub decision: String,
    /// Of one that is sent: to how many.
    pub copies: u32,
    /// Why it is lost: the counter is `drop_` and this.
    pub reason: Option<String>,
    /// Its first bytes, in hexadecimal digits.
    pub head: String,
}
