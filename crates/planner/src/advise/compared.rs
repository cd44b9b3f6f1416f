//! What IBM's own advisor says of a VIOS, beside what is said here: it is compared with, and judged by nobody.

use std::collections::BTreeMap;

use serde::Serialize;

use super::finding::{Finding, Judged, State};
use super::view::View;
use crate::capture::{At, PartAdvice, Report};

/// One advice of IBM's advisor.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Compared {
    /// The line.
    pub at: At,
    /// The system.
    pub system: String,
    /// What it is about, with the device where it names one.
    pub about: String,
    /// What it found.
    pub value: String,
    /// What it suggests.
    pub suggested: String,
    /// Risk and impact, as it prints them.
    pub weight: String,
    /// What the rules here came to.
    pub here: String,
}

/// The rules that judge what an advice is about, by words of its name.
const RULES: [(&[&str], &[&str]); 7] = [
    (
        &["queuedepth", "depth"],
        &["disk-queue-depth", "disk-iops-limit", "disk-depth-chain", "ssp-depth"],
    ),
    (&["numcmd", "elem"], &["fc-virtual-elements", "fc-physical-elements"]),
    (&["cpu", "proc", "entitle"], &["vios-cpu", "client-cpu"]),
    (&["mem", "paging"], &["vios-memory"]),
    (&["latency", "service"], &["disk-slow", "fc-latency"]),
    (&["speed"], &["fc-speed", "net-speed"]),
    (&["path"], &["disk-paths-failed", "disk-single-path"]),
];

/// Every advice that would change something.
pub(super) fn compared(
    view: &View<'_>,
    findings: &[Finding],
    coverage: &[Judged],
) -> Vec<Compared> {
    let here = Here::new(findings, coverage);
    let mut all = Vec::new();
    for (host, report) in view.reports() {
        let Report::Part(report) = report else { continue };
        let system = view.spoken(host);
        let text = |read: &Option<crate::capture::Read<String>>| {
            read.as_ref().map_or_else(String::new, |read| read.value.clone())
        };
        for advice in &report.advices {
            let value = text(&advice.value);
            if value == advice.suggested.value {
                continue;
            }
            let weight: Vec<String> = [("risk", &advice.risk), ("impact", &advice.impact)]
                .into_iter()
                .filter_map(|(name, read)| Some(format!("{name} {}", read.as_ref()?.value)))
                .collect();
            let device =
                advice.device.as_deref().map_or_else(String::new, |name| format!(" of {name}"));
            all.push(Compared {
                at: advice.at,
                system: system.to_owned(),
                about: format!("{}{device}", advice.about),
                value,
                suggested: advice.suggested.value.clone(),
                weight: weight.join(", "),
                here: here.of(advice, system),
            });
        }
    }
    all
}

/// What the rules came to, by the system, the rule and a word of the object's name.
struct Here<'a> {
    findings: &'a [Finding],
    coverage: &'a [Judged],
    by_word: BTreeMap<(&'a str, &'a str, &'a str), Said>,
}

/// Places in the lists of findings and judgements.
#[derive(Default)]
struct Said {
    /// The first finding.
    found: Option<usize>,
    /// The first that was not judged.
    open: Option<usize>,
}

impl<'a> Here<'a> {
    fn new(findings: &'a [Finding], coverage: &'a [Judged]) -> Self {
        let mut by_word: BTreeMap<_, Said> = BTreeMap::new();
        let wanted = |rule: &str| RULES.iter().any(|(_, rules)| rules.contains(&rule));
        for (at, one) in findings.iter().enumerate().filter(|(_, one)| wanted(one.rule)) {
            for word in words(&one.object) {
                let said = by_word.entry((one.system.as_str(), one.rule, word)).or_default();
                said.found.get_or_insert(at);
            }
        }
        for (at, one) in coverage.iter().enumerate().filter(|(_, one)| wanted(one.rule)) {
            for word in words(&one.object) {
                let said = by_word.entry((one.system.as_str(), one.rule, word)).or_default();
                if one.state == State::NotJudged {
                    said.open.get_or_insert(at);
                }
            }
        }
        Self { findings, coverage, by_word }
    }

    /// By what was found and judged of the advice's system.
    fn of(&self, advice: &PartAdvice, system: &str) -> String {
        let letters = advice.about.chars().filter(char::is_ascii_alphanumeric);
        let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
        let known = RULES.iter().find(|(words, _)| words.iter().any(|word| name.contains(word)));
        let Some((_, rules)) = known else { return "no rule here is about it".to_owned() };
        let word = advice.device.as_deref().unwrap_or("");
        let said = || rules.iter().filter_map(|rule| self.by_word.get(&(system, *rule, word)));
        let first = |place: fn(&Said) -> Option<usize>| said().filter_map(place).min();
        if let Some(found) = first(|said| said.found).and_then(|at| self.findings.get(at)) {
            return format!("found too: {} ({})", found.title, found.rule);
        }
        match first(|said| said.open).and_then(|at| self.coverage.get(at)) {
            Some(open) => format!("not judged; what would decide: {}", open.capture),
            None if said().next().is_some() => "judged, and in order by the captures".to_owned(),
            None => format!("nothing was captured that {} judges", rules.join(" or ")),
        }
    }
}

/// The words of an object's name, and the one that stands for all of them.
fn words(object: &str) -> impl Iterator<Item = &str> {
    std::iter::once("").chain(object.split(' ').filter(|word| !word.is_empty()))
}
