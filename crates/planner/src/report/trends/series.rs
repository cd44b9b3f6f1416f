//! Reports that hold a course of their own: a file of nmon its intervals, an error log its days.

use std::collections::{BTreeMap, BTreeSet};

use super::{Limit, Point, Thing, Trend, compare, limit, step};
use crate::advise::thresholds::{
    CAPPED_PERCENT, DEDICATED_PERCENT, PAGES_PER_SECOND, UNCAPPED_PERCENT,
};
use crate::capture::{Errpt, Nmon, NmonRow, NmonSection, Report, Taken};
use crate::facts::Facts;
use crate::facts::id::DISK_SERVICE_MS_MAX;

const DAY: u64 = 86_400;
const HOUR: u64 = 3600;
/// A log of fewer days is counted by the hour.
const FEW_DAYS: u64 = 3;
/// More days or hours than these are not drawn: the first ones are left out.
const STEPS_MOST: u64 = 400;

/// The clock by which a system's changes are marked: where it begins, its zone, and the last change by it.
#[derive(Clone, Copy)]
pub(super) struct Clock<'a> {
    pub(super) start: u64,
    pub(super) zone: Option<&'a Option<String>>,
    pub(super) change: Option<f64>,
}

/// The courses of a system's reports.
pub(super) fn of(
    (system, spoken): (usize, &str),
    reports: &[&Report],
    clock: Clock<'_>,
    facts: &Facts,
) -> Vec<Thing> {
    let files: Vec<&Nmon> = reports.iter().filter_map(|report| report.nmon()).collect();
    let logs: Vec<&Errpt> = reports.iter().filter_map(|report| report.errpt()).collect();
    let named = |name: &str| format!("{name} on {spoken}");
    let course = [
        course(system, named("nmon"), of_nmon(&files, facts), clock),
        course(system, named("errpt"), of_log(&logs), clock),
    ];
    course.into_iter().flatten().collect()
}

/// Whether a report is one of these, and has its own times.
pub(super) fn has_own_times(report: &Report) -> bool {
    report.nmon().is_some() || report.errpt().is_some()
}

/// Values by name and unit, with their times.
type Values = BTreeMap<(String, &'static str), Value>;

/// Its course, and what it is held against.
type Value = (Vec<(u64, f64)>, Option<Limit>);

/// So many kinds of errors of a log are shown, those with most errors.
const KINDS_MOST: usize = 20;

/// What one kind of report shows, and the zone of its times.
struct Course {
    values: Values,
    zone: Option<String>,
    times: BTreeSet<u64>,
    counted_in: &'static str,
}

fn course(system: usize, name: String, course: Course, clock: Clock<'_>) -> Option<Thing> {
    let (first, last) = (*course.times.first()?, *course.times.last()?);
    if course.times.len() < 2 {
        return None;
    }
    let same = clock.zone == Some(&course.zone);
    let start = if same { clock.start.min(first) } else { first };
    let seconds =
        |at: u64| u32::try_from(at.saturating_sub(start)).map_or(f64::from(u32::MAX), f64::from);
    // Marks are counted from where the system's clock begins.
    let change = clock.change.filter(|_| same && start == clock.start);
    let trend = |((name, unit), (mut values, limit)): ((String, &str), Value)| {
        values.sort_by_key(|(at, _)| *at);
        let points = values.into_iter().map(|(at, value)| Point { seconds: seconds(at), value });
        let mut trend = Trend {
            name,
            unit: unit.to_owned(),
            points: points.collect(),
            limit,
            ..Trend::default()
        };
        let digit = step(&trend.points);
        compare(&mut trend, change, digit, |_, _| true);
        trend
    };
    let mut counters: Vec<Trend> = course.values.into_iter().map(trend).collect();
    counters.retain(|trend| trend.points.iter().any(|point| point.value != 0.0));
    (!counters.is_empty()).then(|| Thing {
        name,
        system,
        captures: course.times.len(),
        counted_in: course.counted_in,
        seconds: seconds(last) - seconds(first),
        counters,
    })
}

/// Processors, memory, paging, disks, Fibre Channel and shared Ethernet, interval by interval.
fn of_nmon(files: &[&Nmon], facts: &Facts) -> Course {
    let mut course = Course {
        values: Values::new(),
        zone: None,
        times: BTreeSet::new(),
        counted_in: "intervals",
    };
    for file in files {
        let times: BTreeMap<&str, &Taken> =
            file.times.iter().map(|time| (time.tag.as_str(), &time.taken)).collect();
        if let Some(time) = file.times.first() {
            course.zone.clone_from(&time.taken.zone);
        }
        course.times.extend(file.times.iter().map(|time| time.taken.seconds));
        let ends = |row: &NmonRow| Some(times.get(row.tag.as_str())?.seconds);
        disks(file, ends, facts, &mut course.values);
        let shared = file.sections.iter().any(|section| section.name == "LPAR");
        for section in &file.sections {
            // Of a shared partition the LPAR section tells more than its share of the time.
            let shown = match section.name.as_str() {
                "CPU_ALL" if shared => Vec::new(),
                _ => columns(section),
            };
            for row in &section.rows {
                let Some(taken) = ends(row) else { continue };
                for (name, unit, of_row, limit) in &shown {
                    let Some(value) = of_row.value(&row.values) else { continue };
                    let entry = course.values.entry((name.clone(), unit)).or_default();
                    entry.0.push((taken, value));
                    entry.1 = limit.clone().or(entry.1.take());
                }
            }
        }
    }
    course
}

/// So many disks are shown by their service, the slowest.
const DISKS_MOST: usize = 20;

/// What all disks of a file move, and how quickly each answers. A file with many disks has several sections of a name.
fn disks(file: &Nmon, ends: impl Fn(&NmonRow) -> Option<u64>, facts: &Facts, values: &mut Values) {
    let sections = |name| file.sections.iter().filter(move |section| section.is_of(name));
    for (name, shown, unit) in [
        ("DISKREAD", "all disks read", "KB/s"),
        ("DISKWRITE", "all disks written", "KB/s"),
        ("DISKXFER", "all disks requests", "/s"),
    ] {
        // What stands above other disks would count twice.
        let plain = |name: &str| name.starts_with("hdisk") && !name.starts_with("hdiskpower");
        let any_plain =
            sections(name).any(|section| section.columns.iter().any(|name| plain(name)));
        let mut sums: BTreeMap<u64, f64> = BTreeMap::new();
        for section in sections(name) {
            for row in &section.rows {
                let Some(at) = ends(row) else { continue };
                let disks = section.columns.iter().zip(&row.values);
                let counted = disks.filter(|(name, _)| plain(name) || !any_plain);
                *sums.entry(at).or_default() +=
                    counted.filter_map(|(_, value)| *value).sum::<f64>();
            }
        }
        if !sums.is_empty() {
            values.entry((shown.to_owned(), unit)).or_default().0.extend(sums);
        }
    }
    let slow = facts.find(DISK_SERVICE_MS_MAX).and_then(|fact| limit(fact.high, "slow from"));
    let mut served: Vec<(String, Vec<(u64, f64)>)> = Vec::new();
    for section in sections("DISKSERV") {
        for (column, name) in section.columns.iter().enumerate() {
            let value = |row: &NmonRow| Some((ends(row)?, row.values.get(column).copied()??));
            let course: Vec<(u64, f64)> = section.rows.iter().filter_map(value).collect();
            served.push((format!("{name} service"), course));
        }
    }
    let sum = |course: &[(u64, f64)]| course.iter().map(|(_, value)| value).sum::<f64>();
    served.sort_by(|one, two| sum(&two.1).total_cmp(&sum(&one.1)));
    for (name, course) in served.into_iter().take(DISKS_MOST) {
        let entry = values.entry((name, "ms")).or_default();
        entry.0.extend(course);
        entry.1.clone_from(&slow);
    }
}

/// How a value comes out of a row.
enum OfRow {
    Column(usize),
    Sum(usize, usize),
    Percent(usize, usize),
}

impl OfRow {
    fn value(&self, row: &[Option<f64>]) -> Option<f64> {
        let of = |at: usize| row.get(at).copied().flatten();
        let value = match *self {
            Self::Column(at) => of(at)?,
            Self::Sum(one, two) => of(one)? + of(two)?,
            Self::Percent(part, whole) => of(part)? / of(whole)? * 100.0,
        };
        value.is_finite().then_some(value)
    }
}

type Column = (String, &'static str, OfRow, Option<Limit>);

/// What is drawn of a section.
fn columns(section: &NmonSection) -> Vec<Column> {
    let at = |name: &str| section.columns.iter().position(|column| column == name);
    let latest =
        |at: usize| section.rows.iter().rev().find_map(|row| row.values.get(at).copied()?);
    let every = |what: &str, unit: &'static str| -> Vec<Column> {
        let of = |(at, name): (usize, &String)| {
            (format!("{name} {what}").trim_end().to_owned(), unit, OfRow::Column(at), None)
        };
        section.columns.iter().enumerate().map(of).collect()
    };
    match section.name.as_str() {
        "LPAR" => {
            let mut shown = Vec::new();
            let (used, entitled) = (at("PhysicalCPU"), at("entitled"));
            if let Some(used) = used {
                let most = entitled.and_then(latest).and_then(|value| limit(value, "entitled"));
                shown.push(("processors used".into(), "processors", OfRow::Column(used), most));
            }
            if let Some((used, entitled)) = used.zip(entitled) {
                let capped = at("Capped").and_then(latest).is_some_and(|capped| capped > 0.0);
                let most = if capped { CAPPED_PERCENT } else { UNCAPPED_PERCENT };
                let most = limit(most, "short of processors from");
                shown.push(("entitlement used".into(), "%", OfRow::Percent(used, entitled), most));
            }
            shown
        }
        "CPU_ALL" => {
            let busy = at("User%").zip(at("Sys%")).map(|(one, two)| {
                let most = limit(DEDICATED_PERCENT, "short of processors from");
                ("processors busy".into(), "%", OfRow::Sum(one, two), most)
            });
            let waits = at("Wait%")
                .map(|at| ("processors wait for disks".into(), "%", OfRow::Column(at), None));
            busy.into_iter().chain(waits).collect()
        }
        "PAGE" => {
            let both = at("pgsin").zip(at("pgsout"));
            let paged = both.map(|(one, two)| {
                let most = limit(PAGES_PER_SECOND, "short of memory from");
                ("pages to and from paging space".into(), "/s", OfRow::Sum(one, two), most)
            });
            paged.into_iter().collect()
        }
        "MEM" => {
            let free = at("Real free(MB)");
            free.map(|at| ("free memory".into(), "MB", OfRow::Column(at), None))
                .into_iter()
                .collect()
        }
        "FCREAD" => every("read", "KB/s"),
        "FCWRITE" => every("written", "KB/s"),
        "FCXFERIN" => every("reads", "/s"),
        "FCXFEROUT" => every("writes", "/s"),
        "SEA" => every("", "KB/s"),
        _ => Vec::new(),
    }
}

/// Errors by resource and kind, without what is only told for information: a day, or an hour where the log is of few days.
fn of_log(logs: &[&Errpt]) -> Course {
    let mut seen = BTreeSet::new();
    let mut errors: Vec<(String, u64, f64)> = Vec::new();
    let mut zone = None;
    for entry in logs.iter().flat_map(|log| &log.entries) {
        let Some(logged) = &entry.logged else { continue };
        // The long form has the seconds, the short one of the same entry has not.
        let once = (logged.seconds / 60, &entry.identifier, &entry.resource, &entry.description);
        if entry.kind.starts_with('I') || !seen.insert(once) {
            continue;
        }
        zone.clone_from(&logged.zone);
        let name = format!("{} {}", entry.resource, entry.description);
        let again = entry.duplicates.and_then(|count| u32::try_from(count).ok()).unwrap_or(0);
        errors.push((name, logged.seconds, 1.0 + f64::from(again)));
    }
    let times = || errors.iter().map(|(_, at, _)| *at);
    let (first, last) = (times().min().unwrap_or(0), times().max().unwrap_or(0));
    let (step, unit, counted_in) = match last - first < FEW_DAYS * DAY {
        true => (HOUR, "errors/h", "hours"),
        false => (DAY, "errors/day", "days"),
    };
    let (first, last) = (first / step, last / step);
    let first = first.max(last.saturating_sub(STEPS_MOST - 1));
    let mut counts: BTreeMap<String, BTreeMap<u64, f64>> = BTreeMap::new();
    for (name, at, count) in &errors {
        *counts.entry(name.clone()).or_default().entry(at / step).or_default() += count;
    }
    let mut most: Vec<(String, BTreeMap<u64, f64>)> = counts.into_iter().collect();
    most.sort_by(|one, two| {
        let sum = |counts: &BTreeMap<u64, f64>| counts.values().sum::<f64>();
        sum(&two.1).total_cmp(&sum(&one.1))
    });
    most.truncate(KINDS_MOST);
    // Times without an error count, too: the course is what matters.
    let course = |(name, counts): (String, BTreeMap<u64, f64>)| {
        let count = |at: u64| (at * step, counts.get(&at).copied().unwrap_or(0.0));
        ((name, unit), ((first..=last).map(count).collect(), None))
    };
    let times = if errors.is_empty() {
        BTreeSet::new()
    } else {
        (first..=last).map(|at| at * step).collect()
    };
    Course { values: most.into_iter().map(course).collect(), zone, times, counted_in }
}
