//! `fc-line-rate` by a file of nmon: what a port moved in each interval, beside the speed that `fcstat` shows.

use super::{at_line_rate, shared};
use crate::advise::out::Out;
use crate::advise::rule::Object;
use crate::advise::thresholds::{
    BYTES_PER_GBIT, LINE_RATE_INTERVALS, LINE_RATE_INTERVALS_LEAST, LINE_RATE_SHARE, own,
};
use crate::advise::view::{View, count, shown};
use crate::capture::{Nmon, Read, Report};
use crate::trace::{Figure, Origin, Term, number};

/// KB/s in nmon are of 1,024 bytes.
const KB: f64 = 1024.0;

/// The last file of nmon of a system that shows a port.
fn run<'a>(view: &View<'a>, host: usize, device: &str) -> Option<&'a Nmon> {
    let shows = |run: &&Nmon| !run.series("FCREAD", device).is_empty();
    view.of(host).filter_map(Report::nmon).filter(shows).last()
}

pub(super) fn shows(view: &View<'_>, port: &Object<'_>) -> bool {
    run(view, port.host, port.device).is_some()
}

pub(super) fn judge(view: &View<'_>, port: &Object<'_>, out: &mut Out) {
    let samples = view.fcstats(port.host, port.device);
    let Some(run) = run(view, port.host, port.device) else { return };
    let Some(running) = samples.iter().rev().find_map(|sample| sample.speed_running_gbit) else {
        return out.lack("how fast the port runs", format!("fcstat {}", port.device));
    };
    if view.is_virtual(port.host, port.device, samples) == Some(true) {
        return;
    }
    let line = f64::from(running.value) * BYTES_PER_GBIT;
    for (word, section) in [("receives", "FCREAD"), ("sends", "FCWRITE")] {
        let series = run.series(section, port.device);
        let is_full = |read: &&Read<f64>| read.value * KB >= line * LINE_RATE_SHARE;
        let full: Vec<&Read<f64>> = series.iter().filter(is_full).collect();
        let share = count(full.len()) / count(series.len().max(1));
        let Some(most) = full.iter().max_by(|one, two| one.value.total_cmp(&two.value)) else {
            continue;
        };
        if full.len() < LINE_RATE_INTERVALS_LEAST || share < LINE_RATE_INTERVALS {
            continue;
        }
        let terms = vec![
            Term::new("full", count(full.len()), "intervals", Origin::Computed),
            Term::new("all", count(series.len()), "intervals", Origin::Computed),
        ];
        let places = full.iter().take(8).map(|read| read.at);
        let draft = at_line_rate(view, port, running, word, places)
            .because(format!(
                "In {} of {} intervals of the file of nmon it moved {} % of that and more.",
                full.len(),
                series.len(),
                number(LINE_RATE_SHARE * 100.0)
            ))
            .figure(shown("most in an interval", most.value, "KB/s", most.at))
            .figure(Figure::new("share of the intervals", "", "full ÷ all", terms))
            .figure(Figure::plain(own(
                "share from which this rule speaks",
                LINE_RATE_INTERVALS,
                "",
            )));
        out.push(shared(view, port, draft).weigh(0.85, 1.0));
        return;
    }
}
