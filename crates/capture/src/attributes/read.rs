//! Reads `lsattr -El`, `lsdev -attr` and the lists of allowed values.
//!
//! The list of attributes has columns and no separators: a value may be empty, and then only the place of the
//! description tells so. The value's column is where the second word stands in most rows. A row ends with `True` or
//! `False`; one that does not goes on in the next line.

use std::borrow::Cow;

use super::{Allowed, Attribute, Lsattr, LsattrRange, LsdevAttr, Settable};
use crate::page::Page;
use crate::recognise::{self, is_span, words};
use crate::text::{Line, Lines, Plain, is_device_alone};
use crate::{At, Report};

pub(crate) fn lsattr(page: &mut Page<'_>) -> Option<Report> {
    take_heading(page);
    let attributes = rows(page);
    if attributes.is_empty() {
        return None;
    }
    let in_force = page.in_force;
    Some(Report::Lsattr(Lsattr { head: page.close(), attributes, in_force }))
}

pub(crate) fn lsdev(page: &mut Page<'_>) -> Option<Report> {
    let first = page.peek()?;
    if take_heading(page) {
        let attributes = rows(page);
        if attributes.is_empty() {
            page.incomplete("no attribute follows the heading");
        }
        return Some(Report::LsdevAttr(LsdevAttr { head: page.close(), attributes }));
    }
    // `grep` behind the command takes the heading away.
    if page.filter.is_some() && recognise::is_attribute(first.text) {
        let attributes = rows(page);
        if attributes.is_empty() {
            return None;
        }
        return Some(Report::LsdevAttr(LsdevAttr { head: page.close(), attributes }));
    }
    // `-attr NAME` prints the word `value` and the value.
    let name = page.asked.clone()?;
    if first.trimmed() != "value" {
        return None;
    }
    page.take();
    let attributes = match page.peek() {
        Some(line) if !recognise::is_boundary(line, page.ahead()) => {
            page.take();
            vec![Attribute::alone(line.at, &name, line.trimmed())]
        }
        _ => {
            page.incomplete("no value follows the heading");
            Vec::new()
        }
    };
    Some(Report::LsdevAttr(LsdevAttr { head: page.close(), attributes }))
}

/// Takes the heading, which `lsdev` always prints and `lsattr` with `-H`.
fn take_heading(page: &mut Page<'_>) -> bool {
    if !page.peek().is_some_and(|line| words(line.text, &["attribute", "value"])) {
        return false;
    }
    page.take();
    // The heading may be too wide for the terminal as well.
    if page.peek_raw().is_some_and(|next| next.trimmed() == "user_settable") {
        page.take();
    }
    true
}

/// `lsattr -El DEVICE -a NAME -F value`: the value alone; in a loop that prints it, behind the device's name.
pub(crate) fn value(page: &mut Page<'_>) -> Option<Report> {
    // Each attribute that is asked for has a line of its own, unless `echo` puts them side by side.
    let names = page.format.clone();
    let mut attributes: Vec<Attribute> = Vec::new();
    while let Some(name) = names.get(attributes.len()) {
        let Some(line) = page.peek().filter(|line| !recognise::is_boundary(*line, page.ahead()))
        else {
            break;
        };
        let mut words: Vec<&str> = line.trimmed().split_ascii_whitespace().collect();
        if words.len() > 1 && attributes.is_empty() && is_device_alone(words[0]) {
            page.device_is(words[0], line.at);
            words.remove(0);
        }
        let one = |name: &String, value: &str| Attribute::alone(line.at, name, value);
        match words[..] {
            [value] => attributes.push(one(name, value)),
            _ if attributes.is_empty() && words.len() == names.len() => {
                attributes.extend(names.iter().zip(words).map(|(name, value)| one(name, value)));
            }
            _ => break,
        }
        page.take();
    }
    if attributes.is_empty() {
        return None;
    }
    if attributes.len() < names.len() {
        page.incomplete("not every attribute that was asked for has a value");
    }
    Some(Report::Lsattr(Lsattr { head: page.close(), attributes, in_force: false }))
}

/// More attributes than any device has.
const MOST: usize = 512;

/// One row, put together from its lines.
struct Row<'t> {
    at: At,
    text: Cow<'t, str>,
    /// The length of its name.
    name: usize,
    /// Its last word.
    settable: Settable,
}

impl Row<'_> {
    fn name(&self) -> &str {
        &self.text[..self.name]
    }
}

/// The rows of a list, until it ends or begins anew.
fn rows(page: &mut Page<'_>) -> Vec<Attribute> {
    let mut rows: Vec<Row<'_>> = Vec::with_capacity(16);
    while let Some(line) = page.peek_raw() {
        if line.is_blank() {
            // A blank line ends the list, unless the list goes on behind it.
            let more = page
                .ahead()
                .peek_text()
                .is_some_and(|line| settable(line.text).is_some() && is_name(line.text));
            if !more && !rows.is_empty() {
                break;
            }
            page.skip();
            continue;
        }
        if is_name(line.text)
            && let Some((row, lines)) = row(line, page.ahead())
        {
            // The next device's list may follow without anything between.
            if rows.len() == MOST || rows.iter().any(|other| other.name() == row.name()) {
                break;
            }
            page.take_lines(lines);
            rows.push(row);
        } else if rows.is_empty() || is_device_alone(line.trimmed()) || !page.goes_on(line) {
            break;
        }
    }
    split(&rows)
}

fn is_name(text: &str) -> bool {
    let name = first_word(text);
    !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

fn first_word(text: &str) -> &str {
    let end = text.bytes().position(|byte| matches!(byte, b' ' | b'\t'));
    end.map_or(text, |end| &text[..end])
}

/// The last word of a row.
fn settable(text: &str) -> Option<Settable> {
    let start = text.bytes().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
    match &text[start + 1..] {
        "True" => Some(Settable::Yes),
        "True+" => Some(Settable::Live),
        "False" => Some(Settable::No),
        _ => None,
    }
}

/// A row and how many lines it takes; a terminal may have cut it into several.
fn row<'t>(first: Line<'t>, mut ahead: Lines<'t>) -> Option<(Row<'t>, usize)> {
    if let Some(settable) = settable(first.text) {
        let name = first_word(first.text).len();
        return Some((
            Row { at: first.at, text: expand(Cow::Borrowed(first.text)), name, settable },
            1,
        ));
    }
    ahead.next();
    let mut text = first.text.to_owned();
    let (mut width, mut end) = (first.width, first.text.len());
    for lines in 2..=3 {
        let next = ahead.next().filter(|next| !next.is_blank())?;
        // The rest of a row that was cut is no row of its own.
        if is_name(next.text)
            && settable(next.text).is_some()
            && next.text.split_ascii_whitespace().count() > 3
        {
            return None;
        }
        // A line that was cut where it was full goes on without a gap; one that ends early has lost a space.
        let lost = match next.text.starts_with(char::is_whitespace) {
            true => 0,
            false if width >= 72 => width.saturating_sub(end),
            false => 1,
        };
        end = next.text.len();
        let glued = format!("{text}{}{}", " ".repeat(lost.min(1)), next.text);
        if let Some(settable) = settable(&glued) {
            let name = first_word(&glued).len();
            let text = expand(Cow::Owned(glued));
            return Some((Row { at: first.at, text, name, settable }, lines));
        }
        text = glued;
        width = next.width;
    }
    None
}

/// Where the second and the third word of a row begin.
struct Columns {
    value: Option<usize>,
    description: Option<usize>,
}

/// Divides the rows into columns.
fn split(rows: &[Row<'_>]) -> Vec<Attribute> {
    let columns = |row: &Row<'_>| {
        let value = second_word(&row.text);
        let third = |start: usize| Some(start + second_word(&row.text[start..])?);
        Columns { value, description: value.and_then(third) }
    };
    let of_each: Vec<Columns> = rows.iter().map(columns).collect();
    let values = most_frequent(of_each.iter().filter_map(|columns| columns.value));
    let descriptions = most_frequent(of_each.iter().filter_map(|columns| columns.description));
    let attribute = |(row, columns): (&Row<'_>, &Columns)| {
        let end = row.text.bytes().rposition(|byte| matches!(byte, b' ' | b'\t'))?;
        let body = row.text[..end].bare_end();
        let name = body.get(..row.name).unwrap_or(body);
        let start = columns.value.filter(|start| *start < body.len());
        let (value, description) =
            value_and_description(body, name.len(), start, (values, descriptions));
        Some(Attribute {
            at: row.at,
            name: name.into(),
            value: value.into(),
            description: description.into(),
            settable: Some(row.settable),
            pending: false,
        })
    };
    let mut attributes = Vec::with_capacity(rows.len());
    attributes.extend(rows.iter().zip(&of_each).filter_map(attribute));
    attributes
}

/// The most frequent of these columns, the leftmost of several.
fn most_frequent(columns: impl Iterator<Item = usize> + Clone) -> usize {
    // Most lists have one column.
    let mut all = columns.clone();
    let first = all.next();
    if let Some(first) = first
        && all.all(|column| column == first)
    {
        return first;
    }
    let mut columns: Vec<usize> = columns.collect();
    columns.sort_unstable();
    let runs = columns.chunk_by(|left, right| left == right);
    // Of equals `max_by_key` takes the last, hence the turned order.
    let longest = runs.rev().max_by_key(|run| run.len());
    longest.and_then(|run| run.first()).copied().unwrap_or(0)
}

/// What follows the name. A value is empty when the next word stands right of the value's column with a gap before it
/// that only an empty column leaves; it has several words when the description begins in its own column behind them.
fn value_and_description(
    body: &str,
    name: usize,
    start: Option<usize>,
    (values, descriptions): (usize, usize),
) -> (&str, &str) {
    let Some(start) = start else { return ("", "") };
    if start > values && start - name >= 3 {
        return ("", &body[start..]);
    }
    if let Some((value, description)) = body.split_at_checked(descriptions)
        && descriptions > start
        && value.ends_with(' ')
        && !description.starts_with(' ')
        && value[start..].bare_end().as_bytes().windows(2).all(|two| two != b"  ")
    {
        return (value[start..].bare_end(), description);
    }
    match body[start..].split_once(char::is_whitespace) {
        Some((value, description)) => (value, description.trim_start()),
        None => (&body[start..], ""),
    }
}

/// Where the second word begins.
fn second_word(text: &str) -> Option<usize> {
    let gap = text.bytes().position(|byte| byte.is_ascii_whitespace())?;
    let rest = &text[gap..];
    Some(gap + rest.len() - rest.bare_start().len()).filter(|start| *start < text.len())
}

/// Tabs as spaces up to the next multiple of eight.
fn expand(text: Cow<'_, str>) -> Cow<'_, str> {
    if memchr::memchr(b'\t', text.as_bytes()).is_none() {
        return text;
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut column = 0;
    for c in text.chars() {
        if c == '\t' {
            let spaces = 8 - column % 8;
            out.extend(std::iter::repeat_n(' ', spaces));
            column += spaces;
        } else {
            out.push(c);
            column += 1;
        }
    }
    Cow::Owned(out)
}

pub(crate) fn range(page: &mut Page<'_>) -> Option<Report> {
    let mut allowed: Vec<Allowed> = Vec::new();
    let by_command = page.asked.is_some();
    while let Some(line) = page.peek_raw() {
        if line.is_blank() {
            if !allowed.is_empty() {
                break;
            }
            page.skip();
            continue;
        }
        let text = line.trimmed();
        if let Some(span) = span(text, line.at) {
            allowed.push(span);
        } else if by_command && is_value(line, page.ahead()) {
            allowed.push(Allowed::Value { at: line.at, value: text.to_owned() });
        } else {
            break;
        }
        page.take();
    }
    if allowed.is_empty() {
        return None;
    }
    let attribute = page.asked.clone();
    Some(Report::LsattrRange(LsattrRange { head: page.close(), attribute, allowed }))
}

/// One word that is no prompt.
fn is_value(line: Line<'_>, ahead: Lines<'_>) -> bool {
    let text = line.trimmed();
    !text.contains(char::is_whitespace) && !recognise::is_boundary(line, ahead)
}

/// `20...2048 (+1)`
fn span(text: &str, at: At) -> Option<Allowed> {
    if !is_span(text) {
        return None;
    }
    let (low, rest) = text.split_once("...")?;
    let (high, step) = rest.split_once('(')?;
    let step = step.trim_end_matches(')').trim_start_matches('+').trim();
    let (low, high, step) =
        (low.trim().parse().ok()?, high.trim().parse().ok()?, step.parse().ok()?);
    Some(Allowed::Span { at, low, high, step })
}
