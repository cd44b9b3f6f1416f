//! `lssyscfg` and `lshwres` of an HMC: rows of `name=value`, or of values alone with `-F`.
//!
//! Layout: the HMC commands reference: a value with a comma stands in quotes together with its name. The names of the
//! fields differ by resource and level; they are kept as printed, and the few that identify are found by name.

mod read;

pub(super) use read::{is_row, report};

use serde::Serialize;

use super::{At, Head, Info, Read};

/// The rows of one command.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct HmcList {
    /// Where it came from; the prompt is the HMC's and names no partition.
    pub head: Head,
    /// The managed system, from `-m`.
    pub system: Option<Read<String>>,
    /// In the order printed.
    pub rows: Vec<HmcRow>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HmcRow {
    /// The line.
    pub at: At,
    /// Its fields, in the order printed.
    pub fields: Vec<Info>,
}

impl HmcRow {
    /// A field by its name; `None` also for one without a value.
    pub fn field(&self, name: &str) -> Option<&str> {
        let field = self.fields.iter().find(|field| &*field.name == name)?;
        Some(field.value.as_str()).filter(|value| !matches!(*value, "" | "null" | "none"))
    }
}
