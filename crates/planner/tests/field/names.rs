//! Names that would act in a shell or on a page: they are no names, and stand in nothing that is to be typed.

use super::{Case, all_cases, files};
use planner::advise::advise;
use planner::capture::{Captures, Report};
use planner::facts::Facts;
use std::collections::BTreeSet;

const HOSTILE: [&str; 6] =
    [";reboot;", "$(reboot)", "`reboot`", "'reboot'", "\"|reboot", "<script>reboot</script>"];

fn read(case: &Case, change: impl Fn(&str) -> String) -> Captures {
    let mut captures = Captures::new();
    for (name, bytes) in files(case) {
        captures.read(&name, change(&String::from_utf8_lossy(bytes)).as_bytes(), None);
    }
    captures
}

/// Nothing that is to be typed would act. (That pages and terminals show what is there, `tests/report.rs` holds.)
fn assert_harmless(captures: &Captures, hostile: &str, what: &str) {
    let advice = advise(captures, &Facts::builtin());
    for finding in &advice.findings {
        let typed = [&finding.command, &finding.undo, &finding.place].into_iter().flatten();
        for text in typed.chain(&finding.look_up).chain([&finding.system]) {
            assert!(!text.contains(hostile), "{what}: {} prints {text:?}", finding.rule);
        }
        for text in [&finding.command, &finding.undo].into_iter().flatten() {
            assert!(!text.contains("reboot"), "{what}: {} prints {text:?}", finding.rule);
        }
    }
    let not = advice.not_checked.iter().map(|not| &not.capture);
    for text in not.chain(advice.coverage.iter().map(|row| &row.capture)) {
        assert!(!text.contains(hostile), "{what}: not judged: {text:?}");
    }
}

/// Replaces words that stand alone.
fn replaced(text: &str, word: &str, by: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    let inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
    while let Some(at) = rest.find(word) {
        let (before, after) = (&rest[..at], &rest[at + word.len()..]);
        out.push_str(before);
        let alone = !out.ends_with(inside) && !after.starts_with(inside);
        out.push_str(if alone { by } else { word });
        rest = after;
    }
    out + rest
}

#[test]
fn a_hostile_name_of_a_host_is_no_name() {
    let mut said = 0;
    for (case, hostile) in all_cases().iter().zip(HOSTILE.iter().cycle()) {
        let plain = read(case, str::to_owned);
        let names = plain.reports.iter().filter_map(|report| report.head().partition.as_ref());
        let names: BTreeSet<&str> = names.map(|read| read.value.as_str()).collect();
        for at in [0, 3] {
            let change = |text: &str| {
                names.iter().fold(text.to_owned(), |text, name| {
                    let at = at.min(name.len());
                    replaced(&text, name, &format!("{}{hostile}{}", &name[..at], &name[at..]))
                })
            };
            let captures = read(case, change);
            let what = format!("{} with {hostile}", case.name);
            assert_harmless(&captures, hostile, &what);
            let notes = || captures.files.iter().flat_map(|file| &file.notes);
            said += usize::from(notes().any(|note| note.contains("is no host's name")));
        }
    }
    assert!(said > 100, "said of {said} systems");
}

#[test]
fn a_hostile_name_of_a_device_stands_in_no_command() {
    for (case, hostile) in all_cases().iter().zip(HOSTILE.iter().cycle()) {
        let change = |text: &str| {
            let devices = ["fcs", "hdisk", "ent", "vfchost", "vhost", "vtscsi", "fscsi", "rootvg"];
            devices.iter().fold(text.to_owned(), |text, kind| {
                (0..10).fold(text, |text, number| {
                    let name = format!("{kind}{number}");
                    replaced(&text, &name, &format!("{name}{hostile}"))
                })
            })
        };
        let captures = read(case, change);
        assert_harmless(&captures, hostile, &format!("{} with {hostile}", case.name));
    }
}

#[test]
fn what_a_host_can_be_called() {
    let named = |name: &str| {
        let text = format!("{name}:/> oslevel -s\n7200-05-06-2320\n");
        let printed = format!("$ hostname\n{name}\n$ oslevel -s\n7200-05-06-2320\n");
        [text, printed].map(|text| {
            let mut captures = Captures::new();
            captures.read("a", text.as_bytes(), None);
            let level =
                captures.reports.iter().find(|report| report.level().is_some()).map(Report::head);
            let name = level.and_then(|head| head.partition.clone()).map(|read| read.value);
            (name, captures.files[0].notes.len())
        })
    };
    for good in ["payroll", "sap_prod", "vios1.example.com", "3com", "a-b"] {
        assert_eq!(named(good), [(Some(good.to_owned()), 0), (Some(good.to_owned()), 0)]);
    }
    let mut captures = Captures::new();
    captures.read("a", b"(0)root @ root: /\n# oslevel -s\n7200-05-06-2320\nroot@root:/# oslevel -s\n7200-05-06-2320\n", None);
    assert!(
        captures.reports.iter().all(|one| one
            .head()
            .partition
            .as_ref()
            .is_some_and(|name| name.value == "root"))
    );
    for bad in ["pay;roll", "pay$(roll)", "-payroll", "pay..roll", &"a".repeat(64)] {
        let [(prompt, _), (printed, notes)] = named(bad);
        assert_eq!((prompt, printed, notes), (None, None, 1), "{bad}");
    }
}
