//! Printing: tables for people, JSON and YAML for programs.

use crate::cli::{Format, Global};
use crate::exit::Failure;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table};
use control::model::loss::Loss;
use control::model::transition::{Change, Verb};
use serde::Serialize;
use std::io::{IsTerminal, Write};

/// Prints a value in the format that was asked for; `table` makes the text for people.
pub(crate) fn print<T: Serialize>(
    global: &Global,
    value: &T,
    table: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    let text = match global.output {
        Format::Table => table(value),
        Format::Json => serde_json::to_string_pretty(value).map_err(Failure::other)?,
        Format::Yaml => serde_saphyr::to_string(value).map_err(Failure::other)?,
    };
    put(text.trim_end())
}

/// Writes lines to standard output. A reader that went away (`| head`) is no error.
pub(crate) fn put(text: &str) -> Result<(), Failure> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(Failure::other(error)),
        _ => Ok(()),
    }
}

/// A table without lines: a heading and aligned columns. `numbers` names the columns to set right.
pub(crate) fn table(heading: &[&str], numbers: &[usize], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    table.set_header(heading.to_vec());
    table.add_rows(rows);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, 2));
        column.set_constraint(ColumnConstraint::ContentWidth);
        if numbers.contains(&index) {
            column.set_cell_alignment(CellAlignment::Right);
        }
    }
    let lines: Vec<String> = table.lines().map(|line| line.trim_end().to_owned()).collect();
    lines.join("\n")
}

/// Names and values below each other.
pub(crate) fn pairs(rows: Vec<(String, String)>) -> String {
    let width = rows.iter().map(|(name, _)| name.chars().count()).max().unwrap_or(0);
    let lines: Vec<String> = rows
        .into_iter()
        .map(|(name, value)| format!("{name:width$}  {value}").trim_end().to_owned())
        .collect();
    lines.join("\n")
}

/// Warnings, on standard error.
pub(crate) fn warn(warnings: &[String]) {
    for warning in warnings {
        eprintln!("warning: {warning}");
    }
}

/// What a change did, or would do, and which clients it hits.
pub(crate) fn changes(changes: &[Change], losses: &[Loss], dry_run: bool) -> String {
    if changes.is_empty() {
        return "nothing to do".to_owned();
    }
    let colour = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let mut lines = Vec::new();
    for change in changes {
        let (sign, code) = match change.verb {
            Verb::Create => ("+", "\x1b[32m"),
            Verb::Change => ("~", "\x1b[33m"),
            Verb::Remove => ("-", "\x1b[31m"),
        };
        let (code, plain) = if colour { (code, "\x1b[0m") } else { ("", "") };
        lines.push(format!("{code}{sign} {} {}{plain}", change.object, change.name));
        for attribute in &change.attributes {
            let shown =
                |value: &Option<String>| value.clone().unwrap_or_else(|| "default".to_owned());
            let what = match change.verb {
                Verb::Create => shown(&attribute.to),
                _ => format!("{} -> {}", shown(&attribute.from), shown(&attribute.to)),
            };
            let when = attribute.takes_effect.as_ref().map(|when| format!("  ({when})"));
            lines.push(format!("    {} = {what}{}", attribute.attribute, when.unwrap_or_default()));
        }
    }
    let loses = if dry_run { "would lose" } else { "lost" };
    let losses = losses
        .iter()
        .map(|loss| format!("! the client of adapter {} {loses} {}", loss.adapter, loss.what));
    let hit = losses.len() > 0;
    lines.extend(losses);
    if dry_run && hit {
        lines.push(
            "nothing was changed: this was a dry run; without --force it is refused".to_owned(),
        );
    } else if dry_run {
        lines.push("nothing was changed: this was a dry run".to_owned());
    }
    lines.join("\n")
}

/// Bytes for people: in the largest unit that gives at least one, whole where it divides them, else with two digits
/// behind the point. `trunkline export` and `-o json` have them exact.
pub(crate) fn bytes(bytes: u64) -> String {
    let units = ["B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let unit = bytes.checked_ilog2().map_or(0, |log| log as usize / 10);
    if bytes.is_multiple_of(1 << (unit * 10)) {
        return format!("{}{}", bytes >> (unit * 10), units[unit]);
    }
    // Two digits behind the point, by whole numbers.
    let hundredths = (u128::from(bytes) * 100) >> (unit * 10);
    format!("{}.{:02}{}", hundredths / 100, hundredths % 100, units[unit])
}

/// Nanoseconds for people.
pub(crate) fn duration(ns: u64) -> String {
    let tenth = |unit: u64| format!("{}.{}", ns / unit, ns % unit * 10 / unit);
    match ns {
        0 => "-".to_owned(),
        1..1_000 => format!("{ns}ns"),
        1_000..1_000_000 => format!("{}µs", tenth(1_000)),
        1_000_000..1_000_000_000 => format!("{}ms", tenth(1_000_000)),
        _ => format!("{}s", tenth(1_000_000_000)),
    }
}

/// Something or a dash.
pub(crate) fn or_dash<T: ToString>(value: Option<T>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_for_people() {
        let sizes = [0, 512, 1500, 4096, 5108 << 20, 10 << 30, (10 << 30) + 1, 1 << 63, u64::MAX];
        let shown = sizes.map(bytes);
        let expected =
            ["0B", "512B", "1.46KiB", "4KiB", "4.98GiB", "10GiB", "10.00GiB", "8EiB", "15.99EiB"];
        assert_eq!(shown, expected);
        let times = [0, 999, 1_500, 2_340_000, 61_000_000_000].map(duration);
        assert_eq!(times, ["-", "999ns", "1.5µs", "2.3ms", "61.0s"]);
    }
}
