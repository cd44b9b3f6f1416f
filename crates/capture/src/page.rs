//! One report while it is read.
//!
//! A reader looks at the next line, takes it when it understands it, and otherwise asks whether the report ends there;
//! if not, the line is kept as not understood. After [`Page::STRAY`] such lines in a row the report has ended before
//! the first of them.

use super::looping::Loop;
use super::recognise::{Class, Kind, Known};
use super::text::{self, Line, Lines};
use super::{At, Head, Masked, Read, recognise};

/// What a line that no reader of the report knows is kept for.
pub(super) const UNKNOWN: &str = "not a line of this report that is known";

/// A line that was not understood.
struct Stray<'t> {
    line: Line<'t>,
    why: &'static str,
    /// What was found out about it, if it was looked at: whether it is no row of a list without a heading.
    no_row: Option<bool>,
}

/// The report's lines and what is known about it before they are read.
pub(super) struct Page<'t> {
    lines: Lines<'t>,
    head: Head,
    /// A filter behind the command, which explains missing lines.
    pub(super) filter: Option<String>,
    /// The attribute or other name that the command asks for.
    pub(super) asked: Option<String>,
    /// Whether it asks for the values in force (`lsattr -P`).
    pub(super) in_force: bool,
    /// The loop that prints it, perhaps with a heading before each report.
    pub(super) looping: Loop<'t>,
    /// The columns that the command asks for with `-F`.
    pub(super) format: Vec<String>,
    /// The delimiter that the command asks for with `-fmt`.
    pub(super) delimiter: Option<char>,
    /// Whose report it is, and what else the command prints.
    kind: Kind,
    pub(super) promised: Vec<Kind>,
    /// The line from which nothing is read: as much is kept of the file as may be.
    pub(super) end: u32,
    /// What is known of lines that were looked at.
    known: Known<'t>,
    /// Lines that were not understood, since the last that was; and the bookmark of the first.
    stray: Vec<Stray<'t>>,
    before_stray: Lines<'t>,
}

impl<'t> Page<'t> {
    /// So many lines in a row that nobody understands end a report.
    const STRAY: usize = 24;

    /// A report of this kind that begins with the next line.
    pub(super) fn new(kind: Kind, lines: Lines<'t>, head: Head) -> Self {
        Self {
            kind,
            lines,
            head,
            filter: None,
            asked: None,
            in_force: false,
            looping: Loop::default(),
            format: Vec::new(),
            delimiter: None,
            promised: Vec::new(),
            end: u32::MAX,
            known: Known::default(),
            stray: Vec::new(),
            before_stray: lines,
        }
    }

    /// The next line that is not blank.
    pub(super) fn peek(&mut self) -> Option<Line<'t>> {
        while let Some(line) = self.peek_raw() {
            if !line.is_blank() {
                return Some(line);
            }
            self.lines.next();
        }
        None
    }

    /// The next line, also when it is blank.
    pub(super) fn peek_raw(&self) -> Option<Line<'t>> {
        self.lines.peek().filter(|line| line.at.line < self.end)
    }

    /// A bookmark: the lines from the next one on.
    pub(super) fn ahead(&self) -> Lines<'t> {
        self.lines
    }

    /// Moves behind the next line, which was understood.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Line<'t>> {
        let line = self.lines.next()?;
        self.settle();
        self.head.last = line.at.line;
        Some(line)
    }

    /// Moves behind so many lines, which were understood.
    pub(super) fn take_lines(&mut self, count: usize) {
        for _ in 0..count {
            self.take();
        }
    }

    /// The word on the next line, when a key stands alone on this one and its value below it; with it, how many lines
    /// both take. A word that is one of `keys` is the next field.
    pub(super) fn below(&self, keys: &[&str]) -> Option<(&'t str, usize)> {
        let mut ahead = self.lines;
        ahead.next()?;
        let (blank, next) = ahead.by_ref().enumerate().find(|(_, next)| !next.is_blank())?;
        let text = next.trimmed();
        let word = !text.contains([' ', '\t', ':']) && !text.starts_with(['-', '=']);
        let key = keys.iter().any(|key| key.eq_ignore_ascii_case(text));
        (word && !key && !recognise::is_boundary(next, ahead)).then_some((text, blank + 2))
    }

    /// Moves behind the next line, which is blank.
    pub(super) fn skip(&mut self) {
        self.lines.next();
    }

    /// Takes a line that says nothing to anybody, unless the report has ended before it.
    pub(super) fn passes(&mut self, line: Line<'t>) -> bool {
        let within = !self.looping.is_heading(line.trimmed())
            && matches!(self.known.class(line, self.lines), Class::Other)
            && !self.promised.iter().any(|kind| kind.is_row(line));
        within && self.take().is_some()
    }

    /// Keeps the next line as not understood; `false` when the report has ended before.
    pub(super) fn stray(&mut self, why: &'static str) -> bool {
        self.keep(why, None)
    }

    fn keep(&mut self, why: &'static str, no_row: Option<bool>) -> bool {
        if self.stray.is_empty() {
            self.before_stray = self.lines;
        }
        if let Some(line) = self.lines.next() {
            self.stray.push(Stray { line, why, no_row });
        }
        if self.stray.len() < Self::STRAY {
            return true;
        }
        self.known.others = self.looked_at().collect();
        self.stray.clear();
        self.lines = self.before_stray;
        false
    }

    /// The lines since the last that was understood that were looked at.
    fn looked_at(&self) -> impl Iterator<Item = (At, bool)> {
        self.stray.iter().filter_map(|stray| Some((stray.line.at, stray.no_row?)))
    }

    /// What is known of the lines from the end of the report on.
    pub(super) fn into_known(mut self) -> Known<'t> {
        if !self.stray.is_empty() {
            self.known.others = self.looked_at().collect();
        }
        self.known
    }

    /// What to do with a line that the reader does not know: ends the report, or keeps it and goes on.
    pub(super) fn goes_on(&mut self, line: Line<'t>) -> bool {
        if self.looping.is_heading(line.trimmed())
            || !matches!(self.known.class(line, self.lines), Class::Other)
        {
            return false;
        }
        // A row of another list without a heading, by its form, or because the command has asked for one.
        let row_of = recognise::without_heading(line, self.lines);
        let another = row_of.is_some_and(|kind| kind != self.kind)
            || self.promised.iter().any(|kind| kind.is_row(line));
        !another && self.keep(UNKNOWN, Some(row_of.is_none()))
    }

    /// Keeps a value that could not be understood, in a line that was taken.
    pub(super) fn doubt(&mut self, line: Line<'_>, why: &str) {
        self.settle();
        text::keep(&mut self.head.unread, line, why);
    }

    /// Notes a value that was made unreadable; `false` when it was not.
    pub(super) fn mask(&mut self, field: &str, value: &str, at: At) -> bool {
        let masked = text::is_masked(value);
        if masked {
            self.head.masked.push(Masked { at, field: field.to_owned(), text: value.to_owned() });
        }
        masked
    }

    /// Whether a value is not there, and nothing of this report was made unreadable.
    pub(super) fn lacks<T>(&self, value: &Option<T>) -> bool {
        value.is_none() && self.head.masked.is_empty()
    }

    fn settle(&mut self) {
        for Stray { line, why, .. } in self.stray.drain(..) {
            text::keep(&mut self.head.unread, line, why);
            self.head.last = line.at.line;
        }
    }

    /// The device, if the command did not say it or said another: the heading is right.
    pub(super) fn device_is(&mut self, name: &str, at: At) {
        self.head.device = Some(Read { value: name.to_owned(), at });
    }

    /// The partition, as the report itself says.
    pub(super) fn partition_is(&mut self, name: &str, at: At) {
        self.head.partition = Some(Read { value: name.to_owned(), at });
    }

    /// The device of the command or the heading.
    pub(super) fn device(&self) -> Option<&str> {
        self.head.device.as_ref().map(|read| read.value.as_str())
    }

    /// Whether the partition is known.
    pub(super) fn has_partition(&self) -> bool {
        self.head.partition.is_some()
    }

    /// Whether the command that was typed has this word.
    pub(super) fn command_has(&self, word: &str) -> bool {
        let typed = self.head.command.as_ref().map_or("", |read| &read.value);
        typed.split_ascii_whitespace().any(|other| other == word)
    }

    /// The report is about several partitions, and the prompt is of none of them.
    pub(super) fn of_no_partition(&mut self) {
        self.head.partition = None;
    }

    /// Where the command was typed.
    pub(super) fn typed_at(&self) -> Option<At> {
        self.head.command.as_ref().map(|read| read.at)
    }

    /// Where the report began.
    pub(super) fn first(&self) -> At {
        self.head.first
    }

    /// Something speaks for missing lines: `what` names what is missing.
    pub(super) fn incomplete(&mut self, what: &str) {
        if self.head.incomplete.is_none() {
            let last = self.head.last;
            let why = match &self.filter {
                Some(filter) => format!("{FILTERED}{filter}: {what}"),
                None => format!("ends with line {last}: {what}"),
            };
            self.head.incomplete = Some(why.into());
        }
    }

    /// The report is over.
    pub(super) fn close(&mut self) -> Head {
        self.settle();
        if self.lines.peek().is_some_and(|line| line.at.line >= self.end) {
            self.incomplete("no more lines are kept of one file");
        }
        let empty = Head::new(self.head.first);
        std::mem::replace(&mut self.head, empty)
    }
}

/// How a reason begins for lines that a filter has left out.
const FILTERED: &str = "the command filters with ";

impl Head {
    /// Whether lines are missing since a filter has left them out, and not since the report ends early.
    #[must_use]
    pub fn is_filtered(&self) -> bool {
        self.incomplete.as_ref().is_some_and(|why| why.starts_with(FILTERED))
    }

    /// From its first line to its last; where hosts took turns, those of others between them too.
    pub(super) fn lines(&self) -> usize {
        usize::try_from(self.last.saturating_sub(self.first.line)).unwrap_or(usize::MAX) + 1
    }

    /// The head of a report of which nothing but its first line is known.
    pub(super) fn new(first: At) -> Self {
        Self {
            first,
            last: first.line,
            command: None,
            partition: None,
            device: None,
            taken: None,
            incomplete: None,
            unread: Vec::new(),
            masked: Vec::new(),
        }
    }
}

/// Puts a value into its place; a value that is there already is not replaced.
pub(super) fn put<T>(place: &mut Option<Read<T>>, value: T, at: At) -> bool {
    let free = place.is_none();
    if free {
        *place = Some(Read { value, at });
    }
    free
}
