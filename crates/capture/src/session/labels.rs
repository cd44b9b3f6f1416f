//! Lines and names of files by which people say of which device the next lines are.

use super::Session;
use crate::label;
use crate::prompt::{Command, Part};
use crate::recognise::Class;
use crate::text::Line;
use crate::{Read, Taken};

impl<'t> Session<'_, 't> {
    /// Takes a line that says of which host and device the next ones are.
    pub(super) fn labelled(&mut self, line: Line<'t>, class: Class<'t>) -> bool {
        let Class::Label(label) = class else { return false };
        if let Some(host) = label.host {
            self.alike.clear();
            self.partition = Some(Read { value: host.to_owned(), at: line.at });
            self.host_asked = true;
        }
        if let Some(time) = label.time {
            self.taken = Some(Taken::utc(time));
        }
        self.forget();
        self.of_device = label.device.map(|value| Read { value, at: line.at });
        true
    }

    /// Where nobody has typed a command, what a value is called tells which one has printed it of the device that is named.
    pub(super) fn by_device(&mut self, line: Line<'_>) {
        let Some(device) = self.of_device.filter(|_| self.command.is_none()) else { return };
        let Some((value, _)) = label::value(line.trimmed(), true) else { return };
        let Some((program, flags)) = label::printed_by(device.value, value) else { return };
        let args = flags.iter().copied().chain([device.value]).collect();
        let part = Part { program, args, filter: Some("grep"), partition: None };
        let typed = Read { value: program, at: device.at };
        self.start(Command { typed, parts: vec![part] }, false);
        self.by_name = true;
    }
}
