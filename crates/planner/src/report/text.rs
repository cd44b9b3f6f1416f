//! Answers for a terminal: as wide as it is, in colour only where that is asked for.

use comfy_table::{
    CellAlignment, ColumnConstraint, ContentArrangement, Table as Grid, Width, presets,
};
use unicode_width::UnicodeWidthStr;

use super::clean::clean;
use super::{Answer, Block, Detail, Section, Table, Tone, chart, place};

/// How an answer is printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Columns of the terminal; taken as between 40 and 160.
    pub width: usize,
    /// Whether to colour headings. Nothing is said by colour alone.
    pub colour: bool,
    /// Whether every figure is followed by its formula, the values put in, and where each comes from.
    pub explain: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self { width: 100, colour: false, explain: false }
    }
}

/// The answer as text; ends with a line feed.
#[must_use]
pub fn text(answer: &dyn Answer, options: &Options) -> String {
    let options = Options { width: options.width.clamp(40, 160), ..*options };
    let mut page = Page { answer, options, lines: Vec::new() };
    page.heading(Tone::Plain, &clean(&answer.title()));
    page.wrapped(0, "", &answer.summary());
    let left_out = if options.explain { Detail::Brief } else { Detail::Full };
    for section in answer.sections().iter().filter(|section| section.detail != left_out) {
        page.section(section);
    }
    let mut text = page.lines.join("\n");
    text.push('\n');
    text
}

/// A word of a table that is longer is parted.
const WORD_MAX: usize = 60;

struct Page<'a> {
    answer: &'a dyn Answer,
    options: Options,
    lines: Vec<String>,
}

impl Page<'_> {
    fn line(&mut self, indent: usize, text: &str) {
        self.lines.push(format!("{}{text}", " ".repeat(indent)).trim_end().to_owned());
    }

    /// `text` in the colour of a tone, where colours are wanted.
    fn painted(&self, tone: Tone, text: &str) -> String {
        let colour = match tone {
            Tone::Plain => "",
            Tone::Good => ";32",
            Tone::Note => ";36",
            Tone::Warning => ";33",
            Tone::Critical => ";31",
        };
        match self.options.colour {
            true => format!("\u{1b}[1{colour}m{text}\u{1b}[0m"),
            false => text.to_owned(),
        }
    }

    /// Text over as many lines as it needs, the later ones under the first one's text.
    fn wrapped(&mut self, indent: usize, lead: &str, text: &str) {
        let hang = indent + lead.width();
        if hang > self.options.width / 2 {
            return self.wrapped(indent, "", &format!("{lead}{text}"));
        }
        let room = self.options.width.saturating_sub(hang).max(20);
        for (at, line) in wrap(&clean(text), room).iter().enumerate() {
            let lead = if at == 0 { lead.to_owned() } else { " ".repeat(lead.width()) };
            self.line(indent, &format!("{lead}{line}"));
        }
    }

    fn heading(&mut self, tone: Tone, text: &str) {
        for line in wrap(text, self.options.width) {
            self.line(0, &self.painted(tone, &line));
        }
    }

    fn section(&mut self, section: &Section) {
        self.lines.push(String::new());
        let word = section.tone.word().to_uppercase();
        let heading = clean(&section.heading);
        let heading = if word.is_empty() { heading } else { format!("{word}  {heading}") };
        self.heading(section.tone, &heading);
        for block in &section.blocks {
            self.block(block);
        }
    }

    fn block(&mut self, block: &Block) {
        match block {
            Block::Paragraph(text) => self.wrapped(2, "", text),
            Block::Labelled { label, text } => {
                let label = format!("{:<9}", format!("{}:", clean(label)));
                self.wrapped(2, &format!("{label} "), text);
            }
            Block::List(items) => items.iter().for_each(|item| self.wrapped(2, "- ", item)),
            // On one line, whatever the width: a command that is broken cannot be copied.
            Block::Command(command) => self.line(4, &format!("$ {}", clean(command))),
            Block::Table(table) => self.table(table),
            Block::Figures(figures) => figures.iter().for_each(|figure| self.figure(figure)),
            Block::Places(places) => places.iter().for_each(|at| {
                let lead = format!("{}  ", place(self.answer, *at));
                let kept = self.answer.line_text(*at).unwrap_or_default();
                self.line(4, &format!("{lead}{}", cut(clean(kept.trim()), self.options.width)));
            }),
            // The table beside it says the same.
            Block::Chart(chart::Chart::Ways(_)) => {}
            Block::Chart(drawing) => {
                self.wrapped(2, "", &chart::caption(drawing));
                for line in chart::lines(drawing, self.options.width.saturating_sub(4)) {
                    self.line(4, &clean(&line));
                }
            }
        }
    }

    fn figure(&mut self, figure: &crate::trace::Figure) {
        if !self.options.explain {
            return self.wrapped(2, "= ", &format!("{}: {figure}", figure.name));
        }
        let answer = self.answer;
        let name = |file| answer.file_name(file).unwrap_or_else(|| format!("file {}", file + 1));
        for (at, line) in figure.explain(&name).lines().enumerate() {
            let depth = line.len() - line.trim_start().len();
            self.wrapped(2 + depth, if at == 0 { "= " } else { "  " }, line.trim_start());
        }
    }

    fn table(&mut self, table: &Table) {
        if !table.caption.is_empty() {
            self.wrapped(2, "", &table.caption);
        }
        let mut grid = Grid::new();
        grid.load_style(presets::NOTHING);
        grid.set_content_arrangement(ContentArrangement::Dynamic);
        grid.set_width(u16::try_from(self.options.width - 2).unwrap_or(158));
        grid.set_header(table.columns.iter().map(|column| clean(&column.name)));
        for cells in &table.rows {
            let cell =
                |at: usize| cells.get(at).map_or_else(String::new, |cell| parted(&clean(cell)));
            grid.add_row((0..table.columns.len()).map(cell).collect::<Vec<_>>());
        }
        // A column is as wide as its longest word, so that none is broken.
        for at in 0..table.columns.len() {
            let cells = table.rows.iter().filter_map(|row| row.get(at)).map(String::as_str);
            let all = cells.chain(table.columns.get(at).map(|column| column.name.as_str()));
            let longest =
                all.flat_map(|text| text.split(' ')).map(|word| clean(word).width()).max();
            let width = u16::try_from(longest.unwrap_or(1).clamp(1, WORD_MAX)).unwrap_or(1);
            if let Some(column) = grid.column_mut(at) {
                // The column's own space stands beside it.
                column.set_constraint(ColumnConstraint::LowerBoundary(Width::Fixed(width + 2)));
            }
        }
        for (at, column) in table.columns.iter().enumerate() {
            if let (true, Some(column)) = (column.number, grid.column_mut(at)) {
                column.set_cell_alignment(CellAlignment::Right);
            }
        }
        for line in grid.to_string().lines() {
            self.line(2, line.trim_end());
        }
    }
}

/// The text with words that are too long for a column, paths, parted after a `/`.
fn parted(text: &str) -> String {
    let part = |word: &str| {
        if word.width() <= WORD_MAX {
            return word.to_owned();
        }
        let mut lines = vec![String::new()];
        for piece in word.split_inclusive('/') {
            match lines.last_mut() {
                Some(line) if line.width() + piece.width() <= WORD_MAX => line.push_str(piece),
                _ => lines.push(piece.to_owned()),
            }
        }
        lines.join("\n")
    };
    text.split(' ').map(part).collect::<Vec<_>>().join(" ")
}

/// The text without what does not fit into the width.
fn cut(text: String, width: usize) -> String {
    match text.char_indices().nth(width) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}

/// The text in lines of at most `room` columns; a word that is longer stands on a line of its own.
fn wrap(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ').filter(|word| !word.is_empty()) {
        let line = lines.last_mut().map_or(0, |line| line.width());
        if line > 0 && line + 1 + word.width() > room {
            lines.push(String::new());
        }
        if let Some(line) = lines.last_mut() {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_as_wide_as_there_is_room() {
        let lines = wrap("one two three four", 9);
        assert_eq!(lines, ["one two", "three", "four"]);
        assert_eq!(wrap("unbreakable word", 4), ["unbreakable", "word"]);
        assert_eq!(wrap("", 4), [""]);
    }

    #[test]
    fn a_path_in_a_column_is_parted_between_its_folders() {
        let path = format!("{}/{}/c.txt:12", "a".repeat(30), "b".repeat(40));
        assert_eq!(parted(&path), format!("{}/\n{}/c.txt:12", "a".repeat(30), "b".repeat(40)));
        assert_eq!(parted("a/b/c d"), "a/b/c d");
    }

    #[test]
    fn what_is_too_long_is_cut_at_a_character() {
        assert_eq!(cut("öäü".to_owned(), 2), "öä…");
        assert_eq!(cut("öäü".to_owned(), 3), "öäü");
    }
}
