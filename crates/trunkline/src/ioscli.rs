//! `trunkline ioscli`: the commands of PowerVM's Virtual I/O Server, typed and printed as there.
//!
//! Each command is read by a table ([`words`]), gets what it shows from the API ([`system`]) and prints it with a
//! function of plain values ([`fcstat`], [`maps`], [`devices`]). What these print, `trunkline plan` reads.

mod act;
mod baseline;
mod devices;
mod entstat;
mod errlog;
mod fcstat;
mod iostat;
mod lnagg;
mod maps;
mod media;
mod npiv;
mod san;
mod sea;
mod seastat;
mod show;
mod ssp;
mod system;
mod table;
mod text;
mod watch;
mod words;

use crate::cli::{Format, Global};
use crate::client::Client;
use crate::exit::Failure;
use crate::output::put;
use control::error::ApiError;
use table::COMMANDS;
use words::{Syntax, Words};

/// The device type of a virtual Fibre Channel adapter, as its client would see it.
const VFC_CLIENT: &str = "Virtual Fibre Channel Client Adapter (trunkline/adapter/fc)";

/// A command.
struct Command {
    syntax: Syntax,
    /// Gives what is printed.
    run: fn(&Context<'_>, &Words) -> Result<String, Failure>,
}

/// What commands work with.
struct Context<'a> {
    global: &'a Global,
    client: Client,
    /// Disks may be taken from clients that are connected.
    force: bool,
}

/// What this server asks for before it takes a disk from a client; no command of the original has a flag with two dashes.
const FORCE: &str = "--force";

/// The page of `trunkline ioscli` alone.
fn overview() -> String {
    let width = COMMANDS.iter().map(|command| command.syntax.name.len()).max().unwrap_or(0);
    let rows: Vec<String> = COMMANDS
        .iter()
        .map(|command| format!("  {:width$}  {}", command.syntax.name, command.syntax.about))
        .collect();
    format!(
        "Commands of a PowerVM Virtual I/O Server:\n\n{}\n\n\
         `trunkline ioscli COMMAND -help` has the flags of a command and says where it differs.\n\
         What takes a disk from a client that is connected needs `--force`, anywhere behind `ioscli`.",
        rows.join("\n")
    )
}

/// `trunkline ioscli …`
pub(crate) fn main(global: &Global, typed: &[String]) -> Result<(), Failure> {
    let force = typed.iter().any(|word| word == FORCE);
    let typed: Vec<String> = typed.iter().filter(|word| *word != FORCE).cloned().collect();
    let asks = |word: &String| matches!(word.as_str(), "-help" | "--help" | "-h" | "-?");
    let Some((name, rest)) = typed.split_first() else { return put(&overview()) };
    if name == "help" || asks(name) {
        return put(&overview());
    }
    let Some(command) = COMMANDS.iter().find(|command| command.syntax.name == name) else {
        let known = COMMANDS.iter().map(|command| command.syntax.name);
        let meant = fabric::suggest::nearest(name, known);
        let meant = meant.map(|name| format!("; did you mean `{name}`?")).unwrap_or_default();
        let refusal = ApiError::invalid(format!("there is no `{name}`{meant}"));
        return Err(refusal.help("`trunkline ioscli` lists the commands").into());
    };
    if rest.iter().any(asks) {
        return put(&command.syntax.help());
    }
    if global.output != Format::Table {
        let refusal =
            ApiError::invalid("ioscli prints what the original prints, and no other format");
        return Err(refusal.help("`trunkline stats` and the other nouns have --output").into());
    }
    let words = command.syntax.read(rest).map_err(|problem| command.wrong(problem))?;
    let context = Context { global, client: Client::new(global)?, force };
    let text = (command.run)(&context, &words)?;
    match text.trim_end_matches('\n') {
        "" => Ok(()),
        text => put(text),
    }
}

impl Command {
    fn wrong(&self, problem: String) -> Failure {
        let name = self.syntax.name;
        let form = self.syntax.usage.first().copied().unwrap_or_default();
        ApiError::invalid(problem)
            .help(format!("`{name} {form}`; more with `trunkline ioscli {name} -help`"))
            .into()
    }
}

/// A usage error that the table of flags cannot find.
fn wrong(problem: impl Into<String>, help: &str) -> Failure {
    ApiError::invalid(problem).help(help).into()
}

/// What is wrong with a command as it is typed behind `ioscli`, as far as that is known without a server.
#[cfg(test)]
pub(crate) fn misunderstood(typed: &[String]) -> Option<String> {
    let mut typed = typed.iter().filter(|word| *word != FORCE).cloned();
    let name = typed.next().filter(|name| !["COMMAND", "name"].contains(&name.as_str()))?;
    let rest: Vec<String> = typed.collect();
    match COMMANDS.iter().find(|command| command.syntax.name == name) {
        None => Some(format!("there is no `{name}`")),
        Some(_) if rest == ["-help"] => None,
        Some(command) => command.syntax.read(&rest).err(),
    }
}

#[cfg(test)]
mod npiv_tests;
#[cfg(test)]
mod sea_tests;
#[cfg(test)]
mod ssp_tests;
#[cfg(test)]
mod tests;
