//! The outcomes of several paths of captures in one answer.

use std::collections::BTreeSet;

use super::{CapturedPath, Outcome, Unmapped};
use crate::report::inputs::{self, Input, Missing};
use crate::report::{Answer, Block, Section, Table, Tone, place};

/// Paths, each by how it is called, with what becomes of it.
pub struct Outcomes {
    /// The paths.
    pub paths: Vec<(String, CapturedPath, Outcome)>,
    /// Adapters that are none, since no port is behind them.
    pub unmapped: Vec<Unmapped>,
    /// Names of the files, by number.
    pub files: Vec<String>,
}

impl Answer for Outcomes {
    fn kind(&self) -> &'static str {
        "lpm"
    }

    fn title(&self) -> String {
        "Queues after a migration, by the captures".to_owned()
    }

    fn summary(&self) -> String {
        let mut all = [0; 3];
        for (_, _, outcome) in &self.paths {
            all[match loses(outcome) {
                Some(true) => 0,
                Some(false) => 1,
                None => 2,
            }] += 1;
        }
        let [lost, kept, open] = all;
        let paths = match self.paths.len() {
            1 => "1 path".to_owned(),
            count => format!("{count} paths"),
        };
        format!(
            "{paths}: {lost} with fewer queues afterwards, {kept} with as many or more, {open} where it depends on what the captures do not tell."
        )
    }

    fn sections(&self) -> Vec<Section> {
        let mut table =
            Table::new("", &["path", "#queues now", "#queues in the end", "what is said of it"]);
        for (name, _, outcome) in &self.paths {
            let queues = |stage: Option<&super::Stage>| {
                let known = stage.and_then(super::Stage::queues);
                known.map_or_else(|| "depends".to_owned(), |queues| queues.to_string())
            };
            table.row([
                name.clone(),
                queues(outcome.stages.first()),
                queues(outcome.stages.last()),
                outcome.summary(),
            ]);
        }
        let mut section = Section::new("Paths", Tone::Plain).block(Block::Table(table));
        if !self.unmapped.is_empty() {
            section = section.paragraph(self.not_counted());
        }
        let mut sections = vec![section];
        // What paths share, as the levels of their server, stands there once.
        let mut told: Vec<Input> = Vec::new();
        let mut missing: BTreeSet<Missing> = BTreeSet::new();
        for (_, path, _) in &self.paths {
            for input in &path.inputs {
                if !told.contains(input) {
                    told.push(input.clone());
                }
            }
            missing.extend(path.missing.iter().cloned());
        }
        let missing: Vec<Missing> = missing.into_iter().collect();
        sections.extend(inputs::told(self, "Inputs, and their lines".to_owned(), &told));
        sections.extend(inputs::untold("Missing".to_owned(), &missing));
        for (name, _, outcome) in &self.paths {
            sections.extend(outcome.sections().into_iter().map(|section| Section {
                heading: format!("{name}: {}", section.heading),
                ..section
            }));
        }
        sections
    }

    fn file_name(&self, file: u32) -> Option<String> {
        self.files.get(usize::try_from(file).ok()?).cloned()
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        let one = |(name, path, outcome): &(String, CapturedPath, Outcome)| {
            Ok(serde_json::json!({
                "path": name,
                "inputs": serde_json::to_value(&path.inputs)?,
                "missing": serde_json::to_value(&path.missing)?,
                "outcome": serde_json::to_value(outcome)?,
            }))
        };
        self.paths.iter().map(one).collect::<Result<Vec<_>, _>>().map(serde_json::Value::Array)
    }
}

impl Outcomes {
    /// Which adapters are left out, and why.
    fn not_counted(&self) -> String {
        let one = |adapter: &Unmapped| {
            let of =
                adapter.client.as_ref().map_or(String::new(), |client| format!(" of {client}"));
            format!("{}{of} ({})", adapter.server, place(self, adapter.at))
        };
        let all: Vec<String> = self.unmapped.iter().map(one).collect();
        format!(
            "No path, since no port is behind it (NOT_MAPPED): {}. `vfcmap` on the VIOS gives it one.",
            all.join(", ")
        )
    }
}

/// Whether the last stage has fewer queues than the first; `None` where that is not known.
fn loses(outcome: &Outcome) -> Option<bool> {
    let queues = |stage: Option<&super::Stage>| stage.and_then(super::Stage::queues);
    let (first, last) = (queues(outcome.stages.first()), queues(outcome.stages.last()));
    first.zip(last).map(|(first, last)| last < first)
}
