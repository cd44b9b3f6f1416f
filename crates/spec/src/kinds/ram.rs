//! Volumes in memory.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Kind, LOCK_WAIT_MS, is_lock_wait_ms, lock_wait_ms};
use crate::change::{Change, gravest};
use crate::{FileIdentity, is_default};

/// A file in a tmpfs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RamSpec {
    /// Where it is; the folder must be on a tmpfs, such as /dev/shm. Made, with the volume's size, if there is none and `identity` is
    /// not known, or is of another boot of the host.
    pub path: PathBuf,
    /// Take all the memory at once. Without, a write can fail for want of space later, and discards give memory back.
    #[serde(default, skip_serializing_if = "is_default")]
    pub preallocate: bool,
    /// How long to wait for another process that has the file locked, in milliseconds.
    #[serde(default = "lock_wait_ms", skip_serializing_if = "is_lock_wait_ms")]
    pub lock_wait_ms: u64,
    /// The volume is new: what another has left at its place goes.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fresh: bool,
    /// Somebody chose its place: what is there when the volume is new is somebody's, and the volume is not opened.
    #[serde(default, skip_serializing_if = "is_default")]
    pub named: bool,
    /// What was there when it was opened first: nothing else is taken for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub identity: Option<FileIdentity>,
}

impl RamSpec {
    /// A file that is made if there is none.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> RamSpec {
        let path = path.into();
        let (lock_wait_ms, fresh, named, identity) = (LOCK_WAIT_MS, false, false, None);
        RamSpec { path, preallocate: false, lock_wait_ms, fresh, named, identity }
    }
}

impl Kind for RamSpec {
    fn change(&self, then: &RamSpec) -> Change {
        let RamSpec { path, preallocate, lock_wait_ms, fresh, named, identity } = self;
        gravest([
            (Change::Recreate, *path != then.path),
            (Change::Reopen, *preallocate != then.preallocate),
            (Change::Same, *lock_wait_ms != then.lock_wait_ms),
            (Change::Same, *fresh != then.fresh),
            (Change::Same, *named != then.named),
            (Change::Same, *identity != then.identity),
        ])
    }

    fn path(&self) -> Option<&Path> {
        Some(&self.path)
    }

    fn identity(&self) -> Option<&FileIdentity> {
        self.identity.as_ref()
    }

    fn makes(&self) -> bool {
        true
    }

    fn first(&mut self) {
        self.fresh = true;
    }

    fn anew(&mut self) {
        // Somebody wants it so.
        (self.fresh, self.named) = (true, false);
    }

    fn settle(&mut self, found: Option<FileIdentity>) {
        (self.fresh, self.identity) = (false, found);
    }
}
