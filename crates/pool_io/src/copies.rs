//! Copies of whole LUs from files and into files: who begins one, asks how far it is, and has it end. The work itself is a [`Copier`]'s.

use std::collections::BTreeMap;
use std::fs::File;
use std::sync::atomic::Ordering::{Relaxed, SeqCst};
use std::sync::atomic::{AtomicBool, AtomicU64};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use crate::copier::Copier;
use crate::post::Wanted;
use crate::table::locked;
use crate::{PoolError, PoolHandle};

/// Copies of a pool that are under way at once: each may have [`crate::copier::SLOTS`] requests at its PVs.
const COPIES_MAX: usize = 4;
/// Copies that are over and of which it is known what became of them.
const ENDED_MAX: usize = 64;
/// How long the end of a copy is waited for that was told to end: its file may be on a disk that hangs.
const END_PATIENCE: Duration = Duration::from_secs(10);

/// What is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CopyJob {
    /// A number of the asker's own: what became of it is told to him alone.
    pub id: u64,
    /// The LU, or for an export a snapshot.
    pub lu: u32,
    /// From where to where.
    pub way: CopyWay,
    /// Also while clients use the LU.
    pub under_clients: bool,
}

/// From where to where something is copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyWay {
    /// From the file into the LU.
    Import,
    /// From the LU into the file, which gets so many bytes.
    Export {
        /// The size of the LU.
        bytes: u64,
    },
}

/// How far a copy is, in bytes of the LU.
#[derive(Clone, Debug, Default)]
pub struct CopyView {
    /// All of it.
    pub planned: u64,
    /// What is copied, or was found to be zeros; never more.
    pub done: u64,
    /// It waits for space in the pool.
    pub waits: bool,
    /// What became of it; none while it goes on.
    pub end: Option<Result<(), CopyEnd>>,
}

/// Why a copy is over that did not come to its end.
#[derive(Clone, Debug)]
pub enum CopyEnd {
    /// Somebody wanted that.
    Stopped,
    /// It failed.
    Failed(PoolError),
}

/// A copy.
#[derive(Debug)]
pub(crate) struct Copy {
    lu: u32,
    pub(crate) planned: u64,
    pub(crate) done: AtomicU64,
    pub(crate) waits: AtomicBool,
    stops: AtomicBool,
    end: Mutex<Option<Result<(), CopyEnd>>>,
    over: Condvar,
}

impl Copy {
    fn new(lu: u32, planned: u64) -> Copy {
        Copy {
            lu,
            planned,
            done: AtomicU64::new(0),
            waits: AtomicBool::new(false),
            stops: AtomicBool::new(false),
            end: Mutex::default(),
            over: Condvar::new(),
        }
    }

    pub(crate) fn is_to_stop(&self) -> bool {
        self.stops.load(Relaxed)
    }

    fn is_over(&self) -> bool {
        locked(&self.end).is_some()
    }

    fn ends(&self, end: Result<(), CopyEnd>) {
        *locked(&self.end) = Some(end);
        self.over.notify_all();
    }

    /// Waits for its end, but not for ever.
    fn wait(&self, until: Instant) {
        let left = until.saturating_duration_since(Instant::now());
        let goes_on = |end: &mut Option<_>| end.is_none();
        let waited = self.over.wait_timeout_while(locked(&self.end), left, goes_on);
        drop(waited.unwrap_or_else(PoisonError::into_inner));
    }

    fn view(&self) -> CopyView {
        CopyView {
            planned: self.planned,
            done: self.done.load(Relaxed).min(self.planned),
            waits: self.waits.load(Relaxed),
            end: locked(&self.end).clone(),
        }
    }
}

/// The copies of a pool, by number.
#[derive(Debug, Default)]
pub(crate) struct Copies {
    all: BTreeMap<u64, Arc<Copy>>,
    /// None begins any more.
    closed: bool,
}

impl Copies {
    fn under_way(&self) -> impl Iterator<Item = &Arc<Copy>> {
        self.all.values().filter(|copy| !copy.is_over())
    }

    /// Forgets what nobody has asked for for long.
    fn prune(&mut self) {
        let over: Vec<u64> =
            self.all.iter().filter(|(_, copy)| copy.is_over()).map(|(id, _)| *id).collect();
        for id in over.iter().take(over.len().saturating_sub(ENDED_MAX)) {
            self.all.remove(id);
        }
    }
}

impl PoolHandle {
    /// Begins to copy, on a thread of its own, and says how far that is. One that was begun under this number goes on, or is over. What was in an LU is gone after an import: what the file has no
    /// data for is zeros, and has no space. Of an import that does not come to its end the LU holds a part.
    ///
    /// # Errors
    ///
    /// The LU is not there, too small, used by clients or being copied; or there are too many copies.
    pub fn begin_copy(&self, job: CopyJob, file: File) -> Result<CopyView, PoolError> {
        if let Some(view) = self.copy(job.id) {
            return Ok(view);
        }
        let view = self.shared.view();
        let known = view.lus.iter().find(|lu| lu.lu == job.lu);
        let missing = || PoolError::new(format!("there is no LU {}", job.lu), "see `pool show`");
        // A snapshot needs no table: no channel ever looks for what it holds.
        let table = match known.ok_or_else(missing)?.origin {
            None => Some(self.lu(Wanted::Number(job.lu))?.map_err(|_| missing())?),
            Some(_) => None,
        };
        let clients = table.as_ref().map_or(0, |table| table.lanes.load(SeqCst));
        if clients > 0 && !job.under_clients {
            let (what, help) = match job.way {
                CopyWay::Import => (
                    "clients would go on with what they remember of it",
                    "stop its clients, or use --force",
                ),
                CopyWay::Export { .. } => (
                    "what is copied would be of different moments",
                    "export a snapshot of it (--snapshot), stop its clients, or use --force",
                ),
            };
            return Err(PoolError::new(format!("the LU is in use: {what}"), help));
        }
        let planned = match job.way {
            CopyWay::Import => self.bytes(job.lu).unwrap_or(0),
            CopyWay::Export { bytes } => bytes,
        };
        let copy = Arc::new(Copy::new(job.lu, planned));
        let copier = Copier::new(self, table, (job, file), Arc::clone(&copy))?;
        {
            let mut copies = locked(&self.shared.copies);
            if copies.closed {
                return Err(PoolError::new("the pool is being closed", "open it again"));
            }
            if copies.under_way().any(|other| other.lu == job.lu) {
                let help = "wait for its end: see `trunkline operation list`";
                return Err(PoolError::new("the LU is being copied", help));
            }
            if copies.under_way().count() >= COPIES_MAX {
                let what = format!("{COPIES_MAX} copies of the pool's LUs are under way");
                return Err(PoolError::new(what, "wait for one of them"));
            }
            copies.prune();
            copies.all.insert(job.id, Arc::clone(&copy));
        }
        let of_thread = Arc::clone(&copy);
        let run = move || of_thread.ends(copier.run());
        let begun = std::thread::Builder::new().name("copy".into()).spawn(run);
        begun.map_err(|error| {
            locked(&self.shared.copies).all.remove(&job.id);
            let what = format!("no thread to copy: {error}");
            PoolError::new(what, "raise the limit of threads (TasksMax)")
        })?;
        Ok(copy.view())
    }

    /// How far the copy of that number is, or what became of it; none where there was none.
    #[must_use]
    pub fn copy(&self, id: u64) -> Option<CopyView> {
        locked(&self.shared.copies).all.get(&id).map(|copy| copy.view())
    }

    /// Has the copy of that number end, which may take a moment.
    #[must_use]
    pub fn stop_copy(&self, id: u64) -> Option<CopyView> {
        let copy = locked(&self.shared.copies).all.get(&id).cloned()?;
        copy.stops.store(true, Relaxed);
        Some(copy.view())
    }

    /// That nobody copies the LU.
    pub(crate) fn is_not_copied(&self, lu: u32) -> Result<(), PoolError> {
        match locked(&self.shared.copies).under_way().any(|copy| copy.lu == lu) {
            true => {
                let help = "wait for the end of that: see `trunkline operation list`";
                Err(PoolError::new(format!("LU {lu} is being copied"), help))
            }
            false => Ok(()),
        }
    }

    /// Has the copies of LUs end that are about to go, and waits for that.
    pub fn end_copies(&self, of: impl Fn(u32) -> bool) {
        let copies: Vec<Arc<Copy>> = {
            let all = locked(&self.shared.copies);
            all.under_way().filter(|copy| of(copy.lu)).cloned().collect()
        };
        copies.iter().for_each(|copy| copy.stops.store(true, Relaxed));
        let until = Instant::now() + END_PATIENCE;
        copies.iter().for_each(|copy| copy.wait(until));
    }

    /// Has all copies end; none begins any more.
    pub(crate) fn close_copies(&self) {
        locked(&self.shared.copies).closed = true;
        self.end_copies(|_| true);
    }
}
