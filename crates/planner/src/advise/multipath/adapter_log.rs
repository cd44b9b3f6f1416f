//! `adapter-errors`: what adapters and their links write into the error log again and again, where no counter says more.

use std::collections::{BTreeMap, BTreeSet};

use super::{is_down, is_parent, log_taken, paths};
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::Object;
use crate::advise::thresholds::{
    ADAPTER_ERRORS_HOURS, ADAPTER_ERRORS_LEAST, DISK_ERRORS_WITHIN_SECONDS, own,
};
use crate::advise::view::{View, count};
use crate::capture::{LoggedError, Report};
use crate::trace::{Figure, Term};

/// Whether an entry is an error of an adapter, of its protocol or of its link: hardware, permanent or temporary.
pub(super) fn is_of_adapter(entry: &LoggedError) -> bool {
    let adapter = ["fcs", "fscsi", "ent", "vscsi", "sissas"].iter().any(|kind| {
        entry.resource.strip_prefix(kind).is_some_and(|rest| rest.parse::<u32>().is_ok())
    });
    let text = entry.description.to_ascii_uppercase();
    let error = ["LINK", "ADAPTER ERROR", "COMMUNICATION", "SCSI BUS"]
        .iter()
        .any(|word| text.contains(word));
    adapter && error && entry.class.starts_with('H') && entry.kind.starts_with(['P', 'T'])
}

pub(super) fn errors(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let mut by_adapter: BTreeMap<&str, Vec<&LoggedError>> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    for entry in view.of(system.host).filter_map(Report::errpt).flat_map(|log| &log.entries) {
        let minute = entry.logged.as_ref().map(|taken| taken.seconds / 60);
        if is_of_adapter(entry) && seen.insert((minute, &entry.identifier, &entry.resource)) {
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
        let logged = |entry: &LoggedError| entry.logged.as_ref().map(|taken| taken.seconds);
        entries.retain(|entry| {
            logged(entry).is_some_and(|time| now.saturating_sub(time) <= DISK_ERRORS_WITHIN_SECONDS)
        });
        let hours: BTreeSet<u64> =
            entries.iter().filter_map(|entry| logged(entry)).map(|time| time / 3600).collect();
        let times = entries
            .iter()
            .map(|entry| 1 + entry.duplicates.unwrap_or(0))
            .fold(0, u64::saturating_add);
        #[allow(clippy::cast_precision_loss)]
        let times = times as f64;
        if times < ADAPTER_ERRORS_LEAST || count(hours.len()) < ADAPTER_ERRORS_HOURS {
            continue;
        }
        let Some(last) = entries.first() else { continue };
        let title = format!(
            "{adapter} has errors in the log that go on: {}",
            last.description.to_lowercase()
        );
        let terms = vec![
            Term::read("entries and their duplicates", times, "errors", last.at),
            own("threshold", ADAPTER_ERRORS_LEAST, "errors"),
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
