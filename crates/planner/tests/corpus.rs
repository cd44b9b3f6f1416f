//! The advisor against captures whose right answer is known; see `corpus/README.md`.

use planner::advise::{Advice, advise};
use planner::capture::Captures;
use planner::facts::Facts;
use serde::Deserialize;
use std::path::{Path, PathBuf};

/// So many of the thirty faults must come first.
const FOUND_MIN: usize = 28;
/// So many of the thirty healthy systems must be left alone.
const ALONE_MIN: usize = 28;

/// What must come first.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Expected {
    rule: String,
    object: String,
    #[serde(default)]
    accept: Vec<String>,
    why: String,
}

fn cases(kind: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/corpus").join(kind);
    let mut cases: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    cases.sort();
    cases
}

fn captures(case: &Path) -> Captures {
    let mut files: Vec<PathBuf> =
        case.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    files.retain(|file| {
        file.extension().is_some_and(|end| end == "txt") && !file.ends_with("note.txt")
    });
    files.sort();
    assert!(!files.is_empty(), "{}: no capture", case.display());
    let mut captures = Captures::new();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        captures.read(&name, &std::fs::read(&file).unwrap(), None);
    }
    captures
}

fn name(case: &Path) -> String {
    case.file_name().unwrap().to_string_lossy().into_owned()
}

fn advice(case: &Path) -> Advice {
    let captures = captures(case);
    if std::env::var_os("CORPUS_SHOW").is_some() {
        for refused in &captures.refused {
            println!("{}: refused {refused:?}", name(case));
        }
        for report in &captures.reports {
            for unread in &report.head().unread {
                println!("{}: not understood in `{}`: {unread:?}", name(case), report.command());
            }
        }
    }
    advise(&captures, &Facts::builtin())
}

/// The findings in their order, for the list of misses.
fn shown(advice: &Advice) -> String {
    let findings = advice.findings.iter().map(|finding| {
        format!(
            "    {:?} {} on {}: {}",
            finding.severity, finding.rule, finding.object, finding.title
        )
    });
    let all: Vec<String> = findings.collect();
    if all.is_empty() { "    nothing".to_owned() } else { all.join("\n") }
}

#[test]
fn the_seeded_fault_comes_first() {
    let cases = cases("faults");
    assert_eq!(cases.len(), 30);
    let mut missed = Vec::new();
    for case in &cases {
        let text = std::fs::read_to_string(case.join("expect.toml")).unwrap();
        let expected: Expected = toml::from_str(&text).unwrap();
        assert!(expected.why.len() > 40, "{}: says why", name(case));
        let advice = advice(case);
        let right = advice.findings.first().is_some_and(|first| {
            let rule =
                first.rule == expected.rule || expected.accept.iter().any(|r| r == first.rule);
            rule && first.object.contains(&expected.object)
        });
        if !right {
            println!(
                "missed {}: expected {} on …{}…, found\n{}",
                name(case),
                expected.rule,
                expected.object,
                shown(&advice)
            );
            missed.push(name(case));
        }
    }
    let found = cases.len() - missed.len();
    println!("{found} of {} faults come first", cases.len());
    assert!(found >= FOUND_MIN, "missed: {}", missed.join(", "));
}

#[test]
fn healthy_systems_are_left_alone() {
    let cases = cases("healthy");
    assert_eq!(cases.len(), 30);
    let mut advised = Vec::new();
    for case in &cases {
        assert!(case.join("note.txt").exists(), "{}: says why", name(case));
        let advice = advice(case);
        if !advice.findings.is_empty() {
            println!("advised {}:\n{}", name(case), shown(&advice));
            advised.push(name(case));
        }
    }
    let alone = cases.len() - advised.len();
    println!("{alone} of {} healthy systems are left alone", cases.len());
    assert!(alone >= ALONE_MIN, "advised: {}", advised.join(", "));
}

#[test]
fn every_file_of_the_corpus_has_a_report() {
    for kind in ["faults", "healthy"] {
        for case in cases(kind) {
            let captures = captures(&case);
            for (index, file) in captures.files.iter().enumerate() {
                let read = captures.reports.iter().any(|report| {
                    usize::try_from(report.head().first.file).is_ok_and(|file| file == index)
                });
                assert!(read, "{}/{}: no report was read", name(&case), file.name);
            }
        }
    }
}
