//! `errpt` and `errpt -a`: the error log.
//!
//! Layouts: the AIX commands reference and public captures (RSCT message format, ibm.com/docs; laitimes.com on `errpt`). The
//! detail data of `errpt -a` depends on the driver and is passed over.

mod read;

pub(super) use read::{is_entry, is_heading, is_row, report};

use serde::Serialize;

use super::{At, Head, Read, Taken};

/// The entries that one command printed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Errpt {
    /// Where it came from; the partition is `Node Id` where no prompt names one.
    pub head: Head,
    /// `Machine Id`, of the long form.
    pub machine_id: Option<Read<String>>,
    /// `Node Id`, of the long form.
    pub node: Option<Read<String>>,
    /// In the order printed: the youngest first.
    pub entries: Vec<LoggedError>,
}

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct LoggedError {
    /// Its first line.
    pub at: At,
    /// `LABEL`, of the long form: `FCP_ERR4`, `SC_DISK_ERR4` …
    pub label: Option<String>,
    /// Eight hexadecimal digits that name the kind of error.
    pub identifier: String,
    /// When it was logged, by the clock of the partition; the short form has no seconds.
    pub logged: Option<Taken>,
    /// `T`: `P`, `T`, `I`, `U`; of the long form the word, `PERM`, `TEMP`, `INFO` …
    pub kind: String,
    /// `C`: `H`ardware, `S`oftware, `O`perator, `U`ndetermined.
    pub class: String,
    /// The resource that noticed it: `fcs0`, `hdisk4`, `ent1`.
    pub resource: String,
    /// `LINK ERROR`, `PATH HAS FAILED` …
    pub description: String,
    /// How often it was logged again and not shown.
    pub duplicates: Option<u64>,
}
