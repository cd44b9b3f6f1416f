//! `fc-link-down`: a port that has carried requests and has no link now. What its `fcstat` says is the cause of all that is
//! lost behind it, also where no mapping tells whose it is.

use super::elements;
use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Kind, Object, Rule};
use super::view::{Role, View};
use crate::capture::{Fcstat, Read, Report};
use crate::trace::number;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "fc-link-down",
    about: "a port that was used has no link",
    on: Kind::Port,
    evidence: "fcstat fcsN of every port",
    weight: 1.25,
    applies: elements::of_physical,
    judge,
}];

/// The requests that it has carried since its counters were reset.
fn carried(fcstat: &Fcstat) -> Option<Read<u64>> {
    let traffic = [fcstat.traffic.input_requests, fcstat.traffic.output_requests];
    let all = traffic.into_iter().flatten();
    all.reduce(|one, two| Read { value: one.value.saturating_add(two.value), at: two.at })
        .filter(|sum| sum.value > 0)
}

/// A port of a VIOS that no client is mapped to: it is told where its clients are known to have none.
fn is_left(view: &View<'_>, port: &Object<'_>) -> bool {
    let mapped = view.of(port.host).any(|report| matches!(report, Report::LsmapNpiv(_)));
    let on_it =
        || view.npiv().iter().any(|map| map.vios == port.host && map.port() == Some(port.device));
    view.role(port.host) == Role::Vios && mapped && !on_it()
}

fn judge(view: &View<'_>, port: &Object<'_>, out: &mut Out) {
    let Some(last) = view.fcstats(port.host, port.device).last() else { return };
    let Some(state) = last.attention_type.as_ref() else { return };
    if !state.value.eq_ignore_ascii_case("link down") || is_left(view, port) {
        return;
    }
    let Some(requests) = carried(last) else { return };
    let title = format!("{} has no link", port.device);
    out.push(
        Draft::new("fc-link-down", port.host, port.label.clone(), Severity::Critical, title)
            .see([state.at, requests.at])
            .because(format!(
                "Its fcstat says Link Down, and it has carried {} requests since its counters were reset: it was in use.",
                number(super::view::as_f64(requests.value))
            ))
            .effect("No command mends a link. Look at the cable, the transceiver and the switch port (is it enabled); when the light is back, failed paths come back with the health check, or with chpath -s enable.")
            .harm("None by looking. Touch nothing on the other port before: it carries everything.")
            .weigh(0.93, 1.0),
    );
}
