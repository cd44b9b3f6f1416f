//! Reads the XML of `part`: whatever has a suggested value.

use std::borrow::Cow;

use super::xml::{Cutter, Event};
use super::{PartAdvice, PartReport};
use crate::page::Page;
use crate::text::{self, Line, Lines};
use crate::{At, Read, Report};

/// More elements within each other than any report has.
const DEEPEST: usize = 64;
/// More advices than any VIOS is given.
const MOST: usize = 4096;

/// Whether an XML file that begins here is of this advisor: its style sheet or its root says so.
pub(crate) fn is_report(ahead: Lines<'_>) -> bool {
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
struct Open<'t> {
    name: Cow<'t, str>,
    at: At,
    text: Cow<'t, str>,
    /// Where its fields begin among those of all that are open; they end where those of the next inside it begin.
    fields: usize,
    /// Other elements are in it.
    inner: bool,
}

/// An attribute, or an element that holds text alone.
struct Field<'t> {
    says: Says,
    value: Cow<'t, str>,
    at: At,
}

/// What is read up to a line.
#[derive(Default)]
struct Reading<'t> {
    open: Vec<Open<'t>>,
    fields: Vec<Field<'t>>,
    advices: Vec<PartAdvice>,
    begun: bool,
}

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let (mut cutter, mut events) = (Cutter::default(), Vec::with_capacity(8));
    let mut reading = Reading { open: Vec::with_capacity(8), ..Reading::default() };
    let mut ended = false;
    while let Some(line) = page.peek_raw().filter(|_| !ended) {
        if cutter.line(line.text, &mut events).is_none() {
            break;
        }
        page.take();
        for event in events.drain(..) {
            match event {
                Event::Open(name) => reading.open(name, line.at)?,
                Event::Attribute(name, value) => reading.field(says(&name), value, line.at),
                Event::Text(text) => {
                    if let Some(element) = reading.open.last_mut() {
                        element.text = text;
                    }
                }
                Event::Close => reading.close(page, line.at),
            }
            ended = reading.begun && reading.open.is_empty();
        }
    }
    if !reading.begun {
        return None;
    }
    if !ended {
        page.incomplete("the end of the XML is missing");
    }
    reading.advices.shrink_to_fit();
    Some(Report::Part(PartReport { head: page.close(), advices: reading.advices }))
}

impl<'t> Reading<'t> {
    /// Begins an element; `None` when too many are open.
    fn open(&mut self, name: Cow<'t, str>, at: At) -> Option<()> {
        if self.open.len() >= DEEPEST {
            return None;
        }
        self.begun = true;
        if let Some(around) = self.open.last_mut() {
            around.inner = true;
        }
        let fields = self.fields.len();
        self.open.push(Open { name, at, text: Cow::Borrowed(""), fields, inner: false });
        Some(())
    }

    fn field(&mut self, says: Says, value: Cow<'t, str>, at: At) {
        self.fields.push(Field { says, value, at });
    }

    /// Ends the innermost element: it is a field of the one around it, or an advice, or neither.
    fn close(&mut self, page: &mut Page<'_>, at: At) {
        let Some(element) = self.open.pop() else { return };
        let says = if element.text.is_empty() { Says::default() } else { says(&element.name) };
        if says.host {
            page.partition_is(&element.text, at);
        }
        let advice = match self.advices.len() < MOST {
            true => self.advice(&element),
            false => None,
        };
        self.fields.truncate(element.fields);
        if let Some(advice) = advice {
            self.advices.push(advice);
        } else if !self.open.is_empty() && !element.inner && !element.text.is_empty() {
            self.field(says, element.text, at);
        }
    }

    /// What the element that was the innermost advises.
    fn advice(&self, element: &Open<'t>) -> Option<PartAdvice> {
        let own = self.fields.get(element.fields..)?;
        let find = |wanted: fn(&Says) -> bool| {
            let field = own.iter().find(|field| wanted(&field.says))?;
            Some(Read { value: field.value.clone().into_owned(), at: field.at })
        };
        let suggested = find(|says| says.suggested).filter(|read| !read.value.is_empty())?;
        let value = find(|says| says.present).or_else(|| find(|says| says.value)).or_else(|| {
            let text = Some(&element.text).filter(|text| !text.is_empty())?;
            Some(Read { value: text.clone().into_owned(), at: element.at })
        });
        let around = self.open.iter().skip(1).map(|around| &*around.name);
        let path: Vec<&str> = around.chain([&*element.name]).collect();
        let mut end = element.fields;
        let all = self.open.iter().rev().flat_map(|around| {
            let fields = self.fields.get(around.fields..end).unwrap_or_default();
            end = around.fields;
            fields
        });
        let device = own.iter().chain(all).find(|field| is_device(&field.value));
        Some(PartAdvice {
            at: element.at,
            about: path.join("/"),
            device: device.map(|field| field.value.clone().into_owned()),
            value,
            suggested,
            risk: find(|says| says.risk),
            impact: find(|says| says.impact),
        })
    }
}

/// What a field holds, by its name.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
struct Says {
    suggested: bool,
    /// What was measured or is set.
    present: bool,
    /// The same, where no other field has it.
    value: bool,
    risk: bool,
    impact: bool,
    host: bool,
}

/// What a name says, in whatever case and with whatever marks in it: `Suggested_Value` is `suggestedvalue`.
fn says(name: &str) -> Says {
    const LONGEST: usize = 64;
    let letters = |byte: &u8| byte.is_ascii_alphanumeric();
    let plain = name.bytes().filter(letters).map(|byte| byte.to_ascii_lowercase());
    // Names are short; nothing is allocated for one.
    let (mut short, mut length) = ([0; LONGEST], 0);
    if name.len() > LONGEST {
        return says_plain(&plain.collect::<Vec<u8>>());
    }
    for (place, byte) in short.iter_mut().zip(plain) {
        *place = byte;
        length += 1;
    }
    says_plain(short.get(..length).unwrap_or_default())
}

fn says_plain(plain: &[u8]) -> Says {
    let mut says = Says {
        value: plain == b"value",
        host: matches!(plain, b"hostname" | b"viosname"),
        ..Says::default()
    };
    let mut rest = plain;
    while let [first, ..] = rest {
        let starts = |words: &[&[u8]]| words.iter().any(|word| rest.starts_with(word));
        match first {
            b's' => says.suggested |= starts(&[b"suggest"]),
            b'r' => {
                says.suggested |= starts(&[b"recommend"]);
                says.risk |= starts(&[b"risk"]);
            }
            b'm' => says.present |= starts(&[b"measured"]),
            b'c' => says.present |= starts(&[b"current", b"configured"]),
            b'i' => says.impact |= starts(&[b"impact"]),
            _ => {}
        }
        rest = &rest[1..];
    }
    says
}

fn is_device(text: &str) -> bool {
    ["hdisk", "fcs", "fscsi", "ent", "en", "vhost", "vfchost", "vscsi"]
        .iter()
        .any(|kind| text::is_device(text, kind))
}

#[cfg(test)]
mod tests {
    use super::{Says, says};
    use proptest::prelude::*;

    /// The same by the name without its marks.
    fn wanted(name: &str) -> Says {
        let plain: String = name.chars().filter(char::is_ascii_alphanumeric).collect();
        let plain = plain.to_ascii_lowercase();
        let any = |words: &[&str]| words.iter().any(|word| plain.contains(word));
        Says {
            suggested: any(&["suggest", "recommend"]),
            present: any(&["measured", "current", "configured"]),
            value: plain == "value",
            risk: any(&["risk"]),
            impact: any(&["impact"]),
            host: matches!(plain.as_str(), "hostname" | "viosname"),
        }
    }

    #[test]
    fn names_say_what_their_field_holds() {
        for (name, field) in [
            ("Suggested_Value", Says { suggested: true, ..Says::default() }),
            ("value", Says { value: true, ..Says::default() }),
            ("current-value", Says { present: true, ..Says::default() }),
            ("VIOS_Name", Says { host: true, ..Says::default() }),
            ("size", Says::default()),
        ] {
            assert_eq!(says(name), field, "{name}");
        }
        let long = format!("{}risk", "x".repeat(100));
        assert!(says(&long).risk);
    }

    proptest! {
        #[test]
        fn a_name_says_what_stands_in_it(
            words in prop::collection::vec(
                prop::sample::select(vec![
                    "suggest", "recommend", "measured", "current", "configured", "value", "risk", "impact", "host",
                    "vios", "name", "_", "-", "é", "R", "ris", "k", "x",
                ]),
                0..14,
            ),
        ) {
            let name = words.concat();
            prop_assert_eq!(says(&name), wanted(&name));
        }
    }
}
