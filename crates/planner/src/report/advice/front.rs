//! The first page: which systems, from when, in what state, and what to do first, in words.

use super::{Section, Table, Tone, tone};
use crate::advise::{Advice, Finding, SystemState};
use crate::model::Role;
use crate::report::{Block, Detail, moment, span};

/// So many things are to be done first.
const FIRST: usize = 3;

/// So many others are named of which the same is said.
const ALSO: usize = 3;

/// With more systems than this what to do first comes before their table, so that it is on the first page.
const MANY: usize = 8;

/// The first page; printed, the rest begins on a new one.
pub(super) fn page(advice: &Advice) -> Vec<Section> {
    let mut sections: Vec<Section> = systems(advice).into_iter().chain(first(advice)).collect();
    if advice.systems.len() > MANY {
        sections.reverse();
    }
    if let Some(last) = sections.pop() {
        sections.push(last.at("front"));
    }
    sections
}

/// The systems with their state, the worst first.
fn systems(advice: &Advice) -> Option<Section> {
    if advice.systems.is_empty() {
        return None;
    }
    let worst =
        advice.findings.iter().map(|finding| tone(finding.severity)).max_by_key(|tone| tone.rank());
    let columns = [
        "system",
        "kind",
        "captured",
        "counting for",
        "state",
        "#critical",
        "#warning",
        "#note",
        "#in order",
        "#not judged",
    ];
    let mut table = Table::new("", &columns);
    let mut systems: Vec<&SystemState> = advice.systems.iter().collect();
    systems.sort_by_key(|system| {
        let SystemState { critical, warnings, notes, .. } = system;
        std::cmp::Reverse((*critical, *warnings, *notes))
    });
    for system in systems {
        table.row(row(system));
    }
    let tone = worst.unwrap_or(if advice.is_whole() { Tone::Good } else { Tone::Plain });
    let section = Section::new("Systems", tone).paragraph(words(advice));
    Some(section.block(Block::Table(table)).only(Detail::Full))
}

fn row(system: &SystemState) -> Vec<String> {
    let kind = match system.role {
        Role::Vios => "VIOS",
        Role::Client => "client",
        Role::Trunkline => "Trunkline server",
        Role::Unknown => "not known",
    };
    let kind = match (&system.machine, system.partition_id) {
        (Some(machine), Some(id)) => format!("{kind}, {id} on {machine}"),
        _ => kind.to_owned(),
    };
    let captured = match &system.captured {
        Some((first, last)) if first == last => moment(first),
        Some((first, last)) => from_to(&moment(first), &moment(last)),
        None => "not known".to_owned(),
    };
    let seconds = system.counting_seconds.and_then(|seconds| u32::try_from(seconds).ok());
    let counting = seconds.map_or_else(String::new, |seconds| span(f64::from(seconds)));
    let count = |count: usize| if count == 0 { "–".to_owned() } else { count.to_string() };
    vec![
        system.name.clone(),
        kind,
        captured,
        counting,
        state(system).to_owned(),
        count(system.critical),
        count(system.warnings),
        count(system.notes),
        count(system.healthy),
        count(system.not_judged),
    ]
}

/// A span of time, with what both ends have in common once: `2026-05-08 10:00 to 11:00 CEST`.
fn from_to(first: &str, last: &str) -> String {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    match (&words(first)[..], &words(last)[..]) {
        ([day, from, zone], [same, to, of]) if zone == of && day == same => {
            format!("{day} {from} to {to} {zone}")
        }
        ([day, from, zone], [other, to, of]) if zone == of => {
            format!("{day} {from} to {other} {to} {zone}")
        }
        _ => format!("{first} to {last}"),
    }
}

/// One word for a system: critical, warning, healthy, or what was seen of it.
fn state(system: &SystemState) -> &'static str {
    match system {
        SystemState { critical: 1.., .. } => "critical",
        SystemState { warnings: 1.., .. } => "warning",
        SystemState { healthy: 0, .. } => "not judged",
        SystemState { not_judged: 1.., .. } => "in order, as far as judged",
        _ => "healthy",
    }
}

fn words(advice: &Advice) -> String {
    let of = |wanted: &str| advice.systems.iter().filter(|system| state(system) == wanted).count();
    let (all, critical, warning) = (advice.systems.len(), of("critical"), of("warning"));
    let verb = |count: usize, one: &str, many: &str| {
        format!("{count} {}", if count == 1 { one } else { many })
    };
    let mut words = format!("{} captured.", verb(all, "system was", "systems were"));
    if critical > 0 {
        words += &format!(" {} help soon.", verb(critical, "needs", "need"));
    }
    if warning > 0 {
        words += &format!(" {} something to mend.", verb(warning, "has", "have"));
    }
    if all > critical + warning {
        words += &format!(" On {} nothing was found.", all - critical - warning);
    }
    words
}

/// The three things to do first, with what they bring and what they risk. What one rule finds several times on the
/// same systems is one thing, and so is what is mended by looking in the same place.
fn first(advice: &Advice) -> Option<Section> {
    let mut things: Vec<(&Finding, Vec<&str>)> = Vec::new();
    for finding in &advice.findings {
        let same = |(first, _): &&mut (&Finding, Vec<&str>)| {
            let alike = first.command.is_none() && first.effect == finding.effect;
            first.rule == finding.rule
                && (alike || first.is_of(&finding.system) || finding.is_of(&first.system))
        };
        let full = things.len() == FIRST;
        match things.iter_mut().find(same) {
            Some((_, also)) => also.push(&finding.object),
            None if full => {}
            None => things.push((finding, Vec::new())),
        }
    }
    let mut section = Section::new("What to do first", Tone::Plain).only(Detail::Full);
    for (at, (finding, also)) in things.iter().enumerate() {
        let text = in_words(finding, also);
        section = section.block(Block::Labelled { label: (at + 1).to_string(), text });
    }
    (!section.blocks.is_empty()).then_some(section)
}

fn in_words(finding: &Finding, also: &[&str]) -> String {
    let sentences = |text: &str, count: usize| {
        let end = text.match_indices(". ").nth(count - 1).map_or(text.len(), |(end, _)| end + 1);
        text[..end].to_owned()
    };
    let others: Vec<&str> =
        also.iter().copied().filter(|other| !finding.object.contains(other)).collect();
    let named = others.iter().take(ALSO).copied().collect::<Vec<_>>().join(", ");
    let also = match others.len() {
        0 => String::new(),
        all if all > ALSO => format!(" Also {named} and {} more.", all - ALSO),
        _ => format!(" Also {named}."),
    };
    format!(
        "{}: {}.{also} {} Risk: {}",
        finding.object,
        finding.title,
        sentences(&finding.effect, 2),
        sentences(&finding.harm, 1)
    )
}
