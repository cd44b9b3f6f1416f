//! `fc-link-down`: a port that has carried requests and has no link now. What its `fcstat` says is the cause of all that is
//! lost behind it, also where no mapping tells whose it is.

use super::elements;
use super::finding::{Draft, Severity};
use super::out::Out;
use super::rule::{Applicability, Kind, Object, Rule};
use super::view::{Role, View};
use crate::capture::{Fcstat, NpivPort, Read, Report};
use crate::trace::number;

pub(super) const RULES: &[Rule] = &[Rule {
    name: "fc-link-down",
    about: "a port that is used has no link or no fabric",
    on: Kind::Port,
    evidence: "fcstat fcsN of every port, lsnports on each VIOS",
    weight: 1.25,
    applies: |view, port| match listed(view, port) {
        Some(_) => Applicability::Judged,
        None => elements::of_physical(view, port),
    },
    judge: |view, port, out| {
        if !is_left(view, port) {
            by_statistics(view, port, out);
            if out.drafts.is_empty() {
                by_list(view, port, out);
            }
        }
    },
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

/// The port in the last `lsnports`.
fn listed<'a>(view: &View<'a>, port: &Object<'_>) -> Option<&'a NpivPort> {
    let list = view.of(port.host).filter_map(Report::lsnports).last()?;
    list.ports.iter().find(|listed| listed.name == port.device)
}

/// A port without a fabric of which NPIV ports are given out.
fn by_list(view: &View<'_>, port: &Object<'_>, out: &mut Out) {
    let Some(listed) = listed(view, port).filter(|listed| !listed.fabric) else { return };
    let used = listed.ports_total.saturating_sub(listed.ports_free);
    if used == 0 {
        return;
    }
    let title = format!("{} has no fabric", port.device);
    let on = view.spoken(port.host);
    out.push(
        Draft::new("fc-link-down", port.host, port.label.clone(), Severity::Critical, title)
            .see([listed.at])
            .because(format!("lsnports shows it without a fabric, and {used} of its NPIV ports are given to clients: these do not get to their storage over it."))
            .effect(format!("No command mends a link. Look at the cable, the transceiver and the switch port (is it enabled, does it allow NPIV); lsmap -all -npiv on {on} tells whose adapters are concerned."))
            .harm("None by looking. Touch nothing on the other port before: it carries everything.")
            .weigh(0.9, 1.0),
    );
}

fn by_statistics(view: &View<'_>, port: &Object<'_>, out: &mut Out) {
    let Some(last) = view.fcstats(port.host, port.device).last() else { return };
    let Some(state) = last.attention_type.as_ref() else { return };
    if !state.value.eq_ignore_ascii_case("link down") {
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
