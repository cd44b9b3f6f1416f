//! `lssyscfg` and `lshwres` of an HMC: rows of `name=value`, or of values alone with `-F`.
//!
//! Layout: the HMC commands reference: a value with a comma stands in quotes together with its name. The names of the
//! fields differ by resource and level; they are kept as printed, and the few that identify are found by name.

mod read;

pub(super) use read::{is_row, report};

use std::fmt;
use std::sync::Arc;

use serde::ser::SerializeStruct as _;
use serde::{Serialize, Serializer};

use super::packed::Packed;
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

impl HmcList {
    /// Whether it was `lshwres` that printed it.
    pub(super) fn is_of_hardware(&self) -> bool {
        let words = self.head.command.iter().flat_map(|typed| typed.value.split_whitespace());
        words.map(|word| word.rsplit('/').next().unwrap_or(word)).any(|word| word == "lshwres")
    }

    /// What of the system it lists, as its command says: `-r virtualio --rsubtype fc --level lpar`.
    #[must_use]
    pub fn resource(&self) -> String {
        let words: Vec<&str> =
            self.head.command.iter().flat_map(|typed| typed.value.split_whitespace()).collect();
        let named = |pair: &&[&str]| matches!(pair[0], "-r" | "--rsubtype" | "--level");
        let named = words.windows(2).filter(named).flatten().copied();
        named.collect::<Vec<_>>().join(" ")
    }
}

/// One row. Rows of a list that have the same fields share the names of these.
#[derive(Clone, PartialEq, Eq)]
pub struct HmcRow {
    /// The line.
    pub at: At,
    names: Arc<Packed>,
    /// The values of its fields, in the order printed.
    values: Packed,
}

impl HmcRow {
    /// Its fields, in the order printed.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.names.iter().zip(self.values.iter())
    }

    /// A field by its name; `None` also for one without a value.
    pub fn field(&self, name: &str) -> Option<&str> {
        let index = self.names.iter().position(|own| own == name)?;
        self.values.get(index).filter(|value| !matches!(*value, "" | "null" | "none"))
    }

    fn spelled(&self) -> Vec<Info> {
        let info = |(name, value): (&str, &str)| Info {
            at: self.at,
            name: name.into(),
            value: value.to_owned(),
        };
        self.fields().map(info).collect()
    }
}

impl fmt::Debug for HmcRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HmcRow").field("at", &self.at).field("fields", &self.spelled()).finish()
    }
}

impl Serialize for HmcRow {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut row = serializer.serialize_struct("HmcRow", 2)?;
        row.serialize_field("at", &self.at)?;
        row.serialize_field("fields", &self.spelled())?;
        row.end()
    }
}
