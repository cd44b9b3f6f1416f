//! A session that goes on elsewhere: at another host by `ssh` and the like, or in another shell of the same one.

use super::Session;
use crate::clean::is_host_name;
use crate::prompt;
use crate::{At, Read};

/// What was entered, and is left by `exit`.
#[derive(Debug)]
pub(super) enum Hop {
    /// Another shell of the same host, whose prompts may have no name of it.
    Shell,
    /// Another host: its name, and what was known before.
    Host { to: Option<String>, before: (Option<Read<String>>, bool) },
}

impl Session<'_, '_> {
    /// Takes a command that goes on elsewhere, or comes back. What prompts without a name are of depends on it.
    pub(super) fn moves(&mut self, typed: &str, at: At) {
        self.left = false;
        // Most commands begin with another letter.
        let first = typed.as_bytes().first();
        if !matches!(
            first,
            Some(b'b' | b'e' | b'k' | b'm' | b'o' | b'r' | b's' | b't' | b'v' | b'/' | b'~')
        ) && typed != "logout"
        {
            return;
        }
        if matches!(typed, "exit" | "logout" | "~.") {
            self.leave();
        } else if prompt::enters_shell(typed) {
            self.hops.extend(self.partition.is_some().then_some(Hop::Shell));
        } else if let Some(to) = prompt::goes_to(typed) {
            let to = to.filter(|name| !prompt::is_variable(name) && is_host_name(name));
            let there = to.map(|name| Read { value: name.to_owned(), at });
            let before = (std::mem::replace(&mut self.partition, there), self.host_asked);
            self.host_asked = true;
            self.hops.push(Hop::Host { to: to.map(str::to_owned), before });
        }
    }

    fn leave(&mut self) {
        match self.hops.pop() {
            Some(Hop::Host { before, .. }) => {
                (self.partition, self.host_asked) = before;
                self.left = true;
            }
            Some(Hop::Shell) | None => {}
        }
    }

    /// Whether prompts without a name are of a shell that was entered at a host whose name is known.
    pub(super) fn in_shell(&self) -> bool {
        matches!(self.hops.last(), Some(Hop::Shell))
    }

    /// A prompt with the name of a host is of a shell that names it, and of one that was left if it is of a host before.
    pub(super) fn is_back_at(&mut self, name: &str) {
        while self.in_shell() {
            self.hops.pop();
        }
        let of = |hop: &Hop| match hop {
            Hop::Host { before: (Some(host), _), .. } => host.value == name,
            _ => false,
        };
        if let Some(index) = self.hops.iter().position(of) {
            self.hops.truncate(index);
        }
    }

    /// Takes the line that says that a connection has ended, or did not come to be.
    pub(super) fn disconnected(&mut self, text: &str) -> bool {
        let Some(Hop::Host { to, .. }) = self.hops.last() else { return false };
        let ended = prompt::connection_ended(text);
        let Some(of) = ended else { return false };
        let other = of.zip(to.as_deref()).is_some_and(|(of, to)| !of.eq_ignore_ascii_case(to));
        if !self.left && !other {
            self.leave();
        }
        true
    }
}
