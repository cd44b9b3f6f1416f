//! Files of nmon, also compressed: what a system did, interval by interval.
//!
//! Layout: the nmon documentation on ibm.com and public files: lines of fields with commas between, of which the first
//! names the section. `AAA` lines say where and when, a section's first line names its columns, `ZZZZ` lines give each
//! interval's tag its time. Sections that nothing here asks for are passed over.

mod read;

pub(super) use read::report;

use serde::Serialize;

use super::{At, Head, Read, Taken};

/// One file.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Nmon {
    /// Where it came from; the partition is `AAA,host`.
    pub head: Head,
    /// `AAA,host`.
    pub host: Option<Read<String>>,
    /// `AAA,SerialNumber`: the machine's.
    pub machine_serial: Option<Read<String>>,
    /// `AAA,MachineType`.
    pub machine_model: Option<Read<String>>,
    /// `AAA,LPARNumberName`: the number.
    pub partition_id: Option<Read<u32>>,
    /// The name.
    pub partition_name: Option<Read<String>>,
    /// Seconds between two intervals.
    pub interval_seconds: Option<Read<u64>>,
    /// When each interval ended, in the order printed.
    pub times: Vec<NmonTime>,
    /// Sections with columns, in the order of their headings.
    pub sections: Vec<NmonSection>,
}

/// An interval's time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NmonTime {
    /// The line.
    pub at: At,
    /// `T0001`.
    pub tag: String,
    /// By the clock of the partition.
    pub taken: Taken,
}

/// One section.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NmonSection {
    /// The line of its columns.
    pub at: At,
    /// `PAGE`, `LPAR`, `FCREAD` …
    pub name: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// One for each interval.
    pub rows: Vec<NmonRow>,
}

/// One interval of one section.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NmonRow {
    /// The line.
    pub at: At,
    /// `T0001`.
    pub tag: String,
    /// The values by column; `None` where there is none.
    pub values: Vec<Option<f64>>,
}

/// The name of a section without the number of a later part of it.
fn stem(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit())
}

impl NmonSection {
    /// Whether it is the section of that name, or a later part of it.
    pub fn is_of(&self, section: &str) -> bool {
        stem(&self.name) == section
    }
}

impl Nmon {
    /// A column of a section, interval by interval. Where there are more columns than nmon puts on one line, sections of
    /// that name with a number, as `DISKXFER1`, have the others.
    pub fn series(&self, section: &str, column: &str) -> Vec<Read<f64>> {
        let found = self.sections.iter().filter(|other| other.is_of(section));
        let place =
            |section: &'_ NmonSection| section.columns.iter().position(|name| name == column);
        let mut found = found.filter_map(|section| Some((section, place(section)?)));
        let Some((section, index)) = found.next() else { return Vec::new() };
        let value = |row: &NmonRow| {
            Some(Read { value: row.values.get(index).copied().flatten()?, at: row.at })
        };
        section.rows.iter().filter_map(value).collect()
    }
}
