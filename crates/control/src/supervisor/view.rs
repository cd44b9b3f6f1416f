//! What is known of a data plane, whether or not it answers.

use super::ailing::Ailment;
use crate::error::ApiError;
use crate::model::files::Opened;
use crate::model::resolve::DataPlaneSpec;
use crate::reconcile::Subject;
use crate::turns;
use protocol::message::Status;
use protocol::stats::StatsReader;
use std::collections::BTreeMap;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Instant;

/// What a data plane said of itself, and when.
#[derive(Debug, Clone)]
pub struct Known {
    /// Its account, with its lists in the order of names.
    pub status: Arc<Status>,
    /// When it came.
    pub at: Instant,
}

impl Known {
    /// What was said just now.
    pub fn new(status: Status) -> Known {
        Known { status: Arc::new(status), at: turns::now() }
    }
}

/// What is known of a data plane without asking it.
#[derive(Debug, Clone, Default)]
pub struct View {
    /// Its process while there is one, whether or not it answers.
    pub pid: Option<u32>,
    /// How often it was started again after it died.
    pub restarts: u64,
    /// With what it runs; nothing when it was adopted and that is not known.
    pub started_with: Option<DataPlaneSpec>,
    /// Why it does not answer.
    pub trouble: Option<String>,
    /// What it could not do, by object.
    pub failures: BTreeMap<Subject, ApiError>,
    /// Volumes that it is opening, and what waits for them.
    pub opening: BTreeMap<Subject, ApiError>,
    /// The volumes with files that it has open, as it said last.
    pub opened: Arc<Opened>,
    /// Storage pools that it has open.
    pub pools: crate::model::pools::Opened,
    /// Its statistics.
    pub stats: Option<Arc<StatsReader>>,
    /// What it said of itself last.
    pub known: Option<Known>,
    /// Since when it does not answer.
    pub silent: Option<Instant>,
    /// How often it ceased to answer.
    pub silences: u64,
    /// Adapters whose requests failed of late, and why.
    pub ailing: BTreeMap<String, Ailment>,
    /// The longest message that it takes, in bytes; none while there is no connection.
    pub message_bytes_max: Option<u32>,
    /// The connection on which the supervisor may wait for an answer.
    pub(super) line: Option<Arc<UnixStream>>,
}

impl View {
    /// What the process said last that is there now; nothing of one that is gone.
    pub fn account(&self) -> Option<&Known> {
        let pid = self.pid?;
        self.known.as_ref().filter(|known| known.status.pid == pid)
    }

    /// There is no process any more; which it was.
    pub(super) fn died(&mut self) -> Option<u32> {
        let pid = self.pid.take();
        self.restarts += u64::from(pid.is_some());
        (self.stats, self.line) = (None, None);
        pid
    }

    /// Why it is not as it should be, for a person.
    pub fn reason(&self) -> Option<String> {
        let Some(since) = self.silent.filter(|_| self.pid.is_some()) else {
            return self.trouble.clone();
        };
        let pid = self.pid.map(|pid| format!("process {pid} ")).unwrap_or_default();
        let seconds = turns::since(since).as_secs();
        Some(format!("{pid}has not answered for {seconds} s"))
    }
}

pub(super) fn lock(view: &Mutex<View>) -> MutexGuard<'_, View> {
    // A view is only ever replaced field by field; one left by a panic is still a view.
    view.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
