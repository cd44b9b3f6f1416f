//! A sizing as the reports show it.

use crate::report::{Answer, Block, Section, Table, Tone};
use crate::trace::{Figure, Term};

use super::total::{Part, Sizing};

impl Answer for Sizing {
    fn kind(&self) -> &'static str {
        "size"
    }

    fn title(&self) -> String {
        "Size of a Virtual I/O Server".to_owned()
    }

    fn summary(&self) -> String {
        let mut words = Vec::new();
        let shared = self.shared.as_ref().map(|figure| format!("{} shared", marked(figure)));
        let dedicated =
            self.dedicated.as_ref().map(|figure| format!("{} dedicated", marked(figure)));
        let processors: Vec<String> = dedicated.into_iter().chain(shared).collect();
        words.push(format!("{} processors", processors.join(" or ")));
        words.push(format!("{} GB of memory", marked(&self.memory)));
        if let Some(memory) = &self.hypervisor_memory {
            words.push(format!("{} MB of hypervisor memory", marked(memory)));
        }
        format!("{}.", words.join(", "))
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = vec![self.overview()];
        sections.extend(self.parts.iter().map(part));
        let totals = Block::Figures(self.totals.clone());
        sections.push(Section::new("Together", Tone::Plain).block(totals));
        sections.extend(Section::to_mind(&self.notes));
        sections.extend(Section::sources_differ(&self.contradictions));
        sections
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(self)
    }
}

/// The value, with a mark when it rests on a fact that no source confirms.
pub(super) fn marked(figure: &Figure) -> String {
    if figure.confirmed() { figure.value() } else { format!("~{}", figure.value()) }
}

impl Sizing {
    fn overview(&self) -> Section {
        let columns = ["load", "#processors", "#VIOS memory MB", "#hypervisor memory MB"];
        let mut table = Table::new("", &columns);
        for part in &self.parts {
            let value = |term: &Option<Term>| match term {
                Some(term) if term.origin.confirmed() => term.value(),
                Some(term) => format!("~{}", term.value()),
                None => String::new(),
            };
            let cells = [&part.processors, &part.vios_memory, &part.hypervisor_memory];
            let mut row = vec![part.heading()];
            row.extend(cells.map(value));
            table.row(row);
        }
        Section::new("Loads", Tone::Plain).block(Block::Table(table))
    }
}

fn part(part: &Part) -> Section {
    let tone = if part.notes.is_empty() { Tone::Plain } else { Tone::Note };
    let section = Section::new(part.heading(), tone).block(Block::Figures(part.figures.clone()));
    match part.notes.is_empty() {
        true => section,
        false => section.block(Block::List(part.notes.clone())),
    }
}
