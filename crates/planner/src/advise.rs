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

mod causes;
mod change;
mod client_cpu;
mod compared;
mod cpu;
mod disk;
mod disk_behind;
mod disk_nmon;
mod disk_transfer;
mod elements;
mod fabric;
mod fc;
mod finding;
mod hmc_lists;
mod hmc_refused;
mod hmc_state;
mod hmc_wwpns;
mod interfaces;
mod latency;
mod levels;
mod link;
mod link_down;
mod load;
mod loads;
mod logins;
mod mapping;
mod measure;
mod multipath;
mod network;
mod objects;
mod out;
mod overload;
mod overview;
mod paths;
mod queues;
mod rule;
mod san;
mod sea;
mod sea_mtu;
mod sea_pair;
mod served;
mod ssp;
mod ssp_luns;
mod ssp_nodes;
mod talkers;
pub(crate) mod thresholds;
mod view;
mod vnic;
mod vscsi;

use std::collections::{BTreeMap, BTreeSet};

pub(crate) use loads::loads;

pub use compared::Compared;
pub use finding::{Advice, Finding, Judged, NotChecked, Severity, Silenced, State};
pub use overview::{EthernetRow, FibreRow, Map, ScsiRow, SystemState, TalkerRow};
pub use rule::{Kind, Rule, rule, rules};

use crate::capture::Captures;
use crate::facts::Facts;
use crate::report::clean::tame;
use finding::Draft;
use out::Out;
use rule::{Applicability, Object};
use view::{Role, View};

/// What the captures say should be changed, best first, and what they do not suffice to judge.
#[must_use]
pub fn advise(captures: &Captures, facts: &Facts) -> Advice {
    let view = View::new(captures, facts);
    let mut answer = Answer::default();
    let mut objects: BTreeMap<Kind, Vec<Object<'_>>> = BTreeMap::new();
    for rule in rules() {
        if let Some(why) = facts.silenced(rule.name) {
            answer.silenced.push(Silenced { rule: rule.name, why: why.to_owned() });
            continue;
        }
        let objects = objects.entry(rule.on).or_insert_with(|| objects::of(&view, rule.on));
        let mut about = false;
        for object in objects.iter() {
            about |= answer.ask(&view, rule, object);
        }
        if !about && of_captured(&view, rule) {
            answer.absent(rule);
        }
    }
    answer.finish(&view)
}

/// Whether the captures are of what a rule is for: PowerVM, or a running Trunkline server.
fn of_captured(view: &View<'_>, rule: &Rule) -> bool {
    let served = |host: usize| view.role(host) == Role::Trunkline;
    match rule.on {
        Kind::Served => view.hosts().any(served),
        _ => view.hosts().is_empty() || view.hosts().any(|host| !served(host)),
    }
}

/// What the rules have said so far.
#[derive(Default)]
struct Answer {
    drafts: Vec<Draft>,
    missing: BTreeSet<NotChecked>,
    coverage: BTreeSet<Judged>,
    silenced: Vec<Silenced>,
}

impl Answer {
    /// Asks one rule about one object; says whether it is about it at all.
    fn ask<'a>(&mut self, view: &View<'a>, rule: &'static Rule, object: &Object<'a>) -> bool {
        let mut out = Out::new(rule.name);
        match (rule.applies)(view, object) {
            Applicability::Elsewhere => return false,
            Applicability::Judged => (rule.judge)(view, object, &mut out),
            Applicability::Lacking { why, capture } => {
                let capture = tame(&capture);
                self.missing.insert(NotChecked::new(rule.name, "", capture.as_str()));
                self.judged(view, rule, object, (State::NotJudged, why, capture));
                return true;
            }
        }
        let lacking = out.lacking.first();
        let (state, why, capture) = match (out.drafts.is_empty(), lacking) {
            (false, _) => (State::Finding, String::new(), String::new()),
            (true, Some(not)) => {
                let why = match not.about.is_empty() {
                    true => "not captured".to_owned(),
                    false => format!("not captured: {}", not.about),
                };
                (State::NotJudged, why, not.capture.clone())
            }
            (true, None) => (State::Healthy, String::new(), String::new()),
        };
        self.judged(view, rule, object, (state, why, capture));
        self.drafts.extend(out.drafts);
        self.missing.extend(out.lacking.into_iter().chain(out.hints));
        true
    }

    fn judged(
        &mut self,
        view: &View<'_>,
        rule: &Rule,
        object: &Object<'_>,
        (state, why, capture): (State, String, String),
    ) {
        self.coverage.insert(Judged {
            kind: object.kind,
            object: object.label.clone(),
            system: view.spoken(object.host).to_owned(),
            rule: rule.name,
            state,
            why,
            capture,
        });
    }

    /// Nothing was captured of what the rule is about.
    fn absent(&mut self, rule: &Rule) {
        let not = NotChecked::new(rule.name, "", rule.evidence);
        self.missing.insert(NotChecked { absent: true, ..not });
    }

    /// Orders what was said: causes weigh on their effects, then the score decides, then the place in the captures.
    fn finish(self, view: &View<'_>) -> Advice {
        let finish = |draft: Draft| {
            let weight = rule(draft.rule).map_or(1.0, |rule| rule.weight);
            draft.finish(weight, |host| view.spoken(host).to_owned())
        };
        let mut findings: Vec<Finding> =
            causes::settle(self.drafts, |host| view.spoken(host).to_owned())
                .into_iter()
                .map(finish)
                .collect();
        findings.sort_by(|a, b| {
            let place = |finding: &Finding| finding.evidence.first().copied();
            b.score
                .total_cmp(&a.score)
                .then_with(|| (place(a), a.rule, &a.object).cmp(&(place(b), b.rule, &b.object)))
        });
        let told: BTreeSet<(&str, &str)> = findings
            .iter()
            .flat_map(|finding| finding.systems().into_iter().map(|system| (finding.rule, system)))
            .collect();
        let mut coverage: Vec<Judged> = self.coverage.into_iter().collect();
        for judged in coverage.iter_mut().filter(|judged| judged.state == State::Finding) {
            if !told.contains(&(judged.rule, judged.system.as_str())) {
                judged.why = "told by the finding that is its cause".to_owned();
            }
        }
        Advice {
            systems: overview::systems(view, &findings, &coverage),
            map: overview::map(view),
            compared: compared::compared(view, &findings, &coverage),
            contradictions: view
                .facts
                .contradictions_of(findings.iter().flat_map(|finding| &finding.figures)),
            findings,
            not_checked: self.missing.into_iter().collect(),
            coverage,
            silenced: self.silenced,
        }
    }
}
