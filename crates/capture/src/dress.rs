//! What stands before every line and is none of the report's: the `>` of a quotation, the host's name that `xdsh` and
//! `clsh` print, the head of a syslog line, a clock, a line number, the quotes of JSON, the bars of a table.
//!
//! It is taken off a *run* of lines, and only where the run then holds a report or a command that is known here; text
//! that looks dressed and is none stays as it is. Lines keep their numbers. Runs may lie within each other, as a quoted
//! log does, so this is done until nothing changes.
//!
//! A run that names a host, and the text of a here-document, is a [`Part`] of its own: reports do not cross its ends.
//! Hosts that take turns line by line are sorted apart first ([`apart`]).

mod apart;

use std::borrow::Cow;

use super::announced;
use super::called;
use super::label;
use super::prompt;
use super::recognise::{self, Kind};
use super::strip::{self, Dress};
use super::text::{self, Lines, Plain};
use super::{At, Taken};

/// A stretch of a file.
pub(super) struct Part<'t> {
    /// Its lines, undressed.
    pub(super) text: &'t str,
    /// Its first line.
    pub(super) first: u32,
    /// The numbers of the lines behind it, where they do not grow by one.
    pub(super) numbers: &'t [u32],
    /// The host that printed it, and the line that says so.
    pub(super) host: Option<(String, u32)>,
    /// A heading names it, and no line of its own each.
    pub(super) headed: bool,
    /// The command that printed it, where its lines have a name before them that tells it: a file's, a port's.
    pub(super) typed: Option<&'t str>,
    /// The day that stands before its lines.
    pub(super) taken: Option<Taken>,
}

/// Where a part begins.
struct Mark {
    /// Its first line, from 0.
    line: usize,
    host: Option<String>,
    /// Its first line names the host, and holds nothing else.
    heading: bool,
    typed: Option<String>,
    /// What it says is not of the host: that stays.
    same_host: bool,
    /// The day, where it says one or ends one.
    taken: Option<Option<Taken>>,
}

impl Mark {
    fn new(line: usize, host: Option<String>) -> Self {
        Self { line, host, heading: false, typed: None, same_host: false, taken: None }
    }
}

/// A text without what stood before its lines, and where its parts begin.
pub(super) struct Bare<'t> {
    text: Cow<'t, str>,
    marks: Vec<Mark>,
    /// Which line of the file each line was, where hosts took turns and are sorted apart.
    numbers: Vec<u32>,
}

/// So many times something may stand before something else.
const DEPTH: usize = 4;
/// The least lines of a run.
const LEAST: usize = 2;

/// What is said of a file whose hosts took turns.
pub(super) const ALTERNATE: &str = "lines of several hosts alternate; they are read host by host";

/// Takes off whatever stands before the lines; `of_levels`: the file's name says that it holds the levels of hosts.
pub(super) fn undress(text: Cow<'_, str>, of_levels: bool) -> Bare<'_> {
    let sorted = label::spelled(&text).or_else(|| apart::apart(&text));
    let (text, numbers) = sorted.map_or((text, Vec::new()), |(text, of)| (Cow::Owned(text), of));
    let mut bare = Bare { marks: here_documents(&text), text, numbers };
    // What a command printed that asked several hosts has the name of one before it, and not of two.
    let mut named = false;
    for depth in 0..DEPTH {
        let mut ends: Vec<usize> = bare.marks.iter().map(|mark| mark.line).collect();
        ends.sort_unstable();
        let of_levels = of_levels && depth == 0;
        let Some((text, marks)) = once(&bare.text, DEPTH, !named, of_levels, &ends) else {
            break;
        };
        bare.text = Cow::Owned(text);
        named |= marks.iter().any(|mark| mark.host.is_some());
        bare.marks.extend(marks);
    }
    let headed = called::headings(&bare.text).into_iter();
    bare.marks.extend(headed.map(|found| Mark {
        line: found.line,
        host: found.host,
        heading: true,
        typed: found.command,
        same_host: false,
        taken: None,
    }));
    bare.marks.sort_by_key(|mark| mark.line);
    bare
}

impl Bare<'_> {
    /// Whether hosts took turns, so that their lines stand in another order than in the file.
    pub(super) fn is_sorted(&self) -> bool {
        !self.numbers.is_empty()
    }

    /// The parts, in the order of their lines.
    pub(super) fn parts(&self) -> Vec<Part<'_>> {
        let mut parts = Vec::new();
        let mut rest = self.text.as_ref();
        let mut line = 0;
        let mut host: (Option<&str>, bool) = (None, false);
        let mut typed = None;
        let mut taken = None;
        // What a heading named last holds behind lines that name a host each.
        let mut section = None;
        for mark in &self.marks {
            let end = byte_of_line(rest, mark.line.saturating_sub(line));
            let (text, after) = rest.split_at(end);
            self.push(&mut parts, text, line, host, typed);
            parts
                .last_mut()
                .filter(|_| !text.is_empty())
                .into_iter()
                .for_each(|part: &mut Part<'_>| part.taken.clone_from(&taken));
            typed = mark.typed.as_deref();
            if let Some(day) = &mark.taken {
                taken.clone_from(day);
            }
            (rest, line) = (after, mark.line.max(line));
            if mark.heading {
                section = mark.host.as_deref();
            }
            host = match &mark.host {
                Some(own) => (Some(own), mark.heading),
                None if mark.same_host => host,
                None => (section, section.is_some()),
            };
            if mark.heading && line == mark.line {
                (rest, line) = (&rest[byte_of_line(rest, 1)..], line + 1);
            }
        }
        self.push(&mut parts, rest, line, host, typed);
        parts
    }

    fn push<'b>(
        &'b self,
        parts: &mut Vec<Part<'b>>,
        text: &'b str,
        line: usize,
        (host, headed): (Option<&str>, bool),
        typed: Option<&'b str>,
    ) {
        if text.is_empty() {
            return;
        }
        let (first, numbers) = match self.numbers.get(line..) {
            Some([first, rest @ ..]) => {
                (*first, rest.get(..text::count_lines(text) - 1).unwrap_or(rest))
            }
            _ => (u32::try_from(line + 1).unwrap_or(u32::MAX), &[][..]),
        };
        let host = host.map(|host| (host.to_owned(), first));
        parts.push(Part { text, first, numbers, host, headed, typed, taken: None });
    }
}

/// Where a line begins.
fn byte_of_line(text: &str, line: usize) -> usize {
    match line {
        0 => 0,
        _ => memchr::memchr_iter(b'\n', text.as_bytes())
            .nth(line - 1)
            .map_or(text.len(), |end| end + 1),
    }
}

/// The ends of here-documents: `<<EOF`, `<<'EOF'`, `<<~"EOS"` up to the line that holds the word alone.
fn here_documents(text: &str) -> Vec<Mark> {
    let mut marks = Vec::new();
    if !text.contains("<<") {
        return marks;
    }
    let mut word: Option<String> = None;
    for (line, text) in text.lines().enumerate() {
        match &word {
            None => {
                word = text.split_once("<<").and_then(|(_, rest)| here_word(rest));
                if word.is_some() {
                    marks.push(Mark::new(line + 1, None));
                }
            }
            Some(end) if text.trim().trim_end_matches(';') == end => {
                marks.push(Mark::new(line, None));
                word = None;
            }
            Some(_) => {}
        }
    }
    marks
}

fn here_word(rest: &str) -> Option<String> {
    let rest = rest.trim_start_matches(['-', '~', ' ', '\'', '"', '\\']);
    let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_')).unwrap_or(rest.len());
    let word = &rest[..end];
    (word.len() >= 2 && word.starts_with(|c: char| c.is_ascii_uppercase() || c == '_'))
        .then(|| word.to_owned())
}

/// Takes off one dress from each run; `None` when there is none. Up to `depth` more may be below it. Lines of one port or day
/// end where lines of something else begin, which `ends` has.
fn once(
    text: &str,
    depth: usize,
    may_ask: bool,
    of_levels: bool,
    ends: &[usize],
) -> Option<(String, Vec<Mark>)> {
    let lines = text::whole_lines(text);
    let mut bare: Option<String> = None;
    let mut marks = Vec::new();
    // Up to here the runs of each kind were looked at in vain.
    let mut vain = [0; Dress::COUNT];
    // A command that asks several hosts was typed last.
    let mut asked = of_levels;
    let may_ask = may_ask && holds_any(text, &PARTS) || of_levels;
    let mut asks = Asks::new(text, may_ask);
    let (mut index, mut kept) = (0, 0);
    while index < lines.len() {
        let found = strip::kinds(lines[index]).iter().copied().find_map(|dress| {
            let slot = &mut vain[dress.index()];
            if *slot > index {
                return None;
            }
            let run = Run::from(dress, &lines, index, asked, ends)?;
            *slot = run.end;
            if dress == Dress::Json && is_assigned(lines.get(..index)?) {
                return None;
            }
            run.is_report(asked, depth).then_some(run)
        });
        let Some(run) = found else {
            asked = asks.hosts(lines[index], asked);
            index += 1;
            continue;
        };
        let out = bare.get_or_insert_default();
        lines[kept..index].iter().for_each(|line| out.push_str(line));
        out.push_str(&run.text);
        if run.host.is_some() || matches!(run.dress, Dress::File | Dress::Label) {
            let same_host = run.dress == Dress::Label && run.host.is_none();
            let dated = run.taken.is_some();
            let taken = dated.then(|| run.taken.clone());
            let mark = Mark { same_host, taken, ..Mark::new(index, run.host.clone()) };
            marks.push(Mark { typed: run.typed.clone(), ..mark });
            let taken = dated.then_some(None);
            marks.push(Mark { same_host, taken, ..Mark::new(run.end, None) });
        }
        (index, kept) = (run.end, run.end);
        vain = [run.end; Dress::COUNT];
    }
    let mut bare = bare?;
    lines[kept..].iter().for_each(|line| bare.push_str(line));
    Some((bare, marks))
}

/// Whether a list is one of a program or of settings, `shows = [`, and none of JSON: its texts are what somebody wrote.
fn is_assigned(before: &[&str]) -> bool {
    let opening = before.iter().rev().map(|line| line.trim_end()).find(|line| !line.is_empty());
    opening.is_some_and(|line| {
        let name = line.strip_suffix(['[', '(', '{']);
        name.is_some_and(|name| {
            !name.bare().is_empty() && !name.bare_end().ends_with(['"', ':', '>'])
        })
    })
}

/// Of each command that asks several hosts one is a part.
const PARTS: [&str; 3] = ["sh ", "dcp ", "oslevel"];

/// Where in a text commands may stand that ask several hosts, found in one go: to look for them in each line costs as much as to read it.
struct Asks<'a> {
    text: &'a str,
    /// Bytes of the text at which a part begins, the last one first.
    at: Vec<usize>,
    may: bool,
}

impl<'a> Asks<'a> {
    fn new(text: &'a str, may: bool) -> Asks<'a> {
        let mut at = Vec::new();
        for part in PARTS.iter().filter(|_| may) {
            at.extend(memchr::memmem::find_iter(text.as_bytes(), part));
        }
        at.sort_unstable_by(|one, other| other.cmp(one));
        Asks { text, at, may }
    }

    /// Whether the lines after this one may each begin with the name of a host, because the command in it asks several. Lines are asked for in their order.
    fn hosts(&mut self, line: &str, before: bool) -> bool {
        const ASK: [&str; 7] = ["xdsh ", "clsh ", "clush ", "pdsh ", "pssh ", "dsh ", "dcp "];
        if !self.may {
            return false;
        }
        let begin = line.as_ptr() as usize - self.text.as_ptr() as usize;
        while self.at.pop_if(|at| *at < begin).is_some() {}
        if self.at.last().is_some_and(|at| *at < begin + line.len()) {
            // Each host's level is a line of its own.
            let level = line.len() < 64 && line.contains("oslevel");
            if ASK.iter().any(|program| line.contains(program))
                || level && announced::announced(line.trim_end()).is_some()
            {
                return true;
            }
        }
        before
            && prompt::prompt(line.trim_end()).is_none()
            && announced::announced(line.trim_end()).is_none()
    }
}

fn holds_any(text: &str, parts: &[&str]) -> bool {
    let bytes = text.as_bytes();
    parts.iter().any(|part| memchr::memmem::find(bytes, part.as_bytes()).is_some())
}

/// Lines that are dressed alike.
struct Run {
    dress: Dress,
    host: Option<String>,
    /// The command that the name of a file before the lines spells.
    typed: Option<String>,
    /// The day before its lines.
    taken: Option<Taken>,
    /// The lines without it.
    text: String,
    lines: usize,
    /// The line behind it.
    end: usize,
}

impl Run {
    /// The run that begins with this line; `None` when it is none, or a short one.
    fn from(
        dress: Dress,
        lines: &[&str],
        first: usize,
        asked: bool,
        ends: &[usize],
    ) -> Option<Self> {
        // Most indented lines are a report's own.
        if dress == Dress::Indent
            && !is_known(lines[first].bare())
            && !is_asked(lines[first])
            && !heads_block(lines, first)
        {
            return None;
        }
        let (_, key, _) = strip::strip(dress, lines[first], None)?;
        let next = lines.get(first + 1).copied();
        let typed = key.command();
        let taken = key.taken();
        let short = asked && dress == Dress::Host || typed.is_some() || taken.is_some();
        // Most lines are alone: nothing is copied for them.
        if !short
            && next.is_none_or(|next| {
                !next.bare().is_empty() && strip::strip(dress, next, Some(&key)).is_none()
            })
        {
            return None;
        }
        let (host, text) = (key.host(), String::new());
        let mut run = Run { dress, host, typed, taken, text, lines: 0, end: first };
        let mut key = key;
        let mut blank = String::new();
        let most = match dress {
            Dress::Label => {
                ends.get(ends.partition_point(|end| *end <= first)).map_or(lines.len(), |end| *end)
            }
            _ => lines.len(),
        };
        for (index, line) in lines.iter().enumerate().take(most).skip(first) {
            if line.bare().is_empty() {
                blank.push_str(line);
                continue;
            }
            let Some((body, next, end)) =
                strip::strip(dress, line, (index > first).then_some(&key))
            else {
                break;
            };
            // The same value again is one of a later time.
            if dress == Dress::Label && begins_again(&run.text, &body) {
                break;
            }
            run.text.push_str(&std::mem::take(&mut blank));
            run.text.push_str(&body);
            run.text.push_str(end);
            run.lines += 1;
            run.end = index + 1;
            key = next;
        }
        (short || run.lines >= LEAST).then_some(run)
    }

    /// Whether there is something in it that is read here.
    fn is_report(&self, asked: bool, depth: usize) -> bool {
        if asked && self.dress == Dress::Host || self.typed.is_some() || self.taken.is_some() {
            return true;
        }
        if !may_be_read(&self.text) {
            return false;
        }
        let mut lines = Lines::new(&self.text, At { file: 0, line: 1 });
        let mut rows = 0;
        while let Some(line) = lines.peek() {
            if !line.is_blank() {
                // Rows alone that somebody quotes are of another time, or of another system; and one among other text is an
                // example of something.
                let row = match self.dress != Dress::Quote && rows * 2 < self.lines {
                    true => recognise::without_heading(line, lines),
                    false => None,
                };
                // Attributes are told by three of them.
                let list = row == Some(Kind::Lsattr);
                rows += usize::from(row.is_some());
                let heading =
                    list || rows * 2 >= self.lines || recognise::heading(line, lines).is_some();
                let typed = || is_command(line.text) || asks_who(line.text);
                let labelled = || label::heading(line, lines).is_some();
                if heading || labelled() || (self.dress.may_hold_commands() && typed()) {
                    return true;
                }
            }
            lines.next();
        }
        depth > 1 && once(&self.text, depth - 1, true, false, &[]).is_some()
    }
}

/// Whether a line says again what the first one of a text has a value for.
fn begins_again(text: &str, line: &str) -> bool {
    let name = |line: &str| line.find(": ").map(|end| line[..end].len());
    let first = text.lines().next().unwrap_or("");
    name(first).is_some_and(|end| first.get(..end + 1) == line.get(..end + 1))
}

/// Whether there is anything but numbers in a text: headings, commands and rows have letters, levels and ranges of numbers a
/// dash or points. In blocks, which the compiler compares many bytes at a time.
fn may_be_read(text: &str) -> bool {
    let of_word = |byte: u8| (byte | 0x20).wrapping_sub(b'a') < 26 || byte == b'-' || byte > 0x7f;
    let mut blocks = text.as_bytes().chunks(256);
    blocks.any(|block| block.iter().fold(false, |found, byte| found | of_word(*byte)))
        || memchr::memmem::find(text.as_bytes(), b"...").is_some()
}

fn is_known(text: &str) -> bool {
    let line = Lines::new(text, At { file: 0, line: 1 });
    let heading = line.peek().and_then(|first| recognise::heading(first, line)).is_some();
    heading || is_command(text) || recognise::is_attribute(text)
}

/// Whether a line begins an indented block, set apart from what is before it, whose lines are dressed, or of which one of the
/// next is known: a name may head it.
fn heads_block(lines: &[&str], first: usize) -> bool {
    const NEXT: usize = 4;
    let apart = first.checked_sub(1).is_none_or(|before| lines[before].bare().is_empty());
    let below = || lines.iter().skip(first + 1).filter(|line| !line.bare().is_empty()).take(NEXT);
    let known = || {
        let mut block = below().take_while(|line| line.starts_with([' ', '\t']));
        block.any(|line| is_known(line.bare()))
    };
    // Names of hosts have a number, nearly all.
    apart
        && lines[first].bytes().any(|byte| byte.is_ascii_digit())
        && (is_dressed(&lines[first..]) || known())
}

/// Whether indented lines have a host or a label each below their indent.
fn is_dressed(lines: &[&str]) -> bool {
    let [one, two, ..] = lines else { return false };
    let kinds = strip::kinds(one.bare()).iter();
    let mut kinds = kinds.filter(|kind| matches!(kind, Dress::Host | Dress::Label | Dress::Log));
    kinds.any(|kind| {
        let first = strip::strip(*kind, one.bare(), None);
        first.is_some_and(|(_, key, _)| {
            *kind == Dress::Label || strip::strip(*kind, two.bare(), Some(&key)).is_some()
        })
    })
}

/// A prompt with a command that asks who or when it is, as code blocks begin with.
fn is_asked(line: &str) -> bool {
    let prompt = prompt::prompt(line.bare());
    prompt.is_some_and(|prompt| {
        prompt::asks_who(prompt.typed) || prompt.partition.is_some_and(|_| !prompt.typed.is_empty())
    })
}

/// A prompt with a command that asks which system or level it is.
fn asks_who(text: &str) -> bool {
    prompt::prompt(text).is_some_and(|prompt| prompt::asks_who(prompt.typed))
}

fn is_command(text: &str) -> bool {
    // `$ xdsh vios "lsattr -El fcs0"`
    let runs = |typed: &str| {
        let command = prompt::parse(typed, At { file: 0, line: 1 });
        command.parts.iter().any(|part| prompt::is_known(part.program))
    };
    announced::announced(text).is_some()
        || prompt::prompt(text)
            .is_some_and(|prompt| prompt::is_known(prompt.typed) || runs(prompt.typed))
}
