//! Reads the error log.

use super::{Errpt, LoggedError};
use crate::page::{Page, put};
use crate::prompt::{self, days};
use crate::recognise::words;
use crate::text::{Line, Lines};
use crate::{Report, Taken};

/// `IDENTIFIER TIMESTAMP  T C RESOURCE_NAME  DESCRIPTION`
pub(crate) fn is_heading(text: &str) -> bool {
    words(text, &["IDENTIFIER", "TIMESTAMP", "T", "C"]) || words(text, &["LABEL:"])
}

/// Whether an entry begins here: `LABEL:` alone is a word of many texts, and other fields of an entry follow it in a report.
pub(crate) fn is_entry(text: &str, ahead: Lines<'_>) -> bool {
    let next = || ahead.skip(1).filter(|line| !line.is_blank()).take(2);
    const FIELDS: [&[&str]; 3] = [&["IDENTIFIER:"], &["Date/Time:"], &["Sequence", "Number:"]];
    !words(text, &["LABEL:"])
        || next().any(|line| FIELDS.iter().any(|field| words(line.trimmed(), field)))
}

/// `A2205861   1214144307 P S SYSPROC        Excessive interrupt disablement time`
pub(crate) fn is_row(text: &str) -> bool {
    let mut words = text.split_ascii_whitespace();
    let hex = |word: &str| word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_hexdigit());
    let time = |word: &str| word.len() == 10 && word.bytes().all(|byte| byte.is_ascii_digit());
    let letter = |word: &str, set: &str| word.len() == 1 && set.contains(word);
    words.next().is_some_and(hex)
        && words.next().is_some_and(time)
        && words.next().is_some_and(|word| letter(word, "PTIU"))
        && words.next().is_some_and(|word| letter(word, "HSOU"))
        && words.next().is_some()
}

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut report = Errpt {
        head: crate::Head::new(page.first()),
        machine_id: None,
        node: None,
        entries: Vec::new(),
    };
    let mut headed = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        if words(text, &["IDENTIFIER", "TIMESTAMP"]) {
            if headed {
                break;
            }
            headed = page.take().is_some();
        } else if is_row(text) {
            page.take();
            report.entries.push(short(text, line));
        } else if words(text, &["LABEL:"]) {
            long(page, &mut report, line);
        } else if is_rule(text) {
            page.take();
        } else if !page.goes_on(line) {
            break;
        }
    }
    if report.entries.is_empty() && !headed {
        return None;
    }
    if let Some(node) = &report.node
        && !page.has_partition()
    {
        page.partition_is(&node.value, node.at);
    }
    report.head = page.close();
    Some(Report::Errpt(report))
}

fn is_rule(text: &str) -> bool {
    text.len() > 8 && text.bytes().all(|byte| byte == b'-')
}

fn short(text: &str, line: Line<'_>) -> LoggedError {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let word = |index: usize| words.get(index).copied().unwrap_or("").to_owned();
    LoggedError {
        at: line.at,
        label: None,
        identifier: word(0),
        logged: time(&word(1)),
        kind: word(2),
        class: word(3),
        resource: word(4),
        description: words.get(5..).unwrap_or(&[]).join(" "),
        duplicates: None,
    }
}

/// `MMDDhhmmYY`; the zone is that of the partition and not printed.
fn time(text: &str) -> Option<Taken> {
    let part = |from: usize| text.get(from..from + 2)?.parse::<u64>().ok();
    let (month, day, hour, minute, year) = (part(0)?, part(2)?, part(4)?, part(6)?, part(8)?);
    let year = if year >= 70 { 1900 + year } else { 2000 + year };
    let fits = (1..=12).contains(&month) && (1..=31).contains(&day) && hour < 24 && minute < 60;
    let seconds = || ((days(year, month, day) * 24 + hour) * 60 + minute) * 60;
    fits.then(|| Taken { seconds: seconds(), zone: Some(String::new()) })
}

/// One entry of `errpt -a`: fields, then texts and detail data up to the rule or the next entry.
fn long(page: &mut Page<'_>, report: &mut Errpt, first: Line<'_>) {
    let mut entry = LoggedError {
        at: first.at,
        label: None,
        identifier: String::new(),
        logged: None,
        kind: String::new(),
        class: String::new(),
        resource: String::new(),
        description: String::new(),
        duplicates: None,
    };
    let mut below = "";
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        let next = words(text, &["LABEL:"]) && line.at != first.at;
        // What follows `LABEL:` on the first line may look like a prompt: it is taken all the same.
        let typed = line.at != first.at
            && prompt::prompt(line.text).is_some_and(|prompt| !prompt.typed.is_empty());
        if next || is_rule(text) || typed {
            break;
        }
        page.take();
        let (key, value) = text.split_once(':').unwrap_or((text, ""));
        let value = value.trim();
        match (key.trim_end(), below) {
            (_, "Description") => entry.description = text.to_owned(),
            (_, "Number of duplicates") => entry.duplicates = text.parse().ok(),
            ("LABEL", _) => entry.label = Some(value.to_owned()),
            ("IDENTIFIER", _) => value.clone_into(&mut entry.identifier),
            ("Date/Time", _) => entry.logged = prompt::date(Line { text: value, ..line }),
            ("Class", _) if entry.class.is_empty() => value.clone_into(&mut entry.class),
            ("Type", _) if entry.kind.is_empty() => value.clone_into(&mut entry.kind),
            ("Resource Name", _) => value.clone_into(&mut entry.resource),
            ("Machine Id", _) => {
                put(&mut report.machine_id, value.to_owned(), line.at);
            }
            ("Node Id", _) => {
                put(&mut report.node, value.to_owned(), line.at);
            }
            _ => {}
        }
        below = match text {
            "Description" => "Description",
            "Number of duplicates" | "Number of Duplicates" => "Number of duplicates",
            _ => "",
        };
    }
    report.entries.push(entry);
}
