//! `fc-link-errors`: damaged frames and lost links. They come first, because everything behind them waits for them.
//!
//! Every link that was ever plugged, or whose switch was ever restarted, has a few of each. So a count has to grow
//! between two captures, or be far above what plugging leaves behind.

use super::elements;
use super::finding::{Draft, Severity};
use super::measure::{Counter, seconds_between};
use super::rule::{Kind, Rule};
use super::thresholds::{CRC_GROWTH, CRC_ONCE, LOSS_GROWTH, LOSS_ONCE, WORD_GROWTH, WORD_ONCE};
use super::view::{View, shown};
use crate::capture::{Fcstat, Read};
use crate::trace::number;

const RULE: &str = "fc-link-errors";

/// A counter of the link: its heading, where it stands, its thresholds for growth and for once, its weight.
type Watched = (&'static str, fn(&Fcstat) -> Option<Read<u64>>, f64, f64);

const WATCHED: [Watched; 7] = [
    ("Invalid CRC Count", |f| f.invalid_crcs, CRC_GROWTH, CRC_ONCE),
    ("Error Frames", |f| f.error_frames, CRC_GROWTH, CRC_ONCE),
    ("Dumped Frames", |f| f.dumped_frames, CRC_GROWTH, CRC_ONCE),
    ("Link Failure Count", |f| f.link_failures, LOSS_GROWTH, LOSS_ONCE),
    ("Loss of Signal", |f| f.signal_losses, LOSS_GROWTH, LOSS_ONCE),
    ("Loss of Sync Count", |f| f.sync_losses, LOSS_GROWTH, LOSS_ONCE),
    ("Invalid Tx Word Count", |f| f.invalid_words, WORD_GROWTH, WORD_ONCE),
];

pub(super) const RULES: &[Rule] = &[Rule {
    name: RULE,
    about: "a link loses or damages frames",
    on: Kind::Port,
    evidence: "fcstat -D fcsN of every port, twice, some minutes apart",
    weight: 1.3,
    applies: elements::of_physical,
    judge: |view, port, out| {
        let samples = view.fcstats(port.host, port.device);
        out.drafts.extend(judge(view, port.host, port.device, samples));
    },
}];

fn judge(view: &View<'_>, host: usize, device: &str, samples: &[&Fcstat]) -> Option<Draft> {
    let object = view.object(host, device);
    let mut draft = Draft::new(
        RULE,
        host,
        object,
        Severity::Critical,
        format!("the link of {device} has errors"),
    );
    let (mut grown, mut once) = (0usize, 0usize);
    for (name, read, growth_least, once_least) in WATCHED {
        let Some(counter) = Counter::over(samples, read) else { continue };
        match counter.growth() {
            Some(growth) if growth >= growth_least => {
                grown += 1;
                let figure = counter.growth_figure(&format!("growth of {name}"), "");
                draft = draft
                    .see(counter.places())
                    .because(format!("{name} grew by {}.", number(growth)));
                draft = figure.into_iter().fold(draft, Draft::figure);
            }
            None if counter.value() >= once_least => {
                once += 1;
                let value = number(counter.value());
                draft = draft.see(counter.places()).figure(shown(
                    name,
                    counter.value(),
                    "",
                    counter.last.at,
                ));
                draft = draft.because(format!("{name} is {value} since the last reset or boot. Take a second capture to see whether it still grows."));
            }
            _ => {}
        }
    }
    if grown + once == 0 {
        return None;
    }
    let apart = samples
        .first()
        .zip(samples.last())
        .and_then(|(one, two)| seconds_between(&one.head, &two.head));
    if let Some(seconds) = apart.filter(|_| grown > 0) {
        draft = draft.because(format!("That happened within {}.", crate::report::span(seconds)));
    }
    let confidence = if grown > 0 { 0.97 } else { 0.8 };
    Some(
        draft
            .because("A frame that is damaged or lost is sent again after a timeout: I/O stalls, queues fill, and every number behind the link looks like another fault. No queue setting mends it.")
            .effect("No command mends a cable. Clean or replace the transceiver and the cable, try another switch port, and check the switch's own counters of that port (porterrshow or its like); then take fcstat again: the counters must stand still.")
            .harm("Work on the link interrupts this path. Make sure that the other path of every client is up first.")
            .weigh(confidence, 1.0),
    )
}
