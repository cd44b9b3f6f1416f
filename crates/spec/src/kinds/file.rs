//! Volumes in a regular file or on a block device.

use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::{Kind, LOCK_WAIT_MS, is_lock_wait_ms, lock_wait_ms};
use crate::change::{Change, gravest};
use crate::{FileIdentity, is_default};

/// A regular file or a block device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileSpec {
    /// Where it is.
    pub path: PathBuf,
    /// Through the page cache or not.
    pub cache: CacheMode,
    /// Make the file, with the volume's size, if there is none and `identity` is not known.
    pub create: bool,
    /// Give a file that is made all of its space at once.
    pub preallocate: bool,
    /// How long to wait for another process that has the file locked, in milliseconds.
    #[serde(default = "lock_wait_ms", skip_serializing_if = "is_lock_wait_ms")]
    pub lock_wait_ms: u64,
    /// The file is to be made by this opening: one that is there is left alone, and the volume is not opened.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fresh: bool,
    /// What was there when it was opened first: nothing else is taken for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub identity: Option<FileIdentity>,
}

impl FileSpec {
    /// What is there already, with the defaults.
    #[must_use]
    pub fn new(path: impl Into<PathBuf>) -> FileSpec {
        FileSpec {
            path: path.into(),
            cache: CacheMode::Auto,
            create: false,
            preallocate: false,
            lock_wait_ms: LOCK_WAIT_MS,
            fresh: false,
            identity: None,
        }
    }
}

impl Kind for FileSpec {
    fn change(&self, then: &FileSpec) -> Change {
        let FileSpec { path, cache, create, preallocate, lock_wait_ms, fresh, identity } = self;
        gravest([
            (Change::Recreate, *path != then.path),
            (Change::Live, *cache != then.cache),
            (Change::Live, *preallocate != then.preallocate),
            // What is told of an opening says nothing about a volume that is open.
            (Change::Same, *create != then.create),
            (Change::Same, *lock_wait_ms != then.lock_wait_ms),
            (Change::Same, *fresh != then.fresh),
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
        self.create || self.fresh
    }

    fn anew(&mut self) {
        self.fresh = true;
    }

    fn settle(&mut self, found: Option<FileIdentity>) {
        (self.create, self.fresh, self.identity) = (false, false, found);
    }
}

/// Whether a file is read and written through the page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CacheMode {
    /// Direct where the target can do it in units of the volume's block size or less, buffered otherwise.
    #[default]
    Auto,
    /// Past the page cache (`O_DIRECT`), or an error.
    Direct,
    /// Through the page cache.
    Buffered,
}
