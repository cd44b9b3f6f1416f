//! As much of XML (1.0, fifth edition) as reports need: elements, attributes, text, the five entities that need no
//! declaration. Comments, declarations and processing instructions are passed over; what is not well formed ends it.

use super::At;

/// What comes next.
#[derive(Debug, PartialEq)]
pub(super) enum Event {
    /// `<name a="b">`; with `true` it is closed at once.
    Open(String, Vec<(String, String)>, bool),
    /// Text between tags, without white space around it.
    Text(String),
    /// `</name>`.
    Close,
}

/// Cuts what lines bring into events.
#[derive(Default)]
pub(super) struct Cutter {
    /// What has not been cut yet: a tag whose end has not come, or text.
    rest: String,
}

/// A tag or a text that is longer is none of a report's.
const LONGEST: usize = 16_384;

impl Cutter {
    /// Takes a line; `None` when it cannot be XML. Events that end in it have its place.
    pub(super) fn line(&mut self, text: &str, at: At, events: &mut Vec<(Event, At)>) -> Option<()> {
        // Most tags end on the line on which they begin.
        let mut before = std::mem::take(&mut self.rest);
        let mut todo = match before.is_empty() {
            true => text,
            false => {
                before.push_str(text);
                before.as_str()
            }
        };
        if todo.len() > LONGEST {
            return None;
        }
        while let Some(open) = memchr::memchr(b'<', todo.as_bytes()) {
            let tail = &todo[open..];
            let end = match tail.starts_with("<!--") {
                true => tail.find("-->").map(|end| end + 3),
                false => memchr::memchr(b'>', tail.as_bytes()).map(|end| end + 1),
            };
            let Some(end) = end.map(|end| open + end) else { break };
            let text = todo[..open].trim();
            if !text.is_empty() {
                events.push((Event::Text(unescape(text)), at));
            }
            let tag = todo[open + 1..end - 1].trim();
            match tag.as_bytes().first()? {
                b'!' | b'?' => {}
                b'/' => events.push((Event::Close, at)),
                _ => events.push((element(tag)?, at)),
            }
            todo = &todo[end..];
        }
        if !todo.trim().is_empty() {
            self.rest.push_str(todo);
            self.rest.push('\n');
        }
        Some(())
    }
}

/// `name a="b" c='d'`, perhaps with `/` at its end.
fn element(tag: &str) -> Option<Event> {
    let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
    let end = tag.find(char::is_whitespace).unwrap_or(tag.len());
    let (name, mut rest) = tag.split_at(end);
    let mut attributes = Vec::new();
    rest = rest.trim_start();
    while !rest.is_empty() {
        let (key, value) = rest.split_once('=')?;
        let value = value.trim_start();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, after) = value[1..].split_once(quote)?;
        attributes.push((key.trim().to_owned(), unescape(value)));
        rest = after.trim_start();
    }
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    let fits = !name.is_empty() && name.bytes().all(word);
    fits.then(|| Event::Open(name.to_owned(), attributes, empty))
}

fn unescape(text: &str) -> String {
    if !text.contains('&') {
        return text.to_owned();
    }
    text.replace("&lt;", "<")
        .replace("&gt;", ">")
        .replace("&quot;", "\"")
        .replace("&apos;", "'")
        .replace("&amp;", "&")
}
