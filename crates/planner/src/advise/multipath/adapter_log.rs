//! `adapter-errors`: what adapters and their links write into the error log again and again, where no counter says more.

use std::collections::{BTreeMap, BTreeSet};

use super::{LogTaken, is_down, is_parent, paths};
use crate::advise::finding::{Draft, Severity};
use crate::advise::mapping::{Npiv, protocol_device};
use crate::advise::out::Out;
use crate::advise::rule::Object;
use crate::advise::thresholds::{
    ADAPTER_ERRORS_HOURS, ADAPTER_ERRORS_LEAST, ERRORS_NOW_LAST_SECONDS, ERRORS_NOW_LEAST,
    ERRORS_NOW_MINUTES, ERRORS_NOW_OVER_SECONDS, ERRORS_NOW_WITHIN_SECONDS, HARDWARE_ERRORS_LEAST,
    LINK_AGAIN_APART_SECONDS, LINK_AGAIN_DAYS, LINK_AGAIN_LEAST, LINK_AGAIN_OVER_SECONDS,
    LINK_AGAIN_WITHIN_SECONDS, LINK_LOST_APART_SECONDS, LINK_LOST_LEAST, RESTART_SECONDS,
    own as own_threshold,
};
use crate::advise::view::{View, as_f64, count};
use crate::capture::{LoggedError, Report};
use crate::trace::{Figure, Term};

/// What the log says of an Ethernet link that is gone; each is an outage of its own, where other errors come in numbers.
const LINK_LOST: &str = "ETHERNET DOWN";

/// Entries of a system that goes down or comes up: its links do, too.
fn is_of_restart(entry: &LoggedError) -> bool {
    let text = entry.description.to_ascii_uppercase();
    let what = ["SYSTEM SHUTDOWN", "REBOOT", "ERROR LOGGING TURNED"];
    what.iter().any(|what| text.contains(what))
}

/// Whether an entry is an error of an adapter, of its protocol or of its link: hardware, permanent or temporary.
pub(super) fn is_of_adapter(entry: &LoggedError) -> bool {
    let adapter = ["fcs", "fscsi", "ent", "vscsi", "sissas"].iter().any(|kind| {
        entry.resource.strip_prefix(kind).is_some_and(|rest| rest.parse::<u32>().is_ok())
    });
    let text = entry.description.to_ascii_uppercase();
    let error =
        ["LINK", "ADAPTER ERROR", "CONTROLLER ERROR", "COMMUNICATION", "SCSI BUS", LINK_LOST]
            .iter()
            .any(|word| text.contains(word));
    adapter && error && entry.class.starts_with('H') && entry.kind.starts_with(['P', 'T'])
}

fn is_lost(entry: &LoggedError) -> bool {
    entry.description.to_ascii_uppercase().contains(LINK_LOST)
}

/// How often something was logged, with what was not shown.
fn times<'e>(entries: impl IntoIterator<Item = &'e &'e LoggedError>) -> f64 {
    let each = entries.into_iter().map(|entry| entry.duplicates.unwrap_or(0).saturating_add(1));
    as_f64(each.fold(0, u64::saturating_add))
}

fn logged(entry: &LoggedError) -> Option<u64> {
    entry.logged.as_ref().map(|taken| taken.seconds)
}

/// Whether an entry says that the adapter itself is broken: permanent, of its hardware, and not of the link.
fn is_hardware(entry: &LoggedError) -> bool {
    let text = entry.description.to_ascii_uppercase();
    let broken = ["ADAPTER ERROR", "CONTROLLER ERROR"].iter().any(|word| text.contains(word));
    entry.kind.starts_with('P') && broken
}

/// Whether an adapter's hardware had permanent errors at several times, none of them with a restart of the system.
fn is_broken(entries: &[&LoggedError], at_restart: impl Fn(&LoggedError) -> bool) -> bool {
    let own = entries.iter().filter(|entry| is_hardware(entry) && !at_restart(entry));
    times(own) >= HARDWARE_ERRORS_LEAST
}

fn broken(view: &View<'_>, system: &Object<'_>, adapter: &str, entries: &[&LoggedError]) -> Draft {
    let own: Vec<&&LoggedError> = entries.iter().filter(|entry| is_hardware(entry)).collect();
    let number = times(own.iter().copied());
    let title = format!("{adapter} has permanent errors of its hardware");
    let object = view.object(system.host, adapter);
    let mut draft = Draft::new("adapter-errors", system.host, object, Severity::Critical, title)
        .see(own.iter().take(8).map(|entry| entry.at));
    if let Some(last) = own.first() {
        let terms = vec![
            Term::read("entries and their duplicates", number, "errors", last.at),
            own_threshold("threshold", HARDWARE_ERRORS_LEAST, "errors"),
        ];
        let name = "permanent errors in the day before the capture";
        draft = draft
            .figure(Figure::new(name, "errors", "entries and their duplicates", terms))
            .because(format!("The error log has them as {} of the class hardware, permanent: the adapter gave up, and no cable or switch is named.", last.description.to_lowercase()));
    }
    draft
        .effect(format!("Take the adapter out of use (see with lspath, or on the shared adapter, that the others carry everything), test it with diag -d {adapter}, and have it replaced with what errpt -a names (location, FRU)."))
        .harm("diag takes the adapter out of use while it tests.")
        .weigh(0.9, 1.3)
}

/// The different minutes in which errors were logged, where they are many lately and go on.
fn lately(entries: &[&LoggedError], now: LogTaken) -> Option<usize> {
    let recent: Vec<&&LoggedError> = entries
        .iter()
        .filter(|entry| {
            let ago = logged(entry).map(|at| now.seconds.saturating_sub(at));
            now.printed && ago.is_some_and(|ago| ago <= ERRORS_NOW_WITHIN_SECONDS)
        })
        .collect();
    let at: BTreeSet<u64> = recent.iter().filter_map(|entry| logged(entry)).collect();
    let (first, last) = (at.first()?, at.last()?);
    let minutes: BTreeSet<u64> = at.iter().map(|at| at / 60).collect();
    let go_on = now.seconds.saturating_sub(*last) <= ERRORS_NOW_LAST_SECONDS
        && last - first >= ERRORS_NOW_OVER_SECONDS;
    let many = times(recent) >= ERRORS_NOW_LEAST && count(minutes.len()) >= ERRORS_NOW_MINUTES;
    (go_on && many).then_some(minutes.len())
}

/// Whether a link was lost again and again over more time than a restart of the switch takes.
fn comes_and_goes(entries: &[&LoggedError]) -> bool {
    let at: BTreeSet<u64> =
        entries.iter().filter(|entry| is_lost(entry)).filter_map(|entry| logged(entry)).collect();
    let (Some(first), Some(last)) = (at.first(), at.last()) else { return false };
    let apart: BTreeSet<u64> = at.iter().map(|at| at / LINK_LOST_APART_SECONDS).collect();
    count(apart.len()) >= LINK_LOST_LEAST && last - first >= ERRORS_NOW_OVER_SECONDS
}

fn is_of_link(entry: &LoggedError) -> bool {
    entry.description.to_ascii_uppercase().contains("LINK ERROR") || is_lost(entry)
}

/// The times at which a link was lost on several days up to the last one, newest first, each an hour and more apart: of one
/// that was lost often within hours, the last day tells.
fn over_days<'e>(
    entries: &[&'e LoggedError],
    now: LogTaken,
    at_restart: impl Fn(&LoggedError) -> bool,
) -> Option<Vec<&'e LoggedError>> {
    let own = entries.iter().copied().filter(|entry| is_of_link(entry) && !at_restart(entry));
    let mut timed: Vec<(u64, &LoggedError)> = own
        .filter_map(|entry| Some((logged(entry)?, entry)))
        .filter(|(at, _)| now.seconds.saturating_sub(*at) <= LINK_AGAIN_WITHIN_SECONDS)
        .collect();
    timed.sort_by_key(|(at, _)| std::cmp::Reverse(*at));
    let (last, first) = (timed.first()?.0, timed.last()?.0);
    let mut events: Vec<(u64, &LoggedError)> = Vec::new();
    for (at, entry) in timed {
        if events.last().is_none_or(|(known, _)| known - at >= LINK_AGAIN_APART_SECONDS) {
            events.push((at, entry));
        }
    }
    let goes_on = now.within_a_day(last) && last - first >= LINK_AGAIN_OVER_SECONDS;
    let days: BTreeSet<u64> = events.iter().map(|(at, _)| at / 86_400).collect();
    (goes_on && count(events.len()) >= LINK_AGAIN_LEAST && days.len() >= LINK_AGAIN_DAYS)
        .then(|| events.into_iter().map(|(_, entry)| entry).collect())
}

fn again(view: &View<'_>, system: &Object<'_>, adapter: &str, times: &[&LoggedError]) -> Draft {
    let object = view.object(system.host, adapter);
    let title = format!("the link of {adapter} comes and goes, day by day");
    let mut draft = Draft::new("adapter-errors", system.host, object, Severity::Warning, title)
        .see(times.iter().take(8).map(|entry| entry.at));
    if let Some(last) = times.first() {
        let terms = vec![
            Term::read("times", count(times.len()), "times", last.at),
            own_threshold("threshold", LINK_AGAIN_LEAST, "times"),
        ];
        draft = draft
            .figure(Figure::new("times that the link was lost in a week", "times", "times", terms))
            .because(format!("The error log has it at {} times an hour and more apart, over several days up to the last one: {}.", times.len(), last.description.to_lowercase()));
    }
    draft
        .because("Each time it came back by itself, so all looks well in between. No restart and no work on a switch comes again like that.")
        .effect("Look at cable, optics and the switch port (its log has the same times), then at the adapter. For Fibre Channel `fcstat` of the port, a day apart, counts the failures of the link; for Ethernet `entstat -d`.")
        .harm("None by looking.")
        .weigh(0.85, 0.9)
}

const UNUSED: &str =
    "lsnports shows it without a fabric, and no client is mapped to it: nobody waits for its link.";

/// Whether a port of a VIOS has no fabric and no client.
fn is_unused(view: &View<'_>, host: usize, port: &str) -> bool {
    let ports = view.of(host).filter_map(Report::lsnports).flat_map(|list| &list.ports);
    let listed = ports.filter(|listed| listed.name == port).last();
    let mapped = |map: &Npiv<'_>| map.vios == host && map.port() == Some(port);
    listed.is_some_and(|listed| !listed.fabric) && !view.npiv().iter().any(mapped)
}

pub(super) fn errors(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let mut by_adapter: BTreeMap<&str, Vec<&LoggedError>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let logs = || view.of(system.host).filter_map(Report::errpt).flat_map(|log| &log.entries);
    let restarts: BTreeSet<u64> =
        logs().filter(|entry| is_of_restart(entry)).filter_map(logged).collect();
    let at_restart = |entry: &LoggedError| {
        let around =
            |time: u64| time.saturating_sub(RESTART_SECONDS)..=time.saturating_add(RESTART_SECONDS);
        logged(entry).is_some_and(|time| restarts.range(around(time)).next().is_some())
    };
    for entry in logs() {
        let minute = logged(entry).map(|time| time / 60);
        let own = is_of_adapter(entry) && !(is_lost(entry) && at_restart(entry));
        if own && seen.insert((minute, &entry.identifier, &entry.resource)) {
            by_adapter.entry(&entry.resource).or_default().push(entry);
        }
    }
    // A protocol device writes of the trouble of its adapter.
    let protocols: Vec<&str> =
        by_adapter.keys().copied().filter(|name| name.starts_with("fscsi")).collect();
    for protocol in protocols {
        let adapter = protocol.replacen("fscsi", "fcs", 1);
        let Some((&adapter, _)) = by_adapter.get_key_value(adapter.as_str()) else { continue };
        let entries = by_adapter.remove(protocol).unwrap_or_default();
        let all = by_adapter.entry(adapter).or_default();
        all.extend(entries);
        all.sort_by_key(|entry| std::cmp::Reverse(logged(entry)));
    }
    let Some(now) = LogTaken::of(view, system.host) else {
        if !by_adapter.is_empty() {
            out.lack("whether errors of adapters go on", "date; errpt -a");
        }
        return;
    };
    let listed = paths(view, system.host).map_or(&[][..], |list| &list.paths);
    let down: Vec<_> = listed.iter().filter(|path| is_down(path)).collect();
    for (adapter, mut entries) in by_adapter {
        let or_note = |draft: Draft| match is_unused(view, system.host, adapter) {
            true => draft.only_noted(UNUSED),
            false => draft,
        };
        let told = is_parent(&down, adapter) || is_parent(&down, &protocol_device(adapter));
        let all = entries.len();
        if !told && let Some(times) = over_days(&entries, now, at_restart) {
            out.push(or_note(again(view, system, adapter, &times)));
            continue;
        }
        entries.retain(|entry| logged(entry).is_some_and(|time| now.within_a_day(time)));
        // The file may have been copied long after.
        if entries.is_empty() && all > 0 && !now.printed {
            out.lack("whether errors of adapters go on", "date; errpt -a");
            continue;
        }
        let hours: BTreeSet<u64> =
            entries.iter().filter_map(|entry| logged(entry)).map(|time| time / 3600).collect();
        if is_broken(&entries, at_restart) {
            out.push(or_note(broken(view, system, adapter, &entries)));
            continue;
        }
        // The finding on the paths that are down has these entries as evidence.
        if told {
            continue;
        }
        let lost = times(entries.iter().filter(|entry| is_lost(entry))) >= LINK_LOST_LEAST;
        let least = if lost { LINK_LOST_LEAST } else { ADAPTER_ERRORS_LEAST };
        let times = times(&entries);
        let over_hours = times >= least && count(hours.len()) >= ADAPTER_ERRORS_HOURS
            || lost && comes_and_goes(&entries);
        let since = lately(&entries, now);
        if !over_hours && since.is_none() {
            continue;
        }
        let Some(last) = entries.first() else { continue };
        let least = if over_hours { least } else { ERRORS_NOW_LEAST };
        let why = match since.filter(|_| !over_hours) {
            None => format!(
                "They were logged in {} different hours: no single event, as the restart of a switch is.",
                hours.len()
            ),
            Some(minutes) => format!(
                "They were logged in {minutes} different minutes, up to the capture: longer than the restart of a switch takes, and they go on."
            ),
        };
        let title = match lost {
            true => format!("the link of {adapter} comes and goes"),
            false => format!(
                "{adapter} has errors in the log that go on: {}",
                last.description.to_lowercase()
            ),
        };
        let terms = vec![
            Term::read("entries and their duplicates", times, "errors", last.at),
            own_threshold("threshold", least, "errors"),
        ];
        let draft = Draft::new("adapter-errors", system.host, view.object(system.host, adapter), Severity::Warning, title)
                .see(entries.iter().take(8).map(|entry| entry.at))
                .figure(Figure::new("errors in the day before the capture", "errors", "entries and their duplicates", terms))
                .because(why)
                .effect("Look at cable, optics and the switch port, then at the adapter. For Fibre Channel `fcstat` of the port, twice, tells which; for Ethernet `entstat -d`.")
                .harm("None by looking.")
                .weigh(0.8, 0.8);
        out.push(or_note(draft));
    }
}
