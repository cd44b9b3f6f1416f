//! Every system that is kept here, of both corpora: the order of its files says nothing, and neither do the systems that
//! lie in the same folder.

use super::{is_tried, told};
use planner::advise::advise;
use planner::capture::{Captures, Taken};
use planner::facts::Facts;
use planner::model::Model;
use std::collections::BTreeSet;
use std::path::Path;

/// A system's name and its files.
struct Case {
    name: String,
    files: Vec<(String, Vec<u8>)>,
}

fn everything() -> Vec<Case> {
    let tests = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests");
    let mut all = Vec::new();
    for kind in ["field/faulty", "field/healthy", "corpus/faults", "corpus/healthy"] {
        for folder in tests.join(kind).read_dir().unwrap() {
            let folder = folder.unwrap().path();
            let name = format!("{kind}/{}", folder.file_name().unwrap().to_string_lossy());
            let mut files = Vec::new();
            for file in folder.read_dir().unwrap() {
                let path = file.unwrap().path();
                let file = path.file_name().unwrap().to_string_lossy().into_owned();
                if !file.ends_with(".toml") && file != "note.txt" {
                    files.push((format!("{name}/{file}"), std::fs::read(&path).unwrap()));
                }
            }
            files.sort();
            all.push(Case { name, files });
        }
    }
    all.sort_by(|one, two| one.name.cmp(&two.name));
    all
}

fn told_of<'a>(files: impl Iterator<Item = &'a (String, Vec<u8>)>) -> Vec<String> {
    told(files.map(|(name, bytes)| (name.clone(), bytes.as_slice())))
}

/// Up to so many orders of one system's files are tried.
const ORDERS: usize = 24;

/// All orders of so many things, or as many as are tried, spread over them.
fn orders(count: usize) -> Vec<Vec<usize>> {
    let all: usize = (1..=count).product();
    let step = (all / ORDERS).max(1);
    // The n-th order, digit by digit to the base of what is left.
    let nth = |mut number: usize| {
        let mut left: Vec<usize> = (0..count).collect();
        let mut order = Vec::new();
        while !left.is_empty() {
            order.push(left.remove(number % left.len()));
            number /= left.len() + 1;
        }
        order
    };
    (0..all).step_by(step).map(nth).collect()
}

/// What is told, without the names of files, which stand for systems without a name.
fn without_names(told: &[String]) -> Vec<String> {
    let plain = |line: &String| match line.split_once(" on the ") {
        Some((rule, rest)) => {
            format!("{rule}: {}", rest.split_once(": ").map_or("", |(_, title)| title))
        }
        None => line.clone(),
    };
    let mut all: Vec<String> = told.iter().map(plain).collect();
    all.sort();
    all
}

fn told_without_names(captures: &Captures) -> Vec<String> {
    let advice = advise(captures, &Facts::builtin());
    let told = advice.findings.iter().map(|finding| {
        let command = finding.command.as_deref().unwrap_or("-");
        format!("{} on {}: {} [{command}]", finding.rule, finding.object, finding.title)
    });
    without_names(&told.collect::<Vec<_>>())
}

#[test]
fn every_order_of_a_systems_files_says_the_same() {
    let (mut tried, mut copied, mut differ) = (0, 0, Vec::new());
    for case in everything() {
        let as_is = told_of(case.files.iter());
        let orders = orders(case.files.len()).into_iter().enumerate().skip(1);
        for (_, order) in orders.filter(|(number, _)| is_tried(number + case.name.len())) {
            tried += 1;
            let other = told_of(order.iter().map(|at| &case.files[*at]));
            if other != as_is {
                println!("{} by {order:?}: {other:#?}, as it is {as_is:#?}", case.name);
                differ.push(case.name.clone());
            }
        }
        // Copies have the times and names of their copying, which say nothing where the captures say it themselves.
        if case.files.len() == 1 {
            continue;
        }
        for backwards in [false, true] {
            let count = case.files.len();
            let at = |place: usize| if backwards { count - 1 - place } else { place };
            let mut captures = Captures::new();
            for place in 0..count {
                let (_, bytes) = &case.files[at(place)];
                let time = Taken::utc(1_700_000_000 + 3 * u64::try_from(place).unwrap());
                captures.read(&format!("{place}.txt"), bytes, Some(time));
            }
            let other = told_without_names(&captures);
            if other != without_names(&as_is) {
                println!(
                    "{} copied, backwards {backwards}: {other:#?}, as it is {as_is:#?}",
                    case.name
                );
                differ.push(case.name.clone());
            }
            copied += 1;
        }
    }
    println!("{tried} orders, {copied} copies");
    assert!(copied > 400, "{copied}");
    assert!(tried > 150, "{tried}");
    differ.dedup();
    assert!(differ.is_empty(), "other findings: {}", differ.join(", "));
}

/// The names and numbers that identify the systems of some captures.
fn identities(case: &Case) -> BTreeSet<String> {
    let mut captures = Captures::new();
    for (name, bytes) in &case.files {
        captures.read(name, bytes, None);
    }
    let model = Model::of(&captures);
    let mut all = BTreeSet::new();
    for system in &model.systems {
        all.extend([&system.host, &system.partition, &system.alias].into_iter().flatten().cloned());
        all.extend(system.wwpns.values().cloned());
        all.extend(
            system
                .machine
                .iter()
                .map(|machine| machine.rsplit('*').next().unwrap_or_default().to_owned()),
        );
    }
    all
}

/// Folders as large as they can be: in none of them two systems share a name or a number by which they would be one.
fn folders(all: Vec<Case>) -> Vec<Vec<Case>> {
    let mut folders: Vec<(BTreeSet<String>, Vec<Case>)> = Vec::new();
    for case in all {
        let own = identities(&case);
        match folders.iter_mut().find(|(taken, _)| taken.is_disjoint(&own)) {
            Some((taken, cases)) => {
                taken.extend(own);
                cases.push(case);
            }
            None => folders.push((own, vec![case])),
        }
    }
    folders.into_iter().map(|(_, cases)| cases).collect()
}

#[test]
fn all_systems_in_one_folder_say_what_each_says_alone() {
    let folders = folders(everything());
    let sizes: Vec<usize> = folders.iter().map(Vec::len).collect();
    println!("folders of {sizes:?} systems");
    assert!(sizes[0] > 200, "{sizes:?}");
    let mut differ = Vec::new();
    for (folder, cases) in folders.iter().enumerate() {
        let mut apart: Vec<String> =
            cases.iter().flat_map(|case| told_of(case.files.iter())).collect();
        apart.sort();
        let together = told_of(cases.iter().flat_map(|case| &case.files));
        let only = |these: &[String], those: &[String], word: &str| {
            let left: Vec<String> =
                these.iter().filter(|line| !those.contains(line)).cloned().collect();
            left.into_iter()
                .map(|line| format!("folder {folder}, only {word}: {line}"))
                .collect::<Vec<_>>()
        };
        differ.extend(only(&together, &apart, "together"));
        differ.extend(only(&apart, &together, "apart"));
        if together.len() != apart.len() {
            differ.push(format!(
                "folder {folder}: {} together, {} apart",
                together.len(),
                apart.len()
            ));
        }
    }
    assert!(differ.is_empty(), "{}", differ.join("\n"));
}
