//! Lines that hold nothing but the name of a host, whose reports follow.

use std::collections::{BTreeMap, BTreeSet};

use super::{is_of_date, is_time, looks_like_host, may_be_host, of_file};
use crate::text::{self, Lines};
use crate::{At, announced, prompt, recognise};

/// What stands around the name of a host on a line of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Around<'t> {
    before: &'t str,
    behind: &'t str,
}

impl Around<'_> {
    /// Three marks and more before it are put by a script, not by chance.
    fn is_strong(self) -> bool {
        let mark = |byte: u8| matches!(byte, b'#' | b'=' | b'*' | b'-' | b'+' | b'>' | b'~');
        matches!(self.before.as_bytes(), [one, two, three, ..] if one == two && two == three && mark(*one))
    }

    /// Marks of a title: `## vios1`, `== vios1 ==`, `**vios1**`.
    fn is_title(self) -> bool {
        let twice = |text: &str| {
            let marks = text.trim().as_bytes();
            marks.len() >= 2 && marks.iter().all(|byte| *byte == marks[0])
        };
        twice(self.before) && (self.before.starts_with('#') || twice(self.behind))
    }

    fn is_bare(self) -> bool {
        self.before.is_empty() && self.behind.is_empty()
    }
}

/// A line that names the host whose reports follow.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Heading {
    /// Its place, from 0.
    pub(crate) line: usize,
    /// A file's name may tell the command alone.
    pub(crate) host: Option<String>,
    /// The command that printed what follows, where it is the name of a file that spells it.
    pub(crate) command: Option<String>,
}

impl Heading {
    /// A line with the name of the file that follows it.
    fn of_file(line: usize, name: &str) -> Option<Self> {
        let called = of_file(name);
        let tells = called.host.is_some() || called.command.is_some();
        tells.then_some(Self { line, host: called.host, command: called.command })
    }
}

/// Whether a name is that of a file and of no host: it ends as texts do.
fn is_file(name: &str) -> bool {
    const ENDINGS: [&str; 6] = ["txt", "log", "out", "lst", "text", "cap"];
    name.rsplit_once('.').is_some_and(|(_, ending)| ENDINGS.contains(&ending))
}

/// A line that may name the host whose reports follow.
struct Named<'t> {
    /// Its place, from 0.
    line: usize,
    name: &'t str,
    /// A word calls it a host.
    by_key: bool,
    around: Around<'t>,
    /// The next line that says something.
    next: &'t str,
}

fn is_decoration(c: char) -> bool {
    matches!(
        c,
        '#' | '='
            | '*'
            | '-'
            | '+'
            | '<'
            | '>'
            | '~'
            | ' '
            | '['
            | ']'
            | '('
            | ')'
            | '{'
            | '}'
            | '|'
            | ':'
            | '.'
            | ','
            | '`'
            | '"'
    )
}

/// A line that holds nothing but marks.
fn is_rule(line: &str) -> bool {
    line.chars().all(is_decoration) || line.starts_with("```")
}

/// Whether a line can be the name of a host, by its first bytes: most begin with a word that no host is called by, or with
/// white space.
fn may_name(line: &[u8]) -> bool {
    let [first, rest @ ..] = line else { return false };
    match first {
        b'a'..=b'z' | b'A'..=b'Z' => {
            let (mut end, mut digit) = (1, false);
            while let Some(byte) = line.get(end) {
                match byte {
                    b'a'..=b'z' | b'A'..=b'Z' | b'_' | b'.' => {}
                    b'0'..=b'9' | b'-' => digit = true,
                    _ => break,
                }
                end += 1;
            }
            let (word, rest) = line.split_at(end);
            // What goes on as no heading does: a prompt, columns, a sentence.
            let goes_on = match rest {
                [] | [_] => false,
                [b':' | b'=', next, ..] => {
                    !matches!(next, b' ' | b'\r') && !next.is_ascii_alphabetic()
                }
                [b' ', next, ..] => matches!(next, b' ' | b'\t'),
                [b'*' | b']' | b')' | b',', ..] => false,
                _ => true,
            };
            if goes_on || line.len() > 100 {
                return false;
            }
            if is_key(word) {
                return true;
            }
            let device = || std::str::from_utf8(word).is_ok_and(text::is_device_alone);
            digit && !matches!(rest, [b' ', b'a'..=b'z', ..]) && !device()
        }
        b' ' | b'\t' => false,
        b'0'..=b'9' => matches!(rest, [b'.' | b')', ..] | [b'0'..=b'9', b'.' | b')', ..]),
        b'#' | b'=' | b'*' | b'-' | b'+' | b'>' | b'~' | b'[' | b'(' | b'{' | b'|' | b'`'
        | b'"' => line.len() <= 100 && rest.iter().any(u8::is_ascii_alphabetic),
        _ => false,
    }
}

fn is_key(word: &[u8]) -> bool {
    let keys: &[&str] = match word.first().map(u8::to_ascii_lowercase) {
        Some(b'h') => &["host", "hostname"],
        Some(b'n') => &["node"],
        Some(b's') => &["server", "system"],
        Some(b'l') => &["lpar"],
        Some(b'p') => &["partition"],
        Some(b'v') => &["vios"],
        Some(b'c') => &["client", "connecting", "connected"],
        Some(b'b') => &["begin"],
        Some(b'e') => &["end"],
        Some(b'f') => &["file", "filename"],
        Some(b'a') => &["attachment", "anhang"],
        Some(b'd') => &["datei"],
        _ => &[],
    };
    keys.iter().any(|key| key.as_bytes().eq_ignore_ascii_case(word))
}

/// The name that stands alone on a line, whether a word says that it is a host's, and what is around it.
fn heading(line: &str) -> Option<(&str, bool, Around<'_>)> {
    let line = line.trim_end();
    let start = line.trim_start_matches(is_decoration);
    // `1. vios1`
    let start = match start.split_once(['.', ')']) {
        Some((number, rest))
            if !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit()) =>
        {
            rest.trim_start()
        }
        _ => start,
    };
    let text = start.trim_end_matches(is_decoration);
    let around = Around { before: &line[..line.len() - start.len()], behind: &start[text.len()..] };
    let mut words = text.split([' ', '\t', '=']).filter(|word| !word.is_empty()).peekable();
    while words.next_if(|word| is_time(word) || is_of_date(word)).is_some() {}
    let mut name = words.next()?;
    let key = name.trim_end_matches(':');
    let by_key = is_key(key.as_bytes()) && words.peek().is_some();
    if by_key {
        words.next_if_eq(&"to");
        name = words.next()?;
    }
    let name = name.trim_end_matches([':', ',']);
    let again = |word: &str| word.trim_start_matches('(').starts_with(name);
    let rest = words.all(|word| is_time(word) || is_of_date(word) || word == "-" || again(word));
    (rest && may_be_host(name)).then_some((name, by_key, around))
}

/// Whether a command was typed on a line, whose output the next one is.
fn is_typed(line: &str) -> bool {
    announced::announced(line).is_some()
        || prompt::prompt(line).is_some_and(|prompt| !prompt.typed.is_empty())
}

/// In texts longer than this names without marks before them are not looked for: of each line a word would have to be looked
/// at, and what is so long was collected by a program, which sets marks.
const LONG: usize = 256 << 10;

/// The lines, from 0, that hold nothing but a host's name, each with the name.
///
/// Between three marks and more a name counts that looks like a host's, that a word calls one, or that takes turns with
/// others over the same commands. With less around it, it has to look like one, and a word has to call it one or others have
/// to stand there in the same way. What goes on behind it has to be something that a host printed.
pub(crate) fn headings(text: &str) -> Vec<Heading> {
    let mut found: Vec<Named<'_>> = Vec::new();
    let mut files: Vec<Heading> = Vec::new();
    let bytes = text.as_bytes();
    let is_long = bytes.len() > LONG;
    let (mut before, mut start) = (0, 0);
    for line in 0.. {
        let Some(rest) = bytes.get(start..) else { break };
        let end = memchr::memchr(b'\n', rest).map_or(bytes.len(), |end| start + end);
        let (above, here) = (before, start);
        (before, start) = (start, end + 1);
        // Most lines begin with a letter, with white space or with that of XML.
        let plain = match bytes.get(here) {
            Some(b'a'..=b'z' | b'A'..=b'Z') => is_long,
            first => matches!(first, None | Some(b' ' | b'\t' | b'\r' | b'\n' | b'<')),
        };
        if plain && bytes.get(above) != Some(&b':') {
            continue;
        }
        let of_files = bytes[here..].starts_with(b"==> ") || bytes[above..].starts_with(b"::::::");
        if !of_files && (plain || !may_name(&bytes[here..end])) {
            continue;
        }
        let above = text.get(above..here.saturating_sub(1)).unwrap_or("");
        let (above, here) = (above.trim_end(), text[here..end].trim_end());
        if let Some(file) = between_files(above, here) {
            files.extend(Heading::of_file(line, file));
            continue;
        }
        let Some((name, by_key, around)) = heading(here) else { continue };
        if is_file(name) {
            files.extend(Heading::of_file(line, name).filter(|_| by_key || !around.is_bare()));
            continue;
        }
        let mut below = text.get(start..).unwrap_or("").lines().map(str::trim_end);
        let mut says = below.by_ref().filter(|line| !is_rule(line) && !is_date(line));
        let mut next = says.next();
        // What else somebody writes down of a system stands below its name.
        if by_key && next.is_some_and(is_remark) {
            next = says.take(REMARKS).find(|line| !is_remark(line));
        }
        let Some(next) = next.filter(|next| !next.contains(name)) else { continue };
        let printed = around.is_bare() && is_typed(above);
        // Between marks, a prompt that names nobody is the one of the host that they name.
        let bare_prompt = || {
            let prompt = prompt::prompt(next).filter(|_| !around.is_bare());
            prompt.is_some_and(|prompt| {
                prompt.partition.is_none()
                    && prompt.no_name.is_none()
                    && (prompt::is_known(prompt.typed) || prompt::asks_who(prompt.typed))
            })
        };
        if !printed && (speaks(next, around.is_strong()) || bare_prompt()) {
            found.push(Named { line, name, by_key, around, next });
        }
    }
    let typed = found.iter().filter(|one| is_typed(one.next));
    let turns = several(typed.map(|one| (one.next, one.name)));
    let like = found.iter().filter(|one| looks_like_host(one.name));
    let alike = several(like.map(|one| (one.around, one.name)));
    let counts = |one: &&Named<'_>| match one.around.is_strong() {
        true => one.by_key || looks_like_host(one.name) || turns.contains(&one.next),
        false => {
            looks_like_host(one.name)
                && (one.by_key || alike.contains(&one.around) || one.around.is_title())
        }
    };
    files.extend(found.iter().filter(counts).map(|one| Heading {
        line: one.line,
        host: Some(host_in(one.name).unwrap_or_else(|| one.name.to_owned())),
        command: None,
    }));
    files
}

/// The host in a name of more than that: `vios1_before`.
fn host_in(name: &str) -> Option<String> {
    let called = name.contains('_').then(|| of_file(name))?;
    called.host.filter(|host| called.sure && name.starts_with(host.as_str()))
}

/// So many lines that somebody has written of a system may stand below its name.
const REMARKS: usize = 8;

/// `Reported by: J. Doe`: a few words, a colon and more, and nothing that a command prints.
fn is_remark(line: &str) -> bool {
    let remark = |(key, value): (&str, &str)| {
        let words = key.split(' ').count();
        words <= 3
            && key.bytes().all(|byte| byte.is_ascii_alphabetic() || byte == b' ')
            && !value.is_empty()
    };
    line.split_once(": ").is_some_and(remark) && !speaks(line, true)
}

/// What stands with more than one name.
fn several<'t, K: Ord + Copy>(all: impl Iterator<Item = (K, &'t str)>) -> BTreeSet<K> {
    let mut first: BTreeMap<K, &str> = BTreeMap::new();
    let mut of_more = BTreeSet::new();
    for (key, name) in all {
        if *first.entry(key).or_insert(name) != name {
            of_more.insert(key);
        }
    }
    of_more
}

/// The file that is printed next, as `head` and `more` say it where they have several: `==> vios1.txt <==`.
fn between_files<'t>(above: &str, line: &'t str) -> Option<&'t str> {
    if line.starts_with("==> ") {
        return line.strip_prefix("==> ")?.trim_end().strip_suffix(" <==");
    }
    // The first line of the file itself stands below such a row, too.
    let of_more =
        above.starts_with("::::::::::::::") && !line.starts_with(':') && !line.contains(' ');
    of_more.then_some(line.trim_end())
}

fn is_date(text: &str) -> bool {
    let lines = Lines::new(text, At { file: 0, line: 1 });
    lines.peek().is_some_and(|line| prompt::date(line).is_some())
}

/// Whether a line goes on with what a host was asked, or printed. A prompt tells its own host, and ends what was printed.
fn speaks(line: &str, with_prompt: bool) -> bool {
    if announced::announced(line).is_some() {
        return true;
    }
    if prompt::prompt(line).is_some() {
        return with_prompt;
    }
    let lines = Lines::new(line, At { file: 0, line: 1 });
    lines.peek().is_some_and(|first| {
        recognise::is_boundary(first, lines)
            || recognise::without_heading(first, lines).is_some()
            || recognise::is_attribute(first.text)
    })
}

#[cfg(test)]
mod tests {
    use super::headings;

    #[test]
    fn headings_of_hosts_with_little_around_them() {
        let two = |one: &str, two: &str| {
            let text = format!("{one}\nEnabled hdisk0 fscsi0\n\n{two}\nEnabled hdisk0 fscsi0\n");
            headings(&text).into_iter().filter_map(|found| found.host).collect::<Vec<_>>()
        };
        for form in [
            "@",
            "@:",
            "# @",
            "## @",
            "== @ ==",
            "[@]",
            "**@**",
            "1. @",
            "@ Mon Jun  8 08:00:03 CEST 2026",
            "Server: @",
            "HOSTNAME=@",
            "Connecting to @...",
            "==> @_lspath.txt <==",
            "==> logs/@/lspath.out <==",
            "----- BEGIN @ -----",
            "===== @ (@.example.com) =====",
            "### 2026-06-08 08:00 @",
            "::::::::::::::\n@_lspath.txt\n::::::::::::::",
        ] {
            let [one, other] = ["aix11", "aix12"].map(|name| form.replace('@', name));
            assert_eq!(two(&one, &other), ["aix11", "aix12"], "{form}");
        }
        // One alone is no series, and what looks like no host is none; neither is what a command printed.
        for (one, other) in [
            ("aix11", "text"),
            ("first:", "second:"),
            ("hdisk1", "hdisk2"),
            ("datavg1:", "datavg2:"),
            ("step1", "step2"),
            ("part 1", "part 2"),
        ] {
            assert_eq!(two(one, other), [""; 0], "{one}");
        }
        assert_eq!(two("$ hostname\naix11", "$ hostname\naix12"), [""; 0]);
    }

    #[test]
    fn headings_with_the_names_of_files() {
        for form in ["##### @ #####", "--- File: @ ---", "==> @ <==", "File: @", "[@]"] {
            let line = form.replace('@', "entstat.vios1.ent8.txt");
            let found = headings(&format!("{line}\n    State: PRIMARY\n"));
            let found: Vec<_> = found
                .iter()
                .map(|one| (one.line, one.host.as_deref(), one.command.as_deref()))
                .collect();
            assert_eq!(found, [(0, Some("vios1"), Some("entstat ent8"))], "{form}");
        }
        // A name among text heads nothing.
        assert_eq!(headings("entstat.vios1.ent8.txt\n    State: PRIMARY\n"), []);
        assert_eq!(headings("see entstat.vios1.ent8.txt here\n    State: PRIMARY\n"), []);
    }

    #[test]
    fn headings_of_hosts_between_marks() {
        let names = |text: &str| {
            headings(text).into_iter().filter_map(|found| found.host).collect::<Vec<_>>()
        };
        assert_eq!(names("######## nvio-a ########\n== lspath ==\n"), ["nvio-a"]);
        assert_eq!(names("=== Host: erpdb ===\nlspath\n"), ["erpdb"]);
        assert_eq!(names("=== erpdb ===\nlspath\n=== erpapp ===\nlspath\n"), ["erpdb", "erpapp"]);
        for text in [
            "=== erpdb ===\nlspath\n",
            "=== before ===\nlspath\n=== after ===\nlspath\n",
            "=== step1 ===\nlspath\n=== step2 ===\nlspath\n",
            "=== fcs0 ===\nlspath\n",
            "=== vios1 ===\nsome text\n",
        ] {
            assert_eq!(names(text), [""; 0], "{text}");
        }
    }
}
