//! Changes of attributes as they were typed, and which of them are for later: `chdev -P` on AIX and `chdev … -perm` on a VIOS set
//! a value that holds after the device is configured again. What is listed below them in the same session is that value, and not
//! the one that the device works by; what another file lists is held against the change itself ([`Chdev`]).

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::prompt::{Command, Part};
use super::{Attribute, Head, Read, Report};

/// A change that was made: `chdev`, and the line `fcs0 changed` below it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Chdev {
    /// Where it came from, with the device.
    pub head: Head,
    /// What was set; [`Attribute::pending`] where it is for later and no restart follows in the session.
    pub attributes: Vec<Attribute>,
}

/// What was changed for later in one session, by partition and device: what takes effect is found without looking through
/// the rest.
#[derive(Default)]
pub(super) struct Changes(BTreeMap<Option<String>, BTreeMap<String, Later>>);

/// What was changed for later of one device.
#[derive(Default)]
struct Later {
    attributes: BTreeSet<String>,
    /// The reports of these changes, by their numbers in the file.
    made: Vec<usize>,
}

impl Changes {
    /// Notes what a command changes, and forgets what takes effect by it, also in the reports of changes before it.
    pub(super) fn typed(
        &mut self,
        partition: Option<&Read<String>>,
        command: &Command<'_>,
        before: &mut [Report],
    ) {
        for part in &command.parts {
            let on = || {
                let own = part.partition.map(str::to_owned);
                own.or_else(|| partition.map(|read| read.value.clone()))
            };
            match part.program {
                "chdev" if is_for_later(part) => {
                    let Some(device) = device(part) else { continue };
                    let names = sets(part).map(|(name, _)| name.to_owned());
                    self.of(on(), device).attributes.extend(names);
                }
                "shutdown" | "reboot" => self.take_effect(&on(), None, before),
                // What is configured already is left as it is by `cfgmgr` and `mkdev`.
                "rmdev" => {
                    let children = part.has("-R") || part.has("-recursive") || part.has("-Rl");
                    let device = device(part).filter(|_| !children);
                    self.take_effect(&on(), device, before);
                }
                _ => {}
            }
        }
    }

    fn of(&mut self, partition: Option<String>, device: &str) -> &mut Later {
        self.0.entry(partition).or_default().entry(device.to_owned()).or_default()
    }

    /// Notes the report of a change for later by its number in the file.
    pub(super) fn made(&mut self, number: usize, report: &Report) {
        let Report::Chdev(change) = report else { return };
        let device = change.head.device.as_ref().map_or("", |read| &read.value);
        if change.attributes.iter().any(|attribute| attribute.pending) {
            let partition = change.head.partition.as_ref().map(|read| read.value.clone());
            self.of(partition, device).made.push(number);
        }
    }

    /// What was set for later on a system, or on one device of it, is in force.
    fn take_effect(&mut self, on: &Option<String>, device: Option<&str>, before: &mut [Report]) {
        let gone: Vec<Later> = match device {
            None => self.0.remove(on).into_iter().flat_map(BTreeMap::into_values).collect(),
            Some(device) => {
                self.0.get_mut(on).and_then(|of| of.remove(device)).into_iter().collect()
            }
        };
        for number in gone.iter().flat_map(|later| &later.made) {
            if let Some(Report::Chdev(change)) = before.get_mut(*number) {
                change.attributes.iter_mut().for_each(|attribute| attribute.pending = false);
            }
        }
    }

    /// Marks the attributes of a report that show what was changed.
    pub(super) fn mark(&self, report: &mut Report) {
        if self.0.is_empty() {
            return;
        }
        let head = report.head();
        let partition = head.partition.as_ref().map(|read| read.value.clone());
        let device = head.device.as_ref().map(|read| read.value.as_str());
        let later = device.and_then(|device| self.0.get(&partition)?.get(device));
        let list: &mut Vec<Attribute> = match report {
            Report::Lsattr(report) => &mut report.attributes,
            Report::LsdevAttr(report) => &mut report.attributes,
            _ => return,
        };
        for attribute in list {
            attribute.pending |=
                later.is_some_and(|later| later.attributes.contains(attribute.name.as_str()));
        }
    }
}

/// What `fcs0 changed` says of the command above it: which of its parts it answers, and what was set.
pub(super) fn made<'c>(
    command: &'c Command<'_>,
    text: &str,
) -> Option<(usize, &'c str, Vec<Attribute>)> {
    let changed = text.strip_suffix(" changed").filter(|name| !name.contains(' '))?;
    let answers = |part: &Part<'_>| part.program == "chdev" && device(part) == Some(changed);
    let (index, part) = command.parts.iter().enumerate().find(|(_, part)| answers(part))?;
    let attribute = |(name, value): (&str, &str)| {
        let mut one = Attribute::alone(command.typed.at, name, value);
        one.pending = is_for_later(part);
        one
    };
    Some((index, device(part)?, sets(part).map(attribute).collect()))
}

fn is_for_later(part: &Part<'_>) -> bool {
    part.has("-P") || part.has("-perm")
}

fn device<'t>(part: &Part<'t>) -> Option<&'t str> {
    part.after("-l").or_else(|| part.after("-dev")).or_else(|| part.after("-Rl"))
}

/// What stands in `-a name=value`, `-attr name=value name=value` and `-a "name=value name=value"`.
fn sets<'t>(part: &Part<'t>) -> impl Iterator<Item = (&'t str, &'t str)> {
    part.args
        .iter()
        .filter(|arg| !arg.starts_with('-'))
        .filter_map(|arg| arg.trim_matches(['"', '\'']).split_once('='))
}
