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

/// Why a command is not one that an administrator could type as it stands there.
fn wrong(finding: &planner::advise::Finding) -> Option<&'static str> {
    let command = finding.command.as_deref()?;
    let (Some(place), Some(undo)) = (&finding.place, &finding.undo) else {
        return Some("it says neither where to run it nor how to take it back");
    };
    if finding.severity == planner::advise::Severity::Note {
        return Some("a note asks for a change");
    }
    if place.contains("the system of")
        || place.contains(".txt")
        || finding.look_up.iter().any(|what| what.contains("hostname"))
    {
        return Some("nobody knows which host it is for");
    }
    let known = |line: &str| {
        sets(line).into_iter().map(|(device, name, _)| (device, name)).collect::<BTreeSet<_>>()
    };
    for line in command.lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let has = |word: &str| words.contains(&word);
        match words.first().copied() {
            Some("chdev") if has("-dev") => {
                if !place.contains("padmin") || has("-l") || has("-a") || has("-P") || has("-U") {
                    return Some("it is of padmin, and not written so");
                }
            }
            Some("chdev") => {
                if !place.contains("root") || !has("-l") || has("-attr") || has("-perm") {
                    return Some("it is of root, and not written so");
                }
                if !has("-P")
                    && !has("-U")
                    && !finding.rule.starts_with("net-")
                    && !finding.rule.starts_with("sea-")
                {
                    return Some("a device in use is not changed at once");
                }
            }
            Some("chhwres") => {
                if !place.contains("HMC") {
                    return Some("it is of the HMC");
                }
            }
            Some("vfcmap" | "lssp" | "chsp") => {
                if !place.contains("padmin") {
                    return Some("it is of padmin");
                }
            }
            Some("chpath" | "chps") => {}
            _ => return Some("it is none that is known here"),
        }
        if sets(line).iter().any(|(_, _, value)| value.is_empty() || value.contains("UNKNOWN")) {
            return Some("it sets nothing");
        }
    }
    // What is taken back is what was set, and to another value.
    let (set, back) = (
        command.lines().flat_map(known).collect::<BTreeSet<_>>(),
        undo.lines().flat_map(known).collect::<BTreeSet<_>>(),
    );
    if set != back {
        return Some("its undoing is of something else");
    }
    let values = |text: &str| text.lines().flat_map(sets).collect::<BTreeSet<_>>();
    if !set.is_empty() && !values(command).is_disjoint(&values(undo)) {
        return Some("its undoing sets the same value");
    }
    None
}

/// Every command of every rule: for a place, in that place's form, with the value that stands there now to go back to.
#[test]
fn every_command_is_right_for_its_place() {
    let mut bad = Vec::new();
    let mut of_rule: BTreeMap<&str, usize> = BTreeMap::new();
    for case in ["faulty", "healthy"].into_iter().flat_map(cases) {
        for finding in &case.advice().findings {
            if finding.command.is_some() {
                *of_rule.entry(finding.rule).or_default() += 1;
            }
            if let Some(why) = wrong(finding) {
                bad.push(format!(
                    "{}: {}: {why}: {:?} {:?} {:?}",
                    case.name, finding.rule, finding.command, finding.place, finding.undo
                ));
            }
        }
    }
    println!("commands by rule: {of_rule:?}");
    assert!(of_rule.len() >= 12, "{of_rule:?}");
    assert!(bad.is_empty(), "{}", bad.join("\n"));
}
