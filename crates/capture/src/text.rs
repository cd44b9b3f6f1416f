//! From bytes to lines.
//!
//! A capture is text that went through terminals, mail and editors. Here it becomes lines: UTF-16 as Windows tools save
//! it is decoded, colour codes and other control characters are taken out, bytes that are no UTF-8 are read as
//! Windows-1252, and what editors and browsers make of spaces, quotes and dashes becomes ASCII again. Line numbers stay
//! those of the file. Text that needs none of this is borrowed. What stands before every line is taken off in
//! [`super::dress`].

use std::borrow::Cow;

use super::{At, Unread};

/// A line without its end.
#[derive(Debug, Clone, Copy)]
pub(super) struct Line<'t> {
    /// Its text, without the line's end and without white space before that.
    pub(super) text: &'t str,
    /// Its length before white space at the end was taken off.
    pub(super) width: usize,
    /// Where it stands.
    pub(super) at: At,
    /// Whether a line's end follows; the last line of a file may lack it.
    pub(super) ended: bool,
}

impl<'t> Line<'t> {
    /// The text without white space on both sides.
    pub(super) fn trimmed(&self) -> &'t str {
        self.text.bare_start()
    }

    /// Whether there is nothing to read in it.
    pub(super) fn is_blank(&self) -> bool {
        self.text.is_empty()
    }
}

/// A place in a text, to read on from; copying it is a bookmark.
#[derive(Debug, Clone, Copy)]
pub(super) struct Lines<'t> {
    /// The line that comes next: it is looked at several times and cut off once.
    next: Option<Line<'t>>,
    /// What follows it.
    rest: &'t str,
    /// The numbers of the lines that follow it, where they do not grow by one.
    numbers: &'t [u32],
}

impl<'t> Lines<'t> {
    /// The lines of a text, of which the first stands at this place.
    pub(super) fn new(text: &'t str, first: At) -> Self {
        let (next, rest) = cut_line(text, first);
        Self { next, rest, numbers: &[] }
    }

    /// The same, where the lines behind the first have these numbers.
    pub(super) fn numbered(self, numbers: &'t [u32]) -> Self {
        Self { numbers, ..self }
    }

    /// The line that comes next, without moving to it.
    pub(super) fn peek(&self) -> Option<Line<'t>> {
        self.next
    }

    /// The line that comes next and is not blank.
    pub(super) fn peek_text(&self) -> Option<Line<'t>> {
        let mut ahead = *self;
        ahead.find(|line| !line.is_blank())
    }
}

impl<'t> Iterator for Lines<'t> {
    type Item = Line<'t>;

    fn next(&mut self) -> Option<Line<'t>> {
        let line = self.next?;
        let number = match self.numbers {
            [] => line.at.line.saturating_add(1),
            [number, rest @ ..] => {
                self.numbers = rest;
                *number
            }
        };
        let at = At { file: line.at.file, line: number };
        (self.next, self.rest) = cut_line(self.rest, at);
        Some(line)
    }
}

/// The first line of a text and what follows it.
fn cut_line(text: &str, at: At) -> (Option<Line<'_>>, &str) {
    if text.is_empty() {
        return (None, "");
    }
    let (line, rest, ended) = match memchr::memchr(b'\n', text.as_bytes()) {
        Some(end) => (&text[..end], &text[end + 1..], true),
        None => (text, "", false),
    };
    let line = line.without_return();
    let text = line.bare_end();
    (Some(Line { text, width: line.len(), at, ended }), rest)
}

/// What readers ask of every line, for text that is ASCII nearly always: bytes are looked at, and characters only where
/// a byte is none of it.
pub(super) trait Plain {
    /// Divided at the first colon.
    fn split_key(&self) -> Option<(&str, &str)>;
    /// Like `trim_start`.
    fn bare_start(&self) -> &str;
    /// Like `trim_end`.
    fn bare_end(&self) -> &str;
    /// Like `trim`.
    fn bare(&self) -> &str;
    /// Without the carriage returns at its end.
    fn without_return(&self) -> &str;
}

impl Plain for str {
    fn split_key(&self) -> Option<(&str, &str)> {
        let colon = memchr::memchr(b':', self.as_bytes())?;
        Some((&self[..colon], &self[colon + 1..]))
    }

    fn bare_start(&self) -> &str {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let start = self.bytes().position(|byte| !blank(&byte)).unwrap_or(self.len());
        match self.as_bytes().get(start) {
            None | Some(b'!'..=b'~') => &self[start..],
            _ => self.trim_start(),
        }
    }

    fn bare_end(&self) -> &str {
        let blank = |byte: &u8| matches!(byte, b' ' | b'\t');
        let end = self.bytes().rposition(|byte| !blank(&byte)).map_or(0, |last| last + 1);
        match self.as_bytes()[..end].last() {
            None | Some(b'!'..=b'~') => &self[..end],
            _ => self.trim_end(),
        }
    }

    fn bare(&self) -> &str {
        // A whole line has its end.
        let text = match self.as_bytes() {
            [.., b'\r', b'\n'] => &self[..self.len() - 2],
            [.., b'\n'] => &self[..self.len() - 1],
            _ => self,
        };
        text.bare_end().bare_start()
    }

    fn without_return(&self) -> &str {
        match self.as_bytes() {
            [.., b'\r'] => self.trim_end_matches('\r'),
            _ => self,
        }
    }
}

/// The lines of a text, each with its end.
pub(super) fn whole_lines(text: &str) -> Vec<&str> {
    let mut lines = Vec::with_capacity(text.len() / 32);
    let mut start = 0;
    for end in memchr::memchr_iter(b'\n', text.as_bytes()) {
        lines.push(&text[start..=end]);
        start = end + 1;
    }
    if start < text.len() {
        lines.push(&text[start..]);
    }
    lines
}

/// How many lines a text has.
pub(super) fn count_lines(text: &str) -> usize {
    let ends = memchr::memchr_iter(b'\n', text.as_bytes()).count();
    ends + usize::from(!text.is_empty() && !text.ends_with('\n'))
}

/// The text of a file, and what is odd about it.
pub(super) fn decode(bytes: &[u8]) -> (Cow<'_, str>, Vec<String>) {
    let mut notes = Vec::new();
    let (wide, text) = match bytes {
        [0xff, 0xfe, rest @ ..] => (true, Cow::Owned(utf16(rest, u16::from_le_bytes))),
        [0xfe, 0xff, rest @ ..] => (true, Cow::Owned(utf16(rest, u16::from_be_bytes))),
        [0xef, 0xbb, 0xbf, rest @ ..] => (false, utf8(rest, &mut notes)),
        _ => match unmarked_utf16(bytes) {
            Some(pair) => (true, Cow::Owned(utf16(bytes, pair))),
            None => (false, utf8(bytes, &mut notes)),
        },
    };
    if wide {
        notes.push("is UTF-16".to_owned());
    }
    let text = if has_control(text.as_bytes()) {
        if text.contains('\0') {
            notes.push("has NUL bytes; they are left out".to_owned());
        }
        Cow::Owned(clean(&text))
    } else {
        text
    };
    let text = if !text.contains('\n') && text.contains('\r') {
        Cow::Owned(text.replace('\r', "\n"))
    } else {
        text
    };
    let text = match without_tags(&text) {
        Some(plain) => Cow::Owned(plain),
        None => text,
    };
    let text = match without_entities(&text) {
        Some(plain) => Cow::Owned(plain),
        None => text,
    };
    let text = match plain(&text) {
        Some(plain) => Cow::Owned(plain),
        None => text,
    };
    (text, notes)
}

/// UTF-8; bytes that are none are read as Windows-1252, of which ISO 8859-1 is a part.
fn utf8<'b>(bytes: &'b [u8], notes: &mut Vec<String>) -> Cow<'b, str> {
    if let Ok(text) = std::str::from_utf8(bytes) {
        return Cow::Borrowed(text);
    }
    notes.push("has bytes that are not UTF-8; they are read as Windows-1252".to_owned());
    let mut out = String::with_capacity(bytes.len() + 64);
    for chunk in bytes.utf8_chunks() {
        out.push_str(chunk.valid());
        out.extend(chunk.invalid().iter().map(|byte| windows_1252(*byte)));
    }
    Cow::Owned(out)
}

fn windows_1252(byte: u8) -> char {
    match byte {
        0x82 | 0x91 | 0x92 => '\'',
        0x84 | 0x93 | 0x94 => '"',
        0x85 => '\u{2026}',
        0x96 | 0x97 => '-',
        0x80..=0x9f => char::REPLACEMENT_CHARACTER,
        other => char::from(other),
    }
}

/// So much of a file tells whether it is text.
const PROBE: usize = 8 << 10;

/// Whether these are the first bytes of something that is no text: a text has NUL bytes in UTF-16 only.
///
/// What [`Captures::read`](super::Captures::read) takes for UTF-16 is none here, and the other way round.
pub fn is_binary(bytes: &[u8]) -> bool {
    let start = bytes.get(..PROBE).unwrap_or(bytes);
    let marked = start.starts_with(b"\xff\xfe") || start.starts_with(b"\xfe\xff");
    !marked && start.contains(&0) && unmarked_utf16(start).is_none()
}

/// Text of ASCII in UTF-16 has a NUL in every pair, on the same side; text in UTF-8 has none.
fn unmarked_utf16(bytes: &[u8]) -> Option<fn([u8; 2]) -> u16> {
    let (pairs, _odd) = bytes.get(..4096).unwrap_or(bytes).as_chunks::<2>();
    let zeros = |side: usize| pairs.iter().filter(|pair| pair[side] == 0).count();
    let (first, second) = (zeros(0), zeros(1));
    let most = |count: usize| count >= 2 && count * 2 >= pairs.len();
    match (most(first), most(second)) {
        (false, true) if first * 16 <= pairs.len() => Some(u16::from_le_bytes),
        (true, false) if second * 16 <= pairs.len() => Some(u16::from_be_bytes),
        _ => None,
    }
}

/// The text with ASCII where editors and browsers have put something that looks like it; `None` when it has none.
fn plain(text: &str) -> Option<String> {
    if text.is_ascii() || !text.chars().any(|c| !c.is_ascii() && ascii(c).is_some()) {
        return None;
    }
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match ascii(c).filter(|_| !c.is_ascii()) {
            Some(ascii) => out.push_str(ascii),
            None => out.push(c),
        }
    }
    Some(out)
}

/// What a character stands for: spaces, quotes, dashes, lines of tables; nothing for marks that are not seen.
fn ascii(c: char) -> Option<&'static str> {
    Some(match c {
        '\u{a0}' | '\u{1680}' | '\u{2000}'..='\u{200a}' | '\u{202f}' | '\u{205f}' | '\u{3000}' => {
            " "
        }
        '\u{ad}'
        | '\u{200b}'..='\u{200f}'
        | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{2069}'
        | '\u{feff}' => "",
        '\u{2018}'..='\u{201b}' | '\u{2032}' => "'",
        '\u{201c}'..='\u{201f}' | '\u{2033}' | '\u{ab}' | '\u{bb}' => "\"",
        '\u{2010}'..='\u{2015}' | '\u{2212}' => "-",
        '\u{2026}' => "...",
        '\u{2500}' | '\u{2501}' | '\u{2504}' | '\u{2505}' | '\u{2550}' => "-",
        '\u{2502}' | '\u{2503}' | '\u{2551}' => "|",
        '\u{250c}'..='\u{254b}' | '\u{2552}'..='\u{256c}' => "+",
        '\u{ff1a}' => ":",
        _ => return None,
    })
}

fn utf16(bytes: &[u8], pair: fn([u8; 2]) -> u16) -> String {
    let (pairs, _odd) = bytes.as_chunks::<2>();
    char::decode_utf16(pairs.iter().map(|two| pair(*two)))
        .map(|read| read.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect()
}

fn is_control(byte: u8) -> bool {
    // Without branches, for the sake of `has_control`.
    ((byte < 0x20) & (byte != b'\t') & (byte != b'\n') & (byte != b'\r')) | (byte == 0x7f)
}

/// Whether there is a control character; in blocks, which the compiler compares many bytes at a time.
fn has_control(bytes: &[u8]) -> bool {
    bytes
        .chunks(4096)
        .any(|block| block.iter().fold(false, |found, byte| found | is_control(*byte)))
}

/// The text without escape sequences and control characters; a backspace takes the character before it.
fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(index) = rest.bytes().position(is_control) {
        out.push_str(&rest[..index]);
        let control = rest.as_bytes()[index];
        rest = &rest[index + 1..];
        match control {
            0x1b => rest = after_escape(rest),
            0x08 if out.ends_with(|last| last != '\n') => {
                out.pop();
            }
            _ => {}
        }
    }
    out.push_str(rest);
    out
}

/// What follows an escape sequence whose first byte has been taken (ECMA-48, 5.3 and 5.4); it never takes a line's end.
fn after_escape(rest: &str) -> &str {
    let bytes = rest.as_bytes();
    let end = match bytes.first() {
        Some(b'[') => {
            let body = bytes[1..].iter().position(|byte| !matches!(byte, 0x20..=0x3f));
            body.map_or(rest.len(), |index| match bytes[1 + index] {
                0x40..=0x7e => index + 2,
                _ => index + 1,
            })
        }
        // A title: until BEL, or until the escape of its own end.
        Some(b']') => {
            let body = bytes.iter().position(|byte| matches!(byte, 0x07 | 0x1b | b'\n' | b'\r'));
            body.map_or(rest.len(), |index| if bytes[index] == 0x07 { index + 1 } else { index })
        }
        Some(0x20..=0x7e) => 1,
        _ => 0,
    };
    &rest[end..]
}

/// Keeps a line that was not understood, together with the one before it if that was kept for the same reason.
pub(super) fn keep(list: &mut Vec<Unread>, line: Line<'_>, why: &str) {
    if let Some(last) = list.last_mut() {
        let follows = last.at.file == line.at.file && last.at.line + last.lines == line.at.line;
        if follows && last.why == why {
            last.lines += 1;
            if last.text.len() + line.text.len() < Unread::KEPT {
                last.text.push('\n');
                last.text.push_str(line.text);
            }
            return;
        }
    }
    let text = line.text.get(..Unread::KEPT).map_or_else(|| cut(line.text), str::to_owned);
    list.push(Unread { at: line.at, lines: 1, text, why: why.to_owned() });
}

fn cut(text: &str) -> String {
    let end = text.floor_char_boundary(Unread::KEPT);
    text[..end].to_owned()
}

/// A number as the commands print it: decimal, or hexadecimal with `0x`.
pub(super) fn number(text: &str) -> Option<u64> {
    match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(digits) if digits.starts_with(|c: char| c.is_ascii_hexdigit()) => {
            u64::from_str_radix(digits, 16).ok()
        }
        Some(_) => None,
        None if text.starts_with(|c: char| c.is_ascii_digit()) => text.parse().ok(),
        None => None,
    }
}

/// A count, also as some levels and locales group its digits: `1,987,220`.
pub(super) fn count(text: &str) -> Option<u64> {
    number(text).or_else(|| grouped(text))
}

fn grouped(text: &str) -> Option<u64> {
    /// More digits than a counter has.
    const LONGEST: usize = 27;
    if text.len() > LONGEST {
        return None;
    }
    let mut groups = text.split(',');
    let first = groups.next().filter(|first| (1..=3).contains(&first.len()))?;
    let mut digits = first.to_owned();
    let mut more = 0;
    for group in groups {
        if group.len() != 3 {
            return None;
        }
        digits.push_str(group);
        more += 1;
    }
    let all = digits.bytes().all(|byte| byte.is_ascii_digit());
    (more > 0 && all).then(|| digits.parse().ok())?
}

/// A number with or without a fraction: digits and points alone.
///
/// What has few digits is put together here: a whole number below 2^53 and a power of ten are both exact, so their quotient
/// is the nearest number there is, as `parse` would find it.
pub(super) fn decimal(text: &str) -> Option<f64> {
    const EXACT: usize = 15;
    const TENS: [f64; EXACT + 1] =
        [1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15];
    let bytes = text.as_bytes();
    if !bytes.first()?.is_ascii_digit() {
        return None;
    }
    let (mut whole, mut point) = (0_u64, None);
    for (index, byte) in bytes.iter().enumerate() {
        match byte {
            b'0'..=b'9' => whole = whole.wrapping_mul(10).wrapping_add(u64::from(byte - b'0')),
            b'.' if point.is_none() => point = Some(index),
            _ => return None,
        }
    }
    let fraction = point.map_or(0, |point| bytes.len() - 1 - point);
    if bytes.len() > EXACT {
        return text.parse().ok();
    }
    #[allow(clippy::cast_precision_loss)]
    let whole = whole as f64;
    Some(if fraction == 0 { whole } else { whole / TENS[fraction] })
}

/// Whether a name or number was made unreadable: `0xC050760XXXXXXXXX`, `c0:50:76:xx:xx:xx`, `10*****`.
#[must_use]
pub fn is_masked(text: &str) -> bool {
    // Asked of nearly every value: once over its bytes.
    let (mut before, mut run) = (b' ', false);
    for byte in text.bytes() {
        if byte == b' ' {
            return false;
        }
        run |= byte == before && matches!(byte, b'X' | b'x' | b'*' | b'#' | b'?');
        before = byte;
    }
    run
}

/// A text that was copied out of the source of a page, with the characters that its entities stand for.
fn without_entities(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_sign = |at: usize| bytes[at..].starts_with(b"&gt;") || bytes[at..].starts_with(b"&lt;");
    let source = memchr::memchr_iter(b'&', bytes).any(is_sign);
    // A page itself, and the XML of `part`, have signs of their own.
    let has_own = || memchr::memchr2(b'<', b'>', bytes).is_some();
    (source && !has_own()).then(|| with_entities(text))
}

/// The text with its signs in place of their names.
fn with_entities(text: &str) -> String {
    const ENTITIES: [(&str, &str); 6] = [
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&nbsp;", " "),
        ("&amp;", "&"),
    ];
    ENTITIES.iter().fold(text.to_owned(), |text, (entity, sign)| text.replace(entity, sign))
}

/// The text of a page that a browser saved: tags are left out, the ends of its lines and rows are those of lines.
fn without_tags(text: &str) -> Option<String> {
    const PAGES: [&str; 6] = ["<!doctype html", "<html", "<head", "<body", "<pre", "<table"];
    /// A tag ends within so many bytes, or it is none.
    const LONGEST: usize = 4096;
    const ENDS: [&str; 6] = ["br", "/tr", "/p", "/div", "/pre", "/li"];
    let start = text.trim_start();
    let may_be = matches!(start.as_bytes(), [b'<', next, ..] if *next != b'?');
    if !may_be || !PAGES.iter().any(|page| after_start(start, page).is_some()) {
        return None;
    }
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(open) = memchr::memchr(b'<', rest.as_bytes()) {
        let (before, tagged) = rest.split_at(open);
        plain.push_str(before);
        // A sign that begins no tag is one of the text.
        let is_tag =
            tagged[1..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!'));
        let near = &tagged.as_bytes()[..tagged.len().min(LONGEST)];
        let close = memchr::memchr(b'>', near).filter(|_| is_tag);
        let Some(close) = close else {
            plain.push('<');
            rest = &tagged[1..];
            continue;
        };
        let name = tagged[1..close].split([' ', '\n', '\t']).next().unwrap_or("");
        let name = name.trim_end_matches('/').to_ascii_lowercase();
        match name.as_str() {
            "/td" | "/th" => plain.push_str("  "),
            name if ENDS.contains(&name) => plain.push('\n'),
            _ => {}
        }
        rest = &tagged[close + 1..];
    }
    plain.push_str(rest);
    // Signs of the page's own stand for those of the text.
    Some(with_entities(&plain))
}

/// What follows a beginning, in whatever case it is written.
pub(super) fn after_start<'t>(text: &'t str, start: &str) -> Option<&'t str> {
    let (head, rest) = text.split_at_checked(start.len())?;
    head.eq_ignore_ascii_case(start).then_some(rest)
}

/// Whether the line holds the name of a device and nothing else, as loops print it before what they ask for.
pub(super) fn is_device_alone(text: &str) -> bool {
    ["hdisk", "fcs", "fscsi", "ent", "vfchost", "vhost", "vscsi"]
        .iter()
        .any(|kind| is_device(text, kind))
}

/// The device that a heading of somebody's own names: `== fscsi2`, `*** fscsi2 ***`, `fscsi2:`, `Adapter fscsi2`. Lines with
/// another number or with more words are none.
pub(super) fn device_of_heading(text: &str) -> Option<&str> {
    let mark = |c: char| !c.is_ascii_alphanumeric();
    let mut words = text.split(mark).filter(|word| !word.is_empty());
    let (first, second, third) = (words.next()?, words.next(), words.next());
    let plain = |word: &str| word.bytes().all(|byte| byte.is_ascii_alphabetic());
    let name = match (second, third) {
        (None, None) => first,
        (Some(name), None) if plain(first) => name,
        (Some(second), Some(name)) if plain(first) && plain(second) => name,
        _ => return None,
    };
    (words.next().is_none() && is_device_alone(name)).then_some(name)
}

/// Whether the text is a device's name: letters, perhaps more, and a number, as in `fcs0` or `vfchost12`.
pub(super) fn is_device(text: &str, prefix: &str) -> bool {
    text.strip_prefix(prefix)
        .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::{decimal, is_masked};
    use proptest::prelude::*;

    /// As `parse` reads it, where digits and points alone stand there.
    fn parsed(text: &str) -> Option<f64> {
        let plain = text.starts_with(|c: char| c.is_ascii_digit())
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        text.parse().ok().filter(|_| plain)
    }

    #[test]
    fn what_is_no_number_is_none() {
        for text in ["", ".", ".5", "-1", "+1", "1.2.3", "1..2", "1e5", "1,5", "inf", "0x10", "1 "]
        {
            assert_eq!(decimal(text), None, "{text}");
        }
        for text in ["0", "5.", "007", "0.0", "999999999999999", "9999999999999999999999.5"] {
            assert_eq!(decimal(text), parsed(text), "{text}");
            assert!(decimal(text).is_some(), "{text}");
        }
    }

    proptest! {
        #[test]
        fn masked_is_what_has_two_marks_side_by_side(text in "[Xx*#?a0: -]{0,12}") {
            let runs = ["XX", "xx", "**", "##", "??"];
            let wanted = runs.iter().any(|run| text.contains(run)) && !text.contains(' ');
            prop_assert_eq!(is_masked(&text), wanted);
        }

        #[test]
        fn a_number_is_the_nearest_there_is(text in "[0-9]{1,12}(\\.[0-9]{0,12})?") {
            prop_assert_eq!(decimal(&text), parsed(&text));
        }
    }
}
