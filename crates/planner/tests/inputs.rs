//! Every command that administrators have is of use: without its reports other findings or another coverage come out.

mod common;

use common::captures_of;
use planner::advise::{Advice, advise};
use planner::capture::{Captures, Report};
use planner::facts::Facts;
use std::path::{Path, PathBuf};

/// An input, the reports that are its, and what changes at least when they are missing.
type Input = (&'static str, fn(&Report) -> bool, Feeds);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Feeds {
    /// What is not judged, or which system it is.
    Coverage,
    /// What is found.
    Findings,
}

/// Whether the report's command has these words.
fn typed(report: &Report, words: &str) -> bool {
    let command = report.head().command.as_ref().map_or("", |read| read.value.as_str());
    words.split(' ').all(|word| {
        command.split(|c: char| c.is_whitespace() || c == ';').any(|typed| typed == word)
    })
}

fn of_disk(report: &Report) -> bool {
    let disk = |name: &str| name.starts_with("hdisk");
    matches!(report, Report::Lsattr(_))
        && report.head().device.as_ref().is_some_and(|device| disk(&device.value))
}

const INPUTS: &[Input] = &[
    (
        "lspath",
        |report| matches!(report, Report::DiskPaths(_)) && typed(report, "lspath"),
        Feeds::Findings,
    ),
    (
        "lsmpio",
        |report| matches!(report, Report::DiskPaths(_)) && typed(report, "lsmpio"),
        Feeds::Findings,
    ),
    (
        "pcmpath",
        |report| matches!(report, Report::DiskPaths(_)) && typed(report, "pcmpath"),
        Feeds::Findings,
    ),
    ("errpt -a", |report| report.errpt().is_some() && typed(report, "-a"), Feeds::Findings),
    ("errpt", |report| report.errpt().is_some() && !typed(report, "-a"), Feeds::Findings),
    ("fcstat -l", |report| report.fc_latency().is_some(), Feeds::Findings),
    ("lsattr of disks", of_disk, Feeds::Findings),
    (
        "netstat -v",
        |report| report.entstat().is_some() && typed(report, "netstat"),
        Feeds::Findings,
    ),
    ("seastat", |report| report.seastat().is_some(), Feeds::Coverage),
    ("lsmap -vnic", |report| report.lsmap_vnic().is_some(), Feeds::Findings),
    ("vmstat", |report| report.vmstat().is_some(), Feeds::Findings),
    ("svmon -G", |report| report.svmon().is_some(), Feeds::Findings),
    (
        "lparstat",
        |report| report.lparstat().is_some_and(|report| report.info.is_empty()),
        Feeds::Findings,
    ),
    (
        "lparstat -i",
        |report| report.lparstat().is_some_and(|report| !report.info.is_empty()),
        Feeds::Findings,
    ),
    ("nmon", |report| report.nmon().is_some(), Feeds::Findings),
    ("lshwres", |report| report.hmc_list().is_some() && typed(report, "lshwres"), Feeds::Findings),
    (
        "lssyscfg",
        |report| report.hmc_list().is_some() && typed(report, "lssyscfg"),
        Feeds::Findings,
    ),
    ("part", |report| report.part().is_some(), Feeds::Coverage),
    ("uname -L", |report| report.host().is_some() && typed(report, "uname"), Feeds::Findings),
    ("lscfg -vpl", |report| report.lscfg().is_some(), Feeds::Coverage),
];

fn folders() -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let kinds = ["field/faulty", "field/healthy", "corpus/faults", "corpus/healthy"];
    let mut all: Vec<PathBuf> = kinds
        .iter()
        .flat_map(|kind| tests.join(kind).read_dir().unwrap())
        .map(|entry| entry.unwrap().path())
        .collect();
    all.sort();
    all
}

fn found(advice: &Advice) -> Vec<String> {
    let one = |finding: &planner::advise::Finding| {
        let because = finding.reasoning.join(" ");
        format!(
            "{} {} {} {because} {:?}",
            finding.rule, finding.object, finding.title, finding.command
        )
    };
    advice.findings.iter().map(one).collect()
}

/// What is missing without these reports.
fn without(captures: &Captures, whole: &Advice, is: fn(&Report) -> bool) -> Option<Feeds> {
    let mut less = captures.clone();
    less.reports.retain(|report| !is(report));
    if less.reports.len() == captures.reports.len() {
        return None;
    }
    let advice = advise(&less, &Facts::builtin());
    if found(&advice) != found(whole) {
        return Some(Feeds::Findings);
    }
    let same = advice.coverage == whole.coverage
        && advice.compared == whole.compared
        && advice.map == whole.map;
    (!same).then_some(Feeds::Coverage)
}

#[test]
fn every_input_feeds_a_rule_or_the_coverage() {
    let mut best: Vec<Option<(Feeds, String)>> = vec![None; INPUTS.len()];
    for folder in folders() {
        let captures = captures_of(&folder);
        let mut whole = None;
        for ((_, is, _), best) in INPUTS.iter().zip(&mut best) {
            if matches!(best, Some((Feeds::Findings, _))) || !captures.reports.iter().any(is) {
                continue;
            }
            let whole = whole.get_or_insert_with(|| advise(&captures, &Facts::builtin()));
            let feeds = without(&captures, whole, *is);
            if let Some(feeds) =
                feeds.filter(|feeds| best.as_ref().is_none_or(|(now, _)| feeds > now))
            {
                *best = Some((feeds, folder.file_name().unwrap().to_string_lossy().into_owned()));
            }
        }
    }
    let mut idle = Vec::new();
    for ((name, _, least), best) in INPUTS.iter().zip(best) {
        println!("{name}: {best:?}");
        if best.is_none_or(|(feeds, _)| feeds < *least) {
            idle.push(*name);
        }
    }
    assert!(idle.is_empty(), "of less use than promised: {}", idle.join(", "));
}
