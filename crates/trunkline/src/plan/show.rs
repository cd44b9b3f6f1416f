//! An answer on the terminal, as JSON or YAML, and as a page.

use crate::cli::{Format, Global};
use crate::exit::Failure;
use crate::output::put;
use clap::Args;
use control::error::ApiError;
use planner::facts::Facts;
use planner::report::{self, Answer};
use std::io::IsTerminal;
use std::path::{Path, PathBuf};

/// Options of everything that answers.
#[derive(Debug, Args)]
pub(super) struct AnswerArgs {
    /// Write the answer as one HTML file, with its charts, too; `-` prints that instead
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Write the answer as Markdown too, for a ticket or a wiki; `-` prints that instead
    #[arg(long, value_name = "FILE")]
    markdown: Option<PathBuf>,
    /// The same as `-o json`
    #[arg(long, conflicts_with = "output")]
    json: bool,
    /// Print for every number its formula, the values put in, and where each comes from
    #[arg(long)]
    explain: bool,
}

/// Options of everything that rests on facts.
#[derive(Debug, Args)]
pub(super) struct FactsArgs {
    /// Take facts from this file too; what it says replaces the built-in fact of the same key.
    /// May be given several times
    #[arg(long, value_name = "FILE")]
    facts: Vec<PathBuf>,
}

impl FactsArgs {
    /// The built-in facts with those of the user.
    pub(super) fn read(&self) -> Result<Facts, Failure> {
        let mut facts = Facts::builtin();
        for path in &self.facts {
            let text = read_text(path)?;
            facts.extend(&text).map_err(|error| {
                let error = error.to_string();
                ApiError::excerpt(&format!("--facts {}: {error}", path.display()))
            })?;
        }
        Ok(facts)
    }
}

/// Refuses what an answer cannot be printed as.
pub(super) fn has_format(global: &Global) -> Result<(), Failure> {
    match global.output {
        Format::Name => Err(ApiError::invalid("-o name: an answer has no names to list")
            .help("use -o table, json or yaml")
            .into()),
        Format::Table | Format::Json | Format::Yaml => Ok(()),
    }
}

impl AnswerArgs {
    /// Whether numbers are explained.
    pub(super) fn explain(&self) -> bool {
        self.explain
    }

    /// Whether a page or Markdown was asked for.
    pub(super) fn wants_a_page(&self) -> bool {
        self.html.is_some() || self.markdown.is_some()
    }

    /// Prints an answer in the format that was asked for; `page` is the same for the HTML file, where there is room for
    /// more. `more` goes into JSON and YAML beside it.
    pub(super) fn show(
        &self,
        global: &Global,
        answer: &dyn Answer,
        page: &dyn Answer,
        more: Option<(&str, serde_json::Value)>,
    ) -> Result<(), Failure> {
        if let Some(path) = &self.html {
            let page = report::html::html(page);
            if path.as_os_str() == "-" {
                return put(page.trim_end());
            }
            std::fs::write(path, page)
                .map_err(|error| Failure::other(format!("--html {}: {error}", path.display())))?;
        }
        if let Some(path) = &self.markdown {
            let text = report::markdown::markdown(page);
            if path.as_os_str() == "-" {
                return put(text.trim_end());
            }
            std::fs::write(path, text).map_err(|error| {
                Failure::other(format!("--markdown {}: {error}", path.display()))
            })?;
        }
        let format = if self.json { Format::Json } else { global.output };
        let text = match format {
            Format::Table | Format::Name => report::text::text(answer, &self.text_options()),
            Format::Json => {
                serde_json::to_string_pretty(&document(page, more)?).map_err(Failure::other)?
            }
            Format::Yaml => {
                serde_saphyr::to_string(&document(page, more)?).map_err(Failure::other)?
            }
        };
        put(text.trim_end())
    }

    fn text_options(&self) -> report::text::Options {
        let terminal = std::io::stdout().is_terminal();
        report::text::Options {
            width: columns(terminal),
            colour: terminal && std::env::var_os("NO_COLOR").is_none(),
            explain: self.explain,
        }
    }
}

/// How wide to print: what `COLUMNS` says, else as the terminal is, else 100.
fn columns(terminal: bool) -> usize {
    let said = std::env::var("COLUMNS").ok().and_then(|text| text.parse().ok());
    let asked = || {
        let size = rustix::termios::tcgetwinsize(std::io::stdout()).ok()?;
        (terminal && size.ws_col > 0).then_some(usize::from(size.ws_col))
    };
    said.or_else(asked).unwrap_or(100)
}

fn document(
    answer: &dyn Answer,
    more: Option<(&str, serde_json::Value)>,
) -> Result<serde_json::Value, Failure> {
    let text = report::json(answer).map_err(Failure::other)?;
    let mut document: serde_json::Value = serde_json::from_str(&text).map_err(Failure::other)?;
    if let Some((key, value)) = more {
        document[key] = value;
    }
    Ok(document)
}

/// A file as it is called in a message.
pub(super) fn called(path: &Path) -> String {
    match path.as_os_str() == "-" {
        true => "standard input".to_owned(),
        false => path.display().to_string(),
    }
}

/// A small text that a user wrote: a plan, workloads, facts; `-` is standard input.
pub(super) fn read_text(path: &Path) -> Result<String, Failure> {
    let read = if path.as_os_str() == "-" {
        control::config::text(std::io::stdin().lock())
    } else {
        std::fs::File::open(path).and_then(control::config::text)
    };
    read.map_err(|error| match error.kind() {
        std::io::ErrorKind::InvalidData => {
            ApiError::invalid(format!("{}: not a text in UTF-8", called(path))).into()
        }
        _ => Failure::other(format!("{}: {error}", called(path))),
    })
}
