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
    (&["cpu", "proc", "entitle"], &["vios-cpu"]),
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
    let findings = by_system(findings, |one| &one.system);
    let coverage = by_system(coverage, |one| &one.system);
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
                here: here(advice, of(&findings, system), of(&coverage, system)),
            });
        }
    }
    all
}

fn by_system<T>(all: &[T], system: impl Fn(&T) -> &str) -> BTreeMap<&str, Vec<&T>> {
    let mut by_system: BTreeMap<&str, Vec<&T>> = BTreeMap::new();
    for one in all {
        by_system.entry(system(one)).or_default().push(one);
    }
    by_system
}

fn of<'a, T>(by_system: &'a BTreeMap<&str, Vec<&'a T>>, system: &str) -> &'a [&'a T] {
    by_system.get(system).map_or(&[], Vec::as_slice)
}

/// What the rules came to, by what they found and judged of the advice's system.
fn here(advice: &PartAdvice, findings: &[&Finding], coverage: &[&Judged]) -> String {
    let letters = advice.about.chars().filter(char::is_ascii_alphanumeric);
    let name: String = letters.map(|c| c.to_ascii_lowercase()).collect();
    let known = RULES.iter().find(|(words, _)| words.iter().any(|word| name.contains(word)));
    let Some((_, rules)) = known else { return "no rule here is about it".to_owned() };
    let meant = |object: &str| {
        let device = advice.device.as_deref();
        device.is_none_or(|name| object.split(' ').any(|word| word == name))
    };
    let found = findings.iter().find(|one| rules.contains(&one.rule) && meant(&one.object));
    if let Some(found) = found {
        return format!("found too: {} ({})", found.title, found.rule);
    }
    let judged = || coverage.iter().filter(|one| rules.contains(&one.rule) && meant(&one.object));
    match judged().find(|one| one.state == State::NotJudged) {
        Some(open) => format!("not judged; what would decide: {}", open.capture),
        None if judged().next().is_some() => "judged, and in order by the captures".to_owned(),
        None => format!("nothing was captured that {} judges", rules.join(" or ")),
    }
}
