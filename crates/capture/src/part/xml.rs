//! As much of XML (1.0, fifth edition) as reports need: elements, attributes, text, the five entities that need no
//! declaration. Comments, declarations and processing instructions are passed over; what is not well formed ends it.

use std::borrow::Cow;

use crate::text::Plain;

/// What comes next: slices of the line where nothing in it had to be joined or replaced, for most of it is passed over.
#[derive(Debug, PartialEq)]
pub(super) enum Event<'t> {
    /// `<name`.
    Open(Cow<'t, str>),
    /// `a="b"`, of the element that was opened last.
    Attribute(Cow<'t, str>, Cow<'t, str>),
    /// Text between tags, without white space around it.
    Text(Cow<'t, str>),
    /// `</name>`, or the `/>` of an element that is closed at once.
    Close,
}

impl Event<'_> {
    fn into_owned<'o>(self) -> Event<'o> {
        let own = |text: Cow<'_, str>| Cow::Owned(text.into_owned());
        match self {
            Event::Open(name) => Event::Open(own(name)),
            Event::Attribute(name, value) => Event::Attribute(own(name), own(value)),
            Event::Text(text) => Event::Text(own(text)),
            Event::Close => Event::Close,
        }
    }
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
    /// Takes a line; `None` when it cannot be XML.
    pub(super) fn line<'t>(&mut self, text: &'t str, events: &mut Vec<Event<'t>>) -> Option<()> {
        // Most tags end on the line on which they begin.
        if self.rest.is_empty() {
            let rest = cut(text, events)?;
            self.keep(rest);
            return Some(());
        }
        let mut joined = std::mem::take(&mut self.rest);
        joined.push_str(text);
        let mut found = Vec::new();
        let rest = cut(&joined, &mut found)?;
        events.extend(found.into_iter().map(Event::into_owned));
        self.keep(rest);
        Some(())
    }

    fn keep(&mut self, rest: &str) {
        if !rest.bare().is_empty() {
            self.rest.push_str(rest);
            self.rest.push('\n');
        }
    }
}

/// Cuts as much as is whole; what is left is given back.
fn cut<'t>(text: &'t str, events: &mut Vec<Event<'t>>) -> Option<&'t str> {
    if text.len() > LONGEST {
        return None;
    }
    let mut todo = text;
    while let Some(open) = memchr::memchr(b'<', todo.as_bytes()) {
        let tail = &todo[open..];
        let end = match tail.starts_with("<!--") {
            true => tail.find("-->").map(|end| end + 3),
            false => memchr::memchr(b'>', tail.as_bytes()).map(|end| end + 1),
        };
        let Some(end) = end.map(|end| open + end) else { break };
        let text = todo[..open].bare();
        if !text.is_empty() {
            events.push(Event::Text(unescape(text)));
        }
        let tag = todo[open + 1..end - 1].bare();
        match tag.as_bytes().first()? {
            b'!' | b'?' => {}
            b'/' => events.push(Event::Close),
            _ => element(tag, events)?,
        }
        todo = &todo[end..];
    }
    Some(todo)
}

/// `name a="b" c='d'`, perhaps with `/` at its end.
fn element<'t>(tag: &'t str, events: &mut Vec<Event<'t>>) -> Option<()> {
    let (tag, empty) = tag.strip_suffix('/').map_or((tag, false), |tag| (tag, true));
    let word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.' | b':');
    let end = tag.bytes().position(|byte| !word(byte)).unwrap_or(tag.len());
    let (name, rest) = tag.split_at_checked(end)?;
    if name.is_empty() || !rest.chars().next().is_none_or(char::is_whitespace) {
        return None;
    }
    events.push(Event::Open(Cow::Borrowed(name)));
    let mut rest = rest.bare_start();
    while !rest.is_empty() {
        let (key, value) = rest.split_once('=')?;
        let value = value.bare_start();
        let quote = value.chars().next().filter(|quote| matches!(quote, '"' | '\''))?;
        let (value, after) = value[1..].split_once(quote)?;
        events.push(Event::Attribute(Cow::Borrowed(key.bare()), unescape(value)));
        rest = after.bare_start();
    }
    if empty {
        events.push(Event::Close);
    }
    Some(())
}

fn unescape(text: &str) -> Cow<'_, str> {
    const ENTITIES: [(&str, char); 5] =
        [("&lt;", '<'), ("&gt;", '>'), ("&quot;", '"'), ("&apos;", '\''), ("&amp;", '&')];
    let mut rest = text;
    let mut plain = String::new();
    while let Some(mark) = memchr::memchr(b'&', rest.as_bytes()) {
        let (before, entity) = rest.split_at(mark);
        let known = ENTITIES.iter().find_map(|(name, c)| Some((*c, entity.strip_prefix(name)?)));
        plain.push_str(before);
        let (c, after) = known.unwrap_or(('&', &entity[1..]));
        plain.push(c);
        rest = after;
    }
    if plain.is_empty() {
        return Cow::Borrowed(text);
    }
    plain.push_str(rest);
    Cow::Owned(plain)
}

#[cfg(test)]
mod tests {
    use super::unescape;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn entities_are_what_they_stand_for(
            parts in prop::collection::vec(
                prop::sample::select(vec!["&lt;", "&gt;", "&quot;", "&apos;", "&amp;", "&", "lt;", "amp;", ";", "é", "x"]),
                0..8,
            ),
        ) {
            let text = parts.concat();
            let wanted = text
                .replace("&lt;", "<")
                .replace("&gt;", ">")
                .replace("&quot;", "\"")
                .replace("&apos;", "'")
                .replace("&amp;", "&");
            prop_assert_eq!(unescape(&text), wanted);
        }
    }
}
