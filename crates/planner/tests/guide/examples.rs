//! The examples of the guide: for each rule lines that make it speak, and nothing that it could do without.
//!
//! They are taken out of the guide as they stand there and judged. `UPDATE_DOCS=1` makes those anew that a rule lacks: out of
//! the captures of a fault, with every line left out without which the rule still speaks.

use super::guide;
use planner::advise::{Kind, Rule, advise, rules};
use planner::capture::Captures;
use planner::facts::Facts;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/guide/planner-examples.md");
const BEGIN: &str = "<!-- examples -->\n";

/// The lines of a file each.
type Files = Vec<Vec<String>>;

/// The rules that captures can make speak, each once.
fn of_captures() -> Vec<&'static Rule> {
    let mut said = BTreeSet::new();
    rules().filter(|rule| rule.on != Kind::Served && said.insert(rule.name)).collect()
}

/// The rules that speak of these files, the first of them first.
fn spoken(files: &Files) -> Vec<&'static str> {
    let mut captures = Captures::new();
    for (name, lines) in ('a'..).zip(files) {
        captures.read(&format!("{name}.txt"), (lines.join("\n") + "\n").as_bytes(), None);
    }
    advise(&captures, &Facts::builtin()).findings.iter().map(|finding| finding.rule).collect()
}

/// The blocks below each rule's name in the guide: its files.
fn examples() -> BTreeMap<String, Files> {
    let text = guide(EXAMPLES);
    let (_, text) = text.split_once(BEGIN).expect("where the examples begin");
    let mut found = BTreeMap::new();
    for section in text.split("\n## `").skip(1) {
        let (name, body) = section.split_once("`\n").expect("a rule's name");
        let mut blocks = body.split("```text\n").skip(1).map(|block| {
            let (lines, _) = block.split_once("\n```").expect("the block's end");
            lines.lines().map(str::to_owned).collect()
        });
        let again = found.insert(name.to_owned(), blocks.by_ref().collect::<Files>());
        assert!(again.is_none(), "{name} stands there once");
    }
    found
}

#[test]
fn the_lines_in_the_guide_make_the_rule_speak() {
    let mut examples = match std::env::var_os("UPDATE_DOCS") {
        Some(_) => write(),
        None => examples(),
    };
    let mut wrong = Vec::new();
    for rule in of_captures() {
        let files = examples.remove(rule.name).unwrap_or_default();
        let said = spoken(&files);
        if said.is_empty() || said.iter().any(|said| *said != rule.name) {
            wrong.push(format!("{}: its lines make speak {said:?}", rule.name));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(examples.is_empty(), "no rules: {:?}", examples.keys());
}

/// Every folder of captures whose fault is known.
fn folders() -> Vec<PathBuf> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let kinds = ["field/faulty", "corpus/faults"].map(|kind| tests.join(kind));
    let entries = kinds.iter().flat_map(|kind| kind.read_dir().unwrap());
    let mut all: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    all.sort();
    all
}

/// The files of a folder, if they can stand in a page.
fn text_of(folder: &Path) -> Option<Files> {
    let mut paths: Vec<PathBuf> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_none_or(|end| end != "toml"));
    paths.sort();
    let lines = |path: &PathBuf| {
        let text = String::from_utf8(std::fs::read(path).unwrap()).ok()?;
        let plain = !text
            .contains(|c: char| c.is_control() && !matches!(c, '\n' | '\t' | '\r') || c == '`');
        plain.then(|| text.lines().map(|line| line.trim_end().to_owned()).collect())
    };
    paths.iter().map(lines).collect()
}

/// The same with every line left out that nothing rests on.
fn reduced(files: Files, holds: impl Fn(&Files) -> bool) -> Files {
    let count = files.len();
    let mut lines: Vec<(usize, String)> = files
        .into_iter()
        .enumerate()
        .flat_map(|(file, lines)| lines.into_iter().map(move |line| (file, line)))
        .collect();
    let apart = |lines: &[(usize, String)]| {
        let mut files = vec![Vec::new(); count];
        lines.iter().for_each(|(file, line)| files[*file].push(line.clone()));
        files.retain(|file| !file.is_empty());
        files
    };
    let mut size = lines.len().div_ceil(2);
    loop {
        let (mut at, before) = (0, lines.len());
        while at < lines.len() {
            let mut fewer = lines.clone();
            fewer.drain(at..lines.len().min(at + size));
            match holds(&apart(&fewer)) {
                true => lines = fewer,
                false => at += size,
            }
        }
        match size {
            1 if lines.len() == before => return apart(&lines),
            1 => {}
            _ => size = size.div_ceil(2),
        }
    }
}

/// Writes the page: what stands there and holds stays.
fn write() -> BTreeMap<String, Files> {
    let mut now = examples();
    now.retain(|name, files| spoken(files).contains(&name.as_str()));
    let lacking = || of_captures().into_iter().filter(|rule| !now.contains_key(rule.name));
    // The shortest capture in which nothing comes before it, or as little as can be.
    let mut best: BTreeMap<&str, (usize, usize, Files)> = BTreeMap::new();
    if lacking().next().is_some() {
        for files in folders().iter().filter_map(|folder| text_of(folder)) {
            let length = files.iter().map(Vec::len).sum();
            for (place, rule) in spoken(&files).into_iter().enumerate() {
                let better = |(before, shorter, _): &(usize, usize, Files)| {
                    (place, length) < (*before, *shorter)
                };
                if best.get(rule).is_none_or(better) {
                    best.insert(rule, (place, length, files.clone()));
                }
            }
        }
    }
    let found: Vec<(String, Files)> = lacking()
        .filter_map(|rule| {
            let (most, _, files) = best.get(rule.name)?.clone();
            let place = |files: &Files| spoken(files).iter().position(|name| *name == rule.name);
            let holds = |files: &Files| place(files).is_some_and(|place| place <= most);
            Some((rule.name.to_owned(), reduced(files, holds)))
        })
        .collect();
    now.extend(found);
    let text = guide(EXAMPLES);
    let (before, _) = text.split_once(BEGIN).expect("where the examples begin");
    let mut page = format!("{before}{BEGIN}");
    for rule in of_captures() {
        let Some(files) = now.get(rule.name) else { continue };
        page += &format!("\n## `{}`\n\n{}.\n", rule.name, rule.about);
        for lines in files {
            page += &format!("\n```text\n{}\n```\n", lines.join("\n"));
        }
    }
    std::fs::write(EXAMPLES, page).unwrap();
    now
}
