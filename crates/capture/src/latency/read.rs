//! Reads `fcstat -l` by the words of its columns.

use super::{FcLatency, LatencyRow};
use crate::page::Page;
use crate::text::after_start;
use crate::{At, Read, Report};

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column {
    Count,
    Average,
    Longest,
    San,
    Adapter,
    Vios,
    Hypervisor,
}

/// The words by which columns are known, in small letters.
const WORDS: [(&str, Column); 19] = [
    ("count", Column::Count),
    ("ios", Column::Count),
    ("cmds", Column::Count),
    ("commands", Column::Count),
    ("avg", Column::Average),
    ("average", Column::Average),
    ("total", Column::Average),
    ("max", Column::Longest),
    ("maximum", Column::Longest),
    ("longest", Column::Longest),
    ("san", Column::San),
    ("adapter", Column::Adapter),
    ("client", Column::Adapter),
    ("vfc", Column::Adapter),
    ("vios", Column::Vios),
    ("hypervisor", Column::Hypervisor),
    ("phyp", Column::Hypervisor),
    ("hyp", Column::Hypervisor),
    ("hypv", Column::Hypervisor),
];

/// How the lines begin in which Trunkline has percentiles of each layer: of reads and writes together, so not kept.
const OURS: [&str; 4] = ["Time in ", "SAN (", "VIOS (", "Hypervisor ("];
/// How the heading begins below which Trunkline has each LUN: what is there is in the rows above already, so not kept.
const OUR_LUNS: &str = "Target";

pub(crate) fn report(page: &mut Page<'_>) -> Option<Report> {
    let mut columns: Vec<Column> = Vec::new();
    let mut unit = None;
    let mut rows = Vec::new();
    let mut by_lun = false;
    while let Some(line) = page.peek() {
        let text = line.trimmed();
        unit = unit.or_else(|| unit_of(text));
        let rule = text.bytes().all(|byte| matches!(byte, b'-' | b'=' | b' ' | b'+'));
        let lun = of_lun(text).filter(|_| by_lun);
        let known = lun.is_some_and(|rest| row(&columns, rest, unit, line.at).is_some())
            || OURS.iter().any(|start| text.starts_with(start));
        if known || rule || after_start(text, "FIBRE CHANNEL").is_some() {
            page.take();
        } else if let Some(found) = heading(text) {
            columns = found;
            by_lun = text.starts_with(OUR_LUNS);
            page.take();
        } else if let Some(row) = row(&columns, text, unit, line.at) {
            page.take();
            rows.push(row);
        } else if !page.goes_on(line) {
            break;
        }
    }
    if rows.is_empty() {
        return None;
    }
    Some(Report::FcLatency(FcLatency { head: page.close(), rows }))
}

/// What is behind the numbers of target and LUN.
fn of_lun(text: &str) -> Option<&str> {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let (target, rest) = text.split_once(' ')?;
    let (lun, rest) = rest.trim_start().split_once(' ')?;
    (number(target) && number(lun)).then_some(rest)
}

/// The columns of a heading: the SAN and another layer are among them, each once.
fn heading(text: &str) -> Option<Vec<Column>> {
    // Rows have no such word; they are not copied.
    let san = text.as_bytes().windows(3).any(|word| word.eq_ignore_ascii_case(b"san"));
    if !san {
        return None;
    }
    let plain = text.to_ascii_lowercase();
    let words = plain.split(|c: char| !c.is_ascii_alphabetic());
    let column =
        |word: &str| WORDS.iter().find(|(name, _)| *name == word).map(|(_, column)| *column);
    let found: Vec<Column> = words.filter_map(column).collect();
    let layers = [Column::Adapter, Column::Vios, Column::Hypervisor];
    let fits = found.contains(&Column::San) && layers.iter().any(|layer| found.contains(layer));
    let once = (1..found.len()).all(|at| !found[at..].contains(&found[at - 1]));
    let numbers = text.split_ascii_whitespace().any(|word| word.parse::<f64>().is_ok());
    (fits && once && !numbers).then_some(found)
}

/// Milliseconds of the unit that a line names.
fn unit_of(text: &str) -> Option<f64> {
    let plain = text.to_ascii_lowercase();
    plain.split(|c: char| !(c.is_ascii_alphabetic() || c == '\u{b5}')).find_map(|word| match word {
        "us" | "usec" | "usecs" | "microsecond" | "microseconds" | "\u{b5}s" => Some(0.001),
        "ms" | "msec" | "msecs" | "millisecond" | "milliseconds" => Some(1.0),
        _ => None,
    })
}

/// A label and a number for each column.
fn row(columns: &[Column], text: &str, unit_ms: Option<f64>, at: At) -> Option<LatencyRow> {
    let words: Vec<&str> = text.split_ascii_whitespace().collect();
    let labels = words.len().checked_sub(columns.len()).filter(|labels| *labels > 0)?;
    if columns.is_empty() {
        return None;
    }
    let (label, numbers) = words.split_at(labels);
    if label.iter().any(|word| !word.starts_with(|c: char| c.is_ascii_alphabetic())) {
        return None;
    }
    let number = |text: &&str| {
        let digit = text.starts_with(|c: char| c.is_ascii_digit());
        text.parse::<f64>().ok().filter(|number| digit && number.is_finite())
    };
    let numbers: Vec<f64> = numbers.iter().map(number).collect::<Option<_>>()?;
    let of = |wanted: Column| {
        let place = columns.iter().position(|column| *column == wanted)?;
        numbers.get(place).map(|value| Read { value: *value, at })
    };
    Some(LatencyRow {
        at,
        completion: label.join(" ").trim_end_matches(':').to_owned(),
        unit_ms,
        count: of(Column::Count),
        average: of(Column::Average),
        longest: of(Column::Longest),
        san: of(Column::San),
        adapter: of(Column::Adapter),
        vios: of(Column::Vios),
        hypervisor: of(Column::Hypervisor),
    })
}
