//! Reads `fcstat -client`.

use super::read::wwn;
use super::{ClientRow, FcstatClient};
use crate::page::Page;
use crate::text::{Line, Lines, is_masked, number};
use crate::{At, Report, recognise};

/// The names of the columns of `fcstat -client`, in their order.
const COLUMNS: [&str; 12] = [
    "hostname",
    "dev",
    "wwpn",
    "inreqs",
    "outreqs",
    "ctrlreqs",
    "inbytes",
    "outbytes",
    "DMA_errs",
    "Elem_errs",
    "Comm_errs",
    "",
];

pub(crate) fn client_report(page: &mut Page<'_>) -> Option<Report> {
    let columns = client_heading(page)?;
    let mut rows = Vec::new();
    while let Some(line) = page.peek() {
        match client_row(line, page.ahead(), columns) {
            Some((row, lines)) => {
                page.take_lines(lines);
                let printed = line.text.split_ascii_whitespace().find(|word| is_masked(word));
                if row.wwpn.is_none() {
                    page.mask("wwpn", printed.unwrap_or(""), line.at);
                }
                rows.push(row);
            }
            None if line.text.bytes().all(|byte| byte == b'-' || byte == b' ') => {
                page.take();
            }
            None if !page.goes_on(line) => break,
            None => {}
        }
    }
    if rows.is_empty() {
        page.incomplete("no row follows the heading");
    }
    Some(Report::FcstatClient(FcstatClient { head: page.close(), rows }))
}

/// How many columns the heading has, with that of the name, which may have been cut off; it may be wrapped.
fn client_heading(page: &mut Page<'_>) -> Option<usize> {
    let first = page.peek()?;
    let mut words: Vec<&str> = first.text.split_ascii_whitespace().collect();
    if recognise::words(first.text, &COLUMNS[1..4]) {
        page.take();
        let known = |word: &&&str| COLUMNS.iter().any(|column| column.eq_ignore_ascii_case(word));
        let count = words.iter().filter(known).count() + 1;
        return (count >= 8).then_some(count);
    }
    if !recognise::words(first.text, &COLUMNS[..3]) {
        return None;
    }
    page.take();
    // A heading that is cut in two: the rest of it, perhaps from the middle of a word.
    if words.len() < 11
        && let Some(next) = page.peek_raw()
    {
        let joined = format!("{}{}", first.text, next.text);
        let spaced = format!("{} {}", first.text, next.text);
        let count = |text: &str| {
            let found: Vec<&str> = text.split_ascii_whitespace().collect();
            (found.len() <= COLUMNS.len() && recognise::words(text, &COLUMNS[..found.len()]))
                .then_some(found.len())
        };
        let whole = [joined, spaced]
            .iter()
            .filter_map(|text| count(text))
            .find(|count| *count > words.len());
        if let Some(count) = whole {
            page.take();
            return Some(count);
        }
    }
    words.retain(|word| COLUMNS.iter().any(|column| column.eq_ignore_ascii_case(word)));
    (words.len() >= 8).then_some(words.len())
}

/// A row, and how many lines it takes.
fn client_row(line: Line<'_>, mut ahead: Lines<'_>, columns: usize) -> Option<(ClientRow, usize)> {
    if let Some(row) = client_fields(line.text, line.at, columns) {
        return Some((row, 1));
    }
    if !line.text.contains("0x") || line.text.split_ascii_whitespace().count() >= columns {
        return None;
    }
    ahead.next();
    let next = ahead.next()?;
    // A number may be cut in two: then the first line fills its width and nothing stands between.
    let spaces = " ".repeat(line.width - line.text.len());
    let cut = format!("{}{spaces}{}", line.text, next.text);
    let spaced = format!("{} {}", line.text, next.text);
    let row = client_fields(&cut, line.at, columns)
        .or_else(|| client_fields(&spaced, line.at, columns))?;
    Some((row, 2))
}

fn client_fields(text: &str, at: At, columns: usize) -> Option<ClientRow> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    // A client that told no name has an empty first column.
    let (hostname, words) = match words.len() {
        count if count == columns => (words[0], &words[1..]),
        count if count + 1 == columns && (words[1].starts_with("0x") || is_masked(words[1])) => {
            ("", &words[..])
        }
        _ => return None,
    };
    let field = |index: usize| words.get(index).copied().and_then(number);
    let optional =
        |index: usize| if index + 1 < columns { field(index).map(Some) } else { Some(None) };
    let masked = is_masked(words[1]);
    let name = wwn(words[1]).filter(|_| words[1].len() >= 16);
    if name.is_none() && !masked {
        return None;
    }
    Some(ClientRow {
        at,
        hostname: hostname.to_owned(),
        device: words[0].to_owned(),
        wwpn: name,
        input_requests: field(2)?,
        output_requests: field(3)?,
        control_requests: field(4)?,
        input_bytes: field(5)?,
        output_bytes: field(6)?,
        no_dma: optional(7)?,
        no_elements: optional(8)?,
        no_command: optional(9)?,
    })
}
