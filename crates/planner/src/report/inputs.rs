//! Inputs of an answer that captures told, each with its lines, and those that they did not tell.

use std::collections::BTreeSet;

use serde::Serialize;

use super::{Answer, Block, Section, Table, Tone, place};
use crate::capture::At;
use crate::trace::{Figure, Origin};

/// So many lines stand in a cell.
const PLACES: usize = 8;

/// One input.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Input {
    /// What it is of: `SEA ent9`, `the client`.
    pub of: String,
    /// What it is: `I/O/s`.
    pub name: String,
    /// The value as people read it.
    pub value: String,
    /// How it comes out of the lines; empty where it stands there as it is.
    pub formula: String,
    /// The lines.
    pub lines: Vec<At>,
}

impl Input {
    /// A word or a number that stands in a line.
    pub(crate) fn read(of: &str, name: &str, value: impl ToString, at: At) -> Self {
        Self {
            of: of.to_owned(),
            name: name.to_owned(),
            value: value.to_string(),
            formula: String::new(),
            lines: vec![at],
        }
    }

    /// An input that is reckoned from several lines, or stands in one.
    pub(crate) fn reckoned(of: &str, name: &str, figure: &Figure) -> Self {
        let lines: BTreeSet<At> = figure
            .terms
            .iter()
            .filter_map(|term| match term.origin {
                Origin::Capture(at) => Some(at),
                _ => None,
            })
            .collect();
        let plain = matches!(figure.terms.as_slice(), [only] if only.name == figure.formula);
        Self {
            of: of.to_owned(),
            name: name.to_owned(),
            value: format!("{} {}", figure.value(), figure.unit).trim_end().to_owned(),
            formula: match plain {
                true => String::new(),
                false => format!("{} = {}", figure.formula, figure.put_in()),
            },
            lines: lines.into_iter().collect(),
        }
    }
}

/// An input that captures do not tell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Missing {
    /// What it is of.
    pub of: String,
    /// What is missing.
    pub what: String,
    /// What is reckoned with instead.
    pub instead: String,
    /// The command whose output would tell it.
    pub capture: String,
}

impl Missing {
    pub(crate) fn new(
        of: &str,
        what: impl Into<String>,
        instead: &str,
        capture: impl Into<String>,
    ) -> Self {
        let (what, capture) = (what.into(), capture.into());
        Self { of: of.to_owned(), what, instead: instead.to_owned(), capture }
    }
}

/// The inputs with their lines, under a heading; nothing where there are none.
pub(crate) fn told(answer: &dyn Answer, heading: String, inputs: &[Input]) -> Option<Section> {
    let mut table = Table::new("", &["of", "input", "#value", "how", "lines"]);
    for input in inputs {
        table.row([
            input.of.clone(),
            input.name.clone(),
            input.value.clone(),
            input.formula.clone(),
            lines(answer, &input.lines),
        ]);
    }
    let section = || Section::new(heading, Tone::Plain).block(Block::Table(table));
    (!inputs.is_empty()).then(section)
}

/// What is missing, under a heading; nothing where nothing is.
pub(crate) fn untold(heading: String, missing: &[Missing]) -> Option<Section> {
    let columns = ["of", "what is missing", "reckoned with", "what would tell it"];
    let mut table = Table::new("", &columns);
    for one in missing {
        table.row([&one.of, &one.what, &one.instead, &one.capture].map(Clone::clone));
    }
    let section = || Section::new(heading, Tone::Note).block(Block::Table(table));
    (!missing.is_empty()).then(section)
}

/// `a.txt:7, 84; b.txt:3`.
fn lines(answer: &dyn Answer, lines: &[At]) -> String {
    let mut text = String::new();
    let mut before = None;
    for at in lines.iter().take(PLACES) {
        match before {
            Some(file) if file == at.file => text.push_str(&format!(", {}", at.line)),
            Some(_) => text.push_str(&format!("; {}", place(answer, *at))),
            None => text.push_str(&place(answer, *at)),
        }
        before = Some(at.file);
    }
    if lines.len() > PLACES {
        text.push_str(&format!(" and {} more", lines.len() - PLACES));
    }
    text
}
