//! Changes for later: `chdev -P` on AIX and `chdev … -perm` on a VIOS set a value that holds after the device is configured
//! again. What is listed below them in the same session is that value, and not the one that the device works by.

use std::collections::BTreeSet;

use super::prompt::{Command, Part};
use super::{Attribute, Read, Report};

/// What was changed for later in one session, by partition, device and attribute.
#[derive(Default)]
pub(super) struct Changes(BTreeSet<(Option<String>, String, String)>);

impl Changes {
    /// Notes what a command changes, and forgets what takes effect by it.
    pub(super) fn typed(&mut self, partition: Option<&Read<String>>, command: &Command) {
        for part in &command.parts {
            let on = || part.partition.clone().or_else(|| partition.map(|read| read.value.clone()));
            match part.program.as_str() {
                "chdev" if part.has("-P") || part.has("-perm") => {
                    let Some(device) = part.after("-l").or_else(|| part.after("-dev")) else {
                        continue;
                    };
                    let names = names(part);
                    self.0.extend(names.map(|name| (on(), device.to_owned(), name.to_owned())));
                }
                "shutdown" | "reboot" | "mkdev" | "cfgmgr" | "cfgdev" | "rmdev" => {
                    let on = on();
                    self.0.retain(|(partition, ..)| *partition != on);
                }
                _ => {}
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

/// The names in `-a name=value`, `-attr name=value name=value` and `-a "name=value name=value"`.
fn names(part: &Part) -> impl Iterator<Item = &str> {
    part.args
        .iter()
        .filter(|arg| !arg.starts_with('-'))
        .filter_map(|arg| arg.trim_matches(['"', '\'']).split_once('=').map(|(name, _)| name))
}
