//! What the error log says of the day before it was printed: paths that come and go, volume groups that have lost a disk,
//! hardware of the machine.

use std::collections::{BTreeMap, BTreeSet};

use super::{LogTaken, has_log, is_down, paths};
use crate::advise::finding::{Draft, Severity};
use crate::advise::out::Out;
use crate::advise::rule::{Applicability, Kind, Object, Rule};
use crate::advise::sea::{Bridge, FLAPPING, FLAPPING_EFFECT};
use crate::advise::thresholds::{FLAPPING_HOURS, FULL_PERCENT, TURNS_IN_A_DAY, own};
use crate::advise::view::{Role, View, as_f64, count};
use crate::capture::{At, FileSystem, LoggedError, Lsvg, Report, VolumeGroup};
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
        about: "a volume group has lost a disk or has stale copies",
        on: Kind::System,
        evidence: "lsvg NAME and lsvg -p NAME of each group, and errpt with date, on each client and each VIOS",
        weight: 1.1,
        applies: |view, system| match groups(view, system.host).is_empty() {
            true => has_log(view, system),
            false => Applicability::Judged,
        },
        judge: volume_groups,
    },
    Rule {
        name: "file-system-full",
        about: "a file system that a VIOS needs is full",
        on: Kind::System,
        evidence: "df -g, and errpt with date, on each VIOS",
        weight: 1.0,
        applies: |view, system| match view.role(system.host) {
            Role::Vios => has_file_systems(view, system),
            // By its list alone: what a log has may be of file systems that nobody needs.
            Role::Unknown => {
                let listed = view.of(system.host).any(|report| report.df().is_some());
                Applicability::where_that(listed)
            }
            _ => Applicability::Elsewhere,
        },
        judge: full_file_systems,
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

/// What lists of a system say of its volume groups, in the order of time.
fn groups<'a>(view: &View<'a>, host: usize) -> Vec<&'a VolumeGroup> {
    let lists = view.of(host).filter_map(Report::lsvg);
    lists.flat_map(|list: &Lsvg| &list.groups).collect()
}

/// The last lists of each group that say something is lost: which group, what, and the lines.
fn lost_by_lists(view: &View<'_>, host: usize) -> Vec<(String, Vec<String>, Vec<At>, bool)> {
    let all = groups(view, host);
    let names: BTreeSet<&str> = all.iter().filter_map(|group| group.name.as_deref()).collect();
    let mut told = Vec::new();
    for name in names {
        let own = || all.iter().filter(|group| group.name.as_deref() == Some(name));
        let (mut what, mut lines, mut lost) = (Vec::new(), Vec::new(), false);
        if let Some(list) = own().rfind(|group| !group.disks.is_empty()) {
            for disk in list.disks.iter().filter(|disk| disk.state != "active") {
                what.push(format!("{} is {}", disk.name, disk.state));
                lines.push(disk.at);
                lost = true;
            }
        }
        if let Some(stale) =
            own().rev().find_map(|group| group.stale_pps).filter(|read| read.value > 0)
        {
            what.push(format!("{} partitions are stale", stale.value));
            lines.push(stale.at);
        }
        if let Some(list) = own().rfind(|group| !group.volumes.is_empty()) {
            let stale = list.volumes.iter().filter(|volume| volume.state.ends_with("/stale"));
            let stale: Vec<_> = stale.collect();
            if !stale.is_empty() {
                let names: Vec<&str> = stale.iter().map(|volume| volume.name.as_str()).collect();
                what.push(format!("the copies of {} are stale", names.join(", ")));
                lines.extend(stale.iter().map(|volume| volume.at));
            }
        }
        if !what.is_empty() {
            told.push((name.to_owned(), what, lines, lost));
        }
    }
    told
}

const SYNC_HARM: &str = "syncvg reads and writes all stale partitions: expect load on these disks.";
const NEXT_DISK: &str = "A mirrored volume group goes on with the copies that are left: the next disk that fails takes the data.";
const SYNC: &str = "When the disk answers again, varyonvg of the group takes it back and syncvg -v brings the stale copies up to date; else replace it.";

/// `volume-group-disks`: a mirror that has lost a half, by the lists, else by the log of the day.
pub(super) fn volume_groups(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let lists = lost_by_lists(view, system.host);
    for (name, what, lines, lost) in &lists {
        let spoken = view.spoken(system.host).to_owned();
        let (severity, title) = match lost {
            true => (Severity::Critical, format!("{name} of {spoken} has lost a disk")),
            false => (Severity::Warning, format!("{name} of {spoken} has stale copies")),
        };
        out.push(
            Draft::new("volume-group-disks", system.host, spoken, severity, title)
                .see(lines.iter().copied())
                .because(format!("By lsvg {}.", what.join(", ")))
                .because(NEXT_DISK)
                .effect(format!("See why the disk does not answer (lspath, errpt -a). {SYNC}"))
                .harm(SYNC_HARM)
                .weigh(0.95, 1.0),
        );
    }
    if !lists.is_empty() || view.of(system.host).filter_map(Report::errpt).next().is_none() {
        return;
    }
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
            .harm(SYNC_HARM)
            .weigh(0.9, 1.0),
    );
}

/// The file systems without which a VIOS does not do its work.
const NEEDED: [&str; 4] = ["/", "/var", "/tmp", "/home"];
const NEEDED_WHY: &str = "A VIOS with a full / or /var keeps no log and no dump, and changes of its configuration fail half-way: mappings, migrations, updates.";
const MAKE_ROOM: &str = "Take away what is not needed (old logs, dumps, filesets), or enlarge it while its volume group has free partitions: chfs -a size=+1G NAME.";
const OPEN_FILES: &str =
    "None by looking. A file that a process still has open keeps its blocks after it is removed.";

fn has_file_systems<'a>(view: &View<'a>, system: &Object<'a>) -> Applicability {
    let listed = view.of(system.host).filter_map(Report::df).next().is_some();
    if listed { Applicability::Judged } else { has_log(view, system) }
}

/// `file-system-full`: what has no room now by `df`, else what the log says.
pub(super) fn full_file_systems(view: &View<'_>, system: &Object<'_>, out: &mut Out) {
    let spoken = view.spoken(system.host).to_owned();
    let last = view.of(system.host).filter_map(Report::df).last();
    let listed = last.map_or(&[][..], |list| &list.systems);
    let full: Vec<&FileSystem> = listed
        .iter()
        .filter(|of| NEEDED.contains(&of.mounted.as_str()))
        .filter(|of| as_f64(of.used_percent) >= FULL_PERCENT)
        .collect();
    if let Some(first) = full.first() {
        let names: Vec<&str> = full.iter().map(|of| of.mounted.as_str()).collect();
        let names = names.join(" and ");
        let title =
            format!("{names} of {spoken} {} full", if full.len() == 1 { "is" } else { "are" });
        let terms = vec![Term::read("used", as_f64(first.used_percent), "%", first.at)];
        return out.push(
            Draft::new("file-system-full", system.host, spoken, Severity::Warning, title)
                .see(full.iter().map(|of| of.at))
                .figure(Figure::new(&format!("used of {}", first.mounted), "%", "used", terms))
                .figure(Figure::plain(own("threshold", FULL_PERCENT, "%")))
                .because(NEEDED_WHY)
                .effect(format!(
                    "See what fills it: du -xg {} | sort -n. {MAKE_ROOM}",
                    first.mounted
                ))
                .harm(OPEN_FILES)
                .weigh(0.9, 0.95),
        );
    }
    // What the log has is over where the list shows room everywhere.
    if !listed.is_empty() {
        return;
    }
    let is = |entry: &LoggedError| {
        entry.resource.eq_ignore_ascii_case("SYSPFS")
            && says(entry, &["UNABLE TO ALLOCATE SPACE", "FILE SYSTEM FULL"])
    };
    let Some(entries) = of_the_day(view, system.host, is) else {
        return out.lack("whether a file system is full now", "date; errpt");
    };
    let Some(last) = entries.first() else { return };
    let title = format!("a file system of {spoken} is full");
    out.push(
        Draft::new("file-system-full", system.host, spoken, Severity::Warning, title)
            .see(entries.iter().take(8).map(|entry| entry.at))
            .because(format!("The error log says so in the day before the capture: {}.", last.description.to_lowercase()))
            .because(NEEDED_WHY)
            .effect(format!("See which it is and what fills it: df -g, errpt -aj {} (its device), du -xg of its directory. {MAKE_ROOM}", last.identifier))
            .harm(OPEN_FILES)
            .weigh(0.9, 0.95),
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
