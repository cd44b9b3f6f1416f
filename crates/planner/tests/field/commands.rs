//! What the commands of one answer are to each other.

use super::cases;
use std::collections::{BTreeMap, BTreeSet};

/// Systems that are told two values for one attribute today. Names may only go; the aim is none.
const TWICE_TODAY: &[&str] = &[];

/// The device and the attributes with their values that a `chdev` sets.
fn sets(line: &str) -> Vec<(String, String, String)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let behind = |flags: [&'static str; 2]| {
        let pairs = words.windows(2).filter(move |pair| flags.contains(&pair[0]));
        pairs.map(|pair| pair[1]).collect::<Vec<_>>()
    };
    if words.first() != Some(&"chdev") {
        return Vec::new();
    }
    let device = behind(["-dev", "-l"])[0];
    let values = behind(["-attr", "-a"]).into_iter().filter_map(|set| set.split_once('='));
    values.map(|(name, value)| (device.to_owned(), name.to_owned(), value.to_owned())).collect()
}

#[test]
fn an_attribute_is_given_one_value() {
    let mut bad = Vec::new();
    let mut set = 0;
    for case in ["faulty", "healthy"].into_iter().flat_map(cases) {
        let mut values: BTreeMap<_, BTreeSet<String>> = BTreeMap::new();
        for finding in &case.advice().findings {
            for line in finding.command.iter().flat_map(|command| command.lines()) {
                for (device, name, value) in sets(line) {
                    let system = finding.system.clone();
                    values.entry((system, device, name)).or_default().insert(value);
                    set += 1;
                }
            }
        }
        values.retain(|_, values| values.len() > 1);
        if !values.is_empty() {
            println!("{}: {values:?}", case.name);
            bad.push(case.name);
        }
    }
    assert!(set > 30, "{set}");
    bad.retain(|name| !TWICE_TODAY.contains(&name.as_str()));
    assert!(bad.is_empty(), "two values for one attribute: {}", bad.join(", "));
}
