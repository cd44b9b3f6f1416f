//! Where a report was printed, as far as the command and the lines before it tell.

use super::Session;
use crate::dress::Part as Stretch;
use crate::prompt::{self, Part};
use crate::recognise::Kind;
use crate::text::{Line, Lines};
use crate::{At, Read};

impl<'t> Session<'_, 't> {
    /// Reads a stretch of the file. Lines that name a host each are all answers to the command before them.
    pub(super) fn stretch(&mut self, stretch: &Stretch<'t>, file: u32) {
        let at = |line| At { file, line };
        self.alike.clear();
        // Lines of one host may stand before those of another that were read already.
        self.vain = None;
        self.numbers = stretch.numbers;
        if stretch.host.is_some() || stretch.typed.is_some() {
            self.of_device = None;
        }
        match &stretch.host {
            // A loop that asks hosts in turn prints each one's name before what it says.
            Some((host, line)) if stretch.headed && self.looping.roams => {
                self.named_host = Some(Read { value: host.clone(), at: at(*line) });
                self.named_device = None;
                self.ask_again(|_| true);
            }
            Some((host, line)) => {
                if self.own_partition.is_none() {
                    self.own_partition = Some(self.partition.take());
                }
                self.partition = Some(Read { value: host.clone(), at: at(*line) });
                self.host_asked = true;
                self.used.fill(false);
                self.misses = 0;
            }
            None => {
                if let Some(own) = self.own_partition.take() {
                    self.partition = own;
                    self.host_asked = false;
                }
            }
        }
        match stretch.typed {
            Some(typed) => {
                self.start(prompt::parse(typed, at(stretch.first)), false);
                self.by_name = true;
            }
            None if self.by_line => self.forget(),
            None => {}
        }
        self.by_line = stretch.typed.is_some();
        // A day that stands before these lines is of no others.
        let own = stretch.taken.as_ref().map(|day| self.taken.replace(day.clone()));
        self.run(Lines::new(stretch.text, at(stretch.first)).numbered(stretch.numbers));
        if let Some(own) = own {
            self.taken = own;
        }
    }

    /// What the name of a file before lines has said holds for these alone.
    pub(super) fn forget(&mut self) {
        self.command = None;
        self.kinds.clear();
        self.used.clear();
        self.by_name = false;
    }

    /// Takes the name of the device, or of the host, that a loop prints before what it asks for.
    pub(super) fn looped(&mut self, line: Line<'_>) -> bool {
        if !self.looping.asks {
            return false;
        }
        let text = line.trimmed();
        let values = self.expected() == Some(Kind::LsattrValue);
        let read = |name: &str| Some(Read { value: name.to_owned(), at: line.at });
        if let Some(name) = self.looping.device(text) {
            self.named_device = read(name);
        } else if let Some(name) = self.looping.host(text, values) {
            self.named_host = read(name);
            self.named_device = None;
        } else {
            return false;
        }
        self.ask_again(|_| true);
        true
    }

    /// What a loop runs is asked for anew, those parts of it that `of` says.
    fn ask_again(&mut self, of: impl Fn(Kind) -> bool) {
        let Some(command) = &self.command else { return };
        let parts = command.parts.iter().zip(&self.kinds).zip(&mut self.used);
        for ((part, kind), used) in parts {
            *used &= !(part.is_in_loop() && kind.is_some_and(&of));
        }
    }

    /// Where a loop has printed all reports of a kind, the next one is again of its first command.
    pub(super) fn loop_begins_again(&mut self, kind: Kind) {
        let mut of_kind =
            self.kinds.iter().zip(&self.used).filter(|(of, _)| **of == Some(kind)).peekable();
        if of_kind.peek().is_some() && of_kind.all(|(_, used)| *used) {
            self.ask_again(|of| of == kind);
        }
    }

    /// An error that stands where a value was asked for is the answer to that: the next value is to the next command.
    pub(super) fn answered_by_an_error(&mut self, line: Line<'_>) {
        if !line.text.starts_with("lsattr: ") {
            return;
        }
        let mut values = self.kinds.iter().zip(&mut self.used);
        let unanswered =
            |(of, used): &(&Option<Kind>, &mut bool)| **of == Some(Kind::LsattrValue) && !**used;
        if let Some((_, used)) = values.find(unanswered) {
            *used = true;
        }
    }

    /// The host that printed the answer to a part of the command, or to none of them.
    pub(super) fn host_of(&self, part: Option<&Part<'t>>, typed: At) -> Option<Read<String>> {
        match part.and_then(|part| part.partition) {
            Some(name) if !prompt::is_variable(name) => {
                Some(Read { value: name.to_owned(), at: typed })
            }
            None if part.is_some() || !self.looping.roams => self.partition.clone(),
            _ => self.named_host.clone(),
        }
    }

    /// Whether a report may be of any of several hosts: a variable names it, and no line has said which one it is.
    pub(super) fn is_of_any_host(&self, kind: Kind) -> bool {
        if !self.looping.roams {
            return false;
        }
        let Some(command) = &self.command else { return true };
        let roams = |part: &Part<'_>| part.partition.is_some_and(prompt::is_variable);
        let parts = command.parts.iter().zip(&self.kinds);
        let mut fitting =
            parts.filter(|(_, of)| **of == Some(kind)).map(|(part, _)| roams(part)).peekable();
        match fitting.peek() {
            None => self.named_host.is_none(),
            // The same may have been asked for here, too.
            Some(first) => {
                let first = *first;
                fitting.any(|other| other != first) || first && self.named_host.is_none()
            }
        }
    }
}
