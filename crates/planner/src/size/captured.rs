//! Sizing by captures: the loads that a Virtual I/O Server was seen to carry, every input with its lines, and what the
//! captures do not tell with the command that would.

use serde::Serialize;

use super::answer::marked;
use super::{SizeError, Sizing, Workloads};
use crate::capture::Captures;
use crate::facts::Facts;
use crate::report::inputs::{self, Input, Missing};
use crate::report::{Answer, Block, Section, Table, Tone};
use crate::trace::{Figure, number};

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
    /// Processors in use, the mean of the intervals that were captured.
    #[serde(skip)]
    pub(crate) used: Option<f64>,
    /// What to mind.
    pub notes: Vec<String>,
    /// What the two of a pair have in common: the machine, and the name but for its end.
    #[serde(skip)]
    pub(crate) pair: Option<(String, String)>,
}

/// The sizes of every Virtual I/O Server among some captures.
#[derive(Debug, Clone, Serialize)]
pub struct CapturedSizings {
    /// Each server with its size, where it was seen to carry anything.
    pub servers: Vec<(Captured, Option<Sizing>)>,
    /// Each pair of servers of one machine, with the size of one while the other is down: the loads of both.
    pub pairs: Vec<(String, Sizing)>,
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
        let sizing = sizing.map(|sizing| {
            let more = uses_more(&server, &sizing);
            let notes = [more.into_iter().collect(), sizing.notes, server.notes.clone()].concat();
            Sizing { notes, ..sizing }
        });
        servers.push((server, sizing));
    }
    let pairs = pairs(&servers, facts)?;
    let files = captures.files.iter().map(|file| file.name.clone()).collect();
    Ok(CapturedSizings { servers, pairs, files })
}

/// What to mind where a server uses more processors than its loads come to: it is not to be given less.
fn uses_more(server: &Captured, sizing: &Sizing) -> Option<String> {
    let (used, size) = (server.used?, sizing.shared.as_ref().or(sizing.dedicated.as_ref())?);
    (used > size.high).then(|| {
        format!(
            "{} uses {} processors now, more than the loads that were captured come to ({}). Give it no less than it uses: other loads, or a part of these that was not captured, take the rest.",
            server.vios,
            number(used),
            size.value()
        )
    })
}

/// The sizes that failover needs, where exactly two servers make a pair and both were seen to carry something.
fn pairs(
    servers: &[(Captured, Option<Sizing>)],
    facts: &Facts,
) -> Result<Vec<(String, Sizing)>, SizeError> {
    let mut pairs = Vec::new();
    for (at, (one, size)) in servers.iter().enumerate() {
        let same = |(_, (other, _)): &(usize, &(Captured, Option<Sizing>))| {
            one.pair.is_some() && other.pair == one.pair
        };
        let of_pair: Vec<_> = servers.iter().enumerate().filter(same).collect();
        let [(first, _), (_, (other, Some(_)))] = of_pair[..] else { continue };
        if first != at || size.is_none() {
            continue;
        }
        let both = one.workloads.clone().with(&other.workloads);
        pairs.push((format!("{} and {}", one.vios, other.vios), both.size(facts)?));
    }
    Ok(pairs)
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
                |sizing| match uses_more(server, sizing).and(server.used) {
                    Some(used) => format!(
                        "{} It uses {} processors now, more than that.",
                        sizing.summary(),
                        number(used)
                    ),
                    None => sizing.summary(),
                },
            );
            format!("{}: {size}{open}", server.vios)
        };
        self.servers.iter().map(one).collect::<Vec<_>>().join(" ")
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections: Vec<Section> = self.overview().into_iter().collect();
        for (server, sizing) in &self.servers {
            let heading = format!("{}: inputs, and their lines", server.vios);
            sections.extend(inputs::told(self, heading, &server.inputs));
            sections.extend(inputs::untold(format!("{}: missing", server.vios), &server.missing));
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
        for (names, sizing) in &self.pairs {
            table.row([
                format!("{names}, one of them down"),
                sizing.dedicated.as_ref().map_or_else(|| "–".to_owned(), marked),
                sizing.shared.as_ref().map_or_else(|| "–".to_owned(), marked),
                marked(&sizing.memory),
                String::new(),
            ]);
        }
        let both = "Each server of a pair has to carry the load of both while the other one is down. Where the captures name a \
                    pair (one machine, names that differ in their end) the sum stands here; for others --loads writes the loads.";
        let section =
            || Section::new("Servers", Tone::Plain).block(Block::Table(table)).paragraph(both);
        (self.servers.len() > 1).then(section)
    }
}

fn now(server: &Captured) -> Option<Section> {
    let section = Section::new(format!("{}: what it has and uses now", server.vios), Tone::Plain);
    (!server.now.is_empty()).then(|| section.block(Block::Figures(server.now.clone())))
}
