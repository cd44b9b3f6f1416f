//! Reports that are not read: of a form that is none of the readers', of no known host, or in another language.

use super::Session;
use crate::foreign::{self, heads_refused};
use crate::recognise::{self, Expected, Kind};
use crate::text::Lines;
use crate::{At, Refused, Report, Unread, language};

/// A line that was kept though its command is one that is read.
pub(super) struct Puzzle {
    pub(super) at: At,
    pub(super) kind: Kind,
    /// Where the command was typed.
    pub(super) typed: At,
}

const NOT_UNDERSTOOD: &str =
    "not understood at all: in another language, perhaps; run it with LC_ALL=C";

/// Whether lines say that the command did not work, or how it is to be used.
fn is_complaint(text: &str) -> bool {
    let lower = text.to_ascii_lowercase();
    let says = [
        "not found",
        "usage",
        "cannot",
        "no such",
        "not permitted",
        "denied",
        "invalid",
        "unknown",
    ];
    let has_number = lower.split_ascii_whitespace().any(|word| {
        word.len() == 8
            && word.as_bytes()[4] == b'-'
            && word.bytes().filter(u8::is_ascii_digit).count() == 7
    });
    has_number || says.iter().any(|word| lower.contains(word))
}

impl<'t> Session<'_, 't> {
    /// Why the command's report is not read in this form.
    pub(super) fn refused_form(&self, heading: Option<Kind>) -> Option<&'static str> {
        let command = self.command.as_ref()?;
        let part = match &command.parts[..] {
            [part] => part,
            // Disks that are in no pool are listed under the heading of those that are.
            parts if heading == Some(Kind::PvList) && self.expected() != heading => {
                parts.iter().find(|part| part.has("-capable"))?
            }
            _ => return None,
        };
        match recognise::by_command(part) {
            Expected::Refused(why) => Some(why),
            _ => None,
        }
    }

    /// Passes over the report of a command that is refused: until the next heading or prompt.
    pub(super) fn refuse(&mut self, mut lines: Lines<'t>, why: &str) -> Lines<'t> {
        let command =
            self.command.take().map_or_else(String::new, |command| command.typed.value.to_owned());
        let heading = lines.peek().and_then(|line| recognise::heading(line, lines));
        let Some(first) = lines.next() else { return lines };
        let mut last = first.at.line;
        while let Some(line) = lines.peek() {
            // A form that is refused may repeat the heading of one that is not.
            let same = heading.is_some() && recognise::heading(line, lines) == heading;
            if !line.is_blank() && !same && recognise::is_boundary(line, lines) {
                break;
            }
            if !line.is_blank() {
                last = line.at.line;
            }
            lines.next();
        }
        let count = last - first.at.line + 1;
        self.captures.refused.push(Refused {
            at: first.at,
            lines: count,
            command,
            why: why.to_owned(),
        });
        lines
    }

    /// Keeps of a report, which may go on up to a line, that it is not read.
    pub(super) fn refuse_report(&mut self, report: &Report, why: String, end: u32) {
        let head = report.head();
        let command = head.command.as_ref().map_or(report.command(), |typed| &typed.value);
        self.captures.refused.push(Refused {
            at: head.first,
            lines: head.last.max(end) - head.first.line + 1,
            command: command.to_owned(),
            why,
        });
    }

    /// Text outside reports that is in another language: what it would have been is told by its words. And what a command
    /// printed that is read, when nothing at all of it was understood.
    pub(super) fn refuse_foreign(&mut self, unread: usize, refused: usize) {
        let mut kept = Vec::new();
        // Both lists are in the order of the lines.
        let reports = refused..self.captures.refused.len();
        for text in self.captures.unread.split_off(unread) {
            let language = language::detect(&text.text);
            let lines = text.at.line..text.at.line + text.lines;
            let first = self.puzzles.partition_point(|puzzle| puzzle.at.line < lines.start);
            let puzzle = self.puzzles.get(first).filter(|puzzle| lines.contains(&puzzle.at.line));
            match (language, puzzle) {
                (Some(language), _) => {
                    let command = puzzle
                        .and_then(|puzzle| puzzle.kind.reader())
                        .map_or_else(|| foreign::command_of(&text), |reader| reader.command);
                    if !heads_refused(&mut self.captures.refused[reports.clone()], &text, language)
                    {
                        self.captures.refused.push(Refused {
                            at: text.at,
                            lines: text.lines,
                            command: command.to_owned(),
                            why: foreign::why(command, language),
                        });
                    }
                }
                (None, Some(puzzle)) if self.is_all_of(puzzle, &text) => {
                    let command = puzzle.kind.reader().map_or("", |reader| reader.command);
                    self.captures.refused.push(Refused {
                        at: text.at,
                        lines: text.lines,
                        command: command.to_owned(),
                        why: NOT_UNDERSTOOD.to_owned(),
                    });
                }
                (None, _) => kept.push(text),
            }
        }
        self.captures.unread.extend(kept);
    }

    /// Whether a text is what a command printed, all of it, and more than a complaint.
    fn is_all_of(&self, puzzle: &Puzzle, text: &Unread) -> bool {
        let reports = self.captures.reports.get(self.reports_before..).unwrap_or_default();
        // Reports are in the order of their lines, those that were typed for among them.
        let after = reports.partition_point(|report| report.head().first.line < puzzle.typed.line);
        let answers = |report: &Report| {
            report.head().command.as_ref().is_some_and(|typed| typed.at == puzzle.typed)
        };
        text.lines > 1
            && text.why.ends_with(" and not understood")
            && puzzle.at == text.at
            && text.at.line > puzzle.typed.line
            && !is_complaint(&text.text)
            && !reports.get(after..).unwrap_or_default().iter().take(8).any(answers)
    }
}
