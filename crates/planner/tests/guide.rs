//! The guide's lists are those of the program: rules, thresholds, readers, and lines that make rules speak.
//!
//! What stands between marks is written by these tests with `UPDATE_DOCS=1`.

#[path = "guide/examples.rs"]
mod examples;

use planner::advise::{Kind, rules};
use planner::capture::{Captures, Report, limits, readers};
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Mutex;

const ADVICE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/planner-advice.md");
const CAPTURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/planner-captures.md");
const THRESHOLDS: &str = include_str!("../src/advise/thresholds.rs");

fn guide(path: &str) -> String {
    std::fs::read_to_string(path).unwrap()
}

/// Holds what a test writes between its marks against the guide.
fn holds(path: &str, mark: &str, written: &str) {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _one = ONE_AT_A_TIME.lock();
    let text = guide(path);
    let (begin, end) = (format!("<!-- {mark} -->\n"), format!("<!-- end of {mark} -->"));
    let (before, rest) = text.split_once(&begin).unwrap_or_else(|| panic!("{begin} in {path}"));
    let (now, after) = rest.split_once(&end).unwrap_or_else(|| panic!("{end} in {path}"));
    if now != written && std::env::var_os("UPDATE_DOCS").is_some() {
        std::fs::write(path, [before, &begin, written, &end, after].concat()).unwrap();
        return;
    }
    assert!(now == written, "{path}: {mark} is stale: run this test with UPDATE_DOCS=1");
}

/// The cells of the rows below a heading, up to the next one.
fn rows(text: &str, heading: &str) -> Vec<Vec<String>> {
    let (_, below) = text.split_once(&format!("\n{heading}\n")).unwrap();
    let lines = below.lines().take_while(|line| !line.starts_with('#'));
    let rows = lines.filter(|line| line.starts_with("| `"));
    rows.map(|row| row.trim_matches('|').split(" | ").map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

fn names(rows: &[Vec<String>]) -> Vec<&str> {
    rows.iter().map(|row| row[0].trim_matches('`')).collect()
}

#[test]
fn every_rule_stands_in_the_guide_with_what_it_speaks_by() {
    let text = guide(ADVICE);
    for (heading, served) in [("## Rules", false), ("### A Trunkline server", true)] {
        let rows = rows(&text, heading);
        let of = || rules().filter(|rule| (rule.on == Kind::Served) == served);
        let known: BTreeSet<&str> = of().map(|rule| rule.name).collect();
        assert_eq!(names(&rows).into_iter().collect::<BTreeSet<_>>(), known);
        assert_eq!(rows.len(), known.len(), "each stands once");
        for row in rows {
            assert_eq!(row.len(), 4, "{row:?}");
            let [_, looks, speaks, source] = &row[..] else { unreachable!() };
            let said = [looks, speaks, source].iter().all(|cell| cell.len() >= 2 && *cell != "–");
            assert!(said, "{row:?}");
        }
    }
}

/// `/// What.` and `pub(super) const NAME: f64 = 0.5;`, pair by pair.
#[test]
fn the_thresholds_in_the_guide_are_those_of_the_program() {
    let mut written = "| threshold | value |\n|---|---|\n".to_owned();
    let (mut about, mut constants) = (String::new(), 0);
    for line in THRESHOLDS.lines() {
        if let Some(text) = line.strip_prefix("/// ") {
            about += if about.is_empty() { "" } else { " " };
            about += text;
            continue;
        }
        let constant = line.split_once("const ").and_then(|(_, rest)| rest.split_once(" = "));
        if let Some((_, value)) = constant.filter(|_| line.starts_with("pub")) {
            constants += 1;
            let value = value.trim_end_matches(';').trim_end_matches(".0").replace('_', "");
            // A table of its own stands for one value.
            if !value.contains('[') {
                written += &format!("| {} | {value} |\n", about.replace('|', "/"));
            }
        }
        about.clear();
    }
    assert!(constants > 50, "{constants}");
    holds(ADVICE, "thresholds", &written);
}

#[test]
fn every_reader_stands_in_the_guide_with_its_layouts_source() {
    let mut written = "| command | layout |\n|---|---|\n".to_owned();
    for reader in readers() {
        assert!(reader.layout.len() > 12, "{reader:?}");
        written += &format!("| `{}` | {} |\n", reader.typed, reader.layout);
    }
    holds(CAPTURES, "layouts", &written);
    let listed = guide(CAPTURES);
    let (_, listed) = listed.split_once("## What to run").unwrap();
    let (listed, _) = listed.split_once("## How to save them").unwrap();
    for reader in readers() {
        assert!(listed.contains(reader.command), "{} is not among what to run", reader.command);
    }
}

#[test]
fn the_limits_in_the_guide_are_those_of_the_program() {
    let text = guide(CAPTURES);
    let mib = |bytes: usize| format!("{} MiB", bytes >> 20);
    let [free, most] = [limits::UNPACKED_FREE, limits::UNPACKED_MAX].map(mib);
    let times = limits::UNPACKED_TIMES;
    let each = |bytes: usize| format!("one for each {bytes} bytes");
    for (of, limit) in [
        (
            "what comes out of one file of gzip",
            format!("{times} times its size; {free} are always read, and {most} at most"),
        ),
        ("files of gzip in a file of gzip", format!("{} of them", limits::LAYERS_MAX)),
        ("reports of one file, with passages of other text", limits::ENTRIES_PER_FILE.to_string()),
        ("the same of a longer file", each(limits::BYTES_PER_ENTRY)),
        ("the same of all files together", limits::ENTRIES.to_string()),
        ("lines of the reports of one file", limits::LINES_PER_FILE.to_string()),
        ("lines of the reports of a longer file", each(limits::BYTES_PER_LINE)),
        ("lines of the reports of all files together", limits::LINES.to_string()),
    ] {
        let row = format!("| {of} | {limit} |");
        assert!(text.contains(&row), "{row}");
    }
}

/// The fixtures are the seeds of the fuzz targets too: each reader has one that it reads.
#[test]
fn every_reader_has_a_fixture_that_it_reads() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers");
    let mut kinds = BTreeSet::new();
    for entry in folder.read_dir().unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|end| end != "txt") {
            continue;
        }
        let mut captures = Captures::new();
        captures.read("a", &std::fs::read(&path).unwrap(), None);
        kinds.extend(captures.reports.iter().map(Report::command));
    }
    for reader in readers() {
        let one = |kind: &str| kind.split(' ').next() == reader.typed.split(' ').next();
        let named = kinds.iter().any(|kind| one(kind) || kind.starts_with(reader.command));
        let said = matches!(reader.typed, "prtconf" | "uptime" | "nmon -f");
        assert!(named || said, "{reader:?}: {kinds:?}");
    }
}

/// The fuzz target types each reader's command and lets it read what follows: for every one of them there is something
/// that it makes a report of.
#[test]
fn every_reader_is_reached_as_the_fuzz_target_reaches_it() {
    let target = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fuzz/fuzz_targets/planner_reader.rs");
    let source = guide(target);
    assert!(source.contains("readers().nth(usize::from(*first) % readers().count())"), "{source}");
    assert!(source.contains("vios1:/home/padmin> {}\\n\", reader.typed"), "{source}");
    assert!(readers().count() <= 256, "a byte chooses");
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers");
    let fixtures = folder.read_dir().unwrap().map(|entry| entry.unwrap().path());
    let fixtures = fixtures.filter(|path| path.extension().is_some_and(|end| end == "txt"));
    // With what was typed before it, and without.
    let mut printed: Vec<Vec<u8>> = Vec::new();
    for path in fixtures {
        let whole = std::fs::read(path).unwrap();
        let end = whole.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        printed.extend([whole[end..].to_vec(), whole]);
    }
    printed.extend([
        b"System Model: IBM,9009-42A\nMachine Serial Number: 78A1B2C\n".to_vec(),
        b"  10:15AM   up 109 days,  3:12,  1 user,  load average: 1.10, 1.22, 1.31\n".to_vec(),
        b"AAA,progname,topas_nmon\nAAA,host,vios1\nZZZZ,T0001,10:00:00,02-NOV-2026\n".to_vec(),
        b"32\n".to_vec(),
        b"20...2048 (+1)\n".to_vec(),
    ]);
    let reached = |reader: &&planner::capture::Reader, text: &Vec<u8>| {
        let typed = format!("vios1:/home/padmin> {}\n", reader.typed);
        let mut captures = Captures::new();
        captures.read("fuzz", &[typed.as_bytes(), text].concat(), None);
        captures.reports.iter().any(|report| match reader.typed {
            // Files, which are known by what stands in them.
            "nmon -f" => report.nmon().is_some(),
            "part -i 30" => report.part().is_some(),
            typed => report.head().command.as_ref().is_some_and(|read| read.value == typed),
        })
    };
    let missing: Vec<&str> = readers()
        .filter(|reader| !printed.iter().any(|text| reached(reader, text)))
        .map(|reader| reader.typed)
        .collect();
    assert!(missing.is_empty(), "nothing is read as the report of: {}", missing.join(", "));
}
