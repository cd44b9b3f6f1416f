//! What pages and messages tell people to type is held against the program: every command of the README and the guide, every command
//! that a message or a help text names, and the table of commands, which has them all.

use crate::cli::{Cli, Command};
use crate::ioscli;
use clap::error::ErrorKind;
use clap::{CommandFactory, Parser};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The folder of the repository.
const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");

/// Options of other programs that pages speak of: cargo's and `cargo xtask`'s.
const FOREIGN: &[&str] =
    &["--profile", "--npiv", "--sabotage", "--long", "--auto-compaction-retention"];

/// What a program puts into a message.
const PLACEHOLDER: &str = "name";

/// The README and the pages of the guide, by name.
fn pages() -> BTreeMap<String, String> {
    let guide = std::fs::read_dir(Path::new(ROOT).join("docs/guide")).unwrap();
    let guide = guide.map(|entry| entry.unwrap().path());
    let pages = guide.chain([Path::new(ROOT).join("README.md")]);
    let name = |path: &PathBuf| path.file_name().unwrap().to_str().unwrap().to_owned();
    pages.map(|path| (name(&path), std::fs::read_to_string(&path).unwrap())).collect()
}

/// The commands of a shell's line, behind `trunkline`; what is quoted is one word.
fn commands_of(line: &str) -> Vec<Vec<String>> {
    let (mut words, mut word, mut quote, mut begun) = (Vec::new(), String::new(), None, false);
    let line = line.replace("$(", " | ");
    for c in line.chars() {
        match (c, quote) {
            ('\'' | '"', None) => (quote, begun) = (Some(c), true),
            (c, Some(q)) if c == q => quote = None,
            (c, Some(_)) => word.push(c),
            // A comment goes to the end.
            ('#', None) if word.is_empty() && !begun => break,
            (' ' | ')' | '|' | '&' | ';' | '>', None) => {
                if begun || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                    begun = false;
                }
                if c != ' ' {
                    words.push(c.to_string());
                }
            }
            (c, None) => word.push(c),
        }
    }
    if begun || !word.is_empty() {
        words.push(word);
    }
    let parts = words.split(|word| ["|", "&", ";", ")"].contains(&word.as_str()));
    let ours = parts.filter(|part| part.first().is_some_and(|word| word == "trunkline"));
    // What stands behind `>` is a file.
    let typed =
        |part: &[String]| part[1..].iter().take_while(|word| *word != ">").cloned().collect();
    ours.map(typed).collect()
}

/// The lines of a text, continued ones as one.
fn whole_lines(text: &str) -> Vec<String> {
    let (mut lines, mut open) = (Vec::<String>::new(), false);
    for line in text.lines() {
        let goes_on = line.ends_with('\\');
        let line = line.strip_suffix('\\').unwrap_or(line);
        match lines.last_mut().filter(|_| open) {
            Some(last) => last.push_str(line.trim_start()),
            None => lines.push(line.to_owned()),
        }
        open = goes_on;
    }
    lines
}

/// What is typed into a shell, by the blocks of a page.
fn typed(page: &str) -> Vec<String> {
    let (mut text, mut inside) = (String::new(), None);
    for line in page.lines() {
        if let Some(language) = line.strip_prefix("```") {
            inside = if inside.is_some() { None } else { Some(language) };
        } else if matches!(inside, Some("sh" | "console")) {
            text += line.strip_prefix("$ ").unwrap_or(line);
            text.push('\n');
        }
    }
    whole_lines(&text)
}

/// What stands between backticks on one line, where that begins so.
fn spans(text: &str, beginning: &str) -> Vec<String> {
    let mut found = Vec::new();
    for line in whole_lines(text) {
        let pieces = line.split('`').skip(1).step_by(2);
        found.extend(pieces.filter(|span| span.starts_with(beginning)).map(str::to_owned));
    }
    found
}

/// The commands that a span of a sentence stands for: placeholders have values, and `a|b` is each of both.
fn meant(span: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    for word in span.split_whitespace().skip(1) {
        let word = word.trim_matches(['[', ']']);
        let word = word.strip_suffix('…').unwrap_or(word);
        let word = match word {
            "" => continue,
            "ID" | "CHANNEL" | "N" | "SECONDS" | "{id}" => "1",
            "TIME" => "1h",
            "SIZE" => "1GiB",
            "NOUN" | "{noun}" | "{object}" => "volume",
            "VERB" => "list",
            word => word,
        };
        // What a program puts there: a name.
        let word = match (word.find('{'), word.rfind('}')) {
            (Some(from), Some(to)) if from < to => {
                format!("{}{PLACEHOLDER}{}", &word[..from], &word[to + 1..])
            }
            _ => word.to_owned(),
        };
        let choices: Vec<&str> = word.split('|').collect();
        let longer = |line: Vec<String>| -> Vec<Vec<String>> {
            let with = |choice: &&str| line.iter().cloned().chain([(*choice).to_owned()]).collect();
            choices.iter().map(with).collect()
        };
        all = all.into_iter().flat_map(longer).collect();
    }
    all
}

/// Why the program does not take a command; a command that is only named may be short of arguments.
fn refused(words: &[String], named: bool) -> Option<String> {
    let line = std::iter::once("trunkline").chain(words.iter().map(String::as_str));
    let short = [
        ErrorKind::MissingRequiredArgument,
        ErrorKind::MissingSubcommand,
        ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand,
    ];
    match Cli::try_parse_from(line) {
        Ok(Cli { command: Command::Ioscli { words }, .. }) => ioscli::misunderstood(&words),
        Ok(_) => None,
        Err(error)
            if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) =>
        {
            None
        }
        Err(error) if named && short.contains(&error.kind()) => None,
        // A file of the reader's, a value that is left to him, or one that a program puts there.
        Err(error) if error.to_string().contains("No such file or directory") => None,
        Err(error) if named && error.to_string().contains("a value is required") => None,
        Err(error)
            if named
                && error.kind() == ErrorKind::ValueValidation
                && words.iter().any(|word| word == PLACEHOLDER) =>
        {
            None
        }
        Err(error) => Some(error.to_string()),
    }
}

#[test]
fn every_command_of_the_pages_is_one_of_the_program() {
    let (mut wrong, mut held) = (Vec::new(), 0);
    for (name, page) in pages() {
        for line in typed(&page) {
            for words in commands_of(&line) {
                held += 1;
                wrong.extend(refused(&words, false).map(|why| format!("{name}: {line}\n{why}")));
            }
        }
        for span in spans(&page, "trunkline ") {
            for words in meant(&span) {
                held += 1;
                wrong.extend(refused(&words, true).map(|why| format!("{name}: `{span}`\n{why}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(held > 150, "{held} commands were found");
    // It is a judge.
    assert!(refused(&commands_of("trunkline volume lst | cat")[0], true).is_some());
    assert!(refused(&commands_of("trunkline volume show")[0], false).is_some());
    assert!(refused(&commands_of("trunkline ioscli lsmap -nothing")[0], false).is_some());
}

/// Every source file below a folder.
fn sources(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|it| it == "rs") && !path.ends_with("src/guide.rs") {
            found.push(path);
        }
    }
}

#[test]
fn every_command_that_a_message_names_is_one_of_the_program() {
    let mut files = Vec::new();
    for room in std::fs::read_dir(Path::new(ROOT).join("crates")).unwrap() {
        sources(&room.unwrap().path().join("src"), &mut files);
    }
    let (mut wrong, mut held) = (Vec::new(), 0);
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        for span in spans(&text, "trunkline ") {
            for words in meant(&span) {
                held += 1;
                let file = file.display();
                wrong.extend(refused(&words, true).map(|why| format!("{file}: `{span}`\n{why}")));
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(held > 100, "{held} commands were found");
}

/// Each command with those above it, without those that are hidden.
fn tree(
    command: &clap::Command,
    above: &[String],
    visit: &mut impl FnMut(&[String], &clap::Command),
) {
    visit(above, command);
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        let path: Vec<String> =
            above.iter().cloned().chain([below.get_name().to_owned()]).collect();
        tree(below, &path, visit);
    }
}

#[test]
fn every_example_of_the_help_is_one_of_the_program() {
    let (mut wrong, mut held) = (Vec::new(), 0);
    tree(&Cli::command(), &[], &mut |_, command| {
        let help = [command.get_after_help(), command.get_after_long_help()];
        for help in help.into_iter().flatten() {
            let lines = whole_lines(&help.to_string());
            for words in lines.iter().flat_map(|line| commands_of(line.trim())) {
                held += 1;
                wrong.extend(refused(&words, false));
            }
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(held > 40, "{held} examples were found");
}

#[test]
fn the_table_of_commands_has_them_all() {
    let page = &pages()["command-line.md"];
    let rows: Vec<BTreeSet<String>> = page
        .lines()
        .filter(|line| line.starts_with("| `"))
        .map(|line| {
            let cell = line.replace("\\|", " ").split('|').nth(1).unwrap().replace('`', " ");
            cell.split([' ', ',']).map(str::to_owned).collect()
        })
        .collect();
    let mut missing = Vec::new();
    tree(&Cli::command(), &[], &mut |path, _| {
        let stands = |row: &BTreeSet<String>| path.iter().all(|word| row.contains(word));
        if !path.is_empty() && path[0] != "ioscli" && path[0] != "help" && !rows.iter().any(stands)
        {
            missing.push(path.join(" "));
        }
    });
    assert_eq!(missing, Vec::<String>::new());
}

#[test]
fn every_option_that_the_pages_name_is_one_of_the_program() {
    let mut known: BTreeSet<String> = FOREIGN.iter().map(|&option| option.to_owned()).collect();
    known.extend(["--help".to_owned(), "--version".to_owned()]);
    tree(&Cli::command(), &[], &mut |_, command| {
        let options = command.get_arguments().filter_map(clap::Arg::get_long);
        known.extend(options.map(|option| format!("--{option}")));
    });
    let mut wrong = Vec::new();
    for (name, page) in pages() {
        for span in spans(&page, "--") {
            let options =
                span.split([' ', '=', '[']).filter(|word| word.starts_with("--") && *word != "--");
            let unknown = options.filter(|option| !known.contains(*option));
            wrong.extend(unknown.map(|option| format!("{name}: {option}")));
        }
    }
    assert_eq!(wrong, Vec::<String>::new());
}
