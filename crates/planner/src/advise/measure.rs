//! Counters over time: what grew, how fast, and whether that is more than noise.

use std::cmp::Ordering;

use super::finding::Draft;
use super::thresholds::{
    GROWTH_LEAST, GROWTH_SHARE, MANY_LEAST, MANY_SHARE, ONCE_ALONE, ONCE_LEAST, ONCE_SHARE,
    QUIET_SHARE,
};
use super::view::{View, as_f64};
use crate::capture::{At, Fcstat, Head, Read};
use crate::trace::{Figure, Term};

/// A counter in the first and the last of several captures.
#[derive(Debug, Clone, Copy)]
pub(super) struct Counter {
    pub(super) first: Option<Read<u64>>,
    pub(super) last: Read<u64>,
    /// In the capture before the last one, of three and more.
    before: Option<Read<u64>>,
    /// So many captures before the last one have its value, one after the other.
    still: usize,
}

/// A counter that grew and then stands still in so many captures after each other is history, or its load is away.
const STILL: usize = 2;

impl Counter {
    /// The counter over samples in the order of time; `None` where the last one lacks it.
    pub(super) fn over<T: ?Sized>(
        samples: &[&T],
        read: impl Fn(&T) -> Option<Read<u64>>,
    ) -> Option<Self> {
        let (last, before) = samples.split_last()?;
        let last = read(last)?;
        let earlier = || before.iter().rev().filter_map(|sample| read(sample));
        let still = earlier().take_while(|read| read.value == last.value).count();
        let mut values = before.iter().filter_map(|sample| read(sample));
        let first = values.next();
        Some(Self { first, last, before: values.next_back(), still })
    }

    /// Over the newest interval alone.
    pub(super) fn newest(&self) -> Self {
        Self { first: self.before.or(self.first), before: None, still: 0, ..*self }
    }

    /// The same as known to be over.
    fn ended(self) -> Self {
        Self { still: STILL, ..self }
    }

    /// Why what grew between the captures does not happen now: the last of them show no growth.
    pub(super) fn is_over(&self) -> Option<String> {
        let over = self.still >= STILL && self.growth().is_some_and(|growth| growth > 0.0);
        over.then(|| {
            "The newest captures have the same count: it is over, or what it comes with is away."
                .to_owned()
        })
    }

    pub(super) fn value(&self) -> f64 {
        as_f64(self.last.value)
    }

    /// What it grew by; `None` with one capture, and after a reset between them.
    pub(super) fn growth(&self) -> Option<f64> {
        Some(as_f64(self.last.value.checked_sub(self.first?.value)?))
    }

    /// Whether it was reset between the captures: it counts anew since then.
    pub(super) fn was_reset(&self) -> bool {
        self.first.is_some_and(|first| first.value > self.last.value)
    }

    /// The lines it stood on.
    pub(super) fn places(&self) -> impl Iterator<Item = At> {
        self.first.into_iter().chain([self.last]).map(|read| read.at)
    }

    /// The growth as a figure.
    pub(super) fn growth_figure(&self, name: &str, unit: &str) -> Option<Figure> {
        let first = self.first?;
        self.growth()?;
        let terms = vec![
            Term::read("later", as_f64(self.last.value), unit, self.last.at),
            Term::read("earlier", as_f64(first.value), unit, first.at),
        ];
        Some(Figure::new(name, unit, "later − earlier", terms))
    }
}

/// How a counter of waits is to be taken.
#[derive(Debug, Clone)]
pub(super) struct Waits {
    pub(super) counter: Counter,
    /// 0 to 1: growth is proof, a single value is a hint.
    pub(super) confidence: f64,
    pub(super) grows: bool,
    pub(super) figures: Vec<Figure>,
    /// The sentence that says which of the two it is.
    pub(super) why: String,
}

impl Waits {
    /// A finding that rests on it: its lines, which of the two it is, its figures.
    pub(super) fn tell(&self, draft: Draft) -> Draft {
        let draft = draft.see(self.counter.places()).because(self.why.clone());
        self.figures.iter().cloned().fold(draft, Draft::figure).unless_over(&self.counter)
    }
}

/// Judges a counter of waits for a resource against the requests it happened in; `None` when it is noise or history.
pub(super) fn waits(name: &str, counter: Counter, requests: &[Counter]) -> Option<Waits> {
    waits_from(name, counter, requests, GROWTH_SHARE)
}

/// The same with the share of the requests from which growth is more than noise.
pub(super) fn waits_from(
    name: &str,
    counter: Counter,
    requests: &[Counter],
    least: f64,
) -> Option<Waits> {
    if let Some(growth) = counter.growth() {
        // What happens now, the newest interval tells; over all of them it may be little, or over.
        let newest: Vec<Counter> = requests.iter().map(Counter::newest).collect();
        let of_newest = || {
            counter.before?;
            let last = counter.newest();
            grown(name, last, last.growth()?, &newest, least)
        };
        return of_newest().or_else(|| {
            let all: f64 = requests.iter().filter_map(Counter::growth).sum();
            let now: f64 = newest.iter().filter_map(Counter::growth).sum();
            let quiet = counter.before.is_some_and(|before| before.value == counter.last.value);
            let counter = if quiet && now >= all * QUIET_SHARE { counter.ended() } else { counter };
            grown(name, counter, growth, requests, least)
        });
    }
    let total: f64 = requests.iter().map(Counter::value).sum();
    let value = counter.value();
    let share = if total > 0.0 { value / total } else { 0.0 };
    let loud = value >= ONCE_LEAST && share >= ONCE_SHARE;
    if !(loud || (total <= 0.0 && value >= ONCE_ALONE)) {
        return None;
    }
    let mut figures = Vec::new();
    if total > 0.0 {
        let mut terms = vec![Term::read("waits", value, "waits", counter.last.at)];
        let names: Vec<String> = ["reads", "writes"]
            .iter()
            .take(requests.len())
            .map(|name| (*name).to_owned())
            .collect();
        for (request, name) in requests.iter().zip(&names) {
            terms.push(Term::read(name, request.value(), "requests", request.last.at));
        }
        let formula = format!("waits × 100 ÷ ({})", names.join(" + "));
        figures.push(Figure::new(
            &format!("share of requests that met {name}"),
            "%",
            &formula,
            terms,
        ));
    }
    let reset =
        if counter.was_reset() { " The counters were reset between the captures." } else { "" };
    let why = format!(
        "{name} is {} since the last reset or boot; one capture cannot show whether it still grows. Take a second one under load to be sure.{reset}",
        crate::trace::number(value)
    );
    let confidence = if share >= 0.01 || (total <= 0.0) { 0.7 } else { 0.6 };
    Some(Waits { counter, confidence, grows: false, figures, why })
}

fn grown(
    name: &str,
    counter: Counter,
    growth: f64,
    requests: &[Counter],
    least: f64,
) -> Option<Waits> {
    let moved: f64 = requests.iter().filter_map(Counter::growth).sum();
    let share = if moved > 0.0 { growth / moved } else { 1.0 };
    let least = if growth >= MANY_LEAST { least.min(MANY_SHARE) } else { least };
    if growth < GROWTH_LEAST || share < least {
        return None;
    }
    let mut figures: Vec<Figure> =
        counter.growth_figure(&format!("growth of {name}"), "waits").into_iter().collect();
    if moved > 0.0 {
        let mut terms: Vec<Term> =
            figures.iter().map(|figure| Term::of(figure).named("growth")).collect();
        terms.push(Term::new(
            "requests between",
            moved,
            "requests",
            crate::trace::Origin::Computed,
        ));
        let formula = "growth × 100 ÷ requests between";
        figures.push(Figure::new(
            &format!("share of requests that met {name}"),
            "%",
            formula,
            terms,
        ));
    }
    let when = if counter.is_over().is_some() { "." } else { ": it happens now." };
    let why = format!("{name} grew by {} between the captures{when}", crate::trace::number(growth));
    let confidence = if share >= 0.005 { 0.97 } else { 0.9 };
    Some(Waits { counter, confidence, grows: true, figures, why })
}

/// Puts samples of one thing in the order of time.
///
/// Where the captures have no times, or such as cannot be true, the names of their files may tell ([`told_by_name`]); else the
/// age of the counters orders them, where all have one and what was counted grows with it.
pub(super) fn by_time<T: Copy, G: Ord>(
    view: &View<'_>,
    samples: &mut [T],
    head: impl Fn(&T) -> &Head,
    age: impl Fn(&T) -> Option<u64>,
    counted: impl Fn(&T) -> Option<G>,
) {
    let clock = |sample: &T| head(sample).taken.as_ref().map(|taken| taken.clock().1);
    let clocks: Option<Vec<_>> =
        samples.iter().map(|sample| Some(head(sample).taken.as_ref()?.clock())).collect();
    let ages: Vec<Option<u64>> = samples.iter().map(&age).collect();
    let has_both = |sample: &T| age(sample).is_some() && counted(sample).is_some();
    if clocks.is_some_and(|clocks| are_true(&clocks, &ages)) {
        samples.sort_by_key(clock);
    } else if let [one, other] = samples
        && let Some(order) = told_by_name(view.file(head(one)), view.file(head(other)))
    {
        if order.is_gt() {
            samples.reverse();
        }
    } else if samples.iter().all(has_both) && !in_one_file(samples, &head) {
        let mut sorted = samples.to_vec();
        sorted.sort_by_key(&age);
        if sorted.is_sorted_by_key(&counted) {
            samples.copy_from_slice(&sorted);
        }
    }
}

/// Whether all of them stand in one file, whose lines follow each other in time: a counter that is younger further below was
/// reset in between.
fn in_one_file<T>(samples: &[T], head: &impl Fn(&T) -> &Head) -> bool {
    let mut files = samples.iter().map(|sample| head(sample).first.file);
    let first = files.next();
    files.all(|file| Some(file) == first)
}

/// Puts the samples of one port in the order of time, and leaves out what was captured twice.
pub(super) fn in_order(view: &View<'_>, samples: &mut Vec<&Fcstat>) {
    let age = |fcstat: &Fcstat| fcstat.seconds_since_reset.map(|read| read.value);
    let requests = |fcstat: &Fcstat| fcstat.traffic.input_requests.map(|read| read.value);
    by_time(view, samples, |one| &one.head, |one| age(one), |one| requests(one));
    samples.dedup_by(|later, earlier| same_moment(earlier, later));
    // An adapter that was exchanged counts for itself.
    let wwpn = samples.iter().rev().find_map(|fcstat| fcstat.wwpn).map(|read| read.value);
    samples.retain(|fcstat| fcstat.wwpn.is_none_or(|read| Some(read.value) == wwpn));
    // What was counted before a reset cannot be compared with what was counted after it.
    let reset =
        |pair: &[&Fcstat]| age(pair[0]).zip(age(pair[1])).is_some_and(|(one, two)| two < one);
    if let Some(last) = samples.windows(2).rposition(reset) {
        samples.drain(..=last);
    }
}

/// Whether one capture is surely of an earlier moment than another of the same system: by clocks that the system printed, by
/// their places in one file, or by their files' names.
pub(super) fn is_earlier(view: &View<'_>, one: &Head, other: &Head) -> Option<bool> {
    let printed = |head: &Head| head.taken.as_ref().is_some_and(|taken| taken.zone.is_some());
    let clocks = || one.is_before(other).filter(|_| printed(one) && printed(other));
    let places = || (one.first.file == other.first.file).then(|| one.first < other.first);
    let names = || {
        let (one, other) = (view.file(one), view.file(other));
        let told = told_by_name(one, other).or_else(|| dated_by_name(one, other));
        told.map(Ordering::is_lt)
    };
    clocks().or_else(places).or_else(names)
}

/// Which of two files was taken first, where their names are alike but for one date.
fn dated_by_name(one: &str, other: &str) -> Option<Ordering> {
    /// A year and a month have six.
    const DIGITS: usize = 6;
    let numbers = |name: &str| {
        let of = name.split(|c: char| !c.is_ascii_digit()).filter(|part| !part.is_empty());
        of.map(str::to_owned).collect::<Vec<_>>()
    };
    let others = |name: &str| name.replace(|c: char| c.is_ascii_digit(), "");
    if others(one) != others(other) {
        return None;
    }
    let (one, other) = (numbers(one), numbers(other));
    let apart = one.iter().zip(&other).find(|(one, other)| one != other);
    let (first, second) = apart.filter(|_| one.len() == other.len())?;
    // With the year first, dates sort as numbers do.
    let dated = |number: &String| number.len() >= DIGITS && number.starts_with("20");
    (first.len() == second.len() && dated(first) && dated(second)).then(|| first.cmp(second))
}

/// Which of two files was taken first, where their names say so and are alike otherwise: `vios1_before.txt`,
/// `vios1_after.txt`. Counters that were reset between are younger in the later one, and would be taken for the earlier.
fn told_by_name(one: &str, other: &str) -> Option<Ordering> {
    const WORDS: [(&str, &str); 4] =
        [("before", "after"), ("pre", "post"), ("vorher", "nachher"), ("old", "new")];
    let words = |name: &str| {
        let split = name.split(|c: char| !c.is_ascii_alphanumeric());
        split.map(str::to_ascii_lowercase).collect::<Vec<_>>()
    };
    let (one, other) = (words(one), words(other));
    let mut apart = one.iter().zip(&other).filter(|(one, other)| one != other);
    let (first, second) = apart.next().filter(|_| one.len() == other.len())?;
    if apart.next().is_some() {
        return None;
    }
    WORDS.iter().find_map(|(earlier, later)| match (first.as_str(), second.as_str()) {
        (one, other) if (one, other) == (*earlier, *later) => Some(Ordering::Less),
        (one, other) if (one, other) == (*later, *earlier) => Some(Ordering::Greater),
        _ => None,
    })
}

/// A zone, and the seconds that its clock showed.
pub(super) type Clock<'a> = (Option<&'a str>, u64);

/// So many seconds a file's time may be apart from what is in it.
const SLACK: u64 = 300;

/// So many seconds lie between a `date` and the command after it at most, where they are of one moment.
const APART: f64 = 60.0;

/// Whether these clocks of one zone can be those of counters of these ages. Files that were copied have the times of their
/// copies: a counter that is younger than the one before it was reset in between, and is no older than the time between; no
/// other has grown older by more than that.
fn are_true(clocks: &[Clock<'_>], ages: &[Option<u64>]) -> bool {
    // `script` tells the time without a zone: it is the system's own.
    let mut zones = clocks.iter().map(|clock| clock.0).filter(|zone| *zone != Some(""));
    let first = zones.next();
    if zones.any(|zone| Some(zone) != first) {
        return false;
    }
    let mut both: Vec<(u64, Option<u64>)> =
        clocks.iter().map(|clock| clock.1).zip(ages.iter().copied()).collect();
    both.sort_by_key(|(seconds, _)| *seconds);
    both.windows(2).all(|pair| match (pair[0], pair[1]) {
        ((then, Some(before)), (now, Some(age))) => {
            let apart = (now - then).saturating_add(SLACK);
            // By no more than that they have grown older, or they were reset since.
            let most = if age < before { apart } else { apart.saturating_add(before) };
            age <= most.saturating_add(age / 10)
        }
        _ => true,
    })
}

/// Whether two captures show the same moment: one file given twice, or `fcstat` and `fcstat -D` in one go.
fn same_moment(earlier: &Fcstat, later: &Fcstat) -> bool {
    let traffic = |fcstat: &Fcstat| {
        let at = |read: Option<Read<u64>>| read.map(|read| read.value);
        (
            at(fcstat.traffic.input_requests),
            at(fcstat.traffic.output_requests),
            at(fcstat.seconds_since_reset),
        )
    };
    let times = (earlier.head.taken.as_ref(), later.head.taken.as_ref());
    let apart = matches!(times, (Some(one), Some(two)) if one != two);
    !apart && traffic(earlier) == traffic(later) && same_detail(earlier, later)
}

/// A plain `fcstat` before a `-D` of the same moment must not hide what only the other has.
fn same_detail(earlier: &Fcstat, later: &Fcstat) -> bool {
    earlier.protocol_queue.active_high.is_none() || later.protocol_queue.active_high.is_some()
}

/// Seconds between two captures of the same thing, from their times or their own clocks.
pub(super) fn seconds_between(earlier: &Head, later: &Head) -> Option<f64> {
    let (one, two) = (earlier.taken.as_ref()?.clock(), later.taken.as_ref()?.clock());
    let apart = two.1.checked_sub(one.1).filter(|apart| *apart > 0)?;
    (one.0 == two.0).then(|| as_f64(apart))
}

/// Seconds between two `fcstat` of one port, and the terms that tell: by the clocks, or by what the counters' own ages say
/// where the clocks cannot be true.
pub(super) fn fcstat_seconds(earlier: &Fcstat, later: &Fcstat) -> Option<(f64, Term)> {
    let ages = earlier.seconds_since_reset.zip(later.seconds_since_reset);
    let aged = ages.and_then(|(one, two)| {
        let seconds = two.value.checked_sub(one.value).filter(|apart| *apart > 0)?;
        Some((as_f64(seconds), two.at))
    });
    let clocks = seconds_between(&earlier.head, &later.head);
    let fits = |clocks: &f64| aged.is_none_or(|(aged, _)| agree(*clocks, aged));
    match clocks.filter(fits) {
        Some(seconds) => Some((seconds, Term::read("seconds", seconds, "s", later.head.first))),
        None => aged.map(|(seconds, at)| (seconds, Term::read("seconds", seconds, "s", at))),
    }
}

/// Whether the time between two clocks is that by which counters aged.
pub(super) fn agree(clocks: f64, ages: f64) -> bool {
    (clocks - ages).abs() <= APART + ages * 0.1
}

/// The counters of the requests that waits are held against.
pub(super) fn requests(samples: &[&Fcstat]) -> Vec<Counter> {
    let reads = Counter::over(samples, |fcstat| fcstat.traffic.input_requests);
    let writes = Counter::over(samples, |fcstat| fcstat.traffic.output_requests);
    reads.into_iter().chain(writes).collect()
}
