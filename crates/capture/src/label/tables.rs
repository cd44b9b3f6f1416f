//! Tables that somebody has made of values: a heading with the names of counters or attributes beside that of a device, and a
//! row for each device or day. Each row becomes the values that it stands for, below a label, with the row's line.

use super::{is_device, value};
use crate::text;

/// Tables are made by people for people: longer texts are printed by programs.
const LONG: usize = 64 << 10;
/// The most columns.
const COLUMNS: usize = 24;

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Column<'t> {
    Device,
    /// A part of the label: a host, a day.
    Label,
    Statistic(&'static str),
    Attribute(&'t str),
    Other,
}

fn column(name: &str) -> Column<'_> {
    let bare = name.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    match bare.to_ascii_lowercase().as_str() {
        "adapter" | "device" | "dev" | "disk" | "fc" | "fcs" | "hba" | "hdisk" | "interface"
        | "name" | "port" => Column::Device,
        "client" | "date" | "day" | "host" | "hostname" | "lpar" | "node" | "partition"
        | "server" | "system" | "vios" => Column::Label,
        _ => match value::statistic_name(bare) {
            Some(name) => Column::Statistic(name),
            None if value::is_picked_attribute(bare) => Column::Attribute(bare),
            None => Column::Other,
        },
    }
}

/// The cells of a line, as the sign that it has most likely divides them.
fn cells(line: &str) -> Vec<&str> {
    let text = line.trim().trim_start_matches(['>', ' ']);
    let signs = [';', '|', '\t', ','];
    match signs.into_iter().find(|sign| text.matches(*sign).count() > 1) {
        Some(sign) => {
            let text = if sign == '|' { text.trim_matches('|') } else { text };
            text.split(sign).map(|cell| cell.trim().trim_matches('"')).take(COLUMNS + 1).collect()
        }
        None if text.contains("  ") => text
            .split("  ")
            .map(str::trim)
            .filter(|cell| !cell.is_empty())
            .take(COLUMNS + 1)
            .collect(),
        None => text.split_ascii_whitespace().take(COLUMNS + 1).collect(),
    }
}

/// The columns of a heading; `None` where the line is none.
fn heading(line: &str) -> Option<Vec<Column<'_>>> {
    let columns: Vec<Column<'_>> = cells(line).into_iter().map(column).collect();
    let values =
        columns.iter().filter(|of| matches!(of, Column::Statistic(_) | Column::Attribute(_)));
    let devices = columns.iter().filter(|of| **of == Column::Device).count();
    let fits = (3..=COLUMNS).contains(&columns.len()) && devices == 1 && values.count() > 0;
    fits.then_some(columns)
}

/// The text with the rows of such tables as values, and which line of the file each line is; `None` where there is no table.
pub(crate) fn spelled(text: &str) -> Option<(String, Vec<u32>)> {
    if text.len() > LONG {
        return None;
    }
    let mut out: Option<(String, Vec<u32>)> = None;
    let mut table: Option<Vec<Column<'_>>> = None;
    let lines = text::whole_lines(text);
    for (index, (line, number)) in lines.iter().zip(1u32..).enumerate() {
        if line.len() > 10
            && !line.contains(':')
            && let Some(columns) = heading(line.trim_end())
        {
            table = Some(columns);
        } else if let Some(columns) = &table {
            let rule = line.bytes().all(|byte| !byte.is_ascii_alphanumeric());
            if let Some(values) = row(columns, line.trim_end()) {
                let (text, numbers) = out.get_or_insert_with(|| {
                    let before = lines.iter().take(index).copied().collect();
                    (before, (1..number).collect())
                });
                numbers.extend(values.lines().map(|_| number));
                text.push_str(&values);
                continue;
            } else if !rule {
                table = None;
            }
        }
        if let Some((text, numbers)) = &mut out {
            text.push_str(line);
            numbers.push(number);
        }
    }
    out
}

/// What a row says: its label, and a line for each of its values.
fn row(columns: &[Column<'_>], line: &str) -> Option<String> {
    let mut cells = cells(line);
    if cells.len() != columns.len() {
        cells = line.split_ascii_whitespace().take(COLUMNS + 1).collect();
    }
    let with_columns = || columns.iter().zip(&cells);
    let device = with_columns().find(|(of, _)| **of == Column::Device)?.1;
    if cells.len() != columns.len() || !is_device(device) {
        return None;
    }
    let label = with_columns().filter(|(of, _)| **of == Column::Label).map(|(_, cell)| *cell);
    let mut out = format!("== {} {device} ==\n", label.collect::<Vec<_>>().join(" "));
    for (of, cell) in with_columns().filter(|(_, cell)| !cell.is_empty() && **cell != "-") {
        match of {
            // What is called so of a network's port.
            Column::Statistic("Invalid CRC Count") if device.starts_with("ent") => {
                out += &format!("CRC Errors: {cell}\n");
            }
            Column::Statistic(name) => out += &format!("{name}: {cell}\n"),
            Column::Attribute(name) => out += &format!("{name} {cell} - True\n"),
            _ => {}
        }
    }
    Some(out)
}
