//! Answers as Markdown, for a ticket or a wiki: the same parts as the page, drawings as text.

use super::clean::clean;
use super::{Answer, Block, Detail, Section, Table, chart, place};

/// So many columns a drawing takes.
const DRAWN: usize = 72;

/// The answer as one Markdown document.
#[must_use]
pub fn markdown(answer: &dyn Answer) -> String {
    let mut text = format!("# {}\n\n{}\n", inline(&answer.title()), inline(&answer.summary()));
    for section in answer.sections().iter().filter(|section| section.detail != Detail::Brief) {
        text.push('\n');
        one(answer, section, &mut text);
    }
    text
}

fn one(answer: &dyn Answer, section: &Section, text: &mut String) {
    let word = section.tone.word();
    let heading = inline(&section.heading);
    match word {
        "" => text.push_str(&format!("## {heading}\n")),
        word => text.push_str(&format!("## {}: {heading}\n", word.to_uppercase())),
    }
    for block in &section.blocks {
        text.push('\n');
        self::block(answer, block, text);
    }
}

fn block(answer: &dyn Answer, block: &Block, text: &mut String) {
    match block {
        Block::Paragraph(paragraph) => text.push_str(&format!("{}\n", inline(paragraph))),
        Block::Labelled { label, text: beside } => {
            text.push_str(&format!("**{}:** {}\n", inline(label), inline(beside)));
        }
        Block::List(items) => {
            items.iter().for_each(|item| text.push_str(&format!("- {}\n", inline(item))));
        }
        Block::Command(command) => fenced(&clean(command), text),
        Block::Table(table) => self::table(table, text),
        Block::Figures(figures) => {
            let name =
                |file| answer.file_name(file).unwrap_or_else(|| format!("file {}", file + 1));
            for figure in figures {
                let explained = figure.explain(&name);
                let lines: Vec<String> = explained.lines().map(clean).collect();
                fenced(&lines.join("\n"), text);
            }
        }
        Block::Places(places) => {
            for at in places {
                let line = answer.line_text(*at).unwrap_or_default();
                let line = clean(line.trim());
                let place = place(answer, *at);
                match line.is_empty() {
                    true => text.push_str(&format!("- {}\n", code(&place))),
                    false => text.push_str(&format!("- {} {}\n", code(&place), code(&line))),
                }
            }
        }
        // The table beside it says the same.
        Block::Chart(chart::Chart::Ways(_)) => {}
        Block::Chart(drawing) => {
            let lines: Vec<String> =
                chart::lines(drawing, DRAWN).iter().map(|line| clean(line)).collect();
            text.push_str(&format!("{}\n\n", inline(&chart::caption(drawing))));
            fenced(&lines.join("\n"), text);
        }
    }
}

fn table(table: &Table, text: &mut String) {
    if !table.caption.is_empty() {
        text.push_str(&format!("{}\n\n", inline(&table.caption)));
    }
    let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
    text.push_str(&row(table.columns.iter().map(|column| inline(&column.name)).collect()));
    let rule = |number: bool| if number { "---:" } else { "---" }.to_owned();
    text.push_str(&row(table.columns.iter().map(|column| rule(column.number)).collect()));
    for cells in &table.rows {
        let cell = |at: usize| cells.get(at).map_or_else(String::new, |cell| inline(cell));
        text.push_str(&row((0..table.columns.len()).map(cell).collect()));
    }
}

/// A block that is shown as it stands; no line of it can end it.
fn fenced(inside: &str, text: &mut String) {
    let longest = inside.split(|one| one != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest.max(2) + 1);
    text.push_str(&format!("{fence}\n{inside}\n{fence}\n"));
}

fn code(inside: &str) -> String {
    let longest = inside.split(|one| one != '`').map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let inside = inside.replace('|', "\\|");
    match longest {
        0 => format!("{fence}{inside}{fence}"),
        _ => format!("{fence} {inside} {fence}"),
    }
}

/// Text that means nothing to Markdown or HTML but itself.
fn inline(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for one in clean(text).chars() {
        match one {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '[' | ']' | '|' | '~' | '!' | '#' => {
                out.push('\\');
                out.push(one);
            }
            _ => out.push(one),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_capture_smuggles_in_stays_text() {
        assert_eq!(inline("<b>|*a*|[x](y)"), "&lt;b>\\|\\*a\\*\\|\\[x\\](y)");
        assert_eq!(code("a`b|c"), "`` a`b\\|c ``");
        let mut text = String::new();
        fenced("```\nrm", &mut text);
        assert_eq!(text, "````\n```\nrm\n````\n");
    }
}
