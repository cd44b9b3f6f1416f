//! What volumes are kept in. A kind is a module with its plain data and [`Kind`], and its line in the list.

mod file;
mod lu;
mod null;
mod ram;

use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::{Change, FileIdentity};

pub use file::{CacheMode, FileSpec};
pub use lu::LuSpec;
pub use null::NullSpec;
pub use ram::RamSpec;

/// What a kind of volume says of itself. One that is not kept in a file has nothing to say but what a change means.
trait Kind {
    /// What it takes to go from one to another. Each field has its line, by a pattern that names all of them.
    fn change(&self, then: &Self) -> Change
    where
        Self: Sized;

    fn path(&self) -> Option<&Path> {
        None
    }

    fn identity(&self) -> Option<&FileIdentity> {
        None
    }

    fn makes(&self) -> bool {
        false
    }

    fn first(&mut self) {}

    fn anew(&mut self) {}

    fn settle(&mut self, _found: Option<FileIdentity>) {}
}

/// The enum of the kinds, and the way from it to what each of them says.
macro_rules! kinds {
    ($($(#[$doc:meta])* $variant:ident($data:ident),)*) => {
        /// What a volume is kept in.
        #[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(rename_all = "snake_case")]
        pub enum VolumeKind {
            $($(#[$doc])* $variant($data),)*
        }

        $(impl From<$data> for VolumeKind {
            fn from(data: $data) -> VolumeKind {
                VolumeKind::$variant(data)
            }
        })*

        impl VolumeKind {
            /// What it takes to go from one to another.
            pub(crate) fn change(&self, then: &VolumeKind) -> Change {
                match (self, then) {
                    $((VolumeKind::$variant(now), VolumeKind::$variant(then)) => now.change(then),)*
                    _ => Change::Recreate,
                }
            }

            fn as_kind(&self) -> &dyn Kind {
                match self {
                    $(VolumeKind::$variant(data) => data,)*
                }
            }

            fn as_kind_mut(&mut self) -> &mut dyn Kind {
                match self {
                    $(VolumeKind::$variant(data) => data,)*
                }
            }
        }
    };
}

kinds! {
    /// A regular file or a block device.
    File(FileSpec),
    /// Memory: a file in a tmpfs, mapped, so that it outlives the data plane (not the host).
    Ram(RamSpec),
    /// Nothing: writes vanish, reads return at once.
    Null(NullSpec),
    /// A logical unit of a shared storage pool.
    Lu(LuSpec),
}

impl VolumeKind {
    /// The file under it, if it has one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        self.as_kind().path()
    }

    /// What was at its place when it was opened first, if that is known.
    #[must_use]
    pub fn identity(&self) -> Option<&FileIdentity> {
        self.as_kind().identity()
    }

    /// Whether an opening makes a file that is missing, as long as none is known.
    #[must_use]
    pub fn makes(&self) -> bool {
        self.as_kind().makes()
    }

    /// It is opened for the first time.
    pub fn first(&mut self) {
        self.as_kind_mut().first();
    }

    /// It is to be an empty one, where none is.
    pub fn anew(&mut self) {
        self.as_kind_mut().anew();
    }

    /// From now on it is what was opened, and nothing is made for it any more.
    pub fn settle(&mut self, found: Option<FileIdentity>) {
        self.as_kind_mut().settle(found);
    }
}

/// How long a server waits for another one to let go of a file, unless said otherwise.
const LOCK_WAIT_MS: u64 = 30_000;

fn lock_wait_ms() -> u64 {
    LOCK_WAIT_MS
}

#[allow(clippy::trivially_copy_pass_by_ref)] // As serde calls it.
fn is_lock_wait_ms(wait: &u64) -> bool {
    *wait == LOCK_WAIT_MS
}
