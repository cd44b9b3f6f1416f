//! A run of a seed with less than it has drawn: fewer clients, fewer requests, without some of what goes wrong. That is how a failing seed is made small.

use std::fmt;

use crate::options::Part;
use crate::plan::{Outcome, Plan};
use crate::world::REQUESTS;

/// What a run can be without, each with what that is.
pub(crate) const PARTS: [(&str, &str); 15] = [
    ("deaths", "deaths of the process"),
    ("power", "deaths of the host"),
    ("moves", "queues that move"),
    ("changes", "changes under clients"),
    ("orders", "reservations"),
    ("functions", "task management"),
    ("errors", "errors of the medium"),
    ("passing", "errors that pass"),
    ("short", "transfers that are cut short"),
    ("pauses", "a kernel that takes nothing, polls that end"),
    ("limits", "limits"),
    ("delays", "delays"),
    ("channels", "more channels than one"),
    ("liars", "a client that lies"),
    ("hangs", "a volume that does not answer for a while"),
];

/// The same of the control plane's.
pub(crate) const CONTROL_PARTS: [(&str, &str); 14] = [
    ("crashes", "deaths of the server"),
    ("power", "deaths of the host"),
    ("disk", "errors of the store's disk"),
    ("planes", "deaths of the data plane"),
    ("silence", "a data plane that answers nothing"),
    ("lines", "lines that are cut"),
    ("refusals", "messages that are refused"),
    ("starts", "data planes that do not start"),
    ("late", "answers that come late"),
    ("files", "files that are locked or away"),
    ("holds", "files that what a dead data plane has under way holds"),
    ("leaves", "callers that leave"),
    ("clients", "clients"),
    ("rounds", "more rounds than one"),
];

/// What a run has less than its seed has drawn.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Less {
    /// What happens when, but nothing that was drawn before the run.
    pub salt: u64,
    /// At most.
    pub clients: Option<usize>,
    /// At most, of all clients.
    pub requests: Option<u32>,
    /// Without these of [`PARTS`], or without others having turns in the middle of something: `nesting`.
    pub without: Vec<&'static str>,
}

impl Less {
    /// Whether a part is there.
    pub(crate) fn has(&self, part: &str) -> bool {
        !self.without.contains(&part)
    }

    /// Of so many clients that were drawn.
    pub(crate) fn clients(&self, drawn: usize) -> usize {
        self.clients.map_or(drawn, |most| drawn.min(most))
    }

    pub(crate) fn requests(&self, drawn: u32) -> u32 {
        self.requests.map_or(drawn, |most| drawn.min(most))
    }

    /// A part by its name.
    pub(crate) fn part(name: &str) -> Option<&'static str> {
        let names = PARTS.iter().chain(&CONTROL_PARTS).map(|(part, _)| *part);
        let mut names = names.chain(["nesting"]);
        names.find(|part| *part == name)
    }

    /// This and a little less, in several ways: the largest steps first.
    fn steps(&self, part: Part) -> Vec<Less> {
        let mut steps = Vec::new();
        let clients = self.clients.unwrap_or(crate::world::CLIENTS_MAX);
        steps.extend((1..clients).map(|clients| Less { clients: Some(clients), ..self.clone() }));
        let requests = self.requests(REQUESTS);
        let fewer = [requests / 8, requests / 2, requests * 3 / 4, requests.saturating_sub(1)];
        let fewer = fewer.into_iter().filter(|fewer| (1..requests).contains(fewer));
        steps.extend(fewer.map(|fewer| Less { requests: Some(fewer), ..self.clone() }));
        let parts: &[(&str, &str)] = match part {
            Part::Data | Part::Pool => &PARTS,
            Part::Control => &CONTROL_PARTS,
        };
        let parts = parts.iter().map(|(part, _)| *part).chain(["nesting"]);
        for part in parts.filter(|part| self.has(part)) {
            let without = self.without.iter().copied().chain([part]).collect();
            steps.push(Less { without, ..self.clone() });
        }
        steps
    }
}

/// As on the command line.
impl fmt::Display for Less {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Less { salt, clients, requests, without } = self;
        if *salt > 0 {
            write!(f, " --salt {salt}")?;
        }
        clients.iter().try_for_each(|clients| write!(f, " --clients {clients}"))?;
        requests.iter().try_for_each(|requests| write!(f, " --requests {requests}"))?;
        if !without.is_empty() {
            write!(f, " --without {}", without.join(","))?;
        }
        Ok(())
    }
}

/// Runs that a search for a smaller one may take, and tries with other choices for each step: the old choices mean something else when something
/// is left out.
const RUNS: usize = 4_000;
const TRIES: u64 = 24;

/// What is wrong, without numbers and names: a smaller run has to fail in the same way.
fn kind(finding: &str) -> String {
    finding.chars().filter(|letter| !letter.is_ascii_hexdigit()).take(80).collect()
}

/// The smallest run that was found to fail as this one does.
pub(crate) fn shrink(plan: &Plan, finding: &str) -> (Plan, Outcome) {
    let kind_of_it = kind(finding);
    let (mut best, mut runs) = (plan.clone(), 0);
    let mut outcome = plan.run();
    'smaller: loop {
        for less in best.less.steps(best.part) {
            for salt in 0..TRIES {
                runs += 1;
                if runs > RUNS {
                    break 'smaller;
                }
                let less = Less { salt, ..less.clone() };
                let smaller = Plan { less, ..best.clone() };
                let tried = smaller.run();
                if tried.finding.as_deref().map(kind).as_ref() == Some(&kind_of_it) {
                    (best, outcome) = (smaller, tried);
                    continue 'smaller;
                }
            }
        }
        break;
    }
    (best, outcome)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::controls::CONTROLS;

    #[test]
    fn a_failing_seed_becomes_small() {
        let control = CONTROLS.into_iter().find(|control| control.name == "inflight-early");
        let plans = (1..200).map(|seed| Plan { seed, control, ..Plan::default() });
        let (plan, finding) = plans
            .filter_map(|plan| plan.run().finding.map(|finding| (plan, finding)))
            .next()
            .expect("it is found");
        let before = plan.run();
        let (small, outcome) = shrink(&plan, &finding);
        assert!(small.less.requests(REQUESTS) <= 20, "{:?}", small.less);
        assert!(outcome.story.told < before.story.told / 4, "{}", outcome.story.told);
        // The printed options are the run.
        let again = small.run();
        assert_eq!((again.finding, again.story), (outcome.finding, outcome.story));
    }
}
