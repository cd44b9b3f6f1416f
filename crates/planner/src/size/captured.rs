//! Sizing by captures: the loads that a Virtual I/O Server was seen to carry, every input with its lines, and what the
//! captures do not tell with the command that would.

use std::collections::BTreeSet;

use serde::Serialize;

use super::answer::marked;
use super::{SizeError, Sizing, Workloads};
use crate::capture::{At, Captures};
use crate::facts::Facts;
use crate::report::{Answer, Block, Section, Table, Tone, place};
use crate::trace::{Figure, Origin};

/// So many lines stand in a cell.
const PLACES: usize = 8;

/// What captures tell of one Virtual I/O Server's loads.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Captured {
    /// How the server is called.
    pub vios: String,
    /// Its loads.
    pub workloads: Workloads,
    /// Every input that captures told.
    pub inputs: Vec<Input>,
    /// Every input that they did not.
    pub missing: Vec<Missing>,
    /// What the server has and uses now, to hold the answer against.
    pub now: Vec<Figure>,
    /// What to mind.
    pub notes: Vec<String>,
}

/// One input.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Input {
    /// The load that it is of: `SEA ent9`.
    pub load: String,
    /// What it is: `I/O/s`.
    pub name: String,
    /// The value as people read it.
    pub value: String,
    /// How it comes out of the lines; empty where it stands there as it is.
    pub formula: String,
    /// The lines.
    pub lines: Vec<At>,
}

impl Input {
    /// An input that stands in a line, or is reckoned from several.
    pub(crate) fn of(load: &str, name: &str, figure: &Figure) -> Self {
        let lines: BTreeSet<At> = figure
            .terms
            .iter()
            .filter_map(|term| match term.origin {
                Origin::Capture(at) => Some(at),
                _ => None,
            })
            .collect();
        let plain = matches!(figure.terms.as_slice(), [only] if only.name == figure.formula);
        Self {
            load: load.to_owned(),
            name: name.to_owned(),
            value: format!("{} {}", figure.value(), figure.unit).trim_end().to_owned(),
            formula: match plain {
                true => String::new(),
                false => format!("{} = {}", figure.formula, figure.put_in()),
            },
            lines: lines.into_iter().collect(),
        }
    }
}

/// An input that captures do not tell.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Missing {
    /// The load that it is of.
    pub load: String,
    /// What is missing.
    pub what: String,
    /// What is reckoned with instead.
    pub instead: String,
    /// The command whose output would tell it.
    pub capture: String,
}

/// The sizes of every Virtual I/O Server among some captures.
#[derive(Debug, Clone, Serialize)]
pub struct CapturedSizings {
    /// Each server with its size, where it was seen to carry anything.
    pub servers: Vec<(Captured, Option<Sizing>)>,
    /// Names of the files, by number.
    #[serde(skip)]
    files: Vec<String>,
}

/// Sizes every Virtual I/O Server among the captures.
///
/// # Errors
/// A value that cannot be, as a pool of no size.
pub fn captured(captures: &Captures, facts: &Facts) -> Result<CapturedSizings, SizeError> {
    let mut servers = Vec::new();
    for server in crate::advise::loads(captures, facts) {
        let sizing = match server.workloads.is_empty() {
            true => None,
            false => Some(server.workloads.size(facts)?),
        };
        let sizing = sizing.map(|sizing| Sizing {
            notes: [sizing.notes, server.notes.clone()].concat(),
            ..sizing
        });
        servers.push((server, sizing));
    }
    let files = captures.files.iter().map(|file| file.name.clone()).collect();
    Ok(CapturedSizings { servers, files })
}

impl Answer for CapturedSizings {
    fn kind(&self) -> &'static str {
        "size"
    }

    fn title(&self) -> String {
        match self.servers.as_slice() {
            [(only, _)] => format!("Size of {}, by captures", only.vios),
            _ => "Size of Virtual I/O Servers, by captures".to_owned(),
        }
    }

    fn summary(&self) -> String {
        let one = |(server, sizing): &(Captured, Option<Sizing>)| {
            let open = match server.missing.len() {
                0 => String::new(),
                1 => " One input is missing.".to_owned(),
                open => format!(" {open} inputs are missing."),
            };
            let size = sizing.as_ref().map_or_else(
                || "no load was captured that can be sized.".to_owned(),
                |sizing| sizing.summary(),
            );
            format!("{}: {size}{open}", server.vios)
        };
        self.servers.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections: Vec<Section> = self.overview().into_iter().collect();
        for (server, sizing) in &self.servers {
            sections.extend(self.inputs(server));
            sections.extend(missing(server));
            sections.extend(now(server));
            let of_server = match sizing {
                Some(sizing) => sizing.sections(),
                None => Section::to_mind(&server.notes).into_iter().collect(),
            };
            sections.extend(of_server.into_iter().map(|section| Section {
                heading: format!("{}: {}", server.vios, section.heading),
                ..section
            }));
        }
        sections
    }

    fn file_name(&self, file: u32) -> Option<String> {
        self.files.get(usize::try_from(file).ok()?).cloned()
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        let one = |(server, sizing): &(Captured, Option<Sizing>)| {
            Ok(serde_json::json!({
                "captured": serde_json::to_value(server)?,
                "sizing": serde_json::to_value(sizing)?,
            }))
        };
        self.servers.iter().map(one).collect::<Result<Vec<_>, _>>().map(serde_json::Value::Array)
    }
}

impl CapturedSizings {
    /// `a.txt:7, 84; b.txt:3`.
    fn lines(&self, lines: &[At]) -> String {
        let mut text = String::new();
        let mut before = None;
        for at in lines.iter().take(PLACES) {
            match before {
                Some(file) if file == at.file => text.push_str(&format!(", {}", at.line)),
                Some(_) => text.push_str(&format!("; {}", place(self, *at))),
                None => text.push_str(&place(self, *at)),
            }
            before = Some(at.file);
        }
        if lines.len() > PLACES {
            text.push_str(&format!(" and {} more", lines.len() - PLACES));
        }
        text
    }

    /// The servers beside each other, where there are several.
    fn overview(&self) -> Option<Section> {
        let columns = [
            "server",
            "#dedicated processors",
            "#shared processors",
            "#memory GB",
            "#inputs missing",
        ];
        let mut table = Table::new("", &columns);
        for (server, sizing) in &self.servers {
            let value = |figure: Option<&Figure>| figure.map_or_else(|| "–".to_owned(), marked);
            let of = |pick: fn(&Sizing) -> Option<&Figure>| value(sizing.as_ref().and_then(pick));
            table.row([
                server.vios.clone(),
                of(|sizing| sizing.dedicated.as_ref()),
                of(|sizing| sizing.shared.as_ref()),
                of(|sizing| Some(&sizing.memory)),
                server.missing.len().to_string(),
            ]);
        }
        let both = "Each server of a pair has to carry the load of both while the other one is down: \
                    for such a pair, size one server with the loads of both (--loads writes them).";
        let section =
            || Section::new("Servers", Tone::Plain).block(Block::Table(table)).paragraph(both);
        (self.servers.len() > 1).then(section)
    }

    fn inputs(&self, server: &Captured) -> Option<Section> {
        let mut table = Table::new("", &["load", "input", "#value", "how", "lines"]);
        for input in &server.inputs {
            table.row([
                input.load.clone(),
                input.name.clone(),
                input.value.clone(),
                input.formula.clone(),
                self.lines(&input.lines),
            ]);
        }
        let section =
            Section::new(format!("{}: inputs, and their lines", server.vios), Tone::Plain);
        (!table.rows.is_empty()).then(|| section.block(Block::Table(table)))
    }
}

fn missing(server: &Captured) -> Option<Section> {
    let mut table =
        Table::new("", &["load", "what is missing", "reckoned with", "what would tell it"]);
    for missing in &server.missing {
        table.row(
            [&missing.load, &missing.what, &missing.instead, &missing.capture].map(Clone::clone),
        );
    }
    let section = Section::new(format!("{}: missing", server.vios), Tone::Note);
    (!table.rows.is_empty()).then(|| section.block(Block::Table(table)))
}

fn now(server: &Captured) -> Option<Section> {
    let section = Section::new(format!("{}: what it has and uses now", server.vios), Tone::Plain);
    (!server.now.is_empty()).then(|| section.block(Block::Figures(server.now.clone())))
}
