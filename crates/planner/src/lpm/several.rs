//! The outcomes of several paths of captures in one answer.

use super::Outcome;
use crate::report::{Answer, Block, Section, Table, Tone};

/// Paths, each by how it is called, with what becomes of it.
pub struct Outcomes(pub Vec<(String, Outcome)>);

impl Answer for Outcomes {
    fn kind(&self) -> &'static str {
        "lpm"
    }

    fn title(&self) -> String {
        "Queues after a migration, by the captures".to_owned()
    }

    fn summary(&self) -> String {
        let lost = self.0.iter().filter(|(_, outcome)| loses(outcome)).count();
        match (self.0.len(), lost) {
            (all, 0) => format!(
                "{all} paths; none of them has fewer queues afterwards, as far as is known."
            ),
            (all, lost) => format!("{all} paths; {lost} may have fewer queues afterwards."),
        }
    }

    fn sections(&self) -> Vec<Section> {
        let mut table =
            Table::new("", &["path", "#queues now", "#queues in the end", "what is said of it"]);
        for (name, outcome) in &self.0 {
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
        let mut sections = vec![Section::new("Paths", Tone::Plain).block(Block::Table(table))];
        for (name, outcome) in &self.0 {
            sections.extend(outcome.sections().into_iter().map(|section| Section {
                heading: format!("{name}: {}", section.heading),
                ..section
            }));
        }
        sections
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        let one = |(name, outcome): &(String, Outcome)| {
            Ok(serde_json::json!({ "path": name, "outcome": serde_json::to_value(outcome)? }))
        };
        self.0.iter().map(one).collect::<Result<Vec<_>, _>>().map(serde_json::Value::Array)
    }
}

/// Whether the last stage can have fewer queues than the first.
fn loses(outcome: &Outcome) -> bool {
    let queues = |stage: Option<&super::Stage>| stage.and_then(super::Stage::queues);
    let (first, last) = (queues(outcome.stages.first()), queues(outcome.stages.last()));
    first.zip(last).is_none_or(|(first, last)| last < first)
}
