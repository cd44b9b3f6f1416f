//! Every number of an answer can be traced: to a line of a capture, to a fact and its source, to what the user gave,
//! or to another figure of the same answer.
//!
//! A [`Figure`] is *computed from its formula*: the text that is shown is the text that was evaluated, so that what is
//! printed and what was reckoned cannot differ. Values that are known only within bounds are ranges from end to end
//! (interval arithmetic); an exact value is a range of one point.
//!
//! Formulas are written in this notation: numbers, the names of the terms, `+`, `−` or `-`, `×` or `*`, `÷` or `/`,
//! parentheses, `min(a, b, …)`, `max(a, b, …)`, `round_up(x, step)` and `round_down(x, step)`.

mod formula;

use std::fmt;

use serde::Serialize;

use crate::capture::At;

/// Where a fact comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Source {
    /// The short name under which data files cite it.
    pub id: String,
    /// What it is and where it can be read.
    pub text: String,
    /// Whether it was read there; otherwise it is an assumption, and the user's own data file should replace it.
    pub confirmed: bool,
}

/// Where a value comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// A line of a capture.
    Capture(At),
    /// A fact of the data files.
    Fact(Source),
    /// The user said so.
    Given,
    /// Another figure of the same answer, by the name of the term.
    Computed,
    /// Another figure of the same answer that rests, somewhere, on a fact that is not confirmed.
    Assumed,
}

impl Origin {
    /// Whether nothing unconfirmed went into the value.
    pub fn confirmed(&self) -> bool {
        match self {
            Origin::Fact(source) => source.confirmed,
            Origin::Assumed => false,
            Origin::Capture(_) | Origin::Given | Origin::Computed => true,
        }
    }
}

/// One value that goes into a formula.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Term {
    /// Its name in the formula.
    pub name: String,
    /// The value; the lower end where it is a range.
    pub low: f64,
    /// The upper end; equal to `low` when the value is exact.
    pub high: f64,
    /// The unit, as text for people.
    pub unit: String,
    /// Where it comes from.
    pub origin: Origin,
}

impl Term {
    /// An exact value.
    pub fn new(name: &str, value: f64, unit: &str, origin: Origin) -> Term {
        Term::range(name, value, value, unit, origin)
    }

    /// A value between two bounds.
    pub fn range(name: &str, low: f64, high: f64, unit: &str, origin: Origin) -> Term {
        Term { name: name.to_owned(), low, high, unit: unit.to_owned(), origin }
    }

    /// What the user gave.
    pub fn given(name: &str, value: f64, unit: &str) -> Term {
        Term::new(name, value, unit, Origin::Given)
    }

    /// What stood in a capture.
    pub fn read(name: &str, value: f64, unit: &str, at: At) -> Term {
        Term::new(name, value, unit, Origin::Capture(at))
    }

    /// Another figure of the same answer, under its own name.
    pub fn of(figure: &Figure) -> Term {
        let Figure { name, low, high, unit, .. } = figure;
        let origin = if figure.confirmed() { Origin::Computed } else { Origin::Assumed };
        Term::range(name, *low, *high, unit, origin)
    }

    /// The same value under another name.
    pub fn named(mut self, name: &str) -> Term {
        name.clone_into(&mut self.name);
        self
    }

    /// The value, or the range with a dash.
    pub fn value(&self) -> String {
        span(self.low, self.high)
    }
}

/// A number of an answer with the way it came about.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Figure {
    /// What it is.
    pub name: String,
    /// The value; the lower end where it is a range. Not a number when the formula has no value.
    pub low: f64,
    /// The upper end; equal to `low` when the value is exact.
    pub high: f64,
    /// The unit, as text for people.
    pub unit: String,
    /// How it is reckoned, in the names of the terms.
    pub formula: String,
    /// What went in.
    pub terms: Vec<Term>,
}

impl Figure {
    /// Reckons `formula` over `terms`. A formula that cannot be read, names something that is not among the terms or
    /// divides by zero gives a figure that is not a number and says so where it is printed.
    pub fn new(name: &str, unit: &str, formula: &str, terms: Vec<Term>) -> Figure {
        let (low, high) = formula::evaluate(formula, &terms).unwrap_or((f64::NAN, f64::NAN));
        Figure {
            name: name.to_owned(),
            low,
            high,
            unit: unit.to_owned(),
            formula: formula.to_owned(),
            terms,
        }
    }

    /// A value that is shown as it is: its formula is its own name.
    pub fn plain(term: Term) -> Figure {
        let (name, unit) = (term.name.clone(), term.unit.clone());
        Figure::new(&name, &unit, &name, vec![term])
    }

    /// The value, or the range with a dash; `—` when there is none.
    pub fn value(&self) -> String {
        span(self.low, self.high)
    }

    /// The formula with the values put in place of the names.
    pub fn put_in(&self) -> String {
        formula::substitute(&self.formula, &self.terms)
    }

    /// Whether every fact that went in, also into the figures before it, was read in its source.
    pub fn confirmed(&self) -> bool {
        self.terms.iter().all(|term| term.origin.confirmed())
    }

    /// The formula, the values put in, and where each of them comes from; `file_name` turns the number of a file into
    /// its name.
    pub fn explain(&self, file_name: &dyn Fn(u32) -> String) -> String {
        let mut text = format!("{} = {}", self.name, self.value());
        push_unit(&mut text, &self.unit);
        if self.formula != self.name {
            text.push_str(&format!("\n  = {}\n  = {}", self.formula, self.put_in()));
        }
        for term in &self.terms {
            text.push_str(&format!("\n  {} = {}", term.name, term.value()));
            push_unit(&mut text, &term.unit);
            text.push_str(&match &term.origin {
                Origin::Capture(at) => format!(": {}, line {}", file_name(at.file), at.line),
                Origin::Fact(Source { id, text, confirmed: true }) => format!(": {text} [{id}]"),
                Origin::Fact(Source { id, text, confirmed: false }) => {
                    format!(": unconfirmed; {text} [{id}]")
                }
                Origin::Given => ": given".to_owned(),
                Origin::Computed => ": computed".to_owned(),
                Origin::Assumed => ": computed, in part from what is unconfirmed".to_owned(),
            });
        }
        text.push('\n');
        text
    }
}

/// `explain` for captures whose names are not at hand: files are called by their order.
pub fn explain(figure: &Figure) -> String {
    figure.explain(&|file| format!("file {}", u64::from(file) + 1))
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = self.value();
        push_unit(&mut text, &self.unit);
        f.write_str(&text)?;
        if self.formula == self.name {
            return Ok(());
        }
        write!(f, " ({} = {})", self.formula, self.put_in())
    }
}

fn push_unit(text: &mut String, unit: &str) {
    if !unit.is_empty() {
        text.push(' ');
        text.push_str(unit);
    }
}

fn span(low: f64, high: f64) -> String {
    let (from, to) = (number(low), number(high));
    if from == to { from } else { format!("{from} to {to}") }
}

/// A number as people read it: thousands grouped, no more digits than mean something (three decimals below one, two
/// below a hundred, one below ten thousand), `—` when it is none.
pub fn number(value: f64) -> String {
    if !value.is_finite() {
        return "—".to_owned();
    }
    let size = value.abs();
    let decimals = match size {
        s if s >= 1e4 => 0,
        s if s >= 100.0 => 1,
        s if s >= 1.0 => 2,
        // Three digits that mean something, however small the number.
        s if s > 0.0 => small_decimals(s),
        _ => 0,
    };
    let mut text = format!("{value:.decimals$}");
    if text.contains('.') {
        text.truncate(text.trim_end_matches('0').trim_end_matches('.').len());
    }
    if text == "-0" {
        return "0".to_owned();
    }
    group(&text)
}

fn small_decimals(size: f64) -> usize {
    let mut decimals = 3;
    let mut scaled = size * 10.0;
    while scaled < 1.0 && decimals < 17 {
        scaled *= 10.0;
        decimals += 1;
    }
    decimals
}

/// A comma before each group of three digits of the whole part.
fn group(text: &str) -> String {
    let (sign, digits) = text.strip_prefix('-').map_or(("", text), |rest| ("-", rest));
    let (whole, fraction) = digits.find('.').map_or((digits, ""), |dot| digits.split_at(dot));
    let mut grouped = String::from(sign);
    for (place, digit) in whole.chars().enumerate() {
        if place > 0 && (whole.len() - place).is_multiple_of(3) {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    grouped.push_str(fraction);
    grouped
}

#[cfg(test)]
mod tests;
