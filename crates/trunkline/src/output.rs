//! Printing: tables for people, JSON and YAML for programs.

use crate::cli::{Format, Global};
use crate::exit::Failure;
use comfy_table::{CellAlignment, ColumnConstraint, ContentArrangement, Table};
use control::error::ApiError;
use control::model::loss::Loss;
use control::model::transition::{Change, Verb};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use serde::Serialize;
use serde_json::Value;
use std::io::{IsTerminal, Write};
use std::sync::atomic::{AtomicBool, Ordering};

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
        Format::Name => names(&serde_json::to_value(value).map_err(Failure::other)?)?,
    };
    // Of no names there is no line.
    if text.is_empty() { Ok(()) } else { put(text.trim_end()) }
}

/// The names in an answer: of an object, of a list, of what changed.
fn names(value: &Value) -> Result<String, Failure> {
    let name = |item: &Value| {
        let found = ["name", "adapter", "id", "number"].into_iter().find_map(|key| item.get(key));
        found.map(|name| name.as_str().map_or_else(|| name.to_string(), str::to_owned))
    };
    let items = match value {
        Value::Array(items) => items.as_slice(),
        _ => match value.get("changes").and_then(Value::as_array) {
            Some(changes) => changes.as_slice(),
            None => std::slice::from_ref(value),
        },
    };
    let all: Option<Vec<String>> = items.iter().map(name).collect();
    let none = || ApiError::invalid("this has no names to print").help("use -o json");
    Ok(all.ok_or_else(none)?.join("\n"))
}

/// A word as a shell takes it for one, quoted only where it has to be.
pub(crate) fn quoted(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+,=:@%".contains(c);
    match text {
        "" => "''".to_owned(),
        text if text.chars().all(plain) => text.to_owned(),
        text => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

/// From now on the program ends, with success, when nobody reads standard output any more: what goes on until it is stopped (`| head`) may
/// have nothing to write for long.
pub(crate) fn end_when_unread() {
    std::thread::spawn(|| {
        let out = std::io::stdout();
        let mut fds = [PollFd::new(&out, PollFlags::empty())];
        while let Err(Errno::INTR) = poll(&mut fds, None) {}
        if fds[0].revents().contains(PollFlags::ERR) {
            std::process::exit(0);
        }
    });
}

/// Writes a line to standard error. That it is closed is no error.
pub(crate) fn tell(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// Prints again what changes: on a terminal in place of what was there.
pub(crate) fn redraw(text: &str) -> Result<(), Failure> {
    put(&frame(text, std::io::stdout().is_terminal()))
}

/// Elsewhere they follow each other, with an empty line between.
fn frame(text: &str, terminal: bool) -> String {
    // The cursor to its first place, and everything behind it away.
    if terminal { format!("\x1b[H\x1b[2J{text}") } else { format!("{text}\n") }
}

/// Whether tables have no headings.
static BARE: AtomicBool = AtomicBool::new(false);

/// Tables have no headings from now on.
pub(crate) fn without_headings() {
    BARE.store(true, Ordering::Relaxed);
}

/// Writes lines to standard output. A reader that went away (`| head`) is no error.
pub(crate) fn put(text: &str) -> Result<(), Failure> {
    match writeln!(std::io::stdout(), "{text}") {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(unwritten(&error)),
        _ => Ok(()),
    }
}

/// Standard output takes nothing more; whatever was to be changed is changed by then.
pub(crate) fn unwritten(error: &std::io::Error) -> Failure {
    Failure::other(format!(
        "standard output cannot be written: {error}; what was asked for is done"
    ))
}

/// A table without lines: a heading and aligned columns. `numbers` names the columns to set right.
pub(crate) fn table(heading: &[&str], numbers: &[usize], rows: Vec<Vec<String>>) -> String {
    let mut table = Table::new();
    table.load_style(comfy_table::presets::NOTHING);
    table.set_content_arrangement(ContentArrangement::Disabled);
    if !BARE.load(Ordering::Relaxed) {
        table.set_header(heading.to_vec());
    }
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
        tell(&format!("warning: {warning}"));
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
    fn names_of_lists_objects_and_changes() {
        let of = |value: Value| names(&value).ok();
        let list = serde_json::json!([{"name": "a"}, {"name": "b"}]);
        assert_eq!(of(list).as_deref(), Some("a\nb"));
        assert_eq!(of(serde_json::json!({"id": 7})).as_deref(), Some("7"));
        let done = serde_json::json!({"changes": [{"verb": "create", "name": "c"}]});
        assert_eq!(of(done).as_deref(), Some("c"));
        assert_eq!(of(serde_json::json!([])).as_deref(), Some(""));
        assert_eq!(of(serde_json::json!({"version": "1"})), None);
    }

    #[test]
    fn words_for_a_shell() {
        assert_eq!(quoted("/dev/shm/a-1.d"), "/dev/shm/a-1.d");
        assert_eq!(quoted("/a b/it's"), "'/a b/it'\\''s'");
        assert_eq!(quoted(""), "''");
    }

    #[test]
    fn a_terminal_is_drawn_again() {
        assert_eq!(frame("a", true), "\x1b[H\x1b[2Ja");
        assert_eq!(frame("a", false), "a\n");
    }

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
