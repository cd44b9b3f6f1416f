//! `sea-overload`: the queues of a shared adapter's threads are full, and packets are dropped in front of them.

use super::finding::{Draft, Severity};
use super::measure::{Counter, Waits, waits};
use super::network::{EVIDENCE, Sample, in_order};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::talkers;
use super::thresholds::SEA_DROPS_GROWTH;
use super::view::View;
use crate::capture::{Entstat, Read, Sea};
use crate::trace::number;

/// Growth that is more than noise by itself, whatever was moved meanwhile.
fn grown(name: &str, counter: Counter) -> Waits {
    let growth = number(counter.growth().unwrap_or(0.0));
    Waits {
        counter,
        confidence: 0.9,
        grows: true,
        figures: counter
            .growth_figure(&format!("growth of {name}"), "packets")
            .into_iter()
            .collect(),
        why: format!("{name} grew by {growth} between the captures: it happens now."),
    }
}

pub(super) const RULES: &[Rule] = &[
    Rule {
        name: "sea-overload",
        about: "the queues of a shared adapter's threads are full",
        on: Kind::Bridge,
        evidence: EVIDENCE,
        weight: 1.1,
        applies: has_statistics,
        judge: overload,
    },
    Rule {
        name: "sea-output",
        about: "a shared adapter does not get packets out of its adapters",
        on: Kind::Bridge,
        evidence: EVIDENCE,
        weight: 1.0,
        applies: has_statistics,
        judge: output,
    },
];

fn has_statistics(view: &View<'_>, sea: &Object<'_>) -> Applicability {
    let bridge = view.bridge(sea);
    Applicability::where_that(bridge.and_then(|bridge| bridge.sea()).is_some())
}

/// The statistics of a shared adapter in the order of time.
fn in_time<'a>(view: &View<'_>, runs: &[&'a Entstat]) -> Vec<&'a Sea> {
    let first = |run: &&'a Entstat| Some((*run, run.adapters.first()?));
    let mut samples: Vec<Sample<'a>> = runs.iter().filter_map(first).collect();
    in_order(view, &mut samples);
    samples.into_iter().filter_map(|(run, _)| run.sea.as_ref()).collect()
}

/// What arrived at both of its sides.
fn arrived(seas: &[&Sea]) -> Vec<Counter> {
    let sides = [
        Counter::over(seas, |sea| sea.real_side.received),
        Counter::over(seas, |sea| sea.virtual_side.received),
    ];
    sides.into_iter().flatten().collect()
}

/// What its threads dropped, all together; the sum is not printed by every level.
fn by_threads(sea: &Sea) -> Option<Read<u64>> {
    let dropped = || sea.threads.iter().filter_map(|thread| thread.dropped);
    let at = dropped().max_by_key(|read| read.value)?.at;
    Some(Read { value: dropped().map(|read| read.value).fold(0, u64::saturating_add), at })
}

fn overload<'a>(view: &View<'a>, object: &Object<'a>, out: &mut Out) {
    const NAME: &str = "packets dropped at full queues";
    let Some(bridge) = view.bridge(object) else { return };
    let seas = in_time(view, &bridge.runs);
    let packets = arrived(&seas);
    let Some(sea) = seas.last() else { return };
    // The threads count on where their sum stands still or is not printed; of a report that is cut some are missing.
    let whole = seas.iter().all(|one| one.threads.len() == sea.threads.len());
    let sum = Counter::over(&seas, |sea| sea.thread_overflow);
    let threads = Counter::over(&seas, by_threads)
        .filter(|counter| whole && counter.growth() > sum.and_then(|sum| sum.growth()));
    let Some(counter) = threads.or(sum) else { return };
    let loud = counter.growth().is_some_and(|growth| growth >= SEA_DROPS_GROWTH);
    let Some(waits) = waits(NAME, counter, &packets).or_else(|| loud.then(|| grown(NAME, counter)))
    else {
        return;
    };
    let full: Vec<_> = sea
        .threads
        .iter()
        .filter(|thread| thread.dropped.is_some_and(|read| read.value > 0))
        .collect();
    let title = format!("queues of {} are full and packets are dropped", bridge.name);
    let object = view.object(bridge.host, bridge.name);
    let draft = Draft::new("sea-overload", bridge.host, object, Severity::Warning, title);
    let dropped = full.iter().filter_map(|thread| thread.dropped.map(|read| read.at));
    let mut draft = waits.tell(draft).see(dropped);
    if !full.is_empty() {
        let which: Vec<String> = full.iter().map(|thread| thread.index.to_string()).collect();
        let of = sea.threads.len();
        let which = match &which[..] {
            [one] => format!("only thread {one} dropped packets"),
            several => format!("threads {} dropped packets", several.join(", ")),
        };
        draft = draft
            .because(format!("Of {of} threads {which}: flows are spread by a hash, not by load."));
    }
    for name in ["nthreads", "queue_size"] {
        if let Some(attribute) = bridge.attribute(view, name) {
            draft = draft.see([attribute.at]).because(format!("{name} is {}.", attribute.value));
        }
    }
    let who = match talkers::of(view, bridge.host, bridge.name) {
        Some(talkers) => {
            draft = draft.see(talkers.places()).because(talkers.words());
            draft = talkers.figure().into_iter().fold(draft, Draft::figure);
            "What sends most is named above: it may go over a shared adapter of its own."
        }
        None => "Turn on accounting and run seastat to see who sends most.",
    };
    out.push(
        draft
            .effect(format!("Spread the load: more threads (nthreads) and longer queues (queue_size) where the VIOS has processors left, load sharing, or a second shared adapter. {who} How many threads is not known from this, so no command is given."))
            .harm("More threads use more processor; a longer queue makes packets wait longer before they are dropped.")
            .weigh(waits.confidence, 1.0),
    );
}

fn output(view: &View<'_>, object: &Object<'_>, out: &mut Out) {
    let Some(bridge) = view.bridge(object) else { return };
    let seas = in_time(view, &bridge.runs);
    let packets = arrived(&seas);
    type Pick = fn(&Sea) -> Option<Read<u64>>;
    let counters: [(&str, Pick, &str); 3] = [
        (
            "Device output failures",
            |sea| sea.output_failures,
            "An adapter below it did not take what was to be sent: its queue was full or it has an error of its own.",
        ),
        (
            "Memory allocation failures",
            |sea| sea.memory_failures,
            "There was no network memory to send them with: netstat -m shows who holds it.",
        ),
        ("Output packets dropped", |sea| sea.output_dropped, "They were dropped on their way out."),
    ];
    let found: Vec<(Waits, &str)> = counters
        .into_iter()
        .filter_map(|(name, read, why)| {
            Some((waits(name, Counter::over(&seas, read)?, &packets)?, why))
        })
        .collect();
    let Some(confidence) = found.iter().map(|(waits, _)| waits.confidence).reduce(f64::max) else {
        return;
    };
    let title = format!("{} does not get packets out of its adapters", bridge.name);
    let object = view.object(bridge.host, bridge.name);
    let draft = Draft::new("sea-output", bridge.host, object, Severity::Warning, title);
    let tell = |draft: Draft, (waits, why): &(Waits, &str)| waits.tell(draft).because(*why);
    out.push(
        found
            .iter()
            .fold(draft, tell)
            .effect("Look at the adapters below it in the same report: transmit errors and queue overflows of the real adapter, send failures of the trunk adapters; where these speak they name the cause. No command mends it as such.")
            .harm("None by looking.")
            .weigh(confidence, 0.9),
    );
}
