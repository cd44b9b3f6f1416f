//! The original's command lines: flags of one dash, read by a table for each command.

use super::text::wrapped;
use super::wrong;
use crate::exit::Failure;
use fabric::suggest::nearest;
use std::collections::BTreeMap;
use std::fmt::Write;

/// What follows a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Takes {
    /// Nothing.
    Nothing,
    /// One word.
    One,
    /// One word, or none: what begins with a dash is the next flag.
    Maybe,
    /// Every word up to the next flag, at least one.
    Many,
}

/// A flag.
#[derive(Debug)]
pub(super) struct Flag {
    /// As it is typed, with its dash.
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    /// What help calls the word behind it.
    pub(super) value: &'static str,
    pub(super) help: &'static str,
}

/// A row of a table of flags.
pub(super) const fn flag(
    name: &'static str,
    takes: Takes,
    value: &'static str,
    help: &'static str,
) -> Flag {
    Flag { name, takes, value, help }
}

/// How a command is typed, and what its help says.
#[derive(Debug)]
pub(super) struct Syntax {
    pub(super) name: &'static str,
    /// What it does, in a few words.
    pub(super) about: &'static str,
    /// Its forms, without its name.
    pub(super) usage: &'static [&'static str],
    pub(super) flags: &'static [Flag],
    /// Most words that belong to no flag.
    pub(super) plain: usize,
    /// What to know, above all where it differs from the original.
    pub(super) notes: &'static str,
}

/// What was typed behind the name of a command.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Words {
    flags: BTreeMap<&'static str, Vec<String>>,
    /// Words that belong to no flag.
    pub(super) plain: Vec<String>,
}

impl Words {
    /// Whether the flag is there.
    pub(super) fn has(&self, flag: &str) -> bool {
        self.flags.contains_key(flag)
    }

    /// The word behind a flag.
    pub(super) fn one(&self, flag: &str) -> Option<&str> {
        self.all(flag).first().map(String::as_str)
    }

    /// The fields behind `-field`, which are to be of these.
    pub(super) fn fields(&self, known: &[&str]) -> Result<&[String], Failure> {
        let fields = self.all("-field");
        match fields.iter().find(|field| !known.contains(&field.as_str())) {
            Some(unknown) => {
                let help = format!("the fields are {}", known.join(", "));
                Err(wrong(format!("there is no field `{unknown}`"), &help))
            }
            None => Ok(fields),
        }
    }

    /// The words behind a flag, of all times that it stands there.
    pub(super) fn all(&self, flag: &str) -> &[String] {
        self.flags.get(flag).map_or(&[], Vec::as_slice)
    }
}

impl Syntax {
    /// Reads what was typed; the error says what is wrong with it.
    pub(super) fn read(&self, typed: &[String]) -> Result<Words, String> {
        let mut words = Words::default();
        let mut rest = self.letters_apart(typed)?.into_iter().peekable();
        while let Some(word) = rest.next() {
            let Some(flag) = self.flag(&word) else {
                words.plain.push(word);
                continue;
            };
            let values = words.flags.entry(flag.name).or_default();
            let most = match flag.takes {
                Takes::Nothing => 0,
                Takes::One | Takes::Maybe => 1,
                Takes::Many => usize::MAX,
            };
            let before = values.len();
            while values.len() - before < most
                && let Some(value) = rest.next_if(|next| !is_flag(next))
            {
                values.push(value);
            }
            if values.len() == before && matches!(flag.takes, Takes::One | Takes::Many) {
                return Err(format!("{} needs {}", flag.name, flag.value));
            }
        }
        match words.plain.get(self.plain) {
            Some(more) => Err(format!("`{more}` is one word too many")),
            None => Ok(words),
        }
    }

    fn flag(&self, word: &str) -> Option<&'static Flag> {
        self.flags.iter().find(|flag| flag.name == word)
    }

    /// `-El` as `-E -l`, where both are flags and `-El` is none.
    fn letters_apart(&self, typed: &[String]) -> Result<Vec<String>, String> {
        let mut apart = Vec::new();
        for word in typed {
            if !is_flag(word) || self.flag(word).is_some() {
                apart.push(word.clone());
                continue;
            }
            let letters: Vec<String> =
                word.chars().skip(1).map(|letter| format!("-{letter}")).collect();
            if letters.iter().any(|letter| self.flag(letter).is_none()) {
                return Err(self.unknown(word));
            }
            apart.extend(letters);
        }
        Ok(apart)
    }

    fn unknown(&self, word: &str) -> String {
        let names = self.flags.iter().map(|flag| &flag.name[1..]);
        let meant = nearest(word.trim_start_matches('-'), names);
        let meant = meant.map(|name| format!("; did you mean `-{name}`?")).unwrap_or_default();
        format!("{} has no `{word}`{meant}", self.name)
    }

    /// The page for people.
    pub(super) fn help(&self) -> String {
        let mut page = format!("{}: {}\n\nUsage:\n", self.name, self.about);
        for form in self.usage {
            writeln!(page, "  {}", format!("{} {form}", self.name).trim_end()).expect("a string");
        }
        let shown = |flag: &Flag| format!("{} {}", flag.name, flag.value).trim_end().to_owned();
        let width = self.flags.iter().map(|flag| shown(flag).len()).max().unwrap_or(0);
        if width > 0 {
            page.push('\n');
        }
        for flag in self.flags {
            writeln!(page, "  {:width$}  {}", shown(flag), flag.help).expect("a string");
        }
        if !self.notes.is_empty() {
            write!(page, "\n{}", wrapped(self.notes, 98)).expect("a string");
        }
        page.trim_end().to_owned()
    }
}

/// A word that begins with a dash, and is neither a dash alone nor a negative number.
fn is_flag(word: &str) -> bool {
    word.strip_prefix('-').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LSATTR: Syntax = Syntax {
        name: "lsattr",
        about: "attributes",
        usage: &["-El DEVICE", "-Rl DEVICE -a NAME"],
        flags: &[
            flag("-E", Takes::Nothing, "", "values as they hold"),
            flag("-R", Takes::Nothing, "", "values that are allowed"),
            flag("-l", Takes::One, "DEVICE", "the device"),
            flag("-a", Takes::Many, "NAME", "only these"),
            flag("-attr", Takes::Maybe, "NAME", "all, or one"),
        ],
        plain: 0,
        notes: "",
    };

    fn read(line: &str) -> Result<Words, String> {
        let typed: Vec<String> = line.split(' ').map(str::to_owned).collect();
        LSATTR.read(&typed)
    }

    #[test]
    fn letters_go_together_and_apart() {
        assert_eq!(read("-El fcs0"), read("-E -l fcs0"));
        let words = read("-El fcs0 -a num_io_queues -a link_speed max_xfer_size").unwrap();
        assert!(words.has("-E") && !words.has("-R"));
        assert_eq!(words.one("-l"), Some("fcs0"));
        assert_eq!(words.all("-a"), ["num_io_queues", "link_speed", "max_xfer_size"]);
    }

    #[test]
    fn what_may_be_left_out_does_not_eat_the_next_flag() {
        let words = read("-attr -l fcs0").unwrap();
        assert_eq!((words.one("-attr"), words.one("-l")), (None, Some("fcs0")));
    }

    #[test]
    fn what_is_wrong_is_said() {
        let wrong = |line| read(line).unwrap_err();
        assert_eq!(wrong("-l"), "-l needs DEVICE");
        assert_eq!(wrong("-l -E"), "-l needs DEVICE");
        assert_eq!(wrong("-atrr x"), "lsattr has no `-atrr`; did you mean `-attr`?");
        assert_eq!(wrong("-bogus"), "lsattr has no `-bogus`");
        assert_eq!(wrong("-E fcs0"), "`fcs0` is one word too many");
    }

    #[test]
    fn the_page_has_every_flag() {
        insta::assert_snapshot!(LSATTR.help(), @r"
        lsattr: attributes

        Usage:
          lsattr -El DEVICE
          lsattr -Rl DEVICE -a NAME

          -E          values as they hold
          -R          values that are allowed
          -l DEVICE   the device
          -a NAME     only these
          -attr NAME  all, or one
        ");
    }
}
