//! Captures out of files, and what a reader should know of how they were read: which files, from when, what was not
//! understood.

use super::inputs::{self, Clock, Inputs};
use super::taken;
use crate::exit::Failure;
use control::error::ApiError;
use planner::capture::{At, Captures, Report};
use planner::report::{Answer, Block, Section, Table, Tone};
use serde::Serialize;
use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::path::PathBuf;

/// So many lines that were not understood are listed.
const LISTED: usize = 40;

/// What was read, and what is said about it.
#[derive(Debug)]
pub(super) struct Reading {
    /// Everything that the files hold.
    pub(super) captures: Captures,
    /// The files one by one.
    pub(super) files: Vec<FileRead>,
    texts: Vec<Text>,
}

/// A file as it is, to show lines of it.
#[derive(Debug)]
struct Text {
    bytes: Vec<u8>,
    /// Where lines begin; found when the first of them is asked for.
    starts: OnceCell<Vec<usize>>,
}

impl Text {
    /// A line, counted from 1, as far as it is text.
    fn line(&self, number: u32) -> Option<String> {
        // UTF-16 is decoded by the reader alone.
        if self.bytes.starts_with(b"\xff\xfe") || self.bytes.starts_with(b"\xfe\xff") {
            return None;
        }
        let starts = self.starts.get_or_init(|| {
            let ends = self.bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
            std::iter::once(0).chain(ends.map(|(end, _)| end + 1)).collect()
        });
        let index = usize::try_from(number.checked_sub(1)?).ok()?;
        let start = *starts.get(index)?;
        let end = starts.get(index + 1).map_or(self.bytes.len(), |next| next - 1);
        Some(String::from_utf8_lossy(&self.bytes[start..end]).trim_end().to_owned())
    }
}

impl Reading {
    /// The text of a captured line.
    pub(super) fn line(&self, at: At) -> Option<String> {
        self.texts.get(usize::try_from(at.file).ok()?)?.line(at.line)
    }

    /// The same for programs.
    pub(super) fn as_json(&self) -> Result<serde_json::Value, Failure> {
        serde_json::to_value(&self.files).map_err(Failure::other)
    }
}

/// One file as it was read.
#[derive(Debug, Serialize)]
pub(super) struct FileRead {
    name: String,
    lines: u32,
    /// The commands whose reports it has, with how many of each.
    reports: BTreeMap<&'static str, usize>,
    /// When it was taken, on the clock of `time_from`; of several times the first.
    taken: Option<String>,
    /// `date_line`, `file_name` or `file_time`.
    time_from: Option<&'static str>,
    /// Lines that were not understood, of this file.
    not_understood: u32,
    /// What is odd about the file as a whole.
    notes: Vec<String>,
}

/// Reads files, folders and standard input.
pub(super) fn read(paths: &[PathBuf]) -> Result<Reading, Failure> {
    let Inputs { files, passed_over } = inputs::gather(paths)?;
    for problem in passed_over {
        crate::output::tell(&format!("warning: passed over {problem}"));
    }
    let mut captures = Captures::new();
    let (mut clocks, mut texts) = (Vec::new(), Vec::new());
    for file in files {
        let (taken, clock) = file.taken.unzip();
        captures.read(&file.name, &file.bytes, taken);
        clocks.push(clock);
        texts.push(Text { bytes: file.bytes, starts: OnceCell::new() });
    }
    if captures.reports.is_empty() {
        return Err(nothing(&captures).into());
    }
    let files = (0u32..).zip(clocks).map(|(file, clock)| one(&captures, file, clock)).collect();
    Ok(Reading { captures, files, texts })
}

/// Why there is nothing to judge.
fn nothing(captures: &Captures) -> ApiError {
    if let Some(refused) = captures.refused.first() {
        let place = format!("{}, line {}", captures.file_name(refused.at), refused.at.line);
        return ApiError::invalid(format!("{place}: `{}`: {}", refused.command, refused.why));
    }
    let mut names: Vec<&str> = captures.files.iter().map(|file| file.name.as_str()).collect();
    if names.len() > 3 {
        names.truncate(3);
        names.push("…");
    }
    // A file that unpacks to no text is said to be one, and one that was changed as a whole.
    let notes = captures.files.iter().find_map(|file| {
        let told = ["nothing of it is read", "is in capitals"];
        let note = file.notes.iter().find(|note| told.iter().any(|what| note.contains(what)))?;
        Some(format!("; {} {note}", file.name))
    });
    let notes = notes.unwrap_or_default();
    ApiError::invalid(format!("no command's report was found in {}{notes}", names.join(", "))).help(
        "paste a command with everything that it printed, such as `fcstat -D fcs0`; \
         `trunkline plan advise --help` lists the commands",
    )
}

fn one(captures: &Captures, file: u32, clock: Option<Clock>) -> FileRead {
    let info = &captures.files[usize::try_from(file).unwrap_or(usize::MAX)];
    let here = || captures.reports.iter().filter(move |report| report.head().first.file == file);
    let mut reports = BTreeMap::new();
    for report in here() {
        *reports.entry(report.command()).or_insert(0) += 1;
    }
    // A line that `date` printed wins over what is known from outside of the capture.
    let printed = here()
        .filter_map(|report| report.head().taken.as_ref())
        .find(|taken| Some(*taken) != info.taken.as_ref());
    let (time, time_from) = match (printed, &info.taken, clock) {
        (Some(taken), ..) => (Some(taken), Some("date_line")),
        (None, Some(taken), Some(Clock::FileName)) => (Some(taken), Some("file_name")),
        (None, Some(taken), Some(Clock::FileTime)) => (Some(taken), Some("file_time")),
        _ => (None, None),
    };
    let shown = time.map(|taken| match &taken.zone {
        Some(zone) => format!("{} {zone}", taken::shown(taken.seconds)),
        None => taken::shown(taken.seconds),
    });
    FileRead {
        name: info.name.clone(),
        lines: info.lines,
        reports,
        taken: shown,
        time_from,
        not_understood: unread(captures)
            .filter(|(at, ..)| at.file == file)
            .map(|(_, n, _)| n)
            .sum(),
        notes: info.notes.clone(),
    }
}

/// Everything that was not understood: where, how many lines, the first of them.
fn unread(captures: &Captures) -> impl Iterator<Item = (At, u32, &str)> {
    let inside = captures.reports.iter().map(Report::head).flat_map(|head| &head.unread);
    captures
        .unread
        .iter()
        .chain(inside)
        .map(|unread| (unread.at, unread.lines, unread.text.lines().next().unwrap_or_default()))
}

/// An answer with a part at its end that says what was read.
pub(super) struct WithReading<'a> {
    /// The answer.
    pub(super) answer: &'a dyn Answer,
    /// What was read for it.
    pub(super) reading: &'a Reading,
    /// Whether lines that were not understood are listed.
    pub(super) all: bool,
}

impl Answer for WithReading<'_> {
    fn kind(&self) -> &'static str {
        self.answer.kind()
    }

    fn title(&self) -> String {
        self.answer.title()
    }

    fn summary(&self) -> String {
        self.answer.summary()
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = self.answer.sections();
        sections.push(self.what_was_read());
        sections
    }

    fn file_name(&self, file: u32) -> Option<String> {
        self.answer.file_name(file).or_else(|| {
            let index = usize::try_from(file).ok()?;
            Some(self.reading.captures.files.get(index)?.name.clone())
        })
    }

    fn line_text(&self, at: At) -> Option<String> {
        self.answer.line_text(at)
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        self.answer.data()
    }
}

impl WithReading<'_> {
    fn what_was_read(&self) -> Section {
        let files = &self.reading.files;
        let mut table = Table::new("", &["file", "#lines", "reports", "taken", "time from"]);
        for file in files {
            let count = |(command, count): (&&str, &usize)| match count {
                1 => format!("`{command}`"),
                _ => format!("`{command}` ×{count}"),
            };
            let reports: Vec<String> = file.reports.iter().map(count).collect();
            let from = match file.time_from {
                Some("date_line") => "`date` in it",
                Some("file_name") => "its name",
                Some(_) => "the file's time",
                None => "",
            };
            table.row([
                file.name.clone(),
                file.lines.to_string(),
                if reports.is_empty() { "none".to_owned() } else { reports.join(", ") },
                file.taken.clone().unwrap_or_else(|| "unknown".to_owned()),
                from.to_owned(),
            ]);
        }
        let mut section = Section::new("What was read", Tone::Plain).block(Block::Table(table));
        let notes = files
            .iter()
            .flat_map(|file| file.notes.iter().map(move |note| format!("{}: {note}", file.name)));
        let remarks: Vec<String> = notes.collect();
        if !remarks.is_empty() {
            section = section.block(Block::List(remarks));
        }
        self.not_understood(section)
    }

    fn not_understood(&self, section: Section) -> Section {
        let captures = &self.reading.captures;
        let lines: u32 = unread(captures).map(|(_, lines, _)| lines).sum();
        match (lines, self.all) {
            (0, _) => section,
            (_, false) => section.paragraph(format!(
                "{lines} lines belong to no report that is known, or were not understood in one; \
                 --explain lists them."
            )),
            (_, true) => {
                let shown = |(at, lines, text): (At, u32, &str)| {
                    let more = if lines > 1 { format!(" (+{})", lines - 1) } else { String::new() };
                    format!("{}:{}: {text}{more}", captures.file_name(at), at.line)
                };
                let mut list: Vec<String> = unread(captures).map(shown).collect();
                if list.len() > LISTED {
                    let left = list.len() - LISTED;
                    list.truncate(LISTED);
                    list.push(format!("and {left} more; -o json has them all"));
                }
                section.paragraph("Not understood:").block(Block::List(list))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_counted_from_one_and_end_anywhere() {
        let text = |bytes: &[u8]| Text { bytes: bytes.to_vec(), starts: OnceCell::new() };
        let three = text(b"a\r\nb \n\xffc");
        let lines: Vec<Option<String>> = (0..5).map(|number| three.line(number)).collect();
        let shown = ["a", "b", "\u{fffd}c"].map(|line| Some(line.to_owned()));
        assert_eq!(lines, [&[None], &shown[..], &[None]].concat());
        assert_eq!(text(b"\xff\xfea\0").line(1), None);
        assert_eq!(text(b"").line(1), Some(String::new()));
    }
}
