//! What the error log says of the day before it was printed: paths that come and go, volume groups that have lost a disk,
//! hardware of the machine.

use std::collections::{BTreeMap, BTreeSet};

use super::{LogTaken, has_log, is_down, paths};
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::{Applicability, Kind, Object, Rule};
use crate::advise::sea::{Bridge, FLAPPING, FLAPPING_EFFECT};
use crate::advise::thresholds::{FLAPPING_HOURS, TURNS_IN_A_DAY, own};
use crate::advise::view::{View, count};
use crate::capture::{LoggedError, Report};
use crate::trace::{Figure, Term};

/// The rules of this module.
pub(in crate::advise) const RULES: &[Rule] = &[
    Rule {
        name: "disk-paths-flap",
        about: "paths to disks fail and come back again and again",
        on: Kind::System,
        evidence: "errpt and date on each client and each VIOS",
        weight: 1.0,
        applies: has_log,
        judge: flapping,
    },
    Rule {
        name: "volume-group-disks",
        about: "the error log says that a volume group has lost a disk or has stale copies",
        on: Kind::System,
        evidence: "errpt and date on each client and each VIOS",
        weight: 1.1,
        applies: has_log,
        judge: volume_groups,
    },
    Rule {
        name: "platform-errors",
        about: "the error log has permanent errors of the machine itself",
        on: Kind::System,
        evidence: "errpt and date on each client and each VIOS",
        weight: 1.0,
        applies: has_log,
        judge: platform,
    },
    Rule {
        name: "sea-failover",
        about: "the two shared Ethernet adapters do not fail over as a pair",
        on: Kind::System,
        evidence: "errpt and date on each VIOS",
        weight: 1.0,
        applies: |view, system| match turned(view, system.host).is_some_and(|all| all.is_empty()) {
            true => Applicability::Elsewhere,
            false => has_log(view, system),
        },
        judge: turns_by_log,
    },
];

/// The shared adapters that became primary and backup so often in the day before the capture, by the log, that it is no
/// failover with its way back; `None` where nothing tells which day that is.
pub(in crate::advise) fn turned<'a>(
    view: &View<'a>,
    host: usize,
) -> Option<BTreeMap<&'a str, Vec<&'a LoggedError>>> {
    let is = |entry: &LoggedError| says(entry, &["BECOME PRIMARY", "BECOME BACKUP"]);
    let mut of: BTreeMap<&str, Vec<&LoggedError>> = BTreeMap::new();
    for entry in of_the_day(view, host, is)? {
        of.entry(&entry.resource).or_default().push(entry);
    }
    of.retain(|_, entries| count(entries.len()) >= TURNS_IN_A_DAY);
    Some(of)
}

/// `sea-failover`, of shared adapters of which the log alone tells.
fn turns_by_log(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let Some(all) = turned(view, system.host) else {
        return out.lack("whether shared adapters change again and again", "date; errpt");
    };
    // Its own statistics tell it with the log's lines.
    let captured = |name: &str| {
        let counts = |of: &Bridge<'_>| {
            of.failover().is_some_and(|of| of.became_primary.or(of.became_backup).is_some())
        };
        view.bridges().iter().any(|of| of.host == system.host && of.name == name && counts(of))
    };
    for (name, entries) in all.into_iter().filter(|(name, _)| !captured(name)) {
        let Some(last) = entries.first() else { continue };
        let terms = vec![
            Term::read("entries", count(entries.len()), "changes", last.at),
            own("threshold", TURNS_IN_A_DAY, "changes"),
        ];
        let title = "the primary changes again and again".to_owned();
        let object = view.object(system.host, name);
        out.push(
            Draft::new("sea-failover", system.host, object, Severity::Warning, title)
                .see(entries.iter().take(8).map(|entry| entry.at))
                .figure(Figure::new("changes in the day before the capture", "changes", "entries", terms))
                .because(format!("By the error log {name} became primary or backup {} times in the day before the capture: it goes on.", entries.len()))
                .because(FLAPPING)
                .effect(FLAPPING_EFFECT)
                .harm("Nothing is changed here.")
                .weigh(0.9, 0.95),
        );
    }
}

/// The entries of the day before the capture that are of a kind, each once; `None` where nothing tells which day that is.
fn of_the_day<'a>(
    view: &View<'a>,
    host: usize,
    is: impl Fn(&LoggedError) -> bool,
) -> Option<Vec<&'a LoggedError>> {
    let mut seen = BTreeSet::new();
    let logs = view.of(host).filter_map(Report::errpt).flat_map(|log| &log.entries);
    let mut all: Vec<&LoggedError> = logs.filter(|entry| is(entry)).collect();
    if all.is_empty() {
        return Some(all);
    }
    let now = LogTaken::of(view, host).filter(|now| now.printed)?;
    all.retain(|entry| {
        let Some(at) = entry.logged.as_ref().map(|taken| taken.seconds) else { return false };
        now.within_a_day(at) && seen.insert((at / 60, &entry.identifier, &entry.resource))
    });
    Some(all)
}

fn says(entry: &LoggedError, words: &[&str]) -> bool {
    let text = entry.description.to_ascii_uppercase();
    words.iter().any(|word| text.contains(word))
}

/// `disk-paths-flap`: usable now, and failed in several hours of the day.
pub(super) fn flapping(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let is = |entry: &LoggedError| says(entry, &["PATH HAS FAILED"]);
    let Some(failed) = of_the_day(view, system.host, is) else {
        return out.lack("whether paths fail again and again", "date; errpt");
    };
    let hours: BTreeSet<u64> =
        failed.iter().filter_map(|entry| Some(entry.logged.as_ref()?.seconds / 3600)).collect();
    let Some(last) = failed.first().filter(|_| count(hours.len()) >= FLAPPING_HOURS) else {
        return;
    };
    // Paths that are down now are told as such.
    let listed = paths(view, system.host).map_or(&[][..], |list| &list.paths);
    if listed.iter().any(is_down) {
        return;
    }
    let disks: BTreeSet<&str> = failed.iter().map(|entry| entry.resource.as_str()).collect();
    let spoken = view.spoken(system.host).to_owned();
    let terms = vec![
        Term::read("hours with failed paths", count(hours.len()), "hours", last.at),
        own("threshold", FLAPPING_HOURS, "hours"),
    ];
    let title = format!("paths of {spoken} fail and come back");
    out.push(
        Draft::new("disk-paths-flap", system.host, spoken, Severity::Warning, title)
            .see(failed.iter().take(8).map(|entry| entry.at))
            .figure(Figure::new("different hours of the day before the capture", "hours", "hours with failed paths", terms))
            .because(format!("Paths of {} disks failed in {} different hours of the day before the capture: no single event, as the restart of a VIOS or a switch is.", disks.len(), hours.len()))
            .because("Each time the requests on these paths wait until they are given up there and sent over another one.")
            .effect("See what the paths have in common that fail (errpt -a names the path id and the adapter; lspath -l hdiskN -F \"path_id parent connection\"), then look at that adapter, its cable and switch port, its VIOS.")
            .harm("None by looking.")
            .weigh(0.85, 0.95),
    );
}

/// `volume-group-disks`: a mirror that has lost a half.
pub(super) fn volume_groups(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let lost = ["PHYSICAL VOLUME DECLARED MISSING", "QUORUM LOST"];
    let is = |entry: &LoggedError| {
        let lvm = ["LVDD", "LIBLVM"].iter().any(|of| entry.resource.eq_ignore_ascii_case(of));
        lvm && (says(entry, &lost) || says(entry, &["MARKED STALE"]))
    };
    let Some(entries) = of_the_day(view, system.host, is) else {
        return out.lack("whether volume groups have lost a disk", "date; errpt");
    };
    let missing = entries.iter().find(|entry| says(entry, &lost));
    let Some(first) = missing.or_else(|| entries.first()) else { return };
    let spoken = view.spoken(system.host).to_owned();
    let (severity, title) = match missing {
        Some(_) => (Severity::Critical, format!("a volume group of {spoken} has lost a disk")),
        None => (Severity::Warning, format!("a volume group of {spoken} has stale copies")),
    };
    out.push(
        Draft::new("volume-group-disks", system.host, spoken, severity, title)
            .see([first.at])
            .see(entries.iter().take(6).map(|entry| entry.at))
            .because(format!("The error log says so in the day before the capture: {}.", first.description.to_lowercase()))
            .because("A mirrored volume group goes on with the copies that are left, and nothing says so but the log: the next disk that fails takes the data.")
            .effect("See which disk it is: lsvg -o | xargs -n 1 lsvg -p (PV STATE missing), errpt -a for its id. When the disk answers again, varyonvg of the group takes it back and syncvg -v brings the stale copies up to date; else replace it.")
            .harm("syncvg reads and writes all stale partitions: expect load on these disks.")
            .weigh(0.9, 1.0),
    );
}

/// `platform-errors`: processors, memory, planars.
pub(super) fn platform(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let is = |entry: &LoggedError| {
        let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let machine = ["sysplanar", "proc", "mem", "L2cache", "pci", "ioplanar"];
        entry.class.starts_with('H')
            && entry.kind.starts_with('P')
            && machine.iter().any(|kind| entry.resource.strip_prefix(kind).is_some_and(digits))
    };
    let Some(entries) = of_the_day(view, system.host, is) else {
        return out.lack("whether errors of the machine are new", "date; errpt");
    };
    let Some(last) = entries.first() else { return };
    let spoken = view.spoken(system.host).to_owned();
    let title = format!("the machine of {spoken} has permanent errors: {}", last.resource);
    out.push(
        Draft::new("platform-errors", system.host, spoken, Severity::Warning, title)
            .see(entries.iter().take(8).map(|entry| entry.at))
            .because(format!("{} permanent hardware errors were logged in the day before the capture, the last of them: {} on {}.", entries.len(), last.description.to_lowercase(), last.resource))
            .effect(format!("Read what it is: errpt -aj {} (reference code, location), and the HMC's serviceable events (lssvcevents -t hardware); open a call with these.", last.identifier))
            .harm("None by reading.")
            .weigh(0.85, 1.0),
    );
}
