//! Several captures of the same things over time: what grew how fast, and what a change brought.
//!
//! Reports of one thing are put in the order of their times, neighbours are compared with [`rates`], and each counter
//! that moved gets a line. Attributes that differ between captures are listed, and drawn as marks: what stands left and
//! right of a mark is before and after the change.

mod page;
mod series;
mod settings;

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::{
    Answer, Block, Chart, Limit, Line, Mark, Point, Section, Series, Table, Tone, span, sparkline,
};
use crate::advise::thresholds::{CAPPED_PERCENT, FREE_WARNING, FULL_PER_SECOND, UNCAPPED_PERCENT};
use crate::capture::{At, Captures, Change, DiskSample, Pool, Read, Report, Taken, rates};
use crate::facts::Facts;
use crate::facts::id::DISK_SERVICE_MS_MAX;
use crate::model::Model;
use crate::trace::number;

/// Lines of one thing that are drawn; all of them are in the table.
const DRAWN_MAX: usize = 6;

/// What changed over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Trends {
    /// The things that were captured at least twice, by name.
    pub things: Vec<Thing>,
    /// Attributes that changed, by time.
    pub changes: Vec<Changed>,
    /// What could not be compared, and why.
    pub left_out: Vec<String>,
    /// Names of the files, by number.
    pub files: Vec<String>,
}

/// One thing over time: a port, a client's row, an adapter.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Thing {
    /// `fcstat fcs0 on viosa1`.
    pub name: String,
    /// The system, as the model counts them.
    #[serde(skip)]
    pub system: usize,
    /// How many captures of it there are; of what has a course of its own, how many intervals or days.
    pub captures: usize,
    /// `captures`, `intervals`, `days`.
    pub counted_in: &'static str,
    /// Seconds from the first to the last.
    pub seconds: f64,
    /// The counters that moved.
    pub counters: Vec<Trend>,
}

/// One counter, or one value that is no counter, over time.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Trend {
    /// Its name.
    pub name: String,
    /// `/s` for a counter's rate; the unit of a value.
    pub unit: String,
    /// Each interval by its end, or each value by its time.
    pub points: Vec<Point>,
    /// The mean before the last change of an attribute, where there is one.
    pub before: Option<f64>,
    /// The mean after it.
    pub after: Option<f64>,
    /// What the change brought, where there are values on both sides of it.
    pub effect: Option<Effect>,
    /// The value that it is held against.
    pub limit: Option<Limit>,
    /// Resets and wraps on the way, which are told and not computed through.
    pub notes: Vec<String>,
}

/// What a change brought to one value.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Effect {
    /// The difference of the means, after − before.
    pub difference: f64,
    /// Twice the standard error of that difference, and no less than the last digit printed: what lies within is noise.
    /// `None` where a side has one value.
    pub noise: Option<f64>,
    /// What it means.
    pub verdict: Effected,
}

/// What a difference means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Effected {
    /// Less of what hurts.
    Better,
    /// More of what hurts.
    Worse,
    /// It differs, and whether that is good is the load's business.
    Changed,
    /// A side has a single value, so nobody can tell the difference from noise.
    Unsure,
    /// No more than the values vary by themselves.
    Noise,
}

impl Effected {
    fn words(self) -> &'static str {
        match self {
            Self::Better => "better",
            Self::Worse => "worse",
            Self::Changed => "changed",
            Self::Unsure => "one value: noise not known",
            Self::Noise => "within the noise",
        }
    }
}

/// Words in the names of values of which less is better.
const HURTS: [&str; 19] = [
    "no dma",
    "no elements",
    "no command",
    "no resource",
    "no mbuf",
    "error",
    "drop",
    "fail",
    "overflow",
    "discard",
    "timeout",
    "loss",
    "invalid",
    "service",
    "queue full",
    "entitlement",
    "limbo",
    "paging",
    "dumped",
];

/// An attribute that changed.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Changed {
    /// Seconds since the first capture of the system, of the capture that shows the new value.
    pub seconds: f64,
    /// `fcs0 on viosa1`.
    pub object: String,
    /// The system, as the model counts them.
    #[serde(skip)]
    pub system: usize,
    /// The attribute.
    pub attribute: String,
    /// The value before, and its line.
    pub before: (String, At),
    /// The value after, and its line.
    pub after: (String, At),
}

/// What the captures show over time. Captures without a time are left out, and said so.
#[must_use]
pub fn trends(captures: &Captures, facts: &Facts) -> Trends {
    let model = Model::of(captures);
    let mut systems: BTreeMap<usize, Vec<&Report>> = BTreeMap::new();
    for (at, report) in captures.reports.iter().enumerate() {
        systems.entry(model.owner(at)).or_default().push(report);
    }
    let mut left_out = BTreeSet::new();
    let mut changes = Vec::new();
    let mut things: Vec<Thing> = Vec::new();
    for (system, reports) in systems {
        let spoken = model.spoken(system);
        let Timed { start, zone, groups } = timed(captures, (spoken, &reports), &mut left_out);
        let changed = changed((system, spoken), &groups);
        let last_change = changed.last().map(|change| change.seconds);
        changes.extend(changed);
        for (name, group) in groups {
            things.extend(thing((system, &name), &group, last_change, facts, &mut left_out));
        }
        let clock = series::Clock { start, zone: zone.as_ref(), change: last_change };
        things.extend(series::of((system, spoken), &reports, clock, facts));
    }
    things.sort_by(|one, two| one.name.cmp(&two.name));
    let files = captures.files.iter().map(|file| file.name.clone()).collect();
    Trends { things, changes, left_out: left_out.into_iter().collect(), files }
}

/// A system's reports by the clock that most of them were taken by.
struct Timed<'a> {
    /// Where that clock begins to count.
    start: u64,
    zone: Option<Option<String>>,
    /// By what they are about, each in the order of its times.
    groups: BTreeMap<String, Vec<(f64, &'a Report)>>,
}

/// The reports of a system by what they are about, each in the order of its times, as seconds since the first. Systems have clocks of their own: those of
/// a system's reports that tell another zone than most are left out.
fn timed<'a>(
    captures: &Captures,
    (system, reports): (&str, &[&'a Report]),
    left_out: &mut BTreeSet<String>,
) -> Timed<'a> {
    let zone = crate::model::usual_zone(reports.iter().copied());
    let told = |report: &&'a Report| report.head().taken.as_ref();
    let of_zone = |taken: &&Taken| Some(&taken.zone) == zone.as_ref();
    let starts = reports.iter().filter_map(told).filter(of_zone);
    let start = starts.map(|taken| taken.seconds).min().unwrap_or(0);
    let mut groups: BTreeMap<String, Vec<(f64, &Report)>> = BTreeMap::new();
    for report in reports.iter().filter(|report| !series::has_own_times(report)) {
        let subject = subject(report, system);
        match told(report) {
            Some(taken) if of_zone(&taken) => {
                groups.entry(subject).or_default().push((since(start, taken), report));
            }
            Some(taken) => {
                let file = captures.file_name(report.head().first);
                let [own, usual] = [Some(&taken.zone), zone.as_ref()].map(clock);
                left_out.insert(format!(
                    "{subject}, in {file}: its time is by {own}, that of most captures of {system} by {usual}; how far the \
                     two are apart is not known, so they are not compared. Put `date -u` before each capture, or give \
                     those of one clock alone"
                ));
            }
            None => {
                left_out.insert(format!("{subject}: nothing says when it was captured"));
            }
        }
    }
    for group in groups.values_mut() {
        group.sort_by(|one, two| one.0.total_cmp(&two.0));
    }
    Timed { start, zone, groups }
}

/// A clock in words.
fn clock(zone: Option<&Option<String>>) -> String {
    match zone {
        Some(Some(zone)) if zone.is_empty() => "a `date` that names no zone".to_owned(),
        Some(Some(zone)) => format!("a `date` in {zone}"),
        _ => "UTC (as the name and the time of a file are taken)".to_owned(),
    }
}

fn since(start: u64, taken: &Taken) -> f64 {
    let seconds = taken.seconds.saturating_sub(start);
    u32::try_from(seconds).map_or(f64::from(u32::MAX), f64::from)
}

/// What a report is about: command, device and system.
fn subject(report: &Report, system: &str) -> String {
    match (report, &report.head().device) {
        (Report::HmcList(list), _) if !list.resource().is_empty() => {
            format!("{} {} on {system}", report.command(), list.resource())
        }
        (_, Some(device)) => format!("{} {} on {system}", report.command(), device.value),
        (_, None) => format!("{} on {system}", report.command()),
    }
}

/// What changed on a system, called so.
fn changed(
    (system, spoken): (usize, &str),
    groups: &BTreeMap<String, Vec<(f64, &Report)>>,
) -> Vec<Changed> {
    let mut changes = Vec::new();
    for group in groups.values() {
        let mut known: BTreeMap<(String, &str), settings::Setting<'_>> = BTreeMap::new();
        for (seconds, report) in group {
            for (object, setting) in settings::of(report) {
                let (name, value, at) = setting;
                let before = known.insert((object.clone(), name), setting);
                if let Some((_, before, before_at)) = before.filter(|before| before.1 != value) {
                    let on = if object.is_empty() { "" } else { " on " };
                    changes.push(Changed {
                        seconds: *seconds,
                        object: format!("{object}{on}{spoken}"),
                        system,
                        attribute: name.to_owned(),
                        before: (before.to_owned(), before_at),
                        after: (value.to_owned(), at),
                    });
                }
            }
        }
    }
    changes.sort_by(|one, two| {
        one.seconds.total_cmp(&two.seconds).then_with(|| one.after.1.cmp(&two.after.1))
    });
    changes
}

fn thing(
    (system, name): (usize, &str),
    group: &[(f64, &Report)],
    change: Option<f64>,
    facts: &Facts,
    left_out: &mut BTreeSet<String>,
) -> Option<Thing> {
    let (first, last) = (group.first()?.0, group.last()?.0);
    if group.len() > 1 && first >= last {
        left_out.insert(format!("{name}: all its captures have one time; put date before each"));
        return None;
    }
    let mut counters: BTreeMap<String, Trend> = BTreeMap::new();
    for pair in group.windows(2) {
        let [(_, earlier), (seconds, later)] = pair else { continue };
        let Ok(rates) = rates(earlier, later) else { continue };
        for rate in &rates.counters {
            let trend = counters.entry(rate.name.clone()).or_default();
            match rate.change {
                Change::Grew { per_second: Some(value), .. } => {
                    trend.points.push(Point { seconds: *seconds, value })
                }
                Change::Grew { per_second: None, .. } => {}
                Change::Reset => trend.notes.push(format!("reset before +{}", span(*seconds))),
                Change::Wrapped { bits } => {
                    trend.notes.push(format!("wrapped at {bits} bits before +{}", span(*seconds)))
                }
                Change::Fell => {
                    trend.notes.push(format!("fell before +{}: reset or wrapped", span(*seconds)))
                }
            }
        }
    }
    let mut trends: Vec<Trend> = Vec::new();
    for (name, mut trend) in counters {
        (trend.name, trend.unit) = (name, "/s".to_owned());
        // What was counted over an interval in which the change was made is of neither side.
        compare(&mut trend, change, 0.0, |point, change| point.seconds != change);
        trends.push(trend);
    }
    if group.len() > 1 {
        let mut values = values(group, facts);
        for trend in &mut values {
            let digit = step(&trend.points);
            compare(trend, change, digit, |_, _| true);
        }
        trends.extend(values);
    }
    // What stayed at nothing is left out; a reset that it shows is told once.
    let moved = |trend: &Trend| trend.points.iter().any(|point| point.value != 0.0);
    let mut told: BTreeSet<String> =
        trends.iter().filter(|trend| moved(trend)).flat_map(|trend| trend.notes.clone()).collect();
    trends.retain(|trend| {
        let news = trend.notes.iter().filter(|note| told.insert((*note).clone())).count();
        moved(trend) || news > 0
    });
    let some = group.len() > 1 && !trends.is_empty();
    some.then(|| Thing {
        name: name.to_owned(),
        system,
        captures: group.len(),
        counted_in: "captures",
        seconds: last - first,
        counters: trends,
    })
}

/// Values that are no counters: service times, entitlement, free space.
fn values(group: &[(f64, &Report)], facts: &Facts) -> Vec<Trend> {
    let mut all: BTreeMap<(String, &str), Trend> = BTreeMap::new();
    for (seconds, report) in group {
        for (name, unit, value, limit) in shown_values(report, facts) {
            let Some(value) = value.filter(|value| value.is_finite()) else { continue };
            let trend = all.entry((name.clone(), unit)).or_insert_with(|| Trend {
                name,
                unit: unit.to_owned(),
                ..Trend::default()
            });
            trend.points.push(Point { seconds: *seconds, value });
            trend.limit = limit.or(trend.limit.take());
        }
    }
    all.into_values().collect()
}

/// A value's name, unit and value, and what it is held against.
type Shown = (String, &'static str, Option<f64>, Option<Limit>);

fn limit(value: f64, label: impl Into<String>) -> Option<Limit> {
    Some(Limit { value, label: label.into() })
}

/// The values of a report that are no counters.
fn shown_values(report: &Report, facts: &Facts) -> Vec<Shown> {
    let number = |read: Option<Read<f64>>| read.map(|read| read.value);
    match report {
        Report::IostatD(iostat) => {
            let last = iostat.disks.iter().map(|disk| disk.sample).max().unwrap_or(1);
            let disks = iostat.disks.iter().filter(|disk| disk.sample == last);
            let slow = facts.find(DISK_SERVICE_MS_MAX).map(|fact| fact.high);
            let of = |disk: &DiskSample| -> [Shown; 4] {
                let name = |what: &str| format!("{} {what}", disk.name);
                let slow = || slow.and_then(|ms| limit(ms, "slow from"));
                let full = limit(FULL_PER_SECOND, "queue too short from");
                [
                    (name("transfers"), "/s", number(disk.transfers_per_second), None),
                    (name("read service"), "ms", number(disk.read.average_ms), slow()),
                    (name("write service"), "ms", number(disk.write.average_ms), slow()),
                    (name("queue full"), "/s", number(disk.queue.full_per_second), full),
                ]
            };
            disks.flat_map(of).collect()
        }
        Report::Lparstat(lparstat) => {
            let Some(sample) = lparstat.samples.last() else { return Vec::new() };
            let capped = lparstat.mode.as_ref().is_some_and(|mode| mode.value == "Capped");
            let most = if capped { CAPPED_PERCENT } else { UNCAPPED_PERCENT };
            let entitled = lparstat.entitlement.and_then(|read| limit(read.value, "entitled"));
            vec![
                (
                    "entitlement used".to_owned(),
                    "%",
                    number(sample.entitlement_percent),
                    limit(most, "short of processors from"),
                ),
                ("processors used".to_owned(), "processors", number(sample.physical), entitled),
            ]
        }
        Report::Lssp(lssp) => {
            let small = |read: Option<Read<u64>>| {
                read.and_then(|read| u32::try_from(read.value).ok()).map(f64::from)
            };
            let of = |pool: &Pool| {
                let least = small(pool.size_mb).and_then(|size| {
                    limit(size * FREE_WARNING / 100.0, format!("{FREE_WARNING} % of the pool"))
                });
                (format!("free in {}", pool.name), "MB", small(pool.free_mb), least)
            };
            lssp.pools.iter().map(of).collect()
        }
        _ => Vec::new(),
    }
}

/// What the last digit that was printed is worth: 0.1 where values have one digit behind the point.
fn step(points: &[Point]) -> f64 {
    let whole = |value: f64| (value - value.round()).abs() < 1e-6;
    let fits = |step: &f64| points.iter().all(|point| whole(point.value / step));
    [1.0, 0.1, 0.01].into_iter().find(fits).unwrap_or(0.001)
}

/// The means before and after the last change, and whether their difference is more than noise: values that were printed
/// in steps can differ by one without having changed.
///
/// The change has the time of the first capture with the new value, which is one of after it.
fn compare(trend: &mut Trend, change: Option<f64>, step: f64, counts: fn(&Point, f64) -> bool) {
    let Some(change) = change else { return };
    let side = |late: bool| -> Option<Side> {
        let of = |point: &&Point| (point.seconds >= change) == late && counts(point, change);
        let values = trend.points.iter().filter(of);
        Side::of(&values.map(|point| point.value).collect::<Vec<_>>())
    };
    let (before, after) = (side(false), side(true));
    (trend.before, trend.after) =
        (before.as_ref().map(|side| side.mean), after.as_ref().map(|side| side.mean));
    let Some((before, after)) = before.zip(after) else { return };
    let difference = after.mean - before.mean;
    let noise = before
        .error
        .zip(after.error)
        .map(|(one, two)| (2.0 * (one * one + two * two).sqrt()).max(step));
    let name = trend.name.to_ascii_lowercase().replace('_', " ");
    let verdict = match noise {
        _ if difference == 0.0 => Effected::Noise,
        None => Effected::Unsure,
        Some(noise) if difference.abs() <= noise + f64::EPSILON * after.mean.abs() => {
            Effected::Noise
        }
        Some(_) if !HURTS.iter().any(|word| name.contains(word)) => Effected::Changed,
        Some(_) if difference < 0.0 => Effected::Better,
        Some(_) => Effected::Worse,
    };
    trend.effect = Some(Effect { difference, noise, verdict });
}

/// The values on one side of a change.
struct Side {
    mean: f64,
    /// The standard error of the mean; one value has none.
    error: Option<f64>,
}

impl Side {
    fn of(values: &[f64]) -> Option<Self> {
        let count = f64::from(u32::try_from(values.len()).ok().filter(|count| *count > 0)?);
        let mean = values.iter().sum::<f64>() / count;
        let squares = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>();
        let error = (count > 1.0).then(|| (squares / (count - 1.0) / count).sqrt());
        Some(Self { mean, error })
    }
}

impl Answer for Trends {
    fn kind(&self) -> &'static str {
        "trends"
    }

    fn title(&self) -> String {
        "Trends".to_owned()
    }

    fn summary(&self) -> String {
        let counted = |count: usize, one: &str, many: &str| {
            format!("{count} {}", if count == 1 { one } else { many })
        };
        let things = counted(self.things.len(), "thing", "things");
        match (self.things.len(), self.changes.len()) {
            (0, 0) => {
                "Nothing was captured twice with a time, so there is nothing to compare.".to_owned()
            }
            (_, 0) => format!("{things} over time; no attribute changed."),
            (_, changes) => format!(
                "{things} over time; {}. Before and after are the means on either side of the last change.",
                counted(changes, "attribute changed", "attributes changed")
            ),
        }
    }

    fn sections(&self) -> Vec<Section> {
        let mut sections = Vec::new();
        sections.extend(self.changed());
        sections.extend(self.brought());
        sections.extend(self.things.iter().map(|thing| section(self, thing)));
        if !self.left_out.is_empty() {
            sections.push(
                Section::new("Left out", Tone::Plain).block(Block::List(self.left_out.clone())),
            );
        }
        sections
    }

    fn file_name(&self, file: u32) -> Option<String> {
        self.files.get(usize::try_from(file).ok()?).cloned()
    }

    fn data(&self) -> Result<serde_json::Value, serde_json::Error> {
        serde_json::to_value(self)
    }
}

impl Trends {
    /// The attributes that were changed.
    fn changed(&self) -> Option<Section> {
        let mut table = Table::new("", &["when", "object", "attribute", "before", "after"]);
        for change in &self.changes {
            table.row([
                format!("+{}", span(change.seconds)),
                change.object.clone(),
                change.attribute.clone(),
                change.before.0.clone(),
                change.after.0.clone(),
            ]);
        }
        let places = self.changes.iter().flat_map(|change| [change.before.1, change.after.1]);
        let section = Section::new("What was changed", Tone::Note).block(Block::Table(table));
        (!self.changes.is_empty()).then(|| section.block(Block::Places(places.collect())))
    }

    /// The drawing of a value.
    fn line(&self, thing: &Thing, trend: &Trend, title: String) -> Line {
        let own = self.changes.iter().filter(|change| change.system == thing.system);
        let marks = own.map(|change| Mark {
            seconds: change.seconds,
            label: format!("{}={}", change.attribute, change.after.0),
        });
        Line {
            title,
            unit: trend.unit.clone(),
            series: vec![Series { name: String::new(), points: trend.points.clone() }],
            marks: marks.collect(),
            limit: trend.limit.clone(),
        }
    }

    /// What the last change brought: every value with its means before and after, the difference and the noise.
    fn brought(&self) -> Option<Section> {
        let columns =
            ["object", "value", "unit", "#before", "#after", "#difference", "#noise", "so"];
        let mut rows: Vec<(Effected, f64, Vec<String>)> = Vec::new();
        for thing in &self.things {
            for trend in &thing.counters {
                let (Some(effect), Some(before)) = (trend.effect, trend.before) else { continue };
                let share = match before {
                    0.0 => String::new(),
                    before => {
                        format!(" ({}%)", signed((effect.difference / before * 100.0).round()))
                    }
                };
                let noise = effect
                    .noise
                    .map_or_else(|| "–".to_owned(), |noise| format!("±{}", number(noise)));
                rows.push((
                    effect.verdict,
                    -(effect.difference / before).abs(),
                    vec![
                        thing.name.clone(),
                        trend.name.clone(),
                        trend.unit.clone(),
                        number(before),
                        trend.after.map_or_else(String::new, number),
                        format!("{}{share}", signed(effect.difference)),
                        noise,
                        effect.verdict.words().to_owned(),
                    ],
                ));
            }
        }
        rows.sort_by(|one, two| one.0.cmp(&two.0).then(one.1.total_cmp(&two.1)));
        let count = |wanted: Effected| rows.iter().filter(|row| row.0 == wanted).count();
        let words = format!(
            "{} better, {} worse, {} changed with the load, {} within the noise, {} with too few captures to tell. Noise is twice the standard error of the difference of the means, and no less than the last digit printed; two captures on each side of the change are the least for it.",
            count(Effected::Better),
            count(Effected::Worse),
            count(Effected::Changed),
            count(Effected::Noise),
            count(Effected::Unsure),
        );
        let tone = match (count(Effected::Better), count(Effected::Worse)) {
            (_, 1..) => Tone::Warning,
            (1.., 0) => Tone::Good,
            (0, 0) => Tone::Plain,
        };
        let mut table = Table::new("", &columns);
        let shown = rows.into_iter().filter(|row| row.0 != Effected::Noise);
        shown.for_each(|(_, _, cells)| table.row(cells));
        let any =
            self.things.iter().flat_map(|thing| &thing.counters).any(|one| one.effect.is_some());
        let section = Section::new("What the last change brought", tone).paragraph(words);
        any.then(|| match table.rows.is_empty() {
            true => section,
            false => section.block(Block::Table(table)),
        })
    }
}

/// A number with its sign.
fn signed(value: f64) -> String {
    if value > 0.0 { format!("+{}", number(value)) } else { number(value) }
}

/// What comes first of what is drawn: what is beyond its threshold, what a change made better or worse, what has a threshold.
fn rank(trend: &Trend) -> (bool, bool, bool) {
    let most = trend.points.iter().map(|point| point.value).fold(f64::NEG_INFINITY, f64::max);
    let beyond = trend.limit.as_ref().is_some_and(|limit| most >= limit.value);
    let verdict = trend.effect.map(|effect| effect.verdict);
    let told = matches!(verdict, Some(Effected::Better | Effected::Worse));
    (!beyond, !told, trend.limit.is_none())
}

/// What is drawn of a thing: first what is beyond its threshold, then what a change made better or worse, then what has
/// a threshold.
fn drawn(thing: &Thing) -> Vec<&Trend> {
    // A value that never changed says as much in the table.
    let varies = |trend: &Trend| {
        let first = trend.points.first().map(|point| point.value);
        trend.points.iter().any(|point| Some(point.value) != first)
    };
    let mut trends: Vec<&Trend> = thing
        .counters
        .iter()
        .filter(|trend| trend.points.len() > 2 && (varies(trend) || trend.limit.is_some()))
        .collect();
    trends.sort_by_key(|trend| rank(trend));
    trends.truncate(DRAWN_MAX);
    trends
}

fn section(trends: &Trends, thing: &Thing) -> Section {
    let compared =
        thing.counters.iter().any(|trend| trend.before.is_some() && trend.after.is_some());
    let columns: &[&str] = if compared {
        &["value", "unit", "#first", "#last", "#before", "#after", "over time", "notes"]
    } else {
        &["value", "unit", "#first", "#last", "over time", "notes"]
    };
    let mut table = Table::new("", columns);
    let shown = |value: Option<f64>| value.map_or_else(|| "—".to_owned(), number);
    for trend in &thing.counters {
        let values: Vec<f64> = trend.points.iter().map(|point| point.value).collect();
        let mut row = vec![
            trend.name.clone(),
            trend.unit.clone(),
            shown(values.first().copied()),
            shown(values.last().copied()),
        ];
        if compared {
            row.extend([shown(trend.before), shown(trend.after)]);
        }
        row.extend([sparkline(&values), trend.notes.join("; ")]);
        table.row(row);
    }
    let heading = format!(
        "{}: {} {} over {}",
        thing.name,
        thing.captures,
        thing.counted_in,
        span(thing.seconds)
    );
    let mut section = Section::new(heading, Tone::Plain).block(Block::Table(table));
    for trend in drawn(thing) {
        let drawing = trends.line(thing, trend, trend.name.clone());
        section = section.block(Block::Chart(Chart::Line(drawing)));
    }
    section
}
