//! A command without a prompt, as people and their scripts write it above what it printed, often with the host that was
//! asked.

use super::At;
use super::called;
use super::prompt::{asks_who, is_known, parse, program};
use super::table::may_begin_program;

/// A command without a prompt, with the host where that is said too.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Announced<'t> {
    pub(super) host: Option<&'t str>,
    pub(super) typed: &'t str,
}

/// A command without a prompt, as scripts and people announce it: `+ fcstat fcs0`, `=== lsmap -all ===`, `fcstat fcs0`; with
/// its host `vios1: lsmap -all`, `--- vios1 20260302-2215 --- fcstat fcs0`, `=== lspath on erpdb ===`.
pub(super) fn announced(line: &str) -> Option<Announced<'_>> {
    // Rules are as long as a line, and have no letter.
    let bytes = line.as_bytes();
    let is_rule =
        |first: &u8| !first.is_ascii_alphabetic() && !bytes.iter().any(u8::is_ascii_alphabetic);
    if bytes.first().is_none_or(is_rule) {
        return None;
    }
    // Most lines begin with a word that is no program.
    let may_run = bytes[0].is_ascii_alphabetic() && may_begin_program(line);
    let by_itself = || announced_alone(line, may_run).map(|typed| Announced { host: None, typed });
    announced_of_host(line, may_run).or_else(by_itself).or_else(|| told(line))
}

/// `lspath of aix7, this morning:`, `Output of "lspath" from aix7:`, `-- lspath (aix7) --`: what ends with a colon, or stands
/// behind marks, and names one command and one host.
fn told(line: &str) -> Option<Announced<'_>> {
    let bytes = line.as_bytes();
    let is_marked = bytes.len() > 2 && bytes[0] == bytes[1] && is_mark(char::from(bytes[0]));
    let may_name = |byte: &u8| byte.is_ascii_digit() || *byte == b'-';
    if !(is_marked || bytes.last() == Some(&b':'))
        || bytes.len() > 110
        || !bytes.iter().any(may_name)
    {
        return None;
    }
    let apart = |c: char| matches!(c, ' ' | '"' | '\'' | '`' | '(' | ')' | ',' | '*');
    let text = line.trim_matches(is_mark);
    // Most of what ends so names no program.
    let words = || text.split(apart).filter(|word| !word.is_empty());
    let runs = |word: &str| {
        word.starts_with(|c: char| c.is_ascii_lowercase() || c == '/')
            && (is_known(word) || asks_who(word))
    };
    let program = words().find(|word| runs(word))?;
    let mut hosts = words().filter(|word| *word != program && called::looks_like_host(word));
    let (host, None) = (hosts.next()?, hosts.next()) else { return None };
    let typed = &text[text.find(program)?..];
    let ends = [" on ", " of ", " from ", " at ", " (", "\"", "'", "`", ","];
    let end = ends.iter().filter_map(|sign| typed.find(sign)).min().unwrap_or(typed.len());
    let typed = fitting(typed[..end].trim())?;
    Some(Announced { host: Some(host), typed })
}

/// What scripts put around what they announce.
fn is_mark(c: char) -> bool {
    matches!(c, '+' | '=' | '#' | '*' | '-' | '>' | ' ' | ':')
}

/// The same where a host is named.
fn announced_of_host(line: &str, may_run: bool) -> Option<Announced<'_>> {
    let bytes = line.as_bytes();
    let first = *bytes.first()?;
    if first.is_ascii_alphabetic() {
        return behind_host(line).or_else(|| on_host(line, may_run));
    }
    if !is_mark(char::from(first)) {
        return None;
    }
    let signs = line.bytes().take_while(|byte| is_mark(char::from(*byte)));
    if line.len() < 100 && matches!(signs.filter(|byte| *byte != b' ').count(), 1 | 2) {
        // `# vios1 - lspath`
        let text = line.trim_start_matches(is_mark);
        let (name, rest) = text.split_once([' ', ':'])?;
        let rest = rest.trim_start_matches(is_mark).trim_end_matches(is_mark);
        let fits = called::looks_like_host(name) && (is_known(rest) || asks_who(rest));
        return fitting(rest).filter(|_| fits).map(|typed| Announced { host: Some(name), typed });
    }
    if line.len() > 200 || !bytes.get(..3)?.iter().all(|byte| *byte == first) {
        return None;
    }
    let text = line.trim_start_matches(is_mark).trim_end_matches(is_mark);
    // `lspath on erpdb`, `lspath (erpdb)`
    if is_known(text) {
        let (typed, host) = [" on ", " at ", " @ ", " @", " ("].iter().find_map(|before| {
            let (typed, host) = text.rsplit_once(before)?;
            Some((typed, called::before_command(host.trim_end_matches(')'))??))
        })?;
        return fitting(typed).map(|typed| Announced { host: Some(host), typed });
    }
    let mut from = 0;
    while let Some(gap) = text.get(from..)?.find(' ') {
        let (before, rest) = (&text[..from + gap], text[from + gap..].trim_start_matches(is_mark));
        from += gap + 1;
        if !before.is_empty() && (is_known(rest) || asks_who(rest)) {
            let host = called::before_command(before)?;
            return fitting(rest).map(|typed| Announced { host, typed });
        }
    }
    None
}

/// `vios1: lspath`, `vios1 - lspath`, `vios1 lspath`. Most lines have no program behind their first word.
fn behind_host(line: &str) -> Option<Announced<'_>> {
    let bytes = line.as_bytes();
    let sign = |byte: &u8| matches!(byte, b':' | b' ' | b',');
    let end = bytes.iter().take(64).position(sign)?;
    let (by_colon, sign) = match bytes.get(end..)? {
        [b':', b' ', ..] => (true, 2),
        [b' ', b'-' | b'|', b' ', ..] => (false, 3),
        [b',', b' ', ..] => (false, 2),
        [b' ', ..] => (false, 1),
        _ => return None,
    };
    let from = end + sign;
    if !bytes.get(from).is_some_and(|byte| matches!(byte, b'a'..=b'z' | b'/' | b' ')) {
        return None;
    }
    let name = &line[..end];
    if !by_colon && !called::looks_like_host(name) {
        return None;
    }
    let typed = line[from..].trim();
    let asks = || typed.starts_with(['i', 'o', 'u', 'h', '/']) && asks_who(typed);
    let runs = may_begin_program(typed) || asks();
    if !runs {
        return None;
    }
    let host = called::before_command(name)?;
    fitting(typed).map(|typed| Announced { host, typed })
}

/// `lspath on vios1:`, `Output of lspath on vios1`, `lspath (vios1)`: to the line's end, and nothing else.
fn on_host(line: &str, may_run: bool) -> Option<Announced<'_>> {
    const WORDS: [&str; 4] = ["output", "running", "executing", "result"];
    let may_tell = matches!(line.as_bytes().first(), Some(b'o' | b'O' | b'r' | b'R' | b'e' | b'E'));
    let told = may_tell
        && WORDS.iter().any(|word| {
            line.get(..word.len()).is_some_and(|start| start.eq_ignore_ascii_case(word))
        });
    if line.len() > 100 || !told && !may_run {
        return None;
    }
    let first = line.split(' ').next().unwrap_or("");
    let text = line.trim_end_matches([':', ' ', '.']);
    let (typed, host) = [" on ", " ("].iter().find_map(|before| text.rsplit_once(before))?;
    let host = Some(host.trim_end_matches(')')).filter(|host| called::looks_like_host(host))?;
    let typed = match told {
        true => {
            typed[first.len()..].trim_start().trim_start_matches("of ").trim_start_matches("from ")
        }
        false => typed,
    };
    fitting(typed.trim_matches(['`', '"', '\'', ' ']))
        .map(|typed| Announced { host: Some(host), typed })
}

fn announced_alone(line: &str, may_run: bool) -> Option<&str> {
    let first = *line.as_bytes().first()?;
    if !(first.is_ascii_alphabetic()
        || matches!(first, b'+' | b'=' | b'#' | b'*' | b'-' | b'/' | b'>'))
    {
        return None;
    }
    if first.is_ascii_alphabetic() {
        let word = || line.split_ascii_whitespace().next().unwrap_or("").trim_end_matches(is_mark);
        let level = || {
            matches!(first, b'i' | b'o')
                && matches!(line.trim_end(), "ioslevel" | "oslevel -s" | "ioscli ioslevel")
        };
        let program = || may_run && is_known(word());
        if !program() && !level() {
            return None;
        }
    }
    let text = line.trim_start_matches(is_mark).trim_end_matches(is_mark);
    // `+ ssh vios1 lspath`
    if first == b'+' && text.starts_with("ssh ") {
        let runs = parse(text, At { file: 0, line: 1 });
        return runs.parts.first().filter(|part| is_known(part.program)).map(|_| text);
    }
    fitting(text)
}

/// A command as it is announced, which prose about one is not.
pub(super) fn fitting(text: &str) -> Option<&str> {
    if asks_who(text) && !is_known(text) {
        let mut words = text.split_ascii_whitespace().skip(1);
        let fits = words.next().is_none_or(|arg| arg.starts_with('-') && words.next().is_none());
        return fits.then_some(text);
    }
    if !is_known(text) {
        return None;
    }
    let mut words = text.split_ascii_whitespace();
    let name = program(words.next()?);
    let fits = match (name, words.next()) {
        (
            "lsnports" | "lssp" | "lparstat" | "date" | "seastat" | "lspath" | "lsmpio" | "errpt"
            | "prtconf" | "vmstat" | "uptime",
            None,
        ) => true,
        ("cat", Some(path)) => path.starts_with("/proc/"),
        ("ioscli", Some(_)) => true,
        ("date", Some(_)) => false,
        ("vmstat" | "lparstat" | "iostat", Some(arg)) if arg.parse::<u32>().is_ok() => true,
        (_, Some(arg)) => {
            arg.starts_with('-') || ["fcs", "ent", "hdisk"].iter().any(|kind| arg.starts_with(kind))
        }
        _ => false,
    };
    // Prose about a command is longer than the command.
    (fits && words.count() < 12).then_some(text)
}
