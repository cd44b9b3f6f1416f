//! Hosts that take turns: what asks several at a time prints each line as it comes, with its host's name before it.
//!
//! Their lines are put together host by host, still dressed; each keeps the number that it has in the file. Where nothing
//! says that several hosts were asked, this is done only if the lines of two hosts, put together, hold reports.

use std::collections::HashMap;

use super::{Asks, DEPTH, Run, holds_any};
use crate::strip::{self, Dress, Key};
use crate::text::{self, Plain};

/// So many times another host speaks after a line or two, before its lines are tried together though no command is known
/// that asked several.
const TURNS: usize = 1;

/// The text with the lines of such hosts put together, and which line of the file each is; `None` when no hosts take turns.
pub(super) fn apart(text: &str) -> Option<(String, Vec<u32>)> {
    if !may_take_turns(text) {
        return None;
    }
    let lines = text::whole_lines(text);
    let mut asks = Asks::new(text, holds_any(text, &["sh ", "dcp "]));
    let mut asked = false;
    let mut order: Vec<u32> = Vec::new();
    let mut index = 0;
    while index < lines.len() {
        let Some((dress, _)) = spoken(lines[index], None) else {
            asked = asks.hosts(lines[index], asked);
            index += 1;
            continue;
        };
        let turns = Turns::from(dress, &lines, index);
        if turns.hosts.len() > 1 && turns.are_hosts(&lines, asked) {
            order.extend((order.len()..index).map(number));
            order.extend(turns.hosts.iter().flatten().copied().map(number));
        }
        index = turns.end;
    }
    if order.is_empty() {
        return None;
    }
    order.extend((order.len()..lines.len()).map(number));
    let mut out = String::with_capacity(text.len() + 1);
    for line in order.iter().filter_map(|number| lines.get(usize::try_from(*number).ok()? - 1)) {
        out.push_str(line);
        if !line.ends_with('\n') {
            out.push('\n');
        }
    }
    Some((out, order))
}

/// Whether a long text is worth a look at every line: somewhere several lines that follow each other have a host each. A line
/// in so many bytes is looked at.
fn may_take_turns(text: &str) -> bool {
    const SHORT: usize = 16 << 10;
    const STEP: usize = 512;
    const RUN: usize = 6;
    if text.len() <= SHORT {
        return true;
    }
    let mut rest = text;
    loop {
        let mut lines = rest.split_inclusive('\n').filter(|line| !line.bare().is_empty()).take(RUN);
        if lines.all(|line| spoken(line, None).is_some()) {
            return true;
        }
        let beyond = rest.as_bytes().get(STEP..).unwrap_or_default();
        match memchr::memchr(b'\n', beyond) {
            Some(end) => rest = &rest[STEP + end + 1..],
            None => return false,
        }
    }
}

/// The number of a line, by its place.
fn number(index: usize) -> u32 {
    u32::try_from(index + 1).unwrap_or(u32::MAX)
}

/// The host before a line, and by which dress.
fn spoken(line: &str, dress: Option<Dress>) -> Option<(Dress, &str)> {
    let may = |kind: &&Dress| matches!(kind, Dress::Host | Dress::Log);
    let kinds = strip::kinds(line).iter().filter(may);
    kinds.filter(|kind| dress.is_none_or(|dress| dress == **kind)).find_map(|kind| {
        match strip::strip(*kind, line, None)?.1 {
            Key::Host(host) => Some((*kind, host)),
            _ => None,
        }
    })
}

/// Lines that follow each other and have a host each.
struct Turns {
    dress: Dress,
    /// The lines of each host, by their places, in the order in which the hosts speak first.
    hosts: Vec<Vec<usize>>,
    /// How often the speaker changes.
    changes: usize,
    /// How often it does so between stretches of a line or two.
    short: usize,
    /// The line behind them.
    end: usize,
}

impl Turns {
    fn from(dress: Dress, lines: &[&str], first: usize) -> Self {
        let mut turns = Self { dress, hosts: Vec::new(), changes: 0, short: 0, end: first };
        let mut places: HashMap<&str, usize> = HashMap::new();
        // The host that speaks, how many lines of it there are, and how many the one before had.
        let (mut speaks, mut length, mut before) = (usize::MAX, 0, 0);
        let mut blank = Vec::new();
        for (index, line) in lines.iter().enumerate().skip(first) {
            if line.bare().is_empty() {
                blank.push(index);
                continue;
            }
            let Some((_, host)) = spoken(line, Some(dress)) else { break };
            let place = match places.get(host) {
                Some(place) => *place,
                None => {
                    places.insert(host, turns.hosts.len());
                    turns.hosts.push(Vec::new());
                    turns.hosts.len() - 1
                }
            };
            // A blank line between is of the host before.
            if let Some(lines) = turns.hosts.get_mut(speaks) {
                lines.append(&mut blank);
            }
            if place != speaks {
                let again = speaks != usize::MAX;
                turns.changes += usize::from(again);
                turns.short += usize::from(again && length <= 2 && before <= 2);
                (before, length, speaks) = (length, 0, place);
            }
            length += 1;
            turns.hosts[place].push(index);
            turns.end = index + 1;
        }
        turns
    }

    /// Whether hosts speak again after others, and they are hosts.
    fn are_hosts(&self, lines: &[&str], asked: bool) -> bool {
        if self.changes < self.hosts.len() {
            return false;
        }
        if asked && self.dress == Dress::Host {
            return true;
        }
        let reports = || {
            let tell = self.hosts.iter().filter(|host| {
                let own: Vec<&str> = host.iter().map(|index| lines[*index]).collect();
                let run = Run::from(self.dress, &own, 0, false, &[]);
                run.is_some_and(|run| run.is_report(false, DEPTH))
            });
            tell.take(2).count() == 2
        };
        self.short >= TURNS && reports()
    }
}
