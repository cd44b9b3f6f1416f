//! `fc-latency`: commands are slow, and which layer they spend the time in.

use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::thresholds::{LAYER_SHARE, SLOW_FACTOR, fact, own};
use super::view::View;
use crate::capture::{LatencyRow, Read, Report};
use crate::facts::id::DISK_SERVICE_MS_MAX;
use crate::trace::{Figure, Term, number};

const RULE: &str = "fc-latency";

pub(super) const RULES: &[Rule] = &[Rule {
    name: RULE,
    about: "commands are slow, and one layer on the way takes most of the time",
    on: Kind::Port,
    evidence: "fcstat -l 20 5 fcsN on the client under load (AIX 7.3, VIOS 4.1)",
    weight: 1.1,
    applies: |view, port| Applicability::where_that(rows(view, port).next().is_some()),
    judge,
}];

/// The rows of the last report of the port.
fn rows<'a>(view: &View<'a>, port: &Object<'a>) -> impl Iterator<Item = &'a LatencyRow> {
    let own = |device: &Read<String>| device.value == port.device;
    let reports = view.of(port.host).filter_map(Report::fc_latency);
    let last = reports.filter(|report| report.head.device.as_ref().is_some_and(own)).last();
    last.into_iter().flat_map(|report| &report.rows)
}

/// What a layer is, its time, and where to look.
type Layer = (&'static str, Option<Read<f64>>, &'static str);

fn layers(row: &LatencyRow) -> [Layer; 4] {
    [
        (
            "the SAN",
            row.san,
            "Look at the storage and the fabric: service times of the array, its cache, slow or congested switch ports. Neither client nor VIOS can make it faster.",
        ),
        (
            "the VIOS",
            row.vios,
            "Look at the processors of the VIOS (lparstat 30 4), at its physical port (fcstat -D: waits for elements) and at its queues.",
        ),
        (
            "the hypervisor",
            row.hypervisor,
            "Look at the processors of both partitions (lparstat 30 4): entitlement, virtual processors, and whether the machine is overcommitted.",
        ),
        (
            "the adapter",
            row.adapter,
            "Look at the queue in front of the adapter: num_cmd_elems against the high-water marks of fcstat -D.",
        ),
    ]
}

fn judge<'a>(view: &View<'a>, port: &Object<'a>, out: &mut Out) {
    let slow_ms = fact(view.facts, DISK_SERVICE_MS_MAX) * SLOW_FACTOR;
    let total = |row: &LatencyRow| {
        let sum: f64 =
            layers(row).iter().filter_map(|(_, time, _)| *time).map(|read| read.value).sum();
        row.average.map_or(sum, |read| read.value)
    };
    let is_error = |row: &LatencyRow| {
        let name = row.completion.to_ascii_lowercase();
        name.contains("err") || name.contains("abort") || name.contains("fail")
    };
    let good = || rows(view, port).filter(|row| !is_error(row));
    let Some(unit) = good().find_map(|row| row.unit_ms) else {
        let on = view.spoken(port.host);
        out.lack(
            "the unit of the times",
            format!("the whole output of fcstat -l 20 5 {} on {on}", port.device),
        );
        return;
    };
    let Some(worst) = good().max_by(|one, two| total(one).total_cmp(&total(two))) else { return };
    let ms = total(worst) * unit;
    let sum: f64 =
        layers(worst).iter().filter_map(|(_, time, _)| *time).map(|read| read.value).sum();
    let most = layers(worst)
        .into_iter()
        .filter_map(|(name, time, advice)| Some((name, time?, advice)))
        .max_by(|one, two| one.1.value.total_cmp(&two.1.value));
    let Some((layer, time, advice)) = most.filter(|_| ms >= slow_ms && sum > 0.0) else { return };
    if time.value / sum < LAYER_SHARE {
        return;
    }
    let share = Figure::new(
        &format!("share of the time that is {layer}'s"),
        "%",
        "layer × 100 ÷ all layers",
        vec![
            Term::read("layer", time.value * unit, "ms", time.at),
            Term::read("all layers", sum * unit, "ms", worst.at),
        ],
    );
    let title =
        format!("commands take {} ms, most of it in {layer}", number((ms * 10.0).round() / 10.0));
    out.push(
        Draft::new(RULE, port.host, view.object(port.host, port.device), Severity::Warning, title)
            .see([worst.at])
            .because(format!("The slowest kind of command in the report is {}.", worst.completion))
            .figure(Figure::plain(Term::read("average of a command", ms, "ms", worst.at)))
            .figure(share)
            .figure(Figure::plain(own(
                "share from which one layer is named",
                LAYER_SHARE * 100.0,
                "%",
            )))
            .effect(advice)
            .harm("None by looking.")
            .weigh(0.75, 1.0),
    );
}
