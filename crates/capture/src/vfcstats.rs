//! `/proc/sys/adapter/vfc/vfchostN/stats` on a VIOS, readable by root only.
//!
//! Only its first lines and those of the queues are documented publicly. Every `name = number` line is kept by its name;
//! the fields that are known have one of their own.

mod read;

pub(super) use read::report;

use serde::Serialize;

use super::{At, Head, Read};

/// The file of one virtual Fibre Channel server adapter.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct VfcStats {
    /// Where it came from; the device stands in the path only.
    pub head: Head,
    /// `Number of CMD queues`.
    pub command_queues: Option<Read<u64>>,
    /// `Number of SUBQ channels`: the queues in use between client and VIOS.
    pub channels: Option<Read<u64>>,
    /// `Commands received`, one for each queue; the command queue first, then the channels.
    pub commands_received: Vec<Read<u64>>,
    /// Every line, in the order printed, also those above.
    pub named: Vec<Named>,
}

/// One line.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Named {
    /// The line.
    pub at: At,
    /// Before the equals sign.
    pub name: String,
    /// The number after it.
    pub value: u64,
}
