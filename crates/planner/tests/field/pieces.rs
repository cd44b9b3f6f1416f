//! Captures that come in pieces, or of which a piece is missing: no command appears that the whole does not give.

use super::{Case, Cut, WHOLE, cuts, files, is_tried, told};
use std::collections::BTreeSet;

/// The commands among what is told.
fn commands(told: &[String]) -> BTreeSet<String> {
    let command = |told: &String| Some(told.rsplit_once(" [")?.1.strip_suffix(']')?.to_owned());
    told.iter().filter_map(command).filter(|command| command != "-").collect()
}

/// A file, cut at some places; pieces repeat the host and the time.
fn cut(text: &str, at: &[Cut]) -> Vec<String> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut pieces = Vec::new();
    let (mut from, mut again) = (0, "");
    for cut in at {
        pieces.push(format!("{again}{}", lines[from..cut.line].concat()));
        (from, again) = (cut.line, &cut.again);
    }
    pieces.push(format!("{again}{}", lines[from..].concat()));
    pieces
}

/// A command without its device.
fn of_any_device(command: &str) -> String {
    let mut words: Vec<&str> = command.split(' ').collect();
    let named = words.iter().position(|word| ["-dev", "-l"].contains(word));
    if let Some(device) = named.and_then(|flag| words.get_mut(flag + 1)) {
        *device = "DEVICE";
    }
    words.join(" ")
}

/// Commands that are to be run for every device of a kind, of which one stands for all: which one it is, may differ.
fn for_every_device(case: &Case) -> BTreeSet<String> {
    let findings = case.advice().findings.into_iter();
    let all = findings.filter(|finding| finding.effect.contains("Run it for every"));
    all.filter_map(|finding| Some(of_any_device(&finding.command?))).collect()
}

#[test]
fn a_piece_that_was_lost_makes_no_command() {
    let (mut lost, mut new) = (0, Vec::new());
    for (case, whole) in WHOLE.iter() {
        let (given, of_every) = (commands(whole), for_every_device(case));
        for (at, (name, bytes)) in files(case).enumerate() {
            let Ok(text) = std::str::from_utf8(bytes) else { continue };
            let pieces = cut(text, &cuts(text));
            for left in (0..pieces.len()).filter(|left| is_tried(left + at)) {
                let others = files(case).enumerate().filter(|(other, _)| *other != at);
                let rest = pieces.iter().enumerate().filter(|(piece, _)| *piece != left);
                let rest = rest.map(|(_, piece)| (name.clone(), piece.as_bytes()));
                let told = told(others.map(|(_, file)| file).chain(rest));
                let same = |command: &&String| of_every.contains(&of_any_device(command));
                for command in commands(&told).difference(&given).filter(|one| !same(one)) {
                    new.push(format!("{name} without {:?}: {command}", pieces[left]));
                }
                lost += 1;
            }
        }
    }
    assert!(lost > 400, "{lost} pieces");
    assert!(new.is_empty(), "{}", new.join("\n"));
}

#[test]
fn a_file_cut_anywhere_gives_the_commands_of_the_whole() {
    let (mut made, mut new) = (0, Vec::new());
    for (case, whole) in WHOLE.iter() {
        let given = commands(whole);
        for (at, (name, bytes)) in files(case).enumerate() {
            let Ok(text) = std::str::from_utf8(bytes) else { continue };
            let tried = cuts(text).into_iter().filter(|place| is_tried(place.line + at));
            for place in tried {
                let line = place.line;
                let pieces = cut(text, &[place]);
                let others = files(case).enumerate().filter(|(other, _)| *other != at);
                let pieces = pieces.iter().map(|piece| (name.clone(), piece.as_bytes()));
                let told = told(others.map(|(_, file)| file).chain(pieces));
                let differ = commands(&told).symmetric_difference(&given).cloned().collect();
                let differ: Vec<String> = differ;
                if !differ.is_empty() {
                    new.push(format!("{name} cut before line {}: {differ:?}", line + 1));
                }
                made += 1;
            }
        }
    }
    assert!(made > 300, "{made} cuts");
    assert!(new.is_empty(), "{}", new.join("\n"));
}
