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

/// A section that is a table, if it has rows; of a long one a terminal gets the beginning.
pub(super) fn listed(section: &Section, table: Table) -> Vec<Section> {
    let rest = table.rows.len().saturating_sub(LISTED);
    match (table.rows.is_empty(), rest) {
        (true, _) => Vec::new(),
        (false, 0) => vec![section.clone().block(Block::Table(table))],
        _ => {
            let mut first = table.clone();
            first.rows.truncate(LISTED);
            first.targets.truncate(LISTED);
            in_both_forms(section, Block::Table(first), rest, Block::Table(table))
        }
    }
}

/// The same of a section that is a list.
pub(super) fn items(section: &Section, list: Vec<String>) -> Vec<Section> {
    let rest = list.len().saturating_sub(LISTED);
    match (list.is_empty(), rest) {
        (true, _) => Vec::new(),
        (false, 0) => vec![section.clone().block(Block::List(list))],
        _ => {
            let first = list.iter().take(LISTED).cloned().collect();
            in_both_forms(section, Block::List(first), rest, Block::List(list))
        }
    }
}

fn in_both_forms(section: &Section, first: Block, rest: usize, all: Block) -> Vec<Section> {
    let brief = section
        .clone()
        .block(first)
        .paragraph(format!("{rest} more: --explain, the page and Markdown have all."));
    vec![brief.only(Detail::Brief), section.clone().block(all).only(Detail::Full)]
}
