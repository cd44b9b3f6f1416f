//! What became of the links of ports and adapters so far: counts that only grow, whatever the trail has forgotten, also over a restart of
//! the server.

use super::Kind;
use super::book::Book;
use crate::caller::Caller;
use fabric::attribute::Object;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;
use utoipa::ToSchema;

/// What became of the link of a port or an adapter since it was made.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkCounts {
    /// Times that it went down. Of an adapter: unmapped, or its port went down.
    pub failures: u64,
    /// Times that it was there again.
    pub recoveries: u64,
    /// Times that the adapter went from one port to another; of a port, adapters that came or left so.
    pub remaps: u64,
    /// What happened last.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last: Option<LinkChange>,
}

/// Something that happened to a link.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LinkChange {
    /// When, in milliseconds since 1970.
    pub at_ms: u64,
    /// `link_down`, `link_up` or `remapped`.
    pub kind: Kind,
    /// What, in words.
    pub message: String,
    /// Who did it, as far as it is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<Caller>,
}

/// The counts of all ports and adapters, by noun and name.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Links(BTreeMap<String, BTreeMap<String, LinkCounts>>);

impl Links {
    /// What became of one's link so far.
    pub fn of(&self, object: Object, name: &str) -> LinkCounts {
        let of_kind = self.0.get(object.noun());
        of_kind.and_then(|of_kind| of_kind.get(name)).cloned().unwrap_or_default()
    }
}

/// The counts, and the file that keeps them.
pub(super) type LinkBook = Book<Links>;

impl LinkBook {
    pub(super) fn counts(&self) -> Arc<Links> {
        Arc::clone(&self.all)
    }

    /// Counts what happened to all these.
    pub(super) fn count(&mut self, of: &[(Object, String)], change: &LinkChange) {
        let all = &mut Arc::make_mut(&mut self.all).0;
        for (object, name) in of {
            let of_kind = all.entry(object.noun().to_owned()).or_default();
            let counts = of_kind.entry(name.clone()).or_default();
            match change.kind {
                Kind::LinkDown => counts.failures += 1,
                Kind::LinkUp => counts.recoveries += 1,
                _ => counts.remaps += 1,
            }
            counts.last = Some(change.clone());
        }
        self.keep();
    }

    /// Another one of that name begins at nothing.
    pub(super) fn forget(&mut self, object: Object, name: &str) {
        if self.all.0.get(object.noun()).is_some_and(|all| all.contains_key(name)) {
            let all = &mut Arc::make_mut(&mut self.all).0;
            all.entry(object.noun().to_owned()).or_default().remove(name);
            self.keep();
        }
    }
}
