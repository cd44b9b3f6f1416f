//! What rules say: findings, and what they could not judge.

use std::collections::BTreeSet;

use super::finding::{Draft, NotChecked};

/// What one rule says of one object.
#[derive(Default)]
pub(super) struct Out {
    rule: &'static str,
    pub(super) drafts: Vec<Draft>,
    pub(super) lacking: BTreeSet<NotChecked>,
    /// What would tell more, though it was judged.
    pub(super) hints: BTreeSet<NotChecked>,
}

impl Out {
    pub(super) fn new(rule: &'static str) -> Self {
        Self { rule, ..Self::default() }
    }

    pub(super) fn push(&mut self, draft: Draft) {
        self.drafts.push(draft);
    }

    /// It could not judge; `about` is what `capture`, the command to run, would show.
    pub(super) fn lack(&mut self, about: impl Into<String>, capture: impl Into<String>) {
        self.lacking.insert(NotChecked::new(self.rule, about, capture));
    }

    /// It was judged; `capture` would tell more.
    pub(super) fn hint(&mut self, about: impl Into<String>, capture: impl Into<String>) {
        self.hints.insert(NotChecked::new(self.rule, about, capture));
    }
}
