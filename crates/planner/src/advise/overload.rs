//! `sea-overload`: the queues of a shared adapter's threads are full, and packets are dropped in front of them.

use super::finding::{Draft, Severity};
use super::measure::{Counter, Waits, waits};
use super::network::{EVIDENCE, Sample, in_order};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::talkers;
use super::thresholds::SEA_DROPS_GROWTH;
use super::view::View;
use crate::capture::Entstat;
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

pub(super) const RULES: &[Rule] = &[Rule {
    name: "sea-overload",
    about: "the queues of a shared adapter's threads are full",
    on: Kind::Bridge,
    evidence: EVIDENCE,
    weight: 1.1,
    applies: |view, sea| {
        let bridge = view.bridge(sea);
        Applicability::where_that(bridge.and_then(|bridge| bridge.sea()).is_some())
    },
    judge: overload,
}];

fn overload<'a>(view: &View<'a>, object: &Object<'a>, out: &mut Out) {
    const NAME: &str = "packets dropped at full queues";
    let Some(bridge) = view.bridge(object) else { return };
    let first = |run: &&'a Entstat| Some((*run, run.adapters.first()?));
    let mut samples: Vec<Sample<'_>> = bridge.runs.iter().filter_map(first).collect();
    in_order(&mut samples);
    let seas: Vec<_> = samples.iter().filter_map(|(run, _)| run.sea.as_ref()).collect();
    let counter = Counter::over(&seas, |sea| sea.thread_overflow);
    let packets: Vec<Counter> = [
        Counter::over(&seas, |sea| sea.real_side.received),
        Counter::over(&seas, |sea| sea.virtual_side.received),
    ]
    .into_iter()
    .flatten()
    .collect();
    let Some(counter) = counter else { return };
    let Some(sea) = seas.last() else { return };
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
