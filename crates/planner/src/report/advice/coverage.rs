//! What was judged and what was not, object by object: the end of every answer.

use std::collections::BTreeMap;

use super::{Section, Table, Tone};
use crate::advise::{Advice, Judged, Kind, State};
use crate::report::{Block, Detail};

/// Judgements that lack a capture.
pub(super) fn open(advice: &Advice) -> usize {
    advice.coverage.iter().filter(|judged| judged.state == State::NotJudged).count()
}

/// Of more objects than this a terminal gets one row for each system.
const OBJECTS_LISTED: usize = 16;

/// So many commands are named that would decide most of what a system leaves open.
const COMMANDS_NAMED: usize = 3;

/// One row for each object, or of many objects for each system; with every rule where there is room.
pub(super) fn sections(advice: &Advice, every_object: bool) -> Vec<Section> {
    if advice.coverage.is_empty() {
        return Vec::new();
    }
    let objects = objects(advice);
    let brief = match every_object || objects.len() <= OBJECTS_LISTED {
        true => by_object(&objects),
        false => by_system(&objects),
    };
    vec![brief.only(Detail::Brief), full(advice).only(Detail::Full)]
}

/// What became of every rule on one object.
struct OfObject<'a> {
    name: &'a str,
    system: &'a str,
    all: Vec<&'a Judged>,
}

impl<'a> OfObject<'a> {
    fn of(&self, state: State) -> impl Iterator<Item = &'a Judged> {
        self.all.iter().copied().filter(move |judged| judged.state == state)
    }
}

/// The objects in their order: one for what is judged as two kinds, as a shared Ethernet adapter is an adapter, too.
fn objects(advice: &Advice) -> Vec<OfObject<'_>> {
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
    let objects = objects.into_iter().map(|((_, name), all)| OfObject {
        name,
        system: all.first().map_or("", |judged| judged.system.as_str()),
        all,
    });
    objects.collect()
}

fn by_object(objects: &[OfObject<'_>]) -> Section {
    let mut table =
        Table::new("", &["object", "state", "not judged, because", "what would decide"]);
    for object in objects {
        let open: Vec<&Judged> = object.of(State::NotJudged).collect();
        let found = object.of(State::Finding).map(|judged| match judged.why.is_empty() {
            true => judged.rule.to_owned(),
            false => format!("{} ({})", judged.rule, judged.why),
        });
        let found: Vec<String> = found.collect();
        let state = match (found.is_empty(), open.len()) {
            (false, _) => format!("finding: {}", found.join(", ")),
            (true, 0) => "healthy".to_owned(),
            (true, open) if open == object.all.len() => "not judged".to_owned(),
            (true, open) => format!("in order; {open} of {} not judged", object.all.len()),
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
        table.row([object.name.to_owned(), state, whys.join("; "), captures.join("; ")]);
    }
    Section::new("Coverage", Tone::Plain).block(Block::Table(table))
}

/// How many objects of each system are in which state, the system with most findings first.
fn by_system(objects: &[OfObject<'_>]) -> Section {
    let mut systems: BTreeMap<&str, Vec<&OfObject<'_>>> = BTreeMap::new();
    for object in objects {
        systems.entry(object.system).or_default().push(object);
    }
    let has = |object: &OfObject<'_>, state| object.of(state).next().is_some();
    let mut rows: Vec<([usize; 4], &str, String)> = Vec::new();
    for (system, objects) in systems {
        // With a finding; whole and in order; in order as far as judged; not judged at all.
        let mut counts = [0; 4];
        let mut open: BTreeMap<&str, usize> = BTreeMap::new();
        for object in objects {
            let place = match (has(object, State::Finding), has(object, State::NotJudged)) {
                (true, _) => 0,
                (false, false) => 1,
                (false, true) if has(object, State::Healthy) => 2,
                (false, true) => 3,
            };
            counts[place] += 1;
            for judged in object.of(State::NotJudged) {
                *open.entry(&judged.capture).or_default() += 1;
            }
        }
        rows.push((counts, system, commands(open)));
    }
    rows.sort_by_key(|(counts, ..)| std::cmp::Reverse(counts[0]));
    let columns = [
        "system",
        "#finding",
        "#healthy",
        "#in order, in part not judged",
        "#not judged",
        "what would decide most",
    ];
    let mut table = Table::new("", &columns);
    for (counts, system, commands) in rows {
        let mut cells = vec![system.to_owned()];
        cells.extend(
            counts.map(|count| if count == 0 { "–".to_owned() } else { count.to_string() }),
        );
        cells.push(commands);
        table.row(cells);
    }
    Section::new("Coverage", Tone::Plain).block(Block::Table(table)).paragraph(format!(
        "{} objects, counted by system; --coverage lists them, --explain says why of every rule.",
        objects.len()
    ))
}

/// The commands by which most would be judged, best first.
fn commands(open: BTreeMap<&str, usize>) -> String {
    let mut open: Vec<(&str, usize)> = open.into_iter().collect();
    open.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let named: Vec<&str> = open.iter().take(COMMANDS_NAMED).map(|(command, _)| *command).collect();
    match open.len().saturating_sub(COMMANDS_NAMED) {
        0 => named.join("; "),
        more => format!("{}; and {more} more", named.join("; ")),
    }
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
