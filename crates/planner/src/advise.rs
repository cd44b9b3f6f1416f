//! The advisor: rules over what was read, each finding with its evidence and the arithmetic shown.
//!
//! A rule speaks when the captures show that something is wrong *now*, not when a value differs from a wish. Three
//! habits keep healthy systems quiet:
//!
//! - A counter that grew between two captures is proof; one that did not grow is history and says nothing; one that
//!   was seen once says "since the last reset" and weighs less.
//! - A count is held against the traffic it happened in. A few waits in millions of requests are noise.
//! - A default is not a fault by itself. What a load would need is asked for only when the load is seen.
//!
//! Findings are ordered by severity × confidence × impact, with causes before their effects: physical errors, then
//! disks, then adapters. What could not be judged is listed with the command whose output is missing.
//!
//! Facts and their sources are in [`crate::facts`]; thresholds of the advisor's own are in `advise/thresholds.rs` and
//! are marked as such in every figure that uses them.

mod cpu;
mod disk;
mod elements;
mod fc;
mod finding;
mod link;
mod logins;
mod mapping;
mod measure;
mod paths;
mod queues;
mod sea;
mod sea_pair;
mod ssp;
mod ssp_luns;
mod thresholds;
mod view;
mod vscsi;

use std::collections::BTreeSet;

pub use finding::{Advice, Finding, NotChecked, RULES, Severity};

use crate::capture::Captures;
use crate::facts::Facts;
use finding::Draft;
use view::View;

/// What the captures say should be changed, best first, and what they do not suffice to judge.
#[must_use]
pub fn advise(captures: &Captures, facts: &Facts) -> Advice {
    let view = View::new(captures, facts);
    let mut out = Out::default();
    link::check(&view, &mut out);
    elements::check(&view, &mut out);
    fc::check(&view, &mut out);
    queues::check(&view, &mut out);
    disk::check(&view, &mut out);
    vscsi::check(&view, &mut out);
    sea::check(&view, &mut out);
    sea_pair::check(&view, &mut out);
    ssp::check(&view, &mut out);
    cpu::check(&view, &mut out);
    out.finish()
}

/// What the rules have said so far.
#[derive(Default)]
struct Out {
    drafts: Vec<Draft>,
    missing: BTreeSet<NotChecked>,
}

impl Out {
    fn push(&mut self, draft: Draft) {
        self.drafts.push(draft);
    }

    /// The rule could not judge; `capture` is the command whose output it would need.
    fn missing(&mut self, rule: &'static str, capture: impl Into<String>) {
        self.missing.insert(NotChecked::new(rule, "", capture));
    }

    /// The same for one object, or for one thing that the capture would show.
    fn missing_for(
        &mut self,
        rule: &'static str,
        about: impl Into<String>,
        capture: impl Into<String>,
    ) {
        self.missing.insert(NotChecked::new(rule, about, capture));
    }

    /// Nothing was captured of what the rule is about.
    fn absent(&mut self, rule: &'static str, capture: impl Into<String>) {
        self.missing.insert(NotChecked { absent: true, ..NotChecked::new(rule, "", capture) });
    }

    /// Orders what was said: causes weigh on their effects, then the score decides, then the place in the captures.
    fn finish(self) -> Advice {
        let Self { mut drafts, missing } = self;
        let broken: BTreeSet<usize> =
            drafts.iter().filter(|d| d.rule == "fc-link-errors").map(|d| d.host).collect();
        for draft in &mut drafts {
            draft.heed_link_errors(broken.contains(&draft.host));
        }
        let mut findings: Vec<Finding> = drafts.into_iter().map(Draft::finish).collect();
        findings.sort_by(|a, b| {
            let place = |finding: &Finding| finding.evidence.first().copied();
            b.score
                .total_cmp(&a.score)
                .then_with(|| (place(a), a.rule, &a.object).cmp(&(place(b), b.rule, &b.object)))
        });
        Advice { findings, not_checked: missing.into_iter().collect() }
    }
}
