//! Answers as one HTML file: style and drawings inside, no script, nothing to load.
//!
//! Everything goes through a template that escapes by its type, and then the page forbids itself any source other
//! than its own style: what a capture smuggled in would be shown as text, and could load nothing if it were not.

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::clean::clean;
use super::{Answer, Block, Detail, Section, Table, chart, place};
use crate::trace::Figure;

/// The page's own style. Colours follow the reader's theme; printing opens what is folded.
const STYLE: &str = include_str!("html/style.css");

/// The answer as one self-contained page.
#[must_use]
pub fn html(answer: &dyn Answer) -> String {
    let mut sections = answer.sections();
    sections.retain(|section| section.detail != Detail::Brief);
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'";
                meta name="referrer" content="no-referrer";
                meta name="color-scheme" content="light dark";
                title { (clean(&answer.title())) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (clean(&answer.title())) }
                    p.summary { (clean(&answer.summary())) }
                }
                main { @for section in &sections { (section_html(answer, section)) } }
            }
        }
    };
    page.into_string()
}

fn section_html(answer: &dyn Answer, section: &Section) -> Markup {
    let word = section.tone.word();
    html! {
        section class=(word) id=[(!section.anchor.is_empty()).then_some(&section.anchor)] {
            h2 {
                @if !word.is_empty() { span class={ "tone " (word) } { (word) } " " }
                (clean(&section.heading))
            }
            @for group in section.blocks.chunk_by(|one, two| is_line(one) && is_line(two)) {
                @if is_line(&group[0]) {
                    // Small multiples: as many beside each other as there is room for.
                    div.multiples { @for block in group { (block_html(answer, block)) } }
                } @else {
                    @for block in group { (block_html(answer, block)) }
                }
            }
        }
    }
}

fn is_line(block: &Block) -> bool {
    matches!(block, Block::Chart(super::Chart::Line(_)))
}

fn block_html(answer: &dyn Answer, block: &Block) -> Markup {
    match block {
        Block::Paragraph(text) => html! { p { (marked(text)) } },
        Block::Labelled { label, text } => {
            html! { p.labelled { b { (clean(label)) ": " } (marked(text)) } }
        }
        Block::List(items) => html! { ul { @for item in items { li { (marked(item)) } } } },
        Block::Command(command) => html! { pre { code { (clean(command)) } } },
        Block::Table(table) => table_html(table),
        Block::Figures(figures) => html! {
            @for figure in figures { (figure_html(answer, figure)) }
        },
        Block::Places(places) => html! {
            ul.places { @for at in places {
                li {
                    code { (place(answer, *at)) } " "
                    @if let Some(line) = answer.line_text(*at) { code.line { (clean(line.trim())) } }
                }
            } }
        },
        Block::Chart(drawing) => chart::svg(drawing),
    }
}

fn figure_html(answer: &dyn Answer, figure: &Figure) -> Markup {
    let name = |file| answer.file_name(file).unwrap_or_else(|| format!("file {}", file + 1));
    html! {
        details.figure {
            summary { (clean(&figure.name)) ": " strong { (clean(&format!("{} {}", figure.value(), figure.unit))) } }
            pre { @for line in figure.explain(&name).lines() { (clean(line)) "\n" } }
        }
    }
}

/// A text whose commands stand between backticks, as in Markdown.
fn marked(text: &str) -> Markup {
    let text = clean(text);
    let parts: Vec<&str> = text.split('`').collect();
    // One that has no other half is a character of its own.
    let paired = parts.len() % 2 == 1;
    html! {
        @if !paired { (text) } @else {
            @for (at, part) in parts.iter().enumerate() {
                @if at % 2 == 1 { code { (part) } } @else { (part) }
            }
        }
    }
}

/// As long as a word of a cell may be before it is broken.
const LONG: usize = 48;

/// A cell's text, whose words are not broken at their hyphens; paths are broken behind a slash.
fn words(text: &str) -> Markup {
    let joined = |word: &str| word.len() <= LONG && word.contains(['-', '/', '*']);
    html! {
        @for (at, word) in text.split(' ').enumerate() {
            @if at > 0 { " " }
            @if joined(word) { span.word { (word) } }
            @else if word.contains('/') {
                @for part in word.split_inclusive('/') {
                    @if part.len() <= LONG { span.word { (part) } } @else { (part) }
                    wbr;
                }
            }
            @else { (word) }
        }
    }
}

/// A cell with commands between backticks: the commands are not broken, as long as they are short.
fn marked_cell(text: &str) -> Markup {
    let parts: Vec<&str> = text.split('`').collect();
    if parts.len().is_multiple_of(2) {
        return words(text);
    }
    html! {
        @for (at, part) in parts.iter().enumerate() {
            @if at % 2 == 0 { (words(part)) }
            @else if part.len() > LONG { code.long { (part) } }
            @else { code { (part) } }
        }
    }
}

/// How a cell looks: a state that stands there alone has its colour.
fn cell_class(number: bool, text: &str) -> &str {
    match text {
        _ if number => "number",
        "critical" | "warning" | "healthy" => text,
        _ => "",
    }
}

fn table_html(table: &Table) -> Markup {
    let class = |number: bool| if number { "number" } else { "" };
    html! {
        div.scroll { table {
            @if !table.caption.is_empty() { caption { (clean(&table.caption)) } }
            thead { tr { @for column in &table.columns {
                th scope="col" class=(class(column.number)) { (clean(&column.name)) }
            } } }
            tbody { @for (place, row) in table.rows.iter().enumerate() { tr {
                @for (at, column) in table.columns.iter().enumerate() {
                    @let text = clean(row.get(at).map_or("", String::as_str));
                    @let target = table.targets.get(place).filter(|target| at == 0 && !target.is_empty());
                    td class=(cell_class(column.number, &text)) {
                        @match target {
                            Some(target) => a href={ "#" (target) } { (text) },
                            None if text.contains('`') => (marked_cell(&text)),
                            None => (words(&text)),
                        }
                    }
                }
            } } }
        } }
    }
}
