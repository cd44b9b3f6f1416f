//! Changes of attributes as they were typed, and which of them are for later: `chdev -P` on AIX and `chdev … -perm` on a VIOS set
//! a value that holds after the device is configured again. What is listed below them in the same session is that value, and not
//! the one that the device works by; what another file lists is held against the change itself ([`Chdev`]).

use std::collections::BTreeSet;

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

/// What was changed for later in one session, by partition, device and attribute.
#[derive(Default)]
pub(super) struct Changes(BTreeSet<(Option<String>, String, String)>);

impl Changes {
    /// Notes what a command changes, and forgets what takes effect by it, also in the reports of changes before it.
    pub(super) fn typed(
        &mut self,
        partition: Option<&Read<String>>,
        command: &Command,
        before: &mut [Report],
    ) {
        for part in &command.parts {
            let on = || part.partition.clone().or_else(|| partition.map(|read| read.value.clone()));
            match part.program.as_str() {
                "chdev" if is_for_later(part) => {
                    let Some(device) = device(part) else { continue };
                    let names = sets(part).map(|(name, _)| name);
                    self.0.extend(names.map(|name| (on(), device.to_owned(), name.to_owned())));
                }
                "shutdown" | "reboot" => self.take_effect(&on(), None, before),
                // What is configured already is left as it is by `cfgmgr` and `mkdev`.
                "rmdev" => {
                    let children = part.has("-R") || part.has("-recursive") || part.has("-Rl");
                    let device = device(part).filter(|_| !children).map(str::to_owned);
                    self.take_effect(&on(), device.as_deref(), before);
                }
                _ => {}
            }
        }
    }

    /// What was set for later on a system, or on one device of it, is in force.
    fn take_effect(&mut self, on: &Option<String>, device: Option<&str>, before: &mut [Report]) {
        let is = |of: &Option<String>, name: &str| {
            of == on && device.is_none_or(|device| device == name)
        };
        self.0.retain(|(partition, name, _)| !is(partition, name));
        for report in before {
            let Report::Chdev(change) = report else { continue };
            let name = change.head.device.as_ref().map_or("", |read| &read.value);
            if is(&change.head.partition.as_ref().map(|read| read.value.clone()), name) {
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
        let Some(device) = head.device.as_ref().map(|read| read.value.clone()) else { return };
        let partition = head.partition.as_ref().map(|read| read.value.clone());
        let list: &mut Vec<Attribute> = match report {
            Report::Lsattr(report) => &mut report.attributes,
            Report::LsdevAttr(report) => &mut report.attributes,
            _ => return,
        };
        for attribute in list {
            let key = (partition.clone(), device.clone(), attribute.name.clone());
            attribute.pending = self.0.contains(&key);
        }
    }
}

/// What `fcs0 changed` says of the command above it: which of its parts it answers, and what was set.
pub(super) fn made<'c>(
    command: &'c Command,
    text: &str,
) -> Option<(usize, &'c str, Vec<Attribute>)> {
    let changed = text.strip_suffix(" changed").filter(|name| !name.contains(' '))?;
    let answers = |part: &Part| part.program == "chdev" && device(part) == Some(changed);
    let (index, part) = command.parts.iter().enumerate().find(|(_, part)| answers(part))?;
    let attribute = |(name, value): (&str, &str)| {
        let mut one = Attribute::alone(command.typed.at, name.to_owned(), value.to_owned());
        one.pending = is_for_later(part);
        one
    };
    Some((index, device(part)?, sets(part).map(attribute).collect()))
}

fn is_for_later(part: &Part) -> bool {
    part.has("-P") || part.has("-perm")
}

fn device(part: &Part) -> Option<&str> {
    part.after("-l").or_else(|| part.after("-dev")).or_else(|| part.after("-Rl"))
}

/// What stands in `-a name=value`, `-attr name=value name=value` and `-a "name=value name=value"`.
fn sets(part: &Part) -> impl Iterator<Item = (&str, &str)> {
    part.args
        .iter()
        .filter(|arg| !arg.starts_with('-'))
        .filter_map(|arg| arg.trim_matches(['"', '\'']).split_once('='))
}
