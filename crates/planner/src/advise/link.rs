//! `fc-link-errors`: damaged frames and lost links. They come first, because everything behind them waits for them.
//!
//! Every link that was ever plugged, or whose switch was ever restarted, has a few of each. So a count has to grow
//! between two captures, or be far above what plugging leaves behind.

use super::elements;
use super::finding::{Draft, Severity};
use super::measure::{Counter, seconds_between};
use super::rule::{Kind, Rule};
use super::san;
use super::thresholds::{
    CRC_GROWTH, CRC_ONCE, LINE_RATE_SHARE, LOSS_GROWTH, LOSS_ONCE, WORD_GROWTH, WORD_ONCE,
};
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

/// What the counters say of the cause.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Class {
    /// Words and frames are damaged, or the light is lost.
    Cable,
    /// Frames are held back although line and light are good.
    Credits,
    /// Frames are held back because more is asked of the port than its line carries: `fc-line-rate` says so.
    Oversubscription,
}

impl Class {
    fn of(samples: &[&Fcstat]) -> Self {
        let grew = |read: fn(&Fcstat) -> Option<Read<u64>>| {
            Counter::over(samples, read).and_then(|counter| counter.growth()).unwrap_or(0.0)
        };
        let light = [
            grew(|f| f.invalid_crcs),
            grew(|f| f.invalid_words),
            grew(|f| f.signal_losses),
            grew(|f| f.link_failures),
        ];
        if dumped(samples).is_none() || light.iter().any(|by| *by >= CRC_GROWTH) {
            return Self::Cable;
        }
        match san::line_share(samples) {
            Some(share) if share >= LINE_RATE_SHARE => Self::Oversubscription,
            _ => Self::Credits,
        }
    }

    fn why(self, samples: &[&Fcstat]) -> &'static str {
        match self {
            Self::Cable => optics(samples),
            Self::Credits => {
                "Frames are dumped for want of buffer credits: no word, no CRC and no light was lost meanwhile, so cable and optics are good and the flow control is not."
            }
            Self::Oversubscription => "",
        }
    }

    fn effect(self) -> &'static str {
        match self {
            Self::Cable => {
                "No command mends a cable. Clean or replace the transceiver and the cable, try another switch port, and check the switch's own counters of that port (porterrshow or its like); then take fcstat again: the counters must stand still."
            }
            Self::Credits | Self::Oversubscription => {
                "No command on this system mends it. Look at the switch port's buffer credits and at its time at zero credits (portbuffershow, tim_txcrd_z or their like), at the distance of the link, and for a slow device that holds frames back in the fabric."
            }
        }
    }

    fn harm(self) -> &'static str {
        match self {
            Self::Cable => {
                "Work on the link interrupts this path. Make sure that the other path of every client is up first."
            }
            Self::Credits | Self::Oversubscription => {
                "None by looking. Other buffer credits on a switch port drop its link for a moment."
            }
        }
    }
}

/// Frames that were dropped between the captures because they could not go on.
pub(super) fn dumped(samples: &[&Fcstat]) -> Option<Counter> {
    let counter = Counter::over(samples, |fcstat| fcstat.dumped_frames)?;
    counter.growth().filter(|by| *by >= CRC_GROWTH).map(|_| counter)
}

/// What damaged frames and lost light say.
fn optics(samples: &[&Fcstat]) -> &'static str {
    let last = |read: fn(&Fcstat) -> Option<Read<u64>>| {
        samples.last().and_then(|f| read(f)).map_or(0, |read| read.value)
    };
    match (
        last(|f| f.signal_losses),
        last(|f| f.invalid_words).saturating_add(last(|f| f.invalid_crcs)),
    ) {
        (0, 0) => "",
        (0, _) => {
            "Words and frames arrive damaged while the light stays: a dirty or bent cable, or an optic (SFP) near its end."
        }
        _ => {
            "The light itself comes and goes: the cable's plugs, the optic (SFP), or the switch port."
        }
    }
}

fn judge(view: &View<'_>, host: usize, device: &str, samples: &[&Fcstat]) -> Option<Draft> {
    let object = view.object(host, device);
    let leads = WATCHED.iter().find_map(|(name, read, growth_least, once_least)| {
        let counter = Counter::over(samples, *read)?;
        let counts = match counter.growth() {
            Some(growth) => growth >= *growth_least,
            None => counter.value() >= *once_least,
        };
        counts.then_some(*name)
    })?;
    let title = format!("the link of {device} has errors: {leads}");
    let mut draft = Draft::new(RULE, host, object, Severity::Critical, title);
    let (mut grown, mut once) = (0usize, 0usize);
    let mut over: Option<Counter> = None;
    let mut goes_on = false;
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
                match counter.is_over() {
                    Some(_) => over = Some(counter),
                    None => goes_on = true,
                }
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
    let requests =
        samples.last().map(|last| [last.traffic.input_requests, last.traffic.output_requests]);
    if requests.is_some_and(|all| all.iter().all(|read| read.is_some_and(|read| read.value == 0))) {
        draft =
            draft.only_noted("The port has never carried a request: nobody waits for its link.");
    }
    if let Some(counter) = over.filter(|_| !goes_on) {
        draft = draft.unless_over(&counter);
    }
    let confidence = if grown > 0 { 0.97 } else { 0.8 };
    let class = Class::of(samples);
    if class == Class::Oversubscription {
        return None;
    }
    draft = draft.because(class.why(samples));
    if class == Class::Cable {
        draft = draft.because("A frame that is damaged or lost is sent again after a timeout: I/O stalls, queues fill, and every number behind the link looks like another fault. No queue setting mends it.");
    }
    Some(draft.effect(class.effect()).harm(class.harm()).weigh(confidence, 1.0))
}
