//! Volumes in a shared storage pool.

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::change::{Change, gravest};
use crate::{FileIdentity, is_default};

/// A logical unit of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LuSpec {
    /// The name of its pool.
    pub pool: String,
    /// Space for all of it is set aside.
    #[serde(default, skip_serializing_if = "is_default")]
    pub thick: bool,
    /// Its data has checksums; of one that is there its pool says whether it has.
    #[serde(default, skip_serializing_if = "is_default")]
    pub checksums: bool,
    /// The tier of its pool that it is made in; else the first. Of one that is there it says nothing: its pool does ([`crate::PoolSpec::placed`]).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tier: Option<u8>,
    /// What it is made of: the number of a snapshot. It has that one's size.
    #[serde(default, skip_serializing_if = "is_default")]
    pub snapshot: Option<u32>,
    /// It was never there: it is made.
    #[serde(default, skip_serializing_if = "is_default")]
    pub fresh: bool,
    /// A mark that was drawn for it: who asks its pool again gets the LU that was made before; 0 for none.
    #[serde(default, skip_serializing_if = "is_default")]
    pub asked: u64,
    /// Which one it is, since it was made: nothing else is taken for it.
    #[serde(default, skip_serializing_if = "is_default")]
    pub identity: Option<FileIdentity>,
}

impl LuSpec {
    /// One that is thin and was made before.
    #[must_use]
    pub fn of(pool: &str) -> LuSpec {
        LuSpec {
            pool: pool.to_owned(),
            thick: false,
            checksums: false,
            tier: None,
            snapshot: None,
            fresh: false,
            asked: 0,
            identity: None,
        }
    }
}

impl Kind for LuSpec {
    fn change(&self, then: &LuSpec) -> Change {
        let LuSpec { pool, thick, checksums, tier, snapshot, fresh, asked, identity } = self;
        gravest([
            (Change::Recreate, *pool != then.pool),
            // What is told of its making says nothing about one that is there.
            (Change::Same, *thick != then.thick),
            (Change::Same, *checksums != then.checksums),
            (Change::Same, *tier != then.tier),
            (Change::Same, *snapshot != then.snapshot),
            (Change::Same, *fresh != then.fresh),
            (Change::Same, *asked != then.asked),
            (Change::Same, *identity != then.identity),
        ])
    }

    fn identity(&self) -> Option<&FileIdentity> {
        self.identity.as_ref()
    }

    fn makes(&self) -> bool {
        self.fresh
    }

    fn first(&mut self) {
        self.fresh = true;
    }

    fn anew(&mut self) {
        self.fresh = true;
    }

    fn settle(&mut self, found: Option<FileIdentity>) {
        (self.fresh, self.asked, self.identity) = (false, 0, found);
    }
}
