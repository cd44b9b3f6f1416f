//! Reads the XML of `part`: whatever has a suggested value.

use super::xml::{Cutter, Event};
use super::{PartAdvice, PartReport};
use crate::capture::page::Page;
use crate::capture::text::{self, Line, Lines};
use crate::capture::{At, Read, Report};

/// More elements within each other than any report has.
const DEEPEST: usize = 64;
/// More advices than any VIOS is given.
const MOST: usize = 4096;

/// Whether an XML file that begins here is of this advisor: its style sheet or its root says so.
pub(in crate::capture) fn is_report(ahead: Lines<'_>) -> bool {
    let names = |line: Line<'_>| {
        let text = line.text.as_bytes();
        let mut words =
            memchr::memchr2_iter(b'v', b'V', text).filter_map(|at| text.get(at..at + 12));
        words.any(|word| {
            word.eq_ignore_ascii_case(b"vios_advisor") || word.eq_ignore_ascii_case(b"vios advisor")
        })
    };
    ahead.take(8).any(names)
}

/// An element that is open.
#[derive(Default)]
struct Open {
    name: String,
    at: Option<At>,
    text: String,
    /// Attributes, and elements that hold text alone, by their plain names.
    fields: Vec<(String, Read<String>)>,
    /// Other elements are in it.
    inner: bool,
}

pub(in crate::capture) fn report(page: &mut Page<'_>) -> Option<Report> {
    let (mut cutter, mut events) = (Cutter::default(), Vec::new());
    let mut open: Vec<Open> = Vec::new();
    let mut advices: Vec<PartAdvice> = Vec::new();
    let (mut begun, mut ended) = (false, false);
    while let Some(line) = page.peek_raw().filter(|_| !ended) {
        if cutter.line(line.text, line.at, &mut events).is_none() {
            break;
        }
        page.take();
        for (event, at) in events.drain(..) {
            match event {
                Event::Open(name, attributes, empty) if open.len() < DEEPEST => {
                    begun = true;
                    if let Some(around) = open.last_mut() {
                        around.inner = true;
                    }
                    let fields = attributes
                        .into_iter()
                        .map(|(key, value)| (plain(&key), Read { value, at }))
                        .collect();
                    let element = Open { name, at: Some(at), fields, ..Open::default() };
                    open.push(element);
                    if empty {
                        close(page, &mut open, &mut advices, at);
                    }
                }
                Event::Open(..) => return None,
                Event::Text(text) => {
                    if let Some(element) = open.last_mut() {
                        element.text = text;
                    }
                }
                Event::Close => close(page, &mut open, &mut advices, at),
            }
            ended = begun && open.is_empty();
        }
    }
    if !begun {
        return None;
    }
    if !ended {
        page.incomplete("the end of the XML is missing");
    }
    Some(Report::Part(PartReport { head: page.close(), advices }))
}

/// Ends the innermost element: it is a field of the one around it, or an advice, or neither.
fn close(page: &mut Page<'_>, open: &mut Vec<Open>, advices: &mut Vec<PartAdvice>, at: At) {
    let Some(element) = open.pop() else { return };
    let name = plain(&element.name);
    if !element.text.is_empty() && matches!(name.as_str(), "hostname" | "viosname") {
        page.partition_is(&element.text, at);
    }
    if let Some(advice) = advice(&element, open).filter(|_| advices.len() < MOST) {
        advices.push(advice);
    } else if let Some(around) = open.last_mut()
        && !element.inner
        && !element.text.is_empty()
    {
        around.fields.push((name, Read { value: element.text, at }));
    }
}

/// A name without case and marks: `Suggested_Value` is `suggestedvalue`.
fn plain(name: &str) -> String {
    let mut plain = String::with_capacity(name.len());
    for byte in name.bytes().filter(u8::is_ascii_alphanumeric) {
        plain.push(char::from(byte.to_ascii_lowercase()));
    }
    plain
}

fn advice(element: &Open, around: &[Open]) -> Option<PartAdvice> {
    let find = |words: &[&str]| {
        let named =
            |(name, _): &&(String, Read<String>)| words.iter().any(|word| name.contains(word));
        element.fields.iter().find(named).map(|(_, read)| read.clone())
    };
    let suggested = find(&["suggest", "recommend"]).filter(|read| !read.value.is_empty())?;
    let value = find(&["measured", "current", "configured"])
        .or_else(|| {
            let field = element.fields.iter().find(|(name, _)| name == "value");
            field.map(|(_, read)| read.clone())
        })
        .or_else(|| {
            let at = element.at.filter(|_| !element.text.is_empty())?;
            Some(Read { value: element.text.clone(), at })
        });
    let path: Vec<&str> =
        around.iter().skip(1).chain([element]).map(|element| element.name.as_str()).collect();
    let all = around.iter().rev().flat_map(|around| &around.fields);
    let device =
        element.fields.iter().chain(all).map(|(_, read)| &read.value).find(|text| is_device(text));
    Some(PartAdvice {
        at: element.at.unwrap_or(suggested.at),
        about: path.join("/"),
        device: device.cloned(),
        value,
        suggested,
        risk: find(&["risk"]),
        impact: find(&["impact"]),
    })
}

fn is_device(text: &str) -> bool {
    ["hdisk", "fcs", "fscsi", "ent", "en", "vhost", "vfchost", "vscsi"]
        .iter()
        .any(|kind| text::is_device(text, kind))
}
