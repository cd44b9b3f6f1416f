//! `lsdev` and `lsattr`: devices, their attributes, and the values that these may have.

use super::text::{columns, lines};
use fabric::attribute::{Attribute, Attributes, Effect, Kind, Value};

/// One line of `lsdev`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Device {
    pub(super) name: String,
    pub(super) available: bool,
    pub(super) description: String,
}

/// `lsdev`
pub(super) fn list(devices: &[Device]) -> String {
    let mut rows = vec![["name", "status", "description"].map(str::to_owned).to_vec()];
    rows.extend(devices.iter().map(|device| {
        let status = if device.available { "Available" } else { "Defined" };
        vec![device.name.clone(), status.to_owned(), device.description.clone()]
    }));
    columns(&rows, &[16, 11])
}

/// The original writes this size, and no other that we have, in hexadecimal.
const TRANSFER: &str = "max_xfer_size";

/// As the original writes it.
fn switch(on: bool) -> &'static str {
    if on { "True" } else { "False" }
}

/// One attribute of a device.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct AttributeRow {
    pub(super) name: &'static str,
    pub(super) value: String,
    /// The value that holds while none is set.
    pub(super) default: String,
    pub(super) description: String,
    pub(super) settable: &'static str,
}

impl AttributeRow {
    /// Of an attribute and the values that hold.
    pub(super) fn of(attribute: &'static Attribute, effective: &Attributes) -> AttributeRow {
        let write = |value: &Value| match value {
            Value::Number(bytes) if attribute.name == TRANSFER => super::text::hex(*bytes),
            Value::Switch(on) => switch(*on).to_owned(),
            _ => attribute.write(value),
        };
        // Of what is inherited the default is what is there to inherit, which others may set: it is left open.
        let none = Attributes::new();
        let default = fabric::attribute::effective(attribute, &none, &|_| None);
        AttributeRow {
            name: attribute.name,
            value: effective.get(attribute.name).map(write).unwrap_or_default(),
            default: default.as_ref().map(write).unwrap_or_default(),
            description: description(attribute.meaning),
            settable: match attribute.effect {
                Effect::Live => "True+",
                Effect::NextConnect | Effect::Restart | Effect::Unused => "True",
                Effect::Fixed => "False",
            },
        }
    }
}

/// The beginning of what the table says: the list has one line for each attribute.
fn description(meaning: &str) -> String {
    let plain = meaning.replace('`', "").replace('\n', " ");
    let end = plain.find([';', ':', '(']).unwrap_or(plain.len());
    let end = plain.find(". ").map_or(end, |sentence| sentence.min(end));
    plain[..end].trim_end_matches(['.', ' ', ',']).to_owned()
}

/// `lsattr -El`
pub(super) fn lsattr(rows: &[AttributeRow]) -> String {
    attribute_columns(rows, None)
}

/// `lsdev -attr`
pub(super) fn lsdev(rows: &[AttributeRow]) -> String {
    let heading = ["attribute", "value", "description", "user_settable"];
    attribute_columns(rows, Some(heading))
}

fn attribute_columns(rows: &[AttributeRow], heading: Option<[&str; 4]>) -> String {
    let mut all: Vec<Vec<String>> = Vec::new();
    if let Some(heading) = heading {
        all.push(heading.map(str::to_owned).to_vec());
        all.push(Vec::new());
    }
    all.extend(rows.iter().map(|row| {
        let settable = row.settable.to_owned();
        vec![row.name.to_owned(), row.value.clone(), row.description.clone(), settable]
    }));
    let width = |column: usize| {
        all.iter().filter_map(|row| row.get(column)).map(|cell| cell.chars().count()).max()
    };
    let widths: Vec<usize> = (0..3).map(|column| width(column).unwrap_or(0)).collect();
    columns(&all, &widths)
}

/// Columns of `lsattr -F`.
pub(super) const COLUMNS: [&str; 4] = ["attribute", "value", "description", "user_settable"];

/// `lsattr -F`: columns in the order of a format, such as `attribute value` or `attribute:value`. Blanks between them make a table.
pub(super) fn formatted(rows: &[AttributeRow], format: &str) -> Result<String, String> {
    let letter = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let names: Vec<&str> = format.split(|c| !letter(c)).filter(|word| !word.is_empty()).collect();
    let unknown = names.iter().find(|name| !COLUMNS.contains(name) && **name != "deflt");
    if let Some(unknown) = unknown {
        return Err(format!("there is no column `{unknown}`"));
    }
    if names.is_empty() {
        return Err("-F names no column".to_owned());
    }
    let cell = |row: &AttributeRow, name: &str| match name {
        "attribute" => row.name.to_owned(),
        "description" => row.description.clone(),
        "user_settable" => row.settable.to_owned(),
        "deflt" => row.default.clone(),
        _ => row.value.clone(),
    };
    if format.chars().all(|c| letter(c) || c.is_whitespace()) {
        let all: Vec<Vec<String>> =
            rows.iter().map(|row| names.iter().map(|name| cell(row, name)).collect()).collect();
        let width = |column: usize| all.iter().map(|row| row[column].chars().count()).max();
        let widths: Vec<usize> =
            (0..names.len() - 1).map(|column| width(column).unwrap_or(0)).collect();
        return Ok(columns(&all, &widths));
    }
    let line = |row: &AttributeRow| {
        let (mut text, mut rest) = (String::new(), format);
        while let Some(first) = rest.chars().next() {
            let end = rest.find(|c| letter(c) != letter(first)).unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            text += &if letter(first) { cell(row, part) } else { part.to_owned() };
            rest = after;
        }
        text
    };
    Ok(lines(&rows.iter().map(line).collect::<Vec<_>>()))
}

/// `lsdev -vpd`: what identifies a device, in the form of `lscfg -vpl`.
pub(super) fn vpd(name: &str, place: &str, description: &str, facts: &[(&str, String)]) -> String {
    let mut text = format!("  {name:<16} {place:<24} {description}\n");
    if !facts.is_empty() {
        text.push('\n');
    }
    for (what, value) in facts {
        text += &format!("        {what:.<28}{value}\n");
    }
    text
}

/// `lsdev -slots`: each slot with what is in it.
pub(super) fn slots(rows: &[(String, String)]) -> String {
    let width = rows.iter().map(|(slot, _)| slot.len()).max().unwrap_or(0).max(24);
    let mut all = vec![["# Slot", "Description", "Device(s)"].map(str::to_owned).to_vec()];
    let row = |(slot, device): &(String, String)| {
        vec![slot.clone(), "Virtual I/O Slot".to_owned(), device.clone()]
    };
    all.extend(rows.iter().map(row));
    columns(&all, &[width, 16])
}

/// `lsdev -attr NAME`
pub(super) fn value(row: &AttributeRow) -> String {
    lines(&["value".to_owned(), String::new(), row.value.clone()])
}

/// `lsattr -Rl`: the values that are allowed, or why there is no list of them.
pub(super) fn range(kind: Kind) -> Result<String, String> {
    let span = |min: u64, max: u64| vec![format!("{min}...{max} (+1)")];
    let words = match kind {
        Kind::Switch => [true, false].map(|on| switch(on).to_owned()).to_vec(),
        Kind::Number { min, max } | Kind::Size { min, max } => span(min, max),
        Kind::PowerOfTwo { min, max } => {
            let next = |power: &u64| power.checked_mul(2).filter(|power| *power <= max);
            std::iter::successors(Some(min), next).map(|power| power.to_string()).collect()
        }
        Kind::NumberOrAuto { min, max } => [span(min, max), vec!["auto".to_owned()]].concat(),
        Kind::NumberOf(list) => list.iter().map(u64::to_string).collect(),
        Kind::Word(list) => list.iter().map(|word| (*word).to_owned()).collect(),
        _ => return Err(format!("it takes {}, of which there is no list", kind.expectation())),
    };
    Ok(lines(&words))
}
