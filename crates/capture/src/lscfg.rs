//! `lscfg -vpl DEVICE` and `lsdev -dev DEVICE -vpd`: what a device says of itself, and where it is.
//!
//! Layout: the AIX commands reference; keys and values are divided by dots.

mod read;

pub(super) use read::{is_device_row, report};

use serde::Serialize;

use super::{At, Head, Info};

/// The devices that one command printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Lscfg {
    /// Where it came from; the device is that of the first row.
    pub head: Head,
    /// In the order printed.
    pub devices: Vec<Device>,
}

/// One device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Device {
    /// The line of its name.
    pub at: At,
    /// `fcs0`, `hdisk4`, `ent1`.
    pub name: String,
    /// Its physical location code.
    pub location: Option<String>,
    /// What it is.
    pub description: String,
    /// Its vital product data, in the order printed.
    pub fields: Vec<Info>,
}

impl Device {
    /// A field by its name.
    pub fn field(&self, name: &str) -> Option<&Info> {
        self.fields.iter().find(|field| &*field.name == name)
    }
}
