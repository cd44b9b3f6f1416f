//! The report of IBM's own advisor, the VIOS Performance Advisor (`part -i 30`): what it would change, to compare with.
//!
//! Layout: IBM documents the command and says that it writes XML with measured and suggested values, risk and impact; no
//! public copy of such a file was found and no schema. So nothing is known here of the names of its elements but this:
//! an element with a suggested value is an advice, and its other fields, attributes or elements, describe it.

mod read;
mod xml;

pub(super) use read::{is_report, report};

use serde::Serialize;

use super::{At, Head, Read};

/// One file of `part`.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct PartReport {
    /// Where it came from.
    pub head: Head,
    /// What it advises, in the order of the file.
    pub advices: Vec<PartAdvice>,
}

/// One advice.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PartAdvice {
    /// The line.
    pub at: At,
    /// The element's name, with those around it: `disk/queue_depth`.
    pub about: String,
    /// The device, where a field or an element around it names one.
    pub device: Option<String>,
    /// What was measured or is set.
    pub value: Option<Read<String>>,
    /// What is suggested.
    pub suggested: Read<String>,
    /// Risk, as printed.
    pub risk: Option<Read<String>>,
    /// Impact, as printed.
    pub impact: Option<Read<String>>,
}
