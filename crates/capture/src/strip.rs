//! One line, and what may stand before it.

use std::borrow::Cow;
use std::mem::discriminant;

use super::label::{self, Label};
use super::text::{self, Plain};
use super::{Taken, called, hosts};

/// What stands before a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Dress {
    /// `> ` of a quotation.
    Quote,
    /// `vios1: `, `vios1| `, `[vios1] `.
    Host,
    /// `captures/vios1.txt:` of `grep -H`.
    File,
    /// `Nov 22 14:05:09 vios1 root: `.
    Log,
    /// `[14:05:09] `, `2026-11-22T14:05:09Z `.
    Clock,
    /// `2026-11-22 vios1 fcs0 ` before a value or a row of that.
    Label,
    /// `  12  `, `12:`, growing by one.
    Number,
    /// `# `, `// `, `* ` of a comment.
    Comment,
    /// `"…",` of a JSON list.
    Json,
    /// `| a | b |`.
    Table,
    /// White space, as much as in the first line.
    Indent,
}

impl Dress {
    pub(super) const COUNT: usize = 11;

    pub(super) fn index(self) -> usize {
        self as usize
    }

    /// Comments hold commands all the time, and mean none by it.
    pub(super) fn may_hold_commands(self) -> bool {
        self != Dress::Comment
    }
}

/// What lines of one run have in common.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Key<'t> {
    Nothing,
    Host(&'t str),
    File(&'t str),
    Label(Label<'t>),
    Number(u64),
    Width(usize),
    Mark(&'static str),
}

impl Key<'_> {
    pub(super) fn host(&self) -> Option<String> {
        match self {
            Key::Host(host) => Some((*host).to_owned()),
            Key::Label(label) => label.host.map(str::to_owned),
            // One that is sure is a host's own name.
            Key::File(name) => called::of_file(name).host,
            _ => None,
        }
    }

    /// The command that printed a file, by its name, as lines of it were picked.
    pub(super) fn command(&self) -> Option<String> {
        match self {
            Key::File(name) => Some(format!("{} | grep", called::of_file(name).command?)),
            Key::Label(label) => label::implied(label.device?, label.value?),
            _ => None,
        }
    }

    /// When lines are of.
    pub(super) fn taken(&self) -> Option<Taken> {
        let Key::Label(label) = self else { return None };
        label.time.map(Taken::utc)
    }
}

/// What may stand before the line, by its first characters.
pub(super) fn kinds(line: &str) -> &'static [Dress] {
    match line.as_bytes().first() {
        Some(b'>') => &[Dress::Quote],
        Some(b'|') => &[Dress::Table],
        Some(b'+') if line.starts_with("+-") => &[Dress::Table],
        Some(b'"') => &[Dress::Json],
        Some(b' ' | b'\t') => match line.bare_start().as_bytes() {
            [b'"', ..] => &[Dress::Json, Dress::Indent],
            [b'0'..=b'9', ..] => &[Dress::Number, Dress::Indent],
            [b'>', ..] => &[Dress::Quote],
            [b'|', ..] => &[Dress::Table],
            // Of XML the first line and the root are known.
            [b'<', next, ..] if !matches!(next, b'?' | b'v' | b'V') => &[],
            _ => &[Dress::Indent],
        },
        Some(b'0'..=b'9') => {
            &[Dress::Log, Dress::Label, Dress::Clock, Dress::Number, Dress::File, Dress::Host]
        }
        Some(b'[') => &[Dress::Label, Dress::Clock, Dress::Host],
        Some(b'<') => &[Dress::Log],
        Some(b'/') => &[Dress::File, Dress::Comment],
        Some(b'.') => &[Dress::File],
        Some(b'#' | b'*' | b';') => &[Dress::Comment],
        Some(b'A'..=b'Z' | b'a'..=b'z') => behind_word(line.as_bytes()),
        _ => &[],
    }
}

/// What a word at the beginning may be, by the byte behind it: most lines begin with a word and are not dressed.
fn behind_word(line: &[u8]) -> &'static [Dress] {
    let end = line.iter().position(|byte| !is_host_byte(*byte)).unwrap_or(line.len());
    match (end, line.get(end)) {
        _ if label::may_stand_before(line, end) => match line.get(end) {
            Some(b'/') => &[Dress::Label, Dress::File],
            // The name of a month.
            Some(b' ') if end == 3 => &[Dress::Log, Dress::Label, Dress::Host],
            _ => &[Dress::Label, Dress::File, Dress::Host],
        },
        (_, Some(b':')) if line[..end].contains(&b'.') => &[Dress::File, Dress::Host],
        (_, Some(b':')) => &[Dress::Host],
        (_, Some(b'|' | b';' | b'\t')) => &[Dress::Host],
        (1.., Some(b' ')) if line.get(end + 1) == Some(&b'|') => &[Dress::Host],
        (1.., Some(b'/')) => &[Dress::File],
        // The name of a month.
        (3, Some(b' ')) => &[Dress::Log],
        _ => &[],
    }
}

type Stripped<'t> = (Cow<'t, str>, Key<'t>, &'t str);

/// The line without what stands before it, what the next line must have in common with it, and the line's end.
pub(super) fn strip<'t>(
    dress: Dress,
    line: &'t str,
    key: Option<&Key<'_>>,
) -> Option<Stripped<'t>> {
    let body = match line.as_bytes() {
        [.., b'\n' | b'\r'] => line.trim_end_matches(['\n', '\r']),
        _ => line,
    };
    let end = &line[body.len()..];
    let plain = |text: &'t str, key: Key<'t>| Some((Cow::Borrowed(text), key, end));
    // A run ends where the same kind of thing has another name.
    let same = |text: &'t str, now: Key<'t>| match key {
        Some(before) if discriminant(before) == discriminant(&now) && *before != now => None,
        _ => plain(text, now),
    };
    match dress {
        Dress::Quote => plain(quote(body)?, Key::Nothing),
        Dress::Host => {
            let (host, rest) = host(body, key)?;
            plain(rest, Key::Host(host))
        }
        Dress::File => {
            let (name, rest) = file(body)?;
            same(rest, Key::File(name))
        }
        Dress::Log => {
            let (host, rest) = log(body)?;
            same(rest, Key::Host(host))
        }
        Dress::Clock => plain(clock(body)?, Key::Nothing),
        Dress::Label => {
            let known = match key {
                Some(Key::Label(label)) => Some(label),
                _ => None,
            };
            let (label, rest) = label::before(body, known)?;
            Some((rest, Key::Label(label), end))
        }
        Dress::Number => {
            let (number, rest) = number(body)?;
            let follows =
                !matches!(key, Some(Key::Number(before)) if before.checked_add(1) != Some(number));
            follows.then(|| plain(rest, Key::Number(number)))?
        }
        Dress::Comment => {
            let mark = ["# ", "// ", "* ", "; "].into_iter().find(|mark| {
                body.starts_with(mark) || (!body.is_empty() && body == mark.trim_end())
            })?;
            let same = !matches!(key, Some(Key::Mark(before)) if *before != mark);
            same.then(|| plain(body.get(mark.len()..).unwrap_or(""), Key::Mark(mark)))?
        }
        Dress::Json => Some((Cow::Owned(json(body)?), Key::Nothing, end)),
        Dress::Table => Some((Cow::Owned(cells(body)?), Key::Nothing, end)),
        Dress::Indent => {
            let width = body.len() - body.bare_start().len();
            let wanted = match key {
                Some(Key::Width(wanted)) => *wanted,
                _ => width,
            };
            (width >= wanted && wanted > 0).then(|| plain(&body[wanted..], Key::Width(wanted)))?
        }
    }
}

/// `> > text`
fn quote(line: &str) -> Option<&str> {
    let mut rest = line.trim_start().strip_prefix('>')?;
    while let Some(deeper) = rest.strip_prefix(' ').unwrap_or(rest).strip_prefix('>') {
        rest = deeper;
    }
    Some(rest.strip_prefix(' ').unwrap_or(rest))
}

fn is_host_byte(byte: u8) -> bool {
    /// Nearly every line is asked, byte by byte.
    const OF_HOST: [bool; 256] = {
        let (mut all, mut byte) = ([false; 256], 0);
        while byte < all.len() {
            let is = byte as u8;
            all[byte] = is.is_ascii_alphanumeric() || matches!(is, b'-' | b'_' | b'.');
            byte += 1;
        }
        all
    };
    OF_HOST[usize::from(byte)]
}

/// `vios1: text`, `vios1:`, `vios1| text`, `[vios1] text`.
fn host<'t>(line: &'t str, key: Option<&Key<'_>>) -> Option<(&'t str, &'t str)> {
    // The usual line has no name that the line before had.
    if let Some(Key::Host(before)) = key
        && !line.trim_start_matches('[').starts_with(before)
    {
        return None;
    }
    let bracket = line.starts_with('[');
    let text = line.strip_prefix('[').unwrap_or(line);
    let end = text.bytes().position(|byte| !is_host_byte(byte))?;
    let (name, rest) = text.split_at(end);
    let rest = match bracket {
        true => {
            let rest = rest.strip_prefix(']')?;
            rest.strip_prefix(" out:").unwrap_or(rest)
        }
        false => match rest.strip_prefix(':') {
            Some(rest) if rest.is_empty() || rest.starts_with([' ', '\t']) => rest,
            // `vios1:text`, `vios1;text`, and with a tab
            Some(rest) if !rest.starts_with(['/', '~', '[']) => {
                called::looks_like_host(name).then_some(rest)?
            }
            Some(_) => return None,
            None => match rest.strip_prefix([';', '\t']) {
                Some(rest) => called::looks_like_host(name).then_some(rest)?,
                None => behind_bar(name, rest)?,
            },
        },
    };
    let close = !bracket && !rest.starts_with([' ', '\t']);
    let fits = name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && !is_file(name)
        && name.len() <= 64
        && hosts::underlined(line).is_none()
        && (rest.is_empty() || close || rest.starts_with([' ', '\t']));
    let same = !matches!(key, Some(Key::Host(before)) if *before != name);
    (fits && same).then(|| (name, rest.strip_prefix([' ', '\t']).unwrap_or(rest)))
}

/// `vios1| text`, `vios1 | text`; what Ansible prints is no such line, and rows of a table may begin with a device.
fn behind_bar<'t>(name: &str, rest: &'t str) -> Option<&'t str> {
    let rest = rest.strip_prefix(" |").or_else(|| rest.strip_prefix('|'))?;
    (!text::is_device_alone(name) && !hosts::is_result(rest.trim_start())).then_some(rest)
}

/// `captures/vios1.txt:text`, as `grep -H` and `tail` with several files print.
fn file(line: &str) -> Option<(&str, &str)> {
    let (name, rest) = line.get(..line.floor_char_boundary(200))?.split_once(':')?;
    let prompt = rest.starts_with('/');
    // A command in the name makes it a file's, too.
    let tells = || {
        let fits = name.bytes().all(|byte| is_host_byte(byte) || byte == b'/');
        fits && name.contains(['.', '/', '_']) && called::of_file(name).command.is_some()
    };
    ((is_file(name) || tells()) && !prompt).then(|| (name, &line[name.len() + 1..]))
}

/// Whether a name is that of a file and of no host: its ending says so.
fn is_file(name: &str) -> bool {
    const ENDINGS: [&str; 8] = ["txt", "log", "out", "lst", "dat", "cap", "snap", "md"];
    let byte = |byte: u8| is_host_byte(byte) || byte == b'/';
    let ending = name.rsplit_once('.').map(|(_, ending)| ending);
    ending.is_some_and(|ending| ENDINGS.contains(&ending)) && name.bytes().all(byte)
}

/// `<13>Nov 22 14:05:09 vios1 user:notice root[4711]: text`, also with a time of ISO 8601.
fn log(line: &str) -> Option<(&str, &str)> {
    let text = match line.strip_prefix('<') {
        Some(rest) => {
            let text = rest.split_once('>')?.1;
            // RFC 5424 has its version there.
            text.strip_prefix("1 ").unwrap_or(text)
        }
        None => line,
    };
    let text = match date_and_time(text) {
        Some(rest) => rest,
        None => {
            let (month, rest) = text.split_once(' ')?;
            let named = month.len() == 3 && month.bytes().all(|byte| byte.is_ascii_alphabetic());
            let (day, rest) = rest.trim_start().split_once(' ').filter(|_| named)?;
            let is_day = !day.is_empty() && day.bytes().all(|byte| byte.is_ascii_digit());
            match time(rest).filter(|_| is_day) {
                Some(rest) => rest,
                // A day without a time: it is a head only where a host and its port follow.
                None => {
                    let (host, rest) = rest.split_once(' ').filter(|_| is_day)?;
                    let is_host = !host.is_empty() && host.bytes().all(is_host_byte);
                    let label = || label::before(rest, None);
                    return (is_host && label().is_some()).then_some((host, rest));
                }
            }
        }
    };
    let (host, rest) = text.strip_prefix(' ')?.trim_start().split_once(' ')?;
    let mut rest = rest.trim_start();
    if host.is_empty() || !host.bytes().all(is_host_byte) {
        return None;
    }
    let mut forwarded = None;
    if let Some(after) = rest.strip_prefix("Message forwarded from ") {
        let (name, after) = after.split_once(':')?;
        (forwarded, rest) = (Some(name), after.trim_start());
    }
    if let Some(text) = behind_header(rest) {
        return Some((forwarded.unwrap_or(host), text));
    }
    // The program comes last of at most three words, with a colon.
    for _ in 0..3 {
        let (word, after) = rest.split_once(' ').unwrap_or((rest, ""));
        if word.len() > 48 || word.is_empty() {
            return None;
        }
        rest = after;
        if word.ends_with(':') {
            return Some((forwarded.unwrap_or(host), rest));
        }
    }
    None
}

/// What follows the program, its number, the message's name and its data as RFC 5424 has them: `capt 4711 - - text`.
fn behind_header(rest: &str) -> Option<&str> {
    let mut words = rest.splitn(5, ' ');
    let (program, number, name, data) =
        (words.next()?, words.next()?, words.next()?, words.next()?);
    let is_number = number == "-" || number.bytes().all(|byte| byte.is_ascii_digit());
    let fits = !program.ends_with(':') && program.len() <= 48 && is_number && !number.is_empty();
    (fits && name.len() <= 32 && data == "-").then(|| words.next().unwrap_or(""))
}

/// What follows `14:05:09`, also with a fraction.
fn time(text: &str) -> Option<&str> {
    let bytes = text.as_bytes().get(..8)?;
    let fits = bytes.iter().enumerate().all(|(index, byte)| match index {
        2 | 5 => *byte == b':',
        _ => byte.is_ascii_digit(),
    });
    fits.then(|| {
        text[8..].trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '.' | ','))
    })
}

/// What follows `2026-11-22T14:05:09+01:00`.
fn date_and_time(text: &str) -> Option<&str> {
    let bytes = text.as_bytes().get(..11)?;
    let fits = bytes.iter().enumerate().all(|(index, byte)| match index {
        4 | 7 => matches!(byte, b'-' | b'/'),
        10 => matches!(byte, b'T' | b' '),
        _ => byte.is_ascii_digit(),
    });
    let rest = time(text.get(11..).filter(|_| fits)?)?;
    Some(rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | ':' | 'Z')))
}

/// `[14:05:09] text`, `[2026-11-22 14:05:09] text`, and both without brackets.
fn clock(line: &str) -> Option<&str> {
    let rest = match line.strip_prefix('[') {
        Some(inner) => {
            let rest = date_and_time(inner).or_else(|| time(inner))?;
            rest.strip_prefix(']')?
        }
        None => date_and_time(line).or_else(|| time(line))?,
    };
    let rest = rest.strip_prefix(" |").or_else(|| rest.strip_prefix(" :")).unwrap_or(rest);
    (rest.is_empty() || rest.starts_with([' ', '\t'])).then(|| rest.get(1..).unwrap_or(""))
}

/// `  12\ttext`, `12: text`, `12  text`.
fn number(line: &str) -> Option<(u64, &str)> {
    let text = line.trim_start();
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    let gap = ["\t", ":", "  ", " "].iter().find_map(|gap| rest.strip_prefix(gap));
    let rest = gap.or(rest.is_empty().then_some(""))?;
    Some((digits.parse().ok()?, rest))
}

/// `  "text",` with its escapes; a pair of a name and a value is none.
fn json(line: &str) -> Option<String> {
    let text = line.trim();
    // The end of the list, and of what is around it.
    if text.bytes().all(|byte| matches!(byte, b']' | b'}' | b',')) {
        return Some(String::new());
    }
    let inner = text.strip_suffix(',').unwrap_or(text).strip_prefix('"')?.strip_suffix('"')?;
    if inner.contains("\": ") {
        return None;
    }
    let mut out = String::with_capacity(inner.len());
    let mut chars = inner.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next()? {
                't' => out.push('\t'),
                'u' => {
                    let code: String = chars.by_ref().take(4).collect();
                    out.extend(u32::from_str_radix(&code, 16).ok().and_then(char::from_u32));
                }
                'n' | 'r' => out.push(' '),
                other => out.push(other),
            },
            '"' => return None,
            _ => out.push(c),
        }
    }
    Some(out)
}

/// `| a | b |` as columns; also the rules of such a table.
fn cells(line: &str) -> Option<String> {
    let text = line.trim();
    if text.starts_with('+') {
        let rule = text.bytes().all(|byte| matches!(byte, b'+' | b'-' | b'='));
        return rule.then(|| text.replace(['+', '='], "-"));
    }
    let inner = text.strip_prefix('|')?;
    let inner = inner.strip_suffix('|').unwrap_or(inner);
    if inner.bytes().all(|byte| matches!(byte, b'|' | b'-' | b':' | b' ')) && inner.contains('-') {
        return Some(inner.replace(['|', ':'], " ").trim().to_owned());
    }
    let cells: Vec<&str> = inner.split('|').map(str::trim).collect();
    Some(cells.join("  ").trim_end().to_owned())
}
