//! `adapter-errors`: what adapters and their links write into the error log again and again, where no counter says more.

use std::collections::{BTreeMap, BTreeSet};

use super::{is_down, is_parent, log_taken, paths};
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::Object;
use crate::advise::thresholds::{
    ADAPTER_ERRORS_HOURS, ADAPTER_ERRORS_LEAST, DISK_ERRORS_WITHIN_SECONDS, LINK_LOST_LEAST,
    RESTART_SECONDS, own,
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
    let error = ["LINK", "ADAPTER ERROR", "COMMUNICATION", "SCSI BUS", LINK_LOST]
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

pub(super) fn errors(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let mut by_adapter: BTreeMap<&str, Vec<&LoggedError>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let logged = |entry: &LoggedError| entry.logged.as_ref().map(|taken| taken.seconds);
    let logs = || view.of(system.host).filter_map(Report::errpt).flat_map(|log| &log.entries);
    let restarts: BTreeSet<u64> =
        logs().filter(|entry| is_of_restart(entry)).filter_map(logged).collect();
    let at_restart = |entry: &LoggedError| {
        let around =
            |time: u64| time.saturating_sub(RESTART_SECONDS)..=time.saturating_add(RESTART_SECONDS);
        logged(entry).is_some_and(|time| restarts.range(around(time)).next().is_some())
    };
    for entry in logs() {
        let minute = entry.logged.as_ref().map(|taken| taken.seconds / 60);
        let own = is_of_adapter(entry) && !(is_lost(entry) && at_restart(entry));
        if own && seen.insert((minute, &entry.identifier, &entry.resource)) {
            by_adapter.entry(&entry.resource).or_default().push(entry);
        }
    }
    let Some(now) = log_taken(view, system.host) else {
        if !by_adapter.is_empty() {
            out.lack("whether errors of adapters go on", "date; errpt -a");
        }
        return;
    };
    let listed = paths(view, system.host).map_or(&[][..], |list| &list.paths);
    let down: Vec<_> = listed.iter().filter(|path| is_down(path)).collect();
    for (adapter, mut entries) in by_adapter {
        // The finding on the paths that are down has these entries as evidence.
        if is_parent(&down, adapter) {
            continue;
        }
        entries.retain(|entry| {
            logged(entry).is_some_and(|time| now.saturating_sub(time) <= DISK_ERRORS_WITHIN_SECONDS)
        });
        let hours: BTreeSet<u64> =
            entries.iter().filter_map(|entry| logged(entry)).map(|time| time / 3600).collect();
        let lost = times(entries.iter().filter(|entry| is_lost(entry))) >= LINK_LOST_LEAST;
        let least = if lost { LINK_LOST_LEAST } else { ADAPTER_ERRORS_LEAST };
        let times = times(&entries);
        if times < least || count(hours.len()) < ADAPTER_ERRORS_HOURS {
            continue;
        }
        let Some(last) = entries.first() else { continue };
        let title = match lost {
            true => format!("the link of {adapter} comes and goes"),
            false => format!(
                "{adapter} has errors in the log that go on: {}",
                last.description.to_lowercase()
            ),
        };
        let terms = vec![
            Term::read("entries and their duplicates", times, "errors", last.at),
            own("threshold", least, "errors"),
        ];
        out.push(
            Draft::new("adapter-errors", system.host, view.object(system.host, adapter), Severity::Warning, title)
                .see(entries.iter().take(8).map(|entry| entry.at))
                .figure(Figure::new("errors in the day before the capture", "errors", "entries + duplicates", terms))
                .because(format!("They were logged in {} different hours: no single event, as the restart of a switch is.", hours.len()))
                .effect("Look at cable, optics and the switch port, then at the adapter. For Fibre Channel `fcstat` of the port, twice, tells which; for Ethernet `entstat -d`.")
                .harm("None by looking.")
                .weigh(0.8, 0.8),
        );
    }
}
