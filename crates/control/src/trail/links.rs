//! What became of the links of ports and adapters so far: counts that only grow, whatever the trail has forgotten, also over a restart of
//! the server.

use super::Kind;
use crate::caller::Caller;
use crate::trouble::Trouble;
use fabric::attribute::Object;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
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
#[derive(Debug)]
pub(super) struct LinkBook {
    counts: Arc<Links>,
    path: PathBuf,
    /// Why they are not kept.
    trouble: Trouble,
}

impl LinkBook {
    /// Goes on with what earlier servers counted. A file that cannot be read is begun anew.
    pub(super) fn open(path: PathBuf) -> LinkBook {
        let counts = match std::fs::read(&path) {
            Ok(bytes) => serde_json::from_slice(&bytes).unwrap_or_else(|error| {
                tracing::warn!(path = %path.display(), %error, "counts of links begin anew");
                Links::default()
            }),
            Err(_) => Links::default(),
        };
        LinkBook { counts: Arc::new(counts), path, trouble: Trouble::default() }
    }

    pub(super) fn counts(&self) -> Arc<Links> {
        Arc::clone(&self.counts)
    }

    /// Counts what happened to all these.
    pub(super) fn count(&mut self, of: &[(Object, String)], change: &LinkChange) {
        let all = &mut Arc::make_mut(&mut self.counts).0;
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
        if self.counts.0.get(object.noun()).is_some_and(|all| all.contains_key(name)) {
            let all = &mut Arc::make_mut(&mut self.counts).0;
            all.entry(object.noun().to_owned()).or_default().remove(name);
            self.keep();
        }
    }

    /// The file is replaced as a whole: nobody finds half of it.
    fn keep(&mut self) {
        let text = serde_json::to_vec(&*self.counts).expect("plain values are JSON");
        match replace(&self.path, &text) {
            Ok(()) => self.trouble.is_over(),
            Err(error) => {
                let not_kept = "counts of links are not kept over a restart";
                self.trouble.came(&self.path, &error, not_kept);
            }
        }
    }

    /// Tries again. Why they still cannot be kept, if so.
    pub(super) fn mend(&mut self) -> Option<String> {
        if self.trouble.why().is_some() {
            self.keep();
        }
        self.trouble.why().cloned()
    }
}

fn replace(path: &Path, text: &[u8]) -> io::Result<()> {
    let draft = path.with_extension("new");
    let written = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path));
    // What could not be written takes no room from who can write less.
    written.inspect_err(|_| drop(std::fs::remove_file(&draft)))
}
