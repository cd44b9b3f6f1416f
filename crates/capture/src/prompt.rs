//! Prompts and the commands behind them.
//!
//! A prompt tells which partition was logged in to, the command which report follows and about which device. Prompts
//! are free text; what is accepted as one is listed at [`prompt`]. A line that only holds a command that is known here
//! counts too, also behind marks such as `+`, `==` or `###`, as scripts print them.

use super::announced::fitting;
use super::called;
use super::table::is_program;
use super::text::Line;
use super::{At, Read, Taken};
use crate::clean::is_host_name;

/// A line that was typed: slices of it, for a large capture holds many.
#[derive(Debug, Clone)]
pub(super) struct Command<'t> {
    /// As typed, without the prompt.
    pub(super) typed: Read<&'t str>,
    /// Its parts, as `;`, `&&` and `|` divide them; a filter belongs to the part before it.
    pub(super) parts: Vec<Part<'t>>,
}

/// One program with its arguments.
#[derive(Debug, Clone, Default)]
pub(super) struct Part<'t> {
    /// The program, without path.
    pub(super) program: &'t str,
    /// Its arguments.
    pub(super) args: Vec<&'t str>,
    /// The first filter behind it, such as `grep`.
    pub(super) filter: Option<&'t str>,
    /// The partition that it ran on, where the command says so (`ssh`, `viosvrcmd`).
    pub(super) partition: Option<&'t str>,
}

impl<'t> Part<'t> {
    /// The argument after the flag.
    pub(super) fn after(&self, flag: &str) -> Option<&'t str> {
        let index = self.args.iter().position(|arg| *arg == flag)?;
        self.args.get(index + 1).copied()
    }

    /// Whether the flag is given.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.args.contains(&flag)
    }

    /// Whether it is run for several devices: an argument is a variable, or has one in it, `fcs$i`.
    pub(super) fn is_in_loop(&self) -> bool {
        self.args.iter().any(|arg| arg.contains('$'))
    }

    /// The arguments that are neither flags nor belong to one of `with_value`.
    pub(super) fn plain(&self, with_value: &[&str]) -> Option<&'t str> {
        let mut skip = false;
        self.args.iter().copied().find(|arg| {
            let flag = arg.starts_with('-');
            let take = !flag && !skip;
            skip = flag && with_value.contains(arg);
            take
        })
    }
}

/// What a prompt line says.
#[derive(Debug, Clone, Copy)]
pub(super) struct Prompt<'t> {
    /// The partition, when it stands there.
    pub(super) partition: Option<&'t str>,
    /// What stands where the partition's name should, and is none.
    pub(super) no_name: Option<&'t str>,
    /// What was typed; empty when nothing was.
    pub(super) typed: &'t str,
}

/// Reads a prompt with or without a command.
///
/// Accepted: `$ `, `# `, `% ` and `> ` at the start of the line; the same signs behind `host`, `host:/path`,
/// `user@host:/path`, `[user@host]path`, `[host:user:/path]`, `host(/path)`, `(0)user @ host: /path` and the like. A line `(0)user @ host: /path` without a
/// sign is the first of two lines of a prompt.
pub(super) fn prompt(line: &str) -> Option<Prompt<'_>> {
    let first = *line.as_bytes().first()?;
    if first == b' ' || first == b'\t' || first == b'-' {
        return None;
    }
    if first == b'<' {
        return in_angles(line);
    }
    if let Some(prompt) = usual(line) {
        return Some(prompt);
    }
    // A status in brackets before the prompt, as in `(0)root @ vios1: /`.
    let body = without_status(line);
    // Most lines have none of the signs, and no brackets either.
    let start = &body.as_bytes()[..body.len().min(120)];
    if body.len() == line.len()
        && memchr::memchr3(b'#', b'$', b'>', start).is_none()
        && memchr::memchr2(b'%', b'[', start).is_none()
        && !matches!(first, b'(' | b'{')
    {
        return None;
    }
    if let Some(prompt) = bracketed_path(body).or_else(|| bracketed_host(body)) {
        return Some(prompt);
    }
    let end = body.len().min(120);
    let mut from = 0;
    while let Some(found) =
        body.as_bytes()[from..end].iter().position(|byte| matches!(byte, b'#' | b'$' | b'>' | b'%'))
    {
        let index = from + found;
        let (before, sign_on) = body.split_at(index);
        let after = &sign_on[1..];
        let variable = before.ends_with(' ')
            && after.starts_with(|c: char| c.is_ascii_alphabetic())
            && !(before.contains(":/") && is_known(after));
        let redirected = body.as_bytes()[index] == b'>' && is_known(before);
        if !variable
            && !redirected
            && (is_before_sign(before) || is_host_and_user(before) && is_known(after.trim()))
            && is_after_sign(before, after)
            && !is_assignment(after)
        {
            return Some(Prompt::of(before, after.trim()));
        }
        if !variable
            && !redirected
            && is_known(after)
            && let Some(name) = odd(before)
        {
            return Some(Prompt { partition: Some(name), no_name: None, typed: after.trim() });
        }
        // `>` inside a prompt such as `<0> host:/>` is not looked for further than the second sign.
        from = index + 1;
        if before.len() > 80 || has_gap(before) {
            return None;
        }
    }
    let two_lines = body.len() < line.len() && body.len() < 80 && body.contains('@');
    (two_lines && host(body).is_some()).then(|| Prompt::of(body, ""))
}

/// `host:/path> command`, which is what most prompts are: what is left to [`prompt`] is not decided here.
fn usual(line: &str) -> Option<Prompt<'_>> {
    let bytes = line.as_bytes();
    let end = |from: usize, inside: fn(&u8) -> bool| {
        bytes.get(from..)?.iter().position(|byte| !inside(byte)).map(|length| from + length)
    };
    let word = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    let host = end(0, word)?;
    if bytes[host] != b':' || bytes.get(host + 1) != Some(&b'/') {
        return None;
    }
    let path =
        |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'/' | b'.' | b'_' | b'-');
    let is_sign = |at: &usize| *at <= 80 && matches!(bytes[*at], b'#' | b'$' | b'>');
    let sign = end(host + 1, path).filter(is_sign)?;
    let (name, before, after) = (&line[..host], &line[..sign], &line[sign + 1..]);
    let typed = after.strip_prefix(' ').unwrap_or(after);
    let fits = typed.as_bytes().first().is_none_or(u8::is_ascii_alphabetic)
        && memchr::memchr(b'=', typed.as_bytes()).is_none()
        && !(bytes[sign] == b'>' && is_program(program(before)))
        && bytes[0].is_ascii_alphanumeric()
        && is_host_name(name);
    fits.then(|| Prompt { partition: Some(name), no_name: None, typed: typed.trim_end() })
}

/// `<host>/path # command`
fn in_angles(line: &str) -> Option<Prompt<'_>> {
    let (name, rest) = line[1..].split_once('>')?;
    // Text follows the tags of a page, and of XML.
    if !rest.starts_with(['/', '~', ' ']) {
        return None;
    }
    // `<host> command`
    let typed = rest.trim();
    let named = is_host_name(name) && name.starts_with(|c: char| c.is_ascii_alphabetic());
    if named && is_known(typed) && fitting(typed).is_some() {
        return Some(Prompt { partition: Some(name), no_name: None, typed });
    }
    // `<root@host:/> command`
    if name.contains('@')
        && is_known(typed)
        && fitting(typed).is_some()
        && let Some(name) = odd(name)
    {
        return Some(Prompt { partition: Some(name), no_name: None, typed });
    }
    let sign = rest.find(['#', '$', '>']).filter(|_| rest.starts_with(['/', '~', ' ']))?;
    let (path, typed) = (rest[..sign].trim(), rest[sign + 1..].trim());
    let fits = is_host_name(name) && !path.contains(' ') && (typed.is_empty() || is_known(typed));
    fits.then_some(Prompt { partition: Some(name), no_name: None, typed })
}

/// The host in what stands before the sign of a known command, if one word alone can be it, or one alone looks like it:
/// `host /path`, `host->`, `*** host ***`, `AIX host root`, `host!user:/path`, `$$ host $$`, `host(user)/path`, `PROD host /`.
fn odd(before: &str) -> Option<&str> {
    if before.is_empty() || before.len() > 60 || has_gap(before) {
        return None;
    }
    let system = |word: &&str| ["AIX", "VIOS", "Linux"].contains(word) || USERS.contains(word);
    let is_mark =
        |c: char| !(c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '/' | '~' | ',' | ';'));
    let words = before.split(' ').filter(|word| !word.starts_with(['/', '~']) && !is_clock(word));
    // `host:/path`
    let words = words.flat_map(|word| word.split(":/").next().unwrap_or("").split(is_mark));
    let words = words
        .map(|word| word.split('/').next().unwrap_or("").trim_matches('-'))
        .filter(|word| !word.is_empty() && !system(word));
    let words: Vec<&str> = words.collect();
    let is_name = |word: &&str| {
        is_host_name(word) && !is_known(word) && word.starts_with(|c: char| c.is_ascii_alphabetic())
    };
    let mut like = words.iter().copied().filter(|word| called::looks_like_host(word));
    match words[..] {
        [name] => Some(name).filter(is_name),
        [name, ..] if before.contains(['!', '|']) => Some(name).filter(is_name),
        [_, _] | [_, _, _] => like.next().filter(|_| like.next().is_none()).filter(is_name),
        _ => None,
    }
}

/// `14:05:09`
fn is_clock(word: &str) -> bool {
    word.contains(':') && word.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
}

/// `name = …`, as scripts have it behind `$`.
fn is_assignment(after: &str) -> bool {
    let mut words = after.split_ascii_whitespace();
    words.next().is_some() && words.next() == Some("=")
}

/// `user@host:[/path]command`
fn bracketed_path(body: &str) -> Option<Prompt<'_>> {
    memchr::memchr(b'[', body.as_bytes())?;
    let (before, rest) = body.split_once(":[/")?;
    let (_, typed) = rest.split_once(']')?;
    if before.len() > 60 || !before.contains('@') || before.contains(' ') {
        return None;
    }
    Some(Prompt::of(before, typed.trim_start_matches([' ', '$', '#', '>']).trim()))
}

/// `[host:user:/path] command`, `[host] command`, `(host) command`, `{host:user} command`
fn bracketed_host(body: &str) -> Option<Prompt<'_>> {
    let close = match body.bytes().next()? {
        b'[' => ']',
        b'(' => ')',
        b'{' => '}',
        _ => return None,
    };
    let (inner, typed) = body[1..].split_once(close)?;
    let Some((name, rest)) = inner.split_once(':') else {
        let typed = typed.trim();
        let named = inner.starts_with(|c: char| c.is_ascii_alphabetic()) && is_host_name(inner);
        let fits = named && !USERS.contains(&inner) && (is_known(typed) || asks_who(typed));
        return fits.then_some(Prompt { partition: Some(inner), no_name: None, typed });
    };
    let typed = typed.trim_start_matches([' ', '$', '#', '>']).trim();
    let path = rest.trim_end_matches(':').rsplit(':').next()?.starts_with(['/', '~']);
    // Without a path only what a known command follows.
    let path = path || is_known(typed);
    let fits = path && !inner.contains(' ') && inner.len() < 80 && host(name) == Some(name);
    let command =
        typed.is_empty() || typed.starts_with(|c: char| c.is_ascii_alphabetic() || c == '/');
    (fits && command).then_some(Prompt { partition: Some(name), no_name: None, typed })
}

fn without_status(line: &str) -> &str {
    // `[14:05:09] `
    if let Some((time, rest)) = line.strip_prefix('[').and_then(|rest| rest.split_once(']'))
        && time.len() >= 5
        && time.bytes().all(|byte| byte.is_ascii_digit() || byte == b':')
    {
        return rest.trim_start();
    }
    line.strip_prefix('(')
        .and_then(|rest| rest.split_once(')'))
        .filter(|(status, _)| !status.is_empty() && status.bytes().all(|b| b.is_ascii_digit()))
        .map_or(line, |(_, rest)| rest.trim_start())
}

/// Whether the text can stand before a prompt's sign.
fn is_before_sign(before: &str) -> bool {
    let before = before.strip_suffix(' ').unwrap_or(before);
    if before.is_empty() {
        return true;
    }
    if before.len() > 80 || has_gap(before) || before.contains(['<', '=', '"', '\t', ',']) {
        return false;
    }
    let word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    if !before.contains(' ') && before.chars().all(word) {
        return before.starts_with(|c: char| c.is_ascii_alphabetic());
    }
    let bytes = before.as_bytes();
    let path = memchr::memchr_iter(b':', bytes)
        .any(|colon| matches!(bytes.get(colon + 1..), Some([b'/' | b'~', ..] | [b' ', b'/', ..])));
    let marked = before.starts_with(['[', '{', '(']);
    // `host(/path)`
    let in_brackets = before.ends_with(')')
        && before.split_once("(/").is_some_and(|(name, _)| is_host_name(name))
        && !before.contains(' ');
    (path || marked || in_brackets || before.contains('@')) && host(before).is_some()
}

/// `host:user`, before the sign of a known command.
fn is_host_and_user(before: &str) -> bool {
    let word = |text: &str| {
        text.starts_with(|c: char| c.is_ascii_alphabetic())
            && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-'))
    };
    before.split_once(':').is_some_and(|(host, user)| word(host) && word(user))
}

/// Whether the text can stand behind a prompt's sign.
fn is_after_sign(before: &str, after: &str) -> bool {
    if after.trim().is_empty() {
        // A sign alone at the start of a line is no prompt unless it stands alone.
        return true;
    }
    let start = after.trim_start();
    let command = start.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '.'));
    if before.is_empty() {
        return command && (after.starts_with(' ') || is_known(start));
    }
    // `$(` is none of a prompt.
    command || (start.starts_with('(') && after.starts_with(' '))
}

impl<'t> Prompt<'t> {
    /// The prompt before whose sign this stands. A name that goes on with what no name has is none.
    fn of(before: &'t str, typed: &'t str) -> Self {
        let Some((name, rest)) = host_and_rest(before) else {
            return Self { partition: None, no_name: None, typed };
        };
        let ends =
            rest.is_empty() || rest.starts_with([':', '/', ' ', ']', '(', ')', '}', '~', '>']);
        // `host->`
        let arrow = rest.is_empty() && (typed.is_empty() || is_known(typed));
        let name = name.strip_suffix('-').filter(|_| arrow).unwrap_or(name);
        // `host!user:/path`
        let ends = ends || rest.starts_with(['!', '|']) && rest.contains(":/");
        match ends && is_host_name(name) {
            true => Self { partition: Some(name), no_name: None, typed },
            false => Self { partition: None, no_name: Some(before), typed },
        }
    }
}

/// The host in the text before a prompt's sign.
fn host(before: &str) -> Option<&str> {
    host_and_rest(before).map(|(host, _)| host)
}

/// Users that stand in prompts, also behind the host.
const USERS: [&str; 4] = ["root", "padmin", "oracle", "hscroot"];

/// The host, and what stands between it and the sign.
fn host_and_rest(before: &str) -> Option<(&str, &str)> {
    let text = before.trim().trim_start_matches(['[', '{', '(', ' ']);
    // `user@host`, or `host@/path`.
    let text = text.rsplit_once('@').map_or(text, |(before, host)| {
        match host.starts_with('/') || USERS.contains(&host) {
            true => before,
            false => host.trim_start(),
        }
    });
    // `user:host:/path`, `WORD host:/path`: the name is the one next to the path.
    if let Some((names, _)) = text.split_once(":/")
        && let Some((before, name)) = names.rsplit_once([':', ' '])
        && !before.trim().is_empty()
        && !USERS.contains(&name)
        && is_host_name(name)
    {
        return Some((name, &text[names.len()..]));
    }
    let end = text
        .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')))
        .unwrap_or(text.len());
    let (host, rest) = text.split_at(end);
    // `P:host`: a letter for what kind of system it is.
    if host.len() == 1
        && let Some(behind) =
            rest.strip_prefix(':').filter(|rest| !rest.starts_with(['/', '~', ' ']))
    {
        return host_and_rest(behind);
    }
    host.starts_with(|c: char| c.is_ascii_alphanumeric()).then_some((host, rest))
}

/// Whether the line begins with a program that is known here.
pub(super) fn is_known(line: &str) -> bool {
    let word = line.split_ascii_whitespace().next().unwrap_or("");
    is_program(program(word))
}

pub(super) fn program(word: &str) -> &str {
    word.bytes().rposition(|byte| byte == b'/').map_or(word, |slash| &word[slash + 1..])
}

/// Two blanks, which no prompt has.
fn has_gap(text: &str) -> bool {
    text.as_bytes().windows(2).any(|pair| pair == b"  ")
}

/// What `snap` prints before each output: a row of five points, the command behind five points, and the row again. The
/// command, or nothing for the row.
pub(super) fn of_snap(line: &str) -> Option<&str> {
    let rest = line.strip_prefix(".....")?;
    match rest.trim() {
        "" => Some(""),
        typed => {
            let apart = rest.starts_with("    ")
                || rest.starts_with([' ', '\t']) && (is_known(typed) || asks_who(typed));
            apart.then_some(typed).filter(|typed| !typed.starts_with('.'))
        }
    }
}

/// Divides what was typed into its parts. What stands in the quotes of a command for another host ran there, all of it.
pub(super) fn parse(typed: &str, at: At) -> Command<'_> {
    let mut parts = Vec::new();
    let mut rest = Some(typed);
    let mut quoted: Option<(&str, char)> = None;
    while let Some(text) = rest {
        let (segment, after) = cut_segment(text);
        rest = after;
        let odd = |quote: &char| segment.matches(*quote).count() % 2 == 1;
        let (first, filter) = cut_filter(segment);
        let part = part(first);
        let own = part.as_ref().and_then(|part| part.partition);
        let inside = quoted.map(|(host, _)| host);
        quoted = match quoted {
            Some((_, quote)) if odd(&quote) => None,
            None => own.zip(['"', '\''].into_iter().find(odd)),
            still => still,
        };
        let Some(mut part) = part else { continue };
        part.partition = own.or(inside);
        part.filter = filter.and_then(|text| text.split_ascii_whitespace().next());
        parts.push(part);
    }
    Command { typed: Read { value: typed, at }, parts }
}

/// What stands before the first `;`, `&&` or line's end, and what follows it.
fn cut_segment(text: &str) -> (&str, Option<&str>) {
    let bytes = text.as_bytes();
    for end in memchr::memchr3_iter(b';', b'&', b'\n', bytes) {
        let length = match (bytes[end], bytes.get(end + 1)) {
            (b'&', Some(b'&')) => 2,
            (b'&', _) => continue,
            (b';', _) if is_format(&text[..end]) => continue,
            _ => 1,
        };
        return (&text[..end], Some(&text[end + length..]));
    }
    (text, None)
}

/// What stands before the first `|`, and what stands between that and the second.
fn cut_filter(text: &str) -> (&str, Option<&str>) {
    let pipe = |text: &str| {
        let mut ends = memchr::memchr_iter(b'|', text.as_bytes());
        ends.find(|end| !is_format(&text[..*end]))
    };
    let Some(end) = pipe(text) else { return (text, None) };
    let rest = &text[end + 1..];
    (&text[..end], Some(pipe(rest).map_or(rest, |end| &rest[..end])))
}

/// Whether a text ends within the quotes, or behind the backslash, of a format: a sign there is one between columns.
fn is_format(before: &str) -> bool {
    let flags = ["-F", "-fmt"];
    let Some((at, flag)) =
        flags.iter().filter_map(|flag| Some((before.rfind(&format!(" {flag}"))?, flag))).max()
    else {
        return false;
    };
    let value = before[at + 1 + flag.len()..].trim_start();
    match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value.matches(quote).count() == 1,
        _ => before.ends_with('\\') && !value.contains(char::is_whitespace),
    }
}

fn part(text: &str) -> Option<Part<'_>> {
    let quote = |c: char| matches!(c, '"' | '\'' | '`' | '(' | ')');
    let mut words = text.split_ascii_whitespace().peekable();
    let mut partition = None;
    loop {
        let mut word = words.next()?;
        while let Some(inner) = word.strip_prefix("$(") {
            word = inner;
        }
        let word = word.trim_matches(quote);
        let name = program(word);
        match name {
            "sudo" | "time" | "ioscli" | "do" | "then" | "nohup" | "env" | "clcmd" => {}
            "xdsh" | "clsh" | "clush" | "pdsh" | "dsh" => skip_hosts(name, &mut words),
            "ansible" => drop(words.find(|word| *word == "-a")),
            "ssh" => partition = Some(ssh_host(&mut words)?),
            "viosvrcmd" => partition = viosvrcmd(&mut words),
            // `echo $d $(lsattr -El $d …)`
            "echo" if text.contains("$(") || text.contains('`') => {
                let starts = |word: &&str| word.starts_with("$(") || word.starts_with('`');
                while words.peek().is_some_and(|word| !starts(word)) {
                    words.next();
                }
            }
            assignment if assignment.contains('=') => {}
            name => {
                let mut args = Vec::with_capacity(4);
                args.extend(
                    words
                        .map(|word| word.trim_matches(quote))
                        .take_while(|word| !word.starts_with('>') && !word.starts_with("2>")),
                );
                return Some(Part { program: name, args, filter: None, partition });
            }
        }
    }
}

/// Whether the command asks which system, level or time it is.
pub(super) fn asks_who(typed: &str) -> bool {
    typed.split_ascii_whitespace().next().is_some_and(is_asked)
}

/// The hosts of a command that asks several: the values of flags, and for `xdsh` and `clsh` the first word.
fn skip_hosts<'t>(name: &str, words: &mut std::iter::Peekable<impl Iterator<Item = &'t str>>) {
    let mut named = false;
    while let Some(word) = words.peek() {
        let value = matches!(*word, "-n" | "-w" | "-g" | "-l" | "-a" | "-f" | "-t");
        if !word.starts_with('-') {
            if named || !matches!(name, "xdsh" | "clsh") || is_asked(word) {
                return;
            }
            named = true;
        }
        words.next();
        if value {
            named = true;
            words.next();
        }
    }
}

/// Whether the word is a program whose output is looked for, and no host.
pub(super) fn is_asked(word: &str) -> bool {
    is_program(program(word))
        || matches!(program(word), "ioslevel" | "oslevel" | "uname" | "hostname")
}

/// Whether a variable stands where a name should.
pub(super) fn is_variable(name: &str) -> bool {
    name.contains(['$', '`'])
}

/// Where a command goes on that runs nothing there: `ssh vios1`, `telnet vios1`, `mkvterm -m S924 -p vios1`. Without a name
/// where it does not say.
pub(super) fn goes_to(typed: &str) -> Option<Option<&str>> {
    let mut words = typed.split_ascii_whitespace().peekable();
    match program(words.next()?) {
        "ssh" | "slogin" | "rlogin" | "rsh" => {
            let host = ssh_host(&mut words)?;
            // What follows is a command that is run there, unless it is a flag.
            words.next().is_none_or(|word| word.starts_with('-')).then_some(Some(host))
        }
        "telnet" => words.find(|word| !word.starts_with('-')).map(Some),
        "mkvterm" => Some(words.find(|word| *word == "-p").and_then(|_| words.next())),
        "vtmenu" => Some(None),
        _ => None,
    }
}

/// Whether a command enters another shell of the same host.
pub(super) fn enters_shell(typed: &str) -> bool {
    let mut words = typed.split_ascii_whitespace();
    match words.next().map(program) {
        Some("oem_setup_env") => true,
        Some("ksh" | "ksh93" | "bash" | "sh") => words.next().is_none(),
        Some("su") => !words.any(|word| word == "-c"),
        Some("sudo") => match words.next() {
            Some("-i" | "-s" | "ksh" | "bash" | "sh") => words.next().is_none(),
            Some("su") => !words.any(|word| word == "-c"),
            _ => false,
        },
        _ => false,
    }
}

/// What a line says that tells the end of a connection, or that there was none: the host, where it names it.
pub(super) fn connection_ended(text: &str) -> Option<Option<&str>> {
    let to =
        ["Shared connection to ", "Connection to "].iter().find_map(|of| text.strip_prefix(of));
    if let Some(rest) = to {
        let (host, rest) = rest.split_once(' ')?;
        return matches!(rest, "closed." | "closed by remote host.").then_some(Some(host));
    }
    let starts =
        ["ssh: ", "Host key verification failed", "Connection closed", "Connection reset by "];
    let denied = text.contains("Permission denied (");
    (denied || starts.iter().any(|start| text.starts_with(start))).then_some(None)
}

fn ssh_host<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<&'t str> {
    let mut skip = false;
    for word in words {
        if word.starts_with('-') {
            skip = matches!(word, "-l" | "-p" | "-i" | "-o" | "-F" | "-J");
        } else if skip {
            skip = false;
        } else {
            let word = word.trim_matches(['"', '\'']);
            return Some(word.rsplit_once('@').map_or(word, |(_, host)| host));
        }
    }
    None
}

/// `viosvrcmd -m SYSTEM -p PARTITION -c "COMMAND"`: reads up to the command.
fn viosvrcmd<'t>(words: &mut impl Iterator<Item = &'t str>) -> Option<&'t str> {
    let mut partition = None;
    while let Some(word) = words.next() {
        match word {
            "-p" => partition = words.next().map(|word| word.trim_matches(['"', '\''])),
            "-c" => break,
            _ => {}
        }
    }
    partition
}

pub(super) const MONTHS: [&str; 12] =
    ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];

/// The time in a line that `date` printed, as in `Sun Nov 22 14:05:09 CET 2026`, also between marks as scripts set them.
pub(super) fn date(line: Line<'_>) -> Option<Taken> {
    let text = line.trimmed();
    let marks = |c: char| matches!(c, '=' | '-' | '#' | '*' | '+' | '>' | ' ');
    let text = if text.starts_with(marks) { text.trim_matches(marks) } else { text };
    if text.len() > 40 || text.len() < 20 || !text.is_ascii() {
        return None;
    }
    // It ends with the year.
    if !matches!(
        text.as_bytes(),
        [.., b' ' | b'\t', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9', b'0'..=b'9']
    ) {
        return None;
    }
    let all: Vec<&str> = text.split_ascii_whitespace().collect();
    // A script may print the host's name before it.
    let words = match &all[..] {
        [host, rest @ ..] if rest.len() == 6 && is_host_name(host) => rest,
        words => words,
    };
    let (month, day, clock, zone, year) = match words[..] {
        [_, month, day, clock, zone, year] => (month, day, clock, Some(zone), year),
        [_, month, day, clock, year] => (month, day, clock, None, year),
        _ => return None,
    };
    let day_name = ["Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun"].contains(words.first()?);
    let month = (1u64..).zip(MONTHS).find(|(_, name)| *name == month)?.0;
    let day: u64 = day.parse().ok().filter(|day| (1..=31).contains(day))?;
    let year: u64 = year.parse().ok().filter(|year| (1970..=9999).contains(year))?;
    let mut parts = clock.split(':').map(|part| part.parse::<u64>().ok());
    let (hour, minute, second) = (parts.next()??, parts.next()??, parts.next()??);
    if !day_name || hour > 23 || minute > 59 || second > 60 || parts.next().is_some() {
        return None;
    }
    let seconds = ((days(year, month, day) * 24 + hour) * 60 + minute) * 60 + second;
    let zone = zone.filter(|zone| !matches!(*zone, "UTC" | "GMT")).map(str::to_owned);
    let unnamed = words.len() == 5;
    Some(Taken { seconds, zone: if unnamed { Some(String::new()) } else { zone } })
}

/// Days since 1 January 1970 in the Gregorian calendar: years are counted from March, so that a leap day ends its year.
pub(super) fn days(year: u64, month: u64, day: u64) -> u64 {
    let (year, month) = if month > 2 { (year, month - 3) } else { (year - 1, month + 9) };
    let leap_days = year / 4 - year / 100 + year / 400;
    // 719468 days lie between 1 March of year 0 and 1 January 1970.
    year * 365 + leap_days + (153 * month + 2) / 5 + day - 1 - 719_468
}
