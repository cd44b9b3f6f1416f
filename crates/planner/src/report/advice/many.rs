//! Many findings of one rule: a terminal gets the first in full, and the rest counted.

use std::collections::BTreeMap;

use super::{Section, Table, Tone, counted};
use crate::advise::Advice;
use crate::report::{Block, Detail};

/// So many findings of a rule are told in full: who mends that many of one kind knows what the next ones say.
const IN_FULL: usize = 20;
/// So many systems are named of each rule.
const SYSTEMS_NAMED: usize = 6;

/// For each finding whether a terminal gets it in full.
pub(super) fn in_full(advice: &Advice) -> Vec<bool> {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    let mut is_first = |rule: &'static str| {
        let count = seen.entry(rule).or_default();
        *count += 1;
        *count <= IN_FULL
    };
    advice.findings.iter().map(|finding| is_first(finding.rule)).collect()
}

/// The rest, by rule and system.
pub(super) fn more(advice: &Advice, in_full: &[bool]) -> Section {
    let mut rules: BTreeMap<&str, BTreeMap<&str, usize>> = BTreeMap::new();
    let rest = advice.findings.iter().zip(in_full).filter(|(_, in_full)| !**in_full);
    for (finding, _) in rest {
        *rules.entry(finding.rule).or_default().entry(&finding.system).or_default() += 1;
    }
    let mut table = Table::new("", &["rule", "#more findings", "on"]);
    for (rule, systems) in rules {
        let mut most: Vec<(&str, usize)> = systems.into_iter().collect();
        most.sort_by_key(|(name, count)| (usize::MAX - count, *name));
        let named =
            most.iter().take(SYSTEMS_NAMED).map(|(name, count)| format!("{name} ({count})"));
        let mut on = named.collect::<Vec<_>>().join(", ");
        if most.len() > SYSTEMS_NAMED {
            let others = counted(most.len() - SYSTEMS_NAMED, "other system", "other systems");
            on = format!("{on} and {others}");
        }
        let all: usize = most.iter().map(|(_, count)| count).sum();
        table.row([rule.to_owned(), all.to_string(), on]);
    }
    Section::new("More of the same", Tone::Plain)
        .paragraph(format!("Of each rule the first {IN_FULL} findings are told above. --explain, the page, Markdown and JSON have all."))
        .block(Block::Table(table))
}

/// So many rows of a list are printed on a terminal.
const LISTED: usize = 40;

/// A section that is a table, if it has rows.
pub(super) fn listed(section: &Section, table: &Table) -> Vec<Section> {
    begun(section, table.rows.len(), |count| {
        let mut first = table.clone();
        first.rows.truncate(count);
        first.targets.truncate(count);
        Block::Table(first)
    })
}

/// A section that is a list, if something is in it.
pub(super) fn items(section: &Section, list: &[String]) -> Vec<Section> {
    begun(section, list.len(), |count| Block::List(list[..count].to_vec()))
}

/// A section with so many rows, if there are any; of a long one a terminal gets the beginning.
fn begun(section: &Section, count: usize, rows: impl Fn(usize) -> Block) -> Vec<Section> {
    let whole = || section.clone().block(rows(count));
    match count {
        0 => Vec::new(),
        1..=LISTED => vec![whole()],
        _ => {
            let rest =
                format!("{} more: --explain, the page and Markdown have all.", count - LISTED);
            let brief = section.clone().block(rows(LISTED)).paragraph(rest);
            vec![brief.only(Detail::Brief), whole().only(Detail::Full)]
        }
    }
}
