//! What was read, field by field, each with its line: so that an answer can be traced to what it rests on.

use serde_json::Value;

use super::advice::counted;
use super::{Answer, Block, Section, Table, Tone, moment};
use crate::capture::{At, Captures, Report};
use crate::model::Model;

/// The captures as they were understood.
pub struct Parsed<'a> {
    /// What was read.
    pub captures: &'a Captures,
    /// Which report belongs to which system.
    pub model: &'a Model,
}

impl Answer for Parsed<'_> {
    fn kind(&self) -> &'static str {
        "show"
    }

    fn title(&self) -> String {
        "What was read".to_owned()
    }

    fn summary(&self) -> String {
        let (reports, files) = (self.captures.reports.len(), self.captures.files.len());
        let systems = self.model.systems.len();
        let files = counted(files, "file", "files");
        format!("Reports: {reports}, in {files}; systems that they name: {systems}.")
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = vec![self.systems()];
        let reports = self.captures.reports.iter().enumerate();
        sections.extend(reports.map(|(at, report)| self.report(at, report)));
        let unread: Vec<String> = self
            .captures
            .unread
            .iter()
            .map(|unread| {
                let text = unread.text.lines().next().unwrap_or_default();
                format!(
                    "{} ({}): {text} ({})",
                    super::place(self, unread.at),
                    counted(usize::try_from(unread.lines).unwrap_or(usize::MAX), "line", "lines"),
                    unread.why
                )
            })
            .collect();
        if !unread.is_empty() {
            sections.push(Section::new("In no report", Tone::Note).block(Block::List(unread)));
        }
        let refused: Vec<String> = self
            .captures
            .refused
            .iter()
            .map(|refused| {
                format!("{} {}: {}", super::place(self, refused.at), refused.command, refused.why)
            })
            .collect();
        if !refused.is_empty() {
            sections.push(Section::new("Not read", Tone::Warning).block(Block::List(refused)));
        }
        sections
    }

    fn file_name(&self, file: u32) -> Option<String> {
        self.captures.files.get(usize::try_from(file).ok()?).map(|file| file.name.clone())
    }

    fn data(&self) -> Result<Value, serde_json::Error> {
        Ok(serde_json::json!({
            "systems": serde_json::to_value(&self.model.systems)?,
            "captures": serde_json::to_value(self.captures)?,
        }))
    }
}

impl Parsed<'_> {
    fn systems(&self) -> Section {
        let columns = ["system", "kind", "machine", "id", "WWPNs", "files"];
        let mut table = Table::new("", &columns);
        for (at, system) in self.model.systems.iter().enumerate() {
            let wwpns: Vec<String> =
                system.wwpns.iter().map(|(device, wwpn)| format!("{device} {wwpn}")).collect();
            let files: Vec<&str> = system.files.iter().map(String::as_str).collect();
            table.row([
                self.model.spoken(at).to_owned(),
                format!("{:?}", system.role).to_lowercase(),
                system.machine.clone().unwrap_or_default(),
                system.partition_id.map_or_else(String::new, |id| id.to_string()),
                wwpns.join(", "),
                if files.is_empty() { "named by others".to_owned() } else { files.join(", ") },
            ]);
        }
        Section::new("Systems", Tone::Plain).block(Block::Table(table))
    }

    fn report(&self, at: usize, report: &Report) -> Section {
        let head = report.head();
        let device = head.device.as_ref().map_or(String::new(), |read| format!(" {}", read.value));
        let heading =
            format!("{}{device} on {}", report.command(), self.model.spoken(self.model.owner(at)));
        let mut table = Table::new("", &["field", "value", "#line"]);
        let mut row = |field: &str, value: String, at: At| {
            table.row([field.to_owned(), value, at.line.to_string()]);
        };
        if let Ok(value) = serde_json::to_value(report) {
            fields("", &value, head.first, &mut row);
        }
        let taken = head.taken.as_ref().map_or("at a time that is not known".to_owned(), moment);
        let mut section = Section::new(heading, Tone::Plain).paragraph(format!(
            "{}, lines {} to {}, {taken}",
            super::place(self, head.first),
            head.first.line,
            head.last
        ));
        let mut remarks: Vec<String> = head.incomplete.iter().map(ToString::to_string).collect();
        remarks.extend(head.unread.iter().map(|unread| {
            let text = unread.text.lines().next().unwrap_or_default();
            format!("line {} was not understood: {text} ({})", unread.at.line, unread.why)
        }));
        if !remarks.is_empty() {
            section = section.block(Block::List(remarks));
        }
        section.block(Block::Table(table))
    }
}

/// Every field that holds something, by its path; with the line of its own or of the row that it stands in.
fn fields(path: &str, value: &Value, near: At, row: &mut dyn FnMut(&str, String, At)) {
    let below = |key: &str| if path.is_empty() { key.to_owned() } else { format!("{path}.{key}") };
    match value {
        Value::Null => {}
        Value::Array(list) if list.iter().all(|one| !one.is_object()) => {
            if !list.is_empty() {
                let words: Vec<String> = list.iter().map(plain).collect();
                row(path, words.join(" "), near);
            }
        }
        Value::Array(list) => {
            for (at, one) in list.iter().enumerate() {
                let name = one.get("name").and_then(Value::as_str);
                let key = name.map_or_else(|| at.to_string(), str::to_owned);
                fields(&below(&key), one, near, row);
            }
        }
        Value::Object(map) => {
            let at = map.get("at").and_then(at).unwrap_or(near);
            if let (Some(value), 2, true) = (map.get("value"), map.len(), map.contains_key("at")) {
                return fields(path, value, at, row);
            }
            for (key, one) in
                map.iter().filter(|(key, _)| !matches!(key.as_str(), "at" | "head" | "kind"))
            {
                fields(&below(key), one, at, row);
            }
        }
        _ => row(path, plain(value), near),
    }
}

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn at(value: &Value) -> Option<At> {
    let number = |key| u32::try_from(value.get(key)?.as_u64()?).ok();
    Some(At { file: number("file")?, line: number("line")? })
}
