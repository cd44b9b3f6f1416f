//! Operations: work that may take long, that its caller may leave, and that a crash must not leave half done.
//!
//! ```text
//! copy:     Copying ──copied──► Waiting ──holds──► Done
//! change:                       Waiting ──holds──► Done
//! restart:                   Restarting ──────────► Done
//! detach:                     Detaching ──────────► Done
//! scrub:                      Scrubbing ──────────► Done
//! import, export:  Importing, Exporting ──────────► Done
//!                any of them ──failed, cancelled──► Cleaning ──clean──► Undone
//! ```
//!
//! The step is kept in the store. Into `Waiting` it is written together with the change itself, and out of it together with the change's being
//! taken back, so that there is no moment at which one is on disk without the other. [`next`] is pure: an operation and what is known go in, what
//! is to be done comes out; the shell is `server::operations`.

pub mod journal;

pub use journal::{ENDED_MAX, Journal};

use crate::caller::Caller;
use crate::error::{ApiError, Code};
use crate::image::Format;
use crate::model::files::Made;
use fabric::attribute::{Attributes, Object};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::PathBuf;
use utoipa::ToSchema;

/// What kind of work it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// A change of named objects, until data planes have carried it out.
    Change,
    /// The same, after optical media were copied.
    Copy,
    /// A data plane is stopped and started.
    Restart,
    /// All that an LU shares is copied, so that it shares nothing.
    Detach,
    /// All that is written in a storage pool is read from every PV that has it.
    Scrub,
    /// An LU comes from a file.
    Import,
    /// An LU, or a snapshot of it, goes into a file.
    Export,
}

impl Kind {
    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Kind::Change => "change",
            Kind::Copy => "copy",
            Kind::Restart => "restart",
            Kind::Detach => "detach",
            Kind::Scrub => "scrub",
            Kind::Import => "import",
            Kind::Export => "export",
        }
    }
}

/// How far it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Step {
    /// Media are copied; nothing is changed yet.
    Copying,
    /// The change is stored; data planes carry it out, or open a file.
    Waiting,
    /// A data plane is restarted.
    Restarting,
    /// What an LU shares is copied.
    Detaching,
    /// What is written in a pool is read.
    Scrubbing,
    /// What a file holds is copied into an LU.
    Importing,
    /// What an LU holds is copied into a file.
    Exporting,
    /// It was taken back; what is left of it is removed.
    Cleaning,
    /// It holds.
    Done,
    /// It left nothing behind.
    Undone,
}

impl Step {
    /// All of them.
    pub const ALL: [Step; 10] = [
        Step::Copying,
        Step::Waiting,
        Step::Restarting,
        Step::Detaching,
        Step::Scrubbing,
        Step::Importing,
        Step::Exporting,
        Step::Cleaning,
        Step::Done,
        Step::Undone,
    ];

    /// Its name.
    pub fn as_str(self) -> &'static str {
        match self {
            Step::Copying => "copying",
            Step::Waiting => "waiting",
            Step::Restarting => "restarting",
            Step::Detaching => "detaching",
            Step::Scrubbing => "scrubbing",
            Step::Importing => "importing",
            Step::Exporting => "exporting",
            Step::Cleaning => "cleaning",
            Step::Done => "done",
            Step::Undone => "undone",
        }
    }

    /// Whether bytes are counted in it.
    pub fn copies(self) -> bool {
        matches!(
            self,
            Step::Copying | Step::Detaching | Step::Scrubbing | Step::Importing | Step::Exporting
        )
    }

    /// Whether nothing happens any more.
    pub fn has_ended(self) -> bool {
        matches!(self, Step::Done | Step::Undone)
    }
}

/// An object before and after.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Edit {
    /// Which kind.
    pub object: Object,
    /// Its name.
    pub name: String,
    /// What was set; none where there was no such object.
    pub before: Option<Attributes>,
    /// What is set; none where it goes.
    pub after: Option<Attributes>,
    /// Somebody else wants it as it is after: it is not taken back.
    #[serde(default)]
    pub kept: bool,
}

/// What is done, and what it takes to take it back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Work {
    /// Objects become others.
    Change {
        /// Which.
        edits: Vec<Edit>,
        /// What was known before of the files of volumes among them.
        files: BTreeMap<String, Option<Made>>,
    },
    /// A data plane is restarted.
    Restart {
        /// Which.
        dataplane: String,
        /// Its process before.
        pid: Option<u32>,
    },
    /// An LU is to share nothing.
    Detach {
        /// Its volume.
        volume: String,
        /// The number under which the data plane is asked.
        asked: u64,
    },
    /// A storage pool is read.
    Scrub {
        /// Which.
        pool: String,
        /// The number under which the data plane is asked.
        asked: u64,
    },
    /// An LU comes from a file or goes into one.
    Image(Image),
}

/// An LU and a file, of which one is to hold what the other does.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// The LU's volume.
    pub volume: String,
    /// The file.
    pub file: PathBuf,
    /// From where to where.
    pub way: Way,
    /// How the file keeps what it holds.
    pub format: Format,
    /// Also while clients use the LU.
    pub force: bool,
    /// The number under which the data plane is asked.
    pub asked: u64,
}

/// From where to where something is copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// From the file into the LU.
    Import,
    /// From the LU into the file.
    Export {
        /// The snapshot that is meant, if not the LU as it is.
        snapshot: Option<String>,
    },
}

/// An operation as it is kept.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Operation {
    /// Its number.
    pub id: u64,
    /// What kind of work.
    pub kind: Kind,
    /// How far it is.
    pub step: Step,
    /// Who asked for it.
    pub caller: Option<Caller>,
    /// When it began, in milliseconds since 1970.
    pub started_ms: u64,
    /// When it ended.
    pub ended_ms: Option<u64>,
    /// Somebody wants it undone.
    pub cancelled: bool,
    /// Why it was undone, or what is not as it should be.
    pub error: Option<ApiError>,
    /// It is shown after its end, too.
    pub shown: bool,
    /// Once it is stored it is not taken back: what a data plane cannot do is tried again.
    pub lasting: bool,
    /// What is done.
    pub work: Work,
}

impl Operation {
    /// What it is about: noun and name.
    pub fn subjects(&self) -> Vec<String> {
        match &self.work {
            Work::Change { edits, files } => {
                let edited = edits.iter().map(|edit| format!("{} {}", edit.object, edit.name));
                let volume = |name: &&String| {
                    !edits.iter().any(|e| e.object == Object::Volume && e.name == **name)
                };
                let files = files.keys().filter(volume);
                edited.chain(files.map(|name| format!("{} {name}", Object::Volume))).collect()
            }
            Work::Restart { dataplane, .. } => vec![format!("{} {dataplane}", Object::DataPlane)],
            Work::Detach { volume, .. } => vec![format!("{} {volume}", Object::Volume)],
            Work::Scrub { pool, .. } => vec![format!("{} {pool}", Object::Pool)],
            Work::Image(Image { volume, .. }) => vec![format!("{} {volume}", Object::Volume)],
        }
    }

    /// The objects that it changes.
    pub fn touches(&self) -> impl Iterator<Item = (Object, &str)> {
        let (edits, files) = match &self.work {
            Work::Change { edits, files } => (edits.as_slice(), Some(files)),
            Work::Restart { .. } | Work::Detach { .. } | Work::Scrub { .. } | Work::Image(_) => {
                (&[][..], None)
            }
        };
        let files = files.into_iter().flat_map(BTreeMap::keys);
        let edited = edits.iter().map(|edit| (edit.object, edit.name.as_str()));
        edited.chain(files.map(|name| (Object::Volume, name.as_str())))
    }

    /// Whether it can still be undone.
    pub fn can_cancel(&self) -> bool {
        self.step.copies() || (self.step == Step::Waiting && !self.lasting)
    }
}

/// How a change stands with the data planes that it is for.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Carried {
    /// They have not been told yet.
    #[default]
    Untold,
    /// A file is being opened.
    Opening,
    /// It took too long.
    Late(ApiError),
    /// One could not do it.
    Failed(ApiError),
    /// It is done, or will be when a data plane runs again.
    Holds,
}

/// What is known now.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// An earlier server began it.
    pub resumed: bool,
    /// What became of the copying, the restart, the detaching, the scrub, the import or the export; none while it goes on.
    pub finished: Option<Result<(), ApiError>>,
    /// How it stands with the data planes.
    pub carried: Carried,
    /// Whether the process that was to be restarted still runs.
    pub same_process: bool,
    /// What is left of it was removed.
    pub clean: bool,
}

/// What is to be done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Copy, and look again when that is finished or somebody cancels it.
    Copy,
    /// Judge the change anew and store it; the step becomes [`Step::Waiting`] with it.
    Commit,
    /// Tell the data planes.
    Tell,
    /// Look again in a while.
    Wait,
    /// Restart the data plane.
    Restart,
    /// Detach the LU, until that is done or somebody cancels it.
    Detach,
    /// Scrub the pool, until that is done or somebody cancels it.
    Scrub,
    /// Import or export the LU, until that is done or somebody cancels it.
    Image,
    /// Nothing is stored yet: [`Step::Cleaning`].
    GiveUp(ApiError),
    /// Take the change back where nobody has made another of it; the step becomes [`Step::Cleaning`] with it.
    Revert(ApiError),
    /// Remove what is left.
    Clean,
    /// It has ended: [`Step::Done`] or [`Step::Undone`].
    End(Step, Option<ApiError>),
    /// Nothing any more.
    Nothing,
}

/// That an operation was cancelled.
pub fn cancelled() -> ApiError {
    ApiError::new(Code::Failed, "it was cancelled").help("nothing of it is left")
}

/// … and that something is left of it.
fn cancelled_import(operation: &Operation) -> ApiError {
    let volume = match &operation.work {
        Work::Image(Image { volume, .. }) => volume.as_str(),
        _ => "",
    };
    let help = format!("LU `{volume}` holds a part of the file: import it again, or remove the LU");
    ApiError::new(Code::Failed, "it was cancelled").help(help)
}

/// That a server ended in the middle.
fn interrupted(what: &str) -> ApiError {
    ApiError::new(Code::Failed, format!("the server ended while {what}"))
        .help("it was undone; ask for it again")
}

/// What to do next.
pub fn next(operation: &Operation, facts: &Facts) -> Action {
    match operation.step {
        Step::Done | Step::Undone => Action::Nothing,
        Step::Copying if operation.cancelled => Action::GiveUp(cancelled()),
        Step::Copying => match &facts.finished {
            // The change itself was in the head of the server that is gone.
            _ if facts.resumed => Action::GiveUp(interrupted("a medium was copied")),
            None => Action::Copy,
            Some(Ok(())) => Action::Commit,
            Some(Err(error)) => Action::GiveUp(error.clone()),
        },
        Step::Waiting if operation.lasting => match facts.carried {
            Carried::Untold => Action::Tell,
            _ => Action::End(Step::Done, None),
        },
        Step::Waiting if operation.cancelled => Action::Revert(cancelled()),
        Step::Waiting => match &facts.carried {
            Carried::Untold => Action::Tell,
            Carried::Opening => Action::Wait,
            Carried::Late(error) | Carried::Failed(error) => Action::Revert(error.clone()),
            Carried::Holds => Action::End(Step::Done, None),
        },
        Step::Cleaning if facts.clean => Action::End(Step::Undone, operation.error.clone()),
        Step::Cleaning => Action::Clean,
        Step::Importing if operation.cancelled => Action::GiveUp(cancelled_import(operation)),
        step @ (Step::Detaching | Step::Scrubbing | Step::Importing | Step::Exporting) => {
            match &facts.finished {
                _ if operation.cancelled => Action::GiveUp(cancelled()),
                // Whoever began it: the data plane goes on, and is asked.
                None => match step {
                    Step::Detaching => Action::Detach,
                    Step::Scrubbing => Action::Scrub,
                    _ => Action::Image,
                },
                Some(Ok(())) => Action::End(Step::Done, None),
                Some(Err(error)) => Action::End(Step::Undone, Some(error.clone())),
            }
        }
        Step::Restarting => match &facts.finished {
            // A start of the server interrupts nobody.
            None if facts.resumed && facts.same_process => {
                let what = interrupted("the data plane was to be restarted");
                Action::End(Step::Undone, Some(what))
            }
            // It is gone, and who starts finds that by himself.
            None if facts.resumed => Action::End(Step::Done, None),
            None => Action::Restart,
            Some(Ok(())) => Action::End(Step::Done, None),
            Some(Err(error)) => Action::End(Step::Undone, Some(error.clone())),
        },
    }
}

#[cfg(test)]
mod tests;
