//! An outcome as the reports show it.

use crate::report::{Answer, Block, Section, Table, Tone};

use super::check::Judgement;
use super::outcome::{Outcome, Stage};
use super::words;

impl Answer for Outcome {
    fn kind(&self) -> &'static str {
        "lpm"
    }

    fn title(&self) -> String {
        let client = &self.plan.client;
        format!("Queues of a client of {} that is at {}", client.system.product(), client.at)
    }

    fn summary(&self) -> String {
        let counts: Vec<String> = self.stages.iter().map(counts).collect();
        let mut text = format!("Queues: {}.", counts.join(" → "));
        if !self.unknown.is_empty() {
            text.push_str(&format!(" It depends on what is unknown: {}.", self.unknown.join(", ")));
        }
        text
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = vec![self.overview()];
        sections.extend(self.stages.iter().map(stage));
        sections.push(self.requirements());
        sections.extend(Section::to_mind(&self.notes));
        sections.extend(Section::sources_differ(&self.contradictions));
        sections
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(self)
    }
}

impl Outcome {
    fn overview(&self) -> Section {
        let mut table = Table::new("", &["step", "at", "#queues", "because"]);
        for stage in &self.stages {
            let because = match stage.cases.as_slice() {
                [only] => words::brief(&self.plan, &stage.server, &only.limits),
                several => format!("{} outcomes are possible; see below", several.len()),
            };
            table.row([stage.event.clone(), stage.server.clone(), counts(stage), because]);
        }
        Section::new("Outcome", Tone::Plain).block(Block::Table(table))
    }

    fn requirements(&self) -> Section {
        let mut table =
            Table::new("", &["of", "what", "given", "multi-queue needs", "judgement", "source"]);
        for check in &self.checks {
            let source = check.source.as_ref().map(|source| match source.confirmed {
                true => source.id.clone(),
                false => format!("{} (unconfirmed)", source.id),
            });
            table.row([
                check.object.clone(),
                check.what.clone(),
                check.given.clone().unwrap_or_default(),
                check.needed.clone(),
                check.judgement.to_string(),
                source.unwrap_or_default(),
            ]);
        }
        let failed = self.checks.iter().any(|check| check.judgement == Judgement::NotMet);
        let unknown = self.checks.iter().any(|check| check.judgement != Judgement::Met);
        let tone = match (failed, unknown) {
            (true, _) => Tone::Warning,
            (false, true) => Tone::Note,
            (false, false) => Tone::Good,
        };
        Section::new("Requirements of multi-queue", tone).block(Block::Table(table))
    }
}

/// `8`, or `8 or 1` where it is not known.
fn counts(stage: &Stage) -> String {
    let counts: Vec<String> = stage.cases.iter().map(|case| case.queues.to_string()).collect();
    counts.join(" or ")
}

fn queues(count: u32) -> String {
    format!("{count} queue{}", if count == 1 { "" } else { "s" })
}

fn stage(stage: &Stage) -> Section {
    let tone = if stage.cases.len() > 1 { Tone::Note } else { Tone::Plain };
    let mut section = Section::new(format!("{}, at {}", stage.event, stage.server), tone);
    for case in &stage.cases {
        if stage.cases.len() > 1 {
            let conditions = match case.conditions.is_empty() {
                true => "otherwise".to_owned(),
                false => format!("if {}", case.conditions.join(" and ")),
            };
            section = section.paragraph(format!("{} {conditions}:", queues(case.queues)));
        }
        section = section.paragraph(case.why.clone());
        section = section.block(Block::Figures(vec![case.figure.clone()]));
        if !case.brings_back.is_empty() {
            let text = case.brings_back.join("; then ");
            section = section.block(Block::Labelled { label: "for more".to_owned(), text });
        }
    }
    section
}
