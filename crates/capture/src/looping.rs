//! Loops of the shell, and the lines by which what they print is told apart.
//!
//! A loop runs the same commands for several devices, or by `ssh` on several hosts, and names neither in what was typed:
//! a variable stands there. Which one a report is of, a line says that the loop prints before it: the device, the host.
//! Of a host that only a variable names and no line, nothing is known; the reports of two would be taken for one's.

use super::prompt::{self, Command, Part};
use super::text;
use crate::clean::is_host_name;

/// What is known of the loop that was typed last, on one line or on several.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Loop<'t> {
    /// Its end was not typed yet: lines with the second prompt, `>`, belong to it.
    pub(super) open: bool,
    /// It asks for what a variable names.
    pub(super) asks: bool,
    /// It prints something of its own.
    pub(super) prints: bool,
    /// It runs commands on hosts that a variable names.
    pub(super) roams: bool,
    /// It says before these commands on which one they run.
    pub(super) says_host: bool,
    /// The host says so itself, by `hostname`.
    says_own_name: bool,
    /// Its first line, with the list of what it goes through.
    first: &'t str,
}

impl<'t> Loop<'t> {
    /// The loop that a command begins, if it is one.
    pub(super) fn of(command: &Command<'t>) -> Self {
        let typed = command.typed.value;
        let first = typed.split_ascii_whitespace().next().unwrap_or("");
        let begins = matches!(first, "for" | "while" | "until");
        Self { open: begins, first: typed, ..Self::default() }.and(command)
    }

    /// The same with what was typed behind the second prompt.
    pub(super) fn and(mut self, more: &Command<'t>) -> Self {
        let typed = more.typed.value;
        // Most commands are in no loop and have no variable.
        if !self.open && memchr::memchr2(b'$', b'`', typed.as_bytes()).is_none() {
            return self;
        }
        self.open &= !typed.split([';', ' ']).any(|word| word == "done");
        self.asks |= memchr::memchr(b'$', typed.as_bytes()).is_some();
        self.prints |= typed.contains("echo") || typed.contains("print");
        for part in &more.parts {
            let says = says_host(part);
            self.says_host |= says && !self.roams;
            self.says_own_name |= says && matches!(part.program, "hostname" | "uname");
            self.roams |= part.partition.is_some_and(prompt::is_variable) && !says;
        }
        self
    }

    /// The device that a line names before what follows: `for d in …; do echo $d; lsattr -El $d`.
    pub(super) fn device<'l>(&self, line: &'l str) -> Option<&'l str> {
        if !self.asks {
            return None;
        }
        let alone = text::is_device_alone(line).then_some(line);
        alone.or_else(|| text::device_of_heading(line).filter(|_| self.prints))
    }

    /// The host that a line names before what follows: `for h in …; do echo "== $h"; ssh $h lspath`. Where the loop does not
    /// list its hosts, or lets them say their names, any name is one, unless `values` alone are printed.
    pub(super) fn host<'l>(&self, line: &'l str, values: bool) -> Option<&'l str> {
        if !(self.roams && self.says_host) || line.len() > 120 {
            return None;
        }
        let name = line.trim_matches(|c: char| !c.is_ascii_alphanumeric());
        let name = match name.rsplit_once(' ') {
            Some((word, name)) if is_word(word.trim_end_matches([' ', ':', '='])) => name,
            Some(_) => return None,
            None => name,
        };
        let short = |name: &'l str| name.split('.').next().unwrap_or(name);
        let mut listed = self.listed().peekable();
        let is_list = listed.peek().is_some_and(|first| !prompt::is_variable(first));
        let known = is_list && listed.any(|host| host == name || host == short(name));
        // A host may call itself otherwise than it is reached.
        let known = known
            || (!is_list || self.says_own_name)
                && !values
                && name.starts_with(|c: char| c.is_ascii_alphabetic());
        (known && is_host_name(name) && !text::is_device_alone(name) && !prompt::is_known(name))
            .then_some(name)
    }

    /// Whether a line says what follows it is of.
    pub(super) fn is_heading(&self, line: &str) -> bool {
        let device = || self.prints && self.asks && text::device_of_heading(line).is_some();
        // `AIX vios1 3 7 00F78A1B4C00` of `uname -a`.
        let own_name = || {
            self.roams
                && self.says_own_name
                && line.strip_prefix("AIX ").is_some_and(|rest| rest.split(' ').count() == 4)
        };
        self.host(line, false).is_some() || own_name() || device()
    }

    /// What the loop goes through, as it was typed: `for h in vios1 vios2; do`.
    fn listed(&self) -> impl Iterator<Item = &'t str> {
        let mut words = self.first.split_ascii_whitespace();
        let found = words.any(|word| word == "in");
        let mut open = found;
        words.map_while(move |word| {
            let name = word.trim_end_matches(';');
            let take = open && word != "do" && !name.is_empty();
            open &= name == word;
            take.then_some(name)
        })
    }
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_alphabetic())
}

/// Whether a command prints the name of the host that it runs for.
fn says_host(part: &Part<'_>) -> bool {
    match part.program {
        "hostname" => part.args.is_empty(),
        "uname" => part.has("-n") || part.has("-a"),
        "echo" | "print" | "printf" => true,
        _ => false,
    }
}
