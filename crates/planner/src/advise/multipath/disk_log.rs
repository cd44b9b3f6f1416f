//! `disk-errors`: what the error log and `iostat -D` say of requests that a disk did not fulfil.

use std::collections::BTreeSet;

use super::{LogTaken, disk_entries, paths};
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::Object;
use crate::advise::thresholds::{DISK_ERRORS_LEAST, DISK_ERRORS_UNDATED, own};
use crate::advise::view::{View, as_f64, count};
use crate::capture::{DiskPath, LoggedError, PathState, Read, Report};
use crate::trace::{Figure, Term, number};

pub(super) fn errors(view: &View<'_>, disk: &Object<'_>, out: &mut Out) {
    let entries = disk_entries(view, disk.host, disk.device);
    let Some(now) = LogTaken::of(view, disk.host) else {
        if !entries.is_empty() {
            out.lack("whether the errors go on", "date; errpt");
            many_at_the_end(view, disk, &entries, out);
        }
        return;
    };
    let is_recent = |entry: &&&LoggedError| {
        entry.logged.as_ref().is_some_and(|taken| now.within_a_day(taken.seconds))
    };
    let recent: Vec<&&LoggedError> = entries.iter().filter(is_recent).collect();
    // The file may have been copied long after.
    if recent.is_empty() && !entries.is_empty() && !now.printed {
        out.lack("whether the errors go on", "date; errpt");
        many_at_the_end(view, disk, &entries, out);
        return;
    }
    // What the log keeps as duplicates of an entry happened, too.
    let again = recent.iter().map(|entry| entry.duplicates.map_or(0.0, as_f64)).sum::<f64>();
    let all = count(recent.len()) + again;
    if all < DISK_ERRORS_LEAST {
        return;
    }
    let listed = paths(view, disk.host).map_or(&[][..], |list| &list.paths);
    let own: Vec<&DiskPath> = listed.iter().filter(|path| path.disk == disk.device).collect();
    let all_up = !own.is_empty() && own.iter().all(|path| path.state == PathState::Usable);
    let title = format!("{} has disk errors that go on", disk.device);
    let mut draft = Draft::new(
        "disk-errors",
        disk.host,
        view.object(disk.host, disk.device),
        Severity::Critical,
        title,
    )
    .see(recent.iter().take(8).map(|entry| entry.at))
    .because(match again {
        0.0 => format!("{} errors were logged in the day before the capture.", number(all)),
        _ => format!(
            "{} errors were logged in the day before the capture: {}, and {} duplicates that the log counts.",
            number(all),
            if recent.len() == 1 { "1 entry".to_owned() } else { format!("{} entries", recent.len()) },
            number(again)
        ),
    });
    if let Some(ways) = ways(&own) {
        draft = draft.see(own.iter().take(8).map(|path| path.at)).because(ways);
    }
    if all_up {
        draft = draft.because_here(
            "All its paths are usable: it is not the way there, it is the LUN.".to_owned(),
        );
    }
    let minutes: BTreeSet<u64> =
        recent.iter().filter_map(|entry| Some(entry.logged.as_ref()?.seconds / 60)).collect();
    out.push(
        draft
            .failing(disk.device, minutes)
            .effect(match super::is_built_in(view, disk.host, disk.device) {
                Some(true) => BUILT_IN.to_owned(),
                Some(false) => format!("{LUN}; save its data first."),
                None => format!("Look what it is: lscfg -vl {}. A LUN: {}; save its data first. A drive of the machine: {}{}", disk.device, LUN.replacen('A', "a", 1), BUILT_IN[..1].to_lowercase(), &BUILT_IN[1..]),
            })
            .harm("None by asking.")
            .weigh(0.9, 1.0),
    );
}

/// `disk-errors`, by a log of which it is not known when it was taken: many within a day, and nothing was logged after them
/// for a day.
fn many_at_the_end(view: &View<'_>, disk: &Object<'_>, entries: &[&LoggedError], out: &mut Out) {
    const DAY: u64 = 86_400;
    let logs = view.of(disk.host).filter_map(Report::errpt).flat_map(|log| &log.entries);
    let times = logs.filter_map(|entry| Some(entry.logged.as_ref()?.seconds));
    let Some(newest) = times.max() else { return };
    let is_late = |entry: &&&LoggedError| {
        entry.logged.as_ref().is_some_and(|taken| newest.saturating_sub(taken.seconds) <= DAY)
    };
    let late: Vec<&&LoggedError> = entries.iter().filter(is_late).collect();
    let Some(first) = late.first().filter(|_| count(late.len()) >= DISK_ERRORS_UNDATED) else {
        return;
    };
    let terms = vec![
        Term::read("entries", count(late.len()), "errors", first.at),
        own("threshold", DISK_ERRORS_UNDATED, "errors"),
    ];
    let title = format!("{} has many disk errors at the end of the log", disk.device);
    out.push(
        Draft::new("disk-errors", disk.host, view.object(disk.host, disk.device), Severity::Warning, title)
            .see(late.iter().take(8).map(|entry| entry.at))
            .figure(Figure::new("errors in the last day of the log", "errors", "entries", terms))
            .because(format!("{} errors stand in the last day that the log has. When it was taken is not known: date was not captured with it.", late.len()))
            .effect(format!("See with date and errpt whether it goes on. {}", super::is_built_in(view, disk.host, disk.device).map_or_else(|| format!("Look what it is: lscfg -vl {}. A LUN: {}; save its data first. A drive of the machine: {}{}", disk.device, LUN.replacen('A', "a", 1), BUILT_IN[..1].to_lowercase(), &BUILT_IN[1..]), |built_in| if built_in { BUILT_IN.to_owned() } else { format!("{LUN}; save its data first.") })))
            .harm("None by asking.")
            .weigh(0.65, 1.0),
    );
}

/// Who mends a disk of an array, and a drive of the machine.
const LUN: &str = "Ask the storage side for the drives and the array behind this LUN";
const BUILT_IN: &str = "Replace the drive: take its copies out (unmirrorvg, then reducevg; on a VIOS unmirrorios), swap it while diag shows it as removed, and mirror again (extendvg, mirrorvg; on a VIOS mirrorios). Save its data first where it has no copy elsewhere.";

/// What `iostat -D` counts of requests that a disk did not fulfil, in intervals: the first sample is of all time.
pub(super) fn failed_requests(
    view: &View<'_>,
    disk: &Object<'_>,
) -> Vec<(&'static str, Read<f64>)> {
    let samples = view.disk_samples(disk.host).get(disk.device).into_iter().flatten();
    let within = samples.filter(|sample| sample.sample > 1);
    let each =
        within.flat_map(|sample| [("reads", sample.read.fails), ("writes", sample.write.fails)]);
    each.filter_map(|(what, fails)| Some((what, fails.filter(|fails| fails.value > 0.0)?)))
        .collect()
}

/// `disk-errors`, by what applications are refused.
pub(super) fn failing(view: &View<'_>, disk: &Object<'_>, out: &mut Out) {
    let failed = failed_requests(view, disk);
    let sum: f64 = failed.iter().map(|(_, read)| read.value).sum();
    let Some((_, first)) = failed.first().filter(|_| sum >= DISK_ERRORS_LEAST) else { return };
    let terms = vec![Term::read("failed requests", sum, "requests", first.at)];
    let mut what: Vec<&str> = failed.iter().map(|(what, _)| *what).collect();
    what.sort_unstable();
    what.dedup();
    out.push(
        Draft::new(
            "disk-errors",
            disk.host,
            disk.label.clone(),
            Severity::Critical,
            format!("{} fails requests", disk.device),
        )
        .see(failed.iter().take(8).map(|(_, read)| read.at))
        .because(format!("iostat counts {} that failed within its intervals: the applications get I/O errors, whatever the service times are.", what.join(" and ")))
        .figure(Figure::new("requests that failed", "requests", "failed requests", terms))
        .effect("Look at the error log (errpt -a) for the disk and its paths (lspath), then ask the storage side for the LUN; save its data first.")
        .harm("None by looking.")
        .weigh(0.9, 1.0),
    );
}

/// The paths of a disk in words: `Its paths: fscsi0 to 5005076810111a10 (Enabled), fscsi1 (Failed).`
fn ways(own: &[&DiskPath]) -> Option<String> {
    let way = |path: &&DiskPath| {
        let to = path.connection.as_ref().map_or_else(String::new, |to| format!(" to {to}"));
        Some(format!("{}{to} ({})", path.parent.as_deref()?, path.status))
    };
    let ways: Vec<String> = own.iter().filter_map(way).collect();
    // Rows without a connection are alike.
    let told = |alike: &[String]| match alike {
        [one] => one.clone(),
        _ => format!("{} × {}", alike.len(), alike[0]),
    };
    let told: Vec<String> = ways.chunk_by(|one, two| one == two).map(told).collect();
    (!told.is_empty()).then(|| format!("Its paths: {}.", told.join(", ")))
}
