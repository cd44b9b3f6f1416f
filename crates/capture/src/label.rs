//! What people and their scripts write before a value, or above a passage, to say of what it is: a host, a device, a day, in
//! any order and with any signs between. `vios1 fcs0 Error Frames: 88`, `2026-11-22;vios1;fcs0;Invalid CRC Count;17`,
//! `== vios1 / fcs0 ==`.
//!
//! Words alone are no label: what follows has to be something that a command prints of such a device.

mod tables;
mod value;

use std::borrow::Cow;

use super::text::{self, Line, Lines, Plain};
use super::{called, prompt, recognise};

pub(super) use tables::spelled;
pub(super) use value::{Value, implied, of as value, printed_by};

/// Of what a passage is, as far as somebody has written it there.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub(super) struct Label<'t> {
    pub(super) host: Option<&'t str>,
    pub(super) device: Option<&'t str>,
    /// In seconds since 1970, of a clock without a zone.
    pub(super) time: Option<u64>,
    /// What the values are.
    pub(super) value: Option<Value>,
}

/// So many words are at most part of a label.
const WORDS: usize = 8;
/// Lines longer than this have no label, and are none.
const LONG: usize = 240;
/// Headings are shorter.
const HEADING: usize = 90;

/// What stands between words.
const fn is_sign(c: char) -> bool {
    matches!(
        c,
        ' ' | '\t'
            | ':'
            | ';'
            | ','
            | '|'
            | '/'
            | '@'
            | '['
            | ']'
            | '('
            | ')'
            | '='
            | '-'
            | '#'
            | '*'
            | '<'
            | '>'
            | '.'
            | '~'
            | '+'
            | '"'
            | '_'
    )
}

/// The same before a value: what is assigned or quoted is somebody's text.
const fn is_divider(c: char) -> bool {
    is_sign(c) && !matches!(c, '=' | '"' | '<' | '>' | '~' | '+' | '#' | '*' | '(' | ')')
}

/// The next word, and what follows it.
fn word(text: &str) -> Option<(&str, &str)> {
    let of_word = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');
    let end = text.bytes().position(|byte| !of_word(byte)).unwrap_or(text.len());
    let word = text.get(..end)?.trim_end_matches(['-', '_', '.']);
    (!word.is_empty()).then(|| text.split_at(word.len()))
}

/// Words that tell what a name beside them is.
fn is_telling(word: &str) -> bool {
    const WORDS: [&str; 27] = [
        "adapter",
        "aix",
        "at",
        "attr",
        "attributes",
        "client",
        "device",
        "disk",
        "for",
        "from",
        "hba",
        "host",
        "hostname",
        "interface",
        "lpar",
        "node",
        "of",
        "on",
        "output",
        "partition",
        "port",
        "server",
        "statistics",
        "stats",
        "system",
        "the",
        "vios",
    ];
    WORDS.binary_search(&word.to_ascii_lowercase().as_str()).is_ok()
}

/// `fcs0`, `ent12`, `hdisk3`
fn is_device(word: &str) -> bool {
    text::is_device_alone(word) || text::is_device(word, "en")
}

impl<'t> Label<'t> {
    /// Takes the word that a text begins with, and gives what follows; `None` where it is none of a label.
    fn take(&mut self, text: &'t str) -> Option<&'t str> {
        if text.as_bytes().first()?.is_ascii_digit() {
            let (time, after) = time(text)?;
            return self.time.replace(time).is_none().then_some(after);
        }
        let (word, after) = word(text)?;
        let (host, device) = match word.rsplit_once(['_', '-', '.']) {
            _ if is_device(word) => (None, Some(word)),
            // `vios1_fcs0`
            Some((host, device)) if is_device(device) => (Some(host), Some(device)),
            _ => (Some(word), None),
        };
        if let Some(host) = host {
            let fits = called::may_be_host(host) && !is_telling(host) && self.host.is_none();
            self.host = Some(host).filter(|_| fits);
            self.host?;
        }
        if let Some(device) = device {
            self.device.replace(device).is_none().then_some(())?;
        }
        Some(after)
    }

    /// Whether it says as much as the other, of what that is.
    fn is_as(&self, other: &Self) -> bool {
        (self.host, self.device, self.time) == (other.host, other.device, other.time)
    }

    fn is_empty(&self) -> bool {
        self.host.is_none() && self.device.is_none() && self.time.is_none()
    }
}

/// `2026-11-22`, `22.11.2026`, `20261122`, with a time of day behind a blank or a `T`: in seconds since 1970, and what
/// follows it.
fn time(text: &str) -> Option<(u64, &str)> {
    let of_date = |byte: u8| byte.is_ascii_digit() || matches!(byte, b'-' | b'.' | b'/');
    let end = text.bytes().position(|byte| !of_date(byte)).unwrap_or(text.len());
    let (date, after) = text.split_at(end);
    let days = day(date.trim_end_matches(['-', '.', '/']))?;
    let of_day = after.strip_prefix(['T', ' ']).and_then(clock);
    let (of_day, after) = of_day.unwrap_or((0, after));
    Some((days * 86_400 + of_day, after))
}

/// The days since 1970 of a date.
fn day(word: &str) -> Option<u64> {
    let number = |text: &str| {
        text.parse::<u64>().ok().filter(|_| text.bytes().all(|byte| byte.is_ascii_digit()))
    };
    let of = |year: &str, month: &str, day: &str| {
        let year = number(year).filter(|year| (1990..2200).contains(year))?;
        let month = number(month).filter(|month| (1..=12).contains(month))?;
        let day = number(day).filter(|day| (1..=31).contains(day))?;
        Some(prompt::days(year, month, day))
    };
    if word.len() == 8 && word.is_ascii() {
        return of(&word[..4], &word[4..6], &word[6..]);
    }
    let mut parts = word.split(['-', '.', '/']);
    let (one, two, three) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() {
        return None;
    }
    if one.len() == 4 { of(one, two, three) } else { of(three, two, one) }
}

/// The seconds of `08:00`, `08:00:01`, and what follows it.
fn clock(text: &str) -> Option<(u64, &str)> {
    let two = |at: usize| text.get(at..at + 2)?.parse::<u64>().ok();
    let (hour, minute) = (two(0)?, two(3)?);
    if text.as_bytes().get(2) != Some(&b':') || hour > 23 || minute > 59 {
        return None;
    }
    let second = match text.as_bytes().get(5) {
        Some(b':') => two(6).filter(|second| *second < 61),
        _ => None,
    };
    let end = if second.is_some() { 8 } else { 5 };
    Some((hour * 3600 + minute * 60 + second.unwrap_or(0), text.get(end..)?))
}

/// Whether a line can begin with a label, by its first word, which ends at `end`: what follows most words is none of a label.
pub(super) fn may_stand_before(line: &[u8], end: usize) -> bool {
    let Some(first) = line.first().filter(|_| line.len() <= LONG) else { return false };
    // `Failed hdisk0 fscsi1`
    if begins_with_state(line) {
        return false;
    }
    let behind = line.get(end..).unwrap_or_default();
    if !matches!(behind.first(), Some(b' ' | b'\t' | b':' | b';' | b',' | b'|' | b'/' | b'@')) {
        return false;
    }
    let skip = behind.iter().position(|byte| !DIVIDES[usize::from(*byte)]);
    let Some(next) = skip.map(|at| &behind[at..]) else { return false };
    // `vios1_fcs0: `
    let joined = || {
        let word = line.get(..end).unwrap_or_default();
        let sign = word.iter().rposition(|byte| matches!(byte, b'_' | b'-' | b'.'));
        sign.is_some_and(|sign| begins_with_device(&word[sign + 1..]))
    };
    let ends_with_number = end.checked_sub(1).is_some_and(|last| line[last].is_ascii_digit());
    if first.is_ascii_digit() || ends_with_number && (begins_with_device(line) || joined()) {
        return true;
    }
    match next {
        // `2026-11-22`, `20261122`
        [b'2', b'0', two, three, sign, ..] => {
            let year = two.is_ascii_digit() && three.is_ascii_digit();
            let all = next.get(4..8).is_some_and(|rest| rest.iter().all(u8::is_ascii_digit));
            year && (matches!(sign, b'-' | b'/' | b'.') || all)
        }
        // `22.11.2026`
        [b'0'..=b'3', two, b'.', four, ..] => two.is_ascii_digit() && four.is_ascii_digit(),
        // `aix1 Failed hdisk0 fscsi1`
        [b'E' | b'F' | b'M' | b'D', ..] => begins_with_state(next),
        _ => begins_with_device(next),
    }
}

/// What divides words, by its byte: nearly every line is asked.
const DIVIDES: [bool; 256] = {
    let (mut all, mut byte) = ([false; 256], 0);
    while byte < all.len() {
        all[byte] = is_divider(byte as u8 as char);
        byte += 1;
    }
    all
};

fn begins_with_state(text: &[u8]) -> bool {
    let states: &[u8] = match text.first() {
        Some(b'E') => b"Enabled ",
        Some(b'F') => b"Failed ",
        Some(b'M') => b"Missing ",
        Some(b'D') if text.get(1) == Some(&b'e') => b"Defined ",
        Some(b'D') => b"Disabled ",
        _ => return false,
    };
    text.starts_with(states)
}

/// Whether a text begins with the name of a device: most do not by their first letter.
fn begins_with_device(text: &[u8]) -> bool {
    let number = match text {
        [b'e', b'n', b't', number, ..]
        | [b'e', b'n', number, ..]
        | [b'f', b'c', b's', number, ..]
        | [b'f', b's', b'c', b's', b'i', number, ..]
        | [b'h', b'd', b'i', b's', b'k', number, ..]
        | [b'v', b'f', b'c', b'h', b'o', b's', b't', number, ..]
        | [b'v', b'h', b'o', b's', b't', number, ..]
        | [b'v', b's', b'c', b's', b'i', number, ..] => number,
        _ => return false,
    };
    number.is_ascii_digit()
}

/// What stands before a value, and the value as a command prints it. Behind a label that the line before had, anything may
/// stand.
pub(super) fn before<'t>(
    line: &'t str,
    known: Option<&Label<'_>>,
) -> Option<(Label<'t>, Cow<'t, str>)> {
    if line.len() > LONG {
        return None;
    }
    let mut label = Label::default();
    let mut rest = line.trim_start_matches(is_divider);
    // `pvid_adapter  ent6  Default virtual adapter … True`
    let is_row = recognise::is_attribute(line);
    if is_row && word(rest).is_some_and(|(name, _)| value::is_attribute_name(name)) {
        return None;
    }
    for _ in 0..WORDS {
        if !label.is_empty() {
            if let Some((value, body)) = value::of(rest, label.device.is_some()) {
                label.value = Some(value);
                let fits =
                    known.is_none_or(|known| known.is_as(&label) && known.value == Some(value));
                return fits.then_some((label, body));
            }
            if let Some(known) = known.filter(|known| known.is_as(&label)) {
                label.value = known.value;
                return Some((label, Cow::Borrowed(rest)));
            }
        }
        let after = label.take(rest)?;
        rest = after.trim_start_matches(is_divider);
    }
    None
}

/// The label that a line is, above what a command has printed of that device.
pub(super) fn heading<'t>(line: Line<'t>, mut ahead: Lines<'_>) -> Option<Label<'t>> {
    let text = line.text.bare_end();
    if text.len() > HEADING || !may_head(text.as_bytes()) {
        return None;
    }
    let label = of_heading(text)?;
    ahead.next();
    let rule = |line: &Line<'_>| line.text.chars().all(is_sign);
    let next = std::iter::from_fn(|| ahead.next()).take(4).find(|line| !rule(line))?;
    let follows = value::of(next.trimmed(), true);
    let begins = || {
        let lines = Lines::new(next.text, next.at);
        recognise::heading(lines.peek()?, lines)
    };
    (follows.is_some() || begins().is_some()).then_some(label)
}

/// Whether there is the name of one device in a short line.
fn may_head(text: &[u8]) -> bool {
    let starts = |at: &usize| {
        matches!(text[*at], b'e' | b'f' | b'h' | b'v')
            && at.checked_sub(1).is_none_or(|before| !text[before].is_ascii_alphanumeric())
            && begins_with_device(&text[*at..])
    };
    // Reports are headed in capitals, paths by their states.
    let capitals = text.iter().take_while(|byte| byte.is_ascii_uppercase()).count();
    !begins_with_state(text)
        && (capitals < 5 || text.get(capitals).is_some_and(u8::is_ascii_digit))
        && text.iter().any(u8::is_ascii_digit)
        && (0..text.len()).filter(starts).take(2).count() == 1
}

/// The same of its words alone.
fn of_heading(text: &str) -> Option<Label<'_>> {
    let mut label = Label::default();
    let mut rest = text.trim_start_matches(is_sign);
    // `1) fcs0`
    if let Some((number, after)) = rest.split_once(')')
        && !number.is_empty()
        && number.bytes().all(|byte| byte.is_ascii_digit())
    {
        rest = after.trim_start_matches(is_sign);
    }
    // Beside a program there are its flags and what they ask for.
    let mut program = false;
    for _ in 0..WORDS {
        if rest.is_empty() {
            break;
        }
        let (word, after) = word(rest)?;
        let before = &text[..text.len() - rest.len()];
        // What begins with a program is a command.
        if prompt::is_asked(word) {
            program = true;
            (!before.chars().all(is_sign)).then_some(())?;
        }
        let is_flag = program && before.ends_with('-') && !is_device(word);
        let named = !program || is_device(word) || called::looks_like_host(word);
        let in_brackets = before.ends_with('(');
        let after = if in_brackets && !called::looks_like_host(word) && !is_device(word) {
            // What somebody remarks.
            rest.split_once(')')?.1
        } else if is_telling(word) || prompt::is_asked(word) || is_flag {
            after
        } else {
            label.take(rest).filter(|_| named)?
        };
        rest = after.trim_start_matches(is_sign);
    }
    (rest.is_empty() && label.device.is_some()).then_some(label)
}
