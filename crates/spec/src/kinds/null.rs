//! Volumes that keep nothing.

use serde::{Deserialize, Serialize};

use super::Kind;
use crate::change::{Change, gravest};

/// Nothing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct NullSpec {
    /// Whether reads fill the buffers with zeroes; else they leave them as they are.
    pub zero_fill: bool,
}

impl Kind for NullSpec {
    fn change(&self, then: &NullSpec) -> Change {
        let NullSpec { zero_fill } = *self;
        gravest([(Change::Reopen, zero_fill != then.zero_fill)])
    }
}
