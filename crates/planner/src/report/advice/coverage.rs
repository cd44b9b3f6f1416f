//! What was judged and what was not, object by object: the end of every answer.

use std::collections::BTreeMap;

use super::{Section, Table, Tone};
use crate::advise::{Advice, Judged, Kind, State};
use crate::report::{Block, Detail};

/// Judgements that lack a capture.
pub(super) fn open(advice: &Advice) -> usize {
    advice.coverage.iter().filter(|judged| judged.state == State::NotJudged).count()
}

/// One row for each object; with every rule where there is room.
pub(super) fn sections(advice: &Advice) -> Vec<Section> {
    if advice.coverage.is_empty() {
        return Vec::new();
    }
    vec![brief(advice).only(Detail::Brief), full(advice).only(Detail::Full)]
}

fn brief(advice: &Advice) -> Section {
    // One row for what is judged as two kinds: a shared Ethernet adapter is an adapter, too.
    let mut kinds: BTreeMap<&str, Kind> = BTreeMap::new();
    for judged in &advice.coverage {
        let kind = kinds.entry(&judged.object).or_insert(judged.kind);
        *kind = judged.kind.min(*kind);
    }
    let mut objects: BTreeMap<(Kind, &str), Vec<&Judged>> = BTreeMap::new();
    for judged in &advice.coverage {
        let kind = kinds.get(judged.object.as_str()).copied().unwrap_or(judged.kind);
        objects.entry((kind, &judged.object)).or_default().push(judged);
    }
    let mut table =
        Table::new("", &["object", "state", "not judged, because", "what would decide"]);
    for ((_, object), all) in objects {
        let open: Vec<&&Judged> =
            all.iter().filter(|judged| judged.state == State::NotJudged).collect();
        let found: Vec<&str> = all
            .iter()
            .filter(|judged| judged.state == State::Finding)
            .map(|judged| judged.rule)
            .collect();
        let state = match (found.is_empty(), open.len()) {
            (false, _) => format!("finding: {}", found.join(", ")),
            (true, 0) => "healthy".to_owned(),
            (true, open) if open == all.len() => "not judged".to_owned(),
            (true, open) => format!("in order; {open} of {} not judged", all.len()),
        };
        let mut whys: Vec<&str> = Vec::new();
        let mut captures: Vec<&str> = Vec::new();
        for judged in open {
            for (list, text) in
                [(&mut whys, judged.why.as_str()), (&mut captures, judged.capture.as_str())]
            {
                if !list.contains(&text) {
                    list.push(text);
                }
            }
        }
        table.row([object.to_owned(), state, whys.join("; "), captures.join("; ")]);
    }
    Section::new("Coverage", Tone::Plain).block(Block::Table(table))
}

fn full(advice: &Advice) -> Section {
    let mut section = Section::new("Coverage", Tone::Plain)
        .paragraph("Every rule that applies, on every object that was captured.");
    let mut kinds: BTreeMap<Kind, Vec<&Judged>> = BTreeMap::new();
    for judged in &advice.coverage {
        kinds.entry(judged.kind).or_default().push(judged);
    }
    for (kind, all) in kinds {
        let columns = ["object", "state", "rules", "because", "what would decide"];
        let mut table = Table::new(kind.words(), &columns);
        // What is the same of several rules stands once.
        let mut rows: Vec<(&Judged, Vec<&str>)> = Vec::new();
        for judged in all {
            let same = |one: &Judged| {
                (one.state, &one.why, &one.capture) == (judged.state, &judged.why, &judged.capture)
            };
            let mut of_object =
                rows.iter().rev().take_while(|(one, _)| one.object == judged.object);
            let at = of_object.position(|(one, _)| same(one)).map(|at| rows.len() - 1 - at);
            match at.and_then(|at| rows.get_mut(at)) {
                Some((_, rules)) => rules.push(judged.rule),
                None => rows.push((judged, vec![judged.rule])),
            }
        }
        for (judged, rules) in rows {
            let state = match judged.state {
                State::Finding => "finding",
                State::NotJudged => "not judged",
                State::Healthy => "healthy",
            };
            let rules = rules.join(", ");
            table.row([judged.object.as_str(), state, &rules, &judged.why, &judged.capture]);
        }
        section = section.block(Block::Table(table));
    }
    section
}
