//! Answers as a reader meets them: terminal text, JSON, and one HTML file that needs nothing else.
//!
//! An answer (advice, trends, a migration outcome, a sizing) describes itself once, as [`Section`]s of
//! [`Block`]s, through [`Answer`]; [`text()`](text::text), [`json`] and [`html()`](html::html) render any of them.
//!
//! Promises:
//! - Deterministic: the same answer gives the same bytes. No clock, no random identifiers, no map order.
//! - What came out of a capture is hostile. Control characters and direction overrides never reach a terminal
//!   ([`clean`]); the HTML escapes everything and carries a policy under which a browser loads nothing.
//! - The JSON has a `version`. A field is added without a new one, never renamed or removed.
//!
//! What it leaves to others: the numbers themselves ([`crate::trace`]), and writing the result somewhere.

pub mod advice;
mod chart;
pub mod html;
pub mod inputs;
pub mod markdown;
pub mod parsed;
pub mod text;
pub mod trends;

pub use chart::{
    Bar, Bars, Chart, Limit, Line, Mark, Point, Series, Spot, WAYS_MAX, Way, Ways, sparkline,
};

pub use crate::capture::clean;

use crate::capture::At;
use crate::facts::Contradiction;
use crate::trace::{Figure, number};

/// The version of the JSON that [`json`] writes.
pub const VERSION: u32 = 1;

/// Something the planner answers, ready to be shown in any of the three forms.
pub trait Answer {
    /// What kind of answer: `advice`, `trends`, `lpm`, `size`. Stable; scripts look at it.
    fn kind(&self) -> &'static str;

    /// The heading of the whole answer.
    fn title(&self) -> String;

    /// The answer in one sentence.
    fn summary(&self) -> String;

    /// The parts, in reading order.
    fn sections(&self) -> Vec<Section>;

    /// The name of a capture file, by its number in an [`At`].
    fn file_name(&self, file: u32) -> Option<String> {
        let _ = file;
        None
    }

    /// The text of a captured line, where the caller kept it. Reports print it beside the place.
    fn line_text(&self, at: At) -> Option<String> {
        let _ = at;
        None
    }

    /// The answer's own data for [`json`]; usually `serde_json::to_value(self)`.
    ///
    /// # Errors
    /// What serde found that JSON cannot hold.
    fn data(&self) -> Result<serde_json::Value, serde_json::Error>;
}

/// How a part of an answer is meant: it picks a colour and a word, nothing else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Tone {
    /// Plain information.
    #[default]
    Plain,
    /// Something is in order.
    Good,
    /// Worth knowing.
    Note,
    /// Should be mended.
    Warning,
    /// Must be mended soon.
    Critical,
}

impl Tone {
    /// The word that says it without colour; empty for plain text.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Good => "ok",
            Self::Note => "note",
            Self::Warning => "warning",
            Self::Critical => "critical",
        }
    }

    /// How bad it is: of two the worse one counts.
    pub(crate) fn rank(self) -> u8 {
        match self {
            Self::Plain => 0,
            Self::Good => 1,
            Self::Note => 2,
            Self::Warning => 3,
            Self::Critical => 4,
        }
    }
}

/// In which forms a section is printed on a terminal; a page and JSON have room for the full form always.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Detail {
    /// Always.
    #[default]
    Always,
    /// Where nothing was asked to be explained: a shorter form of another section.
    Brief,
    /// Where everything was asked to be explained, and on a page.
    Full,
}

/// One part of an answer under its own heading.
#[derive(Debug, Clone, Default)]
pub struct Section {
    /// What the part is about.
    pub heading: String,
    /// How it is meant.
    pub tone: Tone,
    /// What it holds, in reading order.
    pub blocks: Vec<Block>,
    /// Where it is printed.
    pub detail: Detail,
    /// The name under which other parts of a page lead to it; may be empty.
    pub anchor: String,
}

impl Section {
    /// What to keep in mind, if there is anything.
    pub fn to_mind(notes: &[String]) -> Option<Section> {
        let list = || Block::List(notes.to_vec());
        (!notes.is_empty()).then(|| Section::new("To mind", Tone::Note).block(list()))
    }

    /// Where the text of a source says something else than the numbers that the answer goes by.
    pub fn sources_differ(all: &[Contradiction]) -> Option<Section> {
        let told = |one: &Contradiction| {
            let Contradiction { says, numbers, used, source, .. } = one;
            format!("{}: {says}; {numbers}. Used here: {used}.", source.text)
        };
        let list = all.iter().map(told).collect();
        let section = || Section::new("Where the sources contradict themselves", Tone::Plain);
        (!all.is_empty()).then(|| section().block(Block::List(list)))
    }

    /// A part without blocks yet.
    #[must_use]
    pub fn new(heading: impl Into<String>, tone: Tone) -> Self {
        Self {
            heading: heading.into(),
            tone,
            blocks: Vec::new(),
            detail: Detail::Always,
            anchor: String::new(),
        }
    }

    /// The same part, in one of its forms only.
    #[must_use]
    pub fn only(self, detail: Detail) -> Self {
        Self { detail, ..self }
    }

    /// The same part, to which others can lead.
    #[must_use]
    pub fn at(self, anchor: impl Into<String>) -> Self {
        Self { anchor: anchor.into(), ..self }
    }

    /// Adds a paragraph, unless it is empty.
    #[must_use]
    pub fn paragraph(self, text: impl Into<String>) -> Self {
        let text = text.into();
        if text.is_empty() { self } else { self.block(Block::Paragraph(text)) }
    }

    /// Adds a block.
    #[must_use]
    pub fn block(mut self, block: Block) -> Self {
        self.blocks.push(block);
        self
    }
}

/// One piece of a section.
#[derive(Debug, Clone)]
pub enum Block {
    /// Running text.
    Paragraph(String),
    /// A label and what it labels: `undo` and the sentence.
    Labelled {
        /// The label, one or two words.
        label: String,
        /// The text beside it.
        text: String,
    },
    /// Sentences that stand one per line.
    List(Vec<String>),
    /// A command to copy; kept on one line.
    Command(String),
    /// A table.
    Table(Table),
    /// Numbers with their formulas; `explain` prints the values put in and where they come from.
    Figures(Vec<Figure>),
    /// Places in captures.
    Places(Vec<At>),
    /// A drawing.
    Chart(Chart),
}

/// A table: a head and rows of text.
#[derive(Debug, Clone, Default)]
pub struct Table {
    /// What the table shows; may be empty.
    pub caption: String,
    /// The columns.
    pub columns: Vec<Column>,
    /// The rows; a short row is filled with empty cells, a long one is cut.
    pub rows: Vec<Vec<String>>,
    /// The part of the page that each row leads to, by its anchor; empty for none. May be shorter than the rows.
    pub targets: Vec<String>,
}

/// A column of a [`Table`].
#[derive(Debug, Clone, Default)]
pub struct Column {
    /// Its head.
    pub name: String,
    /// Whether it holds numbers, which stand at the right.
    pub number: bool,
}

impl Table {
    /// An empty table; a column whose name starts with `#` holds numbers.
    #[must_use]
    pub fn new(caption: impl Into<String>, columns: &[&str]) -> Self {
        let columns = columns.iter().map(|name| match name.strip_prefix('#') {
            Some(name) => Column { name: name.to_owned(), number: true },
            None => Column { name: (*name).to_owned(), number: false },
        });
        Self { caption: caption.into(), columns: columns.collect(), ..Self::default() }
    }

    /// Adds a row that leads to a part of the page.
    pub fn row_to<T: Into<String>>(&mut self, anchor: String, cells: impl IntoIterator<Item = T>) {
        self.targets.resize(self.rows.len(), String::new());
        self.targets.push(anchor);
        self.row(cells);
    }

    /// Adds a row.
    pub fn row<T: Into<String>>(&mut self, cells: impl IntoIterator<Item = T>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }
}

/// The answer as JSON: `version`, `kind`, `title`, `summary`, `files` and `answer`.
///
/// # Errors
/// What serde found that JSON cannot hold.
pub fn json(answer: &dyn Answer) -> Result<String, serde_json::Error> {
    let mut files = Vec::new();
    while let Some(name) = u32::try_from(files.len()).ok().and_then(|at| answer.file_name(at)) {
        files.push(name);
    }
    let document = serde_json::json!({
        "version": VERSION,
        "kind": answer.kind(),
        "title": answer.title(),
        "summary": answer.summary(),
        "files": files,
        "answer": answer.data()?,
    });
    serde_json::to_string_pretty(&document)
}

/// `capture.txt:12`, as compilers write it, for a place in a capture.
#[must_use]
pub fn place(answer: &dyn Answer, at: At) -> String {
    match answer.file_name(at.file) {
        Some(name) => format!("{}:{}", clean::clean(&name), at.line),
        None => format!("file {}:{}", at.file + 1, at.line),
    }
}

/// Year, month and day of a number of days since 1 January 1970, in the Gregorian calendar.
#[must_use]
pub fn date(days: u64) -> (u64, u64, u64) {
    // Days since the first of March of a year that 400 divides; years begin with March, so that February is last.
    let shifted = days + 719_468;
    let (era, day) = (shifted / 146_097, shifted % 146_097);
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (month, later) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (era * 400 + year + later, month, day)
}

/// A time for people: `2026-03-02 22:15 CET`; UTC where no zone was printed.
#[must_use]
pub fn moment(taken: &crate::capture::Taken) -> String {
    let (year, month, day) = date(taken.seconds / 86_400);
    let minutes = taken.seconds % 86_400 / 60;
    let zone = taken.zone.as_deref().unwrap_or("UTC");
    format!("{year}-{month:02}-{day:02} {:02}:{:02} {zone}", minutes / 60, minutes % 60)
}

/// A span of seconds for people: `45 s`, `12 min`, `5 h`, `13 days`.
#[must_use]
pub fn span(seconds: f64) -> String {
    match seconds.abs() {
        size if size < 90.0 => format!("{} s", number(seconds.round())),
        size if size < 5400.0 => format!("{} min", number((seconds / 60.0).round())),
        size if size < 172_800.0 => format!("{} h", number((seconds / 3600.0).round())),
        _ => format!("{} days", number((seconds / 86_400.0).round())),
    }
}
